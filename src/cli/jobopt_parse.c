/* jobopt_parse.c - one parser a kind of value, named by the rows of tables/options.def
 *
 * A parser checks its text completely and only then stores; its sentence of refusal is the reference's. Numbers are refused with
 * exit code 1, other values with 255, as there. Parsers of bindings are in jobopt_bind.c. */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/full.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/jobopt.h"
#include "cli/jobopt_row.h"
#include "base/signame.h"
#include "model/hostlist.h"
#include "model/timespec.h"
#include "model/tres.h"
#include "model/usage.h"

int jobopt_refuse_spec(struct jobopt *o, const struct jobopt_row *row, struct error *err)
{
	return jobopt_refuse(o, 255, err, "Invalid --%s specification", row->opt.name);
}

static int refuse_num(struct jobopt *o, const struct jobopt_row *row, const char *value, struct error *err)
{
	return jobopt_refuse(o, 1, err, "Invalid numeric value \"%s\" for --%s.", value, row->opt.name);
}

JOBOPT_PARSER(none)
{
	return error_set(err, ESLURM_NOT_SUPPORTED, "option '--%s' is not supported by this version", row->opt.name);
}

JOBOPT_PARSER(str)
{
	jobopt_put_str(o, &row->target, value);
	return 0;
}

JOBOPT_PARSER(program)
{
	return jobopt_parse_str(o, row, value, err);
}

/* A name, or a number that need have none. */
static int parse_id(struct jobopt *o, const struct jobopt_row *row, const char *value, bool group, uint32_t *ret, struct error *err)
{
	unsigned long long n;
	if (getuid() != 0)
		return jobopt_refuse(o, 255, err, "--%s only permitted by root user", row->opt.name);
	const struct group *gr = group ? getgrnam(value) : NULL;
	const struct passwd *pw = group ? NULL : getpwnam(value);
	if (gr || pw)
		*ret = gr ? gr->gr_gid : pw->pw_uid;
	else if (full_needed(), str_to_u64(value, 0, UINT32_MAX - 1, &n) < 0)
		return jobopt_refuse_spec(o, row, err);
	else
		*ret = (uint32_t)n;
	return 0;
}

JOBOPT_PARSER(uid)
{
	int rc = parse_id(o, row, value, false, &o->as_uid, err);
	o->has_as_uid = rc == 0;
	return rc;
}

JOBOPT_PARSER(gid)
{
	int rc = parse_id(o, row, value, true, &o->as_gid, err);
	o->has_as_gid = rc == 0;
	return rc;
}

JOBOPT_PARSER(acctg_freq)
{
	uint32_t seconds;
	struct error piece = { 0 };
	if (usage_frequency(value, &seconds, &piece) < 0)
		return jobopt_refuse(o, 255, err, "Invalid --acctg-freq specification: %s", piece.line);
	jobopt_put_str(o, &row->target, value);
	return 0;
}

JOBOPT_PARSER(flag)
{
	jobopt_put_num(o, &row->target, 1);
	return 0;
}

static int num_parse(struct jobopt *o, const struct jobopt_row *row, const char *value, unsigned long long min, struct error *err)
{
	unsigned long long n;
	if (str_to_u64(value, min, INT32_MAX - 1, &n) < 0)
		return refuse_num(o, row, value, err);
	jobopt_put_num(o, &row->target, n);
	return 0;
}

JOBOPT_PARSER(uint0) { return num_parse(o, row, value, 0, err); }
JOBOPT_PARSER(uint1) { return num_parse(o, row, value, 1, err); }

/* Of a segment of nodes; empty: as if not given. */
JOBOPT_PARSER(segment)
{
	unsigned long long n;
	if (!*value)
		return 0;
	if (str_to_u64(value, 0, INT32_MAX - 1, &n) < 0)
		return jobopt_refuse_spec(o, row, err);
	jobopt_put_num(o, &row->target, n);
	return 0;
}

/* Of the tree in which nodes hand messages on; "off": one node hands on nothing. */
JOBOPT_PARSER(treewidth)
{
	unsigned long long n = 65533;
	if (!str_eq_nocase(value, "off") && *value && str_to_u64(value, 0, 65533, &n) < 0)
		return jobopt_refuse(o, 255, err, "Invalid --treewidth value: %s", value);
	jobopt_put_num(o, &row->target, *value ? n : 0);
	return 0;
}

JOBOPT_PARSER(show_help) { o->show = JOBOPT_SHOW_HELP; return 0; }
JOBOPT_PARSER(show_usage) { o->show = JOBOPT_SHOW_USAGE; return 0; }
JOBOPT_PARSER(show_version) { o->show = JOBOPT_SHOW_VERSION; return 0; }

