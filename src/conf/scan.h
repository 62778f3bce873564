/* scan.h - the grammar of all configuration files: logical lines of Key=Value, with places
 *
 * A logical line is one or more lines joined by a backslash at the end. `#` begins a comment outside quotes (\# is a plain #). Values are
 * words, or "quoted"; white space may stand around `=`. "Include FILE" is a line of its own. Key+=Value, Key-=Value are not taken. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/str.h"

struct scan_pair { char *key, *value; size_t key_len; uint32_t line, col, value_line, value_col; };
struct scan {
	const char *file;            /* for messages */
	const char *data;
	size_t len, pos;
	uint32_t line;               /* of data[pos], from 1 */
	/* the logical line now: */
	struct str text;
	struct scan_break { size_t at; uint32_t line, col; } *brk;
	size_t brk_n, brk_cap;
	struct scan_pair *pair;      /* pieces of text, cut in place */
	size_t pair_n, pair_cap;
	char *include;               /* file of an Include line, else NULL */
};
void scan_init(struct scan *s, const char *file, const char *data, size_t len);
/* Next logical line that is not empty: 1; 0 at the end; negative with err "file:line:col: ...". */
int scan_next(struct scan *s, struct error *err);
/* As scan_next, but lines beginning with one of these words (NULL ends) are passed over quickly. */
int scan_next_skip(struct scan *s, const char *const *skip, struct error *err);
void scan_fini(struct scan *s);
