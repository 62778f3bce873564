/* reserve_pick.c - where: the nodes, cores and devices a reservation holds, when it is made and when one is replaced
 * Nodes named by hand are taken as they are, or refused. Else they are chosen: free of other reservations and of jobs at that time, idle ones first, in
 * order of index. Nothing of the core's state changes here but the reservation itself (and the nodes' lists of what is reserved on them). */
#include <ctype.h>
#include <stdlib.h>

#include "core/reserve.h"
#include "model/hostlist.h"
#include "model/idset.h"

#define TERMS_MAX 16

struct term { struct bitset *nodes; uint32_t count; };   /* so many nodes of these */
struct pick { struct core *c; struct resv *r; struct error *err; struct wants gres; uint32_t cores, nodes; bool whole; };

/* --- what is free for it ---------------------------------------------------------------------- */

static bool outranks(const struct resv *r) { return r->flags & (RESVF_MAINT | RESVF_OVERLAP); }

static bool taken_by(const struct core *c, const struct resv *r, const struct resv *other, bool chosen)
{
	if (r->id == other->id || !resv_meet(c, r, other))
		return false;
	if (chosen && other->flags & RESVF_MAINT)
		return true; /* chosen nodes are to be of use */
	return !outranks(r) && !outranks(other);
}

static bool overlapped(const struct core *c, const struct resv *r, const struct core_node *n, bool chosen, bool whole)
{
	for (uint32_t i = 0; i < n->resv_n; i++)
		if ((whole || !n->resv[i].words) && taken_by(c, r, n->resv[i].r, chosen))
			return true;
	return false;
}

/* Some job will still be there when it begins? */
static bool job_stays(const struct core *c, const struct resv *r, const struct core_job *j)
{
	return j->resv_id != r->id && job_end_ms(c, j) > (uint64_t)resv_start(c, r) * 1000;
}

static bool busy(const struct core *c, const struct resv *r, const struct core_node *n)
{
	for (size_t i = 0; !(r->flags & RESVF_IGNORE_JOBS) && i < n->held_n; i++)
		if (job_stays(c, r, n->held[i].job))
			return true;
	return false;
}

/* CPUs and devices of n that it may have, as bits; the caller's buf. */
static void free_words(const struct core *c, const struct resv *r, const struct core_node *n, uint64_t *buf)
{
	uint32_t words = n->cpu_words + n->dev_words;
	memset(buf, 0xff, words * sizeof *buf);
	if (n->cpus % 64)
		buf[n->cpu_words - 1] = (1ULL << (n->cpus % 64)) - 1;
	for (size_t i = 0; !(r->flags & RESVF_IGNORE_JOBS) && i < n->held_n; i++) {
		const struct core_job *j = n->held[i].job;
		const uint64_t *w = j->alloc->words + j->alloc->on[n->held[i].at].bits;
		for (uint32_t k = 0; job_stays(c, r, j) && k < words; k++)
			buf[k] &= j->alloc->exclusive ? 0 : ~w[k];
		for (uint32_t g = 0; n->shards && job_stays(c, r, j) && g < n->gres_n; g++)
			if (n->gres[g].shard && w[words + g])
				buf[n->cpu_words + n->gres[g].of / 64] &= ~(1ULL << (n->gres[g].of % 64));
	}
	for (uint32_t i = 0; i < n->resv_n; i++)
		for (uint32_t k = 0; taken_by(c, r, n->resv[i].r, false) && k < words; k++)
			buf[k] &= n->resv[i].words ? ~n->resv[i].words[k] : 0;
}

/* --- parts of nodes --------------------------------------------------------------------------- */

static bool core_free(const struct core_node *n, const uint64_t *w, uint32_t core)
{
	for (uint32_t k = core * n->threads; k < (core + 1) * n->threads; k++)
		if (!(w[k / 64] >> (k % 64) & 1))
			return false;
	return true;
}

static uint32_t cores_of(const struct core_node *n) { return n->cpus / n->threads; }

static uint32_t free_cores(const struct core_node *n, const uint64_t *w)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < cores_of(n); i++)
		k += core_free(n, w, i);
	return k;
}

