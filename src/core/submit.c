/* submit.c - EV_SUBMIT: is it allowed, is it possible, what is filled in; then a job (or only an estimate)
 * Order: same key again -> same answer; who may; what is refused by name; defaults; arrays; the shape; limits of partitions. Nothing
 * is changed before the last check has passed. */
#include <stdio.h>
#include <stdlib.h>

#include "core/acct.h"
#include "core/change.h"
#include "core/reserve.h"
#include "model/usage.h"

/* --- answers ---------------------------------------------------------------------------------- */

static Pb__SubmitRsp *rsp_new(struct core *c, const struct error *err)
{
	struct arena *a = fx_arena(c);
	Pb__SubmitRsp *r = arena_alloc(a, sizeof *r);
	pb__submit_rsp__init(r);
	r->code = (uint32_t)-err->code;
	if (err->line[0])
		r->detail = arena_strdup(a, err->line);
	r->cluster = (char *)c->params.cluster;
	return r;
}

/* Why an allocation that somebody waits for is not there yet, where that is more than nodes in use. */
static char *waits_for(const struct core_job *j)
{
	switch (j->shown) {
	case REASON_HELD_USER:
	case REASON_HELD_ADMIN:
		return (char *)"Job is in held state, pending scheduler release";
	case REASON_PARTITION_NODE_LIMIT:
	case REASON_PARTITION_TIME_LIMIT:
	case REASON_MAX_MEM_PER_LIMIT:
		return (char *)error_text(ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE);
	case REASON_PARTITION_DOWN:
		return (char *)"Partition in DOWN state";
	case REASON_REQ_NODE_NOT_AVAIL:
		return (char *)"Required node not available (down, drained or reserved)";
	default:
		return NULL;
	}
}

static void answer_job(struct core *c, const struct core_event *ev, struct core_job *j, struct error *err)
{
	Pb__SubmitRsp *r = rsp_new(c, err);
	struct arena *a = fx_arena(c);
	r->has_job_id = true;
	r->job_id = j->id;
	if (!j->batch && j->state == PB__JOB_STATE__PENDING)
		r->user_msg = waits_for(j);
	if (j->flags & JOBF_CONFIGURING)
		r->has_configuring = r->configuring = true;
	else if (j->alloc && j->state == PB__JOB_STATE__RUNNING && !j->batch) {
		r->alloc = record_alloc_info(c, j, a);
		if (ev->submit.first_step) {
			struct error serr = { 0 };
			Pb__StepDesc d = *ev->submit.first_step;
			d.job_id = j->id;
			r->step = arena_alloc(a, sizeof *r->step);
			pb__step_create_rsp__init(r->step);
			if (step_make(c, j, &d, &ev->by, r->step, &serr) < 0) {
				r->step->code = (uint32_t)-serr.code;
				r->step->detail = arena_strdup(a, serr.line);
			}
		}
	}
	fx_reply(c, ev->token, r);
}

/* --- what is refused, by name ----------------------------------------------------------------- */

struct refused { size_t offset; const char *option; };
#define NOT_YET(f, option) { offsetof(Pb__JobDesc, f), option }
static const struct refused refused_strings[] = {
	NOT_YET(batch_features, "--batch"),
	NOT_YET(cluster_features, "--cluster-constraint"), NOT_YET(resources, "--resources"), NOT_YET(bcast, "--bcast"),
};

