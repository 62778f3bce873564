/* scancel.c - end or signal jobs and steps
 *
 * The choice by filters is made by slurmctld in the one call (KillReq); only --interactive, which must ask about each job, looks the jobs up
 * first. Texts, and which failures are silent, follow 26.05.5: a job that is unknown or already over is no failure unless a signal was
 * asked for or it is a step. */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/signame.h"
#include "base/str.h"
#include "cli/opt.h"
#include "client/client.h"
#include "model/states.h"
#include "proto/controller.pb-c.h"

static const char cmd[] = "scancel";

struct scancel {
	char *account, *name, *partition, *qos, *reservation, *state, *user, *nodes, *wckey, *clusters;
	uint32_t uid;                /* of `user` */
	int signal;                  /* 0: terminate */
	unsigned verbose;
	bool quiet, batch, full, hurry, interactive, me;
	char **want;                 /* ids as typed */
	size_t want_n, want_cap;
};
enum { SC_ACCOUNT, SC_BATCH, SC_CLUSTERS, SC_CTLD, SC_FULL, SC_HURRY, SC_INTERACTIVE, SC_ME, SC_NAME, SC_PARTITION, SC_QUIET, SC_QOS, SC_RESERVATION,
       SC_SIGNAL, SC_STATE, SC_USER, SC_VERBOSE, SC_VERSION, SC_NODES, SC_WCKEY, SC_HELP, SC_USAGE, SC_TODO };

