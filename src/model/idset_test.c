/* idset_test.c - sets of numbers as text and back */
#include "base/testing.h"
#include "model/idset.h"

static void round_trip(void **state)
{
	static const struct { const char *text, *plain, *array; } rows[] = {
		{ "", "", "" }, { "0-3,7", "0-3,7", "0-3,7" }, { "7,0-3", "0-3,7", "0-3,7" }, { "9-15:2", "9,11,13,15", "9,11,13,15" },
		{ "1,2", "1-2", "1-2" }, { "1,3", "1,3", "1,3" }, { "1,3,5", "1,3,5", "1,3,5" }, { "1-14:2", "1,3,5,7,9,11,13", "1-13:2" }, { "5", "5", "5" }, { "0-100:4,3", NULL, NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bitset *b = NULL;
		struct error err = { 0 };
		assert_int_equal(idset_parse(rows[i].text, 1001, &b, &err), 0);
		if (rows[i].plain) {
			char *plain = idset_format(b), *array = idset_format_array(b, 0);
			assert_string_equal(plain, rows[i].plain);
			assert_string_equal(array, rows[i].array);
			free(plain);
			free(array);
		}
		bitset_destroy(b);
	}
}

static void cut(void **state)
{
	struct bitset *b = NULL;
	assert_int_equal(idset_parse("1,3,4,9,11", 100, &b, NULL), 0);
	char *s = idset_format_array(b, 6);
	assert_string_equal(s, "1,3-4,...");
	free(s);
	bitset_destroy(b);
}

static void refused(void **state)
{
	static const char *const rows[] = { "a", "1-", "-1", "3-1", "1,", ",1", "1,,2", "1-5:0", "1-5:", "1 2", "4294967297", "99999999999999999999", "100" };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bitset *b = NULL;
		struct error err = { 0 };
		assert_true(idset_parse(rows[i], 100, &b, &err) < 0);
		assert_null(b);
		assert_non_null(strstr(err.line, "position"));
	}
}

static void bound(void **state)
{
	static const struct { const char *text; uint32_t bound; } rows[] = {
		{ "", 0 }, { "0", 1 }, { "0-9%2", 10 }, { "7,0-3", 8 }, { "1-13:2,40", 41 }, { "999", 1000 }, { "1000", 1000 }, { "99999999999999999999,3", 1000 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(idset_bound(rows[i].text, 1000), rows[i].bound);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(round_trip), cmocka_unit_test(cut), cmocka_unit_test(refused), cmocka_unit_test(bound) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
