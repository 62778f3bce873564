/* shape.c - what placement needs of a request, checked once and shared by all jobs that ask for the same
 * The key is the fields of the JobDesc that matter for placement (key_make), plus the mask of partitions the job's
 * limits leave open. A user's sweep or an array is one shape, however many jobs: it is tested once, not once a job. */
#include <stdlib.h>

#include "core/acct.h"
#include "core/arbitrary.h"

#define KEY_FIELDS(X) X(min_nodes) X(max_nodes) X(num_tasks) X(cpus_per_task) X(ntasks_per_node) X(ntasks_per_socket) X(ntasks_per_core) \
	X(min_cpus_node) X(sockets_per_node) X(cores_per_socket) X(threads_per_core) X(mem_per_node) X(mem_per_cpu) X(tmp_disk) \
	X(time_limit_min) X(time_min_min) X(ntasks_per_tres) X(contiguous) X(overcommit) X(spread_job) X(use_min_nodes) X(oversubscribe) X(het_job_id) \
	X(core_spec) X(thread_spec) X(switches) X(switches_wait_sec) X(segment) X(consolidate_segments) X(spread_segments)
#define KEY_STRINGS(X) X(partition) X(tres_per_job) X(tres_per_node) X(tres_per_socket) X(tres_per_task) X(cpus_per_tres) X(mem_per_tres) \
	X(features) X(prefer) X(req_nodes) X(exc_nodes) X(exclusive) X(mcs_label) X(licenses) X(distribution) X(gres_flags) X(arbitrary_hosts)

/* Nodes shared only with jobs of the same user: then it matters whose job it is. */
static bool by_user(const struct core *c, const Pb__JobDesc *d)
{
	char *list = xstrdup(d->partition ? d->partition : ""), *at = list, *w;
	bool yes = d->exclusive && !strcasecmp(d->exclusive, "user");
	while ((w = str_next(&at, ","))) {
		const struct core_part *p = part_find(c, w);
		yes = yes || (p && p->user_only);
	}
	free(list);
	return yes;
}

/* Strings and present numbers, each with its length before it: equal for equal requests. Not as protobuf, which would look at the hundred other fields, too: a million
 * times at a restart. */
static uint8_t *key_make(const struct core *c, const Pb__JobDesc *d, uint32_t uid, uint32_t part_mask, uint32_t *ret_len)
{
	uint32_t last[2] = { part_mask, by_user(c, d) ? uid : UINT32_MAX };
	const char *account = NULL, *qos = NULL;
	if (c->acct && c->acct->limited && d->account) { /* limits are the same for all that share it */
		account = d->account;
		qos = d->qos;
		last[1] = uid;
	}
	const struct { const void *at; size_t len; } piece[] = {
#define PIECE(f) { &d->f, d->has_##f ? sizeof d->f : 0 },
		KEY_FIELDS(PIECE)
#undef PIECE
#define PIECE(f) TEXT(d->f)
#define TEXT(s) { s, s ? strlen(s) + 1 : 0 },
		KEY_STRINGS(PIECE)
		TEXT(d->reservation) TEXT(account) TEXT(qos)
#undef TEXT
#undef PIECE
		{ last, sizeof last },
	};
	size_t len = 0, n = sizeof piece / sizeof *piece;
	for (size_t i = 0; i < n; i++)
		len += sizeof(uint32_t) + piece[i].len;
	uint8_t *buf = xmalloc(len), *at = buf;
	for (size_t i = 0; i < n; i++) {
		uint32_t l = (uint32_t)piece[i].len;
		memcpy(at, &l, sizeof l);
		if (l)
			memcpy(at + sizeof l, piece[i].at, l);
		at += sizeof l + l;
	}
	*ret_len = (uint32_t)len;
	return buf;
}

static uint32_t gpu_count(const struct core *c, const struct wants *w)
{
	uint32_t n = 0, gpu = atom_find(c, "gpu");
	for (uint32_t i = 0; i < w->n; i++)
		n += w->w[i].name == gpu ? (uint32_t)w->w[i].count : 0;
	return n;
}

