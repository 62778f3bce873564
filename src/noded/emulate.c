/* emulate.c - many nodes in one process (see emulate.h)
 *
 * Whole-system measurements want ten thousand nodes; this gives slurmctld their side of the protocol and leaves out what a node does to its machine.
 * Invariants: a run exists from its launch until slurmctld has taken its end, so that a launch said twice runs once; what slurmctld must hear waits in one
 * queue, in order, and leaves it when it was answered. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/str.h"
#include "noded/cred.h"
#include "noded/emulate.h"
#include "noded/emulate_step.h"
#include "noded/handlers.h"
#include "noded/options.h"
#include "noded/place.h"
#include "wire/sign.h"

#define REGISTER_AT_ONCE 256
#define EVENTS_AT_ONCE 256
#define RETRY_MS 500
#define CALL_MS 30000
#define YEAR_SEC (365.0 * 86400)

struct emu;
struct emu_node {
	struct emu *emu;
	const Pb__NodeRecord *self;
	bool registered, flying;
	struct emu_run *runs;
	struct emu_step *steps;
	UT_hash_handle hh;
};
struct emu_run {
	uv_timer_t timer;
	struct emu_node *node;
	uint32_t job_id, restarts;
	bool ended, suspended;
	uint64_t left_ms;                /* while suspended */
	struct emu_run *next;
};
struct emu_event {
	struct emu_node *node;
	struct emu_run *run;             /* of BATCH_DONE: forgotten when it was taken */
	uint32_t kind, job_id, restarts, status;
	bool flying;
	struct emu_event *next;
};
struct emu {
	struct noded *n;
	struct emu_node *node, *by_name;
	size_t count, flying, flying_events;
	size_t next;                     /* nodes before it have registered, or are looked at again by the timer */
	struct emu_event *head, **tail;
	struct emu_steps *steps;
	uv_timer_t retry;
	bool told;
};

/* --- how long a script runs ------------------------------------------------------------------- */
static double word_seconds(const char *word, size_t len)
{
	char text[32], *end;
	if (!len || len >= sizeof text)
		return 0;
	memcpy(text, word, len);
	text[len] = 0;
	double v = strtod(text, &end);
	double unit = !*end || !strcmp(end, "s") ? 1 : !strcmp(end, "m") ? 60 : !strcmp(end, "h") ? 3600 : !strcmp(end, "d") ? 86400 : 0;
	return v > 0 && v < YEAR_SEC ? v * unit : 0;
}

double emulate_script_sleep(const char *script, size_t len)
{
	double sum = 0;
	bool after_sleep = false;
	for (size_t at = 0; at < len;) {
		if (script[at] == '#') {
			while (at < len && script[at] != '\n')
				at++;
		} else if (strchr(" \t\n;&|()", script[at])) {
			after_sleep = after_sleep && (script[at] == ' ' || script[at] == '\t');
			at++;
		} else {
			size_t from = at;
			while (at < len && !strchr(" \t\n;&|()", script[at]))
				at++;
			if (after_sleep)
				sum += word_seconds(script + from, at - from);
			const char *word = script + from;
			size_t n = at - from;
			after_sleep = (n == 5 || (n > 5 && word[n - 6] == '/')) && !memcmp(word + n - 5, "sleep", 5);
		}
	}
	return sum < YEAR_SEC ? sum : YEAR_SEC;
}

/* --- what slurmctld must hear ----------------------------------------------------------------- */
static void events_push_out(struct emu *e);

static void event_add(struct emu_node *node, struct emu_run *run, uint32_t kind, uint32_t job_id, uint32_t restarts, uint32_t status)
{
	struct emu *e = node->emu;
	struct emu_event *ev = xcalloc(1, sizeof *ev);
	*ev = (struct emu_event){ .node = node, .run = run, .kind = kind, .job_id = job_id, .restarts = restarts, .status = status };
	*e->tail = ev;
	e->tail = &ev->next;
	events_push_out(e);
}

static void run_closed(uv_handle_t *h) { free(h->data); }

static void run_forget(struct emu_run *run)
{
	for (struct emu_run **at = &run->node->runs; *at; at = &(*at)->next)
		if (*at == run) {
			*at = run->next;
			break;
		}
	uv_close((uv_handle_t *)&run->timer, run_closed);
}

static void event_drop(struct emu *e, struct emu_event *ev)
{
	for (struct emu_event **at = &e->head; *at; at = &(*at)->next)
		if (*at == ev) {
			*at = ev->next;
			if (e->tail == &ev->next)
				e->tail = at;
			break;
		}
	if (ev->run)
		run_forget(ev->run);
	free(ev);
}

