/* tres.c - memory amounts, GRES requests and TRES sums as text
 * A GRES element is [gres/]name[:type][:count] or with '=' before the count. A single word behind the name is a count when it begins with
 * a digit, else a type. Nothing is half accepted. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/tres.h"

enum { COUNT_DIGITS_MAX = 15 };
#define COUNT_MAX 1000000000000000ull   /* so that what is printed can be read again */

int mem_parse(const char *text, uint64_t *ret_mb, struct error *err)
{
	const char *at = text;
	uint64_t v;

	if (str_digits(&at, COUNT_DIGITS_MAX, &v)) {
		char unit = (char)toupper((unsigned char)*at);
		static const char known[] = "KMGT";
		if (unit) {
			at++;
			if (toupper((unsigned char)*at) == 'B')
				at++;
		}
		uint64_t times = unit == 'G' ? 1024 : unit == 'T' ? 1024 * 1024 : 1;
		if (*at == '\0' && (!unit || strchr(known, unit)) && v <= COUNT_MAX / times) {
			*ret_mb = unit == 'K' ? (v + 1023) / 1024 : v * times;
			return 0;
		}
	}
	error_set(err, EINVAL, "invalid amount of memory \"%.100s\"", text);
	error_hint(err, "A whole number of MiB, or with a suffix K, M, G or T.");
	return -EINVAL;
}

void mem_format(uint64_t mb, char *buf, size_t size)
{
	static const char units[] = "MGTP";
	bool half = false;
	int u = 0;

	while (!half && mb >= 1024 && mb % 512 == 0 && units[u + 1]) {
		half = mb % 1024 != 0;
		mb /= 1024;
		u++;
	}
	if (mb == 0)
		snprintf(buf, size, "0");
	else
		snprintf(buf, size, half ? "%llu.50%c" : "%llu%c", (unsigned long long)mb, units[u]);
}

int mem_parse_printed(const char *text, uint64_t *ret_mb)
{
	const char *half = strstr(text, ".50");
	char whole[32];
	uint64_t unit_mb = 0;

	if (!half)
		return mem_parse(text, ret_mb, NULL);
	snprintf(whole, sizeof(whole), "1%s", half + 3);
	if (mem_parse(whole, &unit_mb, NULL) < 0 || snprintf(whole, sizeof(whole), "%.*s%s", (int)(half - text), text, half + 3) >= (int)sizeof(whole) ||
	    mem_parse(whole, ret_mb, NULL) < 0)
		return -EINVAL;
	*ret_mb += unit_mb / 2;
	return 0;
}

/* --- GRES ---------------------------------------------------------------------------------------- */

static int gres_bad(struct error *err, const char *element, const char *what)
{
	int rc = error_set(err, ESLURM_INVALID_GRES, "invalid GRES \"%.100s\": %s", element, what);
	error_hint(err, "Forms: name, name:count, name:type, name:type:count.");
	return rc;
}

static int gres_count(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGTP";
	const char *unit;

	if (!str_digits(&text, COUNT_DIGITS_MAX, ret))
		return -EINVAL;
	if (*text == '\0')
		return 0;
	unit = strchr(units, toupper((unsigned char)*text));
	if (!unit || text[1])
		return -EINVAL;
	for (const char *u = units; u <= unit; u++) {
		if (*ret >= COUNT_MAX / 1024)
			return -ERANGE;
		*ret *= 1024;
	}
	return 0;
}

static bool word_copy(char *dst, size_t size, const char *src, size_t len)
{
	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)src[i]) && !strchr("_-.+/", src[i]))
			return false;
	memcpy(dst, src, len);
	dst[len] = '\0';
	return true;
}

/* `element` is one NUL-terminated piece. */
static int element_read(const char *element, struct gres_req *r, struct error *err)
{
	const char *s = element;
	size_t len;

	memset(r, 0, sizeof(*r));
	r->count = 1;
	if (str_starts(s, "gres/") || str_starts(s, "gres:"))
		s += 5;
	len = strcspn(s, ":=");
	if (!word_copy(r->name, sizeof(r->name), s, len))
		return gres_bad(err, element, "the name is missing, too long or has odd characters");
	s += len;
	if (*s == ':' && !isdigit((unsigned char)s[1])) {
		s++;
		len = strcspn(s, ":=");
		if (!word_copy(r->type, sizeof(r->type), s, len))
			return gres_bad(err, element, "the type is missing, too long or has odd characters");
		s += len;
	} else if (*s == ':' && strpbrk(s + 1, ":=")) {
		/* A type may begin with a digit ("gpu:3g.40gb:1"). */
		s++;
		len = strcspn(s, ":=");
		if (!word_copy(r->type, sizeof(r->type), s, len))
			return gres_bad(err, element, "the type has odd characters");
		s += len;
	} else if (*s == ':' && gres_count(s + 1, &r->count) == -EINVAL) {
		if (!word_copy(r->type, sizeof(r->type), s + 1, strlen(s + 1)))
			return gres_bad(err, element, "neither a count nor a type");
		r->count = 1;
		return 0;
	}
	if (*s && gres_count(s + 1, &r->count) < 0)
		return gres_bad(err, element, "the count is not a number");
	return 0;
}

