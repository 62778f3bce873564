/* license.c - licences: counted by name for the whole cluster, taken when a job starts, given back when it ends
 * A request is part of the shape ("a:2,b" all of them, "a:2|b" the first that is free). A head that lacks one waits with reason Licenses; when some are
 * given back the shapes that want licenses are looked at again. A planned start is one for which the licenses will be there too: beside those that jobs
 * hold until then, and those that planned starts of jobs before it need. Invariant: used is the sum over jobs that hold some. */
#include <stdio.h>
#include <stdlib.h>

#include "core/reserve.h"

static struct license *license_find(const struct core *c, uint32_t name)
{
	for (uint32_t i = 0; i < c->lic_n; i++)
		if (c->lic[i].name == name)
			return &c->lic[i];
	return NULL;
}

/* "name", "name:2", "name=2", "name@server:2". */
static int word_parse(struct core *c, char *word, uint32_t *ret_name, uint32_t *ret_count, struct error *err)
{
	char *at = strpbrk(word, ":=");
	unsigned long long n = 1;
	if (at) {
		*at++ = 0;
		if (str_to_u64(at, 0, UINT32_MAX - 1, &n) < 0)
			return error_set(err, ESLURM_INVALID_LICENSES, "\"%s\" is not a number of licenses (%s)", at, word);
	}
	if (!word[0] || word[strcspn(word, " \t*|")])
		return error_set(err, ESLURM_INVALID_LICENSES, "\"%s\" is not the name of a license", word);
	*ret_name = atom_get(c, word);
	*ret_count = (uint32_t)n;
	return 0;
}

void license_config(struct core *c, const char *text)
{
	struct license *old = c->lic;
	uint32_t old_n = c->lic_n;
	char *copy = xstrdup(text ? text : ""), *at = copy, *w;
	size_t cap = 0;
	c->lic = NULL;
	c->lic_n = 0;
	while ((w = str_next(&at, ","))) {
		uint32_t name, count;
		struct error err = { 0 };
		w = str_trim(w);
		if (!w[0])
			continue;
		if (word_parse(c, w, &name, &count, &err) < 0) {
			fx_log(c, LOG_L_ERROR, "Licenses: %s; it is left out", err.line);
			continue;
		}
		struct license *l = license_find(c, name);
		if (!l) {
			c->lic = xgrow(c->lic, &cap, c->lic_n + 1, sizeof *c->lic);
			l = &c->lic[c->lic_n++];
			*l = (struct license){ .name = name };
		}
		l->total = count;
	}
	for (uint32_t i = 0; i < old_n; i++) { /* what runs keeps what it has, whatever the new total */
		struct license *l = license_find(c, old[i].name);
		if (!l && old[i].used) {
			c->lic = xgrow(c->lic, &cap, c->lic_n + 1, sizeof *c->lic);
			l = &c->lic[c->lic_n++];
			*l = (struct license){ .name = old[i].name };
		}
		if (l)
			l->used = old[i].used;
	}
	free(copy);
	free(old);
}

/* What a reservation wants: no more, with others that meet it, than there are. */
int license_reserve(struct core *c, struct resv *r, struct error *err)
{
	struct str s = STR_INIT;
	int rc = license_parse(c, r->rec->licenses, &r->lic, err);
	if (rc >= 0 && r->lic.any)
		rc = error_set(err, ESLURM_INVALID_LICENSES, "a reservation names its licenses with ',', not with '|'");
	if (rc >= 0)
		rc = license_check(c, &r->lic, err);
	for (uint32_t i = 0; rc >= 0 && i < r->lic.n; i++) {
		uint64_t sum = r->lic.w[i].count;
		for (uint32_t k = 0; k < c->resv_n; k++)
			if (c->resv[k]->id != r->id && resv_meet(c, r, c->resv[k]))
				for (uint32_t x = 0; x < c->resv[k]->lic.n; x++)
					sum += c->resv[k]->lic.w[x].name == r->lic.w[i].name ? c->resv[k]->lic.w[x].count : 0;
		const char *name = atom_text(c, r->lic.w[i].name);
		if (sum > license_find(c, r->lic.w[i].name)->total)
			rc = error_set(err, ESLURM_INVALID_LICENSES, "with other reservations of that time %llu of license \"%s\" would be reserved, there are %u", (unsigned long long)sum, name, license_find(c, r->lic.w[i].name)->total);
		str_addf(&s, "%s%s:%u", i ? "," : "", name, r->lic.w[i].count);
	}
	if (rc >= 0)
		xstr_set(&r->rec->licenses, s.len ? s.data : NULL);
	str_fini(&s);
	return rc;
}

