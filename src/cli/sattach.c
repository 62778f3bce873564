/* sattach.c - joins the streams of a running step (sattach(1))
 *
 * slurmctld tells how the step lies on its nodes, and to whom; each node's slurmd is asked to have its slurmstepd connect here, as it did to the srun that started the step.
 * From then on it is srun's loop (srun.h) without a launch. Signals are not caught: who interrupts sattach leaves the step alone. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/opt.h"
#include "cli/srun.h"

enum { SA_INPUT, SA_OUTPUT, SA_ERROR, SA_LABEL, SA_LAYOUT, SA_PTY, SA_QUIET, SA_VERBOSE, SA_VERSION, SA_HELP, SA_USAGE };
static const struct opt_row rows[] = {
	{ "input-filter", 0, OPT_REQUIRED, "task", "stdin goes to this task only", SA_INPUT, false },
	{ "output-filter", 0, OPT_REQUIRED, "task", "show stdout of this task only", SA_OUTPUT, false },
	{ "error-filter", 0, OPT_REQUIRED, "task", "show stderr of this task only", SA_ERROR, false },
	{ "label", 'l', OPT_NONE, NULL, "begin each line with the number of its task", SA_LABEL, false },
	{ "layout", 0, OPT_NONE, NULL, "print where the tasks run, and end", SA_LAYOUT, false },
	{ "pty", 0, OPT_NONE, NULL, "join the terminal of a step started with srun --pty", SA_PTY, false },
	{ "quiet", 'Q', OPT_NONE, NULL, "no informational messages", SA_QUIET, false },
	{ "verbose", 'v', OPT_NONE, NULL, "more messages; may be given several times", SA_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", SA_VERSION, false },
	{ "help", 'h', OPT_NONE, NULL, "print this help", SA_HELP, false },
	{ "usage", 'u', OPT_NONE, NULL, "print the short usage", SA_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define SYNOPSIS "sattach [options] <jobid.stepid>"
static const char usage[] = "Usage: " SYNOPSIS "\n";

struct wish { struct srun *s; bool layout, has_in, has_out, has_err; };

static int filter(struct plan *plan, bool *has, const char *which, const char *value, struct error *err)
{
	unsigned long long task;
	if (str_to_u64(value, 0, UINT32_MAX - 1, &task) < 0)
		return error_set(err, EINVAL, "Invalid numeric value \"%s\" for %s.", value, which);
	*plan = (struct plan){ .kind = PLAN_TASK, .task = (uint32_t)task };
	*has = true;
	return 0;
}

static int option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct wish *w = arg;
	struct srun *s = w->s;
	switch (row->id) {
	case SA_INPUT: return filter(&s->plan_in, &w->has_in, "input-filter", value, err);
	case SA_OUTPUT: return filter(&s->plan_out, &w->has_out, "output-filter", value, err);
	case SA_ERROR: return filter(&s->plan_err, &w->has_err, "error-filter", value, err);
	case SA_LABEL: s->o.label = true; break;
	case SA_LAYOUT: w->layout = true; break;
	case SA_PTY: s->o.pty = true; break;
	case SA_QUIET: s->o.quiet = true; break;
	case SA_VERBOSE: s->o.verbose++; break;
	case SA_VERSION: printf("slurm %s\n", BERTH_VERSION); exit(0);
	case SA_HELP: opt_print_help(SYNOPSIS, rows, ROWS); exit(0);
	default: fputs(usage, stdout); exit(0);
	}
	return 0;
}

static int usage_error(void)
{
	fputs(usage, stderr);
	return srun_exit_code(1);
}

/* "5.0". 0 or an exit code. */
static int step_parse(struct srun *s, const char *text)
{
	char *end;
	unsigned long job = strtoul(text, &end, 10), step;
	if (end == text || !job || job > UINT32_MAX) {
		log_fatal("Bad job/step specified: %s: JobID can not be zero", text);
		return srun_exit_code(1);
	}
	s->job_id = (uint32_t)job;
	const char *at = end + 1;
	step = *end == '.' ? strtoul(at, &end, 10) : 0;
	if (end == at || *end || step > UINT32_MAX || end < at) {
		log_error("Failed to parse stepid from command line options");
		return usage_error();
	}
	s->step_id = (uint32_t)step;
	return 0;
}

