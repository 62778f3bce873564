/* why_acct.c - the limits of QOS and associations that hold a job back, each with what is used of it and how much there may be (see why.h) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/acct.h"
#include "core/why.h"

enum { HITS_MAX = 16 };

static void owner(const struct acct_hit *h, char *buf, size_t size)
{
	if (h->by.qos)
		snprintf(buf, size, "QOS %s", h->by.qos->m->name);
	else if (h->by.assoc->m->user && h->by.assoc->m->user[0])
		snprintf(buf, size, "user %s in account %s", h->by.assoc->m->user, h->by.assoc->m->account);
	else
		snprintf(buf, size, "account %s", h->by.assoc->m->account);
}

static void one(struct why *w, const struct acct_hit *h)
{
	const char *name = h->by.qos ? h->by.row->qos : h->by.row->assoc, *tres = h->by.m->tres;
	uint64_t bound = acct_limit_bound(&h->by);
	char who[256], unit[96];
	Pb__WhyItem *i;
	owner(h, who, sizeof who);
	snprintf(unit, sizeof unit, "%s%s", h->by.row->what == LIMIT_OF_JOBS ? "jobs" : tres ? tres : "minutes", h->by.row->what == LIMIT_OF_RUNMINS ? " minutes" : "");
	bool used_up = h->by.row->what == LIMIT_OF_MINS || (h->by.row->what == LIMIT_OF_WALL && h->by.row->scope == LIMIT_PER_GROUP);
	if (used_up)
		i = why_condition(w, "limit", "%s of %s is %" PRIu64 " %s%s: %" PRIu64 " are used, and it may use %" PRIu64 " more", name, who, bound, unit, tres ? " minutes" : "", h->used, h->want);
	else if (h->by.row->scope == LIMIT_PER_LEAST)
		i = why_condition(w, "limit", "%s of %s wants at least %" PRIu64 " %s, it asks for %" PRIu64, name, who, bound, unit, h->want);
	else if (h->alone)
		i = why_condition(w, "limit", "%s of %s is %" PRIu64 " %s, and it asks for %" PRIu64 ": whatever else runs", name, who, bound, unit, h->want);
	else
		i = why_condition(w, "limit", "%s of %s is %" PRIu64 " %s: %" PRIu64 " are in use, and it wants %" PRIu64, name, who, bound, unit, h->used, h->want);
	why_text(i, "reason", reason_name(h->reason));
	why_text(i, "limit", name);
	why_text(i, "of", who);
	if (tres)
		why_text(i, "tres", tres);
	why_number(i, "used", (int64_t)h->used);
	why_number(i, "wants", (int64_t)h->want);
	why_number(i, "bound", (int64_t)bound);
	if (used_up && !h->alone)
		why_clears(i, 0, "what was used decays or is reset, or the limit is changed");
	else if (h->alone)
		why_clears(i, 0, "the request is changed, or the limit");
	else
		why_clears(i, 0, "jobs under the same limit end that have %" PRIu64 " of it", h->used + h->want - bound);
}

void why_acct(struct why *w)
{
	struct acct_hit hit[HITS_MAX];
	uint32_t missing = acct_wait(w->c, w->j), n = acct_why(w->c, w->j, hit, HITS_MAX);
	if (missing == REASON_INVALID_ACCOUNT)
		why_condition(w, "account", "its user has no association with its account (any more)");
	if (missing == REASON_INVALID_QOS)
		why_condition(w, "qos", "its QOS does not exist, or its association may not use it (any more)");
	if (missing == REASON_QOS_USAGE_THRESHOLD)
		why_condition(w, "qos", "the fair share of its association is %.6f, and its QOS asks for %.6f (UsageThreshold)", acct_fair_factor(w->j), w->j->qos->m->usage_threshold);
	for (uint32_t i = 0; i < n; i++)
		one(w, &hit[i]);
}
