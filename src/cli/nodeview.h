/* nodeview.h - facts of an encoded NodeRecord that scontrol, sinfo and JSON share */
#pragma once
#include "cli/jobview.h"

uint64_t node_effective_cpus(const struct msgview *m);
/* CPUs neither allocated nor out of service, and those out of service, by the node's state. */
struct node_cpus { uint64_t alloc, idle, other, total; };
struct node_cpus node_cpus_split(const struct msgview *m);
/* Not usable for new work: down, drained, failing, powered down ... */
bool node_is_other(const struct msgview *m);
bool node_is_allocated(const struct msgview *m);
void put_cpu_load(struct str *out, const struct msgview *m);    /* 0.14, N/A */
void put_free_mem(struct str *out, const struct msgview *m);
/* "gpu:h100:2(IDX:0-1)"; "gpu:0" when none is in use. */
void put_gres_used(struct str *out, const struct msgview *m);
