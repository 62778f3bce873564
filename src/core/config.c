/* config.c - EV_CONFIG: parameters, nodes and partitions, first and again at a reconfigure
 * Check first, then assign: a configuration that cannot be taken over (it removes a node that runs jobs) changes nothing.
 * Nodes keep their index by position; at a reconfigure everything that holds indexes is remapped by name. */
#include <stdlib.h>

#include "core/reserve.h"
#include "core/change.h"
#include "core/priority.h"
#include "model/hostlist.h"

struct core_part *part_find(const struct core *c, const char *name)
{
	for (uint32_t i = 0; name && i < c->part_n; i++)
		if (!strcmp(c->part[i]->rec->name, name))
			return c->part[i];
	return NULL;
}

struct core_part *part_default(const struct core *c)
{
	for (uint32_t i = 0; i < c->part_n; i++)
		if (c->part[i]->rec->is_default)
			return c->part[i];
	return NULL;
}

/* Texts of the parameters that outlive the configuration they came from. */
static const size_t texts[] = {
	offsetof(struct core_params, cluster), offsetof(struct core_params, gres_types), offsetof(struct core_params, tres_extra), offsetof(struct core_params, licenses),
	offsetof(struct core_params, requeue_exit), offsetof(struct core_params, requeue_exit_hold), offsetof(struct core_params, mcs_groups),
};

static char **text_at(struct core_params *p, size_t i) { return (char **)(void *)((char *)p + texts[i]); }

void params_free(struct core_params *p)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		free(*text_at(p, i));
	free((void *)p->zone.change);
}

static void params_load(struct core *c, const struct core_params *p)
{
	struct core_params old = c->params;
	c->params = *p;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		*text_at(&c->params, i) = *text_at(&c->params, i) ? xstrdup(*text_at(&c->params, i)) : NULL;
	c->params.weight_tres = NULL; /* read by prio_config */
	c->gpu = atom_get(c, "gpu");
	c->params.zone.change = p->zone.n ? xmemdup(p->zone.change, p->zone.n * sizeof *p->zone.change) : NULL;
	params_free(&old);
	license_config(c, p->licenses);
	prio_config(c, p->weight_tres);
	if (!c->configured && p->first_job_id > c->next_id)
		c->next_id = p->first_job_id;
	for (char *list = xstrdup(p->gres_types ? p->gres_types : ""), *at = list, *w; ; ) {
		if (!(w = str_next(&at, ","))) {
			free(list);
			break;
		}
		(void)atom_get(c, str_trim(w));
	}
}

static void sets_create(struct core *c, uint32_t n)
{
	c->gained_n = 0;
	struct bitset **set[] = { &c->up, &c->roomy, &c->idle, &c->promised, &c->scratch, &c->scratch2, &c->gained };
	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
		bitset_destroy(*set[i]);
		*set[i] = bitset_create(n);
	}
}

static void names_create(struct core *c)
{
	struct node_name *e, *tmp;
	HASH_ITER(hh, c->node_by_name, e, tmp) {
		HASH_DEL(c->node_by_name, e);
		free(e);
	}
	for (uint32_t i = 0; i < c->node_n; i++) {
		e = xcalloc(1, sizeof *e);
		e->name = c->node[i]->name;
		e->index = i;
		HASH_ADD_KEYPTR(hh, c->node_by_name, e->name, strlen(e->name), e);
	}
}

int core_node_find(const struct core *c, const char *name)
{
	struct node_name *e;
	if (!name)
		return -1;
	HASH_FIND(hh, c->node_by_name, name, strlen(name), e);
	return e ? (int)e->index : -1;
}

void weight_order(struct core *c)
{
	bool plain = true;
	for (uint32_t i = 1; i < c->node_n; i++)
		plain = plain && c->node[i]->weight == c->node[0]->weight;
	xfree(c->weight_order);
	if (plain)
		return;
	c->weight_order = xmalloc(c->node_n * sizeof *c->weight_order);
	for (uint32_t i = 0; i < c->node_n; i++) { /* stable insertion: few distinct weights, long runs */
		uint32_t k = i;
		for (; k > 0 && c->node[c->weight_order[k - 1]]->weight > c->node[i]->weight; k--)
			c->weight_order[k] = c->weight_order[k - 1];
		c->weight_order[k] = i;
	}
}

