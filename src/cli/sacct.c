/* sacct.c - what jobs and steps did, from slurmdbd
 *
 * One call (DB_JOBS) with the filters slurmdbd knows; the rest (steps of -j, sizes, limits, reasons) is sifted here. Columns are
 * rows of tables/fields_sacct.def. Texts, exit codes and the default window follow 26.05.5 (sacct(1), DEFAULT TIME WINDOW). */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/opt.h"
#include "cli/sacct.h"
#include "cli/sacct_json.h"
#include "cli/showcmd.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "model/states.h"
#include "model/stepid.h"
#include "model/timespec.h"
#include "model/tres.h"

#define FORMAT_BRIEF "jobid,state,exitcode"
#define FORMAT_DEFAULT "jobid,jobname,partition,account,alloccpus,state,exitcode"
#define FORMAT_LONG \
	"jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,maxpages,maxpagesnode," \
	"maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax," \
	"reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask," \
	"avediskwrite,reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxn,tresusageinmaxt,tresusageinmin,tresusageinminn,tresusageinmint," \
	"tresusageintot,tresusageoutmax,tresusageoutmaxn,tresusageoutmaxt,tresusageoutave,tresusageouttot"
#define ARRAY_INDEX_MAX 4000002

enum { SA_ALLUSERS, SA_ACCOUNTS, SA_ARRAY, SA_BRIEF, SA_SCRIPT, SA_COMPLETION, SA_DELIMITER, SA_DUPLICATES, SA_HELPFORMAT, SA_END, SA_ENVVARS, SA_EXPAND, SA_GROUP,
       SA_HELP, SA_HELPREASON, SA_HELPSTATE, SA_NNODES, SA_NCPUS, SA_JOBS, SA_LIMIT_MIN, SA_LIMIT_MAX, SA_LOCAL, SA_LONG, SA_ALLCLUSTERS, SA_CLUSTERS, SA_NOHEADER,
       SA_NOCONVERT, SA_NODELIST, SA_NAME, SA_FORMAT, SA_PARSABLE, SA_PARSABLE2, SA_QOS, SA_PARTITION, SA_REASON, SA_STATE, SA_START, SA_TRUNCATE, SA_USER, SA_UNITS,
       SA_USAGE, SA_VERBOSE, SA_VERSION, SA_WCKEYS, SA_ALLOCATIONS, SA_JSON, SA_YAML, SA_WHOLE_HET, SA_CONSTRAINTS, SA_TODO };