static const struct opt_row rows[] = {
	{ "account", 'A', OPT_REQUIRED, "account", "only jobs of this account", SC_ACCOUNT, false },
	{ "admin-comment", 0, OPT_REQUIRED, "text", "set AdminComment of the jobs", SC_TODO, true },
	{ "batch", 'b', OPT_NONE, NULL, "signal the batch shell only", SC_BATCH, false },
	{ "cron", 'c', OPT_NONE, NULL, "confirm ending an scrontab job", SC_TODO, true },
	{ "ctld", 0, OPT_NONE, NULL, "let the controller apply the filters (it always does)", SC_CTLD, false },
	{ "full", 'f', OPT_NONE, NULL, "signal the batch shell, its children and all steps", SC_FULL, false },
	{ "hurry", 'H', OPT_NONE, NULL, "skip the stage-out of burst buffers", SC_HURRY, false },
	{ "interactive", 'i', OPT_NONE, NULL, "ask about each job", SC_INTERACTIVE, false },
	{ "me", 0, OPT_NONE, NULL, "only your own jobs", SC_ME, false },
	{ "clusters", 'M', OPT_REQUIRED, "names", "clusters to send the request to", SC_CLUSTERS, false },
	{ "name", 'n', OPT_REQUIRED, "name", "only jobs with this name", SC_NAME, false },
	{ "jobname", 0, OPT_REQUIRED, NULL, NULL, SC_NAME, false },
	{ "partition", 'p', OPT_REQUIRED, "partition", "only jobs in this partition", SC_PARTITION, false },
	{ "quiet", 'Q', OPT_NONE, NULL, "say nothing about jobs that are gone", SC_QUIET, false },
	{ "qos", 'q', OPT_REQUIRED, "qos", "only jobs with this QOS", SC_QOS, false },
	{ "reservation", 'R', OPT_REQUIRED, "name", "only jobs in this reservation", SC_RESERVATION, false },
	{ "sibling", 0, OPT_REQUIRED, "cluster", "remove a sibling job of a federation", SC_TODO, true },
	{ "signal", 's', OPT_REQUIRED, "name|number", "send this signal instead of ending the job", SC_SIGNAL, false },
	{ "state", 't', OPT_REQUIRED, "states", "only PENDING, RUNNING or SUSPENDED jobs", SC_STATE, false },
	{ "user", 'u', OPT_REQUIRED, "user", "only jobs of this user", SC_USER, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say what is done", SC_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", SC_VERSION, false },
	{ "nodelist", 'w', OPT_REQUIRED, "nodes", "only jobs that use one of these nodes", SC_NODES, false },
	{ "wckey", 0, OPT_REQUIRED, "wckey", "only jobs with this workload key", SC_WCKEY, false },
	{ "help", 0, OPT_NONE, NULL, NULL, SC_HELP, false },
	{ "usage", 0, OPT_NONE, NULL, NULL, SC_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* --- options -------------------------------------------------------------------------------------- */

static int state_set(struct scancel *s, const char *text)
{
	bool flag;
	uint32_t v;

	if (job_state_parse(text, &flag, &v) < 0) {
		fprintf(stderr, "Invalid job state specified: %s\nValid job states are PENDING, RUNNING, and SUSPENDED\n", text);
		exit(1);
	}
	xstr_set(&s->state, job_state_name(flag ? 0 : v, flag ? v : 0));
	return 0;
}

static int signal_set(struct scancel *s, const char *text)
{
	s->signal = signame_parse(text);
	if (s->signal <= 0) {
		fprintf(stderr, "Unknown job signal: %s\n", text);
		exit(1);
	}
	return 0;
}

static void show(int id)
{
	if (id == SC_VERSION)
		printf("slurm %s\n", BERTH_VERSION);
	else if (id == SC_USAGE)
		opt_print_usage(cmd, rows, ROWS, "[job_id[_array_id][.step_id]]");
	else {
		opt_print_help("scancel [OPTIONS] [job_id[_array_id][.step_id]]", rows, ROWS);
		printf("\nHelp options:\n  --help                          this text\n  --usage                         a short synopsis\n");
	}
	exit(0);
}

static int option_take(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct scancel *s = arg;

	switch (row->id) {
	case SC_ACCOUNT: xstr_set(&s->account, value); break;
	case SC_BATCH: s->batch = true; break;
	case SC_CLUSTERS: xstr_set(&s->clusters, value); break;
	case SC_FULL: s->full = true; break;
	case SC_HURRY: s->hurry = true; break;
	case SC_INTERACTIVE: s->interactive = true; break;
	case SC_ME: s->me = true; break;
	case SC_NAME: xstr_set(&s->name, value); break;
	case SC_PARTITION: xstr_set(&s->partition, value); break;
	case SC_QUIET: s->quiet = true; break;
	case SC_QOS: xstr_set(&s->qos, value); break;
	case SC_RESERVATION: xstr_set(&s->reservation, value); break;
	case SC_SIGNAL: return signal_set(s, value);
	case SC_STATE: return state_set(s, value);
	case SC_USER: xstr_set(&s->user, value); break;
	case SC_VERBOSE: s->verbose++; break;
	case SC_NODES: xstr_set(&s->nodes, value); break;
	case SC_WCKEY: xstr_set(&s->wckey, value); break;
	case SC_VERSION: case SC_HELP: case SC_USAGE: show(row->id); break;
	default: break; /* SC_CTLD: it is always so */
	}
	return 0;
}

static const struct { const char *name; int id; } variables[] = {
	{ "SCANCEL_ACCOUNT", SC_ACCOUNT }, { "SCANCEL_BATCH", SC_BATCH }, { "SLURM_CLUSTERS", SC_CLUSTERS }, { "SCANCEL_CTLD", SC_CTLD }, { "SCANCEL_FULL", SC_FULL },
	{ "SCANCEL_HURRY", SC_HURRY }, { "SCANCEL_INTERACTIVE", SC_INTERACTIVE }, { "SCANCEL_NAME", SC_NAME }, { "SCANCEL_PARTITION", SC_PARTITION },
	{ "SCANCEL_QOS", SC_QOS }, { "SCANCEL_STATE", SC_STATE }, { "SCANCEL_USER", SC_USER }, { "SCANCEL_NODELIST", SC_NODES },
	{ "SCANCEL_VERBOSE", SC_VERBOSE }, { "SCANCEL_WCKEY", SC_WCKEY },
};

static void environment_take(struct scancel *s)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i].name);
		struct opt_row row = { .id = variables[i].id };
		bool off = value && (str_eq(value, "0") || str_eq_nocase(value, "false") || str_eq_nocase(value, "no"));
		if (value && !off)
			(void)option_take(&row, value, s, NULL);
	}
}

/* --- ids ------------------------------------------------------------------------------------------ */

static const char *digits(const char *p)
{
	while (isdigit((unsigned char)*p))
		p++;
	return p;
}

