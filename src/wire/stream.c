/* stream.c - frames over a TCP connection on a libuv loop (see stream.h) */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/stream.h"

#define READ_SIZE (64 * 1024)

struct stream_out {
	struct stream_out *next;
	void (*release)(void *);
	void *arg;
	size_t bytes, bufs;
	uv_buf_t buf[];                  /* head first; a copied body follows the bufs in memory */
};
struct write_req { uv_write_t uv; struct stream_out *list; size_t bytes; };

static void outs_free(struct stream_out *o)
{
	while (o) {
		struct stream_out *next = o->next;
		if (o->release)
			o->release(o->arg);
		free(o);
		o = next;
	}
}

int stream_init(uv_loop_t *loop, struct stream *s, const struct stream_ops *ops, void *owner)
{
	memset(s, 0, sizeof *s);
	s->ops = ops;
	s->owner = owner;
	s->out_last = &s->out;
	s->tcp.data = s;
	s->progress_ms = uv_now(loop);
	return uv_tcp_init(loop, &s->tcp);
}

/* --- ending ---------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
	struct stream *s = h->data;
	free(s->in);
	s->in = NULL;
	outs_free(s->out);
	s->out = NULL;
	s->ops->closed(s);
}

static void stream_close(struct stream *s)
{
	if (!uv_is_closing((uv_handle_t *)&s->tcp))
		uv_close((uv_handle_t *)&s->tcp, on_closed);
}

static void stream_ended(struct stream *s, int code, const struct error *err)
{
	static const struct error none;
	if (s->ended)
		return;
	s->ended = true;
	s->ops->ended(s, code, err ? err : &none);
}

void stream_end(struct stream *s)
{
	stream_close(s);
	stream_ended(s, -ECANCELED, NULL);
}

static void stream_break(struct stream *s, int code, const char *why)
{
	struct error err = { 0 };
	error_set(&err, code, "%s", why);
	stream_close(s);
	stream_ended(s, -abs(code), &err);
}

/* Say why, then wait for the peer to hang up: closing at once with unread bytes would reset the connection and lose the words. */
void stream_refuse(struct stream *s, int code, const struct error *err)
{
	if (s->ended)
		return;
	if (!s->channel.server) {
		stream_close(s);
		stream_ended(s, code, err);
		return;
	}
	size_t n = strlen(err->line);
	struct frame_head h = { .kind = FRAME_ERROR, .code = -code };
	struct frame_part part = { err->line, n };
	s->channel.keyed = false;
	stream_send(s, &h, &part, 1);
	stream_flush(s);
	(void)uv_shutdown(&s->shutdown, (uv_stream_t *)&s->tcp, NULL);
	s->refused = true;
	s->in_len = 0;
	stream_ended(s, code, err);
}

bool stream_is_stale(struct stream *s, uint64_t now_ms, uint64_t stall_ms)
{
	size_t queue = uv_stream_get_write_queue_size((uv_stream_t *)&s->tcp);
	if (queue < s->queue_seen)
		s->progress_ms = now_ms;
	s->queue_seen = queue;
	bool busy = s->out_bytes || s->in_len || !s->token_done;
	return now_ms - s->progress_ms >= (s->refused ? 2000 : stall_ms) && (busy || s->refused) && !s->held;
}

/* --- reading --------------------------------------------------------------------------------- */

/* One frame from data. >0: bytes used; 0: more is needed (in_want says how much in all); negative: refused. */
static ssize_t frame_take(struct stream *s, const uint8_t *data, size_t len, struct error *err)
{
	struct frame_head h;
	s->in_want = FRAME_HEAD;
	if (len < FRAME_HEAD)
		return 0;
	int rc = frame_head_read(data, &h);
	if (rc < 0)
		return error_set(err, rc, "%s", error_text(rc));
	if ((rc = s->ops->head(s, &h, err)) < 0)
		return rc;
	s->in_want = FRAME_HEAD + h.token_len;
	if (len < s->in_want)
		return 0;
	if (h.token_len && !s->token_done) {
		if (!s->ops->token || s->channel.received)
			return error_set(err, ESLURM_PROTOCOL, "a token that does not belong here");
		s->token_done = true;
		if ((rc = s->ops->token(s, data + FRAME_HEAD, h.token_len, err)))
			return rc < 0 ? rc : 0;
	} else if (h.token_len && s->channel.received) {
		return error_set(err, ESLURM_PROTOCOL, "a second token");
	}
	s->in_want += h.body_len;
	if (len < s->in_want)
		return 0;
	struct frame_part part = { data + FRAME_HEAD, h.token_len + (size_t)h.body_len };
	bool refusal = h.kind == FRAME_ERROR && !h.rpc && !s->channel.server;
	if (!refusal && !frame_check(&s->channel, data, &part, 1))
		return error_set(err, ESLURM_AUTH, "frame was forged, repeated or moved");
	s->token_done = true;
	size_t used = s->in_want;
	if ((rc = s->ops->frame(s, &h, data + FRAME_HEAD + h.token_len, err)) < 0)
		return rc;
	return used;
}