static void register_some(struct emu *e);
static void lost(struct emu *e)
{
	for (size_t i = 0; i < e->count; i++)
		e->node[i].registered = false; /* the timer begins again */
}

static void on_event_taken(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	struct emu_event *ev = arg;
	struct emu *e = ev->node->emu;
	(void)rsp;
	e->flying_events--;
	ev->flying = false;
	if (code == -ECANCELED)
		return;
	if (!code)
		event_drop(e, ev);
	else
		log_debug("slurmctld did not take an event of %s: %s", ev->node->self->name, detail ? detail : error_text(code));
	if (!code)
		events_push_out(e);
}

static void events_push_out(struct emu *e)
{
	for (struct emu_event *ev = e->head; ev && e->flying_events < EVENTS_AT_ONCE; ev = ev->next) {
		Pb__NodeEvent m = PB__NODE_EVENT__INIT, *list = &m;
		Pb__NodeEventReq req = PB__NODE_EVENT_REQ__INIT;
		if (ev->flying || !ev->node->registered)
			continue;
		m.kind = ev->kind;
		m.has_job_id = m.has_restarts = m.has_status = m.has_clean = m.has_step_id = true;
		m.job_id = ev->job_id;
		m.restarts = ev->restarts;
		m.status = ev->status;
		m.step_id = STEP_ID_BATCH;
		m.clean = true;
		req.node = ev->node->self->name;
		req.event = &list;
		req.n_event = 1;
		ev->flying = true;
		e->flying_events++;
		wire_link_call(e->n->ctld, RPC_NODE_EVENT, &req.base, CALL_MS, on_event_taken, ev);
	}
}

/* --- registration ----------------------------------------------------------------------------- */
static void record_fill(const struct emu_node *node, Pb__NodeRecord *r)
{
	*r = *node->self;                /* as configured; nothing is measured */
	r->arch = (char *)"emulated";
	r->os = (char *)"emulated";
	r->version = (char *)BERTH_VERSION;
	r->has_boot_time = r->has_slurmd_start_time = true;
	r->boot_time = r->slurmd_start_time = node->emu->n->start_time;
}

static void on_registered(int code, const ProtobufCMessage *msg, const char *detail, void *arg)
{
	struct emu_node *node = arg;
	struct emu *e = node->emu;
	const Pb__NodeRegisterRsp *rsp = (const Pb__NodeRegisterRsp *)msg;
	node->flying = false;
	e->flying--;
	if (code == -ECANCELED)
		return;
	if (!code && rsp->code)
		code = -(int)rsp->code, detail = rsp->detail;
	if (code) {
		if (!e->told)
			log_error("Unable to register %s: %s", node->self->name, detail && *detail ? detail : error_text(code));
		e->told = true;          /* tried again by the timer */
		return;
	}
	e->told = false;
	cred_keys_set(e->n->creds, rsp->key, rsp->n_key);
	node->registered = true;
	register_some(e);
	events_push_out(e);
}

static void register_node(struct emu_node *node)
{
	struct emu *e = node->emu;
	Pb__NodeRegisterReq req = PB__NODE_REGISTER_REQ__INIT;
	Pb__NodeRecord record;
	size_t n = 0;
	record_fill(node, &record);
	req.node = &record;
	req.has_conf_hash = true;
	req.conf_hash = conf_hash(e->n->conf);
	for (struct emu_run *r = node->runs; r; r = r->next)
		n++;
	Pb__StepAlive *alive = xcalloc(n + 1, sizeof *alive), **list = xcalloc(n + 1, sizeof *list);
	for (struct emu_run *r = node->runs; r; r = r->next) {
		Pb__StepAlive *a = list[req.n_step] = &alive[req.n_step];
		req.n_step++;
		pb__step_alive__init(a);
		a->job_id = r->job_id;
		a->step_id = STEP_ID_BATCH;
		a->has_restarts = true;
		a->restarts = r->restarts;
	}
	req.step = list;
	node->flying = true;
	e->flying++;
	wire_link_call(e->n->ctld, RPC_NODE_REGISTER, &req.base, CALL_MS, on_registered, node);
	free(alive);
	free(list);
}

static void register_some(struct emu *e)
{
	for (; e->next < e->count && e->flying < REGISTER_AT_ONCE; e->next++)
		if (!e->node[e->next].registered && !e->node[e->next].flying)
			register_node(&e->node[e->next]);
}

