/* sacct.h - a line of sacct, and its fields
 * A row is a job (step NULL) or one of its steps. Messages belong to the reply and live until the end of the command. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cli/cells.h"
#include "cli/usageview.h"
#include "proto/accounting.pb-c.h"
#include "proto/job.pb-c.h"

struct sacct_env {
	uint64_t now;
	bool expand, truncate;
	struct usageview view;
	uint64_t from, to;            /* the window, for --truncate */
	const char *tres_tracked;     /* AccountingStorageTRES: typed GRES shown */
};
extern struct sacct_env sacct_env;

struct sacct_row {
	const Pb__DbdJob *db;
	const Pb__JobRecord *job;
	const Pb__StepRecord *step;
	int64_t task;                 /* --array: this task of a pending array; -1: none */
	uint64_t start, end;          /* 0: not yet */
	uint64_t user_usec, sys_usec; /* of a job: sum over its steps */
	uint64_t joules;
};
/* Fills start, end and the sums from the messages. */
void sacct_row_init(struct sacct_row *r, const Pb__DbdJob *db, const Pb__JobRecord *job, const Pb__StepRecord *step, int64_t task);

enum sacct_field {
#define SACCT(name, width, getter) SACCT_##name,
#include "tables/fields_sacct.def"
#undef SACCT
};
extern const struct cells_field sacct_names[];
extern const size_t sacct_names_n;
void sacct_get(struct str *out, size_t field, const struct sacct_row *r);
