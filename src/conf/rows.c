/* rows.c - the rows of tables/config.def in memory (see rows.h) */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "conf/rows.h"
#include "model/timespec.h"
#include "model/tres.h"

static const struct conf_row rows[] = {
#define CONF_KEY(sym, section, name, type, def, range, show, apply, status, doc) \
	{ name, def, range, doc, SEC_##section, CT_##type, SHOW_##show, APPLY_##apply, STATUS_##status },
#include "tables/config.def"
#undef CONF_KEY
};
static_assert(sizeof rows / sizeof *rows == CONF_KEYS, "one row a key");

static const char *const section_names[SEC_COUNT] = {
	[SEC_SLURM] = "slurm.conf", [SEC_SHOW] = "slurm.conf", [SEC_NODE] = "NodeName lines", [SEC_DOWN] = "DownNodes lines", [SEC_NODESET] = "NodeSet lines",
	[SEC_PART] = "PartitionName lines", [SEC_POWER] = "PowerAction lines", [SEC_GRES] = "gres.conf", [SEC_CGROUP] = "cgroup.conf", [SEC_DBD] = "slurmdbd.conf",
	[SEC_TOPO] = "topology.conf", [SEC_JOBC] = "job_container.conf", [SEC_OCI] = "oci.conf", [SEC_ACCT] = "acct_gather.conf", [SEC_HELP] = "helpers.conf",
	[SEC_MPI] = "mpi.conf", [SEC_BB] = "burst_buffer.conf",
};

const struct conf_row *conf_row(enum conf_key k) { return &rows[k]; }
const char *conf_section_name(enum conf_section s) { return section_names[s]; }

/* --- look-up ---------------------------------------------------------------------------------- */
#define BUCKETS 1024
static uint16_t bucket[BUCKETS], chain[CONF_KEYS]; /* index + 1; 0 ends */
static bool indexed;

static unsigned name_hash(unsigned section, const char *name, size_t len)
{
	unsigned h = 2166136261u ^ section;
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((unsigned char)name[i] | 0x20)) * 16777619u;
	return (h ^ (h >> 15)) % BUCKETS;
}

static void index_build(void)
{
	for (int i = CONF_KEYS - 1; i >= 0; i--) {
		unsigned b = name_hash(rows[i].section, rows[i].name, strlen(rows[i].name));
		chain[i] = bucket[b];
		bucket[b] = (uint16_t)(i + 1);
	}
	indexed = true;
}

int conf_row_find(enum conf_section s, const char *name, size_t len)
{
	if (!indexed)
		index_build();
	for (unsigned i = bucket[name_hash(s, name, len)]; i; i = chain[i - 1]) {
		const struct conf_row *r = &rows[i - 1];
		if (r->section == s && !strncasecmp(r->name, name, len) && !r->name[len])
			return (int)i - 1;
	}
	return -1;
}

/* Edits between two short words, case ignored. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64], n = (unsigned)strlen(b);
	if (n >= 64)
		return UINT_MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned up = row[j], best = corner + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
			if (up + 1 < best)
				best = up + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			corner = up;
			row[j] = best;
		}
	}
	return row[n];
}

const char *conf_row_nearest(enum conf_section s, const char *name)
{
	unsigned best = (unsigned)strlen(name) / 3 + 1;
	const char *found = NULL;
	for (int i = 0; i < CONF_KEYS; i++) {
		unsigned d = rows[i].section == s && strlen(name) < 64 ? distance(name, rows[i].name) : UINT_MAX;
		if (d <= best && (!found || d < best)) {
			best = d;
			found = rows[i].name;
		}
	}
	return found;
}

/* --- words of a range --------------------------------------------------------------------------- */
enum word_kind { WORD_UNKNOWN, WORD_WORKS, WORD_HARMLESS, WORD_WARN, WORD_TODO };

struct span { const char *at; size_t n; };

/* By the mark before a word of a range. */
static enum word_kind mark_kind(char c) { return c == '!' ? WORD_TODO : c == '?' ? WORD_WARN : c == '~' ? WORD_HARMLESS : WORD_WORKS; }

