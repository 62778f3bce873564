/* spank.h - plugins that take part in the launch of jobs (see spank(7); listed in plugstack.conf)
 *
 * A plugin is a shared object that holds SPANK_PLUGIN(name, version) and any of the functions slurm_spank_*. Contexts, callbacks, items and their meaning are those
 * of the manual. Compile with -fPIC -shared; nothing need be linked: the programs that load it provide these functions. */
#ifndef SPANK_H
#define SPANK_H

#include <inttypes.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#include <slurm/slurm_version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spank_handle *spank_t;
typedef int (spank_f)(spank_t spank, int ac, char *argv[]);

extern spank_f slurm_spank_init;
extern spank_f slurm_spank_job_prolog;
extern spank_f slurm_spank_init_post_opt;
extern spank_f slurm_spank_local_user_init;
extern spank_f slurm_spank_user_init;
extern spank_f slurm_spank_task_init_privileged;
extern spank_f slurm_spank_task_init;
extern spank_f slurm_spank_task_post_fork;
extern spank_f slurm_spank_task_exit;
extern spank_f slurm_spank_job_epilog;
extern spank_f slurm_spank_slurmd_exit;
extern spank_f slurm_spank_exit;

/* What spank_get_item gives; behind each: the further arguments it takes. */
enum spank_item {
	S_JOB_UID,                 /* uid_t * */
	S_JOB_GID,                 /* gid_t * */
	S_JOB_ID,                  /* uint32_t * */
	S_JOB_STEPID,              /* uint32_t * */
	S_JOB_NNODES,              /* uint32_t * */
	S_JOB_NODEID,              /* uint32_t *: place of this node */
	S_JOB_LOCAL_TASK_COUNT,    /* uint32_t * */
	S_JOB_TOTAL_TASK_COUNT,    /* uint32_t * */
	S_JOB_NCPUS,               /* uint16_t *: on this node */
	S_JOB_ARGV,                /* int *, char *** */
	S_JOB_ENV,                 /* char *** */
	S_TASK_ID,                 /* int *: local */
	S_TASK_GLOBAL_ID,          /* uint32_t * */
	S_TASK_EXIT_STATUS,        /* int *: as from wait(2) */
	S_TASK_PID,                /* pid_t * */
	S_JOB_PID_TO_GLOBAL_ID,    /* pid_t, uint32_t * */
	S_JOB_PID_TO_LOCAL_ID,     /* pid_t, uint32_t * */
	S_JOB_LOCAL_TO_GLOBAL_ID,  /* uint32_t, uint32_t * */
	S_JOB_GLOBAL_TO_LOCAL_ID,  /* uint32_t, uint32_t * */
	S_JOB_SUPPLEMENTARY_GIDS,  /* gid_t **, int * */
	S_SLURM_VERSION,           /* char ** */
	S_SLURM_VERSION_MAJOR,     /* char ** */
	S_SLURM_VERSION_MINOR,     /* char ** */
	S_SLURM_VERSION_MICRO,     /* char ** */
	S_STEP_CPUS_PER_TASK,      /* uint32_t * */
	S_JOB_ALLOC_CORES,         /* char **: as "0-3,6" */
	S_JOB_ALLOC_MEM,           /* uint64_t *: MB */
	S_STEP_ALLOC_CORES,        /* char ** */
	S_STEP_ALLOC_MEM,          /* uint64_t *: MB */
	S_SLURM_RESTART_COUNT,     /* uint32_t * */
	S_JOB_ARRAY_ID,            /* uint32_t * */
	S_JOB_ARRAY_TASK_ID        /* uint32_t * */
};
typedef enum spank_item spank_item_t;

enum spank_err {
	ESPANK_SUCCESS = 0,
	ESPANK_ERROR = 3000,
	ESPANK_BAD_ARG,
	ESPANK_NOT_TASK,
	ESPANK_ENV_EXISTS,
	ESPANK_ENV_NOEXIST,
	ESPANK_NOSPACE,
	ESPANK_NOT_REMOTE,
	ESPANK_NOEXIST,
	ESPANK_NOT_EXECD,
	ESPANK_NOT_AVAIL,
	ESPANK_NOT_LOCAL,
	ESPANK_NODE_FAILURE,
	ESPANK_JOB_FAILURE
};
typedef enum spank_err spank_err_t;

enum spank_context { S_CTX_ERROR, S_CTX_LOCAL, S_CTX_REMOTE, S_CTX_ALLOCATOR, S_CTX_SLURMD, S_CTX_JOB_SCRIPT };
typedef enum spank_context spank_context_t;

typedef int (*spank_opt_cb_f)(int val, const char *optarg, int remote);

#define SPANK_OPTION_MAXLEN 75
struct spank_option {
	char *name;
	char *arginfo;
	char *usage;
	int has_arg;
	int val;
	spank_opt_cb_f cb;
};
#define SPANK_OPTIONS_TABLE_END { NULL, NULL, NULL, 0, 0, NULL }

#define SPANK_PLUGIN(__name, __ver) \
	const char plugin_name[] = #__name; \
	const char plugin_type[] = "spank"; \
	const unsigned int plugin_version = SLURM_VERSION_NUMBER; \
	const unsigned int spank_plugin_version = __ver;

const char *spank_strerror(spank_err_t err);
int spank_symbol_supported(const char *symbol);
int spank_remote(spank_t spank);
spank_context_t spank_context(void);
spank_err_t spank_option_register(spank_t spank, struct spank_option *opt);
spank_err_t spank_option_getopt(spank_t spank, struct spank_option *opt, char **optargp);
spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...);
spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len);
spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite);
spank_err_t spank_unsetenv(spank_t spank, const char *var);
spank_err_t spank_job_control_getenv(spank_t spank, const char *var, char *buf, int len);
spank_err_t spank_job_control_setenv(spank_t spank, const char *var, const char *val, int overwrite);
spank_err_t spank_job_control_unsetenv(spank_t spank, const char *var);
spank_err_t spank_prepend_task_argv(spank_t spank, int argc, const char *argv[]);

/* To the user and the log, by level. */
void slurm_spank_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_debug2(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_debug3(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif
#endif
