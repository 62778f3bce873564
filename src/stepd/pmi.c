/* pmi.c - the server of PMI-1 and PMI-2 (see pmi.h, pmi_wire.h)
 *
 * Each task has a socket, PMI_FD. What tasks put is kept until all tasks here are in a barrier; then it goes to the other nodes in one gathering, and what comes back
 * is what gets see: no get ever crosses the network. Names published are kept by the step's first node. Everything a task says is hostile: a
 * request that makes no sense closes its socket, and stores are bounded. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/envlist.h"
#include "stepd/io_link.h"
#include "stepd/mpi.h"
#include "stepd/peers.h"
#include "stepd/pmi.h"
#include "stepd/pmi_kvs.h"
#include "stepd/pmi_spawn.h"
#include "stepd/pmi_wire.h"
#include "stepd/step.h"
#include "wire/stepio.h"

enum name_op { NAME_PUBLISH = 1, NAME_LOOKUP, NAME_UNPUBLISH, NAME_FOUND, NAME_MISSING };

struct client {
	uv_poll_t poll;
	struct step *step;
	uint32_t local;
	int fd, task_fd;           /* -1: closed */
	int version;
	char *in;
	size_t len, cap;
	bool in_barrier, is_closing;
	char *wants;               /* attribute of the node it waits for, or NULL */
	struct pmi_req asked;      /* only version and thread id of the request that waits */
	char thread[24], what[24];
	struct pmi_spawn spawn;
};

static struct {
	struct client *client;
	struct kvs fresh, common, node, names;
	uint32_t in_barrier;
	uint64_t fences;
	char *mapping;
	char job[32];
} pmi;

/* --- answers --------------------------------------------------------------------------------------- */

static void answer_send(struct client *c, struct str *out)
{
	/* A task that does not read its answers while it asks on stops itself: the socket takes far more than one answer. */
	if (c->fd >= 0 && send(c->fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)out->len)
		log_debug("PMI: task %u does not take its answers", c->step->task[c->local].rank);
	str_fini(out);
}

/* Pairs of texts, ended by NULL. */
static void answer(struct client *c, const struct pmi_req *r, const char *cmd, const char *const *pairs)
{
	struct str out = STR_INIT;
	pmi_answer(&out, r, cmd);
	for (; pairs && pairs[0]; pairs += 2)
		pmi_add(&out, r, pairs[0], pairs[1]);
	pmi_end(&out, r);
	answer_send(c, &out);
}
#define ANSWER(c, r, cmd, ...) answer(c, r, cmd, (const char *const[]){ __VA_ARGS__, NULL })

/* Remember whom to answer later. */
static void ask_keep(struct client *c, const struct pmi_req *r, const char *what)
{
	const char *thread = pmi_word(r, "thrid");
	c->asked.version = r->version;
	c->asked.n = 0;
	if (thread) {
		snprintf(c->thread, sizeof c->thread, "%s", thread);
		c->asked.word[0].key = "thrid";
		c->asked.word[0].value = c->thread;
		c->asked.n = 1;
	}
	snprintf(c->what, sizeof c->what, "%s", what);
}

/* --- what the step looks like ------------------------------------------------------------------------ */

/* "(vector,(first node,nodes,tasks each),...)" */
static char *mapping_make(const struct step *s)
{
	const Pb__StepLayout *l = s->cred->layout;
	uint32_t *node = xcalloc(l->num_tasks + 1, sizeof *node);
	struct str out = STR_INIT;
	for (size_t i = 0; i < l->n_node; i++)
		for (size_t k = 0; k < l->node[i]->n_task_ids; k++)
			if (l->node[i]->task_ids[k] < l->num_tasks)
				node[l->node[i]->task_ids[k]] = (uint32_t)i;
	str_add(&out, "(vector");
	uint32_t first = 0, count = 0, each = 0;
	for (uint32_t at = 0; at < l->num_tasks;) {
		uint32_t run = 1;
		while (at + run < l->num_tasks && node[at + run] == node[at])
			run++;
		if (count && run == each && node[at] == first + count) {
			count++;
		} else {
			if (count)
				str_addf(&out, ",(%u,%u,%u)", first, count, each);
			first = node[at], count = 1, each = run;
		}
		at += run;
	}
	str_addf(&out, ",(%u,%u,%u))", first, count, each);
	free(node);
	return str_take(&out);
}

static const char *universe(const struct step *s, char buf[16])
{
	snprintf(buf, 16, "%u", s->cred->layout->num_tasks);
	return buf;
}

