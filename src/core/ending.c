/* ending.c - what a job is told of its end: the cause, by whom, how long it has left (the file SLURM_JOB_END_REASON names, doc/end-reason.md)
 * It goes with the signals and the order to end; slurmstepd writes it down before it sends the signal. */
#include <stdlib.h>

#include "core/reserve.h"

Pb__EndReason *ending(struct core *c, const char *cause, const char *by, uint32_t left_sec)
{
	Pb__EndReason *m = arena_alloc(fx_arena(c), sizeof *m);
	pb__end_reason__init(m);
	m->cause = arena_strdup(fx_arena(c), cause);
	m->by = by && by[0] ? arena_strdup(fx_arena(c), by) : NULL;
	m->has_seconds_left = left_sec != UINT32_MAX;
	m->seconds_left = left_sec;
	return m;
}

static const char *user_name(struct core *c, const struct core_job *j, uint32_t uid)
{
	if (uid == j->uid && atom_text(c, j->user))
		return atom_text(c, j->user);
	return uid ? arena_printf(fx_arena(c), "uid %u", uid) : "root";
}

Pb__EndReason *ending_job(struct core *c, const struct core_job *j, bool timeout)
{
	uint32_t left = c->params.kill_wait_sec, reason = j->x ? j->x->end_reason : REASON_NONE;
	if (timeout)
		return resv_kill_ms(c, j) <= c->now_ms ? ending(c, "reservation_end", j->x ? j->x->resv : NULL, left) : ending(c, "time_limit", NULL, left);
	if (reason == REASON_PREEMPTED)
		return ending(c, "preempted", j->x->preempted_by, left);
	if (j->cancelled_by)
		return ending(c, "cancelled", user_name(c, j, j->cancel_uid), left);
	if (reason == REASON_NODE_DOWN)
		return ending(c, "node_failure", j->x->fail_node, left);
	return ending(c, job_state_is_final(j->state) ? "ended" : "requeued", NULL, left);
}

Pb__EndReason *ending_step(struct core *c, const struct core_job *j, const struct step *s, bool timeout)
{
	return timeout ? ending(c, "time_limit", NULL, c->params.kill_wait_sec) : ending(c, "cancelled", s->cancelled ? user_name(c, j, s->cancel_uid) : NULL, c->params.kill_wait_sec);
}

/* --signal: the limit is near, or (send_user_signal) it must give way. */
Pb__EndReason *ending_warned(struct core *c, const struct core_job *j)
{
	uint32_t left = j->end > now_sec(c) ? j->end - now_sec(c) : 0;
	return ending(c, j->preempt_at ? "preempted" : "time_limit", j->preempt_at && j->x ? j->x->preempted_by : NULL, left);
}
