/* topology.c - the network as the core knows it: switches or blocks as sets of nodes
 * A partition has one topology (its own, or the default). Upper switches are sets like leaves; aggregated blocks are runs of base blocks and need no sets. */
#include <stdlib.h>

#include "core/change.h"

void topologies_free(struct core *c)
{
	for (uint32_t i = 0; i < c->topo_n; i++) {
		struct topo *t = &c->topo[i];
		for (uint32_t u = 0; u < t->unit_n; u++)
			bitset_destroy(t->unit[u].nodes);
		free(t->name);
		free(t->unit);
		free(t->base_of);
		free(t->size);
	}
	xfree(c->topo);
	c->topo_n = 0;
}

static void topology_load(struct core *c, struct topo *t, const Pb__TopologyRecord *rec)
{
	bool block = !strcmp(rec->kind, "block");
	*t = (struct topo){ .kind = block ? TOPO_BLOCK : !strcmp(rec->kind, "tree") ? TOPO_TREE : TOPO_FLAT, .is_default = rec->cluster_default };
	t->name = xstrdup(rec->name);
	t->unit = xcalloc(rec->n_unit + 1, sizeof *t->unit);
	t->base_of = xmalloc((c->node_n + 1) * sizeof *t->base_of);
	for (uint32_t i = 0; i < c->node_n; i++)
		t->base_of[i] = UINT32_MAX;
	for (size_t i = 0; i < rec->n_unit; i++) {
		const Pb__TopologyUnit *u = rec->unit[i];
		struct bitset *b = NULL;
		if ((block && u->level) || nodes_bitset(c, u->nodes[0] ? u->nodes : NULL, &b, NULL) < 0)
			continue;
		t->unit[t->unit_n] = (struct topo_unit){ u->level, b };
		if (!u->level)
			bitset_for(b, n)
				t->base_of[n] = t->unit_n;
		t->unit_n++;
	}
	t->size = xcalloc(rec->n_block_sizes + 1, sizeof *t->size);
	for (; t->size_n < rec->n_block_sizes; t->size_n++)
		t->size[t->size_n] = rec->block_sizes[t->size_n];
}

void topologies_load(struct core *c, const struct core_event *ev)
{
	topologies_free(c);
	c->topo = xcalloc(ev->config.topos + 1, sizeof *c->topo);
	for (; c->topo_n < ev->config.topos; c->topo_n++)
		topology_load(c, &c->topo[c->topo_n], ev->config.topo[c->topo_n]);
}

bool topology_known(const struct core *c, const char *name)
{
	bool known = !c->topo_n && !strcmp(name, "default");
	for (uint32_t i = 0; i < c->topo_n; i++)
		known = known || !strcmp(c->topo[i].name, name);
	return known;
}

/* The one of that name; NULL: the default. NULL where the network is flat. */
const struct topo *topology_find(const struct core *c, const char *name)
{
	const struct topo *found = NULL;
	for (uint32_t i = 0; i < c->topo_n && !found; i++)
		if (name && name[0] ? !strcmp(c->topo[i].name, name) : c->topo[i].is_default)
			found = &c->topo[i];
	if (!found && c->topo_n && !(name && name[0]))
		found = &c->topo[0];
	return found && found->kind != TOPO_FLAT ? found : NULL;
}

/* --- --exclusive=topo ----------------------------------------------------------------------------- */

/* The nodes that are one with n for a job of the partition: its leaf switch or base block; NULL: only itself. */
static const struct bitset *unit_of(const struct topo *t, uint32_t node)
{
	return t && t->base_of[node] != UINT32_MAX ? t->unit[t->base_of[node]].nodes : NULL;
}

static bool held_by_other(const struct core *c, const struct core_node *n, const struct when *w, bool only_topo)
{
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *h = n->held[i].job;
		if (h != w->j && (!only_topo || h->alloc->topo_only) && (!w->start_ms || job_end_ms(c, h) > w->start_ms))
			return true;
	}
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		if (p->job != w->j && (!only_topo || p->job->shape->topo_only) && job_before(p->job, w->j) && p->start_ms < w->end_ms && p->end_ms > (w->start_ms ? w->start_ms : c->now_ms))
			return true;
	}
	return false;
}

static bool unit_held(const struct core *c, const struct topo *t, const struct core_node *n, const struct when *w, bool only_topo)
{
	const struct bitset *unit = unit_of(t, n->index);
	if (!unit)
		return held_by_other(c, n, w, only_topo);
	bitset_for(unit, i)
		if (held_by_other(c, c->node[i], w, only_topo))
			return true;
	return false;
}

/* Is its unit taken: by a job that wants it alone, or by any where this one does? */
bool topology_taken(const struct core *c, const struct shape *s, const struct when *w, const struct core_node *n)
{
	if (topology_alone(s, w->part) && unit_held(c, w->part ? w->part->topo : NULL, n, w, false))
		return true;
	if (!c->topo_only)
		return false;
	if (held_by_other(c, n, w, true))
		return true;
	for (uint32_t i = 0; i < c->topo_n; i++) /* in whatever topology */
		if (c->topo[i].kind != TOPO_FLAT && unit_held(c, &c->topo[i], n, w, true))
			return true;
	return false;
}

