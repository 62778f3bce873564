/* steps.c - the slurmstepds of this node (see steps.h) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "noded/jobs.h"
#include "noded/ping.h"
#include "noded/cgroup.h"
#include "noded/mute.h"
#include "noded/namespace.h"
#include "noded/stepd.h"
#include "noded/stat.h"
#include "noded/steps.h"
#include "noded/stuck.h"

#define EVENT_MAX (4u << 20)
#define UNREAD_MAX (1u << 20)
#define AGAIN_MS 1000          /* one that takes no connections is tried again */
#define SLOW_MS 5000           /* a slurmstepd just started opens its socket within that time */

struct out_msg { uv_write_t req; uint8_t *data; };

/* end: "" the completion; ".part" what stands for it while slurmstepd lives (stepd/done.h). */
static void done_path(const struct noded *n, uint32_t job_id, uint32_t step_id, const char *end, char *buf, size_t size)
{
	snprintf(buf, size, "%s/done.%u.%u%s", n->spool, job_id, step_id, end);
}

static Pb__StepdEvent *done_read(const struct noded *n, uint32_t job_id, uint32_t step_id, const char *end)
{
	char path[3072];
	uint8_t buf[65536];
	done_path(n, job_id, step_id, end, path, sizeof path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	ssize_t len = read(fd, buf, sizeof buf);
	close(fd);
	return len > 0 ? pb__stepd_event__unpack(NULL, (size_t)len, buf) : NULL;
}

static void done_remove(const struct noded *n, uint32_t job_id, uint32_t step_id, const char *end)
{
	char path[3072];
	done_path(n, job_id, step_id, end, path, sizeof path);
	(void)unlink(path);
}

/* slurmstepd was killed: what stood for its completion is the completion. */
static void done_by_will(const struct noded *n, uint32_t job_id, uint32_t step_id)
{
	char from[3072], to[3072];
	done_path(n, job_id, step_id, ".part", from, sizeof from);
	done_path(n, job_id, step_id, "", to, sizeof to);
	if (rename(from, to) < 0)
		log_error("cannot keep %s: %s", to, strerror(errno));
}

void steps_forget_done(struct noded *n, const Pb__NodeEvent *e)
{
	Pb__StepdEvent *event = done_read(n, e->job_id, e->step_id, "");
	if (!event || event->restarts == e->restarts)
		done_remove(n, e->job_id, e->step_id, "");
	if (event)
		pb__stepd_event__free_unpacked(event, NULL);
}

/* Of this run, not of one before whose end was not acknowledged yet. */
static Pb__StepdEvent *done_of(const struct node_step *st, const char *end)
{
	Pb__StepdEvent *event = done_read(st->node, st->job_id, st->step_id, end);
	if (event && st->known && event->restarts != st->restarts) {
		pb__stepd_event__free_unpacked(event, NULL);
		return NULL;
	}
	return event;
}

bool steps_of_word(const char *word, uint32_t *ret)
{
	char rest;
	return stepid_of_word(word, ret) || sscanf(word, "%u%c", ret, &rest) == 1;
}

struct node_step *steps_find(struct noded *n, uint32_t job_id, uint32_t step_id)
{
	for (struct node_step *st = n->steps; st; st = st->next)
		if (st->job_id == job_id && st->step_id == step_id)
			return st;
	return NULL;
}

bool steps_is_later(const struct node_step *st, bool has_restarts, uint32_t restarts) { return has_restarts && st->known && st->restarts > restarts; }

size_t steps_count_job(const struct noded *n, uint32_t job_id)
{
	size_t count = 0;
	for (struct node_step *st = n->steps; st; st = st->next)
		count += st->job_id == job_id;
	return count;
}

static void step_remove(struct node_step *st)
{
	for (struct node_step **at = &st->node->steps; *at; at = &(*at)->next)
		if (*at == st) {
			*at = st->next;
			return;
		}
}

static void on_step_closed(uv_handle_t *h)
{
	struct node_step *st = h->data;
	free(st->in);
	free(st->pids);
	free(st->tasks);
	if (st->end)
		pb__stepd_event__free_unpacked(st->end, NULL);
	free(st);
}

static void on_sweep(uv_timer_t *timer) { cgroup_sweep(timer->data); }

/* Processes just killed take a moment to leave their cgroup. */
static void sweep_later(struct noded *n)
{
	static uv_timer_t timer;
	if (!timer.data) {
		uv_timer_init(&n->loop, &timer);
		timer.data = n;
	}
	uv_timer_start(&timer, on_sweep, 200, 0);
}

/* A slurmstepd was killed: end its processes, take away what it would have. */
static void step_clean(struct node_step *st)
{
	char path[4096];
	char word[16];
	struct noded *n = st->node;
	stepid_text(st->step_id, word, sizeof word);
	snprintf(path, sizeof path, "%s/end.%u.%u", n->spool, st->job_id, st->step_id); /* SLURM_JOB_END_REASON */
	(void)unlink(path);
	if (n->cgroup) {
		snprintf(path, sizeof path, "%s/job_%u/step_%s/cgroup.kill", n->cgroup, st->job_id, word);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			if (write(fd, "1", 1) < 0)
				log_error("%s: %s", path, strerror(errno));
			close(fd);
		}
	}
	sweep_later(n);
	for (size_t i = 0; i < st->n_pids; i++)
		kill((pid_t)st->pids[i], SIGKILL);
	if (st->known) {                           /* of a container (stepd/oci.c) */
		snprintf(path, sizeof path, "%s/oci-job%u-%s", n->spool, st->job_id, word);
		namespace_remove_as(path, st->uid);
	}
	snprintf(path, sizeof path, "%s/step.%u.%u", n->spool, st->job_id, st->step_id);
	(void)unlink(path);
	if (st->batch) {
		snprintf(path, sizeof path, "%s/job%05u/slurm_script", n->spool, st->job_id);
		(void)unlink(path);
		*strrchr(path, '/') = 0;
		(void)rmdir(path);
	}
}

