/* replies.c - see replies.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ctld/accounts.h"
#include "ctld/replies.h"
#include "model/hostlist.h"

void reply_caller(struct ctld *d, const struct wire_req *req, const struct ident *id, struct core_caller *ret)
{
	const struct wire_identity *who = wire_req_identity(req);
	if (!id)
		id = ident_now(d, who->uid);
	*ret = (struct core_caller){ .uid = who->uid, .gid = who->gid, .user = id->user, .group = id->group, .groups = id->groups };
	ret->admin = ctld_is_admin(d, who->uid) || accounts_is_admin(d, who->uid);
	ret->oper = ret->admin || accounts_is_operator(d, who->uid);
}

Pb__JobRecord *reply_record(struct ctld *d, const struct core_job *j)
{
	size_t len;
	const uint8_t *blob = core_job_blob(d->core, j, &len);
	return pb__job_record__unpack(NULL, len, blob);
}

static void add_addrs(struct ctld *d, Pb__AllocInfo *a, const char *nodes)
{
	struct hostlist hl = HOSTLIST_INIT;
	if (hostlist_add(&hl, nodes, NULL))
		return;
	a->addr = xcalloc(hl.count, sizeof *a->addr);
	for (size_t i = 0; i < hl.count; i++) {
		int at = core_node_find(d->core, hl.name[i]);
		if (at < 0)
			continue;
		uint16_t port;
		Pb__NodeAddr *n = xmalloc(sizeof *n);
		pb__node_addr__init(n);
		n->name = xstrdup(hl.name[i]);
		n->addr = xstrdup(core_node_addr(d->core, (uint32_t)at, &port));
		n->port = port;
		a->addr[a->n_addr++] = n;
	}
	hostlist_fini(&hl);
}

size_t reply_components(struct ctld *d, uint32_t job_id, Pb__JobRecord ***ret)
{
	uint32_t *id = NULL;
	size_t n = 0, made = 0;
	char text[16];
	*ret = NULL;
	snprintf(text, sizeof text, "%u", job_id);
	if (core_job_resolve(d->core, text, &id, &n) < 0 || n < 2 || core_job_leader(core_job_find(d->core, job_id)) != job_id)
		n = 0; /* no heterogeneous job's leader */
	*ret = xcalloc(n + 1, sizeof **ret);
	for (size_t i = 0; i < n; i++) {
		Pb__JobRecord *r = reply_record(d, core_job_find(d->core, id[i]));
		if (r)
			(*ret)[made++] = r;
	}
	free(id);
	return made;
}

Pb__AllocInfo *reply_alloc(struct ctld *d, uint32_t job_id)
{
	const struct core_job *j = core_job_find(d->core, job_id);
	Pb__JobRecord *r = j ? reply_record(d, j) : NULL;
	if (!r || !r->alloc) {
		if (r)
			pb__job_record__free_unpacked(r, NULL);
		return NULL;
	}
	Pb__AllocInfo *a = xmalloc(sizeof *a);
	pb__alloc_info__init(a);
	a->job = r;
	add_addrs(d, a, r->alloc->nodes);
	Pb__JobRecord **more;
	size_t n = reply_components(d, job_id, &more);
	a->het = xcalloc(n + 1, sizeof *a->het);
	for (size_t i = 0; i < n; i++) {
		Pb__AllocInfo *k = i && more[i]->alloc ? xmalloc(sizeof *k) : NULL;
		if (!k) { /* the first stands above already */
			pb__job_record__free_unpacked(more[i], NULL);
			continue;
		}
		pb__alloc_info__init(k);
		k->job = more[i];
		add_addrs(d, k, k->job->alloc->nodes);
		a->het[a->n_het++] = k;
	}
	free(more);
	return a;
}

void reply_alloc_free(Pb__AllocInfo *a)
{
	if (a)
		pb__alloc_info__free_unpacked(a, NULL);
}

static void step_unwanted(struct wire_req *req, void *arg)
{
	struct call *c = arg;
	struct ctld *d = c->arg;
	struct core_event ev = { .type = EV_STEP_GIVE_UP, .token = c->token };
	(void)req;
	if (!d->stopping)
		turn_step(d, &ev);
}

static void ask_until_gone(struct ctld *d, struct wire_req *req, struct core_event *ev, call_finish_fn finish)
{
	struct call *c = call_create(d, req, finish);
	c->arg = d;
	ev->token = c->token;
	reply_caller(d, req, NULL, &ev->by);
	wire_req_on_gone(req, step_unwanted, c);
	turn_step(d, ev);
}

void reply_step_ask(struct ctld *d, struct wire_req *req, const Pb__StepDesc *desc, call_finish_fn finish)
{
	struct core_event ev = { .type = EV_STEP_CREATE, .step_create = desc };
	ask_until_gone(d, req, &ev, finish);
}

void reply_drain_ask(struct ctld *d, struct wire_req *req, uint32_t job_id, call_finish_fn finish)
{
	struct core_event ev = { .type = EV_STEPS_DRAIN, .drain_job = job_id };
	ask_until_gone(d, req, &ev, finish);
}

Pb__SignedCred *reply_step_cred(struct ctld *d, Pb__StepCreateRsp *step, uint32_t job_id, const Pb__StepDesc *desc, const Pb__JobRecord *job)
{
	const struct core_job *j = core_job_find(d->core, job_id);
	Pb__JobRecord *own = NULL;
	if (step->code || !step->layout || !j)
		return NULL;
	if (!job)
		job = own = reply_record(d, j);
	if (job)
		step->cred = cred_step(d, job, step->step_id, step->layout, desc);
	if (own)
		pb__job_record__free_unpacked(own, NULL);
	return step->cred;
}

void reply_result(struct ctld *d, struct wire_req *req, int code, const char *detail)
{
	Pb__Result r = PB__RESULT__INIT;
	r.code = (uint32_t)abs(code);
	r.detail = (char *)detail;
	turn_reply(d, req, &r.base);
}

bool reply_is_private(const struct ctld *d, const struct wire_req *req, const char *what)
{
	return conf_has(d->conf, CONF_PrivateData, what) && !ctld_is_admin(d, wire_req_identity(req)->uid) && !accounts_is_operator(d, wire_req_identity(req)->uid);
}
