/* fields_job.c - getters and sort keys behind tables/fields_job.def */
#include <string.h>

#include "cli/fields_job.h"
#include "model/states.h"
#include "model/timespec.h"
#include "model/tres.h"

#define GET(fn) static void fn(struct str *out, void *row, const struct field *f)
#define KEY(fn) static int64_t fn(void *row, const struct field *f)
#define JOB ((struct jobview *)row)

static void put_num_or(struct str *out, const struct msgview *m, const struct field *f)
{
	if (msgview_has(m, f->arg))
		put_u64(out, msgview_num(m, f->arg, 0));
	else
		str_add(out, f->absent);
}

GET(fixed) { str_add(out, f->absent); }
GET(cluster) { put_text(out, show_env.cluster, f->absent); }
GET(rec_text) { put_slice_set(out, msgview_text(&JOB->rec, f->arg), f->absent); }
GET(rec_num) { put_num_or(out, &JOB->rec, f); }
GET(rec_time) { put_when(out, jobview_num(JOB, f->arg, 0), f->absent); }
GET(eligible) { put_when(out, jobview_eligible(JOB), f->absent); }
GET(tres_per_task)
{
	size_t before = out->len;
	put_tres_per_task(out, JOB);
	if (out->len == before)
		str_add(out, f->absent);
}
GET(cron_job) { put_slice_set(out, msgview_text(jobview_desc(JOB), PB_JobDesc_cron_spec).n ? (struct slice){ "Yes", 3 } : (struct slice){ 0 }, f->absent); }
GET(desc_text) { put_slice_set(out, msgview_text(jobview_desc(JOB), f->arg), f->absent); }
GET(desc_num) { put_num_or(out, jobview_desc(JOB), f); }
GET(desc_time) { put_when(out, msgview_num(jobview_desc(JOB), f->arg, 0), f->absent); }
GET(desc_secs) { put_secs_short(out, msgview_num(jobview_desc(JOB), f->arg, 0)); }
GET(desc_mem) { put_mem(out, msgview_num(jobview_desc(JOB), f->arg, 0)); }
GET(vol_text) { put_slice_set(out, msgview_text(jobview_vol(JOB), f->arg), f->absent); }
GET(vol_time) { put_when(out, msgview_num(jobview_vol(JOB), f->arg, 0), f->absent); }
KEY(key_rec) { return (int64_t)jobview_num(JOB, f->arg, 0); }
KEY(key_desc) { return (int64_t)msgview_num(jobview_desc(JOB), f->arg, 0); }
KEY(key_vol) { return (int64_t)msgview_num(jobview_vol(JOB), f->arg, 0); }

GET(rec_limit)
{
	if (msgview_has(&JOB->rec, f->arg))
		put_limit_short(out, jobview_num(JOB, f->arg, 0));
	else
		str_add(out, f->absent);
}
GET(desc_limit)
{
	const struct msgview *d = jobview_desc(JOB);
	if (msgview_has(d, f->arg))
		put_limit_short(out, msgview_num(d, f->arg, 0));
	else
		str_add(out, f->absent);
}

static uint64_t array_or_job(const struct jobview *v)
{
	return jobview_num(v, PB_JobRecord_array_job_id, jobview_num(v, PB_JobRecord_job_id, 0));
}
GET(array_job) { put_u64(out, array_or_job(JOB)); }
KEY(key_array_job) { return (int64_t)array_or_job(JOB); }
GET(array_task) { put_array_task(out, JOB, f->absent); }
KEY(key_task) { return JOB->task >= 0 ? JOB->task : (int64_t)jobview_num(JOB, PB_JobRecord_array_task_id, UINT32_MAX); }
GET(job_array_id) { put_job_id(out, JOB); }
KEY(key_id) { return (int64_t)(array_or_job(JOB) << 32 | (uint32_t)key_task(row, f)); }

