/* core.c - the core's entrance: one event in, effects out
 * The table below is the map: which file answers which event. After each event the queue gets one quick pass (schedule.c)
 * if anything could start. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/reserve.h"

#define PASS_BUDGET 64          /* placements tried after one event; the rest waits for EV_PLAN */

typedef void (*event_fn)(struct core *c, const struct core_event *ev);

uint32_t atom_find(const struct core *c, const char *text)
{
	struct atom *a;
	if (!text || !text[0])
		return 0;
	HASH_FIND(hh, c->atoms, text, strlen(text), a);
	return a ? a->id : UINT32_MAX;
}

uint32_t atom_get(struct core *c, const char *text)
{
	uint32_t id = atom_find(c, text);
	if (id != UINT32_MAX)
		return id;
	size_t n = strlen(text);
	struct atom *a = xcalloc(1, sizeof *a + n + 1);
	memcpy(a->text, text, n);
	c->atom_of = xgrow(c->atom_of, &c->atom_cap, c->atom_n + 2, sizeof *c->atom_of);
	a->id = (uint32_t)++c->atom_n;
	c->atom_of[a->id] = a;
	HASH_ADD_KEYPTR(hh, c->atoms, a->text, n, a);
	return a->id;
}

const char *atom_text(const struct core *c, uint32_t id)
{
	assert(id <= c->atom_n);
	return id ? c->atom_of[id]->text : NULL;
}

ProtobufCMessage *message_copy(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *b = xmalloc(len + 1);
	protobuf_c_message_pack(m, b);
	ProtobufCMessage *ret = protobuf_c_message_unpack(m->descriptor, NULL, len, b);
	free(b);
	return ret;
}

struct core *core_create(void)
{
	struct core *c = xcalloc(1, sizeof *c);
	c->next_id = 1;
	c->scratch_fx = effects_create();
	return c;
}

static void lists_free(struct core *c)
{
	struct atom *a, *at;
	struct node_name *n, *nt;
	HASH_ITER(hh, c->atoms, a, at) {
		HASH_DEL(c->atoms, a);
		free(a);
	}
	HASH_ITER(hh, c->node_by_name, n, nt) {
		HASH_DEL(c->node_by_name, n);
		free(n);
	}
	idem_free_all(c);
	predict_free(c);
	step_waits_free(c);
	drains_free(c);
}

void core_destroy(struct core *c)
{
	if (!c)
		return;
	array_free_all(c);
	het_free_all(c);
	resv_free_all(c);
	job_free_all(c);
	shape_free_all(c);
	for (uint32_t i = 0; i < c->node_n; i++)
		node_destroy(c->node[i]);
	parts_free(c);
	topologies_free(c);
	acct_free(c->acct);
	if (c->usage.kept)
		pb__acct_usage__free_unpacked(c->usage.kept, NULL);
	params_free(&c->params);
	struct bitset *set[] = { c->up, c->roomy, c->idle, c->promised, c->scratch, c->scratch2, c->gained };
	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
		bitset_destroy(set[i]);
	lists_free(c);
	future_free(c->future);
	hostlist_fini(&c->answering);
	effects_destroy(c->scratch_fx);
	void *mem[] = { c->atom_of, c->node, c->weight_order, c->heap, c->unpromised, (void *)c->promises, c->sweep, c->change, c->gain, c->seen, c->timer, c->lic, (void *)c->lic_promise, (void *)c->lic_holder, c };
	for (size_t i = 0; i < sizeof mem / sizeof mem[0]; i++)
		free(mem[i]);
}

static void config_event(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	int r = config_apply(c, ev, &err);
	if (r < 0)
		fx_log(c, LOG_L_ERROR, "configuration not taken over: %s", err.line);
	else if (c->acct)
		acct_reload(c, NULL);
	fx_result(c, ev->token, &err, 0);
}

