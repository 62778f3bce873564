/* step.c - steps: made inside a running job, waiting for room among others, done
 * A step that does not fit now waits in order with the caller's token and is answered when another one ends (or its --immediate time is over).
 * Ids are reserved in blocks with the job's record, so none is given twice after a crash. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/state.h"
#include "model/usage.h"
#include "model/hostlist.h"

void step_free(struct step *s)
{
	if (s->desc)
		pb__step_desc__free_unpacked(s->desc, NULL);
	if (s->usage)
		pb__step_usage__free_unpacked(s->usage, NULL);
	free(s->words);
	free(s->rank);
	free(s->on);
	free(s);
}

struct step *step_find(const struct core_job *j, uint32_t id)
{
	struct step *s = j->steps;
	while (s && s->id != id)
		s = s->next;
	return s;
}

static void step_add(struct core_job *j, struct step *s)
{
	struct step **at = &j->steps;
	uint32_t done = 0;
	for (struct step *k = j->steps; k; k = k->next)
		done += k->done && k->id < STEP_ID_INTERACTIVE;
	for (; done > STEPS_DONE_KEPT && *at;) {
		struct step *k = *at;
		if (k->done && !k->open && k->id < STEP_ID_INTERACTIVE) {
			*at = k->next;
			step_free(k);
			done--;
		} else
			at = &k->next;
	}
	at = &j->steps;
	while (*at)
		at = &(*at)->next;
	*at = s;
}

static void step_remove(struct core_job *j, struct step *s)
{
	struct step **at = &j->steps;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	step_free(s);
}

static bool special(uint32_t id) { return id >= STEP_ID_INTERACTIVE; }
static uint32_t node_words(const struct core_node *n) { return n->cpu_words + n->dev_words + n->gres_n; }
static void step_account(struct core *c, struct core_job *j, const struct step *s);

/* The step of the batch script or of salloc's shell, on the first node; the extern step, on all of them. Beside all others. */
struct step *step_special(struct core *c, struct core_job *j, uint32_t id)
{
	uint32_t nodes = id == STEP_ID_EXTERN ? j->alloc->n : 1, at = 0;
	struct step *s = step_find(j, id);
	if (s) /* of the run before */
		step_remove(j, s);
	s = xcalloc(1, sizeof *s);
	s->id = id;
	s->overlap = true;
	s->start_ms = c->now_ms;
	s->state = PB__JOB_STATE__RUNNING;
	s->on = xcalloc(nodes, sizeof *s->on);
	s->rank = xcalloc(nodes, sizeof *s->rank);
	s->tasks = s->on_n = s->nodes_left = nodes;
	for (uint32_t i = 0; i < nodes; i++) {
		const struct alloc_on *o = &j->alloc->on[i];
		uint32_t words = node_words(c->node[o->node]);
		s->on[i] = (struct step_on){ .at = i, .cpus = o->cpus, .mem = o->mem, .tasks = 1, .bits = at };
		s->rank[i] = i;
		s->cpus += o->cpus;
		s->words = xrealloc(s->words, (at + words + 1) * sizeof *s->words);
		memcpy(s->words + at, j->alloc->words + o->bits, words * sizeof *s->words);
		at += words;
	}
	step_add(j, s);
	return s;
}

Pb__StepLayout *step_extern(struct core *c, struct core_job *j)
{
	const struct step *s = step_special(c, j, STEP_ID_EXTERN);
	step_account(c, j, s);
	return layout_message(c, j, s, fx_arena(c));
}

/* --- records ---------------------------------------------------------------------------------- */

static char *step_tres(const struct core *c, const struct core_job *j, const struct step *s)
{
	struct tres_sum t = { .cpu = s->cpus, .node = s->on_n };
	for (uint32_t i = 0; i < s->on_n; i++) {
		const struct core_node *n = c->node[j->alloc->on[s->on[i].at].node];
		const uint64_t *count = s->words + s->on[i].bits + n->cpu_words + n->dev_words;
		t.mem_mb += s->on[i].mem;
		for (uint32_t g = 0; g < n->gres_n; g++)
			if (count[g])
				tres_add_gres(&t, atom_text(c, n->gres[g].name), n->gres[g].type ? atom_text(c, n->gres[g].type) : "", count[g]);
	}
	return tres_format(&t, c->params.tres_extra && strchr(c->params.tres_extra, ':'));
}

