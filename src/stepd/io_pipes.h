/* io_pipes.h - the pipes (or terminal) between tasks and slurmstepd, when a stream goes to or comes from srun */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct step;
struct task;
void io_pipes_prepare(struct step *s);
/* Before a task is forked: a pipe for each of its ends that no file was opened for. 0; -1 and the note filled. */
int io_pipes_open(struct step *s, struct task *t);
/* After it: close what is the task's, so that the next ones do not inherit it. */
void io_pipes_forked(void);
/* In the child of a task with a terminal: make it the controlling one. */
void io_pipes_child(struct step *s, struct task *t);
/* After the last fork: start reading. */
void io_pipes_start(struct step *s);
/* Go on with streams that were stopped because the queue to srun was full. */
void io_pipes_resume(struct step *s);
/* Input for one task or (STEPIO_ALL) each; len 0: end of file. */
void io_pipes_input(struct step *s, uint32_t rank, const uint8_t *data, size_t len);
void io_pipes_resize(struct step *s, uint32_t rows, uint32_t cols);
/* Streams from tasks not at their end yet. */
bool io_pipes_are_open(const struct step *s);
/* No stdin of a task of this rank is wanted any more. */
void io_pipes_task_end(struct step *s, struct task *t);