static const struct opt_row rows[] = {
	{ "allusers", 'a', OPT_NONE, NULL, "jobs of all users (the default for root), not only your own", SA_ALLUSERS, false },
	{ "accounts", 'A', OPT_REQUIRED, "accounts", "only jobs of these accounts", SA_ACCOUNTS, false },
	{ "array", 0, OPT_NONE, NULL, "a line for each waiting task of an array", SA_ARRAY, false },
	{ "brief", 'b', OPT_NONE, NULL, "only id, state and exit code", SA_BRIEF, false },
	{ "batch-script", 'B', OPT_NONE, NULL, "print the batch script of the jobs given with -j", SA_SCRIPT, false },
	{ "constraints", 'C', OPT_REQUIRED, "features", "only jobs that asked for all these features", SA_CONSTRAINTS, false },
	{ "completion", 'c', OPT_NONE, NULL, "ask the job completion log instead", SA_COMPLETION, false },
	{ "delimiter", 0, OPT_REQUIRED, "text", "what stands between fields with -p and -P, instead of |", SA_DELIMITER, false },
	{ "duplicates", 'D', OPT_NONE, NULL, "all attempts of a job, not only the last", SA_DUPLICATES, false },
	{ "helpformat", 'e', OPT_NONE, NULL, "list the fields of --format", SA_HELPFORMAT, false },
	{ "endtime", 'E', OPT_REQUIRED, "time", "only jobs eligible before this time", SA_END, false },
	{ "env-vars", 0, OPT_NONE, NULL, "print the environment of the jobs given with -j", SA_ENVVARS, false },
	{ "expand-patterns", 0, OPT_NONE, NULL, "fill in the patterns of StdIn, StdOut and StdErr", SA_EXPAND, false },
	{ "federation", 0, OPT_NONE, NULL, "jobs of the whole federation (this cluster is in none: its own)", SA_LOCAL, false },
	{ "file", 'f', OPT_REQUIRED, "file", "read a job completion log", SA_TODO, true },
	{ "flags", 'F', OPT_REQUIRED, "flags", "only jobs that were handled so", SA_TODO, true },
	{ "gid", 'g', OPT_REQUIRED, "groups", "only jobs of these groups", SA_GROUP, false },
	{ "group", 0, OPT_REQUIRED, NULL, NULL, SA_GROUP, false },
	{ "help", 'h', OPT_NONE, NULL, "this text", SA_HELP, false },
	{ "helpreason", 0, OPT_NONE, NULL, "list the reasons of --reason", SA_HELPREASON, false },
	{ "helpstate", 0, OPT_NONE, NULL, "list the states of --state", SA_HELPSTATE, false },
	{ "nnodes", 'i', OPT_REQUIRED, "min[-max]", "only jobs that had so many nodes", SA_NNODES, false },
	{ "ncpus", 'I', OPT_REQUIRED, "min[-max]", "only jobs that had so many CPUs", SA_NCPUS, false },
	{ "jobs", 'j', OPT_REQUIRED, "job[.step]", "only these jobs or steps", SA_JOBS, false },
	{ "json", 0, OPT_OPTIONAL, "version", "print JSON", SA_JSON, false },
	{ "timelimit-min", 'k', OPT_REQUIRED, "time", "only jobs with this limit, or with -K: at least this", SA_LIMIT_MIN, false },
	{ "timelimit-max", 'K', OPT_REQUIRED, "time", "with -k: at most this limit", SA_LIMIT_MAX, false },
	{ "local", 0, OPT_NONE, NULL, "only jobs of this cluster", SA_LOCAL, false },
	{ "long", 'l', OPT_NONE, NULL, "many fields", SA_LONG, false },
	{ "allclusters", 'L', OPT_NONE, NULL, "jobs of all clusters", SA_ALLCLUSTERS, false },
	{ "clusters", 'M', OPT_REQUIRED, "clusters", "only jobs of these clusters; all", SA_CLUSTERS, false },
	{ "cluster", 0, OPT_REQUIRED, NULL, NULL, SA_CLUSTERS, false },
	{ "noheader", 'n', OPT_NONE, NULL, "no header", SA_NOHEADER, false },
	{ "noconvert", 0, OPT_NONE, NULL, "do not choose units: 2048M stays 2048M", SA_NOCONVERT, false },
	{ "nodelist", 'N', OPT_REQUIRED, "nodes", "only jobs that ran on one of these nodes", SA_NODELIST, false },
	{ "name", 0, OPT_REQUIRED, "names", "only jobs with one of these names", SA_NAME, false },
	{ "format", 'o', OPT_REQUIRED, "fields", "the fields to print: name[%width],...", SA_FORMAT, false },
	{ "parsable", 'p', OPT_NONE, NULL, "fields divided by |, one at the end as well", SA_PARSABLE, false },
	{ "parsable2", 'P', OPT_NONE, NULL, "fields divided by |", SA_PARSABLE2, false },
	{ "qos", 'q', OPT_REQUIRED, "qos", "only jobs with one of these QOS", SA_QOS, false },
	{ "partition", 'r', OPT_REQUIRED, "partitions", "only jobs of these partitions", SA_PARTITION, false },
	{ "reason", 'R', OPT_REQUIRED, "reasons", "only jobs that waited for one of these reasons", SA_REASON, false },
	{ "state", 's', OPT_REQUIRED, "states", "only jobs in one of these states within the window", SA_STATE, false },
	{ "starttime", 'S', OPT_REQUIRED, "time", "only jobs not over before this time", SA_START, false },
	{ "truncate", 'T', OPT_NONE, NULL, "cut times to the window", SA_TRUNCATE, false },
	{ "uid", 'u', OPT_REQUIRED, "users", "only jobs of these users", SA_USER, false },
	{ "user", 0, OPT_REQUIRED, NULL, NULL, SA_USER, false },
	{ "units", 0, OPT_REQUIRED, "KMGTP", "print amounts in this unit", SA_UNITS, false },
	{ "usage", 0, OPT_NONE, NULL, "a short text", SA_USAGE, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say what is asked for", SA_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", SA_VERSION, false },
	{ "wckeys", 'W', OPT_REQUIRED, "wckeys", "only jobs with one of these wckeys", SA_WCKEYS, false },
	{ "whole-hetjob", 0, OPT_OPTIONAL, "yes|no", "of heterogeneous jobs all components, or those that are named", SA_WHOLE_HET, false },
	{ "associations", 'x', OPT_REQUIRED, "ids", "only jobs of these associations", SA_TODO, true },
	{ "allocations", 'X', OPT_NONE, NULL, "only jobs, no steps", SA_ALLOCATIONS, false },
	{ "yaml", 0, OPT_OPTIONAL, "version", "print YAML", SA_YAML, false },
};
#define ROWS (sizeof rows / sizeof *rows)

