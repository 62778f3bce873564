/* io_link.c - the connection to srun (see io_link.h)
 *
 * A large piece of output is spliced from the task's pipe into the connection, never copied; for everything else there is one queue out, written once a turn of the loop, so that ten thousand small lines are few large writes. Output waits in the tasks' pipes until srun
 * has proved itself and while the queue holds QUEUE_HIGH bytes; so memory is bounded and a slow srun slows its tasks, as a pipe would.
 * When srun is gone, output is read and thrown away: tasks go on. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "stepd/cancel.h"
#include "stepd/io_proof.h"
#include "stepd/io_link.h"
#include "stepd/io_pipes.h"
#include "stepd/mpi.h"
#include "stepd/peers.h"
#include "stepd/step.h"
#include "stepd/task.h"
#include "wire/stepio.h"

#define QUEUE_HIGH (256u * 1024)
#define SPLICE_MIN (16 * 1024)   /* less is cheaper copied */
#define CONNECT_SEC 10
#define DRAIN_SEC 10       /* a killed step waits that long for an srun that does not read */

_Static_assert(crypto_auth_KEYBYTES == 32 && crypto_auth_BYTES == 32, "the proof's size is in the protocol");

struct link {
	struct step *step;
	uv_poll_t poll;
	uv_check_t check;
	uv_timer_t drain;
	int fd;
	bool proven, gone, paused, want_write, starved, end_sent, started;
	int events;                /* polled for */
	uint8_t *out, *in;
	size_t out_at, out_len, out_cap, in_len, in_cap;
	int splice_fd;             /* the pipe whose next splice_left bytes go out after splice_head, before the queue */
	size_t splice_left, splice_head_left;
	uint8_t splice_head[STEPIO_HEAD];
};
static struct link the_link = { .fd = -1, .gone = true };

static void link_update(struct link *l);

static uint8_t *queue_room(struct link *l, size_t n)
{
	if (!l->out_len)
		l->out_at = 0;
	if (l->out_at + l->out_len + n + STEPIO_HEAD > l->out_cap && l->out_at >= l->out_len) {   /* moves less than was sent */
		if (l->out_len)
			memmove(l->out, l->out + l->out_at, l->out_len);
		l->out_at = 0;
	}
	l->out = xgrow(l->out, &l->out_cap, l->out_at + l->out_len + n + STEPIO_HEAD, 1);
	return l->out + l->out_at + l->out_len + STEPIO_HEAD;
}

uint8_t *io_link_reserve(struct step *s, size_t n, bool *ret_discard)
{
	struct link *l = &the_link;
	(void)s;
	*ret_discard = l->gone;
	if (!l->gone && (!l->proven || l->out_len >= QUEUE_HIGH)) {
		l->starved = true;
		return NULL;
	}
	return queue_room(l, n);
}

static void head_put(uint8_t *head, uint8_t type, uint32_t task, size_t n)
{
	head[0] = type;
	put_u32(head + 1, task);
	put_u32(head + 5, (uint32_t)n);
}

void io_link_commit(struct step *s, uint8_t type, uint32_t task, size_t n)
{
	struct link *l = &the_link;
	(void)s;
	if (l->gone)
		return;
	head_put(l->out + l->out_at + l->out_len, type, task, n);
	l->out_len += STEPIO_HEAD + n;
}

static bool has_output(const struct link *l) { return l->out_len || l->splice_left; }

bool io_link_splice(struct step *s, uint8_t type, uint32_t task, int fd)
{
	struct link *l = &the_link;
	int n = 0;
	(void)s;
	if (l->gone || !l->proven || has_output(l) || ioctl(fd, FIONREAD, &n) < 0 || n < SPLICE_MIN)
		return false;
	l->splice_fd = fd;
	l->splice_left = n < (int)STEPIO_MAX ? (size_t)n : STEPIO_MAX;
	l->splice_head_left = STEPIO_HEAD;
	head_put(l->splice_head, type, task, l->splice_left);
	l->starved = true;
	return true;
}

