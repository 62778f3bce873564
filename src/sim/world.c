/* world.c - see world.h */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hostlist.h"
#include "model/states.h"
#include "model/stepid.h"
#include "proto/agent.pb-c.h"
#include "sim/world.h"
#include <uthash.h>

#define STOPPED_MS (1ull << 60)  /* and what is left of it: of a script that is suspended */
enum what { W_BATCH_DONE, W_EPILOG, W_PROLOG, W_SCRIPT, W_STARTED };
struct world_event { struct world_event *next; uint64_t at_ms; enum what what; uint32_t job_id, restarts, status; size_t node; };
#define NO_NODE SIZE_MAX
struct kept { UT_hash_handle hh; uint32_t id; struct blob b; };
struct answer { UT_hash_handle hh; uint64_t token; ProtobufCMessage *msg; };

static ProtobufCMessage *copy(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *b = xmalloc(len + 1);
	protobuf_c_message_pack(m, b);
	ProtobufCMessage *r = protobuf_c_message_unpack(m->descriptor, NULL, len, b);
	free(b);
	return r;
}

void world_init(struct world *w)
{
	*w = (struct world){ .core = core_create(), .fx = effects_create(), .now_ms = 1000000000ull * 1000, .clean = true, .log = STR_INIT };
	w->params = (struct core_params){
		.cluster = "sim", .first_job_id = 1, .max_job_id = 67043328, .max_job_count = 100000, .max_array_size = 1001, .min_job_age_sec = 300,
		.kill_wait_sec = 30, .slurmd_timeout_sec = 300, .resume_timeout_sec = 60, .max_step_count = 40000, .return_to_service = 1, .requeue_delay_sec = 0, .job_requeue = true,
		.select_cores = true, .select_memory = true, .gather_sec = 30, .backfill = true, .bf_window_min = 1440, .bf_resolution_sec = 60, .bf_max_job_test = 100,
		.def_mem_per_cpu = 100, .node_steps_clean = true, .gres_types = "gpu,shard", .tres_extra = "gres/gpu", .max_switch_wait_sec = 300,
	};
}

static void answers_free(struct world *w)
{
	struct answer *a, *tmp;
	HASH_ITER(hh, w->answers, a, tmp) {
		HASH_DEL(w->answers, a);
		protobuf_c_message_free_unpacked(a->msg, NULL);
		free(a);
	}
}

void world_fini(struct world *w)
{
	struct kept *k, *tmp;
	HASH_ITER(hh, w->kept, k, tmp) {
		HASH_DEL(w->kept, k);
		free(k->b.data);
		free(k);
	}
	answers_free(w);
	if (w->usage)
		pb__acct_usage__free_unpacked(w->usage, NULL);
	if (w->acct)
		pb__acct_snapshot__free_unpacked(w->acct, NULL);
	free(w->requeue_exit[0]);
	free(w->requeue_exit[1]);
	free(w->licenses);
	free(w->tres);
	while (w->queue) {
		struct world_event *e = w->queue;
		w->queue = e->next;
		free(e);
	}
	for (size_t i = 0; i < w->nodes; i++) {
		pb__node_record__free_unpacked(w->node_conf[i], NULL);
		free(w->node[i].name);
		if (w->node_kept)
			free(w->node_kept[i].data);
	}
	for (size_t i = 0; i < w->parts; i++)
		pb__partition_record__free_unpacked(w->part_conf[i], NULL);
	for (size_t i = 0; i < w->topos; i++)
		pb__topology_record__free_unpacked(w->topo_conf[i], NULL);
	free(w->topo_conf);
	free(w->node_conf);
	free(w->part_conf);
	free(w->node);
	free(w->node_kept);
	while (w->resv_kept_n)
		free(w->resv_kept[--w->resv_kept_n].b.data);
	free(w->resv_kept);
	str_fini(&w->log);
	effects_destroy(w->fx);
	core_destroy(w->core);
}

