/* squeue_opt.c - squeue's options, environment and the lists they carry (see squeue.h) */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/fields_job.h"
#include "cli/squeue.h"
#include "model/states.h"
#include "model/timespec.h"

enum {
	Q_ACCOUNT = 1, Q_ALL, Q_ARRAY, Q_CLUSTERS, Q_EXPAND, Q_FEDERATION, Q_FORMAT, Q_FORMAT_LONG, Q_HELP, Q_HELP_LETTERS, Q_HELP_NAMES,
	Q_HELP_STATE, Q_HIDE, Q_ITERATE, Q_JOBS, Q_JSON, Q_LICENSES, Q_LOCAL, Q_LONG, Q_ME, Q_NAME, Q_NOCONVERT, Q_NODELIST, Q_NOHEADER, Q_NOTME,
	Q_ONLY_STATE, Q_OVER, Q_UNDER, Q_PARTITION, Q_PRIORITY, Q_QOS, Q_RESERVATION, Q_SIBLING, Q_SORT, Q_START, Q_STATES, Q_STEPS, Q_USAGE,
	Q_USER, Q_VERBOSE, Q_VERSION, Q_WHY, Q_YAML, Q_AUTOCOMPLETE,
};
static const struct opt_row rows[] = {
	{ "account", 'A', OPT_REQUIRED, "accounts", "only jobs of these accounts", Q_ACCOUNT, false },
	{ "all", 'a', OPT_NONE, NULL, "jobs in hidden partitions too", Q_ALL, false },
	{ "array", 'r', OPT_NONE, NULL, "one line for each task of a job array", Q_ARRAY, false },
	{ "clusters", 'M', OPT_REQUIRED, "names", "ask these clusters", Q_CLUSTERS, false },
	{ "cluster", 0, OPT_REQUIRED, "names", NULL, Q_CLUSTERS, false },
	{ "expand-patterns", 0, OPT_NONE, NULL, "show file names with %j and the like filled in", Q_EXPAND, false },
	{ "federation", 0, OPT_NONE, NULL, "jobs of the federation (this cluster is in none: its own)", Q_FEDERATION, false },
	{ "format", 'o', OPT_REQUIRED, "format", "columns by letter: \"%.18i %.9P\"; see --helpformat", Q_FORMAT, false },
	{ "Format", 'O', OPT_REQUIRED, "format", "columns by name: \"JobID:18,Partition\"; see --helpFormat", Q_FORMAT_LONG, false },
	{ "hide", 0, OPT_NONE, NULL, "leave hidden partitions out (the default)", Q_HIDE, false },
	{ "iterate", 'i', OPT_REQUIRED, "seconds", "print again every so many seconds", Q_ITERATE, false },
	{ "jobs", 'j', OPT_REQUIRED, "ids", "only these jobs", Q_JOBS, false },
	{ "json", 0, OPT_OPTIONAL, "data_parser", "print JSON", Q_JSON, false },
	{ "licenses", 'L', OPT_REQUIRED, "names", "only jobs that asked for these licences", Q_LICENSES, false },
	{ "local", 0, OPT_NONE, NULL, "only this cluster (the default)", Q_LOCAL, false },
	{ "long", 'l', OPT_NONE, NULL, "more columns", Q_LONG, false },
	{ "me", 0, OPT_NONE, NULL, "only my jobs", Q_ME, false },
	{ "name", 'n', OPT_REQUIRED, "names", "only jobs of these names", Q_NAME, false },
	{ "names", 0, OPT_REQUIRED, "names", NULL, Q_NAME, false },
	{ "noconvert", 0, OPT_NONE, NULL, "do not turn 2048M into 2G", Q_NOCONVERT, false },
	{ "nodelist", 'w', OPT_REQUIRED, "hosts", "only jobs on these nodes", Q_NODELIST, false },
	{ "nodes", 0, OPT_REQUIRED, "hosts", NULL, Q_NODELIST, false },
	{ "noheader", 'h', OPT_NONE, NULL, "no header line", Q_NOHEADER, false },
	{ "notme", 0, OPT_NONE, NULL, "only jobs of others", Q_NOTME, false },
	{ "only-job-state", 0, OPT_NONE, NULL, "only ids and states", Q_ONLY_STATE, false },
	{ "partition", 'p', OPT_REQUIRED, "partitions", "only jobs in these partitions", Q_PARTITION, false },
	{ "priority", 'P', OPT_NONE, NULL, "a pending job once for each of its partitions", Q_PRIORITY, false },
	{ "qos", 'q', OPT_REQUIRED, "names", "only jobs of these QOS", Q_QOS, false },
	{ "reservation", 'R', OPT_REQUIRED, "names", "only jobs of these reservations", Q_RESERVATION, false },
	{ "running-over", 0, OPT_REQUIRED, "time", "only jobs that have run longer than this", Q_OVER, false },
	{ "running-under", 0, OPT_REQUIRED, "time", "only jobs that have run shorter than this", Q_UNDER, false },
	{ "sibling", 0, OPT_NONE, NULL, "sibling jobs of a federation (here: its own)", Q_SIBLING, false },
	{ "sort", 'S', OPT_REQUIRED, "fields", "order by these letters, '-' before one turns it round", Q_SORT, false },
	{ "start", 0, OPT_NONE, NULL, "expected start of pending jobs", Q_START, false },
	{ "states", 't', OPT_REQUIRED, "states", "only jobs in these states, or \"all\"", Q_STATES, false },
	{ "steps", 's', OPT_OPTIONAL, "steps", "show job steps", Q_STEPS, false },
	{ "user", 'u', OPT_REQUIRED, "users", "only jobs of these users", Q_USER, false },
	{ "users", 0, OPT_REQUIRED, "users", NULL, Q_USER, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say what is asked for", Q_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", Q_VERSION, false },
	{ "why", 0, OPT_NONE, NULL, "all that holds pending jobs back, a line each (Berth only)", Q_WHY, false },
	{ "yaml", 0, OPT_OPTIONAL, "data_parser", "print YAML", Q_YAML, false },
	{ "autocomplete", 0, OPT_REQUIRED, NULL, NULL, Q_AUTOCOMPLETE, true },
	{ "help", 0, OPT_NONE, NULL, "this text", Q_HELP, false },
	{ "helpformat", 0, OPT_NONE, NULL, "letters for --format", Q_HELP_LETTERS, false },
	{ "helpFormat", 0, OPT_NONE, NULL, "names for --Format", Q_HELP_NAMES, false },
	{ "helpstate", 0, OPT_NONE, NULL, "states for --states", Q_HELP_STATE, false },
	{ "usage", 0, OPT_NONE, NULL, "options in short", Q_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The flag options: where each is kept. */
static bool *flag_of(struct squeue *q, int id)
{
	switch (id) {
	case Q_ALL: return &q->all;
	case Q_ARRAY: return &q->array;
	case Q_EXPAND: return &show_env.expand_patterns;
	case Q_LONG: return &q->long_form;
	case Q_ME: return &q->me;
	case Q_NOCONVERT: return &show_env.no_convert;
	case Q_NOHEADER: return &q->no_header;
	case Q_NOTME: return &q->not_me;
	case Q_ONLY_STATE: return &q->only_state;
	case Q_PRIORITY: return &q->per_partition;
	case Q_START: return &q->start;
	case Q_WHY: return &q->why;
	default: return NULL;
	}
}

/* The list options: where each is kept. */
static char **list_of(struct squeue *q, int id)
{
	switch (id) {
	case Q_ACCOUNT: return &q->accounts;
	case Q_JOBS: return &q->jobs;
	case Q_LICENSES: return &q->licenses;
	case Q_NAME: return &q->names;
	case Q_NODELIST: return &q->nodes;
	case Q_PARTITION: return &q->partitions;
	case Q_QOS: return &q->qos;
	case Q_RESERVATION: return &q->reservations;
	case Q_STATES: return &q->states;
	case Q_STEPS: return &q->steps;
	case Q_USER: return &q->users;
	default: return NULL;
	}
}

static void help_states(struct str *out, const char *sep)
{
	static const char *const word[] = {
#define JOB_STATE(sym, compact) #sym,
#include "tables/job_states.def"
#undef JOB_STATE
#define JOB_FLAG(sym, bit, compact) #sym,
#include "tables/job_states.def"
#undef JOB_FLAG
	};
	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		for (const char *p = word[i]; *p; p++)
			str_add_c(out, (char)tolower((unsigned char)*p));
		if (i + 1 < sizeof(word) / sizeof(word[0]))
			str_add(out, sep);
	}
}

static int print_and_exit(int id)
{
	struct str out = STR_INIT;
	switch (id) {
	case Q_HELP: opt_print_help("squeue [OPTIONS]", rows, ROWS); break;
	case Q_USAGE: opt_print_usage("squeue", rows, ROWS, ""); break;
	case Q_HELP_LETTERS: table_help_letters(job_fields, job_fields_n, &out); break;
	case Q_HELP_NAMES: table_help_names(job_fields, job_fields_n, &out); break;
	case Q_HELP_STATE: help_states(&out, "\n"); str_add_c(&out, '\n'); break;
	default: str_add(&out, "slurm " BERTH_VERSION "\n"); break;
	}
	fflush(stdout);
	out_flush(&out);
	exit(0);
}

static int parse_time(const char *name, const char *value, bool *given, uint32_t *ret, struct error *err)
{
	if (timespec_parse_secs(value, ret, err) < 0 || !*ret)
		return error_set(err, EINVAL, "Invalid --%s specification: %s", name, value);
	*given = true;
	return 0;
}

static int squeue_option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct squeue *q = arg;
	bool *flag = flag_of(q, row->id);
	char **list = list_of(q, row->id);
	if (flag)
		*flag = true;
	if (row->id == Q_STEPS)
		q->step_mode = true;
	if (list && value)
		list_add(list, value);
	else if (list && q->n_open < sizeof(q->open) / sizeof(q->open[0]))
		q->open[q->n_open++] = list;
	switch (row->id) {
	case Q_HIDE: q->all = false; break;
	case Q_FORMAT:
		if (q->format_long)
			return error_set(err, EINVAL, "-o (--format) is incompatible with -O (--Format)");
		xstr_set(&q->format, value);
		break;
	case Q_FORMAT_LONG:
		if (q->format)
			return error_set(err, EINVAL, "-O (--Format) is incompatible with -o (--format)");
		xstr_set(&q->format_long, value);
		break;
	case Q_ITERATE:
		if (show_iterate_parse(value, &q->iterate) < 0)
			return error_set(err, EINVAL, "--iterate=%s", value);
		break;
	case Q_OVER: return parse_time(row->name, value, &q->over, &q->running_over, err);
	case Q_UNDER: return parse_time(row->name, value, &q->under, &q->running_under, err);
	case Q_SORT: xstr_set(&q->sort, value); break;
	case Q_CLUSTERS: show_env.clusters = value; break;
	case Q_JSON: xstr_set(&q->json, value ? value : ""); break;
	case Q_YAML: xstr_set(&q->yaml, value ? value : ""); break;
	case Q_VERBOSE: q->verbose++; break;
	case Q_HELP: case Q_USAGE: case Q_HELP_LETTERS: case Q_HELP_NAMES: case Q_HELP_STATE: case Q_VERSION: return print_and_exit(row->id);
	default: break;
	}
	return 0;
}

