/* counted.c - --constraint with counts: "[rack1*2&rack2*4]"
 * Each count is so many places, each for one node of its set; a node fills one place. Places are filled one by one, moving nodes that fill others where that
 * helps (augmenting paths), so that a choice is found whenever there is one. What is still missing is filled up with any nodes. */
#include <stdlib.h>

#include "core/choose.h"

struct places {
	const struct feature_set *set;
	const struct pick *p;
	uint32_t *fills;            /* of each option: place it fills, UINT32_MAX: none */
	uint32_t *count_of;         /* of each place: its count */
	bool *seen;                 /* options looked at for the present place */
};

static bool place_fill(struct places *m, uint32_t place)
{
	const struct bitset *of = m->set->count[m->count_of[place]].of;
	for (uint32_t pass = 0; pass < 2; pass++) /* a free node, then one that could be spared elsewhere */
		for (uint32_t i = 0; i < m->p->n; i++) {
			if (m->seen[i] || !bitset_has(of, m->p->o[i].node) || (pass == 0 && m->fills[i] != UINT32_MAX))
				continue;
			m->seen[i] = true;
			if (m->fills[i] == UINT32_MAX || place_fill(m, m->fills[i])) {
				m->fills[i] = place;
				return true;
			}
		}
	return false;
}

static bool places_fill(struct places *m)
{
	uint32_t place = 0;
	for (uint32_t k = 0; k < m->set->count_n; k++)
		for (uint32_t i = 0; i < m->set->count[k].n; i++, place++) {
			m->count_of[place] = k;
			memset(m->seen, 0, m->p->n * sizeof *m->seen);
			if (!place_fill(m, place))
				return false;
		}
	return true;
}

/* Those that fill places and those named come first; then others, until it is enough. */
static bool take(const struct shape *s, const uint32_t *fills, uint32_t named, struct pick *p)
{
	struct pick out = { .o = xmalloc((p->n + 1) * sizeof *out.o) };
	for (uint32_t i = 0; i < p->n; i++)
		if (i < named || fills[i] != UINT32_MAX)
			out.o[out.n++] = p->o[i];
	pick_sum(&out);
	for (uint32_t i = named; i < p->n && !(pick_enough(s, &out) && out.n >= pick_wanted(s, p)); i++)
		if (fills[i] == UINT32_MAX && out.n < p->max_nodes) {
			out.o[out.n++] = p->o[i];
			pick_sum(&out);
		}
	bool ok = out.n <= p->max_nodes && pick_enough(s, &out);
	memcpy(p->o, out.o, out.n * sizeof *out.o);
	p->n = out.n;
	free(out.o);
	return ok;
}

bool pick_counted(struct core *c, const struct shape *s, const struct bitset *cand, const struct feature_set *set, const struct when *w, struct pick *p)
{
	uint32_t named;
	if (set->counted > p->max_nodes || !pick_gather(c, s, cand, w, p, &named) || p->n < set->counted)
		return false;
	struct places m = { .set = set, .p = p };
	m.fills = xmalloc(p->n * sizeof *m.fills);
	memset(m.fills, 0xff, p->n * sizeof *m.fills);
	m.count_of = xcalloc(set->counted, sizeof *m.count_of);
	m.seen = xcalloc(p->n, sizeof *m.seen);
	bool ok = places_fill(&m) && take(s, m.fills, named, p);
	free(m.fills);
	free(m.count_of);
	free(m.seen);
	return ok;
}