/* Whose step it is, and of which run of the job: told by slurmstepd, or by what it left. */
static void step_know(struct node_step *st, const Pb__StepdEvent *e)
{
	st->known = true;
	st->uid = e->uid;
	st->batch = e->batch;
	st->restarts = e->restarts;
}

static void step_gone(struct node_step *st)
{
	struct noded *n = st->node;
	Pb__StepdEvent *event = done_of(st, "");
	step_remove(st);
	if (!event && st->end) {
		event = st->end;
		st->end = NULL;
	} else if (!event) {
		log_error("slurmstepd of step %u.%d was killed", st->job_id, (int)st->step_id);
		event = done_of(st, ".part");
		step_clean(st);
		done_by_will(n, st->job_id, st->step_id);
	}
	if (event && !st->known)
		step_know(st, event);
	jobs_step_end(n, st, event);
	ping_step_told(n);
	stat_told(st, NULL);
	if (event)
		stuck_over(n, st);
	if (event)
		pb__stepd_event__free_unpacked(event, NULL);
	uv_close((uv_handle_t *)&st->pipe, on_step_closed);
}

static void step_told(struct node_step *st, const Pb__StepdEvent *e)
{
	if (e->has_over && e->over) {
		uint8_t *copy = xmalloc(pb__stepd_event__get_packed_size(e));
		size_t len = pb__stepd_event__pack(e, copy);
		if (st->end)
			pb__stepd_event__free_unpacked(st->end, NULL);
		st->end = pb__stepd_event__unpack(NULL, len, copy);
		free(copy);
		return;
	}
	if (e->kind == PB__STEPD_EVENT__KIND__FAILED) {
		stuck_found(st->node, st, e->text);
		return;
	}
	if (e->kind == PB__STEPD_EVENT__KIND__FIGURES)
		stat_told(st, e);
	if (e->kind != PB__STEPD_EVENT__KIND__PIDS)
		return;
	bool first = !st->known;
	step_know(st, e);
	st->pids = xrealloc(st->pids, (e->n_pid + 1) * sizeof *st->pids);
	st->tasks = xrealloc(st->tasks, (e->n_task + 1) * sizeof *st->tasks);
	memcpy(st->pids, e->pid, e->n_pid * sizeof *st->pids);
	memcpy(st->tasks, e->task, e->n_task * sizeof *st->tasks);
	st->n_pids = e->n_pid;
	st->asked = st->doubted = false;
	ping_step_told(st->node);
	if (first)
		jobs_step_adopted(st->node, st);
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	struct node_step *st = h->data;
	(void)want;
	st->in = xgrow(st->in, &st->cap, st->len + 4096, 1);
	buf->base = (char *)st->in + st->len;
	buf->len = st->cap - st->len;
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	struct node_step *st = stream->data;
	size_t at = 0;
	(void)buf;
	if (got < 0) {
		uv_read_stop(stream);
		step_gone(st);
		return;
	}
	st->len += (size_t)got;
	while (st->len - at >= 4) {
		const uint8_t *h = st->in + at;
		uint32_t len = (uint32_t)h[0] << 24 | (uint32_t)h[1] << 16 | (uint32_t)h[2] << 8 | h[3];
		if (len > EVENT_MAX) {
			log_error("step %u.%d sent something that is no event; it is ended", st->job_id, (int)st->step_id);
			uv_read_stop(stream);
			step_gone(st);
			return;
		}
		if (st->len - at - 4 < len)
			break;
		Pb__StepdEvent *e = pb__stepd_event__unpack(NULL, len, h + 4);
		if (e) {
			step_told(st, e);
			pb__stepd_event__free_unpacked(e, NULL);
		}
		at += 4 + len;
	}
	memmove(st->in, st->in + at, st->len - at);
	st->len -= at;
}

