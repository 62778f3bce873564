/* rpc.c - which call is answered by which handler, and who may make it
 *
 * A handler answers at once (reads), or gives the core an event and answers when its outcome is on disk. While the store fails, calls
 * that change something are refused here, before they reach the core. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/accounts.h"
#include "ctld/handlers.h"
#include "ctld/turn.h"

static const struct handler { rpc_fn fn; bool change; } handlers[] = {
	[RPC_PING] = { rpc_ping, false },
	[RPC_SUBMIT] = { rpc_submit, true },
	[RPC_WAIT] = { rpc_wait, false },
	[RPC_JOB_LIST] = { rpc_job_list, false },
	[RPC_STEP_LIST] = { rpc_step_list, false },
	[RPC_NODE_LIST] = { rpc_node_list, false },
	[RPC_PART_LIST] = { rpc_part_list, false },
	[RPC_CONFIG_SHOW] = { rpc_config_show, false },
	[RPC_SCRIPT] = { rpc_script, false },
	[RPC_KILL] = { rpc_kill, true },
	[RPC_JOB_OP] = { rpc_job_op, true },
	[RPC_JOB_UPDATE] = { rpc_job_update, true },
	[RPC_NODE_UPDATE] = { rpc_node_update, true },
	[RPC_PART_UPDATE] = { rpc_part_update, true },
	[RPC_RESV_LIST] = { rpc_resv_list, false },
	[RPC_RESV_UPDATE] = { rpc_resv_update, true },
	[RPC_STEP_LAYOUT] = { rpc_step_layout, false },
	[RPC_BCAST_CRED] = { rpc_bcast_cred, false },
	[RPC_STEP_CREATE] = { rpc_step_create, true },
	[RPC_STEP_DONE] = { rpc_step_done, false },
	[RPC_STEPS_DRAIN] = { rpc_steps_drain, false },
	[RPC_JOB_DONE] = { rpc_job_done, true },
	[RPC_ALLOC_INFO] = { rpc_alloc_info, false },
	[RPC_RECONFIGURE] = { rpc_reconfigure, true },
	[RPC_CRONTAB_GET] = { rpc_crontab_get, false },
	[RPC_CRONTAB_SET] = { rpc_crontab_set, true },
	[RPC_LOG_SET] = { rpc_log_set, false },
	[RPC_SHUTDOWN] = { rpc_shutdown, false },
	[RPC_DIAG] = { rpc_diag, false },
	[RPC_CONF_FETCH] = { rpc_conf_fetch, false },
	[RPC_LICENSE_LIST] = { rpc_license_list, false },
	[RPC_TOPOLOGY_LIST] = { rpc_topology_list, false },
	[RPC_ACCT_STATE] = { rpc_acct_state, false },
	[RPC_PRIO_LIST] = { rpc_prio_list, false },
	[RPC_WHY] = { rpc_why, false },
	[RPC_NODE_REGISTER] = { rpc_node_register, true },
	[RPC_NODE_EVENT] = { rpc_node_event, true },
};

bool ctld_is_admin(const struct ctld *d, uint32_t uid) { return uid == 0 || uid == d->slurm_uid; }

bool rpc_policy(const struct wire_identity *id, enum rpc_who who, void *arg)
{
	const struct ctld *d = arg;
	switch (who) {
	case RPC_WHO_OPEN:
		return true;
	case RPC_WHO_ANY:
		return id->known;
	case RPC_WHO_OPER:
		return id->known && (ctld_is_admin(d, id->uid) || accounts_is_operator(d, id->uid));
	case RPC_WHO_ADMIN:
	case RPC_WHO_NODE:
		return id->known && ctld_is_admin(d, id->uid);
	}
	return false;
}

/* Users beyond USERS_MAX are not told apart any more: a cluster's users are fewer, and the table must not grow with forged ones. */
#define USERS_MAX 4096
struct call_stats { struct call_stat kind[sizeof handlers / sizeof *handlers]; struct call_stat *user; size_t user_n, user_cap; };

static void stat_count(struct call_stat *s, uint64_t us)
{
	s->count++;
	s->total_us += us;
}

static void stat_add(struct ctld *d, unsigned n, uint32_t uid, uint64_t start_ns)
{
	uint64_t us = (uv_hrtime() - start_ns) / 1000;
	struct call_stats *s = d->call_stats = d->call_stats ? d->call_stats : xcalloc(1, sizeof *s);
	size_t i = 0;
	if (n < sizeof handlers / sizeof *handlers)
		stat_count(&s->kind[n], us);
	while (i < s->user_n && s->user[i].id != uid)
		i++;
	if (i == s->user_n && i < USERS_MAX) {
		s->user = xgrow(s->user, &s->user_cap, i + 1, sizeof *s->user);
		s->user[s->user_n++] = (struct call_stat){ .id = uid };
	}
	if (i < s->user_n)
		stat_count(&s->user[i], us);
	if (i && i < s->user_n) { /* those who ask often are found soon */
		struct call_stat t = s->user[i - 1];
		s->user[i - 1] = s->user[i];
		s->user[i] = t;
	}
}

bool rpc_stat(const struct ctld *d, bool by_user, size_t i, struct call_stat *ret)
{
	const struct call_stats *s = d->call_stats;
	if (!s || i >= (by_user ? s->user_n : sizeof handlers / sizeof *handlers))
		return false;
	*ret = by_user ? s->user[i] : s->kind[i];
	if (!by_user) {
		ret->id = (uint32_t)i;
		ret->name = rpc_row((uint16_t)i) ? rpc_row((uint16_t)i)->name : NULL;
	}
	return true;
}

void rpc_handle(struct wire_req *req, void *arg)
{
	struct ctld *d = arg;
	unsigned n = wire_req_rpc(req);
	const struct handler *h = n < sizeof handlers / sizeof *handlers ? &handlers[n] : NULL;
	uint32_t uid = wire_req_identity(req)->uid;
	uint64_t start_ns = uv_hrtime();
	d->calls++;
	log_flag(AUDIT_RPCS, "%s from uid %u at %s", rpc_row((uint16_t)n) ? rpc_row((uint16_t)n)->name : "?", uid, wire_req_peer(req));
	log_debug2("call %s from uid %u at %s", rpc_row((uint16_t)n) ? rpc_row((uint16_t)n)->name : "?", wire_req_identity(req)->uid, wire_req_peer(req));
	if (!h || !h->fn) {
		d->refused++;
		wire_reply_error(req, ESLURM_PROTOCOL, "this is slurmctld, which does not answer such a call");
	} else if (d->stopping) {
		wire_reply_error(req, ESLURM_DISABLED, "slurmctld is shutting down");
	} else if (h->change && !turn_open_for_changes(d)) {
		d->refused++;
		wire_reply_error(req, ESLURM_STORE_FULL, error_text(ESLURM_STORE_FULL));
	} else {
		h->fn(d, req);
	}
	log_flag(PROTOCOL, "%s took %llu us", rpc_row((uint16_t)n) ? rpc_row((uint16_t)n)->name : "?", (unsigned long long)((uv_hrtime() - start_ns) / 1000));
	stat_add(d, n, uid, start_ns);
}
