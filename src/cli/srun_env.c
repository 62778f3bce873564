/* srun_env.c - the environment handed to the tasks: the user's own by the rules of --export, then what srun knows
 *
 * The variables come from model/jobenv.h where we made the allocation or came from outside; the step's and the task's own are set by slurmstepd. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
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

static void set_gpus(struct envlist *e, const char *name, const char *text)
{
	if (text)
		envlist_set(e, name, str_starts(text, "gres/gpu:") ? text + 9 : text);
}

static void set_options(const struct jobopt *o, struct envlist *e)
{
	const Pb__JobDesc *d = o->desc;
	jobenv_add_per_task(e, d);
	if (d->has_threads_per_core)
		envlist_setf(e, "SLURM_THREADS_PER_CORE", "%u", d->threads_per_core);
	if (d->has_ntasks_per_core)
		envlist_setf(e, "SLURM_NTASKS_PER_CORE", "%u", d->ntasks_per_core);
	if (d->has_plane_size && d->plane_size)
		envlist_setf(e, "SLURM_DIST_PLANESIZE", "%u", d->plane_size);
	if (d->has_ntasks_per_tres)
		envlist_setf(e, "SLURM_NTASKS_PER_TRES", "%u", d->ntasks_per_tres);
	if (jobopt_is_set(o, JO_gpus))
		set_gpus(e, "SLURM_GPUS", d->tres_per_job);
	if (jobopt_is_set(o, JO_gpus_per_node))
		set_gpus(e, "SLURM_GPUS_PER_NODE", o->gpus_per_node);
	if (jobopt_is_set(o, JO_job_name))
		envlist_set(e, "SLURM_JOB_NAME", d->name);
	if (d->has_overcommit && d->overcommit)
		envlist_set(e, "SLURM_OVERCOMMIT", "1");
	if (d->has_ntasks_per_node)
		envlist_setf(e, "SLURM_NTASKS_PER_NODE", "%u", d->ntasks_per_node);
}

/* In a job of others the distribution is always told, in one of our own only when it was asked for, or when memory was: as the reference. */
static void set_distribution(const struct srun *s, const struct part *p, struct envlist *e)
{
	const Pb__JobDesc *d = s->o.desc;
	bool own_part = s->is_own_job && het_is(s) && p->step;
	uint32_t tasks = own_part ? p->step->layout->num_tasks : s->task_count;
	size_t nodes = own_part ? p->step->layout->n_node : s->node_count;
	bool packing_alone = d->distribution && (!strcmp(d->distribution, "pack") || !strcmp(d->distribution, "nopack"));
	if (packing_alone && !s->is_own_job)
		envlist_setf(e, "SLURM_DISTRIBUTION", "block,%s", d->distribution);
	else if (d->distribution)
		jobenv_distribution(e, d->distribution);
	else if (d->has_mem_per_node && !d->mem_per_node)
		return;
	else if (!s->is_own_job || own_part || d->has_mem_per_node || d->has_mem_per_cpu)
		envlist_set(e, "SLURM_DISTRIBUTION", tasks <= nodes ? "cyclic" : "block");
}

/* Is what the environment says of the job not what this part runs in? */
static bool is_elsewhere(const struct srun *s, const struct part *p)
{
	const char *in = getenv("SLURM_JOB_ID");
	if (s->is_own_job || !in || strtoul(in, NULL, 10) != s->job_id)
		return true;
	return het_is(s) && (p->group || !getenv("SLURM_JOB_NODELIST"));
}

/* A job of others, from outside: the step's name, and not all of the job's, as the reference. */
static void set_joined(const struct srun *s, const struct part *p, struct envlist *e)
{
	const char *name = s->o.desc->name ? s->o.desc->name : p->argv[0], *slash = strrchr(name, '/');
	envlist_set(e, "SLURM_JOB_NAME", s->o.desc->name || !slash ? name : slash + 1);
	envlist_unset(e, "SLURM_JOB_NUM_NODES");
}

void env_fill(const struct srun *s, const struct part *p, struct envlist *e)
{
	load_user(s, e);
	if (s->is_own_job && (!s->o.desc->export_env || str_eq_nocase(s->o.desc->export_env, "ALL")))
		jobenv_add_mpi(e, conf_str(s->conf, CONF_MpiParams));
	bool has_qos = envlist_get(e, "SLURM_JOB_QOS") != NULL || s->is_own_job;
	bool has_hint = envlist_get(e, "SLURM_HINT") != NULL;
	if (p->job && is_elsewhere(s, p)) {
		jobenv_add(e, p->job, JOBENV_SRUN, conf_str(s->conf, CONF_ClusterName), conf_path(s->conf));
		if (!p->o->desc->has_mem_per_cpu)
			envlist_unset(e, "SLURM_MEM_PER_CPU");
		if (!has_hint)
			envlist_unset(e, "SLURM_HINT");
		envlist_unset(e, "SLURM_NTASKS_PER_GPU");
		if (!has_qos)
			envlist_unset(e, "SLURM_JOB_QOS");
		if (!s->is_own_job && !het_is(s))
			set_joined(s, p, e);
		if (s->o.desc->work_dir && s->is_own_job)
			envlist_set(e, "SLURM_SUBMIT_DIR", s->o.desc->work_dir);
		if (s->o.desc->alloc_node && s->is_own_job)
			envlist_set(e, "SLURM_SUBMIT_HOST", s->o.desc->alloc_node);
	}
	if (p->job) {
		jobenv_add_owner(e, p->job);
		if (p->job->group)
			envlist_set(e, "SLURM_JOB_GROUP", p->job->group);
	}
	het_env(s, p, e);
	set_options(p->o, e);
	set_distribution(s, p, e);
	envlist_setf(e, "SRUN_DEBUG", "%d", (int)(s->o.quiet ? LOG_L_ERROR : LOG_L_INFO + s->o.verbose));
	if (s->o.mpi && !str_eq(s->o.mpi, "none"))
		envlist_set(e, "SLURM_MPI_TYPE", s->o.mpi);
	envlist_unset(e, "BERTH_MPI_PREPUT");
	envlist_unset(e, "BERTH_MPI_READY");
	if (!s->o.preserve_env)
		envlist_setf(e, "SLURM_NNODES", "%zu", s->node_count);
}
