/* operate.c - scontrol hold, release, requeue, suspend, resume, notify, top: one table row each */
#include <stdlib.h>

#include "core/acct.h"
#include "core/change.h"

typedef int (*op_fn)(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err);

/* Root holds as the administrator, its own jobs too; another operator holds his own as their owner. */
bool held_by_admin(const struct core_job *j, const struct core_caller *by) { return !by->uid || (by->oper && by->uid != j->uid); }

/* A job that runs goes on; it is held when it comes back to the queue. */
static int op_hold(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	if (job_state_is_final(j->state))
		return error_set(err, ESLURM_JOB_FINISHED, "job %u has ended", j->id);
	bool user = ev->job_op->op == PB__JOB_OP_REQ__OP__UHOLD || !held_by_admin(j, &ev->by);
	j->hold = user ? REASON_HELD_USER : REASON_HELD_ADMIN;
	if (j->state == PB__JOB_STATE__PENDING)
		queue_update(c, j);
	fx_persist(c, j);
	return 0;
}

static int op_release(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	if (job_state_is_final(j->state))
		return error_set(err, ESLURM_JOB_FINISHED, "job %u has ended", j->id);
	if (j->state != PB__JOB_STATE__PENDING && !j->hold)
		return error_set(err, ESLURM_JOB_NOT_PENDING, "job %u has started", j->id);
	if (j->hold == REASON_HELD_ADMIN && !ev->by.oper)
		return error_set(err, ESLURM_ACCESS_DENIED, "job %u was held by an administrator", j->id);
	j->hold = REASON_NONE;
	if (j->state != PB__JOB_STATE__PENDING) {
		fx_persist(c, j);
		return 0;
	}
	j->flags &= ~(uint32_t)(JOBF_SPECIAL_EXIT | JOBF_REQUEUE_HOLD | JOBF_RESV_DEL_HOLD);
	if (j->x)
		xfree(j->x->wait_text);
	j->begin = j->begin > now_sec(c) && j->restarts ? 0 : j->begin;
	queue_update(c, j);
	fx_persist(c, j);
	return 0;
}

static int requeue_check(const struct core_job *j, const struct core_event *ev, struct error *err)
{
	if (!j->batch)
		return error_set(err, ESLURM_DISABLED, "job %u has no script to run again", j->id);
	if (!j->requeue && !ev->by.oper)
		return error_set(err, ESLURM_DISABLED, "job %u was submitted with --no-requeue", j->id);
	if (!j->requeue)
		return error_set(err, ESLURM_DISABLED, "job %u may not be requeued (Requeue=0)", j->id);
	if (j->state == PB__JOB_STATE__PENDING)
		return error_set(err, ESLURM_JOB_PENDING, "job %u waits already", j->id);
	if (job_state_is_final(j->state) && (j->flags & JOBF_COMPLETING))
		return error_set(err, ESLURM_ALREADY_DONE, "job %u is completing; try again in a moment", j->id);
	return 0;
}

static int op_requeue(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	bool hold = ev->job_op->op == PB__JOB_OP_REQ__OP__REQUEUE_HOLD;
	if (ev->job_op->incomplete && j->state == PB__JOB_STATE__COMPLETED)
		return 0;
	if (!hold && recur_skip(c, j))
		return 0;
	if (requeue_check(j, ev, err) < 0)
		return err->code;
	if (hold)
		j->hold = held_by_admin(j, &ev->by) ? REASON_HELD_ADMIN : REASON_HELD_USER;
	job_requeue(c, j, hold, (hold ? JOBF_REQUEUE_HOLD : 0) | (ev->job_op->special_exit ? JOBF_SPECIAL_EXIT : 0), hold ? 0 : c->params.requeue_delay_sec);
	return 0;
}

/* An operator's. A job that he suspended keeps its nodes, memory and GPUs: its processes are still there. (The reference gives the CPUs to others; here
 * what was promised to a job stays its own, so that resume never waits.) One that the scheduler suspended goes on when its CPUs are free (gang.c). */
static int op_suspend(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	(void)ev;
	if (j->state == PB__JOB_STATE__SUSPENDED)
		return error_set(err, ESLURM_SUSPENDED, "job %u is suspended already", j->id);
	if (j->state != PB__JOB_STATE__RUNNING || (j->flags & JOBF_CONFIGURING))
		return job_state_is_final(j->state) ? error_set(err, ESLURM_ALREADY_DONE, "job %u has ended", j->id) : error_set(err, ESLURM_JOB_PENDING, "job %u has not started", j->id);
	job_suspend(c, j, true);
	return 0;
}

