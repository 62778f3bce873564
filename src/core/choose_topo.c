/* choose_topo.c - which nodes together, where the network counts
 * tree: under the lowest switch that is enough, and of several the one with the fewest nodes free (best fit); below it leaf by leaf: the leaf with the fewest that
 * is enough for the rest, else the one with the most. block: segment by segment (the whole job is one where --segment does not say otherwise), each within one
 * block of the smallest size that holds it; of several again the one with the fewest nodes free, the last of equals. */
#include <stdlib.h>

#include "core/choose.h"

struct net {
	struct core *c;
	const struct shape *s;
	const struct topo *t;
	const struct pick *p;       /* all nodes that will do, those named first */
	uint32_t named, n;          /* how many are named; how many of them are looked at */
	bool *taken;                /* of p */
	uint32_t *free;             /* options left in each leaf or base block */
	uint32_t wanted;            /* as many nodes are welcome, where a range was given */
	bool *barred;               /* base blocks of earlier segments (--spread-segments) */
	struct pick out;
};

static uint32_t base_of(const struct net *x, uint32_t i) { return x->t->base_of[x->p->o[i].node]; }

static void free_count(struct net *x)
{
	memset(x->free, 0, x->t->unit_n * sizeof *x->free);
	for (uint32_t i = 0; i < x->n; i++)
		if (!x->taken[i] && base_of(x, i) != UINT32_MAX)
			x->free[base_of(x, i)]++;
}

static void net_take(struct net *x, uint32_t i)
{
	x->taken[i] = true;
	x->out.o[x->out.n++] = x->p->o[i];
	x->out.tasks += x->p->o[i].tasks;
	x->out.gpus += x->p->o[i].gpus;
	if (base_of(x, i) != UINT32_MAX)
		x->free[base_of(x, i)]--;
}

static void net_clear(struct net *x)
{
	memset(x->taken, 0, x->p->n * sizeof *x->taken);
	memset(x->barred, 0, x->t->unit_n * sizeof *x->barred);
	x->out.n = 0;
	x->out.tasks = x->out.gpus = 0;
	free_count(x);
}

static bool net_done(const struct net *x) { return pick_enough(x->s, &x->out) && x->out.n >= x->wanted; }

/* --- tree ------------------------------------------------------------------------------------------ */

/* Would what is left in the leaf be enough for the rest? */
static bool leaf_enough(const struct net *x, uint32_t leaf)
{
	struct pick sum = x->out;
	for (uint32_t i = 0; i < x->n && sum.n < x->p->max_nodes; i++)
		if (!x->taken[i] && base_of(x, i) == leaf) {
			sum.n++;
			sum.tasks += x->p->o[i].tasks;
			sum.gpus += x->p->o[i].gpus;
		}
	return pick_enough(x->s, &sum) && sum.n >= x->wanted;
}

/* One that is used already adds no switch. */
static bool leaf_used(const struct net *x, uint32_t leaf)
{
	for (uint32_t i = 0; i < x->named; i++)
		if (base_of(x, i) == leaf)
			return true;
	return false;
}

static uint32_t leaf_next(const struct net *x, const struct bitset *under)
{
	uint32_t best = UINT32_MAX;
	bool best_enough = false;
	for (uint32_t u = 0; u < x->t->unit_n; u++) {
		if (x->t->unit[u].level || !x->free[u] || !bitset_intersects(x->t->unit[u].nodes, under))
			continue;
		if (leaf_used(x, u))
			return u;
		bool enough = leaf_enough(x, u);
		if (best == UINT32_MAX || (enough ? !best_enough || x->free[u] < x->free[best] : !best_enough && x->free[u] > x->free[best])) {
			best = u;
			best_enough = enough;
		}
	}
	return best;
}

