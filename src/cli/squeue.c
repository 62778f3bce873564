/* squeue.c - list the jobs (or steps) of the queue
 *
 * One call, then two walks over the reply's bytes: the first filters and reads sort keys, the second prints in that order. A job is never
 * unpacked; columns read their fields in place (see jobview.h). What is shown by default is in squeue_opt.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/fields_job.h"
#include "cli/json.h"
#include "cli/squeue.h"
#include "model/idset.h"
#include "model/states.h"
#include "proto/controller.pb-c.h"

#define FORMAT_JOBS "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define FORMAT_LONG "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
#define FORMAT_START "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
#define FORMAT_STEPS "%.15i %.8j %.9P %.8u %.9M %N"
#define FORMAT_STATE "%.18i %.2t"
#define ARRAY_INDEX_MAX 4000002   /* above any MaxArraySize */

/* One line to be: which item of the reply, and what of it. */
struct line { const uint8_t *data; uint32_t len; int32_t task; uint32_t part_at, part_len; };
struct lines { struct line *line; size_t n, cap; };

static bool id_in(const struct id_list *l, uint64_t id)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->id[i] == id)
			return true;
	return false;
}

static bool uid_passes(const struct squeue *q, uint64_t uid)
{
	if ((q->me || q->users) && !id_in(&q->uid, uid))
		return false;
	return !q->not_me || uid != getuid();
}

static bool nodes_pass(const struct squeue *q, struct slice nodes)
{
	if (!q->nodes)
		return true;
	if (!nodes.n)
		return false;
	struct hostlist held = HOSTLIST_INIT;
	char *text = slice_dup(nodes);
	bool found = false;
	(void)hostlist_add(&held, text, NULL);
	for (size_t i = 0; !found && i < q->node.count; i++)
		found = hostlist_find(&held, q->node.name[i]) >= 0;
	hostlist_fini(&held);
	free(text);
	return found;
}

/* Does some word of one comma list stand in the other? */
static bool lists_meet(struct slice have, const char *want)
{
	size_t at = 0;
	while (have.p && at <= have.n) {
		size_t n = 0;
		while (at + n < have.n && have.p[at + n] != ',')
			n++;
		size_t word = 0;   /* a licence may carry ":count" or "@server" */
		while (word < n && have.p[at + word] != ':' && have.p[at + word] != '@')
			word++;
		if (slice_in_list((struct slice){ have.p + at, word }, want))
			return true;
		at += n + 1;
	}
	return false;
}

static bool text_passes(struct jobview *v, unsigned field, const char *want)
{
	return !want || slice_in_list(msgview_text(jobview_desc(v), field), want);
}

static bool job_passes(const struct squeue *q, struct jobview *v)
{
	uint32_t state = jobview_state(v), flags = jobview_flags(v);
	if (!(flags & q->flag_states) && !(state < 32 && (q->base_states >> state & 1)))
		return false;
	if (!uid_passes(q, jobview_num(v, PB_JobRecord_uid, 0)))
		return false;
	uint64_t run = q->over || q->under ? jobview_run_sec(v) : 0;
	if ((q->over && (!run || run <= q->running_over)) || (q->under && (!run || run >= q->running_under)))
		return false;
	if (q->partitions && !lists_meet(jobview_partition(v), q->partitions))
		return false;
	if (q->licenses && !lists_meet(msgview_text(jobview_desc(v), PB_JobDesc_licenses), q->licenses))
		return false;
	struct slice qos = q->qos ? msgview_text(jobview_desc(v), PB_JobDesc_qos) : (struct slice){ 0 };
	if (q->qos && !slice_in_list(qos.n ? qos : (struct slice){ "normal", 6 }, q->qos))
		return false;
	return text_passes(v, PB_JobDesc_account, q->accounts) && text_passes(v, PB_JobDesc_name, q->names) &&
	       (!q->reservations || lists_meet(jobview_reservation(v), q->reservations)) &&
	       (!q->nodes || nodes_pass(q, msgview_text(jobview_alloc(v), PB_Alloc_nodes)));
}

/* "-j 3_1": which tasks of a pending array were asked for by name; NULL: all of it. */
static struct bitset *tasks_asked(const struct squeue *q, struct jobview *v)
{
	if (!q->jobs || !msgview_text(&v->rec, PB_JobRecord_array_tasks).n)
		return NULL;
	struct bitset *set = bitset_create(ARRAY_INDEX_MAX);
	uint64_t job = jobview_num(v, PB_JobRecord_array_job_id, 0);
	bool whole = false;
	char *copy = xstrdup(q->jobs), *cursor = copy;
	for (char *word; (word = str_next(&cursor, ","));) {
		char *end;
		unsigned long long id = strtoull(word, &end, 10), task;
		if (id != job)
			continue;
		if (*end != '_')
			whole = true;
		else if (str_to_u64(end + 1, 0, ARRAY_INDEX_MAX - 1, &task) == 0)
			bitset_set(set, (uint32_t)task);
	}
	free(copy);
	if (whole || bitset_empty(set)) {
		bitset_destroy(set);
		return NULL;
	}
	return set;
}

