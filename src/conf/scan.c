/* scan.c - the grammar of all configuration files (see scan.h) */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "conf/scan.h"

#define LINE_MAX_LEN (1u << 20)

void scan_init(struct scan *s, const char *file, const char *data, size_t len)
{
	*s = (struct scan){ .file = file, .data = data, .len = len, .line = 1, .text = STR_INIT };
}

void scan_fini(struct scan *s)
{
	str_fini(&s->text);
	free(s->brk);
	free(s->pair);
}

static void place(const struct scan *s, size_t at, uint32_t *ret_line, uint32_t *ret_col)
{
	size_t i = s->brk_n;
	while (i > 1 && s->brk[i - 1].at > at)
		i--;
	*ret_line = s->brk[i - 1].line;
	*ret_col = s->brk[i - 1].col + (uint32_t)(at - s->brk[i - 1].at);
}

static void break_add(struct scan *s, uint32_t line, uint32_t col)
{
	s->brk = xgrow(s->brk, &s->brk_cap, s->brk_n + 1, sizeof *s->brk);
	s->brk[s->brk_n++] = (struct scan_break){ s->text.len, line, col };
}

/* Collect one logical line, without comments, into s->text. false at the end of the file. */
static bool line_join(struct scan *s)
{
	bool quoted = false, more = true;
	str_reset(&s->text);
	s->brk_n = 0;
	if (s->pos >= s->len)
		return false;
	while (more && s->pos < s->len) {
		const char *start = s->data + s->pos, *end = memchr(start, '\n', s->len - s->pos);
		size_t n = end ? (size_t)(end - start) : s->len - s->pos, from = 0;
		s->pos += n + (end != NULL);
		if (n && start[n - 1] == '\r')
			n--;
		more = n && start[n - 1] == '\\';
		n -= more;
		break_add(s, s->line, 1);
		for (size_t i = 0; i < n; i++) {
			if (start[i] == '"')
				quoted = !quoted;
			if (start[i] == '\\' && i + 1 < n && start[i + 1] == '#') {
				str_add_n(&s->text, start + from, i - from);
				from = ++i;
				break_add(s, s->line, (uint32_t)i + 1);
			} else if (start[i] == '#' && !quoted) {
				n = i;
				more = false;
			}
		}
		str_add_n(&s->text, start + from, n - from);
		s->line++;
	}
	return true;
}

static int bad(struct scan *s, size_t at, struct error *err, const char *what)
{
	uint32_t line, col;
	place(s, at, &line, &col);
	size_t n = strcspn(s->text.data + at, " \t=");
	return error_set(err, EINVAL, "%s:%u:%u: %s%s%.*s%s", s->file, line, col, what, n ? " at \"" : "", (int)(n > 60 ? 60 : n), s->text.data + at, n ? "\"" : "");
}

static bool is_key_char(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* One Key=Value at *at. */
static int pair_scan(struct scan *s, size_t *at, struct error *err)
{
	char *t = s->text.data;
	size_t i = *at, key = i;
	while (is_key_char(t[i]))
		i++;
	size_t key_end = i;
	while (isspace((unsigned char)t[i]))
		i++;
	if (key_end == key || t[i] != '=')
		return bad(s, key, err, "expected Key=Value");
	i++;
	while (isspace((unsigned char)t[i]))
		i++;
	size_t value = i, value_end;
	if (t[i] == '"') {
		char *close = memchr(t + i + 1, '"', s->text.len - i - 1);
		if (!close)
			return bad(s, i, err, "quote is not closed");
		value = i + 1;
		value_end = (size_t)(close - t);
		i = value_end + 1;
		if (t[i] && !isspace((unsigned char)t[i]))
			return bad(s, i, err, "expected white space after the closing quote");
	} else {
		while (t[i] && !isspace((unsigned char)t[i]))
			i++;
		value_end = i;
		if (value_end == value)
			return bad(s, key, err, "expected a value after");
	}
	struct scan_pair p = { .key = t + key, .value = t + value, .key_len = key_end - key };
	place(s, key, &p.line, &p.col);
	place(s, value, &p.value_line, &p.value_col);
	*at = i + (i < s->text.len);
	t[key_end] = t[value_end] = 0;
	s->pair = xgrow(s->pair, &s->pair_cap, s->pair_n + 1, sizeof *s->pair);
	s->pair[s->pair_n++] = p;
	return 0;
}

static int line_split(struct scan *s, struct error *err)
{
	size_t at = 0;
	s->pair_n = 0;
	s->include = NULL;
	if (memchr(s->text.data, 0, s->text.len))
		return bad(s, strlen(s->text.data), err, "NUL byte in the file");
	if (s->text.len > LINE_MAX_LEN)
		return bad(s, 0, err, "line is too long");
	while (isspace((unsigned char)s->text.data[at]))
		at++;
	if (!strncasecmp(s->text.data + at, "include", 7) && isspace((unsigned char)s->text.data[at + 7])) {
		char *name = str_trim(s->text.data + at + 7);
		size_t n = strlen(name);
		if (*name != '=') {
			if (n >= 2 && *name == '"' && name[n - 1] == '"') {
				name[n - 1] = 0;
				name++;
			}
			s->include = name;
			return *name ? 1 : bad(s, at, err, "file name missing after Include");
		}
	}
	while (s->text.data[at]) {
		if (isspace((unsigned char)s->text.data[at])) {
			at++;
			continue;
		}
		int rc = pair_scan(s, &at, err);
		if (rc)
			return rc;
	}
	return s->pair_n > 0;
}

static bool line_starts(const struct scan *s, const char *const *skip)
{
	const char *t = s->text.data;
	while (isspace((unsigned char)*t))
		t++;
	for (; skip && *skip; skip++) {
		size_t n = strlen(*skip);
		if (!strncasecmp(t, *skip, n) && (t[n] == '=' || isspace((unsigned char)t[n])))
			return true;
	}
	return false;
}

int scan_next_skip(struct scan *s, const char *const *skip, struct error *err)
{
	while (line_join(s)) {
		if (line_starts(s, skip))
			continue;
		int rc = line_split(s, err);
		if (rc)
			return rc;
	}
	return 0;
}

int scan_next(struct scan *s, struct error *err) { return scan_next_skip(s, NULL, err); }
