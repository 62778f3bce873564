/* srun.h - inside of srun: one step, from its request to the exit code
 *
 *   srun.c         options, operands, the order of things
 *   srun_alloc.c   the allocation and the step, from slurmctld (waits, retries, gives back)
 *   srun_het.c     components of a heterogeneous job: which, their steps, all of them as one layout
 *   srun_guard.c   gives it back when srun is killed
 *   srun_launch.c  what the nodes are told, and telling them (client/fan.h)
 *   srun_env.c     environment for the tasks;  srun_multi.c  --multi-prog files
 *   srun_plan.c    where stdin, stdout and stderr of the tasks lead
 *   srun_conn.c    connections from slurmstepd (wire/stepio.h);  srun_out.c  output: labels, lines, files;  srun_in.c  stdin
 *   srun_spawn.c   steps that tasks start (MPI_Comm_spawn)
 *   srun_tasks.c   what became of each task, and saying so;  srun_run.c  the loop, signals, time;  srun_tty.c  --pty
 *
 * One thread, one epoll. Lifetime of everything here: the process. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

#include "cli/jobopt.h"
#include "client/fan.h"
#include "model/envlist.h"

#define SRUN_BUFFER_HIGH (1u << 20)   /* more than that waiting for one reader: stop reading its source */

/* Something epoll watches: first member of each such struct. */
struct watch { void (*ready)(struct watch *w, uint32_t events); int fd; uint32_t events; };

/* --- output ------------------------------------------------------------------------------------ */
struct sink {                  /* where bytes end: srun's stdout or stderr, or a file */
	struct watch watch;
	struct srun *s;
	bool is_plain;         /* a regular file, or a pipe opened anew: writing never blocks */
	bool is_own_pipe;      /* a pipe opened anew */
	bool is_polled, is_dead;
	char *buf;
	size_t at, len, cap;
};
enum plan_kind { PLAN_HERE, PLAN_NONE, PLAN_TASK, PLAN_FILE, PLAN_NODE };
struct plan { enum plan_kind kind; uint32_t task; const char *pattern; };

/* --- nodes and tasks ------------------------------------------------------------------------------- */
enum task_state { TASK_STARTING, TASK_RUNNING, TASK_EXITED };
struct task_info {
	enum task_state state;
	bool is_told;          /* its end was said */
	bool oom;
	uint32_t node;
	int status;            /* as from wait(2) */
	struct { char *buf; size_t len, cap; } part[2];   /* unfinished lines of stdout, stderr */
};
struct part {                  /* what runs on one component of a heterogeneous job; an ordinary step is one part */
	struct jobopt *o;
	int argc;
	char **argv;           /* the program and its arguments */
	uint32_t group, job_id, first_task;
	size_t first_node;
	Pb__JobRecord *job;
	Pb__StepCreateRsp *step;
	Pb__LaunchSpec spec;
	struct srun *s;
	struct watch fan_watch; /* of the calls to its nodes */
	struct client_fan *fan;
	struct client_fan_node *targets;
};
struct node_info {
	struct srun *s;
	struct part *part;     /* NULL: sattach */
	const Pb__StepNode *row;
	struct conn *conn;
	uint32_t peer_port;    /* where its slurmstepd listens for the others of the step; 0: not told */
	bool is_ended;
	uint32_t fail_code;    /* srun's exit code for a launch that failed there; 0: 1 */
	uint64_t retry_ms, retry_until_ms;     /* its slurmd could not be reached; 0: not so */
};
struct conn {                  /* one slurmstepd */
	struct watch watch;
	struct srun *s;
	struct node_info *node;    /* NULL: HELLO has not come */
	uint8_t *in, *out;
	size_t in_len, in_cap, out_at, out_len, out_cap;
	struct sink *direct;       /* the next direct_left bytes go there */
	size_t direct_left;
	struct conn *next;
};

