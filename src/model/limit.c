/* limit.c - limits as text (see limit.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/limit.h"
#include "model/timespec.h"
#include "model/tres.h"

static const struct limit_row rows[] = {
#define LIMIT(number, symbol, what, scope, type, qos, assoc, areason, qreason, works) { LIMIT_##symbol, LIMIT_OF_##what, LIMIT_PER_##scope, LIMIT_##type, qos, assoc, works },
#include "tables/limits.def"
#undef LIMIT
};
#define ROWS (sizeof rows / sizeof *rows)

/* Older and longer names (sacctmgr(1)); a resource where the name implies one. */
static const struct { const char *name; enum limit_kind kind; const char *tres; } aliases[] = {
	{ "GrpCPUs", LIMIT_GRP_TRES, "cpu" }, { "GrpMemory", LIMIT_GRP_TRES, "mem" }, { "GrpNodes", LIMIT_GRP_TRES, "node" },
	{ "GrpCPUMins", LIMIT_GRP_TRES_MINS, "cpu" }, { "GrpCPURunMins", LIMIT_GRP_TRES_RUN_MINS, "cpu" }, { "GrpSubmitJobs", LIMIT_GRP_SUBMIT, NULL },
	{ "MaxCPUs", LIMIT_MAX_TRES, "cpu" }, { "MaxCPUsPerJob", LIMIT_MAX_TRES, "cpu" }, { "MaxNodes", LIMIT_MAX_TRES, "node" },
	{ "MaxNodesPerJob", LIMIT_MAX_TRES, "node" }, { "MaxTRESPerJob", LIMIT_MAX_TRES, NULL }, { "MaxTRESPJ", LIMIT_MAX_TRES, NULL }, { "MaxTRESPN", LIMIT_MAX_TRES_PER_NODE, NULL },
	{ "MaxCPUMins", LIMIT_MAX_TRES_MINS, "cpu" }, { "MaxTRESMinsPerJob", LIMIT_MAX_TRES_MINS, NULL }, { "MaxTRESMinsPJ", LIMIT_MAX_TRES_MINS, NULL },
	{ "MaxCPUsPerUser", LIMIT_MAX_TRES_PU, "cpu" }, { "MaxCPUsPU", LIMIT_MAX_TRES_PU, "cpu" }, { "MaxNodesPerUser", LIMIT_MAX_TRES_PU, "node" }, { "MaxNodesPU", LIMIT_MAX_TRES_PU, "node" },
	{ "MaxTRESPerUser", LIMIT_MAX_TRES_PU, NULL }, { "MaxTRESPerAccount", LIMIT_MAX_TRES_PA, NULL }, { "MaxTRESPerAcct", LIMIT_MAX_TRES_PA, NULL },
	{ "MaxJobs", LIMIT_MAX_JOBS, NULL }, { "MaxJobsPerUser", LIMIT_MAX_JOBS, NULL }, { "MaxJobsPerAccount", LIMIT_MAX_JOBS_PA, NULL }, { "MaxJobsPerAcct", LIMIT_MAX_JOBS_PA, NULL },
	{ "MaxSubmitJobs", LIMIT_MAX_SUBMIT, NULL }, { "MaxSubmitJobsPerUser", LIMIT_MAX_SUBMIT, NULL }, { "MaxSubmitJobsPU", LIMIT_MAX_SUBMIT, NULL }, { "MaxSubmitPU", LIMIT_MAX_SUBMIT, NULL },
	{ "MaxSubmitJobsPerAccount", LIMIT_MAX_SUBMIT_PA, NULL }, { "MaxSubmitJobsPA", LIMIT_MAX_SUBMIT_PA, NULL },
	{ "MaxWallDurationPerJob", LIMIT_MAX_WALL, NULL }, { "MinCPUs", LIMIT_MIN_TRES, "cpu" }, { "MinTRESPerJob", LIMIT_MIN_TRES, NULL },
};

const struct limit_row *limit_row(uint32_t kind)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].kind == kind)
			return &rows[i];
	return NULL;
}

static const char *name_of(const struct limit_row *r, bool qos) { return qos ? r->qos : r->assoc; }