void world_add_node(struct world *w, const Pb__NodeRecord *rec)
{
	w->node_conf = xgrow(w->node_conf, &w->node_cap, w->nodes + 1, sizeof *w->node_conf);
	w->node = xgrow(w->node, &w->nodes_cap, w->nodes + 1, sizeof *w->node);
	w->node_conf[w->nodes] = (Pb__NodeRecord *)copy((const ProtobufCMessage *)rec);
	w->node[w->nodes++] = (struct world_node){ .name = xstrdup(rec->name), .alive = true };
}

void world_add_part(struct world *w, const Pb__PartitionRecord *rec)
{
	w->part_conf = xgrow(w->part_conf, &w->part_cap, w->parts + 1, sizeof *w->part_conf);
	w->part_conf[w->parts++] = (Pb__PartitionRecord *)copy((const ProtobufCMessage *)rec);
}

int world_node(const struct world *w, const char *name)
{
	for (size_t i = 0; i < w->nodes; i++)
		if (!strcmp(w->node[i].name, name))
			return (int)i;
	return -1;
}

const char *world_user(uint32_t uid)
{
	static const char *const name[] = { "alice", "bob", "carol", "dave", "erin" };
	return !uid ? "root" : uid >= 1001 && uid < 1006 ? name[uid - 1001] : "bob";
}

struct core_event world_event(struct world *w, enum core_event_type type, uint32_t uid)
{
	return (struct core_event){ .type = type, .time_ms = w->now_ms, .token = ++w->token,
		.by = { .uid = uid, .gid = uid, .oper = uid == 0, .admin = uid == 0, .user = world_user(uid), .group = uid ? "users" : "root",
			.groups = uid == 1001 ? "users,lab,gpu" : NULL } };
}

static void later(struct world *w, struct world_event e)
{
	struct world_event **at = &w->queue, *n = xcalloc(1, sizeof *n);
	*n = e;
	while (*at && (*at)->at_ms <= e.at_ms)
		at = &(*at)->next;
	n->next = *at;
	*at = n;
}

/* --- effects ---------------------------------------------------------------------------------- */

static void keep_job(struct world *w, uint32_t id)
{
	struct kept *k;
	const struct core_job *j = core_job_find(w->core, id);
	size_t len;
	if (!j)
		return;
	const uint8_t *b = core_job_blob(w->core, j, &len);
	HASH_FIND(hh, w->kept, &id, sizeof id, k);
	if (!k) {
		k = xcalloc(1, sizeof *k);
		k->id = id;
		HASH_ADD(hh, w->kept, id, sizeof id, k);
	}
	free(k->b.data);
	k->b = (struct blob){ xmemdup(b, len), len };
}

static void drop_job(struct world *w, uint32_t id)
{
	struct kept *k;
	HASH_FIND(hh, w->kept, &id, sizeof id, k);
	if (!k)
		return;
	HASH_DEL(w->kept, k);
	free(k->b.data);
	free(k);
}

static void keep_node(struct world *w, uint32_t i)
{
	Pb__NodeRecord *r = core_node_record(w->core, i);
	if (!w->node_kept)
		w->node_kept = xcalloc(w->nodes, sizeof *w->node_kept);
	free(w->node_kept[i].data);
	w->node_kept[i].len = pb__node_record__get_packed_size(r);
	w->node_kept[i].data = xmalloc(w->node_kept[i].len + 1);
	pb__node_record__pack(r, w->node_kept[i].data);
	pb__node_record__free_unpacked(r, NULL);
}

static void drop_resv(struct world *w, uint32_t id)
{
	size_t i = 0;
	while (i < w->resv_kept_n && w->resv_kept[i].id != id)
		i++;
	if (i == w->resv_kept_n)
		return;
	free(w->resv_kept[i].b.data);
	w->resv_kept[i] = w->resv_kept[--w->resv_kept_n];
}

static void keep_resv(struct world *w, uint32_t id)
{
	Pb__ReservationRecord *r = core_resv_by_id(w->core, id);
	drop_resv(w, id);
	if (!r)
		return;
	w->resv_kept = xgrow(w->resv_kept, &w->resv_kept_cap, w->resv_kept_n + 1, sizeof *w->resv_kept);
	struct blob b = { xmalloc(pb__reservation_record__get_packed_size(r) + 1), pb__reservation_record__get_packed_size(r) };
	pb__reservation_record__pack(r, b.data);
	w->resv_kept[w->resv_kept_n].id = id;
	w->resv_kept[w->resv_kept_n++].b = b;
	pb__reservation_record__free_unpacked(r, NULL);
}

