/* store_test.c - proves that both stores keep, replace, remove and scan records; that a failed commit leaves nothing and may be repeated;
 * that a full disk is reported as such and is over when there is room; that a second opener is refused; that versions migrate both ways. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "store/store.h"
#include "store/testing.h"

static int remove_dir(void **state)
{
	char cmd[128];
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd);
}

static int collect(uint64_t key, const void *data, size_t len, void *arg)
{
	char *out = arg;
	sprintf(out + strlen(out), "%llu=%.*s ", (unsigned long long)key, (int)len, (const char *)data);
	return 0;
}

static void exercise(struct store *s)
{
	struct store_put one[] = { { STORE_JOB, 7, "seven", 5, false }, { STORE_JOB, 3, "three", 5, false }, { STORE_NODE, 3, "n", 1, false } };
	struct store_put two[] = { { STORE_JOB, 7, "SEVEN!", 6, false }, { STORE_JOB, 3, NULL, 0, true }, { STORE_JOB, 9, "", 0, false } };
	char seen[256] = "";
	void *data;
	size_t len;
	struct error err;
	assert_int_equal(store_commit(s, one, 3, &err), 0);
	assert_int_equal(store_scan(s, STORE_JOB, collect, seen, &err), 0);
	assert_string_equal(seen, "3=three 7=seven ");
	assert_int_equal(store_commit(s, two, 3, &err), 0);
	seen[0] = 0;
	assert_int_equal(store_scan(s, STORE_JOB, collect, seen, &err), 0);
	assert_string_equal(seen, "7=SEVEN! 9= ");
	assert_int_equal(store_get(s, STORE_JOB, 7, &data, &len, &err), 0);
	assert_int_equal(len, 6);
	free(data);
	assert_int_equal(store_get(s, STORE_JOB, 3, &data, &len, &err), -ENOENT);
	assert_int_equal(store_clear(s, STORE_JOB, &err), 0);
	assert_int_equal(store_get(s, STORE_JOB, 7, &data, &len, &err), -ENOENT);
}

static void test_memory(void **state)
{
	struct store *s = store_open_memory();
	struct store_put p = { STORE_JOB, 1, "x", 1, false };
	struct error err;
	void *data;
	size_t len;
	exercise(s);
	store_memory_fail(s, 1);
	assert_int_equal(store_commit(s, &p, 1, &err), -ESLURM_STORE_FULL);
	assert_int_equal(store_get(s, STORE_JOB, 1, &data, &len, &err), -ENOENT);
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	store_close(s);
}

static void test_sqlite(void **state)
{
	struct store *s = open_it(file), *other;
	struct store_put p = { STORE_JOB, 1, "kept", 4, false };
	struct error err;
	void *data;
	size_t len;
	exercise(s);
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	assert_int_equal(store_open_sqlite(file, false, &other, &err), -EBUSY);
	store_close(s);
	s = open_it(file);
	assert_int_equal(store_get(s, STORE_JOB, 1, &data, &len, &err), 0);
	assert_memory_equal(data, "kept", 4);
	free(data);
	store_close(s);
}

static void test_not_a_store(void **state)
{
	struct store *s;
	struct error err;
	FILE *f = fopen(file, "w");
	for (int i = 0; i < 1000; i++)
		fputs("this is no database\n", f);
	fclose(f);
	assert_int_equal(store_open_sqlite(file, false, &s, &err), -EBADMSG);
	assert_non_null(strstr(err.line, file));
	assert_int_equal(store_open_sqlite("/nonexistent/x.db", false, &s, &err), -ENOENT);
}

/* Another program's database is left as it is. */
static void test_foreign(void **state)
{
	struct store *s;
	struct error err;
	sqlite3 *db;
	unlink(file);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE job(id INTEGER PRIMARY KEY, record BLOB); INSERT INTO job VALUES(1, 'x')", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(store_open_sqlite(file, false, &s, &err), -EBADMSG);
	assert_non_null(strstr(err.line, "no state file"));
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_not_equal(sqlite3_exec(db, "SELECT * FROM meta", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	unlink(file);
}

/* Killed with commits in the log: they are there again with it; without it the file is refused, or taken as it is where that is asked for. */
static void test_log_lost(void **state)
{
	struct store_put p = { STORE_JOB, 7, "in the log", 10, false };
	struct store *s;
	struct error err;
	char log[160], copy[160], shell[600];
	void *data;
	size_t len;
	snprintf(log, sizeof log, "%s-wal", file);
	snprintf(copy, sizeof copy, "%s.copy", file);
	s = open_it(file);
	store_close(s);
	s = open_it(file);
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	snprintf(shell, sizeof shell, "cp %s %s && cp %s %s-wal", file, copy, log, copy);     /* as kill -9 leaves them */
	assert_int_equal(system(shell), 0);
	store_close(s);
	assert_int_equal(store_open_sqlite(copy, false, &s, &err), 0);
	assert_int_equal(store_get(s, STORE_JOB, 7, &data, &len, &err), 0);
	free(data);
	store_close(s);
	assert_int_equal(store_open_sqlite(copy, false, &s, &err), 0);      /* closed in order: there is no log, and none is missed */
	store_close(s);
	s = open_it(file);
	snprintf(shell, sizeof shell, "cp %s %s && rm -f %s-wal %s-shm", file, copy, copy, copy);
	assert_int_equal(system(shell), 0);
	store_close(s);
	assert_int_equal(store_open_sqlite(copy, false, &s, &err), -EBADMSG);
	assert_non_null(strstr(err.line, "is gone"));
	assert_int_equal(store_open_sqlite(copy, false, &s, &err), -EBADMSG);
	assert_int_equal(store_open_sqlite(copy, true, &s, &err), 0);
	store_close(s);
	unlink(copy);
}

/* A newer program left version 4 and how to undo it: this one takes the file back to what it knows, and forward is made once. */
static void test_migrate_back(void **state)
{
	struct store *s = open_it(file);
	struct store_put p = { STORE_JOB, 5, "job", 3, false };
	struct error err;
	sqlite3 *db;
	void *data;
	size_t len;
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	store_close(s);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "ALTER TABLE job ADD COLUMN extra TEXT; INSERT INTO migration(version, down) VALUES(4, 'ALTER TABLE job DROP COLUMN extra');"
				      "UPDATE meta SET data=CAST('4' AS BLOB) WHERE key=1", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	s = open_it(file);
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	assert_int_equal(store_get(s, STORE_JOB, 5, &data, &len, &err), 0);
	free(data);
	store_close(s);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE meta SET data=CAST('5' AS BLOB) WHERE key=1", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(store_open_sqlite(file, false, &s, &err), -EBADMSG);
	assert_non_null(strstr(err.line, "newer"));
}

/* The log has its room from the start, keeps it, and what a commit writes goes into it. */
static void test_log_room(void **state)
{
	struct error err;
	struct stat before, after;
	char log[160], data[4000] = { 1 };
	snprintf(log, sizeof log, "%s-wal", file);
	struct store *s = open_it(file);
	assert_int_equal(stat(log, &before), 0);
	assert_true(before.st_blocks * 512 > 16000000);
	for (uint64_t key = 1; key <= 50; key++) {
		struct store_put p = { STORE_JOB, key, data, sizeof data, false };
		assert_int_equal(store_commit(s, &p, 1, &err), 0);
	}
	assert_int_equal(stat(log, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	store_close(s);
	assert_int_equal(stat(log, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	size_t len;
	void *found;
	s = open_it(file);
	assert_int_equal(store_get(s, STORE_JOB, 50, &found, &len, &err), 0);
	assert_int_equal(len, sizeof data);
	free(found);
	store_close(s);
}

/* A limit on file size stands for a full disk where we may not mount one: writes beyond it fail the same way. */
static void test_full(void **state)
{
	struct store *s = open_it(file);
	struct error err;
	struct rlimit old, low = { 300 * 1024, RLIM_INFINITY };
	char *big = xcalloc(1, 64 * 1024);
	int rc = 0;
	uint64_t key = 0;
	void *data;
	size_t len;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &low);
	while (!rc && key < 100) {
		struct store_put p[] = { { STORE_SCRIPT, key, big, 64 * 1024, false }, { STORE_JOB, key, "j", 1, false } };
		rc = store_commit(s, p, 2, &err);
		key += !rc;
	}
	assert_int_equal(rc, -ESLURM_STORE_FULL);
	assert_in_range(key, 1, 99);
	assert_int_equal(store_get(s, STORE_JOB, key, &data, &len, &err), -ENOENT);
	setrlimit(RLIMIT_FSIZE, &old);
	struct store_put p[] = { { STORE_SCRIPT, key, big, 64 * 1024, false }, { STORE_JOB, key, "j", 1, false } };
	assert_int_equal(store_commit(s, p, 2, &err), 0);
	store_close(s);
	s = open_it(file);
	for (uint64_t k = 0; k <= key; k++) {
		assert_int_equal(store_get(s, STORE_JOB, k, &data, &len, &err), 0);
		free(data);
	}
	store_close(s);
	free(big);
}

/* The same on a real small disk, where root can mount one. */
static void test_full_tmpfs(void **state)
{
	struct error err;
	char *big = xcalloc(1, 32 * 1024);
	uint64_t key = 0;
	int rc = 0;
	if (mount("tmpfs", dir, "tmpfs", 0, "size=512k"))
		skip();
	struct store *s = open_it(file);
	while (!rc && key < 1000) {
		struct store_put p = { STORE_SCRIPT, key, big, 32 * 1024, false };
		rc = store_commit(s, &p, 1, &err);
		key += !rc;
	}
	assert_int_equal(rc, -ESLURM_STORE_FULL);
	assert_int_equal(mount("tmpfs", dir, "tmpfs", MS_REMOUNT, "size=8m"), 0);
	struct store_put p = { STORE_SCRIPT, key, big, 32 * 1024, false };
	assert_int_equal(store_commit(s, &p, 1, &err), 0);
	store_close(s);
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test_setup_teardown(test_sqlite, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_not_a_store, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_foreign, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_log_lost, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_migrate_back, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_log_room, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_full, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_full_tmpfs, make_dir, remove_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
