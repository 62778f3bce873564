/* memory.c - a store without a disk, for unit tests and the fault simulator
 *
 * Invariant: each table is an array sorted by key. store_memory_fail makes the next commits fail whole, as a full disk does.
 * A mutex stands in for SQLite's own: a reader may run beside the writer. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/store_impl.h"

struct record { uint64_t key; void *data; size_t len; };
struct table { struct record *rec; size_t n, cap; };
struct memory_store {
	struct store base;
	pthread_mutex_t lock;
	struct table table[STORE_TABLES];
	unsigned fail;
};

/* Place of the first record with a key not below `key`. */
static size_t place_of(const struct table *t, uint64_t key)
{
	size_t lo = 0, hi = t->n;
	if (t->n && t->rec[t->n - 1].key < key)
		return t->n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (t->rec[mid].key < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void put_one(struct table *t, const struct store_put *p)
{
	size_t at = place_of(t, p->key);
	bool found = at < t->n && t->rec[at].key == p->key;
	if (found)
		free(t->rec[at].data);
	if (p->remove) {
		if (found)
			memmove(t->rec + at, t->rec + at + 1, (--t->n - at) * sizeof *t->rec);
		return;
	}
	if (!found) {
		t->rec = xgrow(t->rec, &t->cap, t->n + 1, sizeof *t->rec);
		memmove(t->rec + at + 1, t->rec + at, (t->n++ - at) * sizeof *t->rec);
	}
	t->rec[at] = (struct record){ p->key, xmemdup(p->data, p->len), p->len };
}

static int memory_commit(struct store *s, const struct store_put *put, size_t n, struct error *err)
{
	struct memory_store *m = (struct memory_store *)s;
	int rc = 0;
	pthread_mutex_lock(&m->lock);
	if (m->fail) {
		m->fail--;
		rc = error_set(err, ESLURM_STORE_FULL, "the memory store was told to fail");
	} else {
		for (size_t i = 0; i < n; i++)
			put_one(&m->table[put[i].table], &put[i]);
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static int memory_scan(struct store *s, enum store_table t, int (*fn)(uint64_t, const void *, size_t, void *), void *arg, struct error *err)
{
	struct memory_store *m = (struct memory_store *)s;
	int rc = 0;
	for (size_t i = 0; fn && i < m->table[t].n && !rc; i++)
		rc = fn(m->table[t].rec[i].key, m->table[t].rec[i].data, m->table[t].rec[i].len, arg);
	return rc;
}

static int memory_get(struct store *s, enum store_table t, uint64_t key, void **ret, size_t *ret_len, struct error *err)
{
	struct memory_store *m = (struct memory_store *)s;
	int rc = -ENOENT;
	pthread_mutex_lock(&m->lock);
	size_t at = place_of(&m->table[t], key);
	if (at < m->table[t].n && m->table[t].rec[at].key == key) {
		*ret_len = m->table[t].rec[at].len;
		*ret = xmemdup(m->table[t].rec[at].data, *ret_len);
		rc = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return rc ? error_set(err, ENOENT, "no record %llu", (unsigned long long)key) : 0;
}

static int memory_clear(struct store *s, enum store_table t, struct error *err)
{
	struct memory_store *m = (struct memory_store *)s;
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->table[t].n; i++)
		free(m->table[t].rec[i].data);
	m->table[t].n = 0;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static void memory_close(struct store *s)
{
	struct memory_store *m = (struct memory_store *)s;
	for (int t = 0; t < STORE_TABLES; t++) {
		(void)memory_clear(s, (enum store_table)t, NULL);
		free(m->table[t].rec);
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static const struct store_ops memory_ops = { memory_commit, memory_scan, memory_get, memory_clear, memory_close };

struct store *store_open_memory(void)
{
	struct memory_store *m = xcalloc(1, sizeof *m);
	m->base.ops = &memory_ops;
	pthread_mutex_init(&m->lock, NULL);
	return &m->base;
}

void store_memory_fail(struct store *s, unsigned n)
{
	assert(s->ops == &memory_ops);
	((struct memory_store *)s)->fail = n;
}