static void frame_add(struct link *l, uint8_t type, uint32_t task, const void *data, size_t n)
{
	if (l->gone)
		return;
	uint8_t *room = queue_room(l, n);
	if (n)
		memcpy(room, data, n);
	io_link_commit(l->step, type, task, n);
}

static void message_add(struct link *l, uint8_t type, const ProtobufCMessage *msg)
{
	if (l->gone)
		return;
	size_t n = protobuf_c_message_get_packed_size(msg);
	uint8_t *room = queue_room(l, n);
	protobuf_c_message_pack(msg, room);
	io_link_commit(l->step, type, STEPIO_ALL, n);
}

static void link_lost(struct link *l, const char *why)
{
	if (l->gone)
		return;
	log_info("connection to srun ended: %s", why);
	l->gone = true;
	l->out_len = l->splice_left = 0;
	if (l->started) {
		uv_poll_stop(&l->poll);
		io_pipes_input(l->step, STEPIO_ALL, NULL, 0);
		io_pipes_resume(l->step);
	}
	close(l->fd);
	l->fd = -1;
}

/* Of what the pipe is known to hold, as much as goes. As send(2); 0: it holds less, since a task has read its own output back. */
static ssize_t splice_send(struct link *l)
{
	int left;
	ssize_t n = splice(l->splice_fd, NULL, l->fd, NULL, l->splice_left, SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EAGAIN && !ioctl(l->splice_fd, FIONREAD, &left)) {
		errno = EAGAIN;
		return left ? -1 : 0;
	}
	l->splice_left -= n > 0 ? (size_t)n : 0;
	return n;
}

/* The next piece. As send(2). */
static ssize_t piece_send(struct link *l)
{
	ssize_t n;
	if (!l->splice_left) {
		n = send(l->fd, l->out + l->out_at, l->out_len, MSG_NOSIGNAL);
		l->out_at += n > 0 ? (size_t)n : 0;
		l->out_len -= n > 0 ? (size_t)n : 0;
	} else if (l->splice_head_left) {
		n = send(l->fd, l->splice_head + STEPIO_HEAD - l->splice_head_left, l->splice_head_left, MSG_NOSIGNAL | MSG_MORE);
		l->splice_head_left -= n > 0 ? (size_t)n : 0;
	} else {
		n = splice_send(l);
	}
	return n;
}

static void link_flush(struct link *l)
{
	while (!l->gone && has_output(l) && (l->proven || !l->started)) {
		ssize_t n = piece_send(l);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			link_lost(l, n ? strerror(errno) : "a task's output is not there");
	}
	if (l->starved && l->out_len < QUEUE_HIGH / 2 && !l->splice_left && l->proven) {
		l->starved = false;
		io_pipes_resume(l->step);
	}
}

/* The text both proofs are made over. */
static void terminate_run(struct step *s, const uint8_t *data, size_t len)
{
	char why[128];
	if (len < 4)
		return;
	snprintf(why, sizeof why, "%.*s", (int)(len - 4), (const char *)data + 4);
	cancel_say(s, why, SIGTERM);
	task_terminate(s, get_u32(data));
}

static bool frame_run(struct link *l, uint8_t type, uint32_t task, const uint8_t *data, size_t len)
{
	struct step *s = l->step;
	uint8_t want[32];
	if (!l->proven) {
		io_proof(s, s->spec->io_key.data, "srun ", want);
		l->proven = type == STEPIO_PROOF && len == sizeof want && !sodium_memcmp(want, data, sizeof want);
		if (l->proven)
			io_pipes_resume(s);
		return l->proven;
	}
	switch (type) {
	case STEPIO_STDIN:
		io_pipes_input(s, task, data, len);
		return true;
	case STEPIO_SIGNAL:
		if (len != 4)
			return false;
		if (get_u32(data) == SIGKILL)
			cancel_say(s, NULL, SIGKILL);
		task_signal(s, (int)get_u32(data));
		return true;
	case STEPIO_PEER_PARENT:
	case STEPIO_SPAWNED:
		if (len != 4)
			return false;
		if (type == STEPIO_PEER_PARENT)
			peers_parent(s, (uint16_t)get_u32(data));
		else
			mpi_spawned(s, task, !get_u32(data));
		return true;
	case STEPIO_ALL_ENDED:
		peers_all_ended();
		return true;
	case STEPIO_TERMINATE:
		terminate_run(s, data, len);
		return len >= 4;
	case STEPIO_RESIZE: {
		Pb__IoResize *r = pb__io_resize__unpack(NULL, len, data);
		if (!r)
			return false;
		io_pipes_resize(s, r->rows, r->cols);
		pb__io_resize__free_unpacked(r, NULL);
		return true;
	}
	default:
		return false;
	}
}

