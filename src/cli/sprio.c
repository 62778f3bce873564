/* sprio.c - the factors of the priorities of pending jobs
 * A row of the table below is a letter of --format: header, how it is made. Columns of factors without a weight are left out of the default formats.
 * Widths follow the reference: "%10Y" fills to the right, "%.10Y" to the left, a longer value is cut. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/showcmd.h"
#include "proto/queue.pb-c.h"

enum { O_CLUSTERS = 1, O_FEDERATION, O_FORMAT, O_HELP, O_JOBS, O_LOCAL, O_LONG, O_NOHEADER, O_NORM, O_PARTITION, O_SIBLING, O_SORT, O_USAGE, O_USER, O_VERBOSE, O_VERSION, O_WEIGHTS };
static const struct opt_row rows[] = {
	{ "clusters", 'M', OPT_REQUIRED, "names", "ask these clusters", O_CLUSTERS, false },
	{ "cluster", 0, OPT_REQUIRED, "names", NULL, O_CLUSTERS, false },
	{ "federation", 0, OPT_NONE, NULL, "jobs of the federation (this cluster is in none: its own)", O_FEDERATION, false },
	{ "format", 'o', OPT_REQUIRED, "format", "columns by letter", O_FORMAT, false },
	{ "jobs", 'j', OPT_REQUIRED, "ids", "only these jobs", O_JOBS, false },
	{ "local", 0, OPT_NONE, NULL, "only this cluster (the default)", O_LOCAL, false },
	{ "long", 'l', OPT_NONE, NULL, "more columns", O_LONG, false },
	{ "noheader", 'h', OPT_NONE, NULL, "no header line", O_NOHEADER, false },
	{ "norm", 'n', OPT_NONE, NULL, "factors between 0 and 1 instead of points", O_NORM, false },
	{ "partition", 'p', OPT_REQUIRED, "names", "only jobs in these partitions", O_PARTITION, false },
	{ "sibling", 0, OPT_NONE, NULL, "sibling jobs of a federation", O_SIBLING, true },
	{ "sort", 'S', OPT_REQUIRED, "fields", "order by these letters, '-' before one turns it round", O_SORT, false },
	{ "user", 'u', OPT_REQUIRED, "users", "only jobs of these users", O_USER, false },
	{ "users", 0, OPT_REQUIRED, "users", NULL, O_USER, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say what is asked for", O_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", O_VERSION, false },
	{ "weights", 'w', OPT_NONE, NULL, "the configured weights instead of jobs", O_WEIGHTS, false },
	{ "help", 0, OPT_NONE, NULL, "this text", O_HELP, false },
	{ "usage", 0, OPT_NONE, NULL, "options in short", O_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define COLUMNS_MAX 64

static const struct letter { char letter; const char *header; } letters[] = {
	{ 'a', "AGE" }, { 'A', "AGE" }, { 'b', "ASSOC" }, { 'B', "ASSOC" }, { 'c', "CLUSTER" }, { 'f', "FAIRSHARE" }, { 'F', "FAIRSHARE" }, { 'i', "JOBID" },
	{ 'j', "JOBSIZE" }, { 'J', "JOBSIZE" }, { 'n', "QOSNAME" }, { 'N', "NICE" }, { 'o', "ACCOUNT" }, { 'p', "PARTITION" }, { 'P', "PARTITION" }, { 'q', "QOS" },
	{ 'Q', "QOS" }, { 'r', "PARTITION" }, { 's', "SLUID" }, { 'S', "SITE" }, { 't', "TRES" }, { 'T', "TRES" }, { 'u', "USER" }, { 'y', "PRIORITY" }, { 'Y', "PRIORITY" },
};

struct prio_col { char letter; bool right; unsigned width; char *after; };
struct sprio {
	char *before;                /* what a format has before its first column */
	const char *format, *sort;
	char *jobs, *partitions, *users;
	bool long_form, no_header, norm, weights;
	unsigned verbose;
	struct prio_col col[COLUMNS_MAX];
	size_t n;
};

static const struct letter *letter_find(char c)
{
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i].letter == c)
			return &letters[i];
	return NULL;
}

/* --- one value -------------------------------------------------------------------------------- */

static void put_tres(struct str *out, const Pb__PrioFactors *f, bool norm)
{
	for (size_t i = 0; f && i < f->n_tres; i++)
		if (f->tres[i]->value)
			str_addf(out, norm ? "%s%s=%.2f" : "%s%s=%.0f", i && out->len ? "," : "", f->tres[i]->name, f->tres[i]->value);
}

