/* place.c - folder, pid file, address, cgroup of this slurmd (see place.h) */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/str.h"
#include "client/client.h"
#include "noded/handlers.h"
#include "noded/place.h"
#include "noded/steps.h"

static char *pid_path;

const Pb__NodeRecord *place_find(const struct conf *conf, const char *name, struct error *err)
{
	char host[256] = "localhost";
	gethostname(host, sizeof host - 1);
	if (name) {
		const Pb__NodeRecord *node = conf_node(conf, name);
		if (!node) {
			error_set(err, ESLURM_INVALID_NODE_NAME, "Unable to find node record for %s", name);
			error_hint(err, "%s has no NodeName line for it", conf_path(conf));
		}
		return node;
	}
	const Pb__NodeRecord *node = conf_node(conf, host);
	host[strcspn(host, ".")] = 0;
	Pb__NodeRecord *const *list;
	size_t count = node ? 0 : conf_nodes(conf, &list);
	for (size_t i = 0; i < count && !node; i++)
		if (!strcmp(list[i]->name, host) || (list[i]->hostname && !strcmp(list[i]->hostname, host)))
			node = list[i];
	if (!node) {
		error_set(err, ESLURM_INVALID_NODE_NAME, "Unable to determine this slurmd's NodeName: no NodeName or NodeHostname is %s", host);
		error_hint(err, "Give it with -N, or add this host to %s", conf_path(conf));
	}
	return node;
}

static int make_dirs(const char *path, mode_t mode, struct error *err)
{
	char *copy = xstrdup(path);
	for (char *at = strchr(copy + 1, '/');; at = strchr(at + 1, '/')) {
		if (at)
			*at = 0;
		if (mkdir(copy, mode) < 0 && errno != EEXIST) {
			int rc = error_set(err, errno, "cannot make the folder %s: %s", copy, strerror(errno));
			free(copy);
			return rc;
		}
		if (!at)
			break;
		*at = '/';
	}
	free(copy);
	return 0;
}

static int pid_take(struct noded *n, struct error *err)
{
	char text[32];
	pid_path = conf_expand(n->conf, conf_str(n->conf, CONF_SlurmdPidFile), n->name);
	int fd = open(pid_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0) {
		if (!n->is_root)
			return 0;              /* an ordinary user need not have a place for it */
		return error_set(err, errno, "cannot write the pid file %s: %s", pid_path, strerror(errno));
	}
	if (daemon_lock(fd))
		return error_set(err, EEXIST, "another slurmd of this node runs already: it holds %s", pid_path);
	int len = snprintf(text, sizeof text, "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || write(fd, text, (size_t)len) != len)
		log_error("cannot write %s: %s", pid_path, strerror(errno));
	return 0;                              /* the descriptor stays open: it is the lock */
}

/* Mount point of cgroup v2, or NULL. Static buffer. */
static const char *cgroup_mount(void)
{
	static char where[2048];
	char line[4096], type[64];
	FILE *f = fopen("/proc/self/mounts", "re");
	bool found = false;
	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, "%*s %2047s %63s", where, type) == 2 && !strcmp(type, "cgroup2");
	if (f)
		fclose(f);
	return found ? where : NULL;
}