static int layout_get(struct srun *s)
{
	Pb__StepLayoutReq req = PB__STEP_LAYOUT_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	req.job_id = s->job_id;
	req.step_id = s->step_id;
	int rc = client_call(s->client, RPC_STEP_LAYOUT, &req.base, 0, &msg, &err);
	int code = rc < 0 ? -rc : (int)((Pb__StepLayoutRsp *)msg)->code;
	if (code) {
		log_error("Could not get job step info: %s", rc < 0 && err.line[0] ? err.line : error_text(code));
		return srun_exit_code(1);
	}
	s->layout = ((Pb__StepLayoutRsp *)msg)->layout;
	return 0;
}

static void layout_print(const struct srun *s)
{
	const Pb__StepLayout *l = s->layout;
	printf("Job step layout:\n\t%u tasks, %zu nodes (%s)\n\n", l->num_tasks, l->n_node, l->nodes);
	for (size_t i = 0; i < l->n_node; i++) {
		printf("\tNode %zu (%s), %zu task(s): ", i, l->node[i]->name, l->node[i]->n_task_ids);
		for (size_t k = 0; k < l->node[i]->n_task_ids; k++)
			printf("%u ", l->node[i]->task_ids[k]);
		printf("\n");
	}
}

static int attach(struct srun *s)
{
	struct error err = { 0 };
	tasks_init(s);
	const struct plan *plans[] = { &s->plan_in, &s->plan_out, &s->plan_err };
	for (size_t i = 0; i < 3; i++)
		if (plans[i]->kind == PLAN_TASK && plans[i]->task >= s->task_count) {
			log_error("the step has %u tasks, there is no task %u", s->task_count, plans[i]->task);
			return srun_exit_code(1);
		}
	sink_init(s, &s->std_out, 1);
	sink_init(s, &s->std_err, 2);
	s->to[0] = &s->std_out;
	s->to[1] = &s->std_err;
	if (s->o.pty)
		s->plan_in = (struct plan){ .kind = PLAN_TASK, .task = 0 };
	s->in_watch.fd = 0;
	if (launch_listen(s, &err) < 0) {
		log_error("%s", err.line);
		return srun_exit_code(1);
	}
	int rc = launch_attach(s);
	if (rc)
		return rc;
	if (s->o.pty)
		tty_start(s);
	run_until_end(s);
	tty_stop(s);
	return s->exit_code;
}

int main(int argc, char **argv)
{
	static struct srun s = { .listen_fd = -1, .epoll_fd = -1, .signal_fd = -1, .is_attached = true };
	struct wish w = { .s = &s };
	struct error err = { 0 };
	log_init("sattach", LOG_L_INFO);
	jobopt_init(&s.o, JOBOPT_SRUN);
	int first = opt_parse(rows, ROWS, argc, argv, false, option, &w, &err);
	if (first < 0) {
		log_error("%s", err.line);
		return srun_exit_code(1);
	}
	log_init("sattach", s.o.quiet ? LOG_L_ERROR : LOG_L_INFO + s.o.verbose);
	if (s.o.pty && (w.has_in || w.has_out || w.has_err)) {
		log_error("don't specify both --pty and I/O filtering");
		return srun_exit_code(1);
	}
	if (argc - first != 1) {
		log_error("too many parameters");
		fputs(usage, stdout);
		return srun_exit_code(1);
	}
	int rc = step_parse(&s, argv[first]);
	if (rc)
		return rc;
	if (client_open(&s.client, &err) < 0) {
		log_error("%s", err.line);
		return srun_exit_code(1);
	}
	s.conf = client_conf(s.client);
	signal(SIGPIPE, SIG_IGN);
	s.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = layout_get(&s);
	if (!rc && w.layout)
		layout_print(&s);
	return rc || w.layout ? rc : attach(&s);
}
