/* zone.c - see zone.h */
#include "model/zone.h"

static int32_t offset_at(const struct zone *z, int64_t utc)
{
	uint32_t lo = 0, hi = z->n;
	while (lo < hi) { /* the last change at or before utc */
		uint32_t mid = (lo + hi) / 2;
		if (z->change[mid].at <= utc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return !z->n ? 0 : z->change[lo ? lo - 1 : 0].offset;
}

int64_t zone_wall(const struct zone *z, int64_t utc) { return utc + offset_at(z, utc); }

int64_t zone_utc(const struct zone *z, int64_t wall)
{
	int32_t before = offset_at(z, wall - 86400), after = offset_at(z, wall + 86400);
	if (offset_at(z, wall - before) == before)
		return wall - before;
	if (offset_at(z, wall - after) == after)
		return wall - after;
	return wall - before;
}

int zone_weekday(int64_t wall)
{
	int64_t day = wall >= 0 ? wall / 86400 : -((-wall + 86399) / 86400);
	return (int)(((day + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
}
