/* gang.c - jobs that hold the same CPUs: which of them runs, and which is suspended meanwhile
 * CPUs are held twice where a job of a higher partition was placed on those of jobs that PreemptMode=SUSPEND lets it suspend (alloc->over, preempt.c), and
 * where partitions are oversubscribed and PreemptMode=GANG has their jobs take turns. Who runs follows from what is held: in order of the
 * partitions' tiers, then of their turns, each job runs if no job before it has one of its CPUs; the others yield. Every SchedulerTimeSlice
 * those that run go to the end of the line. A job that yields keeps its memory and devices: its processes are only stopped.
 * Operators' own suspensions (scontrol suspend) are left alone. Invariants: gang_check. */
#include <stdlib.h>

#include "core/state.h"

#define SLICE_SEC 30           /* SchedulerTimeSlice where it is not said */

struct line { struct core_job **j; uint32_t n; size_t cap; };

static bool shared_turns(const struct core *c, const struct core_node *n) { return c->params.gang && n->shares; }

static bool piled(const struct core *c, const struct core_node *n) { return n->over || shared_turns(c, n); }

void gang_look(struct core *c, const struct core_job *j)
{
	for (uint32_t i = 0; j->alloc && i < j->alloc->n; i++)
		c->gang_wanted = c->gang_wanted || piled(c, c->node[j->alloc->on[i].node]);
}

/* Also one that was placed among those that share with a job that stands on others. */
void gang_mark(const struct core *c, struct alloc *a)
{
	for (uint32_t i = 0; i < a->n && !a->over; i++)
		for (uint32_t k = 0; c->node[a->on[i].node]->over && k < c->node[a->on[i].node]->cpu_words; k++)
			a->over = a->over || c->node[a->on[i].node]->used[k] & a->words[a->on[i].bits + k];
}

/* Its processes may be stopped and go on as others come and go. */
static bool managed(const struct core_job *j)
{
	return (j->state == PB__JOB_STATE__RUNNING && !(j->flags & JOBF_CONFIGURING) && !j->launching) || (j->state == PB__JOB_STATE__SUSPENDED && j->yields);
}

/* Something of it may still use its CPUs. */
static bool busy(const struct core_job *j) { return !j->yields && ((j->flags & (JOBF_COMPLETING | JOBF_CONFIGURING)) || j->state == PB__JOB_STATE__RUNNING); }

bool gang_stands_by(const struct core_job *j) { return j->yields || (j->alloc->over && j->state == PB__JOB_STATE__SUSPENDED); }

static uint32_t tier_of(const struct core *c, const struct core_job *j) { return j->part < c->part_n ? c->part[j->part]->tier : 0; }

static bool goes_first(const struct core *c, const struct core_job *a, const struct core_job *b)
{
	uint32_t x = tier_of(c, a), y = tier_of(c, b);
	if (x != y)
		return x > y;
	if (a->gang_turn != b->gang_turn)
		return a->gang_turn && (!b->gang_turn || a->gang_turn < b->gang_turn);
	if (a->yields != b->yields)
		return b->yields;
	return a->start != b->start ? a->start < b->start : a->id < b->id;
}

static void line_put(const struct core *c, struct line *l, struct core_job *j) { l->j = jobs_put(c, l->j, &l->n, &l->cap, j, goes_first); }

/* All that hold something where CPUs may be held twice, and those that yield though nobody stands on them any more. */
static void line_make(struct core *c, struct line *l)
{
	for (uint32_t i = 0; i < c->node_n; i++)
		for (size_t k = 0; piled(c, c->node[i]) && k < c->node[i]->held_n; k++) {
			struct core_job *j = c->node[i]->held[k].job;
			if (managed(j) && !j->doomed) {
				j->doomed = true; /* is in the line */
				line_put(c, l, j);
			}
		}
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (managed(j) && j->yields && !j->doomed)
			line_put(c, l, j);
		j->doomed = false;
	}
}

/* A word of the CPUs that nobody may run on beside it: of one that has the node to itself all, though it leaves some to the system (--core-spec). */
static uint64_t cpus_word(const struct core_job *j, const struct alloc_on *o, uint32_t word) { return j->alloc->exclusive ? UINT64_MAX : j->alloc->words[o->bits + word]; }

/* Are all its CPUs free in `used`, on every node? Takes them if so. */
static bool take(const struct core *c, const struct core_job *j, uint64_t **used)
{
	for (int put = 0; put < 2; put++)
		for (uint32_t i = 0; i < j->alloc->n; i++) {
			const struct alloc_on *o = &j->alloc->on[i];
			const struct core_node *n = c->node[o->node];
			if (!used[o->node])
				used[o->node] = xcalloc(n->cpu_words, sizeof **used);
			for (uint32_t k = 0; o->state != ON_FREE && k < n->cpu_words; k++) {
				if (!put && cpus_word(j, o, k) & used[o->node][k])
					return false;
				used[o->node][k] |= put ? cpus_word(j, o, k) : 0;
			}
		}
	return true;
}

/* What those use that are not in the line: jobs that end, or are being prepared. */
static void use_others(struct core *c, uint64_t **used)
{
	for (uint32_t i = 0; i < c->node_n; i++)
		for (size_t k = 0; piled(c, c->node[i]) && k < c->node[i]->held_n; k++) {
			const struct core_job *j = c->node[i]->held[k].job;
			if (managed(j) || !busy(j))
				continue;
			if (!used[i])
				used[i] = xcalloc(c->node[i]->cpu_words, sizeof **used);
			for (uint32_t w = 0; w < c->node[i]->cpu_words; w++)
				used[i][w] |= cpus_word(j, &j->alloc->on[c->node[i]->held[k].at], w);
		}
}

