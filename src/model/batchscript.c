/* batchscript.c - the #SBATCH lines of a script (grammar: batchscript.h, as observed on 26.05.5)
 * Quoting is the reference's own, not the shell's: a backslash takes the next character literally inside both kinds of quotes, and an
 * unquoted '#' ends the line even in mid-word. A directive stands at the very start of its line. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/batchscript.h"

int batchscript_check(const char *text, size_t len, struct error *err)
{
	if (len == 0)
		return error_set(err, EINVAL, "Batch script is empty!");
	if (strspn(text, " \t\r\n\f\v") >= len && len == strlen(text))
		return error_set(err, EINVAL, "Batch script contains only whitespace!");
	if (len < 2 || text[0] != '#' || text[1] != '!')
		return error_set(err, EINVAL, "This does not look like a batch script.  The first\n"
			"line must start with #! followed by the path to an interpreter.\n"
			"For instance: #!/bin/sh");
	if (memchr(text, '\0', len))
		return error_set(err, EINVAL, "The Slurm controller does not allow scripts that\n"
			"contain a NULL character '\\0'.");
	if (memmem(text, len, "\r\n", 2))
		return error_set(err, EINVAL, "Batch script contains DOS line breaks (\\r\\n)\n"
			"instead of expected UNIX line breaks (\\n).");
	return 0;
}

static void directive_word(struct batch_directive *d, char *word)
{
	d->word = xrealloc(d->word, (d->count + 2) * sizeof(*d->word));
	d->word[d->count++] = word;
	d->word[d->count] = NULL;
}

/* One word from *at (not at a blank); leaves *at behind it. */
static int word_read(const char **at, const char *end, unsigned line, const char *start, struct str *out, struct error *err)
{
	char quote = '\0';
	const char *p = *at;

	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end) {
			str_add_c(out, *++p);
		} else if (quote) {
			if (*p == quote)
				quote = '\0';
			else
				str_add_c(out, *p);
		} else if (*p == '"' || *p == '\'') {
			quote = *p;
		} else if (*p == '#' || isspace((unsigned char)*p)) {
			break;
		} else {
			str_add_c(out, *p);
		}
	}
	*at = p;
	if (quote)
		return error_set(err, EINVAL, "line %u: Unmatched `%c` in [%.*s]", line, quote, (int)(end - start > 300 ? 300 : end - start), start);
	return 0;
}

static int directive_read(const char *p, const char *end, unsigned line, struct batch_directive *d, struct error *err)
{
	const char *start = p;

	*d = (struct batch_directive){ .line = line };
	d->word = xcalloc(1, sizeof(*d->word));
	for (;;) {
		struct str word = STR_INIT;
		int rc;
		while (p < end && isspace((unsigned char)*p))
			p++;
		if (p == end || *p == '#')
			return 0;
		rc = word_read(&p, end, line, start, &word, err);
		if (rc < 0) {
			str_fini(&word);
			return rc;
		}
		directive_word(d, str_take(&word));
	}
}

static bool line_starts(const char *line, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);
	return len >= n && memcmp(line, prefix, n) == 0;
}

/* Neither empty nor a comment. */
static bool is_command(const char *line, size_t len)
{
	size_t i = 0;
	while (i < len && isspace((unsigned char)line[i]))
		i++;
	return i < len && line[i] != '#';
}

static void directive_fini(struct batch_directive *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->word[i]);
	free(d->word);
}

static int line_take(struct batchscript *b, const char *line, size_t len, unsigned number, struct error *err)
{
	struct batch_directive d;
	int rc;

	if (!line_starts(line, len, "#SBATCH")) {
		b->pbs += line_starts(line, len, "#PBS");
		b->bsub += line_starts(line, len, "#BSUB");
		return 0;
	}
	rc = directive_read(line + 7, line + len, number, &d, err);
	if (rc < 0 || d.count == 0) {
		directive_fini(&d);
		return rc;
	}
	if (d.count == 1 && (strcasecmp(d.word[0], "hetjob") == 0 || strcasecmp(d.word[0], "packjob") == 0)) {
		b->components++;
		directive_fini(&d);
		return 0;
	}
	d.component = b->components - 1;
	b->dir = xgrow(b->dir, &b->cap, b->count + 1, sizeof(*b->dir));
	b->dir[b->count++] = d;
	return 0;
}

int batchscript_parse(const char *text, size_t len, struct batchscript *ret, struct error *err)
{
	struct batchscript b = { .components = 1 };
	const char *p = text, *end = text + len;
	unsigned number = 0;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		number++;
		if (b.first_command == 0 && is_command(p, n)) {
			b.first_command = number;
		} else if (b.first_command) {
			b.ignored += line_starts(p, n, "#SBATCH");
		} else {
			int rc = line_take(&b, p, n, number, err);
			if (rc < 0) {
				batchscript_fini(&b);
				return rc;
			}
		}
		p += n + 1;
	}
	*ret = b;
	return 0;
}

void batchscript_fini(struct batchscript *b)
{
	for (size_t i = 0; i < b->count; i++)
		directive_fini(&b->dir[i]);
	free(b->dir);
	*b = (struct batchscript){ 0 };
}

char *batchscript_wrap(const char *command)
{
	return xasprintf("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n", command);
}