#define SET(f, v) do { m->has_##f = true; m->f = (v); } while (0)

/* What it names of GRES and CPUs a task; a step that names no GRES has those that its job names by node. */
static void record_wants(Pb__StepRecord *m, const struct core_job *j, const Pb__StepDesc *d)
{
	m->tres_per_step = xstrdup_null(d->tres_per_step);
	m->tres_per_node = xstrdup_null(d->tres_per_node);
	if (!d->tres_per_step && !d->tres_per_node && !(d->tres_per_task && strstr(d->tres_per_task, "gres/")))
		m->tres_per_node = job_desc_str(j, 29);
	if (d->has_cpus_per_task && d->cpus_per_task && !(d->tres_per_task && strstr(d->tres_per_task, "cpu")))
		m->tres_per_task = xasprintf("cpu=%u%s%s", d->cpus_per_task, d->tres_per_task ? "," : "", d->tres_per_task ? d->tres_per_task : "");
	else
		m->tres_per_task = xstrdup_null(d->tres_per_task);
}

static void record_desc(Pb__StepRecord *m, const struct core_job *j, const struct step *s)
{
	const Pb__StepDesc *d = s->desc;
	const char *word = stepid_word(s->id);
	m->name = xstrdup(word ? word : d && d->name ? d->name : "");
	if (!s->on_n)
		m->distribution = xstrdup("Unknown");
	else
		m->distribution = xstrdup(d && d->distribution && d->distribution[0] ? d->distribution : s->tasks > s->on_n ? "Block" : "Cyclic");
	if (!d)
		return;
	m->submit_line = xstrdup_null(d->submit_line);
	m->srun_host = xstrdup_null(d->srun_host);
	m->network = xstrdup_null(d->network);
	record_wants(m, j, d);
	m->cpus_per_tres = xstrdup_null(d->cpus_per_tres);
	m->mem_per_tres = xstrdup_null(d->mem_per_tres);
	m->tres_bind = xstrdup_null(d->tres_bind);
	m->container = xstrdup_null(d->container);
	if (d->has_srun_pid)
		SET(srun_pid, d->srun_pid);
}

Pb__StepRecord *step_record(const struct core *c, const struct core_job *j, const struct step *s)
{
	Pb__StepRecord *m = xmalloc(sizeof *m);
	struct hostlist hl = HOSTLIST_INIT;
	char id[32];
	pb__step_record__init(m);
	m->job_id = j->id;
	m->step_id = s->id;
	m->state = (Pb__JobState)s->state;
	if (s->start_ms)
		SET(start_time, s->start_ms / 1000);
	if (s->done)
		SET(end_time, s->end_ms / 1000);
	if (s->done)
		SET(exit_status, s->status);
	for (uint32_t i = 0; i < s->on_n; i++)
		hostlist_push(&hl, c->node[j->alloc->on[s->on[i].at].node]->name);
	for (uint32_t i = 0; !s->on_n && i < j->alloc->n; i++)   /* it waits for room among them */
		hostlist_push(&hl, c->node[j->alloc->on[i].node]->name);
	m->nodes = hostlist_compact(&hl);
	hostlist_fini(&hl);
	SET(num_nodes, s->on_n ? s->on_n : j->alloc->n);
	SET(num_tasks, s->tasks);
	SET(num_cpus, s->cpus);
	SET(time_limit_min, s->time_min);
	SET(uid, j->uid);
	m->tres = s->id == STEP_ID_EXTERN ? tres_of_alloc(c, j) : s->on_n ? step_tres(c, j, s) : NULL;
	m->partition = xstrdup_null(j->part < c->part_n ? c->part[j->part]->rec->name : NULL);
	m->user = xstrdup_null(atom_text(c, j->user));
	m->sluid = record_sluid(j);
	if (j->array && j->task != UINT32_MAX)
		m->array_id = xstrdup(job_id_text(j, id, sizeof id));
	if (s->cancelled)
		SET(cancel_uid, s->cancel_uid);
	if (s->usage)
		m->usage = (Pb__StepUsage *)message_copy((const ProtobufCMessage *)s->usage);
	record_desc(m, j, s);
	return m;
}

