/* fault_audit.c - the auditor (see fault.h)
 * Knows what users were told (told), what is on disk (claims: who has which CPU, GPU and MiB of which node since its start was written, until the node says it is
 * clean, dies, or never had the run), and what nodes do. What it checks:
 *   nothing is given twice: CPUs, GPUs, memory, licenses; no node runs more than it has; no job id twice
 *   a job told of is never lost; what was acknowledged is on disk; a run is started once, and one at a time; an end is told once
 *   what is held, or depends on a job that has not ended, does not start
 *   limits: of a partition, of an array, of time; no job runs into a reservation that is not for it
 *   nobody's planned start is put off, or lost, by the start of one who comes later (audit_plan); who comes first still has room then, by a count of its own
 *   what waits has a reason, and conditions that say why; and when the faults stop, all runs that can */
#include <stdio.h>

#include "base/bitset.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "sim/fault.h"

struct told *told(struct sim *s, uint32_t id)
{
	if (id >= JOBS_MAX)
		wrong(s, "more jobs than the simulation has room for", id, 0);
	if (id > s->highest)
		s->highest = id;
	return &s->told[id];
}

/* --- who has what --------------------------------------------------------------------------------- */

static uint32_t bits_of(const char *text, uint32_t limit)
{
	struct bitset *b = NULL;
	if (!text || idset_parse(text, limit, &b, NULL) < 0)
		return 0;
	uint32_t bits = (uint32_t)b->bits[0];
	bitset_destroy(b);
	return bits;
}

static uint32_t nodes_of(struct sim *s, const char *list)
{
	struct hostlist hl = HOSTLIST_INIT;
	uint32_t bits = 0;
	(void)hostlist_add(&hl, list, NULL);
	for (size_t i = 0; i < hl.count; i++)
		for (uint32_t n = 0; n < NODES; n++)
			bits |= !strcmp(hl.name[i], node_name[n]) ? 1u << n : 0;
	hostlist_fini(&hl);
	(void)s;
	return bits;
}

static bool runs_there(const struct sim *s, uint32_t node, uint32_t job, uint32_t restarts)
{
	for (size_t i = 0; i < s->node[node].runs; i++)
		if (s->node[node].run[i].job_id == job && s->node[node].run[i].restarts == restarts)
			return true;
	return false;
}

/* A run that its node never had, or has no more, and that the controller has given up, has nothing. */
static bool has(struct sim *s, uint32_t id, uint32_t node)
{
	const struct told *t = &s->told[id];
	if (!t->claim || t->claim[node].given_back || !t->claim[node].cpus || t->claim[node].since <= s->gone[node])
		return false;
	if (t->host != node || runs_there(s, node, id, t->run - 1))
		return true;
	Pb__JobRecord *r = job_record(s, id);
	bool over = !r || (r->state != PB__JOB_STATE__RUNNING && r->state != PB__JOB_STATE__SUSPENDED) || r->restarts + 1 != t->run;
	if (r)
		pb__job_record__free_unpacked(r, NULL);
	return !over;
}

/* Is it suspended because others use its CPUs? */
static bool yields(struct sim *s, uint32_t id)
{
	Pb__JobRecord *r = s->params.gang ? job_record(s, id) : NULL;
	bool y = r && r->yields;
	if (r)
		pb__job_record__free_unpacked(r, NULL);
	return y;
}

static void claim_check(struct sim *s, uint32_t id, uint32_t node)
{
	const struct claim *mine = &s->told[id].claim[node];
	uint32_t mem = mine->mem;
	for (uint32_t o = 1; o <= s->highest; o++) {
		if (o == id || !s->told[o].claim || !has(s, o, node))
			continue;
		const struct claim *c = &s->told[o].claim[node];
		if (c->cpus & mine->cpus && !yields(s, id) && !yields(s, o))
			wrong(s, "a CPU is given twice", id, o);
		if (c->gpus & mine->gpus)
			wrong(s, "a GPU is given twice", id, o);
		mem += c->mem;
	}
	if (mem > MEM)
		wrong(s, "more memory is given than there is", id, node);
}

