/* gpus.c - GPUs of a task (see gpus.h)
 *
 * Bindings: per_task:N and single:K give slices, map: and mask: name places among the step's devices, none and closest give all of them
 * (closest would need the links of devices to cores; without them every device is equally close). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/envlist.h"
#include "model/idset.h"
#include "model/tres.h"
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

static void visible_set(const struct step *s, struct envlist *e, const char *text)
{
	for (size_t i = 0; i < sizeof visible / sizeof *visible; i++) {
		if (is_wanted(s, i))
			envlist_set(e, visible[i], text);
		else
			envlist_unset(e, visible[i]);
	}
}

/* Device indexes of all "gpu" entries in a list, ascending. Returns how many; *ret_count counts devices without index too. */
static size_t devices(Pb__GresAlloc **list, size_t n, uint32_t *ret, uint64_t *ret_count)
{
	size_t found = 0;
	struct bitset *all = bitset_create(GPUS_MAX);
	*ret_count = 0;
	for (size_t i = 0; i < n; i++) {
		struct bitset *one;
		if (strcmp(list[i]->name, "gpu"))
			continue;
		*ret_count += list[i]->count;
		if (!list[i]->index || idset_parse(list[i]->index, GPUS_MAX, &one, NULL) < 0)
			continue;
		bitset_or(all, one);
		bitset_destroy(one);
	}
	bitset_for(all, i)
		ret[found++] = i;
	bitset_destroy(all);
	return found;
}

static char *list_text(const uint32_t *dev, size_t n)
{
	struct str out = STR_INIT;
	for (size_t i = 0; i < n; i++)
		str_addf(&out, "%s%u", i ? "," : "", dev[i]);
	return str_take(&out);
}

/* "per_task:1", "single:2", "map:..." without the "gres/gpu:" before it; NULL: not bound. */
static const char *binding(const struct step *s, char *buf, size_t size)
{
	const Pb__StepDesc *d = s->cred->desc;
	const char *bind = s->spec->gpu_bind ? s->spec->gpu_bind : d ? d->tres_bind : NULL;
	const char *at = bind ? strstr(bind, "gres/gpu:") : NULL;
	if (at || bind) {
		bind = at ? at + 9 : bind;
		bind += str_starts(bind, "verbose,") ? 8 : 0;
		return bind;
	}
	uint64_t each = d && d->tres_per_task ? tres_get(d->tres_per_task, "gres/gpu") : 0;
	if (!each)
		return NULL;
	snprintf(buf, size, "per_task:%llu", (unsigned long long)each);
	return buf;
}

/* The k-th element of a comma list, used again from the start. */
static unsigned long element(const char *list, uint32_t k, int base)
{
	uint32_t n = 1;
	for (const char *at = list; *at; at++)
		n += *at == ',';
	for (k %= n; k; k--)
		list = strchr(list, ',') + 1;
	return strtoul(list, NULL, base);
}

static size_t narrow(const char *bind, const struct step *s, const struct task *t, const uint32_t *dev, size_t n, uint32_t *ret)
{
	size_t count = 0, first, each;
	const char *arg = strchr(bind, ':');
	arg = arg ? arg + 1 : "";
	if (str_starts(bind, "per_task") || str_starts(bind, "single")) {
		each = strtoul(arg, NULL, 10);
		each = each ? each : 1;
		if (str_starts(bind, "single"))       /* K tasks share one device */
			first = (t->local / each) % n, each = 1;
		else
			first = (t->local * each) % n;
		for (size_t i = 0; i < each && i < n; i++)
			ret[count++] = dev[(first + i) % n];
	} else if (str_starts(bind, "map")) {
		unsigned long at = element(arg, t->local, 0);
		if (at < n)
			ret[count++] = dev[at];
	} else if (str_starts(bind, "mask")) {
		unsigned long mask = element(arg, t->local, 0);
		for (size_t i = 0; i < n && i < 64; i++)
			if (mask >> i & 1)
				ret[count++] = dev[i];
	}
	(void)s;
	if (!count) {
		memcpy(ret, dev, n * sizeof *dev);
		count = n;
	}
	return count;
}

/* The job asked for GPUs. One that has them only because it has whole nodes does not give them to its steps. */
static bool job_asked(const struct step *s)
{
	const Pb__JobDesc *d = s->cred->job->desc;
	const char *lists[] = { d ? d->tres_per_job : NULL, d ? d->tres_per_node : NULL, d ? d->tres_per_socket : NULL, d ? d->tres_per_task : NULL };
	for (size_t i = 0; d && i < sizeof lists / sizeof *lists; i++)
		if (lists[i] && strstr(lists[i], "gpu"))
			return true;
	return !d;
}

static bool step_asked(const Pb__StepDesc *d)
{
	const char *lists[] = { d ? d->tres_per_step : NULL, d ? d->tres_per_node : NULL, d ? d->tres_per_socket : NULL, d ? d->tres_per_task : NULL };
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (lists[i] && strstr(lists[i], "gpu"))
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
	for (size_t i = 0; i < sizeof visible / sizeof *visible && (job_count || step_count); i++)
		envlist_unset(e, visible[i]);
	if (theirs)
		return;
	if (step_count)
		envlist_setf(e, "SLURM_GPUS_ON_NODE", "%llu", (unsigned long long)step_count);
	if (!n) {
		if (job_count)                         /* the job has devices, this step has none of them */
			envlist_set(e, visible[0], "");
		return;
	}
	const char *bind = binding(s, buf, sizeof buf);
	size_t k = bind ? narrow(bind, s, t, step, n, mine) : n;
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
