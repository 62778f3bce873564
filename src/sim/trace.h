/* trace.h - jobs of the past, as the simulator plays them again: read from a Standard Workload Format file, `sacct -P` output or openb tasks
 * Any of the files may be gzip-compressed. Times are whole seconds on the trace's own clock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct trace_job {
	uint64_t submit;
	uint32_t run_sec, limit_min;      /* it ends by itself after run_sec, or by its limit */
	uint32_t cpus, nodes, gpus;       /* of the whole job; nodes 0: as many as it takes */
	uint64_t mem_mb;                  /* of the whole job; 0: not said */
	uint32_t user, part;              /* index in trace.user, trace.part */
	uint32_t number;                  /* as the trace names it */
	/* what became of it */
	enum { TRACE_WAITS, TRACE_REFUSED, TRACE_RUNS, TRACE_ENDED } state;
	uint64_t start, end;
};
struct trace {
	struct trace_job *job;
	size_t n, cap;
	char **user, **part;
	size_t users, parts, user_cap, part_cap;
	uint32_t procs;                   /* MaxNodes / MaxProcs of the header; 0: not said */
	size_t skipped;                   /* records that say too little */
};

/* Jobs in order of submission. By name: .swf and .swf.gz, else by the header line of sacct -P. 0 or negative, err names file and line. */
int trace_read(const char *path, struct trace *ret, struct error *err);
void trace_fini(struct trace *t);
/* All jobs as before the run. */
void trace_rewind(struct trace *t);

/* openb: nodes with GPUs that tasks share in thousandths (openb.c). */
struct openb_node { uint32_t cpu_milli, mem_mb, gpus, model; };
struct openb_task { uint32_t cpu_milli, mem_mb, gpus, gpu_milli; uint64_t models; /* bits; 0: any */ };
struct openb {
	struct openb_node *node;
	struct openb_task *task;
	size_t nodes, tasks, node_cap, task_cap;
	char model[64][16];
	uint32_t models;
};
int openb_read(const char *node_path, const char *pod_path, struct openb *ret, struct error *err);
void openb_fini(struct openb *o);

/* A text file line by line, gzip or plain: lines without their newline, valid until the next call. */
struct lines;
struct lines *lines_open(const char *path, struct error *err);
char *lines_next(struct lines *l);
void lines_close(struct lines *l);
