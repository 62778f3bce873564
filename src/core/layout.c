/* layout.c - how a step's tasks lie on the job's nodes, and what of each node the step takes
 * Two views of each node: what the job has there, and what of it no other step uses. A request that does not fit the first can never run (error);
 * one that fits only the first waits (-ESLURM_STEP_BUSY). Counts go round the nodes one task at a time; with block distribution
 * neighbouring ranks then share a node. */
#include <stdlib.h>

#include "core/state.h"
#include "model/hostlist.h"

struct room { uint32_t at, cpus, cap, tasks, sockets, gres[GRES_MAX]; bool busy; };
struct request {
	const Pb__StepDesc *d;
	uint32_t nodes, tasks, cpt, per_node; /* nodes: where it does not say how many */
	bool exact, gres_default, gres_none;
	struct wants step, node, task, socket;
};

static const struct core_node *node_at(const struct core *c, const struct core_job *j, uint32_t at) { return c->node[j->alloc->on[at].node]; }

/* Bits of the job on a node that other steps hold for themselves. */
static void bits_busy(const struct core *c, const struct core_job *j, uint32_t at, uint64_t *ret)
{
	const struct core_node *n = node_at(c, j, at);
	memset(ret, 0, (n->cpu_words + n->dev_words + n->gres_n) * sizeof *ret);
	for (const struct step *s = j->steps; s; s = s->next)
		for (uint32_t i = 0; !s->done && !s->overlap && i < s->on_n; i++) {
			const uint64_t *w = s->words + s->on[i].bits;
			if (s->on[i].at != at)
				continue;
			for (uint32_t k = 0; k < n->cpu_words + n->dev_words; k++)
				ret[k] |= w[k];
			for (uint32_t g = 0; g < n->gres_n; g++)
				ret[n->cpu_words + n->dev_words + g] += w[n->cpu_words + n->dev_words + g];
		}
}

static uint32_t count_bits(const uint64_t *w, uint32_t from, uint32_t to)
{
	uint32_t n = 0;
	for (uint32_t i = from; i < to; i++)
		n += w[i / 64] >> (i % 64) & 1;
	return n;
}

static uint32_t want_there(const struct core_node *n, const struct room *r, const struct want *w)
{
	uint32_t sum = 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		sum += wants_match(w, &n->gres[g]) ? r->gres[g] : 0;
	return sum;
}

/* Threads of each core that a step wants to use; all of them where it does not say. */
static uint32_t threads_used(const struct core_node *n, const struct request *q)
{
	uint32_t t = q->d->has_threads_per_core ? q->d->threads_per_core : 0;
	return t && t < n->threads ? t : n->threads;
}

/* Sockets of a node on which the job has CPUs: --gpus-per-socket counts for each. */
static uint32_t sockets_held(const struct core_node *n, const uint64_t *mine)
{
	uint32_t each = n->cores_per_socket * n->threads, found = 0;
	for (uint32_t s = 0; s < n->sockets; s++)
		found += count_bits(mine, s * each, (s + 1) * each) > 0;
	return found;
}

static uint32_t tasks_on(const struct core_node *n, const struct request *q, uint32_t cpus)
{
	uint32_t used = threads_used(n, q);
	return (used == n->threads ? cpus : cpus / n->threads * used) / q->cpt;
}

/* How many tasks could a node take, with these CPUs and devices? */
static uint32_t room_tasks(const struct core_node *n, const struct request *q, const struct room *r)
{
	uint32_t cap = q->d->overcommit ? q->tasks : tasks_on(n, q, r->cpus);
	for (uint32_t i = 0; i < q->node.n; i++)
		if (want_there(n, r, &q->node.w[i]) < q->node.w[i].count)
			return 0;
	for (uint32_t i = 0; i < q->socket.n; i++)
		if (want_there(n, r, &q->socket.w[i]) < q->socket.w[i].count * r->sockets)
			return 0;
	for (uint32_t i = 0; i < q->task.n; i++) {
		uint32_t k = (uint32_t)(want_there(n, r, &q->task.w[i]) / q->task.w[i].count);
		cap = k < cap ? k : cap;
	}
	return q->per_node && cap > q->per_node ? q->per_node : cap;
}

