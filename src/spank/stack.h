/* stack.h - the plugins of one process
 *
 * One stack a process, loaded once. What plugins can ask for is what the host has put into spank_job; pointers there are borrowed and may be changed between calls. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "model/envlist.h"
#include "slurm/spank.h"

enum spank_hook { SPANK_INIT, SPANK_JOB_PROLOG, SPANK_INIT_POST_OPT, SPANK_LOCAL_USER_INIT, SPANK_USER_INIT, SPANK_TASK_INIT_PRIVILEGED, SPANK_TASK_INIT,
		  SPANK_TASK_POST_FORK, SPANK_TASK_EXIT, SPANK_JOB_EPILOG, SPANK_SLURMD_EXIT, SPANK_EXIT, SPANK_HOOKS };

struct spank_job {
	uint32_t job_id, step_id, uid, gid, nnodes, nodeid, local_tasks, total_tasks, ncpus, cpus_per_task, restarts, array_id, array_task;
	const uint32_t *gids;
	size_t n_gids;
	int argc;
	char **argv, **task_argv;  /* of the step; of the task at hand: spank_prepend_task_argv replaces that */
	struct envlist *env;       /* of the tasks */
	const uint32_t *ranks;     /* of the local tasks */
	pid_t (*pid_of)(uint32_t local);
	const char *job_cores, *step_cores;
	uint64_t job_mem, step_mem;
	bool forked;               /* tasks run: they can be found by their pids */
	bool in_task, has_status;  /* in a hook of one task */
	uint32_t task_local, task_global;
	pid_t task_pid;
	int status;
	struct envlist control;    /* SPANK_... for prolog and epilog */
	/* A line for the user: level 'l' spank_log, 'e' error, 'i' info, 'v' verbose, 'd' debug. NULL: through base/log. */
	void (*say)(char level, const char *line);
};
extern struct spank_job spank_job;

/* Load what `path` lists (a file that is not there: nothing) and register options. 0, or -1 when a required plugin cannot be loaded. */
int spank_stack_load(const char *path, const char *plugin_dir, spank_context_t context);
bool spank_stack_is_empty(void);
/* Does any plugin have this callback? */
bool spank_stack_has(enum spank_hook hook);
/* Call every plugin that has it. 0; else -1: a required one failed (said). */
int spank_stack_call(enum spank_hook hook);
/* A plugin's wish for a failed init: ESPANK_JOB_FAILURE means the job is at fault. */
bool spank_stack_blames_job(void);

/* Options of all plugins, for the command line. */
struct spank_stack_option { const struct spank_option *opt; const char *plugin; };
size_t spank_stack_options(struct spank_stack_option *ret, size_t max);
/* The user gave option `at` (value NULL: without one). 0, or what its callback returned. */
int spank_stack_option_set(size_t at, const char *value, int remote);
/* What was given, as "_SLURM_SPANK_OPTION_plugin_option=value" for the node, with "SPANK_" before it for prologs and epilogs; malloc'd strings. And the way back:
 * out of any list of variables, in either form or, as batch scripts have it, with "SLURM_SPANK_" before it. */
size_t spank_stack_options_out(char ***ret, bool for_scripts);
int spank_stack_options_in(char *const *list, size_t n);
#define SPANK_OPTION_ENV "_SLURM_SPANK_OPTION_"
#define SPANK_CONTROL_ENV "SPANK_"
