/* fuzz_gres.c - GRES requests, memory, TRES strings: what is accepted round-trips */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/tres.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size), buf[64];
	struct gres_req r[GRES_REQ_MAX], again[GRES_REQ_MAX];
	size_t n = 0, m = 0;
	uint64_t mb;
	struct error err = { 0 };

	if (gres_parse(text, r, GRES_REQ_MAX, &n, &err) == 0 && n > 0) {
		char *out = gres_format(r, n, ':');
		if (gres_parse(out, again, GRES_REQ_MAX, &m, &err) == 0) {
			assert(m == n);
			for (size_t i = 0; i < n; i++)
				assert(strcmp(r[i].name, again[i].name) == 0 && strcmp(r[i].type, again[i].type) == 0 && r[i].count == again[i].count);
		}
		free(out);
	}
	if (mem_parse(text, &mb, &err) == 0)
		mem_format(mb, buf, sizeof(buf));
	(void)tres_get(text, "cpu");
	(void)tres_get(text, "mem");
	(void)tres_get(text, "gres/gpu");
	free(text);
	return 0;
}
