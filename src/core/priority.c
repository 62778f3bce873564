/* priority.c - a job's priority, factor by factor
 * priority/multifactor: site + sum of weight x factor - nice. Only age moves with time, and for all alike, so the order of the queue needs the rest alone
 * (queue.c). The fair-share factor moves with
 * what is used (usage.c, fairshare.c): jobs find their place anew then. A job in several partitions has a priority in each; the
 * queue orders it by the highest. priority/basic: as given at submission, less nice. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/priority.h"

static uint32_t max_age(const struct core *c) { return c->params.max_age_sec ? c->params.max_age_sec : 7 * 86400; }

/* PriorityWeightTRES: "cpu=1000,mem=2000,gres/gpu=3000"; weights may be negative. */
void prio_config(struct core *c, const char *text)
{
	char *copy = xstrdup(text ? text : ""), *at = copy, *w;
	c->ptres_n = 0;
	while ((w = str_next(&at, ",")) && c->ptres_n < PRIO_TRES_MAX) {
		char *eq = strchr(w, '=');
		long long n;
		if (!eq)
			continue;
		*eq = 0;
		if (str_to_i64(eq + 1, -4294967295ll, 4294967295ll, &n) < 0) {
			fx_log(c, LOG_L_ERROR, "PriorityWeightTRES: \"%s\" is not a weight of %s; it is left out", eq + 1, w);
			continue;
		}
		for (char *p = w; *p && *p != '/'; p++)
			*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
		c->ptres[c->ptres_n++] = (struct prio_tres){ atom_get(c, w), (double)n };
	}
	free(copy);
}

/* How much of a resource a partition (of licenses: the cluster) has; counted once a configuration. */
static double total_of(const struct core *c, const struct core_part *p, const char *name)
{
	struct core_part *own = (struct core_part *)p; /* a cache */
	struct core_license l;
	for (size_t i = 0; str_starts(name, "license/") && core_license(c, i, &l); i++)
		if (!strcmp(l.name, name + 8))
			return l.total;
	if (!own->tres || own->tres_gen != c->config_gen) {
		free(own->tres);
		own->tres = part_tres(c, p);
		own->tres_gen = c->config_gen;
	}
	return (double)tres_get(own->tres, name);
}

