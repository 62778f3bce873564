/* arrayspec.h - the argument of --array: "0-9%2", "1-100:4", "1,3,5"
 * Invariant: tasks is not empty and every index is below the size it was parsed with (MaxArraySize caps the index, not the count). */
#pragma once
#include <stdint.h>
#include "base/bitset.h"
#include "base/error.h"

struct arrayspec {
	struct bitset *tasks;   /* owned */
	uint32_t max_running;   /* the number behind '%'; 0: no limit */
};
/* 0 or -ESLURM_INVALID_ARRAY; err names the position, or the cap. */
int arrayspec_parse(const char *text, uint32_t max_array_size, struct arrayspec *ret, struct error *err);
/* "0-9%2", steps folded, as squeue and scontrol show it; cut after max_chars (0: never). malloc'd. */
char *arrayspec_format(const struct bitset *tasks, uint32_t max_running, uint32_t max_chars);
void arrayspec_fini(struct arrayspec *s);
