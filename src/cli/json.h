/* json.h - JSON and YAML written straight to text, in the reference's shapes
 *
 * Two layers. The writer (json_open, json_str, ...) keeps track of commas and indentation and serves everything that is small.
 * For long lists a table of rows is compiled once into pieces of constant text with holes, and run for each record: no tree, no formatting of
 * what never changes. A message has one table (tables/json_*.def); both --json and --yaml come from it.
 * SLURM_JSON / SLURM_YAML = compact | pretty as in the reference. */
#pragma once
#include "cli/msgview.h"

#define JSON_DEPTH 24
struct json {
	struct str *out;
	bool yaml, compact;
	bool keyed;          /* the key of the next value is written already */
	int depth;
	struct { bool list, empty; int indent; } level[JSON_DEPTH];
};
void json_init(struct json *j, struct str *out, bool yaml);
/* '{' or '['. key NULL: an item of a list, or the root. */
void json_open(struct json *j, const char *key, char kind);
void json_close(struct json *j);
void json_finish(struct json *j);                      /* after the root was closed */
void json_str(struct json *j, const char *key, struct slice text);
void json_text(struct json *j, const char *key, const char *text);    /* NULL: "" */
void json_u64(struct json *j, const char *key, uint64_t v);
void json_i64(struct json *j, const char *key, int64_t v);
void json_float(struct json *j, const char *key, double v);
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);
/* {"set":..., "infinite":..., "number":...} */
void json_num(struct json *j, const char *key, bool set, bool infinite, uint64_t v);
/* A list of the words of a comma list. */
void json_words(struct json *j, const char *key, struct slice list);
/* The exit code of a wait status: status words, return_code, signal. */
void json_exit(struct json *j, const char *key, uint32_t wait_status, bool pending);

/* The argument of --json / --yaml: "" is the newest; "list" prints what there is and exits; what we do not speak is refused. 0 or exit status + 1. */
int json_parser_check(const char *prog, const char *parser);
/* meta, errors and warnings: the last members of every reply; closes the root. */
void json_end(struct json *j, const char *const *argv, int argc);

/* For json_table.c: comma, line break, indentation and key; then a value without them. */
void json_begin(struct json *j, const char *key);
void json_value_str(struct json *j, const char *p, size_t n);

/* --- tables ----------------------------------------------------------------------------------- */
enum json_kind {
	J_OPEN, J_CLOSE,
	J_STR,        /* text; absent: `literal`, or "" */
	J_NUM,        /* set when there; 4294967295 is infinite */
	J_NUM0,       /* always set; absent is 0 */
	J_INT, J_SINT, J_BOOL,   /* absent: `absent` */
	J_WORDS,      /* comma list -> list */
	J_LIT,        /* constant text */
	J_LIT_INT, J_LIT_BOOL, J_LIT_UNSET, J_LIT_ZERO, J_LIT_LIST,   /* constant: absent, absent, unset number, number 0, [] */
	J_FN,         /* fn writes exactly one member named `key` */
};
typedef void (*json_fn)(struct json *j, const char *key, void *row);
struct json_row { enum json_kind kind; const char *key; unsigned source, field; uint64_t absent; const char *literal; json_fn fn; };
/* The message a row's `source` means, for the record at hand. */
typedef const struct msgview *(*json_source_fn)(void *row, unsigned source);
struct json_program;
/* For records that stand where `at` is: items of the open list (key NULL), or a member `key` of the open map. */
struct json_program *json_compile(const struct json *at, const char *key, const struct json_row *rows, size_t n, json_source_fn source);
void json_run(const struct json_program *p, struct json *at, void *row);
void json_program_destroy(struct json_program *p);

/* Records (fields_json.c): each writes one item of the list that is open. */
struct jobview;
const struct json_row *json_job_rows(size_t *n);
const struct msgview *json_job_source(void *row, unsigned source);
const struct json_row *json_step_rows(size_t *n);
const struct json_row *json_node_rows(size_t *n);
const struct json_row *json_part_rows(size_t *n);
const struct msgview *json_plain_source(void *row, unsigned source);   /* row is the msgview itself */
void json_node_state(struct json *j, const char *key, const struct msgview *node);
/* A whole reply: {"NAME": [records of field `field`], last_update..., meta}. Records are taken when keep(row) is true (NULL: all). */
struct json_reply {
	const char *name;
	const uint8_t *data;
	size_t len;
	unsigned field;
	const struct json_row *rows;
	size_t n_rows;
	json_source_fn source;
	void *(*read)(const uint8_t *item, size_t len, void *arg);   /* NULL: leave it out */
	void *arg;
	bool backfill;              /* last_backfill too */
	const char *none;           /* the warning when nothing was taken */
};
void json_reply_print(const struct json_reply *r, bool yaml, const char *const *argv, int argc);