static void reservation_check(struct sim *s, const Pb__JobRecord *r, uint32_t nodes)
{
	uint64_t end = r->start_time + r->time_limit_min * 60ull;
	end = r->has_resv_end && r->resv_end < end ? r->resv_end : end; /* it ends with its own */
	for (size_t i = 0; i < s->resvs; i++) {
		const struct reserved *v = &s->resv[i];
		bool in = r->resv_name && !strcmp(r->resv_name, v->name);
		if (in && v->alice_only && strcmp(r->user, "alice"))
			wrong(s, "a job is in a reservation that is not for its user", r->job_id, v->id);
		if (!in && (v->nodes & nodes) && r->start_time < v->end && end > v->start)
			wrong(s, "a job is started into a reservation of others", r->job_id, v->id);
	}
}

static void claim_all(struct sim *s, struct told *t, const Pb__JobRecord *r, uint64_t since)
{
	uint32_t nodes = 0, count = 0;
	for (uint32_t n = 0; t->claim && n < NODES; n++)
		if (has(s, r->job_id, n))
			wrong(s, "a job is started while its run before still has a node", r->job_id, n);
	t->claim = t->claim ? memset(t->claim, 0, NODES * sizeof *t->claim) : xcalloc(NODES, sizeof *t->claim);
	t->run = r->restarts + 1;
	t->host = (uint32_t)core_node_find(s->core, r->alloc->batch_host);
	for (size_t p = 0; p < r->alloc->n_part; p++) {
		const Pb__NodeAlloc *a = r->alloc->part[p];
		uint32_t in = nodes_of(s, a->nodes), gpus = a->n_gres ? bits_of(a->gres[0]->index, GPUS) : 0;
		nodes |= in;
		for (uint32_t n = 0; n < NODES; n++)
			if (in & 1u << n)
				t->claim[n] = (struct claim){ bits_of(a->cpu_ids, CPUS), gpus, (uint32_t)a->mem, since, false }, count++;
	}
	for (uint32_t n = 0; n < NODES; n++)
		if (t->claim[n].cpus)
			claim_check(s, r->job_id, n);
	if (!strcmp(r->partition, "top") && (count > 2 || r->time_limit_min > 10 || nodes & 0xf0))
		wrong(s, "a limit of the partition is broken", r->job_id, count);
	reservation_check(s, r, nodes);
}

/* --- what is on disk -------------------------------------------------------------------------------- */

/* Of "lic:2,soft:1". */
static uint32_t licenses_of(const char *text, const char *name)
{
	const char *at = text ? strstr(text, name) : NULL;
	return at ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : 0;
}

/* What it was told to wait for has ended. */
static void dependency_check(struct sim *s, const struct told *t)
{
	const struct told *on = t->running && t->depends ? &s->told[t->depends] : NULL;
	if (on && on->id && !on->over && !on->array)
		wrong(s, "a job starts before the one it depends on has ended", t->id, t->depends);
}

