/* str.c - a growing string (see str.h) */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"

char str_empty[1];

void str_fini(struct str *s)
{
	if (s->cap)
		free(s->data);
	*s = STR_INIT;
}

void str_reset(struct str *s)
{
	s->len = 0;
	if (s->cap)
		s->data[0] = 0;
}

void str_reserve(struct str *s, size_t extra)
{
	size_t need = s->len + extra + 1;
	if (need <= s->cap)
		return;
	size_t cap = s->cap ? s->cap : 64;
	while (cap < need)
		cap *= 2;
	s->data = s->cap ? xrealloc(s->data, cap) : xmalloc(cap);
	s->cap = cap;
	s->data[s->len] = 0;
}

void str_add_n(struct str *s, const void *bytes, size_t n)
{
	str_reserve(s, n);
	if (n)
		memcpy(s->data + s->len, bytes, n);
	s->len += n;
	s->data[s->len] = 0;
}

void str_add(struct str *s, const char *text) { str_add_n(s, text, strlen(text)); }
void str_add_c(struct str *s, char c) { str_add_n(s, &c, 1); }

void str_add_u64(struct str *s, uint64_t n)
{
	char buf[20];
	size_t at = sizeof buf;
	do
		buf[--at] = (char)('0' + n % 10);
	while (n /= 10);
	str_add_n(s, buf + at, sizeof buf - at);
}

void str_addf(struct str *s, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	assert(fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	str_reserve(s, (size_t)n);
	vsnprintf(s->data + s->len, (size_t)n + 1, fmt, again);
	va_end(again);
	s->len += (size_t)n;
}

void str_add_sep(struct str *s, const char *sep, const char *text)
{
	if (s->len)
		str_add(s, sep);
	str_add(s, text);
}

char *str_take(struct str *s)
{
	char *data = s->cap ? s->data : xstrdup("");
	*s = STR_INIT;
	return data;
}

bool str_eq(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }
bool str_eq_nocase(const char *a, const char *b) { return a == b || (a && b && !strcasecmp(a, b)); }
bool str_starts(const char *s, const char *prefix) { return !strncmp(s, prefix, strlen(prefix)); }

char *str_next(char **cursor, const char *delims)
{
	char *piece = *cursor;
	if (!piece)
		return NULL;
	char *end = piece + strcspn(piece, delims);
	*cursor = *end ? end + 1 : NULL;
	*end = 0;
	return piece;
}

char *str_trim(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	size_t n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = 0;
	return s;
}

int str_to_u64(const char *text, unsigned long long min, unsigned long long max, unsigned long long *ret)
{
	unsigned long long v = 0;
	if (!*text)
		return -EINVAL;
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9')
			return -EINVAL;
		if (v > (~0ULL - (unsigned)(*p - '0')) / 10)
			return -ERANGE;
		v = v * 10 + (unsigned)(*p - '0');
	}
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

bool str_digits(const char **at, unsigned most, uint64_t *ret)
{
	const char *p = *at;
	uint64_t v = 0;
	while (*p >= '0' && *p <= '9' && p - *at < most)
		v = v * 10 + (uint64_t)(*p++ - '0');
	if (p == *at || (*p >= '0' && *p <= '9'))
		return false;
	*at = p;
	*ret = v;
	return true;
}

int str_to_i64(const char *text, long long min, long long max, long long *ret)
{
	bool negative = *text == '-';
	unsigned long long v;
	int rc = str_to_u64(text + (negative || *text == '+'), 0, 1ULL << 62, &v);
	if (rc)
		return rc;
	long long value = negative ? -(long long)v : (long long)v;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

void str_mask_controls(struct str *s, size_t from)
{
	unsigned char *p = (unsigned char *)s->data;
	for (size_t i = from; i < s->len; i++) {
		if (p[i] < 0x20 || p[i] == 0x7f)
			p[i] = '?';
		else if (p[i] == 0xc2 && p[i + 1] >= 0x80 && p[i + 1] < 0xa0)
			p[i] = p[i + 1] = '?';
	}
}
