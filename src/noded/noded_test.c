/* noded_test.c - proves with the real slurmd and slurmstepd, playing slurmctld: registration; a signed batch launch runs once and its end is reported; forged,
 * repeated and expired launches are refused; a step runs across a restart of slurmd; its end while slurmd is away is reported; termination ends with EPILOG_DONE;
 * late orders leave a later run alone. A slurmd killed at any of its calls to the system during a launch neither loses the job nor runs it twice; one that was
 * restarted takes no credential again.
 * Arguments: slurmd, slurmstepd, killer library (killer.c; absent: its test is skipped). */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/stepid.h"
#include "noded/gpus.h"
#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "wire/sign.h"
#include "wire/wire.h"

#define EVENTS 1024

static char dir[] = "/tmp/noded_test.XXXXXX";
static const char *slurmd_path, *stepd_path, *killer_path;
static uv_loop_t loop;
static struct wire_auth *auth;
static struct wire_server *server;
static struct wire_link *node;
static uint16_t node_port;
static pid_t slurmd_pid;
static uint8_t pub[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];

static struct { size_t registrations, steps_alive, n; uint32_t alive_restarts; Pb__NodeEvent *event[EVENTS]; char problem[256]; } seen;
static struct { bool done; int code; size_t pids; char detail[512]; } answer;
static bool hold_registration;
static struct wire_req *registration;      /* held back */

static void on_call(struct wire_req *req, void *arg)
{
	(void)arg;
	if (wire_req_rpc(req) == RPC_NODE_REGISTER) {
		const Pb__NodeRegisterReq *m = (const Pb__NodeRegisterReq *)wire_req_msg(req);
		Pb__NodeRegisterRsp rsp = PB__NODE_REGISTER_RSP__INIT;
		Pb__CredKey key = PB__CRED_KEY__INIT, *keys[1] = { &key };
		key.id = 1, key.key.data = pub, key.key.len = sizeof pub;
		rsp.key = keys, rsp.n_key = 1;
		seen.registrations++;
		seen.steps_alive = m->n_step;
		seen.alive_restarts = m->n_step ? m->step[0]->restarts : 0;
		if (hold_registration) {
			registration = req;
			return;
		}
		snprintf(seen.problem, sizeof seen.problem, "%s", m->gres_problem ? m->gres_problem : "");
		wire_reply(req, &rsp.base);
		return;
	}
	const Pb__NodeEventReq *m = (const Pb__NodeEventReq *)wire_req_msg(req);
	Pb__Result ok = PB__RESULT__INIT;
	for (size_t i = 0; i < m->n_event && seen.n < EVENTS; i++) {
		uint8_t buf[8192];
		size_t len = pb__node_event__pack(m->event[i], buf);
		seen.event[seen.n++] = pb__node_event__unpack(NULL, len, buf);
	}
	wire_reply(req, &ok.base);
}

static bool allow(const struct wire_identity *id, enum rpc_who who, void *arg)
{
	(void)who, (void)arg;
	return id->known;
}

static void on_tick(uv_timer_t *t) { uv_stop(t->loop); }

/* Run the loop until cond, at most a minute; then say what slurmd and slurmstepd wrote. */
#define WAIT_FOR(cond) do { int left_ = 6000; while (!(cond) && left_--) loop_once(); if (!(cond)) log_show(#cond); assert_true(cond); } while (0)
static void log_show(const char *what)
{
	char cmd[256];
	snprintf(cmd, sizeof cmd, "tail -n 40 %s/log >&2; ls -l %s/spool >&2", dir, dir);
	fprintf(stderr, "waited for: %s\n", what);
	(void)!system(cmd);
}

static void loop_once(void)
{
	static uv_timer_t t;
	static bool made;
	if (!made)
		uv_timer_init(&loop, &t), made = true;
	uv_timer_start(&t, on_tick, 10, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
}

static void write_file(const char *name, const char *text, size_t len, mode_t mode)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	close(fd);
}

static char *file_text(const char *name)
{
	static char buf[8192];
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof buf - 1);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	return buf;
}

/* A port nobody has now: several of these tests may run at once. */
static uint16_t free_port(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof addr;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, len) && !getsockname(fd, (struct sockaddr *)&addr, &len));
	close(fd);
	return ntohs(addr.sin_port);
}