/* Adds to what is wanted already of the same name. */
static void want_add(struct lic_wants *l, uint32_t name, uint32_t count)
{
	for (uint32_t i = 0; !l->any && i < l->n; i++)
		if (l->w[i].name == name) {
			l->w[i].count += count;
			return;
		}
	l->w = xrealloc(l->w, (l->n + 1) * sizeof *l->w);
	l->w[l->n++] = (struct lic_want){ name, count };
}

int license_parse(struct core *c, const char *text, struct lic_wants *ret, struct error *err)
{
	*ret = (struct lic_wants){ 0 };
	if (!text || !text[0])
		return 0;
	ret->any = strchr(text, '|') != NULL;
	if (ret->any && strchr(text, ','))
		return error_set(err, ESLURM_INVALID_LICENSES, "licenses \"%s\": ',' (and) and '|' (or) cannot be used together", text);
	char *copy = xstrdup(text), *at = copy, *w;
	int r = 0;
	while (r >= 0 && (w = str_next(&at, ",|"))) {
		uint32_t name, count;
		if (!w[0])
			continue;
		if ((r = word_parse(c, w, &name, &count, err)) >= 0 && count)
			want_add(ret, name, count);
	}
	free(copy);
	if (r < 0)
		license_wants_fini(ret);
	return r;
}

void license_wants_fini(struct lic_wants *l)
{
	xfree(l->w);
	l->n = 0;
}

int license_check(const struct core *c, const struct lic_wants *l, struct error *err)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct license *k = license_find(c, l->w[i].name);
		if (!k)
			return error_set(err, ESLURM_INVALID_LICENSES, "license \"%s\" does not exist", atom_text(c, l->w[i].name));
		if (l->w[i].count > k->total)
			return error_set(err, ESLURM_INVALID_LICENSES, "%u of license \"%s\" are asked for, there are %u", l->w[i].count, atom_text(c, l->w[i].name), k->total);
	}
	return 0;
}

uint32_t license_free(const struct core *c, uint32_t name)
{
	const struct license *l = license_find(c, name);
	return l && l->total > l->used ? l->total - l->used : 0;
}

/* --- in the plan --------------------------------------------------------------------------------- */

void license_promised(struct core *c, struct promise *p)
{
	if (!p->job->shape->lic.n)
		return;
	c->lic_promise = xgrow(c->lic_promise, &c->lic_promise_cap, c->lic_promise_n + 1, sizeof *c->lic_promise);
	c->lic_promise[c->lic_promise_n++] = p;
}

void license_unpromised(struct core *c, const struct promise *p)
{
	for (uint32_t i = 0; p->job->shape->lic.n && i < c->lic_promise_n; i++)
		if (c->lic_promise[i] == p) {
			c->lic_promise[i] = c->lic_promise[--c->lic_promise_n];
			return;
		}
}

static uint32_t count_of(const struct lic_want *w, uint32_t n, uint32_t name)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++)
		count += w[i].name == name ? w[i].count : 0;
	return count;
}

/* A promise that j may not disturb. */
static bool comes_first(const struct promise *p, const struct core_job *j) { return p->job != j && job_before(p->job, j); }

uint64_t license_kept(struct core *c, const struct core_job *j, uint32_t name, uint64_t from, uint64_t to)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < c->lic_promise_n; i++) {
		const struct promise *p = c->lic_promise[i];
		if (p->start_ms < to && p->end_ms > from && comes_first(p, j))
			n += count_of(p->job->shape->lic.w, p->job->shape->lic.n, name);
	}
	c->work += c->lic_promise_n / 16;
	return n;
}

/* Reserved for others from `from` to `to` (ms), of which jobs in those reservations hold none yet. */
uint64_t license_reserved(struct core *c, const struct core_job *j, uint32_t name, uint64_t from, uint64_t to)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < c->resv_n; i++) {
		const struct resv *r = c->resv[i];
		uint32_t mine = count_of(r->lic.w, r->lic.n, name), used = 0;
		if (!mine || resv_names(j, r->rec->name) || !resv_overlaps(c, r, (int64_t)(from / 1000), (int64_t)((to + 999) / 1000)))
			continue;
		for (uint32_t k = 0; k < c->lic_holder_n; k++)
			if (c->lic_holder[k]->resv_id == r->id && job_end_ms(c, c->lic_holder[k]) > from)
				used += count_of(c->lic_holder[k]->x->lic, c->lic_holder[k]->x->lic_n, name);
		n += mine > used ? mine - used : 0;
	}
	return n;
}