/* A node that runs jobs must stay, with at least the shape its jobs were placed on. */
/* What jobs hold is counted by entry (struct alloc): the entries must stay the same ones, whatever text they come from. */
static bool same_gres(const Pb__NodeRecord *a, const Pb__NodeRecord *b)
{
	bool same = str_eq(a->gres, b->gres) && a->n_gres_list == b->n_gres_list;
	for (size_t i = 0; same && i < a->n_gres_list; i++) {
		const Pb__NodeGres *x = a->gres_list[i], *y = b->gres_list[i];
		same = str_eq(x->name, y->name) && str_eq(x->type, y->type) && x->count == y->count && x->first_index == y->first_index && x->count_only == y->count_only && x->has_of_gpu == y->has_of_gpu && x->of_gpu == y->of_gpu;
	}
	return same;
}

static int config_check(struct core *c, const struct core_event *ev, struct error *err)
{
	struct node_name *e, *tmp, *fresh = NULL;
	int r = 0;
	for (size_t i = 0; i < ev->config.nodes; i++) {
		const char *name = ev->config.node[i]->name;
		HASH_FIND(hh, fresh, name, strlen(name), e);
		if (e) {
			r = error_set(err, EINVAL, "node \"%s\" is configured twice", name);
			break;
		}
		e = xcalloc(1, sizeof *e);
		e->name = name;
		e->index = (uint32_t)i;
		HASH_ADD_KEYPTR(hh, fresh, e->name, strlen(name), e);
	}
	for (uint32_t i = 0; !r && i < c->node_n; i++) {
		const struct core_node *n = c->node[i];
		if (!n->held_n)
			continue;
		HASH_FIND(hh, fresh, n->name, strlen(n->name), e);
		const Pb__NodeRecord *rec = e ? ev->config.node[e->index] : NULL;
		if (!rec)
			r = error_set(err, ESLURM_INVALID_NODE_NAME, "node \"%s\" runs jobs and is missing from the new configuration", n->name);
		else if ((rec->has_cpus && rec->cpus != n->cpus) || !same_gres(rec, n->rec))
			r = error_set(err, EINVAL, "node \"%s\" runs jobs: its CPUs and Gres cannot change now", n->name);
	}
	HASH_ITER(hh, fresh, e, tmp) {
		HASH_DEL(fresh, e);
		free(e);
	}
	return r;
}

static struct core_node *node_new(struct core *c, uint32_t index, const Pb__NodeRecord *rec)
{
	struct core_node *n = xcalloc(1, sizeof *n);
	const char *s = rec->conf_state ? rec->conf_state : "UNKNOWN";
	n->index = index;
	n->base = NODE_UNKNOWN;
	node_setup(c, n, rec);
	n->since_ms = n->lost_ms = c->now_ms;
	if (!strncasecmp(s, "DOWN", 4)) {
		n->base = NODE_DOWN;
		n->down_by_admin = true;
	} else if (!strncasecmp(s, "FUTURE", 6))
		n->base = NODE_FUTURE;
	else if (!strncasecmp(s, "DRAIN", 5))
		n->flags |= NODEF_DRAIN;
	if (rec->conf_reason)
		xstr_set(&n->rec->reason, rec->conf_reason);
	return n;
}

