/* play.h - what the files of the scenario runner share (scenario.c, scenario_submit.c, scenario_resv.c, scenario_topo.c) */
#pragma once
#include "sim/world.h"

#define WORDS_MAX 64
struct name { char *text; uint32_t id, run_sec, step; };
struct play {
	struct world w;
	const char *file;
	unsigned line;
	char *word[WORDS_MAX];
	size_t words;
	struct name *name;
	size_t names, names_cap;
	uint64_t start_ms, last_token;
	uint32_t last_code;
	char last_detail[512];
	bool started;
	size_t from, to;           /* opt looks at these words only; 0: at all */
};


void fail(const struct play *p, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
const char *word(const struct play *p, size_t i);                 /* "" past the end */
const char *opt(const struct play *p, const char *key);           /* of key=value */
bool has(const struct play *p, const char *flag);
uint32_t num(const struct play *p, const char *text);
uint64_t duration_ms(const struct play *p, const char *text);     /* "10m"; "@2001-10-20T09:00": until then, on the wall */
uint64_t wall_ms(const struct play *p, const char *text);
uint32_t uid_of(struct play *p);
void take_result(struct play *p, uint32_t code, const char *detail);
void expect_text(struct play *p, const char *what, const char *want, const char *got);
struct name *find(struct play *p, const char *text);               /* a job, a step; NULL: none is called so */
struct name *name_add(struct play *p, const char *text);
/* scenario_submit.c */
void do_submit(struct play *p);
void do_alloc(struct play *p);
char *dependency(struct play *p, const char *text);               /* "afterok:a" -> with ids, malloc'd */
/* scenario_resv.c */
void do_zone(struct play *p);
void zone_forget(struct play *p);
void do_reserve(struct play *p);
void expect_resv(struct play *p);
void expect_used(struct play *p);
/* scenario_acct.c */
void do_qos(struct play *p);
void do_account(struct play *p);
/* scenario_topo.c */
void do_topology(struct play *p);
void do_unit(struct play *p);