static void step_account(struct core *c, struct core_job *j, const struct step *s)
{
	struct core_effect *e = effects_push(c->fx, FX_ACCOUNT_STEP);
	e->job_id = j->id;
	e->msg = (ProtobufCMessage *)step_record(c, j, s);
	effects_own(c->fx, e->msg);
}

/* --- made ------------------------------------------------------------------------------------- */

/* Is the step that was given this number still waiting to be made? One that is not known was given it before slurmctld was restarted. */
static int async_check(const struct core_job *j, const Pb__StepDesc *d, struct error *err)
{
	const struct step *s = step_find(j, d->step_id);
	if (j->het || d->step_id >= j->next_step)
		return error_set(err, ESLURM_INVALID_STEP_ID, "job %u has no step %u", j->id, d->step_id);
	if (s && s->state != PB__JOB_STATE__PENDING)
		return error_set(err, ESLURM_ALREADY_DONE, "step %u.%u does not wait to be started", j->id, s->id);
	return 0;
}

static int step_check(struct core *c, const struct core_job *j, const Pb__StepDesc *d, const struct core_caller *by, struct error *err)
{
	uint32_t max = c->params.max_step_count ? c->params.max_step_count : 40000;
	if (!j)
		return error_set(err, ESLURM_INVALID_JOB_ID, "job %u is not known", d->job_id);
	if (j->uid != by->uid && !by->admin)
		return error_set(err, ESLURM_ACCESS_DENIED, "job %u belongs to another user", j->id);
	if (job_state_is_final(j->state) || (j->flags & JOBF_COMPLETING))
		return error_set(err, ESLURM_ALREADY_DONE, "job %u has ended", j->id);
	if (j->state == PB__JOB_STATE__PENDING)
		return error_set(err, ESLURM_JOB_PENDING, "job %u has no nodes yet", j->id);
	if (j->state == PB__JOB_STATE__SUSPENDED)
		return error_set(err, ESLURM_SUSPENDED, "job %u is suspended", j->id);
	if (j->flags & JOBF_CONFIGURING)
		return error_set(err, ESLURM_STEP_BUSY, "job %u is being prepared: its prologs run", j->id);
	if (j->het && d->has_het_step_id && (d->het_step_id >= het_first(c, j)->next_step || step_find(j, d->het_step_id)))
		return error_set(err, ESLURM_INVALID_STEP_ID, "step %u of job %u is not one that another component has begun", d->het_step_id, j->id);
	if (d->has_step_id)
		return async_check(j, d, err);
	if (het_first(c, j)->next_step >= max)
		return error_set(err, ESLURM_DISABLED, "job %u has had MaxStepCount=%u steps", j->id, max);
	return 0;
}

/* The components of a heterogeneous job count together: a step over several of them has one number, which the first of them gave it. */
static void step_number(struct core *c, struct core_job *j, struct step *s, const Pb__StepDesc *d)
{
	struct core_job *lead = het_first(c, j);
	if (d->has_step_id || (j->het && d->has_het_step_id)) {
		s->id = d->has_step_id ? d->step_id : d->het_step_id;
		return;
	}
	s->id = lead->next_step++;
	if (lead->next_step > lead->step_reserved) {
		lead->step_reserved = lead->next_step + STEP_ID_BLOCK;
		fx_persist(c, lead);
	}
}