JOBOPT_PARSER(verbose)
{
	unsigned long long n;
	if (!value)
		o->verbose++;
	else if (str_to_u64(value, 0, 9, &n) < 0)
		return jobopt_refuse(o, 1, err, "Invalid numeric value \"%s\" for %s.", value, row->env[jobopt_cmd_index(o->cmd)]);
	else
		o->verbose = (unsigned)n;
	return 0;
}

/* --- times ------------------------------------------------------------------------------------------- */

static int when_parse(struct jobopt *o, const struct jobopt_row *row, const char *value, uint64_t *ret, struct error *err)
{
	time_t when;
	struct error inner;
	if (!*value)
		return jobopt_refuse_spec(o, row, err);
	if (timespec_parse_when(value, time(NULL), 0, &when, &inner) < 0) {
		free(o->before);
		o->before = xstrdup(inner.line);
		return jobopt_refuse_spec(o, row, err);
	}
	*ret = (uint64_t)when;
	return 0;
}

JOBOPT_PARSER(begin)
{
	int rc = when_parse(o, row, value, &o->desc->begin_time, err);
	o->desc->has_begin_time = rc == 0;
	return rc;
}

JOBOPT_PARSER(deadline)
{
	int rc = when_parse(o, row, value, &o->desc->deadline, err);
	o->desc->has_deadline = rc == 0;
	return rc;
}

JOBOPT_PARSER(time)
{
	uint32_t mins;
	if (timespec_parse_mins(value, &mins, NULL) < 0)
		return jobopt_refuse_spec(o, row, err);
	/* "A time limit of zero requests that no time limit be imposed." */
	jobopt_put_num(o, &row->target, mins ? mins : TIME_INFINITE);
	return 0;
}

JOBOPT_PARSER(delay_boot)
{
	uint32_t secs;
	if (timespec_parse_secs(value, &secs, NULL) < 0)
		return jobopt_refuse_spec(o, row, err);
	jobopt_put_num(o, &row->target, secs);
	return 0;
}

JOBOPT_PARSER(wait4switch)
{
	uint32_t secs;
	if (timespec_parse_secs(value, &secs, NULL) < 0)
		return jobopt_refuse(o, 255, err, "Invalid value \"%s\" of environment variable %s", value, row->env[jobopt_cmd_index(o->cmd)]);
	jobopt_put_num(o, &row->target, secs);
	return 0;
}

JOBOPT_PARSER(switches)
{
	char *copy = xstrdup(value), *at = strchr(copy, '@');
	unsigned long long n;
	uint32_t secs = 0;
	int rc = 0;
	if (at)
		*at++ = 0;
	if (str_to_u64(copy, 1, INT32_MAX, &n) < 0)
		rc = refuse_num(o, row, copy, err);
	else if (at && timespec_parse_secs(at, &secs, NULL) < 0)
		rc = jobopt_refuse_spec(o, row, err);
	xfree(copy);
	if (rc < 0)
		return rc;
	o->desc->has_switches = true;
	o->desc->switches = (uint32_t)n;
	if (at) {
		o->desc->has_switches_wait_sec = true;
		o->desc->switches_wait_sec = secs;
	}
	return 0;
}

JOBOPT_PARSER(immediate)
{
	unsigned long long n = 1;
	if (value && str_to_u64(value, 0, INT32_MAX, &n) < 0)
		return jobopt_refuse(o, 1, err, "Invalid numeric value \"%s\" for immediate.", value);
	o->immediate_sec = (int)n;
	return 0;
}

JOBOPT_PARSER(wait)
{
	unsigned long long n;
	if (str_to_u64(value, 0, INT32_MAX, &n) < 0)
		return refuse_num(o, row, value, err);
	o->wait_sec = (int)n;
	return 0;
}

/* --- sizes -------------------------------------------------------------------------------------------- */

JOBOPT_PARSER(mem)
{
	uint64_t mb;
	if (mem_parse(value, &mb, NULL) < 0)
		return jobopt_refuse_spec(o, row, err);
	jobopt_put_num(o, &row->target, mb);
	return 0;
}

