/* pam_slurm_adopt.c - PAM account module: an ssh session of a user becomes a part of his job on this node, or is refused
 *
 * Looks for extern steps of the user in SlurmdSpoolDir (a socket each, noded/steps.c), asks the slurmstepd of one to take this process in (stepd/extern.h) and
 * joins the job's private folders. What the session starts later is in the job with it. Options and their defaults: the reference's page pam_slurm_adopt; of the
 * several jobs of a user the newest is taken (action_unknown=newest): the node the connection came from is not asked which job made it.
 * Runs as root in sshd. The user gives it his name and nothing else; slurm.conf is SLURM_CONF's of sshd, never of a set-user-id program. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#define PAM_SM_ACCOUNT
#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <security/pam_modutil.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/conf.h"
#include "model/stepid.h"
#include "proto/agent.pb-c.h"

#define EVENT_MAX (4u << 20)
#define ANSWER_SECONDS 10
#define NAME "pam_slurm_adopt"

enum action { IGNORE, ALLOW, DENY, NEWEST };
struct options {
	enum action no_jobs, unknown, adopt_failure, generic_failure;
	bool join, x11_off;        /* x11_off: there is no X11 forwarding of ours to turn off */
	enum log_level level;
	const char *nodename, *service;
};

struct job { uint32_t id; struct timespec since; int fd; };
struct jobs { struct job *job; size_t n, cap; };
struct session { pam_handle_t *pam; struct options o; uid_t uid; char *spool; struct jobs jobs; };

static void say(const struct session *s, enum log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(const struct session *s, enum log_level level, const char *fmt, ...)
{
	va_list ap;
	if (level > s->o.level)
		return;
	va_start(ap, fmt);
	pam_vsyslog(s->pam, level <= LOG_L_ERROR ? LOG_ERR : level <= LOG_L_INFO ? LOG_INFO : LOG_DEBUG, fmt, ap);
	va_end(ap);
}

/* --- options -------------------------------------------------------------------------------------- */

/* One of `allowed`; else it stays as it is, and the log says so. */
static void action_set(struct session *s, const char *option, const char *value, enum action *ret, const enum action *allowed, size_t n)
{
	static const char *const word[] = { [IGNORE] = "ignore", [ALLOW] = "allow", [DENY] = "deny", [NEWEST] = "newest" };
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(value, word[allowed[i]])) {
			*ret = allowed[i];
			return;
		}
	say(s, LOG_L_ERROR, "%s has no value %s: %s stays", option, value, word[*ret]);
}

#define ONE_OF(...) (const enum action[]){ __VA_ARGS__ }, sizeof((enum action[]){ __VA_ARGS__ }) / sizeof(enum action)

static void option_take(struct session *s, char *option, const char *value)
{
	struct options *o = &s->o;
	if (!strcasecmp(option, "action_no_jobs"))
		action_set(s, option, value, &o->no_jobs, ONE_OF(IGNORE, DENY));
	else if (!strcasecmp(option, "action_unknown"))
		action_set(s, option, value, &o->unknown, ONE_OF(NEWEST, ALLOW, DENY));
	else if (!strcasecmp(option, "action_adopt_failure"))
		action_set(s, option, value, &o->adopt_failure, ONE_OF(ALLOW, DENY));
	else if (!strcasecmp(option, "action_generic_failure"))
		action_set(s, option, value, &o->generic_failure, ONE_OF(IGNORE, ALLOW, DENY));
	else if (!strcasecmp(option, "disable_x11"))
		o->x11_off = !strcmp(value, "1");
	else if (!strcasecmp(option, "join_container"))
		o->join = strcasecmp(value, "false") && strcmp(value, "0");
	else if (!strcasecmp(option, "nodename"))
		o->nodename = value;
	else if (!strcasecmp(option, "service"))
		o->service = value;
	else if (strcasecmp(option, "log_level"))
		say(s, LOG_L_ERROR, "there is no option %s", option);
	else if (log_level_parse(value, &o->level))
		say(s, LOG_L_ERROR, "there is no log_level %s", value);
}

