/* stepd.h - starting slurmstepd
 *
 * A slurmstepd is forked from one that slurmd has started before and that waits (stepd/zygote.h): that saves an exec, a run of the dynamic linker and
 * the page faults of both, about half a millisecond of each step. It ends with slurmd; one that died is replaced; from time to time it is renewed, so
 * that an address learnt from one slurmstepd tells little of the next ones. */
#pragma once
#include "noded/noded.h"

/* One that waits, so that the first step finds it. What fails here is tried again, and told, at the first step. */
void stepd_prepare(struct noded *n);
/* A slurmstepd that waits for its StepdStart. `will`: its descriptor 4, stays the caller's; negative: none. `title`: what ps shows (at most
 * ZYGOTE_TITLE_MAX bytes of it). The connection to it, which is its descriptor 3, and its process id; or a negative code. */
int stepd_start(struct noded *n, const char *title, int will, pid_t *ret_pid);
