/* depend.c - dependencies: a job waits for others, and is looked at again when one of them starts or ends
 * Each term is settled once (met, or can never be met) and stays so; terms on jobs the core has forgotten were settled before, or by what
 * accounting says of them. A job that is depended on keeps a list of who waits, so the end of a job costs as much as it has dependants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "model/depend.h"

void depend_waiters_free(struct dep_waiter **list)
{
	while (*list) {
		struct dep_waiter *w = *list;
		*list = w->next;
		free(w);
	}
}

static void waiter_add(struct dep_waiter **list, struct core_job *j)
{
	struct dep_waiter *w = xcalloc(1, sizeof *w);
	while (*list) {
		if ((*list)->job == j) {
			free(w);
			return;
		}
		list = &(*list)->next;
	}
	w->job = j;
	*list = w;
}

static void waiter_remove(struct dep_waiter **list, const struct core_job *j)
{
	for (; *list; list = &(*list)->next)
		if ((*list)->job == j) {
			struct dep_waiter *w = *list;
			*list = w->next;
			free(w);
			return;
		}
}

/* Where the waiters of a term are kept: at the array, or at the job. */
static struct dep_waiter **waiters_of(const struct core *c, const struct depend_ref *t)
{
	struct array *a = array_find(c, t->job_id);
	if (a)
		return &a->waiters;
	struct core_job *j = job_find(c, t->job_id);
	return j ? &j->waiters : NULL;
}

/* --- is it met? ------------------------------------------------------------------------------- */

static uint8_t settle_final(uint32_t kind, uint32_t state)
{
	bool ok = state == PB__JOB_STATE__COMPLETED;
	if (kind == DEPEND_AFTEROK || kind == DEPEND_AFTERCORR)
		return ok ? TERM_MET : TERM_NEVER;
	if (kind == DEPEND_AFTERNOTOK)
		return ok ? TERM_NEVER : TERM_MET;
	return TERM_MET;
}

static uint8_t settle_job(struct core *c, struct depend_ref *t, const struct core_job *o)
{
	t->until_sec = 0;
	if (t->kind == DEPEND_AFTER && o->start && o->state != PB__JOB_STATE__PENDING) {
		uint64_t from = (uint64_t)o->start + t->delay_sec;
		if (from <= now_sec(c))
			return TERM_MET;
		t->until_sec = (uint32_t)from;
		return TERM_WAITS;
	}
	if (!job_state_is_final(o->state))
		return TERM_WAITS;
	return settle_final(t->kind, o->state);
}

static uint8_t settle_array(struct core *c, struct depend_ref *t, struct array *a)
{
	bool failed = a->failed_gone > 0;
	uint32_t latest = 0;
	t->until_sec = 0;
	if (a->head)
		return TERM_WAITS;
	for (uint32_t i = 0; i < a->size; i++) {
		const struct core_job *o = a->job_of[i] ? job_find(c, a->job_of[i]) : NULL;
		if (!o)
			continue;
		if (t->kind == DEPEND_AFTER ? o->state == PB__JOB_STATE__PENDING : !job_state_is_final(o->state))
			return TERM_WAITS;
		latest = o->start > latest ? o->start : latest;
		failed = failed || o->state != PB__JOB_STATE__COMPLETED;
	}
	if (t->kind == DEPEND_AFTER && latest && latest + (uint64_t)t->delay_sec > now_sec(c)) {
		t->until_sec = (uint32_t)(latest + (uint64_t)t->delay_sec);
		return TERM_WAITS;
	}
	return t->kind == DEPEND_AFTER ? TERM_MET : settle_final(t->kind, failed ? PB__JOB_STATE__FAILED : PB__JOB_STATE__COMPLETED);
}

/* The newest unfinished job of that user and name that was there before. */
static struct core_job *singleton_before(const struct core *c, const struct core_job *j)
{
	char *name = job_desc_str(j, 1);
	const struct core_job *found = NULL, *o;
	for (uint64_t cur = 0; (o = core_job_next(c, &cur)) && o->id < j->id;)
		if (o->uid == j->uid && !job_state_is_final(o->state) && job_desc_str_eq(o, 1, name ? name : ""))
			found = o;
	free(name);
	return (struct core_job *)found;
}

