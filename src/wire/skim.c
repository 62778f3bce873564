/* skim.c - see skim.h */
#include <string.h>

#include "wire/skim.h"

void wire_skim_start(struct wire_skim *s, const uint8_t *data, size_t len)
{
	*s = (struct wire_skim){ .at = data, .end = data ? data + len : data };
}

bool wire_skim_varint_long(struct wire_skim *s, uint64_t *ret)
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

bool wire_skim_fixed(struct wire_skim *s, struct wire_field *f)
{
	size_t len = f->type == 1 ? 8 : 4;
	s->bad = (f->type != 1 && f->type != 5) || len > (size_t)(s->end - s->at);
	if (s->bad)
		return false;
	f->data = s->at;
	f->len = len;
	s->at += len;
	f->value = 0;
	for (size_t i = len; i--;)   /* fixed-size numbers are little-endian */
		f->value = f->value << 8 | f->data[i];
	return true;
}
