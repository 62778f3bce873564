/* plan.c - promises: when and where the first jobs of the queue will start at the latest
 * A promise is the earliest time at which enough nodes are free for a job's whole limit, and an amount on each of them. Whoever comes later in the
 * queue must leave that amount free (avail_spare). Ends come early, so a promise only ever turns out better; it is dropped when
 * its job starts, leaves, or loses a node. Amounts are counts; which CPUs and devices is decided at the start.
 * `fresh` promises were made one after the other in the order of the queue (sweep.c), each counting those before: node->future holds their sum, and each shape
 * knows of each node the earliest start that is still possible (earliest.c). Others are made one by one, by looking at every node. */
#include <stdlib.h>

#include "core/reserve.h"

#define NEVER_MS (1ull << 50)     /* no limit: an end that never comes */
#define FOREVER_MS (ONE_YEAR_SEC * 1000ull)
#define RAISES_MAX 12000u     /* looks at nodes that a search gets to know better before it gives the slice back: about a millisecond */
#define MEND_SPARE 8          /* more nodes than are needed: to choose from */
#define LICENSE_ROUNDS 4      /* starts looked at for one with its licenses */
#define RESV_ROUNDS 8         /* occurrences of a recurring reservation looked at */

uint64_t job_end_ms(const struct core *c, const struct core_job *j)
{
	if (c->dooming && ((j->doomed && !preempt_lends(c, j)) || j->preempt_at))
		return c->now_ms;
	if (j->preempt_end && j->state == PB__JOB_STATE__RUNNING)
		return j->preempt_end > now_sec(c) ? j->preempt_end * 1000ull : c->now_ms + 1000;
	if (job_state_is_final(j->state) || (j->flags & JOBF_COMPLETING))
		return c->now_ms + 1000;
	uint64_t end = j->time_min == TIME_INFINITE ? NEVER_MS : ((uint64_t)j->start + j->susp_total) * 1000 + j->time_min * 60000ull;
	if (j->state == PB__JOB_STATE__SUSPENDED && end != NEVER_MS && c->now_ms > j->suspend * 1000ull) /* were it to go on now */
		end += c->now_ms - j->suspend * 1000ull;
	return end <= c->now_ms ? c->now_ms + 1000 : end;
}

uint64_t length_ms(uint32_t minutes) { return minutes == TIME_INFINITE ? FOREVER_MS : minutes * 60000ull; }
uint64_t job_length_ms(const struct core_job *j) { return length_ms(j->time_min); }

/* CPUs that jobs of the partition may hold on n at some time from `from` to `to`. */
static uint32_t mine_during(const struct core *c, const struct core_node *n, const struct when *w, uint64_t from, uint64_t to)
{
	uint32_t k = 0;
	for (size_t i = 0; i < n->held_n; i++)
		k += n->held[i].job->part == w->part->index && job_end_ms(c, n->held[i].job) > from ? n->held[i].job->alloc->on[n->held[i].at].cpus : 0;
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		if (p->part == w->part->index && p->job != w->j && job_before(p->job, w->j) && p->start_ms < to && p->end_ms > from)
			k += p->on[n->plan[i].at].cpus;
	}
	return k;
}

void avail_during(struct core *c, struct core_node *n, const struct when *w, struct avail *a)
{
	future_avail(c, n, w->fresh ? NULL : w->j, w->start_ms, w->end_ms, a);
	if (w->part && w->part->max_node_cpus != UINT32_MAX)
		a->mine = mine_during(c, n, w, w->start_ms, w->end_ms);
}

