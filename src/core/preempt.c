/* preempt.c - a job of a higher partition takes the place of running ones: whom, when, and how they end
 * PreemptType=preempt/partition_prio: jobs of partitions with a lower PriorityTier give way. Those that give way are chosen so that few are lost: one alone
 * if one is enough, else from the lowest tier and the youngest on, and none that the start does not need. Whether enough would be free is asked of the
 * same placement as everything else, with the chosen ones taken for ended (core.dooming). A chosen job is told (SIGCONT, SIGTERM), has its partition's
 * GraceTime, and then is cancelled or requeued as PreemptMode says. The one that waits keeps its place by an ordinary promise. */
#include <stdlib.h>

#include "core/reserve.h"

#define SINGLES_MAX 32
#define PRUNE_MAX 64
#define SIG_TERM 15
#define SIG_CONT 18

struct victims { struct core_job **j; uint32_t n; size_t cap; uint64_t retry_ms; };

enum preempt_mode preempt_mode(const struct core *c, const struct core_part *p)
{
	const char *m = p->rec->preempt_mode;
	if (!m || !m[0])
		return (enum preempt_mode)c->params.preempt_mode;
	return strcasestr(m, "OFF") ? PREEMPT_OFF : strcasestr(m, "REQUEUE") ? PREEMPT_REQUEUE : PREEMPT_CANCEL;
}

static const struct core_part *part_of(const struct core *c, const struct core_job *j) { return j->part < c->part_n ? c->part[j->part] : NULL; }

/* Lowest tier first, then the youngest. */
static bool first_to_go(const struct core *c, const struct core_job *a, const struct core_job *b)
{
	uint32_t x = part_of(c, a)->tier, y = part_of(c, b)->tier;
	if (x != y)
		return x < y;
	return a->start != b->start ? a->start > b->start : a->id > b->id;
}

static bool on_able(const struct core_job *j, const struct bitset *able)
{
	for (uint32_t i = 0; i < j->alloc->n; i++)
		if (j->alloc->on[i].state == ON_HELD && bitset_has(able, j->alloc->on[i].node))
			return true;
	return false;
}

static void candidate(struct core *c, struct victims *v, const struct core_job *by, const struct core_part *part, const struct bitset *able, struct core_job *j)
{
	const struct core_part *p = part_of(c, j);
	if (j->state != PB__JOB_STATE__RUNNING || j->preempt_at || !p || p->tier >= part->tier || preempt_mode(c, p) == PREEMPT_OFF || !on_able(j, able))
		return;
	if (c->params.preempt_priority && job_priority(c, j) >= job_priority(c, by))
		return;
	uint64_t eligible = ((uint64_t)j->start + c->params.preempt_exempt_sec) * 1000;
	if (eligible > c->now_ms) {
		v->retry_ms = eligible < v->retry_ms ? eligible : v->retry_ms;
		return;
	}
	v->j = xgrow(v->j, &v->cap, v->n + 1, sizeof *v->j);
	uint32_t k = v->n++;
	for (; k > 0 && first_to_go(c, j, v->j[k - 1]); k--)
		v->j[k] = v->j[k - 1];
	v->j[k] = j;
}

/* Would there be room, with those doomed gone? */
static bool room(struct core *c, struct core_job *j, uint32_t at, const struct resv *in)
{
	struct shape *s = j->shape;
	struct when w = { .j = j, .start_ms = c->now_ms + 1000, .end_ms = c->now_ms + 1000 + job_length_ms(j), .part = s->part[at], .in = in };
	struct bitset *cand = bitset_copy(s->able[at]);
	struct fit *f = NULL;
	bitset_and(cand, c->up);
	resv_candidates(c, in, cand);
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
static bool choose(struct core *c, struct core_job *j, uint32_t at, const struct resv *in, struct victims *v)
{
	for (uint32_t i = 0; i < v->n && i < SINGLES_MAX; i++) {
		doom(v, 0);
		v->j[i]->doomed = true;
		if (room(c, j, at, in))
			return true;
	}
	doom(v, v->n);
	if (!v->n || !room(c, j, at, in))
		return false;
	uint32_t lo = 1, hi = v->n; /* the shortest beginning of the list that is enough */
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		doom(v, mid);
		if (room(c, j, at, in))
			hi = mid;
		else
			lo = mid + 1;
	}
	doom(v, lo);
	for (uint32_t i = lo, tries = 0; i-- > 0 && tries < PRUNE_MAX; tries++) { /* spare the oldest that need not go */
		v->j[i]->doomed = false;
		v->j[i]->doomed = !room(c, j, at, in);
	}
	return true;
}

