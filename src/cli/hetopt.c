/* hetopt.c - see hetopt.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/hetopt.h"
#include "model/envlist.h"

/* Options that a component has from the one before it. */
static const enum jobopt_id spreads[] = {
	JO_account, JO_acctg_freq, JO_begin, JO_clusters, JO_comment, JO_deadline, JO_delay_boot, JO_dependency, JO_distribution, JO_error, JO_exclude, JO_export,
	JO_export_file, JO_hold, JO_ignore_pbs, JO_immediate, JO_input, JO_job_name, JO_kill_on_bad_exit, JO_label, JO_mem, JO_msg_timeout, JO_nice, JO_no_kill, JO_no_requeue,
	JO_open_mode, JO_output, JO_parsable, JO_priority, JO_profile, JO_propagate, JO_pty, JO_qos, JO_quiet, JO_quit_on_interrupt, JO_reboot, JO_requeue, JO_reservation, JO_signal,
	JO_slurmd_debug, JO_task_epilog, JO_task_prolog, JO_test_only, JO_time, JO_time_min, JO_unbuffered, JO_wait, JO_wckey,
};

static struct jobopt *next_make(struct jobopt *o)
{
	struct jobopt *n = xcalloc(1, sizeof *n);
	jobopt_init(n, o->cmd);
	n->more = o->more;
	n->more_n = o->more_n;
	n->more_take = o->more_take;
	n->submit_line = xstrdup_null(o->submit_line);
	o->next = n;
	return n;
}

/* The first component reports what is wrong with any. */
static int failed(struct jobopt *o, const struct jobopt *at, int rc)
{
	if (rc < 0 && at != o) {
		o->exit_code = at->exit_code;
		o->fatal = at->fatal;
		o->getopt_error = at->getopt_error;
		xstr_set(&o->before, at->before);
	}
	return rc;
}

static int spread(struct jobopt *from, struct jobopt *to, enum jobopt_from source, struct error *err)
{
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < sizeof spreads / sizeof *spreads; i++) {
		enum jobopt_id id = spreads[i];
		if (from->from[id] == source && to->from[id] == JOBOPT_UNSET)
			rc = jobopt_put(to, id, from->text[id], source, err);
	}
	return rc;
}

/* The words of one component end at its operand, which may be ":"; with a program's own words they go on to the next ":". */
static int part_parse(struct jobopt *o, int argc, char **argv, bool programs, struct error *err)
{
	int end = 1, first;
	while (end < argc && strcmp(argv[end], ":"))
		end++;
	o->word = argv;
	o->word_n = programs ? end : argc;
	first = jobopt_parse_args(o, o->word_n, argv, err);
	if (first < 0)
		return first;
	o->argv = argv + first;
	o->argc = o->word_n - first;
	return programs ? end : first;
}

int hetopt_parse_args(struct jobopt *o, int argc, char **argv, bool programs, struct error *err)
{
	struct jobopt *k = o;
	struct str line = STR_INIT;
	int at = 0, rc;
	for (int i = 0; i < argc; i++)
		str_add_sep(&line, " ", argv[i]);
	while ((rc = part_parse(k, argc - at, argv + at, programs, err)) >= 0) {
		at += rc;
		if (at >= argc || strcmp(argv[at], ":"))
			break;
		k = next_make(k);
	}
	for (struct jobopt *p = o; p; p = p->next)
		xstr_set(&p->submit_line, line.data);
	str_fini(&line);
	if (rc < 0)
		return failed(o, k, rc);
	for (struct jobopt *p = o; rc >= 0 && p->next; p = p->next)
		rc = failed(o, p->next, spread(p, p->next, JOBOPT_ARGS, err));
	return rc < 0 ? rc : programs ? o->word_n - o->argc : at;
}

struct jobopt *hetopt_at(struct jobopt *o, unsigned at, struct error *err)
{
	struct jobopt *k = o;
	for (; at; at--, k = k->next) {
		if (k->next)
			continue;
		struct jobopt *n = next_make(k);
		char *line = xstrdup_null(k->submit_line);
		n->word = k->word;
		n->word_n = k->word_n;
		int rc = jobopt_parse_args(n, n->word_n, n->word, err); /* has been parsed before without complaint */
		free(n->submit_line);
		n->submit_line = line;
		if (rc < 0)
			return NULL;
	}
	return k;
}

int hetopt_spread(struct jobopt *o, struct error *err)
{
	int rc = 0;
	for (struct jobopt *p = o; rc >= 0 && p->next; p = p->next)
		rc = failed(o, p->next, spread(p, p->next, JOBOPT_SCRIPT, err));
	return rc;
}

int hetopt_finish(struct jobopt *o, struct error *err)
{
	int rc = 0;
	for (struct jobopt *p = o; rc >= 0 && p; p = p->next) {
		rc = jobopt_parse_env(p, err);
		if (rc >= 0)
			rc = jobopt_check(p, err);
		rc = failed(o, p, rc);
	}
	return rc;
}

/* --- the environment of a component ------------------------------------------------------------------- */

extern char **environ;

void hetopt_environment(const unsigned *group)
{
	static char **own;
	static struct envlist e;
	char end[32];
	if (!own)
		own = environ;
	environ = own;
	if (!group)
		return;
	envlist_fini(&e);
	e = (struct envlist)ENVLIST_INIT;
	for (char **v = own; *v; v++)
		envlist_load(&e, v, 1);
	for (char **v = own; *v; v++) { /* what is said of any component is not said of the others */
		const char *at = strstr(*v, "_HET_GROUP_"), *eq = strchr(*v, '=');
		if (!at || !eq || at > eq)
			continue;
		char *name = xstrndup(*v, (size_t)(at - *v));
		if (strcmp(name, "SLURM_JOB_ID") && strcmp(name, "SLURM_JOBID")) /* the job stays the whole one */
			envlist_unset(&e, name);
		free(name);
	}
	int n = snprintf(end, sizeof end, "_HET_GROUP_%u=", *group);
	for (char **v = own; *v; v++) {
		const char *at = strstr(*v, end);
		if (!at || memchr(*v, '=', (size_t)(at - *v)))
			continue;
		char *name = xstrndup(*v, (size_t)(at - *v));
		if (strcmp(name, "SLURM_JOB_ID") && strcmp(name, "SLURM_JOBID"))
			envlist_set(&e, name, at + n);
		free(name);
	}
	environ = e.var;
}
