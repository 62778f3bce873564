/* read.c - what the shell may look at between steps; nothing here changes what the core does */
#include <stdio.h>
#include <stdlib.h>

#include "core/reserve.h"

const struct core_job *core_job_find(const struct core *c, uint32_t job_id) { return job_find(c, job_id); }

uint32_t core_unread(const struct core *c) { return c->unread; }

bool core_job_forgotten(const struct core *c, uint32_t job_id) { return job_id < c->next_id && !job_find(c, job_id) && !array_find(c, job_id); }

const struct core_job *core_job_next(const struct core *c, uint64_t *cursor)
{
	for (uint64_t i = *cursor; i / JOB_PAGE < c->page_n; i++) {
		const struct job_page *p = c->page[i / JOB_PAGE];
		if (!p) {
			i |= JOB_PAGE - 1;
			continue;
		}
		if (p->job[i % JOB_PAGE]) {
			*cursor = i + 1;
			return p->job[i % JOB_PAGE];
		}
	}
	*cursor = (uint64_t)c->page_n * JOB_PAGE;
	return NULL;
}

uint32_t core_job_id(const struct core_job *j) { return j->id; }
Pb__StepLayout *core_step_layout(const struct core *c, uint32_t job_id, uint32_t step_id)
{
	const struct core_job *j = core_job_find(c, job_id);
	const struct step *s = j && j->alloc ? step_find(j, step_id) : NULL;
	if (!s || !s->on_n)
		return NULL;
	struct effects *fx = effects_create();
	Pb__StepLayout *copy = (Pb__StepLayout *)message_copy((const ProtobufCMessage *)layout_message(c, j, s, effects_arena(fx)));
	effects_destroy(fx);
	return copy;
}

uint32_t core_job_leader(const struct core_job *j) { return j && j->het ? j->het->id : 0; }
uint32_t core_job_uid(const struct core_job *j) { return j->uid; }
bool core_job_is_finished(const struct core_job *j) { return job_state_is_final(j->state); }
bool core_job_is_ready(const struct core_job *j) { return core_job_is_running(j) && !(j->flags & JOBF_CONFIGURING); }
bool core_job_is_running(const struct core_job *j) { return j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED; }
bool core_job_is_completing(const struct core_job *j) { return j->flags & JOBF_COMPLETING; }
uint32_t core_job_blocked(const struct core_job *j) { return j->blocked; }
const char *core_job_partition(const struct core_job *j) { return j->shape->part_n ? j->shape->part_names[0] : NULL; }

const uint8_t *core_job_blob(const struct core *c, const struct core_job *j, size_t *ret_len)
{
	struct core_job *w = (struct core_job *)j; /* the cache is no part of the state */
	if (w->blob_stale)
		record_encode(c, w);
	*ret_len = j->blob_len;
	return j->blob;
}

static char *text_buf(const struct core *c, int i) { return ((struct core *)c)->text[i]; }

static const char *away_text(const struct core *c, const struct core_job *j)
{
	struct bitset *b = bitset_copy(j->shape->required);
	bitset_andnot(b, c->up);
	char *t = nodes_text(c, b);
	snprintf(text_buf(c, 0), sizeof c->text[0], "ReqNodeNotAvail, UnavailableNodes:%s", t);
	free(t);
	bitset_destroy(b);
	return text_buf(c, 0);
}

/* Are fewer of its nodes up than it wants, in each partition it may use? */
static bool nodes_away(const struct core *c, const struct shape *s, bool *ret_some_up)
{
	bool known = false;
	for (uint32_t i = 0; i < s->part_n; i++) {
		if (!s->part[i] || !s->able[i] || !(s->part_mask & 1u << i))
			continue;
		uint32_t up = bitset_count_and(s->able[i], c->up);
		if (up >= s->min_nodes)
			return false;
		known = true;
		*ret_some_up |= up > 0;
	}
	return known;
}

/* What the reference then says instead of Resources or Priority: names of nodes where none is up and some are down. NULL: it is not so. */
static const char *nodes_away_text(const struct core *c, const struct core_job *j, uint32_t *ret_reason)
{
	const struct shape *s = j->shape;
	bool some_up = false;
	if (!nodes_away(c, s, &some_up))
		return NULL;
	struct bitset *down = bitset_create(c->node_n);
	for (uint32_t i = 0; i < s->part_n && !some_up; i++)
		if (s->part[i] && s->able[i])
			bitset_for(s->able[i], n)
				if (c->node[n]->base == NODE_DOWN)
					bitset_set(down, n);
	const char *text = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
	if (!bitset_empty(down)) {
		char *t = nodes_text(c, down);
		snprintf(text_buf(c, 0), sizeof c->text[0], "ReqNodeNotAvail, UnavailableNodes:%s", t);
		free(t);
		text = text_buf(c, 0);
		*ret_reason = REASON_REQ_NODE_NOT_AVAIL;
	} else {
		*ret_reason = REASON_RESOURCES;
	}
	bitset_destroy(down);
	return text;
}

