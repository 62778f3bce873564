/* why_nodes.c - the nodes of a partition against each part of a request, and who has them
 * Each part is asked of each node by itself, as if the node were empty; so the table says how many nodes have it and how many only this part
 * excludes. Of the nodes that have everything it is asked again with what is free now. */
#include <stdio.h>
#include <stdlib.h>

#include "core/reserve.h"
#include "core/why.h"

#define PARTS_MAX 32
#define HOLDERS_SHOWN 8
#define GROUPS_SHOWN 6
#define SETS_SHOWN 16

enum part_kind { P_STATE, P_FEATURES, P_EXCLUDE, P_NODELIST, P_GEOMETRY, P_TMP, P_CPUS, P_MEMORY, P_WHOLE, P_COMPANY, P_GRES, P_TOGETHER };
static const char *const kind_name[] = { "state", "features", "exclude", "nodelist", "geometry", "tmp", "cpus", "memory", "whole_node", "company", "gres", "together" };

struct part { enum part_kind kind; char *want; uint64_t need; struct want gres; uint32_t fit, alone, free; };
struct count {
	struct why *w;
	const struct shape *s;
	const struct core_part *in;
	struct bitset *feat, *exc, *req;
	struct part part[PARTS_MAX];
	uint32_t n;
	struct bitset *able, *room, *kept;  /* have every part but state; room now; room that is not promised */
	uint32_t up, tasks_now;             /* of able: may be given work */
};

static uint64_t mem_need(const struct shape *s, uint32_t cpus)
{
	uint64_t gpus = 0;
	for (uint32_t i = 0; i < s->node.n; i++)
		gpus += s->node.w[i].count;
	for (uint32_t i = 0; i < s->task.n; i++)
		gpus += s->task.w[i].count;
	if (s->mem_all)
		return 0;
	if (s->mem_per_gpu)
		return s->mem_per_gpu * (gpus ? gpus : 1);
	return s->mem_cpu ? s->mem_cpu * cpus : s->mem_node;
}

static struct part *part_add(struct count *k, enum part_kind kind, char *want, uint64_t need)
{
	if (k->n == PARTS_MAX) {
		free(want);
		return NULL;
	}
	struct part *p = &k->part[k->n++];
	*p = (struct part){ .kind = kind, .want = want, .need = need };
	return p;
}

static void gres_parts(struct count *k, const struct wants *l, uint64_t times, const char *per)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct want *x = &l->w[i];
		uint64_t need = times ? x->count * times : 1;
		const char *name = atom_text(k->w->c, x->name), *type = x->type ? atom_text(k->w->c, x->type) : NULL;
		char *want = xasprintf("%s%s%s:%llu %s", name, type ? ":" : "", type ? type : "", (unsigned long long)x->count, per);
		struct part *p = part_add(k, P_GRES, want, need);
		if (p)
			p->gres = *x;
	}
}

/* Does somebody on these nodes keep all others away? */
static bool company_any(const struct count *k)
{
	bool any = false;
	bitset_for(k->in->nodes, i)
		any = any || k->w->c->node[i]->owners;
	return any;
}

