/* sack.c - the socket that tells users' commands who they are (struct sack of wire.h)
 *
 * Anybody on the machine may connect; the kernel says who it is (SO_PEERCRED), and the answer is a token for that uid and gid and no
 * other. slurmctld, slurmd and sackd run the same code. Where several daemons of one machine share the path, one serves and the others stand
 * by: every STANDBY_MS each looks whether the socket still answers and takes it over when not.
 * Limits: ASKERS_MAX at a time, the oldest gives way; an asker that says nothing within ASK_MS is dropped. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <sodium.h>

#include "base/alloc.h"
#include "base/log.h"
#include "wire/auth.h"

#define ASKERS_MAX 256
#define ASK_MS 5000
#define STANDBY_MS 3000

struct asker {
	uv_pipe_t pipe;
	struct sack *sack;
	struct asker *next, *prev;       /* youngest first */
	uint64_t since_ms;
	uint32_t uid, gid;
	size_t have;
	uint8_t ask[SACK_ASK], answer[SACK_ANSWER + FRAME_TOKEN_MAX];
	uv_write_t write;
};
struct sack {
	uv_loop_t *loop;
	struct wire_auth *auth;
	char *path;
	uv_pipe_t listener;
	uv_timer_t timer;
	bool serving, listening, stopping;
	ino_t inode;                     /* of the socket we made: we remove no other */
	unsigned handles, count;
	struct asker *first, *last;
};

static void sack_freed(struct sack *s)
{
	if (!s->stopping || s->handles || s->first)
		return;
	free(s->path);
	free(s);
}

static void asker_closed(uv_handle_t *h)
{
	struct asker *k = h->data;
	struct sack *s = k->sack;
	*(k->prev ? &k->prev->next : &s->first) = k->next;
	*(k->next ? &k->next->prev : &s->last) = k->prev;
	s->count--;
	sodium_memzero(k, sizeof *k);
	free(k);
	sack_freed(s);
}

static void asker_end(struct asker *k)
{
	if (!uv_is_closing((uv_handle_t *)&k->pipe))
		uv_close((uv_handle_t *)&k->pipe, asker_closed);
}

static void on_answered(uv_write_t *w, int status)
{
	asker_end(w->handle->data);
}

static void asker_answer(struct asker *k)
{
	struct token t;
	if (memcmp(k->ask, "SACK", 4) || k->ask[4] != SACK_VERSION) {
		asker_end(k);
		return;
	}
	const uint8_t *bound = sodium_is_zero(k->ask + 8, 32) ? NULL : k->ask + 8;
	auth_token_mint(k->sack->auth, k->uid, k->gid, bound, k->answer + 8, &t);
	memcpy(k->answer, k->ask, 8);
	be_put(k->answer + 40, t.len, 2);
	memcpy(k->answer + SACK_ANSWER, t.data, t.len);
	uv_buf_t buf = uv_buf_init((char *)k->answer, SACK_ANSWER + t.len);
	if (uv_write(&k->write, (uv_stream_t *)&k->pipe, &buf, 1, on_answered))
		asker_end(k);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
	struct asker *k = h->data;
	*ret = uv_buf_init((char *)k->ask + k->have, sizeof k->ask - k->have);
}

static void on_read(uv_stream_t *u, ssize_t n, const uv_buf_t *buf)
{
	struct asker *k = u->data;
	if (n < 0) {
		asker_end(k);
		return;
	}
	k->have += n;
	if (k->have < sizeof k->ask)
		return;
	(void)uv_read_stop(u);
	asker_answer(k);
}

static void on_asker(uv_stream_t *listener, int status)
{
	struct sack *s = listener->data;
	struct ucred who;
	socklen_t len = sizeof who;
	uv_os_fd_t fd;
	if (status < 0)
		return;
	struct asker *k = xcalloc(1, sizeof *k);
	k->sack = s;
	k->since_ms = uv_now(s->loop);
	k->pipe.data = k;
	uv_pipe_init(s->loop, &k->pipe, 0);
	if ((k->next = s->first))
		k->next->prev = k;
	else
		s->last = k;
	s->first = k;
	if (++s->count > ASKERS_MAX)
		asker_end(s->last);
	if (uv_accept(listener, (uv_stream_t *)&k->pipe) || uv_fileno((uv_handle_t *)&k->pipe, &fd) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) || who.uid == (uid_t)-1) {
		asker_end(k);
		return;
	}
	k->uid = who.uid;
	k->gid = who.gid;
	(void)uv_read_start((uv_stream_t *)&k->pipe, on_alloc, on_read);
}

