/* reply.c - effects in the core's own words: one function for each kind of thing the core asks of the shell */
#include <stdarg.h>
#include <stdio.h>

#include "core/state.h"

struct arena *fx_arena(struct core *c) { return effects_arena(c->fx); }

void fx_log(struct core *c, int level, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	struct core_effect *e = effects_push(c->fx, FX_LOG);
	e->level = level;
	e->text = arena_strdup(fx_arena(c), line);
}

void fx_job(struct core *c, enum core_effect_type type, const struct core_job *j)
{
	effects_push(c->fx, type)->job_id = j->id;
}

void fx_persist(struct core *c, struct core_job *j)
{
	j->blob_stale = true;
	size_t n = effects_count(c->fx);
	if (n > 0) {
		const struct core_effect *last = effects_at(c->fx, n - 1);
		if (last->type == FX_PERSIST_JOB && last->job_id == j->id)
			return;
	}
	if (!c->restoring)
		fx_job(c, FX_PERSIST_JOB, j);
}

void fx_node(struct core *c, const struct core_node *n)
{
	effects_push(c->fx, FX_PERSIST_NODE)->node_index = n->index;
}

void fx_reply(struct core *c, uint64_t token, void *msg)
{
	if (!token)
		return;
	struct core_effect *e = effects_push(c->fx, FX_REPLY);
	e->token = token;
	e->msg = msg;
}

void fx_result(struct core *c, uint64_t token, const struct error *err, uint32_t job_id)
{
	struct arena *a = fx_arena(c);
	Pb__Result *r = arena_alloc(a, sizeof *r);
	pb__result__init(r);
	r->code = err ? (uint32_t)-err->code : 0;
	if (err && err->code && err->line[0])
		r->detail = arena_strdup(a, err->line);
	r->has_job_id = job_id != 0;
	r->job_id = job_id;
	fx_reply(c, token, r);
}

void fx_to_nodes(struct core *c, enum core_effect_type type, uint32_t job_id, const char *nodes, void *msg)
{
	if (!nodes || !nodes[0])
		return;
	struct core_effect *e = effects_push(c->fx, type);
	e->job_id = job_id;
	e->nodes = arena_strdup(fx_arena(c), nodes);
	e->msg = msg;
}