struct range { uint64_t min, max; bool set; };
struct words { char **w; size_t n, cap; };
/* One piece of -j: a job, array, task, or SLUID; step < 0 (-1): all of it. */
struct pick { uint64_t job; int64_t task, step, part; char sluid[32]; }; /* part: component of a heterogeneous job */

struct sacct {
	bool by_long, by_format;      /* -l and -o */
	bool nothing;                 /* a filter that nothing passes */
	struct words account, qos, partition, state, user_names, group_names, name, wckey, cluster, jobs, reason;
	uint32_t *uid, *gid;
	size_t uid_n, uid_cap, gid_n, gid_cap;
	struct pick *pick;
	int whole_het;             /* --whole-hetjob: 1 yes, 0 no, -1 not said: a leader's id means all */
	size_t pick_n, pick_cap;
	char *nodes, *format;
	const char *json, *yaml;      /* parser asked for; "" default; NULL: text */
	struct json *writer;          /* of --json and --yaml, while printing */
	const char *const *argv;      /* as typed */
	int argc;
	struct words constraint;
	struct range nnodes, ncpus;
	uint32_t limit_min, limit_max;
	bool has_limit_min, has_limit_max, all_users, all_clusters, array, script, env_vars, duplicates, no_header, no_steps, has_start, has_end;
	int verbose;
	time_t start, end;
	struct cells cells;
};

static int fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static int fatal(const char *fmt, ...)
{
	va_list ap;
	char line[400];
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	log_fatal("%s", line);
	exit(1);
}

static void words_add(struct words *w, const char *text)
{
	char *copy = xstrdup(text), *rest = copy, *piece;
	while ((piece = str_next(&rest, ","))) {
		piece = str_trim(piece);
		if (!*piece)
			continue;
		w->w = xgrow(w->w, &w->cap, w->n + 1, sizeof *w->w);
		w->w[w->n++] = xstrdup(piece);
	}
	free(copy);
}

/* --- -j ------------------------------------------------------------------------------------------------------- */
static int64_t step_parse(const char *id, const char *s)
{
	unsigned long long v;
	uint32_t special;
	if (stepid_of_word(s, &special))
		return special;
	if (str_to_u64(s, 0, UINT32_MAX, &v))
		fatal("Bad job/step specified: %s: StepID includes unexpected non-numeric characters", id);
	return (int64_t)v;
}

static void pick_add(struct sacct *a, const char *id)
{
	struct pick p = { .task = -1, .step = -1, .part = -1 };
	char *copy = xstrdup(id), *dot = strchr(copy, '.'), *end;
	if (dot) {
		*dot = 0;
		p.step = step_parse(id, dot + 1);
	}
	if (*copy == 's' && strlen(copy) == 14) {
		snprintf(p.sluid, sizeof p.sluid, "%s", copy);
	} else {
		errno = 0;
		p.job = strtoull(copy, &end, 10);
		if (end == copy || errno || !p.job || p.job > UINT32_MAX)
			fatal("Bad job/step specified: %s", id);
		if (*end == '_' && end[1] == '[')
			end = copy + strlen(copy);
		else if (*end == '_') {
			char *task = end + 1;
			p.task = strtoll(task, &end, 10);
			if (end == task || *end)
				fatal("Bad job/step specified: %s: Job Array ID includes unexpected non-numeric characters", id);
		} else if (*end == '+') {
			char *part = end + 1;
			p.part = strtoll(part, &end, 10);
			if (end == part || *end)
				fatal("Bad job/step specified: %s: Heterogeneous Job ID includes unexpected non-numeric characters", id);
		}
		if (*end)
			fatal("Bad job/step specified: %s", id);
	}
	free(copy);
	a->pick = xgrow(a->pick, &a->pick_cap, a->pick_n + 1, sizeof *a->pick);
	a->pick[a->pick_n++] = p;
}

static bool pick_is_job(const struct sacct *a, const struct pick *p, const Pb__JobRecord *j)
{
	if (p->sluid[0])
		return j->sluid && !strcmp(p->sluid, j->sluid);
	if (p->task >= 0)
		return j->has_array_job_id && j->array_job_id == p->job && j->has_array_task_id && j->array_task_id == (uint64_t)p->task;
	if (p->part >= 0 && a->whole_het <= 0)
		return j->has_het_job_id && j->het_job_id == p->job && (int64_t)j->het_offset == p->part;
	return j->job_id == p->job || (j->has_array_job_id && j->array_job_id == p->job) || (j->has_het_job_id && j->het_job_id == p->job && a->whole_het != 0);
}

