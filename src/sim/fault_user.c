/* fault_user.c - users and operators: they submit, cancel, change, reserve, drain, all at random (see fault.h) */
#include <stdio.h>

#include "sim/fault.h"

static uint32_t any_job(struct sim *s) { return s->highest ? 1 + draw(s, s->highest) : 1; }

static void ask(struct sim *s, const struct core_event *ev, enum ask_kind kind, uint32_t job)
{
	s->ask = kind;
	s->ask_token = ev->token;
	s->ask_job = job;
}

/* What more than CPUs it wants. */
static void submit_more(struct sim *s, Pb__JobDesc *d)
{
	static const char *const lics[] = { "lic:1", "lic:2,soft:1", "soft:2,lic:3" }, *const gpus[] = { "gres/gpu:1", "gres/gpu:2" };
	d->has_mem_per_node = true;
	d->mem_per_node = draw(s, 4) ? 100 + draw(s, 2000) : 1000 + draw(s, 7000);
	d->licenses = (char *)(draw(s, 10) ? NULL : lics[draw(s, 3)]);
	d->tres_per_node = (char *)(draw(s, 6) ? NULL : gpus[draw(s, 2)]);
	d->partition = (char *)(draw(s, 6) ? NULL : draw(s, 3) ? "top" : "top,main");
	d->exclusive = (char *)(draw(s, 25) ? NULL : "node");
	d->reservation = (char *)(draw(s, 20) ? NULL : draw(s, 2) ? "r0" : "r1");
	if (draw(s, 15) == 0) {
		d->has_begin_time = true;
		d->begin_time = s->now / 1000 + draw(s, 600);
	}
}

static void submit(struct sim *s)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	uint8_t key[16] = { 0 }, hash[32] = { 0 };
	char dep[40];
	struct core_event ev = event(s, EV_SUBMIT, 1001 + draw(s, 2));
	memcpy(key, &s->token, sizeof s->token);
	d.name = (char *)"x";
	d.work_dir = (char *)"/";
	d.has_batch = d.batch = d.has_num_tasks = d.has_time_limit_min = true;
	d.num_tasks = 1 + draw(s, 6);
	d.time_limit_min = 1 + draw(s, 20);
	d.has_min_nodes = draw(s, 4) == 0;
	d.min_nodes = 1 + draw(s, 3);
	d.has_requeue = true;
	d.requeue = draw(s, 3) > 0;
	s->ask_depends = 0;
	if (draw(s, 12) == 0) {
		s->ask_depends = any_job(s);
		snprintf(dep, sizeof dep, "afterany:%u", s->ask_depends);
		d.dependency = dep;
	}
	d.array = (char *)(draw(s, 20) ? NULL : "0-3%2");
	submit_more(s, &d);
	d.qos = (char *)(s->params.backfill || draw(s, 3) ? NULL : draw(s, 2) ? "few" : "spent");
	ev.submit.desc = &d;
	ev.submit.idem_key = key;
	ev.submit.idem_hash = hash;
	ask(s, &ev, ASK_SUBMIT, 0);
	step(s, &ev);
}

static void operate(struct sim *s, Pb__JobOpReq__Op op, uint32_t job)
{
	struct core_event ev = event(s, EV_JOB_OP, 0);
	Pb__JobOpReq q = PB__JOB_OP_REQ__INIT;
	char id[24];
	snprintf(id, sizeof id, "%u", job);
	q.op = op;
	q.id = id;
	ev.job_op = &q;
	if (op == PB__JOB_OP_REQ__OP__HOLD)
		ask(s, &ev, ASK_HOLD, job);
	step(s, &ev);
}

static void cancel(struct sim *s)
{
	struct core_event ev = event(s, EV_KILL, 0);
	Pb__KillReq q = PB__KILL_REQ__INIT;
	uint32_t job = any_job(s);
	char id[24], *list = id;
	snprintf(id, sizeof id, "%u", job);
	q.id = &list;
	q.n_id = 1;
	ev.kill = &q;
	ask(s, &ev, ASK_KILL, job);
	step(s, &ev);
}

static void update(struct sim *s)
{
	static const char *const set[][2] = { { "TimeLimit", "5" }, { "TimeLimit", "+3" }, { "Priority", "77" }, { "NumNodes", "2" }, { "Nice", "5" }, { "Dependency", "" }, { "Comment", "c" } };
	struct core_event ev = event(s, EV_JOB_UPDATE, 0);
	uint32_t k = draw(s, sizeof set / sizeof set[0]), job = any_job(s);
	Pb__KeyValue kv = PB__KEY_VALUE__INIT, *list = &kv;
	Pb__JobUpdateReq q = PB__JOB_UPDATE_REQ__INIT;
	char id[24], *ids = id;
	snprintf(id, sizeof id, "%u", job);
	kv.key = (char *)set[k][0];
	kv.value = (char *)set[k][1];
	q.id = &ids;
	q.n_id = 1;
	q.set = &list;
	q.n_set = 1;
	ev.job_update = &q;
	if (k == 0)
		ask(s, &ev, ASK_LIMIT, job);
	if (!strcmp(kv.key, "Dependency")) {
		told(s, job)->depends = 0; /* taken back, if it is not refused */
		told(s, job)->freed = true;
	}
	step(s, &ev);
}

