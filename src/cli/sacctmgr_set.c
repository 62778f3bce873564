/* sacctmgr_set.c - key=value into records: what can be set of QOS, associations, accounts and users (sacctmgr(1)) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/sacctmgr.h"
#include "model/timespec.h"

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void strings_drop(char **list, size_t *n, const char *word)
{
	size_t k = 0;
	for (size_t i = 0; i < *n; i++) {
		if (str_eq_nocase(list[i], word))
			free(list[i]);
		else
			list[k++] = list[i];
	}
	*n = k;
}

void strings_set(char ***list, size_t *n, const char *text, int op)
{
	char *copy = xstrdup(text), *at = copy, *w;
	while (op == OP_SET && *n)
		strings_drop(*list, n, (*list)[0]);
	while ((w = str_next(&at, ","))) {
		if (!*w)
			continue;
		for (char *c = w; *c; c++)
			*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
		strings_drop(*list, n, w);
		if (op == OP_REMOVE)
			continue;
		*list = xrealloc(*list, (*n + 1) * sizeof **list);
		(*list)[(*n)++] = xstrdup(w);
	}
	free(copy);
}

void strings_put(char *const *list, size_t n, struct str *out)
{
	char **copy = xmalloc((n + 1) * sizeof *copy);
	memcpy(copy, list, n * sizeof *copy);
	qsort(copy, n, sizeof *copy, by_text);
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%s%s", i ? "," : "", copy[i]);
	free(copy);
}

/* --- values ------------------------------------------------------------------------------------------------- */

static int bad_value(const char *key, const char *value)
{
	log_error("Invalid value for %s (%s)", key, value);
	return -EINVAL;
}

/* -1: none. */
static int set_number(const char *key, const char *text, protobuf_c_boolean *has, uint32_t *ret)
{
	unsigned long long v = 0;
	*has = strcmp(text, "-1") != 0;
	if (*has && str_to_u64(text, 0, UINT32_MAX - 2, &v) < 0)
		return bad_value(key, text);
	*ret = (uint32_t)v;
	return 0;
}

static int set_seconds(const char *key, const char *text, protobuf_c_boolean *has, uint32_t *ret)
{
	unsigned long long v = 0;
	*has = strcmp(text, "-1") != 0;
	*ret = 0;
	if (!*has)
		return 0;
	if (!str_to_u64(text, 0, UINT32_MAX - 2, &v))
		*ret = (uint32_t)v;
	else if (timespec_parse_secs(text, ret, NULL) < 0)
		return bad_value(key, text);
	return 0;
}

static int qos_names_check(const struct sacctmgr *s, const char *text)
{
	char *copy = xstrdup(text), *at = copy, *w;
	int rc = 0;
	while (!rc && (w = str_next(&at, ","))) {
		if (!*w || find_qos(s, w))
			continue;
		struct str valid = STR_INIT;
		for (size_t i = 0; i < s->all->n_qos; i++)
			str_addf(&valid, "%s%s", i ? "," : "", s->all->qos[i]->name);
		log_error("You gave a bad qos '%s'. Valid QOS's are %s", w, valid.data);
		str_fini(&valid);
		rc = -EINVAL;
	}
	free(copy);
	return rc;
}

/* Do those that it may preempt lead back to it? */
static bool preempt_loops(const struct sacctmgr *s, const Pb__QosRecord *q)
{
	size_t n = s->all->n_qos;
	bool *reached = xcalloc(n + 1, sizeof *reached), more = true, loops = false;
	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; (s->all->qos[i] == q || reached[i]) && k < s->all->qos[i]->n_preempt; k++)
				for (size_t to = 0; to < n; to++)
					if (!reached[to] && str_eq_nocase(s->all->qos[i]->preempt[k], s->all->qos[to]->name))
						reached[to] = more = true;
	}
	for (size_t i = 0; i < n; i++)
		loops = loops || (reached[i] && s->all->qos[i] == q);
	free(reached);
	return loops;
}

