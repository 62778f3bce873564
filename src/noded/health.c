/* health.c - HealthCheckProgram (see health.h). What it finds it says itself (scontrol update node); its exit status is only logged. */
#include <sys/wait.h>

#include "base/log.h"
#include "noded/health.h"
#include "noded/script.h"
#include "noded/script_env.h"

static struct { uv_timer_t timer; bool made, running; } health;

static void on_done(struct noded *n, int status, void *arg)
{
	(void)n, (void)arg;
	health.running = false;
	if (status)
		log_error("HealthCheckProgram ended with status %d", WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

static void on_timer(uv_timer_t *timer)
{
	struct noded *n = timer->data;
	struct envlist env = ENVLIST_INIT;
	uint64_t limit = conf_num(n->conf, CONF_HealthCheckTimeout);
	if (health.running)
		return;
	health.running = true;
	envlist_set(&env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	envlist_set(&env, "SLURMD_NODENAME", n->name);
	envlist_set(&env, "SLURM_CONF", conf_path(n->conf));
	script_run_one(n, conf_str(n->conf, CONF_HealthCheckProgram), env.var, limit ? (uint32_t)limit : 60, on_done, NULL);
	envlist_fini(&env);
}

void health_start(struct noded *n)
{
	const char *program = conf_str(n->conf, CONF_HealthCheckProgram);
	uint64_t every = conf_num(n->conf, CONF_HealthCheckInterval) * 1000;
	if (!health.made) {
		health.made = true;
		uv_timer_init(&n->loop, &health.timer);
		health.timer.data = n;
	}
	uv_timer_stop(&health.timer);
	if (program && *program && every)
		uv_timer_start(&health.timer, on_timer, 1, every);
}