/* kill_at: at which of its calls, counted from when the file "arm" exists, it is to be killed; 0: never. */
static void slurmd_start_to_die(int kill_at)
{
	char conf[256];
	size_t before = seen.registrations;
	snprintf(conf, sizeof conf, "%s/slurm.conf", dir);
	slurmd_pid = fork();
	if (!slurmd_pid) {
		int log = open("/dev/null", O_RDWR);
		dup2(log, 1), dup2(log, 2);
		if (kill_at) {
			setenv("LD_PRELOAD", killer_path, 1);
			setenv("KILLER_AT", xasprintf("%d", kill_at), 1);
			setenv("KILLER_ARM", xasprintf("%s/arm", dir), 1);
		}
		execl(slurmd_path, "slurmd", "-D", "-f", conf, "-N", "n1", "-d", stepd_path, (char *)NULL);
		_exit(127);
	}
	WAIT_FOR(seen.registrations > before);
}

static void slurmd_start(void) { slurmd_start_to_die(0); }

static void slurmd_stop(int sig)
{
	kill(slurmd_pid, sig);
	waitpid(slurmd_pid, NULL, 0);
}

static int start_all(void **state)
{
	char text[2048], key_path[256];
	uint8_t key[64];
	struct error err;
	(void)state;
	log_init("noded_test", LOG_L_ERROR);
	assert_true(sodium_init() >= 0 && mkdtemp(dir));
	randombytes_buf(key, sizeof key);
	write_file("slurm.key", (char *)key, sizeof key, 0600);
	crypto_sign_keypair(pub, secret);
	uv_loop_init(&loop);
	snprintf(key_path, sizeof key_path, "%s/slurm.key", dir);
	struct wire_auth_params p = { .cluster = "t", .key_path = key_path };
	if (wire_auth_create(&p, &auth, &err) < 0 || wire_server_start(&loop, auth, "127.0.0.1", 0, on_call, allow, NULL, &server, &err) < 0) {
		fprintf(stderr, "%s\n", err.line);
		return -1;
	}
	node_port = free_port();
	int len = snprintf(text, sizeof text,
			   "ClusterName=t\nSlurmctldHost=h(127.0.0.1)\nSlurmctldPort=%d\nSlurmdPort=%d\nSlurmUser=root\nAuthType=auth/slurm\n"
			   "SlurmdSpoolDir=%s/spool\nSlurmdPidFile=%s/slurmd.pid\nSlurmdLogFile=%s/log\nSlurmdDebug=debug\nSlurmdParameters=config_overrides\nKillWait=1\n"
			   "StateSaveLocation=%s\nGresTypes=gpu\nEpilog=%s/epilog\nProlog=%s/prolog\n"
			   "NodeName=n1 NodeAddr=127.0.0.1 Port=%d CPUs=4 RealMemory=100 Gres=gpu:2\nPartitionName=p Nodes=ALL Default=YES\n",
			   wire_server_port(server), node_port, dir, dir, dir, dir, dir, dir, node_port);
	write_file("slurm.conf", text, (size_t)len, 0644);
	len = snprintf(text, sizeof text, "Name=gpu File=%s/gpu[0-1]\n", dir);
	write_file("gres.conf", text, (size_t)len, 0644);
	write_file("gpu0", "", 0, 0644);
	len = snprintf(text, sizeof text, "#!/bin/sh\necho $SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID >> %s/epilogs\n", dir);
	write_file("epilog", text, (size_t)len, 0755);
	len = snprintf(text, sizeof text, "#!/bin/sh\necho $SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID $SLURM_JOB_UID >> %s/prologs\n[ ! -e %s/fail ]\n", dir, dir);
	write_file("prolog", text, (size_t)len, 0755);
	slurmd_start();
	node = wire_link_create(&loop, auth, "127.0.0.1", node_port);
	return 0;
}

static int stop_all(void **state)
{
	char cmd[128];
	(void)state;
	slurmd_stop(SIGTERM);
	wire_link_destroy(node);
	wire_server_stop(server);
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd);
}

