/* user.h - becoming the job's user, and whatever must be done as him
 *
 * slurmstepd itself stays what slurmd is. It never changes only its effective uid: paths the user named are opened by a forked child
 * that has become the user for good. */
#pragma once
struct step;
/* In a child: groups, gid, uid. 0 or -errno. Not root: nothing to do, the step is ours. */
int user_become(const struct step *s);
/* In a child, as the user: go to the working directory; where it is missing to /tmp, with a message on descriptor 2. */
void user_chdir(const struct step *s, const char *dir);
/* Open an output file the way every step does (always appending, so that texts of ours do not get overwritten). fd or -errno. */
int user_open_output(const char *path, int truncate);
