/* client_test.c - proves that a command finds its controller through slurm.conf, proves who it is by key, token socket or munge, fails with the standard
 * sentence when nobody answers, and does not notice a controller that restarts */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <sodium.h>

#include "base/log.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"

static char dir[64], conf_file[128];
static uint16_t port;
static pid_t server_pid, munged_pid;

/* --- a controller in a process of its own ---------------------------------------------------- */

static void handler(struct wire_req *r, void *arg)
{
	Pb__PingRsp rsp = PB__PING_RSP__INIT;
	if (wire_req_rpc(r) != RPC_PING && wire_req_rpc(r) != RPC_DIAG) {
		wire_reply_error(r, ESLURM_INVALID_JOB_ID, NULL);
		return;
	}
	if (wire_req_rpc(r) == RPC_DIAG) {
		Pb__DiagRsp diag = PB__DIAG_RSP__INIT;
		wire_reply(r, &diag.base);
		return;
	}
	rsp.host = "test";
	rsp.now = wire_req_identity(r)->known ? wire_req_identity(r)->uid : UINT32_MAX;
	wire_reply(r, &rsp.base);
}

static void server_run(int tell, const struct conf *conf)
{
	struct error err = { 0 };
	struct wire_auth *a = NULL;
	struct wire_server *s;
	struct sack *sack = NULL;
	uv_loop_t loop;
	uv_loop_init(&loop);
	if (client_auth_create(conf, CLIENT_AUTH_DAEMON, &a, &err) ||
	    wire_server_start(&loop, a, "127.0.0.1", port, handler, NULL, NULL, &s, &err) ||
	    client_sack_start(conf, &loop, a, "slurmctld", &sack, &err)) {
		fprintf(stderr, "%s\n", err.line);
		_exit(1);
	}
	uint16_t real = wire_server_port(s);
	if (write(tell, &real, sizeof real) != sizeof real)
		_exit(1);
	close(tell);
	uv_run(&loop, UV_RUN_DEFAULT);
	_exit(0);
}

static void conf_write(const char *auth)
{
	FILE *f = fopen(conf_file, "w");
	assert_non_null(f);
	fprintf(f, "ClusterName=test\nSlurmctldHost=here(127.0.0.1)\nSlurmctldPort=%u\nMessageTimeout=2\nAccountingStoragePort=2\n%s\nNodeName=n1\n"
		"PartitionName=p Nodes=n1 Default=YES\n", port ? port : 1, auth);
	fclose(f);
}

static void server_start(void)
{
	struct conf *conf = NULL;
	struct error err = { 0 };
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	if (conf_load_client(conf_file, &conf, &err))
		fail_msg("%s", err.line);
	server_pid = fork();
	if (!server_pid) {
		close(fds[0]);
		server_run(fds[1], conf);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &port, sizeof port), sizeof port);
	close(fds[0]);
	conf_destroy(conf);
	usleep(2000);
}

static void server_kill(void)
{
	kill(server_pid, SIGKILL);
	waitpid(server_pid, NULL, 0);
	server_pid = 0;
}

/* Asks in a process with that uid; returns the uid the server saw, or -1. */
static long ask_as(uid_t uid)
{
	int fds[2];
	long seen = -1;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		struct client *c = NULL;
		struct error err = { 0 };
		ProtobufCMessage *rsp = NULL;
		Pb__Empty req = PB__EMPTY__INIT;
		if (uid != geteuid() && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
			_exit(1);
		if (!client_open(&c, &err) && !client_call(c, RPC_PING, &req.base, 0, &rsp, &err))
			seen = ((Pb__PingRsp *)rsp)->now;
		else
			fprintf(stderr, "%s (%s)\n", err.line, err.hint);
		_exit(write(fds[1], &seen, sizeof seen) != sizeof seen);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &seen, sizeof seen), sizeof seen);
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return seen;
}

