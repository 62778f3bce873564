/* user.h - becoming the job's user, and whatever must be done as him
 *
 * slurmstepd itself stays what slurmd is. It never changes only its effective uid: paths the user named are opened by a forked child
 * that has become the user for good. */
#pragma once
#include <sys/types.h>
struct step;
/* In a child: groups, gid, uid. 0 or -errno. Not root: nothing to do, the step is ours. */
int user_become(const struct step *s);
/* In a child, as the user: go to the working directory; where it is missing to /tmp, with a message on descriptor 2. */
void user_chdir(const struct step *s, const char *dir);
/* Makes a folder and gives it to the user; one that is there already will do, a link in its place will not: it could lead root anywhere, since the
 * folder above may be the user's. 0 or -errno. */
int user_dir_make(const struct step *s, const char *path, mode_t mode);
/* Open an output file the way every step does (always appending, so that texts of ours do not get overwritten). fd or -errno. */
int user_open_output(const char *path, int truncate);