static void on_answer(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	(void)arg;
	answer.done = true;
	answer.code = code;
	snprintf(answer.detail, sizeof answer.detail, "%s", detail ? detail : "");
	if (code || !rsp)
		return;
	if (rsp->descriptor == &pb__node_status_rsp__descriptor) {
		const Pb__NodeStatusRsp *m = (const Pb__NodeStatusRsp *)rsp;
		answer.pids = m->n_step ? m->step[0]->n_pid : 0;
	} else if (rsp->descriptor == &pb__launch_rsp__descriptor) {
		const Pb__LaunchRsp *m = (const Pb__LaunchRsp *)rsp;
		answer.code = -(int)m->code;
		snprintf(answer.detail, sizeof answer.detail, "%s", m->detail ? m->detail : "");
	} else if (rsp->descriptor == &pb__result__descriptor) {
		answer.code = -(int)((const Pb__Result *)rsp)->code;
	}
}

static int call(enum rpc rpc, const ProtobufCMessage *req)
{
	answer.done = false;
	wire_link_call(node, rpc, req, 5000, on_answer, NULL);
	WAIT_FOR(answer.done);
	return answer.code;
}

/* An order that may be given twice: over a connection that broke with the slurmd before this one it is given again, as slurmctld does. */
static int call_again(enum rpc rpc, const ProtobufCMessage *req)
{
	int rc = call(rpc, req);
	return rc == -ESLURM_COMM ? call(rpc, req) : rc;
}

static bool same_nonce; /* of the steps launched now: as the last one's */
static uint32_t run; /* of the jobs launched now: how often they were requeued */

/* A signed batch launch in sealed bytes, freed by the caller. */
static uint64_t boot_named; /* what the next launch says of when the node was booted; 0: nothing */
static Pb__SignedBatch *batch_make(uint32_t job_id, const char *script, long expires_in)
{
	static uint8_t nonce[16], sig[crypto_sign_BYTES], buf[16384];
	static Pb__SignedBatch sealed;
	Pb__BatchLaunch b = PB__BATCH_LAUNCH__INIT;
	Pb__StepCred c = PB__STEP_CRED__INIT;
	Pb__StepLayout l = PB__STEP_LAYOUT__INIT;
	Pb__StepNode n = PB__STEP_NODE__INIT, *nodes[1] = { &n };
	Pb__Alloc a = PB__ALLOC__INIT;
	Pb__NodeAlloc part = PB__NODE_ALLOC__INIT, *parts[1] = { &part };
	Pb__JobRecord job = PB__JOB_RECORD__INIT;
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	uint32_t rank = 0;
	randombytes_buf(nonce, sizeof nonce);
	part.nodes = a.nodes = l.nodes = n.name = a.batch_host = "n1";
	part.cpus = n.cpus = 1, a.part = parts, a.n_part = 1, a.has_num_nodes = true, a.num_nodes = 1;
	n.addr = "127.0.0.1", n.task_ids = &rank, n.n_task_ids = 1, l.num_tasks = 1, l.node = nodes, l.n_node = 1;
	job.job_id = job_id, job.uid = getuid(), job.gid = getgid(), job.desc = &d, job.alloc = &a, job.state = PB__JOB_STATE__RUNNING;
	job.has_restarts = true, job.restarts = run;
	d.work_dir = dir, d.std_out = "out.%j";
	c.job_id = job_id, c.step_id = STEP_ID_BATCH, c.uid = getuid(), c.gid = getgid(), c.user = "me", c.layout = &l, c.job_alloc = &a, c.job = &job;
	c.expires = (uint64_t)(time(NULL) + expires_in);
	c.nonce.data = nonce, c.nonce.len = sizeof nonce;
	b.has_boot_time = boot_named > 0, b.boot_time = boot_named;
	b.cred = &c, b.script.data = (uint8_t *)script, b.script.len = strlen(script);
	pb__signed_batch__init(&sealed);
	sealed.batch.len = pb__batch_launch__pack(&b, buf), sealed.batch.data = buf;
	sign_make(SIGN_BATCH, buf, sealed.batch.len, secret, sig);
	sealed.signature.data = sig, sealed.signature.len = sizeof sig;
	return &sealed;
}

static const Pb__NodeEvent *event_find(Pb__NodeEvent__Kind kind, uint32_t job_id)
{
	for (size_t i = 0; i < seen.n; i++)
		if (seen.event[i]->kind == kind && seen.event[i]->job_id == job_id)
			return seen.event[i];
	return NULL;
}

static void terminate(uint32_t job_id)
{
	Pb__TerminateReq t = PB__TERMINATE_REQ__INIT;
	t.job_id = job_id, t.uid = getuid();
	assert_int_equal(call_again(RPC_D_TERMINATE, &t.base), 0);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__EPILOG_DONE, job_id));
}

