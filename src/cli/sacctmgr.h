/* sacctmgr.h - what the files of sacctmgr share: sacctmgr.c (command line), sacctmgr_show.c (lists), sacctmgr_set.c (settings by name), sacctmgr_change.c (add, modify, delete) */
#pragma once
#include <stdbool.h>
#include "base/str.h"
#include "cli/cells.h"
#include "client/client.h"
#include "model/limit.h"
#include "proto/assoc.pb-c.h"

enum entity { E_NONE, E_ACCOUNT, E_ASSOC, E_CLUSTER, E_COORD, E_QOS, E_TRES, E_USER };
enum { OP_SET, OP_ADD, OP_REMOVE };
struct pair { char *key, *value; int op; bool where; };   /* key NULL: a bare word */
struct sacctmgr {
	struct client *client;
	Pb__AcctSnapshot *all;
	struct cells cells;
	bool now, no_header, quiet, with_assoc, with_coord, tree, only_defaults, plain; /* now: -i; plain: without limits of parents */
	enum entity entity;
	struct pair *pair;
	size_t pairs, cap;
	char *format;
	Pb__AcctChange **change;
	size_t changes, change_cap;
};

/* Is `text` a beginning of `name` of at least `least` letters? */
bool word_is(const char *text, const char *name, size_t least);
/* Comma lists. */
bool list_has(const char *list, const char *word);
const char *cluster_own(const struct sacctmgr *s);
Pb__QosRecord *find_qos(const struct sacctmgr *s, const char *name);
Pb__AccountRecord *find_account(const struct sacctmgr *s, const char *name);
Pb__UserRecord *find_user(const struct sacctmgr *s, const char *name);
/* user NULL: the account itself. */
Pb__AssocRecord *find_assoc(const struct sacctmgr *s, const char *cluster, const char *account, const char *user);
Pb__AssocRecord *assoc_parent(const struct sacctmgr *s, const Pb__AssocRecord *m);

int sacctmgr_show(struct sacctmgr *s);     /* exit status */

/* sacctmgr_set.c: true: the record knows such a key (and *rc says whether the value was good; said on stderr if not) */
bool set_qos(struct sacctmgr *s, Pb__QosRecord *q, const struct pair *p, int *rc);
bool set_assoc(struct sacctmgr *s, Pb__AssocRecord *m, const struct pair *p, int *rc);
bool set_account(Pb__AccountRecord *m, const struct pair *p, int *rc);
bool set_user(Pb__UserRecord *m, const struct pair *p, int *rc);
void strings_set(char ***list, size_t *n, const char *text, int op);
void strings_put(char *const *list, size_t n, struct str *out);  /* sorted, comma separated */

int sacctmgr_add(struct sacctmgr *s);
int sacctmgr_modify(struct sacctmgr *s);
int sacctmgr_delete(struct sacctmgr *s);