static int set_preempt(struct sacctmgr *s, Pb__QosRecord *q, const struct pair *p)
{
	int rc = qos_names_check(s, p->value);
	if (rc)
		return rc;
	strings_set(&q->preempt, &q->n_preempt, p->value, p->op);
	if (!preempt_loops(s, q))
		return 0;
	log_error("QOS Preemption loop detected");
	fprintf(stderr, " Error with request: QOS Preemption loop detected\n");
	return -EINVAL;
}

static bool set_one_limit(struct limit_list *l, const struct pair *p, bool qos, int *rc)
{
	const char *tres;
	struct error err = { 0 };
	const struct limit_row *row = limit_find(p->key, strlen(p->key), qos, &tres);
	if (!row)
		return false;
	if (!row->works) {
		log_error("%s is not supported yet", qos ? row->qos : row->assoc);
		*rc = -ENOTSUP;
		return true;
	}
	if (limit_set(l, row, tres, p->value, &err)) {
		log_error("%s", err.line);
		*rc = -ERANGE;
	}
	return true;
}

static int set_flags(Pb__QosRecord *q, const struct pair *p)
{
	struct error err = { 0 };
	uint32_t bits = 0;
	int rc = qos_flags_parse(p->value, &bits, &err);
	if (rc == -ENOTSUP) {
		log_error("%s", err.line);
		return rc;
	}
	if (rc) {
		struct str all = STR_INIT;
		qos_flags_print(UINT32_MAX, &all);
		printf(" Unknown QOS flag used in:\n  '%s'\n Valid QOS flags are\n  '%s'\n", p->value, all.data);
		str_fini(&all);
		return rc;
	}
	q->has_flags = true;
	q->flags = p->op == OP_ADD ? q->flags | bits : p->op == OP_REMOVE ? q->flags & ~bits : bits;
	return 0;
}

