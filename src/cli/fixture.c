/* fixture.c - for tests: writes canned replies of the controller for fake_client.c
 * Usage: fixture DIR [N]. Without N: the twelve jobs, two steps, four nodes and two partitions that the golden texts under
 * test/compat were recorded from. With N: that many pending jobs, to measure with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/states.h"
#include "model/stepid.h"
#include "proto/controller.pb-c.h"

#define T0 1796012504u   /* 2026-11-30T04:21:44 UTC */
#define SET(m, field, value) ((m)->has_##field = true, (m)->field = (value))

static const char *dir;

static void reply_write(const char *name, const ProtobufCMessage *msg)
{
	size_t len = protobuf_c_message_get_packed_size(msg);
	uint8_t *data = xmalloc(len + 1);
	protobuf_c_message_pack(msg, data);
	char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	if (!f || fwrite(data, 1, len, f) != len || fclose(f)) {
		perror(path);
		exit(1);
	}
	free(path);
	free(data);
}

struct job { Pb__JobRecord r; Pb__JobDesc d; Pb__JobVolatile v; Pb__Alloc a; Pb__NodeAlloc part[4]; Pb__NodeAlloc *parts[4]; Pb__GresAlloc gres; Pb__GresAlloc *gres_p; };

static struct job *job_new(uint32_t id, const char *name, const char *submit_line)
{
	struct job *j = xcalloc(1, sizeof(*j));
	pb__job_record__init(&j->r);
	pb__job_desc__init(&j->d);
	pb__job_volatile__init(&j->v);
	pb__alloc__init(&j->a);
	pb__gres_alloc__init(&j->gres);
	j->gres_p = &j->gres;
	j->r.job_id = id;
	j->r.user = (char *)"root";
	j->r.group = (char *)"root";
	j->r.desc = &j->d;
	SET(&j->r, submit_time, T0);
	SET(&j->r, num_nodes, 1);
	SET(&j->r, num_cpus, 1);
	SET(&j->r, num_tasks, 1);
	SET(&j->r, time_limit_min, UINT32_MAX);
	j->r.tres_req = (char *)"cpu=1,mem=100M,node=1,billing=1";
	j->r.partition = (char *)"main";
	j->r.sluid = xasprintf("s6XNM8NAZX%04u", id);
	j->d.name = (char *)name;
	j->d.account = (char *)"research";
	j->d.qos = (char *)"normal";
	j->d.work_dir = (char *)"/tmp/w";
	j->d.alloc_node = (char *)"localhost";
	j->d.submit_line = (char *)submit_line;
	SET(&j->d, alloc_sid, 15626);
	SET(&j->d, mem_per_cpu, 100);
	SET(&j->d, batch, true);
	SET(&j->v, last_eval, T0);
	SET(&j->v, priority, 2111);
	j->v.scheduler = (char *)"Main";
	return j;
}

static void job_state(struct job *j, Pb__JobState state, uint64_t start, uint64_t end, enum reason reason)
{
	j->r.state = state;
	SET(&j->r, eligible_time, T0);
	SET(&j->r, accrue_time, T0);
	SET(&j->r, start_time, start);
	SET(&j->r, end_time, end);
	SET(&j->r, end_reason, reason);
	SET(&j->v, reason, reason);
	SET(&j->v, last_eval, start);
	j->r.tres_alloc = (char *)"cpu=1,mem=100M,node=1,billing=1";
	if (state != PB__JOB_STATE__RUNNING && state != PB__JOB_STATE__SUSPENDED)
		return;
	SET(&j->r, end_time, start + 525600 * 60);
}

static void job_alloc(struct job *j, const char *nodes, const char *host, uint32_t n_nodes, uint32_t n_cpus)
{
	j->r.alloc = &j->a;
	j->a.nodes = (char *)nodes;
	j->a.batch_host = (char *)host;
	SET(&j->a, num_nodes, n_nodes);
	SET(&j->a, num_cpus, n_cpus);
	SET(&j->r, num_nodes, n_nodes);
	SET(&j->r, num_cpus, n_cpus);
	j->a.part = j->parts;
}

static void alloc_part(struct job *j, const char *nodes, const char *cpu_ids, uint32_t cpus, uint64_t mem, bool gpus)
{
	Pb__NodeAlloc *p = &j->part[j->a.n_part];
	pb__node_alloc__init(p);
	p->nodes = (char *)nodes;
	p->cpu_ids = (char *)cpu_ids;
	p->cpus = cpus;
	p->mem = mem;
	if (gpus) {
		p->n_gres = 1;
		p->gres = &j->gres_p;
	}
	j->parts[j->a.n_part++] = p;
}

