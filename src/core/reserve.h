/* reserve.h - advance reservations inside the core (private to src/core; see reserve.c)
 *
 * A reservation holds whole nodes, or (part) CPUs and devices of nodes, from start to end for the jobs that may and do use it. It recurs by
 * moving to its next occurrence when one is over. Everything placement needs is on the nodes: node->resv lists what is held there. */
#pragma once
#include "core/state.h"
#include "model/resvflag.h"
#include "model/zone.h"
#include "proto/reserve.pb-c.h"

#define RESV_USE_MAX 16       /* reservations one job may name */

struct resv_part { uint32_t node, cpus; uint64_t *words; }; /* CPU and device words as core_node.used */
struct resv {
	uint32_t id;
	Pb__ReservationRecord *rec; /* nodes, counts, lists as text; times of the present occurrence */
	uint64_t flags;             /* RESVF_* */
	struct bitset *nodes;
	struct lic_wants lic;       /* licenses */
	bool partial;               /* parts of nodes */
	struct resv_part *part;     /* of a partial one, in order of nodes */
	uint32_t part_n;
	bool active;                /* the present occurrence has begun */
	int64_t start, end;         /* seconds since the epoch; of a floating one start is not kept (resv_start) */
	int64_t wall_start, wall_end;
};
struct resv_window { int64_t start, end; };

/* reserve_time.c: when */
int64_t resv_start(const struct core *c, const struct resv *r);
void resv_set_times(struct core *c, struct resv *r, int64_t start, int64_t end);
/* The first occurrence that ends after t (that of a one-time reservation may be over: false). */
bool resv_occurrence(const struct core *c, const struct resv *r, int64_t t, struct resv_window *ret);
bool resv_overlaps(const struct core *c, const struct resv *r, int64_t from, int64_t to);
bool resv_meet(const struct core *c, const struct resv *a, const struct resv *b);   /* any occurrences of both */
void resv_advance(struct core *c, struct resv *r);          /* a recurring one to the occurrence after the present */

/* reserve_pick.c: where */
int resv_pick(struct core *c, struct resv *r, struct error *err);
/* NodeCnt of an existing one: keeps its nodes, takes more or gives some up. */
int resv_resize(struct core *c, struct resv *r, const struct resv *old, struct error *err);
bool resv_replace(struct core *c, struct resv *r);          /* true: its nodes changed */
void resv_hold(struct core *c, struct resv *r);             /* enters it on its nodes, counts, texts */
void resv_unhold(struct core *c, struct resv *r);
void resv_texts(struct core *c, struct resv *r);
int resv_restore_parts(struct core *c, struct resv *r);

/* license.c: reads and checks rec->licenses, against other reservations that meet r (its times are set). Refused: ESLURM_INVALID_LICENSES. */
int license_reserve(struct core *c, struct resv *r, struct error *err);
/* Of one license, reserved for others from `from` to `to` (ms), of which jobs in those reservations hold none yet. */
uint64_t license_reserved(struct core *c, const struct core_job *j, uint32_t name, uint64_t from, uint64_t to);

/* reserve_use.c: for whom */
struct resv_who { const char *user, *account, *qos, *const *parts; uint32_t part_n; bool root; };
bool resv_names(const struct core_job *j, const char *name);  /* does it ask for it? */
bool resv_job_allowed(const struct core *c, const struct resv *r, const struct core_job *j, const Pb__JobDesc *d);
bool resv_allows(const struct resv *r, const struct resv_who *w);
bool resv_list_has(const char *list, const char *word);
/* What reservations leave of `a` on n for w->j (in w->in, if set). */
void resv_less(const struct core *c, const struct core_node *n, const struct when *w, struct avail *a);
/* n->used and what reservations keep from w, in buf (cpu_words + dev_words); n->used itself where nothing is kept. */
void resv_used(const struct core *c, const struct core_node *n, const struct when *w, uint64_t *buf);
/* The reservations a job of this shape may start in, in order; NULL stands for none. Returns their number. */
uint32_t resv_choices(struct core *c, struct shape *s, struct resv *ret[RESV_USE_MAX + 1]);
bool resv_open(const struct core *c, const struct resv *r);
void resv_candidates(const struct core *c, const struct resv *in, struct bitset *cand);
/* The first time after `from` at which something reserved on n that keeps w's job away is over; UINT64_MAX: nothing is. */
uint64_t resv_next_end(const struct core *c, const struct core_node *n, const struct when *w);
char *resv_key(const struct core *c, const struct core_job *j, const Pb__JobDesc *d); /* what of reservations is part of a shape's key; NULL: nothing */
int resv_submit_check(struct core *c, const struct core_job *j, const Pb__JobDesc *d, struct error *err);
struct core_part *resv_partition(const struct core *c, const char *list);
int resv_possible(struct core *c, struct core_job *j, struct error *err);
uint32_t resv_wait(struct core *c, struct core_job *j);
bool resv_keeps_away(const struct core *c, struct shape *s, struct core_job *j);
uint64_t resv_kill_ms(const struct core *c, const struct core_job *j); /* when the end of its reservation ends it; UINT64_MAX: never */

/* reserve_update.c: EV_RESV; reserve.c: what there is, the clock */
struct resv *resv_find(const struct core *c, const char *name);
struct resv *resv_by_id(const struct core *c, uint32_t id);
void resv_update(struct core *c, const struct core_event *ev);
void resv_restore(struct core *c, const struct core_event *ev);
void resv_restored(struct core *c);
void resv_tick(struct core *c);                             /* the time of some edge has come */
void resv_settle(struct core *c);                           /* nodes or jobs changed: replace, purge */
void resv_config(struct core *c);                           /* nodes or partitions were made anew */
void resv_job_started(struct core *c, struct core_job *j);
void resv_job_left(struct core *c, struct core_job *j);
void resv_changed(struct core *c, struct resv *r);          /* store it; who waits for it looks again */
uint32_t resv_node_flags(const struct core_node *n);
void resv_insert(struct core *c, struct resv *r);
void resv_free(struct resv *r);
void resv_remove(struct core *c, struct resv *r);
void resv_jobs_follow(struct core *c, const struct resv *gone);
void resv_jobs_wake(struct core *c);
void resv_running_follow(struct core *c, const struct resv *r);
const struct core_job *resv_in_use(const struct core *c, const struct resv *r);
void resv_free_all(struct core *c);
void resv_check(const struct core *c);
