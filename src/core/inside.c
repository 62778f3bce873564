/* inside.c - which CPUs and devices of one node a request gets
 * CPUs are handed out in units (CPUs, cores or sockets: SelectTypeParameters). CPU ids are core-major, so a socket is a run of ids. Devices of one kind
 * on one node are alike within an entry of gres.conf; entries differ in the cores near them and the links to each other. Counts are
 * decided first (inside_gres: near each other, and where they leave the least useless rest), then CPUs near the devices. */
#include <stdlib.h>

#include "core/state.h"

uint32_t inside_unit(const struct core *c, const struct core_node *n)
{
	if (c->params.select_sockets)
		return n->cores_per_socket * n->threads;
	return c->params.select_cores ? n->threads : 1;
}

uint32_t inside_own_spec(const struct shape *s, const struct core_node *n)
{
	uint64_t k = s->spec_threads + (uint64_t)s->spec_cores * n->threads;
	return k < n->cpus ? (uint32_t)k : n->cpus;
}

uint32_t inside_cap(const struct shape *s, const struct core_node *n) { return s->own_spec ? n->cpus - inside_own_spec(s, n) : n->cap; }

uint32_t inside_charged(const struct core *c, const struct core_job *j)
{
	uint32_t k = j->alloc->cpus;
	for (uint32_t i = 0; j->alloc->own_spec && i < j->alloc->n; i++)
		k += inside_own_spec(j->shape, c->node[j->alloc->on[i].node]);
	return k;
}

static uint32_t socket_cpus(const struct core_node *n) { return n->cores_per_socket * n->threads; }

bool part_shares(const struct shape *s, const struct core_part *p)
{
	return p && p->share_max > 1 && !s->exclusive && (p->share_force || s->share);
}

/* --- CPUs ------------------------------------------------------------------------------------- */

/* Is the CPU free for one that shares: nobody's, or shared by few enough jobs of the same partition? */
static bool cpu_shared(const struct core_node *n, uint32_t i, uint32_t max)
{
	return !bit_of(n->used, i) || (n->shares && n->shares[i] && n->shares[i] < max);
}

/* CPUs of one partition are shared only among its own jobs. */
static bool other_sharers(const struct core_node *n, const struct core_part *p)
{
	for (size_t i = 0; i < n->held_n; i++)
		if (n->held[i].job->alloc->share && n->held[i].job->part != p->index)
			return true;
	return false;
}

uint32_t inside_shared(const struct core_node *n, const struct core_part *p)
{
	uint32_t k = 0, max = other_sharers(n, p) ? 1 : p->share_max;
	for (uint32_t i = 0; i < n->cpus && !n->whole; i++)
		k += !bit_of(n->spec, i) && cpu_shared(n, i, max);
	return k;
}

/* CPUs of whole free units in [from, to). */
static uint32_t free_units(const struct core *c, const struct core_node *n, const uint64_t *used, uint32_t from, uint32_t to)
{
	uint32_t unit = inside_unit(c, n), k = 0;
	for (uint32_t i = from; i < to; i += unit) {
		uint32_t got = 0;
		bool ok = true;
		for (uint32_t x = i; x < i + unit && x < to; x++) {
			ok = ok && !(used && bit_of(used, x));
			got += !bit_of(n->spec, x);
		}
		k += ok ? got : 0;
	}
	return k;
}

uint32_t inside_free(const struct core *c, const struct core_node *n, const uint64_t *used) { return free_units(c, n, used, 0, n->cpus); }

static uint32_t part_cpus(const struct core_node *n, const struct core_part *p, uint32_t from, uint32_t to)
{
	uint32_t k = 0;
	for (size_t i = 0; i < n->held_n; i++) {
		const struct core_job *j = n->held[i].job;
		const uint64_t *w = j->alloc->words + j->alloc->on[n->held[i].at].bits;
		for (uint32_t x = from; j->part == p->index && x < to; x++)
			k += bit_of(w, x);
	}
	return k;
}

static uint32_t less_of(uint32_t a, uint32_t b) { return a > b ? a - b : 0; }

