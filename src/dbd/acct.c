/* acct.c - QOS, accounts, users, associations, clusters: kept as records, changed in transactions, handed out as a whole
 *
 * A record is the bytes of its message; kind and key name it. What is deleted stays as a row, so that an id is never given to another. Each change
 * is a row of txn; the last number there is the version of the whole, which slurmctld waits to see change. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "dbd/dbd.h"

enum kind { KIND_QOS = 1, KIND_ACCOUNT, KIND_USER, KIND_ASSOC, KIND_CLUSTER };

static char *assoc_key(const Pb__AssocRecord *m)
{
	return xasprintf("%s|%s|%s|%s", m->cluster, m->account, m->user ? m->user : "", m->partition ? m->partition : "");
}

/* Which of them it is: the message, its key (malloc'd) and where its id is. NULL: none of them. */
static ProtobufCMessage *changed(const Pb__AcctChange *ch, enum kind *ret_kind, char **ret_key, uint32_t **ret_id)
{
	*ret_id = NULL;
	*ret_key = NULL;
	if (ch->qos) {
		*ret_kind = KIND_QOS;
		*ret_key = xstrdup(ch->qos->name);
		*ret_id = &ch->qos->id;
		return &ch->qos->base;
	}
	if (ch->assoc) {
		*ret_kind = KIND_ASSOC;
		*ret_key = assoc_key(ch->assoc);
		*ret_id = &ch->assoc->id;
		return &ch->assoc->base;
	}
	*ret_kind = ch->account ? KIND_ACCOUNT : ch->user ? KIND_USER : KIND_CLUSTER;
	ProtobufCMessage *m = ch->account ? &ch->account->base : ch->user ? &ch->user->base : ch->cluster ? &ch->cluster->base : NULL;
	if (m)
		*ret_key = xstrdup(ch->account ? ch->account->name : ch->user ? ch->user->name : ch->cluster->name);
	return m;
}

static int64_t number(struct db *d, enum db_statement s, int kind, const char *key)
{
	sqlite3_stmt *st = db_ready(d, s);
	if (kind)
		sqlite3_bind_int(st, 1, kind);
	if (key)
		db_bind_text(st, 2, key);
	int64_t n = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	return n;
}

uint64_t acct_version(struct db *d) { return (uint64_t)number(d, ST_TXN_LAST, 0, NULL); }

static int note(struct db *d, const char *actor, bool remove, enum kind kind, const char *key, struct error *err)
{
	static const char *const name[] = { "", "qos", "account", "user", "association", "cluster" };
	sqlite3_stmt *st = db_ready(d, ST_TXN_ADD);
	char *target = xasprintf("%s %s", name[kind], key);
	db_bind_text(st, 1, actor);
	db_bind_text(st, 2, remove ? "delete" : "put");
	db_bind_text(st, 3, target);
	int rc = db_run(d, st, err);
	free(target);
	return rc;
}

static int apply(struct db *d, const Pb__AcctChange *ch, const char *actor, struct error *err)
{
	enum kind kind;
	char *key;
	uint32_t *id;
	ProtobufCMessage *m = changed(ch, &kind, &key, &id);
	sqlite3_stmt *st;
	int rc;
	if (!m)
		return error_set(err, EINVAL, "a change of nothing");
	if (id && !*id && !(*id = (uint32_t)number(d, ST_ACCT_ID, (int)kind, key)))
		*id = (uint32_t)number(d, ST_ACCT_NEXT, (int)kind, NULL);
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *data = xmalloc(len + 1);
	protobuf_c_message_pack(m, data);
	st = db_ready(d, ch->remove ? ST_ACCT_DROP : ST_ACCT_PUT);
	sqlite3_bind_int(st, 1, (int)kind);
	db_bind_text(st, 2, key);
	if (!ch->remove) {
		sqlite3_bind_int64(st, 3, id ? *id : 0);
		sqlite3_bind_blob(st, 4, data, (int)len, SQLITE_STATIC);
	}
	rc = db_run(d, st, err);
	if (!rc)
		rc = note(d, actor, ch->remove, kind, key, err);
	free(data);
	free(key);
	return rc;
}

/* An association with jobs that wait or run stays. */
static int active_refuse(struct db *d, const Pb__AcctChange *ch, struct error *err)
{
	const Pb__AssocRecord *m = ch->remove ? ch->assoc : NULL;
	if (!m || !m->user || !*m->user)
		return 0;
	sqlite3_stmt *st = db_ready(d, ST_ACTIVE);
	db_bind_text(st, 1, m->cluster);
	db_bind_text(st, 2, m->account);
	db_bind_text(st, 3, m->user);
	int rc = 0;
	if (sqlite3_step(st) == SQLITE_ROW)
		rc = error_set(err, EBUSY, "Job(s) active, cancel job(s) before remove\n  JobID = %-10lld C = %-10.10s A = %-10.10s U = %-9.9s Q = %-9.9s", (long long)sqlite3_column_int64(st, 0), m->cluster, m->account, m->user,
			       sqlite3_column_text(st, 1) ? (const char *)sqlite3_column_text(st, 1) : "");
	sqlite3_reset(st);
	return rc;
}

