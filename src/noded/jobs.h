/* jobs.h - a job's life on this node: prolog, steps, termination, epilog
 *
 * A job is kept while it has steps, a script running, or a prolog whose epilog is still due. Jobs that are over are remembered for a while (job id and run), so that a
 * repeated order does not run an epilog twice and a late launch of an ended run is refused. */
#pragma once
#include "noded/noded.h"

struct node_step;
/* Start a step; after the job's prolog, where one is due. `start` is kept until then (the caller's stays his). 0 or error. */
int jobs_launch(struct noded *n, Pb__StepdStart *start, struct error *err);
void jobs_terminate(struct noded *n, const Pb__TerminateReq *req);
/* A step is over; event NULL: its slurmstepd was killed. */
void jobs_step_end(struct noded *n, struct node_step *st, const Pb__StepdEvent *event);
void jobs_step_adopted(struct noded *n, struct node_step *st);
void jobs_kill_failed(struct noded *n, struct node_step *st);
