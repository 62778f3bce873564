/* coresim.c - random events against the core, every invariant checked after each (core_check), all from one seed
 *
 * Beside core_check an own simple model watches: every job acknowledged is known until it was ended and forgotten, no id is given twice, a
 * finished job never runs again unless it was requeued; and when the faults stop, everything that can run runs to its end.
 * Usage: coresim SEED [EVENTS]; the seed is printed first. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/states.h"
#include "sim/world.h"

enum { NODES = 12, JOBS_MAX = 4096 };
struct sim { struct world w; uint64_t random; uint32_t id[JOBS_MAX], ids, highest; uint64_t refused, accepted; bool busy; };

#define BUSY_SEEDS 1000       /* from this seed on operators suspend, requeue and hold what runs, one after the other */

static uint32_t draw(struct sim *s, uint32_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint32_t)(s->random >> 20) % below;
}

static const char *const FEATURES[] = { "big|fast", "[big|fast]", "[big*1&fast*1]", "fast*1", "big" };

static bool chance(struct sim *s, uint32_t percent) { return draw(s, 100) < percent; }
static uint32_t any_job(struct sim *s) { return s->ids ? s->id[draw(s, s->ids)] : 1; }
static uint32_t script_sec(struct world *w, uint32_t id)
{
	struct sim *s = w->arg;
	(void)id;
	return 1 + draw(s, 1500);
}

/* What matters inside a node, and how nodes are chosen. */
static void submit_placement(struct sim *s, Pb__JobDesc *d)
{
	d->has_threads_per_core = chance(s, 5);
	d->threads_per_core = 1;
	d->has_ntasks_per_socket = chance(s, 5);
	d->ntasks_per_socket = 1 + draw(s, 3);
	d->has_ntasks_per_core = chance(s, 5);
	d->ntasks_per_core = 1 + draw(s, 2);
	d->distribution = (char *)(chance(s, 10) ? "block:block" : NULL);
	d->gres_flags = (char *)(chance(s, 10) ? "enforce-binding" : NULL);
	d->has_oversubscribe = d->oversubscribe = chance(s, 10);
	d->has_spread_job = d->spread_job = chance(s, 5);
	d->has_max_nodes = d->has_min_nodes && chance(s, 30);
	d->max_nodes = d->min_nodes + draw(s, 4);
	d->has_switches = d->has_switches_wait_sec = chance(s, 10);
	d->switches = 1 + draw(s, 2);
	d->switches_wait_sec = draw(s, 600);
	d->has_segment = chance(s, 10);
	d->segment = 1 + draw(s, 3);
	d->has_consolidate_segments = d->consolidate_segments = d->has_segment && chance(s, 30);
	d->has_spread_segments = d->spread_segments = d->has_segment && chance(s, 30);
	d->has_time_min_min = d->has_time_limit_min && chance(s, 20);
	d->time_min_min = 1 + draw(s, d->time_limit_min);
	if (!d->tres_per_node && !d->tres_per_job && chance(s, 4))
		d->tres_per_task = (char *)"gres/shard:1";
	else if (!d->tres_per_node && !d->tres_per_job && chance(s, 5)) {
		d->tres_per_socket = (char *)"gres/gpu:1";
		d->has_sockets_per_node = true;
		d->sockets_per_node = 1 + draw(s, 2);
	}
}

