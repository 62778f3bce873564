/* token.c - sealing and opening tokens (see token.h) */
#include <assert.h>
#include <string.h>
#include <sodium.h>

#include "wire/token.h"

#define TOKEN_VERSION 1
#define NONCE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG crypto_aead_xchacha20poly1305_ietf_ABYTES
#define WHO (4 + 4 + 8 + 8)
static_assert(TOKEN_KEY == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "key size");

size_t token_payload_write(const struct token_facts *f, uint8_t *out)
{
	size_t name = strnlen(f->cluster, TOKEN_CLUSTER);
	uint8_t *p = out;
	*p++ = TOKEN_VERSION;
	memcpy(p, f->id, TOKEN_ID), p += TOKEN_ID;
	memcpy(p, f->session, FRAME_KEY), p += FRAME_KEY;
	memcpy(p, f->bound, 32), p += 32;
	*p++ = name;
	memcpy(p, f->cluster, name);
	return p + name - out;
}

bool token_payload_read(const uint8_t *data, size_t len, struct token_facts *f)
{
	const size_t fixed = TOKEN_PAYLOAD_MAX - TOKEN_CLUSTER;
	if (len < fixed || data[0] != TOKEN_VERSION || data[fixed - 1] > TOKEN_CLUSTER || len != fixed + data[fixed - 1])
		return false;
	const uint8_t *p = data + 1;
	memcpy(f->id, p, TOKEN_ID), p += TOKEN_ID;
	memcpy(f->session, p, FRAME_KEY), p += FRAME_KEY;
	memcpy(f->bound, p, 32);
	memset(f->cluster, 0, sizeof f->cluster);
	memcpy(f->cluster, data + fixed, data[fixed - 1]);
	return strlen(f->cluster) == data[fixed - 1];
}

void token_seal(const uint8_t key[TOKEN_KEY], const struct token_facts *f, struct token *ret)
{
	uint8_t plain[WHO + TOKEN_PAYLOAD_MAX];
	be_put(plain, f->uid, 4);
	be_put(plain + 4, f->gid, 4);
	be_put(plain + 8, f->issued_ms, 8);
	be_put(plain + 16, f->expires_ms, 8);
	size_t n = WHO + token_payload_write(f, plain + WHO);
	static_assert(1 + NONCE + sizeof plain + TAG <= sizeof ret->data, "token fits its frame");
	ret->data[0] = TOKEN_VERSION;
	randombytes_buf(ret->data + 1, NONCE);
	unsigned long long sealed = 0;
	crypto_aead_xchacha20poly1305_ietf_encrypt(ret->data + 1 + NONCE, &sealed, plain, n, ret->data, 1, NULL, ret->data + 1, key);
	ret->len = 1 + NONCE + sealed;
	sodium_memzero(plain, sizeof plain);
}

bool token_open(const uint8_t key[TOKEN_KEY], const uint8_t *data, size_t len, struct token_facts *ret)
{
	uint8_t plain[WHO + TOKEN_PAYLOAD_MAX];
	unsigned long long n = 0;
	if (len < 1 + NONCE + TAG + WHO || len > 1 + NONCE + TAG + sizeof plain || data[0] != TOKEN_VERSION)
		return false;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(plain, &n, NULL, data + 1 + NONCE, len - 1 - NONCE, data, 1, data + 1, key))
		return false;
	struct token_facts f = {
		.uid = be_get(plain, 4), .gid = be_get(plain + 4, 4),
		.issued_ms = be_get(plain + 8, 8), .expires_ms = be_get(plain + 16, 8),
	};
	bool good = token_payload_read(plain + WHO, n - WHO, &f);
	sodium_memzero(plain, sizeof plain);
	if (good)
		*ret = f;
	return good;
}
