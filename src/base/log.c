/* log.c - log lines in the reference's format and levels (see log.h)
 * One write(2) a line, so that lines of several processes in one file do not mix. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

static struct {
	const char *prog, *prefix;
	enum log_level stderr_level, file_level;
	int fd;
	void (*sink)(enum log_level, const char *, void *);
	void *sink_arg;
} the_log = { "berth", "", LOG_L_INFO, LOG_L_QUIET, -1, NULL, NULL };

static const char *const names[] = { "quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5" };
static const char *const prefixes[] = { "", "fatal: ", "error: ", "", "", "debug:  ", "debug2: ", "debug3: ", "debug4: ", "debug5: " };

void log_init(const char *prog, enum log_level stderr_level)
{
	the_log.prog = prog;
	the_log.stderr_level = stderr_level;
}

int log_open(const char *path, enum log_level file_level)
{
	int fd = -1;
	if (path && *path) {
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
		if (fd < 0)
			return -errno;
	}
	if (the_log.fd >= 0)
		close(the_log.fd);
	the_log.fd = fd;
	the_log.file_level = fd < 0 ? LOG_L_QUIET : file_level;
	return 0;
}

void log_set_prefix(const char *prefix) { the_log.prefix = prefix ? prefix : ""; }

void log_set_levels(enum log_level stderr_level, enum log_level file_level)
{
	the_log.stderr_level = stderr_level;
	the_log.file_level = the_log.fd < 0 ? LOG_L_QUIET : file_level;
}

enum log_level log_level_now(void) { return the_log.fd < 0 ? the_log.stderr_level : the_log.file_level; }

bool log_would(enum log_level level)
{
	return level <= the_log.stderr_level || level <= the_log.file_level || the_log.sink;
}

int log_level_parse(const char *text, enum log_level *ret)
{
	for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
		if (!strcasecmp(text, names[i]) || (text[0] == '0' + i && !text[1])) {
			*ret = (enum log_level)i;
			return 0;
		}
	return -EINVAL;
}

const char *log_level_name(enum log_level level) { return names[level]; }

void log_set_sink(void (*sink)(enum log_level, const char *line, void *arg), void *arg)
{
	the_log.sink = sink;
	the_log.sink_arg = arg;
}

static void write_line(int fd, char *line, size_t len)
{
	ssize_t n = write(fd, line, len);
	(void)n; /* a log that cannot be written must not stop the program */
}

static int stamp(char *buf, size_t size)
{
	struct timespec ts;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	size_t n = strftime(buf, size, "[%Y-%m-%dT%H:%M:%S", &tm);
	return (int)n + snprintf(buf + n, size - n, ".%03ld] ", ts.tv_nsec / 1000000);
}

/* Names and paths of users stand in log lines: a control character must neither end the line nor reach an operator's terminal. */
static void make_one_line(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = *p == '\t' || *p == '\n' ? ' ' : '?';
}

void log_at(enum log_level level, const char *fmt, ...)
{
	char text[4096], line[4600], when[64];
	int saved = errno;
	va_list ap;
	if (!log_would(level))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (the_log.fd >= 0) /* a daemon */
		make_one_line(text);
	if (level <= the_log.stderr_level) {
		int n = snprintf(line, sizeof line, "%s: %s%s\n", the_log.prog, prefixes[level], text);
		write_line(2, line, (size_t)n);
	}
	if (level <= the_log.file_level) {
		stamp(when, sizeof when);
		int n = snprintf(line, sizeof line, "%s%s%s%s\n", when, the_log.prefix, prefixes[level], text);
		write_line(the_log.fd, line, (size_t)n);
	}
	if (the_log.sink)
		the_log.sink(level, text, the_log.sink_arg);
	errno = saved;
}
