/* zone_test.c - the two days a year on which the wall clock jumps */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "model/zone.h"

/* New York in 2026: back from -4 h at the start of the year, forward on 8 March, back on 1 November. */
static const struct zone_change change[] = { { 0, -18000 }, { 1772953200, -14400 }, { 1793512800, -18000 } };
static const struct zone ny = { 3, change };

static void plain_days(void **state)
{
	(void)state;
	const struct zone utc = { 0 };
	assert_int_equal(zone_wall(&utc, 1000), 1000);
	assert_int_equal(zone_utc(&utc, 1000), 1000);
	assert_int_equal(zone_utc(&ny, zone_wall(&ny, 1772000000)), 1772000000);
	assert_int_equal(zone_utc(&ny, zone_wall(&ny, 1780000000)), 1780000000);
	assert_int_equal(zone_weekday(0), 4);
	assert_int_equal(zone_weekday(-1), 3);
	assert_int_equal(zone_weekday(3 * 86400), 0);
}

static void forward(void **state)
{
	(void)state;
	int64_t two = zone_wall(&ny, 1772953200 - 1) + 1; /* 02:00 on the wall, which never is */
	assert_int_equal(zone_utc(&ny, two - 3600), 1772953200 - 3600);
	assert_int_equal(zone_utc(&ny, two + 1800), 1772953200 + 1800);
	assert_int_equal(zone_wall(&ny, zone_utc(&ny, two + 1800)), two + 3600 + 1800);
	assert_int_equal(zone_utc(&ny, two + 7200), 1772953200 + 3600);
	assert_int_equal(zone_utc(&ny, two + 7 * 86400) - zone_utc(&ny, two - 3600), 7 * 86400 + 0);
}

static void back(void **state)
{
	(void)state;
	int64_t one = zone_wall(&ny, 1793512800); /* 01:00, the second time */
	assert_int_equal(zone_wall(&ny, 1793512800 - 3600), one);
	assert_int_equal(zone_utc(&ny, one), 1793512800 - 3600); /* the first of the two */
	assert_int_equal(zone_utc(&ny, one + 3600), 1793512800 + 3600);
	assert_int_equal(zone_utc(&ny, one + 86400), 1793512800 + 86400);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(plain_days), cmocka_unit_test(forward), cmocka_unit_test(back) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
