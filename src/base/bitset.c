/* bitset.c - a fixed-size set of small numbers (see bitset.h) */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bitset.h"

struct bitset *bitset_create(uint32_t size)
{
	uint32_t words = (size + 63) / 64;
	struct bitset *b = xcalloc(1, sizeof *b + words * sizeof(uint64_t));
	b->size = size;
	b->words = words;
	return b;
}

struct bitset *bitset_copy(const struct bitset *b) { return xmemdup(b, sizeof *b + b->words * sizeof(uint64_t)); }
void bitset_destroy(struct bitset *b) { free(b); }

void bitset_set(struct bitset *b, uint32_t i)
{
	assert(i < b->size);
	b->bits[i / 64] |= 1ULL << (i % 64);
}

void bitset_clear(struct bitset *b, uint32_t i)
{
	assert(i < b->size);
	b->bits[i / 64] &= ~(1ULL << (i % 64));
}

bool bitset_has(const struct bitset *b, uint32_t i) { return i < b->size && (b->bits[i / 64] >> (i % 64) & 1); }

void bitset_fill(struct bitset *b)
{
	memset(b->bits, 0xff, b->words * sizeof(uint64_t));
	if (b->size % 64)
		b->bits[b->words - 1] = (1ULL << (b->size % 64)) - 1;
}

void bitset_zero(struct bitset *b) { memset(b->bits, 0, b->words * sizeof(uint64_t)); }

bool bitset_empty(const struct bitset *b)
{
	for (uint32_t w = 0; w < b->words; w++)
		if (b->bits[w])
			return false;
	return true;
}

bool bitset_intersects(const struct bitset *a, const struct bitset *b)
{
	assert(a->size == b->size);
	for (uint32_t w = 0; w < a->words; w++)
		if (a->bits[w] & b->bits[w])
			return true;
	return false;
}

bool bitset_subset(const struct bitset *a, const struct bitset *of)
{
	assert(a->size == of->size);
	for (uint32_t w = 0; w < a->words; w++)
		if (a->bits[w] & ~of->bits[w])
			return false;
	return true;
}

bool bitset_equal(const struct bitset *a, const struct bitset *b)
{
	return a->size == b->size && !memcmp(a->bits, b->bits, a->words * sizeof(uint64_t));
}

void bitset_assign(struct bitset *dst, const struct bitset *src)
{
	assert(dst->size == src->size);
	memcpy(dst->bits, src->bits, src->words * sizeof(uint64_t));
}

void bitset_and(struct bitset *dst, const struct bitset *src)
{
	assert(dst->size == src->size);
	for (uint32_t w = 0; w < dst->words; w++)
		dst->bits[w] &= src->bits[w];
}

void bitset_or(struct bitset *dst, const struct bitset *src)
{
	assert(dst->size == src->size);
	for (uint32_t w = 0; w < dst->words; w++)
		dst->bits[w] |= src->bits[w];
}

void bitset_andnot(struct bitset *dst, const struct bitset *src)
{
	assert(dst->size == src->size);
	for (uint32_t w = 0; w < dst->words; w++)
		dst->bits[w] &= ~src->bits[w];
}

uint32_t bitset_next(const struct bitset *b, uint32_t i)
{
	if (i >= b->size)
		return b->size;
	uint32_t w = i / 64;
	uint64_t bits = b->bits[w] & (~0ULL << (i % 64));
	while (!bits) {
		if (++w >= b->words)
			return b->size;
		bits = b->bits[w];
	}
	return w * 64 + (uint32_t)__builtin_ctzll(bits);
}
