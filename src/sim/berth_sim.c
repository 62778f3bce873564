/* berth_sim.c - `berth sim`: the scheduler on a trace (see run.h), or on openb's GPU-sharing tasks (share.c) */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/opt.h"
#include "conf/conf.h"
#include "sim/run.h"

enum { O_HELP, O_CONF, O_TRACE, O_SET, O_COMPARE, O_NODES, O_CPUS, O_GPUS, O_POLICY, O_SUMMARY, O_SVG, O_JOBS, O_PLACEMENT, O_NODE_FILE, O_SEEDS, O_LOAD };
static const struct opt_row rows[] = {
	{ "conf", 0, OPT_REQUIRED, "FILE", "slurm.conf of the cluster", O_CONF, false },
	{ "trace", 't', OPT_REQUIRED, "FILE", "jobs: Standard Workload Format (.swf, .swf.gz), output of sacct -P, or openb tasks (openb_pod_list*.csv)", O_TRACE, false },
	{ "set", 0, OPT_REQUIRED, "KEY=VALUE", "replaces a line of the configuration (may be repeated)", O_SET, false },
	{ "compare", 0, OPT_REQUIRED, "CHANGES", "one more run, compared with the first: KEY=VALUE changes or policy=NAME, separated by ';' (may be repeated)", O_COMPARE, false },
	{ "nodes", 'N', OPT_REQUIRED, "N", "without --conf: so many equal nodes", O_NODES, false },
	{ "cpus", 'c', OPT_REQUIRED, "N", "CPUs of each (default 1)", O_CPUS, false },
	{ "gpus", 'G', OPT_REQUIRED, "N", "GPUs of each (default 0)", O_GPUS, false },
	{ "policy", 'p', OPT_REQUIRED, "NAME", "fcfs, easy, easy-sjbf, conservative or berth (default berth; with --conf what it says)", O_POLICY, false },
	{ "summary", 's', OPT_NONE, NULL, "one \"name value unit\" line a figure", O_SUMMARY, false },
	{ "svg", 0, OPT_REQUIRED, "FILE", "a picture of the time line", O_SVG, false },
	{ "jobs", 0, OPT_REQUIRED, "FILE", "what became of each job, as CSV (-: standard output)", O_JOBS, false },
	{ "placement", 0, OPT_REQUIRED, "NAME", "openb: fragment, fgd, bestfit, packing, clustering, dotprod, random or all (default all)", O_PLACEMENT, false },
	{ "node-list", 0, OPT_REQUIRED, "FILE", "openb: the nodes (default openb_node_list_gpu_node.csv[.gz] beside the tasks)", O_NODE_FILE, false },
	{ "seeds", 0, OPT_REQUIRED, "N", "openb: mean of so many orders of arrival (default 10)", O_SEEDS, false },
	{ "load", 0, OPT_REQUIRED, "PERCENT", "openb: offered load (default 130)", O_LOAD, false },
	{ "help", 'h', OPT_NONE, NULL, "show this text", O_HELP, false },
};
#define ROWS (sizeof rows / sizeof *rows)
enum { LIST_MAX = 64 };

struct args {
	struct run_setup setup;
	struct share_setup share;
	const char *set[LIST_MAX], *compare[LIST_MAX], *trace, *svg, *jobs;
	size_t sets, compares;
	bool summary, help;
};

static int number(const char *name, const char *value, uint32_t min, uint32_t max, uint32_t *ret, struct error *err)
{
	unsigned long long v;
	if (str_to_u64(value, min, max, &v))
		return error_set(err, EINVAL, "--%s: \"%s\" is not a number from %u to %u", name, value, min, max);
	*ret = (uint32_t)v;
	return 0;
}

static int add(const char *name, const char **list, size_t *n, const char *value, struct error *err)
{
	if (*n == LIST_MAX)
		return error_set(err, EINVAL, "--%s is given more than %d times", name, LIST_MAX);
	if (!strchr(value, '='))
		return error_set(err, EINVAL, "--%s %s: KEY=VALUE is expected", name, value);
	list[(*n)++] = value;
	return 0;
}

static int take(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct args *a = arg;
	uint32_t percent = 0;
	int rc = 0;
	switch (row->id) {
	case O_CONF: a->setup.conf = value; break;
	case O_TRACE: a->trace = value; break;
	case O_SET: rc = add(row->name, a->set, &a->sets, value, err); break;
	case O_COMPARE: rc = add(row->name, a->compare, &a->compares, value, err); break;
	case O_NODES: rc = number(row->name, value, 1, 1000000, &a->setup.nodes, err); break;
	case O_CPUS: rc = number(row->name, value, 1, 4096, &a->setup.cpus, err); break;
	case O_GPUS: rc = number(row->name, value, 0, 64, &a->setup.gpus, err); break;
	case O_POLICY: a->setup.policy = value; break;
	case O_SUMMARY: a->summary = a->share.summary = true; break;
	case O_SVG: a->svg = value; break;
	case O_JOBS: a->jobs = value; break;
	case O_PLACEMENT: a->share.placement = value; break;
	case O_NODE_FILE: a->share.nodes = value; break;
	case O_SEEDS: rc = number(row->name, value, 1, 10000, &a->share.seeds, err); break;
	case O_LOAD:
		rc = number(row->name, value, 1, 10000, &percent, err);
		a->share.load = rc < 0 ? 0 : percent / 100.0;
		break;
	case O_HELP: a->help = true; break;
	}
	return rc;
}

