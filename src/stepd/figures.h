/* figures.h - what processes do on GPUs, and energy (AcctGatherEnergyType of slurm.conf(5)); gather.c samples them
 *
 * GPUs are asked by a process of slurmd that leaves a text in the spool (model/gpustate.h): while slurmd is away the last one stands. Energy is the whole
 * node's (rapl), or that of the step's GPUs (gpu), from the step's first look at it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct step;
/* Once, before the first look. */
void figures_start(struct step *s);
/* Look. */
void figures_read(struct step *s);
/* Whether this step's node tells what GPUs do; then what that process does on them: percent, bytes, over all GPUs. */
bool figures_has_gpus(void);
void figures_of(pid_t pid, uint64_t *ret_util, uint64_t *ret_memory);
/* Joules so far; false: not measured. */
bool figures_energy(uint64_t *ret);
