/* queue.c - could it start, and in what order
 * queue_update is the one place that decides: a pending job is in its shape's tree when nothing but room is missing; else
 * job->wait says what holds it back. Order: tier of its partitions, priority, then the older id. Age grows alike for all, so an order
 * by (static part * max age - weight * eligible time) never changes by itself. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/priority.h"
#include "core/reserve.h"

static const struct core_job *of(const struct tree_node *n) { return (const struct core_job *)((const char *)n - offsetof(struct core_job, qnode)); }
static int shape_cmp(const struct tree_node *a, const struct tree_node *b)
{
	const struct shape *x = (const struct shape *)((const char *)a - offsetof(struct shape, anode));
	const struct shape *y = (const struct shape *)((const char *)b - offsetof(struct shape, anode));
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

bool job_before(const struct core_job *a, const struct core_job *b)
{
	if (a->tier != b->tier)
		return a->tier > b->tier;
	if (a->reserved != b->reserved)
		return a->reserved;
	return a->key != b->key ? a->key < b->key : a->id < b->id;
}

static int job_cmp(const struct tree_node *a, const struct tree_node *b) { return job_before(of(a), of(b)) ? -1 : job_before(of(b), of(a)); }

void queue_key(const struct core *c, struct core_job *j)
{
	j->tier = 0;
	for (uint32_t i = 0; i < j->shape->part_n; i++)
		if (j->shape->part[i] && j->shape->part[i]->tier > j->tier)
			j->tier = j->shape->part[i]->tier;
	j->reserved = j->shape->resv_key && j->shape->resv_key[0] != '^' && j->shape->resv_key[0] != '~';
	j->key = prio_key(c, j);
}

void queue_remove(struct core *c, struct core_job *j)
{
	struct shape *s = j->shape;
	if (!j->qnode.in)
		return;
	bool head = tree_first(&s->queue) == &j->qnode;
	sweep_removed(c, s, j);
	tree_remove(&s->queue, &j->qnode);
	promise_drop(c, j);
	if (c->lic_kept && s->lic.n)
		license_look(c);
	if (head)
		s->tried = false;
	if (!s->queue.count) {
		if (s->parked) {
			acct_unpark(c, s);
			return;
		}
		tree_remove(&c->shapes_active, &s->anode);
		sched_forget(c, s);
	} else if (head && !s->parked)
		sched_shape(c, s);
}

void queue_insert(struct core *c, struct core_job *j)
{
	struct shape *s = j->shape;
	shape_refresh(c, s);
	queue_key(c, j);
	tree_insert(&s->queue, &j->qnode, j->id, job_cmp);
	if (s->parked)
		return;
	if (!s->anode.in)
		tree_insert(&c->shapes_active, &s->anode, s->seq, shape_cmp);
	sweep_inserted(c, s, j);
	if (tree_first(&s->queue) == &j->qnode) {
		s->tried = false;
		sched_shape(c, s);
	}
}

void queue_wake(struct core *c, struct shape *s)
{
	tree_insert(&c->shapes_active, &s->anode, s->seq, shape_cmp);
	for (struct tree_node *n = tree_first(&s->queue); n; n = tree_next(n))
		sweep_inserted(c, s, (struct core_job *)((char *)n - offsetof(struct core_job, qnode)));
	s->tried = false;
	sched_shape(c, s);
}

/* No partition would let it start, whatever room there is? */
static uint32_t wait_partition(const struct core *c, const struct core_job *j)
{
	const struct shape *s = j->shape;
	uint32_t reason = REASON_PARTITION_DOWN;
	for (uint32_t i = 0; i < s->part_n; i++) {
		if (!s->part[i] || !(j->limit_reason || s->part_mask & 1u << i))
			continue;
		if (s->part[i]->state == PART_UP || s->part[i]->state == PART_DRAIN)
			return j->limit_reason;   /* of all of them, or none */
		reason = s->part[i]->state == PART_INACTIVE ? REASON_PARTITION_INACTIVE : REASON_PARTITION_DOWN;
	}
	(void)c;
	return reason;
}

static uint32_t wait_possible(struct core *c, struct shape *s)
{
	if (s->possible_gen != c->config_gen) {
		s->possible = shape_check_possible(c, s, NULL);
		s->possible_gen = c->config_gen;
	}
	return s->possible < 0 ? REASON_BAD_CONSTRAINTS : (uint32_t)s->possible;
}

/* Can it still end before its deadline? If not it is over; else it is looked at again at the last moment. */
static bool deadline_missed(struct core *c, struct core_job *j)
{
	uint64_t need = j->time_min == TIME_INFINITE ? 0 : j->time_min * 60ull;
	if (!j->deadline || (j->flags & JOBF_COMPLETING))
		return false;
	if (now_sec(c) + need <= j->deadline) {
		timer_add(c, (j->deadline - need + 1) * 1000ull, TIMER_BEGIN, j->id, 0);
		return false;
	}
	job_x(j)->end_reason = REASON_DEADLINE;
	job_end(c, j, PB__JOB_STATE__DEADLINE, 0);
	return true;
}

static uint32_t wait_for(struct core *c, struct core_job *j)
{
	uint32_t r;
	if (j->flags & JOBF_COMPLETING)
		return REASON_CLEANING;
	if (deadline_missed(c, j))
		return REASON_DEADLINE;
	if (j->hold)
		return j->hold;
	if ((r = depend_wait(c, j)))
		return r;
	if (j->begin > now_sec(c)) {
		timer_add(c, j->begin * 1000ull, TIMER_BEGIN, j->id, 0);
		return REASON_BEGIN_TIME;
	}
	if (!j->eligible)
		j->eligible = j->accrue = now_sec(c);
	if (array_at_limit(j))
		return REASON_ARRAY_TASK_LIMIT;
	shape_refresh(c, j->shape);
	if ((r = acct_wait(c, j)) || (r = wait_partition(c, j)) || (r = wait_possible(c, j->shape)) || (r = resv_wait(c, j)))
		return r;
	return REASON_NONE;
}

bool queue_wait(struct core *c, struct core_job *j)
{
	j->wait = (uint8_t)wait_for(c, j);
	prio_pause(c, j, j->hold || j->wait == REASON_DEPENDENCY || j->wait == REASON_DEPENDENCY_NEVER || j->wait == REASON_BEGIN_TIME);
	if (j->state != PB__JOB_STATE__PENDING) /* its deadline, or a dependency that can never be met, ended it */
		return false;
	j->shown = j->wait;
	if (j->wait == REASON_NONE)
		return true;
	if (j->wait == REASON_DEPENDENCY_NEVER && j->blocked != j->wait)
		mail_invalid_dependency(c, j);
	if (j->wait != REASON_CLEANING)
		j->blocked = j->wait;
	return false;
}

void queue_update(struct core *c, struct core_job *j)
{
	if (j->het) {
		het_queue(c, j->het);
		return;
	}
	queue_remove(c, j);
	array_count(j);
	if (j->state == PB__JOB_STATE__PENDING && queue_wait(c, j))
		queue_insert(c, j);
}
