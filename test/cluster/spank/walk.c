/* walk.c - a plugin that asks for everything that slurm/spank.h offers, in each callback, and writes down what it gets.
 *
 * One block a callback into the file named by the first argument, in one write: "@CONTEXT callback uid pid", then a line for each question. Further arguments:
 * CONTEXT.CALLBACK=N makes a callback return N, once and say ask for more. Compiles against the header of any implementation. */
#include <fcntl.h>
#include <inttypes.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

SPANK_PLUGIN(walk, 1);

static char block[65536];
static size_t used;

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	used += (size_t)vsnprintf(block + used, sizeof block - used, format, ap);
	va_end(ap);
	if (used >= sizeof block)
		used = sizeof block - 1;
}

static int option_take(int val, const char *optarg, int remote);
static struct spank_option option[] = {
	{ (char *)"walk", "text", "walk: a value is needed.", 1, 7, option_take },
	{ (char *)"walk-flag", NULL, "walk: no value.", 0, 8, option_take },
	{ (char *)"walk-may", "text", "walk: a value may be given.", 2, 9, option_take },
	{ (char *)"walk-quiet", NULL, "walk: no callback.", 0, 10, NULL },
};
struct spank_option spank_options[] = {
	{ (char *)"walk-table", "text", "walk: an option of the table.", 1, 11, option_take },
	SPANK_OPTIONS_TABLE_END
};

static char taken[2048];

static int option_take(int val, const char *optarg, int remote)
{
	size_t n = strlen(taken);
	snprintf(taken + n, sizeof taken - n, " %d/%s/%d", val, optarg ? optarg : "NULL", remote);
	return optarg && !strcmp(optarg, "bad") ? -1 : 0;
}

#define NUMBER(type, format, item) \
	do { \
		type v = (type)-7; \
		spank_err_t rc = spank_get_item(sp, item, &v); \
		if (rc) \
			add(#item " err %d\n", (int)rc); \
		else \
			add(#item " " format "\n", v); \
	} while (0)

static void lists(spank_t sp)
{
	int argc = -7, n = -7;
	char **argv = NULL, **env = NULL;
	gid_t *gids = NULL;
	spank_err_t rc = spank_get_item(sp, S_JOB_ARGV, &argc, &argv);
	add("S_JOB_ARGV");
	if (rc)
		add(" err %d", (int)rc);
	for (int i = 0; !rc && i < argc; i++)
		add(" %s", argv[i]);
	add("\nS_JOB_ENV");
	rc = spank_get_item(sp, S_JOB_ENV, &env);
	if (rc)
		add(" err %d", (int)rc);
	for (int i = 0; !rc && env && env[i]; i++)
		if (strstr(env[i], "SPANK") || !strncmp(env[i], "SLURM_JOB_ID=", 13) || !strncmp(env[i], "SLURM_PROCID=", 13) || !strncmp(env[i], "WALK", 4))
			add(" %s", env[i]);
	rc = spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &gids, &n);
	add("\nS_JOB_SUPPLEMENTARY_GIDS");
	if (rc)
		add(" err %d", (int)rc);
	for (int i = 0; !rc && i < n; i++)
		add(" %d", (int)gids[i]);
	add("\n");
}

static void lookups(spank_t sp)
{
	uint32_t v = 77;
	pid_t pid = 0;
	spank_err_t rc = spank_get_item(sp, S_JOB_PID_TO_GLOBAL_ID, (pid_t)1, &v);
	add("S_JOB_PID_TO_GLOBAL_ID(1) rc %d v %d\n", (int)rc, (int)v);
	v = 77;
	rc = spank_get_item(sp, S_JOB_PID_TO_LOCAL_ID, (pid_t)1, &v);
	add("S_JOB_PID_TO_LOCAL_ID(1) rc %d v %d\n", (int)rc, (int)v);
	if (!spank_get_item(sp, S_TASK_PID, &pid)) {
		rc = spank_get_item(sp, S_JOB_PID_TO_GLOBAL_ID, pid, &v);
		add("S_JOB_PID_TO_GLOBAL_ID(own) rc %d v %d\n", (int)rc, (int)v);
		v = 77;
		rc = spank_get_item(sp, S_JOB_PID_TO_LOCAL_ID, pid, &v);
		add("S_JOB_PID_TO_LOCAL_ID(own) rc %d v %d\n", (int)rc, (int)v);
	}
	uint32_t here = 5;
	(void)spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &here);
	for (uint32_t i = 0; i < 5; i++) {
		v = 77;
		rc = i < here ? spank_get_item(sp, S_JOB_LOCAL_TO_GLOBAL_ID, i, &v) : ESPANK_SUCCESS;          /* another implementation dies of more */
		add("S_JOB_LOCAL_TO_GLOBAL_ID(%u) rc %d v %d\n", i, (int)rc, (int)v);
		v = 77;
		rc = spank_get_item(sp, S_JOB_GLOBAL_TO_LOCAL_ID, i, &v);
		add("S_JOB_GLOBAL_TO_LOCAL_ID(%u) rc %d v %d\n", i, (int)rc, (int)v);
	}
}

