/* partition.c - partitions: from their record, and scontrol create, update, delete
 * Updates live as long as the controller or until the next reconfigure, as in the reference. Check first, then assign: a wrong value in
 * the middle of an update changes nothing. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/reserve.h"

/* "NO", "EXCLUSIVE", "YES:4", "FORCE:4"; without a count 4, as the manual says. */
static void share_load(struct core_part *p, const char *text)
{
	const char *count = strchr(text, ':');
	unsigned long long n = 4;
	bool force = !strncasecmp(text, "FORCE", 5), yes = !strncasecmp(text, "YES", 3);
	if (count && str_to_u64(count + 1, 1, 65533, &n) < 0)
		n = 4;
	p->share_max = force || yes ? (uint32_t)n : 1;
	p->share_force = force;
}

void part_load(struct core *c, struct core_part *p, const Pb__PartitionRecord *rec)
{
	if (rec != p->rec) {
		if (p->rec)
			pb__partition_record__free_unpacked(p->rec, NULL);
		p->rec = (Pb__PartitionRecord *)message_copy((const ProtobufCMessage *)rec);
	}
	Pb__PartitionRecord *r = p->rec;
	const char *s = r->state ? r->state : "UP";
	p->tier = r->has_priority_tier ? r->priority_tier : 1;
	p->max_nodes = r->has_max_nodes ? r->max_nodes : UINT32_MAX;
	p->min_nodes = r->has_min_nodes ? r->min_nodes : 0;
	p->max_time_min = r->has_max_time_min ? r->max_time_min : TIME_INFINITE;
	p->default_time_min = r->has_default_time_min ? r->default_time_min : 0;
	p->state = !strcasecmp(s, "DOWN") ? PART_DOWN : !strcasecmp(s, "DRAIN") ? PART_DRAIN : !strcasecmp(s, "INACTIVE") ? PART_INACTIVE : PART_UP;
	p->exclusive = r->exclusive && !strcasecmp(r->exclusive, "NODE");
	p->user_only = r->exclusive && !strcasecmp(r->exclusive, "USER");
	p->topo_only = r->exclusive && !strcasecmp(r->exclusive, "TOPO");
	p->topo = topology_find(c, r->topology);
	p->lln = r->lln;
	p->qos = acct_qos(c, r->qos);
	p->max_node_cpus = r->has_max_cpus_per_node && r->max_cpus_per_node ? r->max_cpus_per_node : UINT32_MAX;
	p->max_socket_cpus = r->has_max_cpus_per_socket && r->max_cpus_per_socket ? r->max_cpus_per_socket : UINT32_MAX;
	share_load(p, r->oversubscribe ? r->oversubscribe : "NO");
	const char *list = r->nodes_full && r->nodes_full[0] ? r->nodes_full : r->nodes;
	bitset_destroy(p->nodes);
	p->nodes = NULL;
	if (list && list[0] && nodes_bitset(c, list, &p->nodes, NULL) < 0)
		fx_log(c, LOG_L_ERROR, "partition %s: its node list \"%s\" names nodes that do not exist; it has none now", r->name, list);
	if (!p->nodes)
		p->nodes = bitset_create(c->node_n);
	r->has_total_cpus = r->has_total_nodes = true;
	r->total_nodes = bitset_count(p->nodes);
	r->total_cpus = 0;
	bitset_for(p->nodes, i)
		r->total_cpus += c->node[i]->cpus;
}

/* --- keys of an update ------------------------------------------------------------------------ */