static void committed_job(struct sim *s, const struct put *p)
{
	struct told *t = told(s, (uint32_t)p->key);
	Pb__JobRecord *r = p->data ? pb__job_record__unpack(NULL, p->len, p->data) : NULL;
	if (!p->data && t->id && !t->final)
		wrong(s, "a job that has not ended is forgotten", (uint32_t)p->key, 0);
	t->final = !r || job_state_is_final(r->state);
	t->over = t->over || t->final;
	t->running = r && (r->state == PB__JOB_STATE__RUNNING || r->state == PB__JOB_STATE__SUSPENDED);
	t->few = t->running && r->desc && str_eq(r->desc->qos, "few");
	t->few_cpus = t->few ? r->num_cpus : 0;
	t->array = r && r->has_array_job_id ? r->array_job_id : 0;
	t->lics[0] = t->running ? licenses_of(r->licenses_alloc, "lic:") : 0;
	t->lics[1] = t->running ? licenses_of(r->licenses_alloc, "soft:") : 0;
	bool held = r && r->has_admin_prio && !r->admin_prio;
	if (t->running && t->held && held)
		wrong(s, "a held job starts", r->job_id, 0);
	t->held = held && r->state == PB__JOB_STATE__PENDING;
	if (t->running && t->run != r->restarts + 1)
		claim_all(s, t, r, p->step);
	for (uint32_t n = 0; r && !t->running && !(r->has_state_flags && r->state_flags & JOBF_COMPLETING) && t->claim && n < NODES; n++)
		if (has(s, r->job_id, n))
			wrong(s, "a job gives a node back that has not said it is clean", r->job_id, n);
	if (!t->running && (!r || !(r->has_state_flags && r->state_flags & JOBF_COMPLETING)))
		xfree(t->claim);
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

static void committed_resv(struct sim *s, const struct put *p)
{
	size_t i = 0;
	while (i < s->resvs && s->resv[i].id != p->key)
		i++;
	if (!p->data) {
		if (i < s->resvs)
			s->resv[i] = s->resv[--s->resvs];
		return;
	}
	Pb__ReservationRecord *r = pb__reservation_record__unpack(NULL, p->len, p->data);
	if (i == RESVS_MAX)
		wrong(s, "more reservations than the simulation makes", 0, (uint32_t)p->key);
	s->resvs = i == s->resvs ? i + 1 : s->resvs;
	struct reserved *v = &s->resv[i];
	*v = (struct reserved){ .id = r->id, .nodes = nodes_of(s, r->nodes), .start = r->start_time, .end = r->end_time, .alice_only = !strcmp(r->users, "alice") };
	snprintf(v->name, sizeof v->name, "%s", r->name);
	pb__reservation_record__free_unpacked(r, NULL);
}

void audit_committed(struct sim *s, const struct batch *b)
{
	uint32_t lics[2] = { 0 }, few = 0, few_cpus = 0;
	for (size_t i = 0; i < b->puts; i++) /* in the order in which it happened */
		if (b->put[i].table == STORE_JOB)
			committed_job(s, &b->put[i]);
		else if (b->put[i].table == STORE_RESV)
			committed_resv(s, &b->put[i]);
	for (uint32_t id = 1; id <= s->highest; id++) {
		const struct told *t = &s->told[id];
		uint32_t tasks = 0;
		few += t->few;
		few_cpus += t->few_cpus;
		lics[0] += t->lics[0];
		lics[1] += t->lics[1];
		for (uint32_t o = t->array && t->running ? id : s->highest + 1; o <= s->highest; o++)
			tasks += s->told[o].running && s->told[o].array == t->array;
		if (tasks > 2)
			wrong(s, "more tasks of an array run than it allows", id, tasks);
	}
	if (few > 3 || few_cpus > 40)
		wrong(s, "more runs in a QOS than its limits allow", few, few_cpus);
	if (lics[0] > LICENSES || lics[1] > SOFT_LICENSES)
		wrong(s, "more licenses are given than there are", lics[0], lics[1]);
	for (size_t i = 0; i < b->puts; i++)
		if (b->put[i].table == STORE_JOB)
			dependency_check(s, told(s, (uint32_t)b->put[i].key));
}

/* Every job that somebody was told of is there as it is on disk, or its end is on disk. */
void audit_restored(struct sim *s)
{
	for (uint32_t id = 1; id <= s->highest; id++) {
		const struct told *t = &s->told[id];
		const struct core_job *j = core_job_find(s->core, id);
		if (t->id && !t->final && !j)
			wrong(s, "an acknowledged job is lost", id, 0);
		if (j && t->running && !core_job_is_running(j))
			wrong(s, "a running job does not run after a restart", id, 0);
	}
}

/* What was asked for is on disk when it is acknowledged. */
static void audit_done(struct sim *s, const struct act *a)
{
	void *data = NULL;
	size_t len;
	Pb__JobRecord *r = store_get(s->store, STORE_JOB, a->job_id, &data, &len, NULL) ? NULL : pb__job_record__unpack(NULL, len, data);
	free(data);
	bool over = !r || job_state_is_final(r->state);
	if (a->ask == ASK_KILL && !over)
		wrong(s, "a cancelled job is not on disk as such", a->job_id, r->state);
	if (a->ask == ASK_HOLD && !over && !(r->has_admin_prio && !r->admin_prio))
		wrong(s, "a held job is not on disk as such", a->job_id, r->state);
	if (a->ask == ASK_LIMIT && !over && r->time_limit_min != 5)
		wrong(s, "a changed limit is not on disk", a->job_id, r->time_limit_min);
	if (r)
		pb__job_record__free_unpacked(r, NULL);
}

/* What users are told. */
void audit_act(struct sim *s, const struct act *a)
{
	struct told *t = a->job_id ? told(s, a->job_id) : NULL;
	if (a->kind == A_REPLY) {
		if (t->id)
			wrong(s, "a job id is given twice", a->job_id, 0);
		t->id = a->job_id;
		t->depends = t->freed ? 0 : a->depends;
		s->accepted++;
	} else if (a->kind == A_ENDED) {
		if (t->ended == a->restarts + 1)
			wrong(s, "an end is told twice", a->job_id, a->restarts);
		t->ended = a->restarts + 1;
	} else if (a->kind == A_DONE)
		audit_done(s, a);
}

/* When it is decided: until it leaves the node may well name it. */
void audit_launches(struct sim *s, uint32_t job_id, uint32_t restarts)
{
	const struct told *t = told(s, job_id);
	if (t->seen == restarts + 1 && t->seen_epoch == s->epoch)
		wrong(s, "a run that its node has named is launched again", job_id, restarts);
}

/* A node says what runs on it. */
void audit_registers(struct sim *s, const struct msg *m)
{
	for (size_t i = 0; i < m->n_alive; i++) {
		struct told *t = told(s, m->alive[i].job_id);
		t->seen = m->alive[i].restarts + 1;
		t->seen_epoch = s->epoch;
	}
}

/* --- what nodes do --------------------------------------------------------------------------------- */

void audit_run(struct sim *s, uint32_t at, const struct msg *m, uint32_t used)
{
	struct told *t = told(s, m->job_id);
	bool given_up = t->launched != m->restarts + 1 && s->downed[at] && s->downed[at] + 60000 > s->now; /* it is ended as soon as it hears of that */
	if (t->launched >= m->restarts + 1 && !given_up)
		wrong(s, "a run is started twice", m->job_id, m->restarts);
	story(s, m->job_id, "run %u starts on node %u", m->restarts, at);
	t->launched = t->launched > m->restarts + 1 ? t->launched : m->restarts + 1;
	for (size_t i = 0; used > CPUS && i < s->node[at].runs; i++)
		story(s, 0, "there runs job %u, run %u", s->node[at].run[i].job_id, s->node[at].run[i].restarts);
	if (used > CPUS && !s->params.gang) /* with it, some of them are stopped */
		wrong(s, "a node has more CPUs in use than it has", m->job_id, used);
	for (uint32_t k = 0; k < NODES; k++)
		for (size_t i = 0; i < s->node[k].runs; i++)
			if (s->node[k].run[i].job_id == m->job_id && s->node[k].alive && !s->node[k].silent_since && !s->node[k].run[i].given_up && !given_up)
				wrong(s, "two runs of a job at once", m->job_id, m->restarts);
}

void audit_clean(struct sim *s, uint32_t job_id, uint32_t restarts, uint32_t node)
{
	struct told *t = told(s, job_id);
	if (t->claim && t->run == restarts + 1)
		t->claim[node].given_back = true;
}

void audit_node_gone(struct sim *s, uint32_t node) { s->gone[node] = s->steps; }

bool audit_given_up(struct sim *s, uint32_t job_id, uint32_t node)
{
	const struct told *t = told(s, job_id);
	return !t->claim || t->claim[node].since <= s->gone[node] || (s->downed[node] && s->downed[node] + 60000 > s->now);
}

/* As in the reference nobody waits for what is told to end there. */
void audit_node_down(struct sim *s, uint32_t node)
{
	s->gone[node] = s->steps;
	s->downed[node] = s->now;
	for (size_t i = 0; i < s->node[node].runs; i++)
		s->node[node].run[i].given_up = true;
}

/* --- promises --------------------------------------------------------------------------------------- */

/* The first that waits for room in its partition, in the order of the queue (tier, priority, id), and what it wants. */
struct waiting { uint32_t id, array, tier, prio, tasks, nodes, gpus, mem; int32_t nice; bool some_nodes, top, whole, plain; };

static bool before(const struct waiting *a, const struct waiting *b)
{
	if (a->tier != b->tier)
		return a->tier > b->tier;
	if (a->prio != b->prio)
		return a->prio > b->prio;
	if (a->nice != b->nice)      /* all priorities below 1 are shown as 1 */
		return a->nice < b->nice;
	return a->id < b->id && b->id == b->array; /* a task that has left its array stood with the array's id until then */
}

/* True: it waits for room alone. plain: what it asks for is simple enough for room_at. */
static bool waiting_of(struct sim *s, const struct core_job *j, struct waiting *w)
{
	Pb__JobVolatile v;
	core_job_volatile(s->core, j, &v);
	bool waits = !core_job_is_finished(j) && !core_job_is_running(j) && (v.reason == REASON_RESOURCES || v.reason == REASON_PRIORITY || v.reason == REASON_NONE);
	Pb__JobRecord *r = job_record(s, core_job_id(j));
	const Pb__JobDesc *d = r->desc;
	*w = (struct waiting){ .id = r->job_id, .array = r->has_array_job_id ? r->array_job_id : r->job_id, .tier = d->partition && strstr(d->partition, "top") ? 10 : 1, .prio = v.priority, .nice = v.priority == 1 && d->has_nice ? d->nice : 0, .tasks = d->num_tasks, .nodes = d->has_min_nodes ? d->min_nodes : 1,
		.mem = (uint32_t)d->mem_per_node, .gpus = d->tres_per_node ? (uint32_t)strtoul(d->tres_per_node + strlen("gres/gpu:"), NULL, 10) : 0, .some_nodes = !d->has_min_nodes,
		.top = d->partition && !strcmp(d->partition, "top"), .whole = d->exclusive != NULL };
	w->plain = !d->licenses && !d->reservation && !(d->partition && strchr(d->partition, ','));
	pb__job_record__free_unpacked(r, NULL);
	return waits;
}

/* Is it given work? */
static bool usable(struct sim *s, uint32_t node)
{
	Pb__NodeRecord *r = core_node_record(s->core, node);
	bool yes = (r->state == NODE_IDLE || r->state == NODE_MIXED || r->state == NODE_ALLOCATED) && !(r->state_flags & (NODEF_DRAIN | NODEF_FAIL | NODEF_NOT_RESPONDING));
	pb__node_record__free_unpacked(r, NULL);
	return yes;
}

/* Nodes on which a start is planned of one that comes before it and waits for more than room (licenses): it is not among the waiting, and goes first all the same. */
static uint32_t kept_for_others(struct sim *s, const struct waiting *w)
{
	uint32_t nodes = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->core, &cur);
		struct waiting o;
		Pb__JobVolatile v;
		if (!j)
			return nodes;
		if (core_job_is_finished(j) || core_job_is_running(j) || waiting_of(s, j, &o) || !before(&o, w))
			continue;
		core_job_volatile(s->core, j, &v);
		nodes |= v.has_est_start && v.sched_nodes ? nodes_of(s, v.sched_nodes) : 0;
	}
}

