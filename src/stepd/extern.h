/* extern.h - the extern step (PrologFlags=Contain): one a node for each job, for processes that Slurm did not start
 *
 * It runs nothing of its own. It is there from the job's allocation to its end, keeps the job's private folders mounted in one place and takes in the processes
 * that pam_slurm_adopt brings: they are counted, stopped and ended with the job. Without cgroups a process and its descendants are followed by their tree. */
#pragma once
#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

struct step;
/* In place of tasks. 0, or -1 and the step's note. */
int extern_launch(struct step *s);
/* 0 or an errno; *ret_keeper: a process whose mount namespace is the job's; 0: there is none. */
int extern_adopt(struct step *s, pid_t pid, pid_t *ret_keeper);
/* The job ends: what was taken in is told to end and killed after `kill_wait_sec`; then the step is over. */
void extern_terminate(struct step *s, uint32_t kill_wait_sec);
/* Those taken in that live and are in no cgroup. */
void extern_pids(pid_t **list, size_t *n, size_t *cap);
