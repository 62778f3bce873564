/* usage.h - what the tasks of a step have used: a Pb__StepUsage, built task by task on a node, then node by node
 *
 * Everything in it is allocated as protobuf-c does: pb__step_usage__free_unpacked frees it. */
#pragma once
#include "base/error.h"
#include "proto/step.pb-c.h"

enum usage_kind { USAGE_CPU, USAGE_RSS, USAGE_VSIZE, USAGE_PAGES, USAGE_READ, USAGE_WRITTEN, USAGE_GPU_UTIL, USAGE_GPU_MEM, USAGE_ENERGY, USAGE_KINDS };
#define USAGE_TASK_KINDS USAGE_GPU_UTIL        /* those before it are of every task */

/* The figure of that kind; NULL: not measured. */
Pb__Figure *usage_figure(const Pb__StepUsage *u, enum usage_kind kind);
/* One task's value of one kind. */
void usage_add(Pb__StepUsage *u, enum usage_kind kind, const char *node, uint32_t task, uint64_t value);
/* One task's peak of one kind, and its mean over time: the most is of peaks, sum and least of means. */
void usage_add_mean(Pb__StepUsage *u, enum usage_kind kind, const char *node, uint32_t task, uint64_t peak, uint64_t mean);
/* Another node's part. */
void usage_merge(Pb__StepUsage *u, const Pb__StepUsage *other);
/* Seconds between samples of tasks in "30", "task=30,energy=0" (--acctg-freq, JobAcctGatherFrequency). *ret stays where the text does not say.
 * 0; else a negative code, with the piece that is not understood in err. */
int usage_frequency(const char *text, uint32_t *ret, struct error *err);
