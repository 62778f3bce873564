/* node.c - one node: its capacity, what is held on it, and the sets it is a member of
 * Invariants: `used` is the union of what its held entries say, the counters are their sums; up, roomy and idle follow from
 * the node alone (node_refresh), so that nothing else ever writes them. */
#include <stdlib.h>

#include "core/reserve.h"
#include "model/idset.h"

/* "0-15" of cores -> bits of CPUs. */
static uint64_t *near_cpus(const struct core_node *n, const char *cores)
{
	struct bitset *b = NULL;
	uint64_t *w;
	if (!cores || !cores[0] || idset_parse(cores, n->sockets * n->cores_per_socket, &b, NULL) < 0)
		return NULL;
	w = xcalloc((n->cpus + 63) / 64, sizeof *w);
	bitset_for(b, i)
		for (uint32_t k = i * n->threads; k < (i + 1) * n->threads; k++)
			w[k / 64] |= 1ULL << (k % 64);
	bitset_destroy(b);
	return w;
}

/* Links=-1,16,16,16 of a line with one device. */
static void links_load(struct node_gres *e, const char *links)
{
	char *copy = xstrdup(links ? links : ""), *at = copy, *w;
	if (e->count == 1)
		while ((w = str_next(&at, ",")) && w[0] && e->links_n < 256) {
			e->links = xrealloc(e->links, (e->links_n + 1) * sizeof *e->links);
			e->links[e->links_n++] = (int16_t)strtol(w, NULL, 10);
		}
	free(copy);
}

static void gres_add(struct core *c, struct core_node *n, const char *name, const char *type, uint64_t count, const Pb__NodeGres *g)
{
	n->gres = xrealloc(n->gres, (n->gres_n + 1) * sizeof *n->gres);
	struct node_gres *e = &n->gres[n->gres_n];
	uint32_t before = 0, first = 0;
	for (uint32_t i = 0; i < n->gres_n; i++) {
		before += n->gres[i].by_device ? n->gres[i].count : 0;
		first += n->gres[i].name == atom_get(c, name) ? n->gres[i].count : 0;
	}
	*e = (struct node_gres){ .name = atom_get(c, name), .type = type ? atom_get(c, type) : 0, .count = (uint32_t)count };
	e->shard = g && g->has_of_gpu;
	e->gpu = e->shard ? g->of_gpu : 0;
	e->of = UINT32_MAX;
	e->by_device = count <= 4096 && !(g && g->count_only) && !e->shard;
	e->no_index = !(g && (g->files || g->detected));
	e->bit0 = before;
	e->first_index = g && g->has_first_index ? g->first_index : first;
	e->cores = near_cpus(n, g ? g->cores : NULL);
	links_load(e, g ? g->links : NULL);
	n->gres_n++;
}

static void gres_clear(struct core_node *n)
{
	for (uint32_t i = 0; i < n->gres_n; i++) {
		free(n->gres[i].cores);
		free(n->gres[i].links);
	}
	n->gres_n = 0;
}

static void spec_cpu(struct core_node *n, uint32_t cpu) { n->spec[cpu / 64] |= 1ULL << (cpu % 64); }

/* The last core of each socket in turn, from the last socket down. */
void node_spec_cores(const struct core_node *n, uint32_t cores, uint64_t *words)
{
	for (uint32_t i = 0; i < cores && i < n->sockets * n->cores_per_socket; i++) {
		uint32_t socket = n->sockets - 1 - i % n->sockets, core = (socket + 1) * n->cores_per_socket - 1 - i / n->sockets;
		for (uint32_t k = core * n->threads; k < (core + 1) * n->threads; k++)
			words[k / 64] |= 1ULL << (k % 64);
	}
}

/* CoreSpecCount; CpuSpecList: those CPUs (whole cores). */
static void spec_load(struct core_node *n, const Pb__NodeRecord *rec)
{
	struct bitset *b = NULL;
	free(n->spec);
	n->spec = xcalloc(n->cpu_words, sizeof *n->spec);
	if (rec->cpu_spec_list && rec->cpu_spec_list[0] && idset_parse(rec->cpu_spec_list, n->cpus, &b, NULL) >= 0) {
		bitset_for(b, i)
			for (uint32_t k = i / n->threads * n->threads; k < (i / n->threads + 1) * n->threads; k++)
				spec_cpu(n, k);
		bitset_destroy(b);
	} else
		node_spec_cores(n, rec->core_spec_count, n->spec);
	n->cap = n->cpus;
	for (uint32_t i = 0; i < n->cpus; i++)
		n->cap -= bit_of(n->spec, i);
}

