/* attach.h - sattach: more readers (and writers) of a step's streams than the srun that started it
 *
 * Each is a connection as to srun (wire/stepio.h), made by us when slurmd hands on an order whose sender it has checked. A reader that does not keep up is
 * dropped once ATTACH_MAX bytes wait for it: nobody who looks on slows the step down. Only streams that pass through slurmstepd can be seen. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/agent.pb-c.h"
struct step;
struct task;
/* Connect to order->attach_host; failures are logged, the other side notices by itself. */
void attach_start(struct step *s, const Pb__StepdOrder *order);
/* Somebody looks on. */
bool attach_any(void);
/* Output of a task (n 0: its end), the end of a task, a line for stderr. */
void attach_output(struct step *s, uint8_t type, uint32_t rank, const void *data, size_t n);
void attach_task_end(struct step *s, const struct task *t);
/* The step is over: send what is left, for a moment. */
void attach_finish(struct step *s);
