/* jobopt_check.c - what options mean together: those that exclude each other, and values that follow from others
 *
 * Rule for options of one group: the one from the higher source (command line > environment > script) stands and the others are dropped;
 * two of the same source are an error. The sentences are the reference's, its slips of spelling included, because scripts look for them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/jobopt.h"
#include "cli/jobopt_row.h"
#include "model/hostlist.h"
#include "model/tres.h"

#define HOSTFILE_MAX (16u << 20)   /* bytes of SLURM_HOSTFILE that are read */

static int refuse_fatal(struct jobopt *o, struct error *err, const char *text)
{
	o->fatal = true;
	return jobopt_refuse(o, 1, err, "%s", text);
}

/* Forget what an option said. */
static void option_drop(struct jobopt *o, enum jobopt_id id)
{
	const struct jobopt_target *t = &jobopt_rows[id].target;
	switch (t->kind) {
	case JOBOPT_T_DESC_STR:
	case JOBOPT_T_STR:
		jobopt_put_str(o, t, NULL);
		break;
	case JOBOPT_T_NONE:
		break;
	case JOBOPT_T_BOOL:
	case JOBOPT_T_U32:
		jobopt_put_num(o, t, 0);
		break;
	default:
		jobopt_put_num(o, t, 0);
		*(protobuf_c_boolean *)(void *)((char *)o->desc + t->has) = false;
	}
	o->from[id] = JOBOPT_UNSET;
	xfree(o->text[id]);
}

struct group { enum jobopt_id id[3]; size_t n; const char *text; };
static const struct group groups[] = {
	{ { JO_mem, JO_mem_per_cpu, JO_mem_per_gpu }, 3, "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive." },
	{ { JO_core_spec, JO_thread_spec }, 2, "-S/--core-spec and --thred-spec options are mutually exclusive" },
	{ { JO_exclusive, JO_oversubscribe }, 2, "--exclusive and --oversubscribe options are mutually exclusive" },
	{ { JO_cpus_per_task, JO_cpus_per_gpu }, 2, "--cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive" },
	{ { JO_gpus_per_task, JO_ntasks_per_gpu }, 2, "--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU" },
	{ { JO_gpus_per_socket, JO_ntasks_per_gpu }, 2, "--gpus-per-socket is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU" },
	{ { JO_ntasks_per_node, JO_ntasks_per_gpu }, 2, "--ntasks-per-node is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU" },
};

static int group_check(struct jobopt *o, const struct group *g, struct error *err)
{
	uint8_t top = JOBOPT_UNSET;
	size_t at_top = 0;
	for (size_t i = 0; i < g->n; i++) {
		uint8_t from = o->from[g->id[i]];
		if (from > top) {
			top = from;
			at_top = 0;
		}
		at_top += from == top && from;
	}
	if (at_top > 1) {
		/* A step inherits what the job was given by several variables. */
		if (g->id[0] == JO_core_spec && top == JOBOPT_ENV)
			return refuse_fatal(o, err, "Both --core-spec and --thread-spec set using environment variables. Those options are mutually exclusive.");
		return refuse_fatal(o, err, g->text);
	}
	for (size_t i = 0; i < g->n; i++)
		if (o->from[g->id[i]] && o->from[g->id[i]] < top)
			option_drop(o, g->id[i]);
	return 0;
}

/* Is there an element of this TRES ("cpu", "gres/gpu") in a list? */
static bool tres_names(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, len) && strchr(":=", at[len] ? at[len] : ':'))
			return true;
	return false;
}

void jobopt_tres_remove(char *list, const char *name)
{
	size_t len = strlen(name);
	for (char *at = list; *at;) {
		size_t n = strcspn(at, ",");
		if (!strncmp(at, name, len) && strchr(":=,", at[len])) {
			memmove(at, at + n + (at[n] == ','), strlen(at + n + (at[n] == ',')) + 1);
			continue;
		}
		at += n + (at[n] == ',');
	}
	if (*list && list[strlen(list) - 1] == ',')
		list[strlen(list) - 1] = 0;
}

/* --- GPUs ------------------------------------------------------------------------------------------------ */

