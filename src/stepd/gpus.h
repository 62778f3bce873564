/* gpus.h - which GPUs a task sees: CUDA_VISIBLE_DEVICES and its kin, SLURM_STEP_GPUS, SLURM_GPUS_ON_NODE
 * Of the step's devices on this node (device indexes of the node), narrowed by --gpu-bind / --gpus-per-task. */
#pragma once
#include "stepd/step.h"
struct envlist;
struct step;
struct task;
/* CUDA_VISIBLE_DEVICES of a batch script whose devices are filtered. */
void gpus_batch(const struct step *s, struct envlist *e);
/* The devices (of all kinds) the step may open here. Borrowed. */
size_t gpus_devices(const struct step *s, Pb__GresAlloc ***ret);
/* Minor numbers of the GPUs it has (gres.conf's File=/dev/nvidiaN); returns how many. */
size_t gpus_minors(const struct step *s, uint32_t *ret, size_t max);
void gpus_env(const struct step *s, const struct task *t, struct envlist *e);
/* --gpu-bind=verbose, and what could not be bound as asked for: on the task's stderr, in the child. */
void gpus_say(const struct step *s, const struct task *t);
