/* io_files.c - opens files of a step as the user (see io_files.h)
 *
 * The helper is forked once, becomes the user, opens every path in the order of the tasks and sends each descriptor, or the errno, back over a
 * socket pair. A path that was opened before is not opened again: tasks that share a file share its one open description. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "stepd/io_files.h"
#include "stepd/names.h"
#include "stepd/step.h"
#include "stepd/user.h"

struct want { char *path; int *ret; bool output; const char *which; };
struct wants { struct want *list; size_t n, cap; };

static void want_add(struct wants *w, char *path, int *ret, bool output, const char *which)
{
	w->list = xgrow(w->list, &w->cap, w->n + 1, sizeof *w->list);
	w->list[w->n++] = (struct want){ path, ret, output, which };
}

static int send_fd(int sock, int fd, int error)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec iov = { .iov_base = &error, .iov_len = sizeof error };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof control.space;
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* fd, or -errno as the helper met it. */
static int recv_fd(int sock)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control;
	int error = 0, fd = -EIO;
	struct iovec iov = { .iov_base = &error, .iov_len = sizeof error };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space };
	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != sizeof error)
		return -EIO;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	else
		fd = error ? -error : -EIO;
	return fd;
}

static void helper_run(struct step *s, const struct wants *w, int sock)
{
	int rc = user_become(s);
	umask(s->spec->has_umask ? s->spec->umask : 022);
	for (size_t i = 0; i < w->n; i++) {
		const struct want *want = &w->list[i];
		int fd = rc;
		if (!rc && want->output)
			fd = user_open_output(want->path, !(s->spec->has_open_append && s->spec->open_append));
		else if (!rc) {
			fd = open(want->path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
			fd = fd < 0 ? -errno : fd;
		}
		if (send_fd(sock, fd, fd < 0 ? -fd : 0) < 0)
			_exit(1);
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}

static int collect(struct step *s, const struct wants *w, int sock)
{
	for (size_t i = 0; i < w->n; i++) {
		int fd = recv_fd(sock);
		if (fd < 0)
			return step_fail(s, -fd, "Could not open %s file %s: %s", w->list[i].which, w->list[i].path, strerror(-fd));
		*w->list[i].ret = fd;
	}
	return 0;
}

static int open_as_user(struct step *s, const struct wants *w)
{
	int pair[2];
	if (!w->n)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid_t pid = fork();
	if (!pid) {
		close(pair[0]);
		helper_run(s, w, pair[1]);
	}
	close(pair[1]);
	int rc = pid < 0 ? -1 : collect(s, w, pair[0]);
	close(pair[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return rc;
}

/* A file a task shares with an earlier one is taken from there. -1: not opened yet. */
static struct want *want_find(const struct wants *w, const char *path)
{
	for (size_t i = w->n; i-- && w->n - i < 4096;)
		if (!strcmp(w->list[i].path, path))
			return &w->list[i];
	return NULL;
}

struct share { int *to, *from; };

int io_files_open(struct step *s)
{
	struct wants w = { 0 };
	struct share *share = xcalloc(s->tasks * 3 + 1, sizeof *share);
	size_t shares = 0;
	for (uint32_t i = 0; i < s->tasks; i++) {
		struct task *t = &s->task[i];
		const struct { const char *pattern; int *end; bool output; const char *which; } ends[] = {
			{ s->spec->std_in, &t->in, false, "stdin" }, { s->spec->std_out, &t->out, true, "stdout" }, { s->spec->std_err, &t->err, true, "stderr" },
		};
		for (size_t k = 0; k < 3; k++) {
			if (!ends[k].pattern)
				continue;
			char *path = names_expand(s, t, ends[k].pattern);
			struct want *have = ends[k].output ? want_find(&w, path) : NULL;
			if (have)
				share[shares++] = (struct share){ ends[k].end, have->ret }, free(path);
			else
				want_add(&w, path, ends[k].end, ends[k].output, ends[k].which);
		}
	}
	int rc = open_as_user(s, &w);
	for (size_t i = 0; i < shares && !rc; i++)
		*share[i].to = *share[i].from;
	for (size_t i = 0; i < w.n; i++)
		free(w.list[i].path);
	free(w.list);
	free(share);
	return rc;
}
