/* feature.c - --constraint and --prefer: which nodes an expression names
 * Grammar, strictly from left to right as in sbatch(1): expression = item { ('&' | ',' | '|') item }, item = name | '(' names joined by & or | ')' | one
 * '[' group ']'. Inside brackets stand alternatives ("a|(b&c)": all nodes of a job from one of them) or counts ("a*2&(b|c)*1": so many nodes of each). A single
 * name may have a count without brackets ("a*2": two nodes with it, the others any). */
#include <ctype.h>
#include <stdlib.h>

#include "core/state.h"

struct parse { struct core *c; const char *at, *text; struct error *err; };
struct member { struct bitset *in; uint32_t count; };   /* of a bracket; count 0: none was given */

static int bad(struct parse *p, const char *what) { return error_set(p->err, ESLURM_INVALID_FEATURE, "constraint \"%s\": %s at position %zu", p->text, what, (size_t)(p->at - p->text)); }

static bool node_has(const struct core_node *n, const char *name, size_t len)
{
	for (const char *s = n->rec->features_act ? n->rec->features_act : n->rec->features; s && *s;) {
		size_t k = strcspn(s, ",");
		if (k == len && !strncmp(s, name, len))
			return true;
		s += k + (s[k] == ',');
	}
	return false;
}

static int parse_name(struct parse *p, struct bitset **ret)
{
	size_t len = 0;
	while (isalnum((unsigned char)p->at[len]) || (p->at[len] && strchr("_.-=:%+/@", p->at[len])))
		len++;
	if (!len)
		return bad(p, "a feature name is missing");
	struct bitset *b = bitset_create(p->c->node_n);
	bool known = false;
	for (uint32_t i = 0; i < p->c->node_n; i++)
		if (node_has(p->c->node[i], p->at, len)) {
			bitset_set(b, i);
			known = true;
		}
	if (!known) {
		bitset_destroy(b);
		return error_set(p->err, ESLURM_INVALID_FEATURE, "no node has the feature \"%.*s\"", (int)len, p->at);
	}
	p->at += len;
	*ret = b;
	return 0;
}

/* Takes b in. acc NULL: it is the first. */
static void join(struct bitset **acc, char op, struct bitset *b)
{
	if (!*acc) {
		*acc = b;
		return;
	}
	(op == '|' ? bitset_or : bitset_and)(*acc, b);
	bitset_destroy(b);
}

/* A name, or names in parentheses. */
static int parse_item(struct parse *p, struct bitset **ret)
{
	if (*p->at != '(')
		return parse_name(p, ret);
	struct bitset *acc = NULL, *b;
	char op = '(';
	while (op != ')') {
		p->at++;
		if (parse_name(p, &b) < 0)
			goto fail;
		join(&acc, op, b);
		op = *p->at;
		if (!op || !strchr("&,|)", op)) {
			(void)bad(p, "a parenthesis is not closed");
			goto fail;
		}
	}
	p->at++;
	*ret = acc;
	return 0;
fail:
	bitset_destroy(acc);
	return p->err->code;
}

/* "*3" behind an item; *ret 0: there is none. */
static int parse_count(struct parse *p, uint32_t *ret)
{
	uint32_t n = 0;
	*ret = 0;
	if (*p->at != '*')
		return 0;
	for (p->at++; isdigit((unsigned char)*p->at) && n < 1000000; p->at++)
		n = n * 10 + (uint32_t)(*p->at - '0');
	*ret = n;
	return n ? 0 : bad(p, "a number of nodes is missing");
}

static void members_fini(struct member *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		bitset_destroy(m[i].in);
}

/* '[' ... ']': alternatives or counts, not both. */
static int parse_group(struct parse *p, struct member *m, uint32_t *ret_n)
{
	uint32_t n = 0;
	char op = '[', joined = 0;
	while (op != ']') {
		p->at++;
		if (n == FEATURE_MEMBERS_MAX) {
			(void)bad(p, "too many items in brackets");
			goto fail;
		}
		if (parse_item(p, &m[n].in) < 0)
			goto fail;
		if (parse_count(p, &m[n++].count) < 0)
			goto fail;
		op = *p->at == ',' ? '&' : *p->at;
		if (!op || !strchr("&|]", op) || (op != ']' && joined && joined != op)) {
			(void)bad(p, "brackets hold alternatives (a|b) or counts (a*2&b*1), and are closed");
			goto fail;
		}
		joined = op == ']' ? joined : op;
	}
	for (uint32_t i = 0; i < n; i++)
		if ((joined == '&' && !m[i].count) || (joined == '|' && m[i].count)) {
			(void)bad(p, joined == '&' ? "each item joined by & in brackets needs a count" : "alternatives have no counts");
			goto fail;
		}
	p->at++;
	*ret_n = n;
	return 0;
fail:
	members_fini(m, n);
	return p->err->code;
}

