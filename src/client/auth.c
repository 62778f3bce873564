/* auth.c - AuthType and AuthInfo of a configuration -> struct wire_auth
 *
 * The one place that knows where keys and sockets lie, for commands and daemons alike. Written up for people in src/wire/README.md. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "client/client.h"

/* Run directories in which a token socket may be, best first. */
static const struct { const char *daemon, *path; } sockets[] = {
	{ "sackd", "/run/slurm/sack.socket" },
	{ "slurmctld", "/run/slurmctld/sack.socket" },
	{ "slurmd", "/run/slurmd/sack.socket" },
};

static char *key_beside(const char *conf_file)
{
	const char *slash = strrchr(conf_file, '/');
	return slash ? xasprintf("%.*s/slurm.key", (int)(slash - conf_file), conf_file) : xstrdup("slurm.key");
}

static const char *sack_find(const struct conf *c, enum conf_key info, char *buf, size_t size)
{
	const char *path = getenv("BERTH_SACK");
	if (path && *path)
		return path;
	if (conf_opt(c, info, "sack", buf, size))
		return buf;
	for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++)
		if (!access(sockets[i].path, F_OK))
			return sockets[i].path;
	return sockets[0].path;   /* to be named in the error */
}

int client_auth_create(const struct conf *c, enum client_auth_use use, struct wire_auth **ret, struct error *err)
{
	bool dbd = use == CLIENT_AUTH_DBD;
	enum conf_key info = dbd ? CONF_Dbd_AuthInfo : CONF_AuthInfo, type = dbd ? CONF_Dbd_AuthType : CONF_AuthType;
	char key[PATH_MAX], sack[PATH_MAX], munge[PATH_MAX], ttl[32];
	char *beside = key_beside(conf_path(c));
	unsigned long long seconds = 0;
	struct wire_auth_params p = {
		.munge = str_eq(conf_str(c, type), "auth/munge"),
		.cluster = dbd ? NULL : conf_str(c, CONF_ClusterName),
		.munge_socket = conf_opt(c, info, "socket", munge, sizeof munge),
	};
	int rc = 0;
	const char *env = use == CLIENT_AUTH_COMMAND ? NULL : getenv("SLURM_SACK_KEY");
	p.key_path = env && *env ? env : conf_opt(c, info, "key", key, sizeof key) ? key : beside;
	if (use == CLIENT_AUTH_COMMAND)
		p.sack_path = sack_find(c, info, sack, sizeof sack);
	if (conf_opt(c, info, "ttl", ttl, sizeof ttl) && str_to_u64(ttl, 1, 86400, &seconds))
		rc = error_set(err, EINVAL, "%s: AuthInfo=ttl=%s: expected seconds, 1 to 86400", conf_path(c), ttl);
	p.ttl_s = seconds;
	if (!rc)
		rc = wire_auth_create(&p, ret, err);
	free(beside);
	return rc;
}

int client_auth_create_keyed(const char *key_path, struct wire_auth **ret, struct error *err)
{
	struct wire_auth_params p = { .key_path = key_path };
	return wire_auth_create(&p, ret, err);
}

const char *client_sack_path(const struct conf *c, const char *daemon, char *buf, size_t size)
{
	const char *env = getenv("BERTH_SACK");
	if (env && *env)
		return env;
	if (conf_opt(c, CONF_AuthInfo, "sack", buf, size))
		return buf;
	if ((env = getenv("RUNTIME_DIRECTORY")) && *env && snprintf(buf, size, "%s/sack.socket", env) < (int)size)
		return buf;
	for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++)
		if (str_eq(daemon, sockets[i].daemon))
			return sockets[i].path;
	return sockets[0].path;
}
