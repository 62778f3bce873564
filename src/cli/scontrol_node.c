/* scontrol_node.c - a node and a partition as `scontrol show` prints them, in the reference's order of lines */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/scontrol.h"
#include "cli/nodeview.h"
#include "model/states.h"
#include "model/timespec.h"

#define NL(s) ((s)->one_line ? " " : "\n   ")

static void kv(struct str *out, const char *key, const struct msgview *m, unsigned field, const char *absent)
{
	str_add(out, key);
	put_slice_set(out, msgview_text(m, field), absent);
}
static void kv_num(struct str *out, const char *key, uint64_t value)
{
	str_add(out, key);
	put_u64(out, value);
}
static void kv_field(struct str *out, const char *key, const struct msgview *m, unsigned field) { kv_num(out, key, msgview_num(m, field, 0)); }
static void kv_when(struct str *out, const char *key, const struct msgview *m, unsigned field, const char *absent)
{
	str_add(out, key);
	put_when(out, msgview_num(m, field, 0), absent);
}
/* A number, or a word when it is not there or "infinite". */
static void kv_or(struct str *out, const char *key, const struct msgview *m, unsigned field, const char *word)
{
	uint64_t v = msgview_num(m, field, UINT64_MAX);
	str_add(out, key);
	if (v >= UINT32_MAX)
		str_add(out, word);
	else
		put_u64(out, v);
}
static void kv_yes(struct str *out, const char *key, const struct msgview *m, unsigned field)
{
	str_add(out, key);
	str_add(out, msgview_num(m, field, 0) ? "YES" : "NO");
}

static void put_node_hardware(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	kv(out, "NodeName=", m, PB_NodeRecord_name, "");
	if (msgview_text(m, PB_NodeRecord_arch).n)
		kv(out, " Arch=", m, PB_NodeRecord_arch, "");
	kv_num(out, " CoresPerSocket=", msgview_num(m, PB_NodeRecord_cores, 1));
	str_add(out, " ");
	str_add(out, NL(s));
	kv_field(out, "CPUAlloc=", m, PB_NodeRecord_alloc_cpus);
	kv_num(out, " CPUEfctv=", node_effective_cpus(m));
	kv_field(out, " CPUTot=", m, PB_NodeRecord_cpus);
	str_add(out, " CPULoad=");
	put_cpu_load(out, m);
	str_add(out, NL(s));
	kv(out, "AvailableFeatures=", m, PB_NodeRecord_features, "(null)");
	str_add(out, NL(s));
	kv(out, "ActiveFeatures=", m, msgview_has(m, PB_NodeRecord_features_act) ? PB_NodeRecord_features_act : PB_NodeRecord_features, "(null)");
	str_add(out, NL(s));
	kv(out, "Gres=", m, PB_NodeRecord_gres, "(null)");
	if (s->details) {
		str_add(out, NL(s));
		str_add(out, "GresDrain=N/A");
		str_add(out, NL(s));
		str_add(out, "GresUsed=");
		put_gres_used(out, m);
	}
	str_add(out, NL(s));
	kv(out, "NodeAddr=", m, msgview_has(m, PB_NodeRecord_addr) ? PB_NodeRecord_addr : PB_NodeRecord_name, "");
	kv(out, " NodeHostName=", m, msgview_has(m, PB_NodeRecord_hostname) ? PB_NodeRecord_hostname : PB_NodeRecord_name, "");
	if (msgview_num(m, PB_NodeRecord_port, 6818) != 6818)
		kv_field(out, " Port=", m, PB_NodeRecord_port);
	if (msgview_text(m, PB_NodeRecord_version).n)
		kv(out, " Version=", m, PB_NodeRecord_version, "");
	str_add(out, NL(s));
	if (msgview_text(m, PB_NodeRecord_os).n) {
		kv(out, "OS=", m, PB_NodeRecord_os, "");
		str_add(out, " ");
		str_add(out, NL(s));
	}
	kv_field(out, "RealMemory=", m, PB_NodeRecord_real_memory);
	kv_field(out, " AllocMem=", m, PB_NodeRecord_alloc_mem);
	str_add(out, " FreeMem=");
	put_free_mem(out, m);
	kv_num(out, " Sockets=", msgview_num(m, PB_NodeRecord_sockets, 1));
	kv_num(out, " Boards=", msgview_num(m, PB_NodeRecord_boards, 1));
	str_add(out, NL(s));
	if (msgview_num(m, PB_NodeRecord_core_spec_count, 0) || msgview_text(m, PB_NodeRecord_cpu_spec_list).n || msgview_num(m, PB_NodeRecord_mem_spec_limit, 0)) {
		kv_field(out, "CoreSpecCount=", m, PB_NodeRecord_core_spec_count);
		kv(out, " CPUSpecList=", m, PB_NodeRecord_cpu_spec_list, "");
		kv_field(out, " MemSpecLimit=", m, PB_NodeRecord_mem_spec_limit);
		str_add(out, NL(s));
	}
}

