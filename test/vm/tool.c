/* tool.c - vmtool: does to the machine what programs of users do
 *
 *   eat MB [SECONDS]   touch so much memory, print "ate MB", hold it        forks N       fork N children that fork on, all sleep
 *   open PATH          print "ok" or the error                              affinity      CPUs it may use, "0,2-3"
 *   widen              ask for all CPUs, then as affinity
 *   policy             memory policy and its nodes, "bind 0"                stuck         sleep without end, ignoring SIGTERM
 *   reboot             restart the machine at once                          poweroff      switch it off at once */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

static int eat(long mb, long seconds)
{
	size_t size = (size_t)mb << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < size; i += 4096)
		p[i] = (char)(i >> 12) | 1;
	printf("ate %ld\n", mb);
	fflush(stdout);
	sleep((unsigned)seconds);
	return 0;
}

static void forks(long n)
{
	int failed = 0;
	for (long i = 0; i < n && !failed; i++) {
		pid_t pid = fork();
		if (pid < 0)
			failed = errno;
		if (!pid) {
			setsid();
			signal(SIGTERM, SIG_IGN);
			for (;;)
				pause();
		}
	}
	printf("forks %s\n", failed ? strerror(failed) : "all");
	fflush(stdout);
	for (;;)
		pause();
}

static int affinity(void)
{
	cpu_set_t set;
	int first = -1, any = 0;
	sched_getaffinity(0, sizeof set, &set);
	for (int i = 0; i <= CPU_SETSIZE; i++) {
		int in = i < CPU_SETSIZE && CPU_ISSET(i, &set);
		if (in && first < 0)
			first = i;
		if (!in && first >= 0) {
			printf("%s%d", any++ ? "," : "", first);
			if (i - 1 > first)
				printf("-%d", i - 1);
			first = -1;
		}
	}
	printf("\n");
	return 0;
}

static int policy(void)
{
	static const char *const names[] = { "default", "preferred", "bind", "interleave", "local" };
	unsigned long nodes = 0;
	int mode = 0;
	if (syscall(SYS_get_mempolicy, &mode, &nodes, 64ul, NULL, 0ul) < 0)
		return 1;
	printf("%s %lx\n", mode >= 0 && mode < 5 ? names[mode] : "?", nodes);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(what, "eat"))
		return eat(n, argc > 3 ? atol(argv[3]) : 0);
	if (!strcmp(what, "forks"))
		forks(n);
	if (!strcmp(what, "affinity"))
		return affinity();
	if (!strcmp(what, "widen")) {
		cpu_set_t all;
		memset(&all, 0xff, sizeof all);
		sched_setaffinity(0, sizeof all, &all);
		return affinity();
	}
	if (!strcmp(what, "policy"))
		return policy();
	if (!strcmp(what, "stuck")) {
		signal(SIGTERM, SIG_IGN);
		for (;;)
			pause();
	}
	if (!strcmp(what, "open")) {
		int fd = open(argv[2], O_RDWR | O_NOCTTY | O_NONBLOCK);
		printf("%s\n", fd < 0 ? strerror(errno) : "ok");
		return fd < 0;
	}
	if (!strcmp(what, "reboot") || !strcmp(what, "poweroff")) {
		sync();
		return reboot(what[0] == 'r' ? RB_AUTOBOOT : RB_POWER_OFF);
	}
	fprintf(stderr, "vmtool: unknown word %s\n", what);
	return 2;
}
