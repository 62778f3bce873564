/* Proves: crontab entries are read as scrontab(1) says, what is wrong is named, and the next due minute is right across months, leap years and daylight saving. */
#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "model/cron.h"

static const struct zone utc = { 0, NULL };

static void test_text(void **state)
{
	static const struct { const char *in, *out, *rest; } good[] = {
		{ "*/5 * * * * /bin/date", "0,5,10,15,20,25,30,35,40,45,50,55 * * * *", "/bin/date" },
		{ "@daily echo x", "0 0 * * *", "echo x" }, { "@WEEKLY z", "0 0 * * 0", "z" }, { "@fika w", "0 15 * * *", "w" }, { "@yearly a b", "0 0 1 1 *", "a b" },
		{ "  1-5,30 8-17/2 * * wed x", "1,2,3,4,5,30 8,10,12,14,16 * * 3", "x" }, { "*\t* 1 jan-mar 0-7 y", "* * 1 1,2,3 *", "y" }, { "*/15 * * * 1,7 y", "0,15,30,45 * * * 0,1", "y" },
		{ "0-59 0-23 1-31 1-12 sun-sat", "* * * * *", "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct cron c;
		struct error err = { 0 };
		const char *rest;
		char text[CRON_TEXT_MAX];
		assert_int_equal(cron_parse(good[i].in, &c, &rest, &err), 0);
		cron_text(&c, text);
		assert_string_equal(text, good[i].out);
		assert_string_equal(rest, good[i].rest);
	}
}

static void test_wrong(void **state)
{
	static const struct { const char *in, *name; } bad[] = {
		{ "61 * * * * x", "minute \"61\"" }, { "* * * * x", "day of week \"x\"" }, { "*/0 * * * * x", "minute" }, { "5-1 * * * * x", "minute" }, { "@nosuch x", "@nosuch" }, { "* * * *", "day of week" },
		{ "* * * foo * x", "month \"foo\"" }, { "* * * * 8 x", "day of week \"8\"" }, { "*/70 * * * * x", "minute" }, { "1, * * * * x", "minute" }, { ",1 * * * * x", "minute" }, { "1-* * * * * x", "minute" },
		{ "1x * * * * y", "minute" }, { "* 24 * * * y", "hour" }, { "* * 0 * * y", "day of month" }, { "", "minute" }, { "99999999999999999999 * * * * x", "minute" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct cron c;
		struct error err = { 0 };
		const char *rest;
		assert_int_equal(cron_parse(bad[i].in, &c, &rest, &err), -EINVAL);
		assert_non_null(strstr(err.line, bad[i].name));
	}
}

static int64_t at(const char *text)
{
	struct tm tm = { 0 };
	assert_non_null(strptime(text, "%Y-%m-%dT%H:%M:%S", &tm));
	return timegm(&tm);
}

static int64_t next(const char *spec, const struct zone *z, const char *after)
{
	struct cron c;
	const char *rest;
	assert_int_equal(cron_parse(spec, &c, &rest, NULL), 0);
	return cron_next(&c, z, at(after));
}

static void test_next(void **state)
{
	static const struct { const char *spec, *after, *due; } cases[] = {
		{ "*/5 * * * *", "2026-12-01T01:44:39", "2026-12-01T01:45:00" }, { "*/5 * * * *", "2026-12-01T01:45:00", "2026-12-01T01:50:00" }, { "@daily", "2026-12-01T01:44:39", "2026-12-02T00:00:00" },
		{ "@daily", "2026-12-31T00:00:00", "2027-01-01T00:00:00" }, { "0 0 29 2 *", "2026-12-01T00:00:00", "2028-02-29T00:00:00" }, { "@monthly", "2026-01-31T10:00:00", "2026-02-01T00:00:00" },
		{ "0 12 13 * fri", "2026-12-01T00:00:00", "2026-12-04T12:00:00" },  /* either day */
		{ "59 23 31 12 *", "2026-12-31T23:59:59", "2027-12-31T23:59:00" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(next(cases[i].spec, &utc, cases[i].after), at(cases[i].due));
	assert_int_equal(next("0 0 30 2 *", &utc, "2026-12-01T00:00:00"), 0);
}

static void test_daylight_saving(void **state)
{
	/* Berlin 2026: to +2 h on 29 March 01:00 UTC, back on 25 October 01:00 UTC. */
	const struct zone_change change[] = { { 0, 3600 }, { at("2026-03-29T01:00:00"), 7200 }, { at("2026-10-25T01:00:00"), 3600 } };
	const struct zone berlin = { 3, change };
	(void)state;
	assert_int_equal(next("0 9 * * *", &berlin, "2026-03-28T12:00:00"), at("2026-03-29T07:00:00"));
	assert_int_equal(next("30 2 * * *", &berlin, "2026-03-28T12:00:00"), at("2026-03-29T01:30:00")); /* 02:30 is skipped that night: 03:30 */
	int64_t first = next("30 2 * * *", &berlin, "2026-10-24T12:00:00");
	assert_int_equal(first, at("2026-10-25T00:30:00"));
	assert_int_equal(next("30 2 * * *", &berlin, "2026-10-25T00:30:00"), at("2026-10-26T01:30:00")); /* once, though it is 02:30 twice */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_wrong), cmocka_unit_test(test_next), cmocka_unit_test(test_daylight_saving) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
