/* faultsim.c - the controller among faults: core, store, a turn, a network and nodes in one thread on virtual time, all from one seed
 *
 * What is real: the core and the store's interface. What is played: the turn (records and what may leave only after they are on disk, as in ctld/turn.c), the
 * network (messages lost, doubled, late, in another order; both sides repeat until they are answered, as agent.c and noded/events.c do), nodes (they
 * die, come back, are restarted), the disk (slow, full) and the clock (it jumps). The controller is killed between any two steps of a turn.
 * The auditor knows only what users were told and what nodes really did: an acknowledged job is never lost; a run of a job is started at most once;
 * no node has more CPUs in use than it has; a job has one run at a time, except on a node that was given up; an end is told once; no id is given twice;
 * when the faults stop, everything that can run runs to its end. The command is in berth_faultsim.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/core.h"
#include "model/states.h"
#include "sim/faultsim.h"
#include "proto/agent.pb-c.h"
#include "store/store.h"

enum { NODES = 8, CPUS = 8, RUNS_MAX = 64, JOBS_MAX = 8192, LATE_MS = 6000, REPEAT_MS = 2000 };

/* --- what is played ------------------------------------------------------------------------------ */
enum msg_kind { M_LAUNCH, M_TERMINATE, M_REPORT, M_REGISTER, M_ACK_ORDER, M_ACK_REPORT, M_REGISTERED };
struct alive { uint32_t job_id, restarts; };
struct msg { uint64_t at, seq; enum msg_kind kind; uint32_t node, boot, job_id, restarts, status, order, report, cpus; bool clean, epilog, rebooted, gone; uint64_t started; struct alive *alive; size_t n_alive; };
struct run { uint32_t job_id, restarts, cpus; uint64_t ends; bool ending; };
struct report { uint32_t id, job_id, restarts, status; bool epilog, clean; uint64_t again; };
struct node {
	bool alive, known, rebooted;
	uint32_t boot;
	uint64_t started, register_at, silent_since;
	struct run run[RUNS_MAX];
	size_t runs;
	struct report report[RUNS_MAX * 2];
	size_t reports;
	struct alive past[RUNS_MAX * 4];  /* runs it has had since it booted */
	size_t pasts;
};
struct order { uint32_t id, node, job_id, restarts, cpus; bool launch; uint64_t again; };
enum act_kind { A_REPLY, A_LAUNCH, A_TERMINATE, A_ENDED, A_ACK, A_REGISTERED };
struct act { enum act_kind kind; uint32_t node, job_id, restarts, cpus, report, boot; uint64_t token; };
struct put { enum store_table table; uint64_t key; uint8_t *data; size_t len; };
struct batch { struct batch *next; struct put *put; size_t puts, put_cap; struct act *act; size_t acts, act_cap; uint64_t ready; };

struct told { uint32_t id; bool final, seen; uint32_t launched, ended; /* last run started, told ended: restarts + 1 */ };
struct sim {
	uint64_t random, now, clock, seq, token, submit_token, timer_ms, steps, launches, kills;
	struct core *core;
	struct effects *fx;
	struct store *store;
	struct core_params params;
	struct node node[NODES];
	struct msg *msg;
	size_t msgs, msg_cap;
	struct order *order;
	size_t orders, order_cap;
	uint32_t order_id, report_id;
	struct batch *open, *first, **last;
	bool plan_more, full, faults, down;
	struct told *told;               /* by id */
	uint32_t highest;
	uint64_t accepted;
};

static const char *const node_name[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };

static uint32_t draw(struct sim *s, uint32_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint32_t)(s->random >> 20) % below;
}

static bool chance(struct sim *s, uint32_t permille) { return s->faults && draw(s, 1000) < permille; }

static void wrong(const struct sim *s, const char *what, uint32_t job, uint32_t x)
{
	printf("step %llu, %llu s: %s (job %u, %u)\n", (unsigned long long)s->steps, (unsigned long long)(s->now / 1000), what, job, x);
	fflush(stdout);
	abort();
}

/* --watch JOB: its story on standard output. */
uint32_t faults_watched;
static void story(const struct sim *s, uint32_t job, const char *fmt, uint32_t a, uint32_t b)
{
	if (!faults_watched || (job && job != faults_watched))
		return;
	printf("%8.3f s step %llu: ", (double)(s->now - 1000000000000ull) / 1000, (unsigned long long)s->steps);
	printf(fmt, a, b);
	printf("\n");
}

/* --- network ------------------------------------------------------------------------------------- */

