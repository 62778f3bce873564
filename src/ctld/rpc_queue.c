/* rpc_queue.c - what there is to see of the queue beside its jobs: licenses, the network, and priorities factor by factor */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ctld/handlers.h"
#include "ctld/replies.h"
#include "proto/queue.pb-c.h"

void rpc_license_list(struct ctld *d, struct wire_req *req)
{
	Pb__LicenseListRsp rsp = PB__LICENSE_LIST_RSP__INIT;
	struct core_license l;
	size_t n = 0;
	while (core_license(d->core, n, &l))
		n++;
	Pb__LicenseRecord *rec = xcalloc(n + 1, sizeof *rec);
	rsp.license = xcalloc(n + 1, sizeof *rsp.license);
	for (size_t i = 0; core_license(d->core, i, &l); i++) {
		pb__license_record__init(&rec[i]);
		rec[i].name = (char *)l.name;
		rec[i].total = l.total;
		rec[i].used = l.used;
		rec[i].has_reserved = true;
		rec[i].reserved = l.reserved;
		rsp.license[rsp.n_license++] = &rec[i];
	}
	rsp.now = ctld_now_ms() / 1000;
	wire_reply(req, &rsp.base);
	free(rsp.license);
	free(rec);
}

void rpc_topology_list(struct ctld *d, struct wire_req *req)
{
	Pb__TopologyListRsp rsp = PB__TOPOLOGY_LIST_RSP__INIT;
	Pb__TopologyRecord *const *topo;
	rsp.n_topology = conf_topologies(d->conf, &topo);
	rsp.topology = (Pb__TopologyRecord **)topo;
	wire_reply(req, &rsp.base);
}

void rpc_prio_list(struct ctld *d, struct wire_req *req)
{
	uint32_t uid = wire_req_identity(req)->uid;
	Pb__PrioListRsp *rsp = core_priorities(d->core, reply_is_private(d, req, "jobs") ? &uid : NULL);
	rsp->now = ctld_now_ms() / 1000;
	wire_reply(req, &rsp->base);
	pb__prio_list_rsp__free_unpacked(rsp, NULL);
}

/* PrivateData=usage: ordinary users see themselves, and accounts. */
static void others_out(Pb__AcctStateRsp *r, const char *user)
{
	size_t n = 0;
	for (size_t i = 0; r->accounts && i < r->accounts->n_assoc; i++) {
		Pb__AssocRecord *m = r->accounts->assoc[i];
		if (!m->user || !*m->user || !strcmp(m->user, user)) {
			r->accounts->assoc[n++] = m;
			continue;
		}
		pb__assoc_record__free_unpacked(m, NULL);
	}
	if (r->accounts)
		r->accounts->n_assoc = n;
	for (size_t i = 0; i < r->n_used; i++) {
		Pb__AcctUsed *m = r->used[i];
		while (m->n_user)
			pb__acct_used__free_unpacked(m->user[--m->n_user], NULL);
	}
}

void rpc_acct_state(struct ctld *d, struct wire_req *req)
{
	const Pb__AcctStateReq *q = (const Pb__AcctStateReq *)wire_req_msg(req);
	Pb__AcctStateRsp *rsp = core_acct_state(d->core, q->submitted);
	const struct passwd *pw = reply_is_private(d, req, "usage") ? getpwuid(wire_req_identity(req)->uid) : NULL;
	if (reply_is_private(d, req, "usage"))
		others_out(rsp, pw ? pw->pw_name : "");
	wire_reply(req, &rsp->base);
	pb__acct_state_rsp__free_unpacked(rsp, NULL);
}
