/* scontrol_job.c - a job and a step as `scontrol show` prints them
 * One function a group of lines, in the reference's order. `nl` separates lines of a record: a newline and three blanks, or one blank with -o. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/fields_job.h"
#include "cli/scontrol.h"
#include "model/hostlist.h"
#include "model/states.h"
#include "model/timespec.h"

#define NL(s) ((s)->one_line ? " " : "\n   ")

static void kv_text(struct str *out, const char *key, struct slice value, const char *absent)
{
	str_add(out, key);
	put_slice_set(out, value, absent);
}
static void kv_num(struct str *out, const char *key, uint64_t value)
{
	str_add(out, key);
	put_u64(out, value);
}
static void kv_when(struct str *out, const char *key, uint64_t t, const char *absent)
{
	str_add(out, key);
	put_when(out, t, absent);
}
static void kv_star(struct str *out, const char *key, const struct msgview *m, unsigned field)
{
	str_add(out, key);
	if (msgview_has(m, field))
		put_u64(out, msgview_num(m, field, 0));
	else
		str_add_c(out, '*');
}

static void put_head(struct str *out, struct jobview *v, const struct scontrol *s)
{
	const struct msgview *d = jobview_desc(v);
	kv_num(out, "JobId=", jobview_num(v, PB_JobRecord_job_id, 0));
	if (msgview_has(&v->rec, PB_JobRecord_array_job_id)) {
		kv_num(out, " ArrayJobId=", jobview_num(v, PB_JobRecord_array_job_id, 0));
		str_add(out, " ArrayTaskId=");
		if (s->task && !msgview_has(&v->rec, PB_JobRecord_array_task_id))
			str_add(out, s->task);
		else
			put_array_task(out, v, "N/A");
		if (jobview_num(v, PB_JobRecord_array_max_running, 0))
			kv_num(out, " ArrayTaskThrottle=", jobview_num(v, PB_JobRecord_array_max_running, 0));
	}
	bool het = msgview_has(&v->rec, PB_JobRecord_het_job_id);
	if (het) {
		kv_num(out, " HetJobId=", jobview_num(v, PB_JobRecord_het_job_id, 0));
		kv_num(out, " HetJobOffset=", jobview_num(v, PB_JobRecord_het_offset, 0));
	}
	kv_text(out, " JobName=", msgview_text(d, PB_JobDesc_name), "");
	if (het) {
		str_add(out, NL(s));
		kv_text(out, "HetJobIdSet=", msgview_text(&v->rec, PB_JobRecord_het_ids), "");
	}
	if (s->details) {
		str_add(out, NL(s));
		kv_text(out, "SLUID=", msgview_text(&v->rec, PB_JobRecord_sluid), "");
	}
	str_add(out, NL(s));
	str_add(out, "UserId=");
	put_user(out, msgview_text(&v->rec, PB_JobRecord_user), jobview_num(v, PB_JobRecord_uid, 0));
	str_addf(out, "(%u) GroupId=", (unsigned)jobview_num(v, PB_JobRecord_uid, 0));
	put_group(out, msgview_text(&v->rec, PB_JobRecord_group), jobview_num(v, PB_JobRecord_gid, 0));
	str_addf(out, "(%u)", (unsigned)jobview_num(v, PB_JobRecord_gid, 0));
	kv_text(out, " MCS_label=", msgview_text(d, PB_JobDesc_mcs_label), "N/A");
	str_add(out, NL(s));
	kv_num(out, "Priority=", msgview_num(jobview_vol(v), PB_JobVolatile_priority, 0));
	str_add(out, " Nice=");
	put_i64(out, msgview_sint(d, PB_JobDesc_nice, 0));
	kv_text(out, " Account=", msgview_text(d, PB_JobDesc_account), "(null)");
	kv_text(out, " QOS=", msgview_text(d, PB_JobDesc_qos), "normal");
	if (msgview_text(d, PB_JobDesc_wckey).n)
		kv_text(out, " WCKey=", msgview_text(d, PB_JobDesc_wckey), "");
	str_add(out, NL(s));
}

static void put_state_lines(struct str *out, struct jobview *v, const struct scontrol *s)
{
	const struct msgview *d = jobview_desc(v);
	str_add(out, "JobState=");
	str_add(out, job_state_name(jobview_state(v), jobview_flags(v)));
	str_add(out, " Reason=");
	size_t reason = out->len;
	put_job_reason(out, v);
	for (; reason < out->len; reason++)
		if (out->data[reason] == ' ')
			out->data[reason] = '_';
	kv_text(out, " Dependency=", msgview_text(&v->rec, PB_JobRecord_dependency_left), "(null)");
	if (msgview_text(&v->rec, PB_JobRecord_fail_node).n)
		kv_text(out, " FailedNode=", msgview_text(&v->rec, PB_JobRecord_fail_node), "");
	str_add(out, NL(s));
	kv_num(out, "Requeue=", msgview_num(d, PB_JobDesc_requeue, 1));
	kv_num(out, " Restarts=", jobview_num(v, PB_JobRecord_restarts, 0));
	kv_num(out, " BatchFlag=", msgview_num(d, PB_JobDesc_batch, 0));
	kv_num(out, " Reboot=", msgview_num(d, PB_JobDesc_reboot, 0));
	str_add(out, " ExitCode=");
	put_exit(out, (uint32_t)jobview_num(v, PB_JobRecord_exit_status, 0));
	if (s->details) {
		str_add(out, NL(s));
		str_add(out, "DerivedExitCode=");
		put_exit(out, jobview_derived_status(v));
	}
	str_add(out, NL(s));
}

static void put_time_lines(struct str *out, struct jobview *v, const struct scontrol *s)
{
	const struct msgview *d = jobview_desc(v), *vol = jobview_vol(v);
	uint64_t start = jobview_start(v);
	str_add(out, "RunTime=");
	put_secs(out, jobview_run_sec(v));
	str_add(out, " TimeLimit=");
	if (msgview_has(&v->rec, PB_JobRecord_time_limit_min))
		put_limit(out, jobview_num(v, PB_JobRecord_time_limit_min, 0));
	else
		str_add(out, "Partition_Limit");
	str_add(out, " TimeMin=");
	if (msgview_num(d, PB_JobDesc_time_min_min, 0))
		put_limit(out, msgview_num(d, PB_JobDesc_time_min_min, 0));
	else
		str_add(out, "N/A");
	str_add(out, NL(s));
	kv_when(out, "SubmitTime=", jobview_num(v, PB_JobRecord_submit_time, 0), "Unknown");
	kv_when(out, " EligibleTime=", jobview_eligible(v), "Unknown");
	str_add(out, NL(s));
	kv_when(out, "AccrueTime=", jobview_num(v, PB_JobRecord_accrue_time, 0), "Unknown");
	str_add(out, NL(s));
	kv_when(out, "StartTime=", start, "Unknown");
	kv_when(out, " EndTime=", jobview_end(v), "Unknown");
	kv_when(out, " Deadline=", msgview_num(d, PB_JobDesc_deadline, 0), "N/A");
	str_add(out, NL(s));
	if (msgview_text(d, PB_JobDesc_cron_spec).n) {
		struct slice spec = msgview_text(d, PB_JobDesc_cron_spec);
		str_addf(out, "CronJob=Yes CrontabSpec=\"%.*s\"", (int)spec.n, spec.p);
		str_add(out, NL(s));
	}
	if (show_env.preempt && !jobview_is_pending(v) && start) {
		kv_when(out, "PreemptEligibleTime=", start + show_env.preempt_exempt_sec, "Unknown");
		kv_when(out, " PreemptTime=", jobview_num(v, PB_JobRecord_preempt_time, 0), "None");
		str_add(out, NL(s));
	}
	kv_when(out, "SuspendTime=", jobview_num(v, PB_JobRecord_suspend_time, 0), "None");
	kv_num(out, " SecsPreSuspend=", jobview_pre_suspend_sec(v));
	kv_when(out, " LastSchedEval=", msgview_num(vol, PB_JobVolatile_last_eval, 0), "Unknown");
	if (msgview_text(vol, PB_JobVolatile_scheduler).n)
		kv_text(out, " Scheduler=", msgview_text(vol, PB_JobVolatile_scheduler), "");
	str_add(out, NL(s));
}

static void put_place_lines(struct str *out, struct jobview *v, const struct scontrol *s)
{
	const struct msgview *d = jobview_desc(v), *alloc = jobview_alloc(v);
	kv_text(out, "Partition=", jobview_partition(v), "");
	kv_text(out, " AllocNode:Sid=", msgview_text(d, PB_JobDesc_alloc_node), "(null)");
	kv_num(out, ":", msgview_num(d, PB_JobDesc_alloc_sid, 0));
	str_add(out, NL(s));
	kv_text(out, "ReqNodeList=", msgview_text(d, PB_JobDesc_req_nodes), "(null)");
	kv_text(out, " ExcNodeList=", msgview_text(d, PB_JobDesc_exc_nodes), "(null)");
	str_add(out, NL(s));
	kv_text(out, "NodeList=", msgview_text(alloc, PB_Alloc_nodes), "");
	if (msgview_text(jobview_vol(v), PB_JobVolatile_sched_nodes).n)
		kv_text(out, " SchedNodeList=", msgview_text(jobview_vol(v), PB_JobVolatile_sched_nodes), "");
	str_add(out, NL(s));
	if (msgview_text(alloc, PB_Alloc_batch_host).n) {
		kv_text(out, "BatchHost=", msgview_text(alloc, PB_Alloc_batch_host), "");
		str_add(out, NL(s));
	}
	if (msgview_num(d, PB_JobDesc_stepmgr, 0)) {
		str_add(out, "StepMgrEnabled=Yes");
		str_add(out, NL(s));
	}
	kv_num(out, "NumNodes=", jobview_num(v, PB_JobRecord_num_nodes, 0));
	if (jobview_is_pending(v))
		kv_num(out, "-", jobview_max_nodes(v));
	kv_num(out, " NumCPUs=", jobview_num(v, PB_JobRecord_num_cpus, 0));
	kv_num(out, " NumTasks=", jobview_num(v, PB_JobRecord_num_tasks, msgview_num(d, PB_JobDesc_num_tasks, 1)));
	kv_num(out, " CPUs/Task=", msgview_num(d, PB_JobDesc_cpus_per_task, 1));
	str_add(out, " ReqB:S:C:T=0:0:");
	kv_star(out, "", d, PB_JobDesc_cores_per_socket);
	kv_star(out, ":", d, PB_JobDesc_threads_per_core);
	str_add(out, NL(s));
	kv_text(out, "ReqTRES=", msgview_text(&v->rec, PB_JobRecord_tres_req), "(null)");
	str_add(out, NL(s));
	kv_text(out, "AllocTRES=", msgview_text(&v->rec, PB_JobRecord_tres_alloc), "(null)");
	str_add(out, NL(s));
	kv_star(out, "Socks/Node=", d, PB_JobDesc_sockets_per_node);
	kv_num(out, " NtasksPerN:B:S:C=", msgview_num(d, PB_JobDesc_ntasks_per_node, 0));
	kv_star(out, ":0:", d, PB_JobDesc_ntasks_per_socket);
	kv_star(out, ":", d, PB_JobDesc_ntasks_per_core);
	if (msgview_has(d, PB_JobDesc_thread_spec))
		kv_num(out, " ThreadSpec=", msgview_num(d, PB_JobDesc_thread_spec, 0));
	else
		kv_star(out, " CoreSpec=", d, PB_JobDesc_core_spec);
	str_add(out, NL(s));
}

/* "gpu:h100:2(IDX:0-1)" for each resource of one node, comma between. */
static void put_gres_list(struct str *out, const struct msgview *part)
{
	static struct msgview g;
	struct wire_field f;
	bool first = true;
	for (size_t at = 0; msgview_each(part, PB_NodeAlloc_gres, &at, &f); first = false) {
		(void)msgview_read(&g, f.data, f.len);
		str_add(out, first ? "" : ",");
		put_slice(out, msgview_text(&g, PB_GresAlloc_name), "");
		if (msgview_text(&g, PB_GresAlloc_type).n)
			kv_text(out, ":", msgview_text(&g, PB_GresAlloc_type), "");
		kv_num(out, ":", msgview_num(&g, PB_GresAlloc_count, 0));
		struct slice shares = msgview_text(&g, PB_GresAlloc_shares);
		if (shares.n || msgview_text(&g, PB_GresAlloc_index).n) {
			kv_text(out, shares.n ? "(" : "(IDX:", shares.n ? shares : msgview_text(&g, PB_GresAlloc_index), "");
			str_add_c(out, ')');
		}
	}
}

