/* cred.c - keys, signatures, nonces (see cred.h) */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/hostlist.h"
#include "noded/cred.h"
#include "wire/sign.h"

#define KEYS_MAX CRED_KEYS_MAX
#define NONCE_LEN 16
#define BUCKETS 1024

struct nonce { struct nonce *next; uint64_t expires; uint8_t bytes[NONCE_LEN]; };
struct cred_book {
	struct { uint32_t id; uint8_t key[crypto_sign_PUBLICKEYBYTES]; } key[KEYS_MAX];
	size_t keys;
	struct nonce *bucket[BUCKETS];
};

struct cred_book *cred_book_create(void) { return xcalloc(1, sizeof(struct cred_book)); }

bool cred_has_keys(const struct cred_book *b) { return b->keys > 0; }

size_t cred_key_ids(const struct cred_book *b, uint32_t *ret)
{
	for (size_t i = 0; i < b->keys; i++)
		ret[i] = b->key[i].id;
	return b->keys;
}

void cred_keys_set(struct cred_book *b, Pb__CredKey **key, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n && kept < KEYS_MAX; i++) {
		if (key[i]->key.len != sizeof b->key[0].key)
			continue;
		b->key[kept].id = key[i]->id;
		memcpy(b->key[kept].key, key[i]->key.data, sizeof b->key[0].key);
		kept++;
	}
	if (kept)
		b->keys = kept;
}

int cred_check_signature(struct cred_book *b, const char *context, const ProtobufCBinaryData *data, const ProtobufCBinaryData *sig, struct error *err)
{
	for (size_t i = 0; i < b->keys; i++)
		if (sign_check(context, data->data, data->len, sig->data, sig->len, b->key[i].key))
			return 0;
	return error_set(err, ESLURM_CRED, b->keys ? "the signature is not slurmctld's" : "this node has not registered yet and knows no key of slurmctld");
}

/* Also drops what has expired in that bucket. true: it was there already. */
static bool nonce_seen(struct cred_book *b, const uint8_t *bytes, uint64_t expires, uint64_t now)
{
	struct nonce **at = &b->bucket[(bytes[0] | (unsigned)bytes[1] << 8) % BUCKETS];
	bool seen = false;
	for (struct nonce **p = at, *one; (one = *p);) {
		if (one->expires < now) {
			*p = one->next;
			free(one);
			continue;
		}
		seen = seen || !memcmp(one->bytes, bytes, NONCE_LEN);
		p = &one->next;
	}
	if (seen)
		return true;
	struct nonce *fresh = xcalloc(1, sizeof *fresh);
	fresh->expires = expires;
	memcpy(fresh->bytes, bytes, NONCE_LEN);
	fresh->next = *at;
	*at = fresh;
	return false;
}

static bool names_node(const Pb__StepCred *cred, const char *node)
{
	for (size_t i = 0; i < cred->layout->n_node; i++)
		if (!strcmp(cred->layout->node[i]->name, node))
			return true;
	return false;
}

int cred_use(struct cred_book *b, const Pb__StepCred *cred, const char *node, uint64_t now, struct error *err)
{
	if (cred->expires < now)
		return error_set(err, ESLURM_CRED, "the credential of step %u.%u expired %llu s ago (do the clocks of the nodes agree?)", cred->job_id, cred->step_id,
				 (unsigned long long)(now - cred->expires));
	if (!names_node(cred, node))
		return error_set(err, ESLURM_CRED, "the credential of step %u.%u is not for node %s", cred->job_id, cred->step_id, node);
	if (cred->nonce.len != NONCE_LEN)
		return error_set(err, ESLURM_CRED, "the credential of step %u.%u has no proper nonce", cred->job_id, cred->step_id);
	if (nonce_seen(b, cred->nonce.data, cred->expires, now))
		return error_set(err, ESLURM_CRED, "the credential of step %u.%u was used on node %s before", cred->job_id, cred->step_id, node);
	return 0;
}

void cred_was_used(struct cred_book *b, const uint8_t nonce[16], uint64_t expires) { (void)nonce_seen(b, nonce, expires, 0); }
