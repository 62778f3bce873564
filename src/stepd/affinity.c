/* affinity.c - binds a task to CPUs (see affinity.h)
 *
 * Only with TaskPlugin naming task/affinity or task/cgroup, and only on a node that really has the CPUs it is configured with: on a node that pretends,
 * ids mean nothing and binding would crowd all its tasks on the few real CPUs. Default: a task gets its own equal slice of the step's CPUs
 * when they divide evenly, otherwise all of them. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/log.h"
#include "base/str.h"
#include "model/idset.h"
#include "stepd/affinity.h"
#include "stepd/step.h"

#define CPUS_MAX CPU_SETSIZE

/* Kernel's number of abstract CPU `id`. */
static uint32_t cpu_of_kernel(const struct step *s, uint32_t id)
{
	const char *map = step_conf(s, "CpuMap");
	for (; map && *map && id; id--) {
		map = strchr(map, ',');
		map = map ? map + 1 : NULL;
	}
	return map && *map ? (uint32_t)strtoul(map, NULL, 10) : id;
}

static bool wants_binding(const struct step *s)
{
	const char *plugin = step_conf(s, "TaskPlugin");
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return plugin && (strstr(plugin, "affinity") || strstr(plugin, "cgroup")) && online > 0 && s->start->cpus <= (uint32_t)online;
}

/* Abstract ids the step may use here, in order. Returns how many. */
static uint32_t step_cpus(const struct step *s, uint32_t *ret)
{
	const char *text = s->here ? s->here->cpu_ids : NULL;
	struct bitset *set;
	uint32_t n = 0;
	if (!text || idset_parse(text, CPUS_MAX, &set, NULL) < 0)
		return 0;
	bitset_for(set, i)
		ret[n++] = i;
	bitset_destroy(set);
	return n;
}

/* The t-th entry of "map_cpu:0,4,2"; entries are used again from the start when there are more tasks. */
static const char *list_entry(const char *list, uint32_t t)
{
	uint32_t n = 1;
	for (const char *at = list; *at; at++)
		n += *at == ',';
	for (t %= n; t; t--)
		list = strchr(list, ',') + 1;
	return list;
}

static void mask_set(cpu_set_t *set, const char *hex)
{
	char digits[CPUS_MAX / 4 + 1];
	hex += !strncmp(hex, "0x", 2) ? 2 : 0;
	size_t len = strcspn(hex, ",");
	if (len >= sizeof digits)
		return;
	memcpy(digits, hex, len);
	for (size_t i = 0; i < len; i++) {
		char one[2] = { digits[len - 1 - i], 0 };
		unsigned long nibble = strtoul(one, NULL, 16);
		for (size_t b = 0; b < 4; b++)
			if (nibble >> b & 1)
				CPU_SET(i * 4 + b, set);
	}
}

static void slice_set(const struct step *s, const struct task *t, const uint32_t *cpu, uint32_t n, cpu_set_t *set)
{
	uint32_t first = 0, count = n;
	if (!s->batch && s->tasks && n % s->tasks == 0) {
		count = n / s->tasks;
		first = t->local * count;
	}
	for (uint32_t i = first; i < first + count; i++)
		CPU_SET(cpu_of_kernel(s, cpu[i]), set);
}

static void choose(const struct step *s, const struct task *t, cpu_set_t *set)
{
	static uint32_t cpu[CPUS_MAX];
	uint32_t n = step_cpus(s, cpu);
	const char *bind = s->spec ? s->spec->cpu_bind : NULL, *at;
	if (bind && (at = strstr(bind, "map_cpu:"))) {
		CPU_SET(strtoul(list_entry(at + 8, t->local), NULL, 0), set);
	} else if (bind && (at = strstr(bind, "mask_cpu:"))) {
		mask_set(set, list_entry(at + 9, t->local));
	} else if (bind && strstr(bind, "rank") && n) {
		CPU_SET(cpu_of_kernel(s, cpu[t->local % n]), set);
	} else if (bind && (strstr(bind, "none") || strstr(bind, "no"))) {
		for (uint32_t i = 0; i < n; i++)
			CPU_SET(cpu_of_kernel(s, cpu[i]), set);
	} else {
		slice_set(s, t, cpu, n, set);
	}
}

void affinity_apply(const struct step *s, const struct task *t)
{
	cpu_set_t set, have;
	if (!wants_binding(s))
		return;
	CPU_ZERO(&set);
	choose(s, t, &set);
	if (sched_getaffinity(0, sizeof have, &have) < 0)
		return;
	CPU_AND(&set, &set, &have);
	if (CPU_COUNT(&set) && sched_setaffinity(0, sizeof set, &set) < 0)
		log_error("cannot bind task %u to its CPUs", t->rank);
}

void affinity_say(const struct step *s, const struct task *t)
{
	const char *bind = s->spec ? s->spec->cpu_bind : NULL;
	cpu_set_t set;
	char hex[CPUS_MAX / 4 + 1], *at = hex;
	int top = CPUS_MAX - 4;
	if (!bind || !(str_starts(bind, "verbose") || str_starts(bind, "v,")) || sched_getaffinity(0, sizeof set, &set) < 0)
		return;
	const char *kind = strstr(bind, "none") ? "NONE" : strstr(bind, "map_cpu") ? "MAP" : strstr(bind, "rank") ? "RANK" : "MASK";
	for (; top >= 0; top -= 4) {
		unsigned nibble = 0;
		for (int b = 0; b < 4; b++)
			nibble |= CPU_ISSET(top + b, &set) ? 1u << b : 0;
		if (nibble || at != hex)
			*at++ = "0123456789abcdef"[nibble];
	}
	*at = 0;
	dprintf(2, "cpu-bind=%s - %s, task %2u %2u [%d]: mask 0x%s set\n", kind, s->node, t->rank, t->local, (int)getpid(), hex);
}
