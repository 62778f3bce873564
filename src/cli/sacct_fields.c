/* sacct_fields.c - what each field of sacct prints (rows: tables/fields_sacct.def)
 *
 * Values are those of 26.05.5: what belongs to a job only is empty on its steps. Fields of things that are not measured (frequency)
 * are empty or zero, as the reference prints them where nothing measures them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "cli/jobview.h"
#include "cli/sacct.h"
#include "cli/table.h"
#include "model/fname.h"
#include "model/states.h"
#include "model/stepid.h"
#include "model/timespec.h"
#include "model/tres.h"

struct sacct_env sacct_env;


void sacct_row_init(struct sacct_row *r, const Pb__DbdJob *db, const Pb__JobRecord *job, const Pb__StepRecord *step, int64_t task)
{
	bool over = step ? job_state_is_final(step->state) : job_state_is_final(job->state) || db->requeued;
	*r = (struct sacct_row){ db, job, step, task, step ? step->start_time : job->start_time, 0, 0, 0, 0 };
	uint64_t script = 0, joules;
	if (over)
		r->end = step ? step->end_time : job->end_time;
	if (!step && job->state == PB__JOB_STATE__PENDING && !db->requeued)
		r->start = 0;            /* only expected */
	for (size_t i = 0; i < db->n_step; i++) {
		const Pb__StepUsage *u = db->step[i]->usage;
		if (u && (!step || step == db->step[i])) {
			r->user_usec += u->user_usec;
			r->sys_usec += u->sys_usec;
			if (!usageview_value(u, USAGE_ENERGY, USAGEVIEW_TOTAL, &joules))
				continue;
			if (step || (db->step[i]->step_id != STEP_ID_BATCH && db->step[i]->step_id != STEP_ID_EXTERN))
				r->joules += joules;
			else
				script = joules > script ? joules : script;
		}
	}
	r->joules = script > r->joules ? script : r->joules;       /* what the steps in a script use is the script's, too */
	if (sacct_env.truncate) {
		if (r->start && r->start < sacct_env.from)
			r->start = sacct_env.from;
		if (!r->end || r->end > sacct_env.to)
			r->end = sacct_env.to;
	}
}

/* --- pieces ---------------------------------------------------------------------------------------------- */
static const Pb__JobDesc *desc_of(const struct sacct_row *r)
{
	static const Pb__JobDesc none = PB__JOB_DESC__INIT;
	return r->job->desc ? r->job->desc : &none;
}
static const Pb__StepUsage *usage_of(const struct sacct_row *r) { return r->step ? r->step->usage : NULL; }
static bool is_batch(const struct sacct_row *r) { return r->step && r->step->step_id == STEP_ID_BATCH; }
static void text(struct str *out, const char *s)
{
	size_t from = out->len;
	str_add(out, s ? s : "");
	str_mask_controls(out, from);
}


#define hms usageview_hms
static void when(struct str *out, uint64_t t) { put_when(out, t, "Unknown"); }

static void bytes(struct str *out, uint64_t v) { usageview_bytes(out, &sacct_env.view, v); }

/* In the unit asked for: whole numbers of it without decimals. */
static void mem_in_unit(struct str *out, uint64_t mb)
{
	static const char units[] = "KMGTP";
	const char *at = strchr(units, sacct_env.view.unit);
	uint64_t unit = at && *at ? 1ULL << 10 * (at - units + 1) : 0;
	if (mb && unit && (mb << 20) % unit == 0)
		str_addf(out, "%llu%c", (unsigned long long)((mb << 20) / unit), *at);
	else
		bytes(out, mb << 20);
}

static uint64_t elapsed(const struct sacct_row *r)
{
	uint64_t end = r->end ? r->end : sacct_env.now;
	if (!r->start || end < r->start)
		return 0;
	uint64_t suspended = r->step ? 0 : r->job->pre_suspend_sec;
	return end - r->start > suspended ? end - r->start - suspended : 0;
}

static uint64_t cpus(const struct sacct_row *r)
{
	if (r->step)
		return r->step->num_cpus;
	return !r->job->alloc ? 0 : r->job->alloc->num_cpus ? r->job->alloc->num_cpus : r->job->num_cpus;
}

static uint64_t req_tres(const struct sacct_row *r, const char *name, uint64_t otherwise)
{
	uint64_t v = r->job->tres_req ? tres_get(r->job->tres_req, name) : 0;
	return v ? v : otherwise;
}

