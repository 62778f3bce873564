/* main.c - slurmstepd: runs the tasks of one step on one node
 *
 * Forked for slurmd (zygote.h) with descriptor 3 connected to it. The first message there is a StepdStart: four bytes of length (big-endian), then
 * the protobuf. Nothing else comes from outside but orders on that connection and on the step's socket in the spool (orders.c).
 * A life: read the message, make the container, open files as the user, fork the tasks, carry their input and output,
 * reap them, kill what they left behind, write the completion to the spool, exit. Where to read on: step.h, then task.c. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "stepd/bcast.h"
#include "stepd/contain.h"
#include "stepd/done.h"
#include "stepd/endreason.h"
#include "stepd/extern.h"
#include "stepd/gather.h"
#include "stepd/io.h"
#include "stepd/mpi.h"
#include "stepd/orders.h"
#include "stepd/plugins.h"
#include "stepd/prolog.h"
#include "stepd/script.h"
#include "stepd/step.h"
#include "stepd/task.h"
#include "stepd/zygote.h"
#include "wire/zygote.h"

#define START_MAX (64u << 20)
#define CHANNEL 3

static Pb__StepdStart *start_read(void)
{
	uint8_t head[4];
	if (fd_read_all(CHANNEL, head, sizeof head) < 0)
		return NULL;
	uint32_t len = get_u32(head);
	if (!len || len > START_MAX)
		return NULL;
	uint8_t *body = xmalloc(len);
	Pb__StepdStart *start = fd_read_all(CHANNEL, body, len) == 0 ? pb__stepd_start__unpack(NULL, len, body) : NULL;
	free(body);
	return start;
}

/* A step over several components of a heterogeneous job: from here on the layout is that of all parts, of which ours is one; what we may use here is what slurmctld
 * has signed. The layout comes from the user: it only says which ranks run where. False: it does not fit ours. */
static bool part_take(struct step *s)
{
	const Pb__HetStep *h = s->spec->het;
	uint64_t at = (uint64_t)h->first_node + s->start->node_index, tasks = 0;
	const Pb__StepNode *mine = at < h->layout->n_node ? h->layout->node[at] : NULL;
	if (!mine || strcmp(mine->name, s->node) || mine->n_task_ids != s->here->n_task_ids)
		return false;
	for (size_t i = 0; i < h->layout->n_node; i++) {
		tasks += h->layout->node[i]->n_task_ids;
		for (size_t k = 0; k < h->layout->node[i]->n_task_ids; k++)
			if (h->layout->node[i]->task_ids[k] >= h->layout->num_tasks)
				return false;
	}
	if (tasks != h->layout->num_tasks)
		return false;
	for (size_t i = 0; i < mine->n_task_ids; i++)
		s->here->task_ids[i] = mine->task_ids[i];
	s->cred->layout = h->layout;
	s->start->node_index = (uint32_t)at;
	s->whole_job = h->job_id;
	return true;
}

static void step_init(struct step *s, Pb__StepdStart *start)
{
	s->start = start;
	s->spec = start->spec;
	s->batch = start->batch;
	s->cred = start->cred;
	s->job_id = s->cred->job_id;
	s->step_id = s->cred->step_id;
	s->external = !s->spec && !s->batch;
	s->uid = s->cred->uid;
	s->gid = s->cred->gid;
	s->node = start->node;
	s->cgroup_dir = s->done_fd = -1;
	const Pb__StepLayout *layout = s->cred->layout;
	for (size_t i = 0; i < layout->n_node; i++)
		if (!strcmp(layout->node[i]->name, s->node))
			s->here = layout->node[i];
	s->whole_job = s->job_id;
	if (s->spec && s->spec->het && s->here && !part_take(s))
		s->here = NULL;
	stepid_format(s->job_id, s->step_id, s->name, sizeof s->name);
	s->note = mmap(NULL, sizeof *s->note, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->note == MAP_FAILED)
		abort();
}

static void log_start(struct step *s)
{
	enum log_level file = LOG_L_INFO;
	const char *level = step_conf(s, "SlurmdDebug");
	if (level)
		(void)log_level_parse(level, &file);
	log_set_time_format(step_conf(s, "LogTimeFormat"));
	log_set_flags(step_conf(s, "DebugFlags"));
	log_init("slurmstepd", LOG_L_QUIET);
	log_set_prefix(xasprintf("[%s] ", s->name));
	(void)log_open(step_conf(s, "SlurmdLogFile"), file);
}

static void on_child(uv_poll_t *p, int status, int events)
{
	struct step *s = p->data;
	struct signalfd_siginfo info[16];
	(void)status, (void)events;
	while (read(p->io_watcher.fd, info, sizeof info) > 0)
		;
	task_reap(s);
	step_check_end(s);
}

/* SIGCHLD comes through a descriptor. The others never stop us: only the end of the tasks does. They are blocked, not ignored: a child that
 * gets one before it has become its program keeps it until then. */
static void signals_start(struct step *s)
{
	static const int blocked[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTOU, SIGTTIN };
	static uv_poll_t poll;
	sigset_t set, child;
	sigemptyset(&set);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
		sigaddset(&set, blocked[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	int fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	uv_poll_init(&s->loop, &poll, fd);
	poll.data = s;
	uv_poll_start(&poll, UV_READABLE, on_child);
}

/* A step that could not be started ends with this. Tasks already running are killed first. */
static void launch_failed(struct step *s)
{
	s->launch_error = s->note->error ? s->note->error : EIO;
	s->launch_text = xstrdup(s->note->text);
	log_error("%s", s->note->text);
	io_failed(s, s->launch_text);
}

int main(int argc, char **argv)
{
	static struct step step;
	struct step *s = &step;
	if (argc > 1 && (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version"))) {
		printf("slurm %s\n", BERTH_VERSION);
		return 0;
	}
	while (argc > 1 && !strcmp(argv[1], "infinity"))   /* keeps systemd's scope alive (noded/cgroup.c) */
		pause();
	if (argc > 1 && !strcmp(argv[1], ZYGOTE_WORD))
		zygote_serve(argc, argv);
	int script = plugins_script();
	if (script >= 0)
		return script;
	Pb__StepdStart *start = fcntl(CHANNEL, F_GETFD) < 0 ? NULL : start_read();
	if (!start) {
		fprintf(stderr, "slurmstepd: error: started without a step to run: slurmd starts this program, people do not\n");
		return 1;
	}
	umask(022);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	step_init(s, start);
	log_start(s);
	if (chdir(start->spool_dir) < 0) {
		log_error("cannot go to SlurmdSpoolDir %s: %s", start->spool_dir, strerror(errno));
		return 1;
	}
	if (!s->here && !s->batch) {
		log_error("node %s has no part in step %s", s->node, s->name);
		return 1;
	}
	if (s->spec && s->spec->bcast)
		bcast_run(s);
	uv_loop_init(&s->loop);
	signals_start(s);
	bool ready = done_prepare(s) == 0;
	ready = orders_start(s, CHANNEL) == 0 && ready;
	contain_create(s);
	endreason_prepare(s);
	if (!ready || io_connect(s) < 0 || task_prepare(s) < 0 || script_write(s) < 0 || io_prepare(s) < 0 || mpi_prepare(s) < 0 ||
	    done_begins(s) < 0 || (s->external ? extern_launch(s) : task_launch(s)) < 0)
		launch_failed(s);
	if (s->launch_error && s->running)
		contain_signal(s, SIGKILL);
	gather_start(s);
	step_check_end(s);
	return uv_run(&s->loop, UV_RUN_DEFAULT);
}
