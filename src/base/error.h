/* error.h - what went wrong, for programs and for people
 *
 * Functions return 0 (or positive) when good, and a negative code when not: -Exxx of errno.h or one of
 * the -ESLURM_* of tables/errors.def (numbers from 1000 up, so they never meet errno). Where a person
 * will read it, they fill a struct error: code, one factual line that names the thing, and a hint. */
#pragma once

enum error_code {
#define ERR(name, number, text) name = number,
#include "tables/errors.def"
#undef ERR
};

struct error {
	int code;        /* negative, as returned; 0: no error */
	char line[512];  /* "partition \"gpu\" does not exist" */
	char hint[256];  /* a sentence on what to do; "" if there is none */
};

/* Fill err (may be NULL) and return -abs(code): `return error_set(err, EINVAL, "...", ...);` */
int error_set(struct error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void error_hint(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The short standard sentence of a code (sign is ignored): table text for 1000 and up, else strerror. */
const char *error_text(int code);
/* The symbol of a table code ("ESLURM_INVALID_JOB_ID"), or NULL. */
const char *error_name(int code);
