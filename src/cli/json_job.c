/* json_job.c - members of a job that need more than a field (tables/json_job.def); members of steps */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/fields_job.h"
#include "cli/json.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "model/states.h"
#include "model/timespec.h"
#include "model/tres.h"

#define FN(name) static void name(struct json *j, const char *key, void *row)
#define JOB ((struct jobview *)row)

/* Text made by one of the put_ functions. Members are written one at a time. */
static struct str made = STR_INIT;
static struct str *fresh(void)
{
	str_reset(&made);
	return &made;
}
static void json_made(struct json *j, const char *key) { json_str(j, key, (struct slice){ made.data, made.len }); }

FN(array_tasks)
{
	bool many = msgview_text(&JOB->rec, PB_JobRecord_array_tasks).n;
	fresh();
	if (many)
		put_array_task(&made, JOB, "");
	json_made(j, key);
}
FN(batch_host) { json_str(j, key, msgview_text(jobview_alloc(JOB), PB_Alloc_batch_host)); }
FN(het_job_id) { json_num(j, key, true, false, jobview_num(JOB, PB_JobRecord_het_job_id, 0)); }
FN(het_job_offset) { json_num(j, key, true, false, jobview_num(JOB, PB_JobRecord_het_offset, 0)); }
FN(cluster) { json_text(j, key, show_env.cluster); }
FN(billable)
{
	struct slice s = msgview_text(&JOB->rec, PB_JobRecord_tres_alloc);
	char *text = slice_dup(s);
	json_open(j, key, '{');
	json_bool(j, "set", text && *text);
	json_bool(j, "infinite", false);
	json_float(j, "number", text ? (double)tres_get(text, "billing") : 0);
	json_close(j);
	free(text);
}
FN(cpus_per_task) { json_num(j, key, true, false, msgview_num(jobview_desc(JOB), PB_JobDesc_cpus_per_task, 1)); }
FN(thread_spec) /* 32766: neither of the two was asked for */
{
	const struct msgview *d = jobview_desc(JOB);
	json_u64(j, key, msgview_num(d, PB_JobDesc_thread_spec, msgview_has(d, PB_JobDesc_core_spec) ? 0 : 32766));
}
FN(derived_exit) { json_exit(j, key, jobview_derived_status(JOB), jobview_is_pending(JOB)); }
FN(exit_code) { json_exit(j, key, (uint32_t)jobview_num(JOB, PB_JobRecord_exit_status, 0), jobview_is_pending(JOB)); }
FN(end_time) { json_num(j, key, true, false, jobview_end(JOB)); }
FN(eligible_time) { json_num(j, key, true, false, jobview_eligible(JOB)); }
FN(tres_per_task)
{
	struct str s = STR_INIT;
	put_tres_per_task(&s, JOB);
	json_text(j, key, s.data);
	str_fini(&s);
}
FN(start_time) { json_num(j, key, true, false, jobview_start(JOB)); }
FN(preemptable) { json_num(j, key, true, false, jobview_is_pending(JOB) ? 0 : jobview_start(JOB) + show_env.preempt_exempt_sec); }
FN(pre_suspend) { json_num(j, key, true, false, jobview_pre_suspend_sec(JOB)); }
FN(hold)
{
	uint32_t reason = jobview_reason(JOB);
	json_bool(j, key, reason == REASON_HELD_USER || reason == REASON_HELD_ADMIN);
}
FN(group_name)
{
	put_group(fresh(), msgview_text(&JOB->rec, PB_JobRecord_group), jobview_num(JOB, PB_JobRecord_gid, 0));
	json_made(j, key);
}
FN(user_name)
{
	put_user(fresh(), msgview_text(&JOB->rec, PB_JobRecord_user), jobview_num(JOB, PB_JobRecord_uid, 0));
	json_made(j, key);
}
FN(job_flags)
{
	const struct msgview *d = jobview_desc(JOB);
	uint64_t state = jobview_num(JOB, PB_JobRecord_state, 0);
	const struct { bool on; const char *word; } flag[] = {
		{ msgview_num(d, PB_JobDesc_kill_on_invalid_dep, 0), "KILL_INVALID_DEPENDENCY" },
		{ slice_in_list(msgview_text(d, PB_JobDesc_gres_flags), "enforce-binding"), "GRES_BINDING_ENFORCED" },
		{ msgview_num(d, PB_JobDesc_spread_job, 0), "SPREAD_JOB" },
		{ msgview_num(d, PB_JobDesc_use_min_nodes, 0), "PREFER_MINIMUM_NODE_COUNT" },
		{ msgview_has(d, PB_JobDesc_num_tasks), "EXACT_TASK_COUNT_REQUESTED" },
		{ msgview_has(d, PB_JobDesc_cpus_per_task), "EXACT_CPU_COUNT_REQUESTED" },
		{ slice_in_list(msgview_text(d, PB_JobDesc_gres_flags), "disable-binding"), "GRES_BINDING_DISABLED" },
		{ msgview_has(d, PB_JobDesc_mem_per_node), "EXACT_MEMORY_REQUESTED" },
		{ state == PB__JOB_STATE__RUNNING || state == PB__JOB_STATE__SUSPENDED, "JOB_WAS_RUNNING" },
		{ !msgview_text(d, PB_JobDesc_account).n, "USING_DEFAULT_ACCOUNT" },
		{ msgview_num(d, PB_JobDesc_partition_assigned, 0), "USING_DEFAULT_PARTITION" },
		{ !msgview_text(d, PB_JobDesc_qos).n, "USING_DEFAULT_QOS" },
		{ !msgview_text(d, PB_JobDesc_wckey).n, "USING_DEFAULT_WCKEY" },
		{ msgview_text(&JOB->rec, PB_JobRecord_dependency_left).n, "DEPENDENT" },
		{ msgview_num(d, PB_JobDesc_partition_assigned, 0), "PARTITION_ASSIGNED" },
	};
	json_open(j, key, '[');
	for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
		if (flag[i].on)
			json_text(j, NULL, flag[i].word);
	json_close(j);
}

