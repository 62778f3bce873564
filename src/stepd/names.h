/* names.h - file name patterns of this step's output, made absolute */
#pragma once
struct step;
struct task;
/* malloc'd. `t` NULL: of no task. */
char *names_expand(const struct step *s, const struct task *t, const char *pattern);
/* Where a batch script's stdin, stdout, stderr go; malloc'd; *ret_err is NULL when it joins stdout. */
void names_batch(const struct step *s, char **ret_in, char **ret_out, char **ret_err);
