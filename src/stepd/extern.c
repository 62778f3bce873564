/* extern.c - the extern step (see extern.h) */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "stepd/contain.h"
#include "stepd/extern.h"
#include "stepd/namespace.h"
#include "stepd/plugins.h"
#include "stepd/step.h"
#include "stepd/task.h"

#define LOOK_MS 50             /* how often, while the job ends, it is seen whether they have gone */

static struct { struct guest { pid_t pid; int fd; } *guest; size_t n, cap; pid_t keeper; uv_timer_t timer; } ext;

/* In the job's private folders until it is killed. */
static void keeper_run(struct step *s)
{
	sigset_t none;
	if (namespace_enter(s) < 0)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (;;)
		pause();
}

int extern_launch(struct step *s)
{
	if (namespace_prepare(s) < 0 || plugins_start(s) < 0)
		return -1;
	if (step_conf(s, "NamespaceBase")) {
		ext.keeper = fork();               /* not in the step's cgroup: it is no guest */
		if (!ext.keeper)
			keeper_run(s);
		if (ext.keeper < 0)
			return step_fail_node(s, errno, "cannot fork for the extern step of job %u", s->job_id);
	}
	s->running = 1;
	return 0;
}

static bool is_alive(const struct guest *g)
{
	struct pollfd p = { .fd = g->fd, .events = POLLIN };
	return poll(&p, 1, 0) == 0;
}

static int guest_add(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return errno;
	ext.guest = xgrow(ext.guest, &ext.cap, ext.n + 1, sizeof *ext.guest);
	ext.guest[ext.n++] = (struct guest){ pid, fd };
	return 0;
}

int extern_adopt(struct step *s, pid_t pid, pid_t *ret_keeper)
{
	*ret_keeper = ext.keeper;
	if (!s->external || ext.timer.data || pid <= 1)
		return s->external ? ESRCH : EINVAL;
	int rc = s->cgroup ? -contain_adopt(s, pid) : guest_add(pid);
	log_info("process %d %s%s", (int)pid, rc ? "cannot be taken in: " : "is taken in", rc ? strerror(rc) : "");
	return rc;
}

void extern_pids(pid_t **list, size_t *n, size_t *cap)
{
	for (size_t i = 0; i < ext.n; i++)
		if (is_alive(&ext.guest[i])) {
			contain_pids_add(list, n, cap, ext.guest[i].pid);
		} else {
			close(ext.guest[i].fd);
			ext.guest[i--] = ext.guest[--ext.n];
		}
}

static void on_look(uv_timer_t *timer)
{
	struct step *s = timer->data;
	size_t n;
	free(contain_pids(s, &n));
	if (n)
		return;
	uv_timer_stop(timer);
	s->running = 0;
	step_check_end(s);
}

void extern_terminate(struct step *s, uint32_t kill_wait_sec)
{
	if (ext.keeper)
		kill(ext.keeper, SIGKILL);
	task_terminate(s, kill_wait_sec);
	if (ext.timer.data)
		return;
	uv_timer_init(&s->loop, &ext.timer);
	ext.timer.data = s;
	uv_timer_start(&ext.timer, on_look, 0, LOOK_MS);
}
