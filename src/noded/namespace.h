/* namespace.h - private folders of jobs on this node: their base, and taking them away (stepd/namespace.h makes them) */
#pragma once
#include "noded/noded.h"
/* Check or make BasePath; take away what jobs of before this boot left. */
void namespace_start(struct noded *n);
/* The base for steps, "%n" and "%h" filled in; NULL: none. */
const char *namespace_base(const struct noded *n);
/* Nothing of the job is left here: its folders go. Large ones are emptied by a process of its own. */
void namespace_job_gone(const struct noded *n, uint32_t job_id);
/* A folder in one of root's whose contents are uid's goes. By a process that is uid, so that links and folders that change meanwhile lead to nothing of others;
 * slurmd does not wait. */
void namespace_remove_as(const char *path, uid_t uid);
