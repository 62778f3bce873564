/* handlers.c - one function a call (see handlers.h)
 *
 * Who may call is decided before (rpc.def and handlers_policy). What may run is decided here, in launch.c: never by who asks, only by slurmctld's
 * signature, and for steps by the user's own token on top. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "conf/rows.h"
#include "noded/cred.h"
#include "noded/handlers.h"
#include "noded/jobs.h"
#include "noded/launch.h"
#include "noded/ping.h"
#include "noded/registration.h"
#include "noded/script.h"
#include "noded/script_env.h"
#include "noded/stat.h"
#include "noded/steps.h"

#define HELD_MAX 256

void handlers_reply(struct wire_req *req, int code, const char *detail)
{
	Pb__Result rsp = PB__RESULT__INIT;
	rsp.code = (uint32_t)abs(code);
	rsp.detail = (char *)detail;
	wire_reply(req, &rsp.base);
}

static void h_ping(struct noded *n, struct wire_req *req)
{
	n->ctld_time = (uint64_t)time(NULL);
	ping_start(n, req);
}

/* Launches that came before the answer to our registration, which brings slurmctld's key: it may have left slurmctld after them. */
static struct { struct wire_req *req[HELD_MAX]; size_t n; } held;

static void launch_run(struct noded *n, struct wire_req *req);
static void prolog_run(struct noded *n, struct wire_req *req);

void handlers_keys_known(struct noded *n)
{
	size_t count = held.n;
	held.n = 0;
	for (size_t i = 0; i < count; i++)
		if (wire_req_gone(held.req[i]))
			wire_reply_error(held.req[i], ESLURM_COMM, NULL);      /* slurmctld tries again; nobody hears this */
		else
			(wire_req_rpc(held.req[i]) == RPC_D_PROLOG ? prolog_run : launch_run)(n, held.req[i]);
}

static void h_launch(struct noded *n, struct wire_req *req)
{
	if (!cred_has_keys(n->creds) && held.n < HELD_MAX)
		held.req[held.n++] = req;
	else
		(wire_req_rpc(req) == RPC_D_PROLOG ? prolog_run : launch_run)(n, req);
}

static void launch_run(struct noded *n, struct wire_req *req)
{
	Pb__LaunchRsp rsp = PB__LAUNCH_RSP__INIT;
	struct error err = { 0 };
	int rc = wire_req_rpc(req) == RPC_D_BATCH ? launch_batch(n, req, &err) : launch_step(n, req, &err);
	rsp.code = (uint32_t)abs(rc);
	rsp.node = n->name;
	rsp.has_node_fault = rsp.node_fault = rc < 0 && -rc < 1000 && rc != -EEXIST;   /* an errno: ours begin at 1000 (tables/errors.def) */
	if (rsp.node_fault && wire_req_rpc(req) == RPC_D_LAUNCH)
		jobs_node_fault(n, err.line);
	if (rc < 0) {
		rsp.detail = err.line;
		log_error("launch refused: %s", err.line);
	}
	wire_reply(req, &rsp.base);
}

/* Is this step meant by a signal? */
static bool signal_fits(const Pb__SignalReq *m, const struct node_step *st)
{
	if (st->job_id != m->job_id || (m->has_step_id && st->step_id != m->step_id) || steps_is_later(st, m->has_restarts, m->restarts))
		return false;
	if (m->has_batch_only && m->batch_only)
		return st->batch;
	return !(m->has_steps_only && m->steps_only && st->batch);
}

static void h_signal(struct noded *n, struct wire_req *req)
{
	const Pb__SignalReq *m = (const Pb__SignalReq *)wire_req_msg(req);
	size_t count = 0;
	if (m->signal == 0 || m->signal > (uint32_t)SIGRTMAX) {
		handlers_reply(req, ESLURM_PROTOCOL, "no such signal");
		return;
	}
	for (struct node_step *st = n->steps; st; st = st->next) {
		Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
		if (!signal_fits(m, st))
			continue;
		order.kind = PB__STEPD_ORDER__KIND__SIGNAL;
		order.has_signal = true;
		order.signal = m->signal;
		order.text = m->why;
		order.end = m->end;
		order.has_batch_only = order.has_full = true;
		order.batch_only = m->has_batch_only && m->batch_only;
		order.full = m->has_full && m->full;
		steps_order(st, &order);
		count++;
	}
	handlers_reply(req, count ? 0 : ESLURM_ALREADY_DONE, NULL);
}

static void h_terminate(struct noded *n, struct wire_req *req)
{
	const Pb__TerminateReq *m = (const Pb__TerminateReq *)wire_req_msg(req);
	if (m->has_step_id && !steps_find(n, m->job_id, m->step_id)) {
		handlers_reply(req, ESLURM_ALREADY_DONE, NULL);
		return;
	}
	jobs_terminate(n, m);
	handlers_reply(req, 0, NULL);            /* last: the message lives only as long as the call */
}

