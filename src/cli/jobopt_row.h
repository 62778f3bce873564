/* jobopt_row.h - inside of jobopt: a row of tables/options.def as data */
#pragma once
#include "cli/jobopt.h"
#include "cli/opt.h"

enum jobopt_target_kind { JOBOPT_T_NONE, JOBOPT_T_DESC_STR, JOBOPT_T_DESC_BOOL, JOBOPT_T_DESC_U32, JOBOPT_T_DESC_U64, JOBOPT_T_STR, JOBOPT_T_BOOL, JOBOPT_T_U32 };
struct jobopt_target { enum jobopt_target_kind kind; uint16_t off, has; };   /* offsets in JobDesc or struct jobopt */

/* Checks `value` (NULL: none was given) and puts it where it belongs. Sets o->exit_code when that is not 255. */
typedef int (*jobopt_parse_fn)(struct jobopt *o, const struct jobopt_row *row, const char *value, struct error *err);

struct jobopt_row {
	struct opt_row opt;
	uint8_t cmds;              /* enum jobopt_cmd, or-ed */
	const char *env[3];        /* sbatch, salloc, srun: comma lists */
	jobopt_parse_fn parse;
	struct jobopt_target target;
	bool later;                /* read, but does not work yet: whoever meets it says so */
};
extern const struct jobopt_row jobopt_rows[JOBOPT_COUNT];
static inline int jobopt_cmd_index(enum jobopt_cmd cmd) { return cmd == JOBOPT_SBATCH ? 0 : cmd == JOBOPT_SALLOC ? 1 : 2; }
static inline const char *jobopt_cmd_name(enum jobopt_cmd cmd) { return cmd == JOBOPT_SBATCH ? "sbatch" : cmd == JOBOPT_SALLOC ? "salloc" : "srun"; }

/* Every parser named in the table: jobopt_parse_<name>. */
#define JOBOPT_PARSER(name) int jobopt_parse_##name(struct jobopt *o, const struct jobopt_row *row, const char *value, struct error *err)

#define OPTION(sym, name, letter, arg, meta, cmds, sbatch, salloc, srun, state, parser, target, help) JOBOPT_PARSER(parser);
#include "tables/options.def"
#undef OPTION

void jobopt_put_str(struct jobopt *o, const struct jobopt_target *t, const char *text);
void jobopt_put_num(struct jobopt *o, const struct jobopt_target *t, uint64_t value);
/* err becomes the line, the process will exit with `exit_code`. */
#define jobopt_refuse(o, code, err, ...) ((o)->exit_code = (code), error_set(err, EINVAL, __VA_ARGS__))
/* Cut the element of that name ("cpu", "gres/gpu") out of a TRES list, in place. */
void jobopt_tres_remove(char *list, const char *name);
/* "Invalid --name specification", 255 */
int jobopt_refuse_spec(struct jobopt *o, const struct jobopt_row *row, struct error *err);
/* The option rows of one command, in table order. */
size_t jobopt_rows_of(enum jobopt_cmd cmd, struct opt_row ret[JOBOPT_COUNT]);