static void test_registers(void **state)
{
	(void)state;
	if (!seen.problem[0])
		skip();                            /* until conf merges gres.conf into the nodes */
	assert_non_null(strstr(seen.problem, "gpu1 is missing"));
}

static void driver_file(const char *bus, const char *text, const char *cpus)
{
	char path[300];
	snprintf(path, sizeof path, "mkdir -p %s/root/proc/driver/nvidia/gpus/%s %s/root/sys/bus/pci/devices/%s", dir, bus, dir, bus);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof path, "root/proc/driver/nvidia/gpus/%s/information", bus);
	write_file(path, text, strlen(text), 0644);
	snprintf(path, sizeof path, "root/sys/bus/pci/devices/%s/local_cpulist", bus);
	write_file(path, cpus, strlen(cpus), 0644);
}

static void test_gpus_of_the_driver(void **state)
{
	struct gpu found[4];
	char root[280];
	(void)state;
	driver_file("0000:81:00.0", "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   12\nDevice Minor: \t 1\n", "64-127\n");
	driver_file("0000:01:00.0", "Model: NVIDIA H200\nDevice Minor: 0\n", "0-3,70\n");
	driver_file("0000:02:00.0", "Model: NVIDIA H200\nDevice Minor: none\n", "");
	snprintf(root, sizeof root, "%s/root", dir);
	assert_int_equal(gpus_from_driver(root, found, 4), 2);
	assert_int_equal(found[0].minor, 0);
	assert_string_equal(found[0].type, "nvidia_h200");
	assert_true(found[0].cpus[0] == 15 && found[0].cpus[1] == 1 << 6);
	assert_string_equal(found[1].type, "nvidia_a100-sxm4-40gb");
	assert_true(!found[1].cpus[0] && !~found[1].cpus[1]);
	assert_int_equal(gpus_from_driver(root, found, 1), 1);
	assert_int_equal(gpus_from_driver("/nowhere", found, 4), 0);
}

static void test_batch(void **state)
{
	char path[300];
	(void)state;
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(1, "#!/bin/sh\necho hi; exit 7\n", 60)->base), 0);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 1));
	const Pb__NodeEvent *e = event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 1);
	assert_int_equal(WEXITSTATUS(e->status), 7);
	assert_false(e->clean);                    /* an epilog is due */
	assert_string_equal(file_text("out.1"), "hi\n");
	terminate(1);
	assert_string_equal(file_text("epilogs"), "epilog_slurmd 1\n");
	snprintf(path, sizeof path, "%s/spool/done.1.%u", dir, STEP_ID_BATCH);
	WAIT_FOR(access(path, F_OK) < 0);
}

static void test_refusals(void **state)
{
	Pb__SignedBatch *b = batch_make(2, "#!/bin/sh\n", 60);
	(void)state;
	b->batch.data[40] ^= 1;
	assert_int_equal(call(RPC_D_BATCH, &b->base), -ESLURM_CRED);
	b->batch.data[40] ^= 1;
	assert_int_equal(call(RPC_D_BATCH, &b->base), 0);
	assert_int_equal(call(RPC_D_BATCH, &b->base), -ESLURM_CRED);
	assert_non_null(strstr(answer.detail, "used on node n1 before"));
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(3, "#!/bin/sh\n", -5)->base), -ESLURM_CRED);
	assert_non_null(strstr(answer.detail, "expired"));
	boot_named = 1; /* long before this machine was booted */
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(3, "#!/bin/sh\n", 60)->base), -ESLURM_CRED);
	assert_non_null(strstr(answer.detail, "sent before this node was rebooted"));
	boot_named = 0;
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 2));
	terminate(2);
}

static void test_restart(void **state)
{
	(void)state;
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(4, "#!/bin/sh\n: > ready4\nwhile [ ! -e go4 ]; do sleep 0.02; done; exit 5\n", 60)->base), 0);
	WAIT_FOR(access(xasprintf("%s/ready4", dir), F_OK) == 0);
	slurmd_stop(SIGKILL);
	slurmd_start();
	assert_int_equal(seen.steps_alive, 1);
	Pb__Empty empty = PB__EMPTY__INIT;
	assert_int_equal(call_again(RPC_D_PING, &empty.base), 0);
	assert_int_equal(answer.pids, 1);
	slurmd_stop(SIGKILL);
	write_file("go4", "", 0, 0644);
	WAIT_FOR(access(xasprintf("%s/spool/done.4.%u", dir, STEP_ID_BATCH), F_OK) == 0);
	slurmd_start();
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 4));
	assert_int_equal(WEXITSTATUS(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 4)->status), 5);
	terminate(4);
}