/* "gres/gpu:4" -> 4. Only gpu may be named. */
static int per_gpu(const char *text, const char *option, uint64_t *ret, struct error *err)
{
	struct gres_req r[2];
	size_t n = 0;
	*ret = 0;
	if (!text || !text[0])
		return 0;
	int rc = gres_parse(text, r, 2, &n, err);
	if (rc < 0)
		return rc;
	if (n != 1 || strcmp(r[0].name, "gpu"))
		return error_set(err, ESLURM_INVALID_GRES, "%s=%s: only gres/gpu can be named here", option, text);
	*ret = r[0].count;
	return 0;
}

/* The second word of --distribution: over the sockets of a node. */
static bool distribution_block(const char *text, bool otherwise)
{
	const char *second = text ? strchr(text, ':') : NULL;
	if (!second || second[1] == '*' || !second[1])
		return otherwise;
	return !strncasecmp(second + 1, "block", 5);
}

static void shape_counts(struct core *c, struct shape *s, const Pb__JobDesc *d)
{
	uint32_t per_job = gpu_count(c, &s->job), per_task = gpu_count(c, &s->task), per_node = gpu_count(c, &s->node);
	s->nodes_set = d->has_min_nodes;
	s->min_nodes = d->has_min_nodes && d->min_nodes ? d->min_nodes : 1;
	s->max_nodes = d->has_max_nodes && d->max_nodes ? d->max_nodes : (d->has_min_nodes ? s->min_nodes : UINT32_MAX);
	if (s->max_nodes < s->min_nodes)
		s->max_nodes = s->min_nodes;
	s->tasks_set = d->has_num_tasks && d->num_tasks;
	if (s->tasks_set)
		s->tasks = d->num_tasks;
	else if (s->per_node)
		s->tasks = s->min_nodes * s->per_node;
	else if (per_task && per_job)
		s->tasks = per_job / per_task;
	else if (d->has_ntasks_per_tres && d->ntasks_per_tres)
		s->tasks = (per_job ? per_job : per_node * s->min_nodes) * d->ntasks_per_tres;
	else
		s->tasks = s->min_nodes;
	if (s->tasks < 1)
		s->tasks = 1;
	if (s->tasks < s->min_nodes && !s->nodes_set)
		s->min_nodes = s->tasks;
	if (s->per_node && s->tasks_set && !s->nodes_set) {
		uint32_t need = (s->tasks + s->per_node - 1) / s->per_node;
		s->min_nodes = need > s->min_nodes ? need : s->min_nodes;
	}
	if (s->tasks < s->min_nodes) /* -n1 -N2: every node gets at least one CPU */
		s->tasks = s->min_nodes;
	if (!s->nodes_set && s->max_nodes > s->tasks && !per_job)
		s->max_nodes = s->tasks;
	s->many_nodes = !d->use_min_nodes && s->max_nodes > s->min_nodes && (s->spread || (s->nodes_set && s->max_nodes != UINT32_MAX));
}

static void wants_drop(struct wants *w, uint32_t name)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n; i++)
		if (w->w[i].name != name)
			w->w[n++] = w->w[i];
	w->n = n;
}

/* --gpus together with GPUs a node or a task says how many nodes or tasks there are; the devices then come from the latter. */
static int shape_gpu_totals(struct core *c, struct shape *s, struct error *err)
{
	uint32_t per_job = gpu_count(c, &s->job), per_task = gpu_count(c, &s->task), per_node = gpu_count(c, &s->node);
	if (!per_job || (!per_task && !per_node))
		return 0;
	uint32_t unit = per_node ? per_node : per_task;
	if (per_job % unit)
		return error_set(err, ESLURM_INVALID_GRES, "--gpus=%u is not a multiple of the %u GPUs a %s", per_job, unit, per_node ? "node" : "task");
	if (per_node) {
		uint32_t nodes = per_job / per_node;
		if (nodes < s->min_nodes && s->nodes_set)
			return error_set(err, ESLURM_INVALID_GRES, "--gpus=%u with %u GPUs a node needs %u nodes, not %u", per_job, per_node, nodes, s->min_nodes);
		s->min_nodes = s->max_nodes = nodes;
		s->tasks = s->tasks < nodes ? nodes : s->tasks;
	} else if (s->tasks_set && s->tasks != per_job / per_task)
		return error_set(err, ESLURM_INVALID_GRES, "--gpus=%u with %u GPUs a task makes %u tasks, not %u", per_job, per_task, per_job / per_task, s->tasks);
	wants_drop(&s->job, atom_get(c, "gpu"));
	return 0;
}

