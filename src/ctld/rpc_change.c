/* rpc_change.c - calls that are events for the core
 * The core checks what of whose the caller may change; here only the identity is made known to it. The answer is the core's, completed by what only the
 * shell has: signed credentials and keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/acct.h"
#include "ctld/agent.h"
#include "ctld/audit.h"
#include "ctld/handlers.h"
#include "wire/stepio.h"
#include "ctld/replies.h"
#include "ctld/scripts.h"
#include "ctld/turn.h"
#include "ctld/waiters.h"

static void finish_plain(struct ctld *d, struct call *c, const ProtobufCMessage *msg) { turn_reply(d, c->req, msg); }

static void finish_change(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	audit_request(wire_req_identity(c->req)->uid, wire_req_msg(c->req), msg);
	turn_reply(d, c->req, msg);
}

/* Give the event with the caller of the request; the core's answer goes to finish. */
static void give(struct ctld *d, struct wire_req *req, struct core_event *ev, call_finish_fn finish)
{
	reply_caller(d, req, NULL, &ev->by);
	ev->token = call_create(d, req, finish)->token;
	turn_step(d, ev);
}

/* --- submission ------------------------------------------------------------------------------- */
static void submit_finish(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	const Pb__SubmitReq *req = (const Pb__SubmitReq *)wire_req_msg(c->req);
	Pb__SubmitRsp *rsp = (Pb__SubmitRsp *)msg;
	Pb__SignedCred *cred = NULL;
	if (!rsp->code && rsp->has_job_id && req->has_script && !req->test_only)
		scripts_put(d, rsp->job_id, req);
	if (!rsp->code && rsp->step)
		cred = reply_step_cred(d, rsp->step, rsp->job_id, req->first_step, rsp->alloc ? rsp->alloc->job : NULL);
	if (!rsp->cluster)
		rsp->cluster = (char *)conf_str(d->conf, CONF_ClusterName);
	if (!rsp->code && rsp->has_job_id && !req->test_only)
		log_info("submit: JobId=%u uid=%u partition=%s name=%s", rsp->job_id, wire_req_identity(c->req)->uid,
			 req->desc->partition ? req->desc->partition : "(default)", req->desc->name ? req->desc->name : "");
	else if (rsp->code)
		log_info("submit: refused for uid=%u: %s", wire_req_identity(c->req)->uid, rsp->detail ? rsp->detail : error_text((int)rsp->code));
	turn_reply(d, c->req, msg);
	if (cred)
		rsp->step->cred = NULL;
	cred_free(cred);
}

static void submit_refuse(struct ctld *d, struct wire_req *req, uint32_t code, const char *fmt, uint32_t uid)
{
	Pb__SubmitRsp rsp = PB__SUBMIT_RSP__INIT;
	char detail[96];
	snprintf(detail, sizeof detail, fmt, uid);
	rsp.code = code;
	rsp.detail = detail;
	turn_reply(d, req, &rsp.base);
}

/* Of the user whose job it shall be, the caller or (as_uid) another. */
static uint32_t submit_uid(struct wire_req *req)
{
	const Pb__SubmitReq *m = (const Pb__SubmitReq *)wire_req_msg(req);
	return m->has_as_uid ? m->as_uid : wire_req_identity(req)->uid;
}

