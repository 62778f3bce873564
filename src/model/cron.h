/* cron.h - when a crontab entry is due: five fields (minute hour day-of-month month day-of-week) or a word as @daily
 *
 * Pure: the wall clock comes as a table of zone changes (zone.h). As in cron(8), where both days are restricted either is enough. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/zone.h"

struct cron { uint64_t minute; uint32_t hour, day, month; uint8_t weekday; bool any_day, any_weekday; };  /* bit n: due at n; month 1-12, day 1-31, weekday 0-6 */

/* Reads the fields at the beginning of a line; *ret_end is behind them and the blanks that follow. -EINVAL: err names the field and what it may be. */
int cron_parse(const char *text, struct cron *ret, const char **ret_end, struct error *err);
/* "0,15,30,45 * * * *"; a field that leaves nothing out is "*". */
#define CRON_TEXT_MAX 512
void cron_text(const struct cron *c, char buf[CRON_TEXT_MAX]);
/* The first due minute after `after` (both seconds since the epoch); 0: never (the 30th of February). */
int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after);
