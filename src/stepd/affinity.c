/* affinity.c - binds tasks to CPUs (see affinity.h)
 *
 * Automatic binding: each task gets its CPUs of the step's in turn (the second level of --distribution says in which order: block fills a socket before
 * the next, cyclic goes round the sockets task by task, fcyclic CPU by CPU), widened to the cores, sockets or memory nodes they lie in where
 * --cpu-bind or TaskPluginParam says so. Without either it happens only when threads, cores or sockets are as many as the tasks need. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/log.h"
#include "base/str.h"
#include "model/bind.h"
#include "model/envlist.h"
#include "model/idset.h"
#include "stepd/affinity.h"
#include "stepd/step.h"

#define CPUS_MAX CPU_SETSIZE
#define BIND_EXIT 192          /* of srun, as of the reference's */
#define HEX_MAX (CPUS_MAX / 4 + 1)

static struct {
	struct bind bind;
	cpu_set_t allowed;      /* the step's, as the kernel numbers them */
	cpu_set_t *task;        /* by local id; NULL: not bound */
	bool automatic;
} plan;

struct cpu { uint32_t id, core, socket; bool taken; };
struct cpus { struct cpu *cpu; uint32_t n; };

/* --- numbers ------------------------------------------------------------------------------------------ */

static uint32_t cpu_of_kernel(const struct step *s, uint32_t id)
{
	const char *map = step_conf(s, "CpuMap");
	for (; map && *map && id; id--) {
		map = strchr(map, ',');
		map = map ? map + 1 : NULL;
	}
	return map && *map ? (uint32_t)strtoul(map, NULL, 10) : id;
}

bool affinity_is_real(const struct step *s)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 && s->start->cpus <= (uint32_t)online;
}

char *affinity_kernel_list(const struct step *s, const char *ids)
{
	struct bitset *set, *mapped = bitset_create(CPUS_MAX);
	if (idset_parse(ids, CPUS_MAX, &set, NULL) == 0) {
		bitset_for(set, i)
			if (cpu_of_kernel(s, i) < CPUS_MAX)
				bitset_set(mapped, cpu_of_kernel(s, i));
		bitset_destroy(set);
	}
	char *text = idset_format(mapped);
	bitset_destroy(mapped);
	return text;
}

/* Abstract ids the step (a batch script: the job) has here. NULL: not told. */
static const char *cpu_ids(const struct step *s)
{
	if (s->here && !s->batch)
		return s->here->cpu_ids;
	const Pb__NodeAlloc *part = step_job_part(s);
	return part ? part->cpu_ids : NULL;
}

static void mask_text(const cpu_set_t *set, char *buf)
{
	char *at = buf;
	for (int top = CPUS_MAX - 4; top >= 0; top -= 4) {
		unsigned nibble = 0;
		for (int b = 0; b < 4; b++)
			nibble |= CPU_ISSET(top + b, set) ? 1u << b : 0;
		if (nibble || at != buf || !top)
			*at++ = "0123456789abcdef"[nibble];
	}
	*at = 0;
}

static bool mask_parse(const char *hex, cpu_set_t *set)
{
	size_t len = strlen(hex);
	if (len >= HEX_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned long nibble = strtoul((char[]){ hex[len - 1 - i], 0 }, NULL, 16);
		for (size_t b = 0; b < 4; b++)
			if (nibble >> b & 1)
				CPU_SET(i * 4 + b, set);
	}
	return true;
}

/* CPUs of a memory node. false: there is none of this number. */
static bool ldom_cpus(uint32_t node, cpu_set_t *set)
{
	char path[80], text[4096] = "";
	struct bitset *cpus;
	snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(text, sizeof text, f);
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = 0;
	if (!ok || idset_parse(text, CPUS_MAX, &cpus, NULL) < 0)
		return false;
	bitset_for(cpus, i)
		CPU_SET(i, set);
	bitset_destroy(cpus);
	return true;
}

static uint32_t ldom_count(void)
{
	cpu_set_t none;
	uint32_t n = 0;
	CPU_ZERO(&none);
	while (n < 256 && ldom_cpus(n, &none))
		n++;
	return n;
}

/* --- the step's CPUs in the order in which tasks take them ------------------------------------------------ */

static uint32_t threads_wanted(const struct step *s)
{
	const Pb__StepDesc *d = s->cred->desc;
	const Pb__JobDesc *j = s->cred->job->desc;
	const char *hint = s->spec && s->spec->hint ? s->spec->hint : j ? j->hint : NULL;
	if (plan.bind.one_thread)
		return 1;
	if (d && d->has_threads_per_core)
		return d->threads_per_core;
	if (hint && (strstr(hint, "nomultithread") || strstr(hint, "bound")))
		return 1;
	return j && j->has_threads_per_core ? j->threads_per_core : UINT32_MAX;
}

