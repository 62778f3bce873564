/* zygote.h - a slurmstepd that waits to be forked (noded/stepd.h says what for) */
#pragma once

/* Serves until slurmd closes its end, then the process exits. Returns in each child: a slurmstepd of its own session, with the channel to slurmd as
 * descriptor ZYGOTE_CONTROL and the will as the next, as if slurmd had started it. argv's memory becomes the title. */
void zygote_serve(int argc, char **argv);
