/* fuzz_time.c - time limits and points in time: never half accepted, printing what was read reads the same */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/timespec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size), buf[64];
	uint32_t secs, again;
	time_t t = 0;
	struct error err = { 0 };

	if (timespec_parse_secs(text, &secs, &err) == 0) {
		timespec_format(secs, buf, sizeof(buf));
		assert(timespec_parse_secs(buf, &again, NULL) == 0 && again == secs);
	}
	if (timespec_parse_mins(text, &secs, &err) == 0)
		timespec_format_short(secs == TIME_INFINITE ? secs : secs / 60, buf, sizeof(buf));
	for (int past = 0; past < 2; past++) {
		if (timespec_parse_when(text, 1796011416, past, &t, &err) == 0) {
			timespec_print_when(t, NULL, 1796011416, buf, sizeof(buf));
			timespec_print_when(t, "relative", 1796011416, buf, sizeof(buf));
		}
	}
	free(text);
	return 0;
}
