/* gpus.h - AutoDetect of gres.conf: which GPUs the machine has
 *
 * nvml asks NVIDIA's library (libnvidia-ml.so.1, opened when it is asked for, nothing at build time), nvidia reads what the kernel's driver shows in /proc
 * and /sys; full tries them in that order. A MIG-partitioned GPU counts as one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/node.pb-c.h"

#define GPUS_MAX 64
#define GPUS_CPU_WORDS 32             /* affinity of CPUs 0 to 2047 */

struct gpu {
	uint32_t minor;                          /* /dev/nvidiaMINOR */
	char type[96];                           /* "nvidia_h100_80gb_hbm3" */
	char links[512];                         /* NVLinks to each, -1 for itself; "" unknown */
	unsigned long cpus[GPUS_CPU_WORDS];      /* kernel's numbers of the CPUs near it; none set: unknown */
};

/* Ask; by minor number. In a process of its own, so that neither a driver that hangs nor the library's threads are slurmd's. At most `max`; -1: *ret_problem
 * (malloc'd) says why none can be told. */
int gpus_detect(const char *how, struct gpu *ret, size_t max, char **ret_problem);

/* What a node has: its configuration, made complete by what was found. */
struct gpus_list { Pb__NodeGres **entry; size_t n; };
/* A copy of the node's entries; those to be detected get their devices, in order, a type being part of the name found; devices that gres.conf names are held
 * against what was found. n 0: nothing was looked for, or found. *ret_problem (malloc'd, or NULL) drains the node. */
struct hardware;
void gpus_merge(const Pb__NodeRecord *self, const struct gpu *found, size_t n, const struct hardware *hw, struct gpus_list *ret, char **ret_problem);
void gpus_list_free(struct gpus_list *l);

/* For the test: the driver's files below another root. */
size_t gpus_from_driver(const char *root, struct gpu *ret, size_t max);