/* Name and type of the g-th resource of a part with its count over all nodes of the part added to a running sum. */
struct gres_total { struct slice name, type; uint64_t count; };
static size_t totals_add(struct gres_total *t, size_t n, size_t max, const struct msgview *part, uint64_t nodes)
{
	static struct msgview g;
	struct wire_field f;
	for (size_t at = 0; msgview_each(part, PB_NodeAlloc_gres, &at, &f);) {
		(void)msgview_read(&g, f.data, f.len);
		struct slice name = msgview_text(&g, PB_GresAlloc_name), type = msgview_text(&g, PB_GresAlloc_type);
		size_t i = 0;
		while (i < n && !(t[i].name.n == name.n && !memcmp(t[i].name.p, name.p, name.n) && t[i].type.n == type.n &&
				  !memcmp(t[i].type.p ? t[i].type.p : "", type.p ? type.p : "", type.n)))
			i++;
		if (i == max)
			continue;
		if (i == n)
			t[n++] = (struct gres_total){ name, type, 0 };
		t[i].count += nodes * msgview_num(&g, PB_GresAlloc_count, 0);
	}
	return n;
}

static uint64_t nodes_count(struct slice nodes)
{
	char *text = slice_dup(nodes);
	long n = text ? hostlist_count(text, NULL) : 0;
	free(text);
	return n > 0 ? (uint64_t)n : 0;
}

