/* srun.c - runs a program on the nodes of an allocation, making one where there is none (srun(1))
 *
 * The order of things: options, allocation and step (srun_alloc.c), files for input and output (srun_plan.c), a port for the nodes and
 * the launch (srun_launch.c), then the loop (srun_run.c) until all nodes are done; then what was taken is given back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/hetopt.h"
#include "cli/plugins.h"
#include "cli/srun.h"

static void log_setup(const struct srun *s)
{
	enum log_level level = s->o.quiet ? LOG_L_ERROR : LOG_L_INFO + s->o.verbose;
	log_init("srun", level > LOG_L_DEBUG5 ? LOG_L_DEBUG5 : level);
}

static int fatal(const char *text)
{
	log_fatal("%s", text);
	return srun_exit_code(1);
}

/* A program must be there; with SLURM_TEST_EXEC it must also be executable here. */
static int program_check(const struct srun *s)
{
	if (s->argc < 1)
		return fatal("No command given to execute.");
	if (getenv("SLURM_TEST_EXEC") && !s->o.multi_prog && strchr(s->argv[0], '/') && access(s->argv[0], X_OK) < 0) {
		log_error("Unable to run executable \"%s\": %s", s->argv[0], strerror(errno));
		return srun_exit_code(1);
	}
	return 0;
}

/* The reference falls back to plain streams when there is no terminal. */
static void pty_check(struct srun *s)
{
	uint32_t rows, cols;
	if (!s->o.pty || s->o.async || tty_size(&rows, &cols))
		return;
	log_error("ioctl(TIOCGWINSZ): %s", strerror(errno));
	log_error("Not using a pseudo-terminal, disregarding --pty option");
	s->o.pty = false;
}

/* The word is taken, as by the reference, and means nothing any more. */
static void rank_tell(const struct srun *s)
{
	const char *bind = s->o.desc->cpu_bind;
	for (const char *at = bind; at && *at; at += strspn(at, ",")) {
		size_t len = strcspn(at, ",:=");
		if (len == 4 && !strncasecmp(at, "rank", 4))
			log_info("Ignoring --cpu-bind=rank. Rank binding is obsolete.");
		at += strcspn(at, ",");
	}
}

static int options_read(struct srun *s, int argc, char **argv)
{
	struct error err = { 0 };
	int code;
	jobopt_init(&s->o, JOBOPT_SRUN);
	plugins_load(&s->o);
	int first = hetopt_parse_args(&s->o, argc, argv, true, &err);
	if (first < 0)
		return jobopt_report(&s->o, &err);
	int rc = het_parts(s);
	if (rc)
		return rc;
	unsigned group = het_own_group(s);
	hetopt_environment(getenv("SLURM_HET_SIZE") ? &group : NULL);
	rc = jobopt_parse_env(&s->o, &err);
	hetopt_environment(NULL);
	if (rc < 0)
		return jobopt_report(&s->o, &err);
	if (jobopt_show(&s->o, &code))
		exit(code);
	log_setup(s);
	rank_tell(s);
	if (jobopt_check(&s->o, &err) < 0)
		return jobopt_report(&s->o, &err);
	if (s->o.verbose)
		jobopt_dump(&s->o);
	if ((code = plugins_ready(&s->o)))
		return code;
	rc = het_options(s);
	if (rc)
		return rc;
	s->argc = s->part[0].argc;
	s->argv = s->part[0].argv;
	rc = program_check(s);
	if (!rc && s->parts > 1 && (s->o.bcast || s->o.multi_prog))
		rc = fatal("--bcast and --multi-prog are not supported over several components of a heterogeneous job");
	if (!rc && s->o.desc->container && !s->o.multi_prog) {      /* looked up here: the container may have other folders */
		char *found = srun_program_find(s->argv[0]);
		s->part[0].argv[0] = found ? found : s->part[0].argv[0];
	}
	/* Where streams lead is our affair; the job has no files. */
	s->text_in = s->o.desc->std_in;
	s->text_out = s->o.desc->std_out;
	s->text_err = s->o.desc->std_err;
	for (struct jobopt *k = &s->o; k; k = k->next)
		k->desc->std_in = k->desc->std_out = k->desc->std_err = NULL;
	pty_check(s);
	return rc;
}

