/* gres.c - Gres= of nodes and the lines of gres.conf become NodeRecord.gres_list
 *
 * Gres= says how many of what a node has; a gres.conf line says which devices those are. Devices of one name are numbered on a node in the order of
 * the lines (first_index). Each element of Gres= takes devices from the lines that fit (same type, or one of both untyped), in order, until
 * its count is met; what no line provides stands in an entry of its own without files. One entry a line, so that Cores and Links keep their meaning. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/internal.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "model/tres.h"

#define GRES_FILES_MAX 1024

struct line {                       /* a line of gres.conf, read */
	const struct conf_line *l;
	const char *name, *type, *cores, *links, *flags;
	struct bitset *nodes;           /* NULL: all */
	struct hostlist file;
	uint64_t count, used;           /* used: on the node at hand */
	uint32_t first;
	bool count_only;
};

/* --- lines --------------------------------------------------------------------------------------------- */
static int count_parse(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGTP";
	char *end;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (!isdigit((unsigned char)*text) || errno || (*end && (!unit || end[1])))
		return -EINVAL;
	for (const char *u = units; unit && u <= unit; u++) {
		if (v > UINT64_MAX / 1024)
			return -ERANGE;
		v *= 1024;
	}
	*ret = v;
	return 0;
}

static bool links_good(const char *s)
{
	for (;;) {
		char *end;
		(void)strtol(s, &end, 10);
		if (end == s || (*end && *end != ','))
			return false;
		if (!*end)
			return true;
		s = end + 1;
	}
}

static int line_nodes(struct conf *c, struct line *g, struct error *err)
{
	const char *text = conf_line_get(g->l, CONF_Gres_NodeName);
	struct hostlist hl = HOSTLIST_INIT;
	struct error inner = { 0 };
	if (!text)
		return 0;
	if (hostlist_add(&hl, text, &inner))
		return conf_line_error(g->l, CONF_Gres_NodeName, EINVAL, err, "NodeName: %s", inner.line);
	g->nodes = bitset_create((uint32_t)c->node_n);
	for (size_t i = 0; i < hl.count; i++) {
		long n = conf_node_index(c, hl.name[i]);
		if (n >= 0)             /* gres.conf may name nodes of other clusters and of the future */
			bitset_set(g->nodes, (uint32_t)n);
	}
	hostlist_fini(&hl);
	return 0;
}

static bool is_shard(const char *name) { return !strcasecmp(name, "shard"); }

static int line_count(struct line *g, struct error *err)
{
	const char *file = conf_line_get(g->l, CONF_Gres_File), *count = conf_line_get(g->l, CONF_Gres_Count);
	struct error inner = { 0 };
	if (file && hostlist_add(&g->file, file, &inner))
		return conf_line_error(g->l, CONF_Gres_File, EINVAL, err, "File: %s", inner.line);
	for (size_t i = 0; i < g->file.count; i++)
		if (*g->file.name[i] != '/')
			return conf_line_error(g->l, CONF_Gres_File, EINVAL, err, "File: \"%s\" is not an absolute path", g->file.name[i]);
	if (g->file.count > GRES_FILES_MAX)
		return conf_line_error(g->l, CONF_Gres_File, ERANGE, err, "File names more than %d devices", GRES_FILES_MAX);
	g->count = g->file.count ? g->file.count : 1;
	if (count && count_parse(count, &g->count))
		return conf_line_error(g->l, CONF_Gres_Count, EINVAL, err, "Count: \"%s\" is not a number", count);
	if (count && g->file.count && g->count != g->file.count && !is_shard(g->name))
		return conf_line_error(g->l, CONF_Gres_Count, EINVAL, err, "Count=%s, but File names %zu devices", count, g->file.count);
	return 0;
}

/* 1: a device line; 0: only AutoDetect. */
static int line_read(struct conf *c, const struct conf_line *l, struct line *g, struct error *err)
{
	*g = (struct line){ .l = l, .name = conf_line_get(l, CONF_Gres_Name), .type = conf_line_get(l, CONF_Gres_Type), .flags = conf_line_get(l, CONF_Gres_Flags) };
	if (!g->name) {
		if (!conf_line_get(l, CONF_Gres_AutoDetect))
			return conf_line_error(l, CONF_Gres_NodeName, EINVAL, err, "Name is missing");
		return 0;
	}
	if (!strcasecmp(g->name, "mps"))
		return conf_line_error(l, CONF_Gres_Name, ESLURM_NOT_SUPPORTED, err, "Name=mps does not work yet: GPUs are given whole or by shards");
	g->cores = conf_line_get(l, CONF_Gres_Cores) ? conf_line_get(l, CONF_Gres_Cores) : conf_line_get(l, CONF_Gres_CPUs);
	g->links = conf_line_get(l, CONF_Gres_Links);
	g->count_only = g->flags && strcasestr(g->flags, "CountOnly");
	if (g->links && !links_good(g->links))
		return conf_line_error(l, CONF_Gres_Links, EINVAL, err, "Links: \"%s\" is not a list of numbers", g->links);
	int rc = line_count(g, err);
	if (!rc)
		rc = line_nodes(c, g, err);
	return rc ? rc : 1;
}

