/* trace.c - Standard Workload Format and `sacct -P` (see trace.h)
 * SWF: field 8 (else 5) processors, 9 estimate (else the run time), run time = min(field 4, estimate); a record that says too little is
 * skipped and counted. sacct: any selection of columns with a header line; steps are passed over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/timespec.h"
#include "model/tres.h"
#include "sim/trace.h"

static uint32_t name_index(char ***list, size_t *n, size_t *cap, const char *name)
{
	for (size_t i = *n; i-- > 0;)
		if (!strcmp((*list)[i], name))
			return (uint32_t)i;
	*list = xgrow(*list, cap, *n + 1, sizeof **list);
	(*list)[*n] = xstrdup(name);
	return (uint32_t)(*n)++;
}

static struct trace_job *job_add(struct trace *t)
{
	t->job = xgrow(t->job, &t->cap, t->n + 1, sizeof *t->job);
	t->job[t->n] = (struct trace_job){ 0 };
	return &t->job[t->n++];
}

static int by_submit(const void *a, const void *b)
{
	const struct trace_job *x = a, *y = b;
	if (x->submit != y->submit)
		return x->submit < y->submit ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* --- Standard Workload Format ------------------------------------------------------------------ */

static void swf_header(struct trace *t, const char *line)
{
	unsigned n;
	if (sscanf(line, "; MaxProcs: %u", &n) == 1 || (!t->procs && sscanf(line, "; MaxNodes: %u", &n) == 1))
		t->procs = n;
}

static int swf_line(struct trace *t, const char *line)
{
	double f[18];
	char name[32];
	int n = 0;
	for (char *end; n < 18; n++) {
		f[n] = strtod(line, &end);
		if (end == line)
			break;
		line = end;
	}
	if (n < 9)
		return -EINVAL;
	double procs = f[7] > 0 ? f[7] : f[4], run = f[3], estimate = f[8] > 0 ? f[8] : run;
	if (run < 0 || procs <= 0 || procs > 1e9 || f[1] < 0 || estimate > 4e9) {
		t->skipped++;
		return 0;
	}
	struct trace_job *j = job_add(t);
	j->number = (uint32_t)f[0];
	j->submit = (uint64_t)f[1];
	j->run_sec = (uint32_t)(run < estimate ? run : estimate);
	j->limit_min = (uint32_t)((estimate + 59) / 60);
	j->limit_min = j->limit_min ? j->limit_min : 1;
	j->cpus = (uint32_t)procs;
	snprintf(name, sizeof name, "user%d", n > 11 && f[11] >= 0 ? (int)f[11] : 0);
	j->user = name_index(&t->user, &t->users, &t->user_cap, name);
	snprintf(name, sizeof name, "queue%d", n > 14 && f[14] >= 0 ? (int)f[14] : 0);
	j->part = name_index(&t->part, &t->parts, &t->part_cap, name);
	return 0;
}

static int swf_read(struct lines *l, const char *path, struct trace *t, struct error *err)
{
	size_t at = 0;
	for (char *s; (s = lines_next(l));) {
		at++;
		s = str_trim(s);
		if (*s == ';')
			swf_header(t, s);
		else if (*s && swf_line(t, s))
			return error_set(err, EINVAL, "%s:%zu: not a record of the Standard Workload Format (18 numbers)", path, at);
	}
	return 0;
}

/* --- sacct -P ---------------------------------------------------------------------------------- */

enum col { C_ID, C_SUBMIT, C_ELIGIBLE, C_ELAPSED, C_ELAPSED_RAW, C_LIMIT, C_LIMIT_RAW, C_NCPUS, C_REQCPUS, C_NNODES, C_REQTRES, C_ALLOCTRES, C_USER, C_PART, C_STATE, COLS };
static const char *const col_name[COLS] = { "JobID", "Submit", "Eligible", "Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw", "NCPUS", "ReqCPUS", "NNodes",
	"ReqTRES", "AllocTRES", "User", "Partition", "State" };
enum { FIELDS_MAX = 200 };
struct columns { int at[COLS]; };

static size_t split(char *line, char **field)
{
	size_t n = 0;
	for (char *at = line, *w; n < FIELDS_MAX && (w = str_next(&at, "|"));)
		field[n++] = w;
	return n;
}

static int sacct_header(char *line, const char *path, struct columns *ret, struct error *err)
{
	char *field[FIELDS_MAX];
	size_t n = split(line, field);
	for (int c = 0; c < COLS; c++) {
		ret->at[c] = -1;
		for (size_t i = 0; i < n; i++)
			if (!strcasecmp(field[i], col_name[c]) || (c == C_ID && !strcasecmp(field[i], "JobIDRaw")) || (c == C_NCPUS && !strcasecmp(field[i], "AllocCPUS")))
				ret->at[c] = (int)i;
	}
	bool run = ret->at[C_ELAPSED] >= 0 || ret->at[C_ELAPSED_RAW] >= 0, cpus = ret->at[C_NCPUS] >= 0 || ret->at[C_REQCPUS] >= 0 || ret->at[C_REQTRES] >= 0;
	if (ret->at[C_ID] >= 0 && ret->at[C_SUBMIT] >= 0 && run && cpus)
		return 0;
	error_set(err, EINVAL, "%s: neither a Standard Workload Format file (.swf) nor the output of sacct -P with JobID, Submit, Elapsed and ReqCPUS in its header line", path);
	error_hint(err, "sacct -aXP -S 2026-01-01 -o JobIDRaw,User,Partition,Submit,ElapsedRaw,TimelimitRaw,ReqCPUS,NNodes,ReqTRES,State");
	return err->code;
}

