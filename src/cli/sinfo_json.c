/* sinfo_json.c - sinfo's lines as JSON or YAML; the members of a line are few, so they are written one by one */
#include "cli/json.h"
#include "cli/sinfo_json.h"
#include "model/states.h"
#include "model/timespec.h"

static void min_max(struct json *j, const char *key, const struct sinfo_line *l, enum node_value v)
{
	json_open(j, key, '{');
	json_u64(j, "minimum", l->value[v].min);
	json_u64(j, "maximum", l->value[v].max);
	json_close(j);
}

static void counts(struct json *j, uint64_t alloc, uint64_t idle, uint64_t other, uint64_t total)
{
	json_u64(j, "allocated", alloc);
	json_u64(j, "idle", idle);
	json_u64(j, "other", other);
	json_u64(j, "total", total);
}

static void nodes_member(struct json *j, const struct sinfo_line *l)
{
	json_open(j, "nodes", '{');
	counts(j, l->n_alloc, l->n_idle, l->n_other, l->n_nodes);
	json_open(j, "hostnames", '[');
	json_close(j);
	json_open(j, "addresses", '[');
	json_close(j);
	json_open(j, "nodes", '[');
	for (size_t i = 0; i < l->names.count; i++)
		json_text(j, NULL, l->names.name[i]);
	json_close(j);
	json_close(j);
}

static void cpus_member(struct json *j, const struct sinfo_line *l)
{
	uint64_t max = msgview_num(sinfo_line_part(l), PB_PartitionRecord_max_cpus_per_node, TIME_INFINITE);
	json_open(j, "cpus", '{');
	counts(j, l->cpus.alloc, l->cpus.idle, l->cpus.other, l->cpus.total);
	json_u64(j, "minimum", l->value[NV_CPUS].min);
	json_u64(j, "maximum", l->value[NV_CPUS].max);
	min_max(j, "load", l, NV_LOAD);
	json_open(j, "per_node", '{');
	json_num(j, "max", max < TIME_INFINITE, max >= TIME_INFINITE, max);
	json_close(j);
	json_close(j);
}

static void memory_member(struct json *j, const struct sinfo_line *l)
{
	json_open(j, "memory", '{');
	json_u64(j, "minimum", l->value[NV_MEMORY].min);
	json_u64(j, "maximum", l->value[NV_MEMORY].max);
	json_open(j, "free", '{');
	json_num(j, "minimum", l->value[NV_FREE_MEM].set, false, l->value[NV_FREE_MEM].min);
	json_num(j, "maximum", l->value[NV_FREE_MEM].set, false, l->value[NV_FREE_MEM].max);
	json_close(j);
	json_u64(j, "allocated", l->value[NV_ALLOC_MEM].min);
	json_close(j);
}

static void texts(struct json *j, const struct sinfo_line *l)
{
	const struct msgview *m = sinfo_line_node(l);
	struct str text = STR_INIT;
	bool why = msgview_text(m, PB_NodeRecord_reason).n;
	json_open(j, "features", '{');
	json_str(j, "total", msgview_text(m, PB_NodeRecord_features));
	json_str(j, "active", msgview_text(m, msgview_has(m, PB_NodeRecord_features_act) ? PB_NodeRecord_features_act : PB_NodeRecord_features));
	json_close(j);
	json_open(j, "gres", '{');
	json_str(j, "total", msgview_text(m, PB_NodeRecord_gres));
	if (msgview_has(m, PB_NodeRecord_gres_used) || msgview_has(m, PB_NodeRecord_gres_list))
		put_gres_used(&text, m);
	json_text(j, "used", text.data);
	json_close(j);
	json_text(j, "cluster", "");
	json_str(j, "comment", msgview_text(m, PB_NodeRecord_comment));
	json_str(j, "extra", msgview_text(m, PB_NodeRecord_extra));
	json_open(j, "reason", '{');
	json_str(j, "description", msgview_text(m, PB_NodeRecord_reason));
	json_u64(j, "time", why ? msgview_num(m, PB_NodeRecord_reason_time, 0) : 0);
	json_close(j);
	json_str(j, "reservation", msgview_text(m, PB_NodeRecord_reservation));
	str_reset(&text);
	if (why)
		put_user(&text, msgview_text(m, PB_NodeRecord_reason_user), msgview_num(m, PB_NodeRecord_reason_uid, 0));
	json_text(j, "reason_set_by_user", text.data);
	json_open(j, "resource_spec", '{');
	json_str(j, "cpus", msgview_text(m, PB_NodeRecord_cpu_spec_list));
	json_u64(j, "memory", msgview_num(m, PB_NodeRecord_mem_spec_limit, 0));
	json_close(j);
	str_fini(&text);
}

static void line_item(struct json *j, const struct sinfo_line *l)
{
	size_t n;
	const struct json_row *rows = json_part_rows(&n);
	json_open(j, NULL, '{');
	json_u64(j, "port", msgview_num(sinfo_line_node(l), PB_NodeRecord_port, 6818));
	json_open(j, "node", '{');
	if (l->node.p)
		json_node_state(j, "state", sinfo_line_node(l));
	json_close(j);
	nodes_member(j, l);
	cpus_member(j, l);
	min_max(j, "sockets", l, NV_SOCKETS);
	min_max(j, "cores", l, NV_CORES);
	min_max(j, "threads", l, NV_THREADS);
	min_max(j, "disk", l, NV_DISK);
	memory_member(j, l);
	min_max(j, "weight", l, NV_WEIGHT);
	texts(j, l);
	struct json_program *part = json_compile(j, "partition", rows, n, json_plain_source);
	json_run(part, j, (void *)sinfo_line_part(l));
	json_program_destroy(part);
	json_close(j);
}

void sinfo_json_print(const struct sinfo *q, struct sinfo_line *line, size_t n)
{
	struct str out = STR_INIT;
	struct json j;
	json_init(&j, &out, q->yaml != NULL);
	json_open(&j, NULL, '{');
	json_open(&j, "sinfo", '[');
	for (size_t i = 0; i < n; i++) {
		line_item(&j, &line[i]);
		if (out.len > OUT_CHUNK)
			out_flush(&out);
	}
	json_close(&j);
	json_end(&j, q->argv, q->argc);
	out_flush(&out);
	str_fini(&out);
}
