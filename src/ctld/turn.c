/* turn.c - see turn.h
 *
 * Invariants: actions leave in the order in which the core's effects came, except those of steps, which do not wait. An action never runs
 * inside core_step or while its effects are read (it may itself give the core an event). The writer gets copies: nothing of the core is
 * touched by another thread. At close each changed record is encoded once, however often the turn changed it. */
#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/acct.h"
#include "ctld/agent.h"
#include "ctld/audit.h"
#include "ctld/commit.h"
#include "ctld/crontab.h"
#include "ctld/reads.h"
#include "ctld/scripts.h"
#include "ctld/mail.h"
#include "ctld/site.h"
#include "ctld/trace.h"
#include "ctld/turn.h"
#include "ctld/waiters.h"

#define TURN_DIRTY_MAX 4096          /* records of one turn; then it closes at once */
#define BACKLOG_MAX (64u << 20)      /* bytes on the way to the disk; then no new calls are read */
#define PLAN_BUDGET 64               /* placements tried between two looks at the sockets */
#define HELD_TIMER_MS 200            /* while the store fails, timers are tried again so often */
#define LAZY_MS 1000                 /* removals that nobody waits for */
#define TRIM_JOBS 512               /* give memory back to the system after so many jobs were forgotten */
#define CLOCK_BACK_MS 2000           /* the wall clock set back by more is not followed */

struct action { turn_fn fn; void *arg; };
struct actions { struct action *at; size_t n, cap; };
struct numbers { uint32_t *at; size_t n, cap; };

struct turns {
	struct ctld *d;
	struct effects *fx;
	struct commit_batch *batch;      /* of the turn that is open */
	struct actions actions;
	struct numbers jobs, nodes, resvs;      /* changed in it; may repeat */
	uint32_t next_job_id;            /* 0: unchanged */
	struct actions *step_out;        /* where turn_after puts actions while a step is worked on */
	uv_check_t check;
	uv_prepare_t prepare;
	uv_idle_t plan;
	uv_timer_t timer, lazy_timer;
	struct commit_batch *lazy;       /* removals that go with the next batch */
	bool plan_wanted, paused;
	size_t forgotten;                /* jobs removed since memory was last given back */
	struct call **calls;
	size_t call_cap;
	struct numbers free_calls;
	uint32_t generation;
};


