/* contain_limit.h - what a step may use: CPUs, memory, devices (cgroup.conf), and what is said when it used more
 *
 * The job's cgroup holds the job's share of the node, the step's the step's, so that steps side by side cannot take more than the job has. Where there
 * is no memory controller the memory of all processes is summed from /proc now and then (JobAcctGatherParams=OverMemoryKill). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct step;
/* CPUs and memory of the job's and the step's cgroup. `job`: path of the job's. */
void contain_limit(struct step *s, const char *job);
/* The eBPF filter that hides the node's devices the step was not given (ConstrainDevices). */
void contain_devices(struct step *s);
/* Start watching memory where no controller does. */
void contain_watch(struct step *s);
/* Were processes killed for memory? The first call that finds so tells which task, its peak and the limit on the step's stderr, and leaves
 * the text in s->oom_text. */
bool contain_oom(struct step *s);
/* Devices are filtered: programs number those they see from 0. */
bool contain_hides_devices(const struct step *s);