static uint32_t free_devices(const struct core_node *n, const uint64_t *w, const struct want *want)
{
	uint32_t k = 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		for (uint32_t d = n->gres[g].bit0; wants_match(want, &n->gres[g]) && n->gres[g].by_device && d < n->gres[g].bit0 + n->gres[g].count; d++)
			k += w[n->cpu_words + d / 64] >> (d % 64) & 1;
	return k;
}

/* Cores that go with so many devices of n where none are asked for: as large a share of the node. */
static uint32_t share_cores(const struct core_node *n, const struct want *want, uint32_t devices)
{
	uint32_t all = 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		all += wants_match(want, &n->gres[g]) ? n->gres[g].count : 0;
	return all ? (cores_of(n) * devices + all - 1) / all : 0;
}

static void part_add(struct pick *p, const struct core_node *n, const uint64_t *w, uint32_t cores, const uint32_t *devices)
{
	struct resv *r = p->r;
	r->part = xrealloc(r->part, (r->part_n + 1) * sizeof *r->part);
	struct resv_part *q = &r->part[r->part_n++];
	*q = (struct resv_part){ .node = n->index, .words = xcalloc(n->cpu_words + n->dev_words + 1, sizeof *q->words) };
	for (uint32_t i = 0; i < cores_of(n) && cores; i++) {
		if (!core_free(n, w, i))
			continue;
		for (uint32_t k = i * n->threads; k < (i + 1) * n->threads; k++, q->cpus++)
			q->words[k / 64] |= 1ULL << (k % 64);
		cores--;
	}
	for (uint32_t x = 0; x < p->gres.n; x++) {
		uint32_t left = devices[x];
		for (uint32_t g = 0; g < n->gres_n; g++)
			for (uint32_t d = n->gres[g].bit0; left && wants_match(&p->gres.w[x], &n->gres[g]) && n->gres[g].by_device && d < n->gres[g].bit0 + n->gres[g].count; d++)
				if (w[n->cpu_words + d / 64] >> (d % 64) & 1) {
					q->words[n->cpu_words + d / 64] |= 1ULL << (d % 64);
					left--;
				}
	}
	bitset_set(r->nodes, n->index);
}

/* Gives what it can of what is still to be found, at most its share of `of` nodes. False: nothing. */
static bool part_from(struct pick *p, const struct core_node *n, uint32_t of, uint32_t *cores, uint32_t *left)
{
	uint64_t *w = xmalloc((n->cpu_words + n->dev_words + 1) * sizeof *w);
	uint32_t give[WANT_MAX] = { 0 }, some = 0, want = 0, have;
	bool each = p->r->rec->ask_per_node, ok = true;
	free_words(p->c, p->r, n, w);
	have = free_cores(n, w);
	for (uint32_t x = 0; x < p->gres.n; x++) {
		uint32_t share = each ? (uint32_t)p->gres.w[x].count : of ? (left[x] + of - 1) / of : left[x], k = free_devices(n, w, &p->gres.w[x]);
		give[x] = k < share ? k : share;
		ok = ok && !(each && k < share);
		want = p->cores ? want : (share_cores(n, &p->gres.w[x], give[x]) > want ? share_cores(n, &p->gres.w[x], give[x]) : want);
		some += give[x];
	}
	if (p->cores)
		want = of ? (*cores + of - 1) / of : *cores;
	want = want < have ? want : have;
	ok = ok && (some || (!p->gres.n && want)) && (want || !p->cores);
	if (ok) {
		part_add(p, n, w, want, give);
		*cores -= want < *cores ? want : *cores;
		for (uint32_t x = 0; x < p->gres.n; x++)
			left[x] -= each ? 0 : give[x];
	}
	free(w);
	return ok;
}

static int pick_parts(struct pick *p, const struct bitset *cand)
{
	uint32_t left[WANT_MAX] = { 0 }, cores = p->cores, nodes = p->nodes;
	bool each = p->r->rec->ask_per_node, done = false;
	for (uint32_t x = 0; x < p->gres.n; x++)
		left[x] = (uint32_t)p->gres.w[x].count;
	bitset_for(cand, i) {
		const struct core_node *n = p->c->node[i];
		if (done || overlapped(p->c, p->r, n, false, false) || !part_from(p, n, nodes, &cores, left))
			continue;
		nodes -= nodes ? 1 : 0;
		done = p->nodes ? !nodes : !cores;
		for (uint32_t x = 0; x < p->gres.n && !each && !p->nodes; x++)
			done = done && !left[x];
	}
	bool lacks = cores > 0 || nodes > 0;
	for (uint32_t x = 0; x < p->gres.n && !each; x++)
		lacks = lacks || left[x];
	p->r->partial = true;
	return lacks || !p->r->part_n ? error_set(p->err, ESLURM_NODES_BUSY, "Requested nodes are busy") : 0;
}

