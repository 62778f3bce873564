/* link.c - an outgoing connection of a daemon, opened when needed (struct wire_link of wire.h)
 *
 * States: IDLE -> RESOLVE (only for names) -> TOKEN (only where making one blocks) -> CONNECT -> UP -> IDLE. Calls made before UP wait
 * in order. When the connection breaks, every call in flight ends with -ESLURM_COMM: whether it was done is unknown, and only
 * the caller knows what may be repeated. The next call connects again.
 * Invariants: a call's `done` runs exactly once and never from inside wire_link_call; one timer a link, set to the earliest
 * deadline. Each attempt to connect is an object of its own, so that a link can start another while the last one closes. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alloc.h"
#include "wire/rpc.h"
#include "wire/stream.h"

enum link_state { LINK_IDLE, LINK_RESOLVE, LINK_TOKEN, LINK_CONNECT, LINK_UP };
struct call {
	UT_hash_handle hh;               /* by seq, in order of sending */
	uint32_t seq;
	const struct rpc_row *row;
	uint64_t deadline_ms;            /* uv_now; UINT64_MAX: none */
	wire_done_fn done;
	void *arg;
	bool sent;
	uint16_t to_len;                 /* the body begins with so many bytes of the receiver's name */
	size_t len;
	uint8_t *body;                   /* until sent */
	struct wire_shared *shared;      /* the body has them between the name and the rest; NULL: nothing */
};
struct out_shared { struct wire_shared *shared; uint8_t own[]; };
struct attempt {
	struct stream stream;
	struct wire_link *link;          /* NULL: abandoned */
	struct wire_auth *auth;
	uv_getaddrinfo_t resolve;
	uv_work_t work;
	uv_connect_t connect;
	struct sockaddr_storage addr;
	struct token token;
	int rc;
	struct error err;
};
struct wire_link {
	uv_loop_t *loop;
	struct wire_auth *auth;
	char *host;
	uint16_t port;
	enum link_state state;
	struct attempt *now;
	struct call *calls;
	uint32_t last_seq;
	uv_timer_t timer;
	uint64_t timer_ms;               /* when it fires; UINT64_MAX: it is stopped */
	void (*on_break)(void *);
	void *break_arg;
	bool destroyed;
};

static void link_connect(struct wire_link *l);
static void timer_set(struct wire_link *l);

static void call_free(struct call *c)
{
	wire_shared_unref(c->shared);
	free(c->body);
	free(c);
}

static void call_end(struct wire_link *l, struct call *c, int code, const ProtobufCMessage *rsp, const char *detail)
{
	HASH_DEL(l->calls, c);
	c->done(code, rsp, detail, c->arg);
	call_free(c);
}

static void calls_fail(struct wire_link *l, int code, const char *detail)
{
	/* Only those there now: `done` may make new calls, which belong to the next attempt. */
	uint32_t last = l->last_seq;
	while (l->calls && (int32_t)(l->calls->seq - last) <= 0)
		call_end(l, l->calls, code, NULL, detail);
}

/* The attempt is over. The calls of the link end with the code. */
static void link_down(struct wire_link *l, int code, const struct error *err)
{
	bool was_up = l->state == LINK_UP;
	struct error copy = *err;
	l->state = LINK_IDLE;
	l->now = NULL;
	calls_fail(l, code, copy.line[0] ? copy.line : error_text(code));
	if (was_up && l->on_break && !l->destroyed)
		l->on_break(l->break_arg);
	if (!l->destroyed)
		timer_set(l);
}

/* --- frames ---------------------------------------------------------------------------------- */

static int link_head(struct stream *s, const struct frame_head *h, struct error *err)
{
	if (h->kind == FRAME_CALL || h->body_len > WIRE_REPLY_MAX)
		return error_set(err, ESLURM_PROTOCOL, "an answer that is none, or too long");
	return 0;
}

