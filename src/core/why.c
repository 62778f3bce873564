/* why.c - everything that holds a pending job back, with numbers, and what would clear each
 * All conditions are told, not only the first: queue.c stops at the first, the person who asks wants to know what comes after it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/priority.h"
#include "core/reserve.h"
#include "core/why.h"
#include "model/depend.h"
#include "model/idset.h"

/* --- the message ------------------------------------------------------------------------------ */

static Pb__WhyItem *item_add(Pb__WhyItem ***list, size_t *n, const char *code, const char *fmt, va_list ap)
{
	Pb__WhyItem *i = xcalloc(1, sizeof *i);
	pb__why_item__init(i);
	i->code = xstrdup(code);
	i->text = xvasprintf(fmt, ap);
	*list = xrealloc(*list, (*n + 1) * sizeof **list);
	(*list)[(*n)++] = i;
	return i;
}

Pb__WhyItem *why_condition(struct why *w, const char *code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	Pb__WhyItem *i = item_add(&w->out->condition, &w->out->n_condition, code, fmt, ap);
	va_end(ap);
	return i;
}

Pb__WhyItem *why_hint_add(struct why *w, const char *code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	Pb__WhyItem *i = item_add(&w->out->hint, &w->out->n_hint, code, fmt, ap);
	va_end(ap);
	return i;
}

void why_clears(Pb__WhyItem *i, uint64_t at_sec, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	free(i->clears);
	i->clears = xvasprintf(fmt, ap);
	va_end(ap);
	i->has_clears_at = at_sec != 0;
	i->clears_at = at_sec;
}

static Pb__WhyFact *fact_add(Pb__WhyItem *i, const char *key)
{
	Pb__WhyFact *f = xcalloc(1, sizeof *f);
	pb__why_fact__init(f);
	f->key = xstrdup(key);
	i->fact = xrealloc(i->fact, (i->n_fact + 1) * sizeof *i->fact);
	i->fact[i->n_fact++] = f;
	return f;
}

void why_number(Pb__WhyItem *i, const char *key, int64_t v)
{
	Pb__WhyFact *f = fact_add(i, key);
	f->has_number = true;
	f->number = v;
}

void why_text(Pb__WhyItem *i, const char *key, const char *v) { fact_add(i, key)->text = xstrdup(v ? v : ""); }

bool why_may_see(const struct why *w, const struct core_job *o) { return !w->ask->hide_jobs || w->ask->oper || o->uid == w->ask->uid; }

const char *why_name(const struct why *w, const struct core_job *o, char *buf, size_t size)
{
	char id[64];
	const char *user = atom_text(w->c, o->user);
	if (!why_may_see(w, o))
		snprintf(buf, size, "a job of another user");
	else if (user && o->uid != w->j->uid)
		snprintf(buf, size, "job %s (%s)", job_id_text(o, id, sizeof id), user);
	else
		snprintf(buf, size, "job %s", job_id_text(o, id, sizeof id));
	return buf;
}

void why_holder(struct why *w, Pb__WhyItem *i, const struct core_job *o, const char *what, uint32_t nodes, uint64_t from_sec, uint64_t until_sec)
{
	Pb__WhyHolder *h = xcalloc(1, sizeof *h);
	char id[64];
	pb__why_holder__init(h);
	if (why_may_see(w, o)) {
		h->has_job_id = true;
		h->job_id = o->id;
		h->id = xstrdup(job_id_text(o, id, sizeof id));
		h->user = xstrdup_null(atom_text(w->c, o->user));
	}
	h->what = xstrdup(what);
	h->nodes = nodes;
	h->has_from = from_sec != 0;
	h->from = from_sec;
	h->has_until = until_sec != 0;
	h->until = until_sec;
	i->holder = xrealloc(i->holder, (i->n_holder + 1) * sizeof *i->holder);
	i->holder[i->n_holder++] = h;
}

