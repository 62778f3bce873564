/* choose.h - what the ways to choose nodes share (private to choose.c, counted.c, choose_topo.c) */
#pragma once
#include "core/state.h"

/* A node that will do, with the most it could give; and nodes that are to be a job's. */
struct option { uint32_t node, tasks, gpus; };
struct pick { struct option *o; uint32_t n, max_nodes; uint64_t tasks, gpus; }; /* max_nodes: of the request, and of the partition (MaxNodes) */

bool pick_enough(const struct shape *s, const struct pick *p);
void pick_sum(struct pick *p);
uint32_t pick_wanted(const struct shape *s, const struct pick *p); /* as many nodes are wanted, where more than the fewest are welcome */
bool pick_gather(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct pick *p, uint32_t *ret_named);
/* counted.c: --constraint with counts */
bool pick_counted(struct core *c, const struct shape *s, const struct bitset *cand, const struct feature_set *set, const struct when *w, struct pick *p);
/* choose_topo.c */
bool pick_topo(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, const struct topo *t, struct pick *p);
