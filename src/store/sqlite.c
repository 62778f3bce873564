/* sqlite.c - the store in one SQLite file
 *
 * WAL with synchronous=FULL: one fdatasync a commit, and the commit is on disk when it returns. Two connections: the writer's, and
 * one for readers under a mutex (and one of each scan's own); WAL keeps them out of each other's way. A lock file beside the database keeps a second controller away
 * (it would corrupt nothing, but would serve the same jobs). Network file systems are refused: their locks and syncs promise too little.
 * Schema: table by table (key INTEGER PRIMARY KEY, data BLOB, sum INTEGER). sum is a hash of table, key and data: a record that a disk or somebody's hand has
 * changed is refused by name, not believed. The version stands in META; the table `migration` keeps for every step
 * made the SQL that undoes it, so that an older program can take a newer file back to the version it knows.
 * META notes that the file is open. Then there is a log beside it, also after kill -9; where it is gone, commits are gone, and the file is refused.
 * META counts the commits, and the lock file notes the last one that was acknowledged (written after it, never synced: it may tell too little after a power
 * cut, never too much). A file that knows fewer has lost some (its log was cut off, or an old copy was put back), and is refused. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <sodium.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/str.h"
#include "store/store_impl.h"
#include "store/wal.h"

#define WAL_PAGES 4000          /* checkpoint after so many: 16 MB, a few hundred milliseconds of full load */
#define WAL_BYTES ((size_t)WAL_PAGES * (4096 + 24) + 65536) /* pages with their frame heads, and the commit that crosses the mark */

static const char *const table_name[STORE_TABLES] = { "meta", "job", "script", "node", "part", "step", "dbd_queue", "resv" };

