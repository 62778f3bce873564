/* srun_conn.c - connections from the slurmstepds of the step (wire/stepio.h)
 *
 * One a node. Until HELLO has proved that the peer holds the step's key, nothing else is taken from it and nothing is sent; of such strangers there are never
 * more than the nodes and STRANGERS_MAX, and each costs no more than a HELLO is long. Frames in are handed on at once; frames out are queued and written when
 * the socket takes them. Invariant: a node has at most one connection, and a second HELLO for it is refused. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "cli/srun.h"
#include "wire/stepio.h"

#define STRANGERS_MAX 128
#define HELLO_MAX 1024
#define READ_MAX (64u * 1024)
#define DIRECT_MIN (16u * 1024)     /* of a frame */

_Static_assert(crypto_auth_KEYBYTES == 32 && crypto_auth_BYTES == 32, "the proof's size is in the protocol");

/* --- out ----------------------------------------------------------------------------------------- */

static void conn_update(struct conn *c)
{
	watch_set(c->s, &c->watch, (out_is_full(c->s) ? 0 : EPOLLIN) | (c->out_len ? EPOLLOUT : 0));
}

static void conn_drop(struct conn *c, const char *why);

void conn_flush(struct conn *c)
{
	while (c->out_len && c->watch.fd >= 0) {
		ssize_t n = send(c->watch.fd, c->out + c->out_at, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			c->out_len = 0;   /* reading tells what happened */
			break;
		}
		c->out_at += (size_t)n;
		c->out_len -= (size_t)n;
	}
	if (!c->out_len)
		c->out_at = 0;
	conn_update(c);
}

void conn_send(struct conn *c, uint8_t type, uint32_t task, const void *data, size_t n)
{
	if (!c || c->watch.fd < 0)
		return;
	c->out = xgrow(c->out, &c->out_cap, c->out_at + c->out_len + STEPIO_HEAD + n, 1);
	uint8_t *at = c->out + c->out_at + c->out_len;
	at[0] = type;
	put_u32(at + 1, task);
	put_u32(at + 5, (uint32_t)n);
	if (n)
		memcpy(at + STEPIO_HEAD, data, n);
	c->out_len += STEPIO_HEAD + n;
	conn_flush(c);
}

void conn_signal_all(struct srun *s, int number)
{
	uint8_t body[4];
	put_u32(body, (uint32_t)number);
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->node)
			conn_send(c, STEPIO_SIGNAL, STEPIO_ALL, body, sizeof(body));
}

void conn_terminate_all(struct srun *s, uint32_t kill_wait_sec, const char *why)
{
	uint8_t body[64];
	put_u32(body, kill_wait_sec);
	snprintf((char *)body + 4, sizeof(body) - 4, "%s", why);
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->node)
			conn_send(c, STEPIO_TERMINATE, STEPIO_ALL, body, 4 + strlen((char *)body + 4));
}

void conn_all_ended(struct srun *s)
{
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->node && c->node->peer_port)
			conn_send(c, STEPIO_ALL_ENDED, STEPIO_ALL, NULL, 0);
}

void conn_update_all(struct srun *s)
{
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->watch.fd >= 0)
			conn_update(c);
}

bool conn_any_full(const struct srun *s)
{
	for (const struct conn *c = s->conns; c; c = c->next)
		if (c->out_len >= SRUN_BUFFER_HIGH)
			return true;
	return false;
}

/* --- in ------------------------------------------------------------------------------------------- */

static void conn_drop(struct conn *c, const char *why)
{
	struct node_info *n = c->node;
	if (c->watch.fd < 0)
		return;
	watch_set(c->s, &c->watch, 0);
	close(c->watch.fd);
	c->watch.fd = -1;
	c->out_len = 0;
	if (!n) {
		log_debug("connection refused: %s", why);
		return;
	}
	if (n->conn == c)
		n->conn = NULL;
	if (n->is_ended)
		return;
	if (c->s->is_attached)
		node_ended(c->s, n);           /* its tasks are somebody else's affair */
	else
		node_lost(c->s, n, why);
}

static void proof_make(const struct srun *s, uint32_t job_id, const char *who, const char *node, uint8_t ret[32])
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s%u.%u %s", who, job_id, s->step_id, node);
	crypto_auth(ret, (const uint8_t *)text, (size_t)n, s->io_key);
}

