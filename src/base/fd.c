/* fd.c - see fd.h */
#include <errno.h>
#include <unistd.h>

#include "base/fd.h"

int fd_read_all(int fd, void *to, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(fd, (char *)to + at, n - at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ECONNRESET;
		at += (size_t)got;
	}
	return 0;
}
