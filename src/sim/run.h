/* run.h - a trace through the core on virtual time, and what came of it
 * The core, its rules and its configuration are those of slurmctld; only nodes and time are played: a job starts when it is launched, ends after the
 * run time in the trace (or by its limit), and its nodes are free at that moment. Events of one second are given together. */
#pragma once
#include <stdio.h>

#include "core/core.h"
#include "sim/trace.h"

struct run_setup {
	const char *conf;                 /* slurm.conf; NULL: nodes, cpus, gpus */
	const char *const *set;           /* "Key=Value", replacing what conf says */
	size_t sets;
	uint32_t nodes, cpus, gpus;
	const char *policy;               /* NULL: as the configuration says, or berth */
};
struct run_result {
	uint64_t capacity_cpus, capacity_gpus, steps;
	uint64_t first, last;             /* first submission, last end */
	size_t refused;
	char refused_why[300];            /* the first refusal */
	size_t left;                      /* that never start */
	char left_why[64];                /* reason of the first */
};
/* Plays all jobs; start, end and state of each are in t. 0 or negative. */
int run_trace(const struct run_setup *s, struct trace *t, struct run_result *ret, struct error *err);
/* "fcfs", "easy", "easy-sjbf", "conservative", "berth" into parameters; false: no such policy. */
bool run_policy(const char *name, struct core_params *p);
/* The setting --set makes of a configuration: slurm.conf and friends, with lines replaced. Caller destroys. */
struct conf;
int run_conf(const struct run_setup *s, struct conf **ret, struct error *err);

/* report.c */
struct figures {
	size_t jobs, refused, left;
	double wait_avg, wait_median, wait_p95, wait_max; /* seconds */
	double bsld_avg, bsld_median;
	double cpu_sec, gpu_sec;
	double utilisation, gpu_utilisation;              /* 0..1 */
	double makespan;                                  /* seconds */
};
/* Of the jobs for which user and part match (UINT32_MAX: all). */
struct figures figures_of(const struct trace *t, const struct run_result *r, uint32_t user, uint32_t part);
void report_summary(const struct figures *f, FILE *out);
void report_table(const struct trace *t, const struct run_result *r, FILE *out);
void report_compare(const char *const *label, const struct figures *f, size_t n, FILE *out);
int report_jobs(const struct trace *t, const char *path, struct error *err);
int report_svg(const struct trace *t, const struct run_result *r, const char *path, struct error *err);

/* share.c: openb, GPU sharing */
struct share_setup { const char *nodes, *pods, *placement; uint32_t seeds, first_seed; double load; bool summary; };
int share_run(const struct share_setup *s, struct error *err);
