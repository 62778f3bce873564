/* sinfo.h - what sinfo was asked to show; parsing is in sinfo_opt.c, grouping and printing in sinfo.c */
#pragma once
#include "cli/fields_node.h"
#include "cli/showcmd.h"

/* One word of --states: all words of an "a+b" must hold, one of the comma's parts is enough. */
struct state_test { bool not_, and_next; uint32_t base_mask; uint32_t flags_any; int busy; };  /* busy: 1 must have work, 0 must not, -1 either */
#define STATE_TESTS_MAX 64
struct sinfo {
	char *nodes, *partitions, *states, *format, *format_long, *sort, *json, *yaml;
	bool all, dead, exact, future, no_header, long_form, node_form, responding, reasons, summarize, reservations;
	unsigned iterate, verbose;
	struct state_test test[STATE_TESTS_MAX];
	size_t n_tests;
	struct hostlist want;
	const char *const *argv;
	int argc;
};
int sinfo_parse(struct sinfo *q, int argc, char **argv);
bool sinfo_state_passes(const struct sinfo *q, const struct msgview *node);
struct client;
/* sinfo -T (sinfo_resv.c): exit status. */
int sinfo_reservations(const struct sinfo *q, struct client *c);
