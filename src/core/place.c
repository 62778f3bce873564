/* place.c - which nodes, CPUs and devices a request gets
 * Three steps: how many tasks fit on a node (fit_tasks), which nodes together are enough (place_choose: the first in order of
 * weight and index; one node rather than many), and which CPUs and devices on them (alloc_build). Nothing here changes state. */
#include <stdlib.h>

#include "core/state.h"

void avail_full(const struct core_node *n, struct avail *a)
{
	a->cpus = n->cpus;
	a->mem = n->mem;
	for (uint32_t g = 0; g < n->gres_n; g++)
		a->gres[g] = n->gres[g].count;
}

void avail_now(const struct core_node *n, struct avail *a)
{
	a->cpus = n->whole ? 0 : n->cpus - n->cpus_used;
	a->mem = n->mem > n->mem_used ? n->mem - n->mem_used : 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		a->gres[g] = n->gres[g].count - n->gres[g].used;
}

static bool geometry_fits(const struct shape *s, const struct core_node *n)
{
	return (!s->sockets || n->sockets >= s->sockets) && (!s->cores || n->cores_per_socket >= s->cores) &&
		(!s->threads || n->threads >= s->threads) && n->tmp >= s->tmp;
}

static uint32_t round_cores(const struct core *c, const struct core_node *n, uint32_t cpus)
{
	uint32_t t = c->params.select_cores ? n->threads : 1;
	return (cpus + t - 1) / t * t;
}

static uint32_t is_gpu(const struct core *c, const struct want *w) { return w->name == atom_find(c, "gpu"); }

/* CPUs and memory that `tasks` tasks and `gpus` GPUs need on a node. */
static uint32_t need_cpus(const struct core *c, const struct shape *s, const struct core_node *n, uint32_t tasks, uint32_t gpus)
{
	uint32_t cpus = s->overcommit ? 1 : tasks * s->cpus_per_task;
	if (c->params.one_task_per_core && !s->overcommit && cpus < tasks * n->threads)
		cpus = tasks * n->threads;
	if (gpus * s->cpus_per_gpu > cpus)
		cpus = gpus * s->cpus_per_gpu;
	if (s->min_cpus > cpus)
		cpus = s->min_cpus;
	return s->exclusive ? n->cpus : round_cores(c, n, cpus ? cpus : 1);
}

static uint64_t need_mem(const struct core *c, const struct shape *s, const struct core_node *n, uint32_t cpus, uint32_t gpus)
{
	if (s->mem_all)
		return n->mem;
	if (s->mem_per_gpu)
		return s->mem_per_gpu * gpus;
	return s->mem_cpu ? s->mem_cpu * cpus : s->mem_node;
}

static uint32_t gpus_fixed(const struct core *c, const struct shape *s)
{
	uint32_t gpus = 0;
	for (uint32_t i = 0; i < s->node.n; i++)
		gpus += is_gpu(c, &s->node.w[i]) ? (uint32_t)s->node.w[i].count : 0;
	for (uint32_t i = 0; i < s->socket.n; i++)
		gpus += is_gpu(c, &s->socket.w[i]) ? (uint32_t)s->socket.w[i].count * (s->sockets ? s->sockets : 1) : 0;
	return gpus;
}

static uint32_t gpus_of_tasks(const struct core *c, const struct shape *s, uint32_t tasks)
{
	uint32_t gpus = 0;
	for (uint32_t i = 0; i < s->task.n; i++)
		gpus += is_gpu(c, &s->task.w[i]) ? (uint32_t)s->task.w[i].count * tasks : 0;
	return gpus;
}

/* GPUs a node counts for where the request names them for the whole job. */
static uint32_t gpus_for_job(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a)
{
	uint32_t min = UINT32_MAX;
	for (uint32_t i = 0; i < s->job.n; i++) {
		uint32_t k = wants_free(n, a, &s->job.w[i]);
		if (is_gpu(c, &s->job.w[i]) && s->cpus_per_gpu && k > a->cpus / s->cpus_per_gpu)
			k = a->cpus / s->cpus_per_gpu;
		if (is_gpu(c, &s->job.w[i]) && s->mem_per_gpu && k > a->mem / s->mem_per_gpu)
			k = (uint32_t)(a->mem / s->mem_per_gpu);
		min = k < min ? k : min;
	}
	return min;
}