static void put_gres(struct str *out, const struct msgview *g)
{
	put_slice(out, msgview_text(g, PB_GresAlloc_name), "");
	if (msgview_text(g, PB_GresAlloc_type).n) {
		str_add_c(out, ':');
		put_slice(out, msgview_text(g, PB_GresAlloc_type), "");
	}
	str_addf(out, ":%llu", (unsigned long long)msgview_num(g, PB_GresAlloc_count, 0));
	struct slice shares = msgview_text(g, PB_GresAlloc_shares);
	if (shares.n || msgview_text(g, PB_GresAlloc_index).n) {
		str_add(out, shares.n ? "(" : "(IDX:");
		put_slice(out, shares.n ? shares : msgview_text(g, PB_GresAlloc_index), "");
		str_add_c(out, ')');
	}
}

/* Calls fn for each node of the allocation with what it holds. */
typedef void (*node_fn)(struct json *j, const char *node, uint32_t index, const struct msgview *part);
static void each_node(struct json *j, struct jobview *v, node_fn fn)
{
	static struct msgview part;
	struct wire_field f;
	uint32_t index = 0;
	for (size_t at = 0; msgview_each(jobview_alloc(v), PB_Alloc_part, &at, &f);) {
		struct hostlist hosts = HOSTLIST_INIT;
		(void)msgview_read(&part, f.data, f.len);
		char *text = slice_dup(msgview_text(&part, PB_NodeAlloc_nodes));
		(void)hostlist_add(&hosts, text ? text : "", NULL);
		for (size_t i = 0; i < hosts.count; i++)
			fn(j, hosts.name[i], index++, &part);
		hostlist_fini(&hosts);
		free(text);
	}
}

static void gres_of_node(struct json *j, const char *node, uint32_t index, const struct msgview *part)
{
	static struct msgview g;
	struct wire_field f;
	bool any = false;
	fresh();
	for (size_t at = 0; msgview_each(part, PB_NodeAlloc_gres, &at, &f); any = true) {
		(void)msgview_read(&g, f.data, f.len);
		str_add(&made, any ? "," : "");
		put_gres(&made, &g);
	}
	if (any)
		json_made(j, NULL);
}
FN(gres_detail)
{
	json_open(j, key, '[');
	each_node(j, JOB, gres_of_node);
	json_close(j);
}

