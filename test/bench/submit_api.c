/* submit_api.c - how many durable submissions a second one connection carries
 *
 * submit_api COUNT [IN_FLIGHT [NAME [KIND]]]: submits COUNT one-line jobs through the client library, IN_FLIGHT at a time, and prints the rate of those the
 * controller acknowledged and how long an answer took. KIND: held (default), or mixed (not held; 64 shapes of one to 64 whole nodes, 8 time limits). Uses $SLURM_CONF
 * as every command does. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sodium.h>

#include "client/client.h"
#include "conf/conf.h"
#include "proto/controller.pb-c.h"
#include "wire/wire.h"

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int send_one(struct wire_client *c, const char *name, bool mixed, long i, struct error *err)
{
	static char *env[] = { (char *)"PATH=/usr/bin:/bin", (char *)"HOME=/tmp", (char *)"SLURM_EXPORT_ENV=ALL" };
	static const char script[] = "#!/bin/sh\ntrue\n";
	uint8_t key[16];
	uint32_t seq;
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	Pb__SubmitReq r = PB__SUBMIT_REQ__INIT;
	randombytes_buf(key, sizeof key);
	d.name = (char *)name;
	d.work_dir = d.std_out = (char *)"/tmp";
	d.std_out = (char *)"/dev/null";
	d.has_min_nodes = d.has_batch = d.has_hold = true;
	d.min_nodes = 1;
	d.batch = d.hold = true;
	if (mixed) {
		d.hold = false;
		d.min_nodes = 1 + (uint32_t)(i % 64);
		d.has_time_limit_min = true;
		d.time_limit_min = 60 + (uint32_t)(i % 8) * 60;
		d.exclusive = (char *)"node";
	}
	r.desc = &d;
	r.has_script = true;
	r.script = (ProtobufCBinaryData){ sizeof script - 1, (uint8_t *)script };
	r.env = env;
	r.n_env = 3;
	r.idem_key = (ProtobufCBinaryData){ sizeof key, key };
	return wire_send(c, RPC_SUBMIT, &r.base, &seq, err);
}

/* 1 accepted, 0 refused, negative: the connection broke. */
static int take_one(struct wire_client *c, unsigned *said, struct error *err)
{
	ProtobufCMessage *m = NULL;
	uint32_t seq;
	int code = 0, rc = wire_recv(c, 30000, &seq, &code, &m, err);
	if (rc)
		return rc;
	Pb__SubmitRsp *r = (Pb__SubmitRsp *)m;
	if (!code && r)
		code = (int)r->code;
	if (code && !(*said)++)
		fprintf(stderr, "submit_api: %s\n", r && r->detail ? r->detail : error_text(code));
	if (m)
		protobuf_c_message_free_unpacked(m, NULL);
	return !code;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Answers come in the order of the calls, so that the n-th answer belongs to the n-th call. */
static void latency_print(double *ms, long n, long window)
{
	if (n < 1)
		return;
	qsort(ms, (size_t)n, sizeof *ms, by_size);
	printf("submit_api.w%ld.p50 %.3f ms\n", window, ms[n / 2]);
	printf("submit_api.w%ld.p99 %.3f ms\n", window, ms[n * 99 / 100]);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 10000, window = argc > 2 ? atol(argv[2]) : 256, sent = 0, taken = 0, good = 0;
	const char *name = argc > 3 ? argv[3] : "submit_api", *host, *addr;
	struct error err = { 0 };
	struct client *client;
	struct wire_client *c;
	bool mixed = argc > 4 && !strcmp(argv[4], "mixed");
	double *at = calloc((size_t)count + 1, sizeof *at);
	unsigned said = 0;
	uint16_t port;
	int rc = client_open(&client, &err);
	if (!rc && !conf_controller(client_conf(client), 0, &host, &addr, &port))
		rc = error_set(&err, EINVAL, "SlurmctldHost is not set");
	if (!rc)
		rc = wire_client_open(client_auth(client), addr, port, 10000, NULL, &c, &err);
	double start = now();
	while (!rc && taken < count) {
		while (!rc && sent < count && sent - taken < window) {
			at[sent] = now();
			rc = send_one(c, name, mixed, sent, &err);
			sent++;
		}
		int n = rc ? rc : take_one(c, &said, &err);
		if (n < 0)
			rc = n;
		else
			good += n;
		at[taken] = (now() - at[taken]) * 1e3;
		taken++;
	}
	double took = now() - start;
	if (rc) {
		fprintf(stderr, "submit_api: %s\n", err.line);
		return 1;
	}
	printf("submit_api.w%ld %.0f /s\n", window, (double)good / took);
	latency_print(at, taken, window);
	free(at);
	wire_client_close(c);
	client_close(client);
	return good == count ? 0 : 1;
}
