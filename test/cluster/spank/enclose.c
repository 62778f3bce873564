/* enclose.c - tasks in a container, as plugins for that are built: options registered at run time in srun, sbatch and on the node; memory shared by the tasks of a node
 * made before they are forked; a helper program run as the user that makes the root file system; the first task makes the namespaces, the others join them; each goes
 * into its root just before its program. An "image" is a folder; av[0] is where roots are made. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(enclose, 1);

enum { IMAGE, MOUNTS, WORKDIR, NAME, SAVE, HOME, NO_HOME, REMAP, ENTRYPOINT, WRITABLE, OPTIONS };
static const char *value[OPTIONS];
static bool given[OPTIONS];
static char root[PATH_MAX], host[PATH_MAX];

static struct shared {
	pthread_mutex_t lock;
	pthread_cond_t ready;
	pid_t leader;              /* whose namespaces they are; -1: it failed */
	int entered, left;
} *shared;

static int take(int val, const char *optarg, int remote)
{
	(void)remote;
	if (val == MOUNTS && !strchr(optarg, ':')) {
		slurm_error("enclose: --container-mounts: \"%s\" is not SRC:DST", optarg);
		return -1;
	}
	given[val] = true;
	free((char *)value[val]);
	value[val] = optarg ? strdup(optarg) : NULL;
	return 0;
}

static struct spank_option option[] = {
	{ "container-image", "PATH", "[enclose] the image to run in.", 1, IMAGE, take },
	{ "container-mounts", "SRC:DST[,SRC:DST...]", "[enclose] mounts in the container.", 1, MOUNTS, take },
	{ "container-workdir", "PATH", "[enclose] working directory in the container.", 1, WORKDIR, take },
	{ "container-name", "NAME", "[enclose] a container that stays, and is used again.", 1, NAME, take },
	{ "container-save", "PATH", "[enclose] save the root at the end.", 1, SAVE, take },
	{ "container-mount-home", NULL, "[enclose] bind mount the home.", 0, HOME, take },
	{ "no-container-mount-home", NULL, "[enclose] do not.", 0, NO_HOME, take },
	{ "container-remap-root", NULL, "[enclose] be root inside.", 0, REMAP, take },
	{ "container-entrypoint", "PROGRAM", "[enclose] run before the command.", 2, ENTRYPOINT, take },
	{ "container-writable", NULL, "[enclose] the root can be written.", 0, WRITABLE, take },
	SPANK_OPTIONS_TABLE_END
};

int slurm_spank_init(spank_t sp, int ac, char **av)
{
	(void)ac;
	(void)av;
	if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT)
		return 0;
	for (struct spank_option *o = option; o->name; o++)
		if (spank_option_register(sp, o) != ESPANK_SUCCESS) {
			slurm_error("enclose: option %s cannot be registered", o->name);
			return -1;
		}
	return 0;
}

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
	(void)sp;
	(void)ac;
	(void)av;
	if (given[HOME] && given[NO_HOME]) {
		slurm_error("enclose: --container-mount-home and --no-container-mount-home exclude each other");
		return -1;
	}
	return 0;
}

