/* core_config.c - see core_config.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "ctld/core_config.h"
#include "model/usage.h"

static uint32_t num(const struct conf *c, enum conf_key k)
{
	uint64_t v = conf_num(c, k);
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* 0 where unset or unlimited. */
static uint32_t num_or_0(const struct conf *c, enum conf_key k)
{
	uint64_t v = conf_num(c, k);
	return v >= UINT32_MAX ? 0 : (uint32_t)v;
}

static uint64_t mem(const struct conf *c, enum conf_key k)
{
	uint64_t v = conf_num(c, k);
	return v == UINT64_MAX ? 0 : v;
}

/* A number among SchedulerParameters. */
static uint32_t number_in(const struct conf *c, enum conf_key k, const char *word, uint32_t otherwise)
{
	char buf[64];
	unsigned long long v;
	const char *text = conf_opt(c, k, word, buf, sizeof buf);
	return text && !str_to_u64(text, 0, UINT32_MAX, &v) ? (uint32_t)v : otherwise;
}

static uint32_t sched_opt(const struct conf *c, const char *word, uint32_t otherwise) { return number_in(c, CONF_SchedulerParameters, word, otherwise); }
static uint32_t preempt_opt(const struct conf *c, const char *word, uint32_t otherwise) { return number_in(c, CONF_PreemptParameters, word, otherwise); }

static bool mcs_word(const char *words, const char *word)
{
	size_t n = strlen(word);
	for (const char *s = words; s && *s && *s != ':'; s += strcspn(s, ",:"), s += *s == ',')
		if (strcspn(s, ",:") == n && !strncasecmp(s, word, n))
			return true;
	return false;
}

/* MCSParameters: "ondemand|enforced,noselect|select|ondemandselect[:groups]" (mcs.html). */
static void mcs_params(const struct conf *c, struct core_params *p)
{
	static const char *const plugin[] = { "mcs/none", "mcs/user", "mcs/group", "mcs/account", "mcs/label" };
	const char *name = conf_str(c, CONF_MCSPlugin), *words = conf_str(c, CONF_MCSParameters), *colon = words ? strchr(words, ':') : NULL;
	for (uint32_t i = 0; name && i < sizeof plugin / sizeof *plugin; i++)
		if (str_eq_nocase(name, plugin[i]))
			p->mcs = i;
	p->mcs_enforced = mcs_word(words, "enforced");
	p->mcs_select = mcs_word(words, "noselect") ? MCS_NOSELECT : mcs_word(words, "select") ? MCS_SELECT : MCS_ONDEMANDSELECT;
	p->mcs_groups = colon ? colon + 1 : NULL;
}

/* Each word implies those before it: qos and limits need associations, safe needs limits. */
static uint32_t enforce(const struct conf *c)
{
	uint32_t e = conf_has(c, CONF_AccountingStorageEnforce, "associations") ? ENFORCE_ASSOC : 0;
	if (conf_has(c, CONF_AccountingStorageEnforce, "limits"))
		e |= ENFORCE_ASSOC | ENFORCE_LIMITS;
	if (conf_has(c, CONF_AccountingStorageEnforce, "qos"))
		e |= ENFORCE_ASSOC | ENFORCE_QOS;
	return conf_has(c, CONF_AccountingStorageEnforce, "safe") ? e | ENFORCE_ASSOC | ENFORCE_LIMITS | ENFORCE_SAFE : e;
}

