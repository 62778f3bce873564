/* internal.h - the inside of struct conf, for the files of this folder
 * Lifetime: everything hangs on the conf object and is freed by conf_destroy; nothing changes after a conf_load* has returned. */
#pragma once
#include "conf/conf.h"
#include "conf/rows.h"
#include "conf/scan.h"

#define CONF_FILES_MAX 1024      /* files read in all, with includes */
#define CONF_DEPTH_MAX 16        /* Include within Include */

struct conf_value { char *text; uint64_t num; bool set; char **list; size_t list_n, list_cap; };

/* Values of one NodeName, PartitionName, ... line, by row; texts belong to the conf's string list. */
#define LINE_KEYS 48
struct conf_line { enum conf_section section; const char *value[LINE_KEYS]; const char *file; uint32_t row, col, at[LINE_KEYS]; };

struct conf_controller { char *host, *addr; };
struct conf_gres_line { struct conf_line line; };
struct conf_nodeset { const char *name, *feature, *nodes; };

struct conf {
	char *path;                  /* of slurm.conf (or slurmdbd.conf) */
	char *dir;
	bool in_memory, client;
	struct conf_value value[CONF_KEYS];
	struct conf_text *file;      /* as read; the name is relative to dir */
	size_t file_n, file_cap;
	char **string;               /* kept texts of lines */
	size_t string_n, string_cap;
	struct conf_controller *controller;
	size_t controller_n, controller_cap;
	struct conf_line node_default, part_default;
	struct conf_line *later;     /* lines that wait for all nodes: PartitionName, DownNodes */
	size_t later_n, later_cap;
	struct conf_nodeset *nodeset;
	size_t nodeset_n, nodeset_cap;
	Pb__NodeRecord **node;
	size_t node_n, node_cap;
	uint32_t *node_index;        /* open addressing by name: index + 1 */
	size_t node_index_size;
	Pb__PartitionRecord **part;
	size_t part_n, part_cap;
	struct conf_line *gres;      /* lines of gres.conf */
	size_t gres_n, gres_cap;
	struct conf_line *jobc;      /* lines of job_container.conf */
	size_t jobc_n, jobc_cap;
	struct conf_line *topo_line; /* lines of topology.conf */
	size_t topo_line_n, topo_line_cap;
	Pb__TopologyRecord **topo;
	size_t topo_n, topo_cap;
	uint64_t hash;
};

/* First key of a section of lines, so that conf_line.value[k - first] is its value. */
enum conf_key conf_section_first(enum conf_section s);
const char *conf_line_get(const struct conf_line *l, enum conf_key k);         /* NULL: not given */
uint64_t conf_line_num(const struct conf_line *l, enum conf_key k);            /* default of the row; UINT64_MAX: none */
bool conf_line_bool(const struct conf_line *l, enum conf_key k);
/* "file:line:col: " + text: for faults found later than the scan. */
int conf_line_error(const struct conf_line *l, enum conf_key k, int code, struct error *err, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
const char *conf_keep(struct conf *c, const char *text);                       /* a copy that lives as long as c */

int conf_node_line(struct conf *c, const struct conf_line *l, struct error *err);   /* nodes.c */
int conf_nodeset_line(struct conf *c, const struct conf_line *l, struct error *err);
int conf_down_line(struct conf *c, const struct conf_line *l, struct error *err);
int conf_part_line(struct conf *c, const struct conf_line *l, struct error *err);   /* parts.c */
int conf_part_nodes(struct conf *c, const struct conf_line *l, const char *text, Pb__PartitionRecord *p, struct error *err);
int conf_gres_merge(struct conf *c, struct error *err);                             /* gres.c */
int conf_topology_lines(struct conf *c, struct error *err);                         /* topology.c: topology.conf has been read */
int conf_topology_yaml(struct conf *c, const struct conf_text *file, struct error *err); /* topology_yaml.c */
long conf_node_index(const struct conf *c, const char *name);                     /* -1: none */
Pb__NodeRecord *conf_node_find(const struct conf *c, const char *name);