struct request { Pb__JobDesc d; char dep[64], array[32]; };
static void request_draw(struct sim *s, struct request *q)
{
	pb__job_desc__init(&q->d);
	Pb__JobDesc d = q->d;
	d.name = (char *)(chance(s, 50) ? "x" : "y");
	d.has_batch = true;
	d.batch = chance(s, 85);
	d.has_min_nodes = chance(s, 50);
	d.min_nodes = 1 + draw(s, chance(s, 20) ? NODES : 3);
	d.has_num_tasks = chance(s, 60);
	d.num_tasks = 1 + draw(s, 12);
	d.has_cpus_per_task = chance(s, 30);
	d.cpus_per_task = 1 + draw(s, 4);
	d.has_time_limit_min = chance(s, 80);
	d.time_limit_min = 1 + draw(s, 30);
	d.has_mem_per_node = chance(s, 20);
	d.mem_per_node = draw(s, 8000);
	d.tres_per_node = (char *)(chance(s, 20) ? "gres/gpu:2" : chance(s, 15) ? chance(s, 50) ? "gres/shard:1" : "gres/shard:2" : NULL);
	d.tres_per_job = (char *)(!d.tres_per_node && chance(s, 15) ? "gres/gpu:3" : NULL);
	d.exclusive = (char *)(chance(s, 8) ? "node" : chance(s, 4) ? "user" : chance(s, 4) ? "topo" : NULL);
	d.partition = (char *)(chance(s, 20) ? "short,main" : chance(s, 30) ? "short" : chance(s, 10) ? "shared" : chance(s, 5) ? "own" : NULL);
	submit_placement(s, &d);
	d.has_core_spec = s->w.params.allow_spec && chance(s, 5);
	d.core_spec = draw(s, 3);
	d.req_nodes = (char *)(chance(s, 4) ? "n1,n3" : NULL);
	d.has_no_kill = d.no_kill = chance(s, 40);
	d.licenses = (char *)(chance(s, 6) ? "la:2" : chance(s, 6) ? "la|lb" : chance(s, 3) ? "lb,la" : NULL);
	d.reservation = (char *)(chance(s, 5) ? "r1" : chance(s, 3) ? "r2,r0" : NULL);
	d.features = (char *)(chance(s, 8) ? FEATURES[draw(s, 5)] : NULL);
	d.prefer = (char *)(chance(s, 16) ? FEATURES[draw(s, 5)] : NULL);
	d.has_hold = d.hold = chance(s, 4);
	d.has_requeue = chance(s, 30);
	d.requeue = chance(s, 50);
	d.has_nice = chance(s, 20);
	d.nice = (int)draw(s, 1000);
	if (chance(s, 10)) {
		d.has_begin_time = true;
		d.begin_time = s->w.now_ms / 1000 + draw(s, 900);
	}
	if (chance(s, 15)) {
		static const char *const kind[] = { "after", "afterany", "afterok", "afternotok", "singleton" };
		uint32_t k = draw(s, 5);
		snprintf(q->dep, sizeof q->dep, k == 4 ? "%s" : "%s:%u", kind[k], any_job(s));
		d.dependency = q->dep;
		d.has_kill_on_invalid_dep = true;
		d.kill_on_invalid_dep = chance(s, 50);
	}
	if (d.batch && chance(s, 10)) {
		snprintf(q->array, sizeof q->array, chance(s, 50) ? "0-%u%%2" : "1-%u", 2 + draw(s, 8));
		d.array = q->array;
	}
	q->d = d;
}

static void known(struct sim *s, uint32_t id)
{
	s->highest = id;
	s->accepted++;
	s->id[s->ids < JOBS_MAX ? s->ids++ : draw(s, JOBS_MAX)] = id;
}

static void submit(struct sim *s)
{
	struct request q[3];
	Pb__JobDesc *more[] = { &q[1].d, &q[2].d };
	struct core_event ev = world_event(&s->w, EV_SUBMIT, 1001 + draw(s, 2));
	size_t n = chance(s, 12) ? 1 + draw(s, 2) : 0;
	for (size_t i = 0; i <= n; i++) {
		request_draw(s, &q[i]);
		q[i].d.batch = q[0].d.batch;
		q[i].d.array = n && chance(s, 90) ? NULL : q[i].d.array;
	}
	ev.submit.desc = &q[0].d;
	ev.submit.more = more;
	ev.submit.more_n = n;
	ev.submit.test_only = chance(s, 5);
	world_step(&s->w, &ev);
	const Pb__SubmitRsp *r = (const Pb__SubmitRsp *)world_answer(&s->w, ev.token);
	if (!r || (r->code && r->has_job_id)) {
		printf("a submission has no answer, or two\n");
		abort();
	}
	s->refused += r->code != 0;
	if (r->code || ev.submit.test_only)
		return;
	if (r->job_id <= s->highest) {
		printf("job id %u was given before (highest %u)\n", r->job_id, s->highest);
		abort();
	}
	for (uint32_t id = r->job_id, i = 0; i <= n; i++) /* `r` goes with the next answer */
		known(s, id + i);
}

/* Ids of array tasks are given as they start. */
static void note_highest(struct sim *s)
{
	for (uint64_t cur = s->highest + 1;;) {
		const struct core_job *j = core_job_next(s->w.core, &cur);
		if (!j)
			break;
		if (core_job_id(j) > s->highest)
			s->highest = core_job_id(j);
	}
}

