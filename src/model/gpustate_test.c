/* Proves: what slurmd writes of its GPUs is what slurmstepd reads; lines that are not understood do no harm. */
#include "base/testing.h"
#include "model/gpustate.h"

static void round_trip(void **state)
{
	struct gpustate g = { 0 }, back;
	struct str text = STR_INIT;
	(void)state;
	gpustate_add(&g, 3, 123456789012345ull);
	gpustate_add(&g, 0, 0);
	gpustate_add_process(&g, &(struct gpu_process){ 77, 3, 100, 80ull << 30 });
	gpustate_format(&g, &text);
	gpustate_parse(text.data, &back);
	assert_int_equal(back.gpus, 2);
	assert_int_equal(back.gpu[0].minor, 3);
	assert_true(back.gpu[0].mj == 123456789012345ull);
	assert_int_equal(back.processes, 1);
	assert_int_equal(back.process[0].pid, 77);
	assert_int_equal(back.process[0].util, 100);
	assert_true(back.process[0].memory == 80ull << 30);
	gpustate_fini(&g);
	gpustate_fini(&back);
	str_fini(&text);
}

static void strange_lines(void **state)
{
	struct gpustate g;
	(void)state;
	gpustate_parse("gpu\ngpu x y\n\nprocess 1 2\nfan 0 99\nprocess 5 1 20 4096\ngpu 1 7", &g);
	assert_int_equal(g.gpus, 1);
	assert_int_equal(g.processes, 1);
	assert_int_equal(g.process[0].minor, 1);
	gpustate_fini(&g);
	gpustate_parse("", &g);
	assert_int_equal(g.gpus + g.processes, 0);
	gpustate_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(round_trip), cmocka_unit_test(strange_lines) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
