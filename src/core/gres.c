/* gres.c - generic resources: what a request wants, what a node has, and TRES strings made from both */
#include <stdio.h>
#include <stdlib.h>

#include "core/acct.h"
#include "core/state.h"
#include "model/idset.h"

/* What is named twice is added up. Placement counts each kind by itself: none may be part of another. */
static int want_add(struct wants *l, struct want w, const char *text, struct error *err)
{
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->w[i].name == w.name && !l->w[i].type != !w.type)
			return error_set(err, ESLURM_INVALID_GRES, "\"%s\" names one resource both with a type and without", text);
		if (l->w[i].name == w.name && l->w[i].type == w.type) {
			l->w[i].count += w.count;
			return 0;
		}
	}
	if (l->n == WANT_MAX)
		return error_set(err, ESLURM_INVALID_GRES, "more than %d kinds of generic resources in \"%s\"", WANT_MAX, text);
	l->w[l->n++] = w;
	return 0;
}

int wants_parse(struct core *c, const char *text, struct wants *ret, struct error *err)
{
	struct gres_req r[GRES_REQ_MAX];
	size_t n = 0;
	ret->n = 0;
	if (!text || !text[0])
		return 0;
	int rc = gres_parse(text, r, GRES_REQ_MAX, &n, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++) {
		uint32_t name = atom_find(c, r[i].name), type = atom_find(c, r[i].type);
		if (name == UINT32_MAX || !strstr(c->params.gres_types ? c->params.gres_types : "", r[i].name))
			return error_set(err, ESLURM_INVALID_GRES, "generic resource \"%s\" is not in GresTypes of this cluster", r[i].name);
		if (r[i].count == 0)
			continue;
		if (type == UINT32_MAX)
			return error_set(err, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "no node has a %s of type \"%s\"", r[i].name, r[i].type);
		if ((rc = want_add(ret, (struct want){ name, type, r[i].count }, text, err)) < 0)
			return rc;
	}
	return 0;
}

int wants_task(struct core *c, const char *text, struct wants *ret, uint32_t *cpus, struct error *err)
{
	struct str rest = STR_INIT;
	char *copy = xstrdup(text ? text : ""), *at = copy, *w;
	int r = 0;
	while (r >= 0 && (w = str_next(&at, ","))) {
		unsigned long long n;
		if (str_starts(w, "cpu:") || str_starts(w, "cpu=")) {
			if (str_to_u64(w + 4, 1, 65535, &n) < 0)
				r = error_set(err, ESLURM_INVALID_GRES, "\"%s\" is not a number of CPUs a task", w);
			else
				*cpus = (uint32_t)n;
		} else if (w[0] && !str_starts(w, "license/")) /* those are license_per_task's */
			str_add_sep(&rest, ",", w);
	}
	if (r >= 0)
		r = wants_parse(c, rest.data, ret, err);
	str_fini(&rest);
	free(copy);
	return r;
}

bool wants_match(const struct want *w, const struct node_gres *g) { return g->name == w->name && (!w->type || g->type == w->type); }

/* As many as one job could have: shards are of one GPU. */
uint32_t wants_free(const struct core *c, const struct core_node *n, const struct avail *a, const struct want *w)
{
	uint32_t sum = 0, most = 0;
	for (uint32_t i = 0; i < n->gres_n; i++) {
		if (!wants_match(w, &n->gres[i]))
			continue;
		sum += n->gres[i].shard && !c->params.many_shared ? 0 : a->gres[i];
		most = a->gres[i] > most ? a->gres[i] : most;
	}
	return sum ? sum : most;
}

static void add_wants(const struct core *c, struct tres_sum *t, const struct wants *w, uint64_t times)
{
	for (uint32_t i = 0; i < w->n; i++)
		tres_add_gres(t, atom_text(c, w->w[i].name), w->w[i].type ? atom_text(c, w->w[i].type) : "", w->w[i].count * times);
}

/* AccountingStorageTRES decides whether types are named. */
static bool typed(const struct core *c) { return c->params.tres_extra && strstr(c->params.tres_extra, ":"); }

