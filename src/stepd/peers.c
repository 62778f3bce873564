/* peers.c - connections between the slurmstepds of a step (see peers.h)
 *
 * Frame: 4 bytes length of what follows, 1 byte type, 4 bytes destination, 4 bytes source (all big-endian), payload. Parts of a gathering go up to the root one by one; the whole comes
 * down by the tree. Invariant: nothing but HELLO is taken from an edge that has not proved itself, and a queue of more than QUEUE_MAX ends the step. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "stepd/contain.h"
#include "stepd/io.h"
#include "stepd/io_link.h"
#include "stepd/mpi.h"
#include "stepd/peers.h"
#include "stepd/step.h"
#include "wire/stepio.h"

#define HEAD 13
#define FRAME_MAX (256u << 20)
#define QUEUE_MAX (512u << 20)
#define PROOF_LEN 32
#define STRANGERS_MAX 256

enum frame_type { FRAME_HELLO = 1, FRAME_PART = 2, FRAME_WHOLE = 3, FRAME_DIRECT = 4 };

struct edge {                      /* to the parent, to a child, or to somebody who has not said who he is (node NOBODY) */
	uv_poll_t poll;
	struct step *step;
	struct edge *next;
	uint32_t node;
	int fd;
	bool polled, connecting, proven, greeted;
	uint8_t *in, *out;
	size_t in_len, in_cap, out_at, out_len, out_cap;
};

struct gathering {                 /* at the root */
	struct gathering *next;
	uint64_t id;
	uint32_t nodes, have;
	uint8_t *data;
	size_t len, cap;
};

#define NOBODY 0xffffffffu
static struct {
	struct edge *edges;
	struct gathering *gatherings;
	uv_poll_t poll;
	int listen;
	uint16_t port;
	bool all_ended;
	uint32_t width;            /* children of each node, at least 1 */
} peers = { .listen = -1 };

static uint32_t self(const struct step *s) { return s->start->node_index; }
static uint32_t parent_of(uint32_t node) { return (node - 1) / peers.width; }

/* The neighbour through which `node` is reached: the child above it, else the parent. */
static uint32_t next_hop(const struct step *s, uint32_t node)
{
	for (uint32_t at = node; at; at = parent_of(at))
		if (parent_of(at) == self(s))
			return at;
	return parent_of(self(s));
}

static void peers_fail(struct step *s, const char *why)
{
	char text[256];
	snprintf(text, sizeof text, "MPI of step %s fails: %s", s->name, why);
	io_text(s, text);
	contain_signal(s, SIGKILL);
}

static struct edge *edge_make(struct step *s, uint32_t node, int fd)
{
	struct edge *e = xcalloc(1, sizeof *e);
	e->step = s;
	e->node = node;
	e->fd = fd;
	e->next = peers.edges;
	peers.edges = e;
	return e;
}

/* The edge to a neighbour; made without a connection where there is none yet, so that what is sent waits there. */
static struct edge *edge_get(struct step *s, uint32_t node)
{
	for (struct edge *e = peers.edges; e; e = e->next)
		if (e->node == node)
			return e;
	return edge_make(s, node, -1);
}

static void on_edge_closed(uv_handle_t *h)
{
	struct edge *e = (struct edge *)h;
	close(e->fd);
	free(e->in);
	free(e->out);
	free(e);
}

static void edge_drop(struct edge *e, const char *why)
{
	for (struct edge **at = &peers.edges; *at; at = &(*at)->next)
		if (*at == e) {
			*at = e->next;
			break;
		}
	if (e->node == NOBODY)
		log_error("connection of a slurmstepd refused: %s", why);
	else
		log_info("connection to the slurmstepd of node %u of the step ended: %s", e->node, why);
	uv_close((uv_handle_t *)&e->poll, on_edge_closed);
}

static void on_edge(uv_poll_t *poll, int status, int events);

static void edge_watch(struct edge *e)
{
	bool ready = e->proven || !e->greeted;
	if (e->fd < 0)
		return;
	if (!e->polled) {
		e->polled = true;
		uv_poll_init(&e->step->loop, &e->poll, e->fd);
	}
	uv_poll_start(&e->poll, UV_READABLE | (e->connecting || (ready && e->out_len) ? UV_WRITABLE : 0), on_edge);
}