static void parts_make(struct count *k)
{
	const struct shape *s = k->s;
	uint32_t cpus = s->overcommit ? 1 : s->cpus_per_task * (s->per_node && !s->tasks_set ? s->per_node : 1);
	cpus = s->min_cpus > cpus ? s->min_cpus : cpus;
	(void)part_add(k, P_STATE, xstrdup("up, answering, not drained"), 0);
	if (s->features && !s->prefer)
		(void)part_add(k, P_FEATURES, xasprintf("features %s", s->features), 0);
	else if (s->features)
		(void)part_add(k, P_FEATURES, xasprintf("features %s, or rather %s", s->features, s->prefer), 0);
	if (s->exc_nodes && s->exc_nodes[0])
		(void)part_add(k, P_EXCLUDE, xasprintf("not in --exclude=%s", s->exc_nodes), 0);
	if (s->req_nodes && s->req_nodes[0])
		(void)part_add(k, P_NODELIST, xasprintf("in --nodelist=%s", s->req_nodes), 0);
	if (s->sockets || s->cores || s->threads)
		(void)part_add(k, P_GEOMETRY, xasprintf("%u sockets, %u cores a socket, %u threads a core", s->sockets ? s->sockets : 1, s->cores ? s->cores : 1, s->threads ? s->threads : 1), 0);
	if (s->tmp)
		(void)part_add(k, P_TMP, xasprintf("%llu MiB of temporary disk", (unsigned long long)s->tmp), s->tmp);
	(void)part_add(k, P_CPUS, xasprintf("%u CPU%s%s", cpus, cpus == 1 ? "" : "s", s->per_node ? " (its tasks a node)" : " (a task)"), cpus);
	uint64_t mem = mem_need(s, cpus);
	if (mem)
		(void)part_add(k, P_MEMORY, xasprintf("%llu MiB of memory%s", (unsigned long long)mem, s->mem_cpu ? " (a task)" : ""), mem);
	gres_parts(k, &s->node, 1, "a node");
	gres_parts(k, &s->socket, s->sockets ? s->sockets : 1, "a socket");
	gres_parts(k, &s->task, 1, "a task");
	gres_parts(k, &s->job, 0, "for the job (one a node at least)");
	if (s->exclusive)
		(void)part_add(k, P_WHOLE, xstrdup("nobody else on it (--exclusive)"), 0);
	if (s->user_only || k->in->user_only)
		(void)part_add(k, P_COMPANY, xstrdup("no job of another user on it (--exclusive=user)"), 0);
	else if (s->mcs)
		(void)part_add(k, P_COMPANY, xasprintf("only jobs of MCS label %s on it", atom_text(k->w->c, s->mcs)), 0);
	else if (company_any(k))
		(void)part_add(k, P_COMPANY, xstrdup("no job on it that shares with none of its kind (--exclusive=user, MCS label)"), 0);
	(void)part_add(k, P_TOGETHER, xstrdup("all of this at once"), 0);
}

static bool geometry(const struct shape *s, const struct core_node *n)
{
	return (!s->sockets || n->sockets >= s->sockets) && (!s->cores || n->cores_per_socket >= s->cores) && (!s->threads || n->threads >= s->threads);
}

static struct when now_when(const struct why *w, const struct core_part *part)
{
	uint64_t len = w->j->time_min == TIME_INFINITE ? ONE_YEAR_SEC * 1000ull : w->j->time_min * 60000ull;
	return (struct when){ .j = w->j, .end_ms = w->c->now_ms + len, .part = part, .in = w->in };
}

static bool company_keeps(const struct count *k, const struct core_node *n)
{
	struct when w = now_when(k->w, k->in);
	return company_bad(k->w->c, k->s, &w, n);
}

static bool part_meets(const struct count *k, const struct part *p, const struct core_node *n, const struct avail *a, bool now)
{
	switch (p->kind) {
	case P_STATE: return bitset_has(k->w->c->up, n->index);
	case P_FEATURES: return !k->feat || bitset_has(k->feat, n->index);
	case P_EXCLUDE: return !k->exc || !bitset_has(k->exc, n->index);
	case P_NODELIST: return !k->req || bitset_has(k->req, n->index);
	case P_GEOMETRY: return geometry(k->s, n);
	case P_TMP: return n->tmp >= p->need;
	case P_CPUS: return a->cpus >= p->need;
	case P_MEMORY: return (k->w->c->params.select_memory ? a->mem : n->mem) >= p->need;
	case P_GRES: return wants_free(k->w->c, n, a, &p->gres) >= p->need;
	case P_WHOLE: return !now || n->held_n == 0;
	case P_COMPANY: return !now || !company_keeps(k, n);
	case P_TOGETHER: return fit_tasks(k->w->c, k->s, n, a) > 0;
	}
	return true;
}

