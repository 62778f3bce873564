/* attach.c - connections to sattach (see attach.h) */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "stepd/attach.h"
#include "stepd/io_proof.h"
#include "stepd/io_link.h"
#include "stepd/io_pipes.h"
#include "stepd/step.h"
#include "stepd/task.h"
#include "wire/stepio.h"

#define ATTACH_MAX (8u << 20)
#define FLUSH_SEC 3
#define READERS_MAX 64

struct reader {
	uv_poll_t poll;
	struct step *step;
	struct reader *next;
	int fd;
	bool proven, closing;
	uint8_t key[32];
	uint8_t *in, *out;
	size_t in_len, in_cap, out_at, out_len, out_cap;
};
static struct reader *readers;

static void on_closed(uv_handle_t *h)
{
	struct reader *r = (struct reader *)h;
	close(r->fd);
	free(r->in);
	free(r->out);
	free(r);
}

static void reader_close(struct reader *r, const char *why)
{
	if (r->closing)
		return;
	r->closing = true;
	for (struct reader **at = &readers; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			break;
		}
	log_debug("connection to sattach ended: %s", why);
	uv_close((uv_handle_t *)&r->poll, on_closed);
}

static void on_reader(uv_poll_t *poll, int status, int events);

static void reader_watch(struct reader *r)
{
	if (!r->closing)
		uv_poll_start(&r->poll, UV_READABLE | (r->out_len ? UV_WRITABLE : 0), on_reader);
}

static void frame_add(struct reader *r, uint8_t type, uint32_t task, const void *data, size_t n)
{
	if (r->out_len + n > ATTACH_MAX) {
		reader_close(r, "it does not read");
		return;
	}
	if (!r->out_len)
		r->out_at = 0;
	r->out = xgrow(r->out, &r->out_cap, r->out_at + r->out_len + STEPIO_HEAD + n, 1);
	uint8_t *at = r->out + r->out_at + r->out_len;
	at[0] = type;
	put_u32(at + 1, task);
	put_u32(at + 5, (uint32_t)n);
	if (n)
		memcpy(at + STEPIO_HEAD, data, n);
	r->out_len += STEPIO_HEAD + n;
	reader_watch(r);
}

static void message_add(struct reader *r, uint8_t type, const ProtobufCMessage *m)
{
	uint8_t buf[1024], *data = buf;
	size_t n = protobuf_c_message_get_packed_size(m);
	if (n > sizeof buf)
		data = xmalloc(n);
	protobuf_c_message_pack(m, data);
	frame_add(r, type, STEPIO_ALL, data, n);
	if (data != buf)
		free(data);
}

