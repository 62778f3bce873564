/* Proves: opt_parse walks argv as getopt_long does, with its sentences; --usage keeps the bracket grammar. */
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/str.h"
#include "cli/opt.h"

enum { ID_NODES = 1, ID_NTASKS, ID_PER_NODE, ID_LABEL, ID_QUIET, ID_IMMEDIATE, ID_NETWORK };
static const struct opt_row rows[] = {
	{ .name = "nodes", .letter = 'N', .arg = OPT_REQUIRED, .meta = "N", .help = "number of nodes", .id = ID_NODES },
	{ .name = "ntasks", .letter = 'n', .arg = OPT_REQUIRED, .meta = "N", .help = "number of tasks", .id = ID_NTASKS },
	{ .name = "ntasks-per-node", .arg = OPT_REQUIRED, .meta = "N", .help = "tasks on each node", .id = ID_PER_NODE },
	{ .name = "tasks-per-node", .arg = OPT_REQUIRED, .id = ID_PER_NODE },
	{ .name = "label", .letter = 'l', .help = "label lines", .id = ID_LABEL },
	{ .name = "quiet", .letter = 'Q', .help = "say less", .id = ID_QUIET },
	{ .name = "immediate", .letter = 'I', .arg = OPT_OPTIONAL, .meta = "secs", .help = "do not wait", .id = ID_IMMEDIATE },
	{ .name = "network", .arg = OPT_REQUIRED, .help = "network", .id = ID_NETWORK, .todo = true },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int note(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	str_addf(arg, "%d=%s;", row->id, value ? value : "");
	return value && !strcmp(value, "bad") ? error_set(err, EINVAL, "bad value") : 0;
}

/* Parses the words of `line`; *out gets what was seen, then '|' and the operands, or '!' and the error. */
static void parse(const char *line, bool stop, char *out, size_t size)
{
	char *copy = strdup(line), *cursor = copy, *argv[32] = { "cmd" };
	int argc = 1;
	for (char *word; (word = str_next(&cursor, " "));)
		if (*word)
			argv[argc++] = word;
	struct str s = STR_INIT;
	struct error err = { 0 };
	int first = opt_parse(rows, ROWS, argc, argv, stop, note, &s, &err);
	if (first < 0) {
		str_addf(&s, "!%s", err.line);
	} else {
		for (int i = first; i < argc; i++)
			str_addf(&s, "|%s", argv[i]);
	}
	snprintf(out, size, "%s", s.data);
	str_fini(&s);
	free(copy);
}

static void test_words(void **state)
{
	(void)state;
	static const struct { const char *line; bool stop; const char *seen; } cases[] = {
		{ "-N4 -n 8 true -l", true, "1=4;2=8;|true|-l" },
		{ "-lQN4 true", true, "4=;5=;1=4;|true" },
		{ "a -l b --nodes=2 c", false, "4=;1=2;|a|b|c" },
		{ "a -N 2 -- -l b", false, "1=2;|a|-l|b" },
		{ "-l - -Q", false, "4=;5=;|-" },
		{ "--nodes 3 --lab x", true, "1=3;4=;|x" },
		{ "--ntasks=3 x", true, "2=3;|x" },
		{ "--tasks=3 x", true, "3=3;|x" },
		{ "-I x", true, "6=;|x" },
		{ "-I5 x", true, "6=5;|x" },
		{ "--immediate=7 x", true, "6=7;|x" },
		{ "--nodes= x", true, "1=;|x" },
		{ "--nodes", true, "!option '--nodes' requires an argument" },
		{ "-N", true, "!option requires an argument -- 'N'" },
		{ "--label=3 x", true, "!option '--label' doesn't allow an argument" },
		{ "--bogus=3", true, "!unrecognized option '--bogus=3'" },
		{ "-lZ", true, "4=;!invalid option -- 'Z'" },
		{ "--n 3 x", true, "!option '--n' is ambiguous; possibilities: '--nodes' '--ntasks' '--ntasks-per-node' '--network'" },
		{ "--network=x y", true, "!option '--network' is not supported by this version" },
		{ "-N bad y", true, "1=bad;!bad value" },
		{ "", true, "" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[512];
		parse(cases[i].line, cases[i].stop, out, sizeof(out));
		assert_string_equal(out, cases[i].seen);
	}
}

/* What fn prints on stdout, malloc'd. */
static char *printed(void (*fn)(void))
{
	FILE *f = tmpfile();
	assert_non_null(f);
	fflush(stdout);
	int keep = dup(1);
	dup2(fileno(f), 1);
	fn();
	fflush(stdout);
	dup2(keep, 1);
	close(keep);
	char *text = calloc(1, 65536);
	rewind(f);
	size_t got = fread(text, 1, 65535, f);
	assert_true(got > 0);
	fclose(f);
	return text;
}

static void usage_fn(void) { opt_print_usage("srun", rows, ROWS, "executable [args...]"); }
static void help_fn(void) { opt_print_help("srun [OPTIONS...] executable [args...]", rows, ROWS); }

static void test_usage(void **state)
{
	(void)state;
	char *text = printed(usage_fn);
	regex_t re;
	assert_int_equal(regcomp(&re, "^Usage: srun([ \n]+\\[(-[A-Za-z]( [^]]+)?|--[a-z-]+(=[^]]+|\\[=[^]]+\\])?)\\])+[ \n]+executable \\[args\\.\\.\\.\\]\n$",
				 REG_EXTENDED), 0);
	assert_int_equal(regexec(&re, text, 0, NULL, 0), 0);
	regfree(&re);
	assert_non_null(strstr(text, "[-N N]"));
	assert_non_null(strstr(text, "[--immediate[=secs]]"));
	free(text);
}

static void test_help(void **state)
{
	(void)state;
	char *text = printed(help_fn);
	assert_true(str_starts(text, "Usage: srun [OPTIONS...] executable [args...]\n"));
	assert_non_null(strstr(text, "  -N, --nodes=N               number of nodes\n"));
	assert_non_null(strstr(text, "  -I, --immediate[=secs]      do not wait\n"));
	assert_null(strstr(text, " --tasks-per-node"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words), cmocka_unit_test(test_usage), cmocka_unit_test(test_help) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
