/* agent.c - see agent.h
 *
 * An order is one call to one node; its message is shared by all nodes it goes to, and to many it goes through the tree of their slurmds. Invariants: orders to a node leave in the order they were given; a node has
 * at most IN_FLIGHT of them out. What failed to arrive is tried again later (launches only while the job is still meant to start there).
 * The core decides what a silent node means; this file only tells it that a node fell silent or spoke again. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/agent.h"
#include "ctld/cred.h"
#include "ctld/node_book.h"
#include "ctld/replies.h"
#include "ctld/scripts.h"
#include "ctld/turn.h"
#include "model/hostlist.h"
#include "model/stepid.h"
#include "proto/agent.pb-c.h"
#include "wire/relay.h"

#define IN_FLIGHT 32
#define PINGS_AT_ONCE 512          /* out at a time: an answer must not wait behind ten thousand others until its own time is over */
#define WAY_PEERS_FEW 16           /* when a connection of so many breaks, all are asked at once */
#define TICK_MS 100
#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS 10000

struct payload { int refs; ProtobufCMessage *msg; };
struct order {
	struct peer *peer;
	struct ctld *d;
	enum rpc rpc;
	struct payload *load;
	uint32_t job_id, restarts;
	unsigned tries;
	uint64_t due_ms;
	struct order *next;
};
/* The connection to one address. Peers at the same address (emulated nodes) share it; each frame names its node. */
struct way {
	char *addr;                  /* "host:port" */
	struct wire_link *link;
	struct agent *agent;
	size_t peers;
	UT_hash_handle hh;
};
struct peer {
	char *name;
	struct way *way;
	struct order *head, **tail;
	unsigned out;
	bool in_tree;                /* one of them: those after it wait, so that none overtakes another */
	bool wanted;                 /* still configured */
	bool dropped;                /* out of the table; goes when the last answer on the way has come */
	struct book_node book;
	UT_hash_handle hh;
};
/* An order on its way through the tree of slurmds (wire/fan.h). */
struct tree {
	struct agent *agent;         /* NULL: it is no more */
	struct payload *load;
	enum rpc rpc;
	struct order **order;
	char **name;
	size_t n;
	struct tree *next;
};
struct agent {
	struct tree *trees;
	struct ctld *d;
	struct peer *peers, *ping_next;
	struct way *ways;
	size_t peer_count, in_flight;
	struct order *retry;
	double ping_debt;
	unsigned pings;              /* questions out */
	uv_timer_t tick;
};

/* How often each kind of order is tried. */
/* ... and does it go to many nodes through their slurmds? Not what may end a slurmd before it has handed it on. */
static const struct order_kind { enum core_effect_type fx; enum rpc rpc; unsigned tries; int timeout_ms; bool tree; } order_kinds[] = {
	{ FX_LAUNCH_BATCH, RPC_D_BATCH, 5, 10000, false }, { FX_SIGNAL, RPC_D_SIGNAL, 4, 10000, true }, { FX_TERMINATE, RPC_D_TERMINATE, 100, 10000, true },
	{ FX_SUSPEND, RPC_D_SUSPEND, 4, 10000, true }, { FX_NOTIFY, RPC_D_NOTIFY, 3, 10000, true }, { FX_MEMORY, RPC_D_JOB_MEM, 100, 10000, true },
	{ FX_REBOOT, RPC_D_REBOOT, 3, 10000, false },
	{ FX_PROLOG, RPC_D_PROLOG, 100, 10000, true }, { FX_LOG, RPC_D_RECONFIG, 3, 5000, true }, { FX_LOG, RPC_D_SHUTDOWN, 1, 3000, false },
};

static const struct order_kind *kind_of(enum rpc rpc)
{
	for (size_t i = 0; i < sizeof order_kinds / sizeof *order_kinds; i++)
		if (order_kinds[i].rpc == rpc)
			return &order_kinds[i];
	abort();
}

