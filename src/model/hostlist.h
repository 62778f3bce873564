/* hostlist.h - host names and their compact form: node-[21,23-26], a[1-2]b[3-4], b2u[05,02]n3
 * Order and duplicates are kept when expanding; zero padding is kept. Malformed input is an error that names the position, and
 * changes nothing. At most HOSTLIST_MAX names. Behaviour: scontrol(1) "show hostlist/hostnames". */
#pragma once
#include <stddef.h>
#include "base/error.h"

#define HOSTLIST_MAX 131072
struct hostlist { char **name; size_t count, cap; };
#define HOSTLIST_INIT ((struct hostlist){ 0 })
/* Append what text names (separated by commas, white space or newlines). 0 or -EINVAL and err; on error hl is as it was. */
int hostlist_add(struct hostlist *hl, const char *text, struct error *err);
void hostlist_push(struct hostlist *hl, const char *name);      /* one plain name */
void hostlist_sort(struct hostlist *hl);                        /* natural order: node2 before node10 */
void hostlist_uniq(struct hostlist *hl);                        /* sorts, then drops duplicates */
int hostlist_find(const struct hostlist *hl, const char *name); /* index or -1 */
/* Compact form, malloc'd; consecutive names that can are folded ("n[1-3]"); order kept. "" when empty. */
char *hostlist_compact(const struct hostlist *hl);
void hostlist_fini(struct hostlist *hl);
/* The first name of a list, malloc'd, without making the others; NULL: it is empty, or begins with what is no name. */
char *hostlist_first(const char *text);
/* Count of names in a list without keeping them; negative error code. */
long hostlist_count(const char *text, struct error *err);