/* --- whole nodes ------------------------------------------------------------------------------ */

static bool good(const struct core *c, const struct resv *r, uint32_t i)
{
	const struct core_node *n = c->node[i];
	return bitset_has(c->up, i) && !overlapped(c, r, n, true, true) && !busy(c, r, n);
}

/* Takes `count` of t's nodes: those of `keep` first, then idle ones, then others. Returns how many were found. */
static uint32_t take_term(struct core *c, const struct resv *r, const struct term *t, const struct bitset *keep, struct bitset *out, bool idle_only)
{
	uint32_t got = 0;
	for (int round = 0; round < 3; round++)
		bitset_for(t->nodes, i) {
			bool kept = keep && bitset_has(keep, i);
			if (got == t->count || bitset_has(out, i) || (round == 0) != kept || (!kept && !good(c, r, i)) || (round == 1 && !bitset_has(c->idle, i)) || (round == 2 && idle_only))
				continue;
			bitset_set(out, i);
			got++;
		}
	return got;
}

/* "[a*2&(b|c)*1]" or one expression -> terms on the nodes of cand. */
static int terms_parse(struct pick *p, const struct bitset *cand, struct term *t, uint32_t *ret_n)
{
	const char *text = p->r->rec->features;
	*ret_n = 0;
	if (!text || !text[0] || text[0] != '[') {
		t[0] = (struct term){ bitset_copy(cand), p->nodes };
		*ret_n = 1;
		struct bitset *f = NULL;
		if (text && text[0] && feature_match(p->c, text, &f, p->err) < 0)
			return error_set(p->err, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "Requested node configuration is not available");
		if (f)
			bitset_and(t[0].nodes, f);
		bitset_destroy(f);
		return 0;
	}
	char *copy = xstrndup(text + 1, strcspn(text + 1, "]")), *at = copy;
	int rc = 0;
	while (rc >= 0 && *at && *ret_n < TERMS_MAX) {
		char *star = strchr(at, '*');
		struct bitset *f = NULL;
		unsigned long count = star ? strtoul(star + 1, NULL, 10) : 0;
		if (star)
			*star = 0;
		if (!count || feature_match(p->c, at, &f, p->err) < 0) {
			rc = error_set(p->err, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "Requested node configuration is not available");
			break;
		}
		bitset_and(f, cand);
		t[(*ret_n)++] = (struct term){ f, (uint32_t)count };
		at = star + 1;
		while (isdigit((unsigned char)*at) || *at == '&')
			at++;
	}
	free(copy);
	return rc;
}

static int pick_whole(struct pick *p, const struct bitset *cand)
{
	struct term t[TERMS_MAX];
	uint32_t n = 0, sum = 0, found = 0;
	int rc = terms_parse(p, cand, t, &n);
	for (uint32_t i = 0; i < n; i++) {
		sum += t[i].count;
		found += rc < 0 ? 0 : take_term(p->c, p->r, &t[i], NULL, p->r->nodes, false);
		bitset_destroy(t[i].nodes);
	}
	if (rc < 0)
		return rc;
	p->r->rec->has_ask_nodes = true;
	p->r->rec->ask_nodes = sum;
	return found < sum ? error_set(p->err, ESLURM_NODES_BUSY, "Requested nodes are busy") : 0;
}

static int check_named(struct pick *p, const struct bitset *b)
{
	bitset_for(b, i) {
		const struct core_node *n = p->c->node[i];
		if (overlapped(p->c, p->r, n, false, true))
			return error_set(p->err, ESLURM_RESERVATION_OVERLAP, "Requested reservation overlaps with another reservation");
		if (busy(p->c, p->r, n))
			return error_set(p->err, ESLURM_NODES_BUSY, "Requested nodes are busy");
	}
	bitset_assign(p->r->nodes, b);
	return 0;
}

