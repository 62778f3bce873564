/* scriptenv.h - what prologs and epilogs are told of their job (prolog_epilog.html, "Environment Variables"), for slurmctld's and slurmd's alike
 * Nothing of the user's environment; of his words only those that the manual names. Pure. */
#pragma once
#include <stdbool.h>
#include "model/envlist.h"
#include "proto/job.pb-c.h"

/* SLURM_JOB_ID, _USER, _NODELIST, SLURM_ARRAY_* ... `over`: an epilog's SLURM_JOB_EXIT_CODE, _EXIT_CODE2 and _DERIVED_EC too. */
void scriptenv_job(struct envlist *e, const Pb__JobRecord *job, bool over);
/* SLURM_JOB_NAME and SLURM_JOB_GROUP, which only slurmctld's scripts get. */
void scriptenv_names(struct envlist *e, const Pb__JobRecord *job);