/* "1-3", "4", "2k", "-3"; "1,3" and "2-8:2" are the reference's size strings. */
static int node_count(struct jobopt *o, const char *text, size_t len, uint32_t *ret, struct error *err)
{
	char buf[24], *end;
	if (len == 0 || len >= sizeof(buf) || !isdigit((unsigned char)text[0]))
		goto bad;
	memcpy(buf, text, len);
	buf[len] = 0;
	errno = 0;
	unsigned long long n = strtoull(buf, &end, 10), unit = 1;
	if (*end && !end[1])
		unit = tolower((unsigned char)*end) == 'k' ? 1024 : tolower((unsigned char)*end) == 'm' ? 1048576 : 0;
	else if (*end)
		unit = 0;
	if (!unit || errno || n > INT32_MAX / unit)
		goto bad;
	*ret = (uint32_t)(n * unit);
	return 0;
bad:
	return jobopt_refuse(o, 255, err, "\"%.*s\" is not a valid node count", (int)len, text);
}

JOBOPT_PARSER(nodes)
{
	if (strpbrk(value, ",:"))
		return jobopt_refuse(o, 255, err, "\"%s\": lists and steps of node counts are not supported by this version; give min[-max]", value);
	const char *dash = strchr(value, '-');
	uint32_t min = 1, max;
	int rc = 0;
	if (dash == value) {
		rc = node_count(o, value + 1, strlen(value + 1), &max, err);
	} else if (dash) {
		rc = node_count(o, value, (size_t)(dash - value), &min, err);
		if (rc == 0)
			rc = node_count(o, dash + 1, strlen(dash + 1), &max, err);
	} else {
		rc = node_count(o, value, strlen(value), &min, err);
		max = min;
	}
	if (rc < 0)
		return rc;
	if (max < min)
		return jobopt_refuse(o, 255, err, "Maximum node count %u is less than minimum node count %u", max, min);
	o->desc->has_min_nodes = o->desc->has_max_nodes = true;
	o->desc->min_nodes = min;
	o->desc->max_nodes = max;
	return 0;
}

/* "sockets[:cores[:threads]]", '*' leaves one open. */
JOBOPT_PARSER(extra_node_info)
{
	static const char *const ordinal[] = { "first", "second", "third" };
	uint32_t got[3] = { 0 };
	char *copy = xstrdup(value), *cursor = copy, *part;
	int rc = 0;
	for (size_t i = 0; rc == 0 && (part = str_next(&cursor, ":")); i++) {
		unsigned long long n = 0;
		if (i == 3)
			rc = jobopt_refuse_spec(o, row, err);
		else if (strcmp(part, "*") && str_to_u64(part, 0, INT32_MAX, &n) < 0)
			rc = jobopt_refuse(o, 1, err, "Invalid numeric value \"%s\" for %s arg of -B.", part, ordinal[i]);
		else
			got[i] = (uint32_t)n;
	}
	xfree(copy);
	if (rc < 0)
		return rc;
	Pb__JobDesc *d = o->desc;
	if (got[0]) { d->has_sockets_per_node = true; d->sockets_per_node = got[0]; }
	if (got[1]) { d->has_cores_per_socket = true; d->cores_per_socket = got[1]; }
	if (got[2]) { d->has_threads_per_core = true; d->threads_per_core = got[2]; }
	return 0;
}

JOBOPT_PARSER(nice)
{
	long long n = 100;
	int rc = value ? str_to_i64(value, -2147483645, 2147483645, &n) : 0;
	if (rc == -ERANGE)
		return jobopt_refuse(o, 255, err, "Invalid --nice value, out of range (+/- 2147483645)");
	if (rc < 0)
		return jobopt_refuse_spec(o, row, err);
	o->desc->has_nice = true;
	o->desc->nice = (int32_t)n;
	return 0;
}

JOBOPT_PARSER(priority)
{
	long long n;
	if (str_eq_nocase(value, "TOP"))
		n = UINT32_MAX - 1;
	else if (str_to_i64(value, INT32_MIN, UINT32_MAX - 1LL, &n) < 0)
		return jobopt_refuse_spec(o, row, err);
	if (n < 0)
		return jobopt_refuse(o, 255, err, "Priority must be >= 0");
	jobopt_put_num(o, &row->target, (uint64_t)n);
	return 0;
}

JOBOPT_PARSER(relative)
{
	unsigned long long n;
	if (str_to_u64(value, 0, INT32_MAX, &n) < 0)
		return refuse_num(o, row, value, err);
	o->has_relative = true;
	o->relative = (uint32_t)n;
	return 0;
}

/* --- words ------------------------------------------------------------------------------------------- */

struct word { const char *name; int value; };

static const struct word *word_find(const struct word *words, const char *text)
{
	for (; words->name; words++)
		if (str_eq_nocase(words->name, text))
			return words;
	return NULL;
}

static int word_flag(struct jobopt *o, const struct jobopt_row *row, const struct word *words, const char *value, struct error *err)
{
	const struct word *w = word_find(words, value);
	if (!w)
		return jobopt_refuse_spec(o, row, err);
	jobopt_put_num(o, &row->target, (uint64_t)w->value);
	return 0;
}

