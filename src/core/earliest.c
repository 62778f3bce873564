/* earliest.c - for a need: each node's earliest possible start, as a heap
 * An entry is a lower bound: while a plan is made room only goes, so a time found once stays one. A node that gained is written into a log; each heap
 * is brought up to date before it is asked and gets the node anew with `now` (the older entry is then only looked at in vain). */
#include <stdlib.h>

#include "core/state.h"

#define LOG_PER_NODE 4
#define FILL_STEP 4096
#define ENTRIES_MAX (8u << 20)  /* of all shapes together: 64 MiB */

struct entry { uint32_t sec, node; };
struct est { struct entry *heap; uint32_t n, cap, log_at, next; uint64_t gen; }; /* next: node to be entered next while it is filled */

static bool before(struct entry a, struct entry b) { return a.sec != b.sec ? a.sec < b.sec : a.node < b.node; }

static void sift_down(struct est *e, uint32_t i)
{
	struct entry x = e->heap[i];
	for (;;) {
		uint32_t k = 2 * i + 1;
		if (k >= e->n)
			break;
		if (k + 1 < e->n && before(e->heap[k + 1], e->heap[k]))
			k++;
		if (!before(e->heap[k], x))
			break;
		e->heap[i] = e->heap[k];
		i = k;
	}
	e->heap[i] = x;
}

static void push(struct core *c, struct est *e, struct entry x)
{
	if (e->n == e->cap) {
		uint32_t more = e->cap ? e->cap : 64;
		e->heap = xrealloc(e->heap, (e->cap + more) * sizeof *e->heap);
		e->cap += more;
		c->est_entries += more;
	}
	uint32_t i = e->n++;
	for (; i > 0 && before(x, e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		e->heap[i] = e->heap[(i - 1) / 2];
	e->heap[i] = x;
}

void est_free(struct core *c, struct need *e)
{
	for (uint32_t p = 0; p < e->part_n && e->est; p++) {
		c->est_entries -= e->est[p].cap;
		free(e->est[p].heap);
	}
	xfree(e->est);
}

/* All that is known is void. */
void est_reset(struct core *c)
{
	c->est_gen++;
	c->gain_n = 0;
}

void est_gained(struct core *c, struct core_node *n)
{
	future_forget(n);
	if (c->gain_n >= LOG_PER_NODE * c->node_n + 64)
		est_reset(c);
	c->gain = xgrow(c->gain, &c->gain_cap, c->gain_n + 1, sizeof *c->gain);
	c->gain[c->gain_n++] = n->index;
}

/* Enters up to `most` nodes more. */
static void fill(struct core *c, struct shape *s, uint32_t at, uint64_t limit_ms, struct est *e, uint32_t most)
{
	bool own = company_picky(s, s->part[at]) || s->part[at]->max_node_cpus != UINT32_MAX;
	uint32_t i = bitset_next(s->able[at], e->next);
	for (; i < c->node_n && most; i = bitset_next(s->able[at], i + 1), most--) {
		uint64_t ms = c->now_ms;
		if (!bitset_has(c->up, i))
			continue;
		if (!own && !c->node[i]->owners && !c->node[i]->plan_picky && !c->node[i]->resv_n)
			ms = future_earliest(c, s, c->node[i], NULL, c->now_ms, length_ms(s->time_min));
		if (ms <= limit_ms)
			push(c, e, (struct entry){ (uint32_t)(ms / 1000), i });
	}
	e->next = i;
}

static struct est *est_of(struct core *c, struct shape *s, uint32_t at)
{
	struct need *d = s->need;
	if (!d->est && c->est_entries > ENTRIES_MAX)
		for (struct need *o = c->needs; o; o = o->hh.next)
			est_free(c, o);
	if (d->config_gen != c->config_gen)
		est_free(c, d);
	d->config_gen = c->config_gen;
	if (!d->est)
		d->est = xcalloc(d->part_n, sizeof *d->est);
	struct est *e = &d->est[at];
	if (e->gen != c->est_gen || e->log_at > c->gain_n) {
		e->n = e->next = 0;
		e->gen = c->est_gen;
		e->log_at = c->gain_n;
	}
	return e;
}

/* Makes the heaps of the shape's partitions in steps. True: they are complete. */
bool est_prepare(struct core *c, struct shape *s, uint64_t limit_ms)
{
	shape_refresh(c, s);
	for (uint32_t p = 0; p < s->part_n; p++) {
		struct est *e = s->part[p] && s->able[p] ? est_of(c, s, p) : NULL;
		if (!e || e->next >= c->node_n)
			continue;
		fill(c, s, p, limit_ms, e, FILL_STEP);
		return false;
	}
	return true;
}

/* Brings the heap of a partition up to date. */
void est_sync(struct core *c, struct shape *s, uint32_t at, uint64_t limit_ms)
{
	struct est *e = est_of(c, s, at);
	if (e->next < c->node_n)
		fill(c, s, at, limit_ms, e, UINT32_MAX);
	for (; e->log_at < c->gain_n; e->log_at++)
		if (bitset_has(s->able[at], c->gain[e->log_at]))
			push(c, e, (struct entry){ (uint32_t)(c->now_ms / 1000), c->gain[e->log_at] });
}

bool est_top(const struct shape *s, uint32_t at, uint32_t *ret_node, uint64_t *ret_ms)
{
	const struct est *e = &s->need->est[at];
	if (!e->n)
		return false;
	*ret_node = e->heap[0].node;
	*ret_ms = e->heap[0].sec * 1000ull;
	return true;
}

void est_pop(struct shape *s, uint32_t at)
{
	struct est *e = &s->need->est[at];
	e->heap[0] = e->heap[--e->n];
	if (e->n)
		sift_down(e, 0);
}

void est_raise(struct shape *s, uint32_t at, uint64_t ms)
{
	s->need->est[at].heap[0].sec = (uint32_t)(ms / 1000);
	sift_down(&s->need->est[at], 0);
}

void est_push(struct core *c, struct shape *s, uint32_t at, uint32_t node, uint64_t ms) { push(c, &s->need->est[at], (struct entry){ (uint32_t)(ms / 1000), node }); }
