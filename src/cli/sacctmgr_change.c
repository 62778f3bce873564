/* sacctmgr_change.c - sacctmgr add, modify, delete: the snapshot is changed in place, what changed is sent, all of it or nothing
 * What is said on the way is the reference's, recorded in test/compat/sacctmgr.txt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/sacctmgr.h"
#include "model/timespec.h"

/* --- sending ------------------------------------------------------------------------------------------------ */

static Pb__AcctChange *change_new(struct sacctmgr *s, bool remove)
{
	Pb__AcctChange *ch = xcalloc(1, sizeof *ch);
	pb__acct_change__init(ch);
	ch->has_remove = ch->remove = remove;
	s->change = xgrow(s->change, &s->change_cap, s->changes + 1, sizeof(Pb__AcctChange *));
	return s->change[s->changes++] = ch;
}

static void put_assoc(struct sacctmgr *s, Pb__AssocRecord *m, bool remove)
{
	for (size_t i = 0; i < s->changes; i++)
		if (s->change[i]->assoc == m)
			return;
	change_new(s, remove)->assoc = m;
}

static int commit(struct sacctmgr *s, const char *doing)
{
	Pb__AcctSetReq req = PB__ACCT_SET_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	char line[16] = "";
	if (!s->now) {
		printf("Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ");
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin) || (line[0] != 'y' && line[0] != 'Y')) {
			printf(" Changes Discarded\n");
			return 0;
		}
	}
	req.version = s->all->version;
	req.n_change = s->changes;
	req.change = s->change;
	int rc = client_call_dbd(s->client, RPC_DB_ACCT_SET, &req.base, 0, &msg, &err);
	const Pb__AcctSetRsp *rsp = (const Pb__AcctSetRsp *)msg;
	if (!rc && rsp->code)
		rc = error_set(&err, -(int)rsp->code, "%s", rsp->detail ? rsp->detail : error_text((int)rsp->code));
	if (msg)
		protobuf_c_message_free_unpacked(msg, NULL);
	if (!rc)
		return 0;
	fflush(stdout);
	if (rc == -EBUSY)
		fprintf(stderr, " Error with request: %s\n", err.line);
	else
		fprintf(stderr, " Problem %s: %s\n", doing, rc == -ESLURM_ACCESS_DENIED ? "Access/permission denied" : err.line);
	return 1;
}

/* --- the command's words --------------------------------------------------------------------------------------- */

/* The value of a key that is a condition or a name (not a setting); NULL. */
static char *named(const struct sacctmgr *s, const char *key, size_t least, bool bare)
{
	for (size_t i = 0; i < s->pairs; i++)
		if (s->pair[i].where && (s->pair[i].key ? word_is(s->pair[i].key, key, least) : bare))
			return s->pair[i].value;
	return NULL;
}

static void lower(char *s)
{
	for (; s && *s; s++)
		*s = (char)(*s >= 'A' && *s <= 'Z' ? *s + 32 : *s);
}

static int unknown_option(const struct pair *p)
{
	if (p->key)
		fprintf(stderr, " Unknown option: %s%s=%s\n Use keyword 'where' to modify condition\n", p->key, p->op == OP_ADD ? "+" : p->op == OP_REMOVE ? "-" : "", p->value);
	else
		fprintf(stderr, " Unknown option: %s\n Use keyword 'where' to modify condition\n", p->value);
	return 1;
}

static Pb__QosRecord *qos_new(struct sacctmgr *s, const char *name)
{
	Pb__QosRecord *q = xcalloc(1, sizeof *q);
	pb__qos_record__init(q);
	q->name = xstrdup(name);
	q->description = xstrdup(name);
	s->all->qos = xrealloc(s->all->qos, (s->all->n_qos + 1) * sizeof *s->all->qos);
	return s->all->qos[s->all->n_qos++] = q;
}

static Pb__AssocRecord *assoc_new(struct sacctmgr *s, const char *cluster, const char *account, const char *user, const char *parent)
{
	Pb__AssocRecord *m = xcalloc(1, sizeof *m);
	pb__assoc_record__init(m);
	m->cluster = xstrdup(cluster);
	m->account = xstrdup(account);
	m->user = xstrdup_null(user);
	m->parent = xstrdup_null(parent);
	s->all->assoc = xrealloc(s->all->assoc, (s->all->n_assoc + 1) * sizeof *s->all->assoc);
	s->all->assoc[s->all->n_assoc++] = m;
	put_assoc(s, m, false);
	return m;
}

