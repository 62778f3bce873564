/* sbcast.c - copies a file to the nodes of a job (sbcast(1)); the work is in bcast.c */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/bcast.h"
#include "cli/opt.h"

enum { SB_COMPRESS, SB_FORCE, SB_JOB, SB_PRESERVE, SB_SIZE, SB_TIMEOUT, SB_VERBOSE, SB_VERSION, SB_HELP, SB_USAGE, SB_SEND_LIBS, SB_EXCLUDE, SB_NODES, SB_TODO };
static const struct opt_row rows[] = {
	{ "compress", 'C', OPT_OPTIONAL, "library", "compress what is sent: lz4 or none", SB_COMPRESS, false },
	{ "exclude", 0, OPT_REQUIRED, "paths", "folders whose libraries are not sent with --send-libs", SB_EXCLUDE, false },
	{ "force", 'f', OPT_NONE, NULL, "replace a file that is there already", SB_FORCE, false },
	{ "jobid", 'j', OPT_REQUIRED, "id[.step]", "the job, or the step, whose nodes get the file", SB_JOB, false },
	{ "no-allocation", 'Z', OPT_NONE, NULL, "send to nodes whatever runs there", SB_TODO, true },
	{ "nodelist", 'w', OPT_REQUIRED, "nodes", "only these nodes of the job", SB_NODES, false },
	{ "preserve", 'p', OPT_NONE, NULL, "keep times and mode", SB_PRESERVE, false },
	{ "send-libs", 0, OPT_OPTIONAL, "yes|no", "send the shared libraries of the program too", SB_SEND_LIBS, false },
	{ "size", 's', OPT_REQUIRED, "bytes[k|m]", "send blocks of this size", SB_SIZE, false },
	{ "timeout", 't', OPT_REQUIRED, "seconds", "give up after so long without progress", SB_TIMEOUT, false },
	{ "treewidth", 'F', OPT_REQUIRED, "n", "width of a tree of nodes", SB_TODO, true },
	{ "verbose", 'v', OPT_NONE, NULL, "say what is done", SB_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", SB_VERSION, false },
	{ "help", 0, OPT_NONE, NULL, "print this help", SB_HELP, false },
	{ "usage", 0, OPT_NONE, NULL, "print the short usage", SB_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define SYNOPSIS "sbcast [OPTIONS] SOURCE DEST"
static const char usage[] = "Usage: " SYNOPSIS "\n";
static struct { const char *job, *compress, *exclude; bool has_compress, send_libs; } given;

static void size_parse(struct bcast *b, const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	if (*end == 'k' || *end == 'K')
		n <<= 10, end++;
	else if (*end == 'm' || *end == 'M')
		n <<= 20, end++;
	if (end == text || *end || !n || *text == '-')
		fprintf(stderr, "size specification is invalid, ignored\n");
	else
		b->block = n < 4096 ? 4096 : n > 32u << 20 ? 32u << 20 : n;
}

static void send_libs(const char *value)
{
	if (!value || !*value || str_eq_nocase(value, "yes") || str_eq_nocase(value, "no"))
		given.send_libs = !str_eq_nocase(value, "no");
	else
		log_error("Ignoring unrecognized --send-libs value '%s'", value);
}

static int option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct bcast *b = arg;
	unsigned long long n;
	switch (row->id) {
	case SB_COMPRESS: given.compress = value, given.has_compress = true; break;
	case SB_FORCE: b->force = true; break;
	case SB_JOB: given.job = value; break;
	case SB_PRESERVE: b->preserve = true; break;
	case SB_SIZE: size_parse(b, value); break;
	case SB_SEND_LIBS: send_libs(value); break;
	case SB_EXCLUDE: given.exclude = value; break;
	case SB_NODES: b->nodes = value; break;
	case SB_TIMEOUT:
		if (str_to_u64(value, 0, 1000000, &n) < 0)
			return error_set(err, EINVAL, "Invalid numeric value \"%s\" for timeout.", value);
		b->timeout_sec = (int)n;
		break;
	case SB_VERBOSE: b->verbose++; break;
	case SB_VERSION: printf("slurm %s\n", BERTH_VERSION); exit(0);
	case SB_HELP: opt_print_help(SYNOPSIS, rows, ROWS); exit(0);
	default: fputs(usage, stdout); exit(0);
	}
	return 0;
}

static bool is_on(const char *name) { const char *v = getenv(name); return v && !str_eq(v, "0") && !str_eq_nocase(v, "no"); }

static void environment(struct bcast *b)
{
	const char *value = getenv("SBCAST_SEND_LIBS");
	if (value)
		send_libs(value);
	given.exclude = getenv("SBCAST_EXCLUDE");
	if ((value = getenv("SBCAST_COMPRESS")))
		given.compress = value, given.has_compress = true;
	b->force = is_on("SBCAST_FORCE");
	b->preserve = is_on("SBCAST_PRESERVE");
	if ((value = getenv("SBCAST_SIZE")))
		size_parse(b, value);
	if ((value = getenv("SBCAST_TIMEOUT")))
		b->timeout_sec = (int)strtol(value, NULL, 10);
}

/* "5" or "5.0". */
static int job_parse(struct bcast *b, const char *text)
{
	char *end;
	unsigned long job = strtoul(text, &end, 10);
	if (end == text || !job || job > UINT32_MAX) {
		log_fatal("Bad job/step specified: %s: JobID can not be zero", text);
		return 1;
	}
	b->job_id = (uint32_t)job;
	if (*end == '.') {
		b->has_step = true;
		b->step_id = (uint32_t)strtoul(end + 1, &end, 10);
	}
	if (*end) {
		log_fatal("Bad job/step specified: %s", text);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct bcast b = { 0 };
	struct error err = { 0 };
	char cwd[4096];
	log_init("sbcast", LOG_L_INFO);
	environment(&b);
	int first = opt_parse(rows, ROWS, argc, argv, false, option, &b, &err);
	if (first < 0) {
		log_error("%s", err.line);
		fprintf(stderr, "Try \"sbcast --help\" for more information\n");
		return 1;
	}
	log_init("sbcast", LOG_L_INFO + (b.verbose ? b.verbose - 1 : 0));
	if (argc - first != 2) {
		fprintf(stderr, "Need two file names, have %d names\nTry \"sbcast --help\" for more information\n", argc - first);
		return 1;
	}
	const char *job = given.job ? given.job : getenv("SLURM_JOB_ID");
	if (!job || !*job) {
		log_error("Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.");
		return 1;
	}
	int rc = job_parse(&b, job);
	if (rc)
		return rc;
	if (client_open(&b.client, &err) < 0 || !getcwd(cwd, sizeof(cwd))) {
		log_error("%s", err.line[0] ? err.line : strerror(errno));
		return 1;
	}
	b.umask = umask(022);
	b.source = argv[first];
	b.dest = bcast_dest(client_conf(b.client), argv[first + 1], cwd);
	b.compress = bcast_compress(client_conf(b.client), given.compress, given.has_compress);
	char *libs = NULL;
	rc = bcast_send(&b);
	if (!rc && given.send_libs)
		rc = bcast_libs(&b, given.exclude, &libs);
	free(libs);
	return rc;
}
