/* durable_test.c - proves that what store_commit acknowledged survives a power cut
 *
 * A SQLite VFS whose files live in memory and reach the disk only by xSync. A power cut is a copy of the directory as the disk holds it,
 * at every sync (before and after) and between commits, with a random part of the writes that were not synced let through, as
 * disks do. Each copy is opened by the plain store: all acknowledged batches must be whole, the one in flight whole or absent.
 * The seed is printed; give it as argument to repeat. Only the main database and the WAL are copied: the -shm file is volatile. */
#include <setjmp.h>
#include <stdarg.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "store/store.h"

#define SECTOR 512
#define LOG_BYTES (1 << 18)             /* less than the log comes to: commits both overwrite and grow it */
#define BATCH 5                       /* records of one commit carry its number */

/* What a file holds now (mem), and what of it is dirty, by sector. Shared by all openings of it. */
struct image { char *path; uint8_t *mem, *dirty; size_t size, cap, dirty_cap, synced_size; int refs; struct image *next; };
static struct image *images;
static sqlite3_vfs shim, *real_vfs;
struct shim_file { sqlite3_file base; struct image *img; sqlite3_file *real; };

static unsigned seed;
static int cuts, acknowledged, in_flight;
static char work[64], cut_dir[96];

static void power_cut(void);

static struct image *image_of(const char *path)
{
	for (struct image *i = images; i; i = i->next)
		if (!strcmp(i->path, path))
			return i;
	struct image *i = xcalloc(1, sizeof *i);
	i->path = xstrdup(path);
	i->next = images;
	return images = i;
}

static void image_reserve(struct image *i, size_t size)
{
	size_t old = i->cap, old_dirty = i->dirty_cap;
	i->mem = xgrow(i->mem, &i->cap, size + SECTOR, 1);
	memset(i->mem + old, 0, i->cap - old);
	i->dirty = xgrow(i->dirty, &i->dirty_cap, i->cap / SECTOR + 1, 1);
	memset(i->dirty + old_dirty, 0, i->dirty_cap - old_dirty);
}

/* Puts dirty sectors to the disk; all of them, or (a cut) each by the toss of a coin into another file. */
static void image_flush(struct image *i, const char *path, bool all)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	for (size_t s = 0; s * SECTOR < i->size; s++) {
		if (!i->dirty[s] || (!all && rand_r(&seed) % 3))
			continue;
		size_t n = i->size - s * SECTOR < SECTOR ? i->size - s * SECTOR : SECTOR;
		assert_int_equal(pwrite(fd, i->mem + s * SECTOR, n, (off_t)(s * SECTOR)), (ssize_t)n);
		if (all)
			i->dirty[s] = 0;
	}
	if (all) {
		assert_int_equal(ftruncate(fd, (off_t)i->size), 0);
		i->synced_size = i->size;
	}
	close(fd);
}

static int f_close(sqlite3_file *f)
{
	struct shim_file *s = (struct shim_file *)f;
	int rc = s->real->pMethods->xClose(s->real);
	sqlite3_free(s->real);
	return rc;
}

static int f_read(sqlite3_file *f, void *buf, int n, sqlite3_int64 at)
{
	struct image *i = ((struct shim_file *)f)->img;
	size_t have = (size_t)at < i->size ? i->size - (size_t)at : 0;
	if (have >= (size_t)n) {
		memcpy(buf, i->mem + at, (size_t)n);
		return SQLITE_OK;
	}
	memset(buf, 0, (size_t)n);
	if (have)
		memcpy(buf, i->mem + at, have);
	return SQLITE_IOERR_SHORT_READ;
}

static int f_write(sqlite3_file *f, const void *buf, int n, sqlite3_int64 at)
{
	struct image *i = ((struct shim_file *)f)->img;
	size_t end = (size_t)at + (size_t)n;
	image_reserve(i, end);
	memcpy(i->mem + at, buf, (size_t)n);
	for (size_t s = (size_t)at / SECTOR; s * SECTOR < end; s++)
		i->dirty[s] = 1;
	if (end > i->size)
		i->size = end;
	return SQLITE_OK;
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct image *i = ((struct shim_file *)f)->img;
	if ((size_t)size < i->size) {
		memset(i->mem + size, 0, i->size - (size_t)size);
		i->size = (size_t)size;
	}
	return SQLITE_OK;
}

static int f_sync(sqlite3_file *f, int flags)
{
	struct image *i = ((struct shim_file *)f)->img;
	power_cut();
	image_flush(i, i->path, true);
	power_cut();
	return SQLITE_OK;
}

static int f_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)((struct shim_file *)f)->img->size;
	return SQLITE_OK;
}

