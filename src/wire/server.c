/* server.c - the listening side of daemons (struct wire_server, struct wire_req of wire.h)
 *
 * A connection is nobody's until its token was opened and its first MAC was right. Each call is looked up in the table, held against
 * the policy (default deny), unpacked under a cap and handed to the handler; the answer may come at any later time. Answers of
 * one turn of the loop leave together, one system call a connection.
 * Limits: CALLS_MAX unanswered calls and OUT_MAX bytes of answers a connection: beyond them it is not read from; a connection
 * that shows nothing, half a frame, or does not read its answers for STALL_MS is closed, and one whose owner is still unknown after that time, however
 * busy it looks. Where no more connections can be had, an idle one gives way: a stranger's, else a user's; never a daemon's.
 * Invariant: a wire_req outlives its connection; `conn` is NULL from then on and the answer is dropped. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/log.h"
#include "wire/rpc.h"
#include "wire/stream.h"

#define CALLS_MAX 4096
#define OUT_MAX (4u << 20)
#define STALL_MS 60000
#define STRANGE_MS 1000
#define SWEEP_MS 2000
#define BACKLOG 4096
#define UNKNOWN_MAX 65536       /* body of a call we do not know, kept only to answer it */

struct conn {
	struct stream stream;
	struct wire_server *server;
	struct wire_identity identity;
	struct token_facts facts;        /* between the token and the first right MAC */
	struct token_work *work;         /* munge is being asked */
	char peer[64];
	uint64_t born_ms;
	bool dirty, waiting;             /* in the lists below */
	uint32_t calls;
	struct wire_req *reqs;
	struct conn *next, *prev, *dirty_next;
};
struct wire_server {
	uv_loop_t *loop;
	struct wire_auth *auth;
	wire_handler_fn handler;
	wire_policy_fn policy;
	void *arg;
	uv_tcp_t listener;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_timer_t sweep;
	unsigned handles;                /* own handles still open */
	bool stopping, paused;
	struct conn *conns, *dirty;
	uint64_t conn_count, conn_max;   /* with those whose descriptor is closed already, until the loop has turned */
};
struct wire_req {
	struct conn *conn;
	struct wire_req *next, *prev;
	const struct rpc_row *row;
	uint32_t seq;
	struct wire_identity identity;
	ProtobufCMessage *msg;
	wire_delivered_fn delivered;     /* it came inside another call: the answer's taker; conn is NULL */
	void *delivered_arg;
	void (*on_gone)(struct wire_req *, void *);
	void *gone_arg;
	char peer[64];
	size_t body_len;
	char *to;                        /* behind the body, or NULL */
	uint8_t body[];
};
struct token_work { uv_work_t uv; struct conn *conn; const struct wire_auth *auth; int rc; struct error err; struct token_facts facts; size_t len; uint8_t data[]; };

/* --- answers --------------------------------------------------------------------------------- */

static void conn_update(struct conn *c)
{
	bool over = c->calls >= CALLS_MAX || c->stream.out_bytes >= OUT_MAX || c->work;
	bool hold = over || c->server->paused;
	if (hold != c->stream.held)
		stream_hold(&c->stream, hold);
}

static void conn_dirty(struct conn *c)
{
	if (c->dirty)
		return;
	c->dirty = true;
	c->dirty_next = c->server->dirty;
	c->server->dirty = c;
}

static void dirty_flush(struct wire_server *s)
{
	while (s->dirty) {
		struct conn *c = s->dirty;
		s->dirty = c->dirty_next;
		c->dirty = false;
		stream_flush(&c->stream);
		conn_update(c);
	}
}

static void req_unlink(struct wire_req *r)
{
	struct conn *c = r->conn;
	if (!c)
		return;
	if (r->next)
		r->next->prev = r->prev;
	if (r->prev)
		r->prev->next = r->next;
	else
		c->reqs = r->next;
	c->calls--;
	r->conn = NULL;
}

