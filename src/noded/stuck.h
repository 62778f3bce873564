/* stuck.h - steps whose processes could not be killed
 *
 * The node is drained ("Kill task failed") and UnkillableStepProgram runs. Beyond the reference: when the last such process is gone and HealthCheckProgram (where
 * there is one) ends with 0, slurmctld is told and resumes the node, if that was why it was drained. SlurmdParameters=no_kill_resume: it does not. */
#pragma once
#include "noded/noded.h"

struct node_step;
/* slurmstepd says that processes do not end; `who`: which, and what they wait on. */
void stuck_found(struct noded *n, struct node_step *st, const char *who);
/* The step has ended after all. */
void stuck_over(struct noded *n, const struct node_step *st);
