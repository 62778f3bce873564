/* rows.h - the rows of tables/config.def in memory: look-up by name, suggestions, and the check and parsing of one value
 * Pure: no file is read here. The index is built once a process. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "conf/conf.h"

enum conf_section { SEC_SLURM, SEC_SHOW, SEC_NODE, SEC_DOWN, SEC_NODESET, SEC_PART, SEC_POWER, SEC_GRES, SEC_CGROUP, SEC_DBD, SEC_TOPO, SEC_JOBC, SEC_OCI, SEC_ACCT, SEC_HELP, SEC_MPI, SEC_BB, SEC_COUNT };
enum conf_type { CT_STR, CT_ONE, CT_WORDS, CT_NUM, CT_BOOL, CT_SECS, CT_MINS, CT_MAXT, CT_HMS, CT_MB, CT_LEVEL, CT_PORT, CT_LIST, CT_USER, CT_HOSTS, CT_CODES };
enum conf_show { SHOW_NONE, SHOW_STR, SHOW_NUM, SHOW_SEC, SHOW_MIN, SHOW_USEC, SHOW_PCT, SHOW_NPM, SHOW_YN, SHOW_HMS, SHOW_CANON, SHOW_UPPER, SHOW_PC1, SHOW_MB, SHOW_MSEC, SHOW_OWN };
enum conf_apply { APPLY_LIVE, APPLY_START, APPLY_OLD };
enum conf_status { STATUS_WORKS, STATUS_HARMLESS, STATUS_WARN, STATUS_TODO };

struct conf_row {
	const char *name;
	const char *def;
	const char *range;
	const char *doc;
	uint8_t section, type, show, apply, status;
};
const struct conf_row *conf_row(enum conf_key k);
/* The key of that name in that section, in any case; -1 if there is none. */
int conf_row_find(enum conf_section s, const char *name, size_t len);
/* The known key nearest to name, NULL when none is near. */
const char *conf_row_nearest(enum conf_section s, const char *name);
/* Name of the file or line kind of a section: "slurm.conf", "NodeName lines of slurm.conf". */
const char *conf_section_name(enum conf_section s);
/* Is `text` a value of that key? *ret_num: its number, where the type has one. err says what would be right. A word that is known but does not work
 * is refused with -ESLURM_NOT_SUPPORTED. */
int conf_value_check(enum conf_key k, const char *text, uint64_t *ret_num, struct error *err);
/* Calls `tell` for each word of a checked value that does nothing and should be told of: known, but without effect yet, or unknown (open lists). */
enum word_doubt { WORD_NOT_KNOWN, WORD_IDLE, WORD_BAD_VALUE };
void conf_words_doubt(enum conf_key k, const char *text, void (*tell)(const char *word, size_t len, enum word_doubt doubt, const char *values, void *arg), void *arg);
/* May `word` of that key have that value? What it may have stands behind it in tables/config.def (the default counts instead). */
bool conf_word_value_ok(enum conf_key k, const char *word, const char *value);
/* The words of a list in the order and spelling of the row's range; NULL: none of them. malloc'd. */
char *conf_words_canon(enum conf_key k, const char *text);
/* The list `text` (NULL: empty) of a WORDS key with words more or less: each change is "+word" or "-word". Canonical, "" when none is left; the caller's to free.
 * NULL: a change that is neither, or a word that the key does not have. */
char *conf_words_change(enum conf_key k, const char *text, char *const *change, size_t n);
/* The number of a text that was checked before. */
uint64_t conf_value_num(enum conf_key k, const char *text);
bool conf_bool_parse(const char *text, bool *ret);