/* A program, as who we are; its last line of output. */
static int run(const char *script, const char *a, const char *b, char *out, size_t size)
{
	int p[2], status;
	if (pipe(p) < 0)
		return -1;
	pid_t pid = fork();
	if (!pid) {
		/* for good: what it starts shall not be able to go back */
		uid_t uid = geteuid();
		gid_t gid = getegid();
		if (getuid() == 0 && uid && (seteuid(0) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
			_exit(9);
		dup2(p[1], 1);
		close(p[0]);
		execl("/bin/sh", "sh", "-c", script, "sh", a, b, (char *)NULL);
		_exit(127);
	}
	close(p[1]);
	ssize_t n = read(p[0], out, size - 1);
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	close(p[0]);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_wanted(spank_t sp)
{
	uint32_t step = 0;
	return (given[IMAGE] || given[NAME]) && spank_get_item(sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step < 0xfffffff0u;
}

int slurm_spank_user_init(spank_t sp, int ac, char **av)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	uint32_t job = 0, step = 0, node = 0;
	char who[64];
	if (ac < 1 || !is_wanted(sp))
		return 0;
	spank_get_item(sp, S_JOB_ID, &job);
	spank_get_item(sp, S_JOB_STEPID, &step);
	spank_get_item(sp, S_JOB_NODEID, &node);
	if (given[NAME])
		snprintf(root, sizeof root, "%s/%u.%u.%s", av[0], job, node, value[NAME]);
	else
		snprintf(root, sizeof root, "%s/%u.%u.%u", av[0], job, node, step);
	if (given[IMAGE])
		slurm_spank_log("enclose: making the root from %s", value[IMAGE]);
	if (run("id -u; set -e; [ -z \"$2\" ] || { mkdir -p \"$1\"; cp -r \"$2/.\" \"$1/\"; }; cd \"$1\"; mkdir -p bin usr lib lib64 proc dev tmp home etc", root,
		given[IMAGE] ? value[IMAGE] : "", who, sizeof who) || (uid_t)strtoul(who, NULL, 10) != geteuid()) {
		slurm_error("enclose: the root %s cannot be made", root);
		return -1;
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -1;
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &ma);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared->ready, &ca);
	return 0;
}

static int write_file(const char *path, const char *format, ...)
{
	char text[128];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(text, sizeof text, format, ap), fd = open(path, O_WRONLY);
	va_end(ap);
	int rc = fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -1;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int bind(const char *from, const char *to)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s", root, to);
	(void)mkdir(path, 0755);
	return mount(from, path, NULL, MS_BIND | MS_REC, NULL);
}

static int namespaces_make(void)
{
	static const char *const folder[] = { "/bin", "/usr", "/lib", "/lib64", "/proc", "/dev" };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -1;
	(void)write_file("/proc/self/setgroups", "deny");
	if (write_file("/proc/self/uid_map", "%u %u 1", given[REMAP] ? 0 : uid, uid) < 0 || write_file("/proc/self/gid_map", "%u %u 1", given[REMAP] ? 0 : gid, gid) < 0)
		return -1;
	if (mount(root, root, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -1;
	for (size_t i = 0; i < sizeof folder / sizeof *folder; i++)
		if (bind(folder[i], folder[i]) < 0)
			return -1;
	if (given[HOME] && bind(host, "/home") < 0)
		return -1;
	char *list = strdup(value[MOUNTS] ? value[MOUNTS] : ""), *rest = list, *word;
	while ((word = strsep(&rest, ",")) && *word) {
		char *to = strchr(word, ':');
		*to++ = 0;
		if (bind(word, to) < 0)
			return -1;
	}
	if (!given[WRITABLE] && mount(NULL, root, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return -1;
	return 0;
}

static int namespaces_join(pid_t leader)
{
	static const char *const kind[] = { "user", "mnt" };
	for (int i = 0; i < 2; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)leader, kind[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || setns(fd, 0) < 0)
			return -1;
		close(fd);
	}
	return 0;
}

int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
	uint32_t here = 0;
	(void)ac;
	(void)av;
	if (!shared)
		return 0;
	spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &here);
	spank_getenv(sp, "HOME", host, sizeof host);
	prctl(PR_SET_DUMPABLE, 1);                 /* what was root until now has a /proc that is root's */
	pthread_mutex_lock(&shared->lock);
	int rc;
	if (!shared->leader) {
		rc = namespaces_make();
		shared->leader = rc ? -1 : getpid();
	} else {
		rc = shared->leader < 0 ? -1 : namespaces_join(shared->leader);
	}
	shared->entered++;
	pthread_cond_broadcast(&shared->ready);
	while (shared->entered < (int)here)        /* so that the leader is there for all */
		pthread_cond_wait(&shared->ready, &shared->lock);
	pthread_mutex_unlock(&shared->lock);
	if (rc || chroot(root) < 0 || chdir(given[WORKDIR] ? value[WORKDIR] : "/") < 0) {
		slurm_error("enclose: cannot go into %s: %s", root, strerror(errno));
		return -1;
	}
	spank_setenv(sp, "ENCLOSED", "yes", 1);
	spank_unsetenv(sp, "ENCLOSE_NOT");
	if (given[ENTRYPOINT]) {
		const char *before[] = { value[ENTRYPOINT] ? value[ENTRYPOINT] : "/etc/rc" };
		return spank_prepend_task_argv(sp, 1, before) == ESPANK_SUCCESS ? 0 : -1;
	}
	return 0;
}

int slurm_spank_task_exit(spank_t sp, int ac, char **av)
{
	int status = -1;
	(void)ac;
	(void)av;
	if (shared && spank_get_item(sp, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS && status >= 0)
		shared->left++;
	return 0;
}

int slurm_spank_exit(spank_t sp, int ac, char **av)
{
	char line[64];
	(void)ac;
	(void)av;
	if (spank_context() != S_CTX_REMOTE || !*root || !shared)
		return 0;
	uint32_t here = 0;
	spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &here);
	if (shared->left != (int)here)
		slurm_error("enclose: %d of %u tasks were seen to end", shared->left, here);
	if (given[SAVE] && run("mkdir -p \"$2\" && cp -r \"$1/.\" \"$2/\"; echo", root, value[SAVE], line, sizeof line))
		slurm_error("enclose: %s cannot be saved", value[SAVE]);
	if (!given[NAME])
		(void)run("rm -rf --one-file-system \"$1\"; echo", root, "", line, sizeof line);
	munmap(shared, sizeof *shared);
	return 0;
}