static void items(spank_t sp)
{
	NUMBER(uid_t, "%u", S_JOB_UID);
	NUMBER(gid_t, "%u", S_JOB_GID);
	NUMBER(uint32_t, "%u", S_JOB_ID);
	NUMBER(uint32_t, "%u", S_JOB_STEPID);
	NUMBER(uint32_t, "%u", S_JOB_NNODES);
	NUMBER(uint32_t, "%u", S_JOB_NODEID);
	NUMBER(uint32_t, "%u", S_JOB_LOCAL_TASK_COUNT);
	NUMBER(uint32_t, "%u", S_JOB_TOTAL_TASK_COUNT);
	NUMBER(uint16_t, "%hu", S_JOB_NCPUS);
	lists(sp);
	NUMBER(int, "%d", S_TASK_ID);
	NUMBER(uint32_t, "%u", S_TASK_GLOBAL_ID);
	NUMBER(int, "%d", S_TASK_EXIT_STATUS);
	NUMBER(pid_t, "%d", S_TASK_PID);
	lookups(sp);
	NUMBER(char *, "%s", S_SLURM_VERSION);
	NUMBER(char *, "%s", S_SLURM_VERSION_MAJOR);
	NUMBER(char *, "%s", S_SLURM_VERSION_MINOR);
	NUMBER(char *, "%s", S_SLURM_VERSION_MICRO);
	NUMBER(uint32_t, "%u", S_STEP_CPUS_PER_TASK);
	NUMBER(char *, "%s", S_JOB_ALLOC_CORES);
	NUMBER(uint64_t, "%" PRIu64, S_JOB_ALLOC_MEM);
	NUMBER(char *, "%s", S_STEP_ALLOC_CORES);
	NUMBER(uint64_t, "%" PRIu64, S_STEP_ALLOC_MEM);
	NUMBER(uint32_t, "%u", S_SLURM_RESTART_COUNT);
	NUMBER(uint32_t, "%u", S_JOB_ARRAY_ID);
	NUMBER(uint32_t, "%u", S_JOB_ARRAY_TASK_ID);
	NUMBER(uint32_t, "%u", (spank_item_t)500);
}

static void environments(spank_t sp, const char *what)
{
	char buf[256] = "-", small[3] = "-";
	int rc[8] = { spank_setenv(sp, "WALK_A", what, 0), spank_setenv(sp, "WALK_A", what, 0), spank_setenv(sp, "WALK_A", what, 1),
		       spank_getenv(sp, "WALK_A", buf, sizeof buf), spank_getenv(sp, "WALK_A", small, sizeof small), spank_getenv(sp, "WALK_NOT", buf + 100, 100),
		       spank_unsetenv(sp, "WALK_NOT"), 
		       spank_getenv(sp, "WALK_A", buf + 100, 0) };
	add("env");
	for (int i = 0; i < 8; i++)
		add(" %d", rc[i]);
	add(" %s %.2s\n", buf, small);
	strcpy(buf, "-");
	const char *control = getenv("SPANK_WALK_C");
	add("process has SPANK_WALK_C=%s\n", control ? control : "(none)");
	if (spank_context() == S_CTX_JOB_SCRIPT)               /* there another implementation dies of these */
		return;
	int rc2[8] = { spank_job_control_setenv(sp, "WALK_C", what, 0), spank_job_control_setenv(sp, "WALK_C", what, 0), spank_job_control_setenv(sp, "WALK_C", what, 1),
			spank_job_control_getenv(sp, "WALK_C", buf, sizeof buf), spank_job_control_getenv(sp, "WALK_C", small, sizeof small),
			spank_job_control_getenv(sp, "WALK_NOT", buf + 100, 100), spank_job_control_unsetenv(sp, "WALK_NOT"), 
			spank_job_control_getenv(sp, "WALK_C", buf + 100, 0) };
	add("control");
	for (int i = 0; i < 8; i++)
		add(" %d", rc2[i]);
	add(" %s\n", buf);
}

