/* prolog.c - scripts around each task (see prolog.h) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/envlist.h"
#include "stepd/env.h"
#include "stepd/io.h"
#include "stepd/namespace.h"
#include "stepd/prolog.h"
#include "stepd/step.h"
#include "stepd/user.h"

#define EPILOG_SEC 5   /* then it is killed: a task epilog must not hold the job's end */

struct epilogs {
	struct step *step;
	pid_t *pid;
	size_t n, cap;
	uv_timer_t timer;
};
static struct epilogs epilogs;

static size_t env_count(char **env)
{
	size_t n = 0;
	while (env[n])
		n++;
	return n;
}

static char **env_find(char **env, const char *name, size_t len)
{
	for (; *env; env++)
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return env;
	return NULL;
}

/* One line of a prolog's output. */
static char **line_apply(char **env, char *line)
{
	line[strcspn(line, "\n")] = 0;
	if (!strncmp(line, "export ", 7) && strchr(line + 7, '=')) {
		char *pair = line + 7;
		char **have = env_find(env, pair, strcspn(pair, "="));
		if (have) {
			*have = xstrdup(pair);
			return env;
		}
		size_t n = env_count(env);
		env = xrealloc(env, (n + 2) * sizeof *env);
		env[n] = xstrdup(pair);
		env[n + 1] = NULL;
	} else if (!strncmp(line, "unset ", 6)) {
		char **have = env_find(env, line + 6, strlen(line + 6));
		for (; have && *have; have++)
			have[0] = have[1];
	} else if (!strncmp(line, "print ", 6)) {
		dprintf(1, "%s\n", line + 6);
	}
	return env;
}

/* In the process that becomes the task: a prolog that fails ends it, with its exit code (prolog_epilog.html, "Failure Handling"). */
static char **script_run(const char *name, const char *path, char **env)
{
	int end[2], status = 127 << 8;
	if (!path || !*path || pipe(end) < 0)
		return env;
	pid_t pid = fork();
	if (!pid) {
		dup2(end[1], 1);
		close(end[0]);
		close(end[1]);
		execve(path, (char *[]){ (char *)path, NULL }, env);
		dprintf(2, "slurmstepd: error: cannot run task prolog %s: %m\n", path);
		_exit(1);
	}
	close(end[1]);
	FILE *out = fdopen(end[0], "r");
	char *line = NULL;
	size_t size = 0;
	while (out && getline(&line, &size, out) >= 0)
		env = line_apply(env, line);
	if (out)
		fclose(out);
	free(line);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	int rc = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (rc) {
		dprintf(2, "slurmstepd: error: %s failed status=%d\n", name, rc);
		_exit(rc);
	}
	return env;
}

char **prolog_run(struct step *s, struct task *t, char **env)
{
	const char *site = step_conf(s, "TaskProlog"), *own = s->spec ? s->spec->task_prolog : NULL;
	(void)t;
	if ((site && *site) || (own && *own)) {
		envlist_set(env_common(), "SLURM_SCRIPT_CONTEXT", "prolog_task");  /* the task keeps it, as in the reference */
		env = env_common()->var;
	}
	env = script_run("TaskProlog", site, env);
	return script_run("--task-prolog", own, env);
}

static void on_timeout(uv_timer_t *timer)
{
	(void)timer;
	for (size_t i = 0; i < epilogs.n; i++)
		kill(epilogs.pid[i], SIGKILL);
}

static void epilog_start(struct step *s, struct task *t, const char *path)
{
	if (!path || !*path)
		return;
	pid_t pid = fork();
	if (pid < 0)
		return;
	if (!pid) {
		sigset_t none;
		int null = open("/dev/null", O_RDWR);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		dup2(null, 0), dup2(null, 1), dup2(null, 2);
		if (namespace_enter(s) < 0 || user_become(s) < 0)
			_exit(1);
		user_chdir(s, s->spec ? s->spec->cwd : NULL);
		env_task(s, t);
		envlist_set(env_common(), "SLURM_SCRIPT_CONTEXT", "epilog_task");
		execve(path, (char *[]){ (char *)path, NULL }, env_common()->var);
		_exit(127);
	}
	epilogs.pid = xgrow(epilogs.pid, &epilogs.cap, epilogs.n + 1, sizeof *epilogs.pid);
	epilogs.pid[epilogs.n++] = pid;
	if (!epilogs.step) {
		epilogs.step = s;
		uv_timer_init(&s->loop, &epilogs.timer);
		uv_timer_start(&epilogs.timer, on_timeout, EPILOG_SEC * 1000, EPILOG_SEC * 1000);
	}
}

void prolog_task_end(struct step *s, struct task *t)
{
	if (s->launch_error)
		return;
	epilog_start(s, t, step_conf(s, "TaskEpilog"));
	epilog_start(s, t, s->spec ? s->spec->task_epilog : NULL);
}

static void epilog_judge(struct step *s, int status)
{
	int rc = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	char text[64];
	if (!rc)
		return;
	snprintf(text, sizeof text, "TaskEpilog failed status=%d", rc);
	io_text(s, text);
}

bool prolog_reaped(struct step *s, pid_t pid, int status)
{
	for (size_t i = 0; i < epilogs.n; i++)
		if (epilogs.pid[i] == pid) {
			epilog_judge(s, status);
			epilogs.pid[i] = epilogs.pid[--epilogs.n];
			return true;
		}
	return false;
}

bool prolog_is_idle(const struct step *s)
{
	(void)s;
	return !epilogs.n;
}