static uint8_t settle_singleton(struct core *c, struct core_job *j, struct depend_ref *t)
{
	struct core_job *o = t->job_id ? job_find(c, t->job_id) : NULL;
	if (o && !job_state_is_final(o->state))
		return TERM_WAITS;
	if (o)
		waiter_remove(&o->waiters, j); /* it may live longer than j: requeued, it has an end before it again */
	o = singleton_before(c, j);
	if (!o)
		return TERM_MET;
	t->job_id = o->id;
	waiter_add(&o->waiters, j);
	return TERM_WAITS;
}

static uint8_t settle(struct core *c, struct core_job *j, struct depend_ref *t)
{
	if (t->kind == DEPEND_SINGLETON)
		return settle_singleton(c, j, t);
	struct array *a = array_find(c, t->job_id);
	if (a && !t->has_task)
		return settle_array(c, t, a);
	const struct core_job *o = a ? array_task(c, t->job_id, t->task) : job_find(c, t->job_id);
	if (o)
		return settle_job(c, t, o);
	if (a && a->head && a->head->tasks && bitset_has(a->head->tasks, t->task))
		return TERM_WAITS;
	return t->until_sec > now_sec(c) ? TERM_WAITS : TERM_MET;
}

uint32_t depend_wait(struct core *c, struct core_job *j)
{
	struct job_extra *x = j->x;
	uint32_t met = 0, never = 0, until = 0;
	if (!x || !x->dep_n)
		return REASON_NONE;
	for (uint32_t i = 0; i < x->dep_n; i++) {
		struct depend_ref *t = &x->dep[i];
		if (t->state == TERM_WAITS && (t->state = settle(c, j, t)) != TERM_WAITS)
			fx_persist(c, j); /* shown, and still known when the other job is forgotten */
		met += t->state == TERM_MET;
		never += t->state == TERM_NEVER;
		until = t->state == TERM_WAITS && t->until_sec && (!until || t->until_sec < until) ? t->until_sec : until;
	}
	if (met == x->dep_n || (x->dep_any && met)) {
		depend_clear(c, j);
		j->blob_stale = true;
		return REASON_NONE;
	}
	if (x->dep_any ? never < x->dep_n : !never) {
		if (until)
			timer_add(c, until * 1000ull, TIMER_BEGIN, j->id, 0);
		return REASON_DEPENDENCY;
	}
	if (j->kill_invalid_dep && j->state == PB__JOB_STATE__PENDING) {
		xstr_set(&x->why, "its dependency can never be met");
		x->end_reason = REASON_DEPENDENCY_NEVER;
		mail_invalid_dependency(c, j);
		depend_clear(c, j);
		job_cancel(c, j, 0);
		return REASON_DEPENDENCY_NEVER;
	}
	return REASON_DEPENDENCY_NEVER;
}

/* --- setting and clearing --------------------------------------------------------------------- */

/* What is known of a job that is forgotten: its end, or of an array the worst end of its tasks. */
static bool settle_ended(const struct core *c, const struct depend_term *t, struct depend_ref *ret)
{
	bool found = false, failed = false;
	uint32_t latest = 0;
	for (size_t i = 0; i < c->ended_n; i++) {
		const struct core_ended *e = &c->ended[i];
		if (e->job_id != t->job_id || (t->has_task && (!e->has_task || e->task != t->task)))
			continue;
		found = true;
		failed = failed || e->state != PB__JOB_STATE__COMPLETED;
		latest = e->start_sec > latest ? e->start_sec : latest;
	}
	if (!found)
		return false;
	ret->state = t->kind == DEPEND_AFTER ? TERM_WAITS : settle_final(t->kind, failed ? PB__JOB_STATE__FAILED : PB__JOB_STATE__COMPLETED);
	ret->until_sec = latest + t->delay_sec;
	return true;
}

/* aftercorr: task k waits for task k alone. */
static void term_own_task(const struct core *c, struct depend_ref *r, uint32_t task)
{
	struct depend_term t = { .kind = r->kind, .job_id = r->job_id, .has_task = true, .task = task };
	r->has_task = true;
	r->task = task;
	settle_ended(c, &t, r);
}

