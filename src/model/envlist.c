/* envlist.c - an environment being built (invariants: envlist.h) */
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/envlist.h"

static char **find(const struct envlist *e, const char *name, size_t len)
{
	for (size_t i = 0; i < e->count; i++)
		if (strncmp(e->var[i], name, len) == 0 && e->var[i][len] == '=')
			return &e->var[i];
	return NULL;
}

/* Takes ownership of entry, whose name is len long. */
static void put(struct envlist *e, char *entry, size_t len)
{
	char **at = find(e, entry, len);
	if (at) {
		free(*at);
		*at = entry;
		return;
	}
	e->var = xgrow(e->var, &e->cap, e->count + 2, sizeof(*e->var));
	e->var[e->count++] = entry;
	e->var[e->count] = NULL;
}

void envlist_load(struct envlist *e, char *const *vars, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *eq = strchr(vars[i], '=');
		if (eq && eq > vars[i])
			put(e, xstrdup(vars[i]), (size_t)(eq - vars[i]));
	}
}

void envlist_set(struct envlist *e, const char *name, const char *value)
{
	put(e, xasprintf("%s=%s", name, value), strlen(name));
}

void envlist_setf(struct envlist *e, const char *name, const char *fmt, ...)
{
	char *value = NULL;
	va_list ap;

	va_start(ap, fmt);
	int rc = vasprintf(&value, fmt, ap);
	va_end(ap);
	if (rc >= 0) {
		envlist_set(e, name, value);
		free(value);
	}
}

void envlist_set_default(struct envlist *e, const char *name, const char *value)
{
	if (!find(e, name, strlen(name)))
		envlist_set(e, name, value);
}

void envlist_unset(struct envlist *e, const char *name)
{
	char **at = find(e, name, strlen(name));

	if (!at)
		return;
	free(*at);
	e->count--;
	/* Order is kept: people read environments. */
	memmove(at, at + 1, (size_t)(e->var + e->count + 1 - at) * sizeof(*at));
}

const char *envlist_get(const struct envlist *e, const char *name)
{
	size_t len = strlen(name);
	char **at = find(e, name, len);
	return at ? *at + len + 1 : NULL;
}

void envlist_fini(struct envlist *e)
{
	for (size_t i = 0; i < e->count; i++)
		free(e->var[i]);
	free(e->var);
	*e = ENVLIST_INIT;
}
