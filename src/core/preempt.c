/* preempt.c - a job of a higher partition takes the place of running ones: whom, when, and how they end
 * PreemptType=preempt/partition_prio: jobs of partitions with a lower PriorityTier give way; preempt/qos: jobs of a QOS that the other's names. First those that need only be suspended (PreemptMode=SUSPEND): the one
 * that waits is placed on their CPUs at once (preempt_over), and gang.c stops them; they keep memory and devices. Where that is not
 * enough others end. Those are chosen so that few are lost: one alone if one is enough, else from the lowest tier, the smallest and the youngest
 * on, and none that the start does not need. Whether enough would be free is asked of the same placement as everything else, with the
 * chosen ones taken for ended (core.dooming). A chosen job is told (SIGCONT, SIGTERM), has its partition's GraceTime, and then is
 * cancelled or requeued as PreemptMode says. The one that waits keeps its place by an ordinary promise. One whose victims are gone and that found no
 * place even so takes no others for a while (preempt_next): else the same jobs would be started and ended for ever. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/reserve.h"

#define SINGLES_MAX 32
#define PRUNE_MAX 64
#define SIG_TERM 15
#define SIG_CONT 18
#define AGAIN_SEC 60

/* over: those that can be suspended; else those that are to end. */
struct victims { struct core_job **j; uint32_t n; size_t cap; uint64_t retry_ms; bool over; };
struct place { uint32_t at, minutes; const struct resv *in; };

enum preempt_mode preempt_mode(const struct core *c, const struct core_part *p)
{
	const char *m = p->rec->preempt_mode;
	if (!m || !m[0] || str_eq_nocase(m, "GANG"))
		return (enum preempt_mode)c->params.preempt_mode;
	return strcasestr(m, "OFF") ? PREEMPT_OFF : strcasestr(m, "SUSPEND") ? PREEMPT_SUSPEND : strcasestr(m, "REQUEUE") ? PREEMPT_REQUEUE : PREEMPT_CANCEL;
}

static const struct core_part *part_of(const struct core *c, const struct core_job *j) { return j->part < c->part_n ? c->part[j->part] : NULL; }

/* What happens to this one: as its partition says, with preempt/qos its QOS. */
static enum preempt_mode mode_of(const struct core *c, const struct core_job *j)
{
	const char *m = j->qos ? j->qos->m->preempt_mode : NULL;
	if (!c->params.preempt_qos)
		return part_of(c, j) ? preempt_mode(c, part_of(c, j)) : PREEMPT_OFF;
	if (!m || !m[0] || str_eq_nocase(m, "cluster") || str_eq_nocase(m, "WITHIN"))
		return (enum preempt_mode)c->params.preempt_mode;
	return strcasestr(m, "OFF") ? PREEMPT_OFF : strcasestr(m, "REQUEUE") ? PREEMPT_REQUEUE : PREEMPT_CANCEL;
}

static uint32_t grace_of(const struct core *c, const struct core_job *j)
{
	const struct core_part *p = part_of(c, j);
	if (c->params.preempt_qos)
		return j->qos ? j->qos->m->grace_sec : 0;
	return p && p->rec->has_grace_time_sec ? p->rec->grace_time_sec : 0;
}

/* preempt/qos: its QOS names that of the other; or both have the same, with WITHIN, and it has the higher priority. */
static bool qos_above(const struct core *c, const struct core_job *by, const struct core_job *j)
{
	const char *m = j->qos ? j->qos->m->preempt_mode : NULL;
	bool within = c->params.preempt_within || (m && strcasestr(m, "WITHIN"));
	return acct_preempts(by, j) || (within && by->qos && by->qos == j->qos && job_priority(c, j) < job_priority(c, by));
}

bool preempt_lends(const struct core *c, const struct core_job *j) { return part_of(c, j) && mode_of(c, j) == PREEMPT_SUSPEND; }

/* Of the lowest first: the priority of its QOS, or the tier of its partition. */
static uint32_t rank_of(const struct core *c, const struct core_job *j) { return c->params.preempt_qos ? j->qos ? j->qos->m->priority : 0 : part_of(c, j)->tier; }

