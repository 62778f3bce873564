/* site.h - PrologSlurmctld and EpilogSlurmctld: the site's programs that slurmctld runs for a job (core/configure.c says when) */
#pragma once
#include "ctld/ctld.h"

/* FX_SCRIPT: begun when what it tells of is on disk; its end is the core's EV_SCRIPT_DONE. */
void site_run(struct ctld *d, const struct core_effect *e);
/* The daemon ends: programs that run are killed; they are begun again by the next slurmctld. */
void site_stop(void);
