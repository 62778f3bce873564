/* gpustate.c - what GPUs are doing, as a text (see gpustate.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/gpustate.h"

void gpustate_add(struct gpustate *g, uint32_t minor, uint64_t mj)
{
	g->gpu = xgrow(g->gpu, &g->gpu_cap, g->gpus + 1, sizeof *g->gpu);
	g->gpu[g->gpus++] = (struct gpu_energy){ minor, mj };
}

void gpustate_add_process(struct gpustate *g, const struct gpu_process *p)
{
	g->process = xgrow(g->process, &g->process_cap, g->processes + 1, sizeof *g->process);
	g->process[g->processes++] = *p;
}

void gpustate_format(const struct gpustate *g, struct str *out)
{
	for (size_t i = 0; i < g->gpus; i++)
		str_addf(out, "gpu %u %llu\n", g->gpu[i].minor, (unsigned long long)g->gpu[i].mj);
	for (size_t i = 0; i < g->processes; i++)
		str_addf(out, "process %u %u %u %llu\n", g->process[i].pid, g->process[i].minor, g->process[i].util, (unsigned long long)g->process[i].memory);
}

void gpustate_parse(const char *text, struct gpustate *ret)
{
	*ret = (struct gpustate){ 0 };
	for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		struct gpu_process p;
		unsigned minor;
		unsigned long long n;
		if (sscanf(at, "gpu %u %llu", &minor, &n) == 2)
			gpustate_add(ret, minor, n);
		else if (sscanf(at, "process %u %u %u %llu", &p.pid, &p.minor, &p.util, &n) == 4) {
			p.memory = n;
			gpustate_add_process(ret, &p);
		}
	}
}

void gpustate_fini(struct gpustate *g)
{
	free(g->gpu);
	free(g->process);
	*g = (struct gpustate){ 0 };
}