/* One that holds nodes now; 0: none does. */
static uint32_t live_job(struct sim *s)
{
	uint32_t n = 0, id = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->w.core, &cur);
		if (!j)
			return id;
		if (core_job_is_running(j) && draw(s, ++n) == 0)
			id = core_job_id(j);
	}
}

/* Operators who do one thing after the other to what runs: suspended, requeued while it is, held, let go on. */
static void operate_live(struct sim *s)
{
	static const Pb__JobOpReq__Op ops[] = { PB__JOB_OP_REQ__OP__SUSPEND, PB__JOB_OP_REQ__OP__RESUME, PB__JOB_OP_REQ__OP__SUSPEND, PB__JOB_OP_REQ__OP__REQUEUE,
		PB__JOB_OP_REQ__OP__REQUEUE_HOLD, PB__JOB_OP_REQ__OP__HOLD, PB__JOB_OP_REQ__OP__RELEASE };
	uint32_t job = live_job(s), n = 1 + draw(s, 4);
	for (uint32_t i = 0; job && i < n; i++) {
		struct core_event ev = world_event(&s->w, EV_JOB_OP, 0);
		Pb__JobOpReq q = PB__JOB_OP_REQ__INIT;
		char id[40];
		snprintf(id, sizeof id, "%u", job);
		q.op = ops[draw(s, sizeof ops / sizeof ops[0])];
		q.id = id;
		ev.job_op = &q;
		world_step(&s->w, &ev);
		if (chance(s, 30))
			world_advance(&s->w, s->w.now_ms + draw(s, 40000));
	}
}

static void operate(struct sim *s)
{
	if (s->busy && chance(s, 70)) {
		operate_live(s);
		return;
	}
	struct core_event ev = world_event(&s->w, EV_JOB_OP, 0);
	Pb__JobOpReq q = PB__JOB_OP_REQ__INIT;
	static const Pb__JobOpReq__Op ops[] = { PB__JOB_OP_REQ__OP__HOLD, PB__JOB_OP_REQ__OP__RELEASE, PB__JOB_OP_REQ__OP__REQUEUE,
		PB__JOB_OP_REQ__OP__REQUEUE_HOLD, PB__JOB_OP_REQ__OP__SUSPEND, PB__JOB_OP_REQ__OP__RESUME, PB__JOB_OP_REQ__OP__TOP, PB__JOB_OP_REQ__OP__RELEASE };
	char id[40];
	snprintf(id, sizeof id, chance(s, 15) ? "%u_1" : "%u", any_job(s));
	q.op = ops[draw(s, 8)];
	q.id = id;
	ev.job_op = &q;
	world_step(&s->w, &ev);
}

static void cancel(struct sim *s)
{
	struct core_event ev = world_event(&s->w, EV_KILL, 0);
	Pb__KillReq q = PB__KILL_REQ__INIT;
	char id[40], *list = id;
	snprintf(id, sizeof id, chance(s, 20) ? "%u_[1-3]" : "%u", any_job(s));
	q.id = &list;
	q.n_id = 1;
	if (chance(s, 2)) {
		q.n_id = 0;
		q.name = (char *)"x";
	}
	ev.kill = &q;
	world_step(&s->w, &ev);
}

static void update(struct sim *s)
{
	struct core_event ev = world_event(&s->w, EV_JOB_UPDATE, 0);
	static const char *const set[][2] = { { "TimeLimit", "5" }, { "TimeLimit", "+3" }, { "Priority", "77" }, { "Partition", "main" }, { "NumNodes", "2" },
		{ "Nice", "5" }, { "Features", "big" }, { "ArrayTaskThrottle", "1" }, { "ArrayTaskThrottle", "0" }, { "Dependency", "" }, { "Comment", "c" },
		{ "ReqNodeList", "n2" }, { "Gres", "gpu:1" }, { "StartTime", "now" } };
	uint32_t k = draw(s, sizeof set / sizeof set[0]);
	Pb__KeyValue kv = PB__KEY_VALUE__INIT, *list = &kv;
	Pb__JobUpdateReq q = PB__JOB_UPDATE_REQ__INIT;
	char id[40], *ids = id;
	snprintf(id, sizeof id, chance(s, 20) ? "%u_2" : "%u", any_job(s));
	kv.key = (char *)set[k][0];
	kv.value = (char *)set[k][1];
	q.id = &ids;
	q.n_id = 1;
	q.set = &list;
	q.n_set = 1;
	ev.job_update = &q;
	world_step(&s->w, &ev);
}

