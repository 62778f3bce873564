/* json_table.c - a table of JSON members compiled into constant text with holes (see json.h)
 * Compiling walks the rows once with the ordinary writer, keys and commas included; what it writes between two holes becomes one piece of
 * text. Running copies the pieces and fills the holes. A hole keeps the writer's state at its place for values that need lines of their own. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/json.h"
#include "cli/table.h"
#include "model/timespec.h"

struct span { size_t at, len; };            /* in the program's text */
struct hole {
	struct span piece;                  /* constant text before the value */
	const struct json_row *row;         /* NULL: nothing follows */
	struct json at;                     /* the writer here, key written */
	struct span before, after, unset, infinite;   /* numbers: round the digits; or the whole value */
};
struct json_program { struct str text; struct hole *hole; size_t n, cap; json_source_fn source; };

static struct span text_add(struct json_program *p, const char *data, size_t len)
{
	struct span s = { p->text.len, len };
	str_add_n(&p->text, data, len);
	return s;
}

/* What json_num writes here, cut up for filling in. */
static void numbers_prepare(struct json_program *p, struct hole *h)
{
	static const char mark[] = "4242424242";
	struct str out = STR_INIT;
	struct json j = h->at;
	j.out = &out;
	json_num(&j, "", true, false, 4242424242u);
	char *number = strstr(out.data, mark);
	assert(number);
	h->before = text_add(p, out.data, (size_t)(number - out.data));
	h->after = text_add(p, number + strlen(mark), strlen(number + strlen(mark)));
	for (int infinite = 0; infinite < 2; infinite++) {
		j = h->at;
		j.out = &out;
		str_reset(&out);
		json_num(&j, "", false, infinite, 0);
		*(infinite ? &h->infinite : &h->unset) = text_add(p, out.data, out.len);
	}
	str_fini(&out);
}

static void hole_add(struct json_program *p, struct json *j, const struct json_row *row)
{
	p->hole = xgrow(p->hole, &p->cap, p->n + 1, sizeof(*p->hole));
	struct hole *h = &p->hole[p->n++];
	if (row)
		json_begin(j, row->key);
	*h = (struct hole){ .piece = text_add(p, j->out->data, j->out->len), .row = row, .at = *j };
	str_reset(j->out);
	h->at.keyed = true;
	if (row && (row->kind == J_NUM || row->kind == J_NUM0))
		numbers_prepare(p, h);
}

/* Constant rows are written; false when the row is a hole. */
static bool row_write(struct json *j, const struct json_row *r)
{
	switch (r->kind) {
	case J_OPEN: json_open(j, r->key, '{'); return true;
	case J_CLOSE: json_close(j); return true;
	case J_LIT: json_text(j, r->key, r->literal); return true;
	case J_LIT_INT: json_u64(j, r->key, r->absent); return true;
	case J_LIT_BOOL: json_bool(j, r->key, r->absent); return true;
	case J_LIT_UNSET: json_num(j, r->key, false, r->absent, 0); return true;
	case J_LIT_ZERO: json_num(j, r->key, true, false, 0); return true;
	case J_LIT_LIST: json_open(j, r->key, '['); json_close(j); return true;
	default: return false;
	}
}

struct json_program *json_compile(const struct json *at, const char *key, const struct json_row *rows, size_t n, json_source_fn source)
{
	struct json_program *p = xcalloc(1, sizeof(*p));
	struct str piece = STR_INIT;
	struct json j = *at;
	j.out = &piece;
	j.level[j.depth].empty = true;   /* the comma before a record is json_run's */
	p->text = STR_INIT;
	p->source = source;
	json_open(&j, key, '{');
	for (size_t i = 0; i < n; i++)
		if (!row_write(&j, &rows[i]))
			hole_add(p, &j, &rows[i]);
	json_close(&j);
	assert(j.depth == at->depth);    /* J_OPEN and J_CLOSE pair up */
	hole_add(p, &j, NULL);
	str_fini(&piece);
	return p;
}

static void put_span(struct str *out, const struct json_program *p, struct span s) { str_add_n(out, p->text.data + s.at, s.len); }

static void number_put(const struct json_program *p, const struct hole *h, struct str *out, const struct msgview *m)
{
	const struct json_row *r = h->row;
	bool has = msgview_has(m, r->field);
	uint64_t v = msgview_num(m, r->field, r->absent);
	if (!has && r->kind == J_NUM && r->absent != TIME_INFINITE) {
		put_span(out, p, h->unset);
	} else if (v == TIME_INFINITE && r->kind == J_NUM) {
		put_span(out, p, h->infinite);
	} else {
		put_span(out, p, h->before);
		put_u64(out, v);
		put_span(out, p, h->after);
	}
}

static void hole_fill(const struct json_program *p, const struct hole *h, struct str *out, void *row)
{
	const struct json_row *r = h->row;
	struct json j;
	if (r->kind == J_FN) {
		j = h->at;
		j.out = out;
		r->fn(&j, r->key, row);
		return;
	}
	const struct msgview *m = p->source(row, r->source);
	if (r->kind == J_NUM || r->kind == J_NUM0) {
		number_put(p, h, out, m);
		return;
	}
	j = h->at;
	j.out = out;
	struct slice text = { 0 };
	if (r->kind == J_STR || r->kind == J_WORDS)
		text = msgview_text(m, r->field);
	switch (r->kind) {
	case J_STR:
		if (!text.n && r->literal)
			text = (struct slice){ r->literal, strlen(r->literal) };
		json_value_str(&j, text.p ? text.p : "", text.n);
		break;
	case J_WORDS: json_words(&j, r->key, text); break;
	case J_SINT: json_i64(&j, r->key, msgview_sint(m, r->field, (int64_t)r->absent)); break;
	case J_BOOL: json_bool(&j, r->key, msgview_num(m, r->field, r->absent)); break;
	default: json_u64(&j, r->key, msgview_num(m, r->field, r->absent)); break;
	}
}

void json_run(const struct json_program *p, struct json *at, void *row)
{
	if (!at->level[at->depth].empty && !at->yaml)
		str_add_c(at->out, ',');
	at->level[at->depth].empty = false;
	str_reserve(at->out, p->text.len + 4096);
	for (size_t i = 0; i < p->n; i++) {
		put_span(at->out, p, p->hole[i].piece);
		if (p->hole[i].row)
			hole_fill(p, &p->hole[i], at->out, row);
	}
}

void json_program_destroy(struct json_program *p)
{
	if (!p)
		return;
	str_fini(&p->text);
	free(p->hole);
	free(p);
}