/* What the range says about a word ("name" or "name=value"). *ret_values: what stands behind the name there, which may be nothing. */
static enum word_kind range_word(const char *range, const char *word, size_t len, bool *ret_open, struct span *ret_values)
{
	const char *eq = memchr(word, '=', len);
	size_t name_len = eq ? (size_t)(eq - word) : len;
	*ret_open = false;
	*ret_values = (struct span){ 0 };
	for (const char *p = range; *p;) {
		size_t n = strcspn(p, "|");
		const char *w = p;
		enum word_kind kind = mark_kind(*w);
		w += kind != WORD_WORKS;
		size_t wn = n - (size_t)(w - p);
		const char *values = memchr(w, '=', wn);
		size_t values_n = values ? (size_t)(w + wn - values - 1) : 0;
		wn = values ? (size_t)(values - w) : wn;
		if (wn == 1 && *w == '*')
			*ret_open = true;
		else if (wn == name_len && !strncasecmp(w, word, wn) && (values || !eq)) {
			*ret_values = (struct span){ values ? values + 1 : NULL, values_n };
			return kind;
		}
		p += n + (p[n] == '|');
	}
	const char *colon = *ret_open ? memchr(word, ':', len) : NULL; /* MCSParameters: what follows is a list of names */
	struct span values;
	bool open;
	return colon && range_word(range, word, (size_t)(colon - word), &open, &values) == WORD_TODO ? WORD_TODO : WORD_UNKNOWN;
}

/* The words that work, for a message. */
static void range_list(const char *range, char *buf, size_t size)
{
	size_t at = 0;
	buf[0] = 0;
	for (const char *p = range; *p;) {
		size_t n = strcspn(p, "|");
		const char *w = p + (mark_kind(*p) != WORD_WORKS);
		size_t wn = n - (size_t)(w - p);
		if (*p != '!' && !(wn == 1 && *w == '*') && at + wn + 3 < size) {
			if (at) {
				memcpy(buf + at, ", ", 2);
				at += 2;
			}
			memcpy(buf + at, w, wn);
			buf[at += wn] = 0;
		}
		p += n + (p[n] == '|');
	}
}

static int word_check(const struct conf_row *r, const char *word, size_t len, struct error *err)
{
	bool open;
	struct span values;
	char list[240];
	switch (range_word(r->range, word, len, &open, &values)) {
	case WORD_WORKS:
	case WORD_HARMLESS:
	case WORD_WARN:
		return 0;
	case WORD_TODO:
		return error_set(err, ESLURM_NOT_SUPPORTED, "%s: \"%.*s\" does not work yet", r->name, (int)len, word);
	case WORD_UNKNOWN:
		break;
	}
	if (open || !*r->range)
		return 0;
	range_list(r->range, list, sizeof list);
	return error_set(err, EINVAL, "%s: \"%.*s\" is none of %s", r->name, (int)len, word, *list ? list : "the values that work");
}

/* The next word of a comma list, blanks taken off. false: there is none. */
static bool next_word(const char **at, const char **ret, size_t *ret_len)
{
	while (**at == ',' || isspace((unsigned char)**at))
		++*at;
	*ret = *at;
	*at += strcspn(*at, ",");
	*ret_len = (size_t)(*at - *ret);
	while (*ret_len && isspace((unsigned char)(*ret)[*ret_len - 1]))
		--*ret_len;
	return *ret_len > 0;
}

static int words_check(const struct conf_row *r, const char *text, struct error *err)
{
	const char *word;
	size_t len;
	int rc = 0;
	while (!rc && next_word(&text, &word, &len))
		rc = word_check(r, word, len, err);
	return rc;
}

/* Is it one of the values "LOW-", "LOW-HIGH", "A/B/C" of a word; "-1/" before them: that, too? Nothing said: all are. */
static bool value_fits(struct span values, const char *text, size_t len)
{
	unsigned long long v, low = 0, high = UINT64_MAX;
	char buf[32], *end;
	if (!values.n)
		return true;
	if (values.n > 3 && !memcmp(values.at, "-1/", 3)) {
		if (len == 2 && !memcmp(text, "-1", 2))
			return true;
		values = (struct span){ values.at + 3, values.n - 3 };
	}
	if (isdigit((unsigned char)*values.at)) {
		low = strtoull(values.at, &end, 10);
		high = end + 1 < values.at + values.n ? strtoull(end + 1, NULL, 10) : high;
		snprintf(buf, sizeof buf, "%.*s", (int)len, text);
		return len < sizeof buf && !str_to_u64(buf, low, high, &v);
	}
	for (const char *p = values.at; p < values.at + values.n;) {
		size_t n = strcspn(p, "/|");
		if (n == len && !strncasecmp(p, text, len))
			return true;
		p += n + (p[n] == '/');
		if (p[-1] != '/')
			break;
	}
	return false;
}

