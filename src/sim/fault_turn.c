/* fault_turn.c - the controller's turn: effects, what waits for the disk, orders to nodes, its death and its start (see fault.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hostlist.h"
#include "model/limit.h"
#include "sim/fault.h"

static struct batch *batch_open(struct sim *s)
{
	if (!s->open)
		s->open = xcalloc(1, sizeof *s->open);
	return s->open;
}

void act_add(struct sim *s, struct act a)
{
	struct batch *b = batch_open(s);
	b->act = xgrow(b->act, &b->act_cap, b->acts + 1, sizeof *b->act);
	b->act[b->acts++] = a;
}

static void put_add(struct sim *s, enum store_table table, uint64_t key, const void *data, size_t len)
{
	struct batch *b = batch_open(s);
	b->put = xgrow(b->put, &b->put_cap, b->puts + 1, sizeof *b->put);
	b->put[b->puts++] = (struct put){ table, key, s->steps, data ? memcpy(xmalloc(len + 1), data, len) : NULL, len };
}

static void batch_free(struct batch *b)
{
	for (size_t i = 0; b && i < b->puts; i++)
		free(b->put[i].data);
	if (b) {
		free(b->put);
		free(b->act);
	}
	free(b);
}

Pb__JobRecord *job_record(struct sim *s, uint32_t id)
{
	const struct core_job *j = core_job_find(s->core, id);
	size_t len;
	const uint8_t *b = j ? core_job_blob(s->core, j, &len) : NULL;
	return b ? pb__job_record__unpack(NULL, len, b) : NULL;
}

/* With --watch: what is about to be written of the job. */
static void record_story(struct sim *s, uint32_t id)
{
	Pb__JobRecord *r = faults_watched == id ? job_record(s, id) : NULL;
	if (!r)
		return;
	printf("%8.3f s step %llu: is %s, run %u on %s, from %u to %u (%s)\n", (double)(s->now - 1000000000000ull) / 1000, (unsigned long long)s->steps, job_state_name(r->state, r->state_flags),
		r->restarts, r->alloc && r->alloc->nodes ? r->alloc->nodes : "-", r->start_time ? (unsigned)(r->start_time - 1000000000u) : 0, r->end_time ? (unsigned)(r->end_time - 1000000000u) : 0, r->why ? r->why : "");
	pb__job_record__free_unpacked(r, NULL);
}

static void put_job(struct sim *s, uint32_t id)
{
	const struct core_job *j = core_job_find(s->core, id);
	size_t len = 0;
	const uint8_t *b = j ? core_job_blob(s->core, j, &len) : NULL;
	put_add(s, STORE_JOB, id, b, len);
	record_story(s, id);
}

static void put_message(struct sim *s, enum store_table table, uint64_t key, ProtobufCMessage *m)
{
	size_t len = m ? protobuf_c_message_get_packed_size(m) : 0;
	uint8_t *b = m ? xmalloc(len + 1) : NULL;
	if (m)
		protobuf_c_message_pack(m, b);
	put_add(s, table, key, b, len);
	free(b);
	if (m)
		protobuf_c_message_free_unpacked(m, NULL);
}

static void order_nodes(struct sim *s, const struct core_effect *e)
{
	const Pb__TerminateReq *t = (const Pb__TerminateReq *)e->msg;
	struct hostlist hl = HOSTLIST_INIT;
	(void)hostlist_add(&hl, e->nodes, NULL);
	for (size_t i = 0; !t->has_step_id && i < hl.count; i++)
		act_add(s, (struct act){ .kind = A_TERMINATE, .node = (uint32_t)core_node_find(s->core, hl.name[i]), .job_id = t->job_id, .restarts = t->restarts });
	hostlist_fini(&hl);
}

static void launch(struct sim *s, const struct core_effect *e)
{
	Pb__JobRecord *r = job_record(s, e->job_id);
	uint32_t cpus = r->alloc && r->alloc->n_part ? r->alloc->part[0]->cpus : 0, node = (uint32_t)core_node_find(s->core, e->nodes);
	uint64_t boot, started;
	core_node_started(s->core, node, &boot, &started);
	if (core_job_is_running(core_job_find(s->core, e->job_id)) && r->restarts == e->value) { /* else it ended in the step that started it */
		audit_launches(s, e->job_id, r->restarts);
		act_add(s, (struct act){ .kind = A_LAUNCH, .node = node, .job_id = e->job_id, .restarts = r->restarts, .cpus = cpus, .meant_for = started });
	}
	pb__job_record__free_unpacked(r, NULL);
}