static int asked_gres(struct pick *p)
{
	const char *text = p->r->rec->ask_tres;
	if (text && text[0] && wants_parse(p->c, text, &p->gres, p->err) < 0)
		return error_set(p->err, ESLURM_INVALID_TRES, "Invalid Trackable RESource (TRES) specification");
	return 0;
}

static void parts_drop(struct resv *r)
{
	for (uint32_t i = 0; i < r->part_n; i++)
		free(r->part[i].words);
	xfree(r->part);
	r->part_n = 0;
	r->partial = false;
}

/* The first of AllowedPartitions, else the default. */
static struct core_part *first_allowed(const struct core *c, const Pb__ReservationRecord *m)
{
	const char *list = m->allowed_partitions;
	char *first = list && list[0] != '-' ? xstrndup(list, strcspn(list, ",")) : NULL;
	struct core_part *p = first ? part_find(c, first) : NULL;
	free(first);
	return p ? p : part_default(c);
}

/* rec->nodes names them (SPEC_NODES), or NodeCnt, CoreCnt, TRES, partition and features say what to look for. */
int resv_pick(struct core *c, struct resv *r, struct error *err)
{
	Pb__ReservationRecord *m = r->rec;
	struct pick p = { .c = c, .r = r, .err = err, .cores = m->ask_cores, .nodes = m->ask_nodes };
	struct bitset *cand = NULL;
	struct core_part *part = m->partition && m->partition[0] ? part_find(c, m->partition) : first_allowed(c, m);
	bool named = r->flags & RESVF_SPEC_NODES, parts;
	parts_drop(r);
	bitset_destroy(r->nodes);
	r->nodes = bitset_create(c->node_n);
	if (r->flags & RESVF_ANY_NODES && !named && !p.nodes)
		return 0;
	int rc = asked_gres(&p);
	parts = p.cores || p.gres.n;
	if (rc >= 0 && named)
		rc = nodes_bitset(c, m->nodes, &cand, err);
	else if (rc >= 0 && part)
		cand = bitset_copy(part->nodes);
	else if (rc >= 0)
		rc = error_set(err, ESLURM_DEFAULT_PARTITION_NOT_SET, "no partition was named and none is the default");
	if (rc >= 0 && named && parts)
		p.nodes = bitset_count(cand);
	if (rc >= 0 && (!named || parts) && part) {
		if (!m->partition || !m->partition[0])
			xstr_set(&m->partition, part->rec->name);
		if (parts && !named)
			bitset_and(cand, c->up);
	}
	if (rc >= 0)
		rc = parts ? pick_parts(&p, cand) : named ? check_named(&p, cand) : pick_whole(&p, cand);
	bitset_destroy(cand);
	return rc;
}

int resv_resize(struct core *c, struct resv *r, const struct resv *old, struct error *err)
{
	struct pick p = { .c = c, .r = r, .err = err, .nodes = r->rec->ask_nodes };
	struct core_part *part = r->rec->partition && r->rec->partition[0] ? part_find(c, r->rec->partition) : part_default(c);
	struct term t[TERMS_MAX];
	uint32_t n = 0, found = 0, sum = 0;
	r->nodes = bitset_create(c->node_n);
	if (!part)
		return error_set(err, ESLURM_DEFAULT_PARTITION_NOT_SET, "no partition was named and none is the default");
	if (!r->rec->partition)
		xstr_set(&r->rec->partition, part->rec->name);
	struct bitset *cand = bitset_copy(part->nodes);
	bitset_or(cand, old->nodes);
	int rc = terms_parse(&p, cand, t, &n);
	for (uint32_t i = 0; i < n; i++) {
		sum += t[i].count;
		found += rc < 0 ? 0 : take_term(c, r, &t[i], old->nodes, r->nodes, false);
		bitset_destroy(t[i].nodes);
	}
	bitset_destroy(cand);
	return rc < 0 ? rc : !found || found < sum ? error_set(err, ESLURM_NODES_BUSY, "Requested nodes are busy") : 0;
}

/* --- replacing -------------------------------------------------------------------------------- */

static bool bad_node(const struct core *c, const struct resv *r, uint32_t i)
{
	return !bitset_has(c->up, i) || (r->flags & RESVF_REPLACE && !bitset_has(c->idle, i));
}

