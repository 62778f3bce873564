/* rpc_read.c - lists: jobs, steps, nodes, partitions, configuration, scripts. They may show what is not on disk yet.
 *
 * The job list is the one that is polled. Its answer is written by hand around the cached record of each job: JobListRsp{ JobItem{ record, vol }... }. One
 * finished answer is kept and shared by all who ask the same while nothing changes (struct snapshot, counted references). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "ctld/handlers.h"
#include "ctld/job_item.h"
#include "ctld/reads.h"
#include "ctld/replies.h"
#include "ctld/scripts.h"
#include "model/hostlist.h"

/* --- jobs ------------------------------------------------------------------------------------- */
struct snapshot { int refs; struct item_buf buf; };
struct reads { uint64_t version; struct { uint64_t version; bool filled; uint32_t uid; bool has_uid, finished, all; struct snapshot *snap; } cache; };

struct reads *reads_create(void) { return xcalloc(1, sizeof(struct reads)); }
void reads_core_changed(struct reads *r) { r->version++; }

static void snapshot_unref(void *arg)
{
	struct snapshot *s = arg;
	if (--s->refs)
		return;
	free(s->buf.data);
	free(s);
}

void reads_forget(struct reads *r)
{
	if (r->cache.snap)
		snapshot_unref(r->cache.snap);
	r->cache.snap = NULL;
}

void reads_destroy(struct reads *r)
{
	if (!r)
		return;
	reads_forget(r);
	free(r);
}

/* Partitions marked Hidden, whose jobs and nodes are shown only with --all. */
struct hidden { char **name; size_t n, cap; };

static void hidden_load(struct ctld *d, struct hidden *h)
{
	for (size_t i = 0; i < core_part_count(d->core); i++) {
		Pb__PartitionRecord *p = core_part_record(d->core, i);
		if (p->hidden) {
			h->name = xgrow(h->name, &h->cap, h->n + 1, sizeof *h->name);
			h->name[h->n++] = xstrdup(p->name);
		}
		pb__partition_record__free_unpacked(p, NULL);
	}
}

static bool hidden_has(const struct hidden *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (str_eq(h->name[i], name))
			return true;
	return false;
}

static void hidden_fini(struct hidden *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->name[i]);
	free(h->name);
}

static void add_job(struct ctld *d, struct item_buf *b, const struct core_job *j)
{
	size_t len;
	const uint8_t *blob = core_job_blob(d->core, j, &len);
	Pb__JobVolatile vol = PB__JOB_VOLATILE__INIT;
	core_job_volatile(d->core, j, &vol);
	item_add(b, blob, len, &vol);
}

static void add_all(struct ctld *d, struct item_buf *b, const Pb__JobListReq *m)
{
	struct hidden hidden = { 0 };
	uint64_t cursor = 0;
	const struct core_job *j;
	if (!m->show_all)
		hidden_load(d, &hidden);
	while ((j = core_job_next(d->core, &cursor))) {
		if (m->has_uid && core_job_uid(j) != m->uid)
			continue;
		if (!m->with_finished && core_job_is_finished(j) && !core_job_is_completing(j))
			continue;
		if (hidden.n && hidden_has(&hidden, core_job_partition(j)))
			continue;
		add_job(d, b, j);
	}
	hidden_fini(&hidden);
}

/* Named jobs; one that does not exist is an error unless others do. */
static void add_named(struct ctld *d, struct item_buf *b, const Pb__JobListReq *m)
{
	uint32_t *ids = NULL;
	size_t n = 0, found = 0;
	for (size_t i = 0; i < m->n_selector; i++)
		(void)core_job_resolve(d->core, m->selector[i], &ids, &n);
	ids = xrealloc(ids, (n + m->n_job_id + 1) * sizeof *ids);
	for (size_t i = 0; i < m->n_job_id; i++)
		ids[n++] = m->job_id[i];
	for (size_t i = 0; i < n; i++) {
		const struct core_job *j = core_job_find(d->core, ids[i]);
		if (!j || (m->has_uid && core_job_uid(j) != m->uid))
			continue;
		add_job(d, b, j);
		found++;
	}
	free(ids);
	item_end(b, ctld_now_ms() / 1000, found ? 0 : ESLURM_INVALID_JOB_ID);
}