/* Would there be room for it at time t, were there only the jobs that run, without those of `not`, and not on nodes of `kept`? Less is asked than the core asks. */
static bool room_at(struct sim *s, const struct waiting *w, uint64_t t, const uint32_t *not, size_t n_not, uint32_t kept)
{
	uint32_t cpus[NODES], mem[NODES], gpus[NODES], count = 0, sum = 0;
	for (uint32_t n = 0; n < NODES; n++) {
		cpus[n] = CPUS;
		mem[n] = MEM;
		gpus[n] = n < NODES / 2 ? GPUS : 0;
	}
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->core, &cur);
		if (!j)
			break;
		bool out = !core_job_is_running(j);
		for (size_t i = 0; i < n_not && !out; i++)
			out = not[i] == core_job_id(j);
		Pb__JobRecord *r = out ? NULL : job_record(s, core_job_id(j));
		for (size_t p = 0; r && r->end_time > t && p < r->alloc->n_part; p++)
			for (uint32_t n = 0, in = nodes_of(s, r->alloc->part[p]->nodes); n < NODES; n++)
				if (in & 1u << n) {
					cpus[n] -= r->alloc->part[p]->cpus;
					mem[n] -= (uint32_t)r->alloc->part[p]->mem;
					gpus[n] -= r->alloc->part[p]->n_gres ? (uint32_t)r->alloc->part[p]->gres[0]->count : 0;
				}
		if (r)
			pb__job_record__free_unpacked(r, NULL);
	}
	for (uint32_t n = 0; n < NODES; n++) {
		bool fits = usable(s, n) && !(kept & 1u << n) && (!w->top || n < NODES / 2) && (!w->whole || cpus[n] == CPUS) && mem[n] >= w->mem && gpus[n] >= w->gpus;
		cpus[n] = fits ? cpus[n] : 0;
		count += cpus[n] > 0;
	}
	for (uint32_t k = 0; k < (!w->some_nodes ? w->nodes : w->top ? 2 : NODES); k++) { /* those with most */
		uint32_t most = 0;
		for (uint32_t n = 1; n < NODES; n++)
			most = cpus[n] > cpus[most] ? n : most;
		sum += cpus[most];
		cpus[most] = 0;
	}
	return count >= w->nodes && sum >= w->tasks;
}

