/* fragment.h - how much of a node's free GPUs the usual requests cannot use, and where a request leaves least of that
 *
 * After Weng et al., "Beware of Fragmentation" (USENIX ATC 2023): for a class of requests, the free GPU share of a node that it could not use is a
 * fragment; the fragmentation of a node is the mean over all classes by how often they come. A request goes where the sum grows least.
 * Pure: GPUs are shared in thousandths, CPUs counted in thousandths, memory in MiB. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { FRAG_GPUS = 16 };
/* A class of requests: `gpus` whole GPUs, or one shared GPU with `milli` of it (gpus 1, milli below 1000), or none. */
struct frag_class { uint32_t cpu_milli, mem_mb, gpus, gpu_milli, weight; uint64_t models; /* bits of kinds of GPU; 0: any */ };
/* What is free on a node. */
struct frag_node { uint32_t cpu_milli, mem_mb, gpus, model; uint16_t free[FRAG_GPUS]; };

/* Does the request fit? */
bool frag_fits(const struct frag_node *n, const struct frag_class *r);
/* Takes it: of a shared request GPU `at`, of whole ones the first that are free. */
void frag_take(struct frag_node *n, const struct frag_class *r, uint32_t at);
/* FRAG_FIT: as published, free GPU on which not one task of a class fits. FRAG_TASKS: to that is added, twice, what the class could not use with as many tasks as
 * the CPUs and memory left allow. */
enum frag_measure { FRAG_FIT, FRAG_TASKS };
/* Thousandths of GPU that are fragments, times weight, over all classes. */
uint64_t frag_amount(const struct frag_node *n, const struct frag_class *c, uint32_t classes, enum frag_measure measure);
/* By how much placing it here makes the amount grow (negative: it shrinks), on the GPU where that is least (*ret_at). */
int64_t frag_growth(const struct frag_node *n, const struct frag_class *r, const struct frag_class *c, uint32_t classes, enum frag_measure measure, uint32_t *ret_at);
