/* drain.c - who waits until a job has no step left: none that runs, none with a number that waits for room (swait(1))
 * Steps that another srun waits for have no number yet and do not count; nor do the batch script and the shell of salloc. */
#include <stdlib.h>

#include "core/state.h"

static bool has_steps(const struct core_job *j)
{
	for (const struct step *s = j->alloc ? j->steps : NULL; s; s = s->next)
		if ((!s->done || s->open) && s->id < STEP_ID_INTERACTIVE)
			return true;
	return false;
}

void drain_ask(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	const struct core_job *j = job_find(c, ev->drain_job);
	if (!j)
		error_set(&err, ESLURM_INVALID_JOB_ID, "job %u is not known", ev->drain_job);
	else if (j->uid != ev->by.uid && !ev->by.oper)
		error_set(&err, ESLURM_ACCESS_DENIED, "job %u belongs to another user", j->id);
	else if (j->state == PB__JOB_STATE__PENDING)
		error_set(&err, ESLURM_JOB_PENDING, "job %u has no nodes yet", j->id);
	if (err.code || !has_steps(j) || !ev->token) {
		fx_result(c, ev->token, &err, ev->drain_job);
		return;
	}
	struct drain *w = xcalloc(1, sizeof *w);
	*w = (struct drain){ c->drains, j->id, ev->token };
	c->drains = w;
}

static void drain_drop(struct core *c, struct drain **at, const struct error *err)
{
	struct drain *w = *at;
	*at = w->next;
	if (err)
		fx_result(c, w->token, err, w->job_id);
	free(w);
}

void drains_answer(struct core *c, const struct core_job *j)
{
	static const struct error none;
	if (!c->drains || has_steps(j))
		return;
	for (struct drain **at = &c->drains; *at;)
		if ((*at)->job_id == j->id)
			drain_drop(c, at, &none);
		else
			at = &(*at)->next;
}

bool drain_give_up(struct core *c, uint64_t token)
{
	struct error gone = { 0 };
	struct drain **at = &c->drains;
	while (*at && (*at)->token != token)
		at = &(*at)->next;
	if (!*at)
		return false;
	error_set(&gone, ESLURM_COMM, "who waits for the steps of job %u is gone", (*at)->job_id);
	drain_drop(c, at, &gone);
	return true;
}

void drains_free(struct core *c)
{
	while (c->drains)
		drain_drop(c, &c->drains, NULL);
}
