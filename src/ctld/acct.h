/* acct.h - what slurmdbd shall know: a queue in the store, sent in order, removed when slurmdbd has it on disk
 * Bounded by MaxDBDMsgs: beyond that the oldest are dropped, and that is logged. Without slurmdbd in the configuration nothing is queued. */
#pragma once
#include "ctld/ctld.h"

struct acct *acct_create(struct ctld *d);
void acct_destroy(struct acct *a);
void acct_add(struct ctld *d, const struct core_effect *e);
void acct_conf_changed(struct ctld *d);
size_t acct_queued(const struct acct *a);
