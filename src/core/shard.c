/* shard.c - GPUs that several jobs share (Gres=shard:N, gres.conf(5); the reference's gres.html, Sharding)
 *
 * A node has one GRES entry of shards for each GPU that may be shared: `count` of them, `of` the GPU's bit among its devices, `whole` the entry of that GPU.
 * Invariants: a GPU is held whole (its device bit) or by shards (used of its shards), never both; so of an entry of GPUs those are free that nobody has
 * whole and of which no shard is used, and of a GPU that somebody has whole no shard is. Where only numbers are known (a promise of two GPUs of four does not
 * say which), the GPUs that nobody shares yet are taken to be held whole from the last one down. */
#include <stdlib.h>

#include "core/state.h"

void shards_link(const struct core *c, struct core_node *n)
{
	n->shards = 0;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		struct node_gres *e = &n->gres[g];
		if (!e->shard)
			continue;
		for (uint32_t w = 0; w < n->gres_n; w++)
			if (n->gres[w].name == c->gpu && n->gres[w].by_device && e->gpu >= n->gres[w].first_index && e->gpu < n->gres[w].first_index + n->gres[w].count) {
				e->whole = w;
				e->of = n->gres[w].bit0 + e->gpu - n->gres[w].first_index;
				free(e->cores);
				e->cores = n->gres[w].cores ? xmalloc((n->cpus + 63) / 64 * sizeof *e->cores) : NULL;
				if (e->cores)
					memcpy(e->cores, n->gres[w].cores, (n->cpus + 63) / 64 * sizeof *e->cores);
				n->shards++;
			}
		e->shard = e->of != UINT32_MAX;
	}
}

bool shard_whole(const struct core_node *n, uint32_t g, const uint64_t *words) { return bit_of(words + n->cpu_words, n->gres[g].of); }

void shards_busy(const struct core_node *n, const uint64_t *counts, uint64_t *words)
{
	for (uint32_t g = 0; n->shards && g < n->gres_n; g++)
		if (n->gres[g].shard && (counts ? counts[g] : n->gres[g].used))
			words[n->cpu_words + n->gres[g].of / 64] |= 1ULL << (n->gres[g].of % 64);
}

void shards_settle(const struct core_node *n, const bool *whole, uint32_t *left)
{
	uint32_t fresh[GRES_MAX];
	for (uint32_t g = 0; g < n->gres_n; g++) /* a shared GPU is not one of those free */
		if (n->gres[g].shard && !whole[g] && left[g] < n->gres[g].count && left[n->gres[g].whole])
			left[n->gres[g].whole]--;
	memcpy(fresh, left, n->gres_n * sizeof *left);
	for (uint32_t g = 0; g < n->gres_n; g++) {
		const struct node_gres *e = &n->gres[g];
		if (!e->shard)
			continue;
		bool untouched = !whole[g] && left[g] == e->count;
		if (whole[g] || (untouched && !fresh[e->whole]))
			left[g] = 0;
		else if (untouched)
			fresh[e->whole]--;
	}
}

void shards_now(const struct core_node *n, struct avail *a)
{
	bool whole[GRES_MAX] = { false };
	for (uint32_t g = 0; g < n->gres_n; g++)
		whole[g] = n->gres[g].shard && shard_whole(n, g, n->used);
	shards_settle(n, whole, a->gres);
}

bool shard_wanted(const struct core_node *n, const struct want *w)
{
	for (uint32_t g = 0; n->shards && g < n->gres_n; g++)
		if (n->gres[g].shard && wants_match(w, &n->gres[g]))
			return true;
	return false;
}

/* Is entry g a better place for the next shards than `best`? LL_SHARED_GRES: the one of which least is used; place_fragment: of which most is; else the first. */
static bool better(const struct core *c, const struct core_node *n, uint32_t g, uint32_t left, uint32_t best, uint32_t best_left)
{
	uint64_t mine = (uint64_t)left * n->gres[best].count, other = (uint64_t)best_left * n->gres[g].count;
	if (c->params.least_loaded_shared)
		return mine > other;
	return c->params.place_fragment && mine < other;
}

void shards_take(const struct core *c, const struct core_node *n, const struct avail *a, struct fit *f, const struct want *w, uint64_t count)
{
	while (count) {
		uint32_t best = UINT32_MAX, best_left = 0;
		for (uint32_t g = 0; g < n->gres_n; g++) {
			uint32_t left = a->gres[g] - f->gres[g];
			bool fits = n->gres[g].shard && wants_match(w, &n->gres[g]) && left && (left >= count || c->params.many_shared);
			if (fits && (best == UINT32_MAX || better(c, n, g, left, best, best_left))) {
				best = g;
				best_left = left;
			}
		}
		assert(best != UINT32_MAX);
		uint32_t take = best_left < count ? best_left : (uint32_t)count;
		f->gres[best] += take;
		count -= take;
	}
}

char *shards_text(const struct core_node *n, const struct node_gres *like, bool typed, const uint64_t *counts)
{
	struct str s = STR_INIT;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		const struct node_gres *e = &n->gres[g];
		if (!e->shard || e->name != like->name || (typed && e->type != like->type))
			continue;
		str_add(&s, s.len ? "," : "");
		if (!counts && shard_whole(n, g, n->used))
			str_addf(&s, "-/%u", e->count);
		else
			str_addf(&s, "%llu/%u", (unsigned long long)(counts ? counts[g] : e->used), e->count);
	}
	return s.len ? str_take(&s) : xstrdup("");
}

bool shards_read(const struct core_node *n, uint32_t name, const char *text, uint64_t *counts)
{
	uint64_t sum = 0;
	for (uint32_t g = 0; g < n->gres_n && text && *text; g++) {
		char *end;
		if (!n->gres[g].shard || n->gres[g].name != name)
			continue;
		counts[g] = strtoull(text, &end, 10);
		if (end == text || *end != '/' || counts[g] > n->gres[g].count)
			return false;
		sum += counts[g];
		text = end + strcspn(end, ",");
		text += *text == ',';
	}
	return sum && text && !*text;
}

bool shards_clash(const struct core_node *n, const uint64_t *words)
{
	const uint64_t *count = words + n->cpu_words + n->dev_words;
	for (uint32_t g = 0; n->shards && g < n->gres_n; g++)
		if (n->gres[g].shard && ((count[g] && (shard_whole(n, g, n->used) || n->gres[g].used + count[g] > n->gres[g].count)) || (n->gres[g].used && shard_whole(n, g, words))))
			return true;
	return false;
}

void shards_check(const struct core_node *n)
{
	uint32_t found = 0;
	for (uint32_t g = 0; g < n->gres_n; g++) {
		const struct node_gres *e = &n->gres[g];
		if (!e->shard)
			continue;
		found++;
		assert(n->gres[e->whole].by_device && e->of >= n->gres[e->whole].bit0 && e->of < n->gres[e->whole].bit0 + n->gres[e->whole].count);
		assert(!e->used || !shard_whole(n, g, n->used)); /* whole or shared, never both */
	}
	assert(found == n->shards);
}
