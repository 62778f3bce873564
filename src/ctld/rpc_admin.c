/* rpc_admin.c - calls about the daemon itself: ping, configuration, shutdown, counters */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/rows.h"
#include "ctld/acct.h"
#include "ctld/agent.h"
#include "ctld/commit.h"
#include "ctld/handlers.h"
#include "ctld/replies.h"
#include "ctld/turn.h"
#include "ctld/waiters.h"

void rpc_ping(struct ctld *d, struct wire_req *req)
{
	Pb__PingRsp rsp = PB__PING_RSP__INIT;
	rsp.host = d->hostname;
	rsp.now = ctld_now_ms() / 1000;
	rsp.version = (char *)BERTH_VERSION;
	rsp.has_primary = rsp.primary = true;
	rsp.cluster = (char *)conf_str(d->conf, CONF_ClusterName);
	wire_reply(req, &rsp.base);
}

void rpc_reconfigure(struct ctld *d, struct wire_req *req)
{
	struct error err = { 0 };
	int rc = ctld_reconfigure(d, &err);
	reply_result(d, req, rc, rc ? err.line : NULL);
}

void rpc_log_set(struct ctld *d, struct wire_req *req)
{
	const Pb__LogSetReq *m = (const Pb__LogSetReq *)wire_req_msg(req);
	const char *now = d->debug_flags ? d->debug_flags : conf_str(d->conf, CONF_DebugFlags);
	char *flags = NULL;
	if ((m->has_level && m->level > LOG_L_DEBUG5) || (m->n_flag && !(flags = conf_words_change(CONF_DebugFlags, now, m->flag, m->n_flag)))) {
		reply_result(d, req, ESLURM_PROTOCOL, "no such level, or a word that DebugFlags does not have");
		return;
	}
	if (m->has_level) {
		log_info("level of the log set to %s by uid %u", log_level_name((enum log_level)m->level), wire_req_identity(req)->uid);
		d->has_level = true;
		d->level = m->level;
		log_set_levels(d->foreground ? (enum log_level)m->level : LOG_L_ERROR, (enum log_level)m->level);
	}
	if (flags) {
		log_info("DebugFlags set to %s by uid %u", *flags ? flags : "nothing", wire_req_identity(req)->uid);
		free(d->debug_flags);
		d->debug_flags = flags;
		log_set_flags(flags);
	}
	reply_result(d, req, 0, NULL);
}

static void shutdown_now(struct ctld *d, void *arg) { ctld_stop(d); }

void rpc_shutdown(struct ctld *d, struct wire_req *req)
{
	const Pb__ShutdownReq *m = (const Pb__ShutdownReq *)wire_req_msg(req);
	log_info("shutdown asked for by uid %u%s", wire_req_identity(req)->uid, m->controller_only ? " (controller only)" : "");
	if (!m->controller_only)
		agent_tell_all(d, RPC_D_SHUTDOWN);
	reply_result(d, req, 0, NULL);
	turn_after(d, shutdown_now, NULL);
}

struct counters { Pb__Counter *at, **list; size_t n, cap, list_cap; };

static void count(struct counters *c, const char *name, int64_t value)
{
	c->at = xgrow(c->at, &c->cap, c->n + 1, sizeof *c->at);
	pb__counter__init(&c->at[c->n]);
	c->at[c->n].name = (char *)name;
	c->at[c->n++].value = value;
}

static int64_t mean(int64_t sum, int64_t n) { return n ? sum / n : 0; }