static void on_signal(struct world *w, const struct core_effect *e)
{
	const Pb__SignalReq *m = (const Pb__SignalReq *)e->msg;
	w->signal_job = e->job_id;
	w->signal = m->signal;
	w->signals++;
}

static void on_terminate(struct world *w, const struct core_effect *e)
{
	const Pb__TerminateReq *t = (const Pb__TerminateReq *)e->msg;
	struct hostlist hl = HOSTLIST_INIT;
	w->terminates++;
	if (t->has_step_id)
		return;
	(void)hostlist_add(&hl, e->nodes, NULL);
	for (size_t i = 0; i < hl.count; i++) {
		int n = world_node(w, hl.name[i]);
		if (n >= 0 && w->node[n].alive && !w->node[n].no_epilog)
			later(w, (struct world_event){ .at_ms = w->now_ms + w->node[n].epilog_ms, .what = W_EPILOG, .job_id = t->job_id, .restarts = t->restarts, .node = (size_t)n });
	}
	hostlist_fini(&hl);
}

static void on_launch(struct world *w, const struct core_effect *e)
{
	uint32_t sec = w->run_sec ? w->run_sec(w, e->job_id) : 0;
	int n = world_node(w, e->nodes);
	Pb__JobRecord *r = world_job(w, e->job_id);
	w->launches++;
	if (w->params.gang && n >= 0) /* who is to be suspended must have been launched */
		later(w, (struct world_event){ .at_ms = w->now_ms, .what = W_STARTED, .job_id = e->job_id, .restarts = r->restarts, .node = (size_t)n });
	if (sec && n >= 0)
		later(w, (struct world_event){ .at_ms = w->now_ms + sec * 1000ull, .what = W_BATCH_DONE, .job_id = e->job_id, .restarts = r->restarts, .node = (size_t)n });
	pb__job_record__free_unpacked(r, NULL);
}

/* A stopped script ends later by as long as it was stopped. */
static void on_suspend(struct world *w, const Pb__SuspendReq *m)
{
	for (struct world_event **at = &w->queue; *at; at = &(*at)->next) {
		struct world_event *e = *at, copy = *e;
		bool stopped = e->at_ms >= STOPPED_MS;
		if (e->what != W_BATCH_DONE || e->job_id != m->job_id || stopped == m->suspend)
			continue;
		copy.at_ms = m->suspend ? STOPPED_MS + e->at_ms - w->now_ms : w->now_ms + e->at_ms - STOPPED_MS;
		*at = e->next;
		free(e);
		later(w, copy);
		return;
	}
}

static void on_prolog(struct world *w, const struct core_effect *e)
{
	const Pb__PrologReq *m = (const Pb__PrologReq *)e->msg;
	struct hostlist hl = HOSTLIST_INIT;
	assert(!hostlist_add(&hl, e->nodes, NULL) && m->job && m->job->alloc);
	for (size_t i = 0; i < hl.count && !w->no_scripts; i++) {
		int n = world_node(w, hl.name[i]);
		if (n >= 0 && w->node[n].alive)
			later(w, (struct world_event){ .at_ms = w->now_ms + w->script_ms, .what = W_PROLOG, .job_id = m->job_id, .restarts = m->restarts, .node = (size_t)n });
	}
	hostlist_fini(&hl);
}

/* `node` says which of the two, there is none. */
static void on_script(struct world *w, const struct core_effect *e)
{
	w->scripts++;
	if (!w->no_scripts)
		later(w, (struct world_event){ .at_ms = w->now_ms + w->script_ms, .what = W_SCRIPT, .job_id = e->job_id, .restarts = e->value, .status = (uint32_t)w->script_status,
					       .node = e->epilog ? NO_NODE : NO_NODE - 1 });
}

static void on_reply(struct world *w, const struct core_effect *e)
{
	struct answer *a;
	HASH_FIND(hh, w->answers, &e->token, sizeof e->token, a);
	assert(!a); /* every question is answered once */
	a = xcalloc(1, sizeof *a);
	a->token = e->token;
	a->msg = copy(e->msg);
	HASH_ADD(hh, w->answers, token, sizeof a->token, a);
}

