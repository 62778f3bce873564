/* corebench.c - what the core alone costs: submissions, cancels, ends and starts, memory a pending job
 * Prints "name value unit" lines, in CPU time of this process. Usage: corebench [queue] [flow] [burst] [full] [huge] [restart] [growth]; without words all but the last */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/world.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long rss_kb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

struct bench { struct core *core; struct effects *fx; uint64_t now_ms; uint32_t ended[65536], launched; char at[65536][16]; bool encode, plan_more; uint32_t gpus, cpus; };

static void step(struct bench *b, struct core_event *ev)
{
	size_t len;
	ev->time_ms = b->now_ms;
	effects_reset(b->fx);
	core_step(b->core, ev, b->fx);
	for (size_t i = 0; i < effects_count(b->fx); i++) {
		const struct core_effect *e = effects_at(b->fx, i);
		const struct core_job *j = e->type == FX_PERSIST_JOB && b->encode ? core_job_find(b->core, e->job_id) : NULL;
		if (j)
			(void)core_job_blob(b->core, j, &len);
		b->plan_more = b->plan_more || e->type == FX_PLAN_MORE;
		if (e->type == FX_LAUNCH_BATCH) {
			snprintf(b->at[b->launched % 65536], sizeof b->at[0], "%s", e->nodes);
			b->ended[b->launched++ % 65536] = e->job_id;
		}
	}
}

static void submit(struct bench *b, uint32_t i, const char *name)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	uint8_t key[16] = { 0 }, hash[32] = { 0 };
	struct core_event ev = { .type = EV_SUBMIT, .token = 1, .by = { .uid = 1000, .gid = 1000, .user = "alice", .group = "users" } };
	memcpy(key, &i, sizeof i);
	d.name = (char *)name;
	d.has_num_tasks = d.has_time_limit_min = d.has_batch = true;
	d.num_tasks = 1;
	d.batch = true;
	d.time_limit_min = 10 + i % 4;
	d.work_dir = (char *)"/home/alice/project/run";
	d.command = (char *)"/home/alice/project/run/train.sbatch";
	d.submit_line = (char *)"sbatch --wrap true";
	d.alloc_node = (char *)"login1";
	ev.submit.desc = &d;
	ev.submit.idem_key = key;
	ev.submit.idem_hash = hash;
	step(b, &ev);
}

static void configure(struct bench *b, uint32_t nodes)
{
	struct core_params p = { .cluster = "bench", .first_job_id = 1, .max_job_count = 2000000, .max_array_size = 100001, .min_job_age_sec = 2, .job_requeue = true,
		.select_cores = true, .select_memory = true, .backfill = true, .bf_window_min = 7 * 1440, .bf_resolution_sec = 60, .bf_max_job_test = 100000, .def_mem_per_cpu = 100, .node_steps_clean = true, .gres_types = "gpu" };
	Pb__NodeRecord *list = calloc(nodes, sizeof *list), **ptr = calloc(nodes, sizeof *ptr);
	char *name = calloc(nodes, 16);
	Pb__PartitionRecord part = PB__PARTITION_RECORD__INIT, *parts = &part;
	Pb__NodeGres g = PB__NODE_GRES__INIT, *gres = &g;
	g.name = (char *)"gpu";
	g.count = b->gpus;
	g.files = (char *)"/dev/x";
	for (uint32_t i = 0; i < nodes; i++) {
		pb__node_record__init(&list[i]);
		snprintf(name + 16 * i, 16, "n%u", i);
		list[i].name = name + 16 * i;
		list[i].has_cpus = list[i].has_real_memory = true;
		list[i].cpus = b->cpus ? b->cpus : 8;
		list[i].real_memory = 16000;
		if (b->gpus) {
			list[i].gres_list = &gres;
			list[i].n_gres_list = 1;
		}
		ptr[i] = &list[i];
	}
	part.name = (char *)"main";
	part.nodes = (char *)"ALL";
	part.has_is_default = part.is_default = true;
	struct core_event ev = { .type = EV_CONFIG };
	ev.config.params = &p;
	ev.config.node = ptr;
	ev.config.nodes = nodes;
	ev.config.part = &parts;
	ev.config.parts = 1;
	step(b, &ev);
	free(list);
	free(ptr);
	free(name);
}

