/* sacct_json.c - sacct --json and --yaml: jobs with their steps in the reference's shape (v0.0.45)
 *
 * Texts come from the same getters as the columns (tables/fields_sacct.def), so that both say the same. A job is written in two halves with the
 * list of its steps between them. What is not measured or not kept is empty, as the reference writes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/jobview.h"
#include "cli/sacct_json.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "model/states.h"
#include "model/tres.h"

#define TASKS_MAX 4000002

static void field(struct json *j, const char *key, enum sacct_field f, const struct sacct_row *r)
{
	struct str text = STR_INIT;
	sacct_get(&text, f, r);
	json_text(j, key, text.data ? text.data : "");
	str_fini(&text);
}

static uint64_t field_num(enum sacct_field f, const struct sacct_row *r)
{
	struct str text = STR_INIT;
	sacct_get(&text, f, r);
	uint64_t v = text.data ? strtoull(text.data, NULL, 10) : 0;
	str_fini(&text);
	return v;
}

/* "3:0" or "0:9" of a column as the members of a wait status. */
static void field_exit(struct json *j, const char *key, enum sacct_field f, const struct sacct_row *r)
{
	struct str text = STR_INIT;
	sacct_get(&text, f, r);
	const char *colon = text.data ? strchr(text.data, ':') : NULL;
	uint32_t signal = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
	json_exit(j, key, signal ? signal : colon ? (uint32_t)strtoul(text.data, NULL, 10) << 8 : 0, false);
	str_fini(&text);
}

static void state_list(struct json *j, const char *key, const struct sacct_row *r)
{
	struct str text = STR_INIT;
	sacct_get(&text, SACCT_State, r);
	json_open(j, key, '[');
	json_str(j, NULL, (struct slice){ text.data, strcspn(text.data, " ") });   /* not "by 0" */
	json_close(j);
	str_fini(&text);
}

static void usec(struct json *j, const char *key, uint64_t v)
{
	json_open(j, key, '{');
	json_u64(j, "seconds", v / 1000000);
	json_u64(j, "microseconds", v % 1000000);
	json_close(j);
}

/* Numbers of TRES: those every cluster has, then the GRES of AccountingStorageTRES from 1001 on. */
static uint64_t tres_id(const char *name)
{
	static const char *const fixed[] = { "cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages" };
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (!strcmp(fixed[i], name))
			return i + 1;
	uint64_t id = 1001;
	char *copy = xstrdup(sacct_env.tres_tracked ? sacct_env.tres_tracked : ""), *rest = copy, *piece;
	while ((piece = str_next(&rest, ",")) && strcmp(piece, name))
		id += str_starts(piece, "gres/");
	free(copy);
	return id;
}

/* "gres/gpu:h100" is of type gres, its name gpu:h100. */
static void tres_open(struct json *j, const char *name, uint64_t count)
{
	const char *slash = strchr(name, '/');
	json_open(j, NULL, '{');
	json_str(j, "type", (struct slice){ name, slash ? (size_t)(slash - name) : strlen(name) });
	json_text(j, "name", slash ? slash + 1 : "");
	json_u64(j, "id", tres_id(name));
	json_u64(j, "count", count);
}

static void tres_list(struct json *j, const char *key, enum sacct_field f, const struct sacct_row *r)
{
	static const char *const order[] = { "cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages" };
	struct str text = STR_INIT;
	sacct_get(&text, f, r);
	json_open(j, key, '[');
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (tres_get(text.data, order[i])) {
			tres_open(j, order[i], tres_get(text.data, order[i]));
			json_close(j);
		}
	for (char *rest = text.data, *piece; (piece = str_next(&rest, ","));) {
		char *equals = strchr(piece, '=');
		if (!equals || !str_starts(piece, "gres/"))
			continue;
		*equals = 0;
		tres_open(j, piece, strtoull(equals + 1, NULL, 10));
		json_close(j);
	}
	json_close(j);
	str_fini(&text);
}

/* --- a step ----------------------------------------------------------------------------------------------------- */

struct measured { enum usage_kind kind; const char *name; uint64_t divide; };
static const struct measured taken_in[] = { { USAGE_CPU, "cpu", 1000 }, { USAGE_RSS, "mem", 1 }, { USAGE_READ, "fs/disk", 1 }, { USAGE_VSIZE, "vmem", 1 },
	{ USAGE_PAGES, "pages", 1 }, { USAGE_ENERGY, "energy", 1 }, { USAGE_GPU_MEM, "gres/gpumem", 1 }, { USAGE_GPU_UTIL, "gres/gpuutil", 1 } };
