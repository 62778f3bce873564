/* readonly.c - a disk that turns read-only, as one does after an error: preloaded into a daemon; while the file $READONLY_FOLDER.readonly exists, each write to
 * a file below $READONLY_FOLDER fails with EROFS (a real remount is refused while files are open for writing) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int armed(char *flag, size_t size)
{
	const char *folder = getenv("READONLY_FOLDER");
	return folder && snprintf(flag, size, "%s.readonly", folder) > 0 && !access(flag, F_OK);
}

static int below(const char *path)
{
	const char *folder = getenv("READONLY_FOLDER");
	size_t n = strlen(folder);
	return !strncmp(path, folder, n) && path[n] == '/';
}

/* Whether writing to this descriptor is refused; errno says so. */
static int refused(int fd)
{
	char flag[512], link[64], path[512];
	if (!armed(flag, sizeof flag))
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	path[n < 0 ? 0 : n] = 0;
	if (!below(path))
		return 0;
	errno = EROFS;
	return 1;
}

#define WRITER(type, name, params, args) \
	type name params \
	{ \
		static type(*real) params; \
		if (!real) \
			real = dlsym(RTLD_NEXT, #name); \
		return refused(fd) ? -1 : real args; \
	}
WRITER(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
WRITER(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
WRITER(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
WRITER(int, ftruncate, (int fd, off_t size), (fd, size))
WRITER(int, ftruncate64, (int fd, off64_t size), (fd, size))
WRITER(int, fsync, (int fd), (fd))
WRITER(int, fdatasync, (int fd), (fd))

#define OPENER(name) \
	int name(const char *path, int flags, ...) \
	{ \
		static int (*real)(const char *, int, ...); \
		va_list ap; \
		va_start(ap, flags); \
		int mode = flags & O_CREAT ? va_arg(ap, int) : 0; \
		va_end(ap); \
		char flag[512]; \
		if (!real) \
			real = dlsym(RTLD_NEXT, #name); \
		if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && armed(flag, sizeof flag) && below(path)) { \
			errno = EROFS; \
			return -1; \
		} \
		return real(path, flags, mode); \
	}
OPENER(open)
OPENER(open64)