JOBOPT_PARSER(yes_no)
{
	static const struct word words[] = { { "yes", 1 }, { "no", 0 }, { NULL, 0 } };
	return word_flag(o, row, words, value, err);
}

JOBOPT_PARSER(export_torch)
{
	static const struct word words[] = { { "yes", 0 }, { "no", 1 }, { NULL, 0 } };
	return word_flag(o, row, words, value, err);
}

JOBOPT_PARSER(open_mode)
{
	static const struct word words[] = { { "append", 1 }, { "a", 1 }, { "truncate", 0 }, { "t", 0 }, { NULL, 0 } };
	return word_flag(o, row, words, value, err);
}

JOBOPT_PARSER(oom_kill_step)
{
	static const struct word words[] = { { "1", 1 }, { "0", 0 }, { NULL, 0 } };
	return word_flag(o, row, words, value ? value : "1", err);
}

JOBOPT_PARSER(wait_all_nodes)
{
	static const struct word words[] = { { "1", 1 }, { "0", 0 }, { NULL, 0 } };
	unsigned long long n;
	if (!*value)
		return 0;
	return str_to_u64(value, 0, UINT32_MAX, &n) < 0 ? refuse_num(o, row, value, err) : word_flag(o, row, words, value, err);
}

/* "--no-kill=off" takes the environment's wish back. */
JOBOPT_PARSER(no_kill)
{
	static const struct word words[] = { { "off", 0 }, { "no", 0 }, { "yes", 1 }, { "1", 1 }, { "", 1 }, { NULL, 0 } };
	return word_flag(o, row, words, value ? value : "", err);
}

JOBOPT_PARSER(requeue)
{
	if (value && str_eq_nocase(value, "expedite"))
		return jobopt_refuse(o, 1, err, "--requeue=expedite is not supported by this version");
	if (value && *value && strcmp(value, "1") && !str_eq_nocase(value, "yes"))
		return jobopt_refuse_spec(o, row, err);
	jobopt_put_num(o, &row->target, 1);
	return 0;
}

JOBOPT_PARSER(no_requeue)
{
	if (o->from[JO_requeue] > JOBOPT_UNSET && o->from[JO_requeue] > o->from[JO_no_requeue])
		return 0;
	o->desc->has_requeue = true;
	o->desc->requeue = false;
	return 0;
}

JOBOPT_PARSER(exclusive)
{
	static const struct word kinds[] = { { "node", 0 }, { "user", 0 }, { "mcs", 0 }, { "topo", 0 }, { NULL, 0 } };
	const char *kind = "node";
	if (value && *value && !str_eq_nocase(value, "allocation")) {
		const struct word *w = word_find(kinds, value);
		/* SBATCH_EXCLUSIVE=true is seen in the wild and means the plain option. */
		if (!w && !str_eq_nocase(value, "true") && !str_eq_nocase(value, "yes") && !str_eq_nocase(value, "exclusive") && strcmp(value, "1"))
			return jobopt_refuse_spec(o, row, err);
		kind = w ? w->name : "node";
	}
	if (value && str_eq_nocase(value, "allocation") && o->cmd != JOBOPT_SRUN)
		return jobopt_refuse_spec(o, row, err);
	/* srun: "BOTH whole nodes AND --exact behavior", unless =allocation, user, mcs or topo. */
	o->exclusive = !strcmp(kind, "node") && !(value && str_eq_nocase(value, "allocation"));
	jobopt_put_str(o, &row->target, kind);
	return 0;
}

JOBOPT_PARSER(profile)
{
	if (str_eq_nocase(value, "none")) {
		jobopt_put_str(o, &row->target, o->cmd == JOBOPT_SRUN ? NULL : "None");
		return 0;
	}
	if (str_eq_nocase(value, "all") || str_eq_nocase(value, "task") || str_eq_nocase(value, "energy") || str_eq_nocase(value, "network") ||
	    str_eq_nocase(value, "lustre"))
		return jobopt_refuse(o, 1, err, "--profile=%s is not supported by this version; only \"none\" is", value);
	return jobopt_refuse(o, 255, err, "invalid --profile=%s option", value);
}

