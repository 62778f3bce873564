/* unkillable.c - processes that do not end although they were killed (see unkillable.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "stepd/contain.h"
#include "stepd/io.h"
#include "stepd/orders.h"
#include "stepd/step.h"
#include "stepd/unkillable.h"

#define NAMED_MAX 4

static uv_timer_t timer;

/* A line of /proc/PID/NAME, without its end; "?" where there is none. */
static void proc_line(pid_t pid, const char *name, char *buf, size_t size)
{
	char dir[32];
	snprintf(dir, sizeof dir, "/proc/%d", (int)pid);
	char *text = contain_read(dir, name);
	snprintf(buf, size, "%.*s", text ? (int)strcspn(text, "\n") : 1, text ? text : "?");
	if (!*buf || !strcmp(buf, "0"))
		snprintf(buf, size, "?");
	free(text);
}

/* "python (4711) waits in nfs_wait_bit_killable, ... and 3 more" */
static char *who_hangs(const struct step *s)
{
	struct str out = STR_INIT;
	size_t n;
	pid_t *list = contain_pids(s, &n);
	for (size_t i = 0; i < n && i < NAMED_MAX; i++) {
		char comm[64], where[128];
		proc_line(list[i], "comm", comm, sizeof comm);
		proc_line(list[i], "wchan", where, sizeof where);
		str_addf(&out, "%s%s (%d) waits in %s", i ? ", " : "", comm, (int)list[i], where);
	}
	if (n > NAMED_MAX)
		str_addf(&out, " and %zu more", n - NAMED_MAX);
	free(list);
	return str_take(&out);
}

static void on_timer(uv_timer_t *t)
{
	struct step *s = t->data;
	if (contain_is_empty(s))
		return;
	char *who = who_hangs(s);
	if (!s->stuck || strcmp(s->stuck, who))
		log_error("processes of step %s do not end although they were killed: %s", s->name, who);
	bool first = !s->stuck;
	free(s->stuck);
	s->stuck = who;
	if (!first)
		return;
	orders_send_kill_failed(s);
	char *line = xasprintf("processes of step %s do not end although they were killed: %s", s->name, who);
	io_text(s, line);
	free(line);
}

void unkillable_watch(struct step *s)
{
	uint64_t sec = step_conf_num(s, "UnkillableStepTimeout", 60);
	if (timer.data || !sec)
		return;
	uv_timer_init(&s->loop, &timer);
	timer.data = s;
	uv_timer_start(&timer, on_timer, sec * 1000, sec * 1000);
}
