/* states_test.c - the words squeue, sinfo and scontrol print */
#include "base/testing.h"
#include "model/states.h"

static void job_words(void **state)
{
	bool flag;
	uint32_t v;
	assert_string_equal(job_state_name(1, 0), "RUNNING");
	assert_string_equal(job_state_compact(3, JOBF_COMPLETING), "CG");
	assert_string_equal(job_state_name(1, JOBF_CONFIGURING), "CONFIGURING");
	assert_int_equal(job_state_parse("oom", &flag, &v), 0);
	assert_false(flag);
	assert_int_equal(v, 11);
	assert_int_equal(job_state_parse("completing", &flag, &v), 0);
	assert_true(flag);
	assert_int_equal(v, JOBF_COMPLETING);
	assert_true(job_state_parse("nope", &flag, &v) < 0);
	assert_string_equal(reason_name(REASON_RESOURCES), "Resources");
	assert_string_equal(reason_name(9999), "None");
}

static void node_words(void **state)
{
	static const struct { uint32_t base, flags; const char *brief, *full, *all; } rows[] = {
		{ NODE_IDLE, 0, "idle", "idle", "IDLE" }, { NODE_ALLOCATED, 0, "alloc", "allocated", "ALLOCATED" },
		{ NODE_MIXED, NODEF_DRAIN, "drng", "draining", "MIXED+DRAIN" }, { NODE_IDLE, NODEF_DRAIN, "drain", "drained", "IDLE+DRAIN" },
		{ NODE_IDLE, NODEF_DRAIN | NODEF_COMPLETING, "drng", "draining", "IDLE+DRAIN+COMPLETING" },
		{ NODE_DOWN, NODEF_NOT_RESPONDING, "down*", "down*", "DOWN+NOT_RESPONDING" },
		{ NODE_IDLE, NODEF_NOT_RESPONDING, "idle*", "idle*", "IDLE+NOT_RESPONDING" },
		{ NODE_MIXED, NODEF_PLANNED, "mix-", "mixed-", "MIXED+PLANNED" }, { NODE_IDLE, NODEF_PLANNED, "plnd", "planned", "IDLE+PLANNED" },
		{ NODE_IDLE, NODEF_COMPLETING, "comp", "completing", "IDLE+COMPLETING" },
		{ NODE_ALLOCATED, NODEF_REBOOT_REQUESTED, "alloc@", "allocated@", "ALLOCATED+REBOOT_REQUESTED" },
		{ NODE_IDLE, NODEF_POWERED_DOWN, "idle~", "idle~", "IDLE+POWERED_DOWN" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char buf[128];
		node_state_short(rows[i].base, rows[i].flags, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].brief);
		node_state_long(rows[i].base, rows[i].flags, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].full);
		node_state_full(rows[i].base, rows[i].flags, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(job_words), cmocka_unit_test(node_words) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
