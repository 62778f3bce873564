/* wire.h - framed, authenticated calls between commands and daemons
 *
 * One frame: a fixed head (magic "BRTH", version, call number, flags, sequence, lengths, MAC), optionally a
 * token (first frame of a connection), then the protobuf body. The token tells who asks; it carries, sealed
 * under the cluster key, uid, gid, expiry, a nonce, a session key and the hash of what it is for. Every frame after
 * (and the first) carries a Poly1305 MAC under a key derived from session key, direction and sequence, so frames cannot be forged,
 * replayed or reordered. Many calls may be in flight on one connection; replies carry the call's sequence.
 * Size limits are per call (tables/rpc.def); replies are limited to WIRE_REPLY_MAX.
 *
 * Two users: commands, which make blocking calls (struct wire_client), and daemons, which live on a libuv loop
 * (struct wire_server, struct wire_link). Bodies are unpacked by protobuf-c under an allocator with a cap. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>
#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "wire/skim.h"

enum rpc {
#define RPC(name, number, req, rsp, who, kib) RPC_##name = number,
#include "tables/rpc.def"
#undef RPC
};
enum rpc_who { RPC_WHO_OPEN, RPC_WHO_ANY, RPC_WHO_OPER, RPC_WHO_ADMIN, RPC_WHO_NODE };
struct rpc_row {
	enum rpc rpc;
	const char *name;
	const ProtobufCMessageDescriptor *req, *rsp;
	enum rpc_who who;
	uint32_t req_max;        /* bytes */
};
const struct rpc_row *rpc_row(uint16_t number);   /* NULL: unknown */
#define WIRE_REPLY_MAX (1u << 30)

/* --- identity ------------------------------------------------------------------------------- */
/* How tokens are made and checked. auth/slurm: by the key file where we may read it, else from the sack socket.
 * auth/munge: libmunge. */
struct wire_auth;
struct wire_auth_params {
	bool munge;
	const char *cluster;
	const char *key_path;     /* daemons: the cluster key (0600); NULL in commands */
	const char *sack_path;    /* socket that hands out tokens; NULL: only the key */
	const char *munge_socket; /* NULL: munge's default */
	uint32_t ttl_s;           /* life of a token; 0: 60 s, under munge 300 s */
};
int wire_auth_create(const struct wire_auth_params *p, struct wire_auth **ret, struct error *err);
void wire_auth_destroy(struct wire_auth *a);
struct wire_identity { uint32_t uid, gid; bool known; uint8_t bound[32]; /* hash the token was bound to; zero: none */ };
/* Serve tokens on a.sack_path (needs the key): mode 0666 socket, SO_PEERCRED says who asks. */
struct sack;
int sack_start(uv_loop_t *loop, struct wire_auth *a, const char *path, struct sack **ret, struct error *err);
void sack_stop(struct sack *s);

/* --- commands: blocking --------------------------------------------------------------------- */
struct wire_client;
/* Connect to host:port (numeric or name). `bind_hash` (32 bytes or NULL): what the token shall be for. */
int wire_client_open(struct wire_auth *a, const char *host, uint16_t port, int timeout_ms, const uint8_t *bind_hash,
		     struct wire_client **ret, struct error *err);
/* The same without waiting: when wire_client_fd() is writable, wire_client_ready() says whether the connection stands; then the calls below may be used. Of a name's
 * addresses the first that can be tried is. */
int wire_client_start(struct wire_auth *a, const char *host, uint16_t port, const uint8_t *bind_hash, struct wire_client **ret, struct error *err);
int wire_client_ready(struct wire_client *c, struct error *err);
/* One call. *ret_rsp is unpacked and is freed with protobuf_c_message_free_unpacked(rsp, NULL). timeout_ms < 0: for ever
 * (the long polls RPC_WAIT...). -ESLURM_SOCKET_TIMEOUT, -ESLURM_COMM, or the code the server refused with. */
int wire_call(struct wire_client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, ProtobufCMessage **ret_rsp, struct error *err);
/* The same, but the reply's bytes as they came (for skimming readers); freed with free(). */
int wire_call_raw(struct wire_client *c, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, uint8_t **ret, size_t *ret_len, struct error *err);
/* Pipelining: send without waiting, and take the next reply of any sequence. */
int wire_send(struct wire_client *c, enum rpc rpc, const ProtobufCMessage *req, uint32_t *ret_seq, struct error *err);
/* The same without waiting, one call at a time: begins to send a packed request, in two pieces, to a named receiver. All must live until wire_flush, called when
 * wire_client_fd() is writable, has returned 0 (1: there is more to send). */
struct wire_request { enum rpc rpc; const char *to; const void *body, *tail; size_t len, tail_len; };
int wire_begin(struct wire_client *c, const struct wire_request *q, struct error *err);
int wire_flush(struct wire_client *c, struct error *err);
int wire_recv(struct wire_client *c, int timeout_ms, uint32_t *ret_seq, int *ret_code, ProtobufCMessage **ret_rsp, struct error *err);
int wire_client_fd(const struct wire_client *c);   /* for poll(): readable when a reply (or end) is there */
void wire_client_close(struct wire_client *c);

