/* contain.h - keeps the processes of a step together: finds, signals and kills all of them
 *
 * As root under a cgroup v2 mount: a cgroup of the step's own (CONTAIN_CGROUP). Else by process tree (CONTAIN_TREE): slurmstepd is a
 * child subreaper, so whatever its tasks leave behind becomes its child and no descendant can get away while slurmstepd lives.
 * A device filter and limits of memory and CPU are not made here yet. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct step;
void contain_create(struct step *s);
/* As fork(2); the child is a member from its first instruction on. */
pid_t contain_fork(const struct step *s);
/* Every process of the step; malloc'd, *ret_n of them. */
pid_t *contain_pids(const struct step *s, size_t *ret_n);
void contain_signal(struct step *s, int sig);
/* No process of the step is left, zombies included. */
bool contain_is_empty(const struct step *s);
void contain_destroy(struct step *s);
/* Processes the kernel killed for memory; 0 where there is no memory controller. */
unsigned contain_oom_kills(const struct step *s);
