/* hetopt.h - options of heterogeneous jobs: ":" on the command line, "#SBATCH hetjob" in a script
 *
 * A component is a struct jobopt; the first is the command's own, the others hang on its `next`. What is not said of a component is taken from the
 * one before it for the options that propagate (heterogeneous_jobs(html), "Submitting Jobs"). */
#pragma once
#include "cli/jobopt.h"

/* As jobopt_parse_args, with ":". programs: each component has operands of its own (srun); else those behind the last ":" are the command's. Returns the index
 * of the first operand (of the last component), or a negative code, for jobopt_report of `o`. Each component's operands are in its argc, argv. */
int hetopt_parse_args(struct jobopt *o, int argc, char **argv, bool programs, struct error *err);
/* Component `at`, made if it is not there: with what was said of the last one on the command line. */
struct jobopt *hetopt_at(struct jobopt *o, unsigned at, struct error *err);
/* What was said of one in a script goes on to the next. */
int hetopt_spread(struct jobopt *o, struct error *err);
/* jobopt_parse_env, jobopt_check for each. */
int hetopt_finish(struct jobopt *o, struct error *err);
/* While they are read: the environment as component `group` of a heterogeneous job has it ("SLURM_NTASKS_HET_GROUP_1" as SLURM_NTASKS). NULL: as it was. */
void hetopt_environment(const unsigned *group);