/* --- daemons: on a loop ---------------------------------------------------------------------- */
struct wire_server;
struct wire_req;          /* one call being answered; lives until wire_reply* */
/* Called on the loop for each well-formed, authenticated, allowed call. Must answer exactly once, now or later. */
typedef void (*wire_handler_fn)(struct wire_req *req, void *arg);
/* Policy: may this identity make calls of class `who`? (ANY and OPEN are decided by wire itself.) */
typedef bool (*wire_policy_fn)(const struct wire_identity *id, enum rpc_who who, void *arg);
/* Listens on host:port (host NULL: any). The handler gets all calls; it switches on wire_req_rpc. */
int wire_server_start(uv_loop_t *loop, struct wire_auth *a, const char *host, uint16_t port, wire_handler_fn handler,
		      wire_policy_fn policy, void *arg, struct wire_server **ret, struct error *err);
void wire_server_stop(struct wire_server *s);     /* closes all its connections */
/* Stop and go on reading new calls (limits of a turn). */
void wire_server_pause(struct wire_server *s, bool pause);
enum rpc wire_req_rpc(const struct wire_req *r);
const struct wire_identity *wire_req_identity(const struct wire_req *r);
const ProtobufCMessage *wire_req_msg(const struct wire_req *r);   /* unpacked; lives as long as r */
const uint8_t *wire_req_body(const struct wire_req *r, size_t *ret_len);  /* as it came */
const char *wire_req_peer(const struct wire_req *r);              /* "127.0.0.1:4711" */
const char *wire_req_to(const struct wire_req *r);                /* the receiver the caller named, or NULL */
bool wire_req_gone(const struct wire_req *r);                     /* the peer closed; still answer, it is dropped */
/* Called once when the peer of an unanswered call goes away (long polls). NULL: forget. */
void wire_req_on_gone(struct wire_req *r, void (*fn)(struct wire_req *, void *), void *arg);
void wire_reply(struct wire_req *r, const ProtobufCMessage *rsp);
void wire_reply_error(struct wire_req *r, int code, const char *detail);
/* Body made of pieces already encoded; each is released by calling release(arg) when it is written. */
struct wire_piece { const void *data; size_t len; };
void wire_reply_pieces(struct wire_req *r, const struct wire_piece *piece, size_t n, void (*release)(void *arg), void *arg);
/* A call that came inside another (relay.h): the handler gets it as if `identity` had made it on a connection of his. The answer's bytes go to `done`, once, perhaps
 * before this returns. */
typedef void (*wire_delivered_fn)(int code, const uint8_t *body, size_t len, const char *detail, void *arg);
struct wire_call_in { uint32_t rpc; const struct wire_identity *identity; const char *peer, *to; const uint8_t *body; size_t len; };
void wire_server_deliver(struct wire_server *s, const struct wire_call_in *in, wire_delivered_fn done, void *arg);
uint64_t wire_server_connections(const struct wire_server *s);
uint16_t wire_server_port(const struct wire_server *s);          /* the real one where 0 was asked for */

/* An outgoing connection kept open to one peer, with reconnect on demand. */
struct wire_link;
struct wire_link *wire_link_create(uv_loop_t *loop, struct wire_auth *a, const char *host, uint16_t port);
void wire_link_set_addr(struct wire_link *l, const char *host, uint16_t port);
/* code 0 and rsp (valid during the callback), or a negative code: refused by the peer, -ESLURM_COMM, -ESLURM_SOCKET_TIMEOUT. */
typedef void (*wire_done_fn)(int code, const ProtobufCMessage *rsp, const char *detail, void *arg);
void wire_link_call(struct wire_link *l, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, wire_done_fn done, void *arg);
/* The same, for one of several receivers behind one address (emulated nodes), named in the frame. */
void wire_link_call_to(struct wire_link *l, const char *to, enum rpc rpc, const ProtobufCMessage *req, int timeout_ms, wire_done_fn done, void *arg);
/* Bytes that many calls have in common, counted: not copied for each. */
struct wire_shared { unsigned refs; size_t len; uint8_t data[]; };
struct wire_shared *wire_shared_pack(const ProtobufCMessage *m);
void wire_shared_unref(struct wire_shared *s);      /* NULL: nothing */
/* A call whose request is the shared bytes and then `tail` (copied): two messages packed one after the other are one. */
void wire_link_call_shared(struct wire_link *l, const char *to, enum rpc rpc, struct wire_shared *s, const void *tail, size_t tail_len, int timeout_ms, wire_done_fn done, void *arg);
/* Told when an established connection breaks (a node's death is seen at once). NULL: nobody. */
void wire_link_on_break(struct wire_link *l, void (*fn)(void *arg), void *arg);
void wire_link_destroy(struct wire_link *l);       /* calls in flight end with -ECANCELED */

/* --- helpers shared -------------------------------------------------------------------------- */
/* Unpack with a cap on memory (16 x the size + 1 MiB); NULL when malformed. Freed with protobuf_c_message_free_unpacked(m, NULL). */
ProtobufCMessage *wire_unpack(const ProtobufCMessageDescriptor *d, const uint8_t *data, size_t len);
void wire_hash(const void *data, size_t len, uint8_t ret[32]);    /* BLAKE2b-256 */
