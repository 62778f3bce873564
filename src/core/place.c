/* place.c - which nodes, CPUs and devices a request gets
 * Three steps: how many tasks fit on a node (fit_tasks), which nodes together are enough (choose.c), and which CPUs and devices on
 * them (alloc_build, inside.c). Nothing here changes state. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/arbitrary.h"
#include "core/reserve.h"

void avail_full(const struct core_node *n, struct avail *a)
{
	a->cpus = n->cap;
	a->mine = 0;
	a->mem = n->mem;
	a->used = NULL;
	for (uint32_t g = 0; g < n->gres_n; g++)
		a->gres[g] = n->gres[g].count;
}

void avail_now(const struct core_node *n, struct avail *a)
{
	a->cpus = n->whole ? 0 : n->cap - n->cpus_used;
	a->mine = 0;
	a->mem = n->mem > n->mem_used ? n->mem - n->mem_used : 0;
	a->used = n->used;
	for (uint32_t g = 0; g < n->gres_n; g++)
		a->gres[g] = n->gres[g].count - n->gres[g].used;
	if (n->shards)
		shards_now(n, a);
}

static bool geometry_fits(const struct shape *s, const struct core_node *n)
{
	return (!s->sockets || n->sockets >= s->sockets) && (!s->cores || n->cores_per_socket >= s->cores) &&
		(!s->threads || n->threads >= s->threads) && n->tmp >= s->tmp && inside_cap(s, n) >= s->min_cpus;
}

/* Whole units; a socket of which the system keeps some gives the rest. */
static uint32_t round_unit(const struct core *c, const struct core_node *n, uint32_t cpus)
{
	uint32_t unit = inside_unit(c, n), whole = (cpus + unit - 1) / unit * unit;
	return whole > n->cap && cpus <= n->cap ? n->cap : whole;
}

static bool is_gpu(const struct core *c, const struct want *w) { return w->name == c->gpu; }

/* CPUs and memory that `tasks` tasks and `gpus` GPUs need on a node. */
static uint32_t need_cpus(const struct core *c, const struct shape *s, const struct core_node *n, uint32_t tasks, uint32_t gpus)
{
	uint32_t cpus = s->overcommit ? 1 : tasks * s->cpus_per_task, per = s->per_core ? s->per_core : c->params.one_task_per_core;
	if (gpus * s->cpus_per_gpu > cpus)
		cpus = gpus * s->cpus_per_gpu;
	if (!s->tasks_set && !s->per_node && !s->overcommit && cpus < s->min_cpus) /* who counts tasks only chooses nodes by --mincpus */
		cpus = s->min_cpus;
	if (s->threads && s->threads < n->threads) /* so many of each core are used, whole cores are taken */
		cpus = (cpus + s->threads - 1) / s->threads * n->threads;
	if (per && !s->overcommit && cpus < (tasks + per - 1) / per * n->threads)
		cpus = (tasks + per - 1) / per * n->threads;
	return s->exclusive ? inside_cap(s, n) : round_unit(c, n, cpus ? cpus : 1);
}

static uint64_t need_mem(const struct core *c, const struct shape *s, const struct core_node *n, uint32_t cpus, uint32_t gpus)
{
	if (s->mem_all)
		return n->mem;
	if (s->mem_per_gpu)
		return s->mem_per_gpu * gpus;
	if (s->threads && s->threads < n->threads && !s->exclusive)
		cpus = cpus / n->threads * s->threads;
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

/* Devices of that kind asked for on each node anyway: the tasks' are among them. 0: none. */
static uint32_t fixed_of(const struct shape *s, uint32_t name)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->node.n; i++)
		n += s->node.w[i].name == name ? s->node.w[i].count : 0;
	for (uint32_t i = 0; i < s->socket.n; i++)
		n += s->socket.w[i].name == name ? s->socket.w[i].count * (s->sockets ? s->sockets : 1) : 0;
	return (uint32_t)n;
}

