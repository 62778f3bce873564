/* pmi_wire.h - the texts of PMI-1 ("cmd=put key=a value=b\n") and PMI-2 ("    21cmd=kvs-put;key=a;...")
 * A request is taken apart in place. Bytes come from the user's program: anything may be in them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"
#define PMI_WORDS 4096
#define PMI_REQUEST_MAX (1u << 20)
struct pmi_req {
	int version;                               /* 1 or 2 */
	size_t n;
	struct { char *key, *value; } word[PMI_WORDS];
};
/* The first whole request of `n` bytes at `data`, taken apart; returns how many bytes it was, 0: not whole yet, -1: malformed. `*version`
 * 0 becomes 1 or 2 with the first one (always a line). */
long pmi_take(char *data, size_t n, int *version, struct pmi_req *ret);
const char *pmi_word(const struct pmi_req *r, const char *key);     /* NULL: none */
/* Build an answer: begin, add, end. The result is to be sent as it is. */
void pmi_answer(struct str *out, const struct pmi_req *r, const char *cmd);
void pmi_add(struct str *out, const struct pmi_req *r, const char *key, const char *value);
void pmi_end(struct str *out, const struct pmi_req *r);