uint32_t inside_limit(const struct core *c, const struct core_node *n, const struct core_part *p, const struct avail *a)
{
	uint32_t cpus = a->cpus, mine = a->used == n->used ? part_cpus(n, p, 0, n->cpus) : a->mine;
	if (p->max_node_cpus != UINT32_MAX && cpus > less_of(p->max_node_cpus, mine))
		cpus = less_of(p->max_node_cpus, mine);
	if (p->max_socket_cpus == UINT32_MAX)
		return cpus;
	uint32_t sum = 0;
	for (uint32_t s = 0; s < n->sockets; s++) {
		uint32_t from = s * socket_cpus(n), to = from + socket_cpus(n), k = free_units(c, n, a->used, from, to);
		uint32_t left = less_of(p->max_socket_cpus, a->used == n->used ? part_cpus(n, p, from, to) : 0);
		sum += k <= left ? k : left / inside_unit(c, n) * inside_unit(c, n);
	}
	return sum < cpus ? sum : cpus;
}

uint32_t inside_socket_tasks(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a)
{
	uint32_t sum = 0;
	for (uint32_t k = 0; k < n->sockets; k++) {
		uint32_t cpus = free_units(c, n, a->used, k * socket_cpus(n), (k + 1) * socket_cpus(n));
		if (s->threads && s->threads < n->threads)
			cpus = cpus / n->threads * s->threads;
		uint32_t t = s->overcommit ? s->per_socket : cpus / s->cpus_per_task;
		sum += t < s->per_socket ? t : s->per_socket;
	}
	return sum;
}

/* --- devices: how many of each entry ---------------------------------------------------------- */

static bool near_socket(const struct core_node *n, const struct node_gres *g, uint32_t socket)
{
	for (uint32_t i = socket * socket_cpus(n); g->cores && i < (socket + 1) * socket_cpus(n); i++)
		if (bit_of(g->cores, i))
			return true;
	return !g->cores;
}

static uint32_t left_of(const struct avail *a, const struct fit *f, uint32_t g) { return a->gres[g] - (f ? f->gres[g] : 0); }

/* Devices of w near one socket; those near none in particular count in `*ret_any`. */
static uint32_t left_near(const struct core_node *n, const struct avail *a, const struct fit *f, const struct want *w, uint32_t socket, uint32_t *ret_any)
{
	uint32_t k = 0;
	*ret_any = 0;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		if (!wants_match(w, &n->gres[g]))
			continue;
		if (!n->gres[g].cores)
			*ret_any += left_of(a, f, g);
		else if (near_socket(n, &n->gres[g], socket))
			k += left_of(a, f, g);
	}
	return k;
}

uint32_t inside_sockets_with(const struct core_node *n, const struct avail *a, const struct want *w)
{
	uint32_t sockets = 0, spent = 0, any;
	for (uint32_t s = 0; s < n->sockets; s++) {
		uint32_t k = left_near(n, a, NULL, w, s, &any), from_any = less_of((uint32_t)w->count, k);
		if (from_any > less_of(any, spent))
			continue;
		spent += from_any;
		sockets++;
	}
	return sockets;
}

static bool same_cores(const struct core_node *n, const struct node_gres *a, const struct node_gres *b)
{
	if (!a->cores || !b->cores)
		return a->cores == b->cores;
	return !memcmp(a->cores, b->cores, n->cpu_words * sizeof *a->cores);
}

/* Free devices in the same place as entry g. */
static uint32_t group_left(const struct core_node *n, const struct avail *a, const struct fit *f, const struct want *w, uint32_t g)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n->gres_n; i++)
		if (wants_match(w, &n->gres[i]) && same_cores(n, &n->gres[g], &n->gres[i]))
			k += left_of(a, f, i);
	return k;
}

/* Free CPUs near entry g, for a choice between places that have enough devices. */
static uint32_t group_cpus(const struct core_node *n, const struct avail *a, uint32_t g)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n->cpus; i++)
		k += !(a->used && bit_of(a->used, i)) && !bit_of(n->spec, i) && (!n->gres[g].cores || bit_of(n->gres[g].cores, i));
	return k;
}

static int32_t links_between(const struct core_node *n, uint32_t a, uint32_t b)
{
	const struct node_gres *x = &n->gres[a], *y = &n->gres[b];
	return x->links && y->first_index < x->links_n && x->links[y->first_index] > 0 ? x->links[y->first_index] : 0;
}

/* The entry to take the next device from: joined best to those taken already, then in the place of the first, then where the fewest are left that
 * are enough. `first` UINT32_MAX: none yet. */