static uint32_t shown_reason(const struct core *c, const struct core_job *j)
{
	if (het_follows(j) && j->state == PB__JOB_STATE__PENDING && !j->wait)
		j = het_first(c, j);
	if (j->state != PB__JOB_STATE__PENDING)
		return j->x ? j->x->end_reason : REASON_NONE;
	if (j->wait)
		return j->wait;
	if (j->shape->limited)
		return j->shape->limited;
	if (j->shown)
		return j->shown;
	if (j->shape->lic_short)
		return REASON_LICENSES;
	return j->shape->tried ? REASON_PRIORITY : REASON_NONE; /* behind a head that was looked at */
}

void core_job_volatile(const struct core *c, const struct core_job *j, Pb__JobVolatile *ret)
{
	pb__job_volatile__init(ret);
	ret->has_reason = ret->has_priority = true;
	ret->reason = shown_reason(c, j);
	ret->priority = job_priority(c, j);
	if (j->state != PB__JOB_STATE__PENDING) {
		ret->has_last_eval = j->start != 0;
		ret->last_eval = j->start;
		ret->scheduler = j->start ? (char *)(j->backfilled ? "Backfill" : "Main") : NULL;
		return;
	}
	if (ret->reason == REASON_REQ_NODE_NOT_AVAIL && j->shape->resv_shown)
		ret->reason_desc = (char *)(j->shape->resv_shown == 2 ? "ReqNodeNotAvail, Reserved for maintenance" : "ReqNodeNotAvail, May be reserved for other job");
	else if (ret->reason == REASON_REQ_NODE_NOT_AVAIL && j->shape->required)
		ret->reason_desc = (char *)away_text(c, j);
	else if (j->x && j->x->wait_text && (j->hold == REASON_LAUNCH_FAILED_HELD || j->hold == REASON_RESERVATION_DELETED))
		ret->reason_desc = j->x->wait_text;
	else if (j->shape->tried && (ret->reason == REASON_RESOURCES || ret->reason == REASON_PRIORITY))
		ret->reason_desc = (char *)nodes_away_text(c, j, &ret->reason);
	ret->has_last_eval = j->shape->tried;
	ret->last_eval = j->shape->tried ? c->now_ms / 1000 : 0;
	if (j->begin > c->now_ms / 1000) { /* whatever else holds it back */
		ret->has_est_start = true;
		ret->est_start = j->begin;
	}
	if (!j->promise || j->promise->broken) /* broken: about to be planned anew */
		return;
	ret->has_est_start = true;
	ret->est_start = j->promise->start_ms / 1000;
	struct bitset *b = bitset_create(c->node_n);
	for (uint32_t i = 0; i < j->promise->n; i++)
		bitset_set(b, j->promise->on[i].node);
	char *t = nodes_text(c, b);
	snprintf(text_buf(c, 1), sizeof c->text[1], "%s", t);
	ret->sched_nodes = text_buf(c, 1);
	ret->scheduler = (char *)"Backfill";
	free(t);
	bitset_destroy(b);
}

void core_passes(const struct core *c, struct core_passes *ret_quick, struct core_passes *ret_plan)
{
	*ret_quick = c->pass;
	*ret_plan = c->plan_pass;
}

void core_job_counts(const struct core *c, int64_t *ret_pending, int64_t *ret_running)
{
	const struct core_job *j;
	*ret_pending = *ret_running = 0;
	for (uint64_t cur = 0; (j = core_job_next(c, &cur));) {
		if (j->state == PB__JOB_STATE__PENDING)
			*ret_pending += j->tasks ? (int64_t)bitset_count(j->tasks) : 1;
		*ret_running += j->state == PB__JOB_STATE__RUNNING;
	}
}

/* --- nodes, partitions, steps ----------------------------------------------------------------- */

size_t core_node_count(const struct core *c) { return c->node_n; }
const char *core_node_name(const struct core *c, uint32_t index) { return c->node[index]->name; }
bool core_node_is_up(const struct core *c, uint32_t index) { return c->node[index]->base != NODE_DOWN && c->node[index]->base != NODE_FUTURE; }

const char *core_node_addr(const struct core *c, uint32_t index, uint16_t *ret_port)
{
	if (ret_port)
		*ret_port = c->node[index]->port;
	return c->node[index]->addr;
}

