/* pmix_helper.c - slurmstepd-pmix: the PMIx server of one step on one node, as the job's user (see pmix.h, pmix_wire.h)
 *
 * Two threads: this one reads slurmstepd's frames, the library's own calls the functions of `module`. What is shared is the list of collectives under way and
 * the descriptor, both under `lock`. An operation that other nodes must join is a gathering of slurmstepd's; its id is made
 * from the ranks that take part and how often they have met, so that all nodes count alike. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pmix.h>
#include <pmix_server.h>

#include "base/bytes.h"
#include "stepd/pmix_wire.h"

enum { ASK = 1, TELL = 2 };        /* messages between helpers: direct modex */

/* Components of a heterogeneous step may share a node, each with a server of its own: to the library they are nodes of their own (place_shared), whose ranks differ
 * in their rank on the node, since programs name files in /dev/shm by it. */
struct node { char *name, *ranks; uint32_t first_rank; };
struct op {                        /* a collective, or data asked of another node */
	struct op *next;
	uint64_t id;
	pmix_modex_cbfunc_t modex;
	pmix_op_cbfunc_t plain;
	void *arg;
};
struct meeting { struct meeting *next; uint64_t ranks; uint64_t count; };
struct ask { uint32_t node; uint64_t id; };

static struct {
	char *nspace, *dir;
	uint32_t self, tasks, nodes;
	struct node *node;
	uint32_t *node_of;         /* of each rank */
	struct op *ops;
	struct meeting *meetings;
	uint64_t asked;
} job;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done_cond = PTHREAD_COND_INITIALIZER;
static int done_count;

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

/* --- frames --------------------------------------------------------------------------------------------------- */

static void write_all(const void *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = send(PMIX_CHANNEL, (const char *)data + at, n - at, MSG_NOSIGNAL);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;                /* slurmstepd is gone: the reader ends us */
		at += (size_t)got;
	}
}

static void frame_send(uint8_t type, const void *head, size_t head_len, const void *data, size_t n)
{
	uint8_t front[5 + 16];
	put_u32(front, (uint32_t)(1 + head_len + n));
	front[4] = type;
	memcpy(front + 5, head, head_len);
	pthread_mutex_lock(&lock);
	write_all(front, 5 + head_len);
	write_all(data, n);
	pthread_mutex_unlock(&lock);
}

static int read_all(void *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(PMIX_CHANNEL, (char *)data + at, n - at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		at += (size_t)got;
	}
	return 0;
}

/* malloc'd, with a NUL behind it; NULL at the end. */
static uint8_t *frame_read(uint8_t *ret_type, size_t *ret_n)
{
	uint8_t head[5];
	if (read_all(head, sizeof head) < 0)
		return NULL;
	uint32_t len = get_u32(head);
	if (!len || len > PMIX_FRAME_MAX)
		return NULL;
	uint8_t *data = need(malloc(len));
	if (read_all(data, len - 1) < 0) {
		free(data);
		return NULL;
	}
	data[len - 1] = 0;
	*ret_type = head[4];
	*ret_n = len - 1;
	return data;
}

static int failed(const char *what, pmix_status_t rc)
{
	char text[512];
	int n = snprintf(text, sizeof text, "%s: %s", what, PMIx_Error_string(rc));
	frame_send(PMIX_F_FAILED, "", 0, text, (size_t)n);
	return 1;
}

/* --- operations under way ------------------------------------------------------------------------------------- */

static void op_add(uint64_t id, pmix_modex_cbfunc_t modex, pmix_op_cbfunc_t plain, void *arg)
{
	struct op *op = need(calloc(1, sizeof *op));
	*op = (struct op){ .id = id, .modex = modex, .plain = plain, .arg = arg };
	pthread_mutex_lock(&lock);
	op->next = job.ops;
	job.ops = op;
	pthread_mutex_unlock(&lock);
}

