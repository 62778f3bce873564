/* plugins.c - SPANK in slurmstepd (see plugins.h)
 *
 * user_init runs in this process with only the effective ids changed, for as long as it takes: plugins make memory there that the tasks shall share. It is
 * the one place where that is done, and it is before there is any thread but this one. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "model/envlist.h"
#include "spank/stack.h"
#include "stepd/env.h"
#include "stepd/io.h"
#include "stepd/plugins.h"
#include "stepd/step.h"

static struct { struct step *step; bool on, in_child; int user_fd, gate[2]; uint32_t *ranks; char **own_argv; } plugins = { .gate = { -1, -1 } };

/* spank_log and errors reach the user; the rest goes to slurmd's log. */
static void say(char level, const char *line)
{
	bool user = level == 'l' || level == 'e';
	if (plugins.in_child && user) {
		dprintf(plugins.user_fd, "%s%s\n", level == 'e' ? "slurmstepd: error: " : "", line);
		return;
	}
	if (level == 'e')
		log_error("%s", line);
	else
		log_at(level == 'l' || level == 'i' ? LOG_L_INFO : level == 'v' ? LOG_L_VERBOSE : LOG_L_DEBUG, "%s", line);
	if (user)
		io_line(plugins.step, level == 'e', line);
}

static pid_t pid_of(uint32_t local) { return plugins.step->task[local].pid; }
static pid_t pid_of_none(uint32_t local) { (void)local; return -1; }

static void job_fill(struct step *s)
{
	struct spank_job *j = &spank_job;
	const Pb__JobRecord *job = s->cred->job;
	plugins.ranks = xcalloc(s->tasks + 1, sizeof *plugins.ranks);
	for (uint32_t i = 0; i < s->tasks; i++)
		plugins.ranks[i] = s->task[i].rank;
	j->job_id = s->job_id;
	j->step_id = s->step_id;
	j->uid = s->uid;
	j->gid = s->gid;
	j->gids = s->cred->gids;
	j->n_gids = s->cred->n_gids;
	j->nnodes = s->batch ? 0 : (uint32_t)s->cred->layout->n_node;
	j->nodeid = s->start->node_index;
	j->local_tasks = s->tasks;
	j->total_tasks = s->batch ? 0 : s->cred->layout->num_tasks;
	j->ncpus = s->here ? s->here->cpus : s->start->cpus;
	j->cpus_per_task = job->desc && job->desc->has_cpus_per_task ? job->desc->cpus_per_task : 1;
	j->restarts = job->restarts;
	j->array_id = job->array_job_id ? job->array_job_id : s->job_id;
	j->array_task = job->has_array_task_id ? job->array_task_id : UINT32_MAX - 1;     /* NO_VAL */
	j->ranks = plugins.ranks;
	j->pid_of = pid_of;
	j->job_cores = s->here ? s->here->job_cpu_ids : NULL;
	j->step_cores = s->here ? s->here->cpu_ids : NULL;
	j->job_mem = s->here ? s->here->job_mem : 0;
	j->step_mem = s->here ? s->here->mem : 0;
	j->env = env_common();
	j->argv = s->tasks ? s->task[0].argv : NULL;
	for (j->argc = 0; j->argv && j->argv[j->argc];)
		j->argc++;
	j->say = say;
}

/* What the user gave to srun, or to sbatch. The job's own programs do not see how it came here. */
static int options_take(struct step *s)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	if (s->external)
		return 0;
	if (s->spec)
		return spank_stack_options_in(s->spec->spank_opts, s->spec->n_spank_opts);
	return d ? spank_stack_options_in(d->spank_env, d->n_spank_env) : 0;
}

static void env_fill(struct step *s, struct envlist *e)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	for (size_t i = 0; i < e->count;) {
		char *name = xasprintf("%.*s", (int)strcspn(e->var[i], "="), e->var[i]);
		if (str_starts(name, SPANK_OPTION_ENV))
			envlist_unset(e, name);
		else
			i++;
		free(name);
	}
	for (size_t i = 0; s->batch && d && i < d->n_spank_env; i++)        /* so that an srun in the script has them */
		if (str_starts(d->spank_env[i], SPANK_CONTROL_ENV)) {
			char *var = xasprintf("SLURM_%s", d->spank_env[i]);
			envlist_load(e, &var, 1);
			free(var);
		}
}

/* As the user, effectively. Who was what we were is again afterwards, or nothing goes on. */
static int user_init(struct step *s)
{
	gid_t *own = NULL;
	int n = getgroups(0, NULL);
	if (geteuid())
		return spank_stack_call(SPANK_USER_INIT);
	own = xcalloc((size_t)n + 1, sizeof *own);
	n = getgroups(n, own);
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (setgroups(s->cred->n_gids, (const gid_t *)s->cred->gids) < 0 || setegid(s->gid) < 0 || seteuid(s->uid) < 0)
		abort();
	int rc = spank_stack_call(SPANK_USER_INIT);
	if (seteuid(uid) < 0 || setegid(gid) < 0 || setgroups((size_t)n, own) < 0)
		abort();
	free(own);
	return rc;
}

/* The extern step has no process: to plugins it is one task a node, without arguments and environment. */
static void extern_fill(struct step *s)
{
	static struct envlist none;
	static char *no_argv[1];
	struct spank_job *j = &spank_job;
	j->local_tasks = 1;
	j->total_tasks = j->nnodes;
	plugins.ranks = xcalloc(1, sizeof *plugins.ranks);
	plugins.ranks[0] = j->nodeid;
	j->ranks = plugins.ranks;
	j->ncpus = 0;
	j->cpus_per_task = 1;
	j->argv = no_argv;
	j->env = &none;
	j->pid_of = pid_of_none;
}

