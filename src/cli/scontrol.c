/* scontrol.c - view and change the state of the cluster: options, the table of keywords, and the prompt
 * Keywords may be shortened as far as they stay unique (the first row wins, as listed). A row without a function is known to the
 * reference and refused by name. Exit status: 1 when anything failed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/json.h"
#include "cli/scontrol.h"

enum { C_ALL = 1, C_CLUSTER, C_DETAILS, C_FEDERATION, C_FUTURE, C_HELP, C_HIDE, C_JSON, C_LOCAL, C_ONELINER, C_QUIET, C_SIBLING, C_UID, C_USAGE, C_VERBOSE, C_VERSION, C_YAML };
static const struct opt_row rows[] = {
	{ "all", 'a', OPT_NONE, NULL, "hidden partitions too", C_ALL, false },
	{ "clusters", 'M', OPT_REQUIRED, "name", "ask this cluster", C_CLUSTER, false },
	{ "cluster", 0, OPT_REQUIRED, "name", NULL, C_CLUSTER, false },
	{ "details", 'd', OPT_NONE, NULL, "show more of each record", C_DETAILS, false },
	{ "federation", 0, OPT_NONE, NULL, "jobs of the federation (this cluster is in none: its own)", C_FEDERATION, false },
	{ "future", 'F', OPT_NONE, NULL, "nodes in state FUTURE too", C_FUTURE, false },
	{ "help", 'h', OPT_NONE, NULL, "this text", C_HELP, false },
	{ "hide", 0, OPT_NONE, NULL, "leave hidden partitions out (the default)", C_HIDE, false },
	{ "json", 0, OPT_OPTIONAL, "data_parser", "print JSON", C_JSON, false },
	{ "local", 0, OPT_NONE, NULL, "only this cluster (the default)", C_LOCAL, false },
	{ "oneliner", 'o', OPT_NONE, NULL, "one line a record", C_ONELINER, false },
	{ "quiet", 'Q', OPT_NONE, NULL, "no messages but errors", C_QUIET, false },
	{ "sibling", 0, OPT_NONE, NULL, "sibling jobs of a federation (here: its own)", C_SIBLING, false },
	{ "uid", 'u', OPT_REQUIRED, "uid", "act as this user", C_UID, true },
	{ "usage", 0, OPT_NONE, NULL, NULL, C_USAGE, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say more", C_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", C_VERSION, false },
	{ "yaml", 0, OPT_OPTIONAL, "data_parser", "print YAML", C_YAML, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool done;   /* "exit" was typed at the prompt */

static void set_flag(struct scontrol *s, int argc, char **argv)
{
	if (!strncasecmp(argv[0], "all", 1))
		s->all = true;
	else if (!strncasecmp(argv[0], "details", 1))
		s->details = true;
	else if (!strncasecmp(argv[0], "hide", 2))
		s->all = false;
	else if (!strncasecmp(argv[0], "oneliner", 1))
		s->one_line = true;
	else if (!strncasecmp(argv[0], "quiet", 4))
		s->quiet = true;
	else
		s->verbose++;
}
static void stop(struct scontrol *s, int argc, char **argv) { done = true; }
static void version(struct scontrol *s, int argc, char **argv) { printf("slurm %s\n", BERTH_VERSION); }
static void takeover(struct scontrol *s, int argc, char **argv)
{
	if (argc > 1) /* there is none of that number */
		scontrol_fail(s, "takeover: invalid backup controller index (%s)", argv[1]);
	else
		scontrol_fail(s, "slurm_takeover error: this version has no backup controller that could take over");
}
static void help(struct scontrol *s, int argc, char **argv);

