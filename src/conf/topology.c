/* topology.c - the network: topology.conf (one topology), topology.yaml (several, and then topology.conf is not read)
 * Levels, the nodes of upper switches and aggregated blocks are worked out here, so that whoever reads a record need not. A node that slurm.conf does not
 * name is left out with a word in the log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/internal.h"
#include "conf/topology.h"
#include "model/hostlist.h"

size_t conf_topologies(const struct conf *c, Pb__TopologyRecord *const **ret)
{
	*ret = c->topo;
	return c->topo_n;
}

const Pb__TopologyRecord *conf_topology(const struct conf *c, const char *name)
{
	for (size_t i = 0; name && i < c->topo_n; i++)
		if (!strcmp(c->topo[i]->name, name))
			return c->topo[i];
	return NULL;
}

const Pb__TopologyRecord *conf_topology_default(const struct conf *c)
{
	for (size_t i = 0; i < c->topo_n; i++)
		if (c->topo[i]->cluster_default)
			return c->topo[i];
	return c->topo_n ? c->topo[0] : NULL;
}

Pb__TopologyRecord *topology_add(struct conf *c, const char *name, const char *kind)
{
	Pb__TopologyRecord *t = xcalloc(1, sizeof *t);
	pb__topology_record__init(t);
	t->name = xstrdup(name);
	t->kind = xstrdup(kind);
	c->topo = xgrow(c->topo, &c->topo_cap, c->topo_n + 1, sizeof *c->topo);
	c->topo[c->topo_n++] = t;
	return t;
}

Pb__TopologyUnit *topology_unit(Pb__TopologyRecord *t, const char *name, const char *nodes, const char *children, const char *speed)
{
	Pb__TopologyUnit *u = xcalloc(1, sizeof *u);
	pb__topology_unit__init(u);
	u->name = xstrdup(name);
	u->nodes = xstrdup(nodes ? nodes : "");
	u->children = children && children[0] ? xstrdup(children) : NULL;
	u->link_speed = xstrdup(speed ? speed : "0");
	t->unit = xrealloc(t->unit, (t->n_unit + 1) * sizeof *t->unit);
	t->unit[t->n_unit++] = u;
	return u;
}

static Pb__TopologyUnit *unit_find(const Pb__TopologyRecord *t, const char *name)
{
	for (size_t i = 0; i < t->n_unit; i++)
		if (!strcmp(t->unit[i]->name, name))
			return t->unit[i];
	return NULL;
}

/* The nodes of the cluster among those named, compact and sorted. */
static int nodes_clean(const struct conf *c, Pb__TopologyUnit *u, struct error *err)
{
	struct hostlist hl = HOSTLIST_INIT, known = HOSTLIST_INIT;
	int rc = u->nodes[0] ? hostlist_add(&hl, u->nodes, err) : 0;
	for (size_t i = 0; !rc && i < hl.count; i++)
		if (conf_node_find(c, hl.name[i]))
			hostlist_push(&known, hl.name[i]);
		else
			log_error("topology: %s names node %s, which is not in slurm.conf", u->name, hl.name[i]);
	if (!rc) {
		free(u->nodes);
		hostlist_uniq(&known);
		u->nodes = hostlist_compact(&known);
	}
	hostlist_fini(&hl);
	hostlist_fini(&known);
	return rc;
}