/* The old node of that name keeps its life; its configured facts are replaced. */
static void node_carry(struct core *c, struct core_node *n, uint32_t index, const Pb__NodeRecord *rec)
{
	Pb__NodeRecord *old = n->rec;
	uint64_t *used = n->used, mem_used = n->mem_used;
	uint16_t *shares = n->shares;
	uint32_t cpus_used = n->cpus_used, gres_used[GRES_MAX] = { 0 };
	for (uint32_t g = 0; g < n->gres_n; g++)
		gres_used[g] = n->gres[g].used;
	n->rec = NULL;
	n->used = NULL;
	n->shares = NULL;
	node_setup(c, n, rec);
	n->index = index;
	if (n->held_n) {
		free(n->used);
		n->used = used;
		n->shares = shares;
		node_spare_used(n, used);
		n->cpus_used = cpus_used;
		n->mem_used = mem_used;
		for (uint32_t g = 0; g < n->gres_n; g++)
			n->gres[g].used = gres_used[g];
	} else {
		free(used);
		free(shares);
	}
	xstr_set(&n->rec->reason, old->reason);
	xstr_set(&n->rec->reason_user, old->reason_user);
	n->rec->has_reason_time = old->has_reason_time;
	n->rec->reason_time = old->reason_time;
	n->rec->has_reason_uid = old->has_reason_uid;
	n->rec->reason_uid = old->reason_uid;
	xstr_set(&n->rec->arch, old->arch);
	xstr_set(&n->rec->os, old->os);
	xstr_set(&n->rec->version, old->version);
	n->rec->has_boot_time = old->has_boot_time;
	n->rec->boot_time = old->boot_time;
	n->rec->has_slurmd_start_time = old->has_slurmd_start_time;
	n->rec->slurmd_start_time = old->slurmd_start_time;
	pb__node_record__free_unpacked(old, NULL);
}

static void nodes_load(struct core *c, const struct core_event *ev)
{
	struct core_node **old = c->node;
	uint32_t old_n = c->node_n, *map = xcalloc(old_n + 1, sizeof *map);
	c->node = xcalloc(ev->config.nodes + 1, sizeof *c->node);
	for (size_t i = 0; i < ev->config.nodes; i++) {
		const Pb__NodeRecord *rec = ev->config.node[i];
		int was = core_node_find(c, rec->name);
		if (was >= 0) {
			c->node[i] = old[was];
			old[was] = NULL;
			map[was] = (uint32_t)i;
			node_carry(c, c->node[i], (uint32_t)i, rec);
		} else
			c->node[i] = node_new(c, (uint32_t)i, rec);
	}
	c->node_n = (uint32_t)ev->config.nodes;
	for (uint32_t i = 0; i < c->node_n; i++)
		for (size_t k = 0; k < c->node[i]->held_n; k++) {
			struct held *h = &c->node[i]->held[k];
			h->job->alloc->on[h->at].node = i;
		}
	for (uint64_t cur = 0; old_n;) { /* allocations already given back keep their node numbers for display */
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		for (uint32_t k = 0; j->alloc && k < j->alloc->n; k++)
			if (j->alloc->on[k].state == ON_FREE)
				j->alloc->on[k].node = map[j->alloc->on[k].node];
	}
	names_create(c);
	for (uint32_t i = 0; i < old_n; i++)
		node_destroy(old[i]);
	free(old);
	free(map);
}

int nodes_bitset(const struct core *c, const char *list, struct bitset **ret, struct error *err)
{
	struct hostlist hl = HOSTLIST_INIT;
	int r = hostlist_add(&hl, list, err);
	if (r < 0)
		return error_set(err, ESLURM_INVALID_NODE_NAME, "\"%s\" is not a list of node names", list);
	struct bitset *b = bitset_create(c->node_n);
	for (size_t i = 0; i < hl.count && r >= 0; i++) {
		int at = core_node_find(c, hl.name[i]);
		if (!strcasecmp(hl.name[i], "ALL"))
			bitset_fill(b);
		else if (at < 0)
			r = error_set(err, ESLURM_INVALID_NODE_NAME, "node \"%s\" does not exist", hl.name[i]);
		else
			bitset_set(b, (uint32_t)at);
	}
	hostlist_fini(&hl);
	if (r < 0)
		bitset_destroy(b);
	else
		*ret = b;
	return r < 0 ? r : 0;
}

char *nodes_text(const struct core *c, const struct bitset *b)
{
	struct hostlist hl = HOSTLIST_INIT;
	bitset_for(b, i)
		hostlist_push(&hl, c->node[i]->name);
	char *s = hostlist_compact(&hl);
	hostlist_fini(&hl);
	return s;
}

