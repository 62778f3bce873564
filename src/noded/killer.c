/* killer.c - loaded into slurmd by noded_test (LD_PRELOAD): kills it right before a chosen call to the system
 *
 * Calls are counted from the moment the file $KILLER_ARM exists; at number $KILLER_AT the process gets SIGKILL. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static char arm[256];
static long at, count;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("KILLER_ARM"), *number = getenv("KILLER_AT");
	strncpy(arm, path ? path : "", sizeof arm - 1);
	at = number ? strtol(number, NULL, 10) : 0;
	unsetenv("LD_PRELOAD");    /* slurmstepd is not meant */
}

static void tick(void)
{
	if (at && !access(arm, F_OK) && ++count == at)
		kill(getpid(), SIGKILL);
}

#define WRAP(ret, name, params, args) \
	ret name params \
	{ \
		static ret(*real) params; \
		if (!real) \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		tick(); \
		return real args; \
	}

WRAP(int, posix_spawn, (pid_t *p, const char *path, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *b, char *const argv[], char *const env[]), (p, path, a, b, argv, env))
WRAP(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n))
WRAP(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
WRAP(ssize_t, send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
WRAP(ssize_t, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags))
WRAP(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
WRAP(int, socketpair, (int d, int t, int p, int sv[2]), (d, t, p, sv))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, close, (int fd), (fd))