static void options_read(struct session *s, int argc, const char **argv)
{
	s->o = (struct options){ .no_jobs = DENY, .unknown = NEWEST, .adopt_failure = ALLOW, .generic_failure = IGNORE, .join = true, .level = LOG_L_INFO, .service = "sshd" };
	for (int i = 0; i < argc; i++) {
		const char *eq = strchr(argv[i], '=');
		char option[64];
		snprintf(option, sizeof option, "%.*s", eq ? (int)(eq - argv[i]) : (int)strlen(argv[i]), argv[i]);
		option_take(s, option, eq ? eq + 1 : "");
	}
}

/* --- slurmstepd ------------------------------------------------------------------------------------ */

/* Its answer of that kind; NULL: none within the time. */
static Pb__StepdEvent *ask(int fd, const Pb__StepdOrder *order, Pb__StepdEvent__Kind kind)
{
	uint8_t out[256], head[4];
	size_t len = pb__stepd_order__get_packed_size(order);
	if (len + 4 > sizeof out)
		return NULL;
	put_u32(out, (uint32_t)len);
	pb__stepd_order__pack(order, out + 4);
	if (send(fd, out, len + 4, MSG_NOSIGNAL) != (ssize_t)len + 4)
		return NULL;
	while (fd_read_all(fd, head, sizeof head) == 0) {
		uint32_t size = get_u32(head);
		uint8_t *body = size && size <= EVENT_MAX ? xmalloc(size) : NULL;
		Pb__StepdEvent *e = body && fd_read_all(fd, body, size) == 0 ? pb__stepd_event__unpack(NULL, size, body) : NULL;
		free(body);
		if (!e || e->kind == kind)
			return e;
		pb__stepd_event__free_unpacked(e, NULL);       /* told to all who listen */
	}
	return NULL;
}

static int dial(const char *spool, const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = ANSWER_SECONDS };
	/* By way of the folder's descriptor: a socket's own path may be no longer than 107 bytes. */
	int dir = open(spool, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/%.60s", dir, name);
	if (fd >= 0) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	}
	if (fd >= 0 && (dir < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0)) {
		close(fd);
		fd = -1;
	}
	if (dir >= 0)
		close(dir);
	return fd;
}

/* Of this user? Then kept, with the connection. */
static void job_look(struct session *s, const char *name, uint32_t job_id, const struct stat *st)
{
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	int fd = dial(s->spool, name);
	order.kind = PB__STEPD_ORDER__KIND__STATUS;
	Pb__StepdEvent *e = fd < 0 ? NULL : ask(fd, &order, PB__STEPD_EVENT__KIND__PIDS);
	if (fd >= 0 && !e)
		say(s, LOG_L_ERROR, "the slurmstepd of %u.extern does not answer", job_id);
	if (e && e->uid == s->uid) {
		s->jobs.job = xgrow(s->jobs.job, &s->jobs.cap, s->jobs.n + 1, sizeof *s->jobs.job);
		s->jobs.job[s->jobs.n++] = (struct job){ job_id, st->st_ctim, fd };
		fd = -1;
	}
	if (e)
		pb__stepd_event__free_unpacked(e, NULL);
	if (fd >= 0)
		close(fd);
}

/* Newest first; of the same second the greater id. */
static int job_order(const void *a, const void *b)
{
	const struct job *p = a, *q = b;
	if (p->since.tv_sec != q->since.tv_sec)
		return p->since.tv_sec > q->since.tv_sec ? -1 : 1;
	return p->id > q->id ? -1 : p->id < q->id;
}

static int jobs_find(struct session *s)
{
	DIR *d = opendir(s->spool);
	struct dirent *e;
	if (!d) {
		say(s, LOG_L_ERROR, "cannot read SlurmdSpoolDir %s: %s", s->spool, strerror(errno));
		return -1;
	}
	while ((e = readdir(d))) {
		uint32_t job_id, step_id;
		struct stat st;
		char rest;
		if (sscanf(e->d_name, "step.%u.%u%c", &job_id, &step_id, &rest) == 2 && step_id == STEP_ID_EXTERN && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			job_look(s, e->d_name, job_id, &st);
	}
	closedir(d);
	if (s->jobs.n)
		qsort(s->jobs.job, s->jobs.n, sizeof *s->jobs.job, job_order);
	return 0;
}

/* Into the private folders of the job: what the session starts sees them. */
static int join(struct session *s, pid_t keeper)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)keeper);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 || setns(fd, CLONE_NEWNS) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		say(s, LOG_L_ERROR, "cannot join the private folders of the job: %s", strerror(-rc));
	return rc;
}

