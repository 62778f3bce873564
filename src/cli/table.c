/* table.c - the output engine: formats, columns, help lists (see table.h). Sorting is in sort.c. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/table.h"

/* Wider than any terminal; a width in a format is cut to this so that "%999999999i" cannot eat all memory. */
#define WIDTH_MAX 65536

void table_init(struct table *t, const struct field *fields, size_t n_fields, const char *kind)
{
	*t = (struct table){ .fields = fields, .n_fields = n_fields, .kind = kind };
}

void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->n_col; i++)
		free(t->col[i].suffix);
	free(t->col);
	free(t->lead);
	*t = (struct table){ 0 };
}

const struct field *table_find(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n_fields; i++)
		if (t->fields[i].name && !strcasecmp(t->fields[i].name, name))
			return &t->fields[i];
	return NULL;
}

const struct field *table_find_letter(const struct table *t, char letter)
{
	for (size_t i = 0; letter && i < t->n_fields; i++)
		if (t->fields[i].letter == letter)
			return &t->fields[i];
	return NULL;
}

static int column_add(struct table *t, const struct field *field, bool right, unsigned long width, const char *suffix, struct error *err)
{
	if (field && (field->flags & FIELD_TODO))
		return error_set(err, ENOTSUP, "%s field \"%s\" (%s) is not supported yet", t->kind, field->name, field->header);
	t->col = xgrow(t->col, &t->cap, t->n_col + 1, sizeof(*t->col));
	t->col[t->n_col++] = (struct column){ .field = field, .right = right,
		.width = (uint32_t)(width > WIDTH_MAX ? WIDTH_MAX : width), .suffix = xstrdup(suffix) };
	return 0;
}

static void bad_spec(const struct table *t, const char *spec)
{
	log_error("Invalid %s format specification: %s", strcmp(t->kind, "node") ? t->kind : "job", spec);
}

/* The reference's sinfo says this one without its name in front. */
static void bad_letter(const struct table *t, const char *letter)
{
	if (strcmp(t->kind, "node"))
		bad_spec(t, letter);
	else
		fprintf(stderr, "Invalid node format specification: %s\n", letter);
}

static int add_all_letters(struct table *t, const char *upper_sep, struct error *err)
{
	for (const char *p = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"; *p; p++) {
		const struct field *f = table_find_letter(t, *p);
		char sep[16];
		snprintf(sep, sizeof(sep), "%s%s", isupper((unsigned char)*p) ? upper_sep : "", *p == 'Z' ? "" : "|");
		if (f && !(f->flags & FIELD_TODO)) {
			int rc = column_add(t, f, false, 0, sep, err);
			if (rc)
				return rc;
		}
	}
	return 0;
}

/* One piece between two '%': "[.][width]letter[text]". */
static int add_letter(struct table *t, char *piece, struct error *err)
{
	char *p = piece;
	bool right = *p == '.';
	p += right;
	unsigned long width = 0;
	if (isdigit((unsigned char)*p))
		width = strtoul(p, &p, 10);
	const struct field *f = table_find_letter(t, *p);
	if (f)
		return column_add(t, f, right, width, p + 1, err);
	char letter[2] = { *p, 0 };
	bad_letter(t, letter);
	char *text = xasprintf("%%%s", piece);
	int rc = column_add(t, NULL, false, 0, text, err);
	free(text);
	return rc;
}

int table_format(struct table *t, const char *format, const char *upper_sep, struct error *err)
{
	if (!strcasecmp(format, "%all"))
		return add_all_letters(t, upper_sep, err);
	char *copy = xstrdup(format), *cursor = copy;
	if (*cursor != '%')
		xstr_set(&t->lead, str_next(&cursor, "%"));
	int rc = 0;
	for (char *piece; !rc && (piece = str_next(&cursor, "%"));)
		if (*piece)
			rc = add_letter(t, piece, err);
	free(copy);
	return rc;
}

/* "name[:[.][width][suffix]]" */
static int add_name(struct table *t, char *piece, struct error *err)
{
	unsigned long width = 20;
	bool right = false;
	char *suffix = strchr(piece, ':');
	if (suffix) {
		*suffix++ = 0;
		width = 0;
		right = *suffix == '.';
		suffix += right;
		if (isdigit((unsigned char)suffix[*suffix == '+']))
			width = strtoul(suffix, &suffix, 10);
	}
	const struct field *f = table_find(t, piece);
	if (!f) {
		bad_spec(t, piece);
		return 0;
	}
	return column_add(t, f, right, width, suffix ? suffix : "", err);
}

