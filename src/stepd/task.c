/* task.c - forks, signals and reaps the tasks of a step
 *
 * A child works as root only until user_become(): it sets affinity, limits and nice value. As the user it changes directory, takes
 * its three ends (io.h), runs TaskProlog and executes the program. What goes wrong before that is written to the shared note. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/bcastpath.h"
#include "stepd/affinity.h"
#include "stepd/contain.h"
#include "stepd/contain_limit.h"
#include "stepd/env.h"
#include "stepd/gather.h"
#include "stepd/gpus.h"
#include "stepd/io.h"
#include "stepd/login.h"
#include "stepd/rlimits.h"
#include "stepd/mpi.h"
#include "stepd/multi.h"
#include "stepd/namespace.h"
#include "stepd/oci.h"
#include "stepd/plugins.h"
#include "stepd/prolog.h"
#include "stepd/step.h"
#include "stepd/task.h"
#include "stepd/user.h"

static void give_up(struct step *s, int error, const char *what)
{
	step_fail(s, error, "%s: %s", what, strerror(error));
	_exit(1);
}

static void signals_reset(void)
{
	sigset_t none;
	sigemptyset(&none);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static const char *work_dir(const struct step *s)
{
	if (s->spec)
		return s->spec->cwd;
	return s->cred->job->desc ? s->cred->job->desc->work_dir : NULL;
}

static uint32_t step_umask(const struct step *s)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	if (s->spec && s->spec->has_umask)
		return s->spec->umask;
	return d && d->has_umask ? d->umask : 022;
}

static void exec_program(struct step *s, char **argv, char **env)
{
	environ = env;
	execvp(argv[0], argv);
	int error = errno;
	dprintf(2, "slurmstepd: error: execve(): %s: %s\n", argv[0], strerror(error));
	_exit(error == ENOENT ? 2 : error & 0xff);
}

static void child_run(struct step *s, struct task *t)
{
	if (!io_has_terminal(s, t))        /* that one makes a session of its own */
		setpgid(0, s->pgid);
	affinity_apply(s, t);
	limits_apply(s);
	int rc = namespace_enter(s);
	if (rc < 0)
		give_up(s, -rc, "cannot make the job's private folders");
	char **env = plugins_child_privileged(s, t, env_task(s, t));
	rc = user_become(s);
	if (rc < 0)
		give_up(s, -rc, "cannot become the job's user");
	if (s->contain == CONTAIN_TREE)            /* nobody could find it when slurmstepd is killed */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	signals_reset();
	umask((mode_t)step_umask(s));
	io_child(s, t);
	env = login_env(s, env);
	if (!env)
		_exit(1);
	if (affinity_mem_apply(s, t) < 0)
		_exit(1);
	affinity_say(s, t);
	gpus_say(s, t);
	user_chdir(s, work_dir(s));
	env = plugins_child_user(s, t, prolog_run(s, t, env));
	if (s->spec && s->spec->bcast_exec)        /* argv[0] stays what was typed */
		environ = env, execv(bcast_path(s->spec->bcast_exec, s->job_id, s->node), t->argv);
	rc = oci_exec(s, t, t->argv, env);
	if (rc) {
		dprintf(2, "slurmstepd: error: container setup failed: %s\n", strerror(rc));
		_exit(1);
	}
	exec_program(s, t->argv, env);
}

static int task_fork(struct step *s, struct task *t)
{
	if (io_open(s, t) < 0 || mpi_open(s, t) < 0)
		return -1;
	pid_t pid = contain_fork(s, t);
	if (pid < 0)
		return step_fail(s, errno, "cannot fork task %u: %s", t->rank, strerror(errno));
	if (!pid)
		child_run(s, t);
	io_forked(s);
	mpi_forked(s, t);
	t->pid = t->pgid = pid;
	if (!io_has_terminal(s, t)) {
		s->pgid = s->pgid ? s->pgid : pid;
		t->pgid = s->pgid;
		setpgid(pid, s->pgid);
	}
	s->running++;
	s->started++;
	return plugins_forked(s, t);
}

/* The launch's words, with the NULL that execvp wants. */
static char **step_argv(const struct step *s)
{
	char **argv = xcalloc(s->spec->n_argv + 1, sizeof *argv);
	memcpy(argv, s->spec->argv, s->spec->n_argv * sizeof *argv);
	return argv;
}

