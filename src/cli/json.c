/* json.c - the writer of JSON and YAML text (see json.h). Tables are compiled and run in json_table.c. */
#include <assert.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/json.h"
#include "cli/jobview.h"
#include "cli/table.h"

void json_init(struct json *j, struct str *out, bool yaml)
{
	const char *style = getenv(yaml ? "SLURM_YAML" : "SLURM_JSON");
	*j = (struct json){ .out = out, .yaml = yaml, .compact = !yaml && style && !strcmp(style, "compact"), .depth = -1 };
	if (yaml)
		str_add(out, "%YAML 1.1\n---");
}

static void put_indent(struct json *j, int n)
{
	static const char blanks[] = "                                                ";
	for (; n > 0; n -= 48)
		str_add_n(j->out, blanks, (size_t)(n > 48 ? 48 : n));
}

/* Bytes of the UTF-8 character at p, 0 if there is none: text of users may be any bytes, JSON must be UTF-8. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
	static const struct { unsigned char from, to, len, second_from, second_to; } kind[] = {
		{ 0x00, 0x7f, 1, 0, 0 },          { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf },
		{ 0xed, 0xed, 3, 0x80, 0x9f },    { 0xee, 0xef, 3, 0x80, 0xbf }, { 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf },
		{ 0xf4, 0xf4, 4, 0x80, 0x8f },
	};
	for (size_t k = 0; k < sizeof(kind) / sizeof(kind[0]); k++) {
		if (*p < kind[k].from || *p > kind[k].to)
			continue;
		size_t len = kind[k].len;
		if (len > n || (len > 1 && (p[1] < kind[k].second_from || p[1] > kind[k].second_to)))
			return 0;
		for (size_t i = 2; i < len; i++)
			if ((p[i] & 0xc0) != 0x80)
				return 0;
		return len;
	}
	return 0;
}

static void put_json_string(struct str *out, const char *p, size_t n)
{
	str_reserve(out, n * 2 + 2);
	str_add_c(out, '"');
	size_t done = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != '/')
			continue;
		size_t len = utf8_len((const unsigned char *)p + i, n - i);
		if (len > 1) {
			i += len - 1;
			continue;
		}
		str_add_n(out, p + done, i - done);
		done = i + 1;
		switch (c) {
		case '"': str_add(out, "\\\""); break;
		case '\\': str_add(out, "\\\\"); break;
		case '/': str_add(out, "\\/"); break;
		case '\n': str_add(out, "\\n"); break;
		case '\t': str_add(out, "\\t"); break;
		case '\r': str_add(out, "\\r"); break;
		case '\b': str_add(out, "\\b"); break;
		case '\f': str_add(out, "\\f"); break;
		default: str_addf(out, "\\u%04x", len ? c : 0xfffd); break;
		}
	}
	str_add_n(out, p + done, n - done);
	str_add_c(out, '"');
}

/* May it stand without quotes? Only when nothing in it could mean anything. */
static bool yaml_is_plain(const char *p, size_t n)
{
	static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.=,()+ -@%^~$;*[]:";
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/(.+";
	if (n && (!strchr(first, p[0]) || p[n - 1] == ' ' || p[n - 1] == ':') && !(n > 1 && p[0] == '-' && p[1] != ' '))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!p[i] || !strchr(inside, p[i]) || (p[i] == ':' && i + 1 < n && p[i + 1] == ' '))
			return false;
	return true;
}

void json_begin(struct json *j, const char *key)
{
	if (j->depth < 0 || j->keyed) {
		j->keyed = false;
		return;
	}
	bool first = j->level[j->depth].empty;
	j->level[j->depth].empty = false;
	if (j->yaml) {
		str_add_c(j->out, '\n');
		put_indent(j, j->level[j->depth].indent);
		if (j->level[j->depth].list)
			str_add(j->out, "-");
		else
			str_addf(j->out, "!!str %s:", key);
		return;
	}
	if (!first)
		str_add_c(j->out, ',');
	if (!j->compact) {
		str_add_c(j->out, '\n');
		put_indent(j, 2 * (j->depth + 1));
	}
	if (!j->level[j->depth].list) {
		str_add_c(j->out, '"');
		str_add(j->out, key);
		str_add(j->out, j->compact ? "\":" : "\": ");
	}
}

