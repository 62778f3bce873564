/* srun_async.c - srun --async: the step has its number at once, and srun's place is taken by a process in the background
 *
 * slurmctld gives the number and lists the step as PENDING. The process in the background asks for room under that number and then is an srun like any
 * other, without a terminal: it launches, supervises and writes the files. A pending step whose process is killed is cancelled by slurmctld; a running one
 * by srun_guard.c. When the job ends they end with it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/srun.h"

static int refuse(const char *text)
{
	log_error("%s", text);
	return srun_exit_code(1);
}

/* Nothing of this srun's stdin reaches the tasks: a file does, or nothing. */
static void streams_default(struct srun *s)
{
	unsigned long long task;
	if (!s->text_in || str_eq_nocase(s->text_in, "all") || str_to_u64(s->text_in, 0, UINT32_MAX, &task) == 0)
		s->text_in = xstrdup("none");
	if (!s->text_out && !s->text_err)
		s->text_out = xstrdup("slurm-%J.out");
}

int async_check(struct srun *s)
{
	const char *mpi = s->o.mpi ? s->o.mpi : conf_str(s->conf, CONF_MpiDefault);
	if (!s->o.async)
		return s->o.parsable ? refuse("--parsable requires --async.") : 0;
	if (s->o.pty)
		return refuse("--async and --pty are mutually exclusive.");
	if (s->o.immediate_sec >= 0)
		return refuse("--immediate and --async are mutually exclusive.");
	if (!s->o.jobid || s->parts > 1)
		return refuse("--async is only valid for steps submitted within an existing job allocation.");
	if (mpi && *mpi && !str_eq(mpi, "none")) {
		log_error("--async does not support MPI type '%s' (set by --mpi, SLURM_MPI_TYPE or MpiDefault). Use --mpi=none to run a non-MPI program.", mpi);
		return srun_exit_code(1);
	}
	streams_default(s);
	return 0;
}

/* The one who goes on: no terminal, no session of the shell's, nothing of the caller held open. */
static void background(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	setsid();
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	close(null);
}

int async_begin(struct srun *s, Pb__StepDesc *d)
{
	Pb__StepCreateReq req = PB__STEP_CREATE_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	req.desc = d;
	int rc = client_call(s->client, RPC_STEP_CREATE, &req.base, 0, &msg, &err);
	Pb__StepCreateRsp *m = (Pb__StepCreateRsp *)msg;
	int code = rc < 0 ? -rc : (int)m->code;
	if (code == ESLURM_INVALID_JOB_ID || code == ESLURM_ALREADY_DONE || code == ESLURM_JOB_FINISHED)
		return alloc_gone(s, code);
	if (code || !m->has_step_id) {
		const char *detail = rc < 0 ? err.line : m->detail;
		if (detail && *detail && !str_eq(detail, error_text(code)))
			log_error("%s", detail);
		log_error("Unable to create step for job %u: %s", s->job_id, error_text(code ? code : ESLURM_PROTOCOL));
		return srun_exit_code(1);
	}
	d->has_step_id = true;
	d->step_id = s->step_id = m->step_id;
	protobuf_c_message_free_unpacked(msg, NULL);
	if (!s->o.quiet)
		printf("%s%u.%u\n", s->o.parsable ? "" : "Submitted step ", s->job_id, s->step_id);
	fflush(stdout);
	pid_t pid = fork();
	if (pid > 0)
		_exit(0);
	if (pid < 0)
		return refuse("cannot go on in the background: no process could be made");
	background();
	d->srun_pid = (uint32_t)getpid();
	return 0;
}
