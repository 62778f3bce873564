/* main.c - slurmd: the daemon of a node
 *
 * Reads the configuration, takes its address and port, adopts the slurmstepds that are alive, registers, and then answers calls. SIGTERM
 * stops slurmd and never a step; SIGHUP reads the configuration again. Where to read on: noded.h, launch.c, jobs.c, steps.c. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/daemon.h"
#include "base/log.h"
#include "noded/configless.h"
#include "noded/cred.h"
#include "noded/emulate.h"
#include "noded/events.h"
#include "noded/figures.h"
#include "noded/handlers.h"
#include "noded/hardware.h"
#include "noded/health.h"
#include "noded/jobs.h"
#include "noded/options.h"
#include "noded/cgroup.h"
#include "noded/namespace.h"
#include "noded/place.h"
#include "noded/plugins.h"
#include "noded/registration.h"
#include "noded/script.h"
#include "noded/stepd.h"
#include "noded/steps.h"
#include "noded/used.h"

static struct noded the_node;

static int fatal(const struct error *err)
{
	log_fatal("%s", err->line);
	if (err->hint[0])
		log_error("%s", err->hint);
	return 1;
}

static void on_child(uv_signal_t *sig, int signum)
{
	int status;
	(void)signum;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		(void)script_reaped(sig->data, pid, status);
}

static void on_term(uv_signal_t *sig, int signum)
{
	struct noded *n = sig->data;
	log_info("slurmd stops at signal %d; its steps go on", signum);
	n->stopping = true;
	place_leave(n);
	exit(0);
}

static void on_hup(uv_signal_t *sig, int signum)
{
	struct noded *n = sig->data;
	struct error err = { 0 };
	(void)signum;
	log_info("reading the configuration again");
	if (noded_load_conf(n, &err) < 0) {
		log_error("%s; the old configuration stays in force", err.line);
		return;
	}
	registration_again(n);
}

/* The log was moved away: begin it anew. */
static void on_usr2(uv_signal_t *sig, int signum)
{
	char *full = noded_log_path(sig->data);
	(void)signum;
	int rc = log_open(full, log_level_now());
	if (rc < 0)
		log_error("cannot write the log %s: %s", full, strerror(-rc));
	free(full);
}

static void signals_start(struct noded *n)
{
	static uv_signal_t handles[5];
	static const struct { int sig; uv_signal_cb fn; } list[] = { { SIGCHLD, on_child }, { SIGTERM, on_term }, { SIGINT, on_term }, { SIGHUP, on_hup }, { SIGUSR2, on_usr2 } };
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		uv_signal_init(&n->loop, &handles[i]);
		handles[i].data = n;
		uv_signal_start(&handles[i], list[i].fn, list[i].sig);
	}
}

char *noded_log_path(const struct noded *n)
{
	const char *path = n->opt.log_file ? n->opt.log_file : conf_str(n->conf, CONF_SlurmdLogFile);
	return path && *path ? conf_expand(n->conf, path, n->name) : NULL;
}

const char *noded_debug_flags(const struct noded *n) { return n->debug_flags ? n->debug_flags : conf_str(n->conf, CONF_DebugFlags); }

static void log_setup(struct noded *n)
{
	enum log_level level = (enum log_level)conf_num(n->conf, CONF_SlurmdDebug);
	level = level + (unsigned)n->opt.verbose > LOG_L_DEBUG5 ? LOG_L_DEBUG5 : level + (unsigned)n->opt.verbose;
	char *full = noded_log_path(n);
	log_set_time_format(conf_str(n->conf, CONF_LogTimeFormat));
	log_set_flags(noded_debug_flags(n));
	log_set_levels(n->opt.foreground ? level : LOG_L_ERROR, level);
	int rc = log_open(full, level);
	if (rc < 0)
		log_error("cannot write the log %s: %s", full, strerror(-rc));
	free(full);
}

int noded_load_conf(struct noded *n, struct error *err)
{
	struct conf *conf;
	int rc = n->opt.conf_server ? configless_load(n, &conf, err) : conf_load(n->opt.conf_path, &conf, err);
	if (rc < 0)
		return rc;
	const Pb__NodeRecord *self = place_find(conf, n->opt.node_name, err);
	if (!self) {
		conf_destroy(conf);
		return err->code;
	}
	conf_destroy(n->conf);
	n->conf = conf;
	free(n->debug_flags);
	n->debug_flags = NULL;
	n->self = self;
	xstr_set(&n->name, self->name);
	log_setup(n);
	if (!n->hw.cpus)
		hardware_find(&n->hw, conf_str(n->conf, CONF_TmpFS));
	hardware_gres_find(n);
	health_configure(n);
	figures_configure(n);
	log_debug("configuration read from %s", conf_path(conf));
	return 0;
}

static int start(struct noded *n, struct error *err)
{
	int rc = place_take(n, err);
	if (rc < 0)
		return rc;
	n->creds = cred_book_create();
	n->events = events_create(n);
	used_load(n);
	signals_start(n);
	rc = place_listen(n, err);
	if (rc < 0)
		return rc;
	namespace_start(n);
	steps_adopt(n, n->opt.clean);
	if (!n->opt.clean)
		jobs_launch_again(n);
	cgroup_sweep(n);
	health_start(n);
	figures_start(n);
	registration_start(n);
	stepd_prepare(n);
	return 0;
}

int main(int argc, char **argv)
{
	struct noded *n = &the_node;
	struct error err = { 0 };
	log_init("slurmd", LOG_L_INFO);
	int rc = options_parse(n, argc, argv);
	if (rc >= 0)
		return rc;
	n->is_root = geteuid() == 0;
	n->start_time = (uint64_t)time(NULL);
	n->after_reboot = n->opt.rebooted;
	umask(022);
	uv_loop_init(&n->loop);
	if (n->opt.emulate)
		return emulate_main(n);
	if (noded_load_conf(n, &err) < 0)
		return fatal(&err);
	if (n->opt.print_gres) {
		hardware_gres_print(n);
		return n->gres_problem ? 1 : 0;
	}
	if (n->opt.has_nice && nice(n->opt.nice) < 0)
		log_error("cannot run at nice value %d: %s", n->opt.nice, strerror(errno));
	if (!n->opt.foreground && daemon_background(&err) < 0)
		return fatal(&err);
	if (!n->opt.foreground)
		uv_loop_fork(&n->loop);
	if (n->opt.lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		log_error("cannot lock slurmd in memory: %s", strerror(errno));
	if (plugins_start(n, &err) < 0 || start(n, &err) < 0)
		return fatal(&err);
	log_info("slurmd version %s started on node %s", BERTH_VERSION, n->name);
	daemon_ready();
	rc = uv_run(&n->loop, UV_RUN_DEFAULT);
	plugins_stop();
	return rc;
}
