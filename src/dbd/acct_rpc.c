/* acct_rpc.c - the calls about accounts: who may read and change them, and who waits for changes
 * A DB_ACCT_GET that names the version its caller has is answered when there is another one: that is how slurmctld learns of a change at once. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "dbd/acct_rpc.h"

struct acct_waiter { struct acct_waiter *next; struct wire_req *req; };

static void answer(struct acct_calls *a, struct wire_req *r)
{
	const Pb__AcctGetReq *q = (const Pb__AcctGetReq *)wire_req_msg(r);
	Pb__AcctGetRsp rsp = PB__ACCT_GET_RSP__INIT;
	struct error err = { 0 };
	int rc = acct_snapshot(a->db, q->cluster, &rsp.snapshot, &err);
	if (rc) {
		wire_reply_error(r, rc, err.line);
		return;
	}
	wire_reply(r, &rsp.base);
	pb__acct_snapshot__free_unpacked(rsp.snapshot, NULL);
}

static void wake(struct acct_calls *a)
{
	while (a->waiters) {
		struct acct_waiter *w = a->waiters;
		a->waiters = w->next;
		wire_req_on_gone(w->req, NULL, NULL);
		answer(a, w->req);
		free(w);
	}
}

static void gone(struct wire_req *r, void *arg)
{
	struct acct_calls *a = arg;
	for (struct acct_waiter **p = &a->waiters; *p; p = &(*p)->next)
		if ((*p)->req == r) {
			struct acct_waiter *w = *p;
			*p = w->next;
			free(w);
			wire_reply_error(r, -ECONNRESET, NULL); /* to nobody: frees the call */
			return;
		}
}

void acct_get(struct acct_calls *a, struct wire_req *r, bool daemon)
{
	const Pb__AcctGetReq *q = (const Pb__AcctGetReq *)wire_req_msg(r);
	struct error err = { 0 };
	bool fresh = false;
	char host[256];
	snprintf(host, sizeof host, "%s", wire_req_peer(r));
	if (strrchr(host, ':'))
		*strrchr(host, ':') = 0;
	if (q->from && daemon) {
		Pb__ClusterRecord from = *q->from;
		from.control_host = host;
		if (acct_cluster_seen(a->db, &from, &fresh, &err))
			log_error("cluster %s cannot be noted: %s", from.name, err.line);
	}
	if (fresh) {
		log_info("cluster %s is at %s port %u", q->from->name, host, q->from->control_port);
		wake(a);
	}
	if (!daemon || !q->has_known || q->known != acct_version(a->db)) {
		answer(a, r);
		return;
	}
	struct acct_waiter *w = xcalloc(1, sizeof *w);
	*w = (struct acct_waiter){ a->waiters, r };
	a->waiters = w;
	wire_req_on_gone(r, gone, a);
}

/* Operators change all but who is one. */
static bool may_change(uint32_t level, const Pb__AcctSetReq *q)
{
	for (size_t i = 0; i < q->n_change; i++)
		if (level < 2 && ((q->change[i]->user && q->change[i]->user->admin) || q->change[i]->cluster))
			return false;
	return level > 0;
}

void acct_set(struct acct_calls *a, struct wire_req *r, bool daemon)
{
	const Pb__AcctSetReq *q = (const Pb__AcctSetReq *)wire_req_msg(r);
	const struct passwd *pw = getpwuid(wire_req_identity(r)->uid);
	Pb__AcctSetRsp rsp = PB__ACCT_SET_RSP__INIT;
	struct error err = { 0 };
	uint32_t level = daemon ? 2 : pw ? acct_admin_level(a->db, pw->pw_name) : 0;
	if (!may_change(level, q) && !(pw && acct_coordinator_may(a->db, pw->pw_name, q))) {
		wire_reply_error(r, -ESLURM_ACCESS_DENIED, "Access/permission denied");
		return;
	}
	int rc = acct_change(a->db, q, pw ? pw->pw_name : "?", &rsp.version, &err);
	if (rc) {
		rsp.code = (uint32_t)-rc;
		rsp.detail = err.line;
	} else
		log_info("%zu changes of accounts by %s", q->n_change, pw ? pw->pw_name : "?");
	rsp.has_version = true;
	wire_reply(r, &rsp.base);
	if (!rc)
		wake(a);
}
