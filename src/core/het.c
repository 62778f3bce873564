/* het.c - heterogeneous jobs: several jobs, their components, that start together or not at all
 * The first component leads: it alone stands in the queue (when nothing holds any of them back), runs the batch script, and counts the steps. The others
 * follow: they wait with `wait` NONE outside every queue, and are placed after the leader, each counting those before it. While they wait, what
 * ends one ends all; once they run, one that ends leaves the others alone, unless it is the leader. All are requeued together. None is
 * forgotten before all have ended, so that a requeue finds them. */
#include <stdlib.h>

#include "core/reserve.h"

#define PROMISE_ROUNDS 16
#define PLACE_ROUNDS 4         /* orders in which the components are placed */

void het_enter(struct core *c, struct core_job *j, uint32_t id, uint32_t at)
{
	struct het *h;
	HASH_FIND(hh, c->hets, &id, sizeof id, h);
	if (!h) {
		h = xcalloc(1, sizeof *h);
		h->id = id;
		HASH_ADD(hh, c->hets, id, sizeof h->id, h);
	}
	assert(at < HET_MAX && !h->job[at]);
	h->job[at] = j->id;
	h->n = at + 1 > h->n ? at + 1 : h->n;
	h->jobs++;
	j->het = h;
	j->het_at = at;
}

static void forget_places(struct het *h)
{
	for (uint32_t i = 0; i < h->n; i++) {
		alloc_free(h->alloc[i]);
		h->alloc[i] = NULL;
	}
}

static void het_free(struct core *c, struct het *h)
{
	forget_places(h);
	HASH_DEL(c->hets, h);
	free(h);
}

void het_gone(struct core *c, struct core_job *j)
{
	struct het *h = j->het;
	if (!h)
		return;
	h->job[j->het_at] = 0;
	j->het = NULL;
	if (!--h->jobs)
		het_free(c, h);
}

void het_free_all(struct core *c)
{
	struct het *h, *tmp;
	HASH_ITER(hh, c->hets, h, tmp)
		het_free(c, h);
}

struct core_job *het_job(const struct core *c, const struct het *h, uint32_t at) { return h->job[at] ? job_find(c, h->job[at]) : NULL; }

struct core_job *het_first(const struct core *c, const struct core_job *j)
{
	struct core_job *lead = j->het ? het_job(c, j->het, 0) : NULL;
	return lead ? lead : (struct core_job *)j;
}

char *het_ids(const struct het *h)
{
	struct str s = STR_INIT;
	for (uint32_t i = 0, k; i < h->n; i = k) {
		for (k = i + 1; k < h->n && h->job[k] == h->job[k - 1] + 1; k++)
			;
		if (!h->job[i])
			continue;
		str_addf(&s, "%s%u", s.len ? "," : "", h->job[i]);
		if (k - i > 1)
			str_addf(&s, "-%u", h->job[k - 1]);
	}
	return str_take(&s);
}

bool het_is_open(const struct core *c, const struct core_job *j)
{
	for (uint32_t i = 0; j->het && i < j->het->n; i++) {
		const struct core_job *m = het_job(c, j->het, i);
		if (m && (!job_state_is_final(m->state) || (m->flags & JOBF_COMPLETING)))
			return true;
	}
	return false;
}

/* All are forgotten at once, so that what is known is always whole. */
void het_forget_others(struct core *c, const struct core_job *j)
{
	for (uint32_t i = 0; j->het && i < j->het->n; i++) {
		struct core_job *m = het_job(c, j->het, i);
		if (m && m != j)
			job_forget(c, m);
	}
}

static void list_all(struct core *c, const struct het *h)
{
	for (uint32_t i = 0; i < h->n; i++) {
		struct core_job *m = het_job(c, h, i);
		if (m)
			life_listed(c, m);
	}
}

/* --- starting --------------------------------------------------------------------------------- */

/* As if it had started: what others are placed against. */
static void try_hold(struct core *c, struct core_job *j, struct alloc *a, struct core_part *part)
{
	j->alloc = a;
	j->state = PB__JOB_STATE__RUNNING;
	j->start = now_sec(c);
	j->part = part->index;
	for (uint32_t i = 0; i < a->n; i++)
		node_try(c, j, i, true);
	license_lend(c, &j->shape->lic, false);
}

static void try_release(struct core *c, struct core_job *j)
{
	license_lend(c, &j->shape->lic, true);
	for (uint32_t i = j->alloc->n; i-- > 0;)
		node_try(c, j, i, false);
	j->alloc = NULL;
	j->state = PB__JOB_STATE__PENDING;
	j->start = 0;
	j->part = UINT32_MAX;
}

