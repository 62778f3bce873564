/* bcast.c - one file to many nodes (see bcast.h)
 *
 * Every node's receiver connects to us; each gets the file at its own pace: plain by sendfile from the page cache, compressed by blocks that all of them share. One
 * thread, one poll loop. A node that fails is told of at the end; the others go on. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/bcast.h"
#include "client/fan.h"
#include "model/hostlist.h"
#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "wire/stepio.h"

#define BLOCK_DEFAULT (8u << 20)
#define LAUNCH_MS 10000
#define IDLE_MS 30000         /* a node that takes nothing for so long is given up, unless --timeout says otherwise */
#define READ_MAX 4096

struct target {
	const Pb__StepNode *row;
	int fd;                    /* -1: not connected, or over */
	bool over;
	int error;                 /* errno it ended with */
	uint64_t moved_ms;         /* when it last took something */
	size_t at;                 /* plain: next byte of the file; compressed: next block */
	uint8_t head[STEPIO_HEAD];
	size_t head_at, block_left, block_at;
	bool in_block, end_sent;
	uint8_t in[READ_MAX];
	size_t in_len;
};
struct packed { uint8_t *data; size_t len; };

struct sending {
	struct bcast *b;
	Pb__BcastCredRsp *cred;
	int file, listen_fd;
	uint16_t port;
	char host[64];
	uint8_t key[32], *map;
	size_t size, block;
	struct target *target;
	size_t n, left, *sent;     /* sent: which target the call to each node is for */
	struct packed *packed;     /* compressed: made when the first target wants it, freed when no target does */
	size_t blocks, first_kept;
	int pending[256];
	size_t pending_n;
};

/* --- before ---------------------------------------------------------------------------------------- */

static int source_open(struct sending *x)
{
	struct stat st;
	struct bcast *b = x->b;
	x->file = open(b->source, O_RDONLY | O_CLOEXEC);
	if (x->file < 0 || fstat(x->file, &st) < 0) {
		log_error("Can't open `%s`: %s", b->source, strerror(errno));
		return 255;
	}
	if (!S_ISREG(st.st_mode)) {
		log_error("Can't mmap file `%s`, No such device.", b->source);
		return 255;
	}
	x->size = (size_t)st.st_size;
	x->block = b->block ? b->block : BLOCK_DEFAULT;
	pb__bcast_spec__init(&b->spec);
	b->spec.dest = (char *)b->dest;
	b->spec.mode = st.st_mode & 07777;
	if (!b->preserve)
		b->spec.mode &= ~b->umask & 0777;
	b->spec.force = b->force;
	b->spec.preserve = b->preserve;
	b->spec.has_make_dir = b->spec.make_dir = b->make_dir;
	b->spec.atime = (uint64_t)st.st_atime;
	b->spec.mtime = (uint64_t)st.st_mtime;
	b->spec.step_id = b->step_id;
	if (!b->compress || !x->size)
		return 0;
	x->map = mmap(NULL, x->size, PROT_READ, MAP_PRIVATE, x->file, 0);
	if (x->map == MAP_FAILED) {
		log_error("Can't mmap file `%s`, %s.", b->source, strerror(errno));
		return 255;
	}
	return 0;
}

/* --nodelist: all others are done with. */
static int nodes_only(struct sending *x)
{
	struct hostlist hl = HOSTLIST_INIT;
	struct error err = { 0 };
	size_t found = 0;
	if (hostlist_add(&hl, x->b->nodes, &err) < 0) {
		log_error("%s", err.line);
		return 1;
	}
	hostlist_uniq(&hl);
	for (size_t i = 0; i < x->n; i++) {
		x->target[i].over = hostlist_find(&hl, x->target[i].row->name) < 0;
		x->left -= x->target[i].over;
		found += !x->target[i].over;
	}
	bool all = found == hl.count;
	hostlist_fini(&hl);
	if (!all)
		log_error("Not all nodes in --nodelist/-w '%s' are in job %u.", x->b->nodes, x->b->job_id);
	return all ? 0 : 255;
}

