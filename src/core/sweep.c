/* sweep.c - the plan: promises in the order of the queue
 * A sweep goes through the queue, best job first, and gives each of the first bf_max_job_test jobs its promise, counting those before it. It is done in
 * slices. Jobs that come later behind its end are added to it. When something changed that could let jobs start earlier (or a job came in between), the
 * next sweep begins at the front, at most every bf_interval; until it comes to a job, the job's old promise protects it. */
#include "core/state.h"

#define BEHIND_ROUNDS 2
#define EVALS_PER_UNIT 40       /* looks at a node that cost as much as one placement */

static struct core_job *job_of(struct tree_node *n) { return (struct core_job *)((char *)n - offsetof(struct core_job, qnode)); }

static bool order_before(const struct order *o, const struct core_job *j)
{
	if (o->tier != j->tier)
		return o->tier > j->tier;
	if (o->reserved != j->reserved)
		return o->reserved;
	return o->key != j->key ? o->key < j->key : o->id < j->id;
}

static void order_set(struct order *o, const struct core_job *j) { *o = (struct order){ j->tier, j->reserved, j->key, j->id }; }

static uint32_t most(const struct core *c) { return c->params.bf_max_job_test ? c->params.bf_max_job_test : 500; }
static uint64_t interval_ms(const struct core *c) { return (c->params.bf_interval_sec ? c->params.bf_interval_sec : 30) * 1000ull; }

bool sweep_passed(const struct core *c, const struct core_job *j) { return c->swept && c->behind != j && !order_before(&c->swept_to, j); }

/* --- the queue changes ------------------------------------------------------------------------ */

void sweep_inserted(struct core *c, struct shape *s, struct core_job *j)
{
	if (sweep_passed(c, j)) {
		c->plan_stale = true;
		return;
	}
	if (!s->plan_at || job_before(j, job_of(s->plan_at)))
		s->plan_at = &j->qnode;
	c->sweep_done = false;
}

void sweep_removed(struct core *c, struct shape *s, struct core_job *j)
{
	if (c->behind == j)
		c->behind = NULL;
	if (s->plan_at == &j->qnode)
		s->plan_at = tree_next(&j->qnode);
}

/* The time until which a running job holds its nodes is another one now. */
void sweep_end_moved(struct core *c, const struct core_job *j)
{
	if (!j->alloc)
		return;
	for (uint32_t i = 0; i < j->alloc->n; i++)
		if (j->alloc->on[i].state != ON_FREE)
			est_gained(c, c->node[j->alloc->on[i].node]);
	c->plan_stale = true;
}

void sweep_end_later(struct core *c, const struct core_job *j)
{
	sweep_end_moved(c, j);
	if (!j->alloc || !c->params.backfill)
		return;
	if (policy_on(c))
		c->promises_made = UINT32_MAX; /* they are made anew in the next pass */
	else
		promises_check(c, j, false, sched_promise_lost);
	c->sched_wanted = true;
}

/* From the front again. */
void sweep_restart(struct core *c)
{
	for (struct tree_node *n = tree_first(&c->shapes_active); n; n = tree_next(n)) {
		struct shape *s = (struct shape *)((char *)n - offsetof(struct shape, anode));
		s->plan_at = tree_first(&s->queue);
	}
	bitset_for(c->promised, i) {
		struct core_node *n = c->node[i];
		for (uint32_t k = 0; k < n->plan_n; k++)
			n->plan[k].p->fresh = false;
		future_forget(n);
	}
	est_reset(c);
	c->behind = NULL;
	c->swept = 0;
	c->sweep_gen++;
	c->sweep_ms = c->now_ms;
	c->sweep_done = c->plan_stale = c->plan_moves = false;
}

/* --- going on --------------------------------------------------------------------------------- */

static bool shape_before(const struct shape *a, const struct shape *b) { return job_before(job_of(a->plan_at), job_of(b->plan_at)); }

static void heap_down(struct core *c, uint32_t i)
{
	struct shape *x = c->sweep[i];
	for (;;) {
		uint32_t k = 2 * i + 1;
		if (k >= c->sweep_n)
			break;
		if (k + 1 < c->sweep_n && shape_before(c->sweep[k + 1], c->sweep[k]))
			k++;
		if (!shape_before(c->sweep[k], x))
			break;
		c->sweep[i] = c->sweep[k];
		i = k;
	}
	c->sweep[i] = x;
}

static void heap_make(struct core *c)
{
	c->sweep_n = 0;
	for (struct tree_node *n = tree_first(&c->shapes_active); n; n = tree_next(n)) {
		struct shape *s = (struct shape *)((char *)n - offsetof(struct shape, anode));
		if (!s->plan_at)
			continue;
		c->sweep = xgrow(c->sweep, &c->sweep_cap, c->sweep_n + 1, sizeof *c->sweep);
		c->sweep[c->sweep_n++] = s;
	}
	for (uint32_t i = c->sweep_n / 2; i > 0; i--)
		heap_down(c, i - 1);
}