static int refuse_unsupported(const Pb__JobDesc *d, struct error *err)
{
	for (size_t i = 0; i < sizeof refused_strings / sizeof refused_strings[0]; i++) {
		const char *v = *(char *const *)((const char *)d + refused_strings[i].offset);
		if (v && v[0])
			return error_set(err, ESLURM_NOT_SUPPORTED, "%s (\"%s\") is not supported yet", refused_strings[i].option, v);
	}
	if (d->exclusive && d->exclusive[0] && strcasecmp(d->exclusive, "node") && strcasecmp(d->exclusive, "user") && strcasecmp(d->exclusive, "topo") && strcasecmp(d->exclusive, "mcs"))
		return error_set(err, ESLURM_NOT_SUPPORTED, "--exclusive=%s: node, user, mcs and topo are known", d->exclusive);
	if (d->segment && d->min_nodes > d->segment && d->min_nodes % d->segment && (!d->has_max_nodes || d->max_nodes == d->min_nodes))
		return error_set(err, ESLURM_INVALID_NODE_COUNT, "--segment=%u does not fit the job size (%u): node count must be evenly divisible by segment size", d->segment, d->min_nodes);
	if (d->has_het_job_id && d->has_time_min_min && d->time_min_min)
		return error_set(err, ESLURM_NOT_SUPPORTED, "--time-min is not supported yet for heterogeneous jobs: their components start for their whole time limits");
	if (d->has_het_job_id && d->licenses && strchr(d->licenses, '|'))
		return error_set(err, ESLURM_NOT_SUPPORTED, "--licenses=%s: alternatives ('|') are not supported in heterogeneous jobs", d->licenses);
	if (d->reboot)
		return error_set(err, ESLURM_NOT_SUPPORTED, "--reboot is not supported yet");
	return 0;
}

/* --- defaults --------------------------------------------------------------------------------- */

int submit_partitions(struct core *c, const Pb__JobDesc *d, struct core_part **ret, uint32_t *ret_n, struct error *err)
{
	uint32_t n = 0;
	int r = 0;
	if (!d->partition || !d->partition[0]) {
		ret[0] = resv_partition(c, d->reservation);
		if (!ret[0])
			ret[0] = part_default(c);
		*ret_n = 1;
		return ret[0] ? 0 : error_set(err, ESLURM_DEFAULT_PARTITION_NOT_SET, "no partition was named and none is the default");
	}
	char *list = xstrdup(d->partition), *at = list, *w;
	while (!r && (w = str_next(&at, ","))) {
		struct core_part *p = part_find(c, w);
		bool twice = false;
		for (uint32_t i = 0; i < n; i++)
			twice = twice || ret[i] == p;
		if (!w[0] || twice)
			continue;
		if (!p)
			r = error_set(err, ESLURM_INVALID_PARTITION_NAME, "invalid partition specified: %s", w);
		else if (n == JOB_PARTS_MAX)
			r = error_set(err, ESLURM_INVALID_PARTITION_NAME, "more than %d partitions are named", JOB_PARTS_MAX);
		else
			ret[n++] = p;
	}
	free(list);
	if (r < 0)
		return r;
	for (uint32_t i = 1; i < n; i++) { /* shown and tried in order of tier */
		struct core_part *p = ret[i];
		uint32_t k = i;
		for (; k > 0 && ret[k - 1]->tier < p->tier; k--)
			ret[k] = ret[k - 1];
		ret[k] = p;
	}
	*ret_n = n;
	return n ? 0 : error_set(err, ESLURM_INVALID_PARTITION_NAME, "invalid partition specified: %s", d->partition);
}

static void default_memory(const struct core *c, const struct core_part *p, Pb__JobDesc *d)
{
	const struct core_params *q = &c->params;
	if (d->has_mem_per_node || d->has_mem_per_cpu || (d->mem_per_tres && d->mem_per_tres[0]))
		return;
	uint64_t cpu = p->rec->has_def_mem_per_cpu ? p->rec->def_mem_per_cpu : 0, node = p->rec->has_def_mem_per_node ? p->rec->def_mem_per_node : 0;
	if (!cpu && !node) {
		cpu = q->def_mem_per_cpu;
		node = q->def_mem_per_node;
	}
	if (cpu) {
		d->has_mem_per_cpu = true;
		d->mem_per_cpu = cpu;
	} else if (node || q->select_memory) { /* without a default a job has the memory of its nodes */
		d->has_mem_per_node = true;
		d->mem_per_node = node;
	}
}

/* The value of "DefCpuPerGPU=" in what a partition says, "DefCpuPerGPU=4,DefMemPerGPU=1000", else the cluster's; NULL: none. */
static const char *per_gpu(const struct core_part *p, const char *key, uint64_t all, struct arena *a)
{
	const char *s = p->rec->job_defaults ? strcasestr(p->rec->job_defaults, key) : NULL;
	if (s)
		return arena_printf(a, "gres/gpu:%.*s", (int)strcspn(s + strlen(key), ","), s + strlen(key));
	return all ? arena_printf(a, "gres/gpu:%llu", (unsigned long long)all) : NULL;
}