static bool begins(const char *name, const char *text, size_t len) { return name && strlen(name) >= len && !strncasecmp(name, text, len); }

const struct limit_row *limit_find(const char *name, size_t len, bool qos, const char **ret_tres)
{
	*ret_tres = NULL;
	for (int exact = 1; exact >= 0 && len >= 4; exact--) {
		for (size_t i = 0; i < ROWS; i++)
			if (begins(name_of(&rows[i], qos), name, len) && (!exact || strlen(name_of(&rows[i], qos)) == len))
				return &rows[i];
		for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
			const struct limit_row *r = limit_row(aliases[i].kind);
			if (!name_of(r, qos) || !begins(aliases[i].name, name, len) || (exact && strlen(aliases[i].name) != len))
				continue;
			*ret_tres = aliases[i].tres;
			return r;
		}
	}
	return NULL;
}

/* --- values ------------------------------------------------------------------------------------ */

static bool same(const Pb__Limit *m, const struct limit_row *row, const char *tres) { return m->kind == (uint32_t)row->kind && str_eq(m->tres, tres); }

static void put(struct limit_list *l, const struct limit_row *row, const char *tres, uint64_t value)
{
	Pb__Limit *m = NULL;
	for (size_t i = 0; i < l->n && !m; i++)
		m = same(l->at[i], row, tres) ? l->at[i] : NULL;
	if (!m) {
		m = xmalloc(sizeof *m);
		pb__limit__init(m);
		m->kind = row->kind;
		m->tres = xstrdup_null(tres);
		l->at = xrealloc(l->at, (l->n + 1) * sizeof *l->at);
		l->at[l->n++] = m;
	}
	m->value = value;
}

static void drop(struct limit_list *l, const struct limit_row *row, const char *tres)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (same(l->at[i], row, tres))
			pb__limit__free_unpacked(l->at[i], NULL);
		else
			l->at[n++] = l->at[i];
	}
	l->n = n;
}

static bool tres_known(const char *name)
{
	static const char *const plain[] = { "cpu", "mem", "node", "billing" };
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (!strcmp(name, plain[i]))
			return true;
	return (str_starts(name, "gres/") && name[5]) || (str_starts(name, "license/") && name[8]);
}

/* A number, with a unit where it is memory. *ret_none: -1, no limit. */
static int value_parse(const struct limit_row *row, const char *tres, const char *text, uint64_t *ret, bool *ret_none, struct error *err)
{
	const char *name = row->qos ? row->qos : row->assoc;
	unsigned long long v = 0;
	uint32_t min = 0;
	*ret_none = !strcmp(text, "-1");
	if (*ret_none)
		return 0;
	if (row->type == LIMIT_TIME) {
		if (timespec_parse_mins(text, &min, NULL) < 0)
			return error_set(err, EINVAL, "Invalid value for %s (%s)", name, text);
		*ret_none = min == TIME_INFINITE;
		*ret = min;
		return 0;
	}
	if (tres && !strcmp(tres, "mem") && row->what == LIMIT_OF_TRES)
		return mem_parse(text, ret, NULL) < 0 ? error_set(err, EINVAL, "Invalid value for %s (%s)", name, text) : 0;
	if (str_to_u64(text, 0, UINT64_MAX / 4, &v) < 0)
		return error_set(err, EINVAL, "Invalid value for %s (%s)", name, text);
	*ret = v;
	return 0;
}

static int one_tres(struct limit_list *l, const struct limit_row *row, char *word, bool apply, struct error *err)
{
	char *eq = strchr(word, '=');
	uint64_t v = 0;
	bool none;
	if (!eq)
		return error_set(err, EINVAL, "no value given as TRES type/id for \"%s\"", word);
	*eq = 0;
	for (char *s = word; *s && *s != ':'; s++)
		*s = (char)(*s >= 'A' && *s <= 'Z' ? *s + 32 : *s);
	int rc = tres_known(word) ? value_parse(row, word, eq + 1, &v, &none, err) : error_set(err, EINVAL, "Unknown TRES type '%s'", word);
	if (!rc && apply && none)
		drop(l, row, word);
	else if (!rc && apply)
		put(l, row, word, v);
	*eq = '=';
	return rc;
}

