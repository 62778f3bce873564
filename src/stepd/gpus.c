/* gpus.c - GPUs of a task (see gpus.h)
 *
 * Bindings: per_task:N and single:K give slices, map_gpu: and mask_gpu: name places among the step's devices (VALUE*TIMES repeats one), closest gives
 * those that gres.conf puts near the task's CPUs (Cores; all where none is), none gives all. A place that is not there: the first device, and the
 * task's stderr says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/envlist.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "model/tres.h"
#include "stepd/affinity.h"
#include "stepd/contain_limit.h"
#include "stepd/gpus.h"
#include "stepd/step.h"

#define GPUS_MAX 1024
static const char *const visible[] = { "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK" };

/* Is that variable wanted? Flags of gres.conf name some; where they name none it is all of them. */
static bool is_wanted(const struct step *s, size_t variable)
{
	static const char *const flag[] = { "nvidia_gpu_env", "opencl_env", "amd_gpu_env", "intel_gpu_env" };
	bool named = false;
	for (size_t i = 0; i < s->start->n_gres; i++) {
		const char *flags = strcmp(s->start->gres[i]->name, "gpu") ? NULL : s->start->gres[i]->flags;
		if (flags && strcasestr(flags, flag[variable]))
			return true;
		named = named || (flags && (strcasestr(flags, "_gpu_env") || strcasestr(flags, "opencl_env")));   /* also no_gpu_env */
	}
	return !named;
}

/* Does the node have any? Only then are the variables ours: elsewhere they are the user's. */
static bool node_has_gpus(const struct step *s)
{
	for (size_t i = 0; i < s->start->n_gres; i++)
		if (!strcmp(s->start->gres[i]->name, "gpu"))
			return true;
	return false;
}

static void visible_set(const struct step *s, struct envlist *e, const char *text)
{
	for (size_t i = 0; i < sizeof visible / sizeof *visible; i++) {
		if (is_wanted(s, i))
			envlist_set(e, visible[i], text);
		else
			envlist_unset(e, visible[i]);
	}
}

/* Device indexes of all "gpu" entries in a list, and of the GPUs it has shards of, ascending. Returns how many; *ret_count counts devices without index too. */
static size_t devices(Pb__GresAlloc **list, size_t n, uint32_t *ret, uint64_t *ret_count)
{
	size_t found = 0;
	struct bitset *all = bitset_create(GPUS_MAX);
	*ret_count = 0;
	for (size_t i = 0; i < n; i++) {
		struct bitset *one;
		if (strcmp(list[i]->name, "gpu") && !list[i]->shares)
			continue;
		*ret_count += list[i]->shares ? 0 : list[i]->count;
		if (!list[i]->index || idset_parse(list[i]->index, GPUS_MAX, &one, NULL) < 0)
			continue;
		bitset_or(all, one);
		*ret_count += list[i]->shares ? bitset_count(one) : 0;
		bitset_destroy(one);
	}
	bitset_for(all, i)
		ret[found++] = i;
	bitset_destroy(all);
	return found;
}

static uint64_t shards(Pb__GresAlloc **list, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += list[i]->shares ? list[i]->count : 0;
	return sum;
}

static char *list_text(const uint32_t *dev, size_t n)
{
	struct str out = STR_INIT;
	for (size_t i = 0; i < n; i++)
		str_addf(&out, "%s%u", i ? "," : "", dev[i]);
	return str_take(&out);
}

/* "per_task:1", "verbose,single:2", "map_gpu:..." without the "gres/gpu:" before it; NULL: not bound. */
static const char *binding(const struct step *s, char *buf, size_t size)
{
	const Pb__StepDesc *d = s->cred->desc;
	const char *bind = s->spec->gpu_bind ? s->spec->gpu_bind : d ? d->tres_bind : NULL;
	const char *at = bind ? strstr(bind, "gres/gpu:") : NULL;
	if (bind)
		return at ? at + 9 : bind;
	uint64_t each = d && d->tres_per_task ? tres_get(d->tres_per_task, "gres/gpu") : 0;
	if (!each)
		return NULL;
	snprintf(buf, size, "per_task:%llu", (unsigned long long)each);
	return buf;
}

static const char *unspoken(const char *bind) { return bind + (str_starts(bind, "verbose,") ? 8 : 0); }

/* How often an item of a list counts: "2*3" three times. */
static unsigned long times(const char *item)
{
	const char *star = item + strcspn(item, "*,");
	unsigned long n = *star == '*' ? strtoul(star + 1, NULL, 10) : 1;
	return n ? n : 1;
}

static const char *next_item(const char *item) { return item[strcspn(item, ",")] ? item + strcspn(item, ",") + 1 : NULL; }

