/* reserve_time.c - when a reservation is: occurrences of a recurring one, on the wall clock
 * A recurring reservation is kept as wall times of its present occurrence (model/zone.h); the next is so many days later on the wall and then turned into
 * seconds. So 09:00 stays 09:00 when the clocks change, in both ends. HOURLY ones count hours, not wall times. */
#include <stdlib.h>

#include "core/reserve.h"

#define DAY 86400
#define HORIZON (54 * 7 * DAY)  /* two recurring ones that do not meet in a year never do */

static const struct zone *zone(const struct core *c) { return &c->params.zone; }

int64_t resv_start(const struct core *c, const struct resv *r)
{
	return r->flags & RESVF_TIME_FLOAT ? (int64_t)now_sec(c) + r->rec->float_sec : r->start;
}

void resv_set_times(struct core *c, struct resv *r, int64_t start, int64_t end)
{
	r->start = start;
	r->end = end;
	r->wall_start = zone_wall(zone(c), start);
	r->wall_end = zone_wall(zone(c), end);
}

static bool on_day(const struct resv *r, int64_t wall)
{
	int d = zone_weekday(wall);
	return r->flags & RESVF_WEEKDAY ? d >= 1 && d <= 5 : r->flags & RESVF_WEEKEND ? d == 0 || d == 6 : true;
}

static int64_t step_days(const struct resv *r) { return r->flags & RESVF_WEEKLY ? 7 : 1; }

struct occurrence { int64_t wall_start, wall_end, start, end; };

static void to_utc(const struct core *c, struct occurrence *o)
{
	o->start = zone_utc(zone(c), o->wall_start);
	o->end = zone_utc(zone(c), o->wall_end);
	if (o->end <= o->start) /* swallowed by a change of the clock */
		o->end = o->start + 60;
}

/* By whole days on the wall until a day of the right kind. */
static void next_day(const struct core *c, const struct resv *r, struct occurrence *o)
{
	int64_t days = step_days(r);
	do {
		o->wall_start += days * DAY;
		o->wall_end += days * DAY;
	} while (!on_day(r, o->wall_start));
	to_utc(c, o);
}

/* The first occurrence, from the present one on, that ends after t. */
static void occurrence_after(const struct core *c, const struct resv *r, int64_t t, struct occurrence *o)
{
	*o = (struct occurrence){ r->wall_start, r->wall_end, r->start, r->end };
	if (o->end > t)
		return;
	if (r->flags & RESVF_HOURLY) {
		int64_t k = (t - o->end) / 3600 + 1;
		o->start += k * 3600;
		o->end += k * 3600;
		o->wall_start = zone_wall(zone(c), o->start);
		o->wall_end = zone_wall(zone(c), o->end);
		return;
	}
	int64_t weeks = (t - o->end) / (7 * DAY) - 1; /* far ahead in whole weeks: the kind of day stays */
	if (weeks > 0) {
		o->wall_start += weeks * 7 * DAY;
		o->wall_end += weeks * 7 * DAY;
		to_utc(c, o);
	}
	while (o->end <= t)
		next_day(c, r, o);
}

bool resv_occurrence(const struct core *c, const struct resv *r, int64_t t, struct resv_window *ret)
{
	struct occurrence o;
	if (!(r->flags & RESVF_RECURRING)) {
		*ret = (struct resv_window){ resv_start(c, r), r->end };
		if (r->rec->float_len_sec)
			ret->end = ret->start + r->rec->float_len_sec;
		return ret->end > t && ret->start < ret->end;
	}
	occurrence_after(c, r, t, &o);
	*ret = (struct resv_window){ o.start, o.end };
	return true;
}

bool resv_overlaps(const struct core *c, const struct resv *r, int64_t from, int64_t to)
{
	struct resv_window w;
	return resv_occurrence(c, r, from, &w) && w.start < to;
}

bool resv_meet(const struct core *c, const struct resv *a, const struct resv *b)
{
	const struct resv *few = a, *many = b;
	struct resv_window w;
	if (!(b->flags & RESVF_RECURRING) || (a->flags & RESVF_HOURLY)) {
		few = b;
		many = a;
	}
	int64_t t = resv_start(c, few) - 1, until = (few->start > many->start ? few->start : many->start) + HORIZON;
	while (resv_occurrence(c, few, t, &w) && w.start < until) {
		if (resv_overlaps(c, many, w.start, w.end))
			return true;
		if (!(few->flags & RESVF_RECURRING))
			break;
		t = w.end;
	}
	return false;
}

void resv_advance(struct core *c, struct resv *r)
{
	struct occurrence o;
	occurrence_after(c, r, r->end, &o);
	r->wall_start = o.wall_start;
	r->wall_end = o.wall_end;
	r->start = o.start;
	r->end = o.end;
}
