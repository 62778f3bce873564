/* reserve_update.c - scontrol create, update, delete reservation: EV_RESV
 * Keys are applied to a copy of the record; the copy becomes a reservation of its own that looks for its nodes; only when all is well does it take the
 * place of the old one. The sentence of a refusal says more than the code, whose text is the reference's. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/change.h"
#include "core/reserve.h"
#include "model/hostlist.h"

#define LATE_SEC 60          /* "now" as typed is a little past when it arrives */
#define ONE_YEAR 31536000

/* Everything one request says, before it is judged. */
struct ask {
	struct core *c;
	Pb__ReservationRecord *m;
	const struct resv *old;     /* NULL: a new one */
	struct error *err;
	const struct core_caller *by;
	uint64_t flags, flags_off;
	int64_t start, end;
	uint32_t duration_min, purge_sec;
	bool has_start, has_end, has_duration, has_nodes, has_count, floats, skip, all_nodes;
};
typedef int (*key_fn)(struct ask *a, const char *v, char op, size_t at);

static int no(struct ask *a, int code, const char *sentence) { return error_set(a->err, code, "%s", sentence); }
static char **text_at(struct ask *a, size_t at) { return (char **)((char *)a->m + at); }

/* --- lists of who may ------------------------------------------------------------------------- */

static void list_without(char **list, const char *name)
{
	struct str s = STR_INIT;
	char *copy = xstrdup(*list ? *list : ""), *at = copy, *w;
	while ((w = str_next(&at, ",")))
		if (w[0] && strcmp(w[0] == '-' ? w + 1 : w, name))
			str_add_sep(&s, ",", w);
	free(copy);
	xstr_set(list, s.len ? s.data : NULL);
	str_fini(&s);
}

static void list_with(char **list, const char *name, bool deny)
{
	struct str s = STR_INIT;
	if (*list)
		str_add(&s, *list);
	str_addf(&s, "%s%s%s", s.len ? "," : "", deny ? "-" : "", name);
	xstr_set(list, s.data);
	str_fini(&s);
}

/* Names move up (+) or down (-): denied, unspecified, allowed. kind: what the list was before: of those who may (+), may not (-), or 0 nobody. */
static int list_move(struct ask *a, char **list, char kind, const char *name, bool up, int code)
{
	bool deny = kind == '-', in = resv_list_has(*list, name);
	if (up ? deny && !in : kind == '+' && !in)
		return error_set(a->err, code, "%s", "");
	if (up == !deny || !kind) {
		if (!in)
			list_with(list, name, !up);
		return 0;
	}
	list_without(list, name);
	return 0;
}

static int set_who(struct ask *a, const char *v, char op, size_t at, int code)
{
	char **list = text_at(a, at), *copy = xstrdup(v), *pos = copy, *w;
	char kind = !*list ? 0 : (*list)[0] == '-' ? '-' : '+';
	bool moves = a->old && strpbrk(v, "+-") && (v[0] == '+' || v[0] == '-');
	int rc = 0;
	if (op == '=' && !moves) {
		if (a->old && *list && v[0] && ((*list)[0] == '-') != (v[0] == '-'))
			rc = no(a, code, "a reservation lists those who may use it or those who may not, not both");
		xstr_set(list, NULL);
	}
	while (rc >= 0 && (w = str_next(&pos, ","))) {
		bool minus = w[0] == '-', sign = minus || w[0] == '+';
		const char *name = sign ? w + 1 : w;
		if (!name[0])
			continue;
		if (op == '=' && !moves) {
			if (*list && ((*list)[0] == '-') != minus)
				rc = no(a, code, "a reservation lists those who may use it or those who may not, not both");
			else if (!resv_list_has(*list, name))
				list_with(list, name, minus);
		} else if (op == '-' && !a->old)
			list_with(list, name, true);
		else
			rc = list_move(a, list, kind, name, op == '-' ? false : !minus, code);
	}
	free(copy);
	return rc;
}

/* Names are of those there are, where there are tables of them. */
static int set_known(struct ask *a, const char *v, char op, size_t at, int code, bool (*known)(struct core *c, const char *name))
{
	char *copy = xstrdup(v), *pos = copy, *w;
	int rc = 0;
	while (rc >= 0 && (w = str_next(&pos, ",")))
		if (w[0] && !known(a->c, w + (w[0] == '-' || w[0] == '+')))
			rc = error_set(a->err, code, "\"%s\" does not exist", w + (w[0] == '-' || w[0] == '+'));
	free(copy);
	return rc < 0 ? rc : set_who(a, v, op, at, code);
}

