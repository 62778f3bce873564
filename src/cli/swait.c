/* swait.c - blocks until a job has no running step and none that was submitted with srun --async and waits for room (swait(1))
 * slurmctld keeps the call until then. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/opt.h"
#include "client/client.h"

#define EXIT_TIMEOUT 1
#define EXIT_FAILED 2

enum { SW_QUIET, SW_TIMEOUT, SW_VERBOSE, SW_VERSION, SW_HELP, SW_USAGE };
static const struct opt_row rows[] = {
	{ "quiet", 'Q', OPT_NONE, NULL, "no informational messages", SW_QUIET, false },
	{ "timeout", 0, OPT_REQUIRED, "seconds", "wait at most so long; 0: for ever", SW_TIMEOUT, false },
	{ "verbose", 'v', OPT_NONE, NULL, "more messages; may be given several times", SW_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", SW_VERSION, false },
	{ "help", 'h', OPT_NONE, NULL, "print this help", SW_HELP, false },
	{ "usage", 0, OPT_NONE, NULL, "print the short usage", SW_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define OPERAND "[<jobid>[_<task>] | s<sluid>]"

static struct { unsigned verbose; bool quiet, bad_value; int timeout_ms; } given = { .timeout_ms = -1 };

static void help(void)
{
	opt_print_help("swait [OPTIONS] " OPERAND, rows, ROWS);
	printf("\nExit status:\n"
	       "  0  no step runs, and none submitted with --async waits\n"
	       "  1  the time of --timeout is over\n"
	       "  2  an error\n");
}

static int option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	unsigned long long n;
	(void)arg;
	switch (row->id) {
	case SW_QUIET: given.quiet = true; break;
	case SW_TIMEOUT:
		given.bad_value = !value || str_to_u64(value, 0, INT32_MAX / 1000, &n) < 0;
		if (given.bad_value)
			return error_set(err, EINVAL, "--timeout: invalid value '%s' (must be a non-negative integer)", value ? value : "");
		given.timeout_ms = n ? (int)n * 1000 : -1;
		break;
	case SW_VERBOSE: given.verbose++; break;
	case SW_VERSION: printf("slurm %s\n", BERTH_VERSION); exit(0);
	case SW_HELP: help(); exit(0);
	default: printf("Usage: swait [-hQvV] [--timeout=SECS] [--usage] " OPERAND "\n"); exit(0);
	}
	return 0;
}

/* Is it a number, a number_task or s and a SLUID? Says what is wrong with it. */
static bool id_check(const char *id)
{
	size_t n = strspn(id, "0123456789");
	const char *why = "cannot parse job id";
	if (id[0] == 's' && strlen(id) == 14 && id[1 + strspn(id + 1, "0123456789ABCDEFGHJKMNPQRSTVWXYZ")] == 0)
		return true;
	if (n && !id[n] && strtoull(id, NULL, 10) > 0 && strtoull(id, NULL, 10) <= UINT32_MAX)
		return true;
	if (n && id[n] == '_' && id[n + 1] && !id[n + 1 + strspn(id + n + 1, "0123456789")])
		return true;
	if (n && id[n] == '.')
		why = "swait operates on a job, not a step";
	else if (n && id[n] == '+')
		why = "het-job offsets are not supported";
	else if (n && id[n] == '_' && strpbrk(id + n, "[],-"))
		why = "array-task ranges are not supported, pass one task offset";
	log_error("%s: %s", id, why);
	return false;
}

static Pb__JobListRsp *list(struct client *c, char *id, int *ret_code)
{
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	req.selector = &id;
	req.n_selector = 1;
	req.has_with_finished = req.with_finished = true;
	req.has_show_all = req.show_all = true;
	*ret_code = -client_call(c, RPC_JOB_LIST, &req.base, 0, &msg, &err);
	Pb__JobListRsp *rsp = (Pb__JobListRsp *)msg;
	if (rsp && !*ret_code && (rsp->code || !rsp->n_job))
		*ret_code = rsp->code ? (int)rsp->code : ESLURM_INVALID_JOB_ID;
	return rsp;
}

