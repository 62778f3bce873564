/* sinfo.c - nodes and partitions, grouped into lines of nodes that agree in what is asked for
 *
 * Two calls (nodes, partitions), then for each partition its nodes in order. The key of a line is the text of the fields that must
 * agree, as the format prints them; see fields_node.h for which do. A partition without nodes left keeps a line that says so. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/json.h"
#include "cli/sinfo.h"
#include "cli/sinfo_json.h"
#include "proto/controller.pb-c.h"

struct record { struct slice name, bytes; uint32_t *line, n_line; size_t line_cap; }; /* line: those it is counted on */
struct records { struct record *at; size_t n, cap; uint8_t *reply; };
struct lines { struct sinfo_line *at; size_t n, cap; };

static int records_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, unsigned now, unsigned list, unsigned name, struct records *ret, struct error *err)
{
	struct show_walk walk;
	struct wire_skim skim;
	struct wire_field f = { 0 };
	const uint8_t *data;
	size_t len, n;
	int rc = show_call(c, rpc, req, now, &ret->reply, &len, err);
	if (rc < 0)
		return rc;
	ret->n = 0;
	show_walk_start(&walk, ret->reply, len, list);
	while (show_walk_next(&walk, &data, &n)) {
		wire_skim_start(&skim, data, n);
		while (wire_skim_next(&skim, &f) && f.number != name)
			;
		ret->at = xgrow(ret->at, &ret->cap, ret->n + 1, sizeof(*ret->at));
		ret->at[ret->n++] = (struct record){ .name = { (const char *)f.data, f.number == name ? f.len : 0 }, .bytes = { (const char *)data, n } };
	}
	return 0;
}

static void records_fini(struct records *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->at[i].line);
	free(r->at);
	free(r->reply);
}