static void answer(struct sim *s, const struct core_effect *e)
{
	uint32_t code = 0, job = s->ask_job;
	if (!s->ask || e->token != s->ask_token)
		return;
	if (e->msg->descriptor == &pb__submit_rsp__descriptor) {
		const Pb__SubmitRsp *r = (const Pb__SubmitRsp *)e->msg;
		code = r->code || !r->has_job_id;
		job = r->job_id;
	} else if (e->msg->descriptor == &pb__kill_rsp__descriptor) {
		const Pb__KillRsp *r = (const Pb__KillRsp *)e->msg;
		code = r->n_result != 1 || r->result[0]->code;
	} else if (e->msg->descriptor == &pb__result_list__descriptor) {
		const Pb__ResultList *r = (const Pb__ResultList *)e->msg;
		code = r->n_result != 1 || r->result[0]->code;
	} else {
		code = 1;
	}
	if (!code)
		act_add(s, (struct act){ .kind = s->ask == ASK_SUBMIT ? A_REPLY : A_DONE, .ask = s->ask, .job_id = job, .depends = s->ask == ASK_SUBMIT ? s->ask_depends : 0 });
	s->ask = ASK_NONE;
}

static void ended(struct sim *s, const struct core_effect *e)
{
	Pb__JobRecord *r = job_record(s, e->job_id);
	if (r && job_state_is_final(r->state))
		act_add(s, (struct act){ .kind = A_ENDED, .job_id = e->job_id, .restarts = r->restarts });
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

static void put_usage(struct sim *s, const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *data = xmalloc(len + 1);
	protobuf_c_message_pack(m, data);
	put_add(s, STORE_META, STORE_META_USAGE, data, len);
	free(data);
}

static void effect(struct sim *s, const struct core_effect *e)
{
	uint32_t next = e->value;
	switch (e->type) {
	case FX_REPLY: answer(s, e); break;
	case FX_PERSIST_JOB:
	case FX_REMOVE_JOB: put_job(s, e->job_id); break;
	case FX_PERSIST_NODE:
		put_message(s, STORE_NODE, e->node_index + 1, (ProtobufCMessage *)core_node_record(s->core, e->node_index));
		if (!core_node_is_up(s->core, e->node_index))
			audit_node_gone(s, e->node_index);
		break;
	case FX_PERSIST_RESV:
	case FX_REMOVE_RESV: put_message(s, STORE_RESV, e->value, e->type == FX_REMOVE_RESV ? NULL : (ProtobufCMessage *)core_resv_by_id(s->core, e->value)); break;
	case FX_PERSIST_NEXT_ID: put_add(s, STORE_META, STORE_META_NEXT_JOB_ID, &next, sizeof next); break;
	case FX_PERSIST_USAGE: put_usage(s, e->msg); break;
	case FX_LAUNCH_BATCH: launch(s, e); break;
	case FX_TERMINATE: order_nodes(s, e); break;
	case FX_ENDED: ended(s, e); break;
	case FX_TIMER: s->timer_ms = e->time_ms; break;
	case FX_PLAN_MORE: s->plan_more = true; break;
	case FX_LOG:
		if (faults_watched)
			story(s, 0, e->text, 0, 0);
		break;
	default: break;
	}
}

void step(struct sim *s, struct core_event *ev)
{
	bool restoring = ev->type == EV_RESTORE_JOB || ev->type == EV_RESTORE_NODE || ev->type == EV_RESTORE_RESV;
	uint32_t started[64];
	size_t n = 0;
	s->clock = s->now > s->clock ? s->now : s->clock;
	ev->time_ms = s->clock;
	if (!restoring)
		audit_plan_before(s);
	effects_reset(s->fx);
	core_step(s->core, ev, s->fx);
	if (s->steps++ % 16 == 0 && !restoring)
		core_check(s->core);
	for (size_t i = 0; i < effects_count(s->fx); i++) {
		effect(s, effects_at(s->fx, i));
		if (effects_at(s->fx, i)->type == FX_ALLOCATED && n < sizeof started / sizeof started[0])
			started[n++] = effects_at(s->fx, i)->job_id;
	}
	s->blameless = ev->type == EV_SUBMIT || ev->type == EV_TIMER || ev->type == EV_PLAN || ev->type == EV_NODE_EVENT;
	audit_plan_after(s, started, n);
}

struct core_event event(struct sim *s, enum core_event_type type, uint32_t uid)
{
	const char *name = uid == 0 ? "root" : uid == 1001 ? "alice" : "bob";
	return (struct core_event){ .type = type, .token = ++s->token, .by = { .uid = uid, .gid = uid, .oper = uid == 0, .admin = uid == 0, .user = name, .group = uid ? "users" : "root" } };
}

void turn_close(struct sim *s)
{
	if (!s->open)
		return;
	s->open->ready = s->now + (chance(s, 50) ? draw(s, 3000) : draw(s, 3));
	*s->last = s->open;
	s->last = &s->open->next;
	s->open = NULL;
}

/* --- the controller dies and comes back ----------------------------------------------------------- */

struct restoring { struct sim *s; enum core_event_type type; };

static int restore_one(uint64_t key, const void *data, size_t len, void *arg)
{
	struct restoring *r = arg;
	struct core_event ev = event(r->s, r->type, 0);
	ev.restore.data = data;
	ev.restore.len = len;
	step(r->s, &ev);
	return 0;
}

static void node_configured(Pb__NodeRecord *r, uint32_t i)
{
	static Pb__NodeGres gpu, *gpus = &gpu;
	pb__node_record__init(r);
	r->name = (char *)node_name[i];
	r->has_cpus = r->has_real_memory = true;
	r->cpus = CPUS;
	r->real_memory = MEM;
	if (i >= NODES / 2)
		return;
	pb__node_gres__init(&gpu);
	gpu.name = (char *)"gpu";
	gpu.count = GPUS;
	gpu.files = (char *)"/dev/nvidia[0-1]";
	r->gres = (char *)"gpu:2";
	r->gres_list = &gpus;
	r->n_gres_list = 1;
}

/* Two partitions: main (all nodes) and top (the nodes with GPUs, before main, small and short jobs only). */
static void configure(struct sim *s)
{
	struct core_event ev = event(s, EV_CONFIG, 0);
	Pb__NodeRecord rec[NODES], *list[NODES];
	Pb__PartitionRecord part[2], *parts[2] = { &part[0], &part[1] };
	for (uint32_t i = 0; i < NODES; i++) {
		node_configured(&rec[i], i);
		list[i] = &rec[i];
	}
	pb__partition_record__init(&part[0]);
	pb__partition_record__init(&part[1]);
	part[0].name = (char *)"main";
	part[0].nodes = (char *)"n[0-7]";
	part[0].has_is_default = part[0].is_default = true;
	part[1].name = (char *)"top";
	part[1].nodes = (char *)"n[0-3]";
	part[1].has_priority_tier = part[1].has_max_nodes = part[1].has_max_time_min = true;
	part[1].priority_tier = 10;
	part[1].max_nodes = 2;
	part[1].max_time_min = 10;
	ev.config.params = &s->params;
	ev.config.node = list;
	ev.config.nodes = NODES;
	ev.config.part = parts;
	ev.config.parts = 2;
	step(s, &ev);
}

/* What the store has of use, then the accounts: alice and bob may use QOS few (3 jobs, 40 CPUs) and spent (40 CPU minutes). */
static void accounts_give(struct sim *s)
{
	static const struct { const char *qos, *limit, *value; } limits[] = { { "few", "GrpJobs", "3" }, { "few", "GrpTRES", "cpu=40" }, { "spent", "GrpTRESMins", "cpu=40" }, { "spent", "MaxTRESRunMinsPU", "cpu=1300" } };
	static const char *const names[] = { "normal", "few", "spent" }, *const who[] = { NULL, "alice", "bob", "root" };
	struct core_event ev = event(s, EV_RESTORE_USAGE, 0);
	Pb__AcctSnapshot *m = xcalloc(1, sizeof *m);
	struct error err = { 0 };
	const char *tres;
	void *data = NULL;
	size_t len;
	pb__acct_snapshot__init(m);
	m->qos = xcalloc(3, sizeof *m->qos);
	m->assoc = xcalloc(4, sizeof *m->assoc);
	for (uint32_t i = 0; i < 3; i++) {
		Pb__QosRecord *q = m->qos[m->n_qos++] = xcalloc(1, sizeof *q);
		pb__qos_record__init(q);
		q->id = i + 1;
		q->name = xstrdup(names[i]);
		struct limit_list l = { NULL, 0 };
		for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
			const struct limit_row *row = limit_find(limits[k].limit, strlen(limits[k].limit), true, &tres);
			if (!strcmp(limits[k].qos, names[i]) && (!row || limit_set(&l, row, tres, limits[k].value, &err)))
				wrong(s, "a limit of the simulation is none", i, 0);
		}
		q->limit = l.at;
		q->n_limit = l.n;
	}
	for (uint32_t i = 0; i < 4; i++) {
		Pb__AssocRecord *a = m->assoc[m->n_assoc++] = xcalloc(1, sizeof *a);
		pb__assoc_record__init(a);
		a->id = i + 1;
		a->cluster = xstrdup(s->params.cluster);
		a->account = xstrdup("root");
		a->user = xstrdup_null(who[i]);
		a->has_is_default = a->is_default = who[i] != NULL;
	}
	if (!store_get(s->store, STORE_META, STORE_META_USAGE, &data, &len, &err)) {
		Pb__AcctUsage *u = pb__acct_usage__unpack(NULL, len, data);
		ev.usage = u;
		step(s, &ev);
		pb__acct_usage__free_unpacked(u, NULL);
		free(data);
	}
	ev = event(s, EV_ACCT, 0);
	ev.acct = m;
	step(s, &ev);
	pb__acct_snapshot__free_unpacked(m, NULL);
}