static void on_written(uv_write_t *req, int status)
{
	struct out_msg *msg = (struct out_msg *)req;
	(void)status;
	free(msg->data);
	free(msg);
}

/* With its length before it; malloc'd. */
static uint8_t *message_frame(const ProtobufCMessage *message, size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint8_t *data = xmalloc(len + 4);
	data[0] = (uint8_t)(len >> 24), data[1] = (uint8_t)(len >> 16), data[2] = (uint8_t)(len >> 8), data[3] = (uint8_t)len;
	protobuf_c_message_pack(message, data + 4);
	*ret_len = len + 4;
	return data;
}

/* Never waits: what slurmstepd does not read now is kept here, up to UNREAD_MAX; then it hangs and further orders are lost on it (mute.h). */
static void step_send(struct node_step *st, const ProtobufCMessage *message)
{
	if (!st->reached || uv_stream_get_write_queue_size((uv_stream_t *)&st->pipe) > UNREAD_MAX) {
		log_error("slurmstepd of step %u.%d takes no orders", st->job_id, (int)st->step_id);
		return;
	}
	size_t len;
	struct out_msg *msg = xmalloc(sizeof *msg);
	msg->data = message_frame(message, &len);
	uv_buf_t buf = uv_buf_init((char *)msg->data, (unsigned)len);
	uv_write(&msg->req, (uv_stream_t *)&st->pipe, &buf, 1, on_written);
}

void steps_order(struct node_step *st, const Pb__StepdOrder *order) { step_send(st, &order->base); }

static void step_connected(struct node_step *st, int fd)
{
	uv_pipe_open(&st->pipe, fd);
	uv_read_start((uv_stream_t *)&st->pipe, on_alloc, on_read);
	st->reached = true;
}

/* fd negative: there is no connection to it yet. */
static struct node_step *step_add(struct noded *n, int fd, uint32_t job_id, uint32_t step_id)
{
	struct node_step *st = xcalloc(1, sizeof *st);
	st->node = n;
	st->job_id = job_id;
	st->step_id = step_id;
	uv_pipe_init(&n->loop, &st->pipe, 0);
	st->pipe.data = st;
	if (fd >= 0)
		step_connected(st, fd);
	st->next = n->steps;
	n->steps = st;
	return st;
}