enum value_kind { V_TEXT, V_NUM, V_TIME, V_YES, V_STATE, V_NODES, V_MEM, V_PART, V_PREEMPT, V_SHARE, V_PER_GPU, V_WEIGHTS };
struct part_key { const char *key; enum value_kind kind; size_t at, has; };
#define TEXT_KEY(key, f) { key, V_TEXT, offsetof(Pb__PartitionRecord, f), 0 }
#define KEY(key, kind, f) { key, kind, offsetof(Pb__PartitionRecord, f), offsetof(Pb__PartitionRecord, has_##f) }
static const struct part_key part_keys[] = {
	TEXT_KEY("AllowAccounts", allow_accounts), TEXT_KEY("DenyAccounts", deny_accounts), TEXT_KEY("AllowGroups", allow_groups),
	TEXT_KEY("AllowQos", allow_qos), TEXT_KEY("DenyQos", deny_qos), 
	{ "JobDefaults", V_PER_GPU, offsetof(Pb__PartitionRecord, job_defaults), 0 },
	{ "TRESBillingWeights", V_WEIGHTS, offsetof(Pb__PartitionRecord, tres_billing_weights), 0 },
	{ "Alternate", V_PART, offsetof(Pb__PartitionRecord, alternate), 0 },
	{ "PreemptMode", V_PREEMPT, offsetof(Pb__PartitionRecord, preempt_mode), 0 },
	{ "OverSubscribe", V_SHARE, offsetof(Pb__PartitionRecord, oversubscribe), 0 },
	{ "Shared", V_SHARE, offsetof(Pb__PartitionRecord, oversubscribe), 0 },
	KEY("DefMemPerCPU", V_MEM, def_mem_per_cpu), KEY("DefMemPerNode", V_MEM, def_mem_per_node), KEY("MaxMemPerCPU", V_MEM, max_mem_per_cpu),
	KEY("MaxMemPerNode", V_MEM, max_mem_per_node), KEY("GraceTime", V_NUM, grace_time_sec), KEY("LLN", V_YES, lln), KEY("ReqResv", V_YES, req_resv),
	KEY("MaxCPUsPerNode", V_NUM, max_cpus_per_node), KEY("MaxCPUsPerSocket", V_NUM, max_cpus_per_socket),
	{ "State", V_STATE, offsetof(Pb__PartitionRecord, state), 0 },
	{ "Nodes", V_NODES, offsetof(Pb__PartitionRecord, nodes), 0 },
	KEY("MaxTime", V_TIME, max_time_min), KEY("DefaultTime", V_TIME, default_time_min), KEY("MinNodes", V_NUM, min_nodes),
	KEY("MaxNodes", V_NUM, max_nodes), KEY("PriorityTier", V_NUM, priority_tier), KEY("PriorityJobFactor", V_NUM, priority_job_factor),
	KEY("OverTimeLimit", V_NUM, over_time_limit_min), KEY("Hidden", V_YES, hidden), KEY("RootOnly", V_YES, root_only),
	KEY("DisableRootJobs", V_YES, disable_root_jobs), KEY("Default", V_YES, is_default),
};

static const struct part_key *key_find(const char *key)
{
	for (size_t i = 0; i < sizeof part_keys / sizeof part_keys[0]; i++)
		if (!strcasecmp(part_keys[i].key, key))
			return &part_keys[i];
	return NULL;
}

static int parse_number(const struct part_key *k, const char *v, uint32_t *ret, struct error *err)
{
	unsigned long long n;
	if (k->kind == V_TIME)
		return timespec_parse_mins(v, ret, err);
	if (!strcasecmp(v, "UNLIMITED") || !strcasecmp(v, "INFINITE")) {
		*ret = UINT32_MAX;
		return 0;
	}
	if (str_to_u64(v, 0, UINT32_MAX, &n) < 0)
		return error_set(err, ESLURM_INVALID_UPDATE, "%s=%s is not a number", k->key, v);
	*ret = (uint32_t)n;
	return 0;
}

/* A word of each list is known, and the number behind its '=' is one. */
static int pairs_check(const char *key, const char *v, const char *const *names, const char *prefix, int code, struct error *err)
{
	char *copy = xstrdup(v), *rest = copy, *word;
	bool good = true;
	while (good && *v && (word = str_next(&rest, ","))) {
		char *equals = strchr(word, '='), *end = NULL;
		if (equals)
			*equals++ = 0;
		bool known = prefix && !strncasecmp(word, prefix, strlen(prefix));
		for (size_t i = 0; names[i]; i++)
			known = known || !strcasecmp(word, names[i]);
		good = known && equals && strtod(equals, &end) >= 0 && end != equals && (!*end || (strchr("KMGTPkmgtp", *end) && !end[1]));
	}
	free(copy);
	return good ? 0 : error_set(err, code, "%s=%s: NAME=NUMBER,... is expected", key, v);
}

/* "NO", "EXCLUSIVE", "YES[:n]", "FORCE[:n]" */
static bool share_good(const char *v)
{
	unsigned long long n;
	size_t len = strcspn(v, ":");
	bool counted = (len == 3 && !strncasecmp(v, "YES", 3)) || (len == 5 && !strncasecmp(v, "FORCE", 5));
	return !strcasecmp(v, "NO") || !strcasecmp(v, "EXCLUSIVE") || (counted && (!v[len] || str_to_u64(v + len + 1, 1, 32767, &n) == 0));
}

