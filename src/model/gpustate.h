/* gpustate.h - what the GPUs of a node are doing, as a text: slurmd writes it into its spool (GPUSTATE_FILE) about once a second while steps run,
 * slurmstepds read it. A line each:
 *   gpu MINOR ENERGY          mJ since the driver was loaded
 *   process PID MINOR UTIL MEMORY    percent of that GPU's time, bytes on it */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define GPUSTATE_FILE "gpu_state"

struct gpu_energy { uint32_t minor; uint64_t mj; };
struct gpu_process { uint32_t pid, minor, util; uint64_t memory; };
struct gpustate {
	struct gpu_energy *gpu;
	struct gpu_process *process;
	size_t gpus, processes, gpu_cap, process_cap;
};
void gpustate_add(struct gpustate *g, uint32_t minor, uint64_t mj);
void gpustate_add_process(struct gpustate *g, const struct gpu_process *p);
void gpustate_format(const struct gpustate *g, struct str *out);
/* What is not understood is left out. gpustate_fini frees it. */
void gpustate_parse(const char *text, struct gpustate *ret);
void gpustate_fini(struct gpustate *g);
