/* sstat.c - what running steps use now (sstat(1))
 *
 * slurmctld tells which steps run and where; each slurmd of a step asks its slurmstepd, and the answers are merged here. What cannot be had is said
 * on stderr, as the reference does; the exit code is 1 only where the command line is wrong. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/opt.h"
#include "cli/sstat.h"
#include "client/fan.h"
#include "model/hostlist.h"
#include "proto/agent.pb-c.h"

#define FORMAT_DEFAULT \
	"jobid,alloctres,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages," \
	"mincpu,mincpunode,mincputask,avecpu,ntasks,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,consumedenergy,maxdiskread,maxdiskreadnode," \
	"maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,tresusageinave,tresusageinmax,tresusageinmaxnode," \
	"tresusageinmaxtask,tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutave,tresusageoutmax,tresusageoutmaxnode," \
	"tresusageoutmaxtask,tresusageoutmin,tresusageoutminnode,tresusageoutmintask,tresusageouttot"
#define FORMAT_PIDS "jobid,nodelist,pids"
#define NODE_MS 10000
#define STEP_SPECIAL 0xfffffff0u    /* batch, extern, interactive and others that are no step of srun */

enum { SS_ALL, SS_FIELDS, SS_FORMAT, SS_HELP, SS_HELPFORMAT, SS_JOBS, SS_NOCONVERT, SS_NOHEADER, SS_PARSABLE, SS_PARSABLE2, SS_PIDS, SS_USAGE, SS_VERBOSE, SS_VERSION };
static const struct opt_row rows[] = {
	{ "allsteps", 'a', OPT_NONE, NULL, "all running steps of the jobs, not only the first", SS_ALL, false },
	{ "fields", 0, OPT_REQUIRED, NULL, NULL, SS_FORMAT, false },
	{ "format", 'o', OPT_REQUIRED, "fields", "what to print: name or name%width, divided by commas", SS_FORMAT, false },
	{ "help", 'h', OPT_NONE, NULL, "print this help", SS_HELP, false },
	{ "helpformat", 'e', OPT_NONE, NULL, "list the fields of --format", SS_HELPFORMAT, false },
	{ "jobs", 'j', OPT_REQUIRED, "job[.step]", "these jobs or steps; batch, extern and interactive are steps too", SS_JOBS, false },
	{ "noconvert", 0, OPT_NONE, NULL, "amounts in bytes, without K, M, G", SS_NOCONVERT, false },
	{ "noheader", 'n', OPT_NONE, NULL, "no header", SS_NOHEADER, false },
	{ "parsable", 'p', OPT_NONE, NULL, "fields divided by |, one at the end as well", SS_PARSABLE, false },
	{ "parsable2", 'P', OPT_NONE, NULL, "fields divided by |", SS_PARSABLE2, false },
	{ "pidformat", 'i', OPT_NONE, NULL, "the processes of each step on each node", SS_PIDS, false },
	{ "usage", 0, OPT_NONE, NULL, "a short text", SS_USAGE, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say more", SS_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", SS_VERSION, false },
};
#define ROWS (sizeof rows / sizeof *rows)

struct sstat {
	struct client *client;
	struct cells cells;
	struct usageview view;
	char *jobs;
	bool all, no_header, pids;
	int verbose;
	Pb__NodeListRsp *nodes;
};

/* --- one step ---------------------------------------------------------------------------------------- */

static void row_put(const struct sstat *s, const struct sstat_row *r)
{
	struct str out = STR_INIT, cell = STR_INIT;
	for (size_t i = 0; i < s->cells.n; i++) {
		str_reset(&cell);
		sstat_get(&cell, s->cells.col[i].field, r);
		cells_put(&out, &s->cells, i, cell.data ? cell.data : "");
	}
	puts(out.data ? out.data : "");
	str_fini(&out);
	str_fini(&cell);
}

/* Where its slurmd listens; NULL: slurmctld does not know the node. */
static const Pb__NodeRecord *node_find(struct sstat *s, const char *name)
{
	Pb__NodeListReq req = PB__NODE_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	req.has_show_all = req.show_all = true;
	if (!s->nodes && !client_call(s->client, RPC_NODE_LIST, &req.base, 0, &msg, NULL))
		s->nodes = (Pb__NodeListRsp *)msg;
	for (size_t i = 0; s->nodes && i < s->nodes->n_node; i++)
		if (!strcmp(s->nodes->node[i]->name, name))
			return s->nodes->node[i];
	return NULL;
}

/* What the nodes say of a step: an answer each, or why there is none. */
struct asked { struct client_fan_node *node; Pb__StatRsp **rsp; int *failed; int code; };

static void node_failed(struct asked *a, const char *name, int code)
{
	log_error("slurm_job_step_stat: there was an error with the request to %s rc = %s", name, error_text(code));
	a->code = code ? code : a->code;
}