void node_spare_used(struct core_node *n, const uint64_t *words)
{
	for (uint32_t i = 0; i < n->cpu_words; i++) {
		for (uint64_t x = n->spec[i] & words[i]; x; x &= x - 1)
			n->cap++;
		n->spec[i] &= ~words[i];
	}
}

static void gres_load(struct core *c, struct core_node *n, const Pb__NodeRecord *rec)
{
	struct gres_req r[GRES_REQ_MAX];
	size_t count = 0;
	gres_clear(n);
	for (size_t i = 0; i < rec->n_gres_list && n->gres_n < GRES_MAX; i++)
		gres_add(c, n, rec->gres_list[i]->name, rec->gres_list[i]->type, rec->gres_list[i]->count, rec->gres_list[i]);
	shards_link(c, n);
	if (rec->n_gres_list || !rec->gres || gres_parse(rec->gres, r, GRES_REQ_MAX, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count && n->gres_n < GRES_MAX; i++)
		gres_add(c, n, r[i].name, r[i].type, r[i].count, NULL);
}

void node_gres_detected(const struct core *c, struct core_node *n, const Pb__NodeRecord *seen)
{
	for (size_t i = 0; i < n->rec->n_gres_list && i < n->gres_n && n->rec->n_gres_list == seen->n_gres_list; i++) {
		Pb__NodeGres *to = n->rec->gres_list[i];
		const Pb__NodeGres *from = seen->gres_list[i];
		struct node_gres *e = &n->gres[i];
		if (!to->detected || strcmp(to->name, from->name) || to->first_index != from->first_index)
			continue;
		xstr_set(&to->files, from->files);
		xstr_set(&to->cores, from->cores);
		xstr_set(&to->links, from->links);
		free(e->cores);
		free(e->links);
		e->links = NULL;
		e->links_n = 0;
		e->cores = near_cpus(n, to->cores);
		links_load(e, to->links);
	}
	shards_link(c, n);
}

void node_setup(struct core *c, struct core_node *n, const Pb__NodeRecord *rec)
{
	size_t len = pb__node_record__get_packed_size(rec);
	uint8_t *buf = xmalloc(len);
	pb__node_record__pack(rec, buf);
	if (n->rec)
		pb__node_record__free_unpacked(n->rec, NULL);
	n->rec = pb__node_record__unpack(NULL, len, buf);
	free(buf);
	xstr_set(&n->name, rec->name);
	xstr_set(&n->addr, rec->addr ? rec->addr : rec->name);
	xstr_set(&n->hostname, rec->hostname ? rec->hostname : rec->name);
	n->port = (uint16_t)(rec->has_port ? rec->port : 6818);
	n->cpus = rec->has_cpus && rec->cpus ? rec->cpus : 1;
	n->threads = rec->has_threads && rec->threads ? rec->threads : 1;
	n->sockets = rec->has_sockets && rec->sockets ? rec->sockets : 1;
	n->cores_per_socket = rec->has_cores && rec->cores ? rec->cores : 0;
	if (!n->cores_per_socket || n->sockets * n->cores_per_socket * n->threads != n->cpus) {
		n->threads = n->cpus % n->threads ? 1 : n->threads;
		n->sockets = (n->cpus / n->threads) % n->sockets ? 1 : n->sockets;
		n->cores_per_socket = n->cpus / n->threads / n->sockets;
	}
	n->mem = rec->has_real_memory ? rec->real_memory : 1;
	n->mem -= rec->has_mem_spec_limit && rec->mem_spec_limit < n->mem ? rec->mem_spec_limit : 0;
	n->tmp = rec->tmp_disk;
	n->weight = rec->has_weight ? rec->weight : 1;
	gres_load(c, n, rec);
	uint32_t bits = 0;
	for (uint32_t i = 0; i < n->gres_n; i++)
		bits += n->gres[i].by_device ? n->gres[i].count : 0;
	n->cpu_words = (n->cpus + 63) / 64;
	n->dev_words = (bits + 63) / 64;
	spec_load(n, rec);
	future_free(n->future); /* its entries may be others now */
	n->future = NULL;
	xfree(n->shares);
	free(n->used);
	n->used = xcalloc(n->cpu_words + n->dev_words + 1, sizeof(uint64_t));
	n->cpus_used = 0;
	n->mem_used = 0;
}

void node_destroy(struct core_node *n)
{
	if (!n)
		return;
	if (n->rec)
		pb__node_record__free_unpacked(n->rec, NULL);
	free(n->name);
	free(n->addr);
	free(n->hostname);
	free(n->used);
	free(n->spec);
	free(n->shares);
	gres_clear(n);
	free(n->gres);
	free(n->held);
	free(n->released);
	free(n->plan);
	future_free(n->future);
	free(n->resv);
	free(n);
}

bool node_is_up(const struct core_node *n) { return n->base == NODE_IDLE && n->registered && !(n->flags & (NODEF_NOT_RESPONDING | NODEF_INVALID_REG)); }

void node_refresh(struct core *c, struct core_node *n)
{
	bool up = node_is_up(n) && !(n->flags & (NODEF_DRAIN | NODEF_FAIL | NODEF_REBOOT_ISSUED));
	bool was = bitset_has(c->up, n->index) && bitset_has(c->roomy, n->index);
	if (up && !bitset_has(c->up, n->index)) {
		est_gained(c, n);
		c->sweep_gen++; /* jobs that could not be planned may be now */
	}
	(up ? bitset_set : bitset_clear)(c->up, n->index);
	(n->cpus_used < n->cap && !n->whole ? bitset_set : bitset_clear)(c->roomy, n->index);
	(!n->held_n ? bitset_set : bitset_clear)(c->idle, n->index);
	if (n->resv_n && (!up || !was))
		c->resv_look = true;
	if (!was && up && bitset_has(c->roomy, n->index))
		sched_gained(c, n->index);
}

/* CPUs that several jobs of a partition share: counted one by one; in use while somebody has them. */
static void mark_shared(struct core_node *n, const uint64_t *w, bool take)
{
	if (!n->shares)
		n->shares = xcalloc(n->cpus, sizeof *n->shares);
	for (uint32_t i = 0; i < n->cpus; i++) {
		if (!bit_of(w, i))
			continue;
		assert(take ? n->over || !bit_of(n->used, i) || n->shares[i] : n->shares[i] > 0);
		n->shares[i] = (uint16_t)(n->shares[i] + (take ? 1 : -1));
		if (n->shares[i] == take) { /* the first has come, the last has gone */
			n->used[i / 64] ^= 1ULL << (i % 64);
			n->cpus_used += take ? 1 : -1u;
		}
	}
}

static void mark(struct core *c, struct core_node *n, struct core_job *j, const struct alloc_on *o, bool take)
{
	const uint64_t *w = j->alloc->words + o->bits;
	if (n->cap < n->cpus && !j->alloc->own_spec)
		node_spare_used(n, w);
	n->over += j->alloc->over && take;
	bool piled = n->over || j->alloc->share; /* else its CPUs are its own */
	if (j->alloc->share)
		mark_shared(n, w, take);
	for (uint32_t i = piled ? n->cpu_words : 0; i < n->cpu_words + n->dev_words; i++) {
		assert(take ? !(n->used[i] & w[i]) : (n->used[i] & w[i]) == w[i]); /* nothing is given twice, nothing freed twice */
		n->used[i] ^= w[i];
	}
	w += n->cpu_words + n->dev_words;
	for (uint32_t g = 0; g < n->gres_n; g++)
		n->gres[g].used += take ? (uint32_t)w[g] : -(uint32_t)w[g];
	if (!piled)
		n->cpus_used += take ? o->cpus : -o->cpus;
	n->owners += j->alloc->user_only || j->alloc->mcs ? (take ? 1 : -1u) : 0;
	c->topo_only += j->alloc->topo_only ? (take ? 1 : -1u) : 0;
	n->mem_used += take ? o->mem : -o->mem;
	n->whole += j->alloc->exclusive ? (take ? 1 : -1u) : 0;
	assert(piled || j->alloc->own_spec || n->cpus_used <= n->cap);
}

void node_recount(struct core *c, struct core_node *n)
{
	memset(n->used, 0, n->cpu_words * sizeof *n->used);
	n->cpus_used = n->whole = 0;
	for (size_t k = 0; k < n->held_n; k++) {
		const struct core_job *j = n->held[k].job;
		if (c->lending && j->doomed)
			continue;
		for (uint32_t i = 0; i < n->cpu_words; i++)
			n->used[i] |= j->alloc->words[j->alloc->on[n->held[k].at].bits + i];
		n->whole += j->alloc->exclusive;
	}
	for (uint32_t i = 0; i < n->cpus; i++)
		n->cpus_used += bit_of(n->used, i);
}

void node_hold(struct core *c, struct core_job *j, uint32_t at)
{
	struct alloc_on *o = &j->alloc->on[at];
	struct core_node *n = c->node[o->node];
	mark(c, n, j, o, true);
	n->held = xgrow(n->held, &n->held_cap, n->held_n + 1, sizeof *n->held);
	o->at = (uint32_t)n->held_n;
	o->state = ON_HELD;
	n->held[n->held_n++] = (struct held){ j, at };
	j->alloc->left++;
	if (n->over)
		node_recount(c, n);
	gang_look(c, j);
	n->last_busy_ms = c->now_ms;
	future_forget(n);
	node_refresh(c, n);
}

/* A job's own record says nothing of the nodes it has left, which others may have by now: it would be written once for each. */
static void released_add(struct core *c, struct core_node *n, const struct core_job *j)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n->released_n; i++) {
		const struct core_job *o = job_find(c, n->released[i].job_id);
		if (o && o->alloc && o->alloc->left && run_of(o) == n->released[i].run)
			n->released[kept++] = n->released[i];
	}
	n->released = xgrow(n->released, &n->released_cap, kept + 1, sizeof *n->released);
	n->released[kept] = (struct released){ j->id, run_of(j) };
	n->released_n = kept + 1;
	fx_node(c, n);
}

