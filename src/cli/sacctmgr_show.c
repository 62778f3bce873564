/* sacctmgr_show.c - sacctmgr list: a column is a row of one table; rows are records of the snapshot in the order of the reference */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/sacctmgr.h"
#include "model/timespec.h"

struct row { const Pb__QosRecord *q; const Pb__AssocRecord *s; const Pb__AccountRecord *a; const Pb__UserRecord *u; const Pb__ClusterRecord *k; unsigned depth; };
struct column {
	const char *key, *head;      /* what format= calls it; the header */
	size_t least;                /* letters of the key that are enough */
	int width;
	unsigned of;                 /* bits of enum entity */
	void (*get)(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out);
	uint32_t kind;               /* of a limit */
	const char *tres;            /* only this resource of it */
};
#define OF(e) (1u << (e))
#define AU (OF(E_ASSOC) | OF(E_ACCOUNT) | OF(E_USER))

static void text(struct str *out, const char *t) { str_add(out, t ? t : ""); }
static void get_cluster(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->s ? r->s->cluster : r->k ? r->k->name : NULL); }
static void get_host(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->k ? r->k->control_host : NULL); }
static void get_port(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { str_addf(out, "%u", r->k ? r->k->control_port : 0); }
static void get_account(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	str_addf(out, "%*s%s", s->tree ? (int)r->depth : 0, "", r->s ? r->s->account : r->a ? r->a->name : "");
}
static void get_user(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->s && r->s->user ? r->s->user : r->u ? r->u->name : NULL); }
static void get_partition(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->s ? r->s->partition : NULL); }
static void get_descr(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->q ? r->q->description : r->a ? r->a->description : NULL); }
static void get_org(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->a ? r->a->organization : NULL); }
static void get_coord(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	if (r->a)
		strings_put(r->a->coordinator, r->a->n_coordinator, out);
}
static void get_name(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->q->name); }
static void get_id(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { str_addf(out, "%u", r->q ? r->q->id : r->s ? r->s->id : 0); }

static void get_def_account(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	for (size_t i = 0; i < s->all->n_assoc; i++)
		if (s->all->assoc[i]->is_default && str_eq(s->all->assoc[i]->user, r->u->name)) {
			str_add(out, s->all->assoc[i]->account);
			return;
		}
}

static void get_admin(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	str_add(out, r->u->admin == 2 ? "Administrator" : r->u->admin ? "Operator" : "None");
}

static void get_parent(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { text(out, r->s && !r->s->user ? r->s->parent : NULL); }

static void get_share(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	const Pb__AssocRecord *m = r->k ? find_assoc(s, r->k->name, "root", NULL) : r->s;
	if (m && m->has_shares && m->shares == UINT32_MAX)
		str_add(out, "parent");
	else if (m)
		str_addf(out, "%u", m->has_shares ? m->shares : 1);
}

static void get_priority(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	if (r->q)
		str_addf(out, "%u", r->q->priority);
	else if (r->s && r->s->has_priority)
		str_addf(out, "%u", r->s->priority);
}

static const Pb__AssocRecord *of_row(const struct sacctmgr *s, const struct row *r) { return r->k ? find_assoc(s, r->k->name, "root", NULL) : r->s; }

static void get_qos(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	const Pb__AssocRecord *m = of_row(s, r);
	while (m && !m->n_qos && !s->plain)
		m = assoc_parent(s, m);
	if (m)
		strings_put(m->qos, m->n_qos, out);
}

static void get_def_qos(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	const Pb__AssocRecord *m = of_row(s, r);
	while (m && !m->default_qos && !s->plain)
		m = assoc_parent(s, m);
	text(out, m ? m->default_qos : NULL);
}

/* Max limits hold for those below that say nothing. */
static void get_limit(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	const struct limit_row *row = limit_row(c->kind);
	const Pb__AssocRecord *m = r->q ? NULL : of_row(s, r);
	struct limit_list l = { r->q ? r->q->limit : m ? m->limit : NULL, r->q ? r->q->n_limit : m ? m->n_limit : 0 };
	struct str all = STR_INIT;
	limit_print(&l, (enum limit_kind)c->kind, &all);
	while (m && !all.len && row->scope != LIMIT_PER_GROUP && !s->plain && (m = assoc_parent(s, m))) {
		l = (struct limit_list){ m->limit, m->n_limit };
		limit_print(&l, (enum limit_kind)c->kind, &all);
	}
	size_t n = c->tres ? strlen(c->tres) : 0;
	for (const char *at = all.data; c->tres && *at; at += strcspn(at, ","), at += *at == ',')
		if (!strncmp(at, c->tres, n) && at[n] == '=')
			str_addf(out, "%.*s", (int)strcspn(at + n + 1, ","), at + n + 1);
	if (!c->tres)
		str_add(out, all.data);
	str_fini(&all);
}

static void get_grace(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	char t[32];
	timespec_format(r->q->grace_sec, t, sizeof t);
	str_add(out, t);
}

static void get_exempt(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	char t[32];
	if (!r->q->has_exempt_sec)
		return;
	timespec_format(r->q->exempt_sec, t, sizeof t);
	str_add(out, t);
}

static void get_preempt(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { strings_put(r->q->preempt, r->q->n_preempt, out); }
static void get_preempt_mode(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { str_add(out, r->q->preempt_mode ? r->q->preempt_mode : "cluster"); }
static void get_flags(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { qos_flags_print(r->q->flags, out); }
static void get_factor(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { str_addf(out, "%f", r->q->has_usage_factor ? r->q->usage_factor : 1.0); }
static void get_limit_factor(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	if (r->q->has_limit_factor)
		str_addf(out, "%f", r->q->limit_factor);
}
static void get_threshold(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out)
{
	if (r->q->has_usage_threshold)
		str_addf(out, "%f", r->q->usage_threshold);
}
static void get_nothing(const struct sacctmgr *s, const struct row *r, const struct column *c, struct str *out) { }

#define LIM(key, head, least, width, of, kind) { key, head, least, width, of, get_limit, LIMIT_##kind, NULL }
#define LIMT(key, head, least, width, of, kind, tres) { key, head, least, width, of, get_limit, LIMIT_##kind, tres }
#define Q OF(E_QOS)
#define K OF(E_CLUSTER)
static const struct column columns[] = {
	{ "Account", "Account", 2, 10, AU, get_account, 0, NULL }, { "AdminLevel", "Admin", 2, 9, OF(E_USER), get_admin, 0, NULL }, { "Cluster", "Cluster", 1, 10, AU | K, get_cluster, 0, NULL },
	{ "Coordinators", "Coord Accounts", 2, 20, OF(E_ACCOUNT) | OF(E_USER), get_coord, 0, NULL }, { "ControlHost", "ControlHost", 8, 15, K, get_host, 0, NULL }, { "ControlPort", "ControlPort", 8, 12, K, get_port, 0, NULL },
	{ "RPC", "RPC", 1, 5, K, get_nothing, 0, NULL },
	{ "DefaultAccount", "Def Acct", 8, 10, OF(E_USER), get_def_account, 0, NULL }, { "DefaultQOS", "Def QOS", 8, 9, AU | K, get_def_qos, 0, NULL },
	{ "Description", "Descr", 3, 20, Q | OF(E_ACCOUNT), get_descr, 0, NULL }, { "Fairshare", "Share", 1, 9, AU | K, get_share, 0, NULL }, { "Shares", "Share", 1, 9, AU | K, get_share, 0, NULL },
	{ "Flags", "Flags", 2, 20, Q, get_flags, 0, NULL }, { "GraceTime", "GraceTime", 3, 10, Q, get_grace, 0, NULL },
	LIMT("GrpCPUs", "GrpCPUs", 6, 8, AU | K | Q, GRP_TRES, "cpu"), LIMT("GrpCPUMins", "GrpCPUMins", 8, 11, AU | K | Q, GRP_TRES_MINS, "cpu"),
	LIM("GrpJobs", "GrpJobs", 4, 7, AU | K | Q, GRP_JOBS), LIMT("GrpMemory", "GrpMem", 4, 7, AU | K | Q, GRP_TRES, "mem"), LIMT("GrpNodes", "GrpNodes", 4, 8, AU | K | Q, GRP_TRES, "node"),
	LIM("GrpTRES", "GrpTRES", 7, 13, AU | K | Q, GRP_TRES), LIM("GrpTRESMins", "GrpTRESMins", 8, 13, AU | K | Q, GRP_TRES_MINS), LIM("GrpTRESRunMins", "GrpTRESRunMins", 8, 13, AU | K | Q, GRP_TRES_RUN_MINS),
	LIM("GrpSubmitJobs", "GrpSubmit", 4, 9, AU | K | Q, GRP_SUBMIT), LIM("GrpWall", "GrpWall", 4, 11, AU | K | Q, GRP_WALL), { "ID", "ID", 1, 6, AU | Q, get_id, 0, NULL },
	LIMT("MaxCPUMins", "MaxCPUMins", 7, 11, AU, MAX_TRES_MINS, "cpu"), LIMT("MaxCPUs", "MaxCPUs", 6, 8, AU, MAX_TRES, "cpu"),
	LIM("MaxJobs", "MaxJobs", 4, 7, AU | K, MAX_JOBS), LIM("MaxJobsPerUser", "MaxJobsPU", 4, 9, Q, MAX_JOBS), LIM("MaxJobsPU", "MaxJobsPU", 9, 9, Q, MAX_JOBS),
	LIM("MaxJobsPerAccount", "MaxJobsPA", 11, 9, Q, MAX_JOBS_PA), LIM("MaxJobsPA", "MaxJobsPA", 9, 9, Q, MAX_JOBS_PA), LIMT("MaxNodes", "MaxNodes", 4, 8, AU, MAX_TRES, "node"),
	LIM("MaxSubmitJobs", "MaxSubmit", 4, 9, AU | K, MAX_SUBMIT), LIM("MaxSubmitJobsPerUser", "MaxSubmitPU", 4, 11, Q, MAX_SUBMIT), LIM("MaxSubmitPU", "MaxSubmitPU", 11, 11, Q, MAX_SUBMIT),
	LIM("MaxSubmitJobsPerAccount", "MaxSubmitPA", 17, 11, Q, MAX_SUBMIT_PA), LIM("MaxSubmitPA", "MaxSubmitPA", 11, 11, Q, MAX_SUBMIT_PA),
	LIM("MaxTRES", "MaxTRES", 7, 13, AU | K | Q, MAX_TRES), LIM("MaxTRESPerNode", "MaxTRESPerNode", 11, 14, AU | Q, MAX_TRES_PER_NODE), LIM("MaxTRESMins", "MaxTRESMins", 8, 13, AU | Q, MAX_TRES_MINS),
	LIM("MaxTRESPerUser", "MaxTRESPU", 11, 13, Q, MAX_TRES_PU), LIM("MaxTRESPU", "MaxTRESPU", 9, 13, Q, MAX_TRES_PU), LIM("MaxTRESPerAccount", "MaxTRESPA", 11, 13, Q, MAX_TRES_PA), LIM("MaxTRESPA", "MaxTRESPA", 9, 13, Q, MAX_TRES_PA),
	LIM("MaxTRESRunMinsPA", "MaxTRESRunMinsPA", 16, 22, Q, MAX_TRES_RUN_MINS_PA), LIM("MaxTRESRunMinsPU", "MaxTRESRunMinsPU", 16, 22, Q, MAX_TRES_RUN_MINS_PU),
	LIM("MaxWallDurationPerJob", "MaxWall", 4, 11, AU | K | Q, MAX_WALL), LIM("MinTRES", "MinTRES", 4, 13, Q, MIN_TRES),
	{ "Name", "Name", 1, 10, Q, get_name, 0, NULL }, { "Organization", "Org", 1, 20, OF(E_ACCOUNT), get_org, 0, NULL }, { "ParentName", "ParentName", 4, 10, AU, get_parent, 0, NULL },
	{ "Partition", "Partition", 4, 10, AU, get_partition, 0, NULL }, { "PreemptMode", "PreemptMode", 8, 11, Q, get_preempt_mode, 0, NULL }, { "PreemptExemptTime", "PreemptExemptTime", 8, 19, Q, get_exempt, 0, NULL },
	{ "Preempt", "Preempt", 3, 10, Q, get_preempt, 0, NULL }, { "Priority", "Priority", 3, 10, AU | Q, get_priority, 0, NULL }, { "QOSLevel", "QOS", 1, 20, AU | K, get_qos, 0, NULL },
	{ "UsageThreshold", "UsageThres", 6, 10, Q, get_threshold, 0, NULL }, { "UsageFactor", "UsageFactor", 6, 11, Q, get_factor, 0, NULL }, { "LimitFactor", "LimitFactor", 6, 11, Q, get_limit_factor, 0, NULL },
	{ "User", "User", 1, 10, AU, get_user, 0, NULL }, { "Name", "User", 1, 10, OF(E_USER), get_user, 0, NULL }, { "Name", "Account", 1, 10, OF(E_ACCOUNT), get_account, 0, NULL },
};
#undef Q
#undef K
#define COLUMNS (sizeof columns / sizeof *columns)

static const char *default_format(const struct sacctmgr *s)
{
	switch (s->entity) {
	case E_QOS: return "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThreshold,UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmitJobs,GrpWall,MaxTRES,MaxTRESPerNode,"
		    "MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxTRESRunMinsPA,MaxTRESRunMinsPU,MaxJobsPA,MaxSubmitPA,MinTRES";
	case E_ASSOC: return "Cluster,Account,User,Partition,Shares,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins";
	case E_USER: return s->with_assoc ? "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Shares,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS" :
		s->with_coord ? "User,DefaultAccount,AdminLevel,Coordinators" : "User,DefaultAccount,AdminLevel";
	case E_ACCOUNT: return s->with_assoc ? "Account,Description,Organization,Cluster,ParentName,User,Shares,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMemory,GrpSubmit,GrpWall,GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,"
		"MaxCPUMins,QOS,DefaultQOS" : s->with_coord ? "Account,Description,Organization,Coordinators" : "Account,Description,Organization";
	default: return "Cluster,ControlHost,ControlPort,RPC,Shares,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,DefaultQOS";
	}
}

static struct cells_field heads[COLUMNS];

static int choose_columns(struct sacctmgr *s)
{
	char *copy = xstrdup(s->format ? s->format : default_format(s)), *at = copy, *w;
	int rc = 0;
	for (size_t i = 0; i < COLUMNS; i++)
		heads[i] = (struct cells_field){ columns[i].head, columns[i].width };
	s->cells.field = heads;
	s->cells.field_n = COLUMNS;
	while (!rc && (w = str_next(&at, ","))) {
		char *percent = strchr(w, '%');
		size_t i = 0;
		long long width = 0;
		if (percent)
			*percent++ = 0;
		if (percent && str_to_i64(percent, -10000, 10000, &width)) {
			log_error("Invalid field width: \"%s%%%s\"", w, percent);
			rc = 1;
			break;
		}
		while (i < COLUMNS && !((columns[i].of & OF(s->entity)) && (word_is(w, columns[i].key, columns[i].least) || str_eq_nocase(w, columns[i].head))))
			i++;
		if (i == COLUMNS) {
			fprintf(stderr, "Unknown field '%s'\n", w);
			rc = 1;
			break;
		}
		s->cells.col = xgrow(s->cells.col, &s->cells.cap, s->cells.n + 1, sizeof *s->cells.col);
		s->cells.col[s->cells.n].field = i;
		s->cells.col[s->cells.n++].width = percent ? (int)width : columns[i].width;
	}
	free(copy);
	return rc;
}

static void put_row(const struct sacctmgr *s, const struct row *r)
{
	struct str line = STR_INIT, value = STR_INIT;
	for (size_t i = 0; i < s->cells.n; i++) {
		const struct column *c = &columns[s->cells.col[i].field];
		str_reset(&value);
		c->get(s, r, c, &value);
		cells_put(&line, &s->cells, i, value.data);
	}
	puts(line.data);
	str_fini(&line);
	str_fini(&value);
}

/* --- which records --------------------------------------------------------------------------------------------- */

/* Conditions: names, account=, user=, cluster=, qos=. NULL: no such condition. */
static const char *condition(const struct sacctmgr *s, const char *key, size_t least)
{
	for (size_t i = 0; i < s->pairs; i++)
		if (s->pair[i].key && word_is(s->pair[i].key, key, least))
			return s->pair[i].value;
	return NULL;
}

static bool passes(const char *list, const char *word) { return !list || (!*list && !word) || list_has(list, word ? word : ""); }

static const char *names(const struct sacctmgr *s)
{
	for (size_t i = 0; i < s->pairs; i++)
		if (!s->pair[i].key)
			return s->pair[i].value;
	return condition(s, "Names", 1);
}

static bool assoc_passes(const struct sacctmgr *s, const Pb__AssocRecord *m)
{
	return passes(condition(s, "Accounts", 1), m->account) && passes(condition(s, "Users", 1), m->user) && passes(condition(s, "Clusters", 1), m->cluster) &&
	       passes(condition(s, "Partitions", 4), m->partition) && (!s->only_defaults || m->is_default);
}

static int by_place(const void *a, const void *b)
{
	const Pb__AssocRecord *x = *(Pb__AssocRecord *const *)a, *y = *(Pb__AssocRecord *const *)b;
	int d = !!x->user - !!y->user; /* users of an account before the accounts below it */
	return d ? -d : strcmp(x->user ? x->user : x->account, y->user ? y->user : y->account);
}

/* Depth first: an account, its users, the accounts below it. */
static void put_below(const struct sacctmgr *s, const Pb__AssocRecord *top, unsigned depth)
{
	const Pb__AssocRecord **list = xmalloc((s->all->n_assoc + 1) * sizeof *list);
	size_t n = 0;
	for (size_t i = 0; i < s->all->n_assoc; i++)
		if (assoc_parent(s, s->all->assoc[i]) == top && (top || !s->all->assoc[i]->user))
			list[n++] = s->all->assoc[i];
	qsort(list, n, sizeof *list, by_place);
	for (size_t i = 0; i < n && depth < 64; i++) {
		bool shown = assoc_passes(s, list[i]);
		if (shown)
			put_row(s, &(struct row){ .s = list[i], .depth = depth });
		if (!list[i]->user)
			put_below(s, list[i], depth + shown);
	}
	free(list);
}

static int user_order(const void *a, const void *b) { return strcmp((*(Pb__UserRecord *const *)a)->name, (*(Pb__UserRecord *const *)b)->name); }
static int account_order(const void *a, const void *b) { return strcmp((*(Pb__AccountRecord *const *)a)->name, (*(Pb__AccountRecord *const *)b)->name); }
static int assoc_order(const void *a, const void *b)
{
	const Pb__AssocRecord *x = *(Pb__AssocRecord *const *)a, *y = *(Pb__AssocRecord *const *)b;
	int d = strcmp(x->account, y->account);
	return d ? d : strcmp(x->user ? x->user : "", y->user ? y->user : "");
}

static void put_with_assoc(const struct sacctmgr *s, struct row r)
{
	bool any = false;
	for (size_t i = 0; i < s->all->n_assoc && s->with_assoc; i++) {
		const Pb__AssocRecord *m = s->all->assoc[i];
		if ((r.u && !str_eq(m->user, r.u->name)) || (r.a && strcmp(m->account, r.a->name)) || !assoc_passes(s, m))
			continue;
		r.s = m;
		put_row(s, &r);
		any = true;
	}
	if (!any && !s->with_assoc)
		put_row(s, &r);
}

static void put_tres(const struct sacctmgr *s)
{
	static const struct { const char *type, *name; int id; } tres[] = { { "cpu", "", 1 }, { "mem", "", 2 }, { "energy", "", 3 }, { "node", "", 4 }, { "billing", "", 5 }, { "fs", "disk", 6 },
		{ "vmem", "", 7 }, { "pages", "", 8 }, { "gres", "gpu", 1001 }, { "gres", "gpumem", 1002 }, { "gres", "gpuutil", 1003 } };
	const char *only = condition(s, "Type", 1), *end = s->cells.parsable == 2 ? "" : "|";
	if (!s->no_header && s->cells.parsable)
		printf("Type|Name|ID%s\n", end);
	else if (!s->no_header)
		printf("%8s %15s %6s \n-------- --------------- ------ \n", "Type", "Name", "ID");
	for (size_t i = 0; i < sizeof tres / sizeof *tres; i++) {
		if (only && !list_has(only, tres[i].type))
			continue;
		printf(s->cells.parsable ? "%s|%s|%d%s\n" : "%8s %15s %6d \n", tres[i].type, tres[i].name, tres[i].id, end);
	}
}

static void put_records(struct sacctmgr *s)
{
	Pb__AcctSnapshot *m = s->all;
	const char *only = names(s);
	qsort(m->user, m->n_user, sizeof *m->user, user_order);
	qsort(m->account, m->n_account, sizeof *m->account, account_order);
	if (s->entity != E_ASSOC)
		qsort(m->assoc, m->n_assoc, sizeof *m->assoc, assoc_order);
	switch (s->entity) {
	case E_QOS:
		for (size_t i = 0; i < m->n_qos; i++)
			if (passes(only, m->qos[i]->name))
				put_row(s, &(struct row){ .q = m->qos[i] });
		break;
	case E_ACCOUNT:
		for (size_t i = 0; i < m->n_account; i++)
			if (passes(only, m->account[i]->name) && passes(condition(s, "Accounts", 1), m->account[i]->name))
				put_with_assoc(s, (struct row){ .a = m->account[i] });
		break;
	case E_USER:
		for (size_t i = 0; i < m->n_user; i++)
			if (passes(only, m->user[i]->name) && passes(condition(s, "Users", 1), m->user[i]->name))
				put_with_assoc(s, (struct row){ .u = m->user[i] });
		break;
	case E_CLUSTER:
		for (size_t i = 0; i < m->n_cluster; i++)
			if (passes(only, m->cluster[i]->name))
				put_row(s, &(struct row){ .k = m->cluster[i] });
		break;
	default: put_below(s, NULL, 0);
	}
}

static bool conditions_known(const struct sacctmgr *s)
{
	static const char *const known[] = { "Accounts", "Users", "Clusters", "Partitions", "Names", "Type" };
	for (size_t i = 0; i < s->pairs; i++) {
		bool is = !s->pair[i].key;
		for (size_t k = 0; k < sizeof known / sizeof *known; k++)
			is = is || word_is(s->pair[i].key, known[k], 1);
		if (is)
			continue;
		fprintf(stderr, " Unknown condition: %s=%s\n", s->pair[i].key, s->pair[i].value);
		return false;
	}
	return true;
}

int sacctmgr_show(struct sacctmgr *s)
{
	struct str head = STR_INIT;
	if (!conditions_known(s))
		return 1;
	if (s->entity == E_TRES) {
		put_tres(s);
		return 0;
	}
	if (choose_columns(s))
		return 1;
	if (!s->no_header) {
		cells_header(&head, &s->cells);
		fputs(head.data, stdout);
	}
	str_fini(&head);
	put_records(s);
	return 0;
}
