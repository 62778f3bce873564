/* state.h - the core's own structures (private to src/core)
 *
 * The cluster as data. Lifetimes: everything here is owned by struct core; jobs and steps are freed one by one, so memory
 * follows the queue. Invariants are asserted by core_check (check.c).
 *  - A job's resources are in exactly one place: job->alloc; node counters are the sum over node->held.
 *  - A job is in exactly one queue: its shape's tree (it could start, given room) or none (job->wait says why).
 *  - What a user asked for is kept packed (tail of job->blob) and unpacked only to change it. What placement needs of it is in
 *    struct shape, shared by all jobs that ask for the same. */
#pragma once
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#define uthash_malloc(size) xmalloc(size)
#define uthash_fatal(text) assert(!(text))
#include <uthash.h>

#include "base/bitset.h"
#include "base/log.h"
#include "base/str.h"
#include "core/core.h"
#include "core/part.h"
#include "core/usage.h"
#include "model/hostlist.h"
#include "model/states.h"
#include "model/stepid.h"
#include "model/timespec.h"
#include "model/tres.h"
#include "proto/agent.pb-c.h"
#include "tree.h"

struct cron;

#define WANT_MAX 8           /* kinds in one request */
#define JOB_PARTS_MAX 32
#define NEXT_ID_BLOCK 32
#define STEP_ID_BLOCK 64
#define STEPS_DONE_KEPT 64
#define ONE_YEAR_SEC (365u * 86400u)

/* --- small things ---------------------------------------------------------------------------- */
struct arena;                                     /* memory of one core_step's effects */
struct arena *effects_arena(struct effects *fx);
void *arena_alloc(struct arena *a, size_t size);  /* zeroed */
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const ProtobufCAllocator *arena_pb(struct arena *a);
struct core_effect *effects_push(struct effects *fx, enum core_effect_type type);
void effects_own(struct effects *fx, ProtobufCMessage *m);  /* made by malloc: freed with the effects */
/* Arena copy of a message through its bytes. */
ProtobufCMessage *arena_message(struct arena *a, const ProtobufCMessageDescriptor *d, const uint8_t *data, size_t len);

struct atom { uint32_t id; UT_hash_handle hh; char text[]; }; /* strings that repeat: users, GRES names, accounts */

/* sort.c: a number of anything (a time, a load) and a node; smallest first, equal ones keep their order. tmp: room for n. */
struct moment { uint64_t ms; uint32_t node; };
void moments_sort(struct moment *m, uint32_t n, struct moment *tmp);
/* Into a sorted list, before those that come after it; the list, which may have moved. */
typedef bool job_first(const struct core *c, const struct core_job *a, const struct core_job *b);
struct core_job **jobs_put(const struct core *c, struct core_job **list, uint32_t *n, size_t *cap, struct core_job *j, job_first *first);

/* --- nodes ----------------------------------------------------------------------------------- */
struct node_gres {
	uint32_t name, type;        /* atoms; type 0: none */
	uint32_t count, used;
	uint32_t bit0;              /* first bit in the node's device words, when by_device */
	uint32_t first_index;       /* index of its first device among all of that name */
	bool by_device, no_index;   /* no_index: devices without files */
	bool shard;                 /* shards of one GPU (shard.c): */
	uint32_t gpu, of, whole;    /* its index, its bit among the node's devices, its entry */
	uint64_t *cores;            /* CPUs near it (cpu_words of bits), NULL: any */
	int16_t *links;             /* of a single device: links to each device of that name, by index; NULL: not known */
	uint32_t links_n;
};

struct resv;
struct node_resv { struct resv *r; uint64_t *words; uint32_t cpus; }; /* reserved here: CPUs and devices as bits; words NULL: all of the node */
struct held { struct core_job *job; uint32_t at; };  /* job->alloc->on[at] is here */

enum node_contact { CONTACT_NEVER, CONTACT_OK, CONTACT_LOST };

struct core_node {
	/* what the search for a start looks at, together (sweeps go over all nodes) */
	struct future *future;      /* what will be free, counting fresh promises (future.c); made when asked for */
	struct node_gres *gres;
	uint32_t gres_n;
	uint32_t shards;            /* how many of them are shards of a GPU */
	uint32_t cap;               /* CPUs that jobs may have: cpus less those of spec */
	uint32_t owners;            /* jobs that share it only with some others (company.c) */
	uint32_t plan_picky;        /* promises of such jobs that name it */
	uint32_t resv_n;
	uint32_t index;
	uint32_t cpus, threads, cores_per_socket, sockets;
	uint64_t tmp;               /* usable for jobs, as mem */
	char *name, *addr, *hostname;
	uint16_t port;
	Pb__NodeRecord *rec;        /* configured and registered facts, reason; counts are filled when read */
	uint64_t mem;
	uint32_t weight;
	/* state */
	enum node_state base;       /* UNKNOWN, DOWN, IDLE (means up: ALLOCATED and MIXED follow from the counters) */
	uint32_t flags;             /* NODEF_* kept: DRAIN, FAIL, NOT_RESPONDING, INVALID_REG */
	bool registered;            /* since the controller started */
	bool down_by_admin;         /* stays DOWN until someone resumes it */
	uint64_t lost_ms, last_busy_ms, since_ms, reboot_ms;
	/* resources */
	uint32_t cpus_used;
	uint64_t mem_used;
	uint64_t *used;             /* cpu words, then device words */
	uint64_t *spec;             /* cpu words: CPUs kept for the system, never in used */
	uint16_t *shares;           /* jobs on each CPU that share it (OverSubscribe), NULL: none ever did */
	uint32_t over;              /* jobs here that stand on CPUs of suspended ones (gang.c) */
	uint32_t cpu_words, dev_words;
	struct held *held;
	size_t held_n, held_cap;
	uint32_t completing;        /* jobs whose epilog is not done here */
	struct released { uint32_t job_id, run; } *released; /* jobs that are done here and not yet on their other nodes (kept in the node's record) */
	uint32_t released_n;
	size_t released_cap;
	uint32_t whole;             /* jobs that hold the node alone */
	struct planned { struct promise *p; uint32_t at; } *plan; /* promises that name it */
	uint32_t plan_n;
	size_t plan_cap;
	struct node_resv *resv;     /* reservations that name it (reserve.c) */
	size_t resv_cap;
};

/* --- the network (topology.c) ------------------------------------------------------------------ */
enum topo_kind { TOPO_FLAT, TOPO_TREE, TOPO_BLOCK };
struct topo_unit { uint32_t level; struct bitset *nodes; };
struct topo {
	char *name;
	enum topo_kind kind;
	bool is_default;
	struct topo_unit *unit;     /* switches; base blocks in their order */
	uint32_t unit_n;
	uint32_t *base_of;          /* of each node: its leaf switch or base block; UINT32_MAX: none */
	uint32_t *size, size_n;     /* BlockSizes */
};

/* --- requests -------------------------------------------------------------------------------- */
struct want { uint32_t name, type; uint64_t count; };
struct wants { struct want w[WANT_MAX]; uint32_t n; };
struct lic_want { uint32_t name, count; };           /* name: atom */
struct lic_wants { struct lic_want *w; uint32_t n; bool any; }; /* any: one of them is enough */
struct license { uint32_t name, total, used; };
enum { PRIO_TRES_MAX = 16 };

/* feature.c: nodes of which a job's may be: all of `in`, and so many of each `of`, each node counted once. */
enum { FEATURE_MEMBERS_MAX = 32 };
struct feature_count { struct bitset *of; uint32_t n; };
struct feature_set { struct bitset *in; uint32_t count_n, counted; struct feature_count *count; }; /* counted: the sum of them */
struct features { struct feature_set *set; uint32_t n; };

