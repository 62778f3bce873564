/* report.c - figures of a simulated trace, as text, lines for programs, CSV and a picture (see run.h)
 * wait = start - submission; bounded slowdown = max(1, (wait + run) / max(run, 10 s)). A job that was refused counts nowhere but in `refused`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/run.h"

#define BOUND_SEC 10.0

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The smallest value that at least `share` of all do not exceed. */
static double quantile(const double *sorted, size_t n, double share)
{
	size_t k = (size_t)(share * (double)n + 0.999999);
	return n ? sorted[k ? (k > n ? n : k) - 1 : 0] : 0;
}

static double slowdown(double wait, double run)
{
	double s = (wait + run) / (run > BOUND_SEC ? run : BOUND_SEC);
	return s > 1 ? s : 1;
}

struct figures figures_of(const struct trace *t, const struct run_result *r, uint32_t user, uint32_t part)
{
	struct figures f = { 0 };
	double *wait = xmalloc((t->n + 1) * sizeof *wait), *bsld = xmalloc((t->n + 1) * sizeof *bsld);
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_job *j = &t->job[i];
		if ((user != UINT32_MAX && j->user != user) || (part != UINT32_MAX && j->part != part))
			continue;
		f.refused += j->state == TRACE_REFUSED;
		f.left += j->state == TRACE_WAITS;
		if (j->state != TRACE_ENDED)
			continue;
		double run = (double)(j->end - j->start);
		wait[f.jobs] = (double)(j->start - j->submit);
		bsld[f.jobs] = slowdown(wait[f.jobs], run);
		f.wait_avg += wait[f.jobs];
		f.bsld_avg += bsld[f.jobs];
		f.cpu_sec += run * j->cpus;
		f.gpu_sec += run * j->gpus;
		f.jobs++;
	}
	qsort(wait, f.jobs, sizeof *wait, by_value);
	qsort(bsld, f.jobs, sizeof *bsld, by_value);
	if (f.jobs) {
		f.wait_avg /= (double)f.jobs;
		f.bsld_avg /= (double)f.jobs;
		f.wait_median = quantile(wait, f.jobs, 0.5);
		f.wait_p95 = quantile(wait, f.jobs, 0.95);
		f.wait_max = wait[f.jobs - 1];
		f.bsld_median = quantile(bsld, f.jobs, 0.5);
	}
	f.makespan = r->last > r->first ? (double)(r->last - r->first) : 0;
	if (f.makespan > 0) {
		f.utilisation = r->capacity_cpus ? f.cpu_sec / (f.makespan * (double)r->capacity_cpus) : 0;
		f.gpu_utilisation = r->capacity_gpus ? f.gpu_sec / (f.makespan * (double)r->capacity_gpus) : 0;
	}
	free(wait);
	free(bsld);
	return f;
}

void report_summary(const struct figures *f, FILE *out)
{
	fprintf(out, "jobs %zu jobs\n", f->jobs);
	fprintf(out, "refused %zu jobs\n", f->refused);
	fprintf(out, "never_started %zu jobs\n", f->left);
	fprintf(out, "wait_avg %.2f min\n", f->wait_avg / 60);
	fprintf(out, "wait_median %.2f min\n", f->wait_median / 60);
	fprintf(out, "wait_p95 %.2f min\n", f->wait_p95 / 60);
	fprintf(out, "wait_max %.2f min\n", f->wait_max / 60);
	fprintf(out, "bsld_avg %.2f ratio\n", f->bsld_avg);
	fprintf(out, "bsld_median %.2f ratio\n", f->bsld_median);
	fprintf(out, "utilisation %.2f %%\n", f->utilisation * 100);
	if (f->gpu_sec > 0)
		fprintf(out, "gpu_utilisation %.2f %%\n", f->gpu_utilisation * 100);
	fprintf(out, "makespan %.2f h\n", f->makespan / 3600);
}

static void table_row(const char *name, const struct figures *f, double share, FILE *out)
{
	fprintf(out, "%-20s %8zu %10.1f %10.1f %10.1f %10.1f %10.2f %7.1f %%\n", name, f->jobs, f->wait_avg / 60, f->wait_median / 60, f->wait_p95 / 60, f->wait_max / 60,
		f->bsld_avg, share * 100);
}

