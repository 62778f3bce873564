/* oci.c - slurmstepd's side of containers (see oci.h) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "stepd/contain.h"
#include "stepd/namespace.h"
#include "stepd/oci.h"
#include "stepd/step.h"
#include "stepd/user.h"

#define HELPER "slurmstepd-oci"
#define CLEAN_SEC 30           /* then the helper that cleans up is killed */

static struct {
	char *spool;               /* folder of this step; NULL: no container */
	pid_t cleaner;
	bool cleaned;
	uv_timer_t timer;
} oci;

/* The bundle asked for; NULL: none, or this node runs no containers. */
static const char *bundle_of(const struct step *s)
{
	const Pb__StepDesc *d = s->cred->desc;
	const Pb__JobDesc *job = s->cred->job->desc;
	bool of_job = s->batch || s->step_id == STEP_ID_INTERACTIVE;
	const char *bundle = d && d->container ? d->container : of_job && job ? job->container : NULL;
	return bundle && *bundle && (step_conf(s, "OciRunTimeRun") || step_conf(s, "OciRunTimeCreate")) ? bundle : NULL;
}

static struct oci_names names_of(const struct step *s, char job[16], char uid[16])
{
	snprintf(job, 16, "%u", s->job_id);
	snprintf(uid, 16, "%u", s->uid);
	return (struct oci_names){ .job = job, .uid = uid, .node = s->node, .step = strchr(s->name, '.') + 1, .user = s->cred->user, .bundle = bundle_of(s) };
}

static void task_dir(const struct step *s, const struct task *t, char *buf, size_t size) { (void)s; snprintf(buf, size, "%s/task-%u", oci.spool, t->rank); }

static int dir_make(struct step *s, const char *path)
{
	int rc = user_dir_make(s, path, 0770);
	bool planted = rc == -ELOOP || rc == -ENOTDIR; /* a link or a file of the user's: not the node's fault */
	return rc ? (planted ? step_fail : step_fail_node)(s, -rc, "cannot make the folder %s of a container: %s", path, strerror(-rc)) : 0;
}

int oci_prepare(struct step *s)
{
	char job[16], uid[16], path[4096];
	if (!bundle_of(s))
		return 0;
	struct oci_names names = names_of(s, job, uid);
	const char *base = step_conf(s, "OciContainerPath");
	char *expanded = base ? oci_pattern(base, &names) : NULL;
	oci.spool = expanded ? expanded : xasprintf("%s/oci-job%u-%s", s->start->spool_dir, s->job_id, names.step);
	int rc = dir_make(s, oci.spool);
	for (uint32_t i = 0; !rc && i < s->tasks; i++) {
		task_dir(s, &s->task[i], path, sizeof path);
		rc = dir_make(s, path);
	}
	return rc;
}

/* Words for the helper: what to do, name=value, "--", the program. */
struct words { char **w; size_t n, cap; };

static void word_add(struct words *w, char *text)
{
	w->w = xgrow(w->w, &w->cap, w->n + 2, sizeof *w->w);
	w->w[w->n++] = text;
	w->w[w->n] = NULL;
}

static void settings_add(const struct step *s, struct words *w)
{
	for (size_t i = 0; i < s->start->n_conf; i++)
		if (str_starts(s->start->conf[i]->key, "Oci"))
			word_add(w, xasprintf("%s=%s", s->start->conf[i]->key, s->start->conf[i]->value));
	char job[16], uid[16];
	struct oci_names n = names_of(s, job, uid);
	const struct { const char *name, *value; } rows[] = {
		{ "bundle", n.bundle }, { "job", n.job }, { "step", n.step }, { "node", n.node }, { "user", n.user }, { "uid", n.uid }, { "spool", oci.spool },
		{ "home", s->cred->home }, { "conf", step_conf(s, "ConfPath") },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		word_add(w, xasprintf("%s=%s", rows[i].name, rows[i].value ? rows[i].value : ""));
}

static void helper_path(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - sizeof HELPER - 1);
	buf[n > 0 ? n : 0] = 0;
	char *slash = strrchr(buf, '/');
	snprintf(slash ? slash + 1 : buf, sizeof HELPER, "%s", HELPER);
}

int oci_exec(struct step *s, struct task *t, char **argv, char **env)
{
	char path[1024];
	struct words w = { 0 };
	if (!oci.spool)
		return 0;
	char *config = xasprintf("%s/config.json", bundle_of(s));
	if (!step_conf(s, "OciIgnoreFileConfigJson") && access(config, R_OK) < 0)
		return errno;
	word_add(&w, (char *)HELPER);
	word_add(&w, (char *)"run");
	settings_add(s, &w);
	word_add(&w, xasprintf("task=%u", t->rank));
	word_add(&w, xasprintf("work_dir=%s", s->spec && s->spec->cwd ? s->spec->cwd : ""));
	word_add(&w, xasprintf("terminal=%s", s->spec && s->spec->pty ? "yes" : "no"));
	if (s->script)
		word_add(&w, xasprintf("script=%s", s->script));
	word_add(&w, (char *)"--");
	for (size_t i = 0; argv[i]; i++)
		word_add(&w, argv[i]);
	helper_path(path, sizeof path);
	execve(path, w.w, env);
	return errno;
}

/* --- the end -------------------------------------------------------------------------------------------- */

static void clean_exec(struct step *s)
{
	char path[1024];
	struct words w = { 0 };
	static char path_env[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	helper_path(path, sizeof path);
	if (namespace_enter(s) < 0 || user_become(s) < 0)
		_exit(1);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	word_add(&w, (char *)HELPER);
	word_add(&w, (char *)"clean");
	settings_add(s, &w);
	execve(path, w.w, (char *[]){ path_env, NULL });
	_exit(127);
}

static void on_late(uv_timer_t *timer)
{
	(void)timer;
	log_error("what cleans up after the containers does not end and is killed");
	kill(oci.cleaner, SIGKILL);
}

bool oci_finish(struct step *s)
{
	if (!oci.spool || oci.cleaned)
		return true;
	if (oci.cleaner)
		return false;
	oci.cleaner = fork();                      /* not into the step's cgroup: all in there has been killed, and what joins it may be as well */
	if (!oci.cleaner)
		clean_exec(s);
	if (oci.cleaner < 0) {
		log_error("cannot clean up after the containers: %s", strerror(errno));
		return oci.cleaned = true;
	}
	uv_timer_init(&s->loop, &oci.timer);
	uv_timer_start(&oci.timer, on_late, CLEAN_SEC * 1000, 0);
	return false;
}

bool oci_is_cleaning(void) { return oci.cleaner > 0 && !oci.cleaned; }

bool oci_reaped(struct step *s, pid_t pid, int status)
{
	char path[4096];
	if (!oci.cleaner || pid != oci.cleaner)
		return false;
	oci.cleaned = true;
	uv_timer_stop(&oci.timer);
	if (status)
		log_error("cleaning up after the containers ended with status %d", status);
	if (step_conf(s, "OciDisableCleanup"))
		return true;
	for (uint32_t i = 0; i < s->tasks; i++) {
		task_dir(s, &s->task[i], path, sizeof path);
		(void)rmdir(path);
	}
	if (rmdir(oci.spool) < 0 && errno != ENOENT)
		log_error("cannot remove %s: %s", oci.spool, strerror(errno));
	return true;
}
