/* core.h - the pure scheduling core: the cluster as data, and its rules
 *
 * No I/O, no clock, no thread, no global variable, no randomness. The shell hands in one event with the time in it; the core
 * changes its state and appends effects: what the shell must now do. Equal inputs give equal effects, byte for byte.
 * Includes nothing but base, model and the schema. See src/core/README.md for the map of the folder.
 *
 * Ownership: an event's pointers belong to the caller and are not kept (the core copies). An effect's pointers belong to the
 * effects object and live until effects_reset. Messages in effects are built by the core in the effects' arena. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "proto/controller.pb-c.h"
#include "proto/job.pb-c.h"
#include "model/zone.h"
#include "proto/node.pb-c.h"
#include "proto/reserve.pb-c.h"
#include "proto/step.pb-c.h"
#include "proto/queue.pb-c.h"
#include "proto/why.pb-c.h"
#include "proto/assoc.pb-c.h"

struct core;

enum core_bf_order { BF_ORDER_QUEUE, BF_ORDER_SHORTEST, BF_ORDER_PREDICTED };
/* PriorityFlags */
enum { PRIO_ACCRUE_ALWAYS = 1, PRIO_CALCULATE_RUNNING = 2, PRIO_NO_NORMAL_PART = 4, PRIO_NO_NORMAL_TRES = 8, PRIO_SMALL_RELATIVE_TO_TIME = 16, PRIO_NO_FAIR_TREE = 32, PRIO_MAX_TRES = 64, PRIO_MAX_TRES_GRES = 128,
	PRIO_NO_NORMAL_ASSOC = 256, PRIO_NO_NORMAL_QOS = 512 };
enum { RESET_NONE, RESET_NOW, RESET_DAILY, RESET_WEEKLY, RESET_MONTHLY, RESET_QUARTERLY, RESET_YEARLY };
/* AccountingStorageEnforce */
enum { ENFORCE_ASSOC = 1, ENFORCE_LIMITS = 2, ENFORCE_QOS = 4, ENFORCE_SAFE = 8 };
enum preempt_mode { PREEMPT_OFF, PREEMPT_CANCEL, PREEMPT_REQUEUE, PREEMPT_SUSPEND };