/* Level and nodes of a switch from those below it; depth guards against circles. */
static int switch_level(const Pb__TopologyRecord *t, Pb__TopologyUnit *u, uint32_t depth, struct error *err)
{
	struct hostlist below = HOSTLIST_INIT, nodes = HOSTLIST_INIT;
	int rc = depth > 32 ? error_set(err, EINVAL, "topology %s: switch %s is below itself", t->name, u->name) : 0;
	if (rc || !u->children)
		return rc;
	rc = hostlist_add(&below, u->children, err);
	u->level = 0;
	for (size_t i = 0; !rc && i < below.count; i++) {
		Pb__TopologyUnit *b = unit_find(t, below.name[i]);
		if (!b)
			rc = error_set(err, EINVAL, "topology %s: switch %s has a switch %s below it, which is not defined", t->name, u->name, below.name[i]);
		else if (!(rc = switch_level(t, b, depth + 1, err))) {
			u->level = b->level + 1 > u->level ? b->level + 1 : u->level;
			rc = b->nodes[0] ? hostlist_add(&nodes, b->nodes, err) : 0;
		}
	}
	if (!rc) {
		hostlist_uniq(&nodes);
		free(u->nodes);
		u->nodes = hostlist_compact(&nodes);
	}
	hostlist_fini(&below);
	hostlist_fini(&nodes);
	return rc;
}

static void blocks_join(Pb__TopologyRecord *t, size_t first, size_t n, uint32_t level)
{
	struct hostlist names = HOSTLIST_INIT, nodes = HOSTLIST_INIT;
	for (size_t i = first; i < first + n; i++) {
		hostlist_push(&names, t->unit[i]->name);
		if (t->unit[i]->nodes[0])
			(void)hostlist_add(&nodes, t->unit[i]->nodes, NULL);
	}
	hostlist_uniq(&nodes);
	char *name = hostlist_compact(&names), *list = hostlist_compact(&nodes);
	topology_unit(t, name, list, NULL, NULL)->level = level;
	free(name);
	free(list);
	hostlist_fini(&names);
	hostlist_fini(&nodes);
}

static int blocks_finish(Pb__TopologyRecord *t, struct error *err)
{
	size_t base = t->n_unit;
	if (!t->n_block_sizes)
		return error_set(err, EINVAL, "topology %s: BlockSizes is missing", t->name);
	for (size_t i = 1; i < t->n_block_sizes; i++) {
		uint32_t ratio = t->block_sizes[i] / t->block_sizes[0];
		if (t->block_sizes[i] <= t->block_sizes[i - 1] || t->block_sizes[i] % t->block_sizes[0] || (ratio & (ratio - 1)))
			return error_set(err, EINVAL, "topology %s: block size %u is not %u times a power of two, and larger than %u", t->name, t->block_sizes[i], t->block_sizes[0], t->block_sizes[i - 1]);
		for (size_t first = 0; first + ratio <= base; first += ratio)
			blocks_join(t, first, ratio, (uint32_t)i);
	}
	for (size_t i = 0; i < base; i++)
		if (hostlist_count(t->unit[i]->nodes[0] ? t->unit[i]->nodes : "", NULL) < (long)t->block_sizes[0])
			return error_set(err, EINVAL, "topology %s: block %s has fewer nodes than the smallest of BlockSizes, %u", t->name, t->unit[i]->name, t->block_sizes[0]);
	return 0;
}

int topology_finish(const struct conf *c, Pb__TopologyRecord *t, struct error *err)
{
	int rc = 0;
	bool block = !strcmp(t->kind, "block");
	for (size_t i = 0; !rc && i < t->n_unit; i++) {
		if (unit_find(t, t->unit[i]->name) != t->unit[i])
			return error_set(err, EINVAL, "topology %s: %s is defined twice", t->name, t->unit[i]->name);
		if (!t->unit[i]->nodes[0] && !t->unit[i]->children)
			return error_set(err, EINVAL, "topology %s: %s has neither nodes nor switches", t->name, t->unit[i]->name);
		if (t->unit[i]->nodes[0] && t->unit[i]->children)
			return error_set(err, EINVAL, "topology %s: %s has nodes and switches", t->name, t->unit[i]->name);
		rc = nodes_clean(c, t->unit[i], err);
	}
	for (size_t i = 0; !rc && !block && i < t->n_unit; i++)
		rc = switch_level(t, t->unit[i], 0, err);
	return rc || !block ? rc : blocks_finish(t, err);
}

/* --- topology.conf ------------------------------------------------------------------------------ */