struct group { uint32_t index; struct figures f; };

static int by_use(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	if (x->f.cpu_sec != y->f.cpu_sec)
		return x->f.cpu_sec > y->f.cpu_sec ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void table_groups(const struct trace *t, const struct run_result *r, bool users, FILE *out)
{
	enum { SHOWN = 20 };
	size_t n = users ? t->users : t->parts;
	struct group *g = xcalloc(n + 1, sizeof *g);
	for (size_t i = 0; i < n; i++) {
		g[i].index = (uint32_t)i;
		g[i].f = figures_of(t, r, users ? (uint32_t)i : UINT32_MAX, users ? UINT32_MAX : (uint32_t)i);
	}
	qsort(g, n, sizeof *g, by_use);
	for (size_t i = 0; i < n && i < SHOWN; i++) {
		const char *name = (users ? t->user : t->part)[g[i].index];
		table_row(*name ? name : "(none)", &g[i].f, g[i].f.utilisation, out);
	}
	if (n > SHOWN)
		fprintf(out, "and %zu more that used less\n", n - SHOWN);
	free(g);
}

void report_table(const struct trace *t, const struct run_result *r, FILE *out)
{
	struct figures all = figures_of(t, r, UINT32_MAX, UINT32_MAX);
	bool days = all.makespan >= 86400;
	fprintf(out, "%zu jobs in %.1f %s on %llu CPUs", all.jobs, all.makespan / (days ? 86400 : 60), days ? "days" : "minutes", (unsigned long long)r->capacity_cpus);
	if (r->capacity_gpus)
		fprintf(out, " and %llu GPUs", (unsigned long long)r->capacity_gpus);
	fprintf(out, "; utilisation %.1f %%", all.utilisation * 100);
	if (r->capacity_gpus)
		fprintf(out, ", of the GPUs %.1f %%", all.gpu_utilisation * 100);
	fprintf(out, "\n");
	if (t->skipped)
		fprintf(out, "%zu records of the trace say too little and are left out\n", t->skipped);
	if (r->refused)
		fprintf(out, "%zu jobs are refused; the first: %s\n", r->refused, r->refused_why);
	if (r->left)
		fprintf(out, "%zu jobs never start; reason of the first: %s\n", r->left, r->left_why);
	fprintf(out, "\n%-20s %8s %10s %10s %10s %10s %10s %9s\n", "", "JOBS", "WAIT AVG", "MEDIAN", "95 %", "LARGEST", "SLOWDOWN", "CPU SHARE");
	table_row("all", &all, all.utilisation, out);
	fprintf(out, "\nby partition\n");
	table_groups(t, r, false, out);
	fprintf(out, "\nby user, those who used most\n");
	table_groups(t, r, true, out);
	fprintf(out, "\nWaits are in minutes. Slowdown is the average bounded slowdown (10 s).\n");
}

void report_compare(const char *const *label, const struct figures *f, size_t n, FILE *out)
{
	int w = 40;
	for (size_t i = 0; i < n; i++)
		w = strlen(label[i]) > (size_t)w ? (int)strlen(label[i]) : w;
	fprintf(out, "%-*s %8s %10s %10s %10s %10s %10s %9s %12s\n", w, "", "JOBS", "WAIT AVG", "MEDIAN", "95 %", "LARGEST", "SLOWDOWN", "UTILISED", "MAKESPAN");
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%-*s %8zu %10.1f %10.1f %10.1f %10.1f %10.2f %7.1f %% %10.1f h\n", w, label[i], f[i].jobs, f[i].wait_avg / 60, f[i].wait_median / 60,
			f[i].wait_p95 / 60, f[i].wait_max / 60, f[i].bsld_avg, f[i].utilisation * 100, f[i].makespan / 3600);
	for (size_t i = 0; i < n; i++) /* the rest may look better for it */
		if (f[i].refused || f[i].left)
			fprintf(out, "%s: refused %zu, never started %zu\n", label[i], f[i].refused, f[i].left);
	fprintf(out, "Waits are in minutes.\n");
}

