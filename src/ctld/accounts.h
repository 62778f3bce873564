/* accounts.h - QOS, accounts, users and associations: slurmctld's copy of what slurmdbd keeps
 * Told of each change at once, kept in the store, so that a restart without slurmdbd works with what was known last. */
#pragma once
#include "ctld/ctld.h"

struct accounts *accounts_create(struct ctld *d);
void accounts_destroy(struct accounts *a);
/* What the store has goes to the core: before the jobs. */
int accounts_restore(struct ctld *d, struct error *err);
/* The configuration was read; slurmdbd is asked, if there is one. */
void accounts_conf_changed(struct ctld *d);
/* By AdminLevel. */
bool accounts_is_operator(const struct ctld *d, uint32_t uid);
bool accounts_is_admin(const struct ctld *d, uint32_t uid);
