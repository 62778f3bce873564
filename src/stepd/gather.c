/* gather.c - samples of what tasks use (see gather.h)
 * Invariant: what a task has used never shrinks; memory is its peak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "stepd/contain.h"
#include "stepd/contain_limit.h"
#include "stepd/figures.h"
#include "stepd/gather.h"
#include "stepd/step.h"

#define DEFAULT_SEC 30
#define FIRST_MS 1000          /* a look early on, for steps that are short */
#define DEPTH 1000             /* of a process tree */

struct proc {
	pid_t pid, parent;
	int task;                  /* place in step.task; -1: not known yet */
	uint64_t user_usec, sys_usec, used[USAGE_KINDS];
};

static bool is_on(const struct step *s) { return step_conf(s, "JobAcctGatherType") && strcmp(step_conf(s, "JobAcctGatherType"), "jobacct_gather/none"); }
static bool by_cgroup(const struct step *s) { return s->task_groups && str_eq(step_conf(s, "JobAcctGatherType"), "jobacct_gather/cgroup"); }

static bool has_param(const struct step *s, const char *word)
{
	const char *params = step_conf(s, "JobAcctGatherParams");
	return params && strcasestr(params, word);
}

static void raise_to(uint64_t *at, uint64_t value) { *at = value > *at ? value : *at; }

static uint64_t usec(const struct timeval *t) { return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec; }

/* The number behind a word of a file of the kernel; 0: it is not there. */
static uint64_t number_after(const char *text, const char *word)
{
	const char *at = text ? strstr(text, word) : NULL;
	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* --- one process ---------------------------------------------------------------------------------- */

static void proc_io(const char *dir, uint64_t *used)
{
	char *text = contain_read(dir, "io");
	used[USAGE_READ] = number_after(text, "rchar:");
	used[USAGE_WRITTEN] = number_after(text, "wchar:");
	free(text);
}

/* Resident memory without what is shared, or with its share of that: NoShared, UsePss. */
static uint64_t proc_rss(const struct step *s, const char *dir, uint64_t pages)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long resident, shared;
	if (has_param(s, "UsePss")) {
		char *text = contain_read(dir, "smaps_rollup");
		uint64_t pss = number_after(text, "\nPss:") * 1024;
		free(text);
		return pss;
	}
	if (has_param(s, "NoShared")) {
		char *text = contain_read(dir, "statm");
		if (text && sscanf(text, "%*u %llu %llu", &resident, &shared) == 2)
			pages = resident > shared ? resident - shared : 0;
		free(text);
	}
	return pages * page;
}

static bool proc_read(const struct step *s, pid_t pid, struct proc *ret)
{
	char dir[32];
	unsigned long long fault, fault_below, user, sys, user_below, sys_below, vsize, pages;
	uint64_t tick = 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	int parent;
	snprintf(dir, sizeof dir, "/proc/%d", (int)pid);
	char *text = contain_read(dir, "stat"), *at = text ? strrchr(text, ')') : NULL;     /* behind the name, which may hold anything */
	bool ok = at && sscanf(at + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %llu %llu %llu %llu %llu %llu %*d %*d %*d %*d %*u %llu %llu", &parent, &fault, &fault_below,
			       &user, &sys, &user_below, &sys_below, &vsize, &pages) == 9;
	free(text);
	if (!ok)
		return false;
	*ret = (struct proc){ .pid = pid, .parent = parent, .task = -1, .user_usec = (user + user_below) * tick, .sys_usec = (sys + sys_below) * tick };
	ret->used[USAGE_CPU] = ret->user_usec + ret->sys_usec;
	ret->used[USAGE_RSS] = proc_rss(s, dir, pages);
	ret->used[USAGE_VSIZE] = vsize;
	ret->used[USAGE_PAGES] = fault + fault_below;
	proc_io(dir, ret->used);
	figures_of(pid, &ret->used[USAGE_GPU_UTIL], &ret->used[USAGE_GPU_MEM]);
	return true;
}

/* --- whose it is ------------------------------------------------------------------------------------- */

static int proc_compare(const void *a, const void *b) { return ((const struct proc *)a)->pid - ((const struct proc *)b)->pid; }