/* -d: the sum of GRES, then one line for each group of nodes that hold the same. */
static void put_alloc_lines(struct str *out, struct jobview *v, const struct scontrol *s)
{
	static struct msgview part;
	struct gres_total total[16];
	struct wire_field f;
	size_t n = 0;
	const struct msgview *alloc = jobview_alloc(v);
	if (!s->details || !msgview_has(alloc, PB_Alloc_part))
		return;
	for (size_t at = 0; msgview_each(alloc, PB_Alloc_part, &at, &f);) {
		(void)msgview_read(&part, f.data, f.len);
		n = totals_add(total, n, 16, &part, nodes_count(msgview_text(&part, PB_NodeAlloc_nodes)));
	}
	str_add(out, "JOB_GRES=");
	for (size_t i = 0; i < n; i++) {
		put_slice(out, total[i].name, i ? "," : "");
		if (total[i].type.n)
			kv_text(out, ":", total[i].type, "");
		kv_num(out, ":", total[i].count);
		str_add(out, i + 1 < n ? "," : "");
	}
	str_add(out, n ? "" : "(null)");
	for (size_t at = 0; msgview_each(alloc, PB_Alloc_part, &at, &f);) {
		(void)msgview_read(&part, f.data, f.len);
		str_add(out, s->one_line ? " " : "\n     ");
		kv_text(out, "Nodes=", msgview_text(&part, PB_NodeAlloc_nodes), "");
		kv_text(out, " CPU_IDs=", msgview_text(&part, PB_NodeAlloc_cpu_ids), "");
		kv_num(out, " Mem=", msgview_num(&part, PB_NodeAlloc_mem, 0));
		str_add(out, " GRES=");
		put_gres_list(out, &part);
	}
	str_add(out, NL(s));
}

