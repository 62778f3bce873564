/* daemon.c - see daemon.h
 *
 * The lock is flock(2) on the open pid file: it belongs to the open file, so it outlives the fork and ends with
 * the last process that has it open; the descriptor is closed in programs the daemon starts. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/daemon.h"

#define LOCK_WAIT_MS 1000
#define LOCK_LOOK_MS 10

static int pid_fd = -1;
static int ready_fd = -1;   /* tells the parent, which waits in the terminal */
static char *pid_file;

int daemon_lock(int fd)
{
	for (int waited = 0;; waited += LOCK_LOOK_MS) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= LOCK_WAIT_MS)
			return -errno;
		(void)poll(NULL, 0, LOCK_LOOK_MS);
	}
}

static int pid_claim(const char *path, struct error *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0) {
		int code = errno;
		error_set(err, code, "cannot write pid file %s: %s", path, strerror(code));
		error_hint(err, "create its folder, or name another file with SlurmctldPidFile, SlurmdPidFile or PidFile");
		return -code;
	}
	if (daemon_lock(fd)) {
		char text[32] = "";
		ssize_t n = read(fd, text, sizeof text - 1);
		text[n > 0 ? strcspn(text, "\n") : 0] = 0;
		close(fd);
		error_set(err, EEXIST, "pid file %s is held by a running daemon%s%s", path, *text ? ", pid " : "", text);
		error_hint(err, "stop that one first, or name another pid file");
		return -EEXIST;
	}
	pid_fd = fd;
	pid_file = realpath(path, NULL);
	return 0;
}

static int pid_write(struct error *err)
{
	if (pid_fd < 0)
		return 0;
	char text[32];
	int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (ftruncate(pid_fd, 0) || pwrite(pid_fd, text, n, 0) != n)
		return error_set(err, errno ? errno : EIO, "cannot write pid file %s: %s", pid_file, strerror(errno));
	return 0;
}

static int streams_close(int first, int last, struct error *err)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, errno, "cannot open /dev/null: %s", strerror(errno));
	for (int i = first; i <= last; i++)
		if (dup2(fd, i) < 0)
			return error_set(err, errno, "cannot replace standard stream %d: %s", i, strerror(errno));
	if (fd > 2)
		close(fd);
	return 0;
}

/* The parent: ends well when the daemon is ready, badly when it ended before. */
static void wait_ready(int fd)
{
	char byte;
	ssize_t n;
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	_exit(n == 1 ? 0 : 1);
}

int daemon_background(struct error *err)
{
	int ready[2];
	fflush(NULL);
	if (pipe2(ready, O_CLOEXEC))
		return error_set(err, errno, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid < 0) {
		int code = errno;
		close(ready[0]);
		close(ready[1]);
		return error_set(err, code, "cannot fork: %s", strerror(code));
	}
	close(ready[pid > 0]);
	if (pid > 0)
		wait_ready(ready[0]);
	ready_fd = ready[1];
	(void)setsid();
	return streams_close(0, 0, err);
}

/* sd_notify(3): whoever supervises us (systemd, berth) waits at this socket. Programs we start are not supervised. */
static void supervisor_tell(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), text[] = "READY=1\n";
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof sa.sun_path)
		return;
	memcpy(sa.sun_path, path, strlen(path));
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (sa.sun_path[0] == '@')
		sa.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		(void)!sendto(fd, text, sizeof text - 1, MSG_NOSIGNAL, (struct sockaddr *)&sa, len);
		close(fd);
	}
	unsetenv("NOTIFY_SOCKET");
}

void daemon_ready(void)
{
	struct error err;
	supervisor_tell();
	if (ready_fd < 0)
		return;
	(void)streams_close(1, 2, &err);
	(void)!write(ready_fd, "", 1);
	close(ready_fd);
	ready_fd = -1;
}

int daemon_detach(bool foreground, const char *pid_path, struct error *err)
{
	int rc = 0;
	if (pid_path && *pid_path && (rc = pid_claim(pid_path, err)))
		return rc;
	if (!foreground) {
		if ((rc = daemon_background(err)))
			return rc;
		if (chdir("/"))
			return error_set(err, errno, "cannot work in /: %s", strerror(errno));
	}
	return pid_write(err);
}

void daemon_end(void)
{
	if (pid_fd < 0)
		return;
	if (pid_file)
		(void)unlink(pid_file);
	close(pid_fd);
	pid_fd = -1;
	xfree(pid_file);
}