static void register_nodes(struct bench *b)
{
	for (uint32_t i = 0; i < core_node_count(b->core); i++) {
		struct core_event ev = { .type = EV_NODE_REGISTER };
		Pb__NodeRegisterReq q = PB__NODE_REGISTER_REQ__INIT;
		Pb__NodeRecord r = PB__NODE_RECORD__INIT;
		r.name = (char *)core_node_name(b->core, i);
		q.node = &r;
		ev.node_register = &q;
		step(b, &ev);
	}
}

/* The i-th job that was launched ends, as its node reports. */
static void end_job(struct bench *b, uint32_t i)
{
	struct core_event ev = { .type = EV_NODE_EVENT };
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	e.kind = PB__NODE_EVENT__KIND__BATCH_DONE;
	e.has_job_id = e.has_status = e.has_clean = e.clean = true;
	e.job_id = b->ended[i % 65536];
	ev.node_event.node = b->at[i % 65536];
	ev.node_event.event = &e;
	step(b, &ev);
}

static struct bench *bench_new(uint32_t nodes)
{
	struct bench *b = calloc(1, sizeof *b);
	b->core = core_create();
	b->fx = effects_create();
	b->now_ms = 1000000000000ull;
	b->encode = true;
	configure(b, nodes);
	return b;
}

static void bench_free(struct bench *b)
{
	core_destroy(b->core);
	effects_destroy(b->fx);
	free(b);
}

static void queue_bench(uint32_t jobs)
{
	struct bench *b = bench_new(100); /* not registered: everything waits */
	malloc_trim(0);
	long kb = rss_kb();
	double t = now();
	for (uint32_t i = 0; i < jobs; i++)
		submit(b, i, i % 5 ? "wrap" : "other");
	t = now() - t;
	malloc_trim(0);
	printf("core_submit %.2f us\ncore_pending_job %.0f bytes\n", t / jobs * 1e6, (double)(rss_kb() - kb) * 1024 / jobs);
	Pb__KillReq q = PB__KILL_REQ__INIT;
	struct core_event ev = { .type = EV_KILL, .token = 2, .by = { .uid = 0, .oper = true, .admin = true, .user = "root", .group = "root" } };
	q.name = (char *)"other";
	ev.kill = &q;
	t = now();
	step(b, &ev);
	printf("core_cancel_by_name %.1f ms for %u jobs\n", (now() - t) * 1e3, jobs / 5);
	q.name = (char *)"wrap";
	step(b, &ev);
	b->now_ms += 3700000;
	struct core_event tick = { .type = EV_TIMER };
	step(b, &tick);
	effects_reset(b->fx);
	malloc_trim(0);
	printf("core_left_after_all %ld KiB\n", rss_kb() - kb);
	bench_free(b);
}

/* Seconds to submit, start and end jobs of one node each; *ret_submit: to submit them. */
static double flow(uint32_t nodes, uint32_t jobs, double *ret_submit)
{
	struct bench *b = bench_new(nodes);
	b->encode = true; /* each record once for the store, as slurmctld does */
	register_nodes(b);
	double t = now();
	for (uint32_t i = 0; i < jobs; i++)
		submit(b, i, "flow");
	*ret_submit = now() - t;
	for (uint32_t i = 0; i < jobs; i++) {
		b->now_ms += 1;
		end_job(b, i);
	}
	t = now() - t;
	bench_free(b);
	return t;
}

static double flow_time(uint32_t nodes, uint32_t jobs)
{
	double submit_part;
	return flow(nodes, jobs, &submit_part);
}

static void flow_bench(uint32_t nodes, uint32_t jobs)
{
	double s, t = flow(nodes, jobs, &s);
	printf("core_flow_%u_nodes %.2f us a submission, %.2f us an end and a start, %.0f jobs/s\n", nodes, s / jobs * 1e6, (t - s) / jobs * 1e6, jobs / t);
}

static void burst_bench(uint32_t nodes, uint32_t jobs)
{
	struct bench *b = bench_new(nodes);
	for (uint32_t i = 0; i < jobs; i++)
		submit(b, i, "burst");
	double t = now();
	register_nodes(b);
	printf("core_burst_%u_jobs_%u_nodes %.0f ms\n", jobs, nodes, (now() - t) * 1e3);
	bench_free(b);
}

/* --- a full machine with GPUs and a long queue ------------------------------------------------- */