static void step_enter(struct core *c, struct core_job *j, struct step *s, const Pb__StepDesc *d)
{
	struct step *waited = d->has_step_id ? step_find(j, d->step_id) : NULL;
	step_number(c, j, s, d);
	if (waited)
		step_remove(j, waited);
	s->desc = (Pb__StepDesc *)message_copy((const ProtobufCMessage *)d);
	s->start_ms = c->now_ms;
	s->state = PB__JOB_STATE__RUNNING;
	s->open = d->has_async && d->async;
	s->time_min = d->has_time_limit_min && d->time_limit_min ? d->time_limit_min : TIME_INFINITE;
	if (s->time_min != TIME_INFINITE) {
		s->kill_ms = c->now_ms + s->time_min * 60000ull;
		timer_add(c, s->kill_ms, TIMER_STEP, j->id, s->id);
	}
	step_add(j, s);
}

static struct step *pending_enter(struct core *c, struct core_job *j, const Pb__StepDesc *d)
{
	struct step *s = xcalloc(1, sizeof *s);
	step_number(c, j, s, d);
	s->desc = (Pb__StepDesc *)message_copy((const ProtobufCMessage *)d);
	s->state = PB__JOB_STATE__PENDING;
	s->tasks = d->has_num_tasks ? d->num_tasks : 1;
	s->cpus = d->has_cpus_per_task ? s->tasks * d->cpus_per_task : s->tasks;
	s->time_min = d->has_time_limit_min && d->time_limit_min ? d->time_limit_min : TIME_INFINITE;
	step_add(j, s);
	return s;
}

/* srun --async: a number at once, if the step can ever be made. Room for it is asked for with that number (StepDesc.step_id). */
static int async_enter(struct core *c, struct core_job *j, const Pb__StepDesc *d, Pb__StepCreateRsp *rsp, struct error *err)
{
	struct step *s = xcalloc(1, sizeof *s);
	int r = j->het ? error_set(err, ESLURM_NOT_SUPPORTED, "heterogeneous jobs have no asynchronous steps") : layout_make(c, j, s, d, err);
	step_free(s);
	if (r < 0 && r != -ESLURM_STEP_BUSY)
		return r;
	*err = (struct error){ 0 };
	rsp->has_step_id = true;
	rsp->step_id = pending_enter(c, j, d)->id;
	return 0;
}

int step_make(struct core *c, struct core_job *j, const Pb__StepDesc *d, const struct core_caller *by, Pb__StepCreateRsp *rsp, struct error *err)
{
	struct arena *a = fx_arena(c);
	int r = step_check(c, j, d, by, err);
	if (r < 0)
		return r;
	if (d->async && !d->has_step_id)
		return async_enter(c, j, d, rsp, err);
	struct step *s;
	if (d->interactive) {
		s = step_special(c, j, STEP_ID_INTERACTIVE);
		s->desc = (Pb__StepDesc *)message_copy((const ProtobufCMessage *)d);
		s->time_min = TIME_INFINITE;
	} else {
		s = xcalloc(1, sizeof *s);
		r = layout_make(c, j, s, d, err);
		if (r < 0) {
			step_free(s);
			return r;
		}
		step_enter(c, j, s, d);
	}
	rsp->has_step_id = true;
	rsp->step_id = s->id;
	rsp->layout = layout_message(c, j, s, a);
	rsp->job = record_message(c, j, a);
	step_account(c, j, s);
	return 0;
}

static void answer(struct core *c, uint64_t token, Pb__StepCreateRsp *r, const struct error *err)
{
	r->code = (uint32_t)-err->code;
	r->detail = err->code ? arena_strdup(fx_arena(c), err->line) : NULL;
	fx_reply(c, token, r);
}

static Pb__StepCreateRsp *rsp_new(struct core *c)
{
	Pb__StepCreateRsp *r = arena_alloc(fx_arena(c), sizeof *r);
	pb__step_create_rsp__init(r);
	return r;
}

