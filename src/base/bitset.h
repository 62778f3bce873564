/* bitset.h - a fixed-size set of small numbers (nodes, cores, devices, array tasks)
 * Invariant: bits at and above `size` are zero. Word operations; memory by xmalloc. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bitset {
	uint32_t size;     /* in bits */
	uint32_t words;
	uint64_t bits[];
};

struct bitset *bitset_create(uint32_t size);
struct bitset *bitset_copy(const struct bitset *b);
void bitset_destroy(struct bitset *b);             /* accepts NULL */
void bitset_set(struct bitset *b, uint32_t i);
void bitset_clear(struct bitset *b, uint32_t i);
bool bitset_has(const struct bitset *b, uint32_t i);
void bitset_fill(struct bitset *b);                /* all of it */
void bitset_zero(struct bitset *b);
uint32_t bitset_count(const struct bitset *b);
uint32_t bitset_count_and(const struct bitset *a, const struct bitset *b);
bool bitset_empty(const struct bitset *b);
bool bitset_intersects(const struct bitset *a, const struct bitset *b);
bool bitset_subset(const struct bitset *a, const struct bitset *of);
bool bitset_equal(const struct bitset *a, const struct bitset *b);
void bitset_assign(struct bitset *dst, const struct bitset *src);
void bitset_and(struct bitset *dst, const struct bitset *src);
void bitset_or(struct bitset *dst, const struct bitset *src);
void bitset_andnot(struct bitset *dst, const struct bitset *src);
/* First member at or after i; size when there is none. */
uint32_t bitset_next(const struct bitset *b, uint32_t i);
#define bitset_for(b, i) for (uint32_t i = bitset_next((b), 0); i < (b)->size; i = bitset_next((b), i + 1))
