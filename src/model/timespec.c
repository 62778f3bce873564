/* timespec.c - time limits and points in time
 *
 * Limits are rows of fields: which forms exist is a table. Points in time are a date piece, a time piece or a word, in
 * any order, joined by '-', 'T' or a blank; "now" takes an offset. Text is never half accepted. Local time is that of TZ. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "model/timespec.h"

/* --- limits -------------------------------------------------------------------------------------- */

enum { DIGITS_MAX = 11 };

static int limit_bad(struct error *err, const char *text, const char *at)
{
	int rc = error_set(err, EINVAL, "invalid time limit \"%.100s\" (position %zu)", text, (size_t)(at - text) + 1);
	error_hint(err, "Forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]], UNLIMITED.");
	return rc;
}

/* Seconds that each field of a form is worth: [has days][fields - 1]. */
static const unsigned field_worth[2][3][3] = {
	{ { 60 }, { 60, 1 }, { 3600, 60, 1 } },
	{ { 3600 }, { 3600, 60 }, { 3600, 60, 1 } },
};

int timespec_parse_secs(const char *text, uint32_t *ret_sec, struct error *err)
{
	const char *at = text;
	uint64_t f[3], days = 0, sum;
	int n = 0;
	bool has_days = false;

	if (str_eq_nocase(text, "UNLIMITED") || str_eq_nocase(text, "INFINITE") || str_eq(text, "-1")) {
		*ret_sec = TIME_INFINITE;
		return 0;
	}
	for (;;) {
		if (n == 3 || !str_digits(&at, DIGITS_MAX, &f[n]))
			return limit_bad(err, text, at);
		n++;
		if (*at == '-' && n == 1 && !has_days) {
			has_days = true;
			days = f[0];
			n = 0;
			at++;
			if (*at == '\0') { /* "1-" is one day, as in the reference */
				f[n++] = 0;
				break;
			}
			continue;
		}
		if (*at == '\0')
			break;
		if (*at != ':')
			return limit_bad(err, text, at);
		at++;
	}
	sum = days * 86400;
	for (int i = 0; i < n; i++)
		sum += f[i] * field_worth[has_days][n - 1][i];
	if (sum >= TIME_INFINITE)
		return error_set(err, ERANGE, "time limit \"%.100s\" is too long", text);
	*ret_sec = (uint32_t)sum;
	return 0;
}

int timespec_parse_mins(const char *text, uint32_t *ret_min, struct error *err)
{
	uint32_t secs;
	int rc = timespec_parse_secs(text, &secs, err);

	if (rc == 0)
		*ret_min = secs == TIME_INFINITE ? TIME_INFINITE : secs / 60 + (secs % 60 != 0);
	return rc;
}

void timespec_format(uint32_t secs, char *buf, size_t size)
{
	unsigned d = secs / 86400, h = secs / 3600 % 24, m = secs / 60 % 60, s = secs % 60;

	if (secs == TIME_INFINITE)
		snprintf(buf, size, "UNLIMITED");
	else if (d)
		snprintf(buf, size, "%u-%02u:%02u:%02u", d, h, m, s);
	else
		snprintf(buf, size, "%02u:%02u:%02u", h, m, s);
}

void timespec_format_short(uint32_t secs, char *buf, size_t size)
{
	unsigned h = secs / 3600 % 24, m = secs / 60 % 60, s = secs % 60;

	if (secs == TIME_INFINITE || secs >= 86400)
		timespec_format(secs, buf, size);
	else if (h)
		snprintf(buf, size, "%u:%02u:%02u", h, m, s);
	else
		snprintf(buf, size, "%u:%02u", m, s);
}

/* --- points in time ------------------------------------------------------------------------------ */

struct when {
	const char *text, *at;
	bool has_date, has_time, no_year;
	int year, mon, day;         /* as people write them */
	int hour, min, sec;
};

static int when_bad(struct error *err, const struct when *w)
{
	return error_set(err, EINVAL, "Invalid time specification (pos=%zu): %.100s", (size_t)(w->at - w->text), w->text);
}

static const struct { const char *word; unsigned secs; } units[] = {
	{ "second", 1 }, { "seconds", 1 }, { "minute", 60 }, { "minutes", 60 }, { "hour", 3600 }, { "hours", 3600 },
	{ "day", 86400 }, { "days", 86400 }, { "week", 604800 }, { "weeks", 604800 },
};
static const struct { const char *word; int hour; } hours[] = {
	{ "midnight", 0 }, { "elevenses", 11 }, { "noon", 12 }, { "fika", 15 }, { "teatime", 16 },
};