static void put_node_state(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	char word[160];
	node_state_full((uint32_t)msgview_num(m, PB_NodeRecord_state, 0), (uint32_t)msgview_num(m, PB_NodeRecord_state_flags, 0), word, sizeof(word));
	str_add(out, "State=");
	str_add(out, word);
	kv_num(out, " ThreadsPerCore=", msgview_num(m, PB_NodeRecord_threads, 1));
	kv_field(out, " TmpDisk=", m, PB_NodeRecord_tmp_disk);
	kv_num(out, " Weight=", msgview_num(m, PB_NodeRecord_weight, 1));
	kv(out, " Owner=", m, PB_NodeRecord_owner, "N/A");
	kv(out, " MCS_label=", m, PB_NodeRecord_mcs_label, "N/A");
	if (msgview_num(m, PB_NodeRecord_next_state, 0))
		str_add(out, msgview_num(m, PB_NodeRecord_next_state, 0) == NODE_DOWN ? " NextState=DOWN" :
			    msgview_num(m, PB_NodeRecord_next_state, 0) == NODE_NEXT_UNDRAIN ? " NextState=UNDRAIN" : " NextState=RESUME");
	str_add(out, NL(s));
	if (msgview_text(m, PB_NodeRecord_partitions).n) {
		kv(out, "Partitions=", m, PB_NodeRecord_partitions, "");
		str_add(out, " ");
		str_add(out, NL(s));
	}
	kv_when(out, "BootTime=", m, PB_NodeRecord_boot_time, "None");
	kv_when(out, " SlurmdStartTime=", m, PB_NodeRecord_slurmd_start_time, "None");
	str_add(out, NL(s));
	kv_when(out, "LastBusyTime=", m, PB_NodeRecord_last_busy, "Unknown");
	kv_when(out, " ResumeAfterTime=", m, PB_NodeRecord_resume_after, "None");
	str_add(out, " SuspendTime=INFINITE");
	str_add(out, NL(s));
	kv(out, "CfgTRES=", m, PB_NodeRecord_cfg_tres, "");
	str_add(out, NL(s));
	kv(out, "AllocTRES=", m, PB_NodeRecord_alloc_tres, "");
	str_add(out, NL(s));
	str_addf(out, "CurrentWatts=%llu AveWatts=%llu", (unsigned long long)msgview_num(m, PB_NodeRecord_current_watts, 0),
		 (unsigned long long)msgview_num(m, PB_NodeRecord_ave_watts, 0));
}

