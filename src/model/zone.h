/* zone.h - the local wall clock as data: what the core needs to repeat something "at nine each day" across daylight saving
 *
 * The core knows neither clock nor zone. The shell hands in the rules as a table of changes (conf/localzone.h makes it from the system's zone);
 * these functions only look things up in it. A wall time is seconds as if the clock on the wall showed UTC. Outside the table the nearest entry holds. */
#pragma once
#include <stdint.h>

struct zone_change { int64_t at; int32_t offset; };           /* from `at` (UTC) on: wall = UTC + offset, both in seconds */
struct zone { uint32_t n; const struct zone_change *change; }; /* ascending; n 0: the wall shows UTC */

int64_t zone_wall(const struct zone *z, int64_t utc);
/* Of a time that happens twice the first; one that is skipped is read with the offset before the gap (02:30 becomes 03:30). */
int64_t zone_utc(const struct zone *z, int64_t wall);
/* 0 Sunday .. 6 Saturday */
int zone_weekday(int64_t wall);