/* 0, or why the peer is refused. */
static const char *hello_take(struct conn *c, const uint8_t *data, size_t len)
{
	struct srun *s = c->s;
	const char *why = NULL;
	uint8_t want[32];
	Pb__IoHello *m = pb__io_hello__unpack(NULL, len, data);
	if (!m)
		return "malformed HELLO";
	const struct part *p = m->node_index < s->node_count ? s->node[m->node_index].part : NULL;
	uint32_t job_id = p ? p->job_id : s->job_id;
	proof_make(s, job_id, "", m->node, want);
	if (m->job_id != job_id || m->step_id != s->step_id || m->node_index >= s->node_count)
		why = "HELLO of another step";
	else if (strcmp(s->node[m->node_index].row->name, m->node))
		why = "HELLO of a node that is not there";
	else if (m->proof.len != sizeof(want) || sodium_memcmp(m->proof.data, want, sizeof(want)))
		why = "HELLO with a wrong proof";
	else if (s->node[m->node_index].conn || s->node[m->node_index].is_ended)
		why = "second HELLO of a node";
	if (!why) {
		c->node = &s->node[m->node_index];
		c->node->conn = c;
		proof_make(s, job_id, "srun ", m->node, want);
		conn_send(c, STEPIO_PROOF, STEPIO_ALL, want, sizeof(want));
		in_replay(s, c);
	}
	pb__io_hello__free_unpacked(m, NULL);
	return why;
}

static void text_take(struct srun *s, const char *text, size_t len)
{
	/* A step that is ended from outside says so in these words; the reference's srun adds its own line. */
	bool own = s->is_terminating && memmem(text, len, "DUE TO TASK FAILURE", 19);
	if ((!own && memmem(text, len, "*** STEP", 8)) || memmem(text, len, "*** JOB", 7))
		run_abort(s);
	sink_add(&s->std_err, text, len);
	if (len && text[len - 1] != '\n')
		sink_add(&s->std_err, "\n", 1);
}

/* A node's slurmstepd listens: its children in the tree of nodes are told where, and it is told of its parent. */
static void peers_tell(struct srun *s, struct node_info *n, uint32_t port)
{
	uint8_t body[4];
	size_t at = (size_t)(n - s->node), first = at * s->tree_width + 1;
	n->peer_port = port;
	if (!s->tasks_left)
		conn_send(n->conn, STEPIO_ALL_ENDED, STEPIO_ALL, NULL, 0);
	put_u32(body, port);
	for (size_t i = first; i < first + s->tree_width && i < s->node_count; i++)
		if (s->node[i].peer_port)
			conn_send(s->node[i].conn, STEPIO_PEER_PARENT, STEPIO_ALL, body, sizeof(body));
	const struct node_info *parent = at ? &s->node[(at - 1) / s->tree_width] : NULL;
	if (!parent || !parent->peer_port)
		return;
	put_u32(body, parent->peer_port);
	conn_send(n->conn, STEPIO_PEER_PARENT, STEPIO_ALL, body, sizeof(body));
}

/* The frame at `h`, of which only `have` bytes of its payload have come, is output that goes straight to where it ends: its rest need not be waited for. */
static bool frame_begin(struct conn *c, const uint8_t *h, uint32_t len, size_t have)
{
	uint32_t task = get_u32(h + 1);
	if (len < DIRECT_MIN || !c->node || (h[0] != STEPIO_STDOUT && h[0] != STEPIO_STDERR) || task >= c->s->task_count)
		return false;
	struct sink *k = out_direct(c->s, task, h[0] == STEPIO_STDERR);
	if (!k)
		return false;
	sink_add(k, h + STEPIO_HEAD, have);
	c->direct = k;
	c->direct_left = len - have;
	return true;
}

/* false: not a frame slurmstepd may send. */
static bool frame_run(struct conn *c, uint8_t type, uint32_t task, const uint8_t *data, size_t len)
{
	struct srun *s = c->s;
	switch (type) {
	case STEPIO_STDOUT:
	case STEPIO_STDERR:
		if (task >= s->task_count)
			return false;
		out_take(s, task, type == STEPIO_STDERR, (const char *)data, len);
		return true;
	case STEPIO_STARTED: {
		Pb__IoStarted *m = pb__io_started__unpack(NULL, len, data);
		if (!m)
			return false;
		tasks_started(s, c->node, m);
		pb__io_started__free_unpacked(m, NULL);
		return true;
	}
	case STEPIO_EXIT: {
		Pb__IoExit *m = pb__io_exit__unpack(NULL, len, data);
		if (!m)
			return false;
		tasks_exited(s, c->node, m);
		pb__io_exit__free_unpacked(m, NULL);
		return true;
	}
	case STEPIO_FAILED:
	case STEPIO_TEXT: {
		Pb__IoText *m = pb__io_text__unpack(NULL, len, data);
		if (!m)
			return false;
		if (type == STEPIO_TEXT)
			text_take(s, m->text, strlen(m->text));
		else
			node_failed(s, c->node, m);
		pb__io_text__free_unpacked(m, NULL);
		return true;
	}
	case STEPIO_PEER_PORT:
		if (len == 4)
			peers_tell(s, c->node, get_u32(data));
		return len == 4;
	case STEPIO_ABORT:
		if (len == 4)
			tasks_fail(s);
		return len == 4;
	case STEPIO_SPAWN:
		spawn_take(s, c, task, (const char *)data, len);
		return true;
	case STEPIO_END:
		node_ended(s, c->node);
		return true;
	default:
		return false;
	}
}

