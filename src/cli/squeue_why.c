/* squeue_why.c - squeue --why: for each pending job that passes the filters, everything that holds it back, a line each */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/squeue.h"
#include "cli/whyview.h"

int squeue_why_print(const struct squeue *q, struct client *c, const uint32_t *id, size_t n)
{
	struct error err = { 0 };
	struct str out = STR_INIT;
	Pb__WhyRsp none = PB__WHY_RSP__INIT, *rsp = &none;
	char **word = xcalloc(n + 1, sizeof(*word));
	for (size_t i = 0; i < n; i++)
		word[i] = xasprintf("%u", id[i]);
	none.now = (uint64_t)show_env.now;
	int rc = n ? why_call(c, word, n, NULL, true, &rsp, &err) : 0;
	for (size_t i = 0; i < n; i++)
		free(word[i]);
	free(word);
	if (rc < 0) {
		fprintf(stderr, "slurm_load_jobs error: %s\n", error_text(rc));
		return 1;
	}
	if (q->json || q->yaml) {
		why_json(rsp, q->yaml != NULL, q->argv, q->argc);
	} else {
		for (size_t i = 0; i < rsp->n_job; i++)
			put_why(&out, rsp->job[i], false);
		out_flush(&out);
	}
	str_fini(&out);
	if (rsp != &none)
		protobuf_c_message_free_unpacked(&rsp->base, NULL);
	return 0;
}
