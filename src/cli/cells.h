/* cells.h - tables of sacct and sstat: columns chosen by --format, cells cut with + or parsable
 *
 *     struct cells c = { .field = names, .field_n = N };
 *     cells_format(&c, "jobid,state%20");      (again to add more)
 *     cells_header(&out, &c);
 *     for each row: for each column i: cells_put(&out, &c, i, value of c.col[i].field);  */
#pragma once
#include <stddef.h>
#include "base/str.h"

struct cells_field { const char *name; int width; };   /* width < 0: left-justified */
struct cells {
	const struct cells_field *field;
	size_t field_n;
	int parsable;                 /* 1: -p, 2: -P */
	const char *delimiter;        /* NULL: | */
	struct { size_t field; int width; } *col;
	size_t n, cap;
};
/* "name,name%width,..."; "all". A name may be a beginning of a field's. 0, or -EINVAL and an error printed. */
int cells_format(struct cells *c, const char *format);
void cells_header(struct str *out, const struct cells *c);
/* The value of column i; the last one does not end the line. */
void cells_put(struct str *out, const struct cells *c, size_t i, const char *value);
/* --helpformat */
void cells_help(const struct cells *c);
/* Names in columns. */
void cells_names(const char *const *name, size_t n, int per_line, int width);
