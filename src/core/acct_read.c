/* acct_read.c - accounts and QOS with what is used of them, for sshare and scontrol show assoc_mgr; reads only */
#include <stdlib.h>

#include "core/acct.h"

static void amounts_put(const struct core *c, Pb__AcctUsed *m, const struct acct_used *u, const struct acct_tally *t)
{
	const struct acct *a = c->acct;
	m->amount = xcalloc(a->tres_n + 1, sizeof *m->amount);
	for (uint32_t i = 0; i < a->tres_n; i++) {
		Pb__AcctAmount *v = xcalloc(1, sizeof *v);
		bool node = str_eq(atom_text(c, a->tres[i]), "node") && a->node_limits;
		pb__acct_amount__init(v);
		v->tres = xstrdup(atom_text(c, a->tres[i]));
		v->seconds = u ? u->tres[i] : 0;
		v->has_run_seconds = v->has_in_use = true;
		v->run_seconds = (double)acct_run_seconds(c, t, i);
		v->in_use = node ? t->nodes : (double)t->tres[i];
		m->amount[m->n_amount++] = v;
	}
}

static Pb__AcctUsed *used_new(const struct core *c, uint32_t id, const struct acct_used *u, const struct acct_tally *t)
{
	Pb__AcctUsed *m = xcalloc(1, sizeof *m);
	pb__acct_used__init(m);
	m->id = id;
	m->has_raw = m->has_wall = m->has_jobs = m->has_submitted = true;
	m->raw = u ? u->raw : 0;
	m->wall = u ? u->wall : 0;
	m->jobs = t->jobs;
	amounts_put(c, m, u, t);
	return m;
}

static void ones_put(const struct core *c, const struct acct_one *list, Pb__AcctUsed ***ret, size_t *n)
{
	const struct acct_one *o, *tmp;
	*ret = xcalloc(HASH_COUNT(list) + 1, sizeof **ret);
	HASH_ITER(hh, list, o, tmp) {
		Pb__AcctUsed *m = used_new(c, 0, NULL, &o->t);
		m->name = xstrdup_null(atom_text(c, o->who));
		(*ret)[(*n)++] = m;
	}
}

static Pb__AcctUsed *assoc_used(const struct core *c, const struct acct_assoc *s)
{
	Pb__AcctUsed *m = used_new(c, s->m->id, &s->used, &s->all);
	const struct acct_assoc *root = c->acct->root;
	m->has_norm_shares = m->has_norm_usage = m->has_effective = m->has_factor = m->has_level_fs = true;
	m->norm_shares = s->norm_shares;
	m->norm_usage = root && root->used.raw > 0 ? s->used.raw / root->used.raw : 0;
	m->effective = s->effective;
	m->factor = s->factor;
	m->level_fs = s->level_fs;
	return m;
}

static void submitted_count(const struct core *c, Pb__AcctStateRsp *r)
{
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			return;
		if (job_state_is_final(j->state))
			continue;
		for (size_t i = 0; i < r->n_used; i++) {
			bool in = r->used[i]->qos && j->qos && j->qos->m->id == r->used[i]->id;
			for (const struct acct_assoc *s = r->used[i]->qos ? NULL : j->assoc; s && !in; s = s->parent)
				in = s->m->id == r->used[i]->id;
			r->used[i]->submitted += in ? j->tasks ? (uint32_t)bitset_count(j->tasks) : 1 : 0;
		}
	}
}

Pb__AcctStateRsp *core_acct_state(const struct core *c, bool submitted)
{
	Pb__AcctStateRsp *r = xcalloc(1, sizeof *r);
	struct acct_qos *q, *qt;
	struct acct_assoc *s, *st;
	pb__acct_state_rsp__init(r);
	r->has_fair_tree = r->has_multifactor = true;
	r->fair_tree = !(c->params.prio_flags & PRIO_NO_FAIR_TREE);
	r->multifactor = c->params.priority_multifactor;
	if (!c->acct)
		return r;
	r->accounts = (Pb__AcctSnapshot *)message_copy(&c->acct->m->base);
	r->used = xcalloc(HASH_COUNT(c->acct->qos) + HASH_COUNT(c->acct->assoc) + 1, sizeof *r->used);
	HASH_ITER(hh, c->acct->assoc, s, st)
		r->used[r->n_used++] = assoc_used(c, s);
	HASH_ITER(hh, c->acct->qos, q, qt) {
		Pb__AcctUsed *m = r->used[r->n_used++] = used_new(c, q->m->id, &q->used, &q->all);
		m->has_qos = m->qos = true;
		ones_put(c, q->users, &m->user, &m->n_user);
		ones_put(c, q->accounts, &m->account, &m->n_account);
	}
	r->tres = xcalloc(c->acct->tres_n + 1, sizeof *r->tres);
	for (uint32_t i = 0; i < c->acct->tres_n; i++)
		r->tres[r->n_tres++] = xstrdup(atom_text(c, c->acct->tres[i]));
	if (submitted)
		submitted_count(c, r);
	return r;
}