/* Settings the core acts on: filled by the shell from slurm.conf (ctld/core_config.c). Times in ms unless named. */
enum core_mcs { MCS_NONE, MCS_USER, MCS_GROUP, MCS_ACCOUNT, MCS_LABEL };
enum core_mcs_select { MCS_NOSELECT, MCS_SELECT, MCS_ONDEMANDSELECT };
struct core_params {
	const char *cluster;
	uint32_t first_job_id, max_job_id, max_job_count, max_array_size;
	uint32_t min_job_age_sec, kill_wait_sec, slurmd_timeout_sec, resume_timeout_sec, inactive_limit_sec, wait_sec;
	uint32_t over_time_limit_min, complete_wait_sec, batch_start_timeout_sec, unkillable_step_timeout_sec;
	uint32_t max_step_count, max_tasks_per_node; /* of a step on a node; 0: no limit */
	uint32_t return_to_service;       /* 0, 1, 2 */
	uint32_t requeue_delay_sec;       /* after scontrol requeue: 120 in the reference, 0 with requeue_delay=0 */
	bool job_requeue;                 /* JobRequeue */
	uint32_t max_batch_requeue;       /* MaxBatchRequeue: so often after failed launches, then held; 0: 5 */
	const char *requeue_exit, *requeue_exit_hold; /* RequeueExit, RequeueExitHold: "1-3,9", exit codes of batch scripts; NULL: none */
	bool select_cores;                /* CR_Core*: allocate whole cores; else CR_CPU */
	uint32_t gather_sec;              /* JobAcctGatherFrequency of tasks; 0: not sampled */
	bool select_memory;               /* CR_*_Memory: memory is consumable */
	bool one_task_per_core;           /* CR_ONE_TASK_PER_CORE */
	bool select_sockets;              /* CR_Socket*: whole sockets */
	bool select_lln;                  /* CR_LLN: least loaded nodes first */
	bool least_loaded_shared;         /* LL_SHARED_GRES: shards of the GPU that is used least, rather than of the first */
	bool enforce_binding;             /* ENFORCE_BINDING_GRES: --gres-flags=enforce-binding is the default */
	bool many_shared;                 /* MULTIPLE_SHARING_GRES_PJ: a job's shards on a node may be of several GPUs */
	uint32_t mcs;                     /* MCSPlugin: enum core_mcs */
	bool mcs_enforced;                /* every job has a label */
	uint32_t mcs_select;              /* enum core_mcs_select: nodes are shared only with jobs of the same label: never, always, with --exclusive=mcs */
	const char *mcs_groups;           /* mcs/group: "a|b" */
	bool allow_spec;                  /* AllowSpecResourcesUsage: --core-spec and --thread-spec count */
	bool select_block;                /* CR_CORE_DEFAULT_DIST_BLOCK */
	bool backfill;                    /* sched/backfill */
	uint32_t bf_window_min, bf_resolution_sec, bf_max_job_test, bf_interval_sec;
	uint32_t bf_reserve;              /* bf_job_part_count_reserve: this many jobs of a partition are promised a start; 0: the head of every shape */
	uint32_t bf_order;                /* enum core_bf_order, bf_order=: among those that nothing is promised to (with bf_reserve) */
	bool user_top;                    /* enable_user_top: users may use scontrol top */
	bool place_fragment;              /* place_fragment: nodes in the order in which GPUs fragment least (pack.c) */
	bool bf_plan_all;                 /* bf_plan=all: every job is promised a start, anew at each change */
	uint32_t enforce_part_limits;     /* 0 NO, 1 ANY, 2 ALL */
	bool kill_invalid_depend;
	bool disable_root_jobs;
	uint32_t def_time_limit_min;
	uint64_t def_cpu_per_gpu, def_mem_per_gpu;                  /* where the partition has none; 0 none */
	uint64_t def_mem_per_cpu, def_mem_per_node, max_mem_per_cpu, max_mem_per_node; /* MiB, 0 none */
	bool prolog_ctld, epilog_ctld;    /* PrologSlurmctld, EpilogSlurmctld: the shell answers each FX_SCRIPT with an EV_SCRIPT_DONE */
	bool prolog_alloc, prolog_contain, prolog_nohold, prolog_force_requeue; /* PrologFlags: Alloc or what implies it, Contain, NoHold, ForceRequeueOnFail */
	bool epilog_env;                  /* slurmd's Epilog is set: orders to end a job carry its record */
	bool prolog_fail_nohold;          /* SchedulerParameters=nohold_on_prolog_fail */
	bool node_steps_clean;            /* slurmd reports BATCH_DONE with `clean`: nothing left, epilog done */
	const char *gres_types;
	const char *tres_extra;           /* AccountingStorageTRES */
	bool priority_multifactor;
	uint32_t weight_age, weight_job_size, weight_partition, max_age_sec;
	bool favor_small;
	bool config_overrides;            /* SlurmdParameters=config_overrides: registered hardware does not drain */
	bool preempt;                     /* PreemptType=preempt/partition_prio, or */
	bool preempt_qos, preempt_within; /* preempt/qos; PreemptMode=WITHIN */
	bool preempt_priority;            /* PreemptMode=PRIORITY: only for a job of higher priority */
	uint32_t preempt_mode;            /* enum preempt_mode: of partitions that say nothing */
	uint32_t preempt_exempt_sec;      /* PreemptExemptTime */
	uint32_t preempt_exempt_priority; /* PreemptParameters=min_exempt_priority: jobs of this priority or more stay; 0: none does */
	bool preempt_youngest, preempt_user_signal, preempt_licenses; /* youngest_first, send_user_signal, reclaim_licenses */
	uint32_t preempt_requeue_sec;     /* a requeued victim waits so long */
	uint32_t suspend_grace_sec;       /* suspend_grace_time: from SIGTSTP to SIGSTOP */
	bool gang;                        /* PreemptMode=GANG: jobs that share CPUs take turns */
	uint32_t time_slice_sec;          /* SchedulerTimeSlice */
	uint32_t resv_over_run_min;       /* ResvOverRun; UINT32_MAX: jobs outlive their reservation */
	struct zone zone;                 /* local time, for what recurs (model/zone.h); copied */
	uint32_t hash_seed;
	const char *licenses;             /* Licenses */
	uint32_t weight_assoc, weight_fair, weight_qos, prio_flags; /* PRIO_ flags */
	const char *weight_tres;          /* PriorityWeightTRES */
	uint32_t max_switch_wait_sec;     /* max_switch_wait */
	bool topo_optional, dragonfly;    /* TopologyParam */
	uint32_t enforce;                 /* ENFORCE_ */
	uint32_t decay_half_sec;          /* PriorityDecayHalfLife; 0: use does not decay */
	uint32_t calc_period_sec;         /* PriorityCalcPeriod; 0: five minutes */
	uint32_t usage_reset;             /* PriorityUsageResetPeriod: RESET_ */
};