static void default_per_gpu(const struct core *c, const struct core_part *p, Pb__JobDesc *d, struct arena *a)
{
	bool gpus = (d->tres_per_job && strstr(d->tres_per_job, "gpu")) || (d->tres_per_node && strstr(d->tres_per_node, "gpu")) ||
		(d->tres_per_task && strstr(d->tres_per_task, "gpu"));
	if (gpus && !d->mem_per_tres && !d->has_mem_per_cpu && !d->has_mem_per_node)
		d->mem_per_tres = (char *)(uintptr_t)per_gpu(p, "DefMemPerGPU=", c->params.def_mem_per_gpu, a);
	if (gpus && !d->cpus_per_tres && !d->has_cpus_per_task)
		d->cpus_per_tres = (char *)(uintptr_t)per_gpu(p, "DefCpuPerGPU=", c->params.def_cpu_per_gpu, a);
}

/* More memory a CPU than MaxMemPerCPU: the job gets CPUs for it instead (slurm.conf(5)). */
static void memory_takes_cpus(const struct core *c, const struct core_part *p, Pb__JobDesc *d)
{
	uint64_t max = p->rec->has_max_mem_per_cpu && p->rec->max_mem_per_cpu ? p->rec->max_mem_per_cpu : c->params.max_mem_per_cpu, k = 1;
	uint32_t cpt = d->has_cpus_per_task && d->cpus_per_task ? d->cpus_per_task : 1, tasks = d->has_ntasks_per_node && d->ntasks_per_node ? d->ntasks_per_node : 1;
	if (!max || !c->params.select_memory)
		return;
	if (d->has_mem_per_cpu && d->mem_per_cpu > max) {
		k = (d->mem_per_cpu + max - 1) / max;
		d->mem_per_cpu = (d->mem_per_cpu + k - 1) / k;
		cpt *= (uint32_t)k;
	} else if (d->has_mem_per_node && d->mem_per_node > max * cpt * tasks) {
		cpt = (uint32_t)(((d->mem_per_node + max - 1) / max + tasks - 1) / tasks);
	} else
		return;
	d->has_cpus_per_task = true;
	d->cpus_per_task = cpt;
}

/* While a partition is in state DRAIN or INACTIVE its Alternate is taken instead (slurm.conf(5)); itself where there is none. */
static struct core_part *part_taken(struct core *c, struct core_part *p)
{
	for (unsigned hop = 0; hop < 4 && (p->state == PART_DRAIN || p->state == PART_INACTIVE) && p->rec->alternate; hop++) {
		struct core_part *other = part_find(c, p->rec->alternate);
		if (!other)
			break;
		p = other;
	}
	return p;
}

/* --core-spec, --thread-spec: only where AllowSpecResourcesUsage lets them count; such a job has its nodes alone. */
static void default_spec(const struct core *c, Pb__JobDesc *d)
{
	if (!c->params.allow_spec) {
		d->has_core_spec = d->has_thread_spec = false;
		d->core_spec = d->thread_spec = 0;
	}
	if (d->has_core_spec || d->has_thread_spec) {
		d->exclusive = (char *)"node";
		d->has_oversubscribe = d->oversubscribe = false;
	}
}

/* ENFORCE_BINDING_GRES: --gres-flags=enforce-binding for all that do not say otherwise. */
static void default_binding(const struct core *c, Pb__JobDesc *d, struct arena *a)
{
	const char *flags = d->gres_flags ? d->gres_flags : "";
	if (c->params.enforce_binding && !strstr(flags, "-binding"))
		d->gres_flags = arena_printf(a, "%s%senforce-binding", flags, flags[0] ? "," : "");
}

int submit_defaults(struct core *c, Pb__JobDesc *d, struct arena *a, struct error *err)
{
	struct core_part *part[JOB_PARTS_MAX];
	uint32_t n;
	int r = submit_partitions(c, d, part, &n, err);
	if (r < 0)
		return r;
	struct str names = STR_INIT;
	for (uint32_t i = 0; i < n; i++) {
		bool twice = false;
		part[i] = part_taken(c, part[i]);
		for (uint32_t k = 0; k < i; k++)
			twice = twice || part[k] == part[i];
		if (!twice)
			str_add_sep(&names, ",", part[i]->rec->name);
	}
	d->has_partition_assigned = d->partition_assigned = !d->partition || !d->partition[0];
	d->partition = arena_strdup(a, names.data);
	str_fini(&names);
	default_spec(c, d);
	default_per_gpu(c, part[0], d, a);
	license_per_task(d, a);
	default_memory(c, part[0], d);
	memory_takes_cpus(c, part[0], d);
	if (part[0]->exclusive && !d->exclusive)
		d->exclusive = (char *)"node";
	default_binding(c, d, a);
	return 0;
}

