/* skim.c - the one reader of encoded messages that does not unpack them
 *
 * List commands read a few of 200 fields of 50,000 records: unpacking would cost 20 times more. Walks tag by tag; every length is
 * checked against what is left before it is used. Groups (deprecated in protobuf) are malformed here. */
#include <string.h>

#include "wire/wire.h"

void wire_skim_start(struct wire_skim *s, const uint8_t *data, size_t len)
{
	*s = (struct wire_skim){ .at = data, .end = data ? data + len : data };
}

static bool varint_read_long(struct wire_skim *s, uint64_t *ret)
{
	uint64_t v = 0;
	const uint8_t *p = s->at;
	for (unsigned shift = 0; shift < 64 && p < s->end; shift += 7) {
		uint8_t b = *p++;
		if (shift == 63 && b > 1)
			return false;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			s->at = p;
			*ret = v;
			return true;
		}
	}
	return false;
}

/* Nearly all tags and lengths are one byte. */
static inline bool varint_read(struct wire_skim *s, uint64_t *ret)
{
	if (s->at < s->end && *s->at < 0x80) {
		*ret = *s->at++;
		return true;
	}
	return varint_read_long(s, ret);
}

static bool value_read(struct wire_skim *s, struct wire_field *f)
{
	size_t left;
	switch (f->type) {
	case 0:
		return varint_read(s, &f->value);
	case 1:
	case 5:
		f->len = f->type == 1 ? 8 : 4;
		break;
	case 2:
		if (!varint_read(s, &f->value))
			return false;
		left = s->end - s->at;
		if (f->value > left)
			return false;
		f->len = f->value;
		break;
	default:
		return false;
	}
	left = s->end - s->at;
	if (f->len > left)
		return false;
	f->data = s->at;
	s->at += f->len;
	if (f->type != 2) {
		f->value = 0;
		for (size_t i = f->len; i--;)   /* fixed-size numbers are little-endian */
			f->value = f->value << 8 | f->data[i];
	}
	return true;
}

bool wire_skim_next(struct wire_skim *s, struct wire_field *ret)
{
	uint64_t tag;
	if (s->bad || s->at == s->end)
		return false;
	*ret = (struct wire_field){ 0 };
	if (varint_read(s, &tag) && tag >> 3 && tag >> 3 <= 0x1fffffff) {
		ret->number = tag >> 3;
		ret->type = tag & 7;
		if (value_read(s, ret))
			return true;
	}
	s->bad = true;
	return false;
}