struct srun {
	struct jobopt o;
	struct client *client;
	const struct conf *conf;
	int argc;
	char **argv;               /* the program and its arguments */
	char *text_in, *text_out, *text_err;   /* --input, --output, --error */
	/* the job and the step */
	uint32_t job_id, step_id, task_count;
	bool is_attached;          /* sattach: the step is another srun's */
	bool is_own_job;           /* allocated by us, given back at the end */
	int guard_fd;              /* to the child that gives it back if we are killed; 0: none */
	Pb__JobRecord *job;
	Pb__StepCreateRsp *step;
	Pb__StepLayout *layout;    /* of all parts together */
	struct part *part;
	size_t parts;
	Pb__AllocInfo *alloc;      /* our own job, or the heterogeneous job we are in */
	struct task_info *task;
	struct node_info *node;
	size_t node_count, nodes_left, tasks_left;
	/* the loop */
	int epoll_fd, signal_fd, listen_fd;
	uint16_t listen_port;
	uint8_t io_key[32];
	Pb__BcastSpec *bcast_exec; /* --bcast: what was put on the nodes */
	uint32_t tree_width;       /* of the nodes, for MPI */
	char host[64];             /* our address, as the nodes see it */
	struct conn *conns;
	struct watch signal_watch, listen_watch;
	struct job_watch *job_watch; /* srun_watch.c */
	uint64_t late_ms;          /* a node that has not come by then: is the job still there? */
	size_t pending_exits;      /* ends not said yet */
	/* input and output */
	struct plan plan_in, plan_out, plan_err;
	struct sink std_out, std_err, file[2];
	struct sink *to[2];        /* where stdout and stderr of the tasks go */
	struct watch in_watch;
	bool in_open, in_paused, in_polled;
	int label_width;
	/* a terminal of ours in raw mode */
	bool is_raw;
	struct termios saved;
	/* ends */
	uint64_t first_exit_ms, kill_at_ms, give_up_at_ms, interrupt_ms, warn_at_ms;
	bool wait_done, is_aborted, is_terminating, was_force_told, was_busy, launch_failed, launch_told, ctrl_c_sent, warned;
	int exit_code;
	uint32_t exit_status;      /* highest, as from wait(2) */
};

/* Print "srun: error: ..." through log_error and end with `code` (SLURM_EXIT_ERROR wins). */
int srun_exit_code(int code);
/* Are output files appended to: --open-mode, else JobFileAppend. */
bool srun_appends(const struct srun *s);
/* Watch w->fd for EPOLLIN, EPOLLOUT; 0: no more. */
void watch_set(struct srun *s, struct watch *w, uint32_t events);

/* srun_het.c: 0, or the exit code of srun, everything said. */
int het_parts(struct srun *s);              /* what the command line asks for */
uint32_t het_own_group(const struct srun *s); /* the component that the command's own options are for */
int het_options(struct srun *s);            /* those of all other parts */
int het_job_parts(struct srun *s);          /* which job each part runs in */
void het_merge(struct srun *s);             /* after all steps were made */
bool het_is(const struct srun *s);          /* the job is a heterogeneous one */
void het_spec(const struct srun *s, struct part *p);
void het_env(const struct srun *s, const struct part *p, struct envlist *e);

/* srun_alloc.c: 0, or the exit code of srun, everything said. */
int alloc_get(struct srun *s);
int alloc_gone(const struct srun *s, int code);   /* says that the job is no more */
void alloc_give_back(struct srun *s);
int signals_open(void);                    /* signalfd of what srun acts upon; blocks them */

/* srun_async.c: --async. 0 or an exit code, said. */
int async_check(struct srun *s);            /* may it be? And where do its streams lead? */
int async_begin(struct srun *s, Pb__StepDesc *d); /* takes a number, tells it, and goes on in the background; d then asks for that step */

/* srun_guard.c: from here on the job that is submitted with this, NULL: the steps in another's job, end with this process, until guard_end. */
void guard_start(struct srun *s, const Pb__SubmitReq *req);
void guard_tell(struct srun *s);            /* which job or step it has become */
void guard_end(struct srun *s);
void job_kill(uint32_t job_id);

