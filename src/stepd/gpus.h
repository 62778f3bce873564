/* gpus.h - which GPUs a task sees: CUDA_VISIBLE_DEVICES and its kin, SLURM_STEP_GPUS, SLURM_GPUS_ON_NODE
 * Of the step's devices on this node (device indexes of the node), narrowed by --gpu-bind / --gpus-per-task. */
#pragma once
struct envlist;
struct step;
struct task;
void gpus_env(const struct step *s, const struct task *t, struct envlist *e);