static void options(spank_t sp, const char *what)
{
	struct spank_option late = { (char *)"walk-late", NULL, "too late", 0, 0, NULL };
	if (strcmp(what, "init"))
		add("registered late %d\n", (int)spank_option_register(sp, &late));
	for (int i = 0; i < 4; i++) {
		char *value = (char *)"unset";
		int rc = spank_option_getopt(sp, &option[i], &value);
		add("getopt %s rc %d value %s\n", option[i].name, rc, value ? value : "NULL");
	}
	char *value = (char *)"unset";
	int rc = spank_option_getopt(sp, &spank_options[0], &value);
	add("getopt %s rc %d value %s\n", spank_options[0].name, rc, value ? value : "NULL");
	rc = spank_option_getopt(sp, NULL, &value);
	add("getopt none rc %d; without a place %d\n", rc, (int)spank_option_getopt(sp, &option[0], NULL));
}

static void once(spank_t sp)
{
	static const char *const symbol[] = { "slurm_spank_init", "slurm_spank_job_prolog", "slurm_spank_init_post_opt", "slurm_spank_local_user_init", "slurm_spank_user_init",
		"slurm_spank_task_init_privileged", "slurm_spank_task_init", "slurm_spank_task_post_fork", "slurm_spank_task_exit", "slurm_spank_job_epilog",
		"slurm_spank_slurmd_exit", "slurm_spank_exit", "slurm_spank_slurmd_init", "spank_options", "slurm_spank_init_failure_mode", "init", "" };
	add("symbols");
	for (size_t i = 0; i < sizeof symbol / sizeof *symbol; i++)
		add(" %d", spank_symbol_supported(symbol[i]));
	add("\n");
	for (int i = 2999; i < 3016; i++)
		add("strerror %d %s\n", i, spank_strerror((spank_err_t)i));
	add("numbers %d %d %d %d %d %d maxlen %d\n", S_CTX_ERROR, S_CTX_LOCAL, S_CTX_REMOTE, S_CTX_ALLOCATOR, S_CTX_SLURMD, S_CTX_JOB_SCRIPT, SPANK_OPTION_MAXLEN);
	add("errors %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", ESPANK_SUCCESS, ESPANK_ERROR, ESPANK_BAD_ARG, ESPANK_NOT_TASK, ESPANK_ENV_EXISTS, ESPANK_ENV_NOEXIST,
	    ESPANK_NOSPACE, ESPANK_NOT_REMOTE, ESPANK_NOEXIST, ESPANK_NOT_EXECD, ESPANK_NOT_AVAIL, ESPANK_NOT_LOCAL, ESPANK_NODE_FAILURE, ESPANK_JOB_FAILURE);
	add("items %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", S_JOB_UID, S_JOB_GID, S_JOB_ID, S_JOB_STEPID,
	    S_JOB_NNODES, S_JOB_NODEID, S_JOB_LOCAL_TASK_COUNT, S_JOB_TOTAL_TASK_COUNT, S_JOB_NCPUS, S_JOB_ARGV, S_JOB_ENV, S_TASK_ID, S_TASK_GLOBAL_ID, S_TASK_EXIT_STATUS,
	    S_TASK_PID, S_JOB_PID_TO_GLOBAL_ID, S_JOB_PID_TO_LOCAL_ID, S_JOB_LOCAL_TO_GLOBAL_ID, S_JOB_GLOBAL_TO_LOCAL_ID, S_JOB_SUPPLEMENTARY_GIDS, S_SLURM_VERSION,
	    S_SLURM_VERSION_MAJOR, S_SLURM_VERSION_MINOR, S_SLURM_VERSION_MICRO, S_STEP_CPUS_PER_TASK, S_JOB_ALLOC_CORES, S_JOB_ALLOC_MEM, S_STEP_ALLOC_CORES, S_STEP_ALLOC_MEM,
	    S_SLURM_RESTART_COUNT, S_JOB_ARRAY_ID, S_JOB_ARRAY_TASK_ID);
	add("remote of none %d, item of none %d\n", spank_remote(NULL), (int)spank_get_item(NULL, S_JOB_ID, &(uint32_t){ 0 }));
	static char name[100];
	memset(name, 'n', SPANK_OPTION_MAXLEN + 1);
	struct spank_option odd[] = {
		{ name, NULL, "too long", 0, 0, NULL }, { name + 1, NULL, "as long as may be", 0, 0, NULL }, { (char *)"walk-unused", NULL, NULL, 0, 0, NULL },
		{ (char *)"walk-noinfo", NULL, (char *)"no arginfo", 1, 0, NULL }, { (char *)"nodes", (char *)"n", (char *)"Slurm's own", 1, 0, NULL },
		{ (char *)"walk", (char *)"again", (char *)"again", 1, 0, NULL }, { (char *)"walk-table", (char *)"again", (char *)"in the table already", 1, 0, NULL },
		{ (char *)"", NULL, (char *)"empty", 0, 0, NULL }, { (char *)"walk-three", (char *)"x", (char *)"has_arg of 3", 3, 0, NULL },
	};
	add("odd options");
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		add(" %d", (int)spank_option_register(sp, &odd[i]));
	add("\n");
}