static struct op *op_take(uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct op **at = &job.ops, *op;
	while (*at && (*at)->id != id)
		at = &(*at)->next;
	op = *at;
	if (op)
		*at = op->next;
	pthread_mutex_unlock(&lock);
	return op;
}

static void op_end(struct op *op, pmix_status_t status, char *data, size_t n)
{
	if (op->modex)
		op->modex(status, data, n, op->arg, free, data);
	else if (op->plain)
		op->plain(status, op->arg), free(data);
	free(op);
}

/* --- collectives -------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		h = (h ^ (v >> (8 * i) & 0xff)) * 1099511628211u;
	return h;
}

/* Ranks that take part: which nodes have some, and a number for the set (the sum over ranks: any order gives the same). */
static uint32_t participants(const pmix_proc_t *procs, size_t n, uint64_t *ret_set)
{
	uint8_t *seen = need(calloc(job.nodes + 1, 1));
	uint32_t count = 0;
	uint64_t set = 0;
	for (size_t i = 0; i < n; i++) {
		bool all = procs[i].rank == PMIX_RANK_WILDCARD;
		for (uint32_t r = all ? 0 : procs[i].rank; r < job.tasks; r++) {
			count += !seen[job.node_of[r]]++;
			seen[job.node_of[r]] = 1;
			set += mix(14695981039346656037u, r);
			if (!all)
				break;
		}
	}
	free(seen);
	*ret_set = set;
	return count;
}

static uint64_t meeting_id(uint64_t ranks)
{
	struct meeting *m;
	pthread_mutex_lock(&lock);
	for (m = job.meetings; m && m->ranks != ranks; m = m->next)
		;
	if (!m) {
		m = need(calloc(1, sizeof *m));
		m->ranks = ranks;
		m->next = job.meetings;
		job.meetings = m;
	}
	uint64_t id = mix(ranks, ++m->count);
	pthread_mutex_unlock(&lock);
	return id;
}

static pmix_status_t collective(const pmix_proc_t *procs, size_t n, const char *data, size_t len, pmix_modex_cbfunc_t modex, pmix_op_cbfunc_t plain, void *arg)
{
	uint8_t head[12];
	uint64_t set;
	uint32_t nodes = participants(procs, n, &set);
	if (nodes <= 1) {
		struct op *op = need(calloc(1, sizeof *op));
		char *copy = need(malloc(len + 1));
		if (len)
			memcpy(copy, data, len);
		*op = (struct op){ .modex = modex, .plain = plain, .arg = arg };
		op_end(op, PMIX_SUCCESS, copy, len);
		return PMIX_SUCCESS;
	}
	uint64_t id = meeting_id(set);
	op_add(id, modex, plain, arg);
	put_u64(head, id);
	put_u32(head + 8, nodes);
	frame_send(PMIX_F_GATHER, head, sizeof head, data, len);
	return PMIX_SUCCESS;
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t n_info, char *data, size_t len, pmix_modex_cbfunc_t cb, void *arg)
{
	(void)info, (void)n_info;
	return collective(procs, n, data, len, cb, NULL, arg);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t n_info, pmix_op_cbfunc_t cb, void *arg)
{
	(void)info, (void)n_info;
	return collective(procs, n, NULL, 0, NULL, cb, arg);
}

static void whole_take(const uint8_t *data, size_t n)
{
	struct op *op = n >= 8 ? op_take(get_u64(data)) : NULL;
	if (!op)
		return;
	char *all = need(malloc(n));
	size_t len = 0;
	for (size_t at = 8; at + 8 <= n;) {
		size_t part = get_u32(data + at + 4);
		if (part > n - at - 8)
			break;
		memcpy(all + len, data + at + 8, part);
		len += part;
		at += 8 + part;
	}
	op_end(op, PMIX_SUCCESS, all, len);
}

/* --- data of one rank, from its node: "ASK" id rank; "TELL" id status data ---------------------------------------------- */

