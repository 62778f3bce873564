/* server.h - a server of the wire in the fuzzing process, with a key of its own; included once, by the target */
#pragma once
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/auth.h"
#include "wire/wire.h"

static uv_loop_t loop;
static struct wire_auth *auth;
static struct wire_server *server;

static bool policy(const struct wire_identity *id, enum rpc_who who, void *arg) { return true; }

static void server_open(void (*handler)(struct wire_req *, void *))
{
	char path[] = "/tmp/fuzz.XXXXXX";
	struct error err = { 0 };
	uint8_t key[64] = "a key for fuzzing";
	int fd = mkstemp(path);
	log_init("fuzz", LOG_L_QUIET);
	assert(fd >= 0 && write(fd, key, sizeof key) == sizeof key);
	close(fd);
	struct wire_auth_params p = { .cluster = "fuzz", .key_path = path };
	assert(!wire_auth_create(&p, &auth, &err));
	unlink(path);
	usleep(2000);   /* tokens must be younger than the server */
	uv_loop_init(&loop);
	assert(!wire_server_start(&loop, auth, "127.0.0.1", 0, handler, policy, NULL, &server, &err));
}
