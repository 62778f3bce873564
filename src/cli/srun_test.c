/* Proves: srun's side of wire/stepio.h against a slurmstepd that we play. Peers without the key, frames that are too large or make no sense, and a node that goes
 * away are refused or told; output of several tasks comes out in whole, labelled lines; the exit code is the highest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/srun.h"

void launch_again(struct srun *s, uint64_t now) { (void)s, (void)now; }    /* nothing is launched here */
uint64_t launch_due(const struct srun *s) { (void)s; return UINT64_MAX; }
#include "wire/stepio.h"

int srun_exit_code(int code) { return code; }

/* --- a step of two nodes, three tasks ------------------------------------------------------------------- */

static Pb__StepNode node_rows[2];
static Pb__StepNode *node_list[2] = { &node_rows[0], &node_rows[1] };
static uint32_t ranks[2][2] = { { 0, 1 }, { 2 } };
static Pb__StepLayout layout;

static void step_make(struct srun *s, int out_fd)
{
	static const char text[] = "ClusterName=test\nSlurmctldHost=localhost\nKillWait=1\nNodeName=n[1-2]\nPartitionName=p Nodes=n[1-2] Default=YES\n";
	struct conf_text file = { "slurm.conf", text, sizeof(text) - 1 };
	struct conf *conf;
	struct error err = { 0 };
	memset(s, 0, sizeof(*s));
	if (conf_load_text(&file, 1, &conf, &err) < 0)
		fail_msg("%s", err.line);
	s->conf = conf;
	jobopt_init(&s->o, JOBOPT_SRUN);
	s->job_id = 7;
	pb__step_layout__init(&layout);
	for (int i = 0; i < 2; i++) {
		pb__step_node__init(&node_rows[i]);
		node_rows[i].name = i ? "n2" : "n1";
		node_rows[i].task_ids = ranks[i];
		node_rows[i].n_task_ids = i ? 1 : 2;
	}
	layout.node = node_list;
	layout.n_node = 2;
	layout.num_tasks = 3;
	s->layout = &layout;
	tasks_init(s);
	sink_init(s, &s->std_out, out_fd);
	sink_init(s, &s->std_err, out_fd);
	s->to[0] = &s->std_out;
	s->to[1] = &s->std_err;
	s->plan_in.kind = PLAN_NONE;
	memset(s->io_key, 5, sizeof(s->io_key));
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->signal_fd = signals_open();
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(any);
	s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(s->listen_fd, 8), 0);
	getsockname(s->listen_fd, (struct sockaddr *)&any, &len);
	s->listen_port = ntohs(any.sin_port);
}

/* --- the slurmstepd we play (in a child) ------------------------------------------------------------------ */

static int peer_connect(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		_exit(2);
	return fd;
}

static void peer_send(int fd, uint8_t type, uint32_t task, const void *data, uint32_t n)
{
	uint8_t head[STEPIO_HEAD] = { type };
	task = htonl(task);
	uint32_t len = htonl(n);
	memcpy(head + 1, &task, 4);
	memcpy(head + 5, &len, 4);
	if (write(fd, head, sizeof(head)) != (ssize_t)sizeof(head) || write(fd, data, n) != (ssize_t)n)
		_exit(3);
}

static void peer_hello(int fd, const char *node, uint32_t index, uint8_t key_byte)
{
	uint8_t key[32], mac[32], body[256];
	char text[64];
	memset(key, key_byte, sizeof(key));
	int n = snprintf(text, sizeof(text), "7.0 %s", node);
	crypto_auth(mac, (const uint8_t *)text, (size_t)n, key);
	Pb__IoHello m = PB__IO_HELLO__INIT;
	m.job_id = 7;
	m.node = (char *)node;
	m.node_index = index;
	m.proof.data = mac;
	m.proof.len = sizeof(mac);
	peer_send(fd, STEPIO_HELLO, STEPIO_ALL, body, (uint32_t)pb__io_hello__pack(&m, body));
}

static void peer_exit(int fd, uint32_t task, uint32_t status)
{
	uint8_t body[64];
	Pb__IoExit m = PB__IO_EXIT__INIT;
	m.task = &task;
	m.n_task = 1;
	m.status = status;
	peer_send(fd, STEPIO_EXIT, STEPIO_ALL, body, (uint32_t)pb__io_exit__pack(&m, body));
}

