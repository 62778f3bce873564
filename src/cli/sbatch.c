/* sbatch.c - submit a batch script
 *
 * Order of reading: command line, script (its #SBATCH lines), environment; jobopt knows which of them wins. Then one call, and with --wait one
 * long poll a job. Nothing is printed on success but the one line, so that callers who merge the streams can read it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/full.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/hetopt.h"
#include "cli/script.h"
#include "cli/plugins.h"
#include "cli/submit.h"
#include "model/batchscript.h"
#include "model/timespec.h"

static const char cmd[] = "sbatch";

/* Run the words of each directive through the option table. Returns 0 or the exit code. */
static int directives_apply(struct jobopt *o, const struct batchscript *b, const struct script *s)
{
	struct error err = { 0 };


	for (size_t i = 0; i < b->count; i++) {
		const struct batch_directive *d = &b->dir[i];
		char **argv = xcalloc(d->count + 2, sizeof(*argv));
		int rc;
		argv[0] = (char *)(uintptr_t)cmd;
		memcpy(argv + 1, d->word, d->count * sizeof(*argv));
		struct jobopt *k = hetopt_at(o, d->component, &err);
		rc = k ? jobopt_parse_words(k, (int)d->count + 1, argv, &err) : err.code;
		free(argv);
		if (rc < 0) {
			int code = jobopt_report(k ? k : o, &err);
			fprintf(stderr, "%s: it stands in line %u of %s\n", cmd, d->line, s->name);
			return code;
		}
	}
	return 0;
}

/* Things that are legal and nearly always a mistake; nothing of it where only the id is wanted. */
static void script_warn(const struct jobopt *o, const struct batchscript *b)
{
	if (o->quiet)
		return;
	if (b->ignored)
		fprintf(stderr, "%s: warning: %u #SBATCH line%s after the first command (line %u) %s not read; move %s above it\n", cmd, b->ignored,
			b->ignored == 1 ? "" : "s", b->first_command, b->ignored == 1 ? "is" : "are", b->ignored == 1 ? "it" : "them");
	if ((b->pbs || b->bsub) && !o->ignore_pbs)
		fprintf(stderr, "%s: warning: %u #PBS or #BSUB line%s not translated to Slurm options; use #SBATCH, or --ignore-pbs to silence this\n", cmd,
			b->pbs + b->bsub, b->pbs + b->bsub == 1 ? " is" : "s are");
}

static int script_read(struct jobopt *o, const char *file, struct script *s)
{
	struct error err = { 0 };
	struct batchscript b;
	int code;

	if (o->wrap && file) {
		script_report(cmd, "Script arguments not permitted with --wrap option");
		return 1;
	}
	if (script_load(file, o->wrap, s, &err) < 0) {
		script_report(cmd, err.line);
		return 1;
	}
	if (batchscript_parse(s->data, s->len, &b, &err) < 0) {
		fprintf(stderr, "%s: fatal: %s: %s\n", cmd, file || o->wrap ? s->name : "stdin", err.line);
		return 1;
	}
	code = directives_apply(o, &b, s);
	if (o->wait_end || getenv("SBATCH_WAIT"))
		full_needed();   /* it is to live longer (quick/malloc.c) */
	if (code == 0 && (!hetopt_at(o, b.components - 1, &err) || hetopt_spread(o, &err) < 0))
		code = jobopt_report(o, &err);
	if (code == 0)
		script_warn(o, &b);
	batchscript_fini(&b);
	return code;
}

/* --- answers -------------------------------------------------------------------------------------- */

static void print_id(const struct jobopt *o, const Pb__SubmitRsp *rsp)
{
	const char *cluster = o->clusters ? (rsp->cluster ? rsp->cluster : o->clusters) : NULL;

	if (o->quiet)
		return;
	if (o->parsable)
		printf(cluster ? "%u;%s\n" : "%u\n", rsp->job_id, cluster);
	else
		printf(cluster ? "Submitted batch job %u on cluster %s\n" : "Submitted batch job %u\n", rsp->job_id, cluster);
	fflush(stdout);
}

/* --- --wait --------------------------------------------------------------------------------------- */

static int exit_of(const Pb__JobRecord *job)
{
	int status = (int)job->exit_status;

	if (job->has_exit_status && WIFEXITED(status))
		return WEXITSTATUS(status) ? WEXITSTATUS(status) : job->state != PB__JOB_STATE__COMPLETED;
	return 1;
}

/* Waits for one job's end. Its exit code, or a negative code. */
static int job_wait(struct client *c, uint32_t job_id, struct error *err)
{
	Pb__WaitReq req = PB__WAIT_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	Pb__WaitRsp *rsp;
	int rc;

	req.job_id = job_id;
	req.until_end = true;
	rc = client_call(c, RPC_WAIT, &req.base, -1, &msg, err);
	if (rc < 0)
		return rc;
	rsp = (Pb__WaitRsp *)msg;
	if (rsp->code)
		rc = error_set(err, (int)rsp->code, "%s", rsp->detail ? rsp->detail : error_text((int)rsp->code));
	else
		rc = rsp->job ? exit_of(rsp->job) : 1;
	protobuf_c_message_free_unpacked(msg, NULL);
	return rc;
}

