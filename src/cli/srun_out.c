/* srun_out.c - output of the tasks: labels, whole lines, and the places it goes to
 *
 * Bytes are never lost and never held for long: lines of several tasks are kept apart by waiting for their ends (unless --unbuffered); a reader that does not
 * keep up fills the sink's buffer, and at SRUN_BUFFER_HIGH the connections are not read any more, so the tasks wait as on a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/srun.h"

#define PIPE_LARGE (256 * 1024)
#define PASS_ON (16u * 1024)         /* pieces of that size are written without being copied first */
#define LINE_MAX_HELD (64u * 1024)   /* a line longer than that is passed on in pieces */

static void sink_ready(struct watch *w, uint32_t events)
{
	struct sink *k = (struct sink *)w;
	(void)events;
	sink_flush(k);
}

void sink_init(struct srun *s, struct sink *k, int fd)
{
	struct stat st;
	*k = (struct sink){ .s = s, .watch = { .ready = sink_ready, .fd = fd } };
	bool known = fstat(fd, &st) == 0;
	k->is_plain = known && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode) && !S_ISCHR(st.st_mode);
	if (!known || !S_ISFIFO(st.st_mode))
		return;
	/* The same pipe by a description of our own, whose flags nobody shares: it takes what there is room for, not only PIPE_BUF bytes. */
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (own < 0)
		return;
	(void)fcntl(own, F_SETPIPE_SZ, PIPE_LARGE);                /* room for a frame of slurmstepd's; where that is not allowed it stays as it was */
	k->watch.fd = own;
	k->is_plain = k->is_own_pipe = true;
}

static bool sink_is_full(const struct sink *k)
{
	return k->len >= SRUN_BUFFER_HIGH;
}

bool out_is_full(const struct srun *s)
{
	return sink_is_full(s->to[0]) || sink_is_full(s->to[1]);
}

void sink_add(struct sink *k, const void *data, size_t n)
{
	if (k->is_dead || !n)
		return;
	if (n >= PASS_ON && k->is_plain && !k->len) {              /* what there is room for goes as it came */
		ssize_t done = write(k->watch.fd, data, n);
		if (done == (ssize_t)n)
			return;
		data = (const char *)data + (done > 0 ? done : 0);
		n -= done > 0 ? (size_t)done : 0;
	}
	if (k->at >= k->len && k->at + k->len + n > k->cap) {      /* moves less than was written: the buffer stays small */
		if (k->len)
			memmove(k->buf, k->buf + k->at, k->len);
		k->at = 0;
	}
	k->buf = xgrow(k->buf, &k->cap, k->at + k->len + n, 1);
	memcpy(k->buf + k->at + k->len, data, n);
	k->len += n;
}

/* A pipe that polls writable takes PIPE_BUF bytes without blocking; we never change the flags of a descriptor others share. */
static size_t sink_room(const struct sink *k)
{
	if (k->is_plain)
		return k->len;
	struct pollfd p = { .fd = k->watch.fd, .events = POLLOUT };
	if (poll(&p, 1, 0) <= 0)
		return 0;
	return k->len < PIPE_BUF ? k->len : PIPE_BUF;
}

void sink_flush(struct sink *k)
{
	bool was_full = sink_is_full(k);
	while (k->len && !k->is_dead) {
		size_t room = sink_room(k);
		if (!room)
			break;
		ssize_t n = write(k->watch.fd, k->buf + k->at, room);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			break;
		if (n < 0) {
			k->is_dead = true;
			k->len = 0;
			/* Nobody reads any more: a program here would get SIGPIPE. */
			if (errno == EPIPE && k == k->s->to[0] && !k->s->is_terminating) {
				run_abort(k->s);
				run_terminate(k->s, SIGKILL);
			}
			break;
		}
		k->at += (size_t)n;
		k->len -= (size_t)n;
	}
	if (!k->len)
		k->at = 0;
	bool want = k->len && !k->is_dead;
	if (want || k->watch.events)
		watch_set(k->s, &k->watch, want ? EPOLLOUT : 0);
	if (was_full != sink_is_full(k))
		conn_update_all(k->s);
}

/* --- lines ---------------------------------------------------------------------------------------- */

static void label_add(struct srun *s, struct sink *k, uint32_t task)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%*u: ", s->label_width, task);
	sink_add(k, text, (size_t)n);
}

