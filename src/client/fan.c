/* fan.c - see fan.h
 *
 * One epoll of its own over all connections. A call is one connection: to a node, or to the first node of a share. Invariant: a node is told of exactly once, until
 * client_fan_again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "client/fan.h"
#include "wire/fan.h"

#define EVENTS 64
#define WIDTH_DEFAULT 16

enum call_state { CALL_NONE, CALL_FAILED, CALL_CONNECT, CALL_SEND, CALL_WAIT };
struct call {
	struct client_fan *fan;
	struct wire_client *wire;
	enum call_state state;
	uint32_t events;
	size_t node;               /* called: of its share the first, where it is a share's */
	bool was_sent;             /* before: this is a second time */
	uint64_t due_ms;           /* UINT64_MAX: none */
	int answer_ms;
	const char *to;            /* the frame names it */
	const uint8_t *share;      /* what goes after the letter; NULL: this is the call itself */
	size_t share_len;
	struct error err;          /* CALL_FAILED: told from client_fan_run */
	int code;
};
struct client_fan {
	struct client *client;
	struct client_fan_call what;
	const struct client_fan_node *node;
	size_t n, untold;
	client_fan_fn fn;
	void *arg;
	uint8_t *body, hash[32];
	size_t body_len;
	const char **name;
	struct fan_letter letter;
	struct fan *fan;           /* NULL: directly */
	struct call *call;         /* [0, n): nodes; after them the branches */
	size_t calls;
	bool *told;
	bool any_failed;
	int epoll_fd;
	uint64_t next_due;         /* not later than the first due */
	uint32_t own;
};

uint32_t client_tree_width(const struct conf *conf, uint32_t asked)
{
	uint64_t n = asked ? asked : conf_num(conf, CONF_TreeWidth);
	return n > 0 && n <= FAN_WIDTH_MAX ? (uint32_t)n : WIDTH_DEFAULT;
}

static void tell(struct client_fan *f, size_t i, int code, const ProtobufCMessage *rsp, const struct error *err)
{
	if (f->told[i])
		return;
	f->told[i] = true;
	f->untold--;
	f->fn(i, code, rsp, err, f->arg);
}

/* --- one connection --------------------------------------------------------------------------- */

static void events_set(struct call *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };
	if (c->events == events)
		return;
	if (epoll_ctl(c->fan->epoll_fd, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, wire_client_fd(c->wire), &ev) == 0)
		c->events = events;
}

static void call_close(struct call *c)
{
	wire_client_close(c->wire);        /* epoll forgets it */
	c->wire = NULL;
	c->state = CALL_NONE;
	c->events = 0;
	c->share = NULL;
}

static void due_set(struct call *c, int ms)
{
	c->due_ms = ms < 0 ? UINT64_MAX : clock_mono_ms() + (uint64_t)ms;
	if (c->due_ms < c->fan->next_due)
		c->fan->next_due = c->due_ms;
}

static void call_start(struct call *c, size_t node, const uint8_t *hash, int connect_ms, int answer_ms)
{
	struct client_fan *f = c->fan;
	const struct client_fan_node *to = &f->node[node];
	c->node = node;
	c->to = to->name;
	c->answer_ms = answer_ms;
	c->err = (struct error){ 0 };
	f->own++;
	c->code = wire_client_start(client_auth(f->client), to->addr, to->port, hash, &c->wire, &c->err);
	c->state = c->code ? CALL_FAILED : CALL_CONNECT;
	due_set(c, c->code ? 0 : connect_ms);
	f->any_failed |= c->code != 0;
	if (!c->code)
		events_set(c, EPOLLOUT);
}

static void direct_start(struct client_fan *f, size_t i) { call_start(&f->call[i], i, f->hash, f->what.connect_ms, f->what.answer_ms); }

/* --- shares ----------------------------------------------------------------------------------- */

static void shares_start(struct client_fan *f)
{
	struct fan_send s;
	while (fan_next(f->fan, &s)) {
		struct call *c = &f->call[f->n + s.branch];
		c->share = s.tail;
		c->share_len = s.tail_len;
		call_start(c, s.node, NULL, (int)s.wait_ms, (int)s.wait_ms);
	}
}

