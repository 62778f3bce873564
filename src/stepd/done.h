/* done.h - the completion of a step, kept in the spool until slurmctld has it
 *
 * slurmstepd writes `done.JOB.STEP` (an encoded StepdEvent of kind DONE), then exits, which closes its connection; slurmd takes the file
 * when it sees that, and removes it when slurmctld has answered. A step without connection and file was killed from outside. */
#pragma once
struct step;
void done_write(struct step *s);