static void preempt_params(const struct conf *c, struct core_params *p)
{
	p->preempt_mode = conf_has(c, CONF_PreemptMode, "SUSPEND") ? PREEMPT_SUSPEND : conf_has(c, CONF_PreemptMode, "REQUEUE") ? PREEMPT_REQUEUE :
		conf_has(c, CONF_PreemptMode, "CANCEL") ? PREEMPT_CANCEL : PREEMPT_OFF;
	p->preempt_within = conf_has(c, CONF_PreemptMode, "WITHIN");
	p->preempt_priority = conf_has(c, CONF_PreemptMode, "PRIORITY");
	p->preempt_exempt_sec = num_or_0(c, CONF_PreemptExemptTime);
	p->preempt_exempt_priority = preempt_opt(c, "min_exempt_priority", 0);
	p->preempt_youngest = conf_has(c, CONF_PreemptParameters, "youngest_first");
	p->preempt_user_signal = conf_has(c, CONF_PreemptParameters, "send_user_signal");
	p->preempt_licenses = conf_has(c, CONF_PreemptParameters, "reclaim_licenses");
	p->preempt_requeue_sec = sched_opt(c, "requeue_delay", 120);
	p->suspend_grace_sec = preempt_opt(c, "suspend_grace_time", 2);
	p->gang = conf_has(c, CONF_PreemptMode, "GANG");
	p->time_slice_sec = num_or_0(c, CONF_SchedulerTimeSlice);
}

/* bf_order=queue|shortest|predicted, of Berth alone. */
static unsigned backfill_order(const struct conf *c)
{
	char buf[64];
	const char *text = conf_opt(c, CONF_SchedulerParameters, "bf_order", buf, sizeof buf);
	return str_eq_nocase(text, "shortest") ? BF_ORDER_SHORTEST : str_eq_nocase(text, "predicted") ? BF_ORDER_PREDICTED : BF_ORDER_QUEUE;
}

static uint32_t enforce_limits(const struct conf *c)
{
	const char *v = conf_str(c, CONF_EnforcePartLimits);
	if (!v || str_eq_nocase(v, "NO"))
		return 0;
	return str_eq_nocase(v, "ANY") ? 1 : 2;
}

static uint32_t gather_seconds(const struct conf *c)
{
	uint32_t sec = 30;
	struct error err;
	(void)usage_frequency(conf_str(c, CONF_JobAcctGatherFrequency) ? conf_str(c, CONF_JobAcctGatherFrequency) : "", &sec, &err);
	return sec;
}

static void select_params(const struct conf *c, struct core_params *p)
{
	const char *v = conf_str(c, CONF_SelectTypeParameters);
	p->select_cores = !v || strcasestr(v, "CR_Core") != NULL;
	p->select_memory = !v || strcasestr(v, "Memory") != NULL;
	p->select_sockets = v && strcasestr(v, "CR_Socket") != NULL;
	p->select_lln = conf_has(c, CONF_SelectTypeParameters, "CR_LLN");
	p->least_loaded_shared = conf_has(c, CONF_SelectTypeParameters, "LL_SHARED_GRES");
	mcs_params(c, p);
	p->allow_spec = conf_bool(c, CONF_AllowSpecResourcesUsage);
	p->enforce_binding = conf_has(c, CONF_SelectTypeParameters, "ENFORCE_BINDING_GRES");
	p->many_shared = conf_has(c, CONF_SelectTypeParameters, "MULTIPLE_SHARING_GRES_PJ");
	p->select_block = conf_has(c, CONF_SelectTypeParameters, "CR_CORE_DEFAULT_DIST_BLOCK");
	p->one_task_per_core = conf_has(c, CONF_SelectTypeParameters, "CR_ONE_TASK_PER_CORE");
}

static uint32_t priority_flags(const struct conf *c)
{
	static const struct { const char *word; uint32_t flags; } row[] = {
		{ "ACCRUE_ALWAYS", PRIO_ACCRUE_ALWAYS }, { "CALCULATE_RUNNING", PRIO_CALCULATE_RUNNING }, { "NO_NORMAL_PART", PRIO_NO_NORMAL_PART },
		{ "NO_NORMAL_TRES", PRIO_NO_NORMAL_TRES }, { "NO_NORMAL_ALL", PRIO_NO_NORMAL_PART | PRIO_NO_NORMAL_TRES | PRIO_NO_NORMAL_ASSOC | PRIO_NO_NORMAL_QOS },
		{ "NO_NORMAL_ASSOC", PRIO_NO_NORMAL_ASSOC }, { "NO_NORMAL_QOS", PRIO_NO_NORMAL_QOS }, { "NO_FAIR_TREE", PRIO_NO_FAIR_TREE }, { "MAX_TRES_GRES", PRIO_MAX_TRES_GRES }, { "MAX_TRES", PRIO_MAX_TRES },
		{ "SMALL_RELATIVE_TO_TIME", PRIO_SMALL_RELATIVE_TO_TIME },
	};
	uint32_t flags = 0;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
		flags |= conf_has(c, CONF_PriorityFlags, row[i].word) ? row[i].flags : 0;
	return flags;
}