static bool wants_name(const struct wants *l, uint32_t name)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->w[i].name == name)
			return true;
	return false;
}

static bool shape_names(const struct shape *s, uint32_t name) { return wants_name(&s->job, name) || wants_name(&s->node, name) || wants_name(&s->socket, name) || wants_name(&s->task, name); }

/* What is counted for the whole job is not counted otherwise, too (of GPUs shape_gpu_totals has made one number). */
static int wants_of_job(const struct core *c, const struct shape *s, struct error *err)
{
	for (uint32_t i = 0; i < s->job.n; i++)
		if (wants_name(&s->node, s->job.w[i].name) || wants_name(&s->task, s->job.w[i].name))
			return error_set(err, ESLURM_INVALID_GRES, "%s are asked for for the whole job and also by node or by task", atom_text(c, s->job.w[i].name));
	return 0;
}

/* The same devices may be counted by node or by socket, not both; nor by socket and for the whole job. GPUs are asked for whole or by shards. */
static int wants_once(const struct core *c, const struct shape *s, struct error *err)
{
	if (shape_names(s, c->gpu) && shape_names(s, atom_find(c, "shard")))
		return error_set(err, ESLURM_INVALID_GRES, "one job gets whole GPUs or shards of GPUs, not both");
	for (uint32_t i = 0; i < s->socket.n; i++)
		for (uint32_t k = 0; k < WANT_MAX; k++)
			if ((k < s->node.n && s->node.w[k].name == s->socket.w[i].name) || (k < s->job.n && s->job.w[k].name == s->socket.w[i].name))
				return error_set(err, ESLURM_INVALID_GRES, "%s are asked for by socket and also by node or for the whole job", atom_text(c, s->socket.w[i].name));
	return 0;
}

