/* bitset_count.c - how many bits are set (see bitset.h) */
#include <assert.h>

#include "base/bitset.h"

/* Counting is what planning does most: with the CPU's own instruction where it has one (every x86 since 2008), chosen when the program is loaded.
 * Choosing costs six CPUID instructions, 0.1 ms on a virtual machine: a file of its own, so that commands, which count nothing, start without. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS __attribute__((target_clones("popcnt", "default")))
#else
#define COUNTS
#endif

COUNTS uint32_t bitset_count(const struct bitset *b)
{
	uint32_t n = 0;
	for (uint32_t w = 0; w < b->words; w++)
		n += (uint32_t)__builtin_popcountll(b->bits[w]);
	return n;
}

COUNTS uint32_t bitset_count_and(const struct bitset *a, const struct bitset *b)
{
	uint32_t n = 0;
	assert(a->size == b->size);
	for (uint32_t w = 0; w < a->words; w++)
		n += (uint32_t)__builtin_popcountll(a->bits[w] & b->bits[w]);
	return n;
}
