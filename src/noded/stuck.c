/* stuck.c - steps whose processes could not be killed (see stuck.h) */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "noded/events.h"
#include "noded/script.h"
#include "noded/script_env.h"
#include "noded/steps.h"
#include "noded/stuck.h"

void stuck_found(struct noded *n, struct node_step *st, const char *who)
{
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	const char *program = conf_str(n->conf, CONF_UnkillableStepProgram);
	bool first = !st->stuck;
	st->stuck = true;
	log_error("processes of step %u.%d do not end although they were killed: %s", st->job_id, (int)st->step_id, who ? who : "?");
	e.kind = PB__NODE_EVENT__KIND__KILL_FAILED;
	e.has_job_id = e.has_restarts = e.has_step_id = e.has_drain = e.drain = true;
	e.job_id = st->job_id;
	e.restarts = st->restarts;
	e.step_id = st->step_id;
	e.text = (char *)(uintptr_t)"Kill task failed";
	e.detail = (char *)(uintptr_t)who;
	events_push(n, &e);
	if (!first || !program || !*program)
		return;
	struct envlist env = ENVLIST_INIT;
	script_env_job(n, NULL, st->job_id, "unkillable_step", &env);
	envlist_setf(&env, "SLURM_STEP_ID", "%u", st->step_id);
	envlist_setf(&env, "SLURM_STEPID", "%u", st->step_id);
	script_run_one(n, program, env.var, 300, NULL, NULL);
	envlist_fini(&env);
}

static void resume_ask(struct noded *n)
{
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	e.kind = PB__NODE_EVENT__KIND__KILL_ENDED;
	e.text = (char *)(uintptr_t)"Kill task failed";
	log_info("the processes that could not be killed are gone: this node can be used again");
	events_push(n, &e);
}

static void on_checked(struct noded *n, int status, void *arg)
{
	(void)arg;
	if (status)
		log_error("HealthCheckProgram ended with status %d: the node stays drained", status);
	else
		resume_ask(n);
}

void stuck_over(struct noded *n, const struct node_step *st)
{
	const char *program = conf_str(n->conf, CONF_HealthCheckProgram);
	uint64_t limit = conf_num(n->conf, CONF_HealthCheckTimeout);
	if (!st->stuck || conf_has(n->conf, CONF_SlurmdParameters, "no_kill_resume"))
		return;
	for (const struct node_step *o = n->steps; o; o = o->next)
		if (o->stuck && o != st)
			return;
	if (!program || !*program) {
		resume_ask(n);
		return;
	}
	struct envlist env = ENVLIST_INIT;
	envlist_set(&env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	envlist_set(&env, "SLURMD_NODENAME", n->name);
	envlist_set(&env, "SLURM_CONF", conf_path(n->conf));
	script_run_one(n, program, env.var, limit ? (uint32_t)limit : 60, on_checked, NULL);
	envlist_fini(&env);
}