void controller_start(struct sim *s)
{
	void *data = NULL;
	size_t len;
	uint32_t next = 0;
	struct error err = { 0 };
	static const struct { enum store_table table; enum core_event_type type; } tables[] = { { STORE_NODE, EV_RESTORE_NODE }, { STORE_RESV, EV_RESTORE_RESV }, { STORE_JOB, EV_RESTORE_JOB } };
	s->core = core_create();
	s->down = false;
	s->epoch++;
	configure(s);
	if (!s->params.backfill) /* a limit that parks a job drops its promise: audit_plan does not know that yet */
		accounts_give(s);
	batch_free(s->open);
	s->open = NULL;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		(void)store_scan(s->store, tables[i].table, restore_one, &(struct restoring){ s, tables[i].type }, &err);
	if (!store_get(s->store, STORE_META, STORE_META_NEXT_JOB_ID, &data, &len, &err))
		memcpy(&next, data, sizeof next);
	free(data);
	struct core_event ev = event(s, EV_RESTORE_DONE, 0);
	ev.restored.next_job_id = next;
	step(s, &ev);
	audit_restored(s);
	turn_close(s);
	for (uint32_t i = 0; i < NODES; i++) {
		s->node[i].known = false;
		s->node[i].register_at = s->now + draw(s, 3000);
		s->node[i].silent_since = 0;
	}
}