/* Those that jobs hold now and will hold still. */
static uint32_t held_at(struct core *c, uint32_t name, uint64_t ms)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->lic_holder_n; i++)
		n += job_end_ms(c, c->lic_holder[i]) > ms ? count_of(c->lic_holder[i]->x->lic, c->lic_holder[i]->x->lic_n, name) : 0;
	c->work += c->lic_holder_n / 16;
	return n;
}

/* planned: beside those that promises need, too; else beside those in use and reserved alone. */
static bool fits(struct core *c, const struct core_job *j, const struct lic_want *w, uint64_t from, uint64_t to, bool planned)
{
	const struct license *l = license_find(c, w->name);
	uint64_t held = l && from > c->now_ms + 1000 ? held_at(c, w->name, from) : l ? l->used : 0;
	if (l && c->resv_n)
		held += license_reserved(c, j, w->name, from, to);
	return l && l->total >= held + (planned ? license_kept(c, j, w->name, from, to) : 0) + w->count;
}

static bool enough(struct core *c, const struct core_job *j, const struct lic_wants *l, uint64_t from, uint64_t to, bool planned)
{
	bool one = !l->n;
	for (uint32_t i = 0; i < l->n; i++) {
		bool ok = fits(c, j, &l->w[i], from, to, planned);
		if (!ok && !l->any)
			return false;
		one = one || ok;
	}
	return one;
}

bool license_room(struct core *c, const struct core_job *j, const struct lic_wants *l) { return enough(c, j, l, c->now_ms, c->now_ms + job_length_ms(j), false); }

bool license_beside(struct core *c, const struct core_job *j, uint64_t from, uint64_t to) { return enough(c, j, &j->shape->lic, from, to, true); }

/* When some of what j wants come back next, after `ms`. UINT64_MAX: nothing is known of that. */
static uint64_t back_after(const struct core *c, const struct core_job *j, uint64_t ms)
{
	const struct lic_wants *l = &j->shape->lic;
	uint64_t next = UINT64_MAX;
	for (uint32_t k = 0; k < l->n; k++) {
		for (uint32_t i = 0; i < c->resv_n; i++) {
			struct resv_window o;
			const struct resv *r = c->resv[i];
			if (count_of(r->lic.w, r->lic.n, l->w[k].name) && !resv_names(j, r->rec->name) && resv_occurrence(c, r, (int64_t)(ms / 1000), &o) && (uint64_t)o.end * 1000 > ms && (uint64_t)o.end * 1000 < next)
				next = (uint64_t)o.end * 1000;
		}
		for (uint32_t i = 0; i < c->lic_holder_n; i++) {
			uint64_t end = job_end_ms(c, c->lic_holder[i]);
			if (end > ms && end < next && count_of(c->lic_holder[i]->x->lic, c->lic_holder[i]->x->lic_n, l->w[k].name))
				next = end;
		}
		for (uint32_t i = 0; i < c->lic_promise_n; i++) {
			const struct promise *p = c->lic_promise[i];
			if (p->end_ms > ms && p->end_ms < next && comes_first(p, j) && count_of(p->job->shape->lic.w, p->job->shape->lic.n, l->w[k].name))
				next = p->end_ms;
		}
	}
	return next;
}

uint64_t license_when(struct core *c, const struct core_job *j, uint64_t from, uint64_t limit)
{
	while (from <= limit && !license_beside(c, j, from, from + job_length_ms(j)))
		from = back_after(c, j, from);
	return from <= limit ? from : UINT64_MAX;
}

static bool next_short(struct tree_node **n, struct shape **ret)
{
	for (; *n; *n = tree_next(*n)) {
		*ret = (struct shape *)((char *)*n - offsetof(struct shape, anode));
		if ((*ret)->lic_short)
			return true;
	}
	return false;
}

void license_look(struct core *c)
{
	struct tree_node *n = tree_first(&c->shapes_active);
	struct shape *s;
	if (next_short(&n, &s))
		c->lic_look = c->sched_wanted = true;
}

