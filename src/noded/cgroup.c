/* cgroup.c - the cgroup below which steps of this node live (see cgroup.h)
 *
 * Without systemd (or with IgnoreSystemd) slurmd makes a folder of its own under the mount and enables the controllers on the way. Where systemd runs,
 * it is asked for a scope of our own with delegation: what systemd does not know it may take away, and what belongs to slurmd's unit
 * ends with it. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "noded/cgroup.h"
#include "noded/steps.h"

extern char **environ;

/* Mount point of cgroup v2, or NULL. Static buffer. */
static const char *mount_find(const char *wanted)
{
	static char where[2048];
	char line[4096], at[2048], type[64];
	FILE *f = fopen("/proc/self/mounts", "re");
	where[0] = 0;
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%*s %2047s %63s", at, type) != 2 || strcmp(type, "cgroup2"))
			continue;
		if (!where[0] || (wanted && !strcmp(at, wanted)))
			snprintf(where, sizeof where, "%s", at);
	}
	if (f)
		fclose(f);
	return where[0] ? where : NULL;
}

static int text_write(const char *dir, const char *name, const char *text)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static bool text_read(const char *dir, const char *name, char *buf, size_t size)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return n >= 0;
}

/* Is a word in a list that blanks separate? */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

/* What cgroup.conf needs, and what it asks for beyond. */
static void wanted_fill(const struct conf *conf, struct str *ret)
{
	static const char *const more[] = { "io", "pids", "rdma", "hugetlb", "misc" };
	const char *extra = conf_str(conf, CONF_Cgroup_EnableExtraControllers);
	if (conf_bool(conf, CONF_Cgroup_ConstrainCores))
		str_add_sep(ret, " ", "cpuset");
	if (conf_bool(conf, CONF_Cgroup_ConstrainRAMSpace) || conf_bool(conf, CONF_Cgroup_ConstrainSwapSpace))
		str_add_sep(ret, " ", "memory");
	for (size_t i = 0; extra && *extra && i < sizeof more / sizeof *more; i++)
		if (strcasestr(extra, "all") || strcasestr(extra, more[i]))
			str_add_sep(ret, " ", more[i]);
}

/* Switches `wanted` on for the children of `dir`. */
static void enable(const char *dir, const char *wanted)
{
	char *list = xstrdup(wanted), *at = list, word[32];
	for (char *name; (name = str_next(&at, " "));) {
		snprintf(word, sizeof word, "+%s", name);
		(void)text_write(dir, "cgroup.subtree_control", word);
	}
	free(list);
}

/* Makes each folder from the mount down to `path`, controllers on. 0 or -errno. */
static int path_make(const char *mount, const char *path, const char *wanted)
{
	char *copy = xstrdup(path);
	int rc = 0;
	enable(mount, wanted);
	for (char *at = copy + strlen(mount); !rc && at; ) {
		at = strchr(at + 1, '/');
		if (at)
			*at = 0;
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			rc = -errno;
		else
			enable(copy, wanted);
		if (at)
			*at = '/';
	}
	free(copy);
	return rc;
}

/* What steps can have there, and what is done instead of what they cannot. */
static void controllers_check(struct noded *n, const char *wanted)
{
	static const struct { const char *controller, *instead; enum conf_key key[2]; } rows[] = {
		{ "cpuset", "tasks are bound to their CPUs and may undo it", { CONF_Cgroup_ConstrainCores, CONF_Cgroup_ConstrainCores } },
		{ "memory", "memory is only watched (JobAcctGatherParams=OverMemoryKill)", { CONF_Cgroup_ConstrainRAMSpace, CONF_Cgroup_ConstrainSwapSpace } },
	};
	char have[512];
	if (!text_read(n->cgroup, "cgroup.subtree_control", have, sizeof have))
		have[0] = 0;
	n->controllers = xstrdup(have);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!has_word(have, rows[i].controller) && (conf_bool(n->conf, rows[i].key[0]) || conf_bool(n->conf, rows[i].key[1])))
			log_error("cgroup controller %s is not to be had under %s: %s", rows[i].controller, n->cgroup, rows[i].instead);
	log_info("processes of steps are kept in cgroups below %s, controllers: %s", n->cgroup, *have ? have : "none");
	char *list = xstrdup(wanted), *at = list;
	for (char *name; (name = str_next(&at, " "));)
		if (!has_word(have, name) && strcmp(name, "cpuset") && strcmp(name, "memory"))
			log_error("EnableExtraControllers: this system has no cgroup controller %s for us", name);
	free(list);
}

/* Moves the processes of `path` (the sleeper, when it has come) into its leaf: a cgroup that hands controllers on may hold no process. false: there is none yet. */
static bool sleeper_settle(const char *path, const char *leaf)
{
	char procs[64];
	if (access(path, F_OK) || (mkdir(leaf, 0755) < 0 && errno != EEXIST))
		return false;
	while (text_read(path, "cgroup.procs", procs, sizeof procs) && *procs && !text_write(leaf, "cgroup.procs", procs))
		;
	return text_read(leaf, "cgroup.procs", procs, sizeof procs) && *procs;
}

