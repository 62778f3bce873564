/* timespec_test.c - time limits (cases A1-A8) and points in time as the reference 26.05.5 read them */
#include <stdlib.h>
#include "base/testing.h"
#include "base/error.h"
#include "model/timespec.h"

static void limits(void **state) /* A1, A2, A4, A5 */
{
	static const struct { const char *text; uint32_t secs; } rows[] = {
		{ "4:00", 240 }, { "30:00", 1800 }, { "1:30", 90 }, { "0:30", 30 }, { "10", 600 }, { "2-12", 216000 }, { "2-12:30", 217800 },
		{ "2-12:30:15", 217815 }, { "0", 0 }, { "90", 5400 }, { "0:240:0", 14400 }, { "0:10:90", 690 }, { "1-90", 410400 }, { "1-", 86400 },
		{ "UNLIMITED", TIME_INFINITE }, { "infinite", TIME_INFINITE }, { "-1", TIME_INFINITE }, { "1-0:90", 91800 },
	};
	uint32_t v;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(timespec_parse_secs(rows[i].text, &v, NULL), 0);
		assert_int_equal(v, rows[i].secs);
	}
	assert_int_equal(timespec_parse_mins("0:30", &v, NULL), 0);
	assert_int_equal(v, 1);
	assert_int_equal(timespec_parse_mins("1:00:01", &v, NULL), 0);
	assert_int_equal(v, 61);
}

static void limits_refused(void **state)
{
	static const char *const rows[] = { "", " 10", "10 ", "10x", "1:2:3:4", "1.5", ":30", "10:", "-5", "+5", "1:-2", "2-12:", "1-2-3", "partition",
		"99999999999", "49711-00", "9999999999999999999999" };
	uint32_t v = 7;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { 0 };
		assert_true(timespec_parse_secs(rows[i], &v, &err) < 0);
		assert_int_equal(v, 7);
		assert_true(err.line[0] != '\0');
	}
}

static void printed(void **state)
{
	static const struct { uint32_t secs; const char *std, *brief; } rows[] = {
		{ 0, "00:00:00", "0:00" }, { 600, "00:10:00", "10:00" }, { 65, "00:01:05", "1:05" }, { 3600, "01:00:00", "1:00:00" },
		{ 93784, "1-02:03:04", "1-02:03:04" }, { TIME_INFINITE, "UNLIMITED", "UNLIMITED" },
	};
	char buf[64];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		timespec_format(rows[i].secs, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].std);
		timespec_format_short(rows[i].secs, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].brief);
	}
}

#define NOW 1796011416 /* 2026-11-30T04:03:36 UTC, a Monday */

static void points(void **state)
{
	static const struct { const char *text, *iso; } rows[] = {
		{ "now", "2026-11-30T04:03:36" }, { "now+60", "2026-11-30T04:04:36" }, { "now+2hours", "2026-11-30T06:03:36" }, { "now+2hour", "2026-11-30T06:03:36" },
		{ "now+1week", "2026-12-07T04:03:36" }, { "now+3days", "2026-12-03T04:03:36" }, { "now-60", "2026-11-30T04:02:36" }, { "now +1hour", "2026-11-30T05:03:36" },
		{ "16:00", "2026-11-30T16:00:00" }, { "16:00:10", "2026-11-30T16:00:10" }, { "03:00", "2026-12-01T03:00:00" }, { "noon", "2026-11-30T12:00:00" },
		{ "midnight", "2026-12-01T00:00:00" }, { "fika", "2026-11-30T15:00:00" }, { "teatime", "2026-11-30T16:00:00" }, { "elevenses", "2026-11-30T11:00:00" },
		{ "today", "2026-11-30T00:00:00" }, { "tomorrow", "2026-12-01T00:00:00" }, { "noon-tomorrow", "2026-12-01T12:00:00" }, { "tomorrow-noon", "2026-12-01T12:00:00" },
		{ "12/25", "2026-12-25T00:00:00" }, { "123030", "2030-12-30T00:00:00" }, { "12/30/30", "2030-12-30T00:00:00" }, { "12.30.30", "2030-12-30T00:00:00" },
		{ "2030-01-20", "2030-01-20T00:00:00" }, { "2030-01-20T12:34", "2030-01-20T12:34:00" }, { "2030-01-20T12:34:05", "2030-01-20T12:34:05" },
		{ "2030-01-20-12:34:00", "2030-01-20T12:34:00" }, { "1970-01-01-00:00:01", "1970-01-01T00:00:01" }, { "uts1900000000", "2030-03-17T17:46:40" },
		{ "2030-01-20 12:34", "2030-01-20T12:34:00" }, { "NOW", "2026-11-30T04:03:36" }, { "Noon", "2026-11-30T12:00:00" }, { "4:30pm", "2026-11-30T16:30:00" },
		{ "12:30am", "2026-12-01T00:30:00" }, { "12:30pm", "2026-11-30T12:30:00" }, { "01/02T13:00", "2027-01-02T13:00:00" }, { "01/20/30-12:34", "2030-01-20T12:34:00" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { 0 };
		time_t t = 0;
		char buf[64];
		if (timespec_parse_when(rows[i].text, NOW, 0, &t, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.line);
		timespec_print_when(t, NULL, NOW, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].iso);
	}
	time_t t;
	assert_int_equal(timespec_parse_when("03:00", NOW, 1, &t, NULL), 0);
	assert_int_equal(t, 1796011416 - 3816);
}

static void points_refused(void **state) /* A7 */
{
	static const char *const rows[] = { "", "now+5min", "now+5m", "4pm", "2030-01-20T12:34:00+00:00", "1900000000", "foo", "25:00", "2030-13-01", "2030-02-30",
		"now+", "now+xx", "now+5parsec", "now+1day2", "16:00:10x", "noon-noon", "2030-01-20T", "now now", "16:00-17:00", "uts", "utsx" };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { 0 };
		time_t t = 5;
		if (timespec_parse_when(rows[i], NOW, 0, &t, &err) >= 0)
			fail_msg("%s was accepted", rows[i]);
		assert_non_null(strstr(err.line, "Invalid time specification (pos="));
		assert_int_equal(t, 5);
	}
}

static void formats(void **state)
{
	char buf[64];
	timespec_print_when(NOW, "%s", NOW, buf, sizeof(buf));
	assert_string_equal(buf, "1796011416");
	timespec_print_when(NOW, "relative", NOW, buf, sizeof(buf));
	assert_string_equal(buf, "04:03:36");
	timespec_print_when(NOW - 86400, "relative", NOW, buf, sizeof(buf));
	assert_string_equal(buf, "Ystday 04:03");
	timespec_print_when(NOW, "standard", NOW, buf, sizeof(buf));
	assert_string_equal(buf, "2026-11-30T04:03:36");
}

int main(void)
{
	setenv("TZ", "UTC", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits), cmocka_unit_test(limits_refused), cmocka_unit_test(printed), cmocka_unit_test(points),
		cmocka_unit_test(points_refused), cmocka_unit_test(formats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
