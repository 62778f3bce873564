/* namespace.h - private folders of a job: /tmp, /dev/shm (NamespaceType=namespace/tmpfs, job_container.conf)
 *
 * BASE/JOBID holds a folder for each private one (for /dev/shm a tmpfs), made by the job's first step on the node and taken away by slurmd when the job has ended
 * there (noded/namespace.h). Each task gets a mount namespace of its own in which they are bound over the real ones: steps of a job share them,
 * other jobs and the host do not see them. slurmstepd itself, and files it opens for --output, stay outside. */
#pragma once
struct step;
/* 0; -1 and the step's note. Nothing to do where no base is set. */
int namespace_prepare(struct step *s);
/* In a child that is still root. 0 or -errno. */
int namespace_enter(const struct step *s);
