/* policy.c - backfill with few promises, or with one for every job: the other two ways to go through the queue
 *
 * schedule.c promises a start to the head of every shape that found no room. Here the first `bf_reserve` jobs of each partition get one
 * (bf_job_part_count_reserve; 1 is EASY backfill) and all others may pass them as long as no promise moves; or every job gets one and the plan is
 * made anew whenever room appears (bf_plan=all: conservative backfill, for what-if questions: its cost grows with the length of the queue).
 * The order in which the others are tried is theirs (bf_order): that of the queue, the shortest limit first, or the one that a wait costs most in
 * proportion to its probable length (predict.c). Promises, placement and the queue are the same as everywhere: place_now, promise_make, job_before.
 *
 * A pass goes through the line of shapes twice: by queue order while promises are to be given, then the rest by bf_order. Promises are made anew
 * when something got free or went; else only shapes that are dirty (a new job) are tried against the promises there are. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/state.h"

struct line { struct shape **s; uint32_t n; };

void policy_forget(struct core *c, const struct core_job *j)
{
	for (uint32_t i = 0; i < c->part_n; i++)
		if (c->part[i]->reserve_last == j) {
			c->part[i]->reserve_last = NULL;
			c->promises_made = UINT32_MAX;
		}
}

bool policy_on(const struct core *c) { return c->params.backfill && (c->params.bf_reserve || c->params.bf_plan_all); }

static struct core_job *head(const struct shape *s)
{
	struct tree_node *n = tree_first(&s->queue);
	return n ? (struct core_job *)((char *)n - offsetof(struct core_job, qnode)) : NULL;
}

static struct shape *active_next(const struct core *c, struct shape *s)
{
	struct tree_node *n = s ? tree_next(&s->anode) : tree_first(&c->shapes_active);
	return n ? (struct shape *)((char *)n - offsetof(struct shape, anode)) : NULL;
}

/* By how much the wait so far and its probable length lengthen it, in 1/1024: who suffers most from waiting goes first. */
static uint64_t urgency(const struct core *c, const struct core_job *j)
{
	uint64_t length = ((uint64_t)predict_sec(c, j) + predict_limit_sec(j)) / 2, wait = now_sec(c) > j->eligible ? now_sec(c) - j->eligible : 0;
	return (wait + length) * 1024 / (length + 60);
}

/* Among jobs that nothing is promised to. Tiers stay first. */
static bool rest_before(const struct core *c, const struct core_job *a, const struct core_job *b)
{
	if (a->tier != b->tier || c->params.bf_order == BF_ORDER_QUEUE)
		return job_before(a, b);
	if (c->params.bf_order == BF_ORDER_SHORTEST)
		return a->time_min != b->time_min ? a->time_min < b->time_min : job_before(a, b);
	uint64_t x = urgency(c, a), y = urgency(c, b);
	return x != y ? x > y : job_before(a, b);
}

static bool before(const struct core *c, const struct shape *a, const struct shape *b, bool rest)
{
	if (!head(a) || !head(b)) /* it left meanwhile: out of the line first */
		return !head(a);
	return rest ? rest_before(c, head(a), head(b)) : job_before(head(a), head(b));
}

/* A binary heap. */
static void line_push(const struct core *c, struct line *l, struct shape *s, bool rest)
{
	uint32_t i = l->n++;
	for (; i > 0 && before(c, s, l->s[(i - 1) / 2], rest); i = (i - 1) / 2)
		l->s[i] = l->s[(i - 1) / 2];
	l->s[i] = s;
}

static struct shape *line_pop(const struct core *c, struct line *l, bool rest)
{
	struct shape *top = l->s[0], *last = l->s[--l->n];
	uint32_t i = 0;
	for (uint32_t k; (k = 2 * i + 1) < l->n; i = k) {
		k += k + 1 < l->n && before(c, l->s[k + 1], l->s[k], rest);
		if (!before(c, l->s[k], last, rest))
			break;
		l->s[i] = l->s[k];
	}
	l->s[i] = last;
	return top;
}

/* May a promise be made to it: has one of its partitions fewer than it reserves? */
static bool may_reserve(const struct core *c, const struct core_job *j)
{
	for (uint32_t i = 0; i < j->shape->part_n; i++)
		if (j->shape->part[i] && (j->shape->part_mask & 1u << i) && j->shape->part[i]->reserved < c->params.bf_reserve)
			return true;
	return false;
}

static void reserve(struct core *c, struct core_job *j)
{
	j->shown = REASON_RESOURCES;
	for (uint32_t i = 0; i < j->shape->part_n; i++) {
		struct core_part *p = j->shape->part[i];
		/* A full one had its last before: with this one as its last, those between would seem to have been passed over, and all be planned again. */
		if (p && (j->shape->part_mask & 1u << i) && (c->params.bf_plan_all || p->reserved < c->params.bf_reserve)) {
			p->reserved++;
			p->reserve_last = j;
		}
	}
	(void)promise_make(c, j->shape, j, PLAN_ALONE);
}