static int link_frame(struct stream *s, const struct frame_head *h, const uint8_t *body, struct error *err)
{
	struct attempt *a = s->owner;
	struct wire_link *l = a->link;
	char text[FRAME_TEXT_MAX + 1] = "";
	struct call *c = NULL;
	uint32_t seq = h->seq;
	if (h->kind == FRAME_ERROR) {
		memcpy(text, body, h->body_len);
		text[h->body_len] = 0;
	}
	if (!h->rpc)
		return error_set(err, h->code, "%s", *text ? text : error_text(h->code));
	if (l)
		HASH_FIND(hh, l->calls, &seq, sizeof seq, c);
	if (!c)
		return 0;   /* it timed out before */
	if (c->row->rpc != h->rpc)
		return error_set(err, ESLURM_PROTOCOL, "answer to another call");
	if (h->kind == FRAME_ERROR) {
		call_end(l, c, -(int)h->code, NULL, *text ? text : error_text(h->code));
		return 0;
	}
	ProtobufCMessage *rsp = unpack_capped(c->row->rsp, body, h->body_len, UNPACK_REPLY_MAX(h->body_len));
	if (!rsp)
		return error_set(err, ESLURM_PROTOCOL, "malformed answer to %s", c->row->name);
	call_end(l, c, 0, rsp, NULL);
	protobuf_c_message_free_unpacked(rsp, NULL);
	return 0;
}

static void link_ended(struct stream *s, int code, const struct error *err)
{
	struct attempt *a = s->owner;
	struct wire_link *l = a->link;
	a->link = NULL;
	if (l)
		link_down(l, code, err);
}

static void attempt_closed(struct stream *s)
{
	free(s->owner);
}

static const struct stream_ops link_ops = { .head = link_head, .frame = link_frame, .ended = link_ended, .closed = attempt_closed };

static void out_release(void *arg)
{
	struct out_shared *o = arg;
	wire_shared_unref(o->shared);
	free(o);
}

/* The shared bytes stay where they are; token, name and rest are copied beside them. */
static void shared_send(struct attempt *a, struct call *c, struct frame_head *h)
{
	size_t token = a->token.len, rest = c->len - c->to_len;
	struct out_shared *o = xmalloc(sizeof *o + token + c->len);
	o->shared = c->shared;
	memcpy(o->own, a->token.data, token);
	memcpy(o->own + token, c->body, c->len);
	struct frame_part part[] = { { o->own, token + c->to_len }, { c->shared->data, c->shared->len }, { o->own + token + c->to_len, rest } };
	c->shared = NULL;
	stream_send_ref(&a->stream, h, part, 3, out_release, o);
}

static void call_send(struct wire_link *l, struct call *c)
{
	struct attempt *a = l->now;
	struct frame_head h = { .kind = FRAME_CALL, .rpc = c->row->rpc, .seq = c->seq, .token_len = a->token.len, .to_len = c->to_len };
	struct frame_part part[2] = { { a->token.data, a->token.len }, { c->body, c->len } };
	if (c->shared)
		shared_send(a, c, &h);
	else
		stream_send(&a->stream, &h, part, 2);
	a->token.len = 0;
	c->sent = true;
	xfree(c->body);
}

/* --- connecting ------------------------------------------------------------------------------ */

static void attempt_fail(struct attempt *a, int code, const char *why)
{
	struct wire_link *l = a->link;
	a->link = NULL;
	stream_end(&a->stream);
	if (!l)
		return;
	struct error err = { 0 };
	error_set(&err, code, "cannot reach %s:%u: %s", l->host, l->port, why);
	link_down(l, code, &err);
}

static void on_connect(uv_connect_t *u, int status)
{
	struct attempt *a = (struct attempt *)((char *)u - offsetof(struct attempt, connect));
	if (!a->link) {
		return;   /* abandoned: already closing */
	}
	if (status < 0) {
		attempt_fail(a, -ESLURM_COMM, uv_strerror(status));
		return;
	}
	a->link->state = LINK_UP;
	for (struct call *c = a->link->calls; c; c = c->hh.next)
		call_send(a->link, c);
	stream_start(&a->stream);
	stream_flush(&a->stream);
}

static void attempt_connect(struct attempt *a)
{
	a->link->state = LINK_CONNECT;
	a->stream.channel.keyed = a->auth;
	a->stream.token_done = true;
	int rc = uv_tcp_connect(&a->connect, &a->stream.tcp, (struct sockaddr *)&a->addr, on_connect);
	if (rc)
		attempt_fail(a, -ESLURM_COMM, uv_strerror(rc));
}

static void token_run(uv_work_t *u)
{
	struct attempt *a = u->data;
	a->rc = auth_token_make(a->auth, NULL, a->stream.channel.key, &a->token, &a->err);
}

