/* srun_tasks.c - what became of each task, and saying so as the reference does
 *
 * Ends that come together are said together ("tasks 0-3: Exited with exit code 5"), so they are noted first and told when the
 * loop has nothing else to do. The exit code is the highest of all tasks; a signal counts as 128 + its number. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/srun.h"
#include "model/idset.h"

void tasks_init(struct srun *s)
{
	s->task_count = s->layout->num_tasks;
	s->node_count = s->nodes_left = s->layout->n_node;
	s->tasks_left = s->task_count;
	s->task = xcalloc(s->task_count + 1, sizeof(*s->task));
	s->node = xcalloc(s->node_count + 1, sizeof(*s->node));
	for (size_t i = 0; i < s->node_count; i++) {
		const Pb__StepNode *row = s->layout->node[i];
		s->node[i].s = s;
		s->node[i].row = row;
		for (size_t k = 0; k < row->n_task_ids; k++)
			if (row->task_ids[k] < s->task_count)
				s->task[row->task_ids[k]].node = (uint32_t)i;
	}
	for (uint32_t top = s->task_count ? s->task_count - 1 : 0; top >= 10; top /= 10)
		s->label_width++;
	s->label_width++;
}

static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

void tasks_started(struct srun *s, struct node_info *n, const Pb__IoStarted *m)
{
	for (size_t i = 0; i < m->n_task; i++)
		if (m->task[i] < s->task_count && s->task[m->task[i]].state == TASK_STARTING)
			s->task[m->task[i]].state = TASK_RUNNING;
	log_verbose("Node %s, %zu tasks started", n->row->name, m->n_task);
	spawn_tell(s);
	if (s->o.pty)
		tty_resize(s);
}

static void exit_note(struct srun *s, uint32_t task, int status, bool oom)
{
	struct task_info *t = &s->task[task];
	if (t->state == TASK_EXITED)
		return;
	t->state = TASK_EXITED;
	t->status = status;
	t->oom = oom;
	s->pending_exits++;
	if (!--s->tasks_left)
		conn_all_ended(s);
	if (code_of(status) > s->exit_code || (status && !s->exit_status)) {
		s->exit_code = code_of(status);
		s->exit_status = (uint32_t)status;
	}
	if (!s->first_exit_ms)
		s->first_exit_ms = clock_mono_ms();
}

void tasks_exited(struct srun *s, struct node_info *n, const Pb__IoExit *m)
{
	log_verbose("Received task exit notification for %zu task%s of StepId=%u.%u (status=0x%04x).", m->n_task, plural(m->n_task), s->job_id, s->step_id,
		    m->status);
	(void)n;
	for (size_t i = 0; i < m->n_task; i++)
		if (m->task[i] < s->task_count)
			exit_note(s, m->task[i], (int)m->status, m->has_oom && m->oom);
}

static void exit_text(int status, bool oom, char *buf, size_t size)
{
	if (oom)
		snprintf(buf, size, "Out Of Memory");
	else if (WIFSIGNALED(status))
		snprintf(buf, size, "%s%s", strsignal(WTERMSIG(status)), WCOREDUMP(status) ? " (core dumped)" : "");
	else if (WEXITSTATUS(status))
		snprintf(buf, size, "Exited with exit code %d", WEXITSTATUS(status));
	else
		snprintf(buf, size, "Completed");
}

/* Members of one node with one status, told as one. */
/* sattach says it in words of its own, each task by itself. */
static void exit_tell_attached(struct srun *s, uint32_t task)
{
	struct task_info *t = &s->task[task];
	t->is_told = true;
	s->pending_exits--;
	if (WIFSIGNALED(t->status))
		log_error("task %u killed by signal %d", task, WTERMSIG(t->status));
	else if (t->status)
		log_error("task %u exited with exit code %d", task, WEXITSTATUS(t->status));
}

static void exit_tell(struct srun *s, uint32_t first)
{
	if (s->is_attached) {
		exit_tell_attached(s, first);
		return;
	}
	struct bitset *set = bitset_create(s->task_count);
	const struct task_info *a = &s->task[first];
	for (uint32_t i = first; i < s->task_count; i++) {
		struct task_info *t = &s->task[i];
		if (t->state != TASK_EXITED || t->is_told || t->node != a->node || t->status != a->status || t->oom != a->oom)
			continue;
		bitset_set(set, i);
		t->is_told = true;
		s->pending_exits--;
	}
	char text[128], *ids = idset_format(set);
	exit_text(a->status, a->oom, text, sizeof(text));
	log_at(a->status || a->oom ? LOG_L_ERROR : LOG_L_VERBOSE, "%s: task%s %s: %s", s->node[a->node].row->name, plural(bitset_count(set)), ids, text);
	free(ids);
	bitset_destroy(set);
}