int limit_set(struct limit_list *l, const struct limit_row *row, const char *tres, const char *text, struct error *err)
{
	uint64_t v = 0;
	bool none = false;
	int rc = 0;
	if (row->type == LIMIT_TRES && !tres) {
		if (!strcmp(text, "-1")) {
			for (size_t i = l->n; i-- > 0;)
				if (l->at[i]->kind == (uint32_t)row->kind)
					drop(l, row, l->at[i]->tres);
			return 0;
		}
		for (int apply = 0; !rc && apply < 2; apply++) {
			char *copy = xstrdup(text), *at = copy, *w;
			while (!rc && (w = str_next(&at, ",")))
				rc = *w ? one_tres(l, row, w, apply, err) : 0;
			free(copy);
		}
		return rc;
	}
	rc = value_parse(row, tres, text, &v, &none, err);
	if (rc)
		return rc;
	if (none)
		drop(l, row, tres);
	else
		put(l, row, tres, v);
	return 0;
}

static int tres_order(const char *t)
{
	static const char *const order[] = { "billing", "cpu", "gres/", "license/", "mem", "node" };
	for (int i = 0; i < 6; i++)
		if (str_starts(t, order[i]))
			return i;
	return 6;
}

static int by_tres(const void *a, const void *b)
{
	const Pb__Limit *x = *(Pb__Limit *const *)a, *y = *(Pb__Limit *const *)b;
	int d = tres_order(x->tres ? x->tres : "") - tres_order(y->tres ? y->tres : "");
	return d ? d : strcmp(x->tres ? x->tres : "", y->tres ? y->tres : "");
}

static void print_value(const struct limit_row *row, const Pb__Limit *m, struct str *out)
{
	char text[48];
	if (row->type == LIMIT_TIME) {
		timespec_format((uint32_t)m->value * 60, text, sizeof text);
		str_add(out, text);
	} else if (m->tres && !strcmp(m->tres, "mem") && row->what == LIMIT_OF_TRES) {
		mem_format(m->value, text, sizeof text);
		str_addf(out, "%s=%s", m->tres, text);
	} else
		str_addf(out, "%s%s%llu", m->tres ? m->tres : "", m->tres ? "=" : "", (unsigned long long)m->value);
}

void limit_print(const struct limit_list *l, enum limit_kind kind, struct str *out)
{
	const struct limit_row *row = limit_row(kind);
	Pb__Limit **of = xmalloc((l->n + 1) * sizeof *of);
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i]->kind == (uint32_t)kind)
			of[n++] = l->at[i];
	qsort(of, n, sizeof *of, by_tres);
	for (size_t i = 0; i < n; i++) {
		if (i)
			str_add_c(out, ',');
		print_value(row, of[i], out);
	}
	free(of);
}

/* --- flags -------------------------------------------------------------------------------------- */

static const struct { uint32_t bit; const char *name; bool works; } flags[] = {
#define QOS_FLAG(bit, symbol, name, works) { 1u << bit, name, works },
#include "tables/qos_flags.def"
#undef QOS_FLAG
};

static int flag_parse(const char *w, uint32_t *ret, struct error *err)
{
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (!*w || strncasecmp(flags[i].name, w, strlen(w)))
			continue;
		if (!flags[i].works)
			return error_set(err, ENOTSUP, "QOS flag %s is not supported yet", flags[i].name);
		*ret |= flags[i].bit;
		return 0;
	}
	return error_set(err, EINVAL, "Unknown QOS flag '%s'", w);
}

int qos_flags_parse(const char *text, uint32_t *ret, struct error *err)
{
	char *copy = xstrdup(text), *at = copy, *w;
	int rc = 0;
	*ret = 0;
	while (!rc && (w = str_next(&at, ",")))
		rc = *w && strcmp(w, "-1") ? flag_parse(w, ret, err) : 0;
	free(copy);
	return rc;
}

void qos_flags_print(uint32_t bits, struct str *out)
{
	bool any = false;
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (bits & flags[i].bit) {
			str_addf(out, "%s%s", any ? "," : "", flags[i].name);
			any = true;
		}
}
