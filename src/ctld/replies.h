/* replies.h - parts of answers that several handlers put together */
#pragma once
#include "ctld/ctld.h"
#include "ctld/cred.h"
#include "ctld/ident.h"
#include "ctld/turn.h"

/* Who asks, for the core. id NULL: names are looked up here. */
void reply_caller(struct ctld *d, const struct wire_req *req, const struct ident *id, struct core_caller *ret);
/* The job's record, unpacked. */
Pb__JobRecord *reply_record(struct ctld *d, const struct core_job *j);
/* Record and node addresses of a job that has nodes; NULL when it has none. */
/* Records of all components of a heterogeneous job, by its leader's id; none for other jobs. The caller's to free. */
size_t reply_components(struct ctld *d, uint32_t job_id, Pb__JobRecord ***ret);
Pb__AllocInfo *reply_alloc(struct ctld *d, uint32_t job_id);
void reply_alloc_free(Pb__AllocInfo *a);
/* Ask the core for a step; withdrawn when the caller goes away. finish must begin with wire_req_on_gone(c->req, NULL, NULL). */
void reply_step_ask(struct ctld *d, struct wire_req *req, const Pb__StepDesc *desc, call_finish_fn finish);
void reply_drain_ask(struct ctld *d, struct wire_req *req, uint32_t job_id, call_finish_fn finish); /* when the job has no step left */
/* Sign the step just made: sets step->cred, which the caller clears and frees. job NULL: taken from the core. NULL when the step was refused. */
Pb__SignedCred *reply_step_cred(struct ctld *d, Pb__StepCreateRsp *step, uint32_t job_id, const Pb__StepDesc *desc, const Pb__JobRecord *job);
void reply_result(struct ctld *d, struct wire_req *req, int code, const char *detail);
/* Must `what` ("jobs", "nodes", ...) of others be kept from the caller (PrivateData)? */
bool reply_is_private(const struct ctld *d, const struct wire_req *req, const char *what);
