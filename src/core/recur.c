/* recur.c - jobs of scrontab: one job that goes back to the queue when it ends, until the next minute its cron_spec names
 *
 * It is requeued as by scontrol requeue (same id, one more restart), whatever way it ended but cancelled. Requeue=0 ends the series: so a crontab that is replaced lets its
 * running jobs finish. A run that falls into a longer one, or into a stop of the controller, is left out. */
#include <stdlib.h>

#include "core/state.h"
#include "model/cron.h"

int recur_check(const struct core *c, const Pb__JobDesc *d, struct error *err)
{
	struct cron cron;
	const char *end;
	if (!d->cron_spec)
		return 0;
	if (!d->batch || d->array || d->has_het_job_id)
		return error_set(err, ESLURM_NOT_SUPPORTED, "a job of scrontab is a batch job, and neither an array nor heterogeneous");
	int rc = cron_parse(d->cron_spec, &cron, &end, err);
	if (rc >= 0 && (*end || !cron_next(&cron, &c->params.zone, now_sec(c))))
		rc = error_set(err, EINVAL, "\"%s\" is never due", d->cron_spec);
	return rc;
}

void recur_read(struct core *c, struct core_job *j, const Pb__JobDesc *d, uint32_t from)
{
	struct cron cron;
	const char *end;
	if (!d->cron_spec || cron_parse(d->cron_spec, &cron, &end, NULL) < 0)
		return;
	job_x(j)->cron = xmemdup(&cron, sizeof cron);
	j->requeue = d->has_requeue ? d->requeue : true;
	j->begin = (uint32_t)cron_next(&cron, &c->params.zone, from);
}

bool recur_again(struct core *c, struct core_job *j, uint32_t state)
{
	int64_t next = j->x && j->x->cron && j->requeue && state != PB__JOB_STATE__CANCELLED ? cron_next(j->x->cron, &c->params.zone, now_sec(c)) : 0;
	if (!next)
		return false;
	job_requeue(c, j, false, 0, (uint32_t)(next - now_sec(c)));
	return true;
}

bool recur_skip(struct core *c, struct core_job *j)
{
	if (!j->x || !j->x->cron || j->state != PB__JOB_STATE__PENDING)
		return false;
	j->begin = (uint32_t)cron_next(j->x->cron, &c->params.zone, j->begin > now_sec(c) ? j->begin : now_sec(c));
	queue_update(c, j);
	fx_persist(c, j);
	return true;
}
