/* scriptenv.c - see scriptenv.h */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/jobenv.h"
#include "model/scriptenv.h"

static void set_if(struct envlist *e, const char *name, const char *value)
{
	if (value && *value)
		envlist_set(e, name, value);
}

static void set_upper(struct envlist *e, const char *name, const char *value, const char *otherwise)
{
	char *text = xstrdup(value && *value ? value : otherwise);
	for (char *p = text; *p; p++)
		*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
	envlist_set(e, name, text);
	free(text);
}

static void add_alloc(struct envlist *e, const Pb__JobRecord *job)
{
	struct envlist all = ENVLIST_INIT;
	if (!job->alloc || !job->alloc->nodes)
		return;
	envlist_set(e, "SLURM_JOB_NODELIST", job->alloc->nodes);
	envlist_set(e, "SLURM_NODELIST", job->alloc->nodes);
	envlist_setf(e, "SLURM_JOB_NUM_NODES", "%u", job->num_nodes);
	jobenv_add(&all, job, JOBENV_BATCH, NULL, NULL);
	set_if(e, "SLURM_JOB_CPUS_PER_NODE", envlist_get(&all, "SLURM_JOB_CPUS_PER_NODE"));
	envlist_fini(&all);
}

static void add_owner(struct envlist *e, const Pb__JobRecord *job)
{
	envlist_setf(e, "SLURM_JOB_UID", "%u", job->uid);
	envlist_setf(e, "SLURM_UID", "%u", job->uid);
	envlist_setf(e, "SLURM_JOB_GID", "%u", job->gid);
	set_if(e, "SLURM_JOB_USER", job->user);
	set_if(e, "SLURM_JOB_PARTITION", job->partition);
	set_if(e, "SLURM_JOB_SLUID", job->sluid);
	envlist_setf(e, "SLURM_JOB_RESTART_COUNT", "%u", job->restarts);
	envlist_setf(e, "SLURM_JOB_START_TIME", "%llu", (unsigned long long)job->start_time);
	envlist_setf(e, "SLURM_JOB_END_TIME", "%llu", (unsigned long long)job->end_time);
	set_if(e, "SLURM_JOB_LICENSES", job->licenses_alloc);
	set_if(e, "SLURM_JOB_RESERVATION", job->resv_name);
	set_if(e, "SLURM_JOB_STDOUT", job->std_out_path);
	if (job->has_array_task_id) {
		envlist_setf(e, "SLURM_ARRAY_JOB_ID", "%u", job->array_job_id);
		envlist_setf(e, "SLURM_ARRAY_TASK_ID", "%u", job->array_task_id);
	}
}

static void add_request(struct envlist *e, const Pb__JobDesc *d)
{
	set_if(e, "SLURM_JOB_ACCOUNT", d->account);
	set_if(e, "SLURM_JOB_COMMENT", d->comment);
	set_if(e, "SLURM_JOB_EXTRA", d->extra);
	set_if(e, "SLURM_JOB_CONSTRAINTS", d->features);
	set_if(e, "SLURM_JOB_QOS", d->qos && *d->qos ? d->qos : "normal");
	set_if(e, "SLURM_JOB_WORK_DIR", d->work_dir);
	set_if(e, "SLURM_JOB_STDERR", d->std_err);
	if (d->batch)
		set_if(e, "SLURM_JOB_STDIN", d->std_in && *d->std_in ? d->std_in : "/dev/null");
	set_upper(e, "SLURM_JOB_EXCLUSIVE", d->exclusive, "NO");
	envlist_set(e, "SLURM_JOB_OVERSUBSCRIBE", d->has_oversubscribe && d->oversubscribe ? "YES" : "NO");
	/* Of SPANK plugins: what they set for these scripts, and the options the user gave them. */
	for (size_t i = 0; i < d->n_spank_env; i++)
		if (str_starts(d->spank_env[i], "SPANK_"))
			envlist_load(e, &d->spank_env[i], 1);
}

void scriptenv_job(struct envlist *e, const Pb__JobRecord *job, bool over)
{
	envlist_setf(e, "SLURM_JOB_ID", "%u", job->job_id);
	envlist_setf(e, "SLURM_JOBID", "%u", job->job_id);
	add_owner(e, job);
	add_alloc(e, job);
	if (job->desc)
		add_request(e, job->desc);
	if (!over)
		return;
	envlist_setf(e, "SLURM_JOB_EXIT_CODE", "%u", job->exit_status);
	envlist_setf(e, "SLURM_JOB_EXIT_CODE2", "%u:%u", job->exit_status >> 8 & 255, job->exit_status & 127);
	envlist_setf(e, "SLURM_JOB_DERIVED_EC", "%u", job->derived_status);
}

void scriptenv_names(struct envlist *e, const Pb__JobRecord *job)
{
	set_if(e, "SLURM_JOB_NAME", job->desc ? job->desc->name : NULL);
	set_if(e, "SLURM_JOB_GROUP", job->group);
}