void json_open(struct json *j, const char *key, char kind)
{
	assert(j->depth + 1 < JSON_DEPTH);
	json_begin(j, key);
	int indent = 0;
	if (j->depth >= 0)   /* a list in a map stands at the map's own column */
		indent = j->level[j->depth].indent + (kind == '[' && !j->level[j->depth].list ? 0 : 2);
	if (j->yaml)
		str_add(j->out, kind == '{' ? " !!map" : " !!seq");
	else
		str_add_c(j->out, kind);
	j->depth++;
	j->level[j->depth].list = kind == '[';
	j->level[j->depth].empty = true;
	j->level[j->depth].indent = indent;
}

void json_close(struct json *j)
{
	assert(j->depth >= 0);
	bool list = j->level[j->depth].list, empty = j->level[j->depth].empty;
	j->depth--;
	if (j->yaml) {
		if (empty)
			str_add(j->out, list ? " []" : " {}");
		return;
	}
	if (!empty && !j->compact) {
		str_add_c(j->out, '\n');
		put_indent(j, 2 * (j->depth + 1));
	}
	str_add_c(j->out, list ? ']' : '}');
}

void json_finish(struct json *j)
{
	assert(j->depth < 0);
	str_add(j->out, j->yaml ? "\n...\n\n" : "\n");
}

void json_value_str(struct json *j, const char *p, size_t n)
{
	if (!j->yaml) {
		put_json_string(j->out, p, n);
		return;
	}
	str_add(j->out, n ? " !!str " : " !!str");
	if (yaml_is_plain(p, n)) {
		str_add_n(j->out, p, n);
		return;
	}
	put_json_string(j->out, p, n);
}

void json_str(struct json *j, const char *key, struct slice text)
{
	json_begin(j, key);
	json_value_str(j, text.p ? text.p : "", text.n);
}

void json_text(struct json *j, const char *key, const char *text)
{
	json_str(j, key, (struct slice){ text ? text : "", text ? strlen(text) : 0 });
}

void json_u64(struct json *j, const char *key, uint64_t v)
{
	json_begin(j, key);
	if (j->yaml)
		str_add(j->out, " !!int ");
	put_u64(j->out, v);
}

void json_i64(struct json *j, const char *key, int64_t v)
{
	json_begin(j, key);
	if (j->yaml)
		str_add(j->out, " !!int ");
	put_i64(j->out, v);
}

void json_float(struct json *j, const char *key, double v)
{
	json_begin(j, key);
	if (j->yaml)
		str_addf(j->out, " !!float %f", v);
	else if (v == (double)(int64_t)v)
		str_addf(j->out, "%.1f", v);
	else
		str_addf(j->out, "%.17g", v);
}