static const char *store_get(const char *key)
{
	const char *value = kvs_get(&pmi.common, key);
	return value ? value : !strcmp(key, "PMI_process_mapping") ? pmi.mapping : NULL;
}

/* --- the barrier ------------------------------------------------------------------------------------- */

static void barrier_open(struct step *s, const char *rc)
{
	pmi.in_barrier = 0;
	for (uint32_t i = 0; i < s->tasks; i++) {
		struct client *c = &pmi.client[i];
		if (c->in_barrier) {
			c->in_barrier = false;
			ANSWER(c, &c->asked, c->asked.version == 1 ? "barrier_out" : "kvs-fence", "rc", rc);
		}
	}
}

static void barrier_enter(struct client *c, const struct pmi_req *r)
{
	struct step *s = c->step;
	size_t n;
	if (c->in_barrier)
		return;
	c->in_barrier = true;
	ask_keep(c, r, "");
	if (++pmi.in_barrier < s->tasks)
		return;
	uint8_t *text = kvs_text(&pmi.fresh, &n);
	kvs_clear(&pmi.fresh);
	if (s->cred->layout->n_node > 1)
		peers_gather(s, ++pmi.fences, (uint32_t)s->cred->layout->n_node, text, n);
	else
		barrier_open(s, kvs_load(&pmi.common, text, n) ? "0" : "1");
	free(text);
}

void pmi_gathered(struct step *s, const uint8_t *parts, size_t n)
{
	bool whole = true;
	for (size_t at = 0; whole && at + 8 <= n;) {
		const uint8_t *h = parts + at + 4;
		size_t len = (size_t)h[0] << 24 | (size_t)h[1] << 16 | (size_t)h[2] << 8 | h[3];
		whole = len <= n - at - 8 && kvs_load(&pmi.common, parts + at + 8, len);
		at += 8 + len;
	}
	barrier_open(s, whole ? "0" : "1");
}

/* --- names, at the step's first node: op, ticket (1 byte, 4 bytes), name, port ------------------------- */

static void name_send(struct step *s, uint32_t node, uint8_t op, uint32_t ticket, const char *name, const char *port)
{
	size_t name_len = strlen(name) + 1, port_len = strlen(port) + 1;
	uint8_t *m = xmalloc(5 + name_len + port_len);
	m[0] = op;
	memcpy(m + 1, &ticket, 4);             /* comes back to us unread */
	memcpy(m + 5, name, name_len);
	memcpy(m + 5 + name_len, port, port_len);
	peers_send(s, node, m, 5 + name_len + port_len);
	free(m);
}

static void name_ask(struct client *c, const struct pmi_req *r, uint8_t op)
{
	const char *name = pmi_word(r, r->version == 1 ? "service" : "name"), *port = pmi_word(r, "port");
	static const char *const answers[2][4] = { { "", "publish_result", "lookup_result", "unpublish_result" }, { "", "name-publish", "name-lookup", "name-unpublish" } };
	ask_keep(c, r, answers[r->version - 1][op]);
	name_send(c->step, 0, op, c->local, name ? name : "", port ? port : "");
}

static void name_serve(struct step *s, uint32_t node, uint8_t op, uint32_t ticket, const char *name, const char *port)
{
	const char *have = kvs_get(&pmi.names, name);
	bool ok = op == NAME_PUBLISH ? !have && kvs_put(&pmi.names, name, port) : have != NULL;
	name_send(s, node, ok ? NAME_FOUND : NAME_MISSING, ticket, name, ok && op == NAME_LOOKUP ? have : "");
	if (op == NAME_UNPUBLISH)
		kvs_remove(&pmi.names, name);
}

static void name_told(struct step *s, uint32_t ticket, bool ok, const char *port)
{
	if (ticket >= s->tasks)
		return;
	struct client *c = &pmi.client[ticket];
	const char *key = *port ? c->asked.version == 1 ? "port" : "value" : NULL;
	if (c->asked.version == 1)
		ANSWER(c, &c->asked, c->what, "info", ok ? "ok" : "fail", key, port);
	else
		ANSWER(c, &c->asked, c->what, "rc", ok ? "0" : "1", key, port);
}

