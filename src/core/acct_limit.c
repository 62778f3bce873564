/* acct_limit.c - limits of QOS and associations: what is counted, what a job would make of it, and shapes that wait for that
 * Order (resource_limits.html): the partition's QOS, the job's (the other way round with OverPartQOS; what the first says the second cannot), then the
 * association and those above it. Max limits of an association hold for those below that say nothing themselves; Grp limits hold on each level. */
#include <stdlib.h>

#include "core/acct.h"

static const struct { uint32_t assoc, qos; } first_reason[] = {
#define LIMIT(number, symbol, what, scope, type, qos, assoc, areason, qreason, works) [number] = { REASON_##areason, REASON_##qreason },
#include "tables/limits.def"
#undef LIMIT
};

/* --- what it takes -------------------------------------------------------------------------------- */

uint64_t acct_of_sum(const struct tres_sum *t, const char *name)
{
	uint64_t n = 0;
	if (!strcmp(name, "cpu"))
		return t->cpu;
	if (!strcmp(name, "mem"))
		return t->mem_mb;
	if (!strcmp(name, "node"))
		return t->node;
	if (!strcmp(name, "billing"))
		return t->billing;
	if (!str_starts(name, "gres/"))
		return 0;
	const char *type = strchr(name += 5, ':');
	size_t len = type ? (size_t)(type - name) : strlen(name);
	for (size_t i = 0; i < t->gres_n; i++)
		if (strlen(t->gres[i].name) == len && !strncmp(t->gres[i].name, name, len) && (!type || !strcmp(t->gres[i].type, type + 1)))
			n += t->gres[i].count;
	return n;
}

uint64_t acct_licenses(const struct core *c, const struct shape *s, const char *name)
{
	for (uint32_t i = 0; i < s->lic.n; i++)
		if (!strcmp(atom_text(c, s->lic.w[i].name), name) && (!s->lic.any || !i))
			return s->lic.w[i].count;
	return 0;
}

/* Adds what a job takes: of its allocation, or (a NULL) the least its request can come to. */
static void want_add(const struct core *c, const struct core_job *j, const struct core_part *p, const struct alloc *a, struct acct_want *w)
{
	struct tres_sum all, one;
	tres_sum(c, j->shape, a, UINT32_MAX, &all);
	billing_set(c, p, j->shape, &all);
	w->jobs++;
	w->alloc = a;
	w->billing += all.billing;
	w->minutes = j->time_min > w->minutes ? j->time_min : w->minutes;
	for (uint32_t i = 0; i < c->acct->tres_n; i++) {
		const char *name = atom_text(c, c->acct->tres[i]);
		w->tres[i] += str_starts(name, "license/") ? acct_licenses(c, j->shape, name + 8) : acct_of_sum(&all, name);
		if (!a && j->shape->min_nodes == j->shape->max_nodes)
			w->node[i] = (w->tres[i] + j->shape->min_nodes - 1) / j->shape->min_nodes;
	}
	for (uint32_t k = 0; a && c->acct->limited && k < a->n; k++) {
		tres_sum(c, j->shape, a, k, &one);
		for (uint32_t i = 0; i < c->acct->tres_n; i++) {
			uint64_t n = acct_of_sum(&one, atom_text(c, c->acct->tres[i]));
			w->node[i] = n > w->node[i] ? n : w->node[i];
		}
	}
}

/* --- which limits hold ---------------------------------------------------------------------------- */

static const struct acct_tally nothing;

static const struct acct_tally *one_of(const struct acct_one *list, uint32_t who)
{
	struct acct_one *o;
	HASH_FIND(hh, list, &who, sizeof who, o);
	return o ? &o->t : &nothing;
}

static const struct acct_tally *tally_of(const struct acct_qos *q, const struct core_job *j, enum limit_scope scope)
{
	if (scope == LIMIT_PER_USER)
		return one_of(q->users, j->user);
	if (scope == LIMIT_PER_ACCOUNT)
		return one_of(q->accounts, j->assoc ? j->assoc->key.account : 0);
	return &q->all;
}

static bool said(const struct acct_limit *l, uint32_t n, const Pb__Limit *m)
{
	for (uint32_t i = 0; i < n; i++)
		if (l[i].m->kind == m->kind && str_eq(l[i].m->tres, m->tres))
			return true;
	return false;
}

