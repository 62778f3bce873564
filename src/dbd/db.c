/* db.c - the accounting database: one SQLite file, its schema and migrations
 *
 * A job has a row for each attempt (a requeue begins another); its record is kept as the bytes slurmctld made, the columns beside it are what
 * queries filter by. WAL with synchronous=FULL: a commit is on disk when it returns. Every migration notes in the file how to undo it, so that an older
 * slurmdbd can be given the file back (-R). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "dbd/dbd.h"
#include "store/wal.h"

#define LOG_BYTES ((size_t)1000 * (4096 + 24) + (1 << 20)) /* what SQLite lets the log come to, and one batch more */

/* Tables of version 1 that version 2 replaced: made by its first migration, and again by the way back to it. */
#define ACCOUNTS_1 \
	"CREATE TABLE account(name TEXT PRIMARY KEY, descr TEXT NOT NULL DEFAULT '', org TEXT NOT NULL DEFAULT '', flags INTEGER NOT NULL DEFAULT 0," \
	" created INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0);" \
	"CREATE TABLE account_coord(account TEXT NOT NULL REFERENCES account(name), user TEXT NOT NULL, PRIMARY KEY(account, user));" \
	"CREATE TABLE user(name TEXT PRIMARY KEY, uid INTEGER, admin_level INTEGER NOT NULL DEFAULT 0, default_account TEXT, default_wckey TEXT," \
	" created INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0);" \
	"CREATE TABLE qos(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, descr TEXT NOT NULL DEFAULT '', priority INTEGER NOT NULL DEFAULT 0," \
	" flags INTEGER NOT NULL DEFAULT 0, limits TEXT NOT NULL DEFAULT '', preempt TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0);" \
	"INSERT INTO qos(id, name, descr, created) VALUES(1, 'normal', 'Normal QOS default', 0);" \
	"CREATE TABLE assoc(id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES cluster(id), account TEXT NOT NULL, user TEXT NOT NULL DEFAULT ''," \
	" partition TEXT NOT NULL DEFAULT '', parent INTEGER REFERENCES assoc(id), shares INTEGER NOT NULL DEFAULT 1, is_default INTEGER NOT NULL DEFAULT 0," \
	" default_qos INTEGER REFERENCES qos(id), qos TEXT NOT NULL DEFAULT '', limits TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL," \
	" deleted INTEGER NOT NULL DEFAULT 0, UNIQUE(cluster, account, user, partition));"

struct migration { const char *up, *down; };
static const struct migration migrations[] = {
	{ "CREATE TABLE cluster(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created INTEGER NOT NULL, control_host TEXT, control_port INTEGER,"
	  " seq INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0);"
	  "CREATE TABLE tres(id INTEGER PRIMARY KEY, type TEXT NOT NULL, name TEXT NOT NULL DEFAULT '', UNIQUE(type, name));"
	  "INSERT INTO tres(id, type, name) VALUES(1,'cpu',''),(2,'mem',''),(3,'energy',''),(4,'node',''),(5,'billing',''),(6,'fs','disk'),(7,'vmem',''),"
	  "(8,'pages',''),(1001,'gres','gpu'),(1002,'gres','gpumem'),(1003,'gres','gpuutil');"
	  ACCOUNTS_1
	  "CREATE TABLE wckey(id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES cluster(id), user TEXT NOT NULL, name TEXT NOT NULL,"
	  " is_default INTEGER NOT NULL DEFAULT 0, UNIQUE(cluster, user, name));"
	  "CREATE TABLE txn(id INTEGER PRIMARY KEY, time INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL, info TEXT NOT NULL DEFAULT '');"
	  "CREATE TABLE job(id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL REFERENCES cluster(id), job_id INTEGER NOT NULL, submit INTEGER NOT NULL,"
	  " restarts INTEGER NOT NULL, seq INTEGER NOT NULL, array_job_id INTEGER, array_task_id INTEGER, sluid TEXT, eligible INTEGER NOT NULL, start INTEGER NOT NULL,"
	  " end INTEGER NOT NULL, state INTEGER NOT NULL, requeued INTEGER NOT NULL DEFAULT 0, reason INTEGER NOT NULL DEFAULT 0, uid INTEGER NOT NULL, gid INTEGER NOT NULL,"
	  " user TEXT, account TEXT, partition TEXT, name TEXT, qos TEXT, wckey TEXT, nodes TEXT, assoc INTEGER, record BLOB NOT NULL,"
	  " UNIQUE(cluster, job_id, submit, restarts));"
	  "CREATE INDEX job_end ON job(end); CREATE INDEX job_array ON job(cluster, array_job_id); CREATE INDEX job_uid ON job(uid, end); CREATE INDEX job_sluid ON job(sluid);"
	  "CREATE TABLE step(job INTEGER NOT NULL REFERENCES job(id), step_id INTEGER NOT NULL, seq INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,"
	  " state INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY(job, step_id)) WITHOUT ROWID;",
	  "DROP TABLE step; DROP TABLE job; DROP TABLE txn; DROP TABLE wckey; DROP TABLE assoc; DROP TABLE qos; DROP TABLE user; DROP TABLE account_coord;"
	  "DROP TABLE account; DROP TABLE tres; DROP TABLE cluster;" },
	/* QOS, accounts, users and associations are records, as jobs are (acct.c): one table for all. */
	{ "DROP TABLE assoc; DROP TABLE qos; DROP TABLE user; DROP TABLE account_coord; DROP TABLE account;"
	  "CREATE TABLE acct(kind INTEGER NOT NULL, key TEXT NOT NULL, id INTEGER NOT NULL, record BLOB NOT NULL, deleted INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(kind, key)) WITHOUT ROWID;"
	  "DELETE FROM txn",
	  "DROP TABLE acct;"
	  ACCOUNTS_1 },
};
#define VERSION ((int)(sizeof migrations / sizeof *migrations))