/* Of each core at most as many threads as were asked for. */
static struct cpus cpus_list(const struct step *s)
{
	uint32_t threads = s->start->threads ? s->start->threads : 1, cores = s->start->cores ? s->start->cores : 1, wanted = threads_wanted(s), in_core = 0;
	struct cpus list = { 0 };
	struct bitset *set;
	const char *ids = cpu_ids(s);
	if (!ids || idset_parse(ids, CPUS_MAX, &set, NULL) < 0)
		return list;
	list.cpu = xcalloc(bitset_count(set) + 1, sizeof *list.cpu);
	bitset_for(set, i) {
		uint32_t core = i / threads;
		in_core = list.n && list.cpu[list.n - 1].core == core ? in_core + 1 : 1;
		if (in_core <= wanted)
			list.cpu[list.n++] = (struct cpu){ .id = i, .core = core, .socket = core / cores };
	}
	bitset_destroy(set);
	return list;
}

static uint32_t count_distinct(const struct cpus *l, bool sockets)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->n; i++)
		n += !i || (sockets ? l->cpu[i].socket != l->cpu[i - 1].socket : l->cpu[i].core != l->cpu[i - 1].core);
	return n;
}

/* Second level of "block:cyclic:..."; cyclic where nothing is said. */
static const char *second_level(const struct step *s)
{
	const Pb__JobDesc *j = s->cred->job->desc;
	const char *text = s->cred->desc && s->cred->desc->distribution ? s->cred->desc->distribution : j ? j->distribution : NULL;
	const char *at = text ? strchr(text, ':') : NULL;
	return at && at[1] != '*' ? at + 1 : "cyclic";
}

/* The next free CPU on a socket at or after *socket, going round; *socket is where it was found. */
static struct cpu *next_free(struct cpus *l, uint32_t sockets, uint32_t *socket)
{
	for (uint32_t k = 0; k < sockets; k++) {
		uint32_t at = (*socket + k) % sockets;
		for (uint32_t i = 0; i < l->n; i++)
			if (!l->cpu[i].taken && l->cpu[i].socket == at) {
				*socket = at;
				return &l->cpu[i];
			}
	}
	return NULL;
}

static void take(const struct step *s, struct cpus *l, uint32_t count, uint32_t *socket, bool each, cpu_set_t *ret)
{
	uint32_t sockets = 1;
	for (uint32_t i = 0; i < l->n; i++)
		sockets = l->cpu[i].socket >= sockets ? l->cpu[i].socket + 1 : sockets;
	for (uint32_t k = 0; k < count; k++) {
		struct cpu *c = next_free(l, sockets, socket);
		if (!c) {                              /* more tasks than CPUs: begin again */
			for (uint32_t i = 0; i < l->n; i++)
				l->cpu[i].taken = false;
			c = next_free(l, sockets, socket);
		}
		if (!c)
			return;
		c->taken = true;
		CPU_SET(cpu_of_kernel(s, c->id), ret);
		*socket += each ? 1 : 0;
	}
}

/* All CPUs of the step in whose core (or socket) the set has one. */
static void widen(const struct step *s, const struct cpus *l, bool sockets, cpu_set_t *set)
{
	cpu_set_t out = *set;
	for (uint32_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; CPU_ISSET(cpu_of_kernel(s, l->cpu[i].id), set) && k < l->n; k++)
			if (sockets ? l->cpu[k].socket == l->cpu[i].socket : l->cpu[k].core == l->cpu[i].core)
				CPU_SET(cpu_of_kernel(s, l->cpu[k].id), &out);
	*set = out;
}

static void widen_ldoms(cpu_set_t *set)
{
	cpu_set_t out = *set;
	for (uint32_t n = ldom_count(); n--;) {
		cpu_set_t node, common;
		CPU_ZERO(&node);
		(void)ldom_cpus(n, &node);
		CPU_AND(&common, &node, set);
		if (CPU_COUNT(&common))
			CPU_OR(&out, &out, &node);
	}
	CPU_AND(set, &out, &plan.allowed);
}

