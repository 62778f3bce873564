/* batchscript_test.c - #SBATCH lines as 26.05.5 read them; cases C25-C29, D41 */
#include "base/testing.h"
#include "base/str.h"
#include "model/batchscript.h"

#define SH "#!/bin/bash\n"

static void words(void **state)
{
	static const struct { const char *script, *out; } rows[] = { /* words joined by '|', directives by "\n" */
		{ SH "#SBATCH --job-name=my_nice_job      # sets the job name\nx", "--job-name=my_nice_job" },       /* C28 */
		{ SH "#SBATCH --job-name=my_nice_job      (sets the job name)\nx", "--job-name=my_nice_job|(sets|the|job|name)" },
		{ SH "#SBATCH -o my\\ file.out\nx", "-o|my file.out" },                                               /* C29 */
		{ SH "#SBATCH --job-name='X Y' -N 2\n#SBATCH -o \"spaces\\ out\" -e 'a\\b'\n", "--job-name=X Y|-N|2\n-o|spaces out|-e|ab" },
		{ SH "#SBATCH -J a#b --comment=c#d\n  #SBATCH -N 3\n", "-J|a" },
		{ SH "  # indented comment\n#SBATCH -J after_indent\n", "-J|after_indent" },
		{ SH "##SBATCH -J no\n#SBATCH\n#SBATCH -J yes\n# SBATCH -N 4\n#SBATCH\t-t 3\n", "-J|yes\n-t|3" },
		{ SH "#SBATCHX -N3\n", "X|-N3" }, { SH "#SBATCH -J \"a\"b\"c d\"e -t 5 #x\n", "-J|abc de|-t|5" },
		{ SH "#SBATCH -J nf-see (1)\n#SBATCH -t 7\n", "-J|nf-see|(1)\n-t|7" },                                /* D41 */
		{ SH "#SBATCH -J a\\\"b -t \"1\\\"2\"\n", "-J|a\"b|-t|1\"2" }, { SH "#SBATCH -J \\#b\n", "-J|#b" }, { SH "#SBATCH -J a\tb\n", "-J|a|b" },
		{ SH "#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2\n", "-N|1\n-N|2" }, { SH "#SBATCH -J ''\n", "-J" }, { SH "#SBATCH -N1", "-N1" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct batchscript b;
		struct error err = { 0 };
		struct str s = STR_INIT;
		assert_int_equal(batchscript_parse(rows[i].script, strlen(rows[i].script), &b, &err), 0);
		for (size_t d = 0; d < b.count; d++) {
			if (d)
				str_add_c(&s, '\n');
			for (size_t w = 0; w < b.dir[d].count; w++)
				str_addf(&s, "%s%s", w && b.dir[d].word[w][0] ? "|" : "", b.dir[d].word[w]);
		}
		assert_string_equal(s.data, rows[i].out);
		str_fini(&s);
		batchscript_fini(&b);
	}
}

static void places(void **state)
{
	struct batchscript b;
	const char *late = SH "set -euo pipefail\n#SBATCH -A x\n#SBATCH -N 2\n", *het = SH "#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2\n#PBS -N x\n";
	struct error err = { 0 };
	assert_int_equal(batchscript_parse(late, strlen(late), &b, &err), 0); /* C26 */
	assert_int_equal(b.count, 0);
	assert_int_equal(b.ignored, 2);
	assert_int_equal(b.first_command, 2);
	batchscript_fini(&b);
	assert_int_equal(batchscript_parse(het, strlen(het), &b, &err), 0);
	assert_int_equal(b.components, 2);
	assert_int_equal(b.dir[1].component, 1);
	assert_int_equal(b.dir[1].line, 4);
	assert_int_equal(b.pbs, 1);
	batchscript_fini(&b);
	assert_true(batchscript_parse(SH "#SBATCH -J \"open\nx", 30, &b, &err) < 0);
	assert_string_equal(err.line, "line 2: Unmatched `\"` in [ -J \"open]");
}

static void not_a_script(void **state) /* C25 */
{
	static const struct { const char *text, *first; size_t len; } rows[] = {
		{ "", "Batch script is empty!", 0 }, { "hostname\n", "This does not look like a batch script.  The first", 9 },
		{ "#!/bin/bash\r\nx\r\n", "Batch script contains DOS line breaks (\\r\\n)", 16 }, { "#\n", "This does not look like", 2 },
		{ "#!/bin/bash\nx\0y\n", "The Slurm controller does not allow scripts that", 16 }, { "\n#!/bin/bash\n", "This does not look like", 13 },
	};
	struct error err = { 0 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(batchscript_check(rows[i].text, rows[i].len, &err) < 0);
		assert_true(str_starts(err.line, rows[i].first));
	}
	assert_int_equal(batchscript_check("#! /bin/sh\n", 11, &err), 0);
	char *s = batchscript_wrap("true");
	assert_string_equal(s, "#!/bin/sh\n# This script was created by sbatch --wrap.\n\ntrue\n");
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(words), cmocka_unit_test(places), cmocka_unit_test(not_a_script) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
