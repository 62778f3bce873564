/* depend.c - the argument of --dependency (grammar: depend.h) */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/depend.h"

static const char *const kind_names[] = {
	[DEPEND_AFTER] = "after", [DEPEND_AFTERANY] = "afterany", [DEPEND_AFTEROK] = "afterok", [DEPEND_AFTERNOTOK] = "afternotok",
	[DEPEND_AFTERCORR] = "aftercorr", [DEPEND_AFTERBURSTBUFFER] = "afterburstbuffer", [DEPEND_SINGLETON] = "singleton",
};
#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))
enum { TERMS_MAX = 10000 };

static int bad(struct error *err, const char *text, const char *at, const char *what)
{
	int rc = error_set(err, ESLURM_DEPENDENCY, "dependency \"%.200s\": %s at position %zu", text, what, (size_t)(at - text) + 1);
	error_hint(err, "A dependency looks like afterok:5:6_2,singleton or afterok:5?afterany:7.");
	return rc;
}

static bool number_read(const char **at, uint32_t *ret)
{
	const char *p = *at;
	uint64_t v;
	if (!str_digits(&p, 11, &v) || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	*at = p;
	return true;
}

/* "5", "5_2", "5_*", each with "+minutes". */
static int job_read(const char *text, const char **at, struct depend_term *t, struct error *err)
{
	if (!number_read(at, &t->job_id) || t->job_id == 0)
		return bad(err, text, *at, "a job id is missing");
	if (**at == '_') {
		(*at)++;
		if (**at == '*') {
			t->whole_array = true;
			(*at)++;
		} else if (number_read(at, &t->task)) {
			t->has_task = true;
		} else {
			return bad(err, text, *at, "an array task index is missing");
		}
	}
	if (**at == '+') {
		uint32_t minutes;
		(*at)++;
		if (!number_read(at, &minutes) || minutes == 0 || minutes > UINT32_MAX / 60)
			return bad(err, text, *at, "a number of minutes is missing");
		t->delay_sec = minutes * 60;
	}
	return 0;
}

static int term_push(struct depend *d, const struct depend_term *t, const char *text, const char *at, struct error *err)
{
	if (d->count == TERMS_MAX)
		return bad(err, text, at, "too many jobs");
	d->term = xgrow(d->term, &d->cap, d->count + 1, sizeof(*d->term));
	d->term[d->count++] = *t;
	return 0;
}

/* kind[:job...] or a bare job. */
static int clause_read(const char *text, const char **at, struct depend *d, struct error *err)
{
	const char *start = *at;
	struct depend_term t = { .kind = DEPEND_AFTERANY };
	size_t len = strcspn(start, ":,?"), k;
	int rc;

	if (*start >= '0' && *start <= '9') {
		rc = job_read(text, at, &t, err);
		return rc < 0 ? rc : term_push(d, &t, text, start, err);
	}
	for (k = 0; k < KINDS; k++)
		if (strlen(kind_names[k]) == len && strncasecmp(start, kind_names[k], len) == 0)
			break;
	if (k == KINDS)
		return bad(err, text, start, "an unknown kind of dependency");
	*at = start + len;
	t.kind = (enum depend_kind)k;
	if (k == DEPEND_SINGLETON)
		return term_push(d, &t, text, start, err);
	if (**at != ':')
		return bad(err, text, *at, "':' and a job id are missing");
	while (**at == ':') {
		t = (struct depend_term){ .kind = (enum depend_kind)k };
		(*at)++;
		rc = job_read(text, at, &t, err);
		if (rc < 0 || (rc = term_push(d, &t, text, start, err)) < 0)
			return rc;
	}
	return 0;
}

int depend_parse(const char *text, struct depend *ret, struct error *err)
{
	struct depend d = DEPEND_INIT;
	const char *at = text;
	char joint = '\0';
	int rc = 0;

	while (*text) {
		rc = clause_read(text, &at, &d, err);
		if (rc < 0 || *at == '\0')
			break;
		if (*at != ',' && *at != '?')
			rc = bad(err, text, at, "an unexpected character");
		else if (joint && *at != joint)
			rc = bad(err, text, at, "',' and '?' may not be mixed");
		if (rc < 0)
			break;
		joint = *at++;
	}
	if (rc < 0) {
		depend_fini(&d);
		return rc;
	}
	d.any = joint == '?';
	*ret = d;
	return 0;
}

const char *depend_kind_name(enum depend_kind kind)
{
	return (size_t)kind < KINDS ? kind_names[kind] : "?";
}

void depend_term_format(const struct depend_term *t, char *buf, size_t size)
{
	char task[16] = "", delay[16] = "";

	if (t->kind == DEPEND_SINGLETON) {
		snprintf(buf, size, "singleton");
		return;
	}
	if (t->has_task)
		snprintf(task, sizeof(task), "_%u", t->task);
	else if (t->whole_array)
		snprintf(task, sizeof(task), "_*");
	if (t->delay_sec)
		snprintf(delay, sizeof(delay), "+%u", t->delay_sec / 60);
	snprintf(buf, size, "%s:%u%s%s", depend_kind_name(t->kind), t->job_id, task, delay);
}

void depend_fini(struct depend *d)
{
	free(d->term);
	*d = DEPEND_INIT;
}