int table_format_long(struct table *t, const char *format, struct error *err)
{
	char *copy = xstrdup(format), *cursor = copy;
	int rc = 0;
	for (char *piece; !rc && (piece = str_next(&cursor, ","));)
		if (*piece)
			rc = add_name(t, piece, err);
	free(copy);
	return rc;
}

static int add_listed(struct table *t, char *piece, int (*width_of)(const struct field *), struct error *err)
{
	char *percent = strchr(piece, '%');
	long width = 0;
	if (percent) {
		char *end;
		*percent++ = 0;
		width = strtol(percent, &end, 10);
		if (*end || end == percent)
			return error_set(err, EINVAL, "Invalid width \"%s\" of field \"%s\"", percent, piece);
	}
	const struct field *f = table_find(t, piece);
	if (!f)
		return error_set(err, EINVAL, "Invalid field requested: \"%s\"", piece);
	if (!percent)
		width = width_of ? width_of(f) : 10;
	return column_add(t, f, width > 0, (unsigned long)labs(width), "", err);
}

int table_format_list(struct table *t, const char *list, int (*width_of)(const struct field *), struct error *err)
{
	char *copy = xstrdup(list), *cursor = copy;
	int rc = 0;
	for (char *piece; !rc && (piece = str_next(&cursor, ","));)
		if (*piece)
			rc = add_listed(t, piece, width_of, err);
	free(copy);
	return rc;
}

/* Cut or pad what was appended since `start` to the width of the column. */
static void cell_fit(struct str *out, size_t start, const struct column *c)
{
	size_t len = out->len - start;
	if (!c->width || len == c->width)
		return;
	if (len > c->width && c->right && c->field && (c->field->flags & FIELD_SPAN) && isdigit((unsigned char)out->data[start]))
		return;
	if (len > c->width) {
		out->len = start + c->width;
		out->data[out->len] = 0;
		return;
	}
	size_t pad = c->width - len;
	str_reserve(out, pad);
	if (c->right) {
		memmove(out->data + start + pad, out->data + start, len);
		memset(out->data + start, ' ', pad);
	} else {
		memset(out->data + start + len, ' ', pad);
	}
	out->len += pad;
	out->data[out->len] = 0;
}

void table_header(const struct table *t, struct str *out)
{
	if (t->lead)
		str_add(out, t->lead);
	for (size_t i = 0; i < t->n_col; i++) {
		const struct column *c = &t->col[i];
		size_t start = out->len;
		if (c->field)
			str_add(out, c->field->header);
		cell_fit(out, start, c);
		str_add(out, c->suffix);
	}
	str_add_c(out, '\n');
}

void table_row(const struct table *t, void *row, struct str *out)
{
	if (t->lead)
		str_add(out, t->lead);
	for (size_t i = 0; i < t->n_col; i++) {
		const struct column *c = &t->col[i];
		size_t start = out->len;
		if (c->field)
			c->field->get(out, row, c->field);
		cell_fit(out, start, c);
		if (*c->suffix)
			str_add(out, c->suffix);
	}
	str_add_c(out, '\n');
}

void table_help_letters(const struct field *fields, size_t n, struct str *out)
{
	size_t printed = 0;
	for (size_t i = 0; i < n; i++)
		if (fields[i].letter && !(fields[i].flags & (FIELD_TODO | FIELD_HIDDEN)))
			str_addf(out, "%%%c    %s", fields[i].letter, ++printed % 8 ? "" : "\n");
	str_add(out, printed % 8 ? "\n" : "");
}

void table_help_names(const struct field *fields, size_t n, struct str *out)
{
	size_t printed = 0;
	for (size_t i = 0; i < n; i++)
		if (fields[i].name && !(fields[i].flags & (FIELD_TODO | FIELD_HIDDEN)))
			str_addf(out, "%-20s%s", fields[i].name, ++printed % 4 ? "" : "\n");
	str_add(out, printed % 4 ? "\n" : "");
}

void put_u64(struct str *out, uint64_t v)
{
	char buf[24], *p = buf + sizeof(buf);
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	str_add_n(out, p, (size_t)(buf + sizeof(buf) - p));
}

void put_i64(struct str *out, int64_t v)
{
	if (v < 0)
		str_add_c(out, '-');
	put_u64(out, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void put_text(struct str *out, const char *text, const char *absent) { str_add(out, text ? text : absent); }

void out_flush(struct str *out)
{
	for (size_t done = 0; done < out->len;) {
		ssize_t n = write(STDOUT_FILENO, out->data + done, out->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			exit(1);
		done += (size_t)n;
	}
	str_reset(out);
}
