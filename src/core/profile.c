/* profile.c - the plan where nodes are alike and given whole: how many are free from when on, not which
 * A promise that names nodes can miss a start that exists: at every moment enough nodes are free, but not the same ones all along. Where any node is as good
 * as any other, and nobody shares one, numbers are enough, exact, and cheap; promises then name no nodes. Otherwise plan.c decides. */
#include <stdlib.h>

#include "core/state.h"

static struct shape *active_next(const struct core *c, struct shape *s)
{
	struct tree_node *n = s ? tree_next(&s->anode) : tree_first(&c->shapes_active);
	return n ? (struct shape *)((char *)n - offsetof(struct shape, anode)) : NULL;
}

static bool shape_is_plain(const struct core *c, const struct shape *s, const struct bitset *all)
{
	if (s->part_n != 1 || !s->part[0] || !s->able[0] || !bitset_equal(s->able[0], all) || s->min_nodes != s->max_nodes || s->required || s->contiguous || s->sets.n || s->least_min || part_shares(s, s->part[0]))
		return false;
	return s->exclusive || (!s->overcommit && s->cpus_per_task >= c->node[bitset_next(all, 0)]->cpus && s->tasks == s->min_nodes);
}

/* Is every waiting request for whole nodes out of the same equal ones, and no node shared now? */
bool profile_applies(const struct core *c)
{
	const struct shape *first = active_next(c, NULL);
	if (c->resv_n || c->hets || !first || !first->part_n || !first->able[0] || bitset_empty(first->able[0]))
		return false;
	const struct bitset *all = first->able[0];
	uint32_t cpus = c->node[bitset_next(all, 0)]->cpus;
	for (struct shape *s = (struct shape *)first; s; s = active_next(c, s))
		if (!shape_is_plain(c, s, all))
			return false;
	bitset_for(all, i)
		if (c->node[i]->cpus != cpus || c->node[i]->held_n > 1 || c->node[i]->plan_n)
			return false;
	return true;
}

static void step_insert(struct profile *p, uint32_t at, uint64_t ms)
{
	p->step = xgrow(p->step, &p->cap, p->n + 1, sizeof *p->step);
	memmove(p->step + at + 1, p->step + at, (p->n - at) * sizeof *p->step);
	p->step[at] = (struct profile_step){ .ms = ms, .nodes = at ? p->step[at - 1].nodes : 0 };
	p->n++;
}

/* The step that begins at `ms`, made if there is none. */
static uint32_t step_at(struct profile *p, uint64_t ms)
{
	uint32_t lo = 0, hi = p->n;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		*(p->step[mid].ms < ms ? &lo : &hi) = p->step[mid].ms < ms ? mid + 1 : mid;
	}
	if (lo == p->n || p->step[lo].ms != ms)
		step_insert(p, lo, ms);
	return lo;
}

/* What is free from now on: what runs gives its nodes back at its limit. */
void profile_begin(const struct core *c, struct profile *p)
{
	const struct bitset *all = active_next(c, NULL)->able[0];
	int32_t free_now = 0;
	p->n = 0;
	step_insert(p, 0, c->now_ms);
	bitset_for(all, i) {
		const struct core_node *n = c->node[i];
		if (!bitset_has(c->up, i))
			continue;
		if (!n->held_n) {
			free_now++;
			continue;
		}
		uint32_t at = step_at(p, job_end_ms(c, n->held[0].job));
		p->step[at].gained++;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		free_now += (int32_t)p->step[i].gained;
		p->step[i].nodes = free_now;
	}
}

uint64_t profile_take(struct profile *p, uint32_t nodes, uint64_t length_ms)
{
	uint32_t i = 0;
	for (uint32_t k = 0; i < p->n;) { /* k: the first step from i on that is too small */
		for (k = k < i ? i : k; k < p->n && p->step[k].ms < p->step[i].ms + length_ms && p->step[k].nodes >= (int32_t)nodes; k++)
			;
		if (k == p->n || p->step[k].ms >= p->step[i].ms + length_ms)
			break;
		i = k + 1;
	}
	if (i >= p->n)
		return UINT64_MAX;
	uint64_t start = p->step[i].ms;
	uint32_t end = step_at(p, start + length_ms);
	for (; i < end; i++)
		p->step[i].nodes -= (int32_t)nodes;
	return start;
}
