/* client.h - what commands share: find the configuration, reach the controller, call, retry
 *
 * A command is one process and at most a few calls. client_open reads slurm.conf (client part) and connects lazily: first the
 * primary, then backups. A controller that cannot be reached is tried again for up to MessageTimeout (but for PING), saying so on
 * stderr once it takes longer than a second. When a connection breaks after a call was sent, the call is repeated where that is safe (reads;
 * submissions with their idempotency key; table in client.c), else it fails.
 * Where nobody answers, err->line is the short standard sentence, for the command to print; err->hint says which host and why. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "conf/conf.h"
#include "wire/wire.h"

struct client;
int client_open(struct client **ret, struct error *err);
/* The same with a configuration that was read already (conf_load_client), which the client takes over, also on failure; NULL: read it. */
int client_open_with(struct client **ret, struct conf *conf, struct error *err);
const struct conf *client_conf(const struct client *c);
struct wire_auth *client_auth(const struct client *c);
void client_close(struct client *c);
/* timeout_ms 0: MessageTimeout; < 0: for ever. */
int client_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret, struct error *err);
int client_call_raw(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, uint8_t **ret, size_t *ret_len, struct error *err);
/* A call that may take long, for a command that watches other things meanwhile: connect (with retries) and send; poll client_fd for POLLIN; take the answer.
 * client_take gives -ESLURM_COMM when the connection broke: begin again. One at a time, and no other call between. */
int client_begin(struct client *c, enum rpc rpc, const ProtobufCMessage *req, struct error *err);
int client_fd(const struct client *c);
int client_take(struct client *c, ProtobufCMessage **ret, struct error *err);
/* Where its slurmd is: a host's name or address. */
static inline const char *client_node_addr(const Pb__NodeRecord *node) { return node->addr && *node->addr ? node->addr : node->name; }
/* A connection to a node's slurmd, the caller's to close; *ret is NULL when there is none. */
int client_node_open(const struct client *c, const Pb__NodeRecord *node, int timeout_ms, struct wire_client **ret, struct error *err);
/* slurmdbd instead of slurmctld. */
int client_call_dbd(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret, struct error *err);

/* --- who is asking: one place for commands and daemons ---------------------------------------- */
/* AuthType and AuthInfo of a configuration -> struct wire_auth. Paths and their order: src/wire/README.md. */
enum client_auth_use {
	CLIENT_AUTH_COMMAND,   /* the key where it can be read, else a token socket */
	CLIENT_AUTH_DAEMON,    /* the key must be readable */
	CLIENT_AUTH_DBD,       /* as DAEMON, from slurmdbd.conf; tokens of any cluster with this key */
};
int client_auth_create(const struct conf *c, enum client_auth_use use, struct wire_auth **ret, struct error *err);
/* The same for a slurmd without configuration files (--conf-server): AuthType is auth/slurm, the key is given. */
int client_auth_create_keyed(const char *key_path, struct wire_auth **ret, struct error *err);
/* Where `daemon` ("slurmctld", "slurmd", "sackd") offers its token socket: AuthInfo=sack=PATH, else its run directory. */
const char *client_sack_path(const struct conf *c, const char *daemon, char *buf, size_t size);
/* Offer it (daemons; their program links wire_loop_dep). *ret stays NULL under munge, which needs none. */
int client_sack_start(const struct conf *c, uv_loop_t *loop, struct wire_auth *a, const char *daemon, struct sack **ret, struct error *err);
