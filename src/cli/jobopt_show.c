/* jobopt_show.c - what the submit commands print about options: help, usage, errors, and the list of -v */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/log.h"
#include "cli/jobopt.h"
#include "conf/conf.h"
#include "cli/jobopt_row.h"
#include "cli/opt.h"

static const char hint_help[] =
	"Application hint options:\n"
	"    --hint=             what the program is like\n"
	"        compute_bound   all cores of each socket, one thread a core\n"
	"        memory_bound    one core of each socket, one thread a core\n"
	"        [no]multithread use more than one thread of a core, or do not\n"
	"        help            this text\n";
static const char cpu_bind_help[] =
	"CPU bind options:\n"
	"    --cpu-bind=         how tasks are bound to CPUs\n"
	"        q[uiet]         say nothing about it (default)\n"
	"        v[erbose]       report each binding\n"
	"        no[ne]          do not bind\n"
	"        map_cpu:<list>  CPU of each task: <cpuid1>,<cpuid2>,...\n"
	"        mask_cpu:<list> CPU mask of each task: <mask1>,<mask2>,...\n"
	"        rank_ldom       by rank to NUMA domains\n"
	"        map_ldom:<list> NUMA domain of each task\n"
	"        mask_ldom:<list>mask of NUMA domains of each task\n"
	"        sockets         to whole sockets\n"
	"        cores           to whole cores\n"
	"        threads         to single threads\n"
	"        ldoms           to whole NUMA domains\n"
	"        help            this text\n";
static const char mem_bind_help[] =
	"Memory bind options:\n"
	"    --mem-bind=         how tasks are bound to memory domains\n"
	"        q[uiet]         say nothing about it (default)\n"
	"        v[erbose]       report each binding\n"
	"        no[ne]          do not bind (default)\n"
	"        rank            by rank of the task\n"
	"        local           to the memory of the CPUs in use\n"
	"        map_mem:<list>  domain of each task\n"
	"        mask_mem:<list> mask of domains of each task\n"
	"        help            this text\n";

static void help_print(const struct jobopt *o)
{
	static const char *const usage[] = { "sbatch [OPTIONS...] script [args...]", "salloc [OPTIONS...] [command [args...]]",
		"srun [OPTIONS...] executable [args...]" };
	struct opt_row rows[JOBOPT_COUNT];
	size_t n = jobopt_rows_of(o->cmd, rows);
	if (o->show == JOBOPT_SHOW_USAGE) {
		opt_print_usage(jobopt_cmd_name(o->cmd), rows, n, o->cmd == JOBOPT_SALLOC ? "[command [args...]]" : "executable [args...]");
		return;
	}
	opt_print_help(usage[jobopt_cmd_index(o->cmd)], rows, n);
	if (o->more_n)
		opt_print_group("Options provided by plugins", o->more, o->more_n);
	printf("\nHelp options:\n  -h, --help                  this text\n      --usage                 a short synopsis\n");
}

/* GresTypes of the configuration. */
static int gres_help(void)
{
	struct conf *conf = NULL;
	struct error err = { 0 };
	if (conf_load_client(NULL, &conf, &err)) {
		log_error("%s", err.line);
		return 1;
	}
	const char *types = conf_str(conf, CONF_GresTypes);
	puts("Valid gres options are:");
	for (const char *p = types; p && *p;) {
		size_t n = strcspn(p, ",");
		printf("%.*s[[:type]:count]\n", (int)n, p);
		p += n + (p[n] == ',');
	}
	conf_destroy(conf);
	return 0;
}

bool jobopt_show(const struct jobopt *o, int *ret_exit)
{
	int code = 0;
	switch (o->show) {
	case JOBOPT_SHOW_NOTHING:
		return false;
	case JOBOPT_SHOW_HELP:
	case JOBOPT_SHOW_USAGE:
		help_print(o);
		break;
	case JOBOPT_SHOW_VERSION:
		printf("slurm %s\n", BERTH_VERSION);
		break;
	case JOBOPT_SHOW_HINT:
		fputs(hint_help, stdout);
		code = 1;
		break;
	case JOBOPT_SHOW_CPU_BIND:
		fputs(cpu_bind_help, stdout);
		code = 1;
		break;
	case JOBOPT_SHOW_MEM_BIND:
		fputs(mem_bind_help, stdout);
		code = 255;
		break;
	case JOBOPT_SHOW_MPI:
		fputs("MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n", stdout);
		break;
	case JOBOPT_SHOW_GRES:
		code = gres_help();
		break;
	}
	if (ret_exit)
		*ret_exit = code;
	return true;
}

int jobopt_exit_code(const char *name, int code)
{
	const char *own = getenv(name);
	unsigned long long number;
	return own && str_to_u64(own, 1, 255, &number) == 0 ? (int)number : code;
}

int jobopt_report(const struct jobopt *o, const struct error *err)
{
	const char *cmd = jobopt_cmd_name(o->cmd);
	if (o->before)
		fprintf(stderr, "%s\n", o->before);
	if (o->getopt_error)
		fprintf(stderr, "%s: %s\nTry \"%s --help\" for more information\n", cmd, err->line, cmd);
	else
		fprintf(stderr, "%s: %s: %s\n", cmd, o->fatal ? "fatal" : "error", err->line);
	if (err->hint[0])
		fprintf(stderr, "%s: %s\n", cmd, err->hint);
	return jobopt_exit_code("SLURM_EXIT_ERROR", o->exit_code);
}

void jobopt_dump(const struct jobopt *o)
{
	const char *cmd = jobopt_cmd_name(o->cmd);
	fprintf(stderr, "%s: defined options\n%s: -------------------- --------------------\n", cmd, cmd);
	for (size_t i = 0; i < JOBOPT_COUNT; i++) {
		const struct jobopt_row *row = &jobopt_rows[i];
		if (!o->from[i] || !row->opt.name)
			continue;
		if (i == JO_verbose)
			fprintf(stderr, "%s: %-20s: %u\n", cmd, row->opt.name, o->verbose);
		else
			fprintf(stderr, "%s: %-20s: %s\n", cmd, row->opt.name, o->text[i] ? o->text[i] : "set");
	}
	fprintf(stderr, "%s: -------------------- --------------------\n%s: end of defined options\n", cmd, cmd);
}