static int cred_get(struct sending *x)
{
	Pb__BcastCredReq req = PB__BCAST_CRED_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	req.job_id = x->b->job_id;
	req.has_step_id = x->b->has_step;
	req.step_id = x->b->step_id;
	int rc = client_call(x->b->client, RPC_BCAST_CRED, &req.base, 0, &msg, &err);
	x->cred = (Pb__BcastCredRsp *)msg;
	int code = rc < 0 ? -rc : (int)x->cred->code;
	if (code) {
		log_error("Failed to load JobId=%u: '%s'", x->b->job_id, rc < 0 && err.line[0] ? err.line : error_text(code));
		return 1;
	}
	x->n = x->left = x->cred->layout->n_node;
	x->target = xcalloc(x->n + 1, sizeof(*x->target));
	for (size_t i = 0; i < x->n; i++) {
		x->target[i].row = x->cred->layout->node[i];
		x->target[i].fd = -1;
	}
	return x->b->nodes ? nodes_only(x) : 0;
}

static int listen_open(struct sending *x)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) }, to = { .sin_family = AF_INET, .sin_port = htons(9) };
	socklen_t len = sizeof(own);
	x->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Whoever says nothing is not even accepted. */
	(void)setsockopt(x->listen_fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){ 30 }, sizeof(int));
	if (bind(x->listen_fd, (struct sockaddr *)&own, sizeof(own)) < 0 || listen(x->listen_fd, 4096) < 0 ||
	    getsockname(x->listen_fd, (struct sockaddr *)&own, &len) < 0 || getrandom(x->key, sizeof(x->key), 0) != (ssize_t)sizeof(x->key)) {
		log_error("cannot listen for the nodes: %s", strerror(errno));
		return 1;
	}
	x->port = ntohs(own.sin_port);
	/* Our address as the first node sees it. */
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	len = sizeof(own);
	if (inet_pton(AF_INET, x->target[0].row->addr, &to.sin_addr) == 1 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&own, &len) == 0)
		inet_ntop(AF_INET, &own.sin_addr, x->host, sizeof(x->host));
	else if (gethostname(x->host, sizeof(x->host) - 1) < 0)
		snprintf(x->host, sizeof(x->host), "localhost");
	close(fd);
	return 0;
}

static void target_end(struct sending *x, struct target *t, int error)
{
	if (t->over)
		return;
	t->over = true;
	t->error = error;
	x->left--;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	if (error)
		log_error("REQUEST_FILE_BCAST(%s): %s", t->row->name, strerror(error));
}

static void launch_failed(struct sending *x, struct target *t, const char *why)
{
	log_error("%s: %s", t->row->name, why);
	target_end(x, t, ECOMM);
}

static void launch_answered(size_t i, int code, const ProtobufCMessage *rsp, const struct error *err, void *arg)
{
	struct sending *x = arg;
	const Pb__LaunchRsp *m = (const Pb__LaunchRsp *)rsp;
	if (code || m->code)
		launch_failed(x, &x->target[x->sent[i]], m && m->detail ? m->detail : err->line[0] ? err->line : error_text(code ? code : (int)m->code));
}

