/* squeue.h - what squeue was asked to show; parsing is in squeue_opt.c, filtering and printing in squeue.c */
#pragma once
#include "cli/showcmd.h"
#include "model/hostlist.h"

struct id_list { uint64_t *id; size_t n, cap; };
struct squeue {
	/* lists as typed; NULL: not given */
	char *accounts, *names, *partitions, *qos, *licenses, *reservations, *jobs, *steps, *nodes, *users, *states;
	char *format, *format_long, *sort;
	char *json, *yaml;               /* parser asked for; "" default; NULL: not given */
	bool all, array, per_partition, long_form, no_header, start, why, only_state, step_mode, me, not_me;
	unsigned iterate, verbose;
	bool over, under;
	uint32_t running_over, running_under;
	/* made from the lists */
	struct id_list uid;
	uint32_t base_states, flag_states;   /* bits */
	bool want_finished;
	struct hostlist node;
	char **open[4];                  /* lists whose option came without a value */
	size_t n_open;
	const char *const *argv;
	int argc;
};
/* Reads the environment and argv. Returns -1 to go on, else the exit status. */
int squeue_parse(struct squeue *q, int argc, char **argv);
void squeue_fini(struct squeue *q);
/* squeue_why.c: --why of the pending jobs named by id. Returns the exit status. */
int squeue_why_print(const struct squeue *q, struct client *c, const uint32_t *id, size_t n);
