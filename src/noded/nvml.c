/* nvml.c - opening NVIDIA's library (see nvml.h) */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "noded/nvml.h"

bool nvml_open(struct nvml *v)
{
	const struct { const char *name; void *at; bool optional; } want[] = {
		{ "nvmlInit_v2", &v->init, false }, { "nvmlDeviceGetCount_v2", &v->count, false }, { "nvmlDeviceGetHandleByIndex_v2", &v->at, false },
		{ "nvmlDeviceGetName", &v->name, false }, { "nvmlDeviceGetMinorNumber", &v->minor, false }, { "nvmlDeviceGetCpuAffinity", &v->affinity, false },
		{ "nvmlDeviceGetPciInfo_v3", &v->pci, false }, { "nvmlDeviceGetNvLinkState", &v->link_state, false },
		{ "nvmlDeviceGetNvLinkRemotePciInfo_v2", &v->link_pci, false }, { "nvmlDeviceGetUtilizationRates", &v->utilization, true },
		{ "nvmlDeviceGetTotalEnergyConsumption", &v->energy, true }, { "nvmlDeviceGetComputeRunningProcesses_v3", &v->compute, true },
		{ "nvmlDeviceGetGraphicsRunningProcesses_v3", &v->graphics, true }, { "nvmlDeviceGetProcessUtilization", &v->samples, true },
	};
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	for (size_t i = 0; lib && i < sizeof want / sizeof *want; i++) {
		void *at = dlsym(lib, want[i].name);
		if (!at && !want[i].optional)
			return false;
		memcpy(want[i].at, &at, sizeof at);
	}
	return lib && !v->init();
}
