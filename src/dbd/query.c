/* query.c - which jobs sacct gets
 *
 * The WHERE clause is put together from fixed pieces; every value of the asker is bound. What SQL cannot say (host lists) is checked on the rows. A
 * window [start, end] selects jobs eligible before its end and not over before its start; with states: jobs that were in one of them within the window
 * (sacct(1), --state). Rows come by job, oldest attempt first; without `duplicates` only the last one that passes is kept. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "dbd/dbd.h"
#include "model/hostlist.h"
#include "model/states.h"

#define BIND_MAX 20000

struct bind { const char *text; int64_t number; };
struct where { struct str sql; struct bind *bind; size_t n, cap; char **own; size_t own_n, own_cap; };

static void bind_add(struct where *w, const char *text, int64_t number)
{
	w->bind = xgrow(w->bind, &w->cap, w->n + 1, sizeof *w->bind);
	w->bind[w->n++] = (struct bind){ text, number };
}

static void where_text(struct where *w, const char *column, char *const *list, size_t n)
{
	if (!n)
		return;
	str_addf(&w->sql, " AND %s COLLATE NOCASE IN (", column);
	for (size_t i = 0; i < n; i++) {
		str_add(&w->sql, i ? ",?" : "?");
		bind_add(w, list[i], 0);
	}
	str_add_c(&w->sql, ')');
}

static void where_numbers(struct where *w, const char *column, const uint32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		str_addf(&w->sql, i ? "," : " AND %s IN (", column);
		str_add_c(&w->sql, '?');
		bind_add(w, NULL, list[i]);
	}
	if (n)
		str_add_c(&w->sql, ')');
}

static void where_piece(struct where *w, const char *sql, const int64_t *number, size_t n)
{
	str_add(&w->sql, sql);
	for (size_t i = 0; i < n; i++)
		bind_add(w, NULL, number[i]);
}

/* "5", "5.0", "5_2", "5_[1-3]", "5+1", SLUID: which rows. */
static int where_id(struct where *w, const char *id, struct error *err)
{
	char *end;
	errno = 0;
	unsigned long long job = strtoull(id, &end, 10);
	if (*id == 's' && strlen(id) >= 14) {
		str_add(&w->sql, "sluid=?");
		w->own = xgrow(w->own, &w->own_cap, w->own_n + 1, sizeof *w->own);
		w->own[w->own_n] = xstrndup(id, strcspn(id, "."));
		bind_add(w, w->own[w->own_n++], 0);
		return 0;
	}
	if (end == id || errno || job > UINT32_MAX || (*end && !strchr("._+", *end)))
		return error_set(err, ESLURM_INVALID_JOB_ID, "Invalid job id specified: %s", id);
	const int64_t both[2] = { (int64_t)job, (int64_t)job };
	if ((*end == '_' || *end == '+') && isdigit((unsigned char)end[1])) {
		const int64_t task[2] = { (int64_t)job, strtol(end + 1, NULL, 10) };
		where_piece(w, "(array_job_id=? AND array_task_id=?)", task, 2);
	} else {
		where_piece(w, "(job_id=? OR array_job_id=?)", both, 2);
	}
	return 0;
}

static int where_ids(struct where *w, char *const *id, size_t n, struct error *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		str_add(&w->sql, i ? " OR " : " AND (");
		rc = where_id(w, id[i], err);
	}
	if (n)
		str_add_c(&w->sql, ')');
	return rc;
}

/* Was the job in that state within [start, end]? */
static int where_state(struct where *w, const char *name, int64_t start, int64_t end, struct error *err)
{
	bool is_flag;
	uint32_t state;
	if (job_state_parse(name, &is_flag, &state))
		return error_set(err, EINVAL, "Invalid job state specified: %s", name);
	const int64_t window[3] = { end, start, state };
	if (is_flag) {
		where_piece(w, !strcasecmp(name, "REQUEUED") || !strcasecmp(name, "RQ") ? "(requeued=1 AND end<=? AND end>=?)" : "(0 AND ?<?)", window, 2);
	} else if (state == PB__JOB_STATE__PENDING) {
		where_piece(w, "(eligible>0 AND eligible<=? AND (start>=? OR start=0) AND NOT (state>2 AND start=0 AND end<?))", (const int64_t[]){ end, start, start }, 3);
	} else if (state == PB__JOB_STATE__RUNNING) {
		where_piece(w, "(start>0 AND start<=? AND (end>=? OR end=0) AND (state<>0))", window, 2);
	} else if (state == PB__JOB_STATE__SUSPENDED) {
		where_piece(w, "(start>0 AND start<=? AND (end>=? OR end=0) AND state=?)", window, 3);
	} else {
		where_piece(w, "(end<=? AND end>=? AND state=? AND requeued=0)", window, 3);
	}
	return 0;
}

