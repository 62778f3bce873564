/* contain.h - keeps the processes of a step together: finds, signals and kills all of them
 *
 * As root under a cgroup v2 mount: a cgroup of the step's own (CONTAIN_CGROUP), with one below it for each task where the kernel counts memory. Else by
 * process tree (CONTAIN_TREE): slurmstepd is a child subreaper, so whatever its tasks leave behind becomes its child and no descendant can
 * get away while slurmstepd lives. Limits and the device filter: contain_limit.h. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct step;
struct task;
void contain_create(struct step *s);
/* As fork(2); the child is a member from its first instruction on. t NULL: a helper of slurmstepd's own. */
pid_t contain_fork(const struct step *s, const struct task *t);
/* Every process of the step; malloc'd, *ret_n of them. */
pid_t *contain_pids(const struct step *s, size_t *ret_n);
void contain_pids_add(pid_t **list, size_t *n, size_t *cap, pid_t pid);
/* Makes a process that is none of ours a member, with what it forks from now on: 0 or -errno; -EOPNOTSUPP: there is no cgroup. */
int contain_adopt(const struct step *s, pid_t pid);
void contain_signal(struct step *s, int sig);
/* No process of the step is left, zombies included. */
bool contain_is_empty(const struct step *s);
void contain_destroy(struct step *s);
/* A file of a cgroup: 0 or -errno; text (malloc'd) or NULL. */
int contain_write(const char *dir, const char *name, const char *text);
char *contain_read(const char *dir, const char *name);