/* --- what was set, as it is told -------------------------------------------------------------------------------- */

static void tell(const char *name, int width, const char *value) { printf("  %-*s = %s\n", width, name, value); }

static void tell_limits(const struct limit_list *l, bool qos, int narrow, int wide)
{
	for (uint32_t k = 1; k < LIMIT_KINDS; k++) {
		struct str v = STR_INIT;
		const struct limit_row *row = limit_row(k);
		limit_print(l, (enum limit_kind)k, &v);
		const char *name = k == LIMIT_MAX_JOBS && qos ? "MaxJobsPerUser" : k == LIMIT_MAX_SUBMIT && qos ? "MaxSubmitJobsPerUser" : qos ? row->qos : row->assoc;
		if (v.len)
			tell(name, row->type == LIMIT_COUNT ? narrow : wide, v.data);
		str_fini(&v);
	}
}

static void tell_qos(const Pb__QosRecord *q)
{
	struct str v = STR_INIT;
	tell("Description", 14, q->description);
	if (q->flags) {
		qos_flags_print(q->flags, &v);
		tell("Flags", 24, v.data);
	}
	tell_limits(&(struct limit_list){ q->limit, q->n_limit }, true, 14, 24);
	str_reset(&v);
	strings_put(q->preempt, q->n_preempt, &v);
	if (v.len)
		tell("Preempt", 14, v.data);
	if (q->has_priority)
		printf("  Priority                 = %u\n", q->priority);
	str_fini(&v);
}

static void tell_assoc(const Pb__AssocRecord *m)
{
	struct str v = STR_INIT;
	if (m->has_shares && m->shares == UINT32_MAX)
		tell("Fairshare", 13, "parent");
	else if (m->has_shares)
		printf("  %-13s = %u\n", "Fairshare", m->shares);
	tell_limits(&(struct limit_list){ m->limit, m->n_limit }, false, 13, 13);
	strings_put(m->qos, m->n_qos, &v);
	if (v.len)
		tell("QOS", 13, v.data);
	if (m->default_qos)
		tell("DefQOS", 13, m->default_qos);
	str_fini(&v);
}

/* --- add --------------------------------------------------------------------------------------------------------- */

static int add_qos(struct sacctmgr *s)
{
	char *list = named(s, "Names", 1, true), *at = list, *w;
	Pb__QosRecord *first = NULL;
	struct str added = STR_INIT;
	if (!list || !*list) {
		fprintf(stderr, " Need name of qos to add.\n");
		return 1;
	}
	lower(list);
	while ((w = str_next(&at, ","))) {
		if (!*w || find_qos(s, w))
			continue;
		Pb__QosRecord *q = qos_new(s, w);
		for (size_t i = 0; i < s->pairs; i++) {
			int rc = 0;
			if (!s->pair[i].where && (!s->pair[i].key || !set_qos(s, q, &s->pair[i], &rc)))
				return unknown_option(&s->pair[i]);
			if (rc)
				return 1;
		}
		change_new(s, false)->qos = q;
		str_addf(&added, "  %s\n", w);
		first = first ? first : q;
	}
	if (!first) {
		printf(" Nothing new added.\n");
		return 1;
	}
	printf(" Adding QOS(s)\n%s Settings\n", added.data);
	tell_qos(first);
	str_fini(&added);
	return commit(s, "adding QOS");
}

/* Of the clusters named, or all. */
static bool cluster_meant(const struct sacctmgr *s, const char *name)
{
	const char *list = named(s, "Clusters", 1, false);
	return !list || list_has(list, name);
}

static int account_settings(struct sacctmgr *s, Pb__AccountRecord *a, Pb__AssocRecord *m)
{
	for (size_t i = 0; i < s->pairs; i++) {
		struct pair *p = &s->pair[i];
		int rc = 0;
		if (p->where)
			continue;
		if (!p->key || (!word_is(p->key, "Parent", 3) && !set_account(a, p, &rc) && !(m && set_assoc(s, m, p, &rc))))
			return unknown_option(p);
		if (rc)
			return 1;
	}
	return 0;
}