/* --- a job out of it -------------------------------------------------------------------------- */

/* Which limit of which partition, and both numbers. */
static const char *limit_text(struct arena *a, const struct core_job *j, uint32_t at)
{
	const struct core_part *p = j->shape->part[at];
	const char *name = j->shape->part_names[at];
	char mine[32], theirs[32], line[256];
	if (p && j->time_min > p->max_time_min) {
		timespec_format(j->time_min == TIME_INFINITE ? TIME_INFINITE : j->time_min * 60, mine, sizeof mine);
		timespec_format(p->max_time_min * 60, theirs, sizeof theirs);
		snprintf(line, sizeof line, "a time limit of %s exceeds MaxTime=%s of partition \"%s\"", mine, theirs, name);
	} else if (p && j->shape->min_nodes > p->max_nodes) {
		snprintf(line, sizeof line, "%u nodes exceed MaxNodes=%u of partition \"%s\"", j->shape->min_nodes, p->max_nodes, name);
	} else if (p && j->shape->max_nodes < p->min_nodes) {
		snprintf(line, sizeof line, "%u nodes are fewer than MinNodes=%u of partition \"%s\"", j->shape->max_nodes, p->min_nodes, name);
	} else {
		snprintf(line, sizeof line, "the request exceeds a limit of partition \"%s\" (%s)", name, reason_name(j->limit_reason ? j->limit_reason : REASON_PARTITION_CONFIG));
	}
	return arena_strdup(a, line);
}

/* Limits that hold a job back (EnforcePartLimits=NO) or refuse it (ANY: no partition fits; ALL: one does not). */
static int check_limits(struct core *c, const struct core_job *j, struct error *err)
{
	if (!c->params.enforce_part_limits)
		return 0;
	uint32_t all = (1u << j->shape->part_n) - 1;
	if (!j->limit_reason && (c->params.enforce_part_limits == 1 || (j->shape->part_mask & all) == all))
		return 0;
	int code = j->limit_reason == REASON_PARTITION_TIME_LIMIT ? ESLURM_INVALID_TIME_LIMIT :
		j->limit_reason == REASON_PARTITION_NODE_LIMIT ? ESLURM_INVALID_NODE_COUNT : ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE;
	uint32_t at = 0;
	while (at + 1 < j->shape->part_n && j->shape->part_mask & 1u << at)
		at++;
	return error_set(err, code, "%s", limit_text(fx_arena(c), j, at));
}

static int check_caller(struct core *c, const struct core_event *ev, struct error *err)
{
	uint32_t max = c->params.max_job_count ? c->params.max_job_count : 10000;
	if (c->job_n >= max)
		return error_set(err, ESLURM_QUEUE_FULL, "MaxJobCount=%u jobs are known already; wait for some to end", max);
	if (c->params.disable_root_jobs && ev->by.uid == 0)
		return error_set(err, ESLURM_ACCESS_DENIED, "DisableRootJobs is set: root may not submit jobs");
	return 0;
}