static void post_once(struct sim *s, struct msg m)
{
	s->msg = xgrow(s->msg, &s->msg_cap, s->msgs + 1, sizeof *s->msg);
	m.at = s->now + 1 + (chance(s, 100) ? draw(s, LATE_MS) : draw(s, 5));
	m.seq = ++s->seq;
	m.alive = m.n_alive ? xmemdup(m.alive, m.n_alive * sizeof *m.alive) : NULL;
	s->msg[s->msgs++] = m;
}

static void post(struct sim *s, const struct msg *m)
{
	if (!chance(s, 60))
		post_once(s, *m);
	if (chance(s, 40))
		post_once(s, *m);
}

/* --- the turn ------------------------------------------------------------------------------------ */

static struct batch *batch_open(struct sim *s)
{
	if (!s->open)
		s->open = xcalloc(1, sizeof *s->open);
	return s->open;
}

static void act_add(struct sim *s, struct act a)
{
	struct batch *b = batch_open(s);
	b->act = xgrow(b->act, &b->act_cap, b->acts + 1, sizeof *b->act);
	b->act[b->acts++] = a;
}

static void put_add(struct sim *s, enum store_table table, uint64_t key, const void *data, size_t len)
{
	struct batch *b = batch_open(s);
	b->put = xgrow(b->put, &b->put_cap, b->puts + 1, sizeof *b->put);
	b->put[b->puts++] = (struct put){ table, key, data ? memcpy(xmalloc(len + 1), data, len) : NULL, len };
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

static Pb__JobRecord *job_record(struct sim *s, uint32_t id)
{
	const struct core_job *j = core_job_find(s->core, id);
	size_t len;
	const uint8_t *b = j ? core_job_blob(s->core, j, &len) : NULL;
	return b ? pb__job_record__unpack(NULL, len, b) : NULL;
}

static void put_job(struct sim *s, uint32_t id)
{
	const struct core_job *j = core_job_find(s->core, id);
	size_t len = 0;
	const uint8_t *b = j ? core_job_blob(s->core, j, &len) : NULL;
	put_add(s, STORE_JOB, id, b, len);
}

static void put_node(struct sim *s, uint32_t i)
{
	Pb__NodeRecord *r = core_node_record(s->core, i);
	size_t len = pb__node_record__get_packed_size(r);
	uint8_t *b = xmalloc(len + 1);
	pb__node_record__pack(r, b);
	put_add(s, STORE_NODE, i + 1, b, len);
	free(b);
	pb__node_record__free_unpacked(r, NULL);
}

static uint32_t node_index(const char *name) { return (uint32_t)strtoul(name + 1, NULL, 10); }

static void order_nodes(struct sim *s, const struct core_effect *e)
{
	const Pb__TerminateReq *t = (const Pb__TerminateReq *)e->msg;
	char *list = xstrdup(e->nodes);
	if (!t->has_step_id)
		for (uint32_t i = 0; i < NODES; i++) { /* n0, n[1-3,5] */
			bool in = false;
			for (const char *p = list; *p; p++) {
				char *end;
				if (*p < '0' || *p > '9')
					continue;
				unsigned long lo = strtoul(p, &end, 10), hi = *end == '-' ? strtoul(end + 1, &end, 10) : lo;
				in = in || (i >= lo && i <= hi);
				p = end - 1;
			}
			if (in)
				act_add(s, (struct act){ .kind = A_TERMINATE, .node = i, .job_id = t->job_id, .restarts = t->restarts });
		}
	free(list);
}

static void launch(struct sim *s, const struct core_effect *e)
{
	Pb__JobRecord *r = job_record(s, e->job_id);
	uint32_t cpus = r->alloc && r->alloc->n_part ? r->alloc->part[0]->cpus : 0;
	act_add(s, (struct act){ .kind = A_LAUNCH, .node = node_index(e->nodes), .job_id = e->job_id, .restarts = r->restarts, .cpus = cpus });
	pb__job_record__free_unpacked(r, NULL);
}

static void submit_answer(struct sim *s, const struct core_effect *e)
{
	const Pb__SubmitRsp *r = (const Pb__SubmitRsp *)e->msg;
	if (e->token != s->submit_token || e->msg->descriptor != &pb__submit_rsp__descriptor || r->code || !r->has_job_id)
		return;
	act_add(s, (struct act){ .kind = A_REPLY, .job_id = r->job_id, .token = e->token });
}

static void ended(struct sim *s, const struct core_effect *e)
{
	Pb__JobRecord *r = job_record(s, e->job_id);
	if (r && job_state_is_final(r->state))
		act_add(s, (struct act){ .kind = A_ENDED, .job_id = e->job_id, .restarts = r->restarts });
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

static void step(struct sim *s, struct core_event *ev)
{
	s->clock = s->now > s->clock ? s->now : s->clock;
	ev->time_ms = s->clock;
	effects_reset(s->fx);
	core_step(s->core, ev, s->fx);
	if (s->steps++ % 16 == 0 && ev->type != EV_RESTORE_JOB && ev->type != EV_RESTORE_NODE)
		core_check(s->core);
	for (size_t i = 0; i < effects_count(s->fx); i++) {
		const struct core_effect *e = effects_at(s->fx, i);
		uint32_t next = e->value;
		switch (e->type) {
		case FX_REPLY: submit_answer(s, e); break;
		case FX_PERSIST_JOB:
		case FX_REMOVE_JOB: put_job(s, e->job_id); break;
		case FX_PERSIST_NODE: put_node(s, e->node_index); break;
		case FX_PERSIST_NEXT_ID: put_add(s, STORE_META, STORE_META_NEXT_JOB_ID, &next, sizeof next); break;
		case FX_LAUNCH_BATCH: launch(s, e); break;
		case FX_TERMINATE: order_nodes(s, e); break;
		case FX_ENDED: ended(s, e); break;
		case FX_TIMER: s->timer_ms = e->time_ms; break;
		case FX_PLAN_MORE: s->plan_more = true; break;
		default: break;
		}
	}
}

static struct core_event event(struct sim *s, enum core_event_type type, uint32_t uid)
{
	return (struct core_event){ .type = type, .token = ++s->token, .by = { .uid = uid, .gid = uid, .oper = uid == 0, .admin = uid == 0, .user = uid ? "alice" : "root", .group = uid ? "users" : "root" } };
}

static void turn_close(struct sim *s)
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

static void configure(struct sim *s)
{
	struct core_event ev = event(s, EV_CONFIG, 0);
	static Pb__NodeRecord rec[NODES];
	static Pb__PartitionRecord part = PB__PARTITION_RECORD__INIT;
	Pb__NodeRecord *list[NODES];
	Pb__PartitionRecord *parts = &part;
	for (uint32_t i = 0; i < NODES; i++) {
		pb__node_record__init(&rec[i]);
		rec[i].name = (char *)node_name[i];
		rec[i].has_cpus = rec[i].has_real_memory = true;
		rec[i].cpus = CPUS;
		rec[i].real_memory = 8000;
		list[i] = &rec[i];
	}
	part.name = (char *)"main";
	part.nodes = (char *)"n[0-7]";
	part.has_is_default = part.is_default = true;
	ev.config.params = &s->params;
	ev.config.node = list;
	ev.config.nodes = NODES;
	ev.config.part = &parts;
	ev.config.parts = 1;
	step(s, &ev);
}

/* Every job that somebody was told of is there, or its end was told or seen. */
static void audit_restored(struct sim *s)
{
	for (uint32_t id = 1; id <= s->highest; id++) {
		struct told *t = &s->told[id];
		if (t->id && !t->final && !core_job_find(s->core, id))
			wrong(s, "an acknowledged job is lost", id, 0);
	}
}

static void controller_start(struct sim *s)
{
	void *data = NULL;
	size_t len;
	uint32_t next = 0;
	struct error err = { 0 };
	s->core = core_create();
	s->down = false;
	configure(s);
	batch_free(s->open);
	s->open = NULL;
	(void)store_scan(s->store, STORE_JOB, restore_one, &(struct restoring){ s, EV_RESTORE_JOB }, &err);
	(void)store_scan(s->store, STORE_NODE, restore_one, &(struct restoring){ s, EV_RESTORE_NODE }, &err);
	if (!store_get(s->store, STORE_META, STORE_META_NEXT_JOB_ID, &data, &len, &err))
		memcpy(&next, data, sizeof next);
	free(data);
	struct core_event ev = event(s, EV_RESTORE_DONE, 0);
	ev.restored.next_job_id = next;
	step(s, &ev);
	turn_close(s);
	audit_restored(s);
	for (uint32_t i = 0; i < NODES; i++) {
		s->node[i].known = false;
		s->node[i].register_at = s->now + draw(s, 3000);
		s->node[i].silent_since = 0;
	}
}

static void controller_kill(struct sim *s)
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
	s->submit_token = 0;
}

/* --- what leaves after the commit ----------------------------------------------------------------- */

static struct told *told(struct sim *s, uint32_t id)
{
	if (id >= JOBS_MAX)
		wrong(s, "more jobs than the simulation has room for", id, 0);
	if (id > s->highest)
		s->highest = id;
	return &s->told[id];
}

static void act_run(struct sim *s, const struct act *a)
{
	struct told *t = a->job_id ? told(s, a->job_id) : NULL;
	struct msg m = { .kind = M_ACK_REPORT, .node = a->node, .report = a->report, .boot = a->boot };
	static const char *const said[] = { "reply: node %u run %u", "launch on node %u, run %u", "terminate on node %u, run %u", "end is told: %u run %u", "report is acknowledged to node %u, run %u", "node %u is registered" };
	if (a->job_id)
		story(s, a->job_id, said[a->kind], a->node, a->restarts);
	switch (a->kind) {
	case A_REPLY:
		if (t->id)
			wrong(s, "a job id is given twice", a->job_id, 0);
		t->id = a->job_id;
		s->accepted++;
		break;
	case A_ENDED:
		if (t->ended == a->restarts + 1)
			wrong(s, "an end is told twice", a->job_id, a->restarts);
		t->ended = a->restarts + 1;
		break;
	case A_LAUNCH:
	case A_TERMINATE:
		s->order = xgrow(s->order, &s->order_cap, s->orders + 1, sizeof *s->order);
		s->order[s->orders++] = (struct order){ ++s->order_id, a->node, a->job_id, a->restarts, a->cpus, a->kind == A_LAUNCH, s->now };
		break;
	case A_REGISTERED:
		m.kind = M_REGISTERED;
		/* fall through */
	case A_ACK: post(s, &m); break;
	}
}

/* A job that is on disk as ended may be forgotten. */
static void note_final(struct sim *s, const struct batch *b)
{
	for (size_t i = 0; i < b->puts; i++) {
		if (b->put[i].table != STORE_JOB)
			continue;
		struct told *t = told(s, (uint32_t)b->put[i].key);
		Pb__JobRecord *r = b->put[i].data ? pb__job_record__unpack(NULL, b->put[i].len, b->put[i].data) : NULL;
		if (!b->put[i].data && t->id && !t->final)
			wrong(s, "a job that has not ended is forgotten", (uint32_t)b->put[i].key, 0);
		t->final = !r || job_state_is_final(r->state);
		if (r)
			pb__job_record__free_unpacked(r, NULL);
	}
}

/* The disk takes the oldest batch; what waited for it leaves, one by one, unless the controller dies between. */
static void disk(struct sim *s)
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
	note_final(s, b);
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

/* Is an order still meant (agent.c asks the same before it says it again)? */
static bool wanted(struct sim *s, const struct order *o)
{
	Pb__JobRecord *r = job_record(s, o->job_id);
	bool yes = r && (!o->launch || (r->state == PB__JOB_STATE__RUNNING && r->restarts == o->restarts && r->alloc && str_eq(r->alloc->batch_host, node_name[o->node])));
	if (r)
		pb__job_record__free_unpacked(r, NULL);
	return yes;
}

static void agent(struct sim *s)
{
	for (size_t i = 0; i < s->orders;)
		if (s->order[i].again <= s->now && !wanted(s, &s->order[i]))
			s->order[i] = s->order[--s->orders];
		else
			i++;
	for (size_t i = 0; i < s->orders; i++) {
		struct order *o = &s->order[i];
		struct msg m = { .kind = o->launch ? M_LAUNCH : M_TERMINATE, .node = o->node, .job_id = o->job_id, .restarts = o->restarts, .order = o->id, .cpus = o->cpus, .boot = s->node[o->node].boot };
		if (o->again > s->now)
			continue;
		o->again = s->now + REPEAT_MS;
		post(s, &m);
	}
}

/* --- nodes ---------------------------------------------------------------------------------------- */

static bool had(const struct node *n, const struct msg *m)
{
	for (size_t i = 0; i < n->pasts; i++)
		if (n->past[i].job_id == m->job_id && n->past[i].restarts == m->restarts)
			return true;
	return false;
}

static void past_add(struct node *n, uint32_t job_id, uint32_t restarts)
{
	if (n->pasts == RUNS_MAX * 4) {
		memmove(n->past, n->past + 1, (n->pasts - 1) * sizeof *n->past);
		n->pasts--;
	}
	n->past[n->pasts++] = (struct alive){ job_id, restarts };
}

static void report_add(struct sim *s, struct node *n, uint32_t job_id, uint32_t restarts, bool epilog, uint32_t status)
{
	if (n->reports == RUNS_MAX * 2)
		wrong(s, "a node has too many reports", job_id, 0);
	n->report[n->reports++] = (struct report){ ++s->report_id, job_id, restarts, status, epilog, !epilog, s->now };
}

/* The run begins: the auditor counts. */
static void run_start(struct sim *s, struct node *n, const struct msg *m)
{
	struct told *t = told(s, m->job_id);
	uint32_t used = m->cpus;
	if (t->launched >= m->restarts + 1)
		wrong(s, "a run is started twice", m->job_id, m->restarts);
	story(s, m->job_id, "run %u starts on node %u", m->restarts, m->node);
	t->launched = m->restarts + 1;
	for (size_t i = 0; i < n->runs; i++)
		used += n->run[i].cpus;
	for (size_t i = 0; used > CPUS && i < n->runs; i++)
		story(s, 0, "there runs job %u, run %u", n->run[i].job_id, n->run[i].restarts);
	if (used > CPUS)
		wrong(s, "a node has more CPUs in use than it has", m->job_id, used);
	for (uint32_t k = 0; k < NODES; k++)
		for (size_t i = 0; i < s->node[k].runs; i++)
			if (s->node[k].run[i].job_id == m->job_id && s->node[k].alive && !s->node[k].silent_since)
				wrong(s, "two runs of a job at once", m->job_id, m->restarts);
	if (n->runs == RUNS_MAX)
		wrong(s, "a node has too many runs", m->job_id, 0);
	n->run[n->runs++] = (struct run){ m->job_id, m->restarts, m->cpus, s->now + 1000 + draw(s, 900000), false };
	past_add(n, m->job_id, m->restarts);
	s->launches++;
}

static void node_order(struct sim *s, uint32_t at, const struct msg *m)
{
	struct node *n = &s->node[at];
	struct msg ack = { .kind = M_ACK_ORDER, .node = at, .order = m->order, .job_id = m->job_id, .restarts = m->restarts };
	if (m->kind == M_LAUNCH && n->rebooted)
		return; /* a slurmd that has not registered knows no key to believe an order by */
	if (m->kind == M_LAUNCH && !had(n, m))
		run_start(s, n, m);
	if (m->kind == M_TERMINATE) {
		bool here = false;
		for (size_t i = 0; i < n->runs; i++)
			if (n->run[i].job_id == m->job_id && n->run[i].restarts <= m->restarts) {
				n->run[i].ends = n->run[i].ending ? n->run[i].ends : s->now + draw(s, 2000);
				n->run[i].ending = here = true;
			}
		for (size_t i = 0; i < n->reports; i++)
			here = here || (n->report[i].job_id == m->job_id && n->report[i].restarts == m->restarts);
		if (!had(n, m))
			past_add(n, m->job_id, m->restarts); /* a launch that comes later is refused */
		ack.gone = !here;
	}
	post(s, &ack);
}

static void node_register(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	struct alive list[RUNS_MAX];
	for (size_t i = 0; i < n->runs; i++)
		list[i] = (struct alive){ n->run[i].job_id, n->run[i].restarts };
	struct msg m = { .kind = M_REGISTER, .node = at, .boot = n->boot, .rebooted = n->rebooted, .started = n->started, .alive = list, .n_alive = n->runs };
	n->register_at = s->now + REPEAT_MS + LATE_MS;
	post(s, &m);
}

static void node_lives(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	for (size_t i = 0; i < n->runs;) {
		if (n->run[i].ends > s->now) {
			i++;
			continue;
		}
		story(s, n->run[i].job_id, "run %u is over on node %u", n->run[i].restarts, at);
		report_add(s, n, n->run[i].job_id, n->run[i].restarts, false, n->run[i].ending ? 15 : draw(s, 10) ? 0 : 256);
		n->run[i] = n->run[--n->runs];
	}
	for (size_t i = 0; i < n->reports; i++) {
		struct report *r = &n->report[i];
		struct msg m = { .kind = M_REPORT, .node = at, .boot = n->boot, .job_id = r->job_id, .restarts = r->restarts, .status = r->status, .report = r->id, .clean = r->clean, .epilog = r->epilog };
		if (r->again > s->now)
			continue;
		r->again = s->now + REPEAT_MS;
		post(s, &m);
	}
	if (!n->known && n->register_at <= s->now)
		node_register(s, at);
}

static void node_die(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	story(s, 0, "node %u dies", at, 0);
	n->alive = n->known = false;
	n->runs = n->reports = n->pasts = 0;
	n->boot++;
}

static void node_boot(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	story(s, 0, "node %u boots", at, 0);
	n->alive = n->rebooted = true;
	n->started = s->now;
	n->register_at = s->now + draw(s, 2000);
}

/* --- what reaches the controller ------------------------------------------------------------------- */

static void on_report(struct sim *s, const struct msg *m)
{
	struct core_event ev = event(s, EV_NODE_EVENT, 0);
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	story(s, m->job_id, "node %u reports the end of run %u", m->node, m->restarts);
	e.kind = m->epilog ? PB__NODE_EVENT__KIND__EPILOG_DONE : PB__NODE_EVENT__KIND__BATCH_DONE;
	e.has_job_id = e.has_restarts = e.has_status = e.has_clean = true;
	e.job_id = m->job_id;
	e.restarts = m->restarts;
	e.status = m->status;
	e.clean = m->clean;
	ev.node_event.node = node_name[m->node];
	ev.node_event.event = &e;
	step(s, &ev);
	act_add(s, (struct act){ .kind = A_ACK, .node = m->node, .report = m->report, .boot = m->boot });
}

static void on_register(struct sim *s, const struct msg *m)
{
	struct core_event ev = event(s, EV_NODE_REGISTER, 0);
	Pb__NodeRegisterReq q = PB__NODE_REGISTER_REQ__INIT;
	Pb__NodeRecord rec = PB__NODE_RECORD__INIT;
	Pb__StepAlive step_of[RUNS_MAX], *list[RUNS_MAX];
	if (s->node[m->node].boot != m->boot) /* its connection died with it */
		return;
	rec.name = (char *)node_name[m->node];
	rec.has_slurmd_start_time = true;
	rec.slurmd_start_time = m->started / 1000;
	q.node = &rec;
	q.has_rebooted = true;
	q.rebooted = m->rebooted;
	for (size_t i = 0; i < m->n_alive; i++) {
		pb__step_alive__init(&step_of[i]);
		step_of[i].job_id = m->alive[i].job_id;
		step_of[i].step_id = 0xfffffffb;
		step_of[i].has_restarts = true;
		step_of[i].restarts = m->alive[i].restarts;
		list[i] = &step_of[i];
	}
	q.step = list;
	q.n_step = m->n_alive;
	ev.node_register = &q;
	story(s, 0, "node %u registers, rebooted %u", m->node, m->rebooted);
	step(s, &ev);
	act_add(s, (struct act){ .kind = A_REGISTERED, .node = m->node, .boot = m->boot });
}

static void on_ack_order(struct sim *s, const struct msg *m)
{
	for (size_t i = 0; i < s->orders; i++) {
		struct order o = s->order[i];
		if (o.id != m->order)
			continue;
		s->order[i] = s->order[--s->orders];
		if (o.launch) {
			struct core_event ev = event(s, EV_LAUNCH_RESULT, 0);
			ev.launch.job_id = o.job_id;
			ev.launch.restarts = o.restarts;
			ev.launch.node = node_name[o.node];
			step(s, &ev);
		} else if (m->gone) {
			struct msg r = { .node = o.node, .job_id = o.job_id, .restarts = o.restarts, .epilog = true };
			on_report(s, &r);
		}
		return;
	}
}

static void on_ack_report(struct sim *s, const struct msg *m)
{
	struct node *n = &s->node[m->node];
	for (size_t i = 0; i < n->reports; i++)
		if (n->report[i].id == m->report) {
			n->report[i] = n->report[--n->reports];
			return;
		}
}

static void deliver(struct sim *s, const struct msg *m)
{
	bool to_node = m->kind == M_LAUNCH || m->kind == M_TERMINATE || m->kind == M_ACK_REPORT || m->kind == M_REGISTERED;
	if (to_node ? !s->node[m->node].alive || s->node[m->node].boot != m->boot : s->down) /* a connection dies with either end */
		return;
	switch (m->kind) {
	case M_LAUNCH:
	case M_TERMINATE: node_order(s, m->node, m); break;
	case M_ACK_REPORT: on_ack_report(s, m); break;
	case M_REGISTERED:
		if (s->node[m->node].boot == m->boot) {
			s->node[m->node].known = true;
			s->node[m->node].rebooted = false;
		}
		break;
	case M_REPORT: on_report(s, m); break;
	case M_REGISTER: on_register(s, m); break;
	case M_ACK_ORDER: on_ack_order(s, m); break;
	}
}

static void contact(struct sim *s, uint32_t at, bool responding)
{
	struct core_event ev = event(s, EV_NODE_CONTACT, 0);
	ev.contact.node = node_name[at];
	ev.contact.responding = responding;
	step(s, &ev);
}

/* Pings: a dead node is noticed; orders to it are given up when the core gives it up. */
static void pings(struct sim *s)
{
	for (uint32_t i = 0; i < NODES; i++) {
		struct node *n = &s->node[i];
		if (!n->alive && !n->silent_since) {
			n->silent_since = s->now;
			contact(s, i, false);
		} else if (n->alive && n->known && n->silent_since) {
			n->silent_since = 0;
			contact(s, i, true);
		}
		for (size_t k = 0; !core_node_is_up(s->core, i) && k < s->orders;)
			if (s->order[k].node == i)
				s->order[k] = s->order[--s->orders];
			else
				k++;
	}
}

/* --- users ---------------------------------------------------------------------------------------- */

static uint32_t any_job(struct sim *s) { return s->highest ? 1 + draw(s, s->highest) : 1; }

static void submit(struct sim *s)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	uint8_t key[16] = { 0 }, hash[32] = { 0 };
	char dep[40];
	struct core_event ev = event(s, EV_SUBMIT, 1001);
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
	if (draw(s, 12) == 0) {
		snprintf(dep, sizeof dep, "afterany:%u", any_job(s));
		d.dependency = dep;
	}
	d.array = (char *)(draw(s, 20) ? NULL : "0-3%2");
	ev.submit.desc = &d;
	ev.submit.idem_key = key;
	ev.submit.idem_hash = hash;
	s->submit_token = ev.token;
	step(s, &ev);
}

