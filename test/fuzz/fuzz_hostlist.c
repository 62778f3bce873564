/* fuzz_hostlist.c - host lists and id sets: any text is refused or round-trips through its compact form */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/arrayspec.h"
#include "model/depend.h"
#include "model/hostlist.h"
#include "model/idset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hosts(const char *text)
{
	struct hostlist a = HOSTLIST_INIT, b = HOSTLIST_INIT;
	struct error err = { 0 };
	long n = hostlist_count(text, &err);

	if (hostlist_add(&a, text, &err) < 0) {
		assert(n < 0 && a.count == 0);
		return;
	}
	assert(n == (long)a.count);
	char *compact = hostlist_compact(&a);
	assert(hostlist_add(&b, compact, &err) == 0 && b.count == a.count);
	for (size_t i = 0; i < a.count; i++)
		assert(strcmp(a.name[i], b.name[i]) == 0);
	free(compact);
	hostlist_uniq(&a);
	hostlist_fini(&a);
	hostlist_fini(&b);
}

static void sets(const char *text)
{
	struct bitset *b, *again;
	struct arrayspec a;
	struct depend d;

	if (idset_parse(text, 5000, &b, NULL) == 0) {
		char *plain = idset_format(b), *array = idset_format_array(b, 0);
		assert(idset_parse(plain, 5000, &again, NULL) == 0 && bitset_equal(b, again));
		bitset_destroy(again);
		assert(idset_parse(array, 5000, &again, NULL) == 0 && bitset_equal(b, again));
		bitset_destroy(again);
		bitset_destroy(b);
		free(plain);
		free(array);
	}
	if (arrayspec_parse(text, 5000, &a, NULL) == 0) {
		assert(!bitset_empty(a.tasks));
		arrayspec_fini(&a);
	}
	if (depend_parse(text, &d, NULL) == 0) {
		char buf[64];
		for (size_t i = 0; i < d.count; i++)
			depend_term_format(&d.term[i], buf, sizeof(buf));
		depend_fini(&d);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size);
	hosts(text);
	sets(text);
	free(text);
	return 0;
}