static char *setting(const struct sacctmgr *s, const char *key, size_t least)
{
	for (size_t i = 0; i < s->pairs; i++)
		if (!s->pair[i].where && s->pair[i].key && word_is(s->pair[i].key, key, least))
			return s->pair[i].value;
	return NULL;
}

static int add_account(struct sacctmgr *s)
{
	char *list = named(s, "Names", 1, true), *at, *w, *parent = setting(s, "Parent", 3);
	struct str names = STR_INIT, assocs = STR_INIT;
	Pb__AccountRecord *first = NULL;
	Pb__AssocRecord *sample = NULL;
	list = list ? list : named(s, "Accounts", 1, false);
	if (!list || !*list) {
		fprintf(stderr, " Need name of account to add.\n");
		return 1;
	}
	lower(list);
	lower(parent);
	at = list;
	while ((w = str_next(&at, ","))) {
		Pb__AccountRecord *a = find_account(s, w);
		if (!a) {
			a = xcalloc(1, sizeof *a);
			pb__account_record__init(a);
			a->name = xstrdup(w);
			s->all->account = xrealloc(s->all->account, (s->all->n_account + 1) * sizeof *s->all->account);
			s->all->account[s->all->n_account++] = a;
			str_addf(&names, "  %s\n", w);
			change_new(s, false)->account = a;
		}
		for (size_t i = 0; i < s->all->n_cluster; i++) {
			const char *k = s->all->cluster[i]->name;
			if (!cluster_meant(s, k))
				continue;
			if (parent && !find_assoc(s, k, parent, NULL)) {
				fprintf(stderr, " error: No parent account '%s' on cluster '%s'\n", parent, k);
				return 1;
			}
			if (find_assoc(s, k, w, NULL)) {
				printf(" Already existing account %s on cluster %s\n", w, k);
				continue;
			}
			Pb__AssocRecord *m = assoc_new(s, k, w, NULL, parent ? parent : "root");
			sample = m;
			if (account_settings(s, a, m))
				return 1;
			str_addf(&assocs, "  C = %-10.10s A = %-20.20s\n", k, w);
		}
		first = first ? first : a;
		if (!a->description)
			a->description = xstrdup(a->name);
		if (!a->organization) {
			const Pb__AccountRecord *above = parent ? find_account(s, parent) : NULL;
			a->organization = xstrdup(above && above->organization ? above->organization : a->name);
		}
	}
	if (!s->changes)
		return 1;
	if (names.len) {
		printf(" Adding Account(s)\n%s Settings\n", names.data);
		tell("Description", 15, setting(s, "Description", 3) ? first->description : "Account Name");
		tell("Organization", 15, setting(s, "Organization", 1) ? first->organization : "Parent/Account Name");
	}
	if (assocs.len)
		printf(" Associations =\n%s", assocs.data);
	if (sample && (sample->n_limit || sample->has_shares || sample->n_qos || sample->default_qos || parent)) {
		printf(" Settings\n");
		tell_assoc(sample);
		if (parent)
			tell("Parent", 13, parent);
	}
	str_fini(&names);
	str_fini(&assocs);
	return commit(s, "adding account");
}

/* Has the user a default account there? */
static Pb__AssocRecord *default_of(const struct sacctmgr *s, const char *cluster, const char *user)
{
	for (size_t i = 0; i < s->all->n_assoc; i++) {
		Pb__AssocRecord *m = s->all->assoc[i];
		if (m->is_default && str_eq(m->user, user) && !strcmp(m->cluster, cluster))
			return m;
	}
	return NULL;
}

static void make_default(struct sacctmgr *s, Pb__AssocRecord *m)
{
	Pb__AssocRecord *old = default_of(s, m->cluster, m->user);
	if (old == m)
		return;
	if (old) {
		old->is_default = false;
		put_assoc(s, old, false);
	}
	m->has_is_default = m->is_default = true;
	put_assoc(s, m, false);
}

static int user_settings(struct sacctmgr *s, Pb__UserRecord *u, Pb__AssocRecord *m)
{
	for (size_t i = 0; i < s->pairs; i++) {
		struct pair *p = &s->pair[i];
		int rc = 0;
		if (p->where)
			continue;
		if (!p->key || (!word_is(p->key, "DefaultAccount", 8) && !set_user(u, p, &rc) && !set_assoc(s, m, p, &rc)))
			return unknown_option(p);
		if (rc)
			return 1;
	}
	return 0;
}

