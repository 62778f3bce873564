/* acct.c - QOS and associations: the tables, and which of them a job stands under
 * A job's association is that of its account, user and (one for it alone goes first) partition. Limits: acct_limit.c. */
#include <stdlib.h>

#include "core/acct.h"

static uint32_t lower_atom(struct core *c, const char *text)
{
	char *s = xstrdup(text ? text : "");
	for (char *p = s; *p; p++)
		*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
	uint32_t id = atom_get(c, s);
	free(s);
	return id;
}

static struct acct_qos *qos_of(const struct acct *a, uint32_t name)
{
	struct acct_qos *q = NULL;
	if (a && name)
		HASH_FIND(hh, a->qos, &name, sizeof name, q);
	return q;
}

struct acct_qos *acct_qos(struct core *c, const char *name) { return c->acct && name && name[0] ? qos_of(c->acct, lower_atom(c, name)) : NULL; }

bool acct_qos_known(struct core *c, const char *name) { return !c->acct || !c->acct->qos || acct_qos(c, name); }

bool acct_account_known(struct core *c, const char *name)
{
	struct acct_assoc *s, *tmp;
	uint32_t id = lower_atom(c, name);
	if (!c->acct || !c->acct->assoc)
		return true;
	HASH_ITER(hh, c->acct->assoc, s, tmp)
		if (s->key.account == id)
			return true;
	return false;
}

static struct acct_assoc *assoc_of(const struct acct *a, uint32_t account, uint32_t user, uint32_t part)
{
	struct acct_key k = { account, user, part };
	struct acct_assoc *s = NULL;
	HASH_FIND(hh, a->assoc, &k, sizeof k, s);
	return s;
}

/* With the name of the account missing: the user's default. */
static struct acct_assoc *assoc_for(struct core *c, uint32_t user, const char *account, const char *parts)
{
	struct acct *a = c->acct;
	uint32_t name = lower_atom(c, account);
	if (!name) {
		struct acct_assoc *s, *tmp, *first = NULL;
		HASH_ITER(hh, a->assoc, s, tmp)
			if (s->key.user == user && user && s->m->is_default && !s->key.part)
				first = s;
		if (!first)
			return NULL;
		name = first->key.account;
	}
	char *part = xstrndup(parts ? parts : "", parts ? strcspn(parts, ",") : 0);
	struct acct_assoc *own = part[0] ? assoc_of(a, name, user, atom_get(c, part)) : NULL;
	free(part);
	return own ? own : assoc_of(a, name, user, 0);
}

static const Pb__AssocRecord *with_qos(const struct acct_assoc *s)
{
	while (s && !s->m->n_qos)
		s = s->parent;
	return s ? s->m : NULL;
}

static bool qos_allowed(const struct acct_assoc *s, const char *name)
{
	const Pb__AssocRecord *m = with_qos(s);
	for (size_t i = 0; m && i < m->n_qos; i++)
		if (str_eq_nocase(m->qos[i], name))
			return true;
	return false;
}

static const char *qos_default(const struct acct_assoc *s)
{
	for (const struct acct_assoc *at = s; at; at = at->parent)
		if (at->m->default_qos && at->m->default_qos[0])
			return at->m->default_qos;
	const Pb__AssocRecord *m = with_qos(s);
	return m && !qos_allowed(s, "normal") ? m->qos[0] : "normal";
}

/* --- jobs ---------------------------------------------------------------------------------------- */

void acct_bind(struct core *c, struct core_job *j, const Pb__JobDesc *d)
{
	j->qos = c->acct ? acct_qos(c, d->qos) : NULL;
	j->assoc = c->acct ? assoc_for(c, j->user, d->account, d->partition) : NULL;
}

