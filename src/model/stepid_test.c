/* stepid_test.c - the steps that have a word, there and back */
#include "base/testing.h"
#include "model/stepid.h"

static void words(void **state)
{
	static const struct { uint32_t id; const char *name; } rows[] = {
		{ 0, "7.0" }, { 41, "7.41" }, { STEP_ID_BATCH, "7.batch" }, { STEP_ID_EXTERN, "7.extern" }, { STEP_ID_INTERACTIVE, "7.interactive" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *word = stepid_word(rows[i].id);
		char name[32];
		uint32_t id = 0;
		stepid_format(7, rows[i].id, name, sizeof name);
		assert_string_equal(name, rows[i].name);
		assert_int_equal(word != NULL, rows[i].id > 41);
		if (word) {
			assert_true(stepid_of_word(word, &id));
			assert_int_equal(id, rows[i].id);
		}
	}
	assert_false(stepid_of_word("0", &(uint32_t){ 0 }));
	assert_false(stepid_of_word("", &(uint32_t){ 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(words) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
