/* stepd.c - starting slurmstepd (see stepd.h) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "noded/stepd.h"
#include "wire/zygote.h"

#define TRIES 3                /* each with a new zygote, if the one before does not answer */
#define RENEW 500              /* steps forked from one zygote */
#define ANSWER_SECONDS 10      /* a fork takes less than a millisecond; a machine without memory may take long */
#define AGAIN_SECONDS 2        /* one that has answered before: it may be stopped, and another is started in its place */

static int stepd_exec(struct noded *n, char *const argv[], int channel)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	pid_t pid;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, channel, ZYGOTE_CONTROL);
	posix_spawn_file_actions_adddup2(&actions, channel, ZYGOTE_CONTROL + 1);   /* keeps the number of the will taken */
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, 0, 1);
	posix_spawn_file_actions_adddup2(&actions, 0, 2);
	posix_spawn_file_actions_addchdir_np(&actions, n->spool);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	int rc = posix_spawn(&pid, n->stepd_path, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

static void zygote_stop(struct noded *n)
{
	if (n->zygote)
		close(n->zygote);
	n->zygote = 0;
}

static int zygote_start(struct noded *n)
{
	char room[ZYGOTE_TITLE_MAX + 1];
	char *argv[] = { (char *)"slurmstepd: waiting", (char *)ZYGOTE_WORD, room, NULL };
	struct timeval answer = { .tv_sec = ANSWER_SECONDS };
	int pair[2];
	memset(room, ' ', sizeof room - 1);
	room[sizeof room - 1] = '\0';
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &answer, sizeof answer);
	int rc = stepd_exec(n, argv, pair[1]);
	close(pair[1]);
	if (rc < 0) {
		close(pair[0]);
		return rc;
	}
	zygote_stop(n);                    /* the one before */
	n->zygote = pair[0];
	n->zygote_steps = 0;
	return 0;
}

static int order_send(int zygote, const char *title, const int fds[2])
{
	union { struct cmsghdr align; char room[CMSG_SPACE(2 * sizeof(int))]; } control = { 0 };
	struct iovec text = { .iov_base = (void *)title, .iov_len = strnlen(title, ZYGOTE_TITLE_MAX) };
	struct msghdr msg = { .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	return sendmsg(zygote, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void stepd_prepare(struct noded *n) { (void)zygote_start(n); }

/* The zygote's answer: a pid, or a negative code of its fork. -EPIPE: it is gone, before it could fork or after. */
static int order_ask(struct noded *n, const char *title, const int fds[2], int32_t *ret)
{
	int rc = order_send(n->zygote, title, fds);
	if (rc < 0)
		return rc;
	ssize_t got = recv(n->zygote, ret, sizeof *ret, 0);
	return got == sizeof *ret ? 0 : got < 0 ? -errno : -EPIPE;
}

static int order(struct noded *n, const char *title, const int fds[2], pid_t *ret_pid)
{
	int32_t answer;
	int rc = n->zygote && n->zygote_steps < RENEW ? 0 : zygote_start(n);
	if (rc < 0)
		return rc;
	rc = order_ask(n, title, fds, &answer);
	if (rc < 0) {
		log_info("the process that slurmstepds are forked from does not answer after %u steps: %s", n->zygote_steps, strerror(-rc));
		zygote_stop(n);
		return rc;
	}
	if (!n->zygote_steps++)
		(void)setsockopt(n->zygote, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = AGAIN_SECONDS }, sizeof(struct timeval));
	*ret_pid = answer;
	return answer < 0 ? answer : 0;
}

int stepd_start(struct noded *n, const char *title, int will, pid_t *ret_pid)
{
	int pair[2], rc = -1;
	for (int tries = 0; rc < 0 && tries < TRIES; tries++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return -errno;
		rc = order(n, title, (int[]){ pair[1], will < 0 ? pair[1] : will }, ret_pid);
		close(pair[1]);
		if (rc < 0)
			close(pair[0]);    /* one that was forked all the same finds nobody who says what to run, and ends */
	}
	return rc < 0 ? rc : pair[0];
}
