/* turn.h - one turn of slurmctld: events in, the core's answer out, and what may not leave before it is on disk
 *
 * turn_step gives the core one event and takes its effects: changed records are noted, everything for the outside becomes an action. At the end of the
 * loop's iteration (or at a limit) the turn closes: its records, encoded once, go to the writer as one batch; its actions run, in order,
 * when that batch is on disk. Steps do not wait (ARCHITECTURE.md, decision 2) unless they changed a record; reads never come here. */
#pragma once
#include "ctld/ctld.h"

struct turns *turns_create(struct ctld *d);
/* Fills the event's time. */
void turn_step(struct ctld *d, struct core_event *ev);
/* Run fn(d, arg) when all that happened up to now is on disk; at the end of this turn if nothing waits. */
typedef void (*turn_fn)(struct ctld *d, void *arg);
void turn_after(struct ctld *d, turn_fn fn, void *arg);
/* A record that is not the core's (script, accounting queue). put takes `data`. */
void turn_put(struct ctld *d, enum store_table t, uint64_t key, void *data, size_t len);
void turn_remove(struct ctld *d, enum store_table t, uint64_t key);
/* The same, but it need not be soon: goes with the next batch, or within LAZY_MS. */
void turn_remove_lazily(struct ctld *d, enum store_table t, uint64_t key);
void turn_close(struct ctld *d);
/* May changes be taken now? False while the store fails. */
bool turn_open_for_changes(const struct ctld *d);
/* Now and then: after many jobs were forgotten their memory goes back to the system. */
void turns_give_memory_back(struct ctld *d);
/* Start timers and planning once the core is filled. */
void turns_start(struct ctld *d);

/* A call that waits for the core's FX_REPLY: finish gets the reply's message while the event is being worked on, and must answer through
 * turn_reply* so that it leaves in order. */
struct call;
typedef void (*call_finish_fn)(struct ctld *d, struct call *c, const ProtobufCMessage *msg);
struct call {
	struct wire_req *req;        /* NULL: gone, or none */
	call_finish_fn finish;
	void *arg;
	uint64_t token;
};
/* The token goes into the event. The call is freed after finish. */
struct call *call_create(struct ctld *d, struct wire_req *req, call_finish_fn finish);
/* If it has not been answered, nobody waits any more. */
size_t turn_calls(const struct ctld *d); /* that wait for the core or the disk */
void call_forget(struct ctld *d, uint64_t token);
/* Answer when durable. The message is packed now. */
void turn_reply(struct ctld *d, struct wire_req *req, const ProtobufCMessage *msg);
