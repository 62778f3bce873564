/* api.c - the functions of slurm/spank.h */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "spank/inside.h"

extern char **environ;

#define ERRORS_FIRST ESPANK_ERROR

const char *spank_strerror(spank_err_t err)
{
	static const char *const text[] = {
		[ESPANK_ERROR - ERRORS_FIRST] = "Generic error", [ESPANK_BAD_ARG - ERRORS_FIRST] = "Bad argument", [ESPANK_NOT_TASK - ERRORS_FIRST] = "Not in task context",
		[ESPANK_ENV_EXISTS - ERRORS_FIRST] = "Environment variable exists", [ESPANK_ENV_NOEXIST - ERRORS_FIRST] = "No such environment variable",
		[ESPANK_NOSPACE - ERRORS_FIRST] = "Buffer too small", [ESPANK_NOT_REMOTE - ERRORS_FIRST] = "Valid only in remote context",
		[ESPANK_NOEXIST - ERRORS_FIRST] = "Id/PID does not exist on this node", [ESPANK_NOT_EXECD - ERRORS_FIRST] = "Lookup by PID requested, but no tasks running",
		[ESPANK_NOT_AVAIL - ERRORS_FIRST] = "Item not available from this callback", [ESPANK_NOT_LOCAL - ERRORS_FIRST] = "Valid only in local or allocator context",
		[ESPANK_NODE_FAILURE - ERRORS_FIRST] = "Spank plugin failure, node failed", [ESPANK_JOB_FAILURE - ERRORS_FIRST] = "Spank plugin failure, job failed",
	};
	size_t at = (size_t)err - ERRORS_FIRST;
	return !err ? "No error" : err > ESPANK_SUCCESS && at < sizeof text / sizeof *text ? text[at] : strerror((int)err);
}

int spank_symbol_supported(const char *symbol)
{
	for (int i = 0; symbol && i < SPANK_HOOKS; i++)
		if (!strcmp(symbol, spank_hook_name[i]))
			return 1;
	return symbol && !strcmp(symbol, "slurm_spank_init_failure_mode");
}

spank_context_t spank_context(void) { return spank_inside.context; }

int spank_remote(spank_t spank) { return !spank ? -1 : spank_inside.context == S_CTX_REMOTE; }

spank_err_t spank_option_register(spank_t spank, struct spank_option *opt)
{
	if (!spank || !opt || spank->hook != SPANK_INIT)
		return ESPANK_BAD_ARG;
	return spank_inside_register(spank->plugin, opt);
}

spank_err_t spank_option_getopt(spank_t spank, struct spank_option *opt, char **optargp)
{
	static const bool valid[SPANK_HOOKS] = { [SPANK_JOB_PROLOG] = true, [SPANK_LOCAL_USER_INIT] = true, [SPANK_USER_INIT] = true, [SPANK_TASK_INIT_PRIVILEGED] = true,
		[SPANK_TASK_INIT] = true, [SPANK_TASK_EXIT] = true, [SPANK_JOB_EPILOG] = true };
	if (optargp)
		*optargp = NULL;
	if (!spank)
		return ESPANK_BAD_ARG;
	if (!valid[spank->hook])
		return ESPANK_NOT_AVAIL;
	if (!opt || !opt->name || (opt->has_arg && !optargp))
		return ESPANK_BAD_ARG;
	if (spank_inside.context == S_CTX_JOB_SCRIPT)
		(void)spank_inside_register(spank->plugin, opt);
	for (size_t i = 0; i < spank_inside.options; i++) {
		struct spank_known *k = &spank_inside.option[i];
		if (k->plugin != spank->plugin || strcmp(k->opt.name, opt->name))
			continue;
		/* In a prolog or epilog options come by the environment, when they are asked for. */
		size_t n = 0;
		while (environ[n])
			n++;
		if (spank_inside.context == S_CTX_JOB_SCRIPT && !k->given)
			(void)spank_stack_options_in(environ, n);
		if (k->given && optargp)
			*optargp = k->value;
		return k->given ? ESPANK_SUCCESS : ESPANK_ERROR;
	}
	return ESPANK_ERROR;
}

/* --- items ------------------------------------------------------------------------------------------------------- */

