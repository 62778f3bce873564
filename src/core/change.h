/* change.h - what the files that answer scontrol share (private to src/core): update, operate, node_update, partition, reserve_update */
#pragma once
#include "core/state.h"

/* "a,b", or "+a,-b": of old. *ret is the caller's. A negative code: a name that is none. */
int nodes_moved(const struct core *c, const struct bitset *old, const char *text, struct bitset **ret, struct error *err);
bool topology_known(const struct core *c, const char *name);   /* is there one of that name? */
/* Is a hold by this caller the administrator's, rather than the owner's? */
bool held_by_admin(const struct core_job *j, const struct core_caller *by);
/* ResumeAfter: resumes the node if its time has come. */
void node_resume_due(struct core *c, struct core_node *n);
/* AllocNodes: does the partition take jobs of that host? */
bool part_host_allowed(const Pb__PartitionRecord *p, const Pb__JobDesc *d);