static void usage_params(const struct conf *c, struct core_params *p)
{
	static const char *const period[] = { "NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY" };
	const char *reset = conf_str(c, CONF_PriorityUsageResetPeriod);
	p->decay_half_sec = num_or_0(c, CONF_PriorityDecayHalfLife);
	p->calc_period_sec = num_or_0(c, CONF_PriorityCalcPeriod) * 60;
	for (uint32_t i = 0; reset && i < sizeof period / sizeof period[0]; i++)
		if (str_eq_nocase(reset, period[i]))
			p->usage_reset = i;
}

static void prolog_params(const struct conf *c, struct core_params *p)
{
	static const char *const implies_alloc[] = { "Alloc", "Contain", "DeferBatch", "NoHold", "ForceRequeueOnFail" };
	const char *const *list;
	p->prolog_ctld = conf_list(c, CONF_PrologSlurmctld, &list) > 0;
	p->epilog_ctld = conf_list(c, CONF_EpilogSlurmctld, &list) > 0;
	for (size_t i = 0; i < sizeof implies_alloc / sizeof implies_alloc[0]; i++)
		p->prolog_alloc = p->prolog_alloc || conf_has(c, CONF_PrologFlags, implies_alloc[i]);
	p->prolog_contain = conf_has(c, CONF_PrologFlags, "Contain");
	p->epilog_env = conf_list(c, CONF_Epilog, &list) > 0;
	p->prolog_nohold = conf_has(c, CONF_PrologFlags, "NoHold");
	p->prolog_force_requeue = conf_has(c, CONF_PrologFlags, "ForceRequeueOnFail");
	p->prolog_fail_nohold = conf_has(c, CONF_SchedulerParameters, "nohold_on_prolog_fail");
}

static void requeue_params(const struct conf *c, struct core_params *p)
{
	p->requeue_delay_sec = sched_opt(c, "requeue_delay", 120);
	p->job_requeue = conf_num(c, CONF_JobRequeue) != 0;
	p->max_batch_requeue = (uint32_t)conf_num(c, CONF_MaxBatchRequeue);
	p->requeue_exit = conf_str(c, CONF_RequeueExit);
	p->requeue_exit_hold = conf_str(c, CONF_RequeueExitHold);
}

