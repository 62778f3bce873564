/* done.c - the completion in the spool (see done.h) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "stepd/contain.h"
#include "stepd/done.h"
#include "stepd/step.h"
#include "stepd/task.h"
#include "stepd/usage.h"

static void write_event(const struct step *s, const Pb__StepdEvent *event)
{
	char path[3100], part[3110];
	size_t len = pb__stepd_event__get_packed_size(event);
	uint8_t *body = xmalloc(len);
	pb__stepd_event__pack(event, body);
	snprintf(path, sizeof path, "%s/done.%u.%u", s->start->spool_dir, s->job_id, s->step_id);
	snprintf(part, sizeof part, "%s.part", path);
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, body, len) != (ssize_t)len || rename(part, path) < 0)
		log_error("cannot write %s: %s; slurmd will report this step as lost", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(body);
}

void done_write(struct step *s)
{
	Pb__StepdEvent event = PB__STEPD_EVENT__INIT;
	Pb__StepUsage usage = PB__STEP_USAGE__INIT;
	event.kind = s->launch_error ? PB__STEPD_EVENT__KIND__FAILED : PB__STEPD_EVENT__KIND__DONE;
	event.has_status = event.has_job_id = event.has_step_id = event.has_uid = event.has_batch = true;
	event.status = s->launch_error ? 256 : (uint32_t)task_worst_status(s);
	event.job_id = s->job_id;
	event.step_id = s->step_id;
	event.uid = s->uid;
	event.batch = s->batch != NULL;
	event.has_error = s->launch_error != 0;
	event.error = (uint32_t)s->launch_error;
	event.text = s->launch_text;
	event.has_restarts = s->cred->job->has_restarts;
	event.restarts = s->cred->job->restarts;
	event.has_oom = event.oom = s->oom;
	usage_fill(s, &usage);
	event.usage = &usage;
	write_event(s, &event);
}