const char *why_minutes(uint32_t min, char *buf, size_t size)
{
	char t[64];
	timespec_format(min == TIME_INFINITE ? TIME_INFINITE : min * 60, t, sizeof t);
	snprintf(buf, size, "%s", min == TIME_INFINITE ? "no limit" : t);
	return buf;
}

/* --- holds, times, dependencies --------------------------------------------------------------- */

static void cleaning(struct why *w)
{
	const struct core_job *j = w->j;
	if (!(j->flags & JOBF_COMPLETING) || !j->alloc)
		return;
	struct bitset *b = bitset_create(w->c->node_n);
	for (uint32_t i = 0; i < j->alloc->n; i++)
		if (j->alloc->on[i].state != ON_FREE)
			bitset_set(b, j->alloc->on[i].node);
	char *nodes = nodes_text(w->c, b);
	Pb__WhyItem *i = why_condition(w, "cleaning", "its last run is still being cleaned up on %u of %u nodes (%s)", j->alloc->left, j->alloc->n, nodes);
	why_number(i, "nodes", j->alloc->left);
	why_text(i, "node_list", nodes);
	why_clears(i, 0, "the nodes report that nothing of it is left and the epilog has run; a node that does not answer is given up when it is DOWN");
	free(nodes);
	bitset_destroy(b);
}

static void hold(struct why *w)
{
	const struct core_job *j = w->j;
	char id[64];
	job_id_text(j, id, sizeof id);
	Pb__WhyItem *i;
	switch (j->hold) {
	case REASON_NONE:
		return;
	case REASON_HELD_USER:
		i = why_condition(w, "hold", "it is held by its owner (--hold, scontrol hold, or priority 0)");
		why_text(i, "by", "user");
		why_clears(i, 0, "scontrol release %s", id);
		break;
	case REASON_HELD_ADMIN:
		i = why_condition(w, "hold", "it is held by an administrator");
		why_text(i, "by", "admin");
		why_clears(i, 0, "an operator runs: scontrol release %s", id);
		break;
	case REASON_LAUNCH_FAILED_HELD:
	case REASON_USER_ENV_HELD:
		i = why_condition(w, "hold", "it is held because it %s", j->x && j->x->wait_text ? j->x->wait_text : "could not be launched");
		why_text(i, "by", "launch_failure");
		why_clears(i, 0, "mend the cause, then: scontrol release %s", id);
		break;
	default:
		i = why_condition(w, "hold", "it is held (%s)", reason_name(j->hold));
		why_text(i, "by", "requeue");
		why_clears(i, 0, "scontrol release %s", id);
	}
}

static const char *term_wants(uint32_t kind)
{
	switch (kind) {
	case DEPEND_AFTER: return "to have started";
	case DEPEND_AFTEROK: case DEPEND_AFTERCORR: return "to have ended with exit code 0";
	case DEPEND_AFTERNOTOK: return "to have failed";
	case DEPEND_SINGLETON: return "to have ended: it has the same name and owner (singleton)";
	default: return "to have ended";
	}
}

/* Where the job stands that is waited for. */
static void term_state(struct why *w, Pb__WhyItem *i, const struct core_job *o)
{
	char name[128];
	why_name(w, o, name, sizeof name);
	if (!why_may_see(w, o))
		return;
	why_text(i, "state", job_state_name(o->state, 0));
	if (o->state == PB__JOB_STATE__RUNNING && o->time_min != TIME_INFINITE)
		why_clears(i, o->end, "%s is running and ends at the latest {@%u}", name, o->end);
	else if (o->state == PB__JOB_STATE__RUNNING)
		why_clears(i, 0, "%s is running, without a time limit", name);
	else if (o->state == PB__JOB_STATE__PENDING)
		why_clears(i, 0, "%s is pending itself (%s)", name, reason_name(o->wait ? o->wait : o->shown));
	else
		why_clears(i, 0, "%s is %s", name, job_state_name(o->state, 0));
}

