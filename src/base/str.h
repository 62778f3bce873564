/* str.h - a growing string
 * Invariant: data is never NULL and always has a NUL at data[len]. An object is ready after STR_INIT
 * and gives its memory back with str_fini or hands it over with str_take. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

struct str {
	char *data;
	size_t len;
	size_t cap; /* 0: data is the shared empty string */
};
extern char str_empty[1];
#define STR_INIT ((struct str){ .data = str_empty })

void str_fini(struct str *s);
void str_reset(struct str *s);                     /* keep the memory, become empty */
void str_add(struct str *s, const char *text);
void str_add_n(struct str *s, const void *bytes, size_t n);
void str_add_c(struct str *s, char c);
void str_add_u64(struct str *s, uint64_t n);      /* in decimal */
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_add_sep(struct str *s, const char *sep, const char *text); /* sep only when not empty */
void str_reserve(struct str *s, size_t extra);
char *str_take(struct str *s);                     /* caller frees; s becomes empty */
bool str_eq(const char *a, const char *b);         /* NULL equals NULL only */
bool str_eq_nocase(const char *a, const char *b);
bool str_starts(const char *s, const char *prefix);
/* Next piece of *cursor up to one of the characters in `delims`, cut off in place; NULL at the end. Empty pieces are returned. */
char *str_next(char **cursor, const char *delims);
/* From data[from] on, bytes that act on a terminal (C0, DEL, C1 as UTF-8) become '?': text of one user on the screen of another. */
void str_mask_controls(struct str *s, size_t from);
char *str_trim(char *s);                           /* in place: white space off both ends */
/* Whole text as a decimal number within [min, max]. 0 or -EINVAL / -ERANGE. Nothing may follow. */
int str_to_u64(const char *text, unsigned long long min, unsigned long long max, unsigned long long *ret);
/* Decimal digits at *at, no more than `most` (< 20) of them: their value, and *at behind them. false (nothing is changed): there are none, or more. */
bool str_digits(const char **at, unsigned most, uint64_t *ret);
int str_to_i64(const char *text, long long min, long long max, long long *ret);
