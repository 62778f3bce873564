/* life.c - from start to end: what happens to a job that has nodes
 *
 *   PENDING -> RUNNING            job_start      holds its nodes; prologs, launch (configure.c)
 *   RUNNING <-> SUSPENDED         operate.c
 *   RUNNING -> final, COMPLETING  job_end        its nodes are told to clean up
 *   COMPLETING -> done            job_node_clean the last node reported, and EpilogSlurmctld has ended; life_finish
 *   RUNNING -> PENDING, COMPLETING job_requeue   goes back to the queue when its nodes are clean
 *
 * A node is given back when it reports that nothing of the job is left on it, or when it is lost. */
#include <stdio.h>
#include <stdlib.h>

#include "core/acct.h"
#include "core/reserve.h"

#define LAUNCH_RETRIES 5       /* where MaxBatchRequeue is not said */
#define BACKOFF_SEC 5
#define LOST_BATCH_SEC 30

/* --- start ----------------------------------------------------------------------------------- */

void job_set_limit_timer(struct core *c, struct core_job *j)
{
	if (j->state != PB__JOB_STATE__RUNNING)
		return;
	uint64_t resv_ms = resv_kill_ms(c, j);
	const struct core_part *p = j->part < c->part_n ? c->part[j->part] : NULL;
	uint32_t over = p && p->rec->has_over_time_limit_min ? p->rec->over_time_limit_min : c->params.over_time_limit_min;
	bool endless = j->time_min == TIME_INFINITE;
	j->end = endless ? now_sec(c) + ONE_YEAR_SEC : sec_last(j->start + j->susp_total + j->time_min * 60ull);
	j->kill_ms = endless || over >= UINT16_MAX ? 0 : (j->end + over * 60ull) * 1000;
	if (resv_ms != UINT64_MAX && (!j->kill_ms || resv_ms < j->kill_ms))
		j->kill_ms = resv_ms;
	if (j->preempt_end && (!j->kill_ms || j->preempt_end * 1000ull < j->kill_ms)) {
		j->kill_ms = j->preempt_end * 1000ull;
		j->end = j->preempt_end;
	}
	if (j->kill_ms)
		timer_add(c, j->kill_ms, TIMER_LIMIT, j->id, 0);
	warn_set(c, j);
	mail_set(c, j);
}

void job_launch(struct core *c, struct core_job *j)
{
	struct core_effect *e = effects_push(c->fx, FX_LAUNCH_BATCH);
	e->job_id = j->id;
	e->value = j->restarts;
	e->nodes = arena_strdup(fx_arena(c), c->node[j->alloc->on[0].node]->name);
	j->launching = true;
	j->launched = 0;
	j->unconfirmed = false;
}

void job_start(struct core *c, struct core_job *j, struct core_part *p, struct alloc *a)
{
	if (het_leads(j) && !j->het->busy) {
		het_start(c, j, p, a);
		return;
	}
	assert(j->state == PB__JOB_STATE__PENDING && !j->alloc && !j->epilog_ctld);
	queue_remove(c, j);
	promise_drop(c, j);
	acct_check_start(c, j, p, a);
	j->alloc = a;
	gang_mark(c, a);
	for (uint32_t i = 0; i < a->n; i++)
		node_hold(c, j, i);
	j->state = PB__JOB_STATE__RUNNING;
	array_count(j);
	j->flags = 0;
	j->wait = j->shown = REASON_NONE;
	j->part = p->index;
	j->start = now_sec(c);
	j->susp_total = 0;
	j->has_exit = j->cancelled_by = false;
	j->immediate_until_ms = 0;
	j->lost_ms = 0;   /* was about the run before */
	j->warned = false;
	j->mail_percent = 0;
	j->next_step = j->step_reserved = 0;
	if (j->x) {
		xfree(j->x->why);
		xfree(j->x->causes);
		xfree(j->x->preempted_by);
		xfree(j->x->lic_was);
		xfree(j->x->nodes);
		xfree(j->x->tres_alloc);
		j->x->end_reason = j->x->derived_exit = j->x->derived_status = 0;
	}
	j->preempt_at = j->preempt_end = j->preempt_next = j->preempts = 0;
	j->yields = j->unlaunched = false;
	j->gang_turn = 0;
	resv_job_started(c, j);
	license_take(c, j);
	acct_count(c, j);
	job_set_limit_timer(c, j);
	array_running(c, j, 1);
	mail_began(c, j);
	c->started++;
	fx_persist(c, j);
	configure_begin(c, j);
	fx_job(c, FX_ACCOUNT_JOB, j);
	depend_changed(c, j);
}