static int env_read(struct squeue *q, struct error *err)
{
	static const struct { const char *name; int id; } var[] = {
		{ "SQUEUE_ACCOUNT", Q_ACCOUNT }, { "SQUEUE_ALL", Q_ALL }, { "SQUEUE_ARRAY", Q_ARRAY }, { "SQUEUE_NAMES", Q_NAME },
		{ "SQUEUE_LICENSES", Q_LICENSES }, { "SQUEUE_PARTITION", Q_PARTITION }, { "SQUEUE_PRIORITY", Q_PRIORITY }, { "SQUEUE_QOS", Q_QOS },
		{ "SQUEUE_STATES", Q_STATES }, { "SQUEUE_USERS", Q_USER },
	};
	for (size_t i = 0; i < sizeof(var) / sizeof(var[0]); i++) {
		const char *value = getenv(var[i].name);
		for (size_t r = 0; value && r < ROWS; r++)
			if (rows[r].id == var[i].id) {
				int rc = squeue_option(&rows[r], value, q, err);
				if (rc)
					return rc;
				break;
			}
	}
	return 0;
}

/* What the command line gives replaces what the environment gave. */
static int parse_all(struct squeue *q, int argc, char **argv, struct error *err)
{
	struct squeue env = { 0 };
	int rc = env_read(&env, err);
	if (rc)
		return rc;
	rc = opt_parse(rows, ROWS, argc, argv, false, squeue_option, q, err);
	for (int id = 1; id <= Q_AUTOCOMPLETE; id++) {
		bool *flag = flag_of(q, id), *flag_env = flag_of(&env, id);
		char **list = list_of(q, id), **list_env = list_of(&env, id);
		if (flag && *flag_env)
			*flag = true;
		if (list && !*list) {
			*list = *list_env;
			*list_env = NULL;
		}
	}
	squeue_fini(&env);
	if (rc >= 0 && !q->format && !q->format_long) {
		q->format = xstrdup_null(getenv("SQUEUE_FORMAT"));
		if (!q->format)
			q->format_long = xstrdup_null(getenv("SQUEUE_FORMAT2"));
	}
	if (rc >= 0 && !q->sort)
		q->sort = xstrdup_null(getenv("SQUEUE_SORT"));
	return rc;
}

