/* reserve.c - advance reservations: scontrol create, update, delete; their beginning and end; the jobs concerned
 * A change is made on a copy of the record, checked, and only then taken over. Invariants (resv_check): node->resv lists exactly the reservations whose
 * sets name the node; names and ids are unique; one that has ended is gone. reserve_time.c knows when, reserve_pick.c where, reserve_use.c for whom. */
#include <stdlib.h>

#include "core/reserve.h"

#define POLL_SEC 60

struct resv *resv_find(const struct core *c, const char *name)
{
	for (uint32_t i = 0; name && i < c->resv_n; i++)
		if (!strcmp(c->resv[i]->rec->name, name))
			return c->resv[i];
	return NULL;
}

struct resv *resv_by_id(const struct core *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->resv_n; i++)
		if (c->resv[i]->id == id)
			return c->resv[i];
	return NULL;
}

void resv_free(struct resv *r)
{
	for (uint32_t i = 0; i < r->part_n; i++)
		free(r->part[i].words);
	free(r->part);
	bitset_destroy(r->nodes);
	license_wants_fini(&r->lic);
	pb__reservation_record__free_unpacked(r->rec, NULL);
	free(r);
}

void resv_free_all(struct core *c)
{
	for (uint32_t i = 0; i < c->resv_n; i++)
		resv_free(c->resv[i]);
	xfree(c->resv);
	c->resv_n = 0;
}

uint32_t resv_node_flags(const struct core_node *n)
{
	uint32_t f = 0;
	for (uint32_t i = 0; i < n->resv_n; i++)
		if (n->resv[i].r->active)
			f |= n->resv[i].r->flags & RESVF_MAINT ? NODEF_MAINTENANCE : NODEF_RESERVED;
	return f & NODEF_MAINTENANCE ? NODEF_MAINTENANCE : f;
}

/* --- jobs concerned --------------------------------------------------------------------------- */

static void fx_resv(struct core *c, const struct resv *r, bool gone)
{
	struct core_effect *e = effects_push(c->fx, gone ? FX_REMOVE_RESV : FX_PERSIST_RESV);
	e->value = r->id;
}

bool resv_names(const struct core_job *j, const char *name)
{
	const char *k = j->shape->resv_key;
	return k && k[0] != '^' && k[0] != '~' && resv_list_has(k, name);
}

/* Somebody holds or waits for it? NULL: nobody. */
const struct core_job *resv_in_use(const struct core *c, const struct resv *r)
{
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			return NULL;
		bool runs = j->alloc && j->alloc->left && j->resv_id == r->id;
		if (runs || (j->state == PB__JOB_STATE__PENDING && resv_names(j, r->rec->name)))
			return j;
	}
}

/* A reservation it asked for is gone: the job is held, or lets the others (or all nodes) do. */
static void job_lost_resv(struct core *c, struct core_job *j, Pb__JobDesc *d, const struct resv *r)
{
	struct str rest = STR_INIT;
	char *list = xstrdup(d->reservation), *at = list, *w;
	while ((w = str_next(&at, ",")))
		if (w[0] && strcmp(w, r->rec->name))
			str_add_sep(&rest, ",", w);
	free(list);
	xstr_set(&d->reservation, rest.len ? rest.data : NULL);
	str_fini(&rest);
	if (!d->reservation && !(r->flags & RESVF_NO_HOLD_JOBS_AFTER) && !j->hold) {
		j->hold = REASON_RESERVATION_DELETED;
		j->flags |= JOBF_RESV_DEL_HOLD;
		char *t = xasprintf("Reservation %s was deleted", r->rec->name);
		xstr_set(&job_x(j)->wait_text, t);
		free(t);
	}
	job_set_desc(j, d);
}

/* Pending jobs' shapes follow what there is; `gone` has just been taken out. */
void resv_jobs_follow(struct core *c, const struct resv *gone)
{
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		struct error err = { 0 };
		if (!j)
			break;
		if (j->state != PB__JOB_STATE__PENDING)
			continue;
		promise_drop(c, j);
		Pb__JobDesc *d = job_desc(j);
		bool lost = gone && d->reservation && resv_list_has(d->reservation, gone->rec->name);
		if (lost)
			job_lost_resv(c, j, d, gone);
		char *key = resv_key(c, j, d);
		if (lost || !str_eq(key, j->shape->resv_key)) {
			(void)job_reshape(c, j, d, &err);
			queue_update(c, j);
		} else if (key && !(j->flags & JOBF_COMPLETING))
			queue_update(c, j);
		if (lost)
			fx_persist(c, j);
		free(key);
		pb__job_desc__free_unpacked(d, NULL);
	}
	sched_all(c);
}

/* Those that wait for one to begin, or might now start elsewhere. */
void resv_jobs_wake(struct core *c)
{
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (j->state == PB__JOB_STATE__PENDING && j->shape->resv_key && !(j->flags & JOBF_COMPLETING))
			queue_update(c, j);
	}
	sched_all(c);
}