static int op_resume(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	(void)ev;
	if (j->state == PB__JOB_STATE__PENDING)
		return error_set(err, ESLURM_JOB_PENDING, "job %u has not started", j->id);
	if (j->state != PB__JOB_STATE__SUSPENDED)
		return job_state_is_final(j->state) ? error_set(err, ESLURM_ALREADY_DONE, "job %u has ended", j->id) : error_set(err, ESLURM_NOT_SUSPENDED, "job %u is running", j->id);
	if (j->yields)
		return error_set(err, ESLURM_NODES_BUSY, "job %u goes on by itself when the jobs that use its CPUs have ended, or its turn comes", j->id);
	job_resume(c, j, true);
	return 0;
}

static int op_notify(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	if (j->state != PB__JOB_STATE__RUNNING)
		return error_set(err, ESLURM_NOT_RUNNING, "job %u is not running", j->id);
	Pb__NotifyReq *m = arena_alloc(fx_arena(c), sizeof *m);
	pb__notify_req__init(m);
	m->job_id = j->id;
	m->text = arena_strdup(fx_arena(c), ev->job_op->text ? ev->job_op->text : "");
	fx_to_nodes(c, FX_NOTIFY, j->id, c->node[j->alloc->on[0].node]->name, m);
	return 0;
}

/* Changes a job's nice, and its place in the queue with it. */
static void nice_set(struct core *c, struct core_job *j, int64_t nice)
{
	Pb__JobDesc *d = job_desc(j);
	j->nice = (int32_t)(nice < -2147483645 ? -2147483645 : nice > 2147483645 ? 2147483645 : nice);
	d->has_nice = true;
	d->nice = j->nice;
	job_set_desc(j, d);
	pb__job_desc__free_unpacked(d, NULL);
	queue_update(c, j);
	fx_persist(c, j);
}

/* Another pending job of the same user in the same partitions that is before it. */
static bool stands_before(const struct core *c, const struct core_job *o, const struct core_job *j)
{
	return o != j && o->uid == j->uid && o->state == PB__JOB_STATE__PENDING && !o->hold && !o->prio_set && o->shape->part_n == 1 &&
	       !strcmp(o->shape->part_names[0], j->shape->part_names[0]) && job_priority(c, o) >= job_priority(c, j);
}

/* Before all other pending jobs of the same user in the same partition: what its nice falls by, those it passes rise by together, so nobody else's
 * jobs lose. */
static int op_top(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	(void)ev;
	if (j->state != PB__JOB_STATE__PENDING)
		return error_set(err, ESLURM_JOB_NOT_PENDING, "job %u is no longer pending", j->id);
	if (j->shape->part_n != 1)
		return error_set(err, ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE, "job %u is in several partitions: it cannot be put before others", j->id);
	uint32_t *id = NULL, best = job_priority(c, j), was = best;
	size_t n = 0, cap = 0;
	for (uint64_t cur = 0; !j->hold && !j->prio_set;) {
		const struct core_job *o = core_job_next(c, &cur);
		if (!o)
			break;
		if (!stands_before(c, o, j))
			continue;
		id = xgrow(id, &cap, n + 1, sizeof *id);
		id[n++] = o->id;
		best = job_priority(c, o) > best ? job_priority(c, o) : best;
	}
	int64_t rise = best - was;
	if (n)
		nice_set(c, j, (int64_t)j->nice - rise);
	for (size_t i = 0; i < n; i++) {
		struct core_job *o = job_find(c, id[i]);
		if (o)
			nice_set(c, o, (int64_t)o->nice + (rise + (int64_t)n - 1) / (int64_t)n + (rise ? 0 : 1));
	}
	free(id);
	return 0;
}

