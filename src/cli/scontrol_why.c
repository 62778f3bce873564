/* scontrol_why.c - "scontrol why JOB[,JOB...]": everything that holds a job back, or why it ended
 * Without a job: all pending jobs in short, as squeue --why. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/alloc.h"
#include "cli/scontrol.h"
#include "cli/whyview.h"

void scontrol_why(struct scontrol *s, int argc, char **argv)
{
	struct error err = { 0 };
	struct str out = STR_INIT;
	Pb__WhyRsp *rsp = NULL;
	char **word = NULL;
	size_t n = 0, cap = 0;
	for (int i = 1; i < argc; i++) {
		char *at = argv[i], *piece;
		if (!strncasecmp(at, "jobid=", 6))
			at += 6;
		while ((piece = str_next(&at, ",")))
			if (*piece) {
				word = xgrow(word, &cap, n + 1, sizeof(*word));
				word[n++] = piece;
			}
	}
	int rc = why_call(scontrol_client(s), word, n, NULL, n == 0, &rsp, &err);
	free(word);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_jobs error: %s", error_text(rc));
		return;
	}
	if (s->json || s->yaml) {
		why_json(rsp, s->yaml != NULL, s->argv, s->argc);
	} else {
		for (size_t i = 0; i < rsp->n_job; i++) {
			put_why(&out, rsp->job[i], n != 0);
			if (n && i + 1 < rsp->n_job)
				str_add_c(&out, '\n');
		}
		if (!rsp->n_job)
			str_add(&out, "No jobs are pending\n");
		out_flush(&out);
	}
	str_fini(&out);
	protobuf_c_message_free_unpacked(&rsp->base, NULL);
}
