/* start.c - see start.h */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/str.h"
#include "client/client.h"
#include "ctld/accounts.h"
#include "ctld/acct.h"
#include "ctld/agent.h"
#include "ctld/core_config.h"
#include "ctld/cred.h"
#include "ctld/crontab.h"
#include "ctld/ident.h"
#include "ctld/reads.h"
#include "ctld/restore.h"
#include "ctld/start.h"
#include "ctld/turn.h"
#include "ctld/waiters.h"

#define HOUSEKEEPING_MS 2000

/* --- log -------------------------------------------------------------------------------------- */
static const char *log_path(const struct ctld *d) { return d->log_file ? d->log_file : conf_str(d->conf, CONF_SlurmctldLogFile); }

void start_log(struct ctld *d)
{
	uint64_t level = d->has_level ? d->level : conf_num(d->conf, CONF_SlurmctldDebug);
	const char *path = log_path(d);
	if (level > LOG_L_DEBUG5)
		level = LOG_L_INFO;
	if (d->verbose && level < LOG_L_INFO + (unsigned)d->verbose)
		level = LOG_L_INFO + (unsigned)d->verbose;
	if (level > LOG_L_DEBUG5)
		level = LOG_L_DEBUG5;
	log_set_time_format(conf_str(d->conf, CONF_LogTimeFormat));
	log_set_flags(d->debug_flags ? d->debug_flags : conf_str(d->conf, CONF_DebugFlags));
	log_init("slurmctld", d->foreground ? (enum log_level)level : LOG_L_ERROR); /* seen until daemon_ready */
	int rc = log_open(path, (enum log_level)level);
	if (rc) {
		log_init("slurmctld", LOG_L_INFO);
		log_error("cannot write log file %s: %s", path, strerror(-rc));
	}
}

/* --- identity --------------------------------------------------------------------------------- */
static int find_slurm_user(struct ctld *d, gid_t *ret_gid, struct error *err)
{
	const char *name = conf_str(d->conf, CONF_SlurmUser);
	unsigned long long number;
	struct passwd *pw;
	if (!name)
		name = "root";
	if (!str_to_u64(name, 0, UINT32_MAX - 1, &number))
		pw = getpwuid((uid_t)number);
	else
		pw = getpwnam(name);
	if (!pw) {
		error_set(err, ENOENT, "SlurmUser=%s: there is no such user on this host", name);
		error_hint(err, "create it, or name another user in %s", conf_path(d->conf));
		return -ENOENT;
	}
	d->slurm_uid = pw->pw_uid;
	*ret_gid = pw->pw_gid;
	return 0;
}

/* From here on the daemon is SlurmUser and cannot go back. */
static int become_slurm_user(struct ctld *d, gid_t gid, struct error *err)
{
	struct passwd *pw = getpwuid(d->slurm_uid);
	if (geteuid() == d->slurm_uid)
		return 0;
	if (geteuid() != 0) {
		error_set(err, EPERM, "started by user id %u, but SlurmUser has id %u", geteuid(), d->slurm_uid);
		error_hint(err, "start slurmctld as root or as SlurmUser");
		return -EPERM;
	}
	const char *log = log_path(d);
	if (log && chown(log, d->slurm_uid, gid))
		log_debug("chown %s: %s", log, strerror(errno));
	if (initgroups(pw->pw_name, gid) || setgid(gid) || setuid(d->slurm_uid))
		return error_set(err, errno, "cannot become SlurmUser %s: %s", pw->pw_name, strerror(errno));
	return 0;
}

static int start_auth(struct ctld *d, struct error *err)
{
	struct error why;
	int rc = client_auth_create(d->conf, CLIENT_AUTH_DAEMON, &d->auth, err);
	if (!rc && client_sack_start(d->conf, d->loop, d->auth, "slurmctld", &d->sack, &why))
		log_error("users of this host cannot be identified here: %s", why.line);
	return rc;
}

