/* script.c - runs the site's programs (see script.h) */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/hostlist.h"
#include "noded/plugins.h"
#include "noded/script.h"

struct script {
	struct script *next;
	struct noded *node;
	struct hostlist path;          /* used as a list of strings */
	size_t at;
	struct envlist env;
	char *out;                     /* file its output goes to; NULL: /dev/null */
	pid_t pid;
	int status;
	uint32_t timeout_sec;
	bool serial;                   /* PrologFlags=Serial: not beside another such */
	uv_timer_t timer;
	script_done_fn done;
	void *arg;
};
static struct script *running;
#define TURN_MS 10         /* how often one that must wait for another's end looks again */

bool script_is_set(const struct noded *n, enum conf_key key)
{
	const char *const *list;
	return conf_list(n->conf, key, &list) > 0 || plugins_have(key);
}

uint32_t script_timeout(const struct noded *n, enum conf_key key)
{
	uint64_t sec = conf_is_set(n->conf, key) ? conf_num(n->conf, key) : conf_num(n->conf, CONF_PrologEpilogTimeout);
	return sec >= 65534 ? 0 : (uint32_t)sec;
}

static void on_closed(uv_handle_t *h)
{
	struct script *s = h->data;
	hostlist_fini(&s->path);
	envlist_fini(&s->env);
	free(s->out);
	free(s);
}

static void script_next(struct script *s);

static void script_end(struct script *s)
{
	for (struct script **at = &running; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	if (s->done)
		s->done(s->node, s->status, s->arg);
	uv_close((uv_handle_t *)&s->timer, on_closed);
}

static void on_timeout(uv_timer_t *timer)
{
	struct script *s = timer->data;
	log_error("%s did not end within %u s, killing it", s->path.name[s->at], s->timeout_sec);
	kill(-s->pid, SIGKILL);
}

static void on_later(uv_timer_t *timer) { script_next(timer->data); }

static int script_exec(struct script *s)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, 0, 1);
	if (s->out)
		posix_spawn_file_actions_addopen(&actions, 1, s->out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&actions, s->out ? 1 : 0, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	char *path = s->path.name[s->at], *argv[] = { path, NULL };
	int rc = posix_spawn(&s->pid, path, &actions, &attr, argv, s->env.var);
	log_flag(SCRIPT, "running %s%s%s", path, rc ? ": " : "", rc ? strerror(rc) : "");
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return rc;
}

static bool serial_runs(void)
{
	for (const struct script *s = running; s; s = s->next)
		if (s->serial && s->pid)
			return true;
	return false;
}

/* Start the next program, or end. Called on the loop only, so that `done` never runs inside script_run. */
static void script_next(struct script *s)
{
	uv_timer_stop(&s->timer);
	if (s->status || s->at >= s->path.count) {
		script_end(s);
		return;
	}
	if (s->serial && serial_runs()) {
		uv_timer_start(&s->timer, on_later, TURN_MS, 0);
		return;
	}
	int rc = script_exec(s);
	if (rc) {
		log_error("cannot run %s: %s", s->path.name[s->at], strerror(rc));
		s->pid = 0;
		s->status = 127 << 8;
		script_end(s);
		return;
	}
	if (s->timeout_sec)
		uv_timer_start(&s->timer, on_timeout, (uint64_t)s->timeout_sec * 1000, 1000);
}

bool script_reaped(struct noded *n, pid_t pid, int status)
{
	(void)n;
	for (struct script *s = running; s; s = s->next) {
		if (s->pid != pid)
			continue;
		if (s->done)               /* nobody waits for what RebootProgram leaves to run */
			kill(-pid, SIGKILL);   /* children it left in its group */
		s->pid = 0;
		log_flag(SCRIPT, "%s ended with status %d:%d", s->path.name[s->at], status >> 8 & 255, status & 127);
		if (status)
			log_error("%s ended with status %d", s->path.name[s->at], status);
		s->status = status;
		s->at++;
		script_next(s);
		return true;
	}
	return false;
}

static struct script *script_create(struct noded *n, char *const *env, uint32_t timeout_sec, script_done_fn done, void *arg)
{
	struct script *s = xcalloc(1, sizeof *s);
	size_t vars = 0;
	while (env && env[vars])
		vars++;
	envlist_load(&s->env, env, vars);
	s->node = n;
	s->timeout_sec = timeout_sec;
	s->done = done;
	s->arg = arg;
	uv_timer_init(&n->loop, &s->timer);
	s->timer.data = s;
	s->next = running;
	running = s;
	return s;
}

/* A path, absolute or beside slurm.conf, or a pattern of several: those in reverse order of their names. */
static void script_add(struct script *s, const char *path)
{
	char *conf = xstrdup(conf_path(s->node->conf)), *full = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", dirname(conf), path);
	glob_t found;
	if (!glob(full, GLOB_NOCHECK, NULL, &found)) {
		for (size_t i = found.gl_pathc; i-- > 0;)
			hostlist_push(&s->path, found.gl_pathv[i]);
		globfree(&found);
	}
	free(full);
	free(conf);
}

void script_run(struct noded *n, enum conf_key key, char *const *env, uint32_t timeout_sec, script_done_fn done, void *arg)
{
	const char *const *list;
	size_t count = conf_list(n->conf, key, &list);
	struct script *s = script_create(n, env, timeout_sec, done, arg);
	s->serial = conf_has(n->conf, CONF_PrologFlags, "Serial");
	if (plugins_have(key)) {
		plugins_script_env(n, key, &s->env);
		hostlist_push(&s->path, n->stepd_path);
	}
	for (size_t i = 0; i < count; i++)
		script_add(s, list[i]);
	uv_timer_start(&s->timer, on_later, 0, 0);
}

void script_run_one(struct noded *n, const char *path, char *const *env, uint32_t timeout_sec, script_done_fn done, void *arg)
{
	script_run_to(n, path, env, NULL, timeout_sec, done, arg);
}

void script_run_to(struct noded *n, const char *path, char *const *env, const char *out, uint32_t timeout_sec, script_done_fn done, void *arg)
{
	struct script *s = script_create(n, env, timeout_sec, done, arg);
	s->out = xstrdup_null(out);
	script_add(s, path);
	uv_timer_start(&s->timer, on_later, 0, 0);
}
