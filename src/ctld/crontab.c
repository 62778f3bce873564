/* crontab.c - see crontab.h
 *
 * A new crontab is taken whole or not: its jobs are submitted one after the other in one turn; where one is refused those before it are taken back. Then the jobs of the old
 * one go: those that wait are cancelled, those that run end and do not come again (Requeue=0). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "ctld/accounts.h"
#include "ctld/crontab.h"
#include "ctld/handlers.h"
#include "ctld/ident.h"
#include "ctld/replies.h"
#include "ctld/scripts.h"
#include "ctld/turn.h"

#define TEXT_MAX_BYTES (1u << 20)
#define ENTRIES_MAX 1000

struct crontabs { Pb__Crontabs *all; };

/* --- the record ------------------------------------------------------------------------------------ */
static void tabs_save(struct ctld *d)
{
	size_t len = pb__crontabs__get_packed_size(d->crontabs->all);
	uint8_t *data = xmalloc(len + 1);
	pb__crontabs__pack(d->crontabs->all, data);
	turn_put(d, STORE_META, STORE_META_CRON, data, len);
}

static Pb__Crontab *tab_find(const struct ctld *d, uint32_t uid)
{
	for (size_t i = 0; d->crontabs && i < d->crontabs->all->n_tab; i++)
		if (d->crontabs->all->tab[i]->uid == uid)
			return d->crontabs->all->tab[i];
	return NULL;
}

static void tab_drop(struct ctld *d, Pb__Crontab *tab)
{
	Pb__Crontabs *all = d->crontabs->all;
	for (size_t i = 0; i < all->n_tab; i++)
		if (all->tab[i] == tab) {
			all->tab[i] = all->tab[--all->n_tab];
			break;
		}
	pb__crontab__free_unpacked(tab, NULL);
}

static void tab_add(struct ctld *d, Pb__Crontab *tab)
{
	if (!d->crontabs) {
		d->crontabs = xcalloc(1, sizeof *d->crontabs);
		d->crontabs->all = xmalloc(sizeof *d->crontabs->all);
		pb__crontabs__init(d->crontabs->all);
	}
	Pb__Crontabs *all = d->crontabs->all;
	all->tab = xrealloc(all->tab, (all->n_tab + 1) * sizeof *all->tab);
	all->tab[all->n_tab++] = tab;
}

static Pb__Crontab *tab_create(uint32_t uid, const char *text)
{
	Pb__Crontab *tab = xmalloc(sizeof *tab);
	pb__crontab__init(tab);
	tab->uid = uid;
	tab->text = xstrdup(text);
	return tab;
}

static void tab_add_job(Pb__Crontab *tab, uint32_t job_id, const Pb__CrontabEntry *e)
{
	Pb__CrontabJob *j = xmalloc(sizeof *j);
	pb__crontab_job__init(j);
	j->job_id = job_id;
	j->first_line = e->first_line;
	j->last_line = e->last_line;
	tab->job = xrealloc(tab->job, (tab->n_job + 1) * sizeof *tab->job);
	tab->job[tab->n_job++] = j;
}

/* --- an entry whose job is gone ------------------------------------------------------------------------ */
static void lines_disable(Pb__Crontab *tab, uint32_t first, uint32_t last)
{
	struct str out = STR_INIT;
	uint32_t line = 1;
	for (const char *p = tab->text; *p; line++) {
		size_t n = strcspn(p, "\n");
		str_add(&out, line >= first && line <= last && strncmp(p, "#DISABLED", 9) ? "#DISABLED: " : "");
		str_add_n(&out, p, n + (p[n] == '\n'));
		p += n + (p[n] == '\n');
	}
	free(tab->text);
	tab->text = out.data ? str_take(&out) : xstrdup("");
}

/* Takes job number i out of the tab if it has ended for good or is not known. */
static bool job_check(struct ctld *d, Pb__Crontab *tab, size_t i)
{
	const struct core_job *j = core_job_find(d->core, tab->job[i]->job_id);
	if (j && !core_job_is_finished(j))
		return false;
	lines_disable(tab, tab->job[i]->first_line, tab->job[i]->last_line);
	free(tab->job[i]);
	tab->job[i] = tab->job[--tab->n_job];
	return true;
}

void crontab_ended(struct ctld *d, void *arg)
{
	uint32_t id = (uint32_t)(uintptr_t)arg;
	for (size_t t = 0; t < d->crontabs->all->n_tab; t++) {
		Pb__Crontab *tab = d->crontabs->all->tab[t];
		for (size_t i = 0; i < tab->n_job; i++)
			if (tab->job[i]->job_id == id) {
				if (job_check(d, tab, i))
					tabs_save(d);
				return;
			}
	}
}

