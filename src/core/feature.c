/* feature.c - --constraint: which nodes an expression names
 * Grammar: term { ('&' | ',') term | '|' term }, term = name | '(' expression ')'; '&' binds tighter than '|'. Counts ("a*2"), [..] groups and
 * '!' are refused by name: they belong to the scheduler's issue. Depth is bounded. */
#include <ctype.h>
#include <stdlib.h>

#include "core/state.h"

#define DEPTH_MAX 8

struct parse { struct core *c; const char *at, *text; struct error *err; uint32_t depth; };

static int parse_or(struct parse *p, struct bitset **ret);

static bool node_has(const struct core_node *n, const char *name, size_t len)
{
	for (const char *s = n->rec->features; s && *s;) {
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
		return error_set(p->err, ESLURM_INVALID_FEATURE, "constraint \"%s\": a feature name is missing at position %zu", p->text, (size_t)(p->at - p->text));
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

static int parse_term(struct parse *p, struct bitset **ret)
{
	if (*p->at != '(')
		return parse_name(p, ret);
	if (++p->depth > DEPTH_MAX)
		return error_set(p->err, ESLURM_INVALID_FEATURE, "constraint \"%s\" is nested more than %d deep", p->text, DEPTH_MAX);
	p->at++;
	int r = parse_or(p, ret);
	if (r < 0)
		return r;
	p->depth--;
	if (*p->at != ')') {
		bitset_destroy(*ret);
		return error_set(p->err, ESLURM_INVALID_FEATURE, "constraint \"%s\": a parenthesis is not closed", p->text);
	}
	p->at++;
	return 0;
}

static int parse_and(struct parse *p, struct bitset **ret)
{
	struct bitset *b;
	int r = parse_term(p, ret);
	while (r >= 0 && (*p->at == '&' || *p->at == ',')) {
		p->at++;
		r = parse_term(p, &b);
		if (r < 0) {
			bitset_destroy(*ret);
			return r;
		}
		bitset_and(*ret, b);
		bitset_destroy(b);
	}
	return r;
}

static int parse_or(struct parse *p, struct bitset **ret)
{
	struct bitset *b;
	int r = parse_and(p, ret);
	while (r >= 0 && *p->at == '|') {
		p->at++;
		r = parse_and(p, &b);
		if (r < 0) {
			bitset_destroy(*ret);
			return r;
		}
		bitset_or(*ret, b);
		bitset_destroy(b);
	}
	return r;
}

int feature_match(struct core *c, const char *expr, struct bitset **ret, struct error *err)
{
	struct parse p = { c, expr, expr, err, 0 };
	struct bitset *b = NULL;
	if (strpbrk(expr, "[]*!"))
		return error_set(err, ESLURM_INVALID_FEATURE, "constraint \"%s\": counts (*), groups ([..]) and ! are not supported yet", expr);
	int r = parse_or(&p, &b);
	if (r < 0)
		return r;
	if (*p.at) {
		bitset_destroy(b);
		return error_set(err, ESLURM_INVALID_FEATURE, "constraint \"%s\": unexpected \"%c\" at position %zu", expr, *p.at, (size_t)(p.at - p.text));
	}
	*ret = b;
	return 0;
}
