/* share.c - GPU sharing: tasks of openb arrive one by one and stay; how much of the GPUs gets used under each way of placing them
 * Tasks of the file, then tasks drawn from it (uniformly, with replacement) until the next would pass the offered load; in random order; one that
 * fits nowhere is skipped. The figure is the share of GPU capacity allocated in the end, mean of some seeds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/fragment.h"
#include "sim/run.h"

enum { SCORES_MAX = 1024 };
struct cached { int64_t score; uint32_t version; uint8_t at; bool fits; };
struct bench {
	const struct openb *o;
	struct frag_class *kind;          /* distinct tasks; weight: how many of them the file has */
	uint32_t kinds, *kind_of;         /* of each task */
	struct frag_node *node, *whole;   /* as it is, as it was */
	uint32_t *version;
	struct cached *cache;             /* kinds x nodes */
	uint64_t random;
};
struct share_result { double share; uint32_t placed; };
/* Lower is better; *at: the GPU. */
typedef int64_t (*score_fn)(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at);

static uint32_t draw(struct bench *b, uint32_t below)
{
	b->random += 0x9e3779b97f4a7c15ull;
	uint64_t x = b->random;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((x ^ x >> 31) >> 16) % below;
}

/* --- ways to place ------------------------------------------------------------------------------- */

/* The GPU with least free that holds it. */
static uint32_t tightest(const struct frag_node *n, const struct frag_class *r)
{
	uint32_t best = 0, least = UINT32_MAX;
	for (uint32_t g = 0; g < n->gpus; g++)
		if (n->free[g] >= r->gpu_milli && n->free[g] < least) {
			least = n->free[g];
			best = g;
		}
	return best;
}

static uint32_t gpu_free(const struct frag_node *n)
{
	uint32_t all = 0;
	for (uint32_t g = 0; g < n->gpus; g++)
		all += n->free[g];
	return all;
}

static int64_t by_chance(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at)
{
	*at = tightest(&b->node[node], r);
	return draw(b, 1u << 30);
}

/* Least is left of everything together, each in proportion to the largest node. */
static int64_t by_best_fit(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at)
{
	const struct frag_node *n = &b->node[node];
	*at = tightest(n, r);
	return (int64_t)(n->cpu_milli - r->cpu_milli) * 1000 / 128000 + (int64_t)(n->mem_mb - r->mem_mb) * 1000 / 1048576 +
		((int64_t)gpu_free(n) - (int64_t)r->gpus * r->gpu_milli) * 1000 / 8000;
}

/* The smaller the better of the product of what is asked and what is free. */
static int64_t by_dot_product(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at)
{
	const struct frag_node *n = &b->node[node], *w = &b->whole[node];
	*at = tightest(n, r);
	int64_t gpu = w->gpus ? (int64_t)gpu_free(n) * r->gpus * r->gpu_milli / w->gpus / w->gpus : 0;
	return gpu + (int64_t)n->cpu_milli * 1000 / w->cpu_milli * (r->cpu_milli * 1000ll / w->cpu_milli) + (int64_t)n->mem_mb * 1000 / w->mem_mb * (r->mem_mb * 1000ll / w->mem_mb);
}

/* Shared GPUs in use first, then idle GPUs of nodes in use, then idle nodes. */
static int64_t by_packing(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at)
{
	const struct frag_node *n = &b->node[node], *w = &b->whole[node];
	*at = tightest(n, r);
	bool shared = r->gpus == 1 && n->free[*at] < 1000, used = gpu_free(n) < w->gpus * 1000 || n->cpu_milli < w->cpu_milli;
	return (shared ? 0 : used ? 1 : 2) * 100000ll + gpu_free(n) + (shared ? n->free[*at] : 0);
}

/* Like to like: nodes that already hold a task that asks for as much GPU. */
static int64_t by_clustering(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at)
{
	const struct frag_node *n = &b->node[node];
	bool like = false;
	*at = tightest(n, r);
	for (uint32_t g = 0; g < n->gpus && r->gpus; g++)
		like = like || (n->free[g] < 1000 && (1000u - n->free[g]) % r->gpu_milli == 0);
	return (like ? 0 : 1) * 100000ll + gpu_free(n);
}