static bool tasks_fit(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a, uint32_t tasks)
{
	uint32_t gpus = gpus_fixed(c, s) + gpus_of_tasks(c, s, tasks), cpus = need_cpus(c, s, n, tasks, gpus);
	return cpus <= a->cpus && (!c->params.select_memory ? need_mem(c, s, n, cpus, gpus) <= n->mem : need_mem(c, s, n, cpus, gpus) <= a->mem);
}

uint32_t fit_tasks(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a)
{
	if (!geometry_fits(s, n) || !a->cpus || (s->exclusive && a->cpus < n->cpus))
		return 0;
	uint32_t max = s->overcommit ? s->tasks : a->cpus / s->cpus_per_task;
	for (uint32_t i = 0; i < s->node.n; i++)
		if (wants_free(n, a, &s->node.w[i]) < s->node.w[i].count)
			return 0;
	for (uint32_t i = 0; i < s->socket.n; i++)
		if (wants_free(n, a, &s->socket.w[i]) < s->socket.w[i].count * (s->sockets ? s->sockets : 1))
			return 0;
	for (uint32_t i = 0; i < s->task.n; i++) {
		uint32_t k = (uint32_t)(wants_free(n, a, &s->task.w[i]) / s->task.w[i].count);
		max = k < max ? k : max;
	}
	if (s->job.n && !gpus_for_job(c, s, n, a))
		return 0;
	if (s->per_node) {
		if (!s->tasks_set && max < s->per_node)
			return 0;
		max = max > s->per_node ? s->per_node : max;
	}
	if (s->per_socket && max > s->per_socket * n->sockets)
		max = s->per_socket * n->sockets;
	max = max > s->tasks ? s->tasks : max;
	if (max && tasks_fit(c, s, n, a, max))
		return max;
	uint32_t lo = 0, hi = max; /* the largest number that fits; what tasks need only grows */
	while (lo + 1 < hi) {
		uint32_t mid = (lo + hi) / 2;
		*(tasks_fit(c, s, n, a, mid) ? &lo : &hi) = mid;
	}
	return s->per_node && !s->tasks_set && lo < s->per_node ? 0 : lo;
}

static void add_gres(const struct core_node *n, const struct avail *a, struct fit *f, const struct want *w, uint64_t count)
{
	for (uint32_t g = 0; g < n->gres_n && count; g++) {
		uint32_t left = a->gres[g] - f->gres[g], take = left < count ? left : (uint32_t)count;
		if (!wants_match(w, &n->gres[g]))
			continue;
		f->gres[g] += take;
		count -= take;
	}
	assert(!count);
}

/* What a node gives: its share of tasks and of the job's own GRES. */
static void fit_take(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a, uint32_t tasks, const uint32_t *share, struct fit *f)
{
	uint32_t gpus = gpus_fixed(c, s) + gpus_of_tasks(c, s, tasks);
	f->node = n->index;
	f->tasks = tasks;
	for (uint32_t i = 0; i < s->node.n; i++)
		add_gres(n, a, f, &s->node.w[i], s->node.w[i].count);
	for (uint32_t i = 0; i < s->socket.n; i++)
		add_gres(n, a, f, &s->socket.w[i], s->socket.w[i].count * (s->sockets ? s->sockets : 1));
	for (uint32_t i = 0; i < s->task.n; i++)
		add_gres(n, a, f, &s->task.w[i], s->task.w[i].count * tasks);
	for (uint32_t i = 0; i < s->job.n; i++) {
		add_gres(n, a, f, &s->job.w[i], share[i]);
		gpus += is_gpu(c, &s->job.w[i]) ? share[i] : 0;
	}
	f->cpus = need_cpus(c, s, n, tasks ? tasks : 1, gpus);
	f->cpus = f->cpus > a->cpus ? a->cpus : f->cpus;
	f->mem = need_mem(c, s, n, f->cpus, gpus);
	for (uint32_t g = 0; s->exclusive && g < n->gres_n; g++)
		f->gres[g] = a->gres[g];
}

struct option { uint32_t node, tasks, gpus; };

static void avail_of(const struct core *c, const struct when *w, const struct core_node *n, struct avail *a)
{
	if (!w) {
		avail_full(n, a);
	} else if (w->start_ms) {
		avail_during(c, n, w, a);
	} else {
		avail_now(n, a);
		if (n->plan_n)
			avail_spare(c, w->j, n, a);
	}
}

