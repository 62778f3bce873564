/* place.c - folder, pid file, address, cgroup of this slurmd (see place.h) */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
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
#include "noded/cgroup.h"
#include "noded/handlers.h"
#include "noded/place.h"

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
	const struct passwd *want = getpwnam(conf_str(n->conf, CONF_SlurmdUser));
	if (!want || want->pw_uid != geteuid())
		log_info("SlurmdUser is %s; slurmd runs as the user that started it, uid %u", conf_str(n->conf, CONF_SlurmdUser), (unsigned)geteuid());
	return 0;
}

uint16_t place_port(const struct noded *n, const Pb__NodeRecord *r) { return r->has_port && r->port ? (uint16_t)r->port : (uint16_t)conf_num(n->conf, CONF_SlurmdPort); }

static bool where_is(const char *node, const char **ret_host, uint16_t *ret_port, void *arg)
{
	const struct noded *n = arg;
	const Pb__NodeRecord *r = conf_node(n->conf, node);
	if (!r)
		return false;
	*ret_host = r->addr ? r->addr : r->name;
	*ret_port = place_port(n, r);
	return true;
}

int place_serve(struct noded *n, wire_handler_fn handler, wire_policy_fn policy, void *arg, struct error *err)
{
	uint16_t port = place_port(n, n->self);
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
	n->relay = (struct relay_place){ &n->loop, n->auth, n->server, where_is, n };
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
	cgroup_leave(n);
}