/* What stands for the completion until there is one (stepd/done.h): locked, and held by slurmstepd alone. A descriptor, or a negative code and err. */
static int will_make(struct noded *n, const Pb__StepdStart *start, struct error *err)
{
	const Pb__StepCred *c = start->cred;
	Pb__StepdEvent will = PB__STEPD_EVENT__INIT;
	uint8_t buf[256];
	char path[3072];
	will.kind = PB__STEPD_EVENT__KIND__DONE;
	will.has_status = will.has_job_id = will.has_step_id = will.has_uid = will.has_batch = will.has_restarts = will.has_started = will.has_killed = true;
	will.killed = true;
	will.status = SIGKILL;
	will.text = (char *)"slurmstepd was killed";
	will.job_id = c->job_id;
	will.step_id = c->step_id;
	will.uid = c->uid;
	will.batch = start->batch != NULL;
	will.restarts = c->job->restarts;
	done_path(n, c->job_id, c->step_id, ".part", path, sizeof path);
	(void)unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t len = pb__stepd_event__pack(&will, buf);
	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB)) {
		ssize_t put = write(fd, buf, len);
		if (put == (ssize_t)len)
			return fd;
		errno = put < 0 ? errno : ENOSPC;
	}
	int rc = error_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	if (fd >= 0) {
		(void)unlink(path);
		close(fd);
	}
	return rc;
}

static void on_bcast_closed(uv_handle_t *h) { free(h); }

static void on_bcast_written(uv_write_t *req, int status)
{
	struct out_msg *msg = (struct out_msg *)req;
	(void)status;
	uv_close((uv_handle_t *)req->handle, on_bcast_closed);
	free(msg->data);
	free(msg);
}

/* sbcast: told what to do, then left alone; it reports to the sender, who holds the other end. */
static int bcast_spawn(struct noded *n, const Pb__StepdStart *start, struct error *err)
{
	pid_t pid;
	int channel = stepd_start(n, "slurmstepd: [sbcast]", -1, &pid);
	if (channel < 0)
		return error_set(err, channel, "cannot start %s: %s", n->stepd_path, strerror(-channel));
	uv_pipe_t *pipe = xcalloc(1, sizeof *pipe);
	uv_pipe_init(&n->loop, pipe, 0);
	uv_pipe_open(pipe, channel);
	size_t len;
	struct out_msg *msg = xmalloc(sizeof *msg);
	msg->data = message_frame(&start->base, &len);
	uv_buf_t buf = uv_buf_init((char *)msg->data, (unsigned)len);
	uv_write(&msg->req, (uv_stream_t *)pipe, &buf, 1, on_bcast_written);
	return 0;
}

static size_t stopped_find(const struct noded *n, uint32_t job_id)
{
	size_t i = 0;
	while (i < n->stopped_n && n->stopped[i] != job_id)
		i++;
	return i;
}

void steps_stopped(struct noded *n, uint32_t job_id, bool stopped)
{
	size_t i = stopped_find(n, job_id);
	if (stopped && i == n->stopped_n) {
		n->stopped = xgrow(n->stopped, &n->stopped_cap, n->stopped_n + 1, sizeof *n->stopped);
		n->stopped[n->stopped_n++] = job_id;
	} else if (!stopped && i < n->stopped_n)
		n->stopped[i] = n->stopped[--n->stopped_n];
}

int steps_spawn(struct noded *n, const Pb__StepdStart *start, struct error *err)
{
	pid_t pid;
	char name[32], title[64];
	const Pb__StepCred *c = start->cred;
	if (start->spec && start->spec->bcast)
		return bcast_spawn(n, start, err);
	if (steps_find(n, c->job_id, c->step_id))
		return error_set(err, EEXIST, "step %u.%d runs on this node already", c->job_id, (int)c->step_id);
	int will = will_make(n, start, err);
	if (will < 0)
		return will;
	stepid_format(c->job_id, c->step_id, name, sizeof name);
	snprintf(title, sizeof title, "slurmstepd: [%s]", name);
	int channel = stepd_start(n, title, will, &pid);
	close(will);
	if (channel < 0) {
		done_remove(n, c->job_id, c->step_id, ".part");
		return error_set(err, channel, "cannot start %s: %s", n->stepd_path, strerror(-channel));
	}
	struct node_step *st = step_add(n, channel, c->job_id, c->step_id);
	st->pid = pid;
	st->known = true;
	st->uid = c->uid;
	st->batch = start->batch != NULL;
	st->restarts = c->job->restarts;
	step_send(st, &start->base);
	if (stopped_find(n, c->job_id) < n->stopped_n) {
		Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
		order.kind = PB__STEPD_ORDER__KIND__SUSPEND;
		steps_order(st, &order);
	}
	return 0;
}