/* Suspended ones first: they lose nothing more. Lowest rank, then the smallest, then the youngest. */
static bool first_to_go(const struct core *c, const struct core_job *a, const struct core_job *b)
{
	uint32_t x = rank_of(c, a), y = rank_of(c, b);
	if (a->yields != b->yields)
		return a->yields;
	if (c->params.preempt_youngest && a->start != b->start)
		return a->start > b->start;
	if (x != y)
		return x < y;
	if (a->alloc->n != b->alloc->n)
		return a->alloc->n < b->alloc->n;
	if (a->alloc->cpus != b->alloc->cpus)
		return a->alloc->cpus < b->alloc->cpus;
	return a->start != b->start ? a->start > b->start : a->id > b->id;
}

static bool on_able(const struct core_job *j, const struct bitset *able)
{
	for (uint32_t i = 0; i < j->alloc->n; i++)
		if (j->alloc->on[i].state == ON_HELD && bitset_has(able, j->alloc->on[i].node))
			return true;
	return false;
}

/* Must it give way to a job of that partition, and now? *ret_ms: not yet, but then. */
static bool gives_way(const struct core *c, const struct core_job *j, const struct core_job *by, uint32_t tier, bool over, uint64_t *ret_ms)
{
	const struct core_part *p = part_of(c, j);
	bool live = j->state == PB__JOB_STATE__RUNNING || (j->state == PB__JOB_STATE__SUSPENDED && j->yields);
	if (!live || j->preempt_at || !p || (c->params.preempt_qos ? !qos_above(c, by, j) : p->tier >= tier) || mode_of(c, j) == PREEMPT_OFF || preempt_lends(c, j) != over)
		return false;
	if (over && (j->het || j->flags & JOBF_CONFIGURING || j->launching))
		return false;
	if (c->params.preempt_priority && job_priority(c, j) >= job_priority(c, by))
		return false;
	if (c->params.preempt_exempt_priority && job_priority(c, j) >= c->params.preempt_exempt_priority)
		return false;
	uint32_t exempt = j->qos && j->qos->m->has_exempt_sec ? j->qos->m->exempt_sec : c->params.preempt_exempt_sec;
	uint64_t eligible = ((uint64_t)j->start + exempt) * 1000;
	if (eligible <= c->now_ms)
		return true;
	*ret_ms = eligible < *ret_ms ? eligible : *ret_ms;
	return false;
}

void preempt_counts(const struct core *c, const struct core_job *by, struct preempt_count *ret)
{
	const struct shape *s = by->shape;
	*ret = (struct preempt_count){ .first_ms = UINT64_MAX };
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		bool reached = false, now = false, later = false;
		if (!j)
			break;
		for (uint32_t p = 0; j->alloc && p < s->part_n; p++) {
			uint64_t then = UINT64_MAX;
			if (!s->part[p] || !s->able[p] || !(s->part_mask & 1u << p) || !on_able(j, s->able[p]))
				continue;
			reached = true;
			now = now || gives_way(c, j, by, s->part[p]->tier, true, &then) || gives_way(c, j, by, s->part[p]->tier, false, &then);
			later = later || then != UINT64_MAX;
			ret->first_ms = then < ret->first_ms ? then : ret->first_ms;
		}
		ret->now += now;
		ret->later += !now && later;
		ret->never += reached && !now && !later;
	}
}

static void victim_put(const struct core *c, struct victims *v, struct core_job *j) { v->j = jobs_put(c, v->j, &v->n, &v->cap, j, first_to_go); }

static void collect(struct core *c, struct core_job *by, uint32_t at, struct victims *v)
{
	v->n = 0;
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (j->alloc && gives_way(c, j, by, by->shape->part[at]->tier, v->over, &v->retry_ms) && on_able(j, by->shape->able[at]))
			victim_put(c, v, j);
	}
}

