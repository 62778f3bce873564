/* sign.h - how slurmctld's signatures are made and checked, in one place for both ends
 *
 * Ed25519 over BLAKE2b-256 of a context word and the bytes. The context keeps a step's credential from passing as a
 * batch launch. slurmctld signs with its secret key (ctld/cred.c); slurmd checks against the keys it was given when it registered. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sodium.h>

#define SIGN_CRED "berth-cred-1"     /* SignedCred.cred */
#define SIGN_BATCH "berth-batch-1"   /* SignedBatch.batch */

static inline void sign_digest(const char *context, const void *data, size_t len, uint8_t ret[32])
{
	crypto_generichash_state st;
	crypto_generichash_init(&st, NULL, 0, 32);
	crypto_generichash_update(&st, (const uint8_t *)context, strlen(context) + 1);
	crypto_generichash_update(&st, data, len);
	crypto_generichash_final(&st, ret, 32);
}

static inline void sign_make(const char *context, const void *data, size_t len, const uint8_t secret[crypto_sign_SECRETKEYBYTES],
			     uint8_t ret[crypto_sign_BYTES])
{
	uint8_t digest[32];
	sign_digest(context, data, len, digest);
	crypto_sign_detached(ret, NULL, digest, sizeof digest, secret);
}

static inline bool sign_check(const char *context, const void *data, size_t len, const uint8_t *sig, size_t sig_len,
			      const uint8_t public_key[crypto_sign_PUBLICKEYBYTES])
{
	uint8_t digest[32];
	if (sig_len != crypto_sign_BYTES)
		return false;
	sign_digest(context, data, len, digest);
	return crypto_sign_verify_detached(sig, digest, sizeof digest, public_key) == 0;
}