/* Does somebody serve there? */
static bool path_answers(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	memcpy(at.sun_path, path, strlen(path));   /* the caller has checked the length; the rest is zero */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool answers = fd >= 0 && (!connect(fd, (struct sockaddr *)&at, sizeof at) || errno == EAGAIN);
	if (fd >= 0)
		close(fd);
	return answers;
}

static void listener_closed(uv_handle_t *h)
{
	struct sack *s = h->data;
	s->handles--;
	s->listening = false;
	sack_freed(s);
}

/* 0: serving; 1: somebody else does; negative: cannot be. */
static int sack_serve(struct sack *s, struct error *err)
{
	struct stat st;
	if (s->listening)
		return 1;
	if (path_answers(s->path))
		return 1;
	if (!lstat(s->path, &st) && !S_ISSOCK(st.st_mode))
		return error_set(err, EEXIST, "token socket %s exists and is no socket", s->path);
	(void)unlink(s->path);
	uv_pipe_init(s->loop, &s->listener, 0);
	s->listener.data = s;
	s->listening = true;
	s->handles++;
	int rc = uv_pipe_bind(&s->listener, s->path);
	if (!rc && chmod(s->path, 0666))
		rc = -errno;
	if (!rc)
		rc = uv_listen((uv_stream_t *)&s->listener, 512, on_asker);
	if (rc || stat(s->path, &st)) {
		rc = rc ? rc : -errno;
		uv_close((uv_handle_t *)&s->listener, listener_closed);
		return error_set(err, rc, "cannot offer tokens at %s: %s", s->path, uv_strerror(rc));
	}
	s->inode = st.st_ino;
	s->serving = true;
	return 0;
}

static void on_timer(uv_timer_t *t)
{
	struct sack *s = t->data;
	struct error err;
	uint64_t now = uv_now(s->loop);
	struct stat st;
	for (struct asker *k = s->last; k && now - k->since_ms > ASK_MS; k = k->prev)
		asker_end(k);
	if (s->serving && (stat(s->path, &st) || st.st_ino != s->inode)) {   /* removed, or taken over in a race */
		s->serving = false;
		uv_close((uv_handle_t *)&s->listener, listener_closed);
	} else if (!s->serving && !sack_serve(s, &err)) {
		log_verbose("tokens are served at %s now", s->path);
	}
}

static void timer_closed(uv_handle_t *h)
{
	struct sack *s = h->data;
	s->handles--;
	sack_freed(s);
}

int sack_start(uv_loop_t *loop, struct wire_auth *a, const char *path, struct sack **ret, struct error *err)
{
	struct sockaddr_un at;
	if (strlen(path) >= sizeof at.sun_path)
		return error_set(err, ENAMETOOLONG, "path of the token socket is longer than %zu: %s", sizeof at.sun_path - 1, path);
	if (!auth_has_key(a))
		return error_set(err, EPERM, "tokens can only be served where the cluster key can be read");
	struct sack *s = xcalloc(1, sizeof *s);
	s->loop = loop;
	s->auth = a;
	s->path = xstrdup(path);
	s->handles = 1;
	uv_timer_init(loop, &s->timer);
	s->timer.data = s;
	uv_unref((uv_handle_t *)&s->timer);
	int rc = sack_serve(s, err);
	if (rc < 0) {
		sack_stop(s);
		return rc;
	}
	uv_timer_start(&s->timer, on_timer, STANDBY_MS, STANDBY_MS);
	if (rc)
		log_verbose("tokens are served at %s by another daemon; standing by", path);
	*ret = s;
	return 0;
}

void sack_stop(struct sack *s)
{
	struct stat st;
	if (!s || s->stopping)
		return;
	s->stopping = true;
	if (s->serving && !stat(s->path, &st) && st.st_ino == s->inode)
		(void)unlink(s->path);
	for (struct asker *k = s->first; k; k = k->next)
		asker_end(k);
	if (s->listening && !uv_is_closing((uv_handle_t *)&s->listener))
		uv_close((uv_handle_t *)&s->listener, listener_closed);
	uv_close((uv_handle_t *)&s->timer, timer_closed);
}
