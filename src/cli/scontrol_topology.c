/* scontrol_topology.c - "scontrol show topology [TOPOLOGY] [unit=NAME] [node=NAME]" and "scontrol show topoconf" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/scontrol.h"
#include "model/hostlist.h"
#include "proto/node.pb-c.h"

struct ask { const char *topology, *unit, *nodes; };

/* Does the unit have all nodes of the list? */
static bool has_nodes(const Pb__TopologyUnit *u, const char *list)
{
	struct hostlist want = HOSTLIST_INIT, have = HOSTLIST_INIT;
	bool all = !hostlist_add(&want, list, NULL) && u->nodes[0] && !hostlist_add(&have, u->nodes, NULL);
	for (size_t i = 0; all && i < want.count; i++)
		all = hostlist_find(&have, want.name[i]) >= 0;
	hostlist_fini(&want);
	hostlist_fini(&have);
	return all;
}

static const Pb__TopologyRecord *topology_named(const Pb__TopologyListRsp *rsp, const char *name)
{
	const Pb__TopologyRecord *first = NULL;
	for (size_t i = 0; i < rsp->n_topology; i++) {
		const Pb__TopologyRecord *t = rsp->topology[i];
		if (name ? !strcmp(t->name, name) : t->cluster_default)
			return t;
		first = first ? first : t;
	}
	return name ? NULL : first;
}

static void unit_print(struct str *out, const Pb__TopologyRecord *t, size_t i)
{
	const Pb__TopologyUnit *u = t->unit[i];
	if (!strcmp(t->kind, "tree")) {
		str_addf(out, "SwitchName=%s Level=%u LinkSpeed=%s Nodes=%s", u->name, u->level, u->link_speed ? u->link_speed : "0", u->nodes);
		if (u->children)
			str_addf(out, " Switches=%s", u->children);
	} else
		str_addf(out, "%s=%s BlockIndex=%zu Nodes=%s BlockSize=%u", u->level ? "AggregatedBlock" : "BlockName", u->name, i, u->nodes, t->block_sizes[u->level]);
	str_add_c(out, '\n');
}

static size_t units_print(struct str *out, const Pb__TopologyRecord *t, const struct ask *a)
{
	size_t shown = 0;
	for (size_t i = 0; i < t->n_unit; i++) {
		if ((a->unit && strcmp(t->unit[i]->name, a->unit)) || (a->nodes && !has_nodes(t->unit[i], a->nodes)))
			continue;
		unit_print(out, t, i);
		shown++;
	}
	return shown;
}

static void conf_print(struct str *out, const Pb__TopologyRecord *t)
{
	bool tree = !strcmp(t->kind, "tree"), block = !strcmp(t->kind, "block");
	str_addf(out, "- topology: %s\n  cluster_default: %s\n  block:%s\n", t->name, t->cluster_default ? "true" : "false", block ? "" : " {}");
	for (size_t i = 0; block && i < t->n_block_sizes; i++)
		str_addf(out, "%s    - %u\n", i ? "" : "    block_sizes:\n", t->block_sizes[i]);
	for (size_t i = 0; block && i < t->n_unit && !t->unit[i]->level; i++)
		str_addf(out, "%s    - block: %s\n      nodes: %s\n", i ? "" : "    blocks:\n", t->unit[i]->name, t->unit[i]->nodes);
	str_addf(out, "  flat: %s\n  ring: {}\n  torus3d: {}\n  tree:%s\n", tree || block ? "{}" : "true", tree ? "" : " {}");
	for (size_t i = 0; tree && i < t->n_unit; i++) {
		const Pb__TopologyUnit *u = t->unit[i];
		str_addf(out, "%s    - switch: %s\n      children:%s%s\n      nodes:%s%s\n", i ? "" : "    switches:\n", u->name, u->children ? " " : "", u->children ? u->children : "",
			 u->children ? "" : " ", u->children ? "" : u->nodes);
	}
}

static Pb__TopologyListRsp *fetch(struct scontrol *s)
{
	struct error err = { 0 };
	Pb__Empty req = PB__EMPTY__INIT;
	ProtobufCMessage *msg;
	int rc = client_call(scontrol_client(s), RPC_TOPOLOGY_LIST, &req.base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_topo error: %s", error_text(rc));
		return NULL;
	}
	return (Pb__TopologyListRsp *)msg;
}

static bool ask_read(struct scontrol *s, int argc, char **argv, struct ask *a)
{
	static const char *const unit_words[] = { "unit", "switch", "block", "ring", "SwitchName", "BlockName" };
	for (int i = 0; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		bool unit = false;
		for (size_t k = 0; equals && k < sizeof unit_words / sizeof *unit_words; k++)
			unit = unit || (strlen(unit_words[k]) == (size_t)(equals - argv[i]) && !strncasecmp(argv[i], unit_words[k], strlen(unit_words[k])));
		if (unit)
			a->unit = equals + 1;
		else if (equals && !strncasecmp(argv[i], "node=", 5))
			a->nodes = equals + 1;
		else if (!equals && !a->topology)
			a->topology = argv[i];
		else {
			scontrol_fail(s, "invalid argument:%s for keyword:show topology", argv[i]);
			return false;
		}
	}
	return true;
}

void scontrol_topology(struct scontrol *s, int argc, char **argv)
{
	struct ask a = { 0 };
	Pb__TopologyListRsp *rsp = ask_read(s, argc, argv, &a) ? fetch(s) : NULL;
	if (!rsp)
		return;
	const Pb__TopologyRecord *t = topology_named(rsp, a.topology);
	struct str out = STR_INIT;
	if (!t && a.topology && (t = topology_named(rsp, NULL))) { /* a unit of the default one, as older versions had it */
		a.unit = a.topology;
		t = units_print(&out, t, &a) ? t : NULL;
		if (!t)
			fprintf(stderr, "slurm_load_topo error: Requested topology configuration is not available\n"); /* the reference exits with 0 */
	} else if (!t && a.topology)
		fprintf(stderr, "slurm_load_topo error: Requested topology configuration is not available\n");
	else if (t && !units_print(&out, t, &a) && (a.unit || a.nodes))
		scontrol_fail(s, "topology %s has no unit %s%s", t->name, a.unit ? a.unit : "with all of ", a.unit ? "" : a.nodes);
	out_flush(&out);
	str_fini(&out);
	protobuf_c_message_free_unpacked(&rsp->base, NULL);
}

void scontrol_topoconf(struct scontrol *s, const char *id)
{
	Pb__TopologyListRsp *rsp = fetch(s);
	struct str out = STR_INIT;
	if (!rsp)
		return;
	str_add(&out, "%YAML 1.1\n---\n");
	for (size_t i = 0; i < rsp->n_topology; i++)
		conf_print(&out, rsp->topology[i]);
	if (!rsp->n_topology)
		str_add(&out, "[]\n");
	str_add(&out, "...\n");
	out_flush(&out);
	str_fini(&out);
	protobuf_c_message_free_unpacked(&rsp->base, NULL);
}
