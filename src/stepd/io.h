/* io.h - input and output of the tasks
 *
 * A batch script opens its own files. Tasks of a step either write straight to files that a helper process opened as the user, or to pipes whose
 * other ends are carried to srun over one connection (wire/stepio.h). Nothing is lost: a pipe is closed only at its end of file, and
 * when the connection does not take more, the pipes are not read. */
#pragma once
#include <stdbool.h>
struct step;
struct task;
/* Each: 0; -1 and the step's note filled. First the connection, so that srun can be told what else fails; then files. */
int io_connect(struct step *s);
int io_prepare(struct step *s);
/* Around the fork of each task: make its ends (0; -1 and the note filled); close ours of them. */
int io_open(struct step *s, struct task *t);
void io_forked(struct step *s);
/* In the child, as the user: descriptors 0, 1, 2. */
void io_child(struct step *s, struct task *t);
/* The task that a terminal (--pty) is for. */
bool io_has_terminal(const struct step *s, const struct task *t);
/* All tasks are forked: start carrying, tell srun. */
void io_launched(struct step *s);
/* The step does not run: tell srun why. */
void io_failed(struct step *s, const char *text);
void io_task_end(struct step *s, struct task *t);
/* All tasks have ended: true when all output has gone out; else step_check_end is called again. */
bool io_finish(struct step *s);
/* A line on the job's stderr: an error as "slurmstepd: error: text", else the text alone. */
void io_line(struct step *s, bool is_error, const char *text);
void io_text(struct step *s, const char *text);
