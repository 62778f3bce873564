/* srun_alloc.c - the allocation and the step: asked for in one call, waited for, given back
 *
 * Outside an allocation the submission carries the first step, so a job that starts at once costs one commit and one answer. Inside, the step alone is asked for;
 * slurmctld answers when there is room. While srun waits it listens to signals: an interrupt takes a waiting job back. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/srun.h"
#include "cli/submit.h"
#include "model/tres.h"

#define BUSY_TELL_MS 500     /* a step that waits longer is told so */

int srun_exit_code(int code)
{
	return jobopt_exit_code("SLURM_EXIT_ERROR", code);
}

static int immediate_exit_code(const struct srun *s, int code)
{
	code = srun_exit_code(code);
	return s->o.immediate_sec >= 0 ? jobopt_exit_code("SLURM_EXIT_IMMEDIATE", code) : code;
}

static int refused(const struct srun *s, const char *what, int code, const char *detail)
{
	(void)submit_refused("srun", what, code, detail);
	return immediate_exit_code(s, 1);
}

/* Nobody answered. */
static int unreachable(const struct error *err)
{
	log_error("%s", err->line);
	if (err->hint[0])
		log_error("%s", err->hint);
	return srun_exit_code(1);
}

/* --- calls that are watched ------------------------------------------------------------------------ */

/* A signal that ends srun while it waits, or 0. */
static int ending_signal(const struct srun *s)
{
	struct signalfd_siginfo info;
	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCONT && info.ssi_signo != SIGWINCH && info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2)
			return (int)info.ssi_signo;
	return 0;
}

#define FIRST_SPECIAL_STEP 0xfffffff0u   /* batch, extern, interactive */
struct watched { int signal; };

/* 0; -EINTR when w->signal came; -ETIME after slow_ms (the call goes on: call again with rpc 0). */
static int call_watched(struct srun *s, enum rpc rpc, const ProtobufCMessage *req, int slow_ms, ProtobufCMessage **ret, struct watched *w, struct error *err)
{
	int rc = rpc ? client_begin(s->client, rpc, req, err) : 0;
	while (!rc) {
		struct pollfd p[] = { { .fd = client_fd(s->client), .events = POLLIN }, { .fd = s->signal_fd, .events = POLLIN } };
		int n = poll(p, 2, slow_ms);
		if (n == 0)
			return -ETIME;
		if (p[1].revents && (w->signal = ending_signal(s)))
			return -EINTR;
		if (p[0].revents)
			return client_take(s->client, ret, err);
	}
	return rc;
}

static int call_until(struct srun *s, enum rpc rpc, const ProtobufCMessage *req, int slow_ms, void (*slow)(struct srun *), ProtobufCMessage **ret, int *ret_signal,
		      struct error *err)
{
	struct watched w = { 0 };
	int rc = call_watched(s, rpc, req, slow ? slow_ms : -1, ret, &w, err);
	if (rc == -ETIME) {
		slow(s);
		rc = call_watched(s, 0, NULL, -1, ret, &w, err);
	}
	while (rc == -ESLURM_COMM)   /* slurmctld restarts: ask again */
		rc = call_watched(s, rpc, req, -1, ret, &w, err);
	*ret_signal = w.signal;
	return rc;
}

/* --- waiting for a job -------------------------------------------------------------------------------- */

static int wait_interrupted(struct srun *s, int number)
{
	job_kill(s->job_id);
	log_info("Job allocation %u has been revoked", s->job_id);
	s->is_own_job = false;
	return number == SIGINT ? srun_exit_code(1) : 128 + number;
}

static int step_take(struct srun *s, struct part *p, Pb__StepCreateRsp *step, uint32_t code, const char *detail)
{
	if (step && step->code) {
		code = step->code;
		detail = step->detail;
	}
	if (!code && (!step || !step->layout || !step->layout->n_node || !step->cred || !step->has_step_id)) {
		code = ESLURM_PROTOCOL;
		detail = "the answer has no step";
	}
	if (code) {
		if (detail && *detail && !str_eq(detail, error_text((int)code)))
			log_error("%s", detail);
		log_error("Unable to create step for job %u: %s", s->job_id, error_text((int)code));
		return immediate_exit_code(s, 1);
	}
	s->step = p->step = step;
	s->step_id = step->step_id;
	if (!s->job)
		s->job = step->job;
	if (!p->job)
		p->job = step->job ? step->job : s->job;
	return 0;
}

