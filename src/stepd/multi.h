/* multi.h - srun --multi-prog: each rank its own program; %t is the rank, %o its place within the range */
#pragma once
struct step;
struct task;
/* Set t->argv. 0; -1 and the step's note filled when no line names the rank. */
int multi_find(struct step *s, struct task *t);