static int add_user_in(struct sacctmgr *s, Pb__UserRecord *u, const char *account, const char *cluster, struct str *assocs, Pb__AssocRecord **sample)
{
	const char *def = setting(s, "DefaultAccount", 8);
	if (!find_assoc(s, cluster, account, NULL)) {
		printf("No account %s on cluster %s, skipping.\n", account, cluster);
		return 0;
	}
	if (find_assoc(s, cluster, account, u->name))
		return 0;
	Pb__AssocRecord *m = *sample = assoc_new(s, cluster, account, u->name, NULL);
	if (user_settings(s, u, m))
		return 1;
	str_addf(assocs, "  C = %-10.10s A = %-20.20s U = %-9.9s\n", cluster, account, u->name);
	if (def ? str_eq_nocase(def, account) : !default_of(s, cluster, u->name))
		make_default(s, m);
	return 0;
}

/* A line with that name, unless there is one: false. */
static bool name_once(struct str *list, const char *name)
{
	char *line = xasprintf("  %s\n", name);
	bool is_new = !strstr(list->data, line);
	if (is_new)
		str_add(list, line);
	free(line);
	return is_new;
}

static int add_users(struct sacctmgr *s, char *users, char *accounts, struct str *names, struct str *assocs, Pb__AssocRecord **sample)
{
	char *w, *at = accounts;
	while ((w = str_next(&at, ","))) {
		char *list = xstrdup(users), *uat = list, *name;
		int rc = 0;
		while (!rc && (name = str_next(&uat, ","))) {
			Pb__UserRecord *u = find_user(s, name);
			for (size_t i = 0; !rc && i < s->all->n_cluster; i++) {
				if (!cluster_meant(s, s->all->cluster[i]->name))
					continue;
				if (!u) {
					u = xcalloc(1, sizeof *u);
					pb__user_record__init(u);
					u->name = xstrdup(name);
					s->all->user = xrealloc(s->all->user, (s->all->n_user + 1) * sizeof *s->all->user);
					s->all->user[s->all->n_user++] = u;
				}
				size_t before = s->changes;
				bool is_new = !default_of(s, s->all->cluster[i]->name, name);
				rc = add_user_in(s, u, w, s->all->cluster[i]->name, assocs, sample);
				if (!rc && s->changes > before && is_new && name_once(names, name))
					change_new(s, false)->user = u;
			}
		}
		free(list);
		if (rc)
			return 1;
	}
	return 0;
}

static int add_user(struct sacctmgr *s)
{
	char *users = named(s, "Names", 1, true), *accounts = named(s, "Accounts", 2, false), *def = setting(s, "DefaultAccount", 8);
	struct str names = STR_INIT, assocs = STR_INIT;
	Pb__AssocRecord *sample = NULL;
	users = users ? users : named(s, "Users", 1, false);
	accounts = accounts ? accounts : def;
	if (!users || !*users || !accounts) {
		fprintf(stderr, !users || !*users ? " Need name of user to add.\n" : " Need name of account to add user to.\n");
		return 1;
	}
	accounts = xstrdup(accounts);
	lower(accounts);
	if (add_users(s, users, accounts, &names, &assocs, &sample))
		return 1;
	if (!s->changes) {
		if (!assocs.len && find_user(s, users) && find_assoc(s, cluster_own(s), accounts, users))
			printf("Request didn't affect anything\n");
		printf("Nothing added.\nMake sure the accounts requested here have been added to the system/cluster. (sacctmgr add account...)\n");
		return 1;
	}
	if (names.len) {
		printf(" Adding User(s)\n%s Settings\n", names.data);
		if (def)
			tell("Default Account", 15, def);
		if (setting(s, "AdminLevel", 2)) {
			const uint32_t level = find_user(s, sample->user)->admin;
			tell("Admin Level", 15, level == 2 ? "Administrator" : level ? "Operator" : "None");
		}
	}
	printf(" Associations =\n%s", assocs.data);
	if (sample->n_limit || sample->has_shares || sample->n_qos || sample->default_qos) {
		printf(" Non Default Settings\n");
		tell_assoc(sample);
	}
	str_fini(&names);
	str_fini(&assocs);
	return commit(s, "adding user");
}