static int term_check(struct core *c, const struct core_job *j, const struct depend_term *t, struct error *err)
{
	struct depend_ref known;
	const struct array *a = array_find(c, t->job_id);
	if (t->kind == DEPEND_AFTERBURSTBUFFER)
		return error_set(err, ESLURM_DEPENDENCY, "afterburstbuffer is not supported: there are no burst buffers");
	if (t->kind == DEPEND_SINGLETON)
		return 0;
	if (t->job_id == j->id)
		return error_set(err, ESLURM_DEPENDENCY, "job %u cannot depend on itself", j->id);
	if (!a && settle_ended(c, t, &known))
		return 0;
	if (!a && !job_find(c, t->job_id))
		return error_set(err, ESLURM_DEPENDENCY, "job %u, which it is to depend on, is not known", t->job_id);
	if (t->has_task && (!a || t->task >= a->size))
		return error_set(err, ESLURM_DEPENDENCY, "job %u has no task %u", t->job_id, t->task);
	return 0;
}

/* Does following dependencies from `from` lead to `to`? Bounded: beyond, it is taken for a circle. */
static bool reaches(const struct core *c, uint32_t from, uint32_t to, uint32_t *left)
{
	const struct core_job *j = job_find(c, from);
	if (from == to || !*left)
		return true;
	--*left;
	for (uint32_t i = 0; j && j->x && i < j->x->dep_n; i++)
		if (j->x->dep[i].state == TERM_WAITS && j->x->dep[i].job_id && j->x->dep[i].job_id < from && reaches(c, j->x->dep[i].job_id, to, left))
			return true;
	return false;
}

static int terms_check(struct core *c, const struct core_job *j, const struct depend *d, struct error *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < d->count; i++) {
		uint32_t left = 1000;
		r = term_check(c, j, &d->term[i], err);
		if (r >= 0 && d->term[i].job_id > j->id && reaches(c, d->term[i].job_id, j->id, &left))
			r = error_set(err, ESLURM_DEPENDENCY, "job %u waits for job %u already", d->term[i].job_id, j->id);
	}
	return r;
}

static struct depend_ref term_take(const struct core *c, const struct core_job *j, const struct depend_term *t)
{
	struct depend_ref r = { .kind = t->kind, .job_id = t->job_id, .task = t->task, .has_task = t->has_task, .delay_sec = t->delay_sec };
	if (t->kind != DEPEND_SINGLETON && !array_find(c, t->job_id) && !job_find(c, t->job_id))
		settle_ended(c, t, &r);
	if (t->kind == DEPEND_AFTERCORR && j->task != UINT32_MAX)
		term_own_task(c, &r, j->task);
	return r;
}

static void terms_take(struct core *c, struct core_job *j, const struct depend *d)
{
	depend_clear(c, j);
	struct job_extra *x = d->count ? job_x(j) : j->x;
	for (size_t i = 0; i < d->count; i++) {
		x->dep = xrealloc(x->dep, (i + 1) * sizeof *x->dep);
		x->dep[i] = term_take(c, j, &d->term[i]);
		x->dep_n = (uint32_t)i + 1;
		struct dep_waiter **list = x->dep[i].kind == DEPEND_SINGLETON ? NULL : waiters_of(c, &x->dep[i]);
		if (list)
			waiter_add(list, j);
	}
	if (x)
		x->dep_any = d->any;
}

int depend_set(struct core *c, struct core_job *j, const char *text, struct error *err)
{
	struct depend d = DEPEND_INIT;
	int r = depend_parse(text, &d, err);
	if (r >= 0)
		r = terms_check(c, j, &d, err);
	if (r >= 0)
		terms_take(c, j, &d);
	depend_fini(&d);
	return r;
}

void depend_clear(struct core *c, struct core_job *j)
{
	struct job_extra *x = j->x;
	for (uint32_t i = 0; x && i < x->dep_n; i++) {
		struct dep_waiter **list = waiters_of(c, &x->dep[i]);
		if (list)
			waiter_remove(list, j);
		struct core_job *o = x->dep[i].job_id ? job_find(c, x->dep[i].job_id) : NULL;
		if (o)
			waiter_remove(&o->waiters, j);
	}
	if (x) {
		xfree(x->dep);
		x->dep_n = 0;
	}
}

