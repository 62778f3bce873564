/* jobs.c - jobs on this node (see jobs.h) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/log.h"
#include "noded/events.h"
#include "noded/jobs.h"
#include "noded/script.h"
#include "noded/script_env.h"
#include "noded/steps.h"

#define RECENT 512
#define IO_FAILED_STATUS 53    /* how the reference reports a step whose files could not be opened: "signal 53" */

enum phase { JOB_NEW, JOB_PROLOG, JOB_READY, JOB_FAILED, JOB_EPILOG };

struct waiting { struct waiting *next; uint8_t *data; size_t len; };

struct node_job {
	struct node_job *next;
	struct noded *node;
	uint32_t job_id, restarts;
	enum phase phase;
	bool terminating;
	struct waiting *waiting;       /* launches until the prolog is over */
	struct envlist env;            /* of the scripts */
};

static struct { uint32_t job_id, restarts; } recent[RECENT];
static size_t recent_at;

static void recent_add(uint32_t job_id, uint32_t restarts)
{
	recent[recent_at].job_id = job_id;
	recent[recent_at].restarts = restarts;
	recent_at = (recent_at + 1) % RECENT;
}

static bool recent_has(uint32_t job_id, uint32_t restarts)
{
	for (size_t i = 0; i < RECENT; i++)
		if (recent[i].job_id == job_id && recent[i].restarts == restarts)
			return true;
	return false;
}

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

