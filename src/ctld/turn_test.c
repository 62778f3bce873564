/* turn_test.c - proves what waits for the disk and what does not: a submission's answer and launch leave after its record is stored, in order; a
 * step's answer leaves at once unless it changed a record; a call that changes nothing still waits for what it may have seen; while the store fails
 * nothing leaves and changes are refused; a record changed many times in a turn is stored once, as it is at the end. The core is a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "ctld/commit.h"
#include "ctld/turn.h"

/* --- a core that does as it is told ------------------------------------------------------------ */
static struct core_effect script[16];
static size_t script_n;
static char blob[32];                   /* of job 7; empty: there is no such job */
static struct str out;                  /* what left, in order */
static Pb__Result done_msg = PB__RESULT__INIT;

struct effects *effects_create(void) { return NULL; }
void effects_reset(struct effects *fx) { script_n = 0; }
void effects_destroy(struct effects *fx) { }
size_t effects_count(const struct effects *fx) { return script_n; }
const struct core_effect *effects_at(const struct effects *fx, size_t i) { return &script[i]; }
void core_passes(const struct core *c, struct core_passes *quick, struct core_passes *plan) { *quick = *plan = (struct core_passes){ 0 }; }
void core_step(struct core *c, const struct core_event *ev, struct effects *fx) { }
const struct core_job *core_job_find(const struct core *c, uint32_t id) { return blob[0] ? (const void *)blob : NULL; }
const uint8_t *core_job_blob(const struct core *c, const struct core_job *j, size_t *len) { *len = strlen(blob); return (const uint8_t *)blob; }
Pb__NodeRecord *core_node_record(const struct core *c, uint32_t i) { return NULL; }
Pb__ReservationRecord *core_resv_by_id(const struct core *c, uint32_t id) { return NULL; }

/* --- the rest of the daemon ------------------------------------------------------------------- */
static void left(struct ctld *d, void *what) { str_add_sep(&out, " ", what); }
void agent_launch(struct ctld *d, const struct core_effect *e);
void agent_tell(struct ctld *d, const struct core_effect *e);
void agent_prolog(struct ctld *d, const struct core_effect *e);
void acct_add(struct ctld *d, const struct core_effect *e);
void mail_add(struct ctld *d, const struct core_effect *e);
void site_run(struct ctld *d, const struct core_effect *e);
void trace_turn(struct ctld *d, const struct core_event *ev, const struct effects *fx, bool planned);
void crontab_ended(struct ctld *d, void *arg);
void audit_allocated(struct ctld *d, uint32_t job_id);
void audit_ended(struct ctld *d, uint32_t job_id);
void waiters_allocated(struct ctld *d, void *id);
void waiters_ended(struct ctld *d, void *id);
void scripts_forget(struct ctld *d, uint32_t id);
void reads_core_changed(struct reads *r);
void agent_launch(struct ctld *d, const struct core_effect *e) { turn_after(d, left, (void *)"launch"); }
void agent_tell(struct ctld *d, const struct core_effect *e) { turn_after(d, left, (void *)"tell"); }
void agent_prolog(struct ctld *d, const struct core_effect *e) { agent_tell(d, e); }
void acct_add(struct ctld *d, const struct core_effect *e) { }
void audit_allocated(struct ctld *d, uint32_t job_id) { }
void audit_ended(struct ctld *d, uint32_t job_id) { }
void mail_add(struct ctld *d, const struct core_effect *e) { }
void site_run(struct ctld *d, const struct core_effect *e) { (void)d, (void)e; }
void trace_turn(struct ctld *d, const struct core_event *ev, const struct effects *fx, bool planned) { }
void crontab_ended(struct ctld *d, void *arg) { }
void waiters_allocated(struct ctld *d, void *id) { left(d, (void *)"allocated"); }
void waiters_ended(struct ctld *d, void *id) { left(d, (void *)"ended"); }
void scripts_forget(struct ctld *d, uint32_t id) { turn_remove(d, STORE_SCRIPT, id); }
void reads_core_changed(struct reads *r) { }
void wire_server_pause(struct wire_server *s, bool pause) { }
void wire_reply_pieces(struct wire_req *r, const struct wire_piece *p, size_t n, void (*release)(void *), void *arg)
{
	left(NULL, r);                  /* the request is its name here */
	release(arg);
}

static void finish(struct ctld *d, struct call *c, const ProtobufCMessage *msg) { turn_reply(d, c->req, msg); }

static void effect(enum core_effect_type type, uint64_t token)
{
	script[script_n++] = (struct core_effect){ .type = type, .job_id = 7, .token = token, .msg = &done_msg.base };
}

static void step(struct ctld *d, enum core_event_type type)
{
	struct core_event ev = { .type = type };
	turn_step(d, &ev);
}

static void nothing(uv_timer_t *h) { }