void step_create(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	const Pb__StepDesc *d = ev->step_create;
	Pb__StepCreateRsp *rsp = rsp_new(c);
	struct core_job *j = job_find(c, d->job_id);
	int r = step_make(c, j, d, &ev->by, rsp, &err);
	if (r != -ESLURM_STEP_BUSY || (d->has_immediate_sec && !d->immediate_sec) || !ev->token) {
		answer(c, ev->token, rsp, &err);
		return;
	}
	if (d->has_step_id && !step_find(j, d->step_id)) /* it was given before slurmctld was restarted */
		pending_enter(c, j, d);
	struct step_wait *w = xcalloc(1, sizeof *w), **at = &c->step_waits;
	w->job_id = d->job_id;
	w->token = ev->token;
	w->desc = (Pb__StepDesc *)message_copy((const ProtobufCMessage *)d);
	w->by = ev->by;
	w->by.user = w->by.group = NULL;
	if (d->has_immediate_sec) {
		w->until_ms = c->now_ms + d->immediate_sec * 1000ull;
		timer_add(c, w->until_ms, TIMER_STEP_WAIT, 0, 0);
	}
	while (*at)
		at = &(*at)->next;
	*at = w;
}

static void wait_drop(struct step_wait **at)
{
	struct step_wait *w = *at;
	*at = w->next;
	pb__step_desc__free_unpacked(w->desc, NULL);
	free(w);
}

/* A step that had a number and no room yet will not be made. */
static void pending_close(struct core *c, struct core_job *j, struct step *s)
{
	struct step_wait **at = &c->step_waits;
	s->done = true;
	s->state = PB__JOB_STATE__CANCELLED;
	s->start_ms = s->end_ms = c->now_ms;
	step_account(c, j, s);
	while (*at && ((*at)->job_id != j->id || !(*at)->desc->has_step_id || (*at)->desc->step_id != s->id))
		at = &(*at)->next;
	if (*at) {
		struct error err = { 0 };
		error_set(&err, ESLURM_ALREADY_DONE, "step %u.%u was cancelled", j->id, s->id);
		answer(c, (*at)->token, rsp_new(c), &err);
		wait_drop(at);
	}
	drains_answer(c, j);
}

/* Who asked is gone: the step is not made when there is room. */
void step_give_up(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	struct step_wait **at = &c->step_waits;
	while (*at && (*at)->token != ev->token)
		at = &(*at)->next;
	if (!*at) {
		(void)drain_give_up(c, ev->token);
		return;
	}
	error_set(&err, ESLURM_COMM, "who asked for the step of job %u is gone", (*at)->job_id);
	answer(c, ev->token, rsp_new(c), &err);
	struct core_job *j = job_find(c, (*at)->job_id);
	struct step *s = j && (*at)->desc->has_step_id ? step_find(j, (*at)->desc->step_id) : NULL;
	wait_drop(at);
	if (s && s->state == PB__JOB_STATE__PENDING)
		pending_close(c, j, s);
}

void step_waits_free(struct core *c)
{
	while (c->step_waits)
		wait_drop(&c->step_waits);
}

/* Room in the job (or its end): answer who can be answered, in order. */
void step_waits_retry(struct core *c, struct core_job *j)
{
	for (struct step_wait **at = &c->step_waits; *at;) {
		struct step_wait *w = *at;
		struct error err = { 0 };
		if (w->job_id != j->id) {
			at = &w->next;
			continue;
		}
		Pb__StepCreateRsp *rsp = rsp_new(c);
		int r = step_make(c, j, w->desc, &w->by, rsp, &err);
		if (r == -ESLURM_STEP_BUSY || r == -ESLURM_SUSPENDED) {
			at = &w->next;
			continue;
		}
		answer(c, w->token, rsp, &err);
		wait_drop(at);
	}
}

void step_waits_timer(struct core *c)
{
	for (struct step_wait **at = &c->step_waits; *at;) {
		struct step_wait *w = *at;
		struct error err = { 0 };
		if (!w->until_ms || w->until_ms > c->now_ms) {
			at = &w->next;
			continue;
		}
		error_set(&err, ESLURM_STEP_BUSY, "job %u had no room for the step within %u seconds (--immediate)", w->job_id, w->desc->immediate_sec);
		answer(c, w->token, rsp_new(c), &err);
		wait_drop(at);
	}
}

