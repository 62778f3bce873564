/* slurm.h - constants that plugins use beside spank.h; there is no client library behind it */
#ifndef SLURM_H
#define SLURM_H
#include <stdint.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#define SLURM_PENDING_STEP 0xfffffffdu
#define SLURM_EXTERN_CONT 0xfffffffcu
#define SLURM_BATCH_SCRIPT 0xfffffffbu
#define SLURM_INTERACTIVE_STEP 0xfffffffau
#define SLURM_MAX_NORMAL_STEP_ID 0xfffffff0u
#endif
