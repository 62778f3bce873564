/* schedule.c - the quick pass: start what fits, best first, each shape tried once
 * A shape is looked at when it is dirty: it got a new head, or a node that could serve it gained room. Heads are tried in queue order. A head
 * that fails gets a promise (plan.c) before any later shape that wants the same nodes is tried, so nothing later can delay it. Work is
 * counted in tries, looks at nodes and promises; what is left over stays dirty and FX_PLAN_MORE asks to go on. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/reserve.h"

static struct core_job *head(const struct shape *s)
{
	struct tree_node *n = tree_first(&s->queue);
	return n ? (struct core_job *)((char *)n - offsetof(struct core_job, qnode)) : NULL;
}

void sched_gained(struct core *c, uint32_t node)
{
	est_gained(c, c->node[node]);
	c->plan_stale = true;
	if (!bitset_has(c->gained, node) && c->gained_n++ < GAINED_LIST)
		c->gained_node[c->gained_n - 1] = node;
	bitset_set(c->gained, node);
	c->any_gained = c->sched_wanted = true;
}

void gained_none(struct core *c)
{
	bitset_zero(c->gained);
	c->gained_n = 0;
	c->any_gained = false;
}

/* Has any of these nodes gained room? Mostly few have: then the sets, of all nodes there are, need not be gone through. */
static bool gained_any(const struct core *c, const struct bitset *of)
{
	if (c->gained_n > GAINED_LIST)
		return bitset_intersects(of, c->gained);
	for (uint32_t i = 0; i < c->gained_n; i++)
		if (bitset_has(of, c->gained_node[i]))
			return true;
	return false;
}

static struct shape *active_next(const struct core *c, struct shape *s)
{
	struct tree_node *n = s ? tree_next(&s->anode) : tree_first(&c->shapes_active);
	return n ? (struct shape *)((char *)n - offsetof(struct shape, anode)) : NULL;
}

static void unpromised_drop(struct core *c, struct shape *s)
{
	uint32_t i = 0;
	if (!s->unpromised)
		return;
	while (c->unpromised[i] != s)
		i++;
	memmove(c->unpromised + i, c->unpromised + i + 1, (c->unpromised_n - i - 1) * sizeof *c->unpromised);
	c->unpromised_n--;
	s->unpromised = false;
	if (!c->params.backfill)
		c->behind_wake = c->sched_wanted = true;
}

static void unpromised_add(struct core *c, struct shape *s)
{
	if (s->unpromised)
		return;
	c->unpromised = xgrow(c->unpromised, &c->unpromised_cap, c->unpromised_n + 1, sizeof *c->unpromised);
	c->unpromised[c->unpromised_n++] = s;
	s->unpromised = true;
}

/* A new head, or a new chance: whatever was known of the old one is void. */
void sched_shape(struct core *c, struct shape *s)
{
	unpromised_drop(c, s);
	s->dirty = true;
	c->sched_wanted = true;
}

void sched_all(struct core *c)
{
	sweep_restart(c);
	for (struct shape *s = active_next(c, NULL); s; s = active_next(c, s))
		sched_shape(c, s);
}

void sched_forget(struct core *c, struct shape *s)
{
	s->dirty = false;
	c->sched_wanted = true; /* a pass under way must not meet it any more */
	unpromised_drop(c, s);
	for (uint32_t i = 0; i < c->part_n; i++)
		if (c->part[i]->blocker == s)
			c->part[i]->blocker = NULL;
}

/* --- the heap of dirty shapes, best head first ------------------------------------------------ */

static bool heap_before(const struct shape *a, const struct shape *b) { return job_before(head(a), head(b)); }

