/* why_hint.c - the smallest change after which a job could start now
 * Each part of the request is loosened by itself, as little as is enough, and placed on what is free now with the promises to jobs before it kept. A budget
 * of placements bounds the cost: the larger the cluster, the fewer are tried. Nothing is offered while jobs before it that want its nodes have no promise yet. */
#include <stdio.h>
#include <stdlib.h>

#include "core/reserve.h"
#include "core/why.h"

#define TRIES_MAX 64
#define NODES_LOOKED_AT 1000000u

struct hint { struct why *w; struct shape s; uint32_t p, tries; struct bitset *base; const struct core_part *part; uint32_t time_min; };

/* Nodes of the partition that are up; what else is asked for is up to the request as changed. */
static struct bitset *candidates(struct hint *h, const struct core_part *part, bool features, bool exclude)
{
	const struct shape *s = &h->s;
	struct bitset *b = bitset_copy(part->nodes), *x = NULL;
	bitset_and(b, h->w->c->up);
	if (features && !s->sets.n && s->features && feature_match(h->w->c, s->features, &x, NULL) >= 0) {
		bitset_and(b, x);
		bitset_destroy(x);
	}
	x = NULL;
	if (exclude && s->exc_nodes && s->exc_nodes[0] && nodes_bitset(h->w->c, s->exc_nodes, &x, NULL) >= 0)
		bitset_andnot(b, x);
	bitset_destroy(x);
	resv_candidates(h->w->c, h->w->in, b);
	return b;
}

static bool starts(struct hint *h, const struct bitset *cand)
{
	uint64_t now = h->w->c->now_ms, len = h->time_min == TIME_INFINITE ? ONE_YEAR_SEC * 1000ull : h->time_min * 60000ull;
	struct when w = { .j = h->w->j, .start_ms = now, .end_ms = now + len, .part = h->part, .in = h->w->in };
	struct fit *f = NULL;
	if (!h->tries)
		return false;
	h->tries--;
	if (!place_choose(h->w->c, &h->s, cand, &w, &f))
		return false;
	free(f);
	return true;
}

/* The largest value below *v (of at least 1) with which it starts; *v is set back. 0: none. */
static uint64_t largest(struct hint *h, uint32_t *v32, uint64_t *v64, void (*follow)(struct hint *h))
{
	uint64_t was = v32 ? *v32 : *v64, lo = 0, hi = was;
	struct shape keep = h->s;
	while (hi > lo + 1) {
		uint64_t mid = lo + (hi - lo) / 2;
		if (v32)
			*v32 = (uint32_t)mid;
		else
			*v64 = mid;
		if (follow)
			follow(h);
		bool ok = starts(h, h->base);
		h->s = keep;
		*(ok ? &lo : &hi) = mid;
		if (!h->tries)
			break;
	}
	return lo;
}

static void hint_done(Pb__WhyItem *i, int64_t is, int64_t was)
{
	why_number(i, "value", is);
	why_number(i, "asked", was);
}

static void hint_time(struct hint *h)
{
	uint64_t best = 0, now = h->w->c->now_ms;
	uint32_t was = h->time_min;
	char a[64], b[64];
	for (uint64_t below = UINT64_MAX; h->tries && !best;) { /* promised starts, latest first */
		uint64_t at = 0;
		bitset_for(h->base, x)
			for (uint32_t i = 0; i < h->w->c->node[x]->plan_n; i++) {
				uint64_t t = h->w->c->node[x]->plan[i].p->start_ms;
				at = t < below && t > at ? t : at;
			}
		if (at < now + 60000)
			break;
		below = at;
		uint64_t min = (at - now) / 60000;
		if (was != TIME_INFINITE && min >= was)
			continue;
		h->time_min = (uint32_t)min;
		if (starts(h, h->base))
			best = min;
	}
	h->time_min = was;
	if (!best)
		return;
	Pb__WhyItem *i = why_hint_add(h->w, "time_limit", "--time=%s instead of %s: it would end before a planned job starts", why_minutes((uint32_t)best, a, sizeof a), why_minutes(was, b, sizeof b));
	hint_done(i, (int64_t)best, was == TIME_INFINITE ? -1 : (int64_t)was);
}

static void nodes_follow(struct hint *h)
{
	struct shape *s = &h->s;
	if (!s->tasks_set)
		s->tasks = s->min_nodes * (s->per_node ? s->per_node : 1);
	s->max_nodes = s->max_nodes < s->min_nodes ? s->min_nodes : s->max_nodes;
	s->required = NULL;
}

static void hint_nodes(struct hint *h)
{
	uint64_t n;
	if (h->s.min_nodes < 2 || !(n = largest(h, &h->s.min_nodes, NULL, nodes_follow)))
		return;
	hint_done(why_hint_add(h->w, "nodes", "%llu node%s instead of %u", (unsigned long long)n, n == 1 ? "" : "s", h->s.min_nodes), (int64_t)n, h->s.min_nodes);
}

static void hint_gres_list(struct hint *h, struct wants *l, const char *per)
{
	for (uint32_t i = 0; i < l->n && h->tries; i++) {
		struct want *x = &l->w[i];
		const char *name = atom_text(h->w->c, x->name), *type = x->type ? atom_text(h->w->c, x->type) : NULL;
		uint64_t n = x->count > 1 ? largest(h, NULL, &x->count, NULL) : 0;
		if (n) {
			Pb__WhyItem *k = why_hint_add(h->w, "gres", "%s%s%s:%llu instead of :%llu %s", name, type ? ":" : "", type ? type : "", (unsigned long long)n, (unsigned long long)x->count, per);
			why_text(k, "gres", name);
			hint_done(k, (int64_t)n, (int64_t)x->count);
		}
		uint32_t was = x->type;
		x->type = 0;
		if (was && starts(h, h->base))
			why_text(why_hint_add(h->w, "gres_type", "%s of any type instead of %s", name, type), "gres", name);
		x->type = was;
	}
}

