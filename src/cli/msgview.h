/* msgview.h - one encoded message with its fields found but not decoded
 * The wire's skimming reader walks the bytes once; after that a field is an array access. Text is a slice of the reply's
 * bytes (not terminated). Fields that repeat keep the last one here; walk them with msgview_each. Numbers below MSGVIEW_MAX only. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "proto/fields.h"
#include "proto/job.pb-c.h"
#include "wire/wire.h"

#define MSGVIEW_MAX 128
struct msgview {
	const uint8_t *data;
	size_t len;
	uint64_t have[MSGVIEW_MAX / 64];
	struct wire_field f[MSGVIEW_MAX];
};
struct slice { const char *p; size_t n; };   /* p NULL: absent */

/* false when malformed; what came before is kept. */
bool msgview_read(struct msgview *v, const uint8_t *data, size_t len);
/* Nothing is set. */
void msgview_clear(struct msgview *v);
static inline bool msgview_has(const struct msgview *v, unsigned n) { return v->have[n / 64] >> (n % 64) & 1; }
static inline uint64_t msgview_num(const struct msgview *v, unsigned n, uint64_t absent)
{
	return msgview_has(v, n) ? v->f[n].value : absent;
}
/* A sint32 or sint64 field: numbers of both signs, folded on the wire. */
static inline int64_t msgview_sint(const struct msgview *v, unsigned n, int64_t absent)
{
	return msgview_has(v, n) ? (int64_t)(v->f[n].value >> 1) ^ -(int64_t)(v->f[n].value & 1) : absent;
}
static inline struct slice msgview_text(const struct msgview *v, unsigned n)
{
	return msgview_has(v, n) ? (struct slice){ (const char *)v->f[n].data, v->f[n].len } : (struct slice){ 0 };
}
/* The first text with this number, without reading the rest. */
struct slice msgview_find(const uint8_t *data, size_t len, unsigned n);
/* Walk all occurrences of field n: start with *at = 0; false when there are no more. */
bool msgview_each(const struct msgview *v, unsigned n, size_t *at, struct wire_field *ret);

static inline bool slice_is(struct slice s, const char *text) { return s.p && s.n == __builtin_strlen(text) && !__builtin_memcmp(s.p, text, s.n); }
/* Text of a record, for a terminal: what would act on it is masked (--json has it as it is). */
static inline void put_slice(struct str *out, struct slice s, const char *absent)
{
	size_t from = out->len;
	if (s.p) {
		str_add_n(out, s.p, s.n);
		str_mask_controls(out, from);
	} else {
		str_add(out, absent);
	}
}
/* The same, where an empty text counts as absent too. */
static inline void put_slice_set(struct str *out, struct slice s, const char *absent)
{
	put_slice(out, s.n ? s : (struct slice){ 0 }, absent);
}
char *slice_dup(struct slice s);   /* NULL when absent */
/* Is the slice one of the words of a comma list? */
bool slice_in_list(struct slice s, const char *list);
