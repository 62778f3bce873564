/* opt.c - the option engine: walks argv by a table of rows, as getopt_long would
 *
 * The grammar is getopt_long's: bundled letters, a value glued to its letter or in the next word, --name=value,
 * unique prefixes of long names (an exact name wins; names of one id are one option), "--" ends options, a lone "-" is an operand. The
 * sentences of errors are getopt_long's too, because scripts and people know them. Nothing here keeps state between calls, prints
 * (but for help and usage) or exits. Invariant while parsing: argv[first..next) are the operands met so far. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/opt.h"

struct walk {
	const struct opt_row *rows;
	size_t n;
	int argc;
	char **argv;
	int next;              /* word to look at */
	opt_fn fn;
	void *arg;
	struct error *err;
};

static int row_call(const struct walk *w, const struct opt_row *row, const char *value)
{
	if (row->todo) {
		char letter[3] = { '-', row->letter, 0 };
		return error_set(w->err, ESLURM_NOT_SUPPORTED, "option '%s%s' is not supported by this version", row->name ? "--" : "",
				 row->name ? row->name : letter);
	}
	return w->fn(row, value, w->arg, w->err);
}

static bool row_same(const struct opt_row *a, const struct opt_row *b)
{
	return a->id == b->id && a->arg == b->arg;
}

static int name_ambiguous(const struct walk *w, const char *name, size_t len)
{
	struct str list = STR_INIT;
	for (size_t i = 0; i < w->n; i++)
		if (w->rows[i].name && !strncmp(w->rows[i].name, name, len))
			str_addf(&list, " '--%s'", w->rows[i].name);
	int rc = error_set(w->err, EINVAL, "option '--%.*s' is ambiguous; possibilities:%s", (int)len, name, list.data);
	str_fini(&list);
	return rc;
}

/* The row that `name` (of `len` bytes) means, by full name or unique prefix. */
static int name_find(const struct walk *w, const char *name, size_t len, const struct opt_row **ret)
{
	const struct opt_row *found = NULL;
	bool ambiguous = false;
	for (size_t i = 0; i < w->n; i++) {
		const struct opt_row *row = &w->rows[i];
		if (!row->name || strncmp(row->name, name, len))
			continue;
		if (!row->name[len]) {
			*ret = row;
			return 0;
		}
		if (found && !row_same(found, row))
			ambiguous = true;
		if (!found)
			found = row;
	}
	if (ambiguous)
		return name_ambiguous(w, name, len);
	if (!found)
		return error_set(w->err, EINVAL, "unrecognized option '--%s'", name);
	*ret = found;
	return 0;
}

static int long_take(struct walk *w, const char *text)
{
	const char *eq = strchr(text, '=');
	size_t len = eq ? (size_t)(eq - text) : strlen(text);
	const struct opt_row *row = NULL;
	int rc = name_find(w, text, len, &row);
	if (rc < 0)
		return rc;
	const char *value = eq ? eq + 1 : NULL;
	if (value && row->arg == OPT_NONE)
		return error_set(w->err, EINVAL, "option '--%s' doesn't allow an argument", row->name);
	if (!value && row->arg == OPT_REQUIRED) {
		if (w->next >= w->argc)
			return error_set(w->err, EINVAL, "option '--%s' requires an argument", row->name);
		value = w->argv[w->next++];
	}
	return row_call(w, row, value);
}

static const struct opt_row *letter_find(const struct walk *w, char letter)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->rows[i].letter == letter)
			return &w->rows[i];
	return NULL;
}

static int letters_take(struct walk *w, const char *text)
{
	for (const char *at = text; *at; at++) {
		const struct opt_row *row = letter_find(w, *at);
		if (!row)
			return error_set(w->err, EINVAL, "invalid option -- '%c'", *at);
		const char *value = NULL;
		if (row->arg != OPT_NONE && at[1])
			value = at + 1;
		else if (row->arg == OPT_REQUIRED) {
			if (w->next >= w->argc)
				return error_set(w->err, EINVAL, "option requires an argument -- '%c'", *at);
			value = w->argv[w->next++];
		}
		int rc = row_call(w, row, value);
		if (rc < 0 || value)
			return rc;
	}
	return 0;
}

/* Move argv[first..from) behind argv[from..to), so that the operands stay last. Returns the new `first`. */
static int operands_shift(char **argv, int first, int from, int to)
{
	int count = from - first, taken = to - from;
	if (count == 0)
		return to;
	char **keep = xmemdup(&argv[first], (size_t)count * sizeof(*keep));
	memmove(&argv[first], &argv[from], (size_t)taken * sizeof(*keep));
	memcpy(&argv[first + taken], keep, (size_t)count * sizeof(*keep));
	xfree(keep);
	return first + taken;
}

