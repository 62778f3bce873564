/* acct_test.c - proves what goes when slurmdbd is away for so long that MaxDBDMsgs is reached: steps first, then what a later record of the same job
 * replaces, and only then the oldest; and that what is left stays in order, in memory as in the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "ctld/acct.h"
#include "ctld/replies.h"
#include "ctld/turn.h"
#include "proto/accounting.pb-c.h"
#include "proto/job.pb-c.h"

/* --- what acct.c asks of others ------------------------------------------------------------------- */
uint64_t ctld_now_ms(void) { return 1; }
Pb__JobRecord *reply_record(struct ctld *d, const struct core_job *j) { return NULL; }
void turn_put(struct ctld *d, enum store_table t, uint64_t key, void *data, size_t len) { free(data); }
void turn_remove(struct ctld *d, enum store_table t, uint64_t key) { }
void ctld_stop(struct ctld *d) { d->stopping = true; }
void turn_after(struct ctld *d, void (*fn)(struct ctld *, void *), void *arg) { }

void turn_remove_lazily(struct ctld *d, enum store_table t, uint64_t key)
{
	struct store_put p = { t, key, NULL, 0, true };
	assert_int_equal(store_commit(d->store, &p, 1, NULL), 0);
}

static void put(struct ctld *d, uint64_t seq, const Pb__DbdEvent *e)
{
	uint8_t data[512];
	struct store_put p = { STORE_DBD_QUEUE, seq, data, pb__dbd_event__pack(e, data), false };
	assert_int_equal(store_commit(d->store, &p, 1, NULL), 0);
}

/* "J5": a record of job 5; "R5": of an attempt of it that is over; "S5": of a step of it. Numbered from 1. */
static void queue(struct ctld *d, const char *text)
{
	uint64_t seq = 1;
	for (const char *at = text; *at; at += strcspn(at, " "), at += *at == ' ') {
		Pb__DbdEvent e = PB__DBD_EVENT__INIT;
		Pb__JobRecord job = PB__JOB_RECORD__INIT;
		Pb__StepRecord step = PB__STEP_RECORD__INIT;
		uint8_t blob[256];
		e.seq = seq;
		job.job_id = step.job_id = (uint32_t)strtoul(at + 1, NULL, 10);
		if (*at == 'S') {
			e.step = &step;
		} else {
			e.has_job = true;
			e.job.len = pb__job_record__pack(&job, blob);
			e.job.data = blob;
			e.has_requeued = e.requeued = *at == 'R';
		}
		put(d, seq++, &e);
	}
}

static int collect(uint64_t key, const void *data, size_t len, void *arg)
{
	Pb__DbdEvent *e = pb__dbd_event__unpack(NULL, len, data);
	Pb__JobRecord *job = e->has_job ? pb__job_record__unpack(NULL, e->job.len, e->job.data) : NULL;
	str_addf(arg, "%s%c%u", ((struct str *)arg)->len ? " " : "", e->step ? 'S' : e->requeued ? 'R' : 'J', e->step ? e->step->job_id : job->job_id);
	if (job)
		pb__job_record__free_unpacked(job, NULL);
	pb__dbd_event__free_unpacked(e, NULL);
	return 0;
}

static void expect(const char *before, size_t max, const char *after)
{
	static struct ctld d;
	struct str left = STR_INIT;
	uv_loop_t loop;
	memset(&d, 0, sizeof d);
	uv_loop_init(&loop);
	d.loop = &loop;
	d.store = store_open_memory();
	queue(&d, before);
	d.acct = acct_create(&d);
	acct_bound(d.acct, max);
	assert_int_equal(store_scan(d.store, STORE_DBD_QUEUE, collect, &left, NULL), 0);
	assert_string_equal(left.data, after);
	size_t n = 1;
	for (const char *c = after; *c; c++)
		n += *c == ' ';
	assert_int_equal(acct_queued(d.acct), n);
	str_fini(&left);
	acct_destroy(d.acct);
	while (uv_run(&loop, UV_RUN_NOWAIT))
		;
	store_close(d.store);
}

static void test_room(void **state) { expect("J1 S1 J1", 3, "J1 S1 J1"); }
static void test_steps_first(void **state) { expect("J1 S1 J2 S2 S1 J1 J2", 6, "J1 J2 J1 J2"); }
/* The newest stays, whatever it is: its number must. */
static void test_newest_stays(void **state) { expect("S1 J1 S1 S1", 3, "J1 S1"); }
static void test_replaced_next(void **state) { expect("J1 J2 J1 J3 R2 J2 J1", 6, "J3 R2 J2 J1"); }
static void test_attempts_stay(void **state) { expect("R1 R1 R1 J1 J1", 4, "R1 R1 R1 J1"); }

/* The oldest, at last; it is kept in the store until the next goes, for its number, and is not sent. */
static void test_oldest_last(void **state)
{
	static struct ctld d;
	uv_loop_t loop;
	uv_loop_init(&loop);
	d.loop = &loop;
	d.store = store_open_memory();
	queue(&d, "J1 J2 J3 J4");
	d.acct = acct_create(&d);
	acct_bound(d.acct, 3);
	assert_int_equal(acct_queued(d.acct), 3);
	acct_bound(d.acct, 2);
	assert_int_equal(acct_queued(d.acct), 2);
	struct str left = STR_INIT;
	assert_int_equal(store_scan(d.store, STORE_DBD_QUEUE, collect, &left, NULL), 0);
	assert_string_equal(left.data, "J2 J3 J4");
	str_fini(&left);
	acct_destroy(d.acct);
	while (uv_run(&loop, UV_RUN_NOWAIT))
		;
	store_close(d.store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room), cmocka_unit_test(test_steps_first), cmocka_unit_test(test_newest_stays), cmocka_unit_test(test_replaced_next),
		cmocka_unit_test(test_attempts_stay), cmocka_unit_test(test_oldest_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