static int set_USERS(struct ask *a, const char *v, char op, size_t at) { return set_who(a, v, op, at, ESLURM_INVALID_USER_ID); }
static int set_ACCOUNTS(struct ask *a, const char *v, char op, size_t at) { return set_known(a, v, op, at, ESLURM_INVALID_ACCOUNT, acct_account_known); }
static int set_GROUPS(struct ask *a, const char *v, char op, size_t at) { return set_who(a, v, op, at, ESLURM_INVALID_USER_ID); }
static int set_QOS(struct ask *a, const char *v, char op, size_t at) { return set_known(a, v, op, at, ESLURM_INVALID_QOS, acct_qos_known); }

static int set_PARTS(struct ask *a, const char *v, char op, size_t at)
{
	char *copy = xstrdup(v), *pos = copy, *w;
	bool known = true;
	while ((w = str_next(&pos, ",")))
		known = known && (!w[0] || part_find(a->c, w + (w[0] == '-' || w[0] == '+')));
	free(copy);
	return known ? set_who(a, v, op, at, ESLURM_INVALID_PARTITION_NAME) : error_set(a->err, ESLURM_INVALID_PARTITION_NAME, "%s", "");
}

/* --- plain values ----------------------------------------------------------------------------- */

static int set_TEXT(struct ask *a, const char *v, char op, size_t at)
{
	(void)op;
	xstr_set(text_at(a, at), v[0] ? v : NULL);
	return 0;
}

static int set_PARTITION(struct ask *a, const char *v, char op, size_t at)
{
	if (!part_find(a->c, v))
		return error_set(a->err, ESLURM_INVALID_PARTITION_NAME, "%s", "");
	a->has_count = a->has_count || a->old;
	return set_TEXT(a, v, op, at);
}

static int number(struct ask *a, const char *v, uint64_t min, uint64_t max, uint64_t *ret)
{
	unsigned long long n;
	if (str_to_u64(v, min, max, &n) < 0)
		return error_set(a->err, EINVAL, "\"%s\" is not a number that is possible here", v);
	*ret = n;
	return 0;
}

static int set_START(struct ask *a, const char *v, char op, size_t at)
{
	uint64_t n = 0;
	(void)op;
	(void)at;
	if (number(a, v + (v[0] == '+'), 0, INT64_MAX, &n) < 0)
		return a->err->code;
	a->has_start = true;
	a->floats = v[0] == '+';
	a->m->has_float_sec = a->floats;
	a->m->float_sec = a->floats ? (uint32_t)n : 0;
	a->start = a->floats ? (int64_t)now_sec(a->c) + (int64_t)n : (int64_t)n;
	return 0;
}

static int set_END(struct ask *a, const char *v, char op, size_t at)
{
	uint64_t n = 0;
	(void)op;
	(void)at;
	a->has_end = true;
	if (number(a, v, 0, INT64_MAX, &n) < 0)
		return a->err->code;
	a->end = (int64_t)n;
	return 0;
}

static int set_DURATION(struct ask *a, const char *v, char op, size_t at)
{
	uint64_t n = 0;
	(void)at;
	if (number(a, v, 0, UINT32_MAX, &n) < 0)
		return a->err->code;
	if (op != '=' && a->old) {
		uint64_t was = (uint64_t)(a->old->end - a->old->start) / 60;
		n = op == '+' ? was + n : n < was ? was - n : 0;
	}
	a->has_duration = true;
	a->duration_min = (uint32_t)n;
	return 0;
}

