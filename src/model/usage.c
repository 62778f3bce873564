/* usage.c - figures of tasks: the most, the least, the sum (see usage.h) */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/usage.h"

static Pb__Figure **place(Pb__StepUsage *u, enum usage_kind kind)
{
	switch (kind) {
	case USAGE_CPU: return &u->cpu;
	case USAGE_RSS: return &u->rss;
	case USAGE_VSIZE: return &u->vsize;
	case USAGE_PAGES: return &u->pages;
	case USAGE_READ: return &u->read;
	case USAGE_GPU_UTIL: return &u->gpu_util;
	case USAGE_GPU_MEM: return &u->gpu_mem;
	case USAGE_ENERGY: return &u->energy;
	default: return &u->written;
	}
}

Pb__Figure *usage_figure(const Pb__StepUsage *u, enum usage_kind kind) { return *place((Pb__StepUsage *)(uintptr_t)u, kind); }

static void max_set(Pb__Figure *f, const char *node, uint32_t task, uint64_t value)
{
	f->max = value;
	f->has_max_task = true;
	f->max_task = task;
	xstr_set(&f->max_node, node);
}

static void min_set(Pb__Figure *f, const char *node, uint32_t task, uint64_t value)
{
	f->min = value;
	f->has_min_task = true;
	f->min_task = task;
	xstr_set(&f->min_node, node);
}

/* That of the kind, made where there is none; *ret_new: it was. */
static Pb__Figure *figure(Pb__StepUsage *u, enum usage_kind kind, bool *ret_new)
{
	Pb__Figure **at = place(u, kind);
	*ret_new = !*at;
	if (!*at) {
		*at = xcalloc(1, sizeof **at);
		pb__figure__init(*at);
	}
	return *at;
}

void usage_add_mean(Pb__StepUsage *u, enum usage_kind kind, const char *node, uint32_t task, uint64_t peak, uint64_t mean)
{
	bool first;
	Pb__Figure *f = figure(u, kind, &first);
	if (first || peak > f->max)
		max_set(f, node, task, peak);
	if (first || mean < f->min)
		min_set(f, node, task, mean);
	f->total += mean;
}

void usage_add(Pb__StepUsage *u, enum usage_kind kind, const char *node, uint32_t task, uint64_t value) { usage_add_mean(u, kind, node, task, value, value); }

void usage_merge(Pb__StepUsage *u, const Pb__StepUsage *other)
{
	u->has_user_usec = u->has_sys_usec = u->has_tasks = true;
	u->user_usec += other->user_usec;
	u->sys_usec += other->sys_usec;
	u->tasks += other->tasks;
	for (enum usage_kind k = 0; k < USAGE_KINDS; k++) {
		const Pb__Figure *o = usage_figure(other, k);
		bool first;
		if (!o)
			continue;
		Pb__Figure *f = figure(u, k, &first);
		if (first || o->max > f->max)
			max_set(f, o->max_node, o->max_task, o->max);
		if (first || o->min < f->min)
			min_set(f, o->min_node, o->min_task, o->min);
		f->total += o->total;
	}
}

int usage_frequency(const char *text, uint32_t *ret, struct error *err)
{
	static const char *const types[] = { "task=", "energy=", "network=", "filesystem=" };
	char *copy = xstrdup(text), *rest = copy, *piece;
	int rc = 0;
	while (!rc && (piece = str_next(&rest, ","))) {
		size_t type = 0;
		unsigned long long n;
		if (!*piece)
			continue;
		while (type < 4 && strncasecmp(piece, types[type], strlen(types[type])))
			type++;
		if (str_to_u64(piece + (type < 4 ? strlen(types[type]) : 0), 0, INT32_MAX, &n) < 0)
			rc = error_set(err, EINVAL, "%s", piece);
		else if (!type || type == 4)
			*ret = (uint32_t)n;
	}
	free(copy);
	return rc;
}