/* Each word of a comma list must be in `words`. The list is stored in upper case. */
JOBOPT_PARSER(mail_type)
{
	static const struct word words[] = { { "NONE", 0 }, { "BEGIN", 0 }, { "END", 0 }, { "FAIL", 0 }, { "REQUEUE", 0 }, { "ALL", 0 },
		{ "INVALID_DEPEND", 0 }, { "STAGE_OUT", 0 }, { "TIME_LIMIT", 0 }, { "TIME_LIMIT_90", 0 }, { "TIME_LIMIT_80", 0 },
		{ "TIME_LIMIT_50", 0 }, { "ARRAY_TASKS", 0 }, { NULL, 0 } };
	char *copy = xstrdup(value), *cursor = copy, *part;
	struct str s = STR_INIT;
	int rc = 0;
	while (rc == 0 && (part = str_next(&cursor, ","))) {
		const struct word *w = word_find(words, part);
		if (!w)
			rc = jobopt_refuse_spec(o, row, err);
		else
			str_add_sep(&s, ",", w->name);
	}
	if (rc == 0)
		jobopt_put_str(o, &row->target, s.data);
	str_fini(&s);
	xfree(copy);
	return rc;
}

JOBOPT_PARSER(gres_flags)
{
	static const struct word words[] = { { "enforce-binding", 0 }, { "disable-binding", 0 }, { "allow-task-sharing", 0 },
		{ "multiple-tasks-per-sharing", 0 }, { "one-task-per-sharing", 0 }, { NULL, 0 } };
	char *copy = xstrdup(value), *cursor = copy, *part;
	int rc = 0;
	while (*value && rc == 0 && (part = str_next(&cursor, ",")))
		if (!word_find(words, part))
			rc = jobopt_refuse(o, 255, err, "Invalid --gres-flags specification: %s", part);
	if (rc == 0 && *value)
		jobopt_put_str(o, &row->target, value);
	xfree(copy);
	return rc;
}

JOBOPT_PARSER(hint)
{
	static const struct word words[] = { { "compute_bound", 0 }, { "memory_bound", 0 }, { "multithread", 0 }, { "nomultithread", 0 }, { NULL, 0 } };
	if (str_eq_nocase(value, "help")) {
		o->show = JOBOPT_SHOW_HINT;
		return 0;
	}
	char *copy = xstrdup(value), *cursor = copy, *part;
	int rc = 0;
	do {
		part = str_next(&cursor, ",");
		if (!part || !word_find(words, part))
			rc = jobopt_refuse(o, 1, err, "unrecognized --hint argument \"%s\", see --hint=help", part ? part : "");
	} while (rc == 0 && cursor);
	xfree(copy);
	if (rc == 0)
		jobopt_put_str(o, &row->target, value);
	return rc;
}

/* An optional value: "" where none is given. */
JOBOPT_PARSER(maybe_str)
{
	jobopt_put_str(o, &row->target, value ? value : "");
	return 0;
}

JOBOPT_PARSER(mpi)
{
	if (str_eq_nocase(value, "list")) {
		o->show = JOBOPT_SHOW_MPI;
		return 0;
	}
	if (!str_eq(value, "none") && !str_eq(value, "pmi2") && !str_eq(value, "pmix")) {
		log_error("MPI: Cannot create context for mpi/%s", value);
		log_error("MPI: Unable to load any plugin");
		return jobopt_refuse(o, 1, err, "Invalid MPI type '%s', --mpi=list for acceptable types", value);
	}
	jobopt_put_str(o, &row->target, value);
	return 0;
}

JOBOPT_PARSER(slurmd_debug)
{
	enum log_level level;
	if (log_level_parse(value, &level) < 0)
		return jobopt_refuse(o, 255, err, "Invalid --slurmd-debug level \"%s\": quiet, fatal, error, info, verbose, debug or debug2", value);
	jobopt_put_str(o, &row->target, log_level_name(level > LOG_L_DEBUG2 ? LOG_L_DEBUG2 : level));
	return 0;
}

static const char *const limit_names[] = { "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK" };

static int bad_limit(struct jobopt *o, const char *name, const char *value, struct error *err)
{
	free(o->before);
	o->before = xasprintf("%s: error: Bad rlimit name: %s", jobopt_cmd_name(o->cmd), name);
	return jobopt_refuse(o, 1, err, "--propagate=%s is not valid.", value);
}

JOBOPT_PARSER(propagate)
{
	if (!value || !*value || str_eq_nocase(value, "ALL") || str_eq_nocase(value, "NONE")) {
		jobopt_put_str(o, &row->target, value && *value ? value : "ALL");
		return 0;
	}
	char *copy = xstrdup(value), *cursor = copy, *part;
	int rc = 0;
	while (rc == 0 && (part = str_next(&cursor, ","))) {
		const char *name = str_starts(part, "RLIMIT_") ? part + 7 : part;
		size_t i = 0;
		while (i < sizeof(limit_names) / sizeof(limit_names[0]) && strcmp(limit_names[i], name))
			i++;
		if (i == sizeof(limit_names) / sizeof(limit_names[0]))
			rc = bad_limit(o, part, value, err);
	}
	xfree(copy);
	if (rc == 0)
		jobopt_put_str(o, &row->target, value);
	return rc;
}