/* TopologyParam=dragonfly: what does not fit under one leaf is spread over as many as there are. */
static bool fill_dragonfly(struct net *x, const struct bitset *under)
{
	for (bool more = true; more && !net_done(x);) {
		more = false;
		for (uint32_t u = 0; u < x->t->unit_n && !net_done(x); u++)
			for (uint32_t i = 0; i < x->n && !x->t->unit[u].level; i++)
				if (!x->taken[i] && base_of(x, i) == u && bitset_has(under, x->p->o[i].node) && x->out.n < x->p->max_nodes) {
					net_take(x, i);
					more = true;
					break;
				}
	}
	return net_done(x);
}

static bool fill_tree(struct net *x, const struct bitset *under)
{
	net_clear(x);
	for (uint32_t i = 0; i < x->named; i++)
		net_take(x, i);
	for (uint32_t leaf; !net_done(x) && (leaf = leaf_next(x, under)) != UINT32_MAX;) {
		if (x->c->params.dragonfly && !leaf_enough(x, leaf))
			return fill_dragonfly(x, under);
		for (uint32_t i = 0; i < x->n && !net_done(x); i++)
			if (!x->taken[i] && base_of(x, i) == leaf) {
				if (x->out.n == x->p->max_nodes)
					return false;
				net_take(x, i);
			}
	}
	return x->out.n <= x->p->max_nodes && net_done(x);
}

struct under { uint32_t unit, nodes; bool tried; };

/* Nodes below the switch; 0 where a named one is not, or they are not enough. */
static uint32_t count_under(const struct net *x, const struct bitset *b)
{
	struct pick sum = { 0 };
	for (uint32_t i = 0; i < x->n; i++) {
		if (!bitset_has(b, x->p->o[i].node)) {
			if (i < x->named)
				return 0;
			continue;
		}
		sum.n++;
		sum.tasks += x->p->o[i].tasks;
		sum.gpus += x->p->o[i].gpus;
	}
	return pick_enough(x->s, &sum) && sum.n >= x->wanted ? sum.n : 0;
}

static bool switches_few(const struct net *x, bool strict)
{
	if (!strict)
		return true;
	struct bitset *b = bitset_create(x->c->node_n);
	for (uint32_t i = 0; i < x->out.n; i++)
		bitset_set(b, x->out.o[i].node);
	bool few = topology_bases(x->t, b) <= x->s->switches;
	bitset_destroy(b);
	return few;
}

/* As many as a switch has, where there are not as many as are welcome. */
static bool want_less(struct net *x)
{
	uint32_t most = 0, was = x->wanted;
	x->wanted = 0;
	for (uint32_t i = 0; was && i < x->t->unit_n; i++) {
		uint32_t k = count_under(x, x->t->unit[i].nodes);
		most = k > most ? k : most;
	}
	x->wanted = most < was ? most : 0;
	return x->wanted > 0;
}

/* Of the first x->n nodes. */
static bool try_tree(struct net *x, bool strict)
{
	struct under *u = xcalloc(x->t->unit_n + 1, sizeof *u);
	uint32_t most = 0;
	bool ok = false;
	for (uint32_t i = 0; i < x->t->unit_n; i++) {
		u[i] = (struct under){ i, count_under(x, x->t->unit[i].nodes), false };
		most = x->t->unit[i].level > most ? x->t->unit[i].level : most;
	}
	for (uint32_t level = 0; !ok && level <= most;) {
		struct under *best = NULL;
		for (uint32_t i = 0; i < x->t->unit_n; i++)
			if (x->t->unit[i].level == level && u[i].nodes && !u[i].tried && (!best || u[i].nodes < best->nodes))
				best = &u[i];
		if (!best) {
			level++;
			continue;
		}
		best->tried = true;
		ok = fill_tree(x, x->t->unit[best->unit].nodes) && switches_few(x, strict);
	}
	free(u);
	return ok;
}