static int group_up(void **state)
{
	uint8_t key[64];
	char path[128];
	log_init("client_test", LOG_L_ERROR);
	unsetenv("BERTH_SACK");
	snprintf(dir, sizeof dir, "/tmp/client_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(conf_file, sizeof conf_file, "%s/slurm.conf", dir);
	setenv("SLURM_CONF", conf_file, 1);
	snprintf(path, sizeof path, "%s/slurm.key", dir);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	randombytes_buf(key, sizeof key);
	assert_int_equal(write(fd, key, sizeof key), sizeof key);
	close(fd);
	return 0;
}

static int group_down(void **state)
{
	char cmd[128];
	if (server_pid)
		server_kill();
	if (munged_pid) {
		kill(munged_pid, SIGTERM);
		waitpid(munged_pid, NULL, 0);
	}
	snprintf(cmd, sizeof cmd, "%s", dir);
	pid_t pid = fork();
	if (!pid) {
		execlp("rm", "rm", "-rf", cmd, (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

static void slurm_conf(void)
{
	char auth[200];
	snprintf(auth, sizeof auth, "AuthInfo=sack=%s/run/sack.socket", dir);
	conf_write(auth);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void test_nobody_answers(void **state)
{
	struct client *c = NULL;
	struct error err = { 0 };
	ProtobufCMessage *rsp = NULL;
	Pb__Empty req = PB__EMPTY__INIT;
	slurm_conf();                                  /* port 1 */
	assert_int_equal(client_open(&c, &err), 0);
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(client_call(c, RPC_PING, &req.base, 0, &rsp, &err), -ESLURM_COMM);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 500);   /* PING does not wait */
	assert_int_equal(client_call(c, RPC_DIAG, &req.base, 0, &rsp, &err), -ESLURM_COMM);
	assert_string_equal(err.line, "Unable to contact slurm controller (connect failure)");
	assert_non_null(strstr(err.hint, "127.0.0.1:1: Connection refused"));
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_true(a.tv_sec - b.tv_sec >= 1 && a.tv_sec - b.tv_sec <= 4);                     /* MessageTimeout=2 */
	assert_int_equal(client_call_dbd(c, RPC_DB_PING, &req.base, 0, &rsp, &err), -ESLURM_DBD);
	client_close(c);
}

static void test_who_asks(void **state)
{
	slurm_conf();
	server_start();
	slurm_conf();                                  /* with the real port */
	assert_int_equal(ask_as(geteuid()), geteuid());
	if (!geteuid())
		assert_int_equal(ask_as(65534), 65534);    /* cannot read the key: asks the socket */
}

static void test_restart(void **state)
{
	struct client *c = NULL;
	struct error err = { 0 };
	ProtobufCMessage *rsp = NULL;
	Pb__Empty req = PB__EMPTY__INIT;
	assert_int_equal(client_open(&c, &err), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(client_call(c, RPC_DIAG, &req.base, 0, &rsp, &err), 0);
		protobuf_c_message_free_unpacked(rsp, NULL);
		server_kill();
		server_start();
	}
	pid_t late = fork();                           /* and one that is away for a while */
	if (!late) {
		usleep(300000);
		kill(server_pid, SIGCONT);
		_exit(0);
	}
	kill(server_pid, SIGSTOP);
	assert_int_equal(client_call(c, RPC_DIAG, &req.base, 0, &rsp, &err), 0);
	protobuf_c_message_free_unpacked(rsp, NULL);
	waitpid(late, NULL, 0);
	assert_int_equal(client_call(c, RPC_RECONFIGURE, &req.base, 0, &rsp, &err), -ESLURM_ACCESS_DENIED);
	client_close(c);
	server_kill();
}

static bool munged_start(void)
{
	char key[128], sock[128], pid[128], log[128], seed[128];
	uint8_t bytes[64];
	if (geteuid() || access("/usr/sbin/munged", X_OK))
		return false;
	snprintf(key, sizeof key, "--key-file=%s/munge.key", dir);
	snprintf(sock, sizeof sock, "--socket=%s/munge.socket", dir);
	snprintf(pid, sizeof pid, "--pid-file=%s/munge.pid", dir);
	snprintf(log, sizeof log, "--log-file=%s/munge.log", dir);
	snprintf(seed, sizeof seed, "--seed-file=%s/munge.seed", dir);
	int fd = open(strchr(key, '/'), O_CREAT | O_WRONLY, 0600);
	randombytes_buf(bytes, sizeof bytes);
	assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
	close(fd);
	munged_pid = fork();
	if (!munged_pid) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 2);
		execl("/usr/sbin/munged", "munged", "--foreground", "--force", key, sock, pid, log, seed, (char *)NULL);
		_exit(1);
	}
	for (int i = 0; i < 300 && access(strchr(sock, '/'), F_OK); i++)
		usleep(10000);
	assert_int_equal(access(strchr(sock, '/'), F_OK), 0);
	return true;
}

static void on_done(int code, const ProtobufCMessage *rsp, const char *detail, void *arg)
{
	*(long *)arg = code ? code : (long)((const Pb__PingRsp *)rsp)->now;
}

/* A daemon's link asks munge on another thread. */
static long link_ask(void)
{
	struct conf *conf = NULL;
	struct wire_auth *a = NULL;
	struct error err = { 0 };
	uv_loop_t loop;
	long seen[2] = { -1, -1 };
	Pb__Empty req = PB__EMPTY__INIT;
	assert_int_equal(conf_load_client(conf_file, &conf, &err), 0);
	assert_int_equal(client_auth_create(conf, CLIENT_AUTH_DAEMON, &a, &err), 0);
	uv_loop_init(&loop);
	struct wire_link *link = wire_link_create(&loop, a, "127.0.0.1", port), *gone = wire_link_create(&loop, a, "127.0.0.1", port);
	wire_link_call(link, RPC_PING, &req.base, 5000, on_done, &seen[0]);
	wire_link_call(gone, RPC_PING, &req.base, 5000, on_done, &seen[1]);
	uv_run(&loop, UV_RUN_NOWAIT);                  /* the timer connects: munge is being asked */
	wire_link_destroy(gone);
	assert_int_equal(seen[1], -ECANCELED);
	while (seen[0] == -1)
		uv_run(&loop, UV_RUN_ONCE);
	wire_link_destroy(link);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	wire_auth_destroy(a);
	conf_destroy(conf);
	return seen[0];
}

static void test_munge(void **state)
{
	char auth[200];
	if (!munged_start())
		skip();
	snprintf(auth, sizeof auth, "AuthType=auth/munge\nAuthInfo=socket=%s/munge.socket", dir);
	conf_write(auth);
	server_start();
	conf_write(auth);
	assert_int_equal(ask_as(0), 0);
	assert_int_equal(ask_as(65534), 65534);
	assert_int_equal(link_ask(), 0);
	kill(munged_pid, SIGTERM);
	waitpid(munged_pid, NULL, 0);
	munged_pid = 0;
	struct client *c = NULL;
	struct error err = { 0 };
	ProtobufCMessage *rsp = NULL;
	Pb__Empty req = PB__EMPTY__INIT;
	assert_int_equal(client_open(&c, &err), 0);
	assert_int_equal(client_call(c, RPC_DIAG, &req.base, 0, &rsp, &err), -ESLURM_AUTH);   /* without munged nobody is anybody */
	assert_non_null(strstr(err.hint, "munged"));
	assert_int_equal(client_call(c, RPC_PING, &req.base, 0, &rsp, &err), 0);              /* but PING is for all */
	assert_true(((Pb__PingRsp *)rsp)->now == UINT32_MAX);
	protobuf_c_message_free_unpacked(rsp, NULL);
	client_close(c);
	server_kill();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_answers), cmocka_unit_test(test_who_asks), cmocka_unit_test(test_restart), cmocka_unit_test(test_munge),
	};
	return cmocka_run_group_tests(tests, group_up, group_down);
}
