/* scripts.c - see scripts.h */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ctld/scripts.h"
#include "ctld/turn.h"

void scripts_put(struct ctld *d, uint32_t job_id, const Pb__SubmitReq *req)
{
	Pb__ScriptRsp rec = PB__SCRIPT_RSP__INIT;
	rec.has_script = req->has_script;
	rec.script = req->script;
	rec.n_env = req->n_env;
	rec.env = req->env;
	size_t len = pb__script_rsp__get_packed_size(&rec);
	uint8_t *data = xmalloc(len);
	pb__script_rsp__pack(&rec, data);
	turn_put(d, STORE_SCRIPT, job_id, data, len);
}

/* The job's record is gone, but tasks split off from it may still be there and need the script; then the last of them takes it along. */
void scripts_forget(struct ctld *d, uint32_t job_id)
{
	char text[16];
	uint32_t *ids = NULL;
	size_t n = 0;
	snprintf(text, sizeof text, "%u", job_id);
	bool used = !core_job_resolve(d->core, text, &ids, &n) && n;
	free(ids);
	if (!used)
		turn_remove(d, STORE_SCRIPT, job_id);
}

int scripts_get(struct ctld *d, uint32_t job_id, uint32_t array_job_id, void **ret, size_t *ret_len, struct error *err)
{
	int rc = store_get(d->store, STORE_SCRIPT, job_id, ret, ret_len, err);
	if (rc == -ENOENT && array_job_id && array_job_id != job_id)
		rc = store_get(d->store, STORE_SCRIPT, array_job_id, ret, ret_len, err);
	return rc;
}
