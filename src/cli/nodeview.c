/* nodeview.c - facts of an encoded NodeRecord (see nodeview.h) */
#include "cli/nodeview.h"
#include "cli/table.h"
#include "model/states.h"

uint64_t node_effective_cpus(const struct msgview *m)
{
	return msgview_num(m, PB_NodeRecord_effective_cpus, msgview_num(m, PB_NodeRecord_cpus, 0));
}

static uint32_t node_flags(const struct msgview *m) { return (uint32_t)msgview_num(m, PB_NodeRecord_state_flags, 0); }

bool node_is_other(const struct msgview *m)
{
	uint32_t state = (uint32_t)msgview_num(m, PB_NodeRecord_state, 0), flags = node_flags(m);
	if (state == NODE_DOWN || state == NODE_ERROR || state == NODE_FUTURE || state == NODE_UNKNOWN)
		return true;
	return flags & (NODEF_DRAIN | NODEF_FAIL | NODEF_NOT_RESPONDING | NODEF_POWERED_DOWN | NODEF_POWERING_DOWN | NODEF_INVALID_REG) &&
	       !msgview_num(m, PB_NodeRecord_alloc_cpus, 0);
}

bool node_is_allocated(const struct msgview *m)
{
	uint32_t state = (uint32_t)msgview_num(m, PB_NodeRecord_state, 0);
	return state == NODE_ALLOCATED || state == NODE_MIXED || (state != NODE_DOWN && (node_flags(m) & NODEF_COMPLETING));
}

struct node_cpus node_cpus_split(const struct msgview *m)
{
	struct node_cpus c = { .alloc = msgview_num(m, PB_NodeRecord_alloc_cpus, 0), .total = node_effective_cpus(m) };
	if (c.alloc > c.total)
		c.alloc = c.total;
	bool out = node_is_other(m) || node_flags(m) & (NODEF_DRAIN | NODEF_FAIL);
	*(out ? &c.other : &c.idle) = c.total - c.alloc;
	return c;
}

void put_cpu_load(struct str *out, const struct msgview *m)
{
	if (msgview_has(m, PB_NodeRecord_cpu_load))
		str_addf(out, "%.2f", (double)msgview_num(m, PB_NodeRecord_cpu_load, 0) / 100.0);
	else
		str_add(out, "N/A");
}

void put_free_mem(struct str *out, const struct msgview *m)
{
	if (msgview_has(m, PB_NodeRecord_free_mem))
		put_u64(out, msgview_num(m, PB_NodeRecord_free_mem, 0));
	else
		str_add(out, "N/A");
}

void put_gres_used(struct str *out, const struct msgview *m)
{
	static struct msgview g;
	struct wire_field f;
	bool first = true;
	if (msgview_text(m, PB_NodeRecord_gres_used).n) {
		put_slice(out, msgview_text(m, PB_NodeRecord_gres_used), "");
		return;
	}
	for (size_t at = 0; msgview_each(m, PB_NodeRecord_gres_list, &at, &f); first = false) {
		(void)msgview_read(&g, f.data, f.len);
		str_add(out, first ? "" : ",");
		put_slice(out, msgview_text(&g, PB_NodeGres_name), "");
		if (msgview_text(&g, PB_NodeGres_type).n) {
			str_add_c(out, ':');
			put_slice(out, msgview_text(&g, PB_NodeGres_type), "");
		}
		str_add_c(out, ':');
		put_u64(out, msgview_num(&g, PB_NodeGres_used, 0));
		if (msgview_text(&g, PB_NodeGres_used_index).n) {
			str_add(out, "(IDX:");
			put_slice(out, msgview_text(&g, PB_NodeGres_used_index), "");
			str_add_c(out, ')');
		}
	}
	if (first)
		str_add(out, "(null)");
}