/* Lighter nodes come before what the network would rather have. */
static bool choose_tree(struct net *x, bool strict)
{
	bool ok = false;
	x->wanted = pick_wanted(x->s, x->p);
	for (x->n = x->named; !ok && x->n < x->p->n;) {
		uint32_t weight = x->c->node[x->p->o[x->n].node]->weight;
		while (x->n < x->p->n && (!x->c->weight_order || x->c->node[x->p->o[x->n].node]->weight == weight))
			x->n++;
		ok = try_tree(x, strict);
	}
	x->n = x->p->n;
	return ok || (x->named == x->p->n && try_tree(x, strict)) || (want_less(x) && try_tree(x, strict));
}

/* --- block ----------------------------------------------------------------------------------------- */

/* Base blocks in a block of that level; all of them above the last. */
static uint32_t span(const struct topo *t, uint32_t level) { return level < t->size_n ? t->size[level] / t->size[0] : t->unit_n; }

static uint32_t level_for(const struct topo *t, uint32_t nodes)
{
	uint32_t level = 0;
	while (level < t->size_n && t->size[level] < nodes)
		level++;
	return level;
}

static uint32_t block_free(const struct net *x, uint32_t first, uint32_t n)
{
	uint32_t k = 0;
	for (uint32_t u = first; u < first + n && u < x->t->unit_n; u++)
		k += x->barred[u] ? 0 : x->free[u];
	return k;
}

/* Named nodes not taken yet among these base blocks. */
static uint32_t block_named(const struct net *x, uint32_t first, uint32_t n)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < x->named; i++)
		k += !x->taken[i] && base_of(x, i) >= first && base_of(x, i) < first + n;
	return k;
}

/* Takes `want` nodes from base blocks [first, first + n), a block of `level`: from as few of the blocks below as will do. */
static void block_take(struct net *x, uint32_t first, uint32_t level, uint32_t want)
{
	uint32_t n = span(x->t, level), below = level ? span(x->t, level - 1) : 0;
	if (!level) {
		for (uint32_t pass = 0; pass < 2; pass++)
			for (uint32_t i = 0; i < x->n && want; i++)
				if (!x->taken[i] && base_of(x, i) == first && (pass || i < x->named)) {
					net_take(x, i);
					want--;
				}
		return;
	}
	while (want) {
		uint32_t best = UINT32_MAX, best_free = 0, best_named = 0;
		for (uint32_t u = first; u < first + n && u < x->t->unit_n; u += below) {
			uint32_t k = block_free(x, u, below), named = block_named(x, u, below);
			bool enough = k >= want, was = best_free >= want;
			if (k && (best == UINT32_MAX || named > best_named || (named == best_named && (enough ? !was || k <= best_free : !was && k >= best_free)))) {
				best = u;
				best_free = k;
				best_named = named;
			}
		}
		assert(best != UINT32_MAX);
		uint32_t room = best_named ? best_named : best_free, take = room < want ? room : want;
		block_take(x, best, level - 1, take);
		want -= take;
	}
}

/* One segment within [first, first + n): false where none of the blocks has room for it. */
static bool segment_take(struct net *x, uint32_t first, uint32_t n, uint32_t size)
{
	uint32_t level = level_for(x->t, size), step = span(x->t, level), best = UINT32_MAX, best_free = 0, best_named = 0;
	for (uint32_t u = first; u < first + n && u < x->t->unit_n; u += step) {
		uint32_t k = block_free(x, u, step), named = block_named(x, u, step);
		if (k >= size && (best == UINT32_MAX || named > best_named || (named == best_named && k <= best_free))) {
			best = u;
			best_free = k;
			best_named = named;
		}
	}
	if (best == UINT32_MAX)
		return false;
	uint32_t was = x->out.n;
	block_take(x, best, level, size);
	for (uint32_t i = was; x->s->spread_segments && i < x->out.n; i++)
		x->barred[x->t->base_of[x->out.o[i].node]] = true;
	return true;
}

static bool segments_in(struct net *x, uint32_t first, uint32_t n, uint32_t nodes)
{
	uint32_t size = x->s->segment && x->s->segment < nodes ? x->s->segment : nodes;
	net_clear(x);
	for (uint32_t done = 0; done < nodes; done += size)
		if (!segment_take(x, first, n, size))
			return false;
	return block_named(x, 0, x->t->unit_n) == 0;
}