static enum rpc rpc_of(enum core_effect_type fx)
{
	for (size_t i = 0; i < sizeof order_kinds / sizeof *order_kinds; i++)
		if (order_kinds[i].fx == fx)
			return order_kinds[i].rpc;
	abort();
}

static void payload_unref(struct payload *p)
{
	if (--p->refs)
		return;
	protobuf_c_message_free_unpacked(p->msg, NULL);
	free(p);
}

static struct payload *payload_copy(const ProtobufCMessage *msg)
{
	struct payload *p = xcalloc(1, sizeof *p);
	size_t len = protobuf_c_message_get_packed_size(msg);
	uint8_t *data = xmalloc(len);
	protobuf_c_message_pack(msg, data);
	p->msg = protobuf_c_message_unpack(msg->descriptor, NULL, len, data);
	assert(p->msg);
	p->refs = 1;
	free(data);
	return p;
}

static struct peer *peer_find(struct agent *a, const char *name)
{
	struct peer *p;
	HASH_FIND_STR(a->peers, name, p);
	return p;
}

static void order_free(struct order *o)
{
	payload_unref(o->load);
	free(o);
}

/* Frees a dropped peer when nobody will come back to it. */
static void peer_rest(struct peer *p)
{
	if (!p->dropped || p->out || p->book.asking)
		return;
	free(p->name);
	free(p);
}

static void order_done(int code, const ProtobufCMessage *rsp, const char *detail, void *arg);

static void peer_push(struct peer *p)
{
	while (p->head && p->out < IN_FLIGHT && !p->in_tree) {
		struct order *o = p->head;
		p->head = o->next;
		if (!p->head)
			p->tail = &p->head;
		p->out++;
		o->d->agent->in_flight++;
		log_flag(AGENT, "%s of JobId=%u to node %s", rpc_row((uint16_t)o->rpc)->name, o->job_id, p->name);
		wire_link_call_to(p->way->link, p->name, o->rpc, o->load->msg, kind_of(o->rpc)->timeout_ms, order_done, o);
	}
}

static void order_queue(struct order *o)
{
	o->next = NULL;
	*o->peer->tail = o;
	o->peer->tail = &o->next;
	peer_push(o->peer);
}

static struct order *order_make(struct ctld *d, struct peer *p, enum rpc rpc, struct payload *load, uint32_t job_id, uint32_t restarts)
{
	struct order *o = xcalloc(1, sizeof *o);
	*o = (struct order){ .peer = p, .d = d, .rpc = rpc, .load = load, .job_id = job_id, .restarts = restarts };
	load->refs++;
	return o;
}

static void order_give(struct ctld *d, const char *node, enum rpc rpc, struct payload *load, uint32_t job_id, uint32_t restarts)
{
	struct peer *p = peer_find(d->agent, node);
	if (p)
		order_queue(order_make(d, p, rpc, load, job_id, restarts));
}

/* --- results ---------------------------------------------------------------------------------- */
/* Is the launch still meant: same run of the job, on this node? */
static bool launch_is_wanted(struct order *o)
{
	const struct core_job *j = core_job_find(o->d->core, o->job_id);
	Pb__JobRecord *r = j && core_job_is_running(j) ? reply_record(o->d, j) : NULL;
	bool wanted = r && r->restarts == o->restarts && r->alloc && r->alloc->batch_host && !strcmp(r->alloc->batch_host, o->peer->name);
	if (r)
		pb__job_record__free_unpacked(r, NULL);
	return wanted;
}

static bool retry_later(struct order *o)
{
	const struct order_kind *k = kind_of(o->rpc);
	if (++o->tries >= k->tries || o->d->stopping || !o->peer->wanted)
		return false;
	if (o->rpc == RPC_D_BATCH && !launch_is_wanted(o))
		return false;
	const struct core_job *j = core_job_find(o->d->core, o->job_id);
	if ((o->rpc == RPC_D_TERMINATE && !j) || (o->rpc == RPC_D_PROLOG && (!j || core_job_is_ready(j) || core_job_is_finished(j))))
		return false;
	unsigned shift = o->tries < 6 ? o->tries - 1 : 5;
	uint64_t wait = RETRY_FIRST_MS << shift;
	o->due_ms = ctld_now_ms() + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
	o->next = o->d->agent->retry;
	log_flag(AGENT, "%s of JobId=%u to node %s again in %llu ms", rpc_row((uint16_t)o->rpc)->name, o->job_id, o->peer->name, (unsigned long long)(o->due_ms - ctld_now_ms()));
	o->d->agent->retry = o;
	return true;
}

