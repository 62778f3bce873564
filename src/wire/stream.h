/* stream.h - frames over a TCP connection on a libuv loop, for servers and links alike (inside of wire/)
 *
 * A stream takes bytes in, asks its owner about each head before it takes the rest, checks the MAC and hands the frame over. It keeps
 * no buffer while nothing is half read. Frames sent are collected until stream_flush, then written with one system call.
 * Invariants: after `ended` was called no callback comes any more but `closed`, which may free the memory around the stream;
 * a stream that is held hands over no frame. Nothing here is called back from within stream_send. */
#pragma once
#include <uv.h>
#include "wire/auth.h"

struct stream;
struct stream_ops {
	/* The next frame's head, seen before its rest: 0, or a negative code: refuse and end. May be called more than once for a frame. */
	int (*head)(struct stream *s, const struct frame_head *h, struct error *err);
	/* The token of a first frame. 0: the channel is keyed; 1: wait for stream_hold(s, false); negative: refuse. NULL: none is taken. */
	int (*token)(struct stream *s, const uint8_t *data, size_t len, struct error *err);
	/* A whole frame with a right MAC. Data is valid during the call. Negative: refuse and end. */
	int (*frame)(struct stream *s, const struct frame_head *h, const uint8_t *body, struct error *err);
	/* The connection is over: -ESLURM_COMM, the code we refused with, or -ECANCELED from stream_end. err says more (may be empty). */
	void (*ended)(struct stream *s, int code, const struct error *err);
	void (*closed)(struct stream *s);                  /* the memory is free to go */
	void (*drained)(struct stream *s);                 /* something was written; NULL: not interesting */
};
struct stream_out;
struct stream {
	uv_tcp_t tcp;
	uv_shutdown_t shutdown;          /* our side, after a refusal */
	const struct stream_ops *ops;
	void *owner;
	struct frame_channel channel;
	bool token_done, held, reading, ended, refused, taking;
	uint8_t *in;                     /* what was read but not yet understood */
	size_t in_len, in_cap, in_want;
	struct stream_out *out, **out_last;   /* not yet given to libuv */
	size_t out_bytes;                /* queued or being written */
	uint64_t progress_ms;            /* uv_now when something was last read or written */
	size_t queue_seen;               /* libuv's write queue at the last look: shrinks when a slow reader reads */
};
int stream_init(uv_loop_t *loop, struct stream *s, const struct stream_ops *ops, void *owner);
/* The TCP connection stands: begin to read. */
void stream_start(struct stream *s);
/* Stop or go on handing frames over (back-pressure, a token being checked). */
void stream_hold(struct stream *s, bool hold);
/* Queue one frame; the body is copied. */
void stream_send(struct stream *s, struct frame_head *h, const struct frame_part *part, size_t n);
/* Queue one frame whose body stays where it is until release(arg). */
void stream_send_ref(struct stream *s, struct frame_head *h, const struct frame_part *part, size_t n, void (*release)(void *), void *arg);
void stream_flush(struct stream *s);
void stream_end(struct stream *s);
/* End it and (servers) tell the peer why. `code` is negative. */
void stream_refuse(struct stream *s, int code, const struct error *err);
/* A refused stream waits for its peer to hang up; true when it has done so for long enough. */
bool stream_is_stale(struct stream *s, uint64_t now_ms, uint64_t stall_ms);
