/* srun_launch.c - telling the nodes what to start
 *
 * One LaunchSpec for all nodes, packed once. The token of each connection is bound to the hash of those bytes, so a slurmd believes argv, environment and
 * addresses only from the user himself. All nodes are told before any answer is waited for. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/plugins.h"
#include "cli/srun.h"
#include "cli/submit.h"
#include "model/idset.h"
#include "proto/agent.pb-c.h"
#include "wire/wire.h"

#define LAUNCH_TIMEOUT_MS 10000
#define ANSWER_MS 60000        /* slurmd answers before it runs a prolog; a busy one may take a while */
#define RETRY_MS 200
#define FILES_OWN 64           /* of srun itself: its inputs and outputs, slurmctld, libraries */
#define RETRY_FOR_MS 10000

/* The address of ours from which `addr` is reached. */
static void own_address(const char *addr, uint16_t port, char *buf, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) }, own;
	socklen_t len = sizeof(own);
	snprintf(buf, size, "127.0.0.1");
	if (inet_pton(AF_INET, addr, &to.sin_addr) != 1) {
		if (gethostname(buf, size) < 0)
			snprintf(buf, size, "localhost");
		return;
	}
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && getsockname(fd, (struct sockaddr *)&own, &len) == 0)
		inet_ntop(AF_INET, &own.sin_addr, buf, (socklen_t)size);
	if (fd >= 0)
		close(fd);
}

/* Bind to `port`, 0: any. */
static int listen_at(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_ANY) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0 && listen(fd, 4096) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int launch_listen(struct srun *s, struct error *err)
{
	const char *range = conf_str(s->conf, CONF_SrunPortRange);
	unsigned lo = 0, hi = 0;
	if (range && sscanf(range, "%u-%u", &lo, &hi) == 2 && lo && hi >= lo && hi < 65536) {
		for (unsigned port = lo; port <= hi && s->listen_fd < 0; port++)
			s->listen_fd = listen_at((uint16_t)port);
		if (s->listen_fd < 0)
			return error_set(err, EADDRINUSE, "all ports in range (%u, %u) exhausted", lo, hi);
	} else if ((s->listen_fd = listen_at(0)) < 0) {
		return error_set(err, errno, "cannot listen for the nodes: %s", strerror(errno));
	}
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	if (getsockname(s->listen_fd, (struct sockaddr *)&own, &len) < 0 || getrandom(s->io_key, sizeof(s->io_key), 0) != (ssize_t)sizeof(s->io_key))
		return error_set(err, errno, "cannot listen for the nodes: %s", strerror(errno));
	s->listen_port = ntohs(own.sin_port);
	own_address(s->layout->node[0]->addr, (uint16_t)s->layout->node[0]->port, s->host, sizeof(s->host));
	return 0;
}

/* --- the message ---------------------------------------------------------------------------------------- */

static void fill_io(struct srun *s, Pb__LaunchSpec *m)
{
	static char task[16];
	m->io_host = s->host;
	m->has_io_port = true;
	m->io_port = s->listen_port;
	m->has_io_key = true;
	m->io_key.data = s->io_key;
	m->io_key.len = sizeof(s->io_key);
	bool out_there = s->plan_out.kind == PLAN_NONE || s->plan_out.kind == PLAN_NODE;
	bool err_there = s->plan_err.kind == PLAN_NONE || s->plan_err.kind == PLAN_NODE;
	m->std_out = out_there ? (char *)s->plan_out.pattern : NULL;
	m->std_err = err_there ? (char *)s->plan_err.pattern : NULL;
	if (s->plan_in.kind == PLAN_NONE || s->plan_in.kind == PLAN_NODE)
		m->std_in = (char *)s->plan_in.pattern;
	if (s->plan_in.kind == PLAN_TASK) {
		snprintf(task, sizeof(task), "%u", s->plan_in.task);
		m->stdin_task = task;
	}
	m->has_open_append = true;
	m->open_append = srun_appends(s);
	m->has_label = m->label = s->o.label;
	m->has_unbuffered = m->unbuffered = s->o.unbuffered;
	if (s->o.pty) {
		m->has_pty = m->pty = true;
		m->has_pty_rows = m->has_pty_cols = tty_size(&m->pty_rows, &m->pty_cols);
	}
}

