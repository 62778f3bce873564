/* cgroup.h - the cgroup below which steps of this node live */
#pragma once
#include "noded/noded.h"
/* Find or make it (n->cgroup) and switch controllers on down to it (n->controllers, "cpuset memory"). What is missing is logged, with what is done instead. */
void cgroup_take(struct noded *n);
/* End what runs in cgroups of steps that have no slurmstepd, and take away those that are empty: left by a slurmstepd that was killed. */
void cgroup_sweep(struct noded *n);
/* At the end: when nothing runs, the folder itself. */
void cgroup_leave(struct noded *n);
