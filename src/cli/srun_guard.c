/* srun_guard.c - a child that ends what srun asked for when srun is killed (kill -9, memory) and can no longer do so
 *
 * It is forked before slurmctld is asked, and reads from a pipe of which srun alone holds the other end: a note says which job or step it has become, or (zero) that srun has
 * given everything back; the end of the pipe without that, that srun is dead. One that dies before it has heard is asked for again: the submission by its key, steps by host and pid.
 * Nothing else of srun stays open in it: what comes from a dead srun's connections and streams is noticed at once. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/srun.h"

#define FIND_ROUNDS 50
#define FIND_MS 100

struct note { uint32_t job_id, step_id; };    /* job_id 0: it is over */

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

/* Perhaps no node has heard of it yet: slurmctld is told that it is over. */
static void step_kill(struct client *c, uint32_t job_id, uint32_t step_id)
{
	Pb__StepDoneReq done = PB__STEP_DONE_REQ__INIT;
	char id[32];
	snprintf(id, sizeof(id), "%u.%u", job_id, step_id);
	kill_id(c, id, true);
	done.job_id = job_id;
	done.step_id = step_id;
	done.exit_status = SIGKILL;
	call(c, RPC_STEP_DONE, &done.base);
}

static void steps_kill(const struct srun *s)
{
	struct client *c;
	if (client_open(&c, NULL) < 0)
		return;
	for (size_t i = 0; i < s->parts; i++)
		step_kill(c, s->part[i].job_id, s->step_id);
	client_close(c);
}

/* srun was killed before it heard which job it got: the same submission with the same key gets the same answer. One that had never arrived makes a job here, which is ended
 * at once like the other. */
static uint32_t job_learn(const Pb__SubmitReq *req)
{
	ProtobufCMessage *rsp = NULL;
	struct client *c;
	uint32_t id = 0;
	if (client_open(&c, NULL) < 0)
		return 0;
	if (client_call(c, RPC_SUBMIT, &req->base, 0, &rsp, NULL) == 0) {
		id = ((const Pb__SubmitRsp *)rsp)->code ? 0 : ((const Pb__SubmitRsp *)rsp)->job_id;
		protobuf_c_message_free_unpacked(rsp, NULL);
	}
	client_close(c);
	return id;
}

/* Or which step: slurmctld knows whose they are. The number of those that are ended. */
static size_t steps_find_kill(struct client *c, uint32_t job_id, const char *host, uint32_t pid)
{
	Pb__StepListReq req = PB__STEP_LIST_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	size_t found = 0;
	req.has_job_id = true;
	req.job_id = job_id;
	if (client_call(c, RPC_STEP_LIST, &req.base, 0, &msg, NULL) < 0)
		return 0;
	const Pb__StepListRsp *list = (const Pb__StepListRsp *)msg;
	for (size_t i = 0; i < list->n_step; i++) {
		const Pb__StepRecord *st = list->step[i];
		if (st->srun_host && st->has_srun_pid && st->srun_pid == pid && !strcmp(st->srun_host, host))
			step_kill(c, st->job_id, st->step_id), found++;
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	return found;
}

static void steps_learn_kill(const struct srun *s, uint32_t pid)
{
	struct utsname host;
	struct client *c;
	size_t found = 0;
	if (uname(&host) < 0 || client_open(&c, NULL) < 0)
		return;
	/* What srun has sent may be read after what we ask. */
	for (unsigned round = 0; round < FIND_ROUNDS && !found; round++) {
		for (size_t i = 0; i < s->parts; i++)
			found += steps_find_kill(c, s->part[i].job_id, host.nodename, pid);
		if (!found)
			nanosleep(&(struct timespec){ .tv_nsec = FIND_MS * 1000000 }, NULL);
	}
	client_close(c);
}

/* Signals of the terminal and of the group are for srun; it ends when srun does. */
static void guard_run(struct srun *s, int fd, const Pb__SubmitReq *req, uint32_t pid)
{
	struct note note = { 0 };
	bool known = false;
	sigset_t all;
	ssize_t n;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	dup2(fd, 3);
	close_range(4, ~0u, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	while ((n = read(3, &note, sizeof(note))) == (ssize_t)sizeof(note) || (n < 0 && errno == EINTR)) {
		if (n > 0 && !note.job_id)
			return;
		known |= n > 0;
	}
	if (req) {
		uint32_t id = known ? note.job_id : job_learn(req);
		if (id)
			job_kill(id);
	} else if (known) {
		s->step_id = note.step_id;
		steps_kill(s);
	} else {
		steps_learn_kill(s, pid);
	}
}

void guard_start(struct srun *s, const Pb__SubmitReq *req)
{
	int fd[2];
	uint32_t own = (uint32_t)getpid();
	if (pipe2(fd, O_CLOEXEC) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		guard_run(s, fd[0], req, own);
		_exit(0);
	}
	close(fd[0]);
	s->guard_fd = fd[1];
}

void guard_tell(struct srun *s)
{
	struct note note = { s->job_id, s->step_id };
	if (s->guard_fd > 0)
		(void)!write(s->guard_fd, &note, sizeof(note));
}

void guard_end(struct srun *s)
{
	static const struct note over;
	if (s->guard_fd <= 0)
		return;
	(void)!write(s->guard_fd, &over, sizeof(over));
	close(s->guard_fd);
	s->guard_fd = 0;
}
