/* berth.c - `berth`: a whole cluster for one person on one machine (see berth.h for its folder) */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/berth.h"
#include "cli/opt.h"
#include "client/client.h"
#include "model/states.h"

#define READY_LIMIT_MS 60000
#define LOOK_MS 20
#define NODES_MAX 2000
#define TURN_FILE "/tmp/.berth-up.lock"

enum { O_HELP, O_VERSION, O_DIR, O_NODES, O_CPUS, O_GPUS, O_MEM, O_CONF, O_PURGE, O_FOLLOW };
static const struct opt_row rows[] = {
	{ "dir", 0, OPT_REQUIRED, "DIR", "folder of the cluster (default /var/lib/berth for root, ~/.berth for others; BERTH_DIR)", O_DIR, false },
	{ "nodes", 'N', OPT_REQUIRED, "N", "up: how many nodes (default 4)", O_NODES, false },
	{ "cpus", 'c', OPT_REQUIRED, "N", "up: CPUs that each node claims (default 8)", O_CPUS, false },
	{ "gpus", 'G', OPT_REQUIRED, "N", "up: pretended GPUs on each node (default 8)", O_GPUS, false },
	{ "mem", 0, OPT_REQUIRED, "MB", "up: memory that each node claims (default 16000)", O_MEM, false },
	{ "conf", 0, OPT_REQUIRED, "FILE", "up: file with more lines for slurm.conf", O_CONF, false },
	{ "purge", 0, OPT_NONE, NULL, "down: remove its files too", O_PURGE, false },
	{ "follow", 'f', OPT_NONE, NULL, "logs: go on printing what is added", O_FOLLOW, false },
	{ "help", 'h', OPT_NONE, NULL, "show this text", O_HELP, false },
	{ "version", 'V', OPT_NONE, NULL, "show the version", O_VERSION, false },
};
#define ROWS (sizeof rows / sizeof *rows)

static const char usage[] =
	"berth COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	"Commands:\n"
	"  up                     start a cluster (or what is missing of it), return when it is ready\n"
	"  down                   stop it; --purge: and forget it\n"
	"  status                 its daemons, their state and process ids\n"
	"  env                    shell lines that put it on PATH:  eval \"$(berth env)\"\n"
	"  exec -- CMD [ARG...]   run CMD where the names of its nodes resolve\n"
	"  logs [DAEMON|NODE]     print logs\n"
	"  kill DAEMON|NODE       kill -9 it at once; of a node everything that runs there\n"
	"  start DAEMON|NODE      start it again\n"
	"  sim ARG...             run the scheduler on a trace of jobs: berth sim --help";

struct args { struct berth b; bool purge, follow, help, version; };

static int size_option(struct args *a, enum berth_size which, uint32_t min, uint32_t max, const char *value, struct error *err)
{
	unsigned long long v;
	if (str_to_u64(value, min, max, &v))
		return error_set(err, EINVAL, "--%s: \"%s\" is not a number from %u to %u", berth_size_name[which], value, min, max);
	a->b.size[which] = (uint32_t)v;
	a->b.given |= 1u << which;
	return 0;
}

static int take_option(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct args *a = arg;
	switch (row->id) {
	case O_DIR: xstr_set(&a->b.dir, value); return 0;
	case O_NODES: return size_option(a, BERTH_NODES, 1, NODES_MAX, value, err);
	case O_CPUS: return size_option(a, BERTH_CPUS, 1, 1024, value, err);
	case O_GPUS: return size_option(a, BERTH_GPUS, 0, 64, value, err);
	case O_MEM: return size_option(a, BERTH_MEM, 1, 1u << 30, value, err);
	case O_CONF: a->b.extra_conf = value; return 0;
	case O_PURGE: a->purge = true; return 0;
	case O_FOLLOW: a->follow = true; return 0;
	case O_HELP: a->help = true; return 0;
	case O_VERSION: a->version = true; return 0;
	}
	return 0;
}