/* What placement needs to know; equal requests share one. Key: these fields of the JobDesc, and part_mask. */
struct shape {
	UT_hash_handle hh;
	uint8_t *key;
	uint32_t key_len, refs;
	uint32_t seq;               /* order of creation: a defined order */
	char *part_names[JOB_PARTS_MAX];
	uint32_t part_n, part_mask; /* which of them the jobs may use now (limits) */
	uint32_t time_min, least_min; /* limit, and what it may be lowered to (--time-min); 0: not at all */
	uint32_t min_nodes, max_nodes, tasks, cpus_per_task, per_node, per_socket, per_core, min_cpus, sockets, cores, threads;
	bool tasks_set, nodes_set, exclusive, contiguous, overcommit, mem_all, spread;
	bool many_nodes;            /* a range of nodes was given: as many of it as can be had */
	bool user_only;             /* --exclusive=user */
	uint32_t mcs;               /* atom: shares nodes only with jobs of this label; 0: with those without */
	bool topo_only;             /* --exclusive=topo */
	bool consolidate_segments, spread_segments;
	uint32_t segment, switches, switches_wait; /* 0: not asked; seconds */
	bool share;                 /* --oversubscribe */
	uint32_t spec_cores, spec_threads; /* --core-spec, --thread-spec: kept for the system on its nodes instead of what these say, where own_spec */
	bool own_spec;
	bool block;                 /* CPUs of one socket before the next; else socket by socket in turn */
	bool bind;                  /* only CPUs near the devices */

	uint64_t mem_node, mem_cpu, tmp; /* MiB, 0: not asked */
	struct wants job, node, task, socket;
	uint32_t cpus_per_gpu;
	uint64_t mem_per_gpu;
	char *features, *prefer, *req_nodes, *exc_nodes;
	struct features sets;       /* its nodes are all of one of them, the best first; none: able says it all */
	uint32_t preferred;         /* so many of them are from --prefer */
	struct lic_wants lic;
	bool lic_short;             /* its head lacks a license, or those free are kept for promises */
	char *resv_key;             /* reservations its jobs name, or are let into (resv_key); NULL: none */
	uint8_t resv_shown;         /* its head waits because of reservations: 1 of other jobs, 2 for maintenance */
	struct bitset *required;    /* -w, NULL: none */
	struct arbitrary *arbitrary; /* -m arbitrary (arbitrary.h), NULL: not */
	/* cached for the present configuration */
	uint64_t config_gen;
	struct core_part *part[JOB_PARTS_MAX];
	struct bitset *able[JOB_PARTS_MAX]; /* nodes of the partition that could ever serve it */
	/* queue: jobs that could start */
	struct tree queue;          /* of core_job.qnode, best first */
	struct tree_node anode;     /* in core.shapes_active while queue is not empty */
	bool parked;                /* a limit holds its jobs back: not in core.shapes_active (acct_limit.c) */
	uint8_t limited;            /* REASON_* of that */
	bool dirty;                 /* something changed that could let its head start */
	uint64_t gap_ms;            /* of the last search: there were nodes enough, but not at one time up to this one; 0: no matter */
	bool tried;                 /* its head was looked at since it became head */
	bool unpromised;            /* head failed and holds no promise yet */
	bool fits;                  /* policy.c: there was room for it when the pass began */
	bool behind;                /* no backfill: its head would fit, but others come first */
	char *tres_req;             /* made once */
	struct tree_node *plan_at;  /* first job the sweep has not come to (sweep.c) */
	struct need *need;          /* shared with shapes that differ only in how many nodes and tasks they want */
	uint64_t failed_gen;        /* one like it could not be planned: est_gen and length of the log then */
	uint32_t failed_log;
	int possible;               /* shape_check_possible for config_gen possible_gen */
	uint64_t possible_gen;
};

/* What a shape wants of one node: equal for shapes that differ only in how many nodes and tasks they want (earliest.c). */
struct need {
	UT_hash_handle hh;
	uint8_t *key;
	uint32_t key_len, refs, part_n;
	uint64_t config_gen;
	struct est *est;            /* of each partition */
	struct need *any_time;      /* the same without the time limit, which has `able` for both; NULL: it has none */
	struct bitset **able;       /* shape.able of the first such shape, for able_gen: what is asked of one node is the same */
	uint64_t able_gen;
	bool able_tasks_set;
};

/* --- jobs ------------------------------------------------------------------------------------ */
enum hold_state { ON_FREE, ON_HELD, ON_CLEANING };
struct alloc_on {
	uint32_t node;
	uint32_t cpus, tasks;
	uint64_t mem;
	uint32_t bits;              /* offset into alloc->words: the node's cpu words, device words, then one count a gres entry */
	uint8_t state;              /* enum hold_state */
	bool preparing;             /* its prolog has not answered yet (configure.c) */
	uint32_t at;                /* index in node->held while not ON_FREE */
};
struct alloc {
	uint32_t n, cpus;
	uint32_t resv_id, mcs;      /* placed in this reservation; 0: in none. Shape.mcs */
	uint64_t config_gen;        /* configuration it was placed under; 0: not by this controller */
	bool exclusive, user_only, topo_only, share, own_spec;
	bool over;                  /* placed on CPUs of jobs that were suspended for it (gang.c) */
	uint32_t left;              /* entries not ON_FREE */
	uint64_t *words;
	uint32_t words_n;
	struct alloc_on on[];
};

struct promise_on { uint32_t node, cpus, tasks; uint64_t mem; uint32_t gres[GRES_MAX]; };
struct promise {                /* a planned start */
	struct core_job *job;
	uint64_t start_ms, end_ms;
	uint32_t n, own, part, index; /* of n nodes the first `own` are the job's, in order; the others are only kept free (--exclusive=topo). index: in core->promises */
	bool fresh;                 /* made by the present sweep */
	bool broken;                /* a job before it was started on what it names: it is made again before others pass */
	bool picky;                 /* company_picky when it was made: counted in plan_picky of its nodes */
	bool old;                   /* policy.c: of the pass before, not looked at again yet */
	struct promise_on on[];
};

struct job_extra {              /* what few jobs have */
	char *why, *fail_node, *dependency, *dep_left, *comment_sys, *wait_text;
	char *resv;                 /* name of the reservation it runs or ran in */
	char *preempted_by;         /* "job 7 (alice, partition high)" */
	struct acct_counted *counted; /* what limits count of it (acct.h) */
	struct lic_want *lic;       /* licenses it holds */
	uint32_t lic_n;
	char *lic_was;              /* those it held */
	struct cron *cron;          /* of scrontab: when it runs again (cron.c) */
	char *causes;               /* of an ended job: a line for each step that failed */
	char *nodes, *tres_alloc;   /* of an ended job, whose alloc is gone */
	uint32_t nodes_n, cpus_n;
	struct depend_ref *dep;
	uint32_t dep_n;
	bool dep_any;
	uint32_t end_reason, derived_exit, derived_status;
	uint8_t idem_key[16], idem_hash[32];
	bool has_idem;
};

struct step;
struct array;
struct het;