static void operate(struct sim *s)
{
	static const Pb__JobOpReq__Op ops[] = { PB__JOB_OP_REQ__OP__HOLD, PB__JOB_OP_REQ__OP__RELEASE, PB__JOB_OP_REQ__OP__REQUEUE, PB__JOB_OP_REQ__OP__RELEASE };
	char id[24];
	snprintf(id, sizeof id, "%u", any_job(s));
	if (draw(s, 2)) {
		struct core_event ev = event(s, EV_JOB_OP, 0);
		Pb__JobOpReq q = PB__JOB_OP_REQ__INIT;
		q.op = ops[draw(s, 4)];
		q.id = id;
		ev.job_op = &q;
		step(s, &ev);
	} else {
		struct core_event ev = event(s, EV_KILL, 0);
		Pb__KillReq q = PB__KILL_REQ__INIT;
		char *list = id;
		q.id = &list;
		q.n_id = 1;
		ev.kill = &q;
		step(s, &ev);
	}
}

static void update(struct sim *s)
{
	static const char *const set[][2] = { { "TimeLimit", "5" }, { "TimeLimit", "+3" }, { "Priority", "77" }, { "NumNodes", "2" }, { "Nice", "5" }, { "Dependency", "" }, { "Comment", "c" } };
	struct core_event ev = event(s, EV_JOB_UPDATE, 0);
	uint32_t k = draw(s, sizeof set / sizeof set[0]);
	Pb__KeyValue kv = PB__KEY_VALUE__INIT, *list = &kv;
	Pb__JobUpdateReq q = PB__JOB_UPDATE_REQ__INIT;
	char id[24], *ids = id;
	snprintf(id, sizeof id, "%u", any_job(s));
	kv.key = (char *)set[k][0];
	kv.value = (char *)set[k][1];
	q.id = &ids;
	q.n_id = 1;
	q.set = &list;
	q.n_set = 1;
	ev.job_update = &q;
	step(s, &ev);
}

