/* acct.h - QOS and associations in the core (private): who may use what, and how much of each limit is used
 *
 * The tables are one snapshot of slurmdbd's (EV_ACCT), replaced as a whole: then every job looks its own up again and what runs is counted anew.
 * Limits cost nothing where there are none: core.acct->limited says. Equal jobs of one association and QOS share a shape (its key has both), so a
 * limit that holds one back holds all of the shape: it is parked, out of the queue's sight, until something of its association or QOS ends. */
#pragma once
#include "core/state.h"
#include "model/limit.h"

enum { ACCT_TRES_MAX = 32, ACCT_LIMITS_MAX = 128 };

/* on: jobs on each node, where limits name nodes: one with several counts once. until: sum of resource x second (of acct.base) at which the limits of its jobs are reached. */
struct acct_tally { uint32_t jobs; uint64_t tres[ACCT_TRES_MAX]; int64_t until[ACCT_TRES_MAX]; uint32_t *on, nodes; };
struct acct_used { double raw, wall, tres[ACCT_TRES_MAX]; }; /* seconds of billing, of wall time, of each resource; decayed (usage.c) */
struct acct_one { UT_hash_handle hh; uint32_t who; struct acct_tally t; };  /* of a user or account (atom) in a QOS */
struct acct_qos {
	UT_hash_handle hh;
	uint32_t name;              /* atom */
	const Pb__QosRecord *m;
	struct acct_tally all;
	struct acct_one *users, *accounts;
	struct acct_used used;
	bool seen;                  /* by leads_to */
};
struct acct_key { uint32_t account, user, part; }; /* atoms; 0: none */
struct acct_assoc {
	UT_hash_handle hh;
	struct acct_key key;
	const Pb__AssocRecord *m;
	struct acct_assoc *parent;
	struct acct_tally all;
	struct acct_used used;
	struct acct_assoc *child, *next; /* below it, in the order of the records */
	double shares, norm_shares, effective, level_fs, factor; /* fair share (fairshare.c) */
};
struct acct {
	Pb__AcctSnapshot *m;
	struct acct_qos *qos;
	struct acct_assoc *assoc;
	uint32_t tres[ACCT_TRES_MAX], tres_n;   /* atoms: resources that some limit names */
	bool limited;               /* there is a limit at all */
	bool look;                  /* something ended: parked shapes may go on */
	struct shape **parked;
	uint32_t parked_n;
	size_t parked_cap;
	uint32_t priority_most;     /* of all QOS; 0: none has one */
	uint32_t assoc_most;
	struct acct_assoc *root;
	bool node_limits;           /* some limit is on nodes */
	uint32_t users;             /* associations of users */
	uint32_t base;              /* seconds: the zero of tallies' until */
};
/* What a job takes, or would take, of what limits name. */
struct acct_want { uint32_t jobs, minutes; const struct alloc *alloc; double safe_factor; uint64_t billing, tres[ACCT_TRES_MAX], node[ACCT_TRES_MAX]; };
/* What is counted for a job that has nodes, and where. */
struct acct_counted {
	struct acct_assoc *assoc;
	struct acct_qos *qos, *part_qos;
	uint32_t user, account;
	struct acct_want w;
	uint32_t *on, on_n;
	uint32_t from, suspended;   /* its use is counted until then; the seconds for which it had been suspended by then */
	int64_t until;              /* its limit, in seconds from acct.base */
};
/* One limit that holds for a job. */
struct acct_limit { const Pb__Limit *m; const struct limit_row *row; const struct acct_tally *t; const struct acct_qos *qos; const struct acct_assoc *assoc; double times; }; /* times: LimitFactor of the job's QOS; 0: none */
/* A limit that is in the way: what is used of it, what the job wants, how much there may be. */
struct acct_hit { struct acct_limit by; uint64_t used, want; uint32_t reason; bool alone; }; /* alone: whatever others do */

uint32_t acct_limits(const struct core *c, const struct core_job *j, const struct core_part *p, struct acct_limit *ret);