static int set_NODES(struct ask *a, const char *v, char op, size_t at)
{
	struct bitset *b = NULL, *have = NULL;
	struct error e = { 0 };
	(void)at;
	a->has_nodes = true;
	a->all_nodes = op == '=' && !strcasecmp(v, "ALL");
	if (!v[0]) {
		a->flags_off |= RESVF_SPEC_NODES | RESVF_ALL_NODES;
		a->m->has_ask_nodes = true;
		a->m->ask_nodes = a->old ? a->old->rec->node_cnt : 0;
		a->has_count = true;
		return 0;
	}
	bool moves = a->old && op == '=' && (v[0] == '+' || v[0] == '-');
	if ((moves ? nodes_moved(a->c, a->old->nodes, v, &b, &e) : nodes_bitset(a->c, v, &b, &e)) < 0)
		return error_set(a->err, ESLURM_INVALID_NODE_NAME, "%s", "");
	if (op != '=' && a->old) {
		have = bitset_copy(a->old->nodes);
		(op == '+' ? bitset_or : bitset_andnot)(have, b);
		bitset_assign(b, have);
		bitset_destroy(have);
	}
	free(a->m->nodes);
	a->m->nodes = nodes_text(a->c, b);
	a->flags |= RESVF_SPEC_NODES | (a->all_nodes ? RESVF_ALL_NODES : 0);
	int rc = bitset_empty(b) ? no(a, ESLURM_INVALID_NODE_NAME, "a reservation needs a node") : 0;
	bitset_destroy(b);
	return rc;
}

static int set_COUNT(struct ask *a, const char *v, char op, size_t at)
{
	char *end;
	unsigned long n = strtoul(v, &end, 10);
	(void)op;
	if (*end == 'k' || *end == 'K') {
		n *= 1024;
		end++;
	}
	if (end == v || *end || n > UINT32_MAX / 2)
		return error_set(a->err, ESLURM_INVALID_NODE_COUNT, "\"%s\" is not a number", v);
	if (op != '=' && a->old) {
		uint32_t was = at == offsetof(Pb__ReservationRecord, ask_nodes) ? a->old->rec->node_cnt : a->old->rec->core_cnt;
		n = op == '+' ? was + n : n < was ? was - n : 0;
	}
	a->has_count = true;
	*(uint32_t *)((char *)a->m + at) = (uint32_t)n;
	a->m->has_ask_nodes = a->m->ask_nodes > 0;
	a->m->has_ask_cores = a->m->ask_cores > 0;
	return 0;
}

static int set_TRES(struct ask *a, const char *v, char op, size_t at)
{
	struct str gres = STR_INIT;
	char *copy = xstrdup(v), *pos = copy, *w;
	int rc = 0;
	a->has_count = true;
	a->m->has_ask_per_node = a->m->ask_per_node = at != 0;
	while (rc >= 0 && (w = str_next(&pos, ","))) {
		char *eq = strchr(w, '=');
		const char *n = eq ? eq + 1 : "";
		if (!strncasecmp(w, "node=", 5))
			rc = set_COUNT(a, n, op, offsetof(Pb__ReservationRecord, ask_nodes));
		else if (!strncasecmp(w, "cpu=", 4)) {
			uint32_t t = a->c->node_n ? a->c->node[0]->threads : 1;
			rc = set_COUNT(a, n, op, offsetof(Pb__ReservationRecord, ask_cores));
			a->m->ask_cores = (a->m->ask_cores + t - 1) / t;
		} else if (!strncasecmp(w, "gres/", 5) && eq)
			str_add_sep(&gres, ",", w);
		else
			rc = error_set(a->err, ESLURM_INVALID_TRES, "%s", "");
	}
	free(copy);
	xstr_set(&a->m->ask_tres, gres.len ? gres.data : NULL);
	str_fini(&gres);
	return rc;
}

static int set_FLAGS(struct ask *a, const char *v, char op, size_t at)
{
	char *copy = xstrdup(v), *pos = copy, *w;
	int rc = 0;
	(void)at;
	while (rc >= 0 && (w = str_next(&pos, ","))) {
		bool away = op == '-' || w[0] == '-';
		const char *word = w + (w[0] == '-' || w[0] == '+');
		if (!word[0])
			continue;
		uint32_t bit = resvflag_parse(word, !a->old, away, &a->purge_sec, a->err);
		if (!bit)
			rc = a->err->code;
		*(away ? &a->flags_off : &a->flags) |= bit;
	}
	free(copy);
	return rc;
}

static int set_SECONDS(struct ask *a, const char *v, char op, size_t at)
{
	uint64_t n = 0;
	(void)op;
	if (number(a, v, 0, UINT32_MAX, &n) < 0)
		return a->err->code;
	*(uint32_t *)((char *)a->m + at) = (uint32_t)n;
	a->m->has_max_start_delay_sec = a->m->max_start_delay_sec > 0;
	return 0;
}