static uint32_t misses(const struct count *k, const struct core_node *n, const struct avail *a, bool now)
{
	uint32_t mask = 0;
	for (uint32_t i = 0; i + 1 < k->n; i++)
		if (!part_meets(k, &k->part[i], n, a, now))
			mask |= 1u << i;
	if (!(mask & ~1u) && !part_meets(k, &k->part[k->n - 1], n, a, now)) /* only what no single part explains */
		mask |= 1u << (k->n - 1);
	return mask;
}

static void count_now(struct count *k, struct core_node *n)
{
	struct when w = now_when(k->w, k->in);
	struct avail a;
	if (n->plan_n) { /* first without what is promised to others */
		avail_now(n, &a);
		resv_less(k->w->c, n, &w, &a); /* what is reserved is not the plan's fault */
	} else {
		avail_of(k->w->c, k->s, &w, n, &a);
	}
	uint32_t mask = misses(k, n, &a, true);
	for (uint32_t i = 0; i < k->n; i++)
		k->part[i].free += !(mask & 1u << i);
	if (mask || (k->s->exclusive && n->held_n))
		return;
	bitset_set(k->room, n->index);
	k->tasks_now += fit_tasks(k->w->c, k->s, n, &a);
	if (n->plan_n) {
		avail_of(k->w->c, k->s, &w, n, &a);
		avail_spare(k->w->c, &w, n, &a);
	}
	if (!n->plan_n || fit_tasks(k->w->c, k->s, n, &a))
		bitset_set(k->kept, n->index);
}

/* A nodelist that names fewer nodes than are asked for only says which must be among them. */
static void count_lists(struct count *k)
{
	const struct shape *s = k->s;
	if (s->sets.n) {
		k->feat = bitset_create(k->w->c->node_n);
		for (uint32_t i = 0; i < s->sets.n; i++)
			bitset_or(k->feat, s->sets.set[i].in);
	} else if (s->features)
		(void)feature_match(k->w->c, s->features, &k->feat, NULL);
	if (s->exc_nodes && s->exc_nodes[0])
		(void)nodes_bitset(k->w->c, s->exc_nodes, &k->exc, NULL);
	if (s->req_nodes && s->req_nodes[0])
		(void)nodes_bitset(k->w->c, s->req_nodes, &k->req, NULL);
	if (k->req && bitset_count(k->req) < s->min_nodes) {
		bitset_destroy(k->req);
		k->req = NULL;
	}
}

static void count_all(struct count *k)
{
	k->able = bitset_create(k->w->c->node_n);
	k->room = bitset_create(k->w->c->node_n);
	k->kept = bitset_create(k->w->c->node_n);
	count_lists(k);
	parts_make(k);
	bitset_for(k->in->nodes, x) {
		struct core_node *n = k->w->c->node[x];
		struct when empty = { .part = k->in };
		struct avail a;
		avail_of(k->w->c, k->s, &empty, n, &a);
		uint32_t mask = misses(k, n, &a, false);
		for (uint32_t i = 0; i < k->n; i++) {
			k->part[i].fit += !(mask & 1u << i);
			k->part[i].alone += mask == 1u << i;
		}
		if (mask & ~1u)
			continue;
		bitset_set(k->able, x);
		if (mask)
			continue;
		k->up++;
		count_now(k, n);
	}
}

static void count_fini(struct count *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		free(k->part[i].want);
	bitset_destroy(k->feat);
	bitset_destroy(k->exc);
	bitset_destroy(k->req);
	bitset_destroy(k->able);
	bitset_destroy(k->room);
	bitset_destroy(k->kept);
}