/* --- done ------------------------------------------------------------------------------------- */

static void step_close(struct core *c, struct core_job *j, struct step *s, uint32_t status)
{
	uint32_t code = status >> 8 & 255;
	s->done = true;
	s->presumed = false;
	s->end_ms = c->now_ms;
	s->status = status;
	if (s->state == PB__JOB_STATE__RUNNING)
		s->state = s->cancelled || (status & 127) ? PB__JOB_STATE__CANCELLED : status ? PB__JOB_STATE__FAILED : PB__JOB_STATE__COMPLETED;
	if (!special(s->id) && code && (!j->x || j->x->derived_exit < code))
		job_x(j)->derived_exit = code;
	if (!special(s->id) && status && (!j->x || j->x->derived_status < status))
		job_x(j)->derived_status = status;
	step_account(c, j, s);
}

void step_end(struct core *c, struct core_job *j, struct step *s, uint32_t status)
{
	assert(!s->done);
	step_close(c, j, s, status);
	step_waits_retry(c, j);
	drains_answer(c, j);
}

void step_truth(struct core *c, struct core_job *j, struct step *s, uint32_t status)
{
	assert(s->done && s->presumed);
	if (s->state != PB__JOB_STATE__OUT_OF_MEMORY && s->state != PB__JOB_STATE__TIMEOUT)
		s->state = PB__JOB_STATE__RUNNING;
	step_close(c, j, s, status);
}

static void step_srun_done(struct core *c, struct core_job *j, struct step *s, uint32_t status)
{
	s->open = false;
	if (s->done)
		drains_answer(c, j);
	else if (s->state == PB__JOB_STATE__PENDING)
		pending_close(c, j, s);
	else
		step_end(c, j, s, status);
}

void step_done_event(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	struct core_job *j = job_find(c, ev->step_done.job_id);
	struct step *s = j ? step_find(j, ev->step_done.step_id) : NULL;
	if (!j)
		error_set(&err, ESLURM_INVALID_JOB_ID, "job %u is not known", ev->step_done.job_id);
	else if (j->uid != ev->by.uid && !ev->by.admin)
		error_set(&err, ESLURM_ACCESS_DENIED, "job %u belongs to another user", j->id);
	else if (!s)
		error_set(&err, ESLURM_INVALID_STEP_ID, "job %u has no step %u", j->id, ev->step_done.step_id);
	else if (s->done && !s->open)
		error_set(&err, ESLURM_ALREADY_DONE, "step %u.%u is done", j->id, s->id);
	else
		step_srun_done(c, j, s, ev->step_done.status);
	fx_result(c, ev->token, &err, ev->step_done.job_id);
}

/* One node's part is over. The step is when all are, or when srun says so. */
void step_node_done(struct core *c, struct core_job *j, struct step *s, uint32_t node, const Pb__NodeEvent *e)
{
	if (!j->alloc)
		return;
	if (e->usage && s->usage)
		usage_merge(s->usage, e->usage);
	else if (e->usage)
		s->usage = (Pb__StepUsage *)message_copy((const ProtobufCMessage *)e->usage);
	if (s->nodes_left)
		s->nodes_left--;
	if (e->oom)
		s->state = PB__JOB_STATE__OUT_OF_MEMORY;
	if ((e->status || e->oom) && (!s->worst || (e->status >> 8 & 255) > (s->worst >> 8 & 255))) {
		s->worst = e->status;
		for (uint32_t i = 0; i < j->alloc->n; i++)
			if (j->alloc->on[i].node == node)
				s->worst_on = i;
	}
	if (s->presumed && !s->nodes_left)
		step_truth(c, j, s, s->worst);
	else if (s->done && !s->nodes_left)
		step_account(c, j, s); /* what it used is known now */
	else if (!s->done && !s->nodes_left)
		step_end(c, j, s, s->worst);
}

