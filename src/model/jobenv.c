/* jobenv.c - the SLURM_* variables of an allocation (see jobenv.h)
 *
 * Options of the submission that srun must see again inside the job are rows of `option_vars`; the rest is written out. Values and conditions are
 * those observed on 26.05.5 (test/compat/jobenv). A job that was given no task count has one task a node, or, when it holds whole nodes,
 * as many as fit the CPUs. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/arrayspec.h"
#include "model/bind.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "model/jobenv.h"
#include "model/stepid.h"
#include "model/tres.h"

enum { ARRAY_SIZE_MAX = 4000001 };

/* --- small helpers -------------------------------------------------------------------------------- */

char *jobenv_counts(const uint32_t *count, size_t n)
{
	struct str s = STR_INIT;

	for (size_t i = 0; i < n;) {
		size_t j = i;
		while (j < n && count[j] == count[i])
			j++;
		str_addf(&s, "%s%u", s.len ? "," : "", count[i]);
		if (j - i > 1)
			str_addf(&s, "(x%zu)", j - i);
		i = j;
	}
	return str_take(&s);
}



/* Number of nodes of a part. */
static size_t part_nodes(const Pb__NodeAlloc *p)
{
	long n = hostlist_count(p->nodes, NULL);
	return n > 0 ? (size_t)n : 0;
}

static size_t alloc_nodes(const Pb__Alloc *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n_part; i++)
		n += part_nodes(a->part[i]);
	return n;
}

/* CPUs of each node in node order. */
static size_t alloc_cpus(const Pb__Alloc *a, uint32_t *ret, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n_part; i++)
		for (size_t k = part_nodes(a->part[i]); k > 0 && n < max; k--)
			ret[n++] = a->part[i]->cpus;
	return n;
}

/* --- tasks a node --------------------------------------------------------------------------------- */

/* Was the number of tasks asked for, and what is it? 0: no. */
static uint32_t tasks_asked(const Pb__JobRecord *job)
{
	const Pb__JobDesc *d = job->desc;

	if (!d)
		return 0;
	if (d->has_num_tasks)
		return d->num_tasks;
	if (d->has_ntasks_per_node || d->has_ntasks_per_tres || d->has_ntasks_per_socket || d->has_ntasks_per_core || d->tres_per_task)
		return job->has_num_tasks ? job->num_tasks : 0;
	return 0;
}

/* Block: fill each node up to its room, after one task for each node that can still get one. */
static void tasks_block(uint32_t left, const uint32_t *room, uint32_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ret[i] = left > 0 ? 1 : 0;
		left -= ret[i];
	}
	for (size_t i = 0; i < n && left > 0; i++) {
		uint32_t more = room[i] > ret[i] ? room[i] - ret[i] : 0;
		if (more > left)
			more = left;
		ret[i] += more;
		left -= more;
	}
	/* More tasks than room (overcommit): the rest one a node, round and round. */
	for (size_t i = 0; left > 0; i = (i + 1) % n) {
		ret[i]++;
		left--;
	}
}

static void tasks_cyclic(uint32_t left, const uint32_t *room, uint32_t *ret, size_t n)
{
	bool any = true;

	memset(ret, 0, n * sizeof(*ret));
	while (left > 0) {
		bool full = !any;
		any = false;
		for (size_t i = 0; i < n && left > 0; i++) {
			if (!full && ret[i] >= room[i])
				continue;
			ret[i]++;
			left--;
			any = true;
		}
	}
}

size_t jobenv_tasks(const Pb__JobRecord *job, uint32_t *ret, size_t max)
{
	const Pb__JobDesc *d = job->desc;
	uint32_t cpt = d && d->has_cpus_per_task && d->cpus_per_task ? d->cpus_per_task : 1;
	uint32_t asked = tasks_asked(job), *room;
	size_t n;

	if (!job->alloc)
		return 0;
	if (asked && job->alloc->n_part && job->alloc->part[0]->has_tasks) {
		n = 0;
		for (size_t i = 0; i < job->alloc->n_part; i++)
			for (size_t k = part_nodes(job->alloc->part[i]); k > 0 && n < max; k--)
				ret[n++] = job->alloc->part[i]->tasks;
		return n;
	}
	room = xcalloc(max ? max : 1, sizeof(*room));
	n = alloc_cpus(job->alloc, room, max);
	for (size_t i = 0; i < n; i++) {
		room[i] = room[i] / cpt ? room[i] / cpt : 1;
		if (d && d->has_ntasks_per_node && d->ntasks_per_node && room[i] > d->ntasks_per_node)
			room[i] = d->ntasks_per_node;
		ret[i] = room[i];
	}
	if (asked && n > 0) {
		if (d && d->distribution && str_starts(d->distribution, "cyclic"))
			tasks_cyclic(asked, room, ret, n);
		else
			tasks_block(asked, room, ret, n);
	}
	free(room);
	return n;
}

