/* trace.h - lines for DebugFlags about what a turn of the core did: Steps, Gres, SelectType, License, Hetjob, TraceJobs, Dependency, Reservation,
 * and after a pass of the planner Backfill and Priority. Costs nothing while none of them is set. (Agent, Protocol and the rest are said where they happen.) */
#pragma once
#include "ctld/ctld.h"

/* The event was given to the core, which answered with `fx`; `planned`: a pass of the planner ended in it. */
void trace_turn(struct ctld *d, const struct core_event *ev, const struct effects *fx, bool planned);