static int check_partitions(struct core *c, const struct core_event *ev, const Pb__JobDesc *d, struct error *err)
{
	struct core_part *part[JOB_PARTS_MAX];
	uint32_t n, away = 0;
	int r = submit_partitions(c, d, part, &n, err);
	for (uint32_t i = 0; r >= 0 && i < n; i++) {
		const Pb__PartitionRecord *p = part[i]->rec;
		if (part[i]->state == PART_DRAIN || part[i]->state == PART_INACTIVE)
			r = error_set(err, ESLURM_PARTITION_NOT_AVAIL, "partition \"%s\" is %s and takes no jobs", p->name, p->state);
		else if (p->req_resv && !(d->reservation && d->reservation[0]))
			r = error_set(err, ESLURM_ACCESS_DENIED, "partition \"%s\" takes only jobs that name a reservation (ReqResv)", p->name);
		else if (p->root_only && ev->by.uid != 0 && !ev->by.admin)
			r = error_set(err, ESLURM_ACCESS_DENIED, "only root may submit to partition \"%s\"", p->name);
		else if (p->disable_root_jobs && ev->by.uid == 0)
			r = error_set(err, ESLURM_ACCESS_DENIED, "root may not submit to partition \"%s\"", p->name);
		else if (!part_host_allowed(p, d) && ++away == n) /* of several those that take it remain */
			r = error_set(err, ESLURM_ACCESS_DENIED, "partition \"%s\" takes jobs only from hosts %s (AllocNodes)", p->name, p->alloc_nodes);
		else if (!part_group_allowed(p, &ev->by))
			r = error_set(err, ESLURM_JOB_MISSING_REQUIRED_PARTITION_GROUP, "partition \"%s\" is for groups %s", p->name, p->allow_groups);
	}
	return r;
}

static void job_from_desc(struct core *c, struct core_job *j, const struct core_event *ev, const Pb__JobDesc *d)
{
	j->uid = ev->by.uid;
	j->gid = ev->by.gid;
	j->user = atom_get(c, ev->by.user ? ev->by.user : "");
	j->group = atom_get(c, ev->by.group ? ev->by.group : "");
	j->state = PB__JOB_STATE__PENDING;
	j->batch = d->batch;
	j->interactive = d->interactive;
	j->requeue = d->has_requeue ? d->requeue : c->params.job_requeue;
	j->kill_invalid_dep = d->has_kill_on_invalid_dep ? d->kill_on_invalid_dep : c->params.kill_invalid_depend;
	j->nice = d->nice;
	j->submit = now_sec(c);
	j->begin = sec_last(d->begin_time);
	j->deadline = sec_deadline(d->deadline);
	recur_read(c, j, d, now_sec(c));
	warn_parse(j, d->signal);
	mail_parse(j, d->has_het_job_id && j->id != d->het_job_id ? NULL : d->mail_type); /* for the leader of a heterogeneous job only */
	j->hold = d->hold || (d->has_priority && !d->priority) ? REASON_HELD_USER : REASON_NONE;
	if (d->has_priority && d->priority) {
		j->prio_set = true;
		j->prio = d->priority;
		j->prio_at = now_sec(c);
	} else if (!c->params.priority_multifactor)
		j->prio = 4294901760u - j->id;
}

static int check_times(struct core *c, const Pb__JobDesc *d, struct error *err)
{
	uint32_t now = now_sec(c);
	if (d->has_time_limit_min && !d->time_limit_min)
		return error_set(err, ESLURM_INVALID_TIME_LIMIT, "a time limit of 0 minutes is not possible");
	if (d->has_time_limit_min && d->has_time_min_min && d->time_min_min > d->time_limit_min)
		return error_set(err, ESLURM_INVALID_TIME_MIN, "--time-min of %u minutes is above the time limit of %u", d->time_min_min, d->time_limit_min);
	if (d->has_time_min_min && d->time_min_min == TIME_INFINITE)
		return error_set(err, ESLURM_INVALID_TIME_MIN, "--time-min without a limit is not possible");
	if (!d->has_deadline || !d->deadline)
		return 0;
	if (d->has_begin_time && d->begin_time > d->deadline)
		return error_set(err, ESLURM_BEGIN_DEADLINE, "the job may not begin before its deadline has passed");
	uint64_t from = d->begin_time > now ? d->begin_time : now;
	uint32_t need = d->has_time_min_min ? d->time_min_min : d->has_time_limit_min ? d->time_limit_min : 1;
	if (from + need * 60ull > d->deadline)
		return error_set(err, ESLURM_INVALID_TIME_LIMIT, "the time limit does not fit before the deadline");
	return 0;
}

/* Where memory is shared out, its use may not be looked at more seldom than the site wants. */
static int check_frequency(struct core *c, const Pb__JobDesc *d, struct error *err)
{
	uint32_t sec = c->params.gather_sec;
	int rc = d->acctg_freq ? usage_frequency(d->acctg_freq, &sec, err) : 0;
	if (rc < 0 || (c->params.select_memory && c->params.gather_sec && (!sec || sec > c->params.gather_sec)))
		return error_set(err, ESLURM_INVALID_ACCTG_FREQ, "--acctg-freq=%s: JobAcctGatherFrequency is %u s", d->acctg_freq, c->params.gather_sec);
	return 0;
}

