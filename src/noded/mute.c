/* mute.c - slurmstepds that do not answer (see mute.h) */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "noded/mute.h"
#include "noded/steps.h"
#include "noded/stuck.h"

#define LOOK_MS 1000
#define ANSWER_MS 5000         /* a slurmstepd that is not hung answers in microseconds; on a machine without memory it may take long */

/* The state of a process as /proc tells it: 'T' stopped, 'D' in the kernel; '?' not known. */
static char process_state(pid_t pid)
{
	char path[64], buf[512];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	const char *end = strrchr(buf, ')');
	return end && end[1] == ' ' && end[2] ? end[2] : '?';
}

static void end_mute(struct node_step *st)
{
	char what[128];
	pid_t pid = steps_stepd_pid(st);
	st->end_by = 0;
	snprintf(what, sizeof what, "its slurmstepd (%d) does not answer (state %c)", (int)pid, pid > 0 ? process_state(pid) : '?');
	stuck_found(st->node, st, what);
	if (pid > 0)
		kill(pid, SIGKILL);            /* its connection ends then, and steps.c cleans up */
}

/* When its time is over it is asked; when it has not answered then, it is mute. One that answers has processes that do not end: that is its affair
 * (stepd/unkillable.c), and it is asked again. */
static void look_at(struct node_step *st, uint64_t now)
{
	Pb__StepdOrder order = PB__STEPD_ORDER__INIT;
	if (!st->end_by || now < st->end_by)
		return;
	if (st->doubted) {
		end_mute(st);
		return;
	}
	st->end_by = now + ANSWER_MS;
	st->doubted = st->asked = true;
	order.kind = PB__STEPD_ORDER__KIND__STATUS;
	steps_order(st, &order);
}

static void on_look(uv_timer_t *timer)
{
	static uint64_t last;
	struct noded *n = timer->data;
	uint64_t now = uv_now(&n->loop);
	bool any = false, was_away = last && now > last + 5 * LOOK_MS;
	last = now;
	for (struct node_step *st = n->steps; st; st = st->next) {
		if (st->end_by && st->doubted && was_away)     /* slurmd itself was stopped: the answer may be here unread */
			st->end_by = now + ANSWER_MS;
		look_at(st, now);
		any = any || st->end_by;
	}
	if (!any)
		uv_timer_stop(timer);
}

void mute_watch(struct node_step *st, uint32_t kill_wait_sec)
{
	static uv_timer_t timer;
	struct noded *n = st->node;
	uint64_t sec = conf_num(n->conf, CONF_UnkillableStepTimeout);
	if (st->end_by || !sec)
		return;
	st->end_by = uv_now(&n->loop) + (kill_wait_sec + sec) * 1000;
	if (!timer.data) {
		uv_timer_init(&n->loop, &timer);
		timer.data = n;
	}
	uv_timer_start(&timer, on_look, LOOK_MS, LOOK_MS);
}
