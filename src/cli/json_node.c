/* json_node.c - members of nodes, partitions and steps that need more than a field (tables/json_node.def, json_part.def, json_step.def) */
#include <stdlib.h>
#include <string.h>

#include "cli/fields_job.h"
#include "cli/json.h"
#include "cli/nodeview.h"
#include "model/states.h"
#include "model/timespec.h"

#define FN(name) static void name(struct json *j, const char *key, void *row)
#define REC ((const struct msgview *)row)

static void json_put(struct json *j, const char *key, struct str *text)
{
	json_str(j, key, (struct slice){ text->data, text->len });
	str_fini(text);
}
static void json_word_list(struct json *j, const char *key, const char *word)
{
	json_open(j, key, '[');
	json_text(j, NULL, word);
	json_close(j);
}
/* "" where a list allows all. */
static void unless_all(struct json *j, const char *key, const struct msgview *m, unsigned field)
{
	struct slice s = msgview_text(m, field);
	json_str(j, key, slice_is(s, "ALL") ? (struct slice){ 0 } : s);
}
static struct slice first_of(const struct msgview *m, unsigned a, unsigned b) { return msgview_text(m, a).n ? msgview_text(m, a) : msgview_text(m, b); }

const struct msgview *json_plain_source(void *row, unsigned source) { return row; }

/* --- nodes --- */
FN(effective_cpus) { json_u64(j, key, node_effective_cpus(REC)); }
FN(active_features) { json_words(j, key, first_of(REC, PB_NodeRecord_features_act, PB_NodeRecord_features)); }
FN(gres_used)
{
	struct str text = STR_INIT;
	if (msgview_has(REC, PB_NodeRecord_gres_used) || msgview_has(REC, PB_NodeRecord_gres_list))
		put_gres_used(&text, REC);
	json_put(j, key, &text);
}
FN(next_state) { json_word_list(j, key, msgview_num(REC, PB_NodeRecord_next_state, 0) ? "RESUME" : "INVALID"); }
FN(address) { json_str(j, key, first_of(REC, PB_NodeRecord_addr, PB_NodeRecord_name)); }
FN(hostname) { json_str(j, key, first_of(REC, PB_NodeRecord_hostname, PB_NodeRecord_name)); }
void json_node_state(struct json *j, const char *key, const struct msgview *m)
{
	char word[160];
	node_state_full((uint32_t)msgview_num(m, PB_NodeRecord_state, 0), (uint32_t)msgview_num(m, PB_NodeRecord_state_flags, 0), word, sizeof(word));
	for (char *p = word; *p; p++)
		if (*p == '+')
			*p = ',';
	json_words(j, key, (struct slice){ word, strlen(word) });
}
FN(current_watts) { json_num(j, key, true, false, msgview_num(REC, PB_NodeRecord_current_watts, 0)); }
FN(node_state) { json_node_state(j, key, REC); }
FN(reason_user)
{
	struct str text = STR_INIT;
	if (msgview_text(REC, PB_NodeRecord_reason).n)
		put_user(&text, msgview_text(REC, PB_NodeRecord_reason_user), msgview_num(REC, PB_NodeRecord_reason_uid, 0));
	json_put(j, key, &text);
}
FN(idle_cpus)
{
	struct node_cpus c = node_cpus_split(REC);
	json_u64(j, key, c.total - c.alloc);
}