static bool flush(struct reader *r)
{
	while (r->out_len) {
		ssize_t n = send(r->fd, r->out + r->out_at, r->out_len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		r->out_at += (size_t)n;
		r->out_len -= (size_t)n;
	}
	return true;
}

/* Which tasks run, and how those that have ended did. */
static void tell_tasks(struct reader *r)
{
	struct step *s = r->step;
	Pb__IoStarted m = PB__IO_STARTED__INIT;
	m.task = xcalloc(s->tasks + 1, sizeof *m.task);
	m.pid = xcalloc(s->tasks + 1, sizeof *m.pid);
	for (uint32_t i = 0; i < s->tasks; i++) {
		m.task[m.n_task++] = s->task[i].rank;
		m.pid[m.n_pid++] = (uint32_t)s->task[i].pid;
	}
	message_add(r, STEPIO_STARTED, &m.base);
	free(m.task);
	free(m.pid);
	for (uint32_t i = 0; i < s->tasks; i++)
		if (s->task[i].ended)
			attach_task_end(s, &s->task[i]);
}

/* NULL, or why the connection is closed. */
static const char *frame_run(struct reader *r, uint8_t type, uint32_t task, const uint8_t *data, size_t n)
{
	uint8_t want[32];
	if (!r->proven) {
		io_proof(r->step, r->key, "srun ", want);
		r->proven = type == STEPIO_PROOF && n == sizeof want && !sodium_memcmp(want, data, sizeof want);
		if (r->proven)
			tell_tasks(r);
		return r->proven ? NULL : "it could not prove itself";
	}
	if (type == STEPIO_STDIN && n)             /* its end of file is not that of the step */
		io_pipes_input(r->step, task, data, n);
	else if (type == STEPIO_SIGNAL && n == 4)
		task_signal(r->step, (int)get_u32(data));
	else if (type != STEPIO_STDIN && type != STEPIO_RESIZE)
		return "frame of unknown type";
	return NULL;
}

static const char *reader_read(struct reader *r)
{
	size_t at = 0;
	r->in = xgrow(r->in, &r->in_cap, STEPIO_MAX + STEPIO_HEAD, 1);
	ssize_t n = recv(r->fd, r->in + r->in_len, r->in_cap - r->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (n <= 0)
		return "closed";
	r->in_len += (size_t)n;
	while (r->in_len - at >= STEPIO_HEAD) {
		const uint8_t *h = r->in + at;
		uint32_t len = get_u32(h + 5);
		if (len > STEPIO_MAX)
			return "frame too large";
		if (r->in_len - at - STEPIO_HEAD < len)
			break;
		const char *why = frame_run(r, h[0], get_u32(h + 1), h + STEPIO_HEAD, len);
		if (why || r->closing)
			return why ? why : "closed";
		at += STEPIO_HEAD + len;
	}
	memmove(r->in, r->in + at, r->in_len - at);
	r->in_len -= at;
	return NULL;
}

static void on_reader(uv_poll_t *poll, int status, int events)
{
	struct reader *r = (struct reader *)poll;
	const char *why = NULL;
	if ((events & UV_WRITABLE) && !flush(r))
		why = strerror(errno);
	if (!why && (status < 0 || (events & UV_READABLE)))
		why = reader_read(r);
	if (why)
		reader_close(r, why);
	else
		reader_watch(r);
}

void attach_start(struct step *s, const Pb__StepdOrder *o)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)o->attach_port) };
	Pb__IoHello hello;
	uint8_t mac[32];
	size_t count = 0;
	for (struct reader *r = readers; r; r = r->next)
		count++;
	if (s->batch || !o->attach_host || o->attach_key.len != sizeof mac || count >= READERS_MAX || !io_link_resolve(o->attach_host, &to)) {
		log_error("an order to attach cannot be carried out");
		return;
	}
	struct reader *r = xcalloc(1, sizeof *r);
	r->step = s;
	memcpy(r->key, o->attach_key.data, sizeof r->key);
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	uv_poll_init(&s->loop, &r->poll, r->fd);
	r->next = readers;
	readers = r;
	if (connect(r->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) {
		reader_close(r, strerror(errno));
		return;
	}
	io_hello(s, r->key, &hello, mac);
	message_add(r, STEPIO_HELLO, &hello.base);
}

bool attach_any(void) { return readers; }

void attach_output(struct step *s, uint8_t type, uint32_t rank, const void *data, size_t n)
{
	(void)s;
	for (struct reader *r = readers, *next; r; r = next) {
		next = r->next;
		if (r->proven)
			frame_add(r, type, rank, data, n);
	}
}

void attach_task_end(struct step *s, const struct task *t)
{
	Pb__IoExit m = PB__IO_EXIT__INIT;
	uint32_t rank = t->rank;
	(void)s;
	m.n_task = 1;
	m.task = &rank;
	m.status = (uint32_t)t->status;
	for (struct reader *r = readers, *next; r; r = next) {
		next = r->next;
		if (r->proven)
			message_add(r, STEPIO_EXIT, &m.base);
	}
}

void attach_finish(struct step *s)
{
	struct timeval limit = { .tv_sec = FLUSH_SEC };
	(void)s;
	for (struct reader *r = readers, *next; r; r = next) {
		next = r->next;
		frame_add(r, STEPIO_END, STEPIO_ALL, NULL, 0);
		if (r->closing)
			continue;
		setsockopt(r->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
		(void)fcntl(r->fd, F_SETFL, O_RDWR);
		(void)flush(r);
	}
}