static uint32_t entry_next(const struct core_node *n, const struct avail *a, const struct fit *f, const struct want *w, const uint32_t *mine, uint32_t first, uint32_t count)
{
	uint32_t best = UINT32_MAX;
	int64_t best_score = INT64_MIN;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		int64_t score = 0;
		if (!wants_match(w, &n->gres[g]) || !left_of(a, f, g))
			continue;
		uint32_t group = group_left(n, a, f, w, g);
		for (uint32_t i = 0; i < n->gres_n; i++)
			score += (int64_t)mine[i] * links_between(n, i, g) * 1000000;
		if (first != UINT32_MAX)
			score += same_cores(n, &n->gres[first], &n->gres[g]) ? 100000 : 0;
		score += group >= count ? 50000 - (int64_t)(group - count) * 64 : (int64_t)group; /* the tightest place that is enough, else the largest */
		if (first == UINT32_MAX && n->gres[g].cores)
			{
			uint32_t near = group_cpus(n, a, g), need = f->cpus ? f->cpus : 1;
			score += near >= need ? 30000 : 20000 * (int64_t)near / need;
		}
		if (score > best_score) {
			best = g;
			best_score = score;
		}
	}
	return best;
}

static int64_t set_links(const struct core_node *n, const uint32_t *mine)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < n->gres_n; i++)
		for (uint32_t k = 0; mine[i] && k < n->gres_n; k++)
			sum += mine[k] && k != i ? links_between(n, i, k) : 0;
	return sum;
}

/* Adds `count` devices of w, beginning with entry `first` (UINT32_MAX: the best one). */
static void set_grow(const struct core_node *n, const struct avail *a, const struct want *w, uint64_t count, uint32_t first, struct fit *f)
{
	uint32_t mine[GRES_MAX] = { 0 };
	bool fixed = first != UINT32_MAX;
	for (uint64_t left = count; left;) {
		uint32_t g = fixed && left == count ? first : entry_next(n, a, f, w, mine, first, (uint32_t)left);
		assert(g != UINT32_MAX);
		uint32_t take = n->gres[g].links ? 1 : left_of(a, f, g) < left ? left_of(a, f, g) : (uint32_t)left;
		first = first == UINT32_MAX ? g : first;
		f->gres[g] += take;
		mine[g] += take;
		left -= take;
	}
}

static bool all_alike(const struct core_node *n, const struct want *w)
{
	for (uint32_t g = 0; g < n->gres_n; g++)
		if (wants_match(w, &n->gres[g]) && (n->gres[g].cores || n->gres[g].links))
			return false;
	return true;
}

static void take_in_order(const struct core_node *n, const struct avail *a, struct fit *f, const struct want *w, uint64_t count, uint32_t socket)
{
	for (uint32_t pass = 0; pass < 2; pass++) /* those near the socket, then those near none */
		for (uint32_t g = 0; g < n->gres_n && count; g++) {
			bool near = socket == UINT32_MAX || (pass == 0 ? n->gres[g].cores && near_socket(n, &n->gres[g], socket) : !n->gres[g].cores);
			uint32_t left = left_of(a, f, g), take = left < count ? left : (uint32_t)count;
			if (!wants_match(w, &n->gres[g]) || !near)
				continue;
			f->gres[g] += take;
			count -= take;
		}
	assert(!count);
}

/* sockets: w->count on each of so many sockets; 0: `count` anywhere. */
void inside_gres(const struct core *c, const struct core_node *n, const struct avail *a, struct fit *f, const struct want *w, uint64_t count, uint32_t sockets)
{
	if (shard_wanted(n, w)) {
		shards_take(c, n, a, f, w, count);
		return;
	}
	for (uint32_t s = 0; s < n->sockets && sockets; s++) {
		uint32_t any, k = left_near(n, a, f, w, s, &any);
		if (k + any < w->count)
			continue;
		take_in_order(n, a, f, w, w->count, s);
		if (!--sockets)
			return;
	}
	if (all_alike(n, w)) {
		take_in_order(n, a, f, w, count, UINT32_MAX);
		return;
	}
	struct fit best = *f;
	set_grow(n, a, w, count, UINT32_MAX, &best);
	int64_t best_links = set_links(n, best.gres);
	for (uint32_t g = 0; g < n->gres_n && count > 1; g++) { /* with links: is another beginning better? */
		struct fit t = *f;
		if (!n->gres[g].links || !wants_match(w, &n->gres[g]) || !left_of(a, f, g))
			continue;
		set_grow(n, a, w, count, g, &t);
		if (set_links(n, t.gres) > best_links) {
			best_links = set_links(n, t.gres);
			best = t;
		}
	}
	*f = best;
}

