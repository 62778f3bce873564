/* restore.h - the saved state into the core at start
 * A thread reads the records, looks whether they are whole and unpacks those of jobs, while the loop's thread sets up nodes and gives the core what is read. */
#pragma once
#include "ctld/ctld.h"

struct restore;
/* Begins to read; the store is not written to before restore_end. */
struct restore *restore_begin(struct ctld *d);
/* Nodes, reservations and jobs into the core, then EV_RESTORE_DONE once all tables were found whole. Those that cannot be read are refused (-EBADMSG), with -i left out. */
int restore_all(struct restore *r, struct error *err);
/* At any time; waits for the thread. NULL is allowed. */
void restore_end(struct restore *r);
