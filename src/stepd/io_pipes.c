/* io_pipes.c - streams between tasks and srun (see io_pipes.h)
 *
 * A stream with --label that goes to a file on the node is read here too and written with the label of its task before each line.
 * Each stream out is read when its pipe has something and the queue to srun has room; a stream that finds no room is stopped and put on the
 * list of waiting ones. Each stream in keeps what its task has not taken; when that is more than STEPIO_BUFFER, srun is not read any more. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "stepd/attach.h"
#include "stepd/io.h"
#include "stepd/io_link.h"
#include "stepd/io_pipes.h"
#include "stepd/step.h"
#include "wire/stepio.h"

#define READ_MAX (64u * 1024)
#define IN_MAX (4u << 20)
#define FEW_TASKS 32
#define PIPE_LARGE (256u * 1024)

struct stream {                    /* from a task */
	uv_poll_t poll;
	struct step *step;
	struct stream *next_waiting;
	uint32_t rank;
	uint8_t type;
	int fd;
	int file;                  /* labelled: written there; -1: to srun */
	bool open, waiting, in_line;
};

struct input {                     /* to a task */
	uv_poll_t poll;
	struct step *step;
	int fd;
	uint8_t *data;
	size_t len, cap;
	uint32_t rank;
	bool open, polling, eof;
};

static struct {
	struct stream *out;        /* two a task */
	struct input *in;
	size_t out_n, out_open, in_full;
	struct stream *waiting;
	int master;                /* of the terminal, or -1 */
	uint32_t pty_local;        /* whose task has it */
	int *to_close;
	size_t to_close_n, to_close_cap;
} pipes = { .master = -1 };

static void close_later(int fd)
{
	pipes.to_close = xgrow(pipes.to_close, &pipes.to_close_cap, pipes.to_close_n + 1, sizeof(int));
	pipes.to_close[pipes.to_close_n++] = fd;
}

static bool takes_input(const struct step *s, const struct task *t)
{
	const char *which = s->spec->stdin_task;
	unsigned long long rank;
	if (!s->spec->io_port || (s->spec->pty && t->rank))
		return false;
	return !which || str_eq_nocase(which, "all") || (!str_to_u64(which, 0, UINT32_MAX, &rank) && rank == t->rank);
}

static int fail(struct step *s, const char *what)
{
	return step_fail(s, errno, "cannot make %s: %s", what, strerror(errno));
}

static int stream_make(struct step *s, struct task *t, uint8_t type, int *task_end)
{
	int end[2], file = *task_end;
	struct stream *st = &pipes.out[pipes.out_n];
	if (file < 0 && s->spec->pty) {
		*task_end = open("/dev/null", O_WRONLY | O_CLOEXEC);
		close_later(*task_end);
		return *task_end < 0 ? fail(s, "output of a task") : 0;
	}
	if (file >= 0 && (!s->spec->label || io_has_terminal(s, t)))
		return 0;
	if (pipe2(end, O_CLOEXEC) < 0)
		return fail(s, "a pipe");
	if (s->tasks <= FEW_TASKS)         /* fewer turns for a task that prints a lot; where it is not allowed, it stays as it was */
		(void)fcntl(end[0], F_SETPIPE_SZ, PIPE_LARGE);
	*task_end = end[1];
	close_later(end[1]);
	*st = (struct stream){ .step = s, .rank = t->rank, .type = type, .fd = end[0], .file = file, .open = true };
	pipes.out_n++;
	return 0;
}

static int input_make(struct step *s, struct task *t)
{
	int end[2];
	struct input *in = &pipes.in[t->local];
	if (t->in >= 0)
		return 0;
	if (!takes_input(s, t)) {
		t->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
		close_later(t->in);
		return t->in < 0 ? fail(s, "stdin of a task") : 0;
	}
	if (pipe2(end, O_CLOEXEC) < 0)
		return fail(s, "a pipe");
	t->in = end[0];
	close_later(end[0]);
	*in = (struct input){ .step = s, .fd = end[1], .rank = t->rank, .open = true };
	return 0;
}

