/* gather.h - what the tasks use: sampled while they run, summed up at the end (JobAcctGatherType of slurm.conf(5))
 *
 * From /proc a task is its process and all that descends from it; where tasks have cgroups of their own and the type is jobacct_gather/cgroup,
 * CPU, memory and page faults are the kernel's own sums. The samples also serve JobAcctGatherParams=OverMemoryKill. Without a type only the CPU
 * time is known, at the end. */
#pragma once
#include <sys/resource.h>

#include "proto/agent.pb-c.h"

struct step;
struct task;
/* After the launch: sample at the intervals of JobAcctGatherFrequency and --acctg-freq. */
void gather_start(struct step *s);
/* A task has ended and is not waited for yet: the last look at it. Then what wait4 told of it, or of another process of the step. */
void gather_last(struct step *s, struct task *t);
void gather_ended(struct step *s, struct task *t, const struct rusage *usage);
void gather_stray(struct step *s, const struct rusage *usage);
/* Over the tasks of this node, sampled `now` or when last due; pb__step_usage__free_unpacked frees it. */
Pb__StepUsage *gather_usage(struct step *s, bool now);
