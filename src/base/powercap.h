/* powercap.h - energy that the processors of this machine have used: the kernel's counters of /sys/class/powercap (RAPL of Intel and AMD)
 *
 * Packages and the memory beside them are summed; cores and graphics are parts of a package. A counter that runs over is followed as long as it is read
 * once a round (minutes). BERTH_POWERCAP names another folder: for tests. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define POWERCAP_ZONES 64

struct powercap {
	struct { char dir[256]; uint64_t last, range; } zone[POWERCAP_ZONES];   /* microjoules */
	unsigned zones;
	uint64_t used_uj;                                                       /* since it was opened */
};
/* Look for the counters. false: there are none that can be read. */
bool powercap_open(struct powercap *ret);
/* Joules x 1000 since powercap_open. */
uint64_t powercap_read(struct powercap *p);
