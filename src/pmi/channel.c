/* channel.c - talking to slurmstepd (see channel.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmi/channel.h"

static struct { char **pair; size_t n; } alone;

static bool write_all(int fd, const char *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = send(fd, data + at, n - at, MSG_NOSIGNAL);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

static bool read_all(int fd, char *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(fd, data + at, n - at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

static int number(const char *name, int fallback)
{
	const char *text = getenv(name);
	return text ? (int)strtol(text, NULL, 10) : fallback;
}

bool channel_open(struct channel *c, int version)
{
	char text[64], buf[CHANNEL_TEXT];
	*c = (struct channel){ .fd = number("PMI_FD", -1), .rank = number("PMI_RANK", 0), .size = number("PMI_SIZE", 1), .spawned = number("PMI_SPAWNED", 0) };
	c->open = true;
	if (c->fd < 0) {
		c->rank = 0, c->size = 1;
		return true;
	}
	snprintf(text, sizeof text, "cmd=init pmi_version=%d pmi_subversion=%d", version, 2 - version);
	c->open = channel_line(c, text, buf, sizeof buf) && strstr(buf, "rc=0");
	return c->open;
}

void channel_close(struct channel *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->open = false;
}

bool channel_line(struct channel *c, const char *text, char *buf, size_t size)
{
	size_t n = 0;
	if (!write_all(c->fd, text, strlen(text)) || !write_all(c->fd, "\n", 1))
		return false;
	while (n + 1 < size && read_all(c->fd, buf + n, 1) && buf[n] != '\n')
		n++;
	bool whole = buf[n] == '\n';
	buf[n] = 0;
	return whole;
}

bool channel_record(struct channel *c, const char *text, char *buf, size_t size)
{
	char head[32];
	snprintf(head, sizeof head, "%6zu", strlen(text));
	if (!write_all(c->fd, head, 6) || !write_all(c->fd, text, strlen(text)) || !read_all(c->fd, head, 6))
		return false;
	head[6] = 0;
	size_t n = strtoul(head, NULL, 10);
	if (!n || n >= size || !read_all(c->fd, buf, n))
		return false;
	buf[n] = 0;
	return true;
}

bool channel_word(const char *answer, const char *key, char end, char *ret, size_t size)
{
	size_t len = strlen(key), n = 0;
	const char *at = answer;
	while ((at = strstr(at, key)) && (at[len] != '=' || (at > answer && at[-1] != end)))
		at += len;
	if (!at)
		return false;
	for (at += len + 1; *at && n + 1 < size; at++) {
		if (*at == end && end == ';' && at[1] == ';')
			at++;
		else if (*at == end && strcmp(key, "value") && strcmp(key, "port"))
			break;
		else if (*at == end && end == ';')
			break;
		ret[n++] = *at;
	}
	ret[n] = 0;
	return !*at || *at == end;
}

bool alone_put(const char *key, const char *value)
{
	char **grown = realloc(alone.pair, (alone.n + 2) * sizeof *grown);
	if (!grown)
		return false;
	alone.pair = grown;
	grown[alone.n] = strdup(key);
	grown[alone.n + 1] = strdup(value);
	alone.n += 2;
	return grown[alone.n - 2] && grown[alone.n - 1];
}

const char *alone_get(const char *key)
{
	for (size_t i = alone.n; i; i -= 2)
		if (!strcmp(alone.pair[i - 2], key))
			return alone.pair[i - 1];
	return NULL;
}

bool alone_at(size_t i, const char **ret_key, const char **ret_value)
{
	if (2 * i >= alone.n)
		return false;
	*ret_key = alone.pair[2 * i];
	*ret_value = alone.pair[2 * i + 1];
	return true;
}