/* `queued`: it waits for nodes; else it has them, and they are prepared. */
static int job_wait(struct srun *s, Pb__StepDesc *step, bool queued)
{
	Pb__WaitReq req = PB__WAIT_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	int number = 0;
	req.job_id = s->job_id;
	req.first_step = step;
	if (!s->o.quiet && queued)
		log_info("job %u queued and waiting for resources", s->job_id);
	int rc = call_until(s, RPC_WAIT, &req.base, 0, NULL, &msg, &number, &err);
	if (rc == -EINTR)
		return wait_interrupted(s, number);
	if (rc < 0)
		return unreachable(&err);
	Pb__WaitRsp *m = (Pb__WaitRsp *)msg;
	if (!m->alloc) {
		s->is_own_job = false;
		if (m->detail && *m->detail)
			log_info("%s", m->detail);
		log_info("Force Terminated JobId=%u", s->job_id);
		log_info("Job allocation %u has been revoked", s->job_id);
		return srun_exit_code(1);
	}
	if (!s->o.quiet && queued)
		log_info("job %u has been allocated resources", s->job_id);
	s->alloc = m->alloc;
	s->job = m->alloc->job;
	return step ? step_take(s, &s->part[0], m->step, m->code, m->detail) : 0;
}

/* --- asking for it ------------------------------------------------------------------------------------- */

/* From here on slurmctld may give us a job whose number we never hear. */
static void submit_ready(const Pb__SubmitReq *req, void *arg)
{
	struct srun *s = arg;
	if (!s->o.test_only)
		guard_start(s, req);
}

static int job_submit(struct srun *s)
{
	struct error err = { 0 };
	Pb__SubmitRsp *rsp = NULL;
	size_t at = 0;
	for (struct jobopt *k = &s->o; k; k = k->next, at++)
		if (jobopt_to_desc(k, s->part[at].argv[0], 0, NULL, &err) < 0)
			return jobopt_report(k, &err);
	Pb__StepDesc *step = s->o.next ? NULL : jobopt_to_step(&s->o, 0, s->argv[0]);
	/* What was asked of the job need not be asked of its only step again: it gets what the job got. */
	struct submit_step first = { step, submit_ready, s };
	int rc = submit_send(s->client, &s->o, NULL, NULL, &first, &rsp, &err);
	if (rc < 0)
		return unreachable(&err);
	if (s->o.test_only)
		return submit_estimate("srun", rsp);
	if (!s->o.quiet)
		submit_user_msg("srun", rsp->user_msg);
	if (rsp->code)
		return refused(s, "Unable to allocate resources", (int)rsp->code, rsp->detail);
	s->job_id = rsp->job_id;
	s->is_own_job = true;
	guard_tell(s);
	log_verbose("JobId=%u returned by the controller", s->job_id);
	if (!rsp->alloc)
		return job_wait(s, step, !rsp->configuring);
	s->alloc = rsp->alloc;
	s->job = rsp->alloc->job;
	if (!step)
		return 0;
	rc = step_take(s, &s->part[0], rsp->step, 0, NULL);
	pb__step_desc__free_unpacked(step, NULL);
	return rc;
}

/* What is used up, and by which steps. */
static void held_tell(uint32_t job_id, const char *job_tres, const Pb__StepListRsp *list)
{
	static const struct { const char *tres, *words, *hint; } kind[] = {
		{ "mem", "MiB of memory", "; with --mem (or --mem-per-cpu) a step takes only its share" }, { "cpu", "CPUs", "; with --exact and -c a step takes only its share" },
		{ "gres/gpu", "GPUs", "; with --gres=gpu:N a step takes only its share, with --gres=none nothing" },
	};
	for (size_t k = 0; k < sizeof(kind) / sizeof(kind[0]); k++) {
		uint64_t total = tres_get(job_tres, kind[k].tres), used = 0;
		struct str steps = STR_INIT;
		for (size_t i = 0; i < list->n_step; i++) {
			const Pb__StepRecord *st = list->step[i];
			uint64_t n = st->step_id < FIRST_SPECIAL_STEP && st->state == PB__JOB_STATE__RUNNING && st->tres ? tres_get(st->tres, kind[k].tres) : 0;
			if (!n)
				continue;
			used += n;
			str_addf(&steps, "%s%u.%u%s%s%s", steps.len ? ", " : "", job_id, st->step_id, st->name ? " (" : "", st->name ? st->name : "", st->name ? ")" : "");
		}
		if (total && used >= total)
			log_info("all %llu %s of job %u are held by step %s%s", (unsigned long long)total, kind[k].words, job_id, steps.data, kind[k].hint);
		str_fini(&steps);
	}
}

/* On a connection of its own: the other one waits for the step. What cannot be had is not said. */
static void busy_explain(uint32_t job_id)
{
	Pb__AllocInfoReq info = PB__ALLOC_INFO_REQ__INIT;
	Pb__StepListReq steps = PB__STEP_LIST_REQ__INIT;
	ProtobufCMessage *job = NULL, *list = NULL;
	struct client *c;
	if (client_open(&c, NULL) < 0)
		return;
	info.job_id = steps.job_id = job_id;
	steps.has_job_id = true;
	if (client_call(c, RPC_ALLOC_INFO, &info.base, 0, &job, NULL) == 0 && client_call(c, RPC_STEP_LIST, &steps.base, 0, &list, NULL) == 0) {
		const Pb__AllocInfoRsp *rsp = (const Pb__AllocInfoRsp *)job;
		if (rsp->alloc && rsp->alloc->job && rsp->alloc->job->tres_alloc)
			held_tell(job_id, rsp->alloc->job->tres_alloc, (const Pb__StepListRsp *)list);
	}
	if (job)
		protobuf_c_message_free_unpacked(job, NULL);
	if (list)
		protobuf_c_message_free_unpacked(list, NULL);
	client_close(c);
}