static int set_preempt_mode(Pb__QosRecord *q, const struct pair *p)
{
	static const char *const modes[] = { "cancel", "requeue", "off", "within", "cluster" };
	char *copy = xstrdup(p->value), *at = copy, *w;
	int rc = 0;
	while (!rc && (w = str_next(&at, ","))) {
		bool known = !*w;
		for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
			known = known || str_eq_nocase(w, modes[i]);
		if (known)
			continue;
		if (str_eq_nocase(w, "suspend") || str_eq_nocase(w, "gang"))
			log_error("PreemptMode=%s of a QOS is not supported yet", w);
		else
			fprintf(stderr, " Bad Preempt Mode given: PreemptMode=%s\n", p->value);
		rc = -EINVAL;
	}
	free(copy);
	if (rc)
		return rc;
	xstr_set(&q->preempt_mode, str_eq_nocase(p->value, "cluster") || !*p->value ? NULL : p->value);
	for (char *c = q->preempt_mode; c && *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
	return 0;
}

/* A negative one: none. */
static int set_double(const char *key, const char *text, protobuf_c_boolean *has, double *ret)
{
	char *end;
	double v = strtod(text, &end);
	if (end == text || *end || v != v || v > 1e15) {
		log_error("%s value (%s) is not a valid number", key, text);
		return -ERANGE;
	}
	*has = v >= 0;
	*ret = *has ? v : 0;
	return 0;
}

/* slurmctld forgets what was used when the number changes. */
static int set_raw(const char *text, protobuf_c_boolean *has, uint64_t *ret)
{
	char *end;
	if (strtod(text, &end) != 0 || end == text || *end) {
		log_error("Raw usage can only be set to 0 (zero)");
		return -EINVAL;
	}
	*has = true;
	*ret += 1;
	return 0;
}

/* A plain number is minutes here. */
static int set_exempt(Pb__QosRecord *q, const char *text)
{
	q->has_exempt_sec = strcmp(text, "-1") != 0;
	return q->has_exempt_sec && timespec_parse_secs(text, &q->exempt_sec, NULL) < 0 ? bad_value("PreemptExemptTime", text) : 0;
}

bool set_qos(struct sacctmgr *s, Pb__QosRecord *q, const struct pair *p, int *rc)
{
	struct limit_list l = { q->limit, q->n_limit };
	const char *k = p->key, *v = p->value;
	*rc = 0;
	if (word_is(k, "Description", 1))
		xstr_set(&q->description, v);
	else if (word_is(k, "Flags", 2))
		*rc = set_flags(q, p);
	else if (word_is(k, "GraceTime", 3))
		*rc = set_seconds("GraceTime", v, &q->has_grace_sec, &q->grace_sec);
	else if (word_is(k, "PreemptMode", 8))
		*rc = set_preempt_mode(q, p);
	else if (word_is(k, "PreemptExemptTime", 8))
		*rc = set_exempt(q, v);
	else if (word_is(k, "Preempt", 3))
		*rc = set_preempt(s, q, p);
	else if (word_is(k, "Priority", 3))
		*rc = set_number("Priority", v, &q->has_priority, &q->priority);
	else if (word_is(k, "UsageFactor", 6))
		*rc = set_double("UsageFactor", v, &q->has_usage_factor, &q->usage_factor);
	else if (word_is(k, "UsageThreshold", 6))
		*rc = set_double("UsageThreshold", v, &q->has_usage_threshold, &q->usage_threshold);
	else if (word_is(k, "LimitFactor", 6))
		*rc = set_double("LimitFactor", v, &q->has_limit_factor, &q->limit_factor);
	else if (word_is(k, "RawUsage", 4))
		*rc = set_raw(v, &q->has_raw_reset, &q->raw_reset);
	else {
		bool known = set_one_limit(&l, p, true, rc);
		q->limit = l.at;
		q->n_limit = l.n;
		return known;
	}
	return true;
}

static int set_shares(Pb__AssocRecord *m, const char *v)
{
	m->has_shares = true;
	if (str_eq_nocase(v, "parent")) {
		m->shares = UINT32_MAX;
		return 0;
	}
	return set_number("Fairshare", v, &m->has_shares, &m->shares);
}

bool set_assoc(struct sacctmgr *s, Pb__AssocRecord *m, const struct pair *p, int *rc)
{
	struct limit_list l = { m->limit, m->n_limit };
	const char *k = p->key, *v = p->value;
	*rc = 0;
	if (word_is(k, "Fairshare", 1) || word_is(k, "Shares", 1))
		*rc = set_shares(m, v);
	else if (word_is(k, "Priority", 3))
		*rc = set_number("Priority", v, &m->has_priority, &m->priority);
	else if (word_is(k, "RawUsage", 4))
		*rc = set_raw(v, &m->has_raw_reset, &m->raw_reset);
	else if (word_is(k, "QOSLevel", 1)) {
		const Pb__AssocRecord *from = m;
		while (from && !from->n_qos && p->op != OP_SET) /* added to what it has from above */
			from = assoc_parent(s, from);
		if (!(*rc = qos_names_check(s, v))) {
			for (size_t i = 0; from && from != m && i < from->n_qos; i++)
				strings_set(&m->qos, &m->n_qos, from->qos[i], OP_ADD);
			strings_set(&m->qos, &m->n_qos, v, p->op);
		}
	} else if (word_is(k, "DefaultQOS", 8) || word_is(k, "DefQOS", 4)) {
		if (!(*rc = strcmp(v, "-1") ? qos_names_check(s, v) : 0))
			xstr_set(&m->default_qos, !*v || !strcmp(v, "-1") ? NULL : find_qos(s, v)->name);
	} else {
		bool known = set_one_limit(&l, p, false, rc);
		m->limit = l.at;
		m->n_limit = l.n;
		return known;
	}
	return true;
}

bool set_account(Pb__AccountRecord *m, const struct pair *p, int *rc)
{
	*rc = 0;
	if (word_is(p->key, "Description", 3))
		xstr_set(&m->description, p->value);
	else if (word_is(p->key, "Organization", 1))
		xstr_set(&m->organization, p->value);
	else
		return false;
	return true;
}

bool set_user(Pb__UserRecord *m, const struct pair *p, int *rc)
{
	static const char *const level[] = { "None", "Operator", "Administrator" };
	*rc = 0;
	if (!word_is(p->key, "AdminLevel", 2))
		return false;
	for (uint32_t i = 0; i < 3; i++)
		if (word_is(p->value, level[i], 1)) {
			m->has_admin = true;
			m->admin = i;
			return true;
		}
	*rc = bad_value("AdminLevel", p->value);
	return true;
}