/* Ends what still runs when the job does: those are cancelled, as the reference shows them. */
void step_finish_all(struct core *c, struct core_job *j)
{
	for (struct step *s = j->steps; s; s = s->next) {
		s->open = false;
		if (!s->done && s->state == PB__JOB_STATE__PENDING)
			pending_close(c, j, s);
		if (s->done)
			continue;
		bool batch = s->id == STEP_ID_BATCH || s->id == STEP_ID_INTERACTIVE;
		s->done = true;
		s->end_ms = c->now_ms;
		s->state = s->state != PB__JOB_STATE__RUNNING ? s->state : batch && !j->cancelled_by ? PB__JOB_STATE__FAILED : PB__JOB_STATE__CANCELLED;
		if (s->id == STEP_ID_EXTERN)
			s->state = PB__JOB_STATE__COMPLETED;
		s->presumed = s->id != STEP_ID_EXTERN;
		s->status = s->id == STEP_ID_EXTERN ? 0 : batch ? 15 : 9;
		step_account(c, j, s);
	}
	for (struct step_wait **at = &c->step_waits; *at;) {
		struct error err = { 0 };
		if ((*at)->job_id != j->id) {
			at = &(*at)->next;
			continue;
		}
		error_set(&err, ESLURM_ALREADY_DONE, "job %u has ended", j->id);
		answer(c, (*at)->token, rsp_new(c), &err);
		wait_drop(at);
	}
	drains_answer(c, j);
}

static void step_stop(struct core *c, struct core_job *j, struct step *s, const char *why, bool timeout)
{
	struct arena *a = fx_arena(c);
	struct bitset *to = bitset_create(c->node_n);
	Pb__TerminateReq *m = arena_alloc(a, sizeof *m);
	pb__terminate_req__init(m);
	m->job_id = j->id;
	m->uid = j->uid;
	m->has_step_id = m->has_kill_wait_sec = m->has_restarts = true;
	m->step_id = s->id;
	m->kill_wait_sec = c->params.kill_wait_sec;
	m->restarts = j->restarts;
	m->why = (char *)why;
	m->has_timeout = m->timeout = timeout;
	m->end = ending_step(c, j, s, timeout);
	for (uint32_t i = 0; i < s->on_n; i++)
		bitset_set(to, j->alloc->on[s->on[i].at].node);
	char *nodes = nodes_text(c, to);
	fx_to_nodes(c, FX_TERMINATE, j->id, nodes, m);
	free(nodes);
	bitset_destroy(to);
}

void step_timer(struct core *c, struct core_job *j, uint32_t step_id)
{
	struct step *s = step_find(j, step_id);
	if (!s || s->done || !s->kill_ms || s->kill_ms > c->now_ms || j->state != PB__JOB_STATE__RUNNING)
		return;
	s->kill_ms = 0;
	s->state = PB__JOB_STATE__TIMEOUT;
	step_stop(c, j, s, "DUE TO TIME LIMIT", true);
}

void step_cancel(struct core *c, struct core_job *j, struct step *s, uint32_t uid, uint32_t signal)
{
	bool ends = !signal || signal == SIGKILL;
	if (s->state == PB__JOB_STATE__PENDING) {
		s->cancelled = ends;
		s->cancel_uid = uid;
		if (ends)
			pending_close(c, j, s);
		return;
	}
	if (ends) {
		s->cancelled = true;
		s->cancel_uid = uid;
		step_stop(c, j, s, "CANCELLED", false);
		return;
	}
	struct arena *a = fx_arena(c);
	Pb__SignalReq *m = arena_alloc(a, sizeof *m);
	struct bitset *to = bitset_create(c->node_n);
	pb__signal_req__init(m);
	m->job_id = j->id;
	m->has_step_id = true;
	m->step_id = s->id;
	m->signal = signal;
	m->has_restarts = true;
	m->restarts = j->restarts;
	for (uint32_t i = 0; i < s->on_n; i++)
		bitset_set(to, j->alloc->on[s->on[i].at].node);
	char *nodes = nodes_text(c, to);
	fx_to_nodes(c, FX_SIGNAL, j->id, nodes, m);
	free(nodes);
	bitset_destroy(to);
}