void budget_spend(uint64_t looks, uint32_t *budget)
{
	uint64_t units = 1 + looks / EVALS_PER_UNIT;
	*budget -= units < *budget ? (uint32_t)units : *budget;
}

static void sweep_failed(struct core *c, struct shape *s, struct core_job *j)
{
	j->no_plan = c->sweep_gen;
	s->failed_gen = c->est_gen;
	s->failed_log = c->gain_n;
}

/* False: it was not finished, and is to be gone on with. */
static bool sweep_job(struct core *c, struct shape *s, struct core_job *j)
{
	bool stale = c->plan_stale;
	if (s->failed_gen == c->est_gen && s->failed_log == c->gain_n) { /* one like it has found nothing */
		promise_drop(c, j);
		j->no_plan = c->sweep_gen;
	} else if (!promise_make(c, s, j, PLAN_FRESH)) {
		if (c->unfinished)
			return false;
		if (s->gap_ms) {
			c->behind = j;
			c->behind_ms = s->gap_ms + 1;
			c->behind_left = BEHIND_ROUNDS;
		} else
			sweep_failed(c, s, j);
	}
	order_set(&c->swept_to, j);
	c->swept++;
	c->plan_stale = stale;
	return true;
}

static void sweep_behind(struct core *c)
{
	struct core_job *j = c->behind;
	bool stale = c->plan_stale, made = promise_make(c, j->shape, j, PLAN_BEHIND);
	c->behind_ms = j->shape->gap_ms + 1;
	if (made || !j->shape->gap_ms || !--c->behind_left) {
		c->behind = NULL;
		if (!made)
			sweep_failed(c, j->shape, j);
	}
	c->plan_stale = stale;
}

/* One step: what the best job needs to be known, or its promise. */
static void sweep_step(struct core *c, uint32_t *budget)
{
	struct shape *s = c->sweep[0];
	struct core_job *j = job_of(s->plan_at);
	uint64_t work = c->work;
	if (c->behind) {
		sweep_behind(c);
	} else if (est_prepare(c, s, c->now_ms + plan_window_ms(c)) && sweep_job(c, s, j)) {
		s->plan_at = tree_next(&j->qnode);
		if (!s->plan_at)
			c->sweep[0] = c->sweep[--c->sweep_n];
		if (c->sweep_n)
			heap_down(c, 0);
	}
	budget_spend(c->work - work, budget);
}

/* Plans on, up to `until` (NULL: to the end). False: the budget is spent before. */
bool sweep_run(struct core *c, const struct core_job *until, uint32_t *budget)
{
	if (c->sweep_done || (until && sweep_passed(c, until) && !c->behind))
		return true;
	heap_make(c);
	while ((c->sweep_n && c->swept < most(c)) || c->behind) {
		if (until && !c->behind && !job_before(job_of(c->sweep[0]->plan_at), until))
			return true;
		if (!*budget)
			return false;
		if (c->behind && !c->sweep_n) {
			sweep_behind(c);
			continue;
		}
		sweep_step(c, budget);
	}
	c->sweep_done = true;
	*(c->sweep_n ? &c->sweeps_cut : &c->sweeps_whole) += 1;
	if (c->lic_kept)
		license_look(c);
	return true;
}

/* A promise out of turn: for the head of a shape that came before jobs already planned, or lost its own. False: no budget. */
bool sweep_one(struct core *c, struct shape *s, struct core_job *j, uint32_t *budget)
{
	uint64_t work = c->work;
	bool stale = c->plan_stale;
	if ((j->promise && !j->promise->broken) || (j->no_plan && j->no_plan == c->sweep_gen))
		return true;
	if (!*budget)
		return false;
	if (!promise_make(c, s, j, PLAN_ALONE))
		j->no_plan = c->sweep_gen;
	c->plan_stale = stale;
	budget_spend(c->work - work, budget);
	return true;
}

/* Is there something to plan now? If later, a timer comes. */
bool sweep_wanted(struct core *c)
{
	if (!c->params.backfill)
		return false;
	if (!c->sweep_done && c->shapes_active.count)
		return true;
	if ((!c->plan_stale && !c->plan_moves) || !c->shapes_active.count)
		return false;
	if (c->now_ms >= c->sweep_ms + interval_ms(c))
		return true;
	if (!c->sweep_timer)
		timer_add(c, c->sweep_ms + interval_ms(c), TIMER_PROMISE, 0, 0);
	c->sweep_timer = true;
	return false;
}

void sweep_slice(struct core *c, uint32_t *budget)
{
	if (c->sweep_done && (c->plan_stale || c->plan_moves) && c->now_ms >= c->sweep_ms + interval_ms(c))
		sweep_restart(c);
	(void)sweep_run(c, NULL, budget);
}