static void room_of(const struct core *c, const struct core_job *j, const struct request *q, uint32_t at, bool whole, struct room *r)
{
	const struct core_node *n = node_at(c, j, at);
	const uint64_t *mine = j->alloc->words + j->alloc->on[at].bits;
	uint32_t words = n->cpu_words + n->dev_words;
	uint64_t *busy = xcalloc(words + n->gres_n + 1, sizeof *busy);
	*r = (struct room){ .at = at, .sockets = q->socket.n ? sockets_held(n, mine) : 0 };
	if (!whole && !q->d->overlap)
		bits_busy(c, j, at, busy);
	for (uint32_t i = 0; i < n->cpus; i++)
		r->cpus += (mine[i / 64] & ~busy[i / 64]) >> (i % 64) & 1;
	if (!whole && !q->exact && !q->d->overlap && r->cpus < j->alloc->on[at].cpus)
		r->busy = true; /* it would take the whole node's share and somebody has some of it */
	for (uint32_t g = 0; g < n->gres_n; g++)
		r->gres[g] = (uint32_t)(mine[words + g] - (busy[words + g] < mine[words + g] ? busy[words + g] : mine[words + g]));
	for (uint32_t g = 0; !whole && q->gres_default && g < n->gres_n; g++)
		if (r->gres[g] < mine[words + g])
			r->busy = true; /* a step that names no GRES takes all of the job's */
	r->cap = r->busy ? 0 : room_tasks(n, q, r);
	free(busy);
}

/* --- which nodes ------------------------------------------------------------------------------ */

static int names_to_at(const struct core *c, const struct core_job *j, const char *list, uint8_t *mark, struct error *err)
{
	struct bitset *b;
	int r = nodes_bitset(c, list, &b, err);
	if (r < 0)
		return r;
	uint32_t found = 0;
	for (uint32_t i = 0; i < j->alloc->n; i++)
		if (bitset_has(b, j->alloc->on[i].node)) {
			mark[i] = 1;
			found++;
		}
	if (found < bitset_count(b))
		r = error_set(err, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "\"%s\" names nodes that are not in the allocation of job %u", list, j->id);
	bitset_destroy(b);
	return r;
}

static int nodes_wanted(const struct core *c, const struct core_job *j, const Pb__StepDesc *d, uint8_t *must, uint8_t *not, struct error *err)
{
	int r = 0;
	if (d->req_nodes && d->req_nodes[0])
		r = names_to_at(c, j, d->req_nodes, must, err);
	if (r >= 0 && d->exc_nodes && d->exc_nodes[0]) {
		struct bitset *b;
		if ((r = nodes_bitset(c, d->exc_nodes, &b, err)) >= 0) {
			for (uint32_t i = 0; i < j->alloc->n; i++)
				not[i] = bitset_has(b, j->alloc->on[i].node);
			bitset_destroy(b);
		}
	}
	if (r >= 0 && d->has_relative && d->relative >= j->alloc->n)
		r = error_set(err, ESLURM_INVALID_NODE_COUNT, "--relative=%u: job %u has %u nodes", d->relative, j->id, j->alloc->n);
	for (uint32_t i = 0; r >= 0 && d->has_relative && i < d->relative; i++)
		not[i] = 1;
	return r;
}

static uint32_t node_count(const struct core_job *j, const struct request *q, uint32_t musts)
{
	uint32_t n = q->d->has_min_nodes && q->d->min_nodes ? q->d->min_nodes : 0;
	if (!n && q->d->has_num_tasks && q->d->num_tasks < j->alloc->n)
		n = 1;
	if (!n)
		n = q->d->has_num_tasks && !musts ? 1 : q->nodes;
	return n < musts ? musts : n;
}