/* Hands over all whole frames; returns the bytes used. */
static size_t frames_take(struct stream *s, const uint8_t *data, size_t len)
{
	size_t at = 0;
	s->taking = true;
	while (!s->held && !s->ended) {
		struct error err = { 0 };
		ssize_t n = frame_take(s, data + at, len - at, &err);
		if (n < 0)
			stream_refuse(s, n, &err);
		if (n <= 0)
			break;
		at += n;
	}
	s->taking = false;
	return s->ended ? len : at;
}

static void in_reserve(struct stream *s, size_t more)
{
	if (s->in_cap - s->in_len >= more)
		return;
	s->in_cap = s->in_len + more;
	s->in = xrealloc(s->in, s->in_cap);
}

/* Nothing half read: read into a buffer shared by all streams of this thread. Else into our own, which at most doubles with
 * what really came, so that a head alone makes nobody set aside megabytes. */
static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
	static __thread uint8_t shared[READ_SIZE];
	struct stream *s = h->data;
	if (!s->in_len) {
		*ret = uv_buf_init((char *)shared, sizeof shared);
		return;
	}
	size_t need = s->in_want > s->in_len ? s->in_want - s->in_len : READ_SIZE, most = s->in_len > READ_SIZE ? s->in_len : READ_SIZE;
	in_reserve(s, need < most ? need : most);
	*ret = uv_buf_init((char *)s->in + s->in_len, s->in_cap - s->in_len);
}

static void in_process(struct stream *s)
{
	size_t used = frames_take(s, s->in, s->in_len);
	if (s->refused || used >= s->in_len)
		s->in_len = 0;
	else if (used)
		memmove(s->in, s->in + used, s->in_len -= used);
	if (!s->in_len) {
		xfree(s->in);
		s->in_cap = 0;
	}
}

static void reading_set(struct stream *s);

static void on_read(uv_stream_t *u, ssize_t n, const uv_buf_t *buf)
{
	struct stream *s = u->data;
	if (n == 0)
		return;
	if (n < 0) {
		stream_break(s, ESLURM_COMM, n == UV_EOF ? "closed by the other side" : uv_strerror(n));
		return;
	}
	if (s->refused)
		return;
	s->progress_ms = uv_now(u->loop);
	if (s->in_len) {
		s->in_len += n;
		in_process(s);
	} else {
		size_t used = frames_take(s, (uint8_t *)buf->base, n);
		if (!s->ended && used < (size_t)n) {
			in_reserve(s, n - used);
			memcpy(s->in, buf->base + used, n - used);
			s->in_len = n - used;
		}
	}
	reading_set(s);
}

/* Read unless held; a refused stream reads to throw away. */
static void reading_set(struct stream *s)
{
	bool want = !s->held || s->refused;
	if (want == s->reading || uv_is_closing((uv_handle_t *)&s->tcp))
		return;
	s->reading = want;
	if (want)
		(void)uv_read_start((uv_stream_t *)&s->tcp, on_alloc, on_read);
	else
		(void)uv_read_stop((uv_stream_t *)&s->tcp);
}

void stream_start(struct stream *s)
{
	(void)uv_tcp_nodelay(&s->tcp, 1);
	(void)uv_tcp_keepalive(&s->tcp, 1, 60);
	reading_set(s);
}

void stream_hold(struct stream *s, bool hold)
{
	s->held = hold;
	if (!hold && s->in_len && !s->ended && !s->taking)
		in_process(s);
	reading_set(s);
}

