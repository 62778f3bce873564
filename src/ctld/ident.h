/* ident.h - who a uid is: name, groups, home, shell; kept for a while, looked up by a thread when not known */
#pragma once
#include "ctld/ctld.h"

struct ident {
	uint32_t uid, gid;
	char *user, *group, *home, *shell;
	char *groups;                /* names of all groups, comma separated */
	uint32_t *gids;
	size_t gid_count;
	uint64_t fetched_ms;
	bool known;                  /* false: no such user; user is its number as text */
};
struct idents *idents_create(struct ctld *d);
void idents_destroy(struct idents *i);
/* Calls back at once when known, else when the thread has it. The ident lives until the next turn. */
typedef void (*ident_fn)(struct ctld *d, const struct ident *id, void *arg);
void ident_get(struct ctld *d, uint32_t uid, ident_fn fn, void *arg);
/* Waits for the look-up where it must (a launch after a restart). */
const struct ident *ident_now(struct ctld *d, uint32_t uid);
/* Name of a group; the caller frees. */
char *ident_group(uint32_t gid);