static void waiting_drop(struct node_job *j)
{
	for (struct waiting *w; (w = j->waiting);) {
		j->waiting = w->next;
		free(w->data);
		free(w);
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

static void launch_failed(struct noded *n, uint32_t job_id, uint32_t step_id, uint32_t restarts, int code, const char *text, bool drain)
{
	Pb__NodeEvent e;
	event_init(&e, PB__NODE_EVENT__KIND__LAUNCH_FAILED, job_id, restarts);
	e.has_step_id = e.has_error = e.has_drain = true;
	e.step_id = step_id;
	e.error = (uint32_t)abs(code);
	e.text = (char *)text;
	e.drain = drain;
	log_error("launch of step %u.%d failed: %s", job_id, (int)step_id, text);
	events_push(n, &e);
}

static void waiting_add(struct node_job *j, const Pb__StepdStart *start)
{
	struct waiting *w = xcalloc(1, sizeof *w), **at = &j->waiting;
	w->len = pb__stepd_start__get_packed_size(start);
	w->data = xmalloc(w->len);
	pb__stepd_start__pack(start, w->data);
	while (*at)
		at = &(*at)->next;
	*at = w;
}

/* Launches that waited for the prolog: start them, or report that they cannot. */
static void waiting_run(struct node_job *j, const char *problem)
{
	for (struct waiting *w; (w = j->waiting);) {
		struct error err = { 0 };
		Pb__StepdStart *start = pb__stepd_start__unpack(NULL, w->len, w->data);
		j->waiting = w->next;
		if (start && (problem || steps_spawn(j->node, start, &err) < 0))
			launch_failed(j->node, j->job_id, start->cred->step_id, j->restarts, problem ? ESLURM_DISABLED : err.code, problem ? problem : err.line,
				      true);
		if (start)
			pb__stepd_start__free_unpacked(start, NULL);
		free(w->data);
		free(w);
	}
}

static void epilog_start(struct node_job *j);

static void on_prolog(struct noded *n, int status, void *arg)
{
	struct node_job *j = arg;
	char problem[128];
	j->phase = status ? JOB_FAILED : JOB_READY;
	if (status)
		snprintf(problem, sizeof problem, "Prolog error: %s %d", WIFSIGNALED(status) ? "killed by signal" : "exit status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (!j->terminating)
		waiting_run(j, status ? problem : NULL);
	waiting_drop(j);
	if (j->terminating && !steps_count_job(n, j->job_id))
		epilog_start(j);
}

static void prolog_start(struct node_job *j, const Pb__StepdStart *start)
{
	j->phase = JOB_PROLOG;
	script_env_job(j->node, start->cred->job, start->cred->job_id, "prolog_slurmd", &j->env);
	script_run(j->node, CONF_Prolog, j->env.var, script_timeout(j->node, CONF_PrologTimeout), on_prolog, j);
}

int jobs_launch(struct noded *n, Pb__StepdStart *start, struct error *err)
{
	const Pb__StepCred *c = start->cred;
	uint32_t restarts = c->job->restarts;
	struct node_job *j = job_find(n, c->job_id);
	if (recent_has(c->job_id, restarts) || (j && j->terminating))
		return error_set(err, ESLURM_CRED, "job %u is ending on this node: its credential is revoked", c->job_id);
	bool has_prolog = script_is_set(n, CONF_Prolog);
	if (!j && !has_prolog)
		return steps_spawn(n, start, err);
	j = job_get(n, c->job_id, restarts);
	if (j->phase == JOB_FAILED)
		return error_set(err, ESLURM_DISABLED, "the prolog of job %u failed on this node", c->job_id);
	if (j->phase == JOB_READY || !has_prolog)
		return steps_spawn(n, start, err);
	waiting_add(j, start);
	if (j->phase == JOB_NEW)
		prolog_start(j, start);
	return 0;
}

static void job_over(struct node_job *j)
{
	Pb__NodeEvent e;
	event_init(&e, PB__NODE_EVENT__KIND__EPILOG_DONE, j->job_id, j->restarts);
	events_push(j->node, &e);
	recent_add(j->job_id, j->restarts);
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
	events_push(n, &e);
	recent_add(j->job_id, j->restarts);
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
	order.has_kill_wait_sec = true;
	order.kill_wait_sec = req->has_kill_wait_sec ? req->kill_wait_sec : (uint32_t)conf_num(st->node->conf, CONF_KillWait);
	steps_order(st, &order);
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
	if (late || (!j && !steps_count_job(n, req->job_id) && recent_has(req->job_id, req->restarts))) {
		Pb__NodeEvent e;
		event_init(&e, PB__NODE_EVENT__KIND__EPILOG_DONE, req->job_id, req->restarts);
		events_push(n, &e);
		return;
	}
	j = job_get(n, req->job_id, req->restarts);
	j->terminating = true;
	if (!j->env.count)
		script_env_job(n, req->job, req->job_id, "epilog_slurmd", &j->env);
	if (j->phase != JOB_PROLOG && !steps_count_job(n, req->job_id))
		epilog_start(j);
}

/* What slurmctld is told of a step's end. */
static void report_end(struct noded *n, const struct node_step *st, const Pb__StepdEvent *event, bool clean)
{
	Pb__NodeEvent e;
	event_init(&e, st->batch ? PB__NODE_EVENT__KIND__BATCH_DONE : PB__NODE_EVENT__KIND__STEP_DONE, st->job_id, st->restarts);
	e.has_step_id = e.has_status = true;
	e.step_id = st->step_id;
	e.status = event ? event->status : SIGKILL;
	e.text = event ? event->text : "slurmstepd was killed";
	if (event && event->kind == PB__STEPD_EVENT__KIND__FAILED) {
		e.status = IO_FAILED_STATUS;
		e.has_error = true;
		e.error = event->error;
	}
	e.usage = event ? event->usage : NULL;
	e.has_oom = event && event->oom;
	e.oom = e.has_oom;
	e.has_clean = e.clean = clean;
	events_push(n, &e);
}

void jobs_step_end(struct noded *n, struct node_step *st, const Pb__StepdEvent *event)
{
	struct node_job *j = job_find(n, st->job_id);
	bool left = steps_count_job(n, st->job_id) > 0;
	bool clean = st->batch && !left && !script_is_set(n, CONF_Epilog) && !(j && j->terminating);
	log_debug("step %u.%d ended with status %u%s", st->job_id, (int)st->step_id, event ? event->status : SIGKILL, clean ? ", job is over here" : "");
	report_end(n, st, event, clean);
	if (clean) {
		recent_add(st->job_id, st->restarts);
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

void jobs_kill_failed(struct noded *n, struct node_step *st)
{
	Pb__NodeEvent e;
	const char *program = conf_str(n->conf, CONF_UnkillableStepProgram);
	event_init(&e, PB__NODE_EVENT__KIND__KILL_FAILED, st->job_id, st->restarts);
	e.has_step_id = e.has_drain = e.drain = true;
	e.step_id = st->step_id;
	e.text = "Kill task failed";
	events_push(n, &e);
	if (program && *program) {
		struct envlist env = ENVLIST_INIT;
		script_env_job(n, NULL, st->job_id, "unkillable_step", &env);
		envlist_setf(&env, "SLURM_STEP_ID", "%u", st->step_id);
		script_run_one(n, program, env.var, 300, NULL, NULL);
		envlist_fini(&env);
	}
}
