/* registration.c - registration with slurmctld (see registration.h) */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "noded/cred.h"
#include "noded/events.h"
#include "noded/handlers.h"
#include "noded/figures.h"
#include "noded/hardware.h"
#include "noded/jobs.h"
#include "noded/registration.h"
#include "noded/steps.h"

#define FIRST_MS 100
#define LAST_MS 2000
#define CALL_MS 10000
#define AGAIN_MS 8000   /* more than CROSS_SEC of the core */

static struct {
	uv_timer_t timer;
	uint32_t wait_ms;
	bool flying, told, again;
} reg;

static void on_timer(uv_timer_t *timer);

/* Later, with some jitter so that a thousand nodes do not come back in the same instant. */
static void schedule(struct noded *n)
{
	unsigned char noise;
	(void)!getrandom(&noise, 1, 0);
	reg.wait_ms = reg.wait_ms ? reg.wait_ms * 2 : FIRST_MS;
	if (reg.wait_ms > LAST_MS)
		reg.wait_ms = LAST_MS;
	if (!n->stopping)
		uv_timer_start(&reg.timer, on_timer, reg.wait_ms / 2 + reg.wait_ms * noise / 512, 0);
}

void registration_fill(const struct noded *n, Pb__NodeRecord *ret)
{
	const struct hardware *hw = &n->hw;
	const Pb__NodeRecord *self = n->self;
	bool as_configured = conf_has(n->conf, CONF_SlurmdParameters, "config_overrides");
	ret->name = n->name;
	ret->has_cpus = ret->has_boards = ret->has_sockets = ret->has_cores = ret->has_threads = ret->has_real_memory = ret->has_tmp_disk = true;
	ret->cpus = as_configured ? self->cpus : hw->cpus;
	ret->boards = as_configured && self->has_boards ? self->boards : hw->boards;
	ret->sockets = as_configured ? self->sockets : hw->sockets;
	ret->cores = as_configured ? self->cores : hw->cores;
	ret->threads = as_configured ? self->threads : hw->threads;
	ret->real_memory = as_configured ? self->real_memory : hw->memory_mb;
	ret->tmp_disk = as_configured && self->has_tmp_disk ? self->tmp_disk : hw->tmp_disk_mb;
	ret->arch = hw->arch;
	ret->os = hw->os;
	ret->version = BERTH_VERSION;
	ret->has_boot_time = ret->has_slurmd_start_time = ret->has_cpu_load = ret->has_free_mem = true;
	ret->boot_time = hw->boot_time;
	ret->slurmd_start_time = n->start_time;
	ret->gres = self->gres;
	ret->gres_list = n->gres.entry;
	ret->n_gres_list = n->gres.n;
	figures_fill(ret);
	hardware_load(&ret->cpu_load, &ret->free_mem);
}

static void next_controller(struct noded *n)
{
	const char *host, *addr;
	uint16_t port;
	n->ctld_index++;
	if (!conf_controller(n->conf, n->ctld_index, &host, &addr, &port))
		n->ctld_index = 0;
	if (conf_controller(n->conf, n->ctld_index, &host, &addr, &port))
		wire_link_set_addr(n->ctld, addr, port);
}

static void on_answer(int code, const ProtobufCMessage *msg, const char *detail, void *arg)
{
	struct noded *n = arg;
	const Pb__NodeRegisterRsp *rsp = (const Pb__NodeRegisterRsp *)msg;
	reg.flying = false;
	if (code == -ECANCELED || n->stopping)
		return;
	if (!code && rsp->code)
		code = -(int)rsp->code, detail = rsp->detail;
	if (code < 0) {
		if (!reg.told)
			log_error("Unable to register: %s", detail && *detail ? detail : error_text(code));
		reg.told = true;
		next_controller(n);
		schedule(n);
		return;
	}
	n->ctld_time = (uint64_t)time(NULL);
	cred_keys_set(n->creds, rsp->key, rsp->n_key);
	handlers_keys_known(n);
	if (!n->registered)
		log_info("registered with slurmctld as node %s", n->name);
	/* A job launched while we started may be one that died with the slurmd before us: said again when that can be told. */
	if (!reg.again) {
		reg.again = true;
		uv_timer_start(&reg.timer, on_timer, AGAIN_MS, 0);
	}
	n->registered = true;
	n->opt.rebooted = false;
	reg.wait_ms = 0;
	reg.told = false;
	events_send(n);
}

static void alive_add(uint32_t job_id, uint32_t step_id, uint32_t restarts, void *arg)
{
	Pb__NodeRegisterReq *req = arg;
	Pb__StepAlive *a = xcalloc(1, sizeof *a);
	pb__step_alive__init(a);
	a->job_id = job_id;
	a->step_id = step_id;
	a->has_restarts = true;
	a->restarts = restarts;
	req->step = xrealloc(req->step, (req->n_step + 1) * sizeof *req->step);
	req->step[req->n_step++] = a;
}

/* Steps that have ended count as alive until slurmctld has heard of their end, so that it does not take them for lost. */
static void alive_fill(const struct noded *n, Pb__NodeRegisterReq *req)
{
	const Pb__NodeEvent *e;
	for (struct node_step *st = n->steps; st; st = st->next)
		alive_add(st->job_id, st->step_id, st->restarts, req);
	jobs_each_waiting(n, alive_add, req);
	for (size_t i = 0; (e = events_at(n, i)); i++)
		if (e->kind == PB__NODE_EVENT__KIND__BATCH_DONE || e->kind == PB__NODE_EVENT__KIND__STEP_DONE || e->kind == PB__NODE_EVENT__KIND__LAUNCH_FAILED)
			alive_add(e->job_id, e->step_id, e->restarts, req);
}

static void register_now(struct noded *n)
{
	Pb__NodeRegisterReq req = PB__NODE_REGISTER_REQ__INIT;
	Pb__NodeRecord node = PB__NODE_RECORD__INIT;
	if (reg.flying || n->stopping)
		return;
	registration_fill(n, &node);
	alive_fill(n, &req);
	req.node = &node;
	req.has_rebooted = n->opt.rebooted;
	req.rebooted = n->opt.rebooted;
	req.has_conf_hash = true;
	req.conf_hash = conf_hash(n->conf);
	req.gres_problem = n->gres_problem;
	reg.flying = true;
	wire_link_call(n->ctld, RPC_NODE_REGISTER, &req.base, CALL_MS, on_answer, n);
	for (size_t i = 0; i < req.n_step; i++)
		free(req.step[i]);
	free(req.step);
}

static void on_timer(uv_timer_t *timer)
{
	register_now(timer->data);
}

static void on_break(void *arg)
{
	registration_lost(arg);
}

void registration_lost(struct noded *n)
{
	if (!n->registered || n->stopping)
		return;
	log_info("connection to slurmctld lost; registering again");
	n->registered = false;
	reg.wait_ms = 0;
	schedule(n);
}

void registration_again(struct noded *n)
{
	register_now(n);
}

void registration_start(struct noded *n)
{
	const char *host, *addr;
	uint16_t port;
	uv_timer_init(&n->loop, &reg.timer);
	reg.timer.data = n;
	if (!conf_controller(n->conf, 0, &host, &addr, &port))
		return;
	n->ctld = wire_link_create(&n->loop, n->auth, addr, port);
	wire_link_on_break(n->ctld, on_break, n);
	register_now(n);
}