int acct_submit(struct core *c, const struct core_caller *by, Pb__JobDesc *d, struct arena *a, struct error *err)
{
	const struct core_params *q = &c->params;
	if (!c->acct)
		return q->enforce & ENFORCE_ASSOC ? error_set(err, ESLURM_INVALID_ACCOUNT, "accounts are enforced, and none is known yet: slurmdbd has not answered") : 0;
	struct acct_assoc *s = assoc_for(c, atom_get(c, by->user ? by->user : ""), d->account, d->partition);
	if (!s && (q->enforce & ENFORCE_ASSOC))
		return error_set(err, ESLURM_INVALID_ACCOUNT, "user %s has no association with account %s", by->user ? by->user : "?", d->account && d->account[0] ? d->account : "(default)");
	if (s)
		d->account = arena_strdup(a, s->m->account);
	if (d->qos && d->qos[0]) {
		struct acct_qos *named = acct_qos(c, d->qos);
		if (!named || ((q->enforce & ENFORCE_QOS) && !qos_allowed(s, d->qos)))
			return error_set(err, ESLURM_INVALID_QOS, "%s \"%s\"", named ? "the association may not use QOS" : "there is no QOS", d->qos);
		d->qos = arena_strdup(a, named->m->name);
	} else if (s) {
		const char *name = qos_default(s);
		if ((q->enforce & ENFORCE_QOS) && !qos_allowed(s, name))
			return error_set(err, ESLURM_INVALID_QOS, "the association may use no QOS");
		d->qos = arena_strdup(a, name);
	}
	if (acct_qos_flags(c, d->qos) & QOSF_REQ_RESV && !(d->reservation && d->reservation[0]))
		return error_set(err, ESLURM_INVALID_QOS, "QOS %s takes only jobs that name a reservation (RequiresReservation)", d->qos);
	return 0;
}

/* EnforceUsageThreshold: its association's fair share is too low yet. */
static bool below_threshold(const struct core *c, const struct core_job *j)
{
	const Pb__QosRecord *m = j->qos && c->params.enforce & ENFORCE_LIMITS ? j->qos->m : NULL;
	return m && j->assoc && m->flags & QOSF_USAGE_THRESHOLD && m->has_usage_threshold && j->assoc->factor < m->usage_threshold;
}

uint32_t acct_wait(const struct core *c, const struct core_job *j)
{
	if (!c->acct)
		return REASON_NONE;
	if (!j->assoc && (c->params.enforce & ENFORCE_ASSOC))
		return REASON_INVALID_ACCOUNT;
	if ((c->params.enforce & ENFORCE_QOS) && (!j->qos || !qos_allowed(j->assoc, j->qos->m->name)))
		return REASON_INVALID_QOS;
	return below_threshold(c, j) ? REASON_QOS_USAGE_THRESHOLD : REASON_NONE;
}

uint32_t acct_qos_flags(struct core *c, const char *qos)
{
	const struct acct_qos *q = c->params.enforce & ENFORCE_LIMITS ? acct_qos(c, qos) : NULL;
	return q ? q->m->flags : 0;
}

double acct_qos_factor(const struct core *c, const struct core_job *j)
{
	double most = c->params.prio_flags & PRIO_NO_NORMAL_QOS ? 1 : c->acct ? c->acct->priority_most : 0;
	return c->acct && j->qos && most > 0 ? j->qos->m->priority / most : 0;
}

double acct_fair_factor(const struct core_job *j) { return j->assoc ? j->assoc->factor : 0; }

double acct_assoc_factor(const struct core *c, const struct core_job *j)
{
	const struct acct_assoc *s = j->assoc;
	while (s && !s->m->has_priority)
		s = s->parent;
	double most = c->params.prio_flags & PRIO_NO_NORMAL_ASSOC ? 1 : c->acct ? c->acct->assoc_most : 0;
	return c->acct && s && most > 0 ? s->m->priority / most : 0;
}

bool acct_preempts(const struct core_job *by, const struct core_job *victim)
{
	if (!by->qos || !victim->qos)
		return false;
	for (size_t i = 0; i < by->qos->m->n_preempt; i++)
		if (str_eq_nocase(by->qos->m->preempt[i], victim->qos->m->name))
			return true;
	return false;
}

static const Pb__AccountRecord *account_of(const struct acct *a, const char *name)
{
	for (size_t i = 0; i < a->m->n_account; i++)
		if (str_eq_nocase(a->m->account[i]->name, name))
			return a->m->account[i];
	return NULL;
}

bool acct_coordinates(const struct core *c, const struct core_caller *by, const struct core_job *j)
{
	if (!c->acct || !by->user)
		return false;
	for (const struct acct_assoc *s = j->assoc; s; s = s->parent) {
		const Pb__AccountRecord *m = account_of(c->acct, s->m->account);
		for (size_t i = 0; m && i < m->n_coordinator; i++)
			if (!strcmp(m->coordinator[i], by->user))
				return true;
	}
	return false;
}

bool acct_may(const struct core *c, const struct core_caller *by, const struct core_job *j)
{
	return j->uid == by->uid || by->oper || acct_coordinates(c, by, j);
}