static void put_limit_lines(struct str *out, struct jobview *v, const struct scontrol *s)
{
	const struct msgview *d = jobview_desc(v);
	kv_num(out, "MinCPUsNode=", jobview_min_cpus_node(v));
	if (msgview_text(d, PB_JobDesc_mem_per_tres).n && !msgview_has(d, PB_JobDesc_mem_per_cpu)) {
		struct slice tres = msgview_text(d, PB_JobDesc_mem_per_tres);
		size_t colon = tres.n;
		while (colon && tres.p[colon - 1] != ':')
			colon--;
		str_add(out, " MinMemoryTRES=");
		put_mem(out, strtoull(tres.p + colon, NULL, 10));
	} else {
		str_add(out, msgview_has(d, PB_JobDesc_mem_per_cpu) ? " MinMemoryCPU=" : " MinMemoryNode=");
		put_job_min_memory(out, v);
	}
	str_add(out, " MinTmpDiskNode=");
	put_mem(out, msgview_num(d, PB_JobDesc_tmp_disk, 0));
	str_add(out, NL(s));
	kv_text(out, "Features=", msgview_text(d, PB_JobDesc_features), "(null)");
	str_add(out, " DelayBoot=");
	put_secs(out, msgview_num(d, PB_JobDesc_delay_boot_sec, 0));
	str_add(out, NL(s));
	if (msgview_text(d, PB_JobDesc_prefer).n) {
		kv_text(out, "Prefer=", msgview_text(d, PB_JobDesc_prefer), "");
		str_add(out, NL(s));
	}
	if (msgview_text(d, PB_JobDesc_cluster_features).n) {
		kv_text(out, "ClusterFeatures=", msgview_text(d, PB_JobDesc_cluster_features), "");
		str_add(out, NL(s));
	}
	if (jobview_reservation(v).n) {
		kv_text(out, "Reservation=", jobview_reservation(v), "");
		str_add(out, NL(s));
	}
	kv_text(out, "OverSubscribe=", msgview_num(d, PB_JobDesc_oversubscribe, 0) ? (struct slice){ "YES", 3 } : (struct slice){ "NO", 2 }, "");
	str_add(out, " Exclusive=");
	str_add(out, jobview_exclusive(v));
	kv_num(out, " Contiguous=", msgview_num(d, PB_JobDesc_contiguous, 0));
	kv_text(out, " Licenses=", msgview_text(d, PB_JobDesc_licenses), "(null)");
	kv_text(out, " LicensesAlloc=", jobview_is_pending(v) ? (struct slice){ 0 } : msgview_text(&v->rec, PB_JobRecord_licenses_alloc), "(null)");
	kv_text(out, " Network=", msgview_text(d, PB_JobDesc_network), "(null)");
	str_add(out, NL(s));
}