#define SUMS 3                  /* the version since which records have sums */
struct migration { int version; const char *up, *down; };
static const struct migration migrations[] = {
	{ 1, "CREATE TABLE job(key INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	     "CREATE TABLE script(key INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	     "CREATE TABLE node(key INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	     "CREATE TABLE part(key INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	     "CREATE TABLE step(key INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	     "CREATE TABLE dbd_queue(key INTEGER PRIMARY KEY, data BLOB NOT NULL);",
	     "DROP TABLE job; DROP TABLE script; DROP TABLE node; DROP TABLE part; DROP TABLE step; DROP TABLE dbd_queue;" },
	{ 2, "CREATE TABLE resv(key INTEGER PRIMARY KEY, data BLOB NOT NULL);", "DROP TABLE resv;" },
#define ADD_SUM(name, number) "ALTER TABLE " name " ADD COLUMN sum INTEGER; UPDATE " name " SET sum=record_sum(" number ",key,data);"
#define DROP_SUM(name) "ALTER TABLE " name " DROP COLUMN sum;"
	{ SUMS, ADD_SUM("meta", "0") ADD_SUM("job", "1") ADD_SUM("script", "2") ADD_SUM("node", "3") ADD_SUM("part", "4") ADD_SUM("step", "5") ADD_SUM("dbd_queue", "6")
	     ADD_SUM("resv", "7"), DROP_SUM("meta") DROP_SUM("job") DROP_SUM("script") DROP_SUM("node") DROP_SUM("part") DROP_SUM("step") DROP_SUM("dbd_queue") DROP_SUM("resv") },
};
#define SCHEMA_VERSION ((int)(sizeof migrations / sizeof *migrations))

struct sqlite_store {
	struct store base;
	char *path, *vfs;        /* vfs NULL: SQLite's own */
	int lock_fd;
	bool whole, lossy;
	uint64_t commits;        /* made in this file, ever */
	sqlite3 *writer, *reader;
	pthread_mutex_t read_lock;
	sqlite3_stmt *put[STORE_TABLES], *del[STORE_TABLES], *get[STORE_TABLES], *begin, *commit, *rollback;
};

/* SipHash, keyed by the record's place, so that a record in another's place is noticed as well. */
static sqlite3_int64 record_sum(uint64_t table, uint64_t key, const void *data, size_t len)
{
	uint64_t place[2] = { table, key };
	sqlite3_int64 sum;
	_Static_assert(sizeof place == crypto_shorthash_KEYBYTES && sizeof sum == crypto_shorthash_BYTES, "SipHash-2-4");
	crypto_shorthash((unsigned char *)&sum, data, len, (const unsigned char *)place);
	return sum;
}

/* The same in SQL. */
static void sql_record_sum(sqlite3_context *c, int n, sqlite3_value **v)
{
	(void)n;
	const void *data = sqlite3_value_blob(v[2]);
	sqlite3_result_int64(c, record_sum((uint64_t)sqlite3_value_int64(v[0]), (uint64_t)sqlite3_value_int64(v[1]), data ? data : "", (size_t)sqlite3_value_bytes(v[2])));
}

/* A row of key, data, sum. */
static bool row_is_whole(sqlite3_stmt *st, enum store_table t)
{
	const void *data = sqlite3_column_blob(st, 1);
	sqlite3_int64 sum = record_sum(t, (uint64_t)sqlite3_column_int64(st, 0), data ? data : "", (size_t)sqlite3_column_bytes(st, 1));
	return sqlite3_column_type(st, 2) == SQLITE_INTEGER && sqlite3_column_int64(st, 2) == sum;
}

static int fail(struct sqlite_store *s, sqlite3 *db, struct error *err)
{
	int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
	int rc = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ? EBADMSG : ESLURM_STORE_FULL;
	return error_set(err, rc, "state file %s: %s", s->path, db ? sqlite3_errmsg(db) : "out of memory");
}

static int exec(struct sqlite_store *s, sqlite3 *db, const char *sql, struct error *err)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(s, db, err);
}

static int check_file_system(const char *path, struct error *err)
{
	static const struct { unsigned magic; const char *name; } remote[] = {
		{ 0x6969, "NFS" }, { 0xFF534D42, "CIFS" }, { 0xFE534D42, "SMB2" }, { 0x517B, "SMB" }, { 0x0BD00BD0, "Lustre" },
		{ 0x47504653, "GPFS" }, { 0x00C36400, "Ceph" }, { 0x19830326, "BeeGFS" }, { 0x5346414F, "AFS" }, { 0x73757245, "Coda" },
		{ 0x01021997, "9p" }, { 0x7461636F, "OCFS2" }, { 0x01161970, "GFS2" }, { 0xAAD7AAEA, "PanFS" }, { 0x20030528, "OrangeFS" },
	};
	struct statfs fs;
	char *dir = xstrdup(path), *slash = strrchr(dir, '/');
	if (slash)
		*(slash == dir ? slash + 1 : slash) = 0;
	int rc = statfs(slash ? dir : ".", &fs) ? error_set(err, errno, "directory %s: %s", slash ? dir : ".", strerror(errno)) : 0;
	free(dir);
	for (size_t i = 0; !rc && i < sizeof remote / sizeof *remote; i++)
		if ((unsigned)fs.f_type == remote[i].magic) {
			rc = error_set(err, EREMOTE, "state file %s would be on a network file system (%s), which cannot keep it safe", path, remote[i].name);
			error_hint(err, "set StateSaveLocation to a directory on a local disk");
		}
	return rc;
}

static int take_lock(struct sqlite_store *s, struct error *err)
{
	char *name = xasprintf("%s.lock", s->path);
	s->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int rc = 0;
	if (s->lock_fd < 0)
		rc = error_set(err, errno, "cannot open %s: %s", name, strerror(errno));
	else if (daemon_lock(s->lock_fd))
		rc = error_set(err, EBUSY, "state file %s is in use by another slurmctld", s->path);
	free(name);
	return rc;
}

/* The file holds users' scripts and environments: nobody else reads it. SQLite gives its other files the same mode. */
static int make_private(struct sqlite_store *s, struct error *err)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;
	if (fd < 0 || fchmod(fd, 0600))
		rc = error_set(err, errno, "cannot open %s: %s", s->path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static int open_connection(struct sqlite_store *s, const char *vfs, sqlite3 **ret, struct error *err)
{
	char sql[128];
	if (sqlite3_open_v2(s->path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs) != SQLITE_OK)
		return fail(s, *ret, err);
	sqlite3_extended_result_codes(*ret, 0);
	sqlite3_busy_timeout(*ret, 10000);
	sqlite3_create_function(*ret, "record_sum", 3, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, sql_record_sum, NULL, NULL);
	snprintf(sql, sizeof sql, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=%d; PRAGMA cache_size=-8192", WAL_PAGES);
	return exec(s, *ret, sql, err);
}

/* A file with tables, but none of ours, is not made into a state file. */
static int check_ours(struct sqlite_store *s, struct error *err)
{
	sqlite3_stmt *st;
	const char *sql = "SELECT name FROM sqlite_master WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name='meta') LIMIT 1";
	if (sqlite3_prepare_v2(s->writer, sql, -1, &st, NULL) != SQLITE_OK)
		return fail(s, s->writer, err);
	int rc = 0;
	if (sqlite3_step(st) == SQLITE_ROW)
		rc = error_set(err, EBADMSG, "%s is no state file of slurmctld: it has a table %s", s->path, (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return rc;
}

static bool log_is_there(const struct sqlite_store *s, const char *vfs)
{
	sqlite3_vfs *v = sqlite3_vfs_find(vfs);
	char *name = xasprintf("%s-wal", s->path);
	int found = 0;
	if (v)
		v->xAccess(v, name, SQLITE_ACCESS_EXISTS, &found);
	free(name);
	return found != 0;
}

/* Was the file closed in order, or is its log there? (Asked before the log is made anew.) Then notes, in the file itself, that it is open. */
static int check_whole(struct sqlite_store *s, bool had_log, bool lossy, struct error *err)
{
	sqlite3_stmt *st;
	if (sqlite3_prepare_v2(s->writer, "SELECT 1 FROM meta WHERE key=? AND data=x'01'", -1, &st, NULL) != SQLITE_OK)
		return fail(s, s->writer, err);
	sqlite3_bind_int(st, 1, STORE_META_OPEN);
	bool was_open = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_finalize(st);
	if (was_open && !had_log) {
		if (!lossy)
			return error_set(err, EBADMSG, "state file %s was in use when slurmctld ended, and its log %s-wal is gone: jobs that were accepted are missing", s->path, s->path);
		log_error("the log of state file %s is gone: jobs that were accepted are missing", s->path);
	}
	char sql[160];
	snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta VALUES(%d, x'01', record_sum(0, %d, x'01')); PRAGMA wal_checkpoint(FULL)", STORE_META_OPEN, STORE_META_OPEN);
	return was_open ? 0 : exec(s, s->writer, sql, err);
}

/* The version in META; 0 for a new file. */
static int schema_version(struct sqlite_store *s, int *ret, struct error *err)
{
	sqlite3_stmt *st;
	int rc = exec(s, s->writer, "CREATE TABLE IF NOT EXISTS meta(key INTEGER PRIMARY KEY, data BLOB NOT NULL);"
		      "CREATE TABLE IF NOT EXISTS migration(version INTEGER PRIMARY KEY, down TEXT NOT NULL, made TEXT DEFAULT CURRENT_TIMESTAMP)", err);
	if (rc)
		return rc;
	if (sqlite3_prepare_v2(s->writer, "SELECT CAST(data AS INTEGER) FROM meta WHERE key=?", -1, &st, NULL) != SQLITE_OK)
		return fail(s, s->writer, err);
	sqlite3_bind_int(st, 1, STORE_META_SCHEMA);
	*ret = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
	sqlite3_finalize(st);
	return 0;
}

static int note_version(struct sqlite_store *s, int version, struct error *err)
{
	char sql[128];
	snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta(key, data) VALUES(%d, CAST('%d' AS BLOB))", STORE_META_SCHEMA, version);
	int rc = exec(s, s->writer, sql, err);
	if (rc || version < SUMS)
		return rc;
	snprintf(sql, sizeof sql, "UPDATE meta SET sum=record_sum(0, key, data) WHERE key=%d", STORE_META_SCHEMA);
	return exec(s, s->writer, sql, err);
}

static int migrate_up(struct sqlite_store *s, const struct migration *m, struct error *err)
{
	char *note = sqlite3_mprintf("INSERT INTO migration(version, down) VALUES(%d, %Q)", m->version, m->down);
	int rc = exec(s, s->writer, m->up, err);
	if (!rc)
		rc = exec(s, s->writer, note, err);
	sqlite3_free(note);
	return rc ? rc : note_version(s, m->version, err);
}

/* A newer program made this step and left the SQL that undoes it. */
static int migrate_down(struct sqlite_store *s, int version, struct error *err)
{
	sqlite3_stmt *st;
	char sql[128];
	if (sqlite3_prepare_v2(s->writer, "SELECT down FROM migration WHERE version=?", -1, &st, NULL) != SQLITE_OK)
		return fail(s, s->writer, err);
	sqlite3_bind_int(st, 1, version);
	char *down = sqlite3_step(st) == SQLITE_ROW ? xstrdup((const char *)sqlite3_column_text(st, 0)) : NULL;
	sqlite3_finalize(st);
	if (!down)
		return error_set(err, EBADMSG, "state file %s has schema version %d, newer than this program knows (%d), and no way back", s->path, version, SCHEMA_VERSION);
	int rc = exec(s, s->writer, down, err);
	free(down);
	snprintf(sql, sizeof sql, "DELETE FROM migration WHERE version=%d", version);
	if (!rc)
		rc = exec(s, s->writer, sql, err);
	return rc ? rc : note_version(s, version - 1, err);
}

static int migrate(struct sqlite_store *s, struct error *err)
{
	int version = 0, rc = exec(s, s->writer, "BEGIN IMMEDIATE", err);
	if (rc || (rc = check_ours(s, err)) || (rc = schema_version(s, &version, err)))
		goto out;
	for (; !rc && version > SCHEMA_VERSION; version--) {
		log_info("state file %s: going back from schema version %d", s->path, version);
		rc = migrate_down(s, version, err);
	}
	for (; !rc && version < SCHEMA_VERSION; version++)
		rc = migrate_up(s, &migrations[version], err);
out:
	if (!rc)
		return exec(s, s->writer, "COMMIT", err);
	(void)exec(s, s->writer, "ROLLBACK", NULL);
	return rc;
}

/* %s and %d of `fmt`: the table's name, and its number where the name has stood. */
static int prepare(struct sqlite_store *s, sqlite3 *db, sqlite3_stmt **ret, struct error *err, const char *fmt, int table)
{
	char *sql = sqlite3_mprintf(fmt, table_name[table], table);
	int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : fail(s, db, err);
}

static int prepare_all(struct sqlite_store *s, struct error *err)
{
	int rc = 0;
	for (int t = 0; t < STORE_TABLES && !rc; t++) {
		rc = prepare(s, s->writer, &s->put[t], err, "INSERT INTO %s VALUES(?1,?2,record_sum(%d,?1,?2)) ON CONFLICT(key) DO UPDATE SET data=excluded.data, sum=excluded.sum", t);
		if (!rc)
			rc = prepare(s, s->writer, &s->del[t], err, "DELETE FROM %s WHERE key=?1", t);
		if (!rc)
			rc = prepare(s, s->reader, &s->get[t], err, "SELECT key, data, sum FROM %s WHERE key=?1", t);
	}
	if (!rc)
		rc = prepare(s, s->writer, &s->begin, err, "BEGIN IMMEDIATE", 0);
	if (!rc)
		rc = prepare(s, s->writer, &s->commit, err, "COMMIT", 0);
	return rc ? rc : prepare(s, s->writer, &s->rollback, err, "ROLLBACK", 0);
}

static int run(sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);
	sqlite3_reset(st);
	return rc;
}

/* In the lock file: as much is on disk. */
static void note_commits(const struct sqlite_store *s)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%020llu\n", (unsigned long long)s->commits);
	if (pwrite(s->lock_fd, text, (size_t)n, 0) != n)
		log_debug("%s.lock: %s", s->path, strerror(errno));
}

/* Does the file know all commits that were acknowledged? */
static int check_commits(struct sqlite_store *s, struct error *err)
{
	char text[32] = "";
	unsigned long long noted = 0;
	uint64_t own = 0;
	void *data;
	size_t len;
	int rc = s->base.ops->get(&s->base, STORE_META, STORE_META_COMMITS, &data, &len, err);
	if (!rc) {
		memcpy(&own, data, len < sizeof own ? len : sizeof own);
		free(data);
	} else if (rc != -ENOENT && !s->lossy) {
		return rc;
	}
	if (pread(s->lock_fd, text, 21, 0) != 21 || text[20] != '\n' || (text[20] = 0, str_to_u64(text, 0, UINT64_MAX, &noted)))
		noted = 0;               /* a file that was copied without it, or of an older version */
	s->commits = own > noted ? own : noted;
	if (own >= noted)
		return 0;
	if (!s->lossy)
		return error_set(err, EBADMSG, "state file %s is older than what slurmctld has acknowledged: its last %llu changes are missing (its log was cut off, or an old copy was put back)",
				 s->path, noted - own);
	log_error("the last %llu changes of state file %s are missing", noted - own, s->path);
	return 0;
}

static int sqlite_commit(struct store *base, const struct store_put *put, size_t n, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)base;
	uint64_t number = s->commits + 1;
	const struct store_put count = { STORE_META, STORE_META_COMMITS, &number, sizeof number, false };
	if (run(s->begin) != SQLITE_DONE)
		return fail(s, s->writer, err);
	for (size_t i = 0; i <= n; i++) {
		const struct store_put *p = i < n ? &put[i] : &count;
		sqlite3_stmt *st = p->remove ? s->del[p->table] : s->put[p->table];
		sqlite3_bind_int64(st, 1, (sqlite3_int64)p->key);
		if (!p->remove)
			sqlite3_bind_blob64(st, 2, p->data ? p->data : "", p->len, SQLITE_STATIC);
		if (run(st) != SQLITE_DONE)
			goto failed;
	}
	if (run(s->commit) == SQLITE_DONE) {
		s->commits = number;
		note_commits(s);
		return 0;
	}
failed:;
	int rc = fail(s, s->writer, err);
	if (!sqlite3_get_autocommit(s->writer))
		(void)run(s->rollback);
	return rc;
}

/* A record that is not what was written: refused, or with -i taken away. */
static int damaged(struct sqlite_store *s, enum store_table t, uint64_t key, struct error *err)
{
	if (!s->lossy)
		return error_set(err, EBADMSG, "state file %s: record %llu in table %s is damaged", s->path, (unsigned long long)key, table_name[t]);
	log_error("state file %s: record %llu in table %s is damaged and left out", s->path, (unsigned long long)key, table_name[t]);
	sqlite3_bind_int64(s->del[t], 1, (sqlite3_int64)key);
	if (run(s->del[t]) != SQLITE_DONE)
		log_error("state file %s: %s", s->path, sqlite3_errmsg(s->writer));
	return 0;
}

static int sqlite_scan(struct store *base, enum store_table t, int (*fn)(uint64_t, const void *, size_t, void *), void *arg, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)base;
	sqlite3 *db = NULL;          /* its own: it takes long, and store_get goes on meanwhile */
	sqlite3_stmt *st = NULL;
	int rc = open_connection(s, s->vfs, &db, err), step = SQLITE_DONE;
	if (!rc)
		rc = prepare(s, db, &st, err, "SELECT key, data, sum FROM %s ORDER BY key", t);
	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW)
		if (row_is_whole(st, t))
			rc = fn ? fn((uint64_t)sqlite3_column_int64(st, 0), sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), arg) : 0;
		else
			rc = damaged(s, t, (uint64_t)sqlite3_column_int64(st, 0), err);
	if (!rc && step != SQLITE_DONE)
		rc = fail(s, db, err);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return rc;
}