/* --- stopping and going on ---------------------------------------------------------------------- */

static void nodes_told(struct core *c, struct core_job *j, bool suspend)
{
	Pb__SuspendReq *m = arena_alloc(fx_arena(c), sizeof *m);
	char *nodes = job_nodes_text(c, j);
	pb__suspend_req__init(m);
	m->job_id = j->id;
	m->suspend = suspend;
	m->has_grace_sec = suspend;
	m->grace_sec = c->params.suspend_grace_sec;
	fx_to_nodes(c, FX_SUSPEND, j->id, nodes, m);
	free(nodes);
}

void job_suspend(struct core *c, struct core_job *j, bool tell)
{
	j->state = PB__JOB_STATE__SUSPENDED;
	j->suspend = now_sec(c);
	sweep_end_later(c, j);
	gang_look(c, j);
	if (tell)
		nodes_told(c, j, true);
	fx_persist(c, j);
	fx_job(c, FX_ACCOUNT_JOB, j);
}

void job_resume(struct core *c, struct core_job *j, bool tell)
{
	j->state = PB__JOB_STATE__RUNNING;
	j->susp_total += now_sec(c) - j->suspend;
	j->suspend = now_sec(c);
	job_set_limit_timer(c, j);
	sweep_end_later(c, j);
	gang_look(c, j);
	if (tell)
		nodes_told(c, j, false);
	fx_persist(c, j);
	fx_job(c, FX_ACCOUNT_JOB, j);
	step_waits_retry(c, j);
}

static void yield(struct core *c, struct core_job *j)
{
	char id[40];
	fx_log(c, LOG_L_INFO, "job %s is suspended: others use its CPUs", job_id_text(j, id, sizeof id));
	j->yields = true;
	job_suspend(c, j, !j->unlaunched);
}

static void go_on(struct core *c, struct core_job *j)
{
	char id[40];
	bool launch = j->unlaunched;
	fx_log(c, LOG_L_INFO, "job %s goes on: its CPUs are free", job_id_text(j, id, sizeof id));
	j->unlaunched = false;
	if (j->yields) {
		j->yields = false;
		job_resume(c, j, !launch);
	}
	if (launch)
		job_launch(c, j);
}

static bool others_wait(const struct line *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->j[i]->yields)
			return true;
	return false;
}

void gang_settle(struct core *c)
{
	struct line l = { 0 };
	uint64_t **used = xcalloc(c->node_n + 1, sizeof *used);
	line_make(c, &l);
	use_others(c, used);
	for (uint32_t i = 0; i < l.n; i++) {
		struct core_job *j = l.j[i];
		bool turns = c->params.gang || j->yields || !j->alloc->share; /* without GANG those that share run side by side */
		bool runs = take(c, j, used) || !turns;
		if (!j->gang_turn)
			j->gang_turn = ++c->gang_turn;
		if (runs && (j->yields || j->unlaunched))
			go_on(c, j);
		else if (!runs && !j->yields)
			yield(c, j);
	}
	if (c->params.gang && others_wait(&l))
		timer_add_single(c, c->now_ms + (c->params.time_slice_sec ? c->params.time_slice_sec : SLICE_SEC) * 1000ull, TIMER_GANG, &c->gang_ms);
	for (uint32_t i = 0; i < c->node_n; i++)
		free(used[i]);
	free(used);
	free(l.j);
	c->gang_wanted = false;
}

/* A time slice is over: those that run go to the end of the line, in the order that they have. */
void gang_tick(struct core *c)
{
	struct line l = { 0 };
	c->gang_ms = 0;
	line_make(c, &l);
	for (uint32_t i = 0; i < l.n; i++)
		if (!l.j[i]->yields)
			l.j[i]->gang_turn = ++c->gang_turn;
	free(l.j);
	c->gang_wanted = true;
}

const struct core_job *gang_first(const struct core *c, const struct core_job *j)
{
	for (uint32_t i = 0; i < j->alloc->n; i++) {
		const struct core_node *n = c->node[j->alloc->on[i].node];
		for (size_t k = 0; piled(c, n) && k < n->held_n; k++) {
			const struct core_job *o = n->held[k].job;
			for (uint32_t w = 0; o != j && busy(o) && w < n->cpu_words; w++)
				if (cpus_word(o, &o->alloc->on[n->held[k].at], w) & cpus_word(j, &j->alloc->on[i], w))
					return o;
		}
	}
	return NULL;
}

bool gang_can_run(const struct core *c, const struct core_job *j) { return !gang_first(c, j); }

/* No CPU runs two jobs, but where a partition is oversubscribed and its jobs do not take turns; nobody is kept waiting whose CPUs are free. */
void gang_check(const struct core *c)
{
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		assert(!j->doomed && (!j->unlaunched || j->yields));
		assert(!j->yields || j->state == PB__JOB_STATE__SUSPENDED || (j->flags & JOBF_COMPLETING));
		if (!j->alloc || j->flags & JOBF_CONFIGURING || j->launching)
			continue;
		if (j->state == PB__JOB_STATE__SUSPENDED && j->yields)
			assert(!gang_can_run(c, j));
		if (j->state == PB__JOB_STATE__RUNNING && (c->params.gang || !j->alloc->share))
			assert(gang_can_run(c, j));
	}
}
