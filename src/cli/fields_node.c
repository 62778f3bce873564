/* fields_node.c - getters and sort keys behind tables/fields_node.def, and the sums of a line of sinfo */
#include <stdlib.h>
#include <string.h>

#include "cli/fields_node.h"
#include "model/states.h"
#include "model/timespec.h"

#define GET(fn) static void fn(struct str *out, void *row, const struct field *f)
#define LINE ((const struct sinfo_line *)row)

/* Lines are printed one after the other: the last record read is kept, until its reply goes away. */
static struct msgview part_view, node_view;
void sinfo_views_forget(void)
{
	msgview_clear(&part_view);
	msgview_clear(&node_view);
}
static const struct msgview *view_of(struct slice bytes, struct msgview *view)
{
	if (!bytes.p)
		msgview_clear(view);
	else if (view->data != (const uint8_t *)bytes.p)
		(void)msgview_read(view, (const uint8_t *)bytes.p, bytes.n);
	return view;
}
const struct msgview *sinfo_line_part(const struct sinfo_line *l)
{
	return view_of(l->part, &part_view);
}
const struct msgview *sinfo_line_node(const struct sinfo_line *l)
{
	return view_of(l->node, &node_view);
}
#define PART sinfo_line_part(LINE)
#define NODE sinfo_line_node(LINE)

static const struct { unsigned field; uint64_t absent; } value_field[NV_COUNT] = {
	[NV_CPUS] = { PB_NodeRecord_cpus, 0 }, [NV_MEMORY] = { PB_NodeRecord_real_memory, 1 }, [NV_DISK] = { PB_NodeRecord_tmp_disk, 0 },
	[NV_WEIGHT] = { PB_NodeRecord_weight, 1 }, [NV_SOCKETS] = { PB_NodeRecord_sockets, 1 }, [NV_CORES] = { PB_NodeRecord_cores, 1 },
	[NV_THREADS] = { PB_NodeRecord_threads, 1 }, [NV_LOAD] = { PB_NodeRecord_cpu_load, UINT64_MAX }, [NV_FREE_MEM] = { PB_NodeRecord_free_mem, UINT64_MAX },
	[NV_ALLOC_MEM] = { PB_NodeRecord_alloc_mem, 0 },
};

void sinfo_line_add(struct sinfo_line *l, const struct msgview *m, struct slice bytes)
{
	struct node_cpus c = node_cpus_split(m);
	if (!l->node.p)
		l->node = bytes;
	for (size_t i = 0; i < NV_COUNT; i++) {
		uint64_t v = msgview_num(m, value_field[i].field, value_field[i].absent);
		if (v == UINT64_MAX)
			continue;
		if (!l->value[i].set || v < l->value[i].min)
			l->value[i].min = v;
		if (!l->value[i].set || v > l->value[i].max)
			l->value[i].max = v;
		l->value[i].set = true;
	}
	l->n_nodes++;
	*(node_is_allocated(m) ? &l->n_alloc : node_is_other(m) ? &l->n_other : &l->n_idle) += 1;
	l->cpus.alloc += c.alloc;
	l->cpus.idle += c.idle;
	l->cpus.other += c.other;
	l->cpus.total += c.total;
	char *name = slice_dup(msgview_text(m, PB_NodeRecord_name));
	hostlist_push(&l->names, name ? name : "");
	free(name);
}

