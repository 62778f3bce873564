/* priority.h - the factors of a job's priority (private to src/core) */
#pragma once
#include "core/state.h"
#include "proto/queue.pb-c.h"

enum { PRIO_AGE, PRIO_ASSOC, PRIO_FAIR, PRIO_SIZE, PRIO_PART, PRIO_QOS, PRIO_FACTORS };
struct prio {
	double total;                        /* with site factor and nice */
	double norm[PRIO_FACTORS], points[PRIO_FACTORS]; /* 0 to 1; times the weight */
	double tres_norm[PRIO_TRES_MAX], tres_points[PRIO_TRES_MAX];
};
void prio_config(struct core *c, const char *text);                 /* PriorityWeightTRES */
void prio_of(const struct core *c, const struct core_job *j, const struct core_part *p, struct prio *ret);
/* In the partition of the job where it is highest. */
const struct core_part *prio_best(const struct core *c, const struct core_job *j, struct prio *ret);
int64_t prio_key(const struct core *c, const struct core_job *j);   /* order in the queue: smaller first */
/* Held, or not eligible: its age stands still meanwhile. */
void prio_pause(struct core *c, struct core_job *j, bool waits);
Pb__WhyPriority *prio_explain(const struct core *c, const struct core_job *j);
