/* salloc.c - get an allocation, run a command in it, give it back
 *
 * One thread asks slurmctld and waits for the command; one waits for signals; one, once there is an allocation, waits for its end (long poll), so
 * that a revoked allocation is told at once. Invariant: `held.job_id` is set before any of them may need it, and whoever ends the
 * allocation sets `held.over` first, so that its end is announced once. Signals are blocked everywhere but in the signal thread. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/hetopt.h"
#include "cli/plugins.h"
#include "cli/submit.h"
#include "client/client.h"
#include "model/envlist.h"
#include "model/jobenv.h"

static const char cmd[] = "salloc";

static struct {
	atomic_uint job_id;      /* 0: no job yet */
	atomic_bool granted;
	atomic_bool over;        /* its end was asked for or seen: say nothing more */
	atomic_int child;        /* process group of the command */
	bool quiet, tty;
	int kill_signal;         /* for the command when the allocation goes; 0: none */
} held;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (held.quiet)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s\n", cmd, line);
}

/* --- the other threads ---------------------------------------------------------------------------- */

static void job_kill(uint32_t job_id)
{
	Pb__KillReq req = PB__KILL_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct client *c = NULL;
	struct error err = { 0 };
	char id[16], *ids = id;

	snprintf(id, sizeof(id), "%u", job_id);
	req.id = &ids;
	req.n_id = 1;
	if (client_open(&c, &err) < 0 || client_call(c, RPC_KILL, &req.base, 0, &msg, &err) < 0)
		fprintf(stderr, "%s: error: cannot end job %u: %s\n", cmd, job_id, err.line);
	if (msg)
		protobuf_c_message_free_unpacked(msg, NULL);
	client_close(c);
}

static void revoked(uint32_t job_id)
{
	int pid = atomic_load(&held.child);

	if (atomic_exchange(&held.over, true))
		return;
	say("Job allocation %u has been revoked.", job_id);
	if (pid > 0 && held.kill_signal)
		kill(-pid, held.kill_signal);
}

/* INT, QUIT, TERM, HUP: an allocation still waited for is given up; one in use is given back, its command goes on. */
static void *signal_thread(void *arg)
{
	const sigset_t *set = arg;
	int sig;

	while (sigwait(set, &sig) == 0) {
		uint32_t job_id = atomic_load(&held.job_id);
		bool granted = atomic_load(&held.granted);
		if (granted && held.tty && (sig == SIGINT || sig == SIGQUIT))
			continue; /* typed at the terminal: it is the command's */
		if (job_id && !granted && !atomic_exchange(&held.over, true)) {
			job_kill(job_id);
			say("Job allocation %u has been revoked.", job_id);
		} else if (job_id) {
			job_kill(job_id);
			revoked(job_id);
		}
		if (!granted) {
			say("Job aborted due to signal");
			_exit(1);
		}
	}
	return NULL;
}

static void *end_thread(void *arg)
{
	Pb__WaitReq req = PB__WAIT_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct client *c = NULL;
	struct error err = { 0 };

	req.job_id = atomic_load(&held.job_id);
	req.until_end = true;
	if (client_open(&c, &err) == 0 && client_call(c, RPC_WAIT, &req.base, -1, &msg, &err) == 0)
		revoked(req.job_id);
	if (msg)
		protobuf_c_message_free_unpacked(msg, NULL);
	client_close(c);
	return NULL;
}

static void thread_start(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	if (pthread_create(&t, NULL, fn, arg) == 0)
		pthread_detach(t);
}

/* --- the command ---------------------------------------------------------------------------------- */

/* Absolute path of a program, or NULL. */
static char *program_find(const char *name)
{
	struct stat st;
	char *dirs, *cursor, *dir, *found = NULL;

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 && stat(name, &st) == 0 && S_ISREG(st.st_mode) ? xstrdup(name) : NULL;
	cursor = dirs = xstrdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	while (!found && (dir = str_next(&cursor, ":")) != NULL) {
		found = xasprintf("%s/%s", *dir ? dir : ".", name);
		if (access(found, X_OK) < 0 || stat(found, &st) < 0 || !S_ISREG(st.st_mode))
			xfree(found);
	}
	free(dirs);
	return found;
}

