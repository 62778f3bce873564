/* usage.c - what associations and QOS have used: counted, decayed, kept over restarts, and held against limits of use
 *
 * usage.at is the moment until which all is counted. Every PriorityCalcPeriod, and before it is kept or shown, what was there decays by the half-life
 * and what jobs used since is added (less what of it has decayed itself). The kept record holds what was used until its moment; at start-up the records
 * of jobs give the rest, so no job's record may go before what it used is kept. Times are seconds. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/priority.h"

enum { CALC_SEC = 300, DAY = 86400 };

static const double ln2 = 0.69314718055994531;

static double positive(double v) { return v > 0 ? v : 0; }

/* What is left of one after so long. */
static double decayed(const struct core *c, uint32_t sec)
{
	double left = 1, by = c->params.decay_half_sec ? positive(1 - ln2 / c->params.decay_half_sec) : 1;
	for (uint32_t n = sec; n; n >>= 1, by *= by)
		left *= n & 1 ? by : 1;
	return left;
}

static void used_add(const struct core *c, struct acct_used *u, const struct acct_want *w, double billing, double wall, double by)
{
	u->wall += wall * by;
	u->raw += billing * wall * by;
	for (uint32_t i = 0; i < c->acct->tres_n; i++)
		u->tres[i] += (double)w->tres[i] * wall * by;
}

static double factor_of(const struct acct_qos *q) { return q && q->m->has_usage_factor ? q->m->usage_factor : 1; }

static void charge(struct core *c, const struct acct_counted *k, uint32_t sec)
{
	double wall = sec * decayed(c, sec), by = factor_of(k->qos), billing = (double)k->w.billing;
	struct acct_qos *qos[2] = { k->qos, k->part_qos == k->qos ? NULL : k->part_qos };
	for (int i = 0; i < 2; i++)
		if (qos[i])
			used_add(c, &qos[i]->used, &k->w, billing, qos[i]->m->flags & QOSF_NO_DECAY ? sec : wall, by);
	for (struct acct_assoc *s = k->assoc; s; s = s->parent)
		used_add(c, &s->used, &k->w, billing, wall, by);
}

static uint32_t suspended(const struct core *c, const struct core_job *j)
{
	return j->susp_total + (j->state == PB__JOB_STATE__SUSPENDED ? now_sec(c) - j->suspend : 0);
}

void usage_job(struct core *c, const struct core_job *j, struct acct_counted *k)
{
	uint32_t now = now_sec(c), stood = suspended(c, j), over = stood - k->suspended;
	if (now > k->from && now - k->from > over)
		charge(c, k, now - k->from - over);
	k->from = now;
	k->suspended = stood;
}

/* --- decay ---------------------------------------------------------------------------------------------- */

static void used_decay(const struct core *c, struct acct_used *u, double by)
{
	u->raw *= by;
	u->wall *= by;
	for (uint32_t i = 0; i < c->acct->tres_n; i++)
		u->tres[i] *= by;
}

static void all_decay(struct core *c, double by)
{
	struct acct_qos *q, *qt;
	struct acct_assoc *s, *st;
	HASH_ITER(hh, c->acct->qos, q, qt)
		if (!(q->m->flags & QOSF_NO_DECAY))
			used_decay(c, &q->used, by);
	HASH_ITER(hh, c->acct->assoc, s, st)
		used_decay(c, &s->used, by);
}

/* Midnight before `wall`, or before the first day of its week, month, quarter or year. */
static int64_t period_began(int64_t wall, uint32_t period)
{
	int64_t day = wall / DAY, z = day + 719468, era = z / 146097, doe = z - era * 146097, yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 3 : mp - 9;
	static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
	int64_t year = yoe + era * 400 + (month <= 2), mday = doy - (153 * mp + 2) / 5;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	int64_t first = period == RESET_QUARTERLY ? (month - 1) / 3 * 3 + 1 : period == RESET_YEARLY ? 1 : month, back = mday;
	for (int64_t m = first; m < month; m++)
		back += before[m] - before[m - 1] + (m == 2 && leap);
	if (period == RESET_DAILY)
		back = 0;
	else if (period == RESET_WEEKLY)
		back = zone_weekday(wall);
	return (day - back) * DAY;
}

