/* done.c - the completion in the spool (see done.h) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "stepd/contain.h"
#include "stepd/done.h"
#include "stepd/gather.h"
#include "stepd/step.h"
#include "stepd/task.h"

#define DONE_CHANNEL 4

static void path_of(const struct step *s, const char *end, char *buf, size_t size)
{
	snprintf(buf, size, "%s/done.%u.%u%s", s->start->spool_dir, s->job_id, s->step_id, end);
}

static void event_init(const struct step *s, Pb__StepdEvent *event, Pb__StepdEvent__Kind kind)
{
	pb__stepd_event__init(event);
	step_event_fill(s, event, kind);
	event->has_status = event->has_started = true;
	event->started = s->begun;
}

/* Into the file that is prepared; 0 or -errno. */
static int put(const struct step *s, const Pb__StepdEvent *event)
{
	size_t len = pb__stepd_event__get_packed_size(event);
	uint8_t *body = xmalloc(len);
	pb__stepd_event__pack(event, body);
	ssize_t n = pwrite(s->done_fd, body, len, 0);
	int rc = n < 0 ? -errno : (size_t)n < len ? -ENOSPC : ftruncate(s->done_fd, (off_t)len) < 0 ? -errno : 0;
	free(body);
	return rc;
}

static int put_killed(struct step *s)
{
	Pb__StepdEvent event;
	event_init(s, &event, PB__STEPD_EVENT__KIND__DONE);
	event.has_killed = event.killed = true;
	event.status = SIGKILL;
	event.text = (char *)"slurmstepd was killed";
	return put(s, &event);
}

int done_prepare(struct step *s)
{
	struct stat st;
	s->done_fd = DONE_CHANNEL;
	if (fcntl(s->done_fd, F_SETFD, FD_CLOEXEC) < 0 || fstat(s->done_fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		s->done_fd = -1;
		return step_fail_node(s, EBADF, "slurmd handed over no file for the completion");
	}
	return 0;
}

int done_begins(struct step *s)
{
	s->begun = true;
	int rc = put_killed(s);
	return rc < 0 ? step_fail_node(s, -rc, "cannot note in %s that step %s begins: %s", s->start->spool_dir, s->name, strerror(-rc)) : 0;
}

void done_fill(struct step *s, Pb__StepdEvent *event)
{
	event_init(s, event, s->launch_error ? PB__STEPD_EVENT__KIND__FAILED : PB__STEPD_EVENT__KIND__DONE);
	event->status = s->launch_error ? 256 : (uint32_t)task_worst_status(s);
	event->has_error = s->launch_error != 0;
	event->error = (uint32_t)s->launch_error;
	event->text = s->launch_error ? s->launch_text : s->oom_text;
	event->has_node_fault = event->node_fault = s->launch_error && s->note->node_fault;
	event->has_oom = event->oom = s->oom;
	event->usage = gather_usage(s, false);
}

bool done_write(struct step *s)
{
	char part[3120], path[3120];
	Pb__StepdEvent event;
	if (s->done_fd < 0)
		return false;
	done_fill(s, &event);
	path_of(s, ".part", part, sizeof part);
	path_of(s, "", path, sizeof path);
	int rc = put(s, &event);
	pb__step_usage__free_unpacked(event.usage, NULL);
	if (!rc && rename(part, path) < 0)
		rc = -errno;
	if (rc)
		log_error("cannot write %s: %s", path, strerror(-rc));
	return !rc;
}
