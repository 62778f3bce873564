/* rpc.c - the table of calls, made from tables/rpc.def, and the bounded unpacker */
#include <stdlib.h>
#include <string.h>
#include <sodium.h>

#include "proto/accounting.pb-c.h"
#include "proto/reserve.pb-c.h"
#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "proto/job.pb-c.h"
#include "proto/node.pb-c.h"
#include "proto/step.pb-c.h"
#include "proto/queue.pb-c.h"
#include "proto/why.pb-c.h"
#include "proto/assoc.pb-c.h"
#include "wire/rpc.h"

/* By number. A number given twice would override a row, which is an error here. */
#pragma GCC diagnostic error "-Woverride-init"
static const struct rpc_row rows[] = {
#define RPC(rpc, number, req, rsp, may, kib) \
	[number] = { RPC_##rpc, #rpc, &pb__##req##__descriptor, &pb__##rsp##__descriptor, RPC_WHO_##may, (uint32_t)(kib) * 1024 },
#include "tables/rpc.def"
#undef RPC
};

const struct rpc_row *rpc_row(uint16_t number)
{
	return number < sizeof rows / sizeof *rows && rows[number].name ? &rows[number] : NULL;
}

struct cap { size_t left; };

static void *cap_alloc(void *arg, size_t size)
{
	struct cap *c = arg;
	if (size > c->left)
		return NULL;
	c->left -= size;
	return malloc(size ? size : 1);
}

static void cap_free(void *arg, void *p)
{
	free(p);
}

ProtobufCMessage *unpack_capped(const ProtobufCMessageDescriptor *d, const uint8_t *data, size_t len, size_t max)
{
	struct cap cap = { .left = max };
	ProtobufCAllocator a = { .alloc = cap_alloc, .free = cap_free, .allocator_data = &cap };
	return protobuf_c_message_unpack(d, &a, len, data);
}

ProtobufCMessage *wire_unpack(const ProtobufCMessageDescriptor *d, const uint8_t *data, size_t len)
{
	return unpack_capped(d, data, len, 16 * len + (1u << 20));
}

void wire_hash(const void *data, size_t len, uint8_t ret[32])
{
	crypto_generichash(ret, 32, data, len, NULL, 0);
}
