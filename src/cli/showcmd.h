/* showcmd.h - what the commands that show things share: start, help, --json and --yaml, iterate, one reply skimmed */
#pragma once
#include "cli/jobview.h"
#include "cli/opt.h"
#include "cli/table.h"
#include "client/client.h"

/* log prefix, TZ and environment. */
void show_start(const char *prog);
/* Prints "prog: error: ..." and the hint; returns 1 for `return show_fail(&err)`. */
int show_fail(const struct error *err);
/* getopt's kind of failure: "prog: line" and "Try ...". */
int show_bad_option(const char *prog, const struct error *err);
/* Whichever of the two it is: what opt_parse refused, or a handler of options. */
int show_parse_fail(const char *prog, const struct error *err);
/* "CLUSTER: name", above the header where --clusters was given. */
void put_cluster_line(struct str *out);
/* Opens the client and fills show_env.cluster. Exits with status 1 and a message when that cannot be done. */
struct client *show_open(void);
/* Calls and returns the reply's bytes (freed by the caller), or negative with err. Sets show_env.now from field `now_field` (0: none). */
int show_call(struct client *c, enum rpc rpc, const ProtobufCMessage *req, unsigned now_field, uint8_t **ret, size_t *len, struct error *err);
/* Walk the repeated field `field` of a reply. */
struct show_walk { struct wire_skim skim; unsigned field; };
void show_walk_start(struct show_walk *w, const uint8_t *data, size_t len, unsigned field);
bool show_walk_next(struct show_walk *w, const uint8_t **ret, size_t *ret_len);
/* "Mon Nov 30 04:13:22 2026\n" */
void put_date_line(struct str *out);
/* Whole positive number of seconds for --iterate; -EINVAL. */
int show_iterate_parse(const char *text, unsigned *ret);
/* A list option given several times adds up: "a,b" + "c". */
void list_add(char **list, const char *more);
/* A copy of argv from before option parsing moves operands to the end, for the meta block of --json; never freed. */
const char *const *show_argv_keep(int argc, char **argv);
