/* Proves: figures of tasks name the most and the least and where those were, on one node and merged over nodes; what was not measured stays absent. */
#include <stdbool.h>

#include "base/testing.h"
#include "model/usage.h"

static Pb__StepUsage *node_make(const char *name, uint32_t first, const uint64_t *rss, size_t n)
{
	Pb__StepUsage *u = malloc(sizeof *u);
	pb__step_usage__init(u);
	u->has_tasks = true;
	for (size_t i = 0; i < n; i++, u->tasks++)
		usage_add(u, USAGE_RSS, name, first + (uint32_t)i, rss[i]);
	return u;
}

/* A figure that moves: the most is of peaks, least and sum of means. */
static void test_mean(void **state)
{
	Pb__StepUsage *u = node_make("n1", 0, NULL, 0);
	(void)state;
	usage_add_mean(u, USAGE_GPU_UTIL, "n1", 0, 100, 40);
	usage_add_mean(u, USAGE_GPU_UTIL, "n1", 1, 90, 80);
	const Pb__Figure *f = usage_figure(u, USAGE_GPU_UTIL);
	assert_int_equal(f->max, 100);
	assert_int_equal(f->max_task, 0);
	assert_int_equal(f->min, 40);
	assert_int_equal(f->total, 120);
	assert_null(usage_figure(u, USAGE_GPU_MEM));
	assert_null(usage_figure(u, USAGE_ENERGY));
	pb__step_usage__free_unpacked(u, NULL);
}

static void test_merge(void **state)
{
	Pb__StepUsage *a = node_make("n1", 0, (uint64_t[]){ 30, 10, 20 }, 3), *b = node_make("n2", 3, (uint64_t[]){ 5, 40 }, 2), *all = node_make("n0", 0, NULL, 0);
	usage_merge(all, a);
	usage_merge(all, b);
	const Pb__Figure *f = usage_figure(all, USAGE_RSS);
	assert_int_equal(f->max, 40);
	assert_string_equal(f->max_node, "n2");
	assert_int_equal(f->max_task, 4);
	assert_int_equal(f->min, 5);
	assert_string_equal(f->min_node, "n2");
	assert_int_equal(f->min_task, 3);
	assert_int_equal(f->total, 105);
	assert_int_equal(all->tasks, 5);
	assert_null(usage_figure(all, USAGE_VSIZE));
	pb__step_usage__free_unpacked(a, NULL);
	pb__step_usage__free_unpacked(b, NULL);
	pb__step_usage__free_unpacked(all, NULL);
	(void)state;
}

static void test_frequency(void **state)
{
	static const struct { const char *text; int64_t sec; const char *wrong; } rows[] = {
		{ "15", 15, NULL }, { "task=5,energy=10", 5, NULL }, { "energy=7", 30, NULL }, { "", 30, NULL }, { "TASK=0", 0, NULL }, { "task=5,task=6", 6, NULL },
		{ "foo", 0, "foo" }, { "task=", 0, "task=" }, { "task=-1", 0, "task=-1" }, { "task=5,bar=3", 0, "bar=3" }, { "task=5x", 0, "task=5x" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		uint32_t sec = 30;
		int rc = usage_frequency(rows[i].text, &sec, &err);
		assert_true(rows[i].wrong ? rc < 0 : rc == 0);
		if (rows[i].wrong)
			assert_string_equal(err.line, rows[i].wrong);
		else
			assert_int_equal(sec, rows[i].sec);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_merge), cmocka_unit_test(test_mean), cmocka_unit_test(test_frequency) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