/* slurmstepd was killed while no slurmd was there to see it. What it left tells which run of the job it was. */
static void killed_unseen(struct noded *n, uint32_t job_id, uint32_t step_id, bool report)
{
	struct node_step st = { .node = n, .job_id = job_id, .step_id = step_id };
	Pb__StepdEvent *end = done_read(n, job_id, step_id, ".part");
	st.batch = step_id == STEP_ID_BATCH;
	if (end)
		step_know(&st, end);
	log_error("slurmstepd of step %u.%d was killed", job_id, (int)step_id);
	step_clean(&st);
	done_by_will(n, job_id, step_id);
	if (!report)
		done_remove(n, job_id, step_id, "");
	if (end && report)
		jobs_step_end(n, &st, end);
	if (end)
		pb__stepd_event__free_unpacked(end, NULL);
}

/* Does its slurmstepd live? */
static bool will_is_held(const struct noded *n, uint32_t job_id, uint32_t step_id)
{
	char path[3072];
	done_path(n, job_id, step_id, ".part", path, sizeof path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
	if (fd >= 0)
		close(fd);
	return held;
}

/* A descriptor, or -EAGAIN: it is there and takes no connections (it is stopped, and too many wait), or another negative code. Does not wait. */
static int step_dial(const struct noded *n, uint32_t job_id, uint32_t step_id)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	/* By way of the folder's descriptor: a socket's own path may be no longer than 107 bytes. */
	int dir = open(n->spool, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/step.%u.%u", dir, job_id, step_id);
	int rc = dir < 0 || fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0 ? -errno : fd;
	if (dir >= 0)
		close(dir);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc;
}

static void adopt_greet(struct node_step *st, bool kill)
{
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	order.kind = kill ? PB__STEPD_ORDER__KIND__TERMINATE : PB__STEPD_ORDER__KIND__STATUS;
	log_info("adopted step %u.%d", st->job_id, (int)st->step_id);
	steps_order(st, &order);
}

static void on_again(uv_timer_t *timer)
{
	struct noded *n = timer->data;
	bool left = false;
	for (struct node_step *st = n->steps, *next; st; st = next) {
		int fd = st->reached ? 0 : step_dial(n, st->job_id, st->step_id);
		next = st->next;
		if (fd > 0) {
			step_connected(st, fd);
			adopt_greet(st, st->end_by != 0);
		} else if (fd == -EAGAIN) {
			left = true;
		} else if (fd < 0) {
			step_gone(st);
		}
	}
	if (!left)
		uv_timer_stop(timer);
}

static void again_later(struct noded *n)
{
	static uv_timer_t timer;
	if (!timer.data) {
		uv_timer_init(&n->loop, &timer);
		timer.data = n;
	}
	uv_timer_start(&timer, on_again, AGAIN_MS, AGAIN_MS);
}

static bool adopt_one(struct noded *n, uint32_t job_id, uint32_t step_id, bool kill)
{
	int fd = step_dial(n, job_id, step_id);
	if (fd < 0 && fd != -EAGAIN)
		return false;
	struct node_step *st = step_add(n, fd, job_id, step_id);
	/* It may end before it answers: what it is must be known already, or its end is taken for that of another run. */
	Pb__StepdEvent *will = done_read(n, job_id, step_id, ".part");
	if (will) {
		step_know(st, will);
		jobs_step_adopted(n, st);
		pb__stepd_event__free_unpacked(will, NULL);
	}
	if (kill)
		mute_watch(st, 0);
	if (fd >= 0) {
		adopt_greet(st, kill);
	} else {
		log_error("slurmstepd of step %u.%d takes no connections; it will be tried again", job_id, (int)step_id);
		again_later(n);
	}
	return true;
}

/* Does this process hold what stands for the step's completion? */
static bool holds(const char *pid, const struct stat *will)
{
	char path[300];
	struct dirent *e;
	bool found = false;
	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	DIR *d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		struct stat st;
		found = e->d_name[0] != '.' && !fstatat(dirfd(d), e->d_name, &st, 0) && st.st_dev == will->st_dev && st.st_ino == will->st_ino;
	}
	if (d)
		closedir(d);
	return found;
}

