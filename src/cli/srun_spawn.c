/* srun_spawn.c - steps that tasks start (MPI_Comm_spawn), each by an srun of its own
 *
 * The request is what src/stepd/pmi_spawn.h says. The new srun runs in our job with our output; what the new tasks must find in their store, and a pipe on which
 * it says that its tasks run, travel in its environment (BERTH_MPI_PREPUT, BERTH_MPI_READY). We end when it has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/srun.h"
#include "wire/stepio.h"

#define COMMANDS_MAX 256u
#define ARGS_MAX 8192u

struct spawned {
	struct watch watch;        /* the pipe of the new srun */
	struct srun *s;
	struct spawned *next;
	struct node_info *node;    /* who asked */
	uint32_t ticket;
	pid_t pid;
};
static struct spawned *all;

struct text { const char *at, *end; bool bad; };

static const char *text_next(struct text *t)
{
	const char *text = t->at, *stop = t->at < t->end ? memchr(t->at, 0, (size_t)(t->end - t->at)) : NULL;
	if (!stop) {
		t->bad = true;
		return "";
	}
	t->at = stop + 1;
	return text;
}

static uint32_t number_next(struct text *t, uint32_t max)
{
	unsigned long long n;
	if (str_to_u64(text_next(t), 0, max, &n) == 0)
		return (uint32_t)n;
	t->bad = true;
	return 0;
}

/* One command: its words go to *ret (malloc'd, NULL-ended), its folder and number of tasks beside. */
static char **command_take(struct text *t, const char **ret_dir, uint32_t *ret_tasks)
{
	*ret_tasks = number_next(t, 1000000);
	*ret_dir = text_next(t);
	const char *program = text_next(t);
	uint32_t n = number_next(t, ARGS_MAX);
	char **argv = xcalloc(n + 2, sizeof(*argv));
	argv[0] = (char *)program;
	for (uint32_t i = 0; i < n; i++)
		argv[i + 1] = (char *)text_next(t);
	return argv;
}

/* Values cannot hold newlines: PMI's are single words. */
static char *pairs_take(struct text *t)
{
	struct str out = STR_INIT;
	for (uint32_t i = 0, n = number_next(t, 4096); i < n && !t->bad; i++) {
		const char *key = text_next(t), *value = text_next(t);
		str_addf(&out, "%s=%s\n", key, value);
	}
	if (!out.len)
		str_add(&out, "spawned=1\n");
	return str_take(&out);
}

static void child_exec(const struct srun *s, char **words, const char *dir, uint32_t tasks, const char *pairs, int ready)
{
	char job[32], count[32], fd[16], chdir_to[4200];
	size_t n = 0, words_n = 0;
	while (words[words_n])
		words_n++;
	char **argv = xcalloc(words_n + 12, sizeof(*argv));
	snprintf(job, sizeof(job), "--jobid=%u", s->job_id);
	snprintf(count, sizeof(count), "-n%u", tasks);
	snprintf(fd, sizeof(fd), "%d", ready);
	snprintf(chdir_to, sizeof(chdir_to), "--chdir=%s", *dir ? dir : s->o.desc->work_dir ? s->o.desc->work_dir : ".");
	const char *const front[] = { "srun", job, "--mpi=pmi2", "--overlap", "--overcommit", "--quiet", count, chdir_to, "--" };
	for (size_t i = 0; i < sizeof(front) / sizeof(front[0]); i++)
		argv[n++] = (char *)front[i];
	memcpy(argv + n, words, words_n * sizeof(*argv));
	setenv("BERTH_MPI_PREPUT", pairs, 1);
	setenv("BERTH_MPI_READY", fd, 1);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int null = open("/dev/null", O_RDONLY);
	dup2(null, 0);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static void told(struct spawned *sp, bool ok)
{
	uint8_t body[4] = { 0, 0, 0, ok ? 0 : 1 };
	watch_set(sp->s, &sp->watch, 0);
	close(sp->watch.fd);
	sp->watch.fd = -1;
	conn_send(sp->node->conn, STEPIO_SPAWNED, sp->ticket, body, sizeof(body));
}

static void spawn_ready(struct watch *w, uint32_t events)
{
	struct spawned *sp = (struct spawned *)w;
	char c;
	(void)events;
	told(sp, read(w->fd, &c, 1) == 1);
}

static void refuse(struct conn *c, uint32_t ticket, const char *why)
{
	uint8_t body[4] = { 0, 0, 0, 1 };
	log_error("cannot spawn tasks: %s", why);
	conn_send(c, STEPIO_SPAWNED, ticket, body, sizeof(body));
}

void spawn_take(struct srun *s, struct conn *c, uint32_t ticket, const char *text, size_t len)
{
	struct text t = { .at = text, .end = text + len };
	const char *dir;
	uint32_t tasks;
	int end[2];
	if (number_next(&t, COMMANDS_MAX) != 1) {
		refuse(c, ticket, "several programs at once (MPI_Comm_spawn_multiple) are not supported by this version");
		return;
	}
	char **argv = command_take(&t, &dir, &tasks), *pairs = pairs_take(&t);
	if (t.bad || !tasks || pipe2(end, O_CLOEXEC) < 0) {
		refuse(c, ticket, t.bad || !tasks ? "malformed request" : strerror(errno));
		return;
	}
	pid_t pid = fork();
	if (!pid) {
		(void)fcntl(end[1], F_SETFD, 0);
		child_exec(s, argv, dir, tasks, pairs, end[1]);
	}
	close(end[1]);
	struct spawned *sp = xcalloc(1, sizeof(*sp));
	*sp = (struct spawned){ .watch = { .ready = spawn_ready, .fd = end[0] }, .s = s, .next = all, .node = c->node, .ticket = ticket, .pid = pid };
	all = sp;
	watch_set(s, &sp->watch, EPOLLIN);
	free(argv);
	free(pairs);
}

void spawn_tell(struct srun *s)
{
	const char *fd = getenv("BERTH_MPI_READY");
	for (uint32_t i = 0; i < s->task_count; i++)
		if (s->task[i].state == TASK_STARTING)
			return;
	if (!fd)
		return;
	int n = (int)strtol(fd, NULL, 10);
	if (write(n, "1", 1) == 1)
		close(n);
	unsetenv("BERTH_MPI_READY");
}

void spawn_wait(struct srun *s)
{
	(void)s;
	for (struct spawned *sp = all; sp; sp = sp->next)
		if (sp->pid > 0)
			(void)waitpid(sp->pid, NULL, 0);
}