static void set_defaults(struct berth *b)
{
	char self[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	const char *dir = getenv("BERTH_DIR"), *home = getenv("HOME");
	if (n < 0)
		n = 0;
	self[n] = 0;
	b->bin_dir = xstrdup(dirname(self));
	b->sbin_dir = xasprintf("%s/../sbin", b->bin_dir);
	char *real = realpath(b->sbin_dir, NULL);
	if (real) {
		free(b->sbin_dir);
		b->sbin_dir = real;
	}
	b->root = !geteuid();
	static const uint32_t usual[BERTH_SIZES] = { [BERTH_NODES] = 4, [BERTH_CPUS] = 8, [BERTH_GPUS] = 8, [BERTH_MEM] = 16000 };
	memcpy(b->size, usual, sizeof usual);
	if (dir)
		b->dir = xstrdup(dir);
	else
		b->dir = b->root ? xstrdup("/var/lib/berth") : xasprintf("%s/.berth", home ? home : "/tmp");
}

static int make_absolute(struct berth *b, struct error *err)
{
	char cwd[PATH_MAX];
	if (b->dir[0] != '/') {
		if (!getcwd(cwd, sizeof cwd))
			return error_set(err, errno, "current folder: %s", strerror(errno));
		char *full = xasprintf("%s/%s", cwd, b->dir);
		free(b->dir);
		b->dir = full;
	}
	if (strpbrk(b->dir, " \t\n\"'#[]"))
		return error_set(err, EINVAL, "--dir %s: white space, quotes, # and brackets cannot stand in slurm.conf paths", b->dir);
	return 0;
}

static void use_conf(const struct berth *b)
{
	char *conf = berth_path(b, "etc/slurm.conf");
	setenv("SLURM_CONF", conf, 1);
	free(conf);
}

/* How many of the cluster's own nodes are up (the lines of --conf may name others); -1 while slurmctld does not answer. */
static int nodes_ready(const struct berth *b)
{
	char names[64];
	struct client *c;
	struct error err = { 0 };
	ProtobufCMessage *rsp = NULL;
	Pb__NodeListReq req = PB__NODE_LIST_REQ__INIT;
	Pb__Empty ping = PB__EMPTY__INIT;
	int up = -1;
	if (client_open(&c, &err))
		return -1;
	snprintf(names, sizeof names, "node-[1-%u]", b->size[BERTH_NODES]);
	req.nodes = names;
	/* A ping is never repeated: it tells at once that slurmctld does not listen yet. */
	if (client_call(c, RPC_PING, &ping.base, 500, &rsp, &err)) {
		client_close(c);
		return -1;
	}
	protobuf_c_message_free_unpacked(rsp, NULL);
	rsp = NULL;
	if (!client_call(c, RPC_NODE_LIST, &req.base, 5000, &rsp, &err)) {
		Pb__NodeListRsp *r = (Pb__NodeListRsp *)rsp;
		up = 0;
		for (size_t i = 0; i < r->n_node; i++)
			up += r->node[i]->state != NODE_DOWN && r->node[i]->state != NODE_UNKNOWN && !(r->node[i]->state_flags & NODEF_NOT_RESPONDING);
		protobuf_c_message_free_unpacked(rsp, NULL);
	}
	client_close(c);
	return up;
}

static bool listening(const struct berth *b)
{
	char *path = berth_path(b, "run/sack.socket");
	struct stat st;
	bool ok = !stat(path, &st);
	free(path);
	return ok;
}

static long printed(const struct berth *b, const char *name)
{
	char *path = berth_path(b, "log/%s.out", name);
	struct stat st;
	long size = stat(path, &st) ? 0 : (long)st.st_size;
	free(path);
	return size;
}

/* The last line that a daemon printed behind byte `from`; empty when there is none. */
static void last_words(const struct berth *b, const char *name, long from, char *ret, size_t size)
{
	char *path = berth_path(b, "log/%s.out", name);
	FILE *f = fopen(path, "re");
	free(path);
	ret[0] = 0;
	if (!f)
		return;
	char line[512];
	(void)fseek(f, from, SEEK_SET);
	while (fgets(line, sizeof line, f))
		if (line[0] != '\n')
			snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
	fclose(f);
}

/* A daemon that ended by itself: its last line says why. */
static int check_alive(const struct berth *b, struct error *err)
{
	size_t n;
	int rc = 0;
	char words[400];
	struct berth_proc *p = berth_procs(b, &n);
	for (size_t i = 0; i < n && !rc; i++)
		if (!p[i].pid) {
			last_words(b, p[i].name, 0, words, sizeof words);
			rc = error_set(err, ESRCH, "%s has ended%s%s", p[i].name, *words ? ": " : "", words);
			error_hint(err, "Its output is in %s/log/%s.out", b->dir, p[i].name);
		}
	free(p);
	return rc;
}

static int wait_ready(const struct berth *b, struct error *err)
{
	use_conf(b);
	int up = -1, rc;
	for (uint64_t end = clock_mono_ms() + READY_LIMIT_MS; clock_mono_ms() < end;) {
		if ((rc = check_alive(b, err)))
			return rc;
		/* The socket first: a command without it would wait for its own time-out. */
		if (listening(b) && (up = nodes_ready(b)) >= (int)b->size[BERTH_NODES])
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	if (up < 0)
		error_set(err, ETIMEDOUT, "slurmctld does not answer: see %s/log/slurmctld.out and slurmctld.log", b->dir);
	else
		error_set(err, ETIMEDOUT, "%d of %u nodes have registered: see %s/log", up, b->size[BERTH_NODES], b->dir);
	return -ETIMEDOUT;
}

/* Two clusters that start at once must not pick the same ports: held until we end. */
static void take_turn(void)
{
	/* Without O_CREAT first: in a sticky folder the kernel may refuse that for a file of another user. */
	int lock = open(TURN_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (lock < 0)
		lock = open(TURN_FILE, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (lock >= 0)
		(void)flock(lock, LOCK_EX);
}

/* Its files and processes are those of the user who made it. Root may end another's cluster, but not start it as root. */
static int check_owner(const struct berth *b, bool starts, struct error *err)
{
	struct stat st;
	if (stat(b->dir, &st) || st.st_uid == geteuid() || (b->root && !starts))
		return 0;
	struct passwd *pw = getpwuid(st.st_uid);
	char uid[16];
	snprintf(uid, sizeof uid, "%u", (unsigned)st.st_uid);
	return error_set(err, EACCES, "the cluster in %s belongs to user %s: only that user%s may do this", b->dir, pw ? pw->pw_name : uid, starts ? "" : " or root");
}

static void stop_all(const struct berth *b)
{
	size_t n;
	struct berth_proc *p = berth_procs(b, &n);
	/* Nodes first and all of them at once, so that each wait is short. */
	for (size_t i = 0; i < n; i++)
		if (p[i].pid && p[i].node)
			kill(p[i].pid, SIGTERM);
	for (size_t i = n; i-- > 0;)
		berth_proc_stop(b, &p[i], SIGTERM, true, 3000);
	free(p);
}

static int start_all(const struct berth *b, struct error *err)
{
	const char *note = NULL, *said = NULL;
	pid_t pid;
	size_t n;
	int rc = 0;
	struct berth_proc *p = berth_procs(b, &n);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = berth_proc_start(b, &p[i], NULL, &pid, &note, err);
		if (note && !said) {
			fprintf(stderr, "berth: %s\n", note);
			said = note;
		}
	}
	free(p);
	return rc ? rc : wait_ready(b, err);
}

static int cmd_up(struct args *a, int argc, char **argv, struct error *err)
{
	struct berth *b = &a->b;
	char *conf = berth_path(b, "etc/slurm.conf");
	umask(022);
	take_turn();
	bool there = !access(conf, F_OK);
	int rc = check_owner(b, there, err);
	if (!rc)
		rc = there ? berth_conf_same(b, err) : berth_conf_write(b, err);
	if (!rc)
		berth_spool_mount(b);
	if (!rc && (rc = start_all(b, err)) && !there) {
		/* A new cluster that cannot work is not left half up; the next try writes its configuration anew. */
		stop_all(b);
		(void)unlink(conf);
	}
	if (!rc)
		printf("Cluster of %u nodes is up in %s.  Use it:  eval \"$(%s/berth env --dir %s)\"\n", b->size[BERTH_NODES], b->dir, b->bin_dir, b->dir);
	free(conf);
	return rc;
}

static int cmd_down(struct args *a, int argc, char **argv, struct error *err)
{
	int rc = berth_conf_read(&a->b, err);
	if (!rc)
		rc = check_owner(&a->b, false, err);
	if (rc)
		return rc;
	stop_all(&a->b);
	printf("Cluster in %s is down.\n", a->b.dir);
	fflush(stdout);
	return a->purge ? berth_conf_remove(&a->b, err) : 0;
}

static int cmd_status(struct args *a, int argc, char **argv, struct error *err)
{
	size_t n;
	int rc = berth_conf_read(&a->b, err), missing = 0;
	if (rc)
		return rc;
	struct berth_proc *p = berth_procs(&a->b, &n);
	printf("%-12s %-8s %s\n", "DAEMON", "STATE", "PID");
	for (size_t i = 0; i < n; i++) {
		if (p[i].pid)
			printf("%-12s %-8s %d\n", p[i].name, "up", (int)p[i].pid);
		else
			printf("%-12s %-8s -\n", p[i].name, "down");
		missing += !p[i].pid;
	}
	free(p);
	return missing ? 3 : 0;
}

static int cmd_env(struct args *a, int argc, char **argv, struct error *err)
{
	int rc = berth_conf_read(&a->b, err);
	if (rc)
		return rc;
	printf("export PATH='%s:%s':\"$PATH\"\nexport SLURM_CONF='%s/etc/slurm.conf'\nexport BERTH_DIR='%s'\n", a->b.bin_dir, a->b.sbin_dir, a->b.dir, a->b.dir);
	return 0;
}

static int cmd_exec(struct args *a, int argc, char **argv, struct error *err)
{
	int rc = berth_conf_read(&a->b, err);
	if (rc)
		return rc;
	if (!argc)
		return error_set(err, EINVAL, "exec: which command?");
	use_conf(&a->b);
	char *path = xasprintf("%s:%s:%s", a->b.bin_dir, a->b.sbin_dir, getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	setenv("PATH", path, 1);
	free(path);
	if ((rc = berth_enter_names(&a->b, NULL)))
		fprintf(stderr, "berth: node names do not resolve (%s)\n", berth_names_missing(rc));
	execvp(argv[0], argv);
	fprintf(stderr, "berth: error: %s: %s\n", argv[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

/* Its log; what it printed says the same again, and counts only where it has no log or has ended (it may say why). */
static void log_add(const struct args *a, const struct berth_proc *p, char **cmd, size_t *count)
{
	bool logged = false;
	for (int out = 0; out < 2; out++) {
		struct stat st;
		char *path = berth_path(&a->b, "log/%s.%s", p->name, out ? "out" : "log");
		bool wanted = !out || !logged || !p->pid;
		if (wanted && !stat(path, &st) && (st.st_size || (a->follow && !out))) {
			cmd[(*count)++] = path;
			logged = true;
		} else {
			free(path);
		}
	}
}

static int cmd_logs(struct args *a, int argc, char **argv, struct error *err)
{
	size_t n, count = 0;
	int rc = berth_conf_read(&a->b, err);
	if (rc)
		return rc;
	struct berth_proc *p = berth_procs(&a->b, &n);
	char **cmd = xcalloc(n * 2 + 8, sizeof *cmd);
	cmd[count++] = "tail";
	cmd[count++] = a->follow ? "-F" : "-n";
	if (!a->follow)
		cmd[count++] = "+1";
	size_t first = count;
	for (size_t i = 0; i < n; i++) {
		if (argc && strcmp(argv[0], p[i].name) && !(p[i].node && !strcmp(argv[0], "slurmd")))
			continue;
		log_add(a, &p[i], cmd, &count);
	}
	if (count == first)
		return error_set(err, ENOENT, "no log of %s in %s/log", argc ? argv[0] : "any daemon", a->b.dir);
	execvp("tail", cmd);
	return error_set(err, errno, "tail: %s", strerror(errno));
}

static struct berth_proc *find_proc(struct args *a, int argc, char **argv, size_t *at, bool starts, struct error *err)
{
	size_t n;
	if (berth_conf_read(&a->b, err) || check_owner(&a->b, starts, err))
		return NULL;
	if (argc != 1) {
		error_set(err, EINVAL, "name one daemon or node");
		return NULL;
	}
	struct berth_proc *p = berth_procs(&a->b, &n);
	for (*at = 0; *at < n; ++*at)
		if (!strcmp(p[*at].name, argv[0]))
			return p;
	free(p);
	error_set(err, ENOENT, "no daemon or node \"%s\" here", argv[0]);
	error_hint(err, "Daemons are sackd, slurmdbd, slurmctld; nodes are node-1 to node-%u.", a->b.size[BERTH_NODES]);
	return NULL;
}

static int cmd_kill(struct args *a, int argc, char **argv, struct error *err)
{
	size_t i;
	struct berth_proc *p = find_proc(a, argc, argv, &i, false, err);
	if (!p)
		return -EINVAL;
	berth_proc_stop(&a->b, &p[i], SIGKILL, true, 2000);
	free(p);
	return 0;
}

/* A socket at which a daemon says that it serves, and its name for $NOTIFY_SOCKET. The kernel picks a free one without a file. */
static int notify_open(char *ret_name, size_t size, struct error *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	socklen_t len = sizeof sa.sun_family;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len))
		return error_set(err, errno, "cannot make a socket: %s", strerror(errno));
	len = sizeof sa;
	(void)getsockname(fd, (struct sockaddr *)&sa, &len);
	snprintf(ret_name, size, "@%.*s", (int)(len - offsetof(struct sockaddr_un, sun_path)) - 1, sa.sun_path + 1);
	return fd;
}

/* Until it has said that it serves, or has ended: its last line says why. */
static int wait_served(const struct berth *b, const struct berth_proc *p, pid_t pid, long from, int fd, struct error *err)
{
	struct pollfd look = { .fd = fd, .events = POLLIN };
	char words[400];
	for (uint64_t end = clock_mono_ms() + READY_LIMIT_MS; clock_mono_ms() < end;) {
		bool alive = berth_proc_alive(pid);      /* before the look: it may speak and end */
		if (poll(&look, 1, LOOK_MS) > 0)
			return 0;
		if (alive)
			continue;
		last_words(b, p->name, from, words, sizeof words);
		error_set(err, ESRCH, "%s has ended%s%s", p->name, *words ? ": " : "", words);
		error_hint(err, "Its output is in %s/log/%s.out", b->dir, p->name);
		return -ESRCH;
	}
	return error_set(err, ETIMEDOUT, "%s runs, but does not serve yet after %d s: see %s/log/%s.out", p->name, READY_LIMIT_MS / 1000, b->dir, p->name);
}

static int cmd_start(struct args *a, int argc, char **argv, struct error *err)
{
	size_t i;
	const char *note;
	char name[128];
	pid_t pid;
	struct berth_proc *p = find_proc(a, argc, argv, &i, true, err);
	if (!p)
		return -EINVAL;
	long from = printed(&a->b, p[i].name);
	int fd = p[i].pid ? -1 : notify_open(name, sizeof name, err), rc = 0;
	if (!p[i].pid && fd < 0)
		rc = fd;
	else if (!p[i].pid)
		rc = berth_proc_start(&a->b, &p[i], name, &pid, &note, err);
	if (!rc && !p[i].pid)
		rc = wait_served(&a->b, &p[i], pid, from, fd, err);
	if (fd >= 0)
		close(fd);
	free(p);
	return rc;
}

/* Its options are its own: berth-sim reads them. */
static int cmd_sim(struct args *a, int argc, char **argv, struct error *err)
{
	char *path = xasprintf("%s/berth-sim", a->b.bin_dir);
	argv[-1] = path; /* `sim` */
	execv(path, argv - 1);
	return error_set(err, errno, "%s: %s", path, strerror(errno));
}

static const struct { const char *name; int (*fn)(struct args *, int, char **, struct error *); int operands; /* at most */ } commands[] = {
	{ "up", cmd_up, 0 }, { "down", cmd_down, 0 }, { "status", cmd_status, 0 }, { "env", cmd_env, 0 }, { "exec", cmd_exec, INT_MAX },
	{ "logs", cmd_logs, 1 }, { "kill", cmd_kill, 1 }, { "start", cmd_start, 1 }, { "sim", cmd_sim, INT_MAX },
};

static int fail(const struct error *err)
{
	fprintf(stderr, "berth: error: %s\n", err->line);
	if (err->hint[0])
		fprintf(stderr, "berth: %s\n", err->hint);
	return 1;
}

int main(int argc, char **argv)
{
	struct args a = { 0 };
	struct error err = { 0 };
	log_init("berth", LOG_L_ERROR);
	set_defaults(&a.b);
	/* The command may stand before or after options; what follows `exec` is its own. */
	const char *name = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	int shift = name ? 1 : 0;
	if (name && !strcmp(name, "sim"))
		return cmd_sim(&a, argc - 2, argv + 2, &err) < 0 ? fail(&err) : 0;
	bool is_exec = name && !strcmp(name, "exec");
	int first = opt_parse(rows, ROWS, argc - shift, argv + shift, is_exec, take_option, &a, &err);
	if (first < 0)
		return fail(&err);
	int rest = argc - shift - first;
	char **args = argv + shift + first;
	if (a.version)
		return printf("slurm %s\n", BERTH_VERSION) < 0;
	if (!name && rest) {
		name = args[0];
		args++, rest--;
	}
	if (a.help || !name) {
		opt_print_help(usage, rows, ROWS);
		return a.help ? 0 : 1;
	}
	if (make_absolute(&a.b, &err))
		return fail(&err);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (strcmp(commands[i].name, name))
			continue;
		if (rest > commands[i].operands) {
			error_set(&err, EINVAL, "%s: unexpected argument \"%s\"", name, args[commands[i].operands]);
			return fail(&err);
		}
		int rc = commands[i].fn(&a, rest, args, &err);
		return rc < 0 ? fail(&err) : rc;
	}
	error_set(&err, EINVAL, "unknown command \"%s\": berth --help lists them", name);
	return fail(&err);
}