static int shape_fill(struct core *c, struct shape *s, const Pb__JobDesc *d, struct error *err)
{
	uint64_t n;
	int r;
	s->cpus_per_task = d->has_cpus_per_task && d->cpus_per_task ? d->cpus_per_task : 1;
	s->per_node = d->has_ntasks_per_node ? d->ntasks_per_node : 0;
	s->per_socket = d->has_ntasks_per_socket ? d->ntasks_per_socket : 0;
	s->min_cpus = d->has_min_cpus_node ? d->min_cpus_node : 0;
	s->sockets = d->has_sockets_per_node ? d->sockets_per_node : 0;
	s->cores = d->has_cores_per_socket ? d->cores_per_socket : 0;
	s->threads = d->has_threads_per_core ? d->threads_per_core : 0;
	s->tmp = d->has_tmp_disk ? d->tmp_disk : 0;
	s->time_min = d->has_time_limit_min ? d->time_limit_min : TIME_INFINITE;
	s->exclusive = d->exclusive && !strcasecmp(d->exclusive, "node");
	s->least_min = d->has_time_min_min && d->time_min_min < s->time_min ? d->time_min_min : 0;
	s->topo_only = d->exclusive && !strcasecmp(d->exclusive, "topo");
	s->switches = d->has_switches ? d->switches : 0;
	s->switches_wait = d->has_switches_wait_sec ? d->switches_wait_sec : UINT32_MAX;
	s->segment = d->has_segment ? d->segment : 0;
	s->consolidate_segments = d->consolidate_segments;
	s->spread_segments = d->spread_segments;
	s->user_only = d->exclusive && !strcasecmp(d->exclusive, "user");
	s->mcs = company_mcs(c, d);
	s->share = d->oversubscribe;
	s->own_spec = d->has_core_spec || d->has_thread_spec;
	s->spec_cores = d->has_core_spec ? d->core_spec : 0;
	s->spec_threads = d->has_thread_spec ? d->thread_spec : 0;
	s->per_core = d->has_ntasks_per_core ? d->ntasks_per_core : 0;
	s->block = distribution_block(d->distribution, c->params.select_block);
	s->bind = d->gres_flags && strstr(d->gres_flags, "enforce-binding");
	s->contiguous = d->contiguous;
	s->overcommit = d->overcommit;
	s->spread = d->spread_job;
	s->mem_all = d->has_mem_per_node && d->mem_per_node == 0;
	s->mem_node = d->has_mem_per_node ? d->mem_per_node : 0;
	s->mem_cpu = d->has_mem_per_cpu ? d->mem_per_cpu : 0;
	if ((r = wants_parse(c, d->tres_per_job, &s->job, err)) < 0 || (r = wants_parse(c, d->tres_per_node, &s->node, err)) < 0 ||
	    (r = wants_parse(c, d->tres_per_socket, &s->socket, err)) < 0 || (r = wants_task(c, d->tres_per_task, &s->task, &s->cpus_per_task, err)) < 0)
		return r;
	if ((r = wants_once(c, s, err)) < 0 || (r = license_parse(c, d->licenses, &s->lic, err)) < 0)
		return r;
	if ((r = per_gpu(d->cpus_per_tres, "cpus-per-tres", &n, err)) < 0)
		return r;
	s->cpus_per_gpu = (uint32_t)n;
	if ((r = per_gpu(d->mem_per_tres, "mem-per-tres", &s->mem_per_gpu, err)) < 0)
		return r;
	s->features = xstrdup_null(d->features && d->features[0] ? d->features : NULL);
	s->prefer = xstrdup_null(d->prefer && d->prefer[0] ? d->prefer : NULL);
	s->req_nodes = xstrdup_null(d->req_nodes);
	s->exc_nodes = xstrdup_null(d->exc_nodes);
	s->resv_key = xstrdup_null(d->reservation && d->reservation[0] ? d->reservation : NULL);
	shape_counts(c, s, d);
	if ((r = shape_gpu_totals(c, s, err)) < 0 || (r = wants_of_job(c, s, err)) < 0 || (r = arbitrary_read(s, d->arbitrary_hosts, err)) < 0)
		return r;
	char *list = xstrdup(d->partition ? d->partition : ""), *at = list, *w;
	while ((w = str_next(&at, ",")) && s->part_n < JOB_PARTS_MAX)
		if (w[0])
			s->part_names[s->part_n++] = xstrdup(w);
	free(list);
	return 0;
}

static void able_forget(struct need *e)
{
	for (uint32_t p = 0; e->able && p < e->part_n; p++)
		bitset_destroy(e->able[p]);
	xfree(e->able);
}

static void need_unref(struct core *c, struct need *e)
{
	if (!e || --e->refs)
		return;
	HASH_DEL(c->needs, e);
	est_free(c, e);
	able_forget(e);
	need_unref(c, e->any_time);
	free(e->key);
	free(e);
}

