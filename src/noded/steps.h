/* steps.h - the slurmstepds of this node: start, adopt, order about, notice their end
 *
 * A slurmstepd is known by its connection. When that ends, its completion is in the spool (stepd/done.h); if not, it was killed, and what
 * it left is cleaned up here. */
#pragma once
#include "noded/noded.h"

struct node_step {
	struct node_step *next;
	struct noded *node;
	uint32_t job_id, step_id, uid, restarts;
	bool stuck;                /* processes of it do not end although they were killed */
	bool asked;                /* for its processes; not answered yet */
	bool reached;              /* there is a connection to its slurmstepd */
	uint64_t end_by;           /* mute.c: told to end, and by when (ms of the loop) to look whether it answers; 0: not told */
	bool doubted;              /* mute.c: asked whether it lives; not answered yet */
	bool batch, known;         /* known: uid, batch, restarts were told by the step itself or by the launch */
	pid_t pid;                 /* 0: adopted */
	uv_pipe_t pipe;
	uint8_t *in;
	size_t len, cap;
	uint32_t *pids, *tasks;    /* as last told */
	size_t n_pids;
	Pb__StepdEvent *end;       /* the completion, where slurmstepd has told it before it ended */
};

/* A job is suspended (or is no more): its steps that are started meanwhile begin so. */
void steps_stopped(struct noded *n, uint32_t job_id, bool stopped);
/* Start slurmstepd with this message. 0 or error. */
int steps_spawn(struct noded *n, const Pb__StepdStart *start, struct error *err);
/* At start: connect to the slurmstepds that are alive, report completions nobody has taken. `kill`: end them (slurmd -c). */
void steps_adopt(struct noded *n, bool kill);
void steps_order(struct node_step *st, const Pb__StepdOrder *order);
/* The process id of its slurmstepd; 0: not known. May search /proc: for the rare case. */
pid_t steps_stepd_pid(const struct node_step *st);
/* Back from stepid_text, which is the end of its cgroup's name. false: no step is called so. */
bool steps_of_word(const char *word, uint32_t *ret);
struct node_step *steps_find(struct noded *n, uint32_t job_id, uint32_t step_id);
/* Does the step belong to a later run of its job than the one an order speaks of? */
bool steps_is_later(const struct node_step *st, bool has_restarts, uint32_t restarts);
size_t steps_count_job(const struct noded *n, uint32_t job_id);
/* The end that `e` tells is acknowledged: its file goes, unless it is that of a later run of the job. */
void steps_forget_done(struct noded *n, const Pb__NodeEvent *e);