static struct proc *proc_find(struct proc *list, size_t n, pid_t pid)
{
	const struct proc key = { .pid = pid };
	return n ? bsearch(&key, list, n, sizeof key, proc_compare) : NULL;
}

/* Every process of the step that is alive, by pid; where each belongs is told by its ancestors, else by the sample before, else it counts for the first task. */
static struct proc *procs_read(struct step *s, size_t *ret_n)
{
	static struct proc *before;
	static size_t before_n;
	size_t n, k = 0;
	pid_t *pid = contain_pids(s, &n);
	struct proc *list = xcalloc(n + 1, sizeof *list), *p;
	for (size_t i = 0; i < n; i++)
		k += proc_read(s, pid[i], &list[k]);
	free(pid);
	qsort(list, k, sizeof *list, proc_compare);
	for (uint32_t i = 0; i < s->tasks; i++)
		if (!s->task[i].ended && (p = proc_find(list, k, s->task[i].pid)))
			p->task = (int)i;
	for (size_t i = 0; i < k; i++) {
		p = &list[i];
		for (int depth = 0; p && p->task < 0 && depth < DEPTH; depth++)
			p = proc_find(list, k, p->parent);
		if ((!p || p->task < 0) && !(p = proc_find(before, before_n, list[i].pid)))
			list[i].task = 0;
		else
			list[i].task = p->task;
	}
	free(before);
	before = list;
	before_n = *ret_n = k;
	return list;
}

/* --- samples ------------------------------------------------------------------------------------------- */

/* What the kernel counts of the task's own cgroup takes the place of the sums over processes. */
static void cgroup_read(const struct step *s, const struct task *t, struct proc *ret)
{
	char dir[4096];
	snprintf(dir, sizeof dir, "%s/task_%u", s->cgroup, t->local);
	char *cpu = contain_read(dir, "cpu.stat"), *stat = contain_read(dir, "memory.stat"), *now = contain_read(dir, "memory.current"), *peak = contain_read(dir, "memory.peak");
	uint64_t cache = number_after(stat, "active_file ") + number_after(stat, "inactive_file "), used = now ? strtoull(now, NULL, 10) : 0;
	ret->user_usec = number_after(cpu, "user_usec ");
	ret->sys_usec = number_after(cpu, "system_usec ");
	ret->used[USAGE_CPU] = ret->user_usec + ret->sys_usec;
	if (has_param(s, "no_file_cache"))
		ret->used[USAGE_RSS] = used > cache ? used - cache : 0;
	else
		ret->used[USAGE_RSS] = peak ? strtoull(peak, NULL, 10) : used;
	ret->used[USAGE_VSIZE] = 0;
	ret->used[USAGE_PAGES] = number_after(stat, "pgmajfault ");
	free(cpu), free(stat), free(now), free(peak);
}

static void task_take(struct task *t, const struct proc *sum)
{
	raise_to(&t->user_usec, sum->user_usec);
	raise_to(&t->sys_usec, sum->sys_usec);
	for (size_t k = 0; k < USAGE_KINDS; k++)
		raise_to(&t->used[k], sum->used[k]);
}

static void sample(struct step *s)
{
	size_t n;
	figures_read(s);
	struct proc *list = procs_read(s, &n), *sum = xcalloc(s->tasks + 1, sizeof *sum);
	uint64_t all = 0, most = 0;
	pid_t worst = 0;
	for (size_t i = 0; i < n && s->tasks; i++) {
		struct proc *to = &sum[list[i].task];
		uint64_t rss = list[i].used[USAGE_RSS];
		to->user_usec += list[i].user_usec;
		to->sys_usec += list[i].sys_usec;
		for (size_t k = 0; k < USAGE_KINDS; k++)
			to->used[k] += list[i].used[k];
		all += rss;
		if (rss > most)
			most = rss, worst = list[i].pid;
	}
	for (uint32_t i = 0; i < s->tasks; i++) {
		if (by_cgroup(s) && !s->task[i].ended)
			cgroup_read(s, &s->task[i], &sum[i]);
		task_take(&s->task[i], &sum[i]);
		if (figures_has_gpus() && !s->task[i].ended) {
			s->task[i].gpu_util_sum += sum[i].used[USAGE_GPU_UTIL];
			s->task[i].gpu_looks++;
		}
	}
	free(sum);
	if (contain_watches(s))
		contain_watch(s, all, worst, most);
}