/* The value for the k-th task in a comma list, used again from the start. */
static unsigned long element(const char *list, unsigned long k, int base)
{
	unsigned long n = 0;
	for (const char *at = list; at; at = next_item(at))
		n += times(at);
	k %= n;
	for (; k >= times(list); list = next_item(list))
		k -= times(list);
	return strtoul(list, NULL, base);
}

static const Pb__NodeGres *gres_of_device(const struct step *s, uint32_t dev)
{
	for (size_t i = 0; i < s->start->n_gres; i++) {
		const Pb__NodeGres *g = s->start->gres[i];
		if (!strcmp(g->name, "gpu") && dev >= g->first_index && dev - g->first_index < g->count)
			return g;
	}
	return NULL;
}

static size_t closest(const struct step *s, const struct task *t, const uint32_t *dev, size_t n, uint32_t *ret)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		const Pb__NodeGres *g = gres_of_device(s, dev[i]);
		if (!g || !g->cores || !*g->cores || affinity_is_near(s, t, g->cores))
			ret[count++] = dev[i];
	}
	if (count)
		return count;
	memcpy(ret, dev, n * sizeof *dev);
	return n;
}

/* Which of the step's devices (n > 0) are a task's. *ret_bad: it names none that is there. */
static size_t narrow(const char *bind, const struct step *s, const struct task *t, const uint32_t *dev, size_t n, uint32_t *ret, bool *ret_bad)
{
	size_t count = 0, each;
	const char *arg = strchr(bind, ':');
	arg = arg ? arg + 1 : "";
	*ret_bad = false;
	if (str_starts(bind, "closest"))
		return closest(s, t, dev, n, ret);
	if (str_starts(bind, "per_task") || str_starts(bind, "single")) {
		bool share = str_starts(bind, "single");       /* K tasks share one device */
		each = strtoul(arg, NULL, 10);
		each = each ? each : 1;
		size_t first = (share ? t->local / each : t->local * each) % n;
		for (size_t i = 0; i < (share ? 1 : each) && i < n; i++)
			ret[count++] = dev[(first + i) % n];
		return count;
	}
	if (str_starts(bind, "map")) {
		unsigned long at = element(arg, t->local, 0);
		if (at < n)
			ret[count++] = dev[at];
	} else if (str_starts(bind, "mask")) {
		unsigned long mask = element(arg, t->local, 16);
		for (size_t i = 0; i < n && i < 64; i++)
			if (mask >> i & 1)
				ret[count++] = dev[i];
	} else {
		memcpy(ret, dev, n * sizeof *dev);
		return n;
	}
	*ret_bad = !count;
	if (!count)
		ret[count++] = dev[0];
	return count;
}

/* The job asked for GPUs. One that has them only because it has whole nodes does not give them to its steps. */
static bool job_asked(const struct step *s)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	const char *lists[] = { d ? d->tres_per_job : NULL, d ? d->tres_per_node : NULL, d ? d->tres_per_socket : NULL, d ? d->tres_per_task : NULL };
	for (size_t i = 0; d && i < sizeof lists / sizeof *lists; i++)
		if (lists[i] && (strstr(lists[i], "gpu") || strstr(lists[i], "shard")))
			return true;
	return !d;
}

static bool step_asked(const Pb__StepDesc *d)
{
	const char *lists[] = { d ? d->tres_per_step : NULL, d ? d->tres_per_node : NULL, d ? d->tres_per_socket : NULL, d ? d->tres_per_task : NULL };
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (lists[i] && (strstr(lists[i], "gpu") || strstr(lists[i], "shard")))
			return true;
	return false;
}

size_t gpus_devices(const struct step *s, Pb__GresAlloc ***ret)
{
	const Pb__NodeAlloc *part = step_job_part(s);
	if (s->here && !s->batch && (job_asked(s) || step_asked(s->cred->desc))) {
		*ret = s->here->gres;
		return s->here->n_gres;
	}
	*ret = part ? part->gres : NULL;
	return part ? part->n_gres : 0;
}

size_t gpus_minors(const struct step *s, uint32_t *ret, size_t max)
{
	Pb__GresAlloc **list;
	uint32_t dev[GPUS_MAX];
	uint64_t count;
	size_t n = gpus_devices(s, &list), found = 0;
	n = devices(list, n, dev, &count);
	for (size_t i = 0; i < n && found < max; i++) {
		const Pb__NodeGres *g = gres_of_device(s, dev[i]);
		struct hostlist files = HOSTLIST_INIT;
		size_t at = g ? dev[i] - g->first_index : 0;
		if (g && g->files && !hostlist_add(&files, g->files, NULL) && at < files.count && sscanf(files.name[at], "/dev/nvidia%u", &ret[found]) == 1)
			found++;
		hostlist_fini(&files);
	}
	return found;
}