/* What the tasks need is exactly what one kind of thing has: that one. */
static enum bind_kind kind_by_count(const struct step *s, const struct cpus *l)
{
	const char *param = step_conf(s, "TaskPluginParam");
	uint32_t each = s->cred->desc && s->cred->desc->has_cpus_per_task ? s->cred->desc->cpus_per_task : 1;
	uint64_t need = (uint64_t)s->tasks * each;
	if (param && strcasestr(param, "None"))
		return BIND_NONE;
	if (param && (strcasestr(param, "Cores") || strcasestr(param, "Sockets") || strcasestr(param, "Threads")))
		return strcasestr(param, "Cores") ? BIND_CORES : strcasestr(param, "Sockets") ? BIND_SOCKETS : BIND_THREADS;
	if (need == l->n)
		return BIND_THREADS;
	if (need == count_distinct(l, false))
		return BIND_CORES;
	return need == count_distinct(l, true) ? BIND_SOCKETS : BIND_NONE;
}

static void plan_automatic(struct step *s, enum bind_kind kind)
{
	struct cpus l = cpus_list(s);
	kind = kind == BIND_UNSET ? kind_by_count(s, &l) : kind;
	if (kind == BIND_NONE || !l.n || !s->tasks) {
		free(l.cpu);
		return;
	}
	const char *how = second_level(s);
	bool block = !strncasecmp(how, "block", 5), each_cpu = !strncasecmp(how, "fcyclic", 7);
	uint32_t per = s->cred->desc && s->cred->desc->has_cpus_per_task ? s->cred->desc->cpus_per_task : 1, socket = 0;
	uint32_t units = kind == BIND_CORES ? count_distinct(&l, false) : kind == BIND_SOCKETS ? count_distinct(&l, true) : l.n;
	/* Cores or sockets are enough for all: a task takes a whole one, not a thread of it. */
	if (kind != BIND_THREADS && kind != BIND_LDOMS && (uint64_t)s->tasks * per <= units)
		per *= l.n / units;
	plan.task = xcalloc(s->tasks, sizeof *plan.task);
	for (uint32_t i = 0; i < s->tasks; i++) {
		CPU_ZERO(&plan.task[i]);
		take(s, &l, per, &socket, each_cpu, &plan.task[i]);
		socket += block || each_cpu ? 0 : 1;
		if (kind == BIND_CORES || kind == BIND_SOCKETS)
			widen(s, &l, kind == BIND_SOCKETS, &plan.task[i]);
		else if (kind == BIND_LDOMS)
			widen_ldoms(&plan.task[i]);
	}
	plan.automatic = true;
	free(l.cpu);
}

/* --- by number ---------------------------------------------------------------------------------------------- */

/* One task's CPUs from a list, a mask or a memory node. */
static void by_number(const struct step *s, uint32_t local, cpu_set_t *set)
{
	const char *item = bind_item(&plan.bind, local);
	uint32_t nodes = ldom_count();
	(void)s;
	switch (plan.bind.kind) {
	case BIND_MAP:
		if (strtoul(item, NULL, 10) < CPUS_MAX)
			CPU_SET(strtoul(item, NULL, 10), set);
		break;
	case BIND_MASK:
		(void)mask_parse(item, set);
		break;
	case BIND_RANK_LDOM:
		(void)ldom_cpus(nodes ? local % nodes : 0, set);
		break;
	case BIND_MAP_LDOM:
		(void)ldom_cpus((uint32_t)strtoul(item, NULL, 10), set);
		break;
	case BIND_MASK_LDOM:
		for (unsigned long mask = strtoul(item, NULL, 16), n = 0; n < 64 && n < nodes; n++)
			if (mask >> n & 1)
				(void)ldom_cpus((uint32_t)n, set);
		break;
	default:
		break;
	}
}

static int plan_numbers(struct step *s)
{
	bool hard = plan.bind.kind == BIND_MAP || plan.bind.kind == BIND_MASK;
	plan.task = xcalloc(s->tasks + 1, sizeof *plan.task);
	for (uint32_t i = 0; i < s->tasks; i++) {
		cpu_set_t outside;
		CPU_ZERO(&plan.task[i]);
		by_number(s, i, &plan.task[i]);
		CPU_AND(&outside, &plan.task[i], &plan.allowed);
		if (hard && (!CPU_COUNT(&plan.task[i]) || !CPU_EQUAL(&outside, &plan.task[i]))) {
			char hex[HEX_MAX];
			mask_text(&plan.allowed, hex);
			s->launch_detail = xasprintf("CPU binding outside of job step allocation, allocated CPUs are: 0x%s.", hex);
			s->launch_exit = BIND_EXIT;
			log_error("%s", s->launch_detail);
			return step_fail(s, EINVAL, "Unable to satisfy cpu bind request");
		}
	}
	return 0;
}

/* --- the whole ------------------------------------------------------------------------------------------------- */

