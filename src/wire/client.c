/* client.c - blocking calls of commands (struct wire_client of wire.h)
 *
 * The token travels in the first frame, before the first body, so a fresh connection costs no round trip more than TCP's own. While a
 * send waits for room, answers are taken in, so a full pipeline cannot lock both sides. Answers that wire_call meets while
 * it waits for its own are kept for wire_recv.
 * Invariant: after any failure of the connection `broken` is set and every later call fails with that code. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/full.h"
#include "wire/auth.h"
#include "wire/rpc.h"

#define READ_SIZE (64 * 1024)
#define PARTS 5                 /* head, token, receiver, two pieces of the body */

struct answer { struct answer *next; struct frame_head head; uint8_t *body; };
struct wire_client {
	int fd, broken;
	char *peer;
	struct frame_channel channel;
	struct token token;             /* len 0: sent, or none */
	uint32_t last_seq;
	uint8_t in[READ_SIZE];          /* bytes read, not yet looked at: [in_at, in_end) */
	size_t in_at, in_end;
	bool has_head;                  /* a frame being taken in */
	uint8_t raw[FRAME_HEAD];
	struct answer now;
	size_t body_have;
	struct answer *kept, **kept_last;
	struct iovec out[PARTS];           /* wire_begin: what is not sent yet; NULL bases: nothing */
	uint8_t out_raw[FRAME_HEAD];
};

/* --- connecting ------------------------------------------------------------------------------ */

/* < 0: for ever, as poll has it. */
static int ms_left(uint64_t deadline)
{
	if (deadline == UINT64_MAX)
		return -1;
	uint64_t now = clock_mono_ms();
	return now >= deadline ? 0 : deadline - now > INT_MAX ? INT_MAX : (int)(deadline - now);
}

static uint64_t deadline_of(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : clock_mono_ms() + timeout_ms;
}

static int fd_wait(int fd, short events, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;
	while ((n = poll(&p, 1, ms_left(deadline))) < 0 && errno == EINTR)
		;
	return n < 0 ? -errno : n ? p.revents : -ESLURM_SOCKET_TIMEOUT;
}

/* How the connection that was begun has ended. */
static int fd_connected(int fd)
{
	int so = 0;
	socklen_t n = sizeof so;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &so, &n) ? -errno : -so;
}

/* deadline 0: begin only. */
static int addr_connect(const struct sockaddr *addr, socklen_t len, uint64_t deadline)
{
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	int rc = connect(fd, addr, len) ? -errno : 0;
	if (rc == -EINPROGRESS && (!deadline || (rc = fd_wait(fd, POLLOUT, deadline)) > 0))
		rc = deadline ? fd_connected(fd) : 0;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int host_connect(const char *host, uint16_t port, uint64_t deadline, struct error *err)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	int rc = -EHOSTUNREACH;
	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {   /* no need to wake the resolver */
		rc = addr_connect((struct sockaddr *)&v4, sizeof v4, deadline);
	} else {
		struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list;
		char text[8];
		snprintf(text, sizeof text, "%u", port);
		int e = getaddrinfo(host, text, &hints, &list);
		if (e) {
			full_needed();   /* other resolvers may know it */
			return error_set(err, ESLURM_COMM, "cannot resolve host \"%s\": %s", host, gai_strerror(e));
		}
		for (struct addrinfo *i = list; i && rc < 0; i = i->ai_next)
			rc = addr_connect(i->ai_addr, i->ai_addrlen, deadline);
		freeaddrinfo(list);
	}
	if (rc == -ESLURM_SOCKET_TIMEOUT)
		return error_set(err, ESLURM_SOCKET_TIMEOUT, "no answer from %s:%u", host, port);
	return rc < 0 ? error_set(err, ESLURM_COMM, "cannot connect to %s:%u: %s", host, port, strerror(-rc)) : rc;
}

