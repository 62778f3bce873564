/* run.c - see run.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/conf.h"
#include "conf/rows.h"
#include "ctld/core_config.h"
#include "model/hostlist.h"
#include "model/states.h"
#include "model/timespec.h"
#include "sim/run.h"

#define EPOCH_SEC 1000000000ull       /* added to traces that count from zero */
#define FOREVER_MIN 5256000u
enum { PASS = 256 };

struct end { uint64_t at; uint32_t job, host, id; };
struct run {
	struct core *core;
	struct effects *fx;
	struct trace *t;
	struct conf *conf;
	struct core_params params;
	Pb__NodeRecord **node;
	Pb__PartitionRecord **part;
	size_t nodes, parts;
	bool own_records;
	uint64_t now, offset, timer_ms, token;
	bool plan_more;
	struct end *heap;
	size_t heap_n, heap_cap;
	uint32_t *job_of;                 /* id -> job of the trace + 1 */
	size_t job_of_cap, next, done;
	struct run_result *res;
};

bool run_policy(const char *name, struct core_params *p)
{
	p->backfill = true;
	p->bf_reserve = 1;
	p->bf_order = BF_ORDER_QUEUE;
	p->bf_plan_all = false;
	if (!strcmp(name, "fcfs"))
		p->backfill = false;
	else if (!strcmp(name, "easy-sjbf"))
		p->bf_order = BF_ORDER_SHORTEST;
	else if (!strcmp(name, "berth"))
		p->bf_order = BF_ORDER_PREDICTED;
	else if (!strcmp(name, "conservative"))
		p->bf_plan_all = true;
	else if (strcmp(name, "easy"))
		return false;
	return true;
}

/* --- the configuration -------------------------------------------------------------------------- */

/* Is every node that the line names (up to its first blank) among those of `set`? */
static bool nodes_covered(const char *set, const char *line)
{
	struct hostlist all = HOSTLIST_INIT, some = HOSTLIST_INIT;
	char *a = xstrndup(set, strcspn(set, " \t")), *b = xstrndup(line, strcspn(line, " \t"));
	bool yes = !hostlist_add(&all, a, NULL) && !hostlist_add(&some, b, NULL);
	for (size_t i = 0; i < some.count && yes; i++)
		yes = hostlist_find(&all, some.name[i]) >= 0;
	hostlist_fini(&all);
	hostlist_fini(&some);
	free(a);
	free(b);
	return yes;
}

/* Is this line replaced by `set`? The same key; of partitions the same name, too; of nodes, when `set` says what all of its nodes are. */
static bool replaces(const char *set, const char *line)
{
	size_t key = strcspn(set, "=");
	while (*line == ' ' || *line == '\t')
		line++;
	if (strncasecmp(set, line, key) || (line[key] != '=' && line[key] != ' '))
		return false;
	if (!strncasecmp(set, "NodeName=", 9) && line[key] == '=')
		return nodes_covered(set + 9, line + 9);
	if (!strncasecmp(set, "PartitionName=", 14)) {
		size_t len = strcspn(set, " ");
		return !strncasecmp(set, line, len) && (line[len] == ' ' || !line[len]);
	}
	return true;
}

struct doubt { const char *set; struct error *err; };

static void doubtful(const char *word, size_t len, enum word_doubt doubt, const char *values, void *arg)
{
	const struct doubt *d = arg;
	if (!d->err->code && doubt == WORD_BAD_VALUE)
		error_set(d->err, EINVAL, "%.*s: \"%.*s\": its values are %s", (int)strcspn(d->set, "="), d->set, (int)len, word, values);
	if (!d->err->code)
		error_set(d->err, EINVAL, "%.*s: \"%.*s\" %s", (int)strcspn(d->set, "="), d->set, (int)len, word, doubt == WORD_IDLE ? "does nothing yet" : "is not known");
}

/* A word that slurmctld only warns of would be an answer to another question here: it is refused. */
static int set_check(const char *set, struct error *err)
{
	size_t len = strcspn(set, "=");
	int k = conf_row_find(SEC_SLURM, set, len);
	if (k >= 0 && set[len])
		conf_words_doubt((enum conf_key)k, set + len + 1, doubtful, &(struct doubt){ set, err });
	return err->code;
}

