/* store.h - where records stay: the interface (sqlite.c; memory.c with faults for simulation)
 *
 * A record is (table, key) -> bytes. Records are state, not a log. A batch is applied as a whole or not at all,
 * and is on disk when store_commit returns 0. One thread writes. Schema version is explicit; migrations run forward and back.
 * SQLite: one file in StateSaveLocation, WAL, synchronous=FULL, refuses network file systems. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum store_table { STORE_META, STORE_JOB, STORE_SCRIPT, STORE_NODE, STORE_PART, STORE_STEP, STORE_DBD_QUEUE, STORE_TABLES };
struct store_put { enum store_table table; uint64_t key; const void *data; size_t len; bool remove; };

struct store;
int store_open_sqlite(const char *path, struct store **ret, struct error *err);
struct store *store_open_memory(void);
int store_commit(struct store *s, const struct store_put *put, size_t n, struct error *err);
/* All records of a table in key order; stops when fn returns non-zero and returns that. */
int store_scan(struct store *s, enum store_table t, int (*fn)(uint64_t key, const void *data, size_t len, void *arg), void *arg, struct error *err);
/* One record; *ret by malloc. -ENOENT. May be called from another thread than the writer's. */
int store_get(struct store *s, enum store_table t, uint64_t key, void **ret, size_t *ret_len, struct error *err);
void store_close(struct store *s);
