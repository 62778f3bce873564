/* copy.c - ceilings that streams of a step are held against, with nothing but read and write of 64 KiB
 *
 *     copy pipe BYTES          a writer, a pipe, a copier to TCP, a copier from TCP to a pipe, a reader: as a task's output goes through slurmstepd and srun
 *     copy files N FILE DIR    FILE to N files in DIR at once, each over a TCP connection of its own: as sbcast to N nodes
 *     copy echo COMMAND...     COMMAND on a terminal; the median time in ms from a key to its echo
 * Prints one figure: MB/s (of each file) or ms. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PIECE 65536
#define KEYS 101

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void copy(int from, int to)
{
	static char buf[PIECE];
	for (ssize_t n; (n = read(from, buf, sizeof buf)) > 0;)
		for (ssize_t at = 0, k; at < n; at += k)
			if ((k = write(to, buf + at, (size_t)(n - at))) < 0)
				err(1, "write");
}

/* Two ends of a TCP connection of this machine. */
static void tcp_pair(int end[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 1) || getsockname(l, (struct sockaddr *)&a, &len))
		err(1, "listen");
	end[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(end[0], (struct sockaddr *)&a, sizeof a) || (end[1] = accept(l, NULL, NULL)) < 0)
		err(1, "connect");
	close(l);
}

static void pipe_rate(long long bytes)
{
	int a[2], b[2], t[2];
	static char buf[PIECE];
	if (pipe(a) || pipe(b))
		err(1, "pipe");
	tcp_pair(t);
	double begin = now();
	if (!fork()) {                                     /* the task */
		for (long long left = bytes; left > 0; left -= PIECE)
			if (write(a[1], buf, PIECE) != PIECE)
				_exit(1);
		_exit(0);
	}
	close(a[1]);
	if (!fork()) {                                     /* slurmstepd */
		copy(a[0], t[0]);
		_exit(0);
	}
	close(t[0]);
	if (!fork()) {                                     /* srun */
		close(b[0]);
		copy(t[1], b[1]);
		_exit(0);
	}
	close(b[1]);
	close(t[1]);
	while (read(b[0], buf, sizeof buf) > 0)
		;
	printf("%.0f\n", (double)bytes / 1e6 / (now() - begin));
}

static void files_rate(int n, const char *file, const char *dir)
{
	char path[4096];
	off_t size = 0;
	double begin = now();
	for (int i = 0; i < n; i++) {
		int t[2], in = open(file, O_RDONLY);
		if (in < 0)
			err(1, "%s", file);
		size = lseek(in, 0, SEEK_END);
		lseek(in, 0, SEEK_SET);
		tcp_pair(t);
		if (!fork()) {
			close(t[1]);
			copy(in, t[0]);
			_exit(0);
		}
		close(t[0]);
		if (!fork()) {
			snprintf(path, sizeof path, "%s/copy.%d", dir, i);
			copy(t[1], open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
			_exit(0);
		}
		close(t[1]);
		close(in);
	}
	while (wait(NULL) > 0)
		;
	printf("%.0f\n", (double)size / 1e6 / (now() - begin));
}

static int compare(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : 1; }

static void echo_time(char **argv)
{
	struct termios raw;
	double t[KEYS];
	char c = 0;
	int fd;
	memset(&raw, 0, sizeof raw);
	cfmakeraw(&raw);
	pid_t pid = forkpty(&fd, NULL, &raw, NULL);
	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	while (c != '>')                                   /* the program's sign that it runs */
		if (read(fd, &c, 1) != 1)
			errx(1, "%s ended", argv[0]);
	for (int i = 0; i < KEYS; i++) {
		double begin = now();
		if (write(fd, "k", 1) != 1)
			err(1, "write");
		for (c = 0; c != 'k';)
			if (read(fd, &c, 1) != 1)
				errx(1, "%s ended", argv[0]);
		t[i] = (now() - begin) * 1e3;
		usleep(2000);
	}
	kill(pid, 15);
	qsort(t, KEYS, sizeof *t, compare);
	printf("%.2f\n", t[KEYS / 2]);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "pipe"))
		pipe_rate(atoll(argv[2]));
	else if (argc == 5 && !strcmp(argv[1], "files"))
		files_rate(atoi(argv[2]), argv[3], argv[4]);
	else if (argc > 2 && !strcmp(argv[1], "echo"))
		echo_time(argv + 2);
	else
		errx(2, "see its first comment");
	return 0;
}