/* --- end ------------------------------------------------------------------------------------- */

static Pb__TerminateReq *terminate_msg(struct core *c, struct core_job *j, const char *why, bool timeout)
{
	struct arena *a = fx_arena(c);
	Pb__TerminateReq *m = arena_alloc(a, sizeof *m);
	pb__terminate_req__init(m);
	m->job_id = j->id;
	m->uid = j->uid;
	m->has_kill_wait_sec = true;
	m->kill_wait_sec = c->params.kill_wait_sec;
	m->why = arena_strdup(a, why);
	m->has_timeout = timeout;
	m->timeout = timeout;
	m->has_restarts = true;
	m->restarts = run_of(j);
	m->end = ending_job(c, j, timeout);
	m->user = arena_strdup(a, atom_text(c, j->user));
	if (c->params.epilog_env) {
		j->blob_stale = true;
		m->job = record_message(c, j, a);
		m->job->restarts = m->restarts;
	}
	return m;
}

/* Tells the nodes that still hold something to end it (only those in `only`, if given). */
void job_terminate(struct core *c, struct core_job *j, const struct bitset *only, const char *why, bool timeout)
{
	struct bitset *to = bitset_create(c->node_n);
	sweep_end_moved(c, j);
	for (uint32_t i = 0; j->alloc && i < j->alloc->n; i++) {
		struct alloc_on *o = &j->alloc->on[i];
		if (o->state == ON_FREE || (only && !bitset_has(only, o->node)))
			continue;
		if (o->state == ON_HELD) {
			o->state = ON_CLEANING;
			c->node[o->node]->completing++;
		}
		bitset_set(to, o->node);
	}
	if (!bitset_empty(to)) {
		char *nodes = nodes_text(c, to);
		fx_to_nodes(c, FX_TERMINATE, j->id, nodes, terminate_msg(c, j, why, timeout));
		free(nodes);
	}
	bitset_destroy(to);
}

/* The same for a node that is given up: nobody waits for its answer. */
static void terminate_on(struct core *c, struct core_job *j, const struct core_node *n)
{
	fx_to_nodes(c, FX_TERMINATE, j->id, n->name, terminate_msg(c, j, "DUE TO NODE FAILURE", false));
}

static void end_list_add(struct core *c, struct core_job *j)
{
	j->end_prev = c->end_last;
	j->end_next = NULL;
	*(c->end_last ? &c->end_last->end_next : &c->end_first) = j;
	c->end_last = j;
	if (!j->end_prev && c->params.min_job_age_sec)
		timer_add_single(c, (j->end + c->params.min_job_age_sec) * 1000ull, TIMER_PURGE, &c->purge_ms);
}

void life_listed(struct core *c, struct core_job *j)
{
	bool in = j->end_prev || j->end_next || c->end_first == j;
	if (!in && job_state_is_final(j->state) && !(j->flags & JOBF_COMPLETING) && !het_is_open(c, j))
		end_list_add(c, j);
}

static void end_list_remove(struct core *c, struct core_job *j)
{
	if (!j->end_prev && !j->end_next && c->end_first != j)
		return;
	*(j->end_prev ? &j->end_prev->end_next : &c->end_first) = j->end_next;
	*(j->end_next ? &j->end_next->end_prev : &c->end_last) = j->end_prev;
	j->end_prev = j->end_next = NULL;
}