int run_conf(const struct run_setup *s, struct conf **ret, struct error *err)
{
	struct conf *base = NULL;
	const struct conf_text *file;
	int rc = 0;
	for (size_t i = 0; i < s->sets && !rc; i++)
		rc = set_check(s->set[i], err);
	if (!rc)
		rc = conf_load(s->conf, &base, err);
	if (rc < 0 || !s->sets) {
		*ret = base;
		return rc;
	}
	size_t n = conf_files(base, &file);
	struct conf_text *copy = xmemdup(file, n * sizeof *file);
	struct str text = STR_INIT;
	for (char *all = xstrndup(file[0].data, file[0].len), *at = all, *line; ; ) {
		bool gone = false;
		if (!(line = str_next(&at, "\n"))) {
			free(all);
			break;
		}
		for (size_t i = 0; i < s->sets; i++)
			gone = gone || replaces(s->set[i], line);
		if (!gone)
			str_addf(&text, "%s\n", line);
	}
	for (size_t i = 0; i < s->sets; i++)
		str_addf(&text, "%s\n", s->set[i]);
	copy[0].data = text.data;
	copy[0].len = text.len;
	rc = conf_load_text(copy, n, ret, err);
	free(copy);
	str_fini(&text);
	conf_destroy(base);
	return rc;
}

static void own_nodes(struct run *r, const struct run_setup *s)
{
	r->own_records = true;
	r->node = xcalloc(s->nodes + 1, sizeof *r->node);
	r->nodes = s->nodes;
	for (uint32_t i = 0; i < s->nodes; i++) {
		Pb__NodeRecord *n = r->node[i] = xcalloc(1, sizeof *n);
		pb__node_record__init(n);
		n->name = xasprintf("n%u", i + 1);
		n->has_cpus = n->has_real_memory = true;
		n->cpus = s->cpus;
		n->real_memory = 1000000;
		n->gres = s->gpus ? xasprintf("gpu:%u", s->gpus) : NULL;
	}
	Pb__PartitionRecord *p = xcalloc(1, sizeof *p);
	pb__partition_record__init(p);
	p->name = xstrdup("main");
	p->nodes = xstrdup("ALL");
	p->has_is_default = p->is_default = true;
	r->part = xcalloc(1, sizeof *r->part);
	r->part[0] = p;
	r->parts = 1;
	r->params = (struct core_params){ .cluster = "sim", .first_job_id = 1, .max_job_id = UINT32_MAX / 2, .max_array_size = 1001, .kill_wait_sec = 30,
		.backfill = true, .bf_window_min = FOREVER_MIN, .bf_resolution_sec = 1, .gres_types = s->gpus ? "gpu" : "" };
}

static int configure(struct run *r, const struct run_setup *s, struct error *err)
{
	if (s->conf) {
		int rc = run_conf(s, &r->conf, err);
		if (rc < 0)
			return rc;
		Pb__NodeRecord *const *nodes;
		Pb__PartitionRecord *const *parts;
		core_config_params(r->conf, &r->params);
		r->params.prolog_ctld = r->params.epilog_ctld = r->params.prolog_alloc = false;      /* no script is run here */
		r->nodes = conf_nodes(r->conf, &nodes);
		r->node = (Pb__NodeRecord **)nodes;
		r->parts = conf_parts(r->conf, &parts);
		r->part = (Pb__PartitionRecord **)parts;
	} else
		own_nodes(r, s);
	if ((s->policy || !s->conf) && !run_policy(s->policy ? s->policy : "berth", &r->params))
		return error_set(err, EINVAL, "--policy %s: not one of fcfs, easy, easy-sjbf, conservative, berth", s->policy);
	r->params.max_job_count = UINT32_MAX;
	r->params.min_job_age_sec = 1;
	r->params.node_steps_clean = true;
	return 0;
}

/* --- events ------------------------------------------------------------------------------------- */

