/* arbitrary.c - --distribution=arbitrary (see arbitrary.h)
 * Every node that is named is required, and fit_tasks lets none run more than was asked of it: as the tasks are as many as the names, each then runs just that. */
#include <stdlib.h>

#include "base/alloc.h"
#include "core/arbitrary.h"
#include "core/state.h"
#include "model/hostlist.h"

struct arbitrary {
	uint32_t n;
	struct moment *at, *scratch; /* by node (ms; UINT32_MAX: there is none of that name): which of on */
	struct arbitrary_on { char *name; uint32_t tasks; } on[];
};

int arbitrary_read(struct shape *s, const char *hosts, struct error *err)
{
	struct hostlist hl = HOSTLIST_INIT;
	if (!hosts || !hosts[0])
		return 0;
	if (hostlist_add(&hl, hosts, err) < 0)
		return -ESLURM_INVALID_NODE_NAME;
	if (hl.count != s->tasks) {
		int r = error_set(err, ESLURM_INVALID_TASK_COUNT, "-m arbitrary: %zu hosts are named for %u tasks", hl.count, s->tasks);
		hostlist_fini(&hl);
		return r;
	}
	hostlist_sort(&hl);
	struct arbitrary *a = xcalloc(1, sizeof *a + hl.count * sizeof a->on[0]);
	for (size_t i = 0; i < hl.count; i++) {
		if (!a->n || strcmp(a->on[a->n - 1].name, hl.name[i]))
			a->on[a->n++] = (struct arbitrary_on){ .name = xstrdup(hl.name[i]) };
		a->on[a->n - 1].tasks++;
	}
	hostlist_fini(&hl);
	a->at = xcalloc(2 * a->n, sizeof *a->at);
	a->scratch = a->at + a->n;
	s->arbitrary = a;
	return 0;
}

int arbitrary_refresh(const struct core *c, struct shape *s, struct error *err)
{
	struct arbitrary *a = s->arbitrary;
	int r = 0;
	for (uint32_t i = 0; a && i < a->n; i++) {
		int at = core_node_find(c, a->on[i].name);
		a->at[i] = (struct moment){ at < 0 ? UINT32_MAX : (uint32_t)at, i };
		if (at < 0)
			r = error_set(err, ESLURM_INVALID_NODE_NAME, "-m arbitrary: there is no node \"%s\"", a->on[i].name);
	}
	if (a)
		moments_sort(a->at, a->n, a->scratch);
	return r;
}

uint32_t arbitrary_tasks(const struct shape *s, uint32_t node)
{
	const struct arbitrary *a = s->arbitrary;
	uint32_t lo = 0, hi = a->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (a->at[mid].ms < node)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->n && a->at[lo].ms == node ? a->on[a->at[lo].node].tasks : 0;
}

void arbitrary_free(struct shape *s)
{
	for (uint32_t i = 0; s->arbitrary && i < s->arbitrary->n; i++)
		free(s->arbitrary->on[i].name);
	if (s->arbitrary)
		free(s->arbitrary->at);
	free(s->arbitrary);
	s->arbitrary = NULL;
}
