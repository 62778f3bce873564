/* check.c - every invariant of the core, by assertion: called after each step in tests
 * It counts again from the jobs alone and compares: no CPU, device or MiB is given twice, counters and sets agree, each job is in exactly one place. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/reserve.h"

static void check_node(const struct core *c, const struct core_node *n)
{
	uint32_t cpus = 0, completing = 0, whole = 0, owners = 0, over = 0, gres[GRES_MAX] = { 0 }, stopped = 0, alone = 0;
	uint64_t mem = 0, *used = xcalloc(n->cpu_words + n->dev_words + 1, sizeof *used);
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *j = n->held[i].job;
		assert(job_find(c, j->id) == j && j->alloc);
		const struct alloc_on *o = &j->alloc->on[n->held[i].at];
		const uint64_t *w = j->alloc->words + o->bits;
		uint32_t bits = 0;
		assert(o->node == n->index && o->state != ON_FREE && o->at == i);
		for (uint32_t k = 0; k < n->cpu_words + n->dev_words; k++) {
			assert(!(used[k] & w[k]) || (k < n->cpu_words && (j->alloc->share || n->over)));
			assert(k >= n->cpu_words || !(w[k] & n->spec[k]) || (j->alloc->own_spec && j->alloc->exclusive));
			used[k] |= w[k];
			for (uint64_t x = k < n->cpu_words ? w[k] : 0; x; x &= x - 1)
				bits++;
		}
		assert(bits == o->cpus);
		mem += o->mem;
		owners += j->alloc->user_only || j->alloc->mcs;
		over += j->alloc->over;
		bool stops = gang_stands_by(j) || j->state == PB__JOB_STATE__SUSPENDED;
		stopped += stops;
		alone += j->alloc->exclusive && !stops;
		completing += o->state == ON_CLEANING;
		whole += j->alloc->exclusive;
		for (uint32_t g = 0; g < n->gres_n; g++)
			gres[g] += (uint32_t)w[n->cpu_words + n->dev_words + g];
	}
	for (uint32_t i = 0; i < n->cpus; i++) {
		uint32_t sharers = 0;
		cpus += bit_of(used, i);
		for (size_t k = 0; n->shares && k < n->held_n; k++)
			sharers += n->held[k].job->alloc->share && bit_of(n->held[k].job->alloc->words + n->held[k].job->alloc->on[n->held[k].at].bits, i);
		assert(!n->shares || n->shares[i] == sharers);
	}
	assert(cpus == n->cpus_used && (cpus <= n->cap || n->whole) && owners == n->owners);
	assert(mem == n->mem_used && (!c->params.select_memory || mem <= n->mem));
	assert(completing == n->completing && whole == n->whole && over == n->over && (!alone || n->held_n - stopped == 1));
	assert(!memcmp(used, n->used, (n->cpu_words + n->dev_words) * sizeof *used));
	for (uint32_t g = 0; g < n->gres_n; g++)
		assert(gres[g] == n->gres[g].used && gres[g] <= n->gres[g].count);
	shards_check(n);
	assert(bitset_has(c->idle, n->index) == (n->held_n == 0));
	assert(bitset_has(c->roomy, n->index) == (n->cpus_used < n->cap && !n->whole));
	assert(bitset_has(c->up, n->index) == (node_is_up(n) && !(n->flags & (NODEF_DRAIN | NODEF_FAIL | NODEF_REBOOT_ISSUED))));
	assert(bitset_has(c->promised, n->index) == (n->plan_n > 0));
	uint32_t picky = 0;
	for (uint32_t i = 0; i < n->plan_n; i++)
		picky += n->plan[i].p->picky;
	assert(picky == n->plan_picky);
	free(used);
}

/* A step that has a number and no room holds nothing; who waits for steps (swait) waits for one. */
static void check_waiting(const struct core *c)
{
	for (const struct drain *w = c->drains; w; w = w->next) {
		const struct core_job *j = job_find(c, w->job_id);
		const struct step *s = j && j->alloc ? j->steps : NULL;
		while (s && ((s->done && !s->open) || s->id >= STEP_ID_INTERACTIVE))
			s = s->next;
		assert(s);
	}
}

static void check_steps(const struct core *c, const struct core_job *j)
{
	for (const struct step *s = j->steps; s; s = s->next)
		assert(s->state != PB__JOB_STATE__PENDING || (!s->done && !s->on_n));
	for (uint32_t i = 0; i < j->alloc->n; i++) {
		const struct core_node *n = c->node[j->alloc->on[i].node];
		const uint64_t *mine = j->alloc->words + j->alloc->on[i].bits;
		uint64_t *used = xcalloc(n->cpu_words + n->dev_words + 1, sizeof *used);
		for (const struct step *s = j->steps; s; s = s->next)
			for (uint32_t k = 0; !s->done && k < s->on_n; k++) {
				const uint64_t *w = s->words + s->on[k].bits;
				for (uint32_t x = 0; s->on[k].at == i && x < n->cpu_words + n->dev_words; x++) {
					assert(!(w[x] & ~mine[x]));
					assert(s->overlap || !(used[x] & w[x]));
					used[x] |= s->overlap ? 0 : w[x];
				}
			}
		free(used);
	}
}

/* Its nodes are all of one set of --constraint or --prefer, and as many of each counted part as are asked for. */
static bool in_set(const struct feature_set *set, const struct bitset *nodes)
{
	bool ok = bitset_subset(nodes, set->in) && bitset_count(nodes) >= set->counted;
	for (uint32_t i = 0; i < set->count_n; i++)
		ok = ok && bitset_count_and(nodes, set->count[i].of) >= set->count[i].n;
	return ok;
}

