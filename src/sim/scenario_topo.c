/* scenario_topo.c - the network of a scenario: "topology NAME tree|block [default] [sizes=2,4]", then its switches or blocks */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/hostlist.h"
#include "sim/play.h"

void do_topology(struct play *p)
{
	Pb__TopologyRecord *t = xcalloc(1, sizeof *t);
	pb__topology_record__init(t);
	t->name = xstrdup(word(p, 1));
	t->kind = xstrdup(word(p, 2));
	t->has_cluster_default = t->cluster_default = has(p, "default");
	char *sizes = xstrdup(opt(p, "sizes") ? opt(p, "sizes") : ""), *at = sizes, *w;
	t->block_sizes = xcalloc(16, sizeof *t->block_sizes);
	while ((w = str_next(&at, ",")) && w[0] && t->n_block_sizes < 16)
		t->block_sizes[t->n_block_sizes++] = num(p, w);
	free(sizes);
	p->w.topo_conf = xrealloc(p->w.topo_conf, (p->w.topos + 1) * sizeof *p->w.topo_conf);
	p->w.topo_conf[p->w.topos++] = t;
}

/* "switch NAME nodes=|switches=", "block NAME nodes=": of the topology named last */
void do_unit(struct play *p)
{
	if (!p->w.topos)
		fail(p, "no topology yet");
	Pb__TopologyRecord *t = p->w.topo_conf[p->w.topos - 1];
	Pb__TopologyUnit *u = xcalloc(1, sizeof *u);
	struct hostlist below = HOSTLIST_INIT;
	struct str nodes = STR_INIT;
	pb__topology_unit__init(u);
	u->name = xstrdup(word(p, 1));
	str_add(&nodes, opt(p, "nodes") ? opt(p, "nodes") : "");
	if (opt(p, "switches") && hostlist_add(&below, opt(p, "switches"), NULL) < 0)
		fail(p, "\"%s\" is not a list of switches", opt(p, "switches"));
	for (size_t i = 0; i < below.count; i++)
		for (size_t k = 0; k < t->n_unit; k++)
			if (!strcmp(t->unit[k]->name, below.name[i])) {
				str_add_sep(&nodes, ",", t->unit[k]->nodes);
				u->level = t->unit[k]->level + 1 > u->level ? t->unit[k]->level + 1 : u->level;
			}
	hostlist_fini(&below);
	u->nodes = str_take(&nodes);
	t->unit = xrealloc(t->unit, (t->n_unit + 1) * sizeof *t->unit);
	t->unit[t->n_unit++] = u;
}
