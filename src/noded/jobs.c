/* jobs.c - jobs on this node (see jobs.h) */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "noded/events.h"
#include "model/stepid.h"
#include "noded/jobs.h"
#include "noded/mute.h"
#include "noded/namespace.h"
#include "noded/script.h"
#include "noded/script_env.h"
#include "noded/steps.h"
#include "noded/used.h"

#define RECENT 512
#define IO_FAILED_STATUS 53    /* how the reference reports a step whose files could not be opened: "signal 53" */

enum phase { JOB_NEW, JOB_PROLOG, JOB_READY, JOB_FAILED, JOB_EPILOG };

struct waiting { struct waiting *next; uint32_t step_id; uint8_t *data; size_t len; };

struct node_job {
	struct node_job *next;
	struct noded *node;
	uint32_t job_id, restarts;
	enum phase phase;
	char problem[64];              /* how its prolog failed */
	bool terminating, asked;       /* asked: slurmctld waits for the end of the prolog (D_PROLOG) */
	struct waiting *waiting;       /* launches until the prolog is over */
	struct envlist env;            /* of the scripts */
};

/* Runs that are over here, and runs whose batch script has ended here: the last ones of each. */
struct runs { struct { uint32_t job_id, restarts; } at[RECENT]; size_t next; };
static struct runs recent, ran;

static void runs_add(struct runs *r, uint32_t job_id, uint32_t restarts)
{
	r->at[r->next].job_id = job_id;
	r->at[r->next].restarts = restarts;
	r->next = (r->next + 1) % RECENT;
}

static bool runs_have(const struct runs *r, uint32_t job_id, uint32_t restarts)
{
	for (size_t i = 0; i < RECENT; i++)
		if (r->at[i].job_id == job_id && r->at[i].restarts == restarts)
			return true;
	return false;
}

void jobs_were_over(uint32_t job_id, uint32_t restarts) { runs_add(&recent, job_id, restarts); }

static void over_add(const struct noded *n, uint32_t job_id, uint32_t restarts)
{
	runs_add(&recent, job_id, restarts);
	steps_stopped((struct noded *)n, job_id, false);
	used_over(n, job_id, restarts);
	namespace_job_gone(n, job_id);
}

bool jobs_batch_ran(uint32_t job_id, uint32_t restarts) { return runs_have(&ran, job_id, restarts); }

static struct node_job *job_find(struct noded *n, uint32_t job_id)
{
	for (struct node_job *j = n->jobs; j; j = j->next)
		if (j->job_id == job_id)
			return j;
	return NULL;
}

static struct node_job *job_get(struct noded *n, uint32_t job_id, uint32_t restarts)
{
	struct node_job *j = job_find(n, job_id);
	if (!j) {
		j = xcalloc(1, sizeof *j);
		j->node = n;
		j->job_id = job_id;
		j->restarts = restarts;
		j->next = n->jobs;
		n->jobs = j;
	}
	return j;
}

static void launch_path(const struct node_job *j, uint32_t step_id, char *buf, size_t size)
{
	snprintf(buf, size, "%s/launch.%u.%u", j->node->spool, j->job_id, step_id);
}

static void waiting_free(struct node_job *j, struct waiting *w)
{
	char path[3072];
	launch_path(j, w->step_id, path, sizeof path);
	(void)unlink(path);
	free(w->data);
	free(w);
}

static void waiting_drop(struct node_job *j)
{
	for (struct waiting *w; (w = j->waiting);) {
		j->waiting = w->next;
		waiting_free(j, w);
	}
}

static void job_free(struct node_job *j)
{
	for (struct node_job **at = &j->node->jobs; *at; at = &(*at)->next)
		if (*at == j) {
			*at = j->next;
			break;
		}
	waiting_drop(j);
	envlist_fini(&j->env);
	free(j);
}

static void event_init(Pb__NodeEvent *e, Pb__NodeEvent__Kind kind, uint32_t job_id, uint32_t restarts)
{
	pb__node_event__init(e);
	e->kind = kind;
	e->has_job_id = e->has_restarts = true;
	e->job_id = job_id;
	e->restarts = restarts;
}

/* Whose fault is it that a step could not run? */
enum blame { BLAME_NODE, BLAME_NOBODY, BLAME_JOB };