/* A launch may overtake the answer to the registration, and with it the key. */
static void test_launch_before_key(void **state)
{
	Pb__NodeRegisterRsp rsp = PB__NODE_REGISTER_RSP__INIT;
	Pb__CredKey key = PB__CRED_KEY__INIT, *keys[1] = { &key };
	(void)state;
	slurmd_stop(SIGKILL);
	hold_registration = true;
	slurmd_start();
	hold_registration = false;
	const Pb__SignedBatch *b = batch_make(5, "#!/bin/sh\nexit 9\n", 60);
	answer.done = false;
	do {
		answer.done = false;
		wire_link_call(node, RPC_D_BATCH, &b->base, 60000, on_answer, NULL);
		for (int i = 0; i < 20; i++)
			loop_once();
	} while (answer.done && answer.code == -ESLURM_COMM);  /* the connection to the slurmd before */
	assert_false(answer.done);
	key.id = 1, key.key.data = pub, key.key.len = sizeof pub;
	rsp.key = keys, rsp.n_key = 1;
	wire_reply(registration, &rsp.base);
	WAIT_FOR(answer.done);
	assert_int_equal(answer.code, 0);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 5));
	terminate(5);
}

static void test_terminate(void **state)
{
	(void)state;
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(6, "#!/bin/sh\ntrap '' TERM; : > ready6\nsleep 100\n", 60)->base), 0);
	WAIT_FOR(access(xasprintf("%s/ready6", dir), F_OK) == 0);
	terminate(6);
	const Pb__NodeEvent *e = event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 6);
	assert_non_null(e);
	assert_int_equal(e->status, SIGKILL);
}

/* What was meant for the run before, and comes late, does not touch the run that is here. */
static void test_late_orders(void **state)
{
	Pb__TerminateReq t = PB__TERMINATE_REQ__INIT;
	Pb__SignalReq s = PB__SIGNAL_REQ__INIT;
	(void)state;
	run = 1;
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(11, "#!/bin/sh\n: > ready11\nwhile [ ! -e go11 ]; do sleep 0.02; done; exit 3\n", 60)->base), 0);
	run = 0;
	WAIT_FOR(access(xasprintf("%s/ready11", dir), F_OK) == 0);
	s.job_id = 11, s.signal = SIGKILL, s.has_restarts = true;
	assert_int_equal(call(RPC_D_SIGNAL, &s.base), -ESLURM_ALREADY_DONE);
	t.job_id = 11, t.uid = getuid(), t.has_restarts = t.has_kill_wait_sec = true;
	assert_int_equal(call(RPC_D_TERMINATE, &t.base), 0);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__EPILOG_DONE, 11));
	assert_int_equal(event_find(PB__NODE_EVENT__KIND__EPILOG_DONE, 11)->restarts, 0);
	write_file("go11", "", 0, 0644);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 11));
	const Pb__NodeEvent *e = event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 11);
	assert_true(WIFEXITED(e->status) && WEXITSTATUS(e->status) == 3 && e->restarts == 1);
}

static void test_stepd_killed(void **state)
{
	char cmd[300];
	(void)state;
	snprintf(cmd, sizeof cmd, "#!/bin/sh\necho $PPID > ppid\n: > ready7\nsleep 100\n");
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(7, cmd, 60)->base), 0);
	WAIT_FOR(access(xasprintf("%s/ready7", dir), F_OK) == 0);
	kill(atoi(file_text("ppid")), SIGKILL);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 7));
	assert_string_equal(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 7)->text, "slurmstepd was killed");
	assert_true(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 7)->killed);
	terminate(7);
	WAIT_FOR(access(xasprintf("%s/spool/step.7.%u", dir, STEP_ID_BATCH), F_OK) < 0);
}

/* Runs a job that notes the title of its slurmstepd; returns that one's parent, the slurmstepd that waits. */
static pid_t zygote_of_job(uint32_t job_id)
{
	const char *script = "#!/bin/sh\ntr -d '\\0' </proc/$PPID/cmdline >title\ncut -d' ' -f4 /proc/$PPID/stat >zygote\n";
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(job_id, script, 60)->base), 0);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, job_id));
	assert_string_equal(file_text("title"), xasprintf("slurmstepd: [%u.batch]", job_id));
	terminate(job_id);
	return atoi(file_text("zygote"));
}