static bool asks_for_gpus(const Pb__JobDesc *d)
{
	const char *text[] = { d->tres_per_job, d->tres_per_node, d->tres_per_socket, d->tres_per_task };
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		if (text[i] && strstr(text[i], "gpu"))
			return true;
	return false;
}

/* "gres/gpu:h100:2,gres/gpu:1" is 3 */
static uint64_t gpus_asked(const char *text)
{
	uint64_t sum = 0;
	for (const char *s = text; s && *s;) {
		size_t k = strcspn(s, ","), n = k;
		if (!strncmp(s, "gres/gpu", 8)) {
			while (n && s[n - 1] != ':')
				n--;
			sum += n ? strtoull(s + n, NULL, 10) : 1;
		}
		s += k + (s[k] == ',');
	}
	return sum;
}

/* Counts that contradict each other. */
static int check_counts(const Pb__JobDesc *d, struct error *err)
{
	if (d->has_min_nodes && !d->min_nodes && d->has_max_nodes && !d->max_nodes)
		return error_set(err, ESLURM_INVALID_NODE_COUNT, "a job of 0 nodes is not possible");
	if (d->has_min_nodes && d->has_max_nodes && d->max_nodes && d->min_nodes > d->max_nodes)
		return error_set(err, ESLURM_INVALID_NODE_COUNT, "the maximum of %u nodes is below the minimum of %u", d->max_nodes, d->min_nodes);
	uint64_t in_all = gpus_asked(d->tres_per_job), each = gpus_asked(d->tres_per_node);
	if (in_all && each && d->has_num_tasks && d->num_tasks && in_all / each > d->num_tasks)
		return error_set(err, ESLURM_INVALID_TASK_COUNT, "%llu GPUs, %llu on each node, need more nodes than there are tasks (%u)", (unsigned long long)in_all, (unsigned long long)each, d->num_tasks);
	if (asks_for_gpus(d))
		return 0;
	if (d->cpus_per_tres && *d->cpus_per_tres)
		return error_set(err, ESLURM_INVALID_GRES, "--cpus-per-gpu (%s) without any GPU", d->cpus_per_tres);
	if (d->mem_per_tres && *d->mem_per_tres)
		return error_set(err, ESLURM_INVALID_GRES, "--mem-per-gpu (%s) without any GPU", d->mem_per_tres);
	if (d->has_ntasks_per_tres && d->ntasks_per_tres)
		return error_set(err, ESLURM_INVALID_GRES, "--ntasks-per-gpu needs GPUs or a number of tasks");
	return 0;
}

static int submit_check(struct core *c, const struct core_event *ev, Pb__JobDesc *d, struct error *err)
{
	int r = check_caller(c, ev, err);
	if (r >= 0)
		r = refuse_unsupported(d, err);
	if (r >= 0)
		r = check_counts(d, err);
	if (r >= 0)
		r = check_times(c, d, err);
	if (r >= 0)
		r = check_frequency(c, d, err);
	if (r >= 0)
		r = recur_check(c, d, err);
	if (r >= 0 && d->has_priority && !ev->by.oper)
		d->has_priority = false; /* only operators set one: a user's job is queued as any other */
	if (r >= 0 && d->has_nice && d->nice < 0 && !ev->by.oper)
		r = error_set(err, ESLURM_INVALID_NICE, "%s", error_text(ESLURM_INVALID_NICE));
	if (r >= 0)
		r = submit_defaults(c, d, fx_arena(c), err);
	if (r >= 0)
		r = acct_submit(c, &ev->by, d, fx_arena(c), err);
	if (r >= 0)
		r = check_partitions(c, ev, d, err);
	if (r >= 0)
		r = company_label(c, &ev->by, d, err);
	if (r >= 0 && d->array && d->array[0] && d->has_het_job_id)
		r = error_set(err, ESLURM_INVALID_ARRAY, "a heterogeneous job cannot be an array");
	if (r >= 0 && d->array && d->array[0] && !d->batch)
		r = error_set(err, ESLURM_INVALID_ARRAY, "only batch jobs can be arrays");
	return r;
}