static void node_word(struct sim *s, const char *state)
{
	struct core_event ev = world_event(&s->w, EV_NODE_UPDATE, 0);
	Pb__NodeUpdateReq q = PB__NODE_UPDATE_REQ__INIT;
	Pb__KeyValue a = PB__KEY_VALUE__INIT, b = PB__KEY_VALUE__INIT, *list[] = { &a, &b };
	a.key = (char *)"State";
	a.value = (char *)state;
	b.key = (char *)"Reason";
	b.value = (char *)"by chance";
	q.nodes = s->w.node[draw(s, NODES)].name;
	q.set = list;
	q.n_set = 2;
	ev.node_update = &q;
	world_step(&s->w, &ev);
}

static void part_word(struct sim *s)
{
	struct core_event ev = world_event(&s->w, EV_PART_UPDATE, 0);
	Pb__PartUpdateReq q = PB__PART_UPDATE_REQ__INIT;
	Pb__KeyValue a = PB__KEY_VALUE__INIT, *list = &a;
	a.key = (char *)(chance(s, 50) ? "State" : "MaxTime");
	a.value = (char *)(a.key[0] == 'S' ? chance(s, 70) ? "UP" : "DOWN" : chance(s, 50) ? "10" : "60");
	q.name = (char *)"short";
	q.set = &list;
	q.n_set = 1;
	ev.part_update = &q;
	world_step(&s->w, &ev);
}

/* Reservations come, change and go; whatever is refused is refused. */
static void reserve(struct sim *s)
{
	static const char *const flags[] = { "", "DAILY", "HOURLY", "MAINT,IGNORE_JOBS", "OVERLAP", "FLEX,MAGNETIC", "MAGNETIC,IGNORE_JOBS", "NO_HOLD_JOBS_AFTER", "PURGE_COMP", "REPLACE", "IGNORE_JOBS,HOURLY" };
	static const char *const size[][2] = { { "NodeCnt", "1" }, { "NodeCnt", "3" }, { "Nodes", "n[0-2]" }, { "Nodes", "n5,n7" }, { "CoreCnt", "5" }, { "TRES", "gres/gpu=3" }, { "Nodes", "ALL" } };
	struct core_event ev = world_event(&s->w, EV_RESV, 0);
	Pb__ResvUpdateReq q = PB__RESV_UPDATE_REQ__INIT;
	Pb__KeyValue kv[6], *list[6];
	char name[8], start[32], length[16];
	uint32_t k = draw(s, sizeof size / sizeof size[0]);
	snprintf(name, sizeof name, "r%u", draw(s, 4));
	snprintf(start, sizeof start, "%llu", (unsigned long long)(s->w.now_ms / 1000 + (chance(s, 50) ? 0 : draw(s, 4000))));
	snprintf(length, sizeof length, "%u", 1 + draw(s, 50));
	const char *const set[][2] = { { "StartTime", start }, { "Duration", length }, { size[k][0], size[k][1] }, { "Users", chance(s, 50) ? "alice" : "-bob" },
		{ "Flags", flags[draw(s, sizeof flags / sizeof flags[0])] } };
	q.op = chance(s, 50) ? PB__RESV_UPDATE_REQ__OP__CREATE : chance(s, 50) ? PB__RESV_UPDATE_REQ__OP__DELETE : PB__RESV_UPDATE_REQ__OP__UPDATE;
	bool part = q.op == PB__RESV_UPDATE_REQ__OP__UPDATE;
	for (size_t i = 0; i < 5 && q.op != PB__RESV_UPDATE_REQ__OP__DELETE; i++) {
		if (part && !chance(s, 30))
			continue;
		pb__key_value__init(&kv[q.n_set]);
		kv[q.n_set].key = (char *)set[i][0];
		kv[q.n_set].value = (char *)set[i][1];
		list[q.n_set] = &kv[q.n_set];
		q.n_set++;
	}
	q.name = name;
	q.set = list;
	ev.resv = &q;
	world_step(&s->w, &ev);
}