/* Keeps what is shown of the allocation and gives its memory back. */
static void drop_alloc(struct core *c, struct core_job *j)
{
	j->yields = j->unlaunched = false;
	if (!j->alloc)
		return;
	struct job_extra *x = job_x(j);
	free(x->nodes);
	free(x->tres_alloc);
	x->nodes = job_nodes_text(c, j);
	x->tres_alloc = license_job_tres(c, j, tres_of_alloc(c, j));
	x->nodes_n = j->alloc->n;
	x->cpus_n = inside_charged(c, j);
	if (j->blob_stale)
		record_encode(c, j); /* with CPU and device ids, a last time */
	while (j->steps) {
		struct step *s = j->steps;
		j->steps = s->next;
		step_free(s);
	}
	free(j->alloc->words);
	xfree(j->alloc);
}

bool job_is_clean(const struct core_job *j) { return (!j->alloc || !j->alloc->left) && !j->epilog_ctld; }

void life_finish(struct core *c, struct core_job *j)
{
	j->flags &= ~JOBF_COMPLETING;
	j->blob_stale = true;
	if (!j->requeue_pending) {
		drop_alloc(c, j);
		life_listed(c, j);
		het_clean(c, j);
		effects_push(c->fx, FX_PERSIST_JOB)->job_id = j->id;
		depend_changed(c, j);
		return;
	}
	drop_alloc(c, j);
	if (j->x) { /* it waits anew: it has no nodes */
		xfree(j->x->nodes);
		xfree(j->x->tres_alloc);
	}
	j->requeue_pending = false;
	j->flags &= ~(uint32_t)(JOBF_REQUEUED | JOBF_REQUEUE_HOLD); /* shown while its nodes clean up */
	j->blob_stale = true;
	queue_update(c, j);
	fx_persist(c, j);
}

static void steps_and_counters(struct core *c, struct core_job *j)
{
	step_finish_all(c, j);
	configure_stop(j);
	license_return(c, j);
	acct_uncount(c, j);
	resv_job_left(c, j);
	array_running(c, j, -1);
	j->kill_ms = j->lost_ms = 0;
	j->launching = j->unconfirmed = false;
	if (j->state == PB__JOB_STATE__SUSPENDED) {
		j->susp_total += now_sec(c) - j->suspend;
		j->yields = true; /* whoever goes on on its CPUs is not stopped while it ends */
	}
}

void job_end(struct core *c, struct core_job *j, uint32_t state, uint32_t flags)
{
	assert(job_state_is_final(state) && !job_state_is_final(j->state));
	bool had = j->alloc != NULL && j->state != PB__JOB_STATE__PENDING;
	if (had && recur_again(c, j, state))
		return;
	queue_remove(c, j);
	if (had) {
		why_steps_keep(c, j);
		steps_and_counters(c, j);
		configure_over(c, j);
	}
	j->state = (uint8_t)state;
	array_count(j);
	if (j->tasks)
		j->array->head = NULL; /* no task of it waits any more */
	j->flags = flags | (job_is_clean(j) ? 0 : JOBF_COMPLETING);
	j->end = now_sec(c);
	j->requeue_pending = false;
	if (had)
		predict_learn(c, j);
	else
		j->start = state == PB__JOB_STATE__CANCELLED ? j->start : 0;
	j->wait = REASON_NONE;
	j->shown = j->x ? (uint8_t)j->x->end_reason : REASON_NONE;
	*(state == PB__JOB_STATE__COMPLETED ? &c->completed : state == PB__JOB_STATE__CANCELLED ? &c->cancelled : &c->failed) += 1;
	if (j->alloc && j->alloc->left)
		job_terminate(c, j, NULL, j->x ? j->x->why : NULL, state == PB__JOB_STATE__TIMEOUT);
	fx_persist(c, j);
	fx_job(c, FX_ACCOUNT_JOB, j);
	fx_job(c, FX_ENDED, j);
	mail_ended(c, j);
	depend_changed(c, j);
	if (job_is_clean(j))
		life_finish(c, j);
	het_ended(c, j);
}

int job_at_node(const struct core_job *j, uint32_t node)
{
	for (uint32_t i = 0; j->alloc && i < j->alloc->n; i++)
		if (j->alloc->on[i].node == node)
			return (int)i;
	return -1;
}

void job_node_clean(struct core *c, struct core_job *j, uint32_t node)
{
	int at = job_at_node(j, node);
	if (at < 0 || j->alloc->on[at].state == ON_FREE)
		return;
	node_release(c, j, (uint32_t)at);
	if (job_is_clean(j) && (job_state_is_final(j->state) || j->requeue_pending))
		life_finish(c, j);
}

