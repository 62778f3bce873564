/* events.c - events on their way to slurmctld (see events.h)
 * One request is under way at a time; what gathers meanwhile goes with the next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "noded/events.h"
#include "noded/registration.h"
#include "noded/steps.h"

#define BATCH_MAX 256
#define RETRY_MS 500
#define SEND_MS 10000

struct event_queue {
	Pb__NodeEvent **event;
	size_t n, cap, flying;
	uv_timer_t retry;
};

static void on_retry(uv_timer_t *timer) { events_send(timer->data); }

struct event_queue *events_create(struct noded *n)
{
	struct event_queue *q = xcalloc(1, sizeof *q);
	uv_timer_init(&n->loop, &q->retry);
	q->retry.data = n;
	return q;
}

const Pb__NodeEvent *events_at(const struct noded *n, size_t i) { return i < n->events->n ? n->events->event[i] : NULL; }

void events_push(struct noded *n, const Pb__NodeEvent *e)
{
	struct event_queue *q = n->events;
	size_t len = pb__node_event__get_packed_size(e);
	uint8_t *copy = xmalloc(len);
	pb__node_event__pack(e, copy);
	q->event = xgrow(q->event, &q->cap, q->n + 1, sizeof *q->event);
	q->event[q->n] = pb__node_event__unpack(NULL, len, copy);
	if (!q->event[q->n])
		abort();
	q->n++;
	free(copy);
	events_send(n);
}

static void drop_sent(struct noded *n)
{
	struct event_queue *q = n->events;
	for (size_t i = 0; i < q->flying; i++) {
		const Pb__NodeEvent *e = q->event[i];
		if (e->kind == PB__NODE_EVENT__KIND__BATCH_DONE || e->kind == PB__NODE_EVENT__KIND__STEP_DONE || e->kind == PB__NODE_EVENT__KIND__LAUNCH_FAILED)
			steps_forget_done(n, e);
		pb__node_event__free_unpacked(q->event[i], NULL);
	}
	q->n -= q->flying;
	memmove(q->event, q->event + q->flying, q->n * sizeof *q->event);
}

static void on_sent(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	struct noded *n = arg;
	struct event_queue *q = n->events;
	if (code == -ECANCELED)
		return;
	if (code < 0) {
		q->flying = 0;
		log_debug("slurmctld did not take events: %s", detail ? detail : error_text(code));
		if (code == -ESLURM_COMM)
			registration_lost(n);
		uv_timer_start(&q->retry, on_retry, RETRY_MS, 0);
		return;
	}
	(void)rsp;
	drop_sent(n);
	q->flying = 0;
	events_send(n);
}

void events_send(struct noded *n)
{
	struct event_queue *q = n->events;
	Pb__NodeEventReq req = PB__NODE_EVENT_REQ__INIT;
	if (!q->n || q->flying || !n->registered)
		return;
	q->flying = q->n < BATCH_MAX ? q->n : BATCH_MAX;
	req.node = n->name;
	req.event = q->event;
	req.n_event = q->flying;
	wire_link_call(n->ctld, RPC_NODE_EVENT, &req.base, SEND_MS, on_sent, n);
}
