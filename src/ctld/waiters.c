/* waiters.c - see waiters.h
 * Invariant: a request is in the table from the moment its job was found unready until it is answered or its peer is gone. */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alloc.h"
#include "ctld/turn.h"
#include "ctld/replies.h"
#include "ctld/waiters.h"

struct waiter { struct wire_req *req; bool until_end; struct waiter *next; };
struct entry { uint32_t job_id; struct waiter *list; UT_hash_handle hh; };
struct waiters { struct entry *table; size_t count; };

struct waiters *waiters_create(void) { return xcalloc(1, sizeof(struct waiters)); }
size_t waiters_count(const struct waiters *w) { return w->count; }

static void drop_if_empty(struct waiters *w, struct entry *e)
{
	if (e->list)
		return;
	HASH_DEL(w->table, e);
	free(e);
}

static void gone(struct wire_req *req, void *arg)
{
	struct ctld *d = arg;
	const Pb__WaitReq *m = (const Pb__WaitReq *)wire_req_msg(req);
	struct entry *e;
	HASH_FIND(hh, d->waiters->table, &m->job_id, sizeof m->job_id, e);
	for (struct waiter **p = e ? &e->list : NULL; p && *p; p = &(*p)->next)
		if ((*p)->req == req) {
			struct waiter *w = *p;
			*p = w->next;
			free(w);
			d->waiters->count--;
			drop_if_empty(d->waiters, e);
			wire_reply_error(req, ESLURM_COMM, NULL); /* to nobody: frees the call */
			return;
		}
}

static void wait_for(struct ctld *d, struct wire_req *req, const Pb__WaitReq *m)
{
	struct entry *e;
	struct waiter *w = xmalloc(sizeof *w);
	HASH_FIND(hh, d->waiters->table, &m->job_id, sizeof m->job_id, e);
	if (!e) {
		e = xcalloc(1, sizeof *e);
		e->job_id = m->job_id;
		HASH_ADD(hh, d->waiters->table, job_id, sizeof e->job_id, e);
	}
	*w = (struct waiter){ req, m->until_end, e->list };
	e->list = w;
	d->waiters->count++;
	wire_req_on_gone(req, gone, d);
}

static void reply_code(struct ctld *d, struct wire_req *req, uint32_t code, const char *detail, Pb__JobRecord *job)
{
	Pb__WaitRsp rsp = PB__WAIT_RSP__INIT;
	rsp.code = code;
	rsp.detail = (char *)detail;
	rsp.job = job;
	turn_reply(d, req, &rsp.base);
}

/* The step was made (or not): allocation and step in one answer. */
static void step_finish(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	const Pb__WaitReq *m = (const Pb__WaitReq *)wire_req_msg(c->req);
	Pb__StepCreateRsp *step = (Pb__StepCreateRsp *)msg;
	Pb__WaitRsp rsp = PB__WAIT_RSP__INIT;
	wire_req_on_gone(c->req, NULL, NULL);
	rsp.code = step->code;
	rsp.detail = step->detail;
	rsp.step = step;
	rsp.alloc = reply_alloc(d, m->job_id);
	Pb__SignedCred *cred = reply_step_cred(d, step, m->job_id, m->first_step, rsp.alloc ? rsp.alloc->job : NULL);
	step->job = NULL; /* it stands in alloc */
	turn_reply(d, c->req, &rsp.base);
	step->cred = NULL;
	cred_free(cred);
	reply_alloc_free(rsp.alloc);
}

static void reply_allocated(struct ctld *d, struct wire_req *req, const Pb__WaitReq *m)
{
	wire_req_on_gone(req, NULL, NULL);
	if (m->first_step) {
		m->first_step->job_id = m->job_id;
		reply_step_ask(d, req, m->first_step, step_finish);
		return;
	}
	Pb__WaitRsp rsp = PB__WAIT_RSP__INIT;
	rsp.alloc = reply_alloc(d, m->job_id);
	turn_reply(d, req, &rsp.base);
	reply_alloc_free(rsp.alloc);
}

static void reply_ended(struct ctld *d, struct wire_req *req, const Pb__WaitReq *m, const struct core_job *j)
{
	wire_req_on_gone(req, NULL, NULL);
	Pb__JobRecord *r = j ? reply_record(d, j) : NULL;
	if (!r)
		reply_code(d, req, ESLURM_INVALID_JOB_ID, NULL, NULL);
	else
		reply_code(d, req, m->until_end ? 0 : ESLURM_JOB_FINISHED, r->why, r);
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

void waiters_call(struct ctld *d, struct wire_req *req)
{
	const Pb__WaitReq *m = (const Pb__WaitReq *)wire_req_msg(req);
	const struct core_job *j = core_job_find(d->core, m->job_id);
	const struct wire_identity *id = wire_req_identity(req);
	if (!j)
		reply_code(d, req, ESLURM_INVALID_JOB_ID, NULL, NULL);
	else if (core_job_uid(j) != id->uid && !ctld_is_admin(d, id->uid))
		reply_code(d, req, ESLURM_ACCESS_DENIED, NULL, NULL);
	else if (core_job_is_finished(j))
		reply_ended(d, req, m, j);
	else if (!m->until_end && core_job_is_ready(j))
		reply_allocated(d, req, m);
	else
		wait_for(d, req, m);
}

static struct waiter *take(struct ctld *d, uint32_t job_id, bool all)
{
	struct entry *e;
	struct waiter *out = NULL;
	HASH_FIND(hh, d->waiters->table, &job_id, sizeof job_id, e);
	for (struct waiter **p = e ? &e->list : NULL; p && *p;) {
		struct waiter *w = *p;
		if (!all && w->until_end) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		w->next = out;
		out = w;
		d->waiters->count--;
	}
	if (e)
		drop_if_empty(d->waiters, e);
	return out;
}

/* The job may have moved on since: each is answered by how things are now. */
static void answer(struct ctld *d, struct waiter *list)
{
	while (list) {
		struct waiter *next = list->next;
		wire_req_on_gone(list->req, NULL, NULL);
		waiters_call(d, list->req);
		free(list);
		list = next;
	}
}

void waiters_allocated(struct ctld *d, void *job_id) { answer(d, take(d, (uint32_t)(uintptr_t)job_id, false)); }
void waiters_ended(struct ctld *d, void *job_id) { answer(d, take(d, (uint32_t)(uintptr_t)job_id, true)); }

void waiters_destroy(struct waiters *w)
{
	struct entry *e, *tmp;
	if (!w)
		return;
	HASH_ITER(hh, w->table, e, tmp) {
		for (struct waiter *x = e->list, *next; x; x = next) {
			next = x->next;
			free(x);
		}
		HASH_DEL(w->table, e);
		free(e);
	}
	free(w);
}