static void depend_item(struct why *w, const struct depend_ref *t, bool any)
{
	struct depend_term term = { .kind = t->kind, .job_id = t->kind == DEPEND_SINGLETON ? 0 : t->job_id, .has_task = t->has_task, .task = t->task, .delay_sec = t->delay_sec };
	const struct core_job *o = t->has_task ? array_task(w->c, t->job_id, t->task) : job_find(w->c, t->job_id);
	char buf[96], who[32];
	depend_term_format(&term, buf, sizeof buf);
	snprintf(who, sizeof who, t->has_task ? "%u_%u" : "%u", t->job_id, t->task);
	Pb__WhyItem *i;
	if (t->state == TERM_NEVER) {
		i = why_condition(w, "dependency_never", "%s can never be met: job %s has ended otherwise", buf, who);
		why_clears(i, 0, "scancel it, or scontrol update JobId=%u Dependency=", w->j->id);
	} else if (t->kind == DEPEND_AFTER && t->until_sec) {
		i = why_condition(w, "dependency", "%s waits until {@%u}: job %s started, the delay is not over", buf, t->until_sec, who);
		why_clears(i, t->until_sec, "at {@%u}", t->until_sec);
	} else {
		i = why_condition(w, "dependency", "%s waits for job %s %s%s", buf, who, term_wants(t->kind), any ? " (one of several would do)" : "");
		if (o)
			term_state(w, i, o);
	}
	why_text(i, "term", buf);
	why_number(i, "job_id", t->job_id);
}

static void dependencies(struct why *w)
{
	const struct job_extra *x = w->j->x;
	for (uint32_t i = 0; x && i < x->dep_n; i++)
		if (x->dep[i].state != TERM_MET)
			depend_item(w, &x->dep[i], x->dep_any && x->dep_n > 1);
}

static void times(struct why *w)
{
	const struct core_job *j = w->j;
	char len[64];
	if (j->begin > now_sec(w->c)) {
		bool again = j->restarts > 0 && (j->flags & JOBF_REQUEUED);
		Pb__WhyItem *i = why_condition(w, "begin_time", again ? "it was put back into the queue and is not tried again before {@%u}" : "it may not begin before {@%u}", j->begin);
		why_number(i, "begin", j->begin);
		why_clears(i, j->begin, "at {@%u}, or scontrol update JobId=%u StartTime=now", j->begin, j->id);
	}
	if (j->deadline && j->time_min != TIME_INFINITE) {
		uint32_t last = j->deadline - j->time_min * 60;
		Pb__WhyItem *i = why_condition(w, "deadline", "it is given up if it has not started by {@%u}: its deadline is {@%u} and its time limit %s", last, j->deadline, why_minutes(j->time_min, len, sizeof len));
		why_number(i, "latest_start", last);
	}
}

static void array_throttle(struct why *w)
{
	const struct core_job *j = w->j;
	if (!array_at_limit(j))
		return;
	Pb__WhyItem *i = why_condition(w, "array_throttle", "%u tasks of array %u run, as many as its limit %%%u allows", j->array->running, j->array->id, j->array->max_running);
	why_number(i, "running", j->array->running);
	why_number(i, "limit", j->array->max_running);
	why_clears(i, 0, "a task ends, or scontrol update JobId=%u ArrayTaskThrottle=N", j->array->id);
}

/* --- partitions ------------------------------------------------------------------------------- */