static void heap_push(struct run *r, struct end e)
{
	r->heap = xgrow(r->heap, &r->heap_cap, r->heap_n + 1, sizeof *r->heap);
	size_t i = r->heap_n++;
	for (; i > 0 && (e.at < r->heap[(i - 1) / 2].at || (e.at == r->heap[(i - 1) / 2].at && e.job < r->heap[(i - 1) / 2].job)); i = (i - 1) / 2)
		r->heap[i] = r->heap[(i - 1) / 2];
	r->heap[i] = e;
}

static bool earlier(const struct end *a, const struct end *b) { return a->at != b->at ? a->at < b->at : a->job < b->job; }

static struct end heap_pop(struct run *r)
{
	struct end top = r->heap[0], last = r->heap[--r->heap_n];
	size_t i = 0;
	for (size_t k; (k = 2 * i + 1) < r->heap_n; i = k) {
		k += k + 1 < r->heap_n && earlier(&r->heap[k + 1], &r->heap[k]);
		if (!earlier(&r->heap[k], &last))
			break;
		r->heap[i] = r->heap[k];
	}
	r->heap[i] = last;
	return top;
}

static struct trace_job *job_by_id(struct run *r, uint32_t id) { return id < r->job_of_cap && r->job_of[id] ? &r->t->job[r->job_of[id] - 1] : NULL; }

static void step(struct run *r, struct core_event *ev);

static void on_launch(struct run *r, uint32_t id, const char *host)
{
	struct trace_job *j = job_by_id(r, id);
	if (!j || j->state != TRACE_WAITS)
		return;
	j->state = TRACE_RUNS;
	j->start = r->now - r->offset;
	heap_push(r, (struct end){ r->now + j->run_sec, (uint32_t)(j - r->t->job), (uint32_t)core_node_find(r->core, host), id });
}

static void on_ended(struct run *r, uint32_t id)
{
	struct trace_job *j = job_by_id(r, id);
	if (!j || j->state == TRACE_ENDED)
		return;
	j->state = TRACE_ENDED;
	j->end = r->now - r->offset;
	r->done++;
}

/* A node tells that it is rid of a job. */
static void epilog_done(struct run *r, const char *node, uint32_t id)
{
	struct core_event ev = { .type = EV_NODE_EVENT };
	Pb__NodeEvent m = PB__NODE_EVENT__INIT;
	m.kind = PB__NODE_EVENT__KIND__EPILOG_DONE;
	m.has_job_id = true;
	m.job_id = id;
	ev.node_event.node = node;
	ev.node_event.event = &m;
	step(r, &ev);
}

struct rid { uint32_t id; char *nodes; };

static void on_reply(struct run *r, const ProtobufCMessage *m)
{
	if (!m || m->descriptor != &pb__submit_rsp__descriptor)
		return;
	const Pb__SubmitRsp *s = (const Pb__SubmitRsp *)m;
	struct trace_job *j = &r->t->job[r->next];
	if (s->code) {
		j->state = TRACE_REFUSED;
		r->done++;
		if (!r->res->refused++)
			snprintf(r->res->refused_why, sizeof r->res->refused_why, "%s", s->detail ? s->detail : error_text((int)s->code));
		return;
	}
	size_t was = r->job_of_cap;
	r->job_of = xgrow(r->job_of, &r->job_of_cap, s->job_id + 1, sizeof *r->job_of);
	memset(r->job_of + was, 0, (r->job_of_cap - was) * sizeof *r->job_of);
	r->job_of[s->job_id] = (uint32_t)(r->next + 1);
}

/* One event; all but EV_PLAN leave the pass over the queue to the EV_PLAN at the end of their second. */
static void step(struct run *r, struct core_event *ev)
{
	struct rid *rid = NULL;
	size_t rids = 0, cap = 0;
	ev->time_ms = r->now * 1000;
	ev->more = ev->type != EV_PLAN;
	effects_reset(r->fx);
	core_step(r->core, ev, r->fx);
	r->res->steps++;
	for (size_t i = 0; i < effects_count(r->fx); i++) {
		const struct core_effect *e = effects_at(r->fx, i);
		switch (e->type) {
		case FX_REPLY: on_reply(r, e->msg); break;
		case FX_LAUNCH_BATCH: on_launch(r, e->job_id, e->nodes); break;
		case FX_ENDED: on_ended(r, e->job_id); break;
		case FX_TIMER: r->timer_ms = e->time_ms; break;
		case FX_PLAN_MORE: r->plan_more = true; break;
		case FX_TERMINATE:
			rid = xgrow(rid, &cap, rids + 1, sizeof *rid);
			rid[rids++] = (struct rid){ e->job_id, xstrdup(e->nodes) };
			break;
		default: break;
		}
	}
	for (size_t i = 0; i < rids; i++) {
		struct hostlist hl = HOSTLIST_INIT;
		(void)hostlist_add(&hl, rid[i].nodes, NULL);
		for (size_t k = 0; k < hl.count; k++)
			epilog_done(r, hl.name[k], rid[i].id);
		hostlist_fini(&hl);
		free(rid[i].nodes);
	}
	free(rid);
}