int topology_sizes(Pb__TopologyRecord *t, const char *text, struct error *err)
{
	char *copy = xstrdup(text), *at = copy, *w;
	int rc = 0;
	while (!rc && (w = str_next(&at, ","))) {
		unsigned long long v;
		if (str_to_u64(w, 1, 1u << 24, &v) < 0) {
			rc = error_set(err, EINVAL, "\"%s\" is not a size of blocks", w);
			break;
		}
		t->block_sizes = xrealloc(t->block_sizes, (t->n_block_sizes + 1) * sizeof *t->block_sizes);
		t->block_sizes[t->n_block_sizes++] = (uint32_t)v;
	}
	free(copy);
	return rc;
}

static int line_take(Pb__TopologyRecord *t, const struct conf_line *l, struct error *err)
{
	bool block = !strcmp(t->kind, "block");
	const char *name = conf_line_get(l, block ? CONF_Topo_BlockName : CONF_Topo_SwitchName), *sizes = conf_line_get(l, CONF_Topo_BlockSizes);
	if (block && sizes)
		return topology_sizes(t, sizes, err);
	if (!name)
		return error_set(err, EINVAL, "%s:%u:%u: a line of topology.conf for topology/%s begins with %s", l->file, l->row, l->col, t->kind, block ? "BlockName or BlockSizes" : "SwitchName");
	const char *speed = conf_line_get(l, CONF_Topo_LinkSpeed);
	(void)topology_unit(t, name, conf_line_get(l, CONF_Topo_Nodes), conf_line_get(l, CONF_Topo_Switches), speed ? speed : "1");
	return 0;
}

int conf_topology_lines(struct conf *c, struct error *err)
{
	const char *plugin = conf_str(c, CONF_TopologyPlugin);
	const char *kind = plugin && !strcasecmp(plugin, "topology/tree") ? "tree" : plugin && !strcasecmp(plugin, "topology/block") ? "block" : NULL;
	int rc = 0;
	if (!kind)
		return 0;
	Pb__TopologyRecord *t = topology_add(c, "default", kind);
	t->has_cluster_default = t->cluster_default = true;
	for (size_t i = 0; !rc && i < c->topo_line_n; i++)
		rc = line_take(t, &c->topo_line[i], err);
	if (!rc && !t->n_unit)
		rc = error_set(err, EINVAL, "TopologyPlugin=%s, and topology.conf defines no %s", plugin, !strcmp(kind, "tree") ? "switch" : "block");
	return rc ? rc : topology_finish(c, t, err);
}

/* --- where a node is ------------------------------------------------------------------------------ */

static bool unit_has(const Pb__TopologyUnit *u, const char *node)
{
	struct hostlist hl = HOSTLIST_INIT;
	bool has = u->nodes[0] && !hostlist_add(&hl, u->nodes, NULL) && hostlist_find(&hl, node) >= 0;
	hostlist_fini(&hl);
	return has;
}

void conf_topology_addr(const struct conf *c, const char *node, struct str *addr, struct str *pattern)
{
	const Pb__TopologyRecord *t = conf_topology_default(c);
	bool block = t && !strcmp(t->kind, "block");
	uint32_t top = 0;
	for (size_t i = 0; t && !block && i < t->n_unit; i++)
		top = t->unit[i]->level > top ? t->unit[i]->level : top;
	for (uint32_t level = top + 1; t && level--;) {
		struct hostlist at = HOSTLIST_INIT;
		for (size_t i = 0; i < t->n_unit; i++)
			if (t->unit[i]->level == level && unit_has(t->unit[i], node))
				(void)hostlist_add(&at, t->unit[i]->name, NULL);
		if (at.count) {
			char *names = hostlist_compact(&at);
			str_addf(addr, "%s.", names);
			str_addf(pattern, "%s.", block ? "block" : "switch");
			free(names);
		}
		hostlist_fini(&at);
	}
	str_add(addr, node);
	str_add(pattern, "node");
}
