/* choose.c - which nodes together are enough for a request
 * In order of weight and index (or least loaded first: LLN); one node rather than many unless a range of nodes was given, of which as many are taken as
 * can be had. A node's share of tasks: the first is filled, those behind get one at least; --spread-job deals them out evenly. */
#include <stdlib.h>

#include "core/choose.h"
#include "core/state.h"

/* Now, and there are promises on the node. */
static bool spares(const struct when *w, const struct core_node *n) { return w->j && !w->start_ms && n->plan_n; }

static uint32_t tasks_on(const struct shape *s, uint32_t nodes)
{
	uint32_t each = s->per_node ? s->per_node : 1;
	return s->tasks_set || s->tasks > nodes * each ? s->tasks : nodes * each; /* -N2-4: a task for each node there is */
}

static void share_tasks(const struct shape *s, const struct option *o, uint32_t n, uint32_t *tasks)
{
	uint32_t left = tasks_on(s, n);
	for (bool more = s->spread; more && left;) {
		more = false;
		for (uint32_t k = 0; k < n && left; k++)
			if (tasks[k] < o[k].tasks) {
				tasks[k]++;
				left--;
				more = true;
			}
	}
	for (uint32_t k = 0; k < n && !s->spread; k++) {
		uint32_t after = n - 1 - k, t = left > after ? left - after : (left ? 1 : 0);
		tasks[k] = t > o[k].tasks ? o[k].tasks : t;
		left -= tasks[k];
	}
}

/* Shares tasks and the job's GRES out: nodes in order are filled, one task at least for each that follows. */
static struct fit *share_out(struct core *c, const struct shape *s, const struct option *o, uint32_t n, const struct when *w)
{
	struct fit *f = xcalloc(n, sizeof *f);
	uint32_t left[WANT_MAX], *tasks = xcalloc(n, sizeof *tasks);
	share_tasks(s, o, n, tasks);
	for (uint32_t i = 0; i < s->job.n; i++)
		left[i] = (uint32_t)s->job.w[i].count;
	for (uint32_t k = 0; k < n; k++) {
		struct core_node *node = c->node[o[k].node];
		uint32_t after = n - 1 - k, share[WANT_MAX];
		struct avail a;
		avail_of(c, s, w, node, &a);
		if (spares(w, node))
			avail_spare(c, w, node, &a);
		for (uint32_t i = 0; i < s->job.n; i++) {
			uint32_t k2 = wants_free(c, node, &a, &s->job.w[i]);
			k2 = k2 > o[k].gpus ? o[k].gpus : k2;
			share[i] = left[i] > after ? left[i] - after : 0;
			share[i] = share[i] > k2 ? k2 : share[i];
			left[i] -= share[i];
		}
		fit_take(c, s, node, &a, tasks[k], share, &f[k]);
	}
	free(tasks);
	return f;
}

static uint32_t need_gpus(const struct shape *s)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->job.n; i++)
		n = s->job.w[i].count > n ? s->job.w[i].count : n;
	return (uint32_t)n;
}

bool pick_enough(const struct shape *s, const struct pick *p)
{
	return p->n >= s->min_nodes && p->tasks >= s->tasks && p->gpus >= need_gpus(s);
}

void pick_sum(struct pick *p)
{
	p->tasks = p->gpus = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		p->tasks += p->o[i].tasks;
		p->gpus += p->o[i].gpus;
	}
}

/* In order of their nodes; or the largest first (equal ones stay as they are). */
static void pick_sort(struct pick *p, bool by_size)
{
	struct moment *m = xmalloc((2 * p->n + 1) * sizeof *m);
	struct option *o = xmalloc((p->n + 1) * sizeof *o);
	for (uint32_t i = 0; i < p->n; i++)
		m[i] = (struct moment){ by_size ? UINT64_MAX - p->o[i].tasks - p->o[i].gpus : p->o[i].node, i };
	moments_sort(m, p->n, m + p->n);
	for (uint32_t i = 0; i < p->n; i++)
		o[i] = p->o[m[i].node];
	free(m);
	free(p->o);
	p->o = o;
}