static void test_zygote_killed(void **state)
{
	(void)state;
	pid_t first = zygote_of_job(20), again = zygote_of_job(21);
	assert_int_equal(first, again);
	assert_int_not_equal(first, slurmd_pid);
	kill(first, SIGKILL);
	WAIT_FOR(kill(first, 0) < 0);
	again = zygote_of_job(22);
	assert_int_not_equal(first, again);
	slurmd_stop(SIGKILL);
	WAIT_FOR(kill(again, 0) < 0);      /* it does not outlive its slurmd */
	slurmd_start();
}

static void test_prolog_fails(void **state)
{
	char want[64];
	(void)state;
	snprintf(want, sizeof want, "prolog_slurmd 1 %u\n", (unsigned)getuid());
	assert_true(!strncmp(file_text("prologs"), want, strlen(want)));
	write_file("fail", "", 0, 0644);
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(8, "#!/bin/sh\n", 60)->base), 0);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__LAUNCH_FAILED, 8));
	const Pb__NodeEvent *e = event_find(PB__NODE_EVENT__KIND__LAUNCH_FAILED, 8);
	assert_true(e->drain && e->prolog && !strcmp(e->text, "exit status 1"));
	unlink(xasprintf("%s/fail", dir));
	terminate(8);
	assert_null(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 8));
}

/* D_LAUNCH over a connection whose token is bound to `bound`. Returns the code of the answer. */
static int launch_as(uint32_t uid, const char *out, const uint8_t *bound, bool bind_own)
{
	static uint8_t nonce[16], sig[crypto_sign_BYTES], sealed[8192], body[16384];
	Pb__StepCred c = PB__STEP_CRED__INIT;
	Pb__StepLayout l = PB__STEP_LAYOUT__INIT;
	Pb__StepNode n = PB__STEP_NODE__INIT, *nodes[1] = { &n };
	Pb__Alloc a = PB__ALLOC__INIT;
	Pb__JobRecord job = PB__JOB_RECORD__INIT;
	Pb__SignedCred sc = PB__SIGNED_CRED__INIT;
	Pb__LaunchSpec spec = PB__LAUNCH_SPEC__INIT;
	uint32_t rank = 0;
	char *argv[] = { "sh", "-c", "echo step $SLURM_STEP_ID", NULL }, *env[] = { "PATH=/usr/bin:/bin", NULL };
	uint8_t hash[32];
	struct wire_client *client;
	struct error err = { 0 };
	Pb__LaunchRsp *rsp = NULL;
	if (!same_nonce)
		randombytes_buf(nonce, sizeof nonce);
	l.nodes = n.name = a.nodes = "n1", n.addr = "127.0.0.1", n.cpus = 1, n.task_ids = &rank, n.n_task_ids = 1;
	l.num_tasks = 1, l.node = nodes, l.n_node = 1;
	job.job_id = 9, job.uid = uid, job.state = PB__JOB_STATE__RUNNING;
	c.job_id = 9, c.uid = uid, c.gid = getgid(), c.user = "me", c.layout = &l, c.job_alloc = &a, c.job = &job, c.expires = (uint64_t)time(NULL) + 60;
	c.nonce.data = nonce, c.nonce.len = sizeof nonce;
	sc.cred.len = pb__step_cred__pack(&c, sealed), sc.cred.data = sealed;
	sign_make(SIGN_CRED, sealed, sc.cred.len, secret, sig);
	sc.signature.data = sig, sc.signature.len = sizeof sig;
	spec.cred = &sc, spec.argv = argv, spec.n_argv = 3, spec.env = env, spec.n_env = 1, spec.cwd = dir, spec.std_out = (char *)out;
	wire_hash(body, pb__launch_spec__pack(&spec, body), hash);
	assert_int_equal(wire_client_open(auth, "127.0.0.1", node_port, 3000, bind_own ? hash : bound, &client, &err), 0);
	int rc = wire_call(client, RPC_D_LAUNCH, &spec.base, 3000, (ProtobufCMessage **)&rsp, &err);
	wire_client_close(client);
	if (!rc)
		rc = -(int)rsp->code;
	snprintf(answer.detail, sizeof answer.detail, "%s", rsp && rsp->detail ? rsp->detail : "");
	if (rsp)
		pb__launch_rsp__free_unpacked(rsp, NULL);
	return rc;
}

