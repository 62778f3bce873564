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
#include "model/hostlist.h"
#include "stepd/endreason.h"
#include "stepd/attach.h"
#include "stepd/contain.h"
#include "stepd/contain_limit.h"
#include "stepd/done.h"
#include "stepd/io.h"
#include "stepd/mpi.h"
#include "stepd/oci.h"
#include "stepd/orders.h"
#include "stepd/plugins.h"
#include "stepd/prolog.h"
#include "stepd/script.h"
#include "stepd/step.h"
#include "stepd/task.h"

#define DONE_RETRY_MS 1000

static int note(struct step *s, bool node_fault, int error, const char *fmt, va_list ap)
{
	if (s->note->error)
		return -1;
	vsnprintf(s->note->text, sizeof s->note->text, fmt, ap);
	s->note->node_fault = node_fault;
	s->note->error = error ? error : EIO;
	return -1;
}

int step_fail(struct step *s, int error, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = note(s, false, error, fmt, ap);
	va_end(ap);
	return rc;
}

int step_fail_node(struct step *s, int error, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = note(s, true, error, fmt, ap);
	va_end(ap);
	return rc;
}

void step_event_fill(const struct step *s, Pb__StepdEvent *event, Pb__StepdEvent__Kind kind)
{
	event->kind = kind;
	event->has_job_id = event->has_step_id = event->has_uid = event->has_batch = true;
	event->job_id = s->job_id;
	event->step_id = s->step_id;
	event->uid = s->uid;
	event->batch = s->batch != NULL;
	event->has_restarts = s->cred->job->has_restarts;
	event->restarts = s->cred->job->restarts;
}

const Pb__NodeAlloc *step_job_part(const struct step *s)
{
	const Pb__Alloc *a = s->cred->job_alloc;
	for (size_t i = 0; a && i < a->n_part; i++) {
		struct hostlist hl = HOSTLIST_INIT;
		bool ours = !hostlist_add(&hl, a->part[i]->nodes, NULL) && hostlist_find(&hl, s->node) >= 0;
		hostlist_fini(&hl);
		if (ours)
			return a->part[i];
	}
	return NULL;
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

/* The tasks have ended: what they left behind is killed. true when nothing is left. */
static bool leftovers_end(struct step *s)
{
	if (contain_is_empty(s))
		return true;
	contain_signal(s, SIGKILL);
	task_reap(s);
	return contain_is_empty(s);
}

static void on_again(uv_timer_t *timer) { step_check_end(timer->data); }

/* The completion must stay somewhere: in the spool, or with a slurmd that is there to hear it. Else it is tried again until one of them is. */
static bool completion_leave(struct step *s)
{
	static uv_timer_t timer;
	bool heard = orders_send_over(s);
	if (done_write(s) || heard)
		return true;
	if (!timer.data) {
		uv_timer_init(&s->loop, &timer);
		timer.data = s;
		uv_timer_start(&timer, on_again, DONE_RETRY_MS, DONE_RETRY_MS);
	}
	return false;
}

void step_check_end(struct step *s)
{
	if (s->running || s->ending)
		return;
	/* Each of these calls us again when it is done. */
	(void)contain_oom(s);
	if (!prolog_is_idle(s) || !mpi_finish(s) || (!oci_is_cleaning() && !leftovers_end(s)) || !oci_finish(s) || !io_finish(s))
		return;
	if (!s->cgroup_gone) {
		s->cgroup_gone = true;
		contain_destroy(s);
	}
	if (!completion_leave(s))
		return;
	s->ending = true;
	plugins_end(s);
	attach_finish(s);
	orders_stop(s);
	script_remove(s);
	endreason_remove(s);
	log_debug("done with job");
	_exit(0);
}