void crontabs_load(struct ctld *d)
{
	struct error err = { 0 };
	void *data;
	size_t len;
	bool changed = false;
	if (store_get(d->store, STORE_META, STORE_META_CRON, &data, &len, &err))
		return;
	Pb__Crontabs *all = pb__crontabs__unpack(NULL, len, data);
	free(data);
	if (!all) {
		log_error("the crontabs of users in the state file cannot be read");
		return;
	}
	d->crontabs = xcalloc(1, sizeof *d->crontabs);
	d->crontabs->all = all;
	for (size_t t = 0; t < all->n_tab; t++)
		for (size_t i = all->tab[t]->n_job; i-- > 0;)
			changed = job_check(d, all->tab[t], i) || changed;
	if (changed)
		tabs_save(d);
}

/* --- show ------------------------------------------------------------------------------------------------ */
static uint32_t get_answer(struct ctld *d, struct wire_req *req, Pb__CrontabGetRsp *rsp)
{
	const Pb__CrontabGetReq *m = (const Pb__CrontabGetReq *)wire_req_msg(req);
	uint32_t caller = wire_req_identity(req)->uid, uid = m->has_uid ? m->uid : caller;
	if (uid != caller && !ctld_is_admin(d, caller) && !accounts_is_operator(d, caller))
		return ESLURM_INVALID_USER_ID;
	if (!conf_has(d->conf, CONF_ScronParameters, "enable"))
		return ESLURM_DISABLED;
	const Pb__Crontab *tab = tab_find(d, uid);
	rsp->text = tab ? tab->text : NULL;
	return 0;
}

void rpc_crontab_get(struct ctld *d, struct wire_req *req)
{
	Pb__CrontabGetRsp rsp = PB__CRONTAB_GET_RSP__INIT;
	rsp.code = get_answer(d, req, &rsp);
	wire_reply(req, &rsp.base);
}

/* --- set ------------------------------------------------------------------------------------------------- */
struct entry_answer { struct ctld *d; const Pb__CrontabEntry *entry; uint32_t code, job_id; char *detail; };

static void entry_done(struct ctld *d, struct call *c, const ProtobufCMessage *msg)
{
	struct entry_answer *a = c->arg;
	const Pb__SubmitRsp *r = (const Pb__SubmitRsp *)msg;
	a->code = r->code;
	a->job_id = r->job_id;
	a->detail = r->detail ? xstrdup(r->detail) : NULL;
	if (!r->code && a->entry->submit->has_script)
		scripts_put(d, r->job_id, a->entry->submit);
}

static void entry_submit(struct ctld *d, const struct core_caller *by, struct entry_answer *a)
{
	static const uint8_t no_hash[32];
	struct core_event ev = { .type = EV_SUBMIT, .by = *by };
	struct call *c = call_create(d, NULL, entry_done);
	uint64_t token = ev.token = c->token;
	c->arg = a;
	a->code = ESLURM_PROTOCOL;
	ev.submit.desc = a->entry->submit->desc;
	ev.submit.idem_key = a->entry->submit->idem_key.data;
	ev.submit.idem_hash = no_hash;
	ev.submit.has_script = a->entry->submit->has_script;
	turn_step(d, &ev);
	call_forget(d, token);
}

static void job_cancel(struct ctld *d, const struct core_caller *by, uint32_t job_id)
{
	Pb__KillReq kill = PB__KILL_REQ__INIT;
	char id[16], *ids[] = { id };
	struct core_event ev = { .type = EV_KILL, .by = *by };
	snprintf(id, sizeof id, "%u", job_id);
	kill.id = ids;
	kill.n_id = 1;
	ev.kill = &kill;
	turn_step(d, &ev);
}

static void job_let_finish(struct ctld *d, const struct core_caller *by, uint32_t job_id)
{
	Pb__JobUpdateReq update = PB__JOB_UPDATE_REQ__INIT;
	Pb__KeyValue kv = PB__KEY_VALUE__INIT, *kvs[] = { &kv };
	char id[16], *ids[] = { id };
	struct core_event ev = { .type = EV_JOB_UPDATE, .by = *by };
	snprintf(id, sizeof id, "%u", job_id);
	kv.key = "Requeue";
	kv.value = "0";
	update.id = ids;
	update.n_id = 1;
	update.set = kvs;
	update.n_set = 1;
	ev.job_update = &update;
	turn_step(d, &ev);
}

static bool has_job(const Pb__Crontab *tab, uint32_t job_id)
{
	for (size_t i = 0; tab && i < tab->n_job; i++)
		if (tab->job[i]->job_id == job_id)
			return true;
	return false;
}

