/* prolog.h - TaskProlog and TaskEpilog, the site's (slurm.conf) and the user's (srun --task-prolog, --task-epilog)
 * Prologs run in the task's own process tree, as the user, before the program; lines "export NAME=value", "unset NAME" and
 * "print text" of their output change the task's environment and go to its stdout. Epilogs run as the user when a task has ended. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>
struct step;
struct task;
/* In the child, as the user: the environment after the prologs. */
char **prolog_run(struct step *s, struct task *t, char **env);
void prolog_task_end(struct step *s, struct task *t);
/* Was pid an epilog of ours? */
bool prolog_reaped(struct step *s, pid_t pid, int status);
/* No epilog is running. */
bool prolog_is_idle(const struct step *s);