void parts_free(struct core *c)
{
	for (uint32_t i = 0; i < c->part_n; i++) {
		pb__partition_record__free_unpacked(c->part[i]->rec, NULL);
		bitset_destroy(c->part[i]->nodes);
		free(c->part[i]->tres);
		free(c->part[i]->bill);
		free(c->part[i]);
	}
	xfree(c->part);
	c->part_n = 0;
}

static void parts_load(struct core *c, const struct core_event *ev)
{
	parts_free(c);
	c->part = xcalloc(ev->config.parts + 1, sizeof *c->part);
	for (size_t i = 0; i < ev->config.parts; i++) {
		struct core_part *p = xcalloc(1, sizeof *p);
		p->index = c->part_n;
		part_load(c, p, ev->config.part[i]);
		c->part[c->part_n++] = p;
	}
}

/* Jobs remember the partition they run in by index: follow it by name. */
static char **running_parts(struct core *c)
{
	char **name = xcalloc(c->part_n + 1, sizeof *name);
	for (uint32_t i = 0; i < c->part_n; i++)
		name[i] = xstrdup(c->part[i]->rec->name);
	return name;
}

int config_apply(struct core *c, const struct core_event *ev, struct error *err)
{
	int r = config_check(c, ev, err);
	if (r < 0)
		return r;
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		promise_drop(c, j);
	}
	uint32_t old_parts = c->part_n;
	char **name = running_parts(c);
	params_load(c, ev->config.params);
	nodes_load(c, ev);
	sets_create(c, c->node_n);
	weight_order(c);
	topologies_load(c, ev);
	parts_load(c, ev);
	c->cpu_total = 0;
	for (uint32_t i = 0; i < c->node_n; i++)
		c->cpu_total += c->node[i]->cpus;
	shapes_follow_parts(c);
	resv_config(c);
	c->config_gen++;
	c->configured = true;
	for (uint32_t i = 0; i < c->node_n; i++)
		node_refresh(c, c->node[i]);
	life_purge(c);
	shape_refresh_all(c);
	for (uint64_t cur = 0;;) {
		struct core_job *j = (struct core_job *)core_job_next(c, &cur);
		if (!j)
			break;
		struct core_part *p = j->part < old_parts ? part_find(c, name[j->part]) : NULL;
		j->part = p ? p->index : UINT32_MAX;
		if (j->state == PB__JOB_STATE__PENDING && j->limit_reason == REASON_BAD_CONSTRAINTS)
			job_follow(c, j); /* what it named may be there again */
		else if (j->state == PB__JOB_STATE__PENDING)
			queue_update(c, j);
	}
	for (uint32_t i = 0; i < old_parts; i++)
		free(name[i]);
	free(name);
	sched_all(c);
	return 0;
}

/* Up to the next comma outside brackets. */
static size_t item_len(const char *s)
{
	size_t n = 0;
	for (int depth = 0; s[n] && (depth > 0 || s[n] != ','); n++)
		depth += s[n] == '[' ? 1 : s[n] == ']' ? -1 : 0;
	return n;
}

int nodes_moved(const struct core *c, const struct bitset *old, const char *text, struct bitset **ret, struct error *err)
{
	struct bitset *all = *text == '+' || *text == '-' ? bitset_copy(old) : bitset_create(c->node_n), *some = NULL;
	int rc = 0;
	for (char sign = '+'; rc >= 0 && *text;) {
		sign = *text == '+' || *text == '-' ? *text++ : sign;
		size_t n = item_len(text);
		char *one = xstrndup(text, n);
		rc = nodes_bitset(c, one, &some, err);
		free(one);
		text += n + (text[n] == ',');
		if (rc >= 0)
			(sign == '+' ? bitset_or : bitset_andnot)(all, some);
		bitset_destroy(some);
		some = NULL;
	}
	if (rc < 0)
		bitset_destroy(all);
	else
		*ret = all;
	return rc < 0 ? rc : 0;
}