/* srun_launch.c */
int launch_listen(struct srun *s, struct error *err);
int launch_attach(struct srun *s);          /* sattach: ask the nodes to connect. 0 or an exit code */
int launch_send(struct srun *s);            /* 0 or an exit code */
void launch_tell_figures(const struct srun *s);
void launch_again(struct srun *s, uint64_t now);    /* on nodes whose slurmd is being restarted; gives up those that do not answer the call */
uint64_t launch_due(const struct srun *s);          /* when to call it next; UINT64_MAX: need not */

/* srun_env.c */
void env_fill(const struct srun *s, const struct part *p, struct envlist *e);
/* srun_multi.c: 0 or an exit code. */
int multi_read(const struct srun *s, const char *path, Pb__MultiProg ***ret, size_t *ret_n);

/* srun_plan.c: 0 or an exit code. */
int plan_make(struct srun *s);

/* srun_out.c */
void sink_init(struct srun *s, struct sink *k, int fd);
void sink_add(struct sink *k, const void *data, size_t n);
/* Up to n bytes of a connection, not copied; how many. 0: none were there, or it is not possible now. */
size_t sink_splice(struct sink *k, int fd, size_t n);
void sink_flush(struct sink *k);           /* as much as goes without waiting */
bool out_is_full(const struct srun *s);
void out_flush(struct srun *s);
void out_take(struct srun *s, uint32_t task, bool is_err, const char *data, size_t n);   /* n 0: end of the stream */
/* Where bytes of that stream go as they come, in any pieces. NULL: out_take must see them. */
struct sink *out_direct(struct srun *s, uint32_t task, bool is_err);
void out_finish(struct srun *s);           /* what is left, waiting for it */

/* srun_bcast.c: 0 or an exit code. */
int bcast_program(struct srun *s);
/* A program as execvp finds it. malloc'd, or NULL. */
char *srun_program_find(const char *name);
/* srun_spawn.c: MPI_Comm_spawn */
void spawn_take(struct srun *s, struct conn *c, uint32_t ticket, const char *text, size_t len);
void spawn_tell(struct srun *s);            /* this srun is one that was spawned: its tasks run */
void spawn_wait(struct srun *s);            /* until the sruns of what was spawned have ended */

/* srun_in.c */
void in_start(struct srun *s);
void in_resume(struct srun *s);
void in_replay(struct srun *s, struct conn *c);

/* srun_conn.c */
void conn_accept(struct srun *s);
void conn_sweep(struct srun *s);           /* frees what is closed; not while events of it may be on the way */
void conn_send(struct conn *c, uint8_t type, uint32_t task, const void *data, size_t n);
void conn_flush(struct conn *c);
void conn_signal_all(struct srun *s, int number);
void conn_terminate_all(struct srun *s, uint32_t kill_wait_sec, const char *why);
void conn_all_ended(struct srun *s);        /* no task runs any more: slurmstepds that wait for each other need not */
void conn_update_all(struct srun *s);      /* read again, or not: sinks have filled or emptied */
bool conn_any_full(const struct srun *s);

/* srun_tasks.c */
void tasks_init(struct srun *s);
void tasks_started(struct srun *s, struct node_info *n, const Pb__IoStarted *m);
void tasks_exited(struct srun *s, struct node_info *n, const Pb__IoExit *m);
void tasks_tell_exits(struct srun *s);
void tasks_fail(struct srun *s);             /* a task has failed the step: end it */
void tasks_print_states(struct srun *s);
void node_lost(struct srun *s, struct node_info *n, const char *why);
/* Its slurmstepd says that it cannot run its tasks. */
void node_failed(struct srun *s, struct node_info *n, const Pb__IoText *m);
void node_ended(struct srun *s, struct node_info *n);

/* srun_run.c */
void run_until_end(struct srun *s);
void run_abort(struct srun *s);            /* "Job step aborted: Waiting up to ..." */
void run_terminate(struct srun *s, int number);

/* srun_watch.c */
void job_watch_check(struct srun *s, uint64_t now);
uint64_t job_watch_due(const struct srun *s);   /* when to call it next; UINT64_MAX: need not */

/* srun_tty.c */
void tty_start(struct srun *s);
void tty_resize(struct srun *s);
void tty_stop(struct srun *s);
bool tty_size(uint32_t *ret_rows, uint32_t *ret_cols);
