/* hardware.h - CPUs, memory and devices of this machine */
#pragma once
#include "noded/noded.h"
void hardware_find(struct hardware *hw, const char *tmp_fs);
/* The NodeName line of slurmd -C, on stdout. */
void hardware_print(const struct hardware *hw);
/* Load (x100) and free memory now. */
void hardware_load(uint32_t *ret_load, uint64_t *ret_free_mb);
/* n->gres from the configuration and, where gres.conf says AutoDetect, from the drivers; n->gres_problem: what is missing, or NULL. After each reading of the
 * configuration. */
void hardware_gres_find(struct noded *n);
/* slurmd -G, on stdout. */
void hardware_gres_print(const struct noded *n);