static Pb__WhyFilter *row_add(Pb__WhyItem *item, const char *part, char *want, uint32_t fit)
{
	Pb__WhyFilter *f = xcalloc(1, sizeof *f);
	pb__why_filter__init(f);
	f->part = xstrdup(part);
	f->want = want;
	f->fit = fit;
	item->filter[item->n_filter++] = f;
	return f;
}

static void set_row(const struct count *k, Pb__WhyItem *item, const struct bitset *of, char *want)
{
	Pb__WhyFilter *f = row_add(item, "together", want, bitset_count_and(k->able, of));
	f->has_free = true;
	f->free = bitset_count_and(k->kept, of);
}

/* Which nodes of those that serve a part are in each set of which all must be. */
static void sets_fill(const struct count *k, Pb__WhyItem *item)
{
	const struct shape *s = k->s;
	for (uint32_t i = 0; i < s->sets.n; i++) {
		const struct feature_set *set = &s->sets.set[i];
		bool mine = i < s->preferred;
		const char *expr = mine ? s->prefer : s->features ? s->features : "any";
		uint32_t n = mine ? i + 1 : i - s->preferred + 1, of = mine ? s->preferred : s->sets.n - s->preferred;
		if (item->n_filter + 1 + set->count_n > SETS_SHOWN + PARTS_MAX)
			break;
		if (!set->count_n && s->sets.n > 1)
			set_row(k, item, set->in, xasprintf("all nodes from set %u of %u of --%s=%s", n, of, mine ? "prefer" : "constraint", expr));
		for (uint32_t x = 0; x < set->count_n; x++)
			set_row(k, item, set->count[x].of, xasprintf("%u nodes of part %u of --%s=%s", set->count[x].n, x + 1, mine ? "prefer" : "constraint", expr));
	}
}

static void table_fill(const struct count *k, Pb__WhyItem *item)
{
	item->filter = xcalloc(PARTS_MAX + SETS_SHOWN, sizeof *item->filter);
	for (uint32_t i = 0; i < k->n; i++) {
		const struct part *p = &k->part[i];
		bool now = p->kind == P_CPUS || p->kind == P_MEMORY || p->kind == P_GRES || p->kind == P_WHOLE || p->kind == P_COMPANY || p->kind == P_TOGETHER;
		if (p->kind == P_TOGETHER && p->fit == bitset_count(k->in->nodes) && p->free == k->up)
			continue; /* says nothing the others do not */
		Pb__WhyFilter *f = row_add(item, kind_name[p->kind], xstrdup(p->want), p->fit);
		f->alone = p->alone;
		f->has_free = now;
		f->free = p->free;
	}
	sets_fill(k, item);
}

/* --- who has them ----------------------------------------------------------------------------- */

struct holder { const struct core_job *job; uint64_t end_ms; uint32_t nodes; };

static uint64_t by_job(const struct holder *h) { return h->job->id; }
static uint64_t by_end(const struct holder *h) { return h->end_ms; }

/* Smallest key first; equal ones keep their order. */
static void holders_sort(struct holder *h, size_t n, uint64_t (*key)(const struct holder *))
{
	struct moment *m = xmalloc((n + 1) * sizeof *m), *tmp = xmalloc((n + 1) * sizeof *tmp);
	struct holder *copy = xmemdup(h, n * sizeof *h);
	for (size_t i = 0; i < n; i++)
		m[i] = (struct moment){ key(&h[i]), (uint32_t)i };
	moments_sort(m, (uint32_t)n, tmp);
	for (size_t i = 0; i < n; i++)
		h[i] = copy[m[i].node];
	free(copy);
	free(m);
	free(tmp);
}

