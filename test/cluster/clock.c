/* clock.c - a wall clock that a test moves: preloaded into a daemon, adds the seconds in the file $CLOCK_OFFSET to what the kernel says */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CLOCK_OFFSET");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	offset = at == MAP_FAILED ? NULL : at;
	if (fd >= 0)
		close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	long rc = syscall(SYS_clock_gettime, id, ts);
	if (!rc && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += *offset;
	return (int)rc;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (ret)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}