static uint32_t up_mask(const struct sim *s)
{
	uint32_t up = 0;
	for (uint32_t i = 0; s->core && i < core_node_count(s->core); i++)
		up |= core_node_is_up(s->core, i) ? 1u << i : 0;
	return up;
}

/* False: nothing is planned for it. */
static bool planned_of(const struct sim *s, const struct core_job *j, struct planned *ret)
{
	Pb__JobVolatile v;
	if (core_job_is_finished(j) || core_job_is_running(j))
		return false;
	core_job_volatile(s->core, j, &v);
	if (!v.has_est_start || !v.sched_nodes || (v.reason != REASON_RESOURCES && v.reason != REASON_PRIORITY))
		return false;
	*ret = (struct planned){ .id = core_job_id(j), .start = v.est_start };
	snprintf(ret->nodes, sizeof ret->nodes, "%s", v.sched_nodes);
	return true;
}

void audit_plan_before(struct sim *s)
{
	struct planned p;
	s->planneds = 0;
	s->up = up_mask(s);
	s->reserved = s->core && core_resv_count(s->core);
	for (uint64_t cur = 0; s->core;) {
		const struct core_job *j = core_job_next(s->core, &cur);
		if (!j)
			return;
		if (!planned_of(s, j, &p))
			continue;
		s->planned = xgrow(s->planned, &s->planned_cap, s->planneds + 1, sizeof *s->planned);
		s->planned[s->planneds++] = p;
	}
}