static struct snapshot *snapshot_all(struct ctld *d, const Pb__JobListReq *m)
{
	struct reads *r = d->reads;
	if (r->cache.snap && r->cache.version == r->version && r->cache.has_uid == m->has_uid && r->cache.uid == m->uid &&
	    r->cache.finished == m->with_finished && r->cache.all == m->show_all)
		return r->cache.snap;
	reads_forget(r);
	struct snapshot *s = xcalloc(1, sizeof *s);
	s->refs = 1;
	add_all(d, &s->buf, m);
	r->cache.snap = s;
	r->cache.version = r->version;
	r->cache.has_uid = m->has_uid;
	r->cache.uid = m->uid;
	r->cache.finished = m->with_finished;
	r->cache.all = m->show_all;
	return s;
}

struct reply_pair { struct snapshot *snap, *tail; };

static void pair_release(void *arg)
{
	struct reply_pair *p = arg;
	snapshot_unref(p->snap);
	snapshot_unref(p->tail);
	free(p);
}

static void reply_no_jobs(struct wire_req *req)
{
	Pb__JobListRsp rsp = PB__JOB_LIST_RSP__INIT;
	rsp.now = ctld_now_ms() / 1000;
	wire_reply(req, &rsp.base);
}

void rpc_job_list(struct ctld *d, struct wire_req *req)
{
	Pb__JobListReq only = *(const Pb__JobListReq *)wire_req_msg(req);
	const Pb__JobListReq *m = &only;
	uint32_t caller = wire_req_identity(req)->uid;
	if (reply_is_private(d, req, "jobs")) {
		if (only.has_uid && only.uid != caller) {
			reply_no_jobs(req);
			return;
		}
		only.has_uid = true;
		only.uid = caller;
	}
	if (m->n_job_id || m->n_selector) {
		struct item_buf b = { 0 };
		add_named(d, &b, m);
		struct wire_piece piece = { b.data, b.len };
		wire_reply_pieces(req, &piece, 1, free, b.data);
		return;
	}
	struct snapshot *s = snapshot_all(d, m), *tail = xcalloc(1, sizeof *tail);
	s->refs++;
	tail->refs = 1;
	item_end(&tail->buf, ctld_now_ms() / 1000, 0);
	struct reply_pair *pair = xmalloc(sizeof *pair);
	*pair = (struct reply_pair){ s, tail };
	struct wire_piece piece[2] = { { s->buf.data, s->buf.len }, { tail->buf.data, tail->buf.len } };
	wire_reply_pieces(req, piece, 2, pair_release, pair);
}

/* --- steps, nodes, partitions ----------------------------------------------------------------- */
void rpc_step_list(struct ctld *d, struct wire_req *req)
{
	const Pb__StepListReq *m = (const Pb__StepListReq *)wire_req_msg(req);
	Pb__StepListRsp rsp = PB__STEP_LIST_RSP__INIT;
	Pb__StepRecord **all = NULL;
	size_t n = core_step_records(d->core, m->has_job_id ? m->job_id : 0, &all);
	Pb__StepRecord **list = xcalloc(n + 1, sizeof *list);
	bool hide = reply_is_private(d, req, "jobs");
	uint32_t caller = wire_req_identity(req)->uid;
	for (size_t i = 0; i < n; i++)
		if ((!m->has_step_id || all[i]->step_id == m->step_id) && (!m->has_uid || all[i]->uid == m->uid) && (!hide || all[i]->uid == caller))
			list[rsp.n_step++] = all[i];
	rsp.step = list;
	rsp.now = ctld_now_ms() / 1000;
	if (m->has_job_id && !core_job_find(d->core, m->job_id)) {
		rsp.has_code = true;
		rsp.code = ESLURM_INVALID_JOB_ID;
	}
	wire_reply(req, &rsp.base);
	for (size_t i = 0; i < n; i++)
		pb__step_record__free_unpacked(all[i], NULL);
	free(list);
	free(all);
}

