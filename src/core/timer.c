/* timer.c - the core's wishes to be woken: a binary heap by time
 * Entries are hints: whoever gets one looks at the facts again, so stale ones are harmless. Ties are in order of kind and id. */
#include <stdlib.h>

#include "core/state.h"

static bool timer_before(const struct timer *a, const struct timer *b)
{
	if (a->at_ms != b->at_ms)
		return a->at_ms < b->at_ms;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->id != b->id ? a->id < b->id : a->sub < b->sub;
}

static void timer_swap(struct core *c, size_t i, size_t k)
{
	struct timer t = c->timer[i];
	c->timer[i] = c->timer[k];
	c->timer[k] = t;
}

void timer_add(struct core *c, uint64_t at_ms, enum timer_kind kind, uint32_t id, uint32_t sub)
{
	c->timer = xgrow(c->timer, &c->timer_cap, c->timer_n + 1, sizeof *c->timer);
	size_t i = c->timer_n++;
	c->timer[i] = (struct timer){ at_ms, kind, id, sub };
	while (i > 0 && timer_before(&c->timer[i], &c->timer[(i - 1) / 2])) {
		timer_swap(c, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

/* One of a kind is enough: each that comes due would ask for the next, and their number would double. */
void timer_add_single(struct core *c, uint64_t at_ms, enum timer_kind kind, uint64_t *asked_ms)
{
	if (*asked_ms && *asked_ms <= at_ms)
		return;
	*asked_ms = at_ms;
	timer_add(c, at_ms, kind, 0, 0);
}

bool timer_pop(struct core *c, struct timer *ret)
{
	if (!c->timer_n || c->timer[0].at_ms > c->now_ms)
		return false;
	*ret = c->timer[0];
	c->timer[0] = c->timer[--c->timer_n];
	for (size_t i = 0;;) {
		size_t l = 2 * i + 1, best = i;
		if (l < c->timer_n && timer_before(&c->timer[l], &c->timer[best]))
			best = l;
		if (l + 1 < c->timer_n && timer_before(&c->timer[l + 1], &c->timer[best]))
			best = l + 1;
		if (best == i)
			break;
		timer_swap(c, i, best);
		i = best;
	}
	if (c->timer_cap > 4096 && c->timer_n < c->timer_cap / 4) {
		c->timer_cap /= 2;
		c->timer = xrealloc(c->timer, c->timer_cap * sizeof *c->timer);
	}
	return true;
}

void timer_ask(struct core *c)
{
	uint64_t at = c->timer_n ? c->timer[0].at_ms : 0;
	if (!at || at == c->timer_asked)
		return;
	c->timer_asked = at;
	effects_push(c->fx, FX_TIMER)->time_ms = at;
}
