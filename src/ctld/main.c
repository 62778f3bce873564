/* main.c - slurmctld: options, start, stop, signals
 *
 * Order: options, configuration (errors go to the terminal), leave the terminal, log, identity (as root, then SlurmUser for good), state, core, and last
 * the sockets: nothing can be asked before all is restored. Stopping: no new calls, the open turn is stored, answers leave, then the end. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/daemon.h"
#include "base/log.h"
#include "ctld/acct.h"
#include "ctld/agent.h"
#include "ctld/commit.h"
#include "ctld/core_config.h"
#include "ctld/cred.h"
#include "ctld/ident.h"
#include "ctld/reads.h"
#include "ctld/site.h"
#include "ctld/start.h"
#include "ctld/turn.h"
#include "ctld/waiters.h"

static const char usage[] =
	"Usage: slurmctld [OPTIONS]\n"
	"The controller: takes jobs, decides when and where they run, and keeps the state of the cluster.\n\n"
	"  -c          forget all jobs and node states of the last run\n"
	"  -D          stay in the foreground and write the log to stderr as well\n"
	"  -f FILE     configuration file (else $SLURM_CONF, else /etc/slurm/slurm.conf)\n"
	"  -h          this text\n"
	"  -i          start even if parts of the saved state cannot be read\n"
	"  -L FILE     log file (else SlurmctldLogFile)\n"
	"  -n NICE     scheduling priority of the daemon\n"
	"  -r, -R      restore the saved state (this is always done)\n"
	"  -s          work in the folder of the log file\n"
	"  --systemd   run as a systemd service: foreground, and tell when ready\n"
	"  -v          more detail in the log; may be repeated\n"
	"  -V          print the version\n";

struct options { const char *conf, *log; bool clear, foreground, ignore, chdir; int verbose, nice; };

static int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = { { "systemd", no_argument, NULL, 1 }, { "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 } };
	int c;
	while ((c = getopt_long(argc, argv, "cDf:hiL:n:rRsvV", longs, NULL)) != -1) {
		switch (c) {
		case 'c': o->clear = true; break;
		case 'D': o->foreground = true; break;
		case 'f': o->conf = optarg; break;
		case 'h': fputs(usage, stdout); exit(0);
		case 'i': o->ignore = true; break;
		case 'L': o->log = optarg; break;
		case 'n': o->nice = (int)strtol(optarg, NULL, 10); break;
		case 'r': case 'R': break;
		case 's': o->chdir = true; break;
		case 'v': o->verbose++; break;
		case 'V': puts("slurm " BERTH_VERSION); exit(0);
		case 1: o->foreground = true; break;
		default: return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "slurmctld: unexpected argument \"%s\"\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static struct ctld the_daemon;

static void signal_stop(uv_signal_t *h, int n)
{
	log_info("signal %s: shutting down", strsignal(n));
	ctld_stop(h->data);
}

static void signal_reload(uv_signal_t *h, int n)
{
	struct error err = { 0 };
	if (ctld_reconfigure(h->data, &err))
		log_error("reconfigure: %s; the configuration in force stays", err.line);
}

static void signal_log(uv_signal_t *h, int n) { start_log(h->data); }
static void signal_ignore(uv_signal_t *h, int n) { }

static void signals_watch(struct ctld *d)
{
	static const struct { int number; uv_signal_cb fn; } want[] = {
		{ SIGTERM, signal_stop }, { SIGINT, signal_stop }, { SIGQUIT, signal_stop }, { SIGHUP, signal_reload }, { SIGUSR2, signal_log }, { SIGUSR1, signal_ignore },
	};
	static uv_signal_t handle[sizeof want / sizeof *want];
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file limit is a full disk: the store says so */
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		uv_signal_init(d->loop, &handle[i]);
		handle[i].data = d;
		uv_signal_start(&handle[i], want[i].fn, want[i].number);
		uv_unref((uv_handle_t *)&handle[i]);
	}
}

void ctld_stop(struct ctld *d)
{
	d->stopping = true;
	uv_stop(d->loop);
}

static void nothing(uv_timer_t *h) { }

/* Let answers and last orders leave, for at most `ms`. */
static void drain(struct ctld *d, uint64_t ms)
{
	static uv_timer_t timer;
	uint64_t until = ctld_now_ms() + ms;
	uv_timer_init(d->loop, &timer);
	uv_timer_start(&timer, nothing, 20, 20);
	do
		uv_run(d->loop, UV_RUN_ONCE);
	while (agent_in_flight(d->agent) && ctld_now_ms() < until);
	uv_close((uv_handle_t *)&timer, NULL);
}

static int finish(struct ctld *d)
{
	site_stop();
	turn_close(d);
	drain(d, 2000);
	turn_close(d);
	bool stored = commit_stop(d->commit, 5000);
	for (int i = 0; i < 8; i++)
		uv_run(d->loop, UV_RUN_NOWAIT);
	if (!stored)
		log_error("the last changes could not be written; they were not acknowledged");
	wire_server_stop(d->server);
	if (d->sack)
		sack_stop(d->sack);
	for (int i = 0; i < 8; i++)
		uv_run(d->loop, UV_RUN_NOWAIT);
	store_close(d->store);
	daemon_end();
	log_info("slurmctld has ended");
	return stored ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct ctld *d = &the_daemon;
	struct error err = { 0 };
	log_init("slurmctld", LOG_L_INFO);
	if (options_parse(argc, argv, &o)) {
		fputs("Try 'slurmctld -h' for more information\n", stderr);
		return 1;
	}
	d->conf_file = o.conf ? realpath(o.conf, NULL) : NULL;
	d->log_file = xstrdup_null(o.log);
	d->clear_state = o.clear;
	d->ignore_errors = o.ignore;
	d->foreground = o.foreground;
	d->verbose = o.verbose;
	if (o.nice && setpriority(PRIO_PROCESS, 0, o.nice))
		log_error("cannot set the nice value %d: %s", o.nice, strerror(errno));
	int rc = o.conf && !d->conf_file ? error_set(&err, errno, "configuration file %s: %s", o.conf, strerror(errno)) : start_all(d, o.chdir, &err);
	if (rc) {
		log_fatal("%s", err.line);
		if (err.hint[0])
			log_fatal("%s", err.hint);
		daemon_end();
		return 1;
	}
	signals_watch(d);
	daemon_ready();
	while (!d->stopping)
		uv_run(d->loop, UV_RUN_DEFAULT);
	return finish(d);
}
