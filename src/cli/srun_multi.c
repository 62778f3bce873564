/* srun_multi.c - reads the file of --multi-prog: "ranks program arguments", one a line
 *
 * srun(1), MULTIPLE PROGRAM CONFIGURATION: ranks are numbers and ranges, or '*' for those not named before; '#' begins a comment; a backslash at the end
 * of a line continues it; single quotes keep white space together; words behind the file on the command line are more arguments of each program. %t and %o are put in where the task starts. Each task of the step must have a line. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/srun.h"
#include "model/idset.h"

/* Next line with its continuations; NULL at the end. Comments and empty lines are skipped. `number`: of its last line in the file. */
static char *line_read(FILE *f, struct str *s, unsigned *number)
{
	char *buf = NULL;
	size_t size = 0;
	ssize_t n;
	str_reset(s);
	while ((n = getline(&buf, &size, f)) >= 0) {
		++*number;
		while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '\r'))
			buf[--n] = 0;
		bool goes_on = n > 0 && buf[n - 1] == '\\';
		if (goes_on)
			buf[n - 1] = ' ';
		str_add(s, buf);
		if (goes_on)
			continue;
		const char *text = s->data + strspn(s->data, " \t");
		if (*text && *text != '#')
			break;
		str_reset(s);
	}
	free(buf);
	return s->len ? s->data : NULL;
}

/* The next word, in place: white space ends it except between single quotes, which are taken away; double quotes are text. NULL: none is left. */
static char *word_next(char **at)
{
	char *from = *at + strspn(*at, " \t"), *to = from, *word = from;
	bool quoted = false;
	if (!*from)
		return NULL;
	for (; *from && (quoted || !strchr(" \t", *from)); from++)
		if (*from == '\'')
			quoted = !quoted;
		else
			*to++ = *from;
	*at = *from ? from + 1 : from;
	*to = 0;
	return word;
}

/* "ranks program arguments"; what srun was given behind the file follows, as with the reference. */
static Pb__MultiProg *line_parse(char *line, int argc, char **argv)
{
	Pb__MultiProg *m = xcalloc(1, sizeof(*m));
	size_t cap = 0;
	pb__multi_prog__init(m);
	for (char *word; (word = word_next(&line));) {
		if (!m->ranks) {
			m->ranks = xstrdup(word);
			continue;
		}
		m->argv = xgrow(m->argv, &cap, m->n_argv + 1, sizeof(*m->argv));
		m->argv[m->n_argv++] = xstrdup(word);
	}
	for (int i = 1; m->n_argv && i < argc; i++) {
		m->argv = xgrow(m->argv, &cap, m->n_argv + 1, sizeof(*m->argv));
		m->argv[m->n_argv++] = xstrdup(argv[i]);
	}
	return m;
}

/* Marks the ranks of a line in `seen`; false: they make no sense, have a line already (which was said), or there is no program. */
static bool ranks_mark(const Pb__MultiProg *m, struct bitset *seen, uint32_t tasks)
{
	struct bitset *set;
	if (!m->n_argv)
		return false;
	if (!strcmp(m->ranks, "*")) {
		bitset_fill(seen);
		return true;
	}
	if (idset_parse(m->ranks, 1u << 20, &set, NULL) < 0) {
		log_error("Invalid task range specification (%s)", m->ranks);
		return false;
	}
	bool once = true;
	bitset_for(set, rank)
		if (once && rank >= tasks) {
			log_error("Invalid task id, %u >= ntasks", rank);
			once = false;
		}
	for (uint32_t i = 0; once && i < tasks; i++)
		if (bitset_has(set, i)) {
			once = !bitset_has(seen, i);
			if (!once)
				log_error("Duplicate record for task %u", i);
			bitset_set(seen, i);
		}
	bitset_destroy(set);
	return once;
}

int multi_read(const struct srun *s, const char *path, Pb__MultiProg ***ret, size_t *ret_n)
{
	FILE *f = fopen(path, "re");
	if (!f) {
		log_error("Error reading multi_prog config file %s", path);
		return srun_exit_code(1);
	}
	struct str text = STR_INIT;
	struct bitset *seen = bitset_create(s->task_count);
	size_t cap = 0, n = 0;
	Pb__MultiProg **list = NULL;
	int rc = 0;
	unsigned number = 0;
	for (char *line; !rc && (line = line_read(f, &text, &number));) {
		list = xgrow(list, &cap, n + 1, sizeof(*list));
		list[n++] = line_parse(line, s->argc, s->argv);
		if (!ranks_mark(list[n - 1], seen, s->task_count)) {
			log_error("Line %u of configuration file %s invalid", number, path);
			rc = srun_exit_code(1);
		}
	}
	for (uint32_t i = 0; !rc && i < s->task_count; i++)
		if (!bitset_has(seen, i)) {
			log_error("Configuration file %s invalid, no record for task id %u", path, i);
			rc = srun_exit_code(1);
		}
	fclose(f);
	str_fini(&text);
	bitset_destroy(seen);
	*ret = list;
	*ret_n = n;
	return rc;
}