/* Our own scope under systemd: a process of ours sleeps in it so that it stays. false: not made. */
static bool scope_make(struct noded *n, const char *slice, const char *unit, const char *path)
{
	char unit_arg[300], slice_arg[300], leaf[4096];
	const char *argv[] = { "systemd-run", "--quiet", "--scope", "--collect", unit_arg, slice_arg, "--property=Delegate=yes", n->stepd_path, "infinity", NULL };
	uint64_t tries = conf_num(n->conf, CONF_Cgroup_SystemdTimeout) / 10 + 1;
	pid_t pid;
	snprintf(unit_arg, sizeof unit_arg, "--unit=%.200s", unit);
	snprintf(slice_arg, sizeof slice_arg, "--slice=%.200s", slice);
	snprintf(leaf, sizeof leaf, "%s/system", path);
	bool was_there = !access(leaf, F_OK);
	if (access(path, F_OK) && posix_spawnp(&pid, argv[0], NULL, NULL, (char **)(uintptr_t)argv, environ))
		return false;
	bool settled = sleeper_settle(path, leaf);
	for (; !settled && !was_there && tries; tries--) {       /* systemd makes the folder first and puts the sleeper into it a moment later */
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		settled = sleeper_settle(path, leaf);
	}
	return settled || was_there;         /* one whose sleeper was killed stays while steps run in it */
}

static int take_under_systemd(struct noded *n, const char *mount, const char *id, const char *wanted)
{
	const char *slice = conf_str(n->conf, CONF_Cgroup_CgroupSlice);
	char unit[256];
	slice = slice && *slice ? slice : "system.slice";
	snprintf(unit, sizeof unit, "berth-%.200s.scope", id);
	n->cgroup = xasprintf("%s/%s/%s", mount, slice, unit);
	if (!scope_make(n, slice, unit, n->cgroup))
		return -EIO;
	enable(n->cgroup, wanted);
	return 0;
}

static int take_ourselves(struct noded *n, const char *mount, const char *id, const char *wanted)
{
	const char *slice = conf_str(n->conf, CONF_Cgroup_CgroupSlice);
	n->cgroup = xasprintf("%s/%s/%s/%s", mount, slice && *slice ? slice : "berth", id, n->name);
	return path_make(mount, n->cgroup, wanted);
}

static const char *reason_not(const struct noded *n, const char *mount)
{
	const char *type = conf_str(n->conf, CONF_ProctrackType), *plugin = conf_str(n->conf, CONF_Cgroup_CgroupPlugin);
	if (!n->is_root)
		return "slurmd is not root";
	if (type && !strstr(type, "cgroup"))
		return "ProctrackType says so";
	if (plugin && !strcmp(plugin, "disabled"))
		return "CgroupPlugin says so";
	return mount ? NULL : "no cgroup v2 is mounted";
}

void cgroup_take(struct noded *n)
{
	const char *mount = mount_find(conf_str(n->conf, CONF_Cgroup_CgroupMountpoint)), *why = reason_not(n, mount);
	struct str wanted = STR_INIT;
	struct stat spool;
	int rc = 0;
	if (!why && stat(n->spool, &spool) < 0)
		why = strerror(errno);
	if (why) {
		log_info("processes of steps are followed by their tree, not by cgroups: %s", why);
		return;
	}
	/* Two clusters of one name may share a machine (berth up, tests), even in folders of one name (chroots, containers), and one's
	 * slurmd would kill what the other runs: the spool itself tells them apart, not its path. */
	char *id = xasprintf("%s-%jx-%jx", conf_str(n->conf, CONF_ClusterName), (uintmax_t)spool.st_dev, (uintmax_t)spool.st_ino);
	wanted_fill(n->conf, &wanted);
	const char *list = wanted.data ? wanted.data : "";
	bool systemd = !access("/run/systemd/system", F_OK) && !conf_bool(n->conf, CONF_Cgroup_IgnoreSystemd);
	rc = systemd ? take_under_systemd(n, mount, id, list) : take_ourselves(n, mount, id, list);
	if (rc < 0 && systemd) {
		log_error("systemd gives no scope for steps; the cgroup is made without it");
		xfree(n->cgroup);
		rc = take_ourselves(n, mount, id, list);
	}
	if (rc < 0) {
		log_info("processes of steps are followed by their tree, not by cgroups: cannot make %s: %s", n->cgroup, strerror(-rc));
		xfree(n->cgroup);
	} else {
		controllers_check(n, list);
	}
	str_fini(&wanted);
	free(id);
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

void cgroup_sweep(struct noded *n)
{
	char path[4096];
	glob_t found;
	if (!n->cgroup)
		return;
	if (!n->stopping)
		strays_kill(n);
	for (const char *const *level = (const char *const[]){ "job_*/step_*/task_*", "job_*/step_*", "job_*", NULL }; *level; level++) {
		snprintf(path, sizeof path, "%s/%s", n->cgroup, *level);
		if (glob(path, GLOB_ONLYDIR | GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t i = 0; i < found.gl_pathc; i++)
			(void)rmdir(found.gl_pathv[i]);    /* fails where something runs */
		globfree(&found);
	}
}

void cgroup_leave(struct noded *n)
{
	cgroup_sweep(n);
	if (n->cgroup && !rmdir(n->cgroup)) {
		*strrchr(n->cgroup, '/') = 0;
		(void)rmdir(n->cgroup);
	}
}