/* Looks at all tasks of an array: the highest exit code of the ended ones; *ret_open is one that has not ended, or 0. */
static int array_look(struct client *c, uint32_t array_id, uint32_t *ret_open, struct error *err)
{
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	char id[16], *selector = id;
	int rc, highest = 0;

	snprintf(id, sizeof(id), "%u", array_id);
	req.selector = &selector;
	req.n_selector = 1;
	req.has_with_finished = req.with_finished = true;
	req.has_show_all = req.show_all = true;
	rc = client_call(c, RPC_JOB_LIST, &req.base, 0, &msg, err);
	if (rc < 0)
		return rc;
	const Pb__JobListRsp *rsp = (const Pb__JobListRsp *)msg;
	*ret_open = 0;
	for (size_t i = 0; i < rsp->n_job; i++) {
		Pb__JobRecord *job = pb__job_record__unpack(NULL, rsp->job[i]->record.len, rsp->job[i]->record.data);
		if (!job)
			continue;
		if (job->state < PB__JOB_STATE__COMPLETED)
			*ret_open = job->job_id;
		else if (exit_of(job) > highest)
			highest = exit_of(job);
		pb__job_record__free_unpacked(job, NULL);
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	return highest;
}

static int wait_all(struct client *c, uint32_t job_id, bool array)
{
	struct error err = { 0 };
	int rc = job_wait(c, job_id, &err), highest = rc;

	while (array && rc >= 0) {
		uint32_t open = 0;
		rc = array_look(c, job_id, &open, &err);
		highest = rc > highest ? rc : highest;
		if (rc < 0 || open == 0)
			break;
		rc = job_wait(c, open, &err);
		highest = rc > highest ? rc : highest;
	}
	if (rc < 0) {
		fprintf(stderr, "%s: error: waiting for job %u: %s\n", cmd, job_id, err.line);
		return 1;
	}
	return highest;
}

/* --- main ----------------------------------------------------------------------------------------- */

static int submit(struct jobopt *o, const struct script *s)
{
	struct client *c = NULL;
	struct envlist env = ENVLIST_INIT;
	struct error err = { 0 };
	Pb__SubmitRsp *rsp = NULL;
	int code = 1;

	if (submit_env(o, &env, &err) < 0 || client_open_with(&c, plugins_conf(), &err) < 0) {
		fprintf(stderr, "%s: error: %s\n", cmd, err.line);
	} else if (submit_send(c, o, s, &env, NULL, &rsp, &err) < 0) {
		submit_refused(cmd, "Batch job submission failed", err.code, err.line);
	} else {
		if (!o->quiet)
			submit_user_msg(cmd, rsp->user_msg);
		if (o->test_only) {
			code = submit_estimate(cmd, rsp);
		} else if (rsp->code) {
			code = submit_refused(cmd, "Batch job submission failed", (int)rsp->code, rsp->detail);
		} else {
			print_id(o, rsp);
			code = o->wait_end ? wait_all(c, rsp->job_id, o->desc->array != NULL) : 0;
		}
		pb__submit_rsp__free_unpacked(rsp, NULL);
	}
	envlist_fini(&env);
	client_close(c);
	return code;
}

int main(int argc, char **argv)
{
	struct jobopt o;
	struct script s = { 0 };
	struct error err = { 0 };
	int first, code = 0;

	full_start(argv);
	log_init(cmd, LOG_L_INFO);
	jobopt_init(&o, JOBOPT_SBATCH);
	plugins_load(&o);
	first = hetopt_parse_args(&o, argc, argv, false, &err);
	for (struct jobopt *p = o.next; p && !o.wrap; p = p->next) /* said where it reads best: at the end */
		xstr_set(&o.wrap, p->wrap);
	if (first < 0)
		code = jobopt_report(&o, &err);
	else if (!jobopt_show(&o, &code)) {
		const char *file = first < argc ? argv[first] : NULL;
		code = script_read(&o, file, &s);
		if (code == 0 && hetopt_finish(&o, &err) < 0)
			code = jobopt_report(&o, &err);
		if (code == 0) {
			int rest = file ? argc - first - 1 : 0;
			for (struct jobopt *p = &o; p && !code; p = p->next) {
				if (!p->desc->name)
					p->desc->name = xstrdup(s.name);
				if (jobopt_to_desc(p, s.path, rest, rest ? argv + first + 1 : NULL, &err) < 0)
					code = jobopt_report(p, &err);
			}
			if (code == 0 && o.verbose)
				jobopt_dump(&o);
			if (code == 0)
				code = plugins_ready(&o);
			if (code == 0)
				code = submit(&o, &s);
		}
	}
	script_fini(&s);
	plugins_exit();
	jobopt_fini(&o);
	return code;
}