static void users(struct sim *s)
{
	uint32_t k = draw(s, 100);
	if (s->full || k >= 40) /* while the store fails changes are refused before they reach the core */
		return;
	if (k < 26)
		submit(s);
	else if (k < 34)
		operate(s);
	else
		update(s);
}

/* --- time ------------------------------------------------------------------------------------------ */

static void misfortunes(struct sim *s)
{
	uint32_t n = draw(s, NODES);
	if (chance(s, 6))
		s->full = !s->full;
	else if (s->full && chance(s, 200))
		s->full = false;
	if (chance(s, 6) && s->node[n].alive)
		node_die(s, n);
	else if (!s->node[n].alive && draw(s, 10) == 0)
		node_boot(s, n);
	if (s->clock <= s->now && chance(s, 4))
		s->clock += draw(s, 20000);  /* the controller's clock runs ahead; time catches up with it */
	if (chance(s, 10) && !s->down)
		controller_kill(s);
	if (s->down && draw(s, 4) == 0)
		controller_start(s);
}

static void network(struct sim *s)
{
	for (size_t round = 0; round < 100000; round++) {
		size_t best = SIZE_MAX;
		for (size_t i = 0; i < s->msgs; i++)
			if (s->msg[i].at <= s->now && (best == SIZE_MAX || s->msg[i].at < s->msg[best].at || (s->msg[i].at == s->msg[best].at && s->msg[i].seq < s->msg[best].seq)))
				best = i;
		if (best == SIZE_MAX)
			return;
		struct msg m = s->msg[best];
		s->msg[best] = s->msg[--s->msgs];
		deliver(s, &m);
		free(m.alive);
		if (!s->down && chance(s, 2))
			controller_kill(s);
	}
}