/* --- the options that come back ------------------------------------------------------------------- */

struct option_var {
	const char *name;
	enum { VAR_U32, VAR_U64, VAR_TEXT, VAR_FLAG } kind;
	size_t has, value;        /* offsets in JobDesc */
};
#define NUM(kind_, var, field) { var, kind_, offsetof(Pb__JobDesc, has_##field), offsetof(Pb__JobDesc, field) }
#define TEXT(var, field) { var, VAR_TEXT, 0, offsetof(Pb__JobDesc, field) }
/* Given by batch scripts and salloc alike. */
static const struct option_var option_vars[] = {
	NUM(VAR_U32, "SLURM_NTASKS_PER_NODE", ntasks_per_node),
	NUM(VAR_U32, "SLURM_NTASKS_PER_SOCKET", ntasks_per_socket), NUM(VAR_U32, "SLURM_NTASKS_PER_CORE", ntasks_per_core),
	NUM(VAR_U32, "SLURM_NTASKS_PER_GPU", ntasks_per_tres), NUM(VAR_U32, "SLURM_THREADS_PER_CORE", threads_per_core),
	NUM(VAR_U64, "SLURM_MEM_PER_CPU", mem_per_cpu), NUM(VAR_FLAG, "SLURM_OVERCOMMIT", overcommit),
	NUM(VAR_U32, "SLURM_DIST_PLANESIZE", plane_size), NUM(VAR_U32, "SLURM_JOB_SEGMENT_SIZE", segment),
	TEXT("SLURM_HINT", hint),
	TEXT("SLURM_TRES_BIND", tres_bind), TEXT("SLURM_GPU_FREQ", tres_freq), TEXT("SLURM_JOB_DEPENDENCY", dependency),
	TEXT("SLURM_NETWORK", network), TEXT("SLURM_CPU_FREQ_REQ", cpu_freq), TEXT("SLURM_PROFILE", profile),
	TEXT("SLURM_CONTAINER", container), TEXT("SLURM_JOB_LICENSES", licenses), TEXT("SLURM_JOB_RESERVATION", reservation),
};

static void add_option(struct envlist *e, const Pb__JobDesc *d, const struct option_var *v)
{
	const char *base = (const char *)d;
	const void *value = base + v->value;

	if (v->kind == VAR_TEXT) {
		const char *text = *(char *const *)value;
		if (text && *text)
			envlist_set(e, v->name, text);
		return;
	}
	if (!*(const protobuf_c_boolean *)(base + v->has))
		return;
	if (v->kind == VAR_FLAG) {
		if (*(const protobuf_c_boolean *)value)
			envlist_set(e, v->name, "1");
	} else if (v->kind == VAR_U64) {
		envlist_setf(e, v->name, "%llu", (unsigned long long)*(const uint64_t *)value);
	} else {
		envlist_setf(e, v->name, "%u", *(const uint32_t *)value);
	}
}

