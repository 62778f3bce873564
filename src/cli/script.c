/* script.c - read the batch script (see script.h)
 * Look-up as observed on 26.05.5: a name without a slash is taken from the current directory if it is there, else from PATH, executable or not.
 * A script of more than SCRIPT_MAX bytes is refused: slurmctld takes no larger message. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/full.h"
#include "base/str.h"
#include "cli/script.h"
#include "model/batchscript.h"

enum { SCRIPT_MAX = 4 << 20 };

static bool is_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Absolute path of `file`; NULL: nowhere. */
static char *script_find(const char *file)
{
	char *found = NULL, *dirs, *cursor, *dir, *here;

	here = getcwd(NULL, 0);
	if (*file == '/')
		found = xstrdup(file);
	else if (here)
		found = xasprintf("%s/%s", here, strncmp(file, "./", 2) == 0 ? file + 2 : file);
	free(here);
	if (found && (is_file(found) || strchr(file, '/')))
		return found;
	free(found);
	cursor = dirs = xstrdup(getenv("PATH") ? getenv("PATH") : "");
	found = NULL;
	while (!found && (dir = str_next(&cursor, ":")) != NULL) {
		found = xasprintf("%s/%s", *dir ? dir : ".", file);
		if (!is_file(found))
			xfree(found);
	}
	free(dirs);
	return found;
}

static int fd_read(int fd, const char *name, struct script *s, struct error *err)
{
	struct str text = STR_INIT;

	for (;;) {
		ssize_t n;
		str_reserve(&text, 65536);
		n = read(fd, text.data + text.len, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			str_fini(&text);
			return error_set(err, errno, "Unable to read %s: %m", name);
		}
		if (n == 0)
			break;
		text.len += (size_t)n;
		text.data[text.len] = '\0';
		if (text.len > SCRIPT_MAX) {
			str_fini(&text);
			return error_set(err, EFBIG, "Batch script %s is larger than %d MiB", name, SCRIPT_MAX >> 20);
		}
	}
	s->len = text.len;
	s->data = str_take(&text);
	return 0;
}

static int file_load(const char *file, struct script *s, struct error *err)
{
	const char *slash = strrchr(file, '/');
	int fd, rc;

	s->path = script_find(file);
	fd = s->path ? open(s->path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return error_set(err, ENOENT, "Unable to open file %s", file);
	s->name = xstrdup(slash ? slash + 1 : file);
	if (is_file(s->path))
		rc = fd_read(fd, s->path, s, err);
	else
		rc = error_set(err, EINVAL, "Batch script is empty!");
	close(fd);
	return rc;
}

int script_load(const char *file, const char *wrap, struct script *ret, struct error *err)
{
	struct script s = { 0 };
	int rc = 0;

	if (wrap) {
		s.data = batchscript_wrap(wrap);
		s.len = strlen(s.data);
		s.name = xstrdup("wrap");
	} else if (file) {
		rc = file_load(file, &s, err);
	} else {
		s.name = xstrdup("sbatch");
		rc = fd_read(STDIN_FILENO, "standard input", &s, err);
		if (rc == 0)
			full_keep_stdin(s.data, s.len);
	}
	if (rc == 0)
		rc = batchscript_check(s.data, s.len, err);
	if (rc < 0) {
		script_fini(&s);
		return rc;
	}
	*ret = s;
	return 0;
}

void script_report(const char *cmd, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		fprintf(stderr, "%s: error: %.*s\n", cmd, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

void script_fini(struct script *s)
{
	free(s->data);
	free(s->path);
	free(s->name);
	*s = (struct script){ 0 };
}