static void token_ready(struct attempt *a)
{
	if (!a->link)
		stream_end(&a->stream);
	else if (a->rc < 0)
		attempt_fail(a, a->rc, a->err.line);
	else
		attempt_connect(a);
}

static void token_done(uv_work_t *u, int status)
{
	token_ready(u->data);
}

static void attempt_token(struct attempt *a)
{
	a->link->state = LINK_TOKEN;
	if (a->auth && auth_blocks(a->auth)) {
		a->work.data = a;
		(void)uv_queue_work(a->link->loop, &a->work, token_run, token_done);
		return;
	}
	if (a->auth)
		a->rc = auth_token_make(a->auth, NULL, a->stream.channel.key, &a->token, &a->err);
	token_ready(a);
}

static void on_resolved(uv_getaddrinfo_t *u, int status, struct addrinfo *list)
{
	struct attempt *a = u->data;
	if (!a->link) {
		stream_end(&a->stream);
	} else if (status < 0 || !list) {
		attempt_fail(a, -ESLURM_COMM, status < 0 ? uv_strerror(status) : "the name has no address");
	} else {
		memcpy(&a->addr, list->ai_addr, list->ai_addrlen);
		attempt_token(a);
	}
	uv_freeaddrinfo(list);
}

static void link_connect(struct wire_link *l)
{
	struct attempt *a = xcalloc(1, sizeof *a);
	char port[8];
	a->link = l;
	a->auth = l->auth;
	(void)stream_init(l->loop, &a->stream, &link_ops, a);
	l->now = a;
	l->state = LINK_RESOLVE;
	if (!uv_ip4_addr(l->host, l->port, (struct sockaddr_in *)&a->addr) || !uv_ip6_addr(l->host, l->port, (struct sockaddr_in6 *)&a->addr)) {
		attempt_token(a);
		return;
	}
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	snprintf(port, sizeof port, "%u", l->port);
	a->resolve.data = a;
	int rc = uv_getaddrinfo(l->loop, &a->resolve, on_resolved, l->host, port, &hints);
	if (rc)
		attempt_fail(a, -ESLURM_COMM, uv_strerror(rc));
}

/* Let go of the attempt. One that waits for another thread is closed when that comes back. */
static void link_abandon(struct wire_link *l)
{
	struct attempt *a = l->now;
	enum link_state was = l->state;
	l->now = NULL;
	l->state = LINK_IDLE;
	if (!a)
		return;
	a->link = NULL;
	if (was == LINK_CONNECT || was == LINK_UP)
		stream_end(&a->stream);
}

/* --- the link -------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *t)
{
	struct wire_link *l = t->data;
	l->timer_ms = UINT64_MAX;
	uint64_t now = uv_now(l->loop);
	bool connecting = l->state == LINK_RESOLVE || l->state == LINK_TOKEN || l->state == LINK_CONNECT;
	struct call *c, *next;
	if (l->state == LINK_IDLE && l->calls)
		link_connect(l);
	/* `done` may make and destroy: collect first, tell afterwards. */
	struct call *late = NULL;
	HASH_ITER(hh, l->calls, c, next)
		if (c->deadline_ms <= now) {
			HASH_DEL(l->calls, c);
			HASH_ADD(hh, late, seq, sizeof c->seq, c);
		}
	if (connecting && late && !l->calls)
		link_abandon(l);   /* the peer does not even answer to a connect */
	while ((c = late)) {
		HASH_DEL(late, c);
		c->done(-ESLURM_SOCKET_TIMEOUT, NULL, error_text(ESLURM_SOCKET_TIMEOUT), c->arg);
		call_free(c);
	}
	if (!l->destroyed)
		timer_set(l);
}

static void timer_start(struct wire_link *l, uint64_t at_ms)
{
	uint64_t now = uv_now(l->loop);
	if (at_ms == l->timer_ms)
		return;
	l->timer_ms = at_ms;
	if (at_ms == UINT64_MAX)
		uv_timer_stop(&l->timer);
	else
		uv_timer_start(&l->timer, on_timer, at_ms > now ? at_ms - now : 0, 0);
}

