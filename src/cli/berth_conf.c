/* berth_conf.c - what `berth up` writes: folders, configuration, key, pretended devices (see berth.h) */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/berth.h"

#define FIRST_PORT 6817
#define PORT_STEP 10
#define PORT_TRIES 200

char *berth_path(const struct berth *b, const char *fmt, ...)
{
	va_list ap;
	char rest[512];
	va_start(ap, fmt);
	vsnprintf(rest, sizeof rest, fmt, ap);
	va_end(ap);
	return xasprintf("%s/%s", b->dir, rest);
}

void berth_node_name(uint32_t index, char *buf, size_t size) { snprintf(buf, size, "node-%u", index + 1); }

const char *const berth_size_name[BERTH_SIZES] = { "nodes", "cpus", "gpus", "mem" };

static int make_dir(const struct berth *b, const char *name, mode_t mode, struct error *err)
{
	char *path = *name ? berth_path(b, "%s", name) : xstrdup(b->dir);
	int rc = mkdir(path, mode) && errno != EEXIST ? -errno : 0;
	if (rc)
		error_set(err, rc, "%s: cannot make the folder: %s", path, strerror(-rc));
	free(path);
	return rc;
}

/* mkdir -p for the cluster's own folder. */
static int make_parents(const char *path, struct error *err)
{
	char *copy = xstrdup(path);
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(copy, 0755) && errno != EEXIST) {
			int rc = error_set(err, errno, "%s: cannot make the folder: %s", copy, strerror(errno));
			free(copy);
			return rc;
		}
		*p = '/';
	}
	free(copy);
	return 0;
}

