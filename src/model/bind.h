/* bind.h - what --cpu-bind and --mem-bind ask for, taken apart
 *
 * "[{quiet|verbose},][prefer,]KIND[:LIST]" in any order and case (manual of srun). Lists come out expanded ("3,0xc*2" is "3,c,c"). "rank" of CPUs is known
 * and means nothing any more, as in the reference. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bind_kind { BIND_UNSET, BIND_NONE, BIND_RANK, BIND_LOCAL, BIND_MAP, BIND_MASK, BIND_RANK_LDOM, BIND_MAP_LDOM, BIND_MASK_LDOM, BIND_SOCKETS, BIND_CORES,
	BIND_THREADS, BIND_LDOMS };

struct bind {
	enum bind_kind kind;
	bool verbose, prefer, one_thread;
	char **item;               /* of a list; masks in hexadecimal without 0x */
	size_t n;
};

/* 0 or -EINVAL (a word or list that is not one; more than 65536 elements). `ret` is to be freed by bind_fini in both cases. NULL text: all unset. */
int bind_parse(const char *text, bool memory, struct bind *ret);
void bind_fini(struct bind *b);
/* "map_cpu" and the like; "" where unset. */
const char *bind_kind_name(enum bind_kind kind, bool memory);
/* The list joined by commas; malloc'd, or NULL where there is none. */
char *bind_list(const struct bind *b);
/* The k-th element, counted round. NULL: there is no list. */
const char *bind_item(const struct bind *b, uint32_t k);
