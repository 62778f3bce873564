/* full.c - see base/full.h. The full program lies in ../libexec/berth beside the folder of the quick one. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/full.h"
#include "quick/errno_texts.h"

extern char **environ;

static struct {
	char **argv, **env;
	const char *in;
	size_t in_len;
	bool sent;
} full;

void full_start(char **argv)
{
	size_t n = 0;
	while (environ[n])
		n++;
	full.argv = argv;
	full.env = xcalloc(n + 1, sizeof *full.env);
	memcpy(full.env, environ, n * sizeof *full.env);
	if (getenv("LD_PRELOAD") || getenv("LD_AUDIT"))   /* somebody wants to be in this program, which has no loader to do it */
		full_needed();
}

void full_keep_stdin(const char *data, size_t len)
{
	full.in = data;
	full.in_len = len;
}

void full_sent(void)
{
	full.sent = true;
	full.in = NULL;
}

static int stdin_give_back(void)
{
	int fd = memfd_create("stdin", 0);
	for (size_t at = 0; fd >= 0 && at < full.in_len;) {
		ssize_t n = write(fd, full.in + at, full.in_len - at);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0 ? -errno : 0;
}

void full_needed(void)
{
	char self[PATH_MAX / 2], path[PATH_MAX];
	if (full.sent)
		return;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int rc = n < 0 ? -errno : 0;
	self[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		snprintf(path, sizeof path, "%s/../libexec/berth/%s", self, slash + 1);
		if (!full.in || (rc = stdin_give_back()) == 0) {
			execve(path, full.argv, full.env);
			rc = -errno;
		}
	}
	fprintf(stderr, "%s: fatal: cannot run %s, which this needs: %s; install it again\n", full.argv[0], slash ? path : "the full program", strerror(-rc));
	_exit(1);
}

/* The same words as the full program's, which scripts may know. */
char *strerror(int e)
{
	static char unknown[32];
	if (e >= 0 && (size_t)e < sizeof errno_texts / sizeof *errno_texts && errno_texts[e])
		return (char *)(uintptr_t)errno_texts[e];
	snprintf(unknown, sizeof unknown, "Unknown error %d", e);
	return unknown;
}