/* A factor by its small letter. */
static double factor(const Pb__PrioFactors *f, char c)
{
	switch (c) {
	case 'a': return f->age;
	case 'b': return f->assoc;
	case 'f': return f->fairshare;
	case 'j': return f->jobsize;
	case 'p': return f->partition;
	default: return f->qos;
	}
}

static void put_value(struct str *out, const Pb__PrioJob *j, char c)
{
	switch (c) {
	case 'i': str_addf(out, "%u", j->job_id); break;
	case 'u': str_add(out, j->user ? j->user : ""); break;
	case 'o': str_add(out, j->account && *j->account ? j->account : "(null)"); break;
	case 'n': str_add(out, j->qos && *j->qos ? j->qos : "(null)"); break;
	case 'c': str_add(out, "(null)"); break;
	case 'r': str_add(out, j->partition ? j->partition : ""); break;
	case 's': str_add(out, j->sluid ? j->sluid : ""); break;
	case 'y': str_addf(out, "%.14f", j->priority / 4294967295.0); break;
	case 'Y': str_addf(out, "%u", j->priority); break;
	case 'S': str_addf(out, "%lld", (long long)j->site); break;
	case 'N': str_addf(out, "%lld", (long long)j->nice); break;
	case 't': put_tres(out, j->norm, true); break;
	case 'T': put_tres(out, j->points, false); break;
	case 'a': case 'b': case 'f': case 'j': case 'p': case 'q': str_addf(out, "%.7f", factor(j->norm, c)); break;
	default: str_addf(out, "%.0f", factor(j->points, (char)(c + 32)));
	}
}

/* What -w shows under a column. */
static void put_weight(struct str *out, const Pb__PrioFactors *w, char c)
{
	if (c == 'i')
		str_add(out, "Weights");
	else if (c == 'S')
		str_add(out, "1");
	else if (c == 'T')
		put_tres(out, w, false);
	else if (strchr("abfjpqABFJPQ", c))
		str_addf(out, "%.0f", factor(w, (char)(c >= 'a' ? c : c + 32)));
}

static void put_cell(struct str *out, const struct prio_col *c, const char *text)
{
	size_t n = strlen(text), width = c->width ? c->width : n, pad = width > n ? width - n : 0;
	for (size_t i = 0; c->right && i < pad; i++)
		str_add_c(out, ' ');
	str_add_n(out, text, n > width ? width : n);
	for (size_t i = 0; !c->right && i < pad; i++)
		str_add_c(out, ' ');
	str_add(out, c->after);
}

/* job NULL: the weights; both NULL: the header. */
static void put_line(struct str *out, const struct sprio *s, const Pb__PrioJob *job, const Pb__PrioFactors *weight)
{
	str_add(out, s->before);
	for (size_t i = 0; i < s->n; i++) {
		struct str cell = STR_INIT;
		if (job)
			put_value(&cell, job, s->col[i].letter);
		else if (weight)
			put_weight(&cell, weight, s->col[i].letter);
		else
			str_add(&cell, letter_find(s->col[i].letter)->header);
		put_cell(out, &s->col[i], cell.data);
		str_fini(&cell);
	}
	str_add_c(out, '\n');
}

/* --- formats ---------------------------------------------------------------------------------- */

static void format_parse(struct sprio *s, const char *format)
{
	s->before = xstrndup(format, strcspn(format, "%"));
	for (const char *p = strchr(format, '%'); p && s->n < COLUMNS_MAX;) {
		struct prio_col c = { .right = p[1] == '.' };
		char *end;
		p += 1 + c.right;
		c.width = (unsigned)strtoul(p, &end, 10);
		c.letter = *end;
		if (!c.letter)
			break;
		const char *next = strchr(end, '%');
		c.after = xstrndup(end + 1, next ? (size_t)(next - end - 1) : strlen(end + 1));
		if (letter_find(c.letter))
			s->col[s->n++] = c;
		else {
			log_error("Invalid job format specification: %c", c.letter);
			free(c.after);
		}
		p = next;
	}
}

