/* scontrol_op.c - keywords that act on jobs or on the controller: hold, release, requeue, suspend, notify, ping, reconfigure, write ...
 * A refusal prints the standard sentence scripts look for, then what the controller knows beyond it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/json.h"
#include "cli/scontrol.h"
#include "cli/scontrol_print.h"
#include "model/hostlist.h"
#include "proto/controller.pb-c.h"

#define OP(name) PB__JOB_OP_REQ__OP__##name
static const struct job_op { const char *keyword; Pb__JobOpReq__Op op; const char *after; } job_ops[] = {
	{ "hold", OP(HOLD), "slurm_suspend error:" }, { "uhold", OP(UHOLD), "slurm_suspend error:" }, { "holdu", OP(UHOLD), "slurm_suspend error:" },
	{ "release", OP(RELEASE), "slurm_suspend error:" }, { "requeue", OP(REQUEUE), NULL }, { "requeuehold", OP(REQUEUE_HOLD), NULL },
	{ "suspend", OP(SUSPEND), NULL }, { "resume", OP(RESUME), NULL }, { "top", OP(TOP), NULL },
};

static const struct job_op *job_op_find(const char *keyword)
{
	size_t n = strlen(keyword);
	for (size_t i = 0; i < sizeof(job_ops) / sizeof(job_ops[0]); i++)
		if (!strncasecmp(job_ops[i].keyword, keyword, n))
			return &job_ops[i];
	return NULL;
}

/* The refusals of one request. `id` is what the user typed. */
void scontrol_results(struct scontrol *s, const char *id, const Pb__ResultList *list, const char *after)
{
	for (size_t i = 0; i < list->n_result; i++) {
		const Pb__Result *r = list->result[i];
		char number[24];
		if (!r->code)
			continue;
		snprintf(number, sizeof(number), "%u", r->job_id);
		if (r->code != ESLURM_TIME_LIMIT_CHANGE) /* its detail says it all */
			scontrol_fail(s, "%s for job %s", error_text((int)r->code), id ? id : number);
		if (after)
			scontrol_fail(s, "%s%s", after, error_text((int)r->code));
		if (r->detail && *r->detail && strcmp(r->detail, error_text((int)r->code)))
			scontrol_fail(s, "scontrol: error: %s", r->detail);
	}
}

static void op_call(struct scontrol *s, const struct job_op *op, Pb__JobOpReq *req)
{
	struct error err = { 0 };
	ProtobufCMessage *msg;
	int rc = client_call(scontrol_client(s), RPC_JOB_OP, &req->base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "%s for job %s", error_text(rc), req->id);
		if (op->after)
			scontrol_fail(s, "%s%s", op->after, error_text(rc));
		return;
	}
	scontrol_results(s, req->id, (const Pb__ResultList *)msg, op->after);
	protobuf_c_message_free_unpacked(msg, NULL);
}

/* "hold jobname=x": every job of that name the caller may see. */
static void op_by_name(struct scontrol *s, const struct job_op *op, Pb__JobOpReq *req, const char *name)
{
	static struct jobview v;
	Pb__JobListReq list = PB__JOB_LIST_REQ__INIT;
	struct error err = { 0 };
	uint8_t *reply;
	const uint8_t *item;
	size_t len, item_len, found = 0;
	if (geteuid() != 0) {
		list.has_uid = true;
		list.uid = geteuid();
	}
	if (show_call(scontrol_client(s), RPC_JOB_LIST, &list.base, PB_JobListRsp_now, &reply, &len, &err) < 0) {
		scontrol_fail(s, "slurm_load_jobs error: %s", error_text(err.code));
		return;
	}
	struct show_walk walk;
	show_walk_start(&walk, reply, len, PB_JobListRsp_job);
	while (show_walk_next(&walk, &item, &item_len)) {
		if (!jobview_read(&v, item, item_len) || !slice_is(msgview_text(jobview_desc(&v), PB_JobDesc_name), name))
			continue;
		char id[24];
		snprintf(id, sizeof(id), "%u", (unsigned)jobview_num(&v, PB_JobRecord_job_id, 0));
		req->id = id;
		op_call(s, op, req);
		found++;
	}
	free(reply);
	if (!found)
		fprintf(stderr, "No job named \"%s\" is in the queue\n", name);       /* no failure, as for the reference */
}