/* Too many nodes were needed in plain order: take the largest ones. */
static bool pick_largest(const struct shape *s, struct pick *p)
{
	pick_sort(p, true);
	p->n = p->n > p->max_nodes ? p->max_nodes : p->n;
	pick_sum(p);
	return pick_enough(s, p);
}

static bool option_of(struct core *c, const struct shape *s, uint32_t node, const struct when *w, struct option *ret)
{
	struct avail a;
	struct core_node *n = c->node[node];
	avail_of(c, s, w, n, &a);
	uint32_t tasks = fit_tasks(c, s, n, &a);
	c->work++;
	if (tasks && spares(w, n)) { /* most have no room anyway: this costs more */
		avail_spare(c, w, n, &a);
		tasks = fit_tasks(c, s, n, &a);
	}
	if (!tasks)
		return false;
	*ret = (struct option){ node, tasks, s->job.n ? gpus_for_job(c, s, n, &a) : 0 };
	return true;
}

/* How many nodes are wanted where more than the fewest are welcome. */
uint32_t pick_wanted(const struct shape *s, const struct pick *p)
{
	uint32_t most = p->max_nodes, each = s->per_node ? s->per_node : 1;
	if (!s->many_nodes)
		return 0;
	return s->tasks_set && most > (s->tasks + each - 1) / each ? (s->tasks + each - 1) / each : most;
}

/* A run of neighbours: the first window that is enough. */
static bool pick_contiguous(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct pick *p)
{
	bitset_for(cand, i) {
		struct option o;
		if (!option_of(c, s, i, w, &o)) {
			p->n = 0;
			continue;
		}
		if (p->n && p->o[p->n - 1].node + 1 != i)
			p->n = 0;
		if (p->n == p->max_nodes) {
			memmove(p->o, p->o + 1, (p->n - 1) * sizeof *p->o);
			p->n--;
		}
		p->o[p->n++] = o;
		pick_sum(p);
		if (pick_enough(s, p) && p->n >= pick_wanted(s, p))
			return true;
	}
	return false;
}

static bool pick_add(struct core *c, const struct shape *s, uint32_t node, const struct when *w, struct pick *p, bool alone)
{
	struct option o;
	if (!option_of(c, s, node, w, &o))
		return false;
	if (alone && o.tasks >= s->tasks && o.gpus >= need_gpus(s)) { /* one node that serves all */
		p->o[0] = o;
		p->n = 1;
		pick_sum(p);
		return true;
	}
	p->o[p->n++] = o;
	p->tasks += o.tasks;
	p->gpus += o.gpus;
	return p->n <= p->max_nodes && p->n >= pick_wanted(s, p) && !alone && pick_enough(s, p);
}

/* The order in which nodes are looked at, where it is not that of their index. NULL: it is. */
static uint32_t *order_of(struct core *c, const struct bitset *cand, const struct when *w)
{
	if (!c->params.select_lln && !(w->part && w->part->lln))
		return NULL;
	struct moment *m = xmalloc((2 * c->node_n + 1) * sizeof *m);
	uint32_t *order = xmalloc((c->node_n + 1) * sizeof *order), n = 0;
	bitset_for(cand, i)
		m[n++] = (struct moment){ c->node[i]->cap ? ((uint64_t)c->node[i]->cpus_used << 32) / c->node[i]->cap : 0, i };
	moments_sort(m, n, m + c->node_n);
	for (uint32_t i = 0; i < n; i++)
		order[i] = m[i].node;
	order[n] = UINT32_MAX;
	free(m);
	return order;
}