/* Jobs on the nodes that could serve it and have no room now, soonest end first. */
static struct holder *holders_find(const struct count *k, size_t *ret_n)
{
	struct holder *h = NULL;
	size_t n = 0, cap = 0, m = 0;
	bitset_for(k->able, x) {
		const struct core_node *node = k->w->c->node[x];
		for (size_t i = 0; !bitset_has(k->room, x) && i < node->held_n; i++) {
			h = xgrow(h, &cap, n + 1, sizeof *h);
			h[n++] = (struct holder){ node->held[i].job, 0, 1 };
		}
	}
	if (n)
		holders_sort(h, n, by_job);
	for (size_t i = 0; i < n; i++) {
		if (m && h[m - 1].job == h[i].job) {
			h[m - 1].nodes++;
			continue;
		}
		h[m++] = (struct holder){ h[i].job, job_end_ms(k->w->c, h[i].job), 1 };
	}
	if (m)
		holders_sort(h, m, by_end);
	*ret_n = m;
	return h;
}

static void holders_tell(const struct count *k, Pb__WhyItem *item)
{
	size_t n;
	struct holder *h = holders_find(k, &n);
	for (size_t i = 0; i < n && i < HOLDERS_SHOWN; i++) {
		const struct core_job *o = h[i].job;
		bool gone = (o->flags & JOBF_COMPLETING) != 0, endless = o->time_min == TIME_INFINITE && !gone;
		const char *what = gone ? "completing" : o->state == PB__JOB_STATE__SUSPENDED ? "suspended" : "running";
		why_holder(k->w, item, o, what, h[i].nodes, 0, endless ? 0 : h[i].end_ms / 1000);
	}
	why_number(item, "holders", (int64_t)n);
	free(h);
}

/* Planned starts of jobs before it on these nodes, each job once. */
static void planned_tell(const struct count *k, Pb__WhyItem *item)
{
	const struct promise *told[HOLDERS_SHOWN];
	uint32_t n = 0;
	bitset_for(k->able, x) {
		const struct core_node *node = k->w->c->node[x];
		for (uint32_t i = 0; i < node->plan_n && n < HOLDERS_SHOWN; i++) {
			const struct promise *p = node->plan[i].p;
			bool seen = p->job == k->w->j || !job_before(p->job, k->w->j);
			for (uint32_t t = 0; t < n; t++)
				seen = seen || told[t] == p;
			if (seen)
				continue;
			told[n++] = p;
			why_holder(k->w, item, p->job, "planned", p->n, p->start_ms / 1000, p->job->time_min == TIME_INFINITE ? 0 : p->end_ms / 1000);
		}
	}
}

/* --- nodes that are away ---------------------------------------------------------------------- */

static bool same_trouble(const struct core_node *a, const struct core_node *b)
{
	uint32_t fa, fb;
	return node_state_now(a, &fa) == node_state_now(b, &fb) && fa == fb && str_eq(a->rec->reason, b->rec->reason);
}

static void away_group(const struct count *k, struct bitset *left, uint32_t first)
{
	const struct core_node *n = k->w->c->node[first];
	struct bitset *b = bitset_create(k->w->c->node_n);
	char state[128];
	uint32_t flags, base = node_state_now(n, &flags);
	bitset_for(left, x)
		if (same_trouble(n, k->w->c->node[x]))
			bitset_set(b, x);
	bitset_andnot(left, b);
	node_state_full(base, flags, state, sizeof state);
	char *nodes = nodes_text(k->w->c, b);
	uint32_t count = bitset_count(b);
	Pb__WhyItem *i = why_condition(k->w, "node_state", "%u node%s that could serve it %s %s: %s%s%s", count, count == 1 ? "" : "s", count == 1 ? "is" : "are", state, nodes,
				       n->rec->reason && n->rec->reason[0] ? ", reason: " : "", n->rec->reason ? n->rec->reason : "");
	why_number(i, "nodes", count);
	why_text(i, "node_list", nodes);
	why_text(i, "state", state);
	why_text(i, "reason", n->rec->reason);
	why_text(i, "partition", k->in->rec->name);
	if (n->rec->has_reason_time && n->rec->reason_time)
		why_number(i, "since", (int64_t)n->rec->reason_time);
	why_clears(i, 0, flags & (NODEF_DRAIN | NODEF_FAIL) ? "an operator mends and resumes them: scontrol update NodeName=%s State=RESUME" : "slurmd on %s answers again, or an operator resumes them", nodes);
	free(nodes);
	bitset_destroy(b);
}

