/* kill.c - scancel: jobs, tasks, steps by id, or all that match filters, in one request
 * Without a signal, and with KILL for a whole job, the job ends now as CANCELLED; other signals go to its processes. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/state.h"

#define SIG_KILL 9

struct kill_filter { const Pb__KillReq *q; struct bitset *nodes; bool has_state; uint32_t state; uint32_t uid; bool has_uid; };

static int filter_read(struct core *c, const Pb__KillReq *q, struct kill_filter *f, struct error *err)
{
	bool flag;
	*f = (struct kill_filter){ .q = q };
	if (q->state && q->state[0]) {
		if (job_state_parse(q->state, &flag, &f->state) < 0 || flag)
			return error_set(err, EINVAL, "\"%s\" is not a job state", q->state);
		f->has_state = true;
	}
	if (q->nodes && q->nodes[0] && nodes_bitset(c, q->nodes, &f->nodes, err) < 0)
		return err->code;
	f->has_uid = q->has_user_id;
	f->uid = q->user_id;
	return 0;
}

static bool has_filter(const Pb__KillReq *q)
{
	return q->name || q->user || q->has_user_id || q->partition || q->account || q->qos || q->state || q->nodes || q->reservation || q->wckey;
}

static bool in_partition(const struct core *c, const struct core_job *j, const char *name)
{
	if (j->part < c->part_n)
		return !strcmp(c->part[j->part]->rec->name, name);
	for (uint32_t i = 0; i < j->shape->part_n; i++)
		if (!strcmp(j->shape->part_names[i], name))
			return true;
	return false;
}

static bool on_nodes(const struct core_job *j, const struct bitset *b)
{
	for (uint32_t i = 0; j->alloc && i < j->alloc->n; i++)
		if (bitset_has(b, j->alloc->on[i].node))
			return true;
	return false;
}

static bool filter_match(const struct core *c, const struct kill_filter *f, const struct core_job *j)
{
	const Pb__KillReq *q = f->q;
	const char *user = atom_text(c, j->user);
	static const struct { size_t at; uint32_t field; } text[] = {
		{ offsetof(Pb__KillReq, name), 1 }, { offsetof(Pb__KillReq, account), 2 }, { offsetof(Pb__KillReq, qos), 3 },
		{ offsetof(Pb__KillReq, reservation), 45 }, { offsetof(Pb__KillReq, wckey), 66 },
	};
	if (job_state_is_final(j->state) || (f->has_uid && j->uid != f->uid) || (f->has_state && j->state != f->state))
		return false;
	if (q->user && q->user[0] && !str_eq(user, q->user))
		return false;
	if (q->partition && q->partition[0] && !in_partition(c, j, q->partition))
		return false;
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
		const char *want = *(char *const *)((const char *)q + text[i].at);
		if (want && want[0] && !job_desc_str_eq(j, text[i].field, want))
			return false;
	}
	return !f->nodes || on_nodes(j, f->nodes);
}

void job_signal(struct core *c, struct core_job *j, uint32_t signal, bool batch_only, bool full, Pb__EndReason *end)
{
	Pb__SignalReq *m = arena_alloc(fx_arena(c), sizeof *m);
	pb__signal_req__init(m);
	m->job_id = j->id;
	m->signal = signal;
	m->has_batch_only = m->has_full = m->has_steps_only = m->has_restarts = true;
	m->batch_only = batch_only;
	m->full = full;
	m->steps_only = !batch_only && !full;
	m->restarts = j->restarts;
	m->end = end;
	char *nodes = batch_only ? xstrdup(c->node[j->alloc->on[0].node]->name) : job_nodes_text(c, j);
	fx_to_nodes(c, FX_SIGNAL, j->id, nodes, m);
	free(nodes);
}

static int signal_job(struct core *c, struct core_job *j, const Pb__KillReq *q, const struct core_caller *by, struct error *err)
{
	if (j->state == PB__JOB_STATE__PENDING)
		return error_set(err, ESLURM_JOB_PENDING, "job %u has not started; it cannot get a signal", j->id);
	job_signal(c, j, q->signal, q->batch_only, q->full, ending(c, "signal", by->user ? by->user : by->uid ? NULL : "root", UINT32_MAX));
	return 0;
}

/* A heterogeneous job that waits can be cancelled only as a whole: by its leader's id. */
static int kill_one(struct core *c, struct core_job *j, bool whole, const Pb__KillReq *q, const struct core_caller *by, struct error *err)
{
	if (!acct_may(c, by, j))
		return error_set(err, ESLURM_ACCESS_DENIED, "job %u belongs to another user", j->id);
	if (job_state_is_final(j->state))
		return error_set(err, ESLURM_ALREADY_DONE, "job %u has ended", j->id);
	if (q->has_signal && q->signal && (q->signal != SIG_KILL || q->batch_only))
		return signal_job(c, j, q, by, err);
	if (j->het && !whole && j->state == PB__JOB_STATE__PENDING)
		return error_set(err, ESLURM_NOT_WHOLE_HET_JOB, "job %u+%u has not started: all its components are cancelled together, by scancel %u", j->het->id, j->het_at, j->het->id);
	job_cancel(c, j, by->uid);
	return 0;
}