/* "gres/gpu:closest" -> "closest". */
static char *gpu_bind_of(const char *tres_bind)
{
	if (!tres_bind)
		return NULL;
	return (char *)(str_starts(tres_bind, "gres/gpu:") ? tres_bind + 9 : tres_bind);
}

/* What was asked for; a hint or a number of threads a core implies a binding. */
static char *cpu_bind_of(const Pb__JobDesc *d)
{
	if (d->cpu_bind)
		return d->cpu_bind;
	if (d->hint && strstr(d->hint, "bound"))
		return "cores";
	return (d->hint && strstr(d->hint, "multithread")) || d->has_threads_per_core ? "threads" : NULL;
}

/* What the spawner's srun hands on (srun_spawn.c): lines key=value. */
static size_t preput_lines(char ***ret)
{
	const char *text = getenv("BERTH_MPI_PREPUT");
	char *cursor = text ? xstrdup(text) : NULL, *line;
	size_t n = 0, cap = 0;
	while (cursor && (line = str_next(&cursor, "\n"))) {
		if (!strchr(line, '='))
			continue;
		*ret = xgrow(*ret, &cap, n + 1, sizeof(**ret));
		(*ret)[n++] = line;
	}
	return n;
}

static uint32_t tree_width(const struct srun *s)
{
	uint64_t n = s->o.treewidth ? s->o.treewidth : conf_num(s->conf, CONF_TreeWidth);
	return n > 0 && n < 65536 ? (uint32_t)n : 16;
}

static void fill_rest(struct srun *s, const struct part *p, Pb__LaunchSpec *m)
{
	const Pb__JobDesc *d = p->o->desc;
	enum log_level level;
	m->cwd = d->work_dir;
	m->has_kill_on_bad_exit = s->o.kill_on_bad_exit >= 0;
	m->kill_on_bad_exit = s->o.kill_on_bad_exit > 0;
	m->cpu_bind = s->o.external_launcher && !d->cpu_bind ? (char *)"none" : cpu_bind_of(d);
	m->mem_bind = d->mem_bind;
	m->gpu_bind = gpu_bind_of(d->tres_bind);
	m->task_prolog = s->o.task_prolog;
	m->task_epilog = s->o.task_epilog;
	m->hint = d->hint;
	m->has_torch_env = true;
	m->torch_env = !s->o.no_torch && !conf_has(s->conf, CONF_LaunchParameters, "disable_torch_env");
	m->mpi_type = s->o.mpi ? s->o.mpi : (char *)conf_str(s->conf, CONF_MpiDefault);
	m->has_tree_width = true;
	m->tree_width = s->tree_width = tree_width(s);
	m->n_spank_opts = plugins_options_out(&m->spank_opts);
	m->bcast_exec = s->bcast_exec;
	m->n_mpi_preput = preput_lines(&m->mpi_preput);
	m->has_umask = true;
	m->umask = jobopt_umask();
	m->n_rlimits = submit_limits(&s->o, s->conf, &m->rlimits);
	if (s->o.slurmd_debug && log_level_parse(s->o.slurmd_debug, &level) == 0) {
		m->has_slurmd_debug = true;
		m->slurmd_debug = (uint32_t)level;
	}
}

/* Lives as long as the process. 0 or an exit code. */
static int spec_fill(struct srun *s, struct part *p)
{
	struct envlist e = ENVLIST_INIT;
	Pb__LaunchSpec *m = &p->spec;
	pb__launch_spec__init(m);
	env_fill(s, p, &e);
	m->cred = p->step->cred;
	m->argv = p->argv;
	m->n_argv = (size_t)p->argc;
	m->env = e.var;
	m->n_env = e.count;
	fill_io(s, m);
	fill_rest(s, p, m);
	het_spec(s, p);
	int code = s->o.multi_prog ? multi_read(s, s->argv[0], &m->multi_prog, &m->n_multi_prog) : 0;
	if (code)
		return code;
	size_t len = pb__launch_spec__get_packed_size(m);
	uint8_t *data = xmalloc(len);
	pb__launch_spec__pack(m, data);
	wire_hash(data, len, p->hash);
	free(data);
	return 0;
}