/* N, N_T, N_[list], N_*, N+O, SLUID; each with .S behind it. */
static bool id_is_valid(const char *id)
{
	const char *p = id;

	if (*p == 's' && strlen(p) >= 14 && strcspn(p, ".") == 14) {
		p += 14;
	} else {
		if (*p == '0' || !isdigit((unsigned char)*p))
			return false;
		p = digits(p);
		if (*p == '_' && p[1] == '[') {
			p += strspn(p, "_[0123456789-,:%");
			p += *p == ']';
		} else if (*p == '_' && p[1] == '*') {
			p += 2;
		} else if ((*p == '_' || *p == '+') && isdigit((unsigned char)p[1])) {
			p = digits(p + 1);
		}
	}
	if (*p == '.' && isdigit((unsigned char)p[1]))
		p = digits(p + 1);
	return *p == '\0';
}

/* Splits at commas and blanks outside brackets. */
static int ids_take(struct scancel *s, const char *text)
{
	int depth = 0;
	const char *start = text;

	for (const char *p = text;; p++) {
		depth += (*p == '[') - (*p == ']');
		if (*p && (depth > 0 || (*p != ',' && *p != ' ')))
			continue;
		bool blank = p == start && *p != ',' && (p == text || p[-1] != ',');
		if (!blank) {
			char *id = xstrndup(start, (size_t)(p - start));
			if (!id_is_valid(id)) {
				fprintf(stderr, "%s: error: Invalid job id %s\n", cmd, id);
				free(id);
				return -EINVAL;
			}
			s->want = xgrow(s->want, &s->want_cap, s->want_n + 1, sizeof(*s->want));
			s->want[s->want_n++] = id;
		}
		if (!*p)
			return 0;
		start = p + 1;
	}
}

static bool is_step(const char *id) { return strchr(id, '.') != NULL; }

/* --- what is printed ------------------------------------------------------------------------------ */

static void say_doing(const struct scancel *s, const char *id)
{
	if (!s->verbose || s->quiet)
		return;
	if (s->signal)
		fprintf(stderr, "%s: Signal %d to %s %s\n", cmd, s->signal, is_step(id) ? "step" : s->batch ? "batch job" : "job", id);
	else
		fprintf(stderr, "%s: Terminating %s %s\n", cmd, is_step(id) ? "step" : "job", id);
}

/* The exit code one result asks for; says so where it is to be said. */
static int say_result(const struct scancel *s, const Pb__KillResult *r)
{
	uint32_t code = r->code == ESLURM_INVALID_STEP_ID ? ESLURM_INVALID_JOB_ID : r->code;       /* as the reference says it */
	bool gone = code == ESLURM_INVALID_JOB_ID || code == ESLURM_ALREADY_DONE || code == ESLURM_JOB_FINISHED;
	const char *text = code == ESLURM_JOB_FINISHED ? error_text(ESLURM_ALREADY_DONE) : error_text((int)code);
	bool step = is_step(r->id), silent = gone && !s->signal && !s->batch && !step;

	if (r->code == 0)
		return 0;
	if (!*r->id) { /* a filter that names what is not there: nothing matches, but say so */
		fprintf(stderr, "%s: error: %s\n", cmd, r->detail && *r->detail ? r->detail : text);
		return 0;
	}
	if (!silent || (s->verbose && !s->quiet))
		fprintf(stderr, "%s: error: Kill job error on %s id %.*s: %s\n", cmd, step ? "job step" : "job",
			step && r->code != ESLURM_INVALID_JOB_ID ? (int)strcspn(r->id, ".") : (int)strlen(r->id), r->id, text);
	if (r->detail && (!gone || step) && !str_eq(r->detail, text))
		fprintf(stderr, "%s: %s\n", cmd, r->detail);
	return silent ? 0 : (gone && !step) || r->code == ESLURM_INVALID_JOB_ID ? 1 : (int)(code & 0xff);
}

