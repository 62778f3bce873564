/* multi.c - the program of one rank under --multi-prog (see multi.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/idset.h"
#include "stepd/multi.h"
#include "stepd/step.h"

/* Place of `rank` among the members of `ranks`, or -1. "*" is every rank not named before. */
static long rank_offset(const char *ranks, uint32_t rank, uint32_t limit)
{
	struct bitset *set;
	long offset = -1, at = 0;
	if (!strcmp(ranks, "*"))
		return rank;
	if (idset_parse(ranks, limit, &set, NULL) < 0)
		return -1;
	bitset_for(set, i) {
		if (i == rank)
			offset = at;
		at++;
	}
	bitset_destroy(set);
	return offset;
}

static char *expand(const char *arg, uint32_t rank, long offset)
{
	struct str out = STR_INIT;
	for (; *arg; arg++) {
		if (arg[0] == '%' && arg[1] == 't')
			str_addf(&out, "%u", rank), arg++;
		else if (arg[0] == '%' && arg[1] == 'o')
			str_addf(&out, "%ld", offset), arg++;
		else
			str_add_c(&out, *arg);
	}
	return str_take(&out);
}

int multi_find(struct step *s, struct task *t)
{
	for (size_t i = 0; i < s->spec->n_multi_prog; i++) {
		const Pb__MultiProg *m = s->spec->multi_prog[i];
		long offset = rank_offset(m->ranks, t->rank, 1u << 20);
		if (offset < 0)
			continue;
		t->argv = xcalloc(m->n_argv + 1, sizeof *t->argv);
		for (size_t k = 0; k < m->n_argv; k++)
			t->argv[k] = expand(m->argv[k], t->rank, offset);
		return 0;
	}
	return step_fail(s, ENOENT, "the multi-prog configuration has no program for task %u", t->rank);
}
