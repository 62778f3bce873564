/* restore.c - see restore.h
 * The reader fills batches and waits while BATCHES of them wait for the loop's thread. A batch's records, and their messages, are in its own chunks of memory and go
 * with it: nothing of it is kept by the core. Scripts and what waits for slurmdbd are read record by record later: they are only looked at. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/restore.h"
#include "ctld/turn.h"

#define HINT "slurmctld -i starts with what can be read, and loses the rest"
#define BATCH 32                     /* records of one */
#define BATCHES 16
#define CHUNK (64u << 10)

struct record { uint64_t key; const void *data; size_t len; Pb__JobRecord *job; }; /* job: NULL: another table, or it cannot be unpacked */
struct chunk { struct chunk *next; size_t used, size; max_align_t data[]; };
struct batch { struct batch *next; struct chunk *chunk; uint32_t table; size_t n; struct record at[BATCH]; };

static const struct { enum store_table table; enum core_event_type type; bool whole_only; } order[] = {
	{ STORE_NODE, EV_RESTORE_NODE, false }, { STORE_RESV, EV_RESTORE_RESV, false }, { STORE_JOB, EV_RESTORE_JOB, false }, { STORE_SCRIPT, 0, true }, { STORE_DBD_QUEUE, 0, true },
};
enum { TABLES = sizeof order / sizeof *order };

struct restore {
	struct ctld *d;
	uint64_t start_ms;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled, taken;
	/* under the lock */
	struct batch *first, **tail;
	size_t waiting;
	uint32_t read;               /* tables that have been */
	bool stop;
	int rc[TABLES];
	struct error err[TABLES];
	/* the reader's */
	struct batch *open;
	uint32_t table;
	/* the loop's */
	size_t n[TABLES];
	struct store_put *unread;    /* records the core could not make sense of */
	size_t unreads, cap;
};

/* --- the reader ------------------------------------------------------------------------------- */
static void *batch_alloc(void *arg, size_t size)
{
	struct batch *b = arg;
	size_t need = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (!b->chunk || b->chunk->size - b->chunk->used < need) {
		size_t room = need > CHUNK ? need : CHUNK;
		struct chunk *c = xmalloc(sizeof *c + room);
		*c = (struct chunk){ .next = b->chunk, .size = room };
		b->chunk = c;
	}
	void *p = (char *)b->chunk->data + b->chunk->used;
	b->chunk->used += need;
	return p;
}

static void batch_keep(void *arg, void *p) { }     /* all of it goes at once */

static void batch_free(struct batch *b)
{
	for (struct chunk *c = b->chunk, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(b);
}

/* To the loop's thread; false: it wants no more. */
static bool batch_send(struct restore *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->waiting >= BATCHES && !r->stop)
		pthread_cond_wait(&r->taken, &r->lock);
	bool go = !r->stop;
	if (go && r->open) {
		*r->tail = r->open;
		r->tail = &r->open->next;
		r->open = NULL;
		r->waiting++;
		pthread_cond_signal(&r->filled);
	}
	pthread_mutex_unlock(&r->lock);
	return go;
}

static int record_read(uint64_t key, const void *data, size_t len, void *arg)
{
	struct restore *r = arg;
	if (!r->open)
		r->open = xcalloc(1, sizeof *r->open);
	struct batch *b = r->open;
	b->table = r->table;
	ProtobufCAllocator own = { batch_alloc, batch_keep, b };
	void *copy = memcpy(batch_alloc(b, len + 1), data, len);
	b->at[b->n++] = (struct record){ key, copy, len, order[r->table].table == STORE_JOB ? pb__job_record__unpack(&own, len, copy) : NULL };
	return b->n < BATCH || batch_send(r) ? 0 : -ECANCELED;
}

static int seen(uint64_t key, const void *data, size_t len, void *arg)
{
	struct restore *r = arg;
	pthread_mutex_lock(&r->lock);
	bool stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return stop ? -ECANCELED : 0;
}

static void *reader(void *arg)
{
	struct restore *r = arg;
	for (; r->table < TABLES; r->table++) {
		int rc = store_scan(r->d->store, order[r->table].table, order[r->table].whole_only ? seen : record_read, r, &r->err[r->table]);
		bool go = batch_send(r);
		pthread_mutex_lock(&r->lock);
		r->rc[r->table] = rc;
		r->read++;
		pthread_cond_signal(&r->filled);
		pthread_mutex_unlock(&r->lock);
		if (!go)
			break;
	}
	return NULL;
}

