/* fuzz_pmi.c - what a task says by PMI: taken apart in one go and byte by byte alike, a store loaded from it, a spawn made of it */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "stepd/pmi_kvs.h"
#include "stepd/pmi_spawn.h"
#include "stepd/pmi_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pmi_req req;

/* Number of requests; `*ret_words` of all of them. */
static size_t take_all(const uint8_t *data, size_t size, size_t *ret_words, struct pmi_spawn *spawn)
{
	/* Exactly as large as the data: a read behind it is noticed. */
	char *copy = xmalloc(size ? size : 1);
	size_t at = 0, count = 0, n;
	int version = 0;
	memcpy(copy, data, size);
	for (long used; (used = pmi_take(copy + at, size - at, &version, &req)) > 0; at += (size_t)used) {
		assert((size_t)used <= size - at && (version == 1 || version == 2) && req.n);
		*ret_words += req.n;
		count++;
		(void)pmi_word(&req, "key");
		if (pmi_spawn_add(spawn, &req) == 0) {
			free(pmi_spawn_text(spawn, &n));
			pmi_spawn_clear(spawn);
		}
		struct str out = STR_INIT;
		pmi_answer(&out, &req, "x");
		pmi_add(&out, &req, "key", req.word[0].value);
		pmi_end(&out, &req);
		str_fini(&out);
	}
	free(copy);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pmi_spawn spawn = { 0 };
	struct kvs kvs = { 0 }, again = { 0 };
	size_t words = 0, n, m;
	if (size > 1 << 16)
		return 0;
	(void)take_all(data, size, &words, &spawn);
	pmi_spawn_clear(&spawn);
	if (kvs_load(&kvs, data, size)) {
		uint8_t *text = kvs_text(&kvs, &n);
		assert(kvs_load(&again, text, n));
		uint8_t *twice = kvs_text(&again, &m);
		assert(m == n && !memcmp(text, twice, n));
		free(text);
		free(twice);
	}
	kvs_clear(&kvs);
	kvs_clear(&again);
	return 0;
}
