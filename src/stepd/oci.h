/* oci.h - --container: tasks run by an OCI runtime (oci.conf(5))
 *
 * A task of such a step executes slurmstepd-oci (oci_helper.c) as the user instead of its program: that one makes the bundle of this task from the
 * user's, calls the runtime as oci.conf says, and ends as the container does. slurmstepd makes the folders and takes them away; where a helper was
 * killed it has another one clean up. Where oci.conf names no runtime --container is no more than a note, as in the reference. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct str;
struct step;
struct task;
/* Before the first fork: folders of the tasks. 0; -1 and the step's note filled. */
int oci_prepare(struct step *s);
/* In a child that is the user: does not return where the task is to run in a container, unless the bundle cannot be used: then errno. 0: no container. */
int oci_exec(struct step *s, struct task *t, char **argv, char **env);
/* All tasks have ended: true when nothing is left of the containers; else step_check_end is called again. */
bool oci_finish(struct step *s);
bool oci_is_cleaning(void);
bool oci_reaped(struct step *s, pid_t pid, int status);

/* --- OCI patterns (oci_pattern.c) --------------------------------------------------------------------- */
struct oci_names {
	const char *bundle, *env_file, *job, *spool, *node, *pid, *rootfs, *step, *task, *user, *uid, *work_dir;
	char **args;
};
/* `pattern` with its %-characters replaced; malloc'd. A name that is NULL gives nothing. */
char *oci_pattern(const char *pattern, const struct oci_names *n);