/* The default columns; those of factors only where they have a weight. */
static void format_default(struct sprio *s, const Pb__PrioFactors *w)
{
	struct str f = STR_INIT;
	bool l = s->long_form;
	const struct { char letter; bool shown; } factor_of[] = { { 'A', w->age > 0 || l }, { 'B', w->assoc > 0 || l }, { 'F', w->fairshare > 0 || l }, { 'J', w->jobsize > 0 || l }, { 'P', w->partition > 0 || l } };
	str_add(&f, "%.15i %9r");
	if (l || s->users)
		str_add(&f, " %.8u");
	if (l)
		str_add(&f, " %.8o");
	str_add(&f, s->norm ? " %10y" : " %.10Y %.10S");
	for (size_t i = 0; i < sizeof(factor_of) / sizeof(factor_of[0]); i++)
		if (factor_of[i].shown)
			str_addf(&f, s->norm ? " %%10%c" : " %%.10%c", s->norm ? factor_of[i].letter + 32 : factor_of[i].letter);
	if (l)
		str_add(&f, s->norm ? " %10n" : " %.10n");
	if (w->qos > 0 || l)
		str_add(&f, s->norm ? " %10q" : " %.10Q");
	if (l && !s->norm)
		str_add(&f, " %.11N");
	if (w->n_tres || l)
		str_add(&f, s->norm ? " %20t" : " %.20T");
	format_parse(s, f.data);
	str_fini(&f);
}

/* --- which jobs, in what order ---------------------------------------------------------------- */

static bool in_list(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; *p;) {
		size_t k = strcspn(p, ",");
		if (k == n && !strncmp(p, word, n))
			return true;
		p += k + (p[k] == ',');
	}
	return false;
}

static bool job_passes(const struct sprio *s, const Pb__PrioJob *j)
{
	char id[16], uid[16];
	snprintf(id, sizeof(id), "%u", j->job_id);
	snprintf(uid, sizeof(uid), "%u", j->uid);
	if (s->jobs && !in_list(s->jobs, id) && !(j->sluid && in_list(s->jobs, j->sluid)))
		return false;
	if (s->partitions && !in_list(s->partitions, j->partition ? j->partition : ""))
		return false;
	return !s->users || in_list(s->users, j->user ? j->user : "") || in_list(s->users, uid);
}

static int value_compare(const Pb__PrioJob *a, const Pb__PrioJob *b, char c)
{
	struct str x = STR_INIT, y = STR_INIT;
	if (c == 'i')
		return a->job_id < b->job_id ? -1 : a->job_id > b->job_id;
	if (c == 'y' || c == 'Y')
		return a->priority < b->priority ? -1 : a->priority > b->priority;
	put_value(&x, a, c);
	put_value(&y, b, c);
	double m = strtod(x.data, NULL), n = strtod(y.data, NULL);
	int r = strchr("abfjpqABFJPQSN", c) ? (m < n ? -1 : m > n) : strcmp(x.data, y.data);
	str_fini(&x);
	str_fini(&y);
	return r;
}

static bool job_after(const Pb__PrioJob *a, const Pb__PrioJob *b, const char *sort)
{
	for (const char *p = sort; *p; p++) {
		bool down = *p == '-';
		p += *p == '-' || *p == '+';
		if (!*p)
			break;
		int r = *p == ',' ? 0 : value_compare(a, b, *p);
		if (r)
			return down ? r < 0 : r > 0;
	}
	return false;
}

/* Stable; the controller gives them by job id. */
static void jobs_sort(Pb__PrioJob **job, size_t n, const char *sort)
{
	Pb__PrioJob **tmp = xcalloc(n + 1, sizeof(*tmp));
	for (size_t w = 1; w < n; w *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * w) {
			size_t mid = lo + w < n ? lo + w : n, hi = lo + 2 * w < n ? lo + 2 * w : n, i = lo, k = mid;
			for (size_t o = lo; o < hi; o++)
				tmp[o] = i < mid && (k >= hi || !job_after(job[i], job[k], sort)) ? job[i++] : job[k++];
		}
		memcpy(job, tmp, n * sizeof(*job));
	}
	free(tmp);
}

/* --- options ---------------------------------------------------------------------------------- */

static void usage(FILE *to)
{
	fputs("Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]\n   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]\n", to);
}