/* Those of the pass before that this one has not made again. */
static void promises_drop_old(struct core *c)
{
	for (uint32_t i = c->promise_n; i > 0; i--)
		if (i <= c->promise_n && c->promises[i - 1]->old) /* those of a heterogeneous job go together */
			promise_drop(c, c->promises[i - 1]->job);
}

/* Into the order of the queue: a merge sort, by nothing but the defined order. */
static void jobs_sort(struct core_job **j, uint32_t n)
{
	struct core_job **tmp = xmalloc((n + 1) * sizeof *tmp);
	for (uint32_t w = 1; w < n; w *= 2) {
		for (uint32_t lo = 0; lo < n; lo += 2 * w) {
			uint32_t mid = lo + w < n ? lo + w : n, hi = lo + 2 * w < n ? lo + 2 * w : n, i = lo, k = mid;
			for (uint32_t o = lo; o < hi; o++)
				tmp[o] = i < mid && (k >= hi || !job_before(j[k], j[i])) ? j[i++] : j[k++];
		}
		memcpy(j, tmp, n * sizeof(struct core_job *));
	}
	free(tmp);
}

/* Starts have taken nodes: the same starts can be promised with a better choice of nodes, which leaves more to others. */
static void promises_renew(struct core *c)
{
	struct core_job **had = xmalloc((c->promise_n + 1) * sizeof(struct core_job *));
	uint32_t n = c->promise_n;
	for (uint32_t i = 0; i < n; i++)
		had[i] = c->promises[i]->job;
	jobs_sort(had, n);
	for (uint32_t i = 0; i < n; i++)
		(void)promise_make(c, had[i]->shape, had[i], PLAN_ALONE);
	free(had);
}

static void promise_lost(struct core *c, struct core_job *j) { (void)promise_make(c, j->shape, j, PLAN_ALONE); }

/* A limit is in the way of its start. */
static bool limited(struct core *c, struct core_job *j, const struct core_part *p, const struct alloc *a)
{
	struct acct_hit hit;
	bool yes = acct_stops(c, j, p, a, &hit);
	j->shape->limited = (uint8_t)(yes ? hit.reason : REASON_NONE);
	return yes;
}

/* Starts it if there is room beside all promises to jobs before it; --time-min: for a shorter time if need be. */
static bool start_if_room(struct core *c, struct core_job *j)
{
	struct core_part *p = NULL;
	uint32_t minutes = j->time_min, unused = 0;
	bool may = true, passes = false;
	for (uint32_t i = 0; i < c->promise_n && !passes; i++)
		passes = job_before(c->promises[i]->job, j);
	if (limited(c, j, NULL, NULL))
		return false;
	struct alloc *a = place_now(c, j, minutes, &p);
	if (!a && j->shape->least_min)
		a = sched_place_shorter(c, j->shape, j, &p, &unused, &may, &minutes);
	if (!a && c->params.preempt)
		a = preempt_over(c, j, minutes, &p);
	if (!a)
		return false;
	if (limited(c, j, p, a)) {
		alloc_free(a);
		return false;
	}
	struct core_job *t = array_split(c, j);
	t->backfilled = passes;
	c->backfilled += passes;
	if (t == j)
		queue_remove(c, j);
	t->time_min = minutes;
	job_start(c, t, p, a);
	promises_check(c, t, true, promise_lost);
	c->promises_old = c->promise_n > 0;
	return true;
}

/* Reserved for now: the plan has found nodes for all components of a heterogeneous job where taking them one after the other did not. */
static bool starts_as_planned(struct core *c, struct core_job *j)
{
	return het_leads(j) && j->promise && j->promise->start_ms <= c->now_ms && start_if_room(c, j);
}

static bool try_rest(struct core *c, struct core_job *j)
{
	if (start_if_room(c, j))
		return true;
	if (!c->promises_old)
		return false;
	c->promises_old = false;
	promises_renew(c);
	return start_if_room(c, j);
}

static void failed(struct core *c, struct shape *s, struct core_job *j)
{
	s->dirty = false;
	s->tried = true;
	if (!j->promise)
		j->shown = s->required && !bitset_subset(s->required, c->up) ? REASON_REQ_NODE_NOT_AVAIL : REASON_PRIORITY;
}

/* Does a dirty one come before any that was promised a start in one of its partitions, or could it be promised one? */
static bool upsets(const struct core *c, const struct shape *s)
{
	for (uint32_t i = 0; i < s->part_n; i++) {
		const struct core_part *p = s->part[i];
		if (!p || !(s->part_mask & 1u << i))
			continue;
		if ((!c->params.bf_plan_all && p->reserved < c->params.bf_reserve) || (p->reserve_last && job_before(head(s), p->reserve_last)))
			return true;
	}
	return false;
}

/* Must the promises be made anew? Not when all that happened is that jobs came which are behind those that have them. */
static bool plan_is_old(const struct core *c)
{
	if (c->any_gained || c->promise_n != c->promises_made)
		return true;
	for (struct shape *s = active_next(c, NULL); s; s = active_next(c, s))
		if (s->dirty && (head(s)->promise || upsets(c, s))) /* what was planned may start now */
			return true;
	return false;
}

