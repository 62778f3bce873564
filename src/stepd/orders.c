/* orders.c - connections of slurmd to this step (see orders.h) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "stepd/attach.h"
#include "stepd/cancel.h"
#include "stepd/contain.h"
#include "stepd/contain_limit.h"
#include "stepd/endreason.h"
#include "stepd/done.h"
#include "stepd/extern.h"
#include "stepd/gather.h"
#include "stepd/io.h"
#include "stepd/orders.h"
#include "stepd/step.h"
#include "stepd/task.h"

#define ORDER_MAX (1u << 20)

struct peer {
	uv_poll_t poll;
	int fd;
	struct step *step;
	uint8_t *in;
	size_t len, cap;
	struct peer *next;
};

struct orders {
	struct peer *peers;
	uv_poll_t poll;
	int listen;
	char path[48];
};

static void on_close(uv_handle_t *h)
{
	struct peer *p = h->data;
	close(p->fd);
	free(p->in);
	free(p);
}

static void peer_close(struct peer *p)
{
	for (struct peer **at = &p->step->orders->peers; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	p->poll.data = p;
	uv_close((uv_handle_t *)&p->poll, on_close);
}

static bool peer_send(struct peer *p, const Pb__StepdEvent *event)
{
	size_t len = pb__stepd_event__get_packed_size(event);
	uint8_t *msg = xmalloc(len + 4);
	msg[0] = (uint8_t)(len >> 24), msg[1] = (uint8_t)(len >> 16), msg[2] = (uint8_t)(len >> 8), msg[3] = (uint8_t)len;
	pb__stepd_event__pack(event, msg + 4);
	/* Small and rare: what does not fit into the socket's buffer means that slurmd hangs; it asks again when it is back. */
	bool sent = send(p->fd, msg, len + 4, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len + 4;
	if (!sent)
		log_debug("cannot report to slurmd: %s", strerror(errno));
	free(msg);
	return sent;
}

static bool send_all(struct step *s, const Pb__StepdEvent *event)
{
	bool sent = false;
	for (struct peer *p = s->orders ? s->orders->peers : NULL; p; p = p->next)
		sent = peer_send(p, event) || sent;
	return sent;
}

/* Who and what runs here: the answer to STATUS. */
static void status_send(struct step *s, struct peer *p)
{
	Pb__StepdEvent event = PB__STEPD_EVENT__INIT;
	uint32_t *list = xcalloc(s->tasks * 2 + 1, sizeof *list);
	step_event_fill(s, &event, PB__STEPD_EVENT__KIND__PIDS);
	event.pid = list;
	event.task = list + s->tasks;
	for (uint32_t i = 0; i < s->tasks; i++)
		if (s->task[i].pid && !s->task[i].ended) {
			event.pid[event.n_pid++] = (uint32_t)s->task[i].pid;
			event.task[event.n_task++] = s->task[i].rank;
		}
	peer_send(p, &event);
	free(list);
}

/* What they have used until now: the answer to STAT. */
static void figures_send(struct step *s, struct peer *p)
{
	Pb__StepdEvent event = PB__STEPD_EVENT__INIT;
	size_t n;
	step_event_fill(s, &event, PB__STEPD_EVENT__KIND__FIGURES);
	pid_t *list = contain_pids(s, &n);
	_Static_assert(sizeof *list == sizeof *event.pid, "pids are sent as they are");
	event.pid = (uint32_t *)list;
	event.n_pid = n;
	event.usage = gather_usage(s, true);
	Pb__StepTask *task = xcalloc(s->tasks + 1, sizeof *task);
	event.tasks = xcalloc(s->tasks + 1, sizeof *event.tasks);
	for (uint32_t i = 0; i < s->tasks; i++)
		if (s->external || (s->task[i].pid && !s->task[i].ended)) {     /* the extern step's task is no process: -1, as in the reference */
			pb__step_task__init(&task[i]);
			task[i].pid = s->external ? UINT32_MAX : (uint32_t)s->task[i].pid;
			task[i].local = s->task[i].local;
			task[i].rank = s->task[i].rank;
			event.tasks[event.n_tasks++] = &task[i];
		}
	peer_send(p, &event);
	pb__step_usage__free_unpacked(event.usage, NULL);
	free(event.tasks);
	free(task);
	free(list);
}