void license_wake(struct core *c)
{
	if (!c->lic_look)
		return;
	c->lic_look = c->lic_kept = false;
	struct shape *s;
	for (struct tree_node *n = tree_first(&c->shapes_active); next_short(&n, &s); n = tree_next(n))
		sched_shape(c, s);
}

static void hold(struct core *c, struct core_job *j, uint32_t name, uint32_t count)
{
	struct job_extra *x = job_x(j);
	struct license *l = license_find(c, name);
	if (!l) { /* held when it was still configured */
		c->lic = xrealloc(c->lic, (c->lic_n + 1) * sizeof *c->lic);
		l = &c->lic[c->lic_n++];
		*l = (struct license){ .name = name };
	}
	l->used += count;
	if (!x->lic_n) {
		c->lic_holder = xgrow(c->lic_holder, &c->lic_holder_cap, c->lic_holder_n + 1, sizeof *c->lic_holder);
		c->lic_holder[c->lic_holder_n++] = j;
	}
	x->lic = xrealloc(x->lic, (x->lic_n + 1) * sizeof *x->lic);
	x->lic[x->lic_n++] = (struct lic_want){ name, count };
}

static const struct lic_want *first_fit(struct core *c, const struct core_job *j, const struct lic_wants *l, uint64_t to, bool planned)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (fits(c, j, &l->w[i], c->now_ms, to, planned))
			return &l->w[i];
	return NULL;
}

/* Of alternatives the first that is free and not kept for others, else the first that is free. */
static const struct lic_want *choose(struct core *c, const struct core_job *j, const struct lic_wants *l)
{
	uint64_t to = c->now_ms + job_length_ms(j);
	const struct lic_want *w = first_fit(c, j, l, to, true);
	return w ? w : first_fit(c, j, l, to, false);
}

static void take(struct core *c, struct core_job *j, const struct lic_wants *l)
{
	const struct lic_want *one = l->any ? choose(c, j, l) : NULL;
	if (one)
		hold(c, j, one->name, one->count);
	for (uint32_t i = 0; !l->any && i < l->n; i++)
		hold(c, j, l->w[i].name, l->w[i].count);
}

void license_return(struct core *c, struct core_job *j)
{
	if (!j->x || !j->x->lic_n)
		return;
	xfree(j->x->lic_was);
	j->x->lic_was = license_text(c, j);
	for (uint32_t i = 0; i < j->x->lic_n; i++) {
		struct license *l = license_find(c, j->x->lic[i].name);
		assert(l && l->used >= j->x->lic[i].count);
		l->used -= j->x->lic[i].count;
	}
	xfree(j->x->lic);
	j->x->lic_n = 0;
	for (uint32_t i = 0; i < c->lic_holder_n; i++)
		if (c->lic_holder[i] == j) {
			c->lic_holder[i] = c->lic_holder[--c->lic_holder_n];
			break;
		}
	license_look(c);
}

void license_lend(struct core *c, const struct lic_wants *l, bool back)
{
	for (uint32_t i = 0; !l->any && i < l->n; i++)
		license_find(c, l->w[i].name)->used += back ? -l->w[i].count : l->w[i].count;
}

void license_take(struct core *c, struct core_job *j) { take(c, j, &j->shape->lic); }

int license_retake(struct core *c, struct core_job *j, const struct lic_wants *l, struct error *err)
{
	struct lic_wants own = { 0 };
	char *had = license_text(c, j);
	(void)license_parse(c, j->x && j->x->lic_n ? had : NULL, &own, NULL);
	license_return(c, j);
	bool room = license_room(c, j, l);
	take(c, j, room ? l : &own);
	license_wants_fini(&own);
	free(had);
	if (j->x)
		xfree(j->x->lic_was);
	return room ? 0 : error_set(err, ESLURM_INVALID_LICENSES, "not so many licenses are free now");
}

void license_restore(struct core *c, struct core_job *j)
{
	struct lic_wants l;
	if (!j->x || !j->x->lic_was || license_parse(c, j->x->lic_was, &l, NULL) < 0)
		return;
	for (uint32_t i = 0; i < l.n; i++)
		hold(c, j, l.w[i].name, l.w[i].count);
	license_wants_fini(&l);
	xfree(j->x->lic_was);
}

