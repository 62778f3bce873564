/* idem.c - the keys of submissions: the same one again gets the same answer
 * A key outlives its job by an hour. Entries stand in pages in the order in which they came, which is that in which they expire; a table of slots (open addressing,
 * at most half full) finds them. A slot has a part of the hash beside the pointer: a search reads no entry but its own. */
#include <stdlib.h>

#include "core/state.h"

#define IDEM_KEEP_MS 3600000u
#define SLOTS_MIN 64u

/* Keys are random bytes. */
static uint32_t hash_of(uint32_t uid, const uint8_t *key)
{
	uint64_t a, b;
	memcpy(&a, key, 8);
	memcpy(&b, key + 8, 8);
	return (uint32_t)(((a ^ uid) * 0x9e3779b97f4a7c15u ^ b) * 0xd6e8feb86659fd93u >> 32);
}

/* The slot of that key, or the empty one where it would be. There are slots. */
static struct idem_slot *slot_of(const struct idems *t, uint32_t uid, const uint8_t *key)
{
	uint32_t hash = hash_of(uid, key), i = hash & (t->slots - 1);
	for (; t->slot[i].at; i = (i + 1) & (t->slots - 1))
		if (t->slot[i].hash == hash && t->slot[i].at->uid == uid && !memcmp(t->slot[i].at->key, key, sizeof t->slot[i].at->key))
			break;
	return &t->slot[i];
}

static void resize(struct idems *t, uint32_t slots)
{
	struct idem_slot *old = t->slot;
	uint32_t old_n = t->slots;
	t->slot = xcalloc(slots, sizeof *t->slot);
	t->slots = slots;
	for (uint32_t k = 0; k < old_n; k++)
		if (old[k].at) {
			uint32_t i = old[k].hash & (slots - 1);
			while (t->slot[i].at)
				i = (i + 1) & (slots - 1);
			t->slot[i] = old[k];
		}
	free(old);
}

/* Those behind it that were moved on by it come nearer to where they belong. */
static void slot_clear(struct idems *t, struct idem_slot *s)
{
	uint32_t mask = t->slots - 1, hole = (uint32_t)(s - t->slot);
	for (uint32_t i = (hole + 1) & mask; t->slot[i].at; i = (i + 1) & mask)
		if (((i - t->slot[i].hash) & mask) >= ((i - hole) & mask)) {
			t->slot[hole] = t->slot[i];
			hole = i;
		}
	t->slot[hole].at = NULL;
	t->n--;
	if (t->slots > SLOTS_MIN && t->n < t->slots / 8)
		resize(t, t->slots / 2);
}

static struct idem *entry_new(struct idems *t)
{
	struct idem_page *p = t->last;
	if (!p || p->used == IDEM_PAGE) {
		p = xcalloc(1, sizeof *p);
		*(t->last ? &t->last->next : &t->first) = p;
		t->last = p;
	}
	return &p->at[p->used++];
}

static struct idem *oldest(const struct idems *t) { return t->n ? &t->first->at[t->done] : NULL; }

static void drop_oldest(struct idems *t)
{
	struct idem_page *p = t->first;
	const struct idem *k = oldest(t);
	slot_clear(t, slot_of(t, k->uid, k->key));
	if (++t->done < p->used)
		return;
	t->first = p->next;
	t->done = 0;
	if (!t->first)
		t->last = NULL;
	free(p);
}

void idem_keep(struct core *c, struct core_job *j, const uint8_t *key, const uint8_t *hash, uint64_t at_ms)
{
	struct idems *t = &c->idems;
	if (2 * (t->n + 1) > t->slots)
		resize(t, t->slots ? 2 * t->slots : SLOTS_MIN);
	struct idem_slot *s = slot_of(t, j->uid, key);
	if (s->at || at_ms + IDEM_KEEP_MS <= c->now_ms)
		return;
	struct idem *k = entry_new(t);
	*k = (struct idem){ .uid = j->uid, .job_id = j->id, .until_ms = at_ms + IDEM_KEEP_MS };
	memcpy(k->key, key, sizeof k->key);
	memcpy(k->hash, hash, sizeof k->hash);
	*s = (struct idem_slot){ hash_of(j->uid, key), k };
	if (!t->n++)
		timer_add_single(c, k->until_ms, TIMER_IDEM, &c->idem_ms);
	struct job_extra *x = job_x(j);
	x->has_idem = true;
	memcpy(x->idem_key, key, sizeof k->key);
	memcpy(x->idem_hash, hash, sizeof k->hash);
}

void idem_expire(struct core *c)
{
	const struct idem *k;
	while ((k = oldest(&c->idems)) && k->until_ms <= c->now_ms)
		drop_oldest(&c->idems);
	if (k)
		timer_add_single(c, k->until_ms, TIMER_IDEM, &c->idem_ms);
}

const struct idem *idem_seen(const struct core *c, uint32_t uid, const uint8_t *key)
{
	return c->idems.slots ? slot_of(&c->idems, uid, key)->at : NULL;
}

void idem_check(const struct core *c)
{
	const struct idems *t = &c->idems;
	uint32_t n = 0, at = t->done;
	for (const struct idem_page *p = t->first; p; p = p->next, at = 0)
		for (; at < p->used; at++, n++)
			assert(idem_seen(c, p->at[at].uid, p->at[at].key) == &p->at[at]);
	assert(n == t->n && (!t->slots || 2 * n <= t->slots));
}

void idem_free_all(struct core *c)
{
	for (struct idem_page *p = c->idems.first, *next; p; p = next) {
		next = p->next;
		free(p);
	}
	free(c->idems.slot);
}