static const char *const statements[ST_COUNT] = {
	[ST_BEGIN] = "BEGIN IMMEDIATE",
	[ST_COMMIT] = "COMMIT",
	[ST_ROLLBACK] = "ROLLBACK",
	[ST_CLUSTER_ADD] = "INSERT INTO cluster(name, created) VALUES(?, unixepoch()) ON CONFLICT DO NOTHING",
	[ST_CLUSTER_GET] = "SELECT id, seq FROM cluster WHERE name=?",
	[ST_CLUSTER_SEQ] = "UPDATE cluster SET seq=? WHERE id=?",
	[ST_JOB_PUT] = "INSERT INTO job(cluster, job_id, submit, restarts, seq, array_job_id, array_task_id, sluid, eligible, start, end, state, requeued, reason, uid, gid,"
		       " user, account, partition, name, qos, wckey, nodes, record)"
		       " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24)"
		       " ON CONFLICT(cluster, job_id, submit, restarts) DO UPDATE SET seq=?5, array_job_id=?6, array_task_id=?7, sluid=?8, eligible=?9, start=?10, end=?11,"
		       " state=?12, requeued=?13, reason=?14, uid=?15, gid=?16, user=?17, account=?18, partition=?19, name=?20, qos=?21, wckey=?22, nodes=?23, record=?24"
		       " WHERE ?5>=seq",
	[ST_JOB_EXACT] = "SELECT id FROM job WHERE cluster=? AND job_id=? AND submit=? AND start=? ORDER BY restarts DESC LIMIT 1",
	[ST_JOB_LATEST] = "SELECT id FROM job WHERE cluster=? AND job_id=? ORDER BY submit DESC, restarts DESC LIMIT 1",
	[ST_STEP_PUT] = "INSERT INTO step(job, step_id, seq, start, end, state, record) VALUES(?1,?2,?3,?4,?5,?6,?7)"
			" ON CONFLICT(job, step_id) DO UPDATE SET seq=?3, start=?4, end=?5, state=?6, record=?7 WHERE ?3>=seq",
	[ST_ACCT_PUT] = "INSERT INTO acct(kind, key, id, record) VALUES(?1,?2,?3,?4) ON CONFLICT(kind, key) DO UPDATE SET id=?3, record=?4, deleted=0",
	[ST_ACCT_DROP] = "UPDATE acct SET deleted=1 WHERE kind=? AND key=?",
	[ST_ACCT_LIST] = "SELECT kind, record FROM acct WHERE NOT deleted ORDER BY kind, id, key",
	[ST_ACCT_GET] = "SELECT record FROM acct WHERE kind=? AND key=? AND NOT deleted",
	[ST_ACCT_HAS] = "SELECT 1 FROM acct WHERE kind=? AND key=? AND NOT deleted",
	[ST_ACCT_SAME] = "SELECT 1 FROM acct WHERE kind=? AND key=? AND record=? AND NOT deleted",
	[ST_ACCT_ID] = "SELECT id FROM acct WHERE kind=? AND key=?",
	[ST_ACCT_NEXT] = "SELECT coalesce(max(id), 0) + 1 FROM acct WHERE kind=?",
	[ST_TXN_ADD] = "INSERT INTO txn(time, actor, action, target) VALUES(unixepoch(),?,?,?)",
	[ST_ACTIVE] = "SELECT j.job_id, j.qos FROM job j JOIN cluster c ON c.id = j.cluster WHERE c.name = ? AND lower(j.account) = lower(?) AND j.user = ? AND j.state < 3 AND NOT j.requeued AND j.end = 0 LIMIT 1",
	[ST_TXN_LAST] = "SELECT coalesce(max(id), 0) FROM txn",
	[ST_STEPS_OF] = "SELECT record FROM step WHERE job=? ORDER BY step_id", /* special steps have negative numbers: they come first */
};

int db_fail(struct db *d, struct error *err)
{
	int code = sqlite3_errcode(d->sql);
	return error_set(err, code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? EBADMSG : ESLURM_STORE_FULL, "%s: %s", d->path, sqlite3_errmsg(d->sql));
}

