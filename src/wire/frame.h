/* frame.h - the shape of one frame, and its MAC (inside of wire/)
 *
 *   offset  size
 *        0     4  "BRTH"
 *        4     1  version (FRAME_VERSION)
 *        5     1  kind (enum frame_kind)
 *        6     2  call number (tables/rpc.def); 0 in a refusal
 *        8     4  sequence of the call, chosen by the caller, repeated in its answer
 *       12     2  length of the token; 0 in all but a caller's first frame
 *       14     2  length of the receiver's name (FRAME_TO_MAX), the first bytes of the body; 0: whoever listens there
 *       16     4  length of the body
 *       20     4  error code (positive) in FRAME_ERROR, else zero
 *       24    16  MAC: Poly1305 over the 24 bytes before, token and body, under
 *                 BLAKE2b-256(session key; direction, count of frames sent before in that direction)
 *       40        token, body
 * All numbers big-endian. The count is not sent: a frame left out, repeated or moved has another MAC than expected, and
 * the connection ends. A connection without a token (calls of class OPEN) carries zeros for the MAC. A refusal is a FRAME_ERROR
 * for call 0 without MAC: the server could not establish who asks, says why and closes; it can only make a call fail.
 * Invariant: a reader decides on the 40 bytes alone how much it is willing to read. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define FRAME_HEAD 40
#define FRAME_VERSION 1
#define FRAME_MAC_AT 24
#define FRAME_MAC 16
#define FRAME_KEY 32
#define FRAME_TOKEN_MAX 4096
#define FRAME_TEXT_MAX 1024   /* body of FRAME_ERROR */
#define FRAME_TO_MAX 255

enum frame_kind { FRAME_CALL = 1, FRAME_REPLY = 2, FRAME_ERROR = 3 };
struct frame_head {
	enum frame_kind kind;
	uint16_t rpc, token_len, to_len;
	uint32_t seq, body_len, code;
};
/* 0, -ESLURM_PROTOCOL (not one of ours, or malformed), -ESLURM_PROTOCOL_VERSION. Says nothing about MAC and sizes. */
int frame_head_read(const uint8_t raw[FRAME_HEAD], struct frame_head *ret);
/* MAC is left zero. */
void frame_head_write(const struct frame_head *h, uint8_t raw[FRAME_HEAD]);

/* One side's view of a connection's keys. Life: that of the connection. */
struct frame_channel {
	bool keyed, server;
	uint8_t key[FRAME_KEY];
	uint64_t sent, received;
};
struct frame_part { const void *data; size_t len; };
/* Computes the MAC of the next frame in our direction into raw; counts it. */
void frame_seal(struct frame_channel *c, uint8_t raw[FRAME_HEAD], const struct frame_part *part, size_t n);
/* Is this the next frame the peer sent? Counts it when so. */
bool frame_check(struct frame_channel *c, const uint8_t raw[FRAME_HEAD], const struct frame_part *part, size_t n);
