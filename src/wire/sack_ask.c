/* sack_ask.c - a command asks the sack socket of its machine for a token (see auth.h)
 * One question, one answer, five seconds. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <sodium.h>

#include "base/fd.h"
#include "wire/auth.h"

#define SACK_WAIT_S 5

static int sack_talk(int fd, const char *path, const uint8_t *bound, uint8_t *answer, struct token *ret)
{
	uint8_t ask[SACK_ASK] = "SACK";
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval wait = { .tv_sec = SACK_WAIT_S };
	memcpy(at.sun_path, path, strlen(path));   /* the caller has checked the length; the rest is zero */
	ask[4] = SACK_VERSION;
	if (bound)
		memcpy(ask + 8, bound, 32);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) ||
	    connect(fd, (struct sockaddr *)&at, sizeof at))
		return -errno;
	if (send(fd, ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask)
		return -errno;
	int rc = fd_read_all(fd, answer, SACK_ANSWER);
	if (rc)
		return rc;
	uint16_t len = be_get(answer + 40, 2);
	if (memcmp(answer, ask, 5) || !len || len > FRAME_TOKEN_MAX)
		return -EPROTO;
	ret->len = len;
	return fd_read_all(fd, ret->data, len);
}

int sack_ask(const char *path, const uint8_t *bound, uint8_t session[FRAME_KEY], struct token *ret, struct error *err)
{
	uint8_t answer[SACK_ANSWER] = { 0 };
	struct sockaddr_un at;
	if (strlen(path) >= sizeof at.sun_path)
		return error_set(err, ENAMETOOLONG, "path of the token socket is longer than %zu: %s", sizeof at.sun_path - 1, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, errno, "cannot make a socket: %s", strerror(errno));
	int rc = sack_talk(fd, path, bound, answer, ret);
	close(fd);
	if (rc) {
		error_set(err, ESLURM_AUTH, "cannot get a token from %s: %s", path, rc == -EAGAIN ? "no answer" : strerror(-rc));
		error_hint(err, "slurmctld, slurmd or sackd must be running on this machine to say who you are");
		return -ESLURM_AUTH;
	}
	memcpy(session, answer + 8, FRAME_KEY);
	sodium_memzero(answer, sizeof answer);
	return 0;
}
