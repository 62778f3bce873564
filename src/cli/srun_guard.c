/* srun_guard.c - a child that ends what srun asked for when srun is killed (kill -9, memory) and can no longer do so
 *
 * It reads from a pipe of which srun alone holds the other end: a byte says that srun has given everything back, its end without one that srun is dead.
 * Nothing else of srun stays open in it: what comes from a dead srun's connections and streams is noticed at once. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/srun.h"

static void call(struct client *c, enum rpc rpc, const ProtobufCMessage *req)
{
	ProtobufCMessage *rsp = NULL;
	if (client_call(c, rpc, req, 0, &rsp, NULL) == 0)
		protobuf_c_message_free_unpacked(rsp, NULL);
}

static void kill_id(struct client *c, char *id, bool is_step)
{
	Pb__KillReq req = PB__KILL_REQ__INIT;
	req.id = &id;
	req.n_id = 1;
	req.has_signal = is_step;
	req.signal = SIGKILL;
	call(c, RPC_KILL, &req.base);
}

void job_kill(uint32_t job_id)
{
	char id[16];
	struct client *c;
	snprintf(id, sizeof(id), "%u", job_id);
	if (client_open(&c, NULL) < 0)
		return;
	kill_id(c, id, false);
	client_close(c);
}

/* Perhaps no node has heard of them yet: slurmctld is told that they are over. */
static void steps_kill(const struct srun *s)
{
	char id[32];
	struct client *c;
	if (client_open(&c, NULL) < 0)
		return;
	for (size_t i = 0; i < s->parts; i++) {
		Pb__StepDoneReq done = PB__STEP_DONE_REQ__INIT;
		snprintf(id, sizeof(id), "%u.%u", s->part[i].job_id, s->step_id);
		kill_id(c, id, true);
		done.job_id = s->part[i].job_id;
		done.step_id = s->step_id;
		done.exit_status = SIGKILL;
		call(c, RPC_STEP_DONE, &done.base);
	}
	client_close(c);
}

/* Signals of the terminal and of the group are for srun; it ends when srun does. */
static void guard_run(const struct srun *s, int fd)
{
	char byte;
	sigset_t all;
	ssize_t n;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	dup2(fd, 3);
	close_range(4, ~0u, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	while ((n = read(3, &byte, 1)) < 0 && errno == EINTR)
		;
	if (n)
		return;
	if (s->is_own_job)
		job_kill(s->job_id);
	else
		steps_kill(s);
}

void guard_start(struct srun *s)
{
	int fd[2];
	if (pipe2(fd, O_CLOEXEC) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		guard_run(s, fd[0]);
		_exit(0);
	}
	close(fd[0]);
	s->guard_fd = fd[1];
}

void guard_end(struct srun *s)
{
	if (s->guard_fd <= 0)
		return;
	(void)!write(s->guard_fd, "", 1);
	close(s->guard_fd);
	s->guard_fd = 0;
}
