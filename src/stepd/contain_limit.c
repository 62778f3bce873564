/* contain_limit.c - CPUs and memory of a step (see contain_limit.h) */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "stepd/affinity.h"
#include "stepd/contain.h"
#include "stepd/contain_limit.h"
#include "stepd/io.h"
#include "stepd/step.h"
#include "stepd/task.h"

#define MB (1ull << 20)

/* --- shares --------------------------------------------------------------------------------------- */

static uint64_t less;          /* MB to which the job was limited while it ran; 0: it was not */

/* MB of the job here; 0: no limit was given. */
static uint64_t job_mem(const struct step *s)
{
	const Pb__NodeAlloc *part = step_job_part(s);
	uint64_t mem = part ? part->mem : s->here && s->here->has_job_mem ? s->here->job_mem : 0;
	return less && mem > less ? less : mem;
}

static uint64_t step_mem(const struct step *s)
{
	uint64_t job = job_mem(s), mine = s->here && !s->batch ? s->here->mem : job;
	return mine && mine < job ? mine : job ? job : mine;
}

static double percent(const struct step *s, const char *key, double fallback)
{
	const char *text = step_conf(s, key);
	return text ? strtod(text, NULL) : fallback;
}

static bool is_on(const struct step *s, const char *key) { return step_conf(s, key) != NULL; }

static bool task_cgroup(const struct step *s)
{
	const char *plugin = step_conf(s, "TaskPlugin");
	return plugin && strstr(plugin, "cgroup");
}

static bool has_controller(const struct step *s, const char *name)
{
	const char *list = step_conf(s, "CgroupControllers");
	return list && strstr(list, name);
}

/* --- memory ----------------------------------------------------------------------------------------- */

static uint64_t bounded(uint64_t bytes, uint64_t least, uint64_t most)
{
	bytes = most && bytes > most ? most : bytes;
	return bytes < least ? least : bytes;
}

static void number_write(const char *dir, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, value);
	int rc = contain_write(dir, name, text);
	log_flag(CGROUP, "%s/%s set to %s", dir, name, text);
	if (rc < 0)
		log_error("cannot set %s/%s to %s: %s", dir, name, text, strerror(-rc));
}

/* `mb` 0: memory is not managed, MaxRAMPercent is the limit. Returns the hard limit. */
static uint64_t memory_limit(struct step *s, const char *dir, uint64_t mb)
{
	uint64_t real = step_conf_num(s, "RealMemory", 0) * MB, least = step_conf_num(s, "MinRAMSpace", 30) * MB;
	uint64_t most = (uint64_t)((double)real * percent(s, "MaxRAMPercent", 100) / 100), asked = mb ? mb * MB : real;
	double allowed = is_on(s, "ConstrainRAMSpace") ? percent(s, "AllowedRAMSpace", 100) : 100;
	uint64_t hard = bounded((uint64_t)((double)asked * allowed / 100), least, most);
	if (!hard)
		return 0;
	number_write(dir, "memory.max", hard);
	if (bounded(asked, least, most) < hard)
		number_write(dir, "memory.high", bounded(asked, least, most));
	if (is_on(s, "ConstrainSwapSpace")) {
		uint64_t swap_most = (uint64_t)((double)real * percent(s, "MaxSwapPercent", 100) / 100);
		uint64_t swap = (uint64_t)((double)asked * percent(s, "AllowedSwapSpace", 0) / 100);
		number_write(dir, "memory.swap.max", real && hard + swap > swap_most ? (swap_most > hard ? swap_most - hard : 0) : swap);
	}
	return hard;
}

static void memory_set(struct step *s, const char *job)
{
	if (!has_controller(s, "memory") || (!is_on(s, "ConstrainRAMSpace") && !is_on(s, "ConstrainSwapSpace")))
		return;
	const Pb__JobDesc *d = s->cred->job->desc;
	const char *param = step_conf(s, "TaskPluginParam");
	(void)contain_write(job, "cgroup.subtree_control", "+memory");
	(void)memory_limit(s, job, job_mem(s));
	s->mem_limit = memory_limit(s, s->cgroup, step_mem(s));
	if ((d && d->has_oom_kill_step) ? d->oom_kill_step : param && strcasestr(param, "OOMKillStep"))
		(void)contain_write(s->cgroup, "memory.oom.group", "1");
	s->task_groups = contain_write(s->cgroup, "cgroup.subtree_control", "+memory") == 0;
}

void contain_mem_less(struct step *s, uint64_t mb)
{
	char *job = s->cgroup ? xstrdup(s->cgroup) : NULL;
	less = mb && (!less || mb < less) ? mb : less;
	if (job && s->mem_limit) {
		*strrchr(job, '/') = 0;
		(void)memory_limit(s, job, job_mem(s));
		s->mem_limit = memory_limit(s, s->cgroup, step_mem(s));
	}
	log_info("the job's memory is %" PRIu64 " MB from now on", job_mem(s));
	free(job);
}

/* --- CPUs ------------------------------------------------------------------------------------------------ */

