/* arrayspec_test.c - --array as 26.05.5 read it; cases E52, E53 */
#include "base/testing.h"
#include "model/arrayspec.h"

static void accepted(void **state)
{
	static const struct { const char *text, *out; } rows[] = {
		{ "0-9%2", "0-9%2" }, { "1-100:4", "1-97:4" }, { "1,3,5", "1,3,5" }, { "0-9%0", "0-9" }, { "0-9%", "0-9" }, { "5", "5" },
		{ "0-1000", "0-1000" }, { "1,,2", "1-2" }, { "1,", "1" }, { ",1", "1" }, { "1-5:2,7%3", "1,3,5,7%3" }, { "[1-5]", "1-5" },
		{ " 1", "1" }, { "1,1,2", "1-2" }, { "00-02", "0-2" }, { "1-13:2", "1-13:2" }, { "1-11:2", "1,3,5,7,9,11" }, { "[1-10%1]", "1-10%1" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arrayspec a;
		struct error err = { 0 };
		if (arrayspec_parse(rows[i].text, 1001, &a, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.line);
		char *s = arrayspec_format(a.tasks, a.max_running, 0);
		assert_string_equal(s, rows[i].out);
		free(s);
		arrayspec_fini(&a);
	}
}

static void refused(void **state)
{
	static const char *const rows[] = { "", "1-2000", "1001-2000", "1001", "4294967297", "a", "1-", "-1", "3-1", "1-5:0", "1-5:", "1%x", "1%2%3", "%4", "5-1:2" };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arrayspec a = { 0 };
		struct error err = { 0 };
		if (arrayspec_parse(rows[i], 1001, &a, &err) != -ESLURM_INVALID_ARRAY)
			fail_msg("%s was not refused", rows[i]);
		assert_null(a.tasks);
		assert_true(err.line[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(accepted), cmocka_unit_test(refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