static double clip(double v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

static double size_factor(const struct core *c, const struct core_job *j)
{
	const struct shape *s = j->shape;
	double nodes = s->min_nodes, cpus = (double)s->tasks * s->cpus_per_task, f;
	if (!c->node_n || !c->cpu_total)
		return 0;
	f = (clip(nodes / c->node_n) + clip(cpus / (double)c->cpu_total)) / 2;
	if (c->params.prio_flags & PRIO_SMALL_RELATIVE_TO_TIME)
		f = clip(nodes / c->node_n) / (j->time_min == TIME_INFINITE ? 525600.0 : j->time_min ? j->time_min : 1);
	return c->params.favor_small ? 1 - f : f;
}

static double part_factor(const struct core *c, const struct core_part *p)
{
	uint32_t most = 1, mine = p && p->rec->has_priority_job_factor ? p->rec->priority_job_factor : 1;
	if (c->params.prio_flags & PRIO_NO_NORMAL_PART)
		return mine;
	for (uint32_t i = 0; i < c->part_n; i++) {
		uint32_t f = c->part[i]->rec->has_priority_job_factor ? c->part[i]->rec->priority_job_factor : 1;
		most = f > most ? f : most;
	}
	return (double)mine / most;
}

/* Waiting time that counts: since it could start, without what it was held or not eligible. */
static double age_factor(const struct core *c, const struct core_job *j)
{
	bool always = c->params.prio_flags & PRIO_ACCRUE_ALWAYS, stops = j->start && j->state != PB__JOB_STATE__PENDING && !(c->params.prio_flags & PRIO_CALCULATE_RUNNING);
	uint32_t until = stops ? j->start : !always && j->paused_at && j->state == PB__JOB_STATE__PENDING ? j->paused_at : now_sec(c);
	uint32_t from = always ? j->submit : j->accrue ? j->accrue : until;
	return until > from ? clip((double)(until - from) / max_age(c)) : 0;
}

static void tres_factors(const struct core *c, const struct core_job *j, const struct core_part *p, struct prio *ret)
{
	const char *req = c->ptres_n ? shape_tres((struct core *)c, j->shape) : NULL;
	for (uint32_t i = 0; i < c->ptres_n; i++) {
		const char *name = atom_text(c, c->ptres[i].name);
		double n = (double)tres_get(req, name), all = c->params.prio_flags & PRIO_NO_NORMAL_TRES ? 1 : p ? total_of(c, p, name) : 0;
		ret->tres_norm[i] = all > 0 ? n / all : 0;
		ret->tres_points[i] = ret->tres_norm[i] * c->ptres[i].weight;
	}
}

void prio_of(const struct core *c, const struct core_job *j, const struct core_part *p, struct prio *ret)
{
	const struct core_params *q = &c->params;
	const double weight[PRIO_FACTORS] = { q->weight_age, q->weight_assoc, q->weight_fair, q->weight_job_size, q->weight_partition, q->weight_qos };
	*ret = (struct prio){ .total = 0 };
	if (j->prio_set || !q->priority_multifactor) {
		ret->total = (double)j->prio - (j->prio_set ? 0 : j->nice);
		return;
	}
	ret->norm[PRIO_AGE] = q->weight_age ? age_factor(c, j) : 0;
	ret->norm[PRIO_SIZE] = q->weight_job_size ? size_factor(c, j) : 0;
	ret->norm[PRIO_PART] = q->weight_partition ? part_factor(c, p) : 0;
	ret->norm[PRIO_QOS] = q->weight_qos ? acct_qos_factor(c, j) : 0;
	ret->norm[PRIO_FAIR] = q->weight_fair ? acct_fair_factor(j) : 0;
	ret->norm[PRIO_ASSOC] = q->weight_assoc ? acct_assoc_factor(c, j) : 0;
	tres_factors(c, j, p, ret);
	ret->total = (double)j->site - j->nice;
	for (int i = 0; i < PRIO_FACTORS; i++)
		ret->total += ret->points[i] = ret->norm[i] * weight[i];
	for (uint32_t i = 0; i < c->ptres_n; i++)
		ret->total += ret->tres_points[i];
}

const struct core_part *prio_best(const struct core *c, const struct core_job *j, struct prio *ret)
{
	const struct core_part *best = NULL;
	struct prio one;
	if (j->shape->part_n == 1 || j->prio_set || !c->params.priority_multifactor) {
		prio_of(c, j, j->shape->part_n ? j->shape->part[0] : NULL, ret);
		return j->shape->part_n ? j->shape->part[0] : NULL;
	}
	for (uint32_t i = 0; i < j->shape->part_n; i++) {
		prio_of(c, j, j->shape->part[i], &one);
		if (i && one.total <= ret->total)
			continue;
		*ret = one;
		best = j->shape->part[i];
	}
	return best;
}

static uint32_t shown(double p) { return p < 1 ? 1 : p > 4294967294.0 ? 4294967294u : (uint32_t)p; }

uint32_t job_priority(const struct core *c, const struct core_job *j)
{
	struct prio p;
	if (j->hold && !job_state_is_final(j->state))
		return 0;
	prio_best(c, j, &p);
	return shown(p.total);
}

/* Smaller first. Static part and the moment from which age counts: what age adds from now on is the same for all. */
int64_t prio_key(const struct core *c, const struct core_job *j)
{
	struct prio p;
	prio_best(c, j, &p);
	if (!c->params.priority_multifactor)
		return -(int64_t)p.total;
	uint32_t from = j->prio_set ? j->prio_at : c->params.prio_flags & PRIO_ACCRUE_ALWAYS ? j->submit : j->accrue;
	return -(int64_t)((p.total - p.points[PRIO_AGE]) * max_age(c)) + (int64_t)c->params.weight_age * from;
}

void prio_pause(struct core *c, struct core_job *j, bool waits)
{
	if (waits && !j->paused_at)
		j->paused_at = now_sec(c);
	else if (!waits && j->paused_at) {
		if (j->accrue && j->accrue <= j->paused_at) /* else it became eligible only now */
			j->accrue += now_sec(c) - j->paused_at;
		j->paused_at = 0;
	}
}

/* --- sprio ------------------------------------------------------------------------------------ */

static Pb__PrioFactors *factors_new(const struct core *c, const double *v, const double *tres, uint32_t tres_n)
{
	Pb__PrioFactors *m = xcalloc(1, sizeof *m);
	pb__prio_factors__init(m);
	m->has_age = m->has_assoc = m->has_fairshare = m->has_jobsize = m->has_partition = m->has_qos = true;
	m->age = v[PRIO_AGE];
	m->assoc = v[PRIO_ASSOC];
	m->fairshare = v[PRIO_FAIR];
	m->jobsize = v[PRIO_SIZE];
	m->partition = v[PRIO_PART];
	m->qos = v[PRIO_QOS];
	m->tres = xcalloc(tres_n + 1, sizeof *m->tres);
	for (uint32_t i = 0; i < tres_n; i++) {
		Pb__PrioTres *t = xcalloc(1, sizeof *t);
		pb__prio_tres__init(t);
		t->name = xstrdup(atom_text(c, c->ptres[i].name));
		t->value = tres[i];
		m->tres[m->n_tres++] = t;
	}
	return m;
}

static Pb__PrioJob *prio_job(const struct core *c, const struct core_job *j, const struct core_part *p)
{
	struct prio f;
	Pb__PrioJob *m = xcalloc(1, sizeof *m);
	pb__prio_job__init(m);
	prio_of(c, j, p, &f);
	m->job_id = j->id;
	m->user = xstrdup_null(atom_text(c, j->user));
	m->has_uid = m->has_site = m->has_nice = true;
	m->uid = j->uid;
	m->account = job_desc_str(j, 2);
	m->qos = job_desc_str(j, 3);
	m->partition = xstrdup_null(p ? p->rec->name : NULL);
	m->priority = shown(f.total);
	m->site = j->prio_set ? 0 : j->site;
	m->nice = j->prio_set ? 0 : j->nice;
	m->norm = factors_new(c, f.norm, f.tres_norm, j->prio_set ? 0 : c->ptres_n);
	m->points = factors_new(c, f.points, f.tres_points, j->prio_set ? 0 : c->ptres_n); /* set by hand: no factors */
	m->sluid = record_sluid(j);
	return m;
}

Pb__PrioListRsp *core_priorities(const struct core *c, const uint32_t *uid)
{
	const struct core_params *q = &c->params;
	const double weight[PRIO_FACTORS] = { q->weight_age, q->weight_assoc, q->weight_fair, q->weight_job_size, q->weight_partition, q->weight_qos };
	double tres[PRIO_TRES_MAX];
	Pb__PrioListRsp *r = xcalloc(1, sizeof *r);
	size_t cap = 0;
	pb__prio_list_rsp__init(r);
	for (uint32_t i = 0; i < c->ptres_n; i++)
		tres[i] = c->ptres[i].weight;
	r->weight = factors_new(c, weight, tres, c->ptres_n);
	r->has_multifactor = true;
	r->multifactor = q->priority_multifactor;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		if (j->state != PB__JOB_STATE__PENDING || j->hold || j->wait == REASON_DEPENDENCY || j->wait == REASON_DEPENDENCY_NEVER || j->wait == REASON_BEGIN_TIME || (uid && j->uid != *uid))
			continue;
		for (uint32_t p = 0; p < j->shape->part_n; p++) {
			r->job = xgrow(r->job, &cap, r->n_job + 1, sizeof *r->job);
			r->job[r->n_job++] = prio_job(c, j, j->shape->part[p]);
		}
	}
	return r;
}

