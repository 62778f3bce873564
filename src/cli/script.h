/* script.h - where sbatch's script comes from: a file (current directory, then PATH), standard input, or --wrap */
#pragma once
#include <stddef.h>
#include "base/error.h"

struct script {
	char *data;
	size_t len;
	char *path;     /* absolute; NULL: standard input or --wrap */
	char *name;     /* for the job's name */
};
/* `file` NULL: standard input. `wrap` not NULL: made from it. Checked by batchscript_check. 0 or a negative code. */
int script_load(const char *file, const char *wrap, struct script *ret, struct error *err);
void script_fini(struct script *s);
/* Print the lines of an error, each with "sbatch: error: ". */
void script_report(const char *cmd, const char *text);