static void submit_with(struct ctld *d, const struct core_ended *ended, size_t n, void *arg)
{
	struct wire_req *req = arg;
	const Pb__SubmitReq *m = (const Pb__SubmitReq *)wire_req_msg(req);
	const struct ident *id = ident_now(d, submit_uid(req));
	struct core_event ev = { .type = EV_SUBMIT, .ended = ended, .ended_n = n };
	uint8_t hash[32];
	size_t len;
	const uint8_t *body = wire_req_body(req, &len);
	wire_hash(body, len, hash);
	ev.submit.desc = m->desc;
	ev.submit.idem_key = m->idem_key.data;
	ev.submit.idem_hash = hash;
	ev.submit.first_step = m->first_step;
	ev.submit.more = m->more;
	ev.submit.more_n = m->n_more;
	ev.submit.test_only = m->test_only;
	ev.submit.has_script = m->has_script;
	d->submits++;
	reply_caller(d, req, id, &ev.by);
	char *group = m->has_as_gid ? ident_group(m->as_gid) : NULL;
	if (m->has_as_uid) {
		ev.by.uid = id->uid;
		ev.by.gid = id->gid;
	}
	if (group) {
		ev.by.gid = m->as_gid;
		ev.by.group = group;
	}
	ev.token = call_create(d, req, submit_finish)->token;
	turn_step(d, &ev);
	free(group);
}

static void submit_go(struct ctld *d, const struct ident *id, void *arg)
{
	struct wire_req *req = arg;
	const Pb__SubmitReq *m = (const Pb__SubmitReq *)wire_req_msg(req);
	if (!id->known) {
		submit_refuse(d, req, ESLURM_INVALID_USER_ID, "user id %u is not known on the controller's host", id->uid);
		return;
	}
	if (m->idem_key.len != 16) {
		wire_reply_error(req, ESLURM_PROTOCOL, "idem_key must have 16 bytes");
		return;
	}
	const char **dependency = xcalloc(m->n_more + 1, sizeof *dependency);
	dependency[0] = m->desc->dependency;
	for (size_t i = 0; i < m->n_more; i++)
		dependency[i + 1] = m->more[i]->dependency;
	acct_ended(d, dependency, m->n_more + 1, submit_with, req);
	free(dependency);
}

void rpc_submit(struct ctld *d, struct wire_req *req)
{
	const Pb__SubmitReq *m = (const Pb__SubmitReq *)wire_req_msg(req);
	uint32_t caller = wire_req_identity(req)->uid;
	if (m->desc->cron_spec)
		submit_refuse(d, req, ESLURM_NOT_SUPPORTED, "user id %u: entries of a crontab come by scrontab", caller);
	else if ((m->has_as_uid || m->has_as_gid) && !ctld_is_admin(d, caller))
		submit_refuse(d, req, ESLURM_ACCESS_DENIED, "user id %u may not submit for others", caller);
	else
		ident_get(d, submit_uid(req), submit_go, req);
}

/* --- jobs, nodes, partitions ------------------------------------------------------------------ */
#define CHANGE(handler, event, member, message) \
	void handler(struct ctld *d, struct wire_req *req) \
	{ \
		struct core_event ev = { .type = event }; \
		ev.member = (const message *)wire_req_msg(req); \
		give(d, req, &ev, finish_change); \
	}
CHANGE(rpc_kill, EV_KILL, kill, Pb__KillReq)
CHANGE(rpc_job_op, EV_JOB_OP, job_op, Pb__JobOpReq)
CHANGE(rpc_node_update, EV_NODE_UPDATE, node_update, Pb__NodeUpdateReq)
CHANGE(rpc_part_update, EV_PART_UPDATE, part_update, Pb__PartUpdateReq)
#undef CHANGE

static void job_update_with(struct ctld *d, const struct core_ended *ended, size_t n, void *arg)
{
	struct wire_req *req = arg;
	struct core_event ev = { .type = EV_JOB_UPDATE, .ended = ended, .ended_n = n };
	ev.job_update = (const Pb__JobUpdateReq *)wire_req_msg(req);
	give(d, req, &ev, finish_change);
}

void rpc_job_update(struct ctld *d, struct wire_req *req)
{
	const Pb__JobUpdateReq *m = (const Pb__JobUpdateReq *)wire_req_msg(req);
	const char *dependency = NULL;
	for (size_t i = 0; i < m->n_set; i++)
		if (!strcasecmp(m->set[i]->key, "Dependency"))
			dependency = m->set[i]->value;
	acct_ended(d, &dependency, 1, job_update_with, req);
}