static void signal_order(struct step *s, const Pb__StepdOrder *o)
{
	int sig = (int)o->signal;
	if (s->external)                   /* its end is ordered; other signals are for what the job has started */
		return;
	endreason_write(s, o->end);
	if (o->text || ((sig == SIGKILL || sig == SIGTERM) && !(o->has_batch_only && o->batch_only)))
		cancel_say(s, o->text, sig);
	if (o->has_full && o->full)
		contain_signal(s, sig);
	else if (o->has_batch_only && o->batch_only)
		task_signal_shell(s, sig);
	else
		task_signal(s, sig);
}

/* pam_slurm_adopt has asked. */
static void adopt(struct step *s, struct peer *p, const Pb__StepdOrder *o)
{
	Pb__StepdEvent event = PB__STEPD_EVENT__INIT;
	pid_t keeper;
	step_event_fill(s, &event, PB__STEPD_EVENT__KIND__ADOPTED);
	event.has_error = true;
	event.error = (uint32_t)extern_adopt(s, (pid_t)o->adopt_pid, &keeper);
	event.has_keeper = keeper != 0;
	event.keeper = (uint32_t)keeper;
	peer_send(p, &event);
}

static void on_suspend_grace(uv_timer_t *timer)
{
	struct step *s = timer->data;
	if (s->suspended)
		contain_signal(s, SIGSTOP);
}

/* SIGTSTP, which programs may catch, and SIGSTOP when the grace is over. */
static void suspend(struct step *s, bool stop, uint32_t grace_sec)
{
	s->suspended = stop;
	if (!s->suspend_timer.loop) {
		uv_timer_init(&s->loop, &s->suspend_timer);
		s->suspend_timer.data = s;
	}
	uv_timer_stop(&s->suspend_timer);
	contain_signal(s, !stop ? SIGCONT : grace_sec ? SIGTSTP : SIGSTOP);
	if (stop && grace_sec)
		uv_timer_start(&s->suspend_timer, on_suspend_grace, grace_sec * 1000ull, 0);
}

static void order_run(struct step *s, struct peer *p, const Pb__StepdOrder *o)
{
	switch (o->kind) {
	case PB__STEPD_ORDER__KIND__SIGNAL:
		signal_order(s, o);
		break;
	case PB__STEPD_ORDER__KIND__TERMINATE:
		endreason_write(s, o->end);
		if (!s->external)
			cancel_say(s, o->text, SIGTERM);
		if (s->suspended)
			contain_signal(s, SIGCONT);
		(s->external ? extern_terminate : task_terminate)(s, o->kill_wait_sec);
		break;
	case PB__STEPD_ORDER__KIND__MEMORY:
		contain_mem_less(s, o->mem);
		break;
	case PB__STEPD_ORDER__KIND__ADOPT:
		adopt(s, p, o);
		break;
	case PB__STEPD_ORDER__KIND__ATTACH:
		attach_start(s, o);
		break;
	case PB__STEPD_ORDER__KIND__TEXT:
		io_text(s, o->text);
		break;
	case PB__STEPD_ORDER__KIND__SUSPEND:
	case PB__STEPD_ORDER__KIND__RESUME:
		suspend(s, o->kind == PB__STEPD_ORDER__KIND__SUSPEND, o->kill_wait_sec);
		break;
	case PB__STEPD_ORDER__KIND__STATUS:
		if (s->stuck)                      /* a slurmd that was started anew does not know */
			orders_send_kill_failed(s);
		status_send(s, p);
		break;
	case PB__STEPD_ORDER__KIND__STAT:
		figures_send(s, p);
		break;
	default:
		log_error("an order of unknown kind %d from slurmd is not carried out", (int)o->kind);
	}
}