static void tick(struct sim *s, uint64_t ms)
{
	for (size_t i = 0; i < s->msgs; i++) /* not past what is on its way: late is a few seconds, not more */
		ms = s->msg[i].at < s->now + ms ? (s->msg[i].at > s->now ? s->msg[i].at - s->now : 1) : ms;
	s->now += ms;
	for (uint32_t i = 0; i < NODES; i++)
		if (s->node[i].alive)
			node_lives(s, i);
	network(s);
	if (s->down)
		return;
	pings(s);
	if (s->timer_ms && s->timer_ms <= s->now) {
		struct core_event ev = event(s, EV_TIMER, 0);
		s->timer_ms = 0;
		step(s, &ev);
	}
	if (s->plan_more) {
		struct core_event ev = event(s, EV_PLAN, 0);
		s->plan_more = false;
		ev.plan.budget = 50;
		step(s, &ev);
	}
	turn_close(s);
	for (uint32_t i = 0; i < 8 && !s->down; i++)
		disk(s);
	if (!s->down)
		agent(s);
}

/* What could run and has not ended; it must have a reason while it waits. */
static uint32_t left_over(struct sim *s, bool show)
{
	uint32_t left = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->core, &cur);
		Pb__JobVolatile v;
		if (!j)
			return left;
		core_job_volatile(s->core, j, &v);
		if (core_job_is_finished(j))
			continue;
		bool waits_for_room = v.reason == REASON_RESOURCES || v.reason == REASON_PRIORITY || v.reason == REASON_NONE || v.reason == REASON_CLEANING;
		left += core_job_is_running(j) || waits_for_room;
		Pb__JobRecord *r = show ? job_record(s, core_job_id(j)) : NULL;
		if (show && (core_job_is_running(j) || waits_for_room))
			printf("job %u is %s (%s), restarts %u, on %s\n", core_job_id(j), job_state_name(r->state, r->state_flags), reason_name(v.reason), r->restarts, r->alloc && r->alloc->batch_host ? r->alloc->batch_host : "-");
		if (r)
			pb__job_record__free_unpacked(r, NULL);
	}
}

