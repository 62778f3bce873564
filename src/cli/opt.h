/* opt.h - the option engine: one table row an option, getopt_long behaviour with permutation
 *
 * Submit options (sbatch, srun, salloc, #SBATCH) are rows of tables/options.def; each other command has its own small table of the same row
 * type. From a row come: parsing, unique-prefix abbreviation, environment variables, --help, --usage, and the refusal of what does not work yet. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

enum opt_arg { OPT_NONE, OPT_REQUIRED, OPT_OPTIONAL };
struct opt_row {
	const char *name;          /* long name; NULL: short only */
	char letter;               /* 0: none */
	enum opt_arg arg;
	const char *meta;          /* "NODES", in help */
	const char *help;          /* our own sentence; NULL: hidden */
	int id;                    /* what the handler switches on; 0..n of the command */
	bool todo;                 /* known to the reference, not working yet: refused with a message that names it */
};
/* Calls fn for each option in order (permuting operands to the end). Returns the index of the first operand in argv, or a
 * negative code with err filled ("unrecognized option '--x'", "option '--x' requires an argument", ambiguous...). `stop_at_operand`: srun, salloc, sbatch. */
typedef int (*opt_fn)(const struct opt_row *row, const char *value, void *arg, struct error *err);
int opt_parse(const struct opt_row *rows, size_t n, int argc, char **argv, bool stop_at_operand, opt_fn fn, void *arg, struct error *err);
/* "Usage: " and the text, then option lines made from the rows. */
void opt_print_help(const char *usage, const struct opt_row *rows, size_t n);
/* A title and such lines. */
void opt_print_group(const char *title, const struct opt_row *rows, size_t n);
/* "Usage: squeue [-a] [--all] ..." as the reference's --usage grammar. */
void opt_print_usage(const char *cmd, const struct opt_row *rows, size_t n, const char *tail);
/* --clusters: names of which this cluster must be one ("all": every one there is). Others are named on stderr. */
bool opt_clusters(const char *prog, const char *list, const char *own);
