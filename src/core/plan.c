/* plan.c - promises: when and where the first jobs of the queue will start at the latest
 * The future of a node is what it holds (each job until its limit) and what is promised on it. A promise is made for the head of a shape that
 * found no room: the earliest time at which enough nodes are free for its whole limit. Whoever comes later in the queue must leave the
 * promised amount free at that time (avail_spare). Ends come early, so a promise only ever turns out better; it is dropped when
 * its job starts, leaves, or loses a node. Amounts are counts; which CPUs and devices is decided at the start. */
#include <stdlib.h>

#include "core/reserve.h"

#define FOREVER_MS (ONE_YEAR_SEC * 1000ull)
#define ROUNDS_MAX 16
#define RESV_ROUNDS 8         /* occurrences of a recurring reservation looked at */

static uint64_t resolution_ms(const struct core *c) { return (c->params.bf_resolution_sec ? c->params.bf_resolution_sec : 60) * 1000ull; }

uint64_t job_end_ms(const struct core *c, const struct core_job *j)
{
	if (job_state_is_final(j->state) || (j->flags & JOBF_COMPLETING))
		return c->now_ms + 1000;
	uint64_t end = j->time_min == TIME_INFINITE ? c->now_ms + FOREVER_MS : ((uint64_t)j->start + j->susp_total) * 1000 + j->time_min * 60000ull;
	return end <= c->now_ms ? c->now_ms + 1000 : end;
}

uint64_t length_ms(uint32_t minutes) { return minutes == TIME_INFINITE ? FOREVER_MS : minutes * 60000ull; }
uint64_t job_length_ms(const struct core_job *j) { return length_ms(j->time_min); }

static void less(struct avail *a, const struct core_node *n, uint32_t cpus, uint64_t mem, const uint32_t *gres, const uint64_t *gres64)
{
	a->cpus -= cpus < a->cpus ? cpus : a->cpus;
	a->mem -= mem < a->mem ? mem : a->mem;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		uint32_t k = gres ? gres[g] : (uint32_t)gres64[g];
		a->gres[g] -= k < a->gres[g] ? k : a->gres[g];
	}
}

/* What is free on n at time t, counting promises to jobs before j . */
static void avail_at(const struct core *c, const struct core_node *n, uint64_t t, const struct when *w, struct avail *a)
{
	const struct core_job *j = w->j;
	uint32_t part = w->part ? w->part->index : UINT32_MAX;
	avail_full(n, a);
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *h = n->held[i].job;
		const struct alloc_on *o = &h->alloc->on[n->held[i].at];
		if (o->state == ON_FREE || job_end_ms(c, h) <= t)
			continue;
		if (h->alloc->exclusive)
			a->cpus = 0;
		a->mine += h->part == part ? o->cpus : 0;
		less(a, n, o->cpus, o->mem, NULL, h->alloc->words + o->bits + n->cpu_words + n->dev_words);
	}
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		const struct promise_on *o = &p->on[n->plan[i].at];
		if (p->job == j || !job_before(p->job, j) || p->start_ms > t || t >= p->end_ms)
			continue;
		less(a, n, o->cpus, o->mem, o->gres, NULL);
		a->mine += p->part == part ? o->cpus : 0;
	}
}

static void lower(struct avail *a, const struct core_node *n, const struct avail *b)
{
	a->cpus = b->cpus < a->cpus ? b->cpus : a->cpus;
	a->mem = b->mem < a->mem ? b->mem : a->mem;
	a->mine = b->mine > a->mine ? b->mine : a->mine;
	for (uint32_t g = 0; g < n->gres_n; g++)
		a->gres[g] = b->gres[g] < a->gres[g] ? b->gres[g] : a->gres[g];
}

void avail_during(const struct core *c, const struct core_node *n, const struct when *w, struct avail *a)
{
	avail_at(c, n, w->start_ms, w, a);
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		struct avail then;
		if (p->job == w->j || !job_before(p->job, w->j) || p->start_ms <= w->start_ms || p->start_ms >= w->end_ms)
			continue;
		avail_at(c, n, p->start_ms, w, &then);
		lower(a, n, &then);
	}
}

void avail_spare(const struct core *c, const struct when *w, const struct core_node *n, struct avail *a)
{
	const struct core_job *j = w->j;
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		struct avail then;
		if (p->job == j || !job_before(p->job, j) || p->start_ms >= w->end_ms)
			continue;
		avail_at(c, n, p->start_ms > c->now_ms ? p->start_ms : c->now_ms, w, &then);
		lower(a, n, &then);
	}
}

/* --- making one ------------------------------------------------------------------------------- */

/* The first time from `from` on at which a part of the request fits on n for its whole length. UINT64_MAX: never. */
static uint64_t node_earliest(const struct core *c, const struct shape *s, const struct when *like, const struct core_node *n, uint64_t from)
{
	uint64_t t = from;
	for (uint32_t round = 0; round < n->held_n + n->plan_n + 2 + n->resv_n * RESV_ROUNDS; round++) {
		struct when w = { .j = like->j, .start_ms = t, .end_ms = t + job_length_ms(like->j), .part = like->part, .in = like->in };
		struct avail a;
		avail_of(c, s, &w, n, &a);
		if (fit_tasks(c, s, n, &a))
			return t;
		uint64_t next = n->resv_n ? resv_next_end(c, n, &w) : UINT64_MAX;
		for (size_t i = 0; i < n->held_n; i++) {
			uint64_t e = job_end_ms(c, n->held[i].job);
			next = e > t && e < next ? e : next;
		}
		for (uint32_t i = 0; i < n->plan_n; i++) {
			uint64_t e = n->plan[i].p->end_ms;
			next = e > t && e < next ? e : next;
		}
		if (next == UINT64_MAX)
			break;
		t = next;
	}
	return UINT64_MAX;
}

