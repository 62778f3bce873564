/* user.c - becoming the job's user (see user.h) */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stepd/step.h"
#include "stepd/user.h"

_Static_assert(sizeof(gid_t) == sizeof(uint32_t), "group ids travel as 32 bits");

int user_dir_make(const struct step *s, const char *path, mode_t mode)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc = fd < 0 || (!geteuid() && fchown(fd, s->uid, s->gid) < 0) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

int user_become(const struct step *s)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(s->cred->n_gids, (const gid_t *)s->cred->gids) < 0 || setresgid(s->gid, s->gid, s->gid) < 0 ||
	    setresuid(s->uid, s->uid, s->uid) < 0)
		return -errno;
	return 0;
}

void user_chdir(const struct step *s, const char *dir)
{
	if (!dir || !chdir(dir))
		return;
	dprintf(2, "slurmstepd: error: couldn't chdir to `%s': %s: going to /tmp instead\n", dir, strerror(errno));
	if (chdir("/tmp") < 0)
		dprintf(2, "slurmstepd: error: couldn't chdir to `/tmp': %s\n", strerror(errno));
}

/* Make the folders a path needs: people name log folders that are not there yet. */
static void make_parents(const char *path)
{
	char dir[4096];
	size_t len = strlen(path);
	if (len >= sizeof dir)
		return;
	memcpy(dir, path, len + 1);
	for (char *at = strchr(dir + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(dir, 0777) < 0 && errno != EEXIST)
			return;
		*at = '/';
	}
}

int user_open_output(const char *path, int truncate)
{
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (truncate ? O_TRUNC : 0);
	int fd = open(path, flags, 0666);
	if (fd < 0 && errno == ENOENT) {
		make_parents(path);
		fd = open(path, flags, 0666);
	}
	return fd < 0 ? -errno : fd;
}
