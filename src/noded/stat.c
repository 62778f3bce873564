/* stat.c - D_STAT (see stat.h) */
#include <stdlib.h>

#include "base/alloc.h"
#include "noded/handlers.h"
#include "noded/stat.h"
#include "noded/steps.h"

#define STAT_MS 5000

struct stat_wait {
	struct stat_wait *next;
	uint32_t job_id, step_id;
	struct wire_req *req;
	bool only_pids;            /* asked by another user, who may see the processes (as with ps), not the figures */
	uv_timer_t timer;
};
static struct stat_wait *waiting;

static void reply(struct wire_req *req, int code, const Pb__StepdEvent *e, bool only_pids)
{
	Pb__StatRsp rsp = PB__STAT_RSP__INIT;
	rsp.code = (uint32_t)abs(code);
	if (e) {
		rsp.usage = only_pids ? NULL : e->usage;
		rsp.pid = e->pid;
		rsp.n_pid = e->n_pid;
		rsp.task = e->tasks;
		rsp.n_task = e->n_tasks;
	}
	wire_reply(req, &rsp.base);
}

static void on_closed(uv_handle_t *h) { free(h->data); }

static void end(struct stat_wait **at, int code, const Pb__StepdEvent *e)
{
	struct stat_wait *w = *at;
	*at = w->next;
	reply(w->req, code, e, w->only_pids);
	uv_close((uv_handle_t *)&w->timer, on_closed);
}

static void on_timeout(uv_timer_t *timer)
{
	for (struct stat_wait **at = &waiting; *at; at = &(*at)->next)
		if (*at == timer->data) {
			end(at, -ESLURM_SOCKET_TIMEOUT, NULL);
			return;
		}
}

void stat_told(const struct node_step *st, const Pb__StepdEvent *e)
{
	for (struct stat_wait **at = &waiting; *at;)
		if ((*at)->job_id == st->job_id && (*at)->step_id == st->step_id)
			end(at, e ? 0 : -ESLURM_ALREADY_DONE, e);
		else
			at = &(*at)->next;
}

/* The step's owner, root and SlurmUser. */
static bool may_see_figures(const struct noded *n, const struct node_step *st, const struct wire_identity *id)
{
	return id->uid == st->uid || !id->uid || id->uid == n->slurm_uid;
}

void stat_start(struct noded *n, struct wire_req *req)
{
	const Pb__StatReq *m = (const Pb__StatReq *)wire_req_msg(req);
	struct node_step *st = steps_find(n, m->job_id, m->step_id);
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	bool mine = st && st->known && may_see_figures(n, st, wire_req_identity(req));
	if (!st || !st->known || (!mine && !(m->has_only_pids && m->only_pids))) {
		reply(req, st && st->known ? -ESLURM_INVALID_USER_ID : -ESLURM_INVALID_STEP_ID, NULL, true);
		return;
	}
	struct stat_wait *w = xcalloc(1, sizeof *w);
	w->job_id = m->job_id;
	w->step_id = m->step_id;
	w->req = req;
	w->only_pids = !mine;
	uv_timer_init(&n->loop, &w->timer);
	w->timer.data = w;
	uv_timer_start(&w->timer, on_timeout, STAT_MS, 0);
	w->next = waiting;
	waiting = w;
	order.kind = PB__STEPD_ORDER__KIND__STAT;
	steps_order(st, &order);
}
