/* sinfo_opt.c - sinfo's options, environment, and the --states expression (see sinfo.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/sinfo.h"
#include "model/states.h"

enum {
	S_ALL = 1, S_CLUSTERS, S_DEAD, S_EXACT, S_FEDERATION, S_FORMAT, S_FORMAT_LONG, S_FUTURE, S_HELP, S_HELP_LETTERS, S_HELP_NAMES, S_HELP_STATE, S_HIDE,
	S_ITERATE, S_JSON, S_LOCAL, S_LONG, S_NODE, S_NODES, S_NOCONVERT, S_NOHEADER, S_PARTITION, S_REASONS, S_RESERVATION, S_RESPONDING, S_SORT, S_STATES,
	S_SUMMARIZE, S_USAGE, S_VERBOSE, S_VERSION, S_YAML,
};
static const struct opt_row rows[] = {
	{ "all", 'a', OPT_NONE, NULL, "hidden partitions too", S_ALL, false },
	{ "clusters", 'M', OPT_REQUIRED, "names", "ask these clusters", S_CLUSTERS, false },
	{ "cluster", 0, OPT_REQUIRED, "names", NULL, S_CLUSTERS, false },
	{ "dead", 'd', OPT_NONE, NULL, "only nodes that do not respond", S_DEAD, false },
	{ "exact", 'e', OPT_NONE, NULL, "group nodes only where their configuration is the same", S_EXACT, false },
	{ "federation", 0, OPT_NONE, NULL, "partitions of the federation (this cluster is in none: its own)", S_FEDERATION, false },
	{ "format", 'o', OPT_REQUIRED, "format", "columns by letter: \"%P %.6D\"; see --helpformat", S_FORMAT, false },
	{ "Format", 'O', OPT_REQUIRED, "format", "columns by name: \"NodeList:12,Gres\"; see --helpFormat", S_FORMAT_LONG, false },
	{ "future", 'F', OPT_NONE, NULL, "nodes in state FUTURE too", S_FUTURE, false },
	{ "hide", 0, OPT_NONE, NULL, "leave hidden partitions out (the default)", S_HIDE, false },
	{ "iterate", 'i', OPT_REQUIRED, "seconds", "print again every so many seconds", S_ITERATE, false },
	{ "json", 0, OPT_OPTIONAL, "data_parser", "print JSON", S_JSON, false },
	{ "list-reasons", 'R', OPT_NONE, NULL, "why nodes are down or drained", S_REASONS, false },
	{ "local", 0, OPT_NONE, NULL, "only this cluster (the default)", S_LOCAL, false },
	{ "long", 'l', OPT_NONE, NULL, "more columns", S_LONG, false },
	{ "Node", 'N', OPT_NONE, NULL, "one line for each node and partition", S_NODE, false },
	{ "nodes", 'n', OPT_REQUIRED, "nodes", "only these nodes", S_NODES, false },
	{ "noconvert", 0, OPT_NONE, NULL, "do not turn 2048M into 2G", S_NOCONVERT, false },
	{ "noheader", 'h', OPT_NONE, NULL, "no header line", S_NOHEADER, false },
	{ "partition", 'p', OPT_REQUIRED, "partitions", "only these partitions", S_PARTITION, false },
	{ "reservation", 'T', OPT_NONE, NULL, "reservations instead of partitions", S_RESERVATION, false },
	{ "responding", 'r', OPT_NONE, NULL, "only nodes that respond", S_RESPONDING, false },
	{ "sort", 'S', OPT_REQUIRED, "fields", "order by these letters, '-' before one turns it round", S_SORT, false },
	{ "states", 't', OPT_REQUIRED, "states", "only nodes in these states: a,b one of them, a+b or a&b both, ~a not", S_STATES, false },
	{ "summarize", 's', OPT_NONE, NULL, "one line a partition", S_SUMMARIZE, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say what is asked for", S_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", S_VERSION, false },
	{ "yaml", 0, OPT_OPTIONAL, "data_parser", "print YAML", S_YAML, false },
	{ "help", 0, OPT_NONE, NULL, "this text", S_HELP, false },
	{ "helpformat", 0, OPT_NONE, NULL, "letters for --format", S_HELP_LETTERS, false },
	{ "helpFormat", 0, OPT_NONE, NULL, "names for --Format", S_HELP_NAMES, false },
	{ "helpstate", 0, OPT_NONE, NULL, "states for --states", S_HELP_STATE, false },
	{ "usage", 0, OPT_NONE, NULL, "options in short", S_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define BASE(name) (1u << NODE_##name)
#define ANY_BASE UINT32_MAX

/* Words of --states. `listed`: printed by --helpstate, in this order. */
static const struct state_word { const char *word; uint32_t base, flags; int busy; bool listed; } state_words[] = {
	{ "unknown", BASE(UNKNOWN), 0, -1, true }, { "down", BASE(DOWN), 0, -1, true }, { "idle", BASE(IDLE), 0, -1, true },
	{ "allocated", BASE(ALLOCATED), 0, -1, true }, { "mixed", BASE(MIXED), 0, -1, true }, { "future", BASE(FUTURE), 0, -1, true },
	{ "drain", ANY_BASE, NODEF_DRAIN, -1, true }, { "drained", ANY_BASE, NODEF_DRAIN, 0, true }, { "draining", ANY_BASE, NODEF_DRAIN, 1, true },
	{ "no_respond", ANY_BASE, NODEF_NOT_RESPONDING, -1, true }, { "reserved", ANY_BASE, NODEF_RESERVED, -1, true }, { "planned", ANY_BASE, NODEF_PLANNED, -1, true },
	{ "blocked", ANY_BASE, NODEF_BLOCKED, -1, true }, { "cloud", ANY_BASE, NODEF_CLOUD, -1, true }, { "completing", ANY_BASE, NODEF_COMPLETING, -1, true },
	{ "powering_down", ANY_BASE, NODEF_POWERING_DOWN, -1, true }, { "powered_down", ANY_BASE, NODEF_POWERED_DOWN, -1, true },
	{ "power_down", ANY_BASE, NODEF_POWER_DOWN, -1, true }, { "powering_up", ANY_BASE, NODEF_POWERING_UP, -1, true }, { "power_up", ANY_BASE, NODEF_POWER_UP, -1, true },
	{ "inval", ANY_BASE, NODEF_INVALID_REG, -1, true }, { "fail", ANY_BASE, NODEF_FAIL, -1, true }, { "maint", ANY_BASE, NODEF_MAINTENANCE, -1, true },
	{ "reboot", ANY_BASE, NODEF_REBOOT_REQUESTED, -1, true }, { "reboot^", ANY_BASE, NODEF_REBOOT_ISSUED, -1, true }, { "external", ANY_BASE, NODEF_EXTERNAL, -1, true },
	{ "dynamic_future", BASE(FUTURE), NODEF_DYNAMIC_NORM, -1, true }, { "dynamic_norm", ANY_BASE, NODEF_DYNAMIC_NORM, -1, true },
	{ "alloc", BASE(ALLOCATED), 0, -1, false }, { "mix", BASE(MIXED), 0, -1, false }, { "unk", BASE(UNKNOWN), 0, -1, false }, { "futr", BASE(FUTURE), 0, -1, false },
	{ "error", BASE(ERROR), 0, -1, false }, { "drng", ANY_BASE, NODEF_DRAIN, 1, false }, { "comp", ANY_BASE, NODEF_COMPLETING, -1, false },
	{ "resv", ANY_BASE, NODEF_RESERVED, -1, false }, { "plnd", ANY_BASE, NODEF_PLANNED, -1, false }, { "block", ANY_BASE, NODEF_BLOCKED, -1, false },
	{ "failing", ANY_BASE, NODEF_FAIL, 1, false }, { "failg", ANY_BASE, NODEF_FAIL, 1, false }, { "maintenance", ANY_BASE, NODEF_MAINTENANCE, -1, false },
	{ "pow_dn", ANY_BASE, NODEF_POWER_DOWN | NODEF_POWERING_DOWN, -1, false }, { "pow_up", ANY_BASE, NODEF_POWERING_UP | NODEF_POWER_UP, -1, false },
	{ "reboot_requested", ANY_BASE, NODEF_REBOOT_REQUESTED, -1, false }, { "reboot_issued", ANY_BASE, NODEF_REBOOT_ISSUED, -1, false },
	{ "not_responding", ANY_BASE, NODEF_NOT_RESPONDING, -1, false }, { "invalid_reg", ANY_BASE, NODEF_INVALID_REG, -1, false },
};
#define WORDS (sizeof(state_words) / sizeof(state_words[0]))

