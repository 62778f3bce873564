/* login.c - see login.h
 *
 * The user's login shell is run with next to nothing in its environment and says, between two marks, what it has then. What profiles print is skipped.
 * All of it happens in the task's own process, contained like the task: whatever a profile leaves running ends with the step. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "model/envlist.h"
#include "stepd/login.h"
#include "stepd/step.h"

#define WAIT_SEC 120
#define OUTPUT_MAX (4u << 20)
#define MARK "=slurmstepd-login="
#define SAY "/bin/echo " MARK "; /usr/bin/env -0; /bin/echo " MARK    /* any shell understands this */
#define PATH_USER "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
#define PATH_ROOT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static _Noreturn void shell_run(const struct passwd *pw, int out)
{
	const char *shell = pw->pw_shell && *pw->pw_shell ? pw->pw_shell : "/bin/sh", *base = strrchr(shell, '/');
	struct envlist e = ENVLIST_INIT;
	char name[64];
	int null = open("/dev/null", O_RDWR);
	setpgid(0, 0);
	envlist_set(&e, "HOME", pw->pw_dir);
	envlist_set(&e, "SHELL", shell);
	envlist_set(&e, "USER", pw->pw_name);
	envlist_set(&e, "LOGNAME", pw->pw_name);
	envlist_setf(&e, "MAIL", "/var/mail/%s", pw->pw_name);
	envlist_set(&e, "PATH", pw->pw_uid ? PATH_USER : PATH_ROOT);
	snprintf(name, sizeof name, "-%s", base ? base + 1 : shell);   /* a login shell */
	if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 || (chdir(pw->pw_dir) < 0 && chdir("/") < 0))
		_exit(126);
	char *argv[] = { name, (char *)"-c", (char *)SAY, NULL };
	execve(shell, argv, e.var);
	_exit(127);
}

/* All that comes, until the second mark, the end or the time is over. The bytes hold NULs. */
static void output_read(int fd, struct str *text)
{
	int64_t until = (int64_t)clock_mono_ms() + WAIT_SEC * 1000, left;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[8192];
	while ((left = until - (int64_t)clock_mono_ms()) > 0 && text->len < OUTPUT_MAX) {
		int n = poll(&p, 1, (int)left);
		ssize_t got = n > 0 ? read(fd, buf, sizeof buf) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		str_add_n(text, buf, (size_t)got);
		const char *first = memmem(text->data, text->len, MARK "\n", sizeof MARK);
		if (first && memmem(first + 1, text->len - (size_t)(first + 1 - text->data), MARK "\n", sizeof MARK))
			return;
	}
}

/* The variables between the marks; false: there are none. */
static bool output_take(const struct str *text, struct envlist *ret)
{
	const char *at = text->len ? memmem(text->data, text->len, MARK "\n", sizeof MARK) : NULL;
	at = at ? at + sizeof MARK : NULL;
	const char *end = at ? memmem(at, text->len - (size_t)(at - text->data), MARK "\n", sizeof MARK) : NULL;
	for (; end && at < end; at += strlen(at) + 1) {
		char *one = (char *)at;
		envlist_load(ret, &one, 1);
	}
	envlist_unset(ret, "_");
	envlist_unset(ret, "PWD");
	envlist_unset(ret, "OLDPWD");
	return end && ret->count;
}

static bool on_path(const char *path, const char *program)
{
	char file[4096];
	while (path) {
		size_t n = strcspn(path, ":");
		snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program);
		if (n && !access(file, X_OK))
			return true;
		path = path[n] ? path + n + 1 : NULL;
	}
	return false;
}

/* Commands that are not installed where a login looks (a build folder, another prefix) are beside this program. */
static void path_complete(struct envlist *e)
{
	char exe[4096];
	const char *path = envlist_get(e, "PATH");
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	for (int up = 0; n > 0 && up < 2; up++) {   /* PREFIX of PREFIX/sbin/slurmstepd */
		const char *slash = memrchr(exe, '/', (size_t)n);
		n = slash ? slash - exe : 0;
	}
	if (n <= 0 || !path || on_path(path, "srun"))
		return;
	char *bin = xasprintf("%.*s/bin", (int)n, exe);
	if (on_path(bin, "srun"))
		envlist_setf(e, "PATH", "%s:%s", path, bin);
	free(bin);
}

static bool shell_ask(const struct passwd *pw, struct envlist *ret)
{
	struct str text = STR_INIT;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid_t pid = fork();
	if (!pid)
		shell_run(pw, ends[1]);
	close(ends[1]);
	if (pid > 0)
		output_read(ends[0], &text);
	close(ends[0]);
	if (pid > 0) {
		kill(-pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	bool ok = output_take(&text, ret);
	str_fini(&text);
	return ok;
}

char **login_env(struct step *s, char **env)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	struct envlist login = ENVLIST_INIT, *e = xcalloc(1, sizeof *e);
	if (!s->batch || !d || !d->get_user_env)
		return env;
	const struct passwd *pw = getpwuid(s->uid);
	if (!pw || !shell_ask(pw, &login)) {
		step_fail(s, ESLURM_USER_ENV, "the login environment of user %u could not be had%s%s", s->uid, pw ? " from " : ": there is no such user on this node", pw ? pw->pw_shell : "");
		return NULL;
	}
	path_complete(&login);
	envlist_load(e, login.var, login.count);
	for (size_t n = 0; env[n]; n++)
		envlist_load(e, &env[n], 1);
	return e->var;
}
