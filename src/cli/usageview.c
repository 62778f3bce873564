/* usageview.c - figures of a step as text (see usageview.h) */
#include <string.h>

#include "cli/usageview.h"
#include "model/timespec.h"

static const struct { const char *name; enum usage_kind kind; bool in, energy; } tres[] = {
	{ "cpu", USAGE_CPU, true, false }, { "energy", USAGE_READ, true, true }, { "fs/disk", USAGE_READ, true, false },
	{ "gres/gpumem", USAGE_GPU_MEM, true, false }, { "gres/gpuutil", USAGE_GPU_UTIL, true, false }, { "mem", USAGE_RSS, true, false },
	{ "pages", USAGE_PAGES, true, false }, { "vmem", USAGE_VSIZE, true, false },
	{ "energy", USAGE_WRITTEN, false, true }, { "fs/disk", USAGE_WRITTEN, false, false },
};
#define TRES (sizeof tres / sizeof *tres)

void usageview_bytes(struct str *out, const struct usageview *view, uint64_t v)
{
	static const char units[] = "KMGTP";
	double d = (double)v;
	int u = -1;
	if (view->no_convert || !v) {
		str_addf(out, "%llu", (unsigned long long)v);
		return;
	}
	if (view->unit) {
		for (const char *at = units; at <= strchr(units, view->unit); at++)
			d /= 1024;
		str_addf(out, "%.2f%c", d, view->unit);
		return;
	}
	while (v >= 1024 && v % 1024 == 0 && u < 4) {
		v /= 1024;
		u++;
	}
	str_addf(out, "%llu", (unsigned long long)v);
	if (u >= 0)
		str_add_c(out, units[u]);
}

void usageview_energy(struct str *out, uint64_t joules, bool raw)
{
	static const char units[] = "KMGTP";
	double d = (double)joules;
	int u = -1;
	while (!raw && d >= 1000 && u < 4) {
		d /= 1000;
		u++;
	}
	if (u < 0)
		str_addf(out, "%llu", (unsigned long long)joules);
	else
		str_addf(out, "%.2f%c", d, units[u]);
}

void usageview_hms(struct str *out, uint64_t secs)
{
	char buf[48];
	timespec_format(secs >= TIME_INFINITE ? TIME_INFINITE - 1 : (uint32_t)secs, buf, sizeof buf);
	str_add(out, buf);
}

bool usageview_value(const Pb__StepUsage *u, enum usage_kind kind, enum usageview_part part, uint64_t *ret)
{
	const Pb__Figure *f = u ? usage_figure(u, kind) : NULL;
	if (!f)
		return false;
	switch (part) {
	case USAGEVIEW_MAX: *ret = f->max; break;
	case USAGEVIEW_MIN: *ret = f->min; break;
	case USAGEVIEW_TOTAL: *ret = f->total; break;
	case USAGEVIEW_AVERAGE: *ret = f->total / (u->tasks ? u->tasks : 1); break;
	}
	return true;
}

void usageview_node(struct str *out, const Pb__StepUsage *u, enum usage_kind kind, enum usageview_part part)
{
	const Pb__Figure *f = u ? usage_figure(u, kind) : NULL;
	const char *node = !f ? NULL : part == USAGEVIEW_MAX ? f->max_node : f->min_node;
	str_add(out, node ? node : "");
}

void usageview_task(struct str *out, const Pb__StepUsage *u, enum usage_kind kind, enum usageview_part part)
{
	const Pb__Figure *f = u ? usage_figure(u, kind) : NULL;
	if (f)
		str_addf(out, "%u", part == USAGEVIEW_MAX ? f->max_task : f->min_task);
}

/* Name and = of row i, where the step has it. */
static bool name_put(struct str *out, const Pb__StepUsage *u, bool in, size_t i, size_t from)
{
	if (tres[i].in != in || !u || !usage_figure(u, tres[i].kind))
		return false;
	str_addf(out, "%s%s=", out->len > from ? "," : "", tres[i].name);
	return true;
}

void usageview_tres(struct str *out, const struct usageview *v, const Pb__StepUsage *u, bool in, enum usageview_part part)
{
	size_t from = out->len;
	uint64_t n;
	for (size_t i = 0; i < TRES; i++) {
		if (!name_put(out, u, in, i, from) || !usageview_value(u, tres[i].kind, part, &n))
			continue;
		if (tres[i].energy)
			str_addf(out, "%llu", (unsigned long long)(in && usageview_value(u, USAGE_ENERGY, part, &n) ? n : 0));
		else if (tres[i].kind == USAGE_CPU)
			usageview_hms(out, n / 1000000);
		else if (tres[i].kind == USAGE_PAGES || tres[i].kind == USAGE_GPU_UTIL)
			str_addf(out, "%llu", (unsigned long long)n);
		else
			usageview_bytes(out, v, n);
	}
}

void usageview_tres_nodes(struct str *out, const Pb__StepUsage *u, bool in, enum usageview_part part)
{
	size_t from = out->len;
	for (size_t i = 0; i < TRES; i++)
		if (name_put(out, u, in, i, from))
			usageview_node(out, u, tres[i].kind, part);
}

void usageview_tres_tasks(struct str *out, const Pb__StepUsage *u, bool in, enum usageview_part part)
{
	size_t from = out->len;
	for (size_t i = 0; i < TRES; i++)
		if (!tres[i].energy && name_put(out, u, in, i, from))
			usageview_task(out, u, tres[i].kind, part);
}
