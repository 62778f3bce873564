/* hostlist.c - expand and fold host lists
 *
 * A name is a row of pieces: plain text and bracketed ranges. Expansion is an odometer over the brackets, the first one
 * slowest. Folding looks at the number a name ends with and at nothing else, as the reference does: "a1b3,a1b4" becomes
 * "a1b[3-4]", "n1-int,n2-int" stays. Numbers of more than 18 digits are plain text. Parsing appends to a scratch
 * list first, so an error leaves the caller's list as it was. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/hostlist.h"

enum { NUM_DIGITS_MAX = 18, BRACKETS_MAX = 8 };

struct range { uint64_t lo, hi; int width; };
struct bracket { struct range *range; size_t count, cap; };
/* lead[0] bracket[0] lead[1] bracket[1] ... lead[n]; leads point into the text. */
struct pattern {
	const char *lead[BRACKETS_MAX + 1];
	size_t lead_len[BRACKETS_MAX + 1];
	struct bracket bracket[BRACKETS_MAX];
	size_t n;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_sep(char c) { return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static int bad(struct error *err, const char *text, const char *at, const char *what)
{
	int rc = error_set(err, EINVAL, "host list \"%.200s\": %s at position %zu", text, what, (size_t)(at - text) + 1);
	error_hint(err, "A list looks like node-[21,23-26],gpu[01-08].");
	return rc;
}

static void pattern_fini(struct pattern *p)
{
	for (size_t i = 0; i < p->n; i++)
		xfree(p->bracket[i].range);
	p->n = 0;
}

/* Digits at *at -> value and width. */
static bool number_read(const char **at, uint64_t *ret, int *ret_width)
{
	const char *from = *at;
	if (!str_digits(at, NUM_DIGITS_MAX, ret))
		return false;
	*ret_width = (int)(*at - from);
	return true;
}

/* One "7" or "03-12" of a bracket. */
static int range_read(const char *text, const char **at, struct bracket *b, struct error *err)
{
	struct range r;
	const char *start = *at;
	int hi_width;

	if (**at == ',' || **at == ']')
		return bad(err, text, start, "a number is missing");
	if (!number_read(at, &r.lo, &r.width))
		return bad(err, text, start, "not a number");
	r.hi = r.lo;
	if (**at == '-') {
		(*at)++;
		if (!number_read(at, &r.hi, &hi_width))
			return bad(err, text, *at, "the end of a range is missing");
		if (r.hi < r.lo)
			return bad(err, text, start, "a range that runs backwards");
		if (r.hi - r.lo >= HOSTLIST_MAX)
			return bad(err, text, start, "a range of too many names");
	}
	b->range = xgrow(b->range, &b->cap, b->count + 1, sizeof(*b->range));
	b->range[b->count++] = r;
	return 0;
}

/* The inside of a bracket, *at just behind '['; leaves it behind ']'. */
static int bracket_read(const char *text, const char **at, struct bracket *b, struct error *err)
{
	for (;;) {
		int rc = range_read(text, at, b, err);
		if (rc < 0)
			return rc;
		if (**at == ']') {
			(*at)++;
			return 0;
		}
		if (**at == '\0')
			return bad(err, text, *at, "']' is missing");
		if (**at != ',')
			return bad(err, text, *at, "an unexpected character in a bracket");
		(*at)++;
	}
}

/* One name pattern; *at is left at its separator or the end. */
static int pattern_read(const char *text, const char **at, struct pattern *p, struct error *err)
{
	const char *s = *at;

	p->n = 0;
	p->lead[0] = s;
	while (*s && !is_sep(*s)) {
		int rc;
		if (*s == ']')
			return bad(err, text, s, "']' without '['");
		if (*s == '{' || *s == '}')
			return bad(err, text, s, "host list functions are not supported: '{' or '}'");
		if (*s != '[') {
			s++;
			continue;
		}
		if (p->n == BRACKETS_MAX)
			return bad(err, text, s, "too many brackets in a name");
		p->lead_len[p->n] = (size_t)(s - p->lead[p->n]);
		p->bracket[p->n] = (struct bracket){ 0 };
		s++;
		rc = bracket_read(text, &s, &p->bracket[p->n++], err);
		if (rc < 0)
			return rc;
		p->lead[p->n] = s;
	}
	p->lead_len[p->n] = (size_t)(s - p->lead[p->n]);
	*at = s;
	return 0;
}

static uint64_t pattern_count(const struct pattern *p)
{
	uint64_t total = 1;
	for (size_t i = 0; i < p->n; i++) {
		uint64_t here = 0;
		for (size_t k = 0; k < p->bracket[i].count; k++)
			here += p->bracket[i].range[k].hi - p->bracket[i].range[k].lo + 1;
		total *= here;
		if (here > HOSTLIST_MAX || total > HOSTLIST_MAX)
			return HOSTLIST_MAX + 1;
	}
	return total;
}

static void list_own(struct hostlist *hl, char *name)
{
	hl->name = xgrow(hl->name, &hl->cap, hl->count + 1, sizeof(*hl->name));
	hl->name[hl->count++] = name;
}

/* The name that has these numbers in its brackets. */
static void pattern_name(const struct pattern *p, const size_t *which, const uint64_t *value, struct str *s)
{
	size_t i;
	for (i = 0; i < p->n; i++) {
		str_add_n(s, p->lead[i], p->lead_len[i]);
		str_addf(s, "%0*llu", p->bracket[i].range[which[i]].width, (unsigned long long)value[i]);
	}
	str_add_n(s, p->lead[i], p->lead_len[i]);
}

static void pattern_expand(const struct pattern *p, struct hostlist *out)
{
	size_t which[BRACKETS_MAX] = { 0 };
	uint64_t value[BRACKETS_MAX];
	struct str s = STR_INIT;

	for (size_t i = 0; i < p->n; i++)
		value[i] = p->bracket[i].range[0].lo;
	for (;;) {
		size_t i;
		str_reset(&s);
		pattern_name(p, which, value, &s);
		list_own(out, xstrndup(s.data, s.len));
		/* Turn the odometer: last bracket fastest. */
		for (i = p->n; i > 0; i--) {
			const struct bracket *b = &p->bracket[i - 1];
			if (value[i - 1] < b->range[which[i - 1]].hi) {
				value[i - 1]++;
				break;
			}
			which[i - 1] = (which[i - 1] + 1) % b->count;
			value[i - 1] = b->range[which[i - 1]].lo;
			if (which[i - 1] != 0)
				break;
		}
		if (i == 0)
			break;
	}
	str_fini(&s);
}

/* Walks all patterns of text; out NULL: only counts. Returns the count. */
static long list_read(const char *text, struct hostlist *out, struct error *err)
{
	const char *at = text;
	uint64_t total = 0;

	for (;;) {
		struct pattern p;
		const char *start;
		int rc;
		while (is_sep(*at))
			at++;
		if (*at == '\0')
			return (long)total;
		start = at;
		rc = pattern_read(text, &at, &p, err);
		if (rc == 0) {
			total += pattern_count(&p);
			if (total > HOSTLIST_MAX)
				rc = bad(err, text, start, "too many names");
			else if (out)
				pattern_expand(&p, out);
		}
		pattern_fini(&p);
		if (rc < 0)
			return rc;
	}
}

int hostlist_add(struct hostlist *hl, const char *text, struct error *err)
{
	struct hostlist more = HOSTLIST_INIT;
	long n = list_read(text, &more, err);

	if (n < 0) {
		hostlist_fini(&more);
		return (int)n;
	}
	if (more.count > 0) {
		hl->name = xgrow(hl->name, &hl->cap, hl->count + more.count, sizeof(*hl->name));
		memcpy(hl->name + hl->count, more.name, more.count * sizeof(*more.name));
		hl->count += more.count;
	}
	free(more.name);
	return 0;
}

char *hostlist_first(const char *text)
{
	struct pattern p;
	struct str s = STR_INIT;
	size_t which[BRACKETS_MAX] = { 0 };
	uint64_t value[BRACKETS_MAX];
	char *name = NULL;
	while (is_sep(*text))
		text++;
	const char *at = text;
	if (pattern_read(text, &at, &p, NULL) == 0) {
		for (size_t i = 0; i < p.n; i++)
			value[i] = p.bracket[i].range[0].lo;
		pattern_name(&p, which, value, &s);
		name = s.len ? xstrndup(s.data, s.len) : NULL;
	}
	pattern_fini(&p);
	str_fini(&s);
	return name;
}

long hostlist_count(const char *text, struct error *err)
{
	return list_read(text, NULL, err);
}

void hostlist_push(struct hostlist *hl, const char *name)
{
	list_own(hl, xstrdup(name));
}

/* Natural order: digit runs compare by value, then by width. */
static int name_compare(const char *a, const char *b)
{
	while (*a && *b) {
		if (is_digit(*a) && is_digit(*b)) {
			const char *sa = a, *sb = b;
			size_t la, lb;
			int c;
			while (*a == '0')
				a++;
			while (*b == '0')
				b++;
			for (la = 0; is_digit(a[la]); la++)
				;
			for (lb = 0; is_digit(b[lb]); lb++)
				;
			if (la != lb)
				return la < lb ? -1 : 1;
			c = memcmp(a, b, la);
			if (c)
				return c;
			if (a - sa != b - sb)
				return a - sa < b - sb ? -1 : 1;
			a += la;
			b += lb;
			continue;
		}
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

static int name_compare_sort(const void *a, const void *b)
{
	return name_compare(*(char *const *)a, *(char *const *)b);
}

void hostlist_sort(struct hostlist *hl)
{
	if (hl->count > 1)
		qsort(hl->name, hl->count, sizeof(*hl->name), name_compare_sort);
}

void hostlist_uniq(struct hostlist *hl)
{
	size_t kept = 0;

	hostlist_sort(hl);
	for (size_t i = 0; i < hl->count; i++) {
		if (kept > 0 && strcmp(hl->name[kept - 1], hl->name[i]) == 0)
			free(hl->name[i]);
		else
			hl->name[kept++] = hl->name[i];
	}
	hl->count = kept;
}

int hostlist_find(const struct hostlist *hl, const char *name)
{
	for (size_t i = 0; i < hl->count; i++)
		if (strcmp(hl->name[i], name) == 0)
			return (int)i;
	return -1;
}

/* Length of the part before the number the name ends with; whole length if there is none. */
static size_t stem_len(const char *name, size_t len)
{
	size_t at = len;
	while (at > 0 && is_digit(name[at - 1]))
		at--;
	return len - at > NUM_DIGITS_MAX ? len : at;
}

/* Does `next` name the number after `name` in the form a range would print it? */
static bool is_next(const char *digits, size_t width, const char *next)
{
	char buf[32];
	unsigned long long v = strtoull(digits, NULL, 10);
	snprintf(buf, sizeof(buf), "%0*llu", (int)width, v + 1);
	return strcmp(buf, next) == 0;
}

/* One group: names from i that share a stem; returns the index behind it. */
static size_t group_add(const struct hostlist *hl, size_t i, struct str *out)
{
	const char *first = hl->name[i];
	size_t len = strlen(first), stem = stem_len(first, len), j = i;
	bool any = false;

	if (stem == len || (i + 1 == hl->count)) {
		str_add_sep(out, ",", first);
		return i + 1;
	}
	for (j = i + 1; j < hl->count; j++) {
		size_t l = strlen(hl->name[j]);
		if (stem_len(hl->name[j], l) != stem || l == stem || memcmp(hl->name[j], first, stem) != 0)
			break;
	}
	if (j == i + 1) {
		str_add_sep(out, ",", first);
		return j;
	}
	if (out->len > 0)
		str_add_c(out, ',');
	str_add_n(out, first, stem);
	str_add_c(out, '[');
	while (i < j) {
		size_t k = i;
		size_t width = strlen(hl->name[i] + stem);
		while (k + 1 < j && is_next(hl->name[k] + stem, width, hl->name[k + 1] + stem))
			k++;
		if (any)
			str_add_c(out, ',');
		any = true;
		str_add(out, hl->name[i] + stem);
		if (k > i) {
			str_add_c(out, '-');
			str_add(out, hl->name[k] + stem);
		}
		i = k + 1;
	}
	str_add_c(out, ']');
	return j;
}

char *hostlist_compact(const struct hostlist *hl)
{
	struct str s = STR_INIT;
	for (size_t i = 0; i < hl->count;)
		i = group_add(hl, i, &s);
	return str_take(&s);
}

void hostlist_fini(struct hostlist *hl)
{
	for (size_t i = 0; i < hl->count; i++)
		free(hl->name[i]);
	free(hl->name);
	*hl = HOSTLIST_INIT;
}
