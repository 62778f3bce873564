/* partition.c - partitions: from their record, and scontrol create, update, delete
 * Updates live as long as the controller or until the next reconfigure, as in the reference. Check first, then assign: a wrong value in
 * the middle of an update changes nothing. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/change.h"
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
	billing_load(c, p, r->tres_billing_weights);
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

enum value_kind { V_TEXT, V_ALLOW, V_NUM, V_NODE_NUM, V_TIME, V_YES, V_STATE, V_NODES, V_MEM, V_PART, V_PREEMPT, V_SHARE, V_PER_GPU, V_WEIGHTS, V_QOS, V_QOSES,
	V_EXCLUSIVE, V_EXCLUSIVE_USER, V_EXCLUSIVE_TOPO, V_PRIORITY, V_TOPOLOGY, V_LATER };
struct part_key { const char *key; enum value_kind kind; size_t at, has; uint32_t max; };
static const struct part_key part_keys[] = {
#define HAS(f) offsetof(Pb__PartitionRecord, has_##f)
#define NONE(f) 0
#define HAS_NUM HAS
#define HAS_NODE_NUM HAS
#define HAS_TIME HAS
#define HAS_YES HAS
#define HAS_MEM HAS
#define HAS_PRIORITY HAS
#define HAS_TEXT NONE
#define HAS_ALLOW NONE
#define HAS_STATE NONE
#define HAS_NODES NONE
#define HAS_PART NONE
#define HAS_PREEMPT NONE
#define HAS_SHARE NONE
#define HAS_PER_GPU NONE
#define HAS_WEIGHTS NONE
#define HAS_QOS NONE
#define HAS_QOSES NONE
#define HAS_EXCLUSIVE NONE
#define HAS_EXCLUSIVE_USER NONE
#define HAS_EXCLUSIVE_TOPO NONE
#define HAS_TOPOLOGY NONE
#define HAS_LATER NONE
#define UPDATE_PART(key, kind, field, max) { key, V_##kind, offsetof(Pb__PartitionRecord, field), HAS_##kind(field), max },
#include "tables/update_part.def"
#undef UPDATE_PART
};

static const struct part_key *key_find(const char *key)
{
	for (size_t i = 0; i < sizeof part_keys / sizeof part_keys[0]; i++)
		if (!strcasecmp(part_keys[i].key, key))
			return part_keys[i].kind == V_LATER ? NULL : &part_keys[i];
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
	if (str_to_u64(v, 0, k->max ? k->max : UINT32_MAX, &n) < 0)
		return error_set(err, ESLURM_INVALID_UPDATE, "%s=%s is not a number from 0 to %u", k->key, v, k->max ? k->max : UINT32_MAX);
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

static void upper(char *s)
{
	for (; s && *s; s++)
		*s = (char)(*s >= 'a' && *s <= 'z' ? *s - 32 : *s);
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
	case V_TOPOLOGY:
		r = v[0] && !topology_known(c, v) ? error_set(err, ESLURM_TOPOLOGY_UNAVAILABLE, "Topology=%s: there is no such topology", v) : 0;
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
	if (k->kind == V_PREEMPT)
		upper(*text);
	return 0;
}

/* "yes" is "YES:4"; EXCLUSIVE is of another field. */
static int share_apply(Pb__PartitionRecord *r, const char *v, struct error *err)
{
	if (!share_good(v))
		return error_set(err, ESLURM_INVALID_UPDATE, "OverSubscribe=%s: NO, EXCLUSIVE, YES:# and FORCE:# are possible", v);
	if (!strcasecmp(v, "EXCLUSIVE")) {
		xstr_set(&r->exclusive, "NODE");
		xstr_set(&r->oversubscribe, "NO");
		return 0;
	}
	char *text = xasprintf("%s%s", v, strcasecmp(v, "NO") && !strchr(v, ':') ? ":4" : "");
	xstr_set(&r->oversubscribe, text);
	upper(r->oversubscribe);
	free(text);
	return 0;
}

