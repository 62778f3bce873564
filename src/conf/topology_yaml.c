/* topology_yaml.c - topology.yaml: a list of named topologies, each a tree, of blocks, or flat
 * libyaml reads the text into a document (bounded in depth here by what we look for); unknown keys are refused by name and line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/internal.h"
#include "conf/topology.h"

struct doc { yaml_document_t d; const char *file; struct error *err; };

static yaml_node_t *at(struct doc *x, int i) { return yaml_document_get_node(&x->d, i); }
static const char *scalar(const yaml_node_t *n) { return n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL; }
static int fail(struct doc *x, const yaml_node_t *n, const char *what, const char *word)
{
	return error_set(x->err, EINVAL, "%s:%zu:%zu: %s%s%s", x->file, n ? n->start_mark.line + 1 : 1, n ? n->start_mark.column + 1 : 1, what, word ? " " : "", word ? word : "");
}

/* The value of a key of a mapping; NULL: not there. */
static yaml_node_t *get(struct doc *x, const yaml_node_t *map, const char *key)
{
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
		const char *k = scalar(at(x, p->key));
		if (k && !strcmp(k, key))
			return at(x, p->value);
	}
	return NULL;
}

static bool listed(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *w = list; w; w = strchr(w, ',') ? strchr(w, ',') + 1 : NULL)
		if (!strncmp(w, word, n) && (w[n] == ',' || !w[n]))
			return true;
	return false;
}

static int only(struct doc *x, const yaml_node_t *n, const char *keys)
{
	if (!n || n->type != YAML_MAPPING_NODE)
		return fail(x, n, "expected a mapping with some of", keys);
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
		const char *k = scalar(at(x, p->key));
		if (!k || !listed(keys, k))
			return error_set(x->err, EINVAL, "%s:%zu:%zu: \"%s\" is not one of the keys that may stand here: %s", x->file, n->start_mark.line + 1, n->start_mark.column + 1, k ? k : "?", keys);
	}
	return 0;
}

static bool truth(const yaml_node_t *n)
{
	const char *v = scalar(n);
	return v && (!strcasecmp(v, "true") || !strcasecmp(v, "yes") || !strcasecmp(v, "on"));
}

/* The units of a list: names under `name`, nodes, and switches below under "children". */
static int units_read(struct doc *x, Pb__TopologyRecord *t, const yaml_node_t *list, const char *name)
{
	bool tree = !strcmp(name, "switch");
	if (!list || list->type != YAML_SEQUENCE_NODE)
		return fail(x, list, "expected a list, each item with", name);
	for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++) {
		const yaml_node_t *n = at(x, *i);
		int rc = only(x, n, tree ? "switch,nodes,children" : "block,nodes");
		if (rc)
			return rc;
		const char *id = scalar(get(x, n, name)), *nodes = scalar(get(x, n, "nodes")), *below = tree ? scalar(get(x, n, "children")) : NULL;
		if (!id)
			return fail(x, n, "an item lacks its", name);
		(void)topology_unit(t, id, nodes, below, "0");
	}
	return 0;
}

static int sizes_read(struct doc *x, Pb__TopologyRecord *t, const yaml_node_t *list)
{
	struct str all = STR_INIT;
	if (!list || list->type != YAML_SEQUENCE_NODE)
		return fail(x, list, "block_sizes is a list of numbers", NULL);
	for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++)
		str_add_sep(&all, ",", scalar(at(x, *i)) ? scalar(at(x, *i)) : "?");
	int rc = topology_sizes(t, all.data ? all.data : "", x->err);
	str_fini(&all);
	return rc;
}

static int one_read(struct doc *x, struct conf *c, const yaml_node_t *n)
{
	static const char *const later[] = { "ring", "torus3d" };
	int rc = only(x, n, "topology,cluster_default,tree,block,flat,ring,torus3d");
	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		if (get(x, n, later[i]))
			return fail(x, n, "this kind of topology does not work yet:", later[i]);
	const char *name = scalar(get(x, n, "topology"));
	const yaml_node_t *tree = get(x, n, "tree"), *block = get(x, n, "block"), *flat = get(x, n, "flat");
	if (!name || (tree != NULL) + (block != NULL) + (flat != NULL) != 1)
		return fail(x, n, "a topology has a name (topology:) and one of tree, block, flat", NULL);
	if (conf_topology(c, name))
		return fail(x, n, "there are two topologies of the name", name);
	Pb__TopologyRecord *t = topology_add(c, name, tree ? "tree" : block ? "block" : "flat");
	t->has_cluster_default = true;
	t->cluster_default = truth(get(x, n, "cluster_default"));
	if (tree && !(rc = only(x, tree, "switches")))
		rc = units_read(x, t, get(x, tree, "switches"), "switch");
	if (block && !(rc = only(x, block, "block_sizes,blocks")) && !(rc = sizes_read(x, t, get(x, block, "block_sizes"))))
		rc = units_read(x, t, get(x, block, "blocks"), "block");
	if (flat && flat->type != YAML_SCALAR_NODE)
		rc = fail(x, flat, "options of a flat topology do not work yet; write", "flat: true");
	return rc ? rc : topology_finish(c, t, x->err);
}

int conf_topology_yaml(struct conf *c, const struct conf_text *file, struct error *err)
{
	yaml_parser_t parser;
	struct doc x = { .file = file->name, .err = err };
	int rc = 0;
	if (!yaml_parser_initialize(&parser))
		return error_set(err, ENOMEM, "%s: no memory", file->name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)file->data, file->len);
	if (!yaml_parser_load(&parser, &x.d)) {
		rc = error_set(err, EINVAL, "%s:%zu:%zu: not YAML: %s", file->name, parser.problem_mark.line + 1, parser.problem_mark.column + 1, parser.problem ? parser.problem : "?");
		yaml_parser_delete(&parser);
		return rc;
	}
	const yaml_node_t *root = yaml_document_get_root_node(&x.d);
	if (!root || root->type != YAML_SEQUENCE_NODE)
		rc = fail(&x, root, "expected a list of topologies", NULL);
	for (yaml_node_item_t *i = rc ? NULL : root->data.sequence.items.start; !rc && i < root->data.sequence.items.top; i++)
		rc = one_read(&x, c, at(&x, *i));
	yaml_document_delete(&x.d);
	yaml_parser_delete(&parser);
	return rc;
}