static void req_free(struct wire_req *r)
{
	if (r->msg)
		protobuf_c_message_free_unpacked(r->msg, NULL);
	free(r);
}

/* The call is answered: forget it. */
static struct conn *req_finish(struct wire_req *r)
{
	struct conn *c = r->conn;
	req_unlink(r);
	if (c)
		conn_dirty(c);
	return c;
}

static void delivered_tell(const struct wire_req *r, int code, const uint8_t *body, size_t len, const char *detail)
{
	if (r->delivered)
		r->delivered(code, body, len, detail, r->delivered_arg);
}

void wire_reply(struct wire_req *r, const ProtobufCMessage *rsp)
{
	assert(rsp->descriptor == r->row->rsp);
	struct conn *c = req_finish(r);
	if (r->delivered) {
		size_t len = protobuf_c_message_get_packed_size(rsp);
		uint8_t *body = xmalloc(len + 1);
		protobuf_c_message_pack(rsp, body);
		delivered_tell(r, 0, body, len, NULL);
		free(body);
	}
	if (c) {
		struct frame_head h = { .kind = FRAME_REPLY, .rpc = r->row->rpc, .seq = r->seq };
		size_t len = protobuf_c_message_get_packed_size(rsp);
		uint8_t small[4096], *body = len <= sizeof small ? small : xmalloc(len);
		protobuf_c_message_pack(rsp, body);
		if (body == small)
			stream_send(&c->stream, &h, &(struct frame_part){ body, len }, 1);
		else
			stream_send_ref(&c->stream, &h, &(struct frame_part){ body, len }, 1, free, body);
	}
	req_free(r);
}

static void error_send(struct conn *c, uint16_t rpc, uint32_t seq, int code, const char *detail)
{
	struct frame_head h = { .kind = FRAME_ERROR, .rpc = rpc, .seq = seq, .code = abs(code) };
	const char *text = detail ? detail : "";
	stream_send(&c->stream, &h, &(struct frame_part){ text, strnlen(text, FRAME_TEXT_MAX) }, 1);
	conn_dirty(c);
}

void wire_reply_error(struct wire_req *r, int code, const char *detail)
{
	assert(code);
	struct conn *c = req_finish(r);
	if (c)
		error_send(c, r->row->rpc, r->seq, code, detail);
	delivered_tell(r, -abs(code), NULL, 0, detail);
	req_free(r);
}

void wire_reply_pieces(struct wire_req *r, const struct wire_piece *piece, size_t n, void (*release)(void *arg), void *arg)
{
	static_assert(sizeof(struct wire_piece) == sizeof(struct frame_part) && offsetof(struct wire_piece, len) == offsetof(struct frame_part, len),
		      "pieces are parts");
	struct conn *c = req_finish(r);
	if (c) {
		struct frame_head h = { .kind = FRAME_REPLY, .rpc = r->row->rpc, .seq = r->seq };
		stream_send_ref(&c->stream, &h, (const struct frame_part *)piece, n, release, arg);
	} else {
		delivered_tell(r, -ESLURM_NOT_SUPPORTED, NULL, 0, "an answer in pieces");   /* slurmd gives none */
		if (release)
			release(arg);
	}
	req_free(r);
}

enum rpc wire_req_rpc(const struct wire_req *r)
{
	return r->row->rpc;
}

const struct wire_identity *wire_req_identity(const struct wire_req *r)
{
	return &r->identity;
}

const ProtobufCMessage *wire_req_msg(const struct wire_req *r)
{
	return r->msg;
}

const uint8_t *wire_req_body(const struct wire_req *r, size_t *ret_len)
{
	*ret_len = r->body_len;
	return r->body;
}

const char *wire_req_peer(const struct wire_req *r)
{
	return r->peer;
}

const char *wire_req_to(const struct wire_req *r)
{
	return r->to;
}