static uint64_t clock_ms(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The wall clock, but never back, and where it was set back (beyond what ntpd does) onwards by what really passes until slurmctld is started again:
 * limits and retries would stand still for hours otherwise. */
uint64_t ctld_now_ms(void)
{
	static uint64_t last, last_mono;
	uint64_t wall = clock_ms(CLOCK_REALTIME), mono = clock_ms(CLOCK_MONOTONIC), passed = last + (last ? mono - last_mono : 0);
	last_mono = mono;
	return last = wall + CLOCK_BACK_MS < passed ? passed : wall > last ? wall : last;
}

static void numbers_add(struct numbers *n, uint32_t v)
{
	if (n->n && n->at[n->n - 1] == v)
		return;
	n->at = xgrow(n->at, &n->cap, n->n + 1, sizeof *n->at);
	n->at[n->n++] = v;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void numbers_uniq(struct numbers *n)
{
	size_t out = 0;
	qsort(n->at, n->n, sizeof *n->at, by_number);
	for (size_t i = 0; i < n->n; i++)
		if (!out || n->at[out - 1] != n->at[i])
			n->at[out++] = n->at[i];
	n->n = out;
}

static void actions_add(struct actions *a, turn_fn fn, void *arg)
{
	a->at = xgrow(a->at, &a->cap, a->n + 1, sizeof *a->at);
	a->at[a->n++] = (struct action){ fn, arg };
}

static void actions_run(struct ctld *d, struct actions *a)
{
	for (size_t i = 0; i < a->n; i++)
		a->at[i].fn(d, a->at[i].arg);
	free(a->at);
	*a = (struct actions){ 0 };
}

void turn_after(struct ctld *d, turn_fn fn, void *arg)
{
	struct turns *t = d->turns;
	actions_add(t->step_out ? t->step_out : &t->actions, fn, arg);
}

static struct commit_batch *batch_of(struct turns *t)
{
	if (!t->batch)
		t->batch = commit_batch_create();
	return t->batch;
}

void turn_put(struct ctld *d, enum store_table table, uint64_t key, void *data, size_t len)
{
	commit_batch_put_take(batch_of(d->turns), table, key, data, len);
}

void turn_remove(struct ctld *d, enum store_table table, uint64_t key)
{
	commit_batch_remove(batch_of(d->turns), table, key);
}

static void lazy_due(uv_timer_t *h) { (void)batch_of(h->data); }

void turn_remove_lazily(struct ctld *d, enum store_table table, uint64_t key)
{
	struct turns *t = d->turns;
	if (!t->lazy) {
		t->lazy = commit_batch_create();
		uv_timer_start(&t->lazy_timer, lazy_due, LAZY_MS, 0);
	}
	commit_batch_remove(t->lazy, table, key);
}

static void take_lazy(struct turns *t)
{
	if (!t->lazy)
		return;
	for (size_t i = 0; i < t->lazy->puts; i++)
		commit_batch_remove(t->batch, t->lazy->put[i].table, t->lazy->put[i].key);
	commit_batch_destroy(t->lazy);
	t->lazy = NULL;
	uv_timer_stop(&t->lazy_timer);
}

bool turn_open_for_changes(const struct ctld *d) { return !commit_is_failing(d->commit); }

/* --- calls that wait for the core's answer ---------------------------------------------------- */
struct call *call_create(struct ctld *d, struct wire_req *req, call_finish_fn finish)
{
	struct turns *t = d->turns;
	struct call *c = xcalloc(1, sizeof *c);
	if (!t->free_calls.n) {
		size_t old = t->call_cap;
		t->calls = xgrow(t->calls, &t->call_cap, old + 1, sizeof *t->calls);
		for (size_t i = t->call_cap; i-- > old;) {
			t->calls[i] = NULL;
			numbers_add(&t->free_calls, (uint32_t)i);
		}
	}
	uint32_t slot = t->free_calls.at[--t->free_calls.n];
	*c = (struct call){ .req = req, .finish = finish, .token = (uint64_t)++t->generation << 32 | (slot + 1) };
	t->calls[slot] = c;
	return c;
}

static struct call *call_take(struct turns *t, uint64_t token)
{
	uint32_t slot = (uint32_t)token - 1;
	struct call *c = token && slot < t->call_cap ? t->calls[slot] : NULL;
	if (!c || c->token != token)
		return NULL;
	t->calls[slot] = NULL;
	numbers_add(&t->free_calls, slot);
	return c;
}

size_t turn_calls(const struct ctld *d) { return d->turns->call_cap - d->turns->free_calls.n; }
void call_forget(struct ctld *d, uint64_t token) { free(call_take(d->turns, token)); }

static void call_answer(struct turns *t, uint64_t token, const ProtobufCMessage *msg)
{
	struct call *c = call_take(t, token);
	if (!c)
		return;
	c->finish(t->d, c, msg);
	free(c);
}

struct reply { struct wire_req *req; size_t len; uint8_t *data; };

static void reply_send(struct ctld *d, void *arg)
{
	struct reply *r = arg;
	struct wire_piece piece = { r->data, r->len };
	wire_reply_pieces(r->req, &piece, 1, free, r->data);
	free(r);
}

void turn_reply(struct ctld *d, struct wire_req *req, const ProtobufCMessage *msg)
{
	struct reply *r = xmalloc(sizeof *r);
	r->req = req;
	r->len = protobuf_c_message_get_packed_size(msg);
	r->data = xmalloc(r->len);
	protobuf_c_message_pack(msg, r->data);
	turn_after(d, reply_send, r);
}

/* --- effects ---------------------------------------------------------------------------------- */
static void fx_reply(struct turns *t, const struct core_effect *e) { call_answer(t, e->token, e->msg); }
static void fx_persist_job(struct turns *t, const struct core_effect *e) { numbers_add(&t->jobs, e->job_id); }
static void fx_persist_node(struct turns *t, const struct core_effect *e) { numbers_add(&t->nodes, e->node_index); }
static void fx_persist_resv(struct turns *t, const struct core_effect *e) { numbers_add(&t->resvs, e->value); }
static void fx_next_id(struct turns *t, const struct core_effect *e) { t->next_job_id = e->value; }
static void fx_launch(struct turns *t, const struct core_effect *e) { agent_launch(t->d, e); }
static void fx_tell(struct turns *t, const struct core_effect *e) { agent_tell(t->d, e); }
static void fx_prolog(struct turns *t, const struct core_effect *e) { agent_prolog(t->d, e); }
static void fx_account(struct turns *t, const struct core_effect *e) { acct_add(t->d, e); }
static void fx_log(struct turns *t, const struct core_effect *e) { log_at((enum log_level)e->level, "%s", e->text); }

static void fx_allocated(struct turns *t, const struct core_effect *e)
{
	audit_allocated(t->d, e->job_id);
	turn_after(t->d, waiters_allocated, (void *)(uintptr_t)e->job_id);
}

static void fx_ended(struct turns *t, const struct core_effect *e)
{
	audit_ended(t->d, e->job_id);
	if (t->d->crontabs)
		turn_after(t->d, crontab_ended, (void *)(uintptr_t)e->job_id);
	turn_after(t->d, waiters_ended, (void *)(uintptr_t)e->job_id);
}

static void fx_usage(struct turns *t, const struct core_effect *e)
{
	size_t len = protobuf_c_message_get_packed_size(e->msg);
	uint8_t *data = xmalloc(len + 1);
	protobuf_c_message_pack(e->msg, data);
	turn_put(t->d, STORE_META, STORE_META_USAGE, data, len);
}

static void fx_script(struct turns *t, const struct core_effect *e) { site_run(t->d, e); }
static void fx_mail(struct turns *t, const struct core_effect *e) { mail_add(t->d, e); }

static void plan_step(uv_idle_t *h);
static void fx_plan_more(struct turns *t, const struct core_effect *e)
{
	t->plan_wanted = true;
	uv_idle_start(&t->plan, plan_step);
}

static void timer_fired(uv_timer_t *h);
static void fx_timer(struct turns *t, const struct core_effect *e)
{
	uint64_t now = ctld_now_ms();
	uv_update_time(t->d->loop);
	uv_timer_start(&t->timer, timer_fired, e->time_ms > now ? e->time_ms - now : 0, 0);
}

static void (*const effect_fn[])(struct turns *, const struct core_effect *) = {
	[FX_REPLY] = fx_reply, [FX_PERSIST_JOB] = fx_persist_job, [FX_REMOVE_JOB] = fx_persist_job, [FX_PERSIST_NODE] = fx_persist_node,
	[FX_PERSIST_RESV] = fx_persist_resv, [FX_REMOVE_RESV] = fx_persist_resv, [FX_PERSIST_NEXT_ID] = fx_next_id, [FX_LAUNCH_BATCH] = fx_launch, [FX_ALLOCATED] = fx_allocated, [FX_ENDED] = fx_ended,
	[FX_SIGNAL] = fx_tell, [FX_TERMINATE] = fx_tell, [FX_SUSPEND] = fx_tell, [FX_NOTIFY] = fx_tell, [FX_MEMORY] = fx_tell, [FX_REBOOT] = fx_tell, [FX_ACCOUNT_JOB] = fx_account,
	[FX_ACCOUNT_STEP] = fx_account, [FX_TIMER] = fx_timer, [FX_PLAN_MORE] = fx_plan_more, [FX_LOG] = fx_log, [FX_MAIL] = fx_mail,
	[FX_SCRIPT] = fx_script, [FX_PROLOG] = fx_prolog, [FX_PERSIST_USAGE] = fx_usage,
};

/* Must the answer to this event wait for the disk? Steps need not, unless a record changed with them (a new block of step ids). */
static bool must_wait(const struct core_event *ev, const struct effects *fx)
{
	if (ev->type != EV_STEP_CREATE && ev->type != EV_STEP_DONE && ev->type != EV_STEPS_DRAIN)
		return true;
	for (size_t i = 0; ev->type == EV_STEP_CREATE && i < effects_count(fx); i++)
		if (effects_at(fx, i)->type == FX_PERSIST_JOB)
			return true;
	return false;
}

/* What a pass costs is told by the time of the turn it was part of. Was one of the planner? */
static bool step_timed(struct ctld *d, struct core_event *ev, struct effects *fx)
{
	struct core_passes quick, plan, quick_after, plan_after;
	core_passes(d->core, &quick, &plan);
	uint64_t start_ns = uv_hrtime();
	core_step(d->core, ev, fx);
	core_passes(d->core, &quick_after, &plan_after);
	struct pass_times *p = plan_after.n > plan.n ? &d->plan_pass : quick_after.n > quick.n ? &d->pass : NULL;
	if (!p)
		return false;
	p->last_us = (uv_hrtime() - start_ns) / 1000;
	p->max_us = p->last_us > p->max_us ? p->last_us : p->max_us;
	p->sum_us += p->last_us;
	p->last_ms = ev->time_ms;
	p->n++;
	return p == &d->plan_pass;
}

void turn_step(struct ctld *d, struct core_event *ev)
{
	struct turns *t = d->turns;
	struct actions now = { 0 };
	assert(!t->step_out);
	ev->time_ms = ctld_now_ms();
	bool planned = step_timed(d, ev, t->fx);
	reads_core_changed(d->reads);
	bool wait = must_wait(ev, t->fx);
	t->step_out = wait ? &t->actions : &now;
	for (size_t i = 0; i < effects_count(t->fx); i++) {
		const struct core_effect *e = effects_at(t->fx, i);
		assert((size_t)e->type < sizeof effect_fn / sizeof *effect_fn && effect_fn[e->type]);
		effect_fn[e->type](t, e);
	}
	trace_turn(d, ev, t->fx, planned);
	effects_reset(t->fx);
	t->step_out = NULL;
	actions_run(d, &now);
	if (t->jobs.n > TURN_DIRTY_MAX)
		turn_close(d);
}

/* --- closing ---------------------------------------------------------------------------------- */
static void encode_jobs(struct turns *t)
{
	struct ctld *d = t->d;
	numbers_uniq(&t->jobs);
	for (size_t i = 0; i < t->jobs.n; i++) {
		const struct core_job *j = core_job_find(d->core, t->jobs.at[i]);
		size_t len;
		if (j) {
			const uint8_t *blob = core_job_blob(d->core, j, &len);
			commit_batch_put(batch_of(t), STORE_JOB, t->jobs.at[i], blob, len);
		} else {
			turn_remove(d, STORE_JOB, t->jobs.at[i]);
			scripts_forget(d, t->jobs.at[i]);
			t->forgotten++;
		}
	}
	t->jobs.n = 0;
}

static uint64_t name_key(const char *name)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 1099511628211u;
	return h >> 1;
}

static void encode_nodes(struct turns *t)
{
	numbers_uniq(&t->nodes);
	for (size_t i = 0; i < t->nodes.n; i++) {
		Pb__NodeRecord *r = core_node_record(t->d->core, t->nodes.at[i]);
		size_t len = pb__node_record__get_packed_size(r);
		uint8_t *data = xmalloc(len);
		pb__node_record__pack(r, data);
		turn_put(t->d, STORE_NODE, name_key(r->name), data, len);
		pb__node_record__free_unpacked(r, NULL);
	}
	t->nodes.n = 0;
}

static void encode_resvs(struct turns *t)
{
	numbers_uniq(&t->resvs);
	for (size_t i = 0; i < t->resvs.n; i++) {
		Pb__ReservationRecord *r = core_resv_by_id(t->d->core, t->resvs.at[i]);
		if (!r) {
			turn_remove(t->d, STORE_RESV, t->resvs.at[i]);
			continue;
		}
		size_t len = pb__reservation_record__get_packed_size(r);
		uint8_t *data = xmalloc(len + 1);
		pb__reservation_record__pack(r, data);
		turn_put(t->d, STORE_RESV, t->resvs.at[i], data, len);
		pb__reservation_record__free_unpacked(r, NULL);
	}
	t->resvs.n = 0;
}

/* Not at once: what the removals themselves needed is freed when they are on disk. */
void turns_give_memory_back(struct ctld *d)
{
	struct turns *t = d->turns;
	if (t->forgotten < TRIM_JOBS || commit_in_flight(d->commit))
		return;
	t->forgotten = 0;
	malloc_trim(0);
}

static void backlog_check(struct turns *t)
{
	bool full = commit_bytes(t->d->commit) > BACKLOG_MAX;
	if (full == t->paused || !t->d->server)
		return;
	t->paused = full;
	wire_server_pause(t->d->server, full);
}

void turn_close(struct ctld *d)
{
	struct turns *t = d->turns;
	assert(!t->step_out);
	if (t->jobs.n)
		encode_jobs(t);
	if (t->nodes.n)
		encode_nodes(t);
	if (t->resvs.n)
		encode_resvs(t);
	if (t->next_job_id) {
		uint32_t *value = xmemdup(&t->next_job_id, sizeof t->next_job_id);
		turn_put(d, STORE_META, STORE_META_NEXT_JOB_ID, value, sizeof *value);
		t->next_job_id = 0;
	}
	if (!t->batch && !t->actions.n)
		return;
	if (!t->batch && !commit_in_flight(d->commit)) {
		struct actions now = t->actions;
		t->actions = (struct actions){ 0 };
		actions_run(d, &now);
		return;
	}
	struct commit_batch *b = batch_of(t);
	take_lazy(t);
	b->user = xmemdup(&t->actions, sizeof t->actions);
	t->actions = (struct actions){ 0 };
	t->batch = NULL;
	commit_submit(d->commit, b);
	backlog_check(t);
}

static void batch_done(struct commit_batch *b, void *arg)
{
	struct turns *t = arg;
	struct actions *a = b->user;
	actions_run(t->d, a);
	free(a);
	commit_batch_destroy(b);
	backlog_check(t);
}

static void store_changed(bool failing, const char *why, void *arg)
{
	struct turns *t = arg;
	if (failing)
		log_error("%s; new changes are refused until it can be written again", why);
	else
		log_info("the state file can be written again; changes are taken");
	if (!failing && t->plan_wanted)
		uv_idle_start(&t->plan, plan_step);
}

/* --- the loop --------------------------------------------------------------------------------- */
static void close_in_check(uv_check_t *h) { turn_close(((struct turns *)h->data)->d); }
static void close_in_prepare(uv_prepare_t *h) { turn_close(((struct turns *)h->data)->d); }

static void plan_step(uv_idle_t *h)
{
	struct turns *t = h->data;
	struct core_event ev = { .type = EV_PLAN, .plan = { PLAN_BUDGET } };
	uv_idle_stop(&t->plan);
	if (!turn_open_for_changes(t->d) || t->d->stopping)
		return;
	t->plan_wanted = false;
	turn_step(t->d, &ev);
}

static void timer_fired(uv_timer_t *h)
{
	struct turns *t = h->data;
	struct core_event ev = { .type = EV_TIMER };
	if (t->d->stopping)
		return;
	if (turn_open_for_changes(t->d))
		turn_step(t->d, &ev);
	else
		uv_timer_start(&t->timer, timer_fired, HELD_TIMER_MS, 0);
}

struct turns *turns_create(struct ctld *d)
{
	struct turns *t = xcalloc(1, sizeof *t);
	t->d = d;
	t->fx = effects_create();
	mallopt(M_ARENA_MAX, 2);
	uv_check_init(d->loop, &t->check);
	uv_prepare_init(d->loop, &t->prepare);
	uv_idle_init(d->loop, &t->plan);
	uv_timer_init(d->loop, &t->timer);
	uv_timer_init(d->loop, &t->lazy_timer);
	t->check.data = t->prepare.data = t->plan.data = t->timer.data = t->lazy_timer.data = t;
	d->commit = commit_start(d->loop, d->store, batch_done, store_changed, t);
	return t;
}

void turns_start(struct ctld *d)
{
	struct turns *t = d->turns;
	uv_check_start(&t->check, close_in_check);
	uv_prepare_start(&t->prepare, close_in_prepare);
	uv_unref((uv_handle_t *)&t->check);
	uv_unref((uv_handle_t *)&t->prepare);
	uv_unref((uv_handle_t *)&t->timer);
}