static void prolog_run(struct noded *n, struct wire_req *req)
{
	struct error err = { 0 };
	int rc = launch_prolog(n, (const Pb__PrologReq *)wire_req_msg(req), &err);
	if (err.code) {
		log_error("prolog refused: %s", err.line);
		jobs_prolog_refused(n, (const Pb__PrologReq *)wire_req_msg(req), &err);
	}
	handlers_reply(req, rc, err.code ? err.line : NULL);
}

static void order_job(struct noded *n, struct wire_req *req, uint32_t job_id, const uint32_t *step_id, const Pb__StepdOrder *order)
{
	size_t count = 0;
	for (struct node_step *st = n->steps; st; st = st->next)
		if (st->job_id == job_id && (!step_id || st->step_id == *step_id)) {
			steps_order(st, order);
			count++;
		}
	handlers_reply(req, count ? 0 : ESLURM_ALREADY_DONE, NULL);
}

static void h_suspend(struct noded *n, struct wire_req *req)
{
	const Pb__SuspendReq *m = (const Pb__SuspendReq *)wire_req_msg(req);
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	order.kind = m->suspend ? PB__STEPD_ORDER__KIND__SUSPEND : PB__STEPD_ORDER__KIND__RESUME;
	order.has_kill_wait_sec = m->has_grace_sec;
	order.kill_wait_sec = m->grace_sec;
	steps_stopped(n, m->job_id, m->suspend);
	order_job(n, req, m->job_id, NULL, &order);
}

static void h_job_mem(struct noded *n, struct wire_req *req)
{
	const Pb__JobMemReq *m = (const Pb__JobMemReq *)wire_req_msg(req);
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	order.kind = PB__STEPD_ORDER__KIND__MEMORY;
	order.has_mem = true;
	order.mem = m->mem;
	for (struct node_step *st = n->steps; st; st = st->next)
		if (st->job_id == m->job_id && !steps_is_later(st, true, m->restarts))
			steps_order(st, &order);
	handlers_reply(req, 0, NULL);
}

static void h_notify(struct noded *n, struct wire_req *req)
{
	const Pb__NotifyReq *m = (const Pb__NotifyReq *)wire_req_msg(req);
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	uint32_t batch = STEP_ID_BATCH;
	order.kind = PB__STEPD_ORDER__KIND__TEXT;
	order.text = m->text;
	const uint32_t *step = m->has_step_id ? &m->step_id : steps_find(n, m->job_id, batch) ? &batch : NULL;
	order_job(n, req, m->job_id, step, &order);
}

/* sattach: the step's owner, root or SlurmUser; slurmstepd then connects to him. */
static void h_attach(struct noded *n, struct wire_req *req)
{
	const Pb__AttachReq *m = (const Pb__AttachReq *)wire_req_msg(req);
	const struct wire_identity *id = wire_req_identity(req);
	struct node_step *st = steps_find(n, m->job_id, m->step_id);
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	if (!st || !st->known) {
		handlers_reply(req, ESLURM_ALREADY_DONE, NULL);
		return;
	}
	if (id->uid != st->uid && id->uid && id->uid != n->slurm_uid) {
		handlers_reply(req, ESLURM_ACCESS_DENIED, NULL);
		return;
	}
	order.kind = PB__STEPD_ORDER__KIND__ATTACH;
	order.attach_host = m->host;
	order.has_attach_port = order.has_attach_key = true;
	order.attach_port = m->port;
	order.attach_key = m->key;
	log_info("sattach to step %u.%u by uid %u", m->job_id, m->step_id, id->uid);
	steps_order(st, &order);
	handlers_reply(req, 0, NULL);
}

static void h_reboot(struct noded *n, struct wire_req *req)
{
	const char *program = conf_str(n->conf, CONF_RebootProgram);
	struct envlist env = ENVLIST_INIT;
	if (!program || !*program) {
		handlers_reply(req, ESLURM_NO_REBOOT_PROGRAM, NULL);
		return;
	}
	log_info("rebooting the node by %s", program);
	script_env_job(n, NULL, 0, "reboot", &env);
	script_run_one(n, program, env.var, 0, NULL, NULL);
	envlist_fini(&env);
	handlers_reply(req, 0, NULL);
}

static void h_log_set(struct noded *n, struct wire_req *req)
{
	const Pb__LogSetReq *m = (const Pb__LogSetReq *)wire_req_msg(req);
	char *flags = NULL;
	if ((m->has_level && m->level > LOG_L_DEBUG5) || (m->n_flag && !(flags = conf_words_change(CONF_DebugFlags, noded_debug_flags(n), m->flag, m->n_flag)))) {
		handlers_reply(req, ESLURM_PROTOCOL, "no such level, or a word that DebugFlags does not have");
		return;
	}
	if (flags) {
		log_info("DebugFlags set to %s by uid %u", *flags ? flags : "nothing", wire_req_identity(req)->uid);
		free(n->debug_flags);
		n->debug_flags = flags;
		log_set_flags(flags);
	}
	if (m->has_level) {
		log_info("level of the log set to %s by uid %u", log_level_name((enum log_level)m->level), wire_req_identity(req)->uid);
		log_set_levels(n->opt.foreground ? (enum log_level)m->level : LOG_L_ERROR, (enum log_level)m->level);
	}
	handlers_reply(req, 0, NULL);
}