/* --- the calls --------------------------------------------------------------------------------------------- */

static void launch_close(struct node_info *n)
{
	watch_set(n->s, &n->watch, 0);
	n->watch.fd = -1;
	wire_client_close(n->launch);
	n->launch = NULL;
	n->answer_by_ms = 0;
}

/* A slurmd that cannot be reached, or goes away before it answers, may be on its way back: try again for a while. */
static bool retry_later(struct node_info *n)
{
	uint64_t now = clock_mono_ms();
	if (n->s->is_terminating || n->conn)
		return false;
	if (!n->retry_until_ms)
		n->retry_until_ms = now + RETRY_FOR_MS;
	n->retry_ms = now + RETRY_MS;
	return now < n->retry_until_ms;
}

/* EAGAIN: the token is older than the slurmd. */
static bool is_transport(int code) { return code == -ESLURM_COMM || code == -EAGAIN; }

static void launch_failed(struct node_info *n, int rc, const struct error *err)
{
	launch_close(n);
	if (!is_transport(rc) || !retry_later(n))
		node_lost(n->s, n, err->line[0] ? err->line : error_text(rc));
}

/* The node answers: started, or why not. One that had been asked before may have started it then, and only its answer was lost. */
static void launch_ready(struct watch *w, uint32_t events)
{
	struct node_info *n = (struct node_info *)w;
	struct error err = { 0 };
	ProtobufCMessage *rsp = NULL;
	uint32_t seq;
	int code = 0;
	(void)events;
	int rc = wire_recv(n->launch, LAUNCH_TIMEOUT_MS, &seq, &code, &rsp, &err);
	launch_close(n);
	const Pb__LaunchRsp *m = (const Pb__LaunchRsp *)rsp;
	bool had_it = m && n->was_sent && (m->code == EEXIST || m->code == ESLURM_CRED);
	n->was_sent = true;
	if (rc < 0 || code < 0)
		launch_failed(n, rc < 0 ? rc : code, &err);
	else if (m && m->code && !had_it)
		node_lost(n->s, n, m->detail && *m->detail ? m->detail : error_text((int)m->code));
	if (rsp)
		protobuf_c_message_free_unpacked(rsp, NULL);
}

static void tell_launch(const struct srun *s, const struct node_info *n)
{
	if (!log_would(LOG_L_VERBOSE))
		return;
	struct bitset *set = bitset_create(s->task_count);
	for (size_t i = 0; i < n->row->n_task_ids; i++)
		bitset_set(set, n->row->task_ids[i]);
	char *ids = idset_format(set);
	bool many = strpbrk(ids, ",-");
	log_verbose("launching StepId=%u.%u on host %s, %zu tasks: %s%s%s", s->job_id, s->step_id, n->row->name, n->row->n_task_ids, many ? "[" : "", ids,
		    many ? "]" : "");
	free(ids);
	bitset_destroy(set);
}

static uint64_t patience_ms(const struct srun *s, uint64_t usual) { return s->o.msg_timeout_sec ? s->o.msg_timeout_sec * 1000ull : usual; }

static void launch_connected(struct watch *w, uint32_t events)
{
	struct node_info *n = (struct node_info *)w;
	struct error err = { 0 };
	uint32_t seq;
	(void)events;
	n->answer_by_ms = clock_mono_ms() + patience_ms(n->s, ANSWER_MS);
	int rc = wire_client_ready(n->launch, &err);
	if (!rc) {
		rc = wire_send(n->launch, RPC_D_LAUNCH, &n->part->spec.base, &seq, &err);
		n->was_sent = n->was_sent || rc;
	}
	if (rc) {
		launch_failed(n, rc, &err);
		return;
	}
	n->watch.ready = launch_ready;
	watch_set(n->s, &n->watch, EPOLLIN);
}