static uint32_t qos_limits(const struct acct_qos *q, const struct core_job *j, struct acct_limit *ret, uint32_t n)
{
	uint32_t before = n;
	for (size_t i = 0; q && i < q->m->n_limit && n < ACCT_LIMITS_MAX; i++) {
		const struct limit_row *row = limit_row(q->m->limit[i]->kind);
		if (row && row->works && !said(ret, before, q->m->limit[i]))
			ret[n++] = (struct acct_limit){ q->m->limit[i], row, tally_of(q, j, row->scope), q, NULL, 0 };
	}
	return n;
}

uint32_t acct_limits(const struct core *c, const struct core_job *j, const struct core_part *p, struct acct_limit *ret)
{
	const struct acct_qos *first = p ? p->qos : NULL, *second = j->qos;
	uint32_t n = 0, own;
	if (second && second->m->flags & QOSF_OVER_PART) {
		first = j->qos;
		second = p ? p->qos : NULL;
	}
	n = qos_limits(first, j, ret, n);
	n = own = first == second ? n : qos_limits(second, j, ret, n);
	for (const struct acct_assoc *s = j->assoc; s; s = s->parent) {
		uint32_t level = n;
		for (size_t i = 0; i < s->m->n_limit && n < ACCT_LIMITS_MAX; i++) {
			const struct limit_row *row = limit_row(s->m->limit[i]->kind);
			if (!row || !row->works || (row->scope != LIMIT_PER_GROUP && said(ret + own, level - own, s->m->limit[i])))
				continue; /* Max: whoever is nearer says it */
			const struct acct_assoc *of = row->scope == LIMIT_PER_GROUP ? s : j->assoc;
			ret[n++] = (struct acct_limit){ s->m->limit[i], row, &of->all, NULL, s, row->what == LIMIT_OF_TRES && j->qos ? j->qos->m->limit_factor : 0 };
		}
	}
	(void)c;
	return n;
}

uint32_t acct_tres_at(const struct core *c, const char *name)
{
	uint32_t id = atom_find(c, name), i = 0;
	while (i < c->acct->tres_n && c->acct->tres[i] != id)
		i++;
	return i;
}

static uint32_t reason_of(const struct acct_limit *l)
{
	static const char *const class[] = { "cpu", "mem", "node", "billing", "gres/", "license/" };
	uint32_t r = l->qos ? first_reason[l->m->kind].qos : first_reason[l->m->kind].assoc;
	for (uint32_t i = 0; l->m->tres && i < 6; i++)
		if (str_starts(l->m->tres, class[i]))
			return r + i;
	return r;
}

/* Nodes that it would add to those in use. Before it has any it may yet share all of them. */
static uint64_t nodes_more(const struct acct_tally *t, const struct acct_want *w, uint64_t wants)
{
	uint64_t n = 0;
	if (!w->alloc)
		return wants > t->nodes ? wants - t->nodes : 0;
	for (uint32_t i = 0; i < w->alloc->n; i++)
		n += !t->on || !t->on[w->alloc->on[i].node];
	return n;
}

int64_t acct_run_seconds(const struct core *c, const struct acct_tally *t, uint32_t i)
{
	int64_t left = t->until[i] - (int64_t)t->tres[i] * ((int64_t)now_sec(c) - c->acct->base);
	return left > 0 ? left : 0;
}

static const struct acct_used *used_of(const struct acct_limit *l) { return l->qos ? &l->qos->used : &l->assoc->used; }

static uint64_t minutes_of(const struct acct_want *w, uint32_t i) { return w->tres[i] && w->minutes == TIME_INFINITE ? UINT64_MAX / 4 : w->tres[i] * w->minutes; }

/* GrpTRESMins: something is left of it, or (safe) all that it and what runs may yet use. */
static bool minutes_in_the_way(const struct core *c, const struct acct_limit *l, const struct acct_want *w, uint32_t i, struct acct_hit *ret)
{
	uint64_t used = (uint64_t)(used_of(l)->tres[i] / 60), bound = l->m->value;
	bool safe = c->params.enforce & ENFORCE_SAFE;
	ret->used = used + (safe ? (uint64_t)acct_run_seconds(c, l->t, i) / 60 : 0);
	ret->want = safe ? minutes_of(w, i) : 0;
	if (w->safe_factor > 0)
		ret->want = (uint64_t)((double)ret->want * w->safe_factor);
	ret->alone = ret->want > bound;
	return used >= bound || ret->used + ret->want > bound;
}

