/* main.c - slurmdbd: options, start, the calls it answers
 *
 * Order: options, slurmdbd.conf (beside slurm.conf; it must be private), leave the terminal, log, key (as root), then SlurmUser for good, database, and last
 * the port. Every call is answered on the loop, one after the other: a DB_SEND after its commit. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/str.h"
#include "client/client.h"
#include "dbd/acct_rpc.h"
#include "dbd/dbd.h"
#include "proto/controller.pb-c.h"

static const char usage[] =
	"Usage: slurmdbd [OPTIONS]\n"
	"Keeps the accounting records of clusters and answers sacct.\n\n"
	"  -D            stay in the foreground and write the log to stderr as well\n"
	"  -f FILE       configuration file (else slurmdbd.conf in the folder of $SLURM_CONF, else /etc/slurm/slurmdbd.conf)\n"
	"  -h            this text\n"
	"  -n NICE       scheduling priority of the daemon\n"
	"  -R VERSION    take the schema of the database down to VERSION, for an older slurmdbd, and end\n"
	"  -s            work in the folder of the log file\n"
	"  -u            say whether the schema of the database is to be converted (status 1) or not (0), and end\n"
	"  -v            more detail in the log; may be repeated\n"
	"  -V            print the version\n";

struct dbd {
	const char *conf_file;
	struct conf *conf;
	struct db *db;
	struct acct_calls acct;
	struct wire_auth *auth;
	struct wire_server *server;
	uv_loop_t *loop;
	uint32_t slurm_uid;
	gid_t slurm_gid;
	bool foreground, chdir, stopping, ask_version;
	int verbose, back_to;
};
static struct dbd the_daemon = { .back_to = -1 };

/* --- calls ------------------------------------------------------------------------------------------------- */
static void do_ping(struct dbd *d, struct wire_req *r)
{
	Pb__PingRsp rsp = PB__PING_RSP__INIT;
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	rsp.host = host;
	rsp.now = (uint64_t)time(NULL);
	rsp.version = (char *)(uintptr_t)BERTH_VERSION;
	rsp.has_primary = rsp.primary = true;
	wire_reply(r, &rsp.base);
}

static void do_send(struct dbd *d, struct wire_req *r)
{
	Pb__DbdSendRsp rsp = PB__DBD_SEND_RSP__INIT;
	struct error err = { 0 };
	int rc = ingest(d->db, (const Pb__DbdSendReq *)wire_req_msg(r), &rsp.seq, &err);
	if (rc) {
		log_error("records not stored, slurmctld keeps them: %s", err.line);
		wire_reply_error(r, rc, err.line);
		return;
	}
	wire_reply(r, &rsp.base);
}

static bool is_operator(const struct dbd *d, const struct wire_identity *id) { return id->uid == 0 || id->uid == d->slurm_uid; }

/* MaxQueryTimeRange: does the question of an ordinary user span more? Named jobs may be asked for whenever they were. */
static bool too_wide(const struct dbd *d, const Pb__DbdJobsReq *q)
{
	uint64_t most_min = conf_num(d->conf, CONF_Dbd_MaxQueryTimeRange), end = q->has_end && q->end ? q->end : (uint64_t)time(NULL);
	return most_min < UINT64_MAX / 60 && most_min && !q->n_id && end > q->start && end - q->start > most_min * 60;
}

static void do_jobs(struct dbd *d, struct wire_req *r)
{
	const struct wire_identity *id = wire_req_identity(r);
	struct query_result res;
	struct error err = { 0 };
	bool private = conf_has(d->conf, CONF_Dbd_PrivateData, "jobs") && !is_operator(d, id);
	if (!is_operator(d, id) && too_wide(d, (const Pb__DbdJobsReq *)wire_req_msg(r))) {
		wire_reply_error(r, -EINVAL, "Too wide of a date range in query");
		return;
	}
	int rc = query_jobs(d->db, (const Pb__DbdJobsReq *)wire_req_msg(r), private ? id->uid : UINT32_MAX, &res, &err);
	if (rc) {
		wire_reply_error(r, rc, err.line);
		return;
	}
	Pb__DbdJobsRsp rsp = PB__DBD_JOBS_RSP__INIT;
	rsp.n_job = res.n;
	rsp.job = res.job;
	wire_reply(r, &rsp.base);
	query_free(&res);
}

static void do_acct_get(struct dbd *d, struct wire_req *r) { acct_get(&d->acct, r, is_operator(d, wire_req_identity(r))); }
static void do_acct_set(struct dbd *d, struct wire_req *r) { acct_set(&d->acct, r, is_operator(d, wire_req_identity(r))); }

