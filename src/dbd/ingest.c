/* ingest.c - what slurmctld sends becomes rows
 *
 * An event is the state of a job or step, not a change: applied twice it does no harm, and an older one (by seq) never replaces a newer one. A step
 * finds its attempt by submit and start time, else takes the latest; a step whose job is not known gets a bare job row, so that nothing is lost. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "dbd/dbd.h"

static int cluster_id(struct db *d, const char *name, int64_t *ret, uint64_t *ret_seq, struct error *err)
{
	sqlite3_stmt *st = db_ready(d, ST_CLUSTER_ADD);
	db_bind_text(st, 1, name);
	int rc = db_run(d, st, err);
	if (rc)
		return rc;
	st = db_ready(d, ST_CLUSTER_GET);
	db_bind_text(st, 1, name);
	if (sqlite3_step(st) != SQLITE_ROW)
		rc = db_fail(d, err);
	*ret = sqlite3_column_int64(st, 0);
	*ret_seq = (uint64_t)sqlite3_column_int64(st, 1);
	sqlite3_reset(st);
	return rc;
}

static int job_put(struct db *d, int64_t cluster, const Pb__DbdEvent *e, const Pb__JobRecord *j, const void *blob, size_t len, struct error *err)
{
	sqlite3_stmt *st = db_ready(d, ST_JOB_PUT);
	const Pb__JobDesc *desc = j->desc;
	/* A component of a heterogeneous job is found as a task of an array is: by the id of the whole, and which one. */
	int64_t whole = j->has_het_job_id ? (int64_t)j->het_job_id : j->has_array_job_id ? (int64_t)j->array_job_id : -1;
	int64_t which = j->has_het_job_id ? (int64_t)j->het_offset : j->has_array_task_id ? (int64_t)j->array_task_id : -1;
	const int64_t number[] = { cluster, j->job_id, (int64_t)j->submit_time, j->restarts, (int64_t)e->seq, whole, which };
	for (int i = 0; i < 7; i++)
		if (i < 5 || number[i] >= 0)
			sqlite3_bind_int64(st, i + 1, number[i]);
	bool waits = j->state == PB__JOB_STATE__PENDING && !e->requeued;
	bool running = j->state == PB__JOB_STATE__PENDING || j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED;
	db_bind_text(st, 8, j->sluid);
	const int64_t more[] = { (int64_t)j->eligible_time, waits ? 0 : (int64_t)j->start_time, running && !e->requeued ? 0 : (int64_t)j->end_time, j->state, e->requeued, e->job_reason,
				 j->uid, j->gid };
	for (int i = 0; i < 8; i++)
		sqlite3_bind_int64(st, 9 + i, more[i]);
	const char *text[] = { j->user, desc ? desc->account : NULL, j->partition ? j->partition : desc ? desc->partition : NULL, desc ? desc->name : NULL,
			       desc ? desc->qos : NULL, desc ? desc->wckey : NULL, j->alloc ? j->alloc->nodes : NULL };
	for (int i = 0; i < 7; i++)
		db_bind_text(st, 17 + i, text[i]);
	sqlite3_bind_blob(st, 24, blob, (int)len, SQLITE_STATIC);
	return db_run(d, st, err);
}

/* Row of the attempt; 0: none. */
static int64_t job_find(struct db *d, int64_t cluster, const Pb__DbdEvent *e)
{
	int64_t id = 0;
	sqlite3_stmt *st = db_ready(d, ST_JOB_EXACT);
	sqlite3_bind_int64(st, 1, cluster);
	sqlite3_bind_int64(st, 2, e->step->job_id);
	sqlite3_bind_int64(st, 3, (int64_t)e->job_submit);
	sqlite3_bind_int64(st, 4, (int64_t)e->job_start);
	if (sqlite3_step(st) == SQLITE_ROW)
		id = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	if (id)
		return id;
	st = db_ready(d, ST_JOB_LATEST);
	sqlite3_bind_int64(st, 1, cluster);
	sqlite3_bind_int64(st, 2, e->step->job_id);
	if (sqlite3_step(st) == SQLITE_ROW)
		id = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return id;
}

