/* jobopt.c - submit options: the rows of tables/options.def and where their values come from (see jobopt.h)
 *
 * Parsers are in jobopt_parse.c, checks between options in jobopt_check.c, what goes to the controller in jobopt_desc.c,
 * help and reports in jobopt_show.c. Invariant: text[id] is set only if from[id] is. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/jobopt.h"
#include "cli/jobopt_row.h"
#include "cli/opt.h"

enum { SBATCH = JOBOPT_SBATCH, SALLOC = JOBOPT_SALLOC, SRUN = JOBOPT_SRUN, ALL = SBATCH | SALLOC | SRUN };
enum { STATE_WORKS, STATE_HIDDEN, STATE_LATER, STATE_TODO, STATE_TODO_HIDDEN };
#define T_NONE { .kind = JOBOPT_T_NONE }
#define T_DS(f) { .kind = JOBOPT_T_DESC_STR, .off = offsetof(Pb__JobDesc, f) }
#define T_DB(f) { .kind = JOBOPT_T_DESC_BOOL, .off = offsetof(Pb__JobDesc, f), .has = offsetof(Pb__JobDesc, has_##f) }
#define T_DN(f) { .kind = JOBOPT_T_DESC_U32, .off = offsetof(Pb__JobDesc, f), .has = offsetof(Pb__JobDesc, has_##f) }
#define T_DM(f) { .kind = JOBOPT_T_DESC_U64, .off = offsetof(Pb__JobDesc, f), .has = offsetof(Pb__JobDesc, has_##f) }
#define T_OS(f) { .kind = JOBOPT_T_STR, .off = offsetof(struct jobopt, f) }
#define T_OB(f) { .kind = JOBOPT_T_BOOL, .off = offsetof(struct jobopt, f) }
#define T_ON(f) { .kind = JOBOPT_T_U32, .off = offsetof(struct jobopt, f) }

const struct jobopt_row jobopt_rows[JOBOPT_COUNT] = {
#define OPTION(sym, lname, chr, kind, word, which, sbatch, salloc, srun, state, parser, where, text) \
	[JO_##sym] = { .opt = { .name = lname, .letter = chr, .arg = OPT_##kind, .meta = word, .help = text, .id = JO_##sym, .todo = STATE_##state >= STATE_TODO }, \
		       .cmds = which, .env = { sbatch, salloc, srun }, .parse = jobopt_parse_##parser, .target = where, .later = STATE_##state == STATE_LATER },
#include "tables/options.def"
#undef OPTION
};

void jobopt_put_str(struct jobopt *o, const struct jobopt_target *t, const char *text)
{
	char *base = t->kind == JOBOPT_T_DESC_STR ? (char *)o->desc : (char *)o;
	xstr_set((char **)(void *)(base + t->off), text);
}

void jobopt_put_num(struct jobopt *o, const struct jobopt_target *t, uint64_t value)
{
	char *desc = (char *)o->desc;
	switch (t->kind) {
	case JOBOPT_T_DESC_BOOL:
		*(protobuf_c_boolean *)(void *)(desc + t->off) = value != 0;
		break;
	case JOBOPT_T_DESC_U32:
		*(uint32_t *)(void *)(desc + t->off) = (uint32_t)value;
		break;
	case JOBOPT_T_DESC_U64:
		*(uint64_t *)(void *)(desc + t->off) = value;
		break;
	case JOBOPT_T_BOOL:
		*(bool *)((char *)o + t->off) = value != 0;
		return;
	case JOBOPT_T_U32:
		*(uint32_t *)(void *)((char *)o + t->off) = (uint32_t)value;
		return;
	default:
		abort();
	}
	*(protobuf_c_boolean *)(void *)(desc + t->has) = true;
}

void jobopt_init(struct jobopt *o, enum jobopt_cmd cmd)
{
	*o = (struct jobopt){ .cmd = cmd, .exit_code = 255, .jobid_step = UINT32_MAX, .kill_on_bad_exit = -1, .wait_sec = -1, .immediate_sec = -1, .pty_fd = -1 };
	o->desc = xcalloc(1, sizeof(*o->desc));
	pb__job_desc__init(o->desc);
}

void jobopt_fini(struct jobopt *o)
{
	for (size_t i = 0; i < JOBOPT_COUNT; i++) {
		const struct jobopt_target *t = &jobopt_rows[i].target;
		xfree(o->text[i]);
		if (t->kind == JOBOPT_T_STR)
			jobopt_put_str(o, t, NULL);
	}
	xfree(o->before);
	xfree(o->submit_line);
	xfree(o->arbitrary_hosts);
	if (o->desc)
		pb__job_desc__free_unpacked(o->desc, NULL);
	o->desc = NULL;
	if (o->next)
		jobopt_fini(o->next);
	xfree(o->next);
}

bool jobopt_is_set(const struct jobopt *o, enum jobopt_id id)
{
	return o->from[id] != JOBOPT_UNSET;
}

static int value_set(struct jobopt *o, const struct jobopt_row *row, const char *value, enum jobopt_from from, struct error *err)
{
	int id = row->opt.id;
	if (o->from[id] > from)
		return 0;
	o->exit_code = 255;
	o->fatal = o->getopt_error = false;
	int rc = row->parse(o, row, value, err);
	if (rc < 0)
		return rc;
	o->from[id] = (uint8_t)from;
	xstr_set(&o->text[id], value);
	return 0;
}

int jobopt_put(struct jobopt *o, enum jobopt_id id, const char *value, enum jobopt_from from, struct error *err)
{
	return value_set(o, &jobopt_rows[id], value, from, err);
}

/* --- command line and #SBATCH words ---------------------------------------------------------------- */

