/* batchscript.h - what sbatch reads in a script: is it one, and its #SBATCH words
 *
 * Directives are read until the first line that is a command (neither empty nor a comment). Within a directive: words part at blanks; quotes
 * and backslashes (a backslash takes the next character, in quotes too); an unquoted '#' ends the line. Later directives are counted, not applied. */
#pragma once
#include <stddef.h>
#include "base/error.h"

struct batch_directive {
	char **word;              /* NULL at the end; e.g. "--nodes=4", "-o", "my file" */
	size_t count;
	unsigned line;            /* 1-based */
	unsigned component;       /* 0; +1 for each "#SBATCH hetjob" before it */
};
struct batchscript {
	struct batch_directive *dir;
	size_t count, cap;
	unsigned components;      /* 1, or more with hetjob */
	unsigned ignored;         /* directives behind the first command */
	unsigned first_command;   /* its line, 0: none */
	unsigned pbs;             /* #PBS lines seen before the first command */
	unsigned bsub;
};
/* Is it a script at all: empty, not "#!", DOS line ends, NUL bytes. err->line is the reference's message. */
int batchscript_check(const char *text, size_t len, struct error *err);
/* Reads directives with the given prefix ("#SBATCH"). -EINVAL: a quote left open; err names the line. */
int batchscript_parse(const char *text, size_t len, struct batchscript *ret, struct error *err);
void batchscript_fini(struct batchscript *b);
/* Script made by --wrap. malloc'd. */
char *batchscript_wrap(const char *command);