/* All nodes are called at once: one that is dead and does not even refuse keeps nobody else waiting. */
static void launch_one(struct srun *s, struct node_info *n)
{
	struct error err = { 0 };
	n->retry_ms = 0;
	tell_launch(s, n);
	int rc = wire_client_start(client_auth(s->client), n->row->addr, (uint16_t)n->row->port, n->part->hash, &n->launch, &err);
	if (rc) {
		launch_failed(n, rc, &err);
		return;
	}
	n->answer_by_ms = clock_mono_ms() + patience_ms(s, LAUNCH_TIMEOUT_MS);
	n->watch = (struct watch){ .ready = launch_connected, .fd = wire_client_fd(n->launch) };
	watch_set(s, &n->watch, EPOLLOUT);
}

uint64_t launch_due(const struct node_info *n)
{
	uint64_t at = n->retry_ms ? n->retry_ms : n->answer_by_ms;
	return at && !n->is_ended ? at : UINT64_MAX;
}

void launch_again(struct srun *s, uint64_t now)
{
	for (size_t i = 0; i < s->node_count; i++) {
		struct node_info *n = &s->node[i];
		struct error err = { 0 };
		if (launch_due(n) > now)
			continue;
		if (n->retry_ms)
			launch_one(s, n);
		else if (n->conn)              /* its slurmstepd is here: only the answer was lost */
			launch_close(n);
		else
			launch_failed(n, error_set(&err, ESLURM_SOCKET_TIMEOUT, "no answer from %s:%u: %s", n->row->addr, n->row->port, error_text(-ESLURM_SOCKET_TIMEOUT)), &err);
	}
}

/* Each node takes two descriptors, its slurmd's and its slurmstepd's, while many a shell allows 1024. Only for srun: what the tasks get has been read before. */
static void files_allow(size_t nodes)
{
	struct rlimit rl;
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < 2 * nodes + FILES_OWN) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
}

int launch_send(struct srun *s)
{
	int code = 0;
	for (size_t i = 0; !code && i < s->parts; i++)
		code = spec_fill(s, &s->part[i]);
	files_allow(s->node_count);
	for (size_t i = 0; !code && i < s->node_count; i++)
		launch_one(s, &s->node[i]);
	return code;
}

static int attach_one(struct srun *s, struct node_info *n, const Pb__AttachReq *m)
{
	struct error err = { 0 };
	struct wire_client *c = NULL;
	ProtobufCMessage *rsp = NULL;
	int rc = wire_client_open(client_auth(s->client), n->row->addr, (uint16_t)n->row->port, LAUNCH_TIMEOUT_MS, NULL, &c, &err);
	if (!rc)
		rc = wire_call(c, RPC_D_ATTACH, &m->base, LAUNCH_TIMEOUT_MS, &rsp, &err);
	int code = rc < 0 ? -rc : (int)((const Pb__Result *)rsp)->code;
	if (rsp)
		protobuf_c_message_free_unpacked(rsp, NULL);
	wire_client_close(c);
	if (code == ESLURM_ALREADY_DONE)
		log_info("Node %s: no tasks running", n->row->name);
	else if (code)
		log_error("Node %s: %s", n->row->name, rc < 0 && err.line[0] ? err.line : error_text(code));
	if (code)
		node_ended(s, n);
	return code;
}

int launch_attach(struct srun *s)
{
	Pb__AttachReq m = PB__ATTACH_REQ__INIT;
	size_t failed = 0;
	m.job_id = s->job_id;
	m.step_id = s->step_id;
	m.host = s->host;
	m.port = s->listen_port;
	m.key.data = s->io_key;
	m.key.len = sizeof(s->io_key);
	for (size_t i = 0; i < s->node_count; i++)
		failed += attach_one(s, &s->node[i], &m) != 0;
	return failed && failed == s->node_count ? srun_exit_code(1) : 0;
}