static void frame_add(struct edge *e, uint8_t type, uint32_t to, uint32_t from, const void *a, size_t a_len, const void *b, size_t b_len)
{
	size_t len = a_len + b_len;
	if (e->out_len + len > QUEUE_MAX) {
		peers_fail(e->step, "too much data is waiting for a node");
		return;
	}
	if (!e->out_len)
		e->out_at = 0;
	e->out = xgrow(e->out, &e->out_cap, e->out_at + e->out_len + HEAD + len, 1);
	uint8_t *at = e->out + e->out_at + e->out_len;
	put_u32(at, (uint32_t)len + HEAD - 4);
	at[4] = type;
	put_u32(at + 5, to);
	put_u32(at + 9, from);
	if (a_len)
		memcpy(at + HEAD, a, a_len);
	if (b_len)
		memcpy(at + HEAD + a_len, b, b_len);
	e->out_len += HEAD + len;
	edge_watch(e);
}

static void proof(const struct step *s, uint32_t from, uint32_t to, uint8_t ret[PROOF_LEN])
{
	char text[128];
	int n = snprintf(text, sizeof text, "peer %u.%u %u to %u", s->whole_job, s->step_id, from, to);
	crypto_auth(ret, (const uint8_t *)text, (size_t)n, s->spec->io_key.data);
}

/* The first frame goes ahead of what waits. */
static void hello_add(struct edge *e)
{
	uint8_t mac[PROOF_LEN], *waiting = e->out;
	size_t at = e->out_at, len = e->out_len;
	proof(e->step, self(e->step), e->node, mac);
	e->out = NULL;
	e->out_at = e->out_len = e->out_cap = 0;
	frame_add(e, FRAME_HELLO, e->node, self(e->step), mac, sizeof mac, NULL, 0);
	if (len) {
		e->out = xgrow(e->out, &e->out_cap, e->out_len + len, 1);
		memcpy(e->out + e->out_len, waiting + at, len);
		e->out_len += len;
	}
	free(waiting);
	edge_watch(e);
}

/* --- gathering ----------------------------------------------------------------------------------- */

static void whole_spread(struct step *s, const uint8_t *data, size_t n)
{
	size_t count = s->cred->layout->n_node;
	for (uint32_t child = self(s) * peers.width + 1, k = 0; k < peers.width && child < count; k++, child++)
		frame_add(edge_get(s, child), FRAME_WHOLE, STEPIO_ALL, 0, data, n, NULL, 0);
	uint64_t id = get_u64(data);
	mpi_gathered(s, id, data + 8, n - 8);
}

/* payload: id, number of nodes, the part */
static bool part_take(struct step *s, uint32_t from, const uint8_t *data, size_t n)
{
	if (n < 12)
		return false;
	uint64_t id = get_u64(data);
	struct gathering **at = &peers.gatherings, *g;
	while (*at && (*at)->id != id)
		at = &(*at)->next;
	if (!*at) {
		g = *at = xcalloc(1, sizeof *g);
		g->id = id;
		g->nodes = get_u32(data + 8);
		g->data = xgrow(NULL, &g->cap, 8, 1);
		memcpy(g->data, data, 8);
		g->len = 8;
	}
	g = *at;
	if (g->len + n > FRAME_MAX) {
		peers_fail(s, "the tasks exchange too much data");
		return true;
	}
	g->data = xgrow(g->data, &g->cap, g->len + n, 1);
	put_u32(g->data + g->len, from);
	put_u32(g->data + g->len + 4, (uint32_t)(n - 12));
	memcpy(g->data + g->len + 8, data + 12, n - 12);
	g->len += n - 12 + 8;
	if (++g->have < g->nodes)
		return true;
	*at = g->next;
	whole_spread(s, g->data, g->len);
	free(g->data);
	free(g);
	return true;
}