static const struct keyword { const char *name; size_t min; scontrol_fn fn; const char *args, *text; } keywords[] = {
	{ "all", 1, set_flag, "", "show hidden partitions too" },
	{ "cancel_reboot", 3, scontrol_cancel_reboot, "<nodelist>", "take back a reboot that has not begun" },
	{ "cluster", 2, scontrol_cluster, "[<name>]", "ask this cluster" },
	{ "completing", 2, scontrol_completing, "", "show jobs that are completing, and their nodes" },
	{ "create", 2, scontrol_create, "<SPECIFICATION>", "create a partition or reservation" },
	{ "delete", 3, scontrol_delete, "<SPECIFICATION>", "delete a partition or reservation" },
	{ "details", 3, set_flag, "", "show more of each record" },
	{ "errnumstr", 2, scontrol_errnumstr, "<ERRNO>", "the sentence of an error number" },
	{ "exit", 1, stop, "", "leave the prompt" },
	{ "fsdampeningfactor", 1, NULL, "<factor>", "set FairShareDampeningFactor" },
	{ "getaddrs", 4, scontrol_getaddrs, "<nodes>", "addresses of nodes" },
	{ "getent", 4, scontrol_getent, "[<node>]", "users and groups of the steps on this host" },
	{ "help", 2, help, "", "this text" },
	{ "hide", 2, set_flag, "", "leave hidden partitions out" },
	{ "hold", 2, scontrol_job_op, "<job_list>", "keep jobs from starting" },
	{ "holdu", 5, scontrol_job_op, "<job_list>", "keep jobs from starting, as their owner would" },
	{ "listjobs", 5, scontrol_listjobs, "[<node>]", "jobs on this host" },
	{ "listpids", 5, scontrol_listpids, "[<job_id>[.<step>]] [<node>]", "processes of jobs on this host" },
	{ "liststeps", 5, scontrol_liststeps, "[<node>]", "steps on this host" },
	{ "notify", 1, scontrol_notify, "<job_id> <message>", "write a message to a job's stderr" },
	{ "oneliner", 1, set_flag, "", "print one line a record" },
	{ "pidinfo", 3, scontrol_pidinfo, "<pid>", "which job a process belongs to" },
	{ "ping", 3, scontrol_ping, "", "are the controllers there?" },
	{ "power", 3, scontrol_power, "{up|down} [ASAP|FORCE] <nodelist>", "power nodes up or down" },
	{ "quiet", 4, set_flag, "", "no messages but errors" },
	{ "quit", 4, stop, "", "leave the prompt" },
	{ "reboot", 3, scontrol_reboot, "[ASAP] [nextstate=] [reason=] <nodelist>", "reboot nodes when they become idle" },
	{ "reconfigure", 3, scontrol_reconfigure, "", "read the configuration files again" },
	{ "release", 3, scontrol_job_op, "<job_list>", "let held jobs start" },
	{ "requeue", 3, scontrol_job_op, "<job_list>", "put jobs back into the queue" },
	{ "requeuehold", 8, scontrol_job_op, "<job_list>", "put jobs back into the queue and hold them" },
	{ "resume", 3, scontrol_job_op, "<job_list>", "go on with suspended jobs" },
	{ "schedloglevel", 2, scontrol_schedloglevel, "<level>", "set the scheduler's log level" },
	{ "setdebug", 4, scontrol_setdebug, "<level> [nodes=<nodes>]", "set the log level of slurmctld, or of slurmds" },
	{ "setdebugflags", 9, scontrol_setdebugflags, "{+|-}<flag> ...", "set the controller's DebugFlags" },
	{ "show", 3, scontrol_show, "<ENTITY> [<ID>]", "print the state of an entity, or of all of its kind" },
	{ "shutdown", 3, scontrol_shutdown, "[slurmctld]", "stop all daemons, or only the controller" },
	{ "suspend", 2, scontrol_job_op, "<job_list>", "stop running jobs for a while" },
	{ "takeover", 2, takeover, "[<index>]", "make a backup controller the primary" },
	{ "token", 2, NULL, "[lifespan=] [username=]", "make a token for REST" },
	{ "top", 2, scontrol_job_op, "<job_list>", "put a job before the user's others" },
	{ "uhold", 2, scontrol_job_op, "<job_list>", "keep jobs from starting, as their owner would" },
	{ "update", 2, scontrol_update, "<SPECIFICATION>", "change a job, node, partition or reservation" },
	{ "verbose", 4, set_flag, "", "say more" },
	{ "version", 4, version, "", "print the version" },
	{ "wait_job", 2, scontrol_wait_job, "<job_id>", "wait until a job's nodes are ready" },
	{ "why", 2, scontrol_why, "[<job_list>]", "say what holds jobs back, or why they ended" },
	{ "write", 2, scontrol_write, "batch_script <job_id> [<file>] | config [<file>]", "write a script, or the configuration, to a file" },
};

struct client *scontrol_client(struct scontrol *s)
{
	if (!s->client_)
		s->client_ = show_open();
	return s->client_;
}

void scontrol_missing(struct scontrol *s, const char *fmt, ...)
{
	s->exit_code = 1;
	va_list ap;
	va_start(ap, fmt);
	if (!s->quiet) {
		vprintf(fmt, ap);
		putchar('\n');
	}
	va_end(ap);
}

void scontrol_fail(struct scontrol *s, const char *fmt, ...)
{
	s->exit_code = 1;
	fflush(stdout);
	va_list ap;
	va_start(ap, fmt);
	if (!s->quiet) {
		vfprintf(stderr, fmt, ap);
		fputc('\n', stderr);
	}
	va_end(ap);
}

