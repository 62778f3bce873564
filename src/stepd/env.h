/* env.h - the environment of a task: what the user handed on, then the job's (model/jobenv.h), then the step's and the task's own */
#pragma once
struct envlist;
struct step;
struct task;
/* Before the first fork. */
void env_prepare(const struct step *s);
/* What env_prepare made. */
struct envlist *env_common(void);
/* In the child. NULL-terminated, never freed. */
char **env_task(const struct step *s, const struct task *t);