/* Shares tasks and the job's GRES out: nodes in order are filled, one task at least for each that follows. */
static struct fit *share_out(struct core *c, const struct shape *s, const struct option *o, uint32_t n, const struct when *w)
{
	struct fit *f = xcalloc(n, sizeof *f);
	uint32_t tasks = s->tasks, left[WANT_MAX];
	for (uint32_t i = 0; i < s->job.n; i++)
		left[i] = (uint32_t)s->job.w[i].count;
	for (uint32_t k = 0; k < n; k++) {
		const struct core_node *node = c->node[o[k].node];
		uint32_t after = n - 1 - k, share[WANT_MAX], t = tasks > after ? tasks - after : (tasks ? 1 : 0);
		struct avail a;
		avail_of(c, w, node, &a);
		t = t > o[k].tasks ? o[k].tasks : t;
		for (uint32_t i = 0; i < s->job.n; i++) {
			uint32_t k2 = wants_free(node, &a, &s->job.w[i]);
			k2 = k2 > o[k].gpus ? o[k].gpus : k2;
			share[i] = left[i] > after ? left[i] - after : 0;
			share[i] = share[i] > k2 ? k2 : share[i];
			left[i] -= share[i];
		}
		tasks -= t;
		fit_take(c, s, node, &a, t, share, &f[k]);
	}
	return f;
}

struct pick { struct option *o; uint32_t n; uint64_t tasks, gpus; };

static uint32_t need_gpus(const struct shape *s)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->job.n; i++)
		n = s->job.w[i].count > n ? s->job.w[i].count : n;
	return (uint32_t)n;
}

static bool pick_enough(const struct shape *s, const struct pick *p)
{
	return p->n >= s->min_nodes && p->tasks >= s->tasks && p->gpus >= need_gpus(s);
}

static void pick_sum(struct pick *p)
{
	p->tasks = p->gpus = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		p->tasks += p->o[i].tasks;
		p->gpus += p->o[i].gpus;
	}
}

/* Too many nodes were needed in plain order: take the largest ones (stable). */
static bool pick_largest(const struct shape *s, struct pick *p)
{
	for (uint32_t i = 1; i < p->n; i++) {
		struct option o = p->o[i];
		uint32_t k = i;
		for (; k > 0 && (uint64_t)p->o[k - 1].tasks + p->o[k - 1].gpus < (uint64_t)o.tasks + o.gpus; k--)
			p->o[k] = p->o[k - 1];
		p->o[k] = o;
	}
	p->n = p->n > s->max_nodes ? s->max_nodes : p->n;
	pick_sum(p);
	return pick_enough(s, p);
}

static int by_node(const struct option *a, const struct option *b) { return a->node < b->node ? -1 : a->node > b->node; }

static void pick_order(struct pick *p)
{
	for (uint32_t i = 1; i < p->n; i++) {
		struct option o = p->o[i];
		uint32_t k = i;
		for (; k > 0 && by_node(&p->o[k - 1], &o) > 0; k--)
			p->o[k] = p->o[k - 1];
		p->o[k] = o;
	}
}

static bool option_of(struct core *c, const struct shape *s, uint32_t node, const struct when *w, struct option *ret)
{
	struct avail a;
	const struct core_node *n = c->node[node];
	avail_of(c, w, n, &a);
	uint32_t tasks = fit_tasks(c, s, n, &a);
	if (!tasks)
		return false;
	*ret = (struct option){ node, tasks, s->job.n ? gpus_for_job(c, s, n, &a) : 0 };
	return true;
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
		if (p->n == s->max_nodes) {
			memmove(p->o, p->o + 1, (p->n - 1) * sizeof *p->o);
			p->n--;
		}
		p->o[p->n++] = o;
		pick_sum(p);
		if (pick_enough(s, p))
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
	return p->n <= s->max_nodes && !alone && pick_enough(s, p);
}

static bool pick_plain(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct pick *p)
{
	bool alone = s->min_nodes == 1 && !s->required;
	if (s->required) {
		bitset_for(s->required, i)
			if (!bitset_has(cand, i) || (pick_add(c, s, i, w, p, false), p->n == 0 || p->o[p->n - 1].node != i))
				return false;
		if (pick_enough(s, p))
			return true;
	}
	for (uint32_t k = 0; k < c->node_n; k++) {
		if (!c->weight_order) {
			k = bitset_next(cand, k);
			if (k >= c->node_n)
				break;
		}
		uint32_t i = c->weight_order ? c->weight_order[k] : k;
		if (!bitset_has(cand, i) || (s->required && bitset_has(s->required, i)))
			continue;
		if (pick_add(c, s, i, w, p, alone))
			return true;
	}
	if (s->required)
		return false;
	if (alone) { /* no single node: the first ones that are enough */
		uint32_t all = p->n;
		for (p->n = 1; p->n <= all && p->n <= s->max_nodes; p->n++) {
			pick_sum(p);
			if (pick_enough(s, p))
				return true;
		}
		p->n = all;
	}
	return pick_largest(s, p);
}

