/* login.h - the environment a login of the job's user has (sbatch --get-user-env, and --export other than ALL or NIL) */
#pragma once
struct step;
/* In the child, as the user. env with what a login shell sets and env has not; srun is found by its PATH. Never freed. NULL: it could not be had
 * (the step has failed: slurmctld requeues and holds the job). */
char **login_env(struct step *s, char **env);
