/* damage_test.c - proves that no damage to the state file is taken for state: a bit flipped in a record, a record in another's place, a log cut off or
 * changed at any frame, an old copy put back. And that what is refused can be opened `lossy`, and is whole from then on. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "store/store.h"
#include "store/testing.h"

#define FRAME (4096 + 24)
#define LOG_HEAD 32
#define COMMITS 6

static char copy[112];

static int remove_dir(void **state)
{
	char cmd[128];
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd);
}

static int make_both(void **state)
{
	int rc = make_dir(state);
	snprintf(copy, sizeof copy, "%s/copy.db", dir);
	return rc;
}

static void copy_all(void)
{
	char cmd[900];
	snprintf(cmd, sizeof cmd, "rm -f %s*; for e in '' -wal .lock; do if [ -e %s$e ]; then cp %s$e %s$e || exit 1; fi; done", copy, file, file, copy);
	assert_int_equal(system(cmd), 0);
}

static void sql(const char *path, const char *text)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

static int count(uint64_t key, const void *data, size_t len, void *arg)
{
	(void)key, (void)data, (void)len;
	(*(int *)arg)++;
	return 0;
}

static int scan(struct store *s, enum store_table t, struct error *err)
{
	int n = 0, rc = store_scan(s, t, count, &n, err);
	return rc ? rc : n;
}

/* Where the bytes stand in the file, -1: nowhere. */
static long find(const char *path, const char *bytes, size_t len)
{
	int fd = open(path, O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);
	char *all = xmalloc((size_t)size);
	assert_int_equal(pread(fd, all, (size_t)size, 0), size);
	char *at = memmem(all, (size_t)size, bytes, len);
	long found = at ? at - all : -1;
	free(all);
	close(fd);
	return found;
}

static void flip(const char *path, long at, unsigned bit)
{
	unsigned char c;
	int fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= (unsigned char)(1u << bit);
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
	close(fd);
}

static void refused(enum store_table t, const char *what, uint64_t key)
{
	struct store *s = open_it(copy);
	struct error err = { 0 };
	void *data;
	size_t len;
	assert_int_equal(scan(s, t, &err), -EBADMSG);
	assert_non_null(strstr(err.line, what));
	assert_int_equal(store_scan(s, t, NULL, NULL, &err), -EBADMSG);
	assert_int_equal(store_get(s, t, key, &data, &len, &err), -EBADMSG);
	assert_non_null(strstr(err.line, what));
	store_close(s);
	assert_int_equal(store_open_sqlite(copy, true, &s, &err), 0);
	assert_int_equal(scan(s, t, &err), 1);               /* the other one */
	store_close(s);
	s = open_it(copy);
	assert_int_equal(scan(s, t, &err), 1);
	store_close(s);
}

/* In every table, in small records and in those that take several pages, at both ends and between. */
static void test_flipped_bits(void **state)
{
	static const char *const name[] = { NULL, "job", "script", "node", "part", "step", "dbd_queue", "resv" };
	char big[10000], small[] = "a small record, that is found in the file by these words", what[64], log[160];
	struct store *s = open_it(file);
	struct error err;
	for (int t = STORE_JOB; t < STORE_TABLES; t++) {
		for (size_t i = 0; i < sizeof big; i++)
			big[i] = (char)(rand() | 1);
		snprintf(small + 2, 3, "%02d", t);
		small[4] = ' ';
		struct store_put p[] = { { (enum store_table)t, 4711, big, sizeof big, false }, { (enum store_table)t, 4712, small, sizeof small, false } };
		assert_int_equal(store_commit(s, p, 2, &err), 0);
		if (t != STORE_JOB && t != STORE_RESV)
			continue;
		store_close(s);
		for (int k = 0; k < 4; k++) {
			copy_all();
			snprintf(log, sizeof log, "%s-wal", copy);
			unlink(log);                                             /* closed in order: all is in the file, though pages may stand in the log as well */
			const char *bytes = k < 3 ? big + (size_t)k * 4900 : small;       /* 4900: never across the end of a page of the chain, or not found and seen */
			long at = find(copy, bytes, 32);
			assert_true(at > 0);
			flip(copy, at + k, (unsigned)k * 2);
			snprintf(what, sizeof what, "record %d in table %s is damaged", k < 3 ? 4711 : 4712, name[t]);
			refused((enum store_table)t, what, k < 3 ? 4711 : 4712);
		}
		s = open_it(file);
	}
	for (int t = STORE_JOB; t < STORE_TABLES; t++)
		assert_int_equal(scan(s, (enum store_table)t, &err), 2);
	store_close(s);
}