void scontrol_job_op(struct scontrol *s, int argc, char **argv)
{
	const struct job_op *op = job_op_find(argv[0]);
	Pb__JobOpReq req = PB__JOB_OP_REQ__INIT;
	if (argc < 2) {
		scontrol_fail(s, "too few arguments for keyword:%s", argv[0]);
		return;
	}
	req.op = op->op;
	for (int i = 1; i < argc; i++) {
		char *copy = xstrdup(argv[i]), *cursor = copy;
		char *equals = strchr(copy, '=');
		if (!strcasecmp(copy, "incomplete")) {
			req.has_incomplete = req.incomplete = true;
		} else if (!strncasecmp(copy, "state=", 6)) {
			req.has_special_exit = req.special_exit = !strcasecmp(copy + 6, "SpecialExit") || !strcasecmp(copy + 6, "SE");
			if (!req.special_exit)
				scontrol_fail(s, "scontrol: error: Invalid state \"%s\": only SpecialExit is possible", copy + 6);
		} else if (equals && (!strncasecmp(copy, "name=", 5) || !strncasecmp(copy, "jobname=", 8))) {
			op_by_name(s, op, &req, equals + 1);
		} else {
			if (equals)
				cursor = equals + 1;
			if (!*cursor && op->op == OP(TOP))
				scontrol_fail(s, "%s for job ", error_text(-ESLURM_INVALID_JOB_ID));
			while ((req.id = str_next(&cursor, ",")))
				if (*req.id)
					op_call(s, op, &req);
		}
		free(copy);
	}
}

void scontrol_notify(struct scontrol *s, int argc, char **argv)
{
	Pb__JobOpReq req = PB__JOB_OP_REQ__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	struct str text = STR_INIT;
	if (argc < 3) {
		scontrol_fail(s, "too few arguments for keyword:%s", argv[0]);
		return;
	}
	for (int i = 2; i < argc; i++)
		str_add_sep(&text, " ", argv[i]);
	req.op = OP(NOTIFY);
	req.id = argv[1];
	req.text = text.data;
	int rc = client_call(scontrol_client(s), RPC_JOB_OP, &req.base, 0, &msg, &err);
	if (rc >= 0) {
		const Pb__ResultList *list = (const Pb__ResultList *)msg;
		for (size_t i = 0; i < list->n_result; i++)
			rc = list->result[i]->code ? -(int)list->result[i]->code : rc;
		protobuf_c_message_free_unpacked(msg, NULL);
	}
	if (rc < 0)
		scontrol_fail(s, "job notify failure: %s", error_text(rc));
	str_fini(&text);
}

static void ping_json(struct scontrol *s, bool up, uint64_t latency_us)
{
	struct str out = STR_INIT;
	struct json j;
	const char *host, *addr;
	uint16_t port;
	json_init(&j, &out, s->yaml != NULL);
	json_open(&j, NULL, '{');
	json_open(&j, "pings", '[');
	for (size_t i = 0; conf_controller(client_conf(s->client_), i, &host, &addr, &port); i++) {
		json_open(&j, NULL, '{');
		json_text(&j, "hostname", host);
		json_bool(&j, "responding", up && i == 0);
		json_u64(&j, "latency", latency_us);
		json_bool(&j, "primary", i == 0);
		json_text(&j, "status", up && i == 0 ? "No error" : error_text(ESLURM_COMM));
		json_close(&j);
	}
	json_close(&j);
	json_end(&j, s->argv, s->argc);
	out_flush(&out);
	str_fini(&out);
}

void scontrol_ping(struct scontrol *s, int argc, char **argv)
{
	static const char *const role[] = { "primary", "backup" };
	struct client *c = scontrol_client(s);
	const char *host, *addr;
	uint16_t port;
	struct timespec before, after;
	Pb__Empty req = PB__EMPTY__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &before);
	bool up = client_call(c, RPC_PING, &req.base, 0, &msg, &err) >= 0;
	clock_gettime(CLOCK_MONOTONIC, &after);
	if (s->json || s->yaml)
		ping_json(s, up, (uint64_t)((after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000));
	for (size_t i = 0; !(s->json || s->yaml) && conf_controller(client_conf(c), i, &host, &addr, &port); i++) {
		if (i < 2)
			printf("Slurmctld(%s) at %s is %s\n", role[i], host, up && i == 0 ? "UP" : "DOWN");
		else
			printf("Slurmctld(backup%zu) at %s is DOWN\n", i, host);
	}
	if (!up)
		s->exit_code = 1;
	if (msg)
		protobuf_c_message_free_unpacked(msg, NULL);
}

static void simple_call(struct scontrol *s, enum rpc rpc, const ProtobufCMessage *req, const char *what)
{
	struct error err = { 0 };
	ProtobufCMessage *msg;
	int rc = client_call(scontrol_client(s), rpc, req, 0, &msg, &err);
	char *detail = NULL;
	if (rc >= 0) {
		const Pb__Result *r = (const Pb__Result *)msg;
		rc = -(int)r->code;
		detail = xstrdup_null(r->detail);
		protobuf_c_message_free_unpacked(msg, NULL);
	}
	if (rc < 0)
		scontrol_fail(s, "%s: %s", what, error_text(rc));
	if (rc < 0 && detail && *detail)
		scontrol_fail(s, "scontrol: error: %s", detail);
	free(detail);
}

