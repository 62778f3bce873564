/* openb.c - the CSV files of the openb cluster: nodes, and tasks that share GPUs in thousandths (see trace.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "sim/trace.h"

enum { FIELDS_MAX = 32 };

static int model_index(struct openb *o, const char *name)
{
	for (uint32_t i = 0; i < o->models; i++)
		if (!strcmp(o->model[i], name))
			return (int)i;
	if (o->models == 64)
		return -EINVAL;
	snprintf(o->model[o->models], sizeof o->model[0], "%s", name);
	return (int)o->models++;
}

static size_t split(char *line, char **field)
{
	size_t n = 0;
	for (char *at = line, *w; n < FIELDS_MAX && (w = str_next(&at, ","));)
		field[n++] = w;
	return n;
}

static int numbers(char **field, size_t n, uint32_t *ret)
{
	unsigned long long v;
	for (size_t i = 0; i < n; i++) {
		if (str_to_u64(field[i], 0, UINT32_MAX, &v))
			return -EINVAL;
		ret[i] = (uint32_t)v;
	}
	return 0;
}

/* sn,cpu_milli,memory_mib,gpu,model */
static int node_line(struct openb *o, char **f, size_t n)
{
	uint32_t v[3];
	int model = n >= 5 ? model_index(o, f[4]) : -EINVAL;
	if (model < 0 || numbers(f + 1, 3, v) || v[2] > 16 || !v[0] || !v[1])
		return -EINVAL;
	o->node = xgrow(o->node, &o->node_cap, o->nodes + 1, sizeof *o->node);
	o->node[o->nodes++] = (struct openb_node){ v[0], v[1], v[2], (uint32_t)model };
	return 0;
}

/* name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,... */
static int task_line(struct openb *o, char **f, size_t n)
{
	uint32_t v[4];
	uint64_t models = 0;
	if (n < 6 || numbers(f + 1, 4, v) || v[3] > 1000 || (v[2] && !v[3]) || (v[2] > 1 && v[3] != 1000))
		return -EINVAL;
	for (char *at = f[5], *w; (w = str_next(&at, "|"));) {
		int model = *w ? model_index(o, w) : -1;
		models |= model >= 0 ? 1ull << model : 0;
	}
	o->task = xgrow(o->task, &o->task_cap, o->tasks + 1, sizeof *o->task);
	o->task[o->tasks++] = (struct openb_task){ v[0], v[1], v[2], v[2] ? v[3] : 0, models };
	return 0;
}

static int read_file(const char *path, struct openb *o, const char *header, int (*line)(struct openb *, char **, size_t), struct error *err)
{
	struct lines *l = lines_open(path, err);
	char *f[FIELDS_MAX], *s;
	int rc = 0;
	if (!l)
		return err->code;
	for (size_t at = 1; rc >= 0 && (s = lines_next(l)); at++) {
		if (at == 1 ? !str_starts(s, header) : *s && line(o, f, split(s, f)) < 0)
			rc = error_set(err, EINVAL, "%s:%zu: \"%s...\" with numbers is expected", path, at, header);
	}
	lines_close(l);
	return rc;
}

int openb_read(const char *node_path, const char *pod_path, struct openb *ret, struct error *err)
{
	*ret = (struct openb){ 0 };
	int rc = read_file(node_path, ret, "sn,cpu_milli,memory_mib,gpu,model", node_line, err);
	if (rc >= 0)
		rc = read_file(pod_path, ret, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec", task_line, err);
	if (rc >= 0 && (!ret->nodes || !ret->tasks))
		rc = error_set(err, EINVAL, "%s: no %s", ret->nodes ? pod_path : node_path, ret->nodes ? "tasks" : "nodes");
	if (rc < 0)
		openb_fini(ret);
	return rc;
}

void openb_fini(struct openb *o)
{
	free(o->node);
	free(o->task);
	*o = (struct openb){ 0 };
}