/* Sum of the counts in a list of elements "gres/gpu[:type][:n]"; 0: none. */
static uint64_t gpu_count(const char *list)
{
	struct gres_req req[GRES_REQ_MAX];
	size_t n;
	uint64_t sum = 0;
	if (!list || gres_parse(list, req, GRES_REQ_MAX, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		sum += strcmp(req[i].name, "gpu") ? 0 : req[i].count;
	return sum;
}

static int refuse_gres(struct jobopt *o, struct error *err, const char *text)
{
	free(o->before);
	o->before = xasprintf("%s: error: %s", jobopt_cmd_name(o->cmd), text);
	return jobopt_refuse(o, 1, err, "%s", error_text(ESLURM_INVALID_GRES));
}

/* Is that resource asked for in any way? */
static bool asks(const Pb__JobDesc *d, const char *name)
{
	const char *list[] = { d->tres_per_job, d->tres_per_node, d->tres_per_socket, d->tres_per_task };
	struct gres_req req[GRES_REQ_MAX];
	for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
		size_t n = 0;
		if (list[k] && gres_parse(list[k], req, GRES_REQ_MAX, &n, NULL) == 0)
			for (size_t i = 0; i < n; i++)
				if (!strcmp(req[i].name, name) && req[i].count)
					return true;
	}
	return false;
}

/* The numbers of GPUs must agree with each other and with tasks, nodes and sockets. */
static int gpu_counts_check(struct jobopt *o, struct error *err)
{
	const Pb__JobDesc *d = o->desc;
	uint64_t job = gpu_count(d->tres_per_job), node = gpu_count(d->tres_per_node), socket = gpu_count(d->tres_per_socket);
	uint64_t task = tres_names(d->tres_per_task, "gres/gpu") || jobopt_is_set(o, JO_gpus_per_task) ? gpu_count(d->tres_per_task) : 0;
	uint32_t tasks = d->has_num_tasks ? d->num_tasks : 0;
	if (asks(d, "shard") && (asks(d, "gpu") || d->tres_freq))
		return jobopt_refuse(o, 1, err, "%s", error_text(ESLURM_INVALID_GRES));
	if (socket && !d->has_sockets_per_node)
		return refuse_gres(o, err, "--gpus-per-socket option requires --sockets-per-node specification");
	if ((job && node && job < node) || (node && socket && node < socket) || (job && socket && job < socket))
		return refuse_gres(o, err, "Failed to validate job spec. Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket");
	if (job && node && job % node)
		return refuse_gres(o, err, "Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node");
	if (job && task && job % task)
		return refuse_gres(o, err, "Failed to validate job spec, --gpus not multiple of --gpus-per-task");
	if (job && task && tasks && job / task != tasks)
		return refuse_gres(o, err, "Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.");
	if (node && task && d->has_ntasks_per_node && d->ntasks_per_node && node / task != d->ntasks_per_node)
		return refuse_gres(o, err, "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks per node differ from --ntasks-per-node.");
	if (node && socket && node % socket == 0 && node / socket != d->sockets_per_node)
		return refuse_gres(o, err, "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of sockets differ from --sockets-per-node.");
	if (job && node && d->has_min_nodes && (job / node < d->min_nodes || job / node > d->max_nodes)) {
		char *text = xasprintf("Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (%llu) doesn't fall between min_nodes (%u) and max_nodes (%u) boundaries",
				       (unsigned long long)(job / node), d->min_nodes, d->max_nodes);
		int rc = refuse_gres(o, err, text);
		xfree(text);
		return rc;
	}
	if (job && d->has_min_nodes && job < d->min_nodes)
		return refuse_gres(o, err, "Failed to validate job spec, --gpus < -N");
	if ((jobopt_is_set(o, JO_gpus_per_task) || jobopt_is_set(o, JO_tres_per_task)) && d->tres_per_task && *d->tres_per_task && !d->has_num_tasks && !job && !o->jobid &&
	    !d->has_ntasks_per_node)
		return refuse_gres(o, err, "Failed to validate job spec. --gpus-per-task or --tres-per-task used without either --gpus or -n/--ntasks is not allowed.");
	return 0;
}

/* What the job was asked for by task (in the environment of its script) does not come on top of what --gres says of a step. */
static void gres_over_env(struct jobopt *o)
{
	struct gres_req req[GRES_REQ_MAX];
	size_t n = 0;
	if (!o->gres || !o->desc->tres_per_task || o->from[JO_tres_per_task] != JOBOPT_ENV || o->from[JO_gres] <= JOBOPT_ENV)
		return;
	if (gres_parse(!strcmp(o->gres, "none") ? "gpu,shard" : o->gres, req, GRES_REQ_MAX, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		char *name = xasprintf("gres/%s", req[i].name);
		jobopt_tres_remove(o->desc->tres_per_task, name);
		free(name);
	}
}

static bool names_gpus(const char *gres) { return gres && (str_eq_nocase(gres, "none") || strcasestr(gres, "gpu")); }

/* A step's environment says how the job was asked for; GPUs that the step itself asks for, in whatever words (and none of them), replace that. */
static void step_gpus(struct jobopt *o)
{
	static const enum jobopt_id of_job[] = { JO_gpus, JO_gpus_per_node };
	Pb__JobDesc *d = o->desc;
	if (jobopt_is_set(o, JO_gpus_per_socket)) {
		log_at(LOG_L_INFO, "warning: Ignoring --gpus-per-socket because it can only be specified at job allocation time, not during step allocation.");
		option_drop(o, JO_gpus_per_socket);
	}
	bool per_task = o->from[JO_gpus_per_task] == JOBOPT_ARGS || (o->from[JO_tres_per_task] == JOBOPT_ARGS && names_gpus(o->text[JO_tres_per_task]));
	if (!per_task && o->from[JO_gpus] != JOBOPT_ARGS && o->from[JO_gpus_per_node] != JOBOPT_ARGS && !(o->from[JO_gres] == JOBOPT_ARGS && names_gpus(o->gres)))
		return;
	for (size_t i = 0; i < sizeof(of_job) / sizeof(of_job[0]); i++)
		if (o->from[of_job[i]] == JOBOPT_ENV)
			option_drop(o, of_job[i]);
	if (o->from[JO_gres] == JOBOPT_ENV && names_gpus(o->gres))
		option_drop(o, JO_gres);
	if (!per_task && d->tres_per_task) {
		jobopt_tres_remove(d->tres_per_task, "gres/gpu");
		if (!*d->tres_per_task)
			option_drop(o, JO_tres_per_task);
		option_drop(o, JO_gpus_per_task);
	}
}

/* --gres and --gpus-per-node become one list. */
static int per_node_join(struct jobopt *o, struct error *err)
{
	if (o->gres && o->gpus_per_node && gpu_count(o->gres)) {
		if (o->from[JO_gres] == o->from[JO_gpus_per_node])
			return refuse_fatal(o, err, "--gpus-per-node and --gres=gpu are mutually exclusive.");
		option_drop(o, o->from[JO_gres] > o->from[JO_gpus_per_node] ? JO_gpus_per_node : JO_gres);
	}
	struct str s = STR_INIT;
	gres_over_env(o);
	if (o->gres)
		str_add(&s, o->gres);
	if (o->gpus_per_node && !str_eq(o->gres, "none"))
		str_add_sep(&s, ",", o->gpus_per_node);
	xstr_set(&o->desc->tres_per_node, s.len ? s.data : NULL);
	bool typed = false, plain = false;
	struct gres_req req[GRES_REQ_MAX];
	size_t n = 0;
	if (s.len && strcmp(s.data, "none") && gres_parse(s.data, req, GRES_REQ_MAX, &n, NULL) == 0)
		for (size_t i = 0; i < n; i++) {
			typed |= !strcmp(req[i].name, "gpu") && req[i].type[0];
			plain |= !strcmp(req[i].name, "gpu") && !req[i].type[0];
		}
	str_fini(&s);
	return typed && plain ? jobopt_refuse(o, 1, err, "Invalid GRES specification (with and without type identification)") : 0;
}

/* Tasks from GPUs and GPUs from tasks; the binding that --gpus-per-task implies. */
static void gpu_derive(struct jobopt *o)
{
	Pb__JobDesc *d = o->desc;
	uint64_t job = gpu_count(d->tres_per_job), node = gpu_count(d->tres_per_node);
	uint64_t task = tres_names(d->tres_per_task, "gres/gpu") || (d->tres_per_task && strstr(d->tres_per_task, "gres/gpu")) ? gpu_count(d->tres_per_task) : 0;
	if (d->has_ntasks_per_tres && !d->has_num_tasks && (job || (node && d->has_min_nodes))) {
		d->has_num_tasks = true;
		d->num_tasks = (uint32_t)((job ? job : node * d->min_nodes) * d->ntasks_per_tres);
	} else if (d->has_ntasks_per_tres && d->has_num_tasks && !job && !node && d->num_tasks % d->ntasks_per_tres == 0) {
		free(d->tres_per_job);
		d->tres_per_job = xasprintf("gres/gpu:%u", d->num_tasks / d->ntasks_per_tres);
	}
	if (task && job && !d->has_num_tasks) {
		d->has_num_tasks = true;
		d->num_tasks = (uint32_t)(job / task);
	}
	if (d->has_ntasks_per_tres && o->cmd == JOBOPT_SRUN && !d->tres_bind)
		d->tres_bind = xasprintf("gres/gpu:single:%u", d->ntasks_per_tres);
	if (task && !d->tres_bind)
		d->tres_bind = xasprintf("gres/gpu:per_task:%llu", (unsigned long long)task);
}

/* --- the rest ----------------------------------------------------------------------------------------------- */

static int pairs_check(struct jobopt *o, struct error *err)
{
	const Pb__JobDesc *d = o->desc;
	if (tres_names(d->tres_per_task, "cpu")) {
		if (jobopt_is_set(o, JO_cpus_per_gpu))
			return refuse_fatal(o, err, groups[3].text);
		/* A batch script's environment has both, and both say the same: there, and for srun -c in it, --cpus-per-task counts. */
		if (o->from[JO_tres_per_task] == JOBOPT_ENV && o->from[JO_cpus_per_task] >= JOBOPT_ENV) {
			jobopt_tres_remove(o->desc->tres_per_task, "cpu");
			if (!*o->desc->tres_per_task)
				option_drop(o, JO_tres_per_task);
		} else if (o->from[JO_cpus_per_task] >= o->from[JO_tres_per_task]) {
			return refuse_fatal(o, err, "You can not have --tres-per-task=cpu= and --cpus-per-task please use one or the other");
		} else {
			option_drop(o, JO_cpus_per_task);
		}
	}
	if (jobopt_is_set(o, JO_gpus_per_task) && jobopt_is_set(o, JO_tres_per_task) && o->from[JO_tres_per_task] != JOBOPT_ENV && o->text[JO_tres_per_task] &&
	    strstr(o->text[JO_tres_per_task], "gres/gpu"))
		return refuse_fatal(o, err, "You can not have --tres-per-task=gres/gpu= and --gpus-per-task please use one or the other");
	if (o->overlap && jobopt_is_set(o, JO_exclusive) && o->from[JO_overlap] == o->from[JO_exclusive])
		return jobopt_refuse(o, 1, err, "--exclusive and --overlap are mutually exclusive");
	if (o->cmd == JOBOPT_SRUN && !o->jobid && o->has_relative)
		return refuse_fatal(o, err, "--relative option invalid for job allocation request");
	return 0;
}

/* Fewer tasks than nodes: "setting nnodes to 1", of a step too. */
static void nodes_lower(struct jobopt *o)
{
	Pb__JobDesc *d = o->desc;
	if (!d->has_num_tasks || !d->has_min_nodes || d->num_tasks >= d->min_nodes)
		return;
	log_at(LOG_L_INFO, "warning: can't run %u processes on %u nodes, setting nnodes to %u", d->num_tasks, d->min_nodes, d->num_tasks);
	d->min_nodes = d->num_tasks;
	if (d->max_nodes > d->num_tasks)
		d->max_nodes = d->num_tasks;
}

static int hosts_read(const char *path, struct hostlist *hl, struct error *err)
{
	FILE *f = fopen(path, "re");
	struct str text = STR_INIT;
	char buf[4096];
	size_t got;
	while (f && (got = fread(buf, 1, sizeof(buf), f)) > 0 && text.len < HOSTFILE_MAX)
		str_add_n(&text, buf, got);
	if (f)
		fclose(f);
	int rc = hostlist_add(hl, text.len ? text.data : "", err);
	str_fini(&text);
	return rc;
}

static int hosts_refuse(struct jobopt *o, char *before, struct error *err)
{
	o->before = before;
	return jobopt_refuse(o, 1, err, "Failure getting NodeNames from hostfile");
}

/* The names of a host file beyond the number of tasks are left over; a list must name as many as there are tasks: slurmctld says so of a job, we of a step. */
static int hosts_count(struct jobopt *o, struct hostlist *hl, bool from_file, struct error *err)
{
	Pb__JobDesc *d = o->desc;
	if (!d->has_num_tasks)
		d->num_tasks = (uint32_t)hl->count;
	d->has_num_tasks = true;
	if (from_file && hl->count < d->num_tasks)
		return hosts_refuse(o, xasprintf("%s: error: Too few NodeNames in Slurm Hostfile: %zu for %u tasks", jobopt_cmd_name(o->cmd), hl->count, d->num_tasks), err);
	if (!from_file && o->jobid && hl->count != d->num_tasks)
		return jobopt_refuse(o, 1, err, "You asked for %u tasks but hostlist specified %zu nodes", d->num_tasks, hl->count);
	struct hostlist used = HOSTLIST_INIT;
	for (size_t i = 0; i < hl->count && (!from_file || i < d->num_tasks); i++)
		hostlist_push(&used, hl->name[i]);
	hostlist_fini(hl);
	*hl = used;
	return 0;
}

/* The list that stands for a host file: of the job we are in, where its distribution was arbitrary. */
static const char *hosts_listed(const struct jobopt *o)
{
	if (o->text[JO_nodelist] || o->text[JO_nodefile])
		return o->text[JO_nodelist] ? o->text[JO_nodelist] : o->text[JO_nodefile];
	return o->jobid ? getenv("SLURM_ARBITRARY_NODELIST") : NULL;
}

/* Hosts in order, a task each: of SLURM_HOSTFILE ("it will override any other method", srun(1), --distribution=arbitrary), else of --nodelist or --nodefile. */
static int hostfile_take(struct jobopt *o, struct error *err)
{
	const char *path = getenv("SLURM_HOSTFILE"), *list = NULL;
	struct hostlist hl = HOSTLIST_INIT;
	Pb__JobDesc *d = o->desc;
	bool is_arbitrary = d->distribution && str_starts(d->distribution, "arbitrary");
	if (is_arbitrary && (o->from[JO_nodes] == JOBOPT_ARGS || o->from[JO_nodes] == JOBOPT_SCRIPT))
		return jobopt_refuse(o, 1, err, "--nodes is incompatible with --distribution=arbitrary");
	if (!path || !*path) {
		list = is_arbitrary ? hosts_listed(o) : NULL;
		if (!list && is_arbitrary && !o->jobid)
			return jobopt_refuse(o, 1, err, "With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option");
		if (!list || !*list)
			return 0;
		path = strchr(list, '/') || list == o->text[JO_nodefile] ? list : NULL;
	}
	if ((path ? hosts_read(path, &hl, err) : hostlist_add(&hl, list, err)) < 0 || !hl.count) {
		hostlist_fini(&hl);
		return hosts_refuse(o, path && access(path, R_OK) ? xasprintf("%s: error: slurm_allocate_resources error opening file %s, %s", jobopt_cmd_name(o->cmd), path, strerror(errno)) :
				       xasprintf("%s: error: Hostlist is empty!", jobopt_cmd_name(o->cmd)), err);
	}
	int rc = hosts_count(o, &hl, path != NULL, err);
	if (rc < 0) {
		hostlist_fini(&hl);
		return rc;
	}
	free(d->arbitrary_hosts);
	d->arbitrary_hosts = hostlist_compact(&hl);
	hostlist_uniq(&hl);
	free(d->req_nodes);
	d->req_nodes = hostlist_compact(&hl);
	d->has_min_nodes = d->has_max_nodes = true;
	d->min_nodes = d->max_nodes = (uint32_t)hl.count;
	xstr_set(&d->distribution, "arbitrary");
	xstr_set(&o->arbitrary_hosts, d->arbitrary_hosts);
	hostlist_fini(&hl);
	return 0;
}

/* --nodelist names the least there shall be: all of its nodes, up to the maximum of --nodes. A step's nodes are slurmctld's affair. */
static void nodes_raise(struct jobopt *o)
{
	Pb__JobDesc *d = o->desc;
	struct hostlist hl = HOSTLIST_INIT;
	if (o->jobid || !d->req_nodes || o->arbitrary_hosts || hostlist_add(&hl, d->req_nodes, NULL) < 0)
		return;
	hostlist_uniq(&hl);
	uint32_t named = (uint32_t)hl.count;
	hostlist_fini(&hl);
	if (d->has_min_nodes && d->has_max_nodes && named > d->max_nodes)
		named = d->max_nodes;
	if (d->has_min_nodes && d->has_num_tasks && named > d->num_tasks)
		named = d->num_tasks;
	if (named > (d->has_min_nodes ? d->min_nodes : 1)) {
		d->has_min_nodes = true;
		d->min_nodes = named;
	}
}

/* One thread of each core is used; memory_bound also lets sockets of a single core do. The last word that says something about either counts; who says himself
 * what the cores are to be has not asked for this. */
static void hint_take(Pb__JobDesc *d)
{
	char *copy = xstrdup(d->hint ? d->hint : ""), *cursor = copy, *part;
	bool one_thread = false, one_core = false;
	while ((part = str_next(&cursor, ","))) {
		bool bound = str_eq_nocase(part, "compute_bound") || str_eq_nocase(part, "memory_bound");
		one_thread = *part ? bound || str_eq_nocase(part, "nomultithread") : one_thread;
		one_core = bound ? str_eq_nocase(part, "memory_bound") : one_core;
	}
	xfree(copy);
	if (d->has_cores_per_socket || !one_thread)
		return;
	if (!d->has_threads_per_core) {
		d->has_threads_per_core = true;
		d->threads_per_core = 1;
	}
	d->has_cores_per_socket = one_core;
	d->cores_per_socket = one_core;
}

int jobopt_check(struct jobopt *o, struct error *err)
{
	int rc = 0;
	o->getopt_error = o->fatal = false;
	o->exit_code = 1;
	xfree(o->before);
	if (o->cmd == JOBOPT_SRUN && o->jobid)
		step_gpus(o);
	for (size_t i = 0; rc == 0 && i < sizeof(groups) / sizeof(groups[0]); i++)
		rc = group_check(o, &groups[i], err);
	if (rc == 0)
		rc = pairs_check(o, err);
	if (rc == 0)
		rc = per_node_join(o, err);
	if (rc == 0)
		rc = gpu_counts_check(o, err);
	if (rc == 0)
		rc = hostfile_take(o, err);
	if (rc < 0)
		return rc;
	gpu_derive(o);
	nodes_raise(o);
	nodes_lower(o);
	/* What the job says of tasks outweighs what a step says of each node, where both cannot be. */
	const Pb__JobDesc *d = o->desc;
	if (o->from[JO_ntasks] == JOBOPT_ENV && d->has_ntasks_per_node && d->has_min_nodes && d->num_tasks > (uint64_t)d->ntasks_per_node * d->min_nodes)
		option_drop(o, JO_ntasks_per_node);
	/* A number of threads outweighs a hint; what a job told its steps of both agrees. */
	if (jobopt_is_set(o, JO_threads_per_core) && jobopt_is_set(o, JO_hint) && !(o->cmd == JOBOPT_SRUN && o->from[JO_threads_per_core] == JOBOPT_ENV))
		option_drop(o, JO_hint);
	hint_take(o->desc);
	return 0;
}
