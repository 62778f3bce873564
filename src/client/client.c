/* client.c - calls of commands to slurmctld and slurmdbd, with retries (see client.h)
 *
 * A daemon is away for a second when it restarts; a script in a loop should not notice. So connecting is tried again until the
 * deadline. Invariant: a call that was sent and not answered is repeated only where `repeatable` says so. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "client/client.h"

#define RETRY_MS 50
#define QUIET_MS 1000           /* a restart takes less; do not speak of it */

struct peer { struct wire_client *wire; };
struct client {
	struct conf *conf;
	struct wire_auth *auth;
	struct peer ctld, dbd;
	bool told;
};
struct request { enum rpc rpc; const ProtobufCMessage *msg; bool dbd; int timeout_ms; };
struct reply { ProtobufCMessage *msg; uint8_t *data; size_t len; bool raw; };

/* Calls that may be made twice: they change nothing, or say what shall be rather than what to do. */
static const enum rpc repeatable[] = {
	RPC_PING, RPC_SUBMIT, RPC_WAIT, RPC_JOB_LIST, RPC_STEP_LIST, RPC_NODE_LIST, RPC_PART_LIST, RPC_CONFIG_SHOW, RPC_SCRIPT, RPC_KILL,
	RPC_JOB_UPDATE, RPC_NODE_UPDATE, RPC_PART_UPDATE, RPC_STEP_DONE, RPC_JOB_DONE, RPC_ALLOC_INFO, RPC_DIAG, RPC_CONF_FETCH, RPC_DB_PING,
	RPC_DB_JOBS,
};

static bool is_repeatable(enum rpc rpc)
{
	for (size_t i = 0; i < sizeof repeatable / sizeof *repeatable; i++)
		if (repeatable[i] == rpc)
			return true;
	return false;
}

int client_open(struct client **ret, struct error *err)
{
	return client_open_with(ret, NULL, err);
}

