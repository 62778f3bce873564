/* resvflag.c - see resvflag.h */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "model/resvflag.h"
#include "model/timespec.h"

#define PURGE_DEFAULT_SEC 300

enum kind { SET, KEEP, BORN, SHOWN };
static const struct { const char *shown, *typed; uint32_t bit; enum kind kind; } row[] = {
#define RESV_FLAG(sym, bit, shown, typed, kind) { shown, typed, 1u << bit, kind },
#include "tables/resv_flags.def"
#undef RESV_FLAG
};

char *resvflag_format(uint64_t flags, uint32_t purge_sec)
{
	struct str s = STR_INIT;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		if (!(flags & row[i].bit))
			continue;
		str_add_sep(&s, ",", row[i].shown);
		if (row[i].bit == RESVF_PURGE_COMP && purge_sec) {
			char t[32];
			timespec_format(purge_sec, t, sizeof t);
			str_addf(&s, "=%s", t);
		}
	}
	return str_take(&s);
}

static bool same(const char *name, const char *word, size_t n, bool whole) { return !strncasecmp(name, word, n) && (!whole || !name[n]); }

/* The row of that word, which may be shortened to what is of one row only ("PURGE"); else the number of rows. */
static size_t row_find(const char *word, size_t n)
{
	size_t rows = sizeof row / sizeof row[0], found = rows, short_n = 0;
	for (size_t i = 0; i < rows; i++) {
		if (row[i].kind == SHOWN)
			continue;
		if (same(row[i].shown, word, n, true) || same(row[i].typed, word, n, true))
			return i;
		if (n >= 4 && (same(row[i].shown, word, n, false) || same(row[i].typed, word, n, false))) {
			found = i;
			short_n++;
		}
	}
	return short_n == 1 ? found : rows;
}

uint32_t resvflag_parse(const char *word, bool born, bool away, uint32_t *ret_purge_sec, struct error *err)
{
	size_t n = strcspn(word, "="), at = row_find(word, n);
	for (size_t i = at; i < sizeof row / sizeof row[0] && i == at; i++) {
		if (away ? row[i].kind != SET : row[i].kind == BORN && !born) {
			error_set(err, ESLURM_NOT_SUPPORTED, "flag %s cannot be %s an existing reservation", row[i].shown, away ? "taken off" : "given to");
			return 0;
		}
		if (word[n] && row[i].bit != RESVF_PURGE_COMP)
			break;
		uint32_t min = 0;
		if (word[n] && timespec_parse_mins(word + n + 1, &min, err) < 0)
			return 0;
		if (row[i].bit == RESVF_PURGE_COMP && !away)
			*ret_purge_sec = word[n] ? min * 60 : PURGE_DEFAULT_SEC;
		return row[i].bit;
	}
	error_set(err, EINVAL, "Error parsing flags %s.", word);
	return 0;
}
