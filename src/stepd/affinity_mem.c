/* affinity_mem.c - memory of a task: --mem-bind by set_mempolicy(2) (see affinity.h) */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "model/bind.h"
#include "stepd/affinity.h"
#include "stepd/step.h"

#define NODES_MAX 64

static bool node_exists(unsigned long node)
{
	char path[64];
	snprintf(path, sizeof path, "/sys/devices/system/node/node%lu", node);
	return node < NODES_MAX && !access(path, F_OK);
}

static uint32_t node_count(void)
{
	uint32_t n = 0;
	while (node_exists(n))
		n++;
	return n ? n : 1;
}

static int set_node(const struct task *t, unsigned long node, const char *how, const char *mask_text, uint64_t *mask)
{
	if (!node_exists(node)) {
		dprintf(2, "slurmstepd: error: NUMA node %lu does not exist; cannot bind local task %u to it (--mem-bind=%s%s%s)\n", node, t->local, how,
			mask_text ? "; 0x" : "", mask_text ? mask_text : "");
		return -1;
	}
	*mask |= 1ull << node;
	return 0;
}

/* The nodes of a task. 0: none (local, none). -1: one that is not there, said. */
static int nodes_of(const struct task *t, const struct bind *b, uint64_t *mask)
{
	const char *item = bind_item(b, t->local);
	*mask = 0;
	if (b->kind == BIND_RANK)
		return set_node(t, t->local % node_count(), "rank", NULL, mask);
	if (b->kind == BIND_MAP)
		return set_node(t, strtoul(item, NULL, 10), "map_mem", NULL, mask);
	if (b->kind != BIND_MASK)
		return 0;
	uint64_t wanted = strtoull(item, NULL, 16);
	for (unsigned n = 0; n < NODES_MAX; n++)
		if (wanted >> n & 1 && set_node(t, n, "mask_mem", item, mask) < 0)
			return -1;
	return 0;
}

int affinity_mem_apply(struct step *s, const struct task *t)
{
	const char *plugin = step_conf(s, "TaskPlugin");
	struct bind b;
	uint64_t mask;
	long rc = 0;
	if (!s->spec || !s->spec->mem_bind || !plugin || !strstr(plugin, "affinity") || bind_parse(s->spec->mem_bind, true, &b) < 0)
		return 0;
	if (nodes_of(t, &b, &mask) < 0)
		rc = -1;
	else if (mask)
		rc = syscall(SYS_set_mempolicy, b.prefer ? MPOL_PREFERRED : MPOL_BIND, &mask, (unsigned long)NODES_MAX + 1);
	else if (b.kind == BIND_LOCAL)
		rc = syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0ul);
	if (rc < 0 && mask)
		dprintf(2, "slurmstepd: error: cannot bind local task %u to its memory: %s\n", t->local, strerror(errno));
	bind_fini(&b);
	return rc < 0 ? -1 : 0;
}

void affinity_mem_say(const struct step *s, const struct task *t)
{
	static const char *const names[] = { [BIND_NONE] = "NONE", [BIND_RANK] = "RANK", [BIND_LOCAL] = "LOC", [BIND_MAP] = "MAP", [BIND_MASK] = "MASK" };
	struct bind b;
	unsigned long mask = 0;
	int mode = 0;
	const char *plugin = step_conf(s, "TaskPlugin");
	if (!s->spec || !s->spec->mem_bind || !plugin || !strstr(plugin, "affinity") || bind_parse(s->spec->mem_bind, true, &b) < 0)
		return;
	(void)syscall(SYS_get_mempolicy, &mode, &mask, (unsigned long)NODES_MAX, NULL, 0ul);
	if (!mask)
		(void)syscall(SYS_get_mempolicy, NULL, &mask, (unsigned long)NODES_MAX, NULL, (unsigned long)MPOL_F_MEMS_ALLOWED);
	if (b.verbose)
		dprintf(2, "mem-bind%s%s - %s, task %2u %2u [%d]: mask 0x%lx%s\n", b.prefer ? " PREFER " : "=", b.kind < sizeof names / sizeof *names && names[b.kind] ? names[b.kind] : "NULL", s->node,
			t->rank, t->local, (int)getpid(), mask, b.kind == BIND_NONE || b.kind == BIND_UNSET ? "" : " set");
	bind_fini(&b);
}