/* Texts with a grammar of their own: checked, then kept in capitals. */
static int word_apply(struct core *c, const struct part_key *k, char **text, const char *v, struct error *err)
{
	static const char *const modes[] = { "", "OFF", "CANCEL", "REQUEUE", "SUSPEND", "PRIORITY", NULL };
	static const char *const per_gpu[] = { "DefCpuPerGPU", "DefMemPerGPU", NULL };
	static const char *const weighed[] = { "CPU", "Mem", "Energy", "Node", "Billing", "VMem", "Pages", NULL };
	int r = 0;
	bool known = false;
	switch (k->kind) {
	case V_PART:
		r = v[0] && !part_find(c, v) ? error_set(err, ESLURM_INVALID_PARTITION_NAME, "Alternate=%s: there is no such partition", v) : 0;
		break;
	case V_PREEMPT:
		for (size_t i = 0; modes[i]; i++)
			known = known || !strcasecmp(modes[i], v);
		if (known && !strcasecmp(v, "SUSPEND") && !c->params.gang)
			return error_set(err, ESLURM_INVALID_UPDATE, "PreemptMode=SUSPEND needs PreemptMode=SUSPEND,GANG of the cluster, which resumes the jobs");
		r = known ? 0 : error_set(err, ESLURM_INVALID_UPDATE, "PreemptMode=%s: OFF, CANCEL, REQUEUE, SUSPEND or PRIORITY are possible", v);
		break;
	case V_SHARE:
		r = share_good(v) ? 0 : error_set(err, ESLURM_INVALID_UPDATE, "OverSubscribe=%s: NO, EXCLUSIVE, YES:# and FORCE:# are possible", v);
		break;
	case V_PER_GPU:
		r = pairs_check(k->key, v, per_gpu, NULL, ESLURM_INVALID_JOB_DEFAULTS, err);
		break;
	default:
		r = pairs_check(k->key, v, weighed, "gres/", ESLURM_INVALID_TRES_BILLING_WEIGHTS, err);
		break;
	}
	if (r < 0)
		return r;
	xstr_set(text, v[0] ? v : NULL);
	for (char *s = *text; s && *s && (k->kind == V_PREEMPT || k->kind == V_SHARE); s++)
		*s = (char)(*s >= 'a' && *s <= 'z' ? *s - 32 : *s);
	return 0;
}

/* 0 lifts a limit; of the two defaults the one given last holds. */
static int mem_apply(const struct part_key *k, Pb__PartitionRecord *r, const char *v, struct error *err)
{
	unsigned long long mb;
	if (str_to_u64(v, 0, UINT32_MAX, &mb) < 0)
		return error_set(err, ESLURM_INVALID_UPDATE, "%s=%s: megabytes are expected, or 0 for no limit", k->key, v);
	*(uint64_t *)((char *)r + k->at) = mb;
	*(protobuf_c_boolean *)((char *)r + k->has) = mb != 0;
	if (k->at == offsetof(Pb__PartitionRecord, def_mem_per_cpu))
		r->has_def_mem_per_node = false;
	if (k->at == offsetof(Pb__PartitionRecord, def_mem_per_node))
		r->has_def_mem_per_cpu = false;
	return 0;
}

static int key_apply(struct core *c, Pb__PartitionRecord *r, const char *key, const char *v, struct error *err)
{
	const struct part_key *k = key_find(key);
	v = v ? v : "";
	if (!k)
		return error_set(err, ESLURM_INVALID_UPDATE, "partition key \"%s\" is not known or cannot be changed yet", key);
	char **text = (char **)((char *)r + k->at);
	uint32_t n = 0;
	struct bitset *b = NULL;
	switch (k->kind) {
	case V_STATE:
		if (strcasecmp(v, "UP") && strcasecmp(v, "DOWN") && strcasecmp(v, "DRAIN") && strcasecmp(v, "INACTIVE"))
			return error_set(err, ESLURM_INVALID_UPDATE, "State=%s: UP, DOWN, DRAIN or INACTIVE are possible", v);
		xstr_set(text, v);
		for (char *s = *text; *s; s++)
			*s = (char)(*s >= 'a' && *s <= 'z' ? *s - 32 : *s);
		return 0;
	case V_NODES:
		if (v[0] && nodes_bitset(c, v, &b, err) < 0)
			return err->code;
		xstr_set(text, v);
		if (r->nodes_full && r->nodes_full != protobuf_c_empty_string)
			free(r->nodes_full);
		r->nodes_full = b ? nodes_text(c, b) : NULL;
		bitset_destroy(b);
		return 0;
	case V_YES:
		if (strcasecmp(v, "YES") && strcasecmp(v, "NO"))
			return error_set(err, ESLURM_INVALID_UPDATE, "%s=%s: YES or NO are possible", k->key, v);
		*(protobuf_c_boolean *)((char *)r + k->at) = !strcasecmp(v, "YES");
		*(protobuf_c_boolean *)((char *)r + k->has) = true;
		return 0;
	case V_MEM:
		return mem_apply(k, r, v, err);
	case V_PART:
	case V_PREEMPT:
	case V_SHARE:
	case V_PER_GPU:
	case V_WEIGHTS:
		return word_apply(c, k, text, v, err);
	case V_NUM:
	case V_TIME:
		if (parse_number(k, v, &n, err) < 0)
			return err->code;
		*(uint32_t *)((char *)r + k->at) = n;
		*(protobuf_c_boolean *)((char *)r + k->has) = true;
		return 0;
	default:
		xstr_set(text, v[0] ? v : NULL);
		return 0;
	}
}

