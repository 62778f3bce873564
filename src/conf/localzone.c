/* localzone.c - see localzone.h. Asks localtime once a day of the span and halves the day in which the offset changed. */
#include <time.h>

#include "base/alloc.h"
#include "conf/localzone.h"

static int32_t offset(int64_t utc)
{
	time_t t = (time_t)utc;
	struct tm tm;
	return localtime_r(&t, &tm) ? (int32_t)tm.tm_gmtoff : 0;
}

static int64_t first_with(int64_t lo, int64_t hi, int32_t before) /* lo has `before`, hi has not */
{
	while (lo + 1 < hi) {
		int64_t mid = lo + (hi - lo) / 2;
		*(offset(mid) == before ? &lo : &hi) = mid;
	}
	return hi;
}

uint32_t localzone_load(int64_t from, int64_t to, struct zone_change **ret)
{
	size_t cap = 0;
	uint32_t n = 0;
	tzset();
	*ret = xgrow(NULL, &cap, 1, sizeof **ret);
	(*ret)[n++] = (struct zone_change){ from, offset(from) };
	for (int64_t t = from; t < to; t += 86400) {
		int32_t was = (*ret)[n - 1].offset;
		if (offset(t + 86400) == was)
			continue;
		int64_t at = first_with(t, t + 86400, was);
		*ret = xgrow(*ret, &cap, n + 1, sizeof **ret);
		(*ret)[n++] = (struct zone_change){ at, offset(at) };
	}
	return n;
}