static void partition_limit(struct why *w, uint32_t p)
{
	const struct shape *s = w->j->shape;
	const struct core_part *part = s->part[p];
	const Pb__PartitionRecord *r = part->rec;
	char a[64], b[64];
	Pb__JobDesc *d = job_desc(w->j);
	uint32_t reason = part_reason(w->c, part, s, d, w->j->time_min);
	Pb__WhyItem *i = NULL;
	switch (reason) {
	case REASON_NONE:
		break;
	case REASON_PARTITION_TIME_LIMIT:
		i = why_condition(w, "partition_time_limit", "its time limit %s is above MaxTime=%s of partition %s", why_minutes(w->j->time_min, a, sizeof a), why_minutes(part->max_time_min, b, sizeof b), r->name);
		why_number(i, "asked_min", w->j->time_min == TIME_INFINITE ? -1 : (int64_t)w->j->time_min);
		why_number(i, "limit_min", part->max_time_min);
		why_clears(i, 0, "scontrol update JobId=%u TimeLimit=%s", w->j->id, b);
		break;
	case REASON_PARTITION_NODE_LIMIT:
		i = why_condition(w, "partition_node_limit", "it asks for %u nodes; partition %s allows %u to %u", s->min_nodes, r->name, part->min_nodes, part->max_nodes);
		why_number(i, "asked", s->min_nodes);
		why_number(i, "min", part->min_nodes);
		why_number(i, "max", part->max_nodes);
		why_clears(i, 0, "another number of nodes, or another partition");
		break;
	case REASON_PARTITION_CONFIG:
		i = why_condition(w, "partition_host", "partition %s takes jobs only from hosts %s (AllocNodes); this one came from %s", r->name, r->alloc_nodes, d->alloc_node ? d->alloc_node : "an unknown one");
		why_clears(i, 0, "submitted from one of those, or another partition");
		break;
	case REASON_ACCOUNT_NOT_ALLOWED:
		i = why_condition(w, "partition_account", "partition %s does not take account %s (AllowAccounts=%s DenyAccounts=%s)", r->name, d->account ? d->account : "(none)", r->allow_accounts ? r->allow_accounts : "ALL", r->deny_accounts ? r->deny_accounts : "");
		why_clears(i, 0, "another account, or another partition");
		break;
	case REASON_QOS_NOT_ALLOWED:
		i = why_condition(w, "partition_qos", "partition %s does not take QOS %s (AllowQos=%s DenyQos=%s)", r->name, d->qos ? d->qos : "normal", r->allow_qos ? r->allow_qos : "ALL", r->deny_qos ? r->deny_qos : "");
		why_clears(i, 0, "another QOS, or another partition");
		break;
	default:
		i = why_condition(w, "partition_limit", "a limit of partition %s forbids it (%s)", r->name, reason_name(reason));
		why_clears(i, 0, "a smaller request, or another partition");
	}
	if (i) {
		why_text(i, "partition", r->name);
		why_text(i, "reason", reason_name(reason));
	}
	pb__job_desc__free_unpacked(d, NULL);
}

/* Its state lets jobs start there? */
static bool partition_open(struct why *w, uint32_t p)
{
	const struct shape *s = w->j->shape;
	const struct core_part *part = s->part[p];
	if (!part) {
		Pb__WhyItem *i = why_condition(w, "partition_missing", "partition %s does not exist any more", s->part_names[p]);
		why_text(i, "partition", s->part_names[p]);
		why_clears(i, 0, "scontrol update JobId=%u Partition=OTHER", w->j->id);
		return false;
	}
	if (part->state == PART_UP || part->state == PART_DRAIN)
		return true;
	Pb__WhyItem *i = why_condition(w, "partition_state", "partition %s is %s: no job starts there", part->rec->name, part->rec->state);
	why_text(i, "partition", part->rec->name);
	why_text(i, "state", part->rec->state);
	why_clears(i, 0, "an operator sets it UP, or scontrol update JobId=%u Partition=OTHER", w->j->id);
	return false;
}

static void partitions(struct why *w)
{
	const struct shape *s = w->j->shape;
	for (uint32_t p = 0; p < s->part_n; p++) {
		bool open = partition_open(w, p);
		if (s->part[p] && !(s->part_mask & 1u << p))
			partition_limit(w, p);
		if (open && s->able[p] && (s->part_mask & 1u << p))
			why_nodes(w, p);
	}
}

/* --- licenses --------------------------------------------------------------------------------- */