/* The gpu element of "gres/gpu:h100:2,gres/x:1", as "h100:2", "2"; NULL: none. buf. */
static const char *gpu_of(const char *tres, char *buf, size_t size)
{
	struct gres_req r[GRES_REQ_MAX];
	size_t n;

	if (!tres || gres_parse(tres, r, GRES_REQ_MAX, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (!str_eq(r[i].name, "gpu"))
			continue;
		snprintf(buf, size, "%s%s%llu", r[i].type, r[i].type[0] ? ":" : "", (unsigned long long)r[i].count);
		return buf;
	}
	return NULL;
}

static void add_gpu(struct envlist *e, const char *name, const char *tres)
{
	char buf[128];
	const char *v = gpu_of(tres, buf, sizeof(buf));
	if (v)
		envlist_set(e, name, v);
}

void jobenv_distribution(struct envlist *e, const char *text)
{
	const char *word = NULL;
	struct str out = STR_INIT;
	for (size_t level = 0, len; text && *text && *text != '='; level++, text += len) {
		len = strcspn(text, ":,=");
		bool star = len == 1 && *text == '*';
		word = !star ? text : level == 0 ? "block" : level == 1 ? "cyclic" : word; /* the third is as the second */
		str_add_n(&out, word, strcspn(word, ":,="));
		if (text[len] == ':' || text[len] == ',')
			str_add_c(&out, text[len++]);
	}
	if (out.len)
		envlist_set(e, "SLURM_DISTRIBUTION", out.data);
	str_fini(&out);
}

/* "2" of "gres/gpu=1,cpu=2"; NULL: no CPUs are named. */
static const char *cpus_of_tres(const char *tres)
{
	for (const char *at = tres; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (str_starts(at, "cpu=") || str_starts(at, "cpu:"))
			return at + 4;
	return NULL;
}

void jobenv_add_per_task(struct envlist *e, const Pb__JobDesc *d)
{
	const char *tres = d->tres_per_task && *d->tres_per_task ? d->tres_per_task : NULL, *cpus = cpus_of_tres(tres);
	if (tres)
		envlist_set(e, "SLURM_TRES_PER_TASK", tres);
	if (d->has_cpus_per_task) {
		envlist_setf(e, "SLURM_CPUS_PER_TASK", "%u", d->cpus_per_task);
		if (!cpus)
			envlist_setf(e, "SLURM_TRES_PER_TASK", "cpu=%u%s%s", d->cpus_per_task, tres ? "," : "", tres ? tres : "");
	} else if (cpus) {
		envlist_setf(e, "SLURM_CPUS_PER_TASK", "%.*s", (int)strcspn(cpus, ","), cpus);
	}
}

/* As srun reads it again in the job: without "quiet", masks without 0x. */
static void add_mem_bind(struct envlist *e, const char *text)
{
	struct bind b;
	if (!text || !*text || bind_parse(text, true, &b) < 0)
		return;
	char *list = bind_list(&b);
	const char *kind = bind_kind_name(b.kind, true);
	struct str s = STR_INIT;
	if (b.verbose)
		str_add_sep(&s, ",", "verbose");
	if (b.prefer)
		str_add_sep(&s, ",", "prefer");
	if (*kind)
		str_add_sep(&s, ",", kind);
	if (list)
		str_addf(&s, ":%s", list);
	if (s.len)
		envlist_set(e, "SLURM_MEM_BIND", s.data);
	envlist_set(e, "SLURM_MEM_BIND_VERBOSE", b.verbose ? "verbose" : "quiet");
	str_fini(&s);
	free(list);
	bind_fini(&b);
}

static void add_options(struct envlist *e, const Pb__JobRecord *job, enum jobenv_for what)
{
	const Pb__JobDesc *d = job->desc;
	uint32_t tasks = tasks_asked(job);

	for (size_t i = 0; i < sizeof(option_vars) / sizeof(option_vars[0]); i++)
		add_option(e, d, &option_vars[i]);
	if (job->resv_name) /* of several it named, or of none, the one it runs in */
		envlist_set(e, "SLURM_JOB_RESERVATION", job->resv_name);
	jobenv_distribution(e, d->distribution);
	if (d->arbitrary_hosts && d->arbitrary_hosts[0] && what != JOBENV_SRUN)
		envlist_set(e, "SLURM_ARBITRARY_NODELIST", d->arbitrary_hosts);
	if (d->has_open_append && what == JOBENV_BATCH)
		envlist_set(e, "SLURM_OPEN_MODE", d->open_append ? "a" : "t");
	if (d->acctg_freq && what != JOBENV_SRUN)
		envlist_set(e, "SLURM_ACCTG_FREQ", d->acctg_freq);
	if (d->has_mem_per_node && d->mem_per_node)
		envlist_setf(e, "SLURM_MEM_PER_NODE", "%llu", (unsigned long long)d->mem_per_node);
	if (tasks) {
		envlist_setf(e, "SLURM_NTASKS", "%u", tasks);
		envlist_setf(e, "SLURM_NPROCS", "%u", tasks);
	}
	jobenv_add_per_task(e, d);
	if (what != JOBENV_SRUN)
		add_mem_bind(e, d->mem_bind);
	if (what == JOBENV_SALLOC && d->has_oom_kill_step && d->oom_kill_step)
		envlist_set(e, "SLURM_OOM_KILL_STEP", "1");
	/* What a job around sbatch was told is not for this one. */
	if (what == JOBENV_BATCH && !d->has_cpus_per_task && !cpus_of_tres(d->tres_per_task) && envlist_get(e, "SLURM_CPUS_PER_TASK"))
		envlist_set(e, "SLURM_CPUS_PER_TASK", "1");
	add_gpu(e, "SLURM_GPUS", d->tres_per_job);
	add_gpu(e, "SLURM_GPUS_PER_SOCKET", d->tres_per_socket);
	add_gpu(e, "SLURM_CPUS_PER_GPU", d->cpus_per_tres);
	add_gpu(e, "SLURM_MEM_PER_GPU", d->mem_per_tres);
	if (d->export_env && what == JOBENV_BATCH && strcasecmp(d->export_env, "ALL"))
		envlist_set(e, "SLURM_EXPORT_ENV", d->export_env);
}

/* --- the allocation ------------------------------------------------------------------------------- */

static void add_layout(struct envlist *e, const Pb__JobRecord *job)
{
	size_t max = alloc_nodes(job->alloc), n;
	uint32_t *count = xcalloc(max ? max : 1, sizeof(*count));
	char *text;

	n = alloc_cpus(job->alloc, count, max);
	text = jobenv_counts(count, n);
	envlist_set(e, "SLURM_JOB_CPUS_PER_NODE", text);
	free(text);
	n = jobenv_tasks(job, count, max);
	text = jobenv_counts(count, n);
	envlist_set(e, "SLURM_TASKS_PER_NODE", text);
	free(text);
	free(count);
	envlist_set(e, "SLURM_JOB_NODELIST", job->alloc->nodes);
	envlist_set(e, "SLURM_NODELIST", job->alloc->nodes);
	envlist_setf(e, "SLURM_JOB_NUM_NODES", "%zu", max);
	envlist_setf(e, "SLURM_NNODES", "%zu", max);
}

static void add_array(struct envlist *e, const Pb__JobRecord *job)
{
	struct arrayspec a;
	uint32_t first, last, count;

	if (!job->has_array_task_id)
		return;
	envlist_setf(e, "SLURM_ARRAY_JOB_ID", "%u", job->array_job_id);
	envlist_setf(e, "SLURM_ARRAY_TASK_ID", "%u", job->array_task_id);
	if (!job->desc || !job->desc->array || arrayspec_parse(job->desc->array, idset_bound(job->desc->array, ARRAY_SIZE_MAX), &a, NULL) < 0)
		return;
	first = last = bitset_next(a.tasks, 0);
	count = bitset_count(a.tasks);
	bitset_for(a.tasks, i)
		last = i;
	envlist_setf(e, "SLURM_ARRAY_TASK_COUNT", "%u", count);
	envlist_setf(e, "SLURM_ARRAY_TASK_MIN", "%u", first);
	envlist_setf(e, "SLURM_ARRAY_TASK_MAX", "%u", last);
	envlist_setf(e, "SLURM_ARRAY_TASK_STEP", "%u", count > 1 ? bitset_next(a.tasks, first + 1) - first : 1);
	arrayspec_fini(&a);
}

static void set_text(struct envlist *e, const char *name, const char *value)
{
	if (value && *value)
		envlist_set(e, name, value);
}

void jobenv_add_owner(struct envlist *e, const Pb__JobRecord *job)
{
	const Pb__JobDesc *d = job->desc;

	set_text(e, "SLURM_JOB_SLUID", job->sluid);
	set_text(e, "SLURM_JOB_USER", job->user);
	envlist_setf(e, "SLURM_JOB_UID", "%u", job->uid);
	envlist_setf(e, "SLURM_JOB_GID", "%u", job->gid);
	if (job->has_start_time)
		envlist_setf(e, "SLURM_JOB_START_TIME", "%llu", (unsigned long long)job->start_time);
	if (job->has_end_time)
		envlist_setf(e, "SLURM_JOB_END_TIME", "%llu", (unsigned long long)job->end_time);
	envlist_set(e, "SLURM_OOM_KILL_STEP", d && d->has_oom_kill_step && d->oom_kill_step ? "1" : "0");
}

static void add_upper(struct envlist *e, const char *name, const char *value)
{
	char *text = xstrdup(value);
	for (char *at = text; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	envlist_set(e, name, text);
	free(text);
}

void jobenv_add(struct envlist *e, const Pb__JobRecord *job, enum jobenv_for what, const char *cluster, const char *conf_path)
{
	const Pb__JobDesc *d = job->desc;

	envlist_setf(e, "SLURM_JOB_ID", "%u", job->job_id);
	envlist_setf(e, "SLURM_JOBID", "%u", job->job_id);
	set_text(e, "SLURM_CLUSTER_NAME", cluster);
	set_text(e, "SLURM_CONF", conf_path);
	set_text(e, "SLURM_JOB_PARTITION", job->partition);
	if (d) {
		set_text(e, "SLURM_JOB_NAME", d->name);
		set_text(e, "SLURM_JOB_ACCOUNT", d->account);
		set_text(e, "SLURM_JOB_QOS", d->qos && *d->qos ? d->qos : "normal"); /* as show job says where there are no QOS */
		add_options(e, job, what);
	}
	if (job->alloc)
		add_layout(e, job);
	if (what != JOBENV_BATCH)
		return;
	add_array(e, job);
	jobenv_add_owner(e, job);
	if (job->has_restarts && job->restarts)
		envlist_setf(e, "SLURM_RESTART_COUNT", "%u", job->restarts);
	add_upper(e, "SLURM_JOB_EXCLUSIVE", d && d->exclusive ? d->exclusive : "NO");
	envlist_set(e, "SLURM_JOB_OVERSUBSCRIBE", d && d->has_oversubscribe && d->oversubscribe ? "YES" : "NO");
}

/* --- components ----------------------------------------------------------------------------------- */

static void add_grouped(struct envlist *e, const char *var, size_t group)
{
	static const char *const word[] = { "HET", "PACK" };
	const char *eq = strchr(var, '=');
	char name[256];

	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%.*s_%s_GROUP_%zu", (int)(eq - var), var, word[i], group);
		envlist_set(e, name, eq + 1);
	}
}

void jobenv_add_het(struct envlist *e, Pb__JobRecord *const *job, size_t n, enum jobenv_for what, const bool *tell_mem)
{
	static const char *const salloc_only[] = { "SLURM_JOBID=", "SLURM_NNODES=", "SLURM_NODELIST=" };

	for (size_t i = 0; i < n; i++) {
		struct envlist own = ENVLIST_INIT;
		jobenv_add(&own, job[i], JOBENV_SALLOC, NULL, NULL);
		if (tell_mem && !tell_mem[i])
			envlist_unset(&own, "SLURM_MEM_PER_CPU");
		for (size_t k = 0; k < own.count; k++) {
			bool skip = false;
			for (size_t x = 0; what == JOBENV_BATCH && x < 3; x++)
				skip = skip || str_starts(own.var[k], salloc_only[x]);
			if (!skip)
				add_grouped(e, own.var[k], i);
		}
		envlist_fini(&own);
	}
	envlist_setf(e, "SLURM_HET_SIZE", "%zu", n);
	envlist_setf(e, "SLURM_PACK_SIZE", "%zu", n);
}

/* --- one node ------------------------------------------------------------------------------------- */

/* The part that holds `node`; *ret_index is the node's place in the allocation. */
static const Pb__NodeAlloc *part_find(const Pb__Alloc *a, const char *node, size_t *ret_index)
{
	size_t base = 0;

	for (size_t i = 0; i < a->n_part; i++) {
		struct hostlist hl = HOSTLIST_INIT;
		int at = -1;
		if (hostlist_add(&hl, a->part[i]->nodes, NULL) == 0)
			at = hostlist_find(&hl, node);
		*ret_index = base + (at < 0 ? 0 : (size_t)at);
		base += hl.count;
		hostlist_fini(&hl);
		if (at >= 0)
			return a->part[i];
	}
	return NULL;
}

static void add_gpus_on_node(struct envlist *e, const Pb__NodeAlloc *part)
{
	static const char *const same[] = { "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "SLURM_JOB_GPUS" };
	struct str list = STR_INIT;
	uint64_t count = 0;

	for (size_t i = 0; i < part->n_gres; i++) {
		struct bitset *b;
		bool shared = part->gres[i]->shares != NULL;
		if (!shared && !str_eq(part->gres[i]->name, "gpu"))
			continue;
		if (shared)
			envlist_setf(e, "SLURM_SHARDS_ON_NODE", "%llu", (unsigned long long)part->gres[i]->count);
		count += shared ? 0 : part->gres[i]->count;
		if (!part->gres[i]->index || idset_parse(part->gres[i]->index, 4096, &b, NULL) < 0)
			continue;
		count += shared ? bitset_count(b) : 0;
		bitset_for(b, k)
			str_addf(&list, "%s%u", list.len ? "," : "", k);
		bitset_destroy(b);
	}
	if (count)
		envlist_setf(e, "SLURM_GPUS_ON_NODE", "%llu", (unsigned long long)count);
	for (size_t i = 0; list.len > 0 && i < sizeof(same) / sizeof(same[0]); i++)
		envlist_set(e, same[i], list.data);
	str_fini(&list);
}

void jobenv_add_node(struct envlist *e, const Pb__JobRecord *job, const char *node)
{
	size_t index = 0;
	const Pb__NodeAlloc *part = job->alloc ? part_find(job->alloc, node, &index) : NULL;

	envlist_set(e, "SLURMD_NODENAME", node);
	envlist_set(e, "SLURM_TOPOLOGY_ADDR", node);
	envlist_set(e, "SLURM_TOPOLOGY_ADDR_PATTERN", "node");
	envlist_setf(e, "SLURM_NODEID", "%zu", index);
	envlist_unset(e, "SLURM_GPUS_ON_NODE");
	envlist_unset(e, "SLURM_JOB_GPUS");
	if (!part)
		return;
	envlist_setf(e, "SLURM_CPUS_ON_NODE", "%u", part->cpus);
	add_gpus_on_node(e, part);
}

void jobenv_add_batch(struct envlist *e, const Pb__JobRecord *job, int pid)
{
	envlist_setf(e, "SLURM_STEP_ID", "%d", (int)STEP_ID_BATCH);
	envlist_setf(e, "SLURM_STEPID", "%d", (int)STEP_ID_BATCH);
	envlist_set(e, "SLURM_PROCID", "0");
	envlist_set(e, "SLURM_LOCALID", "0");
	envlist_set(e, "SLURM_GTIDS", "0");
	envlist_setf(e, "SLURM_TASK_PID", "%d", pid);
	envlist_set_default(e, "SLURM_PRIO_PROCESS", "0");
	envlist_set(e, "ENVIRONMENT", "BATCH");
	envlist_set_default(e, "TMPDIR", "/tmp");
	/* sbatch put SLURM_SUBMIT_DIR and _HOST into the environment it sent; they are made up only where it did not. */
	if (job->desc && job->desc->work_dir)
		envlist_set_default(e, "SLURM_SUBMIT_DIR", job->desc->work_dir);
	if (job->desc && job->desc->alloc_node)
		envlist_set_default(e, "SLURM_SUBMIT_HOST", job->desc->alloc_node);
}

void jobenv_add_mpi(struct envlist *e, const char *params)
{
	static const char *const hydra[][2] = { { "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS" }, { "HYDRA_BOOTSTRAP", "HYDRA_LAUNCHER_EXTRA_ARGS" } };
	bool off = params && strstr(params, "disable_slurm_hydra_bootstrap");
	envlist_set_default(e, "OMPI_MCA_plm_slurm_args", "--external-launcher");
	envlist_set_default(e, "PRTE_MCA_plm_slurm_args", "--external-launcher");
	for (size_t i = 0; i < sizeof hydra / sizeof *hydra; i++) {
		const char *chosen = envlist_get(e, hydra[i][0]);
		if (chosen ? strcmp(chosen, "slurm") != 0 : off)
			continue;
		envlist_set(e, hydra[i][0], "slurm");
		envlist_set_default(e, hydra[i][1], "--external-launcher");
	}
}
