/* nonce.c - the cache of token ids seen (see token.h)
 *
 * Two hash sets with open addressing: the young one takes new ids; when it is keep_ms old, it becomes the old one and the
 * old one is emptied. So an id is remembered between keep_ms and twice that. An id of all zeros marks a free slot and is refused. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sodium.h>

#include "base/alloc.h"
#include "wire/token.h"

struct id_set { uint8_t (*slot)[TOKEN_ID]; uint32_t cap, count; };
struct nonce_cache {
	uint64_t keep_ms, young_since_ms;
	uint32_t max;
	struct id_set young, old;
};

static const uint8_t free_slot[TOKEN_ID];

struct nonce_cache *nonce_cache_create(uint64_t keep_ms, uint32_t max)
{
	struct nonce_cache *c = xcalloc(1, sizeof *c);
	c->keep_ms = keep_ms;
	c->max = max;
	return c;
}

void nonce_cache_destroy(struct nonce_cache *c)
{
	if (!c)
		return;
	free(c->young.slot);
	free(c->old.slot);
	free(c);
}

/* Ids are random, so their first bytes are hash enough. */
static uint32_t set_find(const struct id_set *s, const uint8_t *id)
{
	uint64_t h;
	memcpy(&h, id, sizeof h);
	uint32_t i = h & (s->cap - 1);
	while (memcmp(s->slot[i], id, TOKEN_ID) && memcmp(s->slot[i], free_slot, TOKEN_ID))
		i = (i + 1) & (s->cap - 1);
	return i;
}

static bool set_has(const struct id_set *s, const uint8_t *id)
{
	return s->cap && !memcmp(s->slot[set_find(s, id)], id, TOKEN_ID);
}

static void set_add(struct id_set *s, const uint8_t *id)
{
	if (s->count * 2 >= s->cap) {
		struct id_set big = { .cap = s->cap ? s->cap * 2 : 256, .count = s->count };
		big.slot = xcalloc(big.cap, TOKEN_ID);
		for (uint32_t i = 0; i < s->cap; i++)
			if (memcmp(s->slot[i], free_slot, TOKEN_ID))
				memcpy(big.slot[set_find(&big, s->slot[i])], s->slot[i], TOKEN_ID);
		free(s->slot);
		*s = big;
	}
	memcpy(s->slot[set_find(s, id)], id, TOKEN_ID);
	s->count++;
}

int nonce_cache_add(struct nonce_cache *c, const uint8_t id[TOKEN_ID], uint64_t now_ms)
{
	if (now_ms - c->young_since_ms >= c->keep_ms) {
		bool both = now_ms - c->young_since_ms >= 2 * c->keep_ms;
		free(c->old.slot);
		c->old = c->young;
		c->young = (struct id_set){ 0 };
		if (both) {
			free(c->old.slot);
			c->old = (struct id_set){ 0 };
		}
		c->young_since_ms = now_ms;
	}
	if (!memcmp(id, free_slot, TOKEN_ID) || set_has(&c->young, id) || set_has(&c->old, id))
		return -EEXIST;
	if (c->young.count >= c->max)
		return -ENOSPC;
	set_add(&c->young, id);
	return 0;
}