static void step_of(struct sim *s)
{
	struct core_event ev = world_event(&s->w, EV_STEP_CREATE, 0);
	Pb__StepDesc d = PB__STEP_DESC__INIT;
	d.job_id = any_job(s);
	d.has_num_tasks = true;
	d.num_tasks = 1 + draw(s, 4);
	d.has_exact = d.has_overlap = true;
	d.exact = chance(s, 60);
	d.overlap = chance(s, 20);
	d.tres_per_node = (char *)(chance(s, 30) ? "gres/gpu:1" : "none");
	d.has_immediate_sec = chance(s, 50);
	d.immediate_sec = draw(s, 3);
	d.has_async = d.async = ev.token % 5 == 0;
	ev.step_create = &d;
	world_step(&s->w, &ev);
	const Pb__StepCreateRsp *r = (const Pb__StepCreateRsp *)world_answer(&s->w, ev.token);
	if (d.async && r && !r->code && ev.token % 3) {        /* it has a number; now for room */
		d.has_step_id = true;
		d.step_id = r->step_id;
		ev = world_event(&s->w, EV_STEP_CREATE, 0);
		ev.step_create = &d;
		world_step(&s->w, &ev);
		r = (const Pb__StepCreateRsp *)world_answer(&s->w, ev.token);
	}
	uint64_t asked = ev.token;
	if (asked % 4 == 0) {
		ev = world_event(&s->w, EV_STEPS_DRAIN, 0);
		ev.drain_job = d.job_id;
		world_step(&s->w, &ev);
	}
	if (!r && chance(s, 30)) {      /* who waits for it is gone */
		ev = world_event(&s->w, EV_STEP_GIVE_UP, 0);
		ev.token = asked;
		world_step(&s->w, &ev);
		return;
	}
	if (!r || r->code || chance(s, 30))
		return;
	ev = world_event(&s->w, EV_STEP_DONE, 0);
	ev.step_done.job_id = d.job_id;
	ev.step_done.step_id = r->step_id;
	world_step(&s->w, &ev);
}

static void job_done(struct sim *s)
{
	uint32_t id = any_job(s);
	Pb__JobRecord *r = world_job(&s->w, id);
	if (r && r->state == PB__JOB_STATE__RUNNING && !r->desc->batch) {
		struct core_event ev = world_event(&s->w, EV_JOB_DONE, 0);
		ev.job_done.job_id = id;
		world_step(&s->w, &ev);
	} else if (r && r->state == PB__JOB_STATE__RUNNING)
		world_batch_done(&s->w, id, chance(s, 30) ? 256 : 0);
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

/* What every listing reads must always be readable. */
static void read_all(struct sim *s)
{
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->w.core, &cur);
		Pb__JobVolatile v;
		if (!j)
			break;
		core_job_volatile(s->w.core, j, &v);
	}
}

/* From now on prologs and epilogs take so long and end so; and one prolog has failed on its node. */
static void scripts_vary(struct sim *s)
{
	struct core_event ev = world_event(&s->w, EV_NODE_EVENT, 0);
	Pb__NodeEvent m = PB__NODE_EVENT__INIT;
	s->w.script_ms = draw(s, 20000);
	s->w.script_status = chance(s, 10) ? 256 : 0;
	if (!s->w.params.prolog_alloc || !s->ids || !chance(s, 10))
		return;
	m.kind = PB__NODE_EVENT__KIND__LAUNCH_FAILED;
	m.has_job_id = m.has_prolog = m.prolog = true;
	m.job_id = any_job(s);
	ev.token = 0;
	ev.node_event.node = s->w.node[draw(s, NODES)].name;
	ev.node_event.event = &m;
	world_step(&s->w, &ev);
}

static void happen(struct sim *s)
{
	uint32_t k = draw(s, 100), n = draw(s, NODES);
	if (k < 36)
		submit(s);
	else if (k < 54)
		world_advance(&s->w, s->w.now_ms + draw(s, 120000));
	else if (k < 56)
		scripts_vary(s);
	else if (k < 66)
		job_done(s);
	else if (k < 72)
		cancel(s);
	else if (k < 78)
		operate(s);
	else if (k < 83)
		update(s);
	else if (k < 90)
		step_of(s);
	else if (k < 92 && s->w.node[n].alive)
		world_node_kill(&s->w, n);
	else if (k < 95)
		world_node_register(&s->w, n, chance(s, 30), 0);
	else if (k < 96)
		node_word(s, chance(s, 50) ? "DRAIN" : "DOWN");
	else if (k < 98)
		node_word(s, "RESUME");
	else if (k < 99 && chance(s, 50))
		reserve(s);
	else if (k < 99)
		part_word(s);
	else if (chance(s, 30))
		world_restart(&s->w);
	else if (chance(s, 30))
		world_configure(&s->w);
	note_highest(s);
	read_all(s);
}

