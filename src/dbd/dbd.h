/* dbd.h - inside slurmdbd: the database, what goes in (ingest.c), what comes out (query.c)
 *
 * One connection, one thread: calls are answered in the order they came. A DB_SEND is one transaction and is answered when it is on disk. User text
 * reaches SQL only as bound values. Memory of a query lives until its reply is packed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sqlite3.h>

#include "base/error.h"
#include "proto/accounting.pb-c.h"
#include "proto/assoc.pb-c.h"
#include "proto/job.pb-c.h"

enum db_statement { ST_BEGIN, ST_COMMIT, ST_ROLLBACK, ST_CLUSTER_ADD, ST_CLUSTER_GET, ST_CLUSTER_SEQ, ST_JOB_PUT, ST_JOB_EXACT, ST_JOB_LATEST, ST_STEP_PUT, ST_STEPS_OF,
	ST_ACCT_PUT, ST_ACCT_DROP, ST_ACCT_LIST, ST_ACCT_GET, ST_ACCT_HAS, ST_ACCT_SAME, ST_ACCT_ID, ST_ACCT_NEXT, ST_TXN_ADD, ST_TXN_LAST, ST_ACTIVE, ST_COUNT };
struct db {
	sqlite3 *sql;
	char *path;
	sqlite3_stmt *st[ST_COUNT];
};

/* Opens or makes the file (0600), brings its schema to our version. */
int db_open(const char *path, struct db **ret, struct error *err);
void db_close(struct db *d);
/* The schema's version, and the version this program knows. */
int db_version(struct db *d);
int db_version_known(void);
/* That of a file, which is only looked at. -ENOENT: it cannot be opened. */
int db_version_of(const char *path, int *ret, struct error *err);
/* Down to an older schema, by the steps the file itself carries. */
int db_migrate_down(struct db *d, int version, struct error *err);
int db_fail(struct db *d, struct error *err);
/* A statement ready to be bound. */
sqlite3_stmt *db_ready(struct db *d, enum db_statement s);
/* Runs a statement that gives no rows, and resets it. */
int db_run(struct db *d, sqlite3_stmt *st, struct error *err);
void db_bind_text(sqlite3_stmt *st, int at, const char *text);  /* NULL: SQL NULL */

/* ingest.c: all events of a request in one transaction. *ret_seq: the highest number that is on disk now. */
int ingest(struct db *d, const Pb__DbdSendReq *req, uint64_t *ret_seq, struct error *err);

/* query.c: jobs that pass; freed with query_free. only_uid: who may see only his own (UINT32_MAX: all). */
struct query_result { Pb__DbdJob **job; size_t n, cap; };
int query_jobs(struct db *d, const Pb__DbdJobsReq *req, uint32_t only_uid, struct query_result *ret, struct error *err);
void query_free(struct query_result *r);

/* acct.c: QOS, accounts, users, associations, clusters */
uint64_t acct_version(struct db *d);
/* All there is (associations: of one cluster, NULL: of all); freed with free_unpacked. */
int acct_snapshot(struct db *d, const char *cluster, Pb__AcctSnapshot **ret, struct error *err);
/* All changes or none. -EAGAIN: the version is not that of the request any more. */
int acct_change(struct db *d, const Pb__AcctSetReq *req, const char *actor, uint64_t *ret_version, struct error *err);
/* The slurmctld of a cluster says where it is; a cluster not known yet gets its account root. */
int acct_cluster_seen(struct db *d, const Pb__ClusterRecord *m, bool *ret_new, struct error *err);
int acct_begin(struct db *d, struct error *err);   /* a new database: QOS normal, account and user root */
bool acct_coordinator_may(struct db *d, const char *user, const Pb__AcctSetReq *q); /* all of it, as coordinator of accounts */
uint32_t acct_admin_level(struct db *d, const char *user);
