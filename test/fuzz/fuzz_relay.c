/* fuzz_relay.c - messages for several nodes (wire/relay.h): any bytes as a RelayReq are answered once and reach no handler; any bytes as the parcel of a letter that is sealed
 * properly reach it once at most, as the call of who sealed it, and only where the parcel names us
 *
 * First byte even: the rest is the RelayReq. Odd: up to a NUL the share, the rest the parcel. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sodium.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/hostlist.h"
#include "proto/agent.pb-c.h"
#include "wire/auth.h"
#include "wire/relay.h"
#include "test/fuzz/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct relay_place place;
static unsigned handled, answered;

static bool where(const char *node, const char **ret_host, uint16_t *ret_port, void *arg) { return false; }

static void handler(struct wire_req *r, void *arg)
{
	if (wire_req_rpc(r) == RPC_D_RELAY) {
		relay_take(&place, "me", r);
		return;
	}
	handled++;
	assert(wire_req_identity(r)->known && wire_req_identity(r)->uid == geteuid() && !strcmp(wire_req_to(r), "me"));
	wire_reply_error(r, ESLURM_NOT_SUPPORTED, "fuzz");
}

static void done(int code, const uint8_t *body, size_t len, const char *detail, void *arg)
{
	answered++;
	if (code)
		return;
	Pb__RelayRsp *rsp = pb__relay_rsp__unpack(NULL, len, body);
	assert(rsp && rsp->n_answer <= 1);
	pb__relay_rsp__free_unpacked(rsp, NULL);
}

static void feed(const uint8_t *body, size_t len)
{
	struct wire_identity id = { .uid = 12345, .known = true };   /* who brings it is not who sealed it */
	struct wire_call_in in = { RPC_D_RELAY, &id, "peer", "me", body, len };
	handled = answered = 0;
	wire_server_deliver(server, &in, done, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert(answered == 1 && handled <= 1);
}

static void sealed_feed(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, 0, size);
	Pb__RelayReq m = PB__RELAY_REQ__INIT;
	uint8_t hash[32], session[FRAME_KEY];
	struct token t;
	struct hostlist named = HOSTLIST_INIT;
	if (!nul)
		return;
	m.nodes = (char *)data;
	m.parcel = (ProtobufCBinaryData){ size - (size_t)(nul + 1 - data), (uint8_t *)nul + 1 };
	wire_hash(m.parcel.data, m.parcel.len, hash);
	assert(!auth_token_make(auth, hash, session, &t, NULL));
	m.token = (ProtobufCBinaryData){ t.len, t.data };
	size_t len = pb__relay_req__get_packed_size(&m);
	uint8_t *body = xmalloc(len);
	pb__relay_req__pack(&m, body);
	feed(body, len);
	Pb__Parcel *p = pb__parcel__unpack(NULL, m.parcel.len, m.parcel.data);
	bool ours = p && !hostlist_add(&named, p->nodes, NULL) && hostlist_find(&named, "me") >= 0;
	assert(ours || !handled);
	unsigned first = handled;
	feed(body, len);                   /* once more */
	assert(!first || !handled);
	hostlist_fini(&named);
	if (p)
		pb__parcel__free_unpacked(p, NULL);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!server) {
		server_open(handler);
		place = (struct relay_place){ &loop, auth, server, where, NULL };
	}
	if (!size || size > 1 << 16)
		return 0;
	uint8_t *copy = xmalloc(size);     /* exactly as long: what is read beyond it is seen */
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1) {
		sealed_feed(copy, size - 1);
	} else {
		feed(copy, size - 1);
		assert(!handled);
	}
	free(copy);
	return 0;
}