uint32_t place_choose(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct fit **ret)
{
	if (bitset_count(cand) < s->min_nodes)
		return 0;
	struct pick p = { .o = xmalloc((bitset_count(cand) + 1) * sizeof *p.o) };
	bool ok = s->contiguous ? pick_contiguous(c, s, cand, w, &p) : pick_plain(c, s, cand, w, &p);
	c->tries++;
	if (ok) {
		pick_order(&p);
		*ret = share_out(c, s, p.o, p.n, w);
	}
	free(p.o);
	return ok ? p.n : 0;
}

/* The first `cpus` free CPUs, whole cores where cores are handed out. */
static void take_cpus(const struct core *c, const struct core_node *n, uint32_t cpus, uint64_t *words)
{
	uint32_t unit = c->params.select_cores ? n->threads : 1, got = 0;
	for (uint32_t i = 0; i + unit <= n->cpus && got < cpus; i += unit) {
		bool free_core = true;
		for (uint32_t k = i; k < i + unit; k++)
			free_core = free_core && !(n->used[k / 64] >> (k % 64) & 1);
		for (uint32_t k = i; free_core && k < i + unit; k++, got++)
			words[k / 64] |= 1ULL << (k % 64);
	}
	assert(got >= cpus);
}

static void take_devices(const struct core_node *n, const struct fit *f, uint64_t *words)
{
	const uint64_t *used = n->used + n->cpu_words;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		uint32_t left = n->gres[g].by_device ? f->gres[g] : 0;
		for (uint32_t i = n->gres[g].bit0; left && i < n->gres[g].bit0 + n->gres[g].count; i++)
			if (!(used[i / 64] >> (i % 64) & 1)) {
				words[i / 64] |= 1ULL << (i % 64);
				left--;
			}
		assert(!left);
	}
}

struct alloc *alloc_build(struct core *c, const struct shape *s, const struct fit *f, uint32_t n)
{
	struct alloc *a = xcalloc(1, sizeof *a + n * sizeof a->on[0]);
	a->n = n;
	a->exclusive = s->exclusive;
	for (uint32_t i = 0; i < n; i++) {
		const struct core_node *node = c->node[f[i].node];
		a->on[i] = (struct alloc_on){ .node = f[i].node, .cpus = f[i].cpus, .tasks = f[i].tasks, .mem = f[i].mem, .bits = a->words_n };
		a->words_n += node->cpu_words + node->dev_words + node->gres_n;
	}
	a->words = xcalloc(a->words_n + 1, sizeof *a->words);
	for (uint32_t i = 0; i < n; i++) {
		const struct core_node *node = c->node[f[i].node];
		uint64_t *w = a->words + a->on[i].bits;
		take_cpus(c, node, f[i].cpus, w);
		take_devices(node, &f[i], w + node->cpu_words);
		for (uint32_t g = 0; g < node->gres_n; g++)
			w[node->cpu_words + node->dev_words + g] = f[i].gres[g];
		a->on[i].cpus = f[i].cpus;
		a->cpus += f[i].cpus;
	}
	return a;
}

/* Starts now? The job's partitions in order of tier; the allocation is the caller's. */
struct alloc *place_now(struct core *c, struct core_job *j, struct core_part **ret_part)
{
	struct shape *s = j->shape;
	struct when now = { .j = j };
	shape_refresh(c, s);
	for (uint32_t p = 0; p < s->part_n; p++) {
		struct fit *f;
		if (!s->part[p] || !s->able[p] || !(s->part_mask & 1u << p) || (s->part[p]->state != PART_UP && s->part[p]->state != PART_DRAIN))
			continue;
		bitset_assign(c->scratch, s->able[p]);
		bitset_and(c->scratch, c->up);
		bitset_and(c->scratch, s->exclusive ? c->idle : c->roomy);
		uint32_t n = place_choose(c, s, c->scratch, &now, &f);
		if (!n)
			continue;
		struct alloc *a = alloc_build(c, s, f, n);
		free(f);
		*ret_part = s->part[p];
		return a;
	}
	return NULL;
}
