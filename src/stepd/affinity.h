/* affinity.h - which CPUs a task may use, from the CPU ids slurmctld gave the step
 * Ids are abstract (core-major) and become those of the kernel through the list slurmd made; CPUs the machine does not have are
 * skipped (nodes may pretend more than there are), and when none is left the task is not bound. */
#pragma once
struct step;
struct task;
/* In the child, before it becomes the user. */
void affinity_apply(const struct step *s, const struct task *t);
/* --cpu-bind=verbose: one line on the task's stderr. */
void affinity_say(const struct step *s, const struct task *t);