static int job_bare(struct db *d, int64_t cluster, const Pb__DbdEvent *e, int64_t *ret, struct error *err)
{
	Pb__JobRecord j = PB__JOB_RECORD__INIT;
	uint8_t blob[128];
	j.job_id = e->step->job_id;
	j.uid = e->step->uid;
	j.state = e->step->state;
	j.has_submit_time = j.has_start_time = true;
	j.submit_time = e->job_submit;
	j.start_time = e->job_start;
	int rc = job_put(d, cluster, e, &j, blob, pb__job_record__pack(&j, blob), err);
	if (!rc && !(*ret = job_find(d, cluster, e)))
		rc = db_fail(d, err);
	return rc;
}

static int step_put(struct db *d, int64_t cluster, const Pb__DbdEvent *e, struct error *err)
{
	int64_t job = job_find(d, cluster, e);
	int rc = job ? 0 : job_bare(d, cluster, e, &job, err);
	if (rc)
		return rc;
	size_t len = pb__step_record__get_packed_size(e->step);
	uint8_t *blob = malloc(len + 1);
	if (!blob)
		abort();
	pb__step_record__pack(e->step, blob);
	sqlite3_stmt *st = db_ready(d, ST_STEP_PUT);
	sqlite3_bind_int64(st, 1, job);
	sqlite3_bind_int64(st, 2, (int32_t)e->step->step_id);
	sqlite3_bind_int64(st, 3, (int64_t)e->seq);
	sqlite3_bind_int64(st, 4, (int64_t)e->step->start_time);
	sqlite3_bind_int64(st, 5, (int64_t)e->step->end_time);
	sqlite3_bind_int64(st, 6, e->step->state);
	sqlite3_bind_blob(st, 7, blob, (int)len, SQLITE_STATIC);
	rc = db_run(d, st, err);
	free(blob);
	return rc;
}

static int event_put(struct db *d, int64_t cluster, const Pb__DbdEvent *e, struct error *err)
{
	int rc = 0;
	if (e->has_job) {
		Pb__JobRecord *j = pb__job_record__unpack(NULL, e->job.len, e->job.data);
		if (!j) {                /* it would be sent for ever: say so and go on */
			log_error("accounting record %llu is malformed and was dropped", (unsigned long long)e->seq);
			return 0;
		}
		rc = job_put(d, cluster, e, j, e->job.data, e->job.len, err);
		pb__job_record__free_unpacked(j, NULL);
	}
	return rc || !e->step ? rc : step_put(d, cluster, e, err);
}

int ingest(struct db *d, const Pb__DbdSendReq *req, uint64_t *ret_seq, struct error *err)
{
	int64_t cluster;
	uint64_t seq = 0;
	int rc = db_run(d, db_ready(d, ST_BEGIN), err);
	if (rc)
		return rc;
	rc = cluster_id(d, req->cluster, &cluster, &seq, err);
	for (size_t i = 0; !rc && i < req->n_event; i++) {
		rc = event_put(d, cluster, req->event[i], err);
		if (req->event[i]->seq > seq || !i)
			seq = req->event[i]->seq;
	}
	if (!rc) {
		sqlite3_stmt *st = db_ready(d, ST_CLUSTER_SEQ);
		sqlite3_bind_int64(st, 1, (int64_t)seq);
		sqlite3_bind_int64(st, 2, cluster);
		rc = db_run(d, st, err);
	}
	if (!rc)
		rc = db_run(d, db_ready(d, ST_COMMIT), err);
	if (rc) {
		(void)db_run(d, db_ready(d, ST_ROLLBACK), NULL);
		return rc;
	}
	*ret_seq = seq;
	return 0;
}
