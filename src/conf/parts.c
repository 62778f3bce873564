/* parts.c - PartitionName lines of slurm.conf become partition records; Nodes= may name nodes, NodeSets and ALL */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/str.h"
#include "conf/internal.h"
#include "model/hostlist.h"

#define SET(n, field, v) ((n)->field = (v), (n)->has_##field = 1)

/* --- nodes -------------------------------------------------------------------------------------------- */
static bool has_feature(const char *features, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = features; p && *p;) {
		size_t len = strcspn(p, ",");
		if (len == n && !strncmp(p, word, n))
			return true;
		p += len + (p[len] == ',');
	}
	return false;
}

static int nodes_mark(struct conf *c, const struct conf_line *l, const char *text, int depth, struct bitset *set, struct error *err);

static int nodeset_mark(struct conf *c, const struct conf_line *l, const struct conf_nodeset *s, int depth, struct bitset *set, struct error *err)
{
	for (uint32_t i = 0; s->feature && i < c->node_n; i++)
		if (has_feature(c->node[i]->features, s->feature))
			bitset_set(set, i);
	return s->nodes ? nodes_mark(c, l, s->nodes, depth + 1, set, err) : 0;
}

static int name_mark(struct conf *c, const struct conf_line *l, const char *name, int depth, struct bitset *set, struct error *err)
{
	if (!strcasecmp(name, "ALL")) {
		bitset_fill(set);
		return 0;
	}
	for (size_t i = 0; i < c->nodeset_n; i++)
		if (!strcmp(c->nodeset[i].name, name))
			return nodeset_mark(c, l, &c->nodeset[i], depth, set, err);
	long i = conf_node_index(c, name);
	if (i < 0)
		return conf_line_error(l, CONF_Part_Nodes, EINVAL, err, "partition %s names node %s, which is not defined", l->value[0], name);
	bitset_set(set, (uint32_t)i);
	return 0;
}

static int nodes_mark(struct conf *c, const struct conf_line *l, const char *text, int depth, struct bitset *set, struct error *err)
{
	struct hostlist hl = HOSTLIST_INIT;
	struct error inner = { 0 };
	int rc = 0;
	if (depth > 8)
		return conf_line_error(l, CONF_Part_Nodes, ELOOP, err, "partition %s: NodeSets name each other", l->value[0]);
	if (hostlist_add(&hl, text, &inner))
		return conf_line_error(l, CONF_Part_Nodes, EINVAL, err, "partition %s: Nodes: %s", l->value[0], inner.line);
	for (size_t i = 0; !rc && i < hl.count; i++)
		rc = name_mark(c, l, hl.name[i], depth, set, err);
	hostlist_fini(&hl);
	return rc;
}

int conf_part_nodes(struct conf *c, const struct conf_line *l, const char *text, Pb__PartitionRecord *p, struct error *err)
{
	struct bitset *set = bitset_create((uint32_t)c->node_n);
	int rc = text ? nodes_mark(c, l, text, 0, set, err) : 0;
	uint64_t cpus = 0;
	if (!rc) {
		struct hostlist hl = HOSTLIST_INIT;
		bitset_for(set, i) {
			hostlist_push(&hl, c->node[i]->name);
			cpus += c->node[i]->cpus;
		}
		p->nodes_full = hostlist_compact(&hl);
		SET(p, total_nodes, (uint32_t)hl.count);
		SET(p, total_cpus, (uint32_t)cpus);
		hostlist_fini(&hl);
	}
	bitset_destroy(set);
	return rc;
}

/* --- keys ----------------------------------------------------------------------------------------------- */
static uint32_t u32(uint64_t v) { return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v; }

static void set_upper(char **dst, const char *src)
{
	xstr_set(dst, src);
	for (char *p = *dst; p && *p; p++)
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
}

/* "ALL" of an allow list means no list. */
static char *allow_list(const struct conf_line *l, enum conf_key k)
{
	const char *v = conf_line_get(l, k);
	return v && strcasecmp(v, "ALL") ? xstrdup(v) : NULL;
}