/* "+2hours" behind "now". */
static int offset_read(struct when *w, time_t now, time_t *ret, struct error *err)
{
	bool minus = *w->at == '-';
	uint64_t n;
	char unit[16] = "";
	size_t len = 0;

	if (*w->at != '+' && *w->at != '-')
		return when_bad(err, w);
	w->at++;
	if (!str_digits(&w->at, DIGITS_MAX, &n))
		return when_bad(err, w);
	while (isalpha((unsigned char)w->at[len]) && len + 1 < sizeof(unit)) {
		unit[len] = (char)tolower((unsigned char)w->at[len]);
		len++;
	}
	unit[len] = '\0';
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (w->at[len] || (len && strcmp(unit, units[i].word) != 0))
			continue;
		/* No unit: seconds, which is the first row. */
		n *= units[i].secs;
		*ret = minus ? now - (time_t)n : now + (time_t)n;
		return 0;
	}
	return when_bad(err, w);
}

static bool digits_are(const char *s, int n)
{
	for (int i = 0; i < n; i++)
		if (!isdigit((unsigned char)s[i]))
			return false;
	return !isdigit((unsigned char)s[n]);
}

static bool date_is_real(const struct when *w)
{
	static const int last[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y = w->no_year ? 2000 : w->year;
	bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	return w->mon >= 1 && w->mon <= 12 && w->day >= 1 && y >= 1900 && w->day <= last[w->mon - 1] + (w->mon == 2 && leap);
}

/* YYYY-MM-DD, MMDDYY, MM/DD[/YY[YY]] (or with dots). False: not a date. */
static bool date_read(struct when *w)
{
	const char *s = w->at;
	char sep;
	int n = 0;

	if (digits_are(s, 4) && s[4] == '-' && digits_are(s + 5, 2) && s[7] == '-' && digits_are(s + 8, 2)) {
		sscanf(s, "%4d-%2d-%2d", &w->year, &w->mon, &w->day);
		w->at += 10;
	} else if (digits_are(s, 6)) {
		sscanf(s, "%2d%2d%2d", &w->mon, &w->day, &w->year);
		w->year += 2000;
		w->at += 6;
	} else if (sscanf(s, "%2d%1[/.]%2d%n", &w->mon, (char[2]){ 0 }, &w->day, &n) == 3 && isdigit((unsigned char)s[0]) && n > 0) {
		sep = strpbrk(s, "/.")[0];
		w->at += n;
		w->no_year = true;
		if (*w->at == sep && (digits_are(w->at + 1, 2) || digits_are(w->at + 1, 4))) {
			bool two = digits_are(w->at + 1, 2);
			w->year = (int)strtol(w->at + 1, NULL, 10) + (two ? 2000 : 0);
			w->at += two ? 3 : 5;
			w->no_year = false;
		}
	} else {
		return false;
	}
	return true;
}

/* HH:MM[:SS][am|pm]. False: not a time of day. */
static bool clock_read(struct when *w)
{
	uint64_t h, m, s = 0;
	const char *at = w->at;

	if (!str_digits(&at, DIGITS_MAX, &h) || *at != ':')
		return false;
	at++;
	if (!str_digits(&at, DIGITS_MAX, &m))
		return false;
	if (*at == ':') {
		at++;
		if (!str_digits(&at, DIGITS_MAX, &s))
			return false;
	}
	while (*at == ' ' && (tolower((unsigned char)at[1]) == 'a' || tolower((unsigned char)at[1]) == 'p'))
		at++;
	if (strncasecmp(at, "am", 2) == 0 || strncasecmp(at, "pm", 2) == 0) {
		bool pm = tolower((unsigned char)*at) == 'p';
		if (h < 1 || h > 12)
			return false;
		h = h % 12 + (pm ? 12 : 0);
		at += 2;
	}
	if (h > 23 || m > 59 || s > 59)
		return false;
	w->hour = (int)h;
	w->min = (int)m;
	w->sec = (int)s;
	w->at = at;
	return true;
}

static void day_set(struct when *w, time_t now, int plus)
{
	struct tm tm;
	localtime_r(&now, &tm);
	tm.tm_mday += plus;
	tm.tm_hour = 12;
	tm.tm_isdst = -1;
	(void)mktime(&tm);
	w->year = tm.tm_year + 1900;
	w->mon = tm.tm_mon + 1;
	w->day = tm.tm_mday;
}

static bool word_read(struct when *w, time_t now)
{
	size_t len = 0;

	while (isalpha((unsigned char)w->at[len]))
		len++;
	for (size_t i = 0; i < sizeof(hours) / sizeof(hours[0]); i++) {
		if (w->has_time || strlen(hours[i].word) != len || strncasecmp(w->at, hours[i].word, len) != 0)
			continue;
		w->hour = hours[i].hour;
		w->min = w->sec = 0;
		w->has_time = true;
		w->at += len;
		return true;
	}
	if (!w->has_date && ((len == 5 && strncasecmp(w->at, "today", len) == 0) || (len == 8 && strncasecmp(w->at, "tomorrow", len) == 0))) {
		day_set(w, now, len == 8);
		w->has_date = true;
		w->at += len;
		return true;
	}
	return false;
}

static int piece_read(struct when *w, time_t now, struct error *err)
{
	const char *start = w->at;

	if (word_read(w, now))
		return 0;
	if (!w->has_time && clock_read(w)) {
		w->has_time = true;
		return 0;
	}
	if (!w->has_date && date_read(w)) {
		w->has_date = true;
		if (date_is_real(w))
			return 0;
		w->at = start;
	}
	return when_bad(err, w);
}

/* Fill in what was left out, and make it a time. */
static time_t when_resolve(struct when *w, time_t now, int past)
{
	struct tm tm = { 0 };
	time_t t;

	if (!w->has_date)
		day_set(w, now, 0);
	if (w->has_date && w->no_year) {
		localtime_r(&now, &tm);
		w->year = tm.tm_year + 1900;
	}
	for (int again = 0; ; again++) {
		tm = (struct tm){ .tm_year = w->year - 1900, .tm_mon = w->mon - 1, .tm_mday = w->day,
			.tm_hour = w->hour, .tm_min = w->min, .tm_sec = w->sec, .tm_isdst = -1 };
		t = mktime(&tm);
		if (t >= now || past || again)
			return t;
		if (!w->has_date)
			w->day++;
		else if (w->no_year)
			w->year++;
		else
			return t;
	}
}

int timespec_parse_when(const char *text, time_t now, int past, time_t *ret, struct error *err)
{
	struct when w = { .text = text, .at = text };
	int rc;

	if (strncasecmp(text, "now", 3) == 0) {
		w.at += 3;
		while (*w.at == ' ')
			w.at++;
		if (*w.at)
			return offset_read(&w, now, ret, err);
		*ret = now;
		return 0;
	}
	if (strncasecmp(text, "uts", 3) == 0) {
		unsigned long long v;
		w.at += 3;
		if (str_to_u64(w.at, 0, (1ull << 40), &v) < 0)
			return when_bad(err, &w);
		*ret = (time_t)v;
		return 0;
	}
	for (;;) {
		rc = piece_read(&w, now, err);
		if (rc < 0)
			return rc;
		if (*w.at == '\0')
			break;
		if (*w.at != '-' && *w.at != ' ' && *w.at != 'T' && *w.at != 't')
			return when_bad(err, &w);
		w.at++;
	}
	*ret = when_resolve(&w, now, past);
	return 0;
}

static void print_relative(time_t t, time_t now, char *buf, size_t size)
{
	struct tm then, today;
	long days;

	localtime_r(&t, &then);
	localtime_r(&now, &today);
	days = (long)(then.tm_year - today.tm_year) * 1000 + then.tm_yday - today.tm_yday;
	if (days == 0)
		strftime(buf, size, "%H:%M:%S", &then);
	else if (days == -1)
		strftime(buf, size, "Ystday %H:%M", &then);
	else if (days == 1)
		strftime(buf, size, "Tomr %H:%M", &then);
	else if (days > -7 && days < 7)
		strftime(buf, size, "%a %H:%M", &then);
	else if (days > -300 && days < 300)
		strftime(buf, size, "%-d %b %H:%M", &then);
	else
		strftime(buf, size, "%-d %b %Y", &then);
}

/* "2026-11-30T03:47:36+01:00": strftime has no offset with a colon. */
static void print_rfc3339(const struct tm *tm, char *buf, size_t size)
{
	long offset_min = tm->tm_gmtoff / 60, abs_min = offset_min < 0 ? -offset_min : offset_min;
	size_t n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", tm);

	snprintf(buf + n, size - n, "%c%02ld:%02ld", offset_min < 0 ? '-' : '+', abs_min / 60, abs_min % 60);
}

void timespec_print_when(time_t t, const char *fmt, time_t now, char *buf, size_t size)
{
	struct tm tm;

	if (fmt && str_eq(fmt, "relative")) {
		print_relative(t, now, buf, size);
		return;
	}
	if (!fmt || !*fmt || str_eq(fmt, "standard"))
		fmt = "%Y-%m-%dT%H:%M:%S";
	localtime_r(&t, &tm);
	if (str_eq(fmt, "rfc3339")) {
		print_rfc3339(&tm, buf, size);
		return;
	}
	if (strftime(buf, size, fmt, &tm) == 0 && size > 0)
		buf[0] = '\0';
}