uint64_t acct_limit_bound(const struct acct_limit *l) { return l->times > 0 ? (uint64_t)((double)l->m->value * l->times) : l->m->value; }

/* Does it hold back a job that wants this much? Submit limits are submit's. */
static bool in_the_way(const struct core *c, const struct acct_limit *l, const struct acct_want *w, struct acct_hit *ret)
{
	uint32_t i = l->m->tres ? acct_tres_at(c, l->m->tres) : 0;
	uint64_t bound = acct_limit_bound(l);
	bool shared = l->row->scope == LIMIT_PER_GROUP || l->row->scope == LIMIT_PER_USER || l->row->scope == LIMIT_PER_ACCOUNT;
	if (l->m->tres ? i == c->acct->tres_n : l->row->what == LIMIT_OF_TRES || l->row->what == LIMIT_OF_RUNMINS || l->row->what == LIMIT_OF_MINS)
		return false; /* of a resource that is not counted, or of none */
	*ret = (struct acct_hit){ .by = *l, .reason = reason_of(l) };
	switch (l->row->what) {
	case LIMIT_OF_JOBS: ret->used = l->t->jobs; ret->want = w->jobs; break;
	case LIMIT_OF_TRES:
		if (shared && !strcmp(l->m->tres, "node")) {
			ret->used = l->t->nodes;
			ret->want = nodes_more(l->t, w, w->tres[i]);
			ret->alone = w->tres[i] > bound;
			return ret->used + ret->want > bound;
		}
		ret->used = shared ? l->t->tres[i] : 0; ret->want = l->row->scope == LIMIT_PER_NODE ? w->node[i] : w->tres[i]; break;
	case LIMIT_OF_RUNMINS:
		ret->used = shared ? (uint64_t)acct_run_seconds(c, l->t, i) / 60 : 0;
		ret->want = minutes_of(w, i);
		break;
	case LIMIT_OF_MINS: return minutes_in_the_way(c, l, w, i, ret);
	case LIMIT_OF_WALL:
		if (shared) {
			ret->used = (uint64_t)(used_of(l)->wall / 60);
			return ret->used >= bound;
		}
		ret->want = w->minutes;
		break;
	default: return false;
	}
	ret->alone = ret->want > bound;
	if (l->row->scope == LIMIT_PER_LEAST)
		return ret->alone = ret->want < bound;
	return ret->want && ret->used + ret->want > bound;
}

/* All components of a heterogeneous job that have the same association and QOS are one request. */
static void want_of(const struct core *c, const struct core_job *j, const struct core_part *p, const struct alloc *a, struct acct_want *w)
{
	p = p ? p : j->shape->part_n ? j->shape->part[0] : NULL;
	*w = (struct acct_want){ .safe_factor = j->qos && j->qos->m->flags & QOSF_USAGE_SAFE && j->qos->m->has_usage_factor ? j->qos->m->usage_factor : 0 };
	want_add(c, j, p, a, w);
	for (uint32_t i = 0; j->het && i < j->het->n; i++) {
		const struct core_job *m = het_job(c, j->het, i);
		if (m && m != j && m->assoc == j->assoc && m->qos == j->qos && m->state == PB__JOB_STATE__PENDING)
			want_add(c, m, a ? j->het->part[i] : m->shape->part[0], a ? j->het->alloc[i] : NULL, w);
	}
}

static bool stops_one(const struct core *c, const struct core_job *j, const struct core_part *p, const struct alloc *a, struct acct_hit *ret)
{
	struct acct_limit l[ACCT_LIMITS_MAX];
	struct acct_want w;
	uint32_t n = acct_limits(c, j, p, l);
	if (!n)
		return false;
	want_of(c, j, p, a, &w);
	for (uint32_t i = 0; i < n; i++)
		if (in_the_way(c, &l[i], &w, ret))
			return true;
	return false;
}

/* Its only partition, whose QOS holds wherever it starts. */
static const struct core_part *only_part(const struct core_job *j) { return j->shape->part_n == 1 ? j->shape->part[0] : NULL; }