static int set_SKIP(struct ask *a, const char *v, char op, size_t at)
{
	(void)v;
	(void)op;
	(void)at;
	a->skip = true;
	return 0;
}

static int set_LICENSES(struct ask *a, const char *v, char op, size_t at)
{
	if (op != '=')
		return error_set(a->err, ESLURM_INVALID_LICENSES, "licenses are named as a whole: += and -= are not possible");
	return set_TEXT(a, v, op, at);
}

static int set_BURST(struct ask *a, const char *v, char op, size_t at)
{
	(void)op;
	(void)at;
	return v[0] ? error_set(a->err, ESLURM_NOT_SUPPORTED, "there are no burst buffers to reserve (\"%s\")", v) : 0;
}

#define AT(f) offsetof(Pb__ReservationRecord, f)
static const struct { const char *key; key_fn fn; size_t at; } keys[] = {
	{ "StartTime", set_START, 0 }, { "EndTime", set_END, 0 }, { "Duration", set_DURATION, 0 }, { "Nodes", set_NODES, 0 },
	{ "NodeCnt", set_COUNT, AT(ask_nodes) }, { "CoreCnt", set_COUNT, AT(ask_cores) }, { "TRES", set_TRES, 0 }, { "TRESPerNode", set_TRES, 1 },
	{ "Features", set_TEXT, AT(features) }, { "PartitionName", set_PARTITION, AT(partition) }, { "Users", set_USERS, AT(users) },
	{ "Accounts", set_ACCOUNTS, AT(accounts) }, { "Groups", set_GROUPS, AT(groups) }, { "GroupUsers", set_TEXT, AT(group_users) },
	{ "QOS", set_QOS, AT(qos) }, { "AllowedPartitions", set_PARTS, AT(allowed_partitions) }, { "Flags", set_FLAGS, 0 },
	{ "MaxStartDelay", set_SECONDS, AT(max_start_delay_sec) }, { "Comment", set_TEXT, AT(comment) }, { "Skip", set_SKIP, 0 },
	{ "Licenses", set_LICENSES, AT(licenses) }, { "BurstBuffer", set_BURST, 0 },
};

static int apply(struct ask *a, const char *key, const char *v)
{
	size_t n = strlen(key);
	char op = n && (key[n - 1] == '+' || key[n - 1] == '-') ? key[--n] : '=';
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (strlen(keys[i].key) == n && !strncasecmp(keys[i].key, key, n))
			return keys[i].fn(a, v ? v : "", op, keys[i].at);
	return error_set(a->err, EINVAL, "reservation key \"%s\" is not known", key);
}

/* --- is it sound ------------------------------------------------------------------------------ */

static int check_flags(struct ask *a, uint64_t f)
{
	uint64_t often = f & RESVF_RECURRING;
	if (often & (often - 1))
		return no(a, ESLURM_RESERVATION_NOT_SUPPORTED, "Reservation has multiple reoccurring flags. Please specify only one reoccurring flag");
	if (f & (RESVF_REPLACE | RESVF_REPLACE_DOWN) && f & (RESVF_STATIC_ALLOC | RESVF_MAINT))
		return no(a, ESLURM_RESERVATION_NOT_SUPPORTED, "REPLACE and REPLACE_DOWN flags cannot be used with STATIC_ALLOC or MAINT flags");
	if (f & (RESVF_REPLACE | RESVF_REPLACE_DOWN) && f & RESVF_SPEC_NODES)
		return no(a, ESLURM_INVALID_NODE_NAME, "REPLACE or REPLACE_DOWN flags should be used with the NodeCnt reservation option; do not specify Nodes");
	if (f & RESVF_TIME_FLOAT && (often || (!a->old && !a->floats)))
		return no(a, ESLURM_NOT_SUPPORTED, often ? "a floating reservation cannot recur" : "TIME_FLOAT needs a start relative to now");
	if (f & RESVF_FORCE_START && !often)
		return no(a, ESLURM_NOT_SUPPORTED, "FORCE_START flag requires a reoccuring reservation");
	if (f & RESVF_ANY_NODES && !a->m->licenses && !(f & RESVF_SPEC_NODES))
		return no(a, ESLURM_RESERVATION_INVALID, "ANY_NODES is for licenses, and none are named");
	if (!(f & (RESVF_ANY_NODES | RESVF_SPEC_NODES | RESVF_PART_NODES)) && a->m->licenses && !a->m->ask_nodes && !a->m->ask_cores && !a->m->ask_tres && !a->m->partition && !a->old)
		return no(a, ESLURM_INVALID_NODE_NAME, "licenses without nodes need Flags=ANY_NODES");
	if (f & RESVF_PART_NODES && !(a->m->partition && a->m->partition[0]))
		return no(a, ESLURM_INVALID_PARTITION_NAME, "PART_NODES flag requires specifying a Partition and ALL nodes");
	return 0;
}

