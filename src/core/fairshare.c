/* fairshare.c - the fair-share factor of each association, of its shares and what was used (priority_multifactor.html, fair_tree.html)
 * Fair tree (the default): at each level shares over use orders siblings; users are ranked as the tree is walked in that order, and the factor is the
 * rank over the number of users. Classic (NO_FAIR_TREE): 2^(-use/shares) with what the accounts above used weighing in. An account with
 * Fairshare=parent is no level of its own: those below it stand beside it. A user with it has the
 * shares of its account. */
#include <math.h>
#include <stdlib.h>

#include "core/acct.h"

static bool as_parent(const struct acct_assoc *s) { return s->m->has_shares && s->m->shares == UINT32_MAX; }
/* 2^-x; the core has no mathematics library. */
static double half_power(double x)
{
	double term = 1, sum = 1, v = 1;
	if (x > 1074)
		return 0;
	for (; x >= 1; x -= 1)
		v /= 2;
	for (int i = 1; i < 24; i++)
		sum += term *= -x * 0.69314718055994531 / i;
	return v * sum;
}

static double shares_of(const struct acct_assoc *s) { return s->m->has_shares ? s->m->shares : 1; }

struct level { struct acct_assoc **at; uint32_t n; size_t cap; };

/* Siblings on the level below s: through accounts that are no level of their own. */
static void below(const struct acct_assoc *s, struct level *l)
{
	for (struct acct_assoc *k = s->child; k; k = k->next) {
		if (as_parent(k) && !k->key.user) {
			below(k, l);
			continue;
		}
		l->at = xgrow(l->at, &l->cap, l->n + 1, sizeof *l->at);
		l->at[l->n++] = k;
	}
}

static void shares_set(struct acct_assoc *s, bool tree, double root_raw)
{
	struct level l = { 0 };
	double all = 0;
	below(s, &l);
	for (uint32_t i = 0; i < l.n; i++)
		all += as_parent(l.at[i]) ? 0 : shares_of(l.at[i]);
	for (uint32_t i = 0; i < l.n; i++) {
		struct acct_assoc *k = l.at[i];
		double part = all > 0 && !as_parent(k) ? shares_of(k) / all : 0, use = root_raw > 0 ? k->used.raw / root_raw : 0;
		k->shares = shares_of(k);
		if (as_parent(k) && !tree) {
			k->norm_shares = s->norm_shares;
			k->effective = s->effective;
			k->factor = s->factor;
		} else if (tree) {
			k->norm_shares = as_parent(k) ? s->norm_shares : part;
			k->effective = s->used.raw > 0 ? k->used.raw / s->used.raw : 0;
			k->level_fs = k->shares <= 0 ? 0 : k->effective <= 0 ? INFINITY : k->norm_shares / k->effective;
		} else {
			k->norm_shares = part * (s->parent || s->norm_shares > 0 ? s->norm_shares : 1);
			k->effective = s->parent ? use + (s->effective - use) * part : use;
			k->factor = k->norm_shares > 0 ? half_power(k->effective / k->norm_shares) : 0;
		}
		shares_set(k, tree, root_raw);
	}
	free(l.at);
}

/* Highest first; of equal ones users come first. */
static bool goes_before(const struct acct_assoc *a, const struct acct_assoc *b)
{
	return a->level_fs != b->level_fs ? a->level_fs > b->level_fs : a->key.user && !b->key.user;
}

static void level_sort(struct level *l)
{
	struct acct_assoc **tmp = xcalloc(l->n + 1, sizeof *tmp);
	for (uint32_t w = 1; w < l->n; w *= 2) {
		for (uint32_t lo = 0; lo < l->n; lo += 2 * w) {
			uint32_t mid = lo + w < l->n ? lo + w : l->n, hi = lo + 2 * w < l->n ? lo + 2 * w : l->n, i = lo, k = mid;
			for (uint32_t o = lo; o < hi; o++)
				tmp[o] = i < mid && (k >= hi || !goes_before(l->at[k], l->at[i])) ? l->at[i++] : l->at[k++];
		}
		memcpy(l->at, tmp, l->n * sizeof *l->at);
	}
	free(tmp);
}

struct ranks { double all; uint32_t rank, left; };

/* tied: the first of them stands beside the last one ranked. */
static void rank(struct level *l, struct ranks *r, bool tied)
{
	level_sort(l);
	for (uint32_t i = 0; i < l->n; i++) {
		struct acct_assoc *k = l->at[i];
		tied = i ? k->level_fs == l->at[i - 1]->level_fs : tied;
		if (k->key.user) {
			if (!tied)
				r->rank = r->left;
			k->factor = r->rank / r->all;
			r->left--;
			continue;
		}
		struct level next = { 0 };
		below(k, &next);
		rank(&next, r, tied);
		free(next.at);
	}
}

void fairshare_set(struct core *c)
{
	struct acct *a = c->acct;
	bool tree = !(c->params.prio_flags & PRIO_NO_FAIR_TREE);
	struct level top = { 0 };
	struct ranks r;
	if (!a || !a->root)
		return;
	a->root->norm_shares = 0;
	a->root->effective = 1;
	shares_set(a->root, tree, a->root->used.raw);
	if (!tree)
		return;
	r = (struct ranks){ .all = a->users, .rank = a->users, .left = a->users };
	below(a->root, &top);
	rank(&top, &r, false);
	free(top.at);
}