GET(batch_host)
{
	struct slice host = msgview_text(jobview_alloc(JOB), PB_Alloc_batch_host);
	bool batch = msgview_num(jobview_desc(JOB), PB_JobDesc_batch, 0);
	put_slice_set(out, batch ? host : msgview_text(jobview_desc(JOB), PB_JobDesc_alloc_node), f->absent);
}
GET(core_spec)
{
	const struct msgview *d = jobview_desc(JOB);
	if (msgview_has(d, PB_JobDesc_thread_spec))
		str_addf(out, "%llu Threads", (unsigned long long)msgview_num(d, PB_JobDesc_thread_spec, 0));
	else if (msgview_has(d, PB_JobDesc_core_spec))
		put_u64(out, msgview_num(d, PB_JobDesc_core_spec, 0));
	else
		str_add(out, f->absent);
}
GET(end_time)
{
	bool open_end = jobview_is_pending(JOB) ? jobview_start(JOB) != 0 : !job_state_is_final(jobview_state(JOB));
	put_when(out, jobview_end(JOB), open_end ? "NONE" : f->absent);
}
KEY(key_end) { return (int64_t)jobview_end(JOB); }
GET(start_time) { put_when(out, jobview_start(JOB), f->absent); }
KEY(key_start)
{
	uint64_t t = jobview_start(JOB);
	return t ? (int64_t)t : INT64_MAX;   /* not known yet: last */
}
GET(exclusive) { str_add(out, jobview_exclusive(JOB)); }
GET(exit_code) { put_exit(out, (uint32_t)jobview_num(JOB, f->arg, 0)); }
GET(derived_exit) { put_exit(out, jobview_derived_status(JOB)); }
GET(group) { put_group(out, msgview_text(&JOB->rec, PB_JobRecord_group), jobview_num(JOB, PB_JobRecord_gid, 0)); }
GET(user) { put_user(out, msgview_text(&JOB->rec, PB_JobRecord_user), jobview_num(JOB, PB_JobRecord_uid, 0)); }
GET(licenses_alloc)
{
	put_slice_set(out, jobview_is_pending(JOB) ? (struct slice){ 0 } : msgview_text(&JOB->rec, f->arg), f->absent);
}
GET(max_nodes) { put_u64(out, jobview_max_nodes(JOB)); }
GET(min_cpus) { put_u64(out, jobview_min_cpus_node(JOB)); }
KEY(key_min_cpus) { return (int64_t)jobview_min_cpus_node(JOB); }
GET(min_memory) { put_job_min_memory(out, JOB); }
KEY(key_memory)
{
	const struct msgview *d = jobview_desc(JOB);
	return (int64_t)msgview_num(d, PB_JobDesc_mem_per_cpu, msgview_num(d, PB_JobDesc_mem_per_node, 0));
}
GET(nice_value) { put_i64(out, (int32_t)msgview_sint(jobview_desc(JOB), PB_JobDesc_nice, 0)); }
KEY(key_nice) { return (int32_t)msgview_sint(jobview_desc(JOB), PB_JobDesc_nice, 0); }
GET(node_list) { put_slice(out, msgview_text(jobview_alloc(JOB), PB_Alloc_nodes), f->absent); }
KEY(key_tasks) { return (int64_t)jobview_num(JOB, PB_JobRecord_num_tasks, msgview_num(jobview_desc(JOB), PB_JobDesc_num_tasks, 1)); }
GET(num_tasks) { put_i64(out, key_tasks(row, f)); }
GET(oversubscribe)
{
	const struct msgview *d = jobview_desc(JOB);
	str_add(out, msgview_num(d, PB_JobDesc_oversubscribe, 0) ? "YES" : "NO");
}
GET(reservation) { put_slice_set(out, jobview_reservation(JOB), f->absent); }
GET(partition) { put_slice(out, jobview_partition(JOB), f->absent); }
KEY(key_pending)
{
	uint64_t submit = jobview_num(JOB, PB_JobRecord_submit_time, 0), start = jobview_num(JOB, PB_JobRecord_start_time, 0);
	uint64_t until = jobview_is_pending(JOB) || !start ? show_env.now : start;
	return until > submit ? (int64_t)(until - submit) : 0;
}
GET(pending_time) { put_i64(out, key_pending(row, f)); }
KEY(key_priority) { return (int64_t)msgview_num(jobview_vol(JOB), PB_JobVolatile_priority, 0); }
GET(priority) { str_addf(out, "%16.14f", (double)key_priority(row, f) / (double)UINT32_MAX); }
GET(priority_long) { put_i64(out, key_priority(row, f)); }
GET(reason) { put_job_reason(out, JOB); }
GET(reason_list)
{
	static const uint32_t explained = 1u << PB__JOB_STATE__PENDING | 1u << PB__JOB_STATE__FAILED | 1u << PB__JOB_STATE__TIMEOUT |
		1u << PB__JOB_STATE__OUT_OF_MEMORY | 1u << PB__JOB_STATE__DEADLINE;
	uint32_t state = jobview_state(JOB);
	if (state < 32 && (explained >> state & 1) && !(jobview_flags(JOB) & JOBF_COMPLETING)) {
		str_add_c(out, '(');
		put_job_reason(out, JOB);
		str_add_c(out, ')');
	} else {
		node_list(out, row, f);
	}
}
GET(sct) { put_sct(out, JOB); }
GET(state) { str_add(out, job_state_name(jobview_state(JOB), jobview_flags(JOB))); }
GET(state_compact) { str_add(out, job_state_compact(jobview_state(JOB), jobview_flags(JOB))); }
KEY(key_state) { return jobview_state(JOB); }
GET(std_path) { put_std_path(out, JOB, f->arg, show_env.expand_patterns); }
KEY(key_used) { return (int64_t)jobview_run_sec(JOB); }
GET(time_used) { put_secs_short(out, jobview_run_sec(JOB)); }
KEY(key_left)
{
	uint64_t limit = jobview_num(JOB, PB_JobRecord_time_limit_min, TIME_INFINITE);
	return limit == TIME_INFINITE ? INT64_MAX : (int64_t)limit * 60 - (int64_t)jobview_run_sec(JOB);
}
GET(time_left)
{
	int64_t left = key_left(row, f);
	if (!msgview_has(&JOB->rec, PB_JobRecord_time_limit_min))
		str_add(out, f->absent);
	else if (left == INT64_MAX)
		str_add(out, "UNLIMITED");
	else if (left < 0)
		str_add(out, "INVALID");
	else
		put_secs_short(out, (uint64_t)left);
}
GET(tres_alloc)
{
	struct slice held = msgview_text(&JOB->rec, PB_JobRecord_tres_alloc);
	put_slice_set(out, held.n ? held : msgview_text(&JOB->rec, PB_JobRecord_tres_req), f->absent);
}

#define FIELD(letter, name, header, get, arg, absent, key) { letter, name, header, get, arg, absent, key, 0 },
#define FIELD_HIDDEN(letter, name, header, get, arg, absent, key) { letter, name, header, get, arg, absent, key, FIELD_HIDDEN },
#define FIELD_SPAN(letter, name, header, get, arg, absent, key) { letter, name, header, get, arg, absent, key, FIELD_SPAN },
#define FIELD_TODO(letter, name, header) { letter, name, header, NULL, 0, NULL, NULL, FIELD_TODO },
const struct field job_fields[] = {
#include "tables/fields_job.def"
};
const size_t job_fields_n = sizeof(job_fields) / sizeof(job_fields[0]);