static void frames_run(struct conn *c)
{
	size_t at = 0;
	while (c->watch.fd >= 0 && c->in_len - at >= STEPIO_HEAD) {
		const uint8_t *h = c->in + at;
		uint32_t len = get_u32(h + 5);
		if (len > (c->node ? STEPIO_MAX : HELLO_MAX)) {
			conn_drop(c, "a frame is too large");
			return;
		}
		size_t have = c->in_len - at - STEPIO_HEAD;
		if (have < len) {
			if (frame_begin(c, h, len, have))
				at = c->in_len;
			break;
		}
		const char *why = NULL;
		if (!c->node)
			why = h[0] == STEPIO_HELLO ? hello_take(c, h + STEPIO_HEAD, len) : "no HELLO";
		else if (!frame_run(c, h[0], get_u32(h + 1), h + STEPIO_HEAD, len))
			why = "a frame that makes no sense";
		if (why) {
			conn_drop(c, why);
			return;
		}
		at += STEPIO_HEAD + len;
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
}

/* The rest of a large frame of output that nobody must look at: as it comes. As recv(2). */
static ssize_t direct_read(struct conn *c)
{
	static char buf[READ_MAX];
	ssize_t n = (ssize_t)sink_splice(c->direct, c->watch.fd, c->direct_left);
	if (!n) {                          /* nothing came, or the pipe is full: as any other output */
		n = recv(c->watch.fd, buf, c->direct_left < READ_MAX ? c->direct_left : READ_MAX, MSG_DONTWAIT);
		sink_add(c->direct, buf, n > 0 ? (size_t)n : 0);
	}
	c->direct_left -= n > 0 ? (size_t)n : 0;
	return n;
}

static ssize_t frames_read(struct conn *c)
{
	c->in = xgrow(c->in, &c->in_cap, c->node ? STEPIO_MAX + STEPIO_HEAD : HELLO_MAX + STEPIO_HEAD, 1);
	size_t room = c->in_cap - c->in_len;
	ssize_t n = recv(c->watch.fd, c->in + c->in_len, room < READ_MAX ? room : READ_MAX, MSG_DONTWAIT);
	c->in_len += n > 0 ? (size_t)n : 0;
	return n;
}

static void conn_read(struct conn *c)
{
	ssize_t n = c->direct_left ? direct_read(c) : frames_read(c);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		conn_drop(c, n ? strerror(errno) : "connection closed by the node");
	else if (!c->direct_left)
		frames_run(c);
}

static void conn_ready(struct watch *w, uint32_t events)
{
	struct conn *c = (struct conn *)w;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		conn_read(c);
	if (c->watch.fd >= 0 && (events & EPOLLOUT)) {
		conn_flush(c);
		in_resume(c->s);
	}
	if (c->watch.fd >= 0)
		conn_update(c);
}

void conn_sweep(struct srun *s)
{
	for (struct conn **at = &s->conns, *c; (c = *at);) {
		if (c->watch.fd >= 0) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		free(c->in);
		free(c->out);
		free(c);
	}
}

/* The one who has been silent longest gives way. */
static void strangers_limit(struct srun *s)
{
	struct conn *oldest = NULL;
	size_t n = 0;
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->watch.fd >= 0 && !c->node) {
			oldest = c;
			n++;
		}
	if (n > STRANGERS_MAX + s->node_count)
		conn_drop(oldest, "too many that have not said who they are");
}

void conn_accept(struct srun *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	struct conn *c = xcalloc(1, sizeof(*c));
	c->watch = (struct watch){ .ready = conn_ready, .fd = fd };
	c->s = s;
	c->next = s->conns;
	s->conns = c;
	watch_set(s, &c->watch, EPOLLIN);
	strangers_limit(s);
}