struct core_job {
	uint32_t id, uid, gid;
	uint32_t user, group;       /* atoms */
	uint8_t state;
	uint8_t wait;               /* REASON_*: why it is not in a queue; REASON_NONE: it is (if PENDING) */
	uint8_t shown;              /* reason as last seen by the scheduler */
	uint8_t blocked;            /* last reason that was more than room or its turn */
	uint32_t flags;             /* JOBF_* */
	bool reserved;              /* names a reservation: before others of its tier */
	bool batch, requeue, kill_invalid_dep, prio_set, requeue_pending, blob_stale, launching, interactive, split_counted;
	bool backfilled;            /* it started before another that was to start first */
	uint8_t hold;               /* REASON_* of the hold, REASON_NONE: not held */
	uint8_t limit_reason;       /* no partition's limits let it in: the reason, else REASON_NONE */
	uint32_t prio_at;           /* when the priority was set by hand */
	uint32_t tier;
	int32_t nice;
	uint32_t prio;              /* set by hand (prio_set), or given by priority/basic */
	uint32_t time_min, restarts, exit_status, next_step, step_reserved;
	uint32_t cancel_uid, part_mask, part; /* part: index it runs in */
	bool cancelled_by, has_exit;
	uint32_t submit, eligible, start, end, suspend, begin, accrue; /* seconds since the epoch */
	uint32_t pre_suspend, deadline;
	uint32_t paused_at;         /* its age stands still since then; 0: it grows */
	int32_t site;               /* site factor, set by operators */
	uint32_t susp_total;
	uint64_t kill_ms;           /* next time-limit or kill action, 0 none */
	uint8_t warn_signal;        /* --signal; 0: none */
	bool warn_batch, warned;    /* to the batch shell; sent in this run */
	uint16_t warn_sec;
	uint16_t mail;              /* --mail-type (mail.c) */
	uint8_t mail_percent;       /* of its limit, told last in this run */
	uint64_t lost_ms;           /* its node came back without it: given up (or launched again) then */
	uint32_t preparing;         /* nodes whose prolog is waited for */
	bool epilog_ctld;           /* EpilogSlurmctld has not ended yet */
	bool lost_place;            /* read from the store as running on nodes that are not configured any more: goes back to the queue */
	bool unconfirmed;           /* read from the store as running a batch script: was it launched before the controller ended? */
	uint32_t launched;          /* seconds: its node was known to have the script; 0: not yet */
	uint32_t resv_id;           /* of the reservation it runs in; 0: none */
	uint32_t preempt_next, preempts; /* seconds: it makes no others give way before; how often it did */
	uint32_t preempt_at, preempt_end; /* seconds: told to give way; and until when. 0: it was not */
	bool yields;                /* suspended because others use its CPUs; gang.c lets it go on */
	bool unlaunched;            /* it yields since its start: its script is launched when its turn comes */
	bool turn_known;            /* gang_turn is of this run */
	uint64_t gang_turn;         /* those with the smaller one go first */
	bool doomed;                /* while somebody else's start is weighed: taken for ended (preempt.c) */
	uint64_t switch_ms;         /* since when it could run, but on more switches than --switches says; 0: never yet */
	uint64_t resv_end;          /* seconds: it ends then (and ResvOverRun later the job); 0: no matter */
	uint64_t immediate_until_ms; /* -I: given up when still pending then */
	struct acct_assoc *assoc;   /* NULL: none */
	struct acct_qos *qos;
	struct shape *shape;
	struct tree_node qnode;     /* in shape->queue */
	uint32_t no_plan;           /* the sweep that could not plan it */
	int64_t key;                /* order in the queue: smaller first (with id) */
	struct alloc *alloc;
	struct promise *promise;
	struct step *steps;         /* list, newest last */
	struct array *array;
	uint32_t task;              /* array task; UINT32_MAX: none or still the whole array */
	struct bitset *tasks;       /* pending tasks of an array record */
	uint32_t max_running;
	struct het *het;            /* component of a heterogeneous job: which one is het_at */
	uint32_t het_at;
	struct job_extra *x;
	uint8_t *blob;              /* encoded record; its tail is the packed JobDesc */
	uint32_t blob_len, desc_at, desc_len;
	struct dep_waiter *waiters; /* jobs that depend on this one */
	struct core_job *end_prev, *end_next; /* finished, by end time */
};

struct array { UT_hash_handle hh; uint32_t id; uint32_t size, jobs, running, max_running, failed_gone, split_pending; uint32_t *job_of; struct core_job *head; struct dep_waiter *waiters;
	uint32_t mail_ended; uint8_t exit_lo, exit_hi, sig_hi, end_state; bool mail_began, any_failed; }; /* mail.c: what its mails say */

/* A heterogeneous job (het.c). alloc, part: where its components would go, from the last successful het_place. busy: they are all being started, ended or requeued. */
enum { HET_MAX = 128 };
struct het { UT_hash_handle hh; uint32_t id, n, jobs; uint32_t job[HET_MAX]; struct alloc *alloc[HET_MAX]; struct core_part *part[HET_MAX]; bool busy; };

enum depend_state { TERM_WAITS, TERM_MET, TERM_NEVER };
struct depend_ref { uint32_t kind, job_id, task, delay_sec, until_sec; bool has_task; uint8_t state; }; /* depend.c */
struct dep_waiter { struct core_job *job; struct dep_waiter *next; };

struct step_on { uint32_t at; uint32_t cpus, tasks; uint64_t mem; uint32_t bits; }; /* at: index in the job's alloc */
struct step {
	struct step *next;
	uint32_t id, tasks, cpus, nodes_left;
	bool done, overlap, open;   /* open: of srun --async, which has not said yet that it has written all its output */
	bool found_alive;           /* only known from a node's registration */
	bool presumed;              /* done because the job is; how it ended is told when its processes have */
	uint64_t start_ms, end_ms, kill_ms;
	uint32_t status, worst, worst_on, time_min, cancel_uid; /* worst_on: index in the job's alloc of the node it came from */
	bool cancelled;
	uint8_t state;
	Pb__StepDesc *desc;
	Pb__StepUsage *usage;
	uint64_t *words;
	uint32_t *rank;             /* node position (in on[]) of each task */
	uint32_t on_n;
	struct step_on *on;
};

struct step_wait { struct step_wait *next; uint32_t job_id; uint64_t token, until_ms; Pb__StepDesc *desc; struct core_caller by; };
struct drain { struct drain *next; uint32_t job_id; uint64_t token; }; /* drain.c */
/* idem.c. Kept apart from the jobs, which they outlive by an hour, so that the jobs' memory can be given back; a page goes when all of it have expired. */
enum { IDEM_PAGE = 256 };
struct idem { uint32_t uid, job_id; uint64_t until_ms; uint8_t key[16], hash[32]; };
struct idem_page { struct idem_page *next; uint32_t used; struct idem at[IDEM_PAGE]; };
struct idem_slot { uint32_t hash; struct idem *at; };
struct idems { struct idem_slot *slot; uint32_t slots, n, done; struct idem_page *first, *last; }; /* slots: a power of two, or 0; done: so many of the first page are gone */

enum timer_kind { TIMER_BEGIN, TIMER_LIMIT, TIMER_NODE, TIMER_STEP, TIMER_PURGE, TIMER_IDEM, TIMER_STEP_WAIT, TIMER_PROMISE, TIMER_RESV, TIMER_GANG, TIMER_ANSWERS, TIMER_USAGE };
struct timer { uint64_t at_ms; uint32_t kind, id, sub; };

enum { JOB_PAGE = 1024, GAINED_LIST = 16 };
struct job_page { uint32_t used; struct core_job *job[JOB_PAGE]; };