static void resources_of_node(struct json *j, const char *node, uint32_t index, const struct msgview *part)
{
	struct bitset *cpus = NULL;
	char *ids = slice_dup(msgview_text(part, PB_NodeAlloc_cpu_ids));
	json_open(j, NULL, '{');
	json_u64(j, "index", index);
	json_text(j, "name", node);
	json_open(j, "cpus", '{');
	json_u64(j, "count", msgview_num(part, PB_NodeAlloc_cpus, 0));
	json_u64(j, "used", msgview_num(part, PB_NodeAlloc_cpus, 0));
	json_close(j);
	json_open(j, "memory", '{');
	json_u64(j, "used", msgview_num(part, PB_NodeAlloc_mem, 0));
	json_u64(j, "allocated", msgview_num(part, PB_NodeAlloc_mem, 0));
	json_close(j);
	json_open(j, "sockets", '[');
	if (ids && idset_parse(ids, 65536, &cpus, NULL) == 0) {   /* the sockets' shape is the node's, which a job does not carry: one socket */
		json_open(j, NULL, '{');
		json_u64(j, "index", 0);
		json_open(j, "cores", '[');
		bitset_for(cpus, core) {
			json_open(j, NULL, '{');
			json_u64(j, "index", core);
			json_open(j, "status", '[');
			json_text(j, NULL, "ALLOCATED");
			json_close(j);
			json_close(j);
		}
		json_close(j);
		json_close(j);
	}
	json_close(j);
	json_close(j);
	bitset_destroy(cpus);
	free(ids);
}
FN(job_resources)
{
	const struct msgview *a = jobview_alloc(JOB);
	if (!msgview_has(a, PB_Alloc_part)) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	json_open(j, "select_type", '[');
	json_text(j, NULL, "CR_CORE_MEMORY");
	json_close(j);
	json_open(j, "nodes", '{');
	json_u64(j, "count", msgview_num(a, PB_Alloc_num_nodes, jobview_num(JOB, PB_JobRecord_num_nodes, 0)));
	json_open(j, "select_type", '[');
	json_text(j, NULL, strcmp(jobview_exclusive(JOB), "NODE") ? "ONE_ROW" : "NODE");
	json_close(j);
	json_str(j, "list", msgview_text(a, PB_Alloc_nodes));
	json_bool(j, "whole", !strcmp(jobview_exclusive(JOB), "NODE"));
	json_open(j, "allocation", '[');
	each_node(j, JOB, resources_of_node);
	json_close(j);
	json_close(j);
	json_u64(j, "cpus", jobview_num(JOB, PB_JobRecord_num_cpus, 0));
	const struct msgview *d = jobview_desc(JOB);
	json_num(j, "threads_per_core", msgview_has(d, PB_JobDesc_threads_per_core), false, msgview_num(d, PB_JobDesc_threads_per_core, 0));
	json_close(j);
}

