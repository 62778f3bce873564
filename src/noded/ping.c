/* ping.c - D_PING (see ping.h) */
#include <stdlib.h>

#include "base/alloc.h"
#include "noded/cred.h"
#include "noded/ping.h"
#include "noded/registration.h"
#include "noded/steps.h"

#define PING_MS 300

struct ping {
	struct ping *next;
	struct noded *node;
	struct wire_req *req;
	uv_timer_t timer;
};
static struct ping *waiting;

static void reply(struct noded *n, struct wire_req *req)
{
	Pb__NodeStatusRsp rsp = PB__NODE_STATUS_RSP__INIT;
	Pb__NodeRecord node = PB__NODE_RECORD__INIT;
	size_t count = 0;
	registration_fill(n, &node);
	rsp.node = &node;
	for (struct node_step *st = n->steps; st; st = st->next)
		count++;
	Pb__StepAlive2 *alive = xcalloc(count + 1, sizeof *alive), **list = xcalloc(count + 1, sizeof *list);
	for (struct node_step *st = n->steps; st; st = st->next) {
		Pb__StepAlive2 *a = list[rsp.n_step] = &alive[rsp.n_step];
		rsp.n_step++;
		pb__step_alive2__init(a);
		a->job_id = st->job_id;
		a->step_id = st->step_id;
		a->pid = st->pids;
		a->n_pid = st->n_pids;
		a->task = st->tasks;
		a->n_task = st->n_pids;
		a->has_stepd_pid = st->pid != 0;
		a->stepd_pid = (uint32_t)st->pid;
	}
	rsp.step = list;
	uint32_t keys[CRED_KEYS_MAX];
	rsp.n_key_id = cred_key_ids(n->creds, keys);
	rsp.key_id = keys;
	wire_reply(req, &rsp.base);
	free(alive);
	free(list);
}

static void on_closed(uv_handle_t *h) { free(h->data); }

static void ping_end(struct ping *p)
{
	for (struct ping **at = &waiting; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	reply(p->node, p->req);
	uv_close((uv_handle_t *)&p->timer, on_closed);
}

static void on_timeout(uv_timer_t *timer) { ping_end(timer->data); }

void ping_step_told(struct noded *n)
{
	for (struct node_step *st = n->steps; st && waiting; st = st->next)
		if (st->asked)
			return;
	while (waiting)
		ping_end(waiting);
}

void ping_start(struct noded *n, struct wire_req *req)
{
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	order.kind = PB__STEPD_ORDER__KIND__STATUS;
	if (!n->steps) {
		reply(n, req);
		return;
	}
	struct ping *p = xcalloc(1, sizeof *p);
	p->node = n;
	p->req = req;
	uv_timer_init(&n->loop, &p->timer);
	p->timer.data = p;
	uv_timer_start(&p->timer, on_timeout, PING_MS, 0);
	p->next = waiting;
	waiting = p;
	for (struct node_step *st = n->steps; st; st = st->next)
		if (!st->asked) {
			st->asked = true;
			steps_order(st, &order);
		}
}