/* true: srun closed the connection. */
static bool peer_is_refused(int fd)
{
	char buf[64];
	return read(fd, buf, sizeof(buf)) <= 0;
}

/* srun's proof. What is not read when a connection is closed resets it, and with it what was said. */
static void peer_proof(int fd)
{
	uint8_t proof[STEPIO_HEAD + 32];
	if (recv(fd, proof, sizeof(proof), MSG_WAITALL) != (ssize_t)sizeof(proof) || proof[0] != STEPIO_PROOF)
		_exit(4);
}

static void peer_play_good(uint16_t port)
{
	int a = peer_connect(port), b = peer_connect(port);
	peer_hello(a, "n1", 0, 5);
	peer_proof(a);
	peer_send(a, STEPIO_STDOUT, 0, "one\ntw", 6);
	peer_send(a, STEPIO_STDOUT, 1, "other\n", 6);
	peer_send(a, STEPIO_STDOUT, 0, "o\nrest", 6);
	peer_exit(a, 0, 3 << 8);
	peer_exit(a, 1, 0);
	peer_send(a, STEPIO_END, STEPIO_ALL, "", 0);
	peer_hello(b, "n2", 1, 5);
	peer_proof(b);
	peer_send(b, STEPIO_STDOUT, 2, "last\n", 5);
	peer_exit(b, 2, 9);
	peer_send(b, STEPIO_END, STEPIO_ALL, "", 0);
	_exit(0);
}

static void peer_play_bad(uint16_t port)
{
	int fd = peer_connect(port);
	peer_hello(fd, "n1", 0, 6);                          /* another key */
	if (!peer_is_refused(fd))
		_exit(5);
	fd = peer_connect(port);
	peer_hello(fd, "n2", 0, 5);                          /* a name that is not of that place */
	if (!peer_is_refused(fd))
		_exit(6);
	fd = peer_connect(port);
	peer_send(fd, STEPIO_STDOUT, 0, "x", 1);             /* no HELLO */
	if (!peer_is_refused(fd))
		_exit(7);
	fd = peer_connect(port);
	if (write(fd, "\001\377\377\377\377\377\377\377\377", 9) != 9 || !peer_is_refused(fd))   /* 4 GiB */
		_exit(8);
	fd = peer_connect(port);
	peer_hello(fd, "n1", 0, 5);
	peer_send(fd, STEPIO_STDOUT, 77, "x", 1);            /* a task that is not there: the node is lost */
	char buf[64];
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	fd = peer_connect(port);
	peer_hello(fd, "n2", 1, 5);
	close(fd);                                           /* goes away: the other one, too */
	_exit(0);
}

static int peer_wait(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Runs the step against `play`; *ret_out is what the tasks said. */
static void step_run(struct srun *s, void (*play)(uint16_t), bool label, char *ret_out, size_t size)
{
	FILE *f = tmpfile();
	step_make(s, fileno(f));
	s->o.label = label;
	pid_t pid = fork();
	if (pid == 0)
		play(s->listen_port);
	run_until_end(s);
	assert_int_equal(peer_wait(pid), 0);
	rewind(f);
	size_t n = fread(ret_out, 1, size - 1, f);
	ret_out[n] = 0;
	fclose(f);
}

static void test_output_and_ends(void **state)
{
	(void)state;
	static struct srun s;
	char out[256];
	step_run(&s, peer_play_good, true, out, sizeof(out));
	assert_non_null(strstr(out, "0: one\n"));
	assert_non_null(strstr(out, "0: two\n"));
	assert_non_null(strstr(out, "1: other\n"));
	assert_non_null(strstr(out, "0: rest\n"));
	assert_non_null(strstr(out, "2: last\n"));
	assert_int_equal(strlen(out), strlen("0: one\n0: two\n1: other\n0: rest\n2: last\n"));
	assert_int_equal(s.exit_code, 137);
	assert_int_equal(s.tasks_left, 0);
}

static void test_strangers_and_lost_nodes(void **state)
{
	(void)state;
	static struct srun s;
	char out[256];
	log_init("srun", LOG_L_QUIET);
	step_run(&s, peer_play_bad, false, out, sizeof(out));
	assert_string_equal(out, "");
	assert_true(s.exit_code != 0);
	assert_int_equal(s.nodes_left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_output_and_ends), cmocka_unit_test(test_strangers_and_lost_nodes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