/* All nodes are told before any answer is waited for; the waiting is one for all, and the receivers of the others wait for us meanwhile, two minutes at most. */
static void launch_all(struct sending *x)
{
	Pb__LaunchSpec m = PB__LAUNCH_SPEC__INIT;
	struct client_fan_call call = { .rpc = RPC_D_LAUNCH, .req = &m.base, .connect_ms = LAUNCH_MS, .answer_ms = LAUNCH_MS };
	struct client_fan_node *node = xcalloc(x->n + 1, sizeof(*node));
	size_t n = 0;
	x->sent = xcalloc(x->n + 1, sizeof(*x->sent));
	for (size_t i = 0; i < x->n; i++)
		if (!x->target[i].over) {
			x->sent[n] = i;
			node[n++] = (struct client_fan_node){ x->target[i].row->name, x->target[i].row->addr, (uint16_t)x->target[i].row->port };
		}
	m.cred = x->cred->cred;
	m.io_host = x->host;
	m.has_io_port = m.has_io_key = m.has_umask = true;
	m.io_port = x->port;
	m.io_key.data = x->key;
	m.io_key.len = sizeof(x->key);
	m.umask = x->b->umask;
	m.bcast = &x->b->spec;
	struct client_fan *f = client_fan_start(x->b->client, &call, node, n, launch_answered, x);
	client_fan_finish(f);
	client_fan_free(f);
	free(node);
}

/* --- receivers come ---------------------------------------------------------------------------------- */

static void proof(const struct sending *x, const char *who, const char *node, uint8_t ret[32])
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s%u.%u %s", who, x->b->job_id, STEP_ID_BCAST, node);
	crypto_auth(ret, (const uint8_t *)text, (size_t)n, x->key);
}