/* The same request for one task on one node (for all of them, where one node must hold them). */
static struct need *need_make(struct core *c, const Pb__JobDesc *d, uint32_t uid, uint32_t part_mask, uint32_t part_n, uint32_t least)
{
	Pb__JobDesc k = *d;
	struct need *e;
	uint32_t len;
	k.has_num_tasks = least != 1;
	k.num_tasks = least;
	k.account = NULL;
	k.has_min_nodes = k.has_max_nodes = k.has_contiguous = k.has_spread_job = k.has_use_min_nodes = k.has_time_min_min = k.has_switches = k.has_switches_wait_sec = k.has_segment = k.has_consolidate_segments = k.has_spread_segments = false;
	uint8_t *key = key_make(c, &k, uid, part_mask, &len);
	HASH_FIND(hh, c->needs, key, len, e);
	if (e) {
		free(key);
		e->refs++;
		return e;
	}
	e = xcalloc(1, sizeof *e);
	*e = (struct need){ .key = key, .key_len = len, .refs = 1, .part_n = part_n };
	HASH_ADD_KEYPTR(hh, c->needs, e->key, e->key_len, e);
	if (k.has_time_limit_min) {
		k.has_time_limit_min = false;
		e->any_time = need_make(c, &k, uid, part_mask, part_n, least);
	}
	return e;
}

static void shape_free(struct core *c, struct shape *s)
{
	need_unref(c, s->need);
	for (uint32_t i = 0; i < s->part_n; i++) {
		free(s->part_names[i]);
		bitset_destroy(s->able[i]);
	}
	bitset_destroy(s->required);
	arbitrary_free(s);
	license_wants_fini(&s->lic);
	features_fini(&s->sets);
	free(s->features);
	free(s->prefer);
	free(s->req_nodes);
	free(s->exc_nodes);
	free(s->resv_key);
	free(s->tres_req);
	free(s->key);
	free(s);
}

/* Partitions were made anew or went: shapes of running jobs, which are not tested again, must not keep pointers to the old. */
void shapes_follow_parts(struct core *c)
{
	struct shape *s, *tmp;
	HASH_ITER(hh, c->shapes, s, tmp)
		for (uint32_t p = 0; p < s->part_n; p++)
			s->part[p] = part_find(c, s->part_names[p]);
}

/* What --prefer and --constraint leave. NULL: all nodes. */
static int shape_features(struct core *c, struct shape *s, struct bitset **ret, struct error *err)
{
	struct error own = { 0 };
	*ret = NULL;
	features_fini(&s->sets);
	s->preferred = 0;
	if (s->prefer && features_parse(c, s->prefer, &s->sets, &own) < 0)
		return error_set(err, ESLURM_INVALID_PREFER, "%s", own.line);
	s->preferred = s->sets.n;
	if ((s->features || s->prefer) && features_parse(c, s->features, &s->sets, err) < 0)
		return -ESLURM_INVALID_FEATURE;
	if (!s->sets.n)
		return 0;
	*ret = bitset_create(c->node_n);
	for (uint32_t i = 0; i < s->sets.n; i++)
		bitset_or(*ret, s->sets.set[i].in);
	const struct feature_set *last = &s->sets.set[s->sets.n - 1];
	if (s->max_nodes < last->counted && !s->nodes_set)
		s->max_nodes = last->counted;
	if (s->min_nodes < last->counted && last->counted <= s->max_nodes)
		s->min_nodes = last->counted;
	if (s->sets.n == 1 && !last->count_n)
		features_fini(&s->sets);
	return 0;
}

/* The nodes of a partition that could serve a part of the request if they were empty, among those of feat (NULL: all) and not of exc. */
static struct bitset *able_of(struct core *c, const struct shape *s, struct core_part *part, const struct bitset *feat, const struct bitset *exc)
{
	struct bitset *b = bitset_copy(part->nodes);
	if (feat)
		bitset_and(b, feat);
	if (exc)
		bitset_andnot(b, exc);
	bitset_for(b, i) {
		struct when empty = { .part = part };
		struct avail a;
		avail_of(c, s, &empty, c->node[i], &a);
		if (!fit_tasks(c, s, c->node[i], &a))
			bitset_clear(b, i);
	}
	return b;
}