int report_jobs(const struct trace *t, const char *path, struct error *err)
{
	static const char *const state[] = { "never started", "refused", "running", "ended" };
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;
	if (!f)
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	fprintf(f, "job,user,partition,cpus,gpus,limit_min,submit,start,end,wait_sec,run_sec,bsld,state\n");
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_job *j = &t->job[i];
		double wait = (double)(j->start - j->submit), run = (double)(j->end - j->start);
		fprintf(f, "%u,%s,%s,%u,%u,%u,%llu,", j->number, t->user[j->user], t->part[j->part], j->cpus, j->gpus, j->limit_min, (unsigned long long)j->submit);
		if (j->state == TRACE_ENDED)
			fprintf(f, "%llu,%llu,%.0f,%.0f,%.2f,%s\n", (unsigned long long)j->start, (unsigned long long)j->end, wait, run, slowdown(wait, run), state[j->state]);
		else
			fprintf(f, ",,,,,%s\n", state[j->state]);
	}
	int bad = ferror(f) | (f != stdout ? fclose(f) : fflush(f));
	return bad ? error_set(err, EIO, "%s could not be written", path) : 0;
}

/* --- the picture: CPUs in use and CPUs asked for by waiting jobs, over time ----------------------- */

enum { W = 1200, H = 400, LEFT = 70, TOP = 30, COLUMNS = W - LEFT - 10 };

static void add_range(double *column, const struct run_result *r, double from, double to, double amount)
{
	double span = (double)(r->last - r->first) / COLUMNS;
	for (size_t c = (size_t)(from / span); c < COLUMNS && (double)c * span < to; c++) {
		double lo = (double)c * span > from ? (double)c * span : from, hi = (double)(c + 1) * span < to ? (double)(c + 1) * span : to;
		column[c] += hi > lo ? amount * (hi - lo) / span : 0;
	}
}

static void area(FILE *f, const double *column, double top, const char *colour)
{
	fprintf(f, "<polygon fill=\"%s\" points=\"%d,%d", colour, LEFT, H - TOP);
	for (int c = 0; c < COLUMNS; c++) {
		double y = column[c] / top > 1 ? 1 : column[c] / top;
		fprintf(f, " %d,%.1f", LEFT + c, H - TOP - y * (H - 2 * TOP));
	}
	fprintf(f, " %d,%d\"/>\n", LEFT + COLUMNS - 1, H - TOP);
}

int report_svg(const struct trace *t, const struct run_result *r, const char *path, struct error *err)
{
	double *busy = xcalloc(COLUMNS, sizeof *busy), *asked = xcalloc(COLUMNS, sizeof *asked), top = (double)r->capacity_cpus;
	FILE *f = fopen(path, "we");
	if (!f) {
		free(busy);
		free(asked);
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_job *j = &t->job[i];
		if (j->state != TRACE_ENDED)
			continue;
		add_range(busy, r, (double)(j->start - r->first), (double)(j->end - r->first), j->cpus);
		add_range(asked, r, (double)(j->submit - r->first), (double)(j->start - r->first), j->cpus);
	}
	for (int c = 0; c < COLUMNS; c++) {
		asked[c] += busy[c];
		top = asked[c] > top ? asked[c] : top;
	}
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", W, H);
	area(f, asked, top, "#f4c27a");
	area(f, busy, top, "#3b76a8");
	double line = H - TOP - (double)r->capacity_cpus / top * (H - 2 * TOP);
	fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#a02020\"/>\n", LEFT, W - 10, line, line);
	fprintf(f, "<text x=\"4\" y=\"%.1f\">%llu CPUs</text>\n<text x=\"4\" y=\"%d\">%.0f</text>\n", line + 4, (unsigned long long)r->capacity_cpus, TOP, top);
	fprintf(f, "<text x=\"%d\" y=\"18\"><tspan fill=\"#3b76a8\">CPUs in use</tspan>, above them <tspan fill=\"#b07a20\">CPUs that waiting jobs ask for</tspan></text>\n", LEFT);
	for (int d = 0; d <= 8; d++)
		fprintf(f, "<text x=\"%d\" y=\"%d\">day %.1f</text>\n", LEFT + d * (COLUMNS - 40) / 8, H - 8, (double)(r->last - r->first) / 86400 * d / 8);
	fprintf(f, "</svg>\n");
	free(busy);
	free(asked);
	return ferror(f) | fclose(f) ? error_set(err, EIO, "%s could not be written", path) : 0;
}
