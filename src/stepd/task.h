/* task.h - the tasks of a step: start, signal, reap */
#pragma once
#include <stdint.h>

struct step;
/* Make the table of tasks from the layout. 0; -1 and the step's note filled. */
int task_prepare(struct step *s);
/* Fork every task. 0; -1 and the step's note filled when one could not be started. */
int task_launch(struct step *s);
/* Take the status of every child that has ended. */
void task_reap(struct step *s);
/* As scancel --signal: to each task's process group. */
void task_signal(struct step *s, int sig);
/* The batch shell alone. */
void task_signal_shell(struct step *s, int sig);
/* SIGCONT and SIGTERM to all, SIGKILL after `kill_wait_sec` (0: at once). */
void task_terminate(struct step *s, uint32_t kill_wait_sec);
/* The step's status: of the batch shell, or the worst of its tasks. */
int task_worst_status(const struct step *s);
