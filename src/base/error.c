/* error.c - what went wrong, for programs and for people (see error.h) */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const struct {
	int number;
	const char *name, *text;
} rows[] = {
#define ERR(name, number, text) { number, #name, text },
#include "tables/errors.def"
#undef ERR
};

int error_set(struct error *err, int code, const char *fmt, ...)
{
	va_list ap;
	code = -abs(code);
	if (!err)
		return code;
	err->code = code;
	err->hint[0] = 0;
	va_start(ap, fmt);
	vsnprintf(err->line, sizeof err->line, fmt, ap);
	va_end(ap);
	return code;
}

void error_hint(struct error *err, const char *fmt, ...)
{
	va_list ap;
	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof err->hint, fmt, ap);
	va_end(ap);
}

const char *error_text(int code)
{
	code = abs(code);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].number == code)
			return rows[i].text;
	return strerror(code);
}

const char *error_name(int code)
{
	code = abs(code);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].number == code)
			return rows[i].name;
	return NULL;
}