/* --- one node -------------------------------------------------------------------------------------------- */
static bool line_fits(const struct line *g, uint32_t node, const struct gres_req *r)
{
	return (!g->nodes || bitset_has(g->nodes, node)) && !strcasecmp(g->name, r->name) && (!g->type || !*r->type || !strcasecmp(g->type, r->type));
}

static Pb__NodeGres *entry_add(Pb__NodeRecord *n, const char *name, const char *type, uint64_t count, uint64_t first)
{
	Pb__NodeGres *e = xcalloc(1, sizeof *e);
	pb__node_gres__init(e);
	e->name = xstrdup(name);
	e->type = type && *type ? xstrdup(type) : NULL;
	e->count = count;
	e->first_index = (uint32_t)first;
	e->has_first_index = 1;
	n->gres_list = xrealloc(n->gres_list, (n->n_gres_list + 1) * sizeof(Pb__NodeGres *));
	n->gres_list[n->n_gres_list++] = e;
	return e;
}

/* Sockets that hold the cores of a line. */
static int sockets_of(const struct line *g, const Pb__NodeRecord *n, Pb__NodeGres *e, struct error *err)
{
	struct bitset *cores = NULL, *sockets;
	struct error inner = { 0 };
	if (!g->cores)
		return 0;
	if (idset_parse(g->cores, n->sockets * n->cores, &cores, &inner))
		return conf_line_error(g->l, CONF_Gres_Cores, EINVAL, err, "Cores=%s: node %s has cores 0-%u: %s", g->cores, n->name, n->sockets * n->cores - 1, inner.line);
	sockets = bitset_create(n->sockets);
	bitset_for(cores, i)
		bitset_set(sockets, i / n->cores);
	e->cores = idset_format(cores);
	e->sockets = bitset_count(sockets) < n->sockets ? idset_format(sockets) : NULL;
	bitset_destroy(cores);
	bitset_destroy(sockets);
	return 0;
}

static int entry_from_line(struct line *g, Pb__NodeRecord *n, const struct gres_req *r, uint64_t take, struct error *err)
{
	Pb__NodeGres *e = entry_add(n, r->name, *r->type ? r->type : g->type, take, g->first + g->used);
	struct hostlist part = HOSTLIST_INIT;
	for (uint64_t i = 0; i < take && g->file.count; i++)
		hostlist_push(&part, g->file.name[g->used + i]);
	if (part.count)
		e->files = hostlist_compact(&part);
	hostlist_fini(&part);
	e->links = xstrdup_null(g->links);
	e->flags = xstrdup_null(g->flags);
	e->count_only = g->count_only || (!g->file.count && strcasecmp(r->name, "gpu"));
	e->has_count_only = 1;
	g->used += take;
	return sockets_of(g, n, e, err);
}

/* Number the devices of the node's lines, name by name. */
static uint64_t lines_number(struct line *g, size_t lines, uint32_t node, const char *name)
{
	uint64_t next = 0;
	for (size_t i = 0; i < lines; i++) {
		if (strcasecmp(g[i].name, name) || (g[i].nodes && !bitset_has(g[i].nodes, node)))
			continue;
		g[i].first = (uint32_t)next;
		next += g[i].count;
	}
	return next;
}

static bool is_known_type(const struct conf *c, const char *name)
{
	const char *types = conf_str(c, CONF_GresTypes);
	size_t n = strlen(name);
	for (const char *p = types; p && *p;) {
		size_t len = strcspn(p, ",");
		if (len == n && !strncasecmp(p, name, n))
			return true;
		p += len + (p[len] == ',');
	}
	return false;
}

