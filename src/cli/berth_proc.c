/* berth_proc.c - the daemons of a local cluster as processes (see berth.h)
 *
 * Each slurmd is started in its own UTS and mount namespace (as an ordinary user inside a user namespace that maps the uid to
 * itself), so that hostname is the node's name and node names resolve through the cluster's own hosts file. Where the kernel does not permit
 * that, it runs without and the caller is told what is missing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/berth.h"

/* Field 22 of /proc/PID/stat: start time in clock ticks; 0 when there is no such process (or only its zombie). */
static unsigned long long start_time(pid_t pid)
{
	char path[64], buf[1024];
	unsigned long long t = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t n = fread(buf, 1, sizeof buf - 1, f);
	fclose(f);
	buf[n] = 0;
	char *p = strrchr(buf, ')');
	if (!p || p[2] == 'Z')
		return 0;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		t = strtoull(p, NULL, 10);
	return t;
}

static char *pid_path(const struct berth *b, const char *name) { return berth_path(b, "run/%s.pid", name); }

static pid_t read_pid(const struct berth *b, const char *name)
{
	char *path = pid_path(b, name);
	FILE *f = fopen(path, "re");
	int pid = 0;
	unsigned long long t = 0;
	free(path);
	if (!f)
		return 0;
	if (fscanf(f, "%d %llu", &pid, &t) != 2)
		pid = 0;
	fclose(f);
	return pid > 0 && t && start_time(pid) == t ? pid : 0;
}

static void write_pid(const struct berth *b, const char *name, pid_t pid)
{
	char *path = pid_path(b, name);
	FILE *f = fopen(path, "we");
	free(path);
	if (!f)
		return;
	fprintf(f, "%d %llu\n", (int)pid, start_time(pid));
	fclose(f);
}

struct berth_proc *berth_procs(const struct berth *b, size_t *ret_n)
{
	static const char *const services[] = { "sackd", "slurmdbd", "slurmctld" };
	size_t n = 0, fixed = sizeof services / sizeof *services;
	struct berth_proc *p = xcalloc(fixed + b->size[BERTH_NODES], sizeof *p);
	for (; n < fixed; n++)
		snprintf(p[n].name, sizeof p[n].name, "%s", services[n]);
	for (uint32_t i = 0; i < b->size[BERTH_NODES]; i++, n++) {
		berth_node_name(i, p[n].name, sizeof p[n].name);
		p[n].node = true;
		p[n].index = i;
	}
	for (size_t i = 0; i < n; i++)
		p[i].pid = read_pid(b, p[i].name);
	*ret_n = n;
	return p;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* A user namespace in which we keep our own uid and gid. */
static int enter_user_namespace(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];
	if (unshare(CLONE_NEWUSER))
		return -errno;
	snprintf(map, sizeof map, "%u %u 1", uid, uid);
	int rc = write_text("/proc/self/uid_map", map);
	(void)write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "%u %u 1", gid, gid);
	return rc ? rc : write_text("/proc/self/gid_map", map);
}