static int sqlite_get(struct store *base, enum store_table t, uint64_t key, void **ret, size_t *ret_len, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)base;
	pthread_mutex_lock(&s->read_lock);
	sqlite3_stmt *st = s->get[t];
	sqlite3_bind_int64(st, 1, (sqlite3_int64)key);
	int step = sqlite3_step(st), rc = 0;
	if (step == SQLITE_ROW && !row_is_whole(st, t)) {
		rc = error_set(err, EBADMSG, "state file %s: record %llu in table %s is damaged", s->path, (unsigned long long)key, table_name[t]);
	} else if (step == SQLITE_ROW) {
		*ret_len = (size_t)sqlite3_column_bytes(st, 1);
		*ret = xmemdup(sqlite3_column_blob(st, 1), *ret_len);
	} else {
		rc = step == SQLITE_DONE ? error_set(err, ENOENT, "no record %llu in %s", (unsigned long long)key, table_name[t]) : fail(s, s->reader, err);
	}
	sqlite3_reset(st);
	pthread_mutex_unlock(&s->read_lock);
	return rc;
}

static int sqlite_clear(struct store *base, enum store_table t, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)base;
	char sql[64];
	snprintf(sql, sizeof sql, "DELETE FROM %s", table_name[t]);
	return exec(s, s->writer, sql, err);
}