void depend_copy(struct core *c, const struct core_job *from, struct core_job *to)
{
	const struct job_extra *x = from->x;
	if (!x || !x->dep_n)
		return;
	struct job_extra *y = job_x(to);
	y->dep = xmemdup(x->dep, x->dep_n * sizeof *x->dep);
	y->dep_n = x->dep_n;
	y->dep_any = x->dep_any;
	for (uint32_t i = 0; i < y->dep_n; i++) {
		if (y->dep[i].kind == DEPEND_AFTERCORR)
			term_own_task(c, &y->dep[i], to->task);
		struct dep_waiter **list = waiters_of(c, &y->dep[i]);
		if (list)
			waiter_add(list, to);
	}
}

void depend_own_task(const struct core *c, struct core_job *j)
{
	for (uint32_t i = 0; j->x && i < j->x->dep_n; i++)
		if (j->x->dep[i].kind == DEPEND_AFTERCORR)
			term_own_task(c, &j->x->dep[i], j->task);
}

bool depend_by_task(const struct core_job *j)
{
	for (uint32_t i = 0; j->x && i < j->x->dep_n; i++)
		if (j->x->dep[i].kind == DEPEND_AFTERCORR)
			return true;
	return false;
}

static void wake(struct core *c, struct dep_waiter **list)
{
	uint32_t n = 0;
	for (struct dep_waiter *w = *list; w; w = w->next)
		n++;
	uint32_t *id = xmalloc((n + 1) * sizeof *id); /* the list changes while we walk */
	n = 0;
	for (struct dep_waiter *w = *list; w; w = w->next)
		id[n++] = w->job->id;
	for (uint32_t i = 0; i < n; i++) {
		struct core_job *j = job_find(c, id[i]);
		if (j && j->state == PB__JOB_STATE__PENDING)
			queue_update(c, j);
	}
	free(id);
}

void depend_changed(struct core *c, struct core_job *j)
{
	if (j->waiters)
		wake(c, &j->waiters);
	if (j->array && j->array->waiters)
		wake(c, &j->array->waiters);
}

/* A term as it is shown: that of a whole array, and of aftercorr on an array, as JOB_*. */
static struct depend_term term_shown(const struct core *c, const struct depend_ref *t)
{
	if (t->kind == DEPEND_SINGLETON)
		return (struct depend_term){ .kind = t->kind };
	bool task = t->has_task && t->kind != DEPEND_AFTERCORR;
	return (struct depend_term){ .kind = t->kind, .job_id = t->job_id, .has_task = task, .whole_array = !task && array_find(c, t->job_id), .task = t->task,
		.delay_sec = t->delay_sec };
}

char *depend_left(const struct core *c, const struct core_job *j)
{
	struct str s = STR_INIT;
	const struct job_extra *x = j->x;
	for (uint32_t i = 0; x && i < x->dep_n; i++) {
		const struct depend_ref *t = &x->dep[i];
		struct depend_term term = term_shown(c, t);
		char buf[96];
		if (t->state == TERM_MET)
			continue;
		depend_term_format(&term, buf, sizeof buf);
		str_add_sep(&s, x->dep_any ? "?" : ",", buf);
		str_add(&s, t->state == TERM_NEVER ? "(failed)" : "(unfulfilled)");
	}
	return s.len ? str_take(&s) : xstrdup("");
}

/* From "afterok:5(failed),afterany:6(unfulfilled)" of a stored record. Jobs that are forgotten since: what failed can never be met, what was
 * open is dropped, as if it had ended well. */
void depend_restore(struct core *c, struct core_job *j, const char *left)
{
	struct depend d = DEPEND_INIT;
	struct error err = { 0 };
	struct str s = STR_INIT;
	uint8_t *state = xcalloc(strlen(left) + 1, 1);
	size_t n = 0;
	for (const char *p = left; *p; p++) {
		if (*p != '(') {
			str_add_c(&s, *p);
			continue;
		}
		state[n++] = !strncmp(p, "(failed", 7) ? TERM_NEVER : TERM_WAITS;
		p += strcspn(p, ")");
		if (!*p)
			break;
	}
	if (depend_parse(s.data ? s.data : "", &d, &err) < 0)
		fx_log(c, LOG_L_ERROR, "job %u: its stored dependency \"%s\" cannot be read: %s", j->id, left, err.line);
	else
		terms_take(c, j, &d);
	for (uint32_t i = 0; j->x && i < j->x->dep_n && i < n; i++)
		j->x->dep[i].state = state[i];
	free(state);
	str_fini(&s);
	depend_fini(&d);
}