void avail_spare(struct core *c, const struct when *w, struct core_node *n, struct avail *a)
{
	const struct core_job *me = het_first(c, w->j); /* what is promised to other components of the same job is what they are being given */
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		if (p->job != me && p->start_ms < w->end_ms && p->start_ms < first && job_before(p->job, me))
			first = p->start_ms;
	}
	if (first == UINT64_MAX)
		return;
	future_lower(c, n, me, first > c->now_ms ? first : c->now_ms, w->end_ms, a);
	if (w->part && w->part->max_node_cpus != UINT32_MAX) {
		uint32_t mine = mine_during(c, n, w, first, w->end_ms), left = mine < w->part->max_node_cpus ? w->part->max_node_cpus - mine : 0;
		a->cpus = a->cpus < left ? a->cpus : left;
	}
}

/* --- making one ------------------------------------------------------------------------------- */

static struct promise *promise_of(const struct core *c, struct core_job *j, uint32_t part, const struct when *w, const struct fit *f, uint32_t n)
{
	struct bitset *rest = NULL;
	uint32_t more = n && topology_alone(j->shape, w->part) ? topology_rest(c, w->part, f, n, &rest) : 0;
	struct promise *p = xcalloc(1, sizeof *p + (n + more) * sizeof p->on[0]);
	p->job = j;
	p->part = part;
	p->start_ms = w->start_ms;
	p->end_ms = w->end_ms;
	p->n = p->own = n;
	for (uint32_t i = 0; i < n; i++) {
		p->on[i] = (struct promise_on){ .node = f[i].node, .cpus = j->shape->own_spec ? c->node[f[i].node]->cap : f[i].cpus, .tasks = f[i].tasks, .mem = f[i].mem };
		memcpy(p->on[i].gres, f[i].gres, sizeof f[i].gres);
	}
	if (more)
		bitset_for(rest, i)
			p->on[p->n++] = (struct promise_on){ .node = i, .cpus = c->node[i]->cap };
	bitset_destroy(rest);
	return p;
}

/* Of n nodes that will do at w, those that are free last: it leaves others the nodes that are free now. *f is replaced where that succeeds. */
static uint32_t choose_late(struct core *c, const struct shape *s, const struct moment *m, uint32_t n, const struct when *w, struct fit **f, uint32_t k)
{
	struct bitset *late = bitset_create(c->node_n);
	uint32_t done = 0;
	for (uint32_t want = s->min_nodes; policy_on(c) && want < n; want *= 2) {
		struct fit *g;
		for (; done < want; done++)
			bitset_set(late, m[n - 1 - done].node);
		uint32_t got = place_choose(c, s, late, w, &g);
		if (got) {
			free(*f);
			*f = g;
			k = got;
			break;
		}
	}
	bitset_destroy(late);
	return k;
}

/* What is sought, and what is known so far. */
struct search {
	struct shape *s;
	struct core_job *j;
	uint32_t at;                /* partition, of the shape's */
	bool fresh;
	const struct resv *in;
	uint64_t limit_ms;          /* the window ends there */
	struct bitset *ready;
	uint64_t tasks, gpus, latest_ms;
	uint64_t raised;
	uint32_t nodes, try_at;     /* so many nodes are ready; look again when there are try_at */
};

static struct when when_at(const struct search *q, uint64_t ms)
{
	return (struct when){ .j = q->j, .start_ms = ms, .end_ms = ms + job_length_ms(q->j), .part = q->s->part[q->at], .in = q->in, .fresh = q->fresh };
}

