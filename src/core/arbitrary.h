/* arbitrary.h - --distribution=arbitrary: the request itself says how many tasks each node runs */
#pragma once
#include <stdint.h>

#include "base/error.h"

struct core;
struct core_node;
struct shape;

/* Reads "n2,n[1-2]", a host a task, into s->arbitrary. 0 or -ESLURM_* and err (names that are none, more or fewer hosts than tasks). NULL, "": nothing. */
int arbitrary_read(struct shape *s, const char *hosts, struct error *err);
/* Finds the nodes of the present configuration; 0 or -ESLURM_INVALID_NODE_NAME and err. */
int arbitrary_refresh(const struct core *c, struct shape *s, struct error *err);
/* The tasks it wants there; 0: none. Only where s->arbitrary. */
uint32_t arbitrary_tasks(const struct shape *s, uint32_t node);
void arbitrary_free(struct shape *s);