static int exec(struct db *d, const char *sql, struct error *err)
{
	return sqlite3_exec(d->sql, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_fail(d, err);
}

int db_version_known(void) { return VERSION; }

int db_version_of(const char *path, int *ret, struct error *err)
{
	struct db d = { 0 };
	int rc = sqlite3_open_v2(path, &d.sql, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK ? 0 : error_set(err, ENOENT, "%s: %s", path, sqlite3_errmsg(d.sql));
	*ret = rc ? 0 : db_version(&d);
	sqlite3_close(d.sql);
	return rc;
}

int db_version(struct db *d)
{
	sqlite3_stmt *st;
	int v = 0;
	if (sqlite3_prepare_v2(d->sql, "SELECT max(version) FROM migration", -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		v = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return v;
}

/* One step up or down, in a transaction of its own. */
static int migrate_up(struct db *d, int version, struct error *err)
{
	const struct migration *m = &migrations[version - 1];
	char *note = sqlite3_mprintf("INSERT INTO migration(version, down, made) VALUES(%d, %Q, unixepoch())", version, m->down);
	int rc = exec(d, "BEGIN IMMEDIATE", err);
	if (!rc)
		rc = exec(d, m->up, err);
	if (!rc)
		rc = exec(d, note, err);
	sqlite3_free(note);
	if (rc) {
		(void)sqlite3_exec(d->sql, "ROLLBACK", NULL, NULL, NULL);
		return rc;
	}
	return exec(d, "COMMIT", err);
}

int db_migrate_down(struct db *d, int version, struct error *err)
{
	for (int v = db_version(d); v > version; v--) {
		sqlite3_stmt *st = NULL;
		char *down = NULL, *forget = sqlite3_mprintf("DELETE FROM migration WHERE version=%d", v);
		if (sqlite3_prepare_v2(d->sql, "SELECT down FROM migration WHERE version=?", -1, &st, NULL) == SQLITE_OK) {
			sqlite3_bind_int(st, 1, v);
			if (sqlite3_step(st) == SQLITE_ROW)
				down = xstrdup((const char *)sqlite3_column_text(st, 0));
		}
		sqlite3_finalize(st);
		int rc = down ? exec(d, "BEGIN IMMEDIATE", err) : error_set(err, EBADMSG, "%s: no way back from schema version %d", d->path, v);
		if (!rc)
			rc = exec(d, down, err);
		if (!rc)
			rc = exec(d, forget, err);
		if (!rc)
			rc = exec(d, "COMMIT", err);
		free(down);
		sqlite3_free(forget);
		if (rc)
			return rc;
	}
	return 0;
}

static int schema_prepare(struct db *d, struct error *err)
{
	int rc = exec(d, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA cache_size=-65536;"
		      "CREATE TABLE IF NOT EXISTS migration(version INTEGER PRIMARY KEY, down TEXT NOT NULL, made INTEGER NOT NULL)", err);
	int have = rc ? 0 : db_version(d);
	if (!rc && have > VERSION) {
		rc = error_set(err, EBADMSG, "%s has schema version %d, this slurmdbd knows %d", d->path, have, VERSION);
		error_hint(err, "run the newer slurmdbd once with -R %d to take it back", VERSION);
	}
	for (int v = have + 1; !rc && v <= VERSION; v++)
		rc = migrate_up(d, v, err);
	return rc;
}

int db_open(const char *path, struct db **ret, struct error *err)
{
	struct db *d = xcalloc(1, sizeof *d);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;
	d->path = xstrdup(path);
	if (fd < 0)
		rc = error_set(err, errno, "cannot open accounting file %s: %s", path, strerror(errno));
	else
		close(fd);
	if (!rc && sqlite3_open_v2(path, &d->sql, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		rc = db_fail(d, err);
	if (!rc) {
		sqlite3_busy_timeout(d->sql, 10000);
		rc = schema_prepare(d, err);
	}
	for (int i = 0; !rc && i < ST_COUNT; i++)
		if (sqlite3_prepare_v3(d->sql, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &d->st[i], NULL) != SQLITE_OK)
			rc = db_fail(d, err);
	if (rc) {
		db_close(d);
		return rc;
	}
	wal_reserve(d->sql, LOG_BYTES);
	if ((rc = acct_begin(d, err))) {
		db_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void db_close(struct db *d)
{
	if (!d)
		return;
	for (int i = 0; i < ST_COUNT; i++)
		sqlite3_finalize(d->st[i]);
	sqlite3_close(d->sql);
	free(d->path);
	free(d);
}

sqlite3_stmt *db_ready(struct db *d, enum db_statement s)
{
	sqlite3_reset(d->st[s]);
	sqlite3_clear_bindings(d->st[s]);
	return d->st[s];
}

int db_run(struct db *d, sqlite3_stmt *st, struct error *err)
{
	int got = sqlite3_step(st), rc = got == SQLITE_DONE || got == SQLITE_ROW ? 0 : db_fail(d, err);
	sqlite3_reset(st);
	return rc;
}

void db_bind_text(sqlite3_stmt *st, int at, const char *text)
{
	if (text)
		sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, at);
}