/* --- signals ------------------------------------------------------------------------------------------ */

/* "[{R|B}:]sig_num[@sig_time]", at most 65535 seconds; kept as "B:USR1@60". */
JOBOPT_PARSER(signal)
{
	const char *at = value;
	struct str s = STR_INIT;
	size_t prefix = strspn(at, "RB");
	if (prefix && at[prefix] == ':') {
		str_add_n(&s, at, prefix + 1);
		at += prefix + 1;
	}
	const char *sep = strchr(at, '@');
	char *name = xstrndup(at, sep ? (size_t)(sep - at) : strlen(at));
	int number = signame_parse(name);
	unsigned long long secs = 60;
	int rc = number <= 0 || (sep && sep[1] && str_to_u64(sep + 1, 0, 65535, &secs) < 0) ? jobopt_refuse_spec(o, row, err) : 0;
	xfree(name);
	if (rc == 0) {
		char text[16];
		signame_format(number, text, sizeof(text));
		str_addf(&s, "%s@%llu", text, secs);
		jobopt_put_str(o, &row->target, s.data);
	}
	str_fini(&s);
	return rc;
}

JOBOPT_PARSER(ignore_signals)
{
	static const int may[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, 0 };
	char *copy = xstrdup(value), *cursor = copy, *part;
	int rc = 0;
	while (rc == 0 && (part = str_next(&cursor, ","))) {
		int number = signame_parse(part), i = 0;
		while (may[i] && may[i] != number)
			i++;
		if (number <= 0) {
			rc = jobopt_refuse(o, 255, err, "Invalid signal name or number: %s", part);
		} else if (!may[i]) {
			char name[16];
			signame_format(number, name, sizeof(name));
			rc = jobopt_refuse(o, 255, err, "Signal %s cannot be ignored", name);
		}
	}
	xfree(copy);
	if (rc == 0)
		jobopt_put_str(o, &row->target, value);
	return rc;
}

JOBOPT_PARSER(kill_command)
{
	char *end;
	long any = value ? strtol(value, &end, 10) : 0; /* whatever number: kill(2) says what it thinks of it */
	int number = !value || !*value ? SIGTERM : *end ? signame_parse(value) : any < INT_MIN || any > INT_MAX ? 0 : (int)any;
	if (number <= 0 && (!value || *end))
		return jobopt_refuse_spec(o, row, err);
	o->kill_command = true;
	o->kill_command_signal = number;
	return 0;
}

JOBOPT_PARSER(kill_on_bad_exit)
{
	unsigned long long n = 1;
	if (value && *value && str_to_u64(value, 0, INT32_MAX, &n) < 0)
		return refuse_num(o, row, value, err);
	o->kill_on_bad_exit = n != 0;
	return 0;
}

/* --- places ------------------------------------------------------------------------------------------- */

/* Relative to where we stand. */
JOBOPT_PARSER(chdir)
{
	if (*value == '/') {
		jobopt_put_str(o, &row->target, value);
		return 0;
	}
	char *here = getcwd(NULL, 0);
	char *path = xasprintf("%s/%s", here ? here : "", value);
	jobopt_put_str(o, &row->target, path);
	xfree(path);
	free(here);
	return 0;
}

/* Names in a file, separated by commas, blanks or newlines; malloc'd host list, or NULL and err. */
static char *nodes_read(struct jobopt *o, const char *path, struct error *err)
{
	FILE *f = fopen(path, "re");
	if (!f) {
		(void)jobopt_refuse(o, 1, err, "slurm_allocate_resources error opening file %s, %s", path, strerror(errno));
		return NULL;
	}
	struct str s = STR_INIT;
	char buf[4096];
	size_t got;
	while ((got = fread(buf, 1, sizeof(buf), f)) > 0 && s.len < (16u << 20))
		str_add_n(&s, buf, got);
	fclose(f);
	struct hostlist hl = HOSTLIST_INIT;
	char *text = NULL;
	if (hostlist_add(&hl, s.data, err) < 0)
		o->exit_code = 1;
	else if (!hl.count) /* a folder, too: what cannot be read names nothing */
		(void)jobopt_refuse(o, 1, err, "Hostlist is empty!");
	else
		text = hostlist_compact(&hl);
	hostlist_fini(&hl);
	str_fini(&s);
	return text;
}

