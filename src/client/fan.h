/* fan.h - one call to many nodes, for commands: directly to a few, through the tree of their slurmds to many (wire/fan.h)
 *
 * Nothing waits but client_fan_finish: a command with a loop of its own watches client_fan_fd() and client_fan_due(). Every node's answer, or why there is none, is told once;
 * a node that the tree does not bring an answer of is called directly, so that what is said of it is the same either way. */
#pragma once
#include <stdbool.h>

#include "client/client.h"

struct client_fan_node { const char *name, *addr; uint16_t port; };
struct client_fan_call {
	enum rpc rpc;
	const ProtobufCMessage *req;
	uint32_t width;            /* of the tree; so many nodes and less are called directly. 0: TreeWidth */
	int connect_ms, answer_ms; /* patience with a node that is called directly */
	int patience_ms;           /* and with one in the tree; whom it brings no answer of is called directly then. 0: half of MessageTimeout */
};
/* code 0 and the answer (valid during the call), or a negative code and err: refused by the node, or it cannot be had (-ESLURM_COMM, -ESLURM_SOCKET_TIMEOUT, -EAGAIN). */
typedef void (*client_fan_fn)(size_t i, int code, const ProtobufCMessage *rsp, const struct error *err, void *arg);
struct client_fan;
/* `node` and call->req must outlive it. Nothing is told from inside this. */
struct client_fan *client_fan_start(struct client *c, const struct client_fan_call *call, const struct client_fan_node *node, size_t n, client_fan_fn fn, void *arg);
void client_fan_free(struct client_fan *f);
int client_fan_fd(const struct client_fan *f);           /* readable: client_fan_run */
uint64_t client_fan_due(const struct client_fan *f);     /* clock_mono_ms when to run it at the latest; UINT64_MAX: need not */
void client_fan_run(struct client_fan *f);
/* Node i was told of: call it again, directly. Not told yet: forget it. */
void client_fan_again(struct client_fan *f, size_t i);
void client_fan_forget(struct client_fan *f, size_t i);
/* Waits until all are told. */
void client_fan_finish(struct client_fan *f);
/* While node i is told of: may it have had the call before, and its answer been lost? */
bool client_fan_was_sent(const struct client_fan *f, size_t i);
/* For measurements: messages this process sent, all messages, levels. */
struct client_fan_figures { uint32_t own, all, depth; };
struct client_fan_figures client_fan_figures(const struct client_fan *f);
/* TreeWidth, or `asked` (srun --treewidth) where that is not 0. */
uint32_t client_tree_width(const struct conf *conf, uint32_t asked);