static const struct measured put_out[] = { { USAGE_WRITTEN, "fs/disk", 1 } };

static void usage_list(struct json *j, const char *key, const struct sacct_row *r, const struct measured *m, size_t n, enum usageview_part part)
{
	const Pb__StepUsage *u = r->step->usage;
	json_open(j, key, '[');
	for (size_t i = 0; u && i < n; i++) {
		const Pb__Figure *f = usage_figure(u, m[i].kind);
		uint64_t v;
		if (!f || !usageview_value(u, m[i].kind, part, &v))
			continue;
		tres_open(j, m[i].name, v / m[i].divide);
		if (part == USAGEVIEW_MAX || part == USAGEVIEW_MIN) {
			json_u64(j, "task", part == USAGEVIEW_MAX ? f->max_task : f->min_task);
			json_text(j, "node", part == USAGEVIEW_MAX ? f->max_node : f->min_node);
		}
		json_close(j);
	}
	json_close(j);
}

/* The reference calls what tasks read "requested", what they wrote "consumed". */
static void usage_lists(struct json *j, const char *key, const struct sacct_row *r, const struct measured *m, size_t n)
{
	json_open(j, key, '{');
	usage_list(j, "max", r, m, n, USAGEVIEW_MAX);
	usage_list(j, "min", r, m, n, USAGEVIEW_MIN);
	usage_list(j, "average", r, m, n, USAGEVIEW_AVERAGE);
	usage_list(j, "total", r, m, n, USAGEVIEW_TOTAL);
	json_close(j);
}

static void step_nodes(struct json *j, const struct sacct_row *r)
{
	struct hostlist hl = HOSTLIST_INIT;
	if (r->step->nodes)
		(void)hostlist_add(&hl, r->step->nodes, NULL);
	json_open(j, "nodes", '{');
	json_u64(j, "count", r->step->num_nodes);
	json_text(j, "range", r->step->nodes);
	json_open(j, "list", '[');
	for (size_t i = 0; i < hl.count; i++)
		json_text(j, NULL, hl.name[i]);
	json_close(j);
	json_close(j);
	hostlist_fini(&hl);
}

static void step_times(struct json *j, const struct sacct_row *r)
{
	json_open(j, "time", '{');
	json_u64(j, "elapsed", field_num(SACCT_ElapsedRaw, r));
	json_num(j, "end", true, false, r->end);
	json_num(j, "start", true, false, r->start);
	json_u64(j, "suspended", 0);
	usec(j, "system", r->sys_usec);
	json_num(j, "limit", false, true, 0);
	usec(j, "total", r->user_usec + r->sys_usec);
	usec(j, "user", r->user_usec);
	json_close(j);
}

static void kill_user(struct json *j, bool by, uint32_t uid)
{
	struct str user = STR_INIT;
	if (by)
		put_user(&user, (struct slice){ 0 }, uid);
	json_text(j, "kill_request_user", user.data ? user.data : "");
	str_fini(&user);
}

void sacct_json_step(struct json *j, const struct sacct_row *r)
{
	json_open(j, NULL, '{');
	step_times(j, r);
	field_exit(j, "exit_code", SACCT_ExitCode, r);
	step_nodes(j, r);
	json_open(j, "tasks", '{');
	json_u64(j, "count", r->step->num_tasks);
	json_close(j);
	json_open(j, "CPU", '{');
	json_open(j, "requested_frequency", '{');
	json_num(j, "min", false, false, 0);
	json_num(j, "max", false, false, 0);
	json_close(j);
	json_text(j, "governor", "Unknown");
	json_close(j);
	kill_user(j, r->step->has_cancel_uid, r->step->cancel_uid);
	state_list(j, "state", r);
	json_open(j, "statistics", '{');
	json_open(j, "CPU", '{');
	json_u64(j, "actual_frequency", 0);
	json_close(j);
	json_open(j, "energy", '{');
	json_num(j, "consumed", true, false, r->joules);
	json_close(j);
	json_close(j);
	json_open(j, "step", '{');
	field(j, "id", SACCT_JobID, r);
	field(j, "name", SACCT_JobName, r);
	static const char *const streams[] = { "stderr", "stdin", "stdout", "stderr_expanded", "stdin_expanded", "stdout_expanded" };
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
		json_text(j, streams[i], "");
	json_close(j);
	field(j, "submit_line", SACCT_SubmitLine, r);
	json_open(j, "task", '{');
	field(j, "distribution", SACCT_Layout, r);
	json_close(j);
	json_open(j, "tres", '{');
	usage_lists(j, "requested", r, taken_in, sizeof taken_in / sizeof *taken_in);
	usage_lists(j, "consumed", r, put_out, sizeof put_out / sizeof *put_out);
	tres_list(j, "allocated", SACCT_AllocTRES, r);
	json_close(j);
	json_close(j);
}