int acct_change(struct db *d, const Pb__AcctSetReq *req, const char *actor, uint64_t *ret_version, struct error *err)
{
	int rc = db_run(d, db_ready(d, ST_BEGIN), err);
	if (rc)
		return rc;
	if (acct_version(d) != req->version)
		rc = error_set(err, EAGAIN, "somebody else has changed something meanwhile");
	for (size_t i = 0; !rc && i < req->n_change; i++)
		rc = active_refuse(d, req->change[i], err) ? -EBUSY : apply(d, req->change[i], actor, err);
	if (!rc)
		rc = db_run(d, db_ready(d, ST_COMMIT), err);
	if (rc)
		(void)db_run(d, db_ready(d, ST_ROLLBACK), NULL);
	*ret_version = acct_version(d);
	return rc;
}

/* --- reading --------------------------------------------------------------------------------------------- */

static void *append(void *list, size_t *n, void *m)
{
	void **l = xrealloc(list, (*n + 1) * sizeof *l);
	l[(*n)++] = m;
	return l;
}

static bool take(Pb__AcctSnapshot *s, enum kind kind, const uint8_t *data, size_t len, const char *cluster)
{
	static const ProtobufCMessageDescriptor *const of[] = { NULL, &pb__qos_record__descriptor, &pb__account_record__descriptor, &pb__user_record__descriptor, &pb__assoc_record__descriptor,
		&pb__cluster_record__descriptor };
	ProtobufCMessage *m = kind >= KIND_QOS && kind <= KIND_CLUSTER ? protobuf_c_message_unpack(of[kind], NULL, len, data) : NULL;
	if (!m)
		return false;
	if (kind == KIND_ASSOC && cluster && !str_eq(((Pb__AssocRecord *)m)->cluster, cluster)) {
		protobuf_c_message_free_unpacked(m, NULL);
		return true;
	}
	switch (kind) {
	case KIND_QOS: s->qos = append(s->qos, &s->n_qos, m); break;
	case KIND_ACCOUNT: s->account = append(s->account, &s->n_account, m); break;
	case KIND_USER: s->user = append(s->user, &s->n_user, m); break;
	case KIND_ASSOC: s->assoc = append(s->assoc, &s->n_assoc, m); break;
	case KIND_CLUSTER: s->cluster = append(s->cluster, &s->n_cluster, m); break;
	}
	return true;
}

int acct_snapshot(struct db *d, const char *cluster, Pb__AcctSnapshot **ret, struct error *err)
{
	Pb__AcctSnapshot *s = xcalloc(1, sizeof *s);
	pb__acct_snapshot__init(s);
	s->version = acct_version(d);
	sqlite3_stmt *st = db_ready(d, ST_ACCT_LIST);
	int rc = 0, got;
	while (!rc && (got = sqlite3_step(st)) != SQLITE_DONE) {
		if (got != SQLITE_ROW)
			rc = db_fail(d, err);
		else if (!take(s, (enum kind)sqlite3_column_int(st, 0), sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), cluster))
			rc = error_set(err, EBADMSG, "%s: a record of accounts cannot be read", d->path);
	}
	sqlite3_reset(st);
	if (rc) {
		pb__acct_snapshot__free_unpacked(s, NULL);
		return rc;
	}
	*ret = s;
	return 0;
}

/* --- what is there from the start ------------------------------------------------------------------------- */

static int put(struct db *d, Pb__AcctChange ch, struct error *err) { return apply(d, &ch, "slurmdbd", err); }

static int first_records(struct db *d, struct error *err)
{
	Pb__QosRecord qos = PB__QOS_RECORD__INIT;
	Pb__AccountRecord account = PB__ACCOUNT_RECORD__INIT;
	Pb__UserRecord user = PB__USER_RECORD__INIT;
	Pb__AcctChange ch = PB__ACCT_CHANGE__INIT;
	qos.name = (char *)"normal";
	qos.description = (char *)"Normal QOS default";
	account.name = user.name = account.organization = (char *)"root";
	account.description = (char *)"default root account";
	user.has_admin = true;
	user.admin = 2;
	ch.qos = &qos;
	int rc = put(d, ch, err);
	ch.qos = NULL;
	ch.account = &account;
	rc = rc ? rc : put(d, ch, err);
	ch.account = NULL;
	ch.user = &user;
	return rc ? rc : put(d, ch, err);
}

/* A cluster has an account root, and in it the user root. */
static int cluster_new(struct db *d, const Pb__ClusterRecord *m, struct error *err)
{
	Pb__AssocRecord top = PB__ASSOC_RECORD__INIT, root = PB__ASSOC_RECORD__INIT;
	Pb__AcctChange ch = PB__ACCT_CHANGE__INIT;
	char *qos[] = { (char *)"normal" };
	top.cluster = root.cluster = m->name;
	top.account = root.account = root.user = (char *)"root";
	top.n_qos = 1;
	top.qos = qos;
	root.has_is_default = root.is_default = true;
	ch.assoc = &top;
	int rc = put(d, ch, err);
	ch.assoc = &root;
	return rc ? rc : put(d, ch, err);
}