bool resv_replace(struct core *c, struct resv *r)
{
	struct pick p = { .c = c, .r = r, .nodes = r->rec->ask_nodes };
	struct core_part *part = part_find(c, r->rec->partition);
	struct term t[TERMS_MAX];
	uint32_t n = 0;
	if (r->flags & (RESVF_SPEC_NODES | RESVF_STATIC_ALLOC | RESVF_MAINT | RESVF_TIME_FLOAT) || r->partial || !part || !p.nodes)
		return false;
	struct bitset *keep = bitset_copy(r->nodes), *out = bitset_create(c->node_n);
	bool bad = false, changed = false;
	bitset_for(r->nodes, i)
		if (bad_node(c, r, i)) {
			bitset_clear(keep, i);
			bad = true;
		}
	if (bad && terms_parse(&p, part->nodes, t, &n) >= 0) {
		for (uint32_t i = 0; i < n; i++)
			(void)take_term(c, r, &t[i], keep, out, true);
		bitset_for(r->nodes, i) /* what cannot be replaced stays */
			if (bitset_count(out) < p.nodes)
				bitset_set(out, i);
		changed = !bitset_equal(out, r->nodes);
	}
	for (uint32_t i = 0; i < n; i++)
		bitset_destroy(t[i].nodes);
	if (changed) {
		resv_unhold(c, r);
		bitset_assign(r->nodes, out);
		resv_hold(c, r);
	}
	bitset_destroy(keep);
	bitset_destroy(out);
	return changed;
}

/* --- on the nodes ----------------------------------------------------------------------------- */

void resv_unhold(struct core *c, struct resv *r)
{
	for (uint32_t i = 0; i < c->node_n; i++) {
		struct core_node *n = c->node[i];
		uint32_t k = 0;
		for (uint32_t x = 0; x < n->resv_n; x++)
			if (n->resv[x].r != r)
				n->resv[k++] = n->resv[x];
		if (k != n->resv_n)
			sched_gained(c, i);
		n->resv_n = k;
	}
}

static uint32_t device_bits(const struct core_node *n)
{
	uint32_t k = 0;
	for (uint32_t g = 0; g < n->gres_n; g++)
		k += n->gres[g].by_device ? n->gres[g].count : 0;
	return k;
}

static void part_texts(struct core *c, struct resv *r)
{
	Pb__ReservationRecord *m = r->rec;
	struct effects *own = effects_create();
	for (size_t i = 0; i < m->n_part; i++)
		pb__resv_part__free_unpacked(m->part[i], NULL);
	free(m->part);
	m->n_part = 0;
	m->part = xcalloc(r->part_n + 1, sizeof *m->part);
	for (uint32_t i = 0; i < r->part_n; i++) {
		const struct core_node *n = c->node[r->part[i].node];
		Pb__ResvPart *q = m->part[m->n_part++] = xcalloc(1, sizeof *q);
		uint64_t *cores = xcalloc(n->cpu_words + 1, sizeof *cores), *all = xcalloc(n->cpu_words + n->dev_words + n->gres_n + 1, sizeof *all);
		Pb__GresAlloc **g;
		pb__resv_part__init(q);
		q->nodes = xstrdup(n->name);
		q->cpu_ids = bits_text(r->part[i].words, n->cpus);
		q->dev_ids = bits_text(r->part[i].words + n->cpu_words, device_bits(n));
		for (uint32_t k = 0; k < cores_of(n); k++)
			if (core_free(n, r->part[i].words, k)) /* all its threads are in */
				cores[k / 64] |= 1ULL << (k % 64);
		q->core_ids = bits_text(cores, cores_of(n));
		memcpy(all, r->part[i].words, (n->cpu_words + n->dev_words) * sizeof *all);
		for (uint32_t k = 0; k < n->gres_n; k++)
			for (uint32_t d = n->gres[k].bit0; n->gres[k].by_device && d < n->gres[k].bit0 + n->gres[k].count; d++)
				all[n->cpu_words + n->dev_words + k] += all[n->cpu_words + d / 64] >> (d % 64) & 1;
		q->n_gres = record_gres(c, n, all, &g, effects_arena(own));
		q->gres = xcalloc(q->n_gres + 1, sizeof *q->gres);
		for (size_t k = 0; k < q->n_gres; k++)
			q->gres[k] = (Pb__GresAlloc *)message_copy((const ProtobufCMessage *)g[k]);
		free(cores);
		free(all);
	}
	effects_destroy(own);
}