GET(fixed) { str_add(out, f->absent); }
GET(part_text)
{
	struct slice s = msgview_text(PART, f->arg);
	put_slice_set(out, slice_is(s, "ALL") && *f->absent == 'a' ? (struct slice){ 0 } : s, f->absent);
}
GET(part_num)
{
	if (msgview_has(PART, f->arg))
		put_u64(out, msgview_num(PART, f->arg, 0));
	else
		str_add(out, f->absent);
}
GET(partition_star)
{
	put_slice(out, msgview_text(PART, PB_PartitionRecord_name), "");
	if (msgview_num(PART, PB_PartitionRecord_is_default, 0))
		str_add_c(out, '*');
}
GET(available)
{
	static const char *const word[][2] = { { "DOWN", "down" }, { "DRAIN", "drain" }, { "INACTIVE", "inact" } };
	struct slice s = msgview_text(PART, PB_PartitionRecord_state);
	for (size_t i = 0; i < 3; i++)
		if (slice_is(s, word[i][0])) {
			str_add(out, word[i][1]);
			return;
		}
	str_add(out, "up");
}
GET(default_time)
{
	uint64_t min = msgview_num(PART, PB_PartitionRecord_default_time_min, 0);
	if (min)
		put_limit_short(out, min);
	else
		str_add(out, f->absent);
}
GET(time_limit)
{
	uint64_t min = msgview_num(PART, PB_PartitionRecord_max_time_min, TIME_INFINITE);
	if (min < TIME_INFINITE)
		put_limit_short(out, min);
	else
		str_add(out, f->absent);
}
GET(max_cpus)
{
	uint64_t max = msgview_num(PART, PB_PartitionRecord_max_cpus_per_node, TIME_INFINITE);
	if (max < TIME_INFINITE)
		put_u64(out, max);
	else
		str_add(out, f->absent);
}
GET(root) { str_add(out, msgview_num(PART, PB_PartitionRecord_root_only, 0) ? "yes" : "no"); }
GET(job_size)
{
	uint64_t min = msgview_num(PART, PB_PartitionRecord_min_nodes, 0), max = msgview_num(PART, PB_PartitionRecord_max_nodes, TIME_INFINITE);
	if (!min)
		min = 1;
	put_u64(out, min);
	if (max >= TIME_INFINITE)
		str_add(out, "-infinite");
	else if (max != min)
		str_addf(out, "-%llu", (unsigned long long)max);
}

GET(node_text) { put_slice_set(out, msgview_text(NODE, f->arg), f->absent); }
GET(node_num) { put_u64(out, msgview_num(NODE, f->arg, strtoull(f->absent, NULL, 10))); }
GET(node_name)
{
	struct slice s = msgview_text(NODE, f->arg);
	put_slice_set(out, s.n ? s : msgview_text(NODE, PB_NodeRecord_name), f->absent);
}
GET(features_active)
{
	put_slice_set(out, msgview_text(NODE, msgview_has(NODE, PB_NodeRecord_features_act) ? PB_NodeRecord_features_act : PB_NodeRecord_features), f->absent);
}
GET(gres_used) { put_gres_used(out, NODE); }
GET(reason_time) { put_when(out, msgview_text(NODE, PB_NodeRecord_reason).n ? msgview_num(NODE, PB_NodeRecord_reason_time, 0) : 0, f->absent); }
GET(reason_user)
{
	if (msgview_text(NODE, PB_NodeRecord_reason).n && msgview_num(NODE, PB_NodeRecord_reason_time, 0))
		put_user(out, msgview_text(NODE, PB_NodeRecord_reason_user), msgview_num(NODE, PB_NodeRecord_reason_uid, 0));
	else
		str_add(out, f->absent);
}
GET(reason_user_long)
{
	size_t before = out->len;
	reason_user(out, row, f);
	if (strcmp(out->data + before, f->absent))
		str_addf(out, "(%u)", (unsigned)msgview_num(NODE, PB_NodeRecord_reason_uid, 0));
}