/* The first task of the step gets a terminal; the others nothing to read, and nobody hears them. */
static int terminal_make(struct step *s, struct task *t)
{
	struct winsize size = { .ws_row = (unsigned short)s->spec->pty_rows, .ws_col = (unsigned short)s->spec->pty_cols };
	int slave;
	if (openpty(&pipes.master, &slave, NULL, NULL, &size) < 0)
		return fail(s, "a terminal");
	(void)fcntl(pipes.master, F_SETFD, FD_CLOEXEC);
	(void)fcntl(slave, F_SETFD, FD_CLOEXEC);
	if (!geteuid() && (fchown(slave, s->uid, (gid_t)-1) < 0 || fchmod(slave, 0620) < 0))
		log_error("cannot give the terminal to uid %u: %s", s->uid, strerror(errno));
	t->in = t->out = t->err = slave;
	close_later(slave);
	pipes.pty_local = t->local;
	pipes.out[pipes.out_n++] = (struct stream){ .step = s, .rank = t->rank, .type = STEPIO_STDOUT, .fd = pipes.master, .file = -1, .open = true };
	int copy = fcntl(pipes.master, F_DUPFD_CLOEXEC, 3);
	pipes.in[t->local] = (struct input){ .step = s, .fd = copy, .rank = t->rank, .open = true };
	return 0;
}

