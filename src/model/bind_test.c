/* bind_test.c - --cpu-bind and --mem-bind as 26.05.5 read them */
#include <errno.h>
#include <stdlib.h>

#include "base/testing.h"
#include "model/bind.h"

static void accepted(void **state)
{
	static const struct { const char *text; bool memory; const char *kind, *list; bool verbose; } rows[] = {
		{ "none", 0, "none", "", 0 }, { "no", 0, "none", "", 0 }, { "v", 0, "", "", 1 }, { "verbose,rank", 0, "", "", 1 },
		{ "sockets,verbose", 0, "sockets", "", 1 }, { "quiet,map_cpu:0,1", 0, "map_cpu", "0,1", 0 }, { "mask_cpu:3,0xc*2", 0, "mask_cpu", "3,c,c", 0 },
		{ "MAP_CPU:0*3,7", 0, "map_cpu", "0,0,0,7", 0 }, { "rank_ldom", 0, "rank_ldom", "", 0 }, { "v,mask_ldom=0x1,2", 0, "mask_ldom", "1,2", 1 },
		{ "rank,prefer", 1, "rank", "", 0 }, { "v,map_mem:0,1", 1, "map_mem", "0,1", 1 }, { "local", 1, "local", "", 0 }, { "", 0, "", "", 0 },
		{ "v,one_thread", 0, "", "", 1 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct bind b;
		assert_int_equal(bind_parse(rows[i].text, rows[i].memory, &b), 0);
		char *list = bind_list(&b);
		assert_string_equal(bind_kind_name(b.kind, rows[i].memory), rows[i].kind);
		assert_string_equal(list ? list : "", rows[i].list);
		assert_int_equal(b.verbose, rows[i].verbose);
		free(list);
		bind_fini(&b);
	}
}

static void refused(void **state)
{
	static const char *const rows[] = { "map_cpu", "map_cpu:", "map_cpu:0x1", "mask_cpu:g", "map_cpu:0*0", "map_cpu:0*99999999999999999999", "bad", "none:1", "v:1",
		"map_cpu:1,,2", "mask_cpu:0xf*" };
	static const char *const of_memory[] = { "sort", "v,nosort,local", "one_thread", "map_cpu:1" };
	struct bind b;
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(bind_parse(rows[i], false, &b), -EINVAL);
		bind_fini(&b);
	}
	for (size_t i = 0; i < sizeof of_memory / sizeof *of_memory; i++) {
		assert_int_equal(bind_parse(of_memory[i], true, &b), -EINVAL);
		bind_fini(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(accepted), cmocka_unit_test(refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
