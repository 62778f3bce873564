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

enum store_table { STORE_META, STORE_JOB, STORE_SCRIPT, STORE_NODE, STORE_PART, STORE_STEP, STORE_DBD_QUEUE, STORE_RESV, STORE_TABLES };
/* Keys of STORE_META. */
enum store_meta { STORE_META_SCHEMA = 1, STORE_META_NEXT_JOB_ID = 2, STORE_META_CLUSTER = 3, STORE_META_DBD_SEQ = 4, STORE_META_OPEN = 460, STORE_META_COMMITS = 461, STORE_META_ACCT = 570, STORE_META_USAGE = 680, STORE_META_CRON = 710 };
struct store_put { enum store_table table; uint64_t key; const void *data; size_t len; bool remove; };

struct store;
/* -EBUSY: another controller has it; -EREMOTE: on a network file system; -EBADMSG: it is damaged, another program's, or commits are missing in it (accepted
 * with `lossy`, which also drops damaged records that store_scan meets). */
int store_open_sqlite(const char *path, bool lossy, struct store **ret, struct error *err);
/* The same on a named SQLite VFS (tests: a file layer that forgets what was not synced), with `log_bytes` set aside for the log. */
int store_open_sqlite_vfs(const char *path, const char *vfs, size_t log_bytes, bool lossy, struct store **ret, struct error *err);
struct store *store_open_memory(void);
/* 0, or -ESLURM_STORE_FULL: nothing of the batch was kept and the same call may be made again. */
int store_commit(struct store *s, const struct store_put *put, size_t n, struct error *err);
/* All records of a table in key order; stops when fn returns non-zero and returns that. fn NULL: only look whether they are whole. -EBADMSG: one is damaged.
 * May be called from another thread than the writer's, but with `lossy`, where it takes damaged ones away, only while nothing is written. */
int store_scan(struct store *s, enum store_table t, int (*fn)(uint64_t key, const void *data, size_t len, void *arg), void *arg, struct error *err);
/* One record; *ret by malloc. -ENOENT; -EBADMSG: it is damaged. May be called from another thread than the writer's. */
int store_get(struct store *s, enum store_table t, uint64_t key, void **ret, size_t *ret_len, struct error *err);
/* Delete all records of a table (slurmctld -c). */
int store_clear(struct store *s, enum store_table t, struct error *err);
/* Memory store only: the next `n` commits fail (simulation, tests). */
void store_memory_fail(struct store *s, unsigned n);
void store_close(struct store *s);