/* "8", or "8+" when the nodes of the line differ. */
static void put_range(struct str *out, const struct sinfo_line *l, enum node_value v, const char *absent)
{
	if (!l->value[v].set) {
		str_add(out, absent);
		return;
	}
	put_u64(out, l->value[v].min);
	if (l->value[v].max != l->value[v].min)
		str_add_c(out, '+');
}
GET(range) { put_range(out, LINE, (enum node_value)f->arg, f->absent); }
GET(sct)
{
	put_range(out, LINE, NV_SOCKETS, "0");
	str_add_c(out, ':');
	put_range(out, LINE, NV_CORES, "0");
	str_add_c(out, ':');
	put_range(out, LINE, NV_THREADS, "0");
}
GET(span)
{
	if (!LINE->value[f->arg].set) {
		str_add(out, f->absent);
		return;
	}
	put_u64(out, LINE->value[f->arg].min);
	if (LINE->value[f->arg].max != LINE->value[f->arg].min)
		str_addf(out, "-%llu", (unsigned long long)LINE->value[f->arg].max);
}
GET(load)
{
	if (!LINE->value[f->arg].set) {
		str_add(out, f->absent);
		return;
	}
	str_addf(out, "%.2f", (double)LINE->value[f->arg].min / 100.0);
	if (LINE->value[f->arg].max != LINE->value[f->arg].min)
		str_addf(out, "-%.2f", (double)LINE->value[f->arg].max / 100.0);
}
GET(nodes) { put_u64(out, LINE->n_nodes); }
GET(nodes_ai) { str_addf(out, "%llu/%llu", (unsigned long long)LINE->n_alloc, (unsigned long long)LINE->n_idle); }
GET(nodes_aiot)
{
	str_addf(out, "%llu/%llu/%llu/%llu", (unsigned long long)LINE->n_alloc, (unsigned long long)LINE->n_idle, (unsigned long long)LINE->n_other,
		 (unsigned long long)LINE->n_nodes);
}
GET(cpus_state)
{
	const struct node_cpus *c = &LINE->cpus;
	str_addf(out, "%llu/%llu/%llu/%llu", (unsigned long long)c->alloc, (unsigned long long)c->idle, (unsigned long long)c->other, (unsigned long long)c->total);
}
GET(node_list)
{
	char *text = hostlist_compact(&LINE->names);
	str_add(out, text);
	free(text);
}

typedef void (*state_fn)(uint32_t state, uint32_t flags, char *buf, size_t size);
static void put_state(struct str *out, const struct sinfo_line *l, state_fn fn, const char *absent)
{
	char word[160];
	const struct msgview *m = sinfo_line_node(l);
	if (!l->node.p) {
		str_add(out, absent);
		return;
	}
	fn((uint32_t)msgview_num(m, PB_NodeRecord_state, 0), (uint32_t)msgview_num(m, PB_NodeRecord_state_flags, 0), word, sizeof(word));
	str_add(out, word);
}
GET(state_short) { put_state(out, LINE, node_state_short, f->absent); }
GET(state_long) { put_state(out, LINE, node_state_long, f->absent); }
GET(state_complete)
{
	size_t start = out->len;
	put_state(out, LINE, node_state_full, f->absent);
	for (size_t i = start; i < out->len; i++)
		if (out->data[i] >= 'A' && out->data[i] <= 'Z')
			out->data[i] = (char)(out->data[i] + 32);
}

/* Nodes with flags come after those without, and busy ones after idle ones: the usual order turns this round. */
static int64_t key_state(void *row, const struct field *f)
{
	static const uint32_t rank[] = { [NODE_UNKNOWN] = 0, [NODE_DOWN] = 1, [NODE_IDLE] = 2, [NODE_ALLOCATED] = 3, [NODE_ERROR] = 4, [NODE_MIXED] = 5, [NODE_FUTURE] = 6 };
	uint32_t state = (uint32_t)msgview_num(NODE, PB_NodeRecord_state, 0), flags = (uint32_t)msgview_num(NODE, PB_NodeRecord_state_flags, 0);
	if (!LINE->node.p)
		return -1;
	return (int64_t)flags << 4 | (state < 7 ? rank[state] : 7);
}
static int64_t key_number(void *row, const struct field *f)
{
	if (f->letter == '#')
		return LINE->part_index;
	return FIELD_GROUP(f) == G_RANGE || FIELD_GROUP(f) == G_SPAN ? (int64_t)LINE->value[f->arg].min : (int64_t)LINE->n_nodes;
}

#define G_KEY(get, group, letter) ((group) == G_STATE ? key_state : (group) == G_RANGE || (group) == G_SPAN || (letter) == 'D' || (letter) == '#' ? key_number : NULL)
#define FIELD(letter, name, header, get, arg, absent, group) { letter, name, header, get, arg, absent, G_KEY(get, group, letter), (group) << FIELD_GROUP_SHIFT },
#define FIELD_HIDDEN(letter, name, header, get, arg, absent, group) { letter, name, header, get, arg, absent, G_KEY(get, group, letter), (group) << FIELD_GROUP_SHIFT | FIELD_HIDDEN },
const struct field node_fields[] = {
#include "tables/fields_node.def"
};
const size_t node_fields_n = sizeof(node_fields) / sizeof(node_fields[0]);