static bool pick_all(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct pick *p, bool alone)
{
	uint32_t *load = pack_on(c) && w ? pack_order(c, s, cand, w) : order_of(c, cand, w), *order = load ? load : c->weight_order;
	bool done = false;
	for (uint32_t k = 0; k < c->node_n && !done; k++) {
		if (!order && (k = bitset_next(cand, k)) >= c->node_n)
			break;
		uint32_t i = order ? order[k] : k;
		if (i == UINT32_MAX)
			break;
		if (bitset_has(cand, i) && !(s->required && bitset_has(s->required, i)))
			done = pick_add(c, s, i, w, p, alone);
	}
	free(load);
	return done;
}

static bool pick_plain(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct pick *p)
{
	bool alone = s->min_nodes == 1 && !s->required && !s->many_nodes;
	if (s->required) {
		bitset_for(s->required, i)
			if (!bitset_has(cand, i) || (pick_add(c, s, i, w, p, false), p->n == 0 || p->o[p->n - 1].node != i))
				return false;
		if (pick_enough(s, p) && p->n >= pick_wanted(s, p))
			return true;
	}
	if (pick_all(c, s, cand, w, p, alone))
		return true;
	if (s->required && !s->many_nodes)
		return false;
	if (s->many_nodes && p->n <= p->max_nodes)
		return pick_enough(s, p);
	if (alone) { /* no single node: the first ones that are enough */
		uint32_t all = p->n;
		for (p->n = 1; p->n <= all && p->n <= p->max_nodes; p->n++) {
			pick_sum(p);
			if (pick_enough(s, p))
				return true;
		}
		p->n = all;
	}
	return !s->required && pick_largest(s, p);
}

/* All nodes that will do, those named by --nodelist first. False: one of these will not. */
bool pick_gather(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct pick *p, uint32_t *ret_named)
{
	uint32_t max = p->max_nodes;
	*ret_named = 0;
	if (s->required)
		bitset_for(s->required, i) {
			if (!bitset_has(cand, i) || !option_of(c, s, i, w, &p->o[p->n]))
				return false;
			p->n++;
		}
	*ret_named = p->n;
	p->max_nodes = 0; /* never enough: none is left out */
	(void)pick_all(c, s, cand, w, p, false);
	p->max_nodes = max;
	return true;
}

/* The topology that has a say in where this request goes; NULL: none. */
static const struct topo *topo_for(const struct core *c, const struct shape *s, const struct when *w)
{
	const struct topo *t = w->part ? w->part->topo : NULL;
	if (!t || t->kind == TOPO_BLOCK)
		return t;
	return s->contiguous || s->spread || (c->params.topo_optional && !s->switches) ? NULL : t;
}

static uint32_t choose_in(struct core *c, const struct shape *s, const struct bitset *cand, const struct feature_set *set, const struct when *w, struct fit **ret)
{
	if (bitset_count(cand) < s->min_nodes)
		return 0;
	struct pick p = { .o = xmalloc((bitset_count(cand) + 1) * sizeof *p.o), .max_nodes = s->max_nodes };
	if (w && w->part && w->part->max_nodes < p.max_nodes)
		p.max_nodes = w->part->max_nodes;
	const struct topo *t = topo_for(c, s, w);
	bool ok = set && set->count_n ? pick_counted(c, s, cand, set, w, &p) : t ? pick_topo(c, s, cand, w, t, &p) : s->contiguous ? pick_contiguous(c, s, cand, w, &p) : pick_plain(c, s, cand, w, &p);
	c->tries++;
	if (ok) {
		pick_sort(&p, false);
		*ret = share_out(c, s, p.o, p.n, w);
	}
	free(p.o);
	return ok ? p.n : 0;
}

uint32_t place_choose(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct fit **ret)
{
	uint32_t n = 0;
	c->topo_short = false;
	if (!s->sets.n)
		return choose_in(c, s, cand, NULL, w, ret);
	for (uint32_t i = 0; !n && i < s->sets.n; i++) {
		struct bitset *b = bitset_copy(cand);
		bitset_and(b, s->sets.set[i].in);
		n = choose_in(c, s, b, &s->sets.set[i], w, ret);
		bitset_destroy(b);
	}
	return n;
}