/* `n` bytes that end with a newline. */
static void lines_add(struct srun *s, struct sink *k, uint32_t task, const char *data, size_t n)
{
	if (!s->o.label) {
		sink_add(k, data, n);
		return;
	}
	while (n) {
		const char *end = memchr(data, '\n', n);
		size_t len = end ? (size_t)(end - data) + 1 : n;
		label_add(s, k, task);
		sink_add(k, data, len);
		data += len;
		n -= len;
	}
}

/* What a task has begun to say. A label needs a line, so one is made of it. */
static void part_flush(struct srun *s, struct sink *k, uint32_t task, int which)
{
	struct task_info *t = &s->task[task];
	if (!t->part[which].len)
		return;
	if (s->o.label)
		label_add(s, k, task);
	sink_add(k, t->part[which].buf, t->part[which].len);
	if (s->o.label)
		sink_add(k, "\n", 1);
	t->part[which].len = 0;
}

static void part_add(struct srun *s, struct sink *k, uint32_t task, int which, const char *data, size_t n)
{
	struct task_info *t = &s->task[task];
	t->part[which].buf = xgrow(t->part[which].buf, &t->part[which].cap, t->part[which].len + n, 1);
	memcpy(t->part[which].buf + t->part[which].len, data, n);
	t->part[which].len += n;
	if (t->part[which].len >= LINE_MAX_HELD)
		part_flush(s, k, task, which);
}

static bool is_dropped(const struct srun *s, uint32_t task, bool is_err)
{
	const struct plan *p = is_err ? &s->plan_err : &s->plan_out;
	return p->kind == PLAN_NONE || p->kind == PLAN_NODE || (p->kind == PLAN_TASK && p->task != task);
}

/* There is nothing to keep apart. */
static bool is_passed_on(const struct srun *s)
{
	return !s->o.label && (s->task_count == 1 || s->o.unbuffered || s->o.pty);
}

struct sink *out_direct(struct srun *s, uint32_t task, bool is_err)
{
	return is_passed_on(s) && !is_dropped(s, task, is_err) ? s->to[is_err] : NULL;
}

size_t sink_splice(struct sink *k, int fd, size_t n)
{
	if (!k->is_own_pipe || k->len || k->is_dead)
		return 0;
	ssize_t done = splice(fd, NULL, k->watch.fd, NULL, n, SPLICE_F_NONBLOCK);
	return done > 0 ? (size_t)done : 0;
}

void out_take(struct srun *s, uint32_t task, bool is_err, const char *data, size_t n)
{
	struct sink *k = s->to[is_err];
	if (is_dropped(s, task, is_err))
		return;
	if (!n) {
		part_flush(s, k, task, is_err);
		return;
	}
	if (is_passed_on(s)) {
		sink_add(k, data, n);
		return;
	}
	const char *last = memrchr(data, '\n', n);
	size_t whole = last ? (size_t)(last - data) + 1 : 0;
	if (whole && s->task[task].part[is_err].len) {
		const char *first = memchr(data, '\n', n);
		size_t head = (size_t)(first - data) + 1;
		if (s->o.label)
			label_add(s, k, task);
		sink_add(k, s->task[task].part[is_err].buf, s->task[task].part[is_err].len);
		sink_add(k, data, head);
		s->task[task].part[is_err].len = 0;
		data += head;
		whole -= head;
		n -= head;
	}
	lines_add(s, k, task, data, whole);
	if (n > whole)
		part_add(s, k, task, is_err, data + whole, n - whole);
}

static void sink_finish(struct sink *k)
{
	sink_flush(k);
	while (k->len && !k->is_dead) {
		struct pollfd p = { .fd = k->watch.fd, .events = POLLOUT };
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return;
		sink_flush(k);
	}
}

void out_finish(struct srun *s)
{
	for (uint32_t i = 0; i < s->task_count && s->task; i++) {
		out_take(s, i, false, NULL, 0);
		out_take(s, i, true, NULL, 0);
	}
	sink_finish(s->to[0]);
	sink_finish(s->to[1]);
	sink_finish(&s->std_err);
}

void out_flush(struct srun *s)
{
	struct sink *list[] = { s->to[0], s->to[1] == s->to[0] ? NULL : s->to[1], s->to[1] == &s->std_err || s->to[0] == &s->std_err ? NULL : &s->std_err };
	for (size_t i = 0; i < 3; i++)
		if (list[i] && list[i]->len)
			sink_flush(list[i]);
}