/* Lines that are there only when the value is. */
static void put_texts(struct str *out, const struct msgview *m, const struct scontrol *s, const char *const key[], const unsigned field[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (msgview_text(m, field[i]).n) {
			str_add(out, NL(s));
			kv_text(out, key[i], msgview_text(m, field[i]), "");
		}
}

static void put_switches(struct str *out, const struct msgview *d, const struct scontrol *s)
{
	if (!msgview_num(d, PB_JobDesc_switches, 0))
		return;
	str_add(out, NL(s));
	kv_num(out, "Switches=", msgview_num(d, PB_JobDesc_switches, 0));
	str_add_c(out, '@');
	put_secs(out, msgview_num(d, PB_JobDesc_switches_wait_sec, 0));
}

static void put_flags(struct str *out, struct jobview *v, const struct scontrol *s)
{
	const struct msgview *d = jobview_desc(v);
	const struct { bool on; const char *text; } flag[] = {
		{ slice_in_list(msgview_text(d, PB_JobDesc_gres_flags), "enforce-binding"), "GresEnforceBind=Yes" },
		{ slice_in_list(msgview_text(d, PB_JobDesc_gres_flags), "disable-binding"), "GresDisableBind=Yes" },
		{ msgview_num(d, PB_JobDesc_kill_on_invalid_dep, 0), "KillOnInvalidDependent=Yes" },
		{ msgview_num(d, PB_JobDesc_spread_job, 0), "SpreadJob=Yes" },
	};
	bool any = false;
	for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
		if (flag[i].on) {
			str_add(out, any ? " " : NL(s));
			str_add(out, flag[i].text);
			any = true;
		}
	if (msgview_num(d, PB_JobDesc_segment, 0)) {
		str_add(out, NL(s));
		kv_num(out, "SegmentSize=", msgview_num(d, PB_JobDesc_segment, 0));
		str_add(out, msgview_num(d, PB_JobDesc_spread_segments, 0) ? " SpreadSegments=Yes" : "");
		str_add(out, msgview_num(d, PB_JobDesc_consolidate_segments, 0) ? " ConsolidateSegments=Yes" : "");
	}
}

static void put_tail(struct str *out, struct jobview *v, const struct scontrol *s)
{
	static const char *const notes[] = { "Comment=", "AdminComment=", "Extra=" };
	static const unsigned note_fields[] = { PB_JobDesc_comment, PB_JobDesc_admin_comment, PB_JobDesc_extra };
	static const char *const tres[] = { "CpusPerTres=", "MemPerTres=", "TresBind=", "TresFreq=", "TresPerJob=", "TresPerNode=", "TresPerSocket=" };
	static const unsigned tres_fields[] = { PB_JobDesc_cpus_per_tres, PB_JobDesc_mem_per_tres, PB_JobDesc_tres_bind, PB_JobDesc_tres_freq,
		PB_JobDesc_tres_per_job, PB_JobDesc_tres_per_node, PB_JobDesc_tres_per_socket };
	static const struct { const char *key; unsigned field; } path[] = {
		{ "StdErr=", PB_JobDesc_std_err }, { "StdIn=", PB_JobDesc_std_in }, { "StdOut=", PB_JobDesc_std_out } };
	const struct msgview *d = jobview_desc(v);
	kv_text(out, "Command=", msgview_text(d, PB_JobDesc_command), "(null)");
	if (msgview_text(d, PB_JobDesc_submit_line).n) {
		str_add(out, NL(s));
		kv_text(out, "SubmitLine=", msgview_text(d, PB_JobDesc_submit_line), "");
	}
	str_add(out, NL(s));
	kv_text(out, "WorkDir=", msgview_text(d, PB_JobDesc_work_dir), "(null)");
	put_texts(out, d, s, notes, note_fields, 2);
	if (msgview_text(&v->rec, PB_JobRecord_system_comment).n) {
		str_add(out, NL(s));
		kv_text(out, "SystemComment=", msgview_text(&v->rec, PB_JobRecord_system_comment), "");
	}
	put_texts(out, d, s, notes + 2, note_fields + 2, 1);
	for (size_t i = 0; msgview_num(d, PB_JobDesc_batch, 0) && i < sizeof(path) / sizeof(path[0]); i++) {
		str_add(out, NL(s));
		str_add(out, path[i].key);
		put_std_path(out, v, path[i].field, true);
	}
	put_switches(out, d, s);
	put_flags(out, v, s);
	put_texts(out, d, s, tres, tres_fields, sizeof(tres) / sizeof(tres[0]));
	if (msgview_text(d, PB_JobDesc_tres_per_task).n || msgview_has(d, PB_JobDesc_cpus_per_task)) {
		str_add(out, NL(s));
		str_add(out, "TresPerTask=");
		put_tres_per_task(out, v);
	}
	if (msgview_num(d, PB_JobDesc_ntasks_per_tres, 0)) {
		str_add(out, NL(s));
		kv_num(out, "NtasksPerTRES=", msgview_num(d, PB_JobDesc_ntasks_per_tres, 0));
	}
	if (msgview_text(d, PB_JobDesc_mail_type).n && !slice_is(msgview_text(d, PB_JobDesc_mail_type), "NONE")) {
		str_add(out, NL(s));
		kv_text(out, "MailUser=", msgview_text(d, PB_JobDesc_mail_user).n ? msgview_text(d, PB_JobDesc_mail_user)
										     : msgview_text(&v->rec, PB_JobRecord_user), "(null)");
		kv_text(out, " MailType=", msgview_text(d, PB_JobDesc_mail_type), "");
	}
	if (msgview_text(d, PB_JobDesc_container).n) {
		str_add(out, NL(s));
		kv_text(out, "ContainerType=(null) Container=", msgview_text(d, PB_JobDesc_container), "");
		str_add(out, " ContainerID=(null)");
	}
}

void put_job_record(struct str *out, struct jobview *v, const struct scontrol *s)
{
	put_head(out, v, s);
	put_state_lines(out, v, s);
	put_time_lines(out, v, s);
	put_place_lines(out, v, s);
	put_alloc_lines(out, v, s);
	put_limit_lines(out, v, s);
	put_tail(out, v, s);
	str_add(out, s->one_line ? "\n" : "\n\n");
}

static int piece_cmp(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* "cpu=1,mem=2M,gres/gpu=3": a step's are shown by name. */
static void put_tres_by_name(struct str *out, struct slice t)
{
	char *copy = xstrndup(t.p, t.n), *rest = copy, *piece, *piece_of[64];
	size_t n = 0;
	while (t.n && n < 64 && (piece = str_next(&rest, ",")))
		piece_of[n++] = piece;
	qsort(piece_of, n, sizeof *piece_of, piece_cmp);
	str_add(out, n ? "TRES=" : "TRES=(null)");
	for (size_t i = 0; i < n; i++) {
		str_add(out, i ? "," : "");
		str_add(out, piece_of[i]);
	}
	free(copy);
}

void put_step_record(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	static const char *const key[] = { "CpusPerTres=", "MemPerTres=", "TresBind=", "TresPerStep=", "TresPerNode=", "TresPerTask=" };
	static const unsigned field[] = { PB_StepRecord_cpus_per_tres, PB_StepRecord_mem_per_tres, PB_StepRecord_tres_bind,
		PB_StepRecord_tres_per_step, PB_StepRecord_tres_per_node, PB_StepRecord_tres_per_task };
	str_add(out, "StepId=");
	put_step_id(out, m);
	kv_num(out, " UserId=", msgview_num(m, PB_StepRecord_uid, 0));
	kv_when(out, " StartTime=", msgview_num(m, PB_StepRecord_start_time, 0), "Unknown");
	str_add(out, " TimeLimit=");
	put_limit(out, msgview_num(m, PB_StepRecord_time_limit_min, 0) ? msgview_num(m, PB_StepRecord_time_limit_min, 0) : TIME_INFINITE);
	str_add(out, NL(s));
	if (s->details) {
		kv_text(out, "SLUID=", msgview_text(m, PB_StepRecord_sluid), "");
		str_add(out, NL(s));
	}
	str_add(out, "State=");
	str_add(out, job_state_name((uint32_t)msgview_num(m, PB_StepRecord_state, 0), 0));
	kv_text(out, " Partition=", msgview_text(m, PB_StepRecord_partition), "(null)");
	kv_text(out, " NodeList=", msgview_text(m, PB_StepRecord_nodes), "(null)");
	str_add(out, NL(s));
	kv_num(out, "Nodes=", msgview_num(m, PB_StepRecord_num_nodes, 0));
	kv_num(out, " CPUs=", msgview_num(m, PB_StepRecord_num_cpus, 0));
	kv_num(out, " Tasks=", msgview_num(m, PB_StepRecord_num_tasks, 0));
	kv_text(out, " Name=", msgview_text(m, PB_StepRecord_name), "(null)");
	kv_text(out, " Network=", msgview_text(m, PB_StepRecord_network), "(null)");
	str_add(out, NL(s));
	put_tres_by_name(out, msgview_text(m, PB_StepRecord_tres));
	str_add(out, NL(s));
	str_add(out, "ResvPorts=(null)");
	str_add(out, NL(s));
	str_add(out, "CPUFreqReq=Default");
	if (msgview_text(m, PB_StepRecord_distribution).n && msgview_text(m, PB_StepRecord_srun_host).n)
		kv_text(out, " Dist=", msgview_text(m, PB_StepRecord_distribution), "");
	str_add(out, NL(s));
	kv_text(out, "SrunHost:Pid=", msgview_text(m, PB_StepRecord_srun_host), "(null)");
	kv_num(out, ":", msgview_num(m, PB_StepRecord_srun_pid, 0));
	put_texts(out, m, s, key, field, sizeof(key) / sizeof(key[0]));
	str_add(out, s->one_line ? "\n" : "\n\n");
}
