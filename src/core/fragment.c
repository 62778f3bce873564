/* fragment.c - see fragment.h */
#include <assert.h>

#include "core/fragment.h"

bool frag_fits(const struct frag_node *n, const struct frag_class *r)
{
	uint32_t whole = 0;
	if (n->cpu_milli < r->cpu_milli || n->mem_mb < r->mem_mb)
		return false;
	if (!r->gpus)
		return true;
	if (r->models && !(r->models >> n->model & 1))
		return false;
	for (uint32_t g = 0; g < n->gpus; g++)
		whole += n->free[g] >= r->gpu_milli;
	return whole >= r->gpus;
}

void frag_take(struct frag_node *n, const struct frag_class *r, uint32_t at)
{
	uint32_t left = r->gpus;
	n->cpu_milli -= r->cpu_milli;
	n->mem_mb -= r->mem_mb;
	if (left == 1) {
		assert(n->free[at] >= r->gpu_milli);
		n->free[at] = (uint16_t)(n->free[at] - r->gpu_milli);
		return;
	}
	for (uint32_t g = 0; g < n->gpus && left; g++)
		if (n->free[g] >= r->gpu_milli) {
			n->free[g] = (uint16_t)(n->free[g] - r->gpu_milli);
			left--;
		}
	assert(!left);
}

/* GPU thousandths of those that could serve the class that its number of tasks leaves over, because CPUs or memory run out first. */
static uint32_t lost_to_others(const struct frag_node *n, const struct frag_class *c, uint32_t all)
{
	uint32_t slots = 0, usable = 0;
	for (uint32_t g = 0; g < n->gpus; g++) {
		slots += c->gpus == 1 ? n->free[g] / c->gpu_milli : n->free[g] >= c->gpu_milli;
		usable += n->free[g] >= c->gpu_milli ? n->free[g] : 0;
	}
	if (c->gpus > 1) {
		slots /= c->gpus;
		usable = slots * c->gpus * c->gpu_milli;
	}
	uint32_t cpus = c->cpu_milli ? n->cpu_milli / c->cpu_milli : slots, mem = c->mem_mb ? n->mem_mb / c->mem_mb : slots, tasks = slots;
	tasks = cpus < tasks ? cpus : tasks;
	tasks = mem < tasks ? mem : tasks;
	return all - (slots ? (uint32_t)((uint64_t)usable * tasks / slots) : 0);
}

/* Those on which not one task of the class fits (Weng et al.). */
static uint32_t lost_to_class(const struct frag_node *n, const struct frag_class *c, uint32_t all)
{
	uint32_t lost = 0, could = 0;
	for (uint32_t g = 0; g < n->gpus; g++) {
		bool fits = n->free[g] >= c->gpu_milli;
		could += fits;
		lost += fits ? 0 : n->free[g];
	}
	return could < c->gpus ? all : lost;
}

uint64_t frag_amount(const struct frag_node *n, const struct frag_class *c, uint32_t classes, enum frag_measure measure)
{
	uint64_t sum = 0;
	uint32_t all = 0, most = measure == FRAG_TASKS ? 3 : 1;
	for (uint32_t g = 0; g < n->gpus; g++)
		all += n->free[g];
	if (!all)
		return 0;
	for (uint32_t i = 0; i < classes; i++) {
		if (!c[i].gpus)
			continue;
		if (n->cpu_milli < c[i].cpu_milli || n->mem_mb < c[i].mem_mb || (c[i].models && !(c[i].models >> n->model & 1)))
			sum += (uint64_t)all * c[i].weight * most;
		else
			sum += (uint64_t)(lost_to_class(n, &c[i], all) + (measure == FRAG_TASKS ? 2 * lost_to_others(n, &c[i], all) : 0)) * c[i].weight;
	}
	return sum;
}

int64_t frag_growth(const struct frag_node *n, const struct frag_class *r, const struct frag_class *c, uint32_t classes, enum frag_measure measure, uint32_t *ret_at)
{
	int64_t before = (int64_t)frag_amount(n, c, classes, measure), best = INT64_MAX;
	*ret_at = 0;
	for (uint32_t g = 0; g < (r->gpus == 1 ? n->gpus : 1); g++) {
		bool seen = r->gpus == 1 && n->free[g] < r->gpu_milli;
		for (uint32_t k = 0; k < g && !seen; k++)
			seen = n->free[k] == n->free[g];
		if (seen)
			continue;
		struct frag_node after = *n;
		frag_take(&after, r, g);
		int64_t growth = (int64_t)frag_amount(&after, c, classes, measure) - before;
		if (growth < best) {
			best = growth;
			*ret_at = g;
		}
	}
	return best;
}