bool wire_req_gone(const struct wire_req *r)
{
	return !r->conn && !r->delivered;
}

void wire_req_on_gone(struct wire_req *r, void (*fn)(struct wire_req *, void *), void *arg)
{
	r->on_gone = fn;
	r->gone_arg = arg;
}

/* --- a connection's frames ------------------------------------------------------------------- */

static int conn_head(struct stream *st, const struct frame_head *h, struct error *err)
{
	const struct rpc_row *row = rpc_row(h->rpc);
	if (h->kind != FRAME_CALL)
		return error_set(err, ESLURM_PROTOCOL, "a frame of kind %d where calls are taken", h->kind);
	if (h->body_len - h->to_len > (row ? row->req_max : UNKNOWN_MAX))
		return error_set(err, ESLURM_TOO_LARGE, "request %s has %u bytes, at most %u are taken", row ? row->name : "unknown", h->body_len,
				 row ? row->req_max : UNKNOWN_MAX);
	if (!st->channel.keyed && !h->token_len && (!row || row->who != RPC_WHO_OPEN))
		return error_set(err, ESLURM_AUTH, "request %s needs a token", row ? row->name : "unknown");
	return 0;
}

static void token_opened(struct conn *c, const struct token_facts *f)
{
	c->facts = *f;
	memcpy(c->stream.channel.key, f->session, FRAME_KEY);
	c->stream.channel.keyed = true;
}

static void work_run(uv_work_t *u)
{
	struct token_work *w = (struct token_work *)u;
	w->rc = auth_token_open(w->auth, w->data, w->len, &w->facts, &w->err);
}

static void work_done(uv_work_t *u, int status)
{
	struct token_work *w = (struct token_work *)u;
	struct conn *c = w->conn;
	if (c) {
		c->work = NULL;
		if (w->rc < 0)
			stream_refuse(&c->stream, w->rc, &w->err);
		else
			token_opened(c, &w->facts);
		conn_update(c);
		dirty_flush(c->server);
	}
	free(w);
}

static int conn_token(struct stream *st, const uint8_t *data, size_t len, struct error *err)
{
	struct conn *c = st->owner;
	struct wire_server *s = c->server;
	if (!s->auth)
		return error_set(err, ESLURM_AUTH, "this daemon checks no tokens");
	if (!auth_blocks(s->auth)) {
		struct token_facts f;
		int rc = auth_token_open(s->auth, data, len, &f, err);
		if (!rc)
			token_opened(c, &f);
		return rc;
	}
	struct token_work *w = xcalloc(1, sizeof *w + len);
	w->conn = c;
	w->auth = s->auth;
	w->len = len;
	memcpy(w->data, data, len);
	c->work = w;
	(void)uv_queue_work(s->loop, &w->uv, work_run, work_done);
	conn_update(c);
	return 1;
}

/* The first frame's MAC was right, so its sender has the token's session key. */
static int conn_known(struct conn *c, struct error *err)
{
	int rc = auth_token_use(c->server->auth, &c->facts, err);
	if (rc)
		return rc;
	c->identity = (struct wire_identity){ .uid = c->facts.uid, .gid = c->facts.gid, .known = true };
	memcpy(c->identity.bound, c->facts.bound, sizeof c->identity.bound);
	memset(&c->facts, 0, sizeof c->facts);
	return 0;
}

static bool is_allowed(const struct wire_server *s, const struct wire_identity *id, enum rpc_who who)
{
	if (who == RPC_WHO_OPEN)
		return true;
	if (!id->known)
		return false;
	return who == RPC_WHO_ANY || (s->policy && s->policy(id, who, s->arg));
}

static bool call_allowed(const struct conn *c, enum rpc_who who) { return is_allowed(c->server, &c->identity, who); }

