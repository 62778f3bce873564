/* job_item.c - see job_item.h. Protobuf wire format: tag = field number << 3 | type (0 varint, 2 bytes). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ctld/job_item.h"

enum { VARINT = 0, BYTES = 2 };
#define TAG(number, type) (uint8_t)((number) << 3 | (type))
#define VARINT_MAX 10

static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)v | 0x80;
	*at++ = (uint8_t)v;
	return at;
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;
	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

static uint8_t *put_number(uint8_t *at, uint8_t tag, bool has, uint64_t v)
{
	if (!has)
		return at;
	*at++ = tag;
	return put_varint(at, v);
}

static uint8_t *put_text(uint8_t *at, uint8_t tag, const char *text)
{
	if (!text)
		return at;
	size_t len = strlen(text);
	*at++ = tag;
	at = put_varint(at, len);
	memcpy(at, text, len);
	return at + len;
}

static size_t text_room(const char *text) { return text ? strlen(text) + 1 + VARINT_MAX : 0; }

static uint8_t *put_volatile(uint8_t *at, const Pb__JobVolatile *v)
{
	at = put_number(at, TAG(1, VARINT), v->has_reason, v->reason);
	at = put_number(at, TAG(2, VARINT), v->has_priority, v->priority);
	at = put_number(at, TAG(3, VARINT), v->has_est_start, v->est_start);
	at = put_number(at, TAG(4, VARINT), v->has_last_eval, v->last_eval);
	at = put_text(at, TAG(5, BYTES), v->sched_nodes);
	at = put_text(at, TAG(6, BYTES), v->reason_desc);
	return put_text(at, TAG(7, BYTES), v->scheduler);
}

static uint8_t *reserve(struct item_buf *b, size_t extra)
{
	if (b->len + extra > b->cap) {
		size_t want = b->cap ? b->cap * 2 : 64 * 1024;
		b->cap = want < b->len + extra ? b->len + extra : want;
		b->data = xrealloc(b->data, b->cap);
	}
	return b->data + b->len;
}

void item_add(struct item_buf *b, const uint8_t *record, size_t len, const Pb__JobVolatile *vol)
{
	size_t room = 4 * (1 + VARINT_MAX) + text_room(vol->sched_nodes) + text_room(vol->reason_desc) + text_room(vol->scheduler);
	uint8_t small[1024], *tmp = room <= sizeof small ? small : xmalloc(room);
	size_t vol_len = (size_t)(put_volatile(tmp, vol) - tmp);
	size_t item_len = 1 + varint_size(len) + len + 1 + varint_size(vol_len) + vol_len;
	uint8_t *at = reserve(b, 1 + VARINT_MAX + item_len);
	*at++ = TAG(1, BYTES);
	at = put_varint(at, item_len);
	*at++ = TAG(1, BYTES);
	at = put_varint(at, len);
	memcpy(at, record, len);
	at += len;
	*at++ = TAG(2, BYTES);
	at = put_varint(at, vol_len);
	memcpy(at, tmp, vol_len);
	b->len = (size_t)(at + vol_len - b->data);
	if (tmp != small)
		free(tmp);
}

void item_add_plain(struct item_buf *b, unsigned number, const uint8_t *record, size_t len)
{
	uint8_t *at = reserve(b, 1 + VARINT_MAX + len);
	*at++ = TAG(number, BYTES);
	at = put_varint(at, len);
	memcpy(at, record, len);
	b->len = (size_t)(at + len - b->data);
}

void item_end(struct item_buf *b, uint64_t now, uint32_t code)
{
	uint8_t *at = reserve(b, 2 * (1 + VARINT_MAX));
	at = put_number(at, TAG(2, VARINT), true, now);
	at = put_number(at, TAG(3, VARINT), code != 0, code);
	b->len = (size_t)(at - b->data);
}
