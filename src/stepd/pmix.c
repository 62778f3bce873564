/* pmix.c - slurmstepd's side of PMIx: starts the helper, carries what it has to say (see pmix.h) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/str.h"
#include "model/envlist.h"
#include "stepd/contain.h"
#include "stepd/io.h"
#include "stepd/mpi.h"
#include "stepd/peers.h"
#include "stepd/pmix.h"
#include "stepd/pmix_wire.h"
#include "stepd/step.h"
#include "stepd/user.h"

#define READY_MS 30000
#define GONE_MS 5000
#define HELPER "slurmstepd-pmix"

static struct {
	uv_poll_t poll;
	uv_timer_t timer;
	struct step *step;
	pid_t pid;                 /* 0: none, or it has ended */
	int fd;
	bool polled, asked_to_end;
	uint8_t *in, *out;
	size_t in_len, in_cap, out_at, out_len, out_cap;
	struct envlist *env;       /* of each local task */
	char dir[512];
} px = { .fd = -1 };

static void on_helper(uv_poll_t *poll, int status, int events);

static void helper_watch(void)
{
	if (px.polled && px.fd >= 0)
		uv_poll_start(&px.poll, UV_READABLE | (px.out_len ? UV_WRITABLE : 0), on_helper);
}

static void frame_add(uint8_t type, const void *a, size_t a_len, const void *b, size_t b_len)
{
	if (px.fd < 0)
		return;
	if (!px.out_len)
		px.out_at = 0;
	px.out = xgrow(px.out, &px.out_cap, px.out_at + px.out_len + 5 + a_len + b_len, 1);
	uint8_t *at = px.out + px.out_at + px.out_len;
	put_u32(at, (uint32_t)(1 + a_len + b_len));
	at[4] = type;
	memcpy(at + 5, a, a_len);
	if (b_len)
		memcpy(at + 5 + a_len, b, b_len);
	px.out_len += 5 + a_len + b_len;
	helper_watch();
}

