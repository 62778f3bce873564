/* future.c - what will be free on a node, and when
 * A list of points in time: from each on so much is free, until the next. It follows from what the node holds (each job until its limit) and what is
 * promised on it. A node keeps the list that counts the fresh promises (those of the plan being made, plan.c); others are made when
 * asked for, counting the promises to all jobs before one. */
#include <stdlib.h>

#include "core/state.h"

struct change { uint64_t ms; int sign; uint32_t cpus; uint64_t mem; const uint32_t *gres; const uint64_t *gres64; };
struct point { uint64_t ms, mem; uint32_t cpus; }; /* followed by one count each GRES entry */
struct future { uint64_t until_ms; uint32_t n, stride, cap; _Alignas(uint64_t) unsigned char at[]; };

static struct point *point_at(const struct future *f, uint32_t i) { return (struct point *)(f->at + (size_t)i * f->stride); }
static uint32_t *point_gres(struct point *p) { return (uint32_t *)(p + 1); }

void future_free(struct future *f) { free(f); }

void future_forget(struct core_node *n)
{
	if (n->future)
		n->future->n = 0;
}

/* --- making one ------------------------------------------------------------------------------- */

struct sum { int64_t cpus, mem, gres[GRES_MAX], whole[GRES_MAX]; }; /* whole: jobs that have the GPU of these shards */

static void sum_add(struct sum *s, const struct core_node *n, const struct change *x, int sign)
{
	s->cpus += sign * (int64_t)x->cpus;
	s->mem += sign * (int64_t)x->mem;
	for (uint32_t g = 0; g < n->gres_n; g++)
		s->gres[g] += sign * (int64_t)(x->gres ? x->gres[g] : x->gres64[g]);
	for (uint32_t g = 0; n->shards && x->gres64 && g < n->gres_n; g++)
		s->whole[g] -= n->gres[g].shard && shard_whole(n, g, x->gres64 - n->dev_words - n->cpu_words) ? sign : 0;
}

static void change_put(struct core *c, uint32_t *k, struct change x)
{
	c->change = xgrow(c->change, &c->change_cap, *k + 1, sizeof *c->change);
	uint32_t i = (*k)++;
	for (; i > 0 && c->change[i - 1].ms > x.ms; i--)
		c->change[i] = c->change[i - 1];
	c->change[i] = x;
}

static bool counts(const struct promise *p, const struct core_job *before)
{
	return before ? p->job != before && job_before(p->job, before) : p->fresh;
}

static uint32_t future_stride(const struct core_node *n) { return (uint32_t)((sizeof(struct point) + n->gres_n * sizeof(uint32_t) + 7) / 8 * 8); }

/* Room for as many points. */
static struct future *future_grow(struct future *f, uint32_t stride, uint32_t cap)
{
	if (f && f->stride == stride && f->cap >= cap)
		return f;
	f = xrealloc(f, sizeof *f + (size_t)cap * stride);
	f->stride = stride;
	f->cap = cap;
	f->n = 0;
	return f;
}

static void point_put(struct future *f, const struct core_node *n, uint64_t ms, const struct sum *s)
{
	if (f->n && point_at(f, f->n - 1)->ms == ms)
		f->n--;
	struct point *p = point_at(f, f->n++);
	p->ms = ms;
	p->cpus = s->cpus > 0 ? (uint32_t)s->cpus : 0;
	p->mem = s->mem > 0 ? (uint64_t)s->mem : 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		point_gres(p)[g] = s->gres[g] > 0 ? (uint32_t)s->gres[g] : 0;
	if (n->shards) {
		bool whole[GRES_MAX];
		for (uint32_t g = 0; g < n->gres_n; g++)
			whole[g] = s->whole[g] > 0;
		shards_settle(n, whole, point_gres(p));
	}
}

/* CPUs of the job held[at] that come free with its end: not those that another has longer. None, where it would be suspended for the start that is weighed. */
static uint32_t cpus_of(struct core *c, const struct core_node *n, size_t at)
{
	const struct core_job *h = n->held[at].job;
	const struct alloc_on *o = &h->alloc->on[n->held[at].at];
	uint32_t k = 0;
	if (c->dooming && h->doomed && preempt_lends(c, h))
		return 0;
	if (!n->over)
		return o->cpus;
	for (uint32_t w = 0; w < n->cpu_words; w++) {
		uint64_t mine = h->alloc->words[o->bits + w];
		for (size_t i = 0; i < n->held_n && mine; i++) {
			const struct core_job *x = n->held[i].job;
			bool longer = job_end_ms(c, x) > job_end_ms(c, h) || (job_end_ms(c, x) == job_end_ms(c, h) && i > at);
			if (i != at && longer && !(c->dooming && x->doomed))
				mine &= ~x->alloc->words[x->alloc->on[n->held[i].at].bits + w];
		}
		for (; mine; mine &= mine - 1)
			k++;
	}
	return k;
}