static int nodes_from_file(struct jobopt *o, const struct jobopt_row *row, const char *path, struct error *err)
{
	char *text = nodes_read(o, path, err);
	if (!text)
		return err ? err->code : -EINVAL;
	jobopt_put_str(o, &row->target, text);
	xfree(text);
	return 0;
}

JOBOPT_PARSER(nodefile)
{
	struct error inner = { 0 };
	int rc = nodes_from_file(o, row, value, &inner);
	if (rc < 0) {
		free(o->before);
		o->before = xasprintf("%s: error: %s", jobopt_cmd_name(o->cmd), inner.line);
		return jobopt_refuse(o, 255, err, "Invalid --nodefile node file");
	}
	return 0;
}

/* "node1*2" is "node1,node1": written out, commas inside brackets left alone. */
static void nodelist_expand(struct str *s, const char *text)
{
	int depth = 0;
	for (const char *from = text, *at = text;; at++) {
		depth += (*at == '[') - (*at == ']');
		if (*at && (*at != ',' || depth))
			continue;
		const char *star = memchr(from, '*', (size_t)(at - from));
		unsigned long times = star ? strtoul(star + 1, NULL, 10) : 1;
		for (unsigned long i = 0; i < times && i < HOSTLIST_MAX; i++) {
			str_add_sep(s, ",", "");
			str_add_n(s, from, (size_t)((star ? star : at) - from));
		}
		if (!*at)
			return;
		from = at + 1;
	}
}

JOBOPT_PARSER(nodelist)
{
	if (strchr(value, '/'))
		return nodes_from_file(o, row, value, err);
	struct str s = STR_INIT;
	nodelist_expand(&s, value);
	struct hostlist hl = HOSTLIST_INIT;
	int rc = hostlist_add(&hl, s.data, NULL);
	if (rc < 0) {
		o->fatal = true;
		rc = jobopt_refuse(o, 1, err, "Invalid node list specified");
	} else {
		jobopt_put_str(o, &row->target, s.data);
	}
	str_fini(&s);
	hostlist_fini(&hl);
	return rc;
}

JOBOPT_PARSER(exclude)
{
	if (strchr(value, '/'))
		return nodes_from_file(o, row, value, err);
	jobopt_put_str(o, &row->target, value);
	return 0;
}

JOBOPT_PARSER(jobid)
{
	char *end;
	errno = 0;
	unsigned long id = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)*value) || errno || id == 0 || id > INT32_MAX || (*end && *end != '.' && *end != '_' && *end != '+')) {
		o->fatal = true;
		return jobopt_refuse(o, 1, err, "Bad job/step specified: %s: JobID can not be zero", value);
	}
	o->jobid = (uint32_t)id;
	return 0;
}

JOBOPT_PARSER(pty)
{
	unsigned long long fd = 0;
	if (value && str_to_u64(value, 0, 65535, &fd) < 0) {
		o->fatal = true;
		return jobopt_refuse(o, 1, err, "--pty=%s must be numeric file descriptor", value);
	}
	o->pty = true;
	o->pty_fd = value ? (int)fd : -1;
	return 0;
}

/* --- GPUs and other resources -------------------------------------------------------------------------- */

/* Each element with the prefix "gres/" and, where gpu is understood, "gres/gpu": "h100:2" -> "gres/gpu:h100:2". */
static void gres_prefix(struct str *s, const char *value, const char *prefix, char sep)
{
	char *copy = xstrdup(value), *cursor = copy, *part;
	while ((part = str_next(&cursor, ","))) {
		str_add_sep(s, ",", "");
		if (!str_starts(part, "gres/"))
			str_add(s, prefix);
		if (!sep) {
			str_add(s, part);
			continue;
		}
		char *colon = strrchr(part, ':');
		if (colon)
			*colon = 0;
		bool typed = colon || !isdigit((unsigned char)*part);
		str_addf(s, "%s%s%c%s", typed ? ":" : "", typed ? part : "", sep, colon ? colon + 1 : typed ? "1" : part);
	}
	xfree(copy);
}

JOBOPT_PARSER(gpus)
{
	struct str s = STR_INIT;
	if (!*value) {                  /* "--gpus=$N" where N is empty: as if not given */
		jobopt_put_str(o, &row->target, NULL);
		return 0;
	}
	gres_prefix(&s, value, "gres/gpu:", 0);
	struct gres_req req[GRES_REQ_MAX];
	size_t n;
	int rc = gres_parse(s.data, req, GRES_REQ_MAX, &n, NULL);
	if (rc < 0)
		rc = jobopt_refuse(o, 1, err, "Invalid Trackable RESource (TRES) specification");
	else
		jobopt_put_str(o, &row->target, s.data);
	str_fini(&s);
	return rc;
}