bool conf_word_value_ok(enum conf_key k, const char *word, const char *value)
{
	bool open;
	struct span values;
	(void)range_word(rows[k].range, word, strlen(word), &open, &values);
	return value_fits(values, value, strlen(value));
}

void conf_words_doubt(enum conf_key k, const char *text, void (*tell)(const char *word, size_t len, enum word_doubt doubt, const char *values, void *arg), void *arg)
{
	const struct conf_row *r = &rows[k];
	const char *word;
	size_t len;
	bool open;
	struct span values;
	if ((r->type != CT_WORDS && r->type != CT_ONE) || !*r->range)
		return;
	while (next_word(&text, &word, &len)) {
		enum word_kind kind = range_word(r->range, word, len, &open, &values);
		const char *eq = memchr(word, '=', len), *value = eq ? eq + 1 : word + len;
		char allowed[80];
		snprintf(allowed, sizeof allowed, "%.*s", (int)values.n, values.n ? values.at : "");
		if (kind != WORD_UNKNOWN && !value_fits(values, value, (size_t)(word + len - value)))
			tell(word, len, WORD_BAD_VALUE, allowed, arg);
		else if (kind == WORD_UNKNOWN || kind == WORD_WARN)
			tell(word, len, kind == WORD_WARN ? WORD_IDLE : WORD_NOT_KNOWN, NULL, arg);
	}
}

char *conf_words_canon(enum conf_key k, const char *text)
{
	struct str out = STR_INIT;
	for (const char *p = rows[k].range; *p;) {
		size_t n = strcspn(p, "|");
		const char *w = p + (mark_kind(*p) != WORD_WORKS);
		size_t wn = n - (size_t)(w - p);
		for (const char *t = text; *t;) {
			size_t tn = strcspn(t, ",");
			if (tn == wn && !strncasecmp(t, w, wn)) {
				str_add(&out, out.len ? "," : "");
				str_add_n(&out, w, wn);
				break;
			}
			t += tn + (t[tn] == ',');
		}
		p += n + (p[n] == '|');
	}
	if (out.len)
		return str_take(&out);
	str_fini(&out);
	return NULL;
}

char *conf_words_change(enum conf_key k, const char *text, char *const *change, size_t n)
{
	char *now = xstrdup(text ? text : "");
	for (size_t i = 0; i < n; i++) {
		char *word = *change[i] == '+' || *change[i] == '-' ? conf_words_canon(k, change[i] + 1) : NULL, *rest = now, *at;
		struct str out = STR_INIT;
		while (word && (at = str_next(&rest, ",")))
			if (strcasecmp(at, word))
				str_add_sep(&out, ",", at);
		if (word && *change[i] == '+')
			str_add_sep(&out, ",", word);
		free(now);
		now = word ? conf_words_canon(k, out.data ? out.data : "") : NULL;
		if (word && !now)
			now = xstrdup("");
		str_fini(&out);
		free(word);
		if (!now)
			return NULL;
	}
	return now;
}

/* --- values -------------------------------------------------------------------------------------- */
bool conf_bool_parse(const char *text, bool *ret)
{
	static const struct { const char *word; bool value; } words[] = {
		{ "yes", true }, { "no", false }, { "true", true }, { "false", false }, { "1", true }, { "0", false }, { "on", true }, { "off", false },
		{ "y", true }, { "n", false }, { "up", true }, { "down", false },
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcasecmp(text, words[i].word)) {
			*ret = words[i].value;
			return true;
		}
	return false;
}

static bool is_infinite(const char *s) { return !strcasecmp(s, "INFINITE") || !strcasecmp(s, "UNLIMITED") || !strcmp(s, "-1"); }

