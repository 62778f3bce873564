/* hostlist_test.c - what host lists name, what is refused, how they fold (cases 14-23) */
#include "base/testing.h"
#include "base/alloc.h"
#include "base/str.h"
#include "model/hostlist.h"

static char *joined(const struct hostlist *hl)
{
	struct str s = STR_INIT;
	for (size_t i = 0; i < hl->count; i++)
		str_add_sep(&s, " ", hl->name[i]);
	return str_take(&s);
}

static void expands_and_folds(void **state)
{
	static const struct { const char *text, *names, *compact; } rows[] = {
		{ "nodeA,nodeB[001,003],nodeC", "nodeA nodeB001 nodeB003 nodeC", "nodeA,nodeB[001,003],nodeC" },             /* B14 */
		{ "b1u01n1,b2u[05,02]n3,b3u03n4", "b1u01n1 b2u05n3 b2u02n3 b3u03n4", "b1u01n1,b2u05n3,b2u02n3,b3u03n4" },    /* B16 */
		{ "node[0001-0002]-int", "node0001-int node0002-int", "node0001-int,node0002-int" },
		{ "ml-16-node-[001-002,004],ml-17-node-[001-003]", "ml-16-node-001 ml-16-node-002 ml-16-node-004 ml-17-node-001 ml-17-node-002 ml-17-node-003",
		  "ml-16-node-[001-002,004],ml-17-node-[001-003]" },                                                         /* B19 */
		{ "c457-[011-012]", "c457-011 c457-012", "c457-[011-012]" },                                                 /* B20 */
		{ "c427-032,c429-002", "c427-032 c429-002", "c427-032,c429-002" },
		{ "c438-[062,104]", "c438-062 c438-104", "c438-[062,104]" },
		{ "n1\nn2\nn3\n", "n1 n2 n3", "n[1-3]" },                                                                    /* B22 */
		{ "n3,n1,n2", "n3 n1 n2", "n[3,1-2]" }, { "n1,n1,n2", "n1 n1 n2", "n[1,1-2]" },
		{ "n01,n02,n10", "n01 n02 n10", "n[01-02,10]" }, { "n09,n10", "n09 n10", "n[09-10]" }, { "n9,n10", "n9 n10", "n[9-10]" },
		{ "n1,n01", "n1 n01", "n[1,01]" }, { "a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4", "a1b[3-4],a2b[3-4]" },
		{ "n1,m1,n2", "n1 m1 n2", "n1,m1,n2" }, { "n099,n100", "n099 n100", "n[099-100]" }, { "1,2,3", "1 2 3", "[1-3]" },
		{ "n[01-3]", "n01 n02 n03", "n[01-03]" }, { "node,node", "node node", "node,node" }, { "n,,m", "n m", "n,m" },
		{ "n[1-2]m[5-6]x", "n1m5x n1m6x n2m5x n2m6x", "n1m5x,n1m6x,n2m5x,n2m6x" }, { "n[001-002,4]", "n001 n002 n4", "n[001-002,4]" },
		{ "a b", "a b", "a,b" }, { "", "", "" }, { "node-[21,23-26]", "node-21 node-23 node-24 node-25 node-26", "node-[21,23-26]" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hostlist hl = HOSTLIST_INIT;
		struct error err = { 0 };
		assert_int_equal(hostlist_add(&hl, rows[i].text, &err), 0);
		char *names = joined(&hl), *compact = hostlist_compact(&hl);
		assert_string_equal(names, rows[i].names);
		assert_string_equal(compact, rows[i].compact);
		assert_int_equal(hostlist_count(rows[i].text, &err), (long)hl.count);
		char *first = hostlist_first(rows[i].text);
		assert_string_equal(first ? first : "", hl.count ? hl.name[0] : "");
		free(first);
		free(names);
		free(compact);
		hostlist_fini(&hl);
	}
}

static void malformed_is_refused_with_its_position(void **state) /* cases 17, 23 */
{
	static const struct { const char *text; int pos; } rows[] = {
		{ "node[01", 8 }, { "node01]", 7 }, { "node[[01]]", 6 }, { "node[]", 6 }, { "node[01,]", 9 }, { "node[,01]", 6 }, { "node[01,,02]", 9 },
		{ "n[3-1]", 3 }, { "n[a]", 3 }, { "n[1-2-3]", 6 }, { "n[1-4:2]", 6 }, { "n{1-2}", 2 }, { "n[1-]", 5 }, { "ok,n[1-999999999]", 6 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hostlist hl = HOSTLIST_INIT;
		struct error err = { 0 };
		char want[32];
		hostlist_push(&hl, "before");
		assert_true(hostlist_add(&hl, rows[i].text, &err) < 0);
		snprintf(want, sizeof(want), "position %d", rows[i].pos);
		if (!strstr(err.line, want))
			fail_msg("%s: wanted %s", err.line, want);
		assert_int_equal(hl.count, 1);
		assert_string_equal(hl.name[0], "before");
		hostlist_fini(&hl);
	}
}

static void sorts_naturally(void **state)
{
	struct hostlist hl = HOSTLIST_INIT;
	assert_int_equal(hostlist_add(&hl, "n10,n2,n1,n2,a5", NULL), 0);
	hostlist_uniq(&hl);
	char *s = hostlist_compact(&hl);
	assert_string_equal(s, "a5,n[1-2,10]");
	assert_int_equal(hostlist_find(&hl, "n10"), 3);
	assert_int_equal(hostlist_find(&hl, "n3"), -1);
	free(s);
	hostlist_fini(&hl);
}

static void too_many_names_are_refused(void **state)
{
	struct error err = { 0 };
	assert_true(hostlist_count("n[1-1000]m[1-1000]", &err) < 0);
	assert_int_equal(hostlist_count("n[1-131072]", &err), 131072);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expands_and_folds), cmocka_unit_test(malformed_is_refused_with_its_position),
		cmocka_unit_test(sorts_naturally), cmocka_unit_test(too_many_names_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