static void reset_when_due(struct core *c)
{
	uint32_t now = now_sec(c), period = c->params.usage_reset;
	bool due = period == RESET_NOW && !c->usage.reset_at;
	if (period == RESET_NONE)
		return;
	if (!c->usage.reset_at && !due) {
		c->usage.reset_at = now;
		return;
	}
	due = due || (period != RESET_NOW && c->usage.reset_at < zone_utc(&c->params.zone, period_began(zone_wall(&c->params.zone, now), period)));
	if (!due)
		return;
	all_decay(c, 0);
	c->usage.reset_at = now;
}

static void jobs_charged(struct core *c)
{
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			return;
		if (j->x && j->x->counted)
			usage_job(c, j, j->x->counted);
	}
}

void usage_settle(struct core *c)
{
	uint32_t now = now_sec(c);
	if (!c->acct || now <= c->usage.at)
		return;
	if (c->usage.at)
		all_decay(c, decayed(c, now - c->usage.at));
	c->usage.at = now;
	reset_when_due(c);
	jobs_charged(c);
}

/* --- kept ----------------------------------------------------------------------------------------------- */

static Pb__AcctUsed *used_message(const struct core *c, const struct acct_used *u, uint32_t id, bool qos, bool has_reset, uint64_t reset)
{
	struct arena *a = fx_arena((struct core *)c);
	Pb__AcctUsed *m = arena_alloc(a, sizeof *m);
	pb__acct_used__init(m);
	m->id = id;
	m->has_qos = m->qos = qos;
	m->has_raw = m->has_wall = true;
	m->raw = u->raw;
	m->wall = u->wall;
	m->has_raw_reset = has_reset;
	m->raw_reset = reset;
	m->amount = arena_alloc(a, (c->acct->tres_n + 1) * sizeof *m->amount);
	for (uint32_t i = 0; i < c->acct->tres_n; i++) {
		if (u->tres[i] <= 0)
			continue;
		Pb__AcctAmount *t = arena_alloc(a, sizeof *t);
		pb__acct_amount__init(t);
		t->tres = arena_strdup(a, atom_text(c, c->acct->tres[i]));
		t->seconds = u->tres[i];
		m->amount[m->n_amount++] = t;
	}
	return m;
}

static bool nothing_of(const struct acct_used *u, bool has_reset) { return u->raw <= 0 && u->wall <= 0 && !has_reset; }

void usage_persist(struct core *c)
{
	struct acct_qos *q, *qt;
	struct acct_assoc *s, *st;
	if (!c->acct || c->restoring)
		return;
	usage_settle(c);
	struct arena *a = fx_arena(c);
	Pb__AcctUsage *m = arena_alloc(a, sizeof *m);
	pb__acct_usage__init(m);
	m->at = now_sec(c);
	m->has_reset_at = c->usage.reset_at != 0;
	m->reset_at = c->usage.reset_at;
	m->used = arena_alloc(a, (HASH_COUNT(c->acct->qos) + HASH_COUNT(c->acct->assoc) + 1) * sizeof *m->used);
	HASH_ITER(hh, c->acct->qos, q, qt)
		if (!nothing_of(&q->used, q->m->has_raw_reset))
			m->used[m->n_used++] = used_message(c, &q->used, q->m->id, true, q->m->has_raw_reset, q->m->raw_reset);
	HASH_ITER(hh, c->acct->assoc, s, st)
		if (!nothing_of(&s->used, s->m->has_raw_reset))
			m->used[m->n_used++] = used_message(c, &s->used, s->m->id, false, s->m->has_raw_reset, s->m->raw_reset);
	effects_push(c->fx, FX_PERSIST_USAGE)->msg = &m->base;
	c->usage.kept_at = now_sec(c);
}

void usage_forget(struct core *c, const struct core_job *j)
{
	if (c->acct && c->acct->root && j->end > c->usage.kept_at)
		usage_persist(c);
}

/* --- tables anew ---------------------------------------------------------------------------------------- */