/* Is this line asked for? step NULL: the job's own. */
static bool is_picked(const struct sacct *a, const Pb__JobRecord *j, const Pb__StepRecord *s)
{
	for (size_t i = 0; i < a->pick_n; i++)
		if (pick_is_job(a, &a->pick[i], j) && (a->pick[i].step < 0 || (s && a->pick[i].step == s->step_id)))
			return true;
	return !a->pick_n;
}

/* --- format -------------------------------------------------------------------------------------------------------- */
static int format_read(struct sacct *a)
{
	const char *env = getenv("SACCT_FORMAT");
	return cells_format(&a->cells, a->format ? a->format : env && *env ? env : FORMAT_DEFAULT);
}

static void row_put(struct str *out, const struct sacct *a, const struct sacct_row *r)
{
	struct str cell = STR_INIT;
	if (a->writer) {
		sacct_json_step(a->writer, r);
		return;
	}
	for (size_t i = 0; i < a->cells.n; i++) {
		str_reset(&cell);
		sacct_get(&cell, a->cells.col[i].field, r);
		cells_put(out, &a->cells, i, cell.data);
	}
	str_add_c(out, '\n');
	str_fini(&cell);
	if (out->len > OUT_CHUNK)
		out_flush(out);
}

/* --- help ------------------------------------------------------------------------------------------------------------ */
static void help_state(void)
{
	const char *name[32];
	size_t n = 0;
	for (; n <= PB__JOB_STATE__OUT_OF_MEMORY; n++)
		name[n] = job_state_name((uint32_t)n, 0);
	cells_names(name, n, 4, 19);
}

static const char *const reason_names[] = {
#define REASON(sym, text) text,
#include "tables/reasons.def"
#undef REASON
};
#define REASONS (sizeof reason_names / sizeof *reason_names)

static void reasons_check(const struct words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		size_t at = 0;
		while (at < REASONS && strcasecmp(w->w[i], reason_names[at]))
			at++;
		if (at == REASONS)
			fatal("unrecognized job reason value '%s'", w->w[i]);
	}
}

/* --- options ----------------------------------------------------------------------------------------------------------- */
static void users_add(struct sacct *a, const char *text)
{
	struct words w = { 0 };
	words_add(&w, text);
	if (!w.n) {
		log_error("Invalid user id: %s", text);
		exit(1);
	}
	for (size_t i = 0; i < w.n; i++) {
		unsigned long long id;
		const struct passwd *pw = str_to_u64(w.w[i], 0, UINT32_MAX, &id) ? getpwnam(w.w[i]) : NULL;
		if (!pw && str_to_u64(w.w[i], 0, UINT32_MAX, &id)) {
			log_error("Invalid user id: %s", w.w[i]);
			exit(1);
		}
		a->uid = xgrow(a->uid, &a->uid_cap, a->uid_n + 1, sizeof *a->uid);
		a->uid[a->uid_n++] = pw ? pw->pw_uid : (uint32_t)id;
	}
}

static void groups_add(struct sacct *a, const char *text)
{
	struct words w = { 0 };
	words_add(&w, text);
	if (!w.n) {
		log_error("Invalid group id: %s", text);
		exit(1);
	}
	for (size_t i = 0; i < w.n; i++) {
		unsigned long long id;
		const struct group *gr = str_to_u64(w.w[i], 0, UINT32_MAX, &id) ? getgrnam(w.w[i]) : NULL;
		if (!gr && str_to_u64(w.w[i], 0, UINT32_MAX, &id)) {
			log_error("Invalid group id: %s", w.w[i]);
			exit(1);
		}
		a->gid = xgrow(a->gid, &a->gid_cap, a->gid_n + 1, sizeof *a->gid);
		a->gid[a->gid_n++] = gr ? gr->gr_gid : (uint32_t)id;
	}
}

static void states_add(struct sacct *a, const char *text)
{
	struct words w = { 0 };
	words_add(&w, text);
	for (size_t i = 0; i < w.n; i++) {
		bool is_flag;
		uint32_t state;
		if (job_state_parse(w.w[i], &is_flag, &state))
			fatal("unrecognized job state value '%s'", w.w[i]);
		words_add(&a->state, is_flag ? w.w[i] : job_state_name(state, 0));
	}
}

static void when_read(const char *text, time_t *ret, bool *has)
{
	struct error err = { 0 };
	if (timespec_parse_when(text, time(NULL), 1, ret, &err)) {
		fprintf(stderr, "Invalid time specification (pos=0): %s\n", text);
		exit(1);
	}
	*has = true;
}

