/* usage.c - sums over the tasks of this node (see usage.h) */
#include "stepd/step.h"
#include "stepd/usage.h"

static uint64_t usec(const struct timeval *t) { return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec; }

void usage_fill(const struct step *s, Pb__StepUsage *ret)
{
	for (uint32_t i = 0; i < s->tasks; i++) {
		const struct task *t = &s->task[i];
		if (!t->pid)
			continue;
		uint64_t user = usec(&t->usage.ru_utime), sys = usec(&t->usage.ru_stime), rss = (uint64_t)t->usage.ru_maxrss;
		ret->user_usec += user;
		ret->sys_usec += sys;
		ret->sum_rss_kb += rss;
		ret->pages += (uint64_t)t->usage.ru_majflt;
		ret->read_bytes += (uint64_t)t->usage.ru_inblock * 512;
		ret->write_bytes += (uint64_t)t->usage.ru_oublock * 512;
		if (!ret->tasks || rss > ret->max_rss_kb) {
			ret->max_rss_kb = rss;
			ret->max_rss_task = t->rank;
		}
		if (!ret->tasks || user + sys < ret->min_cpu_usec) {
			ret->min_cpu_usec = user + sys;
			ret->min_cpu_task = t->rank;
		}
		ret->tasks++;
	}
	ret->user_usec += usec(&s->stray.ru_utime);
	ret->sys_usec += usec(&s->stray.ru_stime);
	if ((uint64_t)s->stray.ru_maxrss > ret->max_rss_kb)
		ret->max_rss_kb = (uint64_t)s->stray.ru_maxrss;
	ret->max_rss_node = ret->min_cpu_node = (char *)s->node;
	ret->has_user_usec = ret->has_sys_usec = ret->has_max_rss_kb = ret->has_max_rss_task = ret->has_min_cpu_usec = true;
	ret->has_min_cpu_task = ret->has_pages = ret->has_read_bytes = ret->has_write_bytes = ret->has_tasks = ret->has_sum_rss_kb = true;
}