/* Two descriptors a stream stay with us; where we may not have that many, a task's pipe says so. */
static void limit_raise(struct step *s)
{
	struct rlimit limit;
	if (s->tasks <= 200 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	s->nofile = limit;
	rlim_t want = (rlim_t)s->tasks * 3 + 256;
	if (want > limit.rlim_max && !setrlimit(RLIMIT_NOFILE, &(struct rlimit){ want, want }))
		return;
	limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void io_pipes_prepare(struct step *s)
{
	pipes.out = xcalloc(s->tasks * 2 + 1, sizeof *pipes.out);
	pipes.in = xcalloc(s->tasks + 1, sizeof *pipes.in);
	limit_raise(s);
}

int io_pipes_open(struct step *s, struct task *t)
{
	if (s->spec->pty && !t->rank && terminal_make(s, t) < 0)
		return -1;
	return input_make(s, t) < 0 || stream_make(s, t, STEPIO_STDOUT, &t->out) < 0 || stream_make(s, t, STEPIO_STDERR, &t->err) < 0 ? -1 : 0;
}

void io_pipes_forked(void)
{
	for (size_t i = 0; i < pipes.to_close_n; i++)
		close(pipes.to_close[i]);
	pipes.to_close_n = 0;
}

void io_pipes_child(struct step *s, struct task *t)
{
	if (pipes.master < 0 || t->local != pipes.pty_local)
		return;
	(void)s;
	setsid();
	if (ioctl(0, TIOCSCTTY, 0) < 0)
		dprintf(2, "slurmstepd: error: cannot make the terminal a controlling one: %m\n");
}

static void on_input_closed(uv_handle_t *h)
{
	struct input *in = (struct input *)h;
	close(in->fd);
}

static void input_close(struct input *in)
{
	if (!in->open)
		return;
	in->open = false;
	if (in->len >= IN_MAX && !--pipes.in_full)
		io_link_pause(in->step, false);
	in->len = 0;
	xfree(in->data);
	if (in->polling)
		uv_close((uv_handle_t *)&in->poll, on_input_closed);
	else
		close(in->fd);
}

static void on_stream_closed(uv_handle_t *h)
{
	struct stream *st = (struct stream *)h;
	if (st->fd == pipes.master)
		pipes.master = -1;
	close(st->fd);
	step_check_end(st->step);
}

static void stream_close(struct stream *st)
{
	st->open = false;
	pipes.out_open--;
	uv_close((uv_handle_t *)&st->poll, on_stream_closed);
}

/* Digits that the highest rank of the step needs. */
static int label_width(const struct step *s)
{
	int width = 1;
	for (uint32_t n = s->cred->layout->num_tasks; n > 10; n = (n + 9) / 10)
		width++;
	return width;
}

static void label_write(struct stream *st, const char *data, size_t len)
{
	struct str out = STR_INIT;
	int width = label_width(st->step);
	while (len) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end + 1 - data) : len;
		if (!st->in_line)
			str_addf(&out, "%*u: ", width, st->rank);
		str_add_n(&out, data, n);
		st->in_line = !end;
		data += n;
		len -= n;
	}
	for (size_t at = 0; at < out.len;) {
		ssize_t n = write(st->file, out.data + at, out.len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;                     /* the disk is full: the task cannot be told any more */
		at += (size_t)n;
	}
	str_fini(&out);
}

static void label_read(struct stream *st)
{
	static char buf[READ_MAX];
	ssize_t n = read(st->fd, buf, sizeof buf);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		label_write(st, buf, (size_t)n);
	else
		stream_close(st);
}

static void stream_read(struct stream *st)
{
	bool discard;
	if (st->file >= 0) {
		label_read(st);
		return;
	}
	bool is_spliced = st->fd != pipes.master && !attach_any() && io_link_splice(st->step, st->type, st->rank, st->fd);
	uint8_t *room = is_spliced ? NULL : io_link_reserve(st->step, READ_MAX, &discard);
	if (!room) {
		uv_poll_stop(&st->poll);
		st->waiting = true;
		st->next_waiting = pipes.waiting;
		pipes.waiting = st;
		return;
	}
	ssize_t n = read(st->fd, room, READ_MAX);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	n = n < 0 ? 0 : n;                 /* EIO: the terminal's last user is gone */
	attach_output(st->step, st->type, st->rank, room, (size_t)n);
	if (!discard)
		io_link_commit(st->step, st->type, st->rank, (size_t)n);
	if (!n)
		stream_close(st);
}

static void on_stream(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	stream_read((struct stream *)poll);
}

void io_pipes_start(struct step *s)
{
	for (size_t i = 0; i < pipes.out_n; i++) {
		struct stream *st = &pipes.out[i];
		uv_poll_init(&s->loop, &st->poll, st->fd);
		uv_poll_start(&st->poll, UV_READABLE, on_stream);
		pipes.out_open++;
	}
	for (uint32_t i = 0; i < s->tasks; i++)
		if (pipes.in[i].open)
			(void)fcntl(pipes.in[i].fd, F_SETFL, O_WRONLY | O_NONBLOCK);
}

void io_pipes_resume(struct step *s)
{
	(void)s;
	struct stream *list = pipes.waiting;
	pipes.waiting = NULL;
	while (list) {
		struct stream *st = list;
		list = st->next_waiting;
		st->waiting = false;
		if (st->open)
			uv_poll_start(&st->poll, UV_READABLE, on_stream);
	}
}

static void on_input(uv_poll_t *poll, int status, int events);

/* Write what is waiting. */
static void input_write(struct input *in)
{
	bool was_full = in->len >= IN_MAX;
	size_t at = 0;
	while (at < in->len) {
		ssize_t n = write(in->fd, in->data + at, in->len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			input_close(in);
			return;
		}
		if (n < 0)
			break;
		at += (size_t)n;
	}
	if (at) {
		memmove(in->data, in->data + at, in->len - at);
		in->len -= at;
	}
	if (was_full && in->len < IN_MAX && !--pipes.in_full)
		io_link_pause(in->step, false);
	if (!in->len && in->eof) {
		input_close(in);
		return;
	}
	if (in->len && !in->polling) {
		in->polling = true;
		uv_poll_init(&in->step->loop, &in->poll, in->fd);
	}
	if (in->len)
		uv_poll_start(&in->poll, UV_WRITABLE, on_input);
	else if (in->polling)
		uv_poll_stop(&in->poll);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	input_write((struct input *)poll);
}

static void input_add(struct input *in, const uint8_t *data, size_t len)
{
	if (!in->open || in->eof)
		return;
	if (!len) {
		in->eof = pipes.master < 0;    /* a terminal stays open: its end of file is a character */
	} else {
		bool was_full = in->len >= IN_MAX;
		in->data = xgrow(in->data, &in->cap, in->len + len, 1);
		memcpy(in->data + in->len, data, len);
		in->len += len;
		if (!was_full && in->len >= IN_MAX) {
			pipes.in_full++;
			io_link_pause(in->step, true);
		}
	}
	input_write(in);
}

void io_pipes_input(struct step *s, uint32_t rank, const uint8_t *data, size_t len)
{
	for (uint32_t i = 0; i < s->tasks && pipes.in; i++)
		if (rank == STEPIO_ALL || s->task[i].rank == rank)
			input_add(&pipes.in[i], data, len);
}

void io_pipes_resize(struct step *s, uint32_t rows, uint32_t cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
	(void)s;
	if (pipes.master >= 0)
		(void)ioctl(pipes.master, TIOCSWINSZ, &size);
}

bool io_pipes_are_open(const struct step *s)
{
	(void)s;
	return pipes.out_open > 0;
}

void io_pipes_task_end(struct step *s, struct task *t)
{
	(void)s;
	if (pipes.in && pipes.in[t->local].open)
		input_close(&pipes.in[t->local]);
}