static pmix_status_t on_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t n_info, pmix_modex_cbfunc_t cb, void *arg)
{
	uint8_t m[4 + 1 + 8 + 4];
	(void)info, (void)n_info;
	if (proc->rank >= job.tasks)
		return PMIX_ERR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	uint64_t id = ++job.asked;
	pthread_mutex_unlock(&lock);
	op_add(id, cb, NULL, arg);
	put_u32(m, job.node_of[proc->rank]);
	m[4] = ASK;
	put_u64(m + 5, id);
	put_u32(m + 13, proc->rank);
	frame_send(PMIX_F_MESSAGE, "", 0, m, sizeof m);
	return PMIX_SUCCESS;
}

static void on_data(pmix_status_t status, char *data, size_t n, void *arg)
{
	struct ask *ask = arg;
	uint8_t *m = need(malloc(17 + n));
	put_u32(m, ask->node);
	m[4] = TELL;
	put_u64(m + 5, ask->id);
	put_u32(m + 13, (uint32_t)status);
	if (n)
		memcpy(m + 17, data, n);
	frame_send(PMIX_F_MESSAGE, "", 0, m, 17 + n);
	free(m);
	free(ask);
}

static void message_take(const uint8_t *data, size_t n)
{
	if (n < 17)
		return;
	uint64_t id = get_u64(data + 5);
	if (data[4] == ASK) {
		struct ask *ask = need(calloc(1, sizeof *ask));
		pmix_proc_t proc;
		ask->node = get_u32(data);
		ask->id = id;
		PMIX_LOAD_PROCID(&proc, job.nspace, get_u32(data + 13));
		pmix_status_t rc = PMIx_server_dmodex_request(&proc, on_data, ask);
		if (rc != PMIX_SUCCESS)
			on_data(rc, NULL, 0, ask);
		return;
	}
	struct op *op = op_take(id);
	if (!op)
		return;
	char *copy = need(malloc(n));
	memcpy(copy, data + 17, n - 17);
	op_end(op, (pmix_status_t)get_u32(data + 13), copy, n - 17);
}

/* --- the rest of what the library asks ------------------------------------------------------------------------------------ */