/* Each node is asked once for all shapes that want the same of one: there may be hundreds of these, and a hundred thousand nodes. */
static struct bitset *able_shared(struct core *c, const struct shape *s, uint32_t p, const struct bitset *feat, const struct bitset *exc)
{
	struct need *e = s->need->any_time ? s->need->any_time : s->need;
	if (e->able_gen != c->config_gen || !e->able) {
		able_forget(e);
		e->able = xcalloc(e->part_n, sizeof(struct bitset *));
		e->able_gen = c->config_gen;
		e->able_tasks_set = s->tasks_set;
	}
	if (e->able_tasks_set != s->tasks_set || s->bind || s->socket.n) /* near which CPUs devices are, nodes find out when they register */
		return able_of(c, s, s->part[p], feat, exc);
	if (!e->able[p])
		e->able[p] = able_of(c, s, s->part[p], feat, exc);
	return bitset_copy(e->able[p]);
}

/* Of each of its partitions. */
static int shape_able(struct core *c, struct shape *s, struct error *err)
{
	struct bitset *feat = NULL, *exc = NULL, *req = NULL;
	int r = 0;
	s->failed_gen = 0;
	r = arbitrary_refresh(c, s, err);
	if (r >= 0)
		r = shape_features(c, s, &feat, err);
	if (r >= 0 && s->exc_nodes && s->exc_nodes[0])
		r = nodes_bitset(c, s->exc_nodes, &exc, err);
	if (r >= 0 && s->req_nodes && s->req_nodes[0])
		r = nodes_bitset(c, s->req_nodes, &req, err);
	if (r >= 0 && req && exc && bitset_intersects(req, exc))
		r = error_set(err, ESLURM_INVALID_NODE_NAME, "--nodelist=%s and --exclude=%s name the same node", s->req_nodes, s->exc_nodes);
	for (uint32_t p = 0; p < s->part_n; p++) {
		bitset_destroy(s->able[p]);
		s->able[p] = NULL;
		s->part[p] = part_find(c, s->part_names[p]);
		if (r < 0 || !s->part[p])
			continue;
		s->able[p] = able_shared(c, s, p, feat, exc);
	}
	bitset_destroy(s->required);
	s->required = req;
	bitset_destroy(feat);
	bitset_destroy(exc);
	if (req && bitset_count(req) > s->max_nodes) { /* more names than nodes: the choice is among them */
		for (uint32_t p = 0; p < s->part_n; p++)
			if (s->able[p])
				bitset_and(s->able[p], req);
		bitset_destroy(req);
		s->required = req = NULL;
	}
	if (req && bitset_count(req) > s->min_nodes)
		s->min_nodes = bitset_count(req);
	if (s->tasks < s->min_nodes)
		s->tasks = s->min_nodes;
	s->config_gen = c->config_gen;
	return r;
}

void shape_refresh(struct core *c, struct shape *s)
{
	if (s->config_gen != c->config_gen)
		(void)shape_able(c, s, NULL); /* no node left that matches: able is empty, the jobs wait */
}

void shape_refresh_all(struct core *c)
{
	for (struct shape *s = c->shapes; s; s = s->hh.next)
		shape_refresh(c, s);
}

int shape_make(struct core *c, const Pb__JobDesc *d, uint32_t uid, uint32_t part_mask, struct shape **ret, struct error *err)
{
	uint32_t len;
	uint8_t *key = key_make(c, d, uid, part_mask, &len);
	struct shape *s;
	HASH_FIND(hh, c->shapes, key, len, s);
	if (s) {
		free(key);
		shape_refresh(c, s);
		s->refs++;
		*ret = s;
		return 0;
	}
	s = xcalloc(1, sizeof *s);
	s->key = key;
	s->key_len = len;
	s->part_mask = part_mask;
	int r = shape_fill(c, s, d, err);
	if (r >= 0) {
		s->need = need_make(c, d, uid, part_mask, s->part_n, least_tasks(s));
		r = shape_able(c, s, err);
	}
	if (r < 0) {
		shape_free(c, s);
		return r;
	}
	s->refs = 1;
	s->seq = ++c->shape_seq;
	HASH_ADD_KEYPTR(hh, c->shapes, s->key, s->key_len, s);
	*ret = s;
	return 0;
}