static const struct { Pb__JobOpReq__Op op; op_fn fn; bool oper_only; int other; } op_table[] = { /* other: the refusal of another user */
	{ PB__JOB_OP_REQ__OP__HOLD, op_hold, false, ESLURM_INVALID_USER_ID },
	{ PB__JOB_OP_REQ__OP__UHOLD, op_hold, false, ESLURM_INVALID_USER_ID },
	{ PB__JOB_OP_REQ__OP__RELEASE, op_release, false, ESLURM_INVALID_USER_ID },
	{ PB__JOB_OP_REQ__OP__REQUEUE, op_requeue, false, ESLURM_ACCESS_DENIED },
	{ PB__JOB_OP_REQ__OP__REQUEUE_HOLD, op_requeue, false, ESLURM_ACCESS_DENIED },
	{ PB__JOB_OP_REQ__OP__SUSPEND, op_suspend, true, ESLURM_ACCESS_DENIED },
	{ PB__JOB_OP_REQ__OP__RESUME, op_resume, true, ESLURM_ACCESS_DENIED },
	{ PB__JOB_OP_REQ__OP__TOP, op_top, true, ESLURM_ACCESS_DENIED },
	{ PB__JOB_OP_REQ__OP__NOTIFY, op_notify, false, ESLURM_INVALID_USER_ID },
};

/* What is done to all components of a heterogeneous job or to none: true where j is not to be looked at by itself. */
static bool het_together(const struct core_job *j, const struct selector *s, Pb__JobOpReq__Op op, struct error *err)
{
	bool requeue = op == PB__JOB_OP_REQ__OP__REQUEUE || op == PB__JOB_OP_REQ__OP__REQUEUE_HOLD;
	if (!j->het || (!requeue && op != PB__JOB_OP_REQ__OP__SUSPEND && op != PB__JOB_OP_REQ__OP__RESUME))
		return false;
	if (s->has_part || s->id != j->het->id) {
		error_set(err, requeue ? ESLURM_INVALID_JOB_ID : ESLURM_NOT_WHOLE_HET_JOB, "all components of job %u go together: name it by that id", j->het->id);
		return true;
	}
	return requeue && het_follows(j); /* it goes with its leader */
}

static int operate_one(struct core *c, struct core_job *j, const struct core_event *ev, struct error *err)
{
	for (size_t i = 0; i < sizeof op_table / sizeof op_table[0]; i++) {
		if (op_table[i].op != ev->job_op->op)
			continue;
		bool opers = op_table[i].oper_only && !(c->params.user_top && ev->job_op->op == PB__JOB_OP_REQ__OP__TOP);
		if (!ev->by.oper && (opers ? !acct_coordinates(c, &ev->by, j) || ev->job_op->op != PB__JOB_OP_REQ__OP__TOP : !acct_may(c, &ev->by, j)))
			return error_set(err, op_table[i].other, op_table[i].oper_only ? "this is for operators (job %u)" : "job %u belongs to another user", j->id);
		return op_table[i].fn(c, j, ev, err);
	}
	return error_set(err, ESLURM_NOT_SUPPORTED, "job operation %d is not known", (int)ev->job_op->op);
}

/* Held, released or suspended as a whole: jobs of an array that have ended do not count as refusals. */
void job_operate(struct core *c, const struct core_event *ev)
{
	struct arena *a = fx_arena(c);
	struct selector s = { 0 };
	struct error err = { 0 };
	uint32_t *id = NULL;
	size_t n = 0;
	Pb__ResultList *list = arena_alloc(a, sizeof *list);
	pb__result_list__init(list);
	if (selector_parse(c, ev->job_op->id, &s, &err) >= 0)
		(void)selector_jobs(c, &s, true, &id, &n, &err);
	list->result = arena_alloc(a, (n + 1) * sizeof *list->result);
	for (size_t i = 0; i <= n; i++) {
		struct core_job *j = i < n ? job_find(c, id[i]) : NULL;
		struct error e = { 0 };
		if (i == n && (n || !err.code))
			break;
		if (j && n > 1 && job_state_is_final(j->state) && ev->job_op->op != PB__JOB_OP_REQ__OP__REQUEUE && ev->job_op->op != PB__JOB_OP_REQ__OP__REQUEUE_HOLD)
			continue;
		if (j && het_together(j, &s, ev->job_op->op, &e) && !e.code)
			continue;
		if (j && !e.code)
			(void)operate_one(c, j, ev, &e);
		Pb__Result *r = arena_alloc(a, sizeof *r);
		pb__result__init(r);
		r->code = (uint32_t)-(j ? e.code : err.code);
		r->detail = arena_strdup(a, j ? e.line : err.line);
		r->has_job_id = true;
		r->job_id = j ? j->id : s.id;
		list->result[list->n_result++] = r;
	}
	selector_fini(&s);
	free(id);
	fx_reply(c, ev->token, list);
}
