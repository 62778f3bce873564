/* part.h - a partition (private to src/core; included by state.h) */
#pragma once
#include <stdbool.h>
#include "base/bitset.h"
#include "core/core.h"

struct acct_qos;
struct core_job;
struct shape;
struct topo;
struct prio_tres { uint32_t name; double weight; };  /* atom */
struct core_part {
	uint32_t index;
	Pb__PartitionRecord *rec;
	struct bitset *nodes;
	uint32_t tier, max_nodes, min_nodes, max_time_min, default_time_min;
	enum { PART_UP, PART_DOWN, PART_DRAIN, PART_INACTIVE } state;
	uint32_t share_max;         /* jobs on a CPU: 1 unless OverSubscribe=YES or FORCE */
	bool share_force;           /* all its jobs share, not only those with --oversubscribe */
	bool exclusive, user_only, topo_only, lln;
	const struct topo *topo;    /* its network; NULL: flat */
	uint32_t max_node_cpus, max_socket_cpus; /* for all its jobs together; UINT32_MAX: any */
	struct prio_tres *bill;     /* TRESBillingWeights */
	uint32_t bill_n;
	char *tres;                 /* what it has, as text; of config_gen tres_gen */
	uint64_t tres_gen;
	struct acct_qos *qos;       /* its QOS; NULL: none */
	struct shape *blocker;      /* its head is the first that waits for room here */
	uint32_t reserved;          /* jobs that policy.c made a promise to */
	const struct core_job *reserve_last; /* the last of them in the queue */
};