void scontrol_reconfigure(struct scontrol *s, int argc, char **argv)
{
	Pb__Empty req = PB__EMPTY__INIT;
	if (argc > 1)
		scontrol_fail(s, "too many arguments for keyword:%s", argv[0]);
	else
		simple_call(s, RPC_RECONFIGURE, &req.base, "slurm_reconfigure error");
}

void scontrol_shutdown(struct scontrol *s, int argc, char **argv)
{
	Pb__ShutdownReq req = PB__SHUTDOWN_REQ__INIT;
	if (argc > 2) {
		scontrol_fail(s, "too many arguments for keyword:%s", argv[0]);
		return;
	}
	if (argc == 2 && strcasecmp(argv[1], "slurmctld") && strcasecmp(argv[1], "controller")) {
		scontrol_fail(s, "invalid shutdown argument:%s", argv[1]);
		return;
	}
	req.has_controller_only = true;
	req.controller_only = argc == 2;
	simple_call(s, RPC_SHUTDOWN, &req.base, "slurm_shutdown error");
}

static void write_bytes(struct scontrol *s, const char *path, const void *data, size_t len, const char *done)
{
	int fd = !strcmp(path, "-") ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool good = fd >= 0;
	for (size_t at = 0; good && at < len;) {
		ssize_t n = write(fd, (const char *)data + at, len - at);
		good = n > 0 || (n < 0 && errno == EINTR);
		at += n > 0 ? (size_t)n : 0;
	}
	if (fd > STDERR_FILENO && close(fd) < 0)
		good = false;
	if (!good)
		scontrol_fail(s, "scontrol: error: Can't write %s: %s", path, strerror(errno));
	else if (fd != STDOUT_FILENO && !s->quiet)
		printf("%s\n", done);
}

static void write_script(struct scontrol *s, int argc, char **argv)
{
	Pb__ScriptReq req = PB__SCRIPT_REQ__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	unsigned long long id;
	if (argc < 3 || str_to_u64(argv[2], 1, UINT32_MAX, &id) < 0) {
		scontrol_fail(s, argc < 3 ? "too few arguments for keyword:%s" : "job script retrieval failed: invalid job id %s", argc < 3 ? argv[0] : argv[2]);
		return;
	}
	req.job_id = (uint32_t)id;
	int rc = client_call(scontrol_client(s), RPC_SCRIPT, &req.base, 0, &msg, &err);
	if (rc >= 0) {
		const Pb__ScriptRsp *rsp = (const Pb__ScriptRsp *)msg;
		char *path = argc > 3 ? xstrdup(argv[3]) : xasprintf("slurm-%llu.sh", id);
		char *done = xasprintf("batch script for job %llu written to %s", id, path);
		rc = -(int)rsp->code;
		if (!rc)
			write_bytes(s, path, rsp->script.data, rsp->script.len, done);
		free(done);
		free(path);
		protobuf_c_message_free_unpacked(msg, NULL);
	}
	if (rc < 0)
		scontrol_fail(s, "job script retrieval failed: %s", error_text(rc));
}

/* The configuration as the controller holds it, as a slurm.conf: "Key=value", or commented where it is unset or not a key. */
static void write_config(struct scontrol *s, int argc, char **argv)
{
	static const char *const no_key[] = { "BOOT_TIME", "HASH_VAL", "MULTIPLE_SLURMD", "NEXT_JOB_ID", "SLURM_CONF", "SLURM_VERSION" };
	Pb__Empty req = PB__EMPTY__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	struct str out = STR_INIT;
	int rc = client_call(scontrol_client(s), RPC_CONFIG_SHOW, &req.base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_ctl_conf error: %s", error_text(rc));
		return;
	}
	const Pb__ConfigRsp *rsp = (const Pb__ConfigRsp *)msg;
	char stamp[32];
	time_t now = (time_t)rsp->now;
	struct tm tm;
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", localtime_r(&now, &tm));
	for (size_t i = 0; i < rsp->n_value; i++) {
		const char *key = rsp->value[i]->key, *value = rsp->value[i]->value;
		bool off = !value || !*value || *value == '(';
		for (size_t k = 0; k < sizeof(no_key) / sizeof(no_key[0]); k++)
			off = off || !strcmp(key, no_key[k]);
		size_t n = strcspn(key, "[");
		const char *unit = value ? strchr(value, ' ') : NULL;   /* "30 sec" is written as 30 */
		bool has_unit = unit && (!strcmp(unit, " sec") || !strcmp(unit, " min") || !strcmp(unit, " usec") || !strcmp(unit, " percent") || !strcmp(unit, " nodes/min"));
		str_addf(&out, "%s%.*s=%.*s\n", off ? "#" : "", (int)n, key, value && !off ? (int)(has_unit ? unit - value : (long)strlen(value)) : 0, value ? value : "");
	}
	char *path = xasprintf("%s.%s", argc > 2 ? argv[2] : conf_path(client_conf(scontrol_client(s))), stamp);
	char *done = xasprintf("Slurm config saved to %s", path);
	write_bytes(s, path, out.data, out.len, done);
	free(done);
	free(path);
	str_fini(&out);
	protobuf_c_message_free_unpacked(msg, NULL);
}