static int kill_step(struct core *c, const struct selector *s, const Pb__KillReq *q, const struct core_caller *by, uint32_t *id, size_t n, struct error *err)
{
	bool some = false; /* of several components: one that has the step */
	for (size_t i = 0; i < n; i++) {
		const struct core_job *j = job_find(c, id[i]);
		const struct step *st = j && n > 1 && j->alloc ? step_find(j, s->step) : NULL;
		some = some || (st && !st->done);
	}
	for (size_t i = 0; i < n; i++) {
		struct core_job *j = job_find(c, id[i]);
		struct step *st = j ? step_find(j, s->step) : NULL;
		if (!j || (some && (!st || st->done)))
			continue;
		if (!acct_may(c, by, j))
			return error_set(err, ESLURM_ACCESS_DENIED, "job %u belongs to another user", j->id);
		if (!st || !j->alloc || st->done)
			return error_set(err, job_state_is_final(j->state) ? ESLURM_ALREADY_DONE : ESLURM_INVALID_STEP_ID, "step %u of job %u does not run", s->step, j->id);
		step_cancel(c, j, st, by->uid, q->has_signal ? q->signal : 0);
	}
	return 0;
}

/* The first refusal of several jobs is told; those that could be ended are. */
static int kill_ids(struct core *c, const struct core_event *ev, const char *text, const struct kill_filter *f, struct error *err)
{
	struct selector s;
	uint32_t *id = NULL;
	size_t n = 0, hit = 0;
	struct error first = { 0 };
	int r = selector_parse(c, text, &s, err);
	if (r < 0)
		return r;
	r = selector_jobs(c, &s, true, &id, &n, err);
	if (r >= 0 && s.has_step)
		r = kill_step(c, &s, ev->kill, &ev->by, id, n, err);
	for (size_t i = 0; r >= 0 && !s.has_step && i < n; i++) {
		struct core_job *j = job_find(c, id[i]);
		struct error e = { 0 };
		if (!j || (has_filter(ev->kill) && !filter_match(c, f, j)))
			continue;
		if (kill_one(c, j, !s.has_part && j->het && s.id == j->het->id, ev->kill, &ev->by, &e) < 0) {
			if (!first.code || first.code == -ESLURM_ALREADY_DONE)
				first = e;
		} else
			hit++;
	}
	if (r >= 0 && !s.has_step && first.code && (!hit || first.code == -ESLURM_ACCESS_DENIED)) {
		*err = first;
		r = first.code;
	}
	selector_fini(&s);
	free(id);
	return r;
}

static void result_add(struct core *c, Pb__KillRsp *rsp, size_t *cap, const char *id, const struct error *err)
{
	struct arena *a = fx_arena(c);
	if (rsp->n_result == *cap) {
		size_t n = *cap ? 2 * *cap : 16;
		Pb__KillResult **more = arena_alloc(a, n * sizeof *more);
		if (*cap)
			memcpy(more, rsp->result, *cap * sizeof *more);
		rsp->result = more;
		*cap = n;
	}
	Pb__KillResult *k = arena_alloc(a, sizeof *k);
	pb__kill_result__init(k);
	k->id = arena_strdup(a, id);
	k->code = (uint32_t)-err->code;
	k->detail = err->line[0] ? arena_strdup(a, err->line) : NULL;
	rsp->result[rsp->n_result++] = k;
}

static void kill_matching(struct core *c, const struct core_event *ev, const struct kill_filter *f, Pb__KillRsp *rsp, size_t *cap)
{
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		struct error err = { 0 };
		char id[40];
		if (!j)
			break;
		if (!filter_match(c, f, j) || !acct_may(c, &ev->by, j))
			continue;
		job_id_text(j, id, sizeof id);
		(void)kill_one(c, j, het_leads(j), ev->kill, &ev->by, &err);
		result_add(c, rsp, cap, id, &err);
	}
}

void kill_jobs(struct core *c, const struct core_event *ev)
{
	const Pb__KillReq *q = ev->kill;
	Pb__KillRsp *rsp = arena_alloc(fx_arena(c), sizeof *rsp);
	struct kill_filter f;
	struct error err = { 0 };
	size_t cap = 0;
	pb__kill_rsp__init(rsp);
	if (filter_read(c, q, &f, &err) < 0)
		result_add(c, rsp, &cap, q->n_id ? q->id[0] : "", &err);
	else if (q->n_id)
		for (size_t i = 0; i < q->n_id; i++) {
			struct error e = { 0 };
			(void)kill_ids(c, ev, q->id[i], &f, &e);
			result_add(c, rsp, &cap, q->id[i], &e);
		}
	else if (has_filter(q))
		kill_matching(c, ev, &f, rsp, &cap);
	bitset_destroy(f.nodes);
	fx_reply(c, ev->token, rsp);
}