void shape_unref(struct core *c, struct shape *s)
{
	if (!s || --s->refs)
		return;
	assert(!s->queue.count && !s->anode.in);
	HASH_DEL(c->shapes, s);
	shape_free(c, s);
}

void shape_free_all(struct core *c)
{
	struct shape *s, *tmp;
	HASH_ITER(hh, c->shapes, s, tmp) {
		HASH_DEL(c->shapes, s);
		shape_free(c, s);
	}
}

/* Of which kind of resource does no node have as many as are asked for? */
static bool too_many(const struct core *c, const struct shape *s, const struct core_part *p, struct want *ret, uint32_t *ret_most)
{
	for (uint32_t i = 0; i < s->node.n + s->task.n; i++) {
		*ret = i < s->node.n ? s->node.w[i] : s->task.w[i - s->node.n];
		*ret_most = 0;
		bitset_for(p->nodes, x) {
			struct avail a;
			avail_full(c->node[x], &a);
			uint32_t k = wants_free(c, c->node[x], &a, ret);
			*ret_most = k > *ret_most ? k : *ret_most;
		}
		if (*ret_most < ret->count)
			return true;
	}
	return false;
}

/* Which condition leaves no node? One sentence for the person who asked. */
static void explain(struct core *c, struct shape *s, uint32_t p_at, struct error *err)
{
	const struct core_part *p = s->part[p_at];
	uint32_t cpus = 0, gpus = 0, left = bitset_count(p->nodes);
	uint64_t mem = 0;
	bitset_for(p->nodes, i) {
		const struct core_node *n = c->node[i];
		uint32_t g = 0;
		for (uint32_t k = 0; k < n->gres_n; k++)
			g += n->gres[k].name == atom_find(c, "gpu") ? n->gres[k].count : 0;
		cpus = n->cpus > cpus ? n->cpus : cpus;
		mem = n->mem > mem ? n->mem : mem;
		gpus = g > gpus ? g : gpus;
	}
	uint64_t want_mem = s->mem_node ? s->mem_node : s->mem_cpu * s->cpus_per_task;
	uint32_t want_cpus = s->cpus_per_task * (s->per_node ? s->per_node : 1), want_gpus = gpu_count(c, &s->node);
	want_cpus = s->min_cpus > want_cpus ? s->min_cpus : want_cpus;
	want_gpus = want_gpus ? want_gpus : gpu_count(c, &s->task);
	int code = ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE;
	struct want short_of;
	uint32_t most;
	/* Memory after CPUs: it may only be the default for each of them. */
	if (want_cpus > cpus)
		error_set(err, code, "%u CPUs on one node are asked for, the largest node of partition \"%s\" has %u", want_cpus, p->rec->name, cpus);
	else if (want_mem > mem)
		error_set(err, code, "%llu MiB of memory a node are asked for, the largest node of partition \"%s\" has %llu MiB", (unsigned long long)want_mem, p->rec->name, (unsigned long long)mem);
	else if (want_gpus > gpus)
		error_set(err, code, "%u GPUs on one node are asked for, nodes of partition \"%s\" have at most %u", want_gpus, p->rec->name, gpus);
	else if (too_many(c, s, p, &short_of, &most))
		error_set(err, code, "%llu of gres/%s on one node%s are asked for, in partition \"%s\" there are at most %u", (unsigned long long)short_of.count, atom_text(c, short_of.name),
			  short_of.name == atom_find(c, "shard") ? " (of one GPU)" : "", p->rec->name, most);
	else if (s->prefer)
		error_set(err, code, "the nodes of partition \"%s\" with the preferred features \"%s\" cannot serve it", p->rec->name, s->prefer);
	else if (s->features)
		error_set(err, code, "no node of partition \"%s\" has what is asked for together with the features \"%s\"", p->rec->name, s->features);
	else if (s->own_spec && s->spec_cores + s->spec_threads)
		error_set(err, code, "no node of partition \"%s\" has enough CPUs when %u %s are kept for the system", p->rec->name, s->spec_cores + s->spec_threads, s->spec_cores ? "cores" : "threads");
	else if (s->arbitrary)
		error_set(err, code, "a node that -m arbitrary names cannot hold all the tasks that it is named for, with %u CPUs each", s->cpus_per_task);
	else if (s->able[p_at] && bitset_count(s->able[p_at]) >= s->min_nodes && bitset_equal(s->able[p_at], p->nodes))
		error_set(err, code, "%u tasks of %u CPUs are asked for; the nodes of partition \"%s\" that the request allows cannot hold so many together", s->tasks, s->cpus_per_task, p->rec->name);
	else if (s->exc_nodes && s->exc_nodes[0])
		error_set(err, code, "--exclude=%s leaves too few of the %u nodes of partition \"%s\"", s->exc_nodes, left, p->rec->name);
	else
		error_set(err, code, "no node of partition \"%s\" has the sockets, cores, GPUs or disk asked for", p->rec->name);
}