static uint64_t earliest(struct core *c, const struct search *q, uint32_t node, uint64_t from)
{
	struct core_node *n = c->node[node];
	struct core_part *part = q->s->part[q->at];
	if (!bitset_has(c->up, node) || (q->in && !(q->in->flags & (RESVF_FLEX | RESVF_ANY_NODES)) && !bitset_has(q->in->nodes, node)))
		return UINT64_MAX;
	if (c->topo_only || topology_alone(q->s, part)) {
		uint64_t until = topology_until(c, q->s, part, q->j, n);
		from = until > from ? until : from;
	}
	if (!n->owners && !n->plan_picky && !company_picky(q->s, part) && part->max_node_cpus == UINT32_MAX && !q->in && !n->resv_n)
		return future_earliest(c, q->s, n, q->fresh ? NULL : q->j, from, job_length_ms(q->j));
	uint64_t t = from;
	for (size_t round = 0; round < n->held_n + n->plan_n + 2 + n->resv_n * RESV_ROUNDS; round++) { /* what the list of a node does not know: whose jobs they are, in which partition or reservation */
		struct when w = when_at(q, t);
		struct avail a;
		avail_of(c, q->s, &w, n, &a);
		c->work++;
		if (fit_tasks(c, q->s, n, &a) >= least_tasks(q->s))
			return t;
		uint64_t next = n->resv_n ? resv_next_end(c, n, &w) : UINT64_MAX;
		for (size_t i = 0; i < n->held_n; i++) {
			uint64_t e = job_end_ms(c, n->held[i].job);
			next = e > t && e < next ? e : next;
		}
		for (uint32_t i = 0; i < n->plan_n; i++)
			next = n->plan[i].p->end_ms > t && n->plan[i].p->end_ms < next ? n->plan[i].p->end_ms : next;
		if (next == UINT64_MAX)
			break;
		t = next;
	}
	return UINT64_MAX;
}

/* One more node that is free from `ms` on. */
static void ready_add(struct core *c, struct search *q, uint32_t node, uint64_t ms, struct seen *ret)
{
	struct when w = when_at(q, ms);
	struct avail a;
	avail_of(c, q->s, &w, c->node[node], &a);
	*ret = (struct seen){ ms, node, fit_tasks(c, q->s, c->node[node], &a), q->s->job.n ? gpus_for_job(c, q->s, c->node[node], &a) : 0 };
	bitset_set(q->ready, node);
	q->nodes++;
	q->tasks += ret->tasks;
	q->gpus += ret->gpus;
	q->latest_ms = ms > q->latest_ms ? ms : q->latest_ms;
}

static uint64_t gpus_wanted(const struct shape *s)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->job.n; i++)
		n = s->job.w[i].count > n ? s->job.w[i].count : n;
	return n;
}

static bool ready_enough(const struct search *q)
{
	const struct shape *s = q->s;
	return q->nodes >= s->min_nodes && q->nodes >= q->try_at && q->tasks >= s->tasks && q->gpus >= gpus_wanted(s) &&
		(!s->required || bitset_subset(s->required, q->ready));
}

/* More are ready than are needed: without those that are free long before. */
static void ready_trim(struct search *q, const struct seen *seen, uint32_t n)
{
	const struct shape *s = q->s;
	if (s->required || s->contiguous || s->many_nodes || s->sets.n || q->s->part[q->at]->topo || q->try_at)
		return;
	for (uint32_t i = 0; i < n && q->nodes > s->min_nodes; i++) {
		if (q->tasks < s->tasks + seen[i].tasks || q->gpus < gpus_wanted(s) + seen[i].gpus || seen[i].ms == q->latest_ms)
			break;
		bitset_clear(q->ready, seen[i].node);
		q->nodes--;
		q->tasks -= seen[i].tasks;
		q->gpus -= seen[i].gpus;
	}
}

/* m: the nodes that are ready in order of their times, where known. */
static struct promise *ready_try(struct core *c, struct search *q, const struct moment *m)
{
	struct when w = when_at(q, q->latest_ms);
	struct fit *f;
	if (!ready_enough(q))
		return NULL;
	uint32_t k = place_choose(c, q->s, q->ready, &w, &f);
	c->work += 2 * q->nodes;
	if (q->fresh)
		q->try_at = q->nodes + 1 + q->nodes / (q->s->sets.n || q->s->part[q->at]->topo ? 16 : 2);
	if (!k)
		return NULL;
	if (m)
		k = choose_late(c, q->s, m, q->nodes, &w, &f, k);
	struct promise *p = promise_of(c, q->j, q->s->part[q->at]->index, &w, f, k);
	p->fresh = q->fresh;
	free(f);
	return p;
}

