/* health.c - HealthCheckProgram (see health.h). A check that fails drains the node, with the first line it said as reason; one that passes lifts that drain,
 * and no other. The first result after a start is always told: the slurmd before may have drained the node.
 * The check at the start always runs (with REBOOT_ONLY, at the first start since the machine booted). Later ones ask slurmctld for the node's state where
 * HealthCheckNodeState names some: only slurmctld knows how much of the node is allocated. Without an answer nothing is run. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "base/log.h"
#include "model/states.h"
#include "noded/events.h"
#include "noded/health.h"
#include "noded/script.h"
#include "noded/script_env.h"

#define ASK_MS 10000

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

static void check_run(struct noded *n)
{
	struct envlist env = ENVLIST_INIT;
	char path[3072];
	uint64_t limit = conf_num(n->conf, CONF_HealthCheckTimeout);
	health.running = true;
	envlist_set(&env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	envlist_set(&env, "SLURMD_NODENAME", n->name);
	envlist_set(&env, "SLURM_CONF", conf_path(n->conf));
	out_path(n, path, sizeof path);
	script_run_to(n, conf_str(n->conf, CONF_HealthCheckProgram), env.var, path, limit ? (uint32_t)limit : 60, on_done, NULL);
	envlist_fini(&env);
}

static bool state_is_named(const struct noded *n, const Pb__NodeRecord *node)
{
	const struct conf *c = n->conf;
	switch (node->state) {
	case NODE_ALLOCATED:
		return conf_has(c, CONF_HealthCheckNodeState, "ALLOC");
	case NODE_MIXED:
		return conf_has(c, CONF_HealthCheckNodeState, "MIXED");
	case NODE_IDLE:
		return conf_has(c, CONF_HealthCheckNodeState, "IDLE") ||
			(conf_has(c, CONF_HealthCheckNodeState, "NONDRAINED_IDLE") && !(node->state_flags & NODEF_DRAIN));
	default:
		return false;
	}
}

static void on_state(int code, const ProtobufCMessage *msg, const char *detail, void *arg)
{
	struct noded *n = arg;
	const Pb__NodeListRsp *rsp = (const Pb__NodeListRsp *)msg;
	(void)detail;
	health.running = false;
	if (!code && rsp->n_node == 1 && !n->stopping && state_is_named(n, rsp->node[0]))
		check_run(n);
}

/* Are there states to be compared with? Without any, and with CYCLE alone, it is all of them. */
static bool states_matter(const struct noded *n)
{
	static const char *const word[] = { "ALLOC", "IDLE", "MIXED", "NONDRAINED_IDLE" };
	bool some = false;
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		some = some || conf_has(n->conf, CONF_HealthCheckNodeState, word[i]);
	return some && !conf_has(n->conf, CONF_HealthCheckNodeState, "ANY");
}

static void on_timer(uv_timer_t *timer)
{
	struct noded *n = timer->data;
	Pb__NodeListReq req = PB__NODE_LIST_REQ__INIT;
	if (health.running || n->stopping)
		return;
	if (!states_matter(n)) {
		check_run(n);
		return;
	}
	health.running = true;
	req.nodes = n->name;
	req.has_show_all = req.show_all = true;
	wire_link_call(n->ctld, RPC_NODE_LIST, &req.base, ASK_MS, on_state, n);
}

/* The kernel's name for this run of the machine, compared with the one that is noted in the spool, and noted. */
static bool first_since_boot(const struct noded *n)
{
	char path[3072], now[64] = "", noted[64] = "";
	int in = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), fd;
	snprintf(path, sizeof path, "%s/health.boot", n->spool);
	if (in < 0 || read(in, now, sizeof now - 1) < 0)
		now[0] = 0;
	if (in >= 0)
		close(in);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return true;
	if (read(fd, noted, sizeof noted - 1) < 0)
		noted[0] = 0;
	if (strcmp(now, noted) && pwrite(fd, now, strlen(now), 0) != (ssize_t)strlen(now))
		log_error("cannot note the boot in %s", path);
	close(fd);
	return strcmp(now, noted) != 0;
}

/* When this node's turn is: with CYCLE the nodes come one after the other, all within an interval. */
static uint64_t turn_ms(const struct noded *n, uint64_t every)
{
	Pb__NodeRecord *const *node;
	size_t count = conf_nodes(n->conf, &node);
	if (!conf_has(n->conf, CONF_HealthCheckNodeState, "CYCLE") || !count)
		return every;
	for (size_t i = 0; i < count; i++)
		if (node[i] == n->self)
			return every * i / count + 1;
	return every;
}

void health_configure(struct noded *n)
{
	const char *program = conf_str(n->conf, CONF_HealthCheckProgram);
	uint64_t every = conf_num(n->conf, CONF_HealthCheckInterval) * 1000;
	bool once = conf_has(n->conf, CONF_HealthCheckNodeState, "START_ONLY") || conf_has(n->conf, CONF_HealthCheckNodeState, "REBOOT_ONLY");
	if (!health.made)
		return;
	uv_timer_stop(&health.timer);
	if (program && *program && every && !once)
		uv_timer_start(&health.timer, on_timer, turn_ms(n, every), every);
}

void health_start(struct noded *n)
{
	const char *program = conf_str(n->conf, CONF_HealthCheckProgram);
	health.made = true;
	uv_timer_init(&n->loop, &health.timer);
	health.timer.data = n;
	if (program && *program && conf_num(n->conf, CONF_HealthCheckInterval) &&
	    (!conf_has(n->conf, CONF_HealthCheckNodeState, "REBOOT_ONLY") || first_since_boot(n) || n->opt.rebooted))
		check_run(n);
	health_configure(n);
}