/* The job behind "12_3" does not exist: because the array has no such task, because 12 is no array, or because there is no 12? */
static void task_missing(struct client *c, const char *id)
{
	char *job = xstrndup(id, strcspn(id, "_"));
	int code;
	Pb__JobListRsp *rsp = list(c, job, &code);
	Pb__JobRecord *r = code ? NULL : pb__job_record__unpack(NULL, rsp->job[0]->record.len, rsp->job[0]->record.data);
	if (!r)
		log_error("cannot load JobId=%s: %s", job, error_text(code ? code : ESLURM_PROTOCOL));
	else if (!r->has_array_job_id)
		log_error("JobId=%s: not an array job", job);
	else
		log_error("array task %s: not found", id);
	exit(EXIT_FAILED);
}

/* The number of the one job that is meant; 0: said why not. */
static uint32_t job_find(struct client *c, char *id)
{
	int code;
	Pb__JobListRsp *rsp = list(c, id, &code);
	if (code && strchr(id, '_'))
		task_missing(c, id);
	Pb__JobRecord *r = code ? NULL : pb__job_record__unpack(NULL, rsp->job[0]->record.len, rsp->job[0]->record.data);
	const char *kind = id[0] == 's' ? "SLUID" : "JobId";
	uint32_t found = 0;
	if (!r)
		log_error("cannot load %s=%s: %s", kind, id, error_text(code ? code : ESLURM_PROTOCOL));
	else if (r->has_array_job_id && id[0] != 's' && !strchr(id, '_') && (rsp->n_job > 1 || !r->has_array_task_id))
		log_error("%s=%s is an array job; pass a specific task offset (jobid_task)", kind, id);
	else if (strchr(id, '_') && !r->has_array_job_id)
		log_error("JobId=%.*s: not an array job", (int)strcspn(id, "_"), id);
	else if (r->state == PB__JOB_STATE__PENDING)
		log_error("%s=%s is still pending; swait does not wait for jobs to start", kind, id);
	else
		found = r->job_id;
	return found;
}

static int wait_steps(struct client *c, uint32_t job_id)
{
	Pb__StepsDrainReq req = PB__STEPS_DRAIN_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	uint64_t until = clock_mono_ms() + (uint64_t)(given.timeout_ms > 0 ? given.timeout_ms : 0);
	int rc = -ESLURM_COMM;
	req.job_id = job_id;
	while (rc == -ESLURM_COMM) {      /* slurmctld restarts: ask again */
		rc = client_begin(c, RPC_STEPS_DRAIN, &req.base, &err);
		if (rc)
			break;
		uint64_t now = clock_mono_ms();
		struct pollfd p = { .fd = client_fd(c), .events = POLLIN };
		if (poll(&p, 1, given.timeout_ms < 0 ? -1 : until > now ? (int)(until - now) : 0) == 0) {
			log_error("timed out after %d seconds", given.timeout_ms / 1000);
			return EXIT_TIMEOUT;
		}
		rc = client_take(c, &msg, &err);
	}
	const Pb__Result *r = (const Pb__Result *)msg;
	int code = rc < 0 ? -rc : (int)r->code;
	if (code)
		log_error("cannot wait for the steps of JobId=%u: %s", job_id, rc < 0 && err.line[0] ? err.line : error_text(code));
	return code ? EXIT_FAILED : 0;
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	struct client *c;
	log_init("swait", LOG_L_INFO);
	int first = opt_parse(rows, ROWS, argc, argv, false, option, NULL, &err);
	if (first < 0) {
		log_error("%s", err.line);
		if (!given.bad_value)
			fprintf(stderr, "Try \"swait --help\" for more information\n");
		return EXIT_FAILED;
	}
	if (given.verbose && given.quiet) {
		log_error("--verbose (-v) and --quiet (-Q) are mutually exclusive");
		return EXIT_FAILED;
	}
	log_init("swait", given.quiet ? LOG_L_ERROR : LOG_L_INFO + given.verbose);
	if (argc - first > 1) {
		log_error("too many positional arguments (expected at most one job id)");
		return EXIT_FAILED;
	}
	char *id = argc > first ? argv[first] : getenv("SLURM_JOB_SLUID");
	if (!id || !*id)
		id = getenv("SLURM_JOB_ID");
	if (!id || !*id) {
		log_error("no job id given and SLURM_JOB_SLUID/SLURM_JOB_ID are not set");
		return EXIT_FAILED;
	}
	if (!id_check(id))
		return EXIT_FAILED;
	if (client_open(&c, &err) < 0) {
		log_error("%s", err.line);
		return EXIT_FAILED;
	}
	uint32_t job = job_find(c, id);
	if (!job)
		return EXIT_FAILED;
	log_verbose("waiting for the steps of JobId=%u", job);
	return wait_steps(c, job);
}