static void keep_usage(struct world *w, const ProtobufCMessage *m)
{
	if (w->usage)
		protobuf_c_message_free_unpacked((ProtobufCMessage *)w->usage, NULL);
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *data = xmalloc(len + 1);
	protobuf_c_message_pack(m, data);
	w->usage = pb__acct_usage__unpack(NULL, len, data);
	free(data);
}

static void effects_apply(struct world *w)
{
	for (size_t i = 0; i < effects_count(w->fx); i++) {
		const struct core_effect *e = effects_at(w->fx, i);
		switch (e->type) {
		case FX_REPLY: on_reply(w, e); break;
		case FX_PERSIST_JOB: keep_job(w, e->job_id); break;
		case FX_REMOVE_JOB: drop_job(w, e->job_id); break;
		case FX_PERSIST_NODE: keep_node(w, e->node_index); break;
		case FX_PERSIST_RESV: keep_resv(w, e->value); break;
		case FX_REMOVE_RESV: drop_resv(w, e->value); break;
		case FX_PERSIST_NEXT_ID: w->next_id = e->value; break;
		case FX_PERSIST_USAGE: keep_usage(w, e->msg); break;
		case FX_LAUNCH_BATCH: on_launch(w, e); break;
		case FX_TERMINATE: on_terminate(w, e); break;
		case FX_SUSPEND: on_suspend(w, (const Pb__SuspendReq *)e->msg); break;
		case FX_SIGNAL: on_signal(w, e); break;
		case FX_PROLOG: on_prolog(w, e); break;
		case FX_SCRIPT: on_script(w, e); break;
		case FX_TIMER: w->timer_ms = e->time_ms; break;
		case FX_PLAN_MORE: w->plan_more = true; break;
		case FX_MAIL: str_addf(&w->log, "mail: %s\n", e->text); w->mails++; break;
		case FX_LOG: str_addf(&w->log, "%s\n", e->text); break;
		default: break;
		}
	}
}

static void one(struct world *w, const struct core_event *ev)
{
	effects_reset(w->fx);
	core_step(w->core, ev, w->fx);
	core_check(w->core);
	effects_apply(w);
	w->steps++;
}

static void script_deliver(struct world *w, const struct world_event *e)
{
	struct core_event ev = world_event(w, EV_SCRIPT_DONE, 0);
	ev.token = 0;
	ev.script.job_id = e->job_id;
	ev.script.restarts = e->restarts;
	ev.script.status = (int)e->status;
	ev.script.epilog = e->node == NO_NODE;
	one(w, &ev);
}

static void deliver(struct world *w, const struct world_event *e)
{
	struct core_event ev = world_event(w, EV_NODE_EVENT, 0);
	Pb__NodeEvent m = PB__NODE_EVENT__INIT;
	ev.token = 0;
	if (e->what == W_SCRIPT) {
		script_deliver(w, e);
		return;
	}
	if (!w->node[e->node].alive)
		return;
	m.kind = e->what == W_EPILOG ? PB__NODE_EVENT__KIND__EPILOG_DONE : e->what == W_PROLOG ? PB__NODE_EVENT__KIND__PROLOG_DONE : e->what == W_STARTED ? PB__NODE_EVENT__KIND__STEP_STARTED : PB__NODE_EVENT__KIND__BATCH_DONE;
	m.has_job_id = m.has_restarts = true;
	m.job_id = e->job_id;
	m.restarts = e->restarts;
	m.has_status = true;
	m.status = e->status;
	m.has_clean = true;
	m.clean = w->clean && e->what == W_BATCH_DONE;
	ev.node_event.node = w->node[e->node].name;
	ev.node_event.event = &m;
	one(w, &ev);
}

static void drop_events(struct world *w, size_t node)
{
	for (struct world_event **at = &w->queue; *at;) {
		struct world_event *e = *at;
		if (e->node != node) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
	}
}