bool node_has_released(const struct core_node *n, const struct core_job *j)
{
	for (uint32_t i = 0; i < n->released_n; i++)
		if (n->released[i].job_id == j->id && n->released[i].run == run_of(j))
			return true;
	return false;
}

void node_released_record(const struct core_node *n, Pb__NodeRecord *m)
{
	m->n_released = n->released_n;
	m->released = n->released_n ? xcalloc(n->released_n, sizeof *m->released) : NULL;
	for (uint32_t i = 0; i < n->released_n; i++) {
		m->released[i] = xcalloc(1, sizeof **m->released);
		pb__released_run__init(m->released[i]);
		m->released[i]->job_id = n->released[i].job_id;
		m->released[i]->restarts = n->released[i].run;
	}
}

void node_released_restore(struct core_node *n, const Pb__NodeRecord *m)
{
	n->released = xgrow(n->released, &n->released_cap, m->n_released + 1, sizeof *n->released);
	n->released_n = (uint32_t)m->n_released;
	for (size_t i = 0; i < m->n_released; i++)
		n->released[i] = (struct released){ m->released[i]->job_id, m->released[i]->restarts };
}

void node_release(struct core *c, struct core_job *j, uint32_t at)
{
	struct alloc_on *o = &j->alloc->on[at];
	struct core_node *n = c->node[o->node];
	if (o->state == ON_FREE)
		return;
	mark(c, n, j, o, false);
	if (o->state == ON_CLEANING)
		n->completing--;
	o->state = ON_FREE;
	j->alloc->left--;
	struct held *last = &n->held[--n->held_n];
	if (last->job != j || last->at != at) {
		last->job->alloc->on[last->at].at = o->at;
		n->held[o->at] = *last;
	}
	if (n->over)
		node_recount(c, n);
	gang_look(c, j);
	n->over -= j->alloc->over;
	if (j->alloc->left)
		released_add(c, n, j);
	n->last_busy_ms = c->now_ms;
	est_gained(c, n);
	node_refresh(c, n);
	reboot_look(c, n);
	if (j->alloc->topo_only)
		topology_left(c, n);
	if (bitset_has(c->up, n->index))
		sched_gained(c, n->index);
}

