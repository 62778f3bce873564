/* fan.h - one message to many nodes through a tree of their slurmds
 *
 * The sender seals a letter once: a Parcel (the call, its body, all nodes it is meant for) and a token of his that is bound to the hash of the parcel's bytes. He
 * divides the nodes into as many shares as the tree is wide and sends each share's first node the letter and the share (RPC_D_RELAY). That node's slurmd
 * (relay.c) checks the letter, takes the call as if the sender had made it on a connection of his own, and does the same with the rest of its share. Answers come back
 * the way the letter went.
 *
 * What a node checks: the token is of this cluster, new here and not too old; it was made for exactly these bytes; the parcel names this node. So a slurmd on
 * the way can read what it is itself told (it is a receiver), but not change it, say it twice, or bring it to a node that it is not meant for. What it can do is lose it, or
 * lie about answers: callers take an answer from the tree for no more than that, and a step runs when its slurmstepd has proved that it knows the step's key.
 *
 * This file is the sender's side without input and output, used by commands (client/fan.c) and daemons (relay.c) alike. A share whose first node cannot be had is sent
 * to the next one of it; where one falls silent, or too many are dead, the rest of its share is "not reached", and the sender calls those directly. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "proto/agent.pb-c.h"
#include "wire/wire.h"

#define FAN_WIDTH_MAX 65533      /* TreeWidth, slurm.conf(5) */
#define FAN_LEVEL_MS 1000        /* so much longer waits who is one level further up */

/* --- the letter ------------------------------------------------------------------------------- */
struct fan_letter { struct wire_shared *packed; /* a RelayLetter */ uint32_t width, patience_ms; };
/* Seals `req` for the nodes named. May block under munge. */
int fan_letter_seal(struct wire_auth *a, enum rpc rpc, const ProtobufCMessage *req, const char *const *name, size_t n, uint32_t width, uint32_t patience_ms,
		    struct fan_letter *ret, struct error *err);
void fan_letter_fini(struct fan_letter *l);
/* Whose letter is it? ret->bound is the hash of the call's body, as if the token had been made for that. *ret_id: what a node remembers of it. May block under munge. */
int fan_letter_open(const struct wire_auth *a, const Pb__RelayReq *req, Pb__Parcel **ret, struct wire_identity *ret_sender, uint8_t ret_id[16], struct error *err);
/* The first time that `node` sees this letter? -EEXIST: it has it already. On the loop's thread. */
int fan_letter_use(struct wire_auth *a, const uint8_t id[16], const char *node, struct error *err);

/* --- the shape -------------------------------------------------------------------------------- */
/* Levels below a sender of n nodes; 1: it calls all of them itself. */
unsigned fan_depth(size_t n, uint32_t width);
/* How long the sender of a share of n nodes waits for its answer. */
uint32_t fan_wait_ms(size_t n, uint32_t width, uint32_t patience_ms);

/* --- sending ---------------------------------------------------------------------------------- */
/* `a` NULL: node i was not reached, or did not answer in time. Called once for each node. */
typedef void (*fan_answer_fn)(size_t i, const Pb__RelayAnswer *a, void *arg);
struct fan;
/* Letter and names must outlive it. */
struct fan *fan_create(const struct fan_letter *l, const char *const *name, size_t n, fan_answer_fn fn, void *arg);
void fan_destroy(struct fan *f);
/* What shall be sent next: branch, its first node, the tail that goes after the letter (the share; lives until the branch is answered for). False: nothing now. */
struct fan_send { size_t branch, node, tail_len; const uint8_t *tail; uint32_t wait_ms; };
bool fan_next(struct fan *f, struct fan_send *ret);
/* The answer to what was sent for that branch; or none. A branch whose node failed within its time is sent to its next one, by fan_next. */
void fan_took(struct fan *f, size_t branch, const Pb__RelayRsp *rsp);
void fan_failed(struct fan *f, size_t branch, int code);
bool fan_is_over(const struct fan *f);
size_t fan_branches(const struct fan *f);
/* So far. */
uint32_t fan_deepest(const struct fan *f);
uint32_t fan_sent(const struct fan *f);
