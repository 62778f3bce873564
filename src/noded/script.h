/* script.h - runs the site's programs (Prolog, Epilog, HealthCheckProgram, RebootProgram) one after the other, with a time limit
 * Each in its own process group, which is killed at the limit; output goes to /dev/null. */
#pragma once
#include "model/envlist.h"
#include "noded/noded.h"

/* status: 0, or the wait status of the first that failed; a program that cannot be started counts as exit status 127. */
typedef void (*script_done_fn)(struct noded *n, int status, void *arg);
bool script_is_set(const struct noded *n, enum conf_key key);
/* Seconds of PrologTimeout or EpilogTimeout, else of PrologEpilogTimeout; 0: no limit. */
uint32_t script_timeout(const struct noded *n, enum conf_key key);
/* All programs of a repeated key. `env` is copied. */
void script_run(struct noded *n, enum conf_key key, char *const *env, uint32_t timeout_sec, script_done_fn done, void *arg);
void script_run_one(struct noded *n, const char *path, char *const *env, uint32_t timeout_sec, script_done_fn done, void *arg);
/* Its output goes to the file `out`, made anew. */
void script_run_to(struct noded *n, const char *path, char *const *env, const char *out, uint32_t timeout_sec, script_done_fn done, void *arg);
/* A child was reaped. true: it was one of ours. */
bool script_reaped(struct noded *n, pid_t pid, int status);
