/* fuzz_frame.c - what comes from the network: a server takes any bytes and lives; a known caller may send any body in any call
 *
 * First byte even: the rest is sent as it is. Odd: two bytes call number, the rest a body, in a right frame with a right token. The bytes go also through the
 * skimming reader and into every message of the table. */
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <sodium.h>

#include "base/log.h"
#include "wire/auth.h"
#include "wire/wire.h"
#include "test/fuzz/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void handler(struct wire_req *r, void *arg)
{
	wire_reply_error(r, ESLURM_NOT_SUPPORTED, "fuzz");
}

static size_t frame_make(const uint8_t *data, size_t size, uint8_t *out)
{
	struct frame_channel ch = { .keyed = true };
	struct token t;
	struct error err;
	assert(!auth_token_make(auth, NULL, ch.key, &t, &err));
	struct frame_head h = { .kind = FRAME_CALL, .rpc = data[0] << 8 | data[1], .seq = 1, .token_len = t.len, .body_len = size - 2 };
	struct frame_part part[2] = { { t.data, t.len }, { data + 2, size - 2 } };
	frame_head_write(&h, out);
	frame_seal(&ch, out, part, 2);
	memcpy(out + FRAME_HEAD, t.data, t.len);
	memcpy(out + FRAME_HEAD + t.len, data + 2, size - 2);
	return FRAME_HEAD + t.len + size - 2;
}

static void server_feed(const uint8_t *data, size_t size)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(wire_server_port(server)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger hard = { 1, 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof a));
	assert(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (size_t at = 0; at < size;) {
		ssize_t n = send(fd, data + at, size - at > 700 ? 700 : size - at, MSG_NOSIGNAL);   /* in pieces, as networks do */
		uv_run(&loop, UV_RUN_NOWAIT);
		if (n <= 0)
			break;
		at += n;
	}
	close(fd);
	for (int i = 0; i < 1000 && wire_server_connections(server); i++)
		uv_run(&loop, UV_RUN_NOWAIT);
}

static void skim(const uint8_t *data, size_t size, int depth)
{
	struct wire_skim s;
	struct wire_field f;
	const uint8_t *end = data + size;
	wire_skim_start(&s, data, size);
	while (wire_skim_next(&s, &f)) {
		assert(f.type != 2 || (f.data >= data && f.data + f.len <= end));
		if (f.type == 2 && depth)
			skim(f.data, f.len, depth - 1);
	}
	assert(s.bad || s.at == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[1 << 16];
	if (!server)
		server_open(handler);
	if (size < 3 || size > sizeof out / 2)
		return 0;
	for (uint16_t n = 0; n < 256; n++) {
		const struct rpc_row *row = rpc_row(n);
		ProtobufCMessage *m = row ? wire_unpack(row->rsp, data + 3, size - 3) : NULL;
		if (m)
			protobuf_c_message_free_unpacked(m, NULL);
	}
	skim(data + 3, size - 3, 4);
	if (data[0] & 1)
		server_feed(out, frame_make(data + 1, size - 1, out));
	else
		server_feed(data + 1, size - 1);
	return 0;
}
