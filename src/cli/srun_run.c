/* srun_run.c - the loop: connections, stdin, signals and time, until every node has said that its part is over
 *
 * Signals (srun(1), SIGNALS; texts as observed): one interrupt prints the states of the tasks, a second within a second sends SIGINT, a third kills.
 * TERM, QUIT and HUP kill; USR1, USR2 and the like are handed on. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signame.h"
#include "base/str.h"
#include "cli/srun.h"
#include "wire/stepio.h"

#define EVENTS 64
#define TELL_MS 20          /* ends of tasks that come within this time are told together */
#define INTERRUPT_MS 1000
#define WAIT_WARN_MS 60000

void watch_set(struct srun *s, struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };
	if (w->events == events || w->fd < 0)
		return;
	int op = !w->events ? EPOLL_CTL_ADD : !events ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
	if (epoll_ctl(s->epoll_fd, op, w->fd, &ev) == 0)
		w->events = events;
}

/* --- ending it ------------------------------------------------------------------------------------- */

static uint64_t kill_wait_ms(const struct srun *s)
{
	return 1000 * conf_num(s->conf, CONF_KillWait);
}

void run_abort(struct srun *s)
{
	uint64_t patience = kill_wait_ms(s) + 2000;
	if (s->is_aborted)
		return;
	s->is_aborted = true;
	if (!s->give_up_at_ms)
		s->give_up_at_ms = clock_mono_ms() + patience;
	if (s->nodes_left)
		log_info("Job step aborted: Waiting up to %u seconds for job step to finish.", (unsigned)(patience / 1000));
}

#define ASK_MS 2000

void run_terminate(struct srun *s, int number)
{
	uint64_t now = clock_mono_ms();
	s->is_terminating = true;
	conn_signal_all(s, number);
	s->kill_at_ms = number == SIGKILL ? 0 : now + kill_wait_ms(s);
	s->give_up_at_ms = now + kill_wait_ms(s) + 2000 + (number == SIGKILL ? 0 : kill_wait_ms(s));
}

static void force_end(struct srun *s)
{
	log_info("forcing job termination");
	run_abort(s);
	run_terminate(s, SIGKILL);
}

/* SIGTERM and its like, as when the whole job is ended: then the tasks have their own signals and KillWait, and slurmctld, which knows, leaves it at that;
 * else it kills the step. */