int task_prepare(struct step *s)
{
	char **words = s->spec ? step_argv(s) : NULL;
	if (words && !words[0] && !s->spec->n_multi_prog)
		return step_fail(s, EINVAL, "no command given");
	s->tasks = s->batch ? 1 : (uint32_t)s->here->n_task_ids;
	s->task = xcalloc(s->tasks ? s->tasks : 1, sizeof *s->task);
	for (uint32_t i = 0; i < s->tasks; i++) {
		struct task *t = &s->task[i];
		t->local = i;
		t->rank = s->batch ? 0 : s->here->task_ids[i];
		t->in = t->out = t->err = -1;
		t->argv = words;
		if (s->spec && s->spec->n_multi_prog && multi_find(s, t) < 0)
			return -1;
	}
	return 0;
}

static char **batch_argv(struct step *s)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	size_t n = d ? d->n_args : 0;
	char **argv = xcalloc(n + 2, sizeof *argv);
	argv[0] = s->script;
	for (size_t i = 0; i < n; i++)
		argv[i + 1] = d->args[i];
	return argv;
}

int task_launch(struct step *s)
{
	if (affinity_prepare(s) < 0 || namespace_prepare(s) < 0 || oci_prepare(s) < 0)
		return -1;
	env_prepare(s);
	if (s->batch)
		s->task[0].argv = batch_argv(s);
	if (plugins_start(s) < 0)
		return -1;
	for (uint32_t i = 0; i < s->tasks; i++)
		if (task_fork(s, &s->task[i]) < 0)
			return -1;
	plugins_all_forked();
	io_launched(s);
	mpi_launched(s);
	return 0;
}

static struct task *task_find(struct step *s, pid_t pid)
{
	for (uint32_t i = 0; i < s->tasks; i++)
		if (s->task[i].pid == pid && !s->task[i].ended)
			return &s->task[i];
	return NULL;
}

void task_reap(struct step *s)
{
	struct rusage usage;
	int status;
	for (siginfo_t info = { 0 }; !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid; info.si_pid = 0) {
		pid_t pid = info.si_pid;
		struct task *t = task_find(s, pid);
		if (t)
			gather_last(s, t);
		if (wait4(pid, &status, WNOHANG, &usage) != pid)
			return;
		if (!t) {
			if (!prolog_reaped(s, pid, status) && !mpi_reaped(s, pid) && !oci_reaped(s, pid, status))
				gather_stray(s, &usage);
			continue;
		}
		t->ended = true;
		t->status = status;
		gather_ended(s, t, &usage);
		s->running--;
		if (s->note->error && !s->launch_error) {
			s->launch_error = s->note->error;
			s->launch_text = xstrdup(s->note->text);
			log_error("%s", s->note->text);
		}
		log_debug("task %u (%d) exited with status %d", t->rank, (int)pid, status);
		contain_oom(s);
		plugins_task_end(s, t);
		prolog_task_end(s, t);
		io_task_end(s, t);
	}
}

void task_signal(struct step *s, int sig)
{
	if (sig == SIGKILL) {
		s->killed = true;
		contain_signal(s, sig);
		return;
	}
	pid_t done = 0;
	for (uint32_t i = 0; i < s->tasks; i++) {
		const struct task *t = &s->task[i];
		if (!t->pid || t->ended || t->pgid == done)
			continue;
		done = t->pgid;
		killpg(done, sig);
	}
}

void task_signal_shell(struct step *s, int sig)
{
	if (s->tasks && s->task[0].pid && !s->task[0].ended)
		kill(s->task[0].pid, sig);
}

#define TERM_AFTER_MS 5   /* of two signals that are pending a process takes the lower number first: SIGCONT shall be handled before SIGTERM comes, as with the reference */

static void on_kill_wait(uv_timer_t *timer)
{
	struct step *s = timer->data;
	if (s->term_due_sec) {
		contain_signal(s, SIGTERM);
		uv_timer_start(timer, on_kill_wait, (uint64_t)s->term_due_sec * 1000, 1000);
		s->term_due_sec = 0;
		return;
	}
	log_debug("step %s did not end within KillWait, sending SIGKILL", s->name);
	contain_signal(s, SIGKILL);
}

void task_terminate(struct step *s, uint32_t kill_wait_sec)
{
	s->killed = true;
	if (!kill_wait_sec) {
		contain_signal(s, SIGKILL);
		return;
	}
	if (s->kill_timer_on)
		return;
	contain_signal(s, SIGCONT);
	s->kill_timer_on = true;
	s->term_due_sec = kill_wait_sec;
	uv_timer_init(&s->loop, &s->kill_timer);
	s->kill_timer.data = s;
	uv_timer_start(&s->kill_timer, on_kill_wait, TERM_AFTER_MS, 1000);
}

int task_worst_status(const struct step *s)
{
	int worst = 0;
	for (uint32_t i = 0; i < s->tasks; i++) {
		int st = s->task[i].status;
		if (WIFSIGNALED(st) ? !WIFSIGNALED(worst) || st > worst : !WIFSIGNALED(worst) && st > worst)
			worst = st;
	}
	return worst;
}