/* For scontrol listjobs, liststeps, listpids, getent and show slurmd. */
static void h_info(struct noded *n, struct wire_req *req)
{
	Pb__NodeInfoRsp rsp = PB__NODE_INFO_RSP__INIT;
	size_t count = 0;
	for (struct node_step *st = n->steps; st; st = st->next)
		count += st->known;
	Pb__NodeStep *step = xcalloc(count + 1, sizeof *step);
	rsp.step = xcalloc(count + 1, sizeof *rsp.step);
	for (struct node_step *st = n->steps; st; st = st->next) {
		Pb__NodeStep *to = &step[rsp.n_step];
		if (!st->known)
			continue;
		pb__node_step__init(to);
		to->job_id = st->job_id, to->step_id = st->step_id, to->uid = st->uid;
		rsp.step[rsp.n_step++] = to;
	}
	rsp.node = n->name;
	rsp.version = (char *)BERTH_VERSION;
	rsp.has_cpus = rsp.has_boards = rsp.has_sockets = rsp.has_cores = rsp.has_threads = rsp.has_memory_mb = rsp.has_tmp_disk_mb = rsp.has_boot_time = true;
	rsp.cpus = n->hw.cpus, rsp.boards = n->hw.boards, rsp.sockets = n->hw.sockets, rsp.cores = n->hw.cores, rsp.threads = n->hw.threads;
	rsp.memory_mb = n->hw.memory_mb, rsp.tmp_disk_mb = n->hw.tmp_disk_mb, rsp.boot_time = n->hw.boot_time;
	rsp.has_ctld_time = n->ctld_time != 0;
	rsp.ctld_time = n->ctld_time;
	rsp.has_pid = rsp.has_log_level = true;
	rsp.pid = (uint32_t)getpid();
	rsp.log_level = log_level_now();
	rsp.log_file = noded_log_path(n);
	wire_reply(req, &rsp.base);
	free(rsp.log_file);
	free(rsp.step);
	free(step);
}

static void h_reconfig(struct noded *n, struct wire_req *req)
{
	struct error err = { 0 };
	int rc = noded_load_conf(n, &err);
	if (rc < 0)
		log_error("%s; the old configuration stays in force", err.line);
	else
		log_info("configuration read again");
	handlers_reply(req, rc, rc < 0 ? err.line : NULL);
	if (!rc)
		registration_again(n);
}

static void h_shutdown(struct noded *n, struct wire_req *req)
{
	(void)n;
	log_info("slurmctld asks this slurmd to stop");
	handlers_reply(req, 0, NULL);
	kill(getpid(), SIGTERM);
}

static void h_relay(struct noded *n, struct wire_req *req) { relay_take(&n->relay, n->name, req); }

static const struct { enum rpc rpc; void (*run)(struct noded *, struct wire_req *); } handlers[] = {
	{ RPC_D_PING, h_ping }, { RPC_D_BATCH, h_launch }, { RPC_D_LAUNCH, h_launch }, { RPC_D_SIGNAL, h_signal },
	{ RPC_D_TERMINATE, h_terminate }, { RPC_D_PROLOG, h_launch }, { RPC_D_SUSPEND, h_suspend }, { RPC_D_NOTIFY, h_notify }, { RPC_D_JOB_MEM, h_job_mem }, { RPC_D_REBOOT, h_reboot },
	{ RPC_D_ATTACH, h_attach }, { RPC_D_STAT, stat_start }, { RPC_D_RECONFIG, h_reconfig }, { RPC_D_LOG_SET, h_log_set }, { RPC_D_INFO, h_info }, { RPC_D_SHUTDOWN, h_shutdown }, { RPC_D_RELAY, h_relay },
};

void handlers_run(struct wire_req *req, void *arg)
{
	const struct noded *n = arg;
	const char *to = wire_req_to(req);
	const struct rpc_row *row = rpc_row((uint16_t)wire_req_rpc(req));
	log_flag(AUDIT_RPCS, "%s from uid %u at %s", row ? row->name : "?", wire_req_identity(req)->uid, wire_req_peer(req));
	if (to && strcmp(to, n->name)) {
		char text[600];
		snprintf(text, sizeof text, "this is the slurmd of node %s, not of %s", n->name, to);
		wire_reply_error(req, -ESLURM_INVALID_NODE_NAME, text);
		return;
	}
	for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
		if (handlers[i].rpc == wire_req_rpc(req)) {
			handlers[i].run(arg, req);
			return;
		}
	wire_reply_error(req, -ESLURM_PROTOCOL, "slurmd does not answer this call");
}

bool handlers_policy(const struct wire_identity *id, enum rpc_who who, void *arg)
{
	struct noded *n = arg;
	(void)who;
	return id->known && (id->uid == 0 || id->uid == n->slurm_uid || id->uid == geteuid());
}