static void node_resume(struct sim *s, uint32_t i)
{
	struct core_event ev = event(s, EV_NODE_UPDATE, 0);
	Pb__NodeUpdateReq q = PB__NODE_UPDATE_REQ__INIT;
	Pb__KeyValue kv = PB__KEY_VALUE__INIT, *list = &kv;
	kv.key = (char *)"State";
	kv.value = (char *)"RESUME";
	q.nodes = (char *)node_name[i];
	q.set = &list;
	q.n_set = 1;
	ev.node_update = &q;
	step(s, &ev);
}

static uint32_t heal(struct sim *s)
{
	uint32_t left = 1;
	s->faults = s->full = false;
	if (s->down)
		controller_start(s);
	for (uint32_t i = 0; i < NODES; i++)
		if (!s->node[i].alive)
			node_boot(s, i);
	for (uint32_t i = 0; i < 30; i++)
		tick(s, 1000);
	for (uint32_t i = 0; i < NODES; i++)
		node_resume(s, i);
	for (uint32_t i = 0; i < 60000 && left; i++) {
		tick(s, 1000);
		left = i % 50 ? left : left_over(s, false);
	}
	if (left)
		(void)left_over(s, true);
	return left;
}

static void sim_free(struct sim *s)
{
	if (!s->down)
		controller_kill(s);
	for (size_t i = 0; i < s->msgs; i++)
		free(s->msg[i].alive);
	free(s->msg);
	free(s->order);
	free(s->told);
	effects_destroy(s->fx);
	store_close(s->store);
}

