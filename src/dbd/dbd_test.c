/* dbd_test.c - proves: records sent twice or out of order end in one true state; attempts are rows; steps find their attempt; windows, states and filters
 * select as sacct(1) says; the schema goes up and down */
#include <unistd.h>

#include "base/testing.h"
#include "dbd/dbd.h"

static char path[64];
static struct db *db;

static int setup(void **state)
{
	struct error err;
	(void)state;
	snprintf(path, sizeof path, "/tmp/dbd_test.%d.db", (int)getpid());
	unlink(path);
	if (db_open(path, &db, &err))
		fail_msg("%s", err.line);
	return 0;
}

static int teardown(void **state)
{
	char other[80];
	(void)state;
	db_close(db);
	unlink(path);
	snprintf(other, sizeof other, "%s-wal", path);
	unlink(other);
	snprintf(other, sizeof other, "%s-shm", path);
	unlink(other);
	return 0;
}

struct job { uint64_t seq; uint32_t id, uid, restarts; int state; uint64_t start, end; bool requeued; const char *user, *nodes; uint32_t array; };

static void send_job(const struct job *in)
{
	Pb__JobRecord j = PB__JOB_RECORD__INIT;
	Pb__JobDesc desc = PB__JOB_DESC__INIT;
	Pb__Alloc alloc = PB__ALLOC__INIT;
	Pb__DbdEvent e = PB__DBD_EVENT__INIT, *list[1] = { &e };
	Pb__DbdSendReq req = PB__DBD_SEND_REQ__INIT;
	uint8_t blob[512];
	uint64_t seq = 0;
	struct error err;
	j.job_id = in->id;
	j.uid = in->uid;
	j.state = in->state;
	j.has_submit_time = j.has_eligible_time = j.has_start_time = j.has_end_time = j.has_restarts = true;
	j.submit_time = j.eligible_time = 1000;
	j.start_time = in->start;
	j.end_time = in->end;
	j.restarts = in->restarts;
	j.user = (char *)in->user;
	j.has_array_job_id = j.has_array_task_id = in->array != 0;
	j.array_job_id = in->array;
	j.array_task_id = 2;
	alloc.nodes = (char *)in->nodes;
	j.alloc = in->nodes ? &alloc : NULL;
	desc.name = (char *)"it's; DROP TABLE job";
	j.desc = &desc;
	e.seq = in->seq;
	e.has_job = true;
	e.job.data = blob;
	e.job.len = pb__job_record__pack(&j, blob);
	e.has_requeued = e.requeued = in->requeued;
	req.cluster = (char *)"c";
	req.n_event = 1;
	req.event = list;
	if (ingest(db, &req, &seq, &err))
		fail_msg("%s", err.line);
	assert_int_equal(seq, in->seq);
}

static void send_step(uint64_t seq, uint32_t job, uint32_t step, uint64_t start)
{
	Pb__StepRecord s = PB__STEP_RECORD__INIT;
	Pb__DbdEvent e = PB__DBD_EVENT__INIT, *list[1] = { &e };
	Pb__DbdSendReq req = PB__DBD_SEND_REQ__INIT;
	struct error err;
	s.job_id = job;
	s.step_id = step;
	s.state = PB__JOB_STATE__COMPLETED;
	e.seq = seq;
	e.step = &s;
	e.has_job_submit = e.has_job_start = true;
	e.job_submit = 1000;
	e.job_start = start;
	req.cluster = (char *)"c";
	req.n_event = 1;
	req.event = list;
	if (ingest(db, &req, &seq, &err))
		fail_msg("%s", err.line);
}

static struct query_result ask(const Pb__DbdJobsReq *q, uint32_t only)
{
	struct query_result r;
	struct error err;
	if (query_jobs(db, q, only, &r, &err))
		fail_msg("%s", err.line);
	return r;
}

static size_t count(const Pb__DbdJobsReq *q)
{
	struct query_result r = ask(q, UINT32_MAX);
	size_t n = r.n;
	query_free(&r);
	return n;
}

static void attempts(void **state)
{
	(void)state;
	Pb__DbdJobsReq q = PB__DBD_JOBS_REQ__INIT;
	const struct job running = { 10, 5, 1000, 0, PB__JOB_STATE__RUNNING, 2000, 9000, false, "alice", "n[1-2]", 0 };
	struct job lost = running, again = running;
	lost.seq = 20, lost.state = PB__JOB_STATE__NODE_FAIL, lost.end = 2500, lost.requeued = true;
	again.seq = 30, again.restarts = 1, again.start = 3000;
	send_job(&running);
	send_step(15, 5, 0xfffffffbu, 2000);
	send_step(16, 5, 0, 2000);
	send_job(&lost);
	send_job(&again);
	send_step(40, 5, 0, 3000);
	send_job(&running);              /* late and twice: changes nothing */
	send_job(&lost);
	assert_int_equal(count(&q), 1);
	q.has_duplicates = q.duplicates = true;
	struct query_result r = ask(&q, UINT32_MAX);
	assert_int_equal(r.n, 2);
	assert_true(r.job[0]->requeued);
	assert_int_equal(r.job[0]->n_step, 2);
	assert_int_equal(r.job[0]->step[0]->step_id, 0xfffffffbu);
	assert_int_equal(r.job[1]->n_step, 1);
	query_free(&r);
}

static void selection(void **state)
{
	(void)state;
	Pb__DbdJobsReq q = PB__DBD_JOBS_REQ__INIT;
	char *id[2] = { (char *)"7_2", (char *)"6.batch" }, *states[1] = { (char *)"COMPLETED" }, *names[1] = { (char *)"it's; DROP TABLE job" };
	uint32_t uid = 1001;
	send_job(&(struct job){ 50, 6, 1001, 0, PB__JOB_STATE__COMPLETED, 2000, 2100, false, "bob", "n3", 0 });
	send_job(&(struct job){ 51, 8, 1001, 0, PB__JOB_STATE__RUNNING, 2000, 2100, false, "bob", "n4", 7 });
	q.id = id;
	q.n_id = 2;
	assert_int_equal(count(&q), 2);
	q.n_id = 0;
	q.uid = &uid;
	q.n_uid = 1;
	assert_int_equal(count(&q), 2);
	q.has_start = q.has_end = true;
	q.start = 2200;
	q.end = 9999;
	assert_int_equal(count(&q), 1);  /* job 6 was over */
	q.start = 0;
	q.state = states;
	q.n_state = 1;
	assert_int_equal(count(&q), 1);
	q.n_state = 0;
	q.nodes = (char *)"n[1-3]";
	assert_int_equal(count(&q), 1);
	q.nodes = NULL;
	q.name = names;
	q.n_name = 1;
	assert_int_equal(count(&q), 2);
	struct query_result r = ask(&q, 1000);
	assert_int_equal(r.n, 0);        /* private: not his own */
	query_free(&r);
	struct error err;
	id[0] = (char *)"5; DROP";
	q.n_id = 1;
	assert_int_not_equal(query_jobs(db, &q, UINT32_MAX, &r, &err), 0);
}

static void schema(void **state)
{
	struct error err;
	(void)state;
	assert_int_equal(db_version(db), db_version_known());
	assert_int_equal(db_migrate_down(db, 0, &err), 0);
	assert_int_equal(db_version(db), 0);
	db_close(db);
	if (db_open(path, &db, &err))
		fail_msg("%s", err.line);
	assert_int_equal(db_version(db), db_version_known());
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(attempts), cmocka_unit_test(selection), cmocka_unit_test(schema) };
	return cmocka_run_group_tests(tests, setup, teardown);
}
