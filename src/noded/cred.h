/* cred.h - what slurmd believes: slurmctld's public keys, and that nothing is used twice
 *
 * Keys come with the answer to a registration; the last two are kept, so that launches signed just before a change still pass.
 * A nonce is remembered until its credential has expired: the cache never grows beyond what was signed in that time. */
#pragma once
#include "noded/noded.h"

struct cred_book *cred_book_create(void);
void cred_keys_set(struct cred_book *b, Pb__CredKey **key, size_t n);
bool cred_has_keys(const struct cred_book *b);
/* Ids of the keys believed: the count; ret has room for CRED_KEYS_MAX. */
#define CRED_KEYS_MAX 2
size_t cred_key_ids(const struct cred_book *b, uint32_t *ret);
/* Signature over `data` in the given context (wire/sign.h). 0, or -ESLURM_CRED and err. */
int cred_check_signature(struct cred_book *b, const char *context, const ProtobufCBinaryData *data, const ProtobufCBinaryData *sig, struct error *err);
/* Used before this slurmd was started. */
void cred_was_used(struct cred_book *b, const uint8_t nonce[16], uint64_t expires);
/* Times and node fit, and its nonce is new: from now on it is used. */
int cred_use(struct cred_book *b, const Pb__StepCred *cred, const char *node, uint64_t now, struct error *err);
