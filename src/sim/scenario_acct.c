/* scenario_acct.c - the scenario language about QOS, accounts and users: what slurmdbd would send */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/limit.h"
#include "sim/play.h"

static Pb__AcctSnapshot *acct(struct play *p)
{
	if (!p->w.acct) {
		p->w.acct = xcalloc(1, sizeof *p->w.acct);
		pb__acct_snapshot__init(p->w.acct);
	}
	return p->w.acct;
}

static void strings(char ***list, size_t *n, const char *text)
{
	char *copy = xstrdup(text), *at = copy, *w;
	for (size_t i = 0; i < *n; i++)
		free((*list)[i]);
	*n = 0;
	while ((w = str_next(&at, ",")))
		if (*w) {
			*list = xrealloc(*list, (*n + 1) * sizeof **list);
			(*list)[(*n)++] = xstrdup(w);
		}
	free(copy);
}

/* Any other key is the name of a limit. */
static void set_limit(struct play *p, struct limit_list *l, const char *key, size_t len, const char *v, bool qos)
{
	struct error err = { 0 };
	const char *tres;
	const struct limit_row *row = limit_find(key, len, qos, &tres);
	if (!row || limit_set(l, row, tres, v, &err))
		fail(p, "%.*s=%s: %s", (int)len, key, v, row ? err.line : "there is no such limit");
}

static bool is(const char *key, size_t len, const char *name) { return strlen(name) == len && !strncasecmp(key, name, len); }

static Pb__QosRecord *qos_find(struct play *p, const char *name)
{
	Pb__AcctSnapshot *m = acct(p);
	for (size_t i = 0; i < m->n_qos; i++)
		if (!strcmp(m->qos[i]->name, name))
			return m->qos[i];
	Pb__QosRecord *q = xcalloc(1, sizeof *q);
	pb__qos_record__init(q);
	q->id = (uint32_t)m->n_qos + 1;
	q->name = xstrdup(name);
	m->qos = xrealloc(m->qos, (m->n_qos + 1) * sizeof *m->qos);
	return m->qos[m->n_qos++] = q;
}

/* qos NAME [Priority=] [Flags=] [Preempt=a,b] [PreemptMode=] [GraceTime=sec] [MaxJobsPU=2 ...]; gone: it is deleted */
void do_qos(struct play *p)
{
	Pb__QosRecord *q = qos_find(p, word(p, 1));
	struct limit_list l = { q->limit, q->n_limit };
	for (size_t i = 2; i < p->words; i++) {
		const char *w = p->word[i], *eq = strchr(w, '=');
		size_t len = eq ? (size_t)(eq - w) : strlen(w);
		if (is(w, len, "gone")) {
			Pb__AcctSnapshot *m = acct(p);
			size_t at = 0;
			while (m->qos[at] != q)
				at++;
			memmove(m->qos + at, m->qos + at + 1, (m->n_qos - at - 1) * sizeof *m->qos);
			m->n_qos--;
			pb__qos_record__free_unpacked(q, NULL);
			world_acct(&p->w);
			return;
		}
		if (is(w, len, "Priority"))
			q->has_priority = true, q->priority = num(p, eq + 1);
		else if (is(w, len, "Flags"))
			q->has_flags = !qos_flags_parse(eq + 1, &q->flags, NULL);
		else if (is(w, len, "Preempt"))
			strings(&q->preempt, &q->n_preempt, eq + 1);
		else if (is(w, len, "PreemptMode"))
			xstr_set(&q->preempt_mode, eq + 1);
		else if (is(w, len, "GraceTime"))
			q->has_grace_sec = true, q->grace_sec = num(p, eq + 1);
		else if (is(w, len, "PreemptExemptTime"))
			q->has_exempt_sec = true, q->exempt_sec = num(p, eq + 1);
		else if (is(w, len, "UsageFactor"))
			q->has_usage_factor = true, q->usage_factor = strtod(eq + 1, NULL);
		else if (is(w, len, "UsageThreshold"))
			q->has_usage_threshold = true, q->usage_threshold = strtod(eq + 1, NULL);
		else if (is(w, len, "LimitFactor"))
			q->has_limit_factor = true, q->limit_factor = strtod(eq + 1, NULL);
		else if (is(w, len, "RawReset"))
			q->has_raw_reset = true, q->raw_reset = num(p, eq + 1);
		else
			set_limit(p, &l, w, len, eq ? eq + 1 : "", true);
		q->limit = l.at;
		q->n_limit = l.n;
	}
	world_acct(&p->w);
}

static Pb__AssocRecord *assoc_find(struct play *p, const char *account, const char *user)
{
	Pb__AcctSnapshot *m = acct(p);
	for (size_t i = 0; i < m->n_assoc; i++)
		if (!strcmp(m->assoc[i]->account, account) && str_eq(m->assoc[i]->user, user))
			return m->assoc[i];
	Pb__AssocRecord *s = xcalloc(1, sizeof *s);
	pb__assoc_record__init(s);
	s->id = (uint32_t)m->n_assoc + 1;
	s->cluster = xstrdup(p->w.params.cluster ? p->w.params.cluster : "");
	s->account = xstrdup(account);
	s->user = xstrdup_null(user);
	m->assoc = xrealloc(m->assoc, (m->n_assoc + 1) * sizeof *m->assoc);
	return m->assoc[m->n_assoc++] = s;
}