static void busy_tell(struct srun *s)
{
	if (!s->o.quiet) {
		log_info("Job %u step creation temporarily disabled, retrying (Requested nodes are busy)", s->job_id);
		busy_explain(s->job_id);
	}
	s->was_busy = true;
}

int alloc_gone(const struct srun *s, int code)
{
	if (code == ESLURM_INVALID_JOB_ID)
		log_error("Unable to confirm allocation for job %u: %s", s->job_id, error_text(code));
	else
		log_error("Slurm job %u has expired", s->job_id);
	log_info("Check SLURM_JOB_ID environment variable. Expired or invalid job %u", s->job_id);
	return srun_exit_code(1);
}

static int step_create(struct srun *s, struct part *p)
{
	Pb__StepCreateReq req = PB__STEP_CREATE_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	int number = 0;
	if (!p->o->desc->work_dir)
		p->o->desc->work_dir = getcwd(NULL, 0);
	req.desc = jobopt_to_step(p->o, p->job_id, p->argv[0]);
	if (p != s->part) {
		req.desc->has_het_step_id = true;
		req.desc->het_step_id = s->step_id;
	}
	int refused = s->o.async ? async_begin(s, req.desc) : 0;
	if (refused)
		return refused;
	if (!s->guard_fd)
		guard_start(s, NULL);
	int rc = call_until(s, RPC_STEP_CREATE, &req.base, BUSY_TELL_MS, busy_tell, &msg, &number, &err);
	if (rc == -EINTR) {
		log_info("Cancelled pending job step with signal %d", number);
		log_error("Unable to create step for job %u: %s", s->job_id, error_text(ESLURM_ALREADY_DONE));
		return srun_exit_code(1);
	}
	Pb__StepCreateRsp *m = (Pb__StepCreateRsp *)msg;
	int code = rc < 0 ? -rc : (int)m->code;
	if (code == ESLURM_JOB_PENDING) {
		uint32_t id = s->job_id;
		rc = job_wait(s, req.desc, true);
		s->is_own_job = false;
		s->job_id = id;
		return rc;
	}
	if (code == ESLURM_INVALID_JOB_ID || code == ESLURM_ALREADY_DONE || code == ESLURM_JOB_FINISHED)
		return alloc_gone(s, code);
	if (rc < 0)
		return unreachable(&err);
	rc = step_take(s, p, m, 0, NULL);
	if (!rc && s->was_busy && !s->o.quiet)
		log_info("Step created for StepId=%u.%u", s->job_id, s->step_id);
	pb__step_desc__free_unpacked(req.desc, NULL);
	return rc;
}

/* A step on each component, one after the other; the program starts only when all are there. */
static int steps_create(struct srun *s)
{
	int rc = het_job_parts(s);
	for (size_t i = 0; i < s->parts && !rc; i++) {
		uint32_t whole = s->job_id;
		s->job_id = s->part[i].job_id; /* it is what is told of */
		rc = step_create(s, &s->part[i]);
		s->job_id = whole;
	}
	return rc;
}

int alloc_get(struct srun *s)
{
	s->job_id = s->o.jobid;
	bool inside = s->o.jobid && !s->o.test_only;
	int rc = inside ? 0 : job_submit(s);
	if (!rc && !s->o.test_only && (inside || s->o.next))
		rc = steps_create(s);
	if (rc) {
		alloc_give_back(s);
		return rc;
	}
	if (s->o.test_only)
		return 0;
	if (s->part[0].job && s->part[0].job->has_het_job_id)
		s->job_id = s->part[0].job->het_job_id;
	s->part[0].job_id = s->part[0].job_id ? s->part[0].job_id : s->job_id;
	s->layout = s->part[0].step->layout;
	if (s->parts > 1)
		het_merge(s);
	if (!s->is_own_job)
		guard_tell(s);
	return 0;
}

void alloc_give_back(struct srun *s)
{
	ProtobufCMessage *rsp = NULL;
	for (size_t i = 0; i < s->parts; i++) {
		Pb__StepDoneReq done = PB__STEP_DONE_REQ__INIT;
		if (!s->part[i].step)
			continue;
		done.job_id = s->part[i].job_id;
		done.step_id = s->step_id;
		done.exit_status = s->exit_status;
		if (client_call(s->client, RPC_STEP_DONE, &done.base, 0, &rsp, NULL) == 0)
			protobuf_c_message_free_unpacked(rsp, NULL);
	}
	if (s->is_own_job) {
		Pb__JobDoneReq done = PB__JOB_DONE_REQ__INIT;
		done.job_id = s->job_id;
		done.exit_status = s->exit_status;
		if (client_call(s->client, RPC_JOB_DONE, &done.base, 0, &rsp, NULL) == 0)
			protobuf_c_message_free_unpacked(rsp, NULL);
	}
	guard_end(s);
}