static int add_cluster(struct sacctmgr *s)
{
	char *list = named(s, "Names", 1, true), *at = list, *w;
	struct str added = STR_INIT;
	if (!list || !*list) {
		fprintf(stderr, " Need name of cluster to add.\n");
		return 1;
	}
	while ((w = str_next(&at, ","))) {
		bool there = false;
		for (size_t i = 0; i < s->all->n_cluster; i++)
			there = there || str_eq_nocase(s->all->cluster[i]->name, w);
		if (there) {
			printf(" This cluster %s already exists.  Not adding.\n", w);
			continue;
		}
		Pb__ClusterRecord *k = xcalloc(1, sizeof *k);
		pb__cluster_record__init(k);
		k->name = xstrdup(w);
		change_new(s, false)->cluster = k;
		Pb__AssocRecord *top = assoc_new(s, w, "root", NULL, NULL), *root = assoc_new(s, w, "root", "root", NULL);
		strings_set(&top->qos, &top->n_qos, "normal", OP_SET);
		root->has_is_default = root->is_default = true;
		str_addf(&added, "  %-10s = %s\n", "Name", w);
	}
	if (!s->changes)
		return 1;
	printf(" Adding Cluster(s)\n%s", added.data);
	str_fini(&added);
	return commit(s, "adding clusters");
}

/* --- coordinators -------------------------------------------------------------------------------------------------- */

static int change_coordinators(struct sacctmgr *s, int op)
{
	char *users = named(s, "Names", 1, true), *accounts = named(s, "Accounts", 1, false), *w;
	if (!users || !accounts) {
		fprintf(stderr, " You need to specify a user list or account list here.\n");
		return 1;
	}
	printf(op == OP_ADD ? " Adding Coordinator User(s)\n  %s\n To Account(s) and all sub-accounts\n  %s\n" : " Removing Coordinators with user name\n  %s\n From Account(s)\n  %s\n", users, accounts);
	char *copy = xstrdup(accounts), *at = copy;
	while ((w = str_next(&at, ","))) {
		Pb__AccountRecord *a = find_account(s, w);
		if (!a)
			continue;
		strings_set(&a->coordinator, &a->n_coordinator, users, op);
		change_new(s, false)->account = a;
	}
	free(copy);
	return commit(s, "changing coordinators");
}

int sacctmgr_add(struct sacctmgr *s)
{
	switch (s->entity) {
	case E_QOS: return add_qos(s);
	case E_ACCOUNT: return add_account(s);
	case E_USER: return add_user(s);
	case E_CLUSTER: return add_cluster(s);
	default: return change_coordinators(s, OP_ADD);
	}
}

/* --- modify ------------------------------------------------------------------------------------------------------- */

static bool any_setting(const struct sacctmgr *s)
{
	for (size_t i = 0; i < s->pairs; i++)
		if (!s->pair[i].where)
			return true;
	return false;
}

static bool only_raw(const struct sacctmgr *s);
static int modify_qos(struct sacctmgr *s)
{
	const char *list = named(s, "Names", 1, true);
	struct str told = STR_INIT;
	for (size_t k = 0; k < s->all->n_qos; k++) {
		if (list && !list_has(list, s->all->qos[k]->name))
			continue;
		for (size_t i = 0; i < s->pairs; i++) {
			int rc = 0;
			if (!s->pair[i].where && (!s->pair[i].key || !set_qos(s, s->all->qos[k], &s->pair[i], &rc)))
				return unknown_option(&s->pair[i]);
			if (rc == -ERANGE)
				fprintf(stderr, " You didn't give me anything to set\n");
			if (rc)
				return 1;
		}
		change_new(s, false)->qos = s->all->qos[k];
		str_addf(&told, "  %s\n", s->all->qos[k]->name);
	}
	if (!s->changes)
		printf("  Nothing modified\n");
	else if (!only_raw(s))
		printf(" Modified qos...\n%s", told.data);
	str_fini(&told);
	return s->changes ? commit(s, "modifying QOS") : 1;
}

