/* tres.h - trackable resources as text: "cpu=4,mem=8G,node=1,billing=4,gres/gpu=2,gres/gpu:h100=2"; GRES requests */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* "8G", "512M", "4000" (default unit MiB), "1T", "100K" (rounded up) -> MiB. */
int mem_parse(const char *text, uint64_t *ret_mb, struct error *err);
/* As the reference prints it in TRES strings: 1024 -> "1G", 1500 -> "1500M", 0 -> "0". */
void mem_format(uint64_t mb, char *buf, size_t size);
/* What mem_format printed, "1.50G" too. 0 or -EINVAL. */
int mem_parse_printed(const char *text, uint64_t *ret_mb);

/* One element of a GRES request: "gpu", "gpu:2", "gpu:h100:2", "gres/gpu:2", "gres/gpu=2". */
struct gres_req { char name[32]; char type[64]; uint64_t count; };
#define GRES_REQ_MAX 32
#define GRES_MAX 16          /* entries of GRES on one node */
/* Comma list -> array. Names with or without the "gres/" prefix; counts may have K, M, G. -ESLURM_INVALID_GRES, err names the element.
 * "none" gives count 0 elements: none at all. */
int gres_parse(const char *text, struct gres_req *ret, size_t max, size_t *ret_n, struct error *err);
/* Back to "gres/gpu:h100:2,gres/x:1" (sep ':' ) or with '=' before counts. malloc'd. */
char *gres_format(const struct gres_req *r, size_t n, char sep);

/* A TRES sum being built: printed in the reference's order cpu,mem,node,billing,gres/... */
struct tres_sum { uint64_t cpu, mem_mb, node, billing; struct gres_req gres[GRES_REQ_MAX]; size_t gres_n; };
void tres_add_gres(struct tres_sum *t, const char *name, const char *type, uint64_t count);
/* typed: also print gres/name:type=. Zero values are left out. malloc'd. */
char *tres_format(const struct tres_sum *t, bool typed);
/* Value of one name in a TRES string ("gres/gpu"), 0 if absent. Memory in MiB. */
uint64_t tres_get(const char *text, const char *name);
