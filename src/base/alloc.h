/* alloc.h - memory that never fails
 * Out of memory ends the process: facts are on disk and a restart is cheap. */
#pragma once
#include <stdarg.h>
#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *ptr, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
/* NULL stays NULL. */
char *xstrdup_null(const char *s);
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0), malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), malloc, returns_nonnull));
/* Free *p and set it to NULL. */
#define xfree(p) (free(p), (void)((p) = NULL))
/* Replace the owned string *dst by a copy of src (may be NULL). */
void xstr_set(char **dst, const char *src);
/* Grow an array so that it has room for `need` elements: doubles capacity. */
void *xgrow(void *array, size_t *cap, size_t need, size_t elem_size);
