/* unkillable.h - processes that do not end although they were killed (UnkillableStepTimeout)
 *
 * After the timeout slurmd is told once, with what hangs and what it waits on; it drains the node. slurmstepd keeps watching: when they are gone it ends as
 * usual, and slurmd has the node resumed (noded/stuck.h). */
#pragma once
struct step;
/* SIGKILL was sent to the step: from now on the time counts. */
void unkillable_watch(struct step *s);
