/* reads.h - the kept answer of the last job list */
#pragma once
#include "ctld/ctld.h"

struct reads *reads_create(void);
void reads_destroy(struct reads *r);
/* The core took an event: what was kept is old. */
void reads_core_changed(struct reads *r);
/* Give its memory back. */
void reads_forget(struct reads *r);