static void launch_result(struct order *o, int code, const char *detail, bool drain)
{
	struct core_event ev = { .type = EV_LAUNCH_RESULT };
	ev.launch.job_id = o->job_id;
	ev.launch.restarts = o->restarts;
	ev.launch.node = o->peer->name;
	ev.launch.code = code;
	ev.launch.detail = detail;
	ev.launch.drain = drain;
	if (code)
		log_error("launch of JobId=%u on node %s: %s", o->job_id, o->peer->name, detail && *detail ? detail : error_text(code));
	turn_step(o->d, &ev);
}

/* Nothing of the job is there (it ended before slurmd knew it): that is the end we asked for. */
static void nothing_there(struct order *o)
{
	const Pb__TerminateReq *m = (const Pb__TerminateReq *)o->load->msg;
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	struct core_event ev = { .type = EV_NODE_EVENT };
	if (m->has_step_id)
		return;
	e.kind = PB__NODE_EVENT__KIND__EPILOG_DONE;
	e.has_job_id = true;
	e.job_id = o->job_id;
	e.has_restarts = m->has_restarts;
	e.restarts = m->restarts;
	ev.node_event.node = o->peer->name;
	ev.node_event.event = &e;
	turn_step(o->d, &ev);
}

static bool is_transport(int code) { return code == -ESLURM_COMM || code == -ESLURM_SOCKET_TIMEOUT; }

static void order_done(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	struct order *o = arg;
	struct peer *p = o->peer;
	bool node_fault = false;
	log_flag(AGENT, "%s of JobId=%u answered by node %s: %s", rpc_row((uint16_t)o->rpc)->name, o->job_id, p->name, code ? error_text(code) : "received");
	p->out--;
	o->d->agent->in_flight--;
	if (code == -ECANCELED && p->wanted && !o->d->stopping)
		code = -ESLURM_COMM; /* the node has moved to another address */
	if (code == -ECANCELED || p->dropped) {
		order_free(o);
		peer_rest(p);
		return;
	}
	if (!(is_transport(code) && retry_later(o))) {
		if (!code && o->rpc == RPC_D_BATCH) {
			const Pb__LaunchRsp *m = (const Pb__LaunchRsp *)rsp;
			code = -(int)m->code;
			detail = m->detail;
			node_fault = m->has_node_fault && m->node_fault;
		} else if (!code && rsp) {
			code = -(int)((const Pb__Result *)rsp)->code;
			detail = ((const Pb__Result *)rsp)->detail;
		}
		if (o->rpc == RPC_D_BATCH && (code == -EEXIST || (o->tries && code == -ESLURM_CRED)))
			code = 0; /* it had arrived before; the answer was lost */
		if (o->rpc == RPC_D_BATCH && (!code || launch_is_wanted(o)))
			launch_result(o, code, detail, node_fault);
		else if (o->rpc == RPC_D_TERMINATE && code == -ESLURM_INVALID_JOB_ID)
			nothing_there(o);
		else if (code)
			log_debug("%s of JobId=%u on node %s: %s", rpc_row((uint16_t)o->rpc)->name, o->job_id, p->name, detail && *detail ? detail : error_text(code));
		order_free(o);
	}
	peer_push(p);
}

/* --- many nodes -------------------------------------------------------------------------------- */
static struct wire_link *tree_link(const char *node, void *arg)
{
	const struct tree *t = arg;
	const struct peer *p = t->agent ? peer_find(t->agent, node) : NULL;
	return p ? p->way->link : NULL;
}

