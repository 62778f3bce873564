/* berth_faultsim.c - the command: seeds one after the other (see faultsim.h) */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/opt.h"
#include "sim/faultsim.h"

enum { O_HELP, O_SEED, O_SEEDS, O_EVENTS, O_WATCH, O_LIST };
static const struct opt_row rows[] = {
	{ "seed", 's', OPT_REQUIRED, "N", "the first seed (default 1)", O_SEED, false },
	{ "seeds", 'n', OPT_REQUIRED, "COUNT", "how many seeds, one after the other (default 1)", O_SEEDS, false },
	{ "events", 'e', OPT_REQUIRED, "M", "events of each until the faults stop (default 1000)", O_EVENTS, false },
	{ "watch", 'w', OPT_REQUIRED, "JOB", "tell the story of a job", O_WATCH, false },
	{ "list", 'l', OPT_REQUIRED, "N,N,...", "these seeds instead", O_LIST, false },
	{ "help", 'h', OPT_NONE, NULL, "show this text", O_HELP, false },
};
struct args { unsigned long long seed, seeds, events, watch; const char *list; bool help; };

static int take(const struct opt_row *row, const char *value, void *arg, struct error *err)
{
	struct args *a = arg;
	unsigned long long *to[] = { [O_SEED] = &a->seed, [O_SEEDS] = &a->seeds, [O_EVENTS] = &a->events, [O_WATCH] = &a->watch };
	if (row->id == O_HELP)
		a->help = true;
	else if (row->id == O_LIST)
		a->list = value;
	else if (str_to_u64(value, 1, 1000000000, to[row->id]))
		return error_set(err, -1, "--%s: \"%s\" is not a number", row->name, value);
	return 0;
}

int main(int argc, char **argv)
{
	struct args a = { 1, 1, 1000, 0, NULL, false };
	struct error err = { 0 };
	struct timespec from, to;
	uint64_t steps = 0;
	log_init("berth-faultsim", LOG_L_ERROR);
	if (opt_parse(rows, sizeof rows / sizeof rows[0], argc, argv, false, take, &a, &err) < 0) {
		fprintf(stderr, "berth-faultsim: error: %s\n", err.line);
		return 1;
	}
	if (a.help) {
		opt_print_help("berth-faultsim --seed N [--seeds COUNT] [--events M] | --list N,N,...", rows, sizeof rows / sizeof rows[0]);
		return 0;
	}
	faults_watched = (uint32_t)a.watch;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (char *end; a.list && a.list[0]; a.list = end[0] == ',' ? end + 1 : end) {
		steps += faults_seed(strtoull(a.list, &end, 10), a.events, false);
		a.seeds = 0;
	}
	for (unsigned long long i = 0; i < a.seeds; i++) {
		if (a.seeds == 1 || i % 250 == 0) {
			printf("seeds from %llu\n", a.seed + i);
			fflush(stdout);
		}
		steps += faults_seed(a.seed + i, a.events, a.seeds == 1);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	double sec = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%llu seeds, %llu events in %.1f s: %.1f million an hour\n", a.seeds, (unsigned long long)steps, sec, (double)steps / sec * 3600 / 1e6);
	return 0;
}
