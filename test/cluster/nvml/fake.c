/* fake.c - a libnvidia-ml.so.1 for tests: FAKE_GPUS cards with minor numbers counted down, each pair joined by two NVLinks; every other one near CPU 0.
 * One process uses a card: the oldest of the file FAKE_GPU_PIDS (a pid a line), with 100 MiB and half of the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
