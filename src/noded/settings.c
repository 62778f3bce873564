/* settings.c - what slurmstepd gets of our configuration (see settings.h) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "noded/namespace.h"
#include "noded/place.h"
#include "noded/settings.h"

/* Its name there, the key here. Paths get their %-patterns filled in. */
static const struct { const char *name; enum conf_key key; bool path; } texts[] = {
	{ "SlurmdLogFile", CONF_SlurmdLogFile, true }, { "TaskProlog", CONF_TaskProlog, true }, { "TaskEpilog", CONF_TaskEpilog, true },
	{ "TaskPlugin", CONF_TaskPlugin, false }, { "TaskPluginParam", CONF_TaskPluginParam, false },
	{ "JobAcctGatherType", CONF_JobAcctGatherType, false }, { "JobAcctGatherParams", CONF_JobAcctGatherParams, false }, { "JobAcctGatherFrequency", CONF_JobAcctGatherFrequency, false },
	{ "OciContainerPath", CONF_Oci_ContainerPath, false }, { "OciCreateEnvFile", CONF_Oci_CreateEnvFile, false }, { "OciDisableHooks", CONF_Oci_DisableHooks, false },
	{ "OciEnvExclude", CONF_Oci_EnvExclude, false }, { "OciMountSpoolDir", CONF_Oci_MountSpoolDir, false }, { "OciRunTimeEnvExclude", CONF_Oci_RunTimeEnvExclude, false },
	{ "OciRunTimeCreate", CONF_Oci_RunTimeCreate, false }, { "OciRunTimeDelete", CONF_Oci_RunTimeDelete, false }, { "OciRunTimeKill", CONF_Oci_RunTimeKill, false },
	{ "OciRunTimeQuery", CONF_Oci_RunTimeQuery, false }, { "OciRunTimeRun", CONF_Oci_RunTimeRun, false }, { "OciRunTimeStart", CONF_Oci_RunTimeStart, false },
	{ "PMIxCliTmpDirBase", CONF_Mpi_PMIxCliTmpDirBase, true }, { "PMIxEnv", CONF_Mpi_PMIxEnv, false },
	{ "AcctGatherEnergyType", CONF_AcctGatherEnergyType, false },
	{ "AllowedRAMSpace", CONF_Cgroup_AllowedRAMSpace, false }, { "AllowedSwapSpace", CONF_Cgroup_AllowedSwapSpace, false },
	{ "MaxRAMPercent", CONF_Cgroup_MaxRAMPercent, false }, { "MaxSwapPercent", CONF_Cgroup_MaxSwapPercent, false },
};
static const struct { const char *name; enum conf_key key; } switches[] = {
	{ "ConstrainCores", CONF_Cgroup_ConstrainCores }, { "ConstrainDevices", CONF_Cgroup_ConstrainDevices },
	{ "ConstrainRAMSpace", CONF_Cgroup_ConstrainRAMSpace }, { "ConstrainSwapSpace", CONF_Cgroup_ConstrainSwapSpace },
	{ "SignalChildrenProcesses", CONF_Cgroup_SignalChildrenProcesses },
	{ "OciDisableCleanup", CONF_Oci_DisableCleanup }, { "OciIgnoreFileConfigJson", CONF_Oci_IgnoreFileConfigJson },
};

static void setting_add(Pb__StepdStart *start, const char *key, const char *value)
{
	Pb__KeyValue2 *kv = xcalloc(1, sizeof *kv);
	pb__key_value2__init(kv);
	kv->key = (char *)(uintptr_t)key;
	kv->value = xstrdup(value);
	start->conf = xrealloc(start->conf, (start->n_conf + 1) * sizeof *start->conf);
	start->conf[start->n_conf++] = kv;
}

static void setting_add_num(Pb__StepdStart *start, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, value);
	setting_add(start, key, text);
}

static void plugins_fill(const struct noded *n, Pb__StepdStart *start)
{
	char path[4096];
	if (!conf_plugstack(n->conf, path, sizeof path))
		return;
	setting_add(start, "PlugStack", path);
	setting_add(start, "PluginDir", conf_str(n->conf, CONF_PluginDir));
}

/* Where the node is in the network; a flat one needs no word. */
static void topology_fill(const struct noded *n, Pb__StepdStart *start)
{
	struct str addr = STR_INIT, pattern = STR_INIT;
	conf_topology_addr(n->conf, n->name, &addr, &pattern);
	if (strcmp(pattern.data, "node")) {
		setting_add(start, "TopologyAddr", addr.data);
		setting_add(start, "TopologyPattern", pattern.data);
	}
	str_fini(&addr);
	str_fini(&pattern);
}

void settings_fill(const struct noded *n, Pb__StepdStart *start)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const char *value = conf_str(n->conf, texts[i].key);
		char *full = !value || !*value ? NULL : texts[i].path ? conf_expand(n->conf, value, n->name) : xstrdup(value);
		if (full)
			setting_add(start, texts[i].name, full);
		free(full);
	}
	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
		if (conf_bool(n->conf, switches[i].key))
			setting_add(start, switches[i].name, "yes");
	setting_add(start, "SlurmdDebug", log_level_name((enum log_level)conf_num(n->conf, CONF_SlurmdDebug)));
	if (conf_str(n->conf, CONF_LogTimeFormat))
		setting_add(start, "LogTimeFormat", conf_str(n->conf, CONF_LogTimeFormat));
	if (noded_debug_flags(n))
		setting_add(start, "DebugFlags", noded_debug_flags(n));
	setting_add(start, "ConfPath", conf_path(n->conf));
	if (conf_str(n->conf, CONF_MpiParams))
		setting_add(start, "MpiParams", conf_str(n->conf, CONF_MpiParams));
	plugins_fill(n, start);
	topology_fill(n, start);
	setting_add_num(start, "UnkillableStepTimeout", conf_num(n->conf, CONF_UnkillableStepTimeout));
	if (conf_num(n->conf, CONF_JobFileAppend))
		setting_add(start, "JobFileAppend", "yes");
	setting_add_num(start, "MinRAMSpace", conf_num(n->conf, CONF_Cgroup_MinRAMSpace));
	setting_add_num(start, "RealMemory", n->self->real_memory ? n->self->real_memory : n->hw.memory_mb);
	if (n->cgroup) {
		setting_add(start, "CgroupPath", n->cgroup);
		setting_add(start, "CgroupControllers", n->controllers);
	}
	if (namespace_base(n)) {
		struct conf_namespace ns;
		conf_namespace(n->conf, n->name, &ns);
		setting_add(start, "NamespaceBase", namespace_base(n));
		setting_add(start, "NamespaceDirs", ns.dirs);
		if (ns.shared)
			setting_add(start, "NamespaceShared", "yes");
	}
	if (n->hw.cpu_map)
		setting_add(start, "CpuMap", n->hw.cpu_map);
	start->has_cpus = start->has_cores = start->has_sockets = start->has_threads = true;
	start->cpus = n->self->cpus;
	start->sockets = n->self->sockets;
	start->cores = n->self->cores;
	start->threads = n->self->threads;
	start->gres = n->gres.entry;
	start->n_gres = n->gres.n;
}

void settings_free(Pb__StepdStart *start)
{
	for (size_t i = 0; i < start->n_conf; i++) {
		free(start->conf[i]->value);
		free(start->conf[i]);
	}
	free(start->conf);
}
