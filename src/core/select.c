/* select.c - the ways to name a job: "5", "5_2", "5_[1-3]", "5_*", "5+1", "5.0", "5.batch", "s6XNM8NA52HR00" (SLUID)
 * The id of a heterogeneous job's leader means all its components, "5+0" the leader alone. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/state.h"
#include "model/idset.h"

#define TASKS_MAX 4000001

static int digit32(char ch)
{
	static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	const char *p = ch ? strchr(digit, ch >= 'a' && ch <= 'z' ? ch - 32 : ch) : NULL;
	return p ? (int)(p - digit) : -1;
}

/* The id is its low 32 bits; the time must be the job's own. */
static uint32_t from_sluid(const struct core *c, const char *text)
{
	uint64_t v = 0;
	for (int i = 1; i <= 13; i++) {
		int d = digit32(text[i]);
		if (d < 0)
			return 0;
		v = v << 5 | (uint64_t)d;
	}
	const struct core_job *j = job_find(c, (uint32_t)v);
	return j && j->submit == v >> 32 ? (uint32_t)v : 0;
}

static int parse_step(const char *text, uint32_t *ret)
{
	unsigned long long n;
	if (stepid_of_word(text, ret))
		return 0;
	if (str_to_u64(text, 0, STEP_ID_INTERACTIVE - 1, &n) < 0)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

static int parse_tasks(char *text, struct bitset **ret)
{
	size_t n = strlen(text);
	if (!strcmp(text, "*"))
		return 0;
	if (text[0] == '[' && n > 2 && text[n - 1] == ']') {
		text[n - 1] = 0;
		text++;
	} else if (strspn(text, "0123456789") != n || !n)
		return -EINVAL;
	text[strcspn(text, "%")] = 0;
	return idset_parse(text, TASKS_MAX, ret, NULL);
}

int selector_parse(const struct core *c, const char *text, struct selector *ret, struct error *err)
{
	char buf[4096], *p;
	unsigned long long id;
	*ret = (struct selector){ 0 };
	if (strlen(text) >= sizeof buf)
		return error_set(err, ESLURM_INVALID_JOB_ID, "job id of %zu characters", strlen(text));
	snprintf(buf, sizeof buf, "%s", text);
	if ((p = strchr(buf, '.'))) {
		*p++ = 0;
		ret->has_step = true;
		if (parse_step(p, &ret->step) < 0)
			return error_set(err, ESLURM_INVALID_STEP_ID, "\"%s\" is not a step", text);
	}
	if ((p = strchr(buf, '+'))) {
		*p++ = 0;
		if (str_to_u64(p, 0, HET_MAX - 1, &id) < 0)
			return error_set(err, ESLURM_INVALID_JOB_ID, "\"%s\" is not a job id", text);
		ret->has_part = true;
		ret->part = (uint32_t)id;
	}
	if (buf[0] == 's' && strlen(buf) == 14) {
		ret->id = from_sluid(c, buf);
		return ret->id ? 0 : error_set(err, ESLURM_INVALID_JOB_ID, "no job has the SLUID \"%s\"", text);
	}
	if ((p = strchr(buf, '_'))) {
		*p++ = 0;
		if (parse_tasks(p, &ret->tasks) < 0 || (ret->tasks && bitset_empty(ret->tasks))) {
			selector_fini(ret);
			return error_set(err, ESLURM_INVALID_JOB_ID, "\"%s\" is not a job id", text);
		}
	}
	if (str_to_u64(buf, 1, UINT32_MAX - 1, &id) < 0) {
		selector_fini(ret);
		return error_set(err, ESLURM_INVALID_JOB_ID, "\"%s\" is not a job id", text);
	}
	ret->id = (uint32_t)id;
	return 0;
}

void selector_fini(struct selector *s)
{
	bitset_destroy(s->tasks);
	s->tasks = NULL;
}

struct ids { uint32_t *id; size_t n, cap; };

static void ids_add(struct ids *l, uint32_t id)
{
	l->id = xgrow(l->id, &l->cap, l->n + 1, sizeof *l->id);
	l->id[l->n++] = id;
}

static void whole_array(const struct core *c, const struct array *a, struct ids *l)
{
	const struct core_job *own = job_find(c, a->id);
	if (a->head || (own && own->tasks))
		ids_add(l, a->head ? a->head->id : own->id);
	for (uint32_t i = 0; i < a->size; i++)
		if (a->job_of[i] && job_find(c, a->job_of[i]))
			ids_add(l, a->job_of[i]);
}

static void components(const struct core *c, const struct selector *s, const struct core_job *j, struct ids *l)
{
	for (uint32_t i = 0; i < j->het->n; i++) {
		const struct core_job *m = het_job(c, j->het, i);
		if (m && (!s->has_part || s->part == i))
			ids_add(l, m->id);
	}
}

static int some_tasks(struct core *c, struct array *a, const struct selector *s, bool split, struct ids *l, struct error *err)
{
	bool head = false, all;
	struct core_job *h = a->head;
	uint32_t missing = UINT32_MAX;
	all = h && h->tasks->size <= s->tasks->size; /* everything that waits is meant: no need to split */
	for (uint32_t i = bitset_next(h ? h->tasks : s->tasks, 0); all && i < h->tasks->size; i = bitset_next(h->tasks, i + 1))
		all = bitset_has(s->tasks, i);
	bitset_for(s->tasks, i) {
		struct core_job *t = i < a->size && a->job_of[i] ? job_find(c, a->job_of[i]) : NULL;
		if (t)
			ids_add(l, t->id);
		else if (a->head && i < a->head->tasks->size && bitset_has(a->head->tasks, i)) {
			if (all || !split) {
				if (!head)
					ids_add(l, a->head->id);
				head = true;
				continue;
			}
			queue_remove(c, h);
			t = array_split_task(c, h, i);
			queue_update(c, t);
			if (t != h)
				queue_update(c, h);
			ids_add(l, t->id);
		} else if (missing == UINT32_MAX)
			missing = i;
	}
	return l->n ? 0 : error_set(err, ESLURM_INVALID_JOB_ID, "array %u has no task %u", a->id, missing);
}

int selector_jobs(struct core *c, const struct selector *s, bool split, uint32_t **ret, size_t *ret_n, struct error *err)
{
	struct ids l = { 0 };
	struct array *a = array_find(c, s->id);
	struct core_job *j = job_find(c, s->id);
	int r = 0;
	if (s->tasks)
		r = a ? some_tasks(c, a, s, split, &l, err) : error_set(err, ESLURM_INVALID_JOB_ID, "job %u is not an array", s->id);
	else if (a && !s->has_step)
		whole_array(c, a, &l);
	else if (j && het_leads(j))
		components(c, s, j, &l);
	else if (s->has_part)
		r = error_set(err, ESLURM_INVALID_JOB_ID, "job %u has no component %u", s->id, s->part);
	else if (j)
		ids_add(&l, j->id);
	if (r >= 0 && !l.n)
		r = error_set(err, ESLURM_INVALID_JOB_ID, "job %u is not known", s->id);
	if (r < 0) {
		free(l.id);
		return r;
	}
	*ret = l.id;
	*ret_n = l.n;
	return 0;
}

int core_job_resolve(const struct core *c, const char *selector, uint32_t **ids, size_t *count)
{
	struct selector s;
	uint32_t *found;
	size_t n;
	if (selector_parse(c, selector, &s, NULL) < 0)
		return -ESLURM_INVALID_JOB_ID;
	int r = selector_jobs((struct core *)c, &s, false, &found, &n, NULL); /* without splitting it changes nothing */
	selector_fini(&s);
	if (r < 0)
		return -ESLURM_INVALID_JOB_ID;
	*ids = xrealloc(*ids, (*count + n) * sizeof **ids);
	memcpy(*ids + *count, found, n * sizeof *found);
	*count += n;
	free(found);
	return 0;
}