/* --- back to the queue ------------------------------------------------------------------------ */

void job_requeue(struct core *c, struct core_job *j, bool hold, uint32_t flags, uint32_t delay_sec)
{
	bool active = !job_state_is_final(j->state) && j->state != PB__JOB_STATE__PENDING;
	if (het_requeue(c, j, hold, flags, delay_sec))
		return;
	if (active)
		mail_requeued(c, j);
	if (active) {
		steps_and_counters(c, j);
		usage_persist(c); /* its record will be that of another run */
		configure_over(c, j);
	} else {
		end_list_remove(c, j);
	}
	j->end = active ? now_sec(c) : j->end;
	struct core_effect *e = effects_push(c->fx, FX_ACCOUNT_JOB);
	e->job_id = j->id;
	e->requeued = true;
	if (active || j->state == PB__JOB_STATE__NODE_FAIL) {
		uint8_t was = j->state;
		bool gave_way = j->x && j->x->end_reason == REASON_PREEMPTED;
		j->flags |= gave_way ? 0 : JOBF_REQUEUED;
		j->state = gave_way ? PB__JOB_STATE__PREEMPTED : was;
		j->blob_stale = true;
		e->msg = (ProtobufCMessage *)record_message(c, j, fx_arena(c));
		j->state = was;
	}
	if (active && j->alloc->left)
		job_terminate(c, j, NULL, j->x && j->x->why ? j->x->why : "DUE TO JOB REQUEUE", false);
	j->state = PB__JOB_STATE__PENDING;
	if (j->tasks)
		j->array->head = j;
	j->flags = flags | JOBF_REQUEUED | (job_is_clean(j) ? 0 : JOBF_COMPLETING);
	if (j->shape->least_min)
		j->time_min = j->shape->time_min; /* --time-min may have lowered it */
	j->restarts++;
	j->requeue_pending = true;
	j->begin = delay_sec ? now_sec(c) + delay_sec : 0;
	j->eligible = 0;
	c->requeued++;
	if (hold && !j->hold)
		j->hold = REASON_REQUEUED_HELD;
	fx_persist(c, j);
	fx_job(c, FX_ENDED, j);
	if (job_is_clean(j))
		life_finish(c, j);
	else
		queue_update(c, j);
}

/* A node takes its tasks with it, and often the script sees that (its srun fails) and ends before the node is known to be dead. Such
 * an end is the node's fault: the job ended by itself with an error, and the node has not answered since about then. */
static bool failed_with_node(const struct core *c, const struct core_job *j, const struct core_node *n)
{
	uint32_t slack_sec = c->params.slurmd_timeout_sec / 3 + 2; /* silence is noticed at the next ping */
	return j->state == PB__JOB_STATE__FAILED && j->batch && j->has_exit && !j->requeue_pending && (n->flags & NODEF_NOT_RESPONDING) &&
	       n->lost_ms / 1000 <= j->end + slack_sec;
}

/* The end of a job that failed_with_node is judged again: NODE_FAIL, and back to the queue where it may be requeued. */
static void job_blame_node(struct core *c, struct core_job *j)
{
	j->state = PB__JOB_STATE__NODE_FAIL;
	j->shown = REASON_NODE_DOWN;
	fx_persist(c, j);
	fx_job(c, FX_ACCOUNT_JOB, j);
	if (j->requeue)
		job_requeue(c, j, false, 0, 0);
	else if (job_is_clean(j))
		life_finish(c, j);
}

static void node_why(struct core *c, struct core_job *j, uint32_t node, const char *what)
{
	struct job_extra *x = job_x(j);
	xstr_set(&x->fail_node, c->node[node]->name);
	x->end_reason = REASON_NODE_DOWN;
	free(x->why);
	x->why = xasprintf("DUE TO NODE FAILURE: node %s %s", c->node[node]->name, what);
}

static void end_by_node(struct core *c, struct core_job *j)
{
	if (j->batch && j->requeue)
		job_requeue(c, j, false, 0, 0);
	else
		job_end(c, j, PB__JOB_STATE__NODE_FAIL, 0);
}