static void command_exec(const char *path, char **argv, char **env, const sigset_t *old)
{
	setpgid(0, 0);
	if (held.tty) {
		signal(SIGTTOU, SIG_IGN);
		tcsetpgrp(STDIN_FILENO, getpid());
		signal(SIGTTOU, SIG_DFL);
	}
	sigprocmask(SIG_SETMASK, old, NULL);
	execve(path, argv, env);
	fprintf(stderr, "%s: error: Unable to exec command \"%s\": %s\n", cmd, argv[0], strerror(errno));
	_exit(1);
}

/* Exit code of the command as salloc(1) gives it: 0 where it was ended by HUP, INT, KILL or QUIT. */
static int status_code(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	switch (WTERMSIG(status)) {
	case SIGHUP: case SIGINT: case SIGKILL: case SIGQUIT: return 0;
	default: return 1;
	}
}

static int command_run(char **argv, char **env, const sigset_t *old)
{
	char *path = program_find(argv[0]);
	int status = 0;
	pid_t pid;

	if (!path) {
		fprintf(stderr, "%s: error: _fork_command: Unable to find command \"%s\"\n", cmd, argv[0]);
		return 1;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		command_exec(path, argv, env, old);
	free(path);
	if (pid < 0) {
		fprintf(stderr, "%s: error: fork: %s\n", cmd, strerror(errno));
		return 1;
	}
	setpgid(pid, pid);
	atomic_store(&held.child, pid);
	while (waitpid(pid, &status, held.tty ? WUNTRACED : 0) < 0 || WIFSTOPPED(status)) {
		if (WIFSTOPPED(status) && errno != ECHILD)
			kill(-pid, SIGCONT); /* a stopped shell would hold the allocation for nothing */
		status = 0;
	}
	atomic_store(&held.child, 0);
	if (held.tty) {
		signal(SIGTTOU, SIG_IGN);
		tcsetpgrp(STDIN_FILENO, getpgrp());
	}
	return status_code(status);
}

static const char *shell_of_user(void)
{
	const char *shell = getenv("SHELL");
	struct passwd *pw = shell && *shell ? NULL : getpwuid(getuid());
	return shell && *shell ? shell : pw && pw->pw_shell && *pw->pw_shell ? pw->pw_shell : "/bin/sh";
}

/* --- the allocation ------------------------------------------------------------------------------- */

/* Waits until the job has nodes, and they are prepared. NULL: it will not; the reason was printed. */
static Pb__AllocInfo *alloc_wait(struct client *c, uint32_t job_id, bool queued)
{
	Pb__WaitReq req = PB__WAIT_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	Pb__AllocInfo *alloc = NULL;

	if (queued) {
		say("Pending job allocation %u", job_id);
		say("job %u queued and waiting for resources", job_id);
	}
	req.job_id = job_id;
	if (client_call(c, RPC_WAIT, &req.base, -1, &msg, &err) < 0) {
		fprintf(stderr, "%s: error: waiting for job %u: %s\n", cmd, job_id, err.line);
		return NULL;
	}
	Pb__WaitRsp *rsp = (Pb__WaitRsp *)msg;
	if (rsp->code == 0 && rsp->alloc) {
		alloc = rsp->alloc;
		rsp->alloc = NULL;
		if (queued)
			say("job %u has been allocated resources", job_id);
	} else {
		while (atomic_exchange(&held.over, true))
			pause(); /* a signal ended it: its thread says so and ends salloc */
		fprintf(stderr, "%s: error: Job allocation %u has been revoked.\n", cmd, job_id);
		if (rsp->detail)
			fprintf(stderr, "%s: %s\n", cmd, rsp->detail);
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	return alloc;
}

static Pb__AllocInfo *alloc_get(struct client *c, struct jobopt *o)
{
	Pb__SubmitRsp *rsp = NULL;
	Pb__AllocInfo *alloc = NULL;
	struct error err = { 0 };

	if (submit_send(c, o, NULL, NULL, NULL, &rsp, &err) < 0) {
		submit_refused(cmd, "Job submit/allocate failed", err.code, err.line);
		return NULL;
	}
	if (rsp->code) {
		submit_refused(cmd, o->immediate_sec >= 0 && rsp->code != ESLURM_DEPENDENCY ? "Unable to allocate resources" : "Job submit/allocate failed", (int)rsp->code, rsp->detail);
	} else {
		if (!o->quiet)
			submit_user_msg(cmd, rsp->user_msg);
		atomic_store(&held.job_id, rsp->job_id);
		alloc = rsp->alloc;
		rsp->alloc = NULL;
		if (!alloc)
			alloc = alloc_wait(c, rsp->job_id, !rsp->configuring);
	}
	pb__submit_rsp__free_unpacked(rsp, NULL);
	return alloc;
}

static void alloc_release(struct client *c, uint32_t job_id, int code)
{
	Pb__JobDoneReq req = PB__JOB_DONE_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };

	if (atomic_exchange(&held.over, true))
		return;
	say("Relinquishing job allocation %u", job_id);
	req.job_id = job_id;
	req.exit_status = (uint32_t)(code & 0xff) << 8;
	if (client_call(c, RPC_JOB_DONE, &req.base, 0, &msg, &err) < 0)
		fprintf(stderr, "%s: error: cannot give back job allocation %u: %s\n", cmd, job_id, err.line);
	if (msg)
		protobuf_c_message_free_unpacked(msg, NULL);
}

/* Of a heterogeneous job only the variables of each component, the leader's id and how many tasks there are together. */
static void environment_het(const struct jobopt *o, const Pb__AllocInfo *alloc, struct envlist *env, const char *cluster, const char *conf)
{
	Pb__JobRecord **job = xcalloc(alloc->n_het + 1, sizeof(*job));
	bool *tell = xcalloc(alloc->n_het + 1, sizeof(*tell));
	const struct jobopt *p = o;
	uint32_t tasks = 0;

	for (size_t i = 0; i <= alloc->n_het; i++, p = p && p->next ? p->next : NULL) {
		job[i] = i ? alloc->het[i - 1]->job : alloc->job;
		tell[i] = p && p->desc->has_mem_per_cpu;
		tasks += job[i]->num_tasks;
	}
	jobenv_add_het(env, job, alloc->n_het + 1, JOBENV_SALLOC, tell);
	envlist_setf(env, "SLURM_JOB_ID", "%u", alloc->job->job_id);
	envlist_setf(env, "SLURM_NTASKS", "%u", tasks);
	envlist_setf(env, "SLURM_NPROCS", "%u", tasks);
	envlist_set(env, "SLURM_CLUSTER_NAME", cluster);
	envlist_set(env, "SLURM_CONF", conf);
	free(job);
	free(tell);
}

static void environment_make(const struct jobopt *o, const struct client *c, const Pb__AllocInfo *alloc, const char *here, struct envlist *env)
{
	extern char **environ;
	const char *cluster = conf_str(client_conf(c), CONF_ClusterName);

	for (char **v = environ; *v; v++)
		envlist_load(env, v, 1);
	if (alloc->n_het) {
		environment_het(o, alloc, env, cluster, conf_path(client_conf(c)));
	} else {
		jobenv_add(env, alloc->job, JOBENV_SALLOC, cluster, conf_path(client_conf(c)));
		if (!o->desc->has_mem_per_cpu)             /* the default memory is not told, as the reference */
			envlist_unset(env, "SLURM_MEM_PER_CPU");
	}
	jobenv_add_mpi(env, conf_str(client_conf(c), CONF_MpiParams));
	if (o->no_torch)
		envlist_set(env, "SLURM_EXPORT_TORCH", "no");
	submit_env_gpus(o, env);
	envlist_set(env, "SLURM_SUBMIT_DIR", here ? here : "/");
	envlist_set(env, "SLURM_SUBMIT_HOST", o->desc->alloc_node ? o->desc->alloc_node : "localhost");
}

/* --chdir is where the command runs; SLURM_SUBMIT_DIR stays where salloc was called. */
static bool folder_enter(const struct jobopt *o)
{
	if (!jobopt_is_set(o, JO_chdir) || chdir(o->desc->work_dir) == 0)
		return true;
	fprintf(stderr, "%s: error: --chdir=%s: %s\n", cmd, o->desc->work_dir, strerror(errno));
	return false;
}

/* What runs without a command: the user's shell here or, with LaunchParameters=use_interactive_step, on the job's first node. */
static char **shell_command(const struct client *c, struct envlist *env)
{
	static char *own[2], *remote[4] = { (char *)"/bin/sh", (char *)"-c" };
	const char *options = conf_str(client_conf(c), CONF_InteractiveStepOptions);
	own[0] = (char *)(uintptr_t)shell_of_user();
	if (!conf_has(client_conf(c), CONF_LaunchParameters, "use_interactive_step"))
		return own;
	envlist_set_default(env, "SHELL", own[0]);
	remote[2] = xasprintf("exec srun %s", options ? options : "");
	return remote;
}

static int allocation_use(struct jobopt *o, struct client *c, char **argv, const sigset_t *old)
{
	char *here = getcwd(NULL, 0);
	Pb__AllocInfo *alloc = folder_enter(o) ? alloc_get(c, o) : NULL;
	struct envlist env = ENVLIST_INIT;
	uint32_t job_id;
	int code = 0;

	if (!alloc) {
		free(here);
		return 1;
	}
	job_id = alloc->job->job_id;
	atomic_store(&held.granted, true);
	say("Granted job allocation %u", job_id);
	if (o->bell && !o->no_bell && isatty(STDOUT_FILENO))
		fputc('\a', stdout);
	if (alloc->job->alloc)
		say("Nodes %s are ready for job", alloc->job->alloc->nodes);
	for (size_t i = 0; i < alloc->n_het; i++)
		if (alloc->het[i]->job->alloc)
			say("Nodes %s are ready for job", alloc->het[i]->job->alloc->nodes);
	if (!o->no_shell) {
		thread_start(end_thread, NULL);
		environment_make(o, c, alloc, here, &env);
		code = command_run(argv[0] ? argv : shell_command(c, &env), env.var, old);
		alloc_release(c, job_id, code);
	}
	free(here);
	envlist_fini(&env);
	pb__alloc_info__free_unpacked(alloc, NULL);
	return code;
}

/* A container holds steps: the shell of the allocation is one only where it runs on the job's node. */
static bool container_can_be(const struct jobopt *o, const struct client *c)
{
	bool asked = false;
	for (const struct jobopt *p = o; p; p = p->next)
		asked = asked || p->desc->container;
	if (!asked || conf_has(client_conf(c), CONF_LaunchParameters, "use_interactive_step"))
		return true;
	log_error("--container requires LaunchParameters=use_interactive_step");
	return false;
}

static int run(struct jobopt *o, char **argv)
{
	static sigset_t set, old;
	struct client *c = NULL;
	struct error err = { 0 };
	int code;

	held.quiet = o->quiet;
	held.tty = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
	held.kill_signal = o->kill_command ? (o->kill_command_signal ? o->kill_command_signal : SIGTERM) : held.tty && !argv[0] ? SIGHUP : 0;
	sigemptyset(&set);
	for (size_t i = 0; i < 4; i++)
		sigaddset(&set, (int[]){ SIGINT, SIGQUIT, SIGTERM, SIGHUP }[i]);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	if (client_open_with(&c, plugins_conf(), &err) < 0) {
		fprintf(stderr, "%s: error: %s\n", cmd, err.line);
		return 1;
	}
	thread_start(signal_thread, &set);
	code = container_can_be(o, c) ? allocation_use(o, c, argv, &old) : 1;
	client_close(c);
	return code;
}

int main(int argc, char **argv)
{
	struct jobopt o;
	struct error err = { 0 };
	int first, code = 0;

	log_init(cmd, LOG_L_INFO);
	jobopt_init(&o, JOBOPT_SALLOC);
	plugins_load(&o);
	first = hetopt_parse_args(&o, argc, argv, false, &err);
	if (first < 0)
		code = jobopt_report(&o, &err);
	else if (!jobopt_show(&o, &code)) {
		for (struct jobopt *p = &o; p; p = p->next)
			if (!p->desc->name && !getenv("SALLOC_JOB_NAME"))
				p->desc->name = xstrdup(o.no_shell ? "no-shell" : "interactive");
		int rc = hetopt_finish(&o, &err);
		for (struct jobopt *p = &o; p && rc >= 0; p = p->next)
			rc = jobopt_to_desc(p, NULL, 0, NULL, &err);
		if (rc < 0) {
			code = jobopt_report(&o, &err);
		} else {
			if (o.verbose)
				jobopt_dump(&o);
			code = plugins_ready(&o);
			if (code == 0)
				code = run(&o, argv + first);
		}
	}
	plugins_exit();
	jobopt_fini(&o);
	return code;
}