enum core_event_type {
	EV_CONFIG,          /* first event; again at reconfigure: nodes, partitions, params */
	EV_RESTORE_JOB,     /* start-up: one stored record each */
	EV_RESTORE_NODE,
	EV_RESTORE_DONE,    /* id counter too; running jobs wait for their nodes to register */
	EV_SUBMIT, EV_KILL, EV_JOB_OP, EV_JOB_UPDATE, EV_NODE_UPDATE, EV_PART_UPDATE,
	EV_STEP_CREATE, EV_STEP_DONE, EV_JOB_DONE,
	EV_STEP_GIVE_UP,    /* who waits for the answer to `token`, an EV_STEP_CREATE, is gone */
	EV_NODE_REGISTER, EV_NODE_EVENT, EV_NODE_CONTACT, EV_LAUNCH_RESULT,
	EV_TIMER,           /* the time asked for by the last FX_TIMER has come (early or late is harmless) */
	EV_RESTORE_RESV,    /* start-up, before the jobs: one stored reservation each */
	EV_RESV,            /* scontrol create, update, delete reservation */
	EV_SCRIPT_DONE,     /* what an FX_SCRIPT asked for has ended */
	EV_STEPS_DRAIN,     /* answered when the job has no step left; given up as EV_STEP_CREATE is */
	EV_ACCT,            /* accounts and QOS are these now: all of them */
	EV_RESTORE_USAGE,   /* start-up, before the first EV_ACCT: what FX_PERSIST_USAGE gave last */
	EV_PLAN,            /* spend `budget` placements on the plan; FX_PLAN_MORE when not done */
};

/* Who asks: filled by the shell from the connection's identity. */
/* `groups`: names of all the user's groups, comma separated (for AllowGroups); NULL: only `group` is known. */
struct core_caller { uint32_t uid, gid; bool oper, admin; const char *user, *group, *groups; };

/* What accounting says of a job, or of one task of an array, that the core has forgotten and a submission or update is to depend on. */
struct core_ended { uint32_t job_id, task; bool has_task; uint32_t state, start_sec; };

struct core_event {
	enum core_event_type type;
	uint64_t time_ms;                 /* since the epoch; never backwards */
	uint64_t token;                   /* returned in FX_REPLY; 0: nobody waits */
	bool more;                        /* another event follows at once: the pass over the queue waits for it */
	struct core_caller by;
	const struct core_ended *ended;   /* of EV_SUBMIT, EV_JOB_UPDATE */
	size_t ended_n;
	union {
		struct { const struct core_params *params; Pb__NodeRecord **node; size_t nodes; Pb__PartitionRecord **part; size_t parts; Pb__TopologyRecord **topo; size_t topos; } config;
		struct { const void *data; size_t len; const Pb__JobRecord *job; } restore; /* encoded record; of a job, the same unpacked, or NULL */
		struct { uint32_t next_job_id; } restored;
		uint32_t drain_job;
		struct {
			const Pb__JobDesc *desc;
			const uint8_t *idem_key;      /* 16 bytes */
			const uint8_t *idem_hash;     /* 32 bytes: hash of the content */
			const Pb__StepDesc *first_step;
			bool test_only, has_script;
			Pb__JobDesc *const *more;     /* of a heterogeneous job: the components behind the first */
			size_t more_n;
		} submit;
		const Pb__KillReq *kill;
		const Pb__JobOpReq *job_op;
		const Pb__JobUpdateReq *job_update;
		const Pb__NodeUpdateReq *node_update;
		const Pb__PartUpdateReq *part_update;
		const Pb__ResvUpdateReq *resv;
		const Pb__StepDesc *step_create;
		struct { uint32_t job_id, step_id, status; } step_done;
		struct { uint32_t job_id, status; } job_done;
		const Pb__NodeRegisterReq *node_register;
		struct { const char *node; const Pb__NodeEvent *event; } node_event;
		struct { const char *node; bool responding; } contact; /* the shell's pings: changed */
		struct { uint32_t job_id, restarts; const char *node; int code; const char *detail; bool drain; } launch;
		struct { uint32_t budget; } plan;
		const Pb__AcctSnapshot *acct;
		const Pb__AcctUsage *usage;
		struct { uint32_t job_id, restarts; bool epilog; int status; } script;     /* status: 0 it went well */
	};
};

