/* bytes.h - big-endian numbers in buffers, as all our protocols have them */
#pragma once
#include <stdint.h>

static inline void be_put(uint8_t *p, uint64_t v, unsigned bytes)
{
	while (bytes--) {
		p[bytes] = (uint8_t)v;
		v >>= 8;
	}
}
static inline uint64_t be_get(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}
static inline void put_u32(uint8_t *p, uint32_t v) { be_put(p, v, 4); }
static inline uint32_t get_u32(const uint8_t *p) { return (uint32_t)be_get(p, 4); }
static inline void put_u64(uint8_t *p, uint64_t v) { be_put(p, v, 8); }
static inline uint64_t get_u64(const uint8_t *p) { return be_get(p, 8); }