/* Counts again what is in use where they are, and which nodes have room. */
static void lend(struct core *c, const struct victims *v, bool lending)
{
	c->lending = lending;
	for (uint32_t i = 0; i < v->n; i++)
		for (uint32_t k = 0; k < v->j[i]->alloc->n; k++) {
			struct core_node *n = c->node[v->j[i]->alloc->on[k].node];
			bool idle = true;
			node_recount(c, n);
			for (size_t h = 0; h < n->held_n; h++)
				idle = idle && lending && n->held[h].job->doomed;
			(n->cpus_used < n->cap && !n->whole ? bitset_set : bitset_clear)(c->roomy, n->index);
			(idle || !n->held_n ? bitset_set : bitset_clear)(c->idle, n->index);
		}
}

/* Would there be room, with those doomed gone (or suspended)? */
static bool room(struct core *c, struct core_job *j, const struct place *at, const struct victims *v)
{
	struct shape *s = j->shape;
	if (v->over) {
		lend(c, v, true);
		struct alloc *a = place_part(c, j, at->minutes, at->in, at->at);
		alloc_free(a);
		lend(c, v, false);
		return a != NULL;
	}
	struct when w = { .j = j, .start_ms = c->now_ms + 1000, .end_ms = c->now_ms + 1000 + length_ms(at->minutes), .part = s->part[at->at], .in = at->in };
	struct bitset *cand = bitset_copy(s->able[at->at]);
	struct fit *f = NULL;
	bitset_and(cand, c->up);
	resv_candidates(c, at->in, cand);
	uint32_t n = place_choose(c, s, cand, &w, &f);
	if (n)
		free(f);
	bitset_destroy(cand);
	return n > 0;
}

static void doom(struct victims *v, uint32_t n)
{
	for (uint32_t i = 0; i < v->n; i++)
		v->j[i]->doomed = i < n;
}

/* Marks those that are to go. False: all together are not enough. */
static bool choose(struct core *c, struct core_job *j, const struct place *at, struct victims *v)
{
	doom(v, v->n);
	if (!v->n || !room(c, j, at, v))
		return false;
	for (uint32_t i = 0; i < v->n && i < SINGLES_MAX; i++) {
		doom(v, 0);
		v->j[i]->doomed = true;
		if (room(c, j, at, v))
			return true;
	}
	uint32_t lo = 1, hi = v->n; /* the shortest beginning of the list that is enough */
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		doom(v, mid);
		if (room(c, j, at, v))
			hi = mid;
		else
			lo = mid + 1;
	}
	doom(v, lo);
	for (uint32_t i = lo, tries = 0; i-- > 0 && tries < PRUNE_MAX; tries++) { /* spare the oldest that need not go */
		v->j[i]->doomed = false;
		v->j[i]->doomed = !room(c, j, at, v);
	}
	return true;
}

static void tell(struct core *c, struct core_job *j, uint32_t signal)
{
	Pb__SignalReq *m = arena_alloc(fx_arena(c), sizeof *m);
	pb__signal_req__init(m);
	m->job_id = j->id;
	m->signal = signal;
	m->has_full = m->full = m->has_restarts = true; /* the shell and all it started, as well as the steps */
	m->why = signal == SIG_TERM ? (char *)"DUE TO PREEMPTION" : NULL;
	m->restarts = j->restarts;
	m->end = ending_warned(c, j);
	char *nodes = job_nodes_text(c, j);
	fx_to_nodes(c, FX_SIGNAL, j->id, nodes, m);
	free(nodes);
}

/* SIGCONT and SIGTERM; with send_user_signal that of --signal, where it was not sent yet. */
static void warn(struct core *c, struct core_job *j)
{
	tell(c, j, SIG_CONT);
	if (!c->params.preempt_user_signal || !warn_now(c, j))
		tell(c, j, SIG_TERM);
}

