/* cells.c - see cells.h */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/cells.h"

static void column_add(struct cells *c, size_t field, int width)
{
	c->col = xgrow(c->col, &c->cap, c->n + 1, sizeof *c->col);
	c->col[c->n].field = field;
	c->col[c->n++].width = width;
}

static int field_add(struct cells *c, char *name)
{
	char *percent = strchr(name, '%');
	long long width = 0;
	if (percent) {
		*percent = 0;
		if (str_to_i64(percent + 1, -10000, 10000, &width)) {
			log_error("Invalid field width: \"%s%%%s\"", name, percent + 1);
			return -EINVAL;
		}
	}
	bool all = !strcasecmp(name, "ALL");
	size_t n = strlen(name);
	for (size_t i = 0; i < c->field_n; i++) {
		if (!all && strncasecmp(c->field[i].name, name, n))
			continue;
		column_add(c, i, percent ? (int)width : c->field[i].width);
		if (!all)
			return 0;
	}
	if (all)
		return 0;
	log_error("Invalid field requested: \"%s\"", name);
	return -EINVAL;
}

int cells_format(struct cells *c, const char *format)
{
	char *copy = xstrdup(format), *rest = copy, *name;
	int rc = 0;
	while (!rc && (name = str_next(&rest, ",")))
		if (*(name = str_trim(name)))
			rc = field_add(c, name);
	free(copy);
	return rc;
}

void cells_put(struct str *out, const struct cells *c, size_t i, const char *v)
{
	size_t width = (size_t)abs(c->col[i].width), n = strlen(v);
	if (c->parsable) {
		str_add(out, v);
		str_add(out, i + 1 == c->n && c->parsable == 2 ? "" : c->delimiter ? c->delimiter : "|");
	} else if (n > width && width) {
		str_addf(out, "%.*s+ ", (int)width - 1, v);
	} else {
		str_addf(out, c->col[i].width < 0 ? "%-*s " : "%*s ", (int)width, width ? v : "");
	}
}

void cells_header(struct str *out, const struct cells *c)
{
	for (size_t i = 0; i < c->n; i++) {
		char name[64];
		snprintf(name, sizeof name, "%.*s", c->parsable ? 63 : abs(c->col[i].width), c->field[c->col[i].field].name);
		cells_put(out, c, i, name);
	}
	str_add_c(out, '\n');
	if (c->parsable)
		return;
	for (size_t i = 0; i < c->n; i++) {
		for (int w = abs(c->col[i].width); w; w--)
			str_add_c(out, '-');
		str_add_c(out, ' ');
	}
	str_add_c(out, '\n');
}

void cells_names(const char *const *name, size_t n, int per_line, int width)
{
	for (size_t i = 0; i < n; i++)
		printf("%-*s%s", width, name[i], (i + 1) % (size_t)per_line && i + 1 < n ? " " : "\n");
}

void cells_help(const struct cells *c)
{
	const char **name = xcalloc(c->field_n + 1, sizeof *name);
	for (size_t i = 0; i < c->field_n; i++)
		name[i] = c->field[i].name;
	cells_names(name, c->field_n, 4, 19);
	free(name);
}