enum core_effect_type {
	FX_REPLY,           /* answer `token` with msg (type by the event: SubmitRsp, KillRsp, ResultList, Result, StepCreateRsp, NodeRegisterRsp) */
	FX_PERSIST_JOB,     /* the record of job_id changed: the shell encodes it (core_job_encode) and stores it */
	FX_REMOVE_JOB,      /* forgotten: delete record and script */
	FX_PERSIST_NODE,    /* node_index: state, reason */
	FX_PERSIST_NEXT_ID, /* job ids below `value` may have been given out */
	FX_LAUNCH_BATCH,    /* job_id, its run `value` (restarts), on `nodes` (the batch host): build, sign, send D_BATCH; not if that run is over by now */
	FX_ALLOCATED,       /* job_id has nodes and they are ready (batch or not): answers waiters */
	FX_SCRIPT,          /* run PrologSlurmctld (`epilog`: EpilogSlurmctld) for job_id, run `value`; EV_SCRIPT_DONE when it has ended */
	FX_PROLOG,          /* D_PROLOG `msg` (PrologReq) to `nodes` */
	FX_ENDED,           /* job_id reached a final state: answers waiters */
	FX_SIGNAL,          /* D_SIGNAL `msg` (SignalReq) to `nodes` */
	FX_TERMINATE,       /* D_TERMINATE `msg` (TerminateReq) to `nodes` */
	FX_SUSPEND,         /* D_SUSPEND `msg` */
	FX_REBOOT,          /* D_REBOOT `msg` (RebootReq) to `nodes` */
	FX_MEMORY,          /* less memory for a running job: D_JOB_MEM `msg` (JobMemReq) */
	FX_NOTIFY,          /* text to the job's stderr: D_NOTIFY `msg` */
	FX_ACCOUNT_JOB,     /* job_id as it is now -> slurmdbd; requeued: this attempt is over */
	FX_ACCOUNT_STEP,    /* msg: StepRecord */
	FX_TIMER,           /* wake me at time_ms (replaces the one before) */
	FX_PLAN_MORE,       /* there is planning left: give EV_PLAN when idle */
	FX_PERSIST_RESV,    /* reservation `value` changed: core_resv_by_id, store it */
	FX_REMOVE_RESV,     /* reservation `value` is gone */
	FX_LOG,             /* level, text */
	FX_PERSIST_USAGE,   /* store `msg` (AcctUsage): what accounts and QOS have used */
	FX_MAIL,            /* job_id, mail_type, text: the subject; to the job's user */
};
struct core_effect {
	enum core_effect_type type;
	uint64_t token;
	uint32_t job_id, node_index, value;
	bool requeued, epilog;
	uint64_t time_ms;
	int level;                        /* enum log_level */
	const char *nodes;                /* host list */
	const char *text;
	const char *mail_type;            /* "Began"; static */
	ProtobufCMessage *msg;
};
struct effects;
struct effects *effects_create(void);
void effects_reset(struct effects *fx);            /* empties; frees what effects point to */
void effects_destroy(struct effects *fx);
size_t effects_count(const struct effects *fx);
const struct core_effect *effects_at(const struct effects *fx, size_t i);

struct core *core_create(void);
void core_destroy(struct core *c);
void core_step(struct core *c, const struct core_event *ev, struct effects *fx);
/* Every invariant, by assertion; after each step in tests. */
void core_check(const struct core *c);