static void cpus_write(const struct step *s, const char *dir, const char *ids)
{
	char *list = ids ? affinity_kernel_list(s, ids) : NULL;
	int rc = list && *list ? contain_write(dir, "cpuset.cpus", list) : 0;
	log_flag(CGROUP, "%s/cpuset.cpus set to %s", dir, list ? list : "what the job has");
	if (rc < 0)
		log_error("cannot keep %s to CPUs %s: %s", dir, list, strerror(-rc));
	free(list);
}

static void cpus_set(struct step *s, const char *job)
{
	const Pb__NodeAlloc *part = step_job_part(s);
	if (!has_controller(s, "cpuset") || !is_on(s, "ConstrainCores"))
		return;
	if (!affinity_is_real(s)) {
		log_info("ConstrainCores is left out: this node claims %u CPUs, the machine has fewer", s->start->cpus);
		return;
	}
	cpus_write(s, job, part ? part->cpu_ids : NULL);
	(void)contain_write(job, "cgroup.subtree_control", "+cpuset");
	cpus_write(s, s->cgroup, s->here && s->here->cpu_ids && !s->batch ? s->here->cpu_ids : part ? part->cpu_ids : NULL);
}

void contain_limit(struct step *s, const char *job)
{
	static const char *const more[] = { "io", "pids", "rdma", "hugetlb", "misc" };
	if (task_cgroup(s)) {
		cpus_set(s, job);
		memory_set(s, job);
	}
	for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
		char word[16];
		snprintf(word, sizeof word, "+%s", more[i]);
		if (has_controller(s, more[i]))
			(void)contain_write(job, "cgroup.subtree_control", word);
	}
}

/* --- what happened ------------------------------------------------------------------------------------------ */

static uint64_t event_count(const char *dir, const char *name)
{
	char *text = contain_read(dir, "memory.events"), *at = text ? strstr(text, name) : NULL;
	uint64_t n = at ? strtoull(at + strlen(name), NULL, 10) : 0;
	free(text);
	return n;
}

static void size_text(uint64_t bytes, char *buf, size_t size)
{
	if (bytes >= 1024 * MB)
		snprintf(buf, size, "%.2fG", (double)bytes / (1024 * MB));
	else
		snprintf(buf, size, "%.1fM", (double)bytes / MB);
}

/* One line for people; `peak` 0: unknown. */
static void oom_note(struct step *s, const char *who, uint64_t peak)
{
	char used[32] = "", limit[32];
	size_text(s->mem_limit, limit, sizeof limit);
	if (peak)
		size_text(peak, used, sizeof used);
	char *line = xasprintf("%s was killed for memory: %s%s%sthe limit of the %s on this node is %s", who, *used ? "it had used " : "", used, *used ? ", " : "",
			       s->batch ? "job" : "step", limit);
	io_text(s, line);
	if (!s->oom_text)
		s->oom_text = line;
	else
		free(line);
}

static void oom_say(struct step *s, uint64_t kills)
{
	char path[4096], who[64];
	char *line = xasprintf("Detected %" PRIu64 " oom_kill event%s in StepId=%s. Some of the step tasks have been OOM Killed.", kills, kills == 1 ? "" : "s", s->name);
	io_text(s, line);
	free(line);
	for (uint32_t i = 0; i < s->tasks; i++) {
		snprintf(path, sizeof path, "%s/task_%u", s->cgroup, s->task[i].local);
		if (!s->task_groups || !event_count(path, "oom_kill "))
			continue;
		char *peak = contain_read(path, "memory.peak");
		snprintf(who, sizeof who, s->batch ? "a process of the script" : "task %u", s->task[i].rank);
		oom_note(s, who, peak ? strtoull(peak, NULL, 10) : 0);
		free(peak);
	}
}

bool contain_oom(struct step *s)
{
	uint64_t kills = s->cgroup && s->mem_limit ? event_count(s->cgroup, "oom_kill ") : 0;
	if (!kills || s->oom)
		return s->oom;
	s->oom = true;
	oom_say(s, kills);
	return true;
}

/* --- watching without a controller ----------------------------------------------------------------------------- */

bool contain_watches(const struct step *s)
{
	const char *params = step_conf(s, "JobAcctGatherParams");
	return !(s->cgroup && s->mem_limit) && step_mem(s) && params && strcasestr(params, "OverMemoryKill");
}

void contain_watch(struct step *s, uint64_t sum, pid_t worst, uint64_t most)
{
	uint64_t limit = step_mem(s) * MB;
	if (sum <= limit || s->oom)
		return;
	s->mem_limit = limit;
	char who[64], *line = xasprintf("StepId=%s exceeded memory limit (%" PRIu64 " > %" PRIu64 " bytes), being killed", s->name, sum, limit);
	io_text(s, line);
	free(line);
	s->oom = true;
	snprintf(who, sizeof who, "process %d", (int)worst);
	for (uint32_t i = 0; i < s->tasks; i++)
		if (s->task[i].pid == worst && !s->batch)
			snprintf(who, sizeof who, "task %u", s->task[i].rank);
	oom_note(s, who, most);
	task_signal(s, SIGKILL);
}
