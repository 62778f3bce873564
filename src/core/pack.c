/* pack.c - placement that fragments least (SelectTypeParameters has no word for it: SchedulerParameters=place_fragment)
 * Nodes are looked at in the order in which giving them a part of the request takes least from what the other requests could use: fragment.h, with the
 * requests of all jobs the core knows as the mix. Nodes in equal condition are judged once. Whole GPUs; nodes without GPUs come first for requests without. */
#include <stdlib.h>

#include "core/fragment.h"
#include "core/state.h"

enum { CLASSES_MAX = 48, STATES_MAX = 512 };

bool pack_on(const struct core *c) { return c->params.place_fragment; }

static uint32_t gpus_of(const struct core *c, const struct wants *w)
{
	uint32_t n = 0, gpu = atom_find(c, "gpu");
	for (uint32_t i = 0; i < w->n; i++)
		n += w->w[i].name == gpu ? (uint32_t)w->w[i].count : 0;
	return n;
}

/* What a shape asks of one node, about. */
static struct frag_class class_of(const struct core *c, const struct shape *s)
{
	struct frag_class r = { .weight = s->refs };
	uint32_t tasks = s->per_node ? s->per_node : (s->tasks + s->min_nodes - 1) / s->min_nodes;
	r.gpus = gpus_of(c, &s->node) + gpus_of(c, &s->task) * tasks + (gpus_of(c, &s->job) + s->min_nodes - 1) / s->min_nodes;
	r.gpu_milli = r.gpus ? 1000 : 0;
	uint32_t cpus = tasks * s->cpus_per_task, by_gpu = r.gpus * s->cpus_per_gpu;
	cpus = cpus > by_gpu ? cpus : by_gpu;
	r.cpu_milli = (cpus > s->min_cpus ? cpus : s->min_cpus) * 1000;
	uint64_t mem = s->mem_per_gpu ? s->mem_per_gpu * r.gpus : s->mem_cpu ? s->mem_cpu * cpus : s->mem_node;
	r.mem_mb = !c->params.select_memory ? 0 : mem > UINT32_MAX ? UINT32_MAX : (uint32_t)mem;
	return r;
}

/* The mix: requests for GPUs, of the shapes made last. */
static uint32_t classes_of(const struct core *c, struct frag_class *ret)
{
	uint32_t n = 0;
	for (const struct shape *s = c->shapes; s; s = s->hh.next) {
		struct frag_class r = class_of(c, s);
		if (!r.gpus || r.gpus > FRAG_GPUS)
			continue;
		if (n == CLASSES_MAX) {
			memmove(ret, ret + 1, (n - 1) * sizeof *ret);
			n--;
		}
		ret[n++] = r;
	}
	return n;
}

static struct frag_node state_of(struct core *c, const struct shape *s, const struct when *w, struct core_node *n)
{
	struct avail a;
	uint32_t gpu = atom_find(c, "gpu"), left = 0;
	avail_of(c, s, w, n, &a);
	if (w->j && !w->start_ms && n->plan_n)
		avail_spare(c, w, n, &a);
	struct frag_node f = { .cpu_milli = a.cpus * 1000, .mem_mb = a.mem > UINT32_MAX ? UINT32_MAX : (uint32_t)a.mem };
	for (uint32_t g = 0; g < n->gres_n; g++)
		left += n->gres[g].name == gpu ? a.gres[g] : 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		f.gpus += n->gres[g].name == gpu ? n->gres[g].count : 0;
	f.gpus = f.gpus > FRAG_GPUS ? FRAG_GPUS : f.gpus;
	for (uint32_t g = 0; g < f.gpus && g < left; g++)
		f.free[g] = 1000;
	return f;
}

struct judged { struct frag_node state; uint64_t cost; };

static uint64_t judge(const struct frag_node *f, const struct frag_class *r, const struct frag_class *c, uint32_t classes)
{
	uint32_t at, left = 0;
	if (!frag_fits(f, r))
		return UINT64_MAX;
	for (uint32_t g = 0; g < f->gpus; g++)
		left += f->free[g];
	return (uint64_t)(frag_growth(f, r, c, classes, FRAG_TASKS, &at) + (1ll << 46)) * 16384 + left; /* of equals the fuller one */
}

uint32_t *pack_order(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w)
{
	struct frag_class mix[CLASSES_MAX], r = class_of(c, s);
	uint32_t classes = classes_of(c, mix), n = 0, seen = 0;
	struct judged *known = xmalloc(STATES_MAX * sizeof *known);
	struct moment *m = xmalloc((2 * c->node_n + 1) * sizeof *m);
	uint32_t *order = xmalloc((c->node_n + 1) * sizeof *order);
	bitset_for(cand, i) {
		struct frag_node f = state_of(c, s, w, c->node[i]);
		uint32_t k = 0;
		while (k < seen && memcmp(&known[k].state, &f, sizeof f))
			k++;
		if (k == STATES_MAX)
			k = --seen;
		if (k == seen)
			known[seen++] = (struct judged){ f, judge(&f, &r, mix, classes) };
		m[n++] = (struct moment){ known[k].cost, i };
	}
	moments_sort(m, n, m + c->node_n);
	for (uint32_t i = 0; i < n; i++)
		order[i] = m[i].node;
	order[n] = UINT32_MAX;
	free(known);
	free(m);
	return order;
}