/* A node that the tree does not bring an answer of gets the order on its own connection. */
static void tree_answer(size_t i, const Pb__RelayAnswer *a, void *arg)
{
	const struct tree *t = arg;
	struct order *o = t->order[i];
	if (!t->agent) {
		order_free(o);
		return;
	}
	struct peer *p = o->peer;
	p->in_tree = false;
	ProtobufCMessage *rsp = a && !a->code ? wire_unpack(rpc_row((uint16_t)t->rpc)->rsp, a->body.data, a->body.len) : NULL;
	if (p->dropped || t->agent->d->stopping) {
		order_done(-ECANCELED, NULL, NULL, o);
	} else if (rsp || (a && a->code)) {
		order_done(rsp ? 0 : -(int)a->code, rsp, a->detail, o);
	} else {
		p->out--;
		t->agent->in_flight--;
		o->next = p->head;           /* before those that wait for it */
		if (!p->head)
			p->tail = &o->next;
		p->head = o;
		peer_push(p);
	}
	if (rsp)
		protobuf_c_message_free_unpacked(rsp, NULL);
}

static void tree_end(const struct fan *f, void *arg)
{
	struct tree *t = arg;
	log_flag(AGENT, "%s to %zu nodes: %u messages, %u levels", rpc_row((uint16_t)t->rpc)->name, t->n, fan_sent(f), fan_deepest(f));
	log_debug("%s to %zu nodes: %u messages, %u levels", rpc_row((uint16_t)t->rpc)->name, t->n, fan_sent(f), fan_deepest(f));
	for (struct tree **at = t->agent ? &t->agent->trees : NULL; at && *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
	payload_unref(t->load);
	for (size_t i = 0; i < t->n; i++)
		free(t->name[i]);
	free(t->order);
	free(t->name);
	free(t);
}

static void tree_send(struct ctld *d, struct peer **peer, size_t n, enum rpc rpc, struct payload *load, uint32_t job_id, uint32_t width)
{
	struct tree *t = xcalloc(1, sizeof *t);
	*t = (struct tree){ .agent = d->agent, .load = load, .rpc = rpc, .n = n, .next = d->agent->trees };
	d->agent->trees = t;
	load->refs++;
	t->order = xcalloc(n, sizeof *t->order);
	t->name = xcalloc(n, sizeof *t->name);
	for (size_t i = 0; i < n; i++) {
		t->order[i] = order_make(d, peer[i], rpc, load, job_id, 0);
		t->name[i] = xstrdup(peer[i]->name);
		peer[i]->in_tree = true;
		peer[i]->out++;
		d->agent->in_flight++;
	}
	uint32_t patience_ms = (uint32_t)conf_num(d->conf, CONF_MessageTimeout) * 500;   /* half: then there is time to call a node directly */
	struct fan_order o = { d->loop, d->auth, rpc, load->msg, (const char *const *)t->name, n, width, patience_ms };
	fan_send(&o, tree_link, tree_answer, tree_end, t);
}

/* To a few nodes each on its connection, to many through the tree: those that have nothing before it that it could overtake. */
static void orders_give(struct ctld *d, char *const *node, size_t n, enum rpc rpc, struct payload *load, uint32_t job_id)
{
	uint64_t width = conf_num(d->conf, CONF_TreeWidth);
	struct peer **list = xcalloc(n + 1, sizeof *list);
	size_t many = 0;
	for (size_t i = 0; i < n; i++) {
		struct peer *p = peer_find(d->agent, node[i]);
		if (p && kind_of(rpc)->tree && !p->out && !p->head)
			list[many++] = p;
		else if (p)
			order_queue(order_make(d, p, rpc, load, job_id, 0));
	}
	if (many > width && width)
		tree_send(d, list, many, rpc, load, job_id, (uint32_t)(width < FAN_WIDTH_MAX ? width : FAN_WIDTH_MAX));
	else
		for (size_t i = 0; i < many; i++)
			order_queue(order_make(d, list[i], rpc, load, job_id, 0));
	free(list);
}

/* --- effects ---------------------------------------------------------------------------------- */
struct launch { Pb__JobRecord *job; char *node; struct cred_node at; };

static void launch_send(struct ctld *d, void *arg)
{
	struct launch *l = arg;
	struct error err = { 0 };
	void *script = NULL;
	size_t len = 0;
	int rc = scripts_get(d, l->job->job_id, l->job->array_job_id, &script, &len, &err);
	Pb__SignedBatch *b = rc ? NULL : cred_batch(d, l->job, &l->at, script, len);
	if (b) {
		struct payload *load = xcalloc(1, sizeof *load);
		load->refs = 1;
		load->msg = &b->base;
		order_give(d, l->node, RPC_D_BATCH, load, l->job->job_id, l->job->restarts);
		payload_unref(load);
	} else {
		struct core_event ev = { .type = EV_LAUNCH_RESULT };
		log_error("JobId=%u cannot be started: its script cannot be read: %s", l->job->job_id, rc ? err.line : "record is malformed");
		ev.launch.job_id = l->job->job_id;
		ev.launch.restarts = l->job->restarts;
		ev.launch.node = l->node;
		ev.launch.code = -ESLURM_SCRIPT_MISSING;
		ev.launch.detail = "batch script cannot be read from the state file";
		turn_step(d, &ev);
	}
	free(script);
	pb__job_record__free_unpacked(l->job, NULL);
	free(l->node);
	free(l);
}

void agent_launch(struct ctld *d, const struct core_effect *e)
{
	const struct core_job *j = core_job_find(d->core, e->job_id);
	assert(j && e->nodes && core_node_find(d->core, e->nodes) >= 0);
	Pb__JobRecord *r = reply_record(d, j);
	if (!core_job_is_running(j) || r->restarts != e->value) { /* ended in the step that started it: the record is of what comes after */
		pb__job_record__free_unpacked(r, NULL);
		return;
	}
	struct launch *l = xmalloc(sizeof *l);
	*l = (struct launch){ .job = r, .node = xstrdup(e->nodes) };
	core_node_started(d->core, (uint32_t)core_node_find(d->core, e->nodes), &l->at.boot_time, &l->at.slurmd_start_time);
	turn_after(d, launch_send, l);
}

struct tell { enum rpc rpc; uint32_t job_id; char *nodes; struct payload *load; };

static void tell_send(struct ctld *d, void *arg)
{
	struct tell *t = arg;
	struct hostlist hl = HOSTLIST_INIT;
	if (!hostlist_add(&hl, t->nodes, NULL))
		orders_give(d, hl.name, hl.count, t->rpc, t->load, t->job_id);
	hostlist_fini(&hl);
	payload_unref(t->load);
	free(t->nodes);
	free(t);
}

void agent_tell(struct ctld *d, const struct core_effect *e)
{
	assert(e->nodes && e->msg);
	struct tell *t = xmalloc(sizeof *t);
	*t = (struct tell){ rpc_of(e->type), e->job_id, xstrdup(e->nodes), payload_copy(e->msg) };
	turn_after(d, tell_send, t);
}

/* With PrologFlags=Contain the order brings the credential of the extern step. */
void agent_prolog(struct ctld *d, const struct core_effect *e)
{
	Pb__PrologReq m = *(const Pb__PrologReq *)e->msg;
	struct core_effect with = *e;
	m.extern_cred = m.layout ? cred_step(d, m.job, STEP_ID_EXTERN, m.layout, NULL) : NULL;
	m.layout = NULL;
	with.msg = &m.base;
	agent_tell(d, &with);
	cred_free(m.extern_cred);
}

void agent_tell_all(struct ctld *d, enum rpc rpc)
{
	Pb__Empty empty = PB__EMPTY__INIT;
	struct payload *load = payload_copy(&empty.base);
	char **name = xcalloc(d->agent->peer_count + 1, sizeof *name);
	size_t n = 0;
	for (struct peer *p = d->agent->peers; p; p = p->hh.next)
		name[n++] = p->name;
	orders_give(d, name, n, rpc, load, 0);
	free(name);
	payload_unref(load);
}

/* --- signs of life ---------------------------------------------------------------------------- */
unsigned agent_ping_sec(const struct ctld *d)
{
	uint64_t timeout = conf_num(d->conf, CONF_SlurmdTimeout);
	if (!timeout || timeout == UINT64_MAX)
		timeout = 300;
	return timeout < 6 ? 1 : (unsigned)(timeout / 3 < 100 ? timeout / 3 : 100);
}

/* It does not know our key: it has not registered since this key was made. Reading its configuration again makes it register. */
static void ask_to_register(struct ctld *d, const char *node)
{
	Pb__Empty empty = PB__EMPTY__INIT;
	struct payload *load = payload_copy(&empty.base);
	order_give(d, node, RPC_D_RECONFIG, load, 0, 0);
	payload_unref(load);
}

static void ping_some(struct agent *a);
static void ping_done(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	struct peer *p = arg;
	struct agent *a = p->book.d->agent;
	a->pings--;
	if (code == -ECANCELED || p->dropped) {
		p->book.asking = false;
		peer_rest(p);
		return;
	}
	bool never_spoke = p->book.contact == BOOK_UNKNOWN;
	enum book_do what = book_answer(&p->book, code);
	struct ctld *d = p->book.d;
	if (d->stopping)
		return;
	if (what == BOOK_ASK_AGAIN)
		agent_ask(d, p->name);
	else if (what == BOOK_LOST)
		book_contact(d, p->name, false, !never_spoke);
	else if (what == BOOK_BACK && book_knows_key(d, (const Pb__NodeStatusRsp *)rsp))
		book_returned(d, p->name, (const Pb__NodeStatusRsp *)rsp);
	else if (what == BOOK_BACK)
		ask_to_register(d, p->name);
	ping_some(a);
}

static void peer_ping(struct peer *p)
{
	Pb__Empty empty = PB__EMPTY__INIT;
	if (!book_may_ask(&p->book))
		return;
	p->book.d->agent->pings++;
	wire_link_call_to(p->way->link, p->name, RPC_D_PING, &empty.base, (int)(agent_ping_sec(p->book.d) * 1000 < 5000 ? 2000 : 5000), ping_done, p);
}

void agent_ask(struct ctld *d, const char *node)
{
	struct peer *p = peer_find(d->agent, node);
	if (p)
		peer_ping(p);
}

static void link_broke(void *arg)
{
	const struct way *w = arg;
	if (w->agent->d->stopping)
		return;
	if (w->peers > WAY_PEERS_FEW) {
		w->agent->ping_debt = (double)w->agent->peer_count;
		return;
	}
	for (struct peer *p = w->agent->peers; p; p = p->hh.next)
		if (p->way == w)
			peer_ping(p);
}

void agent_heard(struct ctld *d, const char *node)
{
	struct peer *p = peer_find(d->agent, node);
	if (p)
		book_heard(&p->book);
}

/* Pings are spread: each tick its share of the round; the first round as fast as the answers come. */
static void ping_some(struct agent *a)
{
	for (; a->ping_debt >= 1 && a->peer_count && a->pings < PINGS_AT_ONCE; a->ping_debt--) {
		if (!a->ping_next)
			a->ping_next = a->peers;
		peer_ping(a->ping_next);
		a->ping_next = a->ping_next->hh.next;
	}
}

static void on_tick(uv_timer_t *h)
{
	struct agent *a = h->data;
	uint64_t now = ctld_now_ms();
	struct order *list = a->retry;
	a->retry = NULL;
	while (list) {
		struct order *next = list->next;
		if (list->due_ms <= now) {
			order_queue(list);
		} else {
			list->next = a->retry;
			a->retry = list;
		}
		list = next;
	}
	a->ping_debt += (double)a->peer_count * TICK_MS / (agent_ping_sec(a->d) * 1000.0);
	if (a->ping_debt > (double)a->peer_count)
		a->ping_debt = (double)a->peer_count;
	ping_some(a);
}

/* --- peers ------------------------------------------------------------------------------------ */
static struct way *way_take(struct agent *a, const char *addr, uint16_t port)
{
	struct way *w;
	char *key = xasprintf("%s:%u", addr, port);
	HASH_FIND_STR(a->ways, key, w);
	if (w) {
		free(key);
	} else {
		w = xcalloc(1, sizeof *w);
		w->addr = key;
		w->agent = a;
		w->link = wire_link_create(a->d->loop, a->d->auth, addr, port);
		wire_link_on_break(w->link, link_broke, w);
		HASH_ADD_KEYPTR(hh, a->ways, w->addr, strlen(w->addr), w);
	}
	w->peers++;
	return w;
}

static void way_leave(struct way *w)
{
	if (--w->peers)
		return;
	HASH_DEL(w->agent->ways, w);
	wire_link_destroy(w->link); /* its calls end with -ECANCELED now */
	free(w->addr);
	free(w);
}

static void peer_add(struct ctld *d, uint32_t index)
{
	uint16_t port;
	const char *name = core_node_name(d->core, index), *addr = core_node_addr(d->core, index, &port);
	struct peer *p = peer_find(d->agent, name);
	if (p) {
		struct way *old = p->way;
		p->way = way_take(d->agent, addr, port);
		way_leave(old);
		p->wanted = true;
		return;
	}
	p = xcalloc(1, sizeof *p);
	p->name = xstrdup(name);
	p->tail = &p->head;
	p->wanted = true;
	p->book.d = d;
	p->way = way_take(d->agent, addr, port);
	HASH_ADD_KEYPTR(hh, d->agent->peers, p->name, strlen(p->name), p);
	d->agent->peer_count++;
}

static void peer_drop(struct agent *a, struct peer *p)
{
	for (struct order **o = &a->retry, *x; (x = *o);) {
		if (x->peer == p) {
			*o = x->next;
			order_free(x);
		} else {
			o = &x->next;
		}
	}
	HASH_DEL(a->peers, p);
	a->peer_count--;
	if (a->ping_next == p)
		a->ping_next = NULL;
	while (p->head) {
		struct order *o = p->head;
		p->head = o->next;
		order_free(o);
	}
	p->tail = &p->head;
	p->wanted = false;
	way_leave(p->way);
	p->dropped = true;
	peer_rest(p);
}

void agent_nodes_changed(struct ctld *d)
{
	struct peer *p, *tmp;
	HASH_ITER(hh, d->agent->peers, p, tmp)
		p->wanted = false;
	for (size_t i = 0; i < core_node_count(d->core); i++)
		peer_add(d, (uint32_t)i);
	HASH_ITER(hh, d->agent->peers, p, tmp)
		if (!p->wanted)
			peer_drop(d->agent, p);
	d->agent->ping_next = NULL;
	d->agent->ping_debt = (double)d->agent->peer_count;
}

struct agent *agent_create(struct ctld *d)
{
	struct agent *a = xcalloc(1, sizeof *a);
	a->d = d;
	uv_timer_init(d->loop, &a->tick);
	a->tick.data = a;
	uv_timer_start(&a->tick, on_tick, 1, TICK_MS);
	uv_unref((uv_handle_t *)&a->tick);
	return a;
}

static void agent_free(uv_handle_t *h) { free(h->data); }

void agent_destroy(struct agent *a)
{
	struct peer *p, *tmp;
	if (!a)
		return;
	HASH_ITER(hh, a->peers, p, tmp)
		peer_drop(a, p);
	for (struct tree *t = a->trees; t; t = t->next)
		t->agent = NULL;
	uv_close((uv_handle_t *)&a->tick, agent_free);
}

size_t agent_in_flight(const struct agent *a) { return a->in_flight; }