static void on_due(uv_timer_t *timer) { sample(timer->data); }

/* The job's own wish, where memory need not be watched more often than that. */
static uint32_t interval(const struct step *s)
{
	const char *conf = step_conf(s, "JobAcctGatherFrequency"), *step = s->cred->desc ? s->cred->desc->acctg_freq : NULL;
	const char *job = s->cred->job->desc ? s->cred->job->desc->acctg_freq : NULL;
	uint32_t site = DEFAULT_SEC;
	struct error err;
	if (conf)
		(void)usage_frequency(conf, &site, &err);
	uint32_t mine = site;
	if (job)
		(void)usage_frequency(job, &mine, &err);
	if (step)
		(void)usage_frequency(step, &mine, &err);
	return contain_watches(s) && site && (!mine || mine > site) ? site : mine;
}

void gather_start(struct step *s)
{
	static uv_timer_t timer;
	uint64_t every = (uint64_t)interval(s) * 1000;
	if (is_on(s))
		figures_start(s);
	if (!every || (!is_on(s) && !contain_watches(s)))
		return;
	uv_timer_init(&s->loop, &timer);
	timer.data = s;
	uv_timer_start(&timer, on_due, every < FIRST_MS ? every : FIRST_MS, every);
	uv_unref((uv_handle_t *)&timer);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

void gather_last(struct step *s, struct task *t)
{
	struct proc p = { 0 };
	char dir[32];
	if (!is_on(s))
		return;
	snprintf(dir, sizeof dir, "/proc/%d", (int)t->pid);
	proc_io(dir, p.used);
	if (by_cgroup(s))
		cgroup_read(s, t, &p);
	task_take(t, &p);
}

void gather_ended(struct step *s, struct task *t, const struct rusage *usage)
{
	struct proc p = { .user_usec = usec(&usage->ru_utime), .sys_usec = usec(&usage->ru_stime) };
	p.used[USAGE_CPU] = p.user_usec + p.sys_usec;
	if (!by_cgroup(s)) {
		p.used[USAGE_RSS] = has_param(s, "UsePss") || has_param(s, "NoShared") ? 0 : (uint64_t)usage->ru_maxrss * 1024;
		p.used[USAGE_PAGES] = (uint64_t)usage->ru_majflt;
	}
	task_take(t, &p);
}

void gather_stray(struct step *s, const struct rusage *usage)
{
	s->stray_user_usec += usec(&usage->ru_utime);
	s->stray_sys_usec += usec(&usage->ru_stime);
}

/* Where they are measured. */
static void figures_add(struct step *s, Pb__StepUsage *u, const struct task *t)
{
	if (!t->gpu_looks)
		return;
	usage_add_mean(u, USAGE_GPU_UTIL, s->node, t->rank, t->used[USAGE_GPU_UTIL], t->gpu_util_sum / t->gpu_looks);
	usage_add(u, USAGE_GPU_MEM, s->node, t->rank, t->used[USAGE_GPU_MEM]);
}

Pb__StepUsage *gather_usage(struct step *s, bool now)
{
	Pb__StepUsage *u = xcalloc(1, sizeof *u);
	pb__step_usage__init(u);
	uint64_t joules;
	if (now && is_on(s))
		sample(s);
	else if (is_on(s))
		figures_read(s);
	if (is_on(s) && figures_energy(&joules))
		usage_add(u, USAGE_ENERGY, s->node, s->tasks ? s->task[0].rank : 0, joules);
	u->has_user_usec = u->has_sys_usec = u->has_tasks = true;
	for (uint32_t i = 0; i < s->tasks; i++) {
		const struct task *t = &s->task[i];
		if (!t->pid && !s->external)
			continue;
		u->tasks++;
		u->user_usec += t->user_usec;
		u->sys_usec += t->sys_usec;
		for (enum usage_kind k = 0; k < USAGE_TASK_KINDS && is_on(s); k++)
			usage_add(u, k, s->node, t->rank, t->used[k]);
		figures_add(s, u, t);
	}
	/* With cgroups a task's own figures hold what its strays have used. */
	u->user_usec += by_cgroup(s) ? 0 : s->stray_user_usec;
	u->sys_usec += by_cgroup(s) ? 0 : s->stray_sys_usec;
	return u;
}