static const struct planned *planned_before(const struct sim *s, uint32_t id)
{
	for (size_t i = 0; i < s->planneds; i++)
		if (s->planned[i].id == id)
			return &s->planned[i];
	return NULL;
}

/* Jobs were started: the first that waits must still have room when it was to start, if it had without those that came after it. */
static void first_has_room(struct sim *s, const struct waiting *first, const uint32_t *started, size_t n)
{
	struct waiting w;
	uint32_t passed[64], passes = 0;
	const struct planned *p = planned_before(s, first->id);
	if (!p || p->start <= s->clock / 1000 || !first->plain)
		return;
	for (size_t i = 0; i < n; i++) {
		(void)waiting_of(s, core_job_find(s->core, started[i]), &w);
		if (before(first, &w) && w.array != first->array)
			passed[passes++] = started[i];
	}
	uint64_t late = p->start + s->params.bf_resolution_sec;
	if (passes && room_at(s, first, late, passed, passes, kept_for_others(s, first)) && !room_at(s, first, late, NULL, 0, 0))
		wrong(s, "a job that comes first is put off by one that came after it", first->id, passed[0]);
}

/* Only jobs that come after it were started, and those before it are planned as they were, on other nodes than it: then it is to start when it was, or earlier,
 * unless that was untrue already (an operator let a running job run longer). */
static void plan_stays(struct sim *s, const struct waiting *all, size_t n, const struct waiting *w, const uint32_t *started, const struct waiting *begun, size_t n_started)
{
	const struct planned *was = planned_before(s, w->id);
	struct planned now, other;
	if (!was || !w->plain || was->start <= s->clock / 1000) /* overdue: who was to end by then has not, and what is planned behind may be in the way now */
		return;
	for (size_t i = 0; i < n_started; i++)
		if (!before(w, &begun[i]) || begun[i].array == w->array)
			return;
	for (size_t i = 0; i < n; i++) {
		const struct planned *o = planned_before(s, all[i].id);
		bool planned = before(&all[i], w) && planned_of(s, core_job_find(s->core, all[i].id), &other);
		if (before(&all[i], w) && (planned != (o != NULL) || (o && (o->start != other.start || (nodes_of(s, o->nodes) | nodes_of(s, other.nodes)) & nodes_of(s, was->nodes)))))
			return;
	}
	uint64_t late = was->start + 1 + s->params.bf_resolution_sec;
	bool planned = planned_of(s, core_job_find(s->core, w->id), &now);
	if ((!planned || now.start > late) && room_at(s, w, late, started, n_started, kept_for_others(s, w)))
		wrong(s, planned ? "a planned start is put off by one that comes after it" : "the start of one that comes after it took a job's planned start", w->id, started[0]);
}