static int number_check(const struct conf_row *r, const char *text, uint64_t *ret, struct error *err)
{
	unsigned long long v, min = 0, max = UINT64_MAX - 1;
	if (is_infinite(text)) {
		*ret = UINT64_MAX;
		return 0;
	}
	if (*r->range)
		sscanf(r->range, "%llu-%llu", &min, &max);
	if (r->type == CT_MB) {
		uint64_t mb;
		if (mem_parse(text, &mb, NULL))
			return error_set(err, EINVAL, "%s: \"%s\" is not an amount of memory (MiB, or with K, M, G, T)", r->name, text);
		v = mb;
	} else if (str_to_u64(text, 0, UINT64_MAX - 1, &v)) {
		return error_set(err, EINVAL, "%s: \"%s\" is not a number", r->name, text);
	}
	if (v < min || v > max)
		return error_set(err, ERANGE, "%s: %s is outside %llu-%llu", r->name, text, min, max);
	*ret = v;
	return 0;
}

static int time_check(const struct conf_row *r, const char *text, uint64_t *ret, struct error *err)
{
	uint32_t v;
	if (is_infinite(text) || !strcasecmp(text, "NONE")) {
		*ret = UINT64_MAX;
		return 0;
	}
	if (timespec_parse_mins(text, &v, NULL))
		return error_set(err, EINVAL, "%s: \"%s\" is not a time (minutes, hours:minutes:seconds, days-hours, INFINITE)", r->name, text);
	*ret = v == TIME_INFINITE ? UINT64_MAX : r->type == CT_HMS ? (uint64_t)v * 60 : v;
	return 0;
}

static int port_check(const struct conf_row *r, const char *text, uint64_t *ret, struct error *err)
{
	unsigned first, last;
	int n = 0, got = sscanf(text, "%5u%n-%5u%n", &first, &n, &last, &n);
	if (got < 1 || text[n] || first < 1 || first > 65535 || (got == 2 && (last < first || last > 65535)))
		return error_set(err, EINVAL, "%s: \"%s\" is not a port (1-65535) nor a range first-last", r->name, text);
	*ret = first;
	return 0;
}

static int level_check(const struct conf_row *r, const char *text, uint64_t *ret, struct error *err)
{
	enum log_level level;
	if (log_level_parse(text, &level))
		return error_set(err, EINVAL, "%s: \"%s\" is none of quiet, fatal, error, info, verbose, debug, debug2 ... debug5", r->name, text);
	*ret = level;
	return 0;
}

/* "1-3,9" */
static int codes_check(const struct conf_row *r, const char *text, struct error *err)
{
	for (const char *p = text;; p++) {
		unsigned first, last;
		int n = 0, got = sscanf(p, "%3u%n-%3u%n", &first, &n, &last, &n);
		if (got < 1 || !isdigit((unsigned char)*p) || first > 255 || (got == 2 && (last < first || last > 255)) || (p[n] && p[n] != ','))
			return error_set(err, EINVAL, "%s: \"%s\" is not a list of exit codes (0-255) and ranges of them, as 1-3,9", r->name, text);
		p += n;
		if (!*p)
			return 0;
	}
}

int conf_value_check(enum conf_key k, const char *text, uint64_t *ret_num, struct error *err)
{
	const struct conf_row *r = &rows[k];
	bool b;
	*ret_num = 0;
	switch ((enum conf_type)r->type) {
	case CT_ONE:
		return word_check(r, text, strlen(text), err);
	case CT_WORDS:
		return words_check(r, text, err);
	case CT_NUM:
	case CT_SECS:
	case CT_MB:
		return number_check(r, text, ret_num, err);
	case CT_MINS:
	case CT_MAXT:
	case CT_HMS:
		return time_check(r, text, ret_num, err);
	case CT_BOOL:
		if (!conf_bool_parse(text, &b))
			return error_set(err, EINVAL, "%s: \"%s\" is neither yes nor no", r->name, text);
		*ret_num = b;
		return 0;
	case CT_LEVEL:
		return level_check(r, text, ret_num, err);
	case CT_PORT:
		return port_check(r, text, ret_num, err);
	case CT_CODES:
		return codes_check(r, text, err);
	case CT_STR:
	case CT_LIST:
	case CT_USER:
	case CT_HOSTS:
		return 0;
	}
	return 0;
}

uint64_t conf_value_num(enum conf_key k, const char *text)
{
	uint64_t v;
	return conf_value_check(k, text, &v, NULL) ? UINT64_MAX : v;
}
