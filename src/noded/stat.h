/* stat.h - D_STAT: what a step uses on this node, for sstat
 * slurmstepd is asked; the answer waits for it, at most STAT_MS. */
#pragma once
#include "noded/noded.h"
struct node_step;
void stat_start(struct noded *n, struct wire_req *req);
/* slurmstepd has answered; NULL: it is gone. */
void stat_told(const struct node_step *st, const Pb__StepdEvent *e);
