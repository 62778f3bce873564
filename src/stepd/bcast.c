/* bcast.c - the receiving end of sbcast (see bcast.h)
 *
 * It becomes the user before it does anything else. The file is written where it shall be, and removed again when not all of it came. */
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "model/bcastpath.h"
#include "stepd/bcast.h"
#include "stepd/io_proof.h"
#include "stepd/io_link.h"
#include "stepd/step.h"
#include "stepd/user.h"
#include "wire/stepio.h"

#define CHUNK (256u << 10)    /* what fits in a cache beside that of the others: a fifth less CPU time than 1 MiB */
#define IDLE_SEC 120

static int read_all(int fd, void *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = recv(fd, (char *)data + at, n - at, MSG_WAITALL);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ECONNRESET;
		at += (size_t)got;
	}
	return 0;
}

static int write_all(int fd, const void *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = write(fd, (const char *)data + at, n - at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		at += (size_t)got;
	}
	return 0;
}

static int frame_send(int fd, uint8_t type, const void *data, size_t n)
{
	uint8_t frame[STEPIO_HEAD + 1024] = { type };
	if (n > 1024)
		return -EMSGSIZE;
	put_u32(frame + 1, STEPIO_ALL);
	put_u32(frame + 5, (uint32_t)n);
	memcpy(frame + STEPIO_HEAD, data, n);
	return write_all(fd, frame, STEPIO_HEAD + n);
}

/* HELLO there, PROOF back. */
static int meet(struct step *s, int fd)
{
	Pb__IoHello hello;
	uint8_t mac[32], want[32], head[STEPIO_HEAD], frame[1024];
	io_hello(s, s->spec->io_key.data, &hello, mac);
	size_t n = pb__io_hello__get_packed_size(&hello);
	if (n > sizeof frame)
		return -EMSGSIZE;
	pb__io_hello__pack(&hello, frame);
	int rc = frame_send(fd, STEPIO_HELLO, frame, n);
	rc = rc ? rc : read_all(fd, head, sizeof head);
	if (rc || head[0] != STEPIO_PROOF || get_u32(head + 5) != sizeof mac)
		return rc ? rc : -EPROTO;
	io_proof(s, s->spec->io_key.data, "srun ", want);
	rc = read_all(fd, mac, sizeof mac);
	return rc ? rc : sodium_memcmp(mac, want, sizeof want) ? -EACCES : 0;
}

static int plain_take(int fd, int file, size_t len, uint8_t *buf)
{
	while (len) {
		size_t want = len < CHUNK ? len : CHUNK;
		ssize_t n = recv(fd, buf, want, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		int rc = write_all(file, buf, (size_t)n);
		if (rc)
			return rc;
		len -= (size_t)n;
	}
	return 0;
}

/* 4 bytes length before compression, then lz4. */
static int packed_take(int fd, int file, size_t len)
{
	static uint8_t *in, *out;
	static size_t in_cap, out_cap;
	if (len < 5)
		return -EPROTO;
	in = xgrow(in, &in_cap, len, 1);
	int rc = read_all(fd, in, len);
	if (rc)
		return rc;
	uint32_t raw = get_u32(in);
	if (!raw || raw > STEPIO_BLOCK_MAX)
		return -EPROTO;
	out = xgrow(out, &out_cap, raw, 1);
	int n = LZ4_decompress_safe((const char *)in + 4, (char *)out, (int)len - 4, (int)raw);
	return n == (int)raw ? write_all(file, out, raw) : -EPROTO;
}

static int blocks_take(int fd, int file)
{
	uint8_t head[STEPIO_HEAD], *buf = xmalloc(CHUNK);
	int rc = 0;
	while (!rc && !(rc = read_all(fd, head, sizeof head)) && head[0] != STEPIO_BLOCK_END) {
		size_t len = get_u32(head + 5);
		if (len > STEPIO_BLOCK_MAX)
			rc = -EPROTO;
		else if (head[0] == STEPIO_BLOCK)
			rc = plain_take(fd, file, len, buf);
		else if (head[0] == STEPIO_BLOCK_LZ4)
			rc = packed_take(fd, file, len);
		else
			rc = -EPROTO;
	}
	free(buf);
	return rc;
}

static int file_finish(const Pb__BcastSpec *b, int file)
{
	struct timespec times[2] = { { .tv_sec = (time_t)b->atime }, { .tv_sec = (time_t)b->mtime } };
	if (fchmod(file, b->mode & 07777) < 0 || (b->preserve && futimens(file, times) < 0))
		return -errno;
	return close(file) < 0 ? -errno : 0;
}

static int receive(struct step *s, int fd)
{
	const Pb__BcastSpec *b = s->spec->bcast;
	char *path = bcast_path(b, s->job_id, s->node);
	int file;
	char *slash = strrchr(path, '/');
	if (b->make_dir && slash && slash > path) {
		*slash = 0;
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	do {                               /* on a file system that nodes share, another of them may make it between the two */
		if (b->force && unlink(path) < 0 && errno != ENOENT)
			return -errno;
		file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
	} while (file < 0 && errno == EEXIST && b->force);
	if (file < 0)
		return -errno;
	int rc = blocks_take(fd, file);
	if (!rc)
		rc = file_finish(b, file);
	if (rc)
		(void)unlink(path);
	return rc;
}

void bcast_run(struct step *s)
{
	struct timeval idle = { .tv_sec = IDLE_SEC };
	uint8_t body[4];
	int error = 0, rc = user_become(s);
	if (rc || !s->spec->io_host || s->spec->io_key.len != crypto_auth_KEYBYTES) {
		log_error("a file cannot be received: %s", rc ? strerror(-rc) : "no key");
		_exit(1);
	}
	umask((mode_t)(s->spec->has_umask ? s->spec->umask : 022));
	int fd = io_link_dial(s->spec->io_host, (uint16_t)s->spec->io_port, &error);
	if (fd < 0) {
		log_error("a file cannot be received from %s: %s", s->spec->io_host, strerror(error));
		_exit(1);
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
	rc = meet(s, fd);
	if (rc)
		_exit(1);
	rc = receive(s, fd);
	put_u32(body, (uint32_t)-rc);
	(void)frame_send(fd, STEPIO_WRITTEN, body, sizeof body);
	/* What is still coming is read, so that the sender gets the answer and not a reset. */
	shutdown(fd, SHUT_WR);
	for (ssize_t n = 1; rc && n > 0;)
		n = recv(fd, (char[65536]){ 0 }, 65536, 0);
	_exit(rc ? 1 : 0);
}