void rpc_step_layout(struct ctld *d, struct wire_req *req)
{
	const Pb__StepLayoutReq *m = (const Pb__StepLayoutReq *)wire_req_msg(req);
	const struct core_job *j = core_job_find(d->core, m->job_id);
	const struct wire_identity *id = wire_req_identity(req);
	Pb__StepLayoutRsp rsp = PB__STEP_LAYOUT_RSP__INIT;
	if (!j)
		rsp.code = ESLURM_INVALID_JOB_ID;
	else if (core_job_uid(j) != id->uid && !ctld_is_admin(d, id->uid))
		rsp.code = ESLURM_ACCESS_DENIED;
	else if (core_job_is_finished(j))
		rsp.code = ESLURM_ALREADY_DONE;
	else if (!core_job_is_running(j))
		rsp.code = ESLURM_JOB_PENDING;
	else if (!(rsp.layout = core_step_layout(d->core, m->job_id, m->step_id)))
		rsp.code = ESLURM_INVALID_JOB_ID;
	wire_reply(req, &rsp.base);
	if (rsp.layout)
		pb__step_layout__free_unpacked(rsp.layout, NULL);
}

/* One at a time: a hundred thousand records at once cost more in memory than in work. */
static void add_node(struct ctld *d, struct item_buf *b, uint32_t index, struct item_buf *room)
{
	Pb__NodeRecord *r = core_node_record(d->core, index);
	size_t len = pb__node_record__get_packed_size(r);
	room->data = xgrow(room->data, &room->cap, len, 1);
	pb__node_record__pack(r, room->data);
	item_add_plain(b, 1, room->data, len); /* NodeListRsp.node */
	pb__node_record__free_unpacked(r, NULL);
}

void rpc_node_list(struct ctld *d, struct wire_req *req)
{
	const Pb__NodeListReq *m = (const Pb__NodeListReq *)wire_req_msg(req);
	struct hostlist hl = HOSTLIST_INIT;
	struct item_buf b = { 0 }, room = { 0 };
	struct error err;
	bool named = m->nodes && *m->nodes;
	if (reply_is_private(d, req, "nodes")) {
		wire_reply_error(req, ESLURM_ACCESS_DENIED, NULL);
		return;
	}
	if (named && hostlist_add(&hl, m->nodes, &err)) {
		wire_reply_error(req, ESLURM_INVALID_NODE_NAME, err.line);
		return;
	}
	for (size_t i = 0; i < hl.count; i++) {
		int at = core_node_find(d->core, hl.name[i]);
		if (at >= 0)
			add_node(d, &b, (uint32_t)at, &room);
	}
	for (size_t i = 0; !named && i < core_node_count(d->core); i++)
		add_node(d, &b, (uint32_t)i, &room);
	item_end(&b, ctld_now_ms() / 1000, hl.count && !b.len ? ESLURM_INVALID_NODE_NAME : 0);
	struct wire_piece piece = { b.data, b.len };
	wire_reply_pieces(req, &piece, 1, free, b.data);
	free(room.data);
	hostlist_fini(&hl);
}