static uint32_t mixed(struct bench *b, uint32_t i, uint32_t nodes, uint32_t gpus, uint32_t minutes)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	char gres[32];
	struct core_event ev = { .type = EV_SUBMIT, .token = 1, .by = { .uid = 1000 + i % 50, .gid = 1000, .user = "alice", .group = "users" } };
	d.name = (char *)"train";
	d.has_min_nodes = d.has_cpus_per_task = d.has_time_limit_min = d.has_batch = true;
	d.min_nodes = nodes;
	d.cpus_per_task = 8 * gpus;
	d.batch = true;
	d.time_limit_min = minutes;
	snprintf(gres, sizeof gres, "gres/gpu:%u", gpus);
	d.tres_per_node = gres;
	ev.submit.desc = &d;
	step(b, &ev);
	const struct core_effect *e = effects_at(b->fx, 0);
	for (size_t k = 0; k < effects_count(b->fx); k++)
		if ((e = effects_at(b->fx, k))->type == FX_REPLY)
			return ((const Pb__SubmitRsp *)e->msg)->job_id;
	return 0;
}

/* Whole nodes. */
static void whole(struct bench *b, uint32_t i, uint32_t nodes, uint32_t minutes)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	struct core_event ev = { .type = EV_SUBMIT, .token = 1, .by = { .uid = 1000 + i % 50, .gid = 1000, .user = "alice", .group = "users" } };
	d.name = (char *)"whole";
	d.has_min_nodes = d.has_time_limit_min = d.has_batch = d.batch = true;
	d.min_nodes = nodes;
	d.time_limit_min = minutes;
	d.exclusive = (char *)"node";
	ev.submit.desc = &d;
	step(b, &ev);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

enum { SIZES = 12 };
static const uint32_t size[SIZES] = { 1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256 }, hours[SIZES] = { 1, 2, 4, 8, 12, 24, 48, 72, 96, 120, 144, 168 };

static uint32_t draw(uint64_t *r, uint32_t below)
{
	*r ^= *r << 13;
	*r ^= *r >> 7;
	*r ^= *r << 17;
	return (uint32_t)(*r >> 20) % below;
}

/* CPU time of planning until nothing is left; the longest slice in *ret_slice. */
static double plan_all(struct bench *b, double *ret_slice)
{
	double sum = 0;
	*ret_slice = 0;
	while (b->plan_more) {
		struct core_event ev = { .type = EV_PLAN, .plan = { 64 } }; /* as slurmctld gives */
		double t = now();
		b->plan_more = false;
		step(b, &ev);
		t = now() - t;
		sum += t;
		*ret_slice = t > *ret_slice ? t : *ret_slice;
	}
	return sum;
}

/* One event a node, as its epilog ends. */
static void end_wide(struct bench *b, uint32_t id, uint32_t first, uint32_t nodes)
{
	for (uint32_t i = 0; i < nodes; i++) {
		struct core_event ev = { .type = EV_NODE_EVENT };
		Pb__NodeEvent e = PB__NODE_EVENT__INIT;
		e.kind = i ? PB__NODE_EVENT__KIND__EPILOG_DONE : PB__NODE_EVENT__KIND__BATCH_DONE;
		e.has_job_id = e.has_clean = true;
		e.job_id = id;
		e.clean = true;
		ev.node_event.node = core_node_name(b->core, first + i);
		ev.node_event.event = &e;
		step(b, &ev);
	}
}

static int64_t counter(const struct bench *b, const char *want)
{
	const char *name;
	int64_t v;
	for (size_t i = 0; core_counter(b->core, i, &name, &v); i++)
		if (!strcmp(name, want))
			return v;
	return 0;
}

/* A machine with a job on every node: one of 256 nodes (`wide`), whole nodes, and nodes shared by small jobs. */
static struct bench *full_machine(uint32_t nodes, uint64_t *r, uint32_t *wide)
{
	struct bench *b = calloc(1, sizeof *b);
	uint32_t filled = 256;
	b->core = core_create();
	b->fx = effects_create();
	b->now_ms = 1000000000000ull;
	b->gpus = 8;
	b->cpus = 64;
	configure(b, nodes);
	register_nodes(b);
	*wide = mixed(b, 0, 256, 8, 600);
	for (uint32_t i = 1; filled < nodes; i++) {
		uint32_t n = size[draw(r, SIZES)];
		if (n == 1) {
			for (uint32_t k = 0; k < 8; k += 2)
				mixed(b, i, 1, 2, 60 * hours[draw(r, SIZES)] - draw(r, 59));
			filled++;
			continue;
		}
		n = n > nodes - filled ? nodes - filled : n;
		mixed(b, i, n, 8, 60 * hours[draw(r, SIZES)] - draw(r, 59));
		filled += n;
	}
	return b;
}