bool acct_stops(const struct core *c, const struct core_job *j, const struct core_part *p, const struct alloc *a, struct acct_hit *ret)
{
	struct acct_hit unused;
	ret = ret ? ret : &unused;
	if (!c->acct || !c->acct->limited)
		return false;
	if (stops_one(c, j, p ? p : only_part(j), a, ret))
		return true;
	for (uint32_t i = 1; het_leads(j) && i < j->het->n; i++) {
		const struct core_job *m = het_job(c, j->het, i);
		if (m && (m->assoc != j->assoc || m->qos != j->qos || only_part(m) != only_part(j)) && stops_one(c, m, a ? j->het->part[i] : only_part(m), a ? j->het->alloc[i] : NULL, ret))
			return true;
	}
	return false;
}

bool acct_part_open(const struct core *c, const struct core_job *j, const struct core_part *p)
{
	return !c->acct || !c->acct->limited || !p->qos || j->shape->part_n == 1 || !acct_stops(c, j, p, NULL, NULL);
}

uint32_t acct_why(const struct core *c, const struct core_job *j, struct acct_hit *ret, uint32_t max)
{
	struct acct_limit l[ACCT_LIMITS_MAX];
	struct acct_want w;
	uint32_t n, k = 0;
	if (!c->acct || !c->acct->limited)
		return 0;
	n = acct_limits(c, j, only_part(j), l);
	want_of(c, j, NULL, NULL, &w);
	for (uint32_t i = 0; i < n && k < max; i++)
		k += in_the_way(c, &l[i], &w, &ret[k]);
	return k;
}

/* --- submission ------------------------------------------------------------------------------------ */

/* Does this job count where that limit counts? */
static bool counts_for(const struct acct_limit *l, const struct core_job *of, const struct core_job *j)
{
	if (job_state_is_final(j->state) || !j->assoc)
		return false;
	if (l->assoc) {
		const struct acct_assoc *s = j->assoc;
		if (l->row->scope != LIMIT_PER_GROUP)
			return s == of->assoc;
		while (s && s != l->assoc)
			s = s->parent;
		return s != NULL;
	}
	bool in = j->qos == l->qos;
	for (uint32_t i = 0; !in && i < j->shape->part_n; i++)
		in = j->shape->part[i] && j->shape->part[i]->qos == l->qos;
	return in && (l->row->scope != LIMIT_PER_USER || j->user == of->user) && (l->row->scope != LIMIT_PER_ACCOUNT || (of->assoc && j->assoc->key.account == of->assoc->key.account));
}

static uint64_t submitted(const struct core *c, const struct acct_limit *l, const struct core_job *of)
{
	uint64_t n = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			return n;
		if (counts_for(l, of, j))
			n += j->tasks ? bitset_count(j->tasks) : 1;
	}
}

/* The job is made, and not yet shown to anybody: it counts itself. */
int acct_submit_limits(const struct core *c, const struct core_job *j, struct error *err)
{
	struct acct_limit l[ACCT_LIMITS_MAX];
	struct acct_want w;
	struct acct_hit hit;
	if (!c->acct || !c->acct->limited)
		return 0;
	uint32_t n = acct_limits(c, j, only_part(j), l);
	bool deny = j->qos && j->qos->m->flags & QOSF_DENY_LIMIT;
	want_of(c, j, NULL, NULL, &w);
	for (uint32_t i = 0; i < n; i++) {
		bool over = l[i].row->what == LIMIT_OF_SUBMIT && submitted(c, &l[i], j) > l[i].m->value;
		if (over || (deny && in_the_way(c, &l[i], &w, &hit) && hit.alone))
			return error_set(err, ESLURM_ACCOUNTING_POLICY, "%s", reason_name(reason_of(&l[i])));
	}
	return 0;
}

uint32_t acct_default_minutes(struct core *c, uint32_t user, const Pb__JobDesc *d)
{
	struct acct_limit l[ACCT_LIMITS_MAX];
	struct core_job j = { .user = user };
	struct core_part *part[JOB_PARTS_MAX];
	uint32_t n = 0;
	if (!c->acct || !c->acct->limited || submit_partitions(c, d, part, &n, NULL) < 0)
		return 0;
	acct_bind(c, &j, d);
	n = acct_limits(c, &j, part[0], l);
	uint32_t least = 0;
	for (uint32_t i = 0; i < n; i++)
		if (l[i].m->kind == LIMIT_MAX_WALL && (!least || l[i].m->value < least))
			least = l[i].m->value < TIME_INFINITE ? (uint32_t)l[i].m->value : TIME_INFINITE;
	return least;
}