static void on_retry(uv_timer_t *t)
{
	struct emu *e = t->data;
	e->next = 0;
	register_some(e);
	events_push_out(e);
}

static void on_break(void *arg) { lost(arg); }

/* --- runs ------------------------------------------------------------------------------------- */
static void run_end(struct emu_run *run, uint32_t status)
{
	if (run->ended)
		return;
	run->ended = true;
	uv_timer_stop(&run->timer);
	event_add(run->node, run, PB__NODE_EVENT__KIND__BATCH_DONE, run->job_id, run->restarts, status);
}

static void on_run_over(uv_timer_t *t) { run_end(t->data, 0); }

static struct emu_run *run_find(struct emu_node *node, uint32_t job_id)
{
	for (struct emu_run *r = node->runs; r; r = r->next)
		if (r->job_id == job_id && !r->ended)
			return r;
	return NULL;
}

static int run_start(struct emu_node *node, const Pb__BatchLaunch *b, struct error *err)
{
	const Pb__StepCred *cred = b->cred;
	int rc = cred_use(node->emu->n->creds, cred, node->self->name, (uint64_t)time(NULL), err);
	if (rc < 0)
		return rc;
	for (struct emu_run *r = node->runs; r; r = r->next)
		if (r->job_id == cred->job_id && r->restarts == cred->job->restarts)
			return error_set(err, EEXIST, "job %u has run on this node already", cred->job_id);
	struct emu_run *run = xcalloc(1, sizeof *run);
	run->node = node;
	run->job_id = cred->job_id;
	run->restarts = cred->job->restarts;
	run->next = node->runs;
	node->runs = run;
	uv_timer_init(&node->emu->n->loop, &run->timer);
	run->timer.data = run;
	uv_timer_start(&run->timer, on_run_over, (uint64_t)(emulate_script_sleep((const char *)b->script.data, b->script.len) * 1000), 0);
	return 0;
}

/* --- calls ------------------------------------------------------------------------------------ */
static void e_ping(struct emu_node *node, struct wire_req *req)
{
	Pb__NodeStatusRsp rsp = PB__NODE_STATUS_RSP__INIT;
	Pb__NodeRecord record;
	uint32_t keys[CRED_KEYS_MAX];
	size_t n = 0;
	record_fill(node, &record);
	rsp.node = &record;
	for (struct emu_run *r = node->runs; r; r = r->next)
		n++;
	Pb__StepAlive2 *alive = xcalloc(n + 1, sizeof *alive), **list = xcalloc(n + 1, sizeof *list);
	for (struct emu_run *r = node->runs; r; r = r->next) {
		Pb__StepAlive2 *a = list[rsp.n_step] = &alive[rsp.n_step];
		rsp.n_step++;
		pb__step_alive2__init(a);
		a->job_id = r->job_id;
		a->step_id = STEP_ID_BATCH;
	}
	rsp.step = list;
	rsp.n_key_id = cred_key_ids(node->emu->n->creds, keys);
	rsp.key_id = keys;
	wire_reply(req, &rsp.base);
	free(alive);
	free(list);
}

static void e_batch(struct emu_node *node, struct wire_req *req)
{
	const Pb__SignedBatch *m = (const Pb__SignedBatch *)wire_req_msg(req);
	Pb__LaunchRsp rsp = PB__LAUNCH_RSP__INIT;
	struct error err = { 0 };
	int rc = cred_check_signature(node->emu->n->creds, SIGN_BATCH, &m->batch, &m->signature, &err);
	if (!rc) {
		Pb__BatchLaunch *b = (Pb__BatchLaunch *)(void *)wire_unpack(&pb__batch_launch__descriptor, m->batch.data, m->batch.len);
		rc = b ? run_start(node, b, &err) : error_set(&err, ESLURM_PROTOCOL, "malformed batch launch");
		if (b)
			pb__batch_launch__free_unpacked(b, NULL);
	}
	rsp.code = (uint32_t)abs(rc);
	rsp.node = node->self->name;
	rsp.detail = rc < 0 ? err.line : NULL;
	wire_reply(req, &rsp.base);
}