static int where_window(struct where *w, const Pb__DbdJobsReq *q, struct error *err)
{
	int64_t start = (int64_t)q->start, end = q->has_end && q->end ? (int64_t)q->end : INT64_MAX;
	int rc = 0;
	for (size_t i = 0; !rc && i < q->n_state; i++) {
		str_add(&w->sql, i ? " OR " : " AND (");
		rc = where_state(w, q->state[i], start, end, err);
	}
	if (q->n_state)
		str_add_c(&w->sql, ')');
	else if (q->n_id)
		where_piece(w, " AND (eligible<=? OR submit<=?) AND (end=0 OR end>=?)", (const int64_t[]){ end, end, start }, 3);
	else   /* a job that is held, or was until its end, never became eligible */
		where_piece(w, " AND eligible>0 AND eligible<=? AND (end=0 OR end>=?)", (const int64_t[]){ end, start }, 2);
	return rc;
}

static int where_build(struct where *w, const Pb__DbdJobsReq *q, uint32_t only_uid, struct error *err)
{
	w->sql = STR_INIT;
	str_add(&w->sql, "SELECT job.id, record, requeued, reason, cluster.name, nodes, job_id, cluster FROM job JOIN cluster ON cluster.id=job.cluster WHERE 1");
	where_text(w, "cluster.name", q->cluster, q->n_cluster);
	int rc = where_ids(w, q->id, q->n_id, err);
	if (!rc)
		rc = where_window(w, q, err);
	if (only_uid != UINT32_MAX)
		where_numbers(w, "uid", &only_uid, 1);
	where_numbers(w, "uid", q->uid, q->n_uid);
	where_numbers(w, "gid", q->gid, q->n_gid);
	where_text(w, "user", q->user, q->n_user);
	where_text(w, "account", q->account, q->n_account);
	where_text(w, "partition", q->partition, q->n_partition);
	where_text(w, "job.name", q->name, q->n_name);
	where_text(w, "qos", q->qos, q->n_qos);
	where_text(w, "wckey", q->wckey, q->n_wckey);
	str_add(&w->sql, " ORDER BY cluster, COALESCE(array_job_id, job_id), COALESCE(array_task_id, 1<<40), job_id, submit, restarts");
	if (!rc && w->n > BIND_MAX)
		rc = error_set(err, ESLURM_TOO_LARGE, "more than %d values in one request", BIND_MAX);
	return rc;
}

static void where_fini(struct where *w)
{
	for (size_t i = 0; i < w->own_n; i++)
		free(w->own[i]);
	free(w->own);
	free(w->bind);
	str_fini(&w->sql);
}

/* --- rows ------------------------------------------------------------------------------------------------ */
static bool nodes_meet(const struct hostlist *want, const char *nodes)
{
	struct hostlist have = HOSTLIST_INIT;
	bool found = false;
	if (!nodes || hostlist_add(&have, nodes, NULL))
		return false;
	for (size_t i = 0; !found && i < have.count; i++)
		found = hostlist_find(want, have.name[i]) >= 0;
	hostlist_fini(&have);
	return found;
}

static void job_fill(Pb__DbdJob *j, sqlite3_stmt *st)
{
	int len = sqlite3_column_bytes(st, 1);
	pb__dbd_job__init(j);
	j->has_db_index = true;
	j->db_index = (uint64_t)sqlite3_column_int64(st, 0);
	j->record.data = len ? xmemdup(sqlite3_column_blob(st, 1), (size_t)len) : NULL;
	j->record.len = (size_t)len;
	j->has_requeued = j->has_reason = true;
	j->requeued = sqlite3_column_int(st, 2);
	j->reason = (uint32_t)sqlite3_column_int(st, 3);
	j->cluster = xstrdup((const char *)sqlite3_column_text(st, 4));
}

