/* company.c - who may share a node with whom: --exclusive=user, Exclusive=USER of a partition, MCS labels (MCSPlugin)
 * Jobs with different labels, where labels are looked at, and jobs of different users, where one of them shares with no other user, are not on one node
 * at one time. That holds for what runs and, for a job that is looked at, for what is promised to jobs before it. Pages slurm.conf(5), mcs.html. */
#include <stdio.h>
#include <stdlib.h>

#include "core/state.h"

static bool group_of(const struct core_caller *by, const char *group)
{
	size_t n = strlen(group);
	if (by->group && !strcmp(by->group, group))
		return true;
	for (const char *s = by->groups ? by->groups : ""; *s; s += strcspn(s, ","), s += *s == ',')
		if (strcspn(s, ",") == n && !strncmp(s, group, n))
			return true;
	return false;
}

/* mcs/group: the groups named in MCSParameters, "a|b", in their order; the first that is the user's, or whether `label` is one of those. */
static const char *label_group(const struct core *c, const struct core_caller *by, const char *label, struct arena *a)
{
	const char *s = c->params.mcs_groups ? c->params.mcs_groups : "";
	for (; *s; s += strcspn(s, "|"), s += *s == '|') {
		const char *one = arena_printf(a, "%.*s", (int)strcspn(s, "|"), s);
		if (group_of(by, one) && (!label || !strcmp(label, one)))
			return one;
	}
	return NULL;
}

/* The label the job gets: the one asked for, if it may be had, else that of its user, group or account. NULL: none. */
static const char *label_of(const struct core *c, const struct core_caller *by, const Pb__JobDesc *d, const char *asked, struct arena *a)
{
	const char *own = c->params.mcs == MCS_USER ? by->user : d->account;
	switch (c->params.mcs) {
	case MCS_NONE:
	case MCS_LABEL:
		return asked;
	case MCS_GROUP:
		return label_group(c, by, asked, a);
	default:
		return own && own[0] && (!asked || !strcmp(asked, own)) ? own : NULL;
	}
}

int company_label(struct core *c, const struct core_caller *by, Pb__JobDesc *d, struct error *err)
{
	const char *asked = d->mcs_label && d->mcs_label[0] ? d->mcs_label : NULL;
	bool wanted = asked || c->params.mcs_enforced || (d->exclusive && !strcasecmp(d->exclusive, "mcs"));
	if (!wanted || (c->params.mcs == MCS_NONE && !asked))
		return 0;
	d->mcs_label = (char *)(uintptr_t)label_of(c, by, d, asked, fx_arena(c));
	if (!d->mcs_label && (asked || c->params.mcs_enforced))
		return error_set(err, ESLURM_INVALID_MCS_LABEL, "the label \"%s\" is not one of this user's jobs (MCSPlugin)", asked ? asked : "");
	return 0;
}

uint32_t company_mcs(struct core *c, const Pb__JobDesc *d)
{
	bool on = c->params.mcs && c->params.mcs_select && (c->params.mcs_select == MCS_SELECT || (d->exclusive && !strcasecmp(d->exclusive, "mcs")));
	return on && d->mcs_label && d->mcs_label[0] ? atom_get(c, d->mcs_label) : 0;
}

/* j, which shares with no other user where `alone`, beside one of that user, of whom the same holds where `other_alone`. */
static bool apart(const struct core_job *j, uint32_t mcs, bool alone, uint32_t uid, uint32_t other_mcs, bool other_alone)
{
	return (uid != j->uid && (alone || other_alone)) || mcs != other_mcs;
}

bool company_bad(const struct core *c, const struct shape *s, const struct when *w, const struct core_node *n)
{
	const struct core_job *me = het_first(c, w->j);
	bool alone = s->user_only || (w->part && w->part->user_only);
	uint64_t from = w->start_ms ? w->start_ms : c->now_ms;
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *h = n->held[i].job;
		if (apart(w->j, s->mcs, alone, h->uid, h->alloc->mcs, h->alloc->user_only) && (!w->start_ms || job_end_ms(c, h) > w->start_ms))
			return true;
	}
	for (uint32_t i = 0; i < n->plan_n; i++) {
		const struct promise *p = n->plan[i].p;
		const struct core_job *o = p->job;
		if (o != me && job_before(o, me) && p->start_ms < w->end_ms && p->end_ms > from &&
		    apart(w->j, s->mcs, alone, o->uid, o->shape->mcs, o->shape->user_only || c->part[p->part]->user_only))
			return true;
	}
	return false;
}

void company_record(const struct core *c, const struct core_node *n, Pb__NodeRecord *m)
{
	char uid[16];
	for (size_t i = 0; n->owners && i < n->held_n; i++) {
		const struct core_job *h = n->held[i].job;
		snprintf(uid, sizeof uid, "%u", h->uid);
		if (h->alloc->user_only)
			xstr_set(&m->owner, uid);
		if (h->alloc->mcs)
			xstr_set(&m->mcs_label, atom_text(c, h->alloc->mcs));
	}
}