static void count_passes(struct counters *c, const struct ctld *d)
{
	struct core_passes quick, plan;
	int64_t pending, running, minutes = (int64_t)(ctld_now_ms() - d->boot_ms) / 60000;
	core_passes(d->core, &quick, &plan);
	core_job_counts(d->core, &pending, &running);
	const struct { const char *name; int64_t value; } row[] = {
		{ "now", (int64_t)(ctld_now_ms() / 1000) }, { "jobs_pending", pending }, { "jobs_running", running },
		{ "sched_last_us", (int64_t)d->pass.last_us }, { "sched_max_us", (int64_t)d->pass.max_us },
		{ "sched_mean_us", mean((int64_t)d->pass.sum_us, (int64_t)d->pass.n) }, { "sched_mean_depth", mean(quick.depth_sum, quick.n) },
		{ "sched_per_minute", mean(quick.n, minutes) }, { "sched_queue", quick.queue },
		{ "bf_cycles", plan.n }, { "bf_last_when", (int64_t)(d->plan_pass.last_ms / 1000) }, { "bf_last_us", (int64_t)d->plan_pass.last_us },
		{ "bf_max_us", (int64_t)d->plan_pass.max_us }, { "bf_mean_us", mean((int64_t)d->plan_pass.sum_us, (int64_t)d->plan_pass.n) },
		{ "bf_last_depth", plan.depth }, { "bf_last_depth_try", plan.depth }, { "bf_depth_mean", mean(plan.depth_sum, plan.n) },
		{ "bf_depth_mean_try", mean(plan.depth_sum, plan.n) }, { "bf_queue", plan.queue }, { "sched_sum_us", (int64_t)d->pass.sum_us }, { "sched_depth_sum", quick.depth_sum },
		{ "bf_sum_us", (int64_t)d->plan_pass.sum_us }, { "bf_depth_sum", plan.depth_sum }, { "bf_queue_sum", plan.queue_sum }, { "bf_queue_mean", mean(plan.queue_sum, plan.n) },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		count(c, row[i].name, row[i].value);
}

static size_t stats_fill(const struct ctld *d, bool by_user, Pb__CallStat ***ret)
{
	struct call_stat s;
	size_t n = 0, cap = 0;
	for (size_t i = 0; rpc_stat(d, by_user, i, &s); i++) {
		if (!s.count)
			continue;
		Pb__CallStat *m = xmalloc(sizeof *m);
		pb__call_stat__init(m);
		m->id = s.id;
		m->name = (char *)s.name;
		m->count = s.count;
		m->total_us = s.total_us;
		*ret = xgrow(*ret, &cap, n + 1, sizeof **ret);
		(*ret)[n++] = m;
	}
	return n;
}

static void stats_drop(Pb__CallStat **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void rpc_diag(struct ctld *d, struct wire_req *req)
{
	struct counters c = { 0 };
	const char *name;
	int64_t value;
	Pb__DiagRsp rsp = PB__DIAG_RSP__INIT;
	for (size_t i = 0; core_counter(d->core, i, &name, &value); i++)
		count(&c, name, value);
	count_passes(&c, d);
	count(&c, "boot_time", (int64_t)(d->boot_ms / 1000));
	count(&c, "gettimeofday_latency", d->gettimeofday_us);
	count(&c, "calls_in_flight", (int64_t)turn_calls(d) + 1); /* and this one */
	count(&c, "calls", (int64_t)d->calls);
	count(&c, "calls_refused", (int64_t)d->refused);
	count(&c, "submissions", (int64_t)d->submits);
	count(&c, "connections", (int64_t)wire_server_connections(d->server));
	count(&c, "waiters", (int64_t)waiters_count(d->waiters));
	count(&c, "commits", (int64_t)commit_count(d->commit));
	count(&c, "commit_batches_in_flight", (int64_t)commit_in_flight(d->commit));
	count(&c, "commit_bytes_in_flight", (int64_t)commit_bytes(d->commit));
	count(&c, "store_failing", commit_is_failing(d->commit));
	count(&c, "agent_calls_in_flight", (int64_t)agent_in_flight(d->agent));
	count(&c, "dbd_agent_queue", (int64_t)acct_queued(d->acct));
	c.list = xcalloc(c.n, sizeof *c.list);
	for (size_t i = 0; i < c.n; i++)
		c.list[i] = &c.at[i];
	rsp.n_call = stats_fill(d, false, &rsp.call);
	rsp.n_user = stats_fill(d, true, &rsp.user);
	rsp.counter = c.list;
	rsp.n_counter = c.n;
	rsp.now = ctld_now_ms() / 1000;
	wire_reply(req, &rsp.base);
	stats_drop(rsp.call, rsp.n_call);
	stats_drop(rsp.user, rsp.n_user);
	free(c.list);
	free(c.at);
}

void rpc_conf_fetch(struct ctld *d, struct wire_req *req)
{
	const Pb__ConfFetchReq *m = (const Pb__ConfFetchReq *)wire_req_msg(req);
	Pb__ConfFetchRsp rsp = PB__CONF_FETCH_RSP__INIT;
	const struct conf_text *text;
	if (!conf_has(d->conf, CONF_SlurmctldParameters, "enable_configless")) {
		wire_reply_error(req, ESLURM_DISABLED, "the controller hands out no configuration: SlurmctldParameters=enable_configless is not set");
		return;
	}
	size_t n = conf_files(d->conf, &text);
	Pb__ConfFile *file = xcalloc(n + 1, sizeof *file), **list = xcalloc(n + 1, sizeof *list);
	rsp.has_hash = true;
	rsp.hash = conf_hash(d->conf);
	for (size_t i = 0; i < n; i++) {
		pb__conf_file__init(&file[i]);
		file[i].name = (char *)text[i].name;
		file[i].data = (ProtobufCBinaryData){ text[i].len, (uint8_t *)text[i].data };
		list[i] = &file[i];
	}
	rsp.file = list;
	rsp.n_file = m->has_have_hash && m->have_hash == rsp.hash ? 0 : n;
	wire_reply(req, &rsp.base);
	free(list);
	free(file);
}