static void away_tell(const struct count *k)
{
	struct bitset *left = bitset_copy(k->able);
	bitset_andnot(left, k->w->c->up);
	for (uint32_t g = 0; g < GROUPS_SHOWN && !bitset_empty(left); g++)
		away_group(k, left, bitset_next(left, 0));
	bitset_destroy(left);
}

/* --- the verdict for one partition ------------------------------------------------------------ */

static bool room_in(struct why *w, uint32_t p, bool any_switches)
{
	const struct shape *s = w->j->shape;
	struct when now = now_when(w, s->part[p]);
	struct fit *f = NULL;
	now.any_switches = any_switches;
	if (s->part[p]->state != PART_UP && s->part[p]->state != PART_DRAIN)
		return false;
	struct bitset *b = bitset_copy(s->able[p]);
	bitset_and(b, w->c->up);
	if (!part_shares(s, s->part[p]))
		bitset_and(b, s->exclusive ? w->c->idle : w->c->roomy);
	resv_candidates(w->c, w->in, b);
	bool yes = place_choose(w->c, s, b, &now, &f) > 0;
	if (yes)
		free(f);
	bitset_destroy(b);
	return yes;
}

bool why_room(struct why *w, uint32_t p) { return room_in(w, p, false); }

static bool ever(struct why *w, uint32_t p, const struct bitset *among)
{
	struct fit *f = NULL;
	if (!place_choose(w->c, w->j->shape, among, &(struct when){ .part = w->j->shape->part[p] }, &f))
		return false;
	free(f);
	return true;
}

/* Nodes of the smallest units of the network: under one leaf switch, in one base block. The most of `nodes` in one. */
static uint32_t most_in_one(const struct topo *t, const struct bitset *nodes)
{
	uint32_t most = 0;
	for (uint32_t u = 0; u < t->unit_n; u++) {
		uint32_t n = t->unit[u].level ? 0 : bitset_count_and(t->unit[u].nodes, nodes);
		most = n > most ? n : most;
	}
	return most;
}

/* Enough nodes have room, but they do not lie together in the network as the request or the topology wants it. NULL: that is not what is missing. */
static Pb__WhyItem *apart(const struct count *k, uint32_t p)
{
	struct why *w = k->w;
	const struct shape *s = k->s;
	const struct core_job *j = w->j;
	const struct topo *t = k->in->topo;
	uint32_t kept = bitset_count(k->kept), most;
	Pb__WhyItem *i;
	if (!t || t->kind == TOPO_FLAT || kept < s->min_nodes || why_room(w, p) || (!w->c->topo_short && !(s->switches && room_in(w, p, true))))
		return NULL;
	most = most_in_one(t, k->kept);
	if (s->switches) {
		uint64_t until = j->switch_ms ? (j->switch_ms + topology_wait_ms(w->c, s)) / 1000 : 0;
		i = why_condition(w, "switches", "%u nodes of partition %s have room, but no %u of them are under %u leaf switch%s (--switches); the most under one are %u", kept, k->in->rec->name, s->min_nodes,
				  s->switches, s->switches == 1 ? "" : "es", most);
		why_number(i, "switches", s->switches);
		why_clears(i, until, until ? "room under fewer switches; from {@%llu} on it starts under any" : "room under fewer switches", (unsigned long long)until);
	} else {
		uint32_t seg = s->segment ? s->segment : s->min_nodes;
		i = why_condition(w, "network", "%u nodes of partition %s have room, but they do not make %u segment%s of %u nodes that lie together; the most in one %s are %u", kept, k->in->rec->name,
				  (s->min_nodes + seg - 1) / seg, s->min_nodes > seg ? "s" : "", seg, t->kind == TOPO_BLOCK ? "block" : "leaf switch", most);
		why_number(i, "segment", seg);
		why_clears(i, 0, "jobs end on nodes that lie together; or --segment with fewer nodes");
	}
	why_text(i, "topology", t->name);
	why_number(i, "most_in_one", most);
	return i;
}