/* Everything due at or before now. */
static void settle(struct world *w)
{
	for (uint32_t round = 0; round < 1000000; round++) {
		if (w->queue && w->queue->at_ms <= w->now_ms) {
			struct world_event *e = w->queue;
			w->queue = e->next;
			deliver(w, e);
			free(e);
		} else if (w->timer_ms && w->timer_ms <= w->now_ms) {
			struct core_event ev = world_event(w, EV_TIMER, 0);
			w->timer_ms = 0;
			ev.token = 0;
			one(w, &ev);
		} else if (w->plan_more) {
			struct core_event ev = world_event(w, EV_PLAN, 0);
			w->plan_more = false;
			ev.token = 0;
			ev.plan.budget = 50;
			one(w, &ev);
		} else
			return;
	}
	assert(!"the world does not come to rest");
}

void world_step(struct world *w, const struct core_event *ev)
{
	one(w, ev);
	settle(w);
}

void world_advance(struct world *w, uint64_t to_ms)
{
	for (;;) {
		uint64_t next = to_ms;
		if (w->timer_ms && w->timer_ms < next)
			next = w->timer_ms;
		if (w->queue && w->queue->at_ms < next)
			next = w->queue->at_ms;
		if (next > w->now_ms)
			w->now_ms = next;
		settle(w);
		if (w->now_ms >= to_ms)
			return;
	}
}

const ProtobufCMessage *world_answer(struct world *w, uint64_t token)
{
	struct answer *a;
	HASH_FIND(hh, w->answers, &token, sizeof token, a);
	return a ? a->msg : NULL;
}

/* --- nodes ------------------------------------------------------------------------------------ */

Pb__JobRecord *world_job(struct world *w, uint32_t job_id)
{
	const struct core_job *j = core_job_find(w->core, job_id);
	size_t len;
	if (!j)
		return NULL;
	const uint8_t *b = core_job_blob(w->core, j, &len);
	return pb__job_record__unpack(NULL, len, b);
}

void world_node_kill(struct world *w, size_t i)
{
	struct core_event ev = world_event(w, EV_NODE_CONTACT, 0);
	w->node[i].alive = false;
	drop_events(w, i);
	ev.contact.node = w->node[i].name;
	ev.contact.responding = false;
	world_step(w, &ev);
}

/* What runs there according to the core itself (a node that never died). */
static size_t alive_steps(struct world *w, const char *name, Pb__StepAlive **ret, size_t max)
{
	size_t n = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(w->core, &cur);
		if (!j || n == max)
			break;
		Pb__JobRecord *r = world_job(w, core_job_id(j));
		if (core_job_is_ready(j) && r->alloc && r->alloc->batch_host && !strcmp(r->alloc->batch_host, name) && r->desc->batch && !r->het_offset) {
			ret[n] = xcalloc(1, sizeof **ret);
			pb__step_alive__init(ret[n]);
			ret[n]->job_id = r->job_id;
			ret[n]->step_id = STEP_ID_BATCH;
			ret[n]->has_restarts = true;
			ret[n++]->restarts = r->restarts;
		}
		pb__job_record__free_unpacked(r, NULL);
	}
	return n;
}

void world_node_register(struct world *w, size_t i, bool rebooted, uint64_t started_ms)
{
	struct core_event ev = world_event(w, EV_NODE_REGISTER, 0);
	Pb__NodeRegisterReq q = PB__NODE_REGISTER_REQ__INIT;
	Pb__NodeRecord rec = PB__NODE_RECORD__INIT;
	Pb__StepAlive *alive[256];
	rec.name = w->node[i].name;
	q.node = &rec;
	q.has_rebooted = true;
	q.rebooted = rebooted;
	q.step = alive;
	q.n_step = rebooted || started_ms || !w->node[i].alive ? 0 : alive_steps(w, rec.name, alive, 256);
	if (started_ms) {
		rec.has_slurmd_start_time = true;
		rec.slurmd_start_time = started_ms / 1000;
	}
	w->node[i].alive = true;
	ev.node_register = &q;
	world_step(w, &ev);
	for (size_t k = 0; k < q.n_step; k++)
		free(alive[k]);
}