static void hint_sizes(struct hint *h)
{
	uint64_t n;
	if (h->s.cpus_per_task > 1 && (n = largest(h, &h->s.cpus_per_task, NULL, NULL)))
		hint_done(why_hint_add(h->w, "cpus_per_task", "%llu CPU%s a task instead of %u", (unsigned long long)n, n == 1 ? "" : "s", h->s.cpus_per_task), (int64_t)n, h->s.cpus_per_task);
	if (h->s.mem_node > 1 && (n = largest(h, NULL, &h->s.mem_node, NULL)))
		hint_done(why_hint_add(h->w, "mem", "--mem=%lluM instead of %lluM a node", (unsigned long long)n, (unsigned long long)h->s.mem_node), (int64_t)n, (int64_t)h->s.mem_node);
	if (h->s.mem_cpu > 1 && (n = largest(h, NULL, &h->s.mem_cpu, NULL)))
		hint_done(why_hint_add(h->w, "mem_per_cpu", "--mem-per-cpu=%lluM instead of %lluM", (unsigned long long)n, (unsigned long long)h->s.mem_cpu), (int64_t)n, (int64_t)h->s.mem_cpu);
}

static void hint_lists(struct hint *h)
{
	static const struct { const char *code, *text; bool features, exclude, nodelist, whole; } row[] = {
		{ "features", "without --constraint", true, false, false, false }, { "exclude", "without --exclude", false, true, false, false },
		{ "nodelist", "without --nodelist", false, false, true, false }, { "exclusive", "without --exclusive", false, false, false, true },
	};
	const struct shape keep = h->s;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		if ((row[i].features && !keep.features) || (row[i].exclude && !keep.exc_nodes) || (row[i].nodelist && !keep.req_nodes) || (row[i].whole && !keep.exclusive))
			continue;
		struct bitset *b = candidates(h, keep.part[h->p], !row[i].features, !row[i].exclude);
		h->s.required = row[i].nodelist ? NULL : keep.required;
		h->s.exclusive = !row[i].whole && keep.exclusive;
		if (row[i].features)
			h->s.sets.n = 0;
		if (starts(h, b))
			why_hint_add(h->w, row[i].code, "%s", row[i].text);
		h->s = keep;
		bitset_destroy(b);
	}
}

/* A partition the job did not name, that is open to its user as far as the core knows. */
static bool other_open(const struct hint *h, const struct core_part *p, const Pb__JobDesc *d)
{
	struct core_caller by = { .uid = h->w->j->uid, .group = atom_text(h->w->c, h->w->j->group) };
	for (uint32_t i = 0; i < h->s.part_n; i++)
		if (h->s.part[i] == p)
			return false;
	return p->state == PART_UP && !p->rec->hidden && (!p->rec->root_only || !by.uid) && part_group_allowed(p->rec, &by) &&
		part_reason(h->w->c, p, &h->s, d, h->time_min) == REASON_NONE;
}

static void hint_partitions(struct hint *h)
{
	Pb__JobDesc *d = job_desc(h->w->j);
	for (uint32_t i = 0; i < h->w->c->part_n && h->tries; i++) {
		const struct core_part *p = h->w->c->part[i];
		if (!other_open(h, p, d))
			continue;
		struct bitset *b = candidates(h, p, true, true);
		h->part = p;
		if (starts(h, b))
			why_text(why_hint_add(h->w, "partition", "--partition=%s", p->rec->name), "partition", p->rec->name);
		bitset_destroy(b);
	}
	pb__job_desc__free_unpacked(d, NULL);
}

/* Somebody before it wants these nodes and holds no promise: what is free may be his. */
static bool unplanned_before(const struct core *c, const struct core_job *j)
{
	for (uint32_t i = 0; i < c->unpromised_n; i++) {
		const struct shape *o = c->unpromised[i];
		const struct tree_node *n = tree_first(&((struct shape *)o)->queue);
		const struct core_job *first = n ? (const struct core_job *)((const char *)n - offsetof(struct core_job, qnode)) : NULL;
		if (!first || first == j || !job_before(first, j))
			continue;
		for (uint32_t a = 0; a < o->part_n; a++)
			for (uint32_t b = 0; b < j->shape->part_n; b++)
				if (o->able[a] && j->shape->able[b] && bitset_intersects(o->able[a], j->shape->able[b]))
					return true;
	}
	return false;
}

void why_hints(struct why *w)
{
	struct hint h = { .w = w, .s = *w->j->shape, .time_min = w->j->time_min };
	uint32_t fair = NODES_LOOKED_AT / (w->c->node_n + 1);
	h.tries = fair > TRIES_MAX ? TRIES_MAX : fair < 8 ? 8 : fair;
	while (h.p < h.s.part_n && (!h.s.part[h.p] || !(h.s.part_mask & 1u << h.p) || h.s.part[h.p]->state != PART_UP))
		h.p++;
	if (h.p == h.s.part_n || unplanned_before(w->c, w->j))
		return;
	h.part = h.s.part[h.p];
	h.base = candidates(&h, h.part, true, true);
	hint_time(&h);
	hint_lists(&h);
	hint_nodes(&h);
	hint_gres_list(&h, &h.s.node, "a node");
	hint_gres_list(&h, &h.s.task, "a task");
	hint_gres_list(&h, &h.s.job, "for the job");
	hint_sizes(&h);
	hint_partitions(&h);
	bitset_destroy(h.base);
}