#define REAL(f) (((struct shim_file *)(f))->real)
static int f_lock(sqlite3_file *f, int l) { return REAL(f)->pMethods->xLock(REAL(f), l); }
static int f_unlock(sqlite3_file *f, int l) { return REAL(f)->pMethods->xUnlock(REAL(f), l); }
static int f_reserved(sqlite3_file *f, int *r) { return REAL(f)->pMethods->xCheckReservedLock(REAL(f), r); }
static int f_control(sqlite3_file *f, int op, void *arg) { return op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE ? SQLITE_NOTFOUND : REAL(f)->pMethods->xFileControl(REAL(f), op, arg); }
static int f_sector(sqlite3_file *f) { return SECTOR; }
static int f_device(sqlite3_file *f) { return 0; }
static int f_shm_map(sqlite3_file *f, int p, int n, int e, void volatile **r) { return REAL(f)->pMethods->xShmMap(REAL(f), p, n, e, r); }
static int f_shm_lock(sqlite3_file *f, int o, int n, int fl) { return REAL(f)->pMethods->xShmLock(REAL(f), o, n, fl); }
static void f_shm_barrier(sqlite3_file *f) { REAL(f)->pMethods->xShmBarrier(REAL(f)); }
static int f_shm_unmap(sqlite3_file *f, int d) { return REAL(f)->pMethods->xShmUnmap(REAL(f), d); }
static const sqlite3_io_methods shim_methods = { 2, f_close, f_read, f_write, f_truncate, f_sync, f_size, f_lock, f_unlock, f_reserved,
	f_control, f_sector, f_device, f_shm_map, f_shm_lock, f_shm_barrier, f_shm_unmap, NULL, NULL };

static int shim_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	struct shim_file *s = (struct shim_file *)f;
	memset(s, 0, sizeof *s);
	assert_non_null(name);
	s->real = sqlite3_malloc(real_vfs->szOsFile);
	int rc = real_vfs->xOpen(real_vfs, name, s->real, flags, ret_flags);
	if (rc != SQLITE_OK)
		return rc;
	s->img = image_of(name);
	s->base.pMethods = &shim_methods;
	return SQLITE_OK;
}

static int shim_delete(sqlite3_vfs *v, const char *name, int sync)
{
	struct image *i = image_of(name);
	i->size = 0;
	if (i->dirty)
		memset(i->dirty, 0, i->dirty_cap);
	return real_vfs->xDelete(real_vfs, name, sync);
}

static void copy_file(const char *from, const char *to)
{
	char buf[65536];
	ssize_t n;
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	while (in >= 0 && (n = read(in, buf, sizeof buf)) > 0)
		assert_int_equal(write(out, buf, (size_t)n), n);
	if (in >= 0)
		close(in);
	close(out);
}

static int count_batch(uint64_t key, const void *data, size_t len, void *arg)
{
	int *count = arg, batch;
	assert_int_equal(len, 1500);
	memcpy(&batch, data, sizeof batch);
	assert_in_range(batch, 1, 4095);
	count[batch]++;
	return 0;
}

/* The machine loses power now: what would be found? */
static void power_cut(void)
{
	static bool inside;
	char to[160], db[160];
	int count[4096] = { 0 };
	struct store *s;
	struct error err;
	if (inside || !acknowledged || rand_r(&seed) % 8)
		return;
	inside = true;
	cuts++;
	snprintf(db, sizeof db, "%s/s.db", cut_dir);
	for (struct image *i = images; i; i = i->next) {
		snprintf(to, sizeof to, "%s/%s", cut_dir, strrchr(i->path, '/') + 1);
		copy_file(i->path, to);
		image_flush(i, to, false);
	}
	if (store_open_sqlite_vfs(db, NULL, LOG_BYTES, false, &s, &err))
		fail_msg("cut %d: %s", cuts, err.line);
	assert_int_equal(store_scan(s, STORE_JOB, count_batch, count, &err), 0);
	store_close(s);
	for (int b = 1; b <= acknowledged; b++)
		if (count[b] != BATCH)
			fail_msg("cut %d: batch %d was acknowledged and %d of %d records are there (last acknowledged %d)", cuts, b, count[b], BATCH, acknowledged);
	assert_true(count[in_flight] == 0 || count[in_flight] == BATCH || in_flight == acknowledged);
	snprintf(to, sizeof to, "rm -rf %s/*", cut_dir);
	assert_int_equal(system(to), 0);
	inside = false;
}

static void test_power_cuts(void **state)
{
	struct store *s;
	struct error err;
	char path[96];
	uint8_t data[1500];
	snprintf(path, sizeof path, "%s/s.db", work);
	if (store_open_sqlite_vfs(path, "forgets", LOG_BYTES, false, &s, &err))
		fail_msg("%s", err.line);
	for (int b = 1; b < 300; b++) {
		struct store_put put[BATCH];
		memset(data, b, sizeof data);
		memcpy(data, &b, sizeof b);
		for (int i = 0; i < BATCH; i++)
			put[i] = (struct store_put){ STORE_JOB, (uint64_t)(b * BATCH + i), data, sizeof data, false };
		in_flight = b;
		assert_int_equal(store_commit(s, put, BATCH, &err), 0);
		acknowledged = b;
		power_cut();
	}
	store_close(s);
	print_message("%d power cuts survived\n", cuts);
	assert_true(cuts > 20);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_power_cuts) };
	char cmd[128];
	seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)time(NULL);
	printf("seed %u\n", seed);
	snprintf(work, sizeof work, "/tmp/durable_test.XXXXXX");
	if (!mkdtemp(work))
		return 1;
	snprintf(cut_dir, sizeof cut_dir, "%s/cut", work);
	mkdir(cut_dir, 0700);
	real_vfs = sqlite3_vfs_find(NULL);
	shim = *real_vfs;
	shim.zName = "forgets";
	shim.szOsFile = sizeof(struct shim_file);
	shim.xOpen = shim_open;
	shim.xDelete = shim_delete;
	sqlite3_vfs_register(&shim, 0);
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(cmd, sizeof cmd, "rm -rf %s", work);
	return system(cmd) ? 1 : rc;
}