struct core {
	struct core_params params;
	bool configured;
	uint64_t now_ms, config_gen;
	struct effects *fx;         /* of the step under way */
	struct effects *scratch_fx; /* record_encode's */
	struct atom *atoms, **atom_of;
	size_t atom_n, atom_cap;
	uint32_t gpu;               /* atom of "gpu" */
	/* nodes */
	struct core_node **node;
	uint32_t node_n;
	struct node_name { UT_hash_handle hh; const char *name; uint32_t index; } *node_by_name;
	uint32_t *weight_order;     /* node indexes by weight, then index; NULL: plain order */
	struct bitset *up;          /* may be given work: up, answering, not drained */
	struct bitset *roomy;       /* has a free CPU and nobody holds it alone */
	struct bitset *idle;        /* nothing on it */
	struct bitset *promised;    /* some promise names it */
	struct bitset *scratch, *scratch2;
	struct topo *topo;
	uint32_t topo_n;
	uint32_t topo_only;         /* nodes held by jobs that want their switch or block alone */
	bool topo_short;            /* the last search for nodes had enough, but not where the network wants them */
	struct core_part **part;
	uint32_t part_n;
	struct acct *acct;          /* accounts and QOS; NULL: none are known */
	struct core_usage usage;
	struct resv **resv;         /* reservations, by id */
	uint32_t resv_n, resv_last_id;
	uint64_t resv_gen;
	bool dooming;               /* preempt.c weighs: doomed jobs count as ended */
	bool lending;               /* preempt.c weighs: CPUs of doomed jobs count as free */
	bool gang_wanted;           /* gang_settle */
	uint64_t gang_ms, gang_turn; /* of TIMER_GANG; the last turn given */
	int64_t preempted;
	bool resv_look;             /* a node or job changed: resv_settle */
	/* jobs */
	struct job_page **page;
	uint32_t page_n, job_n, record_n, next_id, id_persisted;
	uint32_t unread;            /* records that could not be restored */
	struct array *arrays;
	struct het *hets;
	uint64_t plan_from_ms;      /* a component's promise may not begin before that of another; 0: no matter */
	struct shape *shapes;
	uint32_t shape_seq;
	struct tree shapes_active;
	struct shape **heap;
	uint32_t heap_n, queue_n;   /* queue_n: jobs that only lack room, at the last look */
	size_t heap_cap;
	struct bitset *gained;      /* nodes that got room since the last pass */
	uint32_t gained_node[GAINED_LIST], gained_n; /* the first of them; how many */
	bool any_gained, sched_wanted, plan_asked, planning, behind_wake;
	struct shape **unpromised;  /* their heads failed and hold no promise */
	struct promise **promises;
	uint32_t unpromised_n, promise_n;
	bool promise_lost;          /* a start has broken some: plan on soon */
	/* the plan: sweep.c, future.c, earliest.c */
	struct order { uint32_t tier; bool reserved; int64_t key; uint32_t id; } swept_to; /* the last job the sweep came to */
	int64_t sweeps_whole, sweeps_cut; /* to the end of the queue; after bf_max_job_test jobs */
	uint32_t swept, sweep_gen;  /* jobs it came to; changes when what could not be planned is worth another try */
	uint64_t sweep_ms;          /* when it began */
	bool sweep_done, plan_stale, plan_moves, sweep_timer; /* plan_moves: it counts with ends of suspended jobs, which move with time */
	struct core_job *behind;    /* was looked at, and is once more, from behind_ms (PLAN_BEHIND) */
	uint64_t behind_ms;
	uint32_t behind_left;       /* so many times at most */
	bool unfinished;            /* the last search was given up half-way: it would have been long (PLAN_FRESH) */
	struct shape **sweep;
	uint32_t sweep_n;
	size_t sweep_cap;
	uint64_t work;              /* looks at nodes */
	struct change *change;
	size_t change_cap;
	struct future *future;      /* made anew for each question */
	struct need *needs;
	uint64_t est_gen, est_entries;
	size_t promise_cap;
	uint32_t *gain, gain_n;     /* nodes that gained room since est_gen */
	size_t gain_cap;
	struct seen { uint64_t ms; uint32_t node, tasks, gpus; } *seen; /* nodes that the search for a start came to */
	size_t seen_cap;
	size_t unpromised_cap;
	uint32_t promises_made;     /* policy.c: as the last pass left them */
	bool promises_old;          /* policy.c: jobs were started since they were made */
	struct history *histories;  /* predict.c: by user */
	struct core_job *end_first, *end_last;
	struct idems idems;
	struct license *lic;
	struct promise **lic_promise;   /* those whose jobs want licenses */
	struct core_job **lic_holder;   /* jobs that hold some */
	size_t lic_promise_cap, lic_holder_cap;
	uint32_t lic_promise_n, lic_holder_n;
	bool lic_kept, lic_look;    /* somebody waits for licenses that are kept for promises; license_look */
	uint32_t lic_n, ptres_n;
	struct prio_tres ptres[PRIO_TRES_MAX];
	uint64_t cpu_total;         /* of all nodes */
	struct step_wait *step_waits;
	struct drain *drains;
	struct timer *timer;
	size_t timer_n, timer_cap;
	uint64_t timer_asked, purge_ms, idem_ms; /* of FX_TIMER, TIMER_PURGE, TIMER_IDEM */
	struct hostlist answering;  /* nodes that answer again, not told of yet */
	const struct core_ended *ended; /* of the event that is worked on */
	size_t ended_n;
	bool restoring, restore_changed;
	char text[4][256];          /* for reading: strings of core_job_volatile */
	/* counters */
	int64_t submitted, started, completed, cancelled, failed, passes, tries, planned, launches_failed, requeued, backfilled;
	struct core_passes pass, plan_pass; /* quick passes; passes of the planner */
};

/* --- who does what (by file) ----------------------------------------------------------------- */
/* core.c */
uint32_t atom_get(struct core *c, const char *text);           /* "" and NULL: 0 */
uint32_t atom_find(const struct core *c, const char *text);    /* UINT32_MAX: nobody ever named it */
const char *atom_text(const struct core *c, uint32_t id);      /* NULL for 0 */
static inline uint32_t now_sec(const struct core *c) { return (uint32_t)(c->now_ms / 1000); }
/* Times are kept in 32 bits, to 2106: what begins or ends later does so at the last of them, a later deadline is none. */
static inline uint32_t sec_last(uint64_t t) { return t < UINT32_MAX ? (uint32_t)t : UINT32_MAX; }
static inline uint32_t sec_deadline(uint64_t t) { return t < UINT32_MAX ? (uint32_t)t : 0; }

/* mail.c: --mail-type */
void mail_parse(struct core_job *j, const char *list);          /* JobDesc.mail_type; NULL: none */
void mail_began(struct core *c, struct core_job *j);
void mail_ended(struct core *c, struct core_job *j);
void mail_requeued(struct core *c, struct core_job *j);
void mail_invalid_dependency(struct core *c, struct core_job *j);
void mail_limit_reached(struct core *c, struct core_job *j);
void mail_set(struct core *c, struct core_job *j);              /* after its limit or state changed */
void mail_timer(struct core *c, struct core_job *j);

/* warn.c: --signal */
void warn_parse(struct core_job *j, const char *text);          /* JobDesc.signal; NULL: none */
void warn_set(struct core *c, struct core_job *j);              /* after its limit or state changed */
void warn_timer(struct core *c, struct core_job *j);
bool warn_now(struct core *c, struct core_job *j);             /* at once; false: it has none, or was sent before */

