/* used.h - what must not be used again although slurmd was restarted: credentials of steps, and all credentials of jobs that are over here
 *
 * Two files in the spool, `used.0` and `used.1`, take records in turn: one is emptied when all in it have expired. They are not synced: they have to survive
 * slurmd, not the machine, whose restart ends all jobs. */
#pragma once
#include "noded/noded.h"
/* Read what was used before slurmd started, into cred.c and jobs.c. */
void used_load(struct noded *n);
/* 0 or -errno. */
int used_nonce(const struct noded *n, const uint8_t nonce[16], uint64_t expires);
/* The job's run is over on this node. */
void used_over(const struct noded *n, uint32_t job_id, uint32_t restarts);