JOBOPT_PARSER(gpus_per_task)
{
	struct str s = STR_INIT;
	if (!*value)
		return 0;
	if (jobopt_is_set(o, JO_tres_per_task) && o->desc->tres_per_task && strstr(o->desc->tres_per_task, "gpu") && o->from[JO_tres_per_task] == JOBOPT_ENV)
		jobopt_tres_remove(o->desc->tres_per_task, "gres/gpu");     /* what the job was asked for; this is for a step of it */
	if (jobopt_is_set(o, JO_tres_per_task) && o->desc->tres_per_task && strstr(o->desc->tres_per_task, "gpu")) {
		o->fatal = true;
		return jobopt_refuse(o, 1, err, "You can not have --tres-per-task=gres/gpu= and --gpus-per-task please use one or the other");
	}
	gres_prefix(&s, value, "gres/gpu", '=');
	struct gres_req req[GRES_REQ_MAX];
	size_t n;
	int rc = gres_parse(s.data, req, GRES_REQ_MAX, &n, NULL);
	if (rc < 0)
		rc = jobopt_refuse(o, 1, err, "Invalid Trackable RESource (TRES) specification");
	else if (jobopt_is_set(o, JO_tres_per_task) && o->desc->tres_per_task && *o->desc->tres_per_task) {
		str_addf(&s, ",%s", o->desc->tres_per_task);
		xstr_set(&o->desc->tres_per_task, s.data);
	} else {
		xstr_set(&o->desc->tres_per_task, s.data);
	}
	str_fini(&s);
	return rc;
}

JOBOPT_PARSER(gres)
{
	if (str_eq_nocase(value, "help")) {
		o->show = JOBOPT_SHOW_GRES;
		return 0;
	}
	if (str_eq_nocase(value, "none") || !*value) {
		jobopt_put_str(o, &row->target, *value ? "none" : NULL);
		return 0;
	}
	struct str s = STR_INIT;
	gres_prefix(&s, value, "gres/", 0);
	struct gres_req req[GRES_REQ_MAX];
	size_t n;
	int rc = gres_parse(s.data, req, GRES_REQ_MAX, &n, NULL);
	if (rc < 0)
		rc = jobopt_refuse(o, 1, err, "Invalid generic resource (gres) specification");
	else
		jobopt_put_str(o, &row->target, s.data);
	str_fini(&s);
	return rc;
}

JOBOPT_PARSER(tres_per_task)
{
	static const char *const bad[] = { "bb", "billing", "energy", "fs", "mem", "node", "pages", "vmem" };
	char *copy = xstrdup(value), *cursor = *value ? copy : NULL, *part;
	int rc = 0;
	while (rc == 0 && cursor && (part = str_next(&cursor, ","))) {
		size_t len = strcspn(part, ":=/");
		bool known = (len == 3 && !strncmp(part, "cpu", 3)) || (part[len] == '/' && part[len + 1] && ((len == 4 && !strncmp(part, "gres", 4)) || (len == 7 && !strncmp(part, "license", 7))));
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			known &= len != strlen(bad[i]) || strncmp(part, bad[i], len) != 0;
		if (!known)
			rc = jobopt_refuse(o, 1, err, "Invalid --tres-per-task specification: %s", part);
	}
	xfree(copy);
	if (rc)
		return rc;
	/* --gpus-per-task was given and this comes from the environment: both count, as in the other order. */
	bool both = jobopt_is_set(o, JO_gpus_per_task) && o->desc->tres_per_task && !strstr(value, "gres/gpu");
	char *text = both ? xasprintf("%s,%s", o->desc->tres_per_task, value) : xstrdup(value);
	jobopt_put_str(o, &row->target, text);
	free(text);
	return 0;
}

JOBOPT_PARSER(cpus_per_gpu)
{
	unsigned long long n;
	if (str_to_u64(value, 1, INT32_MAX, &n) < 0)
		return refuse_num(o, row, value, err);
	char *text = xasprintf("gres/gpu:%llu", n);
	jobopt_put_str(o, &row->target, text);
	xfree(text);
	return 0;
}

JOBOPT_PARSER(mem_per_gpu)
{
	uint64_t mb;
	if (mem_parse(value, &mb, NULL) < 0)
		return jobopt_refuse_spec(o, row, err);
	char *text = xasprintf("gres/gpu:%llu", (unsigned long long)mb);
	jobopt_put_str(o, &row->target, text);
	xfree(text);
	return 0;
}
