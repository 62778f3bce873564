/* job_item_test.c - proves that the hand-written job list is what the generated codec reads back, for all sizes of lengths */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ctld/job_item.h"

static void test_round_trip(void **state)
{
	struct item_buf b = { 0 };
	static const size_t sizes[] = { 0, 1, 127, 128, 300, 16383, 16384, 70000 };
	enum { N = sizeof sizes / sizeof *sizes };
	char *text = xmalloc(3000);
	memset(text, 'n', 2999);
	text[2999] = 0;
	for (size_t i = 0; i < N; i++) {
		uint8_t *rec = xmalloc(sizes[i] + 1);
		Pb__JobVolatile v = PB__JOB_VOLATILE__INIT;
		memset(rec, (int)i + 1, sizes[i]);
		v.has_reason = true;
		v.reason = (uint32_t)i;
		v.has_priority = i % 2;
		v.priority = 4294967295u;
		v.has_est_start = i % 3 == 0;
		v.est_start = 1796000000u + i;
		v.sched_nodes = i == 4 ? text : NULL;
		v.reason_desc = i == 5 ? (char *)"" : NULL;
		v.scheduler = (char *)"Main";
		item_add(&b, rec, sizes[i], &v);
		free(rec);
	}
	item_end(&b, 1796000000u, ESLURM_INVALID_JOB_ID);
	Pb__JobListRsp *r = pb__job_list_rsp__unpack(NULL, b.len, b.data);
	assert_non_null(r);
	assert_int_equal(r->n_job, N);
	assert_int_equal(r->now, 1796000000u);
	assert_int_equal(r->code, ESLURM_INVALID_JOB_ID);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(r->job[i]->record.len, sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(r->job[i]->record.data[k], i + 1);
		assert_int_equal(r->job[i]->vol->reason, i);
		assert_int_equal(r->job[i]->vol->has_priority, i % 2);
		assert_int_equal(r->job[i]->vol->priority, i % 2 ? 4294967295u : 0);
		assert_string_equal(r->job[i]->vol->scheduler, "Main");
	}
	assert_int_equal(strlen(r->job[4]->vol->sched_nodes), 2999);
	assert_string_equal(r->job[5]->vol->reason_desc, "");
	pb__job_list_rsp__free_unpacked(r, NULL);
	free(b.data);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
