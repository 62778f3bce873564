/* why_end.c - how a job that started fares, or why it ended: one sentence a cause
 * The steps of a job are forgotten with its allocation; what went wrong in them is kept as text when it ends (why_steps_keep). */
#include <stdio.h>
#include <stdlib.h>

#include "base/signame.h"
#include "core/why.h"

#define STEPS_TOLD 5

/* "exit code 3", "signal 9 (KILL)". buf. */
static const char *status_text(uint32_t status, char *buf, size_t size)
{
	char sig[32];
	if (status & 127) {
		signame_format((int)(status & 127), sig, sizeof sig);
		snprintf(buf, size, "signal %u (%s)", status & 127, sig);
	} else
		snprintf(buf, size, "exit code %u", status >> 8 & 255);
	return buf;
}

static void step_line(const struct core *c, const struct core_job *j, const struct step *s, struct str *out)
{
	char st[64];
	const char *name = s->desc && s->desc->name ? s->desc->name : "";
	const char *node = s->worst_on < j->alloc->n ? c->node[j->alloc->on[s->worst_on].node]->name : NULL;
	uint32_t status = s->worst ? s->worst : s->status;
	str_addf(out, "%sstep %u%s%s%s ", out->len ? "\n" : "", s->id, name[0] ? " (" : "", name, name[0] ? ")" : "");
	if (s->cancelled)
		str_addf(out, "was cancelled by uid %u", s->cancel_uid);
	else if (s->state == PB__JOB_STATE__TIMEOUT)
		str_add(out, "reached its own time limit");
	else if (s->state == PB__JOB_STATE__OUT_OF_MEMORY)
		str_addf(out, "was out of memory%s%s", node ? " on " : "", node ? node : "");
	else
		str_addf(out, "ended with %s%s%s", status_text(status, st, sizeof st), node && s->worst ? " on " : "", node && s->worst ? node : "");
}

void why_steps_keep(const struct core *c, struct core_job *j)
{
	struct str out = STR_INIT;
	uint32_t told = 0, more = 0;
	for (const struct step *s = j->steps; s; s = s->next) {
		bool bad = s->done ? s->state != PB__JOB_STATE__COMPLETED : s->cancelled || s->worst || s->state == PB__JOB_STATE__OUT_OF_MEMORY || s->state == PB__JOB_STATE__TIMEOUT;
		if (!bad || s->id >= STEP_ID_INTERACTIVE)
			continue;
		if (told++ < STEPS_TOLD)
			step_line(c, j, s, &out);
		else
			more++;
	}
	if (more)
		str_addf(&out, "\n%u more steps failed", more);
	if (j->x)
		xfree(j->x->causes);
	if (out.len)
		job_x(j)->causes = str_take(&out);
	str_fini(&out);
}

/* --- running ---------------------------------------------------------------------------------- */

static void running(struct why *w)
{
	const struct core_job *j = w->j;
	char len[64];
	bool held = j->state == PB__JOB_STATE__SUSPENDED;
	if (held && j->yields) {
		why_yields(w);
		return;
	}
	Pb__WhyItem *i = held ? why_condition(w, "suspended", "it started {@%u} and is suspended since {@%u}; it keeps its nodes, memory and GPUs", j->start, j->suspend)
			      : why_condition(w, "running", "it runs since {@%u}, %s%s", j->start, j->time_min == TIME_INFINITE ? "with no time limit" : "with a time limit of ",
						      j->time_min == TIME_INFINITE ? "" : why_minutes(j->time_min, len, sizeof len));
	why_number(i, "start", j->start);
	if (held)
		why_clears(i, 0, "scontrol resume %u", j->id);
	else if (j->time_min != TIME_INFINITE)
		why_clears(i, j->end, "it ends at the latest {@%u}", j->end);
	if (j->launching)
		why_condition(w, "launching", "its script is being sent to its first node");
	if (j->unconfirmed)
		why_condition(w, "unconfirmed", "the controller was restarted; its node has not reported it again yet");
}

/* --- ended ------------------------------------------------------------------------------------ */

static void by_itself(struct why *w)
{
	const struct core_job *j = w->j;
	const char *what = j->batch ? "its script" : "it";
	char st[64];
	if (!j->has_exit) {
		why_condition(w, "ended", "it ended {@%u}; with what exit code is not known", j->end);
		return;
	}
	bool sig = j->exit_status & 127;
	Pb__WhyItem *i = sig ? why_condition(w, "signal", "%s was ended by %s", what, status_text(j->exit_status, st, sizeof st))
			     : why_condition(w, j->exit_status >> 8 & 255 ? "exit_code" : "completed", "%s ended by itself with %s", what, status_text(j->exit_status, st, sizeof st));
	why_number(i, sig ? "signal" : "exit_code", sig ? (int64_t)(j->exit_status & 127) : (int64_t)(j->exit_status >> 8 & 255));
}