static bool meant(const struct sacctmgr *s, const Pb__AssocRecord *m)
{
	const char *users = s->entity == E_USER ? named(s, "Names", 1, true) : NULL, *accounts = s->entity == E_ACCOUNT ? named(s, "Names", 1, true) : NULL;
	users = users ? users : named(s, "Users", 1, false);
	accounts = accounts ? accounts : named(s, "Accounts", 1, false);
	return !!m->user == (s->entity == E_USER) && (!users || list_has(users, m->user ? m->user : "")) && (!accounts || list_has(accounts, m->account)) && cluster_meant(s, m->cluster);
}

/* Would `m` come to stand below itself? */
static bool below_itself(const struct sacctmgr *s, const Pb__AssocRecord *m, const char *parent)
{
	for (const Pb__AssocRecord *at = find_assoc(s, m->cluster, parent, NULL); at; at = assoc_parent(s, at))
		if (at == m)
			return true;
	return false;
}

static int set_parent(struct sacctmgr *s, Pb__AssocRecord *m, char *parent)
{
	lower(parent);
	if (!find_assoc(s, m->cluster, parent, NULL)) {
		fprintf(stderr, " error: No parent account '%s' on cluster '%s'\n", parent, m->cluster);
		return -EINVAL;
	}
	if (below_itself(s, m, parent)) {
		fprintf(stderr, " error: account %s is above %s\n", m->account, parent);
		return -EINVAL;
	}
	xstr_set(&m->parent, parent);
	return 0;
}

static bool is_inherited(const char *key)
{
	const char *tres;
	const struct limit_row *row = limit_find(key, strlen(key), false, &tres);
	return row ? row->scope != LIMIT_PER_GROUP : word_is(key, "QOSLevel", 1) || word_is(key, "DefaultQOS", 4);
}

/* One setting on all that are meant. 1: on users or accounts themselves, 2: on associations, 4: and on what their users have from them; negative: it was not good. */
static int modify_one(struct sacctmgr *s, const struct pair *p)
{
	int kind = 0, rc = 0;
	for (size_t i = 0; i < s->all->n_assoc; i++) {
		Pb__AssocRecord *m = s->all->assoc[i];
		Pb__UserRecord *u = m->user ? find_user(s, m->user) : NULL;
		Pb__AccountRecord *a = find_account(s, m->account);
		if (!meant(s, m))
			continue;
		if (s->entity == E_USER && word_is(p->key, "DefaultAccount", 8)) {
			Pb__AssocRecord *to = find_assoc(s, m->cluster, p->value, m->user);
			if (!to) {
				fprintf(stderr, " User %s has no association with account %s\n", m->user, p->value);
				return -EINVAL;
			}
			make_default(s, to);
			kind |= 1;
		} else if (s->entity == E_USER ? u && set_user(u, p, &rc) : a && set_account(a, p, &rc)) {
			Pb__AcctChange *ch = change_new(s, false);
			ch->user = s->entity == E_USER ? u : NULL;
			ch->account = s->entity == E_USER ? NULL : a;
			kind |= 1;
		} else if (s->entity == E_ACCOUNT && word_is(p->key, "Parent", 3)) {
			rc = set_parent(s, m, p->value);
			put_assoc(s, m, false);
			kind |= 2 | 4;
		} else if (set_assoc(s, m, p, &rc)) {
			put_assoc(s, m, false);
			kind |= is_inherited(p->key) ? 2 | 4 : 2;
		} else {
			unknown_option(p);
			return -EINVAL;
		}
		if (rc) {
			unknown_option(p);
			return rc;
		}
	}
	return kind;
}

/* rawusage=0 alone: the reference says where it is reset, and not what. */
static bool only_raw(const struct sacctmgr *s)
{
	bool raw = false, more = false;
	for (size_t i = 0; i < s->pairs; i++) {
		bool is = !s->pair[i].where && s->pair[i].key && word_is(s->pair[i].key, "RawUsage", 4);
		raw = raw || is;
		more = more || (!is && !s->pair[i].where);
	}
	if (raw && !named(s, "Clusters", 1, false))
		printf("No cluster specified, resetting on local cluster %s\n", cluster_own(s));
	return raw && !more;
}