void resv_running_follow(struct core *c, const struct resv *r)
{
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (j->resv_id != r->id || j->state != PB__JOB_STATE__RUNNING)
			continue;
		j->resv_end = r->flags & RESVF_FLEX ? 0 : (uint64_t)r->end;
		job_set_limit_timer(c, j);
		fx_persist(c, j);
	}
}

/* --- the clock -------------------------------------------------------------------------------- */

static void edge_timer(struct core *c, const struct resv *r)
{
	int64_t at = r->active || r->flags & RESVF_TIME_FLOAT ? r->end : r->start;
	if (r->rec->float_len_sec)
		return;
	if (r->flags & RESVF_PURGE_COMP && r->active) {
		int64_t poll = now_sec(c) + (r->rec->purge_comp_sec < POLL_SEC ? r->rec->purge_comp_sec : POLL_SEC);
		at = poll < at ? poll : at;
	}
	timer_add(c, (uint64_t)at * 1000, TIMER_RESV, 0, 0);
}

void resv_changed(struct core *c, struct resv *r)
{
	c->resv_gen++;
	resv_texts(c, r);
	fx_resv(c, r, false);
	edge_timer(c, r);
}

void resv_remove(struct core *c, struct resv *r)
{
	uint32_t i = 0;
	while (c->resv[i] != r)
		i++;
	memmove(c->resv + i, c->resv + i + 1, (c->resv_n - i - 1) * sizeof *c->resv);
	c->resv_n--;
	resv_unhold(c, r);
	c->resv_gen++;
	fx_resv(c, r, true);
	resv_jobs_follow(c, r);
	resv_free(r);
}

/* Idle for so long as PURGE_COMP says? */
static bool purge_due(struct core *c, struct resv *r)
{
	if (!(r->flags & RESVF_PURGE_COMP) || !r->active)
		return false;
	if (resv_in_use(c, r)) {
		r->rec->idle_since = now_sec(c);
		return false;
	}
	uint64_t since = r->rec->idle_since > (uint64_t)r->start ? r->rec->idle_since : (uint64_t)r->start;
	r->rec->has_idle_since = true;
	return since + r->rec->purge_comp_sec <= now_sec(c);
}

/* What the time says of one. True: it changed. False in *keep: it is to be removed. */
static bool turn(struct core *c, struct resv *r, bool *keep)
{
	int64_t now = now_sec(c);
	bool changed = false;
	if (r->flags & RESVF_TIME_FLOAT) {
		*keep = r->rec->float_len_sec || now < r->end;
		return false;
	}
	if (!r->active && now >= r->start && now < r->end) {
		r->active = changed = true;
		r->rec->has_idle_since = true;
		r->rec->idle_since = now;
		fx_log(c, LOG_L_INFO, "reservation %s begins", r->rec->name);
	}
	if (now < r->end && !purge_due(c, r))
		return changed;
	fx_log(c, LOG_L_INFO, "reservation %s %s", r->rec->name, now < r->end ? "was idle for long enough and is purged" : "has ended");
	*keep = r->flags & RESVF_RECURRING;
	if (!*keep)
		return true;
	resv_advance(c, r);
	while (r->end <= now)
		resv_advance(c, r);
	r->active = r->start <= now;
	return true;
}

void resv_tick(struct core *c)
{
	bool any = false;
	for (uint32_t i = 0; i < c->resv_n;) {
		struct resv *r = c->resv[i];
		bool keep = true;
		if (turn(c, r, &keep)) {
			any = true;
			c->resv_look = true;
		}
		if (!keep) {
			resv_remove(c, r);
			continue;
		}
		if (any)
			resv_changed(c, r);
		else
			edge_timer(c, r);
		i++;
	}
	if (any)
		resv_jobs_wake(c);
}

/* After an event that took a node away or gave one back. */
void resv_settle(struct core *c)
{
	bool any = false;
	c->resv_look = false;
	for (uint32_t i = 0; i < c->resv_n; i++)
		if (resv_replace(c, c->resv[i])) {
			any = true;
			resv_changed(c, c->resv[i]);
			fx_log(c, LOG_L_INFO, "reservation %s has nodes %s now", c->resv[i]->rec->name, c->resv[i]->rec->nodes);
		}
	if (any)
		sched_all(c);
}

/* Nodes have new indexes, or partitions other nodes. */
void resv_config(struct core *c)
{
	for (uint32_t i = 0; i < c->node_n; i++)
		c->node[i]->resv_n = 0;
	for (uint32_t i = 0; i < c->resv_n; i++) {
		struct resv *r = c->resv[i];
		struct core_part *p = r->flags & RESVF_PART_NODES ? part_find(c, r->rec->partition) : NULL;
		(void)resv_restore_parts(c, r);
		if (p)
			bitset_assign(r->nodes, p->nodes);
		resv_hold(c, r);
		if (r->flags & RESVF_RECURRING && !(r->flags & RESVF_HOURLY)) {
			r->start = zone_utc(&c->params.zone, r->wall_start);
			r->end = zone_utc(&c->params.zone, r->wall_end);
		}
	}
	c->resv_gen++;
}