static void sqlite_close(struct store *base)
{
	struct sqlite_store *s = (struct sqlite_store *)base;
	char sql[80];
	snprintf(sql, sizeof sql, "DELETE FROM meta WHERE key=%d", STORE_META_OPEN);
	if (s->whole)                /* closed in order: SQLite takes the log into the file and removes it */
		(void)exec(s, s->writer, sql, NULL);
	else if (s->writer)          /* refused: whoever looks into it finds it as it was */
		sqlite3_db_config(s->writer, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (!s->whole && s->reader)
		sqlite3_db_config(s->reader, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	for (int t = 0; t < STORE_TABLES; t++) {
		sqlite3_finalize(s->put[t]);
		sqlite3_finalize(s->del[t]);
		sqlite3_finalize(s->get[t]);
	}
	sqlite3_finalize(s->begin);
	sqlite3_finalize(s->commit);
	sqlite3_finalize(s->rollback);
	sqlite3_close(s->reader);
	sqlite3_close(s->writer);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	pthread_mutex_destroy(&s->read_lock);
	free(s->path);
	free(s->vfs);
	free(s);
}

static const struct store_ops sqlite_ops = { sqlite_commit, sqlite_scan, sqlite_get, sqlite_clear, sqlite_close };

int store_open_sqlite_vfs(const char *path, const char *vfs, size_t log_bytes, bool lossy, struct store **ret, struct error *err)
{
	struct sqlite_store *s = xcalloc(1, sizeof *s);
	s->base.ops = &sqlite_ops;
	s->path = xstrdup(path);
	s->vfs = xstrdup_null(vfs);
	s->lock_fd = -1;
	s->lossy = lossy;
	pthread_mutex_init(&s->read_lock, NULL);
	int rc = check_file_system(path, err);
	if (!rc)
		rc = take_lock(s, err);
	if (!rc)
		rc = make_private(s, err);
	bool had_log = log_is_there(s, vfs);
	if (!rc)
		rc = open_connection(s, vfs, &s->writer, err);
	if (!rc)
		rc = migrate(s, err);
	if (!rc)
		rc = check_whole(s, had_log, lossy, err);
	if (!rc)
		rc = open_connection(s, vfs, &s->reader, err);
	if (!rc)
		rc = prepare_all(s, err);
	if (!rc)
		rc = check_commits(s, err);
	if (rc) {
		sqlite_close(&s->base);
		return rc;
	}
	s->whole = true;
	wal_reserve(s->writer, log_bytes);
	*ret = &s->base;
	return 0;
}

int store_open_sqlite(const char *path, bool lossy, struct store **ret, struct error *err)
{
	return store_open_sqlite_vfs(path, NULL, WAL_BYTES, lossy, ret, err);
}