static void say_none(const struct scancel *s)
{
	const struct { const char *word, *value; } filters[] = {
		{ "account", s->account }, { "job_name", s->name }, { "nodelist", s->nodes }, { "partition", s->partition }, { "qos", s->qos },
		{ "reservation", s->reservation }, { "state", s->state }, { "user_name", s->user }, { "wckey", s->wckey },
	};

	if (!s->verbose || s->quiet)
		return;
	fprintf(stderr, "%s: error: No active jobs match ALL job filters, including:", cmd);
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (filters[i].value)
			fprintf(stderr, " %s=%s", filters[i].word, filters[i].value);
	fprintf(stderr, " \n");
}

/* --- asking --------------------------------------------------------------------------------------- */

static bool yes(const char *fmt, const char *id, const Pb__JobRecord *job)
{
	char answer[64];

	printf(fmt, id, job->desc && job->desc->name ? job->desc->name : "", job->partition ? job->partition : job->desc ? job->desc->partition : "");
	fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	return false;
}

static bool text_fits(const char *filter, const char *value) { return !filter || (value && list_has(value, filter)); }

/* The filters that can be told from a record; slurmctld applies all of them again. */
static bool job_fits(const struct scancel *s, const Pb__JobRecord *job)
{
	const Pb__JobDesc *d = job->desc;

	return job->state < PB__JOB_STATE__COMPLETED && text_fits(s->account, d ? d->account : NULL) && (!s->name || (d && str_eq(d->name, s->name))) &&
		text_fits(s->partition, job->state == PB__JOB_STATE__PENDING && d ? d->partition : job->partition) && text_fits(s->qos, d ? d->qos : NULL) &&
		(!s->state || str_eq(s->state, job_state_name(job->state, 0))) && (!s->user || s->uid == job->uid);
}

/* The id a person knows the job by; buf. */
static const char *job_id_text(const Pb__JobRecord *job, char *buf, size_t size)
{
	if (job->has_array_task_id)
		snprintf(buf, size, "%u_%u", job->array_job_id, job->array_task_id);
	else if (job->array_tasks && *job->array_tasks)
		snprintf(buf, size, "%u_[%s]", job->array_job_id, job->array_tasks);
	else if (job->has_het_job_id)
		snprintf(buf, size, "%u+%u", job->het_job_id, job->het_offset);
	else
		snprintf(buf, size, "%u", job->job_id);
	return buf;
}

/* --interactive: replaces what was asked for by what was agreed to. */
static int ask_all(struct scancel *s, struct client *c, struct error *err)
{
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	char **typed = s->want, buf[128];
	size_t typed_n = s->want_n;
	int rc;

	req.has_show_all = req.show_all = true;
	for (size_t i = 0; i < typed_n; i++) {
		req.selector = xrealloc(req.selector, (i + 1) * sizeof(*req.selector));
		req.selector[i] = xstrndup(typed[i], strcspn(typed[i], "."));
		req.n_selector = i + 1;
	}
	rc = client_call(c, RPC_JOB_LIST, &req.base, 0, &msg, err);
	if (rc < 0)
		return rc;
	s->want = NULL;
	s->want_n = s->want_cap = 0;
	const Pb__JobListRsp *rsp = (const Pb__JobListRsp *)msg;
	for (size_t i = 0; i < rsp->n_job; i++) {
		Pb__JobRecord *job = pb__job_record__unpack(NULL, rsp->job[i]->record.len, rsp->job[i]->record.data);
		const char *id = job ? job_id_text(job, buf, sizeof(buf)) : "";
		bool fits = job && job_fits(s, job);
		for (size_t k = 0; fits && k < typed_n; k++)
			if (is_step(typed[k]) && strtoul(typed[k], NULL, 10) == job->job_id)
				id = typed[k];
		if (fits && yes(is_step(id) ? "Cancel step_id=%s name=%s partition=%s [y/n]? " : "Cancel job_id=%s name=%s partition=%s [y/n]? ", id, job))
			rc = ids_take(s, id);
		if (job)
			pb__job_record__free_unpacked(job, NULL);
	}
	if (rsp->n_job == 0 && typed_n)
		fprintf(stderr, "%s: error: Kill job error on job id %s: %s\n", cmd, typed[0], error_text(ESLURM_INVALID_JOB_ID));
	return rc;
}

/* --- the call ------------------------------------------------------------------------------------- */