/* --- state ------------------------------------------------------------------------------------ */
static int make_state_dir(struct ctld *d, gid_t gid, struct error *err)
{
	const char *dir = conf_str(d->conf, CONF_StateSaveLocation);
	if (!mkdir(dir, 0755) && geteuid() == 0 && chown(dir, d->slurm_uid, gid))
		return error_set(err, errno, "cannot give StateSaveLocation %s to SlurmUser: %s", dir, strerror(errno));
	return 0;
}

/* State of another cluster in the same folder must not be taken for ours. */
static int check_cluster(struct ctld *d, struct error *err)
{
	const char *name = conf_str(d->conf, CONF_ClusterName);
	void *data;
	size_t len;
	int rc = store_get(d->store, STORE_META, STORE_META_CLUSTER, &data, &len, err);
	if (rc == -ENOENT || (rc && d->ignore_errors)) {
		struct store_put put = { STORE_META, STORE_META_CLUSTER, name, strlen(name), false };
		return store_commit(d->store, &put, 1, err);
	}
	if (rc)
		return rc;
	if (len != strlen(name) || memcmp(data, name, len)) {
		rc = error_set(err, EINVAL, "StateSaveLocation %s holds the state of cluster \"%.*s\", but ClusterName is \"%s\"",
			       conf_str(d->conf, CONF_StateSaveLocation), (int)len, (const char *)data, name);
		error_hint(err, "set ClusterName back, or use another StateSaveLocation");
	}
	free(data);
	return rc;
}

static int open_state(struct ctld *d, struct error *err)
{
	const char *dir = conf_str(d->conf, CONF_StateSaveLocation);
	char *file = xasprintf("%s/state.db", dir);
	int rc = access(dir, W_OK) ? error_set(err, errno, "StateSaveLocation %s: %s", dir, strerror(errno)) : 0;
	if (rc)
		error_hint(err, "It is a folder that SlurmUser (%s) can write, for example /var/spool/slurmctld.", conf_str(d->conf, CONF_SlurmUser));
	if (!rc)
		rc = store_open_sqlite(file, d->ignore_errors, &d->store, err);
	if (rc == -EBADMSG)
		error_hint(err, "Put back a copy of the whole folder, or move the folder away: slurmctld then starts without jobs, and nodes end what they run. "
			   "slurmctld -i starts with what can be read, where anything can.");
	free(file);
	if (!rc)
		rc = cred_open(dir, &d->cred, err);
	if (!rc)
		rc = check_cluster(d, err);
	if (rc || !d->clear_state)
		return rc;
	static const enum store_table cleared[] = { STORE_JOB, STORE_SCRIPT, STORE_NODE, STORE_PART, STORE_STEP, STORE_RESV };
	log_info("-c: jobs and node states of the last run are forgotten");
	for (size_t i = 0; !rc && i < sizeof cleared / sizeof *cleared; i++)
		rc = store_clear(d->store, cleared[i], err);
	return rc;
}

/* --- running ---------------------------------------------------------------------------------- */
static void housekeeping(uv_timer_t *h)
{
	struct ctld *d = h->data;
	reads_forget(d->reads);
	turns_give_memory_back(d);
}

static int start_server(struct ctld *d, struct error *err)
{
	static uv_timer_t timer;
	uint16_t port = (uint16_t)conf_num(d->conf, CONF_SlurmctldPort);
	uv_timer_init(d->loop, &timer);
	timer.data = d;
	uv_timer_start(&timer, housekeeping, HOUSEKEEPING_MS, HOUSEKEEPING_MS);
	uv_unref((uv_handle_t *)&timer);
	turns_start(d);
	accounts_conf_changed(d);
	int rc = wire_server_start(d->loop, d->auth, NULL, port, rpc_handle, rpc_policy, d, &d->server, err);
	if (!rc)
		log_info("slurmctld version %s of cluster %s listens on port %u", BERTH_VERSION, conf_str(d->conf, CONF_ClusterName), port);
	return rc;
}