static void used_take(struct core *c, struct acct_used *u, const Pb__AcctUsed *m)
{
	u->raw = m->raw;
	u->wall = m->wall;
	for (size_t i = 0; i < m->n_amount; i++)
		for (uint32_t k = 0, id = atom_find(c, m->amount[i]->tres); k < c->acct->tres_n; k++)
			if (c->acct->tres[k] == id)
				u->tres[k] = m->amount[i]->seconds;
}

static void used_less(const struct core *c, struct acct_used *from, const struct acct_used *u)
{
	from->raw = positive(from->raw - u->raw);
	from->wall = positive(from->wall - u->wall);
	for (uint32_t i = 0; i < c->acct->tres_n; i++)
		from->tres[i] = positive(from->tres[i] - u->tres[i]);
}

static void below_cleared(struct acct_assoc *s)
{
	s->used = (struct acct_used){ 0 };
	for (struct acct_assoc *k = s->child; k; k = k->next)
		below_cleared(k);
}

/* sacctmgr modify ... set rawusage=0 came since. */
static void assoc_reset(const struct core *c, struct acct_assoc *s)
{
	struct acct_used was = s->used;
	for (struct acct_assoc *at = s->parent; at; at = at->parent)
		used_less(c, &at->used, &was);
	below_cleared(s);
}

/* Resources may have got other places. */
static void used_copy(const struct core *c, const struct acct *old, const struct acct_used *from, struct acct_used *to)
{
	to->raw = from->raw;
	to->wall = from->wall;
	for (uint32_t i = 0; i < c->acct->tres_n; i++)
		for (uint32_t k = 0; k < old->tres_n; k++)
			if (old->tres[k] == c->acct->tres[i])
				to->tres[i] = from->tres[k];
}

static void carry_old(struct core *c, const struct acct *old)
{
	struct acct_qos *q, *qt, *qo;
	struct acct_assoc *s, *st, *so;
	HASH_ITER(hh, c->acct->qos, q, qt) {
		HASH_FIND(hh, old->qos, &q->name, sizeof q->name, qo);
		if (qo && qo->m->id == q->m->id && qo->m->raw_reset == q->m->raw_reset)
			used_copy(c, old, &qo->used, &q->used);
	}
	HASH_ITER(hh, c->acct->assoc, s, st) {
		HASH_FIND(hh, old->assoc, &s->key, sizeof s->key, so);
		if (so && so->m->id == s->m->id)
			used_copy(c, old, &so->used, &s->used);
	}
	HASH_ITER(hh, c->acct->assoc, s, st) {
		HASH_FIND(hh, old->assoc, &s->key, sizeof s->key, so);
		if (so && so->m->id == s->m->id && so->m->raw_reset != s->m->raw_reset)
			assoc_reset(c, s);
	}
}

static void carry_kept(struct core *c)
{
	struct acct_qos *q, *qt;
	struct acct_assoc *s, *st;
	const Pb__AcctUsage *m = c->usage.kept;
	for (size_t i = 0; m && i < m->n_used; i++) {
		HASH_ITER(hh, c->acct->qos, q, qt)
			if (m->used[i]->qos && q->m->id == m->used[i]->id && q->m->raw_reset == m->used[i]->raw_reset)
				used_take(c, &q->used, m->used[i]);
		HASH_ITER(hh, c->acct->assoc, s, st)
			if (!m->used[i]->qos && s->m->id == m->used[i]->id) {
				used_take(c, &s->used, m->used[i]);
				s->factor = s->m->raw_reset != m->used[i]->raw_reset; /* a mark for the next loop */
			}
	}
	HASH_ITER(hh, c->acct->assoc, s, st)
		if (s->factor > 0)
			assoc_reset(c, s);
}

void usage_carry(struct core *c, const struct acct *old)
{
	if (old)
		carry_old(c, old);
	else
		carry_kept(c);
	if (c->usage.kept)
		pb__acct_usage__free_unpacked(c->usage.kept, NULL);
	c->usage.kept = NULL;
}

void usage_restore(struct core *c, const struct core_event *ev)
{
	if (c->usage.kept)
		pb__acct_usage__free_unpacked(c->usage.kept, NULL);
	c->usage.kept = (Pb__AcctUsage *)message_copy(&ev->usage->base);
	c->usage.at = c->usage.kept_at = (uint32_t)ev->usage->at;
	c->usage.reset_at = (uint32_t)ev->usage->reset_at;
}