/* Takes nodes in order until there are enough of them with enough room. Returns how many, 0: not enough. */
static uint32_t choose(const struct core *c, const struct core_job *j, const struct request *q, const uint8_t *must, const uint8_t *not, bool whole, struct room *r)
{
	uint32_t musts = 0, n = 0, max = q->d->has_max_nodes && q->d->max_nodes ? q->d->max_nodes : UINT32_MAX;
	uint64_t room = 0, need[WANT_MAX], have[WANT_MAX] = { 0 };
	for (uint32_t i = 0; i < j->alloc->n; i++)
		musts += must[i];
	uint32_t min = node_count(j, q, musts);
	if (q->d->has_min_nodes && q->d->min_nodes && !(q->d->has_max_nodes && q->d->max_nodes))
		max = min;
	for (uint32_t i = 0; i < q->step.n; i++)
		need[i] = q->step.w[i].count;
	for (uint32_t pass = musts ? 0 : 1; pass < 2; pass++)
		for (uint32_t i = 0; i < j->alloc->n && n < max; i++) {
			bool enough = n >= min && room >= q->tasks;
			for (uint32_t k = 0; k < q->step.n; k++)
				enough = enough && have[k] >= need[k];
			if (enough)
				return n;
			if (not[i] || (pass == 0) != (must[i] != 0))
				continue;
			room_of(c, j, q, i, whole, &r[n]);
			if (!r[n].cap && (pass == 0 || !q->d->overcommit)) {
				if (pass == 0)
					return 0;
				continue;
			}
			room += r[n].cap;
			for (uint32_t k = 0; k < q->step.n; k++)
				have[k] += want_there(node_at(c, j, i), &r[n], &q->step.w[k]);
			n++;
		}
	for (uint32_t k = 0; k < q->step.n; k++)
		if (have[k] < need[k])
			return 0;
	return n >= min && room >= q->tasks ? n : 0;
}

static void rooms_sort(struct room *r, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct room o = r[i];
		uint32_t k = i;
		for (; k > 0 && r[k - 1].at > o.at; k--)
			r[k] = r[k - 1];
		r[k] = o;
	}
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* One task at a time round the nodes: how many each gets. */
static void counts_round(struct room *r, uint32_t n, uint32_t tasks)
{
	while (tasks) {
		uint32_t before = tasks;
		for (uint32_t i = 0; i < n && tasks; i++)
			if (r[i].tasks < r[i].cap) {
				r[i].tasks++;
				tasks--;
			}
		assert(tasks < before);
	}
}

static uint32_t plane_size(const Pb__StepDesc *d)
{
	unsigned long long v;
	if (d->has_plane_size && d->plane_size)
		return d->plane_size;
	const char *s = d->distribution ? d->distribution : "";
	return str_starts(s, "plane=") && str_to_u64(s + 6, 1, 1000000, &v) == 0 ? (uint32_t)v : 1;
}

static void ranks_planes(struct room *r, uint32_t n, uint32_t tasks, uint32_t plane, uint32_t *rank)
{
	uint32_t t = 0;
	while (t < tasks) {
		uint32_t before = t;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < plane && t < tasks && r[i].tasks < r[i].cap; k++, r[i].tasks++)
				rank[t++] = i;
		assert(t > before);
	}
}

static int ranks_arbitrary(const struct core *c, const struct core_job *j, struct room *r, uint32_t n, const struct request *q, uint32_t *rank, struct error *err)
{
	struct hostlist hl = HOSTLIST_INIT;
	int rc = hostlist_add(&hl, q->d->arbitrary_hosts, err);
	if (rc >= 0 && hl.count != q->tasks)
		rc = error_set(err, ESLURM_INVALID_TASK_COUNT, "-m arbitrary: %zu hosts are named for %u tasks", hl.count, q->tasks);
	for (uint32_t t = 0; rc >= 0 && t < q->tasks; t++) {
		uint32_t i = 0;
		while (i < n && strcmp(node_at(c, j, r[i].at)->name, hl.name[t]))
			i++;
		if (i == n || r[i].tasks >= r[i].cap)
			rc = error_set(err, i == n ? ESLURM_INVALID_NODE_NAME : ESLURM_TOO_MANY_REQUESTED_CPUS, "-m arbitrary: task %u does not fit on \"%s\"", t, hl.name[t]);
		else {
			rank[t] = i;
			r[i].tasks++;
		}
	}
	hostlist_fini(&hl);
	return rc;
}

