/* cron.c - see cron.h */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/cron.h"

#define DAYS_MAX (366 * 40)          /* a leap day on a given weekday comes again within 40 years */

static const char *const months[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const weekdays[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL };
static const struct field { const char *name; unsigned least, most; const char *const *names; } fields[] = {
	{ "minute", 0, 59, NULL }, { "hour", 0, 23, NULL }, { "day of month", 1, 31, NULL }, { "month", 1, 12, months }, { "day of week", 0, 7, weekdays },
};
static const struct { const char *word, *spec; } words[] = {
	{ "yearly", "0 0 1 1 *" }, { "annually", "0 0 1 1 *" }, { "monthly", "0 0 1 * *" }, { "weekly", "0 0 * * 0" }, { "daily", "0 0 * * *" }, { "midnight", "0 0 * * *" },
	{ "hourly", "0 * * * *" }, { "elevenses", "0 11 * * *" }, { "fika", "0 15 * * *" }, { "teatime", "0 16 * * *" },
};

/* --- reading ------------------------------------------------------------------------------------ */
static int wrong(const struct field *f, const char *at, struct error *err)
{
	return error_set(err, EINVAL, "%s \"%.*s\": expected *, or numbers from %u to %u%s, ranges (1-5) and steps (*/5), separated by commas", f->name, (int)strcspn(at, " \t\n"), at,
			 f->least, f->most, f->names ? " or names" : "");
}

/* A number or name; -1: neither. */
static int value_read(const struct field *f, const char **at)
{
	char *end;
	for (int i = 0; f->names && f->names[i]; i++)
		if (!strncasecmp(*at, f->names[i], 3)) {
			*at += 3;
			return i + (int)f->least;
		}
	if (!isdigit((unsigned char)**at))
		return -1;
	unsigned long n = strtoul(*at, &end, 10);
	*at = end;
	return n < f->least || n > f->most ? -1 : (int)n;
}

/* One part between commas. */
static int part_read(const struct field *f, const char **at, uint64_t *bits)
{
	int from = (int)f->least, to = (int)f->most, step = 1;
	if (**at == '*') {
		++*at;
	} else {
		from = value_read(f, at);
		if (from < 0)
			return -EINVAL;
		to = from;
		if (**at == '-') {
			++*at;
			to = value_read(f, at);
			if (to <= from)
				return -EINVAL;
		}
	}
	if (**at == '/') {
		++*at;
		char *end;
		long n = isdigit((unsigned char)**at) ? strtol(*at, &end, 10) : 0;
		if (n < 1 || n > (long)f->most)
			return -EINVAL;
		*at = end;
		step = (int)n;
	}
	for (int i = from; i <= to; i += step)
		*bits |= 1ull << i;
	return 0;
}

static int field_read(const struct field *f, const char **at, uint64_t *bits, struct error *err)
{
	const char *begin = *at;
	*bits = 0;
	do {
		*at += *at != begin;
		if (part_read(f, at, bits) < 0)
			return wrong(f, begin, err);
	} while (**at == ',');
	return **at && !isblank((unsigned char)**at) && **at != '\n' ? wrong(f, begin, err) : 0;
}

static const char *blanks(const char *at)
{
	while (isblank((unsigned char)*at))
		at++;
	return at;
}

static int fields_read(const char *text, struct cron *ret, const char **ret_end, struct error *err)
{
	uint64_t bits[5];
	const char *at = blanks(text);
	for (size_t i = 0; i < 5; i++, at = blanks(at)) {
		int rc = field_read(&fields[i], &at, &bits[i], err);
		if (rc < 0)
			return rc;
	}
	*ret = (struct cron){ .minute = bits[0], .hour = (uint32_t)bits[1], .day = (uint32_t)bits[2], .month = (uint32_t)bits[3], .weekday = (uint8_t)((bits[4] | bits[4] >> 7) & 127) };
	ret->any_day = ret->day == 0xfffffffeu;
	ret->any_weekday = ret->weekday == 127;
	*ret_end = at;
	return 0;
}

int cron_parse(const char *text, struct cron *ret, const char **ret_end, struct error *err)
{
	const char *at = blanks(text), *unused;
	if (*at != '@')
		return fields_read(at, ret, ret_end, err);
	size_t n = strcspn(at + 1, " \t\n");
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].word) == n && !strncasecmp(at + 1, words[i].word, n)) {
			*ret_end = blanks(at + 1 + n);
			return fields_read(words[i].spec, ret, &unused, err);
		}
	return error_set(err, EINVAL, "%.*s: known are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @elevenses, @fika, @teatime", (int)n + 1, at);
}

/* --- showing --------------------------------------------------------------------------------------- */
static size_t field_text(char *buf, size_t size, uint64_t bits, unsigned least, unsigned most)
{
	size_t at = 0;
	uint64_t all = ((2ull << most) - 1) & ~((1ull << least) - 1);
	if ((bits & all) == all)
		return (size_t)snprintf(buf, size, "*");
	for (unsigned i = least; i <= most && at < size; i++)
		if (bits >> i & 1)
			at += (size_t)snprintf(buf + at, size - at, "%s%u", at ? "," : "", i);
	return at;
}

void cron_text(const struct cron *c, char buf[CRON_TEXT_MAX])
{
	const uint64_t bits[5] = { c->minute, c->hour, c->day, c->month, c->weekday };
	size_t at = 0;
	for (size_t i = 0; i < 5; i++) {
		at += (size_t)snprintf(buf + at, CRON_TEXT_MAX - at, "%s", i ? " " : "");
		at += field_text(buf + at, CRON_TEXT_MAX - at, bits[i], fields[i].least, i == 4 ? 6 : fields[i].most);
	}
}

/* --- due -------------------------------------------------------------------------------------------- */
/* Days since 1970-01-01 to month 1-12 and day 1-31 (the era of 400 years, March first). */
static void civil(int64_t days, unsigned *month, unsigned *day)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
	unsigned doe = (unsigned)(z - era * 146097), yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	*day = doy - (153 * mp + 2) / 5 + 1;
	*month = mp < 10 ? mp + 3 : mp - 9;
}

static bool day_due(const struct cron *c, int64_t days)
{
	unsigned month, day;
	civil(days, &month, &day);
	bool by_day = c->day >> day & 1, by_week = c->weekday >> zone_weekday(days * 86400) & 1;
	if (!(c->month >> month & 1))
		return false;
	return c->any_day || c->any_weekday ? by_day && by_week : by_day || by_week;
}

int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after)
{
	int64_t wall = zone_wall(z, after), first = wall / 60 * 60 + 60;
	for (int64_t day = first / 86400, left = DAYS_MAX; left; day++, left--) {
		if (!day_due(c, day))
			continue;
		for (int64_t m = day == first / 86400 ? first % 86400 / 60 : 0; m < 1440; m++) {
			if (!(c->hour >> (m / 60) & 1) || !(c->minute >> (m % 60) & 1))
				continue;
			int64_t utc = zone_utc(z, day * 86400 + m * 60);
			if (utc > after)
				return utc;
		}
	}
	return 0;
}