/* What the tree says of node i; NULL: nothing, so it is asked. */
static void tree_answer(size_t i, const Pb__RelayAnswer *a, void *arg)
{
	struct client_fan *f = arg;
	struct error err = { 0 };
	if (f->told[i])
		return;
	if (!a) {
		log_debug("no answer of %s through the tree, it is called directly", f->node[i].name);
		f->call[i].was_sent = true;
		direct_start(f, i);
		return;
	}
	const ProtobufCMessageDescriptor *d = rpc_row((uint16_t)f->what.rpc)->rsp;
	ProtobufCMessage *rsp = a->code ? NULL : wire_unpack(d, a->body.data, a->body.len);
	int code = a->code ? (int)a->code : rsp ? 0 : ESLURM_PROTOCOL;
	if (code)
		error_set(&err, code, "%s", a->detail && *a->detail ? a->detail : error_text(code));
	tell(f, i, -code, rsp, &err);
	if (rsp)
		protobuf_c_message_free_unpacked(rsp, NULL);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void call_failed(struct call *c, int code, const struct error *err)
{
	struct client_fan *f = c->fan;
	size_t at = (size_t)(c - f->call);
	struct error copy = *err;
	bool sent = c->state >= CALL_SEND;
	call_close(c);
	if (at < f->n) {
		tell(f, at, code, NULL, &copy);
		c->was_sent |= sent;
		return;
	}
	log_debug("share of %s: %s", f->node[c->node].name, copy.line);
	fan_failed(f->fan, at - f->n, code);
	shares_start(f);
}

static void call_answered(struct call *c, const ProtobufCMessage *rsp)
{
	struct client_fan *f = c->fan;
	size_t at = (size_t)(c - f->call);
	static const struct error none;
	call_close(c);
	if (at < f->n)
		tell(f, at, 0, rsp, &none), c->was_sent = true;
	else
		fan_took(f->fan, at - f->n, (const Pb__RelayRsp *)rsp);
}

static void call_read(struct call *c)
{
	struct error err = { 0 };
	ProtobufCMessage *rsp = NULL;
	uint32_t seq;
	int code = 0, rc = wire_recv(c->wire, 0, &seq, &code, &rsp, &err);
	if (rc == -ESLURM_SOCKET_TIMEOUT)
		return;                    /* not all of it is there yet */
	if (rc < 0 || code < 0)
		call_failed(c, rc < 0 ? rc : code, &err);
	else
		call_answered(c, rsp);
	if (rsp)
		protobuf_c_message_free_unpacked(rsp, NULL);
}

static int call_send(struct call *c, struct error *err)
{
	const struct client_fan *f = c->fan;
	struct wire_request q = { f->what.rpc, c->to, f->body, NULL, f->body_len, 0 };
	if (c->share)
		q = (struct wire_request){ RPC_D_RELAY, c->to, f->letter.packed->data, c->share, f->letter.packed->len, c->share_len };
	return wire_begin(c->wire, &q, err);
}

static void call_ready(struct call *c)
{
	struct error err = { 0 };
	int rc = 0;
	if (c->state == CALL_CONNECT) {
		rc = wire_client_ready(c->wire, &err);
		if (!rc)
			rc = call_send(c, &err);
		c->state = CALL_SEND;
		due_set(c, c->answer_ms);
	}
	if (!rc && c->state == CALL_SEND && (rc = wire_flush(c->wire, &err)) == 0) {
		c->state = CALL_WAIT;
		events_set(c, EPOLLIN);
		return;
	}
	if (rc < 0)
		call_failed(c, rc, &err);
	else if (c->state == CALL_WAIT)
		call_read(c);
}

static void call_late(struct call *c)
{
	const struct client_fan_node *to = &c->fan->node[c->node];
	if (c->state == CALL_FAILED)
		call_failed(c, c->code, &c->err);
	else
		call_failed(c, error_set(&c->err, ESLURM_SOCKET_TIMEOUT, "no answer from %s:%u: %s", to->addr, to->port, error_text(-ESLURM_SOCKET_TIMEOUT)), &c->err);
}

/* --- all of them ------------------------------------------------------------------------------ */

struct client_fan *client_fan_start(struct client *client, const struct client_fan_call *call, const struct client_fan_node *node, size_t n, client_fan_fn fn, void *arg)
{
	struct client_fan *f = xcalloc(1, sizeof *f);
	struct error err = { 0 };
	*f = (struct client_fan){ .client = client, .what = *call, .node = node, .n = n, .untold = n, .fn = fn, .arg = arg, .next_due = UINT64_MAX };
	if (!f->what.patience_ms)
		f->what.patience_ms = (int)conf_num(client_conf(client), CONF_MessageTimeout) * 500;
	f->what.width = client_tree_width(client_conf(client), call->width);
	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	f->body_len = protobuf_c_message_get_packed_size(call->req);
	f->body = xmalloc(f->body_len + 1);
	protobuf_c_message_pack(call->req, f->body);
	wire_hash(f->body, f->body_len, f->hash);
	f->told = xcalloc(n + 1, sizeof *f->told);
	f->calls = n + (n > f->what.width ? f->what.width : 0);
	f->call = xcalloc(f->calls + 1, sizeof *f->call);
	for (size_t i = 0; i < f->calls; i++)
		f->call[i] = (struct call){ .fan = f, .due_ms = UINT64_MAX };
	if (n > f->what.width) {
		f->name = xcalloc(n, sizeof *f->name);
		for (size_t i = 0; i < n; i++)
			f->name[i] = node[i].name;
		if (!fan_letter_seal(client_auth(client), call->rpc, call->req, f->name, n, f->what.width, (uint32_t)f->what.patience_ms, &f->letter, &err))
			f->fan = fan_create(&f->letter, f->name, n, tree_answer, f);
	}
	if (f->fan)
		shares_start(f);
	for (size_t i = 0; !f->fan && i < n; i++)
		direct_start(f, i);
	return f;
}

void client_fan_free(struct client_fan *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->calls; i++)
		call_close(&f->call[i]);
	fan_destroy(f->fan);
	fan_letter_fini(&f->letter);
	close(f->epoll_fd);
	free(f->call);
	free(f->told);
	free(f->name);
	free(f->body);
	free(f);
}