static void begin(struct core *c, struct core_job *j, const struct core_job *by)
{
	const struct core_part *p = part_of(c, j);
	uint32_t grace = grace_of(c, j);
	char id[40], other[40];
	j->doomed = false;
	free(job_x(j)->preempted_by);
	j->x->preempted_by = xasprintf("job %s (%s, partition %s)", job_id_text(by, other, sizeof other), atom_text(c, by->user) ? atom_text(c, by->user) : "?", by->shape->part_names[0]);
	j->preempt_at = now_sec(c);
	j->preempt_end = j->preempt_at + grace;
	job_set_limit_timer(c, j);
	for (uint32_t i = 0; i < j->alloc->n; i++) /* they are free sooner than the plan believed */
		sched_gained(c, c->node[j->alloc->on[i].node]->index);
	fx_log(c, LOG_L_INFO, "job %s of partition %s gives way to job %s (%s, %u s of grace)", job_id_text(j, id, sizeof id), p->rec->name, job_id_text(by, other, sizeof other),
	       mode_of(c, j) == PREEMPT_REQUEUE && j->batch && j->requeue ? "requeued" : "cancelled", grace);
	c->preempted++;
	if (!grace) {
		if (c->params.preempt_user_signal)
			(void)warn_now(c, j);
		preempt_finish(c, j);
		return;
	}
	warn(c, j);
	fx_persist(c, j);
}

/* Its time is over, or it ended within its grace, for whatever reason. */
void preempt_finish(struct core *c, struct core_job *j)
{
	enum preempt_mode mode = mode_of(c, j);
	j = het_first(c, j); /* all components go together */
	struct job_extra *x = job_x(j);
	xstr_set(&x->why, "DUE TO PREEMPTION");
	x->end_reason = REASON_PREEMPTED;
	if (j->batch && j->requeue && mode == PREEMPT_REQUEUE)
		job_requeue(c, j, false, 0, c->params.preempt_requeue_sec);
	else
		job_end(c, j, PB__JOB_STATE__PREEMPTED, 0);
}

static bool usable(const struct shape *s, uint32_t at)
{
	return s->part[at] && s->able[at] && (s->part_mask & 1u << at) && (s->part[at]->state == PART_UP || s->part[at]->state == PART_DRAIN);
}

/* Does it use CPUs that another job holds, or the whole node of one? */
static bool overlaps(const struct core *c, const struct alloc *a)
{
	for (uint32_t i = 0; i < a->n; i++)
		for (uint32_t k = 0; k < c->node[a->on[i].node]->cpu_words; k++)
			if (a->exclusive ? c->node[a->on[i].node]->held_n : c->node[a->on[i].node]->used[k] & a->words[a->on[i].bits + k])
				return true;
	return false;
}

static struct alloc *over_in(struct core *c, struct core_job *j, const struct place *at, struct victims *v)
{
	struct alloc *a = NULL;
	if (choose(c, j, at, v)) {
		lend(c, v, true);
		a = place_part(c, j, at->minutes, at->in, at->at);
		lend(c, v, false);
	}
	doom(v, 0);
	if (a)
		a->over = overlaps(c, a);
	return a;
}

struct alloc *preempt_over(struct core *c, struct core_job *j, uint32_t minutes, struct core_part **ret_part)
{
	struct shape *s = j->shape;
	struct victims v = { .retry_ms = UINT64_MAX, .over = true };
	struct resv *in[RESV_USE_MAX + 1];
	struct alloc *a = NULL;
	uint32_t n = resv_choices(c, s, in);
	if (!c->params.preempt || j->het || !license_room(c, j, &s->lic))
		return NULL;
	for (uint32_t p = 0; p < s->part_n && !a; p++) {
		if (!usable(s, p))
			continue;
		collect(c, j, p, &v);
		for (uint32_t i = 0; i < n && v.n && !a; i++) {
			struct place at = { .at = p, .minutes = minutes, .in = in[i] };
			a = !in[i] || resv_open(c, in[i]) ? over_in(c, j, &at, &v) : NULL;
		}
		*ret_part = s->part[p];
	}
	if (!a && v.retry_ms != UINT64_MAX)
		timer_add(c, v.retry_ms, TIMER_BEGIN, j->id, 0);
	free(v.j);
	return a;
}

static bool try_in(struct core *c, struct core_job *j, uint32_t p, struct victims *v, struct victims *lenders)
{
	struct resv *in[RESV_USE_MAX + 1];
	uint32_t n = resv_choices(c, j->shape, in);
	bool done = false;
	collect(c, j, p, v);
	collect(c, j, p, lenders);
	c->dooming = true;
	doom(lenders, lenders->n); /* beside those that end, the CPUs of all that can be suspended */
	for (uint32_t i = 0; i < n && !done; i++) {
		struct place at = { .at = p, .minutes = j->time_min, .in = in[i] };
		if (in[i] && !resv_open(c, in[i]))
			continue;
		if (room(c, j, &at, v)) { /* enough are on their way out already */
			doom(v, 0);
			v->retry_ms = UINT64_MAX;
			done = true;
		} else
			done = choose(c, j, &at, v);
	}
	if (!done)
		doom(v, 0);
	doom(lenders, 0);
	c->dooming = false;
	return done;
}

