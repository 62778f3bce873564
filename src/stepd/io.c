/* io.c - where a task's three descriptors lead (see io.h); io_link.c carries what goes to srun */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "stepd/attach.h"
#include "stepd/io.h"
#include "stepd/io_files.h"
#include "stepd/io_link.h"
#include "stepd/io_pipes.h"
#include "stepd/names.h"
#include "stepd/step.h"
#include "stepd/user.h"

int io_connect(struct step *s)
{
	return s->spec ? io_link_connect(s) : 0;
}

int io_prepare(struct step *s)
{
	if (!s->spec)
		return 0;
	if (io_files_open(s) < 0)
		return -1;
	io_pipes_prepare(s);
	return 0;
}

int io_open(struct step *s, struct task *t)
{
	return s->spec ? io_pipes_open(s, t) : 0;
}

void io_forked(struct step *s)
{
	if (s->spec)
		io_pipes_forked();
}

static void child_fail(struct step *s, const char *which, const char *path, int error)
{
	step_fail(s, error, "Could not open %s file %s: %s", which, path, strerror(error));
	_exit(1);
}

static void batch_child(struct step *s)
{
	char *in, *out, *err;
	const Pb__JobDesc *d = s->cred->job->desc;
	bool append = d && d->has_open_append ? d->open_append : step_conf(s, "JobFileAppend") != NULL;
	names_batch(s, &in, &out, &err);
	int fd = open(in, O_RDONLY | O_NOCTTY);
	if (fd < 0)
		child_fail(s, "stdin", in, errno);
	dup2(fd, 0);
	fd = user_open_output(out, !append);
	if (fd < 0)
		child_fail(s, "stdout", out, -fd);
	dup2(fd, 1);
	if (err) {
		fd = user_open_output(err, !append);
		if (fd < 0)
			child_fail(s, "stderr", err, -fd);
	}
	dup2(fd, 2);
}

void io_child(struct step *s, struct task *t)
{
	if (s->batch) {
		batch_child(s);
		return;
	}
	/* All ends are above 2 and close-on-exec. */
	dup2(t->in, 0);
	dup2(t->out, 1);
	dup2(t->err, 2);
	io_pipes_child(s, t);
}

bool io_has_terminal(const struct step *s, const struct task *t)
{
	return s->spec && s->spec->pty && !t->rank;
}

void io_launched(struct step *s)
{
	if (!s->spec)
		return;
	io_link_launched(s);
	io_pipes_start(s);
}

void io_task_end(struct step *s, struct task *t)
{
	if (!s->spec)
		return;
	io_pipes_task_end(s, t);
	io_link_task_end(s, t);
	attach_task_end(s, t);
}

void io_failed(struct step *s, const char *text)
{
	if (!s->spec)
		return;
	io_link_failed(s, text);
	io_link_launched(s);
}

bool io_finish(struct step *s)
{
	return !s->spec || io_link_finish(s);
}

/* Append a line to the batch script's stderr, as the user. The child ends at once; nobody waits for it but task_reap. */
static void batch_text(struct step *s, const char *line)
{
	char *in, *out, *err;
	pid_t pid = fork();
	if (pid)
		return;
	names_batch(s, &in, &out, &err);
	if (user_become(s) < 0)
		_exit(1);
	int fd = user_open_output(err ? err : out, 0);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		_exit(1);
	_exit(0);
}

void io_line(struct step *s, bool is_error, const char *text)
{
	char *line = xasprintf("%s%s\n", is_error ? "slurmstepd: error: " : "", text);
	if (s->batch)
		batch_text(s, line);
	else if (s->spec && !io_link_text(s, line) && s->task && s->spec->std_err && s->task[0].err >= 0)
		(void)!write(s->task[0].err, line, strlen(line));
	free(line);
}

void io_text(struct step *s, const char *text)
{
	log_error("%s", text);
	io_line(s, true, text);
}
