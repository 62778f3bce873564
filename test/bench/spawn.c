/* spawn.c - runs a command N times from K clients at once: no shell, whose own fork costs more than the command it measures
 *   spawn N K CMD ARG...    standard output of CMD is thrown away; exit 1 when a run has failed */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int runs(long n, char **argv)
{
	posix_spawn_file_actions_t files;
	int failed = 0, status;
	pid_t pid;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	for (long i = 0; i < n; i++) {
		int rc = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
		if (rc) {
			fprintf(stderr, "spawn: %s: %s\n", argv[0], strerror(rc));
			return 1;
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		failed |= status != 0;
	}
	return failed;
}

int main(int argc, char **argv)
{
	long n = argc > 3 ? strtol(argv[1], NULL, 10) : 0, k = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
	int failed = 0, status;
	if (n < 1 || k < 1 || k > 1000) {
		fprintf(stderr, "usage: spawn N CLIENTS COMMAND [ARGUMENT...]\n");
		return 2;
	}
	for (long i = 0; i < k; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			perror("spawn: fork");
			return 2;
		}
		if (!pid)
			_exit(runs(n / k + (i < n % k), argv + 3));
	}
	for (long i = 0; i < k; i++)
		failed |= wait(&status) < 0 || status;
	return failed;
}
