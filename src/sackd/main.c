/* main.c - sackd: hands tokens to users' commands on machines without slurmctld or slurmd
 *
 *   sackd [-D] [-f FILE] [--key-file FILE] [--systemd] [-v]... [-h] [-V]
 * All it does is in wire/sack.c; here are the options, the log, the pid file and the end. It serves until SIGTERM or SIGINT; SIGHUP
 * does nothing. slurm.conf has no log file for it: it logs to stderr, as journald and `-D` want it. */
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/daemon.h"
#include "base/log.h"
#include "client/client.h"

struct options { bool foreground; const char *conf; int verbose; };
struct sackd { uv_loop_t loop; struct sack *sack; uv_signal_t sig[3]; };

static const char usage[] =
	"Usage: sackd [OPTIONS]\n"
	"Offers tokens to the commands of this machine's users (AuthType=auth/slurm).\n"
	"  -D        stay in the foreground, log to stderr\n"
	"  -f FILE   read this slurm.conf\n"
	"  --key-file FILE  read the cluster key from this file\n"
	"  --systemd        started by systemd: stay in the foreground, no pid file\n"
	"  -h        print this help\n"
	"  -v        log more; may be repeated\n"
	"  -V        print the version\n";

/* Options of the reference that belong to a sackd without configuration files. */
static int option_refuse(const char *name)
{
	fprintf(stderr, "sackd: error: --%s does not work yet: sackd reads slurm.conf from a file, named by -f\n", name);
	return -1;
}

static int options_parse(int argc, char **argv, struct options *o)
{
	enum { KEY_FILE = 256, SYSTEMD, NOT_YET };
	static const struct option longs[] = {
		{ "help", 0, NULL, 'h' }, { "version", 0, NULL, 'V' }, { "key-file", 1, NULL, KEY_FILE }, { "systemd", 0, NULL, SYSTEMD },
		{ "conf-server", 1, NULL, NOT_YET }, { "ca-cert-file", 1, NULL, NOT_YET }, { "disable-reconfig", 0, NULL, NOT_YET },
		{ "jwks-file", 1, NULL, NOT_YET }, { "port", 1, NULL, NOT_YET }, { 0 },
	};
	int k, at = 0;
	while ((k = getopt_long(argc, argv, "Df:hvV", longs, &at)) != -1) {
		if (k == 'D' || k == SYSTEMD)
			o->foreground = true;
		else if (k == 'f')
			o->conf = optarg;
		else if (k == KEY_FILE)
			setenv("SLURM_SACK_KEY", optarg, 1);
		else if (k == 'v')
			o->verbose++;
		else if (k == 'V')
			return printf("slurm %s\n", BERTH_VERSION), exit(0), 0;
		else if (k == 'h')
			return fputs(usage, stdout), exit(0), 0;
		else
			return k == NOT_YET ? option_refuse(longs[at].name) : -1;
	}
	if (optind < argc)
		fprintf(stderr, "sackd: error: unexpected argument \"%s\"; see sackd -h\n", argv[optind]);
	return optind < argc ? -1 : 0;
}

static void on_signal(uv_signal_t *h, int signum)
{
	struct sackd *d = h->data;
	if (signum == SIGHUP)
		return;   /* nothing it holds could change but the key, which takes a restart */
	log_info("Terminate signal (SIGINT or SIGTERM) received");
	sack_stop(d->sack);
	for (int i = 0; i < 3; i++)
		uv_close((uv_handle_t *)&d->sig[i], NULL);
}

static int serve(struct sackd *d, const struct conf *conf, struct error *err)
{
	static const int signals[3] = { SIGTERM, SIGINT, SIGHUP };
	struct wire_auth *auth = NULL;
	int rc = client_auth_create(conf, CLIENT_AUTH_DAEMON, &auth, err);
	if (rc)
		return rc;
	uv_loop_init(&d->loop);
	rc = client_sack_start(conf, &d->loop, auth, "sackd", &d->sack, err);
	if (!rc && !d->sack)
		log_info("AuthType is auth/munge: munged says who users are, nothing to do but wait");
	for (int i = 0; i < 3 && !rc; i++) {
		uv_signal_init(&d->loop, &d->sig[i]);
		d->sig[i].data = d;
		uv_signal_start(&d->sig[i], on_signal, signals[i]);
	}
	if (!rc) {
		daemon_ready();
		log_info("sackd version %s started", BERTH_VERSION);
		uv_run(&d->loop, UV_RUN_DEFAULT);
	}
	(void)uv_loop_close(&d->loop);
	wire_auth_destroy(auth);
	return rc;
}

static int fail(const struct error *err)
{
	log_fatal("%s", err->line);
	if (err->hint[0])
		log_info("%s", err->hint);
	return 1;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct error err = { 0 };
	struct conf *conf = NULL;
	struct sackd d = { 0 };
	if (options_parse(argc, argv, &o))
		return 1;
	log_init("sackd", LOG_L_INFO + o.verbose > LOG_L_DEBUG5 ? LOG_L_DEBUG5 : LOG_L_INFO + o.verbose);
	signal(SIGPIPE, SIG_IGN);
	if (conf_load_client(o.conf, &conf, &err))
		return fail(&err);
	if (daemon_detach(o.foreground, o.foreground ? NULL : "/run/sackd.pid", &err))
		return fail(&err);
	int rc = serve(&d, conf, &err) ? fail(&err) : 0;
	daemon_end();
	conf_destroy(conf);
	return rc;
}