/* --- steps ------------------------------------------------------------------------------------ */
static void step_finish(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	const Pb__StepCreateReq *req = (const Pb__StepCreateReq *)wire_req_msg(c->req);
	Pb__StepCreateRsp *rsp = (Pb__StepCreateRsp *)msg;
	wire_req_on_gone(c->req, NULL, NULL);
	Pb__SignedCred *cred = reply_step_cred(d, rsp, req->desc->job_id, req->desc, rsp->job);
	turn_reply(d, c->req, msg);
	rsp->cred = NULL;
	cred_free(cred);
}

void rpc_step_create(struct ctld *d, struct wire_req *req)
{
	reply_step_ask(d, req, ((const Pb__StepCreateReq *)wire_req_msg(req))->desc, step_finish);
}

static void drain_finish(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	wire_req_on_gone(c->req, NULL, NULL);
	turn_reply(d, c->req, msg);
}

void rpc_steps_drain(struct ctld *d, struct wire_req *req)
{
	reply_drain_ask(d, req, ((const Pb__StepsDrainReq *)wire_req_msg(req))->job_id, drain_finish);
}

void rpc_step_done(struct ctld *d, struct wire_req *req)
{
	const Pb__StepDoneReq *m = (const Pb__StepDoneReq *)wire_req_msg(req);
	struct core_event ev = { .type = EV_STEP_DONE };
	ev.step_done.job_id = m->job_id;
	ev.step_done.step_id = m->step_id;
	ev.step_done.status = m->exit_status;
	give(d, req, &ev, finish_plain);
}

void rpc_job_done(struct ctld *d, struct wire_req *req)
{
	const Pb__JobDoneReq *m = (const Pb__JobDoneReq *)wire_req_msg(req);
	struct core_event ev = { .type = EV_JOB_DONE };
	ev.job_done.job_id = m->job_id;
	ev.job_done.status = m->exit_status;
	give(d, req, &ev, finish_plain);
}

/* The nodes of a job (or of one of its steps), as a layout without tasks. */
static Pb__StepLayout *bcast_layout(struct ctld *d, const Pb__BcastCredReq *m, const Pb__AllocInfo *a)
{
	if (m->has_step_id)
		return core_step_layout(d->core, m->job_id, m->step_id);
	Pb__StepLayout *l = xmalloc(sizeof *l);
	pb__step_layout__init(l);
	l->nodes = xstrdup(a->job->alloc->nodes);
	l->node = xcalloc(a->n_addr + 1, sizeof *l->node);
	for (size_t i = 0; i < a->n_addr; i++) {
		Pb__StepNode *n = l->node[l->n_node++] = xmalloc(sizeof *n);
		pb__step_node__init(n);
		n->name = xstrdup(a->addr[i]->name);
		n->addr = xstrdup(a->addr[i]->addr);
		n->port = a->addr[i]->port;
	}
	return l;
}

void rpc_bcast_cred(struct ctld *d, struct wire_req *req)
{
	const Pb__BcastCredReq *m = (const Pb__BcastCredReq *)wire_req_msg(req);
	const struct core_job *j = core_job_find(d->core, m->job_id);
	const struct wire_identity *id = wire_req_identity(req);
	Pb__BcastCredRsp rsp = PB__BCAST_CRED_RSP__INIT;
	Pb__AllocInfo *a = NULL;
	if (!j)
		rsp.code = ESLURM_INVALID_JOB_ID;
	else if (core_job_uid(j) != id->uid)
		rsp.code = ESLURM_ACCESS_DENIED;       /* the file is written as the job's user, from what he can read */
	else if (!core_job_is_running(j) || !(a = reply_alloc(d, m->job_id)))
		rsp.code = core_job_is_finished(j) ? ESLURM_ALREADY_DONE : ESLURM_JOB_PENDING;
	else if (!(rsp.layout = bcast_layout(d, m, a)))
		rsp.code = ESLURM_INVALID_JOB_ID;
	else
		rsp.cred = cred_step(d, a->job, STEP_ID_BCAST, rsp.layout, NULL);
	wire_reply(req, &rsp.base);
	cred_free(rsp.cred);
	reply_alloc_free(a);
	if (rsp.layout)
		pb__step_layout__free_unpacked(rsp.layout, NULL);
}