/* What its promise says, if that is free. */
static struct alloc *place_promised(struct core *c, struct core_job *m, struct core_part **ret_part)
{
	const struct promise *p = m->promise;
	struct when now = { .j = m, .end_ms = c->now_ms + job_length_ms(m), .part = c->part[p->part] };
	struct fit *f = xcalloc(p->n, sizeof *f);
	bool free_now = !m->shape->resv_key && license_room(c, m, &m->shape->lic);
	for (uint32_t i = 0; i < p->n && free_now; i++) {
		const struct promise_on *o = &p->on[i];
		struct core_node *n = c->node[o->node];
		struct avail a;
		avail_of(c, m->shape, &now, n, &a);
		avail_spare(c, &now, n, &a);
		f[i] = (struct fit){ .node = o->node, .tasks = o->tasks, .cpus = m->shape->own_spec ? inside_cap(m->shape, c->node[o->node]) : o->cpus, .mem = o->mem };
		memcpy(f[i].gres, o->gres, sizeof f[i].gres);
		free_now = bitset_has(c->up, o->node) && a.cpus >= o->cpus && (!c->params.select_memory || a.mem >= o->mem) && (!m->shape->exclusive || bitset_has(c->idle, o->node));
		for (uint32_t g = 0; g < n->gres_n; g++)
			free_now = free_now && a.gres[g] >= o->gres[g];
	}
	struct alloc *a = free_now ? alloc_build(c, m->shape, now.part, f, p->own, &now) : NULL;
	free(f);
	*ret_part = c->part[p->part];
	return a;
}

/* One after the other in this order, each beside those before it; *ret_failed: index in the order of the first without room. */
static bool place_in_order(struct core *c, struct het *h, const uint32_t *order, bool as_promised, uint32_t *ret_failed)
{
	uint32_t n = 0;
	forget_places(h);
	for (; n < h->n; n++) {
		uint32_t k = order[n];
		struct core_job *m = het_job(c, h, k);
		h->alloc[k] = as_promised ? place_promised(c, m, &h->part[k]) : place_one(c, m, m->time_min, &h->part[k]);
		if (!h->alloc[k])
			break;
		try_hold(c, m, h->alloc[k], h->part[k]);
	}
	for (uint32_t i = n; i-- > 0;)
		try_release(c, het_job(c, h, order[i]));
	if (n < h->n)
		forget_places(h);
	*ret_failed = n;
	return n == h->n;
}

/* Where those before it leave no room to one, it chooses first. as_promised: exactly what the plan gives them. */
static bool place_all(struct core *c, struct het *h, bool as_promised)
{
	uint32_t order[HET_MAX], failed;
	for (uint32_t i = 0; i < h->n; i++)
		order[i] = i;
	for (uint32_t round = 0; round < PLACE_ROUNDS; round++) {
		if (place_in_order(c, h, order, as_promised, &failed))
			return true;
		if (!failed || as_promised)
			return false;
		uint32_t first = order[failed];
		memmove(order + 1, order, failed * sizeof *order);
		order[0] = first;
	}
	return false;
}

bool het_wants_licenses(const struct core *c, const struct core_job *lead)
{
	for (uint32_t i = 1; lead->het && i < lead->het->n; i++) {
		const struct core_job *m = het_job(c, lead->het, i);
		if (m && m->shape->lic.n)
			return true;
	}
	return false;
}

/* All nodes as if nothing were on them, and back. Of reservations and licenses in use nothing is left either. */
static void empty_swap(struct core *c, struct core_node *save, struct bitset **sets, bool empty)
{
	for (uint32_t i = 0; i < c->node_n; i++) {
		struct core_node *n = c->node[i];
		if (!empty) {
			free(n->used);
			free(n->shares);
			free(n->held);
			future_free(n->future);
			for (uint32_t g = 0; g < n->gres_n; g++)
				n->gres[g].used = save[i].gres[g].used;
			free(save[i].gres);
			save[i].gres = n->gres;
			*n = save[i];
			continue;
		}
		save[i] = *n;
		save[i].gres = xcalloc(n->gres_n + 1, sizeof *n->gres);
		if (n->gres_n)
			memcpy(save[i].gres, n->gres, n->gres_n * sizeof *n->gres);
		for (uint32_t g = 0; g < n->gres_n; g++)
			n->gres[g].used = 0;
		n->used = xcalloc(n->cpu_words + n->dev_words + 1, sizeof *n->used);
		n->shares = NULL;
		n->held = NULL;
		n->future = NULL;
		n->held_n = n->held_cap = n->cpus_used = n->whole = n->owners = n->plan_picky = n->plan_n = n->resv_n = 0;
		n->mem_used = 0;
	}
	struct bitset **now[] = { &c->up, &c->roomy, &c->idle };
	for (int i = 0; i < 3; i++) {
		struct bitset *b = *now[i];
		*now[i] = sets[i];
		sets[i] = b;
	}
}