/* No more faults: what can run must. */
static void heal(struct sim *s)
{
	struct core_event ev = world_event(&s->w, EV_PART_UPDATE, 0);
	Pb__PartUpdateReq q = PB__PART_UPDATE_REQ__INIT;
	Pb__KeyValue a = PB__KEY_VALUE__INIT, b = PB__KEY_VALUE__INIT, *list[] = { &a, &b };
	a.key = (char *)"State";
	a.value = (char *)"UP";
	b.key = (char *)"MaxTime";
	b.value = (char *)"UNLIMITED";
	q.name = (char *)"short";
	q.set = list;
	q.n_set = 2;
	ev.part_update = &q;
	world_step(&s->w, &ev);
	s->w.script_status = 0;
	while (core_resv_count(s->w.core)) { /* those in use go when their jobs have */
		Pb__ReservationRecord *r = core_resv_record(s->w.core, 0);
		Pb__ResvUpdateReq u = PB__RESV_UPDATE_REQ__INIT;
		Pb__KeyValue f = PB__KEY_VALUE__INIT, *flist = &f;
		f.key = (char *)"Flags-";
		f.value = (char *)"DAILY,HOURLY";
		u.op = PB__RESV_UPDATE_REQ__OP__UPDATE;
		u.name = r->name;
		u.set = &flist;
		u.n_set = 1;
		struct core_event e = world_event(&s->w, EV_RESV, 0);
		e.resv = &u;
		world_step(&s->w, &e);
		world_advance(&s->w, s->w.now_ms + 3600000);
		pb__reservation_record__free_unpacked(r, NULL);
	}
	for (uint32_t i = 0; i < NODES * 8; i++)
		node_word(s, "RESUME");
	for (uint32_t i = 0; i < NODES; i++)
		world_node_register(&s->w, i, false, 0);
	for (uint32_t i = 0; i < NODES * 8; i++)
		node_word(s, "RESUME");
}

static uint32_t left_over(struct sim *s, bool end_interactive)
{
	uint32_t left = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->w.core, &cur);
		Pb__JobVolatile v;
		if (!j)
			break;
		core_job_volatile(s->w.core, j, &v);
		uint32_t id = core_job_id(j);
		if (core_job_is_running(j) && end_interactive) {
			struct core_event ev = world_event(&s->w, EV_JOB_DONE, 0);
			ev.job_done.job_id = id;
			world_step(&s->w, &ev);
		} else if (!core_job_is_finished(j) && (core_job_is_running(j) || v.reason == REASON_RESOURCES || v.reason == REASON_PRIORITY || v.reason == REASON_NONE))
			left++;
	}
	return left;
}

static void unit_add(Pb__TopologyRecord *t, uint32_t level, uint32_t from, uint32_t to)
{
	Pb__TopologyUnit *u = xcalloc(1, sizeof *u);
	pb__topology_unit__init(u);
	u->name = xasprintf("u%zu", t->n_unit);
	u->level = level;
	u->nodes = xasprintf("n[%u-%u]", from, to);
	t->unit = xrealloc(t->unit, (t->n_unit + 1) * sizeof *t->unit);
	t->unit[t->n_unit++] = u;
}

/* A tree of three leaves for all, blocks of two nodes for the partition "short". */
static void topology_build(struct sim *s)
{
	s->w.topo_conf = xcalloc(2, sizeof *s->w.topo_conf);
	for (uint32_t i = 0; i < 2; i++) {
		Pb__TopologyRecord *t = s->w.topo_conf[s->w.topos++] = xcalloc(1, sizeof *t);
		pb__topology_record__init(t);
		t->name = xstrdup(i ? "blocks" : "net");
		t->kind = xstrdup(i ? "block" : "tree");
		t->has_cluster_default = t->cluster_default = !i;
		for (uint32_t n = 0; n < NODES; n += i ? 2 : 4)
			unit_add(t, 0, n, n + (i ? 1 : 3));
		if (!i)
			unit_add(t, 1, 0, NODES - 1);
		t->n_block_sizes = i ? 3 : 0;
		t->block_sizes = xcalloc(3, sizeof *t->block_sizes);
		for (uint32_t k = 0; k < t->n_block_sizes; k++)
			t->block_sizes[k] = 2u << k;
	}
	s->w.params.topo_optional = draw(s, 4) == 0;
	s->w.params.dragonfly = draw(s, 4) == 0;
	s->w.params.max_switch_wait_sec = 300;
}

