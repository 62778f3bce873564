/* jobopt.h - the submit options of sbatch, srun and salloc, from argv, environment and #SBATCH lines
 *
 * tables/options.def has one row an option; the three commands share rows, parsers and sentences. What describes the job is parsed
 * straight into a JobDesc (`desc`); what only the command itself needs is a field of struct jobopt. Each option remembers where its value
 * came from; a source never overrides a higher one (script < environment < command line), so the order of the calls does not matter.
 * Lifetime: one a process. Strings are owned by the struct (jobopt_fini).
 *
 *     struct jobopt o;
 *     jobopt_init(&o, JOBOPT_SBATCH);
 *     if ((first = jobopt_parse_args(&o, argc, argv, &err)) < 0) exit(jobopt_report(&o, &err));
 *     if (jobopt_show(&o)) exit(0);                          (--help, --usage, --version)
 *     jobopt_parse_env, jobopt_parse_words for #SBATCH lines, jobopt_check, jobopt_to_desc                                           */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "proto/controller.pb-c.h"

enum jobopt_cmd { JOBOPT_SBATCH = 1, JOBOPT_SALLOC = 2, JOBOPT_SRUN = 4 };
enum jobopt_from { JOBOPT_UNSET, JOBOPT_SCRIPT, JOBOPT_ENV, JOBOPT_ARGS };
enum jobopt_id { /* JO_nodes, JO_time, ... */
#define OPTION(sym, ...) JO_##sym,
#include "tables/options.def"
#undef OPTION
	JOBOPT_COUNT
};
enum jobopt_show { JOBOPT_SHOW_NOTHING, JOBOPT_SHOW_HELP, JOBOPT_SHOW_USAGE, JOBOPT_SHOW_VERSION, JOBOPT_SHOW_HINT, JOBOPT_SHOW_CPU_BIND, JOBOPT_SHOW_MEM_BIND, JOBOPT_SHOW_MPI, JOBOPT_SHOW_GRES };

struct jobopt {
	enum jobopt_cmd cmd;
	Pb__JobDesc *desc;                 /* what describes the job; also cpu_bind, mem_bind, tres_bind, distribution of a step */
	uint8_t from[JOBOPT_COUNT];        /* enum jobopt_from */
	char *text[JOBOPT_COUNT];          /* value as typed; NULL: none given */
	enum jobopt_show show;
	int exit_code;                     /* what the last error wants the process to exit with */
	bool fatal, getopt_error;          /* how jobopt_report prints it */
	char *before;                      /* a line to print before it, or NULL */
	char *submit_line;                 /* the command line */

	/* --- all three */
	unsigned verbose;                  /* -v, -vv ... */
	bool quiet;
	char *clusters;
	bool test_only;
	bool no_torch;                     /* --export-torch=no */
	char *gres, *gpus_per_node;        /* joined into desc->tres_per_node by jobopt_check */
	/* --- sbatch */
	bool parsable, wait_end, ignore_pbs;
	char *wrap, *export_file;
	bool get_user_env;
	bool has_as_uid, has_as_gid;
	uint32_t as_uid, as_gid;           /* --uid, --gid */
	bool has_requeue_expedite;
	/* --- salloc */
	bool bell, no_bell, no_shell;
	int kill_command_signal;           /* 0: SIGTERM as the default; set when kill_command */
	bool kill_command;
	/* --- srun */
	uint32_t jobid;                    /* 0: none */
	uint32_t jobid_step;               /* UINT32_MAX: none */
	bool label, unbuffered, pty, multi_prog, overlap, exact, exclusive, preserve_env, disable_status, quit_on_interrupt;
	bool async;                        /* --async; `parsable` as above */
	bool no_allocate, interactive, external_launcher, whole, wait_for_children;
	bool has_relative;
	uint32_t relative;
	int kill_on_bad_exit;              /* -1: configuration's, 0, 1 */
	int wait_sec;                      /* -1: configuration's WaitTime */
	int msg_timeout_sec;               /* 0: default */
	uint32_t threads;
	uint32_t treewidth;                /* 0: the configuration's */
	/* Options of plugins (plugins.h): rows with ids from JOBOPT_COUNT on. */
	const struct opt_row *more;
	size_t more_n;
	int (*more_take)(size_t at, const char *value, struct error *err);
	char *mpi, *bcast, *compress, *task_prolog, *task_epilog, *prolog, *epilog, *propagate, *slurmd_debug, *accel_bind, *step_gres;
	char *ignore_signals;
	char *arbitrary_hosts;             /* a host a task, in order: from SLURM_HOSTFILE */
	int immediate_sec;                 /* -1: not asked; 0: do not wait at all */
	int pty_fd;                        /* -1: none */
	char *het_group;                   /* --het-group */
	/* --- components (hetopt.h) */
	struct jobopt *next;
	int argc, word_n;
	char **argv, **word;               /* its operands; all its words, as jobopt_parse_args got them */
};

