/* oci_helper.c - slurmstepd-oci: one task in a container, as the job's user (see oci.h)
 *
 *     slurmstepd-oci run NAME=VALUE... -- PROGRAM ARGS...     in place of the task's program; exits as the container does
 *     slurmstepd-oci clean NAME=VALUE...                      after all tasks: ends and removes containers whose helper was killed, and the files
 *
 * The bundle of the task is a folder with the user's config.json changed: program, environment, terminal, absolute root, and the step's folder
 * mounted. While the container lives the file `running` stands beside it. Signals go to the container; those that end it also by RunTimeKill. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "stepd/oci.h"

static char **words;           /* name=value, NULL at the end */
static char task_dir[4096];
static char **runtime_env;

static const char *setting(const char *name)
{
	size_t n = strlen(name);
	for (char **w = words; *w; w++)
		if (!strncmp(*w, name, n) && (*w)[n] == '=' && (*w)[n + 1])
			return *w + n + 1;
	return NULL;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "slurmstepd: error: container setup failed: %s: %s\n", what, why);
	exit(1);
}

/* Variables that the expression does not match; the strings stay those of `env`. */
static char **env_filter(char **env, const char *expression)
{
	size_t n = 0, k = 0;
	regex_t re;
	while (env[n])
		n++;
	char **ret = xcalloc(n + 1, sizeof *ret);
	bool filter = expression && *expression;
	if (filter && regcomp(&re, expression, REG_EXTENDED | REG_NOSUB))
		fail("oci.conf", "an expression that excludes variables is malformed");
	for (size_t i = 0; i < n; i++)
		if (!filter || regexec(&re, env[i], 0, NULL, 0))
			ret[k++] = env[i];
	if (filter)
		regfree(&re);
	return ret;
}

/* --- the runtime --------------------------------------------------------------------------------------- */

static struct oci_names names(void)
{
	static char env_file[4120], rootfs[4120];
	const char *bundle = setting("bundle");
	snprintf(env_file, sizeof env_file, "%s/environment", task_dir);
	snprintf(rootfs, sizeof rootfs, "%s/rootfs", bundle);
	return (struct oci_names){ .bundle = setting("OciIgnoreFileConfigJson") ? bundle : task_dir, .env_file = env_file, .job = setting("job"), .spool = setting("spool"),
		.node = setting("node"), .rootfs = rootfs, .step = setting("step"), .task = setting("task"), .user = setting("user"), .uid = setting("uid"),
		.work_dir = setting("work_dir") };
}

/* Starts one of the commands of oci.conf; 0: there is none. `quiet`: what it prints is nobody's business. `out`: a pipe of its output. */
static pid_t command_start(const char *name, const struct oci_names *n, bool quiet, int *out)
{
	const char *pattern = setting(name);
	int end[2] = { -1, -1 };
	if (!pattern || (out && pipe2(end, O_CLOEXEC) < 0))
		return 0;
	char *line = oci_pattern(pattern, n);
	pid_t pid = fork();
	if (!pid) {
		sigset_t none;
		int null = quiet ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		for (int fd = 0; quiet && fd < 3; fd++)
			dup2(null, fd);
		if (out)
			dup2(end[1], 1);
		execle("/bin/sh", "sh", "-c", line, (char *)NULL, runtime_env);
		_exit(127);
	}
	free(line);
	if (out) {
		close(end[1]);
		*out = end[0];
	}
	return pid > 0 ? pid : 0;
}

static int status_of(pid_t pid)
{
	int status = 256;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* The pid that RunTimeQuery tells; 0: none. */
static pid_t query_pid(const struct oci_names *n)
{
	int fd;
	json_error_t err;
	pid_t pid = command_start("OciRunTimeQuery", n, true, &fd);
	if (!pid)
		return 0;
	json_t *state = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, &err);
	close(fd);
	(void)status_of(pid);
	pid_t found = (pid_t)json_integer_value(json_object_get(state, "pid"));
	json_decref(state);
	return found;
}

/* --- the bundle ------------------------------------------------------------------------------------------- */

static json_t *strings(char **list)
{
	json_t *a = json_array();
	for (; *list; list++)
		if (json_array_append_new(a, json_string(*list)) < 0)    /* not UTF-8: JSON cannot say it */
			fprintf(stderr, "slurmstepd: error: a word that is not UTF-8 was left out of the container's configuration\n");
	return a;
}