/* Without an answer the plugin gets -1. */
static spank_err_t by_pid(pid_t pid, bool global, uint32_t *ret)
{
	const struct spank_job *j = &spank_job;
	*ret = UINT32_MAX;
	if (!j->forked || !j->pid_of)
		return ESPANK_NOT_EXECD;
	for (uint32_t i = 0; i < j->local_tasks; i++)
		if (j->pid_of(i) == pid) {
			*ret = global ? j->ranks[i] : i;
			return ESPANK_SUCCESS;
		}
	return ESPANK_NOEXIST;
}

static spank_err_t by_id(uint32_t id, bool from_local, uint32_t *ret)
{
	const struct spank_job *j = &spank_job;
	*ret = UINT32_MAX;
	if (!from_local && id >= j->total_tasks)
		return ESPANK_BAD_ARG;
	for (uint32_t i = 0; i < j->local_tasks; i++)
		if (from_local ? i == id : j->ranks[i] == id) {
			*ret = from_local ? j->ranks[i] : i;
			return ESPANK_SUCCESS;
		}
	return ESPANK_NOEXIST;
}

static spank_err_t task_item(spank_item_t item, va_list ap)
{
	const struct spank_job *j = &spank_job;
	if (!j->in_task || (item == S_TASK_EXIT_STATUS && !j->has_status))
		return ESPANK_NOT_TASK;
	if (item == S_TASK_ID)
		*va_arg(ap, int *) = (int)j->task_local;
	else if (item == S_TASK_GLOBAL_ID)
		*va_arg(ap, uint32_t *) = j->task_global;
	else if (item == S_TASK_PID)
		*va_arg(ap, pid_t *) = j->task_pid;
	else
		*va_arg(ap, int *) = j->status;
	return ESPANK_SUCCESS;
}

static spank_err_t version_item(spank_item_t item, va_list ap)
{
	static char all[32], part[3][16];
	snprintf(all, sizeof all, "%s", BERTH_VERSION);
	(void)sscanf(all, "%15[^.].%15[^.].%15s", part[0], part[1], part[2]);
	*va_arg(ap, char **) = item == S_SLURM_VERSION ? all : part[item - S_SLURM_VERSION_MAJOR];
	return ESPANK_SUCCESS;
}

/* The job's and step's numbers. */
static spank_err_t number_item(spank_item_t item, va_list ap)
{
	const struct spank_job *j = &spank_job;
	uint32_t value;
	switch (item) {
	case S_JOB_ID: value = j->job_id; break;
	case S_JOB_STEPID: value = j->step_id; break;
	case S_JOB_NNODES: value = j->nnodes; break;
	case S_JOB_NODEID: value = j->nodeid; break;
	case S_JOB_LOCAL_TASK_COUNT: value = j->local_tasks; break;
	case S_JOB_TOTAL_TASK_COUNT: value = j->total_tasks; break;
	case S_STEP_CPUS_PER_TASK: value = j->cpus_per_task; break;
	case S_SLURM_RESTART_COUNT: value = j->restarts; break;
	case S_JOB_ARRAY_ID: value = j->array_id; break;
	case S_JOB_ARRAY_TASK_ID: value = j->array_task; break;
	default: return ESPANK_BAD_ARG;
	}
	*va_arg(ap, uint32_t *) = value;
	return ESPANK_SUCCESS;
}

static spank_err_t step_item(spank_item_t item, va_list ap)
{
	struct spank_job *j = &spank_job;
	switch (item) {
	case S_JOB_NCPUS: *va_arg(ap, uint16_t *) = (uint16_t)j->ncpus; break;
	case S_JOB_ARGV:
		*va_arg(ap, int *) = j->argc;
		*va_arg(ap, char ***) = j->argv;
		break;
	case S_JOB_ENV: *va_arg(ap, char ***) = spank_inside.context == S_CTX_REMOTE ? j->env->var : environ; break;
	case S_JOB_SUPPLEMENTARY_GIDS:
		*va_arg(ap, gid_t **) = (gid_t *)j->gids;
		*va_arg(ap, int *) = (int)j->n_gids;
		break;
	case S_JOB_ALLOC_CORES: *va_arg(ap, char **) = (char *)(j->job_cores ? j->job_cores : ""); break;
	case S_STEP_ALLOC_CORES: *va_arg(ap, char **) = (char *)(j->step_cores ? j->step_cores : ""); break;
	case S_JOB_ALLOC_MEM: *va_arg(ap, uint64_t *) = j->job_mem; break;
	case S_STEP_ALLOC_MEM: *va_arg(ap, uint64_t *) = j->step_mem; break;
	default: return ESPANK_BAD_ARG;
	}
	return ESPANK_SUCCESS;
}