static void memory_of(struct why *w, Pb__WhyItem *i)
{
	const struct shape *s = w->j->shape;
	if (s->mem_node)
		why_number(i, "mem_per_node_mib", (int64_t)s->mem_node);
	if (s->mem_cpu)
		why_number(i, "mem_per_cpu_mib", (int64_t)s->mem_cpu);
}

static void node_fail(struct why *w)
{
	const struct job_extra *x = w->j->x;
	int at = x && x->fail_node ? core_node_find(w->c, x->fail_node) : -1;
	const struct core_node *n = at >= 0 ? w->c->node[at] : NULL;
	Pb__WhyItem *i = why_condition(w, "node_lost", "node %s was lost while it ran%s%s", x && x->fail_node ? x->fail_node : "(unknown)", n && n->rec->reason ? ": " : "", n && n->rec->reason ? n->rec->reason : "");
	why_text(i, "node", x ? x->fail_node : NULL);
	why_clears(i, 0, "--requeue lets the controller run it again by itself; sbatch --open-mode=append keeps its output");
}

static void cancelled(struct why *w)
{
	const struct core_job *j = w->j;
	const char *why = j->x ? j->x->why : NULL;
	bool own = why && strcmp(why, "CANCELLED");
	Pb__WhyItem *i = own ? why_condition(w, "cancelled", "it was cancelled {@%u}: %s", j->end, why)
			     : why_condition(w, "cancelled", "it was cancelled {@%u} by %s (uid %u)", j->end, j->cancel_uid == j->uid ? "its owner" : "user", j->cancel_uid);
	why_number(i, "uid", j->cancel_uid);
	why_number(i, "before_start", !j->start);
}

static void cause(struct why *w)
{
	const struct core_job *j = w->j;
	const struct job_extra *x = j->x;
	char len[64];
	Pb__WhyItem *i;
	switch (j->state) {
	case PB__JOB_STATE__TIMEOUT:
		i = why_condition(w, "time_limit", "it reached its time limit of %s {@%u} and was ended", why_minutes(j->time_min, len, sizeof len), j->end);
		why_number(i, "limit_min", j->time_min);
		why_clears(i, 0, "a longer --time, or checkpoints: --signal=B:USR1@600 warns ten minutes before");
		break;
	case PB__JOB_STATE__OUT_OF_MEMORY:
		i = why_condition(w, "out_of_memory", "it used more memory than it had asked for and was ended by the kernel");
		memory_of(w, i);
		why_clears(i, 0, "a larger --mem or --mem-per-cpu");
		break;
	case PB__JOB_STATE__NODE_FAIL:
		node_fail(w);
		break;
	case PB__JOB_STATE__CANCELLED:
		cancelled(w);
		break;
	case PB__JOB_STATE__PREEMPTED:
		why_condition(w, "preempted", "it had to give way to %s", x && x->preempted_by ? x->preempted_by : "another job");
		break;
	case PB__JOB_STATE__DEADLINE:
		i = why_condition(w, "deadline", "it could not have ended by its deadline {@%u} any more", j->deadline);
		why_number(i, "deadline", j->deadline);
		break;
	default:
		if (x && x->end_reason == REASON_LAUNCH_FAILURE)
			why_condition(w, "launch_failed", "it %s", x->why ? x->why : "could not be launched");
		else
			by_itself(w);
	}
}

static void step_causes(struct why *w)
{
	if (!w->j->x || !w->j->x->causes)
		return;
	char *copy = xstrdup(w->j->x->causes), *at = copy, *line;
	while ((line = str_next(&at, "\n")))
		why_condition(w, "step", "%s", line);
	free(copy);
}

void why_started(struct why *w)
{
	const struct core_job *j = w->j;
	if (j->flags & JOBF_COMPLETING && j->alloc)
		why_number(why_condition(w, "completing", "it has ended; %u of its %u nodes are still cleaning up", j->alloc->left, j->alloc->n), "nodes", j->alloc->left);
	if (!job_state_is_final(j->state)) {
		running(w);
		return;
	}
	cause(w);
	if (j->state != PB__JOB_STATE__COMPLETED && j->state != PB__JOB_STATE__FAILED && j->has_exit && j->exit_status)
		by_itself(w);
	step_causes(w);
	if (j->restarts)
		why_number(why_condition(w, "restarts", "it had been put back into the queue %u time%s before", j->restarts, j->restarts == 1 ? "" : "s"), "restarts", j->restarts);
}