static void test_step_launch(void **state)
{
	uint8_t other[32] = { 1 };
	(void)state;
	assert_int_equal(launch_as(getuid() + 1, "s.out", NULL, true), -ESLURM_ACCESS_DENIED);
	assert_non_null(strstr(answer.detail, "belongs to uid"));
	assert_int_equal(launch_as(getuid(), "s.out", other, false), -ESLURM_ACCESS_DENIED);
	assert_non_null(strstr(answer.detail, "was not made for this launch"));
	assert_int_equal(launch_as(getuid(), "s.out", NULL, false), -ESLURM_ACCESS_DENIED);
	assert_int_equal(launch_as(getuid(), "s.out", NULL, true), 0);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__STEP_DONE, 9));
	assert_string_equal(file_text("s.out"), "step 0\n");
	slurmd_stop(SIGKILL);
	slurmd_start();
	same_nonce = true;
	assert_int_equal(launch_as(getuid(), "s.out", NULL, true), -ESLURM_CRED);
	assert_non_null(strstr(answer.detail, "was used on node n1 before"));
	same_nonce = false;
	terminate(9);
	slurmd_stop(SIGKILL);
	slurmd_start();
	assert_int_equal(launch_as(getuid(), "s.out", NULL, true), -ESLURM_CRED);
	assert_non_null(strstr(answer.detail, "is revoked"));
}

/* Both daemons of the node are killed: the next slurmd ends what is left and says so. */
static void test_both_killed(void **state)
{
	char *sleeper;
	(void)state;
	run = 3;
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(12, "#!/bin/sh\nsleep 100 &\necho $! > sleeper; echo $PPID > ppid12; : > ready12\nwait\n", 60)->base), 0);
	run = 0;
	WAIT_FOR(access(xasprintf("%s/ready12", dir), F_OK) == 0);
	slurmd_stop(SIGKILL);
	kill(atoi(file_text("ppid12")), SIGKILL);
	slurmd_start();
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 12));
	const Pb__NodeEvent *e = event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 12);
	assert_true(e->status == SIGKILL && e->restarts == 3);
	assert_string_equal(e->text, "slurmstepd was killed");
	sleeper = xasprintf("/proc/%d/cwd", atoi(file_text("sleeper")));
	WAIT_FOR(access(xasprintf("%s/spool/done.12.%u.part", dir, STEP_ID_BATCH), F_OK) < 0);
	if (!geteuid() && strstr(file_text("log"), "are kept in cgroups"))
		WAIT_FOR(access(sleeper, F_OK) < 0);
	else
		kill(atoi(file_text("sleeper")), SIGKILL);
	terminate(12);
}

/* A slurmstepd that ends after a new slurmd has found it and before it says who it is: stopped here, its completion written in its place. */
static void test_ends_while_adopted(void **state)
{
	(void)state;
	run = 2;
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(13, "#!/bin/sh\necho $PPID > ppid13; : > ready13\nsleep 100\n", 60)->base), 0);
	run = 0;
	WAIT_FOR(access(xasprintf("%s/ready13", dir), F_OK) == 0);
	pid_t stepd = atoi(file_text("ppid13"));
	slurmd_stop(SIGKILL);
	kill(stepd, SIGSTOP);
	slurmd_start();
	assert_int_equal(seen.steps_alive, 1);
	assert_int_equal(seen.alive_restarts, 2);
	Pb__StepdEvent end = PB__STEPD_EVENT__INIT;
	uint8_t buf[128];
	end.kind = PB__STEPD_EVENT__KIND__DONE;
	end.has_status = end.has_batch = end.batch = end.has_restarts = end.has_uid = true;
	end.status = 6 << 8;
	end.restarts = 2;
	end.uid = geteuid();
	char *name = xasprintf("spool/done.13.%u", STEP_ID_BATCH);
	write_file(name, (char *)buf, pb__stepd_event__pack(&end, buf), 0600);
	kill(stepd, SIGKILL);
	WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 13));
	const Pb__NodeEvent *e = event_find(PB__NODE_EVENT__KIND__BATCH_DONE, 13);
	assert_true(WEXITSTATUS(e->status) == 6 && e->restarts == 2);
	run = 2;
	assert_int_equal(call_again(RPC_D_BATCH, &batch_make(13, "#!/bin/sh\n: > again13\n", 60)->base), -EEXIST);
	run = 0;
	assert_true(access(xasprintf("%s/again13", dir), F_OK) < 0);
	terminate(13);
	free(name);
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
/* As slurmctld does: what was not answered is sent again; what could not begin is begun again. */
static void job_to_its_end(uint32_t job_id, int code, const Pb__SignedBatch *b, const char *script)
{
	size_t fails = 0;
	if (code)
		code = call_again(RPC_D_BATCH, &b->base);
	assert_true(code == 0 || code == -EEXIST);
	while (!event_find(PB__NODE_EVENT__KIND__BATCH_DONE, job_id)) {
		size_t n = 0;
		WAIT_FOR(event_find(PB__NODE_EVENT__KIND__BATCH_DONE, job_id) || event_find(PB__NODE_EVENT__KIND__LAUNCH_FAILED, job_id));
		for (size_t i = 0; i < seen.n; i++)
			n += seen.event[i]->kind == PB__NODE_EVENT__KIND__LAUNCH_FAILED && seen.event[i]->job_id == job_id && seen.event[i]->again;
		if (n > fails) {
			fails = n;
			terminate(job_id);
			run++;
			assert_int_equal(call_again(RPC_D_BATCH, &batch_make(job_id, script, 60)->base), 0);
		}
		loop_once();
	}
	run = 0;
}

