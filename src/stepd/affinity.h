/* affinity.h - which CPUs and memory nodes a task may use
 *
 * slurmctld gives a step CPUs by abstract ids (core-major: sockets, cores, threads); they become those of the kernel through the list slurmd made. Bound is
 * with TaskPlugin naming task/affinity. A node that claims more CPUs than the machine has is not bound of itself: its tasks would crowd on the few
 * real ones; what is asked for by number is done as far as those CPUs exist. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct step;
struct task;
struct envlist;
/* Work out every task's CPUs. -1 and the step's note: asked for what the step does not have. */
int affinity_prepare(struct step *s);
/* SLURM_CPU_BIND and its parts, as it came out. */
void affinity_env(const struct step *s, struct envlist *e);
/* In the child, before it becomes the user. */
void affinity_apply(struct step *s, const struct task *t);
/* --cpu-bind=verbose, --mem-bind=verbose: a line on the task's stderr. */
void affinity_say(const struct step *s, const struct task *t);
/* May a task run on one of these cores (core-major ids of the whole node)? */
bool affinity_is_near(const struct step *s, const struct task *t, const char *cores);
/* Has the machine the CPUs that the node claims? */
bool affinity_is_real(const struct step *s);
/* "0-3" of abstract ids as the kernel numbers them, for cpuset.cpus. malloc'd. */
char *affinity_kernel_list(const struct step *s, const char *ids);

/* affinity_mem.c: memory of a task (--mem-bind), in the child when descriptor 2 is its own. 0; -1: a node that is not there, said. */
int affinity_mem_apply(struct step *s, const struct task *t);
void affinity_mem_say(const struct step *s, const struct task *t);