/* --no-kill: it lives on with its other nodes. Not where the node that is gone has the script, or prologs are still waited for. */
static bool goes_on_without(const struct core_job *j, uint32_t at)
{
	if (j->state != PB__JOB_STATE__RUNNING || j->alloc->n < 2 || (at == 0 && job_has_script(j)) || j->flags & JOBF_CONFIGURING)
		return false;
	Pb__JobDesc *d = job_desc(j);
	bool yes = d->no_kill;
	pb__job_desc__free_unpacked(d, NULL);
	return yes;
}

/* The node leaves its allocation; steps that ran there are ended. */
static void leave_node(struct core *c, struct core_job *j, uint32_t at)
{
	struct alloc *a = j->alloc;
	char id[40];
	fx_log(c, LOG_L_INFO, "job %s goes on without node %s (--no-kill)", job_id_text(j, id, sizeof id), c->node[a->on[at].node]->name);
	steps_leave_node(c, j, at);
	node_release(c, j, at);
	a->cpus -= a->on[at].cpus;
	a->n--;
	memmove(&a->on[at], &a->on[at + 1], (a->n - at) * sizeof a->on[0]);
	for (uint32_t k = at; k < a->n; k++)
		if (a->on[k].state != ON_FREE)
			c->node[a->on[k].node]->held[a->on[k].at].at = k;
	a->config_gen = 0; /* it need not satisfy the request any more */
	steps_after_leave(j, at);
	drains_answer(c, j);
	step_waits_retry(c, j);
	fx_persist(c, j);
}

void job_node_lost(struct core *c, struct core_job *j, uint32_t node)
{
	int at = job_at_node(j, node);
	if (at < 0 || j->alloc->on[at].state == ON_FREE)
		return;
	bool over = job_state_is_final(j->state) || j->requeue_pending;
	bool cause = failed_with_node(c, j, c->node[node]);
	if (!over && !(c->node[node]->flags & NODEF_NOT_RESPONDING)) /* set DOWN by an operator, but it answers: what runs there must not go on */
		terminate_on(c, j, c->node[node]);
	if (!over && goes_on_without(j, (uint32_t)at)) {
		leave_node(c, j, (uint32_t)at);
		return;
	}
	node_release(c, j, (uint32_t)at);
	if (over && !cause) {
		if (job_is_clean(j))
			life_finish(c, j);
		return;
	}
	node_why(c, j, node, "was lost");
	if (cause)
		job_blame_node(c, j);
	else
		end_by_node(c, j);
}

void job_launch_lost(struct core *c, struct core_job *j)
{
	node_why(c, j, j->alloc->on[0].node, "was lost");
	end_by_node(c, j);
}

/* While a requeued job's nodes clean up, they speak of the run before. */
uint32_t run_of(const struct core_job *j) { return j->requeue_pending ? j->restarts - 1 : j->restarts; }

/* --- what nodes report ------------------------------------------------------------------------ */

/* What its node says of a step that could not start goes behind the reason: which file, and what is wrong with it. */
static void end_why(struct core_job *j, uint32_t status, const char *text)
{
	char *why = xasprintf("%s:%u, %.*s", reason_name(REASON_RAISED_SIGNAL), status & 127, 1000, text);
	free(job_x(j)->why);
	j->x->why = why;
}

#define OOM_STATUS 125         /* "0:125": how the reference shows a job that was killed for memory, whatever its script ended with */

static void oom_why(struct core_job *j, uint32_t status, const char *text)
{
	char *why = xasprintf("%s, %.*s; the script itself ended with exit code %u", reason_name(REASON_OUT_OF_MEMORY), 1000, text ? text : "processes were killed", status >> 8 & 255);
	free(job_x(j)->why);
	j->x->why = why;
}

