/* skim.h - the one reader of encoded messages that does not unpack them
 * Walks the fields of one encoded message; every length is checked against what is left before it is used. Groups (deprecated in protobuf) are malformed here.
 * List commands read a few of 200 fields of 50,000 records: unpacking would cost 20 times more, and a call for each field three times more, hence the inline ones. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_field { uint32_t number; uint8_t type; uint64_t value; const uint8_t *data; size_t len; }; /* type: 0 varint 1 64 2 bytes 5 32 */
struct wire_skim { const uint8_t *at, *end; bool bad; };

void wire_skim_start(struct wire_skim *s, const uint8_t *data, size_t len);
/* The general cases of the two below. */
bool wire_skim_varint_long(struct wire_skim *s, uint64_t *ret);
bool wire_skim_fixed(struct wire_skim *s, struct wire_field *f);

/* A varint of one or two bytes, as nearly all tags, lengths and numbers are, or any other. */
static inline bool wire_skim_varint(struct wire_skim *s, uint64_t *ret)
{
	const uint8_t *p = s->at;
	if (s->end - p < 2)
		return wire_skim_varint_long(s, ret);
	if (p[0] < 0x80) {
		*ret = p[0];
		s->at = p + 1;
		return true;
	}
	if (p[1] < 0x80) {
		*ret = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
		s->at = p + 2;
		return true;
	}
	return wire_skim_varint_long(s, ret);
}

/* Number and type of the next field; its value must be read next. false at the end or when malformed (s->bad). */
static inline bool wire_skim_tag(struct wire_skim *s, uint32_t *number, uint8_t *type)
{
	uint64_t tag;
	if (s->bad || s->at == s->end)
		return false;
	s->bad = !wire_skim_varint(s, &tag) || !(tag >> 3) || tag >> 3 > 0x1fffffff;
	if (s->bad)
		return false;
	*number = (uint32_t)(tag >> 3);
	*type = tag & 7;
	return true;
}

/* The value belonging to that tag. false when malformed (s->bad); what *f pointed to stays valid. */
static inline bool wire_skim_value(struct wire_skim *s, uint32_t number, uint8_t type, struct wire_field *f)
{
	uint64_t value = 0;
	f->number = number;   /* nothing else of *f changes when the value is malformed: a field read before stays within bounds */
	f->type = type;
	if (type != 0 && type != 2)
		return wire_skim_fixed(s, f);
	s->bad = !wire_skim_varint(s, &value) || (type == 2 && value > (uint64_t)(s->end - s->at));
	if (s->bad)
		return false;
	f->value = value;
	f->data = type == 2 ? s->at : NULL;
	f->len = type == 2 ? value : 0;
	s->at += f->len;
	return true;
}

/* The next field; false at the end or when malformed (s->bad). */
static inline bool wire_skim_next(struct wire_skim *s, struct wire_field *ret)
{
	uint32_t number;
	uint8_t type;
	return wire_skim_tag(s, &number, &type) && wire_skim_value(s, number, type, ret);
}
