/* names.c - file names of a step (see names.h) */
#include <stdlib.h>

#include "base/alloc.h"
#include "model/fname.h"
#include "stepd/names.h"
#include "stepd/step.h"

static struct fname_ctx context(const struct step *s, const struct task *t)
{
	const Pb__JobRecord *job = s->cred->job;
	return (struct fname_ctx){
		.job_id = s->whole_job, .array_job_id = job->array_job_id, .has_task = job->has_array_task_id, .array_task_id = job->array_task_id,
		.has_step = !s->batch, .step_id = s->step_id, .node_index = s->start->node_index, .task = t ? t->rank : 0, .node = s->node,
		.user = s->cred->user, .name = job->desc ? job->desc->name : NULL, .sluid = job->sluid, .restarts = job->restarts,
	};
}

char *names_expand(const struct step *s, const struct task *t, const char *pattern)
{
	struct fname_ctx ctx = context(s, t);
	return fname_path(pattern, s->spec ? s->spec->cwd : s->cred->job->desc ? s->cred->job->desc->work_dir : "/", &ctx);
}

void names_batch(const struct step *s, char **ret_in, char **ret_out, char **ret_err)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	const char *out = d && d->std_out ? d->std_out : fname_default(s->cred->job->has_array_task_id);
	*ret_in = names_expand(s, NULL, d ? d->std_in : NULL);
	*ret_out = names_expand(s, NULL, out);
	*ret_err = d && d->std_err ? names_expand(s, NULL, d->std_err) : NULL;
}