static int check_who(struct ask *a)
{
	const Pb__ReservationRecord *m = a->m;
	if (!m->users && !m->accounts && !m->groups && !m->qos && !m->allowed_partitions)
		return error_set(a->err, ESLURM_RESERVATION_EMPTY, "%s", "");
	if (m->users && m->groups)
		return no(a, ESLURM_INVALID_USER_ID, "Users and Groups are mutually exclusive");
	return 0;
}

static int times(struct ask *a, struct resv *r)
{
	struct core *c = a->c;
	int64_t now = now_sec(c), start = a->old ? a->old->start : 0, end = a->old ? a->old->end : 0;
	if (a->has_start && a->old && a->old->active)
		return error_set(a->err, ESLURM_RESERVATION_STARTED, "%s", "");
	if (!a->old && (!a->has_start || (!a->has_end && !a->has_duration)))
		return no(a, ESLURM_INVALID_TIME, "a reservation needs a start, and an end or a duration");
	int64_t length = a->has_duration ? a->duration_min == UINT32_MAX ? ONE_YEAR : a->duration_min * 60ll : end - start;
	if (a->has_start) {
		start = a->start;
		if (start < now - LATE_SEC && !(r->flags & RESVF_FORCE_START))
			return error_set(a->err, ESLURM_INVALID_TIME, "%s", "");
	}
	if (a->has_end)
		end = a->end;
	else if (a->has_duration || a->has_start)
		end = start + length;
	if (r->flags & RESVF_TIME_FLOAT && !a->old) {
		r->rec->has_float_len_sec = !a->has_end;
		r->rec->float_len_sec = a->has_end ? 0 : (uint32_t)length;
	}
	if (end <= start || (end <= now && !(r->flags & RESVF_RECURRING)))
		return error_set(a->err, ESLURM_INVALID_TIME, "%s", "");
	resv_set_times(c, r, start, end);
	while (r->flags & RESVF_RECURRING && r->end <= now)
		resv_advance(c, r);
	r->active = r->start <= now && !(r->flags & RESVF_TIME_FLOAT);
	return 0;
}

/* --- taking it over --------------------------------------------------------------------------- */

/* Nodes as they were, more of them, fewer, or others? */
static int nodes(struct ask *a, struct resv *r)
{
	Pb__ReservationRecord *m = r->rec;
	bool part_only = !a->old && m->partition && !m->ask_nodes && !m->ask_cores && !m->ask_tres && !(r->flags & RESVF_SPEC_NODES);
	if (part_only || (r->flags & RESVF_PART_NODES && (!a->old || a->has_nodes))) {
		r->flags |= RESVF_SPEC_NODES | RESVF_PART_NODES;
		r->flags &= ~(uint64_t)RESVF_ALL_NODES;
		free(m->nodes);
		m->nodes = nodes_text(a->c, part_find(a->c, m->partition)->nodes);
	}
	if (!a->old && !(r->flags & (RESVF_SPEC_NODES | RESVF_ANY_NODES)) && !m->ask_nodes && !m->ask_cores && !m->ask_tres && !(m->features && m->features[0] == '['))
		return error_set(a->err, ESLURM_INVALID_NODE_COUNT, "%s", "CoreCnt, Nodes, NodeCnt or TRES must be specified");
	if (a->old && !a->has_nodes && !a->has_count) { /* where it was; is that free at the new time? */
		r->nodes = bitset_copy(a->old->nodes);
		bitset_for(r->nodes, i)
			for (uint32_t k = 0; k < a->c->node[i]->resv_n && !a->old->partial; k++) {
				const struct resv *o = a->c->node[i]->resv[k].r;
				if (o->id != r->id && !((r->flags | o->flags) & (RESVF_MAINT | RESVF_OVERLAP)) && resv_meet(a->c, r, o))
					return error_set(a->err, ESLURM_RESERVATION_OVERLAP, "%s", "");
			}
		return resv_restore_parts(a->c, r);
	}
	if (a->old && a->has_count && !a->has_nodes && !m->ask_cores && !m->ask_tres)
		return resv_resize(a->c, r, a->old, a->err);
	return resv_pick(a->c, r, a->err);
}