static void license_holders(struct why *w, Pb__WhyItem *item, uint32_t name)
{
	uint32_t told = 0;
	for (uint64_t cur = 0; told < 8;) {
		const struct core_job *o = core_job_next(w->c, &cur);
		if (!o)
			break;
		for (uint32_t i = 0; o->x && i < o->x->lic_n; i++)
			if (o->x->lic[i].name == name) {
				why_holder(w, item, o, "running", o->alloc ? o->alloc->n : 0, 0, o->time_min == TIME_INFINITE ? 0 : job_end_ms(w->c, o) / 1000);
				told++;
			}
	}
}

/* Enough are free, but not beside those that planned jobs before it will need. */
static void licenses_kept(struct why *w)
{
	const struct lic_wants *l = &w->j->shape->lic;
	uint64_t from = w->c->now_ms, to = from + job_length_ms(w->j);
	if (!w->j->qnode.in || license_beside(w->c, w->j, from, to))
		return;
	for (uint32_t i = 0; i < l->n; i++) {
		const char *name = atom_text(w->c, l->w[i].name);
		uint32_t left = license_free(w->c, l->w[i].name);
		uint64_t kept = license_kept(w->c, w->j, l->w[i].name, from, to);
		if (left >= l->w[i].count + kept)
			continue;
		Pb__WhyItem *item = why_condition(w, "licenses", "%u of license %s %s asked for; %u are free, but jobs before it are planned to start with %llu of them before it would end", l->w[i].count, name,
			l->w[i].count == 1 ? "is" : "are", left, (unsigned long long)kept);
		why_text(item, "license", name);
		why_number(item, "asked", l->w[i].count);
		why_number(item, "free", left);
		why_number(item, "kept", kept);
		why_clears(item, 0, "those jobs start and end, or its time limit ends before the first of them starts");
	}
}

static void licenses(struct why *w)
{
	const struct lic_wants *l = &w->j->shape->lic;
	if (license_room(w->c, w->j, l)) {
		licenses_kept(w);
		return;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		const char *name = atom_text(w->c, l->w[i].name);
		uint32_t left = license_free(w->c, l->w[i].name), total = 0;
		struct core_license k;
		uint64_t reserved = license_reserved(w->c, w->j, l->w[i].name, w->c->now_ms, w->c->now_ms + job_length_ms(w->j));
		if (left >= l->w[i].count + reserved)
			continue;
		char kept[96] = "";
		if (reserved)
			snprintf(kept, sizeof kept, "; %llu are reserved for others before it would end", (unsigned long long)reserved);
		for (size_t x = 0; core_license(w->c, x, &k); x++)
			total = !strcmp(k.name, name) ? k.total : total;
		Pb__WhyItem *item = why_condition(w, "licenses", "%u of license %s %s asked for%s, %u of %u are free%s", l->w[i].count, name, l->w[i].count == 1 ? "is" : "are", l->any ? " (one of several would do)" : "", left, total, kept);
		if (reserved)
			why_number(item, "reserved", (int64_t)reserved);
		why_text(item, "license", name);
		why_number(item, "asked", l->w[i].count);
		why_number(item, "free", left);
		why_number(item, "total", total);
		license_holders(w, item, l->w[i].name);
		why_clears(item, 0, total < l->w[i].count ? "fewer of them: there are no more" : reserved ? "the reservation or jobs that hold them end" : "jobs that hold them end");
	}
}

/* --- its place in the queue ------------------------------------------------------------------- */

static const struct core_job *job_at(const struct tree_node *n) { return (const struct core_job *)((const char *)n - offsetof(struct core_job, qnode)); }

static bool wants_same(const struct shape *a, const struct shape *b)
{
	for (uint32_t i = 0; i < a->part_n; i++)
		for (uint32_t k = 0; k < b->part_n; k++)
			if (a->able[i] && b->able[k] && bitset_intersects(a->able[i], b->able[k]))
				return true;
	return false;
}