static void set_coordinator(struct play *p, const char *account, const char *users)
{
	Pb__AcctSnapshot *m = acct(p);
	Pb__AccountRecord *a = xcalloc(1, sizeof *a);
	pb__account_record__init(a);
	a->name = xstrdup(account);
	strings(&a->coordinator, &a->n_coordinator, users);
	m->account = xrealloc(m->account, (m->n_account + 1) * sizeof *m->account);
	m->account[m->n_account++] = a;
}

/* account NAME [coordinator=bob] [user=alice] [parent=] [default] [qos=a,b] [DefaultQOS=] [Priority=] [GrpJobs=2 ...] */
void do_account(struct play *p)
{
	Pb__AssocRecord *s = assoc_find(p, word(p, 1), opt(p, "user"));
	struct limit_list l = { s->limit, s->n_limit };
	for (size_t i = 2; i < p->words; i++) {
		const char *w = p->word[i], *eq = strchr(w, '=');
		size_t len = eq ? (size_t)(eq - w) : strlen(w);
		if (is(w, len, "user"))
			continue;
		if (is(w, len, "default"))
			s->has_is_default = s->is_default = true;
		else if (is(w, len, "parent"))
			xstr_set(&s->parent, eq + 1);
		else if (is(w, len, "qos"))
			strings(&s->qos, &s->n_qos, eq + 1);
		else if (is(w, len, "DefaultQOS"))
			xstr_set(&s->default_qos, eq + 1);
		else if (is(w, len, "Priority"))
			s->has_priority = true, s->priority = num(p, eq + 1);
		else if (is(w, len, "coordinator"))
			set_coordinator(p, word(p, 1), eq + 1);
		else if (is(w, len, "Fairshare"))
			s->has_shares = true, s->shares = !strcmp(eq + 1, "parent") ? UINT32_MAX : num(p, eq + 1);
		else if (is(w, len, "RawReset"))
			s->has_raw_reset = true, s->raw_reset = num(p, eq + 1);
		else
			set_limit(p, &l, w, len, eq ? eq + 1 : "", false);
		s->limit = l.at;
		s->n_limit = l.n;
	}
	world_acct(&p->w);
}

/* --- what is used --------------------------------------------------------------------------------------- */

static void near(struct play *p, const char *key, double got)
{
	const char *want = opt(p, key);
	double v = want ? strtod(want, NULL) : 0;
	if (want && !(got == v || fabs(got - v) <= 0.0001 * (fabs(v) > 1 ? fabs(v) : 1)))
		fail(p, "%s is %.6f, expected %s", key, got, want);
}

static const Pb__AcctUsed *used_find(const Pb__AcctStateRsp *r, const char *name, const char *user, bool qos)
{
	const Pb__AcctSnapshot *m = r->accounts;
	uint32_t id = 0;
	for (size_t i = 0; m && qos && i < m->n_qos; i++)
		id = strcmp(m->qos[i]->name, name) ? id : m->qos[i]->id;
	for (size_t i = 0; m && !qos && i < m->n_assoc; i++)
		id = !strcmp(m->assoc[i]->account, name) && str_eq(m->assoc[i]->user, user) ? m->assoc[i]->id : id;
	for (size_t i = 0; id && i < r->n_used; i++)
		if (r->used[i]->id == id && r->used[i]->qos == qos)
			return r->used[i];
	return NULL;
}

/* expect used ACCOUNT|qos NAME [user=] raw= wall= (seconds) cpu= mem= ... (its seconds) runcpu= factor= level= effective= shares= jobs= submitted= */
void expect_used(struct play *p)
{
	bool qos = !strcmp(word(p, 2), "qos");
	Pb__AcctStateRsp *r = core_acct_state(p->w.core, true);
	const Pb__AcctUsed *u = used_find(r, word(p, qos ? 3 : 2), opt(p, "user"), qos);
	if (!u)
		fail(p, "there is no such account or QOS");
	near(p, "raw", u->raw);
	near(p, "wall", u->wall);
	near(p, "factor", u->factor);
	near(p, "level", u->level_fs);
	near(p, "effective", u->effective);
	near(p, "shares", u->norm_shares);
	near(p, "jobs", u->jobs);
	near(p, "submitted", u->submitted);
	for (size_t i = 0; i < u->n_amount; i++) {
		char *run = xasprintf("run%s", u->amount[i]->tres);
		near(p, u->amount[i]->tres, u->amount[i]->seconds);
		near(p, run, u->amount[i]->run_seconds);
		free(run);
	}
	pb__acct_state_rsp__free_unpacked(r, NULL);
}