/* Is there room for it now, beside the promises there are already? */
static bool fits_now(struct core *c, struct shape *s)
{
	struct core_part *p;
	struct alloc *a = place_now(c, head(s), s->least_min ? s->least_min : head(s)->time_min, &p);
	if (a)
		free(a->words);
	free(a);
	return a != NULL;
}

/* Equal nodes, given whole: numbers will do (profile.c). */
static void plan_numbers(struct core *c, struct core_job **j, uint32_t n)
{
	struct profile p = { 0 };
	profile_begin(c, &p);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = 0;
		while (j[i]->qnode.in && (at = profile_take(&p, j[i]->shape->min_nodes, predict_limit_sec(j[i]) * 1000ull)) <= c->now_ms && start_if_room(c, j[i]))
			;
		if (!j[i]->qnode.in)
			continue;
		j[i]->shown = REASON_RESOURCES;
		promise_put(c, j[i], at);
		failed(c, j[i]->shape, j[i]);
	}
	free(p.step);
}

static bool promised(const struct core_job *j) { return j->promise && !j->promise->old; }

/* Each job in turn: it starts, or it is promised a start. Behind the last one for which there is room now nobody can start, whatever was promised:
 * those are planned when it matters. */
static void plan_everybody(struct core *c, bool anew)
{
	uint32_t n = 0, cap = 0;
	struct core_job **j = NULL;
	for (struct shape *s = active_next(c, NULL); s; s = active_next(c, s)) {
		shape_refresh(c, s);
		s->fits = (anew || s->dirty) && fits_now(c, s);
		cap += s->queue.count;
	}
	j = xmalloc((cap + 1) * sizeof *j);
	for (struct shape *s = active_next(c, NULL); s; s = active_next(c, s))
		for (struct tree_node *t = tree_first(&s->queue); t; t = tree_next(t))
			j[n++] = (struct core_job *)((char *)t - offsetof(struct core_job, qnode));
	jobs_sort(j, n);
	if (profile_applies(c)) {
		plan_numbers(c, j, n);
		free(j);
		return;
	}
	uint32_t last = n;
	while (last && !j[last - 1]->shape->fits)
		failed(c, j[last - 1]->shape, j[last - 1]), last--;
	for (uint32_t i = 0; i < last; i++) {
		while (j[i]->qnode.in && !promised(j[i]) && start_if_room(c, j[i]))
			;
		if (!j[i]->qnode.in || promised(j[i]))
			continue;
		reserve(c, j[i]);
		if (starts_as_planned(c, j[i]))
			continue;
		failed(c, j[i]->shape, j[i]);
		(void)preempt_try(c, j[i]);
	}
	promises_drop_old(c);
	free(j);
}

static void go_through(struct core *c, uint32_t *budget)
{
	struct line first = { .s = xmalloc((c->shapes_active.count + 1) * sizeof(struct shape *)) }, rest = first;
	rest.s = xmalloc((c->shapes_active.count + 1) * sizeof(struct shape *));
	for (struct shape *s = active_next(c, NULL); s; s = active_next(c, s)) {
		shape_refresh(c, s);
		if (s->dirty)
			line_push(c, &first, s, false);
	}
	while (first.n) {
		struct shape *s = line_pop(c, &first, false);
		struct core_job *j = head(s);
		if (!j)
			continue;
		if (!may_reserve(c, j)) {
			line_push(c, &rest, s, true);
			continue;
		}
		if (start_if_room(c, j)) {
			if (head(s))
				line_push(c, &first, s, false);
			continue;
		}
		reserve(c, j);
		if (starts_as_planned(c, j)) {
			if (head(s))
				line_push(c, &first, s, false);
			continue;
		}
		failed(c, s, j);
		(void)preempt_try(c, j);
	}
	promises_drop_old(c);
	while (rest.n && *budget) {
		struct shape *s = line_pop(c, &rest, true);
		struct core_job *j = head(s);
		if (!j)
			continue;
		if (!try_rest(c, j)) {
			--*budget;
			failed(c, s, j);
		} else if (head(s))
			line_push(c, &rest, s, true);
	}
	free(first.s);
	free(rest.s);
}

static bool any_dirty(const struct core *c)
{
	for (struct shape *s = active_next(c, NULL); s; s = active_next(c, s))
		if (s->dirty)
			return true;
	return false;
}

/* The pass over the queue. True: there is more to do (the budget is spent, or starts have woken others). */
bool policy_run(struct core *c, uint32_t budget)
{
	bool anew = plan_is_old(c);
	if (anew) {
		for (uint32_t i = 0; i < c->promise_n; i++)
			c->promises[i]->old = true;
		for (uint32_t i = 0; i < c->part_n; i++) {
			c->part[i]->reserved = 0;
			c->part[i]->reserve_last = NULL;
		}
		c->promises_old = false;
	}
	for (struct shape *s = active_next(c, NULL); anew && s; s = active_next(c, s))
		s->dirty = true;
	gained_none(c);
	if (c->params.bf_plan_all)
		plan_everybody(c, anew);
	else
		go_through(c, &budget);
	c->promises_made = c->promise_n;
	return c->any_gained || any_dirty(c);
}