static void force_end_asked(struct srun *s)
{
	Pb__KillReq req = PB__KILL_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	char id[32], *ids[1] = { id };
	snprintf(id, sizeof(id), "%u.%u", s->job_id, s->step_id);
	req.id = ids;
	req.n_id = 1;
	req.has_signal = true;
	req.signal = SIGKILL;
	if (!s->client || client_call(s->client, RPC_KILL, &req.base, ASK_MS, &msg, &err) < 0) {
		force_end(s);
		return;
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	log_info("forcing job termination");
	run_abort(s);
	s->is_terminating = true;
	s->kill_at_ms = 0;
	s->give_up_at_ms = clock_mono_ms() + kill_wait_ms(s) + 2000;
}

/* --- signals ----------------------------------------------------------------------------------------- */

static bool is_ignored(const struct srun *s, int number)
{
	bool found = false;
	if (!s->o.ignore_signals)
		return false;
	char *copy = strdup(s->o.ignore_signals), *cursor = copy, *part;
	while ((part = str_next(&cursor, ",")))
		found |= signame_parse(part) == number;
	free(copy);
	return found;
}

static void ctrl_c_send(struct srun *s)
{
	log_info("sending Ctrl-C to StepId=%u.%u", s->job_id, s->step_id);
	conn_signal_all(s, SIGINT);
	s->ctrl_c_sent = true;
}

static void interrupt(struct srun *s)
{
	uint64_t now = clock_mono_ms();
	if (s->o.quit_on_interrupt && !s->ctrl_c_sent) {
		ctrl_c_send(s);
		force_end(s);
	} else if (s->ctrl_c_sent && now - s->interrupt_ms <= INTERRUPT_MS) {
		force_end(s);
	} else if (s->o.disable_status || (s->interrupt_ms && now - s->interrupt_ms <= INTERRUPT_MS)) {
		ctrl_c_send(s);
	} else {
		log_info("interrupt (one more within 1 sec to abort)");
		tasks_print_states(s);
	}
	s->interrupt_ms = now;
}

static void signal_take(struct srun *s, int number)
{
	if (is_ignored(s, number))
		return;
	switch (number) {
	case SIGINT:
		interrupt(s);
		break;
	case SIGTERM:
	case SIGQUIT:
	case SIGHUP:
		force_end_asked(s);
		break;
	case SIGWINCH:
		tty_resize(s);
		break;
	case SIGCONT:
		if (s->o.pty)
			tty_start(s);
		if (s->in_paused) {
			s->in_paused = false;
			in_resume(s);
		}
		break;
	default:
		log_debug("forwarding signal %d to tasks", number);
		conn_signal_all(s, number);
	}
}

int signals_open(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGTSTP };
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		/* SIGTSTP is handed on only by --pty's terminal; else it stops srun, as the shell expects. */
		if (numbers[i] != SIGTSTP)
			sigaddset(&set, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void signal_ready(struct watch *w, uint32_t events)
{
	struct srun *s = (struct srun *)((char *)w - offsetof(struct srun, signal_watch));
	struct signalfd_siginfo info;
	(void)events;
	while (read(w->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		signal_take(s, (int)info.ssi_signo);
}

static void listen_ready(struct watch *w, uint32_t events)
{
	(void)events;
	conn_accept((struct srun *)((char *)w - offsetof(struct srun, listen_watch)));
}

/* --- time ------------------------------------------------------------------------------------------------ */

static uint64_t wait_limit_ms(const struct srun *s)
{
	return 1000 * (s->o.wait_sec >= 0 ? (uint64_t)s->o.wait_sec : conf_num(s->conf, CONF_WaitTime));
}

static void wait_check(struct srun *s, uint64_t now)
{
	uint64_t limit = wait_limit_ms(s);
	if (s->is_attached || !s->first_exit_ms || !s->tasks_left || s->is_terminating || s->wait_done || s->o.desc->no_kill)
		return;
	if (limit && now >= s->first_exit_ms + limit) {
		s->wait_done = true;
		log_info("First task exited %llus ago", (unsigned long long)(limit / 1000));
		tasks_print_states(s);
		log_info("Terminating StepId=%u.%u", s->job_id, s->step_id);
		run_abort(s);
		run_terminate(s, SIGKILL);
	} else if (!limit && s->o.wait_sec == 0 && !s->warned && now >= s->first_exit_ms + WAIT_WARN_MS) {
		s->warned = true;
		log_info("warning: first task exited %us ago", WAIT_WARN_MS / 1000);
		tasks_print_states(s);
	}
}

static void time_check(struct srun *s, uint64_t now)
{
	wait_check(s, now);
	launch_again(s, now);
	job_watch_check(s, now);
	if (s->kill_at_ms && now >= s->kill_at_ms) {
		s->kill_at_ms = 0;
		conn_signal_all(s, SIGKILL);
	}
	if (s->give_up_at_ms && now >= s->give_up_at_ms) {
		log_error("Timed out waiting for job step to complete");
		for (size_t i = 0; i < s->node_count; i++)
			if (!s->node[i].is_ended)
				node_ended(s, &s->node[i]);
		if (!s->exit_code)
			s->exit_code = 1;
	}
}

static int next_timeout(const struct srun *s, uint64_t now)
{
	uint64_t at = UINT64_MAX, limit = wait_limit_ms(s);
	if (s->kill_at_ms)
		at = s->kill_at_ms;
	if (s->give_up_at_ms && s->give_up_at_ms < at)
		at = s->give_up_at_ms;
	if (launch_due(s) < at)
		at = launch_due(s);
	if (job_watch_due(s) < at)
		at = job_watch_due(s);
	if (s->pending_exits && now + TELL_MS < at)
		at = now + TELL_MS;
	if (s->first_exit_ms && s->tasks_left && !s->is_terminating) {
		uint64_t due = s->first_exit_ms + (limit ? limit : WAIT_WARN_MS);
		if ((limit || !s->warned) && due < at)
			at = due;
	}
	return at == UINT64_MAX ? -1 : at <= now ? 0 : at - now > 1000000 ? 1000000 : (int)(at - now);
}

void run_until_end(struct srun *s)
{
	struct epoll_event ev[EVENTS];
	s->signal_watch = (struct watch){ .ready = signal_ready, .fd = s->signal_fd };
	s->listen_watch = (struct watch){ .ready = listen_ready, .fd = s->listen_fd };
	watch_set(s, &s->signal_watch, EPOLLIN);
	watch_set(s, &s->listen_watch, EPOLLIN);
	while (s->nodes_left) {
		int n = epoll_wait(s->epoll_fd, ev, EVENTS, next_timeout(s, clock_mono_ms()));
		for (int i = 0; i < n; i++) {
			struct watch *w = ev[i].data.ptr;
			if (w->fd >= 0)
				w->ready(w, ev[i].events);
		}
		conn_sweep(s);
		out_flush(s);
		if (n == 0 || s->nodes_left == 0)
			tasks_tell_exits(s);
		time_check(s, clock_mono_ms());
	}
	out_finish(s);
	tasks_tell_exits(s);
}
