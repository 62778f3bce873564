/* script_env.c - the environment of Prolog and Epilog (see script_env.h) */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/jobenv.h"
#include "model/scriptenv.h"
#include "noded/script_env.h"

static void set_if(struct envlist *e, const char *name, const char *value)
{
	if (value)
		envlist_set(e, name, value);
}

static void env_gpus(const struct noded *n, const Pb__JobRecord *job, struct envlist *e)
{
	static const char *const wanted[] = { "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES" };
	struct envlist node = ENVLIST_INIT;
	jobenv_add_node(&node, job, n->name);
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		set_if(e, wanted[i], envlist_get(&node, wanted[i]));
	envlist_fini(&node);
}

void script_env_job(const struct noded *n, const Pb__JobRecord *job, uint32_t job_id, const char *context, struct envlist *e)
{
	envlist_set(e, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	envlist_setf(e, "SLURM_JOB_ID", "%u", job_id);
	envlist_setf(e, "SLURM_JOBID", "%u", job_id);
	envlist_set(e, "SLURM_CLUSTER_NAME", conf_str(n->conf, CONF_ClusterName));
	envlist_set(e, "SLURM_CONF", conf_path(n->conf));
	envlist_set(e, "SLURMD_NODENAME", n->name);
	envlist_set(e, "SLURM_SCRIPT_CONTEXT", context);
	if (!job)
		return;
	scriptenv_job(e, job, str_starts(context, "epilog"));
	set_if(e, "SLURM_JOB_NAME", job->desc ? job->desc->name : NULL);      /* beyond the reference */
	if (job->alloc && job->alloc->nodes)
		env_gpus(n, job, e);
}