static void line_add(struct lines *l, struct sorter *s, struct jobview *v, const struct line *line)
{
	l->line = xgrow(l->line, &l->cap, l->n + 1, sizeof(*l->line));
	l->line[l->n++] = *line;
	sorter_add(s, v);
}

static void line_apply(struct jobview *v, const struct line *line)
{
	v->task = line->task;
	struct slice all = msgview_text(&v->rec, PB_JobRecord_partition);
	if (line->part_len) {
		v->partition = (struct slice){ 0 };
		all = jobview_partition(v);
		v->partition = (struct slice){ all.p + line->part_at, line->part_len };
	}
}

/* -P: a pending job once for each partition of its list. */
static void add_partitions(const struct squeue *q, struct lines *l, struct sorter *s, struct jobview *v, struct line line)
{
	struct slice all = jobview_partition(v);
	if (!q->per_partition || !jobview_is_pending(v) || !memchr(all.p ? all.p : "", ',', all.n)) {
		line_add(l, s, v, &line);
		return;
	}
	for (uint32_t at = 0; at < all.n;) {
		uint32_t n = 0;
		while (at + n < all.n && all.p[at + n] != ',')
			n++;
		line.part_at = at;
		line.part_len = n;
		v->partition = (struct slice){ all.p + at, n };
		if (n && (!q->partitions || slice_in_list(v->partition, q->partitions)))
			line_add(l, s, v, &line);
		at += n + 1;
	}
	v->partition = (struct slice){ 0 };
}

static void job_add(const struct squeue *q, struct lines *l, struct sorter *s, struct jobview *v, const uint8_t *data, size_t len)
{
	struct line line = { data, (uint32_t)len, -1, 0, 0 };
	struct slice pending = msgview_text(&v->rec, PB_JobRecord_array_tasks);
	struct bitset *asked = tasks_asked(q, v), *have = NULL;
	if (!pending.n || (!q->array && !asked)) {
		add_partitions(q, l, s, v, line);
		return;
	}
	char *text = slice_dup(pending);
	if (idset_parse(text, ARRAY_INDEX_MAX, &have, NULL) == 0)
		bitset_for(have, task)
			if (!asked || bitset_has(asked, task)) {
				v->task = line.task = (int32_t)task;
				add_partitions(q, l, s, v, line);
			}
	v->task = -1;
	free(text);
	bitset_destroy(have);
	bitset_destroy(asked);
}

static void jobs_print(const struct squeue *q, const struct table *t, const struct sort_spec *spec, const uint8_t *reply, size_t len)
{
	static struct jobview v;
	struct str out = STR_INIT;
	struct lines l = { 0 };
	struct sorter *s = sorter_create(spec, 1024);
	struct show_walk walk;
	const uint8_t *item;
	size_t item_len;
	show_walk_start(&walk, reply, len, PB_JobListRsp_job);
	while (show_walk_next(&walk, &item, &item_len))
		if (jobview_read(&v, item, item_len) && job_passes(q, &v))
			job_add(q, &l, s, &v, item, item_len);
	const uint32_t *order = sorter_order(s);
	str_reserve(&out, OUT_CHUNK + 4096);
	for (size_t i = 0; i < l.n; i++) {
		const struct line *line = &l.line[order[i]];
		(void)jobview_read(&v, line->data, line->len);
		line_apply(&v, line);
		table_row(t, &v, &out);
		if (out.len > OUT_CHUNK)
			out_flush(&out);
	}
	out_flush(&out);
	str_fini(&out);
	sorter_destroy(s);
	free(l.line);
}

static bool step_passes(const struct squeue *q, const struct msgview *m)
{
	uint32_t state = (uint32_t)msgview_num(m, PB_StepRecord_state, 0);
	if (!uid_passes(q, msgview_num(m, PB_StepRecord_uid, 0)) || state == PB__JOB_STATE__PENDING || job_state_is_final(state))
		return false;
	if ((q->names && !slice_in_list(msgview_text(m, PB_StepRecord_name), q->names)) ||
	    (q->partitions && !slice_in_list(msgview_text(m, PB_StepRecord_partition), q->partitions)) ||
	    !nodes_pass(q, msgview_text(m, PB_StepRecord_nodes)))
		return false;
	struct str id = STR_INIT;
	put_step_id(&id, m);
	bool good = !q->steps || slice_in_list((struct slice){ id.data, id.len }, q->steps);
	id.len = strcspn(id.data, ".");
	good = good && (!q->jobs || slice_in_list((struct slice){ id.data, id.len }, q->jobs));
	str_fini(&id);
	return good;
}

