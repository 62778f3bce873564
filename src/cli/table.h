/* table.h - the output engine: one row of a field table is one column a user may ask for
 *
 * A field has a letter (-o "%i"), a long name (-O "JobID"), a header, a getter and a way to sort. From the
 * rows come -o, -O, --sort, --helpformat, --helpFormat and the refusal of what does not work yet.
 * Width rules are the reference's, byte for byte: "%[.][width]letter" and "name[:[.][width][suffix]]", a value longer
 * than its width is cut, a dot justifies to the right, text between fields is copied.
 * Nothing here allocates per cell: a getter appends to the output and the engine cuts or pads in place. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/str.h"

struct field;
/* Appends the value of one field of `row`. */
typedef void (*field_get_fn)(struct str *out, void *row, const struct field *f);
/* A value to sort by. */
typedef int64_t (*field_key_fn)(void *row, const struct field *f);
enum {
	FIELD_TODO = 1,
	FIELD_HIDDEN = 2,    /* works, but is not in the help lists */
	FIELD_SPAN = 4,      /* a span of time: not cut where it is right-justified (words such as UNLIMITED are) */
};
struct field {
	char letter;         /* 0: only by name */
	const char *name;    /* for -O */
	const char *header;
	field_get_fn get;
	unsigned arg;        /* for the getter: which field of the message */
	const char *absent;  /* for the getter: what is shown when it is not there */
	field_key_fn key;    /* NULL: sorted by its text */
	unsigned flags;
};

struct column {
	const struct field *field;   /* NULL: only text */
	bool right;
	uint32_t width;              /* 0: as long as the value is */
	char *suffix;                /* text up to the next field; may be "" */
};
struct table {
	const struct field *fields;
	size_t n_fields;
	const char *kind;            /* "job", "job step": named in error messages */
	char *lead;                  /* text before the first column */
	struct column *col;
	size_t n_col, cap;
};

void table_init(struct table *t, const struct field *fields, size_t n_fields, const char *kind);
void table_fini(struct table *t);
/* Add the columns of a -o format. Unknown letters are reported on stderr and copied, as the reference does.
 * -ENOTSUP for a field that does not work yet. `upper_sep`: what "%all" puts after capital letters. */
int table_format(struct table *t, const char *format, const char *upper_sep, struct error *err);
/* Add the columns of a -O format. */
int table_format_long(struct table *t, const char *format, struct error *err);
/* Add the columns of a sacct-like list: "name", "name%width", "name%-width"; default widths from `width_of` (NULL: 10, negative: left). */
int table_format_list(struct table *t, const char *list, int (*width_of)(const struct field *), struct error *err);
const struct field *table_find(const struct table *t, const char *name);
const struct field *table_find_letter(const struct table *t, char letter);
void table_header(const struct table *t, struct str *out);
void table_row(const struct table *t, void *row, struct str *out);
/* --helpformat and --helpFormat. */
void table_help_letters(const struct field *fields, size_t n, struct str *out);
void table_help_names(const struct field *fields, size_t n, struct str *out);

/* Sorting: "P,t,-p". Keys of all rows are read once, then rows are ordered; equal rows keep their order. */
#define SORT_MAX 16
struct sort_spec {
	size_t n;
	struct { const struct field *field; bool down; } by[SORT_MAX];
};
int sort_parse(const struct table *t, const char *text, struct sort_spec *ret, struct error *err);
struct sorter;
struct sorter *sorter_create(const struct sort_spec *spec, size_t rows);
void sorter_add(struct sorter *s, void *row);
/* The order as indexes of rows in the order they were added; lives as long as the sorter. */
const uint32_t *sorter_order(struct sorter *s);
void sorter_destroy(struct sorter *s);

/* Small pieces all getters use. */
void put_u64(struct str *out, uint64_t v);
void put_i64(struct str *out, int64_t v);
/* Text, or `absent` when NULL. */
void put_text(struct str *out, const char *text, const char *absent);
/* Write all of `out` to fd 1 and make it empty; ends the process quietly on a closed pipe. */
void out_flush(struct str *out);
#define OUT_CHUNK (256 * 1024)