/* --- jobs follow ------------------------------------------------------------------------------ */

void job_follow(struct core *c, struct core_job *j)
{
	Pb__JobDesc *d = job_desc(j);
	struct error err = { 0 };
	if (job_reshape(c, j, d, &err) < 0)
		j->limit_reason = REASON_BAD_CONSTRAINTS;
	pb__job_desc__free_unpacked(d, NULL);
	queue_update(c, j);
}

void jobs_follow(struct core *c)
{
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		if (j->state == PB__JOB_STATE__PENDING)
			job_follow(c, j);
	}
	sched_all(c);
}

static int part_create(struct core *c, const char *name, Pb__PartitionRecord *rec, struct error *err)
{
	if (part_find(c, name))
		return error_set(err, ESLURM_INVALID_PARTITION_NAME, "partition \"%s\" exists already", name);
	if (!name[0] || strpbrk(name, ", \t\n"))
		return error_set(err, ESLURM_INVALID_PARTITION_NAME, "\"%s\" cannot be a partition name", name);
	struct core_part *p = xcalloc(1, sizeof *p);
	p->index = c->part_n;
	part_load(c, p, rec);
	c->part = xrealloc(c->part, (c->part_n + 2) * sizeof *c->part);
	c->part[c->part_n++] = p;
	return 0;
}

static int part_remove(struct core *c, struct core_part *p, struct error *err)
{
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		bool lists = j->state == PB__JOB_STATE__PENDING && j->shape->part_n == 1 && !strcmp(j->shape->part_names[0], p->rec->name);
		if ((!job_is_clean(j) && j->part == p->index) || lists)
			return error_set(err, ESLURM_PARTITION_IN_USE, "partition \"%s\" is used by job %u", p->rec->name, j->id);
	}
	uint32_t at = p->index;
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		promise_drop(c, j);
		if (j->part != UINT32_MAX && j->part >= at)
			j->part = j->part == at ? UINT32_MAX : j->part - 1;
	}
	pb__partition_record__free_unpacked(p->rec, NULL);
	bitset_destroy(p->nodes);
	free(p->tres);
	free(p);
	memmove(c->part + at, c->part + at + 1, (c->part_n - at - 1) * sizeof *c->part);
	c->part_n--;
	for (uint32_t i = at; i < c->part_n; i++)
		c->part[i]->index = i;
	shapes_follow_parts(c);
	return 0;
}

static int part_change(struct core *c, const Pb__PartUpdateReq *q, struct error *err)
{
	struct core_part *p = part_find(c, q->name);
	int r = 0;
	if (q->remove)
		return p ? part_remove(c, p, err) : error_set(err, ESLURM_INVALID_PARTITION_NAME, "partition \"%s\" does not exist", q->name);
	if (!p && !q->create)
		return error_set(err, ESLURM_INVALID_PARTITION_NAME, "partition \"%s\" does not exist", q->name);
	Pb__PartitionRecord fresh, *copy;
	pb__partition_record__init(&fresh);
	fresh.name = q->name;
	fresh.state = (char *)"UP";
	copy = (Pb__PartitionRecord *)message_copy(p && !q->create ? (const ProtobufCMessage *)p->rec : (const ProtobufCMessage *)&fresh);
	for (size_t i = 0; r >= 0 && i < q->n_set; i++)
		r = key_apply(c, copy, q->set[i]->key, q->set[i]->value, err);
	if (r >= 0 && q->create)
		r = part_create(c, q->name, copy, err);
	else if (r >= 0) {
		if (copy->is_default)
			for (uint32_t i = 0; i < c->part_n; i++)
				c->part[i]->rec->is_default = false;
		part_load(c, p, copy);
	}
	pb__partition_record__free_unpacked(copy, NULL);
	return r;
}

void part_update(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	if (!ev->by.oper)
		error_set(&err, ESLURM_ACCESS_DENIED, "only operators may change partitions");
	else if (part_change(c, ev->part_update, &err) >= 0) {
		c->config_gen++;
		resv_config(c);
		shape_refresh_all(c);
		jobs_follow(c);
	}
	fx_result(c, ev->token, &err, 0);
}