/* The jobs of a tab that is no longer in force, but those of `fresh` (a call that came twice). */
static void tab_retire(struct ctld *d, const struct core_caller *by, const Pb__Crontab *tab, const Pb__Crontab *fresh)
{
	for (size_t i = 0; i < tab->n_job; i++) {
		if (has_job(fresh, tab->job[i]->job_id))
			continue;
		const struct core_job *j = core_job_find(d->core, tab->job[i]->job_id);
		if (j && core_job_is_running(j))
			job_let_finish(d, by, tab->job[i]->job_id);
		else if (j && !core_job_is_finished(j))
			job_cancel(d, by, tab->job[i]->job_id);
	}
}

/* NULL: one is refused, *rsp says which and why; none is left. */
static Pb__Crontab *tab_submit(struct ctld *d, const struct core_caller *by, const Pb__CrontabSetReq *m, Pb__CrontabSetRsp *rsp)
{
	Pb__Crontab *tab = tab_create(by->uid, m->text);
	for (size_t i = 0; i < m->n_entry; i++) {
		struct entry_answer a = { .d = d, .entry = m->entry[i] };
		entry_submit(d, by, &a);
		if (a.code) {
			rsp->code = a.code;
			rsp->detail = a.detail;
			rsp->has_first_line = rsp->has_last_line = true;
			rsp->first_line = m->entry[i]->first_line;
			rsp->last_line = m->entry[i]->last_line;
			tab_retire(d, by, tab, NULL);
			pb__crontab__free_unpacked(tab, NULL);
			return NULL;
		}
		free(a.detail);
		tab_add_job(tab, a.job_id, m->entry[i]);
	}
	return tab;
}

static void set_go(struct ctld *d, const struct ident *id, void *arg)
{
	struct wire_req *req = arg;
	const Pb__CrontabSetReq *m = (const Pb__CrontabSetReq *)wire_req_msg(req);
	Pb__CrontabSetRsp rsp = PB__CRONTAB_SET_RSP__INIT;
	struct core_caller by;
	reply_caller(d, req, id, &by);
	by.uid = id->uid;
	by.gid = id->gid;
	rsp.code = id->known ? 0 : ESLURM_INVALID_USER_ID;
	Pb__Crontab *fresh = !rsp.code && m->text ? tab_submit(d, &by, m, &rsp) : NULL, *old = tab_find(d, id->uid);
	if (!rsp.code && old) {
		tab_retire(d, &by, old, fresh);
		tab_drop(d, old); /* in this turn: crontab_ended of its jobs comes behind it */
	}
	if (fresh)
		tab_add(d, fresh);
	if (!rsp.code && d->crontabs)
		tabs_save(d);
	if (!rsp.code)
		log_info("crontab of uid=%u %s: %zu entries", id->uid, m->text ? "set" : "removed", m->n_entry);
	turn_reply(d, req, &rsp.base);
	free(rsp.detail);
}

static const char *set_refused(const struct ctld *d, const struct wire_req *req, const Pb__CrontabSetReq *m, uint32_t *code)
{
	uint32_t caller = wire_req_identity(req)->uid;
	*code = ESLURM_INVALID_USER_ID;
	if (m->has_uid && m->uid != caller && !ctld_is_admin(d, caller))
		return error_text(ESLURM_INVALID_USER_ID);
	*code = ESLURM_DISABLED;
	if (!conf_has(d->conf, CONF_ScronParameters, "enable"))
		return "scrontab is disabled on this cluster: ScronParameters does not say enable";
	*code = ESLURM_PROTOCOL;
	if (m->n_entry > ENTRIES_MAX || (m->text && strlen(m->text) > TEXT_MAX_BYTES) || (!m->text && m->n_entry))
		return "a crontab has at most 1000 entries in 1 MiB";
	for (size_t i = 0; i < m->n_entry; i++)
		if (m->entry[i]->submit->idem_key.len != 16 || !m->entry[i]->submit->desc->cron_spec)
			return "malformed crontab entry";
	return NULL;
}

void rpc_crontab_set(struct ctld *d, struct wire_req *req)
{
	const Pb__CrontabSetReq *m = (const Pb__CrontabSetReq *)wire_req_msg(req);
	Pb__CrontabSetRsp rsp = PB__CRONTAB_SET_RSP__INIT;
	const char *why = set_refused(d, req, m, &rsp.code);
	if (!why) {
		ident_get(d, m->has_uid ? m->uid : wire_req_identity(req)->uid, set_go, req);
		return;
	}
	rsp.detail = (char *)why;
	turn_reply(d, req, &rsp.base);
}