static void id_add(struct id_list *l, uint64_t id)
{
	l->id = xgrow(l->id, &l->cap, l->n + 1, sizeof(*l->id));
	l->id[l->n++] = id;
}

static void users_resolve(struct squeue *q)
{
	char *copy = xstrdup(q->users), *cursor = copy;
	for (char *word; (word = str_next(&cursor, ","));) {
		unsigned long long uid;
		const struct passwd *pw = *word ? getpwnam(word) : NULL;
		if (pw)
			id_add(&q->uid, pw->pw_uid);
		else if (*word && str_to_u64(word, 0, UINT32_MAX, &uid) == 0)
			id_add(&q->uid, uid);
		else if (*word)
			fprintf(stderr, "squeue: error: Invalid user: %s\n\n", word);
	}
	free(copy);
}

static int states_resolve(struct squeue *q)
{
	if (!q->states && (q->json || q->yaml)) {
		q->base_states = UINT32_MAX;
		q->want_finished = true;
		return 0;
	}
	if (!q->states) {
		q->base_states = 1u << PB__JOB_STATE__PENDING;
		if (!q->start) {
			q->base_states |= 1u << PB__JOB_STATE__RUNNING | 1u << PB__JOB_STATE__SUSPENDED;
			q->flag_states = JOBF_COMPLETING | JOBF_CONFIGURING | JOBF_RESIZING | JOBF_SIGNALING | JOBF_STAGE_OUT | JOBF_STOPPED;
		}
		return 0;
	}
	char *copy = xstrdup(q->states), *cursor = copy;
	int rc = 0;
	for (char *word; !rc && (word = str_next(&cursor, ","));) {
		bool is_flag;
		uint32_t number;
		if (str_eq_nocase(word, "all")) {
			q->base_states = UINT32_MAX;
		} else if (*word && job_state_parse(word, &is_flag, &number) == 0) {
			if (is_flag)
				q->flag_states |= number;
			else
				q->base_states |= 1u << number;
		} else if (*word) {
			struct str list = STR_INIT;
			help_states(&list, ",");
			fprintf(stderr, "squeue: error: Invalid job state specified: %s\nsqueue: error: Valid job states include: %s\n\n", word, list.data);
			str_fini(&list);
			rc = 1;
		}
	}
	q->want_finished = q->base_states >> PB__JOB_STATE__COMPLETED || q->flag_states;
	free(copy);
	return rc;
}

