/* configure.c - what is done for a job between having its nodes and running, and when it is over
 *
 *   job_start -> PrologSlurmctld (FX_SCRIPT, EV_SCRIPT_DONE) -> with PrologFlags=Alloc the prologs on all its nodes, with Contain the extern step too (FX_PROLOG, PROLOG_DONE) -> ready: FX_ALLOCATED, the
 *   batch script is launched, steps that waited are made. Until then the job is RUNNING with the flag CONFIGURING.
 *   job_end, job_requeue -> EpilogSlurmctld, beside the epilogs on its nodes; the job stays COMPLETING until that has ended too.
 *
 * Nothing of it is lost with the controller: the flag and epilog_ctld are in the record, the scripts are run again, nodes answer again for a prolog that is over. */
#include <stdlib.h>

#include "core/state.h"

#define BACKOFF_SEC 5

static void script_ask(struct core *c, struct core_job *j, bool epilog)
{
	struct core_effect *e = effects_push(c->fx, FX_SCRIPT);
	e->job_id = j->id;
	e->epilog = epilog;
	e->value = run_of(j);
}

static void prologs_ask(struct core *c, struct core_job *j, const char *nodes, Pb__StepLayout *layout)
{
	struct arena *a = fx_arena(c);
	Pb__PrologReq *m = arena_alloc(a, sizeof *m);
	pb__prolog_req__init(m);
	m->job_id = j->id;
	m->restarts = j->restarts;
	m->job = record_message(c, j, a);
	m->layout = layout;
	fx_to_nodes(c, FX_PROLOG, j->id, nodes, m);
}

static void ready(struct core *c, struct core_job *j)
{
	bool was = j->flags & JOBF_CONFIGURING;
	j->flags &= ~(uint32_t)JOBF_CONFIGURING;
	if (was)
		fx_persist(c, j);
	fx_job(c, FX_ALLOCATED, j);
	if (job_has_script(j)) {
		step_special(c, j, STEP_ID_BATCH);
		j->unlaunched = c->params.gang && j->alloc->share && !gang_can_run(c, j); /* another's turn: gang_settle suspends it */
		if (!j->unlaunched)
			job_launch(c, j);
	}
	gang_look(c, j);
	step_waits_retry(c, j);
}

static void nodes_prepare(struct core *c, struct core_job *j)
{
	if (!c->params.prolog_alloc) {
		ready(c, j);
		return;
	}
	char *nodes = job_nodes_text(c, j);
	if (!c->params.prolog_nohold) {
		for (uint32_t i = 0; i < j->alloc->n; i++)
			j->alloc->on[i].preparing = true;
		j->preparing = j->alloc->n;
		j->flags |= JOBF_CONFIGURING;
		fx_persist(c, j);
	}
	prologs_ask(c, j, nodes, c->params.prolog_contain ? step_extern(c, j) : NULL);
	free(nodes);
	if (c->params.prolog_nohold)
		ready(c, j);
}

void configure_begin(struct core *c, struct core_job *j)
{
	assert(j->state == PB__JOB_STATE__RUNNING && !j->preparing);
	if (!c->params.prolog_ctld) {
		nodes_prepare(c, j);
		return;
	}
	j->flags |= JOBF_CONFIGURING;
	fx_persist(c, j);
	script_ask(c, j, false);
}

void configure_stop(struct core_job *j)
{
	j->flags &= ~(uint32_t)JOBF_CONFIGURING;
	for (uint32_t i = 0; j->preparing && i < j->alloc->n; i++)
		j->alloc->on[i].preparing = false;
	j->preparing = 0;
}

void configure_over(struct core *c, struct core_job *j)
{
	j->epilog_ctld = c->params.epilog_ctld;
	if (j->epilog_ctld)
		script_ask(c, j, true);
}

void configure_node_ready(struct core *c, struct core_job *j, uint32_t node)
{
	int at = job_at_node(j, node);
	if (at < 0 || !j->alloc->on[at].preparing)
		return;
	j->alloc->on[at].preparing = false;
	if (!--j->preparing)
		ready(c, j);
}

void configure_node_back(struct core *c, struct core_job *j, uint32_t node)
{
	int at = job_at_node(j, node);
	const struct step *s = step_find(j, STEP_ID_EXTERN);
	if (at >= 0 && j->alloc->on[at].preparing)
		prologs_ask(c, j, c->node[node]->name, s ? layout_message(c, j, s, fx_arena(c)) : NULL);
}

/* Back to the queue where that may be, else the end; `hold`: it needs somebody to look at it first. */
static void give_up(struct core *c, struct core_job *j, bool hold, bool force)
{
	if (!j->batch || !(j->requeue || force)) {
		job_cancel(c, j, 0);
		return;
	}
	if (hold) {
		j->hold = REASON_LAUNCH_FAILED_HELD;
		xstr_set(&job_x(j)->wait_text, j->x->why);
	}
	/* At once it would only fail again, as fast as scripts can run. */
	uint32_t pause = BACKOFF_SEC << (j->restarts < 4 ? j->restarts : 4);
	job_requeue(c, j, hold, 0, pause > c->params.requeue_delay_sec ? pause : c->params.requeue_delay_sec);
}

void configure_prolog_failed(struct core *c, struct core_job *j, uint32_t node, const char *detail)
{
	struct job_extra *x = job_x(j);
	free(x->why);
	x->why = xasprintf("Prolog failure on node %s%s%s", c->node[node]->name, detail ? ": " : "", detail ? detail : "");
	xstr_set(&x->fail_node, c->node[node]->name);
	c->launches_failed++;
	fx_log(c, LOG_L_ERROR, "job %u: %s", j->id, x->why);
	node_drain(c, c->node[node], "Prolog error");
	give_up(c, j, !c->params.prolog_fail_nohold, c->params.prolog_force_requeue);
}

static void epilog_done(struct core *c, struct core_job *j)
{
	if (!j->epilog_ctld)
		return;
	j->epilog_ctld = false;
	fx_persist(c, j);
	if (job_is_clean(j))
		life_finish(c, j);
}

void configure_script_done(struct core *c, const struct core_event *ev)
{
	struct core_job *j = job_find(c, ev->script.job_id);
	if (!j || ev->script.restarts != run_of(j))
		return;
	if (ev->script.epilog) {
		epilog_done(c, j);
		return;
	}
	if (j->state != PB__JOB_STATE__RUNNING || !(j->flags & JOBF_CONFIGURING) || j->preparing)
		return;
	if (!ev->script.status) {
		nodes_prepare(c, j);
		return;
	}
	xstr_set(&job_x(j)->why, "PrologSlurmctld failed, job killed");
	give_up(c, j, false, false);
}