void controller_kill(struct sim *s)
{
	s->kills++;
	story(s, 0, "controller killed", 0, 0);
	core_destroy(s->core);
	s->core = NULL;
	s->down = true;
	batch_free(s->open);
	s->open = NULL;
	while (s->first) {
		struct batch *b = s->first;
		s->first = b->next;
		batch_free(b);
	}
	s->last = &s->first;
	s->orders = 0;
	s->timer_ms = 0;
	s->plan_more = false;
	s->ask = ASK_NONE;
}

/* --- what leaves after the commit ----------------------------------------------------------------- */

static void act_run(struct sim *s, const struct act *a)
{
	struct msg m = { .kind = M_ACK_REPORT, .node = a->node, .report = a->report, .boot = a->boot };
	static const char *const said[] = { "reply: node %u run %u", "done: node %u run %u", "launch on node %u, run %u", "terminate on node %u, run %u", "end is told: %u run %u", "report is acknowledged to node %u, run %u", "node %u is registered" };
	if (a->job_id)
		story(s, a->job_id, said[a->kind], a->node, a->restarts);
	audit_act(s, a);
	switch (a->kind) {
	case A_REPLY:
	case A_DONE:
	case A_ENDED: break;
	case A_LAUNCH:
	case A_TERMINATE:
		s->order = xgrow(s->order, &s->order_cap, s->orders + 1, sizeof *s->order);
		s->order[s->orders++] = (struct order){ .id = ++s->order_id, .node = a->node, .job_id = a->job_id, .restarts = a->restarts, .cpus = a->cpus, .launch = a->kind == A_LAUNCH, .again = s->now, .meant_for = a->meant_for };
		break;
	case A_REGISTERED:
		m.kind = M_REGISTERED;
		/* fall through */
	case A_ACK: post(s, &m); break;
	}
}