int opt_parse(const struct opt_row *rows, size_t n, int argc, char **argv, bool stop_at_operand, opt_fn fn, void *arg, struct error *err)
{
	struct walk w = { .rows = rows, .n = n, .argc = argc, .argv = argv, .next = 1, .fn = fn, .arg = arg, .err = err };
	int first = 1;
	while (w.next < argc) {
		int from = w.next;
		const char *word = argv[w.next];
		if (word[0] != '-' || !word[1]) {
			if (stop_at_operand)
				return first;
			w.next++;
			continue;
		}
		w.next++;
		bool end = !strcmp(word, "--");
		int rc = end ? 0 : word[1] == '-' ? long_take(&w, word + 2) : letters_take(&w, word + 1);
		if (rc < 0)
			return rc;
		first = operands_shift(argv, first, from, w.next);
		if (end)
			break;
	}
	return first;
}

/* --- help and usage ----------------------------------------------------------------------------- */

#define HELP_COLUMN 30
#define HELP_WIDTH 79

/* Words of `text`, wrapped at HELP_WIDTH, each line after the first indented to `indent`; `at` is the column we are in. */
static void words_print(const char *text, int at, int indent)
{
	while (*text) {
		int len = (int)strcspn(text, " ");
		if (at > indent && at + 1 + len > HELP_WIDTH) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%.*s", len, text);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

/* "=name" and "[=name]"; short options have a blank or nothing instead of '='. */
static void meta_add(struct str *s, const struct opt_row *row)
{
	const char *meta = row->meta ? row->meta : "value";
	const char *sep = row->name ? "=" : row->arg == OPT_REQUIRED ? " " : "";
	if (row->arg == OPT_REQUIRED)
		str_addf(s, "%s%s", sep, meta);
	else if (row->arg == OPT_OPTIONAL)
		str_addf(s, "[%s%s]", sep, meta);
}

void opt_print_help(const char *usage, const struct opt_row *rows, size_t n)
{
	printf("Usage: %s\n", usage);
	opt_print_group("Options", rows, n);
}

void opt_print_group(const char *title, const struct opt_row *rows, size_t n)
{
	printf("\n%s:\n", title);
	struct str s = STR_INIT;
	for (size_t i = 0; i < n; i++) {
		const struct opt_row *row = &rows[i];
		if (!row->help)
			continue;
		if (!strcmp(row->help, "-")) {
			/* A row that only starts a group: its name is the title. */
			printf("\n%s:\n", row->name);
			continue;
		}
		str_reset(&s);
		if (row->letter)
			str_addf(&s, "  -%c%s", row->letter, row->name ? ", " : "");
		else
			str_add(&s, "      ");
		if (row->name)
			str_addf(&s, "--%s", row->name);
		meta_add(&s, row);
		if (s.len + 1 < HELP_COLUMN)
			printf("%-*s", HELP_COLUMN, s.data);
		else
			printf("%s\n%*s", s.data, HELP_COLUMN, "");
		if (row->todo) {
			char *text = xasprintf("%s (not supported yet)", row->help);
			words_print(text, HELP_COLUMN, HELP_COLUMN);
			xfree(text);
		} else {
			words_print(row->help, HELP_COLUMN, HELP_COLUMN);
		}
	}
	str_fini(&s);
}

void opt_print_usage(const char *cmd, const struct opt_row *rows, size_t n, const char *tail)
{
	int indent = printf("Usage: %s ", cmd), at = indent;
	struct str s = STR_INIT;
	for (size_t i = 0; i <= n; i++) {
		str_reset(&s);
		if (i == n) {
			str_add(&s, tail ? tail : "");
		} else if (!rows[i].help || !strcmp(rows[i].help, "-") || rows[i].todo) {
			continue;
		} else if (rows[i].letter && rows[i].arg != OPT_OPTIONAL) {
			str_addf(&s, "[-%c", rows[i].letter);
			if (rows[i].arg == OPT_REQUIRED)
				str_addf(&s, " %s", rows[i].meta ? rows[i].meta : "value");
			str_add_c(&s, ']');
		} else {
			if (rows[i].name)
				str_addf(&s, "[--%s", rows[i].name);
			else
				str_addf(&s, "[-%c", rows[i].letter);
			meta_add(&s, &rows[i]);
			str_add_c(&s, ']');
		}
		if (!s.len)
			continue;
		if (at > indent && at + 1 + (int)s.len > HELP_WIDTH) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%s", s.data);
		at += (int)s.len;
	}
	putchar('\n');
	str_fini(&s);
}

bool opt_clusters(const char *prog, const char *list, const char *own)
{
	bool found = false;
	char *copy = xstrdup(list), *cursor = copy;
	for (char *name; (name = str_next(&cursor, ","));) {
		bool known = str_eq(name, own) || str_eq_nocase(name, "all");
		found = found || known;
		if (!known)
			fprintf(stderr, "%s: error: No cluster '%s' known by database.\n", prog, name);
	}
	if (!found)
		fprintf(stderr, "%s: error: '%s' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.\n", prog, list);
	free(copy);
	return found;
}
