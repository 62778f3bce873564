/* script.h - the batch script as a file in the spool: jobNNNNN/slurm_script, the user's own */
#pragma once
struct step;
/* 0; -1 and the step's note filled. Nothing to do for a step. */
int script_write(struct step *s);
void script_remove(struct step *s);
