/* namespace.c - private folders of a job (see namespace.h) */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "stepd/namespace.h"
#include "stepd/step.h"

#define SHM "/dev/shm"

/* BASE/JOBID/dir_var_tmp for /var/tmp. */
static void place_of(const struct step *s, const char *dir, char *buf, size_t size)
{
	int at = snprintf(buf, size, "%s/%u/dir", step_conf(s, "NamespaceBase"), s->job_id);
	for (const char *c = dir; *c && at > 0 && (size_t)at + 1 < size; c++)
		buf[at++] = *c == '/' ? '_' : *c;
	buf[at] = 0;
}

/* One private folder, with the mode of what it hides. Made once; the lock of the job's folder is held. */
static int folder_make(const struct step *s, const char *dir)
{
	char place[4096];
	struct stat real, st;
	place_of(s, dir, place, sizeof place);
	if (!lstat(place, &st))
		return 0;
	if (stat(dir, &real) < 0 || mkdir(place, 0700) < 0)
		return -errno;
	if (!strcmp(dir, SHM) && mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		return -errno;
	return chown(place, real.st_uid, real.st_gid) < 0 || chmod(place, real.st_mode & 07777) < 0 ? -errno : 0;
}

int namespace_prepare(struct step *s)
{
	const char *base = step_conf(s, "NamespaceBase");
	char job[4096];
	if (!base)
		return 0;
	snprintf(job, sizeof job, "%s/%u", base, s->job_id);
	if (mkdir(job, 0700) < 0 && errno != EEXIST)
		return step_fail(s, errno, "cannot make the job's folder %s: %s", job, strerror(errno));
	int fd = open(job, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return step_fail(s, errno, "cannot lock %s: %s", job, strerror(errno));
	char *list = xstrdup(step_conf(s, "NamespaceDirs")), *at = list;
	int rc = 0;
	for (char *dir; !rc && (dir = str_next(&at, ","));) {
		rc = *dir == '/' ? folder_make(s, dir) : -EINVAL;
		if (rc < 0)
			(void)step_fail(s, -rc, "cannot make a private %s in %s: %s", dir, job, strerror(-rc));
	}
	free(list);
	close(fd);
	return rc < 0 ? -1 : 0;
}

int namespace_enter(const struct step *s)
{
	char place[4096];
	const char *base = step_conf(s, "NamespaceBase");
	if (!base)
		return 0;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | (step_conf(s, "NamespaceShared") ? MS_SLAVE : MS_PRIVATE), NULL) < 0)
		return -errno;
	char *list = xstrdup(step_conf(s, "NamespaceDirs")), *at = list;
	int rc = 0;
	for (char *dir; !rc && (dir = str_next(&at, ","));) {
		place_of(s, dir, place, sizeof place);
		rc = mount(place, dir, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
	}
	free(list);
	return rc;
}