static void timer_event(struct core *c, const struct core_event *ev)
{
	struct timer t;
	c->timer_asked = 0;
	while (timer_pop(c, &t)) {
		struct core_job *j = NULL;
		switch ((enum timer_kind)t.kind) {
		case TIMER_PROMISE:
			c->sweep_timer = false;
			c->sched_wanted = true;
			break;
		case TIMER_BEGIN:
			if ((j = job_find(c, t.id)))
				queue_update(c, j);
			break;
		case TIMER_LIMIT:
			if ((j = job_find(c, t.id)))
				job_timer(c, j);
			break;
		case TIMER_STEP:
			if ((j = job_find(c, t.id)))
				step_timer(c, j, t.sub);
			break;
		case TIMER_NODE: node_timer(c, t.id); break;
		case TIMER_PURGE:
		case TIMER_IDEM:
			c->purge_ms = c->purge_ms <= c->now_ms ? 0 : c->purge_ms;
			c->idem_ms = c->idem_ms <= c->now_ms ? 0 : c->idem_ms;
			life_purge(c);
			break;
		case TIMER_ANSWERS: nodes_tell_answering(c); break;
		case TIMER_STEP_WAIT: step_waits_timer(c); break;
		case TIMER_RESV: resv_tick(c); break;
		case TIMER_GANG: gang_tick(c); break;
		case TIMER_USAGE: usage_tick(c); break;
		}
	}
	(void)ev;
}

static void plan_event(struct core *c, const struct core_event *ev)
{
	c->planning = true;
	c->plan_asked = false;
	sched_run(c, ev->plan.budget);
	c->planning = false;
}

static const event_fn event_table[] = {
	[EV_CONFIG] = config_event,
	[EV_RESTORE_JOB] = record_restore,
	[EV_RESTORE_NODE] = node_restore,
	[EV_RESTORE_DONE] = record_restored,
	[EV_SUBMIT] = submit,
	[EV_KILL] = kill_jobs,
	[EV_JOB_OP] = job_operate,
	[EV_JOB_UPDATE] = job_update,
	[EV_NODE_UPDATE] = node_update,
	[EV_PART_UPDATE] = part_update,
	[EV_STEP_CREATE] = step_create,
	[EV_STEP_DONE] = step_done_event,
	[EV_STEP_GIVE_UP] = step_give_up,
	[EV_STEPS_DRAIN] = drain_ask,
	[EV_JOB_DONE] = life_job_done,
	[EV_NODE_REGISTER] = node_register,
	[EV_NODE_EVENT] = node_event,
	[EV_NODE_CONTACT] = node_contact,
	[EV_LAUNCH_RESULT] = life_launch_result,
	[EV_TIMER] = timer_event,
	[EV_RESTORE_RESV] = resv_restore,
	[EV_RESV] = resv_update,
	[EV_SCRIPT_DONE] = configure_script_done,
	[EV_ACCT] = acct_event,
	[EV_RESTORE_USAGE] = usage_restore,
	[EV_PLAN] = plan_event,
};

void core_step(struct core *c, const struct core_event *ev, struct effects *fx)
{
	assert((size_t)ev->type < sizeof event_table / sizeof event_table[0]);
	assert(ev->type == EV_CONFIG || c->configured);
	if (ev->time_ms > c->now_ms)
		c->now_ms = ev->time_ms; /* a clock set back does not turn time back in here */
	c->fx = fx;
	c->ended = ev->ended;
	c->ended_n = ev->ended_n;
	c->restoring = ev->type == EV_RESTORE_JOB || ev->type == EV_RESTORE_NODE || ev->type == EV_RESTORE_RESV || ev->type == EV_RESTORE_USAGE;
	event_table[ev->type](c, ev);
	if (!c->restoring && c->resv_look)
		resv_settle(c);
	if (!c->restoring && c->sched_wanted && !ev->more)
		sched_run(c, PASS_BUDGET);
	if (!c->restoring && c->gang_wanted)
		gang_settle(c);
	if (!c->restoring)
		timer_ask(c);
	c->restoring = false;
	c->ended = NULL;
	c->ended_n = 0;
	c->fx = NULL;
}