/* Processes whose slurmstepd was killed while there was no slurmd: nobody else will end them. */
static void strays_kill(struct noded *n)
{
	char path[4096];
	glob_t found;
	snprintf(path, sizeof path, "%s/job_*/step_*", n->cgroup);
	if (glob(path, GLOB_ONLYDIR | GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		unsigned job_id;
		uint32_t step_id;
		char word[16];
		if (sscanf(found.gl_pathv[i] + strlen(n->cgroup), "/job_%u/step_%15s", &job_id, word) != 2 || !steps_of_word(word, &step_id) || steps_find(n, job_id, step_id))
			continue;
		snprintf(path, sizeof path, "%s/cgroup.kill", found.gl_pathv[i]);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "1", 1) < 0)
			log_error("%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	globfree(&found);
}

void place_sweep_cgroups(struct noded *n)
{
	char path[4096];
	glob_t found;
	if (!n->cgroup)
		return;
	if (!n->stopping)
		strays_kill(n);
	for (const char *const *level = (const char *const[]){ "job_*/step_*", "job_*", NULL }; *level; level++) {
		snprintf(path, sizeof path, "%s/%s", n->cgroup, *level);
		if (glob(path, GLOB_ONLYDIR | GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t i = 0; i < found.gl_pathc; i++)
			(void)rmdir(found.gl_pathv[i]);    /* fails where something runs */
		globfree(&found);
	}
}

static void cgroup_take(struct noded *n)
{
	const char *type = conf_str(n->conf, CONF_ProctrackType), *mount = cgroup_mount();
	const char *why = !n->is_root ? "slurmd is not root" : type && !strstr(type, "cgroup") ? "ProctrackType says so" : !mount ? "no cgroup v2 is mounted" : NULL;
	struct error err = { 0 };
	struct stat spool;
	if (!why && stat(n->spool, &spool) < 0)
		why = strerror(errno);
	if (!why) {
		/* Two clusters of one name may share a machine (berth up, tests), even in folders of one name (chroots, containers), and one's
		 * slurmd would kill what the other runs: the spool itself tells them apart, not its path. */
		n->cgroup = xasprintf("%s/berth/%s-%jx-%jx/%s", mount, conf_str(n->conf, CONF_ClusterName), (uintmax_t)spool.st_dev, (uintmax_t)spool.st_ino,
				      n->name);
		if (!make_dirs(n->cgroup, 0755, &err)) {
			log_info("processes of steps are kept in cgroups below %s", n->cgroup);
			return;
		}
		xfree(n->cgroup);
		why = err.line;
	}
	log_info("processes of steps are followed by their tree, not by cgroups: %s", why);
}

int place_take(struct noded *n, struct error *err)
{
	n->spool = conf_expand(n->conf, conf_str(n->conf, CONF_SlurmdSpoolDir), n->name);
	int rc = make_dirs(n->spool, 0755, err);
	if (rc < 0)
		return rc;
	rc = pid_take(n, err);
	if (rc < 0)
		return rc;
	if (n->opt.stepd_path) {
		n->stepd_path = xstrdup(n->opt.stepd_path);
	} else {
		char exe[4096];
		ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
		exe[len > 0 ? len : 0] = 0;
		n->stepd_path = xasprintf("%s/slurmstepd", dirname(exe));
	}
	if (access(n->stepd_path, X_OK) < 0)
		return error_set(err, errno, "%s: %s; slurmd needs it to run anything", n->stepd_path, strerror(errno));
	cgroup_take(n);
	return 0;
}

int place_serve(struct noded *n, wire_handler_fn handler, wire_policy_fn policy, void *arg, struct error *err)
{
	uint16_t port = n->self->has_port && n->self->port ? (uint16_t)n->self->port : (uint16_t)conf_num(n->conf, CONF_SlurmdPort);
	const char *host = n->self->addr ? n->self->addr : n->name;
	const char *user = conf_str(n->conf, CONF_SlurmUser);
	struct passwd *pw = user ? getpwnam(user) : NULL;
	n->slurm_uid = pw ? pw->pw_uid : geteuid();
	int rc = client_auth_create(n->conf, CLIENT_AUTH_DAEMON, &n->auth, err);
	if (rc < 0)
		return rc;
	rc = wire_server_start(&n->loop, n->auth, host, port, handler, policy, arg, &n->server, err);
	if (rc == -EADDRNOTAVAIL) {                /* NodeAddr is how others see us */
		log_info("%s is no address of this machine; listening on all of its addresses", host);
		rc = wire_server_start(&n->loop, n->auth, NULL, port, handler, policy, arg, &n->server, err);
	}
	return rc;
}

int place_listen(struct noded *n, struct error *err)
{
	struct error sack_err = { 0 };
	int rc = place_serve(n, handlers_run, handlers_policy, n, err);
	if (rc < 0)
		return rc;
	if (client_sack_start(n->conf, &n->loop, n->auth, "slurmd", &n->sack, &sack_err) < 0)
		log_error("%s; commands on this node need another way to prove who they are", sack_err.line);
	return 0;
}

void place_leave(struct noded *n)
{
	if (n->sack)
		sack_stop(n->sack);
	if (pid_path)
		(void)unlink(pid_path);
	place_sweep_cgroups(n);
	if (n->cgroup && !rmdir(n->cgroup)) {
		*strrchr(n->cgroup, '/') = 0;
		(void)rmdir(n->cgroup);
	}
}
