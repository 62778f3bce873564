/* rpc_resv.c - reservations: scontrol create, update, delete, show
 * What the core cannot know is looked up here, by a thread, since name services may be slow: do the users exist, and who is in the groups. */
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "ctld/handlers.h"
#include "ctld/replies.h"
#include "ctld/turn.h"
#include "proto/reserve.pb-c.h"

struct lookup { uv_work_t work; struct ctld *d; struct wire_req *req; char *unknown; struct str members; bool groups; };

static bool key_is(const Pb__KeyValue *kv, const char *key)
{
	size_t n = strlen(key);
	return !strncasecmp(kv->key, key, n) && (!kv->key[n] || ((kv->key[n] == '+' || kv->key[n] == '-') && !kv->key[n + 1]));
}

static bool user_known(const char *name)
{
	char buf[4096];
	struct passwd pw, *found = NULL;
	return !getpwnam_r(name, &pw, buf, sizeof buf, &found) && found;
}

/* Members of a group, and those whose first group it is among the members' own. */
static bool group_members(struct lookup *l, const char *name)
{
	char buf[65536];
	struct group gr, *found = NULL;
	if (getgrnam_r(name, &gr, buf, sizeof buf, &found) || !found)
		return false;
	for (char **m = gr.gr_mem; *m; m++)
		str_add_sep(&l->members, ",", *m);
	char pbuf[4096];
	struct passwd pw, *user = NULL; /* a group of one's own */
	if (!getpwnam_r(name, &pw, pbuf, sizeof pbuf, &user) && user && user->pw_gid == gr.gr_gid)
		str_add_sep(&l->members, ",", name);
	return true;
}

static void look(uv_work_t *w)
{
	struct lookup *l = w->data;
	const Pb__ResvUpdateReq *m = (const Pb__ResvUpdateReq *)wire_req_msg(l->req);
	for (size_t i = 0; i < m->n_set && !l->unknown; i++) {
		bool users = key_is(m->set[i], "Users"), groups = key_is(m->set[i], "Groups");
		char *list = xstrdup(m->set[i]->value ? m->set[i]->value : ""), *at = list, *name;
		l->groups = l->groups || groups;
		while ((users || groups) && (name = str_next(&at, ",")) && !l->unknown) {
			name += name[0] == '-' || name[0] == '+';
			if (name[0] && !(users ? user_known(name) : group_members(l, name)))
				l->unknown = xstrdup(name);
		}
		free(list);
	}
}

static void finish(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	const Pb__ResvUpdateReq *q = (const Pb__ResvUpdateReq *)wire_req_msg(c->req);
	const Pb__ResvUpdateRsp *r = (const Pb__ResvUpdateRsp *)msg;
	static const char *const word[] = { "", "created", "updated", "deleted" };
	if (!r->code)
		log_info("reservation %s was %s by uid=%u", r->name ? r->name : q->name, word[q->op], wire_req_identity(c->req)->uid);
	turn_reply(d, c->req, msg);
}

static void go(struct lookup *l)
{
	Pb__ResvUpdateReq q = *(const Pb__ResvUpdateReq *)wire_req_msg(l->req);
	struct core_event ev = { .type = EV_RESV, .resv = &q };
	Pb__KeyValue who = PB__KEY_VALUE__INIT;
	q.set = xcalloc(q.n_set + 1, sizeof *q.set);
	memcpy(q.set, ((const Pb__ResvUpdateReq *)wire_req_msg(l->req))->set, q.n_set * sizeof *q.set);
	size_t n = 0;
	for (size_t i = 0; i < q.n_set; i++) /* nobody but us says who is in a group */
		if (!key_is(q.set[i], "GroupUsers"))
			q.set[n++] = q.set[i];
	q.n_set = n;
	if (l->groups) {
		who.key = (char *)"GroupUsers";
		who.value = l->members.data;
		q.set[q.n_set++] = &who;
	}
	reply_caller(l->d, l->req, NULL, &ev.by);
	ev.token = call_create(l->d, l->req, finish)->token;
	turn_step(l->d, &ev);
	free(q.set);
}

static void looked(uv_work_t *w, int status)
{
	struct lookup *l = w->data;
	(void)status;
	if (l->unknown) {
		Pb__ResvUpdateRsp rsp = PB__RESV_UPDATE_RSP__INIT;
		char *text = xasprintf("there is no user or group \"%s\" on the controller's host", l->unknown);
		rsp.code = ESLURM_INVALID_USER_ID;
		rsp.detail = text;
		turn_reply(l->d, l->req, &rsp.base);
		free(text);
	} else
		go(l);
	free(l->unknown);
	str_fini(&l->members);
	free(l);
}

void rpc_resv_update(struct ctld *d, struct wire_req *req)
{
	struct lookup *l = xcalloc(1, sizeof *l);
	*l = (struct lookup){ .d = d, .req = req, .members = STR_INIT };
	l->work.data = l;
	uv_queue_work(d->loop, &l->work, look, looked);
}

/* May he use it? PrivateData=reservations hides it from those who may not. */
static bool visible(struct ctld *d, const struct wire_req *req, const Pb__ReservationRecord *r, const char *user)
{
	if (!reply_is_private(d, req, "reservations"))
		return true;
	return core_resv_lets(r, user);
}

void rpc_resv_list(struct ctld *d, struct wire_req *req)
{
	const Pb__ResvListReq *m = (const Pb__ResvListReq *)wire_req_msg(req);
	Pb__ResvListRsp rsp = PB__RESV_LIST_RSP__INIT;
	struct core_caller by;
	size_t total = core_resv_count(d->core);
	reply_caller(d, req, NULL, &by);
	rsp.resv = xcalloc(total + 1, sizeof *rsp.resv);
	for (size_t i = 0; i < total; i++) {
		Pb__ReservationRecord *r = core_resv_record(d->core, i);
		if ((!m->name || !m->name[0] || !strcmp(m->name, r->name)) && visible(d, req, r, by.user))
			rsp.resv[rsp.n_resv++] = r;
		else
			pb__reservation_record__free_unpacked(r, NULL);
	}
	if (m->name && m->name[0] && !rsp.n_resv) {
		rsp.has_code = true;
		rsp.code = ESLURM_RESERVATION_INVALID;
	}
	rsp.now = ctld_now_ms() / 1000;
	wire_reply(req, &rsp.base);
	for (size_t i = 0; i < rsp.n_resv; i++)
		pb__reservation_record__free_unpacked(rsp.resv[i], NULL);
	free(rsp.resv);
}