FN(job_state)
{
	static const struct { uint32_t bit; const char *word; } flag[] = {
#define JOB_FLAG(sym, bit, compact) { 1u << bit, #sym },
#include "tables/job_states.def"
#undef JOB_FLAG
	};
	uint32_t flags = jobview_flags(JOB);
	json_open(j, key, '[');
	json_text(j, NULL, job_state_name(jobview_state(JOB), 0));
	for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
		if (flags & flag[i].bit)
			json_text(j, NULL, flag[i].word);
	json_close(j);
}
FN(licenses_allocated) { json_str(j, key, jobview_is_pending(JOB) ? (struct slice){ 0 } : msgview_text(&JOB->rec, PB_JobRecord_licenses_alloc)); }
FN(mail_type)
{
	static const struct { const char *given, *word; } type[] = { { "BEGIN", "BEGIN" }, { "END", "END" }, { "FAIL", "FAIL" }, { "REQUEUE", "REQUEUE" },
		{ "TIME_LIMIT", "TIME=100%" }, { "TIME_LIMIT_90", "TIME=90%" }, { "TIME_LIMIT_80", "TIME=80%" }, { "TIME_LIMIT_50", "TIME=50%" },
		{ "STAGE_OUT", "STAGE_OUT" }, { "ARRAY_TASKS", "ARRAY_TASKS" }, { "INVALID_DEPEND", "INVALID_DEPENDENCY" } };
	char *list = slice_dup(msgview_text(jobview_desc(JOB), PB_JobDesc_mail_type));
	bool all = list && slice_in_list((struct slice){ "ALL", 3 }, list);
	json_open(j, key, '[');
	for (size_t i = 0; list && i < sizeof(type) / sizeof(type[0]); i++) {
		bool in_all = i < 4 || !strcmp(type[i].given, "STAGE_OUT") || !strcmp(type[i].given, "INVALID_DEPEND");
		if ((all && in_all) || slice_in_list((struct slice){ type[i].given, strlen(type[i].given) }, list))
			json_text(j, NULL, type[i].word);
	}
	json_close(j);
	free(list);
}
FN(mail_user)
{
	struct slice user = msgview_text(jobview_desc(JOB), PB_JobDesc_mail_user);
	if (user.n)
		json_str(j, key, user);
	else
		user_name(j, key, row);
}
FN(max_nodes) { json_num(j, key, true, false, jobview_is_pending(JOB) ? jobview_max_nodes(JOB) : 0); }
FN(min_cpus) { json_num(j, key, true, false, jobview_min_cpus_node(JOB)); }
FN(resv_name) { json_str(j, key, jobview_reservation(JOB)); }
FN(partition) { json_str(j, key, jobview_partition(JOB)); }
FN(profile)
{
	struct slice s = msgview_text(jobview_desc(JOB), PB_JobDesc_profile);
	if (s.n) {
		json_words(j, key, s);
		return;
	}
	json_open(j, key, '[');
	json_text(j, NULL, "NOT_SET");
	json_close(j);
}
FN(shared)
{
	const char *exclusive = jobview_exclusive(JOB);
	json_open(j, key, '[');
	if (!strcmp(exclusive, "NODE"))
		json_text(j, NULL, "none");
	else if (strcmp(exclusive, "NO"))
		json_text(j, NULL, !strcmp(exclusive, "USER") ? "user" : !strcmp(exclusive, "MCS") ? "mcs" : "topo");
	else if (msgview_num(jobview_desc(JOB), PB_JobDesc_oversubscribe, 0))
		json_text(j, NULL, "oversubscribe");
	json_close(j);
}
FN(state_reason) { json_text(j, key, reason_name(jobview_reason(JOB))); }

static void std_member(struct json *j, const char *key, struct jobview *v, unsigned which, bool expand)
{
	fresh();
	if (expand || msgview_num(jobview_desc(v), PB_JobDesc_batch, 0) || msgview_text(jobview_desc(v), which).n)
		put_std_path(&made, v, which, expand);
	if (!expand && !strcmp(made.data, "(null)"))
		str_reset(&made);
	json_made(j, key);
}
FN(standard_input) { std_member(j, key, JOB, PB_JobDesc_std_in, false); }
FN(standard_output) { std_member(j, key, JOB, PB_JobDesc_std_out, false); }
FN(standard_error) { std_member(j, key, JOB, PB_JobDesc_std_err, false); }
FN(stdin_expanded) { std_member(j, key, JOB, PB_JobDesc_std_in, true); }
FN(stdout_expanded) { std_member(j, key, JOB, PB_JobDesc_std_out, true); }
FN(stderr_expanded) { std_member(j, key, JOB, PB_JobDesc_std_err, true); }

enum { REC, DESC, VOL, ALLOC };
const struct msgview *json_job_source(void *row, unsigned source)
{
	switch (source) {
	case DESC: return jobview_desc(JOB);
	case VOL: return jobview_vol(JOB);
	case ALLOC: return jobview_alloc(JOB);
	default: return &JOB->rec;
	}
}
#undef FN
#include "cli/json_rows.h"
static const struct json_row job_rows[] = {
#include "tables/json_job.def"
};
const struct json_row *json_job_rows(size_t *n)
{
	*n = sizeof(job_rows) / sizeof(job_rows[0]);
	return job_rows;
}