void json_bool(struct json *j, const char *key, bool v)
{
	json_begin(j, key);
	if (j->yaml)
		str_add(j->out, " !!bool ");
	str_add(j->out, v ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	json_begin(j, key);
	str_add(j->out, j->yaml ? " !!null null" : "null");
}

void json_num(struct json *j, const char *key, bool set, bool infinite, uint64_t v)
{
	json_open(j, key, '{');
	json_bool(j, "set", set);
	json_bool(j, "infinite", infinite);
	json_u64(j, "number", set ? v : 0);
	json_close(j);
}

void json_words(struct json *j, const char *key, struct slice list)
{
	json_open(j, key, '[');
	for (size_t at = 0; list.p && at < list.n;) {
		size_t n = 0;
		while (at + n < list.n && list.p[at + n] != ',')
			n++;
		if (n)
			json_str(j, NULL, (struct slice){ list.p + at, n });
		at += n + 1;
	}
	json_close(j);
}

void json_exit(struct json *j, const char *key, uint32_t status, bool pending)
{
	int s = (int)status;
	bool signaled = WIFSIGNALED(s);
	const char *name = signaled ? sigabbrev_np(WTERMSIG(s)) : NULL;
	json_open(j, key, '{');
	json_open(j, "status", '[');
	json_text(j, NULL, signaled ? (WCOREDUMP(s) ? "CORE_DUMPED" : "SIGNALED") : WEXITSTATUS(s) ? "ERROR" : "SUCCESS");
	json_close(j);
	json_num(j, "return_code", !signaled, false, (uint64_t)WEXITSTATUS(s));
	json_open(j, "signal", '{');
	json_num(j, "id", signaled, false, signaled ? (uint64_t)WTERMSIG(s) : 0);
	json_text(j, "name", name);
	json_close(j);
	json_close(j);
}

int json_parser_check(const char *prog, const char *parser)
{
	static const char *const spoken[] = { "v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42" };
	if (!parser || !*parser)
		return 0;
	if (!strcmp(parser, "list")) {
		printf("Possible data_parser plugins:\ndata_parser/v0.0.45\n");
		return 1;
	}
	size_t n = strcspn(parser, "+");
	const char *name = str_starts(parser, "data_parser/") ? parser + strlen("data_parser/") : parser;
	n -= (size_t)(name - parser);
	if (n == strlen(spoken[0]) && !strncmp(name, spoken[0], n) && !name[n])
		return 0;
	for (size_t i = 0; i < sizeof(spoken) / sizeof(spoken[0]); i++)
		if (n == strlen(spoken[i]) && !strncmp(name, spoken[i], n)) {
			log_error("data_parser/%s is not supported yet: v0.0.45 without flags is", name);
			return 2;
		}
	log_error("unable to find plugin: data_parser/%s: --json=list shows what there is", name);
	return 2;
}

static void meta(struct json *j, const char *const *argv, int argc, const char *warning)
{
	const struct passwd *pw = getpwuid(geteuid());
	const struct group *gr = getgrgid(getegid());
	const char *base = argc ? strrchr(argv[0], '/') : NULL;
	json_open(j, "meta", '{');
	json_open(j, "plugin", '{');
	json_text(j, "type", "");
	json_text(j, "name", "");
	json_text(j, "data_parser", "data_parser/v0.0.45");
	json_text(j, "accounting_storage", "accounting_storage/slurmdbd");
	json_close(j);
	json_open(j, "client", '{');
	json_text(j, "source", "");
	json_text(j, "user", pw ? pw->pw_name : "");
	json_text(j, "group", gr ? gr->gr_name : "");
	json_close(j);
	json_open(j, "command", '[');
	for (int i = 0; i < argc; i++)
		json_text(j, NULL, i == 0 && base ? base + 1 : argv[i]);
	json_close(j);
	json_open(j, "slurm", '{');
	json_open(j, "version", '{');
	const char *version = BERTH_VERSION;   /* "26.05.5" */
	json_str(j, "major", (struct slice){ version, 2 });
	json_text(j, "micro", version + 6);
	json_str(j, "minor", (struct slice){ version + 3, 2 });
	json_close(j);
	json_text(j, "release", version);
	json_text(j, "cluster", show_env.cluster);
	json_close(j);
	json_close(j);
	json_open(j, "errors", '[');
	json_close(j);
	json_open(j, "warnings", '[');
	if (warning) {
		json_open(j, NULL, '{');
		json_text(j, "description", warning);
		json_text(j, "source", "");
		json_close(j);
	}
	json_close(j);
}

void json_end(struct json *j, const char *const *argv, int argc)
{
	meta(j, argv, argc, NULL);
	json_close(j);
	json_finish(j);
}

void json_reply_print(const struct json_reply *r, bool yaml, const char *const *argv, int argc)
{
	struct str out = STR_INIT;
	struct json j;
	struct wire_skim skim;
	struct wire_field f;
	size_t taken = 0;
	str_reserve(&out, OUT_CHUNK + 65536);
	json_init(&j, &out, yaml);
	json_open(&j, NULL, '{');
	json_open(&j, r->name, '[');
	struct json_program *program = json_compile(&j, NULL, r->rows, r->n_rows, r->source);
	wire_skim_start(&skim, r->data, r->len);
	while (wire_skim_next(&skim, &f)) {
		void *row = f.number == r->field ? r->read(f.data, f.len, r->arg) : NULL;
		if (!row)
			continue;
		json_run(program, &j, row);
		taken++;
		if (out.len > OUT_CHUNK)
			out_flush(&out);
	}
	json_program_destroy(program);
	json_close(&j);
	if (r->backfill)
		json_num(&j, "last_backfill", true, false, show_env.now);
	json_num(&j, "last_update", true, false, show_env.now);
	meta(&j, argv, argc, taken ? NULL : r->none);
	json_close(&j);
	json_finish(&j);
	out_flush(&out);
	str_fini(&out);
}
