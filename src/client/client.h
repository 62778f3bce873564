/* client.h - what commands share: find the configuration, reach the controller, call, retry
 *
 * A command is one process and at most a few calls. client_open reads slurm.conf (client part) and connects lazily: first the
 * primary, then backups. Calls that may be repeated safely (reads; submissions with their idempotency key) are retried while the controller
 * restarts, for up to MessageTimeout, saying so once on stderr. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "conf/conf.h"
#include "wire/wire.h"

struct client;
int client_open(struct client **ret, struct error *err);
const struct conf *client_conf(const struct client *c);
struct wire_auth *client_auth(const struct client *c);
void client_close(struct client *c);
/* timeout_ms 0: MessageTimeout; < 0: for ever. */
int client_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret, struct error *err);
int client_call_raw(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, uint8_t **ret, size_t *ret_len, struct error *err);
/* slurmdbd instead of slurmctld. */
int client_call_dbd(struct client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret, struct error *err);