/* Carry out whole orders in the buffer. false: malformed. */
static bool peer_orders(struct peer *p)
{
	size_t at = 0;
	while (p->len - at >= 4) {
		const uint8_t *h = p->in + at;
		uint32_t len = (uint32_t)h[0] << 24 | (uint32_t)h[1] << 16 | (uint32_t)h[2] << 8 | h[3];
		if (len > ORDER_MAX)
			return false;
		if (p->len - at - 4 < len)
			break;
		Pb__StepdOrder *o = pb__stepd_order__unpack(NULL, len, h + 4);
		if (!o)
			return false;
		order_run(p->step, p, o);
		pb__stepd_order__free_unpacked(o, NULL);
		at += 4 + len;
	}
	memmove(p->in, p->in + at, p->len - at);
	p->len -= at;
	return true;
}

static void on_peer(uv_poll_t *poll, int status, int events)
{
	struct peer *p = poll->data;
	struct step *s = p->step;
	(void)status, (void)events;
	p->in = xgrow(p->in, &p->cap, p->len + 4096, 1);
	ssize_t n = read(p->fd, p->in + p->len, p->cap - p->len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	p->len += n > 0 ? (size_t)n : 0;
	if (n <= 0 || !peer_orders(p))
		peer_close(p);
	step_check_end(s);
}

static void peer_add(struct step *s, int fd)
{
	struct peer *p = xcalloc(1, sizeof *p);
	p->fd = fd;
	p->step = s;
	p->next = s->orders->peers;
	s->orders->peers = p;
	uv_poll_init(&s->loop, &p->poll, fd);
	p->poll.data = p;
	uv_poll_start(&p->poll, UV_READABLE, on_peer);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
	struct step *s = poll->data;
	struct ucred who;
	socklen_t len = sizeof who;
	(void)status, (void)events;
	int fd = accept4(s->orders->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || (who.uid && who.uid != geteuid())) {
		close(fd);
		return;
	}
	peer_add(s, fd);
}

int orders_start(struct step *s, int fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct orders *o = s->orders = xcalloc(1, sizeof *o);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	peer_add(s, fd);
	o->listen = -1;
	/* Relative to the spool, where we are: a socket's path may be no longer than 107 bytes. */
	snprintf(o->path, sizeof o->path, "step.%u.%u", s->job_id, s->step_id);
	snprintf(addr.sun_path, sizeof addr.sun_path, "%s", o->path);
	(void)unlink(o->path);
	mode_t mask = umask(0177);
	o->listen = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = bind(o->listen, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(o->listen, 8) < 0 ? -errno : 0;
	umask(mask);
	if (rc < 0)
		return step_fail_node(s, -rc, "cannot make the socket %s/%s: %s", s->start->spool_dir, o->path, strerror(-rc));
	uv_poll_init(&s->loop, &o->poll, o->listen);
	o->poll.data = s;
	uv_poll_start(&o->poll, UV_READABLE, on_connect);
	return 0;
}

void orders_stop(struct step *s)
{
	if (s->orders && s->orders->path[0])
		(void)unlink(s->orders->path);
}

void orders_send_kill_failed(struct step *s)
{
	Pb__StepdEvent event = PB__STEPD_EVENT__INIT;
	step_event_fill(s, &event, PB__STEPD_EVENT__KIND__FAILED);
	event.text = s->stuck;
	send_all(s, &event);
}

bool orders_send_over(struct step *s)
{
	Pb__StepdEvent event;
	done_fill(s, &event);
	event.has_over = event.over = true;
	bool sent = send_all(s, &event);
	pb__step_usage__free_unpacked(event.usage, NULL);
	return sent;
}
