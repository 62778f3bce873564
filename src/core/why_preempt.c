/* why_preempt.c - preemption, as scontrol why tells it: could others be made to give way; for whom a suspended job waits
 * Reads only. Of others' jobs only numbers are told. */
#include "core/why.h"

void why_preemption(struct why *w)
{
	struct core *c = w->c;
	const struct core_job *j = w->j;
	struct preempt_count n;
	Pb__WhyItem *i;
	if (!c->params.preempt || j->het)
		return;
	preempt_counts(c, j, &n);
	if (j->preempt_next > now_sec(c)) {
		i = why_condition(w, "preempting", "others have given way to it (%u time%s so far) and their places are being cleaned", j->preempts, j->preempts == 1 ? "" : "s");
		why_clears(i, j->preempt_next, "they are free; else more may have to give way {@%u}", j->preempt_next);
	} else if (!n.now && n.later) {
		i = why_condition(w, "preemption_later", "%u running job%s of lower partitions may not be preempted yet (PreemptExemptTime)", n.later, n.later == 1 ? "" : "s");
		why_clears(i, n.first_ms / 1000, "the first may be {@%u}", (uint32_t)(n.first_ms / 1000));
	} else {
		i = n.now ? why_condition(w, "preemption_not_enough", "%u running job%s could be made to give way, but even all of their places would not be enough", n.now, n.now == 1 ? "" : "s")
			  : why_condition(w, "no_preemption", "none of the %u jobs on nodes it could use has to give way to it: a higher PriorityTier, or PreemptMode=OFF, protects them", n.never);
		why_clears(i, 0, "a partition with a higher PriorityTier");
	}
	why_number(i, "now", n.now);
	why_number(i, "later", n.later);
	why_number(i, "never", n.never);
}

/* It is suspended by the scheduler: by whom, and until when at the latest? */
void why_yields(struct why *w)
{
	const struct core_job *first = gang_first(w->c, w->j);
	char name[64];
	Pb__WhyItem *i = why_condition(w, "yields", "it is suspended since {@%u} because %s uses its CPUs; it keeps its nodes, memory and GPUs", w->j->suspend,
				       first ? why_name(w, first, name, sizeof name) : "another job");
	why_number(i, "since", w->j->suspend);
	if (first && why_may_see(w, first))
		why_number(i, "job_id", first->id);
	if (first && first->part == w->j->part)
		why_clears(i, 0, "its turn: every %u s (SchedulerTimeSlice)", w->c->params.time_slice_sec ? w->c->params.time_slice_sec : 30);
	else
		why_clears(i, first ? first->end : 0, "that ends%s", first && first->time_min != TIME_INFINITE ? "; its limit is the latest" : "");
}