static int ranks_make(const struct core *c, const struct core_job *j, const struct request *q, struct room *r, uint32_t n, uint32_t *rank, struct error *err)
{
	const char *dist = q->d->distribution ? q->d->distribution : "";
	if (str_starts(dist, "arbitrary") && q->d->arbitrary_hosts && q->d->arbitrary_hosts[0])
		return ranks_arbitrary(c, j, r, n, q, rank, err);
	if (str_starts(dist, "plane") || str_starts(dist, "cyclic")) {
		ranks_planes(r, n, q->tasks, dist[0] == 'p' ? plane_size(q->d) : 1, rank);
		return 0;
	}
	if (dist[0] && !str_starts(dist, "block") && dist[0] != '*' && dist[0] != ':' && !str_starts(dist, "arbitrary") && strcasecmp(dist, "pack") && strcasecmp(dist, "nopack"))
		return error_set(err, ESLURM_INVALID_DISTRIBUTION, "--distribution=%s is not known", dist);
	if (strcasestr(dist, "pack") && !strcasestr(dist, "nopack")) /* fill one node after the other */
		for (uint32_t i = 0, left = q->tasks; i < n; i++) {
			uint32_t after = n - 1 - i, t = left > after ? left - after : (left ? 1 : 0);
			r[i].tasks = t > r[i].cap ? r[i].cap : t;
			left -= r[i].tasks;
		}
	else
		counts_round(r, n, q->tasks);
	for (uint32_t i = 0, t = 0; i < n; i++)
		for (uint32_t k = 0; k < r[i].tasks; k++)
			rank[t++] = i;
	return 0;
}

/* --- what of each node ------------------------------------------------------------------------ */

static void take_gres(const struct core_node *n, const struct want *w, uint64_t count, const uint64_t *mine, const uint64_t *busy, uint64_t *out)
{
	uint32_t words = n->cpu_words + n->dev_words;
	for (uint32_t g = 0; g < n->gres_n && count; g++) {
		const struct node_gres *e = &n->gres[g];
		uint64_t left = mine[words + g] - out[words + g], take;
		left -= busy[words + g] < left ? busy[words + g] : left;
		if (!wants_match(w, e) || !left)
			continue;
		take = left < count ? left : count;
		out[words + g] += take;
		count -= take;
		const uint64_t *dev = mine + n->cpu_words, *used = busy + n->cpu_words;
		uint64_t *o = out + n->cpu_words;
		for (uint32_t i = e->bit0; e->by_device && take && i < e->bit0 + e->count; i++)
			if (dev[i / 64] >> (i % 64) & 1 && !((used[i / 64] | o[i / 64]) >> (i % 64) & 1)) {
				o[i / 64] |= 1ULL << (i % 64);
				take--;
			}
	}
}

static void take_node(const struct core *c, const struct core_job *j, const struct request *q, const struct room *r, uint32_t *step_left, uint32_t after, uint64_t *out)
{
	const struct core_node *n = node_at(c, j, r->at);
	const uint64_t *mine = j->alloc->words + j->alloc->on[r->at].bits;
	uint32_t words = n->cpu_words + n->dev_words + n->gres_n, need = q->d->overcommit && q->exact ? (r->tasks ? 1 : 0) : r->tasks * q->cpt, used = threads_used(n, q);
	if (used < n->threads)                     /* the other threads of those cores are the step's too, and idle */
		need = (need + used - 1) / used * n->threads;
	uint64_t *busy = xcalloc(words + 1, sizeof *busy);
	if (!q->d->overlap)
		bits_busy(c, j, r->at, busy);
	for (uint32_t i = 0, got = 0; i < n->cpus && (!q->exact || got < need); i++)
		if ((mine[i / 64] & ~busy[i / 64]) >> (i % 64) & 1) {
			out[i / 64] |= 1ULL << (i % 64);
			got++;
		}
	if (q->gres_default)
		memcpy(out + n->cpu_words, mine + n->cpu_words, (n->dev_words + n->gres_n) * sizeof *out);
	for (uint32_t i = 0; i < q->node.n; i++)
		take_gres(n, &q->node.w[i], q->node.w[i].count, mine, busy, out);
	for (uint32_t i = 0; i < q->socket.n; i++)
		take_gres(n, &q->socket.w[i], q->socket.w[i].count * r->sockets, mine, busy, out);
	for (uint32_t i = 0; i < q->task.n; i++)
		take_gres(n, &q->task.w[i], q->task.w[i].count * r->tasks, mine, busy, out);
	for (uint32_t i = 0; i < q->step.n; i++) {
		uint32_t have = want_there(n, r, &q->step.w[i]), share = step_left[i] > after ? step_left[i] - after : 0;
		share = share > have ? have : share;
		take_gres(n, &q->step.w[i], share, mine, busy, out);
		step_left[i] -= share;
	}
	free(busy);
}