static pid_t holder_find(const struct node_step *st)
{
	char path[3072];
	struct stat will;
	struct dirent *e;
	pid_t pid = 0;
	done_path(st->node, st->job_id, st->step_id, ".part", path, sizeof path);
	DIR *d = stat(path, &will) ? NULL : opendir("/proc");
	while (d && !pid && (e = readdir(d))) {
		pid_t at = (pid_t)strtol(e->d_name, NULL, 10);
		if (at > 1 && at != getpid() && holds(e->d_name, &will))
			pid = at;
	}
	if (d)
		closedir(d);
	return pid;
}

pid_t steps_stepd_pid(const struct node_step *st)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof who;
	uv_os_fd_t fd;
	if (st->pid)
		return st->pid;
	/* Who listened there is who forked the tasks. */
	if (st->reached && !uv_fileno((const uv_handle_t *)&st->pipe, &fd) && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.pid)
		return who.pid;
	return holder_find(st);
}

/* A slurmstepd that is there, though it cannot be reached yet: the slurmd before us started it and was killed at once. */
static void adopt_slow(struct noded *n, uint32_t job_id, uint32_t step_id, bool kill)
{
	for (unsigned i = 0; i < SLOW_MS / 10 && will_is_held(n, job_id, step_id); i++) {
		if (adopt_one(n, job_id, step_id, kill))
			return;
		usleep(10000);
	}
	char path[3072];
	done_path(n, job_id, step_id, ".part", path, sizeof path);
	if (will_is_held(n, job_id, step_id))
		log_error("slurmstepd of step %u.%d lives and does not answer", job_id, (int)step_id);
	else if (!access(path, F_OK))
		killed_unseen(n, job_id, step_id, !kill);
}

/* A completion nobody has taken. */
static void adopt_done(struct noded *n, int dir, const char *name, uint32_t job_id, uint32_t step_id, bool kill)
{
	Pb__StepdEvent *event = kill ? NULL : done_read(n, job_id, step_id, "");
	if (!event) {
		(void)unlinkat(dir, name, 0);
		return;
	}
	struct node_step st = { .node = n, .job_id = job_id, .step_id = step_id };
	step_know(&st, event);
	jobs_step_end(n, &st, event);
	pb__stepd_event__free_unpacked(event, NULL);
}

void steps_adopt(struct noded *n, bool kill)
{
	DIR *d = opendir(n->spool);
	unsigned job_id, step_id;
	struct dirent *e;
	char rest[8];
	if (!d)
		return;
	while ((e = readdir(d)))
		if (sscanf(e->d_name, "step.%u.%u%1s", &job_id, &step_id, rest) == 2 && !adopt_one(n, job_id, step_id, kill) &&
		    !will_is_held(n, job_id, step_id)) {
			log_info("step %u.%d is gone; removing its socket", job_id, (int)step_id);
			(void)unlinkat(dirfd(d), e->d_name, 0);
		}
	rewinddir(d);
	while ((e = readdir(d)))
		if (sscanf(e->d_name, "done.%u.%u%7s", &job_id, &step_id, rest) == 3 && !strcmp(rest, ".part") && !steps_find(n, job_id, step_id))
			adopt_slow(n, job_id, step_id, kill);
	rewinddir(d);
	while ((e = readdir(d)))
		if (sscanf(e->d_name, "done.%u.%u%1s", &job_id, &step_id, rest) == 2 && !steps_find(n, job_id, step_id))
			adopt_done(n, dirfd(d), e->d_name, job_id, step_id, kill);
	closedir(d);
}
