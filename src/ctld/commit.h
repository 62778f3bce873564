/* commit.h - the writer thread: batches of changed records go in, in order, and come out when they are on disk
 *
 * Group commit: whatever has gathered while one transaction was being synced is the next one. A failed transaction (disk full) keeps its
 * records and is tried again, in order, until it holds; meanwhile commit_is_failing() is true and the caller refuses new changes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>
#include "store/store.h"

/* Owned by the queue from commit_submit until done() is called with it. Memory of one turn. */
struct commit_batch {
	struct store_put *put;
	size_t puts, put_cap, bytes;
	void *user;
	struct commit_batch *next;
};
struct commit_batch *commit_batch_create(void);
/* Copies data. */
void commit_batch_put(struct commit_batch *b, enum store_table t, uint64_t key, const void *data, size_t len);
/* Takes data (malloc'd). */
void commit_batch_put_take(struct commit_batch *b, enum store_table t, uint64_t key, void *data, size_t len);
void commit_batch_remove(struct commit_batch *b, enum store_table t, uint64_t key);
void commit_batch_destroy(struct commit_batch *b);

struct commit;
/* done: on the loop, in order, when the batch is on disk; it destroys the batch. changed: whether the store fails has changed. */
struct commit *commit_start(uv_loop_t *loop, struct store *store, void (*done)(struct commit_batch *b, void *arg),
			    void (*changed)(bool failing, const char *why, void *arg), void *arg);
void commit_submit(struct commit *c, struct commit_batch *b);
bool commit_is_failing(const struct commit *c);
size_t commit_in_flight(const struct commit *c);       /* batches */
size_t commit_bytes(const struct commit *c);
uint64_t commit_count(const struct commit *c);         /* transactions made */
/* Waits until all is on disk, at most timeout_ms, ends the thread, and calls done for what was stored. False: something could not be stored. */
bool commit_stop(struct commit *c, unsigned timeout_ms);
