/* nodes.c - NodeName, NodeSet and DownNodes lines of slurm.conf become node records */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/internal.h"
#include "model/hostlist.h"

/* --- index by name ---------------------------------------------------------------------------------- */
static uint32_t node_hash(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

static void index_put(struct conf *c, size_t i)
{
	size_t mask = c->node_index_size - 1, at = node_hash(c->node[i]->name) & mask;
	while (c->node_index[at])
		at = (at + 1) & mask;
	c->node_index[at] = (uint32_t)i + 1;
}

static void node_add(struct conf *c, Pb__NodeRecord *n)
{
	c->node = xgrow(c->node, &c->node_cap, c->node_n + 1, sizeof *c->node);
	c->node[c->node_n++] = n;
	if (c->node_n * 2 <= c->node_index_size) {
		index_put(c, c->node_n - 1);
		return;
	}
	free(c->node_index);
	c->node_index_size = c->node_index_size ? c->node_index_size * 4 : 64;
	c->node_index = xcalloc(c->node_index_size, sizeof *c->node_index);
	for (size_t i = 0; i < c->node_n; i++)
		index_put(c, i);
}

long conf_node_index(const struct conf *c, const char *name)
{
	size_t mask = c->node_index_size - 1;
	if (!c->node_index_size)
		return -1;
	for (size_t at = node_hash(name) & mask; c->node_index[at]; at = (at + 1) & mask)
		if (!strcmp(c->node[c->node_index[at] - 1]->name, name))
			return (long)c->node_index[at] - 1;
	return -1;
}

Pb__NodeRecord *conf_node_find(const struct conf *c, const char *name)
{
	long i = conf_node_index(c, name);
	return i < 0 ? NULL : c->node[i];
}

/* --- shape of a node --------------------------------------------------------------------------------- */
struct shape { uint32_t boards, sockets, cores, threads, cpus; };

static uint32_t num_or(const struct conf_line *l, enum conf_key k, uint32_t otherwise)
{
	return conf_line_get(l, k) ? (uint32_t)conf_line_num(l, k) : otherwise;
}

/* Sockets, CoresPerSocket, ThreadsPerCore and CPUs complete each other; CPUs may be cores or threads, else it is reset, as in the reference. */
static int shape_read(const struct conf_line *l, struct shape *s, struct error *err)
{
	uint32_t cpus = num_or(l, CONF_Node_CPUs, num_or(l, CONF_Node_Procs, 0)), sockets = num_or(l, CONF_Node_Sockets, 0);
	*s = (struct shape){ .boards = num_or(l, CONF_Node_Boards, 1), .cores = num_or(l, CONF_Node_CoresPerSocket, 1), .threads = num_or(l, CONF_Node_ThreadsPerCore, 1) };
	if (conf_line_get(l, CONF_Node_SocketsPerBoard)) {
		if (sockets)
			return conf_line_error(l, CONF_Node_Sockets, EINVAL, err, "Sockets and SocketsPerBoard exclude each other");
		sockets = s->boards * num_or(l, CONF_Node_SocketsPerBoard, 1);
	}
	if (!sockets)
		sockets = cpus > s->cores * s->threads ? cpus / (s->cores * s->threads) : 1;
	s->sockets = sockets;
	uint64_t cores = (uint64_t)sockets * s->cores, threads = cores * s->threads;
	if (threads > 65533)
		return conf_line_error(l, CONF_Node_NodeName, ERANGE, err, "node %s has more than 65533 CPUs", conf_line_get(l, CONF_Node_NodeName));
	if (cpus && cpus != cores && cpus != threads && cpus != sockets) {
		log_error("%s:%u: NodeName=%s CPUs=%u match no Sockets, Sockets*CoresPerSocket or Sockets*CoresPerSocket*ThreadsPerCore. Resetting CPUs.",
			  l->file, l->row, conf_line_get(l, CONF_Node_NodeName), cpus);
		cpus = 0;
	}
	s->cpus = cpus ? cpus : (uint32_t)threads;
	return 0;
}

static void opt_u32(const struct conf_line *l, enum conf_key k, uint32_t *ret, protobuf_c_boolean *has)
{
	*has = conf_line_get(l, k) != NULL;
	if (*has)
		*ret = (uint32_t)conf_line_num(l, k);
}

static void opt_u64(const struct conf_line *l, enum conf_key k, uint64_t *ret, protobuf_c_boolean *has)
{
	*has = conf_line_get(l, k) != NULL;
	if (*has)
		*ret = conf_line_num(l, k);
}

#define SET(n, field, v) ((n)->field = (v), (n)->has_##field = 1)

static Pb__NodeRecord *node_create(const struct conf *c, const struct conf_line *l, const struct shape *s, const char *name)
{
	Pb__NodeRecord *n = xcalloc(1, sizeof *n);
	pb__node_record__init(n);
	n->name = xstrdup(name);
	SET(n, cpus, s->cpus);
	SET(n, boards, s->boards);
	SET(n, sockets, s->sockets);
	SET(n, cores, s->cores);
	SET(n, threads, s->threads);
	SET(n, port, (uint32_t)conf_num(c, CONF_SlurmdPort));
	SET(n, real_memory, conf_line_num(l, CONF_Node_RealMemory));
	SET(n, tmp_disk, conf_line_num(l, CONF_Node_TmpDisk));
	SET(n, weight, (uint32_t)conf_line_num(l, CONF_Node_Weight));
	const char *features = conf_line_get(l, CONF_Node_Features);
	n->features = xstrdup_null(features ? features : conf_line_get(l, CONF_Node_Feature));
	n->features_act = xstrdup_null(n->features);
	n->gres = xstrdup_null(conf_line_get(l, CONF_Node_Gres));
	opt_u32(l, CONF_Node_CoreSpecCount, &n->core_spec_count, &n->has_core_spec_count);
	opt_u64(l, CONF_Node_MemSpecLimit, &n->mem_spec_limit, &n->has_mem_spec_limit);
	n->cpu_spec_list = xstrdup_null(conf_line_get(l, CONF_Node_CpuSpecList));
	n->conf_reason = xstrdup_null(conf_line_get(l, CONF_Node_Reason));
	const char *state = conf_line_get(l, CONF_Node_State);
	n->conf_state = xstrdup(state ? state : "UNKNOWN");
	for (char *p = n->conf_state; *p; p++)
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
	n->topology = xstrdup_null(conf_line_get(l, CONF_Node_Topology));
	return n;
}

/* --- one line ---------------------------------------------------------------------------------------- */
/* A list that must have one member a node, or one in all. */
static int names_of(const struct conf_line *l, enum conf_key k, size_t want, struct hostlist *hl, struct error *err)
{
	const char *text = conf_line_get(l, k);
	struct error inner = { 0 };
	if (!text)
		return 0;
	if (hostlist_add(hl, text, &inner))
		return conf_line_error(l, k, EINVAL, err, "%s: %s", conf_row(k)->name, inner.line);
	if (hl->count != want && hl->count != 1)
		return conf_line_error(l, k, EINVAL, err, "%s names %zu hosts for %zu nodes", conf_row(k)->name, hl->count, want);
	return 0;
}

/* "7001", "7001-7004", "[7001-7004,7010]": one for all or one a node. */
static int ports_of(const struct conf_line *l, size_t want, uint32_t **ret, size_t *ret_n, struct error *err)
{
	const char *text = conf_line_get(l, CONF_Node_Port);
	size_t n = 0, cap = 0;
	uint32_t *port = NULL;
	if (!text)
		return 0;
	for (const char *p = text; *p;) {
		char *end;
		p += *p == '[' || *p == ',';
		unsigned long first = strtoul(p, &end, 10), last = first;
		bool bad = end == p;
		if (*end == '-') {
			p = end + 1;
			last = strtoul(p, &end, 10);
			bad |= end == p;
		}
		end += *end == ']';
		if (bad || first < 1 || last > 65535 || last < first || (*end && *end != ',')) {
			free(port);
			return conf_line_error(l, CONF_Node_Port, EINVAL, err, "Port: \"%s\" is neither a port nor a list of ports", text);
		}
		for (; first <= last; first++) {
			port = xgrow(port, &cap, n + 1, sizeof *port);
			port[n++] = (uint32_t)first;
		}
		p = end;
	}
	if (n != want && n != 1) {
		free(port);
		return conf_line_error(l, CONF_Node_Port, EINVAL, err, "Port names %zu ports for %zu nodes", n, want);
	}
	*ret = port;
	*ret_n = n;
	return 0;
}

int conf_node_line(struct conf *c, const struct conf_line *l, struct error *err)
{
	struct hostlist name = HOSTLIST_INIT, host = HOSTLIST_INIT, addr = HOSTLIST_INIT;
	struct error inner = { 0 };
	struct shape shape;
	uint32_t *port = NULL;
	size_t port_n = 0;
	int rc = 0;
	if (hostlist_add(&name, l->value[0], &inner))
		rc = conf_line_error(l, CONF_Node_NodeName, EINVAL, err, "NodeName: %s", inner.line);
	if (!rc)
		rc = shape_read(l, &shape, err);
	if (!rc)
		rc = names_of(l, CONF_Node_NodeHostname, name.count, &host, err);
	if (!rc)
		rc = names_of(l, CONF_Node_NodeAddr, name.count, &addr, err);
	if (!rc)
		rc = ports_of(l, name.count, &port, &port_n, err);
	for (size_t i = 0; !rc && i < name.count; i++) {
		if (conf_node_find(c, name.name[i])) {
			rc = conf_line_error(l, CONF_Node_NodeName, EEXIST, err, "node %s is defined twice", name.name[i]);
			break;
		}
		Pb__NodeRecord *n = node_create(c, l, &shape, name.name[i]);
		n->hostname = xstrdup(host.count ? host.name[host.count > 1 ? i : 0] : n->name);
		n->addr = xstrdup(addr.count ? addr.name[addr.count > 1 ? i : 0] : n->hostname);
		if (port_n)
			n->port = port[port_n > 1 ? i : 0];
		node_add(c, n);
	}
	hostlist_fini(&name);
	hostlist_fini(&host);
	hostlist_fini(&addr);
	free(port);
	return rc;
}

int conf_nodeset_line(struct conf *c, const struct conf_line *l, struct error *err)
{
	struct conf_nodeset s = { l->value[0], conf_line_get(l, CONF_NodeSet_Feature), conf_line_get(l, CONF_NodeSet_Nodes) };
	if (!s.feature && !s.nodes)
		return conf_line_error(l, CONF_NodeSet_NodeSet, EINVAL, err, "NodeSet %s needs Feature or Nodes", s.name);
	if (!strcasecmp(s.name, "ALL"))
		return conf_line_error(l, CONF_NodeSet_NodeSet, EINVAL, err, "NodeSet %s: the name is reserved", s.name);
	for (size_t i = 0; i < c->nodeset_n; i++)
		if (!strcmp(c->nodeset[i].name, s.name))
			return conf_line_error(l, CONF_NodeSet_NodeSet, EEXIST, err, "NodeSet %s is defined twice", s.name);
	c->nodeset = xgrow(c->nodeset, &c->nodeset_cap, c->nodeset_n + 1, sizeof *c->nodeset);
	c->nodeset[c->nodeset_n++] = s;
	return 0;
}

int conf_down_line(struct conf *c, const struct conf_line *l, struct error *err)
{
	struct hostlist hl = HOSTLIST_INIT;
	struct error inner = { 0 };
	int rc = 0;
	const char *state = conf_line_get(l, CONF_Down_State), *reason = conf_line_get(l, CONF_Down_Reason);
	if (hostlist_add(&hl, l->value[0], &inner))
		rc = conf_line_error(l, CONF_Down_DownNodes, EINVAL, err, "DownNodes: %s", inner.line);
	for (size_t i = 0; !rc && i < hl.count; i++) {
		Pb__NodeRecord *n = conf_node_find(c, hl.name[i]);
		if (!n) {
			rc = conf_line_error(l, CONF_Down_DownNodes, EINVAL, err, "DownNodes names node %s, which is not defined", hl.name[i]);
			break;
		}
		xstr_set(&n->conf_state, state ? state : "DOWN");
		xstr_set(&n->conf_reason, reason ? reason : "");
	}
	hostlist_fini(&hl);
	return rc;
}