static void put_node_notes(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	static const struct { const char *key; unsigned field; } note[] = {
		{ "Comment=", PB_NodeRecord_comment }, { "Extra=", PB_NodeRecord_extra }, { "ReservationName=", PB_NodeRecord_reservation },
		{ "Topology=", PB_NodeRecord_topology } };
	if (msgview_text(m, PB_NodeRecord_reason).n) {
		str_add(out, NL(s));
		kv(out, "Reason=", m, PB_NodeRecord_reason, "");
		if (msgview_num(m, PB_NodeRecord_reason_time, 0)) {
			str_add(out, " [");
			put_user(out, msgview_text(m, PB_NodeRecord_reason_user), msgview_num(m, PB_NodeRecord_reason_uid, 0));
			kv_when(out, "@", m, PB_NodeRecord_reason_time, "Unknown");
			str_add(out, "]");
		}
	}
	for (size_t i = 0; i < sizeof(note) / sizeof(note[0]); i++)
		if (msgview_text(m, note[i].field).n) {
			str_add(out, NL(s));
			kv(out, note[i].key, m, note[i].field, "");
		}
	if (msgview_text(m, PB_NodeRecord_instance_id).n || msgview_text(m, PB_NodeRecord_instance_type).n) {
		str_add(out, NL(s));
		kv(out, "InstanceId=", m, PB_NodeRecord_instance_id, "");
		kv(out, " InstanceType=", m, PB_NodeRecord_instance_type, "");
	}
}

void put_node_record(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	put_node_hardware(out, m, s);
	put_node_state(out, m, s);
	put_node_notes(out, m, s);
	str_add(out, s->one_line ? "\n" : "\n\n");
}

static void put_part_access(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	bool deny_accounts = msgview_text(m, PB_PartitionRecord_deny_accounts).n, deny_qos = msgview_text(m, PB_PartitionRecord_deny_qos).n;
	kv(out, "PartitionName=", m, PB_PartitionRecord_name, "");
	str_add(out, NL(s));
	kv(out, "AllowGroups=", m, PB_PartitionRecord_allow_groups, "ALL");
	kv(out, deny_accounts ? " DenyAccounts=" : " AllowAccounts=", m, deny_accounts ? PB_PartitionRecord_deny_accounts : PB_PartitionRecord_allow_accounts, "ALL");
	kv(out, deny_qos ? " DenyQos=" : " AllowQos=", m, deny_qos ? PB_PartitionRecord_deny_qos : PB_PartitionRecord_allow_qos, "ALL");
	str_add(out, NL(s));
	kv(out, "AllocNodes=", m, PB_PartitionRecord_alloc_nodes, "ALL");
	if (msgview_text(m, PB_PartitionRecord_alternate).n)
		kv(out, " Alternate=", m, PB_PartitionRecord_alternate, "");
	kv_yes(out, " Default=", m, PB_PartitionRecord_is_default);
	kv(out, " QoS=", m, PB_PartitionRecord_qos, "N/A");
	str_add(out, NL(s));
	str_add(out, "DefaultTime=");
	uint64_t minutes = msgview_num(m, PB_PartitionRecord_default_time_min, 0);
	if (minutes)
		put_limit(out, minutes);
	else
		str_add(out, "NONE");
	kv_yes(out, " DisableRootJobs=", m, PB_PartitionRecord_disable_root_jobs);
	kv(out, " Exclusive=", m, PB_PartitionRecord_exclusive, "NO");
	kv_field(out, " GraceTime=", m, PB_PartitionRecord_grace_time_sec);
	kv_yes(out, " Hidden=", m, PB_PartitionRecord_hidden);
	str_add(out, NL(s));
}

