/* record.c - a plugin that writes down each of its callbacks: one line in the folder named by its first argument; the rest of its arguments are faults to make */
#include <fcntl.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

SPANK_PLUGIN(record, 1);

static char option_value[128] = "-";
static int *shared;
static char folder[512];

static void note(int ac, char **av, const char *what, const char *more)
{
	char path[600], line[1024];
	snprintf(folder, sizeof folder, "%s", ac ? av[0] : "/tmp");
	snprintf(path, sizeof path, "%s/record", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	int n = snprintf(line, sizeof line, "%d %s %s uid=%d\n", (int)spank_context(), what, more, (int)geteuid());
	if (fd >= 0 && write(fd, line, (size_t)n) == n)
		close(fd);
}

static int fault(int ac, char **av, const char *what)
{
	for (int i = 1; i < ac; i++)
		if (!strcmp(av[i], what))
			return -1;
	return 0;
}

static int option_take(int val, const char *optarg, int remote)
{
	if (optarg && !strcmp(optarg, "bad"))
		return ESPANK_BAD_ARG;
	snprintf(option_value, sizeof option_value, "%d/%s/%d", val, optarg ? optarg : "none", remote);
	return 0;
}

static struct spank_option options[] = {
	{ "record", "text", "[record] text to write down.", 1, 7, option_take },
	{ "record-flag", NULL, "[record] no argument.", 0, 8, option_take },
	SPANK_OPTIONS_TABLE_END
};

int slurm_spank_init(spank_t sp, int ac, char **av)
{
	int registered = 0;
	for (struct spank_option *o = options; o->name; o++)
		registered += spank_option_register(sp, o) == ESPANK_SUCCESS;
	note(ac, av, "init", registered == 2 ? "registered" : "not-registered");
	return fault(ac, av, "init");
}

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
	note(ac, av, "init_post_opt", option_value);
	if (spank_context() == S_CTX_ALLOCATOR || spank_context() == S_CTX_LOCAL)
		spank_job_control_setenv(sp, "CONTROL", "for-prolog", 1);
	return fault(ac, av, "post_opt");
}

int slurm_spank_local_user_init(spank_t sp, int ac, char **av)
{
	uint32_t job = 0, step = 99;
	char more[64];
	spank_get_item(sp, S_JOB_ID, &job);
	spank_get_item(sp, S_JOB_STEPID, &step);
	snprintf(more, sizeof more, "job%s step=%u", job ? "" : "-missing", step);
	note(ac, av, "local_user_init", more);
	return 0;
}

int slurm_spank_user_init(spank_t sp, int ac, char **av)
{
	uint32_t nodes = 0, node = 0, local = 0, total = 0;
	int argc = 0;
	char **argv = NULL, more[256], *version = NULL;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	spank_get_item(sp, S_JOB_NNODES, &nodes);
	spank_get_item(sp, S_JOB_NODEID, &node);
	spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &local);
	spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &total);
	spank_get_item(sp, S_JOB_ARGV, &argc, &argv);
	spank_get_item(sp, S_SLURM_VERSION, &version);
	snprintf(more, sizeof more, "nodes=%u node=%u local=%u total=%u argv0=%s version=%s", nodes, node, local, total, argc ? argv[0] : "-", version);
	note(ac, av, "user_init", more);
	spank_setenv(sp, "RECORD_ENV", "from-user-init", 1);
	slurm_spank_log("record: hello from user_init");
	return fault(ac, av, "user_init");
}

int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av)
{
	note(ac, av, "task_init_privileged", option_value);
	return 0;
}

int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
	char rank[32] = "-", small[2], more[128];
	uint32_t global = 99, local = 99;
	int id = 99;
	pid_t pid = 0;
	__atomic_add_fetch(shared, 1, __ATOMIC_SEQ_CST);
	spank_getenv(sp, "SLURM_PROCID", rank, sizeof rank);
	spank_get_item(sp, S_TASK_ID, &id);
	spank_get_item(sp, S_TASK_GLOBAL_ID, &global);
	spank_get_item(sp, S_TASK_PID, &pid);
	spank_get_item(sp, S_JOB_GLOBAL_TO_LOCAL_ID, global, &local);
	snprintf(more, sizeof more, "rank=%s id=%d global=%u local=%u pid=%d errs=%d,%d,%d", rank, id, global, local, pid == getpid(),
		 spank_setenv(sp, "RECORD_ENV", "x", 0) == ESPANK_ENV_EXISTS, spank_getenv(sp, "RECORD_ENV", small, sizeof small) == ESPANK_NOSPACE,
		 spank_getenv(sp, "NO_SUCH", rank, sizeof rank) == ESPANK_ENV_NOEXIST);
	note(ac, av, "task_init", more);
	if (fault(ac, av, "prepend")) {
		const char *front[] = { "/usr/bin/env", "PREPENDED=1" };
		spank_prepend_task_argv(sp, 2, front);
	}
	if (fault(ac, av, "task_init"))
		slurm_error("record: this task shall not run");
	return fault(ac, av, "task_init");
}

int slurm_spank_task_post_fork(spank_t sp, int ac, char **av)
{
	uint32_t global = 99;
	pid_t pid = 0;
	spank_get_item(sp, S_TASK_PID, &pid);
	spank_get_item(sp, S_JOB_PID_TO_GLOBAL_ID, pid, &global);
	note(ac, av, "task_post_fork", global == 99 ? "unknown" : "known");
	return 0;
}

int slurm_spank_task_exit(spank_t sp, int ac, char **av)
{
	int status = -1;
	char more[64];
	spank_get_item(sp, S_TASK_EXIT_STATUS, &status);
	snprintf(more, sizeof more, "status=%d", status);
	note(ac, av, "task_exit", more);
	return 0;
}

static int script(spank_t sp, int ac, char **av, const char *what)
{
	uint32_t job = 0;
	uid_t uid = 99;
	char *value = NULL, more[256];
	const char *control = getenv("SPANK_CONTROL");
	spank_get_item(sp, S_JOB_ID, &job);
	spank_get_item(sp, S_JOB_UID, &uid);
	spank_option_getopt(sp, &options[0], &value);
	snprintf(more, sizeof more, "job=%u of=%d control=%s option=%s", job, (int)uid, control ? control : "-", value ? value : "-");
	note(ac, av, what, more);
	return fault(ac, av, what);
}

int slurm_spank_job_prolog(spank_t sp, int ac, char **av) { return script(sp, ac, av, "job_prolog"); }
int slurm_spank_job_epilog(spank_t sp, int ac, char **av) { return script(sp, ac, av, "job_epilog"); }

int slurm_spank_slurmd_exit(spank_t sp, int ac, char **av)
{
	note(ac, av, "slurmd_exit", "-");
	return 0;
}

int slurm_spank_exit(spank_t sp, int ac, char **av)
{
	char more[32];
	snprintf(more, sizeof more, "shared=%d", shared ? *shared : 0);
	note(ac, av, "exit", more);
	return 0;
}