static void put_state_words(struct str *out, const char *sep)
{
	for (size_t i = 0; i < WORDS; i++)
		if (state_words[i].listed)
			str_addf(out, "%s%s", i ? sep : "", state_words[i].word);
}

static bool test_add(struct sinfo *q, const char *word, bool and_next)
{
	bool negate = *word == '~' || *word == '!';
	for (size_t i = 0; i < WORDS; i++)
		if (!strcasecmp(state_words[i].word, word + negate) && q->n_tests < STATE_TESTS_MAX) {
			q->test[q->n_tests++] = (struct state_test){ negate, and_next, state_words[i].base, state_words[i].flags, state_words[i].busy };
			return true;
		}
	return false;
}

static int states_parse(struct sinfo *q)
{
	char *copy = xstrdup(q->states), *cursor = copy;
	int rc = 0;
	for (char *group; !rc && (group = str_next(&cursor, ","));)
		for (char *word; !rc && (word = str_next(&group, "+&"));)
			if (*word && !str_eq_nocase(word, "all") && !test_add(q, word, group != NULL)) {
				struct str list = STR_INIT;
				put_state_words(&list, ",");
				log_error("Bad state string: \"%s\"", word);
				log_error("valid states: %s", list.data);
				str_fini(&list);
				rc = 1;
			}
	free(copy);
	return rc;
}