/* Those marked are told to go. */
static bool take_them(struct core *c, struct core_job *by, struct victims *v)
{
	bool any = false;
	for (uint32_t i = 0; i < v->n; i++) {
		bool goes = v->j[i]->doomed && (v->j[i]->state == PB__JOB_STATE__RUNNING || v->j[i]->yields) && !v->j[i]->preempt_at; /* not yet with another component of its job */
		v->j[i]->doomed = false;
		if (goes)
			begin(c, v->j[i], by);
		any = any || goes;
	}
	if (any) {
		by->preempt_next = now_sec(c) + (AGAIN_SEC << (by->preempts < 6 ? by->preempts : 6));
		by->preempts++;
		timer_add(c, by->preempt_next * 1000ull, TIMER_BEGIN, by->id, 0);
	}
	return any;
}

/* It made others go a moment ago: it waits for their places, not for more of them. */
static bool waits_for_places(const struct core *c, const struct core_job *j) { return j->preempt_next > now_sec(c); }

/* A head that found no room: others make room for it, now or after their grace. True: they do. */
bool preempt_try(struct core *c, struct core_job *j)
{
	if (j->shape->limited)
		return false;
	struct shape *s = j->shape;
	struct victims v = { .retry_ms = UINT64_MAX }, lenders = { .retry_ms = UINT64_MAX, .over = true };
	bool done = false;
	if (!c->params.preempt || j->het || waits_for_places(c, j)) /* who would make room for all components is not looked for */
		return false;
	for (uint32_t p = 0; p < s->part_n && !done; p++)
		done = usable(s, p) && try_in(c, j, p, &v, &lenders);
	if (done)
		(void)take_them(c, j, &v);
	else if (v.retry_ms != UINT64_MAX)
		timer_add(c, v.retry_ms, TIMER_BEGIN, j->id, 0);
	free(v.j);
	free(lenders.j);
	return done;
}

static uint32_t licenses_of(const struct core_job *j, uint32_t name)
{
	uint32_t n = 0;
	for (uint32_t i = 0; j->x && i < j->x->lic_n; i++)
		n += j->x->lic[i].name == name ? j->x->lic[i].count : 0;
	return n;
}

/* How many more of that license are wanted than are free, counting those of jobs that are on their way out or marked. */
static uint32_t license_lacks(const struct core *c, const struct lic_want *w)
{
	uint64_t free_soon = license_free(c, w->name);
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		free_soon += j->preempt_at || j->doomed ? licenses_of(j, w->name) : 0;
	}
	return w->count > free_soon ? (uint32_t)(w->count - free_soon) : 0;
}

void preempt_for_license(struct core *c, struct core_job *j)
{
	struct shape *s = j->shape;
	struct victims v = { .retry_ms = UINT64_MAX };
	bool enough = true;
	if (!c->params.preempt || !c->params.preempt_licenses || j->het || s->lic.any || waits_for_places(c, j))
		return;
	for (uint64_t cur = 0;;) {
		struct core_job *o = (struct core_job *)core_job_next(c, &cur);
		if (!o)
			break;
		if (o->alloc && gives_way(c, o, j, j->tier, false, &v.retry_ms))
			victim_put(c, &v, o);
	}
	for (uint32_t i = 0; i < s->lic.n && enough; i++) {
		for (uint32_t k = 0; k < v.n && license_lacks(c, &s->lic.w[i]); k++)
			v.j[k]->doomed = v.j[k]->doomed || licenses_of(v.j[k], s->lic.w[i].name);
		enough = !license_lacks(c, &s->lic.w[i]);
	}
	if (!enough)
		doom(&v, 0);
	(void)take_them(c, j, &v);
	free(v.j);
}
