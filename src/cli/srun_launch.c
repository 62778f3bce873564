/* srun_launch.c - telling the nodes what to start
 *
 * One LaunchSpec for all nodes. What brings it to a node, a connection or a letter through the tree of slurmds (client/fan.h), carries a token bound to the hash of its
 * bytes, so a slurmd believes argv, environment and addresses only from the user himself. All nodes are told before any answer is waited for. */
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
	m->has_preserve_env = m->preserve_env = s->o.preserve_env;
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
	if (d->has_ntasks_per_core)                /* srun(1), --ntasks-per-core */
		return d->ntasks_per_core == 1 ? "cores" : "threads";
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
	m->tree_width = s->tree_width = client_tree_width(s->conf, s->o.treewidth);
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
	return s->o.multi_prog ? multi_read(s, s->argv[0], &m->multi_prog, &m->n_multi_prog) : 0;
}

/* --- the calls --------------------------------------------------------------------------------------------- */

/* A slurmd that cannot be reached, or goes away before it answers, may be on its way back: try again for a while. EAGAIN: the token is older than the slurmd. */
static bool retry_later(struct node_info *n, int code)
{
	uint64_t now = clock_mono_ms();
	if (n->s->is_terminating || (code != -ESLURM_COMM && code != -EAGAIN))
		return false;
	if (!n->retry_until_ms)
		n->retry_until_ms = now + RETRY_FOR_MS;
	n->retry_ms = now + RETRY_MS;
	return now < n->retry_until_ms;
}

/* The node answers: started, or why not. One that had been asked before may have started it then, and only its answer was lost; so it is where its slurmstepd is here. */
static void launch_answered(size_t i, int code, const ProtobufCMessage *rsp, const struct error *err, void *arg)
{
	const struct part *p = arg;
	struct node_info *n = &p->s->node[p->first_node + i];
	const Pb__LaunchRsp *m = (const Pb__LaunchRsp *)rsp;
	bool had_it = m && client_fan_was_sent(p->fan, i) && (m->code == EEXIST || m->code == ESLURM_CRED);
	n->retry_ms = 0;
	if (n->is_ended || (n->conn && code))
		return;
	if (code && !retry_later(n, code))
		node_lost(p->s, n, err->line[0] ? err->line : error_text(code));
	else if (m && m->code && !had_it)
		node_lost(p->s, n, m->detail && *m->detail ? m->detail : error_text((int)m->code));
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

static int patience_ms(const struct srun *s, int usual) { return s->o.msg_timeout_sec ? (int)(s->o.msg_timeout_sec * 1000u) : usual; }

static void fan_ready(struct watch *w, uint32_t events)
{
	(void)events;
	client_fan_run(((struct part *)((char *)w - offsetof(struct part, fan_watch)))->fan);
}

static struct client_fan_node *targets_of(const struct srun *s, size_t first, size_t n)
{
	struct client_fan_node *list = xcalloc(n + 1, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = (struct client_fan_node){ s->node[first + i].row->name, s->node[first + i].row->addr, (uint16_t)s->node[first + i].row->port };
	return list;
}

static void part_launch(struct srun *s, struct part *p)
{
	size_t n = p->step->layout->n_node;
	struct client_fan_call call = { .rpc = RPC_D_LAUNCH, .req = &p->spec.base, .width = s->tree_width };
	call.connect_ms = patience_ms(s, LAUNCH_TIMEOUT_MS);
	call.answer_ms = patience_ms(s, ANSWER_MS);
	call.patience_ms = patience_ms(s, 0);
	for (size_t i = 0; i < n; i++)
		tell_launch(s, &s->node[p->first_node + i]);
	p->s = s;
	p->targets = targets_of(s, p->first_node, n);
	p->fan = client_fan_start(s->client, &call, p->targets, n, launch_answered, p);
	p->fan_watch = (struct watch){ .ready = fan_ready, .fd = client_fan_fd(p->fan) };
	watch_set(s, &p->fan_watch, EPOLLIN);
}

uint64_t launch_due(const struct srun *s)
{
	uint64_t at = UINT64_MAX;
	for (size_t i = 0; i < s->parts; i++)
		if (s->part[i].fan && client_fan_due(s->part[i].fan) < at)
			at = client_fan_due(s->part[i].fan);
	for (size_t i = 0; i < s->node_count; i++)
		if (s->node[i].retry_ms && !s->node[i].is_ended && s->node[i].retry_ms < at)
			at = s->node[i].retry_ms;
	return at;
}

void launch_again(struct srun *s, uint64_t now)
{
	for (size_t i = 0; i < s->node_count; i++) {
		struct node_info *n = &s->node[i];
		if (!n->retry_ms || n->is_ended || n->retry_ms > now)
			continue;
		n->retry_ms = 0;
		client_fan_again(n->part->fan, i - n->part->first_node);
	}
	for (size_t i = 0; i < s->parts; i++)
		if (s->part[i].fan && client_fan_due(s->part[i].fan) <= now)
			client_fan_run(s->part[i].fan);
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

void launch_tell_figures(const struct srun *s)
{
	for (size_t i = 0; i < s->parts; i++) {
		struct client_fan_figures f = s->part[i].fan ? client_fan_figures(s->part[i].fan) : (struct client_fan_figures){ 0 };
		log_debug("launch on %zu nodes: %u messages of ours, %u in all, %u levels", s->part[i].step->layout->n_node, f.own, f.all, f.depth);
	}
}

int launch_send(struct srun *s)
{
	int code = 0;
	for (size_t i = 0; !code && i < s->parts; i++)
		code = spec_fill(s, &s->part[i]);
	files_allow(s->node_count);
	for (size_t i = 0; !code && i < s->parts; i++)
		part_launch(s, &s->part[i]);
	return code;
}

struct attach { struct srun *s; size_t failed; };

static void attach_answered(size_t i, int code, const ProtobufCMessage *rsp, const struct error *err, void *arg)
{
	struct attach *a = arg;
	struct node_info *n = &a->s->node[i];
	int why = code ? -code : (int)((const Pb__Result *)rsp)->code;
	if (why == ESLURM_ALREADY_DONE)
		log_info("Node %s: no tasks running", n->row->name);
	else if (why)
		log_error("Node %s: %s", n->row->name, code && err->line[0] ? err->line : error_text(why));
	if (why)
		node_ended(a->s, n);
	a->failed += why != 0;
}

int launch_attach(struct srun *s)
{
	Pb__AttachReq m = PB__ATTACH_REQ__INIT;
	struct client_fan_call call = { .rpc = RPC_D_ATTACH, .req = &m.base, .connect_ms = LAUNCH_TIMEOUT_MS, .answer_ms = LAUNCH_TIMEOUT_MS };
	struct attach a = { s, 0 };
	m.job_id = s->job_id;
	m.step_id = s->step_id;
	m.host = s->host;
	m.port = s->listen_port;
	m.key.data = s->io_key;
	m.key.len = sizeof(s->io_key);
	files_allow(s->node_count);
	struct client_fan_node *targets = targets_of(s, 0, s->node_count);
	struct client_fan *f = client_fan_start(s->client, &call, targets, s->node_count, attach_answered, &a);
	client_fan_finish(f);
	client_fan_free(f);
	free(targets);
	return a.failed && a.failed == s->node_count ? srun_exit_code(1) : 0;
}