/* Every piece must be a job id, "id_task", "id+offset" or a SLUID. */
static bool job_id_is_good(const char *text)
{
	if (*text == 's' && strlen(text) == 14)
		return strspn(text + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 13;
	size_t n = strspn(text, "0123456789");
	if (!n || !text[n])
		return n > 0 && text[strspn(text, "0")];
	if (text[n] != '_' && text[n] != '+')
		return false;
	const char *rest = text + n + 1;
	return *rest && rest[strspn(rest, "0123456789")] == 0;
}

static int ids_check(const struct squeue *q)
{
	for (int pass = 0; pass < 2; pass++) {
		const char *list = pass ? q->steps : q->jobs;
		char *copy = xstrdup(list ? list : ""), *cursor = copy;
		bool bad = false;
		for (char *word; !bad && (word = str_next(&cursor, ","));) {
			char *dot = pass ? strchr(word, '.') : NULL;
			char *job = dot ? xstrndup(word, (size_t)(dot - word)) : xstrdup(word);
			bad = *word && (!job_id_is_good(job) || (pass && !dot));
			if (bad && pass)
				log_error("Invalid job_step id: %s%s", word, dot ? "" : ".??");
			else if (bad)
				log_error("Invalid job id: %s", word);
			free(job);
		}
		free(copy);
		if (bad)
			return 1;
	}
	return 0;
}

static void verbose_dump(const struct squeue *q)
{
	const struct { const char *name; const char *text; int number; } line[] = {
		{ "all         ", q->all ? "true" : "false", 0 }, { "array       ", q->array ? "true" : "false", 0 }, { "federation  ", "false", 0 },
		{ "format      ", q->format ? q->format : q->format_long, 0 }, { "iterate     ", NULL, (int)q->iterate },
		{ "job_flag    ", NULL, q->jobs != NULL }, { "jobs        ", q->jobs, 0 }, { "licenses    ", q->licenses, 0 }, { "local       ", "false", 0 },
		{ "names       ", q->names, 0 }, { "nodes       ", q->nodes ? q->nodes : "", 0 }, { "only_job_state ", q->only_state ? "true" : "false", 0 },
		{ "partitions  ", q->partitions, 0 }, { "priority    ", q->per_partition ? "true" : "false", 0 }, { "reservation ", q->reservations, 0 },
		{ "sibling      ", "false", 0 }, { "sort        ", q->sort, 0 }, { "start_flag  ", NULL, q->start }, { "states      ", q->states, 0 },
		{ "step_flag   ", NULL, q->step_mode }, { "steps       ", q->steps, 0 }, { "users       ", q->users, 0 }, { "verbose     ", NULL, (int)q->verbose },
	};
	static const char *const numbers = "iterate job_flag start_flag step_flag verbose";
	fprintf(stderr, "-----------------------------\n");
	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		char *name = xstrndup(line[i].name, strcspn(line[i].name, " "));
		if (strstr(numbers, name))
			fprintf(stderr, "%s= %d\n", line[i].name, line[i].number);
		else
			fprintf(stderr, "%s= %s\n", line[i].name, line[i].text ? line[i].text : "(null)");
		free(name);
	}
	fprintf(stderr, "-----------------------------\n\n\n");
}

