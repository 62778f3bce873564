/* conf.h - slurm.conf and its friends: grammar, typed schema, one immutable object
 *
 * tables/config.def has a row for every key of every file: key, file, type, default, range, reconfigurable, status, doc. The parser, the checks
 * (file, line, column, nearest key), the defaults, `scontrol show config` and the manual come from the rows. A loaded configuration
 * never changes; reload builds and checks a new one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "proto/controller.pb-c.h"
#include "proto/node.pb-c.h"

struct conf;
enum conf_key {
#define CONF_KEY(sym, ...) CONF_##sym,
#include "tables/config.def"
#undef CONF_KEY
	CONF_KEYS
};

/* Reads `path` (NULL: $SLURM_CONF, else /etc/slurm/slurm.conf) with its includes, and beside it gres.conf and cgroup.conf where they exist.
 * err names file, line, column and what would be right. Warnings (obsolete keys) are logged. */
int conf_load(const char *path, struct conf **ret, struct error *err);
/* The same from memory, for configless and fuzzing: names and contents of files; the first is slurm.conf. */
struct conf_text { const char *name; const char *data; size_t len; };
int conf_load_text(const struct conf_text *file, size_t n, struct conf **ret, struct error *err);
/* slurmdbd.conf. */
int conf_load_dbd(const char *path, struct conf **ret, struct error *err);
/* Commands: only what they need to reach the controller; skips node and partition lines (fast). */
int conf_load_client(const char *path, struct conf **ret, struct error *err);
void conf_destroy(struct conf *c);

const char *conf_path(const struct conf *c);               /* of slurm.conf */
/* plugstack.conf: what PlugStackConfig names, else the one beside slurm.conf (slurm.conf(5)). false: there is none that can be read. */
bool conf_plugstack(const struct conf *c, char *buf, size_t size);
/* Values by key; the accessor must match the row's type (asserted). */
const char *conf_str(const struct conf *c, enum conf_key k);   /* NULL: unset */
uint64_t conf_num(const struct conf *c, enum conf_key k);      /* UINT64_MAX: INFINITE / unset without default */
bool conf_bool(const struct conf *c, enum conf_key k);
bool conf_is_set(const struct conf *c, enum conf_key k);
/* A word of a comma list such as SchedulerParameters: conf_has(c, k, "bf_continue"), conf_opt(c, k, "requeue_delay") -> "0". */
bool conf_has(const struct conf *c, enum conf_key k, const char *word);
const char *conf_opt(const struct conf *c, enum conf_key k, const char *word, char *buf, size_t size);
/* Repeated keys (SlurmctldHost, Prolog, Epilog, ...). */
size_t conf_list(const struct conf *c, enum conf_key k, const char *const **ret);
/* %n %h etc. of log and spool paths. */
char *conf_expand(const struct conf *c, const char *path, const char *node_name);

size_t conf_nodes(const struct conf *c, Pb__NodeRecord *const **ret);        /* host lists expanded, gres.conf merged */
size_t conf_parts(const struct conf *c, Pb__PartitionRecord *const **ret);   /* nodes_full filled */
const Pb__NodeRecord *conf_node(const struct conf *c, const char *name);
/* AutoDetect of gres.conf that holds for a node: "nvml", "off", ...; NULL: not given. */
const char *conf_gres_autodetect(const struct conf *c, const char *node_name);
/* Where the controller is: i-th SlurmctldHost. false past the end. Address falls back to the name. */
bool conf_controller(const struct conf *c, size_t i, const char **ret_host, const char **ret_addr, uint16_t *ret_port);
/* Rows of `scontrol show config` in its order: key and value as the reference prints them. */
struct conf_show_row { char *key, *value; bool cgroup; };
/* What only slurmctld knows of these rows. */
struct conf_show_live { uint64_t boot_time; uint32_t next_job_id; const char *level, *debug_flags; };   /* level, debug_flags: instead of those configured */
size_t conf_show_rows(const struct conf *c, const struct conf_show_live *live, struct conf_show_row **ret);
void conf_show_free(struct conf_show_row *rows, size_t n);
/* The files as read, to hand to configless nodes; hash of all. */
size_t conf_files(const struct conf *c, const struct conf_text **ret);
/* job_container.conf for one node. Texts belong to the conf; `base` NULL: no private mounts there. */
struct conf_namespace { const char *base, *dirs; bool auto_base, shared; };
bool conf_namespace_on(const struct conf *c);                       /* NamespaceType=namespace/tmpfs, or its old name */
void conf_namespace(const struct conf *c, const char *node, struct conf_namespace *ret);
/* The network: of topology.yaml, or topology.conf (one, named "default"). A flat one alone is none. */
struct str;
size_t conf_topologies(const struct conf *c, Pb__TopologyRecord *const **ret);
const Pb__TopologyRecord *conf_topology(const struct conf *c, const char *name);   /* NULL: none of that name */
const Pb__TopologyRecord *conf_topology_default(const struct conf *c);
/* SLURM_TOPOLOGY_ADDR and its pattern for a node, in the default topology: "top.s1.node-1", "switch.switch.node". Appended. */
void conf_topology_addr(const struct conf *c, const char *node, struct str *addr, struct str *pattern);
uint64_t conf_hash(const struct conf *c);