/* --- the tables ---------------------------------------------------------------------------------- */

static void ones_free(struct acct_one *list)
{
	struct acct_one *o, *tmp;
	HASH_ITER(hh, list, o, tmp) {
		HASH_DEL(list, o);
		free(o->t.on);
		free(o);
	}
}

static void qos_free(struct acct_qos *q)
{
	ones_free(q->users);
	ones_free(q->accounts);
	free(q->all.on);
	free(q);
}

void acct_free(struct acct *a)
{
	struct acct_qos *q, *qt;
	struct acct_assoc *s, *st;
	if (!a)
		return;
	HASH_ITER(hh, a->qos, q, qt) {
		HASH_DEL(a->qos, q);
		qos_free(q);
	}
	HASH_ITER(hh, a->assoc, s, st) {
		HASH_DEL(a->assoc, s);
		free(s->all.on);
		free(s);
	}
	free(a->parked);
	pb__acct_snapshot__free_unpacked(a->m, NULL);
	free(a);
}

static void tres_one(struct core *c, struct acct *a, const char *name)
{
	uint32_t k = 0, id = atom_get(c, name);
	while (id && k < a->tres_n && a->tres[k] != id)
		k++;
	if (!id || k < a->tres_n)
		return;
	if (a->tres_n == ACCT_TRES_MAX)
		fx_log(c, LOG_L_ERROR, "more than %d kinds of resources are to be counted: limits on %s are not kept", ACCT_TRES_MAX, name);
	else
		a->tres[a->tres_n++] = id;
}

/* Use is kept of these whether there are limits on them or not. */
static void tres_begin(struct core *c, struct acct *a)
{
	char *copy = xstrdup(c->params.tres_extra ? c->params.tres_extra : ""), *at = copy, *w;
	tres_one(c, a, "cpu");
	tres_one(c, a, "mem");
	tres_one(c, a, "node");
	tres_one(c, a, "billing");
	while ((w = str_next(&at, ",")))
		if (str_starts(w, "gres/") || str_starts(w, "license/"))
			tres_one(c, a, w);
	free(copy);
}

static void tres_note(struct core *c, struct acct *a, Pb__Limit *const *limit, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		a->limited = true;
		a->node_limits = a->node_limits || str_eq(limit[i]->tres, "node");
		tres_one(c, a, limit[i]->tres);
	}
}

static void qos_add(struct core *c, struct acct *a, const Pb__QosRecord *m)
{
	struct acct_qos *q = xcalloc(1, sizeof *q);
	q->name = lower_atom(c, m->name);
	q->m = m;
	HASH_ADD(hh, a->qos, name, sizeof q->name, q);
	a->priority_most = m->priority > a->priority_most ? m->priority : a->priority_most;
	tres_note(c, a, m->limit, m->n_limit);
}

static void assoc_add(struct core *c, struct acct *a, const Pb__AssocRecord *m)
{
	struct acct_assoc *s = xcalloc(1, sizeof *s);
	if (c->params.cluster && !str_eq_nocase(m->cluster, c->params.cluster)) {
		free(s);
		return;
	}
	s->key = (struct acct_key){ lower_atom(c, m->account), atom_get(c, m->user), atom_get(c, m->partition) };
	s->m = m;
	HASH_ADD(hh, a->assoc, key, sizeof s->key, s);
	a->assoc_most = m->has_priority && m->priority > a->assoc_most ? m->priority : a->assoc_most;
	tres_note(c, a, m->limit, m->n_limit);
}

static bool leads_to(struct core *c, const struct acct *a, struct acct_qos *from, const struct acct_qos *to)
{
	if (from == to)
		return true;
	from->seen = true;
	for (size_t i = 0; i < from->m->n_preempt; i++) {
		struct acct_qos *next = qos_of(a, lower_atom(c, from->m->preempt[i]));
		if (next && !next->seen && leads_to(c, a, next, to))
			return true;
	}
	return false;
}