static uint64_t step_mem(const struct core_job *j, const Pb__StepDesc *d, uint32_t at, uint32_t cpus)
{
	uint64_t all = j->alloc->on[at].mem, want = all;
	if (d->has_mem_per_node && d->mem_per_node)
		want = d->mem_per_node;
	else if (d->has_mem_per_cpu && d->mem_per_cpu)
		want = d->mem_per_cpu * cpus;
	else if (j->shape->mem_cpu)
		want = j->shape->mem_cpu * cpus;
	return want > all && all ? all : want;
}

static void step_take(const struct core *c, const struct core_job *j, const struct request *q, struct step *s, const struct room *r, uint32_t n)
{
	uint32_t words = 0, left[WANT_MAX];
	for (uint32_t i = 0; i < q->step.n; i++)
		left[i] = (uint32_t)q->step.w[i].count;
	s->on = xcalloc(n + 1, sizeof *s->on);
	s->on_n = s->nodes_left = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct core_node *node = node_at(c, j, r[i].at);
		s->on[i] = (struct step_on){ .at = r[i].at, .tasks = r[i].tasks, .bits = words };
		words += node->cpu_words + node->dev_words + node->gres_n;
	}
	s->words = xcalloc(words + 1, sizeof *s->words);
	for (uint32_t i = 0; i < n; i++) {
		take_node(c, j, q, &r[i], left, n - 1 - i, s->words + s->on[i].bits);
		s->on[i].cpus = count_bits(s->words + s->on[i].bits, 0, node_at(c, j, r[i].at)->cpus);
		s->on[i].mem = step_mem(j, q->d, r[i].at, s->on[i].cpus);
		s->cpus += s->on[i].cpus;
	}
}

/* How many nodes a step gets that does not say so: those it names, else all that it may use. */
static uint32_t nodes_by_default(const struct core_job *j, const uint8_t *must, const uint8_t *not)
{
	uint32_t musts = 0, open = 0;
	for (uint32_t i = 0; i < j->alloc->n; i++) {
		musts += must[i];
		open += !not[i];
	}
	return musts ? musts : open ? open : 1;
}

/* Which GRES: what the step names, else all of the job's; of a job that has whole nodes what it asked for itself. */
static int gres_read(const struct core *c, const struct core_job *j, const Pb__StepDesc *d, struct request *q, struct error *err)
{
	struct core *w = (struct core *)c; /* wants_parse only looks atoms up */
	const struct shape *s = j->shape;
	int r;
	if ((r = wants_parse(w, d->tres_per_step, &q->step, err)) < 0 || (r = wants_parse(w, d->tres_per_node, &q->node, err)) < 0 ||
	    (r = wants_parse(w, d->tres_per_socket, &q->socket, err)) < 0 || (r = wants_task(w, d->tres_per_task, &q->task, &q->cpt, err)) < 0)
		return r;
	bool gres_of_task = d->tres_per_task && (strstr(d->tres_per_task, "gres") || q->task.n);
	bool named = (d->tres_per_step && d->tres_per_step[0]) || (d->tres_per_node && d->tres_per_node[0]) || (d->tres_per_socket && d->tres_per_socket[0]) || gres_of_task;
	q->gres_default = !named;
	if (named || !s->exclusive || !(s->job.n + s->node.n + s->socket.n + s->task.n))
		return 0;
	q->gres_default = false;
	q->step = s->job;
	q->node = s->node;
	q->socket = s->socket;
	q->task = s->task;
	return 0;
}

/* CPUs a task and no number of tasks: as many as the job's CPUs allow on the step's nodes. */
static uint32_t tasks_by_cpus(const struct core *c, const struct core_job *j, const struct request *q, const uint8_t *must, const uint8_t *not)
{
	uint32_t left = q->d->has_min_nodes && q->d->min_nodes ? q->d->min_nodes : q->nodes, sum = 0;
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < j->alloc->n && left; i++)
			if (!not[i] && (must[i] != 0) == (pass == 0)) {
				sum += tasks_on(node_at(c, j, i), q, j->alloc->on[i].cpus);
				left--;
			}
	return sum;
}

