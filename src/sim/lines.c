/* lines.c - a text file line by line, compressed or not (see trace.h) */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "sim/trace.h"

struct lines { gzFile f; struct str s; };

struct lines *lines_open(const char *path, struct error *err)
{
	gzFile f = gzopen(path, "rb");
	if (!f) {
		error_set(err, errno ? errno : EIO, "%s: %s", path, errno ? strerror(errno) : "cannot be opened");
		return NULL;
	}
	struct lines *l = xcalloc(1, sizeof *l);
	l->f = f;
	l->s = STR_INIT;
	gzbuffer(f, 1u << 17);
	return l;
}

char *lines_next(struct lines *l)
{
	char buf[4096];
	str_reset(&l->s);
	while (gzgets(l->f, buf, sizeof buf)) {
		size_t n = strlen(buf);
		bool end = n && buf[n - 1] == '\n';
		if (end)
			buf[--n] = 0;
		if (end && n && buf[n - 1] == '\r')
			buf[n - 1] = 0;
		str_add(&l->s, buf);
		if (end)
			return l->s.data;
	}
	return l->s.len ? l->s.data : NULL;
}

void lines_close(struct lines *l)
{
	gzclose(l->f);
	str_fini(&l->s);
	free(l);
}