char *license_text(const struct core *c, const struct core_job *j)
{
	struct str s = STR_INIT;
	for (uint32_t i = 0; j->x && i < j->x->lic_n; i++)
		str_addf(&s, "%s%s:%u", s.len ? "," : "", atom_text(c, j->x->lic[i].name), j->x->lic[i].count);
	if (!s.len)
		return j->x ? xstrdup_null(j->x->lic_was) : NULL;
	return str_take(&s);
}

/* Is license/NAME in AccountingStorageTRES? */
static bool tracked(const struct core *c, const char *name)
{
	size_t n = strlen(name);
	for (const char *s = c->params.tres_extra; s && *s;) {
		size_t k = strcspn(s, ",");
		if (k == n + 8 && !strncasecmp(s, "license/", 8) && !strncmp(s + 8, name, n))
			return true;
		s += k + (s[k] == ',');
	}
	return false;
}

char *license_tres(const struct core *c, char *tres, const struct lic_want *w, uint32_t n)
{
	struct str s = STR_INIT;
	for (uint32_t i = 0; i < n; i++) {
		const char *name = atom_text(c, w[i].name);
		if (!tracked(c, name))
			continue;
		if (!s.len)
			str_add(&s, tres ? tres : "");
		str_addf(&s, "%slicense/%s=%u", s.len ? "," : "", name, w[i].count);
	}
	if (!s.len)
		return tres;
	free(tres);
	return str_take(&s);
}

char *license_job_tres(struct core *c, const struct core_job *j, char *tres)
{
	struct lic_wants l = { 0 };
	if (!j->x)
		return tres;
	if (j->x->lic_n)
		return license_tres(c, tres, j->x->lic, j->x->lic_n);
	if (license_parse(c, j->x->lic_was, &l, NULL) < 0)
		return tres;
	tres = license_tres(c, tres, l.w, l.n);
	license_wants_fini(&l);
	return tres;
}

/* --tres-per-task=license/a:2 is --licenses=a=2*tasks, beside those asked for anyway. The text stays with the request as it was shown. */
void license_per_task(Pb__JobDesc *d, struct arena *a)
{
	const char *text = d->tres_per_task;
	uint32_t tasks = d->has_num_tasks && d->num_tasks ? d->num_tasks : (d->has_min_nodes ? d->min_nodes : 1) * (d->has_ntasks_per_node && d->ntasks_per_node ? d->ntasks_per_node : 1);
	if (!text || !strstr(text, "license/"))
		return;
	char *copy = xstrdup(text), *at = copy, *w;
	while ((w = str_next(&at, ","))) {
		unsigned long long n = 1;
		if (!str_starts(w, "license/"))
			continue;
		char *count = strpbrk(w, ":=");
		if (count)
			*count++ = 0;
		if (count && str_to_u64(count, 0, 1000000, &n) < 0)
			n = UINT32_MAX; /* more than there can be: refused */
		char *one = arena_printf(a, "%s=%llu", w + 8, n * tasks);
		bool there = d->licenses && strstr(d->licenses, one);
		if (!there)
			d->licenses = d->licenses && d->licenses[0] ? arena_printf(a, "%s,%s", d->licenses, one) : one;
	}
	free(copy);
}

void license_check_all(const struct core *c)
{
	for (uint32_t i = 0; i < c->lic_n; i++) {
		uint32_t used = 0;
		for (uint64_t cur = 0;;) {
			const struct core_job *j = core_job_next(c, &cur);
			if (!j)
				break;
			assert(!j->x || !j->x->lic_n || j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED);
			for (uint32_t k = 0; j->x && k < j->x->lic_n; k++)
				used += j->x->lic[k].name == c->lic[i].name ? j->x->lic[k].count : 0;
		}
		assert(used == c->lic[i].used);
	}
	uint32_t promises = 0, holders = 0;
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		holders += j->x && j->x->lic_n;
	}
	assert(holders == c->lic_holder_n);
	for (uint32_t i = 0; i < c->promise_n; i++)
		promises += c->promises[i]->job->shape->lic.n > 0;
	assert(promises == c->lic_promise_n);
}

bool core_license(const struct core *c, size_t i, struct core_license *ret)
{
	if (i >= c->lic_n)
		return false;
	*ret = (struct core_license){ atom_text(c, c->lic[i].name), c->lic[i].total, c->lic[i].used, 0 };
	for (uint32_t k = 0; k < c->resv_n; k++)
		ret->reserved += c->resv[k]->active ? count_of(c->resv[k]->lic.w, c->resv[k]->lic.n, c->lic[i].name) : 0;
	return true;
}
