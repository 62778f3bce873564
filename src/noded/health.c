/* health.c - HealthCheckProgram (see health.h). A check that fails drains the node, with the first line it said as reason; one that passes lifts that drain,
 * and no other. The first result after a start is always told: the slurmd before may have drained the node. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "noded/events.h"
#include "noded/health.h"
#include "noded/script.h"
#include "noded/script_env.h"

static struct { uv_timer_t timer; bool made, running, bad, told; } health;

static void out_path(const struct noded *n, char *buf, size_t size) { snprintf(buf, size, "%s/health.out", n->spool); }

/* The first line that it said: the reason for people. */
static void reason_read(const struct noded *n, int status, char *buf, size_t size)
{
	char path[3072], line[200] = "";
	out_path(n, path, sizeof path);
	FILE *f = fopen(path, "re");
	if (f && fgets(line, sizeof line, f))
		line[strcspn(line, "\r\n")] = 0;
	if (f)
		fclose(f);
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	if (*line)
		snprintf(buf, size, "%s", line);
	else
		snprintf(buf, size, "HealthCheckProgram: %s %d", WIFSIGNALED(status) ? "killed by signal" : "exit status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void on_done(struct noded *n, int status, void *arg)
{
	char reason[256];
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	(void)arg;
	health.running = false;
	if (!status && !health.bad && health.told)
		return;
	e.kind = PB__NODE_EVENT__KIND__HEALTH;
	e.has_drain = true;
	e.drain = status != 0;
	if (status) {
		reason_read(n, status, reason, sizeof reason);
		log_error("health check: %s", reason);
		e.text = reason;
	}
	health.bad = status != 0;
	health.told = true;
	events_push(n, &e);
}

static void on_timer(uv_timer_t *timer)
{
	struct noded *n = timer->data;
	struct envlist env = ENVLIST_INIT;
	char path[3072];
	uint64_t limit = conf_num(n->conf, CONF_HealthCheckTimeout);
	if (health.running)
		return;
	health.running = true;
	envlist_set(&env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	envlist_set(&env, "SLURMD_NODENAME", n->name);
	envlist_set(&env, "SLURM_CONF", conf_path(n->conf));
	out_path(n, path, sizeof path);
	script_run_to(n, conf_str(n->conf, CONF_HealthCheckProgram), env.var, path, limit ? (uint32_t)limit : 60, on_done, NULL);
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