static void batch_done(struct run *r, const struct end *e)
{
	struct core_event ev = { .type = EV_NODE_EVENT };
	Pb__NodeEvent m = PB__NODE_EVENT__INIT;
	if (r->t->job[e->job].state != TRACE_RUNS) /* its limit was shorter */
		return;
	m.kind = PB__NODE_EVENT__KIND__BATCH_DONE;
	m.has_job_id = m.has_status = m.has_clean = m.clean = true;
	m.job_id = e->id;
	ev.node_event.node = core_node_name(r->core, e->host);
	ev.node_event.event = &m;
	step(r, &ev);
}

static const char *partition_of(const struct run *r, const struct trace_job *j)
{
	for (size_t i = 0; r->conf && i < r->parts; i++)
		if (!strcmp(r->part[i]->name, r->t->part[j->part]))
			return r->part[i]->name;
	return NULL;
}

static void submit(struct run *r, const struct trace_job *j)
{
	Pb__JobDesc d = PB__JOB_DESC__INIT;
	uint8_t key[16] = { 0 }, hash[32] = { 0 };
	char gres[40];
	struct core_event ev = { .type = EV_SUBMIT, .token = ++r->token, .by = { .uid = 10000 + j->user, .gid = 100, .user = r->t->user[j->user], .group = "users" } };
	memcpy(key, &r->token, sizeof r->token);
	uint32_t nodes = j->nodes;
	if (!nodes && !r->conf && r->node[0]->cpus == 1)
		nodes = j->cpus;
	d.name = (char *)"trace";
	d.work_dir = (char *)"/";
	d.partition = (char *)partition_of(r, j);
	d.has_batch = d.batch = d.has_num_tasks = d.has_time_limit_min = true;
	d.num_tasks = nodes ? nodes : j->cpus;
	d.time_limit_min = j->limit_min;
	if (nodes) {
		d.has_min_nodes = d.has_max_nodes = d.has_cpus_per_task = true;
		d.min_nodes = d.max_nodes = nodes;
		d.cpus_per_task = (j->cpus + nodes - 1) / nodes;
	}
	d.has_mem_per_node = j->mem_mb && r->params.select_memory;
	d.mem_per_node = nodes ? j->mem_mb / nodes : j->mem_mb;
	if (j->gpus) {
		bool even = nodes && j->gpus % nodes == 0;
		snprintf(gres, sizeof gres, "gres/gpu:%u", even ? j->gpus / nodes : j->gpus);
		*(even ? &d.tres_per_node : &d.tres_per_job) = gres;
	}
	ev.submit.desc = &d;
	ev.submit.idem_key = key;
	ev.submit.idem_hash = hash;
	step(r, &ev);
}