static void steps_print(const struct squeue *q, const struct table *t, const struct sort_spec *spec, const uint8_t *reply, size_t len)
{
	static struct msgview m;
	struct str out = STR_INIT;
	struct lines l = { 0 };
	struct sorter *s = sorter_create(spec, 64);
	struct show_walk walk;
	struct line line = { 0 };
	size_t line_len;
	show_walk_start(&walk, reply, len, PB_StepListRsp_step);
	while (show_walk_next(&walk, &line.data, &line_len))
		if (msgview_read(&m, line.data, line_len) && step_passes(q, &m)) {
			line.len = (uint32_t)line_len;
			l.line = xgrow(l.line, &l.cap, l.n + 1, sizeof(*l.line));
			l.line[l.n++] = line;
			sorter_add(s, &m);
		}
	const uint32_t *order = sorter_order(s);
	for (size_t i = 0; i < l.n; i++) {
		(void)msgview_read(&m, l.line[order[i]].data, l.line[order[i]].len);
		table_row(t, &m, &out);
	}
	out_flush(&out);
	str_fini(&out);
	sorter_destroy(s);
	free(l.line);
}

static int table_make(const struct squeue *q, struct table *t, struct sort_spec *spec, struct error *err)
{
	if (q->step_mode)
		table_init(t, step_fields, step_fields_n, "job step");
	else
		table_init(t, job_fields, job_fields_n, "job");
	const char *format = q->step_mode ? FORMAT_STEPS : q->start ? FORMAT_START : q->only_state ? FORMAT_STATE : q->long_form ? FORMAT_LONG : FORMAT_JOBS;
	const char *sort = q->step_mode ? "P,i" : q->start ? "S" : "P,t,-p";
	int rc = q->format_long ? table_format_long(t, q->format_long, err) : table_format(t, q->format ? q->format : format, "", err);
	return rc < 0 ? rc : sort_parse(t, q->sort ? q->sort : sort, spec, err);
}

/* Which jobs to ask the controller for. Arrays borrow from `q` and `word`. */
static int jobs_call(const struct squeue *q, struct client *c, uint8_t **reply, size_t *len, struct error *err)
{
	Pb__JobListReq req = PB__JOB_LIST_REQ__INIT;
	char *copy = xstrdup(q->jobs ? q->jobs : ""), *cursor = copy, **word = NULL;
	size_t cap = 0;
	for (char *piece; (piece = str_next(&cursor, ","));)
		if (*piece) {
			word = xgrow(word, &cap, req.n_selector + 1, sizeof(*word));
			word[req.n_selector++] = piece;
		}
	if (q->jobs && !req.n_selector) {   /* "-j $JOB" where JOB is empty: no job, not all */
		free(copy);
		*reply = NULL;
		*len = 0;
		return 0;
	}
	req.selector = word;
	req.has_with_finished = req.with_finished = q->want_finished || q->jobs;
	req.has_show_all = req.show_all = q->all;
	if (q->uid.n == 1 && !q->jobs) {
		req.has_uid = true;
		req.uid = (uint32_t)q->uid.id[0];
	}
	int rc = show_call(c, RPC_JOB_LIST, &req.base, PB_JobListRsp_now, reply, len, err);
	bool alone = req.n_selector == 1;
	char *task = alone ? strchr(word[0], '_') : NULL;
	if (rc == -ESLURM_INVALID_JOB_ID && task) {   /* a task that is gone, of an array that is there */
		*task = 0;
		rc = show_call(c, RPC_JOB_LIST, &req.base, PB_JobListRsp_now, reply, len, err);
		if (rc == 0) {
			free(*reply);
			*reply = NULL;
			*len = 0;
		}
	}
	/* Ids of a list that are not known are just not shown; a single one is an error. */
	if (rc == -ESLURM_INVALID_JOB_ID && !alone) {
		*reply = NULL;
		*len = 0;
		rc = 0;
	}
	free(word);
	free(copy);
	return rc;
}