static int by_name(const void *a, const void *b)
{
	const struct slice *x = &(*(struct record *const *)a)->name, *y = &(*(struct record *const *)b)->name;
	int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
	return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* Nodes by name. Mostly they are asked for in the order in which they came: the one after `last` is looked at first, and they are sorted when that fails. */
struct index { const struct records *of; struct record **sorted; size_t last; };

static struct record *record_find(struct index *x, const char *name)
{
	struct record key = { .name = { name, strlen(name) } }, *p = &key, **hit;
	size_t n = x->of->n, next = x->last + 1 < n ? x->last + 1 : 0;
	if (n && slice_is(x->of->at[next].name, name)) {
		x->last = next;
		return &x->of->at[next];
	}
	if (!x->sorted) {
		x->sorted = xcalloc(n + 1, sizeof(struct record *));
		for (size_t i = 0; i < n; i++)
			x->sorted[i] = &x->of->at[i];
		qsort(x->sorted, n, sizeof(struct record *), by_name);
	}
	if ((hit = bsearch(&p, x->sorted, n, sizeof(struct record *), by_name)))
		x->last = (size_t)(*hit - x->of->at);
	return hit ? *hit : NULL;
}

/* Which fields of the format decide what stands on one line. */
static void key_put(const struct sinfo *q, const struct table *t, struct str *key, struct sinfo_line *l)
{
	for (size_t i = 0; i < t->n_col; i++) {
		const struct field *f = t->col[i].field;
		unsigned g = f ? FIELD_GROUP(f) : G_NONE;
		if (g == G_PART || g == G_NODE || g == G_STATE || (q->exact && (g == G_RANGE || g == G_SPAN))) {
			f->get(key, l, f);
			str_add_c(key, 1);
		}
	}
}

static uint64_t hash_of(const char *text)
{
	uint64_t h = 14695981039346656037ull;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211ull;
	return h;
}

static struct sinfo_line *line_for(struct lines *ls, const struct str *key, const struct sinfo_line *probe, bool always_new)
{
	uint64_t h = hash_of(key->data);
	for (size_t i = ls->n; !always_new && i-- > 0;)
		if (ls->at[i].key_hash == h && !strcmp(ls->at[i].key, key->data))
			return &ls->at[i];
	ls->at = xgrow(ls->at, &ls->cap, ls->n + 1, sizeof(*ls->at));
	struct sinfo_line *l = &ls->at[ls->n++];
	*l = (struct sinfo_line){ .key_hash = h, .key = xstrdup(key->data), .part = probe->part, .part_index = probe->part_index, .names = HOSTLIST_INIT };
	return l;
}

static bool node_wanted(const struct sinfo *q, const struct msgview *m, const char *name)
{
	return (!q->nodes || hostlist_find(&q->want, name) >= 0) && sinfo_state_passes(q, m);
}

struct build { const struct sinfo *q; const struct table *t; struct index index; struct lines lines; struct str key; };

/* A node is counted once on a line, of however many partitions. */
static bool counted_on(struct record *node, uint32_t line)
{
	for (uint32_t i = 0; i < node->n_line; i++)
		if (node->line[i] == line)
			return true;
	node->line = xgrow(node->line, &node->line_cap, node->n_line + 1, sizeof(*node->line));
	node->line[node->n_line++] = line;
	return false;
}

static void node_place(struct build *b, struct record *node, struct sinfo_line *probe, const char *name)
{
	static struct msgview m;
	(void)msgview_read(&m, (const uint8_t *)node->bytes.p, node->bytes.n);
	if (!node_wanted(b->q, &m, name))
		return;
	struct sinfo_line one = { .part = probe->part, .part_index = probe->part_index, .names = HOSTLIST_INIT };
	sinfo_line_add(&one, &m, node->bytes);
	str_reset(&b->key);
	key_put(b->q, b->t, &b->key, &one);
	hostlist_fini(&one.names);
	if (b->q->node_form)
		str_addf(&b->key, "%u\1%s", probe->part_index, name);
	struct sinfo_line *l = line_for(&b->lines, &b->key, probe, b->q->node_form);
	if (!counted_on(node, (uint32_t)(l - b->lines.at)))
		sinfo_line_add(l, &m, node->bytes);
	probe->n_nodes++;
}

/* A partition without any of the wanted nodes has a line only where the line says which it is. */
static bool names_partition(const struct table *t)
{
	for (size_t i = 0; i < t->n_col; i++)
		if (t->col[i].field && (t->col[i].field->letter == 'P' || t->col[i].field->letter == 'R'))
			return true;
	return false;
}

static void part_place(struct build *b, const struct record *part, uint32_t index)
{
	static struct msgview p;
	struct sinfo_line probe = { .part = part->bytes, .part_index = index };
	struct hostlist names = HOSTLIST_INIT;
	(void)msgview_read(&p, (const uint8_t *)part->bytes.p, part->bytes.n);
	if (b->q->partitions && !slice_in_list(part->name, b->q->partitions))
		return;
	char *text = slice_dup(msgview_text(&p, msgview_has(&p, PB_PartitionRecord_nodes_full) ? PB_PartitionRecord_nodes_full : PB_PartitionRecord_nodes));
	if (text)
		(void)hostlist_add(&names, text, NULL);
	free(text);
	for (size_t i = 0; i < names.count; i++) {
		struct record *node = record_find(&b->index, names.name[i]);
		if (node)
			node_place(b, node, &probe, names.name[i]);
	}
	hostlist_fini(&names);
	if (!probe.n_nodes && !b->q->node_form && !b->q->reasons && names_partition(b->t)) {
		str_reset(&b->key);
		key_put(b->q, b->t, &b->key, &probe);
		(void)line_for(&b->lines, &b->key, &probe, false);
	}
}

static void lines_print(struct build *b, const struct sort_spec *spec)
{
	struct str out = STR_INIT;
	size_t shown = sinfo_is_json(b->q) ? 0 : b->lines.n;
	struct sorter *s = sorter_create(spec, b->lines.n);
	for (size_t i = 0; i < b->lines.n; i++)
		sorter_add(s, &b->lines.at[i]);
	const uint32_t *order = sorter_order(s);
	for (size_t i = 0; i < shown; i++) {
		table_row(b->t, &b->lines.at[order[i]], &out);
		if (out.len > OUT_CHUNK)
			out_flush(&out);
	}
	out_flush(&out);
	str_fini(&out);
	sorter_destroy(s);
	for (size_t i = 0; i < b->lines.n; i++) {
		free(b->lines.at[i].key);
		hostlist_fini(&b->lines.at[i].names);
	}
	free(b->lines.at);
}

/* "#" in the reference's default formats is as wide as the longest name there is, at least 9. */
static void widths_measure(const struct records *nodes, const struct records *parts, size_t *ret_part, size_t *ret_nodes)
{
	static struct msgview p;
	*ret_part = *ret_nodes = strlen("PARTITION");
	for (size_t i = 0; i < nodes->n; i++)
		*ret_nodes = nodes->at[i].name.n > *ret_nodes ? nodes->at[i].name.n : *ret_nodes;
	for (size_t i = 0; i < parts->n; i++) {
		(void)msgview_read(&p, (const uint8_t *)parts->at[i].bytes.p, parts->at[i].bytes.n);
		size_t name = parts->at[i].name.n + (msgview_num(&p, PB_PartitionRecord_is_default, 0) ? 1 : 0);
		*ret_part = name > *ret_part ? name : *ret_part;
	}
}

static int table_make(const struct sinfo *q, const struct records *node_list, const struct records *parts, struct table *t, struct sort_spec *spec, struct error *err)
{
	static const char *const format[][2] = {   /* plain, --long */
		{ "%%%zuP %%.5a %%.10l %%.6D %%.6t %%N", "%%%zuP %%.5a %%.10l %%.10s %%.4r %%.8h %%.10g %%.6D %%.11T %%.11i %%N" },
		{ "%%%zuP %%.5a %%.10l %%.16F %%N", "%%%zuP %%.5a %%.10l %%.16F %%N" },
		{ "%%%zuN %%.6D %%.%zuP %%6t", "%%%zuN %%.6D %%.%zuP %%.11T %%4c %%.8z %%.6m %%.8d %%.6w %%.8f %%20E" },
		{ "%%20E %%9u %%19H %%N", "%%20E %%12U %%19H %%6t %%N" },
	};
	size_t part, nodes;
	char text[256];
	int kind = q->reasons ? 3 : q->node_form ? 2 : q->summarize ? 1 : 0;
	widths_measure(node_list, parts, &part, &nodes);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	snprintf(text, sizeof(text), format[kind][q->long_form], kind == 2 ? nodes : part, part);
#pragma GCC diagnostic pop
	table_init(t, node_fields, node_fields_n, "node");
	int rc;
	if (sinfo_is_json(q))   /* lines of nodes that agree in what the reference looks at */
		rc = table_format_long(t, "PartitionName,StateComplete,Features,features_act,Gres,Comment,Extra,Reason,TimeStamp,User,Reservation", err);
	else if (q->format_long)
		rc = str_eq_nocase(q->format_long, "all") ? table_format(t, "%all", " ", err) : table_format_long(t, q->format_long, err);
	else
		rc = table_format(t, q->format ? q->format : text, " ", err);
	return rc < 0 ? rc : sort_parse(t, q->sort ? q->sort : q->node_form ? "N" : q->reasons ? "E" : "#P,-t", spec, err);
}

static int round_print(const struct sinfo *q, struct client *c)
{
	Pb__NodeListReq node_req = PB__NODE_LIST_REQ__INIT;
	Pb__PartListReq part_req = PB__PART_LIST_REQ__INIT;
	struct records nodes = { 0 }, parts = { 0 };
	struct error err = { 0 };
	struct table t;
	struct sort_spec spec;
	struct str head = STR_INIT;
	node_req.has_show_all = node_req.show_all = true;
	part_req.has_show_all = part_req.show_all = q->all || q->partitions;
	int rc = records_call(c, RPC_NODE_LIST, &node_req.base, PB_NodeListRsp_now, PB_NodeListRsp_node, PB_NodeRecord_name, &nodes, &err);
	if (rc >= 0)
		rc = records_call(c, RPC_PART_LIST, &part_req.base, PB_PartListRsp_now, PB_PartListRsp_part, PB_PartitionRecord_name, &parts, &err);
	if (rc < 0) {
		fprintf(stderr, "slurm_load_node: %s\n", error_text(rc));
		return 1;
	}
	if (table_make(q, &nodes, &parts, &t, &spec, &err) < 0)
		return show_fail(&err);
	if ((q->long_form || q->iterate) && !q->no_header && !sinfo_is_json(q))
		put_date_line(&head);
	if (!q->no_header && !sinfo_is_json(q)) {
		put_cluster_line(&head);
		table_header(&t, &head);
	}
	out_flush(&head);
	struct build b = { .q = q, .t = &t, .index = { .of = &nodes }, .key = STR_INIT };
	for (size_t i = 0; i < parts.n; i++)
		part_place(&b, &parts.at[i], (uint32_t)i);
	if (sinfo_is_json(q))
		sinfo_json_print(q, b.lines.at, b.lines.n);
	lines_print(&b, &spec);
	if (q->iterate) {
		str_add_c(&head, '\n');
		out_flush(&head);
	}
	str_fini(&head);
	str_fini(&b.key);
	free(b.index.sorted);
	table_fini(&t);
	sinfo_views_forget();
	records_fini(&nodes);
	records_fini(&parts);
	return 0;
}

int main(int argc, char **argv)
{
	struct sinfo q;
	show_start("sinfo");
	int rc = sinfo_parse(&q, argc, argv);
	if (rc >= 0)
		return rc;
	rc = json_parser_check("sinfo", q.json ? q.json : q.yaml);
	if (rc)
		return rc - 1;
	struct client *c = show_open();
	for (;;) {
		rc = q.reservations ? sinfo_reservations(&q, c) : round_print(&q, c);
		if (!q.iterate)
			break;
		sleep(q.iterate);
	}
	client_close(c);
	return rc;
}