/* Calls wait in order of their making, but not of their deadlines. */
static void timer_set(struct wire_link *l)
{
	uint64_t first = UINT64_MAX;
	for (struct call *c = l->calls; c; c = c->hh.next)
		if (c->deadline_ms < first)
			first = c->deadline_ms;
	if (l->calls && l->state == LINK_IDLE)
		first = uv_now(l->loop);
	timer_start(l, first);
}

struct wire_link *wire_link_create(uv_loop_t *loop, struct wire_auth *a, const char *host, uint16_t port)
{
	struct wire_link *l = xcalloc(1, sizeof *l);
	l->loop = loop;
	l->auth = a;
	l->host = xstrdup(host);
	l->port = port;
	uv_timer_init(loop, &l->timer);
	l->timer.data = l;
	l->timer_ms = UINT64_MAX;
	return l;
}

void wire_link_set_addr(struct wire_link *l, const char *host, uint16_t port)
{
	if (!strcmp(l->host, host) && l->port == port)
		return;
	xstr_set(&l->host, host);
	l->port = port;
	if (l->state == LINK_IDLE)
		return;
	struct error err = { 0 };
	error_set(&err, ESLURM_COMM, "the address changed to %s:%u", host, port);
	link_abandon(l);
	link_down(l, -ESLURM_COMM, &err);
}

/* A call with room for its body: the name is there, the rest is the caller's to write before call_go. */
static struct call *call_make(struct wire_link *l, const char *to, enum rpc rpc, size_t rest, int timeout_ms, wire_done_fn done, void *arg)
{
	size_t to_len = to ? strlen(to) : 0;
	assert(rpc_row(rpc) && !l->destroyed && to_len <= FRAME_TO_MAX);
	struct call *c = xcalloc(1, sizeof *c);
	c->row = rpc_row(rpc);
	c->seq = ++l->last_seq;
	c->done = done;
	c->arg = arg;
	c->deadline_ms = timeout_ms < 0 ? UINT64_MAX : uv_now(l->loop) + timeout_ms;
	c->to_len = (uint16_t)to_len;
	c->len = to_len + rest;
	c->body = xmalloc(c->len + 1);
	if (to_len)
		memcpy(c->body, to, to_len);
	return c;
}

static void call_go(struct wire_link *l, struct call *c)
{
	HASH_ADD(hh, l->calls, seq, sizeof c->seq, c);
	if (l->state == LINK_UP) {
		call_send(l, c);
		stream_flush(&l->now->stream);
	}
	/* IDLE: connect from the timer, so that no failure is told from in here. A later deadline is seen when the timer fires. */
	uint64_t at = l->state == LINK_IDLE ? uv_now(l->loop) : c->deadline_ms;
	if (at < l->timer_ms)
		timer_start(l, at);
}

void wire_link_call_to(struct wire_link *l, const char *to, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, wire_done_fn done, void *arg)
{
	assert(req->descriptor == rpc_row(rpc)->req);
	struct call *c = call_make(l, to, rpc, protobuf_c_message_get_packed_size(req), timeout_ms, done, arg);
	protobuf_c_message_pack(req, c->body + c->to_len);
	call_go(l, c);
}

void wire_link_call_shared(struct wire_link *l, const char *to, enum rpc rpc, struct wire_shared *s, const void *tail, size_t tail_len, int timeout_ms, wire_done_fn done, void *arg)
{
	struct call *c = call_make(l, to, rpc, tail_len, timeout_ms, done, arg);
	memcpy(c->body + c->to_len, tail, tail_len);
	c->shared = s;
	s->refs++;
	call_go(l, c);
}

void wire_link_call(struct wire_link *l, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, wire_done_fn done, void *arg)
{
	wire_link_call_to(l, NULL, rpc, req, timeout_ms, done, arg);
}

void wire_link_on_break(struct wire_link *l, void (*fn)(void *arg), void *arg)
{
	l->on_break = fn;
	l->break_arg = arg;
}

static void link_closed(uv_handle_t *h)
{
	struct wire_link *l = h->data;
	free(l->host);
	free(l);
}

void wire_link_destroy(struct wire_link *l)
{
	if (!l || l->destroyed)
		return;
	l->destroyed = true;
	link_abandon(l);
	calls_fail(l, -ECANCELED, "the caller gave up");
	uv_close((uv_handle_t *)&l->timer, link_closed);
}
