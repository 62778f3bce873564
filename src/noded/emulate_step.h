/* emulate_step.h - steps of emulated nodes: slurmstepd's side of the connection to srun (wire/stepio.h), without tasks */
#pragma once
#include <uv.h>
#include "noded/cred.h"

struct emu_steps;
struct emu_step;
struct emu_steps *emu_steps_create(uv_loop_t *loop, struct cred_book *creds);
/* A launch that came to `node`, whose steps are *head: the credential is checked as slurmd does, the user's token by who asks. The step lasts as long as the `sleep` in its
 * command asks for. */
int emu_step_launch(struct emu_steps *e, struct emu_step **head, const char *node, const Pb__LaunchSpec *spec, uint32_t uid, struct error *err);
/* Ends what runs of the job there: of one step, NULL: of all. How many. */
size_t emu_step_kill(struct emu_step *head, uint32_t job_id, const uint32_t *step_id, int signal);