static struct promise *promise_of(struct core_job *j, uint32_t part, const struct when *w, const struct fit *f, uint32_t n)
{
	struct promise *p = xcalloc(1, sizeof *p + n * sizeof p->on[0]);
	p->job = j;
	p->part = part;
	p->start_ms = w->start_ms;
	p->end_ms = w->end_ms;
	p->n = n;
	for (uint32_t i = 0; i < n; i++) {
		p->on[i] = (struct promise_on){ .node = f[i].node, .cpus = f[i].cpus, .mem = f[i].mem };
		memcpy(p->on[i].gres, f[i].gres, sizeof f[i].gres);
	}
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

/* The earliest start in one partition: nodes sorted by when they could, then the first moment at which enough of them can together. */
static struct promise *promise_in(struct core *c, struct shape *s, struct core_job *j, uint32_t at, const struct resv *in)
{
	const struct when like = { .j = j, .part = s->part[at], .in = in };
	struct moment *m = xmalloc((c->node_n + 1) * sizeof *m), *tmp = xmalloc((c->node_n + 1) * sizeof *tmp);
	struct bitset *ready = bitset_create(c->node_n);
	uint64_t window = (c->params.bf_window_min ? c->params.bf_window_min : 1440) * 60000ull;
	uint64_t first = j->begin * 1000ull > c->now_ms ? j->begin * 1000ull : c->now_ms, floor = first;
	struct promise *ret = NULL;
	for (uint32_t round = 0; round < ROUNDS_MAX && !ret; round++) {
		uint32_t n = 0;
		bitset_zero(ready);
		bitset_for(s->able[at], i) {
			if (!bitset_has(c->up, i) || (in && !(in->flags & (RESVF_FLEX | RESVF_ANY_NODES)) && !bitset_has(in->nodes, i)))
				continue;
			uint64_t e = node_earliest(c, s, &like, c->node[i], floor);
			if (e != UINT64_MAX)
				m[n++] = (struct moment){ e, i };
		}
		moments_sort(m, n, tmp);
		for (uint32_t i = 0; i < n && !ret; i++) {
			bitset_set(ready, m[i].node);
			if (i + 1 < s->min_nodes || (i + 1 < n && m[i + 1].ms - m[i].ms < resolution_ms(c) && m[i + 1].ms != m[i].ms && i + 1 < s->min_nodes))
				continue;
			if (i + 1 < n && m[i + 1].ms == m[i].ms)
				continue;
			struct when w = { .j = j, .start_ms = m[i].ms, .end_ms = m[i].ms + job_length_ms(j), .part = s->part[at], .in = in };
			struct fit *f;
			uint32_t k = place_choose(c, s, ready, &w, &f);
			if (!k)
				continue;
			k = choose_late(c, s, m, i + 1, &w, &f, k);
			ret = promise_of(j, s->part[at]->index, &w, f, k);
			free(f);
		}
		if (ret || !n)
			break;
		floor = m[n - 1].ms + 1; /* gaps between promises: look again behind the last one */
	}
	bool late = ret && in && !(in->flags & RESVF_FLEX) && ret->start_ms >= (uint64_t)in->end * 1000;
	if (ret && (late || ret->start_ms > first + window)) {
		free(ret);
		ret = NULL;
	}
	free(m);
	free(tmp);
	bitset_destroy(ready);
	return ret;
}

static void promise_enter(struct core *c, struct promise *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct core_node *n = c->node[p->on[i].node];
		n->plan = xgrow(n->plan, &n->plan_cap, n->plan_n + 1, sizeof *n->plan);
		n->plan[n->plan_n++] = (struct planned){ p, i };
		bitset_set(c->promised, n->index);
	}
	c->promises = xgrow(c->promises, &c->promises_cap, c->promise_n + 1, sizeof *c->promises);
	p->index = c->promise_n;
	c->promises[c->promise_n++] = p;
}

static struct promise *best_in(struct core *c, struct shape *s, struct core_job *j, const struct resv *in, struct promise *best)
{
	for (uint32_t p = 0; p < s->part_n; p++) {
		if (!s->part[p] || !s->able[p] || !(s->part_mask & 1u << p) || (s->part[p]->state != PART_UP && s->part[p]->state != PART_DRAIN))
			continue;
		struct promise *q = promise_in(c, s, j, p, in);
		if (q && (!best || q->start_ms < best->start_ms)) {
			free(best);
			best = q;
		} else
			free(q);
	}
	return best;
}

bool promise_make(struct core *c, struct shape *s, struct core_job *j)
{
	struct promise *best = NULL;
	struct resv *in[RESV_USE_MAX + 1];
	promise_drop(c, j);
	shape_refresh(c, s);
	uint32_t n = resv_choices(c, s, in);
	for (uint32_t i = 0; i < n; i++)
		if (!in[i] || resv_open(c, in[i]))
			best = best_in(c, s, j, in[i], best);
	c->planned++;
	if (!best)
		return false;
	j->promise = best;
	promise_enter(c, best);
	return true;
}

void promise_put(struct core *c, struct core_job *j, uint64_t start_ms)
{
	struct when w = { .j = j, .start_ms = start_ms, .end_ms = start_ms + job_length_ms(j) };
	promise_drop(c, j);
	j->promise = promise_of(j, j->shape->part[0]->index, &w, NULL, 0);
	promise_enter(c, j->promise);
	c->planned++;
}

void promise_drop(struct core *c, struct core_job *j)
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
		if (!--n->plan_n)
			bitset_clear(c->promised, n->index);
	}
	c->promises[p->index] = c->promises[--c->promise_n];
	c->promises[p->index]->index = p->index;
	j->promise = NULL;
	free(p);
}