static void job_hold(struct job *j)
{
	SET(&j->v, reason, REASON_HELD_USER);
	SET(&j->v, priority, 0);
	SET(&j->d, hold, true);
}

static struct job *job_gpu(void)
{
	struct job *j = job_new(456, "gpu1", "sbatch --parsable -J gpu1 -N2 -n4 --gres=gpu:2 -t 5:00 --wrap srun sleep 300");
	job_state(j, PB__JOB_STATE__RUNNING, T0 + 1, 0, REASON_NONE);
	job_alloc(j, "node-[2-3]", "node-2", 2, 4);
	j->gres.name = (char *)"gpu";
	j->gres.type = (char *)"h100";
	j->gres.count = 2;
	j->gres.index = (char *)"0-1";
	alloc_part(j, "node-2", "4-6", 3, 300, true);
	alloc_part(j, "node-3", "4", 1, 100, true);
	SET(&j->r, time_limit_min, 5);
	SET(&j->r, end_time, T0 + 301);
	SET(&j->r, num_tasks, 4);
	SET(&j->d, num_tasks, 4);
	SET(&j->d, min_nodes, 2);
	SET(&j->d, max_nodes, 2);
	j->d.tres_per_node = (char *)"gres/gpu:2";
	j->r.tres_req = j->r.tres_alloc = (char *)"cpu=4,mem=400M,node=2,billing=4,gres/gpu=4";
	j->v.scheduler = (char *)"Backfill";
	return j;
}

static struct job *job_excl(void)
{
	struct job *j = job_new(464, "excl", "sbatch --parsable -J excl --exclusive -N1 --gpus=2 --mem=500 --cpus-per-gpu=1 --ntasks-per-node=2 --nice=50 --wrap sleep 200");
	job_state(j, PB__JOB_STATE__RUNNING, T0 + 1, 0, REASON_NONE);
	job_alloc(j, "node-4", "node-4", 1, 8);
	j->gres.name = (char *)"gpu";
	j->gres.type = (char *)"h100";
	j->gres.count = 4;
	j->gres.index = (char *)"0-3";
	alloc_part(j, "node-4", "0-7", 8, 500, true);
	SET(&j->r, time_limit_min, 525600);
	SET(&j->r, num_tasks, 2);
	SET(&j->d, min_nodes, 1);
	SET(&j->d, max_nodes, 1);
	SET(&j->d, nice, 50);
	SET(&j->d, ntasks_per_node, 2);
	j->d.has_mem_per_cpu = false;
	SET(&j->d, mem_per_node, 500);
	j->d.exclusive = (char *)"node";
	j->d.cpus_per_tres = (char *)"gres/gpu:1";
	j->d.tres_per_job = (char *)"gres/gpu:2";
	j->r.tres_req = (char *)"cpu=2,mem=500M,node=1,billing=2,gres/gpu=2";
	j->r.tres_alloc = (char *)"cpu=8,mem=500M,node=1,billing=8,gres/gpu=4";
	SET(&j->v, priority, 2061);
	j->v.scheduler = (char *)"Backfill";
	return j;
}

static struct job *job_array(void)
{
	struct job *j = job_new(455, "arr", "sbatch --parsable -a 0-9%2 -H -n4 -c2 -t 10 -J arr --comment a b --mem=1G --wrap x");
	job_hold(j);
	SET(&j->r, array_job_id, 455);
	j->r.array_tasks = (char *)"0-9";
	SET(&j->r, array_max_running, 2);
	SET(&j->r, time_limit_min, 10);
	SET(&j->r, num_cpus, 8);
	SET(&j->r, num_tasks, 4);
	SET(&j->d, num_tasks, 4);
	SET(&j->d, cpus_per_task, 2);
	j->d.has_mem_per_cpu = false;
	SET(&j->d, mem_per_node, 1024);
	j->d.comment = (char *)"a b";
	j->d.tres_per_task = (char *)"cpu=2";
	j->r.tres_req = (char *)"cpu=8,mem=1G,node=1,billing=8";
	return j;
}