/* Could it be placed on empty nodes, with what it prefers and without? */
static bool possible_in(struct core *c, struct shape *s, uint32_t p, bool each)
{
	struct features all = s->sets, half[2] = { { all.set, s->preferred }, { all.set + s->preferred, all.n - s->preferred } };
	bool ok = true;
	for (uint32_t i = each && s->preferred ? 0 : 1; ok && i < 2; i++) {
		struct fit *f = NULL;
		s->sets = each && s->preferred ? half[i] : all;
		ok = place_choose(c, s, s->able[p], &(struct when){ .part = s->part[p] }, &f) > 0;
		free(f);
	}
	s->sets = all;
	return ok;
}

/* More CPUs than the whole partition has: it may grow, other requests that do not fit will never. */
static bool outgrows(const struct core *c, const struct shape *s, const struct core_part *p)
{
	uint64_t cap = 0;
	if (s->job.n || s->exc_nodes)
		return false;
	bitset_for(p->nodes, i)
		cap += c->node[i]->cap;
	return (uint64_t)s->tasks * s->cpus_per_task > cap;
}

/* 0: some partition could serve it. A positive reason: it may wait for the partition to change. Negative: no node ever can. */
int shape_check_possible(struct core *c, struct shape *s, struct error *err)
{
	int best = -1;
	struct core_part *last = NULL;
	uint32_t at = 0;
	for (uint32_t p = 0; p < s->part_n; p++) {
		const struct core_part *part = s->part[p];
		if (!part || !s->able[p])
			continue;
		last = s->part[p];
		at = p;
		if (s->required && !bitset_subset(s->required, part->nodes)) {
			if (err && best < 0)
				error_set(err, ESLURM_REQUESTED_NODES_NOT_IN_PARTITION, "--nodelist=%s names nodes outside partition \"%s\"", s->req_nodes, part->rec->name);
			continue;
		}
		if (bitset_empty(s->able[p]) || (s->required && !bitset_subset(s->required, s->able[p])))
			continue;
		if (possible_in(c, s, p, err != NULL))
			return 0;
		if ((s->sets.n || c->topo_short) && (!s->nodes_set || s->min_nodes <= bitset_count(part->nodes)))
			continue; /* nodes enough, but not with these features */
		if (s->min_nodes > bitset_count(part->nodes) || s->min_nodes > part->max_nodes)
			best = REASON_PARTITION_NODE_LIMIT;
		else if (best < 0 && outgrows(c, s, part) && (!s->nodes_set || bitset_equal(s->able[p], part->nodes)))
			best = REASON_PARTITION_CONFIG;
	}
	if (best > 0)
		return best;
	if (err && !err->code) {
		if (last && s->job.n)
			error_set(err, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "more generic resources are asked for than the nodes of partition \"%s\" have together", last->rec->name);
		if (last && (!s->job.n || bitset_empty(s->able[at])))
			explain(c, s, at, err);
		if (!last)
			error_set(err, ESLURM_INVALID_PARTITION_NAME, "the partition of the job does not exist any more");
	}
	return err ? err->code : -ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE;
}