int gres_parse(const char *text, struct gres_req *ret, size_t max, size_t *ret_n, struct error *err)
{
	char *copy, *cursor, *piece;
	size_t n = 0;
	int rc = 0;

	*ret_n = 0;
	if (str_eq_nocase(text, "none"))
		return 0;
	cursor = copy = xstrdup(text);
	while ((piece = str_next(&cursor, ",")) != NULL) {
		if (n == max) {
			rc = error_set(err, ESLURM_INVALID_GRES, "more than %zu GRES in one request", max);
			break;
		}
		rc = element_read(piece, &ret[n], err);
		if (rc < 0)
			break;
		n++;
	}
	free(copy);
	if (rc == 0)
		*ret_n = n;
	return rc;
}

char *gres_format(const struct gres_req *r, size_t n, char sep)
{
	struct str s = STR_INIT;

	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			str_add_c(&s, ',');
		str_addf(&s, "gres/%s", r[i].name);
		if (r[i].type[0])
			str_addf(&s, ":%s", r[i].type);
		str_addf(&s, "%c%llu", sep, (unsigned long long)r[i].count);
	}
	return str_take(&s);
}

/* --- sums ---------------------------------------------------------------------------------------- */

void tres_add_gres(struct tres_sum *t, const char *name, const char *type, uint64_t count)
{
	struct gres_req *g;

	if (!type)
		type = "";
	for (size_t i = 0; i < t->gres_n; i++) {
		g = &t->gres[i];
		if (str_eq(g->name, name) && str_eq(g->type, type)) {
			g->count += count;
			return;
		}
	}
	if (t->gres_n == GRES_REQ_MAX)
		return;
	g = &t->gres[t->gres_n++];
	memset(g, 0, sizeof(*g));
	snprintf(g->name, sizeof(g->name), "%s", name);
	snprintf(g->type, sizeof(g->type), "%s", type);
	g->count = count;
}

static void add_value(struct str *s, const char *name, const char *type, uint64_t v)
{
	if (v == 0)
		return;
	str_add_sep(s, ",", name);
	if (type && *type) {
		str_add_c(s, ':');
		str_add(s, type);
	}
	str_add_c(s, '=');
	str_add_u64(s, v);
}

char *tres_format(const struct tres_sum *t, bool typed)
{
	struct str s = STR_INIT;
	char mem[32], name[48];

	add_value(&s, "cpu", NULL, t->cpu);
	if (t->mem_mb) {
		mem_format(t->mem_mb, mem, sizeof(mem));
		str_add_sep(&s, ",", "mem=");
		str_add(&s, mem);
	}
	add_value(&s, "node", NULL, t->node);
	add_value(&s, "billing", NULL, t->billing);
	for (size_t i = 0; i < t->gres_n; i++) {
		uint64_t sum = 0;
		bool first = true;
		for (size_t k = 0; k < t->gres_n; k++) {
			if (!str_eq(t->gres[k].name, t->gres[i].name))
				continue;
			first = first && k >= i;
			sum += t->gres[k].count;
		}
		if (!first)
			continue;
		snprintf(name, sizeof(name), "gres/%s", t->gres[i].name);
		add_value(&s, name, NULL, sum);
		for (size_t k = i; typed && k < t->gres_n; k++)
			if (t->gres[k].type[0] && str_eq(t->gres[k].name, t->gres[i].name))
				add_value(&s, name, t->gres[k].type, t->gres[k].count);
	}
	return str_take(&s);
}

uint64_t tres_get(const char *text, const char *name)
{
	size_t len = strlen(name);

	while (text && *text) {
		if (strncmp(text, name, len) == 0 && text[len] == '=') {
			char buf[64];
			uint64_t v = 0;
			const char *value = text + len + 1;
			snprintf(buf, sizeof(buf), "%.*s", (int)strcspn(value, ","), value);
			if (str_eq(name, "mem"))
				return mem_parse_printed(buf, &v) == 0 ? v : 0;
			return gres_count(buf, &v) == 0 ? v : 0;
		}
		text = strchr(text, ',');
		if (text)
			text++;
	}
	return 0;
}