/* "00:00.031", "1:02:03" and longer: as the reference prints CPU time. */
static void cpu_time(struct str *out, uint64_t usec)
{
	uint64_t secs = usec / 1000000;
	if (usec && secs < 3600)
		str_addf(out, "%02llu:%02llu.%03llu", (unsigned long long)secs / 60, (unsigned long long)secs % 60, (unsigned long long)usec / 1000 % 1000);
	else
		hms(out, secs);
}

static int piece_cmp(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool piece_hidden(const char *piece)
{
	size_t n = strcspn(piece, "=");
	if (!memchr(piece, ':', n))
		return false;
	const char *at = sacct_env.tres_tracked ? strstr(sacct_env.tres_tracked, "gres/") : NULL;
	for (; at; at = strchr(at + 1, ',') ? strchr(at + 1, ',') + 1 : NULL)
		if (!strncmp(at, piece, n) && (!at[n] || at[n] == ','))
			return false;
	return true;
}

/* TRES by name, memory in the unit asked for; types only where they are tracked. */
static void tres(struct str *out, const char *list)
{
	char *copy = xstrdup(list ? list : ""), *rest = copy, *piece, *piece_of[64];
	size_t n = 0;
	while (*copy && n < 64 && (piece = str_next(&rest, ",")))
		if (!piece_hidden(piece))
			piece_of[n++] = piece;
	qsort(piece_of, n, sizeof *piece_of, piece_cmp);
	for (size_t i = 0; i < n; i++) {
		uint64_t mb;
		str_add(out, i ? "," : "");
		if (sacct_env.view.unit && str_starts(piece_of[i], "mem=") && !mem_parse_printed(piece_of[i] + 4, &mb)) {
			str_add(out, "mem=");
			mem_in_unit(out, mb);
		} else {
			str_add(out, piece_of[i]);
		}
	}
	free(copy);
}

/* --- getters that only copy -------------------------------------------------------------------------------- */
#define JOB_TEXT(fn, expr) static void get_##fn(struct str *out, const struct sacct_row *r) { if (!r->step) text(out, expr); }
#define BOTH_TEXT(fn, of_job, of_step) static void get_##fn(struct str *out, const struct sacct_row *r) { text(out, r->step ? of_step : of_job); }
#define JOB_NUM(fn, expr) static void get_##fn(struct str *out, const struct sacct_row *r) { if (!r->step) put_u64(out, expr); }
#define EMPTY(fn) static void get_##fn(struct str *out, const struct sacct_row *r) { (void)out, (void)r; }
JOB_TEXT(admin_comment, desc_of(r)->admin_comment)
JOB_TEXT(comment, desc_of(r)->comment)
JOB_TEXT(constraints, desc_of(r)->features)
JOB_TEXT(extra, desc_of(r)->extra)
JOB_TEXT(failed_node, r->job->fail_node)
JOB_TEXT(licenses, desc_of(r)->licenses)
JOB_TEXT(mcs_label, desc_of(r)->mcs_label)
JOB_TEXT(qos, desc_of(r)->qos ? desc_of(r)->qos : "normal")
JOB_TEXT(qosreq, desc_of(r)->qos)
JOB_TEXT(reason, reason_name(r->db->reason))
JOB_TEXT(reservation, r->job->resv_name ? r->job->resv_name : desc_of(r)->reservation)
JOB_TEXT(req_reservation, desc_of(r)->reservation)
JOB_TEXT(system_comment, r->job->system_comment)
JOB_TEXT(wckey, desc_of(r)->wckey)
JOB_TEXT(work_dir, desc_of(r)->work_dir)
JOB_TEXT(partition, r->job->partition ? r->job->partition : desc_of(r)->partition)
BOTH_TEXT(account, desc_of(r)->account, desc_of(r)->account)
BOTH_TEXT(cluster, r->db->cluster, r->db->cluster)
BOTH_TEXT(container, desc_of(r)->container, is_batch(r) ? desc_of(r)->container : r->step->container)
BOTH_TEXT(sluid, r->job->sluid, r->job->sluid)
BOTH_TEXT(original_sluid, r->job->sluid, r->job->sluid)
BOTH_TEXT(submit_line, desc_of(r)->submit_line, r->step->submit_line)
JOB_NUM(gid, r->job->gid)
JOB_NUM(uid, r->job->uid)
JOB_NUM(restarts, r->job->restarts)
JOB_NUM(qosraw, 1)
JOB_NUM(wckey_id, 0)
JOB_NUM(priority, r->job->has_admin_prio ? r->job->admin_prio : desc_of(r)->priority)
EMPTY(block_id)
JOB_NUM(reservation_id, r->job->resv_id)

/* --- identity ------------------------------------------------------------------------------------------------ */
static void put_id(struct str *out, const struct sacct_row *r, bool raw)
{
	const Pb__JobRecord *j = r->job;
	if (!raw && j->has_het_job_id)
		str_addf(out, "%u+%u", j->het_job_id, j->het_offset);
	else if (raw || !j->has_array_job_id)
		put_u64(out, j->job_id);
	else if (j->has_array_task_id || r->task >= 0)
		str_addf(out, "%u_%llu", j->array_job_id, (unsigned long long)(r->task >= 0 ? (uint64_t)r->task : j->array_task_id));
	else if (j->array_tasks && j->has_array_max_running && j->array_max_running)
		str_addf(out, "%u_[%s%%%u]", j->array_job_id, j->array_tasks, j->array_max_running);
	else
		str_addf(out, j->array_tasks ? "%u_[%s]" : "%u", j->array_job_id, j->array_tasks);
	if (!r->step)
		return;
	str_add_c(out, '.');
	stepid_add(out, r->step->step_id);
}
static void get_job_id(struct str *out, const struct sacct_row *r) { put_id(out, r, false); }
static void get_job_idraw(struct str *out, const struct sacct_row *r) { put_id(out, r, true); }
static void get_dbindex(struct str *out, const struct sacct_row *r) { put_u64(out, r->db->db_index); }
static void get_assoc_id(struct str *out, const struct sacct_row *r) { str_add(out, "0"); }

static void get_job_name(struct str *out, const struct sacct_row *r)
{
	if (!r->step)
		text(out, desc_of(r)->name);
	else
		text(out, stepid_word(r->step->step_id) ? stepid_word(r->step->step_id) : r->step->name);
}

static void get_user(struct str *out, const struct sacct_row *r)
{
	if (!r->step)
		put_user(out, (struct slice){ r->job->user, r->job->user ? strlen(r->job->user) : 0 }, r->job->uid);
}

static void get_group(struct str *out, const struct sacct_row *r)
{
	if (!r->step)
		put_group(out, (struct slice){ r->job->group, r->job->group ? strlen(r->job->group) : 0 }, r->job->gid);
}

/* --- state ---------------------------------------------------------------------------------------------------- */
static void get_state(struct str *out, const struct sacct_row *r)
{
	uint32_t state = r->step ? r->step->state : r->job->state;
	bool by = r->step ? r->step->has_cancel_uid : r->job->has_cancel_uid;
	if (!r->step && r->db->requeued && !job_state_is_final(state))
		str_add(out, r->job->fail_node && r->job->end_reason == REASON_NODE_DOWN ? "NODE_FAIL" : "REQUEUED");
	else if (state == PB__JOB_STATE__CANCELLED && by)
		str_addf(out, "CANCELLED by %u", r->step ? r->step->cancel_uid : r->job->cancel_uid);
	else
		str_add(out, job_state_name(state, 0));
}

/* How the script ended is not how a job did that was ended from outside: 0:0, as the reference; its batch step tells the rest. */
static uint32_t exit_of(const struct sacct_row *r)
{
	if (r->step)
		return r->step->exit_status;
	switch (r->job->state) {
	case PB__JOB_STATE__CANCELLED: case PB__JOB_STATE__TIMEOUT: case PB__JOB_STATE__PREEMPTED: case PB__JOB_STATE__DEADLINE: case PB__JOB_STATE__NODE_FAIL:
		return 0;
	default:
		return r->job->exit_status;
	}
}

static void get_exit_code(struct str *out, const struct sacct_row *r) { put_exit(out, exit_of(r)); }
static void get_derived_exit_code(struct str *out, const struct sacct_row *r) { if (!r->step) put_exit(out, r->job->has_derived_status ? r->job->derived_status : r->job->derived_exit << 8); }

static void get_flags(struct str *out, const struct sacct_row *r)
{
	if (!r->step && r->job->start_time)
		str_add(out, "StartReceived");
}

static void get_exclusive(struct str *out, const struct sacct_row *r)
{
	const char *v = desc_of(r)->exclusive;
	if (r->step)
		return;
	str_add(out, v ? v : "NO");
	for (size_t i = v ? strlen(v) : 0; i; i--) {
		char *p = &out->data[out->len - i];
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
	}
}
static void get_over_subscribe(struct str *out, const struct sacct_row *r) { if (!r->step) str_add(out, desc_of(r)->oversubscribe ? "YES" : "NO"); }

static void get_layout(struct str *out, const struct sacct_row *r)
{
	const char *d = r->step ? r->step->distribution : NULL;
	if (!r->step)
		return;
	if (is_batch(r) || !d || !*d) {
		str_add(out, "Unknown");
		return;
	}
	str_add_c(out, (char)(d[0] >= 'a' && d[0] <= 'z' ? d[0] - 32 : d[0]));
	str_add_n(out, d + 1, strcspn(d + 1, ":,"));
}

static void get_segment_size(struct str *out, const struct sacct_row *r)
{
	if (!r->step && desc_of(r)->has_segment)
		put_u64(out, desc_of(r)->segment);
}

/* --- resources --------------------------------------------------------------------------------------------------- */
static void get_cpus(struct str *out, const struct sacct_row *r) { put_u64(out, cpus(r)); }
static void get_alloc_nodes(struct str *out, const struct sacct_row *r)
{
	put_u64(out, r->step ? r->step->num_nodes : !r->job->alloc ? 0 : r->job->alloc->num_nodes ? r->job->alloc->num_nodes : r->job->num_nodes);
}
static void get_nnodes(struct str *out, const struct sacct_row *r) { put_u64(out, r->step ? r->step->num_nodes : r->job->num_nodes); }
static void get_alloc_tres(struct str *out, const struct sacct_row *r)
{
	tres(out, r->step ? r->step->tres : r->job->alloc ? r->job->tres_alloc : NULL);
}
static void get_req_tres(struct str *out, const struct sacct_row *r) { if (!r->step) tres(out, r->job->tres_req); }
static void get_req_cpus(struct str *out, const struct sacct_row *r) { put_u64(out, r->step ? r->step->num_cpus : req_tres(r, "cpu", r->job->num_cpus)); }
static void get_req_nodes(struct str *out, const struct sacct_row *r) { put_u64(out, r->step ? r->step->num_nodes : req_tres(r, "node", r->job->num_nodes)); }
static void get_ntasks(struct str *out, const struct sacct_row *r) { if (r->step) put_u64(out, r->step->num_tasks); }

static void get_req_mem(struct str *out, const struct sacct_row *r)
{
	uint64_t mb = req_tres(r, "mem", 0);
	char buf[32];
	if (r->step)
		return;
	if (sacct_env.view.unit) {
		mem_in_unit(out, mb);
		return;
	}
	if (sacct_env.view.no_convert)
		snprintf(buf, sizeof buf, "%lluM", (unsigned long long)mb);
	else
		mem_format(mb, buf, sizeof buf);
	str_add(out, buf);
}

static void get_node_list(struct str *out, const struct sacct_row *r)
{
	const char *nodes = r->step ? r->step->nodes : r->job->alloc ? r->job->alloc->nodes : NULL;
	str_add(out, nodes && *nodes ? nodes : "None assigned");
}

/* --- times ---------------------------------------------------------------------------------------------------------- */
static void get_submit(struct str *out, const struct sacct_row *r) { when(out, r->step ? r->step->start_time : r->job->submit_time); }
static void get_eligible(struct str *out, const struct sacct_row *r) { when(out, r->step ? r->step->start_time : r->job->eligible_time); }
static void get_end(struct str *out, const struct sacct_row *r) { when(out, r->end); }
static void get_start(struct str *out, const struct sacct_row *r) { put_when(out, r->start, !r->step && job_state_is_final(r->job->state) ? "None" : "Unknown"); }
static void get_elapsed(struct str *out, const struct sacct_row *r) { hms(out, elapsed(r)); }
static void get_elapsed_raw(struct str *out, const struct sacct_row *r) { put_u64(out, elapsed(r)); }
static void get_cputime(struct str *out, const struct sacct_row *r) { hms(out, elapsed(r) * cpus(r)); }
static void get_cputime_raw(struct str *out, const struct sacct_row *r) { put_u64(out, elapsed(r) * cpus(r)); }
static void get_suspended(struct str *out, const struct sacct_row *r) { hms(out, r->step ? 0 : r->job->pre_suspend_sec); }

static uint64_t planned(const struct sacct_row *r)
{
	uint64_t until = r->start ? r->start : r->end ? r->end : sacct_env.now, from = r->job->eligible_time;
	return from && until > from ? until - from : 0;
}
static void get_planned(struct str *out, const struct sacct_row *r) { if (!r->step) hms(out, planned(r)); }
static void get_planned_cpu(struct str *out, const struct sacct_row *r) { if (!r->step) hms(out, planned(r) * req_tres(r, "cpu", r->job->num_cpus)); }
static void get_planned_cpuraw(struct str *out, const struct sacct_row *r) { if (!r->step) put_u64(out, planned(r) * req_tres(r, "cpu", r->job->num_cpus)); }

static void put_timelimit(struct str *out, const struct sacct_row *r, bool raw)
{
	uint32_t min = r->job->time_limit_min;
	if (r->step)
		return;
	if (!r->job->has_time_limit_min)
		str_add(out, "Partition_Limit");
	else if (min == TIME_INFINITE)
		str_add(out, "UNLIMITED");
	else if (raw)
		put_u64(out, min);
	else
		hms(out, (uint64_t)min * 60);
}
static void get_timelimit(struct str *out, const struct sacct_row *r) { put_timelimit(out, r, false); }
static void get_timelimit_raw(struct str *out, const struct sacct_row *r) { put_timelimit(out, r, true); }

/* --- usage ------------------------------------------------------------------------------------------------------------ */
static void get_user_cpu(struct str *out, const struct sacct_row *r) { cpu_time(out, r->user_usec); }
static void get_system_cpu(struct str *out, const struct sacct_row *r) { cpu_time(out, r->sys_usec); }
static void get_total_cpu(struct str *out, const struct sacct_row *r) { cpu_time(out, r->user_usec + r->sys_usec); }

#define GETTER(fn) static void get_##fn(struct str *out, const struct sacct_row *r)
#define USAGE(r) usage_of(r)
#define VIEW(r) &sacct_env.view
#define PUT_DISK(out, r, v) str_addf(out, "%.2fM", (double)(v) / (1 << 20))
#include "cli/usage_getters.h"

static void get_consumed_energy(struct str *out, const struct sacct_row *r) { usageview_energy(out, r->joules, sacct_env.view.no_convert); }
static void get_consumed_energy_raw(struct str *out, const struct sacct_row *r) { usageview_energy(out, r->joules, true); }
static void get_ave_cpufreq(struct str *out, const struct sacct_row *r) { if (r->step) str_add(out, "0"); }
static void get_req_cpufreq(struct str *out, const struct sacct_row *r) { str_add(out, is_batch(r) ? "0" : "Unknown"); }
#define get_req_cpufreq_gov get_req_cpufreq
#define get_req_cpufreq_max get_req_cpufreq
#define get_req_cpufreq_min get_req_cpufreq

/* --- files ---------------------------------------------------------------------------------------------------------------- */
static void put_path(struct str *out, const struct sacct_row *r, unsigned which)
{
	size_t len = pb__job_record__get_packed_size(r->job);
	uint8_t *data = xmalloc(len + 1);
	struct jobview v = { .task = -1 };
	struct str path = STR_INIT;
	pb__job_record__pack(r->job, data);
	if (!r->step && jobview_read_record(&v, data, len))
		put_std_path(&path, &v, which, sacct_env.expand);
	if (strcmp(path.data, "(null)"))
		str_add(out, path.data);
	str_fini(&path);
	free(data);
}
static void get_std_in(struct str *out, const struct sacct_row *r) { put_path(out, r, PB_JobDesc_std_in); }
static void get_std_out(struct str *out, const struct sacct_row *r) { put_path(out, r, PB_JobDesc_std_out); }
static void get_std_err(struct str *out, const struct sacct_row *r) { put_path(out, r, PB_JobDesc_std_err); }

const struct cells_field sacct_names[] = {
#define SACCT(name, width, fn) { #name, width },
#include "tables/fields_sacct.def"
#undef SACCT
};
const size_t sacct_names_n = sizeof sacct_names / sizeof *sacct_names;

static void (*const getters[])(struct str *out, const struct sacct_row *r) = {
#define SACCT(name, width, fn) get_##fn,
#include "tables/fields_sacct.def"
#undef SACCT
};
void sacct_get(struct str *out, size_t field, const struct sacct_row *r) { getters[field](out, r); }
