/* billing.c - what a job is charged: the weighted sum of what it has in its partition (TRESBillingWeights; tres.html)
 * Without weights it is the CPUs. PriorityFlags=MAX_TRES takes the largest of what lies on nodes, MAX_TRES_GRES adds generic resources up and takes the
 * largest of the rest; licenses always add up. The amount is cut to a whole number. */
#include <math.h>
#include <stdlib.h>

#include "core/acct.h"

/* "0.25G": a weight of each 1024 MiB, of each 1024^3 of a count. */
static bool weight_parse(const char *text, bool mem, double *ret)
{
	static const char unit[] = "KMGTP";
	char *end;
	double v = strtod(text, &end);
	const char *at = *end ? strchr(unit, *end & ~32) : NULL;
	if (end == text || v < 0 || isnan(v) || isinf(v) || (*end && (!at || end[1])))
		return false;
	for (long steps = at ? at - unit + (mem ? -1 : 1) : 0; steps; steps += steps > 0 ? -1 : 1)
		v = steps > 0 ? v / 1024 : v * 1024;
	*ret = v;
	return true;
}

void billing_load(struct core *c, struct core_part *p, const char *text)
{
	char *copy = xstrdup(text ? text : ""), *at = copy, *w;
	size_t cap = 0;
	xfree(p->bill);
	p->bill_n = 0;
	while ((w = str_next(&at, ","))) {
		char *eq = strchr(w, '=');
		double v;
		if (!*w)
			continue;
		if (eq)
			*eq = 0;
		for (char *s = w; *s && *s != ':' && *s != '/'; s++)
			*s = (char)(*s >= 'A' && *s <= 'Z' ? *s + 32 : *s);
		if (!eq || !weight_parse(eq + 1, !strcmp(w, "mem"), &v)) {
			fx_log(c, LOG_L_ERROR, "partition %s: TRESBillingWeights: \"%s\" has no weight: it is left out", p->rec->name, w);
			continue;
		}
		p->bill = xgrow(p->bill, &cap, p->bill_n + 1, sizeof *p->bill);
		p->bill[p->bill_n++] = (struct prio_tres){ atom_get(c, w), v };
	}
	free(copy);
}

void billing_set(const struct core *c, const struct core_part *p, const struct shape *s, struct tres_sum *t)
{
	double sum = 0, most = 0, gres = 0, global = 0;
	t->billing = t->cpu;
	if (!p || !p->bill_n)
		return;
	for (uint32_t i = 0; i < p->bill_n; i++) {
		const char *name = atom_text(c, p->bill[i].name);
		double v = p->bill[i].weight;
		if (str_starts(name, "license/")) {
			global += v * (double)(s ? acct_licenses(c, s, name + 8) : 0);
			continue;
		}
		v *= strcmp(name, "billing") ? (double)acct_of_sum(t, name) : 0;
		sum += v;
		if (str_starts(name, "gres/") && c->params.prio_flags & PRIO_MAX_TRES_GRES)
			gres += v;
		else
			most = v > most ? v : most;
	}
	t->billing = (uint64_t)((c->params.prio_flags & (PRIO_MAX_TRES | PRIO_MAX_TRES_GRES) ? most + gres : sum) + global);
}