void pmi_message(struct step *s, uint32_t node, const uint8_t *data, size_t n)
{
	uint32_t ticket;
	const char *name = (const char *)data + 5;
	const char *port = n > 5 ? memchr(name, 0, n - 5) : NULL;
	if (!port || ++port >= (const char *)data + n || data[n - 1])
		return;
	memcpy(&ticket, data + 1, 4);
	if (data[0] <= NAME_UNPUBLISH)
		name_serve(s, node, data[0], ticket, name, port);
	else
		name_told(s, ticket, data[0] == NAME_FOUND, port);
}

/* --- requests of both versions ------------------------------------------------------------------------- */

static bool put(struct kvs *k, const struct pmi_req *r)
{
	const char *key = pmi_word(r, "key"), *value = pmi_word(r, "value");
	return key && value && kvs_put(k, key, value);
}

static void abort_run(struct client *c, const struct pmi_req *r)
{
	const char *code = pmi_word(r, "exitcode");
	mpi_abort(c->step, c->step->task[c->local].rank, code ? (int)strtol(code, NULL, 10) : 1);
}

static void spawn_run(struct client *c, const struct pmi_req *r)
{
	size_t n = 0;
	ask_keep(c, r, r->version == 1 ? "spawn_result" : "spawn");
	int rc = pmi_spawn_add(&c->spawn, r);
	if (rc > 0)
		return;                        /* more commands follow */
	uint8_t *text = rc < 0 ? NULL : pmi_spawn_text(&c->spawn, &n);
	if (!text || !io_link_send_task(c->step, STEPIO_SPAWN, c->local, text, n))
		ANSWER(c, &c->asked, c->what, "rc", "-1");
	free(text);
	if (rc < 0)
		pmi_spawn_clear(&c->spawn);
}

void pmi_spawned(struct step *s, uint32_t ticket, bool ok)
{
	if (ticket >= s->tasks)
		return;
	struct client *c = &pmi.client[ticket];
	struct str codes = STR_INIT;
	for (uint32_t i = 0; i < c->spawn.tasks; i++)
		str_addf(&codes, "%s%d", i ? "," : "", ok ? 0 : -1);
	if (c->asked.version == 1)
		ANSWER(c, &c->asked, c->what, "rc", ok ? "0" : "-1", "errcodes", codes.data);
	else
		ANSWER(c, &c->asked, c->what, "rc", ok ? "0" : "-1", "jobid", pmi.job, "nerrs", "0");
	str_fini(&codes);
	pmi_spawn_clear(&c->spawn);
}

static void attr_tell(struct client *c, const struct pmi_req *r, const char *value)
{
	if (value)
		ANSWER(c, r, "info-getnodeattr", "rc", "0", "found", "TRUE", "value", value);
	else
		ANSWER(c, r, "info-getnodeattr", "rc", "0", "found", "FALSE");
}

static void attr_put(struct client *c, const struct pmi_req *r)
{
	struct step *s = c->step;
	ANSWER(c, r, "info-putnodeattr", "rc", put(&pmi.node, r) ? "0" : "1");
	for (uint32_t i = 0; i < s->tasks; i++) {
		struct client *other = &pmi.client[i];
		const char *value = other->wants ? kvs_get(&pmi.node, other->wants) : NULL;
		if (!value)
			continue;
		xfree(other->wants);
		attr_tell(other, &other->asked, value);
	}
}

static void attr_get(struct client *c, const struct pmi_req *r)
{
	const char *key = pmi_word(r, "key"), *wait = pmi_word(r, "wait");
	const char *value = key ? kvs_get(&pmi.node, key) : NULL;
	if (value || !key || !wait || strcasecmp(wait, "TRUE")) {
		attr_tell(c, r, value);
		return;
	}
	ask_keep(c, r, "");
	free(c->wants);
	c->wants = xstrdup(key);
}

/* --- PMI-1 ------------------------------------------------------------------------------------------------ */

static void one_get(struct client *c, const struct pmi_req *r)
{
	const char *key = pmi_word(r, "key"), *value = key ? store_get(key) : NULL;
	if (value)
		ANSWER(c, r, "get_result", "rc", "0", "value", value);
	else
		ANSWER(c, r, "get_result", "rc", "1");
}

static void one_at(struct client *c, const struct pmi_req *r)
{
	const char *idx = pmi_word(r, "idx"), *key, *value;
	unsigned long at = idx ? strtoul(idx, NULL, 10) : 0;
	char next[24];
	snprintf(next, sizeof next, "%lu", at + 1);
	if (kvs_at(&pmi.common, at, &key, &value))
		ANSWER(c, r, "getbyidx_results", "rc", "0", "nextidx", next, "key", key, "val", value);
	else
		ANSWER(c, r, "getbyidx_results", "rc", "1", "reason", "no_more_keyvals");
}