static int jobs_read(struct sprio *s, const char *value)
{
	struct str out = STR_INIT;
	char *copy = xstrdup(value), *at = copy, *w;
	while ((w = str_next(&at, ","))) {
		unsigned long long n;
		w[strcspn(w, "_+")] = 0;
		if (!*w)
			continue;
		if (w[0] != 's' && str_to_u64(w, 1, UINT32_MAX, &n) < 0) {
			log_error("Invalid job id: %s", w);
			exit(1);
		}
		str_add_sep(&out, ",", w);
	}
	free(copy);
	s->jobs = out.len ? str_take(&out) : xstrdup("0");      /* none was named: no job, not all */
	return 0;
}

static void users_read(struct sprio *s, const char *value)
{
	char *copy = xstrdup(value), *at = copy, *w;
	unsigned long long n;
	while ((w = str_next(&at, ",")))
		if (str_to_u64(w, 0, UINT32_MAX, &n) < 0 && !getpwnam(w))
			log_error("Invalid user: %s\n", w);
	free(copy);
	list_add(&s->users, value);
}

static int sprio_option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct sprio *s = arg;
	switch (row->id) {
	case O_CLUSTERS: show_env.clusters = value; break;
	case O_FORMAT: s->format = value; break;
	case O_JOBS: return jobs_read(s, value);
	case O_LONG: s->long_form = true; break;
	case O_NOHEADER: s->no_header = true; break;
	case O_NORM: s->norm = true; break;
	case O_PARTITION: list_add(&s->partitions, value); break;
	case O_SORT: s->sort = value; break;
	case O_USER: users_read(s, value); break;
	case O_VERBOSE: s->verbose++; break;
	case O_WEIGHTS: s->weights = true; break;
	case O_HELP: opt_print_help("sprio [OPTIONS]", rows, ROWS); exit(0);
	case O_USAGE: usage(stdout); exit(0);
	case O_VERSION: printf("slurm %s\n", BERTH_VERSION); exit(0);
	default: break;
	}
	return 0;
}

static void verbose_print(const struct sprio *s)
{
	fprintf(stderr, "-----------------------------\nformat     = %s\njob_flag   = %d\njobs       = %s\npartition  = %s\nusers      = %s\nverbose    = %u\n-----------------------------\n\n\n",
		s->format ? s->format : "(null)", s->jobs != NULL, s->jobs ? s->jobs : "(null)", s->partitions ? s->partitions : "(null)", s->users ? s->users : "(null)", s->verbose);
}

static void list_print(struct sprio *s, Pb__PrioListRsp *rsp)
{
	struct str out = STR_INIT;
	bool any = !s->jobs || s->weights;
	for (size_t i = 0; !any && i < rsp->n_job; i++)
		any = job_passes(s, rsp->job[i]);
	if (!any) {
		puts("Unable to find jobs matching user/id(s) specified");
		return;
	}
	if (s->format)
		format_parse(s, s->format);
	else
		format_default(s, rsp->weight);
	if (!s->no_header)
		put_line(&out, s, NULL, NULL);
	if (s->weights)
		put_line(&out, s, NULL, rsp->weight);
	else
		jobs_sort(rsp->job, rsp->n_job, s->sort ? s->sort : "i");
	for (size_t i = 0; !s->weights && i < rsp->n_job; i++)
		if (job_passes(s, rsp->job[i]))
			put_line(&out, s, rsp->job[i], NULL);
	out_flush(&out);
	str_fini(&out);
}

int main(int argc, char **argv)
{
	struct sprio s = { .format = getenv("SPRIO_FORMAT") };
	struct error err = { 0 };
	Pb__Empty req = PB__EMPTY__INIT;
	ProtobufCMessage *msg;
	show_start("sprio");
	int first = opt_parse(rows, ROWS, argc, argv, false, sprio_option, &s, &err);
	if (first < 0)
		return show_parse_fail("sprio", &err);
	if (first < argc) {
		log_error("Unrecognized option: %s", argv[first]);
		usage(stdout);
		return 1;
	}
	if (s.verbose)
		verbose_print(&s);
	struct client *c = show_open();
	if (client_call(c, RPC_PRIO_LIST, &req.base, 0, &msg, &err) < 0) {
		fprintf(stderr, "Couldn't get priority factors from controller: %s\n", error_text(err.code));
		return 255;
	}
	Pb__PrioListRsp *rsp = (Pb__PrioListRsp *)msg;
	int rc = 0;
	if (rsp->multifactor)
		list_print(&s, rsp);
	else {
		fprintf(stderr, "You are not running a supported priority plugin\n(priority/basic).\nOnly 'priority/multifactor' is supported.\n");
		rc = 1;
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	client_close(c);
	return rc;
}