static void tell_modified(const struct sacctmgr *s, int kind)
{
	struct str told = STR_INIT;
	for (size_t i = 0; kind & 1 && i < s->all->n_assoc; i++) {
		if (meant(s, s->all->assoc[i]))
			name_once(&told, s->entity == E_USER ? s->all->assoc[i]->user : s->all->assoc[i]->account);
	}
	if (kind & 1)
		printf(" Modified %s...\n%s", s->entity == E_USER ? "users" : "accounts", told.data);
	str_fini(&told);
	if (kind & 2)
		printf(" Modified %s associations...\n", s->entity == E_USER ? "user" : "account");
	for (size_t i = 0; kind & 2 && i < s->all->n_assoc; i++) {
		const Pb__AssocRecord *m = s->all->assoc[i];
		if (!meant(s, m) && !(kind & 4 && m->user && meant(s, assoc_parent(s, m))))
			continue;
		if (m->user)
			printf("  C = %-10.10s A = %-20.20s U = %-9.9s\n", m->cluster, m->account, m->user);
		else if (m->parent)
			printf("  C = %-10.10s A = %s of %s\n", m->cluster, m->account, m->parent);
		else
			printf("  C = %-10.10s A = %s\n", m->cluster, m->account);
	}
}

static int modify_assocs(struct sacctmgr *s)
{
	int kind = 0;
	for (size_t i = 0; i < s->pairs; i++) {
		int k = s->pair[i].where ? 0 : s->pair[i].key ? modify_one(s, &s->pair[i]) : -EINVAL;
		if (k < 0)
			return 1;
		kind |= k;
	}
	if (!kind) {
		printf(" Modified %s associations...\n  Nothing modified\n", s->entity == E_USER ? "user" : "account");
		return 1;
	}
	if (!only_raw(s))
		tell_modified(s, kind);
	return commit(s, s->entity == E_USER ? "modifying users" : "modifying accounts");
}

int sacctmgr_modify(struct sacctmgr *s)
{
	if (!any_setting(s)) {
		fprintf(stderr, " You didn't give me anything to set\n");
		return 1;
	}
	return s->entity == E_QOS ? modify_qos(s) : modify_assocs(s);
}

/* --- delete -------------------------------------------------------------------------------------------------------- */

static int delete_qos(struct sacctmgr *s, const char *list)
{
	struct str told = STR_INIT;
	for (size_t k = 0; k < s->all->n_qos; k++)
		if (list_has(list, s->all->qos[k]->name)) {
			change_new(s, true)->qos = s->all->qos[k];
			str_addf(&told, "  %s\n", s->all->qos[k]->name);
		}
	size_t gone = s->changes;
	for (size_t k = 0; gone && k < s->all->n_qos; k++) { /* out of every list */
		size_t n = s->all->qos[k]->n_preempt;
		strings_set(&s->all->qos[k]->preempt, &s->all->qos[k]->n_preempt, list, OP_REMOVE);
		if (n != s->all->qos[k]->n_preempt && !list_has(list, s->all->qos[k]->name))
			change_new(s, false)->qos = s->all->qos[k];
	}
	for (size_t k = 0; gone && k < s->all->n_assoc; k++) {
		Pb__AssocRecord *m = s->all->assoc[k];
		size_t n = m->n_qos;
		strings_set(&m->qos, &m->n_qos, list, OP_REMOVE);
		bool def = m->default_qos && list_has(list, m->default_qos);
		if (def)
			xfree(m->default_qos);
		if (def || n != m->n_qos)
			put_assoc(s, m, false);
	}
	printf(gone ? " Deleting QOS(s)...\n%s" : "  Nothing deleted\n", told.data);
	str_fini(&told);
	return gone ? commit(s, "deleting QOS") : 1;
}

static int default_stays(const Pb__AssocRecord *m)
{
	fprintf(stderr, " Error with request: You can not remove the default account of a user\n  C = %-15.15s A = %-10.10s U = %-9.9s\n You must change the default account of these users or remove the users "
		"completely from the affected clusters to allow these changes.\n Changes Discarded\n", m->cluster, m->account, m->user);
	return 1;
}