static int64_t by_gradient(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at)
{
	return frag_growth(&b->node[node], r, b->kind, b->kinds, FRAG_FIT, at);
}

/* Of equals the fuller node. */
static int64_t by_fragments(struct bench *b, uint32_t node, const struct frag_class *r, uint32_t *at)
{
	return frag_growth(&b->node[node], r, b->kind, b->kinds, FRAG_TASKS, at) * 16384 + gpu_free(&b->node[node]);
}

static const struct { const char *name; score_fn fn; bool fresh; const char *what; } ways[] = {
	{ "random", by_chance, true, "anywhere" }, { "dotprod", by_dot_product, false, "least product of demand and what is free" },
	{ "clustering", by_clustering, false, "like to like" }, { "packing", by_packing, false, "shared GPUs in use, then nodes in use" },
	{ "bestfit", by_best_fit, false, "least left over" }, { "fgd", by_gradient, false, "least growth of fragments, as published" },
	{ "fragment", by_fragments, false, "the same, counting how many tasks fit: Berth's" },
};
#define WAYS (sizeof ways / sizeof ways[0])

/* --- one order of arrival ------------------------------------------------------------------------ */

static bool place(struct bench *b, uint32_t kind, score_fn fn, bool fresh)
{
	const struct frag_class *r = &b->kind[kind];
	struct cached *row = b->cache + (size_t)kind * b->o->nodes, *best = NULL;
	for (uint32_t i = 0; i < b->o->nodes; i++) {
		struct cached *e = &row[i];
		if (e->version != b->version[i] || fresh) {
			uint32_t at = 0;
			e->version = b->version[i];
			e->fits = frag_fits(&b->node[i], r);
			e->score = e->fits ? fn(b, i, r, &at) : 0;
			e->at = (uint8_t)at;
		}
		if (e->fits && (!best || e->score < best->score))
			best = e;
	}
	if (!best)
		return false;
	uint32_t at = (uint32_t)(best - row);
	frag_take(&b->node[at], r, best->at);
	b->version[at]++;
	return true;
}

static uint32_t *arrivals(struct bench *b, double load, uint64_t capacity, uint32_t *ret_n)
{
	size_t cap = b->o->tasks * 2 + 1000;
	uint32_t *list = xmalloc(cap * sizeof *list), n = 0;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < b->o->tasks; i++) {
		list[n++] = i;
		sum += (uint64_t)b->o->task[i].gpus * b->o->task[i].gpu_milli;
	}
	for (;;) {
		uint32_t i = draw(b, (uint32_t)b->o->tasks);
		uint64_t more = (uint64_t)b->o->task[i].gpus * b->o->task[i].gpu_milli;
		if ((double)(sum + more) > load * (double)capacity || n == cap)
			break;
		sum += more;
		list[n++] = i;
	}
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = draw(b, i), t = list[i - 1];
		list[i - 1] = list[k];
		list[k] = t;
	}
	*ret_n = n;
	return list;
}

static struct share_result one_seed(struct bench *b, const struct share_setup *s, size_t way, uint32_t seed)
{
	struct share_result res = { 0 };
	uint64_t capacity = 0, used = 0;
	uint32_t n;
	b->random = seed * 1000003ull;
	memcpy(b->node, b->whole, b->o->nodes * sizeof *b->node);
	for (uint32_t i = 0; i < b->o->nodes; i++) {
		capacity += b->node[i].gpus * 1000ull;
		b->version[i]++;
	}
	uint32_t *list = arrivals(b, s->load, capacity, &n);
	for (uint32_t i = 0; i < n; i++)
		if (place(b, b->kind_of[list[i]], ways[way].fn, ways[way].fresh)) {
			used += (uint64_t)b->o->task[list[i]].gpus * b->o->task[list[i]].gpu_milli;
			res.placed++;
		}
	free(list);
	res.share = (double)used / (double)capacity;
	return res;
}

static bool same(const struct frag_class *a, const struct openb_task *t)
{
	return a->cpu_milli == t->cpu_milli && a->mem_mb == t->mem_mb && a->gpus == t->gpus && a->gpu_milli == t->gpu_milli && a->models == t->models;
}

