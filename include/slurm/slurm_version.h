/* slurm_version.h - the version whose behaviour this is; plugins compiled for another are refused */
#ifndef SLURM_VERSION_H
#define SLURM_VERSION_H
#define SLURM_VERSION_NUM(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define SLURM_VERSION_MAJOR(a) (((a) >> 16) & 0xff)
#define SLURM_VERSION_MINOR(a) (((a) >> 8) & 0xff)
#define SLURM_VERSION_MICRO(a) ((a) & 0xff)
#define SLURM_VERSION_NUMBER SLURM_VERSION_NUM(26, 5, 5)
#endif
