/* array.c - job arrays: one record while its tasks wait, one more for each task that starts
 * The record under the array's own id holds the tasks still waiting; a task that starts, or is changed alone, gets a record and a job id of its own;
 * the last one keeps the array's id. Invariant: job_of names a record for every task that has one; running counts those with nodes. */
#include <stdlib.h>

#include "core/state.h"
#include "model/arrayspec.h"
#include "model/idset.h"

static struct array *array_get(struct core *c, uint32_t id, uint32_t size)
{
	struct array *a;
	HASH_FIND(hh, c->arrays, &id, sizeof id, a);
	if (!a) {
		a = xcalloc(1, sizeof *a);
		a->id = id;
		HASH_ADD(hh, c->arrays, id, sizeof id, a);
	}
	if (size > a->size) {
		a->job_of = xrealloc(a->job_of, size * sizeof *a->job_of);
		memset(a->job_of + a->size, 0, (size - a->size) * sizeof *a->job_of);
		a->size = size;
	}
	return a;
}

struct array *array_find(const struct core *c, uint32_t id)
{
	struct array *a;
	HASH_FIND(hh, c->arrays, &id, sizeof id, a);
	return a;
}

static uint32_t last_task(const struct bitset *b)
{
	uint32_t last = 0;
	bitset_for(b, i)
		last = i;
	return last;
}

int array_init(struct core *c, struct core_job *j, const char *spec, struct error *err)
{
	struct arrayspec s;
	int r = arrayspec_parse(spec, c->params.max_array_size ? c->params.max_array_size : 1001, &s, err);
	if (r < 0)
		return r;
	uint32_t size = last_task(s.tasks) + 1;
	j->tasks = bitset_create(size);
	memcpy(j->tasks->bits, s.tasks->bits, j->tasks->words * sizeof(uint64_t));
	j->array = array_get(c, j->id, size);
	j->array->max_running = s.max_running;
	j->array->head = j;
	j->array->jobs = 1;
	arrayspec_fini(&s);
	return 0;
}

/* A record for one task, as its head is now. Not in the queue yet. */
static struct core_job *task_new(struct core *c, struct core_job *j, uint32_t task)
{
	struct core_job *t = job_new(c, job_take_id(c));
	t->uid = j->uid;
	t->gid = j->gid;
	t->user = j->user;
	t->group = j->group;
	t->state = j->state;
	t->wait = REASON_ARRAY_TASK_LIMIT; /* until queue_update */
	t->hold = j->hold;
	t->limit_reason = j->limit_reason;
	t->batch = j->batch;
	t->requeue = j->requeue;
	t->kill_invalid_dep = j->kill_invalid_dep;
	t->prio_set = j->prio_set;
	t->nice = j->nice;
	t->prio = j->prio;
	t->prio_at = j->prio_at;
	t->tier = j->tier;
	t->key = j->key;
	t->time_min = j->time_min;
	t->submit = j->submit;
	t->eligible = j->eligible;
	t->paused_at = j->paused_at;
	t->site = j->site;
	t->accrue = j->accrue;
	t->begin = j->begin;
	t->deadline = j->deadline;
	t->warn_signal = j->warn_signal;
	t->warn_batch = j->warn_batch;
	t->warn_sec = j->warn_sec;
	t->mail = j->mail;
	t->flags = j->flags;
	t->assoc = j->assoc;
	t->qos = j->qos;
	t->shape = j->shape;
	t->shape->refs++;
	t->array = j->array;
	t->array->jobs++;
	t->task = task;
	job_set_desc_bytes(t, j->blob + j->desc_at, j->desc_len);
	return t;
}

struct core_job *array_split_task(struct core *c, struct core_job *j, uint32_t task)
{
	assert(j->tasks && bitset_has(j->tasks, task));
	bitset_clear(j->tasks, task);
	j->blob_stale = true;
	if (bitset_empty(j->tasks)) { /* the last one keeps the array's id */
		bitset_destroy(j->tasks);
		j->tasks = NULL;
		j->task = task;
		j->array->head = NULL;
		j->array->job_of[task] = j->id;
		return j;
	}
	struct core_job *t = task_new(c, j, task);
	t->array->job_of[task] = t->id;
	depend_copy(c, j, t);
	fx_persist(c, t);
	fx_persist(c, j);
	return t;
}