static int check_possible(struct core *c, struct core_job *j, struct error *err)
{
	struct shape *s = j->shape;
	struct error why = { 0 };
	if (s->possible_gen != c->config_gen || s->possible < 0) {
		s->possible = shape_check_possible(c, s, &why);
		s->possible_gen = c->config_gen;
	}
	if (s->possible < 0)
		*err = why;
	return s->possible;
}

/* -I: does not wait; the job is not kept when it cannot start at once. */
static bool immediate_failed(struct core *c, const struct core_event *ev, struct core_job *j, struct error *err)
{
	const Pb__JobDesc *d = ev->submit.desc;
	if (!d->has_immediate_sec || j->state != PB__JOB_STATE__PENDING)
		return false;
	if (d->immediate_sec > 1 && !j->wait) {
		j->immediate_until_ms = c->now_ms + d->immediate_sec * 1000ull;
		timer_add(c, j->immediate_until_ms, TIMER_LIMIT, j->id, 0);
		return false;
	}
	int code = j->hold || j->wait == REASON_BEGIN_TIME || j->wait == REASON_DEPENDENCY ? ESLURM_DEPENDENCY
		   : j->wait ? ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE : ESLURM_NODES_BUSY;
	error_set(err, code, "--immediate: the job cannot start now (%s)", reason_name(j->wait ? j->wait : REASON_RESOURCES));
	return true;
}

static void promise_sum(const struct promise *p, struct bitset *nodes, uint32_t *cpus)
{
	for (uint32_t i = 0; p && i < p->n; i++) {
		bitset_set(nodes, p->on[i].node);
		*cpus += p->on[i].cpus;
	}
}

static void answer_test(struct core *c, const struct core_event *ev, struct core_job *j, struct error *err)
{
	Pb__SubmitRsp *r = rsp_new(c, err);
	struct arena *a = fx_arena(c);
	r->has_job_id = true;
	r->job_id = j->id;
	if (promise_make(c, j->shape, j, PLAN_ALONE) && j->promise) {
		struct bitset *b = bitset_create(c->node_n);
		uint32_t cpus = 0;
		promise_sum(j->promise, b, &cpus);
		for (uint32_t i = 1; j->het && i < j->het->n; i++)
			promise_sum(het_job(c, j->het, i)->promise, b, &cpus);
		char *t = nodes_text(c, b);
		r->has_est_start = r->has_est_cpus = true;
		r->est_start = j->promise->start_ms / 1000;
		r->est_cpus = cpus;
		r->est_nodes = arena_strdup(a, t);
		r->est_partition = c->part[j->promise->part]->rec->name;
		free(t);
		bitset_destroy(b);
	}
	fx_reply(c, ev->token, r);
}

/* Takes back a job that never was: nobody has seen it, nothing was stored. */
static void job_unmake(struct core *c, struct core_job *j)
{
	size_t n = effects_count(c->fx);
	job_forget(c, j);
	struct core_effect *e = (struct core_effect *)effects_at(c->fx, n);
	e->type = FX_LOG;
	e->level = LOG_L_DEBUG3;
	e->text = "a request was refused or only tried";
}

/* at: which component of a heterogeneous job. */
static int submit_make(struct core *c, const struct core_event *ev, Pb__JobDesc *d, uint32_t at, struct core_job **ret, struct error *err)
{
	struct core_job *j = job_new(c, job_take_id(c));
	if (d->has_het_job_id) {
		d->het_job_id = d->het_job_id ? d->het_job_id : j->id;
		het_enter(c, j, d->het_job_id, at);
	}
	job_from_desc(c, j, ev, d);
	job_set_desc(j, d);
	int r = resv_submit_check(c, j, d, err);
	if (r >= 0)
		r = job_reshape(c, j, d, err);
	if (r >= 0)
		r = license_check(c, &j->shape->lic, err);
	if (r >= 0)
		r = check_possible(c, j, err);
	if (r >= 0 && d->reservation && d->reservation[0])
		r = resv_possible(c, j, err);
	if (r >= 0)
		r = check_limits(c, j, err);
	if (r >= 0 && d->array && d->array[0])
		r = array_init(c, j, d->array, err);
	if (r >= 0)
		r = acct_submit_limits(c, j, err);
	if (r >= 0 && d->dependency && d->dependency[0])
		r = depend_set(c, j, d->dependency, err);
	while (r >= 0 && j->tasks && depend_by_task(j) && !ev->submit.test_only) { /* each task waits for its own counterpart */
		struct core_job *t = array_split(c, j);
		if (t == j)
			break;
		queue_update(c, t);
	}
	if (r >= 0 && j->task != UINT32_MAX && depend_by_task(j))
		depend_own_task(c, j);
	if (r < 0) {
		job_unmake(c, j);
		return r;
	}
	*ret = j;
	return 0;
}

