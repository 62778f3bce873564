/* bcast.h - a slurmstepd that only writes one file, as the user (sbcast, srun --bcast)
 *
 * Started by slurmd for a LaunchSpec with `bcast`; connects to the sender as to an srun (wire/stepio.h, BLOCK and what follows) and exits. It is no step: nothing in
 * the spool, no report to slurmctld. */
#pragma once
struct step;
/* Never returns. */
void bcast_run(struct step *s) __attribute__((noreturn));
