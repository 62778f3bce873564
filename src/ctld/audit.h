/* audit.h - what slurmctld's log says of jobs and of who changed what: one line each
 * A job that gets nodes, ends or goes back to the queue; a request that ended or changed jobs, nodes or partitions, with its uid. */
#pragma once
#include "ctld/ctld.h"

/* FX_ALLOCATED. */
void audit_allocated(struct ctld *d, uint32_t job_id);
/* FX_ENDED: the job has ended, or waits again. One cancelled while it waited is told by the request that did it (audit_request). */
void audit_ended(struct ctld *d, uint32_t job_id);
/* A request of a kind that changes something, and its answer (KillRsp, ResultList or Result). Refused parts are not told: nothing came of them. */
void audit_request(uint32_t uid, const ProtobufCMessage *req, const ProtobufCMessage *rsp);