void peers_gather(struct step *s, uint64_t id, uint32_t nodes, const void *data, size_t n)
{
	uint8_t head[12];
	put_u64(head, id);
	put_u32(head + 8, nodes);
	if (self(s)) {
		frame_add(edge_get(s, parent_of(self(s))), FRAME_PART, 0, self(s), head, sizeof head, data, n);
		return;
	}
	uint8_t *all = xmalloc(n + sizeof head);
	memcpy(all, head, sizeof head);
	if (n)
		memcpy(all + sizeof head, data, n);
	part_take(s, 0, all, n + sizeof head);
	free(all);
}

void peers_send(struct step *s, uint32_t node, const void *data, size_t n)
{
	if (node == self(s))
		mpi_message(s, node, data, n);
	else
		frame_add(edge_get(s, next_hop(s, node)), FRAME_DIRECT, node, self(s), data, n, NULL, 0);
}

/* --- frames in ------------------------------------------------------------------------------------- */

/* NULL, or why it is refused. */
static const char *hello_take(struct edge *e, uint32_t from, const uint8_t *data, size_t n)
{
	struct step *s = e->step;
	uint8_t want[PROOF_LEN];
	bool child = from && from < s->cred->layout->n_node && parent_of(from) == self(s);
	if (e->node == NOBODY ? !child : from != e->node)
		return "it has no edge to us";
	proof(s, from, self(s), want);
	if (n != sizeof want || sodium_memcmp(want, data, sizeof want))
		return "wrong proof";
	e->proven = true;
	if (e->node != NOBODY)
		return NULL;
	/* What already waits for this child moves here. */
	for (struct edge **at = &peers.edges; *at; at = &(*at)->next) {
		struct edge *old = *at;
		if (old->node != from)
			continue;
		if (old->fd >= 0)
			return "second connection";
		*at = old->next;
		e->out = old->out, e->out_at = old->out_at, e->out_len = old->out_len, e->out_cap = old->out_cap;
		free(old);
		break;
	}
	e->node = from;
	e->greeted = true;
	hello_add(e);
	return NULL;
}

static const char *frame_run(struct edge *e, uint8_t type, uint32_t to, uint32_t from, const uint8_t *data, size_t n)
{
	struct step *s = e->step;
	if (!e->proven)
		return type == FRAME_HELLO ? hello_take(e, from, data, n) : "no HELLO";
	if (from >= s->cred->layout->n_node || (to != STEPIO_ALL && to >= s->cred->layout->n_node))
		return "a node that is not there";
	if (type == FRAME_WHOLE) {
		if (n < 8 || e->node != parent_of(self(s)))
			return "a whole that makes no sense";
		whole_spread(s, data, n);
	} else if (to != self(s)) {
		frame_add(edge_get(s, next_hop(s, to)), type, to, from, data, n, NULL, 0);
	} else if (type == FRAME_PART) {
		return part_take(s, from, data, n) ? NULL : "a part that makes no sense";
	} else if (type == FRAME_DIRECT) {
		mpi_message(s, from, data, n);
	} else {
		return "a frame of unknown type";
	}
	return NULL;
}

/* NULL, or why the edge is dropped. */
static const char *frames_run(struct edge *e)
{
	size_t at = 0;
	while (e->in_len - at >= HEAD) {
		const uint8_t *h = e->in + at;
		uint32_t len = get_u32(h);
		if (len < HEAD - 4 || len > FRAME_MAX + HEAD || (!e->proven && len > HEAD + PROOF_LEN))
			return "a frame of impossible size";
		if (e->in_len - at - 4 < len)
			break;
		const char *why = frame_run(e, h[4], get_u32(h + 5), get_u32(h + 9), h + HEAD, len - (HEAD - 4));
		if (why)
			return why;
		at += 4 + len;
	}
	memmove(e->in, e->in + at, e->in_len - at);
	e->in_len -= at;
	return NULL;
}

