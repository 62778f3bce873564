/* srun_in.c - srun's stdin (or the file of --input) to the tasks
 *
 * Read when there is something and every connection has room; sent to all tasks, or to the node of one. Nothing is read before all
 * nodes are connected, so none misses the beginning. Invariant: in_open is false once the end of file was sent. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/srun.h"
#include "wire/stepio.h"

static uint32_t in_task(const struct srun *s)
{
	return s->plan_in.kind == PLAN_TASK ? s->plan_in.task : STEPIO_ALL;
}

static void in_send(struct srun *s, const void *data, size_t n)
{
	uint32_t task = in_task(s);
	for (size_t i = 0; i < s->node_count; i++)
		if (s->node[i].conn && (task == STEPIO_ALL || s->task[task].node == i))
			conn_send(s->node[i].conn, STEPIO_STDIN, task, data, n);
}

static void in_close(struct srun *s)
{
	if (s->in_polled)
		watch_set(s, &s->in_watch, 0);
	s->in_open = false;
	in_send(s, NULL, 0);
}

static void in_ready(struct watch *w, uint32_t events)
{
	struct srun *s = (struct srun *)((char *)w - offsetof(struct srun, in_watch));
	static char buf[64 * 1024];
	(void)events;
	for (int turns = 0; turns < 16 && s->in_open && !conn_any_full(s); turns++) {
		ssize_t n = read(s->in_watch.fd, buf, sizeof(buf));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0 && errno == EIO) {   /* we are in the background */
			watch_set(s, &s->in_watch, 0);
			s->in_paused = true;
			return;
		}
		if (n <= 0) {
			in_close(s);
			return;
		}
		in_send(s, buf, (size_t)n);
		if (s->in_polled)
			break;
	}
	in_resume(s);
}

/* A regular file is always ready and cannot be watched. */
void in_resume(struct srun *s)
{
	if (!s->in_open)
		return;
	bool full = conn_any_full(s);
	if (s->in_polled)
		watch_set(s, &s->in_watch, full ? 0 : EPOLLIN);
	else if (!full)
		in_ready(&s->in_watch, EPOLLIN);
}

/* Called once, when every node has its connection (or none will come). */
void in_start(struct srun *s)
{
	if (s->plan_in.kind == PLAN_NONE || s->plan_in.kind == PLAN_NODE || s->in_open)
		return;
	s->in_open = true;
	s->in_watch.ready = in_ready;
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &s->in_watch };
	s->in_polled = epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->in_watch.fd, &ev) == 0;
	if (s->in_polled)
		s->in_watch.events = EPOLLIN;
	else
		in_resume(s);
}

/* A new connection: when the last node has come, begin. */
void in_replay(struct srun *s, struct conn *c)
{
	(void)c;
	for (size_t i = 0; i < s->node_count; i++)
		if (!s->node[i].conn && !s->node[i].is_ended)
			return;
	in_start(s);
}
