/* start.h - bringing slurmctld up, step by step, and reconfiguring it */
#pragma once
#include "ctld/ctld.h"

int start_all(struct ctld *d, bool change_dir, struct error *err);
/* (Re)opens the log file and sets the levels. */
void start_log(struct ctld *d);