static void help(struct scontrol *s, int argc, char **argv)
{
	printf("Usage: scontrol [<OPTION>] [<COMMAND>]\n\n    Valid <OPTION> values are:\n");
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].help)
			printf("     %s%c%s--%-18s %s%s\n", rows[i].letter ? "-" : " ", rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? ", " : "  ", rows[i].name,
			       rows[i].help, rows[i].todo ? " (not yet)" : "");
	printf("\n  Without a command scontrol prompts for commands until \"exit\".\n\n    Valid <COMMAND> values are:\n");
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		char *left = xasprintf("%s %s", keywords[i].name, keywords[i].args);
		printf("     %-32s %s%s\n", left, keywords[i].text, keywords[i].fn ? "" : " (not yet)");
		free(left);
	}
	printf("     !!                               repeat the last command\n\n"
	       "  <ENTITY> may be \"aliases\", \"config\", \"daemons\", \"federation\", \"hostlist\", \"hostlistsorted\", \"hostnames\",\n"
	       "  \"job\", \"licenses\", \"node\", \"partition\", \"reservation\", \"step\" or \"topology\".\n"
	       "  <ID> may be a job id, node name, partition name, step id, host list, or the path of a file with host names.\n"
	       "  Commands and keys are matched in any case; names of nodes and partitions are not.\n");
}

static const struct keyword *keyword_find(const char *word)
{
	size_t n = strlen(word);
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (!strcasecmp(keywords[i].name, word))
			return &keywords[i];
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (n >= keywords[i].min && !strncasecmp(keywords[i].name, word, n))
			return &keywords[i];
	return NULL;
}

static void command_run(struct scontrol *s, int argc, char **argv)
{
	const struct keyword *k = keyword_find(argv[0]);
	if (!k) {
		s->quiet = false;   /* said even then */
		scontrol_fail(s, "invalid keyword: %s", argv[0]);
	}
	else if (!k->fn)
		scontrol_fail(s, "scontrol: error: %s is not supported yet", k->name);
	else if ((s->json || s->yaml) && k->fn != scontrol_show && k->fn != scontrol_ping && k->fn != scontrol_why && k->fn != scontrol_listjobs && k->fn != scontrol_liststeps && k->fn != scontrol_listpids)
		scontrol_fail(s, "scontrol: error: %s with --json or --yaml is not supported", k->name);
	else
		k->fn(s, argc, argv);
	fflush(stdout);
}

/* Cuts a typed line into words; quotes keep blanks. Returns the count. */
static int line_split(char *line, char **argv, int max)
{
	int n = 0;
	char *to = line;
	for (char *p = line; *p && n < max;) {
		while (*p == ' ' || *p == '\t')
			p++;
		if (!*p)
			break;
		argv[n++] = to;
		char quote = 0;
		for (; *p && (quote || (*p != ' ' && *p != '\t')); p++) {
			if (quote ? *p == quote : (*p == '"' || *p == '\''))
				quote = quote ? 0 : *p;
			else
				*to++ = *p;
		}
		p += *p != 0;
		*to++ = 0;
	}
	return n;
}

/* The prompt. A failed command does not end it; the exit status tells that one failed. */
static void prompt_run(struct scontrol *s)
{
	char *line = NULL, *last = NULL, *argv[256];
	size_t cap = 0;
	while (!done) {
		fputs("scontrol: ", stdout);
		fflush(stdout);
		ssize_t n = getline(&line, &cap, stdin);
		if (n < 0) {
			putchar('\n');
			break;
		}
		line[strcspn(line, "\n")] = 0;
		bool again = !strcmp(line, "!!");
		if (again && !last)
			continue;
		char *copy = xstrdup(again ? last : line);
		if (!again)
			xstr_set(&last, line);
		int argc = line_split(copy, argv, 256);
		if (argc)
			command_run(s, argc, argv);
		free(copy);
	}
	free(line);
	free(last);
}

static int scontrol_option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct scontrol *s = arg;
	switch (row->id) {
	case C_ALL: s->all = true; break;
	case C_CLUSTER: show_env.clusters = value; break;
	case C_DETAILS: s->details = true; break;
	case C_FUTURE: s->future = true; break;
	case C_HELP: case C_USAGE: help(s, 0, NULL); exit(0);
	case C_HIDE: s->all = false; break;
	case C_JSON: s->json = value ? value : ""; s->details = true; break;
	case C_YAML: s->yaml = value ? value : ""; s->details = true; break;
	case C_ONELINER: s->one_line = true; break;
	case C_QUIET: s->quiet = true; break;
	case C_VERBOSE: s->verbose++; break;
	case C_VERSION: version(s, 0, NULL); exit(0);
	default: break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct scontrol s = { .uid = -1, .argc = argc };
	struct error err = { 0 };
	show_start("scontrol");
	s.argv = show_argv_keep(argc, argv);
	s.all = getenv("SCONTROL_ALL") != NULL;
	bool flags = false;   /* "setdebugflags -Steps": what follows is no option */
	for (int i = 1; i < argc; i++)
		flags = flags || !strcasecmp(argv[i], "setdebugflags");
	int first = opt_parse(rows, ROWS, argc, argv, flags, scontrol_option, &s, &err);
	if (first < 0)
		return show_parse_fail("scontrol", &err);
	int json = json_parser_check("scontrol", s.json ? s.json : s.yaml);
	if (json)
		return json - 1;
	if (first < argc)
		command_run(&s, argc - first, argv + first);
	else
		prompt_run(&s);
	if (s.client_)
		client_close(s.client_);
	return s.exit_code;
}