void resv_texts(struct core *c, struct resv *r)
{
	Pb__ReservationRecord *m = r->rec;
	struct tres_sum t = { 0 };
	uint32_t cores = 0;
	free(m->nodes);
	m->nodes = nodes_text(c, r->nodes);
	m->has_node_cnt = m->has_core_cnt = m->has_flags = m->has_start_time = m->has_end_time = m->has_wall_start = m->has_wall_end = true;
	m->node_cnt = bitset_count(r->nodes);
	m->flags = r->flags;
	m->start_time = (uint64_t)r->start;
	m->end_time = (uint64_t)r->end;
	m->wall_start = r->wall_start;
	m->wall_end = r->wall_end;
	part_texts(c, r);
	for (uint32_t i = 0; i < r->part_n; i++) {
		t.cpu += r->part[i].cpus;
		cores += r->part[i].cpus / c->node[r->part[i].node]->threads;
		for (size_t k = 0; k < m->part[i]->n_gres; k++)
			tres_add_gres(&t, m->part[i]->gres[k]->name, m->part[i]->gres[k]->type ? m->part[i]->gres[k]->type : "", m->part[i]->gres[k]->count);
	}
	if (!r->partial)
		bitset_for(r->nodes, i) {
			t.cpu += c->node[i]->cpus;
			cores += cores_of(c->node[i]);
		}
	m->core_cnt = cores;
	free(m->tres);
	m->tres = tres_format(&t, c->params.tres_extra && strchr(c->params.tres_extra, ':'));
}

void resv_hold(struct core *c, struct resv *r)
{
	uint32_t k = 0;
	bitset_for(r->nodes, i) {
		struct core_node *n = c->node[i];
		while (r->partial && r->part[k].node != i)
			k++;
		n->resv = xgrow(n->resv, &n->resv_cap, n->resv_n + 1, sizeof *n->resv);
		n->resv[n->resv_n++] = (struct node_resv){ r, r->partial ? r->part[k].words : NULL, r->partial ? r->part[k].cpus : n->cpus };
	}
	resv_texts(c, r);
}

/* Nodes and parts by name, from the record: what is gone is left out. */
int resv_restore_parts(struct core *c, struct resv *r)
{
	const Pb__ReservationRecord *m = r->rec;
	parts_drop(r);
	bitset_destroy(r->nodes);
	r->nodes = bitset_create(c->node_n);
	r->partial = m->n_part > 0;
	struct hostlist hl = HOSTLIST_INIT;
	if (!r->partial && m->nodes && hostlist_add(&hl, m->nodes, NULL) >= 0)
		for (size_t i = 0; i < hl.count; i++) {
			int at = core_node_find(c, hl.name[i]);
			if (at >= 0)
				bitset_set(r->nodes, (uint32_t)at);
		}
	hostlist_fini(&hl);
	for (uint32_t i = 0; i < c->node_n; i++)
		for (size_t k = 0; k < m->n_part; k++) {
			struct core_node *n = c->node[i];
			struct bitset *cpus = NULL;
			if (strcmp(m->part[k]->nodes, n->name) || idset_parse(m->part[k]->cpu_ids, n->cpus, &cpus, NULL) < 0)
				continue;
			r->part = xrealloc(r->part, (r->part_n + 1) * sizeof *r->part);
			struct resv_part *q = &r->part[r->part_n++];
			*q = (struct resv_part){ .node = i, .cpus = bitset_count(cpus), .words = xcalloc(n->cpu_words + n->dev_words + 1, sizeof *q->words) };
			memcpy(q->words, cpus->bits, n->cpu_words * sizeof *q->words);
			bitset_destroy(cpus);
			if (m->part[k]->dev_ids && m->part[k]->dev_ids[0] && idset_parse(m->part[k]->dev_ids, device_bits(n), &cpus, NULL) >= 0) {
				memcpy(q->words + n->cpu_words, cpus->bits, n->dev_words * sizeof *q->words);
				bitset_destroy(cpus);
			}
			bitset_set(r->nodes, i);
		}
	return 0;
}