/* Could all of them ever run together, on the nodes as they are configured? One that could not must not keep others waiting behind it. */
static bool het_possible(struct core *c, struct het *h)
{
	struct core_node *save = xcalloc(c->node_n + 1, sizeof *save);
	struct license *lic = xcalloc(c->lic_n + 1, sizeof *lic);
	struct bitset *sets[3];
	bool yes = true;
	for (int i = 0; i < 3; i++) {
		sets[i] = bitset_create(c->node_n);
		bitset_fill(sets[i]);
	}
	if (c->lic_n)
		memcpy(lic, c->lic, c->lic_n * sizeof *lic);
	for (uint32_t i = 0; i < c->lic_n; i++)
		c->lic[i].used = 0;
	empty_swap(c, save, sets, true);
	for (uint32_t i = 0; i < h->n; i++)
		yes = yes && !het_job(c, h, i)->shape->resv_key;
	yes = !yes || place_all(c, h, false); /* of those in reservations it is not known */
	forget_places(h);
	empty_swap(c, save, sets, false);
	if (c->lic_n)
		memcpy(c->lic, lic, c->lic_n * sizeof *lic);
	for (int i = 0; i < 3; i++)
		bitset_destroy(sets[i]);
	free(save);
	free(lic);
	return yes;
}

/* What the leader would get if all can start now, the caller's; what the others would is kept for het_start. Taken as they come the first may leave too little
 * to the next: then the plan is followed, if it says that they start now. */
struct alloc *het_place(struct core *c, struct core_job *lead, struct core_part **ret_part)
{
	struct het *h = lead->het;
	bool planned = lead->promise && lead->promise->n && lead->promise->start_ms <= c->now_ms;
	for (uint32_t i = 0; i < h->n; i++)
		if (!het_job(c, h, i))
			return NULL;
	if (!place_all(c, h, false) && !(planned && place_all(c, h, true)))
		return NULL;
	struct alloc *a = h->alloc[0];
	h->alloc[0] = NULL;
	*ret_part = h->part[0];
	return a;
}

void het_start(struct core *c, struct core_job *lead, struct core_part *p, struct alloc *a)
{
	struct het *h = lead->het;
	queue_remove(c, lead);
	promise_drop(c, lead);
	h->busy = true;
	for (uint32_t i = 1; i < h->n; i++) {
		struct core_job *m = het_job(c, h, i);
		struct alloc *mine = h->alloc[i];
		h->alloc[i] = NULL;
		m->backfilled = lead->backfilled;
		job_start(c, m, h->part[i], mine);
	}
	job_start(c, lead, p, a);
	h->busy = false;
}

