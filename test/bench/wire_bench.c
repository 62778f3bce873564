/* wire_bench.c - what the wire itself costs, without a controller behind it
 *
 *   wire_bench [SECONDS]
 * A server thread answers PING and SUBMIT at once. Printed, one figure a line (name value unit): round trips on one open connection and the CPU both
 * sides take for one, whole commands (connect, token, call) with the key and through the token socket, submissions pipelined 256 deep, and a 20 MB answer. */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <sodium.h>

#include "base/alloc.h"
#include "proto/controller.pb-c.h"
#include "wire/wire.h"

#define WINDOW 256

static uv_loop_t loop;
static uv_async_t stop;
static struct wire_server *server;
static struct sack *sack;
static struct wire_auth *with_key, *with_sack;
static uint16_t port;
static double seconds = 1;
static const Pb__Empty empty = PB__EMPTY__INIT;

static void handler(struct wire_req *r, void *arg)
{
	if (wire_req_rpc(r) == RPC_PING) {
		Pb__PingRsp rsp = PB__PING_RSP__INIT;
		rsp.host = "bench";
		wire_reply(r, &rsp.base);
	} else if (wire_req_rpc(r) == RPC_SUBMIT) {
		Pb__SubmitRsp rsp = PB__SUBMIT_RSP__INIT;
		rsp.has_job_id = true;
		rsp.job_id = 4711;
		wire_reply(r, &rsp.base);
	} else {
		static uint8_t record[400];
		static struct wire_piece piece[50000];
		for (size_t i = 0; i < sizeof piece / sizeof *piece; i++)
			piece[i] = (struct wire_piece){ record, sizeof record };
		wire_reply_pieces(r, piece, sizeof piece / sizeof *piece, NULL, NULL);
	}
}

static void on_stop(uv_async_t *a)
{
	wire_server_stop(server);
	sack_stop(sack);
	uv_close((uv_handle_t *)a, NULL);
}

static void *serve(void *arg)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	return NULL;
}

static double clock_s(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void check(int rc, const struct error *err)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "wire_bench: %s\n", err->line);
	exit(1);
}

static void ping(struct wire_client *c)
{
	struct error err;
	ProtobufCMessage *rsp;
	check(wire_call(c, RPC_PING, &empty.base, 5000, &rsp, &err), &err);
	protobuf_c_message_free_unpacked(rsp, NULL);
}

static struct wire_client *connect_to(struct wire_auth *a)
{
	struct error err;
	struct wire_client *c = NULL;
	check(wire_client_open(a, "127.0.0.1", port, 5000, NULL, &c, &err), &err);
	return c;
}

static void bench_ping(void)
{
	struct wire_client *c = connect_to(with_key);
	long n = 0;
	ping(c);
	double wall = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	for (; clock_s(CLOCK_MONOTONIC) - wall < seconds; n++)
		ping(c);
	wall = clock_s(CLOCK_MONOTONIC) - wall, cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("wire_ping_rate %.0f 1/s\nwire_ping_cpu_both_sides %.1f us\n", n / wall, cpu / n * 1e6);
	wire_client_close(c);
}

static void bench_fresh(struct wire_auth *a, const char *name)
{
	long n = 0;
	double wall = clock_s(CLOCK_MONOTONIC);
	for (; clock_s(CLOCK_MONOTONIC) - wall < seconds; n++) {
		struct wire_client *c = connect_to(a);
		ping(c);
		wire_client_close(c);
	}
	printf("wire_fresh_call_%s %.0f us\n", name, (clock_s(CLOCK_MONOTONIC) - wall) / n * 1e6);
}

