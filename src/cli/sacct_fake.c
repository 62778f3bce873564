/* sacct_fake.c - for tests: src/client with one canned reply of slurmdbd: the jobs that test/compat/sacct was recorded from on 26.05.5 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/client.h"
#include "model/stepid.h"
#include "model/usage.h"
#include "proto/accounting.pb-c.h"

#define T0 1796014992u   /* 2026-11-30T05:03:12 UTC */
#define SET(m, field, value) ((m)->has_##field = 1, (m)->field = (value))

struct client { struct conf *conf; };

int client_open(struct client **ret, struct error *err)
{
	static const char text[] = "ClusterName=main\nSlurmctldHost=ctl\nAccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageTRES=gres/gpu\n";
	*ret = xcalloc(1, sizeof **ret);
	return conf_load_text(&(struct conf_text){ "slurm.conf", text, sizeof text - 1 }, 1, &(*ret)->conf, err);
}
const struct conf *client_conf(const struct client *c) { return c->conf; }
struct wire_auth *client_auth(const struct client *c) { return NULL; }
void client_close(struct client *c)
{
	conf_destroy(c->conf);
	free(c);
}
int client_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int ms, ProtobufCMessage **ret, struct error *err) { return error_set(err, ESLURM_COMM, "no"); }
int client_call_raw(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int ms, uint8_t **ret, size_t *len, struct error *err) { return error_set(err, ESLURM_COMM, "no"); }

struct job { Pb__JobRecord r; Pb__JobDesc d; Pb__Alloc a; Pb__DbdJob db; Pb__StepRecord *step[4]; };

static struct job *job_new(uint32_t id, const char *name, int state, uint32_t start, uint32_t end, const char *nodes, uint32_t cpus, const char *tres)
{
	struct job *j = xcalloc(1, sizeof *j);
	pb__job_record__init(&j->r);
	pb__job_desc__init(&j->d);
	pb__alloc__init(&j->a);
	pb__dbd_job__init(&j->db);
	j->r.job_id = id;
	j->r.uid = j->r.gid = 5001;
	j->r.user = j->r.group = (char *)"alice";
	j->r.state = state;
	SET(&j->r, submit_time, T0);
	SET(&j->r, eligible_time, T0);
	SET(&j->r, num_nodes, 1);
	SET(&j->r, num_cpus, cpus);
	if (start) {
		SET(&j->r, start_time, T0 + start - 1);
		SET(&j->a, num_cpus, cpus);
		SET(&j->a, num_nodes, 1);
		j->a.nodes = (char *)nodes;
		j->r.alloc = &j->a;
	}
	if (end)
		SET(&j->r, end_time, T0 + end - 1);
	j->r.tres_req = j->r.tres_alloc = (char *)tres;
	j->r.partition = (char *)"main";
	j->d.name = (char *)name;
	j->d.account = (char *)"research";
	j->d.work_dir = (char *)"/tmp";
	SET(&j->d, batch, 1);
	j->r.desc = &j->d;
	j->db.cluster = (char *)"main";
	j->db.step = j->step;
	return j;
}

static Pb__StepRecord *step_add(struct job *j, uint32_t id, const char *name, int state, uint32_t start, uint32_t end, uint32_t status, uint32_t tasks)
{
	Pb__StepRecord *s = xcalloc(1, sizeof *s);
	pb__step_record__init(s);
	s->job_id = j->r.job_id;
	s->step_id = id;
	s->name = (char *)name;
	s->state = state;
	SET(s, start_time, T0 + start - 1);
	SET(s, end_time, T0 + end - 1);
	SET(s, exit_status, status);
	SET(s, num_nodes, 1);
	SET(s, num_tasks, tasks);
	SET(s, num_cpus, j->r.num_cpus);
	s->nodes = j->a.nodes;
	s->tres = (char *)"cpu=2,mem=200M,node=1";
	return j->step[j->db.n_step++] = s;
}

