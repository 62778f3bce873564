/* plugins.h - SPANK in slurmstepd (src/spank): when its callbacks are called, and what they see
 *
 * Only where slurmd names a plugstack.conf (setting PlugStack) that lists something; else every function here does nothing. */
#pragma once
#include <stdbool.h>
struct step;
struct task;
/* The other role: one callback of a job's prolog or epilog, told by the environment (noded/plugins.c). -1: that is not what we were started for; else the
 * exit code. */
int plugins_script(void);
/* init, options, init_post_opt (as we are) and user_init (as the user), before the first fork. 0; -1 and the step's note filled. */
int plugins_start(struct step *s);
/* In the child: task_init_privileged before it becomes the user; task_init before it executes, on its environment and argv. Both return the environment. A required plugin's failure ends it. */
char **plugins_child_privileged(struct step *s, struct task *t, char **env);
char **plugins_child_user(struct step *s, struct task *t, char **env);
/* In the parent: after each fork; after the last one, which lets the children go on; when a task has ended; when the step has. */
int plugins_forked(struct step *s, struct task *t);
void plugins_all_forked(void);
void plugins_task_end(struct step *s, struct task *t);
void plugins_end(struct step *s);