static int request_read(const struct core *c, const struct core_job *j, const Pb__StepDesc *d, const uint8_t *must, const uint8_t *not, struct request *q, struct error *err)
{
	uint32_t nodes = nodes_by_default(j, must, not);
	int r;
	*q = (struct request){ .d = d, .nodes = nodes, .cpt = d->has_cpus_per_task && d->cpus_per_task ? d->cpus_per_task : 1 };
	if ((r = gres_read(c, j, d, q, err)) < 0)
		return r;
	q->per_node = d->has_ntasks_per_node ? d->ntasks_per_node : 0;
	q->exact = d->exact || d->exclusive || (d->has_cpus_per_task && d->cpus_per_task);
	q->tasks = d->has_num_tasks && d->num_tasks ? d->num_tasks : q->per_node * (d->has_min_nodes ? d->min_nodes : nodes);
	if (!q->tasks && (d->has_cpus_per_task || (d->tres_per_task && str_starts(d->tres_per_task, "cpu"))))
		q->tasks = tasks_by_cpus(c, j, q, must, not);
	if (!q->tasks)
		q->tasks = d->has_min_nodes && d->min_nodes ? d->min_nodes : nodes;
	if (!q->exact && d->has_num_tasks && q->per_node && d->has_min_nodes && q->tasks > q->per_node * d->min_nodes)
		return error_set(err, ESLURM_INVALID_TASK_COUNT, "%u tasks do not fit on %u nodes with %u a node", q->tasks, d->min_nodes, q->per_node);
	return 0;
}

/* --mem of a step: no more than the job has on any of its nodes. */
static int mem_check(const struct core_job *j, const Pb__StepDesc *d, struct error *err)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < j->alloc->n; i++)
		most = j->alloc->on[i].mem > most ? j->alloc->on[i].mem : most;
	if (!most || !d->has_mem_per_node || d->mem_per_node <= most)
		return 0;
	return error_set(err, ESLURM_INVALID_TASK_MEMORY, "%llu MiB of memory a node are asked for, job %u has %llu MiB on a node", (unsigned long long)d->mem_per_node, j->id, (unsigned long long)most);
}

static int too_big(const struct core_job *j, const struct request *q, struct error *err)
{
	if (q->d->has_min_nodes && q->d->min_nodes > j->alloc->n)
		return error_set(err, ESLURM_INVALID_NODE_COUNT, "%u nodes are asked for, job %u has %u", q->d->min_nodes, j->id, j->alloc->n);
	if (!q->d->overcommit && (uint64_t)q->tasks * q->cpt > j->alloc->cpus)
		return error_set(err, ESLURM_TOO_MANY_REQUESTED_CPUS, "%u tasks of %u CPUs are asked for, job %u has %u CPUs", q->tasks, q->cpt, j->id, j->alloc->cpus);
	if (q->d->arbitrary_hosts && q->d->arbitrary_hosts[0])
		return error_set(err, ESLURM_TOO_MANY_REQUESTED_CPUS, "-m arbitrary: job %u has not the CPUs for the tasks that a node is named for", j->id);
	if (!q->gres_default && (q->step.n || q->node.n || q->socket.n || q->task.n))
		return error_set(err, ESLURM_INVALID_GRES, "the allocation of job %u has not the GPUs or other GRES that the step asks for, together with its tasks", j->id);
	return error_set(err, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "the allocation of job %u cannot hold the step: CPUs, GPUs or tasks on one node are too many", j->id);
}

/* MaxTasksPerNode. */
static int tasks_check(const struct core *c, const struct core_job *j, const struct room *room, uint32_t n, struct error *err)
{
	uint32_t most = c->params.max_tasks_per_node;
	for (uint32_t i = 0; most && i < n; i++)
		if (room[i].tasks > most)
			return error_set(err, ESLURM_INVALID_TASK_COUNT, "%u tasks on node %s, MaxTasksPerNode allows %u", room[i].tasks, node_at(c, j, room[i].at)->name, most);
	return 0;
}

