/* jobview.h - a job (and a step) as the list commands read it from the controller's reply
 * Parts that most columns do not need (what was asked for, the allocation) are skimmed when first touched.
 * A view is reused from row to row; its slices point into the reply. */
#pragma once
#include "cli/msgview.h"

struct show_env {              /* what getters need to know of the run */
	uint64_t now;          /* the controller's clock */
	const char *cluster;
	const char *clusters;      /* --clusters as typed, or SLURM_CLUSTERS; NULL: not given */
	const char *time_format;   /* SLURM_TIME_FORMAT, NULL: standard */
	uint32_t array_max;        /* SLURM_BITSTR_LEN */
	bool expand_patterns;
	bool no_convert;
	bool preempt;          /* PreemptType is set */
	uint64_t preempt_exempt_sec;
};
extern struct show_env show_env;
/* Reads the environment; now and cluster are set by the command. */
void show_env_init(void);

enum { JV_DESC = 1, JV_VOL = 2, JV_ALLOC = 4 };
struct jobview {
	struct msgview rec;
	struct msgview desc_, vol_, alloc_;
	unsigned done;             /* JV_* parts read already */
	struct wire_field vol_field;
	int64_t task;              /* -r: this task of a pending array; -1: none */
	struct slice partition;    /* -P: instead of the record's; p NULL: none */
};
/* item: an encoded JobItem. */
bool jobview_read(struct jobview *v, const uint8_t *item, size_t len);
/* record: an encoded JobRecord without the volatile part. */
bool jobview_read_record(struct jobview *v, const uint8_t *record, size_t len);
const struct msgview *jobview_desc(struct jobview *v);
const struct msgview *jobview_vol(struct jobview *v);
const struct msgview *jobview_alloc(struct jobview *v);

static inline uint64_t jobview_num(const struct jobview *v, unsigned n, uint64_t absent) { return msgview_num(&v->rec, n, absent); }
static inline uint32_t jobview_state(const struct jobview *v) { return (uint32_t)msgview_num(&v->rec, PB_JobRecord_state, 0); }
static inline uint32_t jobview_flags(const struct jobview *v) { return (uint32_t)msgview_num(&v->rec, PB_JobRecord_state_flags, 0); }
bool jobview_is_pending(const struct jobview *v);
/* Derived facts used by several commands. */
struct slice jobview_partition(struct jobview *v);
struct slice jobview_reservation(struct jobview *v);    /* those it names; else the one that drew it */
uint64_t jobview_run_sec(const struct jobview *v);
uint64_t jobview_pre_suspend_sec(const struct jobview *v); /* run time at the last suspend or resume */
uint64_t jobview_start(struct jobview *v);            /* real or expected; 0: not known */
uint64_t jobview_end(struct jobview *v);              /* real or expected; 0: not known */
uint32_t jobview_reason(struct jobview *v);
uint64_t jobview_max_nodes(struct jobview *v);
uint64_t jobview_min_cpus_node(struct jobview *v);
void put_job_id(struct str *out, struct jobview *v);      /* 5, 5_2, 5_[0-9%2] */
void put_array_task(struct str *out, struct jobview *v, const char *absent);  /* 2, 0-9%2 */
void put_job_reason(struct str *out, struct jobview *v);
/* The worst end of a step, as a wait status (older records know its exit code only). */
uint32_t jobview_derived_status(const struct jobview *v);
/* Where it waits for its begin time: that. */
uint64_t jobview_eligible(struct jobview *v);
/* "cpu=2,gres/gpu=1": --cpus-per-task and what was asked a task. Nothing when neither was given. */
void put_tres_per_task(struct str *out, struct jobview *v);
void put_job_min_memory(struct str *out, struct jobview *v);
void put_exit(struct str *out, uint32_t wait_status);     /* 3:0, 0:9 */
void put_sct(struct str *out, struct jobview *v);
const char *jobview_exclusive(struct jobview *v);         /* NO NODE USER MCS TOPO */
void put_std_path(struct str *out, struct jobview *v, unsigned which, bool expand); /* which: PB_JobDesc_std_out.. */
void put_user(struct str *out, struct slice name, uint64_t uid);
void put_group(struct str *out, struct slice name, uint64_t gid);
/* "2026-11-30T03:47:36", honouring SLURM_TIME_FORMAT; `absent` when t is 0. */
void put_when(struct str *out, uint64_t t, const char *absent);
void put_secs_short(struct str *out, uint64_t secs);      /* 1:05 */
void put_secs(struct str *out, uint64_t secs);            /* 00:01:05 */
void put_limit_short(struct str *out, uint64_t minutes);  /* 10:00, UNLIMITED */
void put_limit(struct str *out, uint64_t minutes);
void put_mem(struct str *out, uint64_t mb);               /* 1G */