void scontrol_write(struct scontrol *s, int argc, char **argv)
{
	if (argc < 2)
		scontrol_fail(s, "too few arguments for keyword:%s", argv[0]);
	else if (!strcasecmp(argv[1], "batch_script"))
		write_script(s, argc, argv);
	else if (argc > (!strcasecmp(argv[1], "config") ? 3 : 4))
		scontrol_fail(s, "too many arguments for keyword:%s", argv[0]);
	else if (!strcasecmp(argv[1], "config"))
		write_config(s, argc, argv);
	else
		scontrol_fail(s, "invalid write argument:%s\nscontrol: error: write takes batch_script or config", argv[1]);
}

void scontrol_errnumstr(struct scontrol *s, int argc, char **argv)
{
	unsigned long long code;
	if (argc != 2)
		scontrol_fail(s, "one arguments required for keyword:%s", argv[0]);
	else if (str_to_u64(argv[1], 0, 100000, &code) < 0)
		scontrol_fail(s, "numeric arguments required for keyword:%s", argv[0]);
	else
		printf("%s\n", error_text((int)code));
}

/* Waits until the job's nodes are ready: the long poll of its allocation. */
void scontrol_wait_job(struct scontrol *s, int argc, char **argv)
{
	Pb__WaitReq req = PB__WAIT_REQ__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	unsigned long long id;
	if (argc != 2) {
		scontrol_fail(s, argc < 2 ? "too few arguments for keyword:%s" : "too many arguments for keyword:%s", argv[0]);
		return;
	}
	if (str_to_u64(argv[1], 1, UINT32_MAX, &id) < 0) {
		scontrol_fail(s, "scontrol: wait_job needs one job id");
		return;
	}
	req.job_id = (uint32_t)id;
	int rc = client_call(scontrol_client(s), RPC_WAIT, &req.base, -1, &msg, &err);
	if (rc >= 0) {
		rc = -(int)((const Pb__WaitRsp *)msg)->code;
		protobuf_c_message_free_unpacked(msg, NULL);
	}
	if (rc < 0)
		scontrol_fail(s, "scontrol: Problem running job %llu: %s", id, error_text(rc));
	else
		fprintf(stderr, "scontrol: Nodes are ready for job %llu\n", id);
}

/* "10.0.0.7:6818"; the name itself where it does not resolve. */
static void address_print(const Pb__NodeRecord *n)
{
	const char *name = client_node_addr(n);
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	char text[INET6_ADDRSTRLEN];
	if (!getaddrinfo(name, NULL, &hints, &found) && !getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
		name = text;
	printf("%s: %s:%u\n", n->name, name, n->port);
	if (found)
		freeaddrinfo(found);
}

void scontrol_getaddrs(struct scontrol *s, int argc, char **argv)
{
	Pb__NodeListReq req = PB__NODE_LIST_REQ__INIT;
	struct hostlist want = HOSTLIST_INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	if (argc != 2) {
		scontrol_fail(s, "one argument required for keyword:%s", argv[0]);
		return;
	}
	req.has_show_all = req.show_all = true;
	int rc = hostlist_add(&want, argv[1], &err);
	if (rc >= 0)
		rc = client_call(scontrol_client(s), RPC_NODE_LIST, &req.base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "scontrol: error: %s", err.line[0] ? err.line : error_text(rc));
	} else {
		const Pb__NodeListRsp *rsp = (const Pb__NodeListRsp *)msg;
		for (size_t i = 0; i < rsp->n_node; i++)
			if (hostlist_find(&want, rsp->node[i]->name) >= 0)
				address_print(rsp->node[i]);
		protobuf_c_message_free_unpacked(msg, NULL);
	}
	hostlist_fini(&want);
}
