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
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/daemon.h"

#define LOCK_WAIT_MS 1000
#define LOCK_LOOK_MS 10

static int pid_fd = -1;
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

static int streams_close(struct error *err)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, errno, "cannot open /dev/null: %s", strerror(errno));
	for (int i = 0; i < 3; i++)
		if (dup2(fd, i) < 0)
			return error_set(err, errno, "cannot replace standard stream %d: %s", i, strerror(errno));
	if (fd > 2)
		close(fd);
	return 0;
}

int daemon_detach(bool foreground, const char *pid_path, struct error *err)
{
	int rc = 0;
	if (pid_path && *pid_path && (rc = pid_claim(pid_path, err)))
		return rc;
	if (!foreground) {
		fflush(NULL);
		pid_t pid = fork();
		if (pid < 0)
			return error_set(err, errno, "cannot fork: %s", strerror(errno));
		if (pid > 0)
			_exit(0);
		(void)setsid();
		if (chdir("/"))
			return error_set(err, errno, "cannot work in /: %s", strerror(errno));
		if ((rc = streams_close(err)))
			return rc;
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