static uint64_t last_end(const struct core *c, const struct core_node *n, const struct core_job *j, bool only_topo)
{
	uint64_t last = 0;
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *h = n->held[i].job;
		uint64_t e = h == j || (only_topo && !h->alloc->topo_only) ? 0 : job_end_ms(c, h);
		last = e > last ? e : last;
	}
	for (uint32_t i = 0; i < n->plan_n && !only_topo; i++) {
		const struct promise *p = n->plan[i].p;
		last = p->job != j && job_before(p->job, j) && p->end_ms > last ? p->end_ms : last;
	}
	return last;
}

/* From when on its unit is no hindrance: those who want theirs alone are gone; of one who does so all are, and who was promised a start before. */
uint64_t topology_until(const struct core *c, const struct shape *s, const struct core_part *p, const struct core_job *j, const struct core_node *n)
{
	bool alone = topology_alone(s, p);
	uint64_t last = alone || c->topo_only ? last_end(c, n, j, !alone) : 0;
	for (uint32_t i = 0; i < c->topo_n && (alone || c->topo_only); i++) {
		bool all = alone && &c->topo[i] == p->topo;
		const struct bitset *unit = all || c->topo_only ? unit_of(&c->topo[i], n->index) : NULL;
		if (unit)
			bitset_for(unit, k) {
				uint64_t e = last_end(c, c->node[k], j, !all);
				last = e > last ? e : last;
			}
	}
	return last;
}

/* A job that had its unit alone left n: all that are one with it have room. */
void topology_left(struct core *c, const struct core_node *n)
{
	for (uint32_t i = 0; i < c->topo_n; i++) {
		const struct bitset *unit = unit_of(&c->topo[i], n->index);
		if (unit)
			bitset_for(unit, k)
				sched_gained(c, k);
	}
}

/* Adds to the nodes of a promise the others of their units, that nobody is planned on them meanwhile. */
uint32_t topology_rest(const struct core *c, const struct core_part *p, const struct fit *f, uint32_t n, struct bitset **ret)
{
	*ret = bitset_create(c->node_n);
	for (uint32_t i = 0; i < n; i++) {
		const struct bitset *unit = unit_of(p->topo, f[i].node);
		if (unit)
			bitset_or(*ret, unit);
	}
	for (uint32_t i = 0; i < n; i++)
		bitset_clear(*ret, f[i].node);
	return bitset_count(*ret);
}

/* --- --switches ------------------------------------------------------------------------------------ */

/* Of so many leaf switches or base blocks the nodes are. */
uint32_t topology_bases(const struct topo *t, const struct bitset *nodes)
{
	uint32_t k = 0;
	for (uint32_t u = 0; u < t->unit_n; u++)
		k += !t->unit[u].level && bitset_intersects(t->unit[u].nodes, nodes);
	return k;
}

uint64_t topology_wait_ms(const struct core *c, const struct shape *s)
{
	uint32_t most = c->params.max_switch_wait_sec;
	return (s->switches_wait < most ? s->switches_wait : most) * 1000ull;
}

/* Must a start at the time asked for keep to --switches? Not for ever: only for a while after one with more switches would have been possible. */
bool topology_strict(const struct core *c, const struct shape *s, const struct when *w)
{
	if (!s->switches || !w->j || w->any_switches)
		return false;
	uint64_t at = w->start_ms ? w->start_ms : c->now_ms;
	return at < (w->j->switch_ms ? w->j->switch_ms : c->now_ms) + topology_wait_ms(c, s);
}

/* It could have started, but on more switches: from now on it waits for fewer, for a time. */
void topology_wait(struct core *c, struct core_job *j)
{
	if (j->switch_ms)
		return;
	j->switch_ms = c->now_ms;
	timer_add(c, c->now_ms + topology_wait_ms(c, j->shape), TIMER_BEGIN, j->id, 0);
}

/* --- invariants ------------------------------------------------------------------------------------ */

static void check_alone(const struct core *c, const struct topo *t, const struct core_job *j)
{
	for (uint32_t i = 0; i < j->alloc->n; i++) {
		const struct bitset *unit = unit_of(t, j->alloc->on[i].node);
		if (!unit || j->alloc->on[i].state == ON_FREE)
			continue;
		bitset_for(unit, n)
			for (size_t k = 0; k < c->node[n]->held_n; k++)
				assert(c->node[n]->held[k].job == j);
	}
}

/* All under one switch; in as many blocks as segments need. */
void topology_check(const struct core *c, const struct core_job *j, const struct bitset *nodes)
{
	const struct shape *s = j->shape;
	const struct topo *t = j->part < c->part_n ? c->part[j->part]->topo : NULL;
	bool together = !t || t->kind != TOPO_TREE || j->alloc->n == 1 || s->contiguous || s->spread || s->sets.n || (c->params.topo_optional && !s->switches);
	for (uint32_t u = 0; !together && u < t->unit_n; u++)
		together = bitset_subset(nodes, t->unit[u].nodes);
	assert(together);
	bool one = t && t->kind == TOPO_BLOCK && !s->sets.n && (!s->segment || s->segment >= j->alloc->n) && j->alloc->n <= t->size[0];
	assert(!one || topology_bases(t, nodes) == 1);
	if (j->alloc->topo_only)
		check_alone(c, t, j);
}
