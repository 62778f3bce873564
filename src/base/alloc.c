/* alloc.c - memory that never fails (see alloc.h) */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void *check(void *ptr)
{
	if (!ptr)
		abort();
	return ptr;
}

void *xmalloc(size_t size) { return check(malloc(size ? size : 1)); }
void *xcalloc(size_t count, size_t size) { return check(calloc(count ? count : 1, size ? size : 1)); }
void *xrealloc(void *ptr, size_t size) { return check(realloc(ptr, size ? size : 1)); }
char *xstrdup(const char *s) { return check(strdup(s)); }
char *xstrndup(const char *s, size_t n) { return check(strndup(s, n)); }
char *xstrdup_null(const char *s) { return s ? xstrdup(s) : NULL; }

void *xmemdup(const void *p, size_t n)
{
	void *copy = xmalloc(n);
	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s = NULL;
	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	return check(s);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

void xstr_set(char **dst, const char *src)
{
	char *copy = xstrdup_null(src);
	free(*dst);
	*dst = copy;
}

void *xgrow(void *array, size_t *cap, size_t need, size_t elem_size)
{
	size_t want = *cap ? *cap : 8;
	if (need <= *cap)
		return array;
	while (want < need)
		want *= 2;
	*cap = want;
	return xrealloc(array, want * elem_size);
}
