/* stepd_test.c - proves with the real slurmstepd: a batch script runs, writes its file and its completion; a step's output, exit codes and stdin go through the
 * connection to srun; a program that is missing is exit 2; leftovers are killed; termination escalates. The path of slurmstepd is the first argument. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
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
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/stepid.h"
#include "proto/agent.pb-c.h"
#include "wire/stepio.h"

static const char *stepd_path;
static char dir[] = "/tmp/stepd_test.XXXXXX";

/* All the messages of one start, in one place. */
struct plan {
	Pb__StepdStart start;
	Pb__StepCred cred;
	Pb__StepLayout layout;
	Pb__StepNode node, *nodes[1];
	Pb__Alloc alloc;
	Pb__JobRecord job;
	Pb__JobDesc desc;
	Pb__LaunchSpec spec;
	Pb__SignedCred sealed;
	Pb__BatchLaunch batch;
	Pb__NodeAlloc part, *parts[1];
	uint32_t ranks[20000], gids[1];
	uint8_t key[32];
};

static void plan_init(struct plan *p, uint32_t tasks)
{
	memset(p, 0, sizeof *p);
	pb__stepd_start__init(&p->start), pb__step_cred__init(&p->cred), pb__step_layout__init(&p->layout), pb__step_node__init(&p->node);
	pb__alloc__init(&p->alloc), pb__job_record__init(&p->job), pb__job_desc__init(&p->desc), pb__launch_spec__init(&p->spec);
	pb__signed_cred__init(&p->sealed), pb__batch_launch__init(&p->batch), pb__node_alloc__init(&p->part);
	p->start.cred = &p->cred, p->start.node = "node-1", p->start.spool_dir = dir, p->start.run_dir = dir, p->start.cluster = "test";
	p->cred.job_id = 5, p->cred.uid = getuid(), p->cred.gid = getgid(), p->cred.user = "tester", p->cred.job = &p->job;
	p->cred.n_gids = 1, p->cred.gids = p->gids, p->gids[0] = getgid();
	p->cred.layout = &p->layout, p->cred.job_alloc = &p->alloc, p->alloc.nodes = "node-1";
	p->parts[0] = &p->part, p->alloc.part = p->parts, p->alloc.n_part = 1, p->part.nodes = "node-1", p->part.cpus = 1;
	p->alloc.batch_host = "node-1", p->alloc.has_num_nodes = true, p->alloc.num_nodes = 1;
	p->layout.nodes = "node-1", p->layout.num_tasks = tasks, p->layout.node = p->nodes, p->layout.n_node = 1, p->nodes[0] = &p->node;
	p->node.name = "node-1", p->node.addr = "127.0.0.1", p->node.cpus = 1, p->node.task_ids = p->ranks, p->node.n_task_ids = tasks;
	for (uint32_t i = 0; i < tasks; i++)
		p->ranks[i] = i;
	p->job.job_id = 5, p->job.state = PB__JOB_STATE__RUNNING, p->job.desc = &p->desc, p->job.alloc = &p->alloc;
	p->job.uid = getuid(), p->job.gid = getgid();
	p->desc.name = "test", p->desc.work_dir = dir;
	p->spec.cred = &p->sealed, p->spec.cwd = dir;
	p->batch.cred = &p->cred;
}

static void plan_batch(struct plan *p, const char *script)
{
	plan_init(p, 1);
	p->cred.step_id = STEP_ID_BATCH;
	p->start.batch = &p->batch;
	p->batch.script.data = (uint8_t *)script, p->batch.script.len = strlen(script);
	p->desc.std_out = "out.%j";
}

