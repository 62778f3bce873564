/* scripts.h - the table of batch scripts with their environments: written with the job, never kept in memory
 * A record is an encoded ScriptRsp, so that RPC_SCRIPT answers with its bytes. Its key is the id of the submission: all tasks of an array share it, and it goes
 * when the last of them is forgotten. */
#pragma once
#include "ctld/ctld.h"

/* In the open turn. */
void scripts_put(struct ctld *d, uint32_t job_id, const Pb__SubmitReq *req);
/* A job record is gone: drop its script unless other tasks of the array need it. */
void scripts_forget(struct ctld *d, uint32_t job_id);
/* Of a job or array task. *ret by malloc. */
int scripts_get(struct ctld *d, uint32_t job_id, uint32_t array_job_id, void **ret, size_t *ret_len, struct error *err);