void resv_job_started(struct core *c, struct core_job *j)
{
	struct resv *r = j->alloc->resv_id ? resv_by_id(c, j->alloc->resv_id) : NULL;
	j->resv_id = r ? r->id : 0;
	j->resv_end = 0;
	if (!r && j->x)
		xfree(j->x->resv);
	if (!r)
		return;
	xstr_set(&job_x(j)->resv, r->rec->name);
	j->resv_end = r->flags & RESVF_FLEX ? 0 : (uint64_t)r->end;
	r->rec->has_used = r->rec->used = true;
	if (r->flags & RESVF_REPLACE)
		c->resv_look = true;
}

void resv_job_left(struct core *c, struct core_job *j)
{
	struct resv *r = j->resv_id ? resv_by_id(c, j->resv_id) : NULL;
	if (!r)
		return;
	r->rec->has_idle_since = true;
	r->rec->idle_since = now_sec(c);
	if (r->flags & RESVF_REPLACE)
		c->resv_look = true;
	if (r->flags & RESVF_PURGE_COMP)
		edge_timer(c, r);
}

/* --- made and stored ones ------------------------------------------------------------------------------ */

void resv_insert(struct core *c, struct resv *r)
{
	uint32_t k = c->resv_n++;
	c->resv = xrealloc(c->resv, (c->resv_n + 1) * sizeof *c->resv);
	for (; k > 0 && c->resv[k - 1]->id > r->id; k--)
		c->resv[k] = c->resv[k - 1];
	c->resv[k] = r;
	c->resv_last_id = r->id > c->resv_last_id ? r->id : c->resv_last_id;
}

void resv_restore(struct core *c, const struct core_event *ev)
{
	Pb__ReservationRecord *m = pb__reservation_record__unpack(NULL, ev->restore.len, ev->restore.data);
	if (!m || !m->id || resv_by_id(c, m->id) || resv_find(c, m->name)) {
		c->unread++;
		fx_log(c, LOG_L_ERROR, "a stored reservation of %zu bytes cannot be read or is there twice; it is left alone", ev->restore.len);
		if (m)
			pb__reservation_record__free_unpacked(m, NULL);
		return;
	}
	struct resv *r = xcalloc(1, sizeof *r);
	r->id = m->id;
	r->rec = m;
	r->flags = m->flags;
	r->start = (int64_t)m->start_time;
	r->end = (int64_t)m->end_time;
	r->wall_start = m->wall_start;
	r->wall_end = m->wall_end;
	(void)license_parse(c, m->licenses, &r->lic, NULL);
	(void)resv_restore_parts(c, r);
	resv_insert(c, r);
	resv_hold(c, r);
	c->resv_gen++;
}

void resv_restored(struct core *c)
{
	if (c->resv_n)
		resv_tick(c);
}

Pb__ReservationRecord *core_resv_record(const struct core *c, size_t i)
{
	const struct resv *r = c->resv[i];
	Pb__ReservationRecord *m = (Pb__ReservationRecord *)message_copy((const ProtobufCMessage *)r->rec);
	struct resv_window w = { r->start, r->end };
	if (r->flags & RESVF_TIME_FLOAT)
		(void)resv_occurrence(c, r, now_sec(c), &w);
	m->start_time = (uint64_t)w.start;
	m->end_time = (uint64_t)w.end;
	m->has_active = true;
	m->active = r->active;
	return m;
}

size_t core_resv_count(const struct core *c) { return c->resv_n; }

Pb__ReservationRecord *core_resv_by_id(const struct core *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->resv_n; i++)
		if (c->resv[i]->id == id)
			return core_resv_record(c, i);
	return NULL;
}

void resv_check(const struct core *c)
{
	for (uint32_t i = 0; i < c->resv_n; i++) {
		const struct resv *r = c->resv[i];
		uint32_t k = 0;
		assert(r->id && r->nodes->size == c->node_n && (!i || c->resv[i - 1]->id < r->id) && resv_find(c, r->rec->name) == r);
		assert(r->start < r->end && r->id <= c->resv_last_id);
		assert(!r->partial || r->part_n == bitset_count(r->nodes));
		bitset_for(r->nodes, n) {
			uint32_t here = 0;
			for (uint32_t x = 0; x < c->node[n]->resv_n; x++)
				here += c->node[n]->resv[x].r == r;
			assert(here == 1);
			assert(!r->partial || r->part[k++].node == n);
		}
	}
	for (uint32_t n = 0; n < c->node_n; n++)
		for (uint32_t x = 0; x < c->node[n]->resv_n; x++)
			assert(resv_by_id(c, c->node[n]->resv[x].r->id) == c->node[n]->resv[x].r && bitset_has(c->node[n]->resv[x].r->nodes, n));
}
