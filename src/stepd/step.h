/* step.h - one step on one node: everything slurmstepd knows
 *
 * slurmstepd is one process a step. It is started by slurmd, lives on when slurmd dies, and ends when all tasks have ended and the
 * completion has been written to the spool. Lifetime of everything here: the process.
 * Invariants: `running` counts tasks with pid != 0 and not ended; a task that has ended is never signalled again. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "model/stepid.h"
#include "model/usage.h"
#include "proto/agent.pb-c.h"

struct io;
struct pty;
struct orders;

/* What a forked child tells its parent before it execs or gives up: one page shared by all of them. */
struct launch_note {
	volatile int error;        /* errno of the first failure; 0: none */
	volatile bool node_fault;  /* it is the node's own */
	char text[1024];           /* one line for people */
};

struct task {
	uint32_t rank, local;      /* global and local id */
	pid_t pid, pgid;           /* pid 0: not started */
	bool ended;
	int status;                /* as from wait(2) */
	uint64_t user_usec, sys_usec, used[USAGE_KINDS];   /* so far (gather.h) */
	uint64_t gpu_util_sum, gpu_looks;   /* percent of GPUs, over that many looks */
	char **argv;               /* borrowed */
	int in, out, err;          /* ends the task gets: descriptors or -1 (see io.h) */
};

enum contain_kind { CONTAIN_TREE, CONTAIN_CGROUP };

struct step {
	uv_loop_t loop;
	Pb__StepdStart *start;
	Pb__StepCred *cred;
	const Pb__LaunchSpec *spec;     /* a step; else NULL */
	const Pb__BatchLaunch *batch;   /* a batch script; else NULL */
	bool external;                  /* neither: the extern step, which runs nothing of its own (extern.h) */
	Pb__StepNode *here;             /* our part of the layout */
	uint32_t whole_job;             /* as job_id; of a heterogeneous job the first component's */
	uint32_t job_id, step_id, uid, gid;
	const char *node;
	char name[48];                  /* "5.batch", "5.0" */
	char *script;                   /* path of the batch script */
	struct task *task;
	uint32_t tasks, running, started;
	struct launch_note *note;
	enum contain_kind contain;
	char *cgroup;                   /* path of the step's cgroup, or NULL */
	int cgroup_dir;                 /* it, open, or -1 */
	bool task_groups;               /* each task has a cgroup below it */
	bool hides_devices;             /* an eBPF filter is on it */
	uint64_t mem_limit;             /* bytes; 0: none */
	char *stuck;                    /* processes that do not end although they were killed, and what they wait on; NULL: none */
	char *oom_text;                 /* which task, how much, what the limit was */
	uint64_t stray_user_usec, stray_sys_usec;   /* used by processes adopted and reaped */
	pid_t pgid;                     /* of the tasks */
	struct io *io;
	struct pty *pty;
	struct orders *orders;
	struct rlimit nofile;           /* as it was before we raised ours */
	bool has_endreason, ending, killed, timed_out, oom, suspended, cgroup_gone, begun;
	int done_fd;                    /* the completion, prepared (done.h); -1: it could not be */
	int launch_error;               /* errno; the step did not run */
	char *launch_text;
	char *launch_detail;            /* a line that srun says before it; NULL: none */
	uint32_t launch_exit;           /* srun's exit code; 0: 1 */
	uint32_t kill_wait_sec;
	uv_timer_t kill_timer;
	bool kill_timer_on;
	uint32_t term_due_sec;     /* SIGTERM follows SIGCONT in a moment, and SIGKILL so long after it; 0: it was sent */
	uv_timer_t suspend_timer;       /* from SIGTSTP to SIGSTOP */
};

/* Our node's part of the job's allocation; NULL: not told. */
const Pb__NodeAlloc *step_job_part(const struct step *s);
/* A setting slurmd handed over; NULL when it is not set. */
const char *step_conf(const struct step *s, const char *key);
uint64_t step_conf_num(const struct step *s, const char *key, uint64_t fallback);
/* Note that the step cannot run (the first note stays). Returns -1. Also good in children: the note is shared. */
int step_fail(struct step *s, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, and it is the node that is at fault: it will be drained, and a batch job goes elsewhere. */
int step_fail_node(struct step *s, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Who the event is of; the rest of it stays. */
void step_event_fill(const struct step *s, Pb__StepdEvent *event, Pb__StepdEvent__Kind kind);
/* All tasks of this node have ended, or could not be started: write the completion and leave. */
void step_check_end(struct step *s);