/* Twelve nodes of several kinds in two partitions. */
static void world_build(struct sim *s)
{
	for (uint32_t i = 0; i < NODES; i++) {
		char name[16];
		Pb__NodeRecord r = PB__NODE_RECORD__INIT;
		Pb__NodeGres g[6], *list[6];
		snprintf(name, sizeof name, "n%u", i);
		r.name = name;
		r.has_cpus = r.has_real_memory = r.has_threads = true;
		r.cpus = i % 3 ? 8 : 16;
		r.threads = i % 4 == 1 ? 2 : 1;
		r.has_sockets = r.has_cores = true;
		r.sockets = i % 5 < 2 ? 2 : 1;
		r.cores = r.cpus / r.threads / r.sockets;
		r.has_core_spec_count = true;
		r.core_spec_count = i % 6 == 5;
		r.real_memory = 8000 + 1000 * i;
		r.features = (char *)(i % 2 ? "big" : "fast");
		for (uint32_t k = 0; k < 6; k++)
			pb__node_gres__init(list[k] = &g[k]);
		for (uint32_t k = 0; k < 2; k++) {
			g[k].name = (char *)"gpu";
			g[k].count = 2;
			g[k].files = (char *)"/dev/x";
			g[k].has_first_index = true;
			g[k].first_index = 2 * k;
			g[k].cores = (char *)(i % 4 < 3 ? k ? "2-3" : "0-1" : NULL);
		}
		for (uint32_t k = 2; k < 6; k++) { /* shards of each GPU */
			g[k].name = (char *)"shard";
			g[k].count = 2 + k % 2;
			g[k].has_of_gpu = g[k].has_count_only = g[k].count_only = true;
			g[k].of_gpu = k - 2;
		}
		r.gres_list = list;
		r.n_gres_list = i % 2 ? i % 4 == 3 ? 6 : 2 : 0;
		world_add_node(&s->w, &r);
	}
	if (draw(s, 2))
		topology_build(s);
	for (uint32_t i = 0; i < 4; i++) {
		static const char *const name[] = { "main", "short", "shared", "own" };
		Pb__PartitionRecord r = PB__PARTITION_RECORD__INIT;
		r.name = (char *)name[i];
		r.nodes = (char *)(i ? "n[0-7]" : "n[0-11]");
		r.oversubscribe = (char *)(i == 2 ? draw(s, 2) ? "FORCE:3" : "YES:2" : NULL);
		r.exclusive = (char *)(i == 3 ? "USER" : NULL);
		r.topology = (char *)(i == 1 && s->w.topos ? "blocks" : NULL);
		r.has_max_cpus_per_node = r.has_max_cpus_per_socket = r.has_lln = i == 1;
		r.max_cpus_per_node = 4 + draw(s, 4);
		r.max_cpus_per_socket = draw(s, 4);
		r.lln = draw(s, 2);
		r.has_is_default = true;
		r.is_default = !i;
		r.has_priority_tier = true;
		r.priority_tier = i + 1;
		r.has_grace_time_sec = true;
		r.grace_time_sec = i ? 0 : (uint32_t)(s->random % 3) * 20;
		world_add_part(&s->w, &r);
	}
}

static void show_left_over(struct sim *s)
{
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->w.core, &cur);
		Pb__JobVolatile v;
		if (!j)
			break;
		core_job_volatile(s->w.core, j, &v);
		Pb__JobRecord *r = world_job(&s->w, core_job_id(j));
		if (!core_job_is_finished(j))
			printf("job %u is %s (%s), %u nodes of %s, %u tasks, mem %llu, %s %s -w %s -C %s, planned for +%lld s on %s\n", r->job_id, job_state_name(r->state, r->state_flags), reason_name(v.reason), r->num_nodes,
				r->desc->partition, r->num_tasks, (unsigned long long)r->desc->mem_per_node, r->desc->tres_per_node ? r->desc->tres_per_node : "", r->desc->exclusive ? r->desc->exclusive : "",
				r->desc->req_nodes ? r->desc->req_nodes : "", r->desc->features ? r->desc->features : "", v.has_est_start ? (long long)(v.est_start - s->w.now_ms / 1000) : -1, v.sched_nodes ? v.sched_nodes : "");
		pb__job_record__free_unpacked(r, NULL);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		Pb__NodeRecord *r = core_node_record(s->w.core, i);
		printf("node %s: state %u flags %x, %u CPUs used of %u\n", r->name, r->state, r->state_flags, r->alloc_cpus, r->cpus);
		pb__node_record__free_unpacked(r, NULL);
	}
}