/* --- counting --------------------------------------------------------------------------------------- */

static void tally_nodes(const struct core *c, struct acct_tally *t, const struct acct_counted *k, int by)
{
	if (k->on_n && !t->on)
		t->on = xcalloc(c->node_n, sizeof *t->on);
	for (uint32_t i = 0; i < k->on_n; i++) {
		uint32_t *n = &t->on[k->on[i]];
		t->nodes += by > 0 && !*n;
		*n += (uint32_t)by;
		t->nodes -= by < 0 && !*n;
	}
}

static void tally(const struct core *c, struct acct_tally *t, const struct acct_counted *k, int by)
{
	const struct acct_want *w = &k->w;
	tally_nodes(c, t, k, by);
	t->jobs += (uint32_t)by;
	for (uint32_t i = 0; i < c->acct->tres_n; i++) {
		assert(by > 0 || t->tres[i] >= w->tres[i]);
		t->tres[i] += by > 0 ? w->tres[i] : -w->tres[i];
		t->until[i] += by * (int64_t)w->tres[i] * k->until;
	}
}

static void tally_one(const struct core *c, struct acct_one **list, uint32_t who, const struct acct_counted *k, int by)
{
	struct acct_one *o;
	HASH_FIND(hh, *list, &who, sizeof who, o);
	if (!o) {
		o = xcalloc(1, sizeof *o);
		o->who = who;
		HASH_ADD(hh, *list, who, sizeof who, o);
	}
	tally(c, &o->t, k, by);
	if (o->t.jobs)
		return;
	HASH_DEL(*list, o);
	free(o->t.on);
	free(o);
}

static void tally_all(const struct core *c, const struct acct_counted *k, int by)
{
	struct acct_qos *qos[2] = { k->qos, k->part_qos == k->qos ? NULL : k->part_qos };
	for (int i = 0; i < 2; i++) {
		if (!qos[i])
			continue;
		tally(c, &qos[i]->all, k, by);
		tally_one(c, &qos[i]->users, k->user, k, by);
		tally_one(c, &qos[i]->accounts, k->account, k, by);
	}
	for (struct acct_assoc *s = k->assoc; s; s = s->parent)
		tally(c, &s->all, k, by);
}

void acct_count(struct core *c, struct core_job *j)
{
	if (!c->acct || !j->alloc || (j->state != PB__JOB_STATE__RUNNING && j->state != PB__JOB_STATE__SUSPENDED) || job_x(j)->counted)
		return;
	struct acct_counted *k = xcalloc(1, sizeof *k);
	*k = (struct acct_counted){ .assoc = j->assoc, .qos = j->qos, .part_qos = j->part < c->part_n ? c->part[j->part]->qos : NULL, .user = j->user,
		.account = j->assoc ? j->assoc->key.account : 0, .from = now_sec(c), .suspended = j->susp_total + (j->state == PB__JOB_STATE__SUSPENDED ? now_sec(c) - j->suspend : 0) };
	k->until = (int64_t)j->start + j->susp_total + (j->time_min == TIME_INFINITE ? ONE_YEAR_SEC : 60ll * j->time_min) - c->acct->base;
	want_add(c, j, j->part < c->part_n ? c->part[j->part] : NULL, j->alloc, &k->w);
	if (c->acct->node_limits) {
		k->on = xmalloc((j->alloc->n + 1) * sizeof *k->on);
		for (uint32_t i = 0; i < j->alloc->n; i++)
			k->on[k->on_n++] = j->alloc->on[i].node;
	}
	tally_all(c, k, 1);
	j->x->counted = k;
}

void acct_counted_free(struct acct_counted *k)
{
	if (k)
		free(k->on);
	free(k);
}

void acct_uncount(struct core *c, struct core_job *j)
{
	struct acct_counted *k = j->x ? j->x->counted : NULL;
	if (!k)
		return;
	usage_job(c, j, k);
	tally_all(c, k, -1);
	acct_counted_free(k);
	j->x->counted = NULL;
	c->acct->look = c->sched_wanted = true;
}

/* --- shapes that wait ------------------------------------------------------------------------------- */