static void test_changed_by_hand(void **state)
{
	static const struct { const char *sql, *what; uint64_t key; } hand[] = {
		{ "UPDATE job SET data=x'00' WHERE key=1", "record 1 in table job is damaged", 1 }, { "UPDATE job SET key=7 WHERE key=1", "record 7 in table job is damaged", 7 },
		{ "UPDATE job SET sum=NULL WHERE key=2", "record 2 in table job is damaged", 2 }, { "UPDATE job SET data=(SELECT data FROM job WHERE key=2) WHERE key=1", "record 1 in", 1 },
		{ "INSERT INTO job(key, data) VALUES(9, x'01'); DELETE FROM job WHERE key=1", "record 9 in table job is damaged", 9 },
	};
	struct store *s = open_it(file);
	struct store_put p[] = { { STORE_JOB, 1, "one", 3, false }, { STORE_JOB, 2, "two", 3, false } };
	struct error err;
	assert_int_equal(store_commit(s, p, 2, &err), 0);
	store_close(s);
	for (size_t i = 0; i < sizeof hand / sizeof *hand; i++) {
		copy_all();
		sql(copy, hand[i].sql);
		refused(STORE_JOB, hand[i].what, hand[i].key);
	}
}

/* A file of the version before is read as it is, and has sums from then on. */
static void test_older_file(void **state)
{
	struct store *s = open_it(file);
	struct store_put p[] = { { STORE_JOB, 1, "one", 3, false }, { STORE_SCRIPT, 2, "two", 3, false }, { STORE_META, STORE_META_NEXT_JOB_ID, "next", 4, false } };
	struct error err;
	sqlite3 *db;
	sqlite3_stmt *st;
	void *data;
	size_t len;
	assert_int_equal(store_commit(s, p, 3, &err), 0);
	store_close(s);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT down FROM migration WHERE version=3", -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	char *down = xstrdup((const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	assert_int_equal(sqlite3_exec(db, down, NULL, NULL, NULL), SQLITE_OK);
	free(down);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM migration WHERE version=3; UPDATE meta SET data=CAST('2' AS BLOB) WHERE key=1; INSERT INTO job VALUES(3, x'33')",
				      NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	s = open_it(file);
	assert_int_equal(scan(s, STORE_JOB, &err), 2);
	assert_int_equal(store_get(s, STORE_META, STORE_META_NEXT_JOB_ID, &data, &len, &err), 0);
	assert_memory_equal(data, "next", 4);
	free(data);
	store_close(s);
	sql(file, "UPDATE job SET data=x'34' WHERE key=3");
	s = open_it(file);
	assert_int_equal(scan(s, STORE_JOB, &err), -EBADMSG);
	store_close(s);
}

/* The file as kill -9 leaves it after COMMITS commits, all of them in the log; its length in frames. */
static long killed(void)
{
	struct stat st;
	char log[160];
	struct error err;
	store_close(open_it(file));
	struct store *s = open_it(file);
	for (uint64_t i = 1; i <= COMMITS; i++) {
		struct store_put p = { STORE_JOB, i, "acknowledged", 12, false };
		assert_int_equal(store_commit(s, &p, 1, &err), 0);
	}
	copy_all();
	store_close(s);
	snprintf(log, sizeof log, "%s-wal", copy);
	assert_int_equal(stat(log, &st), 0);
	snprintf(file, sizeof file, "%s/killed.db", dir);
	char cmd[600];
	snprintf(cmd, sizeof cmd, "for e in '' -wal .lock; do mv %s$e %s$e || exit 1; done", copy, file);
	assert_int_equal(system(cmd), 0);
	return (st.st_size - LOG_HEAD) / FRAME;
}