void usage_job_restored(struct core *c, struct core_job *j)
{
	struct acct_counted k = { 0 };
	uint32_t from = j->start > c->usage.kept_at ? j->start : c->usage.kept_at;
	if (!c->acct)
		return;
	if (j->x && j->x->counted) {
		j->x->counted->from = from;
		return;
	}
	if (!job_state_is_final(j->state) || j->end <= from || !j->start || !j->x || !j->x->tres_alloc)
		return;
	Pb__JobDesc *d = job_desc(j);
	acct_bind(c, j, d);
	pb__job_desc__free_unpacked(d, NULL);
	k.assoc = j->assoc;
	k.qos = j->qos;
	for (uint32_t i = 0; i < c->acct->tres_n; i++)
		k.w.tres[i] = tres_get(j->x->tres_alloc, atom_text(c, c->acct->tres[i]));
	k.w.billing = tres_get(j->x->tres_alloc, "billing");
	charge(c, &k, j->end - from);
	j->qos = NULL;
	j->assoc = NULL;
}

/* --- the timer ------------------------------------------------------------------------------------------ */

void usage_begin(struct core *c)
{
	uint32_t sec = c->params.calc_period_sec ? c->params.calc_period_sec : CALC_SEC;
	if (c->acct && c->acct->root)
		timer_add_single(c, (now_sec(c) + sec) * 1000ull, TIMER_USAGE, &c->usage.tick_ms);
}

static bool over(const struct acct_used *u, const struct acct_limit *l, uint32_t at)
{
	double used = l->row->what == LIMIT_OF_WALL ? u->wall : u->tres[at];
	return used >= (double)l->m->value * 60;
}

bool usage_spent(const struct core *c, const struct core_job *j, struct acct_hit *ret)
{
	struct acct_limit l[ACCT_LIMITS_MAX];
	uint32_t n = acct_limits(c, j, j->part < c->part_n ? c->part[j->part] : NULL, l);
	for (uint32_t i = 0; i < n; i++) {
		bool of_use = l[i].row->what == LIMIT_OF_MINS || (l[i].row->what == LIMIT_OF_WALL && l[i].row->scope == LIMIT_PER_GROUP);
		uint32_t at = acct_tres_at(c, l[i].m->tres);
		if (of_use && (l[i].row->what == LIMIT_OF_WALL || at < c->acct->tres_n) && over(l[i].qos ? &l[i].qos->used : &l[i].assoc->used, &l[i], at)) {
			*ret = (struct acct_hit){ .by = l[i] };
			return true;
		}
	}
	return false;
}

/* Jobs that run over a limit of use end, unless such a limit only stops starts (safe). */
static void spent_end(struct core *c)
{
	struct acct_hit hit;
	if (!c->acct->limited || c->params.enforce & ENFORCE_SAFE)
		return;
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			return;
		if (!j->x || !j->x->counted || !usage_spent(c, j, &hit))
			continue;
		fx_log(c, LOG_L_INFO, "job %u ends: %s %s is used up", j->id, hit.by.qos ? hit.by.row->qos : hit.by.row->assoc, hit.by.m->tres ? hit.by.m->tres : "");
		life_time_out(c, j, "DUE TO TIME LIMIT");
	}
}

static void queue_again(struct core *c)
{
	bool keys = c->params.weight_fair && c->params.priority_multifactor;
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			return;
		bool threshold = j->qos && j->qos->m->flags & QOSF_USAGE_THRESHOLD;
		if (j->state == PB__JOB_STATE__PENDING && (threshold || (keys && j->qnode.in && prio_key(c, j) != j->key)))
			queue_update(c, j);
	}
}

void usage_tick(struct core *c)
{
	c->usage.tick_ms = c->usage.tick_ms <= c->now_ms ? 0 : c->usage.tick_ms;
	usage_begin(c);
	if (!c->acct || !c->acct->root)
		return;
	usage_settle(c);
	spent_end(c);
	fairshare_set(c);
	queue_again(c);
	usage_persist(c);
	c->acct->look = c->sched_wanted = true;
}