static void range_read(const char *text, struct range *r, const char *what)
{
	if (!*text)
		return;
	unsigned long long lo, hi;
	char *copy = xstrdup(text), *dash = strchr(copy, '-');
	if (dash)
		*dash = 0;
	if (str_to_u64(copy, 0, UINT32_MAX, &lo) || str_to_u64(dash ? dash + 1 : copy, 0, UINT32_MAX, &hi) || hi < lo)
		fatal("Invalid %s specification: %s (expected min[-max])", what, text);
	*r = (struct range){ lo, hi, hi != 0 };
	free(copy);
}

static void limit_read(const char *text, uint32_t *ret, bool *has)
{
	struct error err = { 0 };
	if (timespec_parse_mins(text, ret, &err) || !*ret)
		fatal("Invalid time limit specification: %s", text);
	*has = true;
}

static void whole_het_read(struct sacct *a, const char *text)
{
	if (text && strcasecmp(text, "yes") && strcasecmp(text, "no"))
		fatal("Invalid whole-hetjob argument: %s (expected yes or no)", text);
	a->whole_het = !text || !strcasecmp(text, "yes");
}

static void units_read(const char *text)
{
	int c = toupper((unsigned char)*text);
	if (strlen(text) != 1 || !strchr("KMGTP", c)) {
		log_error("Invalid unit type '%s'. Possible options are 'KMGTP'", text);
		fatal("Invalid unit type");
	}
	sacct_env.view.unit = (char)c;
}

static void print_and_end(const struct sacct *a, int id)
{
	switch (id) {
	case SA_HELP: opt_print_help("sacct [<OPTION>]\n     Valid <OPTION> values are:", rows, ROWS); break;
	case SA_HELPFORMAT: cells_help(&a->cells); break;
	case SA_HELPREASON: cells_names(reason_names, REASONS, 2, 39); break;
	case SA_HELPSTATE: help_state(); break;
	case SA_USAGE: printf("Usage: sacct [options]\n\tUse --help for help\n"); break;
	case SA_VERSION: puts("slurm " BERTH_VERSION); break;
	default: fprintf(stderr, "Slurm job completion is disabled\n"); exit(1);
	}
	exit(0);
}

/* Options that are one list of words. */
static struct words *words_of(struct sacct *a, int id)
{
	switch (id) {
	case SA_ACCOUNTS: return &a->account;
	case SA_QOS: return &a->qos;
	case SA_PARTITION: return &a->partition;
	case SA_NAME: return &a->name;
	case SA_WCKEYS: return &a->wckey;
	case SA_CLUSTERS: return &a->cluster;
	case SA_JOBS: return &a->jobs;
	case SA_REASON: return &a->reason;
	case SA_CONSTRAINTS: return &a->constraint;
	default: return NULL;
	}
}

static bool *flag_of(struct sacct *a, int id)
{
	static bool unused;
	switch (id) {
	case SA_ALLUSERS: return &a->all_users;
	case SA_ARRAY: return &a->array;
	case SA_SCRIPT: return &a->script;
	case SA_ENVVARS: return &a->env_vars;
	case SA_DUPLICATES: return &a->duplicates;
	case SA_NOHEADER: return &a->no_header;
	case SA_ALLOCATIONS: return &a->no_steps;
	case SA_ALLCLUSTERS: return &a->all_clusters;
	case SA_EXPAND: return &sacct_env.expand;
	case SA_NOCONVERT: return &sacct_env.view.no_convert;
	case SA_TRUNCATE: return &sacct_env.truncate;
	case SA_LOCAL: return &unused;
	default: return NULL;
	}
}