static int node_merge(struct conf *c, struct line *g, size_t lines, uint32_t node, struct error *err)
{
	Pb__NodeRecord *n = c->node[node];
	struct gres_req req[GRES_REQ_MAX];
	struct error inner = { 0 };
	size_t count;
	if (!n->gres)
		return 0;
	if (gres_parse(n->gres, req, GRES_REQ_MAX, &count, &inner))
		return error_set(err, EINVAL, "%s: node %s: Gres: %s", c->path, n->name, inner.line);
	for (size_t i = 0; i < lines; i++)
		g[i].used = 0;
	for (size_t r = 0; r < count; r++) {
		if (!is_known_type(c, req[r].name))
			return error_set(err, ESLURM_INVALID_GRES, "%s: node %s: Gres=%s: \"%s\" is not in GresTypes", c->path, n->name, n->gres, req[r].name);
		if (is_shard(req[r].name))
			continue;               /* shards_merge, when all GPUs are known */
		uint64_t need = req[r].count, total = lines_number(g, lines, node, req[r].name), unfiled = 0;
		for (size_t i = 0; i < lines && need; i++) {
			uint64_t take = line_fits(&g[i], node, &req[r]) ? g[i].count - g[i].used : 0;
			take = take < need ? take : need;
			if (!take)
				continue;
			int rc = entry_from_line(&g[i], n, &req[r], take, err);
			if (rc)
				return rc;
			need -= take;
		}
		if (!need)
			continue;
		for (size_t e = 0; e < n->n_gres_list; e++) /* those without files of the elements before */
			unfiled += !strcasecmp(n->gres_list[e]->name, req[r].name) && n->gres_list[e]->first_index >= total ? n->gres_list[e]->count : 0;
		Pb__NodeGres *e = entry_add(n, req[r].name, req[r].type, need, total + unfiled);
		e->count_only = strcasecmp(req[r].name, "gpu") != 0;
		e->has_count_only = 1;
	}
	return 0;
}

/* --- shards of GPUs -------------------------------------------------------------------------------------- */
struct shared { const char *type; char *file; uint32_t gpu; uint64_t count; };

/* The node's GPUs one by one. */
static size_t gpus_list(const Pb__NodeRecord *n, struct shared *ret, size_t max)
{
	size_t k = 0;
	for (size_t i = 0; i < n->n_gres_list; i++) {
		const Pb__NodeGres *e = n->gres_list[i];
		struct hostlist files = HOSTLIST_INIT;
		if (strcmp(e->name, "gpu") || e->count_only)
			continue;
		if (e->files)
			(void)hostlist_add(&files, e->files, NULL);
		for (uint32_t d = 0; d < e->count && k < max; d++)
			ret[k++] = (struct shared){ e->type, d < files.count ? xstrdup(files.name[d]) : NULL, e->first_index + d, 0 };
		hostlist_fini(&files);
	}
	return k;
}

/* What a line with File gives each GPU it names. */
static int shards_of_line(const struct line *g, const Pb__NodeRecord *n, struct shared *s, size_t gpus, struct error *err)
{
	for (size_t f = 0; f < g->file.count; f++) {
		size_t k = 0;
		while (k < gpus && (!s[k].file || strcmp(s[k].file, g->file.name[f])))
			k++;
		if (k == gpus)
			return conf_line_error(g->l, CONF_Gres_File, EINVAL, err, "File: %s is not the device of a GPU of node %s", g->file.name[f], n->name);
		s[k].count += g->count / g->file.count + (f < g->count % g->file.count);
	}
	return 0;
}

static int shards_spread(struct conf *c, struct line *g, size_t lines, uint32_t node, uint64_t total, struct shared *s, size_t gpus, struct error *err)
{
	uint64_t found = 0, left = total;
	bool files = false;
	for (size_t i = 0; i < lines; i++) {
		if (!is_shard(g[i].name) || (g[i].nodes && !bitset_has(g[i].nodes, node)))
			continue;
		int rc = shards_of_line(&g[i], c->node[node], s, gpus, err);
		if (rc)
			return rc;
		files = files || g[i].file.count;
		found += g[i].count;
	}
	if (found && found != total)
		return error_set(err, ESLURM_INVALID_GRES, "gres.conf: node %s has %llu shards, slurm.conf says %llu", c->node[node]->name, (unsigned long long)found, (unsigned long long)total);
	for (size_t k = 0; k < gpus && !files; k++) { /* evenly; what is over to the last ones */
		s[k].count = left / (gpus - k);
		left -= s[k].count;
	}
	return 0;
}

/* "gpu:h100:4,shard:16" is shown as "gpu:h100:4,shard:h100:16" where all GPUs are of one type. */
static void shards_named(Pb__NodeRecord *n, const struct shared *s, size_t gpus)
{
	bool alike = s[0].type != NULL;
	for (size_t k = 1; k < gpus && alike; k++)
		alike = s[k].type && !strcmp(s[k].type, s[0].type);
	char *at = alike ? strcasestr(n->gres, "shard:") : NULL;
	if (!at || !isdigit((unsigned char)at[6]))
		return;
	char *text = xasprintf("%.*s%s:%s", (int)(at + 6 - n->gres), n->gres, s[0].type, at + 6);
	free(n->gres);
	n->gres = text;
}