void rpc_wait(struct ctld *d, struct wire_req *req) { waiters_call(d, req); }

void rpc_alloc_info(struct ctld *d, struct wire_req *req)
{
	const Pb__AllocInfoReq *m = (const Pb__AllocInfoReq *)wire_req_msg(req);
	const struct core_job *j = core_job_find(d->core, m->job_id);
	const struct wire_identity *id = wire_req_identity(req);
	Pb__AllocInfoRsp rsp = PB__ALLOC_INFO_RSP__INIT;
	if (!j)
		rsp.code = ESLURM_INVALID_JOB_ID;
	else if (core_job_uid(j) != id->uid && !ctld_is_admin(d, id->uid))
		rsp.code = ESLURM_ACCESS_DENIED;
	else if (core_job_is_finished(j))
		rsp.code = ESLURM_ALREADY_DONE;
	else if (!(rsp.alloc = reply_alloc(d, m->job_id)))
		rsp.code = ESLURM_JOB_PENDING;
	wire_reply(req, &rsp.base);
	reply_alloc_free(rsp.alloc);
}

/* --- nodes ------------------------------------------------------------------------------------ */
static void register_finish(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	const Pb__NodeRegisterReq *req = (const Pb__NodeRegisterReq *)wire_req_msg(c->req);
	Pb__NodeRegisterRsp rsp = *(const Pb__NodeRegisterRsp *)msg;
	Pb__CredKey *const *keys;
	rsp.n_key = cred_keys(d->cred, &keys);
	rsp.key = (Pb__CredKey **)keys;
	rsp.has_ping_sec = true;
	rsp.ping_sec = agent_ping_sec(d);
	if (!rsp.node_name)
		rsp.node_name = req->node->name;
	if (rsp.code)
		log_error("node %s was not registered: %s", req->node->name, rsp.detail ? rsp.detail : error_text((int)rsp.code));
	turn_reply(d, c->req, &rsp.base);
}

void rpc_node_register(struct ctld *d, struct wire_req *req)
{
	struct core_event ev = { .type = EV_NODE_REGISTER };
	ev.node_register = (const Pb__NodeRegisterReq *)wire_req_msg(req);
	agent_heard(d, ev.node_register->node->name);
	if (ev.node_register->has_conf_hash && ev.node_register->conf_hash != conf_hash(d->conf) && !(d->debug_flags ? strstr(d->debug_flags, "NO_CONF_HASH") != NULL : conf_has(d->conf, CONF_DebugFlags, "NO_CONF_HASH")))
		log_error("node %s has another slurm.conf than slurmctld; DebugFlags=NO_CONF_HASH silences this", ev.node_register->node->name);
	give(d, req, &ev, register_finish);
}

static void events_taken(struct ctld *d, void *arg)
{
	Pb__Result r = PB__RESULT__INIT;
	wire_reply(arg, &r.base);
}

/* The node repeats what was not answered, so the answer waits for the disk; the core takes a repeated event as no news. */
void rpc_node_event(struct ctld *d, struct wire_req *req)
{
	const Pb__NodeEventReq *m = (const Pb__NodeEventReq *)wire_req_msg(req);
	for (size_t i = 0; i < m->n_event; i++) {
		struct core_event ev = { .type = EV_NODE_EVENT };
		ev.node_event.node = m->node;
		ev.node_event.event = m->event[i];
		turn_step(d, &ev);
	}
	turn_after(d, events_taken, req);
}