/* reply.c: effects in the core's words */
void fx_log(struct core *c, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void fx_job(struct core *c, enum core_effect_type type, const struct core_job *j);
void fx_persist(struct core *c, struct core_job *j);           /* marks stale, too */
void fx_node(struct core *c, const struct core_node *n);
void fx_reply(struct core *c, uint64_t token, void *msg);
void fx_result(struct core *c, uint64_t token, const struct error *err, uint32_t job_id);
/* reboot.c: asked for; taken back (-> refused when `check` and there is none); told when nothing is left on the node; has it restarted; what then; too late. */
void reboot_ask(struct core *c, struct core_node *n, bool asap, const char *next, const char *reason, const struct core_caller *by);
int reboot_cancel(struct core *c, struct core_node *n, bool check, struct error *err);
void reboot_look(struct core *c, struct core_node *n);
bool reboot_is_back(const struct core_node *n, const Pb__NodeRegisterReq *q);
void reboot_done(struct core *c, struct core_node *n);
void reboot_timer(struct core *c, struct core_node *n);
void reboot_restore(struct core *c, struct core_node *n, const Pb__NodeRecord *m);
void fx_to_nodes(struct core *c, enum core_effect_type type, uint32_t job_id, const char *nodes, void *msg);
struct arena *fx_arena(struct core *c);

/* timer.c */
void timer_add(struct core *c, uint64_t at_ms, enum timer_kind kind, uint32_t id, uint32_t sub);
void timer_add_single(struct core *c, uint64_t at_ms, enum timer_kind kind, uint64_t *asked_ms); /* asked_ms: when the one there is comes, 0 none */
bool timer_pop(struct core *c, struct timer *ret);             /* due ones */
void timer_ask(struct core *c);                                /* FX_TIMER when the earliest changed */

/* config.c, partition.c */
int config_apply(struct core *c, const struct core_event *ev, struct error *err);
void job_follow(struct core *c, struct core_job *j); /* partitions or nodes changed: is what it asks for possible now? */
void jobs_follow(struct core *c);                    /* all that are pending */
struct core_part *part_find(const struct core *c, const char *name);
void part_load(struct core *c, struct core_part *p, const Pb__PartitionRecord *rec);
void part_update(struct core *c, const struct core_event *ev);
struct core_part *part_default(const struct core *c);
/* limits.c: what of the partition forbids the request; REASON_NONE: nothing */
uint32_t part_reason(const struct core *c, const struct core_part *p, const struct shape *s, const Pb__JobDesc *d, uint32_t time_min);
bool part_group_allowed(const Pb__PartitionRecord *p, const struct core_caller *by);

/* node.c */
void node_setup(struct core *c, struct core_node *n, const Pb__NodeRecord *rec);
/* What the node has found out about its devices (AutoDetect of gres.conf). */
void node_gres_detected(const struct core *c, struct core_node *n, const Pb__NodeRecord *seen);
void node_destroy(struct core_node *n);
void node_spec_cores(const struct core_node *n, uint32_t cores, uint64_t *words);  /* adds the CPUs that the system keeps when it keeps so many cores */
void node_spare_used(struct core_node *n, const uint64_t *words); /* CPUs that jobs have are not kept for the system, whatever the configuration now says */
void node_refresh(struct core *c, struct core_node *n);        /* bitsets after any change of state or room */
void node_mem_less(struct core *c, struct core_job *j, uint32_t at, uint64_t mem); /* of what a job holds there: MB */
void node_hold(struct core *c, struct core_job *j, uint32_t at);     /* takes what alloc->on[at] says */
void node_release(struct core *c, struct core_job *j, uint32_t at);
bool node_has_released(const struct core_node *n, const struct core_job *j); /* the present run of it */
void node_released_record(const struct core_node *n, Pb__NodeRecord *m);     /* into m, which owns it */
void node_released_restore(struct core_node *n, const Pb__NodeRecord *m);
void node_recount(struct core *c, struct core_node *n);        /* CPUs in use, from who holds them; those of doomed jobs are free while lending */
void node_try(struct core *c, struct core_job *j, uint32_t at, bool take); /* as node_hold, only to see who else would fit: nobody is told */
uint32_t node_state_now(const struct core_node *n, uint32_t *ret_flags);
bool node_is_up(const struct core_node *n);
void weight_order(struct core *c);
/* nodes.c: events about nodes */
void node_register(struct core *c, const struct core_event *ev);
void node_event(struct core *c, const struct core_event *ev);
void node_contact(struct core *c, const struct core_event *ev);
void node_update(struct core *c, const struct core_event *ev);
void node_timer(struct core *c, uint32_t index);
void nodes_tell_answering(struct core *c);
void node_set_down(struct core *c, struct core_node *n, const char *reason);
void node_drain(struct core *c, struct core_node *n, const char *reason);
void node_restore(struct core *c, const struct core_event *ev);
int nodes_bitset(const struct core *c, const char *list, struct bitset **ret, struct error *err);
char *nodes_text(const struct core *c, const struct bitset *b);      /* malloc'd */

/* shape.c: a request, checked and shared */
void shapes_follow_parts(struct core *c);
int shape_make(struct core *c, const Pb__JobDesc *d, uint32_t uid, uint32_t part_mask, struct shape **ret, struct error *err);
void shape_free_all(struct core *c);
void parts_free(struct core *c);
void params_free(struct core_params *p);                       /* what it keeps of its own */
void step_waits_free(struct core *c);
void shape_unref(struct core *c, struct shape *s);
void shape_refresh(struct core *c, struct shape *s);
void shape_refresh_all(struct core *c);      /* partitions were made anew or removed: running and ended jobs' shapes point to them, too */
int shape_check_possible(struct core *c, struct shape *s, struct error *err);
/* feature.c */
void features_fini(struct features *f);
int features_parse(struct core *c, const char *expr, struct features *f, struct error *err);
int feature_match(struct core *c, const char *expr, struct bitset **ret, struct error *err);

/* topology.c */
struct when;
struct fit;
void topologies_load(struct core *c, const struct core_event *ev);
void topologies_free(struct core *c);
const struct topo *topology_find(const struct core *c, const char *name);
bool topology_taken(const struct core *c, const struct shape *s, const struct when *w, const struct core_node *n);
uint64_t topology_until(const struct core *c, const struct shape *s, const struct core_part *p, const struct core_job *j, const struct core_node *n);
void topology_left(struct core *c, const struct core_node *n);
static inline bool topology_alone(const struct shape *s, const struct core_part *p) { return s->topo_only || (p && p->topo_only); } /* shares its unit with nobody */
uint32_t topology_rest(const struct core *c, const struct core_part *p, const struct fit *f, uint32_t n, struct bitset **ret);
uint32_t topology_bases(const struct topo *t, const struct bitset *nodes);
uint64_t topology_wait_ms(const struct core *c, const struct shape *s);
bool topology_strict(const struct core *c, const struct shape *s, const struct when *w);
void topology_wait(struct core *c, struct core_job *j);
void topology_check(const struct core *c, const struct core_job *j, const struct bitset *nodes);

/* company.c */
int company_label(struct core *c, const struct core_caller *by, Pb__JobDesc *d, struct error *err);  /* d->mcs_label, in the effects' arena */
uint32_t company_mcs(struct core *c, const Pb__JobDesc *d);    /* shape.mcs */
static inline bool company_picky(const struct shape *s, const struct core_part *p) { return s->user_only || s->mcs || (p && p->user_only); }
void company_record(const struct core *c, const struct core_node *n, Pb__NodeRecord *m);  /* whose the node is */
/* Is somebody on the node, or promised it, whom the job would not be beside? */
bool company_bad(const struct core *c, const struct shape *s, const struct when *w, const struct core_node *n);

/* place.c */
struct fit { uint32_t node, tasks, cpus; uint64_t mem; uint32_t gres[GRES_MAX]; };
/* used: the CPUs that are taken, bit by bit, as far as known (NULL: none but what the system keeps). mine: CPUs of the partition's other jobs. */
struct avail { uint32_t cpus, mine; uint64_t mem; uint32_t gres[GRES_MAX]; const uint64_t *used; };
void avail_now(const struct core_node *n, struct avail *a);
void avail_full(const struct core_node *n, struct avail *a);
uint32_t fit_tasks(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a);
/* Chooses nodes among `cand` with what `get` says is free on each. Returns the count and fits (malloc'd), or 0. */
/* j NULL: of empty nodes; start_ms 0: of what is free now until end_ms and spares the promises to jobs before j; else of what is free from start_ms
 * to end_ms. part: the partition whose limits hold. in: the reservation it would run in; empty: as if no job and no other reservation were there. */
struct when { const struct core_job *j; uint64_t start_ms, end_ms; const struct core_part *part; const struct resv *in; bool empty, fresh, any_switches; };
void avail_of(struct core *c, const struct shape *s, const struct when *w, struct core_node *n, struct avail *a);
uint32_t gpus_for_job(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a);
void fit_take(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a, uint32_t tasks, const uint32_t *share, struct fit *f);
uint32_t place_choose(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w, struct fit **ret);
void avail_during(struct core *c, struct core_node *n, const struct when *w, struct avail *a); /* plan.c */
/* Starts now, for so many minutes (TIME_INFINITE: no limit)? */
struct alloc *place_one(struct core *c, struct core_job *j, uint32_t minutes, struct core_part **ret_part); /* a component by itself */
void alloc_free(struct alloc *a);
struct alloc *place_now(struct core *c, struct core_job *j, uint32_t minutes, struct core_part **ret_part);
struct alloc *place_part(struct core *c, struct core_job *j, uint32_t minutes, const struct resv *in, uint32_t at);
void avail_spare(struct core *c, const struct when *w, struct core_node *n, struct avail *a); /* plan.c */
struct alloc *alloc_build(struct core *c, const struct shape *s, const struct core_part *p, const struct fit *f, uint32_t n, const struct when *w);

#include "core/inside.h"

/* recur.c */
void recur_read(struct core *c, struct core_job *j, const Pb__JobDesc *d, uint32_t from); /* a cron_spec: it may begin at the first due minute after `from` */
int recur_check(const struct core *c, const Pb__JobDesc *d, struct error *err);
bool recur_again(struct core *c, struct core_job *j, uint32_t state);                    /* it ends: does it go back to the queue for its next run instead? Then it has */
bool recur_skip(struct core *c, struct core_job *j);                                    /* scontrol requeue of one that waits: not the next run, the one after */

/* job.c */
struct core_job *job_find(const struct core *c, uint32_t id);
struct core_job *job_new(struct core *c, uint32_t id);
void job_forget(struct core *c, struct core_job *j);           /* FX_REMOVE_JOB, memory back */
uint32_t job_take_id(struct core *c);
struct job_extra *job_x(struct core_job *j);
void job_free_all(struct core *c);
void job_set_desc(struct core_job *j, const Pb__JobDesc *d);   /* packs */
void job_set_desc_bytes(struct core_job *j, const uint8_t *data, uint32_t len);
void job_set_state_bytes(struct core_job *j, const uint8_t *state, uint32_t len);
Pb__JobDesc *job_desc(const struct core_job *j);               /* unpacked, caller frees */
char *job_desc_str(const struct core_job *j, uint32_t field);  /* one string of the packed desc, malloc'd or NULL */
bool job_desc_str_eq(const struct core_job *j, uint32_t field, const char *text);
uint32_t job_time_used(const struct core *c, const struct core_job *j);
char *job_id_text(const struct core_job *j, char *buf, size_t size);

/* record.c */
void record_encode(const struct core *c, struct core_job *j);
void record_restore(struct core *c, const struct core_event *ev);
void restore_cleaning(struct core *c, struct core_job *j);
void record_restored(struct core *c, const struct core_event *ev);
char *job_nodes_text(const struct core *c, const struct core_job *j);
size_t record_gres(const struct core *c, const struct core_node *n, const uint64_t *words, Pb__GresAlloc ***ret, struct arena *a);
Pb__JobRecord *record_message(struct core *c, struct core_job *j, struct arena *a);
Pb__AllocInfo *record_alloc_info(struct core *c, struct core_job *j, struct arena *a);

/* idem.c: submissions by (uid, key of 16 bytes); hash: 32 bytes, of what was asked */
void idem_keep(struct core *c, struct core_job *j, const uint8_t *key, const uint8_t *hash, uint64_t at_ms);
const struct idem *idem_seen(const struct core *c, uint32_t uid, const uint8_t *key);
void idem_expire(struct core *c);
void idem_check(const struct core *c);
void idem_free_all(struct core *c);

/* submit.c */
void submit(struct core *c, const struct core_event *ev);
int submit_partitions(struct core *c, const Pb__JobDesc *d, struct core_part **ret, uint32_t *ret_n, struct error *err);
int job_reshape(struct core *c, struct core_job *j, const Pb__JobDesc *d, struct error *err); /* new shape after any change of what it asks */
int submit_defaults(struct core *c, Pb__JobDesc *d, struct arena *a, struct error *err);

/* queue.c: eligible or waiting */
void queue_update(struct core *c, struct core_job *j);         /* puts the job where its state says; call after any change */
void queue_remove(struct core *c, struct core_job *j);
bool queue_wait(struct core *c, struct core_job *j);           /* looks what holds it back; true: nothing but room is missing */
void queue_insert(struct core *c, struct core_job *j);
void queue_wake(struct core *c, struct shape *s);              /* it may be looked at again (it was parked) */
void queue_key(const struct core *c, struct core_job *j);
bool job_before(const struct core_job *a, const struct core_job *b);
uint32_t job_priority(const struct core *c, const struct core_job *j); /* priority.c */
char *part_tres(const struct core *c, const struct core_part *p);       /* read.c; malloc'd */
const char *shape_tres(struct core *c, struct shape *s);               /* record.c: what is asked for, as text, made once */
char *record_sluid(const struct core_job *j);                          /* malloc'd */

/* schedule.c, plan.c */
void sched_gained(struct core *c, uint32_t node);
void sched_shape(struct core *c, struct shape *s);             /* look at it again */
void sched_all(struct core *c);
void sched_promise_lost(struct core *c, struct core_job *j);  /* before others pass it (protect_earlier), the first of its shape needs another */
void sched_run(struct core *c, uint32_t budget);
void promise_drop(struct core *c, struct core_job *j);
void sched_forget(struct core *c, struct shape *s);           /* its queue is empty */
uint64_t length_ms(uint32_t minutes);
uint64_t job_length_ms(const struct core_job *j);
uint64_t job_end_ms(const struct core *c, const struct core_job *j); /* when its limit ends it at the latest */

/* pack.c: the order in which nodes are looked at; ends in UINT32_MAX, malloc'd */
bool pack_on(const struct core *c);
uint32_t *pack_order(struct core *c, const struct shape *s, const struct bitset *cand, const struct when *w);

/* How to look. Alone: at all nodes one by one, with the promises to jobs before j. The others with what the sweep has promised: fresh: node by node in the
 * order of their times, as far as one slice goes (core.unfinished); behind: at all from behind_ms on, where gaps between promises were too short
 * (shape.gap_ms); whole: both, to the end. */
enum plan_how { PLAN_ALONE, PLAN_FRESH, PLAN_BEHIND, PLAN_WHOLE };
/* A start is promised as early as can be found, and not later than it was promised before as long as that holds. */
bool promise_make(struct core *c, struct shape *s, struct core_job *j, enum plan_how how);
/* It was started, or (not started) holds its nodes longer: promises (started: to jobs behind it) that are broken by that are marked so; `lost` is told of each. */
void promises_check(struct core *c, const struct core_job *of, bool started, void (*lost)(struct core *c, struct core_job *j));
/* So many tasks must fit on a node that is worth waiting for. */
static inline uint32_t least_tasks(const struct shape *s) { return s->max_nodes == 1 ? s->tasks : 1; }
bool promise_one(struct core *c, struct shape *s, struct core_job *j, enum plan_how how); /* not of the whole heterogeneous job */
uint64_t plan_window_ms(const struct core *c);
void gained_none(struct core *c);                              /* schedule.c: they have been seen to */
/* sweep.c */
bool sweep_passed(const struct core *c, const struct core_job *j);
void sweep_inserted(struct core *c, struct shape *s, struct core_job *j);
void sweep_removed(struct core *c, struct shape *s, struct core_job *j);
void sweep_end_moved(struct core *c, const struct core_job *j);
void sweep_end_later(struct core *c, const struct core_job *j); /* and promises behind it may be untrue */
void sweep_restart(struct core *c);
bool sweep_run(struct core *c, const struct core_job *until, uint32_t *budget);
bool sweep_one(struct core *c, struct shape *s, struct core_job *j, uint32_t *budget);
bool sweep_wanted(struct core *c);
void budget_spend(uint64_t looks, uint32_t *budget);           /* a unit for a try, more where it looked at many nodes */
void sweep_slice(struct core *c, uint32_t *budget);
/* future.c: before NULL: what the sweep has promised counts, else the promises to all jobs before that one */
void future_free(struct future *f);
void future_forget(struct core_node *n);                       /* what it holds or has promised changed */
void future_avail(struct core *c, struct core_node *n, const struct core_job *before, uint64_t from, uint64_t to, struct avail *a); /* the least of each */
void future_lower(struct core *c, struct core_node *n, const struct core_job *before, uint64_t from, uint64_t to, struct avail *a);
uint64_t future_earliest(struct core *c, const struct shape *s, struct core_node *n, const struct core_job *before, uint64_t from, uint64_t length); /* UINT64_MAX: never */
void future_check(struct core *c, struct core_node *n);
/* earliest.c */
void est_free(struct core *c, struct need *e);
void est_reset(struct core *c);
void est_gained(struct core *c, struct core_node *n);
bool est_prepare(struct core *c, struct shape *s, uint64_t limit_ms);
void est_sync(struct core *c, struct shape *s, uint32_t at, uint64_t limit_ms);
bool est_top(const struct shape *s, uint32_t at, uint32_t *ret_node, uint64_t *ret_ms);
void est_pop(struct shape *s, uint32_t at);
void est_raise(struct shape *s, uint32_t at, uint64_t ms);
void est_push(struct core *c, struct shape *s, uint32_t at, uint32_t node, uint64_t ms);
struct alloc *sched_place_shorter(struct core *c, struct shape *s, struct core_job *j, struct core_part **ret_part, uint32_t *budget, bool *ret_may, uint32_t *ret_min);
/* policy.c, predict.c */
bool policy_on(const struct core *c);
bool policy_run(struct core *c, uint32_t budget);              /* the pass over the queue; true: there is more to do */
void policy_forget(struct core *c, const struct core_job *j);  /* it leaves the queue */
/* profile.c: numbers of free nodes over time */
struct profile_step { uint64_t ms; int32_t nodes; uint32_t gained; };
struct profile { struct profile_step *step; uint32_t n; size_t cap; };
bool profile_applies(const struct core *c);
void profile_begin(const struct core *c, struct profile *p);
uint64_t profile_take(struct profile *p, uint32_t nodes, uint64_t length_ms); /* the first start at which so many stay free for so long; UINT64_MAX: never */
void promise_put(struct core *c, struct core_job *j, uint64_t start_ms); /* one that names no nodes (plan.c) */
void predict_learn(struct core *c, const struct core_job *j);  /* it ran and has ended */
uint32_t predict_sec(const struct core *c, const struct core_job *j);
uint32_t predict_limit_sec(const struct core_job *j);
void predict_free(struct core *c);

/* preempt.c */
bool preempt_try(struct core *c, struct core_job *j);
/* Jobs on nodes that it could use: may be made to give way now; later, the first of them at first_ms; not at all. */
struct preempt_count { uint32_t now, later, never; uint64_t first_ms; };
void preempt_counts(const struct core *c, const struct core_job *by, struct preempt_count *ret);
void preempt_for_license(struct core *c, struct core_job *j);  /* reclaim_licenses */
/* On CPUs of jobs that can be suspended; they are at the end of the event (gang_settle). */
struct alloc *preempt_over(struct core *c, struct core_job *j, uint32_t minutes, struct core_part **ret_part);
void preempt_finish(struct core *c, struct core_job *j);
bool preempt_lends(const struct core *c, const struct core_job *j); /* suspended, rather than ended */
enum preempt_mode preempt_mode(const struct core *c, const struct core_part *p);

/* ending.c: in the effects' arena. left_sec UINT32_MAX: not known */
Pb__EndReason *ending(struct core *c, const char *cause, const char *by, uint32_t left_sec);
Pb__EndReason *ending_job(struct core *c, const struct core_job *j, bool timeout);
Pb__EndReason *ending_step(struct core *c, const struct core_job *j, const struct step *s, bool timeout);
Pb__EndReason *ending_warned(struct core *c, const struct core_job *j);

/* gang.c */
void gang_look(struct core *c, const struct core_job *j);      /* it came, left or changed */
void gang_mark(const struct core *c, struct alloc *a);         /* before it is held: sets `over` where its CPUs are those of another */
void gang_settle(struct core *c);
void job_suspend(struct core *c, struct core_job *j, bool tell); /* its processes are stopped, if its nodes are told */
void job_resume(struct core *c, struct core_job *j, bool tell);
void gang_tick(struct core *c);
const struct core_job *gang_first(const struct core *c, const struct core_job *j); /* one that uses its CPUs now; NULL: nobody does */
void gang_check(const struct core *c);
bool gang_can_run(const struct core *c, const struct core_job *j); /* nobody uses its CPUs? */
bool gang_stands_by(const struct core_job *j);  /* has nodes, and is stopped while others use its CPUs: it yields, or an operator suspends it and those below go on */

/* life.c */
uint32_t run_of(const struct core_job *j);                     /* restarts of the run its nodes know */
ProtobufCMessage *message_copy(const ProtobufCMessage *m);     /* core.c; malloc'd */
void job_start(struct core *c, struct core_job *j, struct core_part *p, struct alloc *a);
void job_end(struct core *c, struct core_job *j, uint32_t state, uint32_t flags); /* final or back to the queue; terminates what is left */
void job_node_clean(struct core *c, struct core_job *j, uint32_t node);
void job_terminate(struct core *c, struct core_job *j, const struct bitset *only, const char *why, bool timeout);
void job_requeue(struct core *c, struct core_job *j, bool hold, uint32_t flags, uint32_t delay_sec);
void job_timer(struct core *c, struct core_job *j);
void life_time_out(struct core *c, struct core_job *j, const char *why);
void job_set_limit_timer(struct core *c, struct core_job *j);
void job_cancel(struct core *c, struct core_job *j, uint32_t uid);
void job_batch_done(struct core *c, struct core_job *j, uint32_t node, const Pb__NodeEvent *e);
void job_node_lost(struct core *c, struct core_job *j, uint32_t node);
/* Its first node was restarted before it said that it has the script. */
void job_launch_lost(struct core *c, struct core_job *j);
void job_launch_failed(struct core *c, struct core_job *j, uint32_t node, const char *detail, bool drain, bool again);
void job_launched(struct core *c, struct core_job *j);          /* its node has the script */
void life_launch_result(struct core *c, const struct core_event *ev);
void life_job_done(struct core *c, const struct core_event *ev);
void life_purge(struct core *c);
void life_restored(struct core *c, struct core_job *j);
void life_listed(struct core *c, struct core_job *j);           /* it has ended: forgotten in time */
void life_finish(struct core *c, struct core_job *j);           /* nothing is left on any node, and EpilogSlurmctld has ended: job_is_clean */
bool job_is_clean(const struct core_job *j);
int job_at_node(const struct core_job *j, uint32_t node);      /* index in its alloc, or -1 */
void job_launch(struct core *c, struct core_job *j);           /* the batch script */

/* configure.c */
void configure_begin(struct core *c, struct core_job *j);      /* it has nodes: prologs, then FX_ALLOCATED and the launch */
void configure_stop(struct core_job *j);                       /* it ends or loses its nodes: nothing is waited for any more */
void configure_over(struct core *c, struct core_job *j);       /* this run is over: EpilogSlurmctld */
void configure_node_ready(struct core *c, struct core_job *j, uint32_t node);
void configure_node_back(struct core *c, struct core_job *j, uint32_t node);    /* a slurmd registers: does it know what is waited for? */
void configure_prolog_failed(struct core *c, struct core_job *j, uint32_t node, const char *detail);
void configure_script_done(struct core *c, const struct core_event *ev);

/* license.c */
void license_config(struct core *c, const char *text);
/* "a:2,b" or "a|b"; that the names exist and are enough is license_check's. The list is the caller's. */
int license_parse(struct core *c, const char *text, struct lic_wants *ret, struct error *err);
void license_wants_fini(struct lic_wants *l);
int license_check(const struct core *c, const struct lic_wants *l, struct error *err);
uint32_t license_free(const struct core *c, uint32_t name);
bool license_room(struct core *c, const struct core_job *j, const struct lic_wants *l);   /* beside those in use and those reserved for others */
void license_promised(struct core *c, struct promise *p);      /* made */
void license_unpromised(struct core *c, const struct promise *p);  /* dropped */
/* Of one name, what promises to jobs before j need at some time from `from` to `to` (ms). Of alternatives each counts. */
uint64_t license_kept(struct core *c, const struct core_job *j, uint32_t name, uint64_t from, uint64_t to);
/* Are there enough for j from `from` to `to` (ms), beside those in use now and those that promises to jobs before it need in that time? */
bool license_beside(struct core *c, const struct core_job *j, uint64_t from, uint64_t to);
/* The first time from `from` to `limit` when that is so for as long as j may run. UINT64_MAX: none is known. */
uint64_t license_when(struct core *c, const struct core_job *j, uint64_t from, uint64_t limit);
void license_look(struct core *c);                              /* at who waits for licenses, again, in the next pass */
void license_wake(struct core *c);                              /* in that pass: they are tried */
void license_lend(struct core *c, const struct lic_wants *l, bool back); /* to see who else would have enough */
void license_take(struct core *c, struct core_job *j);         /* at the start */
void license_return(struct core *c, struct core_job *j);       /* at the end; who waits for licenses is looked at again */
/* Other licenses for a job that has started, if they are free once it has given back its own. */
int license_retake(struct core *c, struct core_job *j, const struct lic_wants *l, struct error *err);
void license_restore(struct core *c, struct core_job *j);      /* a job that was running holds again what its record says */
char *license_text(const struct core *c, const struct core_job *j);  /* "a:2,b:1" held (or last held), malloc'd or NULL */
/* Appends license/NAME=N to a TRES string (malloc'd, taken over) where AccountingStorageTRES names them. */
char *license_tres(const struct core *c, char *tres, const struct lic_want *w, uint32_t n);
char *license_job_tres(struct core *c, const struct core_job *j, char *tres);   /* so, with what the job holds or held */
void license_per_task(Pb__JobDesc *d, struct arena *a);
void license_check_all(const struct core *c);

/* why_end.c: remembers which steps failed, before they are forgotten */
void why_steps_keep(const struct core *c, struct core_job *j);

/* array.c */
void array_restore(struct core *c, struct core_job *j, const Pb__JobRecord *m);
int array_init(struct core *c, struct core_job *j, const char *spec, struct error *err);
struct core_job *array_split(struct core *c, struct core_job *j);  /* the record of the first pending task (j itself when no array, or for the last) */
struct core_job *array_split_task(struct core *c, struct core_job *j, uint32_t task);
void array_free_all(struct core *c);
void array_job_gone(struct core *c, struct core_job *j);
void array_running(struct core *c, struct core_job *j, int by);
bool array_at_limit(const struct core_job *j);
struct array *array_find(const struct core *c, uint32_t id);
void array_count(struct core_job *j);
void array_throttled(struct core *c, struct array *a);
struct core_job *array_task(const struct core *c, uint32_t array_id, uint32_t task);

/* het.c: heterogeneous jobs */
static inline bool het_leads(const struct core_job *j) { return j->het && !j->het_at; }
static inline bool het_follows(const struct core_job *j) { return j->het && j->het_at; }
static inline bool job_has_script(const struct core_job *j) { return j->batch && !het_follows(j); }
void het_enter(struct core *c, struct core_job *j, uint32_t id, uint32_t at);
void het_gone(struct core *c, struct core_job *j);
void het_free_all(struct core *c);
struct core_job *het_job(const struct core *c, const struct het *h, uint32_t at);
struct core_job *het_first(const struct core *c, const struct core_job *j);
bool het_is_open(const struct core *c, const struct core_job *j);   /* some component has not ended, or its nodes are not clean */
void het_forget_others(struct core *c, const struct core_job *j);
void het_clean(struct core *c, const struct core_job *j);
void het_restored(struct core *c);
void het_queue(struct core *c, struct het *h);
struct alloc *het_place(struct core *c, struct core_job *lead, struct core_part **ret_part);
bool het_wants_licenses(const struct core *c, const struct core_job *lead);   /* any of the others does */
void het_start(struct core *c, struct core_job *j, struct core_part *p, struct alloc *a);
void het_ended(struct core *c, struct core_job *j);
bool het_requeue(struct core *c, struct core_job *j, bool hold, uint32_t flags, uint32_t delay_sec);
bool het_promise(struct core *c, struct core_job *j, enum plan_how how);
void het_check(const struct core *c, const struct core_job *j);
char *het_ids(const struct het *h);                            /* "8-9", malloc'd */

/* depend.c */
void depend_waiters_free(struct dep_waiter **list);
void depend_copy(struct core *c, const struct core_job *from, struct core_job *to);
void depend_own_task(const struct core *c, struct core_job *j);
bool depend_by_task(const struct core_job *j);                 /* aftercorr: each task by itself */
void depend_restore(struct core *c, struct core_job *j, const char *left);
int depend_set(struct core *c, struct core_job *j, const char *text, struct error *err);
uint32_t depend_wait(struct core *c, struct core_job *j);      /* REASON_NONE, DEPENDENCY, DEPENDENCY_NEVER */
void depend_changed(struct core *c, struct core_job *j);       /* j started or ended: look at who waits */
void depend_clear(struct core *c, struct core_job *j);
char *depend_left(const struct core *c, const struct core_job *j);

#include "core/step.h"
void job_signal(struct core *c, struct core_job *j, uint32_t signal, bool batch_only, bool full, Pb__EndReason *end); /* kill.c: to its processes */
void node_step_alive(struct core *c, struct core_node *n, const Pb__StepAlive *alive);

/* select.c: the ways to name a job */
struct selector { uint32_t id; struct bitset *tasks; bool has_step, has_part; uint32_t step, part; }; /* part: "5+1", component of a heterogeneous job */
int selector_parse(const struct core *c, const char *text, struct selector *ret, struct error *err);
void selector_fini(struct selector *s);
/* The records it means; a pending task that is still part of its array's record is split off when split. Ids, malloc'd. */
int selector_jobs(struct core *c, const struct selector *s, bool split, uint32_t **ret, size_t *ret_n, struct error *err);
/* kill.c, operate.c, update.c */
void kill_jobs(struct core *c, const struct core_event *ev);
void job_operate(struct core *c, const struct core_event *ev);
void job_update(struct core *c, const struct core_event *ev);

/* gres.c */
int wants_parse(struct core *c, const char *text, struct wants *ret, struct error *err);
/* tres_per_task may also say cpu=N, which is --cpus-per-task by another name: into *cpus, which stays otherwise. */
int wants_task(struct core *c, const char *text, struct wants *ret, uint32_t *cpus, struct error *err);
bool wants_match(const struct want *w, const struct node_gres *g);
uint32_t wants_free(const struct core *c, const struct core_node *n, const struct avail *a, const struct want *w);
/* Of an allocation (at: of one node of it, UINT32_MAX: all), or of a request (a NULL) the least it can come to. */
void tres_sum(const struct core *c, const struct shape *s, const struct alloc *a, uint32_t at, struct tres_sum *ret);
char *tres_of_request(const struct core *c, const struct shape *s);
char *tres_of_alloc(const struct core *c, const struct core_job *j);
char *tres_of_node(const struct core *c, const struct core_node *n, bool alloc);
char *bits_text(const uint64_t *bits, uint32_t n);             /* idset of the first n bits, malloc'd */