static struct job *job_begin(void)
{
	struct job *j = job_new(462, "begin", "sbatch --parsable -J begin -b now+1hour -t 1-2 -n3 -N1-2 -o out.%j -e err.%j -i /dev/zero -x node-4 -w node-1 --wrap sleep 200");
	SET(&j->v, reason, REASON_BEGIN_TIME);
	SET(&j->v, est_start, T0 + 3600);
	SET(&j->r, eligible_time, T0 + 3600);
	SET(&j->r, time_limit_min, 26 * 60);
	SET(&j->r, num_cpus, 3);
	SET(&j->r, num_tasks, 3);
	SET(&j->d, num_tasks, 3);
	SET(&j->d, min_nodes, 1);
	SET(&j->d, max_nodes, 2);
	j->d.std_out = (char *)"out.%j";
	j->d.std_err = (char *)"err.%j";
	j->d.std_in = (char *)"/dev/zero";
	j->d.exc_nodes = (char *)"node-4";
	j->d.req_nodes = (char *)"node-1";
	j->r.tres_req = (char *)"cpu=3,mem=300M,node=1,billing=3";
	return j;
}

static struct job *job_done(uint32_t id, const char *name, const char *line, Pb__JobState state, uint32_t status, enum reason reason)
{
	struct job *j = job_new(id, name, line);
	job_state(j, state, T0 + 1, T0 + 1, reason);
	SET(&j->r, exit_status, status);
	SET(&j->r, time_limit_min, 525600);
	job_alloc(j, "node-2", "node-2", 1, 1);
	alloc_part(j, "node-2", id == 459 ? "1" : id == 460 ? "2" : "0", 1, 100, false);
	j->v.scheduler = (char *)"Backfill";
	return j;
}

static size_t jobs_small(struct job **ret)
{
	size_t n = 0;
	struct job *j = ret[n++] = job_new(454, "wrap", "sbatch --parsable -H --wrap x");
	job_hold(j);
	ret[n++] = job_array();
	ret[n++] = job_gpu();
	j = ret[n++] = job_done(457, "failing", "sbatch --parsable -J failing fail.sh a b c", PB__JOB_STATE__FAILED, 3 << 8, REASON_NON_ZERO_EXIT);
	j->d.command = (char *)"/tmp/w/fail.sh";
	j = ret[n++] = job_new(458, "canp", "sbatch --parsable -J canp -H --wrap x");
	job_hold(j);
	job_state(j, PB__JOB_STATE__CANCELLED, T0 + 2, T0 + 2, REASON_HELD_USER);
	j->r.has_eligible_time = j->r.has_accrue_time = false;
	j->r.tres_alloc = NULL;
	SET(&j->v, last_eval, T0);
	j = ret[n++] = job_done(459, "canr", "sbatch --parsable -J canr --wrap sleep 100", PB__JOB_STATE__CANCELLED, 15, REASON_NONE);
	SET(&j->r, end_time, T0 + 2);
	j = ret[n++] = job_done(460, "susp", "sbatch --parsable -J susp -n1 --wrap sleep 200", PB__JOB_STATE__SUSPENDED, 0, REASON_NONE);
	SET(&j->v, priority, 0);
	SET(&j->r, suspend_time, T0 + 2);
	SET(&j->r, pre_suspend_sec, 0);
	j = ret[n++] = job_new(461, "dep", "sbatch --parsable -J dep -d afterok:456 --wrap sleep 200");
	SET(&j->v, reason, REASON_DEPENDENCY);
	j->r.dependency_left = (char *)"afterok:456(unfulfilled)";
	ret[n++] = job_begin();
	j = ret[n++] = job_new(463, "many", "sbatch --parsable -J many -N20 --wrap true");
	SET(&j->v, reason, REASON_PARTITION_NODE_LIMIT);
	SET(&j->r, num_nodes, 20);
	SET(&j->r, num_cpus, 20);
	SET(&j->r, num_tasks, 20);
	SET(&j->d, min_nodes, 20);
	SET(&j->d, max_nodes, 20);
	SET(&j->r, eligible_time, T0);
	SET(&j->r, accrue_time, T0);
	j->r.tres_req = (char *)"cpu=20,mem=2000M,node=20,billing=20";
	ret[n++] = job_excl();
	j = ret[n++] = job_new(465, "small", "sbatch --parsable -J small -N1 -n2 -p short --tasks-per-node=2 -t 20 --hold -C  --wrap sleep 9");
	job_hold(j);
	SET(&j->r, time_limit_min, 20);
	SET(&j->r, num_cpus, 2);
	SET(&j->r, num_tasks, 2);
	SET(&j->d, num_tasks, 2);
	SET(&j->d, ntasks_per_node, 2);
	SET(&j->d, min_nodes, 1);
	SET(&j->d, max_nodes, 1);
	j->r.partition = (char *)"short";
	j->r.tres_req = (char *)"cpu=2,mem=200M,node=1,billing=2";
	return n;
}

