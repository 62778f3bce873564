/* sstat.h - a line of sstat, and its fields (tables/fields_sstat.def) */
#pragma once
#include "cli/cells.h"
#include "cli/usageview.h"

struct sstat_row {
	const Pb__StepRecord *step;
	const Pb__StepUsage *usage;   /* over the nodes of this line */
	const char *nodes, *pids;
	struct usageview view;
};
extern const struct cells_field sstat_names[];
extern const size_t sstat_names_n;
void sstat_get(struct str *out, size_t field, const struct sstat_row *r);
/* "5.0", "5_2.batch" */
void sstat_step_name(const Pb__StepRecord *s, struct str *out);
