/* relay.h - fan-outs (fan.h) on a libuv loop: slurmd's part in one, and slurmctld's beginning of one */
#pragma once
#include "wire/fan.h"

/* The connection to a node; NULL: it is not known. */
typedef struct wire_link *(*fan_link_fn)(const char *node, void *arg);
typedef void (*fan_end_fn)(const struct fan *f, void *arg);
/* Sends `req` to the nodes: seals a letter (under munge on another thread), sends its shares. req and names must live until `end`, which is told last, after each node's answer;
 * both may be told from inside this where no link can be had. A link that is destroyed meanwhile counts as a node that cannot be reached. */
struct fan_order { uv_loop_t *loop; struct wire_auth *auth; enum rpc rpc; const ProtobufCMessage *req; const char *const *name; size_t n; uint32_t width, patience_ms; };
void fan_send(const struct fan_order *o, fan_link_fn link, fan_answer_fn answer, fan_end_fn end, void *arg);

/* Where other nodes are, as slurmd knows it. False: not at all. *ret_host need live only until the next call. */
typedef bool (*relay_where_fn)(const char *node, const char **ret_host, uint16_t *ret_port, void *arg);
struct relay_place { uv_loop_t *loop; struct wire_auth *auth; struct wire_server *server; relay_where_fn where; void *arg; };
/* Answers RPC_D_RELAY, said to node `self`: the call inside goes to the server's handler, the others of the share are sent the letter. The place must outlive the loop. */
void relay_take(const struct relay_place *p, const char *self, struct wire_req *req);