/* The disk takes the oldest batch; what waited for it leaves, one by one, unless the controller dies between. */
void disk(struct sim *s)
{
	struct batch *b = s->first;
	struct error err = { 0 };
	if (!b || b->ready > s->now || s->full)
		return;
	if (chance(s, 15)) {
		controller_kill(s);
		return;
	}
	struct store_put *put = xcalloc(b->puts + 1, sizeof *put);
	for (size_t i = 0; i < b->puts; i++)
		put[i] = (struct store_put){ b->put[i].table, b->put[i].key, b->put[i].data, b->put[i].len, !b->put[i].data };
	int rc = b->puts ? store_commit(s->store, put, b->puts, &err) : 0;
	free(put);
	if (rc)
		wrong(s, "the store takes nothing", 0, 0);
	audit_committed(s, b);
	s->first = b->next;
	if (!s->first)
		s->last = &s->first;
	for (size_t i = 0; i < b->acts; i++) {
		if (chance(s, 3)) {
			batch_free(b);
			controller_kill(s);
			return;
		}
		act_run(s, &b->act[i]);
	}
	batch_free(b);
}

/* --- orders to nodes (agent.c) --------------------------------------------------------------------- */

/* Is an order still meant (agent.c asks the same before it says it again)? */
bool order_wanted(struct sim *s, const struct order *o)
{
	Pb__JobRecord *r = job_record(s, o->job_id);
	bool yes = r && (!o->launch || (r->state == PB__JOB_STATE__RUNNING && r->restarts == o->restarts && r->alloc && str_eq(r->alloc->batch_host, node_name[o->node])));
	if (r)
		pb__job_record__free_unpacked(r, NULL);
	return yes;
}

static void order_failed(struct sim *s, const struct order *o)
{
	struct core_event ev = event(s, EV_LAUNCH_RESULT, 0);
	ev.launch.job_id = o->job_id;
	ev.launch.restarts = o->restarts;
	ev.launch.node = node_name[o->node];
	ev.launch.code = -ESLURM_COMM;
	step(s, &ev);
}

void agent(struct sim *s)
{
	for (size_t i = 0; i < s->orders;) {
		struct order o = s->order[i];
		bool due = o.again <= s->now, wanted = !due || !o.tries || order_wanted(s, &o), over = due && o.launch && o.tries >= LAUNCH_TRIES;
		if (wanted && !over) {
			i++;
			continue;
		}
		s->order[i] = s->order[--s->orders];
		if (wanted)
			order_failed(s, &o);
	}
	for (size_t i = 0; i < s->orders; i++) {
		struct order *o = &s->order[i];
		struct msg m = { .kind = o->launch ? M_LAUNCH : M_TERMINATE, .node = o->node, .job_id = o->job_id, .restarts = o->restarts, .order = o->id, .cpus = o->cpus, .boot = s->node[o->node].boot, .meant_for = o->meant_for };
		if (o->again > s->now)
			continue;
		o->tries++;
		o->again = s->now + REPEAT_MS + LATE_MS;
		post(s, &m);
	}
}