static bool one_run(struct client *c, const struct pmi_req *r, const char *cmd)
{
	char num[16];
	if (!strcmp(cmd, "get_maxes"))
		ANSWER(c, r, "maxes", "rc", "0", "kvsname_max", "256", "keylen_max", "64", "vallen_max", "1024");
	else if (!strcmp(cmd, "get_appnum"))
		ANSWER(c, r, "appnum", "rc", "0", "appnum", "-1");
	else if (!strcmp(cmd, "get_universe_size"))
		ANSWER(c, r, "universe_size", "rc", "0", "size", universe(c->step, num));
	else if (!strcmp(cmd, "get_my_kvsname"))
		ANSWER(c, r, "my_kvsname", "rc", "0", "kvsname", pmi.job);
	else if (!strcmp(cmd, "put"))
		ANSWER(c, r, "put_result", "rc", put(&pmi.fresh, r) ? "0" : "1");
	else if (!strcmp(cmd, "get"))
		one_get(c, r);
	else if (!strcmp(cmd, "getbyidx"))
		one_at(c, r);
	else if (!strcmp(cmd, "barrier_in"))
		barrier_enter(c, r);
	else if (!strcmp(cmd, "publish_name"))
		name_ask(c, r, NAME_PUBLISH);
	else if (!strcmp(cmd, "lookup_name"))
		name_ask(c, r, NAME_LOOKUP);
	else if (!strcmp(cmd, "unpublish_name"))
		name_ask(c, r, NAME_UNPUBLISH);
	else if (!strcmp(cmd, "spawn"))
		spawn_run(c, r);
	else if (!strcmp(cmd, "finalize"))
		ANSWER(c, r, "finalize_ack", "rc", "0");
	else if (!strcmp(cmd, "abort"))
		abort_run(c, r);
	else
		return false;
	return true;
}

/* --- PMI-2 ------------------------------------------------------------------------------------------------ */

static void two_init(struct client *c, const struct pmi_req *r)
{
	char rank[16], size[16];
	snprintf(rank, sizeof rank, "%u", c->step->task[c->local].rank);
	ANSWER(c, r, "fullinit", "rc", "0", "pmi-version", "2", "pmi-subversion", "0", "rank", rank, "size", universe(c->step, size), "appnum", "-1", "debugged",
	       "FALSE", "pmiverbose", "FALSE", c->step->spec->n_mpi_preput ? "spawner-jobid" : NULL, "spawner");
}

static void two_get(struct client *c, const struct pmi_req *r, const char *cmd)
{
	char num[16];
	const char *key = pmi_word(r, "key"), *value = key ? store_get(key) : NULL;
	if (key && !strcmp(cmd, "info-getjobattr") && !strcmp(key, "universeSize"))
		value = universe(c->step, num);
	if (value)
		ANSWER(c, r, cmd, "rc", "0", "found", "TRUE", "value", value);
	else
		ANSWER(c, r, cmd, "rc", "0", "found", "FALSE");
}

static bool two_run(struct client *c, const struct pmi_req *r, const char *cmd)
{
	if (!strcmp(cmd, "fullinit"))
		two_init(c, r);
	else if (!strcmp(cmd, "job-getid"))
		ANSWER(c, r, cmd, "rc", "0", "jobid", pmi.job);
	else if (!strcmp(cmd, "kvs-put"))
		ANSWER(c, r, cmd, "rc", put(&pmi.fresh, r) ? "0" : "1");
	else if (!strcmp(cmd, "kvs-fence"))
		barrier_enter(c, r);
	else if (!strcmp(cmd, "kvs-get") || !strcmp(cmd, "info-getjobattr"))
		two_get(c, r, cmd);
	else if (!strcmp(cmd, "info-putnodeattr"))
		attr_put(c, r);
	else if (!strcmp(cmd, "info-getnodeattr"))
		attr_get(c, r);
	else if (!strcmp(cmd, "name-publish"))
		name_ask(c, r, NAME_PUBLISH);
	else if (!strcmp(cmd, "name-lookup"))
		name_ask(c, r, NAME_LOOKUP);
	else if (!strcmp(cmd, "name-unpublish"))
		name_ask(c, r, NAME_UNPUBLISH);
	else if (!strcmp(cmd, "spawn"))
		spawn_run(c, r);
	else if (!strcmp(cmd, "finalize"))
		ANSWER(c, r, cmd, "rc", "0");
	else if (!strcmp(cmd, "abort"))
		abort_run(c, r);
	else
		return false;
	return true;
}