static bool test_holds(const struct state_test *t, uint32_t state, uint32_t flags, bool busy)
{
	bool holds = state < 32 && (t->base_mask >> state & 1) && (!t->flags_any || flags & t->flags_any) && (t->busy < 0 || t->busy == busy);
	return holds != t->not_;
}

bool sinfo_state_passes(const struct sinfo *q, const struct msgview *m)
{
	uint32_t state = (uint32_t)msgview_num(m, PB_NodeRecord_state, 0), flags = (uint32_t)msgview_num(m, PB_NodeRecord_state_flags, 0);
	bool busy = node_is_allocated(m), silent = flags & NODEF_NOT_RESPONDING;
	if ((q->dead && !silent) || (q->responding && silent) || (state == NODE_FUTURE && !q->future && !q->n_tests))
		return false;
	for (size_t i = 0; i < q->n_tests; i++) {
		bool all = true;
		for (;; i++) {
			all = all && test_holds(&q->test[i], state, flags, busy);
			if (!q->test[i].and_next)
				break;
		}
		if (all)
			return true;
	}
	return q->n_tests == 0;
}

static bool *flag_of(struct sinfo *q, int id)
{
	switch (id) {
	case S_ALL: return &q->all;
	case S_DEAD: return &q->dead;
	case S_EXACT: return &q->exact;
	case S_FUTURE: return &q->future;
	case S_LONG: return &q->long_form;
	case S_NODE: return &q->node_form;
	case S_NOCONVERT: return &show_env.no_convert;
	case S_NOHEADER: return &q->no_header;
	case S_REASONS: return &q->reasons;
	case S_RESERVATION: return &q->reservations;
	case S_RESPONDING: return &q->responding;
	case S_SUMMARIZE: return &q->summarize;
	default: return NULL;
	}
}

static void print_and_exit(int id)
{
	struct str out = STR_INIT;
	switch (id) {
	case S_HELP: opt_print_help("sinfo [OPTIONS]", rows, ROWS); break;
	case S_USAGE: opt_print_usage("sinfo", rows, ROWS, ""); break;
	case S_HELP_LETTERS: table_help_letters(node_fields, node_fields_n, &out); break;
	case S_HELP_NAMES: table_help_names(node_fields, node_fields_n, &out); break;
	case S_HELP_STATE: put_state_words(&out, "\n"); str_add_c(&out, '\n'); break;
	default: str_add(&out, "slurm " BERTH_VERSION "\n"); break;
	}
	fflush(stdout);
	out_flush(&out);
	exit(0);
}

static int sinfo_option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct sinfo *q = arg;
	bool *flag = flag_of(q, row->id);
	if (flag)
		*flag = true;
	switch (row->id) {
	case S_FORMAT: xstr_set(&q->format, value); break;
	case S_FORMAT_LONG: xstr_set(&q->format_long, value); break;
	case S_HIDE: q->all = false; break;
	case S_ITERATE:
		if (show_iterate_parse(value, &q->iterate) < 0)
			return error_set(err, EINVAL, "Error: invalid entry for --iterate=%s", value);
		break;
	case S_JSON: xstr_set(&q->json, value ? value : ""); break;
	case S_YAML: xstr_set(&q->yaml, value ? value : ""); break;
	case S_NODES: list_add(&q->nodes, value); break;
	case S_PARTITION: list_add(&q->partitions, value); break;
	case S_SORT: xstr_set(&q->sort, value); break;
	case S_CLUSTERS: show_env.clusters = value; break;
	case S_STATES: list_add(&q->states, value); break;
	case S_VERBOSE: q->verbose++; break;
	case S_HELP: case S_USAGE: case S_HELP_LETTERS: case S_HELP_NAMES: case S_HELP_STATE: case S_VERSION: print_and_exit(row->id); break;
	default: break;
	}
	return 0;
}

static void env_fill(char **to, const char *name)
{
	if (!*to)
		*to = xstrdup_null(getenv(name));
}

int sinfo_parse(struct sinfo *q, int argc, char **argv)
{
	struct error err = { 0 };
	*q = (struct sinfo){ .argv = show_argv_keep(argc, argv), .argc = argc };
	q->all = getenv("SINFO_ALL") != NULL;
	q->future = getenv("SINFO_FUTURE") || getenv("SCONTROL_FUTURE");
	int rc = opt_parse(rows, ROWS, argc, argv, false, sinfo_option, q, &err);
	if (rc < 0)
		return show_parse_fail("sinfo", &err);
	if (!q->format_long)
		env_fill(&q->format, "SINFO_FORMAT");
	env_fill(&q->partitions, "SINFO_PARTITION");
	env_fill(&q->sort, "SINFO_SORT");
	if ((q->format || q->format_long) && q->long_form) {
		log_at(LOG_L_FATAL, "Options %s and -l(--long) are mutually exclusive. Please remove one and retry.", q->format_long ? "-O(--Format)" : "-o(--format)");
		return 1;
	}
	if (q->reasons && !q->states)
		q->states = xstrdup("down,drain,fail");
	if (q->states && states_parse(q))
		return 1;
	if (q->nodes && hostlist_add(&q->want, q->nodes, &err) < 0)
		return show_fail(&err);
	return -1;
}