/* CPUs that are near one of the devices; all ones where a device has no place of its own. False: no devices. */
static bool near_mask(const struct core_node *n, const struct fit *f, uint64_t *mask)
{
	bool any = false;
	memset(mask, 0, n->cpu_words * sizeof *mask);
	for (uint32_t g = 0; g < n->gres_n; g++) {
		if (!f->gres[g] || !n->gres[g].cores)
			continue;
		any = true;
		for (uint32_t k = 0; k < n->cpu_words; k++)
			mask[k] |= n->gres[g].cores[k];
	}
	return any;
}

/* Free CPUs near the devices of f: what --gres-flags=enforce-binding leaves. */
uint32_t inside_near(const struct core *c, const struct core_node *n, const struct avail *a, const struct fit *f)
{
	uint64_t *mask = xcalloc(2 * n->cpu_words, sizeof *mask), *used = mask + n->cpu_words;
	uint32_t k = a->cpus;
	if (near_mask(n, f, mask)) {
		for (uint32_t i = 0; i < n->cpu_words; i++)
			used[i] = (a->used ? a->used[i] : 0) | ~mask[i];
		k = free_units(c, n, used, 0, n->cpus);
	}
	free(mask);
	return k < a->cpus ? k : a->cpus;
}

/* --- the choice ------------------------------------------------------------------------------- */

struct choice {
	const struct core *c;
	const struct core_node *n;
	const uint64_t *busy;      /* CPUs not to be taken */
	const uint64_t *near;      /* only these, NULL: any */
	uint64_t *words;           /* taken so far */
	uint32_t need, got, unit;
	uint32_t *left;            /* CPUs each socket may still give */
};

/* Takes the first free unit of a socket. */
static bool take_unit(struct choice *h, uint32_t socket)
{
	const struct core_node *n = h->n;
	uint32_t from = socket * socket_cpus(n), to = from + socket_cpus(n);
	for (uint32_t i = from; i < to && h->left[socket]; i += h->unit) {
		uint32_t k = 0;
		bool ok = true;
		for (uint32_t x = i; x < i + h->unit && ok; x++) {
			ok = !bit_of(h->busy, x) && !bit_of(h->words, x) && (!h->near || bit_of(h->near, x));
			k += !bit_of(n->spec, x);
		}
		if (!ok || !k || h->left[socket] < k)
			continue;
		for (uint32_t x = i; x < i + h->unit; x++)
			if (!bit_of(n->spec, x))
				h->words[x / 64] |= 1ULL << (x % 64);
		h->got += k;
		h->left[socket] -= k;
		return true;
	}
	return false;
}

static uint32_t socket_free(const struct choice *h, uint32_t socket)
{
	uint32_t k = 0, from = socket * socket_cpus(h->n);
	for (uint32_t x = from; x < from + socket_cpus(h->n); x++)
		k += !bit_of(h->busy, x) && !bit_of(h->words, x) && !bit_of(h->n->spec, x) && (!h->near || bit_of(h->near, x));
	return k < h->left[socket] ? k : h->left[socket];
}

/* The fullest socket that is enough for the rest, else the emptiest. */
static uint32_t socket_next(const struct choice *h)
{
	uint32_t best = UINT32_MAX, best_free = 0, need = h->need - h->got;
	for (uint32_t s = 0; s < h->n->sockets; s++) {
		uint32_t k = socket_free(h, s);
		bool better = k >= need ? best_free < need || k < best_free : k > best_free;
		if (k && (best == UINT32_MAX || better)) {
			best = s;
			best_free = k;
		}
	}
	return best;
}

static void take_block(struct choice *h)
{
	while (h->got < h->need) {
		uint32_t s = socket_next(h);
		if (s == UINT32_MAX || !take_unit(h, s))
			return;
		while (h->got < h->need && take_unit(h, s))
			;
	}
}

static void take_cyclic(struct choice *h)
{
	for (bool more = true; more && h->got < h->need;) {
		more = false;
		for (uint32_t s = 0; s < h->n->sockets && h->got < h->need; s++)
			more = take_unit(h, s) || more;
	}
}

static void take_plain(struct choice *h) /* one socket, nothing near: the first free units */
{
	for (uint32_t i = 0; i < h->n->cpus && h->got < h->need; i += h->unit) {
		bool ok = true;
		for (uint32_t x = i; x < i + h->unit; x++)
			ok = ok && !bit_of(h->busy, x) && !bit_of(h->words, x);
		for (uint32_t x = i; ok && x < i + h->unit; x++)
			if (!bit_of(h->n->spec, x)) {
				h->words[x / 64] |= 1ULL << (x % 64);
				h->got++;
			}
	}
}

