/* contain.c - the processes of a step (see contain.h) */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "stepd/contain.h"
#include "stepd/contain_limit.h"
#include "stepd/extern.h"
#include "stepd/oci.h"
#include "stepd/step.h"
#include "stepd/unkillable.h"

int contain_write(const char *dir, const char *name, const char *text)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, strlen(text));
	int rc = n < 0 ? -errno : 0;
	close(fd);
	return rc;
}

char *contain_read(const char *dir, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	char *text = NULL;
	size_t len = 0, cap = 0;
	for (ssize_t n = 1; n > 0; len += n > 0 ? (size_t)n : 0) {
		text = xgrow(text, &cap, len + 4096, 1);
		n = read(fd, text + len, cap - len - 1);
	}
	close(fd);
	text[len] = 0;
	return text;
}

void contain_create(struct step *s)
{
	const char *base = step_conf(s, "CgroupPath");
	const char *dot = strchr(s->name, '.');
	s->contain = CONTAIN_TREE;
	if (!base)
		return;
	char job[3072], step[3200];
	snprintf(job, sizeof job, "%s/job_%u", base, s->job_id);
	snprintf(step, sizeof step, "%s/step_%s", job, dot + 1);
	if ((mkdir(job, 0755) < 0 && errno != EEXIST) || (mkdir(step, 0755) < 0 && errno != EEXIST)) {
		log_error("cannot make cgroup %s: %s; the step's processes are followed by their tree instead", step, strerror(errno));
		return;
	}
	s->cgroup_dir = open(step, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->cgroup_dir < 0) {
		log_error("cannot open %s: %s; the step's processes are followed by their tree instead", step, strerror(errno));
		return;
	}
	s->cgroup = xstrdup(step);
	s->contain = CONTAIN_CGROUP;
	log_flag(CGROUP, "%s made", step);
	contain_limit(s, job);
	contain_devices(s);
}

/* The task's own cgroup, where memory is counted a task; opened. -1: it has none. */
static int task_dir_open(const struct step *s, const struct task *t)
{
	char path[4096];
	if (!s->task_groups)
		return -1;
	if (t)
		snprintf(path, sizeof path, "%s/task_%u", s->cgroup, t->local);
	else                                       /* a helper of ours: a cgroup with cgroups below it may hold no process */
		snprintf(path, sizeof path, "%s/task_service", s->cgroup);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		log_error("cannot make cgroup %s: %s", path, strerror(errno));
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* clone3 puts the child into the cgroup at birth. Writing to cgroup.procs, the older way, waits for a grace period of the kernel: 10 ms. */
pid_t contain_fork(const struct step *s, const struct task *t)
{
	int own = task_dir_open(s, t), dir = own >= 0 ? own : s->cgroup_dir;
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)dir };
	long pid = dir < 0 ? -1 : syscall(SYS_clone3, &args, sizeof args);
	if (pid < 0) {
		pid = fork();
		if (!pid && dir >= 0) {
			char path[64];
			snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
			int rc = contain_write(path, "cgroup.procs", "0");
			if (rc < 0)
				log_error("cannot join cgroup %s: %s", s->cgroup, strerror(-rc));
		}
	}
	if (own >= 0)
		close(own);
	return (pid_t)pid;
}

void contain_pids_add(pid_t **list, size_t *n, size_t *cap, pid_t pid)
{
	*list = xgrow(*list, cap, *n + 1, sizeof **list);
	(*list)[(*n)++] = pid;
}

/* Those a file of the kernel lists: cgroup.procs, children. */
static void listed_add(const char *dir, const char *file, pid_t **list, size_t *n, size_t *cap)
{
	char *text = contain_read(dir, file);
	for (char *at = text, *end; at && *at; at = end) {
		long pid = strtol(at, &end, 10);
		if (end == at)
			break;
		contain_pids_add(list, n, cap, (pid_t)pid);
	}
	free(text);
}

/* The children of one process, by /proc/PID/task/TID/children of its main thread and others. */
static void children_add(pid_t **list, size_t *n, size_t *cap, pid_t parent)
{
	char dir[64];
	snprintf(dir, sizeof dir, "/proc/%d/task/%d", (int)parent, (int)parent);
	listed_add(dir, "children", list, n, cap);
}