static bool held_any(const struct count *k)
{
	bool any = false;
	bitset_for(k->able, i)
		any = any || k->w->c->node[i]->held_n;
	return any;
}

static Pb__WhyItem *verdict(const struct count *k, uint32_t p)
{
	struct why *w = k->w;
	const struct shape *s = k->s;
	const char *name = k->in->rec->name;
	uint32_t all = bitset_count(k->in->nodes), able = bitset_count(k->able), room = bitset_count(k->room), kept = bitset_count(k->kept);
	struct bitset *up = bitset_copy(k->able);
	Pb__WhyItem *i;
	bitset_and(up, w->c->up);
	if (!ever(w, p, s->able[p])) {
		i = why_condition(w, "impossible", "partition %s can never serve it: %u of its %u nodes have what it asks for, %u at once and %u tasks are needed", name, able, all, s->min_nodes, s->tasks);
		why_clears(i, 0, "a smaller request, another partition, or nodes added to this one");
	} else if (!ever(w, p, up)) {
		i = why_condition(w, "nodes_away", "too few nodes of partition %s are in service: %u could serve it, %u of them %s up, %u %s needed at once", name, able, k->up,
				  k->up == 1 ? "is" : "are", s->min_nodes, s->min_nodes == 1 ? "is" : "are");
		why_clears(i, 0, "nodes come back (see node_state)");
	} else if ((i = apart(k, p))) {
		; /* told */
	} else if (room >= s->min_nodes && kept < s->min_nodes) {
		i = why_condition(w, "planned", "%u node%s of partition %s %s room, but on %u of them it is promised to jobs before it", room, room == 1 ? "" : "s", name,
				  room == 1 ? "has" : "have", room - kept);
		why_clears(i, 0, "the planned jobs have run; or a time limit that ends before they start");
	} else {
		i = why_condition(w, "nodes", "%u node%s of partition %s %s needed at once: %u of its %u could serve it, %u have room now", s->min_nodes, s->min_nodes == 1 ? "" : "s", name, s->min_nodes == 1 ? "is" : "are", able, all, room);
		why_clears(i, w->j->promise ? w->j->promise->start_ms / 1000 : 0, w->j->promise ? "the jobs on them end, at the latest {@%llu}" : held_any(k) ? "jobs on them end" : "what keeps them from it is over (see reserved, node_state)", w->j->promise ? (unsigned long long)w->j->promise->start_ms / 1000 : 0ull);
	}
	bitset_destroy(up);
	return i;
}

void why_nodes(struct why *w, uint32_t p)
{
	struct count k = { .w = w, .s = w->j->shape, .in = w->j->shape->part[p] };
	if (why_room(w, p))
		return;
	count_all(&k);
	Pb__WhyItem *i = verdict(&k, p);
	why_text(i, "partition", k.in->rec->name);
	why_number(i, "nodes", bitset_count(k.in->nodes));
	why_number(i, "able", bitset_count(k.able));
	why_number(i, "up", k.up);
	why_number(i, "room", bitset_count(k.room));
	why_number(i, "room_not_promised", bitset_count(k.kept));
	why_number(i, "needed", k.s->min_nodes);
	why_number(i, "tasks", k.s->tasks);
	why_number(i, "tasks_room", k.tasks_now);
	if (!w->ask->brief && !w->ask->hide_nodes)
		table_fill(&k, i);
	holders_tell(&k, i);
	planned_tell(&k, i);
	away_tell(&k);
	count_fini(&k);
}