static void jobs_write(struct job **job, size_t n)
{
	Pb__JobListRsp rsp = PB__JOB_LIST_RSP__INIT;
	Pb__JobItem *item = xcalloc(n, sizeof(*item)), **items = xcalloc(n, sizeof(*items));
	for (size_t i = 0; i < n; i++) {
		pb__job_item__init(&item[i]);
		item[i].record.len = pb__job_record__get_packed_size(&job[i]->r);
		item[i].record.data = xmalloc(item[i].record.len);
		pb__job_record__pack(&job[i]->r, item[i].record.data);
		item[i].vol = &job[i]->v;
		items[i] = &item[i];
	}
	rsp.job = items;
	rsp.n_job = n;
	rsp.now = T0 + 4;
	reply_write("JOB_LIST", &rsp.base);
}

static void steps_write(void)
{
	Pb__StepRecord batch = PB__STEP_RECORD__INIT, zero = PB__STEP_RECORD__INIT, *list[] = { &batch, &zero };
	Pb__StepListRsp rsp = PB__STEP_LIST_RSP__INIT;
	for (size_t i = 0; i < 2; i++) {
		list[i]->job_id = 456;
		list[i]->state = PB__JOB_STATE__RUNNING;
		list[i]->partition = (char *)"main";
		list[i]->user = (char *)"root";
		list[i]->sluid = (char *)"s6XNM8NAZX0456";
		SET(list[i], uid, 0);
		SET(list[i], start_time, T0 + 1);
	}
	batch.step_id = STEP_ID_BATCH;
	batch.name = (char *)"batch";
	batch.nodes = (char *)"node-2";
	SET(&batch, num_nodes, 1);
	SET(&batch, num_tasks, 1);
	zero.step_id = 0;
	zero.name = (char *)"sleep";
	zero.nodes = (char *)"node-[2-3]";
	zero.tres = (char *)"cpu=4,gres/gpu=4,mem=400M,node=2";
	zero.tres_per_node = (char *)"gres/gpu:2";
	zero.srun_host = (char *)"vm";
	zero.distribution = (char *)"Block";
	SET(&zero, srun_pid, 25595);
	SET(&zero, num_nodes, 2);
	SET(&zero, num_tasks, 4);
	SET(&zero, num_cpus, 4);
	rsp.step = list;
	rsp.n_step = 2;
	rsp.now = T0 + 4;
	reply_write("STEP_LIST", &rsp.base);
}

static Pb__NodeRecord *node_new(unsigned number)
{
	Pb__NodeRecord *n = xcalloc(1, sizeof(*n));
	Pb__NodeGres *g = xcalloc(1, sizeof(*g));
	pb__node_record__init(n);
	pb__node_gres__init(g);
	n->name = xasprintf("node-%u", number);
	n->arch = (char *)"x86_64";
	n->addr = (char *)"127.0.0.1";
	n->hostname = (char *)"vm";
	n->version = (char *)"26.05.5";
	n->os = (char *)"Linux 6.18.44-fc-v857 #1 SMP PREEMPT_DYNAMIC @0";
	n->gres = (char *)"gpu:h100:4";
	n->partitions = (char *)"main,short";
	n->cfg_tres = (char *)"cpu=8,mem=16000M,billing=8,gres/gpu=4";
	SET(n, port, 26820 + number);
	SET(n, cpus, 8);
	SET(n, sockets, 8);
	SET(n, real_memory, 16000);
	SET(n, cpu_load, number == 1 ? 15 : 14);
	SET(n, free_mem, number == 1 ? 23265 : 23232);
	SET(n, boot_time, T0 - 2093);
	SET(n, slurmd_start_time, T0 - (number == 1 ? 160 : 1320));
	SET(n, state, NODE_IDLE);
	g->name = (char *)"gpu";
	g->type = (char *)"h100";
	g->count = 4;
	n->n_gres_list = 1;
	n->gres_list = xcalloc(1, sizeof(*n->gres_list));
	n->gres_list[0] = g;
	return n;
}