static struct ctld *setup(void)
{
	uv_timer_t *alive = xmalloc(sizeof *alive); /* a loop with nothing to wait for would not look */
	static struct ctld d;
	memset(&d, 0, sizeof d);
	d.loop = xmalloc(sizeof *d.loop);
	uv_loop_init(d.loop);
	uv_timer_init(d.loop, alive);
	uv_timer_start(alive, nothing, 1000, 1000);
	d.store = store_open_memory();
	d.turns = turns_create(&d);
	str_fini(&out);
	out = STR_INIT;
	strcpy(blob, "one");
	return &d;
}

/* The loop, until all is on disk. */
static void settle(struct ctld *d)
{
	while (commit_in_flight(d->commit))
		uv_run(d->loop, UV_RUN_NOWAIT);
}

static void expect_stored(struct ctld *d, const char *what)
{
	void *data;
	size_t len;
	int rc = store_get(d->store, STORE_JOB, 7, &data, &len, NULL);
	assert_int_equal(rc == 0, what != NULL);
	if (what) {
		assert_int_equal(len, strlen(what));
		assert_memory_equal(data, what, len);
		free(data);
	}
}

static void submit(struct ctld *d, const char *name)
{
	effect(FX_PERSIST_JOB, 0);
	effect(FX_REPLY, call_create(d, (struct wire_req *)name, finish)->token);
	effect(FX_LAUNCH_BATCH, 0);
	step(d, EV_SUBMIT);
}

static void test_waits(void **state)
{
	struct ctld *d = setup();
	submit(d, "reply");
	assert_string_equal(out.data, "");
	turn_close(d);
	assert_string_equal(out.data, "");
	settle(d);
	expect_stored(d, "one");
	assert_string_equal(out.data, "reply launch");
}

static void test_steps_do_not_wait(void **state)
{
	struct ctld *d = setup();
	submit(d, "reply");
	effect(FX_REPLY, call_create(d, (struct wire_req *)"step", finish)->token);
	step(d, EV_STEP_CREATE);
	assert_string_equal(out.data, "step");
	effect(FX_PERSIST_JOB, 0);      /* a new block of step ids */
	effect(FX_REPLY, call_create(d, (struct wire_req *)"block", finish)->token);
	step(d, EV_STEP_CREATE);
	assert_string_equal(out.data, "step");
	turn_close(d);
	settle(d);
	assert_string_equal(out.data, "step reply launch block");
}

static void test_no_change_still_waits(void **state)
{
	struct ctld *d = setup();
	submit(d, "first");
	turn_close(d);
	effect(FX_REPLY, call_create(d, (struct wire_req *)"again", finish)->token); /* the same key: same answer, not before the first */
	step(d, EV_SUBMIT);
	turn_close(d);
	assert_string_equal(out.data, "");
	settle(d);
	assert_string_equal(out.data, "first launch again");
	effect(FX_REPLY, call_create(d, (struct wire_req *)"idle", finish)->token);
	step(d, EV_JOB_OP);
	turn_close(d);                  /* nothing is on its way: no sync for nothing */
	assert_string_equal(out.data, "first launch again idle");
}

static void test_stored_once_as_it_is(void **state)
{
	struct ctld *d = setup();
	effect(FX_PERSIST_JOB, 0);
	effect(FX_PERSIST_JOB, 0);
	step(d, EV_JOB_UPDATE);
	strcpy(blob, "two");
	effect(FX_PERSIST_JOB, 0);
	step(d, EV_JOB_UPDATE);
	turn_close(d);
	settle(d);
	expect_stored(d, "two");
	effect(FX_PERSIST_JOB, 0);
	effect(FX_ENDED, 0);
	step(d, EV_JOB_DONE);
	blob[0] = 0;
	effect(FX_REMOVE_JOB, 0);
	step(d, EV_TIMER);
	turn_close(d);
	settle(d);
	expect_stored(d, NULL);
	assert_string_equal(out.data, "ended");
}

static void test_failing_store(void **state)
{
	struct ctld *d = setup();
	store_memory_fail(d->store, 2);
	submit(d, "reply");
	turn_close(d);
	while (turn_open_for_changes(d))
		uv_run(d->loop, UV_RUN_NOWAIT);
	assert_string_equal(out.data, "");
	settle(d);
	assert_true(turn_open_for_changes(d));
	expect_stored(d, "one");
	assert_string_equal(out.data, "reply launch");
}

static void test_late_answers(void **state)
{
	struct ctld *d = setup();
	uint64_t token = call_create(d, (struct wire_req *)"gone", finish)->token, other;
	call_forget(d, token);
	other = call_create(d, (struct wire_req *)"other", finish)->token;
	effect(FX_REPLY, token);        /* its place is taken: must not answer the other */
	step(d, EV_SUBMIT);
	turn_close(d);
	assert_string_equal(out.data, "");
	effect(FX_REPLY, other);
	effect(FX_REPLY, other);
	step(d, EV_SUBMIT);
	turn_close(d);
	assert_string_equal(out.data, "other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits), cmocka_unit_test(test_steps_do_not_wait), cmocka_unit_test(test_no_change_still_waits),
		cmocka_unit_test(test_stored_once_as_it_is), cmocka_unit_test(test_failing_store), cmocka_unit_test(test_late_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
