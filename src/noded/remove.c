/* remove.c - takes away a tree that somebody else may change meanwhile (see remove.h)
 *
 * A folder is opened without following links, by its name in the folder above, and emptied through that descriptor: a path is never walked twice. Folders deeper
 * than DEPTH_MAX are moved up to the top first, so that no tree takes more descriptors or stack than that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "noded/remove.h"

#define DEPTH_MAX 32
#define ROUNDS_MAX 100000      /* of the top folder: each brings up what lay DEPTH_MAX deeper */

struct tree { int top; dev_t dev; unsigned moved; };

static bool is_folder_of(int dir, const char *name, dev_t dev)
{
	struct stat st;
	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode) && st.st_dev == dev;
}

static void empty(struct tree *t, int fd, unsigned depth);

static void remove_folder(struct tree *t, int dir, const char *name, unsigned depth)
{
	char moved[32];
	struct stat st;
	if (depth > DEPTH_MAX) {
		snprintf(moved, sizeof moved, ".deep.%u", t->moved++);
		(void)renameat(dir, name, t->top, moved);
		return;
	}
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_dev == t->dev)
		empty(t, fd, depth);               /* closes it */
	else
		close(fd);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

static void empty(struct tree *t, int fd, unsigned depth)
{
	struct dirent *e;
	DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) < 0 && is_folder_of(dirfd(d), e->d_name, t->dev))
			remove_folder(t, dirfd(d), e->d_name, depth + 1);
	}
	closedir(d);
}

void remove_tree(const char *path)
{
	struct stat st;
	struct tree t = { .top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };
	if (t.top < 0)
		return;
	if (!fstat(t.top, &st)) {
		t.dev = st.st_dev;
		for (unsigned moved = 1, i = 0; moved != t.moved && i < ROUNDS_MAX; i++) {
			moved = t.moved;
			int fd = openat(t.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd >= 0)
				empty(&t, fd, 0);
		}
	}
	close(t.top);
	(void)rmdir(path);
}
