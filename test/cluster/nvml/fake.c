/* fake.c - a libnvidia-ml.so.1 for tests: FAKE_GPUS cards with minor numbers counted down, each pair joined by two NVLinks; every other one near CPU 0.
 * The file FAKE_GPU_PIDS says who uses them, "PID CARD PERCENT MIB" a line. A card takes 200 W. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct pci { char legacy[16]; unsigned domain, bus, device, id, sub_id; char text[32]; };
typedef struct { unsigned index; } *device;
static struct { unsigned index; } card[16];

static unsigned cards(void)
{
	const char *n = getenv("FAKE_GPUS");
	return n ? (unsigned)atoi(n) : 0;
}

int nvmlInit_v2(void) { return getenv("FAKE_GPUS") ? 0 : 9; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = cards(); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *ret) { card[i].index = i; *ret = (device)&card[i]; return i < cards() ? 0 : 2; }
int nvmlDeviceGetName(device d, char *name, unsigned n) { (void)d; snprintf(name, n, "NVIDIA H100 80GB HBM3"); return 0; }
int nvmlDeviceGetMinorNumber(device d, unsigned *minor) { *minor = cards() - 1 - d->index; return 0; }
int nvmlDeviceGetCpuAffinity(device d, unsigned n, unsigned long *set) { memset(set, 0, n * sizeof *set); set[0] = d->index % 2 ? 1 : 2; return 0; }
int nvmlDeviceGetPciInfo_v3(device d, struct pci *p) { memset(p, 0, sizeof *p); p->bus = d->index + 1; return 0; }
int nvmlDeviceGetNvLinkState(device d, unsigned link, int *active) { (void)d; *active = link < 2; return 0; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(device d, unsigned link, struct pci *p) { (void)link; memset(p, 0, sizeof *p); p->bus = (d->index ^ 1) + 1; return 0; }

/* The lines of card `d`, into rows of up to `max`. */
struct use { unsigned pid, percent; unsigned long long mib; };
static unsigned uses(device d, struct use *ret, unsigned max)
{
	FILE *f = getenv("FAKE_GPU_PIDS") ? fopen(getenv("FAKE_GPU_PIDS"), "r") : NULL;
	unsigned n = 0, at;
	while (f && n < max && fscanf(f, "%u %u %u %llu", &ret[n].pid, &at, &ret[n].percent, &ret[n].mib) == 4)
		n += at == d->index;
	if (f)
		fclose(f);
	return n;
}

struct process { unsigned pid; unsigned long long memory; unsigned instance, compute; };
struct sample { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; };
static unsigned long long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

int nvmlDeviceGetTotalEnergyConsumption(device d, unsigned long long *mj) { (void)d; *mj = now_ms() * 200; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *n, struct process *ret)
{
	struct use use[16];
	*n = uses(d, use, 16 < *n ? 16 : *n);
	for (unsigned i = 0; i < *n; i++)
		ret[i] = (struct process){ use[i].pid, use[i].mib << 20, 0, 0 };
	return 0;
}

int nvmlDeviceGetProcessUtilization(device d, struct sample *ret, unsigned *n, unsigned long long since)
{
	struct use use[16];
	(void)since;
	if (getenv("FAKE_GPU_WHOLE"))
		return 3;                  /* not supported */
	*n = uses(d, use, 16 < *n ? 16 : *n);
	for (unsigned i = 0; i < *n; i++)
		ret[i] = (struct sample){ use[i].pid, now_ms() * 1000, use[i].percent, 0, 0, 0 };
	return *n ? 0 : 6;
}

struct utilization { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(device d, struct utilization *ret) { (void)d; *ret = (struct utilization){ 77, 10 }; return 0; }