static int oversubscribe_read(const struct conf_line *l, Pb__PartitionRecord *p, struct error *err)
{
	const char *v = conf_line_get(l, CONF_Part_OverSubscribe), *old = conf_line_get(l, CONF_Part_Shared);
	enum conf_key k = v || !old ? CONF_Part_OverSubscribe : CONF_Part_Shared;
	v = v ? v : old ? old : "NO";
	size_t n = strcspn(v, ":");
	unsigned long long count = 4;
	bool yes = n == 3 && !strncasecmp(v, "YES", 3), force = n == 5 && !strncasecmp(v, "FORCE", 5), no = !strcasecmp(v, "NO"), excl = !strcasecmp(v, "EXCLUSIVE");
	if (!(yes || force || no || excl) || (v[n] == ':' && str_to_u64(v + n + 1, 1, 65533, &count)))
		return conf_line_error(l, k, EINVAL, err, "OverSubscribe: \"%s\" is none of NO, EXCLUSIVE, YES, YES:count, FORCE, FORCE:count", v);
	if (excl) {
		set_upper(&p->exclusive, "NODE");
		p->oversubscribe = xstrdup("EXCLUSIVE");
	} else {
		p->oversubscribe = no ? xstrdup("NO") : xasprintf("%s:%llu", yes ? "YES" : "FORCE", count);
	}
	return 0;
}

static void memory_read(const struct conf_line *l, Pb__PartitionRecord *p)
{
	static const struct { enum conf_key key; size_t value, has; } rows[] = {
#define ROW(key, f) { key, offsetof(Pb__PartitionRecord, f), offsetof(Pb__PartitionRecord, has_##f) }
		ROW(CONF_Part_DefMemPerCPU, def_mem_per_cpu), ROW(CONF_Part_DefMemPerNode, def_mem_per_node),
		ROW(CONF_Part_MaxMemPerCPU, max_mem_per_cpu), ROW(CONF_Part_MaxMemPerNode, max_mem_per_node),
#undef ROW
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t v = conf_line_num(l, rows[i].key);
		if (!conf_line_get(l, rows[i].key))
			continue;
		*(uint64_t *)((char *)p + rows[i].value) = v == UINT64_MAX ? 0 : v;
		*(protobuf_c_boolean *)((char *)p + rows[i].has) = 1;
	}
	const char *cpu = conf_line_get(l, CONF_Part_DefCpuPerGPU), *mem = conf_line_get(l, CONF_Part_DefMemPerGPU);
	if (cpu || mem)
		p->job_defaults = xasprintf("%s%s%s%s%s", cpu ? "DefCpuPerGPU=" : "", cpu ? cpu : "", cpu && mem ? "," : "", mem ? "DefMemPerGPU=" : "", mem ? mem : "");
}

static void words_read(const struct conf_line *l, Pb__PartitionRecord *p)
{
	const char *v = conf_line_get(l, CONF_Part_State);
	set_upper(&p->state, v ? v : "UP");
	p->allow_accounts = allow_list(l, CONF_Part_AllowAccounts);
	p->allow_groups = allow_list(l, CONF_Part_AllowGroups);
	p->allow_qos = allow_list(l, CONF_Part_AllowQos);
	p->alloc_nodes = allow_list(l, CONF_Part_AllocNodes);
	p->deny_accounts = xstrdup_null(conf_line_get(l, CONF_Part_DenyAccounts));
	p->deny_qos = xstrdup_null(conf_line_get(l, CONF_Part_DenyQos));
	p->alternate = xstrdup_null(conf_line_get(l, CONF_Part_Alternate));
	p->qos = xstrdup_null(conf_line_get(l, CONF_Part_QOS));
	p->tres_billing_weights = xstrdup_null(conf_line_get(l, CONF_Part_TRESBillingWeights));
	p->topology = xstrdup_null(conf_line_get(l, CONF_Part_Topology));
	p->cpu_bind = xstrdup_null(conf_line_get(l, CONF_Part_CpuBind));
	p->select_type_parameters = xstrdup_null(conf_line_get(l, CONF_Part_SelectTypeParameters));
	if ((v = conf_line_get(l, CONF_Part_PreemptMode)))
		set_upper(&p->preempt_mode, v);
	v = conf_line_get(l, CONF_Part_Exclusive);
	if (v)
		set_upper(&p->exclusive, !strcasecmp(v, "YES") ? "NODE" : v);
	else if (conf_line_bool(l, CONF_Part_ExclusiveUser))
		set_upper(&p->exclusive, "USER");
	else if (conf_line_bool(l, CONF_Part_ExclusiveTopo))
		set_upper(&p->exclusive, "TOPO");
}