static int delete_user(struct sacctmgr *s, const char *list)
{
	const char *accounts = named(s, "Accounts", 1, false);
	struct str told = STR_INIT;
	for (size_t i = 0; i < s->all->n_assoc; i++) {
		Pb__AssocRecord *m = s->all->assoc[i];
		if (!m->user || !list_has(list, m->user) || (accounts && !list_has(accounts, m->account)) || !cluster_meant(s, m->cluster))
			continue;
		bool others = false;
		for (size_t k = 0; k < s->all->n_assoc; k++)
			others = others || (s->all->assoc[k] != m && str_eq(s->all->assoc[k]->user, m->user) && !strcmp(s->all->assoc[k]->cluster, m->cluster) && !(list_has(accounts, s->all->assoc[k]->account)));
		if (accounts && m->is_default && others)
			return default_stays(m);
		put_assoc(s, m, true);
		if (accounts)
			str_addf(&told, "  C = %-10.10s A = %-10.10s U = %-9.9s\n", m->cluster, m->account, m->user);
	}
	for (size_t i = 0; !accounts && i < s->all->n_user; i++)
		if (list_has(list, s->all->user[i]->name)) {
			change_new(s, true)->user = s->all->user[i];
			str_addf(&told, "  %s\n", s->all->user[i]->name);
		}
	if (!s->changes)
		printf(" Nothing deleted\n");
	else
		printf(accounts ? " Deleting user associations...\n%s" : " Deleting users...\n%s", told.data);
	str_fini(&told);
	return s->changes ? commit(s, "deleting users") : 1;
}

static bool is_below(const struct sacctmgr *s, const Pb__AssocRecord *m, const char *list)
{
	for (; m; m = assoc_parent(s, m))
		if (list_has(list, m->account))
			return true;
	return false;
}

/* With all below it. A user whose default account goes and who has others keeps it from going. */
static int delete_account(struct sacctmgr *s, const char *list)
{
	struct str told = STR_INIT;
	for (size_t i = 0; i < s->all->n_assoc; i++) {
		Pb__AssocRecord *m = s->all->assoc[i];
		if (!is_below(s, m, list) || !cluster_meant(s, m->cluster))
			continue;
		for (size_t k = 0; m->user && m->is_default && k < s->all->n_assoc; k++) {
			const Pb__AssocRecord *o = s->all->assoc[k];
			if (!str_eq(o->user, m->user) || strcmp(o->cluster, m->cluster) || is_below(s, o, list))
				continue;
			return default_stays(m);
		}
		put_assoc(s, m, true);
	}
	for (size_t i = 0; i < s->all->n_account; i++)
		if (list_has(list, s->all->account[i]->name)) {
			change_new(s, true)->account = s->all->account[i];
			str_addf(&told, "  %s\n", s->all->account[i]->name);
		}
	printf(s->changes ? " Deleting accounts...\n%s" : " Nothing deleted\n", told.data);
	str_fini(&told);
	return s->changes ? commit(s, "deleting accounts") : 1;
}

static int delete_cluster(struct sacctmgr *s, const char *list)
{
	struct str told = STR_INIT;
	for (size_t i = 0; i < s->all->n_cluster; i++)
		if (list_has(list, s->all->cluster[i]->name)) {
			change_new(s, true)->cluster = s->all->cluster[i];
			str_addf(&told, "  %s\n", s->all->cluster[i]->name);
		}
	for (size_t i = 0; s->changes && i < s->all->n_assoc; i++)
		if (list_has(list, s->all->assoc[i]->cluster))
			put_assoc(s, s->all->assoc[i], true);
	printf(s->changes ? " Deleting clusters...\n%s" : " Nothing deleted\n", told.data);
	str_fini(&told);
	return s->changes ? commit(s, "deleting clusters") : 1;
}

int sacctmgr_delete(struct sacctmgr *s)
{
	char *list = named(s, "Names", 1, true);
	if (s->entity == E_COORD)
		return change_coordinators(s, OP_REMOVE);
	list = list ? list : s->entity == E_USER ? named(s, "Users", 1, false) : s->entity == E_ACCOUNT ? named(s, "Accounts", 1, false) : NULL;
	if (!list || !*list) {
		fprintf(stderr, " No conditions given to remove, not executing.\n");
		return 1;
	}
	if (s->entity == E_QOS)
		return delete_qos(s, list);
	return s->entity == E_USER ? delete_user(s, list) : s->entity == E_ACCOUNT ? delete_account(s, list) : delete_cluster(s, list);
}