static int client_make(struct wire_auth *a, const char *host, uint16_t port, uint64_t deadline, const uint8_t *bind_hash, struct wire_client **ret, struct error *err)
{
	int fd = host_connect(host, port, deadline, err);
	if (fd < 0)
		return fd;
	struct wire_client *c = xmalloc(sizeof *c);   /* not cleared: the buffer is large */
	memset(c, 0, offsetof(struct wire_client, token.data));
	c->last_seq = 0;
	c->in_at = c->in_end = c->body_have = 0;
	c->has_head = false;
	c->now.body = NULL;
	c->kept = NULL;
	c->kept_last = &c->kept;
	memset(c->out, 0, sizeof c->out);
	c->fd = fd;
	c->peer = xasprintf("%s:%u", host, port);
	int rc = a ? auth_token_make(a, bind_hash, c->channel.key, &c->token, err) : 0;
	if (rc < 0) {
		wire_client_close(c);
		return rc;
	}
	c->channel.keyed = a;
	*ret = c;
	return 0;
}

int wire_client_open(struct wire_auth *a, const char *host, uint16_t port, int timeout_ms, const uint8_t *bind_hash,
		     struct wire_client **ret, struct error *err)
{
	return client_make(a, host, port, deadline_of(timeout_ms), bind_hash, ret, err);
}

int wire_client_start(struct wire_auth *a, const char *host, uint16_t port, const uint8_t *bind_hash, struct wire_client **ret, struct error *err)
{
	return client_make(a, host, port, 0, bind_hash, ret, err);
}

int wire_client_ready(struct wire_client *c, struct error *err)
{
	int rc = fd_connected(c->fd);
	return rc ? error_set(err, ESLURM_COMM, "cannot connect to %s: %s", c->peer, strerror(-rc)) : 0;
}

void wire_client_close(struct wire_client *c)
{
	if (!c)
		return;
	while (c->kept) {
		struct answer *a = c->kept;
		c->kept = a->next;
		free(a->body);
		free(a);
	}
	free(c->now.body);
	close(c->fd);
	free(c->peer);
	memset(&c->channel, 0, sizeof c->channel);
	free(c);
}

int wire_client_fd(const struct wire_client *c)
{
	return c->fd;
}

static int client_break(struct wire_client *c, int code, struct error *err, const char *why)
{
	c->broken = -abs(code);
	return error_set(err, code, "connection to %s: %s", c->peer, why);
}

/* --- taking answers in ----------------------------------------------------------------------- */

