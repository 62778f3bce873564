/* script_env.h - the environment of Prolog and Epilog: only what slurm.conf(5), "PROLOG AND EPILOG SCRIPTS", names; nothing of the user's */
#pragma once
#include "model/envlist.h"
#include "noded/noded.h"
/* job may be NULL: only what is known without it. */
void script_env_job(const struct noded *n, const Pb__JobRecord *job, uint32_t job_id, const char *context, struct envlist *e);
