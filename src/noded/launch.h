/* launch.h - may this run here? then: what slurmstepd must know to run it */
#pragma once
#include "noded/noded.h"
/* 0, or a negative code and err. The answer to the call is the caller's. */
/* The prolog before any step, and the extern step where slurmctld has signed one (jobs_prolog). */
int launch_prolog(struct noded *n, const Pb__PrologReq *m, struct error *err);
int launch_batch(struct noded *n, struct wire_req *req, struct error *err);
int launch_step(struct noded *n, struct wire_req *req, struct error *err);