static void handle(struct wire_req *r, void *arg)
{
	static const struct { enum rpc rpc; void (*fn)(struct dbd *, struct wire_req *); } calls[] = {
		{ RPC_DB_PING, do_ping }, { RPC_PING, do_ping }, { RPC_DB_SEND, do_send }, { RPC_DB_JOBS, do_jobs },
		{ RPC_DB_ACCT_GET, do_acct_get }, { RPC_DB_ACCT_SET, do_acct_set },
	};
	const struct rpc_row *row = rpc_row((uint16_t)wire_req_rpc(r));
	log_flag(AUDIT_RPCS, "%s from uid %u at %s", row ? row->name : "?", wire_req_identity(r)->uid, wire_req_peer(r));
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].rpc == wire_req_rpc(r)) {
			calls[i].fn(arg, r);
			return;
		}
	wire_reply_error(r, ESLURM_NOT_SUPPORTED, "slurmdbd does not answer this call");
}

/* Daemons of a cluster are root or SlurmUser; there are no operators but them yet. */
static bool policy(const struct wire_identity *id, enum rpc_who who, void *arg)
{
	(void)who;
	return is_operator(arg, id);
}

/* --- start -------------------------------------------------------------------------------------------------- */
static int number_bad(int option, const char *text)
{
	fprintf(stderr, "slurmdbd: -%c %s: not a number it can take\n", option, text);
	return -EINVAL;
}