void rpc_part_list(struct ctld *d, struct wire_req *req)
{
	const Pb__PartListReq *m = (const Pb__PartListReq *)wire_req_msg(req);
	Pb__PartListRsp rsp = PB__PART_LIST_RSP__INIT;
	size_t total = core_part_count(d->core);
	if (reply_is_private(d, req, "partitions")) {
		wire_reply_error(req, ESLURM_ACCESS_DENIED, NULL);
		return;
	}
	rsp.part = xcalloc(total + 1, sizeof *rsp.part);
	for (size_t i = 0; i < total; i++) {
		Pb__PartitionRecord *p = core_part_record(d->core, i);
		bool named = m->name && *m->name;
		if (named ? str_eq(m->name, p->name) : m->show_all || !p->hidden)
			rsp.part[rsp.n_part++] = p;
		else
			pb__partition_record__free_unpacked(p, NULL);
	}
	if (m->name && *m->name && !rsp.n_part) {
		rsp.has_code = true;
		rsp.code = ESLURM_INVALID_PARTITION_NAME;
	}
	rsp.now = ctld_now_ms() / 1000;
	wire_reply(req, &rsp.base);
	for (size_t i = 0; i < rsp.n_part; i++)
		pb__partition_record__free_unpacked(rsp.part[i], NULL);
	free(rsp.part);
}

/* --- the rest --------------------------------------------------------------------------------- */
static uint32_t next_job_id(const struct core *core)
{
	const char *name;
	int64_t value;
	for (size_t i = 0; core_counter(core, i, &name, &value); i++)
		if (!strcmp(name, "next_job_id"))
			return (uint32_t)value;
	return 1;
}

void rpc_config_show(struct ctld *d, struct wire_req *req)
{
	Pb__ConfigRsp rsp = PB__CONFIG_RSP__INIT;
	struct conf_show_row *row;
	rsp.now = ctld_now_ms() / 1000;
	const struct conf_show_live live = { .boot_time = d->boot_ms / 1000, .next_job_id = next_job_id(d->core),
		.level = d->has_level ? log_level_name((enum log_level)d->level) : NULL, .debug_flags = d->debug_flags };
	size_t n = conf_show_rows(d->conf, &live, &row);
	Pb__KeyValue *kv = xcalloc(n + 1, sizeof *kv);
	rsp.value = xcalloc(n + 1, sizeof *rsp.value);
	rsp.cgroup = xcalloc(n + 1, sizeof *rsp.cgroup);
	for (size_t i = 0; i < n; i++) {
		pb__key_value__init(&kv[i]);
		kv[i].key = row[i].key;
		kv[i].value = row[i].value;
		if (row[i].cgroup)
			rsp.cgroup[rsp.n_cgroup++] = &kv[i];
		else
			rsp.value[rsp.n_value++] = &kv[i];
	}
	wire_reply(req, &rsp.base);
	free(rsp.value);
	free(rsp.cgroup);
	free(kv);
	conf_show_free(row, n);
}

void rpc_script(struct ctld *d, struct wire_req *req)
{
	const Pb__ScriptReq *m = (const Pb__ScriptReq *)wire_req_msg(req);
	const struct wire_identity *id = wire_req_identity(req);
	const struct core_job *j = core_job_find(d->core, m->job_id);
	Pb__ScriptRsp rsp = PB__SCRIPT_RSP__INIT;
	struct error err;
	void *data;
	size_t len;
	if (!j) {
		rsp.code = ESLURM_INVALID_JOB_ID;
	} else if (core_job_uid(j) != id->uid && !ctld_is_admin(d, id->uid)) {
		rsp.code = ESLURM_ACCESS_DENIED;
	} else {
		Pb__JobRecord *r = reply_record(d, j);
		int rc = scripts_get(d, m->job_id, r ? r->has_het_job_id ? r->het_job_id : r->array_job_id : 0, &data, &len, &err);
		if (r)
			pb__job_record__free_unpacked(r, NULL);
		if (!rc) {
			struct wire_piece piece = { data, len };
			wire_reply_pieces(req, &piece, 1, free, data);
			return;
		}
		rsp.code = ESLURM_SCRIPT_MISSING;
	}
	wire_reply(req, &rsp.base);
}