/* Row of one option, as the commands may want to know it. */
struct jobopt_row;

void jobopt_init(struct jobopt *o, enum jobopt_cmd cmd);
void jobopt_fini(struct jobopt *o);
/* Options of the command line. Returns the index of the first operand, or a negative code. */
int jobopt_parse_args(struct jobopt *o, int argc, char **argv, struct error *err);
/* As if `value` had come from there (NULL: an option without a value). */
int jobopt_put(struct jobopt *o, enum jobopt_id id, const char *value, enum jobopt_from from, struct error *err);
/* SBATCH_x, SALLOC_x, SLURM_x and SRUN_x of the process' environment. */
int jobopt_parse_env(struct jobopt *o, struct error *err);
/* Words of one #SBATCH line: argv[1..argc) are options (argv[0] is not looked at). An operand is an error. */
int jobopt_parse_words(struct jobopt *o, int argc, char **argv, struct error *err);
/* Checks between options (mutually exclusive ones ...) and defaults that follow from others. After all parsing. Warnings are logged. */
int jobopt_check(struct jobopt *o, struct error *err);
/* Complete o->desc with what the process itself knows: name (from `command`'s base name where none was given), working directory,
 * submit line, host, session, umask, limits to propagate. `command` and args may be NULL. The desc stays owned by o. */
int jobopt_to_desc(struct jobopt *o, const char *command, int argc, char **argv, struct error *err);
/* A step's request from the same options (srun; salloc's interactive step). Strings are copies; freed with pb__step_desc__free_unpacked. */
Pb__StepDesc *jobopt_to_step(const struct jobopt *o, uint32_t job_id, const char *command);
/* Limits to hand on: "ALL", "NONE" or names; NULL: ALL. Those of `except` (names, "ALL", NULL) are left out. malloc'd list of malloc'd messages. */
size_t jobopt_limits(const char *only, const char *except, Pb__Rlimit ***ret);
/* Of those that a description has already, by the same rule. */
void jobopt_limits_keep(Pb__JobDesc *d, const char *only, const char *except);
/* Of the process, or SLURM_UMASK. */
uint32_t jobopt_umask(void);
/* Print an error as the reference does ("sbatch: error: ...", "Try ..."), and return the exit code it asks for (SLURM_EXIT_ERROR wins). */
int jobopt_report(const struct jobopt *o, const struct error *err);
/* The exit code that environment variable `name` (SLURM_EXIT_ERROR, SLURM_EXIT_IMMEDIATE) asks for, else `code`. */
int jobopt_exit_code(const char *name, int code);
/* --help, --usage, --version, --hint=help ...: print it; true if the command is done. *ret_exit: with what. */
bool jobopt_show(const struct jobopt *o, int *ret_exit);
/* -v: the option dump on stderr, "srun: name : value". */
void jobopt_dump(const struct jobopt *o);
bool jobopt_is_set(const struct jobopt *o, enum jobopt_id id);
/* Counts for the tests. */
size_t jobopt_todo_count(enum jobopt_cmd cmd);