static struct wire_req *req_make(const struct rpc_row *row, const struct wire_identity *id, const char *peer, const char *to, size_t to_len, const uint8_t *body, size_t len)
{
	struct wire_req *r = xmalloc(sizeof *r + len + to_len + 1);
	*r = (struct wire_req){ .row = row, .identity = *id, .body_len = len };
	snprintf(r->peer, sizeof r->peer, "%s", peer);
	memcpy(r->body, body, len);
	if (to_len) {
		r->to = (char *)r->body + len;
		memcpy(r->to, to, to_len);
		r->to[to_len] = 0;
	}
	return r;
}

static struct wire_req *req_create(struct conn *c, const struct rpc_row *row, const struct frame_head *h, const uint8_t *body)
{
	struct wire_req *r = req_make(row, &c->identity, c->peer, (const char *)body, h->to_len, body + h->to_len, h->body_len - h->to_len);
	r->conn = c;
	r->seq = h->seq;
	r->next = c->reqs;
	if (r->next)
		r->next->prev = r;
	c->reqs = r;
	c->calls++;
	return r;
}

static int conn_frame(struct stream *st, const struct frame_head *h, const uint8_t *body, struct error *err)
{
	struct conn *c = st->owner;
	const struct rpc_row *row = rpc_row(h->rpc);
	int rc = st->channel.keyed && !c->identity.known ? conn_known(c, err) : 0;
	if (rc)
		return rc;
	if (!row) {
		char text[64];
		snprintf(text, sizeof text, "call %u is not known here", h->rpc);
		error_send(c, h->rpc, h->seq, ESLURM_NOT_SUPPORTED, text);
		return 0;
	}
	if (!call_allowed(c, row->who)) {
		log_debug("%s from uid %u at %s denied", row->name, c->identity.uid, c->peer);
		error_send(c, h->rpc, h->seq, ESLURM_ACCESS_DENIED, NULL);
		return 0;
	}
	ProtobufCMessage *msg = wire_unpack(row->req, body + h->to_len, h->body_len - h->to_len);
	if (!msg) {
		log_debug("%s from uid %u at %s is malformed", row->name, c->identity.uid, c->peer);
		error_send(c, h->rpc, h->seq, ESLURM_PROTOCOL, NULL);
		return 0;
	}
	struct wire_req *r = req_create(c, row, h, body);
	r->msg = msg;
	c->server->handler(r, c->server->arg);
	conn_update(c);
	return 0;
}

void wire_server_deliver(struct wire_server *s, const struct wire_call_in *in, wire_delivered_fn done, void *arg)
{
	const struct rpc_row *row = in->rpc <= UINT16_MAX ? rpc_row((uint16_t)in->rpc) : NULL;
	int code = !row ? -ESLURM_NOT_SUPPORTED : !is_allowed(s, in->identity, row->who) ? -ESLURM_ACCESS_DENIED : in->len > row->req_max ? -ESLURM_TOO_LARGE : 0;
	ProtobufCMessage *msg = code ? NULL : wire_unpack(row->req, in->body, in->len);
	if (!msg) {
		done(code ? code : -ESLURM_PROTOCOL, NULL, 0, NULL, arg);
		return;
	}
	struct wire_req *r = req_make(row, in->identity, in->peer, in->to, strlen(in->to), in->body, in->len);
	r->msg = msg;
	r->delivered = done;
	r->delivered_arg = arg;
	s->handler(r, s->arg);
}

static void conn_drained(struct stream *st)
{
	conn_update(st->owner);
}

static void conn_ended(struct stream *st, int code, const struct error *err)
{
	struct conn *c = st->owner;
	if (st->refused || code == -ESLURM_AUTH || code == -ESLURM_PROTOCOL)
		log_verbose("connection from %s refused: %s", c->peer, err->line);
	if (c->work)
		c->work->conn = NULL;
	c->work = NULL;
	while (c->reqs) {
		struct wire_req *r = c->reqs;
		req_unlink(r);
		void (*gone)(struct wire_req *, void *) = r->on_gone;
		r->on_gone = NULL;
		if (gone)
			gone(r, r->gone_arg);
	}
}

