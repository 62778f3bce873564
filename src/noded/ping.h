/* ping.h - D_PING: the node as it is now, its steps and their processes
 * Each slurmstepd is asked first; the answer waits for them, at most PING_MS. */
#pragma once
#include "noded/noded.h"
void ping_start(struct noded *n, struct wire_req *req);
/* A slurmstepd has told its processes, or is gone. */
void ping_step_told(struct noded *n);