struct restore *restore_begin(struct ctld *d)
{
	struct restore *r = xcalloc(1, sizeof *r);
	sigset_t all, old;
	r->d = d;
	r->start_ms = ctld_now_ms();
	r->tail = &r->first;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->filled, NULL);
	pthread_cond_init(&r->taken, NULL);
	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&r->thread, NULL, reader, r))
		log_fatal("no thread can be made to read the saved state"), abort();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

/* --- the loop's thread ------------------------------------------------------------------------ */
/* The next batch of a table; NULL: there are no more. */
static struct batch *batch_take(struct restore *r, uint32_t table)
{
	pthread_mutex_lock(&r->lock);
	while (!r->first && r->read <= table)
		pthread_cond_wait(&r->filled, &r->lock);
	struct batch *b = r->first && r->first->table == table ? r->first : NULL; /* the reader may be further */
	if (b) {
		r->first = b->next;
		r->tail = r->first ? r->tail : &r->first;
		r->waiting--;
		pthread_cond_signal(&r->taken);
	}
	pthread_mutex_unlock(&r->lock);
	return b;
}

static void restore_one(struct restore *r, uint32_t table, const struct record *rec)
{
	struct core_event ev = { .type = order[table].type };
	unsigned before = core_unread(r->d->core);
	ev.restore.data = rec->data;
	ev.restore.len = rec->len;
	ev.restore.job = rec->job;
	turn_step(r->d, &ev);
	r->n[table]++;
	if (core_unread(r->d->core) != before) {
		r->unread = xgrow(r->unread, &r->cap, r->unreads + 1, sizeof *r->unread);
		r->unread[r->unreads++] = (struct store_put){ order[table].table, rec->key, NULL, 0, true };
	}
}

static int restore_table(struct restore *r, uint32_t table, struct error *err)
{
	struct batch *b;
	while ((b = batch_take(r, table))) {
		for (size_t i = 0; i < b->n && !order[table].whole_only; i++)
			restore_one(r, table, &b->at[i]);
		batch_free(b);
	}
	int rc = r->rc[table];
	if (rc && r->d->ignore_errors) {
		log_error("-i: %s; what comes after it is left out", r->err[table].line);
		rc = 0;
	}
	if (rc)
		*err = r->err[table];
	return rc;
}

/* Records the core cannot read are refused, or with -i forgotten. */
static int forget_unread(struct restore *r, struct error *err)
{
	struct ctld *d = r->d;
	if (!r->unreads)
		return 0;
	if (!d->ignore_errors)
		return error_set(err, EBADMSG, "%zu records in StateSaveLocation %s cannot be read: they are of a newer version", r->unreads, conf_str(d->conf, CONF_StateSaveLocation));
	log_error("-i: %zu records that cannot be read are forgotten", r->unreads);
	return store_commit(d->store, r->unread, r->unreads, err);
}

/* 0: it begins anew. */
static int restore_next_job_id(struct ctld *d, uint32_t *ret, struct error *err)
{
	void *data;
	size_t len;
	int rc = store_get(d->store, STORE_META, STORE_META_NEXT_JOB_ID, &data, &len, err);
	if (rc)
		return rc == -ENOENT || d->ignore_errors ? 0 : rc;
	if (len == sizeof *ret)
		memcpy(ret, data, sizeof *ret);
	free(data);
	return 0;
}

int restore_all(struct restore *r, struct error *err)
{
	struct core_event done = { .type = EV_RESTORE_DONE };
	int rc = 0;
	for (uint32_t i = 0; !rc && i < TABLES; i++)
		rc = restore_table(r, i, err);
	if (!rc)
		rc = forget_unread(r, err);
	if (!rc)
		rc = restore_next_job_id(r->d, &done.restored.next_job_id, err);
	if (rc) {
		error_hint(err, HINT);
		return rc;
	}
	turn_step(r->d, &done);
	if (r->n[2] || r->n[0])
		log_info("restored %zu jobs and %zu node states in %llu ms", r->n[2], r->n[0], (unsigned long long)(ctld_now_ms() - r->start_ms));
	return 0;
}

void restore_end(struct restore *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->taken);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	for (struct batch *b = r->first, *next; b; b = next) {
		next = b->next;
		batch_free(b);
	}
	if (r->open)
		batch_free(r->open);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->filled);
	pthread_cond_destroy(&r->taken);
	free(r->unread);
	free(r);
}