static int exclusive_apply(const struct part_key *k, Pb__PartitionRecord *r, const char *v, struct error *err)
{
	static const char *const words[] = { "NO", "NODE", "USER", "TOPO" };
	bool yes = !strcasecmp(v, "YES"), known = yes || !strcasecmp(v, "NO");
	if (k->kind == V_EXCLUSIVE) {
		v = !strcasecmp(v, "NONE") ? "NO" : yes ? "NODE" : v;
		for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
			known = known || !strcasecmp(v, words[i]);
	} else {
		v = !yes ? "NO" : k->kind == V_EXCLUSIVE_USER ? "USER" : "TOPO";
	}
	if (!known)
		return error_set(err, ESLURM_INVALID_UPDATE, "%s=%s is not known", k->key, v);
	xstr_set(&r->exclusive, v);
	upper(r->exclusive);
	return 0;
}

/* All of a list are QOS of the cluster, where there are any tables of them. "" and ALL: no list. */
static int qos_apply(struct core *c, const struct part_key *k, char **text, const char *v, struct error *err)
{
	char *copy = xstrdup(v), *rest = copy, *one;
	bool none = !v[0] || (k->kind == V_QOSES && !strcasecmp(v, "ALL"));
	int r = 0;
	while (r >= 0 && !none && (one = str_next(&rest, ",")))
		if (!acct_qos_known(c, one))
			r = error_set(err, ESLURM_INVALID_QOS, "%s=%s: there is no QOS \"%s\"", k->key, v, one);
	free(copy);
	if (r >= 0)
		xstr_set(text, none ? NULL : v);
	return r;
}

/* Other nodes, or "+a,-b": more, and less. */
static int nodes_apply(struct core *c, Pb__PartitionRecord *r, const char *v, struct error *err)
{
	struct bitset *old = NULL, *now = NULL;
	if (nodes_bitset(c, r->nodes_full && r->nodes_full[0] ? r->nodes_full : r->nodes ? r->nodes : "", &old, NULL) < 0)
		old = bitset_create(c->node_n);
	int rc = nodes_moved(c, old, v, &now, err);
	if (rc >= 0) {
		char *text = nodes_text(c, now);
		xstr_set(&r->nodes, text);
		xstr_set(&r->nodes_full, text);
		free(text);
	}
	bitset_destroy(old);
	bitset_destroy(now);
	return rc;
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
	switch (k->kind) {
	case V_STATE:
		if (strcasecmp(v, "UP") && strcasecmp(v, "DOWN") && strcasecmp(v, "DRAIN") && strcasecmp(v, "INACTIVE"))
			return error_set(err, ESLURM_INVALID_UPDATE, "State=%s: UP, DOWN, DRAIN or INACTIVE are possible", v);
		xstr_set(text, v);
		upper(*text);
		return 0;
	case V_NODES: return nodes_apply(c, r, v, err);
	case V_YES:
		if (strcasecmp(v, "YES") && strcasecmp(v, "NO"))
			return error_set(err, ESLURM_INVALID_UPDATE, "%s=%s: YES or NO are possible", k->key, v);
		*(protobuf_c_boolean *)((char *)r + k->at) = !strcasecmp(v, "YES");
		*(protobuf_c_boolean *)((char *)r + k->has) = true;
		return 0;
	case V_MEM: return mem_apply(k, r, v, err);
	case V_SHARE: return share_apply(r, v, err);
	case V_QOS:
	case V_QOSES: return qos_apply(c, k, text, v, err);
	case V_EXCLUSIVE:
	case V_EXCLUSIVE_USER:
	case V_EXCLUSIVE_TOPO: return exclusive_apply(k, r, v, err);
	case V_PART:
	case V_PREEMPT:
	case V_TOPOLOGY:
	case V_PER_GPU:
	case V_WEIGHTS: return word_apply(c, k, text, v, err);
	case V_NUM:
	case V_NODE_NUM:
	case V_PRIORITY:
	case V_TIME:
		if (parse_number(k, v, &n, err) < 0)
			return err->code;
		*(uint32_t *)((char *)r + k->at) = n;
		*(protobuf_c_boolean *)((char *)r + k->has) = true;
		if (k->kind == V_PRIORITY) {
			r->priority_job_factor = n;
			r->has_priority_job_factor = true;
		}
		return 0;
	default:
		xstr_set(text, v[0] && (k->kind != V_ALLOW || strcasecmp(v, "ALL")) ? v : NULL);
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
	free(p->bill);
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
	fresh.has_min_nodes = true;
	fresh.min_nodes = 1;
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
