/* step.c - settings of a step, and its end
 *
 * The end has stages, each of which may take its time and calls step_check_end() again: epilogs of tasks, processes left behind, output
 * on its way to srun. Then the completion is written and the process exits. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "stepd/contain.h"
#include "stepd/done.h"
#include "stepd/io.h"
#include "stepd/orders.h"
#include "stepd/prolog.h"
#include "stepd/script.h"
#include "stepd/step.h"
#include "stepd/task.h"

int step_fail(struct step *s, int error, const char *fmt, ...)
{
	va_list ap;
	if (s->note->error)
		return -1;
	va_start(ap, fmt);
	vsnprintf(s->note->text, sizeof s->note->text, fmt, ap);
	va_end(ap);
	s->note->error = error ? error : EIO;
	return -1;
}

const char *step_conf(const struct step *s, const char *key)
{
	for (size_t i = 0; i < s->start->n_conf; i++)
		if (!strcmp(s->start->conf[i]->key, key))
			return s->start->conf[i]->value;
	return NULL;
}

uint64_t step_conf_num(const struct step *s, const char *key, uint64_t fallback)
{
	const char *text = step_conf(s, key);
	unsigned long long n;
	return text && !str_to_u64(text, 0, UINT64_MAX, &n) ? n : fallback;
}

static void on_unkillable(uv_timer_t *timer)
{
	struct step *s = timer->data;
	log_error("processes of step %s do not end although they were killed", s->name);
	orders_send_kill_failed(s);
}

/* The tasks have ended: what they left behind is killed. true when nothing is left. */
static bool leftovers_end(struct step *s)
{
	static uv_timer_t timer;
	if (contain_is_empty(s))
		return true;
	contain_signal(s, SIGKILL);
	if (!timer.data) {
		uint64_t sec = step_conf_num(s, "UnkillableStepTimeout", 60);
		uv_timer_init(&s->loop, &timer);
		timer.data = s;
		uv_timer_start(&timer, on_unkillable, sec * 1000, sec * 1000);
	}
	task_reap(s);
	return contain_is_empty(s);
}

void step_check_end(struct step *s)
{
	if (s->running || s->ending)
		return;
	/* Each of these calls us again when it is done. */
	if (!prolog_is_idle(s) || !leftovers_end(s) || !io_finish(s))
		return;
	s->ending = true;
	s->oom = s->oom || contain_oom_kills(s);
	contain_destroy(s);
	done_write(s);
	orders_stop(s);
	script_remove(s);
	log_debug("done with job");
	_exit(0);
}