/* acct.c: accounts and QOS */
/* Is there one of that name? Where there are no tables of them: yes. */
bool acct_qos_known(struct core *c, const char *name);
bool acct_account_known(struct core *c, const char *name);
struct acct_qos *acct_qos(struct core *c, const char *name);   /* NULL: none of that name */
void acct_bind(struct core *c, struct core_job *j, const Pb__JobDesc *d); /* looks up what it stands under */
int acct_submit(struct core *c, const struct core_caller *by, Pb__JobDesc *d, struct arena *a, struct error *err); /* defaults, and may he? */
uint32_t acct_wait(const struct core *c, const struct core_job *j); /* its account or QOS is not there (any more) */
uint32_t acct_qos_flags(struct core *c, const char *qos);      /* QOSF_*, where limits are enforced */
bool acct_coordinates(const struct core *c, const struct core_caller *by, const struct core_job *j); /* its account, or one above */
bool acct_may(const struct core *c, const struct core_caller *by, const struct core_job *j); /* change it, as its user may */
double acct_qos_factor(const struct core *c, const struct core_job *j);
double acct_fair_factor(const struct core_job *j);
double acct_assoc_factor(const struct core *c, const struct core_job *j);
bool acct_preempts(const struct core_job *by, const struct core_job *victim); /* by their QOS */
void acct_event(struct core *c, const struct core_event *ev);
void acct_reload(struct core *c, const Pb__AcctSnapshot *m);   /* NULL: the same again, the configuration changed */
void acct_look_parts(struct core *c);
void acct_free(struct acct *a);
/* billing.c */
void billing_load(struct core *c, struct core_part *p, const char *text);      /* TRESBillingWeights */
void billing_set(const struct core *c, const struct core_part *p, const struct shape *s, struct tres_sum *t); /* t.billing; s: whose licenses; NULL: none */
uint64_t acct_of_sum(const struct tres_sum *t, const char *name);
uint64_t acct_licenses(const struct core *c, const struct shape *s, const char *name);
/* usage.c: what was used, and decays */
void usage_job(struct core *c, const struct core_job *j, struct acct_counted *k);  /* all until now */
void usage_job_restored(struct core *c, struct core_job *j);   /* at start-up: what of it the kept record does not have */
void usage_settle(struct core *c);                             /* all until now, decayed */
void usage_tick(struct core *c);                               /* TIMER_USAGE */
void usage_persist(struct core *c);
void usage_forget(struct core *c, const struct core_job *j);   /* its record goes: what it used is kept first */
void usage_begin(struct core *c);                              /* asks for the timer */
void usage_carry(struct core *c, const struct acct *old);      /* from the tables before; NULL: from c->usage_kept */
void usage_restore(struct core *c, const struct core_event *ev);
bool usage_spent(const struct core *c, const struct core_job *j, struct acct_hit *ret); /* a running job is over a limit of use */
/* fairshare.c */
void fairshare_set(struct core *c);                            /* factors of all associations, of what is used now */
/* acct_limit.c */
bool acct_stops(const struct core *c, const struct core_job *j, const struct core_part *p, const struct alloc *a, struct acct_hit *ret); /* a limit is in the way of its start, there, with that */
uint64_t acct_limit_bound(const struct acct_limit *l);               /* its value, times LimitFactor */
uint32_t acct_tres_at(const struct core *c, const char *name); /* acct.tres_n: it is not counted */
int64_t acct_run_seconds(const struct core *c, const struct acct_tally *t, uint32_t i); /* what running jobs may yet use of tres i */
bool acct_part_open(const struct core *c, const struct core_job *j, const struct core_part *p); /* of several: does the QOS of this one let it in? */
uint32_t acct_why(const struct core *c, const struct core_job *j, struct acct_hit *ret, uint32_t max);
int acct_submit_limits(const struct core *c, const struct core_job *j, struct error *err);
uint32_t acct_default_minutes(struct core *c, uint32_t user, const Pb__JobDesc *d);  /* MaxWall is the time limit of who names none; 0: there is none */
void acct_count(struct core *c, struct core_job *j);           /* it has nodes */
void acct_uncount(struct core *c, struct core_job *j);
void acct_counted_free(struct acct_counted *k);
void acct_park(struct core *c, struct shape *s, uint32_t reason);
void acct_unpark(struct core *c, struct shape *s);
void acct_unpark_all(struct core *c);
void acct_wake(struct core *c);
void acct_check(const struct core *c);
void acct_check_start(const struct core *c, const struct core_job *j, const struct core_part *p, const struct alloc *a);

