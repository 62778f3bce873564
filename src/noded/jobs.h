/* jobs.h - a job's life on this node: prolog, steps, termination, epilog
 *
 * A job is kept while it has steps, a script running, or a prolog whose epilog is still due. Jobs that are over are remembered for a while (job id and run), so that a
 * repeated order does not run an epilog twice and a late launch of an ended run is refused. */
#pragma once
#include "noded/noded.h"

struct node_step;
/* Start a step; after the job's prolog, where one is due. `start` is kept until then (the caller's stays his). 0 or error. */
int jobs_launch(struct noded *n, Pb__StepdStart *start, struct error *err);
/* Launches that waited for a prolog when slurmd was killed. */
void jobs_launch_again(struct noded *n);
/* Each launch that waits for its prolog. */
void jobs_each_waiting(const struct noded *n, void (*fn)(uint32_t job_id, uint32_t step_id, uint32_t restarts, void *arg), void *arg);
/* The prolog now, before any step (PrologFlags=Alloc), then the extern step (`start`, which stays the caller's; NULL: none). PROLOG_DONE, or LAUNCH_FAILED
 * with `prolog`, tells of its end; asked again it is told again. 0, or -ESLURM_ALREADY_DONE: this run of the job is over here. */
int jobs_prolog(struct noded *n, const Pb__PrologReq *req, const Pb__StepdStart *start);
/* It may not run here: slurmctld is told, who would wait for its end. */
void jobs_prolog_refused(struct noded *n, const Pb__PrologReq *req, const struct error *err);
void jobs_terminate(struct noded *n, const Pb__TerminateReq *req);
/* A step is over; event NULL: its slurmstepd was killed. */
void jobs_step_end(struct noded *n, struct node_step *st, const Pb__StepdEvent *event);
/* Has this run of a batch job ended on this node, as far as is remembered? */
bool jobs_batch_ran(uint32_t job_id, uint32_t restarts);
/* It was over before this slurmd was started. */
void jobs_were_over(uint32_t job_id, uint32_t restarts);
void jobs_step_adopted(struct noded *n, struct node_step *st);
/* A step could not be launched through a fault of this node: it is to be drained. */
void jobs_node_fault(struct noded *n, const char *text);