void users(struct sim *s)
{
	static const Pb__JobOpReq__Op ops[] = { PB__JOB_OP_REQ__OP__HOLD, PB__JOB_OP_REQ__OP__RELEASE, PB__JOB_OP_REQ__OP__REQUEUE, PB__JOB_OP_REQ__OP__RELEASE, PB__JOB_OP_REQ__OP__SUSPEND, PB__JOB_OP_REQ__OP__RESUME };
	uint32_t k = draw(s, 100);
	if (s->full || k >= 44) /* while the store fails changes are refused before they reach the core */
		return;
	if (k < 26)
		submit(s);
	else if (k < 31)
		operate(s, ops[draw(s, sizeof ops / sizeof ops[0])], any_job(s));
	else if (k < 35)
		cancel(s);
	else if (k < 40)
		update(s);
	else
		operators(s);
}

/* --- operators ------------------------------------------------------------------------------------ */

static void node_state(struct sim *s, uint32_t i, const char *state)
{
	struct core_event ev = event(s, EV_NODE_UPDATE, 0);
	Pb__NodeUpdateReq q = PB__NODE_UPDATE_REQ__INIT;
	Pb__KeyValue kv[2] = { PB__KEY_VALUE__INIT, PB__KEY_VALUE__INIT }, *list[2] = { &kv[0], &kv[1] };
	kv[0].key = (char *)"State";
	kv[0].value = (char *)state;
	kv[1].key = (char *)"Reason";
	kv[1].value = (char *)"by chance";
	q.nodes = (char *)node_name[i];
	q.set = list;
	q.n_set = strcmp(state, "RESUME") ? 2 : 1;
	ev.node_update = &q;
	if (!strcmp(state, "DOWN"))
		audit_node_down(s, i);
	step(s, &ev);
}

static void part_state(struct sim *s, const char *state)
{
	struct core_event ev = event(s, EV_PART_UPDATE, 0);
	Pb__PartUpdateReq q = PB__PART_UPDATE_REQ__INIT;
	Pb__KeyValue kv = PB__KEY_VALUE__INIT, *list = &kv;
	kv.key = (char *)"State";
	kv.value = (char *)state;
	q.name = (char *)"top";
	q.set = &list;
	q.n_set = 1;
	ev.part_update = &q;
	step(s, &ev);
}

static void reserve(struct sim *s, const char *name, bool gone)
{
	static const char *const size[][2] = { { "NodeCnt", "1" }, { "NodeCnt", "2" }, { "Nodes", "n[2-4]" }, { "Nodes", "n7" } };
	struct core_event ev = event(s, EV_RESV, 0);
	Pb__ResvUpdateReq q = PB__RESV_UPDATE_REQ__INIT;
	Pb__KeyValue kv[5], *list[5];
	char start[32], length[16];
	uint32_t k = draw(s, 4);
	snprintf(start, sizeof start, "%llu", (unsigned long long)(s->clock / 1000 + draw(s, 1500)));
	snprintf(length, sizeof length, "%u", 1 + draw(s, 15));
	const char *const set[][2] = { { "StartTime", start }, { "Duration", length }, { size[k][0], size[k][1] }, { "Users", draw(s, 2) ? "alice" : "alice,bob" }, { "Flags", draw(s, 2) ? "IGNORE_JOBS" : "" } };
	for (size_t i = 0; i < 5; i++) {
		pb__key_value__init(&kv[i]);
		kv[i].key = (char *)set[i][0];
		kv[i].value = (char *)set[i][1];
		list[i] = &kv[i];
	}
	q.op = gone ? PB__RESV_UPDATE_REQ__OP__DELETE : PB__RESV_UPDATE_REQ__OP__CREATE;
	q.name = (char *)name;
	q.set = list;
	q.n_set = gone ? 0 : 5;
	ev.resv = &q;
	step(s, &ev);
}

void operators(struct sim *s)
{
	static const char *const states[] = { "DRAIN", "RESUME", "RESUME", "DOWN", "RESUME" };
	uint32_t k = draw(s, 10);
	if (k < 4)
		node_state(s, draw(s, NODES), states[draw(s, sizeof states / sizeof states[0])]);
	else if (k < 5)
		part_state(s, draw(s, 3) ? "UP" : "DOWN");
	else
		reserve(s, draw(s, 2) ? "r0" : "r1", draw(s, 3) == 0);
}

void all_is_well(struct sim *s)
{
	part_state(s, "UP");
	for (uint32_t i = 0; i < NODES; i++)
		node_state(s, i, "RESUME");
	for (uint32_t id = 1; id <= s->highest; id++) {
		Pb__JobRecord *r = job_record(s, id);
		if (r && r->state == PB__JOB_STATE__SUSPENDED)
			operate(s, PB__JOB_OP_REQ__OP__RESUME, id);
		if (r)
			pb__job_record__free_unpacked(r, NULL);
	}
	reserve(s, "r0", true);
	reserve(s, "r1", true);
}