void core_config_params(const struct conf *c, struct core_params *p)
{
	char word[64];
	memset(p, 0, sizeof *p);
	p->cluster = conf_str(c, CONF_ClusterName);
	p->gather_sec = gather_seconds(c);
	p->first_job_id = num(c, CONF_FirstJobId);
	p->max_job_id = num(c, CONF_MaxJobId);
	p->max_job_count = num(c, CONF_MaxJobCount);
	p->max_array_size = num(c, CONF_MaxArraySize);
	p->min_job_age_sec = num(c, CONF_MinJobAge);
	p->kill_wait_sec = num(c, CONF_KillWait);
	p->slurmd_timeout_sec = num(c, CONF_SlurmdTimeout);
	p->resume_timeout_sec = num(c, CONF_ResumeTimeout);
	p->inactive_limit_sec = num_or_0(c, CONF_InactiveLimit);
	p->wait_sec = num_or_0(c, CONF_WaitTime);
	p->over_time_limit_min = num(c, CONF_OverTimeLimit);
	p->complete_wait_sec = num_or_0(c, CONF_CompleteWait);
	p->batch_start_timeout_sec = num(c, CONF_BatchStartTimeout);
	p->unkillable_step_timeout_sec = num(c, CONF_UnkillableStepTimeout);
	p->max_step_count = num(c, CONF_MaxStepCount);
	p->max_tasks_per_node = num(c, CONF_MaxTasksPerNode);
	p->return_to_service = num(c, CONF_ReturnToService);
	requeue_params(c, p);
	select_params(c, p);
	p->backfill = !conf_str(c, CONF_SchedulerType) || str_eq_nocase(conf_str(c, CONF_SchedulerType), "sched/backfill");
	p->bf_window_min = sched_opt(c, "bf_window", 1440);
	p->bf_resolution_sec = sched_opt(c, "bf_resolution", 60);
	p->bf_interval_sec = sched_opt(c, "bf_interval", 30);
	p->backfill = p->backfill && !str_eq_nocase(conf_opt(c, CONF_SchedulerParameters, "bf_interval", word, sizeof word), "-1");
	p->bf_max_job_test = sched_opt(c, "bf_max_job_test", 500);
	p->bf_reserve = sched_opt(c, "bf_job_part_count_reserve", 0);
	p->bf_order = backfill_order(c);
	p->max_switch_wait_sec = sched_opt(c, "max_switch_wait", 300);
	p->topo_optional = conf_has(c, CONF_TopologyParam, "TopoOptional");
	p->dragonfly = conf_has(c, CONF_TopologyParam, "Dragonfly");
	p->user_top = conf_has(c, CONF_SchedulerParameters, "enable_user_top");
	p->place_fragment = conf_has(c, CONF_SchedulerParameters, "place_fragment");
	p->bf_plan_all = str_eq_nocase(conf_opt(c, CONF_SchedulerParameters, "bf_plan", word, sizeof word), "all");
	p->enforce_part_limits = enforce_limits(c);
	p->kill_invalid_depend = conf_has(c, CONF_DependencyParameters, "kill_invalid_depend");
	p->disable_root_jobs = conf_bool(c, CONF_DisableRootJobs);
	p->def_mem_per_cpu = mem(c, CONF_DefMemPerCPU);
	p->def_mem_per_node = mem(c, CONF_DefMemPerNode);
	p->def_cpu_per_gpu = num_or_0(c, CONF_DefCpuPerGPU);
	p->def_mem_per_gpu = mem(c, CONF_DefMemPerGPU);
	p->max_mem_per_cpu = mem(c, CONF_MaxMemPerCPU);
	p->max_mem_per_node = mem(c, CONF_MaxMemPerNode);
	prolog_params(c, p);
	p->node_steps_clean = true;
	p->gres_types = conf_str(c, CONF_GresTypes);
	p->tres_extra = conf_str(c, CONF_AccountingStorageTRES);
	p->priority_multifactor = !conf_str(c, CONF_PriorityType) || str_eq_nocase(conf_str(c, CONF_PriorityType), "priority/multifactor");
	p->weight_age = num(c, CONF_PriorityWeightAge);
	p->weight_job_size = num(c, CONF_PriorityWeightJobSize);
	p->weight_partition = num(c, CONF_PriorityWeightPartition);
	p->max_age_sec = num(c, CONF_PriorityMaxAge);
	p->favor_small = conf_bool(c, CONF_PriorityFavorSmall);
	p->config_overrides = conf_has(c, CONF_SlurmdParameters, "config_overrides");
	p->preempt_qos = conf_str(c, CONF_PreemptType) && str_eq_nocase(conf_str(c, CONF_PreemptType), "preempt/qos");
	p->preempt = p->preempt_qos || (conf_str(c, CONF_PreemptType) && str_eq_nocase(conf_str(c, CONF_PreemptType), "preempt/partition_prio"));
	p->enforce = enforce(c);
	usage_params(c, p);
	preempt_params(c, p);
	p->resv_over_run_min = conf_num(c, CONF_ResvOverRun) >= 65533 ? UINT32_MAX : num(c, CONF_ResvOverRun);
	p->licenses = conf_str(c, CONF_Licenses);
	p->weight_assoc = num(c, CONF_PriorityWeightAssoc);
	p->weight_fair = num(c, CONF_PriorityWeightFairShare);
	p->weight_qos = num(c, CONF_PriorityWeightQOS);
	p->weight_tres = conf_str(c, CONF_PriorityWeightTRES);
	p->prio_flags = priority_flags(c);
	p->hash_seed = 0x62657274;
}
