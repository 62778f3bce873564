/* fuzz_sbatch.c - batch scripts and file name patterns: read in bounds, whatever the bytes */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/batchscript.h"
#include "model/fname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct batchscript b;
	struct error err = { 0 };
	char *text = xstrndup((const char *)data, size); /* as the commands have it: with a NUL behind */
	size_t len = strlen(text);

	(void)batchscript_check(text, len, &err);
	if (batchscript_parse(text, len, &b, &err) == 0) {
		for (size_t i = 0; i < b.count; i++) {
			assert(b.dir[i].word[b.dir[i].count] == NULL);
			assert(b.dir[i].component < b.components);
		}
		batchscript_fini(&b);
	}
	struct fname_ctx ctx = { .job_id = 7, .user = "u", .name = "n", .node = "host.example", .keep_node_task = size & 1 };
	char *name = fname_expand(text, &ctx);
	(void)fname_is_per_task(text);
	free(name);
	free(text);
	return 0;
}