/* The user's script, where the container sees it. */
static char *script_copy(void)
{
	char from_path[4096], to_path[4200], buf[65536];
	const char *mount = setting("OciMountSpoolDir");
	ssize_t n = 0;
	snprintf(from_path, sizeof from_path, "%s", setting("script"));
	snprintf(to_path, sizeof to_path, "%s/slurm_script", setting("spool"));
	int from = open(from_path, O_RDONLY | O_CLOEXEC), to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	while (from >= 0 && to >= 0 && (n = read(from, buf, sizeof buf)) > 0)
		if (write(to, buf, (size_t)n) != n)
			n = -2, close(to), to = -1;
	if (from < 0 || to < 0 || n < 0)
		fail(to_path, strerror(errno));
	close(from);
	close(to);
	const struct oci_names all = names();
	char *inside = mount ? oci_pattern(mount, &all) : xstrdup(setting("spool")), *path = xasprintf("%s/slurm_script", inside);
	free(inside);
	return path;
}

static void hooks_drop(json_t *config)
{
	char *list = xstrdup(setting("OciDisableHooks") ? setting("OciDisableHooks") : ""), *at = list, *name;
	while ((name = str_next(&at, ",")))
		json_object_del(json_object_get(config, "hooks"), str_trim(name));
	free(list);
}

static void mount_add(json_t *config)
{
	const struct oci_names all = names();
	const char *spool = setting("spool"), *where = setting("OciMountSpoolDir");
	char *to = where ? oci_pattern(where, &all) : xstrdup(spool);
	json_t *mounts = json_object_get(config, "mounts");
	if (!json_is_array(mounts)) {
		mounts = json_array();
		json_object_set_new(config, "mounts", mounts);
	}
	json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:[s]}", "destination", to, "type", "none", "source", spool, "options", "bind"));
	free(to);
}

static void config_write(char **args, char **env)
{
	char from[4200], to[4200];
	json_error_t err;
	const char *bundle = setting("bundle");
	snprintf(from, sizeof from, "%s/config.json", bundle);
	snprintf(to, sizeof to, "%s/config.json", task_dir);
	json_t *config = json_load_file(from, JSON_REJECT_DUPLICATES, &err), *process = json_object_get(config, "process"), *root = json_object_get(config, "root");
	if (!config)
		fail(from, err.text);
	if (!json_is_object(process)) {
		process = json_pack("{s:s, s:{s:i, s:i}}", "cwd", "/", "user", "uid", 0, "gid", 0);
		json_object_set_new(config, "process", process);
	}
	const char *path = json_string_value(json_object_get(root, "path"));
	if (!path)
		fail(from, "it names no root.path");
	if (*path != '/') {
		char *full = xasprintf("%s/%s", bundle, path);
		json_object_set_new(root, "path", json_string(full));
		free(full);
	}
	json_object_set_new(process, "terminal", json_boolean(str_eq(setting("terminal"), "yes")));
	json_object_set_new(process, "args", strings(args));
	json_object_set_new(process, "env", strings(env));
	hooks_drop(config);
	mount_add(config);
	if (json_dump_file(config, to, JSON_INDENT(2)) < 0)
		fail(to, strerror(errno));
	json_decref(config);
}

static void env_write(char **env)
{
	const char *how = setting("OciCreateEnvFile");
	char path[4200];
	if (!how || !strcasecmp(how, "disabled") || !strcasecmp(how, "false"))
		return;
	bool lines = !strcasecmp(how, "newline");
	snprintf(path, sizeof path, "%s/environment", task_dir);
	FILE *f = fopen(path, "we");
	for (; f && *env; env++)
		if (!lines || !strchr(*env, '\n'))
			fprintf(f, "%s%c", *env, lines ? '\n' : 0);
	if (!f || fclose(f))
		fail(path, strerror(errno));
}

static char **runtime_env_make(char **env)
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *small[] = { path, xasprintf("HOME=%s", setting("home") ? setting("home") : "/"), xasprintf("USER=%s", setting("user") ? setting("user") : ""),
			  xasprintf("SLURMD_NODENAME=%s", setting("node")), xasprintf("SLURM_CONF=%s", setting("conf") ? setting("conf") : ""), NULL };
	/* A runtime that makes no bundle hands its own environment on. */
	return env_filter(setting("OciIgnoreFileConfigJson") ? env : small, setting("OciRunTimeEnvExclude"));
}

/* --- a task's life --------------------------------------------------------------------------------------------- */