void tasks_tell_exits(struct srun *s)
{
	bool killed = false;
	if (!s->pending_exits)
		return;
	for (uint32_t i = 0; i < s->task_count && s->pending_exits; i++) {
		if (s->task[i].state != TASK_EXITED || s->task[i].is_told)
			continue;
		int status = s->task[i].status;
		killed |= WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
		exit_tell(s, i);
	}
	if (s->is_attached)
		return;
	if (killed && !s->is_aborted && !s->was_force_told) {
		s->was_force_told = true;
		log_info("Force Terminated StepId=%u.%u", s->job_id, s->step_id);
	}
	/* "This option takes precedence over the -W, --wait option." */
	bool kill = s->o.kill_on_bad_exit < 0 ? conf_num(s->conf, CONF_KillOnBadExit) != 0 : s->o.kill_on_bad_exit != 0;
	if (kill && s->exit_code && s->tasks_left && !s->is_terminating && !s->o.desc->no_kill) {
		log_info("Terminating StepId=%u.%u", s->job_id, s->step_id);
		tasks_fail(s);
	}
}

void tasks_fail(struct srun *s)
{
	uint64_t wait_sec = conf_num(s->conf, CONF_KillWait);
	if (s->is_terminating)
		return;
	s->is_terminating = true;
	conn_terminate_all(s, (uint32_t)wait_sec, "DUE TO TASK FAILURE");
	s->give_up_at_ms = clock_mono_ms() + 2 * (1000 * wait_sec + 1000);
}

void tasks_print_states(struct srun *s)
{
	static const char *const words[] = { "unknown", "running", "exited", "exited abnormally" };
	for (int state = TASK_STARTING; state <= TASK_EXITED + 1; state++) {
		struct bitset *set = bitset_create(s->task_count);
		for (uint32_t i = 0; i < s->task_count; i++)
			if ((int)s->task[i].state + (s->task[i].state == TASK_EXITED && s->task[i].status) == state)
				bitset_set(set, i);
		char *ids = idset_format(set);
		if (!bitset_empty(set))
			log_info("StepId=%u.%u task%s %s: %s", s->job_id, s->step_id, plural(bitset_count(set)), ids, words[state]);
		free(ids);
		bitset_destroy(set);
	}
}

void node_ended(struct srun *s, struct node_info *n)
{
	if (n->is_ended)
		return;
	n->is_ended = true;
	s->nodes_left--;
	for (size_t k = 0; k < n->row->n_task_ids; k++) {
		out_take(s, n->row->task_ids[k], false, NULL, 0);
		out_take(s, n->row->task_ids[k], true, NULL, 0);
	}
}

void node_lost(struct srun *s, struct node_info *n, const char *why)
{
	bool started = false;
	if (n->is_ended)
		return;
	for (size_t k = 0; k < n->row->n_task_ids; k++) {
		struct task_info *t = &s->task[n->row->task_ids[k]];
		started |= t->state != TASK_STARTING;
	}
	if (started)
		log_error("Node failure on %s: %s", n->row->name, why);
	else
		log_error("Task launch for StepId=%u.%u failed on node %s: %s", s->job_id, s->step_id, n->row->name, why);
	s->launch_failed |= !started;
	for (size_t k = 0; k < n->row->n_task_ids; k++) {
		uint32_t task = n->row->task_ids[k];
		if (s->task[task].state == TASK_EXITED)
			continue;
		exit_note(s, task, started ? SIGKILL : (int)(n->fail_code ? n->fail_code : 1) << 8, false);
		if (!started) {
			s->task[task].is_told = true;   /* the line above said it */
			s->pending_exits--;
		}
	}
	node_ended(s, n);
	if (s->nodes_left && !s->is_terminating && !s->o.desc->no_kill) {
		log_info("Terminating StepId=%u.%u", s->job_id, s->step_id);
		run_terminate(s, SIGKILL);
	}
}

void node_failed(struct srun *s, struct node_info *n, const Pb__IoText *m)
{
	if (n->is_ended)
		return;
	if (m->detail)
		log_error("%s", m->detail);
	n->fail_code = m->exit_code & 0xff;
	node_lost(s, n, m->text);
	if (!n->fail_code || s->launch_told)
		return;
	s->launch_told = true;
	log_error("Application launch failed: %s", m->text);
	log_info("Job step aborted");
}
