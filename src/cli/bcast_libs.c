/* bcast_libs.c - sbcast --send-libs: the shared libraries of a program go to the nodes beside it (see bcast.h)
 *
 * ldd says which they are; those below the excluded folders are on the nodes anyway. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/bcast.h"

/* What ldd prints of a program; NULL: it cannot say. malloc'd. */
static char *ldd_ask(const char *program)
{
	int end[2], status = -1;
	if (pipe(end) < 0)
		return NULL;
	pid_t pid = fork();
	if (!pid) {
		dup2(end[1], 1);
		dup2(end[1], 2);
		close(end[0]);
		close(end[1]);
		execlp("ldd", "ldd", program, (char *)NULL);
		_exit(127);
	}
	close(end[1]);
	struct str out = STR_INIT;
	char buf[4096];
	for (ssize_t n; pid > 0 && (n = read(end[0], buf, sizeof(buf))) > 0;)
		str_add_n(&out, buf, (size_t)n);
	close(end[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status == 0 && out.len)
		return str_take(&out);
	str_fini(&out);
	return NULL;
}

static bool is_excluded(const char *path, const char *exclude)
{
	char *list = xstrdup(exclude), *at = list, *dir;
	bool found = false;
	while (!found && (dir = str_next(&at, ","))) {
		size_t len = strlen(dir);
		while (len > 1 && dir[len - 1] == '/')
			len--;
		found = *dir == '/' && !strncmp(path, dir, len) && (path[len] == '/' || len == 1);
	}
	free(list);
	return found;
}

static void exclude_check(const char *exclude)
{
	char *list = xstrdup(exclude), *at = list, *dir;
	while ((dir = str_next(&at, ",")))
		if (*dir && *dir != '/')
			log_error("Ignoring non-absolute excluded path: '%s'", dir);
	free(list);
}

/* "name => /path (0x...)" or "/path (0x...)": the path, in place. NULL: a line without one. */
static char *path_of(char *line)
{
	char *path = strstr(line, "=> /");
	path = path ? path + 3 : line + strspn(line, " \t");
	path[strcspn(path, " \t")] = 0;
	return *path == '/' ? path : NULL;
}

int bcast_libs(const struct bcast *program, const char *exclude, char **ret_dir)
{
	const char *list = exclude ? exclude : conf_str(client_conf(program->client), CONF_BcastExclude);
	size_t len = strlen(program->dest);
	int rc = 0;
	*ret_dir = NULL;
	if (!list || str_eq_nocase(list, "NONE"))
		list = "";
	exclude_check(list);
	if (len && program->dest[len - 1] == '/') {
		log_error("--send-libs needs the name that the file shall have, not a folder alone (%s); the libraries are not sent", program->dest);
		return 0;
	}
	char *said = ldd_ask(program->source), *at = said, *line;
	if (!said) {
		log_error("Cannot autodetect libraries for '%s' with ldd command; still sending the file but ignoring send_libs", program->source);
		return 0;
	}
	while (!rc && (line = str_next(&at, "\n"))) {
		char *path = path_of(line);
		if (!path || is_excluded(path, list))
			continue;
		struct bcast lib = *program;
		lib.source = path;
		lib.make_dir = true;
		lib.dest = xasprintf("%s_libs/%s", program->dest, strrchr(path, '/') + 1);
		rc = bcast_send(&lib);
		free((char *)lib.dest);
		if (!*ret_dir)
			*ret_dir = xasprintf("%s_libs", program->dest);
	}
	free(said);
	return rc;
}