static void ready_clear(struct search *q)
{
	bitset_zero(q->ready);
	q->tasks = q->gpus = q->latest_ms = 0;
	q->nodes = q->try_at = 0;
}

/* All nodes in order of the time from which they are free, at or after `from`. Sets *ret_last where all are: look behind it. */
static struct promise *search_all(struct core *c, struct search *q, uint64_t from, uint64_t *ret_last)
{
	struct moment *m = xmalloc((2 * c->node_n + 1) * sizeof *m);
	struct promise *p = NULL;
	uint32_t n = 0;
	ready_clear(q);
	bitset_for(q->s->able[q->at], i) {
		uint64_t e = earliest(c, q, i, from);
		if (e <= q->limit_ms)
			m[n++] = (struct moment){ e, i };
	}
	moments_sort(m, n, m + c->node_n);
	for (uint32_t i = 0; n >= q->s->min_nodes && i < n && !p; i++) {
		struct seen seen;
		ready_add(c, q, m[i].node, m[i].ms, &seen);
		if (i + 1 == n)
			q->try_at = 0;
		if (i + 1 == n || m[i + 1].ms != m[i].ms)
			p = ready_try(c, q, m);
	}
	*ret_last = n >= q->s->min_nodes && n ? m[n - 1].ms : UINT64_MAX;
	free(m);
	return p;
}

/* The next node by the earliest time known to be possible (earliest.c), up to until_ms. False: none. */
static bool search_next(struct core *c, struct search *q, uint64_t until_ms, uint32_t *k)
{
	uint32_t node;
	uint64_t ms;
	while (est_top(q->s, q->at, &node, &ms) && ms <= until_ms) {
		uint64_t work = c->work, e = bitset_has(q->s->able[q->at], node) ? earliest(c, q, node, ms > c->now_ms ? ms : c->now_ms) : UINT64_MAX; /* not before ms: that is known */
		if (e <= q->limit_ms && e / 1000 > ms / 1000) {
			est_raise(q->s, q->at, e);
			q->raised += c->work - work;
			if (q->raised < RAISES_MAX)
				continue;
			c->unfinished = true;
			return false;
		}
		est_pop(q->s, q->at);
		if (e > q->limit_ms || bitset_has(q->ready, node))
			continue; /* too late, or named twice: it had gained */
		c->seen = xgrow(c->seen, &c->seen_cap, *k + 1, sizeof *c->seen);
		ready_add(c, q, node, e, &c->seen[(*k)++]);
		return true;
	}
	return false;
}

/* Few nodes have to be looked at. Of those free at the same time some more than needed are taken along, so that none is held idle for long.
 * What it learns of nodes stays known: a search that was given up (c->unfinished) gets further the next time. */
static struct promise *search_fast(struct core *c, struct search *q, uint64_t *ret_last)
{
	struct promise *p = NULL;
	uint32_t k = 0;
	ready_clear(q);
	est_sync(c, q->s, q->at, q->limit_ms);
	while (!p && search_next(c, q, UINT64_MAX, &k)) {
		if (!ready_enough(q))
			continue;
		for (uint32_t more = k + 8; k < more && search_next(c, q, q->latest_ms, &k);)
			;
		ready_trim(q, c->seen, k);
		p = ready_try(c, q, NULL);
		for (uint32_t i = 0; !p && i < k; i++) /* all of them, then */
			if (!bitset_has(q->ready, c->seen[i].node))
				ready_add(c, q, c->seen[i].node, c->seen[i].ms, &c->seen[i]);
	}
	if (!p && k && !c->unfinished) {
		q->try_at = 0;
		p = ready_try(c, q, NULL);
	}
	c->unfinished = c->unfinished && !p;
	*ret_last = q->nodes >= q->s->min_nodes ? q->latest_ms : UINT64_MAX;
	for (uint32_t i = 0; i < k; i++)
		est_push(c, q->s, q->at, c->seen[i].node, c->seen[i].ms);
	return p;
}

