/* emulate.h - slurmd --emulate N: N nodes in one process, over the real protocol */
#pragma once
#include "noded/noded.h"
/* Plays opt.emulate nodes: the one named by -N (or the first configured) and those that follow it in slurm.conf. All must share its NodeAddr and Port: slurmctld
 * reaches them over one connection and names the node in each frame. They register, check credentials, run batch jobs by waiting as long as the script's
 * `sleep` commands ask, and report ends; steps connect to their srun and end likewise; no process is started. Returns the exit code. */
int emulate_main(struct noded *n);
/* Seconds the `sleep` commands of a batch script ask for together (sleep(1): fractions, suffixes s m h d); 0 where it has none. Bounded by one year. */
double emulate_script_sleep(const char *script, size_t len);