/* Whole frames that have come, as long as they can be taken. */
static void frames_run(struct link *l)
{
	size_t at = 0;
	while (!l->gone && !l->paused && l->in_len - at >= STEPIO_HEAD) {
		const uint8_t *h = l->in + at;
		uint32_t len = get_u32(h + 5);
		if (len > STEPIO_MAX) {
			link_lost(l, "frame too large");
			return;
		}
		if (l->in_len - at - STEPIO_HEAD < len)
			break;
		if (!frame_run(l, h[0], get_u32(h + 1), h + STEPIO_HEAD, len)) {
			link_lost(l, l->proven ? "frame of unknown type" : "srun could not prove itself");
			return;
		}
		at += STEPIO_HEAD + len;
	}
	memmove(l->in, l->in + at, l->in_len - at);
	l->in_len -= at;
}

static void link_read(struct link *l)
{
	l->in = xgrow(l->in, &l->in_cap, STEPIO_MAX + STEPIO_HEAD, 1);
	ssize_t n = recv(l->fd, l->in + l->in_len, l->in_cap - l->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		link_lost(l, n ? strerror(errno) : "closed by srun");
		return;
	}
	l->in_len += (size_t)n;
	frames_run(l);
}

static void on_link(uv_poll_t *poll, int status, int events)
{
	struct link *l = poll->data;
	if (status < 0 || (events & UV_READABLE))
		link_read(l);
	if (!l->gone && (events & UV_WRITABLE))
		link_flush(l);
	step_check_end(l->step);
	link_update(l);
}

static void link_update(struct link *l)
{
	if (l->gone || !l->started)
		return;
	int events = (l->paused ? 0 : UV_READABLE) | (has_output(l) && l->proven ? UV_WRITABLE : 0);
	if (events == l->events)
		return;
	l->events = events;
	if (events)
		uv_poll_start(&l->poll, events, on_link);
	else
		uv_poll_stop(&l->poll);
}

static void on_turn_end(uv_check_t *check)
{
	struct link *l = check->data;
	if (l->in_len >= STEPIO_HEAD && !l->paused)
		frames_run(l);             /* what came before srun's frames were stopped */
	if (l->gone || !has_output(l) || !l->proven)
		return;
	link_flush(l);
	link_update(l);
	if (!has_output(l) || l->gone)
		step_check_end(l->step);
}

void io_link_pause(struct step *s, bool pause)
{
	(void)s;
	if (the_link.paused == pause)
		return;
	the_link.paused = pause;
	link_update(&the_link);
}

static int fail(struct step *s, const char *what, int error)
{
	return step_fail(s, error, "cannot connect to srun at %s:%u: %s%s", s->spec->io_host, s->spec->io_port, what, strerror(error));
}

bool io_link_is_gone(void) { return the_link.gone; }