/* --- partitions --- */
FN(alloc_nodes) { unless_all(j, key, REC, PB_PartitionRecord_alloc_nodes); }
FN(part_nodes) { json_str(j, key, first_of(REC, PB_PartitionRecord_nodes_full, PB_PartitionRecord_nodes)); }
FN(allow_accounts) { unless_all(j, key, REC, PB_PartitionRecord_allow_accounts); }
FN(allow_groups) { unless_all(j, key, REC, PB_PartitionRecord_allow_groups); }
FN(allow_qos) { unless_all(j, key, REC, PB_PartitionRecord_allow_qos); }
FN(select_type) { json_word_list(j, key, "NONE"); }
FN(part_flags)
{
	static const struct { unsigned field; const char *word; } flag[] = {
		{ PB_PartitionRecord_is_default, "DEFAULT" }, { PB_PartitionRecord_hidden, "HIDDEN" }, { PB_PartitionRecord_root_only, "ROOT_ONLY" },
		{ PB_PartitionRecord_req_resv, "REQ_RESV" }, { PB_PartitionRecord_lln, "LLN" }, { PB_PartitionRecord_power_down_on_idle, "PDOI" },
		{ PB_PartitionRecord_disable_root_jobs, "NO_ROOT" } };
	json_open(j, key, '[');
	for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
		if (msgview_num(REC, flag[i].field, 0))
			json_text(j, NULL, flag[i].word);
	json_close(j);
}
FN(part_state)
{
	struct slice s = msgview_text(REC, PB_PartitionRecord_state);
	json_open(j, key, '[');
	json_str(j, NULL, s.n ? s : (struct slice){ "UP", 2 });
	json_close(j);
}
FN(max_share)
{
	struct slice s = msgview_text(REC, PB_PartitionRecord_oversubscribe);
	size_t colon = 0;
	while (colon < s.n && s.p[colon] != ':')
		colon++;
	json_u64(j, key, colon < s.n ? strtoull(s.p + colon + 1, NULL, 10) : 0);
}
FN(share_flags)
{
	struct slice s = msgview_text(REC, PB_PartitionRecord_oversubscribe);
	json_open(j, key, '[');
	if (s.n >= 5 && !memcmp(s.p, "FORCE", 5))
		json_text(j, NULL, "force");
	json_close(j);
}
FN(preempt_mode)
{
	struct slice s = msgview_text(REC, PB_PartitionRecord_preempt_mode);
	if (s.n && !slice_is(s, "OFF"))
		json_words(j, key, s);
	else
		json_word_list(j, key, "CLUSTER_GLOBAL");
}

/* --- steps --- */
static uint64_t array_number(const struct msgview *m, bool task, uint64_t absent)
{
	char *text = slice_dup(msgview_text(m, PB_StepRecord_array_id)), *end;
	uint64_t v = absent;
	if (text && strchr(text, '_')) {
		v = strtoull(text, &end, 10);
		if (task)
			v = strtoull(end + 1, NULL, 10);
	}
	free(text);
	return v;
}
FN(array_job) { json_u64(j, key, array_number(REC, false, 0)); }
FN(array_task) { json_u64(j, key, array_number(REC, true, 4294967294u)); }
FN(step_cluster) { json_text(j, key, show_env.cluster); }
FN(step_running) { json_num(j, key, true, false, step_run_sec(REC)); }
FN(step_limit)
{
	uint64_t limit = msgview_num(REC, PB_StepRecord_time_limit_min, 0);
	bool finite = limit && limit != TIME_INFINITE;
	json_num(j, key, finite, !finite, limit);
}
FN(step_state) { json_word_list(j, key, job_state_name((uint32_t)msgview_num(REC, PB_StepRecord_state, 0), 0)); }
FN(step_id)
{
	struct str text = STR_INIT;
	put_step_id(&text, REC);
	json_put(j, key, &text);
}
FN(step_user)
{
	struct str text = STR_INIT;
	put_user(&text, msgview_text(REC, PB_StepRecord_user), msgview_num(REC, PB_StepRecord_uid, 0));
	json_put(j, key, &text);
}
#undef FN
#include "cli/json_rows.h"
static const struct json_row node_rows[] = {
#include "tables/json_node.def"
};
static const struct json_row part_rows[] = {
#include "tables/json_part.def"
};
static const struct json_row step_rows[] = {
#include "tables/json_step.def"
};
const struct json_row *json_node_rows(size_t *n)
{
	*n = sizeof(node_rows) / sizeof(node_rows[0]);
	return node_rows;
}
const struct json_row *json_part_rows(size_t *n)
{
	*n = sizeof(part_rows) / sizeof(part_rows[0]);
	return part_rows;
}
const struct json_row *json_step_rows(size_t *n)
{
	*n = sizeof(step_rows) / sizeof(step_rows[0]);
	return step_rows;
}
