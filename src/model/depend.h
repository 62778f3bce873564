/* depend.h - the argument of --dependency, as a list of terms
 * "afterok:5:6_2,after:7+10,singleton": all must hold; with '?' instead of ',' one is enough; the two do not mix. A bare id is afterany.
 * "5_*" is the whole array 5, the same as "5". The text says nothing about whether the jobs exist: the core knows. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum depend_kind { DEPEND_AFTER, DEPEND_AFTERANY, DEPEND_AFTEROK, DEPEND_AFTERNOTOK, DEPEND_AFTERCORR, DEPEND_AFTERBURSTBUFFER, DEPEND_SINGLETON };
struct depend_term {
	enum depend_kind kind;
	uint32_t job_id;          /* 0: singleton */
	bool has_task;            /* "5_2" */
	bool whole_array;         /* "5_*" */
	uint32_t task;
	uint32_t delay_sec;       /* after:5+10 is 600 */
};
struct depend { struct depend_term *term; size_t count, cap; bool any; /* '?' */ };
#define DEPEND_INIT ((struct depend){ 0 })
/* 0 or -ESLURM_DEPENDENCY and err naming the position; "" is no dependency. On error *ret is untouched. */
int depend_parse(const char *text, struct depend *ret, struct error *err);
const char *depend_kind_name(enum depend_kind kind);      /* "afterok" */
/* "afterok:5_2", "after:7+10", "singleton" into buf. */
void depend_term_format(const struct depend_term *t, char *buf, size_t size);
void depend_fini(struct depend *d);
