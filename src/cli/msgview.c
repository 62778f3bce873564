/* msgview.c - one encoded message with its fields found but not decoded (see msgview.h) */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/msgview.h"

void msgview_clear(struct msgview *v)
{
	v->data = NULL;
	v->len = 0;
	memset(v->have, 0, sizeof(v->have));
}

bool msgview_read(struct msgview *v, const uint8_t *data, size_t len)
{
	struct wire_skim skim;
	struct wire_field unknown;
	uint32_t number;
	uint8_t type;
	v->data = data;
	v->len = len;
	memset(v->have, 0, sizeof(v->have));
	wire_skim_start(&skim, data, len);
	while (wire_skim_tag(&skim, &number, &type)) {
		bool known = number < MSGVIEW_MAX;
		if (wire_skim_value(&skim, number, type, known ? &v->f[number] : &unknown) && known)
			v->have[number / 64] |= 1ULL << (number % 64);
	}
	return !skim.bad;
}

bool msgview_each(const struct msgview *v, unsigned n, size_t *at, struct wire_field *ret)
{
	if (!msgview_has(v, n))
		return false;
	struct wire_skim skim;
	wire_skim_start(&skim, v->data + *at, v->len - *at);
	while (wire_skim_next(&skim, ret))
		if (ret->number == n) {
			*at = (size_t)(skim.at - v->data);
			return true;
		}
	return false;
}

struct slice msgview_find(const uint8_t *data, size_t len, unsigned n)
{
	struct wire_skim skim;
	struct wire_field f;
	wire_skim_start(&skim, data, len);
	while (wire_skim_next(&skim, &f))
		if (f.number == n)
			return (struct slice){ (const char *)f.data, f.len };
	return (struct slice){ 0 };
}

char *slice_dup(struct slice s) { return s.p ? xstrndup(s.p, s.n) : NULL; }

bool slice_in_list(struct slice s, const char *list)
{
	for (const char *p = list; s.p && *p;) {
		size_t n = strcspn(p, ",");
		if (n == s.n && !memcmp(p, s.p, n))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}