static uint32_t mine_in(const struct choice *h, uint32_t from)
{
	uint32_t k = 0;
	for (uint32_t x = from; x < from + socket_cpus(h->n); x++)
		k += bit_of(h->words, x);
	return k;
}

static void socket_limits(const struct choice *h, const struct shape *s, const struct core_part *p)
{
	const struct core_node *n = h->n;
	for (uint32_t k = 0; k < n->sockets; k++) {
		uint32_t from = k * socket_cpus(n), left = socket_cpus(n);
		if (p && p->max_socket_cpus != UINT32_MAX)
			left = less_of(p->max_socket_cpus, part_cpus(n, p, from, from + socket_cpus(n)) + mine_in(h, from));
		if (s && s->per_socket && !s->exclusive) {
			uint32_t most = s->per_socket * s->cpus_per_task, use = s->threads && s->threads < n->threads ? s->threads : n->threads;
			most = (most + use - 1) / use * n->threads;
			most = (most + h->unit - 1) / h->unit * h->unit;
			left = left < most ? left : most;
		}
		h->left[k] = left;
	}
}

static void choose_cpus(struct choice *h, const struct shape *s)
{
	if (h->n->sockets == 1 && !h->near) {
		take_plain(h);
		return;
	}
	if (s->block || s->cpus_per_task > 1)
		take_block(h);
	else
		take_cyclic(h);
}

/* --core-spec, --thread-spec: all CPUs of the node but so many cores, as for CoreSpecCount, or the last threads. */
static void take_own_spec(const struct shape *s, const struct core_node *n, uint64_t *words)
{
	uint64_t *kept = xcalloc(n->cpu_words, sizeof *kept);
	node_spec_cores(n, s->spec_cores, kept);
	for (uint32_t i = 0; i < n->cpus; i++)
		if (!bit_of(kept, i) && i + s->spec_threads < n->cpus)
			words[i / 64] |= 1ULL << (i % 64);
	free(kept);
}

static void take_cpus(const struct core *c, const struct shape *s, const struct core_part *p, const struct core_node *n, const struct fit *f, const uint64_t *used, uint64_t *words)
{
	uint64_t *mask = xcalloc(2 * n->cpu_words + n->sockets, sizeof *mask), *busy = mask + n->cpu_words;
	struct choice h = { .c = c, .n = n, .busy = busy, .words = words, .need = f->cpus, .unit = inside_unit(c, n), .left = (uint32_t *)(busy + n->cpu_words) };
	memcpy(busy, used, n->cpu_words * sizeof *busy);
	socket_limits(&h, s, s->exclusive ? NULL : p);
	h.near = near_mask(n, f, mask) ? mask : NULL;
	choose_cpus(&h, s);
	h.near = NULL;
	if (h.got < h.need)
		choose_cpus(&h, s);
	if (h.got < h.need && s->per_socket) { /* more CPUs than its tasks need: of any socket */
		socket_limits(&h, NULL, p);
		choose_cpus(&h, s);
	}
	if (h.got < h.need && part_shares(s, p)) { /* the rest with others */
		uint32_t max = other_sharers(n, p) ? 1 : p->share_max;
		for (uint32_t i = 0; i < n->cpus; i++)
			if (cpu_shared(n, i, max) && !bit_of(n->spec, i) && bit_of(used, i) == bit_of(n->used, i))
				busy[i / 64] &= ~(1ULL << (i % 64));
		take_block(&h);
	}
	assert(h.got >= h.need);
	free(mask);
}

static void take_devices(const struct core_node *n, const struct fit *f, const uint64_t *used, uint64_t *words)
{
	for (uint32_t g = 0; g < n->gres_n; g++) {
		uint32_t left = n->gres[g].by_device ? f->gres[g] : 0;
		for (uint32_t i = n->gres[g].bit0; left && i < n->gres[g].bit0 + n->gres[g].count; i++)
			if (!bit_of(used, i)) {
				words[i / 64] |= 1ULL << (i % 64);
				left--;
			}
		assert(!left);
	}
}

/* words: the node's cpu words, then its device words, all zero. used: what of both may not be taken (n->used, and what is reserved). */
void inside_take(const struct core *c, const struct shape *s, const struct core_part *p, const struct core_node *n, const struct fit *f, const uint64_t *used, uint64_t *words)
{
	if (s->own_spec)
		take_own_spec(s, n, words);
	else
		take_cpus(c, s, p, n, f, used, words);
	take_devices(n, f, used + n->cpu_words, words + n->cpu_words);
}