static void pid_text(char buf[16], pid_t pid) { snprintf(buf, 16, "%d", (int)pid); }

/* What ends the container is also told to the runtime; the rest goes to its first process. */
static void signal_pass(int sig, struct oci_names *n, pid_t first, const sigset_t *all)
{
	char pid[16];
	pid_text(pid, first);
	n->pid = pid;
	if (sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT)
		(void)status_of(command_start("OciRunTimeKill", n, true, NULL));
	else if (first)
		kill(first, sig);
	n->pid = NULL;
	(void)all;
}

/* Until `pid` ends: its status. */
static int await(pid_t pid, struct oci_names *n, const sigset_t *all)
{
	for (;;) {
		int status, sig = sigwaitinfo(all, NULL);
		if (sig == SIGCHLD || sig < 0) {
			for (pid_t gone; (gone = waitpid(-1, &status, WNOHANG)) > 0;)
				if (gone == pid)
					return status;
		} else {
			signal_pass(sig, n, pid, all);
		}
	}
}

/* create and start: the container becomes our child when the runtime has left it, so its end is seen as it is. */
static int create_and_start(struct oci_names *n, const sigset_t *all)
{
	int status = status_of(command_start("OciRunTimeCreate", n, false, NULL));
	if (status)
		return status;
	pid_t pid = query_pid(n);
	status = status_of(command_start("OciRunTimeStart", n, false, NULL));
	if (status)
		return status;
	if (pid > 0 && !waitpid(pid, &status, WNOHANG))
		return await(pid, n, all);
	if (pid > 0 && !kill(pid, 0))          /* not our child: look now and then */
		while (!kill(pid, 0))
			usleep(100000);
	return pid > 0 ? status : 256;
}

static void mark(bool set)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/running", task_dir);
	if (!set)
		(void)unlink(path);
	else
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int run(char **args)
{
	sigset_t all;
	struct oci_names n;
	sigfillset(&all);
	snprintf(task_dir, sizeof task_dir, "%s/task-%s", setting("spool"), setting("task"));
	char **env = env_filter(environ, setting("OciEnvExclude"));
	runtime_env = runtime_env_make(environ);
	if (setting("script"))
		args[0] = script_copy();
	if (!setting("OciIgnoreFileConfigJson"))
		config_write(args, env);
	env_write(env);
	n = names();
	n.args = args;
	mark(true);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t pid = command_start("OciRunTimeRun", &n, false, NULL);
	int status = pid ? await(pid, &n, &all) : create_and_start(&n, &all);
	n.pid = NULL;
	(void)status_of(command_start("OciRunTimeDelete", &n, true, NULL));
	mark(false);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- after all ---------------------------------------------------------------------------------------------------- */

static int on_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	if (at->level)
		(void)(kind == FTW_DP || kind == FTW_D ? rmdir(path) : unlink(path));
	return 0;
}

static int clean(void)
{
	const char *spool = setting("spool");
	struct dirent *e;
	char path[4400], task[64];
	DIR *d = opendir(spool);
	runtime_env = runtime_env_make(environ);
	while (d && (e = readdir(d))) {
		if (sscanf(e->d_name, "task-%60s", task) != 1)
			continue;
		snprintf(task_dir, sizeof task_dir, "%s/%s", spool, e->d_name);
		snprintf(path, sizeof path, "%s/running", task_dir);
		if (access(path, F_OK) < 0)
			continue;
		struct oci_names n = names();
		n.task = task;
		(void)status_of(command_start("OciRunTimeKill", &n, true, NULL));
		(void)status_of(command_start("OciRunTimeDelete", &n, true, NULL));
	}
	if (d)
		closedir(d);
	if (!setting("OciDisableCleanup"))
		(void)nftw(spool, on_entry, 16, FTW_PHYS | FTW_DEPTH | FTW_MOUNT);
	return 0;
}

int main(int argc, char **argv)
{
	int end = 2;
	if (argc < 3 || (strcmp(argv[1], "run") && strcmp(argv[1], "clean"))) {
		fprintf(stderr, "slurmstepd-oci: error: slurmstepd starts this program, people do not\n");
		return 1;
	}
	while (end < argc && strcmp(argv[end], "--"))
		end++;
	words = argv + 2;
	bool is_run = !strcmp(argv[1], "run");
	if (is_run && end + 1 >= argc)
		fail("run", "no program");
	argv[end < argc ? end : argc] = NULL;
	return is_run ? run(argv + end + 1) : clean();
}
