/* limit.h - limits of QOS and associations as rows (tables/limits.def) and text: names, values, lists of them */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/str.h"
#include "proto/assoc.pb-c.h"

enum limit_kind {
#define LIMIT(number, symbol, what, scope, type, qos, assoc, areason, qreason, works) LIMIT_##symbol = number,
#include "tables/limits.def"
#undef LIMIT
	LIMIT_KINDS
};
enum limit_what { LIMIT_OF_JOBS, LIMIT_OF_SUBMIT, LIMIT_OF_TRES, LIMIT_OF_MINS, LIMIT_OF_RUNMINS, LIMIT_OF_WALL };
enum limit_scope { LIMIT_PER_GROUP, LIMIT_PER_USER, LIMIT_PER_ACCOUNT, LIMIT_PER_JOB, LIMIT_PER_NODE, LIMIT_PER_LEAST };
enum limit_type { LIMIT_COUNT, LIMIT_TRES, LIMIT_TIME };
struct limit_row {
	enum limit_kind kind;
	enum limit_what what;
	enum limit_scope scope;
	enum limit_type type;
	const char *qos, *assoc;     /* names; NULL: it has no such limit */
	bool works;
};
/* NULL: there is no such kind. */
const struct limit_row *limit_row(uint32_t kind);
/* By the name in a QOS (or association), its older names, or a beginning of at least 3 letters of one; case does not matter. *ret_tres: "cpu" where
 * the name says which resource (GrpCPUs), else NULL. */
const struct limit_row *limit_find(const char *name, size_t len, bool qos, const char **ret_tres);

struct limit_list { Pb__Limit **at; size_t n; };  /* as in a record: malloc'd, the record's */
/* "5", "cpu=4,gres/gpu=2", "1-00:00:00" into the list: what is named replaces what was, -1 takes it away. -EINVAL: nothing is changed. */
int limit_set(struct limit_list *l, const struct limit_row *row, const char *tres, const char *text, struct error *err);
/* Its value as sacctmgr prints it, appended; nothing when not set. */
void limit_print(const struct limit_list *l, enum limit_kind kind, struct str *out);

enum qos_flag {
#define QOS_FLAG(bit, symbol, name, works) QOSF_##symbol = 1u << bit,
#include "tables/qos_flags.def"
#undef QOS_FLAG
};
/* "DenyOnLimit,OverPartQOS" -> bits. -EINVAL, or -ENOTSUP: err says which. */
int qos_flags_parse(const char *text, uint32_t *ret, struct error *err);
void qos_flags_print(uint32_t flags, struct str *out);
