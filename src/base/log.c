/* log.c - log lines in the reference's format and levels (see log.h)
 * One write(2) a line, so that lines of several processes in one file do not mix. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

static struct {
	const char *prog, *prefix;
	enum log_level stderr_level, file_level;
	int fd;
	void (*sink)(enum log_level, const char *, void *);
	void *sink_arg;
	const struct stamp *stamp;      /* NULL: iso8601_ms */
	bool stamp_stderr;
	uint64_t flags;                 /* bit: enum log_flag */
} the_log = { "berth", "", LOG_L_INFO, LOG_L_QUIET, -1, NULL, NULL, NULL, false, 0 };

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

/* --- time stamps: LogTimeFormat ------------------------------------------------------------------- */
/* format NULL: the processor time used. fraction: digits of the second's. */
static const struct stamp { const char *word, *format; int fraction; bool zone, thread; } stamps[] = {
	{ .word = "iso8601_ms", .format = "[%Y-%m-%dT%H:%M:%S", .fraction = 3 }, { .word = "iso8601", .format = "[%Y-%m-%dT%H:%M:%S" },
	{ .word = "rfc5424_ms", .format = "[%Y-%m-%dT%H:%M:%S", .fraction = 3, .zone = true }, { .word = "rfc5424", .format = "[%Y-%m-%dT%H:%M:%S", .zone = true },
	{ .word = "rfc3339", .format = "[%Y-%m-%dT%H:%M:%S", .zone = true }, { .word = "clock" }, { .word = "short", .format = "[%b %d %H:%M:%S" },
	{ .word = "thread_id", .format = "[%b %d %H:%M:%S", .fraction = 6, .thread = true },
};

/* The offset with a colon: "+02:00". */
static int add_zone(char *buf, size_t size, const struct tm *tm)
{
	char zone[16] = "";
	size_t n = strftime(zone, sizeof zone, "%z", tm);
	return n == 5 ? snprintf(buf, size, "%.3s:%s", zone, zone + 3) : snprintf(buf, size, "%s", zone);
}

static int add_thread(char *buf, size_t size)
{
	char name[16] = "";
	(void)prctl(PR_GET_NAME, name);
	return snprintf(buf, size, " %d %-12s %p", (int)getpid(), name, (void *)(uintptr_t)pthread_self());
}

static void stamp(char *buf, size_t size)
{
	const struct stamp *s = the_log.stamp ? the_log.stamp : stamps;
	struct timespec ts;
	struct tm tm;
	if (!s->format) {
		snprintf(buf, size, "[%ld] ", (long)clock());
		return;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	size_t n = strftime(buf, size, s->format, &tm);
	if (s->fraction)
		n += (size_t)snprintf(buf + n, size - n, ".%0*ld", s->fraction, ts.tv_nsec / (s->fraction == 3 ? 1000000 : 1000));
	if (s->zone)
		n += (size_t)add_zone(buf + n, size - n, &tm);
	if (s->thread)
		n += (size_t)add_thread(buf + n, size - n);
	snprintf(buf + n, size - n, "] ");
}

static bool word_is(const char *word, size_t n, const char *name) { return strlen(name) == n && !strncasecmp(word, name, n); }

void log_set_time_format(const char *words)
{
	the_log.stamp = NULL;
	the_log.stamp_stderr = false;
	for (const char *p = words; p && *p;) {
		size_t n = strcspn(p, ",");
		for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
			if (word_is(p, n, stamps[i].word))
				the_log.stamp = &stamps[i];
		if (word_is(p, n, "format_stderr"))
			the_log.stamp_stderr = true;
		p += n + (p[n] == ',');
	}
}

/* --- DebugFlags ------------------------------------------------------------------------------------- */
#define LOG_FLAG(symbol, word) word,
static const char *const flag_words[] = {
#include "tables/log_flags.def"
};
#undef LOG_FLAG

void log_set_flags(const char *words)
{
	the_log.flags = 0;
	for (const char *p = words; p && *p;) {
		size_t n = strcspn(p, ",");
		for (size_t i = 0; i < LOG_F_COUNT; i++)
			if (word_is(p, n, flag_words[i]))
				the_log.flags |= 1ull << i;
		p += n + (p[n] == ',');
	}
}

bool log_flagged(enum log_flag flag) { return the_log.flags >> flag & 1; }

/* --- lines ------------------------------------------------------------------------------------------ */

/* Names and paths of users stand in log lines: a control character must neither end the line nor reach an operator's terminal. */
static void make_one_line(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = *p == '\t' || *p == '\n' ? ' ' : '?';
}

static void line_out(enum log_level level, const char *kind, const char *fmt, va_list ap)
{
	char text[4096], line[4600], when[96] = "";
	int saved = errno, at = snprintf(text, sizeof text, "%s%s", kind, *kind ? ": " : "");
	vsnprintf(text + at, sizeof text - (size_t)at, fmt, ap);
	if (the_log.fd >= 0) /* a daemon */
		make_one_line(text);
	if (level <= the_log.file_level || the_log.stamp_stderr)
		stamp(when, sizeof when);
	if (level <= the_log.stderr_level) {
		int n = snprintf(line, sizeof line, "%s%s%s%s\n", the_log.stamp_stderr ? when : the_log.prog, the_log.stamp_stderr ? "" : ": ", prefixes[level], text);
		write_line(2, line, (size_t)n);
	}
	if (level <= the_log.file_level) {
		int n = snprintf(line, sizeof line, "%s%s%s%s\n", when, the_log.prefix, prefixes[level], text);
		write_line(the_log.fd, line, (size_t)n);
	}
	if (the_log.sink)
		the_log.sink(level, text, the_log.sink_arg);
	errno = saved;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	va_list ap;
	if (!log_would(level))
		return;
	va_start(ap, fmt);
	line_out(level, "", fmt, ap);
	va_end(ap);
}

void log_flag_at(enum log_flag flag, const char *fmt, ...)
{
	va_list ap;
	if (!log_would(LOG_L_INFO))
		return;
	va_start(ap, fmt);
	line_out(LOG_L_INFO, flag_words[flag], fmt, ap);
	va_end(ap);
}
