/* plugins.h - SPANK in srun, sbatch and salloc: options that plugins add, and their callbacks on this side */
#pragma once
#include "cli/jobopt.h"
/* Load plugstack.conf's plugins, call init, take options from the environment, and let `o` know the options. Ends the program when a required one fails.
 * Without plugins it costs looking for the file. */
void plugins_load(struct jobopt *o);
/* The configuration that was read for it, for client_open_with; the caller's from then on. NULL: none could be read, or it was taken before. */
struct conf;
struct conf *plugins_conf(void);
/* All options are known: init_post_opt; what must reach the node and the job's scripts goes into o->desc. 0 or an exit code. */
int plugins_ready(struct jobopt *o);
/* srun: the ids are known (local_user_init); what goes to the nodes. 0 or an exit code. */
int plugins_step(uint32_t job_id, uint32_t step_id, uint32_t nodes, uint32_t tasks, int argc, char **argv);
size_t plugins_options_out(char ***ret);
/* Before the program ends. */
void plugins_exit(void);
