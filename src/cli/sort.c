/* sort.c - ordering rows of a table by --sort (see table.h)
 * Each key is read once a row: a number, or the field's text kept in one arena. Text sorts bytewise. The merge keeps equal rows
 * in the order they came, and rows that come in order already (the usual answer of the controller) cost one pass. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/table.h"

struct key { int64_t number; uint32_t len; };   /* text: number is its offset in the arena */
struct sorter {
	struct sort_spec spec;
	struct key *key;        /* spec.n a row */
	uint32_t *order;
	size_t rows, cap_rows;
	struct str arena;
};

int sort_parse(const struct table *t, const char *text, struct sort_spec *ret, struct error *err)
{
	struct sort_spec spec = { 0 };
	bool down = false;
	for (const char *p = text; *p; p++) {
		if (*p == '-' || *p == '+') {
			down = *p == '-';
			continue;
		}
		if (*p == ',')
			continue;
		if (*p == '#' && table_find_letter(t, '#')) {   /* "#P": partitions in the order of slurm.conf */
			if (spec.n < SORT_MAX) {
				spec.by[spec.n].field = table_find_letter(t, '#');
				spec.by[spec.n++].down = down;
			}
			down = false;
			p += p[1] == 'P';
			continue;
		}
		size_t word = strcspn(p, ",");
		char name[64] = "";
		if (word > 1 && word < sizeof(name))
			memcpy(name, p, word);
		const struct field *f = word > 1 ? table_find(t, name) : table_find_letter(t, *p);
		if (!f)
			return error_set(err, EINVAL, "Invalid sort specification: %.*s", (int)word, p);
		if (f->flags & FIELD_TODO)
			return error_set(err, ENOTSUP, "sorting by %s field \"%s\" is not supported yet", t->kind, f->name);
		if (spec.n == SORT_MAX)
			return error_set(err, E2BIG, "Invalid sort specification: more than %d keys", SORT_MAX);
		spec.by[spec.n].field = f;
		spec.by[spec.n++].down = down;
		down = false;
		p += word - 1;
	}
	*ret = spec;
	return 0;
}

struct sorter *sorter_create(const struct sort_spec *spec, size_t rows)
{
	struct sorter *s = xcalloc(1, sizeof(*s));
	s->spec = *spec;
	s->cap_rows = rows ? rows : 1;
	s->key = xcalloc(s->cap_rows * (spec->n ? spec->n : 1), sizeof(*s->key));
	s->order = xcalloc(s->cap_rows * 2, sizeof(*s->order));
	s->arena = STR_INIT;
	return s;
}

void sorter_add(struct sorter *s, void *row)
{
	if (s->rows == s->cap_rows) {
		s->cap_rows *= 2;
		s->key = xrealloc(s->key, s->cap_rows * (s->spec.n ? s->spec.n : 1) * sizeof(*s->key));
		s->order = xrealloc(s->order, s->cap_rows * 2 * sizeof(*s->order));
	}
	struct key *k = s->key + s->rows * s->spec.n;
	for (size_t i = 0; i < s->spec.n; i++) {
		const struct field *f = s->spec.by[i].field;
		if (f->key) {
			k[i] = (struct key){ .number = f->key(row, f) };
		} else {
			size_t start = s->arena.len;
			f->get(&s->arena, row, f);
			k[i] = (struct key){ .number = (int64_t)start, .len = (uint32_t)(s->arena.len - start) };
		}
	}
	s->order[s->rows] = (uint32_t)s->rows;
	s->rows++;
}

static int key_compare(const struct sorter *s, uint32_t a, uint32_t b)
{
	const struct key *ka = s->key + (size_t)a * s->spec.n, *kb = s->key + (size_t)b * s->spec.n;
	for (size_t i = 0; i < s->spec.n; i++) {
		int c;
		if (s->spec.by[i].field->key) {
			c = (ka[i].number > kb[i].number) - (ka[i].number < kb[i].number);
		} else {
			size_t la = ka[i].len, lb = kb[i].len;
			c = memcmp(s->arena.data + ka[i].number, s->arena.data + kb[i].number, la < lb ? la : lb);
			if (!c)
				c = (la > lb) - (la < lb);
		}
		if (c)
			return s->spec.by[i].down ? -c : c;
	}
	return 0;
}

const uint32_t *sorter_order(struct sorter *s)
{
	size_t at = 1;
	while (at < s->rows && key_compare(s, s->order[at - 1], s->order[at]) <= 0)
		at++;
	if (at >= s->rows)
		return s->order;
	uint32_t *from = s->order, *to = s->order + s->cap_rows;
	for (size_t width = 1; width < s->rows; width *= 2) {
		for (size_t lo = 0; lo < s->rows; lo += 2 * width) {
			size_t mid = lo + width < s->rows ? lo + width : s->rows;
			size_t hi = lo + 2 * width < s->rows ? lo + 2 * width : s->rows;
			for (size_t i = lo, a = lo, b = mid; i < hi; i++)
				to[i] = a < mid && (b == hi || key_compare(s, from[a], from[b]) <= 0) ? from[a++] : from[b++];
		}
		uint32_t *swap = from;
		from = to;
		to = swap;
	}
	return from;
}

void sorter_destroy(struct sorter *s)
{
	if (!s)
		return;
	free(s->key);
	free(s->order);
	str_fini(&s->arena);
	free(s);
}
