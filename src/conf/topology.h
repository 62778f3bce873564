/* topology.h - making topology records (private to topology.c and topology_yaml.c) */
#pragma once
#include "conf/internal.h"

Pb__TopologyRecord *topology_add(struct conf *c, const char *name, const char *kind);
Pb__TopologyUnit *topology_unit(Pb__TopologyRecord *t, const char *name, const char *nodes, const char *children, const char *speed);
int topology_sizes(Pb__TopologyRecord *t, const char *text, struct error *err);      /* "30,120" */
int topology_finish(const struct conf *c, Pb__TopologyRecord *t, struct error *err); /* checks; levels, sums, aggregated blocks */