static int check(struct args *a, struct error *err)
{
	struct core_params scratch = { 0 };
	if (!a->trace)
		return error_set(err, EINVAL, "--trace: which jobs?");
	if (a->setup.policy && !run_policy(a->setup.policy, &scratch))
		return error_set(err, EINVAL, "--policy %s: not one of fcfs, easy, easy-sjbf, conservative, berth", a->setup.policy);
	if (a->setup.conf && (a->setup.nodes || a->setup.cpus || a->setup.gpus))
		return error_set(err, EINVAL, "--nodes, --cpus and --gpus stand for a configuration: they cannot be given with --conf");
	if (!a->setup.conf && a->sets)
		return error_set(err, EINVAL, "--set changes a configuration: --conf is needed");
	return 0;
}

/* The base with the changes of one --compare: "Key=Value;policy=easy;nodes=120". */
static int changed(const struct run_setup *base, char *text, struct run_setup *ret, const char **set, struct error *err)
{
	*ret = *base;
	for (size_t i = 0; i < base->sets; i++)
		set[i] = base->set[i];
	ret->set = set;
	for (char *at = text, *w; (w = str_next(&at, ";"));) {
		w = str_trim(w);
		if (str_starts(w, "policy="))
			ret->policy = w + 7;
		else if (str_starts(w, "nodes=") && !base->conf) {
			int rc = number("compare nodes", w + 6, 1, 1000000, &ret->nodes, err);
			if (rc < 0)
				return rc;
		} else if (*w && base->conf && strchr(w, '=') && ret->sets < 2 * LIST_MAX)
			set[ret->sets++] = w;
		else if (*w)
			return error_set(err, EINVAL, "--compare %s: %s", w, base->conf ? "KEY=VALUE is expected" : "without --conf it can be policy=NAME or nodes=N");
	}
	return 0;
}

static int run_one(const struct args *a, const struct run_setup *s, struct trace *t, struct figures *f, bool report, struct error *err)
{
	struct run_result r;
	int rc = run_trace(s, t, &r, err);
	if (rc < 0)
		return rc;
	*f = figures_of(t, &r, UINT32_MAX, UINT32_MAX);
	if (!report)
		return 0;
	if (a->summary)
		report_summary(f, stdout);
	else if (!a->compares)
		report_table(t, &r, stdout);
	if (a->jobs)
		rc = report_jobs(t, a->jobs, err);
	if (rc >= 0 && a->svg)
		rc = report_svg(t, &r, a->svg, err);
	return rc;
}

static int run_all(struct args *a, struct error *err)
{
	struct trace t;
	struct figures f[LIST_MAX + 1];
	const char *label[LIST_MAX + 1], *set[3 * LIST_MAX];
	a->setup.set = a->set;
	a->setup.sets = a->sets;
	int rc = trace_read(a->trace, &t, err);
	if (rc < 0)
		return rc;
	if (!a->setup.conf && !a->setup.nodes)
		a->setup.nodes = t.procs;
	if (!a->setup.conf && !a->setup.nodes)
		rc = error_set(err, EINVAL, "--conf or --nodes: the trace does not say how large its machine was");
	a->setup.cpus = a->setup.cpus ? a->setup.cpus : 1;
	const char *conf = a->setup.conf ? strrchr(a->setup.conf, '/') : NULL;
	label[0] = a->setup.policy ? a->setup.policy : conf ? conf + 1 : a->setup.conf ? a->setup.conf : "berth";
	if (rc >= 0)
		rc = run_one(a, &a->setup, &t, &f[0], true, err);
	for (size_t i = 0; i < a->compares && rc >= 0; i++) {
		struct run_setup s;
		char *text = xstrdup(a->compare[i]);
		rc = changed(&a->setup, text, &s, set, err);
		label[i + 1] = a->compare[i];
		if (rc >= 0)
			rc = run_one(a, &s, &t, &f[i + 1], false, err);
		free(text);
	}
	if (rc >= 0 && a->compares)
		report_compare(label, f, a->compares + 1, stdout);
	trace_fini(&t);
	return rc;
}

static bool is_openb(const char *path)
{
	const char *base = strrchr(path, '/');
	return str_starts(base ? base + 1 : path, "openb_pod_list");
}

static int fail(const struct error *err)
{
	fprintf(stderr, "berth sim: error: %s\n", err->line);
	if (err->hint[0])
		fprintf(stderr, "berth sim: %s\n", err->hint);
	return 1;
}

int main(int argc, char **argv)
{
	static struct args a = { .share = { .placement = "all", .seeds = 10, .first_seed = 1, .load = 1.3 } };
	struct error err = { 0 };
	log_init("berth sim", LOG_L_ERROR);
	int first = opt_parse(rows, ROWS, argc, argv, false, take, &a, &err);
	if (first < 0)
		return fail(&err);
	if (first < argc) {
		error_set(&err, EINVAL, "unexpected argument \"%s\"", argv[first]);
		return fail(&err);
	}
	if (a.help) {
		opt_print_help("berth sim --trace FILE (--conf FILE | --nodes N) [OPTIONS]", rows, ROWS);
		return 0;
	}
	if (check(&a, &err) < 0)
		return fail(&err);
	a.share.pods = a.trace;
	int rc = is_openb(a.trace) ? share_run(&a.share, &err) : run_all(&a, &err);
	return rc < 0 ? fail(&err) : 0;
}