/* All at the same time, each counting the promises to those before it: where one can start only later, all are looked at again from then on. */
bool het_promise(struct core *c, struct core_job *lead, enum plan_how how)
{
	struct het *h = lead->het;
	uint64_t from = c->now_ms;
	bool done = false, failed = false;
	how = how == PLAN_FRESH ? PLAN_WHOLE : how;
	for (uint32_t round = 0; round < PROMISE_ROUNDS && !done && !failed; round++) {
		promise_drop(c, lead);
		done = true;
		for (uint32_t i = 0; i < h->n && done; i++) {
			struct core_job *m = het_job(c, h, i);
			c->plan_from_ms = from;
			failed = !m || !promise_one(c, m->shape, m, how);
			done = !failed && (!i || m->promise->start_ms <= from);
			from = !failed && m->promise->start_ms > from ? m->promise->start_ms : from;
		}
	}
	c->plan_from_ms = 0;
	lead->shape->gap_ms = 0;
	if (!done)
		promise_drop(c, lead);
	return done;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* The leader enters the queue when nothing holds back any of them; else it shows what holds back the first that something does. */
void het_queue(struct core *c, struct het *h)
{
	struct core_job *lead = het_job(c, h, 0), *m;
	uint8_t wait = REASON_NONE;
	bool all = true;
	if (h->busy || !lead)
		return;
	for (uint32_t i = 0; i < h->n; i++)
		if ((m = het_job(c, h, i)))
			queue_remove(c, m);
	for (uint32_t i = 0; i < h->n; i++) {
		m = het_job(c, h, i);
		bool free = m && m->state == PB__JOB_STATE__PENDING && queue_wait(c, m);
		wait = !wait && m && !free ? m->wait : wait;
		all = all && free;
	}
	if (lead->state != PB__JOB_STATE__PENDING)
		return;
	if (all && !het_possible(c, h)) {
		wait = REASON_BAD_CONSTRAINTS;
		all = false;
	}
	if (!all) {
		lead->wait = lead->shown = lead->wait ? lead->wait : wait;
		return;
	}
	queue_insert(c, lead);
	for (uint32_t i = 1; i < h->n; i++) { /* in the order of the queue they come right behind it */
		m = het_job(c, h, i);
		m->tier = lead->tier;
		m->reserved = lead->reserved;
		m->key = lead->key;
	}
}

/* --- ending ----------------------------------------------------------------------------------- */

/* One has ended: with the leader, or while they wait, all end as it did. */
void het_ended(struct core *c, struct core_job *j)
{
	struct het *h = j->het;
	bool waits = false;
	if (!h || h->busy)
		return;
	for (uint32_t i = 0; i < h->n; i++) {
		const struct core_job *m = het_job(c, h, i);
		waits = waits || (m && m->state == PB__JOB_STATE__PENDING);
	}
	h->busy = true;
	for (uint32_t i = 0; (waits || !j->het_at) && i < h->n; i++) {
		struct core_job *m = het_job(c, h, i);
		if (!m || job_state_is_final(m->state))
			continue;
		m->cancelled_by = j->cancelled_by;
		m->cancel_uid = j->cancel_uid;
		if (j->x && j->x->why)
			xstr_set(&job_x(m)->why, j->x->why);
		if (j->x)
			job_x(m)->end_reason = j->x->end_reason;
		if (m->requeue_pending)
			job_cancel(c, m, j->cancel_uid);
		else
			job_end(c, m, j->state, 0);
	}
	h->busy = false;
}

/* After a restart some may have lost their nodes: what that means for the others. */
void het_restored(struct core *c)
{
	for (struct het *h = c->hets; h; h = h->hh.next) {
		struct core_job *lead = het_job(c, h, 0);
		if (lead && job_state_is_final(lead->state))
			het_ended(c, lead);
		list_all(c, h);
	}
}

/* Nothing is left of it on any node: when that is so of all, they will be forgotten in time. */
void het_clean(struct core *c, const struct core_job *j)
{
	if (j->het && !het_is_open(c, j))
		list_all(c, j->het);
}

/* All go back to the queue, those that have ended by themselves, too. False: it is no heterogeneous job, or all are being requeued already. */
bool het_requeue(struct core *c, struct core_job *j, bool hold, uint32_t flags, uint32_t delay_sec)
{
	struct het *h = j->het;
	if (!h || h->busy)
		return false;
	h->busy = true;
	for (uint32_t i = 0; i < h->n; i++) {
		struct core_job *m = het_job(c, h, i);
		m->hold = j->hold;
		job_requeue(c, m, hold, flags, delay_sec);
	}
	h->busy = false;
	het_queue(c, h);
	return true;
}

/* --- invariants ------------------------------------------------------------------------------- */

/* All wait, or none: a component never runs while another has yet to start. */
void het_check(const struct core *c, const struct core_job *j)
{
	const struct het *h = j->het;
	const struct core_job *lead = h ? het_job(c, h, 0) : NULL;
	uint32_t jobs = 0, live = 0;
	if (!h)
		return;
	assert(h->job[j->het_at] == j->id && !h->busy);
	for (uint32_t i = 0; i < h->n; i++) {
		const struct core_job *m = het_job(c, h, i);
		jobs += m != NULL;
		live += m && !job_state_is_final(m->state);
		assert(!m || (m->state == PB__JOB_STATE__PENDING) == (j->state == PB__JOB_STATE__PENDING));
		assert(!m || !m->promise == !j->promise); /* all are promised a start, or none, */
		assert(!m || !m->promise || m->promise->start_ms == j->promise->start_ms); /* and the same */
	}
	assert(jobs == h->jobs && jobs == h->n);
	assert(!het_follows(j) || !j->qnode.in);
	assert(!het_follows(j) || !j->promise || (lead && lead->qnode.in));
	assert(j->het_at || !live == job_state_is_final(j->state)); /* the leader lasts longest */
}
