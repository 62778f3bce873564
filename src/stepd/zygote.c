/* zygote.c - a slurmstepd that waits to be forked (see zygote.h)
 * It holds nothing and has done nothing yet: no log, no event loop, no thread. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stepd/zygote.h"
#include "wire/zygote.h"

/* The memory of all arguments, which follow each other, is one text now. */
static void title_set(int argc, char **argv, const char *title)
{
	size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
	size_t len = strlen(title);
	memset(argv[0], 0, room);
	memcpy(argv[0], title, len < room ? len : room);
}

/* False: slurmd is gone. */
static bool order_receive(char *title, int fds[2])
{
	union { struct cmsghdr align; char room[CMSG_SPACE(2 * sizeof(int))]; } control;
	struct iovec text = { .iov_base = title, .iov_len = ZYGOTE_TITLE_MAX };
	struct msghdr msg = { .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	ssize_t n;
	while ((n = recvmsg(ZYGOTE_CONTROL, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return false;
	title[n] = '\0';
	memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	return true;
}

static void become_stepd(const int fds[2])
{
	setsid();
	signal(SIGCHLD, SIG_DFL);
	for (int i = 0; i < 2; i++) {
		if (dup2(fds[i], ZYGOTE_CONTROL + i) < 0)
			_exit(1);
		close(fds[i]);
	}
}

void zygote_serve(int argc, char **argv)
{
	char title[ZYGOTE_TITLE_MAX + 1];
	int fds[2];
	signal(SIGCHLD, SIG_IGN);          /* the children are slurmd's affair: their descriptors tell it when they end */
	while (order_receive(title, fds)) {
		int32_t answer = fork();
		if (answer == 0) {
			become_stepd(fds);
			title_set(argc, argv, title);
			return;
		}
		if (answer < 0)
			answer = -errno;
		close(fds[0]);
		close(fds[1]);
		(void)send(ZYGOTE_CONTROL, &answer, sizeof answer, MSG_NOSIGNAL);
	}
	exit(0);
}