int client_fan_fd(const struct client_fan *f) { return f->epoll_fd; }

uint64_t client_fan_due(const struct client_fan *f) { return f->next_due; }

static void late_look(struct client_fan *f)
{
	uint64_t now = clock_mono_ms();
	if (now < f->next_due)
		return;
	f->next_due = UINT64_MAX;
	for (size_t i = 0; i < f->calls; i++) {
		struct call *c = &f->call[i];
		if (c->state == CALL_NONE)
			continue;
		if (c->due_ms <= now)
			call_late(c);
		if (c->state != CALL_NONE && c->due_ms < f->next_due)
			f->next_due = c->due_ms;
	}
}

void client_fan_run(struct client_fan *f)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(f->epoll_fd, ev, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		struct call *c = ev[i].data.ptr;
		if (c->state >= CALL_CONNECT)
			call_ready(c);
	}
	late_look(f);
}

void client_fan_again(struct client_fan *f, size_t i)
{
	f->untold += f->told[i];
	f->told[i] = false;
	call_close(&f->call[i]);
	direct_start(f, i);
}

void client_fan_forget(struct client_fan *f, size_t i)
{
	f->untold -= !f->told[i];
	f->told[i] = true;
	call_close(&f->call[i]);
}

void client_fan_finish(struct client_fan *f)
{
	while (f->untold) {
		struct epoll_event ev;
		uint64_t now = clock_mono_ms();
		int wait = f->next_due == UINT64_MAX ? -1 : f->next_due <= now ? 0 : f->next_due - now > 60000 ? 60000 : (int)(f->next_due - now);
		(void)epoll_wait(f->epoll_fd, &ev, 1, wait);
		client_fan_run(f);
	}
}

bool client_fan_was_sent(const struct client_fan *f, size_t i) { return f->call[i].was_sent; }

struct client_fan_figures client_fan_figures(const struct client_fan *f)
{
	return (struct client_fan_figures){ f->own, f->fan ? fan_sent(f->fan) : f->own, f->fan ? fan_deepest(f->fan) : 1 };
}