static bool slurmd_died(void)
{
	if (slurmd_pid && waitpid(slurmd_pid, NULL, WNOHANG) == slurmd_pid)
		slurmd_pid = 0;
	return !slurmd_pid;
}

static void test_killed_during_launch(void **state)
{
	bool died = true;
	(void)state;
	if (!killer_path)
		skip();
	Pb__Empty empty = PB__EMPTY__INIT;
	int at = 1;
	for (; died && at < 200; at++) {
		uint32_t job_id = 1000 + (uint32_t)at;
		char *out = xasprintf("ran.%u", job_id), *script = xasprintf("#!/bin/sh\necho ran >> %s\n", out);
		slurmd_stop(SIGKILL);
		slurmd_start_to_die(at);
		write_file("arm", "", 0, 0644);
		const Pb__SignedBatch *b = batch_make(job_id, script, 60);
		int code = call(RPC_D_BATCH, &b->base);   /* sometimes it dies on an old connection: then nothing came of it */
		WAIT_FOR(slurmd_died() || event_find(PB__NODE_EVENT__KIND__BATCH_DONE, job_id));
		unlink(xasprintf("%s/arm", dir));
		(void)call(RPC_D_PING, &empty.base);      /* it is past its last call that counts, or dead */
		died = slurmd_died();
		if (died)
			slurmd_start();
		job_to_its_end(job_id, code, b, script);
		if (strcmp(file_text(out), "ran\n"))
			log_show(xasprintf("job %u to run once; slurmd killed at call %d, its answer was %d", job_id, at, code));
		assert_string_equal(file_text(out), "ran\n");
		terminate(job_id);
	}
	assert_false(died);
	assert_in_range(at, 20, 199);      /* it did die, everywhere on the way */
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers), cmocka_unit_test(test_gpus_of_the_driver), cmocka_unit_test(test_batch), cmocka_unit_test(test_refusals), cmocka_unit_test(test_restart),
		cmocka_unit_test(test_launch_before_key), cmocka_unit_test(test_terminate), cmocka_unit_test(test_late_orders), cmocka_unit_test(test_stepd_killed), cmocka_unit_test(test_zygote_killed), cmocka_unit_test(test_prolog_fails), cmocka_unit_test(test_step_launch),
		cmocka_unit_test(test_both_killed),
		cmocka_unit_test(test_ends_while_adopted),
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__   /* whose runtime wants to be loaded first */
		cmocka_unit_test(test_killed_during_launch),
#endif
	};
	if (argc < 3)
		return fprintf(stderr, "usage: noded_test SLURMD SLURMSTEPD\n"), 2;
	slurmd_path = realpath(argv[1], NULL);
	stepd_path = realpath(argv[2], NULL);
	killer_path = argc > 3 ? realpath(argv[3], NULL) : NULL;
	return cmocka_run_group_tests(tests, start_all, stop_all);
}