bool io_link_resolve(const char *host, struct sockaddr_in *ret)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found = NULL;
	if (inet_pton(AF_INET, host, &ret->sin_addr) == 1)
		return true;
	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return false;
	ret->sin_addr = ((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr;
	freeaddrinfo(found);
	return true;
}

int io_link_dial(const char *host, uint16_t port, int *ret_error)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct timeval limit = { .tv_sec = CONNECT_SEC };
	if (!io_link_resolve(host, &in)) {
		*ret_error = EHOSTUNREACH;
		return -1;
	}
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (connect(fd, (struct sockaddr *)&in, sizeof in) < 0) {
		*ret_error = errno == EINPROGRESS ? ETIMEDOUT : errno;
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	return fd;
}

int io_link_connect(struct step *s)
{
	struct link *l = &the_link;
	int error = 0;
	l->step = s;
	if (!s->spec->has_io_port || !s->spec->io_port)
		return 0;
	if (!s->spec->io_host || s->spec->io_key.len != crypto_auth_KEYBYTES)
		return fail(s, "the launch carries no key for it; ", EINVAL);
	l->fd = io_link_dial(s->spec->io_host, (uint16_t)s->spec->io_port, &error);
	if (l->fd < 0)
		return fail(s, "", error);
	l->gone = false;
	Pb__IoHello hello;
	uint8_t mac[32];
	io_hello(s, s->spec->io_key.data, &hello, mac);
	message_add(l, STEPIO_HELLO, &hello.base);
	link_flush(l);
	return 0;
}

void io_link_launched(struct step *s)
{
	struct link *l = &the_link;
	Pb__IoStarted started = PB__IO_STARTED__INIT;
	if (l->gone)
		return;
	(void)fcntl(l->fd, F_SETFL, O_RDWR | O_NONBLOCK);
	l->started = true;
	uv_poll_init(&s->loop, &l->poll, l->fd);
	uv_check_init(&s->loop, &l->check);
	l->poll.data = l->check.data = l;
	uv_check_start(&l->check, on_turn_end);
	uint32_t *list = xcalloc(s->tasks * 2 + 1, sizeof *list);
	started.task = list;
	started.pid = list + s->tasks;
	for (uint32_t i = 0; i < s->tasks; i++)
		if (s->task[i].pid) {
			started.task[started.n_task++] = s->task[i].rank;
			started.pid[started.n_pid++] = (uint32_t)s->task[i].pid;
		}
	if (started.n_task)
		message_add(l, STEPIO_STARTED, &started.base);
	free(list);
	link_update(l);
}

bool io_link_send_task(struct step *s, uint8_t type, uint32_t task, const void *data, size_t n)
{
	(void)s;
	frame_add(&the_link, type, task, data, n);
	return !the_link.gone;
}

bool io_link_send(struct step *s, uint8_t type, const void *data, size_t n) { return io_link_send_task(s, type, STEPIO_ALL, data, n); }

void io_link_failed(struct step *s, const char *text)
{
	Pb__IoText msg = PB__IO_TEXT__INIT;
	msg.text = (char *)text;
	msg.detail = s->launch_detail;
	msg.has_exit_code = s->launch_exit != 0;
	msg.exit_code = s->launch_exit;
	message_add(&the_link, STEPIO_FAILED, &msg.base);
}

void io_link_task_end(struct step *s, struct task *t)
{
	Pb__IoExit msg = PB__IO_EXIT__INIT;
	uint32_t rank = t->rank;
	(void)s;
	msg.n_task = 1;
	msg.task = &rank;
	msg.status = (uint32_t)t->status;
	message_add(&the_link, STEPIO_EXIT, &msg.base);
}

bool io_link_text(struct step *s, const char *line)
{
	Pb__IoText msg = PB__IO_TEXT__INIT;
	(void)s;
	if (the_link.gone)
		return false;
	msg.text = (char *)line;
	message_add(&the_link, STEPIO_TEXT, &msg.base);
	return true;
}

static void on_drain_timeout(uv_timer_t *timer)
{
	struct link *l = timer->data;
	link_lost(l, "it does not read the rest of the output of a step that was killed");
	step_check_end(l->step);
}

bool io_link_finish(struct step *s)
{
	struct link *l = &the_link;
	if (io_pipes_are_open(s))
		return false;
	if (l->gone)
		return true;
	if (!l->end_sent) {
		l->end_sent = true;
		frame_add(l, STEPIO_END, STEPIO_ALL, NULL, 0);
		link_flush(l);
	}
	if (l->gone || !has_output(l))
		return true;
	if (!l->drain.data) {
		uv_timer_init(&s->loop, &l->drain);
		l->drain.data = l;
		uv_timer_start(&l->drain, on_drain_timeout, (s->killed ? DRAIN_SEC : 3600) * 1000, 0);
	}
	link_update(l);
	return false;
}