int layout_make(struct core *c, const struct core_job *j, struct step *s, const Pb__StepDesc *d, struct error *err)
{
	struct request q = { 0 };
	uint32_t n = 0;
	uint8_t *must = xcalloc(2 * j->alloc->n, 1), *not = must + j->alloc->n;
	struct room *room = xcalloc(j->alloc->n + 1, sizeof *room);
	int r = nodes_wanted(c, j, d, must, not, err);
	if (r >= 0)
		r = request_read(c, j, d, must, not, &q, err);
	if (r >= 0)
		r = mem_check(j, d, err);
	if (r >= 0 && !choose(c, j, &q, must, not, true, room))
		r = too_big(j, &q, err);
	if (r >= 0 && !(n = choose(c, j, &q, must, not, false, room)))
		r = error_set(err, ESLURM_STEP_BUSY, "other steps of job %u use what is asked for", j->id);
	if (r >= 0) {
		rooms_sort(room, n);
		s->rank = xcalloc(q.tasks + 1, sizeof *s->rank);
		r = ranks_make(c, j, &q, room, n, s->rank, err);
	}
	if (r >= 0)
		r = tasks_check(c, j, room, n, err);
	if (r >= 0) {
		s->tasks = q.tasks;
		s->overlap = d->overlap;
		step_take(c, j, &q, s, room, n);
	}
	free(must);
	free(room);
	return r;
}

/* --- the message ------------------------------------------------------------------------------ */

static Pb__StepNode *node_message(const struct core *c, const struct core_job *j, const struct step *s, uint32_t i, struct arena *a)
{
	const struct core_node *n = node_at(c, j, s->on[i].at);
	const struct alloc_on *o = &j->alloc->on[s->on[i].at];
	Pb__StepNode *m = arena_alloc(a, sizeof *m);
	pb__step_node__init(m);
	m->name = n->name;
	m->addr = n->addr;
	m->port = n->port;
	m->cpus = s->on[i].cpus;
	m->mem = s->on[i].mem;
	char *t = bits_text(s->words + s->on[i].bits, n->cpus);
	m->cpu_ids = arena_strdup(a, t);
	free(t);
	t = bits_text(j->alloc->words + o->bits, n->cpus);
	m->job_cpu_ids = arena_strdup(a, t);
	free(t);
	m->has_job_mem = true;
	m->job_mem = o->mem;
	m->n_gres = record_gres(c, n, s->words + s->on[i].bits, &m->gres, a);
	m->n_job_gres = record_gres(c, n, j->alloc->words + o->bits, &m->job_gres, a);
	m->task_ids = arena_alloc(a, (s->on[i].tasks + 1) * sizeof *m->task_ids);
	return m;
}

Pb__StepLayout *layout_message(const struct core *c, const struct core_job *j, const struct step *s, struct arena *a)
{
	struct hostlist hl = HOSTLIST_INIT;
	struct str per = STR_INIT;
	Pb__StepLayout *m = arena_alloc(a, sizeof *m);
	pb__step_layout__init(m);
	m->num_tasks = s->tasks;
	m->node = arena_alloc(a, (s->on_n + 1) * sizeof *m->node);
	for (uint32_t i = 0; i < s->on_n; i++) {
		m->node[m->n_node++] = node_message(c, j, s, i, a);
		hostlist_push(&hl, node_at(c, j, s->on[i].at)->name);
	}
	for (uint32_t t = 0; t < s->tasks && s->rank; t++) {
		if (s->rank[t] == UINT32_MAX) /* its node was lost (--no-kill) */
			continue;
		Pb__StepNode *n = m->node[s->rank[t]];
		n->task_ids[n->n_task_ids++] = t;
	}
	for (uint32_t i = 0; i < s->on_n;) {
		uint32_t k = i;
		while (k < s->on_n && s->on[k].tasks == s->on[i].tasks)
			k++;
		str_add_sep(&per, ",", "");
		str_addf(&per, k - i > 1 ? "%u(x%u)" : "%u", s->on[i].tasks, k - i);
		i = k;
	}
	char *nodes = hostlist_compact(&hl);
	m->nodes = arena_strdup(a, nodes);
	m->tasks_per_node = arena_strdup(a, per.data);
	free(nodes);
	str_fini(&per);
	hostlist_fini(&hl);
	return m;
}