/* Jobs that are in it or wait for it must still be allowed. */
static int check_jobs(struct ask *a, const struct resv *r)
{
	struct core *c = a->c;
	for (uint64_t cur = 0; a->old;) {
		const struct core_job *j = core_job_next(c, &cur);
		if (!j)
			break;
		bool runs = j->alloc && j->alloc->left && j->resv_id == r->id, waits = j->state == PB__JOB_STATE__PENDING && resv_names(j, r->rec->name);
		if (!runs && !waits)
			continue;
		Pb__JobDesc *d = job_desc(j);
		struct error e = { 0 };
		bool ok = resv_job_allowed(c, r, j, d);
		pb__job_desc__free_unpacked(d, NULL);
		(void)e;
		if (!ok)
			return error_set(a->err, ESLURM_RESERVATION_BUSY, "Reservation update rejected because of JobId=%u", j->id);
	}
	return 0;
}

static void default_name(struct ask *a, uint32_t id)
{
	const char *const from[] = { a->m->users, a->m->groups, a->m->accounts, a->m->allowed_partitions, a->m->qos };
	const char *first = "resv";
	for (size_t i = 0; i < sizeof from / sizeof from[0]; i++)
		if (from[i] && from[i][0]) {
			first = from[i] + (from[i][0] == '-');
			break;
		}
	free(a->m->name);
	a->m->name = xasprintf("%.*s_%u", (int)strcspn(first, ","), first, id);
}

/* The new reservation from the copy of the record, complete but in no list yet. */
static int build(struct ask *a, struct resv *r)
{
	r->flags = ((a->old ? a->old->flags : 0) | a->flags) & ~a->flags_off;
	if (a->flags & RESVF_PURGE_COMP) {
		a->m->has_purge_comp_sec = true;
		a->m->purge_comp_sec = a->purge_sec;
	}
	int rc = check_flags(a, r->flags);
	if (rc >= 0)
		rc = check_who(a);
	if (rc >= 0)
		rc = times(a, r);
	if (rc >= 0)
		rc = license_reserve(a->c, r, a->err);
	if (rc >= 0)
		rc = nodes(a, r);
	return rc >= 0 ? check_jobs(a, r) : rc;
}

static void skip(struct core *c, struct resv *r)
{
	resv_advance(c, r);
	r->active = r->start <= now_sec(c);
	resv_changed(c, r);
	resv_jobs_follow(c, NULL);
}

static int update_one(struct core *c, struct resv *old, struct ask *a)
{
	const struct core_job *j = a->skip ? resv_in_use(c, old) : NULL;
	if (a->skip && !(old->flags & RESVF_RECURRING))
		return error_set(a->err, ESLURM_RESERVATION_NOT_SKIPPABLE, "%s", "");
	if (j && j->state != PB__JOB_STATE__PENDING)
		return error_set(a->err, ESLURM_RESERVATION_BUSY, "%s", "");
	if (a->skip) {
		skip(c, old);
		return 0;
	}
	struct resv *r = xcalloc(1, sizeof *r);
	r->id = old->id;
	r->rec = a->m;
	int rc = build(a, r);
	if (rc < 0) {
		r->rec = NULL;
		resv_free(r);
		return rc;
	}
	resv_unhold(c, old);
	for (uint32_t i = 0; i < c->resv_n; i++)
		if (c->resv[i] == old)
			c->resv[i] = r;
	resv_free(old);
	resv_hold(c, r);
	resv_changed(c, r);
	resv_running_follow(c, r);
	resv_jobs_follow(c, NULL);
	a->m = NULL;
	return 0;
}