static void sum_request(const struct core *c, const struct shape *s, struct tres_sum *t)
{
	t->node = s->min_nodes;
	t->cpu = (uint64_t)s->tasks * s->cpus_per_task;
	if (t->cpu < s->min_nodes)
		t->cpu = s->min_nodes;
	add_wants(c, t, &s->job, 1);
	add_wants(c, t, &s->node, s->min_nodes);
	add_wants(c, t, &s->task, s->tasks);
	add_wants(c, t, &s->socket, (uint64_t)s->min_nodes * (s->sockets ? s->sockets : 1));
	uint64_t gpus = 0;
	for (size_t i = 0; i < t->gres_n; i++)
		if (!strcmp(t->gres[i].name, "gpu"))
			gpus += t->gres[i].count;
	if (s->cpus_per_gpu && gpus * s->cpus_per_gpu > t->cpu)
		t->cpu = gpus * s->cpus_per_gpu;
	t->billing = t->cpu;
	if (s->mem_per_gpu)
		t->mem_mb = s->mem_per_gpu * gpus;
	else if (s->mem_cpu)
		t->mem_mb = s->mem_cpu * t->cpu;
	else
		t->mem_mb = s->mem_node * s->min_nodes;
}

static void sum_node(const struct core *c, const struct shape *s, const struct alloc *a, uint32_t i, struct tres_sum *t)
{
	const struct core_node *n = c->node[a->on[i].node];
	const uint64_t *counts = a->words + a->on[i].bits + n->cpu_words + n->dev_words;
	t->node++;
	t->cpu += a->on[i].cpus + inside_own_spec(s, n);
	t->billing = t->cpu;
	t->mem_mb += a->on[i].mem;
	for (uint32_t g = 0; g < n->gres_n; g++)
		if (counts[g])
			tres_add_gres(t, atom_text(c, n->gres[g].name), n->gres[g].type ? atom_text(c, n->gres[g].type) : "", counts[g]);
}

void tres_sum(const struct core *c, const struct shape *s, const struct alloc *a, uint32_t at, struct tres_sum *ret)
{
	*ret = (struct tres_sum){ 0 };
	if (!a)
		sum_request(c, s, ret);
	for (uint32_t i = 0; a && i < a->n; i++)
		if (at == UINT32_MAX || at == i)
			sum_node(c, s, a, i, ret);
}

char *tres_of_request(const struct core *c, const struct shape *s)
{
	struct tres_sum t;
	tres_sum(c, s, NULL, 0, &t);
	billing_set(c, s->part_n ? s->part[0] : NULL, s, &t);
	return tres_format(&t, typed(c));
}

char *tres_of_alloc(const struct core *c, const struct core_job *j)
{
	struct tres_sum t;
	if (!j->alloc)
		return NULL;
	tres_sum(c, j->shape, j->alloc, UINT32_MAX, &t);
	billing_set(c, j->part < c->part_n ? c->part[j->part] : NULL, j->shape, &t);
	return tres_format(&t, typed(c));
}

char *tres_of_node(const struct core *c, const struct core_node *n, bool alloc)
{
	struct tres_sum t = { .cpu = alloc ? n->cpus_used : n->cpus, .mem_mb = alloc ? n->mem_used : n->mem };
	t.billing = alloc ? 0 : n->cpus;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		uint64_t count = alloc ? n->gres[g].used : n->gres[g].count;
		if (count)
			tres_add_gres(&t, atom_text(c, n->gres[g].name), n->gres[g].type ? atom_text(c, n->gres[g].type) : "", count);
	}
	return tres_format(&t, typed(c));
}

char *bits_text(const uint64_t *bits, uint32_t n)
{
	struct str s = STR_INIT;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from = i;
		if (!(bits[i / 64] >> (i % 64) & 1))
			continue;
		while (i + 1 < n && (bits[(i + 1) / 64] >> ((i + 1) % 64) & 1))
			i++;
		str_add_sep(&s, ",", "");
		str_add_u64(&s, from);
		if (i > from) {
			str_add_c(&s, '-');
			str_add_u64(&s, i);
		}
	}
	return s.len ? str_take(&s) : xstrdup("");
}