static void usage_set(Pb__StepRecord *s)
{
	Pb__StepUsage *u = s->usage = xcalloc(1, sizeof *u);
	pb__step_usage__init(u);
	SET(u, user_usec, 4000);
	SET(u, tasks, 2);
	usage_add(u, USAGE_CPU, "node-2", 0, 2000);
	usage_add(u, USAGE_CPU, "node-2", 1, 2000);
	usage_add(u, USAGE_RSS, "node-2", 0, 1832 << 10);
	usage_add(u, USAGE_RSS, "node-2", 1, 1832 << 10);
	usage_add(u, USAGE_VSIZE, "node-2", 0, 3036 << 10);
	usage_add(u, USAGE_VSIZE, "node-2", 1, 3036 << 10);
	usage_add(u, USAGE_PAGES, "node-2", 0, 0);
	usage_add(u, USAGE_PAGES, "node-2", 1, 0);
	usage_add(u, USAGE_READ, "node-2", 0, 4149);
	usage_add(u, USAGE_READ, "node-2", 1, 4149);
	usage_add(u, USAGE_WRITTEN, "node-2", 0, 0);
	usage_add(u, USAGE_WRITTEN, "node-2", 1, 0);
}

static size_t jobs_make(struct job **ret)
{
	size_t n = 0;
	struct job *j = ret[n++] = job_new(587, "sj.sh", PB__JOB_STATE__FAILED, 1, 3, "node-2", 2, "cpu=2,mem=200M,node=1,billing=2");
	SET(&j->r, exit_status, 3 << 8);
	SET(&j->r, derived_exit, 1);
	SET(&j->r, derived_status, 1 << 8);
	SET(&j->r, time_limit_min, 5);
	step_add(j, STEP_ID_BATCH, "batch", PB__JOB_STATE__FAILED, 1, 3, 3 << 8, 1);
	Pb__StepRecord *s = step_add(j, 0, "sleep", PB__JOB_STATE__COMPLETED, 2, 3, 0, 2);
	s->distribution = (char *)"block";
	s->submit_line = (char *)"srun -n2 sleep 1";
	usage_set(s);
	step_add(j, 1, "false", PB__JOB_STATE__FAILED, 3, 3, 1 << 8, 1);
	j = ret[n++] = job_new(590, "wrap", PB__JOB_STATE__COMPLETED, 1, 3, "node-2", 1, "cpu=1,mem=100M,node=1,billing=1");
	SET(&j->r, array_job_id, 588);
	SET(&j->r, array_task_id, 0);
	step_add(j, STEP_ID_BATCH, "batch", PB__JOB_STATE__COMPLETED, 1, 3, 0, 1);
	j = ret[n++] = job_new(596, "wrap", PB__JOB_STATE__CANCELLED, 0, 5, NULL, 1, "cpu=1,mem=100M,node=1,billing=1");
	SET(&j->r, cancel_uid, 0);
	j = ret[n++] = job_new(597, "wrap", PB__JOB_STATE__PENDING, 0, 0, NULL, 1, "cpu=1,mem=100M,node=1,billing=1");
	SET(&j->r, array_job_id, 597);
	j->r.array_tasks = (char *)"1-3";
	return n;
}

int client_call_dbd(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int ms, ProtobufCMessage **ret, struct error *err)
{
	Pb__DbdJobsRsp rsp = PB__DBD_JOBS_RSP__INIT;
	struct job *job[8];
	Pb__DbdJob *list[8];
	rsp.n_job = jobs_make(job);
	rsp.job = list;
	for (size_t i = 0; i < rsp.n_job; i++) {
		list[i] = &job[i]->db;
		list[i]->record.len = protobuf_c_message_get_packed_size(&job[i]->r.base);
		list[i]->record.data = xmalloc(list[i]->record.len + 1);
		protobuf_c_message_pack(&job[i]->r.base, list[i]->record.data);
	}
	size_t len = protobuf_c_message_get_packed_size(&rsp.base);
	uint8_t *data = xmalloc(len + 1);
	protobuf_c_message_pack(&rsp.base, data);
	*ret = protobuf_c_message_unpack(rsp.base.descriptor, NULL, len, data);
	free(data);
	return *ret ? 0 : error_set(err, ESLURM_PROTOCOL, "malformed");
}
