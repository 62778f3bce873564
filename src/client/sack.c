/* sack.c - daemons offer their token socket; a file of its own so that commands do not link libuv for it */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "client/client.h"

int client_sack_start(const struct conf *c, uv_loop_t *loop, struct wire_auth *a, const char *daemon, struct sack **ret, struct error *err)
{
	char buf[PATH_MAX], dir[PATH_MAX];
	if (str_eq(conf_str(c, CONF_AuthType), "auth/munge"))
		return 0;
	const char *path = client_sack_path(c, daemon, buf, sizeof buf), *slash = strrchr(path, '/');
	if (slash && slash != path && slash - path < (ptrdiff_t)sizeof dir) {
		memcpy(dir, path, slash - path);
		dir[slash - path] = 0;
		if (mkdir(dir, 0755) && errno != EEXIST)
			return error_set(err, errno, "cannot make the run directory %s for the token socket: %s", dir, strerror(errno));
	}
	return sack_start(loop, a, path, ret, err);
}
