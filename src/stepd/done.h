/* done.h - the completion of a step, kept in the spool until slurmctld has it
 *
 * Before it starts slurmstepd slurmd makes `done.JOB.STEP.part`: the completion as it will be if slurmstepd is killed. A spool without room stops the
 * step there, before it begins; and its end needs nothing of a disk that has filled up meanwhile, since the block it is written to is there. The
 * file is locked (flock) and handed over as descriptor 4: as long as the lock holds, slurmstepd lives, whether or not it can be reached yet. At the
 * end the true completion takes the place of the other, and is renamed to `done.JOB.STEP` (an encoded StepdEvent); then slurmstepd exits, which
 * closes its connection. slurmd takes the file when it sees that, and removes it when slurmctld has answered. */
#pragma once
#include <stdbool.h>

#include "proto/agent.pb-c.h"
struct step;
/* Takes descriptor 4. 0; -1 and the step's note filled. */
int done_prepare(struct step *s);
/* Before the first task: what is left of a slurmstepd that is killed says from now on that tasks may have run. 0; -1 and the step's note filled. */
int done_begins(struct step *s);
/* True: it is in the spool. */
bool done_write(struct step *s);
/* The completion as it stands; strings are the step's, its usage is the caller's to free. */
void done_fill(struct step *s, Pb__StepdEvent *event);