/* So many nodes; with --consolidate-segments within one block that holds them all, the fullest that will do. */
static bool choose_nodes(struct net *x, uint32_t nodes)
{
	uint32_t level = level_for(x->t, nodes), step = span(x->t, level);
	if (x->s->segment && x->s->segment < nodes && nodes % x->s->segment)
		return false;
	if (!x->s->consolidate_segments)
		return segments_in(x, 0, x->t->unit_n, nodes);
	net_clear(x);
	for (uint32_t least = nodes, next; level < x->t->size_n && least != UINT32_MAX; least = next) {
		next = UINT32_MAX;
		for (uint32_t at = (x->t->unit_n + step - 1) / step; at--;) { /* the last of equals */
			uint32_t u = at * step;
			net_clear(x);
			uint32_t k = block_free(x, u, step);
			if (k == least && segments_in(x, u, step, nodes))
				return true;
			next = k > least && k < next ? k : next;
		}
	}
	return false;
}

enum { SIZES_TRIED = 64 };

static bool choose_block(struct net *x)
{
	const struct shape *s = x->s;
	uint32_t most = 1, least = s->min_nodes > x->named ? s->min_nodes : x->named;
	x->n = x->p->n;
	for (uint32_t i = 0; i < x->n; i++)
		most = x->p->o[i].tasks > most ? x->p->o[i].tasks : most;
	least = (s->tasks + most - 1) / most > least ? (s->tasks + most - 1) / most : least;
	for (uint32_t nodes = least; nodes <= x->n && nodes <= x->p->max_nodes && nodes < least + SIZES_TRIED; nodes++)
		if (choose_nodes(x, nodes) && pick_enough(s, &x->out))
			return true;
	return false;
}

/* --- either ---------------------------------------------------------------------------------------- */

/* One node that serves all, the first in order. */
static bool choose_one(const struct shape *s, const struct topo *t, uint32_t named, struct pick *p)
{
	if (s->min_nodes > 1 || named > 1 || s->many_nodes)
		return false;
	for (uint32_t i = 0; i < (named ? named : p->n); i++) {
		struct pick one = { .o = &p->o[i], .n = 1, .max_nodes = p->max_nodes, .tasks = p->o[i].tasks, .gpus = p->o[i].gpus };
		if (pick_enough(s, &one) && (t->kind == TOPO_TREE || t->base_of[p->o[i].node] != UINT32_MAX)) {
			p->o[0] = p->o[i];
			p->n = 1;
			return true;
		}
	}
	return false;
}

bool pick_topo(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, const struct topo *t, struct pick *p)
{
	uint32_t named;
	if (!pick_gather(c, s, cand, w, p, &named) || p->n < s->min_nodes)
		return false;
	if (choose_one(s, t, named, p))
		return true;
	struct net x = { .c = c, .s = s, .t = t, .p = p, .named = named };
	x.taken = xcalloc(p->n + 1, sizeof *x.taken);
	x.free = xcalloc(t->unit_n + 1, sizeof *x.free);
	x.barred = xcalloc(t->unit_n + 1, sizeof *x.barred);
	x.out.o = xcalloc(p->n + 1, sizeof *x.out.o);
	bool strict = t->kind == TOPO_TREE && topology_strict(c, s, w);
	bool ok = t->kind == TOPO_TREE ? choose_tree(&x, strict) : choose_block(&x);
	if (!ok && strict && w->start_ms && !c->dooming) /* a promise is rather one that is not kept to the minute than none */
		ok = choose_tree(&x, false);
	if (ok) {
		memcpy(p->o, x.out.o, x.out.n * sizeof *p->o);
		p->n = x.out.n;
	}
	c->topo_short = !ok && !strict;
	free(x.taken);
	free(x.free);
	free(x.barred);
	free(x.out.o);
	return ok;
}