uint64_t plan_window_ms(const struct core *c) { return (c->params.bf_window_min ? c->params.bf_window_min : 1440) * 60000ull; }

static struct promise *promise_in(struct core *c, struct shape *s, struct core_job *j, uint32_t at, const struct resv *in, enum plan_how how)
{
	static const uint32_t rounds[] = { [PLAN_ALONE] = 16, [PLAN_FRESH] = 0, [PLAN_BEHIND] = 0, [PLAN_WHOLE] = 2 };
	uint64_t last = UINT64_MAX, first = j->begin * 1000ull > c->now_ms ? j->begin * 1000ull : c->now_ms;
	first = c->plan_from_ms > first ? c->plan_from_ms : first;
	struct search q = { .s = s, .j = j, .at = at, .fresh = how != PLAN_ALONE, .in = in, .limit_ms = first + plan_window_ms(c), .ready = bitset_create(c->node_n) };
	if (in && !(in->flags & RESVF_FLEX) && (uint64_t)in->end * 1000 <= q.limit_ms)
		q.limit_ms = (uint64_t)in->end * 1000 - 1;
	if (how == PLAN_BEHIND && c->behind_ms > first)
		first = c->behind_ms;
	struct promise *p = how == PLAN_FRESH && !in ? search_fast(c, &q, &last) : search_all(c, &q, first, &last);
	for (uint32_t round = 0; !p && round < rounds[how] && last != UINT64_MAX; round++)
		p = search_all(c, &q, last + 1, &last); /* gaps between promises: behind the last one */
	if (!p && last != UINT64_MAX && s->min_nodes > 1 && (!s->gap_ms || last < s->gap_ms))
		s->gap_ms = last;
	bitset_destroy(q.ready);
	return p;
}

static void drop_one(struct core *c, struct core_job *j)
{
	struct promise *p = j->promise;
	policy_forget(c, j);
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		struct core_node *n = c->node[p->on[i].node];
		uint32_t k = 0;
		while (n->plan[k].p != p)
			k++;
		memmove(n->plan + k, n->plan + k + 1, (n->plan_n - k - 1) * sizeof *n->plan);
		n->plan_picky -= p->picky;
		if (!--n->plan_n)
			bitset_clear(c->promised, n->index);
		if (p->fresh)
			est_gained(c, n);
	}
	license_unpromised(c, p);
	c->promises[p->index] = c->promises[--c->promise_n];
	c->promises[p->index]->index = p->index;
	c->plan_stale = true;
	j->promise = NULL;
	free(p);
}

static void promise_enter(struct core *c, struct promise *p)
{
	p->picky = company_picky(p->job->shape, c->part[p->part]);
	for (uint32_t i = 0; i < p->n; i++) {
		struct core_node *n = c->node[p->on[i].node];
		n->plan = xgrow(n->plan, &n->plan_cap, n->plan_n + 1, sizeof *n->plan);
		n->plan[n->plan_n++] = (struct planned){ p, i };
		n->plan_picky += p->picky;
		bitset_set(c->promised, n->index);
		if (p->fresh)
			future_forget(n);
	}
	c->promises = xgrow(c->promises, &c->promise_cap, c->promise_n + 1, sizeof *c->promises);
	p->index = c->promise_n;
	c->promises[c->promise_n++] = p;
	license_promised(c, p);
}

/* By how much it has slipped: what ends (completes) at any moment is taken to end in a second (job_end_ms). */
static uint64_t slipped_ms(const struct core *c, const struct promise *p) { return p->start_ms < c->now_ms + 1000 ? c->now_ms + 1000 - p->start_ms : 0; }

/* Is what it promises on one node still free, as far as numbers tell? fresh: beside the plan being made; else beside all promises to jobs before it. */
static bool promise_fits(struct core *c, const struct promise *p, uint32_t at, bool fresh)
{
	uint64_t slip = slipped_ms(c, p);
	const struct promise_on *o = &p->on[at];
	struct core_node *n = c->node[o->node];
	struct avail a;
	future_avail(c, n, fresh ? NULL : p->job, p->start_ms + slip, p->end_ms + slip, &a);
	bool less = o->cpus > a.cpus || (c->params.select_memory && o->mem > a.mem);
	for (uint32_t g = 0; g < n->gres_n; g++)
		less = less || o->gres[g] > a.gres[g];
	return !less;
}