/* How many are before it in the queue, and how many of those want some of its nodes; the first of these. */
static void queue_place(struct why *w, uint32_t *before, uint32_t *same, uint32_t *all, const struct core_job **first)
{
	*before = *same = *all = 0;
	*first = NULL;
	for (struct shape *s = w->c->shapes; s; s = s->hh.next) {
		bool meets = s->queue.count && wants_same(s, w->j->shape);
		*all += s->queue.count;
		for (struct tree_node *n = s->queue.count ? tree_first(&s->queue) : NULL; n; n = tree_next(n)) {
			const struct core_job *o = job_at(n);
			if (o == w->j || !job_before(o, w->j))
				break;
			++*before;
			*same += meets;
			if (meets && (!*first || job_before(o, *first)))
				*first = o;
		}
	}
}

static void plan_fill(struct why *w, Pb__WhyPlan *plan, uint32_t before, uint32_t same, uint32_t all)
{
	const struct core_job *j = w->j;
	const struct promise *p = j->promise;
	plan->has_position = plan->has_queued = plan->has_ahead = true;
	plan->position = before + 1;
	plan->queued = all;
	plan->ahead = same;
	if (!p) {
		plan->text = xstrdup(!w->c->params.backfill ? "there is no plan: sched/builtin starts jobs strictly in their order" :
			same ? "no start is planned for it yet: those before it that want its nodes are planned first" :
			j->shape->tried ? "no start within the window of the plan (bf_window) could be found" : "the plan has not come to it yet");
		return;
	}
	struct bitset *b = bitset_create(w->c->node_n);
	for (uint32_t i = 0; i < p->n; i++)
		bitset_set(b, p->on[i].node);
	plan->nodes = nodes_text(w->c, b);
	bitset_destroy(b);
	plan->has_start = true;
	plan->start = p->start_ms / 1000;
	plan->partition = xstrdup(w->c->part[p->part]->rec->name);
	plan->text = xasprintf("it starts at the latest {@%llu} on %s, in partition %s: nothing later in the queue can delay that", (unsigned long long)plan->start, plan->nodes, plan->partition);
}

static void queue_items(struct why *w)
{
	const struct core_job *j = w->j, *first;
	char name[128];
	uint32_t before, same, all;
	if (!j->qnode.in)
		return;
	queue_place(w, &before, &same, &all, &first);
	w->out->priority = prio_explain(w->c, j);
	w->out->plan = xcalloc(1, sizeof *w->out->plan);
	pb__why_plan__init(w->out->plan);
	plan_fill(w, w->out->plan, before, same, all);
	if (!j->shape->tried && !j->promise) {
		Pb__WhyItem *i = why_condition(w, "not_examined", "the scheduler has not looked at it since it came to the head of its kind or something changed for it");
		why_clears(i, 0, "the next passes: they go through the queue in order and take what time the controller has");
	}
	if (!same)
		return;
	Pb__WhyItem *i = why_condition(w, "priority", "%u job%s before it in the queue want%s some of the same nodes, first of them %s", same, same == 1 ? "" : "s", same == 1 ? "s" : "", why_name(w, first, name, sizeof name));
	why_number(i, "ahead", same);
	why_number(i, "priority", job_priority(w->c, j));
	if (why_may_see(w, first)) {
		why_number(i, "first_job_id", first->id);
		why_number(i, "first_priority", job_priority(w->c, first));
	}
	why_clears(i, 0, "they start; it may start before them where that delays none of them");
}

/* --- entrance --------------------------------------------------------------------------------- */

static void head_fill(struct why *w)
{
	const struct core_job *j = w->j;
	Pb__JobVolatile vol;
	char id[64];
	core_job_volatile(w->c, j, &vol);
	w->out->job_id = j->id;
	if (j->tasks) {
		char *t = idset_format(j->tasks);
		w->out->id = xasprintf("%u_[%s]", j->id, t);
		free(t);
	} else
		w->out->id = xstrdup(job_id_text(j, id, sizeof id));
	w->out->name = job_desc_str(j, 1);
	w->out->user = xstrdup_null(atom_text(w->c, j->user));
	w->out->partition = j->part < w->c->part_n ? xstrdup(w->c->part[j->part]->rec->name) : job_desc_str(j, 4);
	w->out->state = xstrdup(job_state_name(j->state, j->flags));
	w->out->reason = xstrdup(vol.reason_desc ? vol.reason_desc : reason_name(vol.reason));
}

