/* contain_limit.h - what a step may use: CPUs, memory, devices (cgroup.conf), and what is said when it used more
 *
 * The job's cgroup holds the job's share of the node, the step's the step's, so that steps side by side cannot take more than the job has. Where there
 * is no memory controller the samples of gather.c tell what the processes use (JobAcctGatherParams=OverMemoryKill). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct step;
/* CPUs and memory of the job's and the step's cgroup. `job`: path of the job's. */
void contain_limit(struct step *s, const char *job);
/* The job has been given less memory (MB) while it runs: its limits follow. */
void contain_mem_less(struct step *s, uint64_t mb);
/* The eBPF filter that hides the node's devices the step was not given (ConstrainDevices). */
void contain_devices(struct step *s);
/* Is memory to be watched, since no controller does? */
bool contain_watches(const struct step *s);
/* The step's processes have `sum` bytes, one of them the most: end the step if that is too much. */
void contain_watch(struct step *s, uint64_t sum, pid_t worst, uint64_t most);
/* Were processes killed for memory? The first call that finds so tells which task, its peak and the limit on the step's stderr, and leaves
 * the text in s->oom_text. */
bool contain_oom(struct step *s);
/* Devices are filtered: programs number those they see from 0. */
bool contain_hides_devices(const struct step *s);