/* An entry of shards for each GPU that has some. */
static int shards_merge(struct conf *c, struct line *g, size_t lines, uint32_t node, struct error *err)
{
	Pb__NodeRecord *n = c->node[node];
	struct gres_req req[GRES_REQ_MAX];
	struct shared s[GRES_FILES_MAX];
	size_t count = 0, gpus;
	uint64_t total = 0;
	if (!n->gres || gres_parse(n->gres, req, GRES_REQ_MAX, &count, NULL))
		return 0;
	for (size_t r = 0; r < count; r++)
		total += is_shard(req[r].name) ? req[r].count : 0;
	if (!total)
		return 0;
	if (!(gpus = gpus_list(n, s, GRES_FILES_MAX)))
		return error_set(err, ESLURM_INVALID_GRES, "%s: node %s: Gres=%s: there are no GPUs to be shared", c->path, n->name, n->gres);
	int rc = shards_spread(c, g, lines, node, total, s, gpus, err);
	for (size_t k = 0; k < gpus && !rc; k++)
		if (s[k].count) {
			Pb__NodeGres *e = entry_add(n, "shard", s[k].type, s[k].count, 0);
			e->has_of_gpu = e->has_count_only = e->count_only = true;
			e->of_gpu = s[k].gpu;
		}
	if (!rc && n->n_gres_list > GRES_MAX)
		rc = error_set(err, ESLURM_NOT_SUPPORTED, "%s: node %s: Gres=%s: more than %d entries: each shared GPU is one", c->path, n->name, n->gres, GRES_MAX);
	if (!rc)
		shards_named(n, s, gpus);
	for (size_t k = 0; k < gpus; k++)
		free(s[k].file);
	return rc;
}

static bool is_to_detect(const Pb__NodeGres *e) { return !strcmp(e->name, "gpu") && !e->files && !e->count_only; }

/* Where AutoDetect holds, GPUs without a device become entries of one device each, which slurmd completes. */
static int gpus_split(const struct conf *c, Pb__NodeRecord *n, struct error *err)
{
	const char *how = conf_gres_autodetect(c, n->name);
	Pb__NodeGres **was = n->gres_list;
	size_t count = n->n_gres_list;
	uint64_t entries = 0;
	if (!how || !strcasecmp(how, "off"))
		return 0;
	for (size_t i = 0; i < count; i++)
		entries += is_to_detect(was[i]) ? was[i]->count : 1;
	if (entries > GRES_MAX)
		return error_set(err, ESLURM_NOT_SUPPORTED, "gres.conf: AutoDetect: node %s has more than %d devices; say which with File=", n->name, GRES_MAX);
	n->gres_list = NULL;
	n->n_gres_list = 0;
	for (size_t i = 0; i < count; i++) {
		Pb__NodeGres *e = was[i];
		if (!is_to_detect(e)) {
			n->gres_list = xrealloc(n->gres_list, (n->n_gres_list + 1) * sizeof(Pb__NodeGres *));
			n->gres_list[n->n_gres_list++] = e;
			continue;
		}
		for (uint64_t k = 0; k < e->count; k++) {
			Pb__NodeGres *one = entry_add(n, e->name, e->type, 1, e->first_index + k);
			one->cores = xstrdup_null(e->cores);
			one->sockets = xstrdup_null(e->sockets);
			one->links = xstrdup_null(e->links);
			one->flags = xstrdup_null(e->flags);
			one->detected = one->has_detected = true;
		}
		pb__node_gres__free_unpacked(e, NULL);
	}
	free(was);
	return 0;
}

int conf_gres_merge(struct conf *c, struct error *err)
{
	struct line *g = c->gres_n ? xcalloc(c->gres_n, sizeof *g) : NULL;
	size_t lines = 0;
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < c->gres_n; i++) {
		rc = line_read(c, &c->gres[i], &g[lines], err);
		lines += rc != 0;
	}
	for (uint32_t n = 0; rc >= 0 && n < c->node_n; n++)
		if (!(rc = node_merge(c, g, lines, n, err)) && !(rc = gpus_split(c, c->node[n], err)))
			rc = shards_merge(c, g, lines, n, err);
	for (size_t i = 0; i < lines; i++) {
		bitset_destroy(g[i].nodes);
		hostlist_fini(&g[i].file);
	}
	free(g);
	return rc < 0 ? rc : 0;
}

const char *conf_gres_autodetect(const struct conf *c, const char *node_name)
{
	const char *found = NULL;
	bool own = false;
	for (size_t i = 0; i < c->gres_n; i++) {
		const char *v = conf_line_get(&c->gres[i], CONF_Gres_AutoDetect), *nodes = conf_line_get(&c->gres[i], CONF_Gres_NodeName);
		struct hostlist hl = HOSTLIST_INIT;
		if (!v || (own && !nodes))
			continue;
		bool here = !nodes || (!hostlist_add(&hl, nodes, NULL) && hostlist_find(&hl, node_name) >= 0);
		hostlist_fini(&hl);
		if (here) {
			found = v;
			own = nodes != NULL;
		}
	}
	return found;
}