static bool has_filter(const struct scancel *s)
{
	return s->account || s->name || s->partition || s->qos || s->reservation || s->state || s->user || s->nodes || s->wckey;
}

static void request_fill(const struct scancel *s, Pb__KillReq *req)
{
	req->id = s->want;
	req->n_id = s->want_n;
	req->has_signal = s->signal != 0;
	req->signal = (uint32_t)s->signal;
	req->has_batch_only = req->batch_only = s->batch;
	req->has_full = req->full = s->full;
	req->has_hurry = req->hurry = s->hurry;
	req->name = s->name;
	req->has_user_id = s->user != NULL;
	req->user_id = s->uid;
	req->partition = s->partition;
	req->account = s->account;
	req->qos = s->qos;
	req->state = s->state;
	req->nodes = s->nodes;
	req->reservation = s->reservation;
	req->wckey = s->wckey;
}

static int kill_all(const struct scancel *s, struct client *c)
{
	Pb__KillReq req = PB__KILL_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	bool before = !has_filter(s) && !s->signal;
	int code = 0;

	request_fill(s, &req);
	for (size_t i = 0; before && i < s->want_n; i++)
		say_doing(s, s->want[i]);
	if (client_call(c, RPC_KILL, &req.base, 0, &msg, &err) < 0) {
		fprintf(stderr, "%s: error: Kill job error: %s\n", cmd, err.line);
		return 1;
	}
	const Pb__KillRsp *rsp = (const Pb__KillRsp *)msg;
	for (size_t i = 0; i < rsp->n_result; i++) {
		bool doing = rsp->result[i]->code == 0 || (!s->signal && rsp->result[i]->code != ESLURM_INVALID_JOB_ID);
		int one;
		if (!before && doing)
			say_doing(s, rsp->result[i]->id);
		one = say_result(s, rsp->result[i]);
		code = one > code ? one : code;
	}
	if (rsp->n_result == 0 && has_filter(s))
		say_none(s);
	protobuf_c_message_free_unpacked(msg, NULL);
	return code;
}

/* The uid of --user; a number need not be anybody's. */
static int user_find(struct scancel *s)
{
	unsigned long long uid;
	const struct passwd *pw;

	if (str_to_u64(s->user, 0, UINT32_MAX - 1, &uid) == 0) {
		s->uid = (uint32_t)uid;
		return 0;
	}
	pw = getpwnam(s->user);
	if (!pw)
		return -ENOENT;
	s->uid = pw->pw_uid;
	return 0;
}

int main(int argc, char **argv)
{
	struct scancel s = { 0 };
	struct client *c = NULL;
	struct error err = { 0 };
	char uid_text[16];
	int first, code;

	log_init(cmd, LOG_L_INFO);
	environment_take(&s);
	first = opt_parse(rows, ROWS, argc, argv, false, option_take, &s, &err);
	if (first < 0) {
		fprintf(stderr, "%s: %s\nTry \"%s --help\" for more information\n", cmd, err.line, cmd);
		return 1;
	}
	for (int i = first; i < argc; i++)
		if (ids_take(&s, argv[i]) < 0)
			return 1;
	if (s.me) {
		snprintf(uid_text, sizeof(uid_text), "%u", getuid());
		xstr_set(&s.user, uid_text);
	}
	if (s.want_n == 0 && !has_filter(&s)) {
		fprintf(stderr, "%s: error: No job identification provided\n", cmd);
		return 1;
	}
	if (s.user && user_find(&s) < 0) {
		fprintf(stderr, "%s: error: Invalid user name: %s\n", cmd, s.user);
		return 1;
	}
	if (client_open(&c, &err) < 0 || (s.interactive && ask_all(&s, c, &err) < 0)) {
		if (err.line[0])
			fprintf(stderr, "%s: error: %s\n", cmd, err.line);
		client_close(c);
		return 1;
	}
	if (s.clusters && !opt_clusters(cmd, s.clusters, conf_str(client_conf(c), CONF_ClusterName))) {
		fprintf(stderr, "%s: fatal: Could not get cluster information\n", cmd);
		client_close(c);
		return 1;
	}
	code = s.interactive && s.want_n == 0 ? 0 : kill_all(&s, c);
	client_close(c);
	return code;
}
