/* waiters.h - long polls: who waits for a job to get nodes or to end (RPC_WAIT) */
#pragma once
#include "ctld/ctld.h"

struct waiters *waiters_create(void);
void waiters_destroy(struct waiters *w);
/* Answers now if what is waited for is there, else when it comes. */
void waiters_call(struct ctld *d, struct wire_req *req);
/* turn_fn: arg is the job's id. */
void waiters_allocated(struct ctld *d, void *job_id);
void waiters_ended(struct ctld *d, void *job_id);
size_t waiters_count(const struct waiters *w);
