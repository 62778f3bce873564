/* rpc_why.c - why jobs wait or how they ended: the core explains, here it is decided how much of others the caller may see */
#include <stdlib.h>

#include "base/alloc.h"
#include "ctld/accounts.h"
#include "ctld/handlers.h"
#include "ctld/replies.h"

#define JOBS_MAX 1000   /* in one answer: each costs a walk over the nodes */

struct asked { struct core_why_ask who; Pb__WhyRsp *rsp; size_t cap; bool hidden; };

static void add(struct ctld *d, struct asked *a, const struct core_job *j)
{
	if (a->who.hide_jobs && core_job_uid(j) != a->who.uid) {
		a->hidden = true;
		return;
	}
	if (a->rsp->n_job == JOBS_MAX)
		return;
	a->rsp->job = xgrow(a->rsp->job, &a->cap, a->rsp->n_job + 1, sizeof *a->rsp->job);
	a->rsp->job[a->rsp->n_job++] = core_why(d->core, j, &a->who);
}

static void add_pending(struct ctld *d, struct asked *a, const Pb__WhyReq *m)
{
	uint64_t cursor = 0;
	const struct core_job *j;
	while ((j = core_job_next(d->core, &cursor)))
		if (!core_job_is_finished(j) && !core_job_is_running(j) && (!m->has_uid || core_job_uid(j) == m->uid))
			add(d, a, j);
}

static void add_named(struct ctld *d, struct asked *a, const Pb__WhyReq *m)
{
	uint32_t *ids = NULL;
	size_t n = 0;
	for (size_t i = 0; i < m->n_selector; i++)
		if (core_job_resolve(d->core, m->selector[i], &ids, &n) < 0)
			a->rsp->code = ESLURM_INVALID_JOB_ID;
	for (size_t i = 0; i < n; i++) {
		const struct core_job *j = core_job_find(d->core, ids[i]);
		if (j && (!m->has_uid || core_job_uid(j) == m->uid))
			add(d, a, j);
	}
	free(ids);
	if (!a->rsp->n_job)
		a->rsp->code = ESLURM_INVALID_JOB_ID; /* hidden ones, too: that they exist is not told */
	else if (n > 1)
		a->rsp->code = 0;
}

void rpc_why(struct ctld *d, struct wire_req *req)
{
	const Pb__WhyReq *m = (const Pb__WhyReq *)wire_req_msg(req);
	Pb__WhyRsp rsp = PB__WHY_RSP__INIT;
	struct asked a = { .rsp = &rsp };
	a.who.uid = wire_req_identity(req)->uid;
	a.who.oper = ctld_is_admin(d, a.who.uid) || accounts_is_operator(d, a.who.uid);
	a.who.hide_jobs = reply_is_private(d, req, "jobs");
	a.who.hide_nodes = reply_is_private(d, req, "nodes");
	a.who.brief = m->brief || !m->n_selector;
	rsp.now = ctld_now_ms() / 1000;
	if (m->n_selector)
		add_named(d, &a, m);
	else
		add_pending(d, &a, m);
	wire_reply(req, &rsp.base);
	for (size_t i = 0; i < rsp.n_job; i++)
		pb__why_job__free_unpacked(rsp.job[i], NULL);
	free(rsp.job);
}