void world_batch_done(struct world *w, uint32_t job_id, uint32_t status)
{
	Pb__JobRecord *r = world_job(w, job_id);
	int n = r && r->alloc && r->alloc->batch_host ? world_node(w, r->alloc->batch_host) : -1;
	for (struct world_event **at = &w->queue; *at;) { /* its own end, if one was set, is off */
		struct world_event *e = *at;
		if (e->what != W_BATCH_DONE || e->job_id != job_id) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
	}
	if (n >= 0)
		later(w, (struct world_event){ .at_ms = w->now_ms, .what = W_BATCH_DONE, .job_id = job_id, .restarts = r->restarts, .status = status, .node = (size_t)n });
	if (r)
		pb__job_record__free_unpacked(r, NULL);
	settle(w);
}

void world_configure(struct world *w)
{
	struct core_event ev = world_event(w, EV_CONFIG, 0);
	ev.config.params = &w->params;
	ev.config.node = w->node_conf;
	ev.config.nodes = w->nodes;
	ev.config.part = w->part_conf;
	ev.config.parts = w->parts;
	ev.config.topo = w->topo_conf;
	ev.config.topos = w->topos;
	one(w, &ev);
}

void world_acct(struct world *w)
{
	if (!w->started || !w->acct)
		return;
	struct core_event ev = world_event(w, EV_ACCT, 0);
	ev.acct = w->acct;
	world_step(w, &ev);
}

void world_start(struct world *w)
{
	world_configure(w);
	for (size_t i = 0; i < w->nodes; i++)
		if (w->node[i].alive)
			world_node_register(w, i, false, 0);
	w->started = true;
	world_acct(w);
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = (*(struct kept *const *)a)->id, y = (*(struct kept *const *)b)->id;
	return x < y ? -1 : x > y;
}

void world_restart(struct world *w)
{
	size_t n = HASH_COUNT(w->kept), i = 0;
	struct kept **list = xcalloc(n + 1, sizeof *list), *k;
	core_destroy(w->core);
	w->core = core_create();
	w->timer_ms = 0;
	w->plan_more = false;
	drop_events(w, NO_NODE);        /* its scripts are killed with it */
	drop_events(w, NO_NODE - 1);
	answers_free(w);
	world_configure(w);
	if (w->usage) {
		struct core_event ev = world_event(w, EV_RESTORE_USAGE, 0);
		ev.usage = w->usage;
		effects_reset(w->fx);
		core_step(w->core, &ev, w->fx);
	}
	if (w->acct) { /* the store keeps them, too */
		struct core_event ev = world_event(w, EV_ACCT, 0);
		ev.acct = w->acct;
		effects_reset(w->fx);
		core_step(w->core, &ev, w->fx);
		effects_apply(w); /* its timer */
	}
	for (k = w->kept; k; k = k->hh.next)
		list[i++] = k;
	qsort(list, n, sizeof *list, by_id);
	for (i = 0; i < w->resv_kept_n; i++) {
		struct core_event ev = world_event(w, EV_RESTORE_RESV, 0);
		ev.restore.data = w->resv_kept[i].b.data;
		ev.restore.len = w->resv_kept[i].b.len;
		effects_reset(w->fx);
		core_step(w->core, &ev, w->fx);
	}
	for (i = 0; i < n; i++) {
		struct core_event ev = world_event(w, EV_RESTORE_JOB, 0);
		uint8_t *b = xmemdup(list[i]->b.data, list[i]->b.len);
		ev.restore.data = b;
		ev.restore.len = list[i]->b.len;
		effects_reset(w->fx);
		core_step(w->core, &ev, w->fx);
		free(b);
	}
	for (i = 0; i < w->nodes; i++)
		if (w->node_kept && w->node_kept[i].data) {
			struct core_event ev = world_event(w, EV_RESTORE_NODE, 0);
			ev.restore.data = w->node_kept[i].data;
			ev.restore.len = w->node_kept[i].len;
			effects_reset(w->fx);
			core_step(w->core, &ev, w->fx);
		}
	free(list);
	struct core_event ev = world_event(w, EV_RESTORE_DONE, 0);
	ev.restored.next_job_id = w->next_id;
	world_step(w, &ev);
	for (i = 0; i < w->nodes; i++)
		if (w->node[i].alive)
			world_node_register(w, i, false, 0);
}
