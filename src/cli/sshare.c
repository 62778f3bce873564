/* sshare.c - shares, usage and fair share of associations, as slurmctld counts them (sshare(1))
 * A column is a row of the table below: name, width, what it prints of an association and its use. Accounts are shown as a tree; users are those
 * asked for (the caller where nobody is named). */
#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/cells.h"
#include "cli/json.h"
#include "cli/showcmd.h"
#include "model/limit.h"
#include "proto/assoc.pb-c.h"

enum { O_ACCOUNTS = 1, O_ALL, O_CLUSTERS, O_FORMAT, O_HELP, O_HELPFORMAT, O_JSON, O_LONG, O_NOHEADER, O_PARSABLE, O_PARSABLE2, O_PARTITION, O_USAGE, O_USERS, O_USERS_ONLY, O_VERBOSE, O_VERSION, O_YAML };
static const struct opt_row rows[] = {
	{ "accounts", 'A', OPT_REQUIRED, "names", "only these accounts", O_ACCOUNTS, false },
	{ "all", 'a', OPT_NONE, NULL, "all users", O_ALL, false },
	{ "clusters", 'M', OPT_REQUIRED, "names", "ask these clusters", O_CLUSTERS, false },
	{ "cluster", 0, OPT_REQUIRED, "names", NULL, O_CLUSTERS, false },
	{ "format", 'o', OPT_REQUIRED, "names", "columns, e.g. account,user%20,fairshare", O_FORMAT, false },
	{ "helpformat", 'e', OPT_NONE, NULL, "names of the columns", O_HELPFORMAT, false },
	{ "json", 0, OPT_OPTIONAL, "parser", "as JSON", O_JSON, false },
	{ "long", 'l', OPT_NONE, NULL, "more columns", O_LONG, false },
	{ "noheader", 'n', OPT_NONE, NULL, "no header line", O_NOHEADER, false },
	{ "parsable", 'p', OPT_NONE, NULL, "columns end with |", O_PARSABLE, false },
	{ "parsable2", 'P', OPT_NONE, NULL, "| between columns", O_PARSABLE2, false },
	{ "partition", 'm', OPT_NONE, NULL, "the partition of each association, too", O_PARTITION, false },
	{ "users", 'u', OPT_REQUIRED, "names", "only these users", O_USERS, false },
	{ "Users", 'U', OPT_NONE, NULL, "users alone, without the tree", O_USERS_ONLY, false },
	{ "verbose", 'v', OPT_NONE, NULL, "say what is asked for", O_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "print the version", O_VERSION, false },
	{ "yaml", 0, OPT_OPTIONAL, "parser", "as YAML", O_YAML, false },
	{ "help", 0, OPT_NONE, NULL, "this text", O_HELP, false },
	{ "usage", 0, OPT_NONE, NULL, "this text", O_USAGE, false },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct item { const Pb__AssocRecord *m; const Pb__AcctUsed *u; unsigned depth; };
struct sshare {
	struct cells cells;
	Pb__AcctStateRsp *rsp;
	const char *accounts, *users;
	char own[64];
	bool all, no_header, more, partition, users_only, json, yaml;
	unsigned verbose;
	const char *format;
	struct item *item;
	size_t n;
};

static bool is_user(const struct item *r) { return r->m->user && *r->m->user; }
static bool is_root(const struct item *r) { return !is_user(r) && !strcmp(r->m->account, "root"); }

/* --- resources ------------------------------------------------------------------------------------------ */

static const char *const standard[] = { "cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages" };
enum { STANDARD = sizeof standard / sizeof *standard };

/* Name i of all resources, in the order in which they are printed; NULL: no more. */
static const char *tres_name(const struct sshare *s, size_t i)
{
	if (i < STANDARD)
		return standard[i];
	i -= STANDARD;
	for (size_t k = 0; k < s->rsp->n_tres; k++) {
		bool known = false;
		for (size_t n = 0; n < STANDARD; n++)
			known = known || !strcmp(standard[n], s->rsp->tres[k]);
		if (!known && !i--)
			return s->rsp->tres[k];
	}
	return NULL;
}

static const Pb__AcctAmount *amount(const struct item *r, const char *name)
{
	for (size_t i = 0; r->u && i < r->u->n_amount; i++)
		if (!strcmp(r->u->amount[i]->tres, name))
			return r->u->amount[i];
	return NULL;
}

static void put_minutes(const struct sshare *s, const struct item *r, bool run, struct str *out)
{
	const char *name;
	for (size_t i = 0; (name = tres_name(s, i)); i++) {
		const Pb__AcctAmount *a = amount(r, name);
		str_addf(out, "%s%s=%llu", i ? "," : "", name, a ? (unsigned long long)((run ? a->run_seconds : a->seconds) / 60) : 0ull);
	}
}

/* --- columns -------------------------------------------------------------------------------------------- */

#define GETTER(name) static void get_##name(const struct sshare *s, const struct item *r, struct str *out)
GETTER(account) { str_addf(out, "%*s%s", s->users_only ? 0 : (int)r->depth, "", r->m->account); }
GETTER(cluster) { str_add(out, r->m->cluster); }
GETTER(effective) { str_addf(out, "%.6f", r->u->effective); }
GETTER(fairshare)
{
	if (is_user(r) || !s->rsp->fair_tree)
		str_addf(out, "%.6f", r->u->factor);
}
GETTER(grp_mins) { limit_print(&(struct limit_list){ r->m->limit, r->m->n_limit }, LIMIT_GRP_TRES_MINS, out); }
GETTER(grp_raw) { put_minutes(s, r, false, out); }
GETTER(id) { str_addf(out, "%u", r->m->id); }
GETTER(level_fs)
{
	if (!is_root(r) && !(r->m->has_shares && r->m->shares == UINT32_MAX))
		str_addf(out, isinf(r->u->level_fs) ? "inf" : "%.6f", r->u->level_fs);
}
GETTER(norm_shares) { str_addf(out, "%.6f", r->u->norm_shares); }
GETTER(norm_usage)
{
	if (!is_root(r))
		str_addf(out, "%.6f", r->u->norm_usage);
}
GETTER(partition) { str_add(out, r->m->partition ? r->m->partition : ""); }
GETTER(raw_shares)
{
	if (r->m->has_shares && r->m->shares == UINT32_MAX)
		str_add(out, "parent");
	else if (!is_root(r))
		str_addf(out, "%u", r->m->has_shares ? r->m->shares : 1);
}
GETTER(raw_usage) { str_addf(out, "%.0f", r->u->raw); }
GETTER(run_mins) { put_minutes(s, r, true, out); }
GETTER(user) { str_add(out, is_user(r) ? r->m->user : ""); }

static const struct cells_field names[] = { { "Account", -20 }, { "Cluster", 10 }, { "EffectvUsage", 13 }, { "FairShare", 10 }, { "GrpTRESMins", 30 }, { "GrpTRESRaw", 30 }, { "ID", 6 }, { "LevelFS", 10 },
	{ "NormShares", 11 }, { "NormUsage", 11 }, { "Partition", 12 }, { "RawShares", 10 }, { "RawUsage", 11 }, { "TRESRunMins", 30 }, { "User", 10 } };
static void (*const getter[])(const struct sshare *, const struct item *, struct str *) = { get_account, get_cluster, get_effective, get_fairshare, get_grp_mins, get_grp_raw, get_id, get_level_fs,
	get_norm_shares, get_norm_usage, get_partition, get_raw_shares, get_raw_usage, get_run_mins, get_user };
_Static_assert(sizeof names / sizeof *names == sizeof getter / sizeof *getter, "a getter a column");

static int columns_choose(struct sshare *s)
{
	for (const char *at = s->format; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (!strncasecmp(at, "all", 3) && (!at[3] || strchr(",%", at[3]))) { /* as in sacct; here it is no field */
			log_error("Invalid field requested: \"%.3s\"", at);
			return -EINVAL;
		}
	if (s->format)
		return cells_format(&s->cells, s->format);
	return cells_format(&s->cells, "Account,User") || (s->partition && cells_format(&s->cells, "Partition")) || cells_format(&s->cells, "RawShares,NormShares,RawUsage") ||
	       (s->more && cells_format(&s->cells, "NormUsage")) || cells_format(&s->cells, "EffectvUsage,FairShare") || (s->more && s->rsp->fair_tree && cells_format(&s->cells, "LevelFS")) ||
	       (s->more && cells_format(&s->cells, "GrpTRESMins,TRESRunMins"));
}

/* --- which, in what order --------------------------------------------------------------------------------- */

static bool in_list(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; *p;) {
		size_t k = strcspn(p, ",");
		if (k == n && !strncasecmp(p, word, n))
			return true;
		p += k + (p[k] == ',');
	}
	return false;
}

static bool user_asked(const struct sshare *s, const char *user)
{
	const struct passwd *pw;
	char uid[16];
	if (!s->users)
		return s->all || !strcmp(user, s->own);
	if (in_list(s->users, user))
		return true;
	pw = getpwnam(user);
	snprintf(uid, sizeof uid, "%u", pw ? pw->pw_uid : UINT32_MAX);
	return pw && in_list(s->users, uid);
}

static bool shown(const struct sshare *s, const Pb__AssocRecord *m)
{
	if (s->accounts && !in_list(s->accounts, m->account))
		return false;
	return !m->user || !*m->user || user_asked(s, m->user);
}

static int by_place(const void *a, const void *b)
{
	const Pb__AssocRecord *x = *(Pb__AssocRecord *const *)a, *y = *(Pb__AssocRecord *const *)b;
	bool ux = x->user && *x->user, uy = y->user && *y->user;
	int d = ux != uy ? (ux ? -1 : 1) : strcmp(ux ? x->user : x->account, uy ? y->user : y->account);
	return d ? d : strcmp(x->partition ? x->partition : "", y->partition ? y->partition : "");
}

static const char *above(const Pb__AssocRecord *m)
{
	if (m->user && *m->user)
		return m->account;
	return m->parent && *m->parent ? m->parent : strcmp(m->account, "root") ? "root" : NULL;
}

static const Pb__AcctUsed *used_of(const struct sshare *s, uint32_t id)
{
	static const Pb__AcctUsed none = PB__ACCT_USED__INIT;
	for (size_t i = 0; i < s->rsp->n_used; i++)
		if (!s->rsp->used[i]->qos && s->rsp->used[i]->id == id)
			return s->rsp->used[i];
	return &none;
}

/* `top` NULL: the root. */
static void below_add(struct sshare *s, const char *top, unsigned depth)
{
	const Pb__AcctSnapshot *all = s->rsp->accounts;
	Pb__AssocRecord **list = xmalloc((all->n_assoc + 1) * sizeof *list);
	size_t n = 0;
	for (size_t i = 0; i < all->n_assoc; i++)
		if (str_eq(above(all->assoc[i]), top))
			list[n++] = all->assoc[i];
	qsort(list, n, sizeof *list, by_place);
	for (size_t i = 0; i < n && depth < 64; i++) {
		bool is = shown(s, list[i]), user = list[i]->user && *list[i]->user;
		if (is)
			s->item[s->n++] = (struct item){ list[i], used_of(s, list[i]->id), depth };
		if (!user)
			below_add(s, list[i]->account, depth + is);
	}
	free(list);
}

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void number(struct json *j, const char *key, bool set, bool whole, double v)
{
	json_open(j, key, '{');
	json_bool(j, "set", set);
	json_bool(j, "infinite", false);
	if (whole)
		json_u64(j, "number", set ? (uint64_t)v : 0);
	else
		json_float(j, "number", isinf(v) ? 18446744073709551616.0 : v);
	json_close(j);
}

static void tres_json(const struct sshare *s, struct json *j, const struct item *r)
{
	static const char *const list[] = { "run_seconds", "group_minutes", "usage" };
	const char *name;
	json_open(j, "tres", '{');
	for (int l = 0; l < 3; l++) {
		json_open(j, list[l], '[');
		for (size_t i = 0; (name = tres_name(s, i)); i++) {
			const Pb__AcctAmount *a = amount(r, name);
			const Pb__Limit *limit = NULL;
			for (size_t k = 0; k < r->m->n_limit; k++)
				if (r->m->limit[k]->kind == LIMIT_GRP_TRES_MINS && str_eq(r->m->limit[k]->tres, name))
					limit = r->m->limit[k];
			json_open(j, NULL, '{');
			json_text(j, "name", name);
			if (l == 0)
				json_num(j, "value", true, false, a ? (uint64_t)a->run_seconds : 0);
			else if (l == 1)
				json_num(j, "value", limit != NULL, limit == NULL, limit ? limit->value : 0);
			else
				json_float(j, "value", a ? a->seconds : 0);
			json_close(j);
		}
		json_close(j);
	}
	json_close(j);
}

static void item_json(const struct sshare *s, struct json *j, const struct item *r)
{
	bool parent = r->m->has_shares && r->m->shares == UINT32_MAX;
	json_open(j, NULL, '{');
	json_u64(j, "id", r->m->id);
	json_text(j, "cluster", r->m->cluster);
	json_text(j, "name", is_user(r) ? r->m->user : r->m->account);
	json_text(j, "parent", above(r->m));
	json_text(j, "partition", r->m->partition);
	number(j, "shares_normalized", true, false, r->u->norm_shares);
	json_num(j, "shares", !is_root(r), false, is_root(r) ? 0 : parent ? 2147483647u : r->m->has_shares ? r->m->shares : 1);
	tres_json(s, j, r);
	number(j, "effective_usage", true, false, r->u->effective);
	number(j, "usage_normalized", !is_root(r), false, is_root(r) ? 0 : r->u->norm_usage);
	json_u64(j, "usage", (uint64_t)(r->u->raw + 0.5));
	json_open(j, "fairshare", '{');
	number(j, "factor", true, false, r->u->factor);
	number(j, "level", !is_root(r), false, is_root(r) ? 0 : r->u->level_fs);
	json_close(j);
	json_open(j, "type", '[');
	json_text(j, NULL, is_user(r) ? "USER" : "ASSOCIATION");
	json_close(j);
	json_close(j);
}

static void put_json(const struct sshare *s, const char *const *argv, int argc)
{
	struct str out = STR_INIT;
	struct json j;
	json_init(&j, &out, s->yaml);
	json_open(&j, NULL, '{');
	json_open(&j, "shares", '{');
	json_open(&j, "shares", '[');
	for (size_t i = 0; i < s->n; i++)
		item_json(s, &j, &s->item[i]);
	json_close(&j);
	json_u64(&j, "total_shares", 0);
	json_close(&j);
	json_end(&j, argv, argc);
	out_flush(&out);
	str_fini(&out);
}

/* --- the command ---------------------------------------------------------------------------------------- */

static void put_table(const struct sshare *s)
{
	struct str out = STR_INIT, v = STR_INIT;
	if (!s->no_header)
		cells_header(&out, &s->cells);
	for (size_t i = 0; i < s->n; i++) {
		if (s->users_only && !is_user(&s->item[i]))
			continue;
		for (size_t k = 0; k < s->cells.n; k++) {
			str_reset(&v);
			getter[s->cells.col[k].field](s, &s->item[i], &v);
			cells_put(&out, &s->cells, k, v.data ? v.data : "");
		}
		str_add_c(&out, '\n');
	}
	out_flush(&out);
	str_fini(&out);
	str_fini(&v);
}

static int option(const struct opt_row *row, const char *v, void *arg, struct error *err)
{
	struct sshare *s = arg;
	(void)err;
	switch (row->id) {
	case O_ACCOUNTS: s->accounts = v; break;
	case O_ALL: s->all = true; break;
	case O_CLUSTERS: show_env.clusters = v; break;
	case O_FORMAT: s->format = v; break;
	case O_HELPFORMAT: cells_names((const char *const[]){ "Account", "Cluster", "EffectvUsage", "FairShare", "GrpTRESMins", "GrpTRESRaw", "ID", "LevelFS", "NormShares", "NormUsage", "Partition", "RawShares",
				       "RawUsage", "TRESRunMins", "User" }, 15, 4, 17); exit(0);
	case O_JSON: case O_YAML: {
		int rc = json_parser_check("sshare", v ? v : "");
		if (rc)
			exit(rc - 1);
		s->json = true;
		s->yaml = row->id == O_YAML;
		break;
	}
	case O_LONG: s->more = true; break;
	case O_NOHEADER: s->no_header = true; break;
	case O_PARSABLE: s->cells.parsable = 1; break;
	case O_PARSABLE2: s->cells.parsable = 2; break;
	case O_PARTITION: s->partition = true; break;
	case O_USERS: s->users = v; break;
	case O_USERS_ONLY: s->users_only = true; break;
	case O_VERBOSE: s->verbose++; break;
	case O_VERSION: printf("slurm-wlm %s\n", BERTH_VERSION); exit(0);
	default: opt_print_help("sshare [OPTIONS]", rows, ROWS); exit(0);
	}
	return 0;
}

static void list_say(const char *what, const char *list, const char *otherwise)
{
	char *copy = xstrdup(list && *list ? list : otherwise), *at = copy, *w;
	fprintf(stderr, "%s requested:\n", what);
	while ((w = str_next(&at, ",")))
		fprintf(stderr, "\t: %s\n", w);
	free(copy);
}

int main(int argc, char **argv)
{
	static struct sshare s;
	struct error err = { 0 };
	Pb__AcctStateReq req = PB__ACCT_STATE_REQ__INIT;
	ProtobufCMessage *msg;
	const struct passwd *pw = getpwuid(getuid());
	const char *const *kept = show_argv_keep(argc, argv);
	show_start("sshare");
	snprintf(s.own, sizeof s.own, "%s", pw ? pw->pw_name : "");
	s.cells.field = names;
	s.cells.field_n = sizeof names / sizeof *names;
	if (opt_parse(rows, ROWS, argc, argv, false, option, &s, &err) < 0)
		return show_parse_fail("sshare", &err);
	if (s.verbose) {
		list_say("Users", s.users, s.all ? "all" : s.own);
		list_say("Accounts", s.accounts, "all");
	}
	struct client *c = show_open();
	if (client_call(c, RPC_ACCT_STATE, &req.base, 0, &msg, &err) < 0)
		return show_fail(&err);
	s.rsp = (Pb__AcctStateRsp *)msg;
	if (columns_choose(&s))
		return 1;
	if (s.rsp->accounts) {
		s.item = xcalloc(s.rsp->accounts->n_assoc + 1, sizeof *s.item);
		below_add(&s, NULL, 0);
	}
	if (s.json)
		put_json(&s, kept, argc);
	else
		put_table(&s);
	free(s.item);
	protobuf_c_message_free_unpacked(msg, NULL);
	client_close(c);
	return 0;
}
