/* idset.h - sets of numbers as text: "0-3,7,9-15:2" <-> bitset. Used for CPU ids, device indexes, array tasks, task ranks. */
#pragma once
#include <stdint.h>
#include "base/bitset.h"
#include "base/error.h"

/* Numbers must be below `limit`. *ret has size limit. -EINVAL / -ERANGE and err naming the position. "" is the empty set. */
int idset_parse(const char *text, uint32_t limit, struct bitset **ret, struct error *err);
/* One more than the largest number written in text, at most `limit`: room enough for idset_parse, without a bitset of the largest that could be. */
uint32_t idset_bound(const char *text, uint32_t limit);
/* "0-3,7"; malloc'd; "" when empty. */
char *idset_format(const struct bitset *b);
/* As squeue prints array tasks: an even step of 7 or more is folded ("1-13:2"), cut after `max` characters with "..." (0: never). */
char *idset_format_array(const struct bitset *b, uint32_t max);