/* --- a job ------------------------------------------------------------------------------------------------------ */

/* Waiting tasks as the reference writes them: a hexadecimal mask, "0xE" for 1-3. */
static void task_mask(struct json *j, const char *key, const Pb__JobRecord *job)
{
	struct bitset *set = NULL;
	struct str text = STR_INIT;
	if (job->array_tasks && !job->has_array_task_id && idset_parse(job->array_tasks, TASKS_MAX, &set, NULL) >= 0) {
		size_t top = 0;
		bitset_for(set, i)
			top = i;
		str_add(&text, "0x");
		for (size_t digit = top / 4 + 1; digit-- > 0;) {
			unsigned v = 0;
			for (size_t bit = 0; bit < 4; bit++)
				v |= (digit * 4 + bit <= top && bitset_has(set, digit * 4 + bit) ? 1u : 0u) << bit;
			str_add_c(&text, "0123456789ABCDEF"[v]);
		}
		bitset_destroy(set);
	}
	json_text(j, key, text.data ? text.data : "");
	str_fini(&text);
}

static void job_array(struct json *j, const Pb__JobRecord *job)
{
	json_open(j, "array", '{');
	json_u64(j, "job_id", job->has_array_job_id ? job->array_job_id : 0);
	json_open(j, "limits", '{');
	json_open(j, "max", '{');
	json_open(j, "running", '{');
	json_u64(j, "tasks", job->array_max_running);
	json_close(j);
	json_close(j);
	json_close(j);
	json_num(j, "task_id", job->has_array_task_id, false, job->array_task_id);
	task_mask(j, "task", job);
	json_close(j);
}

static void job_times(struct json *j, const struct sacct_row *r)
{
	const Pb__JobRecord *job = r->job;
	uint64_t eligible = job->eligible_time;
	json_open(j, "time", '{');
	json_u64(j, "elapsed", field_num(SACCT_ElapsedRaw, r));
	json_u64(j, "eligible", eligible);
	json_u64(j, "end", r->end);
	json_num(j, "planned", true, false, eligible && r->start > eligible ? r->start - eligible : 0);
	json_u64(j, "start", r->start);
	json_u64(j, "submission", job->submit_time);
	json_u64(j, "suspended", job->pre_suspend_sec);
	usec(j, "system", r->sys_usec);
	bool endless = !job->has_time_limit_min || job->time_limit_min == UINT32_MAX;
	json_num(j, "limit", !endless, endless, endless ? 0 : job->time_limit_min);
	usec(j, "total", r->user_usec + r->sys_usec);
	usec(j, "user", r->user_usec);
	json_close(j);
}

static void job_flags(struct json *j, const struct sacct_row *r)
{
	json_open(j, "flags", '[');
	if (r->job->start_time && r->job->state != PB__JOB_STATE__PENDING)
		json_text(j, NULL, "START_RECEIVED");
	json_close(j);
}