static void node_answered(size_t i, int code, const ProtobufCMessage *msg, const struct error *err, void *arg)
{
	struct asked *a = arg;
	const Pb__StatRsp *rsp = (const Pb__StatRsp *)msg;
	(void)err;
	if (code || rsp->code || !rsp->usage) {
		a->failed[i] = code ? -code : (int)rsp->code;
		return;
	}
	size_t len = pb__stat_rsp__get_packed_size(rsp);
	uint8_t *data = xmalloc(len + 1);
	pb__stat_rsp__pack(rsp, data);
	a->rsp[i] = pb__stat_rsp__unpack(NULL, len, data);
	free(data);
}

/* All nodes at once. Those that slurmctld does not know are left out. */
static size_t nodes_ask(struct sstat *s, const Pb__StepRecord *step, const struct hostlist *hl, struct asked *a)
{
	Pb__StatReq req = PB__STAT_REQ__INIT;
	struct client_fan_call call = { .rpc = RPC_D_STAT, .req = &req.base, .connect_ms = NODE_MS, .answer_ms = NODE_MS };
	size_t n = 0;
	req.job_id = step->job_id;
	req.step_id = step->step_id;
	a->node = xcalloc(hl->count + 1, sizeof *a->node);
	a->rsp = xcalloc(hl->count + 1, sizeof *a->rsp);
	a->failed = xcalloc(hl->count + 1, sizeof *a->failed);
	for (size_t i = 0; i < hl->count; i++) {
		const Pb__NodeRecord *node = node_find(s, hl->name[i]);
		if (node)
			a->node[n++] = (struct client_fan_node){ hl->name[i], client_node_addr(node), (uint16_t)node->port };
		else
			node_failed(a, hl->name[i], ESLURM_INVALID_NODE_NAME);
	}
	struct client_fan *f = client_fan_start(s->client, &call, a->node, n, node_answered, a);
	client_fan_finish(f);
	client_fan_free(f);
	for (size_t i = 0; i < n; i++)         /* in their order, whoever answered first */
		if (!a->rsp[i])
			node_failed(a, a->node[i].name, a->failed[i]);
	return n;
}

static void step_print(struct sstat *s, const Pb__StepRecord *step)
{
	struct hostlist hl = HOSTLIST_INIT;
	struct str pids = STR_INIT, name = STR_INIT;
	struct asked asked = { 0 };
	Pb__StepUsage *sum = xcalloc(1, sizeof *sum);
	size_t answers = 0;
	pb__step_usage__init(sum);
	(void)hostlist_add(&hl, step->nodes ? step->nodes : "", NULL);
	size_t n = nodes_ask(s, step, &hl, &asked);
	for (size_t i = 0; i < n; i++) {
		Pb__StatRsp *rsp = asked.rsp[i];
		if (!rsp)
			continue;
		answers++;
		if (s->pids)
			str_reset(&pids);
		for (size_t k = 0; k < rsp->n_pid; k++)
			str_addf(&pids, "%s%u", pids.len ? "," : "", rsp->pid[k]);
		if (s->pids)
			row_put(s, &(struct sstat_row){ step, rsp->usage, asked.node[i].name, pids.data ? pids.data : "", s->view });
		usage_merge(sum, rsp->usage);
		pb__stat_rsp__free_unpacked(rsp, NULL);
	}
	if (answers && !s->pids)
		row_put(s, &(struct sstat_row){ step, sum, step->nodes, pids.data ? pids.data : "", s->view });
	sstat_step_name(step, &name);
	if (!answers)
		log_error("problem getting step_layout for StepId=%s: %s", name.data, error_text(asked.code));
	pb__step_usage__free_unpacked(sum, NULL);
	free(asked.node);
	free(asked.rsp);
	free(asked.failed);
	str_fini(&pids);
	str_fini(&name);
	hostlist_fini(&hl);
}

/* --- which steps --------------------------------------------------------------------------------------- */

struct want { char *job; char *step; };       /* "5", "5_2", SLUID; NULL: no step was named */

static bool job_fits(const Pb__StepRecord *r, const char *job)
{
	char id[16];
	snprintf(id, sizeof id, "%u", r->job_id);
	return !strcmp(job, id) || (r->array_id && !strcmp(job, r->array_id)) || (r->sluid && !strcmp(job, r->sluid));
}

static bool step_fits(const Pb__StepRecord *r, const char *step)
{
	struct str name = STR_INIT;
	sstat_step_name(r, &name);
	bool fits = !strcmp(strrchr(name.data, '.') + 1, step);
	str_fini(&name);
	return fits;
}

static bool is_running(const Pb__StepRecord *r) { return r->state == PB__JOB_STATE__RUNNING || r->state == PB__JOB_STATE__SUSPENDED; }

/* The steps of one word of -j. */
static void want_print(struct sstat *s, const Pb__StepListRsp *list, const struct want *w)
{
	const Pb__StepRecord *lowest = NULL;
	bool known = false;
	for (size_t i = 0; i < list->n_step; i++) {
		const Pb__StepRecord *r = list->step[i];
		if (!is_running(r) || !job_fits(r, w->job))
			continue;
		if (w->step ? step_fits(r, w->step) : s->all)
			step_print(s, r), known = true;
		else if (!w->step && (!lowest || r->step_id < lowest->step_id))
			lowest = r;
	}
	if (lowest && lowest->step_id < STEP_SPECIAL)
		step_print(s, lowest);
	else if (!known && w->step)
		log_error("StepId=%s.%s not found running.", w->job, w->step);
	else if (!known && !lowest)
		log_error(list->code ? "couldn't get steps for JobId=%s" : "No steps running for JobId=%s", w->job);
}