static int create_one(struct core *c, const char *name, struct ask *a)
{
	if (name && resv_find(c, name))
		return error_set(a->err, ESLURM_RESERVATION_NAME_DUP, "%s", "");
	struct resv *r = xcalloc(1, sizeof *r);
	r->id = c->resv_last_id + 1;
	r->rec = a->m;
	a->m->id = r->id;
	a->m->has_creator_uid = true;
	a->m->creator_uid = a->by->uid;
	int rc = build(a, r);
	if (rc < 0) {
		r->rec = NULL;
		resv_free(r);
		return rc;
	}
	if (name)
		xstr_set(&a->m->name, name);
	else
		default_name(a, r->id);
	r->rec->has_idle_since = true;
	r->rec->idle_since = now_sec(c);
	resv_insert(c, r);
	resv_hold(c, r);
	resv_changed(c, r);
	resv_jobs_follow(c, NULL);
	return 0;
}

static int may(const struct resv *r, const struct core_event *ev, struct error *err)
{
	struct resv_who w = { .user = ev->by.user };
	Pb__ReservationRecord plain;
	struct resv probe;
	if (ev->by.oper)
		return 0;
	bool skips = ev->resv->op == PB__RESV_UPDATE_REQ__OP__UPDATE && ev->resv->n_set == 1 && !strcasecmp(ev->resv->set[0]->key, "Skip");
	if (r && r->flags & RESVF_USER_DELETE && (skips || ev->resv->op == PB__RESV_UPDATE_REQ__OP__DELETE)) {
		plain = *r->rec;
		plain.qos = plain.allowed_partitions = plain.accounts = NULL; /* his job, not he, would have an account */
		probe = *r;
		probe.rec = &plain;
		if ((plain.users || plain.groups) && resv_allows(&probe, &w))
			return 0;
	}
	return error_set(err, ESLURM_INVALID_USER_ID, "%s", "");
}

static int change(struct core *c, const struct core_event *ev, struct ask *a)
{
	const Pb__ResvUpdateReq *q = ev->resv;
	struct resv *r = resv_find(c, q->name);
	const char *name = q->name && q->name[0] ? q->name : NULL;
	Pb__ReservationRecord fresh = PB__RESERVATION_RECORD__INIT;
	bool make = q->op == PB__RESV_UPDATE_REQ__OP__CREATE;
	int rc = may(r, ev, a->err);
	if (rc >= 0 && !make && !r)
		rc = error_set(a->err, ESLURM_RESERVATION_INVALID, "%s", "");
	if (rc >= 0 && make && name && strpbrk(name, ",\n"))
		rc = no(a, ESLURM_RESERVATION_INVALID, "a reservation's name has no comma in it");
	if (rc >= 0 && q->op == PB__RESV_UPDATE_REQ__OP__DELETE) {
		if (resv_in_use(c, r))
			return error_set(a->err, ESLURM_RESERVATION_BUSY, "%s", "");
		resv_remove(c, r);
		return 0;
	}
	if (rc < 0)
		return rc;
	fresh.name = (char *)(name ? name : "");
	a->old = make ? NULL : r;
	a->m = (Pb__ReservationRecord *)message_copy((const ProtobufCMessage *)(make ? &fresh : r->rec));
	for (size_t i = 0; rc >= 0 && i < q->n_set; i++)
		rc = apply(a, q->set[i]->key, q->set[i]->value);
	if (rc >= 0)
		rc = make ? create_one(c, name, a) : update_one(c, r, a);
	return rc;
}

void resv_update(struct core *c, const struct core_event *ev)
{
	struct error err = { 0 };
	struct ask a = { .c = c, .err = &err, .by = &ev->by };
	struct arena *mem = fx_arena(c);
	Pb__ResvUpdateRsp *rsp = arena_alloc(mem, sizeof *rsp);
	int rc = change(c, ev, &a);
	pb__resv_update_rsp__init(rsp);
	rsp->code = (uint32_t)-err.code;
	rsp->detail = err.line[0] ? arena_strdup(mem, err.line) : NULL;
	if (rc >= 0 && ev->resv->op == PB__RESV_UPDATE_REQ__OP__CREATE)
		rsp->name = arena_strdup(mem, a.m->name);
	else if (a.m)
		pb__reservation_record__free_unpacked(a.m, NULL);
	fx_reply(c, ev->token, rsp);
}