static int on_option(const struct opt_row *row, const char *v, void *arg, struct error *err)
{
	struct sacct *a = arg;
	struct words *w = words_of(a, row->id);
	bool *flag = flag_of(a, row->id);
	(void)err;
	if (w)
		words_add(w, v);
	if (w && !*v && row->id != SA_JOBS && row->id != SA_REASON && row->id != SA_WCKEYS && row->id != SA_CONSTRAINTS)
		a->nothing = true;              /* "--name=$N" where N is empty: no job, not all */
	else if (flag)
		*flag = true;
	if (w || flag)
		return 0;
	switch (row->id) {
	case SA_BRIEF: xstr_set(&a->format, FORMAT_BRIEF); break;
	case SA_LONG:
	case SA_FORMAT: {
		a->by_long = a->by_long || row->id == SA_LONG;
		a->by_format = a->by_format || row->id == SA_FORMAT;
		if (a->by_long && a->by_format)
			fatal("Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.");
		if (row->id == SA_LONG) {
			xstr_set(&a->format, FORMAT_LONG);
			break;
		}
		char *more = a->format ? xasprintf("%s,%s", a->format, v) : xstrdup(v);
		free(a->format);
		a->format = more;
		break;
	}
	case SA_WHOLE_HET: whole_het_read(a, v); break;
	case SA_DELIMITER: a->cells.delimiter = xstrdup(v); break;
	case SA_START: when_read(v, &a->start, &a->has_start); break;
	case SA_END: when_read(v, &a->end, &a->has_end); break;
	case SA_GROUP: groups_add(a, v); break;
	case SA_USER: users_add(a, v); break;
	case SA_STATE: states_add(a, v); break;
	case SA_NNODES: range_read(v, &a->nnodes, "node count"); break;
	case SA_NCPUS: range_read(v, &a->ncpus, "CPU count"); break;
	case SA_LIMIT_MIN: limit_read(v, &a->limit_min, &a->has_limit_min); break;
	case SA_LIMIT_MAX: limit_read(v, &a->limit_max, &a->has_limit_max); break;
	case SA_NODELIST: xstr_set(&a->nodes, v); break;
	case SA_PARSABLE: a->cells.parsable = 1; break;
	case SA_PARSABLE2: a->cells.parsable = 2; break;
	case SA_UNITS: units_read(v); break;
	case SA_JSON: a->json = v ? v : ""; break;
	case SA_YAML: a->yaml = v ? v : ""; break;
	case SA_VERBOSE: a->verbose++; break;
	default: print_and_end(a, row->id);
	}
	return 0;
}

/* sacct(1), DEFAULT TIME WINDOW. */
static void window_read(struct sacct *a)
{
	time_t now = (time_t)sacct_env.now;
	char from[64], to[64];
	if (!a->has_start && !a->state.n && !a->jobs.n) {
		struct tm tm;
		localtime_r(&now, &tm);
		tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
		tm.tm_isdst = -1;
		a->start = mktime(&tm);
	} else if (!a->has_start) {
		a->start = a->jobs.n ? 0 : now;
	}
	if (!a->has_end)
		a->end = a->state.n && a->has_start ? a->start : now;
	if (a->has_start && a->start > a->end) {
		timespec_print_when(a->start, NULL, now, from, sizeof from);
		timespec_print_when(a->end, NULL, now, to, sizeof to);
		log_error("Start time (%s) requested is after end time (%s).", from, to);
		exit(1);
	}
	sacct_env.from = (uint64_t)a->start;
	sacct_env.to = (uint64_t)a->end;
	if (!a->verbose)
		return;
	snprintf(from, sizeof from, "%.24s", a->start ? ctime(&a->start) : "Epoch 0");
	snprintf(to, sizeof to, "%.24s", ctime(&a->end));
	log_info("Jobs %s in the time window from %s to %s", a->state.n ? "in the requested states" : "Eligible", from, to);
}

static void options_read(struct sacct *a, int argc, char **argv)
{
	struct error err = { 0 };
	int first = opt_parse(rows, ROWS, argc, argv, false, on_option, a, &err);
	if (first < 0) {
		fprintf(stderr, "sacct: %s\n", err.line);
		exit(1);
	}
	if (first < argc) {
		log_error("Unknown arguments:");
		for (; first < argc; first++)
			log_error(" %s", argv[first]);
		exit(1);
	}
	for (size_t i = 0; i < a->jobs.n; i++) {
		pick_add(a, a->jobs.w[i]);
		if (a->whole_het == 1)
			a->jobs.w[i][strcspn(a->jobs.w[i], "+")] = 0;
	}
	struct hostlist hl = HOSTLIST_INIT;
	if (a->nodes && hostlist_add(&hl, a->nodes, &err))
		exit(show_fail(&err));
	hostlist_fini(&hl);
	reasons_check(&a->reason);
	if (format_read(a))
		exit(1);
	window_read(a);
}