void audit_plan_after(struct sim *s, const uint32_t *started, size_t n)
{
	struct waiting *w = NULL, begun[64];
	size_t waits = 0, cap = 0, first = 0;
	for (uint32_t i = 0; i < NODES; i++)
		s->blameless = s->blameless && s->gone[i] != s->steps; /* a node was lost: all is planned anew */
	if (!n || !s->blameless || s->params.preempt || s->reserved || core_resv_count(s->core) || s->up & ~up_mask(s)) /* a reservation that ends: all is planned anew */
		return;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->core, &cur);
		if (!j)
			break;
		w = xgrow(w, &cap, waits + 1, sizeof *w);
		if (!waiting_of(s, j, &w[waits]))
			continue;
		first = before(&w[waits], &w[first]) ? waits : first;
		waits++;
	}
	for (size_t i = 0; i < n; i++)
		(void)waiting_of(s, core_job_find(s->core, started[i]), &begun[i]);
	if (waits)
		first_has_room(s, &w[first], started, n);
	for (size_t i = 0; i < waits && !s->params.bf_reserve; i++) /* with it (policy.c) one that comes before, and cannot be planned, takes the only promise there is */
		plan_stays(s, w, waits, &w[i], started, begun, n);
	free(w);
}

/* --- the queue -------------------------------------------------------------------------------------- */

static void explained(struct sim *s, const struct core_job *j, uint32_t reason)
{
	struct core_why_ask ask = { .uid = 0, .oper = true };
	Pb__WhyJob *w = core_why(s->core, j, &ask);
	if (!w->n_condition || !w->condition[0]->text[0])
		wrong(s, "a job waits and nothing says why", core_job_id(j), reason);
	pb__why_job__free_unpacked(w, NULL);
}

/* Now and then: all that waits is explained; nothing runs beyond its limit. */
void audit_queue(struct sim *s)
{
	uint32_t waiting = 0, asked = draw(s, 16);
	if (draw(s, 16))
		return;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->core, &cur);
		Pb__JobVolatile v;
		if (!j)
			return;
		if (core_job_is_finished(j))
			continue;
		core_job_volatile(s->core, j, &v);
		if (!core_job_is_running(j)) {
			if (v.reason == REASON_NONE && v.has_last_eval)
				wrong(s, "a job was looked at, waits and has no reason", core_job_id(j), v.reason);
			if (v.reason == REASON_LAUNCH_FAILED_HELD)
				wrong(s, "a job is held because of the network", core_job_id(j), 0);
			if (waiting++ == asked)
				explained(s, j, v.reason);
			continue;
		}
		Pb__JobRecord *r = job_record(s, core_job_id(j));
		if (r->state == PB__JOB_STATE__RUNNING && r->start_time + r->pre_suspend_sec + r->time_limit_min * 60ull + 1 < s->now / 1000)
			wrong(s, "a job runs beyond its limit", r->job_id, r->time_limit_min);
		pb__job_record__free_unpacked(r, NULL);
	}
}

/* What could run and has not ended; what nodes still run. */
uint32_t left_over(struct sim *s, bool show)
{
	static const uint32_t may_wait[] = { REASON_HELD_USER, REASON_HELD_ADMIN, REASON_DEPENDENCY, REASON_DEPENDENCY_NEVER, REASON_REQUEUED_HELD, REASON_RESERVATION_DELETED, REASON_BAD_CONSTRAINTS, REASON_PARTITION_NODE_LIMIT, REASON_PARTITION_TIME_LIMIT };
	uint32_t left = 0;
	for (uint32_t n = 0; n < NODES; n++)
		left += (uint32_t)s->node[n].runs;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(s->core, &cur);
		Pb__JobVolatile v;
		if (!j)
			return left;
		core_job_volatile(s->core, j, &v);
		bool runs = core_job_is_running(j), waits = false;
		for (size_t i = 0; i < sizeof may_wait / sizeof may_wait[0]; i++)
			waits = waits || (v.reason == may_wait[i] && !runs);
		if (core_job_is_finished(j) || waits)
			continue;
		left++;
		Pb__JobRecord *r = show ? job_record(s, core_job_id(j)) : NULL;
		if (r) {
			printf("job %u is %s (%s), restarts %u, on %s\n", r->job_id, job_state_name(r->state, r->state_flags), reason_name(v.reason), r->restarts, r->alloc && r->alloc->batch_host ? r->alloc->batch_host : "-");
			pb__job_record__free_unpacked(r, NULL);
		}
	}
}