/* Read and check HELLO (it is there at once, or the peer is nobody of ours). */
static void hello_take(struct sending *x, int fd)
{
	uint8_t frame[STEPIO_HEAD + 1024], want[32], answer[STEPIO_HEAD + 32] = { STEPIO_PROOF };
	struct timeval limit = { .tv_usec = 300000 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	struct target *t = NULL;
	if (recv(fd, frame, STEPIO_HEAD, MSG_WAITALL) == STEPIO_HEAD && frame[0] == STEPIO_HELLO && get_u32(frame + 5) <= 1024) {
		ssize_t len = (ssize_t)get_u32(frame + 5);
		Pb__IoHello *m = recv(fd, frame + STEPIO_HEAD, (size_t)len, MSG_WAITALL) == len ? pb__io_hello__unpack(NULL, (size_t)len, frame + STEPIO_HEAD) : NULL;
		if (m && m->node_index < x->n && !strcmp(x->target[m->node_index].row->name, m->node) && m->proof.len == 32) {
			proof(x, "", m->node, want);
			t = sodium_memcmp(want, m->proof.data, 32) ? NULL : &x->target[m->node_index];
			proof(x, "srun ", m->node, answer + STEPIO_HEAD);
		}
		if (m)
			pb__io_hello__free_unpacked(m, NULL);
	}
	put_u32(answer + 1, STEPIO_ALL);
	put_u32(answer + 5, 32);
	if (!t || t->over || t->fd >= 0 || send(fd, answer, sizeof(answer), MSG_NOSIGNAL) != (ssize_t)sizeof(answer)) {
		close(fd);
		return;
	}
	(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	t->fd = fd;
	t->moved_ms = clock_mono_ms();
}

/* --- sending ------------------------------------------------------------------------------------------- */

/* Block i, compressed; NULL: it does not get smaller, it goes as it is. */
static const struct packed *packed_get(struct sending *x, size_t i)
{
	struct packed *p = &x->packed[i];
	size_t raw = x->size - i * x->block < x->block ? x->size - i * x->block : x->block;
	if (!p->data) {
		int cap = LZ4_compressBound((int)raw);
		p->data = xmalloc((size_t)cap + 4);
		put_u32(p->data, (uint32_t)raw);
		p->len = 4 + (size_t)LZ4_compress_default((const char *)x->map + i * x->block, (char *)p->data + 4, (int)raw, cap);
	}
	return p;
}

/* Blocks that all have. */
static void packed_drop(struct sending *x)
{
	size_t low = x->blocks;
	for (size_t i = 0; i < x->n; i++)
		if (!x->target[i].over && x->target[i].at < low)
			low = x->target[i].at;
	for (; x->packed && x->first_kept < low; x->first_kept++)
		xfree(x->packed[x->first_kept].data);
}

static void block_begin(struct sending *x, struct target *t)
{
	size_t place = x->b->compress ? t->at * x->block : t->at;
	bool end = place >= x->size;
	size_t raw = x->size - place < x->block ? x->size - place : x->block;
	t->block_left = end ? 0 : x->b->compress ? packed_get(x, t->at)->len : raw;
	t->head[0] = end ? STEPIO_BLOCK_END : x->b->compress ? STEPIO_BLOCK_LZ4 : STEPIO_BLOCK;
	put_u32(t->head + 1, STEPIO_ALL);
	put_u32(t->head + 5, (uint32_t)t->block_left);
	t->head_at = t->block_at = 0;
	t->in_block = true;
	t->end_sent = end;
}

/* As much as goes without waiting. 0 or an errno. */
static int target_write(struct sending *x, struct target *t)
{
	for (;;) {
		ssize_t n;
		if (!t->in_block) {
			if (t->end_sent)
				return 0;
			block_begin(x, t);
		}
		if (t->head_at < STEPIO_HEAD) {
			n = send(t->fd, t->head + t->head_at, STEPIO_HEAD - t->head_at, MSG_NOSIGNAL | (t->block_left ? MSG_MORE : 0));
			t->head_at += n > 0 ? (size_t)n : 0;
		} else if (!t->block_left) {
			t->in_block = false;
			t->at += x->b->compress ? 1 : 0;
			if (x->b->compress)
				packed_drop(x);
			continue;
		} else if (x->b->compress) {
			n = send(t->fd, x->packed[t->at].data + t->block_at, t->block_left, MSG_NOSIGNAL);
			t->block_at += n > 0 ? (size_t)n : 0;
			t->block_left -= n > 0 ? (size_t)n : 0;
		} else {
			off_t from = (off_t)t->at;
			n = sendfile(t->fd, x->file, &from, t->block_left);
			if (n == 0)
				return EIO;        /* the file has become shorter */
			t->at += n > 0 ? (size_t)n : 0;
			t->block_left -= n > 0 ? (size_t)n : 0;
		}
		if (n > 0)
			t->moved_ms = clock_mono_ms();
		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? 0 : errno;
	}
}

/* The answer of a receiver: WRITTEN. */
static void target_read(struct sending *x, struct target *t)
{
	ssize_t n = recv(t->fd, t->in + t->in_len, sizeof(t->in) - t->in_len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	t->in_len += n > 0 ? (size_t)n : 0;
	if (t->in_len >= STEPIO_HEAD + 4)
		target_end(x, t, t->in[0] == STEPIO_WRITTEN ? (int)get_u32(t->in + STEPIO_HEAD) : EPROTO);
	else if (n <= 0)
		target_end(x, t, n ? errno : ECONNRESET);
}

static void targets_step(struct sending *x, struct pollfd *p, int ready)
{
	if (ready > 0 && p[0].revents) {
		int fd = accept4(x->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			hello_take(x, fd);
	}
	for (size_t i = 0; i < x->n; i++) {
		struct target *t = &x->target[i];
		short what = p[i + 1].fd == t->fd ? p[i + 1].revents : 0;
		if (t->fd >= 0 && (what & (POLLIN | POLLHUP | POLLERR)))
			target_read(x, t);
		int error = t->fd >= 0 && (what & POLLOUT) ? target_write(x, t) : 0;
		/* Why it does not take more, it has perhaps already said. */
		if (error && (error != EPIPE && error != ECONNRESET))
			target_end(x, t, error);
		else if (error)
			target_read(x, t);
	}
}

/* Gives up who has taken nothing for too long. Milliseconds until the next one might be given up. */
static int targets_look(struct sending *x, uint64_t limit)
{
	uint64_t now = clock_mono_ms(), wait = limit;
	for (size_t i = 0; i < x->n; i++) {
		struct target *t = &x->target[i];
		uint64_t still = now - t->moved_ms;
		if (!t->over && still >= limit)
			target_end(x, t, ETIMEDOUT);
		else if (!t->over && limit - still < wait)
			wait = limit - still;
	}
	return (int)wait + 1;
}

static void send_all(struct sending *x)
{
	uint64_t site = 1000 * conf_num(client_conf(x->b->client), CONF_MessageTimeout);
	uint64_t limit = x->b->timeout_sec ? 1000 * (uint64_t)x->b->timeout_sec : site > IDLE_MS ? site : IDLE_MS;
	struct pollfd *p = xcalloc(x->n + 1, sizeof(*p));
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);       /* sendfile cannot be told to do without */
	for (size_t i = 0; i < x->n; i++)
		x->target[i].moved_ms = clock_mono_ms();
	for (int wait; wait = targets_look(x, limit), x->left;) {
		p[0] = (struct pollfd){ .fd = x->listen_fd, .events = POLLIN };
		for (size_t i = 0; i < x->n; i++) {
			const struct target *t = &x->target[i];
			p[i + 1] = (struct pollfd){ .fd = t->fd, .events = (short)(POLLIN | (t->end_sent && !t->in_block ? 0 : POLLOUT)) };
		}
		int n = poll(p, x->n + 1, wait);
		if (n > 0)
			targets_step(x, p, n);
	}
	signal(SIGPIPE, old);
	free(p);
}

static void tell(const struct bcast *b, const struct sending *x)
{
	log_info("-----------------------------");
	log_info("block_size = %zu", x->block);
	log_info("compress   = %d", b->compress ? 2 : 0);
	log_info("force      = %s", b->force ? "true" : "false");
	log_info("preserve   = %s", b->preserve ? "true" : "false");
	log_info("timeout    = %d", b->timeout_sec);
	log_info("verbose    = %u", b->verbose);
	log_info("source     = %s", b->source);
	log_info("dest       = %s", b->dest);
	log_info("-----------------------------");
	log_info("modes    = %o", b->spec.mode);
	log_info("size     = %zu", x->size);
	log_info("jobid      = %u", b->job_id);
	log_info("node_list  = %s", x->cred->layout->nodes);
}

int bcast_send(struct bcast *b)
{
	struct sending x = { .b = b, .file = -1, .listen_fd = -1 };
	int rc = source_open(&x);
	if (!rc)
		rc = cred_get(&x);
	if (!rc && b->verbose)
		tell(b, &x);
	if (!rc)
		rc = listen_open(&x);
	if (!rc) {
		x.blocks = (x.size + x.block - 1) / x.block;
		x.packed = b->compress ? xcalloc(x.blocks + 1, sizeof(*x.packed)) : NULL;
		launch_all(&x);
		send_all(&x);
		for (size_t i = 0; i < x.n; i++)
			rc = x.target[i].error ? x.target[i].error : rc;
	}
	if (x.listen_fd >= 0)
		close(x.listen_fd);
	if (x.file >= 0)
		close(x.file);
	for (size_t i = 0; x.packed && i < x.blocks; i++)
		free(x.packed[i].data);
	free(x.packed);
	free(x.sent);
	free(x.target);
	return rc;
}

char *bcast_dest(const struct conf *c, const char *text, const char *folder)
{
	char buf[4096];
	const char *dir = conf_opt(c, CONF_BcastParameters, "DestDir", buf, sizeof(buf));
	if (text && *text == '/')
		return xstrdup(text);
	dir = dir && *dir ? dir : folder;
	return xasprintf("%s/%s", dir, text ? text : "");
}

bool bcast_compress(const struct conf *c, const char *text, bool given)
{
	char buf[64];
	const char *site = conf_opt(c, CONF_BcastParameters, "Compression", buf, sizeof(buf));
	const char *name = !given ? site : text && *text ? text : "lz4";
	if (!name || !*name || str_eq_nocase(name, "none"))
		return false;
	if (str_eq_nocase(name, "lz4"))
		return true;
	log_error("Compression type '%s' unknown, disabling compression support.", name);
	return false;
}
