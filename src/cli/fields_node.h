/* fields_node.h - the columns of sinfo (rows: tables/fields_node.def) and the lines they are printed from
 * A line is a group of nodes of a partition that agree in every field asked for. */
#pragma once
#include "cli/nodeview.h"
#include "cli/table.h"
#include "model/hostlist.h"

enum { G_NONE, G_PART, G_NODE, G_STATE, G_RANGE, G_SPAN };   /* kept in struct field's flags, shifted */
#define FIELD_GROUP_SHIFT 8
#define FIELD_GROUP(f) ((f)->flags >> FIELD_GROUP_SHIFT)
enum node_value { NV_CPUS, NV_MEMORY, NV_DISK, NV_WEIGHT, NV_SOCKETS, NV_CORES, NV_THREADS, NV_LOAD, NV_FREE_MEM, NV_ALLOC_MEM, NV_COUNT };

struct sinfo_line {
	uint64_t key_hash;
	char *key;
	uint32_t part_index;
	struct slice part;               /* encoded PartitionRecord */
	struct slice node;               /* encoded NodeRecord of the first; p NULL: no nodes */
	struct { uint64_t min, max; bool set; } value[NV_COUNT];
	uint64_t n_nodes, n_alloc, n_idle, n_other;
	struct node_cpus cpus;
	struct hostlist names;
};
extern const struct field node_fields[];
extern const size_t node_fields_n;
/* Takes one more node into the line. Its name must outlive the call only. */
void sinfo_line_add(struct sinfo_line *l, const struct msgview *node, struct slice bytes);
/* The reply the lines point into is about to be freed. */
void sinfo_views_forget(void);
const struct msgview *sinfo_line_part(const struct sinfo_line *l);
const struct msgview *sinfo_line_node(const struct sinfo_line *l);