static int options_parse(int argc, char **argv, struct dbd *d)
{
	static const struct option longs[] = { { "systemd", no_argument, NULL, 'D' }, { "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 } };
	long long number;
	int c;
	while ((c = getopt_long(argc, argv, "Df:hn:R:suvV", longs, NULL)) != -1) {
		switch (c) {
		case 'D': d->foreground = true; break;
		case 'f': d->conf_file = optarg; break;
		case 'h': fputs(usage, stdout); exit(0);
		case 'n':
			if (str_to_i64(optarg, -20, 19, &number))
				return number_bad(c, optarg);
			(void)!nice((int)number);
			break;
		case 'R':
			if (str_to_i64(optarg, 0, db_version_known(), &number))
				return number_bad(c, optarg);
			d->back_to = (int)number;
			break;
		case 's': d->chdir = true; break;
		case 'u': d->ask_version = true; break;
		case 'v': d->verbose++; break;
		case 'V': puts("slurm " BERTH_VERSION); exit(0);
		default: return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "slurmdbd: unexpected argument \"%s\"\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static int find_user(struct dbd *d, struct error *err)
{
	const char *name = conf_str(d->conf, CONF_Dbd_SlurmUser);
	unsigned long long uid;
	struct passwd *pw = str_to_u64(name, 0, UINT32_MAX - 1, &uid) ? getpwnam(name) : getpwuid((uid_t)uid);
	if (!pw)
		return error_set(err, ENOENT, "%s: SlurmUser=%s: there is no such user on this host", conf_path(d->conf), name);
	d->slurm_uid = pw->pw_uid;
	d->slurm_gid = pw->pw_gid;
	return 0;
}

/* The file may hold passwords: nobody else may read it. */
static int check_conf_file(const struct dbd *d, struct error *err)
{
	struct stat st;
	if (stat(conf_path(d->conf), &st))
		return error_set(err, errno, "%s: %s", conf_path(d->conf), strerror(errno));
	if (st.st_mode & 077)
		return error_set(err, EPERM, "%s: permissions are %03o, must be 600", conf_path(d->conf), st.st_mode & 0777);
	if (st.st_uid != d->slurm_uid && st.st_uid != geteuid())
		return error_set(err, EPERM, "%s: is owned by user id %u, must be owned by SlurmUser", conf_path(d->conf), st.st_uid);
	return 0;
}

static int become_user(const struct dbd *d, struct error *err)
{
	const struct passwd *pw = getpwuid(d->slurm_uid);
	const char *log = conf_str(d->conf, CONF_Dbd_LogFile);
	if (geteuid() == d->slurm_uid)
		return 0;
	if (geteuid() != 0 || !pw) {
		error_set(err, EPERM, "started by user id %u, but SlurmUser has id %u", geteuid(), d->slurm_uid);
		error_hint(err, "start slurmdbd as root or as SlurmUser");
		return -EPERM;
	}
	if (log && chown(log, d->slurm_uid, d->slurm_gid))
		log_debug("chown %s: %s", log, strerror(errno));
	if (initgroups(pw->pw_name, d->slurm_gid) || setgid(d->slurm_gid) || setuid(d->slurm_uid))
		return error_set(err, errno, "cannot become SlurmUser %s: %s", pw->pw_name, strerror(errno));
	return 0;
}

static void open_log(struct dbd *d)
{
	enum log_level level = (enum log_level)conf_num(d->conf, CONF_Dbd_DebugLevel);
	const char *path = conf_str(d->conf, CONF_Dbd_LogFile);
	level = level + d->verbose > LOG_L_DEBUG5 ? LOG_L_DEBUG5 : level + d->verbose;
	log_set_time_format(conf_str(d->conf, CONF_Dbd_LogTimeFormat));
	log_set_flags(conf_str(d->conf, CONF_Dbd_DebugFlags));
	log_set_levels(d->foreground || d->back_to >= 0 ? level : LOG_L_ERROR, level);
	int rc = log_open(path, level);
	if (rc)
		log_error("LogFile %s: %s", path, strerror(-rc));
}

static int open_db(struct dbd *d, struct error *err)
{
	const char *path = conf_str(d->conf, CONF_Dbd_StorageLoc);
	if (*path != '/')
		return error_set(err, EINVAL, "%s: StorageLoc=%s: expected the absolute path of a file", conf_path(d->conf), path);
	return db_open(path, &d->db, err);
}

static int start(struct dbd *d, struct error *err)
{
	int rc = conf_load_dbd(d->conf_file, &d->conf, err);
	if (!rc)
		rc = find_user(d, err);
	if (!rc)
		rc = check_conf_file(d, err);
	if (!rc)
		rc = daemon_detach(d->foreground || d->back_to >= 0, d->back_to >= 0 ? NULL : conf_str(d->conf, CONF_Dbd_PidFile), err);
	if (rc)
		return rc;
	open_log(d);
	rc = client_auth_create(d->conf, CLIENT_AUTH_DBD, &d->auth, err);
	if (!rc)
		rc = become_user(d, err);
	if (!rc)
		rc = open_db(d, err);
	if (rc || d->back_to >= 0)
		return rc;
	d->acct.db = d->db;
	d->loop = uv_default_loop();
	uint16_t port = (uint16_t)conf_num(d->conf, CONF_Dbd_DbdPort);
	rc = wire_server_start(d->loop, d->auth, conf_str(d->conf, CONF_Dbd_DbdAddr), port, handle, policy, d, &d->server, err);
	if (!rc)
		log_info("slurmdbd version %s started: %s, port %u", BERTH_VERSION, d->db->path, port);
	return rc;
}

/* --- life ----------------------------------------------------------------------------------------------------- */
static void signal_stop(uv_signal_t *h, int n)
{
	struct dbd *d = h->data;
	log_info("signal %s: shutting down", strsignal(n));
	d->stopping = true;
	uv_stop(d->loop);
}

/* The log may have been rotated; levels are read again. */
static void signal_reload(uv_signal_t *h, int n)
{
	struct dbd *d = h->data;
	struct conf *fresh;
	struct error err = { 0 };
	(void)n;
	if (conf_load_dbd(d->conf_file, &fresh, &err)) {
		log_error("reconfigure: %s; the configuration in force stays", err.line);
		return;
	}
	conf_destroy(d->conf);
	d->conf = fresh;
	open_log(d);
}

static void signal_log(uv_signal_t *h, int n)
{
	(void)n;
	open_log(h->data);
}

static void signals_watch(struct dbd *d)
{
	static const struct { int number; uv_signal_cb fn; } want[] = { { SIGTERM, signal_stop }, { SIGINT, signal_stop }, { SIGHUP, signal_reload }, { SIGUSR2, signal_log } };
	static uv_signal_t handle_of[sizeof want / sizeof *want];
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		uv_signal_init(d->loop, &handle_of[i]);
		handle_of[i].data = d;
		uv_signal_start(&handle_of[i], want[i].fn, want[i].number);
	}
}

/* -u: the status to end with. */
static int version_tell(struct dbd *d, struct error *err)
{
	int have = 0, rc = conf_load_dbd(d->conf_file, &d->conf, err);
	if (!rc)
		rc = db_version_of(conf_str(d->conf, CONF_Dbd_StorageLoc), &have, err);
	if (rc) {
		log_fatal("%s", err->line);
		return 1;
	}
	if (have == db_version_known())
		printf("Slurm Database already at the highest version '%d'. No conversion needed.\n", have);
	else
		printf("Slurm Database is at version '%d', this slurmdbd has version '%d'. Conversion needed.\n", have, db_version_known());
	return have != db_version_known();
}

int main(int argc, char **argv)
{
	struct dbd *d = &the_daemon;
	struct error err = { 0 };
	log_init("slurmdbd", LOG_L_INFO);
	if (options_parse(argc, argv, d)) {
		fputs("Try 'slurmdbd -h' for more information\n", stderr);
		return 1;
	}
	if (d->ask_version)
		return version_tell(d, &err);
	umask(077);
	int rc = start(d, &err);
	if (!rc && d->back_to >= 0)
		rc = db_migrate_down(d->db, d->back_to, &err);
	if (rc || d->back_to >= 0) {
		if (rc)
			log_fatal("%s%s%s", err.line, err.hint[0] ? "; " : "", err.hint);
		db_close(d->db);
		daemon_end();
		return rc != 0;
	}
	signals_watch(d);
	daemon_ready();
	while (!d->stopping)
		uv_run(d->loop, UV_RUN_DEFAULT);
	wire_server_stop(d->server);
	for (int i = 0; i < 8; i++)
		uv_run(d->loop, UV_RUN_NOWAIT);
	db_close(d->db);
	daemon_end();
	log_info("slurmdbd has ended");
	return 0;
}