static void raise_limits(void)
{
	struct rlimit r;
	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int start_core(struct ctld *d, struct error *err)
{
	d->idents = idents_create(d);
	d->waiters = waiters_create();
	d->reads = reads_create();
	d->core = core_create();
	d->turns = turns_create(d);
	struct restore *saved = restore_begin(d);
	int rc = core_config_apply(d, d->conf, err);
	if (!rc) {
		d->acct = acct_create(d);
		acct_conf_changed(d);
		d->agent = agent_create(d);
		agent_nodes_changed(d);
		d->accounts = accounts_create(d);
		rc = accounts_restore(d, err); /* before the jobs */
		rc = rc ? rc : restore_all(saved, err);
		if (!rc)
			crontabs_load(d);
	}
	restore_end(saved);
	return rc;
}

/* What sdiag shows: microseconds that 1000 calls to gettimeofday() took. */
static int64_t clock_latency_us(void)
{
	struct timeval begin, now;
	gettimeofday(&begin, NULL);
	for (int i = 0; i < 1000; i++)
		gettimeofday(&now, NULL);
	return (now.tv_sec - begin.tv_sec) * 1000000LL + (now.tv_usec - begin.tv_usec);
}

int start_all(struct ctld *d, bool change_dir, struct error *err)
{
	gid_t gid = 0;
	int rc = conf_load(d->conf_file, &d->conf, err);
	if (!rc)
		rc = find_slurm_user(d, &gid, err);
	if (!rc)
		rc = make_state_dir(d, gid, err);
	if (!rc && !d->conf_file)
		d->conf_file = realpath(conf_path(d->conf), NULL);
	if (!rc)
		rc = daemon_detach(d->foreground, conf_str(d->conf, CONF_SlurmctldPidFile), err);
	if (rc)
		return rc;
	start_log(d);
	raise_limits();
	gethostname(d->hostname, sizeof d->hostname - 1);
	d->boot_ms = ctld_now_ms();
	d->gettimeofday_us = clock_latency_us();
	d->loop = uv_default_loop();
	rc = start_auth(d, err);
	if (!rc)
		rc = become_slurm_user(d, gid, err);
	if (!rc)
		rc = open_state(d, err);
	if (!rc && change_dir && chdir(conf_str(d->conf, CONF_StateSaveLocation)))
		rc = error_set(err, errno, "cannot work in %s: %s", conf_str(d->conf, CONF_StateSaveLocation), strerror(errno));
	if (!rc)
		rc = start_core(d, err);
	return rc ? rc : start_server(d, err);
}

int ctld_reconfigure(struct ctld *d, struct error *err)
{
	struct conf *conf;
	int rc = conf_load(d->conf_file, &conf, err);
	if (!rc && strcmp(conf_str(conf, CONF_ClusterName), conf_str(d->conf, CONF_ClusterName))) {
		rc = error_set(err, EINVAL, "ClusterName cannot change from %s to %s while slurmctld runs", conf_str(d->conf, CONF_ClusterName), conf_str(conf, CONF_ClusterName));
		conf_destroy(conf);
		return rc;
	}
	if (rc)
		return rc;
	rc = core_config_apply(d, conf, err);
	if (rc) {
		conf_destroy(conf);
		return rc;
	}
	if (conf_num(conf, CONF_SlurmctldPort) != conf_num(d->conf, CONF_SlurmctldPort))
		log_error("SlurmctldPort changed: it is in force after a restart of slurmctld");
	conf_destroy(d->conf);
	d->conf = conf;
	d->has_level = false;
	free(d->debug_flags);
	d->debug_flags = NULL;
	start_log(d);
	agent_nodes_changed(d);
	acct_conf_changed(d);
	accounts_conf_changed(d);
	agent_tell_all(d, RPC_D_RECONFIG);
	log_info("reconfigured from %s", conf_path(conf));
	return 0;
}