static void node_busy(Pb__NodeRecord *n, uint32_t state, uint32_t cpus, uint64_t mem, const char *tres, uint64_t gpus, const char *index, uint64_t idle_since)
{
	SET(n, state, state);
	SET(n, alloc_cpus, cpus);
	SET(n, alloc_mem, mem);
	SET(n->gres_list[0], used, gpus);
	SET(n, last_busy, idle_since);
	n->alloc_tres = (char *)tres;
	n->gres_list[0]->used_index = (char *)index;
}

static void nodes_write(void)
{
	Pb__NodeRecord *list[4];
	Pb__NodeListRsp rsp = PB__NODE_LIST_RSP__INIT;
	for (unsigned i = 0; i < 4; i++)
		list[i] = node_new(i + 1);
	node_busy(list[0], NODE_IDLE, 0, 0, NULL, 0, NULL, T0 - 179);
	SET(list[0], state_flags, NODEF_DRAIN | NODEF_INVALID_REG);
	list[0]->reason = (char *)"gres/gpu count reported lower than configured (0 < 4)";
	list[0]->reason_user = (char *)"slurm";
	SET(list[0], reason_time, T0 - 160);
	SET(list[0], reason_uid, 64030);
	node_busy(list[1], NODE_MIXED, 3, 400, "cpu=3,mem=400M,gres/gpu=2", 2, "0-1", T0 - 59);
	node_busy(list[2], NODE_MIXED, 1, 100, "cpu=1,mem=100M,gres/gpu=2", 2, "0-1", T0 - 89);
	node_busy(list[3], NODE_ALLOCATED, 8, 500, "cpu=8,mem=500M,gres/gpu=4", 4, "0-3", T0 - 89);
	rsp.node = list;
	rsp.n_node = 4;
	rsp.now = T0 + 4;
	reply_write("NODE_LIST", &rsp.base);
}

static void parts_write(void)
{
	Pb__PartitionRecord part[2], *list[2] = { &part[0], &part[1] };
	Pb__PartListRsp rsp = PB__PART_LIST_RSP__INIT;
	for (unsigned i = 0; i < 2; i++) {
		pb__partition_record__init(&part[i]);
		part[i].name = (char *)(i ? "short" : "main");
		part[i].nodes = part[i].nodes_full = (char *)"node-[1-4]";
		part[i].tres = (char *)"cpu=32,mem=62.50G,node=4,billing=32,gres/gpu=16";
		part[i].preempt_mode = (char *)"REQUEUE";
		SET(&part[i], is_default, !i);
		SET(&part[i], total_cpus, 32);
		SET(&part[i], total_nodes, 4);
	}
	SET(&part[1], max_time_min, 30);
	rsp.part = list;
	rsp.n_part = 2;
	rsp.now = T0 + 4;
	reply_write("PART_LIST", &rsp.base);
}

static void jobs_many(size_t n)
{
	struct job **list = xcalloc(n, sizeof(*list));
	for (size_t i = 0; i < n; i++) {
		list[i] = job_new((uint32_t)(1000 + i), xasprintf("train-%zu", i % 97), "sbatch -N2 --gpus-per-node=8 -t 60 train.sbatch");
		list[i]->d.command = (char *)"/tmp/w/train.sbatch";
		list[i]->d.tres_per_node = (char *)"gres/gpu:8";
		SET(&list[i]->v, reason, i ? REASON_PRIORITY : REASON_RESOURCES);
		SET(&list[i]->v, priority, (uint32_t)(100000 - i));
		SET(&list[i]->r, eligible_time, T0 + i / 100);
		SET(&list[i]->r, submit_time, T0 + i / 100);
		SET(&list[i]->r, time_limit_min, 60);
		SET(&list[i]->r, num_nodes, 2);
	}
	jobs_write(list, n);
}

/* One that runs two minutes beyond its limit. */
static void job_over(void)
{
	struct job *j = job_new(1000, xstrdup("over"), "sbatch -t 60 over.sbatch");
	SET(&j->r, time_limit_min, 60);
	job_state(j, PB__JOB_STATE__RUNNING, T0 - 62 * 60, 0, REASON_NONE);
	jobs_write(&j, 1);
}

int main(int argc, char **argv)
{
	struct job *small[16];
	if (argc < 2)
		return 2;
	dir = argv[1];
	if (argc > 2 && !strcmp(argv[2], "over"))
		job_over();
	else if (argc > 2)
		jobs_many(strtoul(argv[2], NULL, 10));
	else
		jobs_write(small, jobs_small(small));
	steps_write();
	nodes_write();
	parts_write();
	return 0;
}