int contain_adopt(const struct step *s, pid_t pid)
{
	int own = task_dir_open(s, s->task), dir = own >= 0 ? own : s->cgroup_dir;
	char path[64], text[16];
	snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
	snprintf(text, sizeof text, "%d", (int)pid);
	int rc = dir < 0 ? -EOPNOTSUPP : contain_write(path, "cgroup.procs", text);
	if (own >= 0)
		close(own);
	return rc;
}

static int pid_compare(const void *a, const void *b) { return *(const pid_t *)a < *(const pid_t *)b ? -1 : *(const pid_t *)a > *(const pid_t *)b; }

/* Tasks just forked that have not joined the cgroup yet. */
static void tasks_add(const struct step *s, pid_t **list, size_t *n, size_t *cap)
{
	size_t known = *n;
	if (known)
		qsort(*list, known, sizeof **list, pid_compare);
	for (uint32_t i = 0; i < s->tasks && s->task; i++) {
		pid_t pid = s->task[i].pid;
		if (pid && !s->task[i].ended && !(known && bsearch(&pid, *list, known, sizeof pid, pid_compare)))
			contain_pids_add(list, n, cap, pid);
	}
}

/* Cgroups of the tasks; to be freed. */
static void tasks_glob(const struct step *s, glob_t *ret)
{
	char path[4096];
	memset(ret, 0, sizeof *ret);
	snprintf(path, sizeof path, "%s/task_*", s->cgroup);
	if (s->task_groups && glob(path, GLOB_ONLYDIR | GLOB_NOSORT, NULL, ret))
		ret->gl_pathc = 0;
}

pid_t *contain_pids(const struct step *s, size_t *ret_n)
{
	pid_t *list = NULL;
	size_t n = 0, cap = 0;
	if (s->cgroup) {
		glob_t below;
		listed_add(s->cgroup, "cgroup.procs", &list, &n, &cap);
		tasks_glob(s, &below);
		for (size_t i = 0; i < below.gl_pathc; i++)
			listed_add(below.gl_pathv[i], "cgroup.procs", &list, &n, &cap);
		globfree(&below);
		tasks_add(s, &list, &n, &cap);
	} else {
		children_add(&list, &n, &cap, getpid());
		extern_pids(&list, &n, &cap);
		for (size_t i = 0; i < n; i++)      /* grows while it walks */
			children_add(&list, &n, &cap, list[i]);
	}
	*ret_n = n;
	return list;
}

void contain_signal(struct step *s, int sig)
{
	if (oci_is_cleaning())             /* the step's own processes are gone; what is left cleans up after them */
		return;
	if (sig == SIGKILL)
		unkillable_watch(s);
	if (sig == SIGKILL && s->cgroup)
		(void)contain_write(s->cgroup, "cgroup.kill", "1");
	/* By tree a process may fork while we look: stop all first, look again until nothing new appears. */
	for (int round = 0; round < (sig == SIGKILL ? 8 : 1); round++) {
		size_t n;
		pid_t *pid = contain_pids(s, &n);
		for (size_t i = 0; i < n; i++)
			kill(pid[i], sig);
		free(pid);
		if (!n)
			break;
	}
}

bool contain_is_empty(const struct step *s)
{
	siginfo_t info;
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* rmdir waits for processes that were killed to be gone; they take a moment. */
static void group_remove(struct step *s, const char *path)
{
	for (int tries = 0; rmdir(path) < 0 && errno == EBUSY && tries < 20; tries++) {
		contain_signal(s, SIGKILL);
		usleep(5000);
	}
	if (!access(path, F_OK))
		log_debug("cgroup %s stays: %s", path, strerror(errno));
}

void contain_destroy(struct step *s)
{
	glob_t below;
	if (!s->cgroup)
		return;
	tasks_glob(s, &below);
	for (size_t i = 0; i < below.gl_pathc; i++)
		group_remove(s, below.gl_pathv[i]);
	globfree(&below);
	group_remove(s, s->cgroup);
	*strrchr(s->cgroup, '/') = 0;
	(void)rmdir(s->cgroup);        /* the job's: fails while it has other steps */
	xfree(s->cgroup);
}