/* Indexes in use as a list, "" for none; NULL where they are not counted one by one or have no index. Caller frees. */
static char *gres_used_index(const struct core_node *n, const struct node_gres *e)
{
	const uint64_t *dev = n->used + n->cpu_words;
	if (!e->by_device || e->no_index)
		return NULL;
	uint64_t *bits = xcalloc((e->first_index + e->count) / 64 + 1, sizeof *bits);
	for (uint32_t i = 0; i < e->count; i++)
		if (dev[(e->bit0 + i) / 64] >> ((e->bit0 + i) % 64) & 1)
			bits[(e->first_index + i) / 64] |= 1ULL << ((e->first_index + i) % 64);
	char *text = bits_text(bits, e->first_index + e->count);
	free(bits);
	return text;
}

/* "shard:h100:3(-/4,3/4)": once for those of all GPUs of one type, at the first of them. */
static void shards_used(const struct core *c, const struct core_node *n, uint32_t g, struct str *s)
{
	const struct node_gres *e = &n->gres[g];
	uint32_t used = 0;
	for (uint32_t i = 0; i < n->gres_n; i++) {
		if (!n->gres[i].shard || n->gres[i].name != e->name || n->gres[i].type != e->type)
			continue;
		if (i < g)
			return;
		used += n->gres[i].used;
	}
	char *t = shards_text(n, e, true, NULL);
	str_add_sep(s, ",", atom_text(c, e->name));
	if (e->type)
		str_addf(s, ":%s", atom_text(c, e->type));
	str_addf(s, ":%u(%s)", used, t);
	free(t);
}

/* "gpu:h100:2(IDX:0-1),gpu:a100:0(IDX:N/A)" */
static char *gres_used(const struct core *c, const struct core_node *n)
{
	struct str s = STR_INIT;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		const struct node_gres *e = &n->gres[g];
		if (e->shard) {
			shards_used(c, n, g, &s);
			continue;
		}
		char *t = gres_used_index(n, e);
		str_add_sep(&s, ",", atom_text(c, e->name));
		if (e->type)
			str_addf(&s, ":%s", atom_text(c, e->type));
		str_addf(&s, ":%u", e->used);
		if (t)
			str_addf(&s, "(IDX:%s)", t[0] ? t : "N/A");
		free(t);
	}
	return s.len ? str_take(&s) : NULL;
}

static void node_gres_used(const struct core_node *n, Pb__NodeRecord *m)
{
	for (uint32_t g = 0; g < n->gres_n && g < m->n_gres_list; g++) {
		const struct node_gres *e = &n->gres[g];
		char *t = gres_used_index(n, e);
		m->gres_list[g]->has_used = true;
		m->gres_list[g]->used = e->used;
		xstr_set(&m->gres_list[g]->used_index, t);
		free(t);
	}
}

static bool node_planned(const struct core *c, const struct core_node *n)
{
	for (uint32_t i = 0; i < n->plan_n; i++)
		if (n->plan[i].p->start_ms > c->now_ms)
			return true;
	return false;
}

Pb__NodeRecord *core_node_record(const struct core *c, uint32_t index)
{
	const struct core_node *n = c->node[index];
	Pb__NodeRecord *m = (Pb__NodeRecord *)message_copy((const ProtobufCMessage *)n->rec);
	struct str parts = STR_INIT;
	uint32_t flags;
	m->has_state = m->has_state_flags = m->has_alloc_cpus = m->has_alloc_mem = m->has_last_busy = m->has_effective_cpus = true;
	m->state = node_state_now(n, &flags);
	if (node_planned(c, n) && m->state == NODE_IDLE)
		flags |= NODEF_PLANNED;
	m->state_flags = flags;
	m->alloc_cpus = n->cpus_used;
	m->alloc_mem = n->mem_used;
	m->last_busy = n->last_busy_ms / 1000;
	m->effective_cpus = n->cap;
	m->has_cpus = m->has_sockets = m->has_cores = m->has_threads = true;
	m->cpus = n->cpus;
	m->sockets = n->sockets;
	m->cores = n->cores_per_socket;
	m->threads = n->threads;
	free(m->alloc_tres);
	free(m->cfg_tres);
	free(m->gres_used);
	free(m->partitions);
	m->alloc_tres = tres_of_node(c, n, true);
	m->cfg_tres = tres_of_node(c, n, false);
	for (uint32_t i = n->resv_n; i-- > 0;)
		if (n->resv[i].r->active)
			xstr_set(&m->reservation, n->resv[i].r->rec->name);
	m->gres_used = gres_used(c, n);
	company_record(c, n, m);
	node_gres_used(n, m);
	node_released_record(n, m);
	for (uint32_t p = 0; p < c->part_n; p++)
		if (bitset_has(c->part[p]->nodes, index))
			str_add_sep(&parts, ",", c->part[p]->rec->name);
	m->partitions = parts.len ? str_take(&parts) : NULL;
	return m;
}