/* May it be kept? Only where numbers tell all. */
static bool promise_holds(struct core *c, const struct promise *p, bool fresh)
{
	const struct shape *s = p->job->shape;
	const struct core_part *part = c->part[p->part];
	bool plain = p->n && !company_picky(s, part) && part->max_node_cpus == UINT32_MAX;
	for (uint32_t i = 0; plain && i < p->n; i++)
		plain = bitset_has(c->up, p->on[i].node) && !c->node[p->on[i].node]->resv_n && !c->node[p->on[i].node]->owners && !c->node[p->on[i].node]->plan_picky;
	for (uint32_t i = 0; plain && i < p->n; i++)
		plain = promise_fits(c, p, i, fresh);
	return plain && license_beside(c, p->job, p->start_ms, p->end_ms);
}

void promises_check(struct core *c, const struct core_job *of, bool started, void (*lost)(struct core *c, struct core_job *j))
{
	struct core_job **broken = NULL;
	size_t count = 0, cap = 0;
	for (uint32_t i = 0; i < of->alloc->n; i++) {
		const struct core_node *n = c->node[of->alloc->on[i].node];
		for (uint32_t k = of->alloc->on[i].state == ON_FREE ? 0 : n->plan_n; k > 0; k--) {
			struct promise *p = n->plan[k - 1].p;
			if (p->old || p->broken || (started && !job_before(of, p->job)) || promise_fits(c, p, n->plan[k - 1].at, false))
				continue;
			p->broken = true;
			broken = xgrow(broken, &cap, count + 1, sizeof(struct core_job *));
			broken[count++] = het_first(c, p->job);
		}
	}
	for (size_t i = 0; i < count; i++)
		lost(c, broken[i]);
	free(broken);
}

static struct promise *best_in(struct core *c, struct shape *s, struct core_job *j, const struct resv *in, enum plan_how how, struct promise *best)
{
	for (uint32_t p = 0; p < s->part_n; p++) {
		if (!s->part[p] || !s->able[p] || !(s->part_mask & 1u << p) || (s->part[p]->state != PART_UP && s->part[p]->state != PART_DRAIN))
			continue;
		struct promise *q = promise_in(c, s, j, p, in, how);
		if (q && (!best || q->start_ms < best->start_ms)) {
			free(best);
			best = q;
		} else
			free(q);
	}
	return best;
}

static struct promise *best_of(struct core *c, struct shape *s, struct core_job *j, struct resv *const *in, uint32_t n, enum plan_how how, struct promise *best)
{
	for (uint32_t i = 0; i < n && !best; i++)
		if (!in[i] || resv_open(c, in[i]))
			best = best_in(c, s, j, in[i], how, best);
	return best;
}

/* Where its licenses are not there at that time, a later one for which they are. */
static struct promise *best_licensed(struct core *c, struct shape *s, struct core_job *j, struct resv *const *in, uint32_t n, struct promise *best)
{
	uint64_t from = c->plan_from_ms, limit = c->now_ms + plan_window_ms(c);
	for (uint32_t round = 0; round < LICENSE_ROUNDS && best && !license_beside(c, j, best->start_ms, best->end_ms); round++) {
		uint64_t next = license_when(c, j, best->start_ms + 1, limit);
		xfree(best);
		c->plan_from_ms = next;
		if (next != UINT64_MAX)
			best = best_of(c, s, j, in, n, PLAN_WHOLE, NULL);
	}
	c->plan_from_ms = from;
	if (best && !license_beside(c, j, best->start_ms, best->end_ms))
		xfree(best);
	return best;
}