uint64_t faults_seed(uint64_t seed, uint64_t events, bool loud)
{
	struct sim *s = xcalloc(1, sizeof *s);
	s->random = seed * 0x9e3779b97f4a7c15ull + 1;
	s->now = s->clock = 1000000000ull * 1000;
	s->fx = effects_create();
	s->store = store_open_memory();
	s->last = &s->first;
	s->told = xcalloc(JOBS_MAX, sizeof *s->told);
	s->faults = true;
	s->params = (struct core_params){ .cluster = "faults", .first_job_id = 1, .max_job_id = 67043328, .max_job_count = 10000, .max_array_size = 1001, .min_job_age_sec = 60,
		.kill_wait_sec = 30, .slurmd_timeout_sec = 30, .max_step_count = 40000, .return_to_service = 2, .job_requeue = true, .select_cores = true,
		.backfill = seed % 4 != 3, .bf_window_min = 1440, .bf_resolution_sec = 60, .bf_reserve = seed % 3, .bf_order = (uint32_t)(seed / 3 % 3), .node_steps_clean = true, .gres_types = "" };
	for (uint32_t i = 0; i < NODES; i++)
		s->node[i].alive = true;
	controller_start(s);
	while (s->steps < events) {
		tick(s, 1 + draw(s, draw(s, 4) ? 300 : 30000));
		if (!s->down)
			users(s);
		misfortunes(s);
	}
	uint32_t left = heal(s);
	uint64_t steps = s->steps;
	if (loud || left)
		printf("seed %llu: %llu events, %llu jobs accepted, %llu runs started, controller killed %llu times, %u left over\n", (unsigned long long)seed,
			(unsigned long long)s->steps, (unsigned long long)s->accepted, (unsigned long long)s->launches, (unsigned long long)s->kills, left);
	sim_free(s);
	free(s);
	if (left)
		exit(1);
	return steps;
}