int squeue_parse(struct squeue *q, int argc, char **argv)
{
	struct error err = { 0 };
	*q = (struct squeue){ .argv = show_argv_keep(argc, argv), .argc = argc };
	int first = parse_all(q, argc, argv, &err);
	if (first < 0)
		return show_parse_fail("squeue", &err);
	for (int i = first; i < argc; i++) {   /* "-s 5.0": the value may stand in the next word, but need not be there */
		if ((size_t)(i - first) >= q->n_open) {
			log_error("Unrecognized option: %s", argv[i]);
			opt_print_usage("squeue", rows, ROWS, "");
			return 1;
		}
		list_add(q->open[i - first], argv[i]);
	}
	if (q->only_state && (q->users || q->me || q->accounts || q->names || q->partitions || q->qos || q->licenses || q->reservations || q->nodes || q->steps)) {
		log_at(LOG_L_FATAL, "Option --only-job-state only works alone, with -j (--jobs) and/or -t (--states) parameters, parameters for cluster/federation selection, and the printing options.");
		return 1;
	}
	if (q->me)
		id_add(&q->uid, getuid());
	if (q->users)
		users_resolve(q);
	if (states_resolve(q) || ids_check(q))
		return 1;
	if (q->nodes && hostlist_add(&q->node, q->nodes, &err) < 0)
		return show_fail(&err);
	if (q->verbose)
		verbose_dump(q);
	return -1;
}

void squeue_fini(struct squeue *q)
{
	char **owned[] = { &q->accounts, &q->names, &q->partitions, &q->qos, &q->licenses, &q->reservations, &q->jobs, &q->steps, &q->nodes,
		&q->users, &q->states, &q->format, &q->format_long, &q->sort, &q->json, &q->yaml };
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
		xfree(*owned[i]);
	xfree(q->uid.id);
	hostlist_fini(&q->node);
}