static void e_launch(struct emu_node *node, struct wire_req *req)
{
	Pb__LaunchRsp rsp = PB__LAUNCH_RSP__INIT;
	struct error err = { 0 };
	int rc = emu_step_launch(node->emu->steps, &node->steps, node->self->name, (const Pb__LaunchSpec *)wire_req_msg(req), wire_req_identity(req)->uid, &err);
	rsp.code = (uint32_t)abs(rc);
	rsp.node = node->self->name;
	rsp.detail = rc < 0 ? err.line : NULL;
	wire_reply(req, &rsp.base);
}

static void e_relay(struct emu_node *node, struct wire_req *req) { relay_take(&node->emu->n->relay, node->self->name, req); }

static void e_signal(struct emu_node *node, struct wire_req *req)
{
	const Pb__SignalReq *m = (const Pb__SignalReq *)wire_req_msg(req);
	struct emu_run *run = run_find(node, m->job_id);
	bool ends = m->signal != SIGCONT && m->signal != SIGSTOP && m->signal != SIGTSTP && m->signal != SIGCHLD && m->signal != SIGWINCH;
	if (run && ends)
		run_end(run, m->signal & 0x7f);
	size_t steps = !ends || (m->has_batch_only && m->batch_only) ? 0 :
		emu_step_kill(node->steps, m->job_id, m->has_step_id ? &m->step_id : NULL, (int)(m->signal & 0x7f));
	handlers_reply(req, run || steps ? 0 : ESLURM_ALREADY_DONE, NULL);
}

static void e_terminate(struct emu_node *node, struct wire_req *req)
{
	const Pb__TerminateReq *m = (const Pb__TerminateReq *)wire_req_msg(req);
	struct emu_run *run = run_find(node, m->job_id);
	uint32_t job_id = m->job_id, restarts = m->restarts;
	size_t steps = emu_step_kill(node->steps, job_id, m->has_step_id ? &m->step_id : NULL, SIGTERM);
	if (m->has_step_id) {
		handlers_reply(req, steps ? 0 : ESLURM_ALREADY_DONE, NULL);
		return;
	}
	if (run)
		run_end(run, SIGTERM);
	else
		event_add(node, NULL, PB__NODE_EVENT__KIND__EPILOG_DONE, job_id, restarts, 0);
	handlers_reply(req, 0, NULL);
}

static void e_prolog(struct emu_node *node, struct wire_req *req)
{
	const Pb__PrologReq *m = (const Pb__PrologReq *)wire_req_msg(req);
	event_add(node, NULL, PB__NODE_EVENT__KIND__PROLOG_DONE, m->job_id, m->restarts, 0);
	handlers_reply(req, 0, NULL);
}

static void e_suspend(struct emu_node *node, struct wire_req *req)
{
	const Pb__SuspendReq *m = (const Pb__SuspendReq *)wire_req_msg(req);
	struct emu_run *run = run_find(node, m->job_id);
	if (run && m->suspend && !run->suspended) {
		run->left_ms = uv_timer_get_due_in(&run->timer);
		run->suspended = true;
		uv_timer_stop(&run->timer);
	} else if (run && !m->suspend && run->suspended) {
		run->suspended = false;
		uv_timer_start(&run->timer, on_run_over, run->left_ms, 0);
	}
	handlers_reply(req, run ? 0 : ESLURM_ALREADY_DONE, NULL);
}

static void e_reconfig(struct emu_node *node, struct wire_req *req)
{
	if (!node->flying)
		register_node(node);     /* what it is was read at the start */
	handlers_reply(req, 0, NULL);
}

static void e_nothing(struct emu_node *node, struct wire_req *req)
{
	(void)node;
	handlers_reply(req, 0, NULL);
}

static void e_shutdown(struct emu_node *node, struct wire_req *req)
{
	(void)node;
	handlers_reply(req, 0, NULL);
	kill(getpid(), SIGTERM);
}

static const struct { enum rpc rpc; void (*run)(struct emu_node *, struct wire_req *); } handlers[] = {
	{ RPC_D_PING, e_ping }, { RPC_D_BATCH, e_batch }, { RPC_D_SIGNAL, e_signal }, { RPC_D_TERMINATE, e_terminate },
	{ RPC_D_PROLOG, e_prolog }, { RPC_D_SUSPEND, e_suspend }, { RPC_D_NOTIFY, e_nothing }, { RPC_D_JOB_MEM, e_nothing }, { RPC_D_RECONFIG, e_reconfig }, { RPC_D_SHUTDOWN, e_shutdown },
	{ RPC_D_LAUNCH, e_launch }, { RPC_D_RELAY, e_relay },
};