static void bench_make(struct bench *b, const struct openb *o)
{
	*b = (struct bench){ .o = o };
	b->kind = xcalloc(o->tasks + 1, sizeof *b->kind);
	b->kind_of = xcalloc(o->tasks + 1, sizeof *b->kind_of);
	for (uint32_t i = 0; i < o->tasks; i++) {
		uint32_t k = 0;
		while (k < b->kinds && !same(&b->kind[k], &o->task[i]))
			k++;
		const struct openb_task *t = &o->task[i];
		if (k == b->kinds)
			b->kind[b->kinds++] = (struct frag_class){ t->cpu_milli, t->mem_mb, t->gpus, t->gpu_milli, 0, t->models };
		b->kind[k].weight++;
		b->kind_of[i] = k;
	}
	b->node = xcalloc(o->nodes, sizeof *b->node);
	b->whole = xcalloc(o->nodes, sizeof *b->whole);
	b->version = xcalloc(o->nodes, sizeof *b->version);
	b->cache = xcalloc((size_t)b->kinds * o->nodes, sizeof *b->cache);
	for (uint32_t i = 0; i < o->nodes; i++) {
		b->whole[i] = (struct frag_node){ .cpu_milli = o->node[i].cpu_milli, .mem_mb = o->node[i].mem_mb, .gpus = o->node[i].gpus, .model = o->node[i].model };
		for (uint32_t g = 0; g < o->node[i].gpus; g++)
			b->whole[i].free[g] = 1000;
	}
}

static void bench_free(struct bench *b)
{
	void *mem[] = { b->kind, b->kind_of, b->node, b->whole, b->version, b->cache };
	for (size_t i = 0; i < sizeof mem / sizeof mem[0]; i++)
		free(mem[i]);
}

static int run_ways(const struct share_setup *s, const struct openb *o, struct error *err)
{
	struct bench b;
	bool any = false;
	bench_make(&b, o);
	if (!s->summary)
		printf("%zu tasks of %u kinds on %zu nodes, offered load %.0f %%, mean of %u orders of arrival\n\n%-12s %10s %10s %10s %8s  %s\n", o->tasks, b.kinds, o->nodes,
			s->load * 100, s->seeds, "PLACEMENT", "ALLOCATED", "LEAST", "MOST", "TASKS", "");
	for (size_t w = 0; w < WAYS; w++) {
		double sum = 0, least = 1, most = 0, placed = 0;
		if (strcmp(s->placement, "all") && strcmp(s->placement, ways[w].name))
			continue;
		any = true;
		for (uint32_t i = 0; i < s->seeds; i++) {
			struct share_result r = one_seed(&b, s, w, s->first_seed + i);
			sum += r.share;
			placed += r.placed;
			least = r.share < least ? r.share : least;
			most = r.share > most ? r.share : most;
		}
		if (s->summary)
			printf("allocated_%s %.3f %%\n", ways[w].name, sum / s->seeds * 100);
		else
			printf("%-12s %8.2f %% %8.2f %% %8.2f %% %8.0f  %s\n", ways[w].name, sum / s->seeds * 100, least * 100, most * 100, placed / s->seeds, ways[w].what);
		fflush(stdout);
	}
	bench_free(&b);
	return any ? 0 : error_set(err, EINVAL, "--placement %s: not one of all, random, dotprod, clustering, packing, bestfit, fgd, fragment", s->placement);
}

int share_run(const struct share_setup *s, struct error *err)
{
	struct openb o;
	char *nodes = s->nodes ? xstrdup(s->nodes) : NULL;
	if (!nodes) {
		const char *base = strrchr(s->pods, '/');
		int dir = base ? (int)(base - s->pods) + 1 : 0;
		nodes = xasprintf("%.*sopenb_node_list_gpu_node.csv", dir, s->pods);
		if (access(nodes, R_OK)) {
			free(nodes);
			nodes = xasprintf("%.*sopenb_node_list_gpu_node.csv.gz", dir, s->pods);
		}
	}
	int rc = openb_read(nodes, s->pods, &o, err);
	free(nodes);
	if (rc < 0)
		return rc;
	rc = run_ways(s, &o, err);
	openb_fini(&o);
	return rc;
}