int affinity_prepare(struct step *s)
{
	const char *plugin = step_conf(s, "TaskPlugin"), *text = s->spec ? s->spec->cpu_bind : NULL, *param = step_conf(s, "TaskPluginParam");
	char *list = cpu_ids(s) ? affinity_kernel_list(s, cpu_ids(s)) : NULL;
	struct bitset *mine;
	if (bind_parse(text, false, &plan.bind) < 0)
		return step_fail(s, EINVAL, "malformed --cpu-bind=%s", text);
	plan.bind.verbose |= param && strcasestr(param, "Verbose");
	CPU_ZERO(&plan.allowed);
	if (list && idset_parse(list, CPUS_MAX, &mine, NULL) == 0) {
		bitset_for(mine, i)
			CPU_SET(i, &plan.allowed);
		bitset_destroy(mine);
	}
	free(list);
	if (!plugin || !strstr(plugin, "affinity") || !CPU_COUNT(&plan.allowed) || s->batch || plan.bind.kind == BIND_NONE)
		return 0;
	if (plan.bind.n || plan.bind.kind == BIND_RANK_LDOM)
		return plan_numbers(s);
	if (affinity_is_real(s))
		plan_automatic(s, plan.bind.kind);
	return 0;
}

void affinity_env(const struct step *s, struct envlist *e)
{
	struct str list = STR_INIT;
	char hex[HEX_MAX];
	if (!plan.automatic)
		return;
	for (uint32_t i = 0; i < s->tasks; i++) {
		mask_text(&plan.task[i], hex);
		str_addf(&list, "%s0x%s", i ? "," : "", hex);
	}
	const char *loud = plan.bind.verbose ? "verbose" : "quiet";
	envlist_setf(e, "SLURM_CPU_BIND", "%s,mask_cpu:%s", loud, list.data);
	envlist_set(e, "SLURM_CPU_BIND_VERBOSE", loud);
	envlist_set(e, "SLURM_CPU_BIND_TYPE", "mask_cpu:");
	envlist_set(e, "SLURM_CPU_BIND_LIST", list.data);
	str_fini(&list);
}

void affinity_apply(struct step *s, const struct task *t)
{
	const char *plugin = step_conf(s, "TaskPlugin");
	cpu_set_t set = plan.task ? plan.task[t->local] : plan.allowed, have;
	if (!plugin || !strstr(plugin, "affinity") || (!plan.task && !affinity_is_real(s)) || sched_getaffinity(0, sizeof have, &have) < 0)
		return;
	CPU_AND(&set, &set, &have);
	if (log_flagged(LOG_F_CPU_BIND)) {
		struct str list = STR_INIT;
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET((size_t)i, &set))
				str_addf(&list, "%s%d", list.len ? "," : "", i);
		log_flag(CPU_BIND, "task %u on CPUs %s", t->rank, list.data ? list.data : "none");
		str_fini(&list);
	}
	if (CPU_COUNT(&set) && sched_setaffinity(0, sizeof set, &set) < 0)
		log_error("cannot bind task %u to its CPUs", t->rank);
}

void affinity_say(const struct step *s, const struct task *t)
{
	static const char *const names[] = { [BIND_MAP] = "MAP ", [BIND_MASK] = "MASK", [BIND_RANK_LDOM] = "LDRANK", [BIND_MAP_LDOM] = "LDMAP ", [BIND_MASK_LDOM] = "LDMASK" };
	const char *plugin = step_conf(s, "TaskPlugin");
	cpu_set_t set;
	char hex[HEX_MAX];
	if (plan.bind.verbose && plugin && strstr(plugin, "affinity") && s->spec && sched_getaffinity(0, sizeof set, &set) == 0) {
		enum bind_kind kind = plan.automatic ? BIND_MASK : plan.bind.kind;
		const char *name = kind < sizeof names / sizeof *names && names[kind] && plan.task ? names[kind] : "NONE";
		mask_text(&set, hex);
		dprintf(2, "cpu-bind=%s - %s, task %2u %2u [%d]: mask 0x%s%s\n", name, s->node, t->rank, t->local, (int)getpid(), hex,
			plan.task ? " set" : "");
	}
	affinity_mem_say(s, t);
}

bool affinity_is_near(const struct step *s, const struct task *t, const char *cores)
{
	const cpu_set_t *mine = plan.task ? &plan.task[t->local] : &plan.allowed;
	uint32_t threads = s->start->threads ? s->start->threads : 1;
	struct bitset *set;
	bool near = false;
	if (idset_parse(cores, CPUS_MAX / threads, &set, NULL) < 0)
		return false;
	bitset_for(set, core)
		for (uint32_t i = 0; i < threads; i++) {
			uint32_t cpu = cpu_of_kernel(s, core * threads + i);
			near = near || (cpu < CPUS_MAX && CPU_ISSET(cpu, mine));
		}
	bitset_destroy(set);
	return near;
}