static pmix_status_t on_client(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cb, void *arg)
{
	(void)proc, (void)object, (void)cb, (void)arg;
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char msg[], pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t cb, void *arg)
{
	uint8_t m[8];
	(void)object, (void)msg, (void)procs, (void)n, (void)cb, (void)arg;
	put_u32(m, proc->rank);
	put_u32(m + 4, (uint32_t)status);
	frame_send(PMIX_F_ABORT, "", 0, m, sizeof m);
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_events(pmix_status_t *codes, size_t n, const pmix_info_t info[], size_t n_info, pmix_op_cbfunc_t cb, void *arg)
{
	(void)codes, (void)n, (void)info, (void)n_info, (void)cb, (void)arg;
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_events_end(pmix_status_t *codes, size_t n, pmix_op_cbfunc_t cb, void *arg)
{
	(void)codes, (void)n, (void)cb, (void)arg;
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_server_module_t module = {
	.client_connected = on_client, .client_finalized = on_client, .abort = on_abort, .fence_nb = on_fence, .direct_modex = on_direct_modex,
	.connect = on_connect, .disconnect = on_connect, .register_events = on_events, .deregister_events = on_events_end,
};

/* --- telling it about the job ------------------------------------------------------------------------------------------------ */

static void on_done(pmix_status_t status, void *arg)
{
	pthread_mutex_lock(&lock);
	*(pmix_status_t *)arg = status;
	done_count++;
	pthread_cond_signal(&done_cond);
	pthread_mutex_unlock(&lock);
}

/* The end of a call that reports by on_done. */
static pmix_status_t await(pmix_status_t rc, pmix_status_t *status)
{
	if (rc == PMIX_OPERATION_SUCCEEDED)
		return PMIX_SUCCESS;
	if (rc != PMIX_SUCCESS)
		return rc;
	pthread_mutex_lock(&lock);
	while (!done_count)
		pthread_cond_wait(&done_cond, &lock);
	done_count--;
	pthread_mutex_unlock(&lock);
	return *status;
}

static char *text_next(char **at, const char *end)
{
	char *text = *at;
	if (text >= end)
		return need(strdup(""));
	*at += strlen(text) + 1;
	return need(strdup(text));
}

static uint32_t number_next(char **at, const char *end)
{
	char *text = text_next(at, end);
	uint32_t n = (uint32_t)strtoul(text, NULL, 10);
	free(text);
	return n;
}

static uint32_t rank_count(const char *ranks)
{
	uint32_t n = *ranks != 0;
	for (; *ranks; ranks++)
		n += *ranks == ',';
	return n;
}

/* Ranks of earlier components on the same host come first; then the component gets a name of its own. */
static void place_shared(void)
{
	for (uint32_t i = job.nodes; i-- > 1;) {
		char *name = job.node[i].name;
		uint32_t times = 0;
		for (uint32_t k = 0; k < i; k++)
			if (!strcmp(job.node[k].name, name)) {
				job.node[i].first_rank += rank_count(job.node[k].ranks);
				times++;
			}
		if (times && asprintf(&job.node[i].name, "%s-part%u", name, times) < 0)
			exit(1);
		if (times)
			free(name);
	}
}

static bool job_read(uint8_t *data, size_t n)
{
	char *at = (char *)data, *end = at + n;
	job.nspace = text_next(&at, end);
	job.self = number_next(&at, end);
	job.tasks = number_next(&at, end);
	job.nodes = number_next(&at, end);
	job.dir = text_next(&at, end);
	if (!job.nodes || !job.tasks || job.self >= job.nodes)
		return false;
	job.node = need(calloc(job.nodes, sizeof *job.node));
	job.node_of = need(calloc(job.tasks, sizeof *job.node_of));
	for (uint32_t i = 0; i < job.nodes; i++) {
		job.node[i].name = text_next(&at, end);
		job.node[i].ranks = text_next(&at, end);
		for (char *r = job.node[i].ranks; *r; r += *r == ',') {
			unsigned long rank = strtoul(r, &r, 10);
			if (rank < job.tasks)
				job.node_of[rank] = i;
		}
	}
	place_shared();
	return true;
}

static char *joined(bool names, char sep)
{
	size_t len = 1;
	for (uint32_t i = 0; i < job.nodes; i++)
		len += strlen(names ? job.node[i].name : job.node[i].ranks) + 1;
	char *text = need(calloc(len, 1)), *at = text;
	for (uint32_t i = 0; i < job.nodes; i++) {
		const char *part = names ? job.node[i].name : job.node[i].ranks;
		size_t n = strlen(part);
		memcpy(at, part, n);
		at += n;
		*at++ = i + 1 < job.nodes ? sep : 0;
	}
	return text;
}

#define INFO_MAX 40
struct infos { pmix_info_t item[INFO_MAX]; size_t n; };

static void info_add(struct infos *l, const char *key, const void *value, pmix_data_type_t type)
{
	if (l->n < INFO_MAX)
		PMIX_INFO_LOAD(&l->item[l->n], key, value, type), l->n++;
}

static void info_u32(struct infos *l, const char *key, uint32_t v) { info_add(l, key, &v, PMIX_UINT32); }

static void info_regex(struct infos *l, const char *key, char *regex)
{
	pmix_info_t *at = &l->item[l->n++];
	PMIX_LOAD_KEY(at->key, key);
	at->flags = 0;
	at->value.type = PMIX_REGEX;
	at->value.data.bo.bytes = regex;
	at->value.data.bo.size = strlen(regex) + 1;
}

/* What the library tells each task about one rank. */
static void rank_add(struct infos *l, uint32_t rank, uint32_t local)
{
	struct infos own = { .n = 0 };
	uint32_t node = job.node_of[rank];
	uint16_t local16 = (uint16_t)local, on_host = (uint16_t)(job.node[node].first_rank + local);
	pmix_rank_t r = rank;
	info_add(&own, PMIX_RANK, &r, PMIX_PROC_RANK);
	info_add(&own, PMIX_GLOBAL_RANK, &r, PMIX_PROC_RANK);
	info_add(&own, PMIX_APP_RANK, &r, PMIX_PROC_RANK);
	info_add(&own, PMIX_LOCAL_RANK, &local16, PMIX_UINT16);
	info_add(&own, PMIX_NODE_RANK, &on_host, PMIX_UINT16);
	info_u32(&own, PMIX_NODEID, node);
	info_u32(&own, PMIX_APPNUM, 0);
	info_add(&own, PMIX_HOSTNAME, job.node[node].name, PMIX_STRING);
	pmix_data_array_t *array;
	PMIX_DATA_ARRAY_CREATE(array, own.n, PMIX_INFO);
	memcpy(array->array, own.item, own.n * sizeof *own.item);
	pmix_info_t *at = &l->item[l->n++];
	PMIX_LOAD_KEY(at->key, PMIX_PROC_DATA);
	at->flags = 0;
	at->value.type = PMIX_DATA_ARRAY;
	at->value.data.darray = array;
}

static void job_add(struct infos *l)
{
	struct node *here = &job.node[job.self];
	uint32_t local = rank_count(here->ranks);
	char *regex, *names = joined(true, ','), *ranks = joined(false, ';');
	bool yes = true;
	pmix_rank_t leader = (pmix_rank_t)strtoul(here->ranks, NULL, 10);
	info_add(l, PMIX_JOBID, job.nspace, PMIX_STRING);
	if (PMIx_generate_regex(names, &regex) == PMIX_SUCCESS)
		info_regex(l, PMIX_NODE_MAP, regex);
	if (PMIx_generate_ppn(ranks, &regex) == PMIX_SUCCESS)
		info_regex(l, PMIX_PROC_MAP, regex);
	info_u32(l, PMIX_UNIV_SIZE, job.tasks);
	info_u32(l, PMIX_JOB_SIZE, job.tasks);
	info_u32(l, PMIX_JOB_NUM_APPS, 1);
	info_u32(l, PMIX_APP_SIZE, job.tasks);
	info_u32(l, PMIX_MAX_PROCS, job.tasks);
	info_u32(l, PMIX_NUM_NODES, job.nodes);
	info_u32(l, PMIX_NODE_SIZE, local);
	info_u32(l, PMIX_LOCAL_SIZE, local);
	info_u32(l, PMIX_NODEID, job.self);
	info_u32(l, PMIX_APPNUM, 0);
	info_add(l, PMIX_HOSTNAME, here->name, PMIX_STRING);
	info_add(l, PMIX_LOCAL_PEERS, here->ranks, PMIX_STRING);
	info_add(l, PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
	info_add(l, PMIX_TMPDIR, job.dir, PMIX_STRING);
	info_add(l, PMIX_NSDIR, job.dir, PMIX_STRING);
	info_add(l, PMIX_TDIR_RMCLEAN, &yes, PMIX_BOOL);
	free(names);
	free(ranks);
}

/* Job and ranks in one array: grown by hand, since a step may have any number of ranks. */
static pmix_status_t job_register(void)
{
	struct infos head = { .n = 0 };
	pmix_status_t status = PMIX_SUCCESS;
	job_add(&head);
	size_t n = head.n + job.tasks;
	pmix_info_t *all = need(calloc(n, sizeof *all));
	memcpy(all, head.item, head.n * sizeof *all);
	size_t at = head.n;
	for (uint32_t i = 0; i < job.nodes; i++) {
		uint32_t local = 0;
		for (char *r = job.node[i].ranks; *r; r += *r == ',') {
			struct infos one = { .n = 0 };
			unsigned long rank = strtoul(r, &r, 10);
			if (rank >= job.tasks || at == n)
				continue;
			rank_add(&one, (uint32_t)rank, local++);
			all[at++] = one.item[0];
		}
	}
	return await(PMIx_server_register_nspace(job.nspace, (int)rank_count(job.node[job.self].ranks), all, at, on_done, &status), &status);
}

static void env_send(uint32_t local, char **env)
{
	size_t n = 4;
	for (char **e = env; e && *e; e++)
		n += strlen(*e) + 1;
	uint8_t *data = need(malloc(n)), *at = data + 4;
	put_u32(data, local);
	for (char **e = env; e && *e; e++) {
		size_t len = strlen(*e) + 1;
		memcpy(at, *e, len);
		at += len;
	}
	frame_send(PMIX_F_ENV, "", 0, data, n);
	free(data);
}

/* Open MPI names its shared memory by host, user, job and the rank among the local ones: in one folder two components on one host would take each other's. */
static pmix_status_t memory_apart(char ***env)
{
	static const char *const where[] = { "OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory" };
	pmix_status_t rc = PMIX_SUCCESS;
	for (size_t i = 0; rc == PMIX_SUCCESS && job.node[job.self].first_rank && i < sizeof where / sizeof *where; i++)
		PMIX_SETENV(rc, where[i], job.dir, env);
	return rc;
}

static pmix_status_t clients_register(void)
{
	uint32_t local = 0;
	for (char *r = job.node[job.self].ranks; *r; r += *r == ',') {
		pmix_status_t status = PMIX_SUCCESS;
		pmix_proc_t proc;
		char **env = NULL;
		PMIX_LOAD_PROCID(&proc, job.nspace, (pmix_rank_t)strtoul(r, &r, 10));
		pmix_status_t rc = await(PMIx_server_register_client(&proc, getuid(), getgid(), NULL, on_done, &status), &status);
		if (rc == PMIX_SUCCESS)
			rc = PMIx_server_setup_fork(&proc, &env);
		if (rc == PMIX_SUCCESS)
			rc = memory_apart(&env);
		if (rc != PMIX_SUCCESS)
			return rc;
		env_send(local++, env);
	}
	return PMIX_SUCCESS;
}

static pmix_status_t server_start(void)
{
	struct infos l = { .n = 0 };
	bool no = false;
	info_add(&l, PMIX_SERVER_TMPDIR, job.dir, PMIX_STRING);
	info_add(&l, PMIX_SYSTEM_TMPDIR, job.dir, PMIX_STRING);
	info_add(&l, PMIX_HOSTNAME, job.node[job.self].name, PMIX_STRING);
	info_add(&l, PMIX_SERVER_TOOL_SUPPORT, &no, PMIX_BOOL);
	return PMIx_server_init(&module, l.item, l.n);
}

int main(void)
{
	uint8_t type;
	size_t n;
	uint8_t *data = frame_read(&type, &n);
	if (!data || type != PMIX_F_JOB || !job_read(data, n)) {
		fprintf(stderr, "slurmstepd-pmix: error: slurmstepd starts this program, people do not\n");
		return 1;
	}
	free(data);
	pmix_status_t rc = server_start();
	if (rc != PMIX_SUCCESS)
		return failed("PMIx_server_init", rc);
	rc = job_register();
	if (rc != PMIX_SUCCESS)
		return failed("PMIx_server_register_nspace", rc);
	rc = clients_register();
	if (rc != PMIX_SUCCESS)
		return failed("PMIx_server_register_client", rc);
	frame_send(PMIX_F_READY, "", 0, "", 0);
	while ((data = frame_read(&type, &n))) {
		if (type == PMIX_F_WHOLE)
			whole_take(data, n);
		else if (type == PMIX_F_MESSAGE)
			message_take(data, n);
		free(data);
	}
	PMIx_server_finalize();
	return 0;
}
