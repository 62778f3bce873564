/* mute.h - slurmstepds that do not answer (stopped, swapped out, hung)
 *
 * slurmd waits for none of them: it writes what it has to say and goes on. One that was told to end its step, and neither does nor answers for KillWait and
 * UnkillableStepTimeout, is killed, and what it held is cleaned up as after any slurmstepd's death; meanwhile the node is drained ("Kill task failed"). */
#pragma once
#include "noded/noded.h"

struct node_step;
/* It was just told to end its step within `kill_wait_sec`. */
void mute_watch(struct node_step *st, uint32_t kill_wait_sec);