/* --- the server ------------------------------------------------------------------------------ */

static void server_closed(struct wire_server *s)
{
	if (s->stopping && !s->handles && !s->conns)
		free(s);
}

static void conn_closed(struct stream *st)
{
	struct conn *c = st->owner;
	struct wire_server *s = c->server;
	for (struct conn **p = &s->dirty; c->dirty && *p; p = &(*p)->dirty_next)
		if (*p == c) {
			*p = c->dirty_next;
			break;
		}
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		s->conns = c->next;
	s->conn_count--;
	free(c);
	server_closed(s);
}

static const struct stream_ops conn_ops = {
	.head = conn_head, .token = conn_token, .frame = conn_frame, .ended = conn_ended, .closed = conn_closed, .drained = conn_drained,
};

static void peer_write(struct conn *c)
{
	struct sockaddr_storage a;
	int len = sizeof a;
	char host[48] = "?";
	unsigned port = 0;
	if (!uv_tcp_getpeername(&c->stream.tcp, (struct sockaddr *)&a, &len)) {
		if (a.ss_family == AF_INET)
			uv_ip4_name((struct sockaddr_in *)&a, host, sizeof host);
		else
			uv_ip6_name((struct sockaddr_in6 *)&a, host, sizeof host);
		port = ntohs(a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port : ((struct sockaddr_in6 *)&a)->sin6_port);
	}
	snprintf(c->peer, sizeof c->peer, a.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

/* One more connection than can be had: the oldest that nobody waits on is closed, a stranger's if there is one that has had its time. False: there is none. */
static bool make_room(struct wire_server *s)
{
	struct conn *stranger = NULL, *user = NULL;
	uint64_t open = 0, now = uv_now(s->loop);
	for (struct conn *c = s->conns; c; c = c->next) {
		if (uv_is_closing((uv_handle_t *)&c->stream.tcp))
			continue;
		open++;
		if (c->calls)
			continue;
		if (c->stream.refused || !c->identity.known)
			stranger = c;
		else if (!call_allowed(c, RPC_WHO_NODE) && !c->stream.out_bytes)
			user = c;
	}
	if (open < s->conn_max)
		return true;
	/* One that has just come may be about to say who it is. */
	struct conn *victim = stranger && (!user || now - stranger->born_ms >= STRANGE_MS) ? stranger : user;
	if (victim)
		stream_end(&victim->stream);
	return victim;
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct wire_server *s = listener->data;
	if (status < 0) {
		log_error("cannot accept a connection: %s", uv_strerror(status));
		return;
	}
	bool room = s->conn_count < s->conn_max || make_room(s);
	struct conn *c = xcalloc(1, sizeof *c);
	c->server = s;
	(void)stream_init(s->loop, &c->stream, &conn_ops, c);   /* makes no socket yet, so it cannot fail */
	s->conn_count++;
	c->born_ms = uv_now(s->loop);
	c->stream.channel.server = true;
	if ((c->next = s->conns))
		c->next->prev = c;
	s->conns = c;
	if (uv_accept(listener, (uv_stream_t *)&c->stream.tcp) || !room) {
		log_error("connection closed at once: %llu are open", (unsigned long long)s->conn_max);
		stream_end(&c->stream);
		return;
	}
	peer_write(c);
	stream_start(&c->stream);
}

static void on_prepare(uv_prepare_t *h)
{
	dirty_flush(h->data);
}

static void on_check(uv_check_t *h)
{
	dirty_flush(h->data);
}

static void on_sweep(uv_timer_t *h)
{
	struct wire_server *s = h->data;
	uint64_t now = uv_now(s->loop);
	for (struct conn *c = s->conns; c; c = c->next)
		if (stream_is_stale(&c->stream, now, STALL_MS) || (!c->identity.known && !c->calls && now - c->born_ms >= STALL_MS))
			stream_end(&c->stream);
}

static void own_closed(uv_handle_t *h)
{
	struct wire_server *s = h->data;
	s->handles--;
	server_closed(s);
}

void wire_server_stop(struct wire_server *s)
{
	if (!s || s->stopping)
		return;
	dirty_flush(s);
	s->stopping = true;
	for (struct conn *c = s->conns; c; c = c->next)
		stream_end(&c->stream);
	uv_close((uv_handle_t *)&s->listener, own_closed);
	uv_close((uv_handle_t *)&s->prepare, own_closed);
	uv_close((uv_handle_t *)&s->check, own_closed);
	uv_close((uv_handle_t *)&s->sweep, own_closed);
}

static int host_address(const char *host, uint16_t port, struct sockaddr_storage *ret, struct error *err)
{
	if (!host || !*host)
		return uv_ip4_addr("0.0.0.0", port, (struct sockaddr_in *)ret);
	if (!uv_ip4_addr(host, port, (struct sockaddr_in *)ret) || !uv_ip6_addr(host, port, (struct sockaddr_in6 *)ret))
		return 0;
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *list;
	char text[8];
	snprintf(text, sizeof text, "%u", port);
	int e = getaddrinfo(host, text, &hints, &list);
	if (e)
		return error_set(err, EADDRNOTAVAIL, "cannot resolve host \"%s\": %s", host, gai_strerror(e));
	memcpy(ret, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static void handles_open(struct wire_server *s)
{
	uv_tcp_init(s->loop, &s->listener);
	uv_prepare_init(s->loop, &s->prepare);
	uv_check_init(s->loop, &s->check);
	uv_timer_init(s->loop, &s->sweep);
	s->handles = 4;
	s->listener.data = s->prepare.data = s->check.data = s->sweep.data = s;
	uv_prepare_start(&s->prepare, on_prepare);
	uv_check_start(&s->check, on_check);
	uv_timer_start(&s->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	uv_unref((uv_handle_t *)&s->prepare);
	uv_unref((uv_handle_t *)&s->check);
	uv_unref((uv_handle_t *)&s->sweep);
}

int wire_server_start(uv_loop_t *loop, struct wire_auth *a, const char *host, uint16_t port, wire_handler_fn handler,
		      wire_policy_fn policy, void *arg, struct wire_server **ret, struct error *err)
{
	struct sockaddr_storage addr = { 0 };
	struct rlimit files;
	int rc = host_address(host, port, &addr, err);
	if (rc < 0)
		return rc;
	struct wire_server *s = xcalloc(1, sizeof *s);
	*s = (struct wire_server){ .loop = loop, .auth = a, .handler = handler, .policy = policy, .arg = arg };
	s->conn_max = !getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur > 512 ? files.rlim_cur - 256 : 256;
	handles_open(s);
	rc = uv_tcp_bind(&s->listener, (struct sockaddr *)&addr, 0);
	if (!rc)
		rc = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
	if (rc) {
		wire_server_stop(s);
		error_set(err, rc, "cannot listen on %s:%u: %s", host && *host ? host : "*", port, uv_strerror(rc));
		error_hint(err, "another daemon may be running there; change the port in slurm.conf or stop it");
		return rc;
	}
	*ret = s;
	return 0;
}

void wire_server_pause(struct wire_server *s, bool pause)
{
	if (s->paused == pause)
		return;
	s->paused = pause;
	for (struct conn *c = s->conns; c; c = c->next)
		if (!c->stream.ended)
			conn_update(c);
}

uint64_t wire_server_connections(const struct wire_server *s)
{
	return s->conn_count;
}

uint16_t wire_server_port(const struct wire_server *s)
{
	struct sockaddr_storage a;
	int len = sizeof a;
	if (uv_tcp_getsockname(&s->listener, (struct sockaddr *)&a, &len))
		return 0;
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port : ((struct sockaddr_in *)&a)->sin_port);
}