static bool request_run(struct client *c, const struct pmi_req *r)
{
	const char *cmd = r->word[0].value;
	struct pmi_req line = { .version = 1 };   /* the answer to the first request is a line in both versions */
	if (strcmp(r->word[0].key, "cmd") && strcmp(r->word[0].key, "mcmd"))
		return false;
	if (!strcmp(cmd, "init")) {
		bool two = c->version == 2;
		ANSWER(c, &line, "response_to_init", "rc", "0", "pmi_version", two ? "2" : "1", "pmi_subversion", two ? "0" : "1");
		return true;
	}
	return r->version == 1 ? one_run(c, r, cmd) : two_run(c, r, cmd);
}

/* --- sockets ---------------------------------------------------------------------------------------------- */

static void on_client_closed(uv_handle_t *h)
{
	struct client *c = (struct client *)h;
	close(c->fd);
	c->fd = -1;
	xfree(c->in);
	c->len = c->cap = 0;
}

static void client_close(struct client *c)
{
	if (c->is_closing)
		return;
	c->is_closing = true;
	xfree(c->wants);
	uv_close((uv_handle_t *)&c->poll, on_client_closed);
}

static void on_client(uv_poll_t *poll, int status, int events)
{
	struct client *c = (struct client *)poll;
	static struct pmi_req req;
	size_t at = 0;
	long used = 0;
	(void)status, (void)events;
	c->in = xgrow(c->in, &c->cap, c->len + 4096, 1);
	ssize_t n = recv(c->fd, c->in + c->len, c->cap - c->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->len += n > 0 ? (size_t)n : 0;
	while (n > 0 && (used = pmi_take(c->in + at, c->len - at, &c->version, &req)) > 0) {
		at += (size_t)used;
		if (request_run(c, &req))
			continue;
		used = -1;
		break;
	}
	if (n <= 0 || used < 0) {
		if (used < 0)
			log_error("PMI: task %u sent a request that makes no sense", c->step->task[c->local].rank);
		client_close(c);
		return;
	}
	memmove(c->in, c->in + at, c->len - at);
	c->len -= at;
}

/* --- around the tasks --------------------------------------------------------------------------------------- */

int pmi_prepare(struct step *s)
{
	pmi.client = xcalloc(s->tasks + 1, sizeof *pmi.client);
	pmi.mapping = mapping_make(s);
	snprintf(pmi.job, sizeof pmi.job, "%u.%u", s->whole_job, s->step_id);
	for (size_t i = 0; i < s->spec->n_mpi_preput; i++) {
		char *pair = xstrdup(s->spec->mpi_preput[i]), *eq = strchr(pair, '=');
		if (eq)
			*eq = 0;
		if (eq && !kvs_put(&pmi.common, pair, eq + 1))
			return step_fail(s, E2BIG, "too much was put for the tasks spawned");
		free(pair);
	}
	return 0;
}

int pmi_open(struct step *s, struct task *t)
{
	int pair[2];
	struct client *c = &pmi.client[t->local];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return step_fail(s, errno, "cannot make the PMI socket of task %u: %s", t->rank, strerror(errno));
	c->step = s;
	c->local = t->local;
	c->fd = pair[0];
	c->task_fd = pair[1];
	return 0;
}

void pmi_forked(struct step *s, struct task *t)
{
	struct client *c = &pmi.client[t->local];
	close(c->task_fd);
	c->task_fd = -1;
	uv_poll_init(&s->loop, &c->poll, c->fd);
	uv_poll_start(&c->poll, UV_READABLE, on_client);
}

void pmi_child(const struct step *s, const struct task *t, struct envlist *e)
{
	int fd = pmi.client[t->local].task_fd;
	if (fd < 0)                        /* a task's epilog */
		return;
	(void)fcntl(fd, F_SETFD, 0);
	envlist_setf(e, "PMI_FD", "%d", fd);
	envlist_setf(e, "PMI_RANK", "%u", t->rank);
	envlist_setf(e, "PMI_SIZE", "%u", s->cred->layout->num_tasks);
	envlist_set(e, "PMI_JOBID", pmi.job);
	if (s->spec->n_mpi_preput)
		envlist_set(e, "PMI_SPAWNED", "1");
}