/* Either nothing is missing, or the file is refused until that is accepted; then it goes on. */
static bool whole_or_refused(void)
{
	struct store *s;
	struct error err = { 0 };
	struct store_put p = { STORE_JOB, 100, "later", 5, false };
	int rc = store_open_sqlite(copy, false, &s, &err);
	if (!rc) {
		assert_int_equal(scan(s, STORE_JOB, &err), COMMITS);
		store_close(s);
		return true;
	}
	assert_int_equal(rc, -EBADMSG);
	assert_non_null(strstr(err.line, "missing"));
	assert_int_equal(store_open_sqlite(copy, true, &s, &err), 0);
	assert_in_range(scan(s, STORE_JOB, &err), 0, COMMITS - 1);
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	store_close(s);
	store_close(open_it(copy));
	return false;
}

static void test_log_cut_off(void **state)
{
	char log[160];
	long frames = killed();
	int whole = 0, missed = 0;
	snprintf(log, sizeof log, "%s-wal", copy);
	for (long cut = -1; cut < frames && whole < 3; cut++) {
		copy_all();
		assert_int_equal(truncate(log, cut < 0 ? 0 : LOG_HEAD + cut * FRAME), 0);
		bool is_whole = whole_or_refused();
		whole += is_whole;
		missed += !is_whole;
	}
	assert_in_range(missed, COMMITS, 100);
	assert_int_equal(whole, 3);                          /* beyond the last commit there is only room */
}

static void test_log_changed(void **state)
{
	char log[160];
	int whole = 0, missed = 0;
	(void)killed();
	snprintf(log, sizeof log, "%s-wal", copy);
	for (long frame = 0; whole < 3; frame++) {
		copy_all();
		flip(log, LOG_HEAD + frame * FRAME + 24 + 100, 3);
		bool is_whole = whole_or_refused();
		whole += is_whole;
		missed += !is_whole;
	}
	assert_in_range(missed, COMMITS, 100);
}

static void test_old_copy(void **state)
{
	struct error err;
	struct store *s = open_it(file);
	struct store_put p = { STORE_JOB, 1, "one", 3, false };
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	store_close(s);
	copy_all();
	s = open_it(file);
	p.key = 2;
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	p.key = 1;
	p.remove = true;
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	store_close(s);
	char cmd[400];
	snprintf(cmd, sizeof cmd, "rm -f %s-wal; cp %s %s", file, copy, file);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(store_open_sqlite(file, false, &s, &err), -EBADMSG);
	assert_non_null(strstr(err.line, "its last 2 changes are missing"));
	assert_int_equal(store_open_sqlite(file, true, &s, &err), 0);
	assert_int_equal(scan(s, STORE_JOB, &err), 1);
	store_close(s);
	snprintf(cmd, sizeof cmd, "cp %s %s.other", copy, copy);     /* a copy without its lock file knows of nothing it misses */
	assert_int_equal(system(cmd), 0);
	snprintf(cmd, sizeof cmd, "%s.other", copy);
	store_close(open_it(cmd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flipped_bits, make_both, remove_dir),
		cmocka_unit_test_setup_teardown(test_changed_by_hand, make_both, remove_dir),
		cmocka_unit_test_setup_teardown(test_older_file, make_both, remove_dir),
		cmocka_unit_test_setup_teardown(test_log_cut_off, make_both, remove_dir),
		cmocka_unit_test_setup_teardown(test_log_changed, make_both, remove_dir),
		cmocka_unit_test_setup_teardown(test_old_copy, make_both, remove_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