void core_node_started(const struct core *c, uint32_t index, uint64_t *ret_boot, uint64_t *ret_slurmd)
{
	*ret_boot = c->node[index]->rec->boot_time;
	*ret_slurmd = c->node[index]->rec->slurmd_start_time;
}

size_t core_part_count(const struct core *c) { return c->part_n; }

char *part_tres(const struct core *c, const struct core_part *p)
{
	struct tres_sum t = { 0 };
	bitset_for(p->nodes, i) {
		const struct core_node *n = c->node[i];
		t.cpu += n->cpus;
		t.billing += n->cpus;
		t.mem_mb += n->mem;
		t.node++;
		for (uint32_t g = 0; g < n->gres_n; g++)
			tres_add_gres(&t, atom_text(c, n->gres[g].name), n->gres[g].type ? atom_text(c, n->gres[g].type) : "", n->gres[g].count);
	}
	return tres_format(&t, c->params.tres_extra && strchr(c->params.tres_extra, ':'));
}

Pb__PartitionRecord *core_part_record(const struct core *c, size_t i)
{
	assert(i < c->part_n);
	Pb__PartitionRecord *m = (Pb__PartitionRecord *)message_copy((const ProtobufCMessage *)c->part[i]->rec);
	free(m->tres);
	m->tres = part_tres(c, c->part[i]);
	if (!m->preempt_mode || !m->preempt_mode[0]) { /* that of the cluster */
		static const char *const mode[] = { [PREEMPT_OFF] = "OFF", [PREEMPT_CANCEL] = "CANCEL", [PREEMPT_REQUEUE] = "REQUEUE", [PREEMPT_SUSPEND] = "SUSPEND" };
		char *text = xasprintf("%s%s", c->params.gang ? "GANG," : "", mode[preempt_mode(c, c->part[i])]);
		xstr_set(&m->preempt_mode, text);
		free(text);
	}
	return m;
}

static void steps_of(const struct core *c, const struct core_job *j, Pb__StepRecord ***ret, size_t *n, size_t *cap)
{
	for (const struct step *s = j->alloc ? j->steps : NULL; s; s = s->next) {
		*ret = xgrow(*ret, cap, *n + 1, sizeof **ret);
		Pb__StepRecord *m = step_record(c, j, s);
		if (s->id == STEP_ID_BATCH || s->id == STEP_ID_EXTERN) {    /* has what the job has: shown with nothing of its own, as in the reference */
			m->num_cpus = 0;
			xfree(m->tres);
		}
		(*ret)[(*n)++] = m;
	}
}

size_t core_step_records(const struct core *c, uint32_t job_id, Pb__StepRecord ***ret)
{
	size_t n = 0, cap = 0;
	*ret = NULL;
	if (job_id) {
		const struct core_job *j = job_find(c, job_id);
		if (j)
			steps_of(c, j, ret, &n, &cap);
		return n;
	}
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		steps_of(c, j, ret, &n, &cap);
	}
	return n;
}

bool core_counter(const struct core *c, size_t i, const char **ret_name, int64_t *ret_value)
{
	const struct { const char *name; int64_t value; } row[] = {
		{ "jobs_submitted", c->submitted }, { "jobs_started", c->started }, { "jobs_completed", c->completed },
		{ "jobs_canceled", c->cancelled }, { "jobs_failed", c->failed }, { "jobs_requeued", c->requeued }, { "jobs_known", c->job_n },
		{ "launches_failed", c->launches_failed }, { "sched_passes", c->passes }, { "placements_tried", c->tries },
		{ "nodes_looked_at", (int64_t)c->work }, { "promises_made", c->planned }, { "bf_jobs", c->backfilled }, { "promises_held", c->promise_n }, { "shapes", (int64_t)HASH_COUNT(c->shapes) },
		{ "shapes_waiting", c->shapes_active.count }, { "timers", (int64_t)c->timer_n }, { "next_job_id", c->next_id },
		{ "sweeps_whole", c->sweeps_whole }, { "sweeps_cut", c->sweeps_cut },
	};
	if (i >= sizeof row / sizeof row[0])
		return false;
	*ret_name = row[i].name;
	*ret_value = row[i].value;
	return true;
}
