/* pmi_spawn.h - what a task asks to be spawned (MPI_Comm_spawn), as srun is told of it
 *
 * Texts, each ended by a NUL: number of commands; for each: tasks, folder (empty: as the step), program, number of arguments, arguments; then number of pairs the
 * new tasks find in their store, and the pairs. srun runs it as a step of the same job (src/cli/srun_spawn.c). */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "stepd/pmi_wire.h"
struct pmi_spawn { uint32_t commands, tasks; struct str text, pairs; uint32_t n_pairs; };
/* 0: complete; 1: PMI-1 sends further commands; -1: malformed. */
int pmi_spawn_add(struct pmi_spawn *p, const struct pmi_req *r);
uint8_t *pmi_spawn_text(struct pmi_spawn *p, size_t *ret_n);   /* malloc'd; p keeps only the number of tasks */
void pmi_spawn_clear(struct pmi_spawn *p);
