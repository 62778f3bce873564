/* namespace.c - private folders of jobs on this node (see namespace.h)
 *
 * What a crash leaves is taken away by whatever comes first: slurmctld's order to end the job here, which it repeats until it is answered, or the first
 * start of slurmd after a boot. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "noded/namespace.h"
#include "noded/remove.h"

#define OLD ".gone."

static char *base;   /* one slurmd a process */

const char *namespace_base(const struct noded *n)
{
	(void)n;
	return base;
}

/* The first %h is the host, the first %n the node. */
static char *base_name(const struct noded *n, const char *pattern)
{
	char host[256] = "localhost";
	struct str out = STR_INIT;
	gethostname(host, sizeof host - 1);
	host[strcspn(host, ".")] = 0;
	for (const char *c = pattern; *c; c++) {
		if (*c == '%' && (c[1] == 'h' || c[1] == 'n'))
			str_add(&out, *++c == 'h' ? host : n->name);
		else
			str_add_c(&out, *c);
	}
	return str_take(&out);
}

/* True in a grandchild, for which slurmd does not wait: it ends with _exit. */
static bool go_apart(void)
{
	pid_t pid = fork();
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (pid)
		return false;
	if (fork())
		_exit(0);
	return true;
}

static void remove_apart(const char *path)
{
	if (!go_apart())
		return;
	remove_tree(path);
	_exit(0);
}

void namespace_remove_as(const char *path, uid_t uid)
{
	struct stat st;
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || !go_apart())
		return;
	pid_t worker = fork();
	if (!worker) {
		gid_t none = (gid_t)65534;
		if (!geteuid() && (setgroups(0, NULL) < 0 || setresgid(none, none, none) < 0 || setresuid(uid, uid, uid) < 0))
			_exit(1);
		remove_tree(path);
		_exit(0);
	}
	if (worker > 0)
		(void)waitpid(worker, NULL, 0);
	(void)rmdir(path);                         /* the folder itself stands in one of root's */
	_exit(0);
}

static void folder_remove(const char *name)
{
	char path[4096], old[4096];
	struct dirent *e;
	snprintf(path, sizeof path, "%s/%s", base, name);
	DIR *d = opendir(path);
	if (!d)
		return;
	while ((e = readdir(d))) {
		char mounted[4400];
		snprintf(mounted, sizeof mounted, "%s/%s", path, e->d_name);
		if (e->d_name[0] != '.')
			(void)umount2(mounted, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
	closedir(d);
	snprintf(old, sizeof old, "%s/" OLD "%s.%d", base, name, (int)getpid());
	if (strncmp(name, OLD, strlen(OLD)) && rename(path, old) < 0)
		log_error("cannot rename %s: %s", path, strerror(errno));
	remove_apart(strncmp(name, OLD, strlen(OLD)) ? old : path);
}

void namespace_job_gone(const struct noded *n, uint32_t job_id)
{
	char name[16];
	(void)n;
	if (!base)
		return;
	snprintf(name, sizeof name, "%u", job_id);
	folder_remove(name);
}

/* Left from before this boot, or on its way out already. */
static void sweep(const struct noded *n)
{
	DIR *d = opendir(base);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		struct stat st;
		bool job = e->d_name[0] >= '0' && e->d_name[0] <= '9', old = str_starts(e->d_name, OLD);
		if (old || (job && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && (uint64_t)st.st_ctime < n->hw.boot_time))
			folder_remove(e->d_name);
	}
	if (d)
		closedir(d);
}

void namespace_start(struct noded *n)
{
	struct conf_namespace ns;
	struct stat st;
	conf_namespace(n->conf, n->name, &ns);
	if (!ns.base)
		return;
	base = base_name(n, ns.base);
	if (!n->is_root) {
		log_error("slurmd is not root: jobs get no private %s", ns.dirs);
		xfree(base);
		return;
	}
	if (ns.auto_base && mkdir(base, 0755) < 0 && errno != EEXIST)
		log_error("cannot make BasePath %s: %s", base, strerror(errno));
	if (stat(base, &st) < 0 || !S_ISDIR(st.st_mode)) {
		log_error("BasePath %s of job_container.conf is not there (AutoBasePath=true would make it): jobs are refused on this node", base);
		return;
	}
	sweep(n);
	log_info("jobs get private folders instead of %s, kept in %s", ns.dirs, base);
}