/* Is a code in a list like "1-3,9"? conf/ has checked how it is written. */
static bool exit_listed(const char *list, unsigned long code)
{
	for (const char *p = list ? list : ""; *p; p += strspn(p, ",")) {
		char *end;
		unsigned long first = strtoul(p, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
		if (code >= first && code <= last)
			return true;
		p = end + strcspn(end, ",");
	}
	return false;
}

/* RequeueExit, RequeueExitHold: a script that ends with one of these codes goes back to the queue. False: it does not. */
static bool requeue_by_exit(struct core *c, struct core_job *j, uint32_t code)
{
	bool hold = exit_listed(c->params.requeue_exit_hold, code);
	if (!j->batch || !j->requeue || !(hold || exit_listed(c->params.requeue_exit, code)))
		return false;
	fx_log(c, LOG_L_INFO, "job %u ended with exit code %u and is requeued%s", j->id, code, hold ? ", held" : "");
	if (hold)
		j->hold = REASON_HELD_USER;
	job_requeue(c, j, hold, hold ? JOBF_SPECIAL_EXIT : 0, hold ? 0 : c->params.requeue_delay_sec);
	return true;
}

static void end_by_status(struct core *c, struct core_job *j, uint32_t status, bool oom)
{
	uint32_t sig = status & 127, code = status >> 8 & 255;
	j->has_exit = true;
	j->exit_status = oom ? OOM_STATUS : status;
	if (j->preempt_at) { /* within its grace, for whatever reason */
		preempt_finish(c, j);
		return;
	}
	if (!sig && !oom && requeue_by_exit(c, j, code))
		return;
	if (sig || code || oom)
		job_x(j)->end_reason = oom ? REASON_OUT_OF_MEMORY : sig ? REASON_RAISED_SIGNAL : REASON_NON_ZERO_EXIT;
	if (oom)
		job_end(c, j, PB__JOB_STATE__OUT_OF_MEMORY, 0);
	else
		job_end(c, j, sig || code ? PB__JOB_STATE__FAILED : PB__JOB_STATE__COMPLETED, 0);
}

/* The script has not begun. */
static void user_env_failed(struct core *c, struct core_job *j, const char *text)
{
	struct job_extra *x = job_x(j);
	free(x->why);
	x->why = xasprintf("could not begin: %.1000s", text ? text : error_text(ESLURM_USER_ENV));
	xstr_set(&x->wait_text, x->why);
	j->hold = REASON_USER_ENV_HELD;
	fx_log(c, LOG_L_ERROR, "job %u is held: it %s", j->id, x->why);
	job_requeue(c, j, true, 0, 0);
}

void job_batch_done(struct core *c, struct core_job *j, uint32_t node, const Pb__NodeEvent *e)
{
	bool live = j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED;
	int at = job_at_node(j, node);
	if (live && at != 0)
		return; /* of a run that began elsewhere */
	struct step *s = step_find(j, STEP_ID_BATCH);
	if (s && e->usage) {
		if (s->usage)
			pb__step_usage__free_unpacked(s->usage, NULL);
		s->usage = (Pb__StepUsage *)message_copy((const ProtobufCMessage *)e->usage);
	}
	if (s && !s->done)
		step_end(c, j, s, e->status);
	else if (s && s->presumed)
		step_truth(c, j, s, e->status);
	if (e->clean && at >= 0 && j->alloc->on[at].state != ON_FREE)
		node_release(c, j, (uint32_t)at);
	if (live && e->killed && !e->oom) {
		node_why(c, j, node, "lost the job's slurmstepd: it was killed");
		end_by_node(c, j);
		return;
	}
	if (live && e->has_error && e->error == ESLURM_USER_ENV && !j->preempt_at) {
		user_env_failed(c, j, e->text);
		return;
	}
	if (live && e->oom)
		oom_why(j, e->status, e->text);
	else if (live && e->has_error && e->text)
		end_why(j, e->status, e->text);
	if (live)
		end_by_status(c, j, e->status, e->oom);
	else if (j->state != PB__JOB_STATE__PENDING && !j->has_exit) {
		j->has_exit = true; /* it had been told to end; how it did is known now */
		j->exit_status = e->status;
		fx_persist(c, j);
		fx_job(c, FX_ACCOUNT_JOB, j);
	}
	if (!live && j->alloc && job_is_clean(j))
		life_finish(c, j);
}

void job_launch_failed(struct core *c, struct core_job *j, uint32_t node, const char *detail, bool drain, bool again)
{
	struct job_extra *x = job_x(j);
	struct core_node *n = c->node[node];
	c->launches_failed++;
	fx_log(c, LOG_L_ERROR, "job %u could not be launched on %s: %s", j->id, n->name, detail ? detail : "no reason given");
	free(x->why);
	x->why = xasprintf("could not be launched on %s: %s", n->name, detail ? detail : "no reason given");
	xstr_set(&x->fail_node, n->name);
	x->end_reason = REASON_LAUNCH_FAILURE;
	if (drain) {
		char *r = xasprintf("%s", detail && detail[0] ? detail : "batch job complete failure");
		node_drain(c, n, r);
		free(r);
	}
	if (!j->batch) {
		job_end(c, j, PB__JOB_STATE__FAILED, 0);
		return;
	}
	if (j->restarts >= (c->params.max_batch_requeue ? c->params.max_batch_requeue : LAUNCH_RETRIES) || !(drain || again)) {
		j->hold = REASON_LAUNCH_FAILED_HELD;
		xstr_set(&x->wait_text, x->why);
		job_requeue(c, j, true, 0, 0);
		return;
	}
	job_requeue(c, j, false, 0, again && !j->restarts ? 0 : BACKOFF_SEC << (j->restarts < 4 ? j->restarts : 4));
}

void job_launched(struct core *c, struct core_job *j)
{
	bool lends = j->launching && c->params.preempt && preempt_lends(c, j);
	j->launching = j->unconfirmed = false;
	j->lost_ms = 0;
	j->launched = now_sec(c);
	gang_look(c, j);
	for (uint32_t i = 0; lends && j->alloc && i < j->alloc->n; i++) /* it may be suspended from now on */
		sched_gained(c, j->alloc->on[i].node);
}

void life_launch_result(struct core *c, const struct core_event *ev)
{
	struct core_job *j = job_find(c, ev->launch.job_id);
	int node = core_node_find(c, ev->launch.node);
	if (!j || node < 0 || j->restarts != ev->launch.restarts || j->state != PB__JOB_STATE__RUNNING)
		return;
	bool unreachable = ev->launch.code == -ESLURM_COMM || ev->launch.code == -ESLURM_SOCKET_TIMEOUT; /* not the job's fault */
	job_launched(c, j);
	if (ev->launch.code)
		job_launch_failed(c, j, (uint32_t)node, ev->launch.detail, ev->launch.drain, unreachable);
}

void life_job_done(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	struct core_job *j = job_find(c, ev->job_done.job_id);
	if (!j)
		error_set(&err, ESLURM_INVALID_JOB_ID, "job %u is not known", ev->job_done.job_id);
	else if (j->uid != ev->by.uid && !ev->by.oper)
		error_set(&err, ESLURM_ACCESS_DENIED, "job %u belongs to another user", j->id);
	else if (job_state_is_final(j->state) || j->requeue_pending)
		error_set(&err, ESLURM_ALREADY_DONE, "job %u has ended before", j->id);
	else if (j->state == PB__JOB_STATE__PENDING)
		job_cancel(c, j, ev->by.uid);
	else
		end_by_status(c, j, ev->job_done.status, false);
	fx_result(c, ev->token, &err, ev->job_done.job_id);
}

/* --- cancel, time limits, forgetting ---------------------------------------------------------- */

/* Its limit, or one on what its account may use, is reached. */
void life_time_out(struct core *c, struct core_job *j, const char *why)
{
	struct job_extra *x = job_x(j);
	xstr_set(&x->why, why);
	x->end_reason = REASON_TIME_LIMIT;
	mail_limit_reached(c, j);
	job_end(c, j, PB__JOB_STATE__TIMEOUT, 0);
}

void job_cancel(struct core *c, struct core_job *j, uint32_t uid)
{
	j->cancelled_by = true;
	j->cancel_uid = uid;
	if (j->requeue_pending) { /* its nodes are still cleaning up after the last run */
		j->requeue_pending = false;
		j->restarts--; /* the next run will not be */
		queue_remove(c, j);
		j->state = PB__JOB_STATE__CANCELLED;
		array_count(j);
		if (j->tasks)
			j->array->head = NULL;
		j->flags &= ~JOBF_REQUEUED;
		j->end = now_sec(c);
		c->cancelled++;
		fx_persist(c, j);
		fx_job(c, FX_ACCOUNT_JOB, j);
		fx_job(c, FX_ENDED, j);
		mail_ended(c, j);
		het_ended(c, j);
		return;
	}
	if (j->alloc && !(j->x && j->x->why))
		job_x(j)->why = xstrdup("CANCELLED");
	job_end(c, j, PB__JOB_STATE__CANCELLED, 0);
}

void job_timer(struct core *c, struct core_job *j)
{
	if (j->immediate_until_ms && j->immediate_until_ms <= c->now_ms && j->state == PB__JOB_STATE__PENDING) {
		xstr_set(&job_x(j)->why, "could not start within the time of --immediate");
		job_cancel(c, j, j->uid);
		return;
	}
	if (j->lost_ms && j->lost_ms <= c->now_ms && j->state == PB__JOB_STATE__RUNNING && j->alloc) {
		j->lost_ms = 0;
		if (j->unconfirmed) {
			fx_log(c, LOG_L_INFO, "job %u: its node knows nothing of it: the launch was lost with the controller and is made again", j->id);
			job_launch(c, j); /* this may have been the timer of its limit: that is looked at all the same */
		} else {
			job_launch_lost(c, j);
			return;
		}
	}
	warn_timer(c, j);
	mail_timer(c, j);
	if (!j->kill_ms || j->kill_ms > c->now_ms || j->state != PB__JOB_STATE__RUNNING)
		return;
	if (j->preempt_end && j->preempt_end * 1000ull <= c->now_ms) {
		preempt_finish(c, j);
		return;
	}
	char *why = resv_kill_ms(c, j) <= c->now_ms ? xasprintf("DUE TO TIME LIMIT\nREASON: Reservation %s, which this job was running under, has ended", job_x(j)->resv) : NULL;
	life_time_out(c, j, why ? why : "DUE TO TIME LIMIT");
	free(why);
}

/* MinJobAge=0: none is ever forgotten. */
void life_purge(struct core *c)
{
	idem_expire(c);
	if (!c->params.min_job_age_sec)
		return;
	while (c->end_first && (c->end_first->end + c->params.min_job_age_sec) * 1000ull <= c->now_ms) {
		struct core_job *j = c->end_first;
		usage_forget(c, j);
		het_forget_others(c, j);
		job_forget(c, j);
	}
	if (c->end_first)
		timer_add_single(c, (c->end_first->end + c->params.min_job_age_sec) * 1000ull, TIMER_PURGE, &c->purge_ms);
}

/* After all records were read: put each job where it belongs. */
void life_restored(struct core *c, struct core_job *j)
{
	struct job_extra *x = j->x;
	if (j->state == PB__JOB_STATE__RUNNING) {
		uint32_t end = j->end;
		job_set_limit_timer(c, j);
		if (j->time_min == TIME_INFINITE)
			j->end = end;
		array_running(c, j, 1);
		license_restore(c, j);
		acct_count(c, j);
		usage_job_restored(c, j);
		if (j->flags & JOBF_CONFIGURING)
			configure_begin(c, j);
		else
			j->unconfirmed = job_has_script(j);
		if (j->unconfirmed)
			step_special(c, j, STEP_ID_BATCH);
	} else if (j->state == PB__JOB_STATE__SUSPENDED) {
		array_running(c, j, 1);
		license_restore(c, j);
		acct_count(c, j);
		usage_job_restored(c, j);
	} else if (job_state_is_final(j->state)) {
		usage_job_restored(c, j);
		predict_learn(c, j);
		if (!j->alloc)
			life_listed(c, j);
		if (x && x->dep_left)
			depend_restore(c, j, x->dep_left); /* scontrol requeue lets it wait again */
	} else {
		if (x && x->dep_left)
			depend_restore(c, j, x->dep_left);
		queue_update(c, j);
	}
	if (j->epilog_ctld)
		configure_over(c, j);
	if ((j->flags & JOBF_COMPLETING) && job_is_clean(j))
		life_finish(c, j);
}