static const char *edge_read(struct edge *e)
{
	size_t want = 65536;
	if (e->in_len >= HEAD)
		want += get_u32(e->in);
	e->in = xgrow(e->in, &e->in_cap, e->in_len + want, 1);
	ssize_t n = recv(e->fd, e->in + e->in_len, e->in_cap - e->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (n <= 0)
		return n ? strerror(errno) : "closed";
	e->in_len += (size_t)n;
	return frames_run(e);
}

static const char *edge_write(struct edge *e)
{
	if (e->connecting) {
		int error = 0;
		socklen_t len = sizeof error;
		getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (error)
			return strerror(error);
		e->connecting = false;
	}
	size_t limit = e->proven ? e->out_len : HEAD + PROOF_LEN;   /* the rest waits for the other's proof */
	if (!e->proven && e->greeted)
		return NULL;
	while (limit && e->out_len) {
		ssize_t n = send(e->fd, e->out + e->out_at, limit, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? NULL : strerror(errno);
		e->out_at += (size_t)n;
		e->out_len -= (size_t)n;
		limit -= (size_t)n;
	}
	e->greeted = true;
	return NULL;
}

static void on_edge(uv_poll_t *poll, int status, int events)
{
	struct edge *e = (struct edge *)poll;
	const char *why = NULL;
	if (events & UV_WRITABLE)
		why = edge_write(e);
	if (!why && (status < 0 || (events & UV_READABLE)))
		why = edge_read(e);
	if (why)
		edge_drop(e, why);
	else
		edge_watch(e);
}

/* Of those who have not said who they are, the one who has been silent longest gives way. */
static void strangers_limit(void)
{
	struct edge *oldest = NULL;
	size_t n = 0;
	for (struct edge *e = peers.edges; e; e = e->next)
		if (e->node == NOBODY) {
			oldest = e;
			n++;
		}
	if (n > STRANGERS_MAX)
		edge_drop(oldest, "too many that have not said who they are");
}

static void on_listen(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	int fd = accept4(peers.listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	struct edge *e = edge_make(poll->data, NOBODY, fd);
	e->greeted = true;
	edge_watch(e);
	strangers_limit();
}

bool peers_finish(const struct step *s) { return peers.listen < 0 || peers.all_ended || s->killed || s->launch_error || io_link_is_gone(); }
void peers_all_ended(void) { peers.all_ended = true; }

/* --- start ------------------------------------------------------------------------------------------ */

int peers_start(struct step *s)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, own;
	socklen_t len = sizeof own;
	if (s->cred->layout->n_node < 2 || peers.listen >= 0)
		return 0;
	peers.width = s->spec->has_tree_width && s->spec->tree_width && s->spec->tree_width < 65536 ? s->spec->tree_width : 1;
	if (!s->spec->has_io_key || s->spec->io_key.len != crypto_auth_KEYBYTES || !s->spec->io_port)
		return step_fail(s, EINVAL, "MPI over several nodes needs a connection to srun");
	/* Listen where slurmd does, if NodeAddr is an address of ours. */
	if (inet_pton(AF_INET, s->here->addr, &any.sin_addr) != 1)
		any.sin_addr.s_addr = htonl(INADDR_ANY);
	peers.listen = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(peers.listen, (struct sockaddr *)&any, sizeof any) < 0) {
		any.sin_addr.s_addr = htonl(INADDR_ANY);
		(void)bind(peers.listen, (struct sockaddr *)&any, sizeof any);
	}
	if (listen(peers.listen, 64) < 0 || getsockname(peers.listen, (struct sockaddr *)&own, &len) < 0)
		return step_fail(s, errno, "cannot listen for the other nodes of the step: %s", strerror(errno));
	peers.port = ntohs(own.sin_port);
	uv_poll_init(&s->loop, &peers.poll, peers.listen);
	peers.poll.data = s;
	uv_poll_start(&peers.poll, UV_READABLE, on_listen);
	return 0;
}

void peers_announce(struct step *s)
{
	uint8_t body[4];
	if (peers.listen < 0)
		return;
	put_u32(body, peers.port);
	io_link_send(s, STEPIO_PEER_PORT, body, sizeof body);
}

void peers_parent(struct step *s, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	if (peers.listen < 0 || !self(s))
		return;
	struct edge *e = edge_get(s, parent_of(self(s)));
	if (e->fd >= 0)
		return;
	if (!io_link_resolve(s->cred->layout->node[e->node]->addr, &to)) {
		peers_fail(s, "the address of another node is unknown");
		return;
	}
	e->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	e->connecting = true;
	if (connect(e->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
		log_error("cannot connect to the slurmstepd of node %u of the step: %s", e->node, strerror(errno));
	hello_add(e);
}