/* --- asking ------------------------------------------------------------------------------------------------------------ */
static Pb__DbdJobsRsp *ask(const struct sacct *a, struct client *c)
{
	Pb__DbdJobsReq q = PB__DBD_JOBS_REQ__INIT;
	ProtobufCMessage *rsp = NULL;
	struct error err = { 0 };
	uint32_t me = getuid();
	char *here = (char *)(uintptr_t)show_env.cluster;
	bool all = a->all_clusters || (a->cluster.n == 1 && !strcasecmp(a->cluster.w[0], "all"));
#define LIST(field, words) q.field = (words).w, q.n_##field = (words).n
	LIST(account, a->account);
	LIST(qos, a->qos);
	LIST(partition, a->partition);
	LIST(state, a->state);
	LIST(name, a->name);
	LIST(wckey, a->wckey);
	LIST(id, a->jobs);
	if (a->cluster.n && !all)
		LIST(cluster, a->cluster);
	else if (!all)
		q.cluster = &here, q.n_cluster = 1;
#undef LIST
	q.uid = a->uid;
	q.n_uid = a->uid_n;
	if (!a->uid_n && !a->all_users && me)
		q.uid = &me, q.n_uid = 1;
	q.gid = a->gid;
	q.n_gid = a->gid_n;
	q.nodes = a->nodes;
	q.has_start = q.has_end = q.has_duplicates = q.has_no_steps = true;
	q.start = (uint64_t)a->start;
	q.end = (uint64_t)a->end;
	q.duplicates = a->duplicates;
	q.no_steps = a->no_steps;
	int rc = client_call_dbd(c, RPC_DB_JOBS, &q.base, 0, &rsp, &err);
	if (rc) {
		show_fail(&err);
		exit(1);
	}
	return (Pb__DbdJobsRsp *)rsp;
}

/* --- sifting and printing -------------------------------------------------------------------------------------------------- */
static bool in_range(const struct range *r, uint64_t v) { return !r->set || (v >= r->min && v <= (r->max > r->min ? r->max : r->min)); }

/* Was the feature asked for? "a&b", "[a*2|b]" */
static bool has_feature(const char *features, const char *want)
{
	size_t n = strlen(want);
	for (const char *p = features; p && *p; p += strcspn(p, "&|,[]()*")) {
		p += strspn(p, "&|,[]()*");
		if (strcspn(p, "&|,[]()*") == n && !strncmp(p, want, n))
			return true;
	}
	return false;
}

static bool job_passes(const struct sacct *a, const Pb__DbdJob *d, const Pb__JobRecord *j)
{
	uint32_t limit = j->time_limit_min;
	bool found = !a->reason.n;
	for (size_t i = 0; i < a->constraint.n; i++)
		if (!has_feature(j->desc ? j->desc->features : NULL, a->constraint.w[i]))
			return false;
	for (size_t i = 0; i < a->reason.n && !found; i++)
		found = !strcasecmp(a->reason.w[i], reason_name(d->reason));
	if (a->has_limit_min && (limit < a->limit_min || limit > (a->has_limit_max ? a->limit_max : a->limit_min)))
		return false;
	return found && in_range(&a->nnodes, j->num_nodes) && in_range(&a->ncpus, j->alloc && j->alloc->num_cpus ? j->alloc->num_cpus : j->num_cpus);
}

/* The script of a job that runs has no record before it ends: its row is made from the job's. */
static void script_row(const struct sacct *a, const Pb__DbdJob *d, const Pb__JobRecord *j, struct str *out)
{
	Pb__StepRecord s = PB__STEP_RECORD__INIT;
	struct sacct_row r;
	bool runs = j->state == PB__JOB_STATE__RUNNING || j->state == PB__JOB_STATE__SUSPENDED;
	const Pb__NodeAlloc *part = j->alloc && j->alloc->n_part ? j->alloc->part[0] : NULL;
	if (!runs || !part || !j->desc || !j->desc->batch || j->het_offset || d->requeued)
		return;
	for (size_t i = 0; i < d->n_step; i++)
		if (d->step[i]->step_id == STEP_ID_BATCH)
			return;
	struct tres_sum sum = { .cpu = part->cpus, .mem_mb = part->mem, .node = 1 };
	for (size_t k = 0; k < part->n_gres; k++)
		tres_add_gres(&sum, part->gres[k]->name, part->gres[k]->type, part->gres[k]->count);
	s.job_id = j->job_id;
	s.step_id = STEP_ID_BATCH;
	s.name = (char *)"batch";
	s.state = j->state;
	s.has_start_time = s.has_num_nodes = s.has_num_tasks = s.has_num_cpus = true;
	s.start_time = j->start_time;
	s.nodes = j->alloc->batch_host;
	s.num_nodes = s.num_tasks = 1;
	s.num_cpus = part->cpus;
	s.tres = tres_format(&sum, true);
	if (is_picked(a, j, &s)) {
		sacct_row_init(&r, d, j, &s, -1);
		row_put(out, a, &r);
	}
	free(s.tres);
}

