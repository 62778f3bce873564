/* srun_env.c - the environment handed to the tasks: the user's own by the rules of --export, then what srun knows
 *
 * The variables come from model/jobenv.h where we made the allocation or came from outside; the step's and the task's own are set by slurmstepd. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/srun.h"
#include "cli/submit.h"
#include "model/envlist.h"
#include "model/jobenv.h"

extern char **environ;

static void load_user(const struct srun *s, struct envlist *e)
{
	const char *list = s->o.desc->export_env;
	submit_export(list && str_eq_nocase(list, "ALL") ? NULL : list, environ, e);
	envlist_unset(e, "SLURM_JWT");
}

static void set_options(const struct srun *s, struct envlist *e)
{
	const Pb__JobDesc *d = s->o.desc;
	const struct { const char *name, *value; } texts[] = { { "SLURM_DISTRIBUTION", d->distribution }, { "SLURM_HINT", d->hint },
		{ "SLURM_TRES_PER_TASK", d->tres_per_task }, { "SLURM_CPU_BIND", d->cpu_bind }, { "SLURM_MEM_BIND", d->mem_bind } };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].value)
			envlist_set(e, texts[i].name, texts[i].value);
	if (d->has_cpus_per_task)
		envlist_setf(e, "SLURM_CPUS_PER_TASK", "%u", d->cpus_per_task);
	if (d->has_overcommit && d->overcommit)
		envlist_set(e, "SLURM_OVERCOMMIT", "1");
	if (d->has_ntasks_per_node)
		envlist_setf(e, "SLURM_NTASKS_PER_NODE", "%u", d->ntasks_per_node);
}

void env_fill(const struct srun *s, struct envlist *e)
{
	const char *in = getenv("SLURM_JOB_ID");
	load_user(s, e);
	if (s->job && (s->is_own_job || !in || strtoul(in, NULL, 10) != s->job_id)) {
		jobenv_add(e, s->job, JOBENV_SRUN, conf_str(s->conf, CONF_ClusterName), conf_path(s->conf));
		if (s->o.desc->work_dir && s->is_own_job)
			envlist_set(e, "SLURM_SUBMIT_DIR", s->o.desc->work_dir);
		if (s->o.desc->alloc_node && s->is_own_job)
			envlist_set(e, "SLURM_SUBMIT_HOST", s->o.desc->alloc_node);
	}
	if (s->job) {
		jobenv_add_owner(e, s->job);
		if (s->job->group)
			envlist_set(e, "SLURM_JOB_GROUP", s->job->group);
	}
	set_options(s, e);
	if (!s->o.preserve_env)
		envlist_setf(e, "SLURM_NNODES", "%zu", s->node_count);
}