/* Reads what is there now. 0, or the connection's end. */
static int bytes_take(struct wire_client *c, struct error *err)
{
	bool into_body = c->has_head && c->in_at == c->in_end;
	if (c->in_at == c->in_end)
		c->in_at = c->in_end = 0;
	uint8_t *to = into_body ? c->now.body + c->body_have : c->in + c->in_end;
	size_t room = into_body ? c->now.head.body_len - c->body_have : READ_SIZE - c->in_end;
	if (!room)
		return 0;
	ssize_t n = read(c->fd, to, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return client_break(c, ESLURM_COMM, err, n ? strerror(errno) : "closed by the other side");
	if (into_body)
		c->body_have += n;
	else
		c->in_end += n;
	return 0;
}

static size_t bytes_move(struct wire_client *c, void *to, size_t want)
{
	size_t n = c->in_end - c->in_at < want ? c->in_end - c->in_at : want;
	memcpy(to, c->in + c->in_at, n);
	c->in_at += n;
	return n;
}

/* A list of 50,000 jobs takes 11 MB: on huge pages, where the system gives them, it comes without 2,800 page faults. */
static void *body_alloc(size_t len)
{
	size_t huge = 2u << 20;
	if (len < 2 * huge)
		return malloc(len);
	len = (len + huge - 1) / huge * huge;
	void *body = aligned_alloc(huge, len);
	if (body)
		(void)madvise(body, len, MADV_HUGEPAGE);   /* only advice: without it small pages serve */
	return body;
}

static int head_take(struct wire_client *c, struct error *err)
{
	if (c->in_end - c->in_at < FRAME_HEAD) {
		memmove(c->in, c->in + c->in_at, c->in_end - c->in_at);
		c->in_end -= c->in_at;
		c->in_at = 0;
		return 0;
	}
	bytes_move(c, c->raw, FRAME_HEAD);
	int rc = frame_head_read(c->raw, &c->now.head);
	if (rc < 0)
		return client_break(c, rc, err, error_text(rc));
	if (c->now.head.kind == FRAME_CALL || c->now.head.body_len > WIRE_REPLY_MAX)
		return client_break(c, ESLURM_PROTOCOL, err, "an answer that is none, or too long");
	c->now.body = body_alloc(c->now.head.body_len + 1ul);
	if (!c->now.body)
		return client_break(c, ENOMEM, err, "no memory for the answer");
	c->has_head = true;
	c->body_have = 0;
	return 0;
}

/* A refusal carries no MAC (frame.h): the server could not open our token, so there is no key it could share with us. */
static int refusal_take(struct wire_client *c, struct error *err)
{
	c->now.body[c->now.head.body_len] = 0;
	c->broken = -(int)c->now.head.code;
	return error_set(err, c->broken, "%s refused the call: %s", c->peer,
			 c->now.head.body_len ? (char *)c->now.body : error_text(c->broken));
}

/* 1: c->now is a whole, checked answer (its body is the caller's); 0: not yet. */
static int answer_take(struct wire_client *c, struct error *err)
{
	int rc;
	if (!c->has_head && ((rc = head_take(c, err)) || !c->has_head))
		return rc;
	c->body_have += bytes_move(c, c->now.body + c->body_have, c->now.head.body_len - c->body_have);
	if (c->body_have < c->now.head.body_len)
		return 0;
	c->has_head = false;
	if (c->now.head.kind == FRAME_ERROR && !c->now.head.rpc)
		return refusal_take(c, err);
	struct frame_part part = { c->now.body, c->now.head.body_len };
	if (!frame_check(&c->channel, c->raw, &part, 1))
		return client_break(c, ESLURM_AUTH, err, "an answer that this cluster did not make");
	c->now.body[c->now.head.body_len] = 0;
	return 1;
}

static int answer_wait(struct wire_client *c, uint64_t deadline, struct answer *ret, struct error *err)
{
	for (;;) {
		int rc = c->broken ? error_set(err, c->broken, "connection to %s is broken", c->peer) : answer_take(c, err);
		if (rc > 0) {
			*ret = c->now;
			c->now.body = NULL;
			return 0;
		}
		if (rc < 0)
			return rc;
		rc = fd_wait(c->fd, POLLIN, deadline);
		if (rc == -ESLURM_SOCKET_TIMEOUT)
			return error_set(err, ESLURM_SOCKET_TIMEOUT, "no answer from %s in time", c->peer);
		if (rc < 0)
			return client_break(c, ESLURM_COMM, err, strerror(-rc));
		if ((rc = bytes_take(c, err)))
			return rc;
	}
}

static int answer_keep(struct wire_client *c, const struct answer *a)
{
	struct answer *k = xmemdup(a, sizeof *a);
	k->next = NULL;
	*c->kept_last = k;
	c->kept_last = &k->next;
	return 0;
}

/* While sending: take in whatever comes, so that the server can go on writing. */
static int answers_drain(struct wire_client *c, struct error *err)
{
	int rc = bytes_take(c, err);
	while (!rc && (rc = answer_take(c, err)) > 0) {
		rc = answer_keep(c, &c->now);
		c->now.body = NULL;
	}
	return rc;
}

/* --- sending --------------------------------------------------------------------------------- */

static int send_failed(struct wire_client *c, int code, struct error *err)
{
	struct answer a;   /* a refusal may be the reason, and says more */
	while (!answer_wait(c, clock_mono_ms(), &a, err))
		free(a.body);
	if (c->broken && c->broken != -ESLURM_COMM)
		return c->broken;
	return client_break(c, ESLURM_COMM, err, strerror(code));
}

static void bytes_sent(struct iovec **v, int *n, size_t put)
{
	for (; *n && put >= (*v)->iov_len; ++*v, --*n)
		put -= (*v)->iov_len;
	if (*n) {
		(*v)->iov_base = (uint8_t *)(*v)->iov_base + put;
		(*v)->iov_len -= put;
	}
}

static int bytes_send(struct wire_client *c, struct iovec *v, int n, struct error *err)
{
	while (n) {
		struct msghdr m = { .msg_iov = v, .msg_iovlen = n };
		full_sent();
		ssize_t put = sendmsg(c->fd, &m, MSG_NOSIGNAL);
		if (put < 0 && errno == EAGAIN) {
			int rc = fd_wait(c->fd, POLLIN | POLLOUT, UINT64_MAX);
			if (rc > 0 && (rc & POLLIN) && (rc = answers_drain(c, err)))
				return rc;
			continue;
		}
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return send_failed(c, errno, err);
		bytes_sent(&v, &n, (size_t)put);
	}
	return 0;
}

int wire_send(struct wire_client *c, enum rpc rpc, const ProtobufCMessage *req, uint32_t *ret_seq, struct error *err)
{
	const struct rpc_row *row = rpc_row(rpc);
	assert(row && req->descriptor == row->req);
	if (c->broken)
		return error_set(err, c->broken, "connection to %s is broken", c->peer);
	size_t len = protobuf_c_message_get_packed_size(req);
	if (len > row->req_max)
		return error_set(err, ESLURM_TOO_LARGE, "request %s has %zu bytes, at most %u are taken", row->name, len, row->req_max);
	uint8_t small[4096], *body = len <= sizeof small ? small : xmalloc(len), raw[FRAME_HEAD];
	protobuf_c_message_pack(req, body);
	struct frame_head h = { .kind = FRAME_CALL, .rpc = rpc, .seq = ++c->last_seq, .token_len = c->token.len, .body_len = len };
	struct frame_part part[2] = { { c->token.data, c->token.len }, { body, len } };
	frame_head_write(&h, raw);
	frame_seal(&c->channel, raw, part, 2);
	struct iovec v[3] = { { raw, sizeof raw }, { c->token.data, c->token.len }, { body, len } };
	int rc = bytes_send(c, v, 3, err);
	c->token.len = 0;
	if (body != small)
		free(body);
	if (!rc && ret_seq)
		*ret_seq = h.seq;
	return rc;
}

int wire_begin(struct wire_client *c, const struct wire_request *q, struct error *err)
{
	const struct rpc_row *row = rpc_row(q->rpc);
	size_t to_len = strlen(q->to), len = q->len + q->tail_len;
	if (c->broken)
		return error_set(err, c->broken, "connection to %s is broken", c->peer);
	if (len > row->req_max || to_len > FRAME_TO_MAX)
		return error_set(err, ESLURM_TOO_LARGE, "request %s has %zu bytes, at most %u are taken", row->name, len, row->req_max);
	struct frame_head h = { .kind = FRAME_CALL, .rpc = q->rpc, .seq = ++c->last_seq, .token_len = c->token.len, .to_len = to_len, .body_len = to_len + len };
	struct frame_part part[PARTS - 1] = { { c->token.data, c->token.len }, { q->to, to_len }, { q->body, q->len }, { q->tail, q->tail_len } };
	frame_head_write(&h, c->out_raw);
	frame_seal(&c->channel, c->out_raw, part, PARTS - 1);
	c->out[0] = (struct iovec){ c->out_raw, FRAME_HEAD };
	for (size_t i = 0; i + 1 < PARTS; i++)
		c->out[i + 1] = (struct iovec){ (void *)part[i].data, part[i].len };
	c->token.len = 0;
	return 0;
}

int wire_flush(struct wire_client *c, struct error *err)
{
	for (;;) {
		struct iovec *v = c->out;
		int n = PARTS;
		bytes_sent(&v, &n, 0);          /* past what is empty */
		if (!n)
			return 0;
		full_sent();
		ssize_t put = sendmsg(c->fd, &(struct msghdr){ .msg_iov = v, .msg_iovlen = (size_t)n }, MSG_NOSIGNAL);
		if (put < 0 && errno == EAGAIN)
			return 1;
		if (put < 0 && errno != EINTR)
			return send_failed(c, errno, err);
		for (size_t left = put > 0 ? (size_t)put : 0; left; v++) {
			size_t here = left < v->iov_len ? left : v->iov_len;
			v->iov_base = (uint8_t *)v->iov_base + here;
			v->iov_len -= here;
			left -= here;
		}
	}
}

/* --- calls ----------------------------------------------------------------------------------- */

static int answer_error(struct wire_client *c, const struct answer *a, struct error *err)
{
	if (a->head.kind == FRAME_REPLY)
		return 0;
	return error_set(err, a->head.code, "%s", a->head.body_len ? (const char *)a->body : error_text(a->head.code));
}

static int answer_unpack(struct wire_client *c, const struct answer *a, ProtobufCMessage **ret, struct error *err)
{
	const struct rpc_row *row = rpc_row(a->head.rpc);
	*ret = row ? unpack_capped(row->rsp, a->body, a->head.body_len, UNPACK_REPLY_MAX(a->head.body_len)) : NULL;
	return *ret ? 0 : client_break(c, ESLURM_PROTOCOL, err, "malformed answer");
}

static int call_answer(struct wire_client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, struct answer *ret, struct error *err)
{
	uint64_t deadline = deadline_of(timeout_ms);
	uint32_t seq = 0;
	int rc = wire_send(c, rpc, req, &seq, err);
	while (!rc) {
		if ((rc = answer_wait(c, deadline, ret, err)))
			return rc;
		if (ret->head.seq == seq)
			break;
		rc = answer_keep(c, ret);
	}
	if (!rc && ret->head.rpc != rpc) {
		free(ret->body);
		rc = client_break(c, ESLURM_PROTOCOL, err, "answer to another call");
	}
	return rc;
}

int wire_call(struct wire_client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret_rsp, struct error *err)
{
	struct answer a;
	int rc = call_answer(c, rpc, req, timeout_ms, &a, err);
	if (rc)
		return rc;
	if (!(rc = answer_error(c, &a, err)))
		rc = answer_unpack(c, &a, ret_rsp, err);
	free(a.body);
	return rc;
}

int wire_call_raw(struct wire_client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, uint8_t **ret, size_t *ret_len, struct error *err)
{
	struct answer a;
	int rc = call_answer(c, rpc, req, timeout_ms, &a, err);
	if (rc)
		return rc;
	if ((rc = answer_error(c, &a, err))) {
		free(a.body);
		return rc;
	}
	*ret = a.body;
	*ret_len = a.head.body_len;
	return 0;
}

int wire_recv(struct wire_client *c, int timeout_ms, uint32_t *ret_seq, int *ret_code, ProtobufCMessage **ret_rsp, struct error *err)
{
	struct answer a;
	int rc = 0;
	if (c->kept) {
		struct answer *k = c->kept;
		a = *k;
		if (!(c->kept = k->next))
			c->kept_last = &c->kept;
		free(k);
	} else if ((rc = answer_wait(c, deadline_of(timeout_ms), &a, err))) {
		return rc;
	}
	*ret_seq = a.head.seq;
	*ret_rsp = NULL;
	*ret_code = answer_error(c, &a, err);
	if (!*ret_code)
		rc = answer_unpack(c, &a, ret_rsp, err);
	free(a.body);
	return rc;
}