static bool may_start(struct why *w)
{
	const struct shape *s = w->j->shape;
	for (uint32_t p = 0; p < s->part_n; p++)
		if (s->part[p] && s->able[p] && (s->part_mask & 1u << p) && why_room(w, p))
			return true;
	return false;
}

static void own_conditions(struct why *w)
{
	shape_refresh(w->c, w->j->shape);
	why_resv_choose(w);
	cleaning(w);
	hold(w);
	dependencies(w);
	times(w);
	array_throttle(w);
	why_acct(w);
	licenses(w);
	partitions(w);
	if (!w->j->qnode.in || !may_start(w))
		why_reservations(w);
}

/* What holds other components back: all of a heterogeneous job start together. */
static void component_items(struct why *w, const struct core_job *o)
{
	struct core_why_ask brief = { .uid = w->ask->uid, .oper = w->ask->oper, .hide_jobs = w->ask->hide_jobs, .hide_nodes = w->ask->hide_nodes, .brief = true };
	struct why other = { .c = w->c, .j = o, .ask = &brief, .out = xcalloc(1, sizeof *other.out) };
	char id[64];
	pb__why_job__init(other.out);
	other.out->id = xstrdup("");
	own_conditions(&other);
	job_id_text(o, id, sizeof id);
	for (size_t i = 0; i < other.out->n_condition; i++) {
		Pb__WhyItem *x = other.out->condition[i];
		char *text = xasprintf("component %s: %s", id, x->text);
		free(x->text);
		x->text = text;
		why_text(x, "component", id);
		w->out->condition = xrealloc(w->out->condition, (w->out->n_condition + 1) * sizeof *w->out->condition);
		w->out->condition[w->out->n_condition++] = x;
	}
	other.out->n_condition = 0;
	pb__why_job__free_unpacked(other.out, NULL);
}

static void components(struct why *w)
{
	const struct het *h = w->j->het;
	uint32_t n = 0;
	for (uint32_t i = 0; h && i < h->n; i++) {
		const struct core_job *o = het_job(w->c, h, i);
		if (o && o != w->j && o->state == PB__JOB_STATE__PENDING)
			component_items(w, o);
		n += o && o->state == PB__JOB_STATE__PENDING;
	}
	if (h && !w->out->n_condition && het_first(w->c, w->j)->shape->tried) {
		Pb__WhyItem *i = why_condition(w, "together", "each of its %u components would have room by itself, but not all of them at the same time", n);
		why_number(i, "components", n);
		why_clears(i, 0, "jobs end that hold what one component leaves for another");
	}
}

static void pending(struct why *w)
{
	own_conditions(w);
	components(w);
	queue_items(w);
	if (!w->ask->brief && w->j->qnode.in && !may_start(w))
		why_preemption(w);
	if (!w->out->n_condition)
		why_condition(w, "starting", "nothing holds it back: it starts with the next pass of the scheduler");
	if (!w->ask->brief && w->j->qnode.in && license_room(w->c, w->j, &w->j->shape->lic) && !may_start(w))
		why_hints(w);
}

Pb__WhyJob *core_why(const struct core *c, const struct core_job *j, const struct core_why_ask *ask)
{
	struct why w = { .c = (struct core *)c, .j = j, .ask = ask, .out = xcalloc(1, sizeof *w.out) };
	pb__why_job__init(w.out);
	head_fill(&w);
	if (j->state == PB__JOB_STATE__PENDING)
		pending(&w);
	else
		why_started(&w);
	return w.out;
}
