/* depend_test.c - --dependency as 26.05.5 read it */
#include "base/testing.h"
#include "base/str.h"
#include "model/depend.h"

static void accepted(void **state)
{
	static const struct { const char *text, *out; bool any; } rows[] = {
		{ "354", "afterany:354", false }, { "afterok:354", "afterok:354", false }, { "after:354+5", "after:354+5", false },
		{ "afterok:354:355,afterany:355_2", "afterok:354 afterok:355 afterany:355_2", false }, { "afterok:354?afterany:355", "afterok:354 afterany:355", true },
		{ "singleton", "singleton", false }, { "singleton,afterok:354", "singleton afterok:354", false }, { "354,355", "afterany:354 afterany:355", false },
		{ "afterok:354+5", "afterok:354+5", false }, { "afterok:355_*", "afterok:355_*", false }, { "AFTEROK:354", "afterok:354", false },
		{ "after:354+1:355_*+3", "after:354+1 after:355_*+3", false }, { "aftercorr:355", "aftercorr:355", false }, { "", "", false },
		{ "afternotok:1,afterburstbuffer:2", "afternotok:1 afterburstbuffer:2", false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct depend d = DEPEND_INIT;
		struct error err = { 0 };
		struct str s = STR_INIT;
		if (depend_parse(rows[i].text, &d, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.line);
		for (size_t k = 0; k < d.count; k++) {
			char buf[64];
			depend_term_format(&d.term[k], buf, sizeof(buf));
			str_add_sep(&s, " ", buf);
		}
		assert_string_equal(s.data, rows[i].out);
		assert_int_equal(d.any, rows[i].any);
		str_fini(&s);
		depend_fini(&d);
	}
}

static void refused(void **state)
{
	static const char *const rows[] = { "afterok:1,afterany:2?after:3", "afterok:", "afterok", "foo:1", "afterok:x", "afterok:1x", "afterok:1,", ",afterok:1",
		"afterok:1,,afterok:2", "1:2", "after:1+x", "after:1+", "afterok:1 singleton", "afterok:1:afterany:2", "singleton:1", "afterok:1+0", "expand:1",
		"afterok:0", "afterok:4294967296", "afterok:1_", "afterok:1_x", ":1", "?" };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct depend d = DEPEND_INIT;
		struct error err = { 0 };
		if (depend_parse(rows[i], &d, &err) != -ESLURM_DEPENDENCY)
			fail_msg("%s was not refused", rows[i]);
		assert_int_equal(d.count, 0);
		assert_non_null(strstr(err.line, "position"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(accepted), cmocka_unit_test(refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