static int parse(struct parse *p, struct bitset **ret_all, struct member *m, uint32_t *ret_n)
{
	struct bitset *acc = NULL, *b;
	char op = 0;
	bool first = true;
	for (;; p->at++, first = false) {
		if (*p->at == '[') {
			if (*ret_n || op == '|')
				goto unclear;
			if (parse_group(p, m, ret_n) < 0)
				goto fail;
		} else {
			uint32_t count;
			if (op == '|' && *ret_n)
				goto unclear;
			bool name = *p->at != '(';
			if (parse_item(p, &b) < 0)
				goto fail;
			if (first && name && *p->at == '*') {
				m[0].in = b;
				*ret_n = 1;
				if (parse_count(p, &count) < 0)
					goto fail;
				m[0].count = count;
				if (*p->at)
					goto unclear;
				break;
			}
			join(&acc, op, b);
		}
		op = *p->at;
		if (!op)
			break;
		if (!strchr("&,|", op))
			goto unclear;
	}
	*ret_all = acc;
	return 0;
unclear:
	(void)bad(p, "not understood");
fail:
	members_fini(m, *ret_n);
	bitset_destroy(acc);
	return p->err->code;
}

static struct bitset *all_nodes(const struct core *c)
{
	struct bitset *b = bitset_create(c->node_n);
	bitset_fill(b);
	return b;
}

void features_fini(struct features *f)
{
	for (uint32_t i = 0; i < f->n; i++) {
		bitset_destroy(f->set[i].in);
		for (uint32_t k = 0; k < f->set[i].count_n; k++)
			bitset_destroy(f->set[i].count[k].of);
		free(f->set[i].count);
	}
	free(f->set);
	*f = (struct features){ 0 };
}

/* Adds to *f the sets of nodes that will do, best first. expr NULL: all nodes. */
int features_parse(struct core *c, const char *expr, struct features *f, struct error *err)
{
	struct error own = { 0 };
	struct parse p = { c, expr, expr, err ? err : &own };
	struct member m[FEATURE_MEMBERS_MAX] = { 0 };
	struct bitset *all = NULL;
	uint32_t n = 0;
	if (expr && parse(&p, &all, m, &n) < 0)
		return p.err->code;
	if (!all)
		all = all_nodes(c);
	bool counts = n && m[0].count;
	uint32_t sets = counts || !n ? 1 : n;
	f->set = xrealloc(f->set, (f->n + sets) * sizeof *f->set);
	for (uint32_t i = 0; i < sets; i++) {
		struct feature_set *s = &f->set[f->n++];
		*s = (struct feature_set){ .in = bitset_copy(all) };
		if (!counts && n)
			bitset_and(s->in, m[i].in);
	}
	if (counts) {
		struct feature_set *s = &f->set[f->n - 1];
		s->count = xcalloc(n, sizeof *s->count);
		for (; s->count_n < n; s->count_n++) {
			bitset_and(m[s->count_n].in, all);
			s->count[s->count_n].of = bitset_copy(m[s->count_n].in);
			s->count[s->count_n].n = m[s->count_n].count;
			s->counted += m[s->count_n].count;
		}
	}
	members_fini(m, n);
	bitset_destroy(all);
	return 0;
}

/* All nodes that may be among those of a job with this constraint. */
int feature_match(struct core *c, const char *expr, struct bitset **ret, struct error *err)
{
	struct features f = { 0 };
	int r = features_parse(c, expr, &f, err);
	if (r < 0)
		return r;
	*ret = bitset_create(c->node_n);
	for (uint32_t i = 0; i < f.n; i++)
		bitset_or(*ret, f.set[i].in);
	features_fini(&f);
	return 0;
}
