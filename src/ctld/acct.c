/* acct.c - see acct.h
 *
 * Each entry: a number that only grows (its key in the store), and its bytes while they are few; beyond MEMORY_MAX the store has them alone. Invariants: only
 * entries that are on disk are sent; entries leave in order; an entry is removed after slurmdbd said that it is on its disk. A crash in between sends it
 * again: entries are state, not deltas, so twice does no harm. The newest entry that was answered stays in the store until the next is: numbers then grow
 * across a restart also when the clock was set back, and slurmdbd never takes a later state for an older one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/acct.h"
#include "ctld/replies.h"
#include "ctld/turn.h"
#include "proto/accounting.pb-c.h"

#define MEMORY_MAX (8u << 20)
#define SEND_MAX 500               /* entries a call */
#define SEND_WAIT_MS 10            /* gathers what comes together */
#define RETRY_MS 2000
#define QUEUE_MIN 10000
/* Fields of DbdEvent and JobRecord. */
enum { EVENT_JOB = 2, EVENT_STEP = 4, EVENT_REQUEUED = 7, JOB_ID = 1 };

struct item {
	uint64_t seq;
	void *data;
	size_t len;
	uint32_t job_id;             /* of a record of a job; 0: of a step, or of an attempt that is over */
	bool step;
};
struct acct {
	struct ctld *d;
	struct wire_link *link;      /* NULL: no slurmdbd configured */
	struct item *item;           /* ring-less queue: [first, count) */
	size_t first, count, cap, memory;
	uint64_t last_seq, durable_seq, dropped, kept_seq;
	bool sending, said_down;
	uv_timer_t timer;
};

static void kick(struct acct *a, uint64_t wait_ms);

static size_t queue_max(const struct ctld *d)
{
	uint64_t set = conf_num(d->conf, CONF_MaxDBDMsgs), jobs = conf_num(d->conf, CONF_MaxJobCount);
	if (set && set != UINT64_MAX)
		return set;
	size_t by_size = 2 * (jobs == UINT64_MAX ? 0 : jobs) + 4 * core_node_count(d->core);
	return by_size < QUEUE_MIN ? QUEUE_MIN : by_size;
}

static void pop(struct acct *a)
{
	struct item *i = &a->item[a->first++];
	if (a->kept_seq)
		turn_remove_lazily(a->d, STORE_DBD_QUEUE, a->kept_seq);
	a->kept_seq = i->seq;
	if (i->data)
		a->memory -= i->len;
	free(i->data);
	if (a->first > 4096 && a->first * 2 > a->count) {
		memmove(a->item, a->item + a->first, (a->count - a->first) * sizeof *a->item);
		a->count -= a->first;
		a->first = 0;
	}
}

/* What it is about, from its bytes. */
static void item_know(struct item *i, const uint8_t *data, size_t len)
{
	struct wire_skim event, job;
	struct wire_field f, of_job;
	bool is_over = false;
	wire_skim_start(&event, data, len);
	while (wire_skim_next(&event, &f)) {
		i->step = i->step || f.number == EVENT_STEP;
		is_over = is_over || (f.number == EVENT_REQUEUED && f.value);
		if (f.number != EVENT_JOB || f.type != 2)
			continue;
		wire_skim_start(&job, f.data, f.len);
		while (!i->job_id && wire_skim_next(&job, &of_job))
			i->job_id = of_job.number == JOB_ID ? (uint32_t)of_job.value : 0;
	}
	if (is_over)
		i->job_id = 0;
}

/* Takes out those that are marked, from memory and from the store. How many. */
static size_t drop_marked(struct acct *a, const bool *mark)
{
	size_t to = a->first, n = 0;
	for (size_t i = a->first; i < a->count; i++) {
		if (!mark[i - a->first]) {
			a->item[to++] = a->item[i];
			continue;
		}
		turn_remove_lazily(a->d, STORE_DBD_QUEUE, a->item[i].seq);
		a->memory -= a->item[i].data ? a->item[i].len : 0;
		free(a->item[i].data);
		n++;
	}
	a->count = to;
	return n;
}