static int nodes_known(const struct squeue *q, struct client *c, struct error *err)
{
	if (!q->nodes)
		return 0;
	Pb__NodeListReq req = PB__NODE_LIST_REQ__INIT;
	ProtobufCMessage *msg;
	req.has_show_all = req.show_all = true;
	int rc = client_call(c, RPC_NODE_LIST, &req.base, 0, &msg, err);
	if (rc < 0)
		return rc;
	const Pb__NodeListRsp *rsp = (const Pb__NodeListRsp *)msg;
	for (size_t i = 0; !rc && i < q->node.count; i++) {
		bool known = false;
		for (size_t k = 0; !known && k < rsp->n_node; k++)
			known = !strcmp(rsp->node[k]->name, q->node.name[i]);
		if (!known)
			rc = error_set(err, ESLURM_INVALID_NODE_NAME, "Invalid node name %s", q->node.name[i]);
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	return rc;
}

static void *job_taken(const uint8_t *item, size_t len, void *arg)
{
	static struct jobview v;
	return jobview_read(&v, item, len) && job_passes(arg, &v) ? &v : NULL;
}
static void *step_taken(const uint8_t *item, size_t len, void *arg)
{
	static struct msgview m;
	return msgview_read(&m, item, len) && step_passes(arg, &m) ? &m : NULL;
}

static void json_print(struct squeue *q, const uint8_t *reply, size_t len)
{
	struct json_reply r = { .name = "jobs", .data = reply, .len = len, .field = PB_JobListRsp_job, .source = json_job_source, .read = job_taken, .arg = q,
		.backfill = true, .none = "Zero jobs to dump" };
	if (q->step_mode) {
		r.name = "steps";
		r.field = PB_StepListRsp_step;
		r.source = json_plain_source;
		r.read = step_taken;
		r.backfill = false;
		r.none = "Zero steps to dump";
	}
	r.rows = q->step_mode ? json_step_rows(&r.n_rows) : json_job_rows(&r.n_rows);
	json_reply_print(&r, q->yaml != NULL, q->argv, q->argc);
}

/* The pending jobs of the reply that pass the filters. */
static int why_print(const struct squeue *q, struct client *c, const uint8_t *reply, size_t len)
{
	static struct jobview v;
	struct show_walk walk;
	const uint8_t *item;
	size_t item_len, n = 0, cap = 0;
	uint32_t *id = NULL;
	show_walk_start(&walk, reply, len, PB_JobListRsp_job);
	while (show_walk_next(&walk, &item, &item_len))
		if (jobview_read(&v, item, item_len) && jobview_is_pending(&v) && job_passes(q, &v)) {
			id = xgrow(id, &cap, n + 1, sizeof(*id));
			id[n++] = (uint32_t)jobview_num(&v, PB_JobRecord_job_id, 0);
		}
	int rc = squeue_why_print(q, c, id, n);
	free(id);
	return rc;
}

static int round_print(struct squeue *q, struct client *c, const struct table *t, const struct sort_spec *spec)
{
	struct error err = { 0 };
	struct str out = STR_INIT;
	uint8_t *reply = NULL;
	size_t len = 0;
	Pb__StepListReq steps = PB__STEP_LIST_REQ__INIT;
	int rc = q->step_mode ? show_call(c, RPC_STEP_LIST, &steps.base, PB_StepListRsp_now, &reply, &len, &err) : jobs_call(q, c, &reply, &len, &err);
	if (rc < 0) {
		fprintf(stderr, "%s error: %s\n", q->step_mode ? "slurm_get_job_steps" : "slurm_load_jobs", error_text(rc));
		return 1;
	}
	if (q->why && !q->step_mode) {
		rc = why_print(q, c, reply, len);
		free(reply);
		return rc;
	}
	if (q->json || q->yaml) {
		json_print(q, reply, len);
		free(reply);
		return 0;
	}
	if ((q->long_form || q->iterate) && !q->no_header)
		put_date_line(&out);
	if (!q->no_header)
		put_cluster_line(&out);
	if (!q->no_header)
		table_header(t, &out);
	out_flush(&out);
	if (q->step_mode)
		steps_print(q, t, spec, reply, len);
	else
		jobs_print(q, t, spec, reply, len);
	if (q->iterate) {
		str_add_c(&out, '\n');
		out_flush(&out);
	}
	str_fini(&out);
	free(reply);
	return 0;
}

int main(int argc, char **argv)
{
	struct squeue q;
	struct table t;
	struct sort_spec spec;
	struct error err = { 0 };
	show_start("squeue");
	int rc = squeue_parse(&q, argc, argv);
	if (rc >= 0)
		return rc;
	rc = json_parser_check("squeue", q.json ? q.json : q.yaml);
	if (rc)
		return rc - 1;
	if (table_make(&q, &t, &spec, &err) < 0)
		return show_fail(&err);
	struct client *c = show_open();
	if (nodes_known(&q, c, &err) < 0)
		return show_fail(&err);
	for (;;) {
		rc = round_print(&q, c, &t, &spec);
		if (!q.iterate)
			break;
		sleep(q.iterate);
	}
	client_close(c);
	table_fini(&t);
	squeue_fini(&q);
	return rc;
}
