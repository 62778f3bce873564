/* idset.c - "0-3,7,9-15:2" <-> bitset
 * Ascending order comes from the set itself; a step is folded only by idset_format_array, as squeue shows array tasks. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/idset.h"

enum { DIGITS_MAX = 11 };

static int bad(struct error *err, int code, const char *text, const char *at, const char *what)
{
	return error_set(err, code, "id list \"%.200s\": %s at position %zu", text, what, (size_t)(at - text) + 1);
}

/* One "a", "a-b" or "a-b:s". */
static int piece_read(const char *text, const char **at, uint32_t limit, struct bitset *b, struct error *err)
{
	const char *start = *at;
	uint64_t lo, hi, step = 1;

	if (!str_digits(at, DIGITS_MAX, &lo))
		return bad(err, EINVAL, text, *at, "a number is missing or too long");
	hi = lo;
	if (**at == '-') {
		(*at)++;
		if (!str_digits(at, DIGITS_MAX, &hi))
			return bad(err, EINVAL, text, *at, "the end of a range is missing or too long");
		if (hi < lo)
			return bad(err, EINVAL, text, start, "a range that runs backwards");
		if (**at == ':') {
			(*at)++;
			if (!str_digits(at, DIGITS_MAX, &step) || step == 0)
				return bad(err, EINVAL, text, *at, "the step must be a number above 0");
		}
	}
	if (hi >= limit) {
		int rc = bad(err, ERANGE, text, start, "a number that is too large");
		error_hint(err, "Numbers must be below %u.", limit);
		return rc;
	}
	for (uint64_t i = lo; i <= hi; i += step)
		bitset_set(b, (uint32_t)i);
	return 0;
}

int idset_parse(const char *text, uint32_t limit, struct bitset **ret, struct error *err)
{
	struct bitset *b = bitset_create(limit);
	const char *at = text;

	while (*text) {
		int rc = piece_read(text, &at, limit, b, err);
		if (rc == 0 && *at && *at != ',')
			rc = bad(err, EINVAL, text, at, "an unexpected character");
		if (rc < 0) {
			bitset_destroy(b);
			return rc;
		}
		if (*at == '\0')
			break;
		at++;
	}
	*ret = b;
	return 0;
}

uint32_t idset_bound(const char *text, uint32_t limit)
{
	uint64_t bound = 0;
	while (*text && bound < limit) {
		uint64_t n = 0;
		if (!isdigit((unsigned char)*text)) {
			text++;
			continue;
		}
		for (; isdigit((unsigned char)*text) && n < limit; text++)
			n = n * 10 + (uint64_t)(*text - '0');
		bound = n + 1 > bound ? n + 1 : bound;
	}
	return bound < limit ? (uint32_t)bound : limit;
}

char *idset_format(const struct bitset *b)
{
	struct str s = STR_INIT;
	uint32_t i = bitset_next(b, 0);

	while (i < b->size) {
		uint32_t end = i;
		while (end + 1 < b->size && bitset_has(b, end + 1))
			end++;
		if (s.len > 0)
			str_add_c(&s, ',');
		if (end > i)
			str_addf(&s, "%u-%u", i, end);
		else
			str_addf(&s, "%u", i);
		i = bitset_next(b, end + 1);
	}
	return str_take(&s);
}

/* The whole set as one "first-last:step" with a step of at least 2 and at least 7 members (the limit of the reference), or NULL. */
static char *as_stepped(const struct bitset *b)
{
	uint32_t first = bitset_next(b, 0), second, last, step, n = 2;

	if (first >= b->size)
		return NULL;
	second = bitset_next(b, first + 1);
	if (second >= b->size || second - first < 2)
		return NULL;
	step = second - first;
	last = second;
	for (uint32_t i = bitset_next(b, last + 1); i < b->size; i = bitset_next(b, i + 1)) {
		if (i - last != step)
			return NULL;
		last = i;
		n++;
	}
	return n < 7 ? NULL : xasprintf("%u-%u:%u", first, last, step);
}

char *idset_format_array(const struct bitset *b, uint32_t max)
{
	char *text = as_stepped(b);
	size_t len;

	if (!text)
		text = idset_format(b);
	len = strlen(text);
	if (max > 0 && len > max) {
		/* Cut behind a whole piece, then say that there was more. */
		char *cut = xstrndup(text, max);
		char *comma = strrchr(cut, ',');
		char *out;
		if (comma)
			*comma = '\0';
		out = xasprintf("%s,...", cut);
		free(cut);
		free(text);
		text = out;
	}
	return text;
}