static void steps_print(const struct sacct *a, const Pb__DbdJob *d, const Pb__JobRecord *j, struct str *out)
{
	struct sacct_row r;
	if (!a->no_steps)
		script_row(a, d, j, out);
	for (size_t i = 0; !a->no_steps && i < d->n_step; i++) {
		if (!is_picked(a, j, d->step[i]))
			continue;
		sacct_row_init(&r, d, j, d->step[i], -1);
		row_put(out, a, &r);
	}
}

static void job_write(const struct sacct *a, const Pb__DbdJob *d, const Pb__JobRecord *j, struct str *out)
{
	struct sacct_row r;
	bool wanted = is_picked(a, j, NULL);
	for (size_t i = 0; i < d->n_step && !wanted; i++)
		wanted = is_picked(a, j, d->step[i]);
	if (!wanted)
		return;
	sacct_row_init(&r, d, j, NULL, -1);
	sacct_json_head(a->writer, &r);
	sacct_json_middle(a->writer, &r);
	json_open(a->writer, "steps", '[');
	steps_print(a, d, j, out);
	json_close(a->writer);
	sacct_json_tail(a->writer, &r);
	if (out->len > OUT_CHUNK)
		out_flush(out);
}

static void job_print(const struct sacct *a, const Pb__DbdJob *d, const Pb__JobRecord *j, struct str *out)
{
	struct sacct_row r;
	struct bitset *tasks = NULL;
	if (a->writer) {
		job_write(a, d, j, out);
		return;
	}
	if (a->array && j->array_tasks && !j->has_array_task_id && !idset_parse(j->array_tasks, ARRAY_INDEX_MAX, &tasks, NULL)) {
		bitset_for(tasks, t) {
			sacct_row_init(&r, d, j, NULL, t);
			row_put(out, a, &r);
		}
		bitset_destroy(tasks);
		return;
	}
	if (is_picked(a, j, NULL)) {
		sacct_row_init(&r, d, j, NULL, -1);
		row_put(out, a, &r);
	}
	steps_print(a, d, j, out);
}

static void text_print(const struct sacct *a, const Pb__JobRecord *j, struct str *out)
{
	if (a->script)
		str_addf(out, "Batch Script for %u\n", j->job_id);
	else
		str_addf(out, "Environment used for %u (must be batch to display)\n", j->job_id);
	str_add(out, "--------------------------------------------------------------------------------\nNONE\n");
}

static int jobs_print(struct sacct *a, const Pb__DbdJobsRsp *rsp)
{
	struct str out = STR_INIT;
	struct json writer;
	bool texts = a->script || a->env_vars, is_json = a->json || a->yaml;
	if (is_json) {
		a->writer = &writer;
		json_init(a->writer, &out, a->yaml != NULL);
		json_open(a->writer, NULL, '{');
		json_open(a->writer, "jobs", '[');
	} else if (!a->no_header && !texts)
		cells_header(&out, &a->cells);
	for (size_t i = 0; i < rsp->n_job && !a->nothing; i++) {
		const Pb__DbdJob *d = rsp->job[i];
		Pb__JobRecord *j = pb__job_record__unpack(NULL, d->record.len, d->record.data);
		if (!j)
			continue;
		if (job_passes(a, d, j) && !texts)
			job_print(a, d, j, &out);
		else if (texts && is_picked(a, j, NULL))
			text_print(a, j, &out);
		pb__job_record__free_unpacked(j, NULL);
	}
	if (is_json) {
		json_close(a->writer);
		json_end(a->writer, a->argv, a->argc);
	}
	out_flush(&out);
	str_fini(&out);
	return 0;
}

int main(int argc, char **argv)
{
	struct sacct a = { .whole_het = -1, .cells = { .field = sacct_names, .field_n = sacct_names_n } };
	show_start("sacct");
	sacct_env.now = (uint64_t)time(NULL);
	a.argv = show_argv_keep(argc, argv);
	a.argc = argc;
	options_read(&a, argc, argv);
	int parser = json_parser_check("sacct", a.json ? a.json : a.yaml);
	if (parser)
		return parser - 1;
	if ((a.script || a.env_vars) && !a.jobs.n) {
		log_error("This option requires the --jobs option.");
		return 1;
	}
	struct client *c = show_open();
	const char *type = conf_str(client_conf(c), CONF_AccountingStorageType);
	if (!type) {
		fprintf(stderr, "Slurm accounting storage is disabled\n");
		return 1;
	}
	sacct_env.tres_tracked = conf_str(client_conf(c), CONF_AccountingStorageTRES);
	Pb__DbdJobsRsp *rsp = ask(&a, c);
	int rc = jobs_print(&a, rsp);
	pb__dbd_jobs_rsp__free_unpacked(rsp, NULL);
	client_close(c);
	return rc;
}