void acct_park(struct core *c, struct shape *s, uint32_t reason)
{
	struct acct *a = c->acct;
	s->limited = (uint8_t)reason;
	s->tried = true;
	if (s->parked)
		return;
	for (uint32_t i = c->promise_n; i-- > 0;)
		if (i < c->promise_n && c->promises[i]->job->shape == s)
			promise_drop(c, c->promises[i]->job);
	if (c->behind && c->behind->shape == s)
		c->behind = NULL;
	tree_remove(&c->shapes_active, &s->anode);
	sched_forget(c, s);
	s->plan_at = NULL;
	s->parked = true;
	a->parked = xgrow(a->parked, &a->parked_cap, a->parked_n + 1, sizeof *a->parked);
	a->parked[a->parked_n++] = s;
}

void acct_unpark(struct core *c, struct shape *s)
{
	struct acct *a = c->acct;
	uint32_t i = 0;
	s->limited = REASON_NONE;
	if (!s->parked)
		return;
	while (a->parked[i] != s)
		i++;
	memmove(a->parked + i, a->parked + i + 1, (a->parked_n - i - 1) * sizeof *a->parked);
	a->parked_n--;
	s->parked = false;
	if (s->queue.count)
		queue_wake(c, s);
}

void acct_unpark_all(struct core *c)
{
	while (c->acct && c->acct->parked_n)
		acct_unpark(c, c->acct->parked[c->acct->parked_n - 1]);
}

/* Once a pass, after something ended: whoever is not in the way of a limit any more is looked at again. */
void acct_wake(struct core *c)
{
	struct acct *a = c->acct;
	struct acct_hit hit;
	if (!a || !a->look)
		return;
	a->look = false;
	for (uint32_t i = a->parked_n; i-- > 0;) {
		const struct core_job *j = (const struct core_job *)((const char *)tree_first(&a->parked[i]->queue) - offsetof(struct core_job, qnode));
		if (acct_stops(c, j, NULL, NULL, &hit))
			a->parked[i]->limited = (uint8_t)hit.reason;
		else
			acct_unpark(c, a->parked[i]);
	}
}

/* --- invariants -------------------------------------------------------------------------------------- */

static void check_counted(const struct core *c, const struct acct_limit *l)
{
	uint64_t jobs = 0, tres = 0;
	struct bitset *on = bitset_create(c->node_n);
	uint32_t at = l->m->tres ? acct_tres_at(c, l->m->tres) : 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		const struct acct_counted *k = j->x ? j->x->counted : NULL;
		bool in = k && l->qos && (k->qos == l->qos || k->part_qos == l->qos);
		for (const struct acct_assoc *s = k && l->assoc ? k->assoc : NULL; s && !in; s = s->parent)
			in = s == l->assoc;
		jobs += in;
		tres += in && l->m->tres ? k->w.tres[at] : 0;
		for (uint32_t i = 0; in && i < k->on_n; i++)
			bitset_set(on, k->on[i]);
	}
	assert(jobs == l->t->jobs && (!l->m->tres || tres == l->t->tres[at]) && bitset_count(on) == l->t->nodes);
	bitset_destroy(on);
}

void acct_check(const struct core *c)
{
	struct acct_qos *q, *qt;
	struct acct_assoc *s, *st;
	if (!c->acct || !c->acct->limited)
		return;
	HASH_ITER(hh, c->acct->qos, q, qt)
		for (size_t i = 0; i < q->m->n_limit; i++)
			check_counted(c, &(struct acct_limit){ .m = q->m->limit[i], .t = &q->all, .qos = q });
	HASH_ITER(hh, c->acct->assoc, s, st)
		for (size_t i = 0; i < s->m->n_limit; i++)
			check_counted(c, &(struct acct_limit){ .m = s->m->limit[i], .t = &s->all, .assoc = s });
	for (uint32_t i = 0; i < c->acct->parked_n; i++)
		assert(c->acct->parked[i]->parked && c->acct->parked[i]->queue.count && c->acct->parked[i]->limited);
}

/* What starts keeps every limit, with what it really got. */
void acct_check_start(const struct core *c, const struct core_job *j, const struct core_part *p, const struct alloc *a)
{
	(void)j, (void)p, (void)a;
	assert(j->het || !acct_stops(c, j, p, a, NULL));
}