static void launch_failed(struct noded *n, uint32_t job_id, uint32_t step_id, uint32_t restarts, int code, const char *text, enum blame blame)
{
	Pb__NodeEvent e;
	event_init(&e, PB__NODE_EVENT__KIND__LAUNCH_FAILED, job_id, restarts);
	e.has_step_id = e.has_error = e.has_drain = true;
	e.step_id = step_id;
	e.error = (uint32_t)abs(code);
	e.text = (char *)text;
	e.drain = blame == BLAME_NODE;
	e.has_again = e.again = blame == BLAME_NOBODY;
	log_error("launch of step %u.%d failed: %s", job_id, (int)step_id, text);
	events_push(n, &e);
}

/* In the spool, so that a slurmd that is killed during the prolog goes on with it: slurmctld has been told that the launch is here. */
static int launch_keep(const struct node_job *j, const struct waiting *w, struct error *err)
{
	char path[3072];
	launch_path(j, w->step_id, path, sizeof path);
	(void)unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t done = fd < 0 ? -1 : write(fd, w->data, w->len);
	int error = done == (ssize_t)w->len ? 0 : done < 0 ? errno : ENOSPC;
	if (fd >= 0)
		close(fd);
	return error ? error_set(err, error, "cannot write %s: %s", path, strerror(error)) : 0;
}

static int waiting_add(struct node_job *j, const Pb__StepdStart *start, struct error *err)
{
	struct waiting *w = xcalloc(1, sizeof *w), **at = &j->waiting;
	w->step_id = start->cred->step_id;
	w->len = pb__stepd_start__get_packed_size(start);
	w->data = xmalloc(w->len);
	pb__stepd_start__pack(start, w->data);
	int rc = launch_keep(j, w, err);
	if (rc < 0) {
		waiting_free(j, w);
		return rc;
	}
	while (*at)
		at = &(*at)->next;
	*at = w;
	return 0;
}

/* Launches that waited for the prolog. */
static void waiting_run(struct node_job *j)
{
	for (struct waiting *w; (w = j->waiting);) {
		struct error err = { 0 };
		Pb__StepdStart *start = pb__stepd_start__unpack(NULL, w->len, w->data);
		j->waiting = w->next;
		if (start && steps_spawn(j->node, start, &err) < 0)
			launch_failed(j->node, j->job_id, start->cred->step_id, j->restarts, err.code, err.line, BLAME_NODE);
		if (start)
			pb__stepd_start__free_unpacked(start, NULL);
		waiting_free(j, w);
	}
}

static void epilog_start(struct node_job *j);

static void prolog_failed(struct node_job *j)
{
	Pb__NodeEvent e;
	event_init(&e, PB__NODE_EVENT__KIND__LAUNCH_FAILED, j->job_id, j->restarts);
	e.has_error = e.has_drain = e.drain = e.has_prolog = e.prolog = true;
	e.error = ESLURM_DISABLED;
	e.text = j->problem;
	log_error("job %u: %s", j->job_id, j->problem);
	events_push(j->node, &e);
}

static void prolog_tell(struct node_job *j)
{
	Pb__NodeEvent e;
	if (j->phase == JOB_FAILED) {
		prolog_failed(j);
		return;
	}
	event_init(&e, PB__NODE_EVENT__KIND__PROLOG_DONE, j->job_id, j->restarts);
	events_push(j->node, &e);
}

