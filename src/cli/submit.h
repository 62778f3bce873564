/* submit.h - what sbatch, salloc and srun share after their options are parsed: the environment to send, the call, what to say when refused
 * A submission carries 16 random bytes; client_call repeats it with the same bytes while slurmctld restarts, so it yields one job. */
#pragma once
#include <stdbool.h>
#include "base/error.h"
#include "cli/jobopt.h"
#include "cli/script.h"
#include "client/client.h"
#include "model/envlist.h"

/* What --export (NULL: ALL) makes of `vars`. Names separated by commas; commas within quotes belong to a value; SLURM_* and SPANK_* always go. */
void submit_export(const char *spec, char *const *vars, struct envlist *ret);
/* SLURM_GPUS_PER_NODE of what --gpus-per-node said; of components each one's. */
void submit_env_gpus(const struct jobopt *o, struct envlist *ret);
/* The environment of a batch job: --export, --export-file, SLURM_SUBMIT_DIR and its kin; the token never goes. Sets get_user_env of the desc. */
int submit_env(struct jobopt *o, struct envlist *ret, struct error *err);
/* The limits to send: --propagate, else PropagateResourceLimits(Except) of slurm.conf. Caller frees. */
size_t submit_limits(const struct jobopt *o, const struct conf *c, Pb__Rlimit ***ret);
/* The first step that is asked for together with the job, and who is told of the whole request right before it is sent (srun). */
struct submit_step { Pb__StepDesc *desc; void (*ready)(const Pb__SubmitReq *req, void *arg); void *arg; };
/* RPC SUBMIT. A refusal is no error here: look at (*ret)->code. script, env and first may be NULL. Freed with pb__submit_rsp__free_unpacked. */
int submit_send(struct client *c, struct jobopt *o, const struct script *script, const struct envlist *env, const struct submit_step *first,
		Pb__SubmitRsp **ret, struct error *err);
/* "sbatch: error: <detail>" where there is one, then "sbatch: error: <what>: <text of code>". Returns 1, the exit code. */
int submit_refused(const char *cmd, const char *what, int code, const char *detail);
/* What --test-only says. Returns the exit code. */
int submit_estimate(const char *cmd, const Pb__SubmitRsp *rsp);
/* Lines the controller wants the user to see: "salloc: text". */
void submit_user_msg(const char *cmd, const char *text);
