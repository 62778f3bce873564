/* token.h - who asks, sealed under the cluster key (inside of wire/)
 *
 * A token of auth/slurm: version byte, 24-byte random nonce, then XChaCha20-Poly1305 of
 *   uid 4, gid 4, issued 8, expires 8 (ms since 1970), id 16, session key 32, bound hash 32, length of the cluster's name 1, the name
 * under BLAKE2b(cluster key). Nobody without the key can read or make one; the session key inside proves the server to the client too.
 * Under auth/munge the same facts, without uid, gid and times, are the payload of a munge credential; munge supplies those.
 * `id` is what nonce caches remember: a token opens one connection of a daemon, once. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "wire/frame.h"

#define TOKEN_KEY 32
#define TOKEN_ID 16
#define TOKEN_CLUSTER 64
struct token_facts {
	uint32_t uid, gid;
	uint64_t issued_ms, expires_ms;
	uint8_t id[TOKEN_ID], session[FRAME_KEY], bound[32];
	char cluster[TOKEN_CLUSTER + 1];
};
struct token { size_t len; uint8_t data[FRAME_TOKEN_MAX]; };

void token_seal(const uint8_t key[TOKEN_KEY], const struct token_facts *f, struct token *ret);
/* False: not sealed under this key, or malformed. Times are not looked at. */
bool token_open(const uint8_t key[TOKEN_KEY], const uint8_t *data, size_t len, struct token_facts *ret);
/* The payload shared with munge: id, session, bound, cluster. */
#define TOKEN_PAYLOAD_MAX (1 + TOKEN_ID + FRAME_KEY + 32 + 1 + TOKEN_CLUSTER)
size_t token_payload_write(const struct token_facts *f, uint8_t *out);
bool token_payload_read(const uint8_t *data, size_t len, struct token_facts *f);

/* The cache of ids seen: bounded, forgets an id no earlier than `keep_ms` after it came. Two generations of a hash set. */
struct nonce_cache;
struct nonce_cache *nonce_cache_create(uint64_t keep_ms, uint32_t max);
void nonce_cache_destroy(struct nonce_cache *c);
/* 0: new, remembered; -EEXIST: seen before; -ENOSPC: `max` ids came within the time, refused unseen. now_ms never goes back. */
int nonce_cache_add(struct nonce_cache *c, const uint8_t id[TOKEN_ID], uint64_t now_ms);