static const char *get(const struct columns *c, enum col k, char **field, size_t n) { return c->at[k] >= 0 && (size_t)c->at[k] < n ? field[c->at[k]] : ""; }

static uint32_t number(const char *text)
{
	unsigned long long v;
	return str_to_u64(text, 0, UINT32_MAX, &v) ? 0 : (uint32_t)v;
}

static uint64_t tres_number(const char *tres, const char *key)
{
	size_t len = strlen(key);
	for (const char *at = tres; (at = strstr(at, key)); at += len)
		if ((at == tres || at[-1] == ',') && at[len] == '=') {
			char *end;
			double v = strtod(at + len + 1, &end);
			return (uint64_t)(v * (*end == 'T' ? 1048576 : *end == 'G' ? 1024 : *end == 'K' ? 1.0 / 1024 : 1));
		}
	return 0;
}

static void sacct_sizes(const struct columns *c, char **f, size_t n, struct trace_job *j)
{
	const char *tres = get(c, C_REQTRES, f, n), *given = get(c, C_ALLOCTRES, f, n);
	tres = *tres ? tres : given;
	j->cpus = number(get(c, C_REQCPUS, f, n));
	if (!j->cpus)
		j->cpus = (uint32_t)tres_number(tres, "cpu");
	if (!j->cpus)
		j->cpus = number(get(c, C_NCPUS, f, n));
	j->nodes = (uint32_t)tres_number(get(c, C_REQTRES, f, n), "node"); /* NNodes of a job that ran is what it was given */
	if (!j->nodes)
		j->nodes = number(get(c, C_NNODES, f, n));
	j->gpus = (uint32_t)tres_number(tres, "gres/gpu");
	j->mem_mb = tres_number(tres, "mem");
}

static void sacct_line(struct trace *t, const struct columns *c, char *line)
{
	char *f[FIELDS_MAX];
	size_t n = split(line, f);
	struct trace_job j = { 0 };
	time_t when;
	uint32_t sec;
	const char *id = get(c, C_ID, f, n), *limit = get(c, C_LIMIT_RAW, f, n);
	if (strchr(id, '.')) /* a step */
		return;
	j.number = (uint32_t)strtoul(id, NULL, 10);
	sacct_sizes(c, f, n, &j);
	j.run_sec = number(get(c, C_ELAPSED_RAW, f, n));
	if (!j.run_sec && !timespec_parse_secs(get(c, C_ELAPSED, f, n), &sec, NULL))
		j.run_sec = sec;
	/* It could not start before it was eligible: that is when it entered the competition. */
	const char *from = get(c, C_ELIGIBLE, f, n);
	if (timespec_parse_when(from, 0, 1, &when, NULL) < 0 && timespec_parse_when(get(c, C_SUBMIT, f, n), 0, 1, &when, NULL) < 0)
		when = 0;
	if (!j.cpus || !when || (!j.run_sec && str_starts(get(c, C_STATE, f, n), "CANCELLED"))) {
		t->skipped++;
		return;
	}
	j.submit = (uint64_t)when;
	j.limit_min = number(limit);
	if (!j.limit_min && timespec_parse_mins(get(c, C_LIMIT, f, n), &j.limit_min, NULL) < 0)
		j.limit_min = TIME_INFINITE;
	j.user = name_index(&t->user, &t->users, &t->user_cap, *get(c, C_USER, f, n) ? get(c, C_USER, f, n) : "user0");
	j.part = name_index(&t->part, &t->parts, &t->part_cap, get(c, C_PART, f, n));
	*job_add(t) = j;
}

static int sacct_read(struct lines *l, const char *path, struct trace *t, struct error *err)
{
	struct columns c;
	char *s = lines_next(l);
	int rc = sacct_header(s ? s : (char[]){ "" }, path, &c, err);
	while (rc >= 0 && (s = lines_next(l)))
		if (*s)
			sacct_line(t, &c, s);
	return rc;
}

int trace_read(const char *path, struct trace *ret, struct error *err)
{
	*ret = (struct trace){ 0 };
	struct lines *l = lines_open(path, err);
	if (!l)
		return err->code;
	int rc = strstr(path, ".swf") ? swf_read(l, path, ret, err) : sacct_read(l, path, ret, err);
	lines_close(l);
	if (rc >= 0 && !ret->n)
		rc = error_set(err, EINVAL, "%s: no job in it can be simulated", path);
	if (rc >= 0)
		qsort(ret->job, ret->n, sizeof *ret->job, by_submit);
	else
		trace_fini(ret);
	return rc;
}

void trace_rewind(struct trace *t)
{
	for (size_t i = 0; i < t->n; i++) {
		t->job[i].state = TRACE_WAITS;
		t->job[i].start = t->job[i].end = 0;
	}
}

void trace_fini(struct trace *t)
{
	for (size_t i = 0; i < t->users; i++)
		free(t->user[i]);
	for (size_t i = 0; i < t->parts; i++)
		free(t->part[i]);
	free(t->user);
	free(t->part);
	free(t->job);
	*t = (struct trace){ 0 };
}