struct core_job *array_split(struct core *c, struct core_job *j) { return j->tasks ? array_split_task(c, j, bitset_next(j->tasks, 0)) : j; }

struct core_job *array_task(const struct core *c, uint32_t array_id, uint32_t task)
{
	const struct array *a = array_find(c, array_id);
	if (!a || task >= a->size)
		return NULL;
	return a->job_of[task] ? job_find(c, a->job_of[task]) : NULL;
}

void array_job_gone(struct core *c, struct core_job *j)
{
	struct array *a = j->array;
	if (!a)
		return;
	if (j->split_counted)
		a->split_pending--;
	if (a->head == j)
		a->head = NULL;
	if (j->task != UINT32_MAX && j->task < a->size && a->job_of[j->task] == j->id)
		a->job_of[j->task] = 0;
	a->failed_gone += job_state_is_final(j->state) && j->state != PB__JOB_STATE__COMPLETED;
	if (--a->jobs)
		return;
	depend_waiters_free(&a->waiters);
	HASH_DEL(c->arrays, a);
	free(a->job_of);
	free(a);
}

void array_free_all(struct core *c)
{
	struct array *a, *tmp;
	HASH_ITER(hh, c->arrays, a, tmp) {
		HASH_DEL(c->arrays, a);
		depend_waiters_free(&a->waiters);
		free(a->job_of);
		free(a);
	}
}

bool array_at_limit(const struct core_job *j)
{
	return j->array && j->array->max_running && j->array->running >= j->array->max_running;
}

/* Looks again at everything of the array that waits for its throttle, or must from now on. */
void array_throttled(struct core *c, struct array *a)
{
	if (a->head)
		queue_update(c, a->head);
	for (uint32_t i = 0; i < a->size && a->split_pending; i++) {
		struct core_job *t = a->job_of[i] ? job_find(c, a->job_of[i]) : NULL;
		if (t && t->state == PB__JOB_STATE__PENDING)
			queue_update(c, t);
	}
}

void array_running(struct core *c, struct core_job *j, int by)
{
	struct array *a = j->array;
	if (!a)
		return;
	bool was = array_at_limit(j);
	a->running += (uint32_t)by;
	if (was != array_at_limit(j))
		array_throttled(c, a);
}

void array_restore(struct core *c, struct core_job *j, const Pb__JobRecord *m)
{
	struct bitset *b = NULL;
	if (!m->has_array_job_id)
		return;
	if (m->array_tasks && m->array_tasks[0] && idset_parse(m->array_tasks, 4000001, &b, NULL) >= 0 && !bitset_empty(b)) {
		uint32_t size = last_task(b) + 1;
		j->tasks = bitset_create(size);
		memcpy(j->tasks->bits, b->bits, j->tasks->words * sizeof(uint64_t));
		j->array = array_get(c, m->array_job_id, size);
		if (!job_state_is_final(j->state))
			j->array->head = j;
	} else {
		j->array = array_get(c, m->array_job_id, m->has_array_task_id ? m->array_task_id + 1 : 1);
		j->task = m->has_array_task_id ? m->array_task_id : 0;
		j->array->job_of[j->task] = j->id;
	}
	bitset_destroy(b);
	j->array->jobs++;
	if (m->has_array_max_running)
		j->array->max_running = m->array_max_running;
}

/* Keeps the count of tasks with a record of their own that are pending. */
void array_count(struct core_job *j)
{
	bool pending = j->array && !j->tasks && j->state == PB__JOB_STATE__PENDING;
	if (pending == j->split_counted)
		return;
	j->split_counted = pending;
	j->array->split_pending += pending ? 1 : -1u;
}