int client_open_with(struct client **ret, struct conf *conf, struct error *err)
{
	struct client *c = xcalloc(1, sizeof *c);
	c->conf = conf;
	int rc = conf ? 0 : conf_load_client(NULL, &c->conf, err);
	if (!rc)
		rc = client_auth_create(c->conf, CLIENT_AUTH_COMMAND, &c->auth, err);
	if (rc) {
		client_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

const struct conf *client_conf(const struct client *c)
{
	return c->conf;
}

int client_node_open(const struct client *c, const Pb__NodeRecord *node, int timeout_ms, struct wire_client **ret, struct error *err)
{
	*ret = NULL;
	return wire_client_open(c->auth, client_node_addr(node), (uint16_t)node->port, timeout_ms, NULL, ret, err);
}

struct wire_auth *client_auth(const struct client *c)
{
	return c->auth;
}

void client_close(struct client *c)
{
	if (!c)
		return;
	wire_client_close(c->ctld.wire);
	wire_client_close(c->dbd.wire);
	wire_auth_destroy(c->auth);
	if (c->conf)
		conf_destroy(c->conf);
	free(c);
}

/* --- one attempt ----------------------------------------------------------------------------- */

/* PING is answered to everybody: it shall work where no token can be had, too. */
static int host_open(struct client *c, const struct request *q, const char *host, uint16_t port, int ms, struct wire_client **ret, struct error *err)
{
	int rc = wire_client_open(c->auth, host, port, ms, NULL, ret, err);
	bool open = q->rpc == RPC_PING || q->rpc == RPC_DB_PING;
	return rc == -ESLURM_AUTH && open ? wire_client_open(NULL, host, port, ms, NULL, ret, err) : rc;
}

static int peer_open(struct client *c, const struct request *q, int ms, struct wire_client **ret, struct error *err)
{
	if (q->dbd)
		return host_open(c, q, conf_str(c->conf, CONF_AccountingStorageHost), conf_num(c->conf, CONF_AccountingStoragePort), ms, ret, err);
	const char *host, *addr;
	uint16_t port;
	struct error first = { 0 }, other, *e = &first;
	int rc = -ESLURM_COMM;
	for (size_t i = 0; conf_controller(c->conf, i, &host, &addr, &port); i++, e = &other) {
		int got = host_open(c, q, addr, port, ms, ret, e);
		if (!got)
			return 0;
		rc = i ? rc : got;
	}
	if (err)
		*err = first;
	return rc;
}

static int request_send(struct client *c, struct wire_client *w, const struct request *q, int ms, struct reply *ret, struct error *err)
{
	return ret->raw ? wire_call_raw(w, q->rpc, q->msg, ms, &ret->data, &ret->len, err) : wire_call(w, q->rpc, q->msg, ms, &ret->msg, err);
}

/* The connection is of no use any more after these. */
static bool is_broken(int rc)
{
	return rc == -ESLURM_COMM || rc == -ESLURM_SOCKET_TIMEOUT || rc == -ESLURM_AUTH || rc == -EAGAIN || rc == -ESLURM_PROTOCOL_VERSION ||
	       rc == -ESLURM_PROTOCOL;
}

/* One attempt. *ret_sent: the call left us, so the other side may have done it. */
static int request_try(struct client *c, const struct request *q, uint64_t deadline, struct reply *ret, bool *ret_sent, struct error *err)
{
	struct peer *p = q->dbd ? &c->dbd : &c->ctld;
	uint64_t now = clock_mono_ms();
	int left = now < deadline ? (int)(deadline - now) : 1, rc = 0;
	*ret_sent = false;
	if (!p->wire && (rc = peer_open(c, q, left, &p->wire, err)))
		return rc;
	*ret_sent = true;
	rc = request_send(c, p->wire, q, q->timeout_ms < 0 ? -1 : left, ret, err);
	if (is_broken(rc)) {
		wire_client_close(p->wire);
		p->wire = NULL;
		*ret_sent = rc != -EAGAIN;   /* refused for an old token: nothing was done */
	}
	return rc;
}

/* --- until it works -------------------------------------------------------------------------- */

static void tell_once(struct client *c, const struct request *q, uint64_t waited_ms, const struct error *err)
{
	if (c->told || waited_ms < QUIET_MS)
		return;
	c->told = true;
	log_info("%s does not answer, trying again (%s)", q->dbd ? "slurmdbd" : "slurmctld", err->line);
}

static int request_fail(const struct request *q, int rc, struct error *err)
{
	if (!err || (rc != -ESLURM_COMM && rc != -ESLURM_SOCKET_TIMEOUT && rc != -ESLURM_AUTH))
		return rc;
	struct error detail = *err;
	if (q->dbd && rc == -ESLURM_COMM)
		rc = -ESLURM_DBD;
	error_set(err, rc, "%s", error_text(rc));
	error_hint(err, "%.150s%s%.90s", detail.line, *detail.hint ? "; " : "", detail.hint);
	return rc;
}

static int request_run(struct client *c, const struct request *q, struct reply *ret, struct error *err)
{
	uint64_t start = clock_mono_ms();
	uint64_t patience = 1000 * conf_num(c->conf, CONF_MessageTimeout), deadline = start + (q->timeout_ms > 0 ? (uint64_t)q->timeout_ms : patience);
	struct error e = { 0 };
	for (;;) {
		bool sent;
		int rc = request_try(c, q, deadline, ret, &sent, &e);
		bool lost = rc == -ESLURM_COMM || rc == -EAGAIN;
		if (lost && sent && q->timeout_ms < 0)   /* a long poll lost its server: patience begins anew */
			start = clock_mono_ms(), deadline = start + patience;
		bool again = lost && q->rpc != RPC_PING && q->rpc != RPC_DB_PING && (!sent || is_repeatable(q->rpc)) && clock_mono_ms() + RETRY_MS < deadline;
		if (!again) {
			if (rc && err)
				*err = e;
			return rc ? request_fail(q, rc, err) : 0;
		}
		tell_once(c, q, clock_mono_ms() - start, &e);
		nanosleep(&(struct timespec){ .tv_nsec = RETRY_MS * 1000000 }, NULL);   /* nothing to wait for: a port that opens tells nobody */
	}
}

int client_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret, struct error *err)
{
	struct request q = { .rpc = rpc, .msg = req, .timeout_ms = timeout_ms };
	struct reply r = { 0 };
	int rc = request_run(c, &q, &r, err);
	if (!rc)
		*ret = r.msg;
	return rc;
}

int client_call_raw(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, uint8_t **ret, size_t *ret_len, struct error *err)
{
	struct request q = { .rpc = rpc, .msg = req, .timeout_ms = timeout_ms };
	struct reply r = { .raw = true };
	int rc = request_run(c, &q, &r, err);
	if (!rc) {
		*ret = r.data;
		*ret_len = r.len;
	}
	return rc;
}

int client_call_dbd(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret, struct error *err)
{
	struct request q = { .rpc = rpc, .msg = req, .timeout_ms = timeout_ms, .dbd = true };
	struct reply r = { 0 };
	int rc = request_run(c, &q, &r, err);
	if (!rc)
		*ret = r.msg;
	return rc;
}

/* --- watched by the caller ------------------------------------------------------------------------ */

static void peer_drop(struct client *c)
{
	wire_client_close(c->ctld.wire);
	c->ctld.wire = NULL;
}

int client_begin(struct client *c, enum rpc rpc, const ProtobufCMessage *req, struct error *err)
{
	struct request q = { .rpc = rpc, .msg = req };
	uint64_t start = clock_mono_ms(), deadline = start + 1000 * conf_num(c->conf, CONF_MessageTimeout);
	struct error e = { 0 };
	for (;;) {
		uint32_t seq;
		int rc = c->ctld.wire ? 0 : peer_open(c, &q, (int)(deadline - start), &c->ctld.wire, &e);
		if (!rc)
			rc = wire_send(c->ctld.wire, rpc, req, &seq, &e);
		if (!rc)
			return 0;
		peer_drop(c);
		if ((rc != -ESLURM_COMM && rc != -EAGAIN) || clock_mono_ms() + RETRY_MS >= deadline) {
			if (err)
				*err = e;
			return request_fail(&q, rc, err);
		}
		tell_once(c, &q, clock_mono_ms() - start, &e);
		nanosleep(&(struct timespec){ .tv_nsec = RETRY_MS * 1000000 }, NULL);
	}
}

int client_fd(const struct client *c)
{
	return c->ctld.wire ? wire_client_fd(c->ctld.wire) : -1;
}

int client_take(struct client *c, ProtobufCMessage **ret, struct error *err)
{
	uint32_t seq;
	int code = 0, rc = wire_recv(c->ctld.wire, -1, &seq, &code, ret, err);
	if (!rc)
		rc = code;
	if (is_broken(rc))
		peer_drop(c);
	return rc == -EAGAIN ? -ESLURM_COMM : rc;
}