static void put_part_limits(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	kv_or(out, "MaxNodes=", m, PB_PartitionRecord_max_nodes, "UNLIMITED");
	str_add(out, " MaxTime=");
	put_limit(out, msgview_num(m, PB_PartitionRecord_max_time_min, TIME_INFINITE));
	kv_num(out, " MinNodes=", msgview_num(m, PB_PartitionRecord_min_nodes, 0));
	kv_yes(out, " LLN=", m, PB_PartitionRecord_lln);
	kv_or(out, " MaxCPUsPerNode=", m, PB_PartitionRecord_max_cpus_per_node, "UNLIMITED");
	kv_or(out, " MaxCPUsPerSocket=", m, PB_PartitionRecord_max_cpus_per_socket, "UNLIMITED");
	str_add(out, NL(s));
	kv(out, "Nodes=", m, msgview_has(m, PB_PartitionRecord_nodes_full) ? PB_PartitionRecord_nodes_full : PB_PartitionRecord_nodes, "(null)");
	str_add(out, NL(s));
	kv_num(out, "PriorityJobFactor=", msgview_num(m, PB_PartitionRecord_priority_job_factor, 1));
	kv_num(out, " PriorityTier=", msgview_num(m, PB_PartitionRecord_priority_tier, 1));
	kv_yes(out, " RootOnly=", m, PB_PartitionRecord_root_only);
	kv_yes(out, " ReqResv=", m, PB_PartitionRecord_req_resv);
	kv(out, " OverSubscribe=", m, PB_PartitionRecord_oversubscribe, "NO");
	str_add(out, NL(s));
	bool over = msgview_num(m, PB_PartitionRecord_over_time_limit_min, 0) >= UINT32_MAX;
	kv_or(out, "OverTimeLimit=", m, PB_PartitionRecord_over_time_limit_min, over ? "UNLIMITED" : "NONE");
	kv(out, " PreemptMode=", m, PB_PartitionRecord_preempt_mode, "OFF");
	if (msgview_num(m, PB_PartitionRecord_power_down_on_idle, 0))
		str_add(out, " PowerDownOnIdle=YES");
	str_add(out, NL(s));
}

static void put_part_memory(struct str *out, const char *cpu_key, unsigned cpu, const char *node_key, unsigned node, const struct msgview *m)
{
	bool per_cpu = msgview_num(m, cpu, 0);
	uint64_t mb = msgview_num(m, per_cpu ? cpu : node, 0);
	str_add(out, per_cpu ? cpu_key : node_key);
	if (mb && mb < UINT32_MAX)
		put_u64(out, mb);
	else
		str_add(out, "UNLIMITED");
}

void put_part_record(struct str *out, const struct msgview *m, const struct scontrol *s)
{
	put_part_access(out, m, s);
	put_part_limits(out, m, s);
	kv(out, "State=", m, PB_PartitionRecord_state, "UP");
	kv_field(out, " TotalCPUs=", m, PB_PartitionRecord_total_cpus);
	kv_field(out, " TotalNodes=", m, PB_PartitionRecord_total_nodes);
	kv(out, " SelectTypeParameters=", m, PB_PartitionRecord_select_type_parameters, "NONE");
	str_add(out, NL(s));
	kv(out, "JobDefaults=", m, PB_PartitionRecord_job_defaults, "(null)");
	str_add(out, NL(s));
	put_part_memory(out, "DefMemPerCPU=", PB_PartitionRecord_def_mem_per_cpu, "DefMemPerNode=", PB_PartitionRecord_def_mem_per_node, m);
	put_part_memory(out, " MaxMemPerCPU=", PB_PartitionRecord_max_mem_per_cpu, " MaxMemPerNode=", PB_PartitionRecord_max_mem_per_node, m);
	str_add(out, NL(s));
	kv(out, "TRES=", m, PB_PartitionRecord_tres, "(null)");
	if (msgview_text(m, PB_PartitionRecord_tres_billing_weights).n) {
		str_add(out, NL(s));
		kv(out, "TRESBillingWeights=", m, PB_PartitionRecord_tres_billing_weights, "");
	}
	if (msgview_text(m, PB_PartitionRecord_topology).n) {
		str_add(out, NL(s));
		kv(out, "Topology=", m, PB_PartitionRecord_topology, "");
	}
	if (msgview_text(m, PB_PartitionRecord_cpu_bind).n) {
		str_add(out, NL(s));
		kv(out, "CpuBind=", m, PB_PartitionRecord_cpu_bind, "");
	}
	str_add(out, s->one_line ? "\n" : "\n\n");
}