static int steps_fill(struct db *d, Pb__DbdJob *j, struct error *err)
{
	sqlite3_stmt *st = db_ready(d, ST_STEPS_OF);
	size_t cap = 0;
	int got;
	sqlite3_bind_int64(st, 1, (int64_t)j->db_index);
	while ((got = sqlite3_step(st)) == SQLITE_ROW) {
		Pb__StepRecord *s = pb__step_record__unpack(NULL, (size_t)sqlite3_column_bytes(st, 0), sqlite3_column_blob(st, 0));
		if (!s)
			continue;
		j->step = xgrow(j->step, &cap, j->n_step + 1, sizeof *j->step);
		j->step[j->n_step++] = s;
	}
	sqlite3_reset(st);
	return got == SQLITE_DONE ? 0 : db_fail(d, err);
}

static Pb__DbdJob *result_slot(struct query_result *r, const Pb__DbdJobsReq *q, int64_t cluster, int64_t job_id, int64_t *last_cluster, int64_t *last_job)
{
	bool same = r->n && *last_cluster == cluster && *last_job == job_id;
	*last_cluster = cluster;
	*last_job = job_id;
	if (same && !q->duplicates) {
		Pb__DbdJob *j = r->job[r->n - 1];
		free(j->record.data);
		free(j->cluster);
		return j;
	}
	r->job = xgrow(r->job, &r->cap, r->n + 1, sizeof *r->job);
	return r->job[r->n++] = xcalloc(1, sizeof(Pb__DbdJob));
}

static int rows_read(struct db *d, sqlite3_stmt *st, const Pb__DbdJobsReq *q, const struct hostlist *nodes, struct query_result *r, struct error *err)
{
	int64_t last_cluster = 0, last_job = 0;
	int got, rc = 0;
	while ((got = sqlite3_step(st)) == SQLITE_ROW) {
		if (nodes && !nodes_meet(nodes, (const char *)sqlite3_column_text(st, 5)))
			continue;
		job_fill(result_slot(r, q, sqlite3_column_int64(st, 7), sqlite3_column_int64(st, 6), &last_cluster, &last_job), st);
	}
	if (got != SQLITE_DONE)
		return db_fail(d, err);
	for (size_t i = 0; !rc && !q->no_steps && i < r->n; i++)
		rc = steps_fill(d, r->job[i], err);
	return rc;
}

int query_jobs(struct db *d, const Pb__DbdJobsReq *req, uint32_t only_uid, struct query_result *ret, struct error *err)
{
	struct where w = { 0 };
	struct hostlist nodes = HOSTLIST_INIT;
	sqlite3_stmt *st = NULL;
	*ret = (struct query_result){ 0 };
	int rc = where_build(&w, req, only_uid, err);
	if (!rc && req->nodes)
		rc = hostlist_add(&nodes, req->nodes, err);
	if (!rc && sqlite3_prepare_v2(d->sql, w.sql.data, -1, &st, NULL) != SQLITE_OK)
		rc = db_fail(d, err);
	for (size_t i = 0; !rc && i < w.n; i++) {
		if (w.bind[i].text)
			db_bind_text(st, (int)i + 1, w.bind[i].text);
		else
			sqlite3_bind_int64(st, (int)i + 1, w.bind[i].number);
	}
	if (!rc)
		rc = rows_read(d, st, req, req->nodes ? &nodes : NULL, ret, err);
	sqlite3_finalize(st);
	where_fini(&w);
	hostlist_fini(&nodes);
	if (rc)
		query_free(ret);
	return rc;
}

void query_free(struct query_result *r)
{
	for (size_t i = 0; i < r->n; i++)
		pb__dbd_job__free_unpacked(r->job[i], NULL);
	free(r->job);
	*r = (struct query_result){ 0 };
}
