/* Proves: formats follow the reference's width rules byte for byte; sorting is by key, stable, and turned round by '-'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cli/table.h"

struct job { int id; const char *name; };
static void get_id(struct str *out, void *row, const struct field *f) { put_i64(out, ((struct job *)row)->id); }
static void get_name(struct str *out, void *row, const struct field *f) { put_text(out, ((struct job *)row)->name, f->absent); }
static int64_t key_id(void *row, const struct field *f) { return ((struct job *)row)->id; }
static const struct field fields[] = {
	{ 'i', "JobArrayId", "JOBID", get_id, 0, "", key_id, 0 },
	{ 'j', "Name", "NAME", get_name, 0, "(null)", NULL, 0 },
	{ 'Z', "WorkDir", "WORK_DIR", get_name, 0, "", NULL, 0 },
	{ 0, "MinCPUs", "MIN_CPUS", get_id, 0, "", key_id, 0 },
	{ 'b', "Later", "LATER", NULL, 0, NULL, NULL, FIELD_TODO },
};
static struct job jobs[] = { { 3, "arr" }, { 2, "wrapping" }, { 4, NULL }, { 3, "b" } };

/* Header and the second row under a format. */
static void check(const char *format, bool by_name, const char *want)
{
	struct table t;
	struct str out = STR_INIT;
	struct error err = { 0 };
	table_init(&t, fields, 5, "job");
	int rc = by_name ? table_format_long(&t, format, &err) : table_format(&t, format, "", &err);
	if (rc < 0) {
		assert_string_equal(err.line, want);
	} else {
		table_header(&t, &out);
		table_row(&t, &jobs[1], &out);
		assert_string_equal(out.data, want);
	}
	str_fini(&out);
	table_fini(&t);
}

static void test_letters(void **state)
{
	check("%.3i|%3i|%.3j|%2j|%.10j|%10j|", false, "JOB|JOB|NAM|NA|      NAME|NAME      |\n  2|2  |wra|wr|  wrapping|wrapping  |\n");
	check("%.i|%-10i|% i|%0i|%05i|%i%", false, "JOBID|%-10i|% i|JOBID|JOBID|JOBID\n2|%-10i|% i|2|2    |2\n");
	check("%10.3i|", false, "%10.3i|\n%10.3i|\n");
	check("100%% abc %i def %j ghi", false, "100% abc JOBID def NAME ghi\n100% abc 2 def wrapping ghi\n");
	check(" %i\\x1f%j \"q\"", false, " JOBID\\x1fNAME \"q\"\n 2\\x1fwrapping \"q\"\n");
	check("", false, "\n\n");
	check("hello", false, "hello\nhello\n");
	check("%all", false, "JOBID|NAME|WORK_DIR\n2|wrapping|wrapping\n");
	check("%b", false, "job field \"Later\" (LATER) is not supported yet");
}

static void test_names(void **state)
{
	check("mincpus:3,name:.3,name:2x,name:.10y z,", true, "MINNAMNAx      NAMEy z\n2  wrawrx  wrappingy z\n");
	check("name:x,name:,name:.,name:10 ,", true, "NAMExNAMENAMENAME       \nwrappingxwrappingwrappingwrapping   \n");
	check("name:0,name:.0|,bogus,name", true, "NAMENAME|NAME                \nwrappingwrapping|wrapping            \n");
	check("MINCPUS:|#,JOBARRAYID:|#", true, "MIN_CPUS|#JOBID|#\n2|#2|#\n");
	check(" name , jobid ", true, "\n\n");
	check("NAME:+3", true, "NAM\nwra\n");
}

static void check_sort(const char *spec_text, const char *want)
{
	struct table t;
	struct sort_spec spec;
	struct error err = { 0 };
	struct str out = STR_INIT;
	table_init(&t, fields, 5, "job");
	if (sort_parse(&t, spec_text, &spec, &err) < 0) {
		assert_string_equal(err.line, want);
		table_fini(&t);
		return;
	}
	struct sorter *s = sorter_create(&spec, 1);
	for (size_t i = 0; i < 4; i++)
		sorter_add(s, &jobs[i]);
	const uint32_t *order = sorter_order(s);
	for (size_t i = 0; i < 4; i++)
		str_addf(&out, "%u", order[i]);
	assert_string_equal(out.data, want);
	sorter_destroy(s);
	str_fini(&out);
	table_fini(&t);
}

static void test_sort(void **state)
{
	check_sort("i", "1032");
	check_sort("-i", "2031");
	check_sort("i,-j", "1302");
	check_sort("+i,j", "1032");
	check_sort("Name", "2031");
	check_sort("", "0123");
	check_sort("foo,i", "Invalid sort specification: foo");
}

static void test_random_sorts(void **state)
{
	/* Any order in, sorted order out, for sizes round the powers of two. */
	struct table t;
	struct sort_spec spec;
	table_init(&t, fields, 5, "job");
	assert_int_equal(sort_parse(&t, "i", &spec, NULL), 0);
	unsigned seed = 7;
	for (size_t n = 0; n < 70; n++) {
		struct job list[70];
		struct sorter *s = sorter_create(&spec, n);
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1103515245 + 12345;
			list[i] = (struct job){ (int)(seed >> 16) % 20, "x" };
			sorter_add(s, &list[i]);
		}
		const uint32_t *order = sorter_order(s);
		for (size_t i = 1; i < n; i++) {
			int a = list[order[i - 1]].id, b = list[order[i]].id;
			assert_true(a < b || (a == b && order[i - 1] < order[i]));
		}
		sorter_destroy(s);
	}
	table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_letters), cmocka_unit_test(test_names), cmocka_unit_test(test_sort), cmocka_unit_test(test_random_sorts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