/* Jobs of QOS that may preempt each other, or their own, would do so for ever: a name that closes such a circle is left out. */
static void preempt_cut_circles(struct core *c, struct acct *a)
{
	size_t *named = xcalloc(a->m->n_qos + 1, sizeof *named);
	for (size_t i = 0; i < a->m->n_qos; i++) {
		named[i] = a->m->qos[i]->n_preempt;
		a->m->qos[i]->n_preempt = 0;
	}
	for (size_t i = 0; i < a->m->n_qos; i++) {
		Pb__QosRecord *m = a->m->qos[i];
		for (size_t k = 0; k < named[i]; k++) {
			struct acct_qos *q, *tmp, *victim = qos_of(a, lower_atom(c, m->preempt[k])), *own = qos_of(a, lower_atom(c, m->name));
			HASH_ITER(hh, a->qos, q, tmp)
				q->seen = false;
			if (victim && leads_to(c, a, victim, own)) {
				fx_log(c, LOG_L_ERROR, "QOS %s may not preempt %s, which may preempt it, or those that may: that is left out", m->name, m->preempt[k]);
				free(m->preempt[k]);
			} else
				m->preempt[m->n_preempt++] = m->preempt[k];
		}
	}
	free(named);
}

static struct acct *acct_make(struct core *c, const Pb__AcctSnapshot *m)
{
	struct acct *a = xcalloc(1, sizeof *a);
	struct acct_assoc *s, *tmp;
	a->m = (Pb__AcctSnapshot *)message_copy(&m->base);
	a->base = now_sec(c);
	tres_begin(c, a);
	for (size_t i = 0; i < a->m->n_qos; i++)
		qos_add(c, a, a->m->qos[i]);
	preempt_cut_circles(c, a);
	for (size_t i = 0; i < a->m->n_assoc; i++)
		assoc_add(c, a, a->m->assoc[i]);
	HASH_ITER(hh, a->assoc, s, tmp) {
		if (s->key.user)
			s->parent = assoc_of(a, s->key.account, 0, 0);
		else if (s->m->parent && s->m->parent[0])
			s->parent = assoc_of(a, lower_atom(c, s->m->parent), 0, 0);
	}
	a->limited = a->limited && (c->params.enforce & ENFORCE_LIMITS);
	return a;
}

/* Who is below whom, in the order of the records. */
static void tree_make(struct core *c, struct acct *a)
{
	for (size_t i = a->m->n_assoc; i-- > 0;) {
		const Pb__AssocRecord *m = a->m->assoc[i];
		struct acct_assoc *s = assoc_of(a, lower_atom(c, m->account), atom_get(c, m->user), atom_get(c, m->partition));
		if (!s || s->m != m)
			continue;
		a->users += s->key.user != 0;
		if (s->parent) {
			s->next = s->parent->child;
			s->parent->child = s;
		} else if (str_eq(m->account, "root") && !s->key.user)
			a->root = s;
	}
}

/* A circle of parents would never end. */
static void cut_circles(struct acct *a)
{
	struct acct_assoc *s, *tmp;
	HASH_ITER(hh, a->assoc, s, tmp) {
		uint32_t n = 0;
		for (const struct acct_assoc *at = s; at && n <= HASH_COUNT(a->assoc); at = at->parent)
			n++;
		if (n > HASH_COUNT(a->assoc))
			s->parent = NULL;
	}
}

void acct_look_parts(struct core *c)
{
	for (uint32_t i = 0; i < c->part_n; i++)
		c->part[i]->qos = acct_qos(c, c->part[i]->rec->qos);
}

/* Every job finds its own again; what runs is counted. */
static void jobs_rebind(struct core *c)
{
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (job_state_is_final(j->state)) {
			j->qos = NULL;
			j->assoc = NULL;
			continue;
		}
		Pb__JobDesc d = { .qos = job_desc_str(j, 3), .account = job_desc_str(j, 2), .partition = job_desc_str(j, 4) };
		acct_bind(c, j, &d); /* it reads these alone */
		free(d.qos);
		free(d.account);
		free(d.partition);
		if (j->state != PB__JOB_STATE__PENDING)
			acct_count(c, j);
	}
}

void acct_reload(struct core *c, const Pb__AcctSnapshot *m)
{
	struct acct *old = c->acct;
	if (old)
		usage_settle(c);
	acct_unpark_all(c);
	for (uint64_t cur = 0; old;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		acct_uncount(c, j);
	}
	c->acct = acct_make(c, m ? m : old->m);
	cut_circles(c->acct);
	tree_make(c, c->acct);
	usage_carry(c, old);
	fairshare_set(c);
	acct_look_parts(c);
	jobs_rebind(c);
	acct_free(old);
	usage_begin(c);
	if (!c->restoring)
		jobs_follow(c);
}

void acct_event(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	acct_reload(c, ev->acct);
	fx_result(c, ev->token, &err, 0);
}