/* In seconds; end: the ends on 256 nodes with their quick passes, after: the plan anew. */
struct full { double submit, plan, slice, quick, end, after, after_slice; int64_t promises; uint32_t started; };

static struct full full_run(uint32_t nodes, uint32_t jobs)
{
	struct full f = { 0 };
	uint64_t r = 12345;
	uint32_t wide;
	struct bench *b = full_machine(nodes, &r, &wide);
	double t = now();
	for (uint32_t i = 0; i < jobs; i++) {
		uint32_t n = size[draw(&r, SIZES)];
		mixed(b, i, n, n > 1 ? 8 : 1u << draw(&r, 4), 60 * hours[draw(&r, SIZES)]);
	}
	f.submit = now() - t;
	f.plan = plan_all(b, &f.slice);
	f.promises = counter(b, "promises_held");
	t = now();
	for (uint32_t i = 0; i < 100; i++)
		mixed(b, i, 4, 8, 60);
	f.quick = (now() - t) / 100;
	uint32_t before = b->launched;
	t = now();
	end_wide(b, wide, 0, 256);
	f.end = now() - t;
	f.after = plan_all(b, &f.after_slice);
	f.started = b->launched - before;
	bench_free(b);
	return f;
}

static void full_bench(uint32_t nodes, uint32_t jobs)
{
	struct full f = full_run(nodes, jobs);
	printf("core_full_submit %.1f us a job\n", f.submit / jobs * 1e6);
	printf("core_full_plan %.2f s for %lld planned starts, longest slice %.1f ms\n", f.plan, (long long)f.promises, f.slice * 1e3);
	printf("core_full_quick_pass %.2f ms when nothing changed\n", f.quick * 1e3);
	printf("core_full_after_256_nodes %.1f ms for the ends and quick passes, %u started, then %.2f s of plan, longest slice %.1f ms\n", f.end * 1e3, f.started, f.after, f.after_slice * 1e3);
}

/* --- the largest system -------------------------------------------------------------------------- */

/* As test/bench/huge.sh has it: 512 shapes of whole nodes, submitted while the plan goes on: a slice after each submission, as slurmctld does when both want to go.
 * One node is left for short jobs that come and go, so that the plan is made anew again and again. */
static void huge_bench(uint32_t nodes, uint32_t jobs)
{
	struct bench *b = calloc(1, sizeof *b);
	double *took = calloc(jobs, sizeof *took), slice = 0, end = 0, sum = 0;
	b->core = core_create();
	b->fx = effects_create();
	b->now_ms = 1000000000000ull;
	configure(b, nodes);
	register_nodes(b);
	for (uint32_t i = 0; i < 100; i++)
		whole(b, i, (nodes - 1) / 100 + (i < (nodes - 1) % 100), 60 + 7 * i);
	for (uint32_t i = 0; i < jobs; i++) {
		double t = now();
		whole(b, i, 1 + i % 64, 60 + i % 8 * 60);
		took[i] = now() - t;
		sum += took[i];
		b->now_ms += 5;
		struct core_event tick = { .type = EV_TIMER };
		step(b, &tick);
		if (i % 50 == 49 && b->launched > 100) {
			t = now();
			end_job(b, b->launched - 1);
			t = now() - t;
			end = t > end ? t : end;
		}
		if (!b->plan_more)
			continue;
		struct core_event ev = { .type = EV_PLAN, .plan = { 64 } };
		b->plan_more = false;
		t = now();
		step(b, &ev);
		t = now() - t;
		slice = t > slice ? t : slice;
	}
	qsort(took, jobs, sizeof *took, by_size);
	printf("core_huge_submit %.1f us a job on %u nodes, p99 %.2f ms, longest %.1f ms\n", sum / jobs * 1e6, nodes, took[jobs - 1 - jobs / 100] * 1e3, took[jobs - 1] * 1e3);
	printf("core_huge_slice %.1f ms the longest of the plan meanwhile, %.1f ms the longest end of a job; %lld planned starts\n", slice * 1e3, end * 1e3, (long long)counter(b, "promises_held"));
	bench_free(b);
	free(took);
}