static int write_file(const struct berth *b, const char *name, const void *data, size_t len, mode_t mode, struct error *err)
{
	char *path = berth_path(b, "%s", name);
	int rc = 0, fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) || write(fd, data, len) != (ssize_t)len)
		rc = error_set(err, errno ? errno : EIO, "%s: cannot write: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

static bool port_free(const char *addr, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET, addr, &sa.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	bool ok = !bind(fd, (struct sockaddr *)&sa, sizeof sa);
	close(fd);
	return ok;
}

/* slurmctld, slurmd and slurmdbd take base, base + 1, base + 2. Where the search begins depends on the folder, so that a cluster that is down
 * seldom finds its ports taken by a newer one. */
static uint16_t pick_ports(const struct berth *b)
{
	unsigned first = 0;
	for (const char *p = b->dir; *p; p++)
		first = first * 31 + (unsigned char)*p;
	for (unsigned i = 0; i < PORT_TRIES; i++) {
		uint16_t base = (uint16_t)(FIRST_PORT + (first + i) % PORT_TRIES * PORT_STEP);
		if (port_free("127.0.0.1", base) && port_free("127.0.1.1", base + 1) && port_free("127.0.0.1", base + 2))
			return base;
	}
	return 0;
}

/* As root slurmctld and slurmdbd run as user slurm; made where it is missing. */
static const char *service_user(const struct berth *b)
{
	static char name[64];
	if (!b->root) {
		struct passwd *pw = getpwuid(getuid());
		snprintf(name, sizeof name, "%s", pw ? pw->pw_name : "nobody");
		return name;
	}
	if (getpwnam("slurm"))
		return "slurm";
	pid_t pid = fork();
	if (!pid) {
		execlp("useradd", "useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "slurm", (char *)NULL);
		_exit(127);
	}
	int status;
	waitpid(pid, &status, 0);
	return getpwnam("slurm") ? "slurm" : "root";
}

static int own_path(const struct berth *b, const char *name, const char *user, struct error *err)
{
	struct passwd *pw = getpwnam(user);
	char *path = berth_path(b, "%s", name);
	int rc = b->root && pw && chown(path, pw->pw_uid, pw->pw_gid) ? error_set(err, errno, "%s: chown %s: %s", path, user, strerror(errno)) : 0;
	free(path);
	return rc;
}

static int write_key(const struct berth *b, struct error *err)
{
	unsigned char key[64];
	char *path = berth_path(b, "etc/slurm.key");
	bool there = !access(path, F_OK);
	free(path);
	if (there)
		return 0;
	if (getrandom(key, sizeof key, 0) != sizeof key)
		return error_set(err, EIO, "no random bytes for the cluster key");
	return write_file(b, "etc/slurm.key", key, sizeof key, 0600, err);
}

static int write_hosts(const struct berth *b, struct error *err)
{
	struct str s = STR_INIT;
	char host[256] = "localhost";
	gethostname(host, sizeof host - 1);
	str_addf(&s, "127.0.0.1 localhost\n127.0.0.1 %s\n", host);
	for (uint32_t i = 0; i < b->size[BERTH_NODES]; i++)
		str_addf(&s, "127.0.%u.%u node-%u\n", 1 + (i + 1) / 250, (i + 1) % 250, i + 1);
	int rc = write_file(b, "etc/hosts", s.data, s.len, 0644, err);
	str_fini(&s);
	return rc;
}

/* Pretended GPUs: nodes of the null device where we may make them, else links to it. */
static int make_devices(const struct berth *b, struct error *err)
{
	for (uint32_t i = 0; i < b->size[BERTH_GPUS]; i++) {
		char *path = berth_path(b, "dev/nvidia%u", i);
		int rc = 0;
		if (access(path, F_OK) && mknod(path, S_IFCHR | 0666, makedev(1, 3)) && symlink("/dev/null", path))
			rc = error_set(err, errno, "%s: cannot make the device: %s", path, strerror(errno));
		if (!rc)
			(void)!chmod(path, 0666);
		free(path);
		if (rc)
			return rc;
	}
	return 0;
}

static void add_nodes(const struct berth *b, struct str *s, uint16_t port)
{
	str_addf(s, "\n# nodes, one address each\n");
	for (uint32_t i = 0; i < b->size[BERTH_NODES]; i++) {
		str_addf(s, "NodeName=node-%u NodeAddr=127.0.%u.%u Port=%u CPUs=%u Sockets=1 CoresPerSocket=%u ThreadsPerCore=1 RealMemory=%u",
			 i + 1, 1 + (i + 1) / 250, (i + 1) % 250, port + 1, b->size[BERTH_CPUS], b->size[BERTH_CPUS], b->size[BERTH_MEM]);
		if (b->size[BERTH_GPUS])
			str_addf(s, " Gres=gpu:h100:%u", b->size[BERTH_GPUS]);
		str_add(s, " State=UNKNOWN\n");
	}
	str_add(s, "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n");
	str_add(s, "PartitionName=short Nodes=ALL MaxTime=30:00 State=UP\n");
}

static int write_slurm_conf(const struct berth *b, uint16_t port, const char *user, struct error *err)
{
	struct str s = STR_INIT;
	char host[256] = "localhost";
	gethostname(host, sizeof host - 1);
	str_addf(&s, "# Written by `berth up`; an existing file is kept: edit it, then `scontrol reconfigure`.\n"
		 "ClusterName=berth\nSlurmctldHost=%s(127.0.0.1)\nSlurmctldPort=%u\nSlurmdPort=%u\nSlurmUser=%s\nSlurmdUser=%s\n",
		 host, port, port + 1, user, b->root ? "root" : user);
	str_addf(&s, "AuthType=auth/slurm\nAuthInfo=sack=%s/run/sack.socket\nCredType=cred/slurm\n", b->dir);
	str_addf(&s, "StateSaveLocation=%s/state\nSlurmdSpoolDir=%s/spool/%%n\n", b->dir, b->dir);
	str_addf(&s, "SlurmctldLogFile=%s/log/slurmctld.log\nSlurmdLogFile=%s/log/%%n.log\n", b->dir, b->dir);
	str_addf(&s, "SlurmctldPidFile=%s/run/slurmctld.slurmpid\nSlurmdPidFile=%s/run/%%n.slurmpid\n", b->dir, b->dir);
	str_add(&s, "SlurmctldDebug=info\nSlurmdDebug=info\nSlurmdTimeout=5\nReturnToService=2\nMinJobAge=300\nKillWait=5\n"
		 "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nSchedulerType=sched/backfill\n"
		 "SchedulerParameters=requeue_delay=0\nSlurmdParameters=config_overrides\n"
		 "ProctrackType=proctrack/cgroup\nTaskPlugin=task/affinity\nMpiDefault=none\nJobAcctGatherType=jobacct_gather/linux\n");
	/* Without it a job that names no memory would take all of its nodes'. */
	str_addf(&s, "DefMemPerCPU=%u\n", b->size[BERTH_MEM] / b->size[BERTH_CPUS] ? b->size[BERTH_MEM] / b->size[BERTH_CPUS] : 1);
	if (b->size[BERTH_GPUS])
		str_add(&s, "GresTypes=gpu\n");
	str_addf(&s, "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort=%u\n", port + 2);
	add_nodes(b, &s, port);
	if (b->extra_conf)
		str_addf(&s, "Include %s/etc/extra.conf\n", b->dir);
	int rc = write_file(b, "etc/slurm.conf", s.data, s.len, 0644, err);
	str_reset(&s);
	if (!rc && b->size[BERTH_GPUS]) {
		str_addf(&s, "Name=gpu Type=h100 File=%s/dev/nvidia[0-%u]\n", b->dir, b->size[BERTH_GPUS] - 1);
		rc = write_file(b, "etc/gres.conf", s.data, s.len, 0644, err);
	}
	str_reset(&s);
	str_addf(&s, "AuthType=auth/slurm\nAuthInfo=sack=%s/run/sack.socket\nDbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort=%u\nSlurmUser=%s\n"
		 "StorageType=accounting_storage/sqlite\nStorageLoc=%s/db/accounting.db\nLogFile=%s/log/slurmdbd.log\nPidFile=%s/run/slurmdbd.slurmpid\nDebugLevel=info\n",
		 b->dir, port + 2, user, b->dir, b->dir, b->dir);
	if (!rc)
		rc = write_file(b, "etc/slurmdbd.conf", s.data, s.len, 0600, err);
	str_fini(&s);
	return rc;
}

static int read_file(const char *path, struct str *ret)
{
	char buf[4096];
	size_t n;
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while ((n = fread(buf, 1, sizeof buf, f)) > 0)
		str_add_n(ret, buf, n);
	int rc = ferror(f) ? -EISDIR : 0;
	fclose(f);
	return rc;
}

static int read_extra(const struct berth *b, struct str *ret, struct error *err)
{
	int rc = b->extra_conf ? read_file(b->extra_conf, ret) : 0;
	return rc ? error_set(err, rc, "--conf %s: %s", b->extra_conf, strerror(-rc)) : 0;
}

static int write_sizes(const struct berth *b, struct error *err)
{
	struct str s = STR_INIT;
	for (int i = 0; i < BERTH_SIZES; i++)
		str_addf(&s, "%s %u\n", berth_size_name[i], b->size[i]);
	int rc = write_file(b, "etc/sizes", s.data, s.len, 0644, err);
	str_fini(&s);
	return rc;
}

static const struct { const char *name; mode_t mode; bool service; } dirs[] = {
	{ "etc", 0755, false }, { "run", 0755, true }, { "state", 0700, true }, { "db", 0700, true },
	{ "spool", 0755, false }, { "dev", 0755, false }, { "log", 0755, true },
};
#define DIRS (sizeof dirs / sizeof *dirs)

/* What `down --purge` removes later must be ours: nobody's etc or log is taken over. */
static int check_dirs(const struct berth *b, struct error *err)
{
	char *mark = berth_path(b, "etc/sizes");
	bool ours = !access(mark, F_OK);
	free(mark);
	for (size_t i = 0; !ours && i < DIRS; i++) {
		char *path = berth_path(b, "%s", dirs[i].name);
		int rc = access(path, F_OK) ? 0 : error_set(err, EEXIST, "%s exists and is not of a cluster: take another --dir", path);
		free(path);
		if (rc)
			return rc;
	}
	return 0;
}

/* The nodes of a local cluster are diskless: what a step keeps in its node's spool costs no disk, as on most compute nodes. As an ordinary user, where
 * mounting is not permitted, or where there is something already, the spool is where it is. */
void berth_spool_mount(const struct berth *b)
{
	char *spool = berth_path(b, "spool");
	if (!geteuid() && !rmdir(spool) && !mkdir(spool, 0755))
		(void)mount("berth", spool, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
	free(spool);
}

static void spool_unmount(const struct berth *b)
{
	char *spool = berth_path(b, "spool");
	if (!geteuid())
		(void)umount2(spool, MNT_DETACH | UMOUNT_NOFOLLOW);
	free(spool);
}

int berth_conf_remove(const struct berth *b, struct error *err)
{
	spool_unmount(b);
	char *cmd[DIRS + 5] = { "rm", "-rf", "--one-file-system", "--" };
	int status = 0;
	for (size_t i = 0; i < DIRS; i++)
		cmd[4 + i] = berth_path(b, "%s", dirs[i].name);
	pid_t pid = fork();
	if (!pid) {
		execvp("rm", cmd);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return error_set(err, EIO, "not all of %s could be removed", b->dir);
	for (size_t i = 0; i < DIRS; i++)
		free(cmd[4 + i]);
	if (rmdir(b->dir))
		printf("Other files in %s are kept.\n", b->dir);
	return 0;
}

static int make_dirs(const struct berth *b, const char *user, struct error *err)
{
	int rc = make_parents(b->dir, err);
	if (!rc)
		rc = make_dir(b, "", 0755, err);
	if (!rc)
		rc = check_dirs(b, err);
	for (size_t i = 0; !rc && i < DIRS; i++) {
		rc = make_dir(b, dirs[i].name, dirs[i].mode, err);
		if (!rc && dirs[i].service)
			rc = own_path(b, dirs[i].name, user, err);
	}
	return rc;
}

static int write_all(const struct berth *b, const struct str *extra, uint16_t port, struct error *err)
{
	const char *user = service_user(b);
	int rc = make_dirs(b, user, err);
	if (!rc)
		rc = write_sizes(b, err);
	if (!rc)
		rc = write_key(b, err);
	if (!rc)
		rc = own_path(b, "etc/slurm.key", user, err);
	if (!rc)
		rc = write_hosts(b, err);
	if (!rc)
		rc = make_devices(b, err);
	if (!rc && b->extra_conf)
		rc = write_file(b, "etc/extra.conf", extra->len ? extra->data : "", extra->len, 0644, err);
	if (!rc)
		rc = write_slurm_conf(b, port, user, err);
	if (!rc)
		rc = own_path(b, "etc/slurmdbd.conf", user, err);
	return rc;
}

int berth_conf_write(struct berth *b, struct error *err)
{
	struct str extra = STR_INIT;
	uint16_t port = pick_ports(b);
	int rc = read_extra(b, &extra, err);
	if (!rc && !port)
		rc = error_set(err, EADDRINUSE, "no free ports from %d up on 127.0.0.1: too many local clusters", FIRST_PORT);
	if (!rc)
		rc = write_all(b, &extra, port, err);
	str_fini(&extra);
	return rc;
}

static int refuse_other(const struct berth *b, const char *option, struct error *err)
{
	error_set(err, EEXIST, "--%s differs from what the cluster in %s was made with", option, b->dir);
	error_hint(err, "Remove it with berth down --purge, or edit %s/etc/slurm.conf and say scontrol reconfigure.", b->dir);
	return -EEXIST;
}

int berth_conf_same(struct berth *b, struct error *err)
{
	uint32_t asked[BERTH_SIZES];
	memcpy(asked, b->size, sizeof asked);
	int rc = berth_conf_read(b, err);
	for (int i = 0; !rc && i < BERTH_SIZES; i++)
		if ((b->given & 1u << i) && asked[i] != b->size[i])
			rc = refuse_other(b, berth_size_name[i], err);
	if (rc || !b->extra_conf)
		return rc;
	struct str now = STR_INIT, then = STR_INIT;
	char *path = berth_path(b, "etc/extra.conf");
	rc = read_extra(b, &now, err);
	if (!rc && (read_file(path, &then) || now.len != then.len || (now.len && memcmp(now.data, then.data, now.len))))
		rc = refuse_other(b, "conf", err);
	free(path);
	str_fini(&now);
	str_fini(&then);
	return rc;
}

int berth_conf_read(struct berth *b, struct error *err)
{
	char *path = berth_path(b, "etc/sizes");
	FILE *f = fopen(path, "re");
	free(path);
	if (!f) {
		error_set(err, ENOENT, "no cluster in %s", b->dir);
		error_hint(err, "Start one with: berth up --dir %s", b->dir);
		return -ENOENT;
	}
	char name[16];
	unsigned value;
	while (fscanf(f, "%15s %u", name, &value) == 2)
		for (int i = 0; i < BERTH_SIZES; i++)
			if (!strcmp(name, berth_size_name[i]))
				b->size[i] = value;
	fclose(f);
	return 0;
}