static int note(spank_t sp, int ac, char **av, const char *what)
{
	int rc = 0, fd = ac ? open(av[0], O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
	static const char *const context[] = { "error", "local", "remote", "allocator", "slurmd", "script" };
	used = 0;
	add("@%s %s %d %d\nremote %d\ntaken%s\n", context[spank_context()], what, (int)geteuid(), (int)getpid(), spank_remote(sp), taken);
	if (!strcmp(what, "init")) {
		for (int i = 0; i < 4; i++)
			add("register %s %d\n", option[i].name, (int)spank_option_register(sp, &option[i]));
		for (int i = 1; i < ac; i++)
			if (!strcmp(av[i], "once"))
				once(sp);
	}
	options(sp, what);
	items(sp);
	environments(sp, what);
	if (strcmp(what, "task_init"))
		add("prepend %d %d\n", (int)spank_prepend_task_argv(sp, 0, NULL), (int)spank_prepend_task_argv(sp, 2, (const char *[]){ "/usr/bin/env", "WALK_P=1" }));
	if (fd >= 0 && write(fd, block, used) == (ssize_t)used)
		close(fd);
	char name[64];
	int n = snprintf(name, sizeof name, "%s.%s=", context[spank_context()], what);
	for (int i = 1; i < ac; i++)
		if (!strncmp(av[i], name, (size_t)n))
			rc = (int)strtol(av[i] + n, NULL, 10);
	for (int i = 1; i < ac; i++)
		if (!strcmp(av[i], "say")) {
			slurm_spank_log("%s: spank_log", what);
			slurm_error("%s: error", what);
			slurm_info("%s: info", what);
			slurm_verbose("%s: verbose", what);
			slurm_debug("%s: debug", what);
			slurm_debug2("%s: debug2", what);
			slurm_debug3("%s: debug3", what);
		}
	return rc;
}

int slurm_spank_init(spank_t sp, int ac, char **av) { return note(sp, ac, av, "init"); }
int slurm_spank_job_prolog(spank_t sp, int ac, char **av) { return note(sp, ac, av, "job_prolog"); }
int slurm_spank_init_post_opt(spank_t sp, int ac, char **av) { return note(sp, ac, av, "init_post_opt"); }
int slurm_spank_local_user_init(spank_t sp, int ac, char **av) { return note(sp, ac, av, "local_user_init"); }
int slurm_spank_user_init(spank_t sp, int ac, char **av) { return note(sp, ac, av, "user_init"); }
int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av) { return note(sp, ac, av, "task_init_privileged"); }
int slurm_spank_task_init(spank_t sp, int ac, char **av) { return note(sp, ac, av, "task_init"); }
int slurm_spank_task_post_fork(spank_t sp, int ac, char **av) { return note(sp, ac, av, "task_post_fork"); }
int slurm_spank_task_exit(spank_t sp, int ac, char **av) { return note(sp, ac, av, "task_exit"); }
int slurm_spank_job_epilog(spank_t sp, int ac, char **av) { return note(sp, ac, av, "job_epilog"); }
int slurm_spank_slurmd_exit(spank_t sp, int ac, char **av) { return note(sp, ac, av, "slurmd_exit"); }
int slurm_spank_exit(spank_t sp, int ac, char **av) { return note(sp, ac, av, "exit"); }