/* A minimal system has no hosts file to mount over: root makes the usual one. */
static void make_hosts_file(void)
{
	int fd = geteuid() ? -1 : open("/etc/hosts", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	dprintf(fd, "127.0.0.1 localhost %s\n", host);
	close(fd);
}

int berth_enter_names(const struct berth *b, const char *hostname)
{
	int rc;
	make_hosts_file();
	char *hosts = berth_path(b, "etc/hosts");
	if (geteuid() && (rc = enter_user_namespace()))
		goto out;
	rc = unshare(CLONE_NEWNS | (hostname ? CLONE_NEWUTS : 0)) ? -errno : 0;
	if (!rc && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		rc = -errno;
	if (!rc && mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL))
		rc = -errno;
	if (!rc && hostname && sethostname(hostname, strlen(hostname)))
		rc = -errno;
out:
	free(hosts);
	return rc;
}

const char *berth_names_missing(int rc)
{
	switch (-rc) {
	case ENOSPC: return "no namespace is left: raise sysctl user.max_user_namespaces, user.max_mnt_namespaces and user.max_uts_namespaces";
	case EPERM:
	case EACCES:
		return geteuid() ? "user namespaces are not permitted: sysctl kernel.unprivileged_userns_clone=1, or a container that allows unshare and mount"
				 : "CAP_SYS_ADMIN is missing: start the container as a privileged one";
	}
	return strerror(-rc);
}

static void exec_daemon(const struct berth *b, const struct berth_proc *p, const char *notify, int note_fd)
{
	char *log = berth_path(b, "log/%s.out", p->name), *conf = berth_path(b, "etc/slurm.conf");
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644), null = open("/dev/null", O_RDONLY);
	dup2(null, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	setsid();
	/* Nothing of the caller's stays: files it has open (a pipe of make's), its file mode mask. */
	(void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	umask(022);
	setenv("SLURM_CONF", conf, 1);
	if (notify)
		setenv("NOTIFY_SOCKET", notify, 1);
	if (p->node) {
		setenv("SLURMD_NODENAME", p->name, 1); /* names its slurmstepds too, see names_node() */
		int rc = berth_enter_names(b, p->name);
		if (rc)
			(void)!write(note_fd, &rc, sizeof rc);
		char *path = xasprintf("%s/slurmd", b->sbin_dir);
		execl(path, "slurmd", "-D", "-N", p->name, "-f", conf, (char *)NULL);
	} else {
		char *path = xasprintf("%s/%s", b->sbin_dir, p->name);
		if (!strcmp(p->name, "slurmdbd"))
			execl(path, p->name, "-D", (char *)NULL);
		else
			execl(path, p->name, "-D", "-f", conf, (char *)NULL);
	}
	fprintf(stderr, "berth: cannot start %s: %s\n", p->name, strerror(errno));
	_exit(127);
}

static void node_uts(const struct berth *b, const struct berth_proc *p, char *ret, size_t size);

/* The namespace noted for a dead node has ended if its number is now that of another: forget it. */
static void forget_reused(const struct berth *b, const struct berth_proc *started, const char *uts)
{
	for (uint32_t i = 0; i < b->size[BERTH_NODES]; i++) {
		char name[64], noted[64] = "";
		berth_node_name(i, name, sizeof name);
		char *file = strcmp(name, started->name) ? berth_path(b, "run/%s.uts", name) : NULL;
		FILE *f = file ? fopen(file, "re") : NULL;
		if (f) {
			noted[fread(noted, 1, sizeof noted - 1, f)] = 0;
			fclose(f);
		}
		if (noted[0] && !strcmp(noted, uts))
			(void)unlink(file);
		free(file);
	}
}

bool berth_proc_alive(pid_t pid) { return start_time(pid) != 0; }

int berth_proc_start(const struct berth *b, const struct berth_proc *p, const char *notify, pid_t *ret_pid, const char **ret_note, struct error *err)
{
	int note[2], failed = 0;
	static char text[512];
	*ret_note = NULL;
	*ret_pid = p->pid;
	if (p->pid)
		return 0;
	if (pipe2(note, O_CLOEXEC))
		return error_set(err, errno, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid < 0)
		return error_set(err, errno, "fork: %s", strerror(errno));
	if (!pid)
		exec_daemon(b, p, notify, note[1]);
	close(note[1]);
	if (read(note[0], &failed, sizeof failed) == sizeof failed) {
		snprintf(text, sizeof text, "in tasks hostname stays that of this machine and node names do not resolve (%s)", berth_names_missing(failed));
		*ret_note = text;
	}
	close(note[0]);
	write_pid(b, p->name, pid);
	*ret_pid = pid;
	if (p->node) {
		char uts[64];
		struct berth_proc started = *p;
		started.pid = pid;
		node_uts(b, &started, uts, sizeof uts); /* noted now, for the day it is found dead */
		forget_reused(b, p, uts);
	}
	return 0;
}

/* Is what the process sees at `path` our file `own`? Paths are no proof: another cluster may have the same in another mount namespace. */
static bool sees_file(pid_t pid, const char *path, const char *own)
{
	char *there = xasprintf("/proc/%d/root%s", (int)pid, path);
	struct stat a, b;
	bool same = !stat(there, &a) && !stat(own, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
	free(there);
	return same;
}

static bool same_namespace(pid_t pid, const char *uts)
{
	char path[64], link[64];
	snprintf(path, sizeof path, "/proc/%d/ns/uts", (int)pid);
	ssize_t n = readlink(path, link, sizeof link - 1);
	if (n < 0)
		return false;
	link[n] = 0;
	return !strcmp(link, uts);
}

/* Without namespaces: a process whose environment names both the node and this cluster's configuration ("SLURM_CONF=FILE"),
 * as that of its slurmd, slurmstepds and tasks does. */
static bool names_node(pid_t pid, const char *node, const char *conf)
{
	char path[64];
	char buf[65536];
	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, buf, sizeof buf);
	close(fd);
	const char *file = strchr(conf, '=') + 1;
	return n > 0 && memmem(buf, (size_t)n, node, strlen(node) + 1) && memmem(buf, (size_t)n, conf, strlen(conf) + 1) && sees_file(pid, file, file);
}

static void node_uts(const struct berth *b, const struct berth_proc *p, char *ret, size_t size)
{
	char path[64], own[64] = "", *file = berth_path(b, "run/%s.uts", p->name);
	ret[0] = 0;
	if (p->pid) {
		snprintf(path, sizeof path, "/proc/%d/ns/uts", (int)p->pid);
		ssize_t n = readlink(path, ret, size - 1);
		ret[n < 0 ? 0 : n] = 0;
		FILE *f = fopen(file, "we");
		if (f) {
			fputs(ret, f);
			fclose(f);
		}
	} else {
		FILE *f = fopen(file, "re");
		if (f) {
			ret[fread(ret, 1, size - 1, f)] = 0;
			fclose(f);
		}
	}
	ssize_t n = readlink("/proc/self/ns/uts", own, sizeof own - 1);
	if (n > 0 && !strcmp(own, ret))
		ret[0] = 0; /* shared with us: no namespace of its own */
	free(file);
}

size_t berth_node_signal(const struct berth *b, const struct berth_proc *p, int signal)
{
	char uts[64], env[96], *conf = xasprintf("SLURM_CONF=%s/etc/slurm.conf", b->dir), *hosts = berth_path(b, "etc/hosts");
	size_t count = 0;
	DIR *proc = opendir("/proc");
	struct dirent *e;
	node_uts(b, p, uts, sizeof uts);
	snprintf(env, sizeof env, "SLURMD_NODENAME=%s", p->name);
	while (proc && (e = readdir(proc))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid <= 1 || pid == getpid())
			continue;
		/* The number of a namespace that has ended is soon another's: our hosts file, which a node has as its own, is the proof. */
		bool inside = uts[0] && same_namespace(pid, uts) && sees_file(pid, "/etc/hosts", hosts);
		bool member = inside || pid == p->pid || names_node(pid, env, conf);
		if (member && !kill(pid, signal))
			count++;
	}
	if (proc)
		closedir(proc);
	free(conf);
	free(hosts);
	return count;
}

static void wait_gone(struct berth_proc *p, unsigned long long began, int ms)
{
	for (int i = 0; began && i < ms && start_time(p->pid) == began; i += 5) {
		waitpid(p->pid, NULL, WNOHANG);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
}

void berth_proc_stop(const struct berth *b, struct berth_proc *p, int signal, bool all, int grace_ms)
{
	unsigned long long began = p->pid ? start_time(p->pid) : 0;
	if (p->pid) {
		char uts[64];
		if (p->node)
			node_uts(b, p, uts, sizeof uts); /* noted while it lives */
		/* A node dies at one moment: no slurmstepd lives on to tell that its tasks were killed. */
		if (p->node && all && signal == SIGKILL)
			(void)berth_node_signal(b, p, SIGSTOP);
		kill(p->pid, signal);
		wait_gone(p, began, grace_ms);
		if (began && start_time(p->pid) == began) {
			kill(p->pid, SIGKILL);
			wait_gone(p, began, 2000);
		}
	}
	p->pid = 0;
	for (int i = 0; all && p->node && i < 100 && berth_node_signal(b, p, SIGKILL); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}