/* A start took nodes that it names: others in their place, for the same time. NULL: there are none. */
static struct promise *promise_mend(struct core *c, struct shape *s, const struct promise *old)
{
	struct search q = { .s = s, .j = old->job, .limit_ms = UINT64_MAX };
	uint64_t ms = old->start_ms + slipped_ms(c, old);
	uint32_t spare = MEND_SPARE;
	struct seen seen;
	while (q.at < s->part_n && (!s->part[q.at] || s->part[q.at]->index != old->part))
		q.at++;
	if (q.at == s->part_n || !s->able[q.at] || !(s->part_mask & 1u << q.at))
		return NULL;
	q.ready = bitset_create(c->node_n);
	for (uint32_t i = 0; i < old->n; i++)
		if (bitset_has(s->able[q.at], old->on[i].node) && earliest(c, &q, old->on[i].node, ms) == ms)
			ready_add(c, &q, old->on[i].node, ms, &seen);
	bitset_for(s->able[q.at], i) {
		if (ready_enough(&q) && !spare--)
			break;
		if (!bitset_has(q.ready, i) && earliest(c, &q, i, ms) == ms)
			ready_add(c, &q, i, ms, &seen);
	}
	struct promise *p = ready_try(c, &q, NULL);
	bitset_destroy(q.ready);
	return p;
}

static void promise_keep(struct core *c, struct promise *p, bool fresh)
{
	uint64_t slip = slipped_ms(c, p);
	p->start_ms += slip;
	p->end_ms += slip;
	p->old = p->broken = false;
	for (uint32_t i = 0; i < p->n; i++) {
		if (fresh)
			future_forget(c->node[p->on[i].node]);
		else if (p->fresh)
			est_gained(c, c->node[p->on[i].node]);
	}
	p->fresh = fresh;
}

bool promise_one(struct core *c, struct shape *s, struct core_job *j, enum plan_how how)
{
	struct promise *best = NULL, *old = j->promise;
	struct resv *in[RESV_USE_MAX + 1];
	shape_refresh(c, s);
	uint32_t n = resv_choices(c, s, in);
	s->gap_ms = 0;
	c->unfinished = false;
	if (old && old->broken && how == PLAN_ALONE && n == 1 && !in[0])
		best = promise_mend(c, s, old);
	best = best_of(c, s, j, in, n, how, best);
	if (s->lic.n && !c->unfinished && !policy_on(c))
		best = best_licensed(c, s, j, in, n, best);
	c->work += 4;
	if (c->unfinished) { /* the rest next time */
		free(best);
		return false;
	}
	c->planned++;
	if (old && (!best || best->start_ms > old->start_ms + slipped_ms(c, old)) && promise_holds(c, old, how != PLAN_ALONE)) { /* nodes are looked at one by one: not always the best is found */
		promise_keep(c, old, how != PLAN_ALONE);
		free(best);
		return true;
	}
	if (old)
		drop_one(c, j);
	if (!best)
		return false;
	j->promise = best;
	promise_enter(c, best);
	return true;
}

bool promise_make(struct core *c, struct shape *s, struct core_job *j, enum plan_how how)
{
	return j->het ? het_promise(c, het_first(c, j), how) : promise_one(c, s, j, how);
}

void promise_put(struct core *c, struct core_job *j, uint64_t start_ms)
{
	struct when w = { .j = j, .start_ms = start_ms, .end_ms = start_ms + job_length_ms(j) };
	promise_drop(c, j);
	j->promise = promise_of(c, j, j->shape->part[0]->index, &w, NULL, 0);
	promise_enter(c, j->promise);
	c->planned++;
}

/* With those of the other components of its job. */
void promise_drop(struct core *c, struct core_job *j)
{
	drop_one(c, j);
	for (uint32_t i = 0; j->het && i < j->het->n; i++) {
		struct core_job *m = het_job(c, j->het, i);
		if (m && m->promise)
			drop_one(c, m);
	}
}