/* --prolog and --epilog: a program here, with the command as its arguments. Its exit code, 127: it cannot be run, 128 + N: ended by signal N. */
static int hook_run(const struct srun *s, const char *own, enum conf_key key)
{
	const char *path = own ? own : conf_str(s->conf, key);
	int status = 127 << 8;
	if (!path || !*path || str_eq_nocase(path, "none"))
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		char **argv = xcalloc((size_t)s->argc + 2, sizeof(*argv)), text[16];
		argv[0] = (char *)path;
		memcpy(argv + 1, s->argv, (size_t)s->argc * sizeof(*argv));
		snprintf(text, sizeof(text), "%u", s->job_id);
		setenv("SLURM_JOB_ID", text, 1);
		snprintf(text, sizeof(text), "%u", s->step_id);
		setenv("SLURM_STEP_ID", text, 1);
		execv(path, argv);
		log_error("Failed to execute srun prolog/epilog script: %s: %s", path, strerror(errno));
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int step_run(struct srun *s)
{
	struct error err = { 0 };
	tasks_init(s);
	for (size_t i = 0; i < s->parts; i++)
		for (size_t k = 0; k < s->part[i].step->layout->n_node; k++)
			s->node[s->part[i].first_node + k].part = &s->part[i];
	log_verbose("jobid %u: nodes(%zu):`%s', cpu counts: %s", s->job_id, s->node_count, s->layout->nodes, s->layout->tasks_per_node ? s->layout->tasks_per_node : "");
	int rc = plan_make(s);
	if (rc)
		return rc;
	if (launch_listen(s, &err) < 0) {
		log_error("%s", err.line);
		return srun_exit_code(1);
	}
	rc = hook_run(s, s->o.prolog, CONF_SrunProlog);
	if (rc) {
		log_error("srun prolog failed rc = %d. Aborting step.", rc);
		log_info("StepId=%u.%u aborted before step completely launched.", s->job_id, s->step_id);
		return srun_exit_code(1);
	}
	rc = plugins_step(s->job_id, s->step_id, (uint32_t)s->node_count, s->layout->num_tasks, s->argc, s->argv);
	if (!rc)
		rc = bcast_program(s);
	if (!rc)
		rc = launch_send(s);
	if (rc)
		return rc;
	if (s->o.pty)
		tty_start(s);
	run_until_end(s);
	launch_tell_figures(s);
	tty_stop(s);
	rc = hook_run(s, s->o.epilog, CONF_SrunEpilog);
	if (rc)
		log_error("srun epilog failed status=%d", rc);
	return s->exit_code;
}

/* What is closed at the start must not become a socket of ours. */
static void std_streams_open(void)
{
	int fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 2)
		fd = dup(fd);
	if (fd > 2)
		close(fd);
}

int main(int argc, char **argv)
{
	static struct srun s = { .listen_fd = -1, .epoll_fd = -1 };
	struct error err = { 0 };
	std_streams_open();
	log_init("srun", LOG_L_INFO);
	int rc = options_read(&s, argc, argv);
	if (rc)
		return rc;
	if (client_open_with(&s.client, plugins_conf(), &err) < 0) {
		log_error("%s", err.line);
		return srun_exit_code(1);
	}
	s.conf = client_conf(s.client);
	s.signal_fd = signals_open();
	s.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = async_check(&s);
	if (!rc)
		rc = alloc_get(&s);
	if (rc || s.o.test_only)
		return rc;
	rc = step_run(&s);
	if (!s.exit_status && rc)
		s.exit_status = (uint32_t)rc << 8;
	plugins_exit();
	spawn_wait(&s);
	alloc_give_back(&s);
	return rc;
}