static int adopt_into(struct session *s, const struct job *j)
{
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	order.kind = PB__STEPD_ORDER__KIND__ADOPT;
	order.has_adopt_pid = true;
	order.adopt_pid = (uint32_t)getpid();
	Pb__StepdEvent *e = ask(j->fd, &order, PB__STEPD_EVENT__KIND__ADOPTED);
	int rc = e && !e->error ? 0 : -1;
	if (rc < 0)
		say(s, LOG_L_ERROR, "job %u does not take in process %d: %s", j->id, (int)getpid(), e ? strerror((int)e->error) : "slurmstepd does not answer");
	else
		say(s, LOG_L_INFO, "process %d adopted into job %u", (int)getpid(), j->id);
	if (!rc && s->o.join && e->has_keeper)
		rc = join(s, (pid_t)e->keeper);
	if (e)
		pb__stepd_event__free_unpacked(e, NULL);
	return rc;
}

/* --- the decision ---------------------------------------------------------------------------------------- */

static int refuse(struct session *s, const char *why)
{
	(void)pam_error(s->pam, "Access denied by " NAME ": %s", why);
	say(s, LOG_L_ERROR, "access denied to uid %u: %s", (unsigned)s->uid, why);
	return PAM_PERM_DENIED;
}

static int act(struct session *s, enum action action, const char *why)
{
	return action == DENY ? refuse(s, why) : action == ALLOW ? PAM_SUCCESS : PAM_IGNORE;
}

/* SlurmdSpoolDir of the node that this machine is. */
static int place_find(struct session *s)
{
	char host[256] = "";
	struct conf *conf = NULL;
	struct error err = { 0 };
	const char *name = s->o.nodename;
	if (!name && !gethostname(host, sizeof host - 1)) {
		host[strcspn(host, ".")] = 0;
		name = host;
	}
	int rc = conf_load(secure_getenv("SLURM_CONF"), &conf, &err);
	Pb__NodeRecord *const *node;
	size_t n = rc < 0 ? 0 : conf_nodes(conf, &node);
	for (size_t i = 0; i < n && !s->spool; i++)
		if (!strcmp(node[i]->name, name) || (!s->o.nodename && node[i]->hostname && !strcmp(node[i]->hostname, name)))
			s->spool = conf_expand(conf, conf_str(conf, CONF_SlurmdSpoolDir), node[i]->name);
	if (!s->spool)
		say(s, LOG_L_ERROR, "%s", rc < 0 ? err.line : "slurm.conf knows no node of this machine's name: the option nodename tells which it is");
	if (conf)
		conf_destroy(conf);
	return s->spool ? 0 : -1;
}

static int decide(struct session *s)
{
	if (place_find(s) < 0 || jobs_find(s) < 0)
		return act(s, s->o.generic_failure, "this node's slurmd cannot be asked");
	if (!s->jobs.n)
		return act(s, s->o.no_jobs, "you have no active jobs on this node");
	if (s->jobs.n > 1 && s->o.unknown != NEWEST)
		return act(s, s->o.unknown, "you have multiple jobs on this node and it is not known which this session is of");
	for (size_t i = 0; i < s->jobs.n; i++)     /* one may just be ending */
		if (!adopt_into(s, &s->jobs.job[i]))
			return PAM_SUCCESS;
	return act(s, s->o.adopt_failure, "this session could not be adopted into any of your jobs");
}

__attribute__((visibility("default"))) int pam_sm_acct_mgmt(pam_handle_t *pam, int flags, int argc, const char **argv)
{
	struct session s = { .pam = pam };
	const char *user = NULL;
	const void *service = NULL;
	(void)flags;
	options_read(&s, argc, argv);
	if (pam_get_item(pam, PAM_SERVICE, &service) != PAM_SUCCESS || !service || (strcmp(s.o.service, "*") && strcmp(s.o.service, service)))
		return PAM_IGNORE;
	const struct passwd *pw = pam_get_user(pam, &user, NULL) == PAM_SUCCESS && user ? pam_modutil_getpwnam(pam, user) : NULL;
	if (!pw)
		return PAM_USER_UNKNOWN;
	s.uid = pw->pw_uid;
	int rc = s.uid ? decide(&s) : PAM_SUCCESS;
	for (size_t i = 0; i < s.jobs.n; i++)
		close(s.jobs.job[i].fd);
	free(s.jobs.job);
	free(s.spool);
	return rc;
}