static void submit_known(struct core *c, struct core_job *j)
{
	if (j->state == PB__JOB_STATE__PENDING)
		fx_job(c, FX_ACCOUNT_JOB, j);
	fx_persist(c, j);
}

/* The job with all components that are made so far. */
static void submit_unmake(struct core *c, struct core_job *j)
{
	for (uint32_t i = j->het ? j->het->n : 0; i-- > 1;)
		if (het_job(c, j->het, i))
			job_unmake(c, het_job(c, j->het, i));
	job_unmake(c, j);
}

/* All components or none. Ids that nobody has seen are given again. */
static int submit_all(struct core *c, const struct core_event *ev, struct core_job **ret, struct error *err)
{
	uint32_t next = c->next_id, lead_id = 0;
	struct core_job *lead = NULL, *j;
	int r = ev->submit.more_n < HET_MAX ? 0 : error_set(err, ESLURM_INVALID_NODE_COUNT, "a heterogeneous job has at most %d components", HET_MAX);
	for (uint32_t i = 0; r >= 0 && i <= ev->submit.more_n; i++) {
		Pb__JobDesc d = i ? *ev->submit.more[i - 1] : *ev->submit.desc;
		d.has_het_job_id = ev->submit.more_n > 0;
		d.het_job_id = lead_id;
		r = submit_check(c, ev, &d, err);
		if (r >= 0)
			r = submit_make(c, ev, &d, i, &j, err);
		if (r >= 0 && !i) {
			lead = j;
			lead_id = j->id;
		}
	}
	if (r < 0 && lead)
		submit_unmake(c, lead);
	if ((r < 0 && c->next_id > next) || ev->submit.test_only)
		c->next_id = next;
	*ret = lead;
	return r;
}

void submit(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	struct core_job *j = NULL;
	const struct idem *seen = ev->submit.test_only || !ev->submit.idem_key ? NULL : idem_seen(c, ev->by.uid, ev->submit.idem_key);
	if (seen) {
		if (!ev->submit.idem_hash || memcmp(seen->hash, ev->submit.idem_hash, 32))
			error_set(&err, ESLURM_IDEM_MISMATCH, "job %u was submitted with this key and other content", seen->job_id);
		Pb__SubmitRsp *r = rsp_new(c, &err);
		r->has_job_id = !err.code;
		r->job_id = seen->job_id;
		j = job_find(c, seen->job_id);
		if (!err.code && j && j->alloc && !j->batch)
			r->alloc = record_alloc_info(c, j, fx_arena(c));
		fx_reply(c, ev->token, r);
		return;
	}
	if (submit_all(c, ev, &j, &err) < 0) {
		fx_reply(c, ev->token, rsp_new(c, &err));
		return;
	}
	if (ev->submit.test_only) {
		answer_test(c, ev, j, &err);
		submit_unmake(c, j);
		return;
	}
	queue_update(c, j);
	if (!ev->more)
		sched_run(c, 64);
	if (immediate_failed(c, ev, j, &err)) {
		fx_reply(c, ev->token, rsp_new(c, &err));
		submit_unmake(c, j);
		return;
	}
	if (ev->submit.idem_key && ev->submit.idem_hash)
		idem_keep(c, j, ev->submit.idem_key, ev->submit.idem_hash, c->now_ms);
	c->submitted++;
	for (uint32_t i = 1; j->het && i < j->het->n; i++)
		submit_known(c, het_job(c, j->het, i));
	submit_known(c, j);
	answer_job(c, ev, j, &err);
}
