/* acct.h - what slurmdbd shall know: a queue in the store, sent in order, removed when slurmdbd has it on disk
 * Bounded by MaxDBDMsgs: beyond that records of steps are dropped, then those of jobs that later ones replace, then the oldest; that is logged (max_dbd_msg_action=exit: slurmctld ends instead). Without
 * slurmdbd in the configuration nothing is queued. */
#pragma once
#include "ctld/ctld.h"

struct acct *acct_create(struct ctld *d);
void acct_destroy(struct acct *a);
void acct_add(struct ctld *d, const struct core_effect *e);
void acct_conf_changed(struct ctld *d);
/* One more than `max` may wait: makes room. */
void acct_bound(struct acct *a, size_t max);
size_t acct_queued(const struct acct *a);
struct wire_link *acct_link(const struct acct *a); /* NULL: no slurmdbd */

/* Gives fn how the jobs ended that a dependency names and the core has forgotten, as slurmdbd knows them; at once, with none, where there are none to ask
 * for, no slurmdbd is configured or it does not answer within seconds. The list lives until fn returns. */
typedef void (*acct_ended_fn)(struct ctld *d, const struct core_ended *ended, size_t n, void *arg);
void acct_ended(struct ctld *d, const char *const *dependency, size_t dependencies, acct_ended_fn fn, void *arg);