static bool flush(void)
{
	while (px.out_len) {
		ssize_t n = send(px.fd, px.out + px.out_at, px.out_len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		px.out_at += (size_t)n;
		px.out_len -= (size_t)n;
	}
	return true;
}

/* --- what the helper says ------------------------------------------------------------------------------ */

static void env_take(const uint8_t *data, size_t n)
{
	struct step *s = px.step;
	uint32_t local = n >= 4 ? get_u32(data) : UINT32_MAX;
	const char *at = (const char *)data + 4, *end = (const char *)data + n;
	if (local >= s->tasks)
		return;
	while (at < end) {
		const char *stop = memchr(at, 0, (size_t)(end - at));
		if (!stop)
			return;
		envlist_load(&px.env[local], (char *const *)&at, 1);
		at = stop + 1;
	}
}

static void frame_run(uint8_t type, const uint8_t *data, size_t n, bool *ready, char **failed)
{
	struct step *s = px.step;
	if (type == PMIX_F_ENV)
		env_take(data, n);
	else if (type == PMIX_F_READY && ready)
		*ready = true;
	else if (type == PMIX_F_FAILED && failed)
		*failed = strndup((const char *)data, n);
	else if (type == PMIX_F_GATHER && n >= 12)
		peers_gather(s, get_u64(data), get_u32(data + 8), data + 12, n - 12);
	else if (type == PMIX_F_MESSAGE && n >= 4 && get_u32(data) < s->cred->layout->n_node)
		peers_send(s, get_u32(data), data + 4, n - 4);
	else if (type == PMIX_F_ABORT && n == 8)
		mpi_abort(s, get_u32(data), (int)get_u32(data + 4));
	else
		log_error("%s of step %s says what makes no sense", HELPER, s->name);
}

/* false: end of file, or too large a frame. */
static bool helper_read(bool *ready, char **failed)
{
	size_t want = 65536 + (px.in_len >= 4 ? get_u32(px.in) : 0), at = 0;
	px.in = xgrow(px.in, &px.in_cap, px.in_len + want, 1);
	ssize_t n = recv(px.fd, px.in + px.in_len, px.in_cap - px.in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	px.in_len += (size_t)n;
	while (px.in_len - at >= 5) {
		uint32_t len = get_u32(px.in + at);
		if (!len || len > PMIX_FRAME_MAX)
			return false;
		if (px.in_len - at - 4 < len)
			break;
		frame_run(px.in[at + 4], px.in + at + 5, len - 1, ready, failed);
		at += 4 + len;
	}
	memmove(px.in, px.in + at, px.in_len - at);
	px.in_len -= at;
	return true;
}

static void on_closed(uv_handle_t *h)
{
	(void)h;
	close(px.fd);
	px.fd = -1;
	step_check_end(px.step);
}

static void helper_close(void)
{
	if (!px.polled)
		return;
	px.polled = false;
	uv_close((uv_handle_t *)&px.poll, on_closed);
}

static void on_helper(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	if (((events & UV_WRITABLE) && !flush()) || ((status < 0 || (events & UV_READABLE)) && !helper_read(NULL, NULL))) {
		if (!px.asked_to_end && px.step->running && !px.step->killed) {
			io_text(px.step, "the PMIx helper of this node has died; MPI programs cannot go on");
			contain_signal(px.step, SIGKILL);
		}
		helper_close();
		return;
	}
	helper_watch();
}

/* --- starting it --------------------------------------------------------------------------------------------- */

/* Texts: name of the job, this node's place, number of tasks, number of nodes, folder; then for each node its name and its ranks "0,1,5". */
static char *job_text(const struct step *s, size_t *ret_n)
{
	const Pb__StepLayout *l = s->cred->layout;
	struct str out = STR_INIT;
	str_addf(&out, "slurm.pmix.%u.%u%c%u%c%u%c%zu%c%s%c", s->whole_job, s->step_id, 0, s->start->node_index, 0, l->num_tasks, 0, l->n_node, 0, px.dir, 0);
	for (size_t i = 0; i < l->n_node; i++) {
		str_addf(&out, "%s%c", l->node[i]->name, 0);
		for (size_t k = 0; k < l->node[i]->n_task_ids; k++)
			str_addf(&out, "%s%u", k ? "," : "", l->node[i]->task_ids[k]);
		str_add_n(&out, "", 1);
	}
	*ret_n = out.len;
	return str_take(&out);
}

/* A folder for the library's files: the user's, in the spool. */
static int dir_make(struct step *s)
{
	const char *base = step_conf(s, "PMIxCliTmpDirBase");
	if (base) {                        /* nodes may share it, and anybody may write there: it must be ours from the beginning */
		snprintf(px.dir, sizeof px.dir, "%s/pmix.%u.%u.%s", base, s->job_id, s->step_id, s->node);
		if (mkdir(px.dir, 0700) < 0) {
			int rc = step_fail(s, errno, "cannot make %s (PMIxCliTmpDirBase in mpi.conf): %s", px.dir, strerror(errno));
			px.dir[0] = 0;
			return rc;
		}
	} else {
		snprintf(px.dir, sizeof px.dir, "%s/pmix.%u.%u", s->start->spool_dir, s->job_id, s->step_id);
	}
	int rc = user_dir_make(s, px.dir, 0700);
	return rc ? step_fail(s, -rc, "cannot make %s for the job's user: %s", px.dir, strerror(-rc)) : 0;
}

/* mpi.conf's PMIxEnv: "NAME=value;NAME=value". */
static void env_site(struct step *s, struct envlist *e)
{
	const char *all = step_conf(s, "PMIxEnv");
	char *list = xstrdup(all ? all : ""), *rest = list, *word;
	while ((word = strsep(&rest, ";"))) {
		word += strspn(word, " ");
		if (*word && *word != '=')
			envlist_load(e, &word, 1);
	}
	free(list);
}

static void helper_exec(struct step *s, int fd, const char *path)
{
	struct envlist e = ENVLIST_INIT;
	sigset_t all;
	sigfillset(&all);                  /* what ends the tasks must not end it before them */
	envlist_set(&e, "PATH", "/usr/bin:/bin");
	envlist_set(&e, "LC_ALL", "C.UTF-8");
	env_site(s, &e);
	envlist_set(&e, "TMPDIR", px.dir);
	if (user_become(s) < 0 || dup2(fd, PMIX_CHANNEL) < 0)
		_exit(1);
	(void)fcntl(PMIX_CHANNEL, F_SETFD, 0);
	sigprocmask(SIG_SETMASK, &all, NULL);
	execve(path, (char *[]){ (char *)HELPER, NULL }, e.var);
	_exit(127);
}

static int helper_await(struct step *s)
{
	bool ready = false;
	char *failed = NULL;
	while (!ready && !failed) {
		struct pollfd p = { .fd = px.fd, .events = POLLIN };
		int n = poll(&p, 1, READY_MS);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || !helper_read(&ready, &failed))
			break;
	}
	if (ready)
		return 0;
	step_fail(s, EIO, "PMIx cannot be served on node %s: %s", s->node, failed ? failed : "its helper " HELPER " does not start");
	free(failed);
	return -1;
}

int pmix_prepare(struct step *s)
{
	char path[1024];
	int pair[2];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof HELPER - 1);
	path[n > 0 ? n : 0] = 0;
	char *slash = strrchr(path, '/');
	snprintf(slash ? slash + 1 : path, sizeof HELPER, "%s", HELPER);
	if (access(path, X_OK) < 0)
		return step_fail(s, ENOENT, "PMIx cannot be served on node %s: %s is not installed", s->node, path);
	px.step = s;
	px.env = xcalloc(s->tasks + 1, sizeof *px.env);
	if (dir_make(s) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return step_fail(s, errno, "socketpair: %s", strerror(errno));
	px.pid = contain_fork(s, NULL);
	if (px.pid < 0)
		return step_fail(s, errno, "cannot fork %s: %s", HELPER, strerror(errno));
	if (!px.pid)
		helper_exec(s, pair[1], path);
	close(pair[1]);
	px.fd = pair[0];
	size_t len;
	char *text = job_text(s, &len);
	frame_add(PMIX_F_JOB, text, len, NULL, 0);
	free(text);
	if (!flush() || helper_await(s) < 0)
		return step_fail(s, EIO, "PMIx cannot be served on node %s", s->node);
	(void)fcntl(px.fd, F_SETFL, O_RDWR | O_NONBLOCK);
	uv_poll_init(&s->loop, &px.poll, px.fd);
	px.polled = true;
	helper_watch();
	return 0;
}

void pmix_child(const struct step *s, const struct task *t, struct envlist *e)
{
	env_site(px.step, e);
	(void)s;
	envlist_load(e, px.env[t->local].var, px.env[t->local].count);
}

/* --- the other nodes -------------------------------------------------------------------------------------------- */

void pmix_gathered(struct step *s, uint64_t id, const uint8_t *parts, size_t n)
{
	uint8_t head[8];
	(void)s;
	put_u64(head, id);
	frame_add(PMIX_F_WHOLE, head, sizeof head, parts, n);
}

void pmix_message(struct step *s, uint32_t node, const uint8_t *data, size_t n)
{
	uint8_t head[4];
	(void)s;
	put_u32(head, node);
	frame_add(PMIX_F_MESSAGE, head, sizeof head, data, n);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

bool pmix_reaped(struct step *s, pid_t pid)
{
	(void)s;
	if (!px.pid || pid != px.pid)
		return false;
	px.pid = 0;
	return true;
}

static void on_slow(uv_timer_t *timer)
{
	(void)timer;
	if (px.pid)
		kill(px.pid, SIGKILL);
}

/* The helper has removed what was in it; what is there nevertheless is the user's own, and only he may follow its names. */
static void dir_remove(struct step *s)
{
	if (!rmdir(px.dir) || errno == ENOENT)
		return;
	pid_t pid = fork();
	if (!pid) {
		if (user_become(s) < 0)
			_exit(1);
		execl("/bin/rm", "rm", "-rf", "--", px.dir, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	(void)rmdir(px.dir);
}

bool pmix_finish(struct step *s)
{
	if (px.pid && !px.asked_to_end) {
		px.asked_to_end = true;
		if (px.fd >= 0)
			shutdown(px.fd, SHUT_RDWR);
		uv_timer_init(&s->loop, &px.timer);
		uv_timer_start(&px.timer, on_slow, GONE_MS, 0);
	}
	if (px.pid)
		return false;
	if (px.dir[0])
		dir_remove(s);
	px.dir[0] = 0;
	return true;
}
