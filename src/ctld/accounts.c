/* accounts.c - see accounts.h
 * One call to slurmdbd is always under way: it is answered when something has changed there. Every answer goes to the core as a whole and to the store. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ctld/accounts.h"
#include "ctld/acct.h"
#include "ctld/turn.h"

enum { WAIT_MS = 600000, AGAIN_MS = 2000 };

struct accounts {
	struct ctld *d;
	uv_timer_t timer;
	bool asking, said_down, has_known;
	uint64_t known;
	uint32_t *oper, *admin;      /* user ids by AdminLevel: operators and up; administrators */
	size_t oper_n, admin_n;
	uint8_t *held;               /* what the core has, packed */
	size_t held_n;
};

static void ask(struct accounts *a);

static bool has(const uint32_t *list, size_t n, uint32_t uid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == uid)
			return true;
	return false;
}

bool accounts_is_operator(const struct ctld *d, uint32_t uid) { return d->accounts && has(d->accounts->oper, d->accounts->oper_n, uid); }
bool accounts_is_admin(const struct ctld *d, uint32_t uid) { return d->accounts && has(d->accounts->admin, d->accounts->admin_n, uid); }

static void admins_load(struct accounts *a, const Pb__AcctSnapshot *m)
{
	a->oper = xrealloc(a->oper, (m->n_user + 1) * sizeof *a->oper);
	a->admin = xrealloc(a->admin, (m->n_user + 1) * sizeof *a->admin);
	a->oper_n = a->admin_n = 0;
	for (size_t i = 0; i < m->n_user; i++) {
		const struct passwd *pw = m->user[i]->admin ? getpwnam(m->user[i]->name) : NULL;
		if (!pw)
			continue;
		a->oper[a->oper_n++] = pw->pw_uid;
		if (m->user[i]->admin > 1)
			a->admin[a->admin_n++] = pw->pw_uid;
	}
}

/* Has the core just these? Then all jobs need not find their own again: with a million of them that takes seconds in which nobody is answered, and after
 * a restart slurmdbd mostly says what the store had. Its version and its clusters are nothing to the core. */
static bool held_already(struct accounts *a, const Pb__AcctSnapshot *m)
{
	Pb__AcctSnapshot k = *m;
	k.version = 0;
	k.n_cluster = 0;
	size_t len = pb__acct_snapshot__get_packed_size(&k);
	uint8_t *data = xmalloc(len + 1);
	pb__acct_snapshot__pack(&k, data);
	bool same = a->held && a->held_n == len && !memcmp(a->held, data, len);
	free(a->held);
	a->held = data;
	a->held_n = len;
	return same;
}

/* True: they are others than the core had. */
static bool to_core(struct accounts *a, const Pb__AcctSnapshot *m)
{
	struct core_event ev = { .type = EV_ACCT };
	admins_load(a, m);
	ev.acct = m;
	bool same = held_already(a, m);
	if (!same)
		turn_step(a->d, &ev);
	return !same;
}

static void taken(struct accounts *a, const Pb__AcctSnapshot *m)
{
	size_t len = pb__acct_snapshot__get_packed_size(m);
	uint8_t *data = xmalloc(len + 1);
	pb__acct_snapshot__pack(m, data);
	a->known = m->version;
	a->has_known = true;
	bool others = to_core(a, m);
	turn_put(a->d, STORE_META, STORE_META_ACCT, data, len);
	log_info("accounts and QOS from slurmdbd: version %llu, %zu associations, %zu QOS%s", (unsigned long long)m->version, m->n_assoc, m->n_qos, others ? "" : ", as they were");
}

static void on_timer(uv_timer_t *h) { ask(h->data); }

static void answered(int code, const ProtobufCMessage *msg, const char *detail, void *arg)
{
	struct accounts *a = arg;
	const Pb__AcctGetRsp *rsp = (const Pb__AcctGetRsp *)msg;
	if (code == -ECANCELED)
		return;
	a->asking = false;
	if (!code && !rsp->snapshot)
		code = -ESLURM_PROTOCOL;
	if (code && code != -ESLURM_SOCKET_TIMEOUT && !a->said_down) {
		log_error("slurmdbd: %s; accounts and QOS stay as they were", detail && *detail ? detail : error_text(code));
		a->said_down = true;
	}
	if (!code) {
		a->said_down = false;
		if (!a->has_known || a->known != rsp->snapshot->version)
			taken(a, rsp->snapshot);
	}
	uv_timer_start(&a->timer, on_timer, code && code != -ESLURM_SOCKET_TIMEOUT ? AGAIN_MS : 0, 0);
}

static void ask(struct accounts *a)
{
	Pb__AcctGetReq req = PB__ACCT_GET_REQ__INIT;
	Pb__ClusterRecord own = PB__CLUSTER_RECORD__INIT;
	struct wire_link *link = acct_link(a->d->acct);
	if (a->asking || !link || a->d->stopping)
		return;
	own.name = req.cluster = (char *)conf_str(a->d->conf, CONF_ClusterName);
	own.has_control_port = true;
	own.control_port = (uint32_t)conf_num(a->d->conf, CONF_SlurmctldPort);
	req.from = &own;
	req.has_known = a->has_known;
	req.known = a->known;
	a->asking = true;
	wire_link_call(link, RPC_DB_ACCT_GET, &req.base, WAIT_MS, answered, a);
}

void accounts_conf_changed(struct ctld *d)
{
	if (!acct_link(d->acct))
		d->accounts->asking = false; /* the call ended with its link */
	ask(d->accounts);
}

static int usage_restore(struct ctld *d, struct error *err)
{
	struct core_event ev = { .type = EV_RESTORE_USAGE };
	void *data;
	size_t len;
	int rc = store_get(d->store, STORE_META, STORE_META_USAGE, &data, &len, err);
	if (rc)
		return rc == -ENOENT || d->ignore_errors ? 0 : rc;
	Pb__AcctUsage *m = pb__acct_usage__unpack(NULL, len, data);
	free(data);
	if (!m)
		return d->ignore_errors ? 0 : error_set(err, EBADMSG, "the usage of accounts in StateSaveLocation cannot be read");
	ev.usage = m;
	turn_step(d, &ev);
	pb__acct_usage__free_unpacked(m, NULL);
	return 0;
}

int accounts_restore(struct ctld *d, struct error *err)
{
	void *data;
	size_t len;
	int rc = usage_restore(d, err);
	rc = rc ? rc : store_get(d->store, STORE_META, STORE_META_ACCT, &data, &len, err);
	if (rc)
		return rc == -ENOENT || d->ignore_errors ? 0 : rc;
	Pb__AcctSnapshot *m = pb__acct_snapshot__unpack(NULL, len, data);
	free(data);
	if (!m)
		return d->ignore_errors ? 0 : error_set(err, EBADMSG, "the accounts in StateSaveLocation cannot be read");
	(void)to_core(d->accounts, m);
	pb__acct_snapshot__free_unpacked(m, NULL);
	return 0;
}

struct accounts *accounts_create(struct ctld *d)
{
	struct accounts *a = xcalloc(1, sizeof *a);
	a->d = d;
	uv_timer_init(d->loop, &a->timer);
	uv_unref((uv_handle_t *)&a->timer);
	a->timer.data = a;
	return a;
}

static void accounts_free(uv_handle_t *h) { free(h->data); }

void accounts_destroy(struct accounts *a)
{
	if (!a)
		return;
	free(a->oper);
	free(a->admin);
	free(a->held);
	uv_close((uv_handle_t *)&a->timer, accounts_free);
}
