/* figures.h - what slurmd measures of its node: GPUs in use, for slurmstepds (model/gpustate.h), and its power
 *
 * GPUs are asked in a process of its own (a driver may hang), once a second while steps run, where AutoDetect of gres.conf asks NVML and neither
 * JobAcctGatherParams=DisableGPUAcct nor JobAcctGatherType=none says otherwise. The power is measured every AcctGatherNodeFreq seconds. */
#pragma once
#include "noded/noded.h"

void figures_start(struct noded *n);
/* After the configuration was read again: AcctGatherNodeFreq. */
void figures_configure(struct noded *n);
/* CurrentWatts and AveWatts; left out while they are not measured. */
void figures_fill(Pb__NodeRecord *ret);