/* before NULL: the fresh promises count; else those to jobs before it. */
static void future_make(struct core *c, const struct core_node *n, const struct core_job *before, struct future **ret)
{
	struct sum s = { .cpus = n->cap, .mem = (int64_t)n->mem };
	uint32_t k = 0;
	struct future *f = *ret = future_grow(*ret, future_stride(n), (uint32_t)n->held_n + 2 * n->plan_n + 1);
	f->n = 0;
	f->until_ms = UINT64_MAX;
	for (uint32_t g = 0; g < n->gres_n; g++)
		s.gres[g] = n->gres[g].count;
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *h = n->held[i].job;
		const struct alloc_on *o = &h->alloc->on[n->held[i].at];
		struct change x = { job_end_ms(c, h), 1, cpus_of(c, n, i), o->mem, NULL, h->alloc->words + o->bits + n->cpu_words + n->dev_words };
		sum_add(&s, n, &x, -1);
		change_put(c, &k, x);
		if (h->state == PB__JOB_STATE__SUSPENDED) { /* its end moves with time: what is made is good for now */
			x.ms = c->now_ms;
			c->plan_moves = true;
		}
		f->until_ms = x.ms < f->until_ms ? x.ms : f->until_ms;
	}
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		const struct promise_on *o = &p->on[n->plan[i].at];
		struct change x = { p->end_ms, 1, o->cpus, o->mem, o->gres, NULL };
		if (!counts(p, before) || p->end_ms <= c->now_ms)
			continue;
		change_put(c, &k, x);
		x.ms = p->start_ms;
		x.sign = -1;
		if (p->start_ms <= c->now_ms)
			sum_add(&s, n, &x, -1);
		else
			change_put(c, &k, x);
	}
	point_put(f, n, 0, &s);
	for (uint32_t i = 0; i < k; i++) {
		sum_add(&s, n, &c->change[i], c->change[i].sign);
		point_put(f, n, c->change[i].ms, &s);
	}
}

static const struct future *future_get(struct core *c, struct core_node *n, const struct core_job *before)
{
	if (before)
		future_make(c, n, before, &c->future);
	else if (!n->future || !n->future->n || n->future->until_ms <= c->now_ms)
		future_make(c, n, NULL, &n->future);
	return before ? c->future : n->future;
}

/* --- asking ----------------------------------------------------------------------------------- */

static uint32_t index_at(const struct future *f, uint64_t ms)
{
	uint32_t lo = 0, hi = f->n;
	while (lo + 1 < hi) {
		uint32_t mid = (lo + hi) / 2;
		*(point_at(f, mid)->ms <= ms ? &lo : &hi) = mid;
	}
	return lo;
}

static void point_avail(const struct core_node *n, struct point *p, struct avail *a)
{
	a->cpus = p->cpus;
	a->mine = 0;
	a->mem = p->mem;
	a->used = NULL;
	for (uint32_t g = 0; g < n->gres_n; g++)
		a->gres[g] = point_gres(p)[g];
}

static void point_lower(const struct core_node *n, struct point *p, struct avail *a)
{
	a->cpus = p->cpus < a->cpus ? p->cpus : a->cpus;
	a->mem = p->mem < a->mem ? p->mem : a->mem;
	for (uint32_t g = 0; g < n->gres_n; g++)
		a->gres[g] = point_gres(p)[g] < a->gres[g] ? point_gres(p)[g] : a->gres[g];
}

void future_avail(struct core *c, struct core_node *n, const struct core_job *before, uint64_t from, uint64_t to, struct avail *a)
{
	const struct future *f = future_get(c, n, before);
	uint32_t i = index_at(f, from);
	point_avail(n, point_at(f, i), a);
	for (i++; i < f->n && point_at(f, i)->ms < to; i++)
		point_lower(n, point_at(f, i), a);
}

void future_lower(struct core *c, struct core_node *n, const struct core_job *before, uint64_t from, uint64_t to, struct avail *a)
{
	const struct future *f = future_get(c, n, before);
	for (uint32_t i = index_at(f, from); i < f->n && point_at(f, i)->ms < to; i++)
		point_lower(n, point_at(f, i), a);
}

uint64_t future_earliest(struct core *c, const struct shape *s, struct core_node *n, const struct core_job *before, uint64_t from, uint64_t length)
{
	const struct future *f = future_get(c, n, before);
	uint64_t start = UINT64_MAX;
	for (uint32_t i = index_at(f, from); i < f->n; i++) {
		struct avail a;
		struct point *p = point_at(f, i);
		if (start != UINT64_MAX && p->ms >= start + length)
			break;
		point_avail(n, p, &a);
		c->work++;
		if (fit_tasks(c, s, n, &a) < least_tasks(s))
			start = UINT64_MAX;
		else if (start == UINT64_MAX)
			start = p->ms > from ? p->ms : from;
	}
	return start;
}

void future_check(struct core *c, struct core_node *n)
{
	struct future *f = n->future, *g = NULL;
	if (!f || !f->n || f->until_ms <= c->now_ms)
		return;
	future_make(c, n, NULL, &g);
	for (uint32_t i = 0; i < f->n; i++) {
		struct point *p = point_at(f, i), *q;
		if (i + 1 < f->n ? point_at(f, i + 1)->ms <= c->now_ms + 1000 : p->ms && p->ms <= c->now_ms + 1000) /* the past; jobs that should be over */
			continue;
		if (p->ms <= c->now_ms + 1000)
			continue;
		q = point_at(g, index_at(g, p->ms));
		assert(q->ms == p->ms && q->cpus == p->cpus && q->mem == p->mem && !memcmp(point_gres(q), point_gres(p), n->gres_n * sizeof(uint32_t)));
	}
	future_free(g);
}