static void bench_pipeline(void)
{
	struct wire_client *c = connect_to(with_key);
	struct error err;
	Pb__SubmitReq req = PB__SUBMIT_REQ__INIT;
	Pb__JobDesc desc = PB__JOB_DESC__INIT;
	uint8_t key[16] = "bench", script[300] = "#!/bin/sh\n";
	char *env[40];
	long sent = 0, got = 0;
	for (int i = 0; i < 40; i++)
		env[i] = "SOME_VARIABLE_OF_THE_ENVIRONMENT=/with/a/value/of/usual/length";
	desc.name = "bench";
	req.desc = &desc;
	req.idem_key = (ProtobufCBinaryData){ sizeof key, key };
	req.script = (ProtobufCBinaryData){ sizeof script, script };
	req.has_script = true;
	req.env = env;
	req.n_env = 40;
	double wall = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID), own = clock_s(CLOCK_THREAD_CPUTIME_ID);
	while (clock_s(CLOCK_MONOTONIC) - wall < seconds || got < sent) {
		bool more = clock_s(CLOCK_MONOTONIC) - wall < seconds;
		for (; more && sent - got < WINDOW; sent++)
			check(wire_send(c, RPC_SUBMIT, &req.base, NULL, &err), &err);
		ProtobufCMessage *rsp;
		uint32_t seq;
		int code;
		if (got < sent) {
			check(wire_recv(c, 5000, &seq, &code, &rsp, &err), &err);
			assert(!code);
			protobuf_c_message_free_unpacked(rsp, NULL);
			got++;
		}
	}
	wall = clock_s(CLOCK_MONOTONIC) - wall, cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu, own = clock_s(CLOCK_THREAD_CPUTIME_ID) - own;
	printf("wire_pipelined_submissions %.0f 1/s\nwire_pipelined_cpu_server %.1f us\nwire_pipelined_cpu_client %.1f us\n", got / wall,
	       (cpu - own) / got * 1e6, own / got * 1e6);
	wire_client_close(c);
}

static void bench_big(void)
{
	struct wire_client *c = connect_to(with_key);
	struct error err;
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	long n = 0;
	double wall = clock_s(CLOCK_MONOTONIC);
	for (; clock_s(CLOCK_MONOTONIC) - wall < seconds; n++) {
		uint8_t *data;
		size_t len;
		check(wire_call_raw(c, RPC_JOB_LIST, &req.base, 30000, &data, &len, &err), &err);
		assert(len == 20000000);
		free(data);
	}
	printf("wire_answer_20mb %.1f ms\n", (clock_s(CLOCK_MONOTONIC) - wall) / n * 1e3);
	wire_client_close(c);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/wire_bench.XXXXXX", key_path[64], sack_path[64];
	uint8_t key[64];
	struct error err = { 0 };
	pthread_t thread;
	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	if (!mkdtemp(dir))
		return perror(dir), 1;
	snprintf(key_path, sizeof key_path, "%s/key", dir);
	snprintf(sack_path, sizeof sack_path, "%s/sack", dir);
	int fd = open(key_path, O_CREAT | O_WRONLY, 0600);
	randombytes_buf(key, sizeof key);
	if (fd < 0 || write(fd, key, sizeof key) != sizeof key)
		return perror(key_path), 1;
	close(fd);
	check(wire_auth_create(&(struct wire_auth_params){ .cluster = "b", .key_path = key_path }, &with_key, &err), &err);
	check(wire_auth_create(&(struct wire_auth_params){ .cluster = "b", .sack_path = sack_path }, &with_sack, &err), &err);
	unlink(key_path);
	usleep(2000);
	uv_loop_init(&loop);
	uv_async_init(&loop, &stop, on_stop);
	check(wire_server_start(&loop, with_key, "127.0.0.1", 0, handler, NULL, NULL, &server, &err), &err);
	check(sack_start(&loop, with_key, sack_path, &sack, &err), &err);
	port = wire_server_port(server);
	if (pthread_create(&thread, NULL, serve, NULL))
		return 1;
	bench_ping();
	bench_fresh(with_key, "key");
	bench_fresh(with_sack, "socket");
	bench_pipeline();
	bench_big();
	uv_async_send(&stop);
	pthread_join(thread, NULL);
	rmdir(dir);
	return 0;
}