static void begin(struct run *r)
{
	struct core_event ev = { .type = EV_CONFIG };
	ev.config.params = &r->params;
	ev.config.node = r->node;
	ev.config.nodes = r->nodes;
	ev.config.part = r->part;
	ev.config.parts = r->parts;
	if (r->conf) {
		Pb__TopologyRecord *const *topo;
		ev.config.topos = conf_topologies(r->conf, &topo);
		ev.config.topo = (Pb__TopologyRecord **)topo;
	}
	step(r, &ev);
	for (uint32_t i = 0; i < core_node_count(r->core); i++) {
		struct core_event reg = { .type = EV_NODE_REGISTER };
		Pb__NodeRegisterReq q = PB__NODE_REGISTER_REQ__INIT;
		Pb__NodeRecord n = PB__NODE_RECORD__INIT;
		n.name = (char *)core_node_name(r->core, i);
		q.node = &n;
		reg.node_register = &q;
		step(r, &reg);
		r->res->capacity_cpus += r->node[i]->has_cpus && r->node[i]->cpus ? r->node[i]->cpus : 1;
		Pb__NodeRecord *full = core_node_record(r->core, i);
		for (size_t g = 0; g < full->n_gres_list; g++)
			r->res->capacity_gpus += !strcmp(full->gres_list[g]->name, "gpu") ? full->gres_list[g]->count : 0;
		if (!full->n_gres_list && r->node[i]->gres && str_starts(r->node[i]->gres, "gpu:"))
			r->res->capacity_gpus += strtoul(r->node[i]->gres + 4, NULL, 10);
		pb__node_record__free_unpacked(full, NULL);
	}
}

/* Everything that happens in this second, then the queue is gone through. */
static void second(struct run *r)
{
	while (r->heap_n && r->heap[0].at <= r->now) {
		struct end e = heap_pop(r);
		batch_done(r, &e);
	}
	for (; r->next < r->t->n && r->t->job[r->next].submit + r->offset <= r->now; r->next++)
		submit(r, &r->t->job[r->next]);
	while (r->timer_ms && r->timer_ms <= r->now * 1000) {
		struct core_event ev = { .type = EV_TIMER };
		r->timer_ms = 0;
		step(r, &ev);
	}
	do {
		struct core_event ev = { .type = EV_PLAN };
		r->plan_more = false;
		ev.plan.budget = PASS;
		step(r, &ev);
	} while (r->plan_more);
}

/* Nothing will happen any more, and some still wait: for a limit, for nodes that do not exist. */
static void note_left(struct run *r)
{
	for (uint64_t cur = 0;;) {
		const struct core_job *j = core_job_next(r->core, &cur);
		Pb__JobVolatile v;
		if (!j)
			return;
		if (core_job_is_finished(j) || core_job_is_running(j))
			continue;
		core_job_volatile(r->core, j, &v);
		if (!r->res->left++)
			snprintf(r->res->left_why, sizeof r->res->left_why, "%s", reason_name(v.reason));
	}
}

static void play(struct run *r)
{
	r->offset = r->t->job[0].submit < EPOCH_SEC ? EPOCH_SEC : 0;
	r->now = r->t->job[0].submit + r->offset;
	begin(r);
	while (r->done < r->t->n) {
		uint64_t at = UINT64_MAX;
		if (r->next < r->t->n)
			at = r->t->job[r->next].submit + r->offset;
		if (r->heap_n && r->heap[0].at < at)
			at = r->heap[0].at;
		if (r->timer_ms && (r->timer_ms + 999) / 1000 < at)
			at = (r->timer_ms + 999) / 1000;
		if (at == UINT64_MAX) {
			note_left(r);
			break;
		}
		r->now = at > r->now ? at : r->now;
		second(r);
	}
}

static void run_free(struct run *r)
{
	for (size_t i = 0; r->own_records && i < r->nodes; i++)
		pb__node_record__free_unpacked(r->node[i], NULL);
	for (size_t i = 0; r->own_records && i < r->parts; i++)
		pb__partition_record__free_unpacked(r->part[i], NULL);
	if (r->own_records) {
		free(r->node);
		free(r->part);
	}
	if (r->conf)
		conf_destroy(r->conf);
	core_destroy(r->core);
	effects_destroy(r->fx);
	free(r->heap);
	free(r->job_of);
}

int run_trace(const struct run_setup *s, struct trace *t, struct run_result *ret, struct error *err)
{
	struct run r = { .core = core_create(), .fx = effects_create(), .t = t, .res = ret };
	*ret = (struct run_result){ 0 };
	trace_rewind(t);
	int rc = configure(&r, s, err);
	if (rc >= 0)
		play(&r);
	ret->first = t->job[0].submit;
	for (size_t i = 0; i < t->n; i++)
		ret->last = t->job[i].state == TRACE_ENDED && t->job[i].end > ret->last ? t->job[i].end : ret->last;
	run_free(&r);
	return rc;
}