static uint32_t gpus_of_tasks(const struct core *c, const struct shape *s, uint32_t tasks)
{
	uint32_t gpus = 0;
	for (uint32_t i = 0; i < s->task.n; i++)
		gpus += is_gpu(c, &s->task.w[i]) && !fixed_of(s, s->task.w[i].name) ? (uint32_t)s->task.w[i].count * tasks : 0;
	return gpus;
}

/* GPUs a node counts for where the request names them for the whole job. */
uint32_t gpus_for_job(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a)
{
	uint32_t min = UINT32_MAX;
	for (uint32_t i = 0; i < s->job.n; i++) {
		uint32_t k = wants_free(c, n, a, &s->job.w[i]);
		if (is_gpu(c, &s->job.w[i]) && s->cpus_per_gpu && k > a->cpus / s->cpus_per_gpu)
			k = a->cpus / s->cpus_per_gpu;
		if (is_gpu(c, &s->job.w[i]) && s->mem_per_gpu && k > a->mem / s->mem_per_gpu)
			k = (uint32_t)(a->mem / s->mem_per_gpu);
		min = k < min ? k : min;
	}
	return min;
}

/* --gres-flags=enforce-binding: are there CPUs enough near the devices that would be taken? */
static bool near_enough(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a, uint32_t tasks, uint32_t cpus)
{
	struct fit f = { .node = n->index, .cpus = cpus };
	for (uint32_t i = 0; i < s->node.n; i++)
		inside_gres(c, n, a, &f, &s->node.w[i], s->node.w[i].count, 0);
	for (uint32_t i = 0; i < s->task.n; i++)
		if (!fixed_of(s, s->task.w[i].name))
			inside_gres(c, n, a, &f, &s->task.w[i], s->task.w[i].count * tasks, 0);
	return cpus <= inside_near(c, n, a, &f);
}

static bool tasks_fit(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a, uint32_t tasks)
{
	uint32_t gpus = gpus_fixed(c, s) + gpus_of_tasks(c, s, tasks), cpus = need_cpus(c, s, n, tasks, gpus);
	return cpus <= a->cpus && (!c->params.select_memory ? need_mem(c, s, n, cpus, gpus) <= n->mem : need_mem(c, s, n, cpus, gpus) <= a->mem) &&
		(!s->bind || near_enough(c, s, n, a, tasks, cpus));
}

/* --core-spec: a node that is all free, with the CPUs that the job itself leaves to the system. */
static const struct avail *avail_spec(const struct shape *s, const struct core_node *n, const struct avail *a, struct avail *own)
{
	if (!s->own_spec)
		return a;
	*own = *a;
	own->cpus = a->cpus < n->cap ? 0 : inside_cap(s, n);
	return own;
}