static void heap_push(struct core *c, struct shape *s)
{
	c->heap = xgrow(c->heap, &c->heap_cap, c->heap_n + 1, sizeof *c->heap);
	uint32_t i = c->heap_n++;
	for (; i > 0 && heap_before(s, c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = s;
}

static struct shape *heap_pop(struct core *c)
{
	struct shape *top = c->heap[0], *last = c->heap[--c->heap_n];
	uint32_t i = 0;
	for (;;) {
		uint32_t k = 2 * i + 1;
		if (k >= c->heap_n)
			break;
		if (k + 1 < c->heap_n && heap_before(c->heap[k + 1], c->heap[k]))
			k++;
		if (!heap_before(c->heap[k], last))
			break;
		c->heap[i] = c->heap[k];
		i = k;
	}
	c->heap[i] = last;
	return top;
}

static bool shape_gained(const struct core *c, const struct shape *s)
{
	const struct het *h = head(s)->het;
	for (uint32_t p = 0; p < s->part_n; p++)
		if (s->able[p] && (topology_alone(s, s->part[p]) || gained_any(c, s->able[p])))
			return true;
	for (uint32_t i = 1; h && i < h->n; i++) { /* room for any of its components */
		const struct core_job *m = het_job(c, h, i);
		for (uint32_t p = 0; m && p < m->shape->part_n; p++)
			if (m->shape->able[p] && gained_any(c, m->shape->able[p]))
				return true;
	}
	return false;
}

static void heap_fill(struct core *c)
{
	c->heap_n = 0;
	c->queue_n = 0;
	for (struct shape *s = active_next(c, NULL); s; s = active_next(c, s)) {
		c->queue_n += s->queue.count;
		shape_refresh(c, s);
		if (c->any_gained && !s->dirty && shape_gained(c, s))
			s->dirty = true;
		if (c->behind_wake && s->behind)
			s->dirty = true;
		if (s->dirty) {
			s->behind = false;
			heap_push(c, s);
		}
	}
	c->behind_wake = false;
	gained_none(c);
}

/* --- those before whom nobody may pass -------------------------------------------------------- */

static bool share_nodes(const struct shape *a, const struct shape *b)
{
	if (head(a)->het || head(b)->het) /* their components may want any */
		return true;
	for (uint32_t i = 0; i < a->part_n; i++)
		for (uint32_t k = 0; k < b->part_n; k++)
			if (a->able[i] && b->able[k] && bitset_intersects(a->able[i], b->able[k]))
				return true;
	return false;
}

/* Sees to it that all before `s` that want its nodes have promises. False: it must not start now (no backfill, or no budget left). */
static bool protect_earlier(struct core *c, struct shape *s, uint32_t *budget)
{
	const struct core_job *j = head(s);
	for (uint32_t i = 0; i < c->unpromised_n;) {
		struct shape *o = c->unpromised[i];
		struct core_job *first = head(o);
		if (o == s || !first || !job_before(first, j) || !share_nodes(o, s) || (c->params.backfill && !sweep_passed(c, first))) {
			i++;
			continue;
		}
		if (!c->params.backfill || !sweep_one(c, o, first, budget))
			return false;
		unpromised_drop(c, o);
	}
	return !c->params.backfill || sweep_run(c, j, budget);
}

/* The first one blocked in one of its partitions waits for room; those behind it for their turn. */
static bool first_blocked(const struct shape *s)
{
	bool first = false;
	for (uint32_t i = 0; i < s->part_n; i++) {
		struct core_part *p = s->part[i];
		if (!p || !(s->part_mask & 1u << i))
			continue;
		struct core_job *b = p->blocker ? head(p->blocker) : NULL;
		if (!b || p->blocker == s || job_before(head(s), b)) {
			p->blocker = (struct shape *)s;
			first = true;
		}
	}
	return first;
}

/* Everything it names by --nodelist is away? */
static bool required_away(const struct core *c, const struct shape *s) { return s->required && !bitset_subset(s->required, c->up); }

/* Without backfill one that had room but is not first is `behind`: it may go when one before it has. */
static void head_failed(struct core *c, struct shape *s, struct core_job *j, bool passed)
{
	s->dirty = false;
	s->behind = !passed;
	s->tried = true;
	s->lic_short = het_wants_licenses(c, j); /* which of them was short of what is not known here */
	s->resv_shown = 0;
	if (required_away(c, s) || resv_keeps_away(c, s, j))
		j->shown = REASON_REQ_NODE_NOT_AVAIL;
	else
		j->shown = !passed || !first_blocked(s) ? REASON_PRIORITY : c->topo_short ? REASON_NO_TOPOLOGY_UNIT : REASON_RESOURCES;
	if (!j->promise || j->promise->broken)
		unpromised_add(c, s);
}

static void plan_left(struct core *c, uint32_t *budget)
{
	for (uint32_t i = 0; c->params.backfill && i < c->unpromised_n && *budget;) {
		struct shape *s = c->unpromised[i];
		if (!sweep_passed(c, head(s)))
			i++;
		else if (sweep_one(c, s, head(s), budget))
			unpromised_drop(c, s);
	}
	if (c->params.backfill)
		sweep_slice(c, budget);
}

/* Does somebody wait who comes before j? */
static bool passes_others(const struct core *c, const struct core_job *j)
{
	bool passes = false;
	for (uint32_t i = 0; i < c->promise_n && !passes; i++)
		passes = c->promises[i]->job != j && job_before(c->promises[i]->job, j);
	for (uint32_t i = 0; i < c->unpromised_n && !passes; i++)
		passes = head(c->unpromised[i]) && head(c->unpromised[i]) != j && job_before(head(c->unpromised[i]), j);
	return passes;
}

void sched_promise_lost(struct core *c, struct core_job *j)
{
	if (head(j->shape) == j)
		unpromised_add(c, j->shape);
	c->promise_lost = true;
}

/* A start may wake or stop others (dependants, throttled tasks): then the heap is made anew. */
static void start_head(struct core *c, struct shape *s, struct core_job *j, struct core_part *p, struct alloc *a, uint32_t minutes)
{
	bool passes = passes_others(c, j);
	struct core_job *t = array_split(c, j);
	unpromised_drop(c, s);
	t->backfilled = passes;
	c->backfilled += passes;
	if (t == j)
		queue_remove(c, j);
	else
		promise_drop(c, j); /* it was for the task that starts */
	c->sched_wanted = false;
	t->time_min = minutes;
	job_start(c, t, p, a);
	if (c->params.backfill)
		promises_check(c, t, true, sched_promise_lost);
	for (uint32_t i = 1; c->params.backfill && t->het && i < t->het->n; i++)
		promises_check(c, het_job(c, t->het, i), true, sched_promise_lost);
	if (c->sched_wanted || c->any_gained) {
		s->dirty = s->queue.count > 0;
		heap_fill(c);
	} else if (s->queue.count)
		heap_push(c, s);
}

/* Nobody of another shape waits, and within a shape they go in order. */
static bool alone(const struct core *c, const struct shape *s) { return c->shapes_active.count == 1 && s->anode.in; }

/* Promises cost; they are made only when somebody could really pass: the head fits now, and earlier ones want the same nodes. */
static struct alloc *place_checked(struct core *c, struct shape *s, struct core_job *j, uint32_t minutes, struct core_part **ret_part, uint32_t *budget, bool *ret_may)
{
	uint64_t work = c->work;
	struct alloc *a = place_now(c, j, minutes, ret_part);
	int64_t planned = c->planned;
	work = c->work - work; /* charged at the end, so that something is left to plan with */
	if (!a || policy_on(c) || (c->params.backfill ? !c->shapes_active.count || alone(c, s) : !c->unpromised_n)) {
		budget_spend(work, budget);
		return a;
	}
	*ret_may = protect_earlier(c, s, budget);
	if (!*ret_may || planned != c->planned) {
		alloc_free(a);
		a = *ret_may ? place_now(c, j, minutes, ret_part) : NULL;
	}
	budget_spend(work, budget);
	return a;
}

/* --time-min: what would disturb others for its whole limit may run for less, as long as fits, at least so long. */
struct alloc *sched_place_shorter(struct core *c, struct shape *s, struct core_job *j, struct core_part **ret_part, uint32_t *budget, bool *ret_may, uint32_t *ret_min)
{
	uint32_t lo = s->least_min, hi = j->time_min == TIME_INFINITE ? 1440 * 365 : j->time_min;
	struct alloc *best = place_checked(c, s, j, lo, ret_part, budget, ret_may);
	while (best && lo + 1 < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		struct core_part *p;
		struct alloc *a = place_now(c, j, mid, &p);
		if (!a) {
			hi = mid;
			continue;
		}
		lo = mid;
		alloc_free(best);
		best = a;
		*ret_part = p;
	}
	*ret_min = lo;
	return best;
}

static void policy_pass(struct core *c, uint32_t budget)
{
	bool more = policy_run(c, budget);
	c->sched_wanted = false;
	if (more && !c->plan_asked)
		effects_push(c->fx, FX_PLAN_MORE);
	c->plan_asked = c->plan_asked || more;
}

static void pass_count(struct core_passes *p, int64_t depth, int64_t queue)
{
	p->n++;
	p->depth = depth;
	p->depth_sum += depth;
	p->queue = queue;
	p->queue_sum += queue;
}

/* There may be nodes, but not its licenses, or they are kept for others. */
static void head_lacks_license(struct core *c, struct shape *s, struct core_job *j)
{
	bool room = license_room(c, j, &s->lic);
	s->lic_short = true;
	c->lic_kept = c->lic_kept || room;
	if (room)
		return;
	j->shown = REASON_LICENSES;
	preempt_for_license(c, j);
}

/* Short of licenses, without backfill: it waits for those, and nobody waits behind it. */
static void head_unlicensed(struct core *c, struct shape *s, struct core_job *j)
{
	unpromised_drop(c, s);
	promise_drop(c, j);
	s->dirty = false;
	s->tried = true;
	head_lacks_license(c, s, j);
}

/* No room: on CPUs of jobs that can be suspended. Those before it that want the same nodes come first, as always. */
static struct alloc *place_over(struct core *c, struct shape *s, struct core_job *j, struct core_part **ret_part, uint32_t *budget, bool *ret_may)
{
	struct alloc *a = preempt_over(c, j, j->time_min, ret_part);
	int64_t planned = c->planned;
	if (!a || alone(c, s))
		return a;
	*ret_may = protect_earlier(c, s, budget);
	if (*ret_may && planned == c->planned)
		return a;
	alloc_free(a);
	return *ret_may ? preempt_over(c, j, j->time_min, ret_part) : NULL;
}

/* A limit of its QOS or association is in the way (with what it would get): it and all like it wait for that. */
static bool head_limited(struct core *c, struct shape *s, const struct core_job *j, const struct core_part *p, const struct alloc *a)
{
	struct acct_hit hit;
	if (!acct_stops(c, j, p, a, &hit))
		return false;
	acct_park(c, s, hit.reason);
	return true;
}

void sched_run(struct core *c, uint32_t budget)
{
	int64_t depth = 0, queue;
	c->sched_wanted = false;
	c->passes++;
	if (policy_on(c)) {
		policy_pass(c, budget);
		pass_count(c->planning ? &c->plan_pass : &c->pass, 0, c->queue_n);
		return;
	}
	license_wake(c);
	acct_wake(c);
	heap_fill(c);
	queue = c->queue_n;
	for (; c->heap_n && budget; depth++) {
		struct shape *s = heap_pop(c);
		struct core_job *j = head(s);
		struct core_part *p = NULL;
		bool may = true;
		uint32_t minutes = j->time_min;
		s->lic_short = false;
		if (head_limited(c, s, j, NULL, NULL))
			continue;
		if (!c->params.backfill && !license_room(c, j, &s->lic)) {
			head_unlicensed(c, s, j);
			continue;
		}
		bool licensed = license_beside(c, j, c->now_ms, c->now_ms + job_length_ms(j));
		struct alloc *a = licensed ? place_checked(c, s, j, minutes, &p, &budget, &may) : NULL;
		if (!a && may && licensed && s->least_min && c->params.backfill && !j->het)
			a = sched_place_shorter(c, s, j, &p, &budget, &may, &minutes);
		if (!a && may && licensed && c->params.preempt)
			a = place_over(c, s, j, &p, &budget, &may);
		if (a && head_limited(c, s, j, p, a)) {
			alloc_free(a);
			continue;
		}
		if (a) {
			start_head(c, s, j, p, a, minutes);
			continue;
		}
		if (!may && c->params.backfill) { /* out of budget: it stays dirty */
			heap_push(c, s);
			break;
		}
		head_failed(c, s, j, may);
		if (!licensed)
			head_lacks_license(c, s, j);
		if (may && licensed && c->params.preempt)
			(void)preempt_try(c, j);
	}
	if (c->planning) {
		plan_left(c, &budget);
		c->promise_lost = c->promise_lost && !budget;
	}
	pass_count(c->planning ? &c->plan_pass : &c->pass, depth, queue);
	c->sched_wanted = false;
	if (c->heap_n || c->lic_look || sweep_wanted(c) || c->promise_lost) {
		if (!c->plan_asked)
			effects_push(c->fx, FX_PLAN_MORE);
		c->plan_asked = true;
	}
	c->heap_n = 0;
}