/* --- reading (any time between steps; nothing of it changes state) ---------------------------- */
struct core_job;
struct core_node;
struct core_part;
const struct core_job *core_job_find(const struct core *c, uint32_t job_id);
/* Was this id given to a job (or array) once, of which nothing is known any more? */
bool core_job_forgotten(const struct core *c, uint32_t job_id);
/* How many of the records it was given to restore could not be read. */
uint32_t core_unread(const struct core *c);
/* Jobs in order of id; cursor starts at 0. NULL at the end. */
const struct core_job *core_job_next(const struct core *c, uint64_t *cursor);
uint32_t core_job_id(const struct core_job *j);
/* How the tasks of a running step lie on its nodes; freed with free_unpacked. NULL: no such step. */
Pb__StepLayout *core_step_layout(const struct core *c, uint32_t job_id, uint32_t step_id);
/* The first component, of a heterogeneous job; else 0. */
uint32_t core_job_leader(const struct core_job *j);
uint32_t core_job_uid(const struct core_job *j);
bool core_job_is_finished(const struct core_job *j);
bool core_job_is_running(const struct core_job *j);
/* Processes of it or its epilog may still be on its nodes. */
bool core_job_is_completing(const struct core_job *j);
bool core_job_is_ready(const struct core_job *j);      /* running, and its prologs are over */
/* First partition of the job (for hidden partitions). */
const char *core_job_partition(const struct core_job *j);
/* Counts of scheduling passes; a depth is heads tried, a queue the jobs that only lacked room. */
struct core_passes { int64_t n, depth, depth_sum, queue, queue_sum; };
void core_passes(const struct core *c, struct core_passes *ret_quick, struct core_passes *ret_plan);
/* Looks at every job. Tasks of arrays count one each. */
void core_job_counts(const struct core *c, int64_t *ret_pending, int64_t *ret_running);
uint32_t core_job_blocked(const struct core_job *j); /* REASON_*: what it waited for last, other than room or its turn */
/* The encoded JobRecord, cached; valid until the job changes. */
const uint8_t *core_job_blob(const struct core *c, const struct core_job *j, size_t *ret_len);
/* Fill what moves by itself; strings live until the next core_step. */
void core_job_volatile(const struct core *c, const struct core_job *j, Pb__JobVolatile *ret);
/* "5", "5_2", "5_[1-3]", "5+1", SLUID -> job ids; appends to *ids (malloc'd). 0, or -ESLURM_INVALID_JOB_ID. */
int core_job_resolve(const struct core *c, const char *selector, uint32_t **ids, size_t *count);
size_t core_node_count(const struct core *c);
int core_node_find(const struct core *c, const char *name);         /* index or -1 */
/* Whole record as it is now; freed with pb__node_record__free_unpacked(r, NULL). */
Pb__NodeRecord *core_node_record(const struct core *c, uint32_t index);
const char *core_node_name(const struct core *c, uint32_t index);
const char *core_node_addr(const struct core *c, uint32_t index, uint16_t *ret_port);
/* When it was booted and its slurmd started, as it registered last (seconds; 0: not known). */
void core_node_started(const struct core *c, uint32_t index, uint64_t *ret_boot, uint64_t *ret_slurmd);
/* Should it be pinged; is it believed up. */
bool core_node_is_up(const struct core *c, uint32_t index);
size_t core_part_count(const struct core *c);
Pb__PartitionRecord *core_part_record(const struct core *c, size_t i);
/* Reservations in order of their making; the record as it is now, the caller's to free. */
size_t core_resv_count(const struct core *c);
Pb__ReservationRecord *core_resv_record(const struct core *c, size_t i);
/* Do its lists let this user in (whatever his account, QOS or partition)? */
bool core_resv_lets(const Pb__ReservationRecord *r, const char *user);
Pb__ReservationRecord *core_resv_by_id(const struct core *c, uint32_t id); /* NULL: gone */
/* Running and just ended steps. job_id 0: all. Freed by the caller with pb__step_record__free_unpacked. */
size_t core_step_records(const struct core *c, uint32_t job_id, Pb__StepRecord ***ret);
/* Counters for sdiag: name and value of row i; false past the end. */
bool core_counter(const struct core *c, size_t i, const char **ret_name, int64_t *ret_value);
/* Pending jobs that could start, one entry a partition, and the weights. uid NULL: all. Freed with pb__prio_list_rsp__free_unpacked(r, NULL). */
Pb__PrioListRsp *core_priorities(const struct core *c, const uint32_t *uid);
/* Accounts and QOS with what is used of them; submitted: the jobs there are, too. Freed with pb__acct_state_rsp__free_unpacked(r, NULL). */
Pb__AcctStateRsp *core_acct_state(const struct core *c, bool submitted);
/* Licenses in the order of the configuration; false past the end. */
struct core_license { const char *name; uint32_t total, used, reserved; };
bool core_license(const struct core *c, size_t i, struct core_license *ret);
/* Everything that holds a job back, or how it ended. Who asks decides how much of others is told. Freed with pb__why_job__free_unpacked(r, NULL). */
struct core_why_ask { uint32_t uid; bool oper, hide_jobs, hide_nodes, brief; };
Pb__WhyJob *core_why(const struct core *c, const struct core_job *j, const struct core_why_ask *ask);