/* Everything that is known has an explanation, and giving one changes nothing. */
static void explain_one(struct sim *s)
{
	struct core_why_ask ask = { .uid = draw(s, 3), .oper = draw(s, 2), .hide_jobs = draw(s, 2), .brief = draw(s, 2) };
	const struct core_job *j = s->ids ? core_job_find(s->w.core, s->id[draw(s, s->ids)]) : NULL;
	if (!j || draw(s, 4))
		return;
	Pb__WhyJob *r = core_why(s->w.core, j, &ask);
	assert(r->n_condition);
	pb__why_job__free_unpacked(r, NULL);
	core_check(s->w.core);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, events = argc > 2 ? strtoull(argv[2], NULL, 10) : 5000;
	struct sim s = { .random = seed * 0x9e3779b97f4a7c15ull + 1 };
	printf("seed %llu, %llu events\n", (unsigned long long)seed, (unsigned long long)events);
	fflush(stdout);
	s.busy = seed >= BUSY_SEEDS;
	world_init(&s.w);
	s.w.run_sec = script_sec;
	s.w.arg = &s;
	s.w.clean = seed % 2;
	s.w.params.slurmd_timeout_sec = 60;
	s.w.params.backfill = seed % 4 != 3;
	s.w.params.allow_spec = seed % 4 == 1;
	s.w.params.many_shared = seed % 4 == 2;
	s.w.params.least_loaded_shared = seed % 3 == 1;
	s.w.params.bf_reserve = seed % 5 == 1 || seed % 5 == 4 ? (uint32_t)(seed % 3 + 1) : 0;
	s.w.params.bf_order = (uint32_t)(seed / 5 % 3);
	s.w.params.bf_plan_all = seed % 10 == 2;
	s.w.params.priority_multifactor = seed % 3 == 0;
	s.w.params.preempt = seed % 5 < 2;
	s.w.params.preempt_mode = seed % 3 == 2 ? PREEMPT_SUSPEND : seed % 2 ? PREEMPT_REQUEUE : PREEMPT_CANCEL;
	s.w.params.gang = seed % 3 == 2;
	s.w.params.time_slice_sec = 5 + (uint32_t)(seed % 4) * 10;
	s.w.params.preempt_licenses = seed % 2;
	s.w.params.preempt_requeue_sec = seed % 4 * 20;
	s.w.params.preempt_exempt_sec = seed % 5 ? 0 : 120;
	s.w.params.weight_age = 1000;
	/* seed 2 plans everything anew at each change, and scripts are many changes */
	s.w.params.prolog_ctld = seed % 7 == 1 || seed % 7 == 3;
	s.w.params.prolog_alloc = seed % 7 == 3 || seed % 7 == 4;
	s.w.params.prolog_contain = seed % 7 == 4;
	s.w.params.epilog_ctld = seed % 7 == 4 || seed % 7 == 1;
	s.w.params.licenses = "la:3,lb";
	world_build(&s);
	world_start(&s.w);
	for (uint64_t i = 0; i < events; i++) {
		happen(&s);
		explain_one(&s);
	}
	heal(&s);
	uint32_t left = 1;
	for (uint32_t i = 0; i < 2000 && left; i++) {
		world_advance(&s.w, s.w.now_ms + 600000);
		(void)left_over(&s, true);
		left = left_over(&s, false);
	}
	printf("%llu steps, %llu jobs accepted, %llu refused, %llu launches, %u left over\n", (unsigned long long)s.w.steps, (unsigned long long)s.accepted,
		(unsigned long long)s.refused, (unsigned long long)s.w.launches, left);
	if (left)
		show_left_over(&s);
	world_fini(&s.w);
	return left != 0;
}
