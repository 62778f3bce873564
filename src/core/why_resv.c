/* why_resv.c - reservations in an explanation: the job's own that is not open, and those of others on nodes that could serve it */
#include <stdlib.h>

#include "core/reserve.h"
#include "core/why.h"

#define TOLD_MAX 8

static int64_t length_sec(const struct core_job *j) { return j->time_min == TIME_INFINITE ? ONE_YEAR_SEC : (int64_t)j->time_min * 60; }

void why_resv_choose(struct why *w)
{
	struct resv *use[RESV_USE_MAX + 1];
	uint32_t n = resv_choices(w->c, w->j->shape, use);
	w->in = n ? use[0] : NULL;
	for (uint32_t i = 0; i < n; i++)
		if (!use[i] || resv_open(w->c, use[i])) {
			w->in = use[i];
			break;
		}
}

/* It names some, and none of them is there and open. */
static void own(struct why *w)
{
	struct resv *use[RESV_USE_MAX + 1];
	uint32_t n = resv_choices(w->c, w->j->shape, use);
	for (uint32_t i = 0; i < n; i++)
		if (!use[i] || resv_open(w->c, use[i]))
			return;
	for (uint32_t i = 0; i < n; i++) {
		const struct resv *r = use[i];
		int64_t start = resv_start(w->c, r);
		bool later = start > now_sec(w->c);
		Pb__WhyItem *k = later ? why_condition(w, "reservation", "reservation %s, which it asks for, begins {@%lld}", r->rec->name, (long long)start)
				       : why_condition(w, "reservation", "reservation %s, which it asks for, is over", r->rec->name);
		why_text(k, "reservation", r->rec->name);
		why_number(k, "start", start);
		why_number(k, "end", r->end);
		if (later)
			why_clears(k, (uint64_t)start, "at {@%lld}", (long long)start);
		else
			why_clears(k, 0, "scontrol update JobId=%u Reservation=OTHER", w->j->id);
	}
	if (n)
		return;
	Pb__WhyItem *k = why_condition(w, "reservation_gone", "the reservation it asks for does not exist any more, or does not admit it");
	why_clears(k, 0, "scontrol update JobId=%u Reservation=", w->j->id);
}

/* On nodes that could serve it, for others, now or before it would have ended. */
static void of_others(struct why *w, const struct resv *r)
{
	const struct shape *s = w->j->shape;
	struct bitset *b = bitset_create(w->c->node_n);
	int64_t now = now_sec(w->c), start = resv_start(w->c, r);
	for (uint32_t p = 0; p < s->part_n; p++)
		if (s->able[p] && (s->part_mask & 1u << p))
			bitset_or(b, s->able[p]);
	bitset_and(b, r->nodes);
	uint32_t n = bitset_count(b);
	if (n) {
		char *nodes = nodes_text(w->c, b);
		Pb__WhyItem *k = why_condition(w, "reserved", "%u node%s that could serve it %s reserved (%s) from {@%lld} until {@%lld}: %s", n, n == 1 ? "" : "s", n == 1 ? "is" : "are", r->rec->name, (long long)start, (long long)r->end, nodes);
		why_text(k, "reservation", r->rec->name);
		why_number(k, "nodes", n);
		why_text(k, "node_list", nodes);
		why_number(k, "start", start);
		why_number(k, "end", r->end);
		if (start > now)
			why_clears(k, (uint64_t)r->end, "a time limit of at most %lld minutes, which ends before it begins; or its end, {@%lld}", (long long)((start - now) / 60), (long long)r->end);
		else
			why_clears(k, (uint64_t)r->end, "its end, {@%lld}; or --reservation=%s for who may use it", (long long)r->end, r->rec->name);
		free(nodes);
	}
	bitset_destroy(b);
}

void why_reservations(struct why *w)
{
	struct resv *use[RESV_USE_MAX + 1];
	uint32_t n = resv_choices(w->c, w->j->shape, use), told = 0;
	own(w);
	for (uint32_t i = 0; i < w->c->resv_n && told < TOLD_MAX; i++) {
		const struct resv *r = w->c->resv[i];
		bool mine = !r->nodes || bitset_empty(r->nodes) || !resv_overlaps(w->c, r, now_sec(w->c), (int64_t)now_sec(w->c) + length_sec(w->j));
		for (uint32_t k = 0; k < n; k++)
			mine = mine || use[k] == r;
		if (mine)
			continue;
		of_others(w, r);
		told++;
	}
}