int acct_cluster_seen(struct db *d, const Pb__ClusterRecord *m, bool *ret_new, struct error *err)
{
	Pb__AcctChange ch = PB__ACCT_CHANGE__INIT;
	bool have = number(d, ST_ACCT_HAS, KIND_CLUSTER, m->name) != 0;
	size_t len = pb__cluster_record__get_packed_size(m);
	uint8_t *data = xmalloc(len + 1);
	pb__cluster_record__pack(m, data);
	sqlite3_stmt *st = db_ready(d, ST_ACCT_SAME);
	sqlite3_bind_int(st, 1, KIND_CLUSTER);
	db_bind_text(st, 2, m->name);
	sqlite3_bind_blob(st, 3, data, (int)len, SQLITE_STATIC);
	bool same = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_reset(st);
	free(data);
	*ret_new = !same;
	if (same)
		return 0;
	int rc = db_run(d, db_ready(d, ST_BEGIN), err);
	if (rc)
		return rc;
	ch.cluster = (Pb__ClusterRecord *)(uintptr_t)m;
	rc = rc ? rc : put(d, ch, err);
	if (!rc && !have)
		rc = cluster_new(d, m, err);
	rc = rc ? rc : db_run(d, db_ready(d, ST_COMMIT), err);
	if (rc)
		(void)db_run(d, db_ready(d, ST_ROLLBACK), NULL);
	return rc;
}

int acct_begin(struct db *d, struct error *err)
{
	if (acct_version(d))
		return 0;
	int rc = db_run(d, db_ready(d, ST_BEGIN), err);
	rc = rc ? rc : first_records(d, err);
	return rc ? rc : db_run(d, db_ready(d, ST_COMMIT), err);
}

uint32_t acct_admin_level(struct db *d, const char *user)
{
	uint32_t level = 0;
	sqlite3_stmt *st = db_ready(d, ST_ACCT_GET);
	sqlite3_bind_int(st, 1, KIND_USER);
	db_bind_text(st, 2, user);
	if (sqlite3_step(st) == SQLITE_ROW) {
		Pb__UserRecord *m = pb__user_record__unpack(NULL, (size_t)sqlite3_column_bytes(st, 0), sqlite3_column_blob(st, 0));
		level = m ? m->admin : 0;
		if (m)
			pb__user_record__free_unpacked(m, NULL);
	}
	sqlite3_reset(st);
	return level;
}

/* --- coordinators ------------------------------------------------------------------------------------------ */

static const char *account_above(const Pb__AcctSnapshot *s, const char *cluster, const char *account)
{
	for (size_t i = 0; i < s->n_assoc; i++) {
		const Pb__AssocRecord *m = s->assoc[i];
		if (str_eq(m->cluster, cluster) && str_eq_nocase(m->account, account) && !(m->user && *m->user))
			return m->parent && *m->parent ? m->parent : NULL;
	}
	return NULL;
}

static bool coordinates(const Pb__AcctSnapshot *s, const char *user, const char *cluster, const char *account)
{
	for (size_t depth = 0; account && depth <= s->n_assoc; depth++, account = account_above(s, cluster, account))
		for (size_t i = 0; i < s->n_account; i++)
			for (size_t k = 0; str_eq_nocase(s->account[i]->name, account) && k < s->account[i]->n_coordinator; k++)
				if (str_eq(s->account[i]->coordinator[k], user))
					return true;
	return false;
}

static bool user_known(const Pb__AcctSnapshot *s, const char *name)
{
	for (size_t i = 0; i < s->n_user; i++)
		if (str_eq(s->user[i]->name, name))
			return true;
	return false;
}

/* Users of his accounts, and those accounts, where they stand; a user who is not known yet becomes one. */
bool acct_coordinator_may(struct db *d, const char *user, const Pb__AcctSetReq *q)
{
	Pb__AcctSnapshot *s;
	bool may = q->n_change > 0;
	if (acct_snapshot(d, NULL, &s, NULL))
		return false;
	for (size_t i = 0; may && i < q->n_change; i++) {
		const Pb__AcctChange *ch = q->change[i];
		const Pb__AssocRecord *m = ch->assoc;
		if (m) {
			const char *was = account_above(s, m->cluster, m->account);
			bool is_user = m->user && *m->user, stands = is_user || (was && str_eq_nocase(was, m->parent));
			may = coordinates(s, user, m->cluster, m->account) && stands && !ch->qos && !ch->account && !ch->user && !ch->cluster;
		} else
			may = ch->user && !ch->remove && !ch->user->admin && !user_known(s, ch->user->name) && !ch->qos && !ch->account && !ch->cluster;
	}
	pb__acct_snapshot__free_unpacked(s, NULL);
	return may;
}
