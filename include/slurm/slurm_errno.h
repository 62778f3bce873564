/* slurm_errno.h - results of functions that plugins share */
#ifndef SLURM_ERRNO_H
#define SLURM_ERRNO_H
#include <errno.h>
#define SLURM_SUCCESS 0
#define SLURM_ERROR (-1)
#endif
