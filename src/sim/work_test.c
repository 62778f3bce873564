/* work_test.c - what the scheduler's rules promise of its cost, counted in placements, promises and looks at nodes, not in time
 *
 * A hundred thousand pending jobs in 20 arrays of one shape each cost as 20 jobs: when they come, when they are planned, when a job ends and everything is looked at
 * again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/world.h"

enum { NODES = 64, SHAPES = 20 };
struct work { int64_t tries, promises, looks; };

static int64_t counter(const struct world *w, const char *want)
{
	const char *name;
	int64_t v;
	for (size_t i = 0; core_counter(w->core, i, &name, &v); i++)
		if (!strcmp(name, want))
			return v;
	fail_msg("no counter %s", want);
	return 0;
}

static struct work work_now(const struct world *w)
{
	return (struct work){ counter(w, "placements_tried"), counter(w, "promises_made"), counter(w, "nodes_looked_at") };
}

static struct work work_since(const struct world *w, struct work t)
{
	struct work n = work_now(w);
	return (struct work){ n.tries - t.tries, n.promises - t.promises, n.looks - t.looks };
}

static uint32_t submit(struct world *w, const char *array, uint32_t nodes, uint32_t minutes)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	struct core_event ev = world_event(w, EV_SUBMIT, 1000);
	d.name = d.work_dir = (char *)"/tmp";
	d.has_min_nodes = d.has_time_limit_min = d.has_batch = d.batch = true;
	d.min_nodes = nodes;
	d.time_limit_min = minutes;
	d.exclusive = (char *)"node";
	d.array = (char *)array;
	ev.submit.desc = &d;
	world_step(w, &ev);
	const Pb__SubmitRsp *r = (const Pb__SubmitRsp *)world_answer(w, ev.token);
	assert_non_null(r);
	assert_int_equal(r->code, 0);
	return r->job_id;
}

static void pending_is(struct world *w, int64_t want)
{
	int64_t pending, running;
	core_job_counts(w->core, &pending, &running);
	assert_int_equal(pending, want);
}

/* So many shapes, each `array` or one job, on a full machine: what they cost when they come, and when one node is free again, which is too little for any of them. */
static void play(const char *array, uint32_t shapes, int64_t pending, struct work *ret_come, struct work *ret_end)
{
	struct world w;
	world_init(&w);
	w.params.max_array_size = 5001;
	w.params.max_job_count = 200000;
	for (uint32_t i = 0; i < NODES; i++) {
		char name[16];
		Pb__NodeRecord r = PB__NODE_RECORD__INIT;
		snprintf(name, sizeof name, "n%u", i);
		r.name = name;
		r.has_cpus = r.has_real_memory = true;
		r.cpus = 8;
		r.real_memory = 16000;
		world_add_node(&w, &r);
	}
	Pb__PartitionRecord p = PB__PARTITION_RECORD__INIT;
	p.name = (char *)"main";
	p.nodes = (char *)"ALL";
	p.has_is_default = p.is_default = true;
	world_add_part(&w, &p);
	world_start(&w);
	(void)submit(&w, NULL, NODES - 1, 600);
	uint32_t one = submit(&w, NULL, 1, 600);
	pending_is(&w, 0);
	struct work start = work_now(&w);
	for (uint32_t i = 0; i < shapes; i++)
		(void)submit(&w, array, 2 + i, 60 + i);
	world_advance(&w, w.now_ms + 60000);
	*ret_come = work_since(&w, start);
	pending_is(&w, pending);
	start = work_now(&w);
	world_batch_done(&w, one, 0);
	world_advance(&w, w.now_ms + 60000);
	*ret_end = work_since(&w, start);
	pending_is(&w, pending);
	world_fini(&w);
}

static void no_more(struct work a, struct work b)
{
	assert_true(a.tries <= b.tries);
	assert_true(a.promises <= b.promises);
	assert_true(a.looks <= b.looks);
}

static void test_arrays_cost_as_jobs(void **state)
{
	struct work job_come, job_end, array_come, array_end, twice_come, twice_end;
	play(NULL, SHAPES, SHAPES, &job_come, &job_end);
	play("0-4999", SHAPES, SHAPES * 5000, &array_come, &array_end);
	play(NULL, 2 * SHAPES, 2 * SHAPES, &twice_come, &twice_end);
	assert_true(job_come.promises >= SHAPES && job_end.tries >= SHAPES); /* something was counted */
	no_more(array_come, job_come);
	no_more(array_end, job_end);
	assert_true(twice_come.promises > job_come.promises && twice_end.tries > job_end.tries && twice_end.looks > job_end.looks); /* and it grows with what matters */
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_arrays_cost_as_jobs) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