uint32_t fit_tasks(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a)
{
	struct avail own;
	a = avail_spec(s, n, a, &own);
	if (!geometry_fits(s, n) || !a->cpus || (s->exclusive && a->cpus < inside_cap(s, n)))
		return 0;
	uint32_t max = s->overcommit ? s->tasks : a->cpus / s->cpus_per_task;
	for (uint32_t i = 0; i < s->node.n; i++)
		if (wants_free(c, n, a, &s->node.w[i]) < s->node.w[i].count)
			return 0;
	for (uint32_t i = 0; i < s->socket.n; i++)
		if (inside_sockets_with(n, a, &s->socket.w[i]) < (s->sockets ? s->sockets : 1))
			return 0;
	for (uint32_t i = 0; i < s->task.n; i++) {
		uint32_t fixed = fixed_of(s, s->task.w[i].name), k = (uint32_t)((fixed ? fixed : wants_free(c, n, a, &s->task.w[i])) / s->task.w[i].count);
		max = k < max ? k : max;
	}
	if (s->job.n && !gpus_for_job(c, s, n, a))
		return 0;
	if (s->per_node) {
		if (!s->tasks_set && max < s->per_node)
			return 0;
		max = max > s->per_node ? s->per_node : max;
	}
	if (s->per_socket && !s->exclusive) {
		uint32_t k = inside_socket_tasks(c, s, n, a);
		max = k < max ? k : max;
	} else if (s->per_socket && max > s->per_socket * n->sockets)
		max = s->per_socket * n->sockets;
	if (s->arbitrary && max > arbitrary_tasks(s, n->index))
		max = arbitrary_tasks(s, n->index);
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

/* Does it get shards of GPUs of entry g? */
static bool shares_gpus(const struct core_node *n, const struct fit *f, uint32_t g)
{
	for (uint32_t i = 0; n->shards && i < n->gres_n; i++)
		if (n->gres[i].shard && n->gres[i].whole == g && f->gres[i])
			return true;
	return false;
}

/* What a node gives: its share of tasks and of the job's own GRES. */
void fit_take(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a, uint32_t tasks, const uint32_t *share, struct fit *f)
{
	struct avail own;
	uint32_t gpus = gpus_fixed(c, s) + gpus_of_tasks(c, s, tasks);
	a = avail_spec(s, n, a, &own);
	f->node = n->index;
	f->tasks = tasks;
	f->cpus = need_cpus(c, s, n, tasks ? tasks : 1, gpus);
	for (uint32_t i = 0; i < s->node.n; i++)
		inside_gres(c, n, a, f, &s->node.w[i], s->node.w[i].count, 0);
	for (uint32_t i = 0; i < s->socket.n; i++)
		inside_gres(c, n, a, f, &s->socket.w[i], s->socket.w[i].count, s->sockets ? s->sockets : 1);
	for (uint32_t i = 0; i < s->task.n; i++)
		if (!fixed_of(s, s->task.w[i].name))
			inside_gres(c, n, a, f, &s->task.w[i], s->task.w[i].count * tasks, 0);
	for (uint32_t i = 0; i < s->job.n; i++) {
		inside_gres(c, n, a, f, &s->job.w[i], share[i], 0);
		gpus += is_gpu(c, &s->job.w[i]) ? share[i] : 0;
	}
	f->cpus = need_cpus(c, s, n, tasks ? tasks : 1, gpus);
	f->cpus = f->cpus > a->cpus ? a->cpus : f->cpus;
	f->mem = need_mem(c, s, n, f->cpus, gpus);
	for (uint32_t g = 0; s->exclusive && g < n->gres_n; g++)
		if (!n->gres[g].shard) /* GPUs are held whole, unless it asked for shards */
			f->gres[g] = shares_gpus(n, f, g) ? 0 : a->gres[g];
}

void avail_of(struct core *c, const struct shape *s, const struct when *w, struct core_node *n, struct avail *a)
{
	const struct core_part *p = w->part;
	bool limited = p && (p->max_node_cpus != UINT32_MAX || p->max_socket_cpus != UINT32_MAX);
	if (!w->j || w->empty)
		avail_full(n, a);
	else if (w->start_ms)
		avail_during(c, n, w, a);
	else
		avail_now(n, a);
	if (w->j && !w->start_ms && p && p->share_max > 1 && part_shares(s, p))
		a->cpus = inside_shared(n, p);
	if (w->j && (n->owners || n->plan_picky || company_picky(s, p)) && !w->empty && company_bad(c, s, w, n))
		a->cpus = 0;
	if (w->j && (c->topo_only || topology_alone(s, p)) && topology_taken(c, s, w, n))
		a->cpus = 0;
	if (limited && !s->exclusive)
		a->cpus = inside_limit(c, n, p, a);
	if (w->j && (n->resv_n || w->in))
		resv_less(c, n, w, a);
}

struct alloc *alloc_build(struct core *c, const struct shape *s, const struct core_part *p, const struct fit *f, uint32_t n, const struct when *when)
{
	struct alloc *a = xcalloc(1, sizeof *a + n * sizeof a->on[0]);
	a->n = n;
	a->exclusive = s->exclusive;
	a->own_spec = s->own_spec;
	a->mcs = s->mcs;
	a->user_only = s->user_only || (p && p->user_only);
	a->topo_only = topology_alone(s, p);
	a->share = part_shares(s, p);
	a->resv_id = when->in ? when->in->id : 0;
	a->config_gen = c->config_gen;
	for (uint32_t i = 0; i < n; i++) {
		const struct core_node *node = c->node[f[i].node];
		a->on[i] = (struct alloc_on){ .node = f[i].node, .cpus = f[i].cpus, .tasks = f[i].tasks, .mem = f[i].mem, .bits = a->words_n };
		a->words_n += node->cpu_words + node->dev_words + node->gres_n;
	}
	a->words = xcalloc(a->words_n + 1, sizeof *a->words);
	for (uint32_t i = 0; i < n; i++) {
		const struct core_node *node = c->node[f[i].node];
		uint64_t *w = a->words + a->on[i].bits;
		uint64_t *own = node->resv_n || node->shards ? xmalloc((node->cpu_words + node->dev_words + 1) * sizeof *own) : NULL;
		if (own) {
			resv_used(c, node, when, own);
			shards_busy(node, NULL, own);
		}
		inside_take(c, s, p, node, &f[i], own ? own : node->used, w);
		free(own);
		for (uint32_t g = 0; g < node->gres_n; g++)
			w[node->cpu_words + node->dev_words + g] = f[i].gres[g];
		a->on[i].cpus = f[i].cpus;
		a->cpus += f[i].cpus;
	}
	return a;
}

/* In this reservation (or in none), and partition `at` of its own; NULL: no room. */
struct alloc *place_part(struct core *c, struct core_job *j, uint32_t minutes, const struct resv *in, uint32_t at)
{
	struct shape *s = j->shape;
	struct core_part *p = s->part[at];
	struct fit *f;
	if (!p || !s->able[at] || !(s->part_mask & 1u << at) || (p->state != PART_UP && p->state != PART_DRAIN) || !acct_part_open(c, j, p))
		return NULL;
	bitset_assign(c->scratch, s->able[at]);
	bitset_and(c->scratch, c->up);
	if (!part_shares(s, p))
		bitset_and(c->scratch, s->exclusive ? c->idle : c->roomy);
	resv_candidates(c, in, c->scratch);
	struct when now = { .j = j, .end_ms = c->now_ms + length_ms(minutes), .part = p, .in = in };
	uint32_t n = place_choose(c, s, c->scratch, &now, &f);
	if (!n && s->switches && !j->switch_ms && p->topo) {
		now.any_switches = true;
		if (place_choose(c, s, c->scratch, &now, &f)) {
			free(f);
			topology_wait(c, j);
		}
	}
	if (!n)
		return NULL;
	struct alloc *a = alloc_build(c, s, p, f, n, &now);
	free(f);
	return a;
}

/* The job's partitions in order of tier. */
static struct alloc *place_in(struct core *c, struct core_job *j, uint32_t minutes, const struct resv *in, struct core_part **ret_part)
{
	for (uint32_t p = 0; p < j->shape->part_n; p++) {
		struct alloc *a = place_part(c, j, minutes, in, p);
		if (a) {
			*ret_part = j->shape->part[p];
			return a;
		}
	}
	return NULL;
}

/* The first reservation that lets it start, and has room; the allocation is the caller's. */
struct alloc *place_one(struct core *c, struct core_job *j, uint32_t minutes, struct core_part **ret_part)
{
	struct resv *in[RESV_USE_MAX + 1];
	shape_refresh(c, j->shape);
	if (!license_room(c, j, &j->shape->lic))
		return NULL;
	uint32_t n = resv_choices(c, j->shape, in);
	for (uint32_t i = 0; i < n; i++) {
		struct alloc *a = !in[i] || resv_open(c, in[i]) ? place_in(c, j, minutes, in[i], ret_part) : NULL;
		if (a)
			return a;
	}
	return NULL;
}

void alloc_free(struct alloc *a)
{
	if (a)
		free(a->words);
	free(a);
}

struct alloc *place_now(struct core *c, struct core_job *j, uint32_t minutes, struct core_part **ret_part)
{
	return het_leads(j) ? het_place(c, j, ret_part) : place_one(c, j, minutes, ret_part);
}