void node_mem_less(struct core *c, struct core_job *j, uint32_t at, uint64_t mem)
{
	struct alloc_on *o = &j->alloc->on[at];
	struct core_node *n = c->node[o->node];
	if (o->state == ON_FREE || o->mem <= mem)
		return;
	n->mem_used -= o->mem - mem;
	o->mem = mem;
	est_gained(c, n);
	node_refresh(c, n);
	if (bitset_has(c->up, n->index))
		sched_gained(c, n->index);
}

void node_try(struct core *c, struct core_job *j, uint32_t at, bool take)
{
	struct alloc_on *o = &j->alloc->on[at];
	struct core_node *n = c->node[o->node];
	mark(c, n, j, o, take);
	if (take) {
		n->held = xgrow(n->held, &n->held_cap, n->held_n + 1, sizeof *n->held);
		n->held[n->held_n++] = (struct held){ j, at };
	} else
		n->held_n--; /* given back in the opposite order */
	if (n->over)
		node_recount(c, n);
	o->state = take ? ON_HELD : ON_FREE;
	future_forget(n);
	(n->cpus_used < n->cap && !n->whole ? bitset_set : bitset_clear)(c->roomy, n->index);
	(!n->held_n ? bitset_set : bitset_clear)(c->idle, n->index);
}

uint32_t node_state_now(const struct core_node *n, uint32_t *ret_flags)
{
	uint32_t flags = n->flags | (n->completing ? NODEF_COMPLETING : 0) | resv_node_flags(n);
	*ret_flags = flags;
	if (n->base != NODE_IDLE)
		return n->base;
	if (!n->cpus_used)
		return NODE_IDLE;
	return n->cpus_used >= n->cap || n->whole ? NODE_ALLOCATED : NODE_MIXED;
}