void sacct_json_head(struct json *j, const struct sacct_row *r)
{
	json_open(j, NULL, '{');
	field(j, "account", SACCT_Account, r);
	json_open(j, "comment", '{');
	field(j, "administrator", SACCT_AdminComment, r);
	field(j, "job", SACCT_Comment, r);
	field(j, "system", SACCT_SystemComment, r);
	json_close(j);
	json_u64(j, "allocation_nodes", field_num(SACCT_AllocNodes, r));
	job_array(j, r->job);
	json_open(j, "association", '{');
	json_text(j, "account", "");
	field(j, "cluster", SACCT_Cluster, r);
	json_text(j, "partition", "");
	json_text(j, "user", "");
	json_u64(j, "id", field_num(SACCT_AssocID, r));
	json_close(j);
	field(j, "block", SACCT_BlockID, r);
	field(j, "cluster", SACCT_Cluster, r);
	field(j, "constraints", SACCT_Constraints, r);
	field(j, "container", SACCT_Container, r);
	field(j, "sluid", SACCT_SLUID, r);
	field_exit(j, "derived_exit_code", SACCT_DerivedExitCode, r);
	job_times(j, r);
	field(j, "exclusive", SACCT_Exclusive, r);
	field_exit(j, "exit_code", SACCT_ExitCode, r);
	field(j, "extra", SACCT_Extra, r);
	field(j, "failed_node", SACCT_FailedNode, r);
	job_flags(j, r);
	field(j, "group", SACCT_Group, r);
	json_open(j, "het", '{');
	json_u64(j, "job_id", 0);
	json_num(j, "job_offset", false, false, 0);
	json_close(j);
	json_u64(j, "job_id", r->job->job_id);
	field(j, "name", SACCT_JobName, r);
	field(j, "licenses", SACCT_Licenses, r);
	json_open(j, "mcs", '{');
	field(j, "label", SACCT_McsLabel, r);
	json_close(j);
	field(j, "nodes", SACCT_NodeList, r);
	field(j, "oversubscribe", SACCT_OverSubscribe, r);
	field(j, "partition", SACCT_Partition, r);
	json_bool(j, "hold", r->job->state == PB__JOB_STATE__PENDING && r->job->has_admin_prio && !r->job->admin_prio);
	json_num(j, "priority", true, false, field_num(SACCT_Priority, r));
	field(j, "qos", SACCT_QOS, r);
	field(j, "qosreq", SACCT_QOSREQ, r);
}

static void job_required(struct json *j, const struct sacct_row *r)
{
	const Pb__JobDesc *d = r->job->desc;
	json_open(j, "required", '{');
	json_u64(j, "CPUs", field_num(SACCT_ReqCPUS, r));
	json_num(j, "memory_per_cpu", d && d->has_mem_per_cpu, false, d ? d->mem_per_cpu : 0);
	json_num(j, "memory_per_node", d && d->has_mem_per_node, false, d ? d->mem_per_node : 0);
	json_close(j);
}

static void job_streams(struct json *j, const struct sacct_row *r)
{
	static const struct { const char *key; enum sacct_field f; bool expand; } streams[] = {
		{ "stdin_expanded", SACCT_StdIn, true }, { "stdout_expanded", SACCT_StdOut, true }, { "stderr_expanded", SACCT_StdErr, true },
		{ "stdout", SACCT_StdOut, false }, { "stderr", SACCT_StdErr, false }, { "stdin", SACCT_StdIn, false } };
	bool was = sacct_env.expand;
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		sacct_env.expand = streams[i].expand;
		field(j, streams[i].key, streams[i].f, r);
	}
	sacct_env.expand = was;
}

void sacct_json_tail(struct json *j, const struct sacct_row *r)
{
	field(j, "submit_line", SACCT_SubmitLine, r);
	json_open(j, "tres", '{');
	tres_list(j, "allocated", SACCT_AllocTRES, r);
	tres_list(j, "requested", SACCT_ReqTRES, r);
	json_close(j);
	json_text(j, "used_gres", "");
	field(j, "user", SACCT_User, r);
	json_open(j, "wckey", '{');
	field(j, "wckey", SACCT_WCKey, r);
	json_open(j, "flags", '[');
	json_close(j);
	json_close(j);
	field(j, "working_directory", SACCT_WorkDir, r);
	json_close(j);
}

void sacct_json_middle(struct json *j, const struct sacct_row *r)
{
	job_required(j, r);
	kill_user(j, r->job->has_cancel_uid, r->job->cancel_uid);
	json_u64(j, "restart_cnt", field_num(SACCT_Restarts, r));
	json_open(j, "reservation", '{');
	json_u64(j, "id", field_num(SACCT_ReservationId, r));
	field(j, "name", SACCT_Reservation, r);
	field(j, "requested", SACCT_ReqReservation, r);
	json_close(j);
	json_text(j, "script", "");
	json_u64(j, "segment_size", field_num(SACCT_SegmentSize, r));
	field(j, "original_sluid", SACCT_OriginalSLUID, r);
	job_streams(j, r);
	json_open(j, "state", '{');
	state_list(j, "current", r);
	field(j, "reason", SACCT_Reason, r);
	json_close(j);
}