struct source { struct jobopt *o; enum jobopt_from from; };

static int source_take(const struct opt_row *opt, const char *value, void *arg, struct error *err)
{
	struct source *s = arg;
	if (opt->id >= JOBOPT_COUNT) {
		int rc = s->o->more_take((size_t)opt->id - JOBOPT_COUNT, value, err);
		s->o->getopt_error = rc >= 0;      /* what a plugin refuses is spelled right */
		return rc;
	}
	return value_set(s->o, &jobopt_rows[opt->id], value, s->from, err);
}

size_t jobopt_rows_of(enum jobopt_cmd cmd, struct opt_row ret[JOBOPT_COUNT])
{
	size_t n = 0;
	for (size_t i = 0; i < JOBOPT_COUNT; i++)
		if ((jobopt_rows[i].cmds & cmd) && jobopt_rows[i].opt.name)
			ret[n++] = jobopt_rows[i].opt;
	return n;
}

static int words_parse(struct jobopt *o, int argc, char **argv, enum jobopt_from from, struct error *err)
{
	struct opt_row *rows = xcalloc(JOBOPT_COUNT + o->more_n, sizeof(*rows));
	size_t n = jobopt_rows_of(o->cmd, rows);
	for (size_t i = 0; i < o->more_n; i++)
		rows[n++] = o->more[i];
	struct source s = { .o = o, .from = from };
	o->getopt_error = true;
	o->fatal = false;
	o->exit_code = 255;
	int rc = opt_parse(rows, n, argc, argv, true, source_take, &s, err);
	free(rows);
	if (rc == -ESLURM_NOT_SUPPORTED) {
		o->getopt_error = false;
		o->exit_code = 1;
	}
	return rc;
}

int jobopt_parse_args(struct jobopt *o, int argc, char **argv, struct error *err)
{
	struct str line = STR_INIT;
	for (int i = 0; i < argc; i++)
		str_add_sep(&line, " ", argv[i]);
	free(o->submit_line);
	o->submit_line = str_take(&line);
	return words_parse(o, argc, argv, JOBOPT_ARGS, err);
}

int jobopt_parse_words(struct jobopt *o, int argc, char **argv, struct error *err)
{
	int first = words_parse(o, argc, argv, JOBOPT_SCRIPT, err);
	if (first >= 0 && first < argc) {
		o->getopt_error = false;
		return error_set(err, EINVAL, "Invalid directive found in batch script: %s", argv[first]);
	}
	return first < 0 ? first : 0;
}

/* --- environment -------------------------------------------------------------------------------------- */

/* "For flag options ... without a value, the string 'yes', or a non-zero number. Any other value ... not being set." */
static bool flag_wanted(const char *value)
{
	return !*value || str_eq_nocase(value, "yes") || (isdigit((unsigned char)*value) && strtoul(value, NULL, 10) != 0);
}

static bool in_allocation(const struct jobopt *o)
{
	return o->cmd == JOBOPT_SRUN && (o->jobid || getenv("SLURM_JOB_ID"));
}

static int env_take(struct jobopt *o, const struct jobopt_row *row, const char *name, struct error *err)
{
	const char *value = getenv(name);
	if (!value || o->from[row->opt.id] > JOBOPT_ENV)
		return 0;
	bool counted = row->opt.id == JO_verbose;
	if (row->opt.arg == OPT_NONE && !counted && !flag_wanted(value))
		return 0;
	if (!*value && (row->opt.arg == OPT_REQUIRED || counted))
		return 0;
	if (row->opt.id == JO_job_name && in_allocation(o))
		return 0;   /* the batch job's name is not the step's */
	if (row->opt.id == JO_gpus_per_node && in_allocation(o) && jobopt_is_set(o, JO_gpus))
		return 0;
	if (row->opt.todo) {
		o->exit_code = 1;
		o->getopt_error = o->fatal = false;
		return error_set(err, ESLURM_NOT_SUPPORTED, "option '--%s' (from environment variable %s) is not supported by this version", row->opt.name, name);
	}
	bool none = row->opt.arg == OPT_NONE ? !counted : !*value;
	return value_set(o, row, none ? NULL : value, JOBOPT_ENV, err);
}

int jobopt_parse_env(struct jobopt *o, struct error *err)
{
	int which = jobopt_cmd_index(o->cmd);
	for (size_t i = 0; i < JOBOPT_COUNT; i++) {
		const char *names = jobopt_rows[i].env[which];
		while (names && *names) {
			char name[64];
			size_t len = strcspn(names, ",");
			if (len >= sizeof(name))
				abort();
			memcpy(name, names, len);
			name[len] = 0;
			int rc = env_take(o, &jobopt_rows[i], name, err);
			if (rc < 0)
				return rc;
			names += len + (names[len] == ',');
		}
	}
	return 0;
}

size_t jobopt_todo_count(enum jobopt_cmd cmd)
{
	size_t n = 0;
	for (size_t i = 0; i < JOBOPT_COUNT; i++)
		n += (jobopt_rows[i].cmds & cmd) && (jobopt_rows[i].opt.todo || jobopt_rows[i].later);
	return n;
}