static spank_err_t lookup_item(spank_item_t item, va_list ap)
{
	if (item == S_JOB_PID_TO_GLOBAL_ID || item == S_JOB_PID_TO_LOCAL_ID) {
		pid_t pid = va_arg(ap, pid_t);
		return by_pid(pid, item == S_JOB_PID_TO_GLOBAL_ID, va_arg(ap, uint32_t *));
	}
	uint32_t id = va_arg(ap, uint32_t);
	return by_id(id, item == S_JOB_LOCAL_TO_GLOBAL_ID, va_arg(ap, uint32_t *));
}

/* Which items there are depends on the context, and in commands on the callback. */
static spank_err_t item_check(spank_t spank, spank_item_t item)
{
	static const bool locally[] = { [S_JOB_UID] = true, [S_JOB_GID] = true, [S_JOB_ID] = true, [S_JOB_STEPID] = true, [S_JOB_NNODES] = true,
		[S_JOB_TOTAL_TASK_COUNT] = true, [S_JOB_ARGV] = true, [S_JOB_ENV] = true };
	if (item >= S_SLURM_VERSION && item <= S_SLURM_VERSION_MICRO)
		return ESPANK_SUCCESS;
	if (spank_inside.context == S_CTX_REMOTE)
		return item > S_JOB_ARRAY_TASK_ID ? ESPANK_BAD_ARG : ESPANK_SUCCESS;
	if (spank_inside.context == S_CTX_JOB_SCRIPT)
		return item == S_JOB_UID || item == S_JOB_GID || item == S_JOB_ID ? ESPANK_SUCCESS : ESPANK_NOT_AVAIL;
	if (spank_inside.context != S_CTX_LOCAL && spank_inside.context != S_CTX_ALLOCATOR)
		return ESPANK_NOT_AVAIL;
	if (item >= sizeof locally / sizeof *locally || !locally[item])
		return ESPANK_NOT_REMOTE;
	if (spank_inside.context == S_CTX_ALLOCATOR)
		return item == S_JOB_UID || item == S_JOB_GID ? ESPANK_NOT_AVAIL : ESPANK_BAD_ARG;
	return spank->hook == SPANK_LOCAL_USER_INIT ? ESPANK_SUCCESS : ESPANK_NOT_AVAIL;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	const struct spank_job *j = &spank_job;
	va_list ap;
	if (!spank)
		return ESPANK_BAD_ARG;
	spank_err_t rc = item_check(spank, item);
	if (rc)
		return rc;
	va_start(ap, item);
	if (item == S_JOB_UID)
		*va_arg(ap, uid_t *) = j->uid;
	else if (item == S_JOB_GID)
		*va_arg(ap, gid_t *) = j->gid;
	else if (item >= S_TASK_ID && item <= S_TASK_PID)
		rc = task_item(item, ap);
	else if (item >= S_JOB_PID_TO_GLOBAL_ID && item <= S_JOB_GLOBAL_TO_LOCAL_ID)
		rc = lookup_item(item, ap);
	else if (item >= S_SLURM_VERSION && item <= S_SLURM_VERSION_MICRO)
		rc = version_item(item, ap);
	else if (item == S_JOB_NCPUS || item == S_JOB_ARGV || item == S_JOB_ENV || item == S_JOB_SUPPLEMENTARY_GIDS ||
		 (item >= S_JOB_ALLOC_CORES && item <= S_STEP_ALLOC_MEM))
		rc = step_item(item, ap);
	else
		rc = number_item(item, ap);
	va_end(ap);
	return rc;
}

/* --- environments ---------------------------------------------------------------------------------------------------- */

static spank_err_t env_get(struct envlist *e, const char *var, char *buf, int len)
{
	if (!var || !buf)
		return ESPANK_BAD_ARG;
	const char *value = envlist_get(e, var);
	if (!value)
		return ESPANK_ENV_NOEXIST;
	return len > 0 && snprintf(buf, (size_t)len, "%s", value) < len ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

static spank_err_t env_set(struct envlist *e, const char *var, const char *val, int overwrite)
{
	if (!var || !*var || !val || strchr(var, '='))
		return ESPANK_BAD_ARG;
	if (!overwrite && envlist_get(e, var))
		return ESPANK_ENV_EXISTS;
	envlist_set(e, var, val);
	return ESPANK_SUCCESS;
}

static spank_err_t remote_env(spank_t spank)
{
	if (!spank)
		return ESPANK_BAD_ARG;
	return spank_inside.context != S_CTX_REMOTE ? ESPANK_NOT_REMOTE : spank_job.env ? ESPANK_SUCCESS : ESPANK_NOT_AVAIL;
}

spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len)
{
	spank_err_t rc = remote_env(spank);
	return rc ? rc : env_get(spank_job.env, var, buf, len);
}

spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite)
{
	spank_err_t rc = remote_env(spank);
	return rc ? rc : env_set(spank_job.env, var, val, overwrite);
}

spank_err_t spank_unsetenv(spank_t spank, const char *var)
{
	spank_err_t rc = remote_env(spank);
	if (!rc && var)
		envlist_unset(spank_job.env, var);
	return rc ? rc : var ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
}

/* "SPANK_" before the name. */
static spank_err_t control_name(spank_t spank, const char *var, char *buf, size_t size)
{
	if (!spank || !var || !*var)
		return ESPANK_BAD_ARG;
	if (spank_inside.context != S_CTX_LOCAL && spank_inside.context != S_CTX_ALLOCATOR)
		return spank_inside.context == S_CTX_SLURMD ? ESPANK_NOT_AVAIL : ESPANK_NOT_LOCAL;
	return snprintf(buf, size, "SPANK_%s", var) < (int)size ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

spank_err_t spank_job_control_getenv(spank_t spank, const char *var, char *buf, int len)
{
	char name[512];
	spank_err_t rc = control_name(spank, var, name, sizeof name);
	return rc ? rc : len <= 0 ? ESPANK_BAD_ARG : env_get(&spank_job.control, name, buf, len);
}

spank_err_t spank_job_control_setenv(spank_t spank, const char *var, const char *val, int overwrite)
{
	char name[512];
	spank_err_t rc = control_name(spank, var, name, sizeof name);
	if (!rc)
		rc = env_set(&spank_job.control, name, val, overwrite);
	return rc == ESPANK_ENV_EXISTS ? ESPANK_SUCCESS : rc;          /* it stays as it is: no error here */
}

spank_err_t spank_job_control_unsetenv(spank_t spank, const char *var)
{
	char name[512];
	spank_err_t rc = control_name(spank, var, name, sizeof name);
	if (!rc)
		envlist_unset(&spank_job.control, name);
	return rc;
}

spank_err_t spank_prepend_task_argv(spank_t spank, int argc, const char *argv[])
{
	struct spank_job *j = &spank_job;
	if (!spank || argc <= 0 || !argv)
		return ESPANK_BAD_ARG;
	if (spank->hook != SPANK_TASK_INIT_PRIVILEGED && spank->hook != SPANK_TASK_INIT)
		return ESPANK_NOT_TASK;
	int had = 0;
	while (j->task_argv && j->task_argv[had])
		had++;
	char **grown = xcalloc((size_t)(argc + had) + 1, sizeof *grown);
	for (int i = 0; i < argc; i++)
		grown[i] = xstrdup(argv[i]);
	if (had)
		memcpy(grown + argc, j->task_argv, (size_t)had * sizeof *grown);
	j->task_argv = grown;
	return ESPANK_SUCCESS;
}

/* --- messages ------------------------------------------------------------------------------------------------------------ */

static void say(char level, const char *format, va_list ap)
{
	char line[2048];
	vsnprintf(line, sizeof line, format, ap);
	if (spank_job.say) {
		spank_job.say(level, line);
		return;
	}
	bool here = spank_inside.context == S_CTX_LOCAL || spank_inside.context == S_CTX_ALLOCATOR;
	if (level == 'l' && here)
		fprintf(stderr, "%s\n", line);
	else if (level == 'l')
		log_info("%s", line);
	else
		log_at(level == 'e' ? LOG_L_ERROR : level == 'i' ? LOG_L_INFO : level == 'v' ? LOG_L_VERBOSE : LOG_L_DEBUG, "%s", line);
}

#define SAYER(name, level) \
	void name(const char *format, ...) \
	{ \
		va_list ap; \
		va_start(ap, format); \
		say(level, format, ap); \
		va_end(ap); \
	}
SAYER(slurm_spank_log, 'l')
SAYER(slurm_error, 'e')
SAYER(slurm_info, 'i')
SAYER(slurm_verbose, 'v')
SAYER(slurm_debug, 'd')
SAYER(slurm_debug2, 'd')
SAYER(slurm_debug3, 'd')