/* Start slurmstepd; returns our end of its channel. */
static int stepd_start(struct plan *p)
{
	int pair[2];
	char will[128];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	snprintf(will, sizeof will, "%s/done.%u.%u.part", dir, p->cred.job_id, p->cred.step_id);
	pid_t pid = fork();
	if (!pid) {
		int channel = fcntl(pair[1], F_DUPFD, 10), done = fcntl(open(will, O_RDWR | O_CREAT | O_TRUNC, 0600), F_DUPFD, 10);
		dup2(channel, 3);
		dup2(done, 4);
		close(channel);
		close(done);
		execl(stepd_path, "slurmstepd: [test]", (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	size_t len = pb__stepd_start__get_packed_size(&p->start);
	uint8_t *msg = xmalloc(len + 4);
	msg[0] = (uint8_t)(len >> 24), msg[1] = (uint8_t)(len >> 16), msg[2] = (uint8_t)(len >> 8), msg[3] = (uint8_t)len;
	pb__stepd_start__pack(&p->start, msg + 4);
	assert_int_equal(write(pair[0], msg, len + 4), (ssize_t)len + 4);
	free(msg);
	return pair[0];
}

/* Wait until it is gone; its completion. */
static Pb__StepdEvent *stepd_end(int channel, uint32_t step_id)
{
	char path[128];
	uint8_t buf[65536];
	struct pollfd p = { .fd = channel, .events = POLLIN };
	do {
		assert_int_equal(poll(&p, 1, 20000), 1);
	} while (read(channel, buf, sizeof buf) > 0);
	close(channel);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	snprintf(path, sizeof path, "%s/done.5.%u", dir, step_id);
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t len = read(fd, buf, sizeof buf);
	close(fd);
	unlink(path);
	return pb__stepd_event__unpack(NULL, (size_t)len, buf);
}

static char *file_text(const char *name)
{
	char path[256];
	static char buf[65536];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t len = read(fd, buf, sizeof buf - 1);
	buf[len] = 0;
	close(fd);
	return buf;
}

static void test_batch_runs(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	(void)state;
	plan_batch(p, "#!/bin/sh\necho hello; echo oops >&2; pwd; exit 3\n");
	Pb__StepdEvent *e = stepd_end(stepd_start(p), STEP_ID_BATCH);
	assert_int_equal(e->kind, PB__STEPD_EVENT__KIND__DONE);
	assert_int_equal(WEXITSTATUS(e->status), 3);
	char want[128];
	snprintf(want, sizeof want, "hello\noops\n%s\n", dir);
	assert_string_equal(file_text("out.5"), want);
	assert_int_equal(e->usage->tasks, 1);
	char path[128];
	snprintf(path, sizeof path, "%s/job00005", dir);
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(path, sizeof path, "%s/step.5.%u", dir, STEP_ID_BATCH);
	assert_int_not_equal(access(path, F_OK), 0);
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

static void test_batch_file_fails(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	(void)state;
	plan_batch(p, "#!/bin/sh\n");
	p->desc.std_out = "/proc/none/x";
	Pb__StepdEvent *e = stepd_end(stepd_start(p), STEP_ID_BATCH);
	assert_int_equal(e->kind, PB__STEPD_EVENT__KIND__FAILED);
	assert_non_null(strstr(e->text, "Could not open stdout file /proc/none/x"));
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

static void test_leftovers_are_killed(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	(void)state;
	plan_batch(p, "#!/bin/sh\nsetsid sh -c 'trap \"\" TERM HUP; echo $$ > pid; sleep 100' >/dev/null 2>&1 &\nwhile [ ! -s pid ]; do sleep 0.01; done\n");
	Pb__StepdEvent *e = stepd_end(stepd_start(p), STEP_ID_BATCH);
	assert_int_equal(e->status, 0);
	assert_int_not_equal(kill(atoi(file_text("pid")), 0), 0);
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

static void order_send(int channel, const Pb__StepdOrder *o)
{
	uint8_t msg[512];
	size_t len = pb__stepd_order__pack(o, msg + 4);
	msg[0] = msg[1] = 0, msg[2] = (uint8_t)(len >> 8), msg[3] = (uint8_t)len;
	assert_int_equal(write(channel, msg, len + 4), (ssize_t)len + 4);
}

static void wait_for_file(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	for (int i = 0; i < 1000 && access(path, F_OK) < 0; i++)
		poll(NULL, 0, 10);
}

static void test_terminate_escalates(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	(void)state;
	plan_batch(p, "#!/bin/bash\ntrap 'echo got TERM' TERM\n: > ready\nwhile :; do sleep 0.05; done\n");
	int channel = stepd_start(p);
	wait_for_file("ready");
	Pb__StepdOrder o = PB__STEPD_ORDER__INIT;
	o.kind = PB__STEPD_ORDER__KIND__TERMINATE;
	o.text = "*** JOB 5 ON node-1 CANCELLED AT now ***";
	o.has_kill_wait_sec = true;
	o.kill_wait_sec = 1;
	order_send(channel, &o);
	Pb__StepdEvent *e = stepd_end(channel, STEP_ID_BATCH);
	assert_true(WIFSIGNALED(e->status) && WTERMSIG(e->status) == SIGKILL);
	assert_non_null(strstr(file_text("out.5"), "got TERM"));
	assert_non_null(strstr(file_text("out.5"), "slurmstepd: error: *** JOB 5 ON node-1 CANCELLED AT now ***\n"));
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

/* --- a small srun --------------------------------------------------------------------------- */
struct fake_srun { int listen, fd; struct str out, err; uint32_t exits, status, started; bool end; char failed[512], text[512]; };

static void srun_listen(struct fake_srun *f, struct plan *p)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof a;
	*f = (struct fake_srun){ .out = STR_INIT, .err = STR_INIT };
	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	f->listen = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listen, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(f->listen, 1), 0);
	getsockname(f->listen, (struct sockaddr *)&a, &len);
	p->start.spec = &p->spec;
	p->spec.io_host = "127.0.0.1", p->spec.has_io_port = true, p->spec.io_port = ntohs(a.sin_port);
	memset(p->key, 7, sizeof p->key);
	p->spec.has_io_key = true, p->spec.io_key.data = p->key, p->spec.io_key.len = 32;
}

static void read_full(int fd, void *buf, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = read(fd, (char *)buf + at, len - at);
		assert_true(n > 0);
		at += (size_t)n;
	}
}

static void frame_send(int fd, uint8_t type, uint32_t task, const void *data, size_t len)
{
	uint8_t h[9] = { type, (uint8_t)(task >> 24), (uint8_t)(task >> 16), (uint8_t)(task >> 8), (uint8_t)task, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len };
	assert_int_equal(write(fd, h, 9), 9);
	if (len)
		assert_int_equal(write(fd, data, len), (ssize_t)len);
}

static void srun_accept(struct fake_srun *f, struct plan *p)
{
	uint8_t h[9], mac[32];
	static uint8_t body[STEPIO_MAX];
	f->fd = accept(f->listen, NULL, NULL);
	close(f->listen);
	read_full(f->fd, h, 9);
	assert_int_equal(h[0], STEPIO_HELLO);
	size_t len = (size_t)h[7] << 8 | h[8];
	read_full(f->fd, body, len);
	Pb__IoHello *hello = pb__io_hello__unpack(NULL, len, body);
	crypto_auth(mac, (const uint8_t *)"5.0 node-1", 10, p->key);
	assert_memory_equal(mac, hello->proof.data, 32);
	pb__io_hello__free_unpacked(hello, NULL);
	crypto_auth(mac, (const uint8_t *)"srun 5.0 node-1", 15, p->key);
	frame_send(f->fd, STEPIO_PROOF, STEPIO_ALL, mac, 32);
}

static void srun_take(struct fake_srun *f)
{
	uint8_t h[9];
	static uint8_t body[STEPIO_MAX];
	read_full(f->fd, h, 9);
	size_t len = (size_t)h[5] << 24 | (size_t)h[6] << 16 | (size_t)h[7] << 8 | h[8];
	assert_true(len <= STEPIO_MAX);
	read_full(f->fd, body, len);
	switch (h[0]) {
	case STEPIO_STDOUT:
	case STEPIO_STDERR:
		if (len) /* empty: the end of that stream */
			str_add_n(h[0] == STEPIO_STDOUT ? &f->out : &f->err, body, len);
		break;
	case STEPIO_STARTED: f->started++; break;
	case STEPIO_EXIT: {
		Pb__IoExit *e = pb__io_exit__unpack(NULL, len, body);
		f->exits++;
		f->status = e->status;
		pb__io_exit__free_unpacked(e, NULL);
		break;
	}
	case STEPIO_FAILED: {
		Pb__IoText *t = pb__io_text__unpack(NULL, len, body);
		snprintf(f->failed, sizeof f->failed, "%s", t->text);
		pb__io_text__free_unpacked(t, NULL);
		break;
	}
	case STEPIO_TEXT: {
		Pb__IoText *t = pb__io_text__unpack(NULL, len, body);
		snprintf(f->text, sizeof f->text, "%s", t->text);
		pb__io_text__free_unpacked(t, NULL);
		break;
	}
	case STEPIO_END: f->end = true; break;
	default: fail_msg("frame of type %u", h[0]);
	}
}

static Pb__StepdEvent *srun_run(struct fake_srun *f, struct plan *p, char **argv, const char *input, size_t input_len)
{
	char *env[] = { "PATH=/usr/bin:/bin", NULL };
	p->spec.argv = argv;
	for (p->spec.n_argv = 0; argv[p->spec.n_argv];)
		p->spec.n_argv++;
	p->spec.env = env, p->spec.n_env = 1;
	int channel = stepd_start(p);
	srun_accept(f, p);
	if (input) {
		for (size_t at = 0; at < input_len; at += 65536)
			frame_send(f->fd, STEPIO_STDIN, STEPIO_ALL, input + at, input_len - at < 65536 ? input_len - at : 65536);
		frame_send(f->fd, STEPIO_STDIN, STEPIO_ALL, NULL, 0);
	}
	while (!f->end)
		srun_take(f);
	Pb__StepdEvent *e = stepd_end(channel, 0);
	close(f->fd);
	return e;
}

static void step_check(char **argv, const char *input, uint32_t tasks, const char *out, const char *err, int status)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	plan_init(p, tasks);
	srun_listen(&f, p);
	Pb__StepdEvent *e = srun_run(&f, p, argv, input, input ? strlen(input) : 0);
	assert_int_equal(f.exits, tasks);
	assert_int_equal(f.status, status);
	assert_int_equal(e->status, status);
	if (out)
		assert_string_equal(f.out.data, out);
	if (err)
		assert_string_equal(f.err.data, err);
	str_fini(&f.out);
	str_fini(&f.err);
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

static void test_step_output(void **state)
{
	(void)state;
	step_check((char *[]){ "sh", "-c", "echo $SLURM_PROCID $SLURM_NTASKS $RANK $WORLD_SIZE; echo e >&2; exit 4", NULL }, NULL, 1, "0 1 0 1\n", "e\n", 4 << 8);
}

static void test_step_stdin(void **state)
{
	(void)state;
	step_check((char *[]){ "cat", NULL }, "one\ntwo\n", 1, "one\ntwo\n", "", 0);
}

static void test_step_missing_program(void **state)
{
	(void)state;
	step_check((char *[]){ "/no/such/program", NULL }, NULL, 1, "", "slurmstepd: error: execve(): /no/such/program: No such file or directory\n", 2 << 8);
}

static void test_step_large(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	size_t len = 20 << 20, lines = 0;
	(void)state;
	plan_init(p, 1);
	srun_listen(&f, p);
	Pb__StepdEvent *e = srun_run(&f, p, (char *[]){ "sh", "-c", "yes 0123456789 | head -c 20971520", NULL }, NULL, 0);
	assert_int_equal(f.out.len, len);
	for (size_t i = 0; i < len; i++)
		lines += f.out.data[i] == '\n';
	assert_int_equal(lines, len / 11);
	pb__stepd_event__free_unpacked(e, NULL);
	str_fini(&f.out);
	free(p);
}

static void test_many_tasks(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	uint32_t tasks = 400;
	(void)state;
	plan_init(p, tasks);
	srun_listen(&f, p);
	Pb__StepdEvent *e = srun_run(&f, p, (char *[]){ "sh", "-c", "echo line of $SLURM_PROCID", NULL }, NULL, 0);
	size_t lines = 0;
	for (size_t i = 0; i < f.out.len; i++)
		lines += f.out.data[i] == '\n';
	assert_int_equal(lines, tasks);
	assert_int_equal(f.exits, tasks);
	assert_int_equal(e->usage->tasks, tasks);
	pb__stepd_event__free_unpacked(e, NULL);
	str_fini(&f.out);
	free(p);
}

static void test_pty(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	(void)state;
	plan_init(p, 1);
	srun_listen(&f, p);
	p->spec.has_pty = p->spec.pty = p->spec.has_pty_rows = p->spec.has_pty_cols = true;
	p->spec.pty_rows = 33, p->spec.pty_cols = 77;
	Pb__StepdEvent *e = srun_run(&f, p, (char *[]){ "sh", "-c", "stty size; tty | cut -c1-9", NULL }, NULL, 0);
	assert_string_equal(f.out.data, "33 77\r\n/dev/pts/\r\n");
	pb__stepd_event__free_unpacked(e, NULL);
	str_fini(&f.out);
	free(p);
}

static void test_pty_is_heard_alone(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	(void)state;
	plan_init(p, 2);
	srun_listen(&f, p);
	p->spec.has_pty = p->spec.pty = true;
	Pb__StepdEvent *e = srun_run(&f, p, (char *[]){ "sh", "-c", "readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 | grep -c /dev/null; echo from $SLURM_PROCID; echo aloud >&2", NULL }, NULL, 0);
	assert_string_equal(f.out.data, "0\r\nfrom 0\r\naloud\r\n");
	pb__stepd_event__free_unpacked(e, NULL);
	str_fini(&f.out);
	free(p);
}

static void test_output_file_fails(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	(void)state;
	plan_init(p, 2);
	srun_listen(&f, p);
	p->spec.std_out = "/proc/none/%t";
	Pb__StepdEvent *e = srun_run(&f, p, (char *[]){ "true", NULL }, NULL, 0);
	assert_int_equal(e->kind, PB__STEPD_EVENT__KIND__FAILED);
	assert_string_equal(f.failed, "Could not open stdout file /proc/none/0: No such file or directory");
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

static void test_files_per_task(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	(void)state;
	plan_init(p, 3);
	srun_listen(&f, p);
	p->spec.std_out = "task.%t";
	p->spec.std_err = "all.%j.%s";
	Pb__StepdEvent *e = srun_run(&f, p, (char *[]){ "sh", "-c", "echo $SLURM_PROCID; echo x >&2", NULL }, NULL, 0);
	assert_int_equal(e->status, 0);
	assert_string_equal(file_text("task.2"), "2\n");
	assert_string_equal(file_text("all.5.0"), "x\nx\nx\n");
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

static void test_label_in_file(void **state)
{
	struct plan *p = xmalloc(sizeof *p);
	struct fake_srun f;
	(void)state;
	plan_init(p, 11);
	srun_listen(&f, p);
	p->spec.has_label = p->spec.label = true;
	p->spec.std_out = "lab.%t";
	Pb__StepdEvent *e = srun_run(&f, p, (char *[]){ "sh", "-c", "echo a; printf b", NULL }, NULL, 0);
	assert_int_equal(e->status, 0);
	assert_string_equal(file_text("lab.3"), " 3: a\n 3: b");
	pb__stepd_event__free_unpacked(e, NULL);
	free(p);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char cmd[128];
	(void)state;
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch_runs), cmocka_unit_test(test_batch_file_fails), cmocka_unit_test(test_leftovers_are_killed),
		cmocka_unit_test(test_terminate_escalates), cmocka_unit_test(test_step_output), cmocka_unit_test(test_step_stdin),
		cmocka_unit_test(test_step_missing_program), cmocka_unit_test(test_step_large), cmocka_unit_test(test_many_tasks),
		cmocka_unit_test(test_pty), cmocka_unit_test(test_pty_is_heard_alone), cmocka_unit_test(test_output_file_fails), cmocka_unit_test(test_files_per_task), cmocka_unit_test(test_label_in_file),
	};
	if (argc < 2)
		return fprintf(stderr, "usage: stepd_test PATH-OF-SLURMSTEPD\n"), 2;
	stepd_path = argv[1];
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