static void on_call(struct wire_req *req, void *arg)
{
	struct emu *e = arg;
	const char *to = wire_req_to(req);
	struct emu_node *node = NULL;
	if (to)
		HASH_FIND_STR(e->by_name, to, node);
	for (size_t i = 0; node && i < sizeof handlers / sizeof *handlers; i++)
		if (handlers[i].rpc == wire_req_rpc(req)) {
			handlers[i].run(node, req);
			return;
		}
	wire_reply_error(req, node ? -ESLURM_NOT_SUPPORTED : -ESLURM_INVALID_NODE_NAME, node ? "emulated nodes do not do this" : "no such node is emulated here");
}

static bool policy(const struct wire_identity *id, enum rpc_who who, void *arg) { return handlers_policy(id, who, ((struct emu *)arg)->n); }

/* --- start ------------------------------------------------------------------------------------ */
static const char *addr_of(const Pb__NodeRecord *r) { return r->addr ? r->addr : r->name; }

static int nodes_take(struct emu *e, struct error *err)
{
	struct noded *n = e->n;
	Pb__NodeRecord *const *list;
	size_t total = conf_nodes(n->conf, &list), first = 0;
	while (n->opt.node_name && first < total && strcmp(list[first]->name, n->opt.node_name))
		first++;
	if (first >= total)
		return error_set(err, ESLURM_INVALID_NODE_NAME, "%s has no node %s", conf_path(n->conf), n->opt.node_name ? n->opt.node_name : "at all");
	if (n->opt.emulate > total - first)
		return error_set(err, EINVAL, "--emulate %u: %s has only %zu nodes from %s on", n->opt.emulate, conf_path(n->conf), total - first, list[first]->name);
	e->count = n->opt.emulate;
	e->node = xcalloc(e->count, sizeof *e->node);
	for (size_t i = 0; i < e->count; i++) {
		struct emu_node *node = &e->node[i];
		node->emu = e;
		node->self = list[first + i];
		if (strcmp(addr_of(node->self), addr_of(list[first])) || place_port(n, node->self) != place_port(n, list[first]))
			return error_set(err, EINVAL, "--emulate: node %s has another NodeAddr or Port than %s; nodes emulated together share both", node->self->name,
					 list[first]->name);
		HASH_ADD_KEYPTR(hh, e->by_name, node->self->name, strlen(node->self->name), node);
	}
	n->self = list[first];
	xstr_set(&n->name, n->self->name);
	return 0;
}

static void on_term(uv_signal_t *sig, int signum)
{
	struct emu *e = sig->data;
	log_info("emulation of %zu nodes stops at signal %d", e->count, signum);
	exit(0);
}

static int start(struct emu *e, struct error *err)
{
	static uv_signal_t term[2];
	struct noded *n = e->n;
	const char *host, *addr;
	uint16_t port;
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < 2; i++) {
		uv_signal_init(&n->loop, &term[i]);
		term[i].data = e;
		uv_signal_start(&term[i], on_term, i ? SIGINT : SIGTERM);
	}
	n->creds = cred_book_create();
	e->steps = emu_steps_create(&n->loop, n->creds);
	int rc = place_serve(n, on_call, policy, e, err);
	if (rc < 0)
		return rc;
	if (!conf_controller(n->conf, 0, &host, &addr, &port))
		return error_set(err, EINVAL, "%s names no SlurmctldHost", conf_path(n->conf));
	n->ctld = wire_link_create(&n->loop, n->auth, addr, port);
	wire_link_on_break(n->ctld, on_break, e);
	uv_timer_init(&n->loop, &e->retry);
	e->retry.data = e;
	uv_timer_start(&e->retry, on_retry, 1, RETRY_MS);
	return 0;
}

int emulate_main(struct noded *n)
{
	static struct emu e;
	struct error err = { 0 };
	e.n = n;
	e.tail = &e.head;
	int rc = conf_load(n->opt.conf_path, &n->conf, &err);
	rc = rc < 0 ? rc : nodes_take(&e, &err);
	if (!rc && !n->opt.foreground) {
		rc = daemon_background(&err);
		uv_loop_fork(&n->loop);
	}
	rc = rc < 0 ? rc : start(&e, &err);
	if (rc < 0) {
		log_fatal("%s", err.line);
		return 1;
	}
	log_info("slurmd version %s plays %zu nodes, %s to %s", BERTH_VERSION, e.count, e.node[0].self->name, e.node[e.count - 1].self->name);
	daemon_ready();
	return uv_run(&n->loop, UV_RUN_DEFAULT);
}