/* --- writing --------------------------------------------------------------------------------- */

static void out_add(struct stream *s, struct stream_out *o)
{
	*s->out_last = o;
	s->out_last = &o->next;
	if (!s->out_bytes)
		s->progress_ms = uv_now(s->tcp.loop);
	s->out_bytes += o->bytes;
}

static size_t parts_len(const struct frame_part *part, size_t n)
{
	size_t len = 0;
	for (size_t i = 0; i < n; i++)
		len += part[i].len;
	return len;
}

void stream_send(struct stream *s, struct frame_head *h, const struct frame_part *part, size_t n)
{
	size_t body = parts_len(part, n), all = FRAME_HEAD + body;
	if (uv_is_closing((uv_handle_t *)&s->tcp) || s->refused)
		return;
	struct stream_out *o = xmalloc(sizeof *o + sizeof *o->buf + all);
	uint8_t *to = (uint8_t *)&o->buf[1], *p = to + FRAME_HEAD;
	*o = (struct stream_out){ .bytes = all, .bufs = 1 };
	o->buf[0] = uv_buf_init((char *)to, all);
	h->body_len = body - h->token_len;
	frame_head_write(h, to);
	for (size_t i = 0; i < n; i++)
		if (part[i].len)
			p = (uint8_t *)memcpy(p, part[i].data, part[i].len) + part[i].len;
	frame_seal(&s->channel, to, &(struct frame_part){ to + FRAME_HEAD, body }, 1);
	out_add(s, o);
}

void stream_send_ref(struct stream *s, struct frame_head *h, const struct frame_part *part, size_t n, void (*release)(void *), void *arg)
{
	if (uv_is_closing((uv_handle_t *)&s->tcp) || s->refused) {
		if (release)
			release(arg);
		return;
	}
	struct stream_out *o = xmalloc(sizeof *o + (n + 1) * sizeof *o->buf + FRAME_HEAD);
	uint8_t *head = (uint8_t *)&o->buf[n + 1];
	*o = (struct stream_out){ .release = release, .arg = arg, .bufs = n + 1 };
	h->body_len = parts_len(part, n) - h->token_len;
	o->bytes = FRAME_HEAD + h->token_len + h->body_len;
	frame_head_write(h, head);
	frame_seal(&s->channel, head, part, n);
	o->buf[0] = uv_buf_init((char *)head, FRAME_HEAD);
	for (size_t i = 0; i < n; i++)
		o->buf[i + 1] = uv_buf_init((char *)part[i].data, part[i].len);
	out_add(s, o);
}

static void on_written(uv_write_t *u, int status)
{
	struct write_req *w = (struct write_req *)u;
	struct stream *s = u->handle->data;
	s->out_bytes -= w->bytes;
	s->progress_ms = uv_now(s->tcp.loop);
	outs_free(w->list);
	free(w);
	if (status < 0 && !s->ended && status != UV_ECANCELED)
		stream_break(s, ESLURM_COMM, uv_strerror(status));
	else if (!s->ended && s->ops->drained)
		s->ops->drained(s);
}

void stream_flush(struct stream *s)
{
	struct stream_out *list = s->out;
	if (!list || uv_is_closing((uv_handle_t *)&s->tcp))
		return;
	size_t bufs = 0, i = 0;
	struct write_req *w = xcalloc(1, sizeof *w);
	w->list = list;
	s->out = NULL;
	s->out_last = &s->out;
	for (struct stream_out *o = list; o; o = o->next)
		bufs += o->bufs;
	uv_buf_t few[64], *buf = bufs <= 64 ? few : xmalloc(bufs * sizeof *buf);
	for (struct stream_out *o = list; o; o = o->next) {
		memcpy(buf + i, o->buf, o->bufs * sizeof *buf);
		i += o->bufs;
		w->bytes += o->bytes;
	}
	int rc = uv_write(&w->uv, (uv_stream_t *)&s->tcp, buf, bufs, on_written);
	if (buf != few)
		free(buf);
	if (rc < 0) {
		s->out_bytes -= w->bytes;
		outs_free(list);
		free(w);
		stream_break(s, ESLURM_COMM, uv_strerror(rc));
	}
}