static void check_rules(const struct core *c, const struct core_job *j)
{
	const struct shape *s = j->shape;
	struct bitset *nodes = bitset_create(c->node_n);
	bool ok = !s->sets.n;
	for (uint32_t i = 0; i < j->alloc->n; i++)
		bitset_set(nodes, j->alloc->on[i].node);
	for (uint32_t i = 0; i < s->sets.n; i++)
		ok = ok || in_set(&s->sets.set[i], nodes);
	assert(ok);
	for (uint32_t p = 0; p < s->part_n; p++)
		assert(!s->part[p] || s->part[p]->index != j->part || !s->able[p] || bitset_subset(nodes, s->able[p]));
	topology_check(c, j, nodes);
	bitset_destroy(nodes);
}

static void check_alloc(const struct core *c, const struct core_job *j)
{
	uint32_t left = 0, cpus = 0, preparing = 0;
	for (uint32_t i = 0; i < j->alloc->n; i++) {
		left += j->alloc->on[i].state != ON_FREE;
		preparing += j->alloc->on[i].preparing;
		cpus += j->alloc->on[i].cpus;
		assert(!i || j->alloc->on[i].node > j->alloc->on[i - 1].node);
	}
	assert(left == j->alloc->left && cpus == j->alloc->cpus);
	assert(preparing == j->preparing && (!preparing || (j->flags & JOBF_CONFIGURING)));
	if (j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED)
		assert(left == j->alloc->n && !(j->flags & JOBF_COMPLETING));
	else
		assert((left > 0 || j->epilog_ctld) && (j->flags & JOBF_COMPLETING));
	/* of a run that is over the request may have been changed meanwhile */
	if (!j->requeue_pending && j->alloc->config_gen == c->config_gen && j->shape->config_gen == c->config_gen)
		check_rules(c, j);
	check_steps(c, j);
}

static void check_job(const struct core *c, const struct core_job *j)
{
	bool pending = j->state == PB__JOB_STATE__PENDING, live = j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED;
	assert(!pending || j->alloc || !j->x || !j->x->nodes); /* who waits shows no nodes of the run before */
	assert(j->shape && j->shape->refs);
	assert(j->qnode.in == (pending && !j->wait && !het_follows(j)));
	assert(!live || j->alloc);
	assert(!(j->flags & JOBF_COMPLETING) || j->alloc);
	assert(!j->promise || (het_first(c, j)->qnode.in && j->promise->job == j));
	het_check(c, j);
	assert(!j->tasks || (j->array && (j->array->head == j) == pending && (pending || job_state_is_final(j->state)) && !bitset_empty(j->tasks)));
	assert((j->task == UINT32_MAX) || j->array->job_of[j->task] == j->id);
	assert((j->end_prev || j->end_next || c->end_first == j) == (job_state_is_final(j->state) && !(j->flags & JOBF_COMPLETING) && !het_is_open(c, j)));
	assert(!j->epilog_ctld || (j->flags & JOBF_COMPLETING));
	assert(!(j->flags & JOBF_CONFIGURING) || (j->state == PB__JOB_STATE__RUNNING && (!j->steps || (j->steps->id == STEP_ID_EXTERN && !j->steps->next))));
	if (j->alloc)
		check_alloc(c, j);
}

static void check_arrays(const struct core *c)
{
	for (const struct array *a = c->arrays; a; a = a->hh.next) {
		const struct core_job *own = job_find(c, a->id);
		uint32_t jobs = a->head || (own && own->array == a && own->tasks), running = 0, pending = 0;
		for (uint32_t i = 0; i < a->size; i++) {
			const struct core_job *j = a->job_of[i] ? job_find(c, a->job_of[i]) : NULL;
			assert(!a->job_of[i] || (j && j->array == a && j->task == i));
			assert(!j || !a->head || i >= a->head->tasks->size || !bitset_has(a->head->tasks, i));
			jobs += j != NULL;
			running += j && (j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED);
			pending += j && j->state == PB__JOB_STATE__PENDING;
		}
		assert(jobs == a->jobs && running == a->running && pending == a->split_pending);
	}
}

void core_check(const struct core *c)
{
	uint32_t topo_only = 0, jobs = 0, promises = 0, unpromised = 0, queued = 0, in_trees = 0;
	if (!c->configured)
		return;
	for (uint32_t i = 0; i < c->node_n; i++)
		check_node(c, c->node[i]);
	for (uint32_t i = 0; i < c->node_n; i++)
		for (size_t k = 0; k < c->node[i]->held_n; k++)
			topo_only += c->node[i]->held[k].job->alloc->topo_only;
	assert(topo_only == c->topo_only);
	gang_check(c);
	resv_check(c);
	check_waiting(c);
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		check_job(c, j);
		jobs++;
		promises += j->promise != NULL;
		queued += j->qnode.in;
	}
	assert(jobs == c->job_n && promises == c->promise_n);
	for (const struct shape *s = c->shapes; s; s = s->hh.next) {
		unpromised += s->unpromised;
		in_trees += s->queue.count;
		assert(s->anode.in == (s->queue.count > 0 && !s->parked));
		assert(!s->unpromised || s->queue.count);
	}
	for (uint32_t i = 0; i < c->node_n; i++)
		future_check((struct core *)c, c->node[i]);
	assert(unpromised == c->unpromised_n && queued == in_trees);
	check_arrays(c);
	license_check_all(c);
	acct_check(c);
	idem_check(c);
}
