/* nvml.h - NVIDIA's library, opened when it is asked for: nothing of it is needed at build time
 *
 * Its functions are declared here as its API reference documents them; their names carry the version of the layout. Call it in a process of its own only: it
 * has threads, and a driver may hang. */
#pragma once
#include <stdbool.h>

typedef void *nvml_device;
struct nvml_pci { char legacy[16]; unsigned domain, bus, device, id, sub_id; char text[32]; };
struct nvml_utilization { unsigned gpu, memory; };
struct nvml_process { unsigned pid; unsigned long long memory; unsigned instance, compute_instance; };
struct nvml_sample { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; };

#define NVML_ALL_ONES (~0ull)          /* "not available", as a number */
struct nvml {
	int (*init)(void), (*count)(unsigned *), (*at)(unsigned, nvml_device *), (*name)(nvml_device, char *, unsigned), (*minor)(nvml_device, unsigned *);
	int (*affinity)(nvml_device, unsigned, unsigned long *), (*pci)(nvml_device, struct nvml_pci *);
	int (*link_state)(nvml_device, unsigned, int *), (*link_pci)(nvml_device, unsigned, struct nvml_pci *);
	/* what a device is doing; NULL where the library is too old */
	int (*utilization)(nvml_device, struct nvml_utilization *), (*energy)(nvml_device, unsigned long long *);
	int (*compute)(nvml_device, unsigned *, struct nvml_process *), (*graphics)(nvml_device, unsigned *, struct nvml_process *);
	int (*samples)(nvml_device, struct nvml_sample *, unsigned *, unsigned long long);
};
/* Open and initialise it. false: it is not there, lacks a function of the first group, or finds no driver. */
bool nvml_open(struct nvml *v);
