/* jobenv.h - the SLURM_* variables of an allocation, made in one place for batch scripts, salloc and srun
 * Pure: everything comes from the JobRecord (with alloc and desc) and the arguments. The step's own variables (SLURM_STEP_*, SLURM_PROCID of
 * tasks, bindings) belong to stepd. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "model/envlist.h"
#include "proto/job.pb-c.h"

enum jobenv_for { JOBENV_BATCH, JOBENV_SALLOC, JOBENV_SRUN };
/* SLURM_JOB_ID, SLURM_JOB_NODELIST, SLURM_NNODES, SLURM_TASKS_PER_NODE, SLURM_JOB_CPUS_PER_NODE, SLURM_ARRAY_*, SLURM_NTASKS (when asked
 * for), SLURM_MEM_PER_*, SLURM_JOB_START_TIME ... `cluster` and `conf_path` may be NULL. */
void jobenv_add(struct envlist *e, const Pb__JobRecord *job, enum jobenv_for what, const char *cluster, const char *conf_path);
/* SLURM_CPUS_PER_TASK and SLURM_TRES_PER_TASK of what was asked for by -c, --tres-per-task and --gpus-per-task together. */
void jobenv_add_per_task(struct envlist *e, const Pb__JobDesc *d);
/* Whose job it is and when it runs: SLURM_JOB_USER, _UID, _GID, _SLUID, _START_TIME, _END_TIME, SLURM_OOM_KILL_STEP. In batch scripts and in all tasks. */
void jobenv_add_owner(struct envlist *e, const Pb__JobRecord *job);
/* What is different on each node: SLURMD_NODENAME, SLURM_NODEID, SLURM_CPUS_ON_NODE, SLURM_GPUS_ON_NODE, SLURM_JOB_GPUS, CUDA_VISIBLE_DEVICES and its
 * kin, SLURM_TOPOLOGY_ADDR. For the batch step; stepd overrides the GPU part for steps. */
void jobenv_add_node(struct envlist *e, const Pb__JobRecord *job, const char *node);
/* The batch step's own: SLURM_STEP_ID, PROCID, LOCALID, GTIDS, SLURM_TASK_PID, SLURM_PRIO_PROCESS, SLURM_SUBMIT_*. */
void jobenv_add_batch(struct envlist *e, const Pb__JobRecord *job, int pid);
/* What makes mpirun of Open MPI and of the MPICH family start its helpers by `srun --external-launcher`. `params`: MpiParams, or NULL. What is set already
 * stays; who has chosen another way than slurm is left alone. */
void jobenv_add_mpi(struct envlist *e, const char *params);
/* SLURM_DISTRIBUTION from the text of --distribution: lower case, what * stands for, no plane size. NULL, "": not set. */
void jobenv_distribution(struct envlist *e, const char *text);
/* "2(x2),1" from counts a node. malloc'd. */
char *jobenv_counts(const uint32_t *count, size_t n);
/* Tasks on each node of the allocation, in node order: ret has room for the nodes. Returns how many nodes. */
size_t jobenv_tasks(const Pb__JobRecord *job, uint32_t *ret, size_t max);
/* Of a heterogeneous job: the variables of each component with "_HET_GROUP_0" (and, as the reference, "_PACK_GROUP_0") behind their names, and how many there are.
 * tell_mem: of component i, is its memory a CPU told? NULL: of all. */
void jobenv_add_het(struct envlist *e, Pb__JobRecord *const *job, size_t n, enum jobenv_for what, const bool *tell_mem);
