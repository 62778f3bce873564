/* why.h - building the answer to "why does it wait, how did it end" (private to the why files of src/core)
 * why.c is the entrance and knows all conditions but those about nodes; why_nodes.c counts nodes part by part and says who holds them; why_resv.c tells of reservations; why_hint.c looks for
 * the smallest change that would let a job start now; why_end.c speaks of jobs that started. Nothing here changes the state of the core. */
#pragma once
#include "core/state.h"
#include "proto/why.pb-c.h"

struct why {
	struct core *c;             /* only its caches and counters are touched */
	const struct core_job *j;
	const struct core_why_ask *ask;
	Pb__WhyJob *out;
	const struct resv *in;      /* the reservation it would start in; NULL: none */
};
/* Appends an item to out->condition, or to out->hint. Owned by the message. */
Pb__WhyItem *why_condition(struct why *w, const char *code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
Pb__WhyItem *why_hint_add(struct why *w, const char *code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void why_clears(Pb__WhyItem *i, uint64_t at_sec, const char *fmt, ...) __attribute__((format(printf, 3, 4))); /* at_sec 0: not known */
void why_number(Pb__WhyItem *i, const char *key, int64_t v);
void why_text(Pb__WhyItem *i, const char *key, const char *v);
/* Another job, named as far as the reader may know. */
void why_holder(struct why *w, Pb__WhyItem *i, const struct core_job *o, const char *what, uint32_t nodes, uint64_t from_sec, uint64_t until_sec);
/* "job 5 (bob)", or "a job of another user". buf. */
const char *why_name(const struct why *w, const struct core_job *o, char *buf, size_t size);
bool why_may_see(const struct why *w, const struct core_job *o);
/* "30 minutes", "1-02:00:00", "no limit". buf. */
const char *why_minutes(uint32_t min, char *buf, size_t size);

void why_nodes(struct why *w, uint32_t p);   /* partition p of the job's shape */
bool why_room(struct why *w, uint32_t p);    /* could it start there at once, promises to others kept? */
void why_hints(struct why *w);
void why_acct(struct why *w);                /* why_acct.c */
/* why_preempt.c */
void why_preemption(struct why *w);
void why_yields(struct why *w);
void why_resv_choose(struct why *w);         /* why_resv.c */
void why_reservations(struct why *w);
void why_started(struct why *w);             /* running, suspended, ended */
