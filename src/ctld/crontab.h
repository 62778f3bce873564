/* crontab.h - the crontabs of users (scrontab): kept as they were written, each entry with the id of its job
 * One record of the store (STORE_META_CRON) holds them all. An entry whose job ends for good (scancel) is commented out. RPC_CRONTAB_GET and _SET: handlers.h. */
#pragma once
#include "ctld/ctld.h"

/* At start, when the jobs are restored. */
void crontabs_load(struct ctld *d);
/* A turn_fn: job `arg` has ended. Only called while there are crontabs. */
void crontab_ended(struct ctld *d, void *arg);