static void numbers_read(const struct conf *c, const struct conf_line *l, Pb__PartitionRecord *p)
{
	SET(p, is_default, conf_line_bool(l, CONF_Part_Default));
	SET(p, hidden, conf_line_bool(l, CONF_Part_Hidden));
	SET(p, root_only, conf_line_bool(l, CONF_Part_RootOnly));
	SET(p, disable_root_jobs, conf_line_get(l, CONF_Part_DisableRootJobs) ? conf_line_bool(l, CONF_Part_DisableRootJobs) : conf_bool(c, CONF_DisableRootJobs));
	SET(p, lln, conf_line_bool(l, CONF_Part_LLN));
	SET(p, req_resv, conf_line_bool(l, CONF_Part_ReqResv));
	SET(p, power_down_on_idle, conf_line_bool(l, CONF_Part_PowerDownOnIdle));
	SET(p, max_time_min, u32(conf_line_num(l, CONF_Part_MaxTime)));
	SET(p, min_nodes, u32(conf_line_num(l, CONF_Part_MinNodes)));
	SET(p, max_nodes, u32(conf_line_num(l, CONF_Part_MaxNodes)));
	SET(p, max_cpus_per_node, u32(conf_line_num(l, CONF_Part_MaxCPUsPerNode)));
	SET(p, max_cpus_per_socket, u32(conf_line_num(l, CONF_Part_MaxCPUsPerSocket)));
	SET(p, grace_time_sec, u32(conf_line_num(l, CONF_Part_GraceTime)));
	const char *both = conf_line_get(l, CONF_Part_Priority);
	uint32_t prio = both ? u32(conf_line_num(l, CONF_Part_Priority)) : 1;
	SET(p, priority_tier, conf_line_get(l, CONF_Part_PriorityTier) ? u32(conf_line_num(l, CONF_Part_PriorityTier)) : prio);
	SET(p, priority_job_factor, conf_line_get(l, CONF_Part_PriorityJobFactor) ? u32(conf_line_num(l, CONF_Part_PriorityJobFactor)) : prio);
	if (conf_line_get(l, CONF_Part_DefaultTime))
		SET(p, default_time_min, u32(conf_line_num(l, CONF_Part_DefaultTime)));
	if (conf_line_get(l, CONF_Part_OverTimeLimit))
		SET(p, over_time_limit_min, u32(conf_line_num(l, CONF_Part_OverTimeLimit)));
	if (conf_line_get(l, CONF_Part_SuspendTime))
		SET(p, suspend_time, u32(conf_line_num(l, CONF_Part_SuspendTime)));
	if (conf_line_get(l, CONF_Part_SuspendTimeout))
		SET(p, suspend_timeout, u32(conf_line_num(l, CONF_Part_SuspendTimeout)));
	if (conf_line_get(l, CONF_Part_ResumeTimeout))
		SET(p, resume_timeout, u32(conf_line_num(l, CONF_Part_ResumeTimeout)));
}

/* The last partition with Default=YES is the default one. */
static void default_move(struct conf *c, const Pb__PartitionRecord *p)
{
	for (size_t i = 0; p->is_default && i < c->part_n; i++)
		if (c->part[i] != p)
			c->part[i]->is_default = 0;
}

int conf_part_line(struct conf *c, const struct conf_line *l, struct error *err)
{
	const char *rest = l->value[0], *nodes = conf_line_get(l, CONF_Part_Nodes);
	while (*rest) {
		size_t n = strcspn(rest, ",");
		Pb__PartitionRecord *p = xcalloc(1, sizeof *p);
		pb__partition_record__init(p);
		p->name = xstrndup(rest, n);
		c->part = xgrow(c->part, &c->part_cap, c->part_n + 1, sizeof *c->part);
		c->part[c->part_n++] = p;
		for (size_t i = 0; i + 1 < c->part_n; i++)
			if (!strcmp(c->part[i]->name, p->name))
				return conf_line_error(l, CONF_Part_PartitionName, EEXIST, err, "partition %s is defined twice", p->name);
		p->nodes = xstrdup_null(nodes);
		words_read(l, p);
		numbers_read(c, l, p);
		memory_read(l, p);
		int rc = oversubscribe_read(l, p, err);
		if (!rc)
			rc = conf_part_nodes(c, l, nodes, p, err);
		if (rc)
			return rc;
		default_move(c, p);
		rest += n + (rest[n] == ',');
	}
	return 0;
}