/* Where devices are hidden from the step, programs number the ones they see from 0. */
static char *visible_text(const struct step *s, const uint32_t *dev, size_t n, const uint32_t *all, size_t n_all)
{
	struct str out = STR_INIT;
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;
		while (at < n_all && all[at] != dev[i])
			at++;
		str_addf(&out, "%s%zu", i ? "," : "", contain_hides_devices(s) ? at : (size_t)dev[i]);
	}
	return str_take(&out);
}

void gpus_batch(const struct step *s, struct envlist *e)
{
	const Pb__NodeAlloc *part = step_job_part(s);
	uint32_t dev[GPUS_MAX];
	uint64_t count;
	size_t n = part ? devices(part->gres, part->n_gres, dev, &count) : 0;
	char *text = n ? visible_text(s, dev, n, dev, n) : NULL;
	for (size_t i = 0; i < sizeof visible / sizeof *visible && !n && node_has_gpus(s); i++)
		envlist_unset(e, visible[i]);      /* of a job around sbatch */
	if (text)
		visible_set(s, e, text);
	free(text);
}

void gpus_env(const struct step *s, const struct task *t, struct envlist *e)
{
	uint32_t job[GPUS_MAX], step[GPUS_MAX], mine[GPUS_MAX];
	uint64_t job_count, step_count;
	char buf[32];
	(void)devices(s->here->job_gres, s->here->n_job_gres, job, &job_count);
	size_t n = devices(s->here->gres, s->here->n_gres, step, &step_count);
	bool theirs = job_count && !job_asked(s) && !step_asked(s->cred->desc);
	envlist_unset(e, "SLURM_STEP_GPUS");
	envlist_unset(e, "SLURM_GPUS_ON_NODE");
	envlist_unset(e, "SLURM_SHARDS_ON_NODE");
	for (size_t i = 0; i < sizeof visible / sizeof *visible && (job_count || step_count || node_has_gpus(s)); i++)
		envlist_unset(e, visible[i]);
	if (theirs)
		return;
	if (shards(s->here->gres, s->here->n_gres))
		envlist_setf(e, "SLURM_SHARDS_ON_NODE", "%llu", (unsigned long long)shards(s->here->gres, s->here->n_gres));
	if (step_count)
		envlist_setf(e, "SLURM_GPUS_ON_NODE", "%llu", (unsigned long long)step_count);
	if (!n)
		return;
	const char *bind = binding(s, buf, sizeof buf);
	bool bad;
	size_t k = bind ? narrow(unspoken(bind), s, t, step, n, mine, &bad) : n;
	char *text = list_text(bind ? mine : step, k);
	envlist_set(e, "SLURM_STEP_GPUS", text);
	char *seen = visible_text(s, bind ? mine : step, k, step, n);
	visible_set(s, e, seen);
	free(seen);
	if (bind) {
		envlist_setf(e, "SLURMD_TRES_BIND", "gres/gpu:%s", bind);
		envlist_setf(e, "SLURM_TRES_BIND", "gres/gpu:%s", bind);
	}
	free(text);
}

static unsigned long long mask_of(const uint32_t *dev, size_t n)
{
	unsigned long long mask = 0;
	for (size_t i = 0; i < n; i++)
		mask |= dev[i] < 64 ? 1ULL << dev[i] : 0;
	return mask;
}

void gpus_say(const struct step *s, const struct task *t)
{
	uint32_t step[GPUS_MAX], mine[GPUS_MAX];
	uint64_t count;
	char buf[32];
	bool bad;
	size_t n = s->spec && s->here ? devices(s->here->gres, s->here->n_gres, step, &count) : 0;
	const char *bind = n ? binding(s, buf, sizeof buf) : NULL;
	if (!bind)
		return;
	size_t k = narrow(unspoken(bind), s, t, step, n, mine, &bad);
	if (bad)
		dprintf(2, "slurmstepd: error: Bind request gres/gpu:%s does not specify any devices within the allocation for task %u. "
			"Binding to the first device in the allocation instead.\n", bind, t->rank);
	if (bind == unspoken(bind))
		return;
	char *global = list_text(mine, k), *local = visible_text(s, mine, k, step, n);
	dprintf(2, "gpu-bind: usable_gres=0x%llX; bit_alloc=0x%llX; local_inx=0; global_list=%s; local_list=%s\n", mask_of(mine, k), mask_of(step, n), global, local);
	free(global);
	free(local);
}