static void tell(struct core *c, struct core_job *j, uint32_t signal)
{
	Pb__SignalReq *m = arena_alloc(fx_arena(c), sizeof *m);
	pb__signal_req__init(m);
	m->job_id = j->id;
	m->signal = signal;
	m->has_steps_only = m->steps_only = m->has_restarts = true;
	m->restarts = j->restarts;
	char *nodes = job_nodes_text(c, j);
	fx_to_nodes(c, FX_SIGNAL, j->id, nodes, m);
	free(nodes);
}

static void begin(struct core *c, struct core_job *j, const struct core_job *by)
{
	const struct core_part *p = part_of(c, j);
	uint32_t grace = p->rec->has_grace_time_sec ? p->rec->grace_time_sec : 0;
	char id[40], other[40];
	j->doomed = false;
	j->preempt_at = now_sec(c);
	j->preempt_end = j->preempt_at + grace;
	job_set_limit_timer(c, j);
	for (uint32_t i = 0; i < j->alloc->n; i++) /* they are free sooner than the plan believed */
		sched_gained(c, c->node[j->alloc->on[i].node]->index);
	fx_log(c, LOG_L_INFO, "job %s of partition %s gives way to job %s (%s, %u s of grace)", job_id_text(j, id, sizeof id), p->rec->name, job_id_text(by, other, sizeof other),
	       preempt_mode(c, p) == PREEMPT_REQUEUE && j->batch && j->requeue ? "requeued" : "cancelled", grace);
	c->preempted++;
	if (!grace) {
		preempt_finish(c, j);
		return;
	}
	tell(c, j, SIG_CONT);
	tell(c, j, SIG_TERM);
	fx_persist(c, j);
}

/* Its time is over, or it ended within its grace, for whatever reason. */
void preempt_finish(struct core *c, struct core_job *j)
{
	const struct core_part *p = part_of(c, j);
	j = het_first(c, j); /* all components go together */
	struct job_extra *x = job_x(j);
	xstr_set(&x->why, "DUE TO PREEMPTION");
	x->end_reason = REASON_PREEMPTED;
	if (j->batch && j->requeue && p && preempt_mode(c, p) == PREEMPT_REQUEUE)
		job_requeue(c, j, false, 0, 0);
	else
		job_end(c, j, PB__JOB_STATE__PREEMPTED, 0);
}

static bool try_in(struct core *c, struct core_job *j, uint32_t at, struct victims *v)
{
	struct resv *in[RESV_USE_MAX + 1];
	uint32_t n = resv_choices(c, j->shape, in);
	bool done = false;
	for (uint64_t cur = 0;;) {
		struct core_job *o = (struct core_job *)core_job_next(c, &cur);
		if (!o)
			break;
		if (o->alloc)
			candidate(c, v, j, j->shape->part[at], j->shape->able[at], o);
	}
	c->dooming = true;
	for (uint32_t i = 0; i < n && !done; i++) {
		if (in[i] && !resv_open(c, in[i]))
			continue;
		if (room(c, j, at, in[i])) { /* enough are on their way out already */
			doom(v, 0);
			v->retry_ms = UINT64_MAX;
			done = true;
		} else
			done = choose(c, j, at, in[i], v);
	}
	if (!done)
		doom(v, 0);
	c->dooming = false;
	return done;
}

/* A head that found no room: others make room for it, now or after their grace. True: they do. */
bool preempt_try(struct core *c, struct core_job *j)
{
	struct shape *s = j->shape;
	struct victims v = { .retry_ms = UINT64_MAX };
	bool done = false;
	if (!c->params.preempt || j->het) /* who would make room for all components is not looked for */
		return false;
	for (uint32_t p = 0; p < s->part_n && !done; p++) {
		if (!s->part[p] || !s->able[p] || !(s->part_mask & 1u << p) || (s->part[p]->state != PART_UP && s->part[p]->state != PART_DRAIN))
			continue;
		v.n = 0;
		done = try_in(c, j, p, &v);
	}
	for (uint32_t i = 0; done && i < v.n; i++) {
		bool goes = v.j[i]->doomed && v.j[i]->state == PB__JOB_STATE__RUNNING; /* not yet with another component of its job */
		v.j[i]->doomed = false;
		if (goes)
			begin(c, v.j[i], j);
	}
	if (!done && v.retry_ms != UINT64_MAX)
		timer_add(c, v.retry_ms, TIMER_BEGIN, j->id, 0);
	free(v.j);
	return done;
}