/* A number, a task of an array, a SLUID. */
static bool job_is_valid(const char *text)
{
	if (*text == 's' && strlen(text) > 8)
		return strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZs") == strlen(text);
	size_t n = strspn(text, "0123456789");
	return n && (!text[n] || (text[n] == '_' && text[n + 1] && strspn(text + n + 1, "0123456789") == strlen(text + n + 1)));
}

/* Steps of one job, or of all where only they tell which job is meant. */
static Pb__StepListRsp *steps_get(const struct sstat *s, const char *job)
{
	Pb__StepListReq req = PB__STEP_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	unsigned long long id;
	req.has_job_id = str_to_u64(job, 1, UINT32_MAX, &id) == 0;
	req.job_id = req.has_job_id ? (uint32_t)id : 0;
	if (!client_call(s->client, RPC_STEP_LIST, &req.base, 0, &msg, &err))
		return (Pb__StepListRsp *)msg;
	log_error("%s", err.line);
	return NULL;
}

static int jobs_print(struct sstat *s)
{
	char *rest = s->jobs, *word;
	while ((word = str_next(&rest, ","))) {
		struct want w = { .job = str_trim(word) };
		char *dot = strchr(w.job, '.');
		if (dot)
			*dot = 0, w.step = dot + 1;
		Pb__StepListRsp *list = *w.job ? steps_get(s, w.job) : NULL;
		if (*w.job && !list)
			return 1;
		if (list)
			want_print(s, list, &w);
	}
	return 0;
}

/* --- the command line ------------------------------------------------------------------------------------ */

static void jobs_add(struct sstat *s, const char *text)
{
	char *copy = xstrdup(text), *rest = copy, *word;
	if (!*text)
		return;
	while ((word = str_next(&rest, ","))) {
		word = str_trim(word);
		char *job = xstrndup(word, strcspn(word, "."));
		unsigned long long id;
		if (isdigit((unsigned char)*job) && str_to_u64(job, 1, UINT32_MAX - 1, &id) < 0 && strspn(job, "0123456789") == strlen(job)) {
			log_fatal("Bad job/step specified: %s: JobID %s", word, strspn(job, "0") == strlen(job) ? "can not be zero" : "larger than acceptable range");
			exit(1);
		}
		if (*word && !job_is_valid(job)) {
			log_fatal("Bad job/step specified: %s", word);
			exit(1);
		}
		free(job);
	}
	free(copy);
	char *more = s->jobs ? xasprintf("%s,%s", s->jobs, text) : xstrdup(text);
	free(s->jobs);
	s->jobs = more;
}

static int on_option(const struct opt_row *row, const char *v, void *arg, struct error *err)
{
	struct sstat *s = arg;
	(void)err;
	switch (row->id) {
	case SS_ALL: s->all = true; break;
	case SS_FORMAT: return cells_format(&s->cells, v) ? exit(1), 0 : 0;
	case SS_JOBS: jobs_add(s, v); break;
	case SS_NOCONVERT: s->view.no_convert = true; break;
	case SS_NOHEADER: s->no_header = true; break;
	case SS_PARSABLE: s->cells.parsable = 1; break;
	case SS_PARSABLE2: s->cells.parsable = 2; break;
	case SS_PIDS: s->pids = true; break;
	case SS_VERBOSE: s->verbose++; break;
	case SS_HELP: opt_print_help("sstat [<OPTION>] -j <job(.stepid)>", rows, ROWS); exit(0);
	case SS_HELPFORMAT: cells_help(&s->cells); exit(0);
	case SS_VERSION: puts("slurm " BERTH_VERSION); exit(0);
	default: puts("Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help"); exit(0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct sstat s;
	struct error err = { 0 };
	log_init("sstat", LOG_L_INFO);
	s.cells.field = sstat_names;
	s.cells.field_n = sstat_names_n;
	int first = opt_parse(rows, ROWS, argc, argv, false, on_option, &s, &err);
	if (first < 0) {
		fprintf(stderr, "sstat: %s\n", err.line);
		return 1;
	}
	for (; first < argc; first++)
		jobs_add(&s, argv[first]);
	log_init("sstat", LOG_L_INFO + s.verbose);
	if (!s.jobs) {
		log_error("You didn't give me any jobs to stat.");
		return 1;
	}
	if (!s.cells.n)
		(void)cells_format(&s.cells, s.pids ? FORMAT_PIDS : FORMAT_DEFAULT);
	if (client_open(&s.client, &err) < 0) {
		log_error("%s", err.line);
		return 1;
	}
	if (!s.no_header) {
		struct str out = STR_INIT;
		cells_header(&out, &s.cells);
		fputs(out.data, stdout);
		fflush(stdout);
		str_fini(&out);
	}
	return jobs_print(&s);
}
