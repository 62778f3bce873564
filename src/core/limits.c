/* limits.c - what partitions allow: which of its partitions a job may use, and why not the others
 * Limits are applied when something changed (a submission, an update, a configuration), not in each pass: the answer is a mask that is
 * part of the job's shape. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/change.h"
#include "core/reserve.h"

/* Is `word` in the comma list? "ALL", absent and empty lists hold everything. */
static bool names_has(const char *list, const char *word, bool absent)
{
	if (!list || !list[0])
		return absent;
	if (absent && !strcasecmp(list, "ALL"))
		return true;
	for (const char *s = list; *s;) {
		size_t k = strcspn(s, ",");
		if (word && strlen(word) == k && !strncasecmp(s, word, k))
			return true;
		s += k + (s[k] == ',');
	}
	return false;
}

/* Names of groups are as they are written. */
static bool list_has(const char *list, const char *word, bool absent)
{
	if (!list || !list[0] || (absent && !strcasecmp(list, "ALL")))
		return absent;
	for (const char *s = list; word && *s; s += strcspn(s, ","), s += *s == ',')
		if (strlen(word) == strcspn(s, ",") && !strncmp(s, word, strlen(word)))
			return true;
	return false;
}

bool part_group_allowed(const Pb__PartitionRecord *p, const struct core_caller *by)
{
	if (by->uid == 0 || list_has(p->allow_groups, by->group, true))
		return true;
	char name[256];
	for (const char *s = by->groups ? by->groups : ""; *s;) {
		size_t k = strcspn(s, ",");
		if (k && k < sizeof name) {
			memcpy(name, s, k);
			name[k] = 0;
			if (list_has(p->allow_groups, name, false))
				return true;
		}
		s += k + (s[k] == ',');
	}
	return false;
}

/* AllocNodes: the host from which the job was submitted, as its command says it. */
bool part_host_allowed(const Pb__PartitionRecord *p, const Pb__JobDesc *d)
{
	struct hostlist hl = HOSTLIST_INIT;
	bool all = !p->alloc_nodes || !p->alloc_nodes[0];
	bool named = !all && d->alloc_node && hostlist_add(&hl, p->alloc_nodes, NULL) == 0 && hostlist_find(&hl, d->alloc_node) >= 0;
	hostlist_fini(&hl);
	return all || named;
}

static uint32_t time_of(struct core *c, const Pb__JobDesc *d, const struct core_part *p, uint32_t user)
{
	if (d->has_time_limit_min)
		return d->time_limit_min;
	if (p && p->default_time_min)
		return p->default_time_min;
	if (d->has_deadline && d->deadline > now_sec(c)) /* the room until then */
		return (uint32_t)((d->deadline - now_sec(c)) / 60 ? (d->deadline - now_sec(c)) / 60 : 1);
	uint32_t wall = acct_default_minutes(c, user, d);
	if (wall && (!p || wall < p->max_time_min))
		return wall;
	if (c->params.def_time_limit_min)
		return c->params.def_time_limit_min;
	return p ? p->max_time_min : TIME_INFINITE;
}

uint32_t part_reason(const struct core *c, const struct core_part *p, const struct shape *s, const Pb__JobDesc *d, uint32_t time_min)
{
	const Pb__PartitionRecord *r = p->rec;
	uint64_t max_node = r->has_max_mem_per_node ? r->max_mem_per_node : c->params.max_mem_per_node;
	if (!names_has(r->allow_accounts, d->account, true) || names_has(r->deny_accounts, d->account, false))
		return REASON_ACCOUNT_NOT_ALLOWED;
	if (!names_has(r->allow_qos, d->qos, true) || names_has(r->deny_qos, d->qos, false))
		return REASON_QOS_NOT_ALLOWED;
	if (!part_host_allowed(r, d))
		return REASON_PARTITION_CONFIG;
	uint32_t over = acct_qos_flags((struct core *)c, d->qos); /* its own limits instead of these */
	if (time_min > p->max_time_min && !(over & QOSF_PART_TIME_LIMIT))
		return REASON_PARTITION_TIME_LIMIT;
	if ((s->min_nodes > p->max_nodes && !(over & QOSF_PART_MAX_NODES)) || (s->max_nodes < p->min_nodes && !(over & QOSF_PART_MIN_NODES)))
		return REASON_PARTITION_NODE_LIMIT;
	if (max_node && (s->mem_node > max_node || (uint64_t)s->mem_cpu * s->cpus_per_task > max_node))
		return REASON_MAX_MEM_PER_LIMIT;
	return REASON_NONE;
}

int job_reshape(struct core *c, struct core_job *j, const Pb__JobDesc *d, struct error *err)
{
	Pb__JobDesc k = *d;
	struct core_part *part[JOB_PARTS_MAX];
	struct shape *s = NULL;
	uint32_t n = 0, mask = UINT32_MAX;
	int r = submit_partitions(c, d, part, &n, err);
	if (r < 0)
		return r;
	k.has_time_limit_min = true;
	k.time_limit_min = time_of(c, d, part[0], j->user);
	char *resv = k.reservation = resv_key(c, j, &k);
	if ((r = shape_make(c, &k, j->uid, mask, &s, err)) < 0) {
		free(resv);
		return r;
	}
	j->limit_reason = REASON_NONE;
	for (uint32_t i = 0; i < s->part_n; i++) {
		uint32_t reason = s->part[i] ? part_reason(c, s->part[i], s, d, k.time_limit_min) : REASON_PARTITION_DOWN;
		if (!reason)
			continue;
		mask &= ~(1u << i);
		j->limit_reason = (uint8_t)(j->limit_reason ? j->limit_reason : reason);
	}
	uint32_t all = s->part_n >= 32 ? UINT32_MAX : (1u << s->part_n) - 1;
	if (mask & all)
		j->limit_reason = REASON_NONE;
	if (mask != UINT32_MAX) {
		struct shape *limited;
		r = shape_make(c, &k, j->uid, mask, &limited, err);
		shape_unref(c, s);
		if (r < 0) {
			free(resv);
			return r;
		}
		s = limited;
	}
	free(resv);
	queue_remove(c, j);
	if (j->shape)
		shape_unref(c, j->shape);
	acct_uncount(c, j);
	acct_bind(c, j, d);
	j->shape = s;
	j->time_min = k.time_limit_min;
	acct_count(c, j);
	sweep_end_later(c, j);
	return 0;
}
