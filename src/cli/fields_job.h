/* fields_job.h - the columns of jobs and of steps as field tables (rows: tables/fields_job.def, tables/fields_step.def)
 * Rows given to the getters: struct jobview for jobs, struct msgview of a StepRecord for steps. */
#pragma once
#include "cli/jobview.h"
#include "cli/table.h"

extern const struct field job_fields[];
extern const size_t job_fields_n;
extern const struct field step_fields[];
extern const size_t step_fields_n;
/* "5.0", "5.batch", "12_3.0" */
void put_step_id(struct str *out, const struct msgview *step);
uint64_t step_run_sec(const struct msgview *step);
