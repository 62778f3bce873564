/* faultsim.h - the controller among faults: one seed (faultsim.c) */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Plays `events` events among faults, stops the faults, and waits until all has run. Aborts with a line where the auditor finds something wrong, exits 1
 * where jobs are left over. Returns the events of the core. */
uint64_t faults_seed(uint64_t seed, uint64_t events, bool loud);
extern uint32_t faults_watched; /* the job whose story is told; 0 none */