/* --no-kill: the node is given up. Steps that ran there end on their other nodes, too. Before it leaves the job's allocation. */
void steps_leave_node(struct core *c, struct core_job *j, uint32_t at)
{
	for (struct step *s = j->steps; s; s = s->next)
		for (uint32_t i = 0; i < s->on_n && !s->done; i++) {
			if (s->on[i].at != at)
				continue;
			s->nodes_left -= s->nodes_left > 0;
			if (s->id == STEP_ID_EXTERN)
				break;
			s->state = PB__JOB_STATE__NODE_FAIL;
			s->worst = 9;
			if (s->nodes_left)
				step_stop(c, j, s, "DUE TO NODE FAILURE", false);
			else
				step_close(c, j, s, s->worst);
			break;
		}
}

/* After it has left: nothing names it any more, those behind it have moved up. Steps that were nowhere else are forgotten. */
void steps_after_leave(struct core_job *j, uint32_t at)
{
	for (struct step **link = &j->steps; *link;) {
		struct step *s = *link;
		uint32_t kept = 0, *to = xcalloc(s->on_n + 1, sizeof *to);
		for (uint32_t i = 0; i < s->on_n; i++) {
			bool gone = s->on[i].at == at;
			to[i] = gone ? UINT32_MAX : kept;
			if (gone)
				continue;
			s->on[kept] = s->on[i];
			s->on[kept++].at -= s->on[i].at > at;
		}
		for (uint32_t t = 0; t < s->tasks && s->rank; t++)
			s->rank[t] = s->rank[t] < s->on_n ? to[s->rank[t]] : UINT32_MAX;
		free(to);
		s->on_n = kept;
		s->worst_on = s->worst_on == at ? UINT32_MAX : s->worst_on - (s->worst_on != UINT32_MAX && s->worst_on > at);
		if (!kept && s->done) {
			*link = s->next;
			step_free(s);
		} else
			link = &s->next;
	}
}

/* After a restart the nodes name the steps that live: one the core does not know is entered with the node it was seen on, beside the others
 * (what it holds exactly is known to its slurmstepd only), so that it can be shown, signalled and waited for. */
void step_alive(struct core *c, struct core_job *j, uint32_t node, uint32_t step_id)
{
	struct step *s = step_find(j, step_id);
	uint32_t at = 0;
	while (at < j->alloc->n && j->alloc->on[at].node != node)
		at++;
	assert(at < j->alloc->n);
	for (uint32_t i = 0; s && i < s->on_n; i++)
		if (s->on[i].at == at)
			return;
	if (s && (s->done || !s->found_alive))
		return;
	if (!s) {
		s = xcalloc(1, sizeof *s);
		s->id = step_id;
		s->overlap = s->found_alive = true;
		s->start_ms = c->now_ms;
		s->state = PB__JOB_STATE__RUNNING;
		s->time_min = TIME_INFINITE;
		step_add(j, s);
		if (!special(step_id) && step_id >= j->next_step)
			j->next_step = step_id + 1;
	}
	uint32_t words = node_words(c->node[node]), have = 0;
	for (uint32_t i = 0; i < s->on_n; i++)
		have += node_words(c->node[j->alloc->on[s->on[i].at].node]);
	s->words = xrealloc(s->words, (have + words + 1) * sizeof *s->words);
	memcpy(s->words + have, j->alloc->words + j->alloc->on[at].bits, words * sizeof *s->words);
	s->on = xrealloc(s->on, (s->on_n + 1) * sizeof *s->on);
	s->on[s->on_n++] = (struct step_on){ .at = at, .cpus = j->alloc->on[at].cpus, .mem = j->alloc->on[at].mem, .tasks = 1, .bits = have };
	s->nodes_left++;
	s->tasks++;
	s->cpus += j->alloc->on[at].cpus;
	xfree(s->rank);
	s->rank = xcalloc(s->tasks + 1, sizeof *s->rank);
	for (uint32_t t = 0; t < s->tasks; t++)
		s->rank[t] = t < s->on_n ? t : 0;
}
