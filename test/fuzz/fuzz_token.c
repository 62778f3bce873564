/* fuzz_token.c - tokens: no bytes open under a key they were not sealed with, and a sealed token with any byte changed does not open */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sodium.h>

#include "wire/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[TOKEN_KEY] = "fuzz";
	struct token_facts f = { 0 }, got;
	struct token t;
	uint8_t again[TOKEN_PAYLOAD_MAX];

	assert(sodium_init() >= 0);
	assert(!token_open(key, data, size, &got));
	if (token_payload_read(data, size, &f)) {   /* what is read is what would be written */
		assert(token_payload_write(&f, again) == size && !memcmp(again, data, size));
	}
	f.uid = size;
	token_seal(key, &f, &t);
	assert(token_open(key, t.data, t.len, &got) && got.uid == size && !memcmp(got.session, f.session, sizeof f.session));
	bool changed = false;
	for (size_t i = 0; i < size && i < t.len; i++) {
		changed = changed || data[i];
		t.data[i] ^= data[i];
	}
	assert(token_open(key, t.data, t.len, &got) != changed);
	assert(!token_open(key, t.data, t.len - 1, &got));
	return 0;
}
