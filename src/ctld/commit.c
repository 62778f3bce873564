/* commit.c - see commit.h
 * The loop and the writer share two lists under one mutex: `todo` in, `done` out, both first in first out. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "ctld/commit.h"

#define RETRY_MS 250

struct list { struct commit_batch *head, **tail; };
struct commit {
	struct store *store;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct list todo, done;
	uv_async_t async;
	void (*on_done)(struct commit_batch *, void *);
	void (*on_change)(bool, const char *, void *);
	void *arg;
	bool stop, failing, said_failing;
	char why[512];
	size_t in_flight, bytes;     /* loop only */
	uint64_t count, give_up_at;
};

struct commit_batch *commit_batch_create(void) { return xcalloc(1, sizeof(struct commit_batch)); }

void commit_batch_put_take(struct commit_batch *b, enum store_table t, uint64_t key, void *data, size_t len)
{
	b->put = xgrow(b->put, &b->put_cap, b->puts + 1, sizeof *b->put);
	b->put[b->puts++] = (struct store_put){ t, key, data, len, false };
	b->bytes += len + sizeof *b->put;
}

void commit_batch_put(struct commit_batch *b, enum store_table t, uint64_t key, const void *data, size_t len)
{
	commit_batch_put_take(b, t, key, xmemdup(data, len), len);
}

void commit_batch_remove(struct commit_batch *b, enum store_table t, uint64_t key)
{
	commit_batch_put_take(b, t, key, NULL, 0);
	b->put[b->puts - 1].remove = true;
}

void commit_batch_destroy(struct commit_batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->puts; i++)
		free((void *)b->put[i].data);
	free(b->put);
	free(b);
}

static void list_init(struct list *l) { l->head = NULL, l->tail = &l->head; }

static void list_push(struct list *l, struct commit_batch *b)
{
	b->next = NULL;
	*l->tail = b;
	l->tail = &b->next;
}

/* One transaction out of all batches of the list. */
static int write_all(struct commit *c, const struct commit_batch *first, struct error *err)
{
	size_t n = 0, at = 0;
	for (const struct commit_batch *b = first; b; b = b->next)
		n += b->puts;
	if (!n)
		return 0;
	struct store_put *put = xmalloc(n * sizeof *put);
	for (const struct commit_batch *b = first; b; b = b->next) {
		if (b->puts)
			memcpy(put + at, b->put, b->puts * sizeof *put);
		at += b->puts;
	}
	int rc = store_commit(c->store, put, n, err);
	free(put);
	return rc;
}

static void wait_retry(struct commit *c)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += RETRY_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_cond_timedwait(&c->wake, &c->lock, &until);
}

/* Locked on entry and exit. Returns false when told to stop before it could be stored. */
static bool store_list(struct commit *c, struct commit_batch *first)
{
	struct error err;
	for (;;) {
		pthread_mutex_unlock(&c->lock);
		int rc = write_all(c, first, &err);
		pthread_mutex_lock(&c->lock);
		if (!rc)
			break;
		if (!c->failing) {
			snprintf(c->why, sizeof c->why, "%s", err.line);
			__atomic_store_n(&c->failing, true, __ATOMIC_RELEASE);
			uv_async_send(&c->async);
		}
		if (c->stop && uv_hrtime() > c->give_up_at)
			return false;
		wait_retry(c);
	}
	c->count++;
	__atomic_store_n(&c->failing, false, __ATOMIC_RELEASE);
	return true;
}

static void *writer(void *arg)
{
	struct commit *c = arg;
	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->todo.head && !c->stop)
			pthread_cond_wait(&c->wake, &c->lock);
		if (!c->todo.head)
			break;
		struct list work = c->todo;
		list_init(&c->todo);
		if (!store_list(c, work.head)) {
			*work.tail = c->todo.head; /* kept, in order, for whoever asks */
			c->todo = work;
			break;
		}
		*c->done.tail = work.head;
		c->done.tail = work.tail;
		uv_async_send(&c->async);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void deliver(struct commit *c)
{
	pthread_mutex_lock(&c->lock);
	struct commit_batch *b = c->done.head;
	list_init(&c->done);
	bool failing = c->failing, change = failing != c->said_failing;
	c->said_failing = failing;
	pthread_mutex_unlock(&c->lock);
	if (change)
		c->on_change(failing, c->why, c->arg);
	while (b) {
		struct commit_batch *next = b->next;
		c->in_flight--;
		c->bytes -= b->bytes;
		c->on_done(b, c->arg);
		b = next;
	}
}

static void on_async(uv_async_t *h) { deliver(h->data); }

struct commit *commit_start(uv_loop_t *loop, struct store *store, void (*done)(struct commit_batch *, void *),
			    void (*changed)(bool, const char *, void *), void *arg)
{
	struct commit *c = xcalloc(1, sizeof *c);
	sigset_t all, old;
	*c = (struct commit){ .store = store, .on_done = done, .on_change = changed, .arg = arg };
	list_init(&c->todo);
	list_init(&c->done);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	uv_async_init(loop, &c->async, on_async);
	uv_unref((uv_handle_t *)&c->async);
	c->async.data = c;
	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&c->thread, NULL, writer, c))
		abort();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return c;
}

void commit_submit(struct commit *c, struct commit_batch *b)
{
	c->in_flight++;
	c->bytes += b->bytes;
	pthread_mutex_lock(&c->lock);
	assert(!c->stop);
	list_push(&c->todo, b);
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

bool commit_is_failing(const struct commit *c) { return __atomic_load_n(&c->failing, __ATOMIC_ACQUIRE); }
size_t commit_in_flight(const struct commit *c) { return c->in_flight; }
size_t commit_bytes(const struct commit *c) { return c->bytes; }
uint64_t commit_count(const struct commit *c) { return c->count; }

static void free_commit(uv_handle_t *h)
{
	struct commit *c = h->data;
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->wake);
	free(c);
}

bool commit_stop(struct commit *c, unsigned timeout_ms)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	c->give_up_at = uv_hrtime() + (uint64_t)timeout_ms * 1000000;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	deliver(c);
	bool all = !c->todo.head;
	for (struct commit_batch *b = c->todo.head, *next; b; b = next) {
		next = b->next;
		commit_batch_destroy(b);
	}
	uv_close((uv_handle_t *)&c->async, free_commit);
	return all;
}