/* A batch script's node is at fault and drained, unless the plugin says that the job is; of a step or an extern step the job is. */
static int failed(struct step *s, const char *what)
{
	bool node = s->batch && !spank_stack_blames_job();
	return (node ? step_fail_node : step_fail)(s, EIO, "a required SPANK plugin %s on node %s", what, s->node);
}

int plugins_start(struct step *s)
{
	const char *path = step_conf(s, "PlugStack");
	if (!path)
		return 0;
	plugins.step = s;
	job_fill(s);
	if (s->external)
		extern_fill(s);
	else
		env_fill(s, env_common());
	if (spank_stack_load(path, step_conf(s, "PluginDir"), S_CTX_REMOTE) < 0)
		return failed(s, "cannot be loaded");
	plugins.on = !spank_stack_is_empty();
	if (!plugins.on)
		return 0;
	if (spank_stack_call(SPANK_INIT) < 0 || options_take(s) < 0 || spank_stack_call(SPANK_INIT_POST_OPT) < 0)
		return failed(s, "failed");
	if (s->external) {
		spank_job.forked = true;
		return spank_stack_call(SPANK_TASK_POST_FORK) < 0 ? failed(s, "failed") : 0;
	}
	if (user_init(s) < 0)
		return failed(s, "failed as the user");
	if (pipe2(plugins.gate, 02000000 /* O_CLOEXEC */) < 0)
		return step_fail(s, errno, "cannot make a pipe: %s", strerror(errno));
	return 0;
}

static void task_enter(struct task *t, struct envlist *e, pid_t pid)
{
	spank_job.in_task = true;
	spank_job.task_local = t->local;
	spank_job.task_global = t->rank;
	spank_job.task_pid = pid;
	spank_job.env = e;
	if (!plugins.in_child || !plugins.own_argv)
		plugins.own_argv = t->argv;            /* in a task's process it stays what the user gave, whatever is put before it */
	spank_job.task_argv = t->argv;
	spank_job.argv = plugins.own_argv;
	for (spank_job.argc = 0; spank_job.argv && spank_job.argv[spank_job.argc];)
		spank_job.argc++;
}

static void task_leave(struct task *t)
{
	if (t)
		t->argv = spank_job.task_argv;
	spank_job.in_task = spank_job.has_status = false;
	spank_job.env = env_common();
}

/* The task's environment, for plugins to change. Never freed: the child becomes its program. */
static struct envlist *env_of(char **env)
{
	struct envlist *e = xcalloc(1, sizeof *e);
	size_t n = 0;
	while (env[n])
		n++;
	envlist_load(e, env, n);
	return e;
}

char **plugins_child_privileged(struct step *s, struct task *t, char **env)
{
	char c;
	if (!plugins.on)
		return env;
	struct envlist *e = env_of(env);
	plugins.in_child = true;
	plugins.own_argv = NULL;
	plugins.user_fd = t->err >= 0 ? t->err : 2;
	close(plugins.gate[1]);
	spank_job.forked = false;              /* a task does not know its siblings */
	task_enter(t, e, getpid());
	if (spank_stack_call(SPANK_TASK_INIT_PRIVILEGED) < 0) {
		step_fail(s, EIO, "a required SPANK plugin failed for task %u", t->rank);
		_exit(1);
	}
	task_leave(t);
	/* Until all tasks are forked and their task_post_fork was called. */
	while (read(plugins.gate[0], &c, 1) < 0 && errno == EINTR)
		;
	return e->var;
}

char **plugins_child_user(struct step *s, struct task *t, char **env)
{
	if (!plugins.on)
		return env;
	(void)s;
	struct envlist *e = env_of(env);
	plugins.user_fd = 2;
	task_enter(t, e, getpid());
	if (spank_stack_call(SPANK_TASK_INIT) < 0) {
		dprintf(2, "slurmstepd: error: Failed to invoke spank plugin stack\n");
		_exit(1);
	}
	task_leave(t);
	return e->var;
}

int plugins_forked(struct step *s, struct task *t)
{
	if (!plugins.on)
		return 0;
	spank_job.forked = true;
	task_enter(t, env_common(), t->pid);
	int rc = spank_stack_call(SPANK_TASK_POST_FORK);
	task_leave(NULL);
	return rc < 0 ? failed(s, "failed after a fork") : 0;
}

void plugins_all_forked(void)
{
	if (!plugins.on)
		return;
	close(plugins.gate[0]);
	close(plugins.gate[1]);
}

void plugins_task_end(struct step *s, struct task *t)
{
	if (!plugins.on)
		return;
	(void)s;
	task_enter(t, env_common(), t->pid);
	spank_job.has_status = true;
	spank_job.status = t->status;
	(void)spank_stack_call(SPANK_TASK_EXIT);
	task_leave(NULL);
}

void plugins_end(struct step *s)
{
	(void)s;
	if (plugins.step && !spank_stack_is_empty())
		(void)spank_stack_call(SPANK_EXIT);
}

static uint32_t number(const char *name)
{
	const char *text = getenv(name);
	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

int plugins_script(void)
{
	const char *which = getenv("BERTH_SPANK_SCRIPT"), *path = getenv("BERTH_SPANK_STACK"), *dir = getenv("BERTH_SPANK_DIR");
	if (!which || !path)
		return -1;
	spank_job.job_id = number("SLURM_JOB_ID");
	spank_job.uid = number("SLURM_JOB_UID");
	spank_job.gid = number("SLURM_JOB_GID");
	log_init("slurmstepd", LOG_L_INFO);
	bool ok = spank_stack_load(path, dir, S_CTX_JOB_SCRIPT) == 0 && spank_stack_call(strcmp(which, "prolog") ? SPANK_JOB_EPILOG : SPANK_JOB_PROLOG) == 0;
	return ok ? 0 : 1;
}
