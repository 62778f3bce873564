/* hardware.h - CPUs, memory and devices of this machine */
#pragma once
#include "noded/noded.h"
void hardware_find(struct hardware *hw, const char *tmp_fs);
/* The NodeName line of slurmd -C, on stdout. */
void hardware_print(const struct hardware *hw);
/* Load (x100) and free memory now. */
void hardware_load(uint32_t *ret_load, uint64_t *ret_free_mb);
/* What gres.conf promises and /dev does not have: malloc'd text that names the device; NULL: all is there. */
char *hardware_gres_problem(const Pb__NodeRecord *self);