/* --- why -------------------------------------------------------------------------------------- */

static void term(Pb__WhyPriority *m, const char *name, double factor, double weight, double points)
{
	Pb__WhyTerm *t;
	if (!weight && !points)
		return;
	t = xcalloc(1, sizeof *t);
	pb__why_term__init(t);
	t->name = xstrdup(name);
	t->factor = factor;
	t->weight = weight;
	t->points = points;
	m->term = xrealloc(m->term, (m->n_term + 1) * sizeof *m->term);
	m->term[m->n_term++] = t;
}

Pb__WhyPriority *prio_explain(const struct core *c, const struct core_job *j)
{
	static const char *const name[PRIO_FACTORS] = { "age", "association", "fair share", "job size", "partition", "QOS" };
	const struct core_params *q = &c->params;
	const double weight[PRIO_FACTORS] = { q->weight_age, q->weight_assoc, q->weight_fair, q->weight_job_size, q->weight_partition, q->weight_qos };
	struct prio f;
	Pb__WhyPriority *m = xcalloc(1, sizeof *m);
	pb__why_priority__init(m);
	prio_best(c, j, &f);
	m->total = job_priority(c, j);
	m->has_by_hand = true;
	m->by_hand = j->prio_set;
	if (j->prio_set || !q->priority_multifactor) {
		if (!j->prio_set)
			term(m, "submission", 0, 0, j->prio);
		if (!j->prio_set)
			term(m, "nice", 0, 0, -j->nice);
		return m;
	}
	term(m, "site", 0, 0, j->site);
	for (int i = 0; i < PRIO_FACTORS; i++)
		term(m, name[i], f.norm[i], weight[i], f.points[i]);
	for (uint32_t i = 0; i < c->ptres_n; i++)
		term(m, atom_text(c, c->ptres[i].name), f.tres_norm[i], c->ptres[i].weight, f.tres_points[i]);
	term(m, "nice", 0, 0, -j->nice);
	return m;
}