static void on_prolog(struct noded *n, int status, void *arg)
{
	struct node_job *j = arg;
	j->phase = status ? JOB_FAILED : JOB_READY;
	if (status)
		snprintf(j->problem, sizeof j->problem, "%s %d", WIFSIGNALED(status) ? "killed by signal" : "exit status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (!j->terminating && !status)
		waiting_run(j);            /* the extern step among them: it is there when slurmctld hears that the node is ready */
	if (!j->terminating && (status || j->asked))
		prolog_tell(j);
	waiting_drop(j);
	if (j->terminating && !steps_count_job(n, j->job_id))
		epilog_start(j);
}

static void prolog_start(struct node_job *j, const Pb__JobRecord *job)
{
	j->phase = JOB_PROLOG;
	script_env_job(j->node, job, j->job_id, "prolog_slurmd", &j->env);
	script_run(j->node, CONF_Prolog, j->env.var, script_timeout(j->node, CONF_PrologTimeout), on_prolog, j);
}

int jobs_launch(struct noded *n, Pb__StepdStart *start, struct error *err)
{
	const Pb__StepCred *c = start->cred;
	uint32_t restarts = c->job->restarts;
	struct node_job *j = job_find(n, c->job_id);
	if (runs_have(&recent, c->job_id, restarts) || (j && j->terminating))
		return error_set(err, ESLURM_CRED, "job %u is ending on this node: its credential is revoked", c->job_id);
	bool has_prolog = script_is_set(n, CONF_Prolog);
	if (!j && !has_prolog)
		return steps_spawn(n, start, err);
	j = job_get(n, c->job_id, restarts);
	if (j->phase == JOB_FAILED)
		return error_set(err, ESLURM_DISABLED, "the prolog of job %u failed on this node", c->job_id);
	if (j->phase == JOB_READY || !has_prolog)
		return steps_spawn(n, start, err);
	int rc = waiting_add(j, start, err);
	if (!rc && j->phase == JOB_NEW)
		prolog_start(j, c->job);
	if (rc < 0 && j->phase == JOB_NEW)
		job_free(j);
	return rc;
}

static bool is_waiting(const struct node_job *j, uint32_t step_id)
{
	const struct waiting *w = j->waiting;
	while (w && w->step_id != step_id)
		w = w->next;
	return w != NULL;
}

/* Now, or when the prolog is over. False: it could not be, and slurmctld has been told. */
static bool extern_start(struct node_job *j, const Pb__StepdStart *start)
{
	struct noded *n = j->node;
	struct error err = { 0 };
	if (!start || is_waiting(j, STEP_ID_EXTERN) || steps_find(n, j->job_id, STEP_ID_EXTERN))
		return true;
	bool later = j->phase == JOB_PROLOG || (j->phase == JOB_NEW && script_is_set(n, CONF_Prolog));
	int rc = later ? waiting_add(j, start, &err) : steps_spawn(n, start, &err);
	if (rc < 0)
		launch_failed(n, j->job_id, STEP_ID_EXTERN, j->restarts, err.code, err.line, BLAME_NODE);
	return rc == 0;
}

void jobs_prolog_refused(struct noded *n, const Pb__PrologReq *req, const struct error *err)
{
	launch_failed(n, req->job_id, STEP_ID_EXTERN, req->restarts, err->code, err->line, BLAME_JOB);
}

int jobs_prolog(struct noded *n, const Pb__PrologReq *req, const Pb__StepdStart *start)
{
	struct node_job *j = job_find(n, req->job_id);
	if (runs_have(&recent, req->job_id, req->restarts) || (j && (j->terminating || j->restarts != req->restarts)))
		return -ESLURM_ALREADY_DONE;
	j = job_get(n, req->job_id, req->restarts);
	j->asked = true;
	if (j->phase != JOB_FAILED && !extern_start(j, start))
		return 0;
	if (j->phase == JOB_NEW && script_is_set(n, CONF_Prolog)) {
		prolog_start(j, req->job);
		return 0;
	}
	if (j->phase == JOB_NEW)
		j->phase = JOB_READY;
	if (j->phase != JOB_PROLOG)
		prolog_tell(j);
	return 0;
}

/* The step's end is known here and slurmctld has not taken it yet. */
static bool ended_unheard(const struct noded *n, const Pb__StepCred *c)
{
	const Pb__NodeEvent *e;
	for (size_t i = 0; (e = events_at(n, i)); i++)
		if (e->job_id == c->job_id && e->has_step_id && e->step_id == c->step_id && e->restarts == c->job->restarts)
			return true;
	return c->step_id == STEP_ID_BATCH && jobs_batch_ran(c->job_id, c->job->restarts);
}

static void launch_again(struct noded *n, const char *path)
{
	struct error err = { 0 };
	struct stat st;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint8_t *data = fd >= 0 && !fstat(fd, &st) && st.st_size > 0 ? xmalloc((size_t)st.st_size) : NULL;
	ssize_t len = data ? read(fd, data, (size_t)st.st_size) : -1;
	Pb__StepdStart *start = len > 0 && len == st.st_size ? pb__stepd_start__unpack(NULL, (size_t)len, data) : NULL;
	if (fd >= 0)
		close(fd);
	free(data);
	(void)unlink(path);
	if (!start)
		return;                    /* cut off: it was never answered */
	const Pb__StepCred *c = start->cred;
	if (steps_find(n, c->job_id, c->step_id) || ended_unheard(n, c)) {      /* it had been started */
		pb__stepd_start__free_unpacked(start, NULL);
		return;
	}
	log_info("launch of step %u.%d was under way when slurmd was killed; going on with it", c->job_id, (int)c->step_id);
	if (jobs_launch(n, start, &err) < 0)
		log_error("%s", err.line);
	pb__stepd_start__free_unpacked(start, NULL);
}

void jobs_launch_again(struct noded *n)
{
	char path[3072];
	glob_t found;
	snprintf(path, sizeof path, "%s/launch.*", n->spool);
	if (glob(path, GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		launch_again(n, found.gl_pathv[i]);
	globfree(&found);
}

void jobs_each_waiting(const struct noded *n, void (*fn)(uint32_t job_id, uint32_t step_id, uint32_t restarts, void *arg), void *arg)
{
	for (const struct node_job *j = n->jobs; j; j = j->next)
		for (const struct waiting *w = j->waiting; w; w = w->next)
			fn(j->job_id, w->step_id, j->restarts, arg);
}

static void job_over(struct node_job *j)
{
	Pb__NodeEvent e;
	event_init(&e, PB__NODE_EVENT__KIND__EPILOG_DONE, j->job_id, j->restarts);
	over_add(j->node, j->job_id, j->restarts);
	events_push(j->node, &e);
	job_free(j);
}

static void on_epilog(struct noded *n, int status, void *arg)
{
	struct node_job *j = arg;
	Pb__NodeEvent e;
	if (!status) {
		job_over(j);
		return;
	}
	event_init(&e, PB__NODE_EVENT__KIND__EPILOG_DONE, j->job_id, j->restarts);
	e.has_drain = e.drain = e.has_status = true;
	e.status = (uint32_t)status;
	e.text = "Epilog error";
	log_error("epilog of job %u failed with status %d", j->job_id, status);
	over_add(n, j->job_id, j->restarts);
	events_push(n, &e);
	job_free(j);
}

/* Nothing of the job is left on the node. */
static void epilog_start(struct node_job *j)
{
	if (j->phase == JOB_EPILOG)
		return;
	j->phase = JOB_EPILOG;
	if (!script_is_set(j->node, CONF_Epilog)) {
		job_over(j);
		return;
	}
	envlist_set(&j->env, "SLURM_SCRIPT_CONTEXT", "epilog_slurmd");
	script_run(j->node, CONF_Epilog, j->env.var, script_timeout(j->node, CONF_EpilogTimeout), on_epilog, j);
}

static void terminate_step(struct node_step *st, const Pb__TerminateReq *req)
{
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	order.kind = PB__STEPD_ORDER__KIND__TERMINATE;
	order.text = req->why;
	order.end = req->end;
	order.has_kill_wait_sec = true;
	order.kill_wait_sec = req->has_kill_wait_sec ? req->kill_wait_sec : (uint32_t)conf_num(st->node->conf, CONF_KillWait);
	steps_order(st, &order);
	mute_watch(st, order.kill_wait_sec);
}

/* An order may come late (its first answer was lost, it is sent again) and speak of a run before the one that is here now. */
void jobs_terminate(struct noded *n, const Pb__TerminateReq *req)
{
	struct node_job *j = job_find(n, req->job_id);
	bool late = req->has_restarts && j && j->restarts > req->restarts;
	for (struct node_step *st = n->steps; st; st = st->next) {
		if (st->job_id != req->job_id || (req->has_step_id && st->step_id != req->step_id))
			continue;
		if (steps_is_later(st, req->has_restarts, req->restarts))
			late = true;
		else
			terminate_step(st, req);
	}
	if (req->has_step_id)
		return;
	if (late || (!j && !steps_count_job(n, req->job_id) && runs_have(&recent, req->job_id, req->restarts))) {
		Pb__NodeEvent e;
		event_init(&e, PB__NODE_EVENT__KIND__EPILOG_DONE, req->job_id, req->restarts);
		events_push(n, &e);
		return;
	}
	j = job_get(n, req->job_id, req->restarts);
	j->terminating = true;
	if (req->job || !j->env.count)
		script_env_job(n, req->job, req->job_id, "epilog_slurmd", &j->env);
	if (j->phase != JOB_PROLOG && !steps_count_job(n, req->job_id))
		epilog_start(j);
}

static const char stepd_killed[] = "slurmstepd was killed";

static bool is_killed(const Pb__StepdEvent *event) { return !event || (event->has_killed && event->killed); }

/* What slurmctld is told of a step's end. */
static void report_end(struct noded *n, const struct node_step *st, const Pb__StepdEvent *event, bool clean)
{
	Pb__NodeEvent e;
	event_init(&e, st->batch ? PB__NODE_EVENT__KIND__BATCH_DONE : PB__NODE_EVENT__KIND__STEP_DONE, st->job_id, st->restarts);
	e.has_step_id = e.has_status = true;
	e.step_id = st->step_id;
	e.status = event ? event->status : SIGKILL;
	e.text = event ? event->text : (char *)stepd_killed;
	e.has_killed = e.killed = is_killed(event);
	if (event && event->kind == PB__STEPD_EVENT__KIND__FAILED) {
		e.status = IO_FAILED_STATUS;
		e.has_error = true;
		e.error = event->error;
		e.has_drain = e.drain = event->has_node_fault && event->node_fault;
	}
	e.usage = event ? event->usage : NULL;
	e.has_oom = event && event->oom;
	e.oom = e.has_oom;
	e.has_clean = e.clean = clean;
	events_push(n, &e);
}

/* A batch script that never began, and not because of anything the user said: slurmctld lets it begin elsewhere. */
static bool batch_never_began(struct noded *n, const struct node_step *st, const Pb__StepdEvent *event)
{
	const struct node_job *j = job_find(n, st->job_id);
	bool node_fault = event && event->has_node_fault && event->node_fault;
	bool killed = is_killed(event);
	if (!st->batch || (j && j->terminating) || !(node_fault || (killed && !(event && event->started))))
		return false;
	runs_add(&ran, st->job_id, st->restarts);       /* a launch of it that is sent again comes too late */
	launch_failed(n, st->job_id, st->step_id, st->restarts, node_fault ? (int)event->error : ESLURM_DISABLED, node_fault ? event->text : stepd_killed,
		      node_fault ? BLAME_NODE : BLAME_NOBODY);
	return true;
}

void jobs_step_end(struct noded *n, struct node_step *st, const Pb__StepdEvent *event)
{
	struct node_job *j = job_find(n, st->job_id);
	if (batch_never_began(n, st, event))
		return;
	if (st->batch)
		runs_add(&ran, st->job_id, st->restarts);
	bool left = steps_count_job(n, st->job_id) > 0;
	bool clean = st->batch && !left && !script_is_set(n, CONF_Epilog) && !(j && j->terminating);
	char id[40];
	stepid_format(st->job_id, st->step_id, id, sizeof id);
	log_flag(STEPS, "StepId=%s ended with status %u%s", id, event ? event->status : SIGKILL, clean ? ", job is over here" : "");
	log_debug("step %u.%d ended with status %u%s", st->job_id, (int)st->step_id, event ? event->status : SIGKILL, clean ? ", job is over here" : "");
	if (clean)
		over_add(n, st->job_id, st->restarts);
	report_end(n, st, event, clean);
	if (clean) {
		if (j)
			job_free(j);
	} else if (j && j->terminating && !left && j->phase != JOB_PROLOG) {
		epilog_start(j);
	}
}

void jobs_step_adopted(struct noded *n, struct node_step *st)
{
	struct node_job *j = job_get(n, st->job_id, st->restarts);
	if (j->phase == JOB_NEW)
		j->phase = JOB_READY;      /* its prolog ran before we were started */
}

void jobs_node_fault(struct noded *n, const char *text)
{
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	e.kind = PB__NODE_EVENT__KIND__LAUNCH_FAILED;
	e.has_drain = e.drain = true;
	e.text = (char *)text;
	events_push(n, &e);
}
