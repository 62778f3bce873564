/* endreason.c - why the job is told to end (see endreason.h)
 * Only root writes in the spool, so the names are ours; a user reads what is his. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "model/envlist.h"
#include "proto/agent.pb-c.h"
#include "stepd/endreason.h"
#include "stepd/step.h"

static void path_of(const struct step *s, const char *end, char *buf, size_t size)
{
	snprintf(buf, size, "%s/end.%u.%u%s", s->start->spool_dir, s->job_id, s->step_id, end);
}

static int put(const struct step *s, const char *text)
{
	char path[3072], part[3080];
	path_of(s, "", path, sizeof path);
	path_of(s, ".part", part, sizeof part);
	(void)unlink(part);
	int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	int rc = fd < 0 ? -errno : 0;
	if (fd >= 0 && ((!geteuid() && fchown(fd, s->uid, s->gid) < 0) || write(fd, text, strlen(text)) != (ssize_t)strlen(text)))
		rc = errno ? -errno : -ENOSPC;
	if (fd >= 0)
		close(fd);
	if (!rc && rename(part, path) < 0)
		rc = -errno;
	if (rc)
		(void)unlink(part);
	return rc;
}

void endreason_prepare(struct step *s)
{
	int rc = put(s, "");
	s->has_endreason = !rc;
	if (rc)
		log_error("step %s has no SLURM_JOB_END_REASON: %s", s->name, strerror(-rc));
}

void endreason_env(const struct step *s, struct envlist *e)
{
	char path[3072];
	path_of(s, "", path, sizeof path);
	envlist_set(e, "SLURM_JOB_END_REASON", path);
}

void endreason_write(struct step *s, const Pb__EndReason *end)
{
	char text[1024], *at;
	if (!end || !s->has_endreason)
		return;
	int n = snprintf(text, sizeof text, "cause=%.64s\n", end->cause);
	if (end->by)
		n += snprintf(text + n, sizeof text - (size_t)n, "by=%.512s\n", end->by);
	if (end->has_seconds_left)
		snprintf(text + n, sizeof text - (size_t)n, "seconds_left=%u\nends_at=%lld\n", end->seconds_left, (long long)time(NULL) + end->seconds_left);
	for (at = text + 6 + strcspn(text + 6, "\n"); end->by && (at = strpbrk(at, "\r\t")); at++)
		*at = ' ';
	int rc = put(s, text);
	if (rc)
		log_error("step %s: cannot write why it is to end: %s", s->name, strerror(-rc));
}

void endreason_remove(struct step *s)
{
	char path[3072];
	path_of(s, "", path, sizeof path);
	if (s->has_endreason)
		(void)unlink(path);
}
