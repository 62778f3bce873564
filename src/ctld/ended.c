/* ended.c - acct_ended of acct.h: how jobs ended that the core has forgotten, asked of slurmdbd before a submission depends on them */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "ctld/acct.h"
#include "model/depend.h"
#include "model/states.h"
#include "proto/accounting.pb-c.h"

#define ASK_MAX 1000               /* ids a question; more are refused as unknown */
#define WAIT_MS 5000

struct question { struct ctld *d; acct_ended_fn fn; void *arg; };

/* The ids in `text` that were given out once and that the core does not know. */
static void collect(struct ctld *d, const char *text, char **id, size_t *n)
{
	struct depend dep = DEPEND_INIT;
	if (depend_parse(text, &dep, NULL) < 0)
		return;
	for (size_t i = 0; i < dep.count && *n < ASK_MAX; i++)
		if (dep.term[i].job_id && core_job_forgotten(d->core, dep.term[i].job_id))
			id[(*n)++] = xasprintf("%u", dep.term[i].job_id);
	depend_fini(&dep);
}

static void entry(const Pb__DbdJob *in, struct core_ended *list, size_t *n)
{
	Pb__JobRecord *r = pb__job_record__unpack(NULL, in->record.len, in->record.data);
	if (r && job_state_is_final(r->state)) {
		struct core_ended e = { .job_id = r->job_id, .state = r->state, .start_sec = (uint32_t)r->start_time };
		if (r->has_array_task_id) { /* by the array's id and the task's number, and by its own */
			list[(*n)++] = (struct core_ended){ .job_id = r->array_job_id, .task = r->array_task_id, .has_task = true, .state = r->state, .start_sec = e.start_sec };
			e.job_id = r->job_id == r->array_job_id ? 0 : r->job_id;
		}
		if (e.job_id)
			list[(*n)++] = e;
	}
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

static void answered(int code, const ProtobufCMessage *msg, const char *detail, void *arg)
{
	struct question *q = arg;
	const Pb__DbdJobsRsp *rsp = (const Pb__DbdJobsRsp *)msg;
	size_t n = 0, jobs = !code && rsp && !rsp->code ? rsp->n_job : 0;
	struct core_ended *list = xcalloc(2 * jobs + 1, sizeof *list);
	if (code && code != -ECANCELED)
		log_info("how jobs ended that a dependency names cannot be looked up: slurmdbd: %s", detail && *detail ? detail : error_text(code));
	for (size_t i = 0; i < jobs; i++)
		entry(rsp->job[i], list, &n);
	if (code != -ECANCELED)
		q->fn(q->d, list, n, q->arg);
	free(list);
	free(q);
}

void acct_ended(struct ctld *d, const char *const *dependency, size_t dependencies, acct_ended_fn fn, void *arg)
{
	Pb__DbdJobsReq req = PB__DBD_JOBS_REQ__INIT;
	char *id[ASK_MAX], *cluster = (char *)conf_str(d->conf, CONF_ClusterName);
	struct wire_link *link = acct_link(d->acct);
	for (size_t i = 0; link && i < dependencies; i++)
		if (dependency[i] && *dependency[i])
			collect(d, dependency[i], id, &req.n_id);
	if (!req.n_id) {
		fn(d, NULL, 0, arg);
		return;
	}
	struct question *q = xmalloc(sizeof *q);
	*q = (struct question){ d, fn, arg };
	req.id = id;
	req.has_no_steps = req.no_steps = true;
	req.n_cluster = 1;
	req.cluster = &cluster;
	wire_link_call(link, RPC_DB_JOBS, &req.base, WAIT_MS, answered, q);
	for (size_t i = 0; i < req.n_id; i++)
		free(id[i]);
}
