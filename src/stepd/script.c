/* script.c - the batch script in the spool (see script.h) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "stepd/script.h"
#include "stepd/step.h"

static int fail(struct step *s, const char *what, const char *path)
{
	return step_fail_node(s, errno, "cannot %s the batch script %s: %s", what, path, strerror(errno));
}

int script_write(struct step *s)
{
	char dir[3072], path[3100];
	if (!s->batch)
		return 0;
	snprintf(dir, sizeof dir, "%s/job%05u", s->start->spool_dir, s->job_id);
	snprintf(path, sizeof path, "%s/slurm_script", dir);
	if (mkdir(dir, 0750) < 0 && errno != EEXIST)
		return fail(s, "make the folder of", path);
	(void)unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
	if (fd < 0) {
		int error = errno;
		(void)rmdir(dir);
		errno = error;
		return fail(s, "make", path);
	}
	s->script = xstrdup(path);
	size_t len = s->batch->script.len;
	ssize_t n = write(fd, s->batch->script.data, len);
	int error = n < 0 ? errno : (size_t)n < len ? ENOSPC : 0;
	if (!error && !geteuid() && (fchown(fd, s->uid, s->gid) < 0 || chown(dir, s->uid, s->gid) < 0))
		error = errno;
	if (close(fd) < 0 && !error)
		error = errno;
	errno = error;
	return error ? fail(s, "write", path) : 0;
}

void script_remove(struct step *s)
{
	if (!s->script)
		return;
	(void)unlink(s->script);
	*strrchr(s->script, '/') = 0;
	(void)rmdir(s->script);
	xfree(s->script);
}
