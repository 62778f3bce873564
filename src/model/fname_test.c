/* fname_test.c - file name patterns as 26.05.5 expanded them; case D37 */
#include "base/testing.h"
#include "model/fname.h"

static const struct fname_ctx job = { .job_id = 301, .user = "root", .name = "na/me x", .node = "node-1.example" };

static void of_a_job(void **state)
{
	static const struct { const char *text, *out; } rows[] = {
		{ "f_%j", "f_301" }, { "f_%4j", "f_0301" }, { "f_%J", "f_301" }, { "f_%A_%a", "f_301_4294967294" }, { "f_%x", "f_na/me x" }, { "f_%u", "f_root" },
		{ "f_%N", "f_node-1" }, { "f_%n_%t_%s_%3t", "f_0_0_batch_000" }, { "f_%%_%j", "f_%_301" }, { "f\\_%j", "f_%j" }, { "f\\\\_%j", "f_%j" },
		{ "f_%b", "f_4" }, { "f_%q_%", "f_%q_" }, { "f_%12j", "f_0000000301" }, { "f_%0j", "f_301" }, { "f_%05t", "f_00000" }, { "", "" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *s = fname_expand(rows[i].text, &job);
		assert_string_equal(s, rows[i].out);
		free(s);
	}
}

static void of_a_task(void **state)
{
	struct fname_ctx c = job;
	c.array_job_id = 300;
	c.has_task = true;
	c.array_task_id = 11;
	c.has_step = true;
	c.step_id = 2;
	c.node_index = 1;
	c.task = 7;
	char *s = fname_expand("o_%A_%4a_%b_%x", &c);
	assert_string_equal(s, "o_300_0011_1_na/me x");
	free(s);
	s = fname_expand("%J %s %n %3t %%", &c);
	assert_string_equal(s, "301.2 2 1 007 %");
	free(s);
	c.keep_node_task = true;
	s = fname_expand("%j-%N-%2n-%t-%s-%%", &c);
	assert_string_equal(s, "301-%N-%2n-%t-%s-%%");
	free(s);
	assert_true(fname_is_per_task("a%4t"));
	assert_false(fname_is_per_task("a%%t"));
	assert_false(fname_is_per_task("a\\%t"));
	assert_true(fname_is_per_node("%N"));
}

static void as_path(void **state)
{
	static const struct { const char *pattern, *dir, *out; } rows[] = {
		{ "none", "/w", "/dev/null" }, { NULL, "/w", "/dev/null" }, { "f/%j", "/w", "/w/f/301" }, { "/a/%j", "/w", "/a/301" }, { "x", "/", "/x" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *s = fname_path(rows[i].pattern, rows[i].dir, &job);
		assert_string_equal(s, rows[i].out);
		free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(of_a_job), cmocka_unit_test(of_a_task), cmocka_unit_test(as_path) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