/* --- a restart ---------------------------------------------------------------------------------- */

/* Pending jobs, read again one by one as slurmctld reads them from its store; returns seconds. */
static double restart_time(uint32_t nodes, uint32_t jobs)
{
	struct bench *b = bench_new(nodes), *again;
	uint8_t **data = calloc(jobs, sizeof *data);
	size_t *len = calloc(jobs, sizeof *len), n = 0;
	for (uint32_t i = 0; i < jobs; i++)
		submit(b, i, "again");
	const struct core_job *j;
	for (uint64_t cur = 0; n < jobs && (j = core_job_next(b->core, &cur)); n++) {
		const uint8_t *blob = core_job_blob(b->core, j, &len[n]);
		data[n] = memcpy(malloc(len[n]), blob, len[n]);
	}
	bench_free(b);
	again = bench_new(nodes);
	double t = now();
	for (size_t i = 0; i < n; i++) {
		struct core_event ev = { .type = EV_RESTORE_JOB };
		ev.restore.data = data[i];
		ev.restore.len = len[i];
		step(again, &ev);
		free(data[i]);
	}
	struct core_event ev = { .type = EV_RESTORE_DONE };
	ev.restored.next_job_id = jobs + 2;
	step(again, &ev);
	t = now() - t;
	bench_free(again);
	free(data);
	free(len);
	return t;
}

/* --- growth --------------------------------------------------------------------------------------- */

/* x10 in jobs, x10 in nodes; the exponent of each says how it grows. */
static void growth_row(const char *name, uint32_t nodes, uint32_t jobs, double base, double more_jobs, double more_nodes)
{
	printf("growth_%s %.2f ms with %u jobs on %u nodes; jobs x 10: %.2f ms (jobs^%.2f); nodes x 10: %.2f ms (nodes^%.2f)\n", name, base * 1e3, jobs, nodes, more_jobs * 1e3, log10(more_jobs / base),
	       more_nodes * 1e3, log10(more_nodes / base));
}

static void growth(const char *name, double (*time_of)(uint32_t nodes, uint32_t jobs), uint32_t nodes, uint32_t jobs)
{
	growth_row(name, nodes, jobs, time_of(nodes, jobs), time_of(nodes, jobs * 10), time_of(nodes * 10, jobs));
}

static void growth_full(uint32_t nodes, uint32_t jobs)
{
	struct full f = full_run(nodes, jobs), j = full_run(nodes, jobs * 10), n = full_run(nodes * 10, jobs);
	growth_row("submit_when_full", nodes, jobs, f.submit, j.submit, n.submit);
	growth_row("plan", nodes, jobs, f.plan, j.plan, n.plan);
	growth_row("slice", nodes, jobs, f.slice, j.slice, n.slice);
	growth_row("quick_pass", nodes, jobs, f.quick, j.quick, n.quick);
	growth_row("end_of_256_nodes", nodes, jobs, f.end, j.end, n.end);
}

static bool wanted(int argc, char **argv, const char *name)
{
	bool any = argc < 2 && strcmp(name, "growth") != 0;
	for (int i = 1; i < argc; i++)
		any = any || !strcmp(argv[i], name);
	return any;
}

int main(int argc, char **argv)
{
	if (wanted(argc, argv, "queue"))
		queue_bench(50000);
	if (wanted(argc, argv, "flow")) {
		flow_bench(100, 20000);
		flow_bench(1000, 20000);
	}
	if (wanted(argc, argv, "burst")) {
		burst_bench(1000, 10000);
		burst_bench(5000, 10000);
	}
	if (wanted(argc, argv, "full"))
		full_bench(10000, 10000);
	if (wanted(argc, argv, "huge"))
		huge_bench(100000, 20000);
	if (wanted(argc, argv, "restart"))
		printf("core_restart %.2f s for 1000000 pending jobs\n", restart_time(1000, 1000000));
	if (wanted(argc, argv, "growth")) {
		growth("flow", flow_time, 100, 2000);
		growth("restart", restart_time, 100, 10000);
		growth_full(10000, 150); /* all of 1,500 have room in the window */
	}
	return 0;
}
