/* commit_test.c - proves that batches come back in order and only when stored; that a failing store keeps them, says so once each way, and
 * everything is there afterwards; that stopping waits for the disk */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "ctld/commit.h"

static struct { unsigned done, last, failed, healed; bool out_of_order, early; struct store *store; } seen;

static void done(struct commit_batch *b, void *arg)
{
	void *data;
	size_t len;
	unsigned number = (unsigned)(uintptr_t)b->user;
	seen.out_of_order |= number != seen.last + 1;
	seen.last = number;
	seen.done++;
	if (b->puts && store_get(seen.store, STORE_JOB, number, &data, &len, NULL))
		seen.early = true;
	else if (b->puts)
		free(data);
	commit_batch_destroy(b);
}

static void changed(bool failing, const char *why, void *arg)
{
	if (failing)
		seen.failed++;
	else
		seen.healed++;
}

static void give(struct commit *c, unsigned number)
{
	struct commit_batch *b = commit_batch_create();
	b->user = (void *)(uintptr_t)number;
	if (number % 3)
		commit_batch_put(b, STORE_JOB, number, "x", 1);
	commit_submit(c, b);
}

static void run(unsigned fail)
{
	uv_loop_t loop;
	memset(&seen, 0, sizeof seen);
	uv_loop_init(&loop);
	seen.store = store_open_memory();
	struct commit *c = commit_start(&loop, seen.store, done, changed, NULL);
	store_memory_fail(seen.store, fail);
	for (unsigned i = 1; i <= 100; i++) {
		give(c, i);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	assert_true(commit_stop(c, 5000));
	assert_int_equal(seen.done, 100);
	assert_false(seen.out_of_order);
	assert_false(seen.early);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	store_close(seen.store);
}

static void test_order(void **state) { run(0); }

static void test_failing(void **state)
{
	run(3);
	assert_int_equal(seen.healed, seen.failed);
}

/* Told to stop while the store will not take it: says that not all is stored, and acknowledges nothing. */
static void test_never_stored(void **state)
{
	uv_loop_t loop;
	memset(&seen, 0, sizeof seen);
	uv_loop_init(&loop);
	seen.store = store_open_memory();
	struct commit *c = commit_start(&loop, seen.store, done, changed, NULL);
	store_memory_fail(seen.store, 1000000);
	give(c, 1);
	while (!commit_is_failing(c))
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_false(commit_stop(c, 300));
	assert_int_equal(seen.done, 0);
	assert_int_equal(seen.failed, 1);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	store_close(seen.store);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_order), cmocka_unit_test(test_failing), cmocka_unit_test(test_never_stored) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
