/* envlist.h - an environment being built: a NULL-terminated array of "NAME=value"
 * Invariant: a name is there at most once; var is NULL or var[count] is NULL. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct envlist { char **var; size_t count, cap; };
#define ENVLIST_INIT ((struct envlist){ 0 })
void envlist_load(struct envlist *e, char *const *vars, size_t n);  /* append n entries; later ones win; entries without '=' are dropped */
void envlist_set(struct envlist *e, const char *name, const char *value);
void envlist_setf(struct envlist *e, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void envlist_set_default(struct envlist *e, const char *name, const char *value); /* only when absent */
void envlist_unset(struct envlist *e, const char *name);
const char *envlist_get(const struct envlist *e, const char *name);  /* NULL: absent */
void envlist_fini(struct envlist *e);