struct of_job { uint32_t job_id; size_t at; };

static int of_job_cmp(const void *a, const void *b)
{
	const struct of_job *x = a, *y = b;
	return x->job_id != y->job_id ? (x->job_id < y->job_id ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

/* Records are state: of a job's, the last one tells all that those before it do. */
static void mark_replaced(const struct acct *a, bool *mark, size_t last)
{
	struct of_job *list = xcalloc(a->count - a->first + 1, sizeof *list);
	size_t n = 0;
	for (size_t i = a->first; i < a->count; i++)
		if (a->item[i].job_id)
			list[n++] = (struct of_job){ a->item[i].job_id, i };
	qsort(list, n, sizeof *list, of_job_cmp);
	for (size_t i = 0; i + 1 < n; i++)
		mark[list[i].at - a->first] = list[i].job_id == list[i + 1].job_id && list[i].at < last;
	free(list);
}

/* MaxDBDMsgs is reached: records of steps go first, then those of jobs that later ones replace, at last the oldest. Only what is on disk is taken out, and
 * not the newest, whose number must last (see above). */
static void purge(struct acct *a, size_t max)
{
	size_t last = a->count - 1;
	while (last > a->first && a->item[last - 1].seq > a->durable_seq)
		last--;
	bool *mark = xcalloc(a->count - a->first + 1, sizeof *mark);
	for (size_t i = a->first; i < last; i++)
		mark[i - a->first] = a->item[i].step;
	size_t steps = drop_marked(a, mark), replaced = 0;
	if (!steps) {
		memset(mark, 0, (a->count - a->first) * sizeof *mark);
		mark_replaced(a, mark, last);
		replaced = drop_marked(a, mark);
	}
	free(mark);
	if (steps || replaced) {
		log_error("slurmdbd has not answered for long: MaxDBDMsgs (%zu) reached, %zu accounting records of %s are dropped", max, steps + replaced,
			  steps ? "steps" : "jobs that later ones replace");
		return;
	}
	if (!a->dropped++)
		log_error("slurmdbd has not answered for long: MaxDBDMsgs (%zu) reached, the oldest accounting records of jobs are lost", max);
	pop(a);
}

void acct_bound(struct acct *a, size_t max)
{
	if (a->count - a->first > max)
		purge(a, max);
}

/* SlurmctldParameters=max_dbd_msg_action=exit: nothing is dropped; slurmctld ends when as many as may wait do and slurmdbd is away. What waits is on disk, and
 * is sent when both are there again. */
static bool bound_by_end(struct ctld *d, size_t max)
{
	struct acct *a = d->acct;
	char set[16];
	const char *action = conf_opt(d->conf, CONF_SlurmctldParameters, "max_dbd_msg_action", set, sizeof set);
	if (!action || strcasecmp(action, "exit"))
		return false;
	if (a->said_down && !d->stopping && a->count - a->first >= max) {
		log_error("slurmdbd has not answered for long: MaxDBDMsgs (%zu) reached; slurmctld ends, as max_dbd_msg_action=exit says; no record is lost", max);
		ctld_stop(d);
	}
	return true;
}

static void append(struct acct *a, uint64_t seq, const void *data, size_t len)
{
	a->item = xgrow(a->item, &a->cap, a->count + 1, sizeof *a->item);
	bool keep = a->memory + len < MEMORY_MAX;
	struct item *i = &a->item[a->count++];
	*i = (struct item){ .seq = seq, .data = keep ? xmemdup(data, len) : NULL, .len = len };
	item_know(i, data, len);
	a->memory += keep ? len : 0;
	a->last_seq = seq;
}

static void is_durable(struct ctld *d, void *arg)
{
	struct acct *a = d->acct;
	a->durable_seq = (uint64_t)(uintptr_t)arg;
	if (!a->sending)
		kick(a, SEND_WAIT_MS);
}

static void queue_event(struct ctld *d, Pb__DbdEvent *e)
{
	struct acct *a = d->acct;
	uint64_t now_us = ctld_now_ms() * 1000;
	e->seq = a->last_seq >= now_us ? a->last_seq + 1 : now_us;
	size_t len = pb__dbd_event__get_packed_size(e);
	uint8_t *data = xmalloc(len);
	pb__dbd_event__pack(e, data);
	append(a, e->seq, data, len);
	turn_put(d, STORE_DBD_QUEUE, e->seq, data, len);
	turn_after(d, is_durable, (void *)(uintptr_t)e->seq);
	if (!bound_by_end(d, queue_max(d)))
		acct_bound(a, queue_max(d));
}

/* A requeue carries the record of the attempt that is over in msg; the job as it waits again follows as the next attempt. */
static void add_job(struct ctld *d, const struct core_job *j, const struct core_effect *e)
{
	Pb__DbdEvent ev = PB__DBD_EVENT__INIT;
	ev.has_job = true;
	if (e->requeued && e->msg) {
		ev.job.len = protobuf_c_message_get_packed_size(e->msg);
		uint8_t *blob = xmalloc(ev.job.len + 1);
		protobuf_c_message_pack(e->msg, blob);
		ev.job.data = blob;
		ev.has_requeued = ev.requeued = true;
		queue_event(d, &ev);
		free(blob);
		ev.has_requeued = ev.requeued = false;
	}
	ev.job.data = (uint8_t *)core_job_blob(d->core, j, &ev.job.len);
	ev.has_job_reason = true;
	ev.job_reason = core_job_blocked(j);
	queue_event(d, &ev);
}

void acct_add(struct ctld *d, const struct core_effect *e)
{
	Pb__DbdEvent ev = PB__DBD_EVENT__INIT;
	const struct core_job *j = core_job_find(d->core, e->job_id);
	if (!d->acct->link)
		return;
	if (e->type == FX_ACCOUNT_JOB && j) {
		add_job(d, j, e);
		return;
	}
	if (e->type == FX_ACCOUNT_STEP) {
		ev.step = (Pb__StepRecord *)e->msg;
		j = core_job_find(d->core, ev.step->job_id);
		Pb__JobRecord *r = j ? reply_record(d, j) : NULL;
		if (r) {
			ev.has_job_submit = r->has_submit_time;
			ev.job_submit = r->submit_time;
			ev.has_job_start = r->has_start_time;
			ev.job_start = r->start_time;
			pb__job_record__free_unpacked(r, NULL);
		}
	} else {
		return;
	}
	queue_event(d, &ev);
}

/* --- sending ---------------------------------------------------------------------------------- */
static void sent(int code, const ProtobufCMessage *msg, const char *detail, void *arg)
{
	struct acct *a = arg;
	const Pb__DbdSendRsp *rsp = (const Pb__DbdSendRsp *)msg;
	if (code == -ECANCELED)
		return;
	a->sending = false;
	if (!code && rsp->code)
		code = -(int)rsp->code;
	if (code) {
		if (!a->said_down)
			log_error("slurmdbd: %s; accounting records are kept until it answers", detail && *detail ? detail : error_text(code));
		a->said_down = true;
		kick(a, RETRY_MS);
		return;
	}
	if (a->said_down)
		log_info("slurmdbd answers again; %zu accounting records are waiting for it", a->count - a->first);
	if (a->said_down && a->dropped)
		log_error("%llu accounting records of jobs were lost while slurmdbd was away", (unsigned long long)a->dropped);
	a->said_down = false;
	a->dropped = 0;
	while (a->first < a->count && a->item[a->first].seq <= rsp->seq)
		pop(a);
	if (a->first < a->count)
		kick(a, 0);
}

static Pb__DbdEvent *item_event(struct acct *a, const struct item *i)
{
	struct error err;
	void *data = i->data;
	size_t len = i->len;
	if (!data && store_get(a->d->store, STORE_DBD_QUEUE, i->seq, &data, &len, &err)) {
		log_error("accounting record %llu is lost: %s", (unsigned long long)i->seq, err.line);
		return NULL;
	}
	Pb__DbdEvent *e = pb__dbd_event__unpack(NULL, len, data);
	if (data != i->data)
		free(data);
	return e;
}

static void send_some(struct acct *a)
{
	Pb__DbdSendReq req = PB__DBD_SEND_REQ__INIT;
	Pb__DbdEvent *list[SEND_MAX];
	if (a->sending || !a->link || a->d->stopping)
		return;
	req.cluster = (char *)conf_str(a->d->conf, CONF_ClusterName);
	req.event = list;
	for (size_t i = a->first; i < a->count && req.n_event < SEND_MAX && a->item[i].seq <= a->durable_seq; i++) {
		Pb__DbdEvent *e = item_event(a, &a->item[i]);
		if (e)
			list[req.n_event++] = e;
	}
	if (!req.n_event) {           /* nothing, or nothing that can be read: that is said, and over */
		while (a->first < a->count && a->item[a->first].seq <= a->durable_seq)
			pop(a);
	} else {
		a->sending = true;
		log_flag(DBD_AGENT, "%zu records to slurmdbd, %zu wait", req.n_event, a->count - a->first);
		wire_link_call(a->link, RPC_DB_SEND, &req.base, 30000, sent, a);
	}
	for (size_t i = 0; i < req.n_event; i++)
		pb__dbd_event__free_unpacked(list[i], NULL);
}

static void on_timer(uv_timer_t *h) { send_some(h->data); }

static void kick(struct acct *a, uint64_t wait_ms)
{
	if (!uv_is_active((uv_handle_t *)&a->timer))
		uv_timer_start(&a->timer, on_timer, wait_ms, 0);
}

/* --- life ------------------------------------------------------------------------------------- */
static int restore(uint64_t key, const void *data, size_t len, void *arg)
{
	append(arg, key, data, len);
	return 0;
}

void acct_conf_changed(struct ctld *d)
{
	struct acct *a = d->acct;
	const char *type = conf_str(d->conf, CONF_AccountingStorageType), *host = conf_str(d->conf, CONF_AccountingStorageHost);
	bool wanted = type && !strcmp(type, "accounting_storage/slurmdbd");
	uint16_t port = (uint16_t)conf_num(d->conf, CONF_AccountingStoragePort);
	if (wanted && a->link)
		wire_link_set_addr(a->link, host ? host : "localhost", port);
	else if (wanted)
		a->link = wire_link_create(d->loop, d->auth, host ? host : "localhost", port);
	if (wanted && a->first < a->count)
		kick(a, SEND_WAIT_MS);
	if (wanted || !a->link)
		return;
	wire_link_destroy(a->link);
	a->link = NULL;
	a->sending = false;
}

struct acct *acct_create(struct ctld *d)
{
	struct acct *a = xcalloc(1, sizeof *a);
	struct error err;
	a->d = d;
	uv_timer_init(d->loop, &a->timer);
	uv_unref((uv_handle_t *)&a->timer);
	a->timer.data = a;
	if (store_scan(d->store, STORE_DBD_QUEUE, restore, a, &err))
		log_error("accounting queue cannot be read: %s", err.line);
	a->durable_seq = a->last_seq;
	return a;
}

static void acct_free(uv_handle_t *h) { free(h->data); }

void acct_destroy(struct acct *a)
{
	if (!a)
		return;
	wire_link_destroy(a->link);
	for (size_t i = a->first; i < a->count; i++)
		free(a->item[i].data);
	free(a->item);
	uv_close((uv_handle_t *)&a->timer, acct_free);
}

struct wire_link *acct_link(const struct acct *a) { return a->link; }

size_t acct_queued(const struct acct *a) { return a->count - a->first; }
